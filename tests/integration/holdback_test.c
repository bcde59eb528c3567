// SPDX-License-Identifier: MIT
/*
 * A Send that meets no receive: the connection is held back until one is posted, in bounded memory,
 * while others go on; after holdback_ms it is terminated with 1/2/02. And every way in which a
 * connection can end while it is held.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "conn/conn.h"
#include "regions.h"

#define SIZE   (1u << 20)
#define CTX(n) ((void *)(uintptr_t)(n))

#define LONG     "holdback_ms=600000" /* it is not the time that lets go */
#define QUIET_MS 50                   /* nothing may happen for so long */

static void nothing_happened(struct bed *bed, const char *what)
{
    expect_nothing(&bed->pair.server.receive, what, QUIET_MS);
    assert_int_equal(atomic_load(&bed->pair.server.disconnects), 0);
    assert_int_equal(atomic_load(&bed->pair.client.disconnects), 0);
}

static void sends(struct bed *bed, unsigned count, ULONG length)
{
    for (unsigned i = 0; i < count; i++) /* a chain: the first may end the connection */
        assert_int_equal(post_send(&bed->pair.client, &bed->client, length,
                                   i + 1 < count ? NDK_OP_FLAG_DEFER : 0, CTX(i)),
                         STATUS_SUCCESS);
}

static void sent(struct bed *bed, unsigned from, unsigned count, NTSTATUS status)
{
    for (unsigned i = from; i < from + count; i++)
        expect_completion(&bed->pair.client.initiator, "send", CTX(i), NdkOperationTypeSend,
                          status);
}

/* Posts receives for messages from..from + count of this length and has them arrive in order. */
static void received(struct bed *bed, unsigned from, unsigned count, ULONG length)
{
    struct end *s = &bed->pair.server;

    for (unsigned i = from; i < from + count; i++) {
        NDK_RESULT_EX result;

        memset(bed->server.data, 0, length);
        post_receive(s, &bed->server, SIZE, CTX(i));
        result = queue_next(&s->receive);
        assert_int_equal(result.Status, STATUS_SUCCESS);
        assert_int_equal(result.BytesTransferred, length);
        assert_ptr_equal(result.RequestContext, CTX(i));
        assert_memory_equal(bed->server.data, bed->client.data, length);
    }
}

static void arrives_when_a_receive_is_posted(void **state)
{
    static const ULONG lengths[] = {0, 1, 1000, 65473, 300000};

    (void)state;
    for (unsigned crc = 0; crc < 2; crc++)
        for (unsigned i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
            struct bed bed;

            bed_open(&bed, crc ? LONG ",crc=1" : LONG ",crc=0", SIZE, ALL_RIGHTS);
            fill(bed.client.data, SIZE, i);
            sends(&bed, 12, lengths[i]);
            nothing_happened(&bed, "held");
            received(&bed, 0, 12, lengths[i]);
            sent(&bed, 0, 12, STATUS_SUCCESS);
            /* Held a second time, behind something that passes without a receive. */
            assert_int_equal(post_write(&bed.pair.client, &bed.client, 100,
                                        (UINT64)(uintptr_t)bed.server.data + SIZE / 2,
                                        bed.server.remote, 0, CTX(1)),
                             STATUS_SUCCESS);
            expect_completion(&bed.pair.client.initiator, "write", CTX(1), NdkOperationTypeWrite,
                              STATUS_SUCCESS);
            sends(&bed, 2, lengths[i]);
            nothing_happened(&bed, "held again");
            received(&bed, 0, 2, lengths[i]);
            sent(&bed, 0, 2, STATUS_SUCCESS);
            bed_close(&bed);
        }
}

/* Many Sends wait, and receives come one at a time: each Send is looked at where it stands. Once
 * all of them were copied to and fro for each receive. */
static void a_backlog_is_not_copied_for_each_receive(void **state)
{
    enum { MANY = 1024, LENGTH = 200, OCTETS = MANY * (LENGTH + 24) };
    struct bed bed;
    unsigned long long before;

    (void)state;
    bed_open(&bed, LONG, SIZE, ALL_RIGHTS);
    fill(bed.client.data, SIZE, 9);
    before = conn_partial_copied();
    for (unsigned i = 0; i < MANY; i += END_DEPTH / 2) {
        sends(&bed, END_DEPTH / 2, LENGTH);
        sent(&bed, 0, END_DEPTH / 2, STATUS_SUCCESS);
    }
    nothing_happened(&bed, "a backlog");
    received(&bed, 0, MANY, LENGTH);
    assert_true(conn_partial_copied() - before <= 6ull * OCTETS);
    assert_true(check(bed.client.data, SIZE, 9));
    bed_close(&bed);
}

struct poster {
    struct bed *bed;
    bool posted;
};

static void post_the_rest(struct queue *queue, void *context)
{
    struct poster *poster = context;

    (void)queue;
    for (unsigned i = 1; i < 9 && !poster->posted; i++)
        post_receive(&poster->bed->pair.server, &poster->bed->server, SIZE, CTX(i));
    poster->posted = true;
}

/* A callback posts them: what waited goes on behind it. */
static void arrives_behind_the_callback_that_posts(void **state)
{
    struct bed bed;
    struct end *s = &bed.pair.server;
    struct poster poster = {.bed = &bed};

    (void)state;
    bed_open(&bed, LONG, SIZE, ALL_RIGHTS);
    sends(&bed, 9, 1000);
    nothing_happened(&bed, "held");
    s->receive.context = &poster;
    s->receive.in_callback = post_the_rest;
    s->receive.cq->Dispatch->NdkArmCq(s->receive.cq, NDK_CQ_NOTIFY_ANY);
    post_receive(s, &bed.server, SIZE, CTX(0));
    for (unsigned i = 0; i < 9; i++)
        expect_completion(&s->receive, "receive", CTX(i), NdkOperationTypeReceive, STATUS_SUCCESS);
    sent(&bed, 0, 9, STATUS_SUCCESS);
    bed_close(&bed);
}

/* What is behind the held Send waits; the other direction and other connections do not. */
static void others_go_on(void **state)
{
    struct bed held, other;
    struct end *s;

    (void)state;
    bed_open(&held, LONG, SIZE, ALL_RIGHTS);
    bed_open(&other, LONG, SIZE, ALL_RIGHTS);
    s = &held.pair.server;
    sends(&held, 1, 500);
    nothing_happened(&held, "held");
    for (unsigned i = 0; i < 200; i++) {
        synchronize(&other.pair.client, &other.pair.server);
        synchronize(&other.pair.server, &other.pair.client);
        synchronize(s, &held.pair.client);
    }
    nothing_happened(&held, "still held");
    received(&held, 0, 1, 500);
    sent(&held, 0, 1, STATUS_SUCCESS);
    /* A Read of the client's is behind the held Send, so it waits too. */
    sends(&held, 1, 500);
    assert_int_equal(post_read(&held.pair.client, &held.client, 100,
                               (UINT64)(uintptr_t)held.server.data, held.server.remote, 0, CTX(1)),
                     STATUS_SUCCESS);
    sent(&held, 0, 1, STATUS_SUCCESS);
    expect_nothing(&held.pair.client.initiator, "the Read behind", QUIET_MS);
    post_receive(s, &held.server, SIZE, CTX(9));
    expect_completion(&s->receive, "receive", CTX(9), NdkOperationTypeReceive, STATUS_SUCCESS);
    expect_completion(&held.pair.client.initiator, "the Read behind", CTX(1), NdkOperationTypeRead,
                      STATUS_SUCCESS);
    bed_close(&held);
    bed_close(&other);
}

#define RACES 3000u

/* The receive is posted at the very moment the Send arrives, a little earlier or later. */
static void posted_at_the_very_moment(void **state)
{
    struct bed bed;
    struct end *s;

    (void)state;
    bed_open(&bed, LONG, SIZE, ALL_RIGHTS);
    s = &bed.pair.server;
    for (unsigned i = 0; i < RACES; i++) {
        sends(&bed, 1, 64);
        for (volatile unsigned spin = 0; spin < i * 97 % 20000; spin++)
            ;
        post_receive(s, &bed.server, 64, CTX(7));
        expect_completion(&s->receive, "race", CTX(7), NdkOperationTypeReceive, STATUS_SUCCESS);
        sent(&bed, 0, 1, STATUS_SUCCESS);
    }
    bed_close(&bed);
}

/* ---- the time is over ----------------------------------------------------------------------- */

static void expires(const char *options, unsigned least_ms, bool placed)
{
    struct bed bed;
    struct end *c, *s;
    unsigned long long start;

    bed_open(&bed, options, SIZE, ALL_RIGHTS);
    c = &bed.pair.client;
    s = &bed.pair.server;
    post_receive(s, &bed.server, SIZE, CTX(1));
    start = test_now_ms();
    sends(&bed, 3, 200); /* the first one has its receive */
    expect_completion(&s->receive, "first", CTX(1), NdkOperationTypeReceive, STATUS_SUCCESS);
    expect_event(s, "server", REASON_TERMINATE_SENT, IWARP_ERR_UNTAG_NO_BUFFER);
    expect_event(c, "client", REASON_TERMINATE_RECEIVED, IWARP_ERR_UNTAG_NO_BUFFER);
    if (test_now_ms() - start + 1 < least_ms)
        test_fail("terminated after %llu ms, not %u", test_now_ms() - start, least_ms);
    if (placed) { /* exact: the second one met no receive */
        sent(&bed, 0, 1, STATUS_SUCCESS);
        sent(&bed, 1, 1, STATUS_IO_TIMEOUT);
        sent(&bed, 2, 1, STATUS_CANCELLED);
    } else {
        sent(&bed, 0, 3, STATUS_SUCCESS);
    }
    post_receive(s, &bed.server, SIZE, CTX(2));
    expect_completion(&s->receive, "too late", CTX(2), NdkOperationTypeReceive, STATUS_CANCELLED);
    assert_int_equal(post_send(c, &bed.client, 1, 0, CTX(9)), STATUS_CONNECTION_INVALID);
    bed_close(&bed);
}

static void expires_in_time(void **state)
{
    (void)state;
    expires("holdback_ms=150", 150, false);
    expires("holdback_ms=150,completion=placed", 150, true);
}

static void zero_terminates_at_once(void **state)
{
    (void)state;
    expires("holdback_ms=0", 0, false);
    expires("holdback_ms=0,completion=placed", 0, true);
}

/* A request that waits for something else of the peer gets the status. */
static void expiry_fails_a_read(void **state)
{
    struct bed bed;
    struct end *c;

    (void)state;
    bed_open(&bed, "holdback_ms=100", SIZE, ALL_RIGHTS);
    c = &bed.pair.client;
    sends(&bed, 1, 1);
    assert_int_equal(post_read(c, &bed.client, 100, (UINT64)(uintptr_t)bed.server.data,
                               bed.server.remote, 0, CTX(1)),
                     STATUS_SUCCESS);
    sent(&bed, 0, 1, STATUS_SUCCESS);
    /* An error satisfies an arm for solicited ones; what queue_next() armed was used up. */
    KeClearEvent(&c->initiator.event);
    c->initiator.cq->Dispatch->NdkArmCq(c->initiator.cq, NDK_CQ_NOTIFY_SOLICITED);
    if (!wait_event(&c->initiator.event, WAIT_S * 1000))
        test_fail("no notification of the failed Read");
    expect_completion(&c->initiator, "read", CTX(1), NdkOperationTypeRead, STATUS_IO_TIMEOUT);
    bed_close(&bed);
}

/* ---- bounded memory ------------------------------------------------------------------------- */

/* 60 MiB are sent to an end without receives: all but little stays with the sender. */
static void the_window_closes(void **state)
{
    struct bed bed;
    unsigned taken = 0;
    NDK_RESULT_EX result;

    (void)state;
    bed_open(&bed, "holdback_ms=60000,tcp_buffer=131072", SIZE, ALL_RIGHTS);
    fill(bed.client.data, SIZE, 3);
    sends(&bed, 60, SIZE);
    while (queue_try(&bed.pair.client.initiator, &result, 300)) {
        assert_int_equal(result.Status, STATUS_SUCCESS);
        taken++;
    }
    /* Staging, both socket buffers (the kernel doubles them) and what is on its way. */
    if (taken > 2)
        test_fail("%u MiB were taken from the sender while the receiver was held back", taken);
    nothing_happened(&bed, "held");
    received(&bed, 0, 60, SIZE);
    sent(&bed, taken, 60 - taken, STATUS_SUCCESS);
    bed_close(&bed);
}

/* ---- the end while it is held --------------------------------------------------------------- */

static void close_here(void **state)
{
    struct bed bed;
    struct end *s;

    (void)state;
    for (unsigned i = 0; i < 10; i++) {
        bed_open(&bed, LONG, SIZE, ALL_RIGHTS);
        s = &bed.pair.server;
        sends(&bed, 3, 1000);
        test_sleep_ms(i);
        CLOSE(s->connector, NdkCloseConnector);
        s->connector = NULL;
        expect_event(&bed.pair.client, "client", REASON_PEER_RST, 0);
        post_receive(s, &bed.server, SIZE, CTX(1));
        expect_completion(&s->receive, "too late", CTX(1), NdkOperationTypeReceive,
                          STATUS_CANCELLED);
        bed_close(&bed);
    }
}

static NTSTATUS disconnect(struct end *end, struct wait *w)
{
    wait_init(w);
    return end->connector->Dispatch->NdkDisconnect(end->connector, wait_request, w);
}

/* The peer disconnects: its FIN is behind the held messages, which are received first. */
static void disconnect_there(void **state)
{
    struct bed bed;
    struct end *c, *s;
    struct wait there, here;
    NTSTATUS pending, status;

    (void)state;
    bed_open(&bed, LONG, SIZE, ALL_RIGHTS);
    c = &bed.pair.client;
    s = &bed.pair.server;
    fill(bed.client.data, SIZE, 1);
    sends(&bed, 5, 1000);
    sent(&bed, 0, 5, STATUS_SUCCESS);
    pending = disconnect(c, &there);
    assert_int_equal(pending, STATUS_PENDING);
    nothing_happened(&bed, "held, FIN behind");
    received(&bed, 0, 5, 1000);
    expect_event(s, "server", REASON_PEER_FIN, 0);
    status = disconnect(s, &here);
    assert_int_equal(wait_end(&here, status), STATUS_SUCCESS);
    assert_int_equal(wait_end(&there, pending), STATUS_SUCCESS);
    bed_close(&bed);
}

/* This end disconnects, and the peer answers; the held messages are still to be had. */
static void disconnect_here(void **state)
{
    struct bed bed;
    struct end *c, *s;
    struct wait there, here;
    NTSTATUS first, second;

    (void)state;
    bed_open(&bed, LONG, SIZE, ALL_RIGHTS);
    c = &bed.pair.client;
    s = &bed.pair.server;
    fill(bed.client.data, SIZE, 1);
    sends(&bed, 5, 1000);
    sent(&bed, 0, 5, STATUS_SUCCESS);
    nothing_happened(&bed, "held");
    first = disconnect(s, &here);
    assert_int_equal(first, STATUS_PENDING);
    expect_event(c, "client", REASON_PEER_FIN, 0);
    second = disconnect(c, &there);
    received(&bed, 0, 5, 1000);
    assert_int_equal(wait_end(&there, second), STATUS_SUCCESS);
    assert_int_equal(wait_end(&here, first), STATUS_SUCCESS);
    bed_close(&bed);
}

/* Nobody posts a receive: the disconnect is over with the time. */
static void disconnect_here_in_vain(void **state)
{
    struct bed bed;
    struct end *s;
    struct wait here;
    NTSTATUS pending;

    (void)state;
    bed_open(&bed, "holdback_ms=200", SIZE, ALL_RIGHTS);
    s = &bed.pair.server;
    sends(&bed, 1, 1000);
    nothing_happened(&bed, "held");
    pending = disconnect(s, &here);
    assert_int_equal(pending, STATUS_PENDING);
    assert_int_equal(wait_end(&here, pending), STATUS_CONNECTION_ABORTED);
    bed_close(&bed);
}

/* The peer closes once its octets are acknowledged, with RST: what it completed is received. (What
 * does not fit into this host's buffer is not acknowledged, and lost after the peer's linger_ms.)
 */
static void death_there(void **state)
{
    struct bed bed;
    struct end *c, *s;

    (void)state;
    bed_open(&bed, LONG, SIZE, ALL_RIGHTS);
    c = &bed.pair.client;
    s = &bed.pair.server;
    fill(bed.client.data, SIZE, 2);
    sends(&bed, 5, 5000);
    sent(&bed, 0, 5, STATUS_SUCCESS);
    CLOSE(c->connector, NdkCloseConnector);
    c->connector = NULL;
    expect_nothing(&s->receive, "held", QUIET_MS);
    received(&bed, 0, 5, 5000);
    expect_event(s, "server", REASON_PEER_RST, 0);
    bed_close(&bed);
}

/* The same, and no receive is posted: the end comes with the time. */
static void death_there_in_vain(void **state)
{
    struct bed bed;
    struct end *c, *s;

    (void)state;
    bed_open(&bed, "holdback_ms=200", SIZE, ALL_RIGHTS);
    c = &bed.pair.client;
    s = &bed.pair.server;
    sends(&bed, 2, 1000);
    sent(&bed, 0, 2, STATUS_SUCCESS);
    CLOSE(c->connector, NdkCloseConnector);
    c->connector = NULL;
    expect_event(s, "server", REASON_TERMINATE_SENT, IWARP_ERR_UNTAG_NO_BUFFER);
    bed_close(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH_MODES(arrives_when_a_receive_is_posted),
        BOTH_MODES(a_backlog_is_not_copied_for_each_receive),
        BOTH_MODES(arrives_behind_the_callback_that_posts),
        BOTH_MODES(others_go_on),
        BOTH_MODES(posted_at_the_very_moment),
        BOTH_MODES(expires_in_time),
        BOTH_MODES(zero_terminates_at_once),
        BOTH_MODES(expiry_fails_a_read),
        BOTH_MODES(the_window_closes),
        BOTH_MODES(close_here),
        BOTH_MODES(disconnect_there),
        BOTH_MODES(disconnect_here),
        BOTH_MODES(disconnect_here_in_vain),
        BOTH_MODES(death_there),
        BOTH_MODES(death_there_in_vain),
    };

    return cmocka_run_group_tests_name("holdback", tests, NULL, NULL);
}
