// SPDX-License-Identifier: MIT
/*
 * Requests and their completions. Each queue's requests stand in a list in the order of their
 * posts; a completion takes its request from the head, past silent ones only. A message carries
 * whose it is, its number and a pattern; a Read brings the pattern that every region begins with,
 * or what a Write in front of it wrote into a slice that is nobody else's.
 */
#include <stdlib.h>
#include <string.h>

#include "spin.h"

#define MAGIC 0x6e697073u

struct head { /* of a message that is long enough for one */
    uint32_t magic, link, end, number, length, seed;
};

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

/* A request with its place in the CQ; NULL: that has none left. */
static struct request *request_new(struct queue_of *queue, NDK_OPERATION_TYPE type)
{
    struct request *r;

    if (atomic_fetch_add(&queue->cq->outstanding, 1) >= queue->cq->depth) {
        atomic_fetch_sub(&queue->cq->outstanding, 1);
        return NULL;
    }
    r = calloc(1, sizeof *r);
    need(r != NULL);
    r->queue = queue;
    r->type = type;
    pthread_mutex_lock(&now.lock);
    r->next = now.requests;
    now.requests = r;
    pthread_mutex_unlock(&now.lock);
    return r;
}

/* A slice of a region that is no request's; 0: none. */
static unsigned slice_claim(struct object *mr)
{
    unsigned from = 1 + draw(SLICES - 1);

    for (unsigned i = 0; i < SLICES - 1; i++) {
        unsigned n = 1 + (from + i) % (SLICES - 1), bit = 1u << n;

        if (!(atomic_fetch_or(&mr->claimed, bit) & bit))
            return n;
    }
    return 0;
}

static uint8_t *slice_at(const struct object *mr, unsigned slice)
{
    return mr->buffer->data + (size_t)slice * SLICE;
}

static unsigned slice_number(unsigned bits)
{
    return bits ? (unsigned)__builtin_ctz(bits) : 0;
}

static bool is_ready(struct object *mr, UINT32 *local, UINT32 *remote)
{
    bool ready;

    pthread_mutex_lock(&mr->lock);
    ready = mr->step == READY;
    *local = mr->local;
    *remote = mr->remote;
    pthread_mutex_unlock(&mr->lock);
    return ready;
}

/* A region of this domain that is registered, used. */
static struct object *region_pick(struct world *world, const struct object *pd, UINT32 *local,
                                  UINT32 *remote)
{
    for (int tries = 0; tries < 4; tries++) {
        struct object *mr = object_pick(world, MR, pd);

        if (!mr)
            return NULL;
        if (is_ready(mr, local, remote))
            return mr;
        object_unuse(mr);
    }
    return NULL;
}

/* ---- completions ---------------------------------------------------------------------------- */

/* A success vouches for the silent ones before it. */
static void take(struct queue_of *q, struct request *r, bool success)
{
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
    }
    TAILQ_REMOVE(&q->list, r, link);
    pthread_mutex_unlock(&q->lock);
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
    need(head.magic == MAGIC);
    need(head.link == link->number && head.end == from);
    need(head.length == length);
    need(check(data + sizeof head, length - sizeof head, head.seed));
    need(head.number < MESSAGES && head.number > atomic_load(&link->last[from]));
    atomic_store(&link->last[from], head.number);
    atomic_store(&link->arrived[from][head.number], 1);
    atomic_fetch_add(&count_checked, 1);
}

/* The peer's Send has invalidated a region here. */
static void region_lost(struct world *world, UINT32 token)
{
    pthread_mutex_lock(&world->lock);
    for (unsigned i = 0; i < POOL; i++) {
        struct object *mr = world->live[MR][i];

        if (!mr || !mr->fast || object_state(mr) == CREATING)
            continue;
        pthread_mutex_lock(&mr->lock);
        if (mr->step == BUSY && mr->remote == token)
            mr->step = DECIDE;
        pthread_mutex_unlock(&mr->lock);
    }
    pthread_mutex_unlock(&world->lock);
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
        region_lost(qp->world, (UINT32)result->TypeSpecificCompletionOutput);
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
    if (r->type == NdkOperationTypeReceive)
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
            work_receive(qp);
        if (qp && draw(2))
            work_initiate(qp);
        if (qp)
            object_unuse(qp);
        object_unuse(cq);
    }
    atomic_store(&cq->in_callback, false);
    running_leave(cq);
}

/* ---- posts ---------------------------------------------------------------------------------- */

struct posting {
    struct request *request;
    NDK_SGE sges[2];
    ULONG count, flags;
    UINT64 address;
    UINT32 token;
    bool invalidates;
};

/* One piece or two. */
static void pieces(struct posting *p, uint8_t *data, UINT32 token, unsigned length)
{
    unsigned first = length > 1 && draw(4) == 0 ? 1 + draw(length - 1) : length;

    p->count = length == 0 ? 0 : first < length ? 2 : 1;
    for (ULONG i = 0; i < p->count; i++) {
        p->sges[i].VirtualAddress = data + (i ? first : 0);
        p->sges[i].Length = i ? length - first : first;
        p->sges[i].MemoryRegionToken = token;
    }
}

static NTSTATUS post_call(struct object *o, struct posting *p)
{
    NDK_QP *qp = (NDK_QP *)(void *)o->header;
    const NDK_QP_DISPATCH *slot = qp->Dispatch;
    struct request *r = p->request;
    struct buffer *buffer;
    NDK_MR *mr;

    switch (r->type) {
    case NdkOperationTypeReceive:
        if (o->kind == SRQ) {
            NDK_SRQ *srq = (NDK_SRQ *)(void *)o->header;

            return srq->Dispatch->NdkSrqReceive(srq, r, p->sges, p->count);
        }
        return slot->NdkReceive(qp, r, p->sges, p->count);
    case NdkOperationTypeRead:
        return slot->NdkRead(qp, r, p->sges, p->count, p->address, p->token, p->flags);
    case NdkOperationTypeWrite:
        return slot->NdkWrite(qp, r, p->sges, p->count, p->address, p->token, p->flags);
    case NdkOperationTypeSend:
        if (p->invalidates)
            return slot->NdkSendAndInvalidate(qp, r, p->sges, p->count, p->flags, p->token);
        return slot->NdkSend(qp, r, p->sges, p->count, p->flags);
    case NdkOperationTypeInvalidate:
        return slot->NdkInvalidate(qp, r, r->mr->header, p->flags);
    default:
        buffer = r->mr->buffer;
        mr = (NDK_MR *)(void *)r->mr->header;
        return slot->NdkFastRegister(qp, r, mr, buffer->map->AdapterPageCount,
                                     buffer->map->AdapterPageArray, buffer->fbo,
                                     (SIZE_T)SLICES * SLICE, buffer->data, p->flags);
    }
}

/* Has this failure of a post a cause that the walker makes? */
static bool is_expected(const struct request *r, NTSTATUS status)
{
    return status == STATUS_CONNECTION_INVALID || status == STATUS_NO_MORE_ENTRIES ||
           (r->type == NdkOperationTypeRead && status == STATUS_INVALID_DEVICE_REQUEST);
}

static bool post(struct posting *p)
{
    struct request *r = p->request;
    struct queue_of *q = r->queue;
    NTSTATUS status;

    r->silent = (p->flags & NDK_OP_FLAG_SILENT_SUCCESS) != 0;
    pthread_mutex_lock(&q->turn);
    if (r->number) { /* numbers are in the order of the posts */
        struct head *head = p->sges[0].VirtualAddress;

        r->number = atomic_fetch_add(&r->at->sent[r->end], 1) + 1;
        if (r->number >= MESSAGES) {
            pthread_mutex_unlock(&q->turn);
            request_release(r);
            return false;
        }
        head->number = r->number;
    }
    pthread_mutex_lock(&q->lock);
    TAILQ_INSERT_TAIL(&q->list, r, link);
    pthread_mutex_unlock(&q->lock);
    note("post", q->owner, (unsigned)r->type << 16 | r->length);
    status = post_call(q->owner, p);
    if (status != STATUS_SUCCESS) {
        pthread_mutex_lock(&q->lock);
        need(atomic_load(&r->completions) == 0);
        TAILQ_REMOVE(&q->list, r, link);
        pthread_mutex_unlock(&q->lock);
    }
    pthread_mutex_unlock(&q->turn);
    if (status == STATUS_SUCCESS) {
        atomic_fetch_add(&count_requests, 1);
        return true;
    }
    if (!is_expected(r, status)) {
        char text[256];

        softndk_reason(q->owner->header, text, sizeof text);
        spin_die("a post (type %d): %s: %s", (int)r->type, softndk_status_name(status), text);
    }
    if (r->written)
        r->remote_slices = 0; /* its Write is on the way there */
    request_release(r);
    return false;
}

bool work_receive(struct object *owner)
{
    struct posting p = {0};
    UINT32 local, remote;
    struct object *mr = region_pick(owner->world, owner->pd, &local, &remote);
    unsigned slice = 0;
    bool posted = false;

    /* Some are left for what is sent. */
    if (mr && __builtin_popcount(atomic_load(&mr->claimed)) < 20)
        slice = slice_claim(mr);

    if (slice) {
        p.request = request_new(&owner->queues[0], NdkOperationTypeReceive);
        if (p.request) {
            p.request->mr = mr;
            p.request->slices = 1u << slice;
            pieces(&p, slice_at(mr, slice), local, SLICE);
            posted = post(&p);
        } else {
            atomic_fetch_and(&mr->claimed, ~(1u << slice));
        }
    }
    if (mr)
        object_unuse(mr);
    return posted;
}

static unsigned draw_length(void)
{
    return draw(8) ? draw(600) : draw(SLICE + 1);
}

static ULONG draw_flags(void)
{
    return (draw(6) ? 0 : NDK_OP_FLAG_SILENT_SUCCESS) | (draw(6) ? 0 : NDK_OP_FLAG_DEFER) |
           (draw(10) ? 0 : NDK_OP_FLAG_READ_FENCE);
}

/* A request of this type whose octets, or their place, are a slice of mr. */
static bool with_slice(struct posting *p, struct object *qp, NDK_OPERATION_TYPE type,
                       struct object *mr, UINT32 local, unsigned length)
{
    unsigned slice = slice_claim(mr);

    memset(p, 0, sizeof *p);
    if (!slice)
        return false;
    p->request = request_new(&qp->queues[1], type);
    if (!p->request) {
        atomic_fetch_and(&mr->claimed, ~(1u << slice));
        return false;
    }
    p->request->mr = mr;
    p->request->slices = 1u << slice;
    p->request->length = length;
    p->flags = draw_flags();
    pieces(p, slice_at(mr, slice), local, length);
    return true;
}

/* A fast-registered region of the peer's that is taken from it; NULL: none. Used. */
static struct object *claim_remote(struct object *peer, UINT32 *token)
{
    struct object *mr = object_pick(peer->world, MR, peer->pd);

    if (mr && mr->fast && object_step(mr, READY, BUSY)) {
        pthread_mutex_lock(&mr->lock);
        *token = mr->remote;
        pthread_mutex_unlock(&mr->lock);
        return mr;
    }
    if (mr)
        object_unuse(mr);
    return NULL;
}

static bool post_send(struct object *qp, struct link *link, struct object *peer, struct object *mr,
                      UINT32 local)
{
    unsigned length = draw_length(), seed = draw(1u << 20);
    struct object *taken = NULL;
    struct posting p;
    uint8_t *data;
    bool posted;

    if (!with_slice(&p, qp, NdkOperationTypeSend, mr, local, length))
        return false;
    data = slice_at(mr, slice_number(p.request->slices));
    if (length >= sizeof(struct head)) {
        struct head head = {MAGIC, link->number, qp->end, 0, length, seed};

        memcpy(data, &head, sizeof head);
        fill(data + sizeof head, length - sizeof head, seed);
        p.request->at = link;
        p.request->end = qp->end;
        p.request->number = 1;
    } else {
        fill(data, length, link->seed);
    }
    if (draw(4) == 0)
        p.flags |= NDK_OP_FLAG_SEND_AND_SOLICIT_EVENT;
    if (length <= 64 && draw(2))
        p.flags |= NDK_OP_FLAG_INLINE;
    if (peer && draw(40) == 0)
        taken = claim_remote(peer, &p.token);
    p.invalidates = taken != NULL;
    posted = post(&p);
    if (taken) {
        if (!posted)
            need(object_step(taken, BUSY, READY));
        object_unuse(taken);
    }
    return posted;
}

/* A Read of what every region begins with, or of a slice that a Write has just filled. */
static bool post_transfer(struct object *qp, struct object *peer, struct object *mr, UINT32 local)
{
    UINT32 nothing, token;
    struct object *to = region_pick(peer->world, peer->pd, &nothing, &token);
    unsigned length = draw_length(), seed = 0, slice = 0;
    struct request *written = NULL;
    struct posting p;
    bool posted = false, owned = false;

    if (to && draw(2) && (slice = slice_claim(to)) != 0) {
        seed = 1 + draw(1u << 20);
        if (!with_slice(&p, qp, NdkOperationTypeWrite, mr, local, length)) {
            atomic_fetch_and(&to->claimed, ~(1u << slice));
            object_unuse(to);
            return false;
        }
        written = p.request;
        fill(slice_at(mr, slice_number(written->slices)), length, seed);
        written->seed = seed;
        written->remote_mr = to;
        owned = qp->world->placed && draw(2);
        if (owned)
            written->remote_slices = 1u << slice; /* looked at when it has completed */
        p.address = (UINT64)(uintptr_t)slice_at(to, slice);
        p.token = token;
        if (length <= 64 && draw(2))
            p.flags |= NDK_OP_FLAG_INLINE;
        posted = post(&p);
        if (!posted && !owned)
            atomic_fetch_and(&to->claimed, ~(1u << slice));
    }
    if (to && (!written || (posted && !owned)) &&
        with_slice(&p, qp, NdkOperationTypeRead, mr, local, length)) {
        p.request->seed = seed;
        p.request->written = written;
        p.request->remote_mr = to;
        p.request->remote_slices = written ? 1u << slice : 0;
        p.address = (UINT64)(uintptr_t)slice_at(to, slice);
        p.token = token;
        posted = post(&p);
    }
    if (to)
        object_unuse(to);
    return posted;
}

bool work_initiate(struct object *qp)
{
    struct object *peer = NULL, *mr;
    UINT32 local, remote;
    struct link *link;
    bool posted = false, ready;

    pthread_mutex_lock(&qp->lock);
    link = qp->at;
    ready = qp->step == READY || (link && draw(30) == 0);
    pthread_mutex_unlock(&qp->lock);
    if (!ready)
        return false;
    pthread_mutex_lock(&now.links_lock);
    peer = link->qps[!qp->end];
    pthread_mutex_unlock(&now.links_lock);
    mr = region_pick(qp->world, qp->pd, &local, &remote);
    if (mr) {
        if (peer && draw(2))
            posted = post_transfer(qp, peer, mr, local);
        else
            posted = post_send(qp, link, peer, mr, local);
        object_unuse(mr);
    }
    return posted;
}

/* A fast registration, or the end of one. */
bool work_fast(struct object *qp)
{
    struct object *mr = object_pick(qp->world, MR, qp->pd);
    struct posting p = {0};
    bool posted = false, up;

    if (!mr)
        return false;
    pthread_mutex_lock(&qp->lock);
    up = qp->step == READY;
    pthread_mutex_unlock(&qp->lock);
    up = up && mr->fast;
    if (up && object_step(mr, DECIDE, BUSY)) {
        p.request = request_new(&qp->queues[1], NdkOperationTypeFastRegister);
        p.flags = NDK_OP_FLAG_ALLOW_REMOTE_READ | NDK_OP_FLAG_ALLOW_REMOTE_WRITE |
                  NDK_OP_FLAG_RDMA_READ_SINK;
        if (p.request) {
            p.request->mr = mr;
            p.request->buffer = mr->buffer;
            atomic_fetch_add(&mr->buffer->references, 1);
            posted = post(&p);
        }
        if (!posted)
            need(object_step(mr, BUSY, DECIDE));
    } else if (up && draw(30) == 0 && object_step(mr, READY, BUSY)) {
        p.request = request_new(&qp->queues[1], NdkOperationTypeInvalidate);
        if (p.request) {
            p.request->mr = mr;
            posted = post(&p);
        }
        if (!posted)
            need(object_step(mr, BUSY, READY));
    }
    object_unuse(mr);
    return posted;
}
