// SPDX-License-Identifier: MIT
/*
 * What may happen to a completion queue while it is used: another depth, moderation. One of either
 * at a time for each CQ, so that its depth is known; beside polls, arms and completions of any
 * number.
 *
 * A resize is legal if the smaller of both depths has room for what is outstanding: that depth
 * counts for new requests before the call and until its end. request_make() adds a request and
 * looks at the depth then, this lowers the depth and looks at the requests then, so one of them
 * sees the other. That no completion is lost is asked where none ever may be (work.c, account.c).
 */
#include "spin.h"

#define DEPTH_MOST 2000u

atomic_uint count_grown, count_shrunk;

static NDK_CQ *handle_of(const struct object *cq)
{
    return (NDK_CQ *)(void *)cq->header;
}

static void resized(struct call *call, NTSTATUS status)
{
    struct object *cq = call->object;

    if (status != STATUS_SUCCESS)
        spin_die("NdkResizeCq #%u to %u: %s", cq->number, call->depth, softndk_status_name(status));
    atomic_store(&cq->depth, call->depth);
    need(object_step(cq, BUSY, IDLE));
}

bool queue_resize(struct object *cq)
{
    unsigned before, after = 1 + draw(draw(3) ? 400 : DEPTH_MOST);
    struct call *call;

    if (!object_step(cq, IDLE, BUSY))
        return false;
    before = atomic_load(&cq->depth);
    if (after < before) {
        atomic_store(&cq->depth, after);
        if (atomic_load(&cq->outstanding) > after) {
            atomic_store(&cq->depth, before);
            need(object_step(cq, BUSY, IDLE));
            return false;
        }
    }
    atomic_fetch_add(after < before ? &count_shrunk : &count_grown, 1);
    call = call_begin("NdkResizeCq", cq, resized);
    call->depth = after;
    call_end(call, handle_of(cq)->Dispatch->NdkResizeCq(handle_of(cq), after, call_answered, call));
    return true;
}

static void moderate(struct object *cq, ULONG interval_us, ULONG count)
{
    NTSTATUS status;

    note("NdkControlCqInterruptModeration", cq, count);
    status =
        handle_of(cq)->Dispatch->NdkControlCqInterruptModeration(handle_of(cq), interval_us, count);
    if (status != (interval_us == MAXULONG && count > atomic_load(&cq->depth)
                       ? STATUS_INVALID_PARAMETER_MIX
                       : STATUS_SUCCESS))
        spin_die("moderation of cq #%u (%u us, %u of %u): %s", cq->number, (unsigned)interval_us,
                 (unsigned)count, atomic_load(&cq->depth), softndk_status_name(status));
}

/* A CQ that only its notifications poll may wait for a number of completions only until it gets
 * newer settings: what waits then must come. */
bool queue_moderate(struct object *cq)
{
    if (!object_step(cq, IDLE, BUSY))
        return false;
    if (draw(3) == 0)
        moderate(cq, MAXULONG, draw(8) ? draw(2 * atomic_load(&cq->depth)) : MAXULONG);
    if (cq->by_callback || draw(2))
        moderate(cq, draw(3) ? draw(3000) : 0, draw(3) ? draw(40) : MAXULONG);
    need(object_step(cq, BUSY, IDLE));
    return true;
}
