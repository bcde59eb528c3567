// SPDX-License-Identifier: MIT
/*
 * Memory regions: the object, registration, and what fast-registration (mr_fast.c) shares
 * with it. The contract stands in mr.h.
 *
 * The end of a registration has one path, whoever asks for it (deregister, invalidate, close):
 * mr_retire() under the lock; if accesses are in progress, the last one to end runs drained().
 * Invariants: pages of a registration are written and freed only while neither slot is valid or in
 * use; state REGISTERED <=> both slots valid; one end at a time (state DEREGISTERING).
 * Called by the consumer, by QPs (fast-register, invalidate), and by whatever thread ends an
 * access. Lock: mr->lock.
 */
#include "provider/mr.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/red.h"
#include "provider/adapter.h"
#include "provider/mr_internal.h"
#include "provider/pages.h"

/* ---- rights --------------------------------------------------------------------------------- */

static bool sink_waived(const struct adapter *adapter)
{
    return (adapter->info.AdapterFlags & NDK_ADAPTER_FLAG_RDMA_READ_SINK_NOT_REQUIRED) != 0;
}

uint32_t mr_rights_local(const struct adapter *adapter, bool write, bool sink)
{
    uint32_t rights = ACCESS_LOCAL_READ;

    if (write)
        rights |= ACCESS_LOCAL_WRITE;
    if (write && (sink || sink_waived(adapter)))
        rights |= ACCESS_READ_SINK;
    return rights;
}

uint32_t mr_rights_remote(bool read, bool write)
{
    return (read ? ACCESS_REMOTE_READ : 0u) | (write ? ACCESS_REMOTE_WRITE : 0u);
}

/* ---- the end of a registration -------------------------------------------------------------- */

/* Lock held, no access in progress. */
static void ended(struct mr *mr)
{
    mr->state = mr->fast ? MR_READY : MR_IDLE;
    /* Windows may still use the pages of an MR that is closed; they go with it. */
    if (!mr->fast && (!mr->closing || RED("mr-pages-freed-under-window"))) {
        free(mr->pages);
        mr->pages = NULL;
    }
}

static void drained(struct mr *mr)
{
    struct request *request;
    void (*done)(void *);
    void *context;

    os_mutex_lock(&mr->lock);
    request = mr->pending;
    done = mr->invalidated;
    context = mr->invalidated_context;
    mr->pending = NULL;
    mr->invalidated = NULL;
    ended(mr);
    os_mutex_unlock(&mr->lock);
    if (request) {
        request_complete(request, STATUS_SUCCESS); /* it holds the reference */
        return;
    }
    if (done)
        done(context);
    object_unref(&mr->object);
}

static void slot_drained(void *context)
{
    struct mr *mr = context;

    if (atomic_fetch_sub(&mr->draining, 1) == 1)
        drained(mr);
}

bool mr_retire(struct mr *mr)
{
    unsigned idle = 1; /* our own */

    mr->state = MR_DEREGISTERING;
    atomic_store(&mr->draining, 3);
    idle += mem_retire(mr->local, slot_drained, mr);
    idle += mem_retire(mr->remote, slot_drained, mr);
    if (atomic_fetch_sub(&mr->draining, idle) != idle && !RED("mr-deregister-not-waiting"))
        return false;
    ended(mr);
    return true;
}

/* ---- the object ----------------------------------------------------------------------------- */

static void mr_cancel(struct object *object)
{
    struct mr *mr = (struct mr *)object;
    bool wait = false;

    object_ref(object); /* until the last access has ended */
    os_mutex_lock(&mr->lock);
    mr->closing = true;
    if (mr->state == MR_REGISTERED)
        wait = !mr_retire(mr);
    os_mutex_unlock(&mr->lock);
    if (!wait)
        object_unref(object);
}

static void mr_release(struct object *object)
{
    struct mr *mr = (struct mr *)object;

    assert(mr->state != MR_REGISTERED && mr->state != MR_DEREGISTERING && mr->windows == 0);
    if (mr->local)
        mem_slot_free(object->adapter->tokens, mr->local);
    if (mr->remote)
        mem_slot_free(object->adapter->tokens, mr->remote);
    free(mr->pages);
    os_mutex_destroy(&mr->lock);
}

const struct object_class mr_class = {
    .type = NdkObjectTypeMr,
    .name = "mr",
    .size = sizeof(struct mr),
    .cancel = mr_cancel,
    .release = mr_release,
    .invalidate = mr_invalidate,
};

static struct mr *mr_new(struct pd *pd, bool fast)
{
    static const struct mem_region nothing;
    struct mr *mr = (struct mr *)object_new(&mr_class, &pd->object, &mr_dispatch);

    if (!mr)
        return NULL;
    os_mutex_init(&mr->lock);
    mr->pd = pd;
    mr->fast = fast;
    mr->local = mem_slot_new(pd->object.adapter->tokens, &nothing);
    mr->remote = mem_slot_new(pd->object.adapter->tokens, &nothing);
    if (!mr->local || !mr->remote) {
        object_discard(&mr->object);
        return NULL;
    }
    mr->local_token = mem_token(mr->local);
    mr->remote_tokens.shown = mr->remote_tokens.last = mem_token(mr->remote);
    return mr;
}

NTSTATUS mr_create(NDK_PD *ndk_pd, BOOLEAN fast_register, NDK_FN_CREATE_COMPLETION completion,
                   PVOID context, NDK_MR **out)
{
    struct pd *pd = pd_from(ndk_pd);
    NTSTATUS status = object_injected(&pd->object, CALL_CREATE_MR);
    struct mr *mr = NULL;
    void *result = NULL;

    if (status == STATUS_SUCCESS) {
        mr = mr_new(pd, fast_register != FALSE);
        if (!mr)
            status = object_fail(&pd->object, CALL_CREATE_MR, STATUS_INSUFFICIENT_RESOURCES,
                                 "no new region (have no memory or token left, need a slot pair), "
                                 "rule NDKPI 8.1");
    }
    status = create_answer(&pd->object, CALL_CREATE_MR, completion, context, status,
                           mr ? &mr->object : NULL, &result);
    if (status == STATUS_SUCCESS)
        *out = result;
    return status;
}

/* ---- registered MRs ------------------------------------------------------------------------- */

void mr_publish(struct mr *mr, const struct mem_region *shape, uint32_t local_token,
                uint32_t local_rights, uint32_t remote_token, uint32_t remote_rights)
{
    struct mem_region region = *shape;

    region.domain = mr->pd;
    region.owner = &mr->object;
    region.pages = mr->pages;
    region.flat = pages_flat(mr->pages, region.page_count, region.fbo);
    region.rights = local_rights;
    region.invalidates = mr->fast ? MEM_BY_READ : 0;
    mem_refill(mr->local, local_token, &region);
    region.rights = remote_rights;
    /* Without a right the peer has no business with it. */
    region.invalidates = mr->fast && remote_rights != 0 ? MEM_BY_PEER : 0;
    mem_refill(mr->remote, remote_token, &region);
    mr->state = MR_REGISTERED;
    mem_publish(mr->local);
    mem_publish(mr->remote);
}

static NTSTATUS register_fail(struct mr *mr, NTSTATUS status, const char *reason)
{
    return object_fail(&mr->object, CALL_REGISTER_MR, status, "%s, rule NDKPI 9.1", reason);
}

static NTSTATUS register_check(struct mr *mr, const MDL *mdl, SIZE_T length, ULONG flags,
                               struct pages_extent *extent)
{
    const SIZE_T most = mr->object.adapter->info.MaxRegistrationSize;
    char reason[PAGES_REASON_MAX];

    if (mr->fast)
        return register_fail(mr, STATUS_INVALID_DEVICE_REQUEST,
                             "wrong kind of region (have FastRegister TRUE, need FALSE)");
    /* Remote write is two bits, the second of them local write. */
    if ((flags & ~(RED("mr-sink-flag-refused") ? 0x7u : 0xfu)) != 0 || (flags & 0x5u) == 0x4u)
        return object_fail(&mr->object, CALL_REGISTER_MR, STATUS_INVALID_PARAMETER,
                           "bad Flags (have 0x%x, need an OR of 0x1, 0x2, 0x5 and 0x8), "
                           "rule NDKPI 2.2",
                           (unsigned)flags);
    if (length > most)
        return object_fail(&mr->object, CALL_REGISTER_MR, STATUS_INVALID_PARAMETER,
                           "Length too large (have %zu, need <= %zu, MaxRegistrationSize), "
                           "rule NDKPI 9.1",
                           (size_t)length, (size_t)most);
    if (!pages_measure(mdl, length, extent, reason))
        return register_fail(mr, STATUS_INVALID_PARAMETER, reason);
    return STATUS_SUCCESS;
}

static NTSTATUS register_now(struct mr *mr, const MDL *mdl, SIZE_T length, ULONG flags)
{
    const bool write = (flags & NDK_MR_FLAG_ALLOW_LOCAL_WRITE) != 0;
    bool remote_write = (flags & NDK_MR_FLAG_ALLOW_REMOTE_WRITE) == NDK_MR_FLAG_ALLOW_REMOTE_WRITE;
    struct mem_region shape = {0};
    struct pages_extent extent;
    enum mr_state state;
    uint64_t *pages;
    uint64_t bad;
    NTSTATUS status = register_check(mr, mdl, length, flags, &extent);

    if (status != STATUS_SUCCESS)
        return status;
    if (RED("mr-remote-write-one-bit"))
        remote_write = (flags & NDK_MR_FLAG_ALLOW_REMOTE_WRITE) != 0;
    pages = hooks_alloc((extent.count + (size_t)!extent.count) * sizeof *pages);
    if (!pages)
        return object_fail(&mr->object, CALL_REGISTER_MR, STATUS_INSUFFICIENT_RESOURCES,
                           "no page list (have no memory, need %u pages), rule NDKPI 9.1",
                           (unsigned)extent.count);
    pages_fill(mdl, &extent, pages);
    if (!pages_probe(pages, extent.count, write, &bad)) {
        free(pages);
        return object_fail(&mr->object, CALL_REGISTER_MR, STATUS_ACCESS_VIOLATION,
                           "page 0x%" PRIx64 " is not there (have no mapping, or not that right, "
                           "need %s memory), rule NDKPI 9.1",
                           bad, write ? "writable" : "readable");
    }
    shape.address = extent.address;
    shape.length = length;
    shape.fbo = extent.fbo;
    shape.page_count = extent.count;
    os_mutex_lock(&mr->lock);
    state = mr->state;
    if (state == MR_IDLE && !mr->closing) {
        mr->pages = pages;
        mr->local_token = mem_next_token(mr->local);
        mr->remote_tokens.shown = mem_next_token(mr->remote);
        mr_publish(
            mr, &shape, mr->local_token,
            mr_rights_local(mr->object.adapter, write, (flags & NDK_MR_FLAG_RDMA_READ_SINK) != 0),
            mr->remote_tokens.shown,
            mr_rights_remote((flags & NDK_MR_FLAG_ALLOW_REMOTE_READ) != 0, remote_write));
        pages = NULL;
    }
    os_mutex_unlock(&mr->lock);
    if (!pages)
        return STATUS_SUCCESS;
    free(pages);
    return register_fail(mr, STATUS_INVALID_DEVICE_REQUEST,
                         state == MR_DEREGISTERING
                             ? "still registered (have a pending deregistration, need its end)"
                             : "already registered (have a registration, need none)");
}

static NTSTATUS mr_register(NDK_MR *ndk, MDL *mdl, SIZE_T length, ULONG flags,
                            NDK_FN_REQUEST_COMPLETION completion, PVOID context)
{
    struct mr *mr = mr_from(ndk);
    NTSTATUS status = object_injected(&mr->object, CALL_REGISTER_MR);

    if (status == STATUS_SUCCESS)
        status = register_now(mr, mdl, length, flags);
    return request_answer(&mr->object, CALL_REGISTER_MR, completion, context, status);
}

static NTSTATUS deregister_fail(struct mr *mr, NTSTATUS status, const char *reason)
{
    return object_fail(&mr->object, CALL_DEREGISTER_MR, status, "%s, rule NDKPI 9.2", reason);
}

/* SUCCESS: ended. PENDING: request completes when the last access has ended. */
static NTSTATUS deregister_now(struct mr *mr, struct request *request)
{
    NTSTATUS status = STATUS_PENDING;
    unsigned windows;
    bool registered;

    if (mr->fast)
        return deregister_fail(mr, STATUS_INVALID_DEVICE_REQUEST,
                               "wrong kind of region (have FastRegister TRUE, need FALSE)");
    os_mutex_lock(&mr->lock);
    registered = mr->state == MR_REGISTERED;
    windows = RED("mr-deregistered-under-window") ? 0 : mr->windows;
    if (registered && windows == 0) {
        if (mr_retire(mr))
            status = STATUS_SUCCESS;
        else
            mr->pending = request;
    }
    os_mutex_unlock(&mr->lock);
    if (!registered)
        return deregister_fail(mr, STATUS_INVALID_DEVICE_REQUEST,
                               "not registered (have no registration, need one)");
    if (windows)
        return object_fail(&mr->object, CALL_DEREGISTER_MR, STATUS_DEVICE_BUSY,
                           "windows are bound to it, or about to be (have %u, need 0), "
                           "rule NDKPI 9.2",
                           windows);
    return status;
}

static NTSTATUS mr_deregister(NDK_MR *ndk, NDK_FN_REQUEST_COMPLETION completion, PVOID context)
{
    struct mr *mr = mr_from(ndk);
    NTSTATUS status = object_injected(&mr->object, CALL_DEREGISTER_MR);
    struct request *request;

    if (status == STATUS_SUCCESS) {
        /* Beforehand: the end may come on another thread at once. */
        request = request_new(&mr->object, CALL_DEREGISTER_MR, completion, context);
        status = request ? deregister_now(mr, request)
                         : deregister_fail(mr, STATUS_INSUFFICIENT_RESOURCES,
                                           "no request (have no memory, need one)");
        if (status == STATUS_PENDING)
            return status;
        if (request)
            request_drop(request);
    }
    return request_answer(&mr->object, CALL_DEREGISTER_MR, completion, context, status);
}

/* ---- windows -------------------------------------------------------------------------------- */

const struct mem_region *mr_window_begin(struct mr *mr)
{
    const struct mem_region *whole = NULL;

    os_mutex_lock(&mr->lock);
    if (!mr->fast && mr->state == MR_REGISTERED && !mr->closing) {
        mr->windows++;
        /* Nothing refills the slot while a window is counted. */
        whole = mem_region_of(mr->local);
    }
    os_mutex_unlock(&mr->lock);
    return whole;
}

bool mr_window_allowed(struct mr *mr)
{
    bool allowed;

    os_mutex_lock(&mr->lock);
    allowed = !mr->closing;
    os_mutex_unlock(&mr->lock);
    return allowed;
}

void mr_window_end(struct mr *mr)
{
    os_mutex_lock(&mr->lock);
    assert(mr->windows != 0);
    mr->windows--;
    os_mutex_unlock(&mr->lock);
}

/* ---- tokens --------------------------------------------------------------------------------- */

static UINT32 mr_get_token(struct mr *mr, const uint32_t *token)
{
    UINT32 value;

    os_mutex_lock(&mr->lock);
    value = *token;
    os_mutex_unlock(&mr->lock);
    return value;
}

static UINT32 mr_get_remote_token(NDK_MR *ndk)
{
    return mr_get_token(mr_from(ndk), &mr_from(ndk)->remote_tokens.shown);
}

static UINT32 mr_get_local_token(NDK_MR *ndk)
{
    return mr_get_token(mr_from(ndk), &mr_from(ndk)->local_token);
}

const NDK_MR_DISPATCH mr_dispatch = {
    .NdkCloseMr = object_close,
    .NdkQueryExtension = object_query_extension,
    .NdkRegisterMr = mr_register,
    .NdkDeregisterMr = mr_deregister,
    .NdkInitializeFastRegisterMr = mr_fast_initialize,
    .NdkGetRemoteTokenFromMr = mr_get_remote_token,
    .NdkGetLocalTokenFromMr = mr_get_local_token,
};
