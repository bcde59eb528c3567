// SPDX-License-Identifier: MIT
/* Tests of held.c: which spin locks are held, as softndk_report() tells it. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include <softndk.h>

#include "nt/nt.h"

static char told[4096];

static void tell(void *context, const char *text)
{
    (void)context;
    strcat(told, text);
    strcat(told, "\n");
}

static size_t report(void)
{
    told[0] = '\0';
    return softndk_report(tell, NULL);
}

static void held_locks_are_told(void **state)
{
    KSPIN_LOCK locks[12];
    KLOCK_QUEUE_HANDLE queued;
    char wanted[64];
    KIRQL old;

    (void)state;
    assert_int_equal(report(), 0);
    for (int i = 0; i < 12; i++)
        KeInitializeSpinLock(&locks[i]);
    KeAcquireSpinLock(&locks[0], &old);
    KeAcquireInStackQueuedSpinLockAtDpcLevel(&locks[1], &queued);
    assert_true(KeTryToAcquireSpinLockAtDpcLevel(&locks[2]));
    assert_int_equal(report(), 3);
    for (int i = 0; i < 3; i++) {
        snprintf(wanted, sizeof wanted, "left: spin lock %p is held by thread ", (void *)&locks[i]);
        assert_non_null(strstr(told, wanted));
    }
    KeReleaseInStackQueuedSpinLockFromDpcLevel(&queued);
    KeReleaseSpinLockFromDpcLevel(&locks[2]);
    assert_int_equal(report(), 1);
    KeInitializeSpinLock(&locks[1]); /* it was taken by queued calls */
    /* More than are recorded: those are given back as well. */
    for (int i = 1; i < 12; i++)
        KeAcquireSpinLockAtDpcLevel(&locks[i]);
    assert_int_equal(report(), 8);
    for (int i = 12; i-- > 1;)
        KeReleaseSpinLockFromDpcLevel(&locks[i]);
    KeReleaseSpinLock(&locks[0], old);
    assert_int_equal(report(), 0);
}

static KSPIN_LOCK lost;

static void *ends_with_it(void *unused)
{
    KIRQL old;

    KeAcquireSpinLock(&lost, &old);
    return unused;
}

static void a_thread_that_ends_with_a_lock_is_found(void **state)
{
    unsigned before = nt_finding_count();
    pthread_t thread;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, ends_with_it, NULL), 0);
    pthread_join(thread, NULL);
    assert_int_equal(nt_finding_count(), before + 1);
    assert_int_equal(report(), before + 1); /* no lock is listed: its holder is gone */
    assert_non_null(strstr(told, "a thread ended with the spin lock "));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(held_locks_are_told),
        cmocka_unit_test(a_thread_that_ends_with_a_lock_is_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
