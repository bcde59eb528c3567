// SPDX-License-Identifier: MIT
/*
 * Stress on one shared receive queue: several workers make connections, send and end them in every
 * way, at any moment, in a random completion mode, while another thread posts receives, slowly
 * enough that connections are held back all the time, and changes depth and threshold.
 *
 * Kept: messages of a connection arrive in order and intact; a connection that is not ended gets
 * all of them; each receive that was posted completes exactly once or is still queued at the end.
 *
 * SOFTNDK_STRESS_S: seconds, 4 by default. SOFTNDK_TEST_SEED: repeats the choices of a run.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pthread.h>

#include <cmocka.h>

#include "share.h"

#define WORKERS    4u
#define SLOTS      16u
#define MESSAGE    6000u /* octets at most */
#define PATIENCE_S 40u

static struct share share;
static unsigned seed;
static atomic_bool stop, posting_over;
static atomic_uint episodes, messages, held, posts;
/* Of each slot: 0 free, 1 posted */
static atomic_uint slots[SLOTS];

static void die(const char *what)
{
    fprintf(stderr, "srq_race: %s (SOFTNDK_TEST_SEED=%u)\n", what, seed);
    fflush(NULL);
    abort();
}

#define need(condition)                                                                            \
    do {                                                                                           \
        if (!(condition))                                                                          \
            die(#condition);                                                                       \
    } while (0)

static unsigned draw(unsigned *random, unsigned below)
{
    *random = *random * 1664525u + 1013904223u;
    return (*random >> 8) % below;
}

/* ---- receives ------------------------------------------------------------------------------- */

static void *poster(void *context)
{
    unsigned random = seed ^ 0x5bd1e995u;

    (void)context;
    while (!atomic_load(&posting_over)) {
        unsigned slot = draw(&random, SLOTS), what = draw(&random, 40);
        unsigned none = 0;

        if (atomic_compare_exchange_strong(&slots[slot], &none, 1)) {
            NTSTATUS status = share_post(&share, slot);

            atomic_fetch_add(&posts, 1);
            need(status == STATUS_SUCCESS || status == STATUS_NO_MORE_ENTRIES);
            if (status != STATUS_SUCCESS)
                atomic_store(&slots[slot], 0);
        }
        if (share_waiting(&share))
            atomic_fetch_add(&held, 1);
        if (what < 12)
            test_sleep_ms(0);
        else if (what == 12)
            test_sleep_ms(1);
        else if (what < 15)
            share_modify(&share, draw(&random, SLOTS + 4), draw(&random, 6));
    }
    return NULL;
}

static void again(struct share *of)
{
    (void)of; /* the poster arms again now and then */
}

/* ---- an episode ----------------------------------------------------------------------------- */

struct worker {
    unsigned index, random;
    struct listening listening;
    struct end client, server; /* the client's adapter and PD last longer than an episode */
    struct memory memory;
    unsigned sent, received;
    bool failed; /* an error completion: none succeeds behind it */
};

static ULONG length_of(unsigned number)
{
    return number * 2654435761u % 3 ? number * 40503u % 300 : number * 40503u % MESSAGE;
}

/* Takes what the server end's receive CQ has. */
static void collect(struct worker *w)
{
    NDK_RESULT_EX results[4];
    NDK_CQ *cq = w->server.receive.cq;
    ULONG n;

    while ((n = cq->Dispatch->NdkGetCqResultsEx(cq, results, 4)) != 0)
        for (ULONG i = 0; i < n; i++) {
            unsigned slot = (unsigned)(uintptr_t)results[i].RequestContext - 1;

            need(slot < SLOTS);
            need(results[i].QPContext == &w->server);
            if (results[i].Status == STATUS_SUCCESS) {
                ULONG length = length_of(w->received);

                need(!w->failed);
                need(results[i].BytesTransferred == length);
                need(check(share_slot(&share, slot), length, share_seed(w->index, w->received++)));
                atomic_fetch_add(&messages, 1);
            } else {
                need(results[i].Status == STATUS_CANCELLED);
                need(!w->failed); /* one is in hand at most */
                w->failed = true;
            }
            need(atomic_exchange(&slots[slot], 0) == 1);
        }
}

static void collect_sends(struct worker *w)
{
    NDK_RESULT_EX results[8];
    NDK_CQ *cq = w->client.initiator.cq;

    while (cq->Dispatch->NdkGetCqResultsEx(cq, results, 8))
        ;
}

/* Sends count messages, as far as the queue of the client takes them. False: it is over. */
static bool send_some(struct worker *w, unsigned count)
{
    unsigned long long limit = test_now_ms() + PATIENCE_S * 1000;

    while (count) {
        ULONG length = length_of(w->sent);
        size_t at = (size_t)(w->sent % END_DEPTH) * MESSAGE;
        NDK_SGE sge = memory_sge(&w->memory, at, length);
        NTSTATUS status;

        if (w->sent - w->received >= END_DEPTH / 2) { /* memory of a message is used again */
            collect(w);
            need(test_now_ms() < limit);
            test_sleep_ms(0);
            continue;
        }
        fill(w->memory.data + at, length, share_seed(w->index, w->sent));
        status = w->client.qp->Dispatch->NdkSend(w->client.qp, NULL, &sge, 1, 0);
        if (status == STATUS_CONNECTION_INVALID)
            return false;
        need(status == STATUS_SUCCESS);
        w->sent++;
        count--;
        collect_sends(w);
        collect(w);
    }
    return true;
}

static void client_end(struct worker *w)
{
    struct wait wait;
    NTSTATUS status;
    struct end *c = &w->client;

    KeInitializeEvent(&c->disconnected, NotificationEvent, FALSE);
    make_queue(c->adapter, 4 * END_DEPTH, &c->receive);
    make_queue(c->adapter, 4 * END_DEPTH, &c->initiator);
    wait_init(&wait);
    status = c->pd->Dispatch->NdkCreateQp(c->pd, c->receive.cq, c->initiator.cq, c, END_DEPTH,
                                          END_DEPTH, 4, 4, 64, wait_create, &wait, &c->qp);
    need(wait_end(&wait, status) == STATUS_SUCCESS);
    if (status == STATUS_PENDING)
        c->qp = (NDK_QP *)(void *)wait.object;
}

static void connect_them(struct worker *w)
{
    struct end *c = &w->client, *s = &w->server;
    SOCKADDR_INET local = local_of(&w->listening);
    struct wait connect, complete, accept;
    NTSTATUS connecting, accepting, completing;

    c->connector = make_connector(c->adapter);
    wait_init(&connect);
    connecting = c->connector->Dispatch->NdkConnect(
        c->connector, c->qp, (PSOCKADDR)&local, w->listening.address_length,
        (PSOCKADDR)&w->listening.address, w->listening.address_length, 4, 4, NULL, 0, wait_request,
        &connect);
    s->connector = next_incoming(&w->listening);
    wait_init(&accept);
    accepting = s->connector->Dispatch->NdkAcceptEx(s->connector, s->qp, 4, 4, NULL, 0,
                                                    end_disconnected, s, wait_request, &accept);
    need(wait_end(&connect, connecting) == STATUS_SUCCESS);
    wait_init(&complete);
    completing = c->connector->Dispatch->NdkCompleteConnectEx(c->connector, end_disconnected, c,
                                                              wait_request, &complete);
    need(wait_end(&complete, completing) == STATUS_SUCCESS);
    need(wait_end(&accept, accepting) == STATUS_SUCCESS);
}

static void close_connector(struct end *end)
{
    if (end->connector)
        CLOSE(end->connector, NdkCloseConnector);
    end->connector = NULL;
}

static void end_them(struct worker *w)
{
    switch (draw(&w->random, 6)) {
    case 0:
        close_connector(&w->client);
        break;
    case 1:
        w->server.qp->Dispatch->NdkFlush(w->server.qp);
        break;
    case 2:
        w->client.qp->Dispatch->NdkFlush(w->client.qp);
        close_connector(&w->client);
        break;
    default:
        break;
    }
    if (draw(&w->random, 2))
        collect(w);
    close_connector(&w->server);
    close_connector(&w->client);
}

static void episode(struct worker *w)
{
    unsigned long long limit = test_now_ms() + PATIENCE_S * 1000;
    bool to_the_end = draw(&w->random, 2) == 0;
    struct end *c = &w->client;

    w->sent = w->received = 0;
    w->failed = false;
    share_server_end(&share, &w->server);
    client_end(w);
    connect_them(w);
    for (unsigned parts = draw(&w->random, 6) + 1; parts; parts--) {
        need(send_some(w, draw(&w->random, 24)));
        for (volatile unsigned spin = draw(&w->random, 20000); spin; spin--)
            ;
    }
    while (to_the_end && w->received < w->sent) {
        need(!w->failed);
        need(test_now_ms() < limit); /* a message that is stuck */
        collect(w);
        collect_sends(w);
        test_sleep_ms(0);
    }
    end_them(w);
    CLOSE(w->server.qp, NdkCloseQp);
    collect(w);
    need(w->received <= w->sent && (!to_the_end || (w->received == w->sent && !w->failed)));
    CLOSE(w->server.receive.cq, NdkCloseCq);
    CLOSE(w->server.initiator.cq, NdkCloseCq);
    CLOSE(c->qp, NdkCloseQp);
    CLOSE(c->receive.cq, NdkCloseCq);
    CLOSE(c->initiator.cq, NdkCloseCq);
    atomic_fetch_add(&episodes, 1);
}

static void *worker_run(void *context)
{
    struct worker *w = context;

    while (!atomic_load(&stop))
        episode(w);
    return NULL;
}

/* ---- the run -------------------------------------------------------------------------------- */

static void worker_open(struct worker *w, unsigned index)
{
    memset(w, 0, sizeof *w);
    w->index = index;
    w->random = seed + index * 77777u;
    listen_on(share.adapter, "127.0.0.1", &w->listening);
    w->client.adapter = open_adapter(share.options);
    w->client.pd = make_pd(w->client.adapter);
    make_memory(w->client.pd, (size_t)END_DEPTH * MESSAGE, ALL_RIGHTS, &w->memory);
}

static void worker_close(struct worker *w)
{
    CLOSE(w->listening.listener, NdkCloseListener);
    free_memory(&w->memory);
    CLOSE(w->client.pd, NdkClosePd);
    softndk_close_adapter(w->client.adapter);
}

static void stress(void **state)
{
    static struct worker workers[WORKERS];
    const char *text = getenv("SOFTNDK_STRESS_S");
    unsigned seconds = text ? (unsigned)atoi(text) : 4, left = 0;
    pthread_t threads[WORKERS], posts_thread;
    char mode[32];

    (void)state;
    text = getenv("SOFTNDK_TEST_SEED");
    seed = text ? (unsigned)strtoul(text, NULL, 0) : (unsigned)test_now_ms();
    snprintf(mode, sizeof mode, "random:%u", seed);
    print_message("seed %u\n", seed);
    assert_int_equal(softndk_set_pend(mode), STATUS_SUCCESS);
    share_open(&share, "holdback_ms=600000,shards=3,linger_ms=200", SLOTS, SLOTS, 3);
    share.in_callback = again;
    for (unsigned i = 0; i < WORKERS; i++)
        worker_open(&workers[i], i);
    assert_int_equal(pthread_create(&posts_thread, NULL, poster, NULL), 0);
    for (unsigned i = 0; i < WORKERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, worker_run, &workers[i]), 0);
    test_sleep_ms(seconds * 1000);
    atomic_store(&stop, true);
    for (unsigned i = 0; i < WORKERS; i++)
        pthread_join(threads[i], NULL);
    atomic_store(&posting_over, true);
    pthread_join(posts_thread, NULL);
    for (unsigned i = 0; i < SLOTS; i++)
        left += atomic_load(&slots[i]);
    assert_int_equal(left, share_queued(&share));
    assert_int_equal(share_waiting(&share), 0);
    print_message("%u episodes, %u messages, %u posts, held in %u, %u notifications\n",
                  atomic_load(&episodes), atomic_load(&messages), atomic_load(&posts),
                  atomic_load(&held), atomic_load(&share.notified));
    assert_true(atomic_load(&episodes) > 0);
    for (unsigned i = 0; i < WORKERS; i++)
        worker_close(&workers[i]);
    share_close(&share);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(stress)};

    return cmocka_run_group_tests_name("srq_race", tests, NULL, NULL);
}
