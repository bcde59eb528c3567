// SPDX-License-Identifier: MIT
/*
 * One rule, wherever the entry too many comes from: the CQ is dead, its queue pair is dead, the
 * consumer is told once with STATUS_BUFFER_OVERFLOW, the peer sees a reset, what fitted is still
 * there. Each path at the edge of the depth: exactly as many fit.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "shallow.h"

#define DEPTH 4

/* So many receives of the server are completed, its CQ not polled: the client's sends say so, which
 * complete when they are placed. */
static void sends_placed(struct shallow *s, unsigned count)
{
    post_receives(&s->pair.server, count);
    for (uintptr_t i = 1; i <= count; i++) {
        post_sends(&s->pair.client, 1, 0);
        expect_completion(&s->client_initiator.queue, "a placed send", (PVOID)1,
                          NdkOperationTypeSend, STATUS_SUCCESS);
    }
}

/* ---- the receive CQ ------------------------------------------------------------------------- */

enum when { BEFORE, REARMED, LATER };

static void receives(const char *what, ULONG type, enum when when)
{
    const struct depths depths = {.server_receive = DEPTH};
    struct shallow s;
    struct watched *cq = &s.server_receive;
    struct end *server = &s.pair.server;

    shallow_open(&s, "completion=placed", depths);
    sends_placed(&s, DEPTH);
    expect_queued(cq, what, DEPTH);
    cq->rearm = when == REARMED ? type : 0;
    if (when != LATER)
        cq->queue.cq->Dispatch->NdkArmCq(cq->queue.cq, type);
    post_receives(server, DEPTH + 2);
    post_sends(&s.pair.client, DEPTH + 1, 0);
    if (when == LATER) {
        expect_dead_pair(server, &s.pair.client, what);
        assert_int_equal(atomic_load(&cq->queue.notified), 0);
        cq->queue.cq->Dispatch->NdkArmCq(cq->queue.cq, type);
    }
    expect_death(cq, what);
    expect_posts_refused(server, &s.server);
    if (when != LATER)
        expect_dead_pair(server, &s.pair.client, what);
    expect_queued(cq, what, DEPTH);
    expect_queued(cq, what, 0);
    cq->queue.cq->Dispatch->NdkArmCq(cq->queue.cq, NDK_CQ_NOTIFY_ANY);
    shallow_close(&s, 1);
}

static void receives_overrun(void **state)
{
    (void)state;
    receives("armed for errors", NDK_CQ_NOTIFY_ERRORS, BEFORE);
    receives("armed for solicited ones", NDK_CQ_NOTIFY_SOLICITED, BEFORE);
    receives("armed for any, again and again", NDK_CQ_NOTIFY_ANY, REARMED);
    receives("armed afterwards for errors", NDK_CQ_NOTIFY_ERRORS, LATER);
    receives("armed afterwards for solicited ones", NDK_CQ_NOTIFY_SOLICITED, LATER);
    receives("armed afterwards for any", NDK_CQ_NOTIFY_ANY, LATER);
}

/* What the peer still gets of the queue pair: its open requests, cancelled, in the CQ that lives.
 */
static void requests_of_the_other_cq_are_flushed(void **state)
{
    const struct depths depths = {.server_receive = 1};
    struct shallow s;
    struct end *server = &s.pair.server;

    (void)state;
    shallow_open(&s, NULL, depths);
    s.server_receive.queue.cq->Dispatch->NdkArmCq(s.server_receive.queue.cq, NDK_CQ_NOTIFY_ERRORS);
    /* A send that meets no receive and a read behind it: the peer does not answer. */
    expect_call(post_send(server, &s.server, 8, 0, (PVOID)1), STATUS_SUCCESS, "NdkSend",
                &server->qp->Header);
    expect_completion(&s.server_initiator.queue, "a send", (PVOID)1, NdkOperationTypeSend,
                      STATUS_SUCCESS);
    expect_call(post_read(server, &s.server, 8, (UINT64)(uintptr_t)s.client.data, s.client.remote,
                          0, (PVOID)2),
                STATUS_SUCCESS, "NdkRead", &server->qp->Header);
    post_receives(server, 2);
    post_sends(&s.pair.client, 2, 0);
    expect_death(&s.server_receive, "the receives");
    expect_completion(&s.server_initiator.queue, "the read", (PVOID)2, NdkOperationTypeRead,
                      STATUS_CANCELLED);
    shallow_close(&s, 1);
}

/* ---- the initiator CQ ----------------------------------------------------------------------- */

static void requests(const char *what, const char *options)
{
    const struct depths depths = {.client_initiator = DEPTH};
    struct shallow s;
    struct watched *cq = &s.client_initiator;
    NDK_RESULT_EX result;

    shallow_open(&s, options, depths);
    post_receives(&s.pair.server, DEPTH);
    post_sends(&s.pair.client, DEPTH, 0);
    for (uintptr_t i = 1; i <= DEPTH; i++) {
        result = queue_next(&cq->queue);
        assert_ptr_equal(result.RequestContext, (PVOID)i);
        assert_int_equal(result.Status, STATUS_SUCCESS);
    }
    cq->queue.cq->Dispatch->NdkArmCq(cq->queue.cq, NDK_CQ_NOTIFY_ERRORS);
    post_receives(&s.pair.server, DEPTH + 2);
    for (uintptr_t i = 1; i <= DEPTH + 1; i++)
        expect_call(s.pair.client.qp->Dispatch->NdkSend(s.pair.client.qp, (PVOID)i, NULL, 0,
                                                        NDK_OP_FLAG_DEFER),
                    STATUS_SUCCESS, "NdkSend", &s.pair.client.qp->Header);
    /* The last of the chain sends all; it may be the one too many itself. */
    s.pair.client.qp->Dispatch->NdkSend(s.pair.client.qp, (PVOID)(DEPTH + 2), NULL, 0,
                                        NDK_OP_FLAG_SILENT_SUCCESS);
    expect_death(cq, what);
    expect_posts_refused(&s.pair.client, &s.client);
    expect_dead_pair(&s.pair.client, &s.pair.server, what);
    expect_queued(cq, what, DEPTH);
    shallow_close(&s, 1);
}

static void requests_overrun(void **state)
{
    (void)state;
    requests("sends", NULL);
    requests("sends that are placed", "completion=placed");
    requests("sends that are acknowledged", "completion=acked");
}

static void local_operations_overrun(void **state)
{
    const struct depths depths = {.client_initiator = 2};
    struct shallow s;
    struct end *client = &s.pair.client;
    struct region region;

    (void)state;
    shallow_open(&s, NULL, depths);
    region_open(client, 0, 4096, 0, FALSE, &region);
    s.client_initiator.queue.cq->Dispatch->NdkArmCq(s.client_initiator.queue.cq,
                                                    NDK_CQ_NOTIFY_ERRORS);
    expect_call(region_post(&region, 0, NDK_OP_FLAG_DEFER, (PVOID)1), STATUS_SUCCESS, "register",
                &client->qp->Header);
    expect_call(client->qp->Dispatch->NdkInvalidate(client->qp, (PVOID)2, &region.mr->Header, 0),
                STATUS_SUCCESS, "invalidate", &client->qp->Header);
    expect_call(region_post(&region, 0, 0, (PVOID)3), STATUS_SUCCESS, "register again",
                &client->qp->Header);
    expect_death(&s.client_initiator, "local operations");
    expect_dead_pair(client, &s.pair.server, "local operations");
    expect_queued(&s.client_initiator, "local operations", 2);
    CLOSE(client->connector, NdkCloseConnector);
    client->connector = make_connector(client->adapter);
    region_close(&region);
    shallow_close(&s, 1);
}

/* A silent success takes no entry, however many; a failure does. */
static void silent_failures_overrun(void **state)
{
    const struct depths depths = {.client_initiator = 2};
    struct shallow s;
    struct end *client = &s.pair.client;
    struct watched *cq = &s.client_initiator;
    NDK_RESULT_EX results[3];

    (void)state;
    shallow_open(&s, NULL, depths);
    cq->queue.cq->Dispatch->NdkArmCq(cq->queue.cq, NDK_CQ_NOTIFY_ERRORS);
    post_receives(&s.pair.server, 20);
    post_sends(client, 20, NDK_OP_FLAG_SILENT_SUCCESS);
    for (uintptr_t i = 1; i <= 20; i++)
        expect_completion(&s.server_receive.queue, "a silent send", (PVOID)i,
                          NdkOperationTypeReceive, STATUS_SUCCESS);
    expect_queued(cq, "silent successes", 0);
    assert_int_equal(atomic_load(&cq->failures), 0);
    for (uintptr_t i = 1; i <= 3; i++)
        expect_call(post_read(client, &s.client, 8, 0, 0xdeadbe00,
                              NDK_OP_FLAG_SILENT_SUCCESS | (i < 3 ? NDK_OP_FLAG_DEFER : 0),
                              (PVOID)i),
                    STATUS_SUCCESS, "NdkRead", &client->qp->Header);
    expect_death(cq, "silent failures");
    assert_int_equal(cq->queue.cq->Dispatch->NdkGetCqResultsEx(cq->queue.cq, results, 3), 2);
    assert_int_equal(results[0].Status, STATUS_ACCESS_VIOLATION);
    assert_int_equal(results[1].Status, STATUS_CANCELLED);
    expect_posts_refused(client, &s.client);
    shallow_close(&s, 1);
}

/* ---- flushes -------------------------------------------------------------------------------- */

static void expect_cancelled(struct watched *cq, unsigned count)
{
    NDK_RESULT_EX results[DEEP];
    unsigned got = cq->queue.cq->Dispatch->NdkGetCqResultsEx(cq->queue.cq, results, DEEP);

    assert_int_equal(got, count);
    for (unsigned i = 0; i < got; i++) {
        assert_int_equal(results[i].Status, STATUS_CANCELLED);
        assert_ptr_equal(results[i].RequestContext, (PVOID)(uintptr_t)(i + 1));
    }
}

/* NdkFlush of a queue pair that was never connected. */
static void a_flush_overruns(void **state)
{
    struct watched receive, initiator;
    struct end end;

    (void)state;
    end_open(&end, NULL);
    CLOSE(end.qp, NdkCloseQp);
    watched_open(end.adapter, DEPTH, &receive);
    watched_open(end.adapter, DEPTH, &initiator);
    end.qp = make_qp_with(&end, &receive.queue, &initiator.queue);
    post_receives(&end, DEPTH);
    end.qp->Dispatch->NdkFlush(end.qp);
    expect_cancelled(&receive, DEPTH);
    receive.queue.cq->Dispatch->NdkArmCq(receive.queue.cq, NDK_CQ_NOTIFY_ERRORS);
    post_receives(&end, DEPTH + 1);
    end.qp->Dispatch->NdkFlush(end.qp);
    expect_death(&receive, "a flush");
    expect_cancelled(&receive, DEPTH);
    CLOSE(end.qp, NdkCloseQp);
    end.qp = NULL;
    watched_close(&receive, 1);
    watched_close(&initiator, 0);
    end_close(&end);
}

/* The same by the end of a connection, in one go and one by one. */
static void the_end_of_a_connection_overruns(void **state)
{
    const struct depths depths = {.server_receive = DEPTH};

    (void)state;
    for (unsigned late = 0; late < 2; late++) {
        struct shallow s;
        struct end *server = &s.pair.server;
        struct watched *cq = &s.server_receive;

        shallow_open(&s, NULL, depths);
        post_receives(server, DEPTH + !late);
        cq->queue.cq->Dispatch->NdkArmCq(cq->queue.cq, NDK_CQ_NOTIFY_ERRORS);
        CLOSE(server->connector, NdkCloseConnector);
        server->connector = make_connector(server->adapter);
        if (late) { /* the connection is over: each is cancelled as it is posted */
            assert_int_equal(atomic_load(&cq->failures), 0);
            expect_cancelled(cq, DEPTH);
            post_receives(server, DEPTH);
            expect_cancelled(cq, DEPTH);
            post_receives(server, DEPTH);
            post_receives(server, 1); /* taken, and one too many */
        }
        expect_death(cq, "the end");
        expect_posts_refused(server, &s.server);
        expect_cancelled(cq, DEPTH);
        shallow_close(&s, 1);
    }
}

/* ---- a smaller CQ --------------------------------------------------------------------------- */

static void a_shrunk_cq_overruns(void **state)
{
    const struct depths depths = {.server_receive = 16};
    struct shallow s;
    struct watched *cq = &s.server_receive;
    struct wait w;

    (void)state;
    shallow_open(&s, "completion=placed", depths);
    sends_placed(&s, 3);
    wait_init(&w);
    assert_int_equal(
        wait_end(&w, cq->queue.cq->Dispatch->NdkResizeCq(cq->queue.cq, 2, wait_request, &w)),
        STATUS_INVALID_PARAMETER);
    wait_init(&w);
    assert_int_equal(
        wait_end(&w, cq->queue.cq->Dispatch->NdkResizeCq(cq->queue.cq, DEPTH, wait_request, &w)),
        STATUS_SUCCESS);
    expect_queued(cq, "before the resize", 3);
    sends_placed(&s, DEPTH);
    expect_queued(cq, "the new depth", DEPTH);
    cq->queue.cq->Dispatch->NdkArmCq(cq->queue.cq, NDK_CQ_NOTIFY_ERRORS);
    post_receives(&s.pair.server, DEPTH + 1);
    post_sends(&s.pair.client, DEPTH + 1, 0);
    expect_death(cq, "a shrunk CQ");
    expect_dead_pair(&s.pair.server, &s.pair.client, "a shrunk CQ");
    expect_queued(cq, "a shrunk CQ", DEPTH);
    wait_init(&w);
    assert_int_equal(
        wait_end(&w, cq->queue.cq->Dispatch->NdkResizeCq(cq->queue.cq, 16, wait_request, &w)),
        STATUS_INVALID_DEVICE_STATE);
    shallow_close(&s, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH_MODES(receives_overrun),
        BOTH_MODES(requests_of_the_other_cq_are_flushed),
        BOTH_MODES(requests_overrun),
        BOTH_MODES(local_operations_overrun),
        BOTH_MODES(silent_failures_overrun),
        BOTH_MODES(a_flush_overruns),
        BOTH_MODES(the_end_of_a_connection_overruns),
        BOTH_MODES(a_shrunk_cq_overruns),
    };

    return cmocka_run_group_tests_name("overrun", tests, NULL, NULL);
}
