// SPDX-License-Identifier: MIT
/*
 * What may happen to a connection from outside, and what must have become of it: for the tests of
 * events (machine_startup_test.c, machine_events_test.c). Include behind ends.h, peer.h and
 * machine.h, and in one file of a program: the machine under test, `m`, is here.
 */
#ifndef SOFTNDK_TESTS_MACHINE_HAPPENS_H
#define SOFTNDK_TESTS_MACHINE_HAPPENS_H

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

#endif
