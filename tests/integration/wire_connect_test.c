// SPDX-License-Identifier: MIT
/*
 * MPA startup with the end as initiator: its Request, every kind of Reply of a foreign responder,
 * the ready-to-receive message, and the ends in between (W-1..W-13, W-18..W-20, W-33..W-46 and the
 * rows of M-1..M-19 that concern a Reply). Names carry the row's number.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include "ends.h"
#include "peer.h"

static struct wire t;
static struct wait connecting, completing;
static NTSTATUS connect_status, complete_status;

#define CONNECTOR t.link.end.connector

/* ---- steps ---------------------------------------------------------------------------------- */

static void open_bench(const char *options)
{
    wire_bench(&t, options);
    end_of_bench(&t.bench, &t.link.end);
}

/* The attempt is under way: TCP is there, the Request is on its way. */
static void start(ULONG inbound, ULONG outbound, const void *data, ULONG length)
{
    connect_status = end_connects(&t.bench, &t.link.end, peer_listen(&t.link.peer), inbound,
                                  outbound, data, length, &connecting);
    peer_accept(&t.link.peer);
}

static void expect_connected(const char *row, NTSTATUS want)
{
    NTSTATUS status = wait_end(&connecting, connect_status);

    if (status != want)
        test_fail("%s: NdkConnect: %s", row, softndk_status_name(status));
}

/* The attempt is over: the connector and the peer go, the QP can be used again. */
static void drop(void)
{
    peer_close(&t.link.peer);
    CLOSE(CONNECTOR, NdkCloseConnector);
    CONNECTOR = NULL;
}

static void take_request(void)
{
    uint8_t frame[532];

    peer_frame(&t.link.peer, frame);
}

static void complete(void)
{
    complete_status = end_completes(&t.link.end, &completing);
}

static void expect_completed(const char *row, NTSTATUS want)
{
    NTSTATUS status = wait_end(&completing, complete_status);

    if (status != want)
        test_fail("%s: NdkCompleteConnectEx: %s", row, softndk_status_name(status));
}

static void limits(const char *row, ULONG inbound, ULONG outbound)
{
    ULONG in = 0, out = 0, length = 0;

    assert_int_equal(CONNECTOR->Dispatch->NdkGetConnectionData(CONNECTOR, &in, &out, NULL, &length),
                     STATUS_SUCCESS);
    if (in != inbound || out != outbound)
        test_fail("%s: limits %u and %u, not %u and %u", row, (unsigned)in, (unsigned)out,
                  (unsigned)inbound, (unsigned)outbound);
}

/* ---- W-1..W-5: the Request ------------------------------------------------------------------ */

static void W_1_W_4_W_5_request(void **state)
{
    (void)state;
    open_bench(NULL);
    start(16, 16, NULL, 0);
    peer_expect_frame(&t.link.peer, "W-1", "MPA ID Req Frame\x50\x02\x00\x04\x80\x10\xc0\x10", 24);
    /* W-5: nothing can be posted yet. */
    assert_int_equal(t.link.end.qp->Dispatch->NdkSend(t.link.end.qp, NULL, NULL, 0, 0),
                     STATUS_CONNECTION_INVALID);
    assert_true(peer_quiet(&t.link.peer, 100));
    peer_close(&t.link.peer);
    wire_close(&t);
}

static void W_2_private_data(void **state)
{
    static const ULONG lengths[] = {1, 100, 251, 252, 255, 256, 508};
    uint8_t want[532] = "MPA ID Req Frame\x50\x02\x00\x04\x80\x02\xc0\x03";

    (void)state;
    open_bench("max_caller_data=508,retry_v1=0");
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        want[18] = (uint8_t)((lengths[i] + 4) >> 8);
        want[19] = (uint8_t)(lengths[i] + 4);
        memcpy(want + 24, t.octets, lengths[i]);
        start(2, 3, t.octets, lengths[i]);
        peer_expect_frame(&t.link.peer, "W-2", want, 24 + lengths[i]);
        peer_half_close(&t.link.peer);
        expect_connected("W-2", STATUS_CONNECTION_REFUSED);
        drop();
    }
    wire_close(&t);
}

static void W_3_W_13_revision_1(void **state)
{
    (void)state;
    open_bench("mpa_revision=1");
    start(5, 6, "hello", 5);
    peer_expect_frame(&t.link.peer, "W-3", "MPA ID Req Frame\x40\x01\x00\x05hello", 25);
    peer_send(&t.link.peer, "MPA ID Rep Frame\x50\x01\x00\x02hi", 22); /* M-14: a stray bit */
    expect_connected("W-13", STATUS_SUCCESS);
    limits("W-13", 5, 6);
    complete();
    assert_int_equal(complete_status, STATUS_SUCCESS);
    assert_true(peer_quiet(&t.link.peer, 50));
    t.link.send_msn = t.link.read_msn = 1;
    link_works(&t.bench, &t.link, "W-13", 0);
    wire_close(&t);
}

/* ---- Replies that end the attempt ----------------------------------------------------------- */

enum cut { ENDED, THEN_FIN, THEN_RST };

struct bad {
    const char *name;
    const char *reply;
    size_t length;
    enum cut cut;
    NTSTATUS status; /* 0: STATUS_CONNECTION_REFUSED */
    unsigned error;  /* 0: TCP just ends */
};

#define KEY         "MPA ID Rep Frame"
#define REPLY(tail) KEY tail, sizeof(KEY tail) - 1

static const struct bad bads[] = {
    {"M-2 Request for a Reply", "MPA ID Req Frame\x50\x02\x00\x04\x80\x08\x40\x08", 24, ENDED, 0,
     0},
    {"M-3 HTTP", "HTTP/1.1 400 Bad Request\r\n", 26, ENDED, 0, 0},
    {"M-3 the first octet", "H", 1, ENDED, 0, 0},
    {"M-3 the last octet of the key", "MPA ID Rep Framf", 16, ENDED, 0, 0},
    {"M-4 513 octets", REPLY("\x50\x02\x02\x01"), ENDED, 0, 0},
    {"M-4 65535 octets", REPLY("\x50\x02\xff\xff"), ENDED, 0, 0},
    {"M-6 FIN at once", "", 0, THEN_FIN, 0, 0},
    {"M-6 FIN in the key", KEY, 7, THEN_FIN, 0, 0},
    {"M-6 FIN in the header", REPLY("\x50\x02\x00"), THEN_FIN, 0, 0},
    {"M-6 FIN in the data", REPLY("\x50\x02\x00\x04\x80\x08\x40"), THEN_FIN, 0, 0},
    {"M-7 RST at once", "", 0, THEN_RST, 0, 0},
    {"M-7 RST in the key", KEY, 7, THEN_RST, 0, 0},
    {"M-7 RST in the data", REPLY("\x50\x02\x00\x04\x80\x08\x40"), THEN_RST, 0, 0},
    {"M-12 S, no data", REPLY("\x50\x02\x00\x00"), ENDED, 0, 0},
    {"M-12 S, 3 octets", REPLY("\x50\x02\x00\x03\x80\x08\x40"), ENDED, 0, 0},
    {"M-13 no S", REPLY("\x40\x02\x00\x04\x80\x08\x40\x08"), ENDED, 0, 0},
    {"M-13 revision 1", REPLY("\x40\x01\x00\x00"), ENDED, 0, 0},
    {"M-10 revision 3", REPLY("\x50\x03\x00\x04\x80\x08\x40\x08"), ENDED, 0, 0},
    {"M-15 markers", REPLY("\xd0\x02\x00\x04\x80\x08\x40\x08"), ENDED, 0, 0},
    {"W-8 refused, no data", REPLY("\x70\x02\x00\x04\x00\x08\x00\x08"), ENDED, 0, 0},
    {"W-36 only B", REPLY("\x50\x02\x00\x04\xc0\x08\x00\x08"), ENDED, STATUS_CONNECTION_ABORTED,
     0x2007},
    {"W-36 nothing", REPLY("\x50\x02\x00\x04\x80\x08\x00\x08"), ENDED, STATUS_CONNECTION_ABORTED,
     0x2007},
    {"W-46 ORD 32", REPLY("\x50\x02\x00\x04\x80\x08\x40\x20"), ENDED, STATUS_CONNECTION_ABORTED,
     0x2006},
    {"W-46 ORD 17", REPLY("\x50\x02\x00\x04\x80\x08\x40\x11"), ENDED, STATUS_CONNECTION_ABORTED,
     0x2006},
    {"M-19 ORD 129", REPLY("\x50\x02\x00\x04\x80\x08\x40\x81"), ENDED, STATUS_CONNECTION_ABORTED,
     0x2006},
};

/* W-11: a peer that knows revision 1 only closes on our Request; one more attempt follows, from the
 * same local endpoint. Not two. */
static void W_11_retry_with_revision_1(void **state)
{
    SOCKADDR_INET first, second;
    ULONG length = sizeof first;

    (void)state;
    open_bench(NULL);
    for (int again = 0; again < 2; again++) {
        start(5, 6, "hello", 5);
        take_request();
        assert_int_equal(
            CONNECTOR->Dispatch->NdkGetLocalAddress(CONNECTOR, (PSOCKADDR)&first, &length),
            STATUS_SUCCESS);
        peer_hang_up(&t.link.peer, again);
        peer_accept(&t.link.peer);
        peer_expect_frame(&t.link.peer, "W-11", "MPA ID Req Frame\x40\x01\x00\x05hello", 25);
        if (again) {
            peer_hang_up(&t.link.peer, false);
            expect_connected("W-11", STATUS_CONNECTION_REFUSED);
            assert_false(peer_connect_arrives(&t.link.peer, 100));
            break;
        }
        peer_send(&t.link.peer, "MPA ID Rep Frame\x40\x01\x00\x00", 20);
        expect_connected("W-11", STATUS_SUCCESS);
        length = sizeof second;
        assert_int_equal(
            CONNECTOR->Dispatch->NdkGetLocalAddress(CONNECTOR, (PSOCKADDR)&second, &length),
            STATUS_SUCCESS);
        assert_memory_equal(&first.Ipv4, &second.Ipv4, sizeof first.Ipv4);
        complete();
        assert_int_equal(complete_status, STATUS_SUCCESS);
        t.link.send_msn = t.link.read_msn = 1;
        link_works(&t.bench, &t.link, "W-11", 0);
        end_close(&t.link.end);
        link_init(&t.link);
        wire_close(&t);
        open_bench(NULL);
    }
    drop();
    wire_close(&t);
}

/* W-12, too: no second connection comes, whatever the end of the first. */
static void play_bad_so(const struct bad *bad, bool trickle)
{
    start(16, 16, NULL, 0);
    take_request();
    if (trickle)
        peer_trickle(&t.link.peer, bad->reply, bad->length);
    else
        peer_send(&t.link.peer, bad->reply, bad->length);
    if (bad->cut == THEN_FIN)
        peer_half_close(&t.link.peer);
    if (bad->cut == THEN_RST)
        peer_reset(&t.link.peer);
    expect_connected(bad->name, bad->status ? bad->status : STATUS_CONNECTION_REFUSED);
    if (bad->error)
        peer_expect_terminate(&t.link.peer, bad->name, bad->error, PEER_BARE, NULL, 0);
    if (bad->cut != THEN_RST) {
        peer_await_end(&t.link.peer);
        assert_false(peer_connect_arrives(&t.link.peer, 1));
    }
    drop();
}

/* In one piece and octet by octet. */
static void play_bad(const struct bad *bad)
{
    play_bad_so(bad, false);
    play_bad_so(bad, true);
}

static void W_12_replies_that_end_the_attempt(void **state)
{
    char key[16];

    (void)state;
    open_bench("retry_v1=0");
    for (size_t i = 0; i < sizeof bads / sizeof bads[0]; i++)
        play_bad(&bads[i]);
    for (unsigned i = 0; i < 16; i++) {
        struct bad bad = {"M-1", key, 16, ENDED, 0, 0};

        memcpy(key, KEY, 16);
        key[i] ^= 0x20;
        play_bad(&bad);
    }
    for (unsigned i = 1; i < 20; i++) {
        struct bad fin = {"M-6", KEY "\x50\x02\x00\x08", i, THEN_FIN, 0, 0};
        struct bad rst = {"M-7", KEY "\x50\x02\x00\x08", i, THEN_RST, 0, 0};

        play_bad_so(&fin, i % 2);
        play_bad_so(&rst, i % 2);
    }
    assert_int_equal(atomic_load(&t.link.end.disconnects), 0);
    /* The QP is as it was: a good attempt works. */
    end_close(&t.link.end);
    link_init(&t.link);
    link_open(&t.bench, &t.link, true);
    link_works(&t.bench, &t.link, "after bad Replies", 0);
    wire_close(&t);
}

/* The QP of an attempt that failed serves the next one. */
static void a_qp_survives_its_attempts(void **state)
{
    (void)state;
    open_bench("retry_v1=0");
    for (int i = 0; i < 3; i++) {
        start(8, 8, NULL, 0);
        take_request();
        peer_send_frame(&t.link.peer, true, i == 1 ? 0xc008 : 0x8008, i == 0 ? 0x4020 : 0x0008);
        expect_connected("attempt", STATUS_CONNECTION_ABORTED);
        drop();
    }
    link_end_connects(&t.bench, &t.link);
    link_works(&t.bench, &t.link, "after failed attempts", 0);
    wire_close(&t);
}

static void W_8_refused_with_data(void **state)
{
    uint8_t data[64];
    ULONG length = sizeof data;

    (void)state;
    open_bench(NULL);
    start(8, 8, NULL, 0);
    take_request();
    peer_send(&t.link.peer,
              "MPA ID Rep Frame\x70\x02\x00\x0e\x00\x04\x00\x20"
              "0123456789",
              34);
    expect_connected("W-8", STATUS_CONNECTION_REFUSED);
    assert_int_equal(
        CONNECTOR->Dispatch->NdkGetConnectionData(CONNECTOR, NULL, NULL, data, &length),
        STATUS_SUCCESS);
    assert_int_equal(length, 10);
    assert_memory_equal(data, "0123456789", 10);
    assert_int_equal(peer_await_end(&t.link.peer), PEER_FIN);
    assert_false(peer_connect_arrives(&t.link.peer, 50)); /* no retry after R=1 */
    wire_close(&t);
}

static void W_10_M_5_no_reply_in_time(void **state)
{
    (void)state;
    open_bench("connect_ms=200");
    for (int i = 0; i < 2; i++) {
        start(8, 8, NULL, 0);
        take_request();
        if (i)
            peer_send(&t.link.peer, "MPA ID Rep Frame\x50\x02\x00\x40", 20);
        expect_connected("W-10", STATUS_IO_TIMEOUT);
        peer_await_end(&t.link.peer);
        drop();
    }
    wire_close(&t);
}

/* ---- Replies that are taken ----------------------------------------------------------------- */

struct good {
    const char *name;
    const char *options;
    const char *reply; /* 24 octets */
    bool trickled;
    unsigned rtr; /* opcode of the ready-to-receive message, 16: none */
    ULONG inbound, outbound;
    bool no_crc;
};

#define NO_RTR 16

static const struct good goods[] = {
    {"W-33 D", NULL, KEY "\x50\x02\x00\x04\x80\x08\x40\x08", false, 1, 8, 8, false},
    {"W-6 D", NULL, KEY "\x50\x02\x00\x04\x80\x08\x40\x08", true, 1, 8, 8, false},
    {"W-34 C", NULL, KEY "\x50\x02\x00\x04\x80\x08\x80\x08", false, 0, 8, 8, false},
    {"W-34 B and C", NULL, KEY "\x50\x02\x00\x04\xc0\x08\x80\x08", true, 0, 8, 8, false},
    {"W-35 C and D", NULL, KEY "\x50\x02\x00\x04\x80\x08\xc0\x08", false, 1, 8, 8, false},
    {"W-37 A=0", NULL, KEY "\x50\x02\x00\x04\x00\x08\x00\x08", false, NO_RTR, 8, 8, false},
    {"W-37 A=0, D", NULL, KEY "\x50\x02\x00\x04\x00\x08\x40\x08", false, NO_RTR, 8, 8, false},
    {"M-18 A=1 to A=0", "p2p=0", KEY "\x50\x02\x00\x04\x80\x08\xc0\x08", false, NO_RTR, 8, 8,
     false},
    {"W-9 reserved bits", NULL, KEY "\x5f\x02\x00\x04\x80\x08\x40\x08", false, 1, 8, 8, false},
    {"W-18 C=0 to C=1", NULL, KEY "\x10\x02\x00\x04\x80\x08\x40\x08", false, 1, 8, 8, false},
    {"W-19 C=1 to C=0", "crc=0", KEY "\x50\x02\x00\x04\x80\x08\x40\x08", false, 1, 8, 8, false},
    {"W-20 C=0 to C=0", "crc=0", KEY "\x10\x02\x00\x04\x80\x08\x40\x08", false, 1, 8, 8, true},
    {"W-45 IRD 2", NULL, KEY "\x50\x02\x00\x04\x80\x02\x40\x08", false, 1, 8, 2, false},
    {"W-45 ORD 3", NULL, KEY "\x50\x02\x00\x04\x80\x08\x40\x03", false, 1, 3, 8, false},
    {"M-19 IRD 200", NULL, KEY "\x50\x02\x00\x04\x80\xc8\x40\x08", false, 1, 8, 8, false},
    {"IRD 3fff", NULL, KEY "\x50\x02\x00\x04\xbf\xff\x40\x08", false, 1, 8, 8, false},
    {"ORD 3fff", NULL, KEY "\x50\x02\x00\x04\x80\x08\x7f\xff", false, 1, 8, 8, false},
};

static void expect_rtr(const struct good *good)
{
    const struct peer_fpdu *f;

    if (good->rtr == NO_RTR) {
        if (!peer_quiet(&t.link.peer, 30))
            test_fail("%s: a ready-to-receive message", good->name);
        return;
    }
    if (good->rtr == 1) {
        peer_answer_rtr_read(&t.link.peer);
        return;
    }
    f = peer_fpdu(&t.link.peer);
    if (f->opcode != good->rtr || f->length != 14 || !f->last)
        test_fail("%s: no ready-to-receive Write", good->name);
}

static void replies_that_are_taken(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof goods / sizeof goods[0]; i++) {
        const struct good *good = &goods[i];

        open_bench(good->options);
        start(8, 8, NULL, 0);
        take_request();
        if (good->trickled)
            peer_trickle(&t.link.peer, good->reply, 24);
        else
            peer_send(&t.link.peer, good->reply, 24);
        expect_connected(good->name, STATUS_SUCCESS);
        limits(good->name, good->inbound, good->outbound);
        if (!peer_quiet(&t.link.peer, 20))
            test_fail("%s: octets before the consumer completes", good->name);
        t.link.peer.crc = !good->no_crc;
        complete();
        expect_rtr(good);
        expect_completed(good->name, STATUS_SUCCESS);
        if (!peer_quiet(&t.link.peer, 10))
            test_fail("%s: a second ready-to-receive message", good->name);
        expect_no_result(&t.link.end.initiator, good->name);
        t.link.send_msn = 1;
        link_works(&t.bench, &t.link, good->name, 0);
        wire_close(&t);
    }
}

/* The peer holds no Read of ours: the ready-to-receive one has its own place, others fail. */
static void W_49_ird_0(void **state)
{
    NDK_SGE sge;

    (void)state;
    open_bench(NULL);
    start(8, 8, NULL, 0);
    take_request();
    peer_send_frame(&t.link.peer, true, 0x8000, 0x4008);
    expect_connected("W-49", STATUS_SUCCESS);
    limits("W-49", 8, 0);
    complete();
    peer_answer_rtr_read(&t.link.peer);
    expect_completed("W-49", STATUS_SUCCESS);
    sge = memory_sge(&t.bench.sink, 0, 16);
    assert_int_equal(t.link.end.qp->Dispatch->NdkRead(t.link.end.qp, &t, &sge, 1, 0, 1, 0),
                     STATUS_INVALID_DEVICE_REQUEST);
    link_works(&t.bench, &t.link, "W-49", 0);
    wire_close(&t);
}

/* W-20: the field is there, its value is ignored; what the end sends has zeros in it. */
static void W_20_no_crc(void **state)
{
    const struct peer_fpdu *f;

    (void)state;
    open_bench("crc=0");
    start(8, 8, NULL, 0);
    peer_expect_frame(&t.link.peer, "W-20", "MPA ID Req Frame\x10\x02\x00\x04\x80\x08\xc0\x08", 24);
    peer_send(&t.link.peer, KEY "\x10\x02\x00\x04\x00\x08\x00\x08", 24);
    expect_connected("W-20", STATUS_SUCCESS);
    t.link.peer.crc = false;
    complete();
    expect_completed("W-20", STATUS_SUCCESS);
    for (unsigned i = 0; i < 3; i++) {
        link_receive(&t.bench, &t.link, i);
        t.s.crc = i == 1; /* right, zero, wrong */
        stream_send(&t.s, i + 1, t.octets, 10);
        if (i == 2)
            t.s.octets[t.s.length - 1] = 0x77;
        wire_send(&t);
        expect_result(&t.link.end.receive, "W-20", i + 1, STATUS_SUCCESS);
        assert_memory_equal(t.bench.arena + INBOX_AT + inbox_at(i), t.octets, 10);
    }
    assert_int_equal(t.link.end.qp->Dispatch->NdkSend(t.link.end.qp, NULL, NULL, 0, 0),
                     STATUS_SUCCESS);
    f = peer_fpdu(&t.link.peer);
    assert_memory_equal(f->octets + 2 + f->length + f->pad, "\0\0\0\0", 4);
    wire_close(&t);
}

/* ---- W-7, W-38: around the ready-to-receive message ----------------------------------------- */

static void W_7_fpdu_behind_the_reply(void **state)
{
    static const char *replies[] = {KEY "\x50\x02\x00\x08\x00\x08\x00\x08"
                                        "data",
                                    KEY "\x50\x02\x00\x08\x80\x08\x40\x08"
                                        "data",
                                    KEY "\x50\x02\x00\x08\x80\x08\x80\x08"
                                        "data"};

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        open_bench(NULL);
        start(8, 8, NULL, 0);
        link_receive(&t.bench, &t.link, 0);
        take_request();
        stream_raw(&t.s, replies[i], 28);
        stream_send(&t.s, 1, t.octets, 33);
        wire_send(&t);
        expect_connected("W-7", STATUS_SUCCESS);
        test_sleep_ms(20);
        expect_no_result(&t.link.end.receive, "W-7"); /* not before the consumer completes */
        complete();
        if (i == 1)
            peer_answer_rtr_read(&t.link.peer);
        expect_completed("W-7", STATUS_SUCCESS);
        assert_int_equal(
            expect_result(&t.link.end.receive, "W-7", 1, STATUS_SUCCESS).BytesTransferred, 33);
        assert_memory_equal(t.bench.arena + INBOX_AT, t.octets, 33);
        assert_memory_equal(t.bench.arena + INBOX_AT + 33, t.bench.before + INBOX_AT + 33, 100);
        wire_close(&t);
    }
}

static void W_38_send_behind_the_rtr(void **state)
{
    struct peer_fpdu rtr;

    (void)state;
    open_bench(NULL);
    start(8, 8, NULL, 0);
    take_request();
    peer_send_frame(&t.link.peer, true, 0x8008, 0x4008);
    expect_connected("W-38", STATUS_SUCCESS);
    complete();
    assert_int_equal(
        t.link.end.qp->Dispatch->NdkSend(t.link.end.qp, (void *)(uintptr_t)9, NULL, 0, 0),
        STATUS_SUCCESS);
    rtr = *peer_fpdu(&t.link.peer);
    assert_true(rtr.opcode == 1 && rtr.size == 0);
    assert_true(peer_fpdu(&t.link.peer)->opcode == 3); /* the Read is still open */
    expect_result(&t.link.end.initiator, "W-38", 9, STATUS_SUCCESS);
    assert_int_equal(atomic_load(&completing.calls), 0);
    stream_response(&t.s, true, rtr.sink_stag, rtr.sink_to, NULL, 0);
    wire_send(&t);
    expect_completed("W-38", STATUS_SUCCESS);
    expect_no_result(&t.link.end.initiator, "W-38");
    wire_close(&t);
}

/* ---- the ends between Reply and establishment ----------------------------------------------- */

enum leaves { BY_FIN, BY_RST, BY_TIMER };

static void leave(enum leaves how)
{
    if (how == BY_FIN)
        peer_half_close(&t.link.peer);
    else if (how == BY_RST)
        peer_reset(&t.link.peer);
}

static void the_peer_leaves_before_complete(void **state)
{
    (void)state;
    for (int how = BY_FIN; how <= BY_TIMER; how++) {
        NTSTATUS want = how == BY_TIMER ? STATUS_IO_TIMEOUT : STATUS_CONNECTION_ABORTED;

        open_bench(how == BY_TIMER ? "establish_ms=100" : NULL);
        start(8, 8, NULL, 0);
        take_request();
        peer_send_frame(&t.link.peer, true, 0x8008, 0x4008);
        expect_connected("decide", STATUS_SUCCESS);
        leave((enum leaves)how);
        if (how == BY_RST)
            test_sleep_ms(200); /* or NdkCompleteConnectEx meets the RST, with the same outcome */
        else
            peer_await_end(&t.link.peer);
        complete();
        expect_completed("decide", want);
        assert_int_equal(atomic_load(&t.link.end.disconnects), 0);
        wire_close(&t);
    }
}

static void the_peer_leaves_before_its_response(void **state)
{
    (void)state;
    for (int how = BY_FIN; how <= BY_TIMER; how++) {
        open_bench(how == BY_TIMER ? "establish_ms=100" : NULL);
        start(8, 8, NULL, 0);
        take_request();
        peer_send_frame(&t.link.peer, true, 0x8008, 0x4008);
        expect_connected("complete", STATUS_SUCCESS);
        link_receive(&t.bench, &t.link, 0);
        complete();
        assert_int_equal(peer_fpdu(&t.link.peer)->opcode, 1);
        leave((enum leaves)how);
        expect_completed("complete",
                         how == BY_TIMER ? STATUS_IO_TIMEOUT : STATUS_CONNECTION_ABORTED);
        expect_result(&t.link.end.receive, "complete", 1, STATUS_CANCELLED);
        assert_int_equal(atomic_load(&t.link.end.disconnects), 0);
        wire_close(&t);
    }
}

/* The consumer turns the accepted attempt down: FIN before any FPDU; by closing: RST. */
static void the_consumer_turns_it_down(void **state)
{
    (void)state;
    for (int by_close = 0; by_close < 2; by_close++) {
        open_bench(NULL);
        start(8, 8, NULL, 0);
        take_request();
        peer_send_frame(&t.link.peer, true, 0x8008, 0x4008);
        expect_connected("turned down", STATUS_SUCCESS);
        if (by_close) {
            CLOSE(CONNECTOR, NdkCloseConnector);
            CONNECTOR = NULL;
        } else {
            assert_int_equal(CONNECTOR->Dispatch->NdkReject(CONNECTOR, NULL, 0), STATUS_SUCCESS);
        }
        assert_int_equal(peer_await_end(&t.link.peer), by_close ? PEER_RST : PEER_FIN);
        wire_close(&t);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(W_1_W_4_W_5_request),
        cmocka_unit_test(W_2_private_data),
        cmocka_unit_test(W_3_W_13_revision_1),
        cmocka_unit_test(W_11_retry_with_revision_1),
        cmocka_unit_test(W_12_replies_that_end_the_attempt),
        cmocka_unit_test(a_qp_survives_its_attempts),
        cmocka_unit_test(W_8_refused_with_data),
        cmocka_unit_test(W_10_M_5_no_reply_in_time),
        cmocka_unit_test(replies_that_are_taken),
        cmocka_unit_test(W_49_ird_0),
        cmocka_unit_test(W_20_no_crc),
        cmocka_unit_test(W_7_fpdu_behind_the_reply),
        cmocka_unit_test(W_38_send_behind_the_rtr),
        cmocka_unit_test(the_peer_leaves_before_complete),
        cmocka_unit_test(the_peer_leaves_before_its_response),
        cmocka_unit_test(the_consumer_turns_it_down),
    };

    return cmocka_run_group_tests_name("wire_connect", tests, NULL, NULL);
}
