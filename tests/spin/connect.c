// SPDX-License-Identifier: MIT
/*
 * Connections. The private data of a connect names its link, so the passive end finds what both
 * ends know. An end decides in the callback, or leaves that to whoever draws it.
 */
#include <stdlib.h>
#include <string.h>

#include "spin.h"

#define MAGIC 0x6b6e696cu

struct name { /* what a connect brings along; a pattern follows */
    uint32_t magic, link, seed, length;
};

static NDK_CONNECTOR *handle_of(const struct object *connector)
{
    return (NDK_CONNECTOR *)(void *)connector->header;
}

static void step_set(struct object *object, enum step step)
{
    pthread_mutex_lock(&object->lock);
    object->step = step;
    pthread_mutex_unlock(&object->lock);
}

/* Callbacks of one connector come one at a time. */
static void strand_enter(struct object *connector)
{
    if (atomic_exchange(&connector->in_callback, true))
        spin_die("two callbacks of connector #%u at once", connector->number);
    need(object_state(connector) == OPEN || object_state(connector) == CLOSING);
    running_enter(connector);
}

static void strand_leave(struct object *connector)
{
    atomic_store(&connector->in_callback, false);
    running_leave(connector);
}

static void expect(const struct call *call, NTSTATUS status, const NTSTATUS *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (status == list[i])
            return;
    if (now.capped && status == STATUS_INSUFFICIENT_RESOURCES)
        return;
    spin_die("%s #%u: %s", call->name, call->object->number, softndk_status_name(status));
}

/* ---- up ------------------------------------------------------------------------------------- */

static VOID disconnected(PVOID context)
{
    struct object *connector = context;

    strand_enter(connector);
    note("disconnect event", connector, 0);
    if (atomic_fetch_add(&connector->disconnects, 1) != 0)
        spin_die("connector #%u: a second disconnect event", connector->number);
    if (draw(3) == 0)
        object_doom(connector);
    else
        step_set(connector, DEAD);
    strand_leave(connector);
}

static VOID disconnected_ex(PVOID context, ULONG reason)
{
    char text[128];

    need(softndk_reason_text(reason, text, sizeof text) > 0);
    disconnected(context);
}

static void established(struct call *call, NTSTATUS status)
{
    static const NTSTATUS fails[] = {STATUS_SUCCESS,    STATUS_CONNECTION_ABORTED,
                                     STATUS_IO_TIMEOUT, STATUS_CONNECTION_REFUSED,
                                     STATUS_CANCELLED,  STATUS_CONNECTION_INVALID};
    struct object *connector = call->object, *qp = call->other;
    bool success = status == STATUS_SUCCESS, in_callback = atomic_load(&call->answers) != 0;

    expect(call, status, fails, sizeof fails / sizeof fails[0]);
    if (in_callback)
        strand_enter(connector);
    step_set(qp, success ? READY : DEAD);
    object_step(connector, BUSY, success ? READY : DEAD);
    atomic_fetch_add(&count_connections, success);
    if (in_callback)
        strand_leave(connector);
}

static void reject(struct object *connector)
{
    NTSTATUS status;

    note("NdkReject", connector, 0);
    status = handle_of(connector)->Dispatch->NdkReject(handle_of(connector), NULL, 0);
    need(status == STATUS_SUCCESS || status == STATUS_CONNECTION_ABORTED ||
         status == STATUS_CONNECTION_INVALID);
    step_set(connector, DEAD);
    if (connector->qp)
        step_set(connector->qp, DEAD);
}

/* What the queue pair sends from now on is this link's: not in the middle of a post. */
static void link_join(struct link *link, struct object *qp, unsigned end)
{
    pthread_mutex_lock(&qp->queues[1].turn);
    pthread_mutex_lock(&qp->lock);
    qp->at = link;
    qp->end = end;
    pthread_mutex_unlock(&qp->lock);
    pthread_mutex_unlock(&qp->queues[1].turn);
}

static void accept_it(struct object *connector)
{
    NDK_CONNECTOR *k = handle_of(connector);
    struct object *qp = object_claim(connector->world, QP, IDLE, BUSY);
    NDK_QP *handle;
    struct call *call;
    ULONG in = draw(5), out = draw(5);

    if (!qp) {
        reject(connector);
        return;
    }
    link_join(connector->at, qp, 1);
    connector->qp = qp;
    pthread_mutex_lock(&now.links_lock);
    connector->at->qps[1] = qp;
    pthread_mutex_unlock(&now.links_lock);
    for (unsigned i = draw(24); i && !qp->srq; i--)
        post_a_receive(qp);
    handle = (NDK_QP *)(void *)qp->header;
    call = call_begin("NdkAccept", connector, established);
    call->other = qp;
    if (draw(4))
        call_end(call, k->Dispatch->NdkAcceptEx(k, handle, in, out, NULL, 0, disconnected_ex,
                                                connector, call_answered, call));
    else
        call_end(call, k->Dispatch->NdkAccept(k, handle, in, out, NULL, 0, disconnected, connector,
                                              call_answered, call));
    object_unuse(qp);
}

static void complete_it(struct object *connector)
{
    NDK_CONNECTOR *k = handle_of(connector);
    struct call *call = call_begin("NdkCompleteConnect", connector, established);

    call->other = connector->qp;
    if (draw(4))
        call_end(call, k->Dispatch->NdkCompleteConnectEx(k, disconnected_ex, connector,
                                                         call_answered, call));
    else
        call_end(call,
                 k->Dispatch->NdkCompleteConnect(k, disconnected, connector, call_answered, call));
}

bool connect_decide(struct object *connector)
{
    if (!object_step(connector, DECIDE, BUSY))
        return false;
    if (draw(12) == 0)
        reject(connector);
    else if (draw(20) == 0)
        object_doom(connector); /* abandoned */
    else if (connector->end)
        accept_it(connector);
    else
        complete_it(connector);
    return true;
}

/* ---- active --------------------------------------------------------------------------------- */

static void connected(struct call *call, NTSTATUS status)
{
    static const NTSTATUS fails[] = {STATUS_SUCCESS,    STATUS_CONNECTION_REFUSED,
                                     STATUS_IO_TIMEOUT, STATUS_CONNECTION_ABORTED,
                                     STATUS_CANCELLED,  STATUS_ADDRESS_ALREADY_EXISTS};
    struct object *connector = call->object, *qp = call->other;
    bool in_callback = atomic_load(&call->answers) != 0;

    expect(call, status, fails, sizeof fails / sizeof fails[0]);
    if (in_callback)
        strand_enter(connector);
    if (status == STATUS_SUCCESS) {
        object_step(connector, BUSY, DECIDE);
        if (draw(2) && object_use(connector)) {
            connect_decide(connector);
            object_unuse(connector);
        }
    } else { /* the queue pair is as before, and the connector too if nothing began */
        step_set(connector, in_callback ? DEAD : IDLE);
        connector->qp = NULL;
        step_set(qp, IDLE);
    }
    if (in_callback)
        strand_leave(connector);
}

static struct link *link_new(struct object *connector, struct object *qp)
{
    struct link *link = calloc(1, sizeof *link);

    need(link != NULL);
    link->seed = draw(1u << 20);
    link->qps[0] = qp;
    pthread_mutex_lock(&now.links_lock);
    link->number = now.link_count;
    if (now.link_count < LINKS)
        now.links[now.link_count++] = link;
    pthread_mutex_unlock(&now.links_lock);
    if (link->number == LINKS) {
        free(link);
        return NULL;
    }
    link_join(link, qp, 0);
    connector->qp = qp;
    connector->at = link;
    return link;
}

static void connect_call(struct object *connector, struct object *qp, const struct object *listener,
                         const struct link *link)
{
    NDK_CONNECTOR *k = handle_of(connector);
    NDK_QP *handle = (NDK_QP *)(void *)qp->header;
    struct object *endpoint = draw(3) ? NULL : object_pick(connector->world, ENDPOINT, NULL);
    uint8_t data[sizeof(struct name) + PRIVATE];
    struct name name = {MAGIC, link->number, link->seed, draw(PRIVATE + 1)};
    ULONG length = (ULONG)sizeof name + name.length, in = draw(5), out = draw(5);
    SOCKADDR_INET from = listener->address, to = listener->address;
    struct call *call;

    from.Ipv4.sin_port = 0;
    memcpy(data, &name, sizeof name);
    fill(data + sizeof name, name.length, name.seed);
    call =
        call_begin(endpoint ? "NdkConnectWithSharedEndpoint" : "NdkConnect", connector, connected);
    call->other = qp;
    if (endpoint) {
        NDK_SHARED_ENDPOINT *e = (NDK_SHARED_ENDPOINT *)(void *)endpoint->header;

        call_end(call, k->Dispatch->NdkConnectWithSharedEndpoint(
                           k, handle, e, (PSOCKADDR)&to, listener->address_length, in, out, data,
                           length, call_answered, call));
        object_unuse(endpoint);
    } else {
        call_end(call, k->Dispatch->NdkConnect(
                           k, handle, (PSOCKADDR)&from, listener->address_length, (PSOCKADDR)&to,
                           listener->address_length, in, out, data, length, call_answered, call));
    }
}

bool connect_begin(struct world *world)
{
    struct world *there = draw(4) ? &now.worlds[world == &now.worlds[0]] : world;
    struct object *listener = object_claim(there, LISTENER, READY, READY);
    struct object *connector = listener ? object_claim(world, CONNECTOR, IDLE, BUSY) : NULL;
    struct object *qp = connector ? object_claim(world, QP, IDLE, BUSY) : NULL;
    struct link *link = qp ? link_new(connector, qp) : NULL;

    if (link) {
        for (unsigned i = draw(24); i && !qp->srq; i--)
            post_a_receive(qp);
        connect_call(connector, qp, listener, link);
    } else {
        if (connector)
            object_step(connector, BUSY, IDLE);
        if (qp)
            object_step(qp, BUSY, IDLE);
    }
    if (qp)
        object_unuse(qp);
    if (connector)
        object_unuse(connector);
    if (listener)
        object_unuse(listener);
    return link != NULL;
}

/* ---- passive -------------------------------------------------------------------------------- */

static struct link *link_of(NDK_CONNECTOR *k)
{
    uint8_t data[512];
    struct name name;
    ULONG in, out, length = sizeof data;
    struct link *link;

    need(k->Dispatch->NdkGetConnectionData(k, &in, &out, data, &length) == STATUS_SUCCESS);
    need(length >= sizeof name);
    memcpy(&name, data, sizeof name);
    need(name.magic == MAGIC && length >= sizeof name + name.length && name.length <= PRIVATE);
    need(check(data + sizeof name, name.length, name.seed));
    need(in <= 16 && out <= 16);
    pthread_mutex_lock(&now.links_lock);
    need(name.link < now.link_count);
    link = now.links[name.link];
    pthread_mutex_unlock(&now.links_lock);
    need(link->seed == name.seed);
    return link;
}

VOID connect_event(PVOID context, NDK_CONNECTOR *k)
{
    struct object *listener = context, *connector;
    bool placed;

    need(object_state(listener) != CLOSED);
    note("connect event", listener, 0);
    connector = object_make(listener->world, CONNECTOR, true, &placed);
    connector->end = 1;
    connector->at = link_of(k);
    connector->step = DECIDE;
    object_opened(connector, &k->Header, k->Dispatch->NdkCloseConnector);
    if (!placed || atomic_load(&now.ending)) {
        object_doom(connector);
    } else if (draw(3) && object_use(connector)) {
        connect_decide(connector);
        object_unuse(connector);
    }
}

/* ---- down, and questions -------------------------------------------------------------------- */

static void ended(struct call *call, NTSTATUS status)
{
    static const NTSTATUS fails[] = {STATUS_SUCCESS, STATUS_IO_TIMEOUT, STATUS_CANCELLED,
                                     STATUS_CONNECTION_ABORTED, STATUS_CONNECTION_INVALID};
    bool in_callback = atomic_load(&call->answers) != 0;

    expect(call, status, fails, sizeof fails / sizeof fails[0]);
    if (in_callback)
        strand_enter(call->object);
    step_set(call->object, DEAD);
    step_set(call->other, DEAD);
    if (status == STATUS_SUCCESS)
        atomic_store(&call->other->ended, true);
    if (in_callback)
        strand_leave(call->object);
}

bool connect_disconnect(struct object *connector)
{
    NDK_CONNECTOR *k = handle_of(connector);
    struct call *call;

    if (!object_step(connector, READY, BUSY))
        return false;
    call = call_begin("NdkDisconnect", connector, ended);
    call->other = connector->qp;
    call_end(call, k->Dispatch->NdkDisconnect(k, call_answered, call));
    return true;
}

bool connect_ask(struct object *connector)
{
    NDK_CONNECTOR *k = handle_of(connector);
    SOCKADDR_INET address;
    ULONG length = sizeof address, size = 0;
    NTSTATUS status;

    note("questions", connector, 0);
    status = k->Dispatch->NdkGetLocalAddress(k, (PSOCKADDR)&address, &length);
    need(status == STATUS_SUCCESS || status == STATUS_CONNECTION_INVALID);
    length = sizeof address;
    status = k->Dispatch->NdkGetPeerAddress(k, (PSOCKADDR)&address, &length);
    need(status == STATUS_SUCCESS || status == STATUS_CONNECTION_INVALID);
    status = k->Dispatch->NdkGetConnectionData(k, NULL, NULL, NULL, &size);
    need(status == STATUS_SUCCESS || status == STATUS_CONNECTION_INVALID);
    return true;
}
