// SPDX-License-Identifier: MIT
/*
 * Tests of spinlock.c: exclusion, levels, a holder without a processor, memory freed by the next
 * holder, misuse.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "nt/nt_testing.h"
#include "os/sanitize.h"

static void levels_go_up_and_back(void **state)
{
    unsigned findings = nt_finding_count();
    static KSPIN_LOCK lock; /* needs no initialization */
    KSPIN_LOCK inner;
    KLOCK_QUEUE_HANDLE handle;
    KIRQL old = HIGH_LEVEL;

    (void)state;
    KeInitializeSpinLock(&inner);
    assert_true(KeTestSpinLock(&lock));
    old = KeAcquireSpinLockRaiseToDpc(&lock);
    assert_int_equal(old, PASSIVE_LEVEL);
    assert_int_equal(KeGetCurrentIrql(), DISPATCH_LEVEL);
    assert_false(KeTestSpinLock(&lock));
    KeAcquireSpinLockAtDpcLevel(&inner);
    KeReleaseSpinLockFromDpcLevel(&inner);
    assert_int_equal(KeGetCurrentIrql(), DISPATCH_LEVEL);
    KeReleaseSpinLock(&lock, old);
    assert_int_equal(KeGetCurrentIrql(), PASSIVE_LEVEL);
    assert_true(KeTestSpinLock(&lock));

    KeInitializeSpinLock(&lock);
    KeRaiseIrql(APC_LEVEL, &old);
    KeAcquireInStackQueuedSpinLock(&lock, &handle);
    assert_int_equal(handle.OldIrql, APC_LEVEL);
    assert_ptr_equal(handle.LockQueue.Lock, &lock);
    KeReleaseInStackQueuedSpinLock(&handle);
    assert_int_equal(KeGetCurrentIrql(), APC_LEVEL);
    KeLowerIrql(old);

    old = KeRaiseIrqlToDpcLevel();
    KeAcquireInStackQueuedSpinLockAtDpcLevel(&lock, &handle);
    assert_false(KeTestSpinLock(&lock));
    KeReleaseInStackQueuedSpinLockFromDpcLevel(&handle);
    assert_true(KeTestSpinLock(&lock));
    KeLowerIrql(old);
    assert_int_equal(nt_finding_count(), findings);
}

static void the_attempt_succeeds_only_when_nobody_holds_it(void **state)
{
    unsigned findings = nt_finding_count();
    KSPIN_LOCK lock;
    KIRQL old;

    (void)state;
    KeInitializeSpinLock(&lock);
    old = KeRaiseIrqlToDpcLevel();
    assert_true(KeTryToAcquireSpinLockAtDpcLevel(&lock));
    assert_false(KeTryToAcquireSpinLockAtDpcLevel(&lock));
    KeReleaseSpinLockFromDpcLevel(&lock);
    assert_true(KeTryToAcquireSpinLockAtDpcLevel(&lock));
    KeReleaseSpinLockFromDpcLevel(&lock);
    KeLowerIrql(old);
    assert_int_equal(nt_finding_count(), findings);
}

/* ---- threads -------------------------------------------------------------------------------- */

enum { THREADS = 4, ROUNDS = 20000 };

struct shared {
    KSPIN_LOCK lock;
    long count; /* under the lock, no atomic */
    bool queued;
};

static void count_up(void *arg)
{
    struct shared *s = arg;

    for (int i = 0; i < ROUNDS; i++) {
        KLOCK_QUEUE_HANDLE handle;
        KIRQL old;

        if (s->queued) {
            KeAcquireInStackQueuedSpinLock(&s->lock, &handle);
            s->count++;
            KeReleaseInStackQueuedSpinLock(&handle);
        } else {
            KeAcquireSpinLock(&s->lock, &old);
            s->count++;
            KeReleaseSpinLock(&s->lock, old);
        }
    }
}

static void one_holder_at_a_time(void **state)
{
    (void)state;
    for (int queued = 0; queued < 2; queued++) {
        struct shared s = {.queued = queued};
        struct os_thread *threads[THREADS];

        KeInitializeSpinLock(&s.lock);
        for (int i = 0; i < THREADS; i++)
            assert_int_equal(os_thread_start(&threads[i], "spin", count_up, &s), 0);
        for (int i = 0; i < THREADS; i++)
            os_thread_join(threads[i]);
        assert_int_equal(s.count, THREADS * ROUNDS);
    }
}

struct slow {
    KSPIN_LOCK lock;
    atomic_int asked;
    uint64_t cpu_us; /* that the asking thread used for it */
};

static void ask(void *arg)
{
    struct slow *s = arg;
    uint64_t before;
    KIRQL old;

    atomic_store(&s->asked, 1);
    before = os_thread_cpu_us();
    KeAcquireSpinLock(&s->lock, &old);
    s->cpu_us = os_thread_cpu_us() - before;
    KeReleaseSpinLock(&s->lock, old);
}

/* The holder is away for a second, as one without a processor would be; who asks must not burn that
 * time. Processor time is compared, which another load on the machine does not add to. */
static void waiting_for_an_absent_holder_costs_little(void **state)
{
    struct slow s = {.cpu_us = 0};
    struct os_thread *thread;
    KIRQL old;

    (void)state;
    KeInitializeSpinLock(&s.lock);
    KeAcquireSpinLock(&s.lock, &old);
    assert_int_equal(os_thread_start(&thread, "ask", ask, &s), 0);
    AWAIT(atomic_load(&s.asked));
    os_sleep_us(1000000);
    KeReleaseSpinLock(&s.lock, old);
    os_thread_join(thread);
    assert_in_range(s.cpu_us, 0, 50000);
}

/* Two threads take turns at locks that the second one frees: a release that touched the lock after
 * it let go of it would touch freed memory, which the sanitizers see. */
struct turns {
    KSPIN_LOCK *_Atomic lock;
    atomic_int done;
};

static void free_what_is_given(void *arg)
{
    struct turns *t = arg;
    KSPIN_LOCK *lock;
    KIRQL old;

    while (!atomic_load(&t->done)) {
        lock = atomic_exchange(&t->lock, NULL);
        if (!lock) {
            os_cpu_relax();
            continue;
        }
        KeAcquireSpinLock(lock, &old);
        KeReleaseSpinLock(lock, old);
        free(lock);
    }
}

static void the_next_holder_may_free_the_lock(void **state)
{
    struct turns t = {.lock = NULL};
    struct os_thread *thread;
    KIRQL old;

    (void)state;
    assert_int_equal(os_thread_start(&thread, "free", free_what_is_given, &t), 0);
    for (int i = 0; i < 5000; i++) {
        KSPIN_LOCK *lock = malloc(sizeof *lock);

        assert_non_null(lock);
        KeInitializeSpinLock(lock);
        KeAcquireSpinLock(lock, &old);
        atomic_store(&t.lock, lock);
        KeReleaseSpinLock(lock, old);
        AWAIT(!atomic_load(&t.lock));
    }
    atomic_store(&t.done, 1);
    os_thread_join(thread);
}

/* ---- misuse --------------------------------------------------------------------------------- */

static void taking_it_twice_is_a_finding_and_no_hang(void **state)
{
    unsigned findings = nt_finding_count();
    KSPIN_LOCK lock;
    KIRQL old, inner;

    (void)state;
    KeInitializeSpinLock(&lock);
    KeAcquireSpinLock(&lock, &old);
    KeAcquireSpinLock(&lock, &inner);
    ASSERT_FINDING(findings, "this thread holds the lock");
    KeReleaseSpinLock(&lock, inner);
    assert_false(KeTestSpinLock(&lock)); /* still held once */
    KeReleaseSpinLock(&lock, old);
    assert_true(KeTestSpinLock(&lock));
    assert_int_equal(nt_finding_count(), findings + 1);
}

static void take_it(void *lock)
{
    KIRQL old;

    KeAcquireSpinLock((PKSPIN_LOCK)lock, &old);
}

static void releasing_what_is_not_held_is_a_finding(void **state)
{
    unsigned findings = nt_finding_count();
    struct os_thread *thread;
    KSPIN_LOCK lock;
    KIRQL old;

    (void)state;
    KeInitializeSpinLock(&lock);
    old = KeRaiseIrqlToDpcLevel();
    KeReleaseSpinLockFromDpcLevel(&lock);
    ASSERT_FINDING(findings, "held by nobody");
    KeLowerIrql(old);
    if (sanitize_thread()) /* it would tell of the wrong thread itself */
        return;
    assert_int_equal(os_thread_start(&thread, "take", take_it, &lock), 0);
    os_thread_join(thread);
    assert_int_equal(nt_finding_count(), findings + 2); /* a thread ended with a lock */
    old = KeRaiseIrqlToDpcLevel();
    KeReleaseSpinLockFromDpcLevel(&lock);
    ASSERT_FINDING(findings + 2, "held by another thread");
    assert_true(KeTestSpinLock(&lock)); /* and released all the same */
    KeLowerIrql(old);
}

static void levels_that_do_not_fit_are_findings(void **state)
{
    unsigned findings = nt_finding_count();
    KSPIN_LOCK lock, other;
    KIRQL old, older;

    (void)state;
    KeInitializeSpinLock(&lock);
    KeInitializeSpinLock(&other);
    KeAcquireSpinLockAtDpcLevel(&lock); /* at PASSIVE_LEVEL */
    ASSERT_FINDING(findings, "IRQL too low (have 0, need >= 2)");
    KeReleaseSpinLockFromDpcLevel(&lock);
    assert_int_equal(nt_finding_count(), findings + 2);

    KeRaiseIrql(HIGH_LEVEL, &old);
    KeAcquireSpinLock(&lock, &older); /* above DISPATCH_LEVEL */
    assert_int_equal(nt_finding_count(), findings + 3);
    KeReleaseSpinLock(&lock, HIGH_LEVEL); /* no level that an acquire gives */
    assert_int_equal(nt_finding_count(), findings + 4);
    KeLowerIrql(old);

    KeAcquireSpinLock(&lock, &old);
    KeAcquireSpinLock(&other, &older);
    KeReleaseSpinLock(&lock, old); /* in the wrong order: PASSIVE_LEVEL with the other held */
    ASSERT_FINDING(findings + 4, "with another spin lock held");
    nt_irql_set(DISPATCH_LEVEL);
    KeLowerIrql(PASSIVE_LEVEL);
    ASSERT_FINDING(findings + 5, "KeLowerIrql: a spin lock is held");
    nt_irql_set(DISPATCH_LEVEL);
    KeReleaseSpinLock(&other, PASSIVE_LEVEL);
    assert_int_equal(nt_finding_count(), findings + 6);
}

static void both_kinds_of_calls_on_one_lock_are_a_finding(void **state)
{
    unsigned findings = nt_finding_count();
    KLOCK_QUEUE_HANDLE handle;
    KSPIN_LOCK lock;
    KIRQL old;

    (void)state;
    KeInitializeSpinLock(&lock);
    KeAcquireSpinLock(&lock, &old);
    KeReleaseSpinLock(&lock, old);
    KeAcquireInStackQueuedSpinLock(&lock, &handle);
    KeReleaseInStackQueuedSpinLock(&handle);
    ASSERT_FINDING(findings, "by ordinary and by queued calls");
    KeInitializeSpinLock(&lock); /* a new lock */
    KeAcquireInStackQueuedSpinLock(&lock, &handle);
    KeReleaseInStackQueuedSpinLock(&handle);
    assert_int_equal(nt_finding_count(), findings + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(levels_go_up_and_back),
        cmocka_unit_test(the_attempt_succeeds_only_when_nobody_holds_it),
        cmocka_unit_test(one_holder_at_a_time),
        cmocka_unit_test(waiting_for_an_absent_holder_costs_little),
        cmocka_unit_test(the_next_holder_may_free_the_lock),
        cmocka_unit_test(taking_it_twice_is_a_finding_and_no_hang),
        cmocka_unit_test(releasing_what_is_not_held_is_a_finding),
        cmocka_unit_test(levels_that_do_not_fit_are_findings),
        cmocka_unit_test(both_kinds_of_calls_on_one_lock_are_a_finding),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
