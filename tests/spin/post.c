// SPDX-License-Identifier: MIT
/* Requests: their slices, their places in the CQ, their posts; see spin.h and message.h. */
#include <stdlib.h>
#include <string.h>

#include "message.h"

/* A request with its place in the CQ; NULL: that has none left. */
struct request *request_make(struct queue_of *queue, NDK_OPERATION_TYPE type)
{
    struct request *r;

    if (atomic_fetch_add(&queue->cq->outstanding, 1) >= atomic_load(&queue->cq->depth)) {
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

/* One of some slices of a region that is no request's; 0: none. */
static unsigned slice_claim_of(struct object *mr, unsigned first, unsigned slices)
{
    unsigned from = draw(slices);

    for (unsigned i = 0; i < slices; i++) {
        unsigned n = first + (from + i) % slices, bit = 1u << n;

        if (n && !(atomic_fetch_or(&mr->claimed, bit) & bit))
            return n;
    }
    return 0;
}

static unsigned slice_claim(struct object *mr)
{
    return slice_claim_of(mr, 0, SLICES);
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

struct object *region_pick(struct world *world, const struct object *pd, UINT32 *local,
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
        return slot->NdkInvalidate(qp, r, (r->window ? r->window : r->mr)->header, p->flags);
    case NdkOperationTypeBind:
        return slot->NdkBind(qp, r, (NDK_MR *)(void *)r->mr->header,
                             (NDK_MW *)(void *)r->window->header, (PVOID)(uintptr_t)p->address,
                             p->length, p->flags);
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
    if (r->type == NdkOperationTypeBind && status == STATUS_INVALID_DEVICE_REQUEST)
        return atomic_load(&r->mr->moves) != r->moves; /* deregistered meanwhile */
    return status == STATUS_CONNECTION_INVALID || status == STATUS_NO_MORE_ENTRIES ||
           (r->type == NdkOperationTypeRead && status == STATUS_INVALID_DEVICE_REQUEST);
}

bool post(struct posting *p)
{
    struct request *r = p->request;
    struct queue_of *q = r->queue;
    NTSTATUS status;

    r->silent = (p->flags & NDK_OP_FLAG_SILENT_SUCCESS) != 0;
    pthread_mutex_lock(&q->turn);
    if (r->at && q->owner->at != r->at) { /* its connection failed, and another was begun */
        pthread_mutex_unlock(&q->turn);
        request_release(r);
        return false;
    }
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

bool post_a_receive(struct object *owner)
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
        p.request = request_make(&owner->queues[0], NdkOperationTypeReceive);
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

ULONG draw_flags(void)
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
    p->request = request_make(&qp->queues[1], type);
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

/* Where a queue pair was, read at once: it may move to another link at any time. A Send for the old
 * one is dropped then (post()); a Read or Write finds its region or ends the connection. */
struct side {
    struct link *link;
    struct object *peer; /* NULL: not known */
    unsigned end;
};

/* What a Send takes from the peer: a fast-registered region, or a window. */
struct taken {
    struct object *object; /* used; NULL: nothing */
    unsigned take;
};

static struct taken claim_remote(struct object *peer, UINT32 *token)
{
    struct object *mr = object_pick(peer->world, MR, peer->pd);
    struct taken taken = {0};

    if (mr && mr->fast && object_step(mr, READY, BUSY)) {
        pthread_mutex_lock(&mr->lock);
        *token = mr->remote;
        pthread_mutex_unlock(&mr->lock);
        taken.object = mr;
        return taken;
    }
    if (mr)
        object_unuse(mr);
    taken.object = window_take(peer, token, &taken.take);
    return taken;
}

static void claimed_remote(struct taken taken, bool posted)
{
    if (taken.object->kind == MW)
        window_sent(taken.object, taken.take, posted);
    else if (!posted)
        need(object_step(taken.object, BUSY, READY));
    object_unuse(taken.object);
}

static bool post_send(struct object *qp, const struct side *side, struct object *mr, UINT32 local)
{
    unsigned length = draw_length(), seed = draw(1u << 20);
    struct taken taken = {0};
    struct posting p;
    uint8_t *data;
    bool posted;

    if (!with_slice(&p, qp, NdkOperationTypeSend, mr, local, length))
        return false;
    data = slice_at(mr, slice_number(p.request->slices));
    p.request->at = side->link;
    if (length >= sizeof(struct head)) {
        struct head head = {MESSAGE_MAGIC, side->link->number, side->end, 0, length, seed};

        memcpy(data, &head, sizeof head);
        fill(data + sizeof head, length - sizeof head, seed);
        p.request->end = side->end;
        p.request->number = 1;
    } else {
        fill(data, length, side->link->seed);
    }
    if (draw(4) == 0)
        p.flags |= NDK_OP_FLAG_SEND_AND_SOLICIT_EVENT;
    if (length <= 64 && draw(2))
        p.flags |= NDK_OP_FLAG_INLINE;
    if (side->peer && draw(8) == 0)
        taken = claim_remote(side->peer, &p.token);
    p.invalidates = taken.object != NULL;
    posted = post(&p);
    if (taken.object)
        claimed_remote(taken, posted);
    return posted;
}

/* What a peer may reach: a whole region, or what a window is bound to. */
static bool reach(struct object *peer, struct target *to)
{
    UINT32 nothing;

    if (draw(3) == 0 && window_target(peer, to)) {
        atomic_fetch_add(&count_through, 1);
        return true;
    }
    *to = (struct target){.slices = SLICES, .readable = true, .writable = true};
    to->mr = region_pick(peer->world, peer->pd, &nothing, &to->token);
    return to->mr != NULL;
}

/* A Write into a slice that is nobody else's. It stays that of the Write (*owned) to be looked at
 * when that has completed, or is read back. */
static struct request *write_there(struct posting *p, struct object *qp, struct object *mr,
                                   UINT32 local, const struct target *to, unsigned length,
                                   bool *owned)
{
    unsigned slice = slice_claim_of(to->mr, to->first, to->slices);
    struct request *r;

    *owned = qp->world->placed && (!to->readable || draw(2));
    if (!slice || !with_slice(p, qp, NdkOperationTypeWrite, mr, local, length)) {
        if (slice)
            atomic_fetch_and(&to->mr->claimed, ~(1u << slice));
        return NULL;
    }
    r = p->request;
    r->seed = 1 + draw(1u << 20);
    fill(slice_at(mr, slice_number(r->slices)), length, r->seed);
    r->remote_mr = to->mr;
    if (*owned)
        r->remote_slices = 1u << slice;
    p->address = (UINT64)(uintptr_t)slice_at(to->mr, slice);
    p->token = to->token;
    if (length <= 64 && draw(2))
        p->flags |= NDK_OP_FLAG_INLINE;
    if (post(p))
        return r;
    if (!*owned)
        atomic_fetch_and(&to->mr->claimed, ~(1u << slice));
    return NULL;
}

static bool read_there(struct posting *p, struct object *qp, struct object *mr, UINT32 local,
                       const struct target *to, unsigned length, struct request *written,
                       UINT64 address)
{
    if (!with_slice(p, qp, NdkOperationTypeRead, mr, local, length))
        return false;
    p->request->seed = written ? written->seed : 0;
    p->request->written = written;
    p->request->remote_mr = to->mr;
    p->address = address;
    if (written)
        p->request->remote_slices = 1u << ((address - (uintptr_t)slice_at(to->mr, 0)) / SLICE);
    p->token = to->token;
    return post(p);
}

/* A Read of what every region begins with, or of a slice that a Write has just filled. */
static bool post_transfer(struct object *qp, const struct side *side, struct object *mr,
                          UINT32 local)
{
    struct request *written = NULL;
    unsigned length = draw_length();
    bool posted = false, owned = false;
    struct posting p;
    struct target to;

    if (!reach(side->peer, &to))
        return false;
    if (to.writable && (to.readable || qp->world->placed) && (to.first || draw(2))) {
        written = write_there(&p, qp, mr, local, &to, length, &owned);
        posted = written != NULL;
    }
    if (to.readable && !owned && (written || to.first == 0))
        posted |= read_there(&p, qp, mr, local, &to, length, written,
                             written ? p.address : (UINT64)(uintptr_t)slice_at(to.mr, 0));
    object_unuse(to.mr);
    return posted;
}

/* A Read by the token of a window that is no longer bound. */
static bool post_in_vain(struct object *qp, const struct side *side, struct object *mr,
                         UINT32 local)
{
    UINT32 token;
    struct object *window = window_stale(side->peer, &token);
    bool posted = false;
    struct posting p;

    if (!window)
        return false;
    if (with_slice(&p, qp, NdkOperationTypeRead, mr, local, 1 + draw(SLICE))) {
        p.request->window = window;
        p.request->stale = true;
        p.flags &= ~(ULONG)NDK_OP_FLAG_SILENT_SUCCESS;
        p.address = window->at_octet;
        p.token = token;
        posted = post(&p);
    }
    if (!posted)
        window_tried(window);
    object_unuse(window);
    return posted;
}

bool post_a_request(struct object *qp)
{
    struct side side;
    struct object *mr;
    UINT32 local, remote;
    bool posted = false, ready;

    pthread_mutex_lock(&qp->lock);
    side.link = qp->at;
    side.end = qp->end;
    ready = qp->step == READY || (side.link && draw(30) == 0);
    pthread_mutex_unlock(&qp->lock);
    if (!ready)
        return false;
    pthread_mutex_lock(&now.links_lock);
    side.peer = side.link->qps[!side.end];
    pthread_mutex_unlock(&now.links_lock);
    mr = region_pick(qp->world, qp->pd, &local, &remote);
    if (mr) {
        if (side.peer && draw(800) == 0)
            posted = post_in_vain(qp, &side, mr, local);
        else if (side.peer && draw(2))
            posted = post_transfer(qp, &side, mr, local);
        else
            posted = post_send(qp, &side, mr, local);
        object_unuse(mr);
    }
    return posted;
}

/* A fast registration, or the end of one. */
bool post_a_registration(struct object *qp)
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
        p.request = request_make(&qp->queues[1], NdkOperationTypeFastRegister);
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
        p.request = request_make(&qp->queues[1], NdkOperationTypeInvalidate);
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
