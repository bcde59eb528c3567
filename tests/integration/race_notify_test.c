// SPDX-License-Identifier: MIT
/*
 * Interleavings of completions and notifications: an arm that races with a completion put by
 * another shard, also while the callback runs; a callback that posts and polls for the result; two
 * CQs whose callbacks post to each other's connections.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ends.h"

#define MANY 4000u /* messages of a test */

static ULONG poll_one(struct queue *queue, NDK_RESULT_EX *result)
{
    return queue->cq->Dispatch->NdkGetCqResultsEx(queue->cq, result, 1);
}

static void post_receives(struct end *end, unsigned count)
{
    while (count--)
        assert_int_equal(end->qp->Dispatch->NdkReceive(end->qp, end, NULL, 0), STATUS_SUCCESS);
}

/* ---- arm against a completion put by another shard ------------------------------------------ */

/* The receive CQ is polled and armed in its callback only, while the sender waits for nothing but
 * its window: the next message comes at any moment of the callback. */
struct shared {
    atomic_uint received, faults, inside;
};

static void receive_and_repost(struct queue *queue, void *context)
{
    struct shared *shared = context;
    NDK_RESULT_EX result;

    if (atomic_fetch_add(&shared->inside, 1) != 0)
        atomic_fetch_add(&shared->faults, 1);
    while (poll_one(queue, &result) == 1) {
        struct end *end = result.RequestContext;

        if (result.Status != STATUS_SUCCESS)
            continue; /* flushed at the end */
        atomic_fetch_add(&shared->received, 1);
        if (end->qp->Dispatch->NdkReceive(end->qp, end, NULL, 0) != STATUS_SUCCESS)
            atomic_fetch_add(&shared->faults, 1);
    }
    atomic_fetch_sub(&shared->inside, 1);
    queue->cq->Dispatch->NdkArmCq(queue->cq, NDK_CQ_NOTIFY_ANY);
}

/* Sends when the window allows, many times just when the other side arms. */
static void send_many(struct shared *shared, struct end *from, unsigned window)
{
    unsigned done = 0, posted = 0;
    NDK_RESULT_EX result;

    while (done < MANY) {
        /* Each message must be answered for before the window goes on: a lost one shows. */
        wait_until(posted - atomic_load(&shared->received) < window, "a notification");
        if (posted < MANY) {
            assert_int_equal(from->qp->Dispatch->NdkSend(from->qp, from, NULL, 0, 0),
                             STATUS_SUCCESS);
            posted++;
        }
        while (poll_one(&from->initiator, &result) == 1) {
            assert_int_equal(result.Status, STATUS_SUCCESS);
            done++;
        }
    }
    wait_until(atomic_load(&shared->received) == MANY, "all messages");
}

/* The race lost on purpose: the completion is there when the CQ is armed. A Read behind the Send
 * tells when, without a poll. */
static void arm_behind_put(void **state)
{
    struct pair pair;
    struct end *c = &pair.client, *s = &pair.server;

    (void)state;
    pair_open(&pair, "127.0.0.1", NULL, NULL);
    post_receives(s, 1);
    assert_int_equal(c->qp->Dispatch->NdkSend(c->qp, NULL, NULL, 0, 0), STATUS_SUCCESS);
    assert_int_equal(c->qp->Dispatch->NdkRead(c->qp, c, NULL, 0, 0, 0, 0), STATUS_SUCCESS);
    assert_int_equal(queue_next(&c->initiator).Status, STATUS_SUCCESS);
    assert_ptr_equal(queue_next(&c->initiator).RequestContext, c);
    assert_int_equal(atomic_load(&s->receive.notified), 0);
    s->receive.cq->Dispatch->NdkArmCq(s->receive.cq, NDK_CQ_NOTIFY_ANY);
    wait_until(atomic_load(&s->receive.notified) == 1, "the notification of what was there");
    pair_close(&pair);
}

static void arm_against_put(void **state)
{
    static const unsigned windows[] = {1, 2, 16};

    (void)state;
    for (int w = 0; w < 3; w++) {
        struct shared shared;
        struct pair pair;

        memset(&shared, 0, sizeof shared);
        pair_open(&pair, "127.0.0.1", "shards=2", "shards=2");
        post_receives(&pair.server, 32);
        pair.server.receive.context = &shared;
        pair.server.receive.in_callback = receive_and_repost;
        pair.server.receive.cq->Dispatch->NdkArmCq(pair.server.receive.cq, NDK_CQ_NOTIFY_ANY);
        send_many(&shared, &pair.client, windows[w]);
        assert_int_equal(atomic_load(&shared.faults), 0);
        pair_close(&pair);
    }
}

struct echo {
    atomic_uint left, sends, receives, faults, inside;
    atomic_bool stopping;
};

static void echo_callback(struct queue *queue, void *context)
{
    struct echo *echo = context;
    NDK_RESULT_EX result;

    if (atomic_fetch_add(&echo->inside, 1) != 0)
        atomic_fetch_add(&echo->faults, 1);
    while (poll_one(queue, &result) == 1) {
        struct end *end = result.QPContext;
        unsigned left;

        if (result.Status != STATUS_SUCCESS) {
            if (!atomic_load(&echo->stopping))
                atomic_fetch_add(&echo->faults, 1);
            continue;
        }
        if (result.Type == NdkOperationTypeSend) {
            atomic_fetch_add(&echo->sends, 1);
            continue;
        }
        atomic_fetch_add(&echo->receives, 1);
        if (end->qp->Dispatch->NdkReceive(end->qp, end, NULL, 0) != STATUS_SUCCESS)
            atomic_fetch_add(&echo->faults, 1);
        left = atomic_load(&echo->left);
        while (left && !atomic_compare_exchange_weak(&echo->left, &left, left - 1))
            ;
        if (left && end->qp->Dispatch->NdkSend(end->qp, end, NULL, 0, 0) != STATUS_SUCCESS)
            atomic_fetch_add(&echo->faults, 1);
    }
    atomic_fetch_sub(&echo->inside, 1);
    queue->cq->Dispatch->NdkArmCq(queue->cq, NDK_CQ_NOTIFY_ANY);
}

/* Room for the whole game: nobody waits for a Send's completion before the next one is posted, so a
 * thread that stands still for long would find its CQ overrun. */
static void make_room(struct queue *queue, ULONG depth)
{
    struct wait w;
    NTSTATUS status;

    wait_init(&w);
    status = queue->cq->Dispatch->NdkResizeCq(queue->cq, depth, wait_request, &w);
    assert_int_equal(wait_end(&w, status), STATUS_SUCCESS);
}

static unsigned game_moves(struct echo echo[4])
{
    return atomic_load(&echo[0].receives) + atomic_load(&echo[1].receives) +
           atomic_load(&echo[2].sends) + atomic_load(&echo[3].sends);
}

static bool game_over(struct echo echo[4], unsigned balls)
{
    return atomic_load(&echo[0].left) == 0 && atomic_load(&echo[1].left) == 0 &&
           game_moves(echo) == 2 * (MANY + balls);
}

/* However slow the machine is, there is another move; else everything that is known is told. */
static void await_move(struct pair *pair, struct echo echo[4])
{
    unsigned long long end = test_now_ms() + WAIT_S * 1000u;
    unsigned before = game_moves(echo);

    while (game_moves(echo) == before) {
        if (test_now_ms() > end)
            test_fail(
                "no move: left %u and %u, received %u and %u, sent %u and %u, faults %u %u %u "
                "%u, disconnects %u and %u (reasons 0x%x, 0x%x)",
                atomic_load(&echo[0].left), atomic_load(&echo[1].left),
                atomic_load(&echo[0].receives), atomic_load(&echo[1].receives),
                atomic_load(&echo[2].sends), atomic_load(&echo[3].sends),
                atomic_load(&echo[0].faults), atomic_load(&echo[1].faults),
                atomic_load(&echo[2].faults), atomic_load(&echo[3].faults),
                atomic_load(&pair->client.disconnects), atomic_load(&pair->server.disconnects),
                (unsigned)pair->client.reason, (unsigned)pair->server.reason);
        test_sleep_ms(1);
    }
}

/* Four CQs whose callbacks answer each other over one connection, several balls in the air: posts
 * in callbacks go to a connection whose home is another shard's, both directions at once. */
static void callbacks_that_post_to_each_other(void **state)
{
    (void)state;
    for (unsigned balls = 1; balls <= 16; balls *= 4) {
        struct queue *queues[4];
        struct echo echo[4];
        struct pair pair;
        unsigned sends = 0, receives = 0;

        memset(echo, 0, sizeof echo);
        pair_open(&pair, "127.0.0.1", "shards=2", "shards=2");
        queues[0] = &pair.client.receive;
        queues[1] = &pair.server.receive;
        queues[2] = &pair.client.initiator;
        queues[3] = &pair.server.initiator;
        make_room(&pair.client.initiator, MANY + 16);
        make_room(&pair.server.initiator, MANY + 16);
        post_receives(&pair.client, 32);
        post_receives(&pair.server, 32);
        for (int i = 0; i < 4; i++) {
            atomic_store(&echo[i].left, MANY / 2);
            queues[i]->context = &echo[i];
            queues[i]->in_callback = echo_callback;
        }
        for (unsigned i = 0; i < balls; i++) {
            struct end *end = i % 2 ? &pair.client : &pair.server;

            assert_int_equal(end->qp->Dispatch->NdkSend(end->qp, end, NULL, 0, 0), STATUS_SUCCESS);
        }
        /* From here on only the callbacks post. */
        for (int i = 0; i < 4; i++)
            queues[i]->cq->Dispatch->NdkArmCq(queues[i]->cq, NDK_CQ_NOTIFY_ANY);
        /* What a receive answers is sent until both sides have nothing left: the balls are then
         * all at rest, and each message was received and completed. */
        while (!game_over(echo, balls))
            await_move(&pair, echo);
        for (int i = 0; i < 4; i++)
            atomic_store(&echo[i].stopping, true);
        pair_close(&pair);
        for (int i = 0; i < 4; i++) {
            assert_int_equal(atomic_load(&echo[i].faults), 0);
            sends += atomic_load(&echo[i].sends);
            receives += atomic_load(&echo[i].receives);
        }
        assert_int_equal(sends, MANY + balls);
        assert_int_equal(receives, MANY + balls);
    }
}

/* ---- a callback that posts and polls for the result ----------------------------------------- */

struct poller {
    struct pair *pair;
    atomic_uint rounds, faults;
    atomic_bool over;
};

/* In the server's receive callback: sends, then polls until the send has completed and the client's
 * receive, on the same thread's shard or another one's, has it. */
static void post_and_poll(struct queue *queue, void *context)
{
    struct poller *poller = context;
    struct pair *pair = poller->pair;
    unsigned long long limit = test_now_ms() + WAIT_S * 1000u;
    NDK_RESULT_EX result;
    ULONG got = 0;

    while (poll_one(queue, &result) == 1)
        ;
    if (pair->server.qp->Dispatch->NdkSend(pair->server.qp, poller, NULL, 0, 0) != STATUS_SUCCESS)
        atomic_fetch_add(&poller->faults, 1);
    while (!got && test_now_ms() < limit)
        got = poll_one(&pair->server.initiator, &result);
    if (!got || result.Status != STATUS_SUCCESS)
        atomic_fetch_add(&poller->faults, 1);
    got = 0;
    while (!got && test_now_ms() < limit)
        got = poll_one(&pair->client.receive, &result);
    if (!got || result.Status != STATUS_SUCCESS)
        atomic_fetch_add(&poller->faults, 1);
    atomic_fetch_add(&poller->rounds, 1);
}

static void posting_and_polling_in_a_callback(void **state)
{
    struct poller poller;
    struct pair pair;

    (void)state;
    memset(&poller, 0, sizeof poller);
    poller.pair = &pair;
    pair_open(&pair, "127.0.0.1", "shards=2", "shards=2");
    pair.server.receive.context = &poller;
    pair.server.receive.in_callback = post_and_poll;
    for (unsigned i = 0; i < 300; i++) {
        post_receives(&pair.server, 1);
        post_receives(&pair.client, 1);
        pair.server.receive.cq->Dispatch->NdkArmCq(pair.server.receive.cq, NDK_CQ_NOTIFY_ANY);
        assert_int_equal(pair.client.qp->Dispatch->NdkSend(pair.client.qp, &pair, NULL, 0, 0),
                         STATUS_SUCCESS);
        wait_until(atomic_load(&poller.rounds) == i + 1, "a callback that polls");
        assert_int_equal(atomic_load(&poller.faults), 0);
        assert_int_equal(queue_next(&pair.client.initiator).Status, STATUS_SUCCESS);
    }
    pair.server.receive.in_callback = NULL;
    pair_close(&pair);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arm_behind_put),
        cmocka_unit_test(arm_against_put),
        cmocka_unit_test(callbacks_that_post_to_each_other),
        cmocka_unit_test(posting_and_polling_in_a_callback),
    };

    return cmocka_run_group_tests_name("race_notify", tests, NULL, NULL);
}
