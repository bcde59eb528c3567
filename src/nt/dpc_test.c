// SPDX-License-Identifier: MIT
/*
 * Tests of dpc.c: level and arguments, queuing once, removing, flushing, objects freed by their
 * routine.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "nt/nt_testing.h"

static NTSTATUS wait_for(PKEVENT event)
{
    LARGE_INTEGER t = {.QuadPart = -LIMIT_S * 10000000ll};

    return KeWaitForSingleObject(event, Executive, KernelMode, FALSE, &t);
}

struct seen {
    KEVENT done;
    PKDPC dpc;
    PVOID one, two;
    KIRQL irql;
    uint32_t thread;
    atomic_int calls;
};

static KDEFERRED_ROUTINE note;

static VOID note(PKDPC dpc, PVOID context, PVOID one, PVOID two)
{
    struct seen *s = context;

    s->dpc = dpc;
    s->one = one;
    s->two = two;
    s->irql = KeGetCurrentIrql();
    s->thread = os_thread_id();
    atomic_fetch_add(&s->calls, 1);
    KeSetEvent(&s->done, 0, FALSE);
}

static void routines_run_soon_at_dispatch_level(void **state)
{
    unsigned findings = nt_finding_count();
    PROCESSOR_NUMBER processor = {.Group = 0, .Number = 0};
    struct seen s = {.irql = 0};
    const KDPC_IMPORTANCE importances[] = {LowImportance, HighImportance, MediumHighImportance,
                                           MediumImportance};
    PKDEFERRED_ROUTINE routine = note;
    int a, b;
    KDPC dpc;

    (void)state;
    KeInitializeEvent(&s.done, SynchronizationEvent, FALSE);
    KeInitializeDpc(&dpc, routine, &s);
    assert_int_equal(dpc.Importance, MediumImportance);
    for (unsigned i = 0; i < 4; i++) {
        KeSetImportanceDpc(&dpc, importances[i]);
        assert_int_equal(dpc.Importance, importances[i]);
    }
    KeSetTargetProcessorDpc(&dpc, 0);
    assert_int_equal(KeSetTargetProcessorDpcEx(&dpc, &processor), STATUS_SUCCESS);
    processor.Number = 200;
    assert_int_equal(KeSetTargetProcessorDpcEx(&dpc, &processor), STATUS_INVALID_PARAMETER);
    assert_true(KeInsertQueueDpc(&dpc, &a, &b));
    assert_int_equal(wait_for(&s.done), STATUS_SUCCESS);
    assert_int_equal(s.irql, DISPATCH_LEVEL);
    assert_ptr_equal(s.dpc, &dpc);
    assert_ptr_equal(s.one, &a);
    assert_ptr_equal(s.two, &b);
    assert_true(s.thread != os_thread_id());
    assert_true(KeInsertQueueDpc(&dpc, NULL, NULL)); /* again */
    KeFlushQueuedDpcs();
    assert_int_equal(atomic_load(&s.calls), 2);
    assert_null(s.one);
    assert_false(KeRemoveQueueDpc(&dpc));
    assert_int_equal(nt_finding_count(), findings);
}

/* ---- with all threads occupied ----------------------------------------------------------------
 */

static atomic_int held, let_go;

static VOID hold(PKDPC dpc, PVOID context, PVOID one, PVOID two)
{
    uint64_t limit = os_now_us() + LIMIT_S * 1000000ull;

    (void)dpc;
    (void)context;
    (void)one;
    (void)two;
    atomic_fetch_add(&held, 1);
    while (!atomic_load(&let_go) && os_now_us() < limit)
        os_sleep_us(100);
}

enum { DPC_THREADS = 4 };

static void occupy(KDPC dpcs[DPC_THREADS])
{
    atomic_store(&held, 0);
    atomic_store(&let_go, 0);
    for (int i = 0; i < DPC_THREADS; i++) {
        KeInitializeDpc(&dpcs[i], hold, NULL);
        assert_true(KeInsertQueueDpc(&dpcs[i], NULL, NULL));
        AWAIT(atomic_load(&held) == i + 1);
    }
}

static void one_is_queued_once_and_can_be_removed(void **state)
{
    KDPC busy[DPC_THREADS], dpc, behind;
    struct seen s = {.irql = 0}, t = {.irql = 0};
    int a;

    (void)state;
    KeInitializeEvent(&s.done, NotificationEvent, FALSE);
    KeInitializeEvent(&t.done, NotificationEvent, FALSE);
    KeInitializeDpc(&dpc, note, &s);
    KeInitializeDpc(&behind, note, &t);
    occupy(busy);
    assert_true(KeInsertQueueDpc(&dpc, &a, NULL));
    assert_false(KeInsertQueueDpc(&dpc, NULL, NULL));
    assert_true(KeInsertQueueDpc(&behind, NULL, NULL));
    assert_true(KeRemoveQueueDpc(&behind)); /* the last */
    assert_true(KeInsertQueueDpc(&behind, NULL, NULL));
    assert_true(KeRemoveQueueDpc(&dpc)); /* the first */
    assert_false(KeRemoveQueueDpc(&dpc));
    assert_true(KeInsertQueueDpc(&dpc, &a, NULL));
    atomic_store(&let_go, 1);
    KeFlushQueuedDpcs();
    assert_int_equal(atomic_load(&s.calls), 1);
    assert_int_equal(atomic_load(&t.calls), 1);
    assert_ptr_equal(s.one, &a);
}

static void initializing_one_that_is_queued_is_a_finding(void **state)
{
    unsigned findings = nt_finding_count();
    KDPC busy[DPC_THREADS], dpc;
    struct seen s = {.irql = 0};

    (void)state;
    KeInitializeEvent(&s.done, NotificationEvent, FALSE);
    KeInitializeDpc(&dpc, note, &s);
    occupy(busy);
    assert_true(KeInsertQueueDpc(&dpc, NULL, NULL));
    KeInitializeDpc(&dpc, note, &s);
    ASSERT_FINDING(findings, "KeInitializeDpc: ");
    atomic_store(&let_go, 1);
    KeFlushQueuedDpcs();
    assert_int_equal(atomic_load(&s.calls), 0); /* it was taken off */
    memset(&dpc, 0, sizeof dpc);
    assert_false(KeInsertQueueDpc(&dpc, NULL, NULL));
    ASSERT_FINDING(findings + 1, "is not initialized");
}

/* ---- flushing -------------------------------------------------------------------------------- */

struct flushed {
    KDPC dpc;
    atomic_int over;
};

static VOID take_time(PKDPC dpc, PVOID context, PVOID one, PVOID two)
{
    struct flushed *f = context;

    (void)dpc;
    (void)one;
    (void)two;
    os_sleep_us(20000);
    atomic_store(&f->over, 1);
}

static void a_flush_waits_for_those_that_run(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) {
        struct flushed f = {.over = 0};

        KeInitializeDpc(&f.dpc, take_time, &f);
        assert_true(KeInsertQueueDpc(&f.dpc, NULL, NULL));
        KeFlushQueuedDpcs();
        assert_int_equal(atomic_load(&f.over), 1); /* and f may go */
    }
}

static atomic_int stop, rounds;

static VOID queue_yourself(PKDPC dpc, PVOID context, PVOID one, PVOID two)
{
    (void)context;
    (void)one;
    (void)two;
    atomic_fetch_add(&rounds, 1);
    if (!atomic_load(&stop))
        KeInsertQueueDpc(dpc, NULL, NULL);
}

/* A flush is for what is queued now: one that queues itself for ever does not hold it up. */
static void a_flush_ends_though_more_is_queued(void **state)
{
    KDPC dpc;

    (void)state;
    KeInitializeDpc(&dpc, queue_yourself, NULL);
    assert_true(KeInsertQueueDpc(&dpc, NULL, NULL));
    AWAIT(atomic_load(&rounds) > 10);
    KeFlushQueuedDpcs();
    atomic_store(&stop, 1);
    KeFlushQueuedDpcs(); /* one of these two saw the last one queued */
    KeFlushQueuedDpcs();
    assert_false(KeRemoveQueueDpc(&dpc));
}

static VOID flush_in_dpc(PKDPC dpc, PVOID context, PVOID one, PVOID two)
{
    (void)dpc;
    (void)one;
    (void)two;
    KeFlushQueuedDpcs();
    KeSetEvent(context, 0, FALSE);
}

static void a_flush_in_a_dpc_is_a_finding_and_no_hang(void **state)
{
    unsigned findings = nt_finding_count();
    KEVENT done;
    KDPC dpc;

    (void)state;
    KeInitializeEvent(&done, NotificationEvent, FALSE);
    KeInitializeDpc(&dpc, flush_in_dpc, &done);
    assert_true(KeInsertQueueDpc(&dpc, NULL, NULL));
    assert_int_equal(wait_for(&done), STATUS_SUCCESS);
    ASSERT_FINDING(findings, "KeFlushQueuedDpcs: IRQL too high");
    KeFlushQueuedDpcs();
}

/* ---- objects that go ------------------------------------------------------------------------- */

static atomic_int freed;

static VOID free_yourself(PKDPC dpc, PVOID context, PVOID one, PVOID two)
{
    (void)context;
    (void)one;
    (void)two;
    memset(dpc, 0xee, sizeof *dpc);
    free(dpc);
    atomic_fetch_add(&freed, 1);
}

static void a_routine_may_free_its_dpc(void **state)
{
    enum { MANY = 2000 };

    (void)state;
    for (int i = 0; i < MANY; i++) {
        KDPC *dpc = malloc(sizeof *dpc);

        assert_non_null(dpc);
        KeInitializeDpc(dpc, free_yourself, NULL);
        assert_true(KeInsertQueueDpc(dpc, NULL, NULL));
    }
    KeFlushQueuedDpcs();
    assert_int_equal(atomic_load(&freed), MANY);
}

static VOID return_lowered(PKDPC dpc, PVOID context, PVOID one, PVOID two)
{
    (void)dpc;
    (void)context;
    (void)one;
    (void)two;
    KeLowerIrql(PASSIVE_LEVEL);
}

static void a_routine_returns_as_it_was_called(void **state)
{
    unsigned findings = nt_finding_count();
    KDPC dpc;

    (void)state;
    KeInitializeDpc(&dpc, return_lowered, NULL);
    assert_true(KeInsertQueueDpc(&dpc, NULL, NULL));
    KeFlushQueuedDpcs();
    ASSERT_FINDING(findings, "returned with something held (IRQL 0, need 2;");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(routines_run_soon_at_dispatch_level),
        cmocka_unit_test(one_is_queued_once_and_can_be_removed),
        cmocka_unit_test(initializing_one_that_is_queued_is_a_finding),
        cmocka_unit_test(a_flush_waits_for_those_that_run),
        cmocka_unit_test(a_flush_ends_though_more_is_queued),
        cmocka_unit_test(a_flush_in_a_dpc_is_a_finding_and_no_hang),
        cmocka_unit_test(a_routine_may_free_its_dpc),
        cmocka_unit_test(a_routine_returns_as_it_was_called),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
