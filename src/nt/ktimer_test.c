// SPDX-License-Identifier: MIT
/*
 * Tests of ktimer.c: both kinds, both clocks, periods, setting again, cancelling, timers that go.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "nt/left.h"
#include "nt/nt_testing.h"

#define MS 10000ll /* in units of 100 ns */

static NTSTATUS wait_for(PKTIMER timer, int64_t timeout)
{
    LARGE_INTEGER t = {.QuadPart = timeout};

    return KeWaitForSingleObject(timer, Executive, KernelMode, FALSE, &t);
}

static NTSTATUS wait_long(PKTIMER timer)
{
    return wait_for(timer, -LIMIT_S * 1000 * MS);
}

static LARGE_INTEGER in(int64_t ms)
{
    return (LARGE_INTEGER){.QuadPart = -ms * MS};
}

static LARGE_INTEGER from_now(int64_t ms)
{
    LARGE_INTEGER now;

    KeQuerySystemTime(&now);
    now.QuadPart += ms * MS;
    return now;
}

static void a_timer_is_signalled_when_its_time_has_come(void **state)
{
    unsigned findings = nt_finding_count();
    size_t set = nt_left_count(NT_LEFT_TIMER);
    KTIMER timer;
    uint64_t start;

    (void)state;
    KeInitializeTimer(&timer);
    for (int turn = 0; turn < 3; turn++) {
        uint64_t before = os_mono_100ns();
        LARGE_INTEGER due[] = {in(20), from_now(20), in(20)};

        assert_int_equal(wait_for(&timer, 0), turn ? STATUS_SUCCESS : STATUS_TIMEOUT);
        start = os_mono_100ns();
        assert_false(KeSetTimer(&timer, due[turn], NULL));
        /* it is set, and that clears it, until it is due */
        assert_true(nt_left_count(NT_LEFT_TIMER) == set + 1 || os_mono_100ns() - before >= 20 * MS);
        assert_true(!KeReadStateTimer(&timer) || os_mono_100ns() - before >= 20 * MS);
        assert_int_equal(wait_long(&timer), STATUS_SUCCESS);
        if (turn != 1)
            assert_true(os_mono_100ns() - start >= 20 * MS);
        assert_true(KeReadStateTimer(&timer)); /* and it stays */
        assert_int_equal(wait_for(&timer, 0), STATUS_SUCCESS);
        assert_int_equal(nt_left_count(NT_LEFT_TIMER), set);
        assert_false(KeCancelTimer(&timer));
    }
    KeSetTimer(&timer, in(0), NULL); /* 0 and the past: at once */
    assert_int_equal(wait_long(&timer), STATUS_SUCCESS);
    KeSetTimer(&timer, from_now(-1000), NULL);
    assert_int_equal(wait_long(&timer), STATUS_SUCCESS);
    KeSetTimer(&timer, (LARGE_INTEGER){.QuadPart = 1}, NULL);
    assert_int_equal(wait_long(&timer), STATUS_SUCCESS);
    assert_int_equal(nt_finding_count(), findings);
}

static void a_synchronization_timer_satisfies_one_wait(void **state)
{
    KTIMER timer;

    (void)state;
    KeInitializeTimerEx(&timer, SynchronizationTimer);
    KeSetTimer(&timer, in(1), NULL);
    assert_int_equal(wait_long(&timer), STATUS_SUCCESS);
    assert_int_equal(wait_for(&timer, 0), STATUS_TIMEOUT);
    KeSetTimer(&timer, in(1), NULL);
    AWAIT(KeReadStateTimer(&timer));
    assert_int_equal(wait_for(&timer, 0), STATUS_SUCCESS);
    assert_false(KeReadStateTimer(&timer));
}

static void setting_again_moves_the_time(void **state)
{
    KTIMER timer;
    uint64_t start;

    (void)state;
    KeInitializeTimer(&timer);
    assert_false(KeSetTimer(&timer, in(3600000), NULL));
    assert_int_equal(wait_for(&timer, -5 * MS), STATUS_TIMEOUT);
    start = os_mono_100ns();
    assert_true(KeSetTimer(&timer, in(10), NULL)); /* earlier */
    assert_int_equal(wait_long(&timer), STATUS_SUCCESS);
    assert_true(os_mono_100ns() - start >= 10 * MS);
    for (BOOLEAN was_set = FALSE; !was_set;) {
        start = os_mono_100ns();
        assert_false(KeSetTimer(&timer, in(20), NULL));
        was_set = KeSetTimer(&timer, in(3600000), NULL); /* later */
        if (!was_set) {                                  /* the first one was due before */
            assert_true(os_mono_100ns() - start >= 20 * MS);
            assert_true(KeCancelTimer(&timer));
        }
    }
    assert_int_equal(wait_for(&timer, -30 * MS), STATUS_TIMEOUT);
    assert_true(KeCancelTimer(&timer));
    assert_false(KeCancelTimer(&timer));
    assert_int_equal(wait_for(&timer, -5 * MS), STATUS_TIMEOUT);
}

/* ---- order ----------------------------------------------------------------------------------- */

enum { MANY = 20 };

static atomic_int order[MANY], next_place;

static VOID note_place(PKDPC dpc, PVOID context, PVOID one, PVOID two)
{
    (void)dpc;
    (void)one;
    (void)two;
    atomic_store(&order[(intptr_t)context], atomic_fetch_add(&next_place, 1) + 1);
}

static void earlier_ones_come_first_by_either_clock(void **state)
{
    static KTIMER timers[MANY];
    static KDPC dpcs[MANY];
    uint64_t start = os_mono_100ns(), took;

    (void)state;
    /* 40 ms apart, set in another order, half of them absolute. */
    for (int i = 0; i < MANY; i++) {
        int n = i * 7 % MANY;

        KeInitializeTimer(&timers[n]);
        KeInitializeDpc(&dpcs[n], note_place, (PVOID)(intptr_t)n);
        KeSetTimer(&timers[n], n % 2 ? from_now(40 + 40 * n) : in(40 + 40 * n), &dpcs[n]);
    }
    took = os_mono_100ns() - start;
    for (int i = MANY - 1; i >= 0; i--)
        assert_int_equal(wait_long(&timers[i]), STATUS_SUCCESS);
    KeFlushQueuedDpcs();
    assert_int_equal(atomic_load(&next_place), MANY);
    /* A busy machine may bring neighbours together; those far apart keep their order. */
    for (int i = 0; i + 10 < MANY && took < 400 * MS; i++)
        assert_true(atomic_load(&order[i]) < atomic_load(&order[i + 10]));
}

/* ---- periods --------------------------------------------------------------------------------- */

struct ticks {
    atomic_int count;
    KIRQL irql;
};

static VOID tick(PKDPC dpc, PVOID context, PVOID one, PVOID two)
{
    struct ticks *t = context;

    (void)dpc;
    (void)one;
    (void)two;
    t->irql = KeGetCurrentIrql();
    atomic_fetch_add(&t->count, 1);
}

static void a_period_goes_on_until_it_is_cancelled(void **state)
{
    for (int absolute = 0; absolute < 2; absolute++) {
        struct ticks t = {.irql = 0};
        uint64_t start = os_mono_100ns();
        int count;
        KTIMER timer;
        KDPC dpc;

        (void)state;
        KeInitializeTimerEx(&timer, SynchronizationTimer);
        KeInitializeDpc(&dpc, tick, &t);
        assert_false(KeSetTimerEx(&timer, absolute ? from_now(5) : in(5), 5, &dpc));
        AWAIT(atomic_load(&t.count) >= 10);
        if (!absolute)
            assert_true(os_mono_100ns() - start >= 50 * MS);
        assert_int_equal(wait_long(&timer), STATUS_SUCCESS);
        assert_true(KeCancelTimer(&timer));
        KeFlushQueuedDpcs();
        count = atomic_load(&t.count);
        os_sleep_us(30000);
        assert_int_equal(atomic_load(&t.count), count);
        assert_int_equal(t.irql, DISPATCH_LEVEL);
    }
}

static void a_coalescable_timer_is_a_timer(void **state)
{
    KTIMER timer;

    (void)state;
    KeInitializeTimer(&timer);
    assert_false(KeSetCoalescableTimer(&timer, in(3), 0, 10, NULL));
    assert_int_equal(wait_long(&timer), STATUS_SUCCESS);
    assert_false(KeSetCoalescableTimer(&timer, in(3), 3, 10, NULL));
    assert_int_equal(wait_long(&timer), STATUS_SUCCESS);
    assert_true(KeCancelTimer(&timer));
}

/* ---- timers that go -------------------------------------------------------------------------- */

/* The waiter frees the timer as soon as the wait returns, and poisons it first. */
static void the_waiter_may_free_the_timer_at_once(void **state)
{
    (void)state;
    for (int i = 0; i < 500; i++) {
        KTIMER *timer = malloc(sizeof *timer);

        assert_non_null(timer);
        KeInitializeTimerEx(timer, i % 2 ? SynchronizationTimer : NotificationTimer);
        KeSetTimer(timer, (LARGE_INTEGER){.QuadPart = -1 - i % 200 * 10}, NULL);
        assert_int_equal(wait_long(timer), STATUS_SUCCESS);
        memset(timer, 0xa5, sizeof *timer);
        free(timer);
    }
}

static void after_a_cancel_the_timer_is_left_alone(void **state)
{
    (void)state;
    for (int i = 0; i < 2000; i++) {
        KTIMER *timer = malloc(sizeof *timer);

        assert_non_null(timer);
        KeInitializeTimer(timer);
        KeSetTimer(timer, (LARGE_INTEGER){.QuadPart = -1 - i % 500}, NULL);
        for (int turn = 0; turn < i % 300; turn++)
            os_cpu_relax();
        KeCancelTimer(timer); /* its time may have come just now, or not */
        memset(timer, 0xa5, sizeof *timer);
        free(timer);
    }
}

/* ---- misuse --------------------------------------------------------------------------------- */

static void misuse_is_found(void **state)
{
    unsigned findings = nt_finding_count();
    size_t set = nt_left_count(NT_LEFT_TIMER);
    KTIMER *timer = ExAllocatePool2(POOL_FLAG_NON_PAGED, sizeof *timer + 40, 'tseT');
    KTIMER none;

    (void)state;
    KeInitializeTimer(timer);
    KeSetTimer(timer, in(3600000), NULL);
    KeInitializeTimer(timer);
    ASSERT_FINDING(findings, "KeInitializeTimer: ");
    assert_int_equal(nt_left_count(NT_LEFT_TIMER), set);
    KeSetTimer(timer, from_now(3600000), NULL);
    ExFreePool(timer);
    ASSERT_FINDING(findings + 1, "a timer in block");
    assert_int_equal(nt_left_count(NT_LEFT_TIMER), set);
    memset(&none, 0x5a, sizeof none);
    assert_false(KeSetTimer(&none, in(1), NULL));
    ASSERT_FINDING(findings + 2, "KeSetTimer: ");
    assert_false(KeCancelTimer(&none));
    ASSERT_FINDING(findings + 3, "KeCancelTimer: ");
    KeInitializeTimer(&none);
    KeSetTimerEx(&none, in(1), -5, NULL);
    ASSERT_FINDING(findings + 4, "a negative period (have -5)");
    assert_int_equal(wait_long(&none), STATUS_SUCCESS);
    nt_irql_set(HIGH_LEVEL);
    KeSetTimer(&none, in(3600000), NULL);
    KeCancelTimer(&none);
    nt_irql_set(PASSIVE_LEVEL);
    assert_int_equal(nt_finding_count(), findings + 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_timer_is_signalled_when_its_time_has_come),
        cmocka_unit_test(a_synchronization_timer_satisfies_one_wait),
        cmocka_unit_test(setting_again_moves_the_time),
        cmocka_unit_test(earlier_ones_come_first_by_either_clock),
        cmocka_unit_test(a_period_goes_on_until_it_is_cancelled),
        cmocka_unit_test(a_coalescable_timer_is_a_timer),
        cmocka_unit_test(the_waiter_may_free_the_timer_at_once),
        cmocka_unit_test(after_a_cancel_the_timer_is_left_alone),
        cmocka_unit_test(misuse_is_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
