// SPDX-License-Identifier: MIT
/*
 * Every event of the wire in every state of an established connection, up to its end
 * (docs/connections.md, "Events"); the states before are in machine_startup_test.c. What becomes of
 * the requests, the reason that is left, what the peer sees, and the disconnect event: once, or not
 * at all. In two completion modes, over IPv4 and IPv6.
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
        cmocka_unit_test(in_open),
        cmocka_unit_test(in_open_other_reasons),
        cmocka_unit_test(in_open_reset_without_its_error),
        cmocka_unit_test(in_open_behind_the_peers_fin),
        cmocka_unit_test(in_disconnecting),
        cmocka_unit_test(in_closing),
    };

    return machine_run(tests, sizeof tests / sizeof tests[0]);
}
