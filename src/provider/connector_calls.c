// SPDX-License-Identifier: MIT
/*
 * The calls of a connector but for the connects (connector_connect.c): CompleteConnect, Accept,
 * Reject, Disconnect, and its dispatch table. A request is put into `pending` before the connection
 * is asked to start, since its event may come at once; a start that fails takes it back. Whoever
 * gets the pointer by exchange completes it. The consumer may close the connector in a completion
 * while the call is still running, so a call that touches it afterwards holds a reference
 * (call_begin, call_end).
 */
#include <ntstatus.h>
#include <stdlib.h>

#include "base/red.h"
#include "base/usdt.h"
#include "conn/reason_text.h"
#include "provider/adapter.h"
#include "provider/connector.h"
#include "provider/listener.h"

/* ---- starting a request --------------------------------------------------------------------- */

NTSTATUS connector_take_qp(struct connector *k, enum call call, NDK_QP *ndk_qp)
{
    struct qp *qp = ndk_qp ? qp_from(ndk_qp) : NULL;
    NTSTATUS status;

    if (!qp || ndk_qp->Header.ObjectType != NdkObjectTypeQp ||
        qp->object.adapter != k->object.adapter)
        return object_fail(&k->object, call, STATUS_INVALID_PARAMETER,
                           "the QP is NULL, no QP, or of another adapter");
    status = qp_bind(qp, k->conn);
    if (status != STATUS_SUCCESS)
        return object_fail(&k->object, call, status,
                           status == STATUS_INTERNAL_ERROR
                               ? "a CQ of qp #%u has overrun, rule NDKPI 4.4"
                               : "qp #%u is connecting, connected, or was connected before; a QP "
                                 "serves one connection",
                           qp->object.id);
    object_follow(&k->object, &qp->object);
    k->qp = qp;
    return STATUS_SUCCESS;
}

/*
 * The consumer may close the connector inside the completion of a call that has not returned yet,
 * so each call below holds a reference of its own: it touches the connector after the request that
 * it has started may have been completed.
 */
static void call_begin(struct connector *k)
{
    object_ref(&k->object);
}

static NTSTATUS call_end(struct connector *k, NTSTATUS status)
{
    object_unref(&k->object);
    return status;
}

void connector_untake_qp(struct connector *k)
{
    struct qp *qp = k->qp;

    k->qp = NULL;
    k->object.antecedent_count--;
    qp_unbind(qp, k->conn);
    object_unref(&qp->object);
}

/* A call in the wrong state; says why the connection ended, if it has. */
static NTSTATUS fail_state(struct connector *k, enum call call, NTSTATUS status, const char *what,
                           const char *rule)
{
    uint32_t reason = conn_reason(k->conn);
    char text[REASON_TEXT_MAX] = "";

    if (reason)
        reason_text(reason, text, sizeof text);
    return object_fail(&k->object, call, status, "%s%s%s, rule %s", what, reason ? ": " : "", text,
                       rule);
}

NTSTATUS connector_check_private(struct connector *k, enum call call, CONST VOID *data,
                                 ULONG length, ULONG most)
{
    if (length > most)
        return object_fail(&k->object, call, STATUS_INVALID_BUFFER_SIZE,
                           "private data (have %u octets, need <= %u), rule NDKPI 13", length,
                           most);
    if (length && !data && !RED("connector-null-data-unchecked"))
        return object_fail(&k->object, call, STATUS_INVALID_PARAMETER,
                           "pPrivateData is NULL with length %u", length);
    return STATUS_SUCCESS;
}

/* ---- CompleteConnect ------------------------------------------------------------------------ */

static NTSTATUS complete_connect(struct connector *k, enum call call,
                                 NDK_FN_DISCONNECT_EVENT_CALLBACK event,
                                 NDK_FN_DISCONNECT_EVENT_CALLBACK_EX event_ex, PVOID event_context,
                                 NDK_FN_REQUEST_COMPLETION completion, PVOID context)
{
    NTSTATUS status = object_injected(&k->object, call);
    struct request *request = NULL, *none = NULL;
    bool done = false;

    if (status == STATUS_SUCCESS) {
        request = request_new(&k->object, call, completion, context);
        if (!request)
            status = object_fail(&k->object, call, STATUS_INSUFFICIENT_RESOURCES, "no memory");
    }
    if (request && !atomic_compare_exchange_strong(&k->pending, &none, request)) {
        request_drop(request);
        request = NULL;
        status = object_fail(&k->object, call, STATUS_CONNECTION_INVALID,
                             "another request of this connector is pending");
    }
    if (request) {
        k->pending_call = call;
        /* A call that will be refused must not take an established connection's event. */
        if (conn_may_complete(k->conn) || RED("connector-refused-complete-takes-event")) {
            k->event = event;
            k->event_ex = event_ex;
            k->event_context = event_context;
        }
        status = conn_complete(k->conn, &done);
        if (status == STATUS_SUCCESS && !done)
            return STATUS_PENDING;
        /* Known at once; but an end of the connection may have answered it meanwhile. */
        if (!atomic_exchange(&k->pending, NULL))
            return STATUS_PENDING;
        request_drop(request);
        if (status != STATUS_SUCCESS)
            fail_state(k, call, status, "there is no accepted connect to complete", "NDKPI 13.3");
    }
    return request_answer(&k->object, call, completion, context, status);
}

static NTSTATUS connector_complete(NDK_CONNECTOR *ndk, NDK_FN_DISCONNECT_EVENT_CALLBACK event,
                                   PVOID event_context, NDK_FN_REQUEST_COMPLETION completion,
                                   PVOID context)
{
    struct connector *k = connector_from(ndk);

    call_begin(k);
    return call_end(k, complete_connect(k, CALL_COMPLETE_CONNECT, event, NULL, event_context,
                                        completion, context));
}

static NTSTATUS connector_complete_ex(NDK_CONNECTOR *ndk, NDK_FN_DISCONNECT_EVENT_CALLBACK_EX event,
                                      PVOID event_context, NDK_FN_REQUEST_COMPLETION completion,
                                      PVOID context)
{
    struct connector *k = connector_from(ndk);

    call_begin(k);
    return call_end(k, complete_connect(k, CALL_COMPLETE_CONNECT_EX, NULL, event, event_context,
                                        completion, context));
}

/* ---- Accept --------------------------------------------------------------------------------- */

struct accept_call {
    enum call call;
    NDK_QP *qp;
    ULONG inbound, outbound, data_length;
    CONST VOID *data;
    NDK_FN_DISCONNECT_EVENT_CALLBACK event;
    NDK_FN_DISCONNECT_EVENT_CALLBACK_EX event_ex;
    PVOID event_context;
};

static NTSTATUS accept_start(struct connector *k, const struct accept_call *c,
                             NDK_FN_REQUEST_COMPLETION completion, PVOID context)
{
    struct conn_binding binding = {.inbound_reads = c->inbound,
                                   .outbound_reads = c->outbound,
                                   .private_data = c->data,
                                   .private_length = c->data_length};
    struct request *request;
    NTSTATUS status;
    bool undecided;

    if (!k->listener || k->qp)
        return object_fail(&k->object, c->call, STATUS_CONNECTION_INVALID,
                           "there is no undecided incoming connection here, rule NDKPI 13.4");
    status = connector_take_qp(k, c->call, c->qp);
    if (status != STATUS_SUCCESS)
        return status;
    request = request_new(&k->object, c->call, completion, context);
    if (!request) {
        connector_untake_qp(k);
        return object_fail(&k->object, c->call, STATUS_INSUFFICIENT_RESOURCES, "no memory");
    }
    k->event = c->event;
    k->event_ex = c->event_ex;
    k->event_context = c->event_context;
    k->object.home = k->qp->object.home;
    binding.qp = k->qp;
    binding.initiator = &k->qp->initiator;
    binding.receive = &k->qp->receive;
    binding.home = k->qp->object.home;
    binding.group = k->qp->receive_cq->group;
    binding.dead = &k->qp->dead;
    k->pending_call = c->call;
    atomic_store(&k->pending, request);
    /* Before it can be completed: a close inside the completion decides too. */
    undecided = k->undecided;
    connector_decided(k);
    USDT(accept, k->conn, k->object.id, k->qp->object.id);
    status = conn_accept(k->conn, &binding);
    if (status == STATUS_SUCCESS)
        return STATUS_PENDING;
    if (undecided) {
        k->undecided = true;
        atomic_fetch_add(&k->listener->undecided, 1);
    }
    atomic_store(&k->pending, NULL);
    request_drop(request);
    connector_untake_qp(k);
    return fail_state(k, c->call, status,
                      "the connecting peer has gone or the connection was decided before",
                      "NDKPI 13.4");
}

static NTSTATUS accept_connection(struct connector *k, const struct accept_call *c,
                                  NDK_FN_REQUEST_COMPLETION completion, PVOID context)
{
    NTSTATUS status = object_injected(&k->object, c->call);

    if (status == STATUS_SUCCESS)
        status = connector_check_private(k, c->call, c->data, c->data_length,
                                         k->object.adapter->options.max_callee_data);
    if (status == STATUS_SUCCESS)
        status = accept_start(k, c, completion, context);
    if (status == STATUS_PENDING)
        return status;
    return request_answer(&k->object, c->call, completion, context, status);
}

static NTSTATUS connector_accept(NDK_CONNECTOR *ndk, NDK_QP *qp, ULONG inbound, ULONG outbound,
                                 CONST PVOID data, ULONG data_length,
                                 NDK_FN_DISCONNECT_EVENT_CALLBACK event, PVOID event_context,
                                 NDK_FN_REQUEST_COMPLETION completion, PVOID context)
{
    const struct accept_call c = {.call = CALL_ACCEPT,
                                  .qp = qp,
                                  .inbound = inbound,
                                  .outbound = outbound,
                                  .data = data,
                                  .data_length = data_length,
                                  .event = event,
                                  .event_context = event_context};

    struct connector *k = connector_from(ndk);

    call_begin(k);
    return call_end(k, accept_connection(k, &c, completion, context));
}

static NTSTATUS connector_accept_ex(NDK_CONNECTOR *ndk, NDK_QP *qp, ULONG inbound, ULONG outbound,
                                    CONST PVOID data, ULONG data_length,
                                    NDK_FN_DISCONNECT_EVENT_CALLBACK_EX event, PVOID event_context,
                                    NDK_FN_REQUEST_COMPLETION completion, PVOID context)
{
    const struct accept_call c = {.call = CALL_ACCEPT_EX,
                                  .qp = qp,
                                  .inbound = inbound,
                                  .outbound = outbound,
                                  .data = data,
                                  .data_length = data_length,
                                  .event_ex = event,
                                  .event_context = event_context};

    struct connector *k = connector_from(ndk);

    call_begin(k);
    return call_end(k, accept_connection(k, &c, completion, context));
}

NTSTATUS connector_reject(NDK_CONNECTOR *ndk, CONST PVOID data, ULONG length)
{
    struct connector *k = connector_from(ndk);
    NTSTATUS status = object_injected(&k->object, CALL_REJECT);

    if (status == STATUS_SUCCESS)
        status = connector_check_private(k, CALL_REJECT, data, length,
                                         k->object.adapter->options.max_callee_data);
    if (status != STATUS_SUCCESS)
        return status;
    status = conn_reject(k->conn, data, length);
    if (status != STATUS_SUCCESS)
        return fail_state(k, CALL_REJECT, status, "there is nothing undecided to reject",
                          "NDKPI 13.5");
    connector_decided(k);
    return STATUS_SUCCESS;
}

/* ---- Disconnect ----------------------------------------------------------------------------- */

static NTSTATUS disconnect(struct connector *k, NDK_FN_REQUEST_COMPLETION completion, PVOID context)
{
    NTSTATUS status = object_injected(&k->object, CALL_DISCONNECT);
    struct request *request = NULL, *none = NULL;
    bool done = false;

    if (status == STATUS_SUCCESS) {
        request = request_new(&k->object, CALL_DISCONNECT, completion, context);
        if (!request)
            status = object_fail(&k->object, CALL_DISCONNECT, STATUS_INSUFFICIENT_RESOURCES,
                                 "no memory");
    }
    if (request && !atomic_compare_exchange_strong(&k->disconnecting, &none, request)) {
        request_drop(request);
        request = NULL;
        status = object_fail(&k->object, CALL_DISCONNECT, STATUS_CONNECTION_INVALID,
                             "a disconnect is pending already");
    }
    if (request) {
        status = conn_disconnect(k->conn, &done);
        if (status == STATUS_SUCCESS && !done)
            return STATUS_PENDING;
        if (!atomic_exchange(&k->disconnecting, NULL))
            return STATUS_PENDING;
        request_drop(request);
        if (status != STATUS_SUCCESS)
            object_fail(&k->object, CALL_DISCONNECT, status,
                        "the connector is not connected, rule NDKPI 13.9");
    }
    return request_answer(&k->object, CALL_DISCONNECT, completion, context, status);
}

static NTSTATUS connector_disconnect(NDK_CONNECTOR *ndk, NDK_FN_REQUEST_COMPLETION completion,
                                     PVOID context)
{
    struct connector *k = connector_from(ndk);

    call_begin(k);
    return call_end(k, disconnect(k, completion, context));
}

const NDK_CONNECTOR_DISPATCH connector_dispatch = {
    .NdkCloseConnector = object_close,
    .NdkQueryExtension = object_query_extension,
    .NdkConnect = connector_connect,
    .NdkConnectWithSharedEndpoint = connector_connect_shared,
    .NdkCompleteConnect = connector_complete,
    .NdkAccept = connector_accept,
    .NdkReject = connector_reject,
    .NdkGetConnectionData = connector_get_data,
    .NdkGetLocalAddress = connector_get_local,
    .NdkGetPeerAddress = connector_get_peer,
    .NdkDisconnect = connector_disconnect,
    .NdkCompleteConnectEx = connector_complete_ex,
    .NdkAcceptEx = connector_accept_ex,
};
