// SPDX-License-Identifier: MIT
/* See shallow.h. */
#include "shallow.h"

#include <stdarg.h>
#include <setjmp.h>
#include <string.h>

#include <cmocka.h>

/* ---- CQs ------------------------------------------------------------------------------------ */

static void notified(struct queue *queue, void *context)
{
    struct watched *watched = context;

    if (!NT_SUCCESS(queue->status)) {
        assert_int_equal(queue->status, STATUS_BUFFER_OVERFLOW);
        atomic_fetch_add(&watched->failures, 1);
    } else if (watched->rearm) {
        queue->cq->Dispatch->NdkArmCq(queue->cq, watched->rearm);
    }
}

void watched_open(NDK_ADAPTER *adapter, ULONG depth, struct watched *out)
{
    memset(out, 0, sizeof *out);
    make_queue(adapter, depth ? depth : DEEP, &out->queue);
    out->queue.in_callback = notified;
    out->queue.context = out;
}

void watched_close(struct watched *watched, unsigned failures)
{
    CLOSE(watched->queue.cq, NdkCloseCq);
    assert_int_equal(atomic_load(&watched->failures), failures);
}

void expect_death(struct watched *watched, const char *what)
{
    wait_until(atomic_load(&watched->failures) != 0, what);
}

void expect_queued(struct watched *watched, const char *what, unsigned count)
{
    NDK_CQ *cq = watched->queue.cq;
    NDK_RESULT_EX results[DEEP];
    unsigned got = cq->Dispatch->NdkGetCqResultsEx(cq, results, DEEP);

    if (got != count)
        test_fail("%s: %u completions are queued, not %u", what, got, count);
    for (uintptr_t i = 0; i < got; i++)
        if (results[i].RequestContext != (PVOID)(i + 1) || results[i].Status != STATUS_SUCCESS)
            test_fail("%s: completion %u is of request %p, status 0x%x", what, (unsigned)i,
                      results[i].RequestContext, (unsigned)results[i].Status);
}

/* ---- ends ----------------------------------------------------------------------------------- */

NDK_QP *make_qp_with(struct end *end, struct queue *receive, struct queue *initiator)
{
    NDK_QP *qp = NULL;
    struct wait w;
    NTSTATUS status;

    wait_init(&w);
    status = end->pd->Dispatch->NdkCreateQp(end->pd, receive->cq, initiator->cq, end, END_DEPTH,
                                            END_DEPTH, 4, 4, 64, wait_create, &w, &qp);
    expect_call(wait_end(&w, status), STATUS_SUCCESS, "NdkCreateQp", &end->pd->Header);
    return status == STATUS_PENDING ? (NDK_QP *)(void *)w.object : qp;
}

static void reshape(struct end *end, struct watched *receive, struct watched *initiator)
{
    CLOSE(end->qp, NdkCloseQp);
    end->qp = make_qp_with(end, &receive->queue, &initiator->queue);
}

void shallow_open(struct shallow *s, const char *client_options, struct depths depths)
{
    struct end *client = &s->pair.client, *server = &s->pair.server;

    memset(s, 0, sizeof *s);
    end_open(server, NULL);
    end_open(client, client_options);
    watched_open(client->adapter, depths.client_receive, &s->client_receive);
    watched_open(client->adapter, depths.client_initiator, &s->client_initiator);
    watched_open(server->adapter, depths.server_receive, &s->server_receive);
    watched_open(server->adapter, depths.server_initiator, &s->server_initiator);
    reshape(client, &s->client_receive, &s->client_initiator);
    reshape(server, &s->server_receive, &s->server_initiator);
    make_memory(client->pd, 4096, ALL_RIGHTS, &s->client);
    make_memory(server->pd, 4096, ALL_RIGHTS, &s->server);
    listen_on(server->adapter, "127.0.0.1", &s->pair.listening);
    pair_connect(&s->pair);
}

void shallow_close(struct shallow *s, unsigned failures)
{
    struct watched *all[] = {&s->client_receive, &s->client_initiator, &s->server_receive,
                             &s->server_initiator};
    struct end *ends[] = {&s->pair.client, &s->pair.server};
    unsigned told = 0;

    for (int i = 0; i < 2; i++) {
        CLOSE(ends[i]->connector, NdkCloseConnector);
        CLOSE(ends[i]->qp, NdkCloseQp);
        ends[i]->connector = NULL;
        ends[i]->qp = NULL;
    }
    for (int i = 0; i < 4; i++) {
        unsigned its = atomic_load(&all[i]->failures);

        watched_close(all[i], its);
        told += atomic_load(&all[i]->failures);
        assert_in_range(atomic_load(&all[i]->failures), 0, 1);
    }
    assert_int_equal(told, failures);
    free_memory(&s->client);
    free_memory(&s->server);
    pair_close(&s->pair);
}

void post_receives(struct end *end, unsigned count)
{
    for (uintptr_t i = 1; i <= count; i++)
        expect_call(end->qp->Dispatch->NdkReceive(end->qp, (PVOID)i, NULL, 0), STATUS_SUCCESS,
                    "NdkReceive", &end->qp->Header);
}

void post_sends(struct end *end, unsigned count, ULONG flags)
{
    for (uintptr_t i = 1; i <= count; i++)
        expect_call(end->qp->Dispatch->NdkSend(end->qp, (PVOID)i, NULL, 0, flags), STATUS_SUCCESS,
                    "NdkSend", &end->qp->Header);
}

/* ---- what a death looks like ---------------------------------------------------------------- */

void expect_dead_pair(struct end *here, struct end *there, const char *what)
{
    char text[256];

    expect_event(here, what, REASON_LOCAL_FAULT, 0);
    softndk_reason_text(here->reason, text, sizeof text);
    if (reason_cause(here->reason) != REASON_CAUSE_CQ_OVERRUN || !strstr(text, "overran"))
        test_fail("%s: the event says 0x%x (%s)", what, here->reason, text);
    expect_event(there, what, REASON_PEER_RST, 0);
}

static void expect_refused(NTSTATUS status, const char *what, NDK_QP *qp)
{
    char text[512] = "";

    softndk_reason(&qp->Header, text, sizeof text);
    if (status != STATUS_CONNECTION_INVALID || !strstr(text, "overran"))
        test_fail("%s: 0x%x: %s", what, (unsigned)status, text);
}

void expect_posts_refused(struct end *end, const struct memory *memory)
{
    const NDK_QP_DISPATCH *call = end->qp->Dispatch;
    NDK_SGE sge = memory_sge(memory, 0, 8);
    NDK_QP *qp = end->qp;

    expect_refused(call->NdkReceive(qp, NULL, NULL, 0), "NdkReceive", qp);
    expect_refused(call->NdkSend(qp, NULL, NULL, 0, 0), "NdkSend", qp);
    expect_refused(call->NdkSendAndInvalidate(qp, NULL, NULL, 0, 0, 1), "NdkSendAndInvalidate", qp);
    expect_refused(call->NdkWrite(qp, NULL, &sge, 1, 0, 1, 0), "NdkWrite", qp);
    expect_refused(call->NdkRead(qp, NULL, &sge, 1, 0, 1, 0), "NdkRead", qp);
    expect_refused(call->NdkInvalidate(qp, NULL, &memory->mr->Header, 0), "NdkInvalidate", qp);
    expect_refused(call->NdkFastRegister(qp, NULL, memory->mr, 0, NULL, 0, 0, NULL, 0),
                   "NdkFastRegister", qp);
}
