// SPDX-License-Identifier: MIT
/*
 * What the tests of completion queues share: an adapter on the loopback interface, a CQ whose
 * notification counts, entries that the test puts itself. One test includes it once.
 *
 * The engine may be stepped: then nothing happens but in settle() and in wait_for(), so that "not
 * yet" is a fact, not a matter of speed.
 */
#ifndef SOFTNDK_PROVIDER_CQ_TEST_H
#define SOFTNDK_PROVIDER_CQ_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <ntstatus.h>
#include <softndk.h>

#include "provider/adapter.h"
#include "provider/cq.h"

#define WAIT_US 20000000u

#define ERRORS    NDK_CQ_NOTIFY_ERRORS
#define ANY       NDK_CQ_NOTIFY_ANY
#define SOLICITED NDK_CQ_NOTIFY_SOLICITED

struct seen {
    struct cq *cq;
    atomic_uint calls, returns, inside, overlaps, after_close;
    _Atomic NTSTATUS status;   /* of the last notification */
    atomic_uint failures;      /* notifications that told of one */
    _Atomic uint64_t at_us;    /* when the last one was called */
    atomic_bool gated, closed; /* gated: the nth callback returns once gate is n */
    atomic_uint gate;
    void (*inside_do)(struct seen *seen);
};

static NDK_ADAPTER *adapter;
static bool stepped;
static unsigned still_open; /* CQs */
static uint64_t wait_us = WAIT_US;

static inline bool step_all(void)
{
    bool ran = false;

    for (unsigned i = 0; stepped && i < engine_shard_count(); i++)
        ran = engine_step(engine_shard_at(i), 0) || ran;
    return ran;
}

/* What was waited for in vain once is not waited for so long again. */
#define wait_for(condition)                                                                        \
    do {                                                                                           \
        uint64_t wait_end_ = os_now_us() + wait_us;                                                \
        while (!(condition) && os_now_us() < wait_end_)                                            \
            if (!step_all())                                                                       \
                os_sleep_us(50);                                                                   \
        if (!(condition))                                                                          \
            wait_us = WAIT_US / 100;                                                               \
        assert_true(condition);                                                                    \
    } while (0)

static inline VOID notified(PVOID context, NTSTATUS status)
{
    struct seen *seen = context;
    uint64_t limit = os_now_us() + WAIT_US;
    unsigned number;

    if (atomic_fetch_add(&seen->inside, 1) != 0)
        atomic_fetch_add(&seen->overlaps, 1);
    if (atomic_load(&seen->closed))
        atomic_fetch_add(&seen->after_close, 1);
    atomic_store(&seen->status, status);
    atomic_store(&seen->at_us, os_now_us());
    if (!NT_SUCCESS(status))
        atomic_fetch_add(&seen->failures, 1);
    number = atomic_fetch_add(&seen->calls, 1) + 1;
    if (seen->inside_do)
        seen->inside_do(seen);
    while (atomic_load(&seen->gated) && atomic_load(&seen->gate) < number && os_now_us() < limit)
        os_sleep_us(50);
    atomic_fetch_sub(&seen->inside, 1);
    atomic_fetch_add(&seen->returns, 1);
}

static inline NDK_CQ *ndk_cq(struct seen *seen)
{
    return (NDK_CQ *)(void *)seen->cq;
}

/* Never called in mode "never". */
static inline VOID created(PVOID context, NTSTATUS status, NDK_OBJECT_HEADER *object)
{
    (void)context;
    (void)status;
    (void)object;
    abort();
}

static inline void make(struct seen *seen, ULONG depth)
{
    NDK_CQ *cq = NULL;

    memset(seen, 0, sizeof *seen);
    assert_int_equal(
        adapter->Dispatch->NdkCreateCq(adapter, depth, notified, seen, NULL, created, NULL, &cq),
        STATUS_SUCCESS);
    seen->cq = cq_from(cq);
    still_open++;
}

static inline VOID closed(PVOID context)
{
    atomic_store(&((struct seen *)context)->closed, true);
}

static inline void end(struct seen *seen)
{
    NTSTATUS status = cq_dispatch.NdkCloseCq(&seen->cq->object.header, closed, seen);

    if (status == STATUS_PENDING)
        wait_for(atomic_load(&seen->closed));
    else
        assert_int_equal(status, STATUS_SUCCESS);
    atomic_store(&seen->closed, true);
    still_open--;
    assert_int_equal(atomic_load(&seen->overlaps), 0);
    assert_int_equal(atomic_load(&seen->after_close), 0);
}

static inline void arm(struct seen *seen, ULONG type)
{
    cq_dispatch.NdkArmCq(ndk_cq(seen), type);
}

static inline bool put(struct seen *seen, uintptr_t context, NTSTATUS status, bool solicits)
{
    const struct cq_entry entry = {
        .status = status, .context = (PVOID)context, .solicits = solicits};

    return cq_put(seen->cq, &entry, 1);
}

/* Ordinary successes, numbered from first. */
static inline void put_many(struct seen *seen, unsigned many, uintptr_t first)
{
    for (unsigned i = 0; i < many; i++)
        assert_true(put(seen, first + i, STATUS_SUCCESS, false));
}

static inline unsigned take(struct seen *seen, unsigned most)
{
    NDK_RESULT_EX results[64];

    return cq_dispatch.NdkGetCqResultsEx(ndk_cq(seen), results, most < 64 ? most : 64);
}

/* Takes all there is: their contexts must be numbered from first. */
static inline void take_numbered(struct seen *seen, unsigned many, uintptr_t first)
{
    NDK_RESULT result;

    for (unsigned i = 0; i < many; i++) {
        assert_int_equal(cq_dispatch.NdkGetCqResults(ndk_cq(seen), &result, 1), 1);
        assert_int_equal((uintptr_t)result.RequestContext, first + i);
    }
    assert_int_equal(cq_dispatch.NdkGetCqResults(ndk_cq(seen), &result, 1), 0);
}

/* What a put or an arm of this thread made due has run when an item pushed after it to the same
 * shard has. */
static inline void barrier_run(struct engine_item *item);
static atomic_bool barrier_done;
static struct engine_item barrier_item = {.run = barrier_run};

static inline void barrier_run(struct engine_item *item)
{
    (void)item;
    atomic_store(&barrier_done, true);
}

static inline void settle(struct seen *seen)
{
    if (stepped) {
        while (step_all())
            ;
        return;
    }
    atomic_store(&barrier_done, false);
    engine_defer(seen->cq->object.home, &barrier_item);
    wait_for(atomic_load(&barrier_done));
}

/* Notifications so far. */
static inline unsigned count(struct seen *seen)
{
    settle(seen);
    return atomic_load(&seen->calls);
}

static inline int open_it(void **state)
{
    NDK_VERSION version = {2, 1};

    (void)state;
    return softndk_open_adapter("lo", "shards=2", version, &adapter) == STATUS_SUCCESS ? 0 : -1;
}

static inline int close_it(void **state)
{
    (void)state;
    if (still_open == 0) /* else a test has failed, and the adapter would wait for its CQ */
        softndk_close_adapter(adapter);
    return 0;
}

/* The adapter joins the engine that was started before it. */
static inline int open_stepped(void **state)
{
    static const struct engine_config config = {.shards = 2, .stepped = true};

    stepped = true;
    return engine_get(&config) == 0 ? open_it(state) : -1;
}

static inline int close_stepped(void **state)
{
    close_it(state);
    if (still_open == 0)
        engine_put();
    return 0;
}

#endif
