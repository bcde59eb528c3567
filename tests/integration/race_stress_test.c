// SPDX-License-Identifier: MIT
/*
 * Stress: several workers make connections and end them in every way that is legal, in a random
 * completion mode. Each episode is one connection: two ends with all their objects, requests from
 * two threads and from callbacks, then every object closed in any order, by two threads and inside
 * callbacks. Each request that was posted is completed exactly once, each close is answered once,
 * and closing the adapters returns.
 *
 * SOFTNDK_STRESS_S: seconds, 10 by default. SOFTNDK_TEST_SEED: repeats the choices of a run.
 * A wait that is not answered within 60 s ends the process by abort(), for a look at its threads.
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

#include "ends.h"

#define WORKERS    3
#define PATIENCE_S 60u
#define REQUESTS   160 /* of one queue in one episode */
#define BUFFER     65536u
#define RIGHTS                                                                                     \
    (NDK_MR_FLAG_ALLOW_LOCAL_WRITE | NDK_MR_FLAG_ALLOW_REMOTE_READ |                               \
     NDK_MR_FLAG_ALLOW_REMOTE_WRITE | NDK_MR_FLAG_RDMA_READ_SINK)

static unsigned seed;
static atomic_uint episodes, requests, connections;

static void die(const char *what)
{
    fprintf(stderr, "stress: %s (SOFTNDK_TEST_SEED=%u)\n", what, seed);
    fflush(NULL);
    abort();
}

#define need(condition)                                                                            \
    do {                                                                                           \
        if (!(condition))                                                                          \
            die(#condition);                                                                       \
    } while (0)

#define await(condition)                                                                           \
    do {                                                                                           \
        unsigned long long await_end_ = test_now_ms() + PATIENCE_S * 1000u;                        \
        while (!(condition)) {                                                                     \
            if (test_now_ms() > await_end_)                                                        \
                die("no end: " #condition);                                                        \
            test_sleep_ms(1);                                                                      \
        }                                                                                          \
    } while (0)

static unsigned draw(unsigned *state, unsigned below)
{
    *state = *state * 1664525u + 1013904223u;
    return (*state >> 8) % below;
}

/* ---- what an episode consists of ------------------------------------------------------------ */

struct answer { /* of a call that may pend */
    bool pended;
    atomic_uint calls;
    _Atomic NTSTATUS status;
};

struct slot { /* an object that is closed once, by whoever comes first */
    NDK_FN_CLOSE_OBJECT close;
    _Atomic(NDK_OBJECT_HEADER *) header;
    atomic_bool claimed, closed;
    bool in_callback; /* a notification may claim it */
};

enum { CONNECTOR, QP, RECEIVE_CQ, INITIATOR_CQ, MR, PD, SIDE_OBJECTS };

struct request {
    atomic_uint completions;
    bool posted, silent;
};

struct work { /* one queue of a QP: posts are serialized by the lock */
    pthread_mutex_t lock;
    bool over; /* the QP is closed */
    unsigned used;
    struct request list[REQUESTS];
};

struct poll { /* one CQ: polls and arms are serialized by the lock */
    struct side *side;
    struct queue queue;
    pthread_mutex_t lock;
    bool over;
};

struct side {
    struct episode *episode;
    NDK_ADAPTER *adapter;
    NDK_PD *pd;
    NDK_QP *qp;
    struct memory memory;
    struct slot slots[SIDE_OBJECTS];
    struct work initiator, receive;
    struct poll receive_poll, initiator_poll;
    atomic_uint disconnects;
};

struct episode {
    struct side sides[2]; /* client, server */
    struct slot listener;
    struct listening listening;
    pthread_mutex_t lock;
    bool closing;
    atomic_bool deciding, arrived; /* the incoming connector is being decided about; is there */
    struct answer connect, accept, complete, disconnect;
    unsigned passive; /* what the connect event does */
    bool count_all;   /* the CQs are closed last: every request can be counted */
    unsigned random, helper_random;
    atomic_uint callback_random;
};

static VOID slot_closed(PVOID context)
{
    struct slot *slot = context;

    need(!atomic_exchange(&slot->closed, true));
}

static void slot_close(struct slot *slot)
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

static void end_object(struct side *side, int which)
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
    slot_close(&side->slots[which]);
}

/* ---- requests ------------------------------------------------------------------------------- */

static void post_receive(struct side *side)
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

static void post_request(struct side *side, unsigned *random)
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

/* Polls all there is; arms if asked to. */
static unsigned poll_all(struct poll *poll, bool arm)
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

static void notified(struct queue *queue, void *context)
{
    struct poll *poll = context;
    struct side *side = poll->side;
    struct episode *e = side->episode;
    unsigned random = atomic_fetch_add(&e->callback_random, 0x9e3779b9u);
    bool closing;

    need(queue->status == STATUS_SUCCESS);
    for (unsigned n = poll_all(poll, false); n; n--)
        post_receive(side);
    if (draw(&random, 3) == 0)
        post_request(side, &random);
    poll_all(poll, true);
    pthread_mutex_lock(&e->lock);
    closing = e->closing && !atomic_load(&e->deciding);
    pthread_mutex_unlock(&e->lock);
    for (int s = 0; closing && s < 2; s++)
        for (int i = 0; i < SIDE_OBJECTS; i++)
            if (e->sides[s].slots[i].in_callback)
                end_object(&e->sides[s], i);
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
        slot_close(&side->slots[CONNECTOR]);
}

static void accept_it(struct episode *e)
{
    struct side *s = &e->sides[1];
    NDK_CONNECTOR *k = (NDK_CONNECTOR *)(void *)s->slots[CONNECTOR].header;

    for (int i = 0; i < 40; i++)
        post_receive(s);
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
        slot_close(slot);
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
        post_receive(c);
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

static void make_poll(struct side *side, struct poll *poll)
{
    poll->side = side;
    pthread_mutex_init(&poll->lock, NULL);
    make_queue(side->adapter, 2 * REQUESTS, &poll->queue);
    poll->queue.context = poll;
    poll->queue.in_callback = notified;
    poll_all(poll, true);
}

static void set_slot(struct side *side, int which, void *object, NDK_FN_CLOSE_OBJECT close)
{
    side->slots[which].header = object;
    side->slots[which].close = close;
    side->slots[which].in_callback =
        draw(&side->episode->random, 3) == 0 && which != RECEIVE_CQ && which != INITIATOR_CQ;
}

static void make_side(struct episode *e, struct side *s, NDK_ADAPTER *adapter)
{
    NDK_CQ *receive, *initiator;
    NTSTATUS status;
    struct wait w;

    s->episode = e;
    s->adapter = adapter;
    pthread_mutex_init(&s->initiator.lock, NULL);
    pthread_mutex_init(&s->receive.lock, NULL);
    s->pd = make_pd(adapter);
    make_poll(s, &s->receive_poll);
    make_poll(s, &s->initiator_poll);
    receive = s->receive_poll.queue.cq;
    initiator = s->initiator_poll.queue.cq;
    make_memory(s->pd, 2 * BUFFER, RIGHTS, &s->memory); /* what is read, and what is written */
    wait_init(&w);
    status = s->pd->Dispatch->NdkCreateQp(s->pd, receive, initiator, s, REQUESTS, REQUESTS, 2, 2, 0,
                                          wait_create, &w, &s->qp);
    need(wait_end(&w, status) == STATUS_SUCCESS);
    if (status == STATUS_PENDING)
        s->qp = (NDK_QP *)(void *)w.object;
    set_slot(s, QP, s->qp, s->qp->Dispatch->NdkCloseQp);
    set_slot(s, RECEIVE_CQ, receive, receive->Dispatch->NdkCloseCq);
    set_slot(s, INITIATOR_CQ, initiator, initiator->Dispatch->NdkCloseCq);
    set_slot(s, MR, s->memory.mr, s->memory.mr->Dispatch->NdkCloseMr);
    set_slot(s, PD, s->pd, s->pd->Dispatch->NdkClosePd);
}

/* Requests of one side, then its share of the closes. */
static void act(struct side *side, unsigned *random)
{
    for (unsigned n = draw(random, 100); n; n--) {
        unsigned what = draw(random, 20);

        if (what < 4)
            post_receive(side);
        else if (what < 18)
            post_request(side, random);
        else
            poll_all(&side->initiator_poll, false);
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
            slot_close(&e->listener);
        else if (!e->count_all || (which != RECEIVE_CQ && which != INITIATOR_CQ))
            end_object(side, (int)which);
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

static void count_requests(const struct work *work, bool all)
{
    for (unsigned i = 0; i < work->used; i++) {
        unsigned n = atomic_load(&work->list[i].completions);

        need(n <= (work->list[i].posted ? 1u : 0u));
        need(!all || n == 1 || work->list[i].silent || !work->list[i].posted);
    }
    atomic_fetch_add(&requests, work->used);
}

static void end_side(struct episode *e, struct side *s)
{
    int order[] = {CONNECTOR, QP, MR, RECEIVE_CQ, INITIATOR_CQ, PD};

    for (int i = 0; i < SIDE_OBJECTS; i++) {
        if (order[i] == RECEIVE_CQ && e->count_all) {
            await(atomic_load(&s->slots[QP].closed));
            poll_all(&s->receive_poll, false);
            poll_all(&s->initiator_poll, false);
        }
        end_object(s, order[i]);
    }
    for (int i = 0; i < SIDE_OBJECTS; i++)
        await(!s->slots[i].header || atomic_load(&s->slots[i].closed));
    count_requests(&s->initiator, e->count_all);
    count_requests(&s->receive, e->count_all);
    IoFreeMdl(s->memory.mdl);
    free(s->memory.data);
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
    make_side(e, &e->sides[0], adapters[0]);
    make_side(e, &e->sides[1], adapters[1]);
    e->sides[1].slots[CONNECTOR].in_callback = draw(&e->random, 3) == 0;
    k = make_connector(adapters[0]);
    set_slot(&e->sides[0], CONNECTOR, k, k->Dispatch->NdkCloseConnector);
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
    slot_close(&e->listener);
    end_side(e, &e->sides[0]);
    end_side(e, &e->sides[1]);
    await(atomic_load(&e->listener.closed));
    need(atomic_load(&e->connect.calls) == e->connect.pended);
    need(atomic_load(&e->accept.calls) == e->accept.pended);
    need(atomic_load(&e->complete.calls) == e->complete.pended);
    need(atomic_load(&e->disconnect.calls) == e->disconnect.pended);
    atomic_fetch_add(&episodes, 1);
    free(e);
}

static unsigned long long stop_at;

static void *worker(void *number)
{
    static const char *const options[] = {
        "shards=3,linger_ms=40,drain_ms=100,disconnect_ms=300",
        "shards=3,linger_ms=40,drain_ms=100,disconnect_ms=300,crc=0,tcp_buffer=65536",
        "shards=3,linger_ms=40,drain_ms=100,disconnect_ms=300,fpdu_max=1442"};
    unsigned random = seed + 7919u * (unsigned)(uintptr_t)number;

    while (test_now_ms() < stop_at) {
        const char *text = options[draw(&random, 3)];
        NDK_ADAPTER *adapters[2] = {open_adapter(text), open_adapter(text)};

        for (unsigned n = 1 + draw(&random, 12); n && test_now_ms() < stop_at; n--)
            episode(adapters, draw(&random, 1u << 24));
        softndk_close_adapter(adapters[0]);
        softndk_close_adapter(adapters[1]);
    }
    return NULL;
}

static void stress(void **state)
{
    const char *text = getenv("SOFTNDK_STRESS_S");
    pthread_t threads[WORKERS];
    char mode[32];

    (void)state;
    snprintf(mode, sizeof mode, "random:%u", seed);
    assert_int_equal(softndk_set_pend(mode), STATUS_SUCCESS);
    stop_at = test_now_ms() + (text ? strtoul(text, NULL, 0) : 10) * 1000u;
    for (uintptr_t i = 0; i < WORKERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, worker, (void *)i), 0);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(threads[i], NULL);
    printf("%u episodes, %u connections, %u requests\n", atomic_load(&episodes),
           atomic_load(&connections), atomic_load(&requests));
    assert_true(atomic_load(&episodes) > 0 && atomic_load(&connections) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(stress)};
    const char *text = getenv("SOFTNDK_TEST_SEED");

    seed = text ? (unsigned)strtoul(text, NULL, 0) : (unsigned)test_now_ms();
    printf("SOFTNDK_TEST_SEED=%u\n", seed);
    fflush(stdout);
    return cmocka_run_group_tests_name("race_stress", tests, NULL, NULL);
}
