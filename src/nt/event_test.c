// SPDX-License-Identifier: MIT
/*
 * Tests of event.c: state, both kinds, timeouts, many waiters, memory freed by the waiter, misuse.
 *
 * A wait that must succeed has a long timeout instead of none, so that a lost wakeup fails the test
 * and does not hang it.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "nt/nt.h"

#define MS        10000ll /* in units of 100 ns */
#define LONG_WAIT (-5000 * MS)

static NTSTATUS wait_for(PKEVENT event, int64_t timeout)
{
    LARGE_INTEGER t = {.QuadPart = timeout};

    return KeWaitForSingleObject(event, Executive, KernelMode, FALSE, &t);
}

static int64_t now_ms(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void sleep_ms(long ms)
{
    nanosleep(&(struct timespec){.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000}, NULL);
}

static void state_follows_the_calls(void **state)
{
    KEVENT e;

    (void)state;
    KeInitializeEvent(&e, NotificationEvent, TRUE);
    assert_int_equal(KeReadStateEvent(&e), 1);
    assert_int_equal(KeResetEvent(&e), 1);
    assert_int_equal(KeResetEvent(&e), 0);
    assert_int_equal(KeSetEvent(&e, IO_NO_INCREMENT, FALSE), 0);
    assert_int_equal(KeSetEvent(&e, IO_NO_INCREMENT, FALSE), 1);
    KeClearEvent(&e);
    assert_int_equal(KeReadStateEvent(&e), 0);
}

static void a_wait_consumes_a_synchronization_event_only(void **state)
{
    KEVENT e;

    (void)state;
    KeInitializeEvent(&e, NotificationEvent, FALSE);
    assert_int_equal(wait_for(&e, 0), STATUS_TIMEOUT);
    KeSetEvent(&e, 0, FALSE);
    assert_int_equal(wait_for(&e, 0), STATUS_SUCCESS);
    assert_int_equal(wait_for(&e, 0), STATUS_SUCCESS);
    assert_int_equal(KeWaitForSingleObject(&e, Executive, KernelMode, FALSE, NULL), STATUS_SUCCESS);

    KeInitializeEvent(&e, SynchronizationEvent, TRUE);
    assert_int_equal(wait_for(&e, 0), STATUS_SUCCESS);
    assert_int_equal(KeReadStateEvent(&e), 0);
    assert_int_equal(wait_for(&e, 0), STATUS_TIMEOUT);
}

static void timeouts_are_100_ns_relative_or_absolute(void **state)
{
    const int64_t epoch_ms = 11644473600000ll; /* from 1601 to 1970 */
    KEVENT e;
    int64_t start;

    (void)state;
    KeInitializeEvent(&e, SynchronizationEvent, FALSE);

    start = now_ms(CLOCK_MONOTONIC);
    assert_int_equal(wait_for(&e, -30 * MS), STATUS_TIMEOUT);
    assert_in_range(now_ms(CLOCK_MONOTONIC) - start, 29, 3000);

    start = now_ms(CLOCK_REALTIME);
    assert_int_equal(wait_for(&e, (start + epoch_ms + 30) * MS), STATUS_TIMEOUT);
    assert_in_range(now_ms(CLOCK_REALTIME) - start, 29, 3000);

    start = now_ms(CLOCK_MONOTONIC);
    assert_int_equal(wait_for(&e, (now_ms(CLOCK_REALTIME) + epoch_ms - 1000) * MS), STATUS_TIMEOUT);
    assert_int_equal(wait_for(&e, 1), STATUS_TIMEOUT); /* the year 1601 */
    assert_in_range(now_ms(CLOCK_MONOTONIC) - start, 0, 1000);
    assert_int_equal(KeReadStateEvent(&e), 0);
}

/* ---- threads ---- */

enum { WAITERS = 6 };

struct crowd {
    KEVENT event;
    atomic_int arrived;
    atomic_int released;
    atomic_int timed_out;
};

static void *crowd_wait(void *argument)
{
    struct crowd *c = argument;

    atomic_fetch_add(&c->arrived, 1);
    if (wait_for(&c->event, LONG_WAIT) == STATUS_SUCCESS)
        atomic_fetch_add(&c->released, 1);
    else
        atomic_fetch_add(&c->timed_out, 1);
    return NULL;
}

/* Starts the waiters and gives them time to block; the assertions hold even if one has not. */
static void crowd_start(struct crowd *c, EVENT_TYPE type, pthread_t threads[WAITERS])
{
    memset(c, 0, sizeof(*c));
    KeInitializeEvent(&c->event, type, FALSE);
    for (int i = 0; i < WAITERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, crowd_wait, c), 0);
    while (atomic_load(&c->arrived) < WAITERS)
        sleep_ms(1);
    sleep_ms(50);
}

static void crowd_join(pthread_t threads[WAITERS])
{
    for (int i = 0; i < WAITERS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
}

static void a_notification_event_releases_all(void **state)
{
    pthread_t threads[WAITERS];
    struct crowd c;

    (void)state;
    crowd_start(&c, NotificationEvent, threads);
    assert_int_equal(KeSetEvent(&c.event, 0, FALSE), 0);
    crowd_join(threads);
    assert_int_equal(c.released, WAITERS);
    assert_int_equal(c.timed_out, 0);
    assert_int_equal(KeReadStateEvent(&c.event), 1);
}

static void a_synchronization_event_releases_one_each_time(void **state)
{
    pthread_t threads[WAITERS];
    struct crowd c;

    (void)state;
    crowd_start(&c, SynchronizationEvent, threads);
    for (int i = 1; i <= WAITERS; i++) {
        KeSetEvent(&c.event, 0, FALSE);
        for (int tries = 0; atomic_load(&c.released) < i && tries < 4000; tries++)
            sleep_ms(1);
        sleep_ms(5); /* time for one too many to show */
        assert_int_equal(c.released, i);
    }
    crowd_join(threads);
    assert_int_equal(c.timed_out, 0);
    assert_int_equal(KeReadStateEvent(&c.event), 0);
}

static void other_events_are_left_alone(void **state)
{
    enum { EVENTS = 300 }; /* more than buckets, so that some share one */
    static KEVENT events[EVENTS];
    pthread_t threads[WAITERS];
    struct crowd c;

    (void)state;
    crowd_start(&c, NotificationEvent, threads);
    for (int i = 0; i < EVENTS; i++) {
        KeInitializeEvent(&events[i], i % 2 ? SynchronizationEvent : NotificationEvent, FALSE);
        KeSetEvent(&events[i], 0, FALSE);
    }
    sleep_ms(10);
    assert_int_equal(c.released, 0);
    KeSetEvent(&c.event, 0, FALSE);
    crowd_join(threads);
    assert_int_equal(c.released, WAITERS);
    for (int i = 0; i < EVENTS; i++)
        assert_int_equal(KeReadStateEvent(&events[i]), 1);
}

/* ---- the waiter frees the event ---- */

enum { ROUNDS = 20000 };

struct handover {
    KEVENT *_Atomic event;
    atomic_int done;
};

static void *set_what_is_handed_over(void *argument)
{
    struct handover *h = argument;

    for (int i = 0; i < ROUNDS; i++) {
        KEVENT *e;

        while ((e = atomic_exchange(&h->event, NULL)) == NULL && !atomic_load(&h->done))
            sched_yield();
        if (!e)
            break;
        KeSetEvent(e, 0, FALSE);
    }
    return NULL;
}

/* The waiter poisons the event as soon as it wakes; were KeSetEvent to write it later, the poison
 * would change, and a sanitizer would see the access to freed memory. */
static void the_waiter_may_free_the_event_at_once(void **state)
{
    struct handover h = {.event = NULL};
    pthread_t thread;
    NTSTATUS status = STATUS_SUCCESS;
    int spoiled = 0;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, set_what_is_handed_over, &h), 0);
    for (int i = 0; i < ROUNDS && status == STATUS_SUCCESS; i++) {
        KEVENT *e = malloc(sizeof(*e));
        unsigned char poison[sizeof(*e)];

        assert_non_null(e);
        KeInitializeEvent(e, i % 2 ? SynchronizationEvent : NotificationEvent, FALSE);
        atomic_store(&h.event, e);
        status = wait_for(e, LONG_WAIT);
        memset(e, 0xa5, sizeof(*e));
        memset(poison, 0xa5, sizeof(poison));
        if (i % 64 == 0)
            sched_yield();
        spoiled += memcmp(e, poison, sizeof(*e)) != 0;
        if (status == STATUS_SUCCESS)
            free(e);
    }
    atomic_store(&h.done, 1);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(status, STATUS_SUCCESS);
    assert_int_equal(spoiled, 0);
}

/* Two threads that wake each other in turn: a wakeup lost in any order stops the game. */
struct game {
    KEVENT ball[2];
    int turns;
};

static void *play(void *argument)
{
    struct game *g = argument;
    NTSTATUS status = STATUS_SUCCESS;

    for (int i = 0; i < ROUNDS / 4 && status == STATUS_SUCCESS; i++) {
        status = wait_for(&g->ball[0], LONG_WAIT);
        g->turns++; /* the events order the two threads */
        KeSetEvent(&g->ball[1], 0, FALSE);
    }
    return NULL;
}

static void no_wakeup_is_lost(void **state)
{
    struct game g = {.turns = 0};
    NTSTATUS status = STATUS_SUCCESS;
    pthread_t thread;
    int turns = 0;

    (void)state;
    KeInitializeEvent(&g.ball[0], SynchronizationEvent, FALSE);
    KeInitializeEvent(&g.ball[1], SynchronizationEvent, FALSE);
    assert_int_equal(pthread_create(&thread, NULL, play, &g), 0);
    for (int i = 0; i < ROUNDS / 4 && status == STATUS_SUCCESS; i++) {
        KeSetEvent(&g.ball[0], 0, FALSE);
        status = wait_for(&g.ball[1], LONG_WAIT);
        turns += g.turns == i + 1;
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(status, STATUS_SUCCESS);
    assert_int_equal(turns, ROUNDS / 4);
}

/* ---- misuse ---- */

static void waiting_at_dispatch_level_is_a_finding(void **state)
{
    unsigned findings = nt_finding_count();
    KEVENT e;

    (void)state;
    KeInitializeEvent(&e, NotificationEvent, TRUE);
    nt_irql_set(DISPATCH_LEVEL);
    assert_int_equal(wait_for(&e, 0), STATUS_SUCCESS);
    KeSetEvent(&e, 0, FALSE);
    assert_int_equal(nt_finding_count(), findings);
    assert_int_equal(wait_for(&e, -1), STATUS_SUCCESS);
    assert_int_equal(nt_finding_count(), findings + 1);
    assert_int_equal(KeWaitForSingleObject(&e, Executive, KernelMode, FALSE, NULL), STATUS_SUCCESS);
    assert_int_equal(nt_finding_count(), findings + 2);
    KeSetEvent(&e, 0, TRUE); /* promises to wait */
    assert_int_equal(nt_finding_count(), findings + 3);
    nt_irql_set(APC_LEVEL);
    assert_int_equal(wait_for(&e, -1), STATUS_SUCCESS);
    assert_int_equal(nt_finding_count(), findings + 3);
    nt_irql_set(PASSIVE_LEVEL);
}

static void initializing_under_a_waiter_is_a_finding(void **state)
{
    unsigned findings = nt_finding_count();
    pthread_t threads[WAITERS];
    struct crowd c;

    (void)state;
    crowd_start(&c, NotificationEvent, threads);
    for (int tries = 0; nt_finding_count() == findings && tries < 2000; tries++) {
        KeInitializeEvent(&c.event, NotificationEvent, FALSE);
        sleep_ms(1);
    }
    assert_true(nt_finding_count() > findings);
    KeSetEvent(&c.event, 0, FALSE);
    crowd_join(threads);
    assert_int_equal(c.released, WAITERS);
    findings = nt_finding_count();
    KeInitializeEvent(&c.event, NotificationEvent, FALSE); /* nobody waits any more */
    assert_int_equal(nt_finding_count(), findings);
}

static void what_is_no_event_cannot_be_waited_for(void **state)
{
    unsigned findings = nt_finding_count();
    KEVENT e;

    (void)state;
    memset(&e, 0x5a, sizeof(e));
    assert_int_equal(wait_for(&e, LONG_WAIT), STATUS_INVALID_PARAMETER);
    assert_int_equal(nt_finding_count(), findings + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(state_follows_the_calls),
        cmocka_unit_test(a_wait_consumes_a_synchronization_event_only),
        cmocka_unit_test(timeouts_are_100_ns_relative_or_absolute),
        cmocka_unit_test(a_notification_event_releases_all),
        cmocka_unit_test(a_synchronization_event_releases_one_each_time),
        cmocka_unit_test(other_events_are_left_alone),
        cmocka_unit_test(the_waiter_may_free_the_event_at_once),
        cmocka_unit_test(no_wakeup_is_lost),
        cmocka_unit_test(waiting_at_dispatch_level_is_a_finding),
        cmocka_unit_test(initializing_under_a_waiter_is_a_finding),
        cmocka_unit_test(what_is_no_event_cannot_be_waited_for),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
