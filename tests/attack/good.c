// SPDX-License-Identifier: MIT
/*
 * The good connections beside the attack (attack.h): one that is there from the beginning and never
 * rests, and newcomers, one after the other, through the port that is attacked. What they move is
 * verified octet for octet. A newcomer may be refused while the machine is slower than the server's
 * timers; it must be served in the end. Once it is connected nothing may disturb it.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>
#include <pthread.h>

#include "ends.h"

#include "attack.h"

#define LARGEST 4000u

struct good {
    struct bench *bench;
    NDK_ADAPTER *adapter; /* the client's: its timers are not the server's short ones */
    NDK_PD *pd;
    struct end client, server;
    struct memory here,
        there; /* a page for messages, one for what the pair writes, one for newcomers */
    pthread_t thread;
    atomic_bool stop;
    unsigned rounds, newcomers; /* the thread's until it is joined */
    unsigned long long next_newcomer;
};

static void end_on(struct end *end, NDK_ADAPTER *adapter, NDK_PD *pd)
{
    memset(end, 0, sizeof *end);
    KeInitializeEvent(&end->disconnected, NotificationEvent, FALSE);
    make_queue(adapter, 4 * END_DEPTH, &end->receive);
    make_queue(adapter, 4 * END_DEPTH, &end->initiator);
    end_make_qp(end, adapter, pd);
}

static NTSTATUS dials(struct good *g, struct end *end, struct wait *w)
{
    SOCKADDR_INET local = address_of(0), peer = g->bench->listening.address;

    end->connector = make_connector(g->adapter);
    wait_init(w);
    return end->connector->Dispatch->NdkConnect(
        end->connector, end->qp, (PSOCKADDR)&local, sizeof(SOCKADDR_IN), (PSOCKADDR)&peer,
        sizeof(SOCKADDR_IN), 8, 8, NULL, 0, wait_request, w);
}

/* The pair, once. False: the machine was slower than the server's timers. */
static bool pair_connects(struct good *g)
{
    struct listening *listening = &g->bench->listening;
    struct wait connect, accept, complete;
    NTSTATUS connecting, accepting, completing;
    bool arrived, connected;

    end_on(&g->client, g->adapter, g->pd);
    end_on(&g->server, g->bench->adapter, g->bench->foreign_pd);
    connecting = dials(g, &g->client, &connect);
    do
        arrived = wait_event(&listening->event, 10);
    while (!arrived && connecting == STATUS_PENDING && !atomic_load(&connect.calls));
    if (!arrived)
        return false;
    g->server.connector = listening->incoming;
    accepting = end_accepts(&g->server, 8, 8, NULL, 0, &accept);
    connected = wait_end(&connect, connecting) == STATUS_SUCCESS;
    if (connected) {
        completing = end_completes(&g->client, &complete);
        connected = wait_end(&complete, completing) == STATUS_SUCCESS;
    }
    return wait_end(&accept, accepting) == STATUS_SUCCESS && connected;
}

struct good *good_open(struct bench *b)
{
    struct good *g = calloc(1, sizeof *g);
    unsigned long long limit = test_now_ms() + WAIT_S * 1000u;

    g->bench = b;
    g->adapter = open_adapter("nudge_ms=0");
    g->pd = make_pd(g->adapter);
    make_memory(g->pd, 3 * PAGE, NDK_MR_FLAG_ALLOW_LOCAL_WRITE | NDK_MR_FLAG_RDMA_READ_SINK,
                &g->here);
    /* Of another protection domain than what the attackers reach. */
    make_memory(b->foreign_pd, 3 * PAGE, NDK_MR_FLAG_ALLOW_LOCAL_WRITE | BOTH_RIGHTS, &g->there);
    while (!pair_connects(g)) {
        if (test_now_ms() > limit)
            test_fail("the good pair was not served");
        end_close(&g->client);
        end_close(&g->server);
    }
    return g;
}

static void message(struct end *from, struct memory *out, struct end *to, struct memory *in,
                    ULONG length, unsigned seed)
{
    NDK_SGE receive = memory_sge(in, 0, LARGEST), send = memory_sge(out, 0, length);

    fill(out->data, length, seed);
    must(NULL, to->qp->Dispatch->NdkReceive(to->qp, to, &receive, 1), "NdkReceive");
    must(NULL, from->qp->Dispatch->NdkSend(from->qp, from, &send, 1, 0), "NdkSend");
    expect_result(&from->initiator, "the good connection", (uintptr_t)from, STATUS_SUCCESS);
    if (expect_result(&to->receive, "the good connection", (uintptr_t)to, STATUS_SUCCESS)
            .BytesTransferred != length)
        test_fail("the good connection: another length");
    if (!check(in->data, length, seed))
        test_fail("the good connection: other octets");
}

/* Writes to the server's page, reads it back. */
static void there_and_back(struct good *g, struct end *end, size_t page, ULONG length,
                           unsigned seed)
{
    NDK_SGE sge = memory_sge(&g->here, page, length);
    UINT64 at = (UINT64)(uintptr_t)g->there.data + page;

    fill(g->here.data + page, length, seed);
    must(NULL, end->qp->Dispatch->NdkWrite(end->qp, end, &sge, 1, at, g->there.remote, 0),
         "NdkWrite");
    expect_result(&end->initiator, "a good Write", (uintptr_t)end, STATUS_SUCCESS);
    must(NULL, end->qp->Dispatch->NdkRead(end->qp, end, &sge, 1, at, g->there.remote, 0),
         "NdkRead");
    expect_result(&end->initiator, "a good Read", (uintptr_t)end, STATUS_SUCCESS);
    if (!check(g->here.data + page, length, seed) || !check(g->there.data + page, length, seed))
        test_fail("a good Write or Read: other octets");
}

/* False: not served this time. */
static bool newcomer_connects(struct good *g, struct end *end)
{
    struct wait w;

    if (wait_end(&w, dials(g, end, &w)) != STATUS_SUCCESS)
        return false;
    return wait_end(&w, end_completes(end, &w)) == STATUS_SUCCESS;
}

static void newcomer(struct good *g)
{
    unsigned long long limit = test_now_ms() + WAIT_S * 1000u;

    for (;;) {
        struct end end;
        bool connected;

        end_on(&end, g->adapter, g->pd);
        connected = newcomer_connects(g, &end);
        if (connected) {
            there_and_back(g, &end, 2 * (size_t)PAGE, 1 + g->newcomers % LARGEST, g->newcomers);
            if (atomic_load(&end.disconnects))
                test_fail("a newcomer was disconnected");
        }
        end_close(&end);
        if (connected)
            break;
        if (test_now_ms() > limit)
            test_fail("a newcomer was not served");
    }
    g->newcomers++;
    g->next_newcomer = test_now_ms() + 50;
}

static void *good_works(void *context)
{
    struct good *g = context;

    while (!atomic_load(&g->stop)) {
        ULONG length = 1 + g->rounds * 37 % LARGEST;

        message(&g->client, &g->here, &g->server, &g->there, length, g->rounds);
        message(&g->server, &g->there, &g->client, &g->here, length, g->rounds + 1);
        there_and_back(g, &g->client, PAGE, length, g->rounds + 2);
        g->rounds++;
        if (test_now_ms() >= g->next_newcomer)
            newcomer(g);
        test_sleep_ms(1); /* the attackers are to get the machine, too */
    }
    if (atomic_load(&g->client.disconnects) || atomic_load(&g->server.disconnects))
        test_fail("the good connection was disconnected");
    return NULL;
}

void good_start(struct good *g)
{
    assert_int_equal(pthread_create(&g->thread, NULL, good_works, g), 0);
}

void good_stop(struct good *g, unsigned *rounds, unsigned *newcomers)
{
    atomic_store(&g->stop, true);
    pthread_join(g->thread, NULL);
    *rounds += g->rounds;
    *newcomers += g->newcomers;
}

void good_close(struct good *g)
{
    end_close(&g->client);
    end_close(&g->server);
    free_memory(&g->here);
    free_memory(&g->there);
    CLOSE(g->pd, NdkClosePd);
    softndk_close_adapter(g->adapter);
    free(g);
}
