// SPDX-License-Identifier: MIT
/*
 * Completions. Each queue's requests stand in a list in the order of their posts; a completion
 * takes its request from the head, past silent ones only. What came is compared with what was sent
 * (message.h).
 */
#include <stdlib.h>
#include <string.h>

#include "message.h"

static NDK_CQ *cq_of(const struct object *cq)
{
    return (NDK_CQ *)(void *)cq->header;
}

/* ---- queues --------------------------------------------------------------------------------- */

static void arm(struct object *cq, ULONG type)
{
    atomic_fetch_add(&cq->arms, 1);
    cq_of(cq)->Dispatch->NdkArmCq(cq_of(cq), type);
}

void queue_attach(struct queue_of *queue, struct object *owner, struct object *cq)
{
    queue->owner = owner;
    queue->cq = cq;
    pthread_mutex_init(&queue->turn, NULL);
    pthread_mutex_init(&queue->lock, NULL);
    TAILQ_INIT(&queue->list);
    pthread_mutex_lock(&cq->lock);
    queue->next = cq->attached;
    cq->attached = queue;
    pthread_mutex_unlock(&cq->lock);
    pthread_mutex_lock(&cq->turn);
    arm(cq, NDK_CQ_NOTIFY_ANY);
    pthread_mutex_unlock(&cq->turn);
}

/* Its place in the CQ and its slices. */
void request_release(struct request *r)
{
    if (r->queue)
        atomic_fetch_sub(&r->queue->cq->outstanding, 1);
    if (r->slices)
        atomic_fetch_and(&r->mr->claimed, ~r->slices);
    if (r->remote_slices)
        atomic_fetch_and(&r->remote_mr->claimed, ~r->remote_slices);
    if (r->buffer)
        buffer_put(r->buffer);
    r->slices = r->remote_slices = 0;
    r->buffer = NULL;
}

/* ---- completions ---------------------------------------------------------------------------- */

/* A success vouches for the silent ones before it. */
static void take(struct queue_of *q, struct request *r, bool success)
{
    TAILQ_HEAD(, request) passed = TAILQ_HEAD_INITIALIZER(passed);
    struct request *head;

    pthread_mutex_lock(&q->lock);
    while (q->owner->kind != SRQ && (head = TAILQ_FIRST(&q->list)) != r) {
        if (!head)
            spin_die("a request of %s #%u completed that is not posted",
                     q->owner->kind == QP ? "qp" : "srq", q->owner->number);
        if (!head->silent)
            spin_die("a request of qp #%u completed before its turn", q->owner->number);
        if (success && head->number)
            atomic_store(&head->at->succeeded[head->end][head->number], 1);
        TAILQ_REMOVE(&q->list, head, link);
        request_release(head);
        if (head->window)
            TAILQ_INSERT_TAIL(&passed, head, link);
    }
    TAILQ_REMOVE(&q->list, r, link);
    pthread_mutex_unlock(&q->lock);
    TAILQ_FOREACH(head, &passed, link)
    window_passed(head);
}

static void check_message(struct object *qp, const uint8_t *data, unsigned length)
{
    struct link *link = qp->at;
    unsigned from = !qp->end;
    struct head head;

    need(link != NULL);
    if (length < sizeof head) {
        need(check(data, length, link->seed));
        return;
    }
    memcpy(&head, data, sizeof head);
    need(head.magic == MESSAGE_MAGIC);
    need(head.link == link->number && head.end == from);
    need(head.length == length);
    need(check(data + sizeof head, length - sizeof head, head.seed));
    need(head.number < MESSAGES && head.number > atomic_load(&link->last[from]));
    atomic_store(&link->last[from], head.number);
    atomic_store(&link->arrived[from][head.number], 1);
    atomic_fetch_add(&count_checked, 1);
}

/* The peer's Send has invalidated a region or a window here. */
static void taken_away(struct world *world, UINT32 token)
{
    pthread_mutex_lock(&world->lock);
    for (unsigned i = 0; i < POOL; i++) {
        struct object *mr = world->live[MR][i];

        if (!mr || object_state(mr) == CREATING || !mr->fast)
            continue;
        pthread_mutex_lock(&mr->lock);
        if (mr->step == BUSY && mr->remote == token)
            mr->step = DECIDE;
        pthread_mutex_unlock(&mr->lock);
    }
    pthread_mutex_unlock(&world->lock);
    window_lost(world, token);
}

static void received(struct request *r, const NDK_RESULT_EX *result)
{
    struct object *qp = result->QPContext;

    need(result->Status != STATUS_BUFFER_OVERFLOW);
    if (result->Status != STATUS_SUCCESS)
        return;
    need(result->BytesTransferred <= SLICE);
    if (object_use(r->mr)) {
        check_message(qp, slice_at(r->mr, slice_number(r->slices)), result->BytesTransferred);
        object_unuse(r->mr);
    } else {
        atomic_store(&qp->at->blind[!qp->end], true);
    }
    if (result->Type == NdkOperationTypeReceiveAndInvalidate)
        taken_away(qp->world, (UINT32)result->TypeSpecificCompletionOutput);
}

/* What a Read brought, or, where a completion promises that, what a Write left at the peer. */
static void transferred(struct request *r)
{
    bool read = r->type == NdkOperationTypeRead;
    struct object *mr = read ? r->mr : r->remote_mr;
    unsigned slice = slice_number(read ? r->slices : r->remote_slices);

    if (!slice || (read && r->written && r->written->failed) || !object_use(mr))
        return;
    if (!check(slice_at(mr, slice), r->length, r->seed))
        spin_die("a %s of %u octets by qp #%u: not what was written (slice %u of mr #%u)",
                 read ? "read" : "write", r->length, r->queue->owner->number, slice, mr->number);
    object_unuse(mr);
    atomic_fetch_add(&count_checked, 1);
}

static void registered(struct request *r, bool success)
{
    struct object *mr = r->mr;
    bool fast = r->type == NdkOperationTypeFastRegister;

    if (!object_use(mr))
        return;
    pthread_mutex_lock(&mr->lock);
    need(mr->step == BUSY);
    if (success && fast) {
        NDK_MR *handle = (NDK_MR *)(void *)mr->header;

        mr->remote = handle->Dispatch->NdkGetRemoteTokenFromMr(handle);
        mr->step = READY;
    } else {
        mr->step = success || fast ? DECIDE : DEAD;
    }
    pthread_mutex_unlock(&mr->lock);
    object_unuse(mr);
}

static void completed(struct object *cq, const NDK_RESULT_EX *result)
{
    struct request *r = result->RequestContext;
    struct queue_of *q = r->queue;
    const struct object *qp = result->QPContext;
    bool success = result->Status == STATUS_SUCCESS;

    if (atomic_fetch_add(&r->completions, 1) != 0)
        spin_die("a request of #%u completed twice", q->owner->number);
    need(q->cq == cq);
    need(q->owner->kind == SRQ ? qp->srq == q->owner : qp == q->owner);
    need(!r->silent || !success);
    need(r->type == NdkOperationTypeReceive
             ? (result->Type & NdkOperationTypeReceive) == NdkOperationTypeReceive
             : result->Type == r->type);
    take(q, r, success);
    r->failed = !success;
    if (r->window)
        window_completed(r, result->Status);
    else if (r->type == NdkOperationTypeReceive)
        received(r, result);
    else if (r->type == NdkOperationTypeFastRegister || r->type == NdkOperationTypeInvalidate)
        registered(r, success);
    else if (success && r->at && r->number)
        atomic_store(&r->at->succeeded[r->end][r->number], 1);
    else if (success && r->type != NdkOperationTypeSend)
        transferred(r);
    if (!success)
        r->remote_slices = 0; /* the octets may still be on their way: nobody takes that place */
    request_release(r);
}

static ULONG results(struct object *cq, NDK_RESULT_EX *out, ULONG room)
{
    NDK_RESULT old[8];
    ULONG n;

    if (draw(8))
        return cq_of(cq)->Dispatch->NdkGetCqResultsEx(cq_of(cq), out, room);
    n = cq_of(cq)->Dispatch->NdkGetCqResults(cq_of(cq), old, room);
    for (ULONG i = 0; i < n; i++) {
        memset(&out[i], 0, sizeof out[i]);
        out[i].Status = old[i].Status;
        out[i].BytesTransferred = old[i].BytesTransferred;
        out[i].QPContext = old[i].QPContext;
        out[i].RequestContext = old[i].RequestContext;
        out[i].Type = ((struct request *)old[i].RequestContext)->type;
    }
    return n;
}

/* All there is; under the CQ's turn. Queues whose owner was closed before that have no more to
 * come: they are taken off, and what they left is what may be left. */
static void poll_dry(struct object *cq)
{
    NDK_RESULT_EX out[8];
    struct queue_of *over[64], **at;
    unsigned n_over = 0;

    pthread_mutex_lock(&cq->lock);
    for (at = &cq->attached; *at && n_over < 64;) {
        struct queue_of *q = *at;

        if (object_state(q->owner) == CLOSED) {
            over[n_over++] = q;
            *at = q->next;
        } else {
            at = &q->next;
        }
    }
    pthread_mutex_unlock(&cq->lock);
    for (ULONG n; (n = results(cq, out, 1 + draw(8))) != 0;)
        for (ULONG i = 0; i < n; i++)
            completed(cq, &out[i]);
    for (unsigned i = 0; i < n_over; i++) {
        struct request *r;

        while ((r = TAILQ_FIRST(&over[i]->list)) != NULL) {
            if (!r->silent && over[i]->owner->kind == QP)
                spin_die("qp #%u is closed and a request (type %d) was never completed",
                         over[i]->owner->number, (int)r->type);
            TAILQ_REMOVE(&over[i]->list, r, link);
            if (r->window)
                window_left(r);
            r->remote_slices = 0;
            request_release(r);
        }
        over[i]->reaped = true;
    }
}

void cq_poll(struct object *cq, int type)
{
    pthread_mutex_lock(&cq->turn);
    poll_dry(cq);
    if (cq->by_callback && draw(3) == 0)
        test_sleep_ms(0); /* what comes meanwhile must satisfy the arm */
    if (type >= 0)
        arm(cq, (ULONG)type);
    pthread_mutex_unlock(&cq->turn);
}

void cq_last(struct object *cq)
{
    pthread_mutex_lock(&cq->turn);
    for (bool more = true; more;) {
        poll_dry(cq);
        more = false;
        pthread_mutex_lock(&cq->lock);
        for (struct queue_of *q = cq->attached; q; q = q->next) {
            if (object_state(q->owner) == CLOSED)
                more = true;
            else
                q->lossy = true;
        }
        pthread_mutex_unlock(&cq->lock);
    }
    pthread_mutex_unlock(&cq->turn);
}

VOID cq_notified(PVOID context, NTSTATUS status)
{
    struct object *cq = context;

    need(status == STATUS_SUCCESS);
    if (atomic_exchange(&cq->in_callback, true))
        spin_die("two notifications of cq #%u at once", cq->number);
    need(object_state(cq) == OPEN || object_state(cq) == CLOSING);
    need(atomic_fetch_add(&cq->notified, 1) < atomic_load(&cq->arms));
    note("cq notification", cq, 0);
    running_enter(cq);
    if (object_use(cq)) {
        struct object *qp = draw(3) ? NULL : object_pick(cq->world, QP, NULL);

        if (draw(3) || cq->by_callback)
            cq_poll(cq, cq->by_callback ? NDK_CQ_NOTIFY_ANY : (int)draw(3));
        if (qp && !qp->srq)
            post_a_receive(qp);
        if (qp && draw(2))
            post_a_request(qp);
        if (qp)
            object_unuse(qp);
        object_unuse(cq);
    }
    atomic_store(&cq->in_callback, false);
    running_leave(cq);
}
