// SPDX-License-Identifier: MIT
/*
 * Tests of irql.c and finding.c: the level belongs to the thread, and misuse is counted.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "nt/nt.h"

static void raising_returns_the_former_level(void **state)
{
    unsigned findings = nt_finding_count();
    KIRQL old = HIGH_LEVEL;
    KIRQL older;

    (void)state;
    assert_int_equal(KeGetCurrentIrql(), PASSIVE_LEVEL);
    KeRaiseIrql(APC_LEVEL, &old);
    assert_int_equal(old, PASSIVE_LEVEL);
    assert_int_equal(KeGetCurrentIrql(), APC_LEVEL);
    older = KeRaiseIrqlToDpcLevel();
    assert_int_equal(older, APC_LEVEL);
    assert_int_equal(KeGetCurrentIrql(), DISPATCH_LEVEL);
    assert_int_equal(KfRaiseIrql(DISPATCH_LEVEL), DISPATCH_LEVEL);
    KeLowerIrql(older);
    assert_int_equal(KeGetCurrentIrql(), APC_LEVEL);
    KfLowerIrql(old);
    assert_int_equal(KeGetCurrentIrql(), PASSIVE_LEVEL);
    assert_int_equal(nt_finding_count(), findings);
}

static void the_wrong_direction_is_a_finding(void **state)
{
    unsigned findings = nt_finding_count();

    (void)state;
    KeLowerIrql(DISPATCH_LEVEL);
    assert_int_equal(nt_finding_count(), findings + 1);
    assert_int_equal(KeGetCurrentIrql(), DISPATCH_LEVEL);
    assert_int_equal(KfRaiseIrql(PASSIVE_LEVEL), DISPATCH_LEVEL);
    assert_int_equal(nt_finding_count(), findings + 2);
    assert_int_equal(KeGetCurrentIrql(), PASSIVE_LEVEL);
}

static void the_engine_sets_any_level(void **state)
{
    unsigned findings = nt_finding_count();

    (void)state;
    nt_irql_set(DISPATCH_LEVEL);
    assert_int_equal(KeGetCurrentIrql(), DISPATCH_LEVEL);
    nt_irql_set(PASSIVE_LEVEL);
    assert_int_equal(KeGetCurrentIrql(), PASSIVE_LEVEL);
    assert_int_equal(nt_finding_count(), findings);
}

static void *report_and_raise(void *seen)
{
    *(KIRQL *)seen = KeGetCurrentIrql();
    KfRaiseIrql(HIGH_LEVEL);
    return NULL;
}

static void threads_have_levels_of_their_own(void **state)
{
    KIRQL seen = HIGH_LEVEL;
    pthread_t thread;

    (void)state;
    nt_irql_set(DISPATCH_LEVEL);
    assert_int_equal(pthread_create(&thread, NULL, report_and_raise, &seen), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(seen, PASSIVE_LEVEL);
    assert_int_equal(KeGetCurrentIrql(), DISPATCH_LEVEL);
    nt_irql_set(PASSIVE_LEVEL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(raising_returns_the_former_level),
        cmocka_unit_test(the_wrong_direction_is_a_finding),
        cmocka_unit_test(the_engine_sets_any_level),
        cmocka_unit_test(threads_have_levels_of_their_own),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
