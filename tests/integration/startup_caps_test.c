// SPDX-License-Identifier: MIT
/*
 * Startups that do not come to an end, by number: of one peer address (max_startups_per_peer), of
 * all (max_startups, with wire_request_test's M-9), and those whose Request is refused because the
 * consumer has too many undecided ones already. Whoever is within the bounds is served.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include "ends.h"
#include "peer.h"

#define KEY     "MPA ID Req Frame"
#define REQUEST KEY "\x50\x02\x00\x04\x80\x08\xc0\x08"
#define PEERS   12u

static struct bench bench;
static struct peer peers[PEERS];

/* Peer number i connects from an address and sends the beginning of a Request. */
static void begins(unsigned i, const char *from)
{
    peer_init(&peers[i]);
    peers[i].from = from;
    peer_connect(&peers[i], port_of(&bench.listening));
    peer_send(&peers[i], KEY, 5);
}

static void goes_on(unsigned i)
{
    peer_send(&peers[i], &REQUEST[5], 19);
}

/* The next connector is shown, and refused. */
static void is_refused(void)
{
    NDK_CONNECTOR *shown = next_incoming(&bench.listening);

    CLOSE(shown, NdkCloseConnector);
}

/* By RST; what the peer sends meanwhile may have met it first, then a read gives an end. */
static void is_reset(unsigned i, const char *why)
{
    if (peer_await_end(&peers[i]) == PEER_DATA)
        test_fail("%s: octets", why);
    peer_close(&peers[i]);
}

/* Tries until a startup of this address is taken: those that have gone leave room once the end has
 * seen it. Peer number i is served and closed. */
static void is_served(unsigned i, const char *from)
{
    unsigned long long end = test_now_ms() + WAIT_S * 1000u;
    unsigned before = atomic_load(&bench.listening.events);

    for (;;) {
        begins(i, from);
        goes_on(i);
        while (peer_quiet(&peers[i], 2) && atomic_load(&bench.listening.events) == before)
            ;
        if (atomic_load(&bench.listening.events) != before)
            break;
        peer_close(&peers[i]);
        if (test_now_ms() > end)
            test_fail("never served again");
    }
    peer_close(&peers[i]); /* or the refusal would wait for its end */
    is_refused();
}

static void expect_reason(const char *part)
{
    char text[256];

    wait_until((softndk_reason(&bench.listening.listener->Header, text, sizeof text),
                strstr(text, part) != NULL),
               part);
}

static void m9_one_peer_cannot_have_all(void **state)
{
    (void)state;
    bench_open(&bench, "max_startups=8,max_startups_per_peer=3,request_ms=0");
    for (unsigned i = 0; i < 3; i++)
        begins(i, "127.0.0.2");
    begins(3, "127.0.0.2");
    is_reset(3, "a fourth of one address");
    expect_reason("need < max_startups_per_peer 3)");
    is_served(4, "127.0.0.3");
    for (unsigned i = 0; i < 3; i++)
        assert_true(peer_quiet(&peers[i], 5));
    /* Each end of a startup leaves room: a whole Request, a hang-up, a violation. */
    goes_on(0);
    is_refused();
    peer_close(&peers[0]);
    is_served(0, "127.0.0.2");
    peer_reset(&peers[1]);
    is_served(1, "127.0.0.2");
    peer_send(&peers[2], "?", 1);
    peer_await_end(&peers[2]);
    peer_close(&peers[2]);
    for (unsigned i = 0; i < 6; i++)
        is_served(2, "127.0.0.2");
    bench_close(&bench);
}

static void m9_half_of_all_by_default(void **state)
{
    (void)state;
    bench_open(&bench, "max_startups=4,request_ms=0");
    begins(0, "127.0.0.2");
    begins(1, "127.0.0.2");
    begins(2, "127.0.0.2");
    is_reset(2, "a third of four");
    begins(3, "127.0.0.3");
    begins(4, "127.0.0.4");
    begins(5, "127.0.0.5");
    is_reset(5, "a fifth of all");
    expect_reason("need < max_startups 4)");
    for (unsigned i = 0; i < 5; i++)
        if (i != 2)
            peer_close(&peers[i]);
    is_served(0, "127.0.0.2");
    bench_close(&bench);
}

/* A refusal takes as long as the peer lets it, up to drain_ms: it counts all the time. */
static void m9_refused_ones_count(void **state)
{
    static const char refusal[] = "MPA ID Rep Frame\x70\x02\x00\x04";
    NDK_CONNECTOR *shown;
    uint8_t frame[532];

    (void)state;
    bench_open(&bench, "max_pending_connects=1,max_startups=8,max_startups_per_peer=2,"
                       "drain_ms=3600000,request_ms=0");
    begins(0, "127.0.0.2");
    goes_on(0);
    shown = next_incoming(&bench.listening);
    for (unsigned i = 1; i < 3; i++) {
        begins(i, "127.0.0.2");
        goes_on(i);
        assert_true(peer_frame(&peers[i], frame) >= 20);
        assert_memory_equal(frame, refusal, 18);
    }
    begins(3, "127.0.0.2");
    is_reset(3, "a third that is refused");
    peer_close(&peers[1]);
    peer_close(&peers[2]);
    peer_close(&peers[0]); /* or the refusal would wait for its end */
    CLOSE(shown, NdkCloseConnector);
    is_served(1, "127.0.0.2");
    assert_int_equal(atomic_load(&bench.listening.events), 2);
    bench_close(&bench);
}

/* The listener's close ends what is in startup, of however many peers. */
static void m9_a_close_ends_them(void **state)
{
    static const char *const from[] = {"127.0.0.2", "127.0.0.3", "127.0.0.4"};

    (void)state;
    bench_open(&bench, "request_ms=0");
    for (unsigned i = 0; i < PEERS; i++)
        begins(i, from[i % 3]);
    for (unsigned i = 0; i < PEERS; i++)
        assert_true(peer_quiet(&peers[i], 5));
    bench_close(&bench);
    for (unsigned i = 0; i < PEERS; i++) {
        assert_true(peer_drain(&peers[i]) != PEER_DATA);
        peer_close(&peers[i]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(m9_one_peer_cannot_have_all),
        cmocka_unit_test(m9_half_of_all_by_default),
        cmocka_unit_test(m9_refused_ones_count),
        cmocka_unit_test(m9_a_close_ends_them),
    };

    return cmocka_run_group_tests_name("startup_caps", tests, NULL, NULL);
}
