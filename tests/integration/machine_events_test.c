// SPDX-License-Identifier: MIT
/*
 * Every event of the wire in every state of a connection (docs/connections.md, "Events"): the
 * peer's FIN, its RST, a timer, octets that are due, a Terminate, garbage. What becomes of the call
 * that pends or of the one that follows, the reason that is left, the posted receive, what the peer
 * sees, and the disconnect event: once, or not at all. In two completion modes, over IPv4 and IPv6.
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

static struct machine m;

#define END     m.w.link.end
#define PEER    (&m.w.link.peer)
#define ABORTED STATUS_CONNECTION_ABORTED

/* ---- events --------------------------------------------------------------------------------- */

enum event { PEERS_FIN, PEERS_RST, TERMINATE, GARBAGE, ERROR };

static const char *const event_names[] = {"FIN", "RST", "Terminate", "garbage", "socket error"};

/* An FPDU of 16 octets with a wrong CRC; in a startup frame's place no frame at all. */
static const uint8_t garbage[24] = "\x00\x10garbage, no more\0\0zzzz";

static void happens(enum event event)
{
    switch (event) {
    case PEERS_FIN:
        peer_half_close(PEER);
        break;
    case PEERS_RST:
        peer_reset(PEER);
        break;
    case TERMINATE:
        stream_terminate(&m.w.s, "\x20\x02\x00\x00", 4);
        wire_send(&m.w);
        break;
    case GARBAGE:
        peer_send(PEER, garbage, sizeof garbage);
        break;
    case ERROR: /* as when the peer has vanished: the next receive says so */
        os_fault_set("recv", 1, ETIMEDOUT, false);
        peer_send(PEER, "\0", 1);
        break;
    }
}

/* The end of it for the peer; garbage between FPDUs is told about in a Terminate. */
static void peer_sees(enum event event, enum peer_end end)
{
    if (event == PEERS_RST)
        return;
    if (event == GARBAGE && end == PEER_DATA) {
        peer_expect_terminate(PEER, "garbage", 0x2002, PEER_BARE, NULL, 0);
        end = PEER_FIN;
    }
    if (peer_await_end(PEER) != end)
        test_fail("%s: the peer does not see %s", event_names[event],
                  end == PEER_FIN ? "FIN" : "RST");
}

static void expect(enum event event, NTSTATUS is, NTSTATUS want, const char *words)
{
    char text[300];

    if (is != want)
        test_fail("%s: %s, not %s", event_names[event], softndk_status_name(is),
                  softndk_status_name(want));
    softndk_reason(&connector_of(&m)->Header, text, sizeof text);
    if (words && !strstr(text, words))
        test_fail("%s: the reason is \"%s\", without \"%s\"", event_names[event], text, words);
}

/* The receive that was posted: completed so, or still there. */
static void expect_receive(bool cancelled)
{
    if (!cancelled) {
        expect_no_result(&END.receive, "still posted");
        END.qp->Dispatch->NdkFlush(END.qp);
    }
    expect_result(&END.receive, "the receive", 1, STATUS_CANCELLED);
    expect_no_result(&END.receive, "once");
    expect_no_result(&END.initiator, "nothing was posted there");
}

/* It is over; the event came so often. */
static void over(unsigned events)
{
    machine_go_on(&m);
    if (connector_of(&m)) {
        await_state(&m, CONN_GONE);
        if (atomic_load(&END.disconnects) != events)
            test_fail("%u disconnect events", atomic_load(&END.disconnects));
    }
    machine_close(&m);
    if (atomic_load(&END.disconnects) != 0) /* end_close() clears; so it came afterwards */
        test_fail("a disconnect event behind the close");
}

static void there(enum conn_state state, bool active, const char *options)
{
    machine_open(&m, state, active, options);
    if (connector_of(&m))
        link_receive(&m.w.bench, &m.w.link, 0);
}

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
        machine_expect_reply(&m);
    }
    expect(ERROR, wait_end(&m.accept, m.accepting), STATUS_IO_TIMEOUT, "establish_ms");
    peer_sees(ERROR, PEER_RST);
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

/* ---- established ---------------------------------------------------------------------------- */

/* The event, once, with its reason in words. */
static void expect_told(const char *words)
{
    char text[300];

    if (!wait_event(&END.disconnected, PEER_WAIT_MS))
        test_fail("no disconnect event: %s", words);
    softndk_reason_text(END.reason, text, sizeof text);
    if (!strstr(text, words))
        test_fail("the event's reason is \"%s\", without \"%s\"", text, words);
}

static void in_open(void **state)
{
    static const char *const words[] = {"closed the connection (FIN)", "reset the connection (RST)",
                                        "Terminate received: MPA: ", "Terminate sent: MPA: ",
                                        "timed out; TCP got no acknowledgement"};

    (void)state;
    for (int active = 0; active < 2; active++) {
        for (enum event event = PEERS_FIN; event <= ERROR; event++) {
            there(CONN_OPEN, active, NULL);
            link_read(&m.w.bench, &m.w.link, 0, 16);
            peer_fpdu(PEER);
            happens(event);
            expect_told(words[event]);
            os_fault_clear();
            expect_result(&END.initiator, "a Read", 1,
                          event == PEERS_FIN || event == ERROR ? STATUS_IO_TIMEOUT
                          : event == TERMINATE                 ? STATUS_REMOTE_RESOURCES
                                                               : STATUS_CANCELLED);
            if (event == PEERS_FIN) { /* nothing is flushed, the connection waits for us */
                expect_state(&m, CONN_OPEN);
                expect_no_result(&END.receive, "no flush");
                if (!peer_quiet(PEER, 5))
                    test_fail("FIN: something for the peer");
                machine_disconnect(&m);
                assert_int_equal(wait_end(&m.disconnect, m.disconnecting), STATUS_SUCCESS);
            }
            expect_receive(true);
            peer_sees(event, event == GARBAGE ? PEER_DATA : event == ERROR ? PEER_RST : PEER_FIN);
            if (event == TERMINATE || event == GARBAGE)
                peer_half_close(PEER);
            over(1);
        }
        there(CONN_OPEN, active, NULL);
        stream_send(&m.w.s, m.w.link.send_msn++, m.w.octets, 20);
        wire_send(&m.w);
        expect_result(&END.receive, "a Send", 1, STATUS_SUCCESS);
        machine_close(&m);
    }
}

/* The other reasons of the event: the peer breaks off inside an FPDU or a message; one of our own
 * requests names memory that it may not; a CQ overran. */
static void in_open_other_reasons(void **state)
{
    NDK_SGE sge = {.MemoryRegionToken = 0xdead0000, .Length = 8};

    (void)state;
    for (int active = 0; active < 2; active++) {
        NDK_QP *qp;

        there(CONN_OPEN, active, NULL);
        peer_send(PEER, garbage, 5);
        peer_half_close(PEER);
        expect_told("the peer broke the protocol: MPA: ");
        expect_told("FIN inside an FPDU");
        expect_receive(true);
        peer_sees(ERROR, PEER_RST);
        over(1);

        there(CONN_OPEN, active, NULL);
        stream_untagged(&m.w.s, 0x01, 0x43, 0, 0, m.w.link.send_msn, 0, m.w.octets, 8);
        wire_send(&m.w);
        peer_half_close(PEER);
        expect_told("FIN inside a message");
        memcpy(m.w.bench.before + INBOX_AT, m.w.octets, 8);
        expect_receive(true);
        over(1);

        there(CONN_OPEN, active, NULL);
        qp = END.qp;
        must(NULL, qp->Dispatch->NdkSend(qp, (void *)5, &sge, 1, 0), "NdkSend");
        expect_result(&END.initiator, "a wrong token", 5, STATUS_ACCESS_VIOLATION);
        expect_told("Terminate sent: RDMAP: local");
        if (peer_drain(PEER) != PEER_FIN)
            test_fail("no FIN behind the Terminate");
        peer_half_close(PEER);
        expect_receive(true);
        over(1);

        there(CONN_OPEN, active, NULL);
        qp = END.qp;
        for (unsigned i = 0; i <= 4 * END_DEPTH; i++) /* nobody polls */
            must(NULL, qp->Dispatch->NdkSend(qp, (void *)5, NULL, 0, 0), "NdkSend");
        expect_told("failed locally; its CQ overran");
        if (peer_drain(PEER) != PEER_RST)
            test_fail("no RST behind the overrun");
        expect_result(&END.receive, "overrun", 1, STATUS_CANCELLED);
        over(1);
    }
}

/* The error of a reset is told once, to whoever asks first, such as a send that goes on at the same
 * time; here, to this test. What is left looks like a FIN, and is none. */
static void in_open_reset_without_its_error(void **state)
{
    (void)state;
    for (int active = 0; active < 2; active++) {
        there(CONN_OPEN, active, NULL);
        machine_stall(&m, qp_from(END.qp)->object.home);
        peer_reset(PEER);
        await_peers_end(&m);
        machine_go_on(&m);
        expect_told("reset the connection (RST)");
        expect_receive(true);
        over(1);
    }
}

/* The peer's FIN is in, which is told once; ours is not out. */
static void in_open_behind_the_peers_fin(void **state)
{
    (void)state;
    for (int active = 0; active < 2; active++) {
        there(CONN_OPEN, active, NULL);
        peer_half_close(PEER);
        expect_told("closed the connection (FIN)");
        expect_state(&m, CONN_OPEN);
        peer_reset(PEER);
        expect_receive(true);
        over(1);

        there(CONN_OPEN, active, "establish_ms=100,disconnect_ms=100,request_ms=100");
        peer_half_close(PEER);
        expect_told("closed the connection (FIN)");
        test_sleep_ms(300); /* no timer hurries the consumer */
        expect_state(&m, CONN_OPEN);
        must(NULL, END.qp->Dispatch->NdkSend(END.qp, (void *)7, NULL, 0, 0), "NdkSend");
        assert_int_equal(peer_fpdu(PEER)->opcode, 3);
        expect_result(&END.initiator, "behind its FIN", 7, STATUS_SUCCESS);
        machine_disconnect(&m);
        assert_int_equal(wait_end(&m.disconnect, m.disconnecting), STATUS_SUCCESS);
        expect_receive(true);
        over(1);
    }
}

/* Our FIN is out. Nothing can be told to the peer any more. */
static void in_disconnecting(void **state)
{
    static const char *const words[] = {NULL, "RST", "Terminate received",
                                        "broke the protocol: MPA: ", "TCP got no"};

    (void)state;
    for (int active = 0; active < 2; active++) {
        for (enum event event = PEERS_FIN; event <= ERROR; event++) {
            there(CONN_OPEN, active, "drain_ms=300");
            machine_disconnect(&m);
            happens(event);
            expect(event, wait_end(&m.disconnect, m.disconnecting),
                   event == PEERS_FIN ? STATUS_SUCCESS
                   : event == ERROR   ? STATUS_IO_TIMEOUT
                                      : ABORTED,
                   words[event]);
            os_fault_clear();
            expect_receive(true);
            if (event != PEERS_RST)
                peer_await_end(PEER); /* and no octet */
            over(0);
        }
        there(CONN_OPEN, active, "disconnect_ms=300");
        machine_disconnect(&m);
        expect(ERROR, wait_end(&m.disconnect, m.disconnecting), STATUS_IO_TIMEOUT, "disconnect_ms");
        expect_receive(true);
        over(0);

        there(CONN_OPEN, active, NULL); /* what was on its way is still received */
        machine_disconnect(&m);
        stream_send(&m.w.s, m.w.link.send_msn++, m.w.octets, 20);
        wire_send(&m.w);
        expect_result(&END.receive, "behind our FIN", 1, STATUS_SUCCESS);
        stream_read(&m.w.s, m.w.link.read_msn++, 0x2200, 0, 16, m.w.bench.readable.remote,
                    (uint64_t)(uintptr_t)m.w.bench.readable.data); /* gets no answer, no error */
        wire_send(&m.w);
        peer_half_close(PEER);
        assert_int_equal(wait_end(&m.disconnect, m.disconnecting), STATUS_SUCCESS);
        assert_int_equal(peer_await_end(PEER), PEER_FIN);
        over(0);
    }
}

/* ---- ending --------------------------------------------------------------------------------- */

static void in_closing(void **state)
{
    (void)state;
    for (int event = PEERS_FIN; event <= GARBAGE + 1; event++) {
        there(CONN_OPEN, false, event > GARBAGE ? "drain_ms=300" : "drain_ms=60000");
        happens(GARBAGE);
        expect_told("Terminate sent");
        await_state(&m, CONN_CLOSING);
        expect_receive(true);
        if (event <= GARBAGE)
            happens((enum event)event);
        if (event == TERMINATE || event == GARBAGE) { /* discarded */
            stream_send(&m.w.s, m.w.link.send_msn, m.w.octets, 20);
            wire_send(&m.w);
            test_sleep_ms(20);
            expect_state(&m, CONN_CLOSING);
            expect_no_result(&END.receive, "discarded");
            peer_half_close(PEER);
        }
        over(1);
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
        cmocka_unit_test(in_open),
        cmocka_unit_test(in_open_other_reasons),
        cmocka_unit_test(in_open_reset_without_its_error),
        cmocka_unit_test(in_open_behind_the_peers_fin),
        cmocka_unit_test(in_disconnecting),
        cmocka_unit_test(in_closing),
    };

    return machine_run(tests, sizeof tests / sizeof tests[0]);
}
