// SPDX-License-Identifier: MIT
/*
 * Interleavings of memory: a region deregistered or closed while a Write into it is being received,
 * a Read answered from it, or its octets wait in a full socket; a token invalidated by the peer of
 * one connection while another connection places octets under it. From the moment the registration
 * has ended nobody touches the memory: its pages are taken away then, so that a touch is a crash.
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

#include "ends.h"
#include "provider/cq.h" /* on which shard a CQ is */

#define REGION 262144u
#define RIGHTS                                                                                     \
    (NDK_MR_FLAG_ALLOW_LOCAL_WRITE | NDK_MR_FLAG_ALLOW_REMOTE_READ |                               \
     NDK_MR_FLAG_ALLOW_REMOTE_WRITE | NDK_MR_FLAG_RDMA_READ_SINK)

static void forbid(struct memory *memory)
{
    assert_int_equal(mprotect(memory->data, memory->size, PROT_NONE), 0);
}

static void allow(struct memory *memory)
{
    assert_int_equal(mprotect(memory->data, memory->size, PROT_READ | PROT_WRITE), 0);
}

static void free_pages(struct memory *memory)
{
    IoFreeMdl(memory->mdl);
    free(memory->data);
}

/* ---- the peer accesses a region until it is gone --------------------------------------------- */

struct traffic {
    struct pair pair;
    struct memory here, there; /* client's and server's */
    bool read;
    atomic_uint done;
    unsigned faults;
};

static void *access_on(void *context)
{
    struct traffic *t = context;
    NDK_QP *qp = t->pair.client.qp;
    NDK_SGE sge = memory_sge(&t->here, 0, REGION / 2);
    UINT64 address = (UINT64)(uintptr_t)t->there.data + 4096;
    NTSTATUS status = STATUS_SUCCESS;
    NDK_RESULT_EX result;

    while (status == STATUS_SUCCESS || status == STATUS_NO_MORE_ENTRIES) {
        status = t->read ? qp->Dispatch->NdkRead(qp, t, &sge, 1, address, t->there.remote, 0)
                         : qp->Dispatch->NdkWrite(qp, t, &sge, 1, address, t->there.remote, 0);
        while (t->pair.client.initiator.cq->Dispatch->NdkGetCqResultsEx(t->pair.client.initiator.cq,
                                                                        &result, 1) == 1)
            atomic_fetch_add(&t->done, 1);
    }
    t->faults += status != STATUS_CONNECTION_INVALID;
    return NULL;
}

static void region_goes(bool read, bool close, const char *options)
{
    struct traffic *t = calloc(1, sizeof *t);
    pthread_t thread;
    struct wait w;
    NTSTATUS status;

    assert_non_null(t);
    t->read = read;
    pair_open(&t->pair, "127.0.0.1", options, options);
    make_memory(t->pair.client.pd, REGION, RIGHTS, &t->here);
    make_memory(t->pair.server.pd, REGION, RIGHTS, &t->there);
    assert_int_equal(pthread_create(&thread, NULL, access_on, t), 0);
    wait_until(atomic_load(&t->done) > (unsigned)rand() % 20, "traffic");
    wait_init(&w);
    status = close ? t->there.mr->Dispatch->NdkCloseMr(&t->there.mr->Header, wait_close, &w)
                   : t->there.mr->Dispatch->NdkDeregisterMr(t->there.mr, wait_request, &w);
    assert_int_equal(wait_end(&w, status), STATUS_SUCCESS);
    forbid(&t->there);
    pthread_join(thread, NULL); /* its next access ended the connection */
    assert_int_equal(t->faults, 0);
    if (!close)
        CLOSE(t->there.mr, NdkCloseMr);
    free_memory(&t->here);
    pair_close(&t->pair);
    allow(&t->there);
    free_pages(&t->there);
    free(t);
}

static void a_region_goes_while_it_is_accessed(void **state)
{
    static const char *const options[] = {"shards=2", "shards=2,crc=0",
                                          "shards=2,tcp_buffer=131072"};
    static const char *const modes[] = {"never", "always", "early", "random:5"};

    (void)state;
    for (int turn = 0; turn < 48; turn++) {
        assert_int_equal(softndk_set_pend(modes[turn / 4 % 4]), STATUS_SUCCESS);
        region_goes(turn & 1, turn & 2, options[turn % 3]);
    }
    softndk_set_pend("never");
}

/* ---- octets that wait in a full socket ------------------------------------------------------- */

struct still {
    atomic_bool blocked, release;
};

static void stand_still(struct queue *queue, void *context)
{
    struct still *still = context;
    unsigned long long limit = test_now_ms() + WAIT_S * 1000u;

    (void)queue;
    atomic_store(&still->blocked, true);
    while (!atomic_load(&still->release) && test_now_ms() < limit)
        test_sleep_ms(1);
}

#define LARGE (8u << 20) /* more than all buffers of a socket take */

static void octets_in_a_full_socket_hold_their_region(void **state)
{
    const char *options = "shards=3,tcp_buffer=65536,crc=0";
    struct memory there, from;
    struct still still = {.blocked = false};
    struct queue dummy;
    struct pair pair;
    struct wait w;
    NTSTATUS status;
    NDK_SGE sge;

    (void)state;
    end_open(&pair.server, options);
    make_queue(pair.server.adapter, 1, &dummy); /* the next CQ is another shard's */
    end_open(&pair.client, options);
    CLOSE(dummy.cq, NdkCloseCq);
    listen_on(pair.server.adapter, "127.0.0.1", &pair.listening);
    pair_connect(&pair);
    make_memory(pair.server.pd, LARGE, RIGHTS, &there);
    make_memory(pair.client.pd, LARGE, RIGHTS, &from);
    pair.server.receive.context = &still;
    pair.server.receive.in_callback = stand_still;
    pair.server.qp->Dispatch->NdkReceive(pair.server.qp, NULL, NULL, 0);
    pair.server.receive.cq->Dispatch->NdkArmCq(pair.server.receive.cq, NDK_CQ_NOTIFY_ANY);
    pair.client.qp->Dispatch->NdkSend(pair.client.qp, NULL, NULL, 0, 0);
    wait_until(atomic_load(&still.blocked), "the server's callback");
    sge = memory_sge(&from, 0, LARGE);
    assert_int_equal(pair.client.qp->Dispatch->NdkWrite(pair.client.qp, &from, &sge, 1,
                                                        (UINT64)(uintptr_t)there.data, there.remote,
                                                        0),
                     STATUS_SUCCESS);
    wait_init(&w);
    status = from.mr->Dispatch->NdkDeregisterMr(from.mr, wait_request, &w);
    test_sleep_ms(50);
    assert_int_equal(atomic_load(&w.calls), 0);
    assert_int_equal(status, STATUS_PENDING);
    atomic_store(&still.release, true);
    assert_int_equal(wait_end(&w, status), STATUS_SUCCESS);
    forbid(&from);
    pair.server.receive.in_callback = NULL;
    free_memory(&there);
    CLOSE(from.mr, NdkCloseMr);
    pair_close(&pair);
    allow(&from);
    free_pages(&from);
}

/* ---- one connection invalidates what another one writes to ----------------------------------- */

#define PAGES  16u
#define SMALL  8192u
#define SMALLS 6u

struct cross {
    struct pair a, b; /* two connections; the servers' QPs share an adapter and a PD */
    struct memory server, client;
    uint8_t *fast_data;
    NDK_MR *fast;
    PMDL mdl;
    NDK_LOGICAL_ADDRESS_MAPPING *lam;
    UINT32 token;
    unsigned reconnects;
};

/* On another shard than A's server, and than that one. */
static void server_of_b(struct cross *x, const struct engine_shard *not_there)
{
    struct end *s = &x->b.server;
    struct engine_shard *other = cq_from(x->a.server.receive.cq)->object.home;
    struct wait w;

    memset(s, 0, sizeof *s);
    wait_init(&w);
    KeInitializeEvent(&s->disconnected, NotificationEvent, FALSE);
    make_queue(x->a.server.adapter, 256, &s->receive);
    while (cq_from(s->receive.cq)->object.home == other ||
           cq_from(s->receive.cq)->object.home == not_there) {
        CLOSE(s->receive.cq, NdkCloseCq);
        make_queue(x->a.server.adapter, 256, &s->receive);
    }
    make_queue(x->a.server.adapter, 256, &s->initiator);
    assert_int_equal(x->a.server.pd->Dispatch->NdkCreateQp(x->a.server.pd, s->receive.cq,
                                                           s->initiator.cq, s, 64, 64, 4, 4, 0,
                                                           wait_create, &w, &s->qp),
                     STATUS_SUCCESS);
}

static void make_fast(struct cross *x)
{
    ULONG size = sizeof *x->lam + PAGES * sizeof(NDK_LOGICAL_ADDRESS), fbo = 1;
    NDK_PD *pd = x->a.server.pd;
    struct wait w;

    x->fast_data = aligned_alloc(4096, PAGES * 4096);
    x->mdl = IoAllocateMdl(x->fast_data, PAGES * 4096, FALSE, FALSE, NULL);
    x->lam = malloc(size);
    assert_true(x->fast_data && x->mdl && x->lam);
    memset(x->fast_data, 0, PAGES * 4096);
    MmBuildMdlForNonPagedPool(x->mdl);
    wait_init(&w);
    assert_int_equal(x->a.server.adapter->Dispatch->NdkBuildLAM(x->a.server.adapter, x->mdl,
                                                                PAGES * 4096, wait_request, &w,
                                                                x->lam, &size, &fbo),
                     STATUS_SUCCESS);
    assert_int_equal(pd->Dispatch->NdkCreateMr(pd, TRUE, wait_create, &w, &x->fast),
                     STATUS_SUCCESS);
    assert_int_equal(
        x->fast->Dispatch->NdkInitializeFastRegisterMr(x->fast, PAGES, TRUE, wait_request, &w),
        STATUS_SUCCESS);
}

static void connect_a(struct cross *x)
{
    end_open(&x->a.client, "shards=2");
    pair_connect(&x->a);
}

/* A's connection was terminated, as it must be when the token went first: a new QP, a new client.
 */
static void reconnect_a(struct cross *x)
{
    struct end *s = &x->a.server;
    NDK_RESULT_EX result;
    struct wait w;

    wait_init(&w);
    x->reconnects++;
    assert_true(wait_event(&x->a.client.disconnected, WAIT_S * 1000));
    CLOSE(s->connector, NdkCloseConnector);
    CLOSE(s->qp, NdkCloseQp);
    while (queue_try(&s->receive, &result, 0) || queue_try(&s->initiator, &result, 0))
        ;
    assert_int_equal(s->pd->Dispatch->NdkCreateQp(s->pd, s->receive.cq, s->initiator.cq, s, 64, 64,
                                                  4, 4, 0, wait_create, &w, &s->qp),
                     STATUS_SUCCESS);
    atomic_store(&s->disconnects, 0);
    free_memory(&x->client);
    end_close(&x->a.client);
    connect_a(x);
    make_memory(x->a.client.pd, REGION, RIGHTS, &x->client);
    fill(x->client.data, REGION, 9);
}

static NTSTATUS write_a(struct cross *x, size_t from, ULONG length, uint8_t *to, UINT32 token)
{
    NDK_QP *qp = x->a.client.qp;
    NDK_SGE sge = memory_sge(&x->client, from, length);

    return qp->Dispatch->NdkWrite(qp, x, &sge, 1, (UINT64)(uintptr_t)to, token, NDK_OP_FLAG_DEFER);
}

/* Behind the invalidating Send: octets that the receiver meets when it goes on. */
static void *invalidate_b(void *context)
{
    struct cross *x = context;
    NDK_QP *qp = x->b.client.qp;
    static char octets[64];
    NDK_SGE sge = {.VirtualAddress = octets, .Length = 64};

    for (volatile int i = rand() % 60000; i > 0; i--)
        ;
    qp->Dispatch->NdkSendAndInvalidate(qp, x, NULL, 0, NDK_OP_FLAG_DEFER, x->token);
    for (int i = 0; i < 30; i++)
        qp->Dispatch->NdkSend(qp, x, &sge, 1,
                              NDK_OP_FLAG_INLINE | (i < 29 ? NDK_OP_FLAG_DEFER : 0));
    return NULL;
}

/* One round: A writes to the fast region and on to the plain one, B invalidates meanwhile. */
static void cross_round(struct cross *x)
{
    struct end *as = &x->a.server, *bs = &x->b.server;
    NDK_QP *qp = x->a.client.qp;
    NDK_RESULT_EX result;
    pthread_t thread;
    NTSTATUS status;

    assert_int_equal(as->qp->Dispatch->NdkFastRegister(
                         as->qp, x, x->fast, PAGES, x->lam->AdapterPageArray, 0, PAGES * 4096,
                         x->fast_data, NDK_OP_FLAG_ALLOW_REMOTE_WRITE),
                     STATUS_SUCCESS);
    x->token = x->fast->Dispatch->NdkGetRemoteTokenFromMr(x->fast);
    assert_int_equal(queue_next(&as->initiator).Status, STATUS_SUCCESS);
    assert_int_equal(as->qp->Dispatch->NdkReceive(as->qp, x, NULL, 0), STATUS_SUCCESS);
    for (int i = 0; i < 31; i++) {
        NDK_SGE sge = memory_sge(&x->server, REGION - 64, 64);

        assert_int_equal(bs->qp->Dispatch->NdkReceive(bs->qp, x, &sge, 1), STATUS_SUCCESS);
    }
    memset(x->server.data, 0, SMALL * SMALLS);
    assert_int_equal(pthread_create(&thread, NULL, invalidate_b, x), 0);
    write_a(x, 0, PAGES * 4096 - 1024, x->fast_data, x->token);
    for (unsigned i = 0; i < SMALLS; i++)
        write_a(x, i * SMALL, SMALL, x->server.data + i * SMALL, x->server.remote);
    status = qp->Dispatch->NdkSend(qp, x, NULL, 0, 0);
    pthread_join(thread, NULL);
    result = queue_next(&bs->receive);
    assert_int_equal(result.Status, STATUS_SUCCESS);
    assert_int_equal(result.Type, NdkOperationTypeReceiveAndInvalidate);
    for (int i = 0; i < 30; i++)
        assert_int_equal(queue_next(&bs->receive).Status, STATUS_SUCCESS);
    for (int i = 0; i < 31; i++)
        assert_int_equal(queue_next(&x->b.client.initiator).Status, STATUS_SUCCESS);
    result = queue_next(&as->receive);
    if (status == STATUS_SUCCESS && result.Status == STATUS_SUCCESS) {
        assert_true(check(x->server.data, SMALL * SMALLS, 9));
        for (unsigned i = 0; i < SMALLS + 2; i++)
            assert_int_equal(queue_next(&x->a.client.initiator).Status, STATUS_SUCCESS);
    } else {
        char text[200];

        /* The token went first: nothing else is wrong with the stream. */
        assert_true(wait_event(&x->a.client.disconnected, WAIT_S * 1000));
        softndk_reason_text(x->a.client.reason, text, sizeof text);
        if (!strstr(text, "STag"))
            test_fail("the connection ended for another reason: %s", text);
        reconnect_a(x);
    }
}

static void one_connection_invalidates_under_another(void **state)
{
    struct cross *x = calloc(1, sizeof *x);

    (void)state;
    assert_non_null(x);
    end_open(&x->a.server, "shards=2");
    listen_on(x->a.server.adapter, "127.0.0.1", &x->a.listening);
    connect_a(x);
    server_of_b(x, NULL);
    end_open(&x->b.client, "shards=2");
    listen_on(x->a.server.adapter, "127.0.0.1", &x->b.listening);
    pair_connect(&x->b);
    make_memory(x->a.server.pd, REGION, RIGHTS, &x->server);
    make_memory(x->a.client.pd, REGION, RIGHTS, &x->client);
    fill(x->client.data, REGION, 9);
    make_fast(x);
    for (int round = 0; round < 600; round++)
        cross_round(x);
    printf("%u of 600 rounds: the token went first\n", x->reconnects);
    CLOSE(x->fast, NdkCloseMr);
    x->a.server.adapter->Dispatch->NdkReleaseLAM(x->a.server.adapter, x->lam);
    IoFreeMdl(x->mdl);
    free(x->fast_data);
    free(x->lam);
    free_memory(&x->server);
    free_memory(&x->client);
    pair_close(&x->b);
    pair_close(&x->a);
    free(x);
}

/* ---- a Send is placed when what it invalidates is invalid ------------------------------------ */

static struct engine_shard *home_of(const struct end *e)
{
    return cq_from(e->receive.cq)->object.home;
}

/* On another shard than that one. */
static void end_open_apart(struct end *e, const char *options, const struct engine_shard *not_there)
{
    end_open(e, options);
    if (home_of(e) != not_there)
        return;
    CLOSE(e->qp, NdkCloseQp);
    while (home_of(e) == not_there) {
        CLOSE(e->receive.cq, NdkCloseCq);
        make_queue(e->adapter, 256, &e->receive);
    }
    end_make_qp(e, e->adapter, e->pd);
}

/*
 * A holds the region: its octets wait in a full socket, since the peer's shard stands still. B's
 * Send invalidates it, and waits. Its receive is not complete, so it is not placed: were the
 * connection to end now, the message would be lost.
 */
static void placed_waits_for_the_invalidation(void **state)
{
    struct cross *x = calloc(1, sizeof *x);
    struct end *as, *bs, *bc;
    struct still still = {.blocked = false};
    NDK_RESULT_EX result;
    NDK_SGE sge;

    (void)state;
    assert_non_null(x);
    as = &x->a.server, bs = &x->b.server, bc = &x->b.client;
    /* Without CRC one system call is given a MiB of the chain: more than both socket buffers take.
     */
    end_open(&x->a.client, "shards=3,crc=0,tcp_buffer=65536");
    end_open_apart(as, "crc=0,tcp_buffer=65536", home_of(&x->a.client));
    listen_on(as->adapter, "127.0.0.1", &x->a.listening);
    pair_connect(&x->a);
    server_of_b(x, home_of(&x->a.client));
    end_open_apart(bc, "completion=placed", home_of(&x->a.client));
    listen_on(as->adapter, "127.0.0.1", &x->b.listening);
    pair_connect(&x->b);
    make_memory(x->a.client.pd, REGION, RIGHTS, &x->client);
    make_fast(x);
    assert_int_equal(as->qp->Dispatch->NdkFastRegister(
                         as->qp, x, x->fast, PAGES, x->lam->AdapterPageArray, 0, PAGES * 4096,
                         x->fast_data, NDK_OP_FLAG_ALLOW_REMOTE_WRITE),
                     STATUS_SUCCESS);
    assert_int_equal(queue_next(&as->initiator).Status, STATUS_SUCCESS);
    x->token = x->fast->Dispatch->NdkGetRemoteTokenFromMr(x->fast);
    sge = (NDK_SGE){.VirtualAddress = x->fast_data,
                    .Length = PAGES * 4096,
                    .MemoryRegionToken = x->fast->Dispatch->NdkGetLocalTokenFromMr(x->fast)};
    x->a.client.receive.context = &still;
    x->a.client.receive.in_callback = stand_still;
    x->a.client.qp->Dispatch->NdkReceive(x->a.client.qp, NULL, NULL, 0);
    x->a.client.receive.cq->Dispatch->NdkArmCq(x->a.client.receive.cq, NDK_CQ_NOTIFY_ANY);
    as->qp->Dispatch->NdkSend(as->qp, NULL, NULL, 0, 0);
    wait_until(atomic_load(&still.blocked), "the callback of A's client");
    for (int i = 0; i < 32; i++)
        assert_int_equal(
            as->qp->Dispatch->NdkWrite(as->qp, x, &sge, 1, (UINT64)(uintptr_t)x->client.data,
                                       x->client.remote, i < 31 ? NDK_OP_FLAG_DEFER : 0),
            STATUS_SUCCESS);
    assert_int_equal(bs->qp->Dispatch->NdkReceive(bs->qp, x, NULL, 0), STATUS_SUCCESS);
    assert_int_equal(bc->qp->Dispatch->NdkSendAndInvalidate(bc->qp, x, NULL, 0, 0, x->token),
                     STATUS_SUCCESS);
    assert_false(queue_try(&bc->initiator, &result, 100));
    assert_false(queue_try(&bs->receive, &result, 0));
    atomic_store(&still.release, true);
    result = queue_next(&bs->receive);
    assert_int_equal(result.Status, STATUS_SUCCESS);
    assert_int_equal(result.Type, NdkOperationTypeReceiveAndInvalidate);
    assert_int_equal(queue_next(&bc->initiator).Status, STATUS_SUCCESS);
    /* A's Writes that had not begun found no region. */
    for (int i = 0; i < 33; i++)
        queue_next(&as->initiator);
    x->a.client.receive.in_callback = NULL;
    pair_close(&x->b);
    CLOSE(x->a.server.connector, NdkCloseConnector);
    x->a.server.connector = NULL;
    CLOSE(x->fast, NdkCloseMr);
    as->adapter->Dispatch->NdkReleaseLAM(as->adapter, x->lam);
    IoFreeMdl(x->mdl);
    free(x->fast_data);
    free(x->lam);
    free_memory(&x->client);
    pair_close(&x->a);
    free(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_region_goes_while_it_is_accessed),
        cmocka_unit_test(octets_in_a_full_socket_hold_their_region),
        cmocka_unit_test(one_connection_invalidates_under_another),
        cmocka_unit_test(placed_waits_for_the_invalidation),
    };
    const char *text = getenv("SOFTNDK_TEST_SEED");
    unsigned seed = text ? (unsigned)strtoul(text, NULL, 0) : (unsigned)test_now_ms();

    printf("SOFTNDK_TEST_SEED=%u\n", seed);
    srand(seed);
    return cmocka_run_group_tests_name("race_memory", tests, NULL, NULL);
}
