// SPDX-License-Identifier: MIT
/*
 * Connections that share a receive queue: what arrives, in which order, what belongs to the queue
 * and what to a queue pair, connections that are held back because it is empty and how each post
 * lets one of them go, the notification at work, changes under load, closing.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <pthread.h>

#include <cmocka.h>

#include "share.h"

#define CTX(n)   ((void *)(uintptr_t)(n))
#define LONG     "holdback_ms=600000,shards=4" /* it is not the time that lets go */
#define QUIET_MS 40                            /* nothing may happen for so long */

static void nothing_arrives(struct share *share, const char *what)
{
    test_sleep_ms(QUIET_MS);
    for (unsigned i = 0; i < SHARE_MAX; i++) {
        if (!share->pairs[i].open)
            continue;
        expect_nothing(&share->pairs[i].server.receive, what, 0);
        assert_int_equal(atomic_load(&share->pairs[i].server.disconnects), 0);
    }
}

/* Takes the next message of whichever pair has one. The pair. */
static unsigned receive_any(struct share *share, ULONG length, unsigned *slot)
{
    unsigned long long limit = test_now_ms() + WAIT_S * 1000;

    while (test_now_ms() < limit) {
        for (unsigned i = 0; i < SHARE_MAX; i++) {
            struct share_pair *pair = &share->pairs[i];
            NDK_RESULT_EX result;

            if (!pair->open || !queue_try(&pair->server.receive, &result, 0))
                continue;
            *slot = (unsigned)(uintptr_t)result.RequestContext - 1;
            assert_int_equal(result.Status, STATUS_SUCCESS);
            assert_int_equal(result.BytesTransferred, length);
            assert_true(check(share_slot(share, *slot), length, share_seed(i, pair->received++)));
            return i;
        }
        test_sleep_ms(0);
    }
    test_fail("no message arrived");
}

/* ---- what arrives --------------------------------------------------------------------------- */

#define PAIRS    5u
#define MESSAGES 60u

static ULONG length_of(unsigned i, unsigned number)
{
    static const ULONG lengths[] = {0, 1, 100, 1408, 5000, 65535, SHARE_SLOT};

    return lengths[(number * 5 + i * 3) % (sizeof lengths / sizeof lengths[0])];
}

struct sender {
    struct share *share;
    unsigned i;
    pthread_t thread;
};

static void *sends(void *context)
{
    struct sender *sender = context;

    for (unsigned n = 0; n < MESSAGES; n++)
        share_send(sender->share, sender->i, length_of(sender->i, n));
    return NULL;
}

/* Several clients at once; the slots are posted again as they come back. */
static void messages_arrive_intact_and_in_order(const char *options, unsigned slots)
{
    struct sender senders[PAIRS];
    unsigned long long limit = test_now_ms() + WAIT_S * 1000;
    unsigned left = PAIRS * MESSAGES;
    struct share share;

    share_open(&share, options, slots, slots, 0);
    for (unsigned i = 0; i < PAIRS; i++)
        share_connect(&share, i);
    share_posts(&share, 0, slots);
    assert_int_equal(share_post(&share, 0), STATUS_NO_MORE_ENTRIES);
    for (unsigned i = 0; i < PAIRS; i++) {
        senders[i].share = &share;
        senders[i].i = i;
        assert_int_equal(pthread_create(&senders[i].thread, NULL, sends, &senders[i]), 0);
    }
    for (unsigned i = 0; left; i = (i + 1) % PAIRS) {
        struct share_pair *pair = &share.pairs[i];
        NDK_RESULT_EX result;

        while (queue_try(&pair->server.receive, &result, left == 1 ? 100 : 0)) {
            unsigned slot = (unsigned)(uintptr_t)result.RequestContext - 1;
            ULONG length = length_of(i, pair->received);

            assert_int_equal(result.Status, STATUS_SUCCESS);
            assert_int_equal(result.BytesTransferred, length);
            assert_ptr_equal(result.QPContext, &pair->server);
            assert_true(check(share_slot(&share, slot), length, share_seed(i, pair->received++)));
            share_posts(&share, slot, 1);
            left--;
        }
        if (test_now_ms() > limit)
            test_fail("%u messages did not arrive, %u connections are held", left,
                      share_waiting(&share));
        test_sleep_ms(0);
    }
    for (unsigned i = 0; i < PAIRS; i++) {
        pthread_join(senders[i].thread, NULL);
        assert_int_equal(share.pairs[i].received, MESSAGES);
    }
    nothing_arrives(&share, "one too many");
    share_close(&share);
}

static void many_receives(void **state)
{
    (void)state;
    messages_arrive_intact_and_in_order(LONG, 24);
}

/* Fewer receives than connections: all of them are held now and then. */
static void few_receives(void **state)
{
    (void)state;
    messages_arrive_intact_and_in_order(LONG, 2);
    messages_arrive_intact_and_in_order(LONG ",crc=0", 1);
}

/* A message is as long as it is, whichever pair's receive it gets; SGEs are filled in order. */
static void receives_have_their_own_sges(void **state)
{
    struct share share;
    NDK_SGE sges[4];
    NDK_RESULT_EX result;
    struct share_pair *pair;

    (void)state;
    share_open(&share, LONG, 1, 16, 0);
    share_connect(&share, 0);
    pair = &share.pairs[0];
    sges[0] = memory_sge(&share.memory, 100, 7);
    sges[1] = memory_sge(&share.memory, 4090, 0);
    sges[2] = memory_sge(&share.memory, 4090, 13);
    sges[3] = memory_sge(&share.memory, 9000, 60);
    for (ULONG count = 0; count <= 4; count++)
        assert_int_equal(share.srq->Dispatch->NdkSrqReceive(share.srq, CTX(count), sges, count),
                         STATUS_SUCCESS);
    memset(share.memory.data, 0xee, SHARE_SLOT);
    fill(pair->memory.data, 80, 1);
    for (ULONG count = 0; count <= 4; count++) {
        const ULONG lengths[] = {0, 7, 7, 20, 80};

        assert_int_equal(post_send(&pair->client, &pair->memory, lengths[count], 0, CTX(1)),
                         STATUS_SUCCESS);
        result = queue_next(&pair->server.receive);
        assert_int_equal(result.Status, STATUS_SUCCESS);
        assert_ptr_equal(result.RequestContext, CTX(count));
        assert_int_equal(result.BytesTransferred, lengths[count]);
    }
    assert_memory_equal(share.memory.data + 100, pair->memory.data, 7);
    assert_memory_equal(share.memory.data + 4090, pair->memory.data + 7, 13);
    assert_memory_equal(share.memory.data + 9000, pair->memory.data + 20, 60);
    assert_int_equal(share.memory.data[107], 0xee);
    assert_int_equal(share.memory.data[4103], 0xee);
    share_close(&share);
}

/* ---- what belongs to whom ------------------------------------------------------------------- */

/* Flush, disconnect, the peer's end, closing: what is queued stays for the others. */
static void the_queue_outlives_its_queue_pairs(void **state)
{
    struct share share;
    struct end idle;
    struct wait w;

    (void)state;
    share_open(&share, LONG, 40, 64, 0);
    for (unsigned i = 0; i < 4; i++)
        share_connect(&share, i);
    share_server_end(&share, &idle); /* never connected */
    share_posts(&share, 0, 20);
    idle.qp->Dispatch->NdkFlush(idle.qp);
    expect_nothing(&idle.receive, "flush of an unconnected QP", QUIET_MS);
    share_server_end_close(&idle);
    share.pairs[1].server.qp->Dispatch->NdkFlush(share.pairs[1].server.qp);
    nothing_arrives(&share, "flush of a connected QP");
    share_send(&share, 1, 100); /* it is as good as before */
    share_receive(&share, 1, 100);
    share_disconnect(&share, 1);
    wait_init(&w);
    assert_int_equal(share.pairs[2].client.connector->Dispatch->NdkDisconnect(
                         share.pairs[2].client.connector, wait_request, &w),
                     STATUS_PENDING);
    if (!wait_event(&share.pairs[2].server.disconnected, WAIT_S * 1000))
        test_fail("no disconnect event");
    expect_nothing(&share.pairs[2].server.receive, "the peer's FIN", QUIET_MS);
    CLOSE(share.pairs[3].client.connector, NdkCloseConnector);
    share.pairs[3].client.connector = NULL;
    if (!wait_event(&share.pairs[3].server.disconnected, WAIT_S * 1000))
        test_fail("no disconnect event");
    expect_nothing(&share.pairs[3].server.receive, "the peer's RST", QUIET_MS);
    share_disconnect(&share, 2);
    wait_end(&w, STATUS_PENDING);
    share_disconnect(&share, 3);
    assert_int_equal(share_queued(&share), 19);
    for (unsigned n = 0; n < 19; n++) {
        share_send(&share, 0, n);
        assert_int_equal(share_receive(&share, 0, n), n + 1);
    }
    share_close(&share);
}

/* It is not the queue pair's to post. */
static void no_receives_of_its_own(void **state)
{
    struct share share;
    NDK_QP *qp;

    (void)state;
    share_open(&share, LONG, 2, 4, 0);
    share_connect(&share, 0);
    qp = share.pairs[0].server.qp;
    assert_int_equal(qp->Dispatch->NdkReceive(qp, NULL, NULL, 0), STATUS_INVALID_DEVICE_REQUEST);
    share_send(&share, 0, 10);
    wait_until(share_waiting(&share) == 1, "holding");
    nothing_arrives(&share, "refused receive");
    share_posts(&share, 0, 1);
    share_receive(&share, 0, 10);
    share_close(&share);
}

/* ---- held back ------------------------------------------------------------------------------ */

/* The queue is empty and all have a message waiting: each post serves exactly one. */
static void each_post_lets_one_go(void **state)
{
    bool served[PAIRS] = {false};
    struct share share;

    (void)state;
    share_open(&share, LONG, 4, 64, 0);
    for (unsigned i = 0; i < PAIRS; i++)
        share_connect(&share, i);
    for (unsigned i = 0; i < PAIRS; i++) {
        share_send(&share, i, 2000);
        share_send(&share, i, 2000);
    }
    for (unsigned n = 0; n < 2 * PAIRS; n++) {
        unsigned slot, i;

        wait_until(share_waiting(&share) == (n < PAIRS ? PAIRS : 2 * PAIRS - n), "holding");
        nothing_arrives(&share, "one post, one message");
        memset(share_slot(&share, n % 4), 0, 2000);
        share_posts(&share, n % 4, 1);
        i = receive_any(&share, 2000, &slot);
        assert_int_equal(slot, n % 4);
        /* One that was served waits behind the others. */
        assert_int_equal(served[i], n >= PAIRS);
        served[i] = true;
    }
    nothing_arrives(&share, "one too many");
    share_close(&share);
}

static struct wait closing;
static NTSTATUS closing_returned;

/* On the only shard: what the post leaves for it to do comes behind this. */
static void post_and_close(struct share *share)
{
    struct end *end = &share->pairs[0].server;

    share_posts(share, 2, 1);
    closing_returned =
        end->connector->Dispatch->NdkCloseConnector(&end->connector->Header, wait_close, &closing);
    end->connector = NULL;
}

/* The first to wait was granted the receive, and is gone before it takes it: it is the next one's.
 */
static void closed_with_a_grant(void **state)
{
    struct share share;

    (void)state;
    share_open(&share, "holdback_ms=600000,shards=1", 4, 16, 0);
    share.in_callback = post_and_close;
    for (unsigned i = 0; i < 3; i++) {
        share_connect(&share, i);
        share_send(&share, i, 20 + i);
        wait_until(share_waiting(&share) == i + 1, "holding");
    }
    wait_init(&closing);
    assert_int_equal(share_modify(&share, 0, 1), STATUS_SUCCESS); /* fires at once */
    assert_int_equal(share_receive(&share, 1, 21), 2);
    assert_int_equal(wait_end(&closing, closing_returned), STATUS_SUCCESS);
    expect_nothing(&share.pairs[0].server.receive, "closed", 0);
    assert_int_equal(share_waiting(&share), 1);
    share_posts(&share, 3, 1);
    assert_int_equal(share_receive(&share, 2, 22), 3);
    share_close(&share);
}

/* Held for good: the time ends that connection alone, and takes no receive along. */
static void the_time_ends_one_connection(void **state)
{
    struct share share;

    (void)state;
    share_open(&share, "holdback_ms=150,shards=4", 8, 64, 0);
    share_connect(&share, 0);
    share_connect(&share, 1);
    share_send(&share, 0, 500);
    expect_event(&share.pairs[0].server, "server", REASON_TERMINATE_SENT,
                 IWARP_ERR_UNTAG_NO_BUFFER);
    expect_event(&share.pairs[0].client, "client", REASON_TERMINATE_RECEIVED,
                 IWARP_ERR_UNTAG_NO_BUFFER);
    assert_int_equal(share_waiting(&share), 0);
    for (unsigned n = 0; n < 2; n++) {
        share_posts(&share, n, 1);
        if (n == 0)
            expect_nothing(&share.pairs[0].server.receive, "posted too late", QUIET_MS);
        share_send(&share, 1, 500);
        assert_int_equal(share_receive(&share, 1, 500), n);
        if (n == 0)
            share_disconnect(&share, 0);
    }
    share_close(&share);
}

static void zero_terminates_at_once(void **state)
{
    struct share share;

    (void)state;
    share_open(&share, "holdback_ms=0", 8, 64, 0);
    share_connect(&share, 0);
    share_posts(&share, 0, 1);
    share_send(&share, 0, 500);
    share_receive(&share, 0, 500);
    share_send(&share, 0, 500);
    expect_event(&share.pairs[0].server, "server", REASON_TERMINATE_SENT,
                 IWARP_ERR_UNTAG_NO_BUFFER);
    share_close(&share);
}

/* ---- the notification at work --------------------------------------------------------------- */

static void refill(struct share *share)
{
    static struct wait not_called;

    /* The slots are not looked at; two receives may share one. */
    for (unsigned n = 0; n < 8; n++)
        share_posts(share, n, 1);
    expect_call(share->srq->Dispatch->NdkModifySrq(share->srq, 0, 4, wait_request, &not_called),
                STATUS_SUCCESS, "NdkModifySrq", &share->srq->Header);
}

/* The consumer posts only in the notification: nothing stalls, and the queue does not overflow. */
static void the_notification_keeps_it_filled(void **state)
{
    struct share share;
    unsigned total = 0;

    (void)state;
    share_open(&share, "holdback_ms=20000,shards=4", 8, 64, 4);
    share.in_callback = refill;
    for (unsigned i = 0; i < 3; i++)
        share_connect(&share, i);
    share_posts(&share, 0, 8);
    for (unsigned round = 0; round < 150; round++)
        for (unsigned i = 0; i < 3; i++) {
            NDK_RESULT_EX result;

            share_send(&share, i, round);
            result = queue_next(&share.pairs[i].server.receive);
            assert_int_equal(result.Status, STATUS_SUCCESS);
            assert_int_equal(result.BytesTransferred, round);
            total++;
        }
    /* Eight receives are posted in each, so 4 to 11 are left. */
    wait_until(8 + 8 * atomic_load(&share.notified) >= total + 4, "the last notification");
    assert_in_range(8 + 8 * atomic_load(&share.notified), total + 4, total + 11);
    share_close(&share);
}

/* Fires as the connection takes: at the third of four. */
static void it_fires_when_a_message_takes(void **state)
{
    struct share share;

    (void)state;
    share_open(&share, LONG, 8, 64, 2);
    share_connect(&share, 0);
    share_posts(&share, 0, 4);
    for (unsigned n = 0; n < 4; n++) {
        share_send(&share, 0, 3);
        share_receive(&share, 0, 3);
        if (n >= 2)
            wait_until(atomic_load(&share.notified) == 1, "the notification");
        else
            assert_int_equal(atomic_load(&share.notified), 0);
    }
    test_sleep_ms(QUIET_MS);
    assert_int_equal(atomic_load(&share.notified), 1);
    share_close(&share);
}

/* ---- changes under load --------------------------------------------------------------------- */

struct modifier {
    struct share *share;
    atomic_bool stop;
    unsigned changed;
};

static void *modifies(void *context)
{
    struct modifier *modifier = context;

    for (unsigned n = 0; !atomic_load(&modifier->stop); n++) {
        NTSTATUS status = share_modify(modifier->share, n % 3 ? 16 + n % 17 : 0, n % 5);

        if (status == STATUS_SUCCESS)
            modifier->changed++;
        else if (status != STATUS_INVALID_PARAMETER)
            test_fail("NdkModifySrq: %s", softndk_status_name(status));
    }
    return NULL;
}

static void modify_under_load(void **state)
{
    struct modifier modifier = {.changed = 0};
    struct share share;
    pthread_t thread;

    (void)state;
    share_open(&share, LONG, 20, 64, 0);
    for (unsigned i = 0; i < 3; i++)
        share_connect(&share, i);
    modifier.share = &share;
    assert_int_equal(pthread_create(&thread, NULL, modifies, &modifier), 0);
    for (unsigned n = 0; n < 400; n++) {
        unsigned i = n % 3, slot;

        if (n % 2) { /* behind the message, or before it */
            share_posts(&share, n % 16, 1);
            share_send(&share, i, n);
        } else {
            share_send(&share, i, n);
            share_posts(&share, n % 16, 1);
        }
        slot = share_receive(&share, i, n);
        assert_int_equal(slot, n % 16);
    }
    atomic_store(&modifier.stop, true);
    pthread_join(thread, NULL);
    assert_true(modifier.changed > 0);
    share_close(&share);
}

/* ---- closing -------------------------------------------------------------------------------- */

/* Closed first, it serves its queue pairs until the last one is closed. */
static void closed_before_its_queue_pairs(void **state)
{
    struct share share;
    struct wait w;

    (void)state;
    share_open(&share, LONG, 8, 64, 0);
    share_connect(&share, 0);
    share_connect(&share, 1);
    share_posts(&share, 0, 6);
    wait_init(&w);
    assert_int_equal(share.srq->Dispatch->NdkCloseSrq(&share.srq->Header, wait_close, &w),
                     STATUS_PENDING);
    share.srq = NULL;
    for (unsigned i = 0; i < 2; i++) {
        share_send(&share, i, 777);
        share_receive(&share, i, 777);
    }
    share_disconnect(&share, 0);
    assert_false(wait_event(&w.event, QUIET_MS));
    share_disconnect(&share, 1);
    assert_int_equal(wait_end(&w, STATUS_PENDING), STATUS_SUCCESS);
    share_close(&share);
}

/* ---- adapter pages -------------------------------------------------------------------------- */

static void scattered_pages_one_an_sge(void **state)
{
    struct share share;
    struct share_pair *pair;
    NDK_SGE sges[4];
    struct lam lam;
    ULONG count;

    (void)state;
    share_open(&share, LONG ",scattered=1", 1, 16, 0);
    share_connect(&share, 0);
    pair = &share.pairs[0];
    lam_open(share.adapter, share.memory.mdl, 3 * 4096, &lam);
    count = lam_sges(share.pd, &lam, sges, 4);
    assert_int_equal(count, 3);
    sges[3] = sges[1];
    sges[3].Length++; /* into the next page */
    expect_call(share.srq->Dispatch->NdkSrqReceive(share.srq, CTX(1), sges + 3, 1),
                STATUS_ACCESS_VIOLATION, "NdkSrqReceive", &share.srq->Header);
    expect_call(share.srq->Dispatch->NdkSrqReceive(share.srq, CTX(1), sges, 3), STATUS_SUCCESS,
                "NdkSrqReceive", &share.srq->Header);
    fill(pair->memory.data, 3 * 4096, 5);
    assert_int_equal(post_send(&pair->client, &pair->memory, 3 * 4096, 0, CTX(1)), STATUS_SUCCESS);
    expect_completion(&pair->server.receive, "receive", CTX(1), NdkOperationTypeReceive,
                      STATUS_SUCCESS);
    assert_true(check(share.memory.data, 3 * 4096, 5));
    lam_close(&lam);
    share_close(&share);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH_MODES(many_receives),
        BOTH_MODES(few_receives),
        BOTH_MODES(receives_have_their_own_sges),
        BOTH_MODES(the_queue_outlives_its_queue_pairs),
        BOTH_MODES(no_receives_of_its_own),
        BOTH_MODES(each_post_lets_one_go),
        BOTH_MODES(closed_with_a_grant),
        BOTH_MODES(the_time_ends_one_connection),
        BOTH_MODES(zero_terminates_at_once),
        {"the_notification_keeps_it_filled", the_notification_keeps_it_filled, pend_never, NULL,
         NULL},
        BOTH_MODES(it_fires_when_a_message_takes),
        BOTH_MODES(modify_under_load),
        BOTH_MODES(closed_before_its_queue_pairs),
        BOTH_MODES(scattered_pages_one_an_sge),
    };

    return cmocka_run_group_tests_name("srq_data", tests, NULL, NULL);
}
