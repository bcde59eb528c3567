// SPDX-License-Identifier: MIT
/*
 * Fast-registered memory regions: initialization, and the three steps that a QP takes: prepare when
 * it is posted (checks, the next remote token), execute in posting order (fill, publish),
 * invalidate. The contract stands in mr.h.
 *
 * Invariant: while a request is prepared and not executed (fast_posted) the capacity stays.
 * Called by the consumer (initialize), by posts (prepare, discard), by transmit owners (execute)
 * and receive owners (invalidate). Lock: mr->lock.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/red.h"
#include "provider/adapter.h"
#include "provider/mr_internal.h"
#include "provider/pages.h"

static NTSTATUS initialize_fail(struct mr *mr, NTSTATUS status, const char *reason)
{
    return object_fail(&mr->object, CALL_INITIALIZE_FRMR, status, "%s, rule NDKPI 9.3", reason);
}

static NTSTATUS initialize_now(struct mr *mr, ULONG page_count, BOOLEAN remote_access)
{
    const uint32_t most = mr->object.adapter->options.frmr_pages;
    uint64_t *pages;
    uint64_t *old = NULL;
    bool active;

    if (!mr->fast)
        return initialize_fail(mr, STATUS_INVALID_DEVICE_REQUEST,
                               "wrong kind of region (have FastRegister FALSE, need TRUE)");
    if (page_count == 0)
        return initialize_fail(mr, STATUS_INVALID_PARAMETER,
                               "no pages (have AdapterPageCount 0, need >= 1)");
    if (page_count > most)
        return object_fail(&mr->object, CALL_INITIALIZE_FRMR, STATUS_IMPLEMENTATION_LIMIT,
                           "AdapterPageCount too large (have %u, need <= %u), rule NDKPI 9.3",
                           (unsigned)page_count, (unsigned)most);
    pages = hooks_alloc(page_count * sizeof *pages);
    if (!pages)
        return object_fail(&mr->object, CALL_INITIALIZE_FRMR, STATUS_INSUFFICIENT_RESOURCES,
                           "no page list (have no memory, need %u pages), rule NDKPI 9.3",
                           (unsigned)page_count);
    os_mutex_lock(&mr->lock);
    active = mr->fast_posted != 0 || mr->state == MR_REGISTERED || mr->state == MR_DEREGISTERING;
    if (!active) {
        old = mr->pages;
        mr->pages = pages;
        mr->page_capacity = page_count;
        mr->remote_access = remote_access != FALSE;
        mr->state = MR_READY;
    }
    os_mutex_unlock(&mr->lock);
    free(active ? pages : old);
    if (active)
        return initialize_fail(mr, STATUS_INVALID_DEVICE_REQUEST,
                               "in use (have a fast-register that is posted or valid, need none)");
    return STATUS_SUCCESS;
}

NTSTATUS mr_fast_initialize(NDK_MR *ndk, ULONG page_count, BOOLEAN remote_access,
                            NDK_FN_REQUEST_COMPLETION completion, PVOID context)
{
    struct mr *mr = mr_from(ndk);
    NTSTATUS status = object_injected(&mr->object, CALL_INITIALIZE_FRMR);

    if (status == STATUS_SUCCESS)
        status = initialize_now(mr, page_count, remote_access);
    return request_answer(&mr->object, CALL_INITIALIZE_FRMR, completion, context, status);
}

/* Everything about the memory that NdkFastRegister names, against a capacity. */
static NTSTATUS fast_check_memory(struct object *qp, ULONG pages, ULONG capacity,
                                  const NDK_LOGICAL_ADDRESS *array, ULONG fbo, uint64_t length,
                                  uint64_t base)
{
    const NTSTATUS bad = STATUS_INVALID_PARAMETER;
    uint64_t room = (uint64_t)pages * PAGE_SIZE;

    if (pages > capacity)
        return object_fail(qp, CALL_FAST_REGISTER, bad,
                           "AdapterPageCount too large (have %u, need <= %u, as initialized), "
                           "rule NDKPI 12.5",
                           (unsigned)pages, (unsigned)capacity);
    if (fbo >= PAGE_SIZE)
        return object_fail(qp, CALL_FAST_REGISTER, bad,
                           "FBO too large (have %u, need < 4096), rule NDKPI 12.5", (unsigned)fbo);
    room = room > fbo ? room - fbo : 0;
    if (length > room)
        return object_fail(qp, CALL_FAST_REGISTER, bad,
                           "Length too large (have %" PRIu64 ", need <= %" PRIu64
                           ", %u pages less FBO), rule NDKPI 12.5",
                           length, room, (unsigned)pages);
    if (base % PAGE_SIZE != fbo && !RED("mr-base-unchecked"))
        return object_fail(qp, CALL_FAST_REGISTER, bad,
                           "BaseVirtualAddress does not fit FBO (have 0x%" PRIx64
                           ", need FBO 0x%x plus whole pages), rule NDKPI 12.5",
                           base, (unsigned)fbo);
    if (length != 0 && length - 1 > UINT64_MAX - base)
        return object_fail(qp, CALL_FAST_REGISTER, bad,
                           "the region wraps (have base 0x%" PRIx64 " and Length %" PRIu64
                           ", need an end below 2^64), rule NDKPI 12.5",
                           base, length);
    for (ULONG i = 0; i < pages; i++) {
        if ((uint64_t)array[i].QuadPart % PAGE_SIZE != 0)
            return object_fail(qp, CALL_FAST_REGISTER, bad,
                               "AdapterPageArray[%u] not aligned (have 0x%" PRIx64
                               ", need a multiple of 4096), rule NDKPI 12.5",
                               (unsigned)i, (uint64_t)array[i].QuadPart);
    }
    return STATUS_SUCCESS;
}

/* The MR and the rights. On success the MR is claimed: its capacity stays until the request is
 * executed, discarded or unclaimed. */
static NTSTATUS fast_claim(struct object *qp, struct pd *pd, struct mr *mr, ULONG flags,
                           uint32_t remote_rights, ULONG *capacity)
{
    bool initialized, allowed;

    if (mr->pd != pd)
        return object_fail(qp, CALL_FAST_REGISTER, STATUS_INVALID_PARAMETER,
                           "mr #%u is of another domain (have pd #%u, need pd #%u), "
                           "rule NDKPI 12.5",
                           mr->object.id, mr->pd->object.id, pd->object.id);
    /* Remote write is two bits, the other of them local write. */
    if ((flags & NDK_OP_FLAG_ALLOW_REMOTE_WRITE) == 0x20)
        return object_fail(qp, CALL_FAST_REGISTER, STATUS_INVALID_PARAMETER,
                           "bad Flags (have 0x20 alone, need 0x30 for remote write), "
                           "rule NDKPI 2.1");
    os_mutex_lock(&mr->lock);
    initialized = mr->fast && mr->state != MR_IDLE;
    allowed = remote_rights == 0 || mr->remote_access || RED("mr-remote-access-unchecked");
    if (initialized && allowed) {
        mr->fast_posted++;
        *capacity = mr->page_capacity;
    }
    os_mutex_unlock(&mr->lock);
    if (!initialized)
        return object_fail(qp, CALL_FAST_REGISTER, STATUS_INVALID_DEVICE_STATE,
                           "mr #%u cannot be filled (have %s, need an initialized FRMR), "
                           "rule NDKPI 12.5",
                           mr->object.id, mr->fast ? "no initialization" : "FastRegister FALSE");
    if (!allowed)
        return object_fail(qp, CALL_FAST_REGISTER, STATUS_ACCESS_VIOLATION,
                           "remote rights on mr #%u (have RemoteAccess FALSE, need TRUE), "
                           "rule NDKPI 12.5",
                           mr->object.id);
    return STATUS_SUCCESS;
}

static void fast_unclaim(struct mr *mr)
{
    os_mutex_lock(&mr->lock);
    mr->fast_posted--;
    os_mutex_unlock(&mr->lock);
}

/* Claimed and checked: the request itself, with its pages. */
static NTSTATUS fast_build(struct object *qp, ULONG pages, const NDK_LOGICAL_ADDRESS *array,
                           bool writable, struct mr_fast **out)
{
    struct mr_fast *fast = hooks_alloc(sizeof *fast + pages * sizeof fast->pages[0]);
    uint64_t bad;

    if (!fast)
        return object_fail(qp, CALL_FAST_REGISTER, STATUS_INSUFFICIENT_RESOURCES,
                           "no page list (have no memory, need %u pages), rule NDKPI 12.5",
                           (unsigned)pages);
    for (ULONG i = 0; i < pages; i++)
        fast->pages[i] =
            pages_from_logical(qp->adapter->options.scattered, (uint64_t)array[i].QuadPart);
    fast->page_count = pages;
    if (!pages_probe_once(mem_known(qp->adapter->tokens), fast->pages, pages, writable, &bad)) {
        free(fast);
        return object_fail(qp, CALL_FAST_REGISTER, STATUS_ACCESS_VIOLATION,
                           "adapter page 0x%" PRIx64 " is not there (have no mapping, or not that "
                           "right, need %s memory), rule NDKPI 12.5",
                           bad, writable ? "writable" : "readable");
    }
    *out = fast;
    return STATUS_SUCCESS;
}

NTSTATUS mr_fast_prepare(struct object *qp, struct pd *pd, NDK_MR *ndk, ULONG pages,
                         const NDK_LOGICAL_ADDRESS *array, ULONG fbo, SIZE_T length, PVOID base,
                         ULONG flags, struct mr_fast **out)
{
    struct mr *mr = mr_from(ndk);
    const bool write = (flags & NDK_OP_FLAG_ALLOW_LOCAL_WRITE) != 0;
    const uint32_t remote = mr_rights_remote((flags & NDK_OP_FLAG_ALLOW_REMOTE_READ) != 0,
                                             (flags & NDK_OP_FLAG_ALLOW_REMOTE_WRITE) ==
                                                 NDK_OP_FLAG_ALLOW_REMOTE_WRITE);
    struct mr_fast *fast = NULL;
    ULONG capacity = 0;
    NTSTATUS status = fast_claim(qp, pd, mr, flags, remote, &capacity);

    if (status != STATUS_SUCCESS)
        return status;
    status = fast_check_memory(qp, pages, capacity, array, fbo, length, (uintptr_t)base);
    if (status == STATUS_SUCCESS)
        status = fast_build(qp, pages, array, write, &fast);
    if (status != STATUS_SUCCESS) {
        fast_unclaim(mr);
        return status;
    }
    fast->mr = mr;
    fast->local_rights =
        mr_rights_local(mr->object.adapter, write, (flags & NDK_OP_FLAG_RDMA_READ_SINK) != 0);
    fast->remote_rights = remote;
    fast->fbo = fbo;
    fast->address = (uintptr_t)base;
    fast->length = length;
    object_ref(&mr->object);
    os_mutex_lock(&mr->lock);
    if (RED("mr-fast-token-kept")) /* the key before, so that the next one is the same again */
        mr->remote_tokens.last =
            (mr->remote_tokens.last & ~0xffu) | (mr->remote_tokens.last - 1) % 256;
    fast->remote_token = mem_tokens_next(&mr->remote_tokens, &fast->token_before);
    os_mutex_unlock(&mr->lock);
    *out = fast;
    return STATUS_SUCCESS;
}

NTSTATUS mr_fast_execute(struct mr_fast *fast)
{
    struct mr *mr = fast->mr;
    struct mem_region shape = {
        .address = fast->address,
        .length = fast->length,
        .fbo = fast->fbo,
        .page_count = fast->page_count,
    };
    NTSTATUS status = STATUS_INVALID_DEVICE_REQUEST;

    os_mutex_lock(&mr->lock);
    mr->fast_posted--;
    if (mr->state == MR_READY && !mr->closing) {
        assert(fast->page_count <= mr->page_capacity);
        memcpy(mr->pages, fast->pages, fast->page_count * sizeof fast->pages[0]);
        mr_publish(mr, &shape, mr->local_token, fast->local_rights, fast->remote_token,
                   fast->remote_rights);
        status = STATUS_SUCCESS;
    }
    mem_tokens_over(&mr->remote_tokens, mr->remote, fast->remote_token, fast->token_before);
    os_mutex_unlock(&mr->lock);
    free(fast);
    object_unref(&mr->object);
    return status;
}

void mr_fast_discard(struct mr_fast *fast)
{
    struct mr *mr = fast->mr;

    os_mutex_lock(&mr->lock);
    mr->fast_posted--;
    mem_tokens_over(&mr->remote_tokens, mr->remote, fast->remote_token, fast->token_before);
    os_mutex_unlock(&mr->lock);
    free(fast);
    object_unref(&mr->object);
}

NTSTATUS mr_invalidate(struct object *object, const void *qp, uint32_t token,
                       void (*done)(void *context), void *context)
{
    struct mr *mr = CONTAINING_RECORD(object, struct mr, object);
    NTSTATUS status = STATUS_INVALID_DEVICE_REQUEST;

    (void)qp;
    object_ref(object); /* until drained() has called done */
    os_mutex_lock(&mr->lock);
    if (mr->fast && mr->state == MR_REGISTERED &&
        (token == 0 || token == mem_token(mr->remote) || token == mr->local_token ||
         RED("mr-invalidates-what-came-after"))) {
        if (mr_retire(mr)) {
            status = STATUS_SUCCESS;
        } else {
            status = STATUS_PENDING;
            mr->invalidated = done;
            mr->invalidated_context = context;
        }
    }
    os_mutex_unlock(&mr->lock);
    if (status != STATUS_PENDING)
        object_unref(object);
    return status;
}
