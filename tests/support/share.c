// SPDX-License-Identifier: MIT
/* See share.h. */
#include "share.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "provider/srq.h"

static VOID share_notified(PVOID context, NTSTATUS status)
{
    struct share *share = context;

    if (status != STATUS_SUCCESS)
        test_fail("SRQ notification with %s", softndk_status_name(status));
    if (share->in_callback)
        share->in_callback(share);
    atomic_fetch_add(&share->notified, 1); /* behind the callback, as in ends.c */
    KeSetEvent(&share->event, 0, FALSE);
}

void share_open(struct share *share, const char *options, unsigned slots, ULONG depth,
                ULONG threshold)
{
    struct wait w;
    NTSTATUS status;

    memset(share, 0, sizeof *share);
    KeInitializeEvent(&share->event, SynchronizationEvent, FALSE);
    share->options = options;
    share->slots = slots;
    share->adapter = open_adapter(options);
    share->pd = make_pd(share->adapter);
    make_memory(share->pd, (size_t)slots * SHARE_SLOT, ALL_RIGHTS, &share->memory);
    wait_init(&w);
    status = share->pd->Dispatch->NdkCreateSrq(share->pd, depth, 4, threshold, share_notified,
                                               share, NULL, wait_create, &w, &share->srq);
    expect_call(wait_end(&w, status), STATUS_SUCCESS, "NdkCreateSrq", &share->pd->Header);
    if (status == STATUS_PENDING)
        share->srq = (NDK_SRQ *)(void *)w.object;
    listen_on(share->adapter, "127.0.0.1", &share->listening);
}

void share_close(struct share *share)
{
    for (unsigned i = 0; i < SHARE_MAX; i++)
        share_disconnect(share, i);
    CLOSE(share->listening.listener, NdkCloseListener);
    if (share->srq)
        CLOSE(share->srq, NdkCloseSrq);
    free_memory(&share->memory);
    CLOSE(share->pd, NdkClosePd);
    softndk_close_adapter(share->adapter);
}

void share_server_end(struct share *share, struct end *out)
{
    struct wait w;
    NTSTATUS status;

    memset(out, 0, sizeof *out);
    KeInitializeEvent(&out->disconnected, NotificationEvent, FALSE);
    make_queue(share->adapter, 1024, &out->receive);
    make_queue(share->adapter, 4 * END_DEPTH, &out->initiator);
    wait_init(&w);
    status = share->pd->Dispatch->NdkCreateQpWithSrq(share->pd, out->receive.cq, out->initiator.cq,
                                                     share->srq, out, END_DEPTH, 4, 64, wait_create,
                                                     &w, &out->qp);
    expect_call(wait_end(&w, status), STATUS_SUCCESS, "NdkCreateQpWithSrq", &share->pd->Header);
    if (status == STATUS_PENDING)
        out->qp = (NDK_QP *)(void *)w.object;
}

void share_server_end_close(struct end *end)
{
    end_close(end); /* adapter and pd are not its own */
}

void share_connect(struct share *share, unsigned i)
{
    struct share_pair *pair = &share->pairs[i];
    struct end *c = &pair->client, *s = &pair->server;
    SOCKADDR_INET local = local_of(&share->listening);
    struct wait connect, complete, accept;
    NTSTATUS connecting, accepting, completing;

    memset(pair, 0, sizeof *pair);
    share_server_end(share, s);
    end_open(c, share->options);
    make_memory(c->pd, SHARE_SLOT, ALL_RIGHTS, &pair->memory);
    c->connector = make_connector(c->adapter);
    wait_init(&connect);
    connecting = c->connector->Dispatch->NdkConnect(
        c->connector, c->qp, (PSOCKADDR)&local, share->listening.address_length,
        (PSOCKADDR)&share->listening.address, share->listening.address_length, 8, 8, NULL, 0,
        wait_request, &connect);
    s->connector = next_incoming(&share->listening);
    wait_init(&accept);
    accepting = s->connector->Dispatch->NdkAcceptEx(s->connector, s->qp, 8, 8, NULL, 0,
                                                    end_disconnected, s, wait_request, &accept);
    expect_call(wait_end(&connect, connecting), STATUS_SUCCESS, "NdkConnect",
                &c->connector->Header);
    wait_init(&complete);
    completing = c->connector->Dispatch->NdkCompleteConnectEx(c->connector, end_disconnected, c,
                                                              wait_request, &complete);
    expect_call(wait_end(&complete, completing), STATUS_SUCCESS, "NdkCompleteConnectEx",
                &c->connector->Header);
    expect_call(wait_end(&accept, accepting), STATUS_SUCCESS, "NdkAcceptEx", &s->connector->Header);
    pair->open = true;
}

void share_disconnect(struct share *share, unsigned i)
{
    struct share_pair *pair = &share->pairs[i];

    if (!pair->open)
        return;
    pair->open = false;
    if (pair->client.connector) {
        CLOSE(pair->client.connector, NdkCloseConnector);
        pair->client.connector = NULL;
    }
    free_memory(&pair->memory);
    end_close(&pair->client);
    share_server_end_close(&pair->server);
}

unsigned share_waiting(struct share *share)
{
    struct srq *srq = srq_from(share->srq);
    unsigned count = 0;

    os_mutex_lock(&srq->lock);
    for (const struct srq_waiter *waiter = srq->first; waiter; waiter = waiter->next)
        count++;
    os_mutex_unlock(&srq->lock);
    return count;
}

unsigned share_queued(struct share *share)
{
    struct srq *srq = srq_from(share->srq);
    unsigned count;

    os_mutex_lock(&srq->lock);
    count = conn_queue_outstanding(&srq->queue);
    os_mutex_unlock(&srq->lock);
    return count;
}

uint8_t *share_slot(struct share *share, unsigned slot)
{
    return share->memory.data + (size_t)slot * SHARE_SLOT;
}

unsigned share_seed(unsigned i, unsigned number)
{
    return i * 100003u + number;
}

NTSTATUS share_post(struct share *share, unsigned slot)
{
    NDK_SGE sge = memory_sge(&share->memory, (size_t)slot * SHARE_SLOT, SHARE_SLOT);

    return share->srq->Dispatch->NdkSrqReceive(share->srq, (PVOID)(uintptr_t)(slot + 1), &sge, 1);
}

void share_posts(struct share *share, unsigned from, unsigned count)
{
    for (unsigned slot = from; slot < from + count; slot++)
        expect_call(share_post(share, slot), STATUS_SUCCESS, "NdkSrqReceive", &share->srq->Header);
}

NTSTATUS share_modify(struct share *share, ULONG depth, ULONG threshold)
{
    struct wait w;

    wait_init(&w);
    return wait_end(
        &w, share->srq->Dispatch->NdkModifySrq(share->srq, depth, threshold, wait_request, &w));
}

void share_send(struct share *share, unsigned i, ULONG length)
{
    struct share_pair *pair = &share->pairs[i];

    fill(pair->memory.data, length, share_seed(i, pair->sent++));
    expect_call(post_send(&pair->client, &pair->memory, length, 0, pair), STATUS_SUCCESS, "NdkSend",
                &pair->client.qp->Header);
    expect_completion(&pair->client.initiator, "send", pair, NdkOperationTypeSend, STATUS_SUCCESS);
}

unsigned share_receive(struct share *share, unsigned i, ULONG length)
{
    struct share_pair *pair = &share->pairs[i];
    NDK_RESULT_EX result = queue_next(&pair->server.receive);
    unsigned slot = (unsigned)(uintptr_t)result.RequestContext - 1;

    assert_int_equal(result.Status, STATUS_SUCCESS);
    assert_int_equal(result.Type, NdkOperationTypeReceive);
    assert_int_equal(result.BytesTransferred, length);
    assert_ptr_equal(result.QPContext, &pair->server);
    assert_in_range(slot, 0, share->slots - 1);
    assert_true(check(share_slot(share, slot), length, share_seed(i, pair->received++)));
    return slot;
}
