// SPDX-License-Identifier: MIT
/*
 * Tests of waitmany.c: waiting for one or all of several objects, beside those that wait for one.
 *
 * A thread counts as waiting when it stands in an object's queue, so nothing depends on time.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "nt/nt_testing.h"
#include "nt/wait.h"

#define MS 10000ll /* in units of 100 ns */

enum { MANY = 8 };

static NTSTATUS wait_many(KEVENT *const events[], ULONG count, WAIT_TYPE type, int64_t timeout)
{
    LARGE_INTEGER t = {.QuadPart = timeout};
    KWAIT_BLOCK blocks[MANY];
    PVOID objects[MANY];

    for (ULONG i = 0; i < count; i++)
        objects[i] = events[i];
    return KeWaitForMultipleObjects(count, objects, type, Executive, KernelMode, FALSE, &t, blocks);
}

static bool is_waited_for(const void *object)
{
    struct nt_bucket *b = nt_wait_lock(object);
    bool any = nt_wait_any(b, object);

    nt_wait_unlock(b);
    return any;
}

/* A thread that waits once. */
struct wait {
    KEVENT *events[MANY];
    ULONG count;
    WAIT_TYPE type;
    pthread_t thread;
    NTSTATUS status; /* read after the join */
    atomic_bool ended;
};

static void *wait_main(void *argument)
{
    struct wait *w = argument;

    w->status = wait_many(w->events, w->count, w->type, -(int64_t)LIMIT_S * 1000 * MS);
    atomic_store(&w->ended, true);
    return NULL;
}

static void wait_start(struct wait *w, KEVENT *events, ULONG count, WAIT_TYPE type)
{
    w->count = count;
    w->type = type;
    for (ULONG i = 0; i < count; i++)
        w->events[i] = &events[i];
    assert_int_equal(pthread_create(&w->thread, NULL, wait_main, w), 0);
    AWAIT(is_waited_for(&events[count - 1]) || atomic_load(&w->ended));
}

static NTSTATUS wait_end(struct wait *w)
{
    assert_int_equal(pthread_join(w->thread, NULL), 0);
    return w->status;
}

static void events_init(KEVENT *events, EVENT_TYPE type)
{
    for (int i = 0; i < MANY; i++)
        KeInitializeEvent(&events[i], type, FALSE);
}

static void any_takes_the_first_that_is_signalled(void **state)
{
    KEVENT e[MANY];
    KEVENT *p[MANY];

    (void)state;
    events_init(e, SynchronizationEvent);
    for (int i = 0; i < MANY; i++)
        p[i] = &e[i];
    assert_int_equal(wait_many(p, MANY, WaitAny, 0), STATUS_TIMEOUT);
    assert_int_equal(wait_many(p, MANY, WaitAny, -2 * MS), STATUS_TIMEOUT);
    KeSetEvent(&e[5], 0, FALSE);
    KeSetEvent(&e[2], 0, FALSE);
    assert_int_equal(wait_many(p, MANY, WaitAny, 0), STATUS_WAIT_0 + 2);
    assert_int_equal(KeReadStateEvent(&e[5]), 1);
    assert_int_equal(wait_many(p, MANY, WaitAny, -MS), STATUS_WAIT_0 + 5);
    assert_int_equal(wait_many(p, MANY, WaitAny, 0), STATUS_TIMEOUT);
}

static void all_takes_all_or_none(void **state)
{
    KEVENT e[MANY];
    KEVENT *p[MANY];

    (void)state;
    events_init(e, SynchronizationEvent);
    for (int i = 0; i < MANY; i++)
        p[i] = &e[i];
    for (int i = 1; i < MANY; i++)
        KeSetEvent(&e[i], 0, FALSE);
    assert_int_equal(wait_many(p, MANY, WaitAll, 0), STATUS_TIMEOUT);
    assert_int_equal(wait_many(p, MANY, WaitAll, -2 * MS), STATUS_TIMEOUT);
    for (int i = 1; i < MANY; i++)
        assert_int_equal(KeReadStateEvent(&e[i]), 1);
    KeSetEvent(&e[0], 0, FALSE);
    assert_int_equal(wait_many(p, MANY, WaitAll, 0), STATUS_SUCCESS);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(KeReadStateEvent(&e[i]), 0);
}

static void any_wakes_by_each(void **state)
{
    KEVENT e[MANY];

    (void)state;
    for (int i = 0; i < MANY; i++) {
        struct wait w = {.count = 0};

        events_init(e, i % 2 ? NotificationEvent : SynchronizationEvent);
        wait_start(&w, e, MANY, WaitAny);
        KeSetEvent(&e[i], 0, FALSE);
        assert_int_equal(wait_end(&w), STATUS_WAIT_0 + i);
        for (int k = 0; k < MANY; k++) {
            assert_int_equal(KeReadStateEvent(&e[k]), k == i && i % 2);
            assert_false(is_waited_for(&e[k]));
        }
    }
}

/* The second signal comes while the first has taken the wait already, mostly before the thread has
 * run: it must not be lost on it. */
static void a_wait_for_any_spends_one_signal(void **state)
{
    KEVENT e[MANY];

    (void)state;
    for (int i = 0; i < 100; i++) {
        struct wait w = {.count = 0};

        events_init(e, SynchronizationEvent);
        wait_start(&w, e, 3, WaitAny);
        KeSetEvent(&e[2], 0, FALSE);
        KeSetEvent(&e[0], 0, FALSE);
        assert_int_equal(wait_end(&w), STATUS_WAIT_0 + 2);
        assert_int_equal(KeReadStateEvent(&e[2]), 0);
        assert_int_equal(KeReadStateEvent(&e[0]), 1);
    }
}

static void all_wakes_when_the_last_is_signalled(void **state)
{
    KEVENT e[MANY];

    (void)state;
    for (int first = 0; first < MANY; first++) {
        struct wait w = {.count = 0};

        events_init(e, first % 2 ? NotificationEvent : SynchronizationEvent);
        wait_start(&w, e, MANY, WaitAll);
        for (int i = 0; i < MANY - 1; i++) {
            KeSetEvent(&e[(first + i) % MANY], 0, FALSE);
            assert_int_equal(KeReadStateEvent(&e[(first + i) % MANY]), 1); /* not spent yet */
        }
        assert_true(is_waited_for(&e[0]));
        KeSetEvent(&e[(first + MANY - 1) % MANY], 0, FALSE);
        assert_int_equal(wait_end(&w), STATUS_SUCCESS);
        for (int i = 0; i < MANY; i++)
            assert_int_equal(KeReadStateEvent(&e[i]), first % 2);
    }
}

/* In one queue: a wait for all, which nothing but its last signal ends, a wait for any and a wait
 * for one. Each signal ends one of the latter two. */
static void each_signal_ends_one_wait(void **state)
{
    struct wait all = {.count = 0}, any = {.count = 0}, one = {.count = 0};
    KEVENT e[MANY];

    (void)state;
    events_init(e, SynchronizationEvent);
    wait_start(&all, e, 3, WaitAll);
    any.count = 2;
    any.type = WaitAny;
    any.events[0] = &e[4];
    any.events[1] = &e[0];
    assert_int_equal(pthread_create(&any.thread, NULL, wait_main, &any), 0);
    AWAIT(is_waited_for(&e[4]) || atomic_load(&any.ended));
    KeSetEvent(&e[0], 0, FALSE); /* the wait for all is first in the queue, but not ready */
    assert_int_equal(wait_end(&any), STATUS_WAIT_0 + 1);
    assert_int_equal(KeReadStateEvent(&e[0]), 0);
    KeSetEvent(&e[1], 0, FALSE);
    KeSetEvent(&e[2], 0, FALSE);
    wait_start(&one, &e[5], 1, WaitAny);
    KeSetEvent(&e[5], 0, FALSE);
    assert_int_equal(wait_end(&one), STATUS_WAIT_0);
    assert_true(is_waited_for(&e[1]));
    KeSetEvent(&e[0], 0, FALSE);
    assert_int_equal(wait_end(&all), STATUS_SUCCESS);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(KeReadStateEvent(&e[i]), 0);
}

/* ---- many turns ---- */

enum { TURNS = 5000 };

struct game {
    KEVENT balls[MANY];
    KEVENT back[2];
    atomic_int failed;
};

static void *game_main(void *argument)
{
    struct game *g = argument;
    KEVENT *any[MANY];
    KEVENT *back[2] = {&g->back[0], &g->back[1]};

    for (int i = 0; i < MANY; i++)
        any[i] = &g->balls[i];
    for (int i = 0; i < TURNS && !atomic_load(&g->failed); i++) {
        if (wait_many(any, MANY, WaitAny, -20000 * MS) != STATUS_WAIT_0 + i * 7 % MANY)
            atomic_store(&g->failed, 1);
        KeSetEvent(back[i & 1], 0, FALSE);
        KeSetEvent(back[~i & 1], 0, FALSE);
    }
    return NULL;
}

static void no_wakeup_is_lost(void **state)
{
    static struct game g;
    KEVENT *back[2] = {&g.back[0], &g.back[1]};
    pthread_t thread;
    int turns = 0;

    (void)state;
    events_init(g.balls, SynchronizationEvent);
    KeInitializeEvent(&g.back[0], SynchronizationEvent, FALSE);
    KeInitializeEvent(&g.back[1], SynchronizationEvent, FALSE);
    assert_int_equal(pthread_create(&thread, NULL, game_main, &g), 0);
    for (; turns < TURNS && !atomic_load(&g.failed); turns++) {
        KeSetEvent(&g.balls[turns * 7 % MANY], 0, FALSE);
        if (wait_many(back, 2, WaitAll, -20000 * MS) != STATUS_SUCCESS)
            atomic_store(&g.failed, 1);
    }
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_false(atomic_load(&g.failed));
    assert_int_equal(turns, TURNS);
}

static void *set_one(void *argument)
{
    KeSetEvent(argument, 0, FALSE);
    return NULL;
}

/* As with one object: nothing touches the events or the records once the wait has returned. */
static void the_waiter_may_free_its_events_at_once(void **state)
{
    (void)state;
    for (int i = 0; i < 200; i++) {
        KEVENT *p[2] = {malloc(sizeof(KEVENT)), malloc(sizeof(KEVENT))};
        pthread_t thread;

        assert_true(p[0] && p[1]);
        KeInitializeEvent(p[0], SynchronizationEvent, FALSE);
        KeInitializeEvent(p[1], NotificationEvent, FALSE);
        assert_int_equal(pthread_create(&thread, NULL, set_one, p[i & 1]), 0);
        assert_int_equal(wait_many(p, 2, WaitAny, -(int64_t)LIMIT_S * 1000 * MS),
                         STATUS_WAIT_0 + (i & 1));
        free(p[0]);
        free(p[1]);
        assert_int_equal(pthread_join(thread, NULL), 0);
    }
}

/* ---- other objects, and what is none ---- */

static void timers_count_too(void **state)
{
    LARGE_INTEGER due = {.QuadPart = -MS};
    PVOID objects[2];
    KTIMER timer;
    KEVENT e;

    (void)state;
    KeInitializeEvent(&e, NotificationEvent, FALSE);
    KeInitializeTimerEx(&timer, SynchronizationTimer);
    objects[0] = &e;
    objects[1] = &timer;
    KeSetTimer(&timer, due, NULL);
    assert_int_equal(
        KeWaitForMultipleObjects(2, objects, WaitAny, Executive, KernelMode, FALSE, NULL, NULL),
        STATUS_WAIT_1);
    assert_false(KeReadStateTimer(&timer));
}

static void too_many(void *count)
{
    KWAIT_BLOCK block;
    PKWAIT_BLOCK blocks = *(ULONG *)count > MAXIMUM_WAIT_OBJECTS ? &block : NULL;
    PVOID objects[1] = {NULL};

    KeWaitForMultipleObjects(*(ULONG *)count, objects, WaitAny, Executive, KernelMode, FALSE, NULL,
                             blocks);
}

static void misuse_is_told(void **state)
{
    unsigned findings = nt_finding_count();
    ULONG counts[] = {THREAD_WAIT_OBJECTS + 1, MAXIMUM_WAIT_OBJECTS + 1};
    KEVENT e[2];
    KEVENT *p[2] = {&e[0], &e[1]};
    static char text[16384];

    (void)state;
    KeInitializeEvent(&e[0], NotificationEvent, TRUE);
    memset(&e[1], 0x5a, sizeof(e[1]));
    assert_int_equal(wait_many(p, 2, WaitAny, -MS), STATUS_INVALID_PARAMETER);
    ASSERT_FINDING(findings, "is no event, semaphore, timer or thread");
    findings = nt_finding_count();
    nt_irql_set(DISPATCH_LEVEL);
    assert_int_equal(wait_many(p, 1, WaitAny, 0), STATUS_WAIT_0);
    assert_int_equal(nt_finding_count(), findings);
    assert_int_equal(wait_many(p, 1, WaitAll, -1), STATUS_WAIT_0);
    ASSERT_FINDING(findings, "KeWaitForMultipleObjects");
    nt_irql_set(PASSIVE_LEVEL);
    for (int i = 0; i < 2; i++) {
        int status = child_run(too_many, &counts[i], text, sizeof(text));

        assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
        assert_non_null(strstr(text, "MAXIMUM_WAIT_OBJECTS_EXCEEDED"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_takes_the_first_that_is_signalled),
        cmocka_unit_test(all_takes_all_or_none),
        cmocka_unit_test(any_wakes_by_each),
        cmocka_unit_test(a_wait_for_any_spends_one_signal),
        cmocka_unit_test(all_wakes_when_the_last_is_signalled),
        cmocka_unit_test(each_signal_ends_one_wait),
        cmocka_unit_test(no_wakeup_is_lost),
        cmocka_unit_test(the_waiter_may_free_its_events_at_once),
        cmocka_unit_test(timers_count_too),
        cmocka_unit_test(misuse_is_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
