// SPDX-License-Identifier: MIT
/* See srq.h. Called by consumers and by the receive owners of connections. */
#include "provider/srq.h"

#include <assert.h>
#include <ntstatus.h>

#include "base/log.h"
#include "base/red.h"
#include "base/usdt.h"
#include "provider/adapter.h"
#include "provider/sges.h"

/* What a critical section leaves to be done behind it. */
struct chores {
    struct conn *wake; /* referenced */
    bool note;         /* the notification is to be deferred; it holds a reference */
};

static void chores_do(struct srq *srq, const struct chores *chores)
{
    if (chores->wake) {
        conn_resume(chores->wake);
        conn_unref(chores->wake);
    }
    if (chores->note)
        object_defer(&srq->object, callback_shard(srq->object.home), &srq->note_item);
}

static uint32_t srq_queued(struct srq *srq)
{
    return conn_queue_outstanding(&srq->queue);
}

/* ---- notification --------------------------------------------------------------------------- */

/* Lock held. */
static void srq_fire(struct srq *srq, struct chores *chores)
{
    if (!RED("srq-arm-stays"))
        srq->armed = false;
    if (srq->running && !RED("srq-notifications-overlap")) {
        srq->due = true;
        return;
    }
    srq->running = true;
    object_ref(&srq->object);
    chores->note = true;
}

static void srq_note(struct engine_item *item)
{
    struct srq *srq = CONTAINING_RECORD(item, struct srq, note_item);
    KIRQL irql = callback_enter();
    bool again;

    if (RED("srq-reference-falls-before-return"))
        object_unref(&srq->object);
    srq->notification(srq->notification_context, STATUS_SUCCESS);
    callback_leave(irql);
    os_mutex_lock(&srq->lock);
    again = srq->due;
    srq->due = false;
    srq->running = again;
    os_mutex_unlock(&srq->lock);
    if (again)
        engine_defer(callback_shard(srq->object.home), &srq->note_item);
    else if (!RED("srq-reference-falls-before-return"))
        object_unref(&srq->object);
}

/* ---- who waits; lock held ------------------------------------------------------------------- */

static void waiter_append(struct srq *srq, struct srq_waiter *waiter, struct conn *conn)
{
    waiter->state = SRQ_WAITING;
    waiter->conn = conn;
    waiter->next = NULL;
    waiter->previous = srq->last;
    if (srq->last)
        srq->last->next = waiter;
    else
        srq->first = waiter;
    srq->last = waiter;
}

static void waiter_unlink(struct srq *srq, struct srq_waiter *waiter)
{
    if (waiter->previous)
        waiter->previous->next = waiter->next;
    else
        srq->first = waiter->next;
    if (waiter->next)
        waiter->next->previous = waiter->previous;
    else
        srq->last = waiter->previous;
    waiter->state = SRQ_ELSEWHERE;
}

/* One receive more than were granted is queued: it is the first waiter's. */
static void waiter_grant(struct srq *srq, struct chores *chores)
{
    struct srq_waiter *waiter = RED("srq-last-waiter-first") ? srq->last : srq->first;

    if (!waiter)
        return;
    waiter_unlink(srq, waiter);
    waiter->state = SRQ_GRANTED;
    srq->granted++;
    if (RED("srq-wake-lost"))
        return;
    conn_ref(waiter->conn);
    chores->wake = waiter->conn;
    for (waiter = srq->first; waiter && RED("srq-wakes-all"); waiter = waiter->next)
        conn_resume(waiter->conn);
}

/* ---- the receive owners --------------------------------------------------------------------- */

/* Lock held. Moves the oldest receive. */
static void take_oldest(struct srq *srq, struct conn_queue *into, struct chores *chores)
{
    struct conn_wr *from = conn_queue_peek(&srq->queue);
    NTSTATUS status = STATUS_SUCCESS;
    struct conn_wr *wr = conn_queue_prepare(into, &status);

    assert(from && wr); /* its chunks were made with the QP */
    wr->context = from->context;
    wr->op = CONN_OP_RECEIVE;
    sges_copy(wr, (const NDK_SGE *)(const void *)from->sge, from->sge_count);
    conn_queue_push(into);
    conn_queue_advance(&srq->queue);
    conn_queue_release_head(&srq->queue);
    if (srq->armed && (srq_queued(srq) + 1 == srq->threshold || RED("srq-notifies-below")))
        srq_fire(srq, chores);
}

bool srq_take(struct srq *srq, struct srq_waiter *waiter, struct conn *conn,
              struct conn_queue *into, bool wait)
{
    struct chores chores = {0};
    bool taken;

    os_mutex_lock(&srq->lock);
    taken = waiter->state == SRQ_GRANTED || srq_queued(srq) > srq->granted ||
            (srq_queued(srq) && RED("srq-grant-stolen"));
    if (taken) {
        take_oldest(srq, into, &chores);
        if (waiter->state == SRQ_GRANTED) {
            waiter->state = SRQ_ELSEWHERE;
            srq->granted--;
        }
    } else if (wait && waiter->state == SRQ_ELSEWHERE) {
        waiter_append(srq, waiter, conn);
    } else if (!wait && waiter->state == SRQ_WAITING && !RED("srq-gives-up-in-list")) {
        waiter_unlink(srq, waiter);
    }
    os_mutex_unlock(&srq->lock);
    chores_do(srq, &chores);
    return taken;
}

void srq_leave(struct srq *srq, struct srq_waiter *waiter)
{
    struct chores chores = {0};

    os_mutex_lock(&srq->lock);
    if (waiter->state == SRQ_WAITING) {
        waiter_unlink(srq, waiter);
    } else if (waiter->state == SRQ_GRANTED) {
        waiter->state = SRQ_ELSEWHERE;
        srq->granted--;
        if (!RED("srq-grant-not-passed-on"))
            waiter_grant(srq, &chores);
    }
    os_mutex_unlock(&srq->lock);
    chores_do(srq, &chores);
}

/* ---- the consumer's calls ------------------------------------------------------------------- */

static NTSTATUS srq_receive(NDK_SRQ *ndk, PVOID context, CONST NDK_SGE *sgl, ULONG sges)
{
    struct srq *srq = srq_from(ndk);
    struct object *object = &srq->object;
    NTSTATUS status = object_injected(object, CALL_SRQ_RECEIVE);
    struct chores chores = {0};
    struct conn_wr *wr;
    uint32_t depth;

    if (status == STATUS_SUCCESS)
        status = sges_check(object, srq->pd, CALL_SRQ_RECEIVE, sgl, sges, srq->max_sge);
    if (status != STATUS_SUCCESS)
        return status;
    os_mutex_lock(&srq->lock);
    depth = srq->queue.depth;
    wr = conn_queue_prepare(&srq->queue, &status);
    if (wr) {
        wr->context = context;
        wr->op = CONN_OP_RECEIVE;
        sges_copy(wr, sgl, sges);
        USDT(post_srq, object->id, context, wr->length);
        conn_queue_push(&srq->queue);
        waiter_grant(srq, &chores);
    }
    os_mutex_unlock(&srq->lock);
    if (!wr)
        return object_fail(object, CALL_SRQ_RECEIVE, status,
                           status == STATUS_NO_MORE_ENTRIES
                               ? "the shared receive queue is full (depth %u), rule NDKPI 11.2"
                               : "no memory for the shared receive queue (depth %u)",
                           depth);
    chores_do(srq, &chores);
    return STATUS_SUCCESS;
}

/* Changes both or nothing. */
static NTSTATUS srq_change(struct srq *srq, ULONG depth, ULONG threshold)
{
    struct chores chores = {0};
    uint32_t queued;
    bool fits;

    os_mutex_lock(&srq->lock);
    queued = srq_queued(srq);
    fits = depth == 0 || depth >= queued || RED("srq-shrinks-below");
    if (fits && depth)
        srq->queue.depth = depth;
    if (fits && (threshold || RED("srq-zero-arms"))) {
        if (threshold)
            srq->threshold = threshold;
        srq->armed = srq->notification != NULL;
        if (srq->armed && queued < srq->threshold && !RED("srq-modify-does-not-look"))
            srq_fire(srq, &chores);
    }
    os_mutex_unlock(&srq->lock);
    if (!fits)
        return object_fail(&srq->object, CALL_MODIFY_SRQ, STATUS_INVALID_PARAMETER,
                           "SrqDepth (have %u, need >= %u, the receives queued), rule NDKPI 11.1",
                           depth, queued);
    chores_do(srq, &chores);
    return STATUS_SUCCESS;
}

static NTSTATUS srq_modify(NDK_SRQ *ndk, ULONG depth, ULONG threshold,
                           NDK_FN_REQUEST_COMPLETION completion, PVOID context)
{
    struct srq *srq = srq_from(ndk);
    struct object *object = &srq->object;
    ULONG most = object->adapter->options.max_srq_depth;
    NTSTATUS status = object_injected(object, CALL_MODIFY_SRQ);

    if (status == STATUS_SUCCESS && depth > most)
        status =
            object_fail(object, CALL_MODIFY_SRQ, STATUS_INVALID_PARAMETER,
                        "SrqDepth (have %u, need <= MaxSrqDepth %u), rule NDKPI 11.1", depth, most);
    if (status == STATUS_SUCCESS)
        status = srq_change(srq, depth, threshold);
    return request_answer(object, CALL_MODIFY_SRQ, completion, context, status);
}

const NDK_SRQ_DISPATCH srq_dispatch = {
    .NdkCloseSrq = object_close,
    .NdkQueryExtension = object_query_extension,
    .NdkModifySrq = srq_modify,
    .NdkSrqReceive = srq_receive,
};

/* ---- birth and end -------------------------------------------------------------------------- */

/* No queue pair is left: what is still queued is dropped, there is no CQ to complete it to. */
static void srq_release(struct object *object)
{
    struct srq *srq = CONTAINING_RECORD(object, struct srq, object);

    if (srq_queued(srq))
        log_info("srq #%u: closed with %u receives queued, dropped without completion", object->id,
                 srq_queued(srq));
    conn_queue_destroy(&srq->queue);
    os_mutex_destroy(&srq->lock);
}

static const struct object_class srq_class = {
    .type = NdkObjectTypeSrq,
    .name = "srq",
    .size = sizeof(struct srq),
    .release = srq_release,
};

/* The sizes of a new one against the adapter's limits. */
static NTSTATUS sizes_check(struct object *parent, ULONG depth, ULONG max_sge)
{
    const struct options *o = &parent->adapter->options;

    if (o->max_srq_depth == 0)
        return object_fail(parent, CALL_CREATE_SRQ, STATUS_INVALID_PARAMETER,
                           "SRQ not supported, MaxSrqDepth 0");
    if (depth == 0 || depth > o->max_srq_depth)
        return object_fail(parent, CALL_CREATE_SRQ, STATUS_INVALID_PARAMETER,
                           "SrqDepth (have %u, need 1..%u), rule NDKPI 8.3", depth,
                           o->max_srq_depth);
    if (max_sge > o->max_receive_sge)
        return object_fail(parent, CALL_CREATE_SRQ, STATUS_INVALID_PARAMETER,
                           "MaxReceiveRequestSge (have %u, need <= %u), rule NDKPI 8.3", max_sge,
                           o->max_receive_sge);
    return STATUS_SUCCESS;
}

NTSTATUS srq_create(NDK_PD *ndk, ULONG depth, ULONG max_sge, ULONG threshold,
                    NDK_FN_SRQ_NOTIFICATION_CALLBACK notification, PVOID notification_context,
                    GROUP_AFFINITY *affinity, NDK_FN_CREATE_COMPLETION completion, PVOID context,
                    NDK_SRQ **out)
{
    struct pd *pd = pd_from(ndk);
    struct object *parent = &pd->object;
    NTSTATUS status = object_injected(parent, CALL_CREATE_SRQ);
    struct object *object = NULL;

    (void)affinity; /* a preference; shards are not bound to processors */
    if (status == STATUS_SUCCESS)
        status = sizes_check(parent, depth, max_sge);
    if (status == STATUS_SUCCESS) {
        object = object_new(&srq_class, parent, &srq_dispatch);
        if (!object)
            status =
                object_fail(parent, CALL_CREATE_SRQ, STATUS_INSUFFICIENT_RESOURCES, "no memory");
    }
    if (object) {
        struct srq *srq = CONTAINING_RECORD(object, struct srq, object);

        object->home = engine_shard_next();
        srq->pd = pd;
        srq->notification = notification;
        srq->notification_context = notification_context;
        srq->max_sge = max_sge;
        srq->note_item.run = srq_note;
        srq->threshold = threshold;
        srq->armed = threshold != 0 && notification != NULL;
        os_mutex_init(&srq->lock);
        conn_queue_init(&srq->queue, depth, max_sge, 0);
    }
    return create_answer(parent, CALL_CREATE_SRQ, completion, context, status, object,
                         (void **)out);
}
