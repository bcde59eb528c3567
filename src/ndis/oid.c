// SPDX-License-Identifier: MIT
/*
 * OID requests to miniports, and their answers. See registry.h.
 *
 * A request is on the stack of the thread that issues it, and in the list from before the handler
 * is called until the answer is taken, so that a completion finds it, also one that comes before
 * the handler has returned NDIS_STATUS_PENDING. Requests of the ordinary way are one at a time for
 * an instance, as NDIS has it; direct ones stand beside each other.
 *
 * Lock: the list's (leaf); no handler runs under it. The instance is held as a call meanwhile.
 */
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/red.h"
#include "ndis/registry_internal.h"
#include "nt/nt.h"

#define TELL_S 5 /* a request that pends so long is told of, and again each time as long */

struct issued {
    NDIS_OID_REQUEST request;
    struct issued *next;
    const struct ndis_instance *it;
    bool direct, answered;
    NDIS_STATUS status;
};

static os_mutex lock = OS_MUTEX_INITIALIZER;
static os_cond changed = OS_COND_INITIALIZER;
static struct issued *list;
static _Thread_local unsigned handlers; /* OID handlers that run in this thread */

bool ndis_in_oid_handler(void)
{
    return handlers > 0 && !RED("ndis-event-in-handler");
}

/* ---- the list ---- */

static bool is_busy(const struct ndis_instance *it)
{
    for (const struct issued *i = list; i; i = i->next)
        if (i->it == it && !i->direct)
            return true;
    return false;
}

static void enlist(struct issued *new)
{
    os_mutex_lock(&lock);
    while (!new->direct && is_busy(new->it) && !RED("ndis-oids-side-by-side"))
        os_cond_wait(&changed, &lock);
    new->next = list;
    list = new;
    os_mutex_unlock(&lock);
}

static void take_out(const struct issued *old)
{
    struct issued **at = &list;

    os_mutex_lock(&lock);
    while (*at != old)
        at = &(*at)->next;
    *at = old->next;
    os_cond_broadcast(&changed);
    os_mutex_unlock(&lock);
}

/* For the answer of one that pends. */
static NDIS_STATUS await(struct issued *mine)
{
    uint64_t since = os_mono_100ns(), tell = TELL_S * 10000000ull;
    struct os_deadline until = {OS_MONO, since + tell};
    NDIS_STATUS status;

    os_mutex_lock(&lock);
    while (!mine->answered && !RED("ndis-oid-pending-passed-on"))
        if (!os_cond_wait_deadline(&changed, &lock, &until) && os_deadline_passed(&until)) {
            log_error("ndis: interface %u: OID 0x%08x is pending since %llu s (need "
                      "NdisM%sOidRequestComplete)",
                      (unsigned)mine->it->index, (unsigned)mine->request.DATA.QUERY_INFORMATION.Oid,
                      (unsigned long long)((os_mono_100ns() - since) / 10000000ull),
                      mine->direct ? "Direct" : "");
            until.at_100ns += tell;
        }
    status = mine->answered ? mine->status : NDIS_STATUS_PENDING;
    os_mutex_unlock(&lock);
    return status;
}

static void complete(const char *call, NDIS_HANDLE instance, const NDIS_OID_REQUEST *request,
                     NDIS_STATUS status, bool direct)
{
    struct issued *found;
    bool good;

    os_mutex_lock(&lock);
    for (found = list; found && &found->request != request;)
        found = found->next;
    good = found && found->it == instance && found->direct == direct && !found->answered;
    if (good) {
        found->answered = true;
        found->status = status;
        os_cond_broadcast(&changed);
    }
    os_mutex_unlock(&lock);
    if (!good)
        nt_finding_of_call("%s: the request %p %s", call, (const void *)request,
                           !found                    ? "is not pending"
                           : found->it != instance   ? "is not this adapter's"
                           : found->direct != direct ? "came the other way"
                                                     : "is answered already");
}

VOID NdisMOidRequestComplete(NDIS_HANDLE instance, PNDIS_OID_REQUEST request, NDIS_STATUS status)
{
    complete("NdisMOidRequestComplete", instance, request, status, false);
}

VOID NdisMDirectOidRequestComplete(NDIS_HANDLE instance, PNDIS_OID_REQUEST request,
                                   NDIS_STATUS status)
{
    complete("NdisMDirectOidRequestComplete", instance, request, status, true);
}

/* ---- issuing ---- */

static NDIS_STATUS call_handler(struct issued *mine)
{
    const struct ndis_driver *driver = mine->it->driver;
    NDIS_OID oid = mine->request.DATA.QUERY_INFORMATION.Oid;
    NDIS_STATUS status;

    enlist(mine);
    handlers++;
    status = (mine->direct ? driver->direct_oid : driver->oid)(mine->it->context, &mine->request);
    handlers--;
    if (status == NDIS_STATUS_PENDING && oid == OID_NDK_SET_STATE)
        nt_finding("ndis: interface %u: OID_NDK_SET_STATE is left pending, rule 5",
                   (unsigned)mine->it->index);
    if (status == NDIS_STATUS_PENDING)
        status = await(mine);
    take_out(mine);
    return status;
}

/* What is told of an answer; a number of octets that cannot be is put right. */
static NTSTATUS answer(const struct issued *mine, NDIS_STATUS status, ULONG *bytes, char *error,
                       size_t size)
{
    const struct _QUERY *a = &mine->request.DATA.QUERY_INFORMATION; /* a set has the same form */
    unsigned index = (unsigned)mine->it->index, oid = (unsigned)a->Oid;
    bool room = status == NDIS_STATUS_BUFFER_TOO_SHORT || status == NDIS_STATUS_INVALID_LENGTH;

    *bytes = status == NDIS_STATUS_SUCCESS ? a->BytesWritten : room ? a->BytesNeeded : 0;
    if (status == NDIS_STATUS_SUCCESS && a->BytesWritten > a->InformationBufferLength) {
        log_error("ndis: interface %u: OID 0x%08x: its provider counts %u octets (have %u)", index,
                  oid, a->BytesWritten, a->InformationBufferLength);
        *bytes = a->InformationBufferLength;
    }
    if (room)
        snprintf(error, size, "interface %u: OID 0x%08x: the buffer has %u octets (need %u)", index,
                 oid, a->InformationBufferLength, a->BytesNeeded);
    else if (status != NDIS_STATUS_SUCCESS)
        snprintf(error, size, "interface %u: OID 0x%08x: its provider answers 0x%08x%s", index, oid,
                 (unsigned)status,
                 oid == OID_NDK_SET_STATE && !mine->it->allowed ? ", *NetworkDirect is 0 (need 1)"
                                                                : "");
    return status;
}

NTSTATUS ndis_registry_oid(NET_IFINDEX index, NDIS_REQUEST_TYPE type, NDIS_OID oid, void *buffer,
                           ULONG length, ULONG *bytes, char *error, size_t size)
{
    struct ndis_instance *it = ndis_instance_enter(index);
    struct issued mine = {
        .request = {.Header = {NDIS_OBJECT_TYPE_OID_REQUEST, NDIS_OID_REQUEST_REVISION_2,
                               NDIS_SIZEOF_OID_REQUEST_REVISION_2},
                    .RequestType = type,
                    .DATA.QUERY_INFORMATION = {.Oid = oid,
                                               .InformationBuffer = buffer,
                                               .InformationBufferLength = length}},
        .it = it,
        .direct = oid == OID_NDK_STATISTICS,
    };
    NTSTATUS status;
    ULONG ignored;

    bytes = bytes ? bytes : &ignored;
    *bytes = 0;
    error[0] = '\0';
    if (!it) {
        snprintf(error, size, "interface %u: no NDK adapter has this index", (unsigned)index);
        return STATUS_NOT_SUPPORTED;
    }
    if (!(mine.direct ? it->driver->direct_oid : it->driver->oid)) {
        snprintf(error, size, "interface %u: its driver has no handler for OID 0x%08x",
                 (unsigned)index, (unsigned)oid);
        status = STATUS_NOT_SUPPORTED;
    } else {
        mine.request.RequestId = &mine;
        status = answer(&mine, call_handler(&mine), bytes, error, size);
    }
    ndis_instance_leave(it);
    return status;
}
