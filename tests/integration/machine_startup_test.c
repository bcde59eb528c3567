// SPDX-License-Identifier: MIT
/*
 * Every event of the wire in every state before a connection is established (docs/connections.md,
 * "Events"): the peer's FIN, its RST, a timer, octets that are due, a Terminate, garbage. What
 * becomes of the call that pends or of the one that follows, the reason that is left, the posted
 * receive, and what the peer sees. The states behind them are in machine_events_test.c. In two
 * completion modes, over IPv4 and IPv6.
 */
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include "ends.h"
#include "peer.h"
#include "machine.h"
#include "machine_happens.h"

/* ---- before the decision -------------------------------------------------------------------- */

/* The kernel refuses; or it says something else, in the way of an asynchronous connect. */
static void in_connecting(void **state)
{
    static const struct {
        int error;
        NTSTATUS status;
        const char *words;
    } rows[] = {
        {ECONNREFUSED, STATUS_CONNECTION_REFUSED, "nobody listens there"},
        {ECONNRESET, STATUS_CONNECTION_REFUSED, "RST"},
        {ENETUNREACH, STATUS_NETWORK_UNREACHABLE, "ENETUNREACH"},
        {EHOSTUNREACH, STATUS_HOST_UNREACHABLE, "EHOSTUNREACH"},
        {ETIMEDOUT, STATUS_IO_TIMEOUT, "TCP got no"},
        {EADDRNOTAVAIL, STATUS_ADDRESS_ALREADY_EXISTS, "EADDRNOTAVAIL"},
    };
    int taken[64], listener;
    unsigned count = 0;
    struct os_addr at;
    uint16_t port;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        there(CONN_CONNECTING, true, NULL);
        os_fault_set("connect_result", 1, rows[i].error, false);
        machine_go_on(&m);
        expect(ERROR, wait_end(&m.connect, m.connecting), rows[i].status, rows[i].words);
        os_fault_clear();
        expect_receive(false);
        over(0);
    }
    /* Nobody listens there. */
    there(CONN_NEW, true, NULL);
    CLOSE(END.connector, NdkCloseConnector);
    port = peer_listen(PEER);
    peer_close(PEER);
    m.connecting = end_connects(&m.w.bench, &END, port, 1, 1, NULL, 0, &m.connect);
    expect(PEERS_RST, wait_end(&m.connect, m.connecting), STATUS_CONNECTION_REFUSED,
           "nobody listens there");
    expect_receive(false);
    over(0);

    /* Its queue is full, so TCP does not answer. */
    there(CONN_NEW, true, "connect_ms=300");
    CLOSE(END.connector, NdkCloseConnector);
    assert_int_equal(os_addr_parse(peer_ipv6 ? "::1" : "127.0.0.1", &at), 0);
    listener = os_tcp_socket((enum os_family)at.family);
    assert_int_equal(os_tcp_bind(listener, &at), 0);
    assert_int_equal(os_tcp_listen(listener, 0), 0);
    assert_int_equal(os_tcp_local(listener, &at), 0);
    for (bool full = false; !full; count++) {
        int fd = os_tcp_socket((enum os_family)at.family);
        struct os_addr peer;

        assert_true(count < 64);
        os_tcp_connect(fd, &at);
        taken[count] = fd;
        full = true;
        for (int ms = 0; ms < 200 && full; ms++) {
            test_sleep_ms(1);
            full = os_tcp_peer(fd, &peer) != 0;
        }
    }
    m.connecting = end_connects(&m.w.bench, &END, at.port, 1, 1, NULL, 0, &m.connect);
    expect_state(&m, CONN_CONNECTING);
    expect(ERROR, wait_end(&m.connect, m.connecting), STATUS_IO_TIMEOUT, "connect_ms");
    for (unsigned i = 0; i < count; i++)
        os_tcp_close(taken[i]);
    os_tcp_close(listener);
    expect_receive(false);
    over(0);
}

static void in_wait_reply(void **state)
{
    static const char *const words[] = {"FIN before", "RST", "malformed MPA", "malformed MPA",
                                        "ETIMEDOUT"};
    uint8_t octets[64];

    (void)state;
    for (enum event event = PEERS_FIN; event <= GARBAGE; event++) {
        there(CONN_WAIT_REPLY, true, "retry_v1=0");
        happens(event);
        expect(event, wait_end(&m.connect, m.connecting), STATUS_CONNECTION_REFUSED, words[event]);
        if (event != PEERS_RST && peer_drain(PEER) == PEER_QUIET)
            test_fail("%s: the end holds on", event_names[event]);
        expect_receive(false);
        over(0);
    }
    there(CONN_WAIT_REPLY, true, "connect_ms=500");
    expect(ERROR, wait_end(&m.connect, m.connecting), STATUS_IO_TIMEOUT, "connect_ms");
    assert_int_equal(peer_read(PEER, octets, 1, PEER_WAIT_MS), PEER_RST);
    expect_receive(false);
    over(0);
    /* No retry behind an octet of a Reply, nor later than a second behind the Request. */
    for (int late = 0; late < 2; late++) {
        there(CONN_WAIT_REPLY, true, NULL);
        if (late)
            test_sleep_ms(1100);
        else
            peer_send(PEER, "M", 1);
        peer_hang_up(PEER, false);
        expect(PEERS_FIN, wait_end(&m.connect, m.connecting), STATUS_CONNECTION_REFUSED,
               "FIN before");
        assert_false(peer_connect_arrives(PEER, 20));
        expect_receive(false);
        over(0);
    }
    /* What is due: the Reply. */
    there(CONN_WAIT_REPLY, true, NULL);
    machine_reply(&m);
    expect_state(&m, CONN_DECIDE);
    END.qp->Dispatch->NdkFlush(END.qp);
    expect_result(&END.receive, "still posted", 1, STATUS_CANCELLED);
    machine_close(&m);
}

/* The retry takes the timer of the first attempt along. On the old socket nothing is looked at. */
static void in_retrying(void **state)
{
    (void)state;
    there(CONN_RETRYING, true, "connect_ms=3000");
    machine_go_on(&m);
    machine_request(&m);
    assert_int_equal(m.revision, 1);
    expect(ERROR, wait_end(&m.connect, m.connecting), STATUS_IO_TIMEOUT, "connect_ms");
    expect_receive(false);
    over(0);
}

static void in_decide(void **state)
{
    static const char *const words[] = {"FIN before", "RST"};

    (void)state;
    for (enum event event = PEERS_FIN; event <= PEERS_RST; event++) {
        there(CONN_DECIDE, true, NULL);
        happens(event);
        await_state(&m, CONN_GONE);
        peer_sees(event, PEER_RST);
        m.completing = end_completes(&END, &m.complete);
        expect(event, wait_end(&m.complete, m.completing), ABORTED, words[event]);
        expect_receive(false);
        over(0);
    }
    there(CONN_DECIDE, true, "establish_ms=1000");
    await_state(&m, CONN_GONE);
    peer_sees(ERROR, PEER_RST);
    m.completing = end_completes(&END, &m.complete);
    expect(ERROR, wait_end(&m.complete, m.completing), STATUS_IO_TIMEOUT, "establish_ms");
    expect_receive(false);
    over(0);
}

/* Octets stay in the socket until the consumer completes; then they are what they are. */
static void in_decide_octets(void **state)
{
    (void)state;
    for (enum event event = TERMINATE; event <= GARBAGE; event++) {
        there(CONN_DECIDE, true, NULL);
        happens(event);
        test_sleep_ms(20);
        expect_state(&m, CONN_DECIDE);
        m.completing = end_completes(&END, &m.complete);
        expect(event, wait_end(&m.complete, m.completing), ABORTED,
               event == TERMINATE ? "Terminate received" : "Terminate sent");
        if (peer_drain(PEER) != PEER_FIN) /* behind the ready-to-receive Read, if it went */
            test_fail("%s: no FIN", event_names[event]);
        expect_receive(true);
        peer_half_close(PEER);
        over(0);
    }
    there(CONN_DECIDE, true, NULL);
    stream_send(&m.w.s, m.w.link.send_msn++, m.w.octets, 20);
    wire_send(&m.w);
    test_sleep_ms(20);
    expect_no_result(&END.receive, "before the consumer completes");
    expect_state(&m, CONN_DECIDE);
    machine_establish(&m);
    assert_int_equal(expect_result(&END.receive, "then", 1, STATUS_SUCCESS).BytesTransferred, 20);
    memcpy(m.w.bench.before + INBOX_AT, m.w.octets, 20);
    link_works(&m.w.bench, &m.w.link, "then", 3);
    machine_close(&m);
}

/* No connector yet, so nobody is told of anything; a bad end leaves the listener as it was. */
static void in_wait_request(void **state)
{
    (void)state;
    for (enum event event = PEERS_FIN; event <= GARBAGE; event++) {
        there(CONN_WAIT_REQUEST, false, NULL);
        happens(event);
        if (event != PEERS_RST && peer_drain(PEER) == PEER_QUIET)
            test_fail("%s: the end holds on", event_names[event]);
        peer_close(PEER);
        passive_to(&m, CONN_OPEN);
        link_works(&m.w.bench, &m.w.link, event_names[event], 3);
        assert_int_equal(atomic_load(&m.w.bench.listening.events), 1);
        machine_close(&m);
    }
    there(CONN_WAIT_REQUEST, false, "request_ms=300");
    peer_await_end(PEER);
    assert_int_equal(atomic_load(&m.w.bench.listening.events), 0);
    machine_close(&m);
    there(CONN_WAIT_REQUEST, false, NULL); /* what is due: the Request */
    machine_establish(&m);
    link_works(&m.w.bench, &m.w.link, "requested", 3);
    machine_close(&m);
}

static void in_undecided(void **state)
{
    static const char *const words[] = {"FIN before", "RST", "octets follow", "octets follow"};

    (void)state;
    for (int event = PEERS_FIN; event <= GARBAGE + 1; event++) {
        there(CONN_UNDECIDED, false, NULL);
        if (event > GARBAGE) { /* an FPDU is none the better */
            stream_write(&m.w.s, 1, 0, NULL, 0);
            wire_send(&m.w);
        } else {
            happens((enum event)event);
        }
        await_state(&m, CONN_GONE);
        peer_sees(event > GARBAGE ? ERROR : (enum event)event, PEER_RST);
        machine_accept(&m);
        expect(ERROR, wait_end(&m.accept, m.accepting), ABORTED,
               event > GARBAGE ? "octets follow" : words[event]);
        expect_receive(false);
        over(0);
    }
    /* The consumer may take its time. */
    there(CONN_UNDECIDED, false, "request_ms=50,establish_ms=2000");
    END.qp->Dispatch->NdkFlush(END.qp);
    expect_result(&END.receive, "posted", 1, STATUS_CANCELLED);
    test_sleep_ms(200);
    expect_state(&m, CONN_UNDECIDED);
    machine_establish(&m);
    link_works(&m.w.bench, &m.w.link, "late", 3);
    machine_close(&m);
}

/* ---- decided -------------------------------------------------------------------------------- */

static const char *const startup_words[] = {"FIN before", "RST", "Terminate received",
                                            "Terminate sent", "TCP got no"};

static void in_completing(void **state)
{
    (void)state;
    for (enum event event = PEERS_FIN; event <= ERROR; event++) {
        there(CONN_COMPLETING, true, NULL);
        happens(event);
        expect(event, wait_end(&m.complete, m.completing),
               event == ERROR ? STATUS_IO_TIMEOUT : ABORTED, startup_words[event]);
        os_fault_clear();
        peer_sees(event, event == GARBAGE ? PEER_DATA : event == ERROR ? PEER_RST : PEER_FIN);
        expect_receive(true);
        if (event == TERMINATE || event == GARBAGE)
            peer_half_close(PEER);
        over(0);
    }
    there(CONN_COMPLETING, true, "establish_ms=500");
    expect(ERROR, wait_end(&m.complete, m.completing), STATUS_IO_TIMEOUT, "establish_ms");
    peer_sees(ERROR, PEER_RST);
    expect_receive(true);
    over(0);
    /* FPDUs as in OPEN; only the Response establishes. */
    there(CONN_COMPLETING, true, NULL);
    stream_send(&m.w.s, m.w.link.send_msn++, m.w.octets, 20);
    wire_send(&m.w);
    expect_result(&END.receive, "before the Response", 1, STATUS_SUCCESS);
    memcpy(m.w.bench.before + INBOX_AT, m.w.octets, 20);
    expect_state(&m, CONN_COMPLETING);
    machine_establish(&m);
    link_works(&m.w.bench, &m.w.link, "completed", 3);
    machine_close(&m);
}

/* What comes while the connection moves is seen where it arrives: as in WAIT_FIRST. */
static void after_accept(enum conn_state where)
{
    for (enum event event = PEERS_FIN; event <= GARBAGE; event++) {
        NTSTATUS want = event == PEERS_FIN ? STATUS_CONNECTION_REFUSED : ABORTED;

        there(where, false, NULL);
        happens(event);
        if (where == CONN_MOVING) {
            if (event == PEERS_RST)
                await_peers_end(&m);
            test_sleep_ms(5);
            expect_state(&m, CONN_MOVING);
            machine_go_on(&m);
        }
        expect(event, wait_end(&m.accept, m.accepting), want, startup_words[event]);
        if (event != PEERS_RST && where == CONN_MOVING)
            machine_expect_reply(&m);
        peer_sees(event, event == GARBAGE ? PEER_DATA : PEER_FIN);
        expect_receive(true);
        if (event == TERMINATE || event == GARBAGE)
            peer_half_close(PEER);
        over(0);
    }
    /* The time counts from the Reply on. */
    there(where, false, "establish_ms=400");
    if (where == CONN_MOVING) {
        test_sleep_ms(500);
        expect_state(&m, CONN_MOVING);
        machine_go_on(&m);
    }
    expect(ERROR, wait_end(&m.accept, m.accepting), STATUS_IO_TIMEOUT, "establish_ms");
    /* While moving: with the Reply before it, unless this machine took so long to send it. */
    if (where != CONN_MOVING)
        peer_sees(ERROR, PEER_RST);
    else if (peer_drain(PEER) != PEER_RST)
        test_fail("moved, and too late: the peer does not see RST");
    expect_receive(true);
    over(0);
    /* What is due: an FPDU. */
    there(where, false, NULL);
    stream_send(&m.w.s, m.w.link.send_msn++, m.w.octets, 20);
    if (where == CONN_MOVING)
        machine_go_on(&m);
    wire_send(&m.w);
    must(&m.accept, m.accepting, "NdkAcceptEx");
    expect_result(&END.receive, "the first", 1, STATUS_SUCCESS);
    memcpy(m.w.bench.before + INBOX_AT, m.w.octets, 20);
    if (where == CONN_MOVING)
        machine_expect_reply(&m);
    link_works(&m.w.bench, &m.w.link, "the first", 3);
    machine_close(&m);
}

static void in_moving(void **state)
{
    (void)state;
    after_accept(CONN_MOVING);
}

static void in_wait_first(void **state)
{
    (void)state;
    after_accept(CONN_WAIT_FIRST);
}

/* Linux's names for sockets and Windows' cannot stand in one file. */
int getsockopt(int fd, int level, int option, void *value, unsigned *length);
enum { SOCKET_KEEPALIVE = 9, TCP_KEEPIDLE = 4, TCP_USER_TIMEOUT = 18 };
enum { LEVEL_SOCKET = 1, LEVEL_TCP = 6 };

static int socket_option(int level, int option)
{
    int value = -1;
    unsigned length = sizeof value;

    assert_int_equal(getsockopt(conn_of(&m)->fd, level, option, &value, &length), 0);
    return value;
}

/* Whoever began it, a connection's socket has the time limits of the options. */
static void sockets_have_their_limits(void **state)
{
    (void)state;
    for (int active = 0; active < 2; active++) {
        there(CONN_OPEN, active, "user_timeout_ms=12345,keepalive_s=77");
        assert_int_equal(socket_option(LEVEL_TCP, TCP_USER_TIMEOUT), 12345);
        assert_int_equal(socket_option(LEVEL_SOCKET, SOCKET_KEEPALIVE), 1);
        assert_int_equal(socket_option(LEVEL_TCP, TCP_KEEPIDLE), 77);
        machine_close(&m);
        there(CONN_OPEN, active, "user_timeout_ms=0,keepalive_s=0");
        assert_int_equal(socket_option(LEVEL_TCP, TCP_USER_TIMEOUT), 0);
        assert_int_equal(socket_option(LEVEL_SOCKET, SOCKET_KEEPALIVE), 0);
        machine_close(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_connecting),
        cmocka_unit_test(in_wait_reply),
        cmocka_unit_test(in_retrying),
        cmocka_unit_test(in_decide),
        cmocka_unit_test(in_decide_octets),
        cmocka_unit_test(in_wait_request),
        cmocka_unit_test(in_undecided),
        cmocka_unit_test(in_completing),
        cmocka_unit_test(in_moving),
        cmocka_unit_test(in_wait_first),
        cmocka_unit_test(sockets_have_their_limits),
    };

    return machine_run(tests, sizeof tests / sizeof tests[0]);
}
