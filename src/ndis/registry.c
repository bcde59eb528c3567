// SPDX-License-Identifier: MIT
/*
 * Instances by interface index, opens and closes, enable and disable. See registry.h for ownership
 * and the lock; the drivers themselves are in drivers.c.
 *
 * An open and a disable: either the open is counted first, and the disable waits until it failed or
 * was closed; or the disable is first, and the open finds the instance disabled. An open and a
 * remove: likewise. An enable ends the wait of a disable before it.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/red.h"
#include "ndis/registry_internal.h"
#include "nt/nt.h"

struct opened {
    struct opened *next;
    NDK_ADAPTER *adapter;
    struct ndis_instance *instance;
};

static os_mutex lock = OS_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static os_cond changed;
static struct ndis_instance *instances;
static struct opened *opens;
static _Thread_local char reason[1024]; /* of the open handler that runs in this thread */

static void init(void)
{
    os_cond_init(&changed); /* on the monotonic clock: no static initializer */
}

static struct ndis_instance *find(NET_IFINDEX index)
{
    struct ndis_instance *i = instances;

    while (i && i->index != index)
        i = i->next;
    return i;
}

void ndis_open_reason(const char *text)
{
    snprintf(reason, sizeof reason, "%s", text);
}

static NTSTATUS failed(NTSTATUS status, NET_IFINDEX index, char *error, size_t size,
                       const char *text)
{
    snprintf(error, size, "interface %u: %s", (unsigned)index, text);
    return status;
}

/* ---- open ---- */

/* Finds the instance and counts the open at it. NULL: error and status are set. */
static struct ndis_instance *open_begin(NET_IFINDEX index, NTSTATUS *status, char *error,
                                        size_t size)
{
    struct ndis_instance *it;

    pthread_once(&once, init);
    os_mutex_lock(&lock);
    it = find(index);
    if (it && (!it->up || !it->ndk || !it->driver->open))
        it = NULL;
    if (!it) {
        *status = failed(STATUS_NOT_SUPPORTED, index, error, size, "no NDK adapter has this index");
    } else if (!it->enabled && !RED("ndis-open-while-disabled")) {
        *status = failed(NDIS_STATUS_ADAPTER_NOT_READY, index, error, size, "NDK is disabled");
        it = NULL;
    } else {
        it->opens++;
    }
    os_mutex_unlock(&lock);
    return it;
}

static void open_end(struct ndis_instance *it)
{
    os_mutex_lock(&lock);
    it->opens--;
    os_cond_broadcast(&changed);
    os_mutex_unlock(&lock);
}

/* NULL: a proper answer to that version. */
static const char *wrong_adapter(const NDK_ADAPTER *adapter, NDK_VERSION version)
{
    if (!adapter)
        return "its provider answered success without an adapter";
    if (RED("ndis-adapter-unchecked"))
        return NULL;
    if (adapter->Header.ObjectType != NdkObjectTypeAdapter)
        return "its provider's object is not of the type adapter";
    if (adapter->Header.Version.Major != version.Major ||
        adapter->Header.Version.Minor < version.Minor)
        return "its provider's adapter runs another version than was asked for, rule 3.3";
    return adapter->Dispatch ? NULL : "its provider's adapter has no dispatch table";
}

NTSTATUS ndis_registry_open(NET_IFINDEX index, NDK_VERSION version, NDK_ADAPTER **out, char *error,
                            size_t size)
{
    NDIS_OPEN_NDK_ADAPTER_PARAMETERS parameters = {.Version = version};
    NTSTATUS status = STATUS_SUCCESS;
    struct ndis_instance *it = open_begin(index, &status, error, size);
    struct opened *opened;
    NDK_ADAPTER *adapter = NULL;
    const char *wrong;

    if (!it)
        return status;
    opened = malloc(sizeof *opened);
    if (!opened) {
        open_end(it);
        return failed(STATUS_INSUFFICIENT_RESOURCES, index, error, size, "no memory for an open");
    }
    reason[0] = '\0';
    status = it->driver->open(it->context, &parameters, &adapter);
    wrong = status == STATUS_SUCCESS ? wrong_adapter(adapter, version) : NULL;
    if (wrong && adapter)
        it->driver->close(it->context, adapter);
    if (wrong || status != STATUS_SUCCESS) {
        free(opened);
        open_end(it);
        if (wrong)
            log_error("ndis: interface %u: %s", (unsigned)index, wrong);
        return failed(wrong ? STATUS_UNSUCCESSFUL : status, index, error, size,
                      wrong       ? wrong
                      : reason[0] ? reason
                                  : "its provider refused the open");
    }
    opened->adapter = adapter;
    opened->instance = it;
    os_mutex_lock(&lock);
    opened->next = opens;
    opens = opened;
    os_mutex_unlock(&lock);
    *out = adapter;
    return STATUS_SUCCESS;
}

/* ---- close, tell ---- */

static struct ndis_instance *instance_of(const NDK_ADAPTER *adapter, bool take)
{
    struct ndis_instance *it = NULL;
    struct opened **at = &opens, *found;

    os_mutex_lock(&lock);
    while (*at && (*at)->adapter != adapter)
        at = &(*at)->next;
    found = *at;
    if (found) {
        it = found->instance;
        if (take) {
            *at = found->next;
            free(found);
        }
    }
    os_mutex_unlock(&lock);
    return it;
}

void ndis_close_adapter(NDK_ADAPTER *adapter)
{
    struct ndis_instance *it = instance_of(adapter, true);

    if (!it) {
        nt_finding("ndis: an adapter is closed that is not open here, rule C2");
        return;
    }
    it->driver->close(it->context, adapter);
    open_end(it);
}

size_t ndis_adapter_tell(NDK_ADAPTER *adapter, void (*line)(void *, const char *), void *context)
{
    struct ndis_instance *it = instance_of(adapter, false);

    return it && it->driver->tell ? it->driver->tell(adapter, line, context) : 0;
}

/* ---- instances ---- */

bool ndis_adapter_known(NET_IFINDEX index)
{
    bool known;

    os_mutex_lock(&lock);
    known = find(index) != NULL;
    os_mutex_unlock(&lock);
    return known;
}

static void unlink_and_free(struct ndis_instance *it)
{
    struct ndis_instance **at = &instances;

    os_mutex_lock(&lock);
    while (*at != it)
        at = &(*at)->next;
    *at = it->next;
    it->driver->instances--;
    os_cond_broadcast(&changed);
    os_mutex_unlock(&lock);
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
    pthread_once(&once, init);
    it->driver = handle;
    it->index = index;
    os_mutex_lock(&lock);
    taken = find(index) != NULL;
    if (!taken) {
        it->next = instances;
        instances = it;
        it->driver->instances++;
    }
    os_mutex_unlock(&lock);
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
    os_mutex_lock(&lock);
    it->up = true;
    os_mutex_unlock(&lock);
    *instance = it;
    return STATUS_SUCCESS;
}

void ndis_adapter_remove(NDIS_HANDLE instance)
{
    struct ndis_instance *it = instance;

    os_mutex_lock(&lock);
    it->up = false;
    while (it->opens)
        os_cond_wait(&changed, &lock);
    os_mutex_unlock(&lock);
    it->driver->halt(it->context, NdisHaltDeviceDisabled);
    unlink_and_free(it);
}

void ndis_adapter_context(NDIS_HANDLE instance, NDIS_HANDLE context)
{
    struct ndis_instance *it = instance;

    it->context = context; /* in InitializeHandlerEx: nobody else looks before it is up */
}

void ndis_instance_attributes(struct ndis_instance *it, bool enabled)
{
    os_mutex_lock(&lock);
    it->ndk = true;
    it->enabled = enabled;
    os_mutex_unlock(&lock);
}

void ndis_instance_enable(struct ndis_instance *it, bool enable)
{
    pthread_once(&once, init);
    os_mutex_lock(&lock);
    it->enabled = enable;
    os_cond_broadcast(&changed);
    log_info("ndis: interface %u: NDK %s, %u open%s", (unsigned)it->index,
             enable ? "enabled" : "disabled", it->opens, it->opens == 1 ? "" : "s");
    while (!it->enabled && it->opens && !RED("ndis-disable-does-not-wait"))
        os_cond_wait(&changed, &lock);
    os_mutex_unlock(&lock);
}

bool ndis_driver_idle(struct ndis_driver *driver)
{
    unsigned count;

    os_mutex_lock(&lock);
    count = driver->instances;
    os_mutex_unlock(&lock);
    if (count)
        nt_finding("NdisMDeregisterMiniportDriver: %u adapter%s not removed", count,
                   count == 1 ? " is" : "s are");
    return count == 0;
}
