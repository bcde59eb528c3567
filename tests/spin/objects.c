// SPDX-License-Identifier: MIT
/* Objects, calls that pend, regions; see spin.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "modes.h"
#include "spin.h"

struct round now;
atomic_uint count_calls, count_connections, count_requests, count_checked, count_objects;

static char untouched; /* what the out parameters of creates point to */

static const char *const names[] = {
    "NdkCreateCq", "NdkCreatePd",        "NdkCreateMr",       "NdkCreateSrq",
    "NdkCreateQp", "NdkCreateConnector", "NdkCreateListener", "NdkCreateSharedEndpoint",
    "NdkCreateMw"};

/* ---- use and close -------------------------------------------------------------------------- */

/* of: whose pd it must have, or NULL. */
static bool use_of(struct object *object, const struct object *of)
{
    bool open;

    pthread_mutex_lock(&object->lock);
    open = object->state == OPEN && !object->doomed && (!of || object->pd == of);
    object->uses += open;
    pthread_mutex_unlock(&object->lock);
    return open;
}

bool object_use(struct object *object)
{
    return use_of(object, NULL);
}

void running_enter(struct object *object)
{
    atomic_fetch_add(&object->callbacks, 1);
}

void running_leave(struct object *object)
{
    atomic_fetch_sub(&object->callbacks, 1);
}

static void closed(struct object *object)
{
    if (atomic_load(&object->callbacks) != 0)
        spin_die("object #%u (kind %d) is closed while callbacks run", object->number,
                 object->kind);
    pthread_mutex_lock(&object->lock);
    need(object->state == CLOSING); /* once, and after the call */
    object->state = CLOSED;
    pthread_mutex_unlock(&object->lock);
    if (object->buffer)
        buffer_put(object->buffer);
    if (object->kind == MW)
        window_gone(object);
    if (object->kind == CONNECTOR && object->qp) { /* it has had its connection */
        pthread_mutex_lock(&object->qp->lock);
        object->qp->step = DEAD;
        pthread_mutex_unlock(&object->qp->lock);
        atomic_store(&object->qp->ended, true);
    }
}

/* An antecedent's close must not end before this has returned. */
static VOID object_closed(PVOID context)
{
    struct object *object = context;
    struct object *const above[] = {object->pd, object->cq[0], object->cq[1], object->srq};

    for (size_t i = 0; i < sizeof above / sizeof above[0]; i++)
        if (above[i])
            running_enter(above[i]);
    closed(object);
    if (draw(4) == 0)
        test_sleep_ms(0);
    for (size_t i = 0; i < sizeof above / sizeof above[0]; i++)
        if (above[i])
            running_leave(above[i]);
}

static void object_close(struct object *object)
{
    NTSTATUS status;

    if (object->kind == CQ)
        cq_last(object);
    note("close", object, 0);
    status = object->close(object->header, object_closed, object);
    need(status == STATUS_SUCCESS || status == STATUS_PENDING);
    if (status == STATUS_SUCCESS)
        closed(object);
}

void object_unuse(struct object *object)
{
    bool last;

    pthread_mutex_lock(&object->lock);
    need(object->uses > 0);
    last = --object->uses == 0 && object->doomed && object->state == OPEN;
    if (last)
        object->state = CLOSING;
    pthread_mutex_unlock(&object->lock);
    if (last)
        object_close(object);
}

void object_doom(struct object *object)
{
    bool last;

    pthread_mutex_lock(&object->lock);
    last = object->state == OPEN && !object->doomed && object->uses == 0;
    object->doomed |= object->state == OPEN;
    if (last)
        object->state = CLOSING;
    pthread_mutex_unlock(&object->lock);
    if (last)
        object_close(object);
}

enum state object_state(struct object *object)
{
    enum state state;

    pthread_mutex_lock(&object->lock);
    state = object->state;
    pthread_mutex_unlock(&object->lock);
    return state;
}

bool object_step(struct object *object, enum step from, enum step to)
{
    bool is;

    pthread_mutex_lock(&object->lock);
    is = object->step == from;
    if (is)
        object->step = to;
    pthread_mutex_unlock(&object->lock);
    return is;
}

/* ---- pools ---------------------------------------------------------------------------------- */

struct object *object_pick(struct world *world, enum kind kind, const struct object *of)
{
    struct object *found = NULL;
    unsigned from = draw(POOL);

    pthread_mutex_lock(&world->lock);
    for (unsigned i = 0; i < POOL && !found; i++) {
        struct object *object = world->live[kind][(from + i) % POOL];

        if (object && use_of(object, of))
            found = object;
    }
    pthread_mutex_unlock(&world->lock);
    return found;
}

struct object *object_claim(struct world *world, enum kind kind, enum step from, enum step to)
{
    for (int tries = 0; tries < 6; tries++) {
        struct object *object = object_pick(world, kind, NULL);

        if (!object)
            return NULL;
        if (object_step(object, from, to))
            return object;
        object_unuse(object);
    }
    return NULL;
}

struct object *object_make(struct world *world, enum kind kind, bool anyway, bool *has_place)
{
    struct object *object = calloc(1, sizeof *object);
    bool placed = false;

    need(object != NULL);
    object->world = world;
    object->kind = kind;
    object->state = CREATING;
    pthread_mutex_init(&object->lock, NULL);
    pthread_mutex_init(&object->turn, NULL);
    pthread_mutex_lock(&now.lock);
    object->number = ++now.numbers;
    pthread_mutex_unlock(&now.lock);
    pthread_mutex_lock(&world->lock);
    for (unsigned i = 0; i < POOL && !placed && !atomic_load(&now.ending); i++) {
        struct object *old = world->live[kind][i];

        if (!old || object_state(old) >= CLOSED) {
            world->live[kind][i] = object;
            placed = true;
        }
    }
    pthread_mutex_unlock(&world->lock);
    if (has_place)
        *has_place = placed;
    if (!placed && !anyway) {
        free(object);
        return NULL;
    }
    pthread_mutex_lock(&now.lock);
    object->next = now.objects;
    now.objects = object;
    pthread_mutex_unlock(&now.lock);
    return object;
}

void object_opened(struct object *object, NDK_OBJECT_HEADER *header, NDK_FN_CLOSE_OBJECT close)
{
    atomic_fetch_add(&count_objects, 1);
    pthread_mutex_lock(&object->lock);
    need(object->state == CREATING);
    object->header = header;
    object->close = close;
    object->state = OPEN;
    pthread_mutex_unlock(&object->lock);
}

/* ---- calls ---------------------------------------------------------------------------------- */

struct call *call_begin(const char *name, struct object *object,
                        void (*then)(struct call *, NTSTATUS))
{
    struct call *call = calloc(1, sizeof *call);

    need(call != NULL);
    call->name = name;
    call->object = object;
    call->then = then;
    call->out = &untouched;
    pthread_mutex_lock(&now.lock);
    call->next = now.calls;
    now.calls = call;
    pthread_mutex_unlock(&now.lock);
    atomic_fetch_add(&count_calls, 1);
    note(name, object, 0);
    return call;
}

static void answer(struct call *call, NTSTATUS status, NDK_OBJECT_HEADER *header)
{
    struct object *object = call->object;

    if (call->then) {
        call->then(call, status);
    } else if (status == STATUS_SUCCESS) {
        /* The close is the first slot of every table. */
        NDK_PD *any = (NDK_PD *)(void *)header;

        object_opened(object, header, any->Dispatch->NdkClosePd);
    } else {
        spin_die("%s #%u: %s", call->name, object->number, softndk_status_name(status));
    }
}

VOID call_created(PVOID context, NTSTATUS status, NDK_OBJECT_HEADER *header)
{
    struct call *call = context;
    bool own = call->then && !call->buffer; /* not a create, nor the adapter's NdkBuildLAM */

    note("answer", call->object, (unsigned)status);
    need(call->out == &untouched);
    need(atomic_fetch_add(&call->answers, 1) == 0);
    if (!own) {
        answer(call, status, header);
        return;
    }
    running_enter(call->object);
    answer(call, status, header);
    if (draw(8) == 0)
        test_sleep_ms(0);
    running_leave(call->object);
}

VOID call_answered(PVOID context, NTSTATUS status)
{
    call_created(context, status, NULL);
}

void call_end(struct call *call, NTSTATUS returned)
{
    if (returned == STATUS_PENDING) {
        atomic_store(&call->pended, true);
        need(call->out == &untouched);
        return;
    }
    need(atomic_load(&call->answers) == 0);
    need(call->then || (returned == STATUS_SUCCESS) == (call->out != &untouched));
    answer(call, returned, call->then ? NULL : call->out);
}

/* ---- creates -------------------------------------------------------------------------------- */

static VOID srq_notified(PVOID context, NTSTATUS status)
{
    struct object *srq = context;

    need(status == STATUS_SUCCESS);
    need(!atomic_exchange(&srq->in_callback, true));
    need(object_state(srq) != CLOSED);
    note("srq notification", srq, 0);
    running_enter(srq);
    if (object_use(srq)) {
        for (unsigned i = draw(8); i; i--)
            post_a_receive(srq);
        object_unuse(srq);
    }
    atomic_store(&srq->in_callback, false);
    running_leave(srq);
}

static void listening(struct call *call, NTSTATUS status)
{
    struct object *listener = call->object;
    NDK_LISTENER *handle = (NDK_LISTENER *)(void *)listener->header;

    if (status != STATUS_SUCCESS || !object_use(listener))
        return; /* it was closed meanwhile */
    listener->address_length = sizeof listener->address;
    need(handle->Dispatch->NdkGetLocalAddress(handle, (PSOCKADDR)&listener->address,
                                              &listener->address_length) == STATUS_SUCCESS);
    need(object_step(listener, BUSY, READY));
    object_unuse(listener);
}

bool listener_move(struct object *listener)
{
    NDK_LISTENER *handle = (NDK_LISTENER *)(void *)listener->header;
    SOCKADDR_INET address;
    struct call *call;
    ULONG length;

    if (!object_step(listener, IDLE, BUSY)) {
        note("NdkControlConnectEvents", listener, 0);
        handle->Dispatch->NdkControlConnectEvents(handle, draw(20) == 0);
        return true;
    }
    need(softndk_address_from_text(own_address(), &address, &length) == STATUS_SUCCESS);
    call = call_begin("NdkListen", listener, listening);
    call_end(call,
             handle->Dispatch->NdkListen(handle, (PSOCKADDR)&address, length, call_answered, call));
    return true;
}

static struct buffer *buffer_new(NDK_ADAPTER *adapter)
{
    struct buffer *buffer = calloc(1, sizeof *buffer);

    need(buffer != NULL);
    buffer->adapter = adapter;
    buffer->data = aligned_alloc(4096, (size_t)SLICES * SLICE);
    need(buffer->data != NULL);
    fill(buffer->data, SLICE, 0); /* what anybody may read */
    memset(buffer->data + SLICE, 0, (size_t)(SLICES - 1) * SLICE);
    buffer->mdl = IoAllocateMdl(buffer->data, SLICES * SLICE, FALSE, FALSE, NULL);
    need(buffer->mdl != NULL);
    MmBuildMdlForNonPagedPool(buffer->mdl);
    atomic_store(&buffer->references, 1);
    return buffer;
}

void buffer_put(struct buffer *buffer)
{
    if (atomic_fetch_sub(&buffer->references, 1) != 1)
        return;
    if (buffer->mapped)
        buffer->adapter->Dispatch->NdkReleaseLAM(buffer->adapter, buffer->map);
    free(buffer->map);
    IoFreeMdl(buffer->mdl);
    free(buffer->data);
    free(buffer);
}

/* The antecedents, used; false: one of them is missing. */
static bool antecedents(struct object *o)
{
    struct world *world = o->world;

    if (o->kind == MR || o->kind == MW || o->kind == SRQ || o->kind == QP)
        if (!(o->pd = object_pick(world, PD, NULL)))
            return false;
    if (o->kind == QP && draw(3) == 0) {
        o->srq = object_pick(world, SRQ, o->pd);
        if (o->srq && object_use(o->srq->cq[0]))
            o->cq[0] = o->srq->cq[0];
    }
    if ((o->kind == QP && !o->srq) || o->kind == SRQ)
        o->cq[0] = object_pick(world, CQ, NULL);
    if (o->kind == QP)
        o->cq[1] = object_pick(world, CQ, NULL);
    return (o->kind != SRQ || o->cq[0]) && (o->kind != QP || (o->cq[0] && o->cq[1]));
}

static void antecedents_unuse(const struct object *o)
{
    if (o->kind == QP && o->srq)
        object_unuse(o->srq);
    for (int i = 0; i < 2; i++)
        if (o->cq[i])
            object_unuse(o->cq[i]);
    if (o->pd)
        object_unuse(o->pd);
}

static NTSTATUS create_queue_pair(struct object *o, struct call *call)
{
    NDK_PD *pd = (NDK_PD *)(void *)o->pd->header;
    NDK_CQ *receive = (NDK_CQ *)(void *)o->cq[0]->header;
    NDK_CQ *initiator = (NDK_CQ *)(void *)o->cq[1]->header;
    ULONG depth = 1 + draw(draw(2) ? 8 : 60);

    queue_attach(&o->queues[1], o, o->cq[1]);
    if (o->srq)
        return pd->Dispatch->NdkCreateQpWithSrq(pd, receive, initiator,
                                                (NDK_SRQ *)(void *)o->srq->header, o, depth, 2, 64,
                                                call_created, call, (NDK_QP **)(void *)&call->out);
    queue_attach(&o->queues[0], o, o->cq[0]);
    return pd->Dispatch->NdkCreateQp(pd, receive, initiator, o, 1 + draw(60), depth, 2, 2, 64,
                                     call_created, call, (NDK_QP **)(void *)&call->out);
}

static NTSTATUS create(struct object *o, struct call *call)
{
    NDK_ADAPTER *adapter = o->world->adapter;
    const NDK_ADAPTER_DISPATCH *slot = adapter->Dispatch;
    NDK_PD *pd = o->pd ? (NDK_PD *)(void *)o->pd->header : NULL;
    SOCKADDR_INET address;
    ULONG length;

    switch (o->kind) {
    case CQ:
        atomic_store(&o->depth, 1 + draw(draw(3) ? 400 : 20));
        o->by_callback = draw(2);
        return slot->NdkCreateCq(adapter, atomic_load(&o->depth), cq_notified, o, NULL,
                                 call_created, call, (NDK_CQ **)(void *)&call->out);
    case PD:
        return slot->NdkCreatePd(adapter, call_created, call, (NDK_PD **)(void *)&call->out);
    case MR:
        o->fast = draw(3) == 0;
        o->buffer = buffer_new(adapter);
        atomic_store(&o->claimed, 1);
        return pd->Dispatch->NdkCreateMr(pd, o->fast, call_created, call,
                                         (NDK_MR **)(void *)&call->out);
    case MW:
        return pd->Dispatch->NdkCreateMw(pd, call_created, call, (NDK_MW **)(void *)&call->out);
    case SRQ:
        queue_attach(&o->queues[0], o, o->cq[0]);
        return pd->Dispatch->NdkCreateSrq(pd, 1 + draw(60), 2, draw(8), srq_notified, o, NULL,
                                          call_created, call, (NDK_SRQ **)(void *)&call->out);
    case QP:
        return create_queue_pair(o, call);
    case CONNECTOR:
        return slot->NdkCreateConnector(adapter, call_created, call,
                                        (NDK_CONNECTOR **)(void *)&call->out);
    case LISTENER:
        return slot->NdkCreateListener(adapter, connect_event, o, call_created, call,
                                       (NDK_LISTENER **)(void *)&call->out);
    default:
        need(softndk_address_from_text(own_address(), &address, &length) == STATUS_SUCCESS);
        return slot->NdkCreateSharedEndpoint(adapter, (PSOCKADDR)&address, length, call_created,
                                             call, (NDK_SHARED_ENDPOINT **)(void *)&call->out);
    }
}

bool create_something(struct world *world, enum kind kind)
{
    struct object *o = object_make(world, kind, false, NULL);
    bool whole;

    if (!o)
        return false;
    whole = antecedents(o);
    if (whole) {
        struct call *call = call_begin(names[kind], o, NULL);

        call_end(call, create(o, call));
    } else {
        pthread_mutex_lock(&o->lock);
        o->state = FAILED;
        pthread_mutex_unlock(&o->lock);
    }
    antecedents_unuse(o);
    return whole;
}

/* ---- regions -------------------------------------------------------------------------------- */

/* A call for a region was answered; what comes next is one only if nobody closes it. */
static void region_is(struct object *mr, NTSTATUS status, enum step step)
{
    NDK_MR *handle = (NDK_MR *)(void *)mr->header;

    if (!object_use(mr))
        return;
    if (status != STATUS_SUCCESS)
        spin_die("region #%u: %s", mr->number, softndk_status_name(status));
    pthread_mutex_lock(&mr->lock);
    need(mr->step == BUSY);
    if (step != IDLE)
        mr->local = handle->Dispatch->NdkGetLocalTokenFromMr(handle);
    if (step == READY)
        mr->remote = handle->Dispatch->NdkGetRemoteTokenFromMr(handle);
    mr->step = step;
    pthread_mutex_unlock(&mr->lock);
    object_unuse(mr);
}

static void registered(struct call *call, NTSTATUS status)
{
    region_is(call->object, status, READY);
}

/* It is busy only if a window is bound, or about to be. */
static void deregistered(struct call *call, NTSTATUS status)
{
    struct object *mr = call->object;
    bool busy = status == STATUS_DEVICE_BUSY;

    if (busy && call->unbound && atomic_load(&mr->binds) == call->binds)
        spin_die("region #%u: no window is bound, and its deregistration says so", mr->number);
    if (call->other)
        window_judge(call->other, !busy);
    region_is(mr, busy ? STATUS_SUCCESS : status, busy ? READY : IDLE);
}

static bool deregister(struct object *mr)
{
    NDK_MR *handle = (NDK_MR *)(void *)mr->header;
    struct object *window = window_hold(mr);
    struct call *call;

    if (!object_step(mr, READY, BUSY)) {
        if (window)
            window_judge(window, false);
        return false;
    }
    atomic_fetch_add(&mr->moves, 1);
    call = call_begin("NdkDeregisterMr", mr, deregistered);
    call->other = window;
    call->binds = atomic_load(&mr->binds);
    call->unbound = atomic_load(&mr->windows) == 0;
    call_end(call, handle->Dispatch->NdkDeregisterMr(handle, call_answered, call));
    return true;
}

static void initialized(struct call *call, NTSTATUS status)
{
    region_is(call->object, status, DECIDE);
}

static void mapped(struct call *call, NTSTATUS status)
{
    struct buffer *buffer = call->buffer;
    struct object *mr = call->object;
    NDK_MR *handle = (NDK_MR *)(void *)mr->header;

    need(status == STATUS_SUCCESS);
    need(buffer->map->AdapterPageCount == SLICES * SLICE / 4096 && buffer->fbo == 0);
    buffer->mapped = true;
    if (object_use(mr)) {
        struct call *next = call_begin("NdkInitializeFastRegisterMr", mr, initialized);

        call_end(next, handle->Dispatch->NdkInitializeFastRegisterMr(
                           handle, buffer->map->AdapterPageCount, TRUE, call_answered, next));
        object_unuse(mr);
    }
    buffer_put(buffer);
}

static void map_it(struct object *mr)
{
    struct buffer *buffer = mr->buffer;
    NDK_ADAPTER *adapter = buffer->adapter;
    struct call *call = call_begin("NdkBuildLAM", mr, mapped);
    NTSTATUS status;

    call->buffer = buffer;
    atomic_fetch_add(&buffer->references, 1);
    buffer->map_size = (ULONG)(offsetof(NDK_LOGICAL_ADDRESS_MAPPING, AdapterPageArray) +
                               (size_t)(SLICES * SLICE / 4096) * sizeof(NDK_LOGICAL_ADDRESS));
    buffer->map = malloc(buffer->map_size);
    need(buffer->map != NULL);
    status =
        adapter->Dispatch->NdkBuildLAM(adapter, buffer->mdl, (SIZE_T)SLICES * SLICE, call_answered,
                                       call, buffer->map, &buffer->map_size, &buffer->fbo);
    call_end(call, status);
}

bool region_move(struct object *mr)
{
    NDK_MR *handle = (NDK_MR *)(void *)mr->header;
    struct call *call;

    if (object_step(mr, IDLE, BUSY)) {
        if (mr->fast) {
            map_it(mr);
            return true;
        }
        call = call_begin("NdkRegisterMr", mr, registered);
        call_end(call, handle->Dispatch->NdkRegisterMr(
                           handle, mr->buffer->mdl, (SIZE_T)SLICES * SLICE,
                           NDK_MR_FLAG_ALLOW_LOCAL_WRITE | NDK_MR_FLAG_ALLOW_REMOTE_READ |
                               NDK_MR_FLAG_ALLOW_REMOTE_WRITE | NDK_MR_FLAG_RDMA_READ_SINK,
                           call_answered, call));
        return true;
    }
    return !mr->fast && draw(300) == 0 && deregister(mr);
}
