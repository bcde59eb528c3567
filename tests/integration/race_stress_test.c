// SPDX-License-Identifier: MIT
/*
 * Stress: several workers make connections and end them in every way that is legal, a part of the
 * time in each completion mode. Each episode is one connection: two ends with all their objects,
 * requests from two threads and from callbacks, then every object closed in any order, by two
 * threads and inside callbacks. Each request that was posted is completed exactly once, each close
 * is answered once, and closing the adapters returns.
 *
 * SOFTNDK_STRESS_S: seconds, 30 by default. SOFTNDK_TEST_SEED: repeats the choices of a run;
 * tests/stress-seeds.sh runs many. A wait that is not answered within 60 s ends the process by
 * abort(), for a look at its threads.
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

#include "episode.h"

#define WORKERS 3

static atomic_uint episodes, requests, connections;

static void notified(struct queue *queue, void *context)
{
    struct poll *poll = context;
    struct side *side = poll->side;
    struct episode *e = side->episode;
    unsigned random = atomic_fetch_add(&e->callback_random, 0x9e3779b9u);
    bool closing;

    need(queue->status == STATUS_SUCCESS);
    for (unsigned n = side_poll(poll, false); n; n--)
        side_post_receive(side);
    if (draw(&random, 3) == 0)
        side_post_request(side, &random);
    side_poll(poll, true);
    pthread_mutex_lock(&e->lock);
    closing = e->closing && !atomic_load(&e->deciding);
    pthread_mutex_unlock(&e->lock);
    for (int s = 0; closing && s < 2; s++)
        for (int i = 0; i < SIDE_OBJECTS; i++)
            if (e->sides[s].slots[i].in_callback)
                side_end_object(&e->sides[s], i);
}

/* ---- connecting ----------------------------------------------------------------------------- */

static VOID answered(PVOID context, NTSTATUS status)
{
    struct answer *answer = context;

    atomic_store(&answer->status, status);
    need(atomic_fetch_add(&answer->calls, 1) == 0);
}

static VOID disconnected(PVOID context, ULONG reason)
{
    struct side *side = context;

    (void)reason;
    need(atomic_fetch_add(&side->disconnects, 1) == 0);
    if (side->slots[CONNECTOR].in_callback && !atomic_load(&side->episode->deciding))
        side_close_slot(&side->slots[CONNECTOR]);
}

static void accept_it(struct episode *e)
{
    struct side *s = &e->sides[1];
    NDK_CONNECTOR *k = (NDK_CONNECTOR *)(void *)s->slots[CONNECTOR].header;

    for (int i = 0; i < 40; i++)
        side_post_receive(s);
    e->accept.pended = k->Dispatch->NdkAcceptEx(k, s->qp, 4, 4, NULL, 0, disconnected, s, answered,
                                                &e->accept) == STATUS_PENDING;
}

/* The connect event: decides there, leaves it to the driver, or refuses. */
static void incoming(struct listening *listening, NDK_CONNECTOR *connector, void *context)
{
    struct episode *e = context;
    struct slot *slot = &e->sides[1].slots[CONNECTOR];
    bool closing;

    (void)listening;
    pthread_mutex_lock(&e->lock);
    slot->close = connector->Dispatch->NdkCloseConnector;
    slot->header = &connector->Header;
    closing = e->closing;
    atomic_store(&e->deciding, !closing);
    pthread_mutex_unlock(&e->lock);
    if (closing || e->passive == 0)
        side_close_slot(slot);
    else if (e->passive == 1)
        connector->Dispatch->NdkReject(connector, NULL, 0);
    else if (e->passive < 7)
        accept_it(e);
    atomic_store(&e->arrived, true);
    atomic_store(&e->deciding, false);
}

static void connect_it(struct episode *e)
{
    struct side *c = &e->sides[0];
    NDK_CONNECTOR *k = (NDK_CONNECTOR *)(void *)c->slots[CONNECTOR].header;
    SOCKADDR_INET local = local_of(&e->listening);
    unsigned long long limit = test_now_ms() + (draw(&e->random, 8) ? 200 : 0);

    for (int i = 0; i < 40; i++)
        side_post_receive(c);
    e->connect.pended =
        k->Dispatch->NdkConnect(k, c->qp, (PSOCKADDR)&local, e->listening.address_length,
                                (PSOCKADDR)&e->listening.address, e->listening.address_length, 4, 4,
                                NULL, 0, answered, &e->connect) == STATUS_PENDING;
    need(e->connect.pended);
    while (!atomic_load(&e->arrived) && test_now_ms() < limit)
        test_sleep_ms(0);
    if (atomic_load(&e->arrived) && e->passive == 7) {
        atomic_store(&e->deciding, true);
        accept_it(e);
        atomic_store(&e->deciding, false);
    }
    while (!atomic_load(&e->connect.calls) && test_now_ms() < limit)
        test_sleep_ms(0);
    if (!atomic_load(&e->connect.calls) || atomic_load(&e->connect.status) != STATUS_SUCCESS)
        return;
    if (draw(&e->random, 12) == 0) {
        k->Dispatch->NdkReject(k, NULL, 0);
        return;
    }
    e->complete.pended = k->Dispatch->NdkCompleteConnectEx(k, disconnected, c, answered,
                                                           &e->complete) == STATUS_PENDING;
    while (e->complete.pended && !atomic_load(&e->complete.calls) && test_now_ms() < limit)
        test_sleep_ms(0);
    atomic_fetch_add(&connections, atomic_load(&e->complete.calls) &&
                                       atomic_load(&e->complete.status) == STATUS_SUCCESS);
}

/* ---- an episode ----------------------------------------------------------------------------- */

/* Requests of one side, then its share of the closes. */
static void act(struct side *side, unsigned *random)
{
    for (unsigned n = draw(random, 100); n; n--) {
        unsigned what = draw(random, 20);

        if (what < 4)
            side_post_receive(side);
        else if (what < 18)
            side_post_request(side, random);
        else
            side_poll(&side->initiator_poll, false);
        if (draw(random, 10) == 0)
            test_sleep_ms(0);
    }
    if (draw(random, 12) == 0) {
        pthread_mutex_lock(&side->receive.lock); /* not beside the QP's close */
        if (!side->receive.over)
            side->qp->Dispatch->NdkFlush(side->qp);
        pthread_mutex_unlock(&side->receive.lock);
    }
}

static void close_some(struct episode *e, unsigned *random)
{
    for (unsigned i = 0; i < 30; i++) {
        struct side *side = &e->sides[draw(random, 2)];
        unsigned which = draw(random, SIDE_OBJECTS + 1);

        if (which == SIDE_OBJECTS)
            side_close_slot(&e->listener);
        else if (!e->count_all || (which != RECEIVE_CQ && which != INITIATOR_CQ))
            side_end_object(side, (int)which);
    }
}

static void *helper(void *context)
{
    struct episode *e = context;

    act(&e->sides[1], &e->helper_random);
    for (bool closing = false; !closing; test_sleep_ms(0)) {
        pthread_mutex_lock(&e->lock);
        closing = e->closing && !atomic_load(&e->deciding);
        pthread_mutex_unlock(&e->lock);
    }
    close_some(e, &e->helper_random);
    return NULL;
}

static void episode(NDK_ADAPTER *const *adapters, unsigned random)
{
    struct episode *e = calloc(1, sizeof *e);
    NDK_CONNECTOR *k;
    pthread_t thread;

    need(e != NULL);
    e->random = random;
    e->helper_random = draw(&e->random, 1u << 24);
    e->callback_random = draw(&e->random, 1u << 24);
    e->count_all = draw(&e->random, 2);
    e->passive = draw(&e->random, 9);
    pthread_mutex_init(&e->lock, NULL);
    side_make(e, &e->sides[0], adapters[0], notified);
    side_make(e, &e->sides[1], adapters[1], notified);
    e->sides[1].slots[CONNECTOR].in_callback = draw(&e->random, 3) == 0;
    k = make_connector(adapters[0]);
    side_set_slot(&e->sides[0], CONNECTOR, k, k->Dispatch->NdkCloseConnector);
    e->sides[0].slots[CONNECTOR].in_callback = false; /* the driver calls it */
    listen_on(adapters[1], "127.0.0.1", &e->listening);
    e->listening.context = e;
    e->listening.in_callback = incoming;
    e->listener.close = e->listening.listener->Dispatch->NdkCloseListener;
    e->listener.header = &e->listening.listener->Header;
    connect_it(e);
    need(pthread_create(&thread, NULL, helper, e) == 0);
    act(&e->sides[0], &e->random);
    if (draw(&e->random, 3) == 0)
        e->disconnect.pended =
            k->Dispatch->NdkDisconnect(k, answered, &e->disconnect) == STATUS_PENDING;
    pthread_mutex_lock(&e->lock);
    e->closing = true;
    pthread_mutex_unlock(&e->lock);
    await(!atomic_load(&e->deciding));
    close_some(e, &e->random);
    if (draw(&e->random, 2))
        test_sleep_ms(draw(&e->random, 3));
    pthread_join(thread, NULL);
    side_close_slot(&e->listener);
    atomic_fetch_add(&requests, side_end(e, &e->sides[0]) + side_end(e, &e->sides[1]));
    await(atomic_load(&e->listener.closed));
    need(atomic_load(&e->connect.calls) == e->connect.pended);
    need(atomic_load(&e->accept.calls) == e->accept.pended);
    need(atomic_load(&e->complete.calls) == e->complete.pended);
    need(atomic_load(&e->disconnect.calls) == e->disconnect.pended);
    atomic_fetch_add(&episodes, 1);
    free(e);
}

/* ---- rounds --------------------------------------------------------------------------------- */

static unsigned long long stop_at; /* of the round */

/* What both adapters of a pair are opened with, on top of the short times. */
static const char *const extras[] = {"",
                                     ",crc=0,tcp_buffer=65536",
                                     ",fpdu_max=1442",
                                     ",p2p=0,nudge_ms=1",
                                     ",mpa_revision=1",
                                     ",completion=placed",
                                     ",progress=inline",
                                     ",progress=inline,crc=0,tcp_buffer=65536",
                                     ",completion=acked,nudge_ms=1",
                                     ",staging_cap=65544,holdback_ms=20"};

static void *worker(void *context)
{
    unsigned random = *(unsigned *)context;

    while (test_now_ms() < stop_at) {
        NDK_ADAPTER *adapters[2];
        char options[128];

        snprintf(options, sizeof options, "shards=3,linger_ms=40,drain_ms=100,disconnect_ms=300%s",
                 extras[draw(&random, sizeof extras / sizeof extras[0])]);
        adapters[0] = open_adapter(options);
        adapters[1] = open_adapter(options);
        for (unsigned n = 1 + draw(&random, 12); n && test_now_ms() < stop_at; n--)
            episode(adapters, draw(&random, 1u << 24));
        softndk_close_adapter(adapters[0]);
        softndk_close_adapter(adapters[1]);
    }
    return NULL;
}

/* Half of the rounds draw the mode of each call, the others have one of the three. */
static void round_play(unsigned number, unsigned ms, unsigned *random)
{
    static const char *const modes[] = {"never", "always", "early"};
    pthread_t threads[WORKERS];
    unsigned randoms[WORKERS];
    char mode[32];

    if (number % 2)
        snprintf(mode, sizeof mode, "%s", modes[number / 2 % 3]);
    else
        snprintf(mode, sizeof mode, "random:%u", draw(random, 1u << 24));
    printf("%u ms in mode %s\n", ms, mode);
    fflush(stdout);
    assert_int_equal(softndk_set_pend(mode), STATUS_SUCCESS);
    stop_at = test_now_ms() + ms;
    for (int i = 0; i < WORKERS; i++) {
        randoms[i] = draw(random, 1u << 24);
        assert_int_equal(pthread_create(&threads[i], NULL, worker, &randoms[i]), 0);
    }
    for (int i = 0; i < WORKERS; i++)
        pthread_join(threads[i], NULL);
}

static void stress(void **state)
{
    const char *text = getenv("SOFTNDK_STRESS_S");
    unsigned seconds = text ? (unsigned)strtoul(text, NULL, 0) : 30;
    unsigned rounds = seconds >= 6 ? 6 : 2, random = stress_seed, first = draw(&random, 6);

    (void)state;
    for (unsigned i = 0; i < rounds; i++)
        round_play(first + i, seconds * 1000 / rounds, &random);
    printf("%u episodes, %u connections, %u requests\n", atomic_load(&episodes),
           atomic_load(&connections), atomic_load(&requests));
    assert_true(atomic_load(&episodes) > 0 && atomic_load(&connections) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(stress)};
    const char *text = getenv("SOFTNDK_TEST_SEED");

    stress_seed = text ? (unsigned)strtoul(text, NULL, 0) : (unsigned)test_now_ms();
    printf("SOFTNDK_TEST_SEED=%u\n", stress_seed);
    fflush(stdout);
    return cmocka_run_group_tests_name("race_stress", tests, NULL, NULL);
}
