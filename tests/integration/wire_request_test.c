// SPDX-License-Identifier: MIT
/*
 * MPA startup with the end as responder: Requests that are malformed, late, too many or abandoned
 * (W-14 and the rows of M-1..M-32 that concern a Request). Names carry the row's number. Good ones
 * are in wire_startup_test.c.
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

/* ---- M-1..M-12: Requests that are closed ---------------------------------------------------- */

enum cut {
    ENDED, /* at once, in one piece and octet by octet */
    WHOLE, /* in one piece only: octet by octet a good Request comes first */
    THEN_FIN,
    THEN_RST
};

struct bad {
    const char *name;
    const char *octets;
    size_t length;
    enum cut cut;
};

#define OCTETS(text) text, sizeof(text) - 1

static const struct bad bads[] = {
    {"M-2 Reply for a Request", OCTETS(REPLY_KEY "\x50\x02\x00\x04\x80\x08\xc0\x08"), ENDED},
    {"M-2 the first octet that tells", OCTETS("MPA ID Rep"), ENDED},
    {"M-3 HTTP", OCTETS("GET / HTTP/1.1\r\n"), ENDED},
    {"M-3 TLS", OCTETS("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"), ENDED},
    {"M-3 one octet", OCTETS("X"), ENDED},
    {"M-4 513", OCTETS(KEY "\x50\x02\x02\x01"), ENDED},
    {"M-4 ffff", OCTETS(KEY "\x50\x02\xff\xff"), ENDED},
    {"M-4 ffff, revision 1", OCTETS(KEY "\x40\x01\xff\xff"), ENDED},
    {"M-6 FIN at once", "", 0, THEN_FIN},
    {"M-6 FIN in the data", OCTETS(KEY "\x50\x02\x00\x08\x80\x08\xc0"), THEN_FIN},
    {"M-7 RST at once", "", 0, THEN_RST},
    {"M-7 RST in the key", OCTETS("MPA ID"), THEN_RST},
    {"M-7 RST in the data", OCTETS(KEY "\x50\x02\x00\x08\x80\x08\xc0"), THEN_RST},
    {"M-10 revision 0", OCTETS(KEY "\x40\x00\x00\x00"), ENDED},
    {"M-10 revision 3", OCTETS(KEY "\x50\x03\x00\x04\x80\x08\xc0\x08"), ENDED},
    {"M-10 revision 255", OCTETS(KEY "\x50\xff\x00\x04\x80\x08\xc0\x08"), ENDED},
    {"M-12 0 octets", OCTETS(KEY "\x50\x02\x00\x00"), ENDED},
    {"M-12 1 octet", OCTETS(KEY "\x50\x02\x00\x01\x80"), ENDED},
    {"M-12 3 octets", OCTETS(KEY "\x50\x02\x00\x03\x80\x08\xc0"), ENDED},
    {"M-16 an octet behind", OCTETS(KEY "\x50\x02\x00\x04\x80\x08\xc0\x08!"), WHOLE},
    {"M-16 a second Request", OCTETS(KEY "\x40\x01\x00\x00" KEY "\x40\x01\x00\x00"), WHOLE},
    {"M-32 an FPDU behind",
     OCTETS(KEY "\x50\x02\x00\x04\x80\x08\xc0\x08\x00\x0e\xc1\x40\x00\x00"
                "\x00\x01\x00\x00\x00\x00\x00\x00\x00\x00\xeb\xd3\x4c\x5f"),
     WHOLE},
};

static void play_bad_so(const struct bad *bad, bool trickle)
{
    unsigned before = shown();

    peer_connect(&t.link.peer, port_of(&t.bench.listening));
    if (trickle)
        peer_trickle(&t.link.peer, bad->octets, bad->length);
    else
        peer_send(&t.link.peer, bad->octets, bad->length);
    if (bad->cut == THEN_FIN)
        peer_half_close(&t.link.peer);
    if (bad->cut == THEN_RST)
        peer_reset(&t.link.peer);
    else
        peer_await_end(&t.link.peer);
    peer_close(&t.link.peer);
    if (shown() != before)
        test_fail("%s: a connect event", bad->name);
}

static void play_bad(const struct bad *bad)
{
    play_bad_so(bad, false);
    if (bad->cut != WHOLE)
        play_bad_so(bad, true);
}

static void requests_that_are_closed(void **state)
{
    char key[16];

    (void)state;
    open_bench(NULL);
    for (size_t i = 0; i < sizeof bads / sizeof bads[0]; i++)
        play_bad(&bads[i]);
    for (unsigned i = 0; i < 16; i++) {
        struct bad bad = {"M-1", key, 16, ENDED};
        struct bad fin = {"M-6", KEY "\x50\x02\x00", i + 1, THEN_FIN};

        memcpy(key, KEY, 16);
        key[i] ^= 0x20;
        play_bad(&bad);
        play_bad(&fin);
    }
    for (unsigned i = 17; i < 20; i++) {
        struct bad fin = {"M-6", KEY "\x50\x02\x00", i, THEN_FIN};

        play_bad(&fin);
    }
    end_close(&t.link.end);
    link_init(&t.link);
    link_open(&t.bench, &t.link, false);
    link_works(&t.bench, &t.link, "after bad Requests", 0);
    wire_close(&t);
}

/* Octets that come while the consumer still decides. */
static void M_16_octets_while_undecided(void **state)
{
    (void)state;
    open_bench(NULL);
    connect_with(KEY "\x50\x02\x00\x04\x80\x08\xc0\x08", 24);
    arrives();
    peer_send(&t.link.peer, "!", 1);
    peer_await_end(&t.link.peer);
    accept_it(8, 8);
    expect_accepted("M-16", STATUS_CONNECTION_ABORTED);
    wire_close(&t);
}

static void the_peer_leaves_while_undecided(void **state)
{
    (void)state;
    for (int reset = 0; reset < 2; reset++) {
        open_bench(NULL);
        connect_with(KEY "\x50\x02\x00\x04\x80\x08\xc0\x08", 24);
        arrives();
        if (reset) {
            peer_reset(&t.link.peer);
            test_sleep_ms(200); /* or the Reply meets the RST: the same outcome, a little later */
        } else {
            peer_half_close(&t.link.peer);
            peer_await_end(&t.link.peer);
        }
        accept_it(8, 8);
        expect_accepted("undecided", STATUS_CONNECTION_ABORTED);
        wire_close(&t);
    }
}

/* ---- W-14, M-5, M-8, M-9: time and number --------------------------------------------- */

static void W_14_M_5_M_8_request_timer(void **state)
{
    unsigned long long began;

    (void)state;
    open_bench("request_ms=200");
    connect_with("", 0);
    peer_await_end(&t.link.peer);
    peer_close(&t.link.peer);
    connect_with(KEY "\x50\x02\x02\x00"
                     "data",
                 24);
    peer_await_end(&t.link.peer);
    peer_close(&t.link.peer);
    /* One octet in 40 ms: each comes in time, all together do not. */
    began = test_now_ms();
    connect_with("", 0);
    for (unsigned i = 0; peer_quiet(&t.link.peer, 40); i++) {
        if (test_now_ms() - began > WAIT_S * 1000u)
            test_fail("M-8: still waited for");
        peer_send(&t.link.peer, &KEY[i % 16], i < 16);
    }
    peer_await_end(&t.link.peer);
    assert_int_equal(shown(), 0);
    wire_close(&t);
}

static void M_9_bounded_startups(void **state)
{
    struct peer peers[7];
    unsigned closed = 0;

    (void)state;
    open_bench("max_startups=4,max_startups_per_peer=4,request_ms=0");
    for (int i = 0; i < 7; i++) {
        peer_init(&peers[i]);
        peer_connect(&peers[i], port_of(&t.bench.listening));
        peer_send(&peers[i], KEY, 5);
        if (i >= 4)
            closed += peer_await_end(&peers[i]) != PEER_DATA;
    }
    assert_int_equal(closed, 3);
    for (int i = 0; i < 4; i++)
        assert_true(peer_quiet(&peers[i], 10));
    for (int i = 0; i < 7; i++)
        if (i != 2)
            peer_close(&peers[i]);
    /* One of those within the bound is served; and so is a new one once there is room. */
    peer_send(&peers[2], &(KEY "\x40\x01\x00\x00")[5], 15);
    arrives();
    assert_int_equal(CONNECTOR->Dispatch->NdkReject(CONNECTOR, NULL, 0), STATUS_SUCCESS);
    peer_expect_frame(&peers[2], "M-9", REPLY_KEY "\x60\x01\x00\x00", 20);
    peer_close(&peers[2]);
    CLOSE(CONNECTOR, NdkCloseConnector);
    CONNECTOR = NULL;
    end_close(&t.link.end);
    for (;;) {
        struct peer probe;

        /* The end may not have seen yet that the others have gone. */
        peer_init(&probe);
        peer_connect(&probe, port_of(&t.bench.listening));
        peer_send(&probe, KEY, 5);
        if (peer_quiet(&probe, 50)) {
            peer_close(&probe);
            break;
        }
        peer_close(&probe);
    }
    wire_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_that_are_closed),
        cmocka_unit_test(M_16_octets_while_undecided),
        cmocka_unit_test(the_peer_leaves_while_undecided),
        cmocka_unit_test(W_14_M_5_M_8_request_timer),
        cmocka_unit_test(M_9_bounded_startups),
    };

    return cmocka_run_group_tests_name("wire_request", tests, NULL, NULL);
}
