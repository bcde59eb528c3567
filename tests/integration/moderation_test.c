// SPDX-License-Identifier: MIT
/*
 * Moderation between two ends: messages are gathered, what fails is told at once, and a dialogue
 * with an interval at both ends goes on.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "shallow.h"

#define HOUR_US 3600000000u
#define TURNS   50

static void moderate(struct watched *watched, ULONG interval_us, ULONG count)
{
    NDK_CQ *cq = watched->queue.cq;

    assert_int_equal(cq->Dispatch->NdkControlCqInterruptModeration(cq, interval_us, count),
                     STATUS_SUCCESS);
}

static void arm(struct watched *watched)
{
    watched->queue.cq->Dispatch->NdkArmCq(watched->queue.cq, NDK_CQ_NOTIFY_ANY);
}

static void wait_notified(struct watched *watched, unsigned times, const char *what)
{
    wait_until(atomic_load(&watched->queue.notified) == times, what);
}

static void messages_are_gathered(void **state)
{
    struct shallow s;
    struct watched *cq = &s.server_receive;

    (void)state;
    shallow_open(&s, "completion=placed", (struct depths){0});
    moderate(cq, HOUR_US, 8);
    arm(cq);
    post_receives(&s.pair.server, 16);
    for (unsigned i = 1; i <= 16; i++) {
        post_sends(&s.pair.client, 1, 0);
        expect_completion(&s.client_initiator.queue, "a placed send", (PVOID)1,
                          NdkOperationTypeSend, STATUS_SUCCESS);
        if (i < 8)
            assert_int_equal(atomic_load(&cq->queue.notified), 0);
        else
            wait_notified(cq, 1, "the eighth message");
    }
    expect_queued(cq, "all messages", 16);
    shallow_close(&s, 0);
}

static void a_flush_is_told_at_once(void **state)
{
    struct shallow s;
    struct watched *cq = &s.server_receive;

    (void)state;
    shallow_open(&s, "completion=placed", (struct depths){0});
    moderate(cq, MAXULONG, 8);
    arm(cq);
    post_receives(&s.pair.server, 2);
    post_sends(&s.pair.client, 1, 0);
    expect_completion(&s.client_initiator.queue, "a placed send", (PVOID)1, NdkOperationTypeSend,
                      STATUS_SUCCESS);
    assert_int_equal(atomic_load(&cq->queue.notified), 0);
    CLOSE(s.pair.server.connector, NdkCloseConnector);
    s.pair.server.connector = make_connector(s.pair.server.adapter);
    wait_notified(cq, 1, "the flushed receive");
    shallow_close(&s, 0);
}

/* Each turn waits for a notification that only the interval ends. */
static void a_dialogue_goes_on(void **state)
{
    struct shallow s;

    (void)state;
    shallow_open(&s, NULL, (struct depths){0});
    moderate(&s.client_receive, 300, MAXULONG);
    moderate(&s.client_initiator, 300, MAXULONG);
    moderate(&s.server_receive, 300, 100);
    moderate(&s.server_initiator, 300, 100);
    for (int turn = 0; turn < TURNS; turn++) {
        struct end *from = turn % 2 ? &s.pair.client : &s.pair.server;
        struct end *to = turn % 2 ? &s.pair.server : &s.pair.client;
        struct watched *receive = turn % 2 ? &s.server_receive : &s.client_receive;
        struct watched *initiator = turn % 2 ? &s.client_initiator : &s.server_initiator;

        post_receives(to, 1);
        post_sends(from, 1, 0);
        expect_completion(&receive->queue, "a message", (PVOID)1, NdkOperationTypeReceive,
                          STATUS_SUCCESS);
        expect_completion(&initiator->queue, "a send", (PVOID)1, NdkOperationTypeSend,
                          STATUS_SUCCESS);
    }
    shallow_close(&s, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH_MODES(messages_are_gathered),
        BOTH_MODES(a_flush_is_told_at_once),
        BOTH_MODES(a_dialogue_goes_on),
    };

    return cmocka_run_group_tests_name("moderation", tests, NULL, NULL);
}
