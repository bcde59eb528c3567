// SPDX-License-Identifier: MIT
/*
 * Opens and closes by interface index. See registry.h for ownership and the lock; the instances
 * are in instances.c, the drivers in drivers.c.
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

static struct opened *opens; /* ndis_lock */

/* Of the open handler that runs in this thread. */
static _Thread_local char *reason; /* where its sentence goes, or NULL */
static _Thread_local size_t reason_size;
static _Thread_local const char *open_options;

const char *ndis_open_options(void)
{
    return RED("ndis-options-ignored") ? NULL : open_options;
}

void ndis_open_reason(const char *text)
{
    if (reason)
        snprintf(reason, reason_size, "%s", text);
}

static NTSTATUS failed(NTSTATUS status, NET_IFINDEX index, char *error, size_t size,
                       const char *text)
{
    snprintf(error, size, "interface %u: %s", (unsigned)index, text);
    return status;
}

/* ---- open ---- */

/* Finds the instance and counts the open at it. NULL: error and status are set. */
static struct ndis_instance *open_begin(NET_IFINDEX index, bool options, NTSTATUS *status,
                                        char *error, size_t size)
{
    struct ndis_instance *it;

    os_mutex_lock(&ndis_lock);
    it = ndis_instance_up(index);
    if (it && (!it->ndk || !it->driver->open))
        it = NULL;
    if (!it) {
        *status = failed(STATUS_NOT_SUPPORTED, index, error, size, "no NDK adapter has this index");
    } else if (!it->enabled && !RED("ndis-open-while-disabled")) {
        *status = failed(NDIS_STATUS_ADAPTER_NOT_READY, index, error, size,
                         it->allowed ? "NDK is disabled"
                                     : "NDK is disabled, *NetworkDirect is 0 (need 1)");
        it = NULL;
    } else if (options && !it->driver->takes_options) {
        *status = failed(STATUS_INVALID_PARAMETER, index, error, size,
                         "options are given, and its provider takes none");
        it = NULL;
    } else {
        it->opens++;
    }
    os_mutex_unlock(&ndis_lock);
    return it;
}

static void open_end(struct ndis_instance *it)
{
    os_mutex_lock(&ndis_lock);
    it->opens--;
    os_cond_broadcast(&ndis_changed);
    os_mutex_unlock(&ndis_lock);
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

/* Calls the handler. A failure, and what is no proper success, leaves its sentence. */
static NTSTATUS call_open(const struct ndis_instance *it, NDK_VERSION version, const char *options,
                          NDK_ADAPTER **out, char *error, size_t size)
{
    NDIS_OPEN_NDK_ADAPTER_PARAMETERS parameters = {.Version = version};
    const char *wrong;
    NTSTATUS status;

    if (size)
        error[0] = '\0';
    reason = error;
    reason_size = size;
    open_options = options;
    status = it->driver->open(it->context, &parameters, out);
    open_options = NULL;
    reason = NULL;
    if (status != STATUS_SUCCESS && size && error[0])
        return status;
    if (status != STATUS_SUCCESS)
        return failed(status, it->index, error, size, "its provider refused the open");
    wrong = wrong_adapter(*out, version);
    if (!wrong)
        return STATUS_SUCCESS;
    if (*out)
        it->driver->close(it->context, *out);
    log_error("ndis: interface %u: %s", (unsigned)it->index, wrong);
    return failed(STATUS_UNSUCCESSFUL, it->index, error, size, wrong);
}

NTSTATUS ndis_registry_open(NET_IFINDEX index, NDK_VERSION version, const char *options,
                            NDK_ADAPTER **out, char *error, size_t size)
{
    NTSTATUS status = STATUS_SUCCESS;
    struct ndis_instance *it = open_begin(index, options && *options, &status, error, size);
    struct opened *opened;
    NDK_ADAPTER *adapter = NULL;

    if (!it)
        return status;
    opened = malloc(sizeof *opened);
    if (!opened)
        status = failed(STATUS_INSUFFICIENT_RESOURCES, index, error, size, "no memory for an open");
    else
        status = call_open(it, version, options, &adapter, error, size);
    if (status != STATUS_SUCCESS) {
        free(opened);
        open_end(it);
        return status;
    }
    opened->adapter = adapter;
    opened->instance = it;
    os_mutex_lock(&ndis_lock);
    opened->next = opens;
    opens = opened;
    os_mutex_unlock(&ndis_lock);
    *out = adapter;
    return STATUS_SUCCESS;
}

/* ---- close, tell ---- */

static struct ndis_instance *instance_of(const NDK_ADAPTER *adapter, bool take)
{
    struct ndis_instance *it = NULL;
    struct opened **at = &opens, *found;

    os_mutex_lock(&ndis_lock);
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
    os_mutex_unlock(&ndis_lock);
    return it;
}

void ndis_close_adapter(NDK_ADAPTER *adapter)
{
    struct ndis_instance *it = instance_of(adapter, true);

    if (!it) {
        nt_finding_of_call("ndis: an adapter is closed that is not open here, rule C2");
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
