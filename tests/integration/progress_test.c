// SPDX-License-Identifier: MIT
/*
 * progress=inline: a consumer's thread whose poll finds nothing moves the data itself. Here the
 * home shards of an end stand still, so only the polls can have done it; then they go on, and find
 * what the polls have left.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include "../support/modes.h"
#include "../support/shallow.h"

#include <cmocka.h>

#include "conn/conn_internal.h"
#include "provider/connector.h"
#include "provider/cq.h"

#define SIZE 65536u

/* ---- shards that stand still ---------------------------------------------------------------- */

struct stall {
    struct engine_item item;
    atomic_bool entered, go_on, over;
};

static void stall_run(struct engine_item *item)
{
    struct stall *s = (struct stall *)(void *)item;

    atomic_store(&s->entered, true);
    while (!atomic_load(&s->go_on))
        test_sleep_ms(1);
    atomic_store(&s->over, true);
}

static struct stall stalls[8];
static unsigned stalled;

static void stall_all(void)
{
    stalled = engine_shard_count();
    for (unsigned i = 0; i < stalled; i++) {
        memset(&stalls[i], 0, sizeof stalls[i]);
        stalls[i].item.run = stall_run;
        engine_defer(engine_shard_at(i), &stalls[i].item);
    }
    for (unsigned i = 0; i < stalled; i++)
        while (!atomic_load(&stalls[i].entered))
            test_sleep_ms(1);
}

static void go_on(void)
{
    for (unsigned i = 0; i < stalled; i++)
        atomic_store(&stalls[i].go_on, true);
    for (unsigned i = 0; i < stalled; i++)
        while (!atomic_load(&stalls[i].over))
            test_sleep_ms(1);
}

/* ---- polls ---------------------------------------------------------------------------------- */

static bool poll_once(struct queue *queue, NDK_RESULT_EX *out)
{
    return queue->cq->Dispatch->NdkGetCqResultsEx(queue->cq, out, 1) == 1;
}

static NDK_RESULT_EX poll_for(struct queue *queue, const char *what)
{
    unsigned long long end = test_now_ms() + WAIT_S * 1000;
    NDK_RESULT_EX result;

    while (!poll_once(queue, &result))
        if (test_now_ms() > end)
            test_fail("%s: no completion by polling", what);
    if (result.Status != STATUS_SUCCESS)
        test_fail("%s: %s", what, softndk_status_name(result.Status));
    return result;
}

static bool leased(struct queue *queue)
{
    return engine_group_leased(cq_from(queue->cq)->group);
}

/* Octets that came on this interface, ever. */
static unsigned long long received(struct end *end)
{
    return atomic_load(&connector_from(end->connector)->conn->counters->in_octets);
}

/* ---- tests ---------------------------------------------------------------------------------- */

#define INLINE "shards=2,progress=inline"

static void a_poller_moves_every_kind(void **state)
{
    struct bed bed;
    struct end *c = &bed.pair.client, *s = &bed.pair.server;
    NDK_RESULT_EX result;

    (void)state;
    bed_open(&bed, INLINE, SIZE, ALL_RIGHTS);
    fill(bed.client.data, SIZE, 1);
    stall_all();
    post_receive(s, &bed.server, SIZE, &bed);
    assert_int_equal(post_send(c, &bed.client, SIZE, 0, &bed), STATUS_SUCCESS);
    result = poll_for(&s->receive, "Send");
    assert_int_equal(result.BytesTransferred, SIZE);
    assert_true(check(bed.server.data, SIZE, 1));
    assert_true(leased(&s->receive));
    poll_for(&c->initiator, "Send, sent");
    /* A Read: the server's polls answer, the client's take the Response; both CQs poll for it. */
    fill(bed.server.data, SIZE, 2);
    assert_int_equal(post_read(c, &bed.client, SIZE, (UINT64)(uintptr_t)bed.server.data,
                               bed.server.remote, 0, &bed),
                     STATUS_SUCCESS);
    for (unsigned long long end = test_now_ms() + WAIT_S * 1000;
         !poll_once(&c->initiator, &result);) {
        poll_once(&s->receive, &result);
        if (test_now_ms() > end)
            test_fail("Read: no completion by polling");
    }
    assert_int_equal(result.Status, STATUS_SUCCESS);
    assert_true(check(bed.client.data, SIZE, 2));
    go_on();
    bed_close(&bed);
}

/* The CQ that only initiator requests complete in: its polls take what comes for the QP. */
static void polls_of_either_queue_count(void **state)
{
    struct bed bed;
    struct end *c = &bed.pair.client, *s = &bed.pair.server;
    NDK_RESULT_EX result;
    unsigned long long end, before;

    (void)state;
    bed_open(&bed, INLINE, SIZE, ALL_RIGHTS);
    assert_ptr_not_equal(s->receive.cq, s->initiator.cq);
    fill(bed.client.data, SIZE, 3);
    stall_all();
    before = received(s);
    assert_int_equal(post_write(c, &bed.client, SIZE, (UINT64)(uintptr_t)bed.server.data,
                                bed.server.remote, 0, &bed),
                     STATUS_SUCCESS);
    end = test_now_ms() + WAIT_S * 1000;
    while (received(s) - before < SIZE) {
        assert_false(poll_once(&s->initiator, &result));
        if (test_now_ms() > end)
            test_fail("a Write is not received by polls of the initiator's CQ");
    }
    assert_true(leased(&s->receive));
    go_on();
    poll_for(&c->initiator, "Write");
    synchronize(c, s);
    assert_true(check(bed.server.data, SIZE, 3));
    bed_close(&bed);
}

/* Arming says that the consumer will wait: the shards have it all again, at once. */
static void an_arm_gives_the_lease_back(void **state)
{
    struct bed bed;
    struct end *c = &bed.pair.client, *s = &bed.pair.server;
    NDK_RESULT_EX result;

    (void)state;
    bed_open(&bed, INLINE, SIZE, ALL_RIGHTS);
    for (unsigned i = 0; i < 50; i++) {
        post_receive(s, &bed.server, 64, &bed);
        do
            assert_false(poll_once(&s->receive, &result));
        while (!leased(&s->receive));
        if (i % 2) {
            s->receive.cq->Dispatch->NdkArmCq(s->receive.cq, NDK_CQ_NOTIFY_ANY);
            assert_false(leased(&s->receive));
        } else { /* one poll of the initiator's CQ takes it anew, whose arm gives it back */
            poll_once(&s->initiator, &result);
            s->initiator.cq->Dispatch->NdkArmCq(s->initiator.cq, NDK_CQ_NOTIFY_ANY);
            assert_false(leased(&s->receive));
        }
        assert_int_equal(post_send(c, &bed.client, 64, 0, &bed), STATUS_SUCCESS);
        assert_int_equal(queue_next(&s->receive).Status, STATUS_SUCCESS);
        assert_int_equal(queue_next(&c->initiator).Status, STATUS_SUCCESS);
    }
    bed_close(&bed);
}

/*
 * More than one poll takes at once, with two connections in the group: what a poll leaves in the
 * socket has an edge, and so is found by the next one although nothing more comes.
 */
static void what_a_poll_leaves_is_found(void **state)
{
    enum { PIECE = 1u << 20, PIECES = 6 };
    struct bed bed;
    struct end *c = &bed.pair.client, *s = &bed.pair.server;
    struct pair second;
    NDK_RESULT_EX result;
    unsigned long long end, before;

    (void)state;
    bed_open(&bed, INLINE ",tcp_buffer=16777216", PIECE, ALL_RIGHTS);
    /* The second one: another client, and a QP at the server on the CQs of the first. */
    memset(&second, 0, sizeof second);
    end_open(&second.client, INLINE);
    second.server.adapter = s->adapter;
    second.server.pd = s->pd;
    KeInitializeEvent(&second.server.disconnected, NotificationEvent, FALSE);
    second.server.qp = make_qp_with(&second.server, &s->receive, &s->initiator);
    listen_on(s->adapter, "127.0.0.1", &second.listening);
    pair_connect(&second);
    stall_all();
    before = received(s);
    for (unsigned i = 0; i < PIECES; i++)
        assert_int_equal(post_write(c, &bed.client, PIECE, (UINT64)(uintptr_t)bed.server.data,
                                    bed.server.remote, 0, &bed),
                         STATUS_SUCCESS);
    end = test_now_ms() + WAIT_S * 1000;
    while (received(s) - before < (unsigned long long)PIECES * PIECE) {
        poll_once(&s->receive, &result);
        poll_once(&c->initiator, &result); /* what TCP did not take at once */
        if (test_now_ms() > end)
            test_fail("octets are left in the socket");
    }
    go_on();
    second.server.adapter = NULL; /* of the first one */
    second.server.pd = NULL;
    pair_close(&second);
    bed_close(&bed);
}

/* A socket that is being ended is its shard's, whoever has fetched its event. */
static void an_end_goes_on_beside_polls(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 20; i++) {
        struct bed bed;
        struct end *s = &bed.pair.server;
        NDK_RESULT_EX result;
        unsigned long long end = test_now_ms() + WAIT_S * 1000;
        struct conn *conn;

        bed_open(&bed, INLINE ",drain_ms=600000,linger_ms=600000,disconnect_ms=600000", 4096,
                 ALL_RIGHTS);
        conn = connector_from(s->connector)->conn;
        post_receive(s, &bed.server, 64, &bed);
        do
            poll_once(&s->receive, &result);
        while (!leased(&s->receive));
        /* A Write outside of every region: the server says so in a Terminate and waits for FIN. */
        assert_int_equal(
            post_write(&bed.pair.client, &bed.client, 16, 0, bed.server.remote ^ 0x5a00, 0, &bed),
            STATUS_SUCCESS);
        while (atomic_load(&conn->state) != CONN_GONE) {
            poll_once(&s->receive, &result);
            if (test_now_ms() > end)
                test_fail("the connection does not end beside polls: state %d",
                          atomic_load(&conn->state));
        }
        expect_event(&bed.pair.client, "the Terminate", REASON_TERMINATE_RECEIVED,
                     IWARP_ERR_TAG_STAG);
        bed_close(&bed);
    }
}

/* Sends wait, and the lease is out; the server's connection. */
static struct conn *wait_held(struct bed *bed, unsigned count)
{
    struct end *s = &bed->pair.server;
    struct conn *conn = connector_from(s->connector)->conn;
    unsigned long long end = test_now_ms() + WAIT_S * 1000;
    NDK_RESULT_EX result;

    for (unsigned i = 0; i < count; i++)
        assert_int_equal(post_send(&bed->pair.client, &bed->client, 64, 0, bed), STATUS_SUCCESS);
    while (!atomic_load(&conn->held) || !leased(&s->receive)) {
        assert_false(poll_once(&s->receive, &result));
        if (test_now_ms() > end)
            test_fail("no Send waits");
    }
    return conn;
}

/* Receives that are posted for Sends which wait: the poll behind them processes all at once. */
static void what_waited_goes_with_the_next_poll(void **state)
{
    struct bed bed;
    struct end *s = &bed.pair.server;
    struct conn *conn;

    (void)state;
    bed_open(&bed, INLINE ",holdback_ms=600000", SIZE, ALL_RIGHTS);
    stall_all();
    conn = wait_held(&bed, 40);
    for (unsigned i = 0; i < 40; i++)
        post_receive(s, &bed.server, 64, &bed);
    assert_true(atomic_load(&conn->held)); /* nobody has looked yet */
    for (unsigned i = 0; i < 40; i++)
        poll_for(&s->receive, "a Send that waited");
    assert_false(atomic_load(&conn->held));
    go_on();
    for (unsigned i = 0; i < 40; i++)
        poll_for(&bed.pair.client.initiator, "Send");
    bed_close(&bed);
}

/* Their poster does not poll again: it arms, or does nothing at all. */
static void what_waited_goes_without_a_poll(void **state)
{
    (void)state;
    for (unsigned arms = 0; arms < 2; arms++) {
        struct bed bed;
        struct end *s = &bed.pair.server;

        bed_open(&bed, INLINE ",holdback_ms=600000", SIZE, ALL_RIGHTS);
        stall_all(); /* nobody takes the lease back meanwhile */
        wait_held(&bed, 3);
        for (unsigned i = 0; i < 3; i++)
            post_receive(s, &bed.server, 64, &bed);
        if (arms)
            s->receive.cq->Dispatch->NdkArmCq(s->receive.cq, NDK_CQ_NOTIFY_ANY);
        go_on();
        if (arms && !wait_event(&s->receive.event, WAIT_S * 1000))
            test_fail("no notification of Sends that waited");
        wait_until(cq_from(s->receive.cq)->written == 3, "three completions");
        for (unsigned i = 0; i < 3; i++)
            poll_for(&s->receive, "a Send that waited");
        bed_close(&bed);
    }
}

/* Each poll finds the completion of a Write that was posted before it; what comes is found too. */
static void a_poller_who_always_finds_something_looks(void **state)
{
    struct bed bed;
    struct end *c = &bed.pair.client, *s = &bed.pair.server;
    struct pair second;
    NDK_RESULT_EX result;
    unsigned writes = 0;

    (void)state;
    bed_open(&bed, INLINE, SIZE, ALL_RIGHTS);
    memset(&second, 0, sizeof second);
    end_open(&second.client, INLINE);
    second.server.adapter = s->adapter;
    second.server.pd = s->pd;
    KeInitializeEvent(&second.server.disconnected, NotificationEvent, FALSE);
    second.server.qp = make_qp_with(&second.server, &s->receive, &s->receive); /* one CQ */
    listen_on(s->adapter, "127.0.0.1", &second.listening);
    pair_connect(&second);
    post_receive(&second.server, &bed.server, 64, &bed);
    do
        assert_false(poll_once(&s->receive, &result));
    while (!leased(&s->receive));
    stall_all();
    assert_int_equal(second.client.qp->Dispatch->NdkSend(second.client.qp, c, NULL, 0, 0),
                     STATUS_SUCCESS);
    do {
        assert_int_equal(
            second.server.qp->Dispatch->NdkWrite(second.server.qp, s, NULL, 0, 0, 0, 0),
            STATUS_SUCCESS);
        if (!poll_once(&s->receive, &result))
            test_fail("a Write has not completed at once");
        /* Some hundred more, which nobody reads, and one would not: its poll would find nothing. */
        if (++writes > 50)
            test_fail("what came is not found by polls that find something");
    } while (result.Type == NdkOperationTypeWrite);
    assert_int_equal(result.Type, NdkOperationTypeReceive);
    go_on();
    second.server.adapter = NULL; /* of the first one */
    second.server.pd = NULL;
    pair_close(&second);
    bed_close(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_poller_moves_every_kind),
        cmocka_unit_test(polls_of_either_queue_count),
        cmocka_unit_test(an_arm_gives_the_lease_back),
        cmocka_unit_test(what_a_poll_leaves_is_found),
        cmocka_unit_test(an_end_goes_on_beside_polls),
        cmocka_unit_test(what_waited_goes_with_the_next_poll),
        cmocka_unit_test(what_waited_goes_without_a_poll),
        cmocka_unit_test(a_poller_who_always_finds_something_looks),
    };

    return cmocka_run_group_tests_name("progress", tests, NULL, NULL);
}
