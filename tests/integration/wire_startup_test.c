// SPDX-License-Identifier: MIT
/*
 * MPA startup with the end as responder: every kind of Request of a foreign initiator, the answer,
 * the first FPDU (W-15..W-32, W-39..W-49, M-11, M-17, M-20, M-21, M-87). Names carry the row's
 * number. Bad Requests are in wire_request_test.c, the initiator's side in wire_connect_test.c.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include "ends.h"
#include "peer.h"

static struct wire t;
static struct wait accepting;
static NTSTATUS accept_status;

#define CONNECTOR t.link.end.connector
#define KEY       "MPA ID Req Frame"
#define REPLY_KEY "MPA ID Rep Frame"

/* ---- steps ---------------------------------------------------------------------------------- */

static void open_bench(const char *options)
{
    wire_bench(&t, options);
    end_of_bench(&t.bench, &t.link.end);
}

static void connect_with(const void *octets, size_t length)
{
    peer_connect(&t.link.peer, port_of(&t.bench.listening));
    peer_send(&t.link.peer, octets, length);
}

static void arrives(void)
{
    CONNECTOR = next_incoming(&t.bench.listening);
}

static void accept_it(ULONG inbound, ULONG outbound)
{
    accept_status = end_accepts(&t.link.end, inbound, outbound, NULL, 0, &accepting);
}

static void expect_accepted(const char *row, NTSTATUS want)
{
    NTSTATUS status = wait_end(&accepting, accept_status);

    if (status != want)
        test_fail("%s: NdkAcceptEx: %s", row, softndk_status_name(status));
}

static unsigned shown(void)
{
    return atomic_load(&t.bench.listening.events);
}

/* ---- Requests and their Replies ------------------------------------------------------------- */

/* What the peer's first FPDU is. */
enum first { FIRST_READ, FIRST_WRITE, FIRST_EMPTY, FIRST_EMPTY_SEND, FIRST_SEND };

struct good {
    const char *name;
    const char *options;
    const char *request, *reply;
    size_t request_length, reply_length;
    enum first first;
    ULONG inbound, outbound; /* reported afterwards */
};

#define GOOD(name, options, request, reply, first, inbound, outbound)                              \
    {                                                                                              \
        name, options, KEY request, REPLY_KEY reply, 15 + sizeof request, 15 + sizeof reply,       \
            first, inbound, outbound                                                               \
    }

static const struct good goods[] = {
    GOOD("W-17 siw", NULL, "\x10\x02\x00\x04\x00\x01\x00\x01", "\x50\x02\x00\x04\x00\x01\x00\x01",
         FIRST_SEND, 1, 1),
    GOOD("W-16", NULL, "\x40\x01\x00\x05hello", "\x40\x01\x00\x00", FIRST_SEND, 8, 8),
    GOOD("W-18 revision 1", NULL, "\x00\x01\x00\x00", "\x40\x01\x00\x00", FIRST_SEND, 8, 8),
    GOOD("W-19 crc=0", "crc=0", "\x40\x01\x00\x00", "\x40\x01\x00\x00", FIRST_SEND, 8, 8),
    GOOD("M-11 S in revision 1", NULL, "\x50\x01\x00\x02xy", "\x40\x01\x00\x00", FIRST_SEND, 8, 8),
    GOOD("W-42 Write", NULL, "\x40\x01\x00\x00", "\x40\x01\x00\x00", FIRST_WRITE, 8, 8),
    GOOD("W-42 Read", NULL, "\x40\x01\x00\x00", "\x40\x01\x00\x00", FIRST_READ, 8, 8),
    GOOD("W-22 R=1", NULL, "\x70\x02\x00\x04\x00\x08\x00\x08", "\x50\x02\x00\x04\x00\x08\x00\x08",
         FIRST_SEND, 8, 8),
    GOOD("W-25 reserved bits", NULL, "\x5f\x02\x00\x04\x00\x08\x00\x08",
         "\x50\x02\x00\x04\x00\x08\x00\x08", FIRST_SEND, 8, 8),
    GOOD("revision 2 without S", NULL, "\x40\x02\x00\x00", "\x40\x02\x00\x00", FIRST_SEND, 8, 8),
    GOOD("W-28 W-24", NULL, "\x50\x02\x00\x04\x40\x08\xc0\x08", "\x50\x02\x00\x04\x00\x08\x00\x08",
         FIRST_SEND, 8, 8),
    GOOD("W-29 W-40", NULL, "\x50\x02\x00\x04\x80\x08\xc0\x08", "\x50\x02\x00\x04\x80\x08\x40\x08",
         FIRST_READ, 8, 8),
    GOOD("W-30 and IRD 0", NULL, "\x50\x02\x00\x04\x80\x08\x40\x00",
         "\x50\x02\x00\x04\x80\x01\x40\x08", FIRST_READ, 0, 8),
    GOOD("W-39 C only", NULL, "\x50\x02\x00\x04\x80\x08\x80\x08",
         "\x50\x02\x00\x04\x80\x08\x80\x08", FIRST_WRITE, 8, 8),
    GOOD("W-31 empty", NULL, "\x50\x02\x00\x04\xc0\x08\x00\x08", "\x50\x02\x00\x04\xc0\x08\x00\x08",
         FIRST_EMPTY, 8, 8),
    GOOD("W-31 W-41", NULL, "\x50\x02\x00\x04\xc0\x08\x00\x08", "\x50\x02\x00\x04\xc0\x08\x00\x08",
         FIRST_EMPTY_SEND, 8, 8),
    GOOD("W-32", NULL, "\x50\x02\x00\x04\x80\x08\x00\x08", "\x50\x02\x00\x04\x80\x08\x40\x08",
         FIRST_READ, 8, 8),
    GOOD("M-20 Send for a Read", NULL, "\x50\x02\x00\x04\x80\x08\xc0\x08",
         "\x50\x02\x00\x04\x80\x08\x40\x08", FIRST_SEND, 8, 8),
    GOOD("M-20 Write for a Read", NULL, "\x50\x02\x00\x04\x80\x08\xc0\x08",
         "\x50\x02\x00\x04\x80\x08\x40\x08", FIRST_WRITE, 8, 8),
    GOOD("M-20 Read for a Send", NULL, "\x50\x02\x00\x04\xc0\x08\x00\x08",
         "\x50\x02\x00\x04\xc0\x08\x00\x08", FIRST_READ, 8, 8),
    GOOD("W-43", "max_inbound_reads=4", "\x50\x02\x00\x04\x00\x08\x00\x08",
         "\x50\x02\x00\x04\x00\x04\x00\x08", FIRST_SEND, 4, 8),
    GOOD("W-44", NULL, "\x50\x02\x00\x04\x00\x02\x00\x08", "\x50\x02\x00\x04\x00\x08\x00\x02",
         FIRST_SEND, 8, 2),
    GOOD("W-47", NULL, "\x50\x02\x00\x04\x3f\xff\x00\x08", "\x50\x02\x00\x04\x00\x08\x3f\xff",
         FIRST_SEND, 8, 8),
    GOOD("W-48", NULL, "\x50\x02\x00\x04\x00\x08\x3f\xff", "\x50\x02\x00\x04\x3f\xff\x00\x08",
         FIRST_SEND, 8, 8),
    GOOD("W-49", NULL, "\x50\x02\x00\x04\x80\x00\xc0\x08", "\x50\x02\x00\x04\x80\x08\x40\x00",
         FIRST_READ, 8, 0),
};

static void send_first(enum first first)
{
    const struct peer_fpdu *f;

    switch (first) {
    case FIRST_READ:
        stream_read(&t.s, t.link.read_msn++, 0x2200, 0x7f, 0, 1, 0);
        break;
    case FIRST_WRITE:
        stream_write(&t.s, 1, 0, NULL, 0);
        break;
    case FIRST_EMPTY:
        stream_fpdu(&t.s, "", 0);
        break;
    case FIRST_EMPTY_SEND:
        stream_send(&t.s, t.link.send_msn++, NULL, 0);
        break;
    default:
        stream_send(&t.s, t.link.send_msn++, t.octets, 12);
        break;
    }
    wire_send(&t);
    if (first == FIRST_READ) { /* W-40 */
        f = peer_fpdu(&t.link.peer);
        assert_true(f->opcode == 2 && f->last && f->payload_length == 0);
        assert_true(f->stag == 0x2200 && f->to == 0x7f);
    }
}

static void play_good(const struct good *good, bool trickle)
{
    ULONG in = 0, out = 0, length = 0;
    NDK_SGE sge;
    bool held = good->reply_length < 24 || !(good->reply[20] & 0x80);

    open_bench(good->options);
    peer_connect(&t.link.peer, port_of(&t.bench.listening));
    if (trickle)
        peer_trickle(&t.link.peer, good->request, good->request_length);
    else
        peer_send(&t.link.peer, good->request, good->request_length);
    arrives();
    accept_it(8, 8);
    link_receive(&t.bench, &t.link, 0);
    /* W-24, W-39: legal from the accept on, and held until the first FPDU. */
    sge = memory_sge(&t.bench.sink, 0, 21);
    assert_int_equal(t.link.end.qp->Dispatch->NdkSend(t.link.end.qp, &t, &sge, 1, 0),
                     STATUS_SUCCESS);
    peer_expect_frame(&t.link.peer, good->name, good->reply, good->reply_length);
    if (held)
        expect_accepted(good->name, STATUS_SUCCESS);
    if (!peer_quiet(&t.link.peer, trickle ? 1 : 30))
        test_fail("%s: the responder speaks first", good->name);
    t.link.send_msn = t.link.read_msn = 1;
    send_first(good->first);
    if (!held)
        expect_accepted(good->name, STATUS_SUCCESS);
    if (peer_fpdu(&t.link.peer)->opcode != 3 || t.link.peer.got.payload_length != 21)
        test_fail("%s: the Send that was held", good->name);
    expect_result(&t.link.end.initiator, good->name, (uintptr_t)&t, STATUS_SUCCESS);
    if (good->first == FIRST_SEND)
        expect_result(&t.link.end.receive, good->name, 1, STATUS_SUCCESS);
    else
        test_sleep_ms(trickle ? 1 : 5);
    expect_no_result(&t.link.end.receive, good->name); /* no receive is taken by the message */
    if (good->first != FIRST_SEND) {
        stream_send(&t.s, t.link.send_msn++, t.octets, 12);
        wire_send(&t);
        expect_result(&t.link.end.receive, good->name, 1, STATUS_SUCCESS);
    }
    assert_int_equal(CONNECTOR->Dispatch->NdkGetConnectionData(CONNECTOR, &in, &out, NULL, &length),
                     STATUS_SUCCESS);
    if (in != good->inbound || out != good->outbound)
        test_fail("%s: limits %u and %u, not %u and %u", good->name, (unsigned)in, (unsigned)out,
                  (unsigned)good->inbound, (unsigned)good->outbound);
    sge = memory_sge(&t.bench.sink, 0, 16);
    if (out == 0)
        assert_int_equal(t.link.end.qp->Dispatch->NdkRead(t.link.end.qp, &t, &sge, 1, 0, 1, 0),
                         STATUS_INVALID_DEVICE_REQUEST);
    link_works(&t.bench, &t.link, good->name, 1);
    wire_close(&t);
}

static void requests_that_are_taken(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof goods / sizeof goods[0]; i++) {
        play_good(&goods[i], false);
        play_good(&goods[i], true);
    }
}

static void W_20_no_crc(void **state)
{
    (void)state;
    open_bench("crc=0");
    connect_with(KEY "\x10\x02\x00\x04\x00\x08\x00\x08", 24);
    arrives();
    accept_it(8, 8);
    peer_expect_frame(&t.link.peer, "W-20", REPLY_KEY "\x10\x02\x00\x04\x00\x08\x00\x08", 24);
    expect_accepted("W-20", STATUS_SUCCESS);
    t.link.peer.crc = false;
    for (unsigned i = 0; i < 3; i++) {
        link_receive(&t.bench, &t.link, i);
        t.s.crc = i == 1; /* zero, right, wrong */
        stream_send(&t.s, i + 1, t.octets, 10);
        if (i == 2)
            t.s.octets[t.s.length - 1] = 0x77;
        wire_send(&t);
        expect_result(&t.link.end.receive, "W-20", i + 1, STATUS_SUCCESS);
    }
    t.link.send_msn = 4;
    link_works(&t.bench, &t.link, "W-20", 4);
    wire_close(&t);
}

static void W_21_W_23_refusals(void **state)
{
    char ten[] = "0123456789";
    unsigned before;

    (void)state;
    open_bench(NULL);
    for (int data = 0; data < 2; data++) {
        connect_with(KEY "\x50\x02\x00\x04\x80\x08\xc0\x08", 24);
        arrives();
        assert_int_equal(
            CONNECTOR->Dispatch->NdkReject(CONNECTOR, data ? ten : NULL, data ? 10 : 0),
            STATUS_SUCCESS);
        if (data) {
            uint8_t frame[532];

            assert_int_equal(peer_frame(&t.link.peer, frame), 34);
            assert_memory_equal(frame, REPLY_KEY "\x70\x02\x00\x0e", 20);
            assert_memory_equal(frame + 24, "0123456789", 10);
        } else {
            peer_expect_frame(&t.link.peer, "W-21", REPLY_KEY "\x70\x02\x00\x04\0\0\0\0", 24);
        }
        assert_int_equal(peer_await_end(&t.link.peer), PEER_FIN);
        peer_close(&t.link.peer);
        CLOSE(CONNECTOR, NdkCloseConnector);
        CONNECTOR = NULL;
    }
    before = shown();
    connect_with(KEY "\xd0\x02\x00\x04\x80\x08\xc0\x08", 24);
    peer_expect_frame(&t.link.peer, "W-23", REPLY_KEY "\x70\x02\x00\x04\0\0\0\0", 24);
    assert_int_equal(peer_await_end(&t.link.peer), PEER_FIN);
    peer_close(&t.link.peer);
    connect_with(KEY "\xc0\x01\x00\x00", 20);
    peer_expect_frame(&t.link.peer, "W-23", REPLY_KEY "\x60\x01\x00\x00", 20);
    assert_int_equal(peer_await_end(&t.link.peer), PEER_FIN);
    assert_int_equal(shown(), before);
    wire_close(&t);
}

static void W_26_private_data(void **state)
{
    static const ULONG lengths[] = {0, 1, 251, 252, 255, 256, 508, 512};
    uint8_t request[532], data[600];

    (void)state;
    open_bench("max_callee_data=508");
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        ULONG n = lengths[i], length = sizeof data;
        ULONG answer = n < 508 ? n : 508;
        ULONG head = n == 512 ? 20 : 24; /* 512 fit into revision 1 only */

        memcpy(request, head == 20 ? KEY "\x40\x01" : KEY "\x50\x02", 18);
        request[18] = (uint8_t)((n + head - 20) >> 8);
        request[19] = (uint8_t)(n + head - 20);
        memcpy(request + 20, "\x00\x08\x00\x08", 4);
        memcpy(request + head, t.octets, n);
        connect_with(request, head + n);
        arrives();
        memset(data, 0, sizeof data);
        assert_int_equal(
            CONNECTOR->Dispatch->NdkGetConnectionData(CONNECTOR, NULL, NULL, data, &length),
            STATUS_SUCCESS);
        assert_int_equal(length, n);
        assert_memory_equal(data, t.octets, n);
        assert_int_equal(CONNECTOR->Dispatch->NdkReject(CONNECTOR, t.octets, answer),
                         STATUS_SUCCESS);
        assert_int_equal(peer_frame(&t.link.peer, data), head + answer);
        assert_memory_equal(data + head, t.octets, answer);
        peer_close(&t.link.peer);
        CLOSE(CONNECTOR, NdkCloseConnector);
        CONNECTOR = NULL;
    }
    wire_close(&t);
}

/* ---- W-27, M-17, M-21, M-87: between Reply and first FPDU ----------------------------------- */

static void accepted(const char *options, bool peer_to_peer)
{
    open_bench(options);
    connect_with(peer_to_peer ? KEY "\x50\x02\x00\x04\x80\x08\xc0\x08"
                              : KEY "\x50\x02\x00\x04\x00\x08\x00\x08",
                 24);
    arrives();
    accept_it(8, 8);
    link_receive(&t.bench, &t.link, 0);
    peer_expect_frame(&t.link.peer, "accepted",
                      peer_to_peer ? REPLY_KEY "\x50\x02\x00\x04\x80\x08\x40\x08"
                                   : REPLY_KEY "\x50\x02\x00\x04\x00\x08\x00\x08",
                      24);
    if (!peer_to_peer)
        expect_accepted("accepted", STATUS_SUCCESS);
}

static void W_27_the_initiator_leaves(void **state)
{
    (void)state;
    for (int reset = 0; reset < 2; reset++) {
        accepted(NULL, true);
        if (reset)
            peer_reset(&t.link.peer);
        else
            peer_half_close(&t.link.peer);
        expect_accepted("W-27", reset ? STATUS_CONNECTION_ABORTED : STATUS_CONNECTION_REFUSED);
        expect_result(&t.link.end.receive, "W-27", 1, STATUS_CANCELLED);
        assert_int_equal(atomic_load(&t.link.end.disconnects), 0);
        wire_close(&t);
        accepted(NULL, false);
        if (reset)
            peer_reset(&t.link.peer);
        else
            peer_half_close(&t.link.peer);
        expect_event(&t.link.end, "W-27", reset ? 2 : 1, 0);
        wire_close(&t);
    }
}

static void M_17_a_second_request(void **state)
{
    (void)state;
    accepted(NULL, false);
    stream_raw(&t.s, KEY "\x50\x02\x00\x04\x00\x08\x00\x08", 24);
    for (int i = 0; i < 5; i++)
        stream_raw(&t.s, t.octets, sizeof t.octets);
    t.s.length = 2 + 0x4d50 + 2 + 4;
    wire_send(&t);
    peer_expect_terminate(&t.link.peer, "M-17", 0x2002, PEER_BARE, NULL, 0);
    expect_event(&t.link.end, "M-17", 3, 0x2002);
    bench_unchanged(&t.bench, "M-17");
    wire_close(&t);
}

static void M_21_no_first_fpdu(void **state)
{
    (void)state;
    accepted("establish_ms=200", true);
    expect_accepted("M-21", STATUS_IO_TIMEOUT);
    peer_await_end(&t.link.peer);
    expect_result(&t.link.end.receive, "M-21", 1, STATUS_CANCELLED);
    wire_close(&t);
    accepted("establish_ms=50", false); /* A=0: nothing is due */
    assert_true(peer_quiet(&t.link.peer, 300));
    t.link.send_msn = 1;
    stream_send(&t.s, t.link.send_msn++, t.octets, 1);
    wire_send(&t);
    expect_result(&t.link.end.receive, "M-21", 1, STATUS_SUCCESS);
    link_works(&t.bench, &t.link, "M-21", 1);
    wire_close(&t);
}

static void M_87_terminate_first(void **state)
{
    (void)state;
    accepted(NULL, true);
    stream_terminate(&t.s, "\x20\x07\x00\x00", 4);
    wire_send(&t);
    expect_accepted("M-87", STATUS_CONNECTION_ABORTED);
    expect_result(&t.link.end.receive, "M-87", 1, STATUS_CANCELLED);
    peer_await_end(&t.link.peer);
    wire_close(&t);
    accepted(NULL, false);
    stream_terminate(&t.s, "\x02\x06\x00\x00", 4); /* siw's order: before any FPDU it is MPA's */
    wire_send(&t);
    expect_event(&t.link.end, "M-87", 4, 0x2006);
    peer_await_end(&t.link.peer);
    wire_close(&t);
}

static void W_15_undecided(void **state)
{
    (void)state;
    open_bench("request_ms=100,establish_ms=100");
    connect_with(KEY "\x50\x02\x00\x04\x80\x08\xc0\x08", 24);
    arrives();
    assert_true(peer_quiet(&t.link.peer, 400));
    accept_it(8, 8);
    peer_expect_frame(&t.link.peer, "W-15", REPLY_KEY "\x50\x02\x00\x04\x80\x08\x40\x08", 24);
    peer_rtr_read(&t.link.peer);
    expect_accepted("W-15", STATUS_SUCCESS);
    wire_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(W_15_undecided),        cmocka_unit_test(requests_that_are_taken),
        cmocka_unit_test(W_20_no_crc),           cmocka_unit_test(W_21_W_23_refusals),
        cmocka_unit_test(W_26_private_data),     cmocka_unit_test(W_27_the_initiator_leaves),
        cmocka_unit_test(M_17_a_second_request), cmocka_unit_test(M_21_no_first_fpdu),
        cmocka_unit_test(M_87_terminate_first),
    };

    return cmocka_run_group_tests_name("wire_startup", tests, NULL, NULL);
}
