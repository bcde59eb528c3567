// SPDX-License-Identifier: MIT
/* See episode.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "episode.h"

#define RIGHTS                                                                                     \
    (NDK_MR_FLAG_ALLOW_LOCAL_WRITE | NDK_MR_FLAG_ALLOW_REMOTE_READ |                               \
     NDK_MR_FLAG_ALLOW_REMOTE_WRITE | NDK_MR_FLAG_RDMA_READ_SINK)

unsigned stress_seed;

void stress_die(const char *what)
{
    fprintf(stderr, "stress: %s (SOFTNDK_TEST_SEED=%u)\n", what, stress_seed);
    fflush(NULL);
    abort();
}

/* ---- closing -------------------------------------------------------------------------------- */

static VOID slot_closed(PVOID context)
{
    struct slot *slot = context;

    need(!atomic_exchange(&slot->closed, true));
}

void side_close_slot(struct slot *slot)
{
    NTSTATUS status;

    if (!slot->header || atomic_exchange(&slot->claimed, true))
        return;
    status = slot->close(slot->header, slot_closed, slot);
    need(status == STATUS_SUCCESS || status == STATUS_PENDING);
    if (status == STATUS_SUCCESS)
        slot_closed(slot);
}

/* After this no post runs and none begins. */
static void stop_posts(struct work *work)
{
    pthread_mutex_lock(&work->lock);
    work->over = true;
    pthread_mutex_unlock(&work->lock);
}

void side_end_object(struct side *side, int which)
{
    struct poll *poll = which == RECEIVE_CQ ? &side->receive_poll : &side->initiator_poll;

    if (which == QP) {
        stop_posts(&side->initiator);
        stop_posts(&side->receive);
    }
    if (which == RECEIVE_CQ || which == INITIATOR_CQ) {
        pthread_mutex_lock(&poll->lock);
        poll->over = true;
        pthread_mutex_unlock(&poll->lock);
    }
    side_close_slot(&side->slots[which]);
}

/* ---- requests ------------------------------------------------------------------------------- */

void side_post_receive(struct side *side)
{
    struct work *work = &side->receive;
    NDK_SGE sge = memory_sge(&side->memory, BUFFER, BUFFER);

    pthread_mutex_lock(&work->lock);
    if (!work->over && work->used < REQUESTS) {
        struct request *request = &work->list[work->used++];

        request->posted = true; /* before it can be completed */
        if (side->qp->Dispatch->NdkReceive(side->qp, request, &sge, 1) != STATUS_SUCCESS)
            request->posted = false;
    }
    pthread_mutex_unlock(&work->lock);
}

void side_post_request(struct side *side, unsigned *random)
{
    struct side *peer = &side->episode->sides[side == &side->episode->sides[0]];
    struct work *work = &side->initiator;
    ULONG length = draw(random, 4) ? draw(random, 2000) : draw(random, BUFFER);
    NDK_SGE sge = memory_sge(&side->memory, 0, length);
    UINT64 address = (UINT64)(uintptr_t)peer->memory.data;
    NDK_SGE sink = memory_sge(&side->memory, BUFFER, length);
    ULONG flags = draw(random, 5) == 0 ? NDK_OP_FLAG_DEFER : 0;
    NTSTATUS status = STATUS_SUCCESS;

    if (draw(random, 8) == 0)
        flags |= NDK_OP_FLAG_SILENT_SUCCESS;
    pthread_mutex_lock(&work->lock);
    if (!work->over && work->used < REQUESTS) {
        struct request *request = &work->list[work->used++];

        request->posted = true;
        request->silent = (flags & NDK_OP_FLAG_SILENT_SUCCESS) != 0;
        switch (draw(random, 4)) {
        case 0:
            status = side->qp->Dispatch->NdkRead(side->qp, request, &sink, 1, address,
                                                 peer->memory.remote, flags);
            break;
        case 1:
            status = side->qp->Dispatch->NdkWrite(side->qp, request, &sge, 1, address + BUFFER,
                                                  peer->memory.remote, flags);
            break;
        default:
            status = side->qp->Dispatch->NdkSend(side->qp, request, &sge, 1, flags);
            break;
        }
        if (status != STATUS_SUCCESS)
            request->posted = false;
    }
    pthread_mutex_unlock(&work->lock);
}

unsigned side_poll(struct poll *poll, bool arm)
{
    NDK_RESULT_EX results[8];
    unsigned receives = 0;

    pthread_mutex_lock(&poll->lock);
    while (!poll->over) {
        ULONG n = poll->queue.cq->Dispatch->NdkGetCqResultsEx(poll->queue.cq, results, 8);

        for (ULONG i = 0; i < n; i++) {
            struct request *request = results[i].RequestContext;

            need(request->posted);
            need(atomic_fetch_add(&request->completions, 1) == 0);
            need(!request->silent || results[i].Status != STATUS_SUCCESS);
            receives +=
                results[i].Type == NdkOperationTypeReceive && results[i].Status == STATUS_SUCCESS;
        }
        if (n == 0)
            break;
    }
    if (arm && !poll->over)
        poll->queue.cq->Dispatch->NdkArmCq(poll->queue.cq, NDK_CQ_NOTIFY_ANY);
    pthread_mutex_unlock(&poll->lock);
    return receives;
}

/* ---- a side --------------------------------------------------------------------------------- */

static void make_poll(struct side *side, struct poll *poll,
                      void (*notified)(struct queue *, void *))
{
    poll->side = side;
    pthread_mutex_init(&poll->lock, NULL);
    make_queue(side->adapter, 2 * REQUESTS, &poll->queue);
    poll->queue.context = poll;
    poll->queue.in_callback = notified;
    side_poll(poll, true);
}

void side_set_slot(struct side *side, int which, void *object, NDK_FN_CLOSE_OBJECT close)
{
    side->slots[which].header = object;
    side->slots[which].close = close;
    side->slots[which].in_callback =
        draw(&side->episode->random, 3) == 0 && which != RECEIVE_CQ && which != INITIATOR_CQ;
}

void side_make(struct episode *e, struct side *s, NDK_ADAPTER *adapter,
               void (*notified)(struct queue *, void *))
{
    NDK_CQ *receive, *initiator;
    NTSTATUS status;
    struct wait w;

    s->episode = e;
    s->adapter = adapter;
    pthread_mutex_init(&s->initiator.lock, NULL);
    pthread_mutex_init(&s->receive.lock, NULL);
    s->pd = make_pd(adapter);
    make_poll(s, &s->receive_poll, notified);
    make_poll(s, &s->initiator_poll, notified);
    receive = s->receive_poll.queue.cq;
    initiator = s->initiator_poll.queue.cq;
    make_memory(s->pd, 2 * BUFFER, RIGHTS, &s->memory); /* what is read, and what is written */
    wait_init(&w);
    status = s->pd->Dispatch->NdkCreateQp(s->pd, receive, initiator, s, REQUESTS, REQUESTS, 2, 2, 0,
                                          wait_create, &w, &s->qp);
    need(wait_end(&w, status) == STATUS_SUCCESS);
    if (status == STATUS_PENDING)
        s->qp = (NDK_QP *)(void *)w.object;
    side_set_slot(s, QP, s->qp, s->qp->Dispatch->NdkCloseQp);
    side_set_slot(s, RECEIVE_CQ, receive, receive->Dispatch->NdkCloseCq);
    side_set_slot(s, INITIATOR_CQ, initiator, initiator->Dispatch->NdkCloseCq);
    side_set_slot(s, MR, s->memory.mr, s->memory.mr->Dispatch->NdkCloseMr);
    side_set_slot(s, PD, s->pd, s->pd->Dispatch->NdkClosePd);
}

static unsigned count_requests(const struct work *work, bool all)
{
    for (unsigned i = 0; i < work->used; i++) {
        unsigned n = atomic_load(&work->list[i].completions);

        need(n <= (work->list[i].posted ? 1u : 0u));
        need(!all || n == 1 || work->list[i].silent || !work->list[i].posted);
    }
    return work->used;
}

unsigned side_end(struct episode *e, struct side *s)
{
    int order[] = {CONNECTOR, QP, MR, RECEIVE_CQ, INITIATOR_CQ, PD};

    for (int i = 0; i < SIDE_OBJECTS; i++) {
        if (order[i] == RECEIVE_CQ && e->count_all) {
            await(atomic_load(&s->slots[QP].closed));
            side_poll(&s->receive_poll, false);
            side_poll(&s->initiator_poll, false);
        }
        side_end_object(s, order[i]);
    }
    for (int i = 0; i < SIDE_OBJECTS; i++)
        await(!s->slots[i].header || atomic_load(&s->slots[i].closed));
    IoFreeMdl(s->memory.mdl);
    free(s->memory.data);
    return count_requests(&s->initiator, e->count_all) + count_requests(&s->receive, e->count_all);
}
