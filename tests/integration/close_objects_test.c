// SPDX-License-Identifier: MIT
/*
 * Closing, object by object, in every completion mode: one callback for a close that pended and
 * none for one that did not; pending requests are ended first; antecedents pend until the
 * completion of their last successor has returned; whole connections closed in any order.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ends.h"

/* ---- completions that note when they began and ended ---- */

struct done {
    atomic_uint calls, begin, end; /* begin, end: numbers of clock, 0: not yet */
    unsigned stay_ms;
    NTSTATUS returned, status;
};

static atomic_uint clock_now;

static void done_run(struct done *done, NTSTATUS status)
{
    atomic_fetch_add(&done->calls, 1);
    atomic_store(&done->begin, atomic_fetch_add(&clock_now, 1) + 1);
    done->status = status;
    if (done->stay_ms)
        test_sleep_ms(done->stay_ms);
    atomic_store(&done->end, atomic_fetch_add(&clock_now, 1) + 1);
}

static VOID done_close(PVOID context)
{
    done_run(context, STATUS_SUCCESS);
}

static VOID done_request(PVOID context, NTSTATUS status)
{
    done_run(context, status);
}

static NDK_FN_CLOSE_OBJECT close_slot(NDK_OBJECT_HEADER *header)
{
    void *object = header;

    switch (header->ObjectType) {
    case NdkObjectTypeCq:
        return ((NDK_CQ *)object)->Dispatch->NdkCloseCq;
    case NdkObjectTypeQp:
        return ((NDK_QP *)object)->Dispatch->NdkCloseQp;
    case NdkObjectTypeMr:
        return ((NDK_MR *)object)->Dispatch->NdkCloseMr;
    case NdkObjectTypePd:
        return ((NDK_PD *)object)->Dispatch->NdkClosePd;
    case NdkObjectTypeConnector:
        return ((NDK_CONNECTOR *)object)->Dispatch->NdkCloseConnector;
    default:
        assert_int_equal(header->ObjectType, NdkObjectTypeListener);
        return ((NDK_LISTENER *)object)->Dispatch->NdkCloseListener;
    }
}

static void start_close(NDK_OBJECT_HEADER *header, struct done *done)
{
    done->returned = close_slot(header)(header, done_close, done);
    if (done->returned == STATUS_SUCCESS)
        atomic_store(&done->begin, atomic_fetch_add(&clock_now, 1) + 1);
    else
        assert_int_equal(done->returned, STATUS_PENDING);
}

static void wait_closed(struct done *done)
{
    if (done->returned == STATUS_PENDING)
        wait_until(atomic_load(&done->end) != 0, "a close completion");
}

/* Once the adapter is closed no callback can be on its way. */
static void expect_counted(const struct done *done)
{
    assert_int_equal(atomic_load(&done->calls), done->returned == STATUS_PENDING);
}

/* ---- modes ---- */

static char random_mode[32];
static const char *const modes[] = {"never", "always", "early", random_mode};

static void set_mode(const char *mode)
{
    assert_int_equal(softndk_set_pend(mode), STATUS_SUCCESS);
}

/* ---- C1: each kind, idle ---- */

struct env {
    NDK_ADAPTER *adapter;
    NDK_PD *pd;
    struct queue queue, made;
    struct listening listening;
};

static NDK_OBJECT_HEADER *make_cq(struct env *env)
{
    make_queue(env->adapter, 16, &env->made);
    return &env->made.cq->Header;
}

static NDK_QP *make_qp(NDK_PD *pd, NDK_CQ *receive, NDK_CQ *initiator)
{
    struct wait w;
    NDK_QP *qp = NULL;
    NTSTATUS status;

    wait_init(&w);
    status = pd->Dispatch->NdkCreateQp(pd, receive, initiator, NULL, 16, 16, 2, 2, 0, wait_create,
                                       &w, &qp);
    assert_int_equal(wait_end(&w, status), STATUS_SUCCESS);
    return status == STATUS_PENDING ? (NDK_QP *)(void *)w.object : qp;
}

static NDK_OBJECT_HEADER *make_qp_header(struct env *env)
{
    return &make_qp(env->pd, env->queue.cq, env->queue.cq)->Header;
}

static NDK_OBJECT_HEADER *make_mr(struct env *env)
{
    struct wait w;
    NDK_MR *mr = NULL;
    NTSTATUS status;

    wait_init(&w);
    status = env->pd->Dispatch->NdkCreateMr(env->pd, FALSE, wait_create, &w, &mr);
    assert_int_equal(wait_end(&w, status), STATUS_SUCCESS);
    return status == STATUS_PENDING ? w.object : &mr->Header;
}

static NDK_OBJECT_HEADER *make_pd_header(struct env *env)
{
    return &make_pd(env->adapter)->Header;
}

static NDK_OBJECT_HEADER *make_connector_header(struct env *env)
{
    return &make_connector(env->adapter)->Header;
}

static NDK_OBJECT_HEADER *make_listening(struct env *env)
{
    listen_on(env->adapter, "127.0.0.1", &env->listening);
    return &env->listening.listener->Header;
}

static const struct kind {
    const char *name;
    NDK_OBJECT_HEADER *(*make)(struct env *env);
    bool idle; /* nothing but the handle: closed inline in mode never */
} kinds[] = {
    {"cq", make_cq, true},
    {"qp", make_qp_header, true},
    {"mr", make_mr, true},
    {"pd", make_pd_header, true},
    {"connector", make_connector_header, true},
    {"listener", make_listening, false},
};
#define KINDS (sizeof kinds / sizeof kinds[0])
#define TURNS 8

static void idle_objects(void **state)
{
    (void)state;
    for (int m = 0; m < 4; m++) {
        struct done done[KINDS][TURNS], pd_done = {.stay_ms = 0}, cq_done = {.stay_ms = 0};
        struct env env;

        memset(done, 0, sizeof done);
        set_mode(modes[m]);
        env.adapter = open_adapter(NULL);
        env.pd = make_pd(env.adapter);
        make_queue(env.adapter, 16, &env.queue);
        for (unsigned k = 0; k < KINDS; k++)
            for (unsigned i = 0; i < TURNS; i++) {
                start_close(kinds[k].make(&env), &done[k][i]);
                if (m == 0 && kinds[k].idle)
                    assert_int_equal(done[k][i].returned, STATUS_SUCCESS);
                if (m == 1 || m == 2)
                    assert_int_equal(done[k][i].returned, STATUS_PENDING);
                if (i % 2)
                    wait_closed(&done[k][i]);
            }
        start_close(&env.pd->Header, &pd_done);
        start_close(&env.queue.cq->Header, &cq_done);
        softndk_close_adapter(env.adapter);
        for (unsigned k = 0; k < KINDS; k++)
            for (unsigned i = 0; i < TURNS; i++)
                expect_counted(&done[k][i]);
        expect_counted(&pd_done);
        expect_counted(&cq_done);
    }
}

/* ---- C6, C7: an antecedent first ---- */

static void antecedents_first(void **state)
{
    (void)state;
    for (int m = 0; m < 4; m++)
        for (int which = 0; which < 4; which++) {
            struct done antecedent = {.stay_ms = 0}, successor = {.stay_ms = 30}, other[3];
            struct queue receive, initiator;
            NDK_OBJECT_HEADER *first, *second;
            NDK_QP *qp;
            struct env env;

            memset(other, 0, sizeof other);
            set_mode(modes[m]);
            env.adapter = open_adapter(NULL);
            env.pd = make_pd(env.adapter);
            make_queue(env.adapter, 16, &receive);
            make_queue(env.adapter, 16, &initiator);
            qp = make_qp(env.pd, receive.cq, initiator.cq);
            first = which == 0   ? &env.pd->Header
                    : which == 1 ? &receive.cq->Header
                    : which == 2 ? &initiator.cq->Header
                                 : &env.pd->Header;
            second = &qp->Header;
            if (which == 3) { /* the PD waits for a QP and an MR */
                start_close(second, &other[2]);
                second = make_mr(&env);
            }
            start_close(first, &antecedent);
            assert_int_equal(antecedent.returned, STATUS_PENDING);
            test_sleep_ms(20);
            assert_int_equal(atomic_load(&antecedent.calls), 0);
            start_close(second, &successor);
            wait_closed(&antecedent);
            if (successor.returned == STATUS_PENDING)
                assert_true(atomic_load(&successor.end) != 0 &&
                            atomic_load(&successor.end) < atomic_load(&antecedent.begin));
            if (which != 0 && which != 3)
                start_close(&env.pd->Header, &other[0]);
            if (which != 1)
                start_close(&receive.cq->Header, &other[1]);
            if (which != 2) {
                struct wait w;

                wait_init(&w);
                wait_end(&w,
                         close_slot(&initiator.cq->Header)(&initiator.cq->Header, wait_close, &w));
            }
            softndk_close_adapter(env.adapter);
            expect_counted(&antecedent);
            expect_counted(&successor);
        }
}

/* ---- whole connections, in any order ---- */

enum { CONNECTOR, QP, RECEIVE_CQ, INITIATOR_CQ, MR, PD, SIDE };
#define LISTENER (2 * SIDE)
#define OBJECTS  (LISTENER + 1)

static const struct {
    int antecedent, successor;
} edges[] = {
    {QP, CONNECTOR}, {RECEIVE_CQ, QP}, {INITIATOR_CQ, QP}, {PD, QP}, {PD, MR},
};

static void side_objects(const struct end *end, const struct memory *memory,
                         NDK_OBJECT_HEADER **out)
{
    out[CONNECTOR] = &end->connector->Header;
    out[QP] = &end->qp->Header;
    out[RECEIVE_CQ] = &end->receive.cq->Header;
    out[INITIATOR_CQ] = &end->initiator.cq->Header;
    out[MR] = &memory->mr->Header;
    out[PD] = &end->pd->Header;
}

static void expect_before(const struct done *successor, const struct done *antecedent)
{
    if (successor->returned != STATUS_PENDING)
        return;
    assert_true(atomic_load(&successor->end) < atomic_load(&antecedent->begin));
}

static void expect_edges(const struct done *done)
{
    for (int side = 0; side < 2; side++)
        for (size_t i = 0; i < sizeof edges / sizeof edges[0]; i++)
            expect_before(&done[side * SIDE + edges[i].successor],
                          &done[side * SIDE + edges[i].antecedent]);
    expect_before(&done[SIDE + CONNECTOR], &done[LISTENER]); /* side 1 accepted */
}

static void free_pages(struct memory *memory)
{
    IoFreeMdl(memory->mdl);
    free(memory->data);
}

static void one_order(const int *order, unsigned stay_ms)
{
    struct pair pair;
    struct memory memory[2];
    struct done done[OBJECTS];
    NDK_OBJECT_HEADER *objects[OBJECTS];
    NDK_ADAPTER *adapters[2];

    /* A long patience: an end that lingers notices when there is nothing to wait for. */
    pair_open(&pair, "127.0.0.1", "linger_ms=20000", "linger_ms=20000");
    adapters[0] = pair.client.adapter;
    adapters[1] = pair.server.adapter;
    make_memory(pair.client.pd, 4096, NDK_MR_FLAG_ALLOW_LOCAL_WRITE, &memory[0]);
    make_memory(pair.server.pd, 4096, NDK_MR_FLAG_ALLOW_LOCAL_WRITE, &memory[1]);
    for (int i = 0; i < 3; i++) {
        NDK_SGE sge = memory_sge(&memory[1], 0, 4096);

        pair.server.qp->Dispatch->NdkReceive(pair.server.qp, &pair, &sge, 1);
        sge = memory_sge(&memory[0], 0, 4096);
        pair.client.qp->Dispatch->NdkSend(pair.client.qp, &pair, &sge, i < 2, 0);
    }
    side_objects(&pair.client, &memory[0], objects);
    side_objects(&pair.server, &memory[1], objects + SIDE);
    objects[LISTENER] = &pair.listening.listener->Header;
    memset(done, 0, sizeof done);
    for (int i = 0; i < OBJECTS; i++)
        done[i].stay_ms = stay_ms;
    for (int i = 0; i < OBJECTS; i++)
        start_close(objects[order[i]], &done[order[i]]);
    softndk_close_adapter(adapters[0]);
    softndk_close_adapter(adapters[1]);
    for (int i = 0; i < OBJECTS; i++)
        expect_counted(&done[i]);
    expect_edges(done);
    free_pages(&memory[0]);
    free_pages(&memory[1]);
}

static void connections_in_any_order(void **state)
{
    /* successors first; antecedents first; then shuffled */
    int order[OBJECTS];

    (void)state;
    for (int m = 0; m < 4; m++)
        for (int turn = 0; turn < 12; turn++) {
            set_mode(modes[m]);
            for (int i = 0; i < OBJECTS; i++)
                order[i] = turn == 1 ? OBJECTS - 1 - i : i;
            for (int i = OBJECTS - 1; turn > 1 && i > 0; i--) {
                int j = rand() % (i + 1), other = order[i];

                order[i] = order[j];
                order[j] = other;
            }
            one_order(order, turn % 3);
        }
}

/* ---- C3, C4a: what pends is ended, and has returned, before the close completes ---- */

static void expect_ended(const struct done *request, const struct done *closed)
{
    assert_int_equal(atomic_load(&request->calls), 1);
    assert_true(atomic_load(&request->end) < atomic_load(&closed->begin));
}

enum pending { PENDING_CONNECT, PENDING_ACCEPT, PENDING_COMPLETE, PENDING_DISCONNECT };

static void close_pending(enum pending what)
{
    struct done connect = {.stay_ms = 5}, accept = {.stay_ms = 5}, third = {.stay_ms = 5};
    struct done closed = {.stay_ms = 0}, server_closed = {.stay_ms = 0};
    SOCKADDR_INET local;
    struct pair pair;
    NDK_CONNECTOR *k;

    end_open(&pair.server, NULL);
    end_open(&pair.client, NULL);
    listen_on(pair.server.adapter, "127.0.0.1", &pair.listening);
    local = local_of(&pair.listening);
    k = make_connector(pair.client.adapter);
    assert_int_equal(
        k->Dispatch->NdkConnect(k, pair.client.qp, (PSOCKADDR)&local, pair.listening.address_length,
                                (PSOCKADDR)&pair.listening.address, pair.listening.address_length,
                                1, 1, NULL, 0, done_request, &connect),
        STATUS_PENDING);
    pair.server.connector = next_incoming(&pair.listening);
    if (what != PENDING_CONNECT) {
        accept.returned = pair.server.connector->Dispatch->NdkAcceptEx(
            pair.server.connector, pair.server.qp, 1, 1, NULL, 0, end_disconnected, &pair.server,
            done_request, &accept);
        assert_int_equal(accept.returned, STATUS_PENDING);
        wait_until(atomic_load(&connect.end) != 0, "the connect");
        assert_int_equal(connect.status, STATUS_SUCCESS);
    }
    if (what == PENDING_COMPLETE || what == PENDING_DISCONNECT)
        third.returned = k->Dispatch->NdkCompleteConnectEx(k, end_disconnected, &pair.client,
                                                           done_request, &third);
    if (what == PENDING_DISCONNECT) {
        wait_until(atomic_load(&third.end) != 0, "the complete connect");
        wait_until(atomic_load(&accept.end) != 0, "the accept");
        memset(&third, 0, sizeof third);
        third.returned = k->Dispatch->NdkDisconnect(k, done_request, &third);
        assert_int_equal(third.returned, STATUS_PENDING);
    }
    if (what == PENDING_ACCEPT) { /* here the accepting side closes, while its accept pends */
        start_close(&pair.server.connector->Header, &server_closed);
        wait_closed(&server_closed);
        expect_ended(&accept, &server_closed);
        assert_int_not_equal(accept.status, STATUS_SUCCESS);
        pair.server.connector = NULL;
    }
    start_close(&k->Header, &closed);
    wait_closed(&closed);
    expect_ended(&connect, &closed);
    if (what == PENDING_CONNECT)
        assert_int_not_equal(connect.status, STATUS_SUCCESS);
    if (third.returned == STATUS_PENDING)
        expect_ended(&third, &closed);
    pair_close(&pair);
    assert_int_equal(atomic_load(&connect.calls), 1);
    expect_counted(&closed);
}

static void pending_requests_end_first(void **state)
{
    (void)state;
    for (int m = 0; m < 4; m++)
        for (enum pending what = PENDING_CONNECT; what <= PENDING_DISCONNECT; what++)
            for (int turn = 0; turn < 3; turn++) {
                set_mode(modes[m]);
                close_pending(what);
            }
}

/* Receives of a QP that is closed complete as cancelled, with and without an open connector. */
static void a_closed_qp_flushes(void **state)
{
    (void)state;
    for (int m = 0; m < 4; m++)
        for (int connected = 0; connected < 2; connected++) {
            struct done closed = {.stay_ms = 0};
            struct end *end;
            struct pair pair;

            set_mode(modes[m]);
            end_open(&pair.server, NULL);
            end_open(&pair.client, NULL);
            listen_on(pair.server.adapter, "127.0.0.1", &pair.listening);
            if (connected)
                pair_connect(&pair);
            end = &pair.client;
            for (uintptr_t i = 0; i < 20; i++)
                assert_int_equal(end->qp->Dispatch->NdkReceive(end->qp, (PVOID)i, NULL, 0),
                                 STATUS_SUCCESS);
            start_close(&end->qp->Header, &closed);
            for (uintptr_t i = 0; i < 20; i++) {
                NDK_RESULT_EX result = queue_next(&end->receive);

                assert_int_equal(result.Status, STATUS_CANCELLED);
                assert_ptr_equal(result.RequestContext, (PVOID)i);
            }
            if (connected) {
                assert_int_equal(closed.returned, STATUS_PENDING);
                assert_int_equal(atomic_load(&closed.calls), 0);
                CLOSE(end->connector, NdkCloseConnector);
                end->connector = NULL;
            }
            wait_closed(&closed);
            end->qp = NULL;
            pair_close(&pair);
            expect_counted(&closed);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(idle_objects),
        cmocka_unit_test(antecedents_first),
        cmocka_unit_test(connections_in_any_order),
        cmocka_unit_test(pending_requests_end_first),
        cmocka_unit_test(a_closed_qp_flushes),
    };
    const char *text = getenv("SOFTNDK_TEST_SEED");
    unsigned seed = text ? (unsigned)strtoul(text, NULL, 0) : (unsigned)test_now_ms();

    printf("SOFTNDK_TEST_SEED=%u\n", seed);
    srand(seed);
    snprintf(random_mode, sizeof random_mode, "random:%u", seed);
    return cmocka_run_group_tests_name("close_objects", tests, NULL, NULL);
}
