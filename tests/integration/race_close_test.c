// SPDX-License-Identifier: MIT
/*
 * Interleavings of closing: the connector closed inside a CQ callback while another thread
 * transmits for it; posts in a callback to a connection of another shard whose socket is full,
 * closed at that moment; the adapter closed while completions of its last objects run. Every post
 * that succeeded is completed exactly once.
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

#define CHUNK 65536u

/* ---- a client that writes, and counts ---------------------------------------------------------
 */

struct writer {
    struct pair pair;
    struct memory from, to;
    atomic_uint posted, completed, faults;
    atomic_bool stop, closing, closed;
    unsigned close_after; /* completions */
    atomic_bool blocked, release;
};

static VOID writer_closed(PVOID context)
{
    struct writer *writer = context;

    atomic_store(&writer->closed, true);
}

/* One post; posts of one queue are serialized by whoever calls. False: the connection is over. */
static bool write_once(struct writer *writer, ULONG length)
{
    NDK_QP *qp = writer->pair.client.qp;
    NDK_SGE sge = memory_sge(&writer->from, 0, length);
    NTSTATUS status;

    /* Never more than the CQ takes. After the close the posts go on until one is refused. */
    if (atomic_load(&writer->posted) - atomic_load(&writer->completed) > 3 * END_DEPTH) {
        if (atomic_load(&writer->closed))
            return false;
        test_sleep_ms(0);
        return true;
    }
    atomic_fetch_add(&writer->posted, 1);
    status = qp->Dispatch->NdkWrite(qp, writer, &sge, 1, (UINT64)(uintptr_t)writer->to.data,
                                    writer->to.remote, 0);
    if (status == STATUS_SUCCESS)
        return true;
    atomic_fetch_sub(&writer->posted, 1);
    if (status == STATUS_NO_MORE_ENTRIES)
        return true;
    if (status != STATUS_CONNECTION_INVALID)
        atomic_fetch_add(&writer->faults, 1);
    return false;
}

static unsigned drain(struct writer *writer)
{
    NDK_CQ *cq = writer->pair.client.initiator.cq;
    NDK_RESULT_EX results[16];
    unsigned all = 0, n;

    while ((n = cq->Dispatch->NdkGetCqResultsEx(cq, results, 16)) != 0) {
        for (unsigned i = 0; i < n; i++)
            if (results[i].RequestContext != writer ||
                (results[i].Status != STATUS_SUCCESS && results[i].Status != STATUS_CANCELLED))
                atomic_fetch_add(&writer->faults, 1);
        all += n;
    }
    atomic_fetch_add(&writer->completed, all);
    return all;
}

static void close_now(struct writer *writer)
{
    NDK_CONNECTOR *k = writer->pair.client.connector;
    NTSTATUS status;

    if (atomic_exchange(&writer->closing, true))
        return;
    status = k->Dispatch->NdkCloseConnector(&k->Header, writer_closed, writer);
    if (status == STATUS_SUCCESS)
        atomic_store(&writer->closed, true);
    else if (status != STATUS_PENDING)
        atomic_fetch_add(&writer->faults, 1);
}

static void writer_open(struct writer *writer, const char *options, bool shift)
{
    struct queue dummy;

    memset(writer, 0, sizeof *writer);
    end_open(&writer->pair.server, options);
    /* CQs are dealt to the shards in turn: one more puts the two ends on different ones. */
    if (shift)
        make_queue(writer->pair.server.adapter, 1, &dummy);
    end_open(&writer->pair.client, options);
    if (shift)
        CLOSE(dummy.cq, NdkCloseCq);
    listen_on(writer->pair.server.adapter, "127.0.0.1", &writer->pair.listening);
    pair_connect(&writer->pair);
    make_memory(writer->pair.client.pd, CHUNK, NDK_MR_FLAG_ALLOW_LOCAL_WRITE, &writer->from);
    make_memory(writer->pair.server.pd, CHUNK, NDK_MR_FLAG_ALLOW_REMOTE_WRITE, &writer->to);
}

/* After the last post has returned. */
static void writer_end(struct writer *writer)
{
    wait_until(atomic_load(&writer->closed), "the connector's close");
    writer->pair.client.connector = NULL;
    CLOSE(writer->pair.client.qp, NdkCloseQp);
    writer->pair.client.qp = NULL;
    /* The callback has stopped arming, so the CQ is ours to poll. */
    wait_until((drain(writer), atomic_load(&writer->completed) == atomic_load(&writer->posted)),
               "one completion for each post");
    test_sleep_ms(2);
    assert_int_equal(drain(writer), 0);
    assert_int_equal(atomic_load(&writer->faults), 0);
    free_memory(&writer->from);
    free_memory(&writer->to);
    pair_close(&writer->pair);
}

/* ---- closed inside a CQ callback, another thread transmits ------------------------------------
 */

static void close_in_callback(struct queue *queue, void *context)
{
    struct writer *writer = context;

    drain(writer);
    if (atomic_load(&writer->completed) >= writer->close_after) {
        close_now(writer);
        return; /* not armed again: the callback does not poll any more */
    }
    queue->cq->Dispatch->NdkArmCq(queue->cq, NDK_CQ_NOTIFY_ANY);
}

static void *write_on(void *context)
{
    struct writer *writer = context;

    while (write_once(writer, 1 + (ULONG)rand() % CHUNK))
        ;
    return NULL;
}

static void closed_while_another_thread_transmits(void **state)
{
    static const char *const options[] = {"shards=2", "shards=2,crc=0",
                                          "shards=2,tcp_buffer=131072"};

    (void)state;
    for (int turn = 0; turn < 60; turn++) {
        struct writer *writer = malloc(sizeof *writer);
        pthread_t thread;

        assert_non_null(writer);
        writer_open(writer, options[turn % 3], false);
        writer->close_after = 1 + (unsigned)rand() % 40;
        writer->pair.client.initiator.context = writer;
        writer->pair.client.initiator.in_callback = close_in_callback;
        writer->pair.client.initiator.cq->Dispatch->NdkArmCq(writer->pair.client.initiator.cq,
                                                             NDK_CQ_NOTIFY_ANY);
        assert_int_equal(pthread_create(&thread, NULL, write_on, writer), 0);
        pthread_join(thread, NULL);
        writer_end(writer);
        free(writer);
    }
}

/* ---- posts in a callback, another shard's connection, full socket ---------------------------- */

/* The server's shard stands still in here: nobody reads the server's socket. */
static void stand_still(struct queue *queue, void *context)
{
    struct writer *writer = context;
    unsigned long long limit = test_now_ms() + WAIT_S * 1000u;

    (void)queue;
    atomic_store(&writer->blocked, true);
    while (!atomic_load(&writer->release) && test_now_ms() < limit)
        test_sleep_ms(1);
}

/* The client's initiator callback fills the queue again, until the connector is closed. */
static void post_in_callback(struct queue *queue, void *context)
{
    struct writer *writer = context;

    drain(writer);
    for (int i = 0; i < 20; i++)
        if (!write_once(writer, CHUNK)) {
            atomic_store(&writer->stop, true); /* from here on the CQ is the test's to poll */
            return;
        }
    queue->cq->Dispatch->NdkArmCq(queue->cq, NDK_CQ_NOTIFY_ANY);
}

static void a_full_socket_closed_while_a_callback_posts(void **state)
{
    (void)state;
    for (int turn = 0; turn < 12; turn++) {
        struct writer *writer = malloc(sizeof *writer);
        struct queue *initiator, *receive;
        unsigned before = 0;

        assert_non_null(writer);
        writer_open(writer, "shards=3,tcp_buffer=131072,linger_ms=60", true);
        initiator = &writer->pair.client.initiator;
        receive = &writer->pair.server.receive;
        receive->context = initiator->context = writer;
        receive->in_callback = stand_still;
        assert_int_equal(
            writer->pair.server.qp->Dispatch->NdkReceive(writer->pair.server.qp, NULL, NULL, 0),
            STATUS_SUCCESS);
        receive->cq->Dispatch->NdkArmCq(receive->cq, NDK_CQ_NOTIFY_ANY);
        atomic_fetch_add(&writer->posted, 1);
        assert_int_equal(
            writer->pair.client.qp->Dispatch->NdkSend(writer->pair.client.qp, writer, NULL, 0, 0),
            STATUS_SUCCESS);
        wait_until(atomic_load(&writer->blocked), "the server's callback");
        initiator->in_callback = post_in_callback;
        initiator->cq->Dispatch->NdkArmCq(initiator->cq, NDK_CQ_NOTIFY_ANY);
        /* Full: nothing completes for a while although requests are queued. */
        for (int still = 0; turn % 3 == 0 && still < 5;) {
            unsigned now = atomic_load(&writer->completed);

            still = now == before && atomic_load(&writer->posted) > now ? still + 1 : 0;
            before = now;
            test_sleep_ms(2);
        }
        if (turn % 3 == 1)
            test_sleep_ms((unsigned)rand() % 5);
        close_now(writer);
        if (turn % 2 == 0) {
            wait_until(atomic_load(&writer->closed), "a close that lingers in vain");
            atomic_store(&writer->release, true);
        } else {
            atomic_store(&writer->release, true);
            wait_until(atomic_load(&writer->closed), "a close that lingers");
        }
        /* Flushed requests are completions too: the callback drains them, posts in vain, stops. */
        wait_until(atomic_load(&writer->stop), "a post that is refused");
        receive->in_callback = NULL;
        writer_end(writer);
        free(writer);
    }
}

/* ---- the adapter closed while the last completions run --------------------------------------- */

struct last {
    NDK_CONNECTOR *connector;
    atomic_uint *running;
    unsigned delay_us;
};

static VOID last_closed(PVOID context)
{
    atomic_uint *counts = context; /* freed when the adapter close has returned */

    atomic_fetch_add(&counts[0], 1);
    for (int i = 0; i < 1000; i++)
        atomic_fetch_add(&counts[2], 1);
    atomic_fetch_add(&counts[1], 1);
}

static void *close_last(void *context)
{
    struct last *last = context;
    atomic_uint *counts = last->running;
    struct timespec t = {0, (long)last->delay_us * 1000};

    nanosleep(&t, NULL);
    if (last->connector->Dispatch->NdkCloseConnector(&last->connector->Header, last_closed,
                                                     counts) == STATUS_SUCCESS)
        last_closed(counts);
    return NULL;
}

static void count_close(NDK_OBJECT_HEADER *header, NDK_FN_CLOSE_OBJECT close, atomic_uint *counts,
                        unsigned *pending)
{
    if (close(header, last_closed, counts) == STATUS_PENDING)
        (*pending)++;
}

static void the_adapter_goes_with_its_last_object(void **state)
{
    static const char *const modes[] = {"never", "always", "early", "random:3"};

    (void)state;
    for (int turn = 0; turn < 60; turn++) {
        atomic_uint *counts = calloc(3, sizeof *counts);
        unsigned pending = 1;
        struct last last;
        struct pair pair;
        struct end *c = &pair.client;
        pthread_t thread;

        assert_non_null(counts);
        assert_int_equal(softndk_set_pend(modes[turn % 4]), STATUS_SUCCESS);
        pair_open(&pair, "127.0.0.1", NULL, NULL);
        count_close(&c->pd->Header, c->pd->Dispatch->NdkClosePd, counts, &pending);
        count_close(&c->receive.cq->Header, c->receive.cq->Dispatch->NdkCloseCq, counts, &pending);
        count_close(&c->initiator.cq->Header, c->initiator.cq->Dispatch->NdkCloseCq, counts,
                    &pending);
        count_close(&c->qp->Header, c->qp->Dispatch->NdkCloseQp, counts, &pending);
        assert_int_equal(pending, 5);
        last = (struct last){c->connector, counts, (unsigned)rand() % 600};
        assert_int_equal(pthread_create(&thread, NULL, close_last, &last), 0);
        softndk_close_adapter(c->adapter);
        /* In mode never the connector's own close may be inline: counted by its thread. */
        assert_true(atomic_load(&counts[1]) >= 4);
        pthread_join(thread, NULL);
        assert_int_equal(atomic_load(&counts[0]), 5);
        assert_int_equal(atomic_load(&counts[1]), 5);
        free(counts);
        memset(c, 0, sizeof *c);
        pair_close(&pair);
    }
    softndk_set_pend("never");
}

/* ---- a post remembered in a callback, whose queue pair goes before the callback returns -------
 */

struct late {
    pthread_t thread; /* that ran the last notification */
    NDK_QP *qp;       /* to post on; NULL: only the thread is noted */
    NDK_SGE sge;
    NTSTATUS posted;
    atomic_bool entered, go;
};

static void late_notified(struct queue *queue, void *context)
{
    struct late *late = context;

    (void)queue;
    late->thread = pthread_self();
    if (!late->qp)
        return;
    late->posted = late->qp->Dispatch->NdkSend(late->qp, late, &late->sge, 1, 0);
    atomic_store(&late->entered, true);
    while (!atomic_load(&late->go))
        test_sleep_ms(1);
}

/* The client gets an empty Send, and its notification runs. */
static void late_notify(struct pair *pair)
{
    NDK_QP *to = pair->client.qp, *from = pair->server.qp;
    NDK_CQ *cq = pair->client.receive.cq;

    assert_int_equal(to->Dispatch->NdkReceive(to, NULL, NULL, 0), STATUS_SUCCESS);
    cq->Dispatch->NdkArmCq(cq, NDK_CQ_NOTIFY_ANY);
    assert_int_equal(from->Dispatch->NdkSend(from, NULL, NULL, 0, 0), STATUS_SUCCESS);
}

/* A connected pair; late->thread is that of its client's notifications. */
static void late_open(struct pair *pair, struct late *late)
{
    memset(late, 0, sizeof *late);
    pair_open(pair, "127.0.0.1", NULL, NULL);
    pair->client.receive.in_callback = late_notified;
    pair->client.receive.context = late;
    late_notify(pair);
    assert_int_equal(queue_next(&pair->client.receive).Status, STATUS_SUCCESS);
    wait_until(atomic_load(&pair->client.receive.notified) != 0, "a notification");
}

/*
 * The callback of one connection posts on another, whose connector and queue pair are closed, to
 * the end, before the callback returns and the post is looked after: nothing may touch the queues
 * then.
 */
static void a_post_outlived_by_its_callback(void **state)
{
    static struct pair pairs[8];
    static struct late late[8];
    static struct queue one_more[8];
    struct pair *victim = &pairs[0], *bystander = NULL;
    struct late *other = NULL;
    struct memory memory;
    NDK_RESULT_EX result;
    unsigned count, more = 0;

    (void)state;
    late_open(victim, &late[0]);
    make_memory(victim->client.pd, 4096, NDK_MR_FLAG_ALLOW_LOCAL_WRITE, &memory);
    for (count = 1; count < 8 && !other; count++) {
        /* Homes go around: with one more object the next pair has the other one, if it had not by
         * itself. */
        if (count > 1)
            make_queue(victim->client.adapter, 1, &one_more[more++]);
        late_open(&pairs[count], &late[count]);
        if (!pthread_equal(late[count].thread, late[0].thread)) {
            bystander = &pairs[count];
            other = &late[count];
        }
    }
    assert_non_null(other); /* on another shard than the victim */
    other->sge = memory_sge(&memory, 0, 64);
    other->qp = victim->client.qp;
    late_notify(bystander);
    wait_until(atomic_load(&other->entered), "the callback of the other connection");
    assert_int_equal(other->posted, STATUS_SUCCESS);
    CLOSE(victim->client.connector, NdkCloseConnector);
    CLOSE(victim->client.qp, NdkCloseQp);
    victim->client.connector = NULL;
    victim->client.qp = NULL;
    assert_true(queue_try(&victim->client.initiator, &result, 1000));
    assert_ptr_equal(result.RequestContext, other);
    assert_int_equal(result.Status, STATUS_CANCELLED);
    other->qp = NULL;
    atomic_store(&other->go, true);
    assert_int_equal(queue_next(&bystander->client.receive).Status, STATUS_SUCCESS);
    free_memory(&memory);
    for (unsigned i = 0; i < more; i++)
        CLOSE(one_more[i].cq, NdkCloseCq);
    for (unsigned i = 0; i < count; i++)
        pair_close(&pairs[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(closed_while_another_thread_transmits),
        cmocka_unit_test(a_full_socket_closed_while_a_callback_posts),
        cmocka_unit_test(the_adapter_goes_with_its_last_object),
        cmocka_unit_test(a_post_outlived_by_its_callback),
    };
    const char *text = getenv("SOFTNDK_TEST_SEED");
    unsigned seed = text ? (unsigned)strtoul(text, NULL, 0) : (unsigned)test_now_ms();

    printf("SOFTNDK_TEST_SEED=%u\n", seed);
    srand(seed);
    return cmocka_run_group_tests_name("race_close", tests, NULL, NULL);
}
