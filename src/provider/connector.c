// SPDX-License-Identifier: MIT
/*
 * Connectors: creation, close, and what the connection tells of itself. See connector.h; the calls
 * are in connector_connect.c and connector_calls.c.
 *
 * A request is put into `pending` before the connection is asked to start, since its event may come
 * at once; a start that fails takes it back. Whoever gets the pointer by exchange completes it.
 */
#include "provider/connector.h"

#include <ntstatus.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/red.h"
#include "base/usdt.h"
#include "conn/reason_text.h"
#include "provider/adapter.h"
#include "provider/listener.h"
#include "provider/shared_endpoint.h"

/* ---- events of the connection (under conn->lock, except closed) -------------------------------
 */

static void count(atomic_ullong *counter)
{
    atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

static struct adapter_counters *counters_of(const struct connector *k)
{
    return k->object.adapter->counters;
}

/* Each attempt counts once: as one that came up, or as one that failed. Under conn->lock. */
static void count_up(struct connector *k)
{
    struct adapter_counters *counters = counters_of(k);

    k->counted = true;
    k->active = true;
    count(k->listener ? &counters->accept : &counters->connect);
    count(&counters->active_connection);
}

static void count_failure(struct connector *k)
{
    if (!k->counted || RED("connector-failure-counted-twice"))
        count(&counters_of(k)->connect_failure);
    k->counted = true;
}

/* Under conn->lock. */
static void show(struct connector *k, enum adapter_row_kind kind)
{
    struct os_addr local, peer;

    if (conn_addresses_locked(k->conn, &local, &peer))
        adapter_row_set(k->object.adapter, &k->row, kind, &local, &peer);
}

/* The reason of a failure in words, kept at the connector. Under conn->lock. */
static void keep_reason(struct connector *k, NTSTATUS status)
{
    char text[REASON_TEXT_MAX];

    reason_text(conn_reason_locked(k->conn), text, sizeof text);
    object_fail(&k->object, k->pending_call, status, "%s", text);
}

static void answer_pending(struct connector *k, NTSTATUS status)
{
    struct request *request = atomic_exchange(&k->pending, NULL);

    if (!request)
        return;
    if (!NT_SUCCESS(status))
        keep_reason(k, status);
    request_complete(request, status);
}

static void on_connected(void *up, NTSTATUS status)
{
    struct connector *k = up;

    if (!NT_SUCCESS(status)) {
        count_failure(k);
        if (k->qp && !RED("failed_connect_keeps_qp"))
            qp_unbind(k->qp, k->conn);
        if (RED("connector-failed-connect-frees-port")) {
            endpoint_drop(k->endpoint);
            k->endpoint = NULL;
        }
    } else {
        show(k, ADAPTER_ROW_CONNECTING);
    }
    /* Told again when it ends before the complete connect, which then has an answer of its own. */
    if (k->connect_told)
        return;
    k->connect_told = true;
    answer_pending(k, status);
}

static void on_established(void *up, NTSTATUS status)
{
    struct connector *k = up;

    if (NT_SUCCESS(status)) {
        count_up(k);
        show(k, ADAPTER_ROW_ESTABLISHED);
        USDT(established, k->conn, k->object.id, k->qp->object.id);
        log_debug("connector #%u: established with qp #%u", k->object.id, k->qp->object.id);
    } else {
        count_failure(k);
    }
    answer_pending(k, status);
}

/* The connection needs no message to be up: the call itself answers. */
static void on_completed(void *up)
{
    struct connector *k = up;

    count_up(k);
    show(k, ADAPTER_ROW_ESTABLISHED);
    USDT(established, k->conn, k->object.id, k->qp->object.id);
}

static void event_run(struct engine_item *item)
{
    struct connector *k = CONTAINING_RECORD(item, struct connector, event_item);
    KIRQL irql = callback_enter();

    if (k->event_ex)
        k->event_ex(k->event_context, k->event_reason);
    else
        k->event(k->event_context);
    callback_leave(irql);
    object_unref(&k->object);
}

static void on_disconnected(void *up, uint32_t reason)
{
    struct connector *k = up;
    char text[REASON_TEXT_MAX];

    USDT(disconnected, k->conn, k->object.id, reason);
    reason_text(reason, text, sizeof text);
    object_note(&k->object, "disconnected: %s", text);
    /* At the end that found the error the queue pair keeps the sharper reason it has. */
    if (k->qp &&
        (reason_source(reason) == REASON_TERMINATE_RECEIVED ||
         reason_source(reason) == REASON_PEER_RST || reason_source(reason) == REASON_TIMEOUT))
        object_note(&k->qp->object, "connector #%u: %s", k->object.id, text);

    if (reason_source(reason) != REASON_PEER_FIN)
        count(&counters_of(k)->connection_error);
    if (!k->event && !k->event_ex)
        return;
    k->event_reason = reason;
    object_ref(&k->object);
    strand_push(object_strand(&k->object), &k->event_item);
}

static void on_ended(void *up, NTSTATUS status)
{
    struct connector *k = up;
    struct request *request = atomic_exchange(&k->disconnecting, NULL);

    log_debug("connector #%u: ended", k->object.id);
    if (k->active) {
        k->active = false;
        atomic_fetch_sub_explicit(&counters_of(k)->active_connection, 1, memory_order_relaxed);
    } else if (k->listener && !RED("connector-inbound-failure-uncounted")) {
        count_failure(k); /* the peer left, or nobody wanted it: no other event tells of it */
    }
    if (!RED("connector-row-stays"))
        adapter_row_clear(k->object.adapter, &k->row);
    if (!request)
        return;
    if (!NT_SUCCESS(status)) {
        k->pending_call = CALL_DISCONNECT;
        keep_reason(k, status);
    }
    request_complete(request, status);
}

static void on_closed(void *up)
{
    struct connector *k = up;

    shared_endpoint_leave(k);
    if (k->listener)
        listener_startup_remove(k->listener, k);
    if (k->listener && !atomic_load(&k->delivered))
        object_discard(&k->object); /* no consumer ever saw it */
    object_unref(&k->object);
}

/* The listener's shard, behind its batch: shows the connector, or refuses it. */
static void request_run(struct engine_item *item)
{
    struct connector *k = CONTAINING_RECORD(item, struct connector, request_item);

    if (atomic_load(&k->delivered)) {
        KIRQL irql = callback_enter();

        k->listener->event(k->listener->event_context, (NDK_CONNECTOR *)(void *)k);
        callback_leave(irql);
    } else {
        conn_close(k->conn); /* a Reply with R=1 */
    }
    object_unref(&k->object);
}

static void on_requested(void *up)
{
    struct connector *k = up;

    show(k, ADAPTER_ROW_CONNECTING);
    /* One that will be refused counts as startup until it is gone. */
    if (RED("startup-refused-uncounted"))
        listener_startup_remove(k->listener, k);
    if (listener_may_deliver(k->listener)) {
        listener_startup_remove(k->listener, k);
        k->undecided = true;
        atomic_store(&k->delivered, true);
    }
    object_ref(&k->object);
    strand_push(object_strand(&k->object), &k->request_item);
}

static const struct conn_ops connector_ops = {
    .map = qp_map,
    .unmap = qp_unmap,
    .note = qp_note,
    .local = qp_local,
    .local_drop = qp_local_drop,
    .invalidate = qp_invalidate_token,
    .take_receive = qp_take_receive,
    .stop_waiting = qp_stop_waiting,
    .over = qp_over,
    .complete_receives = qp_complete_receives,
    .complete_requests = qp_complete_requests,
    .connected = on_connected,
    .requested = on_requested,
    .established = on_established,
    .completed = on_completed,
    .disconnected = on_disconnected,
    .ended = on_ended,
    .closed = on_closed,
};

/* ---- the object ----------------------------------------------------------------------------- */

/* The consumer has decided about an incoming connector. */
void connector_decided(struct connector *k)
{
    if (k->listener && k->undecided) {
        k->undecided = false;
        atomic_fetch_sub(&k->listener->undecided, 1);
    }
}

static void connector_cancel(struct object *object)
{
    struct connector *k = CONTAINING_RECORD(object, struct connector, object);

    connector_decided(k);
    conn_close(k->conn);
}

static void connector_release(struct object *object)
{
    struct connector *k = CONTAINING_RECORD(object, struct connector, object);

    adapter_row_clear(k->object.adapter, &k->row);
    endpoint_drop(k->endpoint);
    if (k->conn)
        conn_unref(k->conn);
}

static const struct object_class connector_class = {
    .type = NdkObjectTypeConnector,
    .name = "connector",
    .size = sizeof(struct connector),
    .cancel = connector_cancel,
    .release = connector_release,
};

/* References: the handle, and the connection's. */
static struct connector *connector_new(struct adapter *adapter, struct engine_shard *home)
{
    struct object *object = object_new(&connector_class, &adapter->object, &connector_dispatch);
    struct connector *k;

    if (!object)
        return NULL;
    k = CONTAINING_RECORD(object, struct connector, object);
    object->home = home;
    k->event_item.run = event_run;
    k->request_item.run = request_run;
    k->conn = conn_new(&connector_ops, k, &adapter->options, &adapter->counters->wire);
    if (!k->conn || !object_strand(object)) {
        if (!RED("connector-failed-create-leaks"))
            object_discard(object);
        return NULL;
    }
    object_ref(object);
    return k;
}

NTSTATUS connector_create(NDK_ADAPTER *ndk, NDK_FN_CREATE_COMPLETION completion, PVOID context,
                          NDK_CONNECTOR **out)
{
    struct adapter *adapter = adapter_from(ndk);
    struct object *parent = &adapter->object;
    NTSTATUS status = object_injected(parent, CALL_CREATE_CONNECTOR);
    struct connector *k = NULL;

    if (status == STATUS_SUCCESS) {
        k = connector_new(adapter, engine_shard_next());
        if (!k)
            status = object_fail(parent, CALL_CREATE_CONNECTOR, STATUS_INSUFFICIENT_RESOURCES,
                                 "no memory");
    }
    return create_answer(parent, CALL_CREATE_CONNECTOR, completion, context, status,
                         k ? &k->object : NULL, (void **)out);
}

bool connector_incoming(struct listener *listener, int fd, const struct os_addr *peer)
{
    struct connector *k = connector_new(listener->object.adapter, listener->object.home);
    bool started = false;

    if (!k) {
        os_tcp_abort(fd);
        return false;
    }
    k->listener = listener;
    object_follow(&k->object, &listener->object);
    k->endpoint = listener->endpoint;
    endpoint_ref(k->endpoint);
    k->family = listener->family;
    /* From the list on, a close of the listener on another thread may close it at any moment. */
    object_ref(&k->object);
    if (listener_startup_add(listener, k, peer))
        started = conn_incoming(k->conn, fd, peer, listener->object.home);
    else
        os_tcp_abort(fd);
    if (!started)
        conn_close(k->conn); /* never started: closed, and with it discarded, at once */
    object_unref(&k->object);
    return started;
}
