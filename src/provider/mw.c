// SPDX-License-Identifier: MIT
/*
 * Memory windows: the object, binding, and the end of a binding. The contract stands in mw.h.
 *
 * The end has one path, whoever asks for it (invalidate, close, the end of the connection):
 * mw_retire() under the lock takes the window off its QP's list; if accesses are in progress, the
 * last one to end runs drained(). Invariants: on a list <=> MW_BOUND <=> the slot is valid; one end
 * at a time (MW_ENDING); a window on a list has its handle reference, since a close takes it off
 * first; a QP goes only after its list is empty.
 *
 * Called by the consumer (create, close, token), by posts (prepare), by transmit owners (execute,
 * invalidate), by receive owners (invalidate), by the end of a connection, and by whatever thread
 * ends an access.
 */
#include "provider/mw.h"

#include <assert.h>
#include <inttypes.h>
#include <stdlib.h>

#include "base/red.h"
#include "provider/adapter.h"
#include "provider/pages.h"

#define ALLOW_READ  NDK_OP_FLAG_ALLOW_REMOTE_READ
#define ALLOW_WRITE NDK_OP_FLAG_ALLOW_REMOTE_WRITE /* two bits */

/* ---- the end of a binding ------------------------------------------------------------------- */

/* Lock held, no access in progress. The MR's reference is the caller's, to be dropped without the
 * lock. */
static struct mr *ended(struct mw *mw)
{
    struct mr *mr = mw->mr;

    mw->state = MW_UNBOUND;
    mw->mr = NULL;
    mr_window_end(mr);
    /* The MR's close may not complete before this close's completion has returned. */
    if (mw->closing && !RED("mw-mr-falls-before-return"))
        object_follow(&mw->object, &mr->object);
    return mr;
}

static void drained(void *context)
{
    struct mw *mw = context;
    void (*done)(void *);
    void *done_context;
    struct mr *mr;

    os_mutex_lock(&mw->lock);
    done = mw->invalidated;
    done_context = mw->invalidated_context;
    mw->invalidated = NULL;
    mr = ended(mw);
    os_mutex_unlock(&mw->lock);
    object_unref(&mr->object);
    if (done)
        done(done_context);
    object_unref(&mw->object);
}

/*
 * Lock held, MW_BOUND. The MR: the binding has ended, the caller drops its reference. NULL: the
 * last access ends it, on another thread, but not before the lock is released; it drops a reference
 * on the window that the caller leaves to it.
 */
static struct mr *mw_retire(struct mw *mw)
{
    struct mw_list *list = mw->over;

    os_mutex_lock(&list->lock);
    *mw->previous = mw->next;
    if (mw->next)
        mw->next->previous = mw->previous;
    os_mutex_unlock(&list->lock);
    mw->over = NULL;
    mw->state = MW_ENDING;
    if (!mem_retire(mw->slot, drained, mw) && !RED("mw-end-not-waiting"))
        return NULL;
    return ended(mw);
}

static NTSTATUS mw_invalidate(struct object *object, const void *qp, uint32_t token,
                              void (*done)(void *context), void *context)
{
    struct mw *mw = CONTAINING_RECORD(object, struct mw, object);
    NTSTATUS status = STATUS_INVALID_DEVICE_REQUEST;
    struct mr *mr = NULL;

    object_ref(object); /* until drained() has called done */
    os_mutex_lock(&mw->lock);
    if (mw->state == MW_BOUND && (mw->over->qp == qp || RED("mw-invalidated-over-any-qp")) &&
        (token == 0 || token == mem_token(mw->slot))) {
        mr = mw_retire(mw);
        status = mr ? STATUS_SUCCESS : STATUS_PENDING;
        if (!mr) {
            mw->invalidated = done;
            mw->invalidated_context = context;
        }
    }
    os_mutex_unlock(&mw->lock);
    if (mr)
        object_unref(&mr->object);
    if (status != STATUS_PENDING)
        object_unref(object);
    return status;
}

/* Ends what is bound, for a close (over NULL) or for the end of a QP's connection. */
static void mw_end(struct mw *mw, const struct mw_list *over)
{
    struct mr *mr = NULL;
    bool wait = false;

    object_ref(&mw->object); /* until the last access has ended */
    os_mutex_lock(&mw->lock);
    if (!over)
        mw->closing = true;
    if (mw->state == MW_BOUND && (!over || mw->over == over)) {
        mr = mw_retire(mw);
        wait = mr == NULL;
    }
    os_mutex_unlock(&mw->lock);
    if (mr)
        object_unref(&mr->object);
    if (!wait)
        object_unref(&mw->object);
}

/* ---- the windows of a QP -------------------------------------------------------------------- */

void mw_list_init(struct mw_list *list, const void *qp)
{
    list->qp = qp;
    list->first = NULL;
    os_mutex_init(&list->lock);
}

void mw_list_destroy(struct mw_list *list)
{
    assert(!list->first);
    os_mutex_destroy(&list->lock);
}

void mw_list_end(struct mw_list *list)
{
    if (RED("mw-outlives-its-connection"))
        return;
    for (;;) {
        struct mw *mw;

        /* Whoever ends a window takes it off under both locks: one that is found here still has its
         * handle reference, and has gone from here once mw_end() had its lock. */
        os_mutex_lock(&list->lock);
        mw = list->first;
        if (mw)
            object_ref(&mw->object);
        os_mutex_unlock(&list->lock);
        if (!mw)
            return;
        mw_end(mw, list);
        object_unref(&mw->object);
    }
}

/* ---- binding -------------------------------------------------------------------------------- */

static NTSTATUS bind_fail(struct object *qp, NTSTATUS status, const char *reason)
{
    return object_fail(qp, CALL_BIND, status, "%s, rule NDKPI 12.4", reason);
}

static NTSTATUS bind_check_objects(struct object *qp, const struct pd *pd, const NDK_MR *mr,
                                   const NDK_MW *mw)
{
    const NTSTATUS bad = STATUS_INVALID_PARAMETER;
    const struct pd *mr_pd, *mw_pd;

    if (!mr || mr->Header.ObjectType != NdkObjectTypeMr)
        return bind_fail(qp, bad,
                         mr ? "pMr is no MR (have another object, need a registered region)"
                            : "pMr missing (have NULL, need a registered region)");
    if (!mw || mw->Header.ObjectType != NdkObjectTypeMw)
        return bind_fail(qp, bad,
                         mw ? "pMw is no MW (have another object, need a window)"
                            : "pMw missing (have NULL, need a window)");
    mr_pd = ((const struct mr *)(const void *)mr)->pd;
    mw_pd = ((const struct mw *)(const void *)mw)->pd;
    if ((mr_pd != pd || mw_pd != pd) && !RED("mw-domain-unchecked"))
        return object_fail(qp, CALL_BIND, bad,
                           "the MR or the MW is of another domain (have pd #%u and pd #%u, need "
                           "pd #%u), rule NDKPI 12.4",
                           mr_pd->object.id, mw_pd->object.id, pd->object.id);
    return STATUS_SUCCESS;
}

/* The rights: *rights as enum access_need bits. */
static NTSTATUS bind_check_flags(struct object *qp, ULONG flags, uint32_t *rights)
{
    bool write = (flags & ALLOW_WRITE) == ALLOW_WRITE;

    if (RED("mw-remote-write-one-bit"))
        write = (flags & ALLOW_WRITE) != 0;
    else if ((flags & ALLOW_WRITE) != 0 && !write)
        return object_fail(qp, CALL_BIND, STATUS_INVALID_PARAMETER,
                           "bad Flags (have 0x%x alone, need 0x30 for remote write), rule NDKPI "
                           "2.1",
                           (unsigned)(flags & ALLOW_WRITE));
    *rights = (flags & ALLOW_READ ? ACCESS_REMOTE_READ : 0u) | (write ? ACCESS_REMOTE_WRITE : 0u);
    if (*rights == 0 && !RED("mw-allows-nothing"))
        return object_fail(qp, CALL_BIND, STATUS_INVALID_PARAMETER,
                           "the window allows nothing (have Flags 0x%x, need ALLOW_REMOTE_READ or "
                           "ALLOW_REMOTE_WRITE), rule NDKPI 12.4",
                           (unsigned)flags);
    return STATUS_SUCCESS;
}

/* Part of what is registered, and nothing that the registration does not allow this end. Reading is
 * always allowed; the MR's own remote rights are those of its own token. */
static NTSTATUS bind_check_part(struct object *qp, const struct mr *mr,
                                const struct mem_region *whole, uint64_t address, uint64_t length,
                                uint32_t rights)
{
    const uint64_t at = address - whole->address;
    const uint64_t most = whole->length + (RED("mw-end-off-by-one") ? 1 : 0);

    if (length == 0 && !RED("mw-empty-taken"))
        return bind_fail(qp, STATUS_INVALID_PARAMETER,
                         "an empty window (have Length 0, need >= 1; NdkInvalidate unbinds)");
    /* An address before the first is a huge offset. */
    if (at > most || length > most - at)
        return object_fail(qp, CALL_BIND, STATUS_INVALID_PARAMETER,
                           "the window is not inside the region (have %" PRIu64
                           " octets at 0x%" PRIx64 ", need a part of %" PRIu64 " at 0x%" PRIx64
                           "), rule NDKPI 12.4",
                           length, address, whole->length, whole->address);
    if ((rights & ACCESS_REMOTE_WRITE) && !(whole->rights & ACCESS_LOCAL_WRITE) &&
        !RED("mw-write-right-unchecked"))
        return object_fail(qp, CALL_BIND, STATUS_ACCESS_VIOLATION,
                           "remote write to mr #%u (have a registration without local write, need "
                           "NDK_MR_FLAG_ALLOW_LOCAL_WRITE), rule NDKPI 12.4",
                           mr->object.id);
    return STATUS_SUCCESS;
}

NTSTATUS mw_bind_prepare(struct object *qp, struct pd *pd, struct mw_list *over, NDK_MR *ndk_mr,
                         NDK_MW *ndk_mw, PVOID address, SIZE_T length, ULONG flags,
                         struct mw_bind **out)
{
    struct mr *mr = mr_from(ndk_mr);
    struct mw *mw = mw_from(ndk_mw);
    const struct mem_region *whole;
    struct mw_bind *bind = NULL;
    uint32_t rights = 0;
    NTSTATUS status = bind_check_objects(qp, pd, ndk_mr, ndk_mw);

    if (status == STATUS_SUCCESS)
        status = bind_check_flags(qp, flags, &rights);
    if (status != STATUS_SUCCESS)
        return status;
    whole = mr_window_begin(mr);
    if (!whole)
        return object_fail(qp, CALL_BIND, STATUS_INVALID_DEVICE_REQUEST,
                           "mr #%u cannot have a window (have %s, need a registered region), "
                           "rule NDKPI 12.4",
                           mr->object.id, mr->fast ? "FastRegister TRUE" : "no registration");
    status = bind_check_part(qp, mr, whole, (uintptr_t)address, length, rights);
    if (status == STATUS_SUCCESS) {
        bind = hooks_alloc(sizeof *bind);
        if (!bind)
            status = bind_fail(qp, STATUS_INSUFFICIENT_RESOURCES,
                               "no bind (have no memory, need a request)");
    }
    if (status != STATUS_SUCCESS) {
        if (!RED("mw-failed-bind-keeps-region"))
            mr_window_end(mr);
        return status;
    }
    *bind = (struct mw_bind){.mw = mw,
                             .mr = mr,
                             .over = over,
                             .whole = whole,
                             .rights = rights,
                             .address = (uintptr_t)address,
                             .length = length};
    object_ref(&mr->object);
    object_ref(&mw->object);
    os_mutex_lock(&mw->lock);
    bind->token = mem_tokens_next(&mw->tokens, &bind->token_before);
    os_mutex_unlock(&mw->lock);
    *out = bind;
    return STATUS_SUCCESS;
}

/* Lock held, MW_UNBOUND: from here on the peer is let in. */
static void bound(struct mw *mw, const struct mw_bind *bind)
{
    const struct mem_region *whole = bind->whole;
    const uint64_t at = whole->fbo + (bind->address - whole->address);
    struct mem_region region = {
        .address = bind->address,
        .length = bind->length,
        .rights = bind->rights,
        .invalidates = MEM_BY_PEER,
        .domain = mw->pd,
        .bound_to = bind->over->qp,
        .owner = &mw->object,
        .fbo = (uint32_t)(at % PAGE_SIZE),
        .pages = whole->pages + at / PAGE_SIZE,
    };
    struct mw_list *list = bind->over;

    region.page_count = (uint32_t)((region.fbo + bind->length + PAGE_SIZE - 1) / PAGE_SIZE);
    region.flat = whole->flat ? whole->flat + (bind->address - whole->address)
                              : pages_flat(region.pages, region.page_count, region.fbo);
    mem_refill(mw->slot, bind->token, &region);
    mw->mr = bind->mr; /* with its reference and its count */
    mw->state = MW_BOUND;
    mw->over = list;
    os_mutex_lock(&list->lock);
    mw->next = list->first;
    mw->previous = &list->first;
    if (mw->next)
        mw->next->previous = &mw->next;
    list->first = mw;
    os_mutex_unlock(&list->lock);
    mem_publish(mw->slot);
}

/* The bind is over, one way or the other. */
static bool bind_over(struct mw_bind *bind, bool execute)
{
    struct mw *mw = bind->mw;
    bool success = false;

    os_mutex_lock(&mw->lock);
    if (execute && (mw->state == MW_UNBOUND || RED("mw-bound-twice")) && !mw->closing &&
        (mr_window_allowed(bind->mr) || RED("mw-bound-to-closed"))) {
        bound(mw, bind);
        success = true;
    }
    mem_tokens_over(&mw->tokens, mw->slot, bind->token, bind->token_before);
    os_mutex_unlock(&mw->lock);
    if (!success) {
        mr_window_end(bind->mr);
        object_unref(&bind->mr->object);
    }
    free(bind);
    object_unref(&mw->object);
    return success;
}

NTSTATUS mw_bind_execute(struct mw_bind *bind)
{
    return bind_over(bind, true) ? STATUS_SUCCESS : STATUS_INVALID_DEVICE_REQUEST;
}

void mw_bind_discard(struct mw_bind *bind)
{
    bind_over(bind, false);
}

/* ---- the object ----------------------------------------------------------------------------- */

static void mw_cancel(struct object *object)
{
    mw_end(CONTAINING_RECORD(object, struct mw, object), NULL);
}

static void mw_release(struct object *object)
{
    struct mw *mw = CONTAINING_RECORD(object, struct mw, object);

    assert(mw->state == MW_UNBOUND && mw->tokens.posted == 0);
    if (mw->slot)
        mem_slot_free(object->adapter->tokens, mw->slot);
    os_mutex_destroy(&mw->lock);
}

static const struct object_class mw_class = {
    .type = NdkObjectTypeMw,
    .name = "mw",
    .size = sizeof(struct mw),
    .cancel = mw_cancel,
    .release = mw_release,
    .invalidate = mw_invalidate,
};

static struct mw *mw_new(struct pd *pd)
{
    static const struct mem_region nothing;
    struct object *object = object_new(&mw_class, &pd->object, &mw_dispatch);
    struct mw *mw;

    if (!object)
        return NULL;
    mw = CONTAINING_RECORD(object, struct mw, object);
    os_mutex_init(&mw->lock);
    mw->pd = pd;
    mw->slot = mem_slot_new(pd->object.adapter->tokens, &nothing);
    if (!mw->slot) {
        object_discard(object);
        return NULL;
    }
    mw->tokens.shown = mw->tokens.last = mem_token(mw->slot);
    return mw;
}

NTSTATUS mw_create(NDK_PD *ndk_pd, NDK_FN_CREATE_COMPLETION completion, PVOID context, NDK_MW **out)
{
    struct pd *pd = pd_from(ndk_pd);
    NTSTATUS status = object_injected(&pd->object, CALL_CREATE_MW);
    struct mw *mw = NULL;
    void *result = NULL;

    if (status == STATUS_SUCCESS) {
        mw = mw_new(pd);
        if (!mw)
            status = object_fail(&pd->object, CALL_CREATE_MW, STATUS_INSUFFICIENT_RESOURCES,
                                 "no new window (have no memory or token left, need a slot), "
                                 "rule NDKPI 8.2");
    }
    status = create_answer(&pd->object, CALL_CREATE_MW, completion, context, status,
                           mw ? &mw->object : NULL, &result);
    if (status == STATUS_SUCCESS)
        *out = result;
    return status;
}

static UINT32 mw_get_remote_token(NDK_MW *ndk)
{
    struct mw *mw = mw_from(ndk);
    UINT32 token;

    os_mutex_lock(&mw->lock);
    token = mw->tokens.shown;
    os_mutex_unlock(&mw->lock);
    return token;
}

const NDK_MW_DISPATCH mw_dispatch = {
    .NdkCloseMw = object_close,
    .NdkQueryExtension = object_query_extension,
    .NdkGetRemoteTokenFromMw = mw_get_remote_token,
};
