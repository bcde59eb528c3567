// SPDX-License-Identifier: MIT
/*
 * Instances of miniport drivers: add and remove, enable and disable. See registry.h for ownership
 * and the lock.
 *
 * An open and a disable: either the open is counted first, and the disable waits until it failed or
 * was closed; or the disable is first, and the open finds the instance disabled. An open and a
 * remove: likewise. A later event ends the wait of a disable: an enable, since there is nothing to
 * wait for, or another disable, which then waits itself.
 *
 * Remove: the stage is set first, so no open, request or question begins; those that have begun are
 * waited for; HaltHandlerEx runs, in which the driver waits for what it has going on (its work
 * items, whose events end since nothing is open any more); then events that are on their way out.
 */
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/red.h"
#include "ndis/interfaces.h"
#include "ndis/registry_internal.h"
#include "nt/nt.h"

os_mutex ndis_lock = OS_MUTEX_INITIALIZER;
os_cond ndis_changed = OS_COND_INITIALIZER;

unsigned ndis_event_limit_ms = 10000;

static struct ndis_instance *instances; /* ndis_lock */

static struct ndis_instance *find(NET_IFINDEX index)
{
    struct ndis_instance *i = instances;

    while (i && i->index != index)
        i = i->next;
    return i;
}

struct ndis_instance *ndis_instance_up(NET_IFINDEX index)
{
    struct ndis_instance *it;

    while ((it = find(index)) != NULL && it->stage == NDIS_STARTING && !RED("ndis-found-too-early"))
        os_cond_wait(&ndis_changed, &ndis_lock);
    return it && it->stage == NDIS_UP ? it : NULL;
}

struct ndis_instance *ndis_instance_enter(NET_IFINDEX index)
{
    struct ndis_instance *it;

    os_mutex_lock(&ndis_lock);
    it = ndis_instance_up(index);
    if (it)
        it->calls++;
    os_mutex_unlock(&ndis_lock);
    return it;
}

void ndis_instance_leave(struct ndis_instance *it)
{
    os_mutex_lock(&ndis_lock);
    it->calls--;
    os_cond_broadcast(&ndis_changed);
    os_mutex_unlock(&ndis_lock);
}

bool ndis_adapter_known(NET_IFINDEX index)
{
    const struct ndis_instance *it;
    bool known;

    os_mutex_lock(&ndis_lock);
    it = find(index);
    known = it && it->stage != NDIS_STARTING;
    os_mutex_unlock(&ndis_lock);
    return known;
}

/* ---- add, remove ---- */

static void unlink_and_free(struct ndis_instance *it)
{
    struct ndis_instance **at = &instances;

    os_mutex_lock(&ndis_lock);
    while (it->events)
        os_cond_wait(&ndis_changed, &ndis_lock);
    while (*at != it)
        at = &(*at)->next;
    *at = it->next;
    it->driver->instances--;
    os_cond_broadcast(&ndis_changed);
    os_mutex_unlock(&ndis_lock);
    free(it);
}

NTSTATUS ndis_adapter_add(NDIS_HANDLE handle, NET_IFINDEX index, NDIS_HANDLE *instance)
{
    NDIS_MINIPORT_INIT_PARAMETERS parameters = {
        .Header = {NDIS_OBJECT_TYPE_MINIPORT_INIT_PARAMETERS,
                   NDIS_MINIPORT_INIT_PARAMETERS_REVISION_1, sizeof parameters},
        .IfIndex = index,
    };
    struct ndis_instance *it = calloc(1, sizeof *it);
    NTSTATUS status;
    bool taken;

    if (!it)
        return STATUS_INSUFFICIENT_RESOURCES;
    it->driver = handle;
    it->index = index;
    it->allowed = interfaces_network_direct(index);
    os_mutex_lock(&ndis_lock);
    taken = find(index) != NULL;
    if (!taken) {
        it->next = instances;
        instances = it;
        it->driver->instances++;
    }
    os_mutex_unlock(&ndis_lock);
    if (taken) {
        free(it);
        return STATUS_OBJECT_NAME_COLLISION;
    }
    status = it->driver->initialize(it, it->driver->context, &parameters);
    if (status != STATUS_SUCCESS) {
        log_error("ndis: interface %u: InitializeHandlerEx failed (status 0x%08x)", (unsigned)index,
                  (unsigned)status);
        unlink_and_free(it);
        return status;
    }
    os_mutex_lock(&ndis_lock);
    it->stage = NDIS_UP;
    os_cond_broadcast(&ndis_changed);
    os_mutex_unlock(&ndis_lock);
    *instance = it;
    return STATUS_SUCCESS;
}

void ndis_adapter_remove(NDIS_HANDLE instance)
{
    struct ndis_instance *it = instance;

    os_mutex_lock(&ndis_lock);
    it->stage = NDIS_STOPPING;
    os_cond_broadcast(&ndis_changed);
    if (it->opens)
        log_info("ndis: interface %u: its removal waits for %u open%s", (unsigned)it->index,
                 it->opens, it->opens == 1 ? "" : "s");
    while ((it->opens || it->calls) && !RED("ndis-remove-does-not-wait"))
        os_cond_wait(&ndis_changed, &ndis_lock);
    os_mutex_unlock(&ndis_lock);
    it->driver->halt(it->context, NdisHaltDeviceDisabled);
    unlink_and_free(it);
}

bool ndis_driver_idle(struct ndis_driver *driver)
{
    unsigned count;

    os_mutex_lock(&ndis_lock);
    count = driver->instances;
    os_mutex_unlock(&ndis_lock);
    if (count)
        nt_finding_of_call("NdisMDeregisterMiniportDriver: %u adapter%s not removed", count,
                           count == 1 ? " is" : "s are");
    return count == 0;
}

/* ---- enable, disable ---- */

void ndis_instance_attributes(struct ndis_instance *it, bool enabled)
{
    if (enabled && !it->allowed)
        log_error("NdisMSetMiniportAttributes: interface %u: Enabled is TRUE although "
                  "*NetworkDirect is 0 (need FALSE): it is disabled",
                  (unsigned)it->index);
    os_mutex_lock(&ndis_lock);
    it->ndk = true;
    it->enabled = enabled && it->allowed;
    os_mutex_unlock(&ndis_lock);
}

bool ndis_instance_enable(struct ndis_instance *it, bool enable)
{
    unsigned long long mine;

    if (enable && !it->allowed) {
        log_error("NdisMNetPnPEvent: interface %u: NetEventNDKEnable although *NetworkDirect is 0 "
                  "(need 1)",
                  (unsigned)it->index);
        return false;
    }
    os_mutex_lock(&ndis_lock);
    it->events++;
    it->enabled = enable;
    mine = ++it->changes;
    os_cond_broadcast(&ndis_changed);
    log_info("ndis: interface %u: NDK %s, %u open%s", (unsigned)it->index,
             enable ? "enabled" : "disabled", it->opens, it->opens == 1 ? "" : "s");
    while (!enable && it->opens && it->changes == mine && !RED("ndis-disable-does-not-wait"))
        os_cond_wait(&ndis_changed, &ndis_lock);
    it->events--;
    os_cond_broadcast(&ndis_changed);
    os_mutex_unlock(&ndis_lock);
    return true;
}

void ndis_adapter_events_wait(NDIS_HANDLE instance, unsigned long long count)
{
    const struct ndis_instance *it = instance;

    os_mutex_lock(&ndis_lock);
    while (it->changes < count)
        os_cond_wait(&ndis_changed, &ndis_lock);
    os_mutex_unlock(&ndis_lock);
}

NTSTATUS ndis_registry_state(NET_IFINDEX index, struct ndis_state *out, char *error, size_t size)
{
    const struct ndis_instance *it;

    os_mutex_lock(&ndis_lock);
    it = ndis_instance_up(index);
    if (it && !it->ndk)
        it = NULL;
    if (it)
        *out = (struct ndis_state){it->enabled, it->allowed, it->opens};
    os_mutex_unlock(&ndis_lock);
    if (it)
        return STATUS_SUCCESS;
    snprintf(error, size, "interface %u: no NDK adapter has this index", (unsigned)index);
    return STATUS_NOT_SUPPORTED;
}

/* Waits for the event that an accepted OID_NDK_SET_STATE promises; false: it does not come. */
static bool event_comes(struct ndis_instance *it, bool enable, unsigned long long before)
{
    const struct os_deadline until = {OS_MONO, os_mono_100ns() + ndis_event_limit_ms * 10000ull};
    bool came;

    os_mutex_lock(&ndis_lock);
    while (it->enabled != enable && it->changes == before && !os_deadline_passed(&until))
        (void)os_cond_wait_deadline(&ndis_changed, &ndis_lock, &until);
    came = it->enabled == enable || it->changes != before;
    os_mutex_unlock(&ndis_lock);
    return came;
}

NTSTATUS ndis_registry_set_state(NET_IFINDEX index, bool enable, char *error, size_t size)
{
    struct ndis_instance *it = ndis_instance_enter(index);
    BOOLEAN value = enable;
    unsigned long long before = 0;
    NTSTATUS status;

    if (it) {
        os_mutex_lock(&ndis_lock);
        before = it->changes;
        os_mutex_unlock(&ndis_lock);
    }
    status = ndis_registry_oid(index, NdisRequestSetInformation, OID_NDK_SET_STATE, &value,
                               sizeof value, NULL, error, size);
    if (it && status == STATUS_SUCCESS && !event_comes(it, enable, before)) {
        snprintf(
            error, size,
            "interface %u: its provider sends no event after OID_NDK_SET_STATE (waited %u ms), "
            "rule 3.5",
            (unsigned)index, ndis_event_limit_ms);
        status = STATUS_IO_TIMEOUT;
    }
    if (it)
        ndis_instance_leave(it);
    return status;
}
