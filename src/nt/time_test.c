// SPDX-License-Identifier: MIT
/*
 * Tests of time.c, and of sleeping: units, epochs, processors.
 */
#define _GNU_SOURCE 1
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "nt/nt_testing.h"

#define MS 10000ll /* in units of 100 ns */

static void system_time_counts_from_1601(void **state)
{
    LARGE_INTEGER before, now;
    time_t unix_time;

    (void)state;
    KeQuerySystemTime(&before);
    unix_time = time(NULL);
    KeQuerySystemTime(&now);
    assert_true(now.QuadPart >= before.QuadPart);
    /* 369 years, 89 of them leap years */
    assert_in_range(now.QuadPart / 10000000 - (LONGLONG)unix_time, (369 * 365 + 89) * 86400ll - 5,
                    (369 * 365 + 89) * 86400ll + 5);
}

static void the_counter_runs_at_its_frequency(void **state)
{
    LARGE_INTEGER frequency = {.QuadPart = 0}, first, last, before, after;

    (void)state;
    first = KeQueryPerformanceCounter(&frequency);
    assert_int_equal(frequency.QuadPart, 10000000);
    KeQuerySystemTime(&before);
    os_sleep_us(20000);
    KeQuerySystemTime(&after);
    last = KeQueryPerformanceCounter(NULL);
    assert_true(last.QuadPart - first.QuadPart >= 20 * MS);
    assert_true(last.QuadPart - first.QuadPart >= after.QuadPart - before.QuadPart - MS);
}

static void sleeping_is_relative_or_absolute(void **state)
{
    LARGE_INTEGER interval, now;
    LONGLONG start;

    (void)state;
    start = KeQueryPerformanceCounter(NULL).QuadPart;
    interval.QuadPart = -15 * MS;
    assert_int_equal(KeDelayExecutionThread(KernelMode, FALSE, &interval), STATUS_SUCCESS);
    assert_true(KeQueryPerformanceCounter(NULL).QuadPart - start >= 15 * MS);

    KeQuerySystemTime(&now);
    interval.QuadPart = now.QuadPart + 15 * MS;
    assert_int_equal(KeDelayExecutionThread(KernelMode, FALSE, &interval), STATUS_SUCCESS);
    KeQuerySystemTime(&now);
    assert_true(now.QuadPart >= interval.QuadPart);

    interval.QuadPart = 1; /* the year 1601 */
    assert_int_equal(KeDelayExecutionThread(KernelMode, FALSE, &interval), STATUS_SUCCESS);
    interval.QuadPart = 0;
    assert_int_equal(KeDelayExecutionThread(KernelMode, FALSE, &interval), STATUS_SUCCESS);
}

static void sleeping_needs_a_low_level(void **state)
{
    unsigned findings = nt_finding_count();
    LARGE_INTEGER interval = {.QuadPart = -1};

    (void)state;
    nt_irql_set(APC_LEVEL);
    KeDelayExecutionThread(KernelMode, FALSE, &interval);
    assert_int_equal(nt_finding_count(), findings);
    nt_irql_set(DISPATCH_LEVEL);
    KeDelayExecutionThread(KernelMode, FALSE, &interval);
    ASSERT_FINDING(findings, "KeDelayExecutionThread: IRQL too high");
    nt_irql_set(PASSIVE_LEVEL);
}

static void processors_are_numbered_below_their_count(void **state)
{
    ULONG count = KeQueryActiveProcessorCountEx(ALL_PROCESSOR_GROUPS), in_groups = 0;
    GROUP_AFFINITY affinity;
    PROCESSOR_NUMBER number;
    USHORT nodes = 0, on_node, on_nodes = 0;

    (void)state;
    assert_true(count >= 1);
    for (USHORT g = 0; KeQueryActiveProcessorCountEx(g); g++)
        in_groups += KeQueryActiveProcessorCountEx(g);
    assert_int_equal(in_groups, count);
    for (int i = 0; i < 100; i++) {
        ULONG n = KeGetCurrentProcessorNumberEx(&number);

        assert_true(n < count);
        assert_int_equal(number.Group * 64u + number.Number, n);
        assert_true(KeGetCurrentProcessorNumberEx(NULL) < count);
    }
    for (;; nodes++) {
        KeQueryNodeActiveAffinity(nodes, &affinity, &on_node);
        if (on_node == 0)
            break;
        assert_int_equal(affinity.Group, nodes);
        assert_int_equal(__builtin_popcountll(affinity.Mask), on_node);
        on_nodes = (USHORT)(on_nodes + on_node);
    }
    assert_int_equal(affinity.Mask, 0);
    assert_int_equal(on_nodes, count);
    assert_true(KeGetCurrentNodeNumber() < nodes);
    KeQueryNodeActiveAffinity(0, NULL, NULL);
}

/* On each processor that this process may use, the number is that one's rank. */
static void the_number_follows_the_thread(void **state)
{
    cpu_set_t all, one;
    ULONG rank = 0;

    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof all, &all), 0);
    (void)KeGetCurrentProcessorNumberEx(NULL); /* the ranks are taken here */
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        if (!CPU_ISSET(cpu, &all))
            continue;
        CPU_ZERO(&one);
        CPU_SET(cpu, &one);
        assert_int_equal(sched_setaffinity(0, sizeof one, &one), 0);
        assert_int_equal(KeGetCurrentProcessorNumberEx(NULL), rank++);
    }
    assert_int_equal(sched_setaffinity(0, sizeof all, &all), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(system_time_counts_from_1601),
        cmocka_unit_test(the_counter_runs_at_its_frequency),
        cmocka_unit_test(sleeping_is_relative_or_absolute),
        cmocka_unit_test(sleeping_needs_a_low_level),
        cmocka_unit_test(processors_are_numbered_below_their_count),
        cmocka_unit_test(the_number_follows_the_thread),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
