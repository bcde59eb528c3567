// SPDX-License-Identifier: MIT
/*
 * The cap of octets that wait in this process for the rest of their FPDU, or for a receive
 * (src/conn/partial.c): when it would be passed, the connection that has processed nothing for the
 * longest time is reset, in the state it is in, with its reason; the others do not notice. Raw
 * peers hold their connections at an incomplete FPDU; conn_staged() tells what the process has
 * kept.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <linux/sockios.h>
#include <pthread.h>
#include <sys/ioctl.h>

#include <cmocka.h>

#include "conn/conn.h"
#include "ends.h"
#include "peer.h"

#define LINKS   6
#define PAYLOAD 50000u
#define WHOLE   (2u + 14u + PAYLOAD + 4u) /* octets of the FPDU that is sent but for its end */
#define PART    (WHOLE - 1)

_Static_assert(WHOLE % 4 == 0, "no pad");

static struct bench bench;
static struct link links[LINKS];
static struct memory region;
static struct stream fpdus[LINKS]; /* of each link a whole Write, to a place of its own */

static void open_links(const char *options, unsigned count)
{
    bench_open(&bench, options);
    make_memory(bench.pd, (size_t)LINKS * PAYLOAD, BOTH_RIGHTS, &region);
    fill(region.data, region.size, 8);
    for (unsigned i = 0; i < LINKS; i++) {
        uint8_t *place = region.data + (size_t)i * PAYLOAD;

        stream_init(&fpdus[i], true);
        stream_write(&fpdus[i], region.remote, (uint64_t)(uintptr_t)place, place, PAYLOAD);
    }
    for (unsigned i = 0; i < count; i++) {
        link_init(&links[i]);
        link_open(&bench, &links[i], i % 2); /* both roles */
        link_receive(&bench, &links[i], i);
    }
    assert_int_equal(conn_staged(), 0);
}

static void close_links(unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        link_close(&links[i]);
    assert_int_equal(conn_staged(), 0);
    free_memory(&region);
    for (unsigned i = 0; i < LINKS; i++)
        stream_free(&fpdus[i]);
    bench_close(&bench);
}

static void expect_staged(size_t octets)
{
    wait_until(conn_staged() == octets, "the octets to be kept");
}

/* Octets [from, to) of its FPDU. */
static void sends(struct link *l, size_t from, size_t to)
{
    if (!peer_send(&l->peer, fpdus[l - links].octets + from, to - from))
        test_fail("the end has gone");
}

/* This one is over, because of the cap; its receive, number i, is cancelled. */
static void expect_reset(struct link *l, unsigned i, const char *row)
{
    char text[256];

    if (peer_drain(&l->peer) != PEER_RST)
        test_fail("%s: not reset", row);
    expect_event(&l->end, row, 8, 0);
    softndk_reason_text(l->end.reason, text, sizeof text);
    if (!strstr(text, "staging cap"))
        test_fail("%s: the reason is \"%s\"", row, text);
    expect_result(&l->end.receive, row, i + 1, STATUS_CANCELLED);
}

static void sends_message(struct link *l)
{
    struct stream s;

    stream_init(&s, true);
    stream_send(&s, l->send_msn++, NULL, 0);
    peer_send(&l->peer, s.octets, s.length);
    stream_free(&s);
}

/* The FPDU comes to its end; the connection is as any other. */
static void expect_alive(struct link *l, unsigned i, const char *row)
{
    sends(l, PART, WHOLE);
    sends_message(l);
    expect_result(&l->end.receive, row, i + 1, STATUS_SUCCESS);
    link_works(&bench, l, row, LINKS + i);
    if (atomic_load(&l->end.disconnects))
        test_fail("%s: a disconnect event", row);
}

static void the_slowest_goes(void **state)
{
    char text[256];

    (void)state;
    open_links("staging_cap=160000", 5);
    for (unsigned i = 0; i < 3; i++) {
        sends(&links[i], 0, PART);
        expect_staged((i + 1) * PART);
    }
    sends(&links[0], PART, WHOLE); /* progress: the first is now the youngest */
    expect_staged(2 * PART);
    sends(&links[0], 0, PART);
    expect_staged(3 * PART);
    sends(&links[3], 0, PART);
    expect_reset(&links[1], 1, "the slowest");
    softndk_reason(&links[1].end.qp->Header, text, sizeof text);
    /* How many there were depends on the pieces in which TCP delivered the last ones. */
    if (!strstr(text, "(have ") || !strstr(text, ", need <= staging_cap 160000)"))
        test_fail("the queue pair's reason is \"%s\"", text);
    expect_staged(3 * PART);
    sends(&links[4], 0, PART);
    expect_reset(&links[2], 2, "the next");
    expect_staged(3 * PART);
    expect_alive(&links[0], 0, "one with progress");
    expect_alive(&links[3], 3, "the fourth");
    expect_alive(&links[4], 4, "the fifth");
    expect_staged(0);
    close_links(5);
}

/* An octet now and then is no progress. */
static void a_trickle_is_no_progress(void **state)
{
    (void)state;
    open_links("staging_cap=160000", 4);
    sends(&links[0], 0, PART - 100);
    expect_staged(PART - 100);
    sends(&links[1], 0, PART);
    sends(&links[2], 0, PART);
    expect_staged(3 * PART - 100);
    for (size_t i = 0; i < 100; i += 10) {
        sends(&links[0], PART - 100 + i, PART - 100 + i + 10);
        expect_staged(3 * PART - 90 + i);
    }
    sends(&links[3], 0, PART);
    expect_reset(&links[0], 0, "the trickler");
    for (unsigned i = 1; i < 4; i++)
        expect_alive(&links[i], i, "beside the trickler");
    close_links(4);
}

/* The connection that asks for room may be the slowest itself. */
static void the_asking_one_goes(void **state)
{
    (void)state;
    open_links("staging_cap=150100", 3);
    sends(&links[0], 0, PART - 500);
    expect_staged(PART - 500);
    sends(&links[1], 0, PART);
    sends(&links[2], 0, PART);
    expect_staged(3 * PART - 500);
    sends(&links[0], PART - 500, PART);
    expect_staged(3 * PART);
    close_links(3);
    open_links("staging_cap=150000", 3);
    sends(&links[0], 0, PART - 500);
    expect_staged(PART - 500);
    sends(&links[1], 0, PART);
    sends(&links[2], 0, PART);
    expect_staged(3 * PART - 500);
    sends(&links[0], PART - 500, PART);
    expect_reset(&links[0], 0, "the asking one");
    expect_staged(2 * PART);
    expect_alive(&links[1], 1, "beside the asking one");
    expect_alive(&links[2], 2, "beside the asking one");
    close_links(3);
}

/* One that wants more than the cap goes alone: the end of others would be of no use. All its octets
 * are there before the first is read. */
static void too_much_for_one(void **state)
{
    struct link *l = &links[1];
    uint8_t frame[532];
    struct stream s;
    struct wait w;
    NTSTATUS status;
    int unread = 1;

    (void)state;
    open_links("staging_cap=65544,holdback_ms=60000", 1);
    sends(&links[0], 0, 1000);
    expect_staged(1000);
    link_init(l);
    end_of_bench(&bench, &l->end);
    link_receive(&bench, l, 1);
    status = end_connects(&bench, &l->end, peer_listen(&l->peer), 8, 8, NULL, 0, &w);
    peer_accept(&l->peer);
    peer_frame(&l->peer, frame);
    peer_send_frame(&l->peer, true, 8, 8);
    must(&w, status, "NdkConnect");
    stream_init(&s, true);
    stream_send(&s, 1, NULL, 0); /* takes the receive */
    for (unsigned i = 2; i < 3000; i++)
        stream_send(&s, i, NULL, 0); /* these have none */
    peer_send(&l->peer, s.octets, s.length);
    stream_free(&s);
    wait_until(ioctl(l->peer.fd, SIOCOUTQ, &unread) == 0 && unread == 0, "the octets to arrive");
    must(NULL, end_completes(&l->end, &w), "NdkCompleteConnectEx");
    if (peer_drain(&l->peer) != PEER_RST)
        test_fail("more than the cap: not reset");
    expect_event(&l->end, "more than the cap", 8, 0);
    expect_result(&l->end.receive, "more than the cap", 2, STATUS_SUCCESS);
    expect_staged(1000);
    sends(&links[0], 1000, PART);
    expect_alive(&links[0], 0, "beside it");
    close_links(2);
}

/* Octets that wait for a receive count like any others, and their connection is chosen like one. */
static void held_back_is_no_progress(void **state)
{
    struct stream s;

    (void)state;
    open_links("staging_cap=101000,holdback_ms=60000", 4);
    stream_init(&s, true);
    stream_send(&s, links[0].send_msn, NULL, 0);
    stream_send(&s, links[0].send_msn + 1, NULL, 0); /* 24 octets that meet no receive */
    peer_send(&links[0].peer, s.octets, s.length);
    stream_free(&s);
    expect_result(&links[0].end.receive, "held back", 1, STATUS_SUCCESS);
    expect_staged(24);
    sends(&links[1], 0, PART);
    expect_staged(PART + 24);
    sends(&links[2], 0, PART);
    expect_staged(2 * PART + 24);
    sends(&links[3], 0, 2000);
    if (peer_drain(&links[0].peer) != PEER_RST)
        test_fail("held back: not reset");
    expect_event(&links[0].end, "held back", 8, 0);
    /* Its 24 octets were not enough: the next slowest went, too. */
    expect_reset(&links[1], 1, "behind the held one");
    expect_staged(PART + 2000);
    expect_alive(&links[2], 2, "beside the held one");
    close_links(4);
}

/* ---- under load ----------------------------------------------------------------------------- */

struct driver {
    pthread_t thread;
    struct link *link;
    unsigned random;
};

/* Writes in pieces of any size, until it is reset or has had enough. */
static void *drive(void *context)
{
    struct driver *d = context;
    const uint8_t *octets = fpdus[d->link - links].octets;
    size_t at = 0;

    for (unsigned n = 0; n < 400; n++) {
        size_t length;

        d->random = d->random * 1664525u + 1013904223u;
        length = 1 + (d->random >> 8) % 20000;
        if (length > WHOLE - at)
            length = WHOLE - at;
        if (!peer_send(&d->link->peer, octets + at, length))
            return NULL;
        at = (at + length) % WHOLE;
    }
    peer_send(&d->link->peer, octets + at, at ? WHOLE - at : 0);
    return NULL;
}

/* Peers of several shards at once: whoever is reset is so because of the cap, the rest works, and
 * nothing is counted that is not there. */
static void many_at_once(void **state)
{
    struct driver drivers[LINKS];

    (void)state;
    for (unsigned round = 0; round < 8; round++) {
        unsigned alive = 0;

        open_links("staging_cap=80000,shards=3", LINKS);
        for (unsigned i = 0; i < LINKS; i++) {
            drivers[i] = (struct driver){.link = &links[i], .random = round * 77 + i};
            assert_int_equal(pthread_create(&drivers[i].thread, NULL, drive, &drivers[i]), 0);
        }
        for (unsigned i = 0; i < LINKS; i++)
            pthread_join(drivers[i].thread, NULL);
        for (unsigned i = 0; i < LINKS; i++) {
            sends_message(&links[i]);
            if (queue_next(&links[i].end.receive).Status == STATUS_SUCCESS) {
                link_works(&bench, &links[i], "under load", i);
                alive++;
            } else {
                expect_event(&links[i].end, "under load", 8, 0);
            }
        }
        assert_true(alive > 0);
        expect_staged(0);
        close_links(LINKS);
    }
}

/* ---- what a trickle costs ------------------------------------------------------------------- */

#define TRICKLED 12000u

/* An FPDU in single octets is not copied once for each of them: M-27, by both roles. */
static void m27_a_trickle_is_copied_a_few_times(void **state)
{
    struct stream s;

    (void)state;
    open_links(NULL, 2);
    stream_init(&s, true);
    for (unsigned i = 0; i < 2; i++) {
        unsigned long long before = conn_partial_copied(), copied;

        stream_reset(&s);
        stream_write(&s, region.remote, (uint64_t)(uintptr_t)region.data, region.data, TRICKLED);
        if (!peer_trickle(&links[i].peer, s.octets, s.length))
            test_fail("the end has gone");
        sends_message(&links[i]);
        expect_result(&links[i].end.receive, "behind the trickle", i + 1, STATUS_SUCCESS);
        copied = conn_partial_copied() - before;
        if (copied > 6 * s.length)
            test_fail("%llu octets were copied for an FPDU of %zu", copied, s.length);
    }
    stream_free(&s);
    expect_staged(0);
    close_links(2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(m27_a_trickle_is_copied_a_few_times),
        cmocka_unit_test(the_slowest_goes),
        cmocka_unit_test(a_trickle_is_no_progress),
        cmocka_unit_test(the_asking_one_goes),
        cmocka_unit_test(too_much_for_one),
        cmocka_unit_test(held_back_is_no_progress),
        cmocka_unit_test(many_at_once),
    };

    return cmocka_run_group_tests_name("staging_cap", tests, NULL, NULL);
}
