// SPDX-License-Identifier: MIT
/*
 * Tests of rundown.c: users before, during and after the wait, memory freed by the owner, misuse.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "nt/nt_testing.h"

static void without_users_the_wait_returns_at_once(void **state)
{
    unsigned findings = nt_finding_count();
    EX_RUNDOWN_REF ref;

    (void)state;
    ExInitializeRundownProtection(&ref);
    assert_true(ExAcquireRundownProtection(&ref));
    ExReleaseRundownProtection(&ref);
    assert_true(ExAcquireRundownProtectionEx(&ref, 5));
    ExReleaseRundownProtectionEx(&ref, 3);
    ExReleaseRundownProtectionEx(&ref, 2);
    ExWaitForRundownProtectionRelease(&ref);
    assert_false(ExAcquireRundownProtection(&ref));
    assert_false(ExAcquireRundownProtectionEx(&ref, 2));
    ExWaitForRundownProtectionRelease(&ref); /* again */
    ExRundownCompleted(&ref);
    assert_false(ExAcquireRundownProtection(&ref));
    ExReInitializeRundownProtection(&ref);
    assert_true(ExAcquireRundownProtection(&ref));
    ExReleaseRundownProtection(&ref);
    assert_int_equal(nt_finding_count(), findings);
}

struct scene {
    EX_RUNDOWN_REF ref;
    atomic_int over;
};

static void wait_for_all(void *arg)
{
    struct scene *s = arg;

    ExWaitForRundownProtectionRelease(&s->ref);
    atomic_store(&s->over, 1);
}

static void the_wait_is_for_all_users_and_admits_no_new_one(void **state)
{
    struct scene s = {.over = 0};
    struct os_thread *thread;

    (void)state;
    ExInitializeRundownProtection(&s.ref);
    assert_true(ExAcquireRundownProtectionEx(&s.ref, 2));
    assert_int_equal(os_thread_start(&thread, "wait", wait_for_all, &s), 0);
    AWAIT(__atomic_load_n(&s.ref.Count, __ATOMIC_RELAXED) & 1); /* the rundown has begun */
    assert_false(ExAcquireRundownProtection(&s.ref));
    ExReleaseRundownProtection(&s.ref);
    os_sleep_us(20000);
    assert_int_equal(atomic_load(&s.over), 0); /* one user is left */
    assert_false(ExAcquireRundownProtection(&s.ref));
    ExReleaseRundownProtection(&s.ref);
    os_thread_join(thread);
    assert_int_equal(atomic_load(&s.over), 1);
}

/* ---- the owner frees ------------------------------------------------------------------------- */

enum { ROUNDS = 2000, USERS = 2 };

struct guarded {
    EX_RUNDOWN_REF ref;
    int value; /* valid while protected */
};

struct world {
    struct guarded *_Atomic now;
    atomic_ulong looks[USERS]; /* how often a user has looked at `now` and is done with that */
    atomic_int done;
    atomic_long used;
};

struct user {
    struct world *world;
    int number;
};

static void use(void *arg)
{
    struct user *u = arg;
    struct world *w = u->world;

    while (!atomic_load(&w->done)) {
        struct guarded *g = atomic_load(&w->now);
        bool protected = g && ExAcquireRundownProtection(&g->ref);

        atomic_fetch_add(&w->looks[u->number], 1);
        if (!protected)
            continue;
        if (g->value != 42)
            abort();
        atomic_fetch_add(&w->used, 1);
        ExReleaseRundownProtection(&g->ref);
    }
}

/* Until no user has the bare pointer that it may have read before: it has looked twice since. */
static void let_users_look(struct world *w)
{
    uint64_t limit = os_now_us() + LIMIT_S * 1000000ull;

    for (int u = 0; u < USERS; u++) {
        unsigned long seen = atomic_load(&w->looks[u]);

        while (atomic_load(&w->looks[u]) < seen + 2 && os_now_us() < limit)
            os_sleep_us(1);
        assert_true(atomic_load(&w->looks[u]) >= seen + 2);
    }
}

/* The block goes back as soon as the wait has returned, while the last user may still be inside its
 * release. */
static void the_owner_may_free_at_once(void **state)
{
    struct world w = {.now = NULL};
    struct user users[USERS] = {{&w, 0}, {&w, 1}};
    struct os_thread *threads[USERS];

    (void)state;
    for (int i = 0; i < USERS; i++)
        assert_int_equal(os_thread_start(&threads[i], "user", use, &users[i]), 0);
    for (int i = 0; i < ROUNDS; i++) {
        struct guarded *g = malloc(sizeof *g);

        assert_non_null(g);
        ExInitializeRundownProtection(&g->ref);
        g->value = 42;
        atomic_store(&w.now, g);
        for (int turn = 0; turn < i % 50; turn++)
            os_cpu_relax();
        atomic_store(&w.now, NULL);
        let_users_look(&w);
        ExWaitForRundownProtectionRelease(&g->ref);
        g->value = 0;
        free(g);
    }
    atomic_store(&w.done, 1);
    for (int i = 0; i < USERS; i++)
        os_thread_join(threads[i]);
}

/* ---- misuse --------------------------------------------------------------------------------- */

static void misuse_is_found(void **state)
{
    unsigned findings = nt_finding_count();
    EX_RUNDOWN_REF ref;

    (void)state;
    ExInitializeRundownProtection(&ref);
    ExReleaseRundownProtection(&ref);
    ASSERT_FINDING(findings, "fewer users than that");
    assert_true(ExAcquireRundownProtection(&ref)); /* nothing was changed */
    ExRundownCompleted(&ref);
    ASSERT_FINDING(findings + 1, "has 1 users");
    ExInitializeRundownProtection(&ref);
    ExReInitializeRundownProtection(&ref);
    ASSERT_FINDING(findings + 2, "was not run down");
    nt_irql_set(DISPATCH_LEVEL);
    ExWaitForRundownProtectionRelease(&ref);
    ASSERT_FINDING(findings + 3, "ExWaitForRundownProtectionRelease: IRQL too high");
    assert_false(ExAcquireRundownProtection(&ref));
    nt_irql_set(PASSIVE_LEVEL);
    ExReleaseRundownProtection(&ref); /* run down, and nobody's */
    assert_int_equal(nt_finding_count(), findings + 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_users_the_wait_returns_at_once),
        cmocka_unit_test(the_wait_is_for_all_users_and_admits_no_new_one),
        cmocka_unit_test(the_owner_may_free_at_once),
        cmocka_unit_test(misuse_is_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
