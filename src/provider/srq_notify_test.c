// SPDX-License-Identifier: MIT
/*
 * The notification of a shared receive queue: when it fires and when it does not, once an arm,
 * never two at a time, never after the close completion; NdkModifySrq; creation and close in both
 * halves.
 */
#include "object_test.h"

#include "conn/conn_internal.h"
#include "provider/cq.h"
#include "provider/qp.h"
#include "provider/srq.h"

#define wait_for(condition)                                                                        \
    do {                                                                                           \
        uint64_t wait_end_ = os_now_us() + 3 * TEST_WAIT_US;                                       \
        while (!(condition) && os_now_us() < wait_end_)                                            \
            os_sleep_us(50);                                                                       \
        assert_true(condition);                                                                    \
    } while (0)

struct seen {
    NDK_PD *pd;
    struct srq *srq;
    struct srq_waiter waiter;
    struct conn_queue into;
    uintptr_t posted, taken;
    atomic_uint calls, returns, inside, overlaps, wrong;
    atomic_bool gated; /* the nth callback returns once gate is n */
    atomic_uint gate;
    void (*inside_do)(struct seen *seen);
};

static VOID notified(PVOID context, NTSTATUS status)
{
    struct seen *seen = context;
    uint64_t limit = os_now_us() + 3 * TEST_WAIT_US;
    unsigned number;

    if (atomic_fetch_add(&seen->inside, 1) != 0)
        atomic_fetch_add(&seen->overlaps, 1);
    if (status != STATUS_SUCCESS || KeGetCurrentIrql() != DISPATCH_LEVEL || !engine_in_item())
        atomic_fetch_add(&seen->wrong, 1);
    number = atomic_fetch_add(&seen->calls, 1) + 1;
    if (seen->inside_do)
        seen->inside_do(seen);
    while (atomic_load(&seen->gated) && atomic_load(&seen->gate) < number && os_now_us() < limit)
        os_sleep_us(50);
    atomic_fetch_sub(&seen->inside, 1);
    atomic_fetch_add(&seen->returns, 1);
}

static NDK_SRQ *face(struct seen *seen)
{
    return (NDK_SRQ *)(void *)seen->srq;
}

static NDK_PD *make_pd(void **state)
{
    NDK_ADAPTER *ndk = (NDK_ADAPTER *)*state;
    NDK_PD *pd = NULL;

    assert_int_equal(ndk->Dispatch->NdkCreatePd(ndk, test_create_done, NULL, &pd), STATUS_SUCCESS);
    return pd;
}

static void make(void **state, struct seen *seen, ULONG depth, ULONG threshold)
{
    NDK_SRQ *srq = NULL;

    memset(seen, 0, sizeof *seen);
    seen->pd = make_pd(state);
    assert_int_equal(seen->pd->Dispatch->NdkCreateSrq(seen->pd, depth, 1, threshold, notified, seen,
                                                      NULL, test_create_done, NULL, &srq),
                     STATUS_SUCCESS);
    seen->srq = srq_from(srq);
    conn_queue_init(&seen->into, 1, 1, 0);
}

static void end(struct seen *seen)
{
    struct test_done done = {0};
    NTSTATUS status = srq_dispatch.NdkCloseSrq(&seen->srq->object.header, test_close_done, &done);

    if (status == STATUS_PENDING)
        test_wait_returns(&done, 1);
    conn_queue_destroy(&seen->into);
    status = seen->pd->Dispatch->NdkClosePd(&seen->pd->Header, test_close_done, &done);
    assert_int_equal(status, STATUS_SUCCESS);
    assert_int_equal(atomic_load(&seen->overlaps) + atomic_load(&seen->wrong), 0);
}

static void post(struct seen *seen, unsigned count)
{
    for (; count; count--)
        assert_int_equal(srq_dispatch.NdkSrqReceive(face(seen), (PVOID)++seen->posted, NULL, 0),
                         STATUS_SUCCESS);
}

static void take(struct seen *seen, unsigned count)
{
    for (; count; count--) {
        assert_true(srq_take(seen->srq, &seen->waiter, NULL, &seen->into, false));
        assert_int_equal((uintptr_t)conn_queue_peek(&seen->into)->context, ++seen->taken);
        conn_queue_advance(&seen->into);
        conn_queue_release_head(&seen->into);
    }
}

static NTSTATUS modify(struct seen *seen, ULONG depth, ULONG threshold)
{
    return srq_dispatch.NdkModifySrq(face(seen), depth, threshold, test_request_done, NULL);
}

static void rearm(struct seen *seen, ULONG threshold)
{
    assert_int_equal(modify(seen, 0, threshold), STATUS_SUCCESS);
}

/* Notifications so far: what this thread made due has run when an item pushed after it to the same
 * shard has. */
static atomic_bool barrier_done;

static void barrier_run(struct engine_item *item)
{
    (void)item;
    atomic_store(&barrier_done, true);
}

static unsigned count(struct seen *seen)
{
    for (int i = 0; i < 2; i++) { /* twice: a notification that was due again has run too */
        static struct engine_item item = {.run = barrier_run};

        atomic_store(&barrier_done, false);
        engine_defer(seen->srq->object.home, &item);
        wait_for(atomic_load(&barrier_done));
    }
    return atomic_load(&seen->calls);
}

/* ---- when it fires -------------------------------------------------------------------------- */

/* Creation arms, but an empty new queue is below any threshold and nobody is told. */
static void creation_arms_for_the_first_fall(void **state)
{
    struct seen seen;

    make(state, &seen, 16, 3);
    assert_int_equal(count(&seen), 0);
    post(&seen, 2);
    take(&seen, 2); /* it never was at the threshold */
    assert_int_equal(count(&seen), 0);
    post(&seen, 3);
    assert_int_equal(count(&seen), 0);
    take(&seen, 1);
    assert_int_equal(count(&seen), 1);
    take(&seen, 2);
    assert_int_equal(count(&seen), 1);
    end(&seen);
}

static void one_arm_is_one_notification(void **state)
{
    struct seen seen;

    make(state, &seen, 16, 2);
    for (int i = 0; i < 10; i++) { /* up and down across it */
        post(&seen, 3);
        take(&seen, 3);
    }
    assert_int_equal(count(&seen), 1);
    post(&seen, 4);
    rearm(&seen, 2);
    assert_int_equal(count(&seen), 1);
    take(&seen, 2);
    assert_int_equal(count(&seen), 1); /* 2 are left: not below */
    take(&seen, 1);
    assert_int_equal(count(&seen), 2);
    post(&seen, 5);
    take(&seen, 6);
    assert_int_equal(count(&seen), 2);
    end(&seen);
}

static void modify_fires_at_once_when_it_is_below(void **state)
{
    struct seen seen;

    make(state, &seen, 16, 0);
    post(&seen, 3);
    rearm(&seen, 3);
    assert_int_equal(count(&seen), 0);
    rearm(&seen, 4); /* 3 are below 4 */
    assert_int_equal(count(&seen), 1);
    take(&seen, 3);
    assert_int_equal(count(&seen), 1);
    rearm(&seen, 1);
    assert_int_equal(count(&seen), 2);
    post(&seen, 1);
    take(&seen, 1);
    assert_int_equal(count(&seen), 2);
    end(&seen);
}

/* A threshold of 0 never fires, and in a modify it keeps threshold and arming as they are. */
static void zero_keeps_what_is(void **state)
{
    struct seen seen;

    make(state, &seen, 16, 0);
    post(&seen, 3);
    take(&seen, 3);
    rearm(&seen, 0); /* there is nothing to arm */
    post(&seen, 2);
    take(&seen, 2);
    assert_int_equal(count(&seen), 0);
    post(&seen, 4);
    rearm(&seen, 2);
    rearm(&seen, 0); /* still armed */
    take(&seen, 3);
    assert_int_equal(count(&seen), 1);
    rearm(&seen, 0); /* not armed again, though 1 is below 2 */
    assert_int_equal(count(&seen), 1);
    post(&seen, 4);
    take(&seen, 5);
    assert_int_equal(count(&seen), 1);
    end(&seen);
}

/* The later threshold counts. */
static void a_threshold_replaces_the_one_before(void **state)
{
    struct seen seen;

    make(state, &seen, 16, 8);
    post(&seen, 10);
    rearm(&seen, 3);
    take(&seen, 7);
    assert_int_equal(count(&seen), 0);
    rearm(&seen, 2);
    take(&seen, 1);
    assert_int_equal(count(&seen), 0);
    take(&seen, 1);
    assert_int_equal(count(&seen), 1);
    end(&seen);
}

static void without_a_callback_nothing_happens(void **state)
{
    struct test_done done = {0};
    struct seen seen;
    NDK_SRQ *srq = NULL;

    make(state, &seen, 16, 0);
    assert_int_equal(seen.pd->Dispatch->NdkCreateSrq(seen.pd, 16, 1, 2, NULL, NULL, NULL,
                                                     test_create_done, NULL, &srq),
                     STATUS_SUCCESS);
    assert_int_equal(srq->Dispatch->NdkCloseSrq(&seen.srq->object.header, test_close_done, &done),
                     STATUS_SUCCESS);
    seen.srq = srq_from(srq);
    post(&seen, 3);
    take(&seen, 3);
    rearm(&seen, 5);
    assert_int_equal(count(&seen), 0);
    end(&seen); /* nothing holds it */
}

/* ---- never two at a time -------------------------------------------------------------------- */

/* The consumer's way: post again and arm again in the callback. */
static void refill(struct seen *seen)
{
    if (atomic_load(&seen->calls) < 50) {
        post(seen, 2);
        rearm(seen, 2);
        take(seen, 2);
    }
}

static void armed_again_in_the_callback(void **state)
{
    struct seen seen;

    make(state, &seen, 16, 0);
    seen.inside_do = refill;
    rearm(&seen, 1); /* from here on it is the callback that posts and takes */
    wait_for(atomic_load(&seen.returns) == 50);
    assert_int_equal(count(&seen), 50);
    end(&seen);
}

struct other {
    struct engine_item item;
    struct seen *seen;
};

static void rearm_there(struct engine_item *item)
{
    struct other *other = CONTAINING_RECORD(item, struct other, item);

    rearm(other->seen, 5);
    atomic_store(&barrier_done, true);
}

/* Arms of the other shard that fire while a notification is running wait for it, as one. */
static void a_notification_waits_for_the_one_that_runs(void **state)
{
    struct seen seen;

    make(state, &seen, 16, 0);
    atomic_store(&seen.gated, true);
    rearm(&seen, 5);
    wait_for(atomic_load(&seen.calls) == 1);
    for (unsigned i = 0; i < 4; i++) {
        struct other other = {.item.run = rearm_there, .seen = &seen};

        atomic_store(&barrier_done, false);
        engine_defer(engine_shard_at(1 - engine_shard_index(seen.srq->object.home)), &other.item);
        wait_for(atomic_load(&barrier_done));
    }
    os_sleep_us(20000);
    assert_int_equal(atomic_load(&seen.calls), 1);
    atomic_store(&seen.gate, 1);
    wait_for(atomic_load(&seen.calls) == 2);
    atomic_store(&seen.gate, 2);
    assert_int_equal(count(&seen), 2);
    atomic_store(&seen.gated, false);
    end(&seen);
}

/* The close completes behind the notification, which is the last but one callback. */
static void a_close_waits_for_the_notification(void **state)
{
    struct test_done done = {.begin = "closed"};
    struct seen seen;

    make(state, &seen, 16, 0);
    atomic_store(&seen.gated, true);
    rearm(&seen, 5);
    wait_for(atomic_load(&seen.calls) == 1);
    rearm(&seen, 6); /* due again */
    assert_int_equal(srq_dispatch.NdkCloseSrq(&seen.srq->object.header, test_close_done, &done),
                     STATUS_PENDING);
    test_expect_still("");
    atomic_store(&seen.gate, 1);
    wait_for(atomic_load(&seen.calls) == 2);
    test_expect_still("");
    atomic_store(&seen.gate, 2);
    test_expect("closed ");
    test_wait_returns(&done, 1);
    assert_int_equal(atomic_load(&seen.calls), 2);
    assert_int_equal(atomic_load(&seen.overlaps), 0);
    conn_queue_destroy(&seen.into);
    TEST_CLOSED(&done, seen.pd->Dispatch->NdkClosePd(&seen.pd->Header, test_close_done, &done));
}

/* ---- depth ---------------------------------------------------------------------------------- */

static void the_depth_is_changed_or_nothing_is(void **state)
{
    static const struct {
        ULONG depth, threshold;
        NTSTATUS status;
        unsigned more; /* how many can be posted then, with 5 queued */
    } steps[] = {
        {4096, 0, STATUS_SUCCESS, 4091},
        {4097, 0, STATUS_INVALID_PARAMETER, 4091},
        {8, 0, STATUS_SUCCESS, 3},
        {4, 9, STATUS_INVALID_PARAMETER, 3},
        {5, 0, STATUS_SUCCESS, 0},
        {0, 0, STATUS_SUCCESS, 0},
        {1, 0, STATUS_INVALID_PARAMETER, 0},
        {6, 0, STATUS_SUCCESS, 1},
        {0xffffffffu, 9, STATUS_INVALID_PARAMETER, 1},
        {40, 0, STATUS_SUCCESS, 35},
    };
    struct seen seen;
    char text[256];

    make(state, &seen, 5, 0);
    post(&seen, 5);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        assert_int_equal(modify(&seen, steps[i].depth, steps[i].threshold), steps[i].status);
        post(&seen, steps[i].more);
        assert_int_equal(srq_dispatch.NdkSrqReceive(face(&seen), NULL, NULL, 0),
                         STATUS_NO_MORE_ENTRIES);
        take(&seen, steps[i].more);
    }
    assert_int_equal(modify(&seen, 3, 9), STATUS_INVALID_PARAMETER);
    assert_true(object_reason(&seen.srq->object, text, sizeof text));
    assert_non_null(
        strstr(text, ": NdkModifySrq: SrqDepth (have 3, need >= 5, the receives queued)"));
    assert_int_equal(count(&seen), 0); /* no threshold of a modify that failed */
    take(&seen, 5);
    end(&seen);
}

static void modify_in_both_halves(void **state)
{
    struct test_done done = {0};
    struct seen seen;

    make(state, &seen, 5, 0);
    post(&seen, 1);
    assert_true(pend_set("always"));
    assert_int_equal(srq_dispatch.NdkModifySrq(face(&seen), 4097, 0, test_request_done, &done),
                     STATUS_PENDING);
    test_wait_returns(&done, 1);
    assert_int_equal(done.status, STATUS_INVALID_PARAMETER);
    assert_int_equal(srq_dispatch.NdkModifySrq(face(&seen), 9, 2, test_request_done, &done),
                     STATUS_PENDING);
    test_wait_returns(&done, 2);
    assert_int_equal(done.status, STATUS_SUCCESS);
    assert_int_equal(done.irql, DISPATCH_LEVEL);
    wait_for(atomic_load(&seen.returns) == 1);
    assert_true(pend_set("early"));
    assert_int_equal(srq_dispatch.NdkModifySrq(face(&seen), 0, 0, test_request_done, &done),
                     STATUS_PENDING);
    assert_int_equal(atomic_load(&done.returns), 3);
    assert_true(pend_set("never"));
    assert_true(fail_set("NdkModifySrq:1:STATUS_INSUFFICIENT_RESOURCES"));
    assert_int_equal(modify(&seen, 0, 2), STATUS_INSUFFICIENT_RESOURCES);
    assert_int_equal(count(&seen), 1);
    post(&seen, 8);
    assert_int_equal(srq_dispatch.NdkSrqReceive(face(&seen), NULL, NULL, 0),
                     STATUS_NO_MORE_ENTRIES);
    end(&seen);
}

/* ---- birth and end -------------------------------------------------------------------------- */

struct birth {
    ULONG depth, sge;
    NTSTATUS status;
    const char *reason;
};

static const struct birth births[] = {
    {1, 0, STATUS_SUCCESS, NULL},
    {4096, 16, STATUS_SUCCESS, NULL},
    {0, 1, STATUS_INVALID_PARAMETER, ": NdkCreateSrq: SrqDepth (have 0, need 1..4096)"},
    {4097, 1, STATUS_INVALID_PARAMETER, ": NdkCreateSrq: SrqDepth (have 4097, need 1..4096)"},
    {1, 17, STATUS_INVALID_PARAMETER, ": NdkCreateSrq: MaxReceiveRequestSge (have 17, need <= 16)"},
};

static void creation_in_both_halves(void **state)
{
    NDK_PD *pd = make_pd(state);
    struct test_done done = {0}, closed = {0};
    char text[256];

    for (unsigned pend = 0; pend < 2; pend++)
        for (size_t i = 0; i < sizeof births / sizeof births[0]; i++) {
            NDK_SRQ *srq = NULL;
            unsigned before = atomic_load(&done.returns);
            NTSTATUS status;

            assert_true(pend_set(pend ? "always" : "never"));
            status = pd->Dispatch->NdkCreateSrq(pd, births[i].depth, births[i].sge, 0, NULL, NULL,
                                                NULL, test_create_done, &done, &srq);
            if (pend) {
                assert_int_equal(status, STATUS_PENDING);
                test_wait_returns(&done, before + 1);
                assert_null(srq);
                srq = (NDK_SRQ *)(void *)done.object;
                status = done.status;
            }
            assert_int_equal(status, births[i].status);
            if (births[i].reason) {
                assert_null(srq);
                assert_true(object_reason(&pd_from(pd)->object, text, sizeof text));
                assert_non_null(strstr(text, births[i].reason));
                continue;
            }
            assert_true(pend_set("never"));
            assert_int_equal(srq->Header.ObjectType, NdkObjectTypeSrq);
            assert_int_equal(srq->Dispatch->NdkCloseSrq(&srq->Header, test_close_done, &closed),
                             STATUS_SUCCESS);
        }
    assert_true(pend_set("never"));
    TEST_CLOSED(&closed, pd->Dispatch->NdkClosePd(&pd->Header, test_close_done, &closed));
}

static void creation_without_memory(void **state)
{
    NDK_PD *pd = make_pd(state);
    struct test_done done = {0}, closed = {0};

    for (unsigned pend = 0; pend < 2; pend++) {
        NDK_SRQ *srq = NULL;
        NTSTATUS status;

        assert_true(pend_set(pend ? "always" : "never"));
        assert_true(fail_set("memory:1")); /* the object; the request has its own */
        status = pd->Dispatch->NdkCreateSrq(pd, 1, 1, 0, NULL, NULL, NULL, test_create_done, &done,
                                            &srq);
        if (pend) {
            assert_int_equal(status, STATUS_PENDING);
            test_wait_returns(&done, 1);
            assert_null(done.object);
            status = done.status;
        }
        assert_int_equal(status, STATUS_INSUFFICIENT_RESOURCES);
        assert_null(srq);
    }
    assert_true(pend_set("never"));
    TEST_CLOSED(&closed, pd->Dispatch->NdkClosePd(&pd->Header, test_close_done, &closed));
}

static void an_adapter_without_srqs_says_so(void **state)
{
    struct adapter *adapter = test_adapter_with("max_srq_depth=0");
    void *own = adapter;
    NDK_PD *pd = make_pd(&own);
    struct test_done done = {0};
    NDK_SRQ *srq = NULL;
    char text[256];

    (void)state;
    assert_int_equal(adapter->info.MaxSrqDepth, 0);
    for (ULONG depth = 0; depth < 2; depth++) {
        assert_int_equal(pd->Dispatch->NdkCreateSrq(pd, depth, 1, 0, NULL, NULL, NULL,
                                                    test_create_done, &done, &srq),
                         STATUS_INVALID_PARAMETER);
        assert_true(object_reason(&pd_from(pd)->object, text, sizeof text));
        assert_non_null(strstr(text, ": NdkCreateSrq: SRQ not supported, MaxSrqDepth 0"));
    }
    TEST_CLOSED(&done, pd->Dispatch->NdkClosePd(&pd->Header, test_close_done, &done));
    adapter_close(adapter);
}

static VOID cq_notified(PVOID context, NTSTATUS status)
{
    (void)context;
    (void)status;
}

static NDK_CQ *make_cq(struct adapter *adapter)
{
    NDK_ADAPTER *ndk = (NDK_ADAPTER *)(void *)adapter;
    NDK_CQ *cq = NULL;

    assert_int_equal(
        ndk->Dispatch->NdkCreateCq(ndk, 16, cq_notified, NULL, NULL, test_create_done, NULL, &cq),
        STATUS_SUCCESS);
    return cq;
}

static void a_queue_pair_needs_an_srq_of_its_pd(void **state)
{
    struct adapter *adapter = *state;
    struct test_done done = {0}, closed = {0};
    NDK_CQ *cq = make_cq(adapter);
    struct seen own, other;
    NDK_QP *qp = NULL;

    make(state, &own, 16, 0);
    make(state, &other, 16, 0);
    for (unsigned pend = 0; pend < 2; pend++) {
        const struct {
            NDK_CQ *receive, *initiator;
            NDK_SRQ *srq;
            ULONG depth, sge, inline_octets;
            const char *reason;
        } rows[] = {
            {cq, cq, NULL, 1, 1, 0, "pSrq is NULL or no SRQ"},
            {cq, cq, (NDK_SRQ *)(void *)cq, 1, 1, 0, "pSrq is NULL or no SRQ"},
            {cq, cq, face(&other), 1, 1, 0, "is of another PD"},
            {NULL, cq, face(&own), 1, 1, 0, "a CQ is NULL"},
            {cq, NULL, face(&own), 1, 1, 0, "a CQ is NULL"},
            {cq, (NDK_CQ *)(void *)face(&own), face(&own), 1, 1, 0, "a CQ is NULL"},
            {cq, cq, face(&own), 4097, 1, 0, "InitiatorQueueDepth (have 4097, need <= 4096)"},
            {cq, cq, face(&own), 1, 17, 0, "MaxInitiatorRequestSge (have 17, need <= 16)"},
            {cq, cq, face(&own), 1, 1, 257, "InlineDataSize (have 257, need <= 256)"},
        };

        assert_true(pend_set(pend ? "always" : "never"));
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            unsigned before = atomic_load(&done.returns);
            char text[256];
            NTSTATUS status = own.pd->Dispatch->NdkCreateQpWithSrq(
                own.pd, rows[i].receive, rows[i].initiator, rows[i].srq, NULL, rows[i].depth,
                rows[i].sge, rows[i].inline_octets, test_create_done, &done, &qp);

            if (pend) {
                assert_int_equal(status, STATUS_PENDING);
                test_wait_returns(&done, before + 1);
                status = done.status;
                assert_null(done.object);
            }
            assert_int_equal(status, STATUS_INVALID_PARAMETER);
            assert_true(object_reason(&pd_from(own.pd)->object, text, sizeof text));
            assert_non_null(strstr(text, ": NdkCreateQpWithSrq: "));
            assert_non_null(strstr(text, rows[i].reason));
        }
        assert_true(fail_set("memory:1"));
        {
            unsigned before = atomic_load(&done.returns);
            NTSTATUS status = own.pd->Dispatch->NdkCreateQpWithSrq(
                own.pd, cq, cq, face(&own), NULL, 1, 1, 0, test_create_done, &done, &qp);

            if (pend) {
                assert_int_equal(status, STATUS_PENDING);
                test_wait_returns(&done, before + 1);
                status = done.status;
            }
            assert_int_equal(status, STATUS_INSUFFICIENT_RESOURCES);
        }
        assert_null(qp);
    }
    assert_true(pend_set("never"));
    end(&own);
    end(&other);
    assert_int_equal(cq->Dispatch->NdkCloseCq(&cq->Header, test_close_done, &closed),
                     STATUS_SUCCESS);
}

/* The SRQ is the queue pair's antecedent; the queue pair takes no receives of its own and leaves
 * those of the SRQ alone when it is flushed and closed. */
static void a_close_waits_for_the_queue_pairs(void **state)
{
    struct test_done closed = {.begin = "srq"}, gone = {0};
    struct adapter *adapter = *state;
    NDK_CQ *cq = make_cq(adapter);
    struct seen seen;
    NDK_QP *qps[2] = {NULL, NULL};
    NDK_RESULT result;
    char text[256];

    make(state, &seen, 16, 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(seen.pd->Dispatch->NdkCreateQpWithSrq(seen.pd, cq, cq, face(&seen), NULL,
                                                               1, 1, 0, test_create_done, NULL,
                                                               &qps[i]),
                         STATUS_SUCCESS);
    assert_int_equal(qps[0]->Header.ObjectType, NdkObjectTypeQp);
    assert_int_equal(qps[0]->Dispatch->NdkReceive(qps[0], NULL, NULL, 0),
                     STATUS_INVALID_DEVICE_REQUEST);
    assert_true(object_reason(&qp_from(qps[0])->object, text, sizeof text));
    assert_non_null(strstr(text, ": NdkReceive: the QP receives through srq #"));
    post(&seen, 5);
    qps[0]->Dispatch->NdkFlush(qps[0]);
    assert_int_equal(qps[0]->Dispatch->NdkCloseQp(&qps[0]->Header, test_close_done, &gone),
                     STATUS_SUCCESS);
    assert_int_equal(conn_queue_outstanding(&seen.srq->queue), 5);
    assert_int_equal(cq->Dispatch->NdkGetCqResults(cq, &result, 1), 0);
    assert_int_equal(srq_dispatch.NdkCloseSrq(&seen.srq->object.header, test_close_done, &closed),
                     STATUS_PENDING);
    test_expect_still("");
    assert_int_equal(qps[1]->Dispatch->NdkCloseQp(&qps[1]->Header, test_close_done, &gone),
                     STATUS_SUCCESS);
    test_expect("srq ");
    test_wait_returns(&closed, 1);
    assert_int_equal(cq->Dispatch->NdkGetCqResults(cq, &result, 1), 0);
    conn_queue_destroy(&seen.into);
    TEST_CLOSED(&gone, seen.pd->Dispatch->NdkClosePd(&seen.pd->Header, test_close_done, &gone));
    TEST_CLOSED(&gone, cq->Dispatch->NdkCloseCq(&cq->Header, test_close_done, &gone));
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, test_setup, test_teardown)
    const struct CMUnitTest tests[] = {
        TEST(creation_arms_for_the_first_fall),
        TEST(one_arm_is_one_notification),
        TEST(modify_fires_at_once_when_it_is_below),
        TEST(zero_keeps_what_is),
        TEST(a_threshold_replaces_the_one_before),
        TEST(without_a_callback_nothing_happens),
        TEST(armed_again_in_the_callback),
        TEST(a_notification_waits_for_the_one_that_runs),
        TEST(a_close_waits_for_the_notification),
        TEST(the_depth_is_changed_or_nothing_is),
        TEST(modify_in_both_halves),
        TEST(creation_in_both_halves),
        TEST(creation_without_memory),
        TEST(an_adapter_without_srqs_says_so),
        TEST(a_queue_pair_needs_an_srq_of_its_pd),
        TEST(a_close_waits_for_the_queue_pairs),
    };

    return cmocka_run_group_tests_name("srq_notify", tests, test_group_setup, NULL);
}
