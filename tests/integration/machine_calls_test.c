// SPDX-License-Identifier: MIT
/*
 * Every call of the consumer in every state of a connection (docs/connections.md, "Calls"), against
 * a raw peer: the status, the reason that is left, what the peer sees; and after all calls that are
 * refused the connection comes up as if they had not been made. In two completion modes, over IPv4
 * and IPv6.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <poll.h>

#include <cmocka.h>

#include "ends.h"
#include "peer.h"
#include "machine.h"

static struct machine m;
static char no[] = "no"; /* private data of a reject */

/* What the calls answer that do not change the state. 1: the call changes it, and is not made. */
struct refusals {
    NTSTATUS connect, complete, accept, reject, disconnect, post, query;
};

#define CHANGES 1
#define ACTIVE  STATUS_CONNECTION_ACTIVE
#define INVALID STATUS_CONNECTION_INVALID

/* ---- refused -------------------------------------------------------------------------------- */

static void expect(const char *call, NTSTATUS is, NTSTATUS want)
{
    char text[256];

    if (is != want)
        test_fail("%s: %s, not %s", call, softndk_status_name(is), softndk_status_name(want));
    if (NT_SUCCESS(want))
        return;
    softndk_reason(&connector_of(&m)->Header, text, sizeof text);
    if (!strstr(text, "connector #") || !strstr(text, call))
        test_fail("%s: the reason is \"%s\"", call, text);
}

static void connect_again(NTSTATUS want)
{
    SOCKADDR_INET local = address_of(0), peer = address_of(9);
    struct bench *b = &m.w.bench;
    struct queue queue;
    NDK_SHARED_ENDPOINT *endpoint = NULL;
    NDK_CONNECTOR *k = connector_of(&m);
    NTSTATUS status;
    NDK_QP *qp;
    struct wait w;

    wait_init(&w);
    status = b->adapter->Dispatch->NdkCreateSharedEndpoint(
        b->adapter, (PSOCKADDR)&local, address_length(), wait_create, &w, &endpoint);
    must(&w, status, "NdkCreateSharedEndpoint");
    if (status == STATUS_PENDING)
        endpoint = (NDK_SHARED_ENDPOINT *)(void *)w.object;
    make_queue(b->adapter, 8, &queue);
    qp = qp_on(b->pd, &queue, &queue);
    wait_init(&w);
    expect("NdkConnect:",
           wait_end(&w, k->Dispatch->NdkConnect(k, qp, (PSOCKADDR)&local, address_length(),
                                                (PSOCKADDR)&peer, address_length(), 1, 1, NULL, 0,
                                                wait_request, &w)),
           want);
    wait_init(&w);
    expect("NdkConnectWithSharedEndpoint:",
           wait_end(&w, k->Dispatch->NdkConnectWithSharedEndpoint(k, qp, endpoint, (PSOCKADDR)&peer,
                                                                  address_length(), 1, 1, NULL, 0,
                                                                  wait_request, &w)),
           want);
    CLOSE(qp, NdkCloseQp);
    CLOSE(queue.cq, NdkCloseCq);
    CLOSE(endpoint, NdkCloseSharedEndpoint);
}

static void complete_again(NTSTATUS want)
{
    NDK_CONNECTOR *k = connector_of(&m);
    struct wait w;

    wait_init(&w);
    expect("NdkCompleteConnect:",
           wait_end(&w, k->Dispatch->NdkCompleteConnect(k, NULL, NULL, wait_request, &w)), want);
    wait_init(&w);
    expect("NdkCompleteConnectEx:",
           wait_end(&w, k->Dispatch->NdkCompleteConnectEx(k, NULL, NULL, wait_request, &w)), want);
}

static void accept_again(NTSTATUS want)
{
    struct bench *b = &m.w.bench;
    NDK_CONNECTOR *k = connector_of(&m);
    struct queue queue;
    NDK_QP *qp;
    struct wait w;

    make_queue(b->adapter, 8, &queue);
    qp = qp_on(b->pd, &queue, &queue);
    wait_init(&w);
    expect("NdkAccept:",
           wait_end(&w, k->Dispatch->NdkAccept(k, qp, 1, 1, NULL, 0, NULL, NULL, wait_request, &w)),
           want);
    wait_init(&w);
    expect(
        "NdkAcceptEx:",
        wait_end(&w, k->Dispatch->NdkAcceptEx(k, qp, 1, 1, NULL, 0, NULL, NULL, wait_request, &w)),
        want);
    CLOSE(qp, NdkCloseQp);
    CLOSE(queue.cq, NdkCloseCq);
}

static void disconnect_again(NTSTATUS want)
{
    NDK_CONNECTOR *k = connector_of(&m);
    struct wait w;

    wait_init(&w);
    expect("NdkDisconnect:", wait_end(&w, k->Dispatch->NdkDisconnect(k, wait_request, &w)), want);
}

/* The three kinds of initiator requests that go over the wire. */
static void posts_refused(NTSTATUS want)
{
    NDK_QP *qp = m.w.link.end.qp;
    char text[256];

    assert_int_equal(qp->Dispatch->NdkSend(qp, NULL, NULL, 0, 0), want);
    assert_int_equal(qp->Dispatch->NdkWrite(qp, NULL, NULL, 0, 0, 0, 0), want);
    assert_int_equal(qp->Dispatch->NdkRead(qp, NULL, NULL, 0, 0, 0, 0), want);
    softndk_reason(&qp->Header, text, sizeof text);
    if (!strstr(text, "NdkRead: the QP is not connected"))
        test_fail("the queue pair's reason is \"%s\"", text);
}

static void queries(NTSTATUS want)
{
    NDK_CONNECTOR *k = connector_of(&m);
    SOCKADDR_INET address;
    ULONG length = sizeof address, in, out;

    expect("NdkGetConnectionData:",
           k->Dispatch->NdkGetConnectionData(k, &in, &out, NULL, &(ULONG){0}), want);
    expect("NdkGetLocalAddress:", k->Dispatch->NdkGetLocalAddress(k, (PSOCKADDR)&address, &length),
           want);
    length = sizeof address;
    expect("NdkGetPeerAddress:", k->Dispatch->NdkGetPeerAddress(k, (PSOCKADDR)&address, &length),
           want);
}

/* Receives may be posted at any time; a flush takes them back and leaves the state alone. */
static void receives_and_flush(NTSTATUS post)
{
    NDK_QP *qp = m.w.link.end.qp;

    for (unsigned i = 0; i < 2; i++) {
        link_receive(&m.w.bench, &m.w.link, i);
        if (post == STATUS_SUCCESS && m.w.link.end.initiator.cq && i == 1 &&
            atomic_load(&conn_of(&m)->tx_hold))
            must(NULL, qp->Dispatch->NdkSend(qp, (void *)9, NULL, 0, 0), "NdkSend");
    }
    expect_no_result(&m.w.link.end.receive, "posted");
    qp->Dispatch->NdkFlush(qp);
    for (unsigned i = 0; i < 2; i++)
        expect_result(&m.w.link.end.receive, "flushed", i + 1, STATUS_CANCELLED);
    if (post == STATUS_SUCCESS && atomic_load(&conn_of(&m)->tx_hold))
        expect_result(&m.w.link.end.initiator, "flushed", 9, STATUS_CANCELLED);
}

/* All calls that the state refuses, and those that change nothing. */
static void refuse(const struct refusals *r)
{
    enum conn_state state = atomic_load(&conn_of(&m)->state);

    if (r->connect != CHANGES)
        connect_again(r->connect);
    if (r->complete != CHANGES)
        complete_again(r->complete);
    if (r->accept != CHANGES)
        accept_again(r->accept);
    if (r->reject != CHANGES)
        expect("NdkReject:", connector_of(&m)->Dispatch->NdkReject(connector_of(&m), NULL, 0),
               r->reject);
    if (r->disconnect != CHANGES)
        disconnect_again(r->disconnect);
    if (r->post != STATUS_SUCCESS)
        posts_refused(r->post);
    queries(r->query);
    receives_and_flush(r->post);
    if (atomic_load(&conn_of(&m)->fin_sent))
        assert_int_equal(peer_await_end(&m.w.link.peer), PEER_FIN);
    else if (!peer_quiet(&m.w.link.peer, 5))
        test_fail("octets for the peer");
    expect_state(&m, state);
}

/* Refused in that state; then the connection comes up and works. */
static void refuse_and_establish(enum conn_state state, bool active, const struct refusals *r)
{
    machine_open(&m, state, active, NULL);
    refuse(r);
    machine_establish(&m);
    link_works(&m.w.bench, &m.w.link, "established", 3);
    machine_close(&m);
}

/* ---- closed --------------------------------------------------------------------------------- */

/* Closes in that state; a stalled shard goes on when the close is under way. What pends ends before
 * the close does. */
static void close_there(struct wait *pending, NTSTATUS returned)
{
    struct end *end = &m.w.link.end;
    struct wait w;
    NTSTATUS status;

    wait_init(&w);
    status = end->connector->Dispatch->NdkCloseConnector(&end->connector->Header, wait_close, &w);
    machine_go_on(&m);
    must(&w, status, "NdkCloseConnector");
    end->connector = NULL;
    if (!pending)
        return;
    assert_int_equal(atomic_load(&pending->calls), 1);
    assert_int_equal(wait_end(pending, returned), STATUS_CANCELLED);
}

static void close_in(enum conn_state state, bool active, struct wait *pending, NTSTATUS *returned)
{
    machine_open(&m, state, active, NULL);
    link_receive(&m.w.bench, &m.w.link, 0);
    close_there(pending, returned ? *returned : 0);
    assert_int_equal(atomic_load(&m.w.link.end.disconnects), 0);
}

/* The receive that close_in() posted: taken by the connection, or left at the queue pair. */
static void expect_receive(bool cancelled)
{
    if (!cancelled) {
        expect_no_result(&m.w.link.end.receive, "a failed attempt");
        m.w.link.end.qp->Dispatch->NdkFlush(m.w.link.end.qp);
    }
    expect_result(&m.w.link.end.receive, "the receive", 1, STATUS_CANCELLED);
    machine_close(&m);
}

/* ---- the states ----------------------------------------------------------------------------- */

static void in_new(void **state)
{
    (void)state;
    refuse_and_establish(
        CONN_NEW, true,
        &(struct refusals){CHANGES, INVALID, INVALID, INVALID, INVALID, INVALID, INVALID});
    close_in(CONN_NEW, true, NULL, NULL);
    expect_receive(false);
}

static const struct refusals connecting = {ACTIVE,  INVALID, INVALID,       INVALID,
                                           INVALID, INVALID, STATUS_SUCCESS};

static void in_connecting(void **state)
{
    enum peer_end end = PEER_RST;
    uint8_t octet;

    (void)state;
    refuse_and_establish(CONN_CONNECTING, true, &connecting);
    close_in(CONN_CONNECTING, true, &m.connect, &m.connecting);
    /* TCP was up: the peer sees it come and go, and no octet. */
    peer_accept(&m.w.link.peer);
    end = peer_read(&m.w.link.peer, &octet, 1, PEER_WAIT_MS);
    assert_int_equal(end, PEER_RST);
    expect_receive(false);
}

static void in_wait_reply(void **state)
{
    (void)state;
    refuse_and_establish(CONN_WAIT_REPLY, true, &connecting);
    close_in(CONN_WAIT_REPLY, true, &m.connect, &m.connecting);
    assert_int_equal(peer_await_end(&m.w.link.peer), PEER_RST);
    expect_receive(false);
}

static void in_retrying(void **state)
{
    (void)state;
    refuse_and_establish(CONN_RETRYING, true, &connecting);
    close_in(CONN_RETRYING, true, &m.connect, &m.connecting);
    assert_false(peer_connect_arrives(&m.w.link.peer, 50)); /* no second attempt */
    expect_receive(false);
}

static void in_decide(void **state)
{
    const struct refusals r = {ACTIVE, CHANGES, INVALID, CHANGES, INVALID, INVALID, STATUS_SUCCESS};
    NDK_CONNECTOR *k;

    (void)state;
    refuse_and_establish(CONN_DECIDE, true, &r);
    close_in(CONN_DECIDE, true, NULL, NULL);
    assert_int_equal(peer_await_end(&m.w.link.peer), PEER_RST);
    expect_receive(false);

    machine_open(&m, CONN_DECIDE, true, NULL);
    k = connector_of(&m);
    assert_int_equal(k->Dispatch->NdkReject(k, no, 2), STATUS_SUCCESS); /* no frame carries it */
    assert_int_equal(peer_await_end(&m.w.link.peer), PEER_FIN);
    complete_again(INVALID);
    expect("NdkReject:", k->Dispatch->NdkReject(k, NULL, 0), INVALID);
    machine_close(&m);
}

static void in_completing(void **state)
{
    const struct refusals r = {ACTIVE,  INVALID,        INVALID,       INVALID,
                               INVALID, STATUS_SUCCESS, STATUS_SUCCESS};
    NDK_QP *qp;

    (void)state;
    machine_open(&m, CONN_COMPLETING, true, NULL);
    refuse(&r);
    qp = m.w.link.end.qp; /* legal: it goes at once */
    must(NULL, qp->Dispatch->NdkSend(qp, (void *)9, NULL, 0, 0), "NdkSend");
    assert_int_equal(peer_fpdu(&m.w.link.peer)->opcode, 3);
    expect_result(&m.w.link.end.initiator, "completing", 9, STATUS_SUCCESS);
    machine_establish(&m);
    link_works(&m.w.bench, &m.w.link, "completed", 3);
    machine_close(&m);
    close_in(CONN_COMPLETING, true, &m.complete, &m.completing);
    assert_int_equal(peer_await_end(&m.w.link.peer), PEER_RST);
    expect_receive(true);
}

/* No connector yet: only the listener's close can be called. */
static void in_wait_request(void **state)
{
    struct listening *l = &m.w.bench.listening;

    (void)state;
    machine_open(&m, CONN_WAIT_REQUEST, false, NULL);
    CLOSE(l->listener, NdkCloseListener);
    assert_int_equal(peer_await_end(&m.w.link.peer), PEER_RST);
    assert_int_equal(atomic_load(&l->events), 0);
    listen_on(m.w.bench.adapter, peer_ipv6 ? "::1" : "127.0.0.1", l);
    machine_close(&m);
}

static void in_undecided(void **state)
{
    const struct refusals r = {ACTIVE, INVALID, CHANGES, CHANGES, INVALID, INVALID, STATUS_SUCCESS};
    uint8_t frame[532];
    NDK_CONNECTOR *k;

    (void)state;
    refuse_and_establish(CONN_UNDECIDED, false, &r);
    close_in(CONN_UNDECIDED, false, NULL, NULL);
    peer_expect_frame(&m.w.link.peer, "closed", "MPA ID Rep Frame\x70\x02\x00\x04\0\0\0\0", 24);
    assert_int_equal(peer_await_end(&m.w.link.peer), PEER_FIN);
    expect_receive(false);

    machine_open(&m, CONN_UNDECIDED, false, NULL);
    k = connector_of(&m);
    assert_int_equal(k->Dispatch->NdkReject(k, no, 2), STATUS_SUCCESS);
    assert_int_equal(peer_frame(&m.w.link.peer, frame), 26);
    assert_memory_equal(frame, "MPA ID Rep Frame\x70\x02\x00\x06", 20);
    assert_memory_equal(frame + 24, "no", 2);
    assert_int_equal(peer_await_end(&m.w.link.peer), PEER_FIN);
    accept_again(INVALID);
    expect("NdkReject:", k->Dispatch->NdkReject(k, NULL, 0), INVALID);
    connect_again(INVALID);
    machine_close(&m);
}

static const struct refusals accepted = {ACTIVE,  INVALID,        INVALID,       INVALID,
                                         INVALID, STATUS_SUCCESS, STATUS_SUCCESS};

/* A Send is legal from the call of accept on, and held until the peer has spoken. */
static void held_there(enum conn_state state)
{
    NDK_QP *qp;

    machine_open(&m, state, false, NULL);
    refuse(&accepted);
    qp = m.w.link.end.qp;
    must(NULL, qp->Dispatch->NdkSend(qp, (void *)9, NULL, 0, 0), "NdkSend");
    if (!peer_quiet(&m.w.link.peer, 20))
        test_fail("a Send before the peer has spoken");
    expect_no_result(&m.w.link.end.initiator, "held");
    machine_establish(&m);
    assert_int_equal(peer_fpdu(&m.w.link.peer)->opcode, 3);
    expect_result(&m.w.link.end.initiator, "held", 9, STATUS_SUCCESS);
    link_works(&m.w.bench, &m.w.link, "accepted", 3);
    machine_close(&m);
    close_in(state, false, &m.accept, &m.accepting);
    if (peer_drain(&m.w.link.peer) != PEER_RST) /* moving: perhaps behind the Reply */
        test_fail("no RST");
    expect_receive(true);
}

static void in_moving(void **state)
{
    (void)state;
    held_there(CONN_MOVING);
}

static void in_wait_first(void **state)
{
    (void)state;
    held_there(CONN_WAIT_FIRST);
}

static void in_open(void **state)
{
    const struct refusals r = {ACTIVE,  INVALID,        INVALID,       INVALID,
                               CHANGES, STATUS_SUCCESS, STATUS_SUCCESS};

    (void)state;
    for (int active = 0; active < 2; active++) {
        refuse_and_establish(CONN_OPEN, active, &r);
        close_in(CONN_OPEN, active, NULL, NULL);
        assert_int_equal(peer_await_end(&m.w.link.peer), PEER_RST);
        expect_receive(true);

        machine_open(&m, CONN_OPEN, active, NULL);
        link_receive(&m.w.bench, &m.w.link, 0);
        machine_disconnect(&m);
        peer_half_close(&m.w.link.peer);
        assert_int_equal(wait_end(&m.disconnect, m.disconnecting), STATUS_SUCCESS);
        expect_receive(true);
    }
}

/* Our FIN is out, the peer's is not in. */
static void in_disconnecting(void **state)
{
    const struct refusals r = {ACTIVE, INVALID, INVALID, INVALID, INVALID, INVALID, STATUS_SUCCESS};
    struct pollfd reset = {.events = 0}; /* behind a FIN no receive tells of it */

    (void)state;
    for (int active = 0; active < 2; active++) {
        machine_open(&m, CONN_OPEN, active, NULL);
        machine_disconnect(&m);
        refuse(&r);
        assert_int_equal(atomic_load(&m.disconnect.calls), 0);
        peer_half_close(&m.w.link.peer);
        assert_int_equal(wait_end(&m.disconnect, m.disconnecting), STATUS_SUCCESS);
        disconnect_again(INVALID); /* it has ended */
        machine_close(&m);

        machine_open(&m, CONN_OPEN, active, NULL);
        machine_disconnect(&m);
        reset.fd = m.w.link.peer.fd;
        link_receive(&m.w.bench, &m.w.link, 0);
        close_there(&m.disconnect, m.disconnecting);
        wait_until(poll(&reset, 1, 0) == 1 && (reset.revents & POLLERR), "the RST behind the FIN");
        expect_receive(true);
    }
}

/* Before the FIN went, behind a Send that the peer does not read: posts are legal still. */
static void disconnecting_behind_work(void **state)
{
    const ULONG size = 8u << 20;
    struct memory from;
    NDK_QP *qp;
    NDK_SGE sge;
    size_t got = 0;

    (void)state;
    machine_open(&m, CONN_OPEN, false, "tcp_buffer=65536");
    qp = m.w.link.end.qp;
    make_memory(m.w.bench.pd, size, 0, &from);
    sge = memory_sge(&from, 0, size);
    must(NULL, qp->Dispatch->NdkSend(qp, (void *)1, &sge, 1, 0), "NdkSend");
    wait_init(&m.disconnect);
    m.disconnecting =
        connector_of(&m)->Dispatch->NdkDisconnect(connector_of(&m), wait_request, &m.disconnect);
    must(NULL, qp->Dispatch->NdkSend(qp, (void *)2, NULL, 0, 0), "NdkSend");
    disconnect_again(INVALID);
    complete_again(INVALID);
    while (got < size)
        got += peer_fpdu(&m.w.link.peer)->payload_length;
    assert_int_equal(peer_fpdu(&m.w.link.peer)->payload_length, 0);
    assert_int_equal(peer_await_end(&m.w.link.peer), PEER_FIN);
    expect_result(&m.w.link.end.initiator, "before the FIN", 1, STATUS_SUCCESS);
    expect_result(&m.w.link.end.initiator, "before the FIN", 2, STATUS_SUCCESS);
    posts_refused(INVALID);
    peer_half_close(&m.w.link.peer);
    assert_int_equal(wait_end(&m.disconnect, m.disconnecting), STATUS_SUCCESS);
    free_memory(&from);
    machine_close(&m);
}

/* ---- ended ---------------------------------------------------------------------------------- */

static void all_when_ended(const struct refusals *r)
{
    connect_again(r->connect);
    complete_again(r->complete);
    accept_again(r->accept);
    expect("NdkReject:", connector_of(&m)->Dispatch->NdkReject(connector_of(&m), NULL, 0),
           r->reject);
    disconnect_again(r->disconnect);
    disconnect_again(INVALID);
    posts_refused(r->post);
    queries(r->query);
    link_receive(&m.w.bench, &m.w.link, 0);
}

/* The attempt failed: the connector is used up, the queue pair is as before. */
static void when_refused(void **state)
{
    const struct refusals r = {INVALID, INVALID, INVALID,       INVALID,
                               INVALID, INVALID, STATUS_SUCCESS};

    (void)state;
    machine_open(&m, CONN_WAIT_REPLY, true, NULL);
    peer_send(&m.w.link.peer, "MPA ID Rep Frame\x70\x02\x00\x04\x00\x08\x00\x08", 24);
    assert_int_equal(wait_end(&m.connect, m.connecting), STATUS_CONNECTION_REFUSED);
    all_when_ended(&r);
    expect_receive(false);
}

/* The peer left, or time ran out, while the consumer had to decide; and when it had decided. */
static void when_left(void **state)
{
    const struct refusals decide = {INVALID,       STATUS_CONNECTION_ABORTED,
                                    INVALID,       STATUS_CONNECTION_ABORTED,
                                    INVALID,       INVALID,
                                    STATUS_SUCCESS};
    const struct refusals undecided = {
        INVALID, INVALID,       STATUS_CONNECTION_ABORTED, STATUS_CONNECTION_ABORTED, INVALID,
        INVALID, STATUS_SUCCESS};
    const struct refusals decided = {INVALID, INVALID, INVALID,       INVALID,
                                     INVALID, INVALID, STATUS_SUCCESS};
    struct refusals late = decide;

    (void)state;
    machine_open(&m, CONN_DECIDE, true, NULL);
    peer_half_close(&m.w.link.peer);
    peer_await_end(&m.w.link.peer);
    await_state(&m, CONN_GONE);
    all_when_ended(&decide);
    expect_receive(false);

    late.complete = STATUS_IO_TIMEOUT;
    machine_open(&m, CONN_DECIDE, true, "establish_ms=1000");
    await_state(&m, CONN_GONE);
    all_when_ended(&late);
    expect_receive(false);

    machine_open(&m, CONN_UNDECIDED, false, NULL);
    peer_half_close(&m.w.link.peer);
    peer_await_end(&m.w.link.peer);
    await_state(&m, CONN_GONE);
    all_when_ended(&undecided);
    expect_receive(false);

    machine_open(&m, CONN_WAIT_FIRST, false, NULL);
    peer_reset(&m.w.link.peer);
    assert_int_equal(wait_end(&m.accept, m.accepting), STATUS_CONNECTION_ABORTED);
    await_state(&m, CONN_GONE);
    all_when_ended(&decided);
    expect_receive(true);
}

/* An established connection that the peer ended. */
static void when_over(void **state)
{
    const struct refusals r = {INVALID,        INVALID, INVALID,       INVALID,
                               STATUS_SUCCESS, INVALID, STATUS_SUCCESS};

    (void)state;
    for (int active = 0; active < 2; active++) {
        machine_open(&m, CONN_OPEN, active, NULL);
        peer_reset(&m.w.link.peer);
        expect_event(&m.w.link.end, "over", 2, 0);
        await_state(&m, CONN_GONE);
        all_when_ended(&r);
        expect_receive(true);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_new),
        cmocka_unit_test(in_connecting),
        cmocka_unit_test(in_wait_reply),
        cmocka_unit_test(in_retrying),
        cmocka_unit_test(in_decide),
        cmocka_unit_test(in_completing),
        cmocka_unit_test(in_wait_request),
        cmocka_unit_test(in_undecided),
        cmocka_unit_test(in_moving),
        cmocka_unit_test(in_wait_first),
        cmocka_unit_test(in_open),
        cmocka_unit_test(in_disconnecting),
        cmocka_unit_test(disconnecting_behind_work),
        cmocka_unit_test(when_refused),
        cmocka_unit_test(when_left),
        cmocka_unit_test(when_over),
    };

    return machine_run(tests, sizeof tests / sizeof tests[0]);
}
