// SPDX-License-Identifier: MIT
/*
 * Ends of connections (lifetime 10, NDKPI 13.9): who is told, once; what is flushed and what is
 * not; when NdkDisconnect is done; what can no longer be used. Where the documents leave a set of
 * statuses open, the set is accepted.
 */
#include "kit_steps.h"

#define RECEIVES 3

/* A request that was cut off may be CANCELLED, or the first one the reason why. */
static const NTSTATUS cut_off[] = {STATUS_CANCELLED, STATUS_IO_TIMEOUT, STATUS_CONNECTION_ABORTED,
                                   STATUS_PENDING};
static const NTSTATUS invalid[] = {STATUS_CONNECTION_INVALID, STATUS_CONNECTION_ACTIVE,
                                   STATUS_CONNECTION_ABORTED, STATUS_PENDING};

static BOOLEAN expect_cancelled(struct kit_request **list, ULONG n)
{
    for (ULONG i = 0; i < n; i++)
        TRY_OR_FALSE(kit_expect(list[i], STATUS_CANCELLED, NULL));
    return TRUE;
}

static BOOLEAN is_pending(struct kit *k, struct kit_call *call, const char *what)
{
    return kit_os_get(&call->completions) || call->returned != STATUS_PENDING
               ? kit_fail(k, KIT_HERE, "%s is done already (have %s)", what,
                          kit_status_name(call->status))
               : TRUE;
}

/* ---- in good order -------------------------------------------------------------------------- */

/* arg 0: the active side begins; 1: the passive side. */
static VOID one_after_the_other(struct kit *k)
{
    struct kit_request *first_receives[RECEIVES], *second_receives[RECEIVES];
    struct kit_call *first, *second;
    struct kit_steps s;
    struct kit_end *one, *other;

    TRY(kit_steps_to(k, KIT_STEP_CONNECTED, NULL, &s));
    one = k->test->arg ? &s.b : &s.a;
    other = k->test->arg ? &s.a : &s.b;
    TRY(kit_steps_receives(one, first_receives, RECEIVES));
    TRY(kit_steps_receives(other, second_receives, RECEIVES));
    first = kit_disconnect_start(one->connector);
    TRY(first != NULL);
    TRY(kit_steps_disconnected(other));
    kit_settle(k);
    /* The peer's disconnect flushes nothing and answers nothing (lifetime 13, rule 10). */
    CHECK(k, kit_cq_is_empty(other->receive), "the peer's disconnect flushed receives");
    TRY(is_pending(k, first, "NdkDisconnect before the other side has disconnected"));
    second = kit_disconnect_start(other->connector);
    TRY(kit_answer_is(second, STATUS_SUCCESS));
    TRY(kit_answer_is(first, STATUS_SUCCESS));
    TRY(expect_cancelled(first_receives, RECEIVES));
    TRY(expect_cancelled(second_receives, RECEIVES));
    kit_settle(k);
    CHECK_EQUAL(k, "disconnect events at the side that began",
                kit_os_get(&one->connector->disconnects), 0);
    CHECK_EQUAL(k, "disconnect events at the other side",
                kit_os_get(&other->connector->disconnects), 1);
}

static VOID at_the_same_time(struct kit *k)
{
    struct kit_request *receives[2][RECEIVES];
    struct kit_call *a, *b;
    struct kit_steps s;

    TRY(kit_steps_to(k, KIT_STEP_CONNECTED, NULL, &s));
    TRY(kit_steps_receives(&s.a, receives[0], RECEIVES));
    TRY(kit_steps_receives(&s.b, receives[1], RECEIVES));
    a = kit_disconnect_start(s.a.connector);
    b = kit_disconnect_start(s.b.connector);
    TRY(kit_answer_is(a, STATUS_SUCCESS));
    TRY(kit_answer_is(b, STATUS_SUCCESS));
    TRY(expect_cancelled(receives[0], RECEIVES));
    TRY(expect_cancelled(receives[1], RECEIVES));
}

/* Called inside the event. */
static VOID disconnect_too(struct kit_connector *connector)
{
    struct kit_call **call = connector->context;

    *call = kit_disconnect_start(connector);
}

static VOID inside_the_event(struct kit *k)
{
    struct kit_call *first, **second = kit_alloc(k, sizeof *second);
    struct kit_steps s;

    TRY(second != NULL);
    TRY(kit_steps_to(k, KIT_STEP_CONNECTED, NULL, &s));
    s.b.connector->context = second;
    s.b.connector->in_callback = disconnect_too;
    first = kit_disconnect_start(s.a.connector);
    TRY(kit_steps_disconnected(&s.b));
    TRY(kit_answer_is(*second, STATUS_SUCCESS));
    TRY(kit_answer_is(first, STATUS_SUCCESS));
}

/* The other side closes its connector instead: the disconnect is done, one way or the other. */
static VOID answered_by_a_close(struct kit *k)
{
    static const NTSTATUS done[] = {STATUS_SUCCESS, STATUS_CONNECTION_ABORTED, STATUS_PENDING};
    struct kit_request *receives[RECEIVES];
    struct kit_call *disconnect;
    struct kit_steps s;

    TRY(kit_steps_to(k, KIT_STEP_CONNECTED, NULL, &s));
    TRY(kit_steps_receives(&s.a, receives, RECEIVES));
    disconnect = kit_disconnect_start(s.a.connector);
    TRY(kit_steps_disconnected(&s.b));
    TRY(kit_close(&s.b.connector->object));
    TRY(kit_status_among(k, KIT_HERE, "NdkDisconnect", kit_answer(disconnect), done));
    TRY(expect_cancelled(receives, RECEIVES));
}

/* What was sent before the disconnect has arrived when the event comes. */
static VOID behind_the_sends(struct kit *k)
{
    enum { COUNT = 8, LENGTH = 20000 };
    struct kit_request *receives[COUNT], *sends[COUNT];
    struct kit_memory *out, *in;
    struct kit_call *first, *second;
    struct kit_steps s;
    NDK_SGE sge;

    TRY(kit_steps_to(k, KIT_STEP_CONNECTED, NULL, &s));
    TRY(kit_memory_new(s.a.pd, LENGTH, 0, &out));
    TRY(kit_memory_new(s.b.pd, COUNT * LENGTH, NDK_MR_FLAG_ALLOW_LOCAL_WRITE, &in));
    kit_fill(out->data, LENGTH, 5);
    for (ULONG i = 0; i < COUNT; i++) {
        sge = kit_sge(in, i * LENGTH, LENGTH);
        TRY(kit_ok(receives[i] = kit_receive(s.b.qp, &sge, 1)));
    }
    sge = kit_sge(out, 0, LENGTH);
    for (ULONG i = 0; i < COUNT; i++)
        TRY(kit_ok(sends[i] = kit_send(s.a.qp, &sge, 1, 0)));
    for (ULONG i = 0; i < COUNT; i++)
        TRY(kit_expect(sends[i], STATUS_SUCCESS, NULL));
    first = kit_disconnect_start(s.a.connector);
    TRY(kit_steps_disconnected(&s.b));
    for (ULONG i = 0; i < COUNT; i++) {
        TRY(kit_expect(receives[i], STATUS_SUCCESS, NULL));
        TRY(kit_filled(k, "a message sent before the disconnect", in->data + i * LENGTH, LENGTH,
                       5));
    }
    second = kit_disconnect_start(s.b.connector);
    TRY(kit_answer_is(second, STATUS_SUCCESS));
    TRY(kit_answer_is(first, STATUS_SUCCESS));
}

/* Silent writes are carried out before NdkDisconnect is done (lifetime 6.4). */
static VOID waits_for_silent_requests(struct kit *k)
{
    enum { COUNT = 8, LENGTH = 20000 };
    struct kit_memory *out, *in;
    struct kit_call *first, *second;
    struct kit_request *write;
    struct kit_steps s;
    NDK_SGE sge;

    TRY(kit_steps_to(k, KIT_STEP_CONNECTED, NULL, &s));
    TRY(kit_memory_new(s.a.pd, LENGTH, 0, &out));
    TRY(kit_memory_new(s.b.pd, COUNT * LENGTH, NDK_MR_FLAG_ALLOW_REMOTE_WRITE, &in));
    kit_fill(out->data, LENGTH, 6);
    sge = kit_sge(out, 0, LENGTH);
    for (ULONG i = 0; i < COUNT; i++)
        TRY(kit_ok(write = kit_write(s.a.qp, &sge, 1, (UINT64)(ULONG_PTR)in->data + i * LENGTH,
                                     in->remote, NDK_OP_FLAG_SILENT_SUCCESS)));
    TRY(kit_ok(write = kit_write(s.a.qp, NULL, 0, (UINT64)(ULONG_PTR)in->data, in->remote, 0)));
    TRY(kit_expect(write, STATUS_SUCCESS, NULL));
    first = kit_disconnect_start(s.a.connector);
    TRY(kit_steps_disconnected(&s.b));
    for (ULONG i = 0; i < COUNT; i++)
        TRY(kit_filled(k, "a silent write before the disconnect", in->data + i * LENGTH, LENGTH,
                       6));
    second = kit_disconnect_start(s.b.connector);
    TRY(kit_answer_is(second, STATUS_SUCCESS));
    TRY(kit_answer_is(first, STATUS_SUCCESS));
    CHECK(k, kit_cq_is_empty(s.a.initiator), "a silent success has left a result");
}

/* ---- abortive ------------------------------------------------------------------------------- */

/* arg 0: the active side closes; 1: the passive side. Told once, at the other side only. */
static VOID close_is_an_abort(struct kit *k)
{
    struct kit_request *receives[RECEIVES];
    struct kit_steps s;
    struct kit_end *one, *other;

    TRY(kit_steps_to(k, KIT_STEP_CONNECTED, NULL, &s));
    one = k->test->arg ? &s.b : &s.a;
    other = k->test->arg ? &s.a : &s.b;
    TRY(kit_steps_receives(other, receives, RECEIVES));
    TRY(kit_close(&one->connector->object));
    TRY(kit_steps_disconnected(other));
    TRY(expect_cancelled(receives, RECEIVES));
    kit_settle(k);
    CHECK_EQUAL(k, "disconnect events at the side that closed",
                kit_os_get(&one->connector->disconnects), 0);
    CHECK_EQUAL(k, "disconnect events at the other side",
                kit_os_get(&other->connector->disconnects), 1);
    if (kit_has_version(other->adapter, 2, 1))
        CHECK(k, other->connector->reason != 0, "the disconnect reason is 0");
}

/* Its own receives come back too, before the QP's close is done (lifetime 12, L4). */
static VOID close_flushes(struct kit *k)
{
    struct kit_request *receives[RECEIVES];
    struct kit_steps s;

    TRY(kit_steps_to(k, KIT_STEP_CONNECTED, NULL, &s));
    TRY(kit_steps_receives(&s.a, receives, RECEIVES));
    TRY(kit_close(&s.a.connector->object));
    TRY(kit_close(&s.a.qp->object));
    for (ULONG i = 0; i < RECEIVES; i++) {
        struct kit_result result;

        CHECK_EQUAL(k, "results at the close of the QP", kit_cq_poll(s.a.receive, &result, 1), 1);
        CHECK(k, result.request == receives[i], "receives are flushed out of order");
        CHECK_STATUS(k, "a flushed receive", result.status, STATUS_CANCELLED);
    }
}

static VOID close_with_a_disconnect_pending(struct kit *k)
{
    struct kit_call *disconnect, *close;
    struct kit_steps s;
    NTSTATUS status;

    TRY(kit_steps_to(k, KIT_STEP_CONNECTED, NULL, &s));
    disconnect = kit_disconnect_start(s.a.connector);
    TRY(disconnect != NULL);
    close = kit_close_start(&s.a.connector->object);
    status = kit_answer(disconnect);
    CHECK(k, status != STATUS_SUCCESS || kit_os_get(&s.b.connector->disconnects),
          "NdkDisconnect succeeded though the other side did nothing");
    TRY(kit_answer_is(close, STATUS_SUCCESS));
    TRY(kit_steps_disconnected(&s.b));
}

/* ---- in other states ------------------------------------------------------------------------ */

static VOID not_connected(struct kit *k)
{
    enum kit_step step = (enum kit_step)k->test->arg;
    struct kit_steps s;

    TRY(kit_steps_to(k, step, NULL, &s));
    TRY(kit_status_among(k, KIT_HERE, "NdkDisconnect of the active side",
                         kit_answer(kit_disconnect_start(s.a.connector)), invalid));
    if (s.b.connector)
        TRY(kit_status_among(k, KIT_HERE, "NdkDisconnect of the passive side",
                             kit_answer(kit_disconnect_start(s.b.connector)), invalid));
}

static VOID second_disconnect(struct kit *k)
{
    struct kit_call *first;
    struct kit_steps s;

    TRY(kit_steps_to(k, KIT_STEP_CONNECTED, NULL, &s));
    first = kit_disconnect_start(s.a.connector);
    TRY(kit_steps_disconnected(&s.b));
    TRY(kit_status_among(k, KIT_HERE, "a second NdkDisconnect",
                         kit_answer(kit_disconnect_start(s.a.connector)), invalid));
    TRY(kit_answer_is(kit_disconnect_start(s.b.connector), STATUS_SUCCESS));
    TRY(kit_answer_is(first, STATUS_SUCCESS));
}

/* ---- afterwards ----------------------------------------------------------------------------- */

static BOOLEAN disconnected_pair(struct kit *k, struct kit_steps *s)
{
    struct kit_call *first, *second;

    TRY_OR_FALSE(kit_steps_to(k, KIT_STEP_CONNECTED, NULL, s));
    first = kit_disconnect_start(s->a.connector);
    TRY_OR_FALSE(kit_steps_disconnected(&s->b));
    second = kit_disconnect_start(s->b.connector);
    TRY_OR_FALSE(kit_answer_is(second, STATUS_SUCCESS));
    return kit_answer_is(first, STATUS_SUCCESS);
}

static VOID nothing_can_be_posted(struct kit *k)
{
    struct kit_request *receive;
    struct kit_steps s;

    TRY(disconnected_pair(k, &s));
    TRY(kit_posted(kit_send(s.a.qp, NULL, 0, 0), STATUS_CONNECTION_INVALID));
    TRY(kit_posted(kit_write(s.b.qp, NULL, 0, 0, 0, 0), STATUS_CONNECTION_INVALID));
    /* A receive may be refused, or flushed. */
    receive = kit_receive(s.a.qp, NULL, 0);
    TRY(receive != NULL);
    if (receive->posted == STATUS_SUCCESS)
        TRY(kit_expect(receive, STATUS_CANCELLED, NULL));
}

/* Neither connector nor QP of a connection that was can be used again (lifetime 9.2). */
static VOID nothing_can_be_used_again(struct kit *k)
{
    struct kit_connector *fresh;
    struct kit_steps s;
    NTSTATUS status;

    TRY(disconnected_pair(k, &s));
    status = kit_answer(kit_connect_start(s.a.connector, s.a.qp, &s.address, NULL));
    CHECK(k, !NT_SUCCESS(status), "NdkConnect of a used connector: have %s, need a failure",
          kit_status_name(status));
    TRY(kit_connector_new(s.a.adapter, &fresh));
    status = kit_answer(kit_connect_start(fresh, s.a.qp, &s.address, NULL));
    CHECK(k, !NT_SUCCESS(status), "NdkConnect with a used QP: have %s, need a failure",
          kit_status_name(status));
}

/* A Read that can no longer be answered ends, and what is behind it. */
static VOID requests_end_with_the_connection(struct kit *k)
{
    struct kit_memory *in, *target;
    struct kit_request *last;
    struct kit_result result;
    struct kit_steps s;
    NDK_SGE sge;

    TRY(kit_steps_to(k, KIT_STEP_CONNECTED, NULL, &s));
    TRY(kit_memory_new(s.a.pd, 1 << 20, NDK_MR_FLAG_ALLOW_LOCAL_WRITE | NDK_MR_FLAG_RDMA_READ_SINK,
                       &in));
    TRY(kit_memory_new(s.b.pd, 1 << 20, NDK_MR_FLAG_ALLOW_REMOTE_READ, &target));
    sge = kit_sge(in, 0, 1 << 20);
    for (ULONG i = 0; i < 8; i++)
        TRY(kit_ok(
            last = kit_read(s.a.qp, &sge, 1, (UINT64)(ULONG_PTR)target->data, target->remote, 0)));
    TRY(kit_close(&s.b.connector->object));
    for (;;) {
        TRY(kit_cq_next(s.a.initiator, &result));
        if (result.status != STATUS_SUCCESS)
            TRY(kit_status_among(k, KIT_HERE, "a read that was cut off", result.status, cut_off));
        if (result.request == last)
            break;
    }
}

static const struct kit_case cases[] = {
    KIT_CASE("DIS-001", "a graceful end begun by the active side", "lifetime 10", "NdkDisconnect",
             one_after_the_other, .needs = KIT_NEEDS_LOOPBACK, .arg = 0),
    KIT_CASE("DIS-002", "a graceful end begun by the passive side", "lifetime 10", "NdkDisconnect",
             one_after_the_other, .needs = KIT_NEEDS_LOOPBACK, .arg = 1),
    KIT_CASE("DIS-003", "both sides disconnect at the same time", "lifetime 10", "NdkDisconnect",
             at_the_same_time, .needs = KIT_NEEDS_LOOPBACK),
    KIT_CASE("DIS-004", "the answer is given inside the disconnect event", "lifetime 10",
             "NdkDisconnect", inside_the_event, .needs = KIT_NEEDS_LOOPBACK),
    KIT_CASE("DIS-005", "the other side closes instead of disconnecting", "lifetime 10",
             "NdkDisconnect", answered_by_a_close, .needs = KIT_NEEDS_LOOPBACK),
    KIT_CASE("DIS-006", "what was sent before the disconnect has arrived", "lifetime 10",
             "NdkDisconnect", behind_the_sends, .needs = KIT_NEEDS_LOOPBACK),
    KIT_CASE("DIS-007", "silent requests are carried out before the end", "lifetime 6.4",
             "NdkDisconnect", waits_for_silent_requests, .needs = KIT_NEEDS_LOOPBACK),
    KIT_CASE("DIS-010", "the active side closes its connector: abortive", "lifetime 4.4",
             "NdkCloseConnector", close_is_an_abort, .needs = KIT_NEEDS_LOOPBACK, .arg = 0),
    KIT_CASE("DIS-011", "the passive side closes its connector: abortive", "lifetime 4.4",
             "NdkCloseConnector", close_is_an_abort, .needs = KIT_NEEDS_LOOPBACK, .arg = 1),
    KIT_CASE("DIS-012", "flushed receives are there before the close of the QP is done",
             "lifetime 12, L4", "NdkCloseQp", close_flushes, .needs = KIT_NEEDS_LOOPBACK),
    KIT_CASE("DIS-013", "a close ends a disconnect that pends", "lifetime 4.1, C3",
             "NdkCloseConnector", close_with_a_disconnect_pending, .needs = KIT_NEEDS_LOOPBACK),
    KIT_CASE("DIS-014", "reads end with the connection", "lifetime 6.10", "NdkRead",
             requests_end_with_the_connection, .needs = KIT_NEEDS_LOOPBACK | KIT_NEEDS_READ),
    KIT_CASE("DIS-020", "no disconnect of a new connector", "NDKPI 13.9", "NdkDisconnect",
             not_connected, .needs = KIT_NEEDS_LOOPBACK, .arg = KIT_STEP_NEW),
    KIT_CASE("DIS-021", "no disconnect before the accept", "NDKPI 13.9", "NdkDisconnect",
             not_connected, .needs = KIT_NEEDS_LOOPBACK, .arg = KIT_STEP_ASKED),
    KIT_CASE("DIS-022", "no disconnect before the connect is completed", "NDKPI 13.9",
             "NdkDisconnect", not_connected, .needs = KIT_NEEDS_LOOPBACK, .arg = KIT_STEP_ACCEPTED),
    KIT_CASE("DIS-023", "no second disconnect", "NDKPI 13.9", "NdkDisconnect", second_disconnect,
             .needs = KIT_NEEDS_LOOPBACK),
    KIT_CASE("DIS-030", "nothing can be posted afterwards", "lifetime 10", "NdkSend",
             nothing_can_be_posted, .needs = KIT_NEEDS_LOOPBACK),
    KIT_CASE("DIS-031", "neither connector nor QP can be used again", "lifetime 9.2", "NdkConnect",
             nothing_can_be_used_again, .needs = KIT_NEEDS_LOOPBACK),
};

KIT_TOPIC(disconnect, "ends of connections");
