// SPDX-License-Identifier: MIT
/*
 * Interleavings of memory windows: every end of a window while the peer writes or reads through it,
 * from which moment on nobody touches the memory (its pages are taken away then, so that a touch is
 * a crash); windows bound, used and invalidated by both ends without a pause; the end of the
 * connection, of the window and an invalidation at the same time.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <pthread.h>

#include <cmocka.h>

#include "windows.h"

#define ROOM 262144u
#define BOTH (NDK_OP_FLAG_ALLOW_REMOTE_READ | NDK_OP_FLAG_ALLOW_REMOTE_WRITE)

static const char *const modes[] = {"never", "always", "early", "random:5"};

static void protect(struct memory *memory, bool allow)
{
    assert_int_equal(
        mprotect(memory->data, memory->size, allow ? PROT_READ | PROT_WRITE : PROT_NONE), 0);
}

/* ---- the peer accesses a window until it is gone --------------------------------------------- */

enum how { INVALIDATED, CLOSED, REGION_CLOSED, DISCONNECTED, HOWS };

struct traffic {
    struct bed bed;
    NDK_MW *mw;
    UINT32 token;
    bool read;
    atomic_uint done;
    unsigned faults;
};

static void *access_on(void *context)
{
    struct traffic *t = context;
    struct end *c = &t->bed.pair.client;
    const UINT64 address = memory_at(&t->bed.server, 4096);
    NTSTATUS status = STATUS_SUCCESS;
    NDK_RESULT_EX result;

    while (status == STATUS_SUCCESS || status == STATUS_NO_MORE_ENTRIES) {
        status = t->read ? post_read(c, &t->bed.client, ROOM / 2, address, t->token, 0, t)
                         : post_write(c, &t->bed.client, ROOM / 2, address, t->token, 0, t);
        while (c->initiator.cq->Dispatch->NdkGetCqResultsEx(c->initiator.cq, &result, 1) == 1)
            atomic_fetch_add(&t->done, 1);
    }
    t->faults += status != STATUS_CONNECTION_INVALID;
    return NULL;
}

/* Ends the window, and returns when that is over. */
static void end_window(struct traffic *t, enum how how)
{
    struct end *s = &t->bed.pair.server;
    NDK_MR *mr = t->bed.server.mr;
    struct wait w;
    NTSTATUS status;

    switch (how) {
    case INVALIDATED:
        window_invalidate(s, t->mw);
        break;
    case CLOSED:
        CLOSE(t->mw, NdkCloseMw);
        break;
    case REGION_CLOSED:
        wait_init(&w);
        status = mr->Dispatch->NdkCloseMr(&mr->Header, wait_close, &w);
        assert_int_equal(status, STATUS_PENDING);
        CLOSE(t->mw, NdkCloseMw);
        assert_int_equal(wait_end(&w, status), STATUS_SUCCESS);
        break;
    default:
        CLOSE(s->connector, NdkCloseConnector);
        s->connector = NULL;
        break;
    }
    if (how != REGION_CLOSED) {
        expect_call(memory_deregister(&t->bed.server), STATUS_SUCCESS, "NdkDeregisterMr",
                    &mr->Header);
        CLOSE(mr, NdkCloseMr);
    }
    if (how == INVALIDATED || how == DISCONNECTED)
        CLOSE(t->mw, NdkCloseMw);
}

static void window_goes(enum how how, bool read, const char *options)
{
    struct traffic *t = calloc(1, sizeof *t);
    struct end *s;
    pthread_t thread;

    assert_non_null(t);
    t->read = read;
    bed_open(&t->bed, options, ROOM, ALL_RIGHTS);
    s = &t->bed.pair.server;
    t->mw = window_open(s->pd);
    t->token = window_bind(s, t->mw, &t->bed.server, 0, ROOM, BOTH);
    assert_int_equal(pthread_create(&thread, NULL, access_on, t), 0);
    wait_until(atomic_load(&t->done) > (unsigned)rand() % 20, "traffic");
    end_window(t, how);
    protect(&t->bed.server, false);
    pthread_join(thread, NULL); /* its next access ended the connection */
    assert_int_equal(t->faults, 0);
    free_memory(&t->bed.client);
    pair_close(&t->bed.pair);
    protect(&t->bed.server, true);
    IoFreeMdl(t->bed.server.mdl);
    free(t->bed.server.data);
    free(t);
}

static void a_window_goes_while_it_is_accessed(void **state)
{
    static const char *const options[] = {"shards=2", "shards=2,crc=0",
                                          "shards=2,tcp_buffer=131072"};

    (void)state;
    for (int turn = 0; turn < 64; turn++) {
        assert_int_equal(softndk_set_pend(modes[turn / 8 % 4]), STATUS_SUCCESS);
        window_goes((enum how)(turn % HOWS), turn & 4, options[turn % 3]);
    }
    softndk_set_pend("never");
}

/* ---- without a pause ------------------------------------------------------------------------- */

#define WINDOWS 4u
#define PART    8192u
#define ROUNDS  1000u /* of each window */

struct offer { /* a Send of the server */
    UINT32 window, token, seed, last;
};

struct market {
    struct bed bed;
    NDK_MW *mw[WINDOWS];
    UINT32 token[WINDOWS], seed[WINDOWS], rounds[WINDOWS];
};

static NDK_SGE inline_of(void *octets, ULONG length)
{
    NDK_SGE sge;

    memset(&sge, 0, sizeof sge);
    sge.VirtualAddress = octets;
    sge.Length = length;
    return sge;
}

/* Answers each offer: writes the pattern, then a Send that names the window, every other one with
 * Invalidate. */
static void *customer(void *context)
{
    struct market *x = context;
    struct end *c = &x->bed.pair.client;
    unsigned served = 0;

    while (served < WINDOWS * ROUNDS) {
        NDK_RESULT_EX result = queue_next(&c->receive);
        struct memory from = x->bed.client;
        struct offer offer;
        size_t slot = (size_t)(uintptr_t)result.RequestContext - 1;
        NDK_SGE sge = inline_of(&offer, sizeof offer);

        if (result.Status != STATUS_SUCCESS)
            test_fail("the offer failed: %s", softndk_status_name(result.Status));
        memcpy(&offer, x->bed.client.data + slot * sizeof offer, sizeof offer);
        from.data += ROOM / 2 + offer.window * PART;
        fill(from.data, PART, offer.seed);
        {
            NDK_SGE receive = memory_sge(&x->bed.client, slot * sizeof offer, sizeof offer);

            assert_int_equal(c->qp->Dispatch->NdkReceive(c->qp, result.RequestContext, &receive, 1),
                             STATUS_SUCCESS);
        }
        assert_int_equal(post_write(c, &from, PART, memory_at(&x->bed.server, offer.window * PART),
                                    offer.token, NDK_OP_FLAG_DEFER, x),
                         STATUS_SUCCESS);
        assert_int_equal(offer.seed % 2
                             ? c->qp->Dispatch->NdkSendAndInvalidate(
                                   c->qp, x, &sge, 1, NDK_OP_FLAG_INLINE, offer.token)
                             : c->qp->Dispatch->NdkSend(c->qp, x, &sge, 1, NDK_OP_FLAG_INLINE),
                         STATUS_SUCCESS);
        for (int i = 0; i < 2; i++) /* the memory of the Write is used again */
            assert_int_equal(queue_next(&c->initiator).Status, STATUS_SUCCESS);
        served++;
    }
    return NULL;
}

/* Bind and offer, in one chain. */
static void offer(struct market *x, UINT32 i)
{
    struct end *s = &x->bed.pair.server;
    struct offer text = {.window = i, .seed = x->rounds[i] * WINDOWS + i};
    NDK_SGE sge = inline_of(&text, sizeof text);

    assert_int_equal(
        window_post(s, x->mw[i], &x->bed.server, i * PART, PART,
                    NDK_OP_FLAG_ALLOW_REMOTE_WRITE | NDK_OP_FLAG_DEFER | NDK_OP_FLAG_SILENT_SUCCESS,
                    x),
        STATUS_SUCCESS);
    x->token[i] = text.token = window_token(x->mw[i]);
    x->seed[i] = text.seed;
    assert_int_equal(s->qp->Dispatch->NdkSend(s->qp, NULL, &sge, 1, NDK_OP_FLAG_INLINE),
                     STATUS_SUCCESS);
    assert_ptr_equal(queue_next(&s->initiator).RequestContext, NULL);
}

static void serve(struct market *x)
{
    struct end *s = &x->bed.pair.server;
    unsigned left = WINDOWS * ROUNDS;

    for (UINT32 i = 0; i < WINDOWS; i++)
        offer(x, i);
    while (left) {
        NDK_RESULT_EX result = queue_next(&s->receive);
        size_t slot = (size_t)(uintptr_t)result.RequestContext - 1;
        size_t at = ROOM / 2 + slot * sizeof(struct offer);
        NDK_SGE sge = memory_sge(&x->bed.server, at, sizeof(struct offer));
        struct offer answer;
        bool more;
        UINT32 i;

        if (result.Status != STATUS_SUCCESS)
            test_fail("the answer failed: %s", softndk_status_name(result.Status));
        memcpy(&answer, x->bed.server.data + at, sizeof answer);
        i = answer.window;
        more = ++x->rounds[i] < ROUNDS;
        assert_int_equal(answer.token, x->token[i]);
        assert_int_equal(s->qp->Dispatch->NdkReceive(s->qp, result.RequestContext, &sge, 1),
                         STATUS_SUCCESS);
        if (answer.seed % 2)
            assert_int_equal(result.TypeSpecificCompletionOutput, x->token[i]);
        else /* nothing waits for it: the next bind is behind it */
            assert_int_equal(
                window_post_invalidate(
                    s, x->mw[i], NDK_OP_FLAG_SILENT_SUCCESS | (more ? NDK_OP_FLAG_DEFER : 0), x),
                STATUS_SUCCESS);
        assert_true(check(x->bed.server.data + i * PART, PART, x->seed[i]));
        left--;
        if (more)
            offer(x, i);
    }
}

static void windows_without_a_pause(void **state)
{
    struct market *x = calloc(1, sizeof *x);
    struct end *c, *s;
    pthread_t thread;

    (void)state;
    assert_non_null(x);
    bed_open(&x->bed, "shards=2", ROOM, ALL_RIGHTS);
    c = &x->bed.pair.client;
    s = &x->bed.pair.server;
    for (UINT32 i = 0; i < WINDOWS; i++) {
        NDK_SGE here =
            memory_sge(&x->bed.server, ROOM / 2 + i * sizeof(struct offer), sizeof(struct offer));
        NDK_SGE there = memory_sge(&x->bed.client, i * sizeof(struct offer), sizeof(struct offer));

        x->mw[i] = window_open(s->pd);
        assert_int_equal(s->qp->Dispatch->NdkReceive(s->qp, (void *)(uintptr_t)(i + 1), &here, 1),
                         STATUS_SUCCESS);
        assert_int_equal(c->qp->Dispatch->NdkReceive(c->qp, (void *)(uintptr_t)(i + 1), &there, 1),
                         STATUS_SUCCESS);
    }
    assert_int_equal(pthread_create(&thread, NULL, customer, x), 0);
    serve(x);
    pthread_join(thread, NULL);
    for (UINT32 i = 0; i < WINDOWS; i++)
        CLOSE(x->mw[i], NdkCloseMw);
    bed_close(&x->bed);
    free(x);
}

/* ---- everything ends at once ----------------------------------------------------------------- */

struct crowd {
    struct bed bed;
    NDK_MW *mw[WINDOWS];
    atomic_uint posted;
    unsigned faults;
};

/* Binds and invalidates until the connection is gone; whatever was posted completes. */
static void *post_on(void *context)
{
    struct crowd *x = context;
    struct end *s = &x->bed.pair.server;
    NTSTATUS status = STATUS_SUCCESS;
    unsigned posted = 0, completed = 0;
    NDK_RESULT_EX result;

    for (unsigned n = 0; status == STATUS_SUCCESS || status == STATUS_NO_MORE_ENTRIES; n++) {
        NDK_MW *mw = x->mw[n / 2 % (WINDOWS - 1)]; /* the last one is closed meanwhile */
        const ULONG defer = n % 3 ? NDK_OP_FLAG_DEFER : 0;

        if (status == STATUS_NO_MORE_ENTRIES)
            n--;
        status = n % 2 ? window_post_invalidate(s, mw, defer, x)
                       : window_post(s, mw, &x->bed.server, 0, ROOM, BOTH | defer, x);
        posted += status == STATUS_SUCCESS;
        atomic_store(&x->posted, posted);
        while (s->initiator.cq->Dispatch->NdkGetCqResultsEx(s->initiator.cq, &result, 1) == 1)
            completed++;
    }
    x->faults += status != STATUS_CONNECTION_INVALID;
    while (completed < posted) {
        queue_next(&s->initiator);
        completed++;
    }
    return NULL;
}

static void one_crowd(unsigned turn)
{
    struct crowd *x = calloc(1, sizeof *x);
    struct end *s, *going;
    pthread_t thread;
    struct wait w;
    NTSTATUS status;

    assert_non_null(x);
    bed_open(&x->bed, "shards=2", ROOM, ALL_RIGHTS);
    s = &x->bed.pair.server;
    going = turn % 2 ? s : &x->bed.pair.client;
    for (unsigned i = 0; i < WINDOWS; i++)
        x->mw[i] = window_open(s->pd);
    window_bind(s, x->mw[WINDOWS - 1], &x->bed.server, 0, ROOM, BOTH);
    assert_int_equal(pthread_create(&thread, NULL, post_on, x), 0);
    wait_until(atomic_load(&x->posted) > (unsigned)rand() % 200, "posts");
    wait_init(&w);
    status =
        going->connector->Dispatch->NdkCloseConnector(&going->connector->Header, wait_close, &w);
    going->connector = NULL;
    CLOSE(x->mw[WINDOWS - 1], NdkCloseMw);
    assert_int_equal(wait_end(&w, status), STATUS_SUCCESS);
    pthread_join(thread, NULL);
    assert_int_equal(x->faults, 0);
    if (s->connector) {
        CLOSE(s->connector, NdkCloseConnector);
        s->connector = NULL;
    }
    /* Whatever was bound has ended. */
    expect_call(memory_deregister(&x->bed.server), STATUS_SUCCESS, "NdkDeregisterMr",
                &x->bed.server.mr->Header);
    memory_register(&x->bed.server, 0);
    for (unsigned i = 0; i < WINDOWS - 1; i++)
        CLOSE(x->mw[i], NdkCloseMw);
    bed_close(&x->bed);
    free(x);
}

static void everything_ends_at_once(void **state)
{
    (void)state;
    for (unsigned turn = 0; turn < 100; turn++) {
        assert_int_equal(softndk_set_pend(modes[turn / 2 % 4]), STATUS_SUCCESS);
        one_crowd(turn);
    }
    softndk_set_pend("never");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_window_goes_while_it_is_accessed),
        cmocka_unit_test(windows_without_a_pause),
        cmocka_unit_test(everything_ends_at_once),
    };
    const char *text = getenv("SOFTNDK_TEST_SEED");
    unsigned seed = text ? (unsigned)strtoul(text, NULL, 0) : (unsigned)test_now_ms();

    printf("SOFTNDK_TEST_SEED=%u\n", seed);
    srand(seed);
    return cmocka_run_group_tests_name("race_window", tests, NULL, NULL);
}
