// SPDX-License-Identifier: MIT
/*
 * Tests of resource.c: recursion, readers and writers, waiting and not, conversion, misuse.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "nt/left.h"
#include "nt/nt_testing.h"

static void holders_take_it_again(void **state)
{
    unsigned findings = nt_finding_count();
    size_t resources = nt_left_count(NT_LEFT_RESOURCE);
    ERESOURCE r;

    (void)state;
    assert_int_equal(ExInitializeResourceLite(&r), STATUS_SUCCESS);
    assert_int_equal(nt_left_count(NT_LEFT_RESOURCE), resources + 1);
    KeEnterCriticalRegion();
    assert_true(ExAcquireResourceExclusiveLite(&r, TRUE));
    assert_true(ExAcquireResourceExclusiveLite(&r, FALSE));
    assert_true(ExAcquireResourceSharedLite(&r, TRUE)); /* a writer reads as a writer */
    assert_true(ExIsResourceAcquiredExclusiveLite(&r));
    assert_int_equal(ExIsResourceAcquiredSharedLite(&r), 3);
    ExReleaseResourceLite(&r);
    ExReleaseResourceLite(&r);
    assert_true(ExIsResourceAcquiredExclusiveLite(&r));
    ExReleaseResourceLite(&r);
    assert_false(ExIsResourceAcquiredExclusiveLite(&r));
    assert_int_equal(ExIsResourceAcquiredSharedLite(&r), 0);
    assert_true(ExAcquireResourceSharedLite(&r, TRUE));
    assert_true(ExAcquireSharedStarveExclusive(&r, TRUE));
    assert_int_equal(ExIsResourceAcquiredSharedLite(&r), 2);
    assert_false(ExIsResourceAcquiredExclusiveLite(&r));
    assert_false(ExAcquireResourceExclusiveLite(&r, FALSE));
    ExReleaseResourceLite(&r);
    ExReleaseResourceLite(&r);
    KeLeaveCriticalRegion();
    assert_int_equal(ExDeleteResourceLite(&r), STATUS_SUCCESS);
    assert_int_equal(nt_left_count(NT_LEFT_RESOURCE), resources);
    assert_int_equal(nt_finding_count(), findings);
}

/* ---- another thread, step by step ------------------------------------------------------------ */

struct other {
    ERESOURCE *resource;
    BOOLEAN (*acquire)(PERESOURCE resource, BOOLEAN wait);
    BOOLEAN wait, answer;
    KEVENT let_go;
    atomic_int answered;
    struct os_thread *thread;
};

static void be_other(void *arg)
{
    struct other *o = arg;
    LARGE_INTEGER limit = {.QuadPart = -LIMIT_S * 10000000ll};

    KeEnterCriticalRegion();
    o->answer = o->acquire(o->resource, o->wait);
    atomic_store(&o->answered, 1);
    KeWaitForSingleObject(&o->let_go, Executive, KernelMode, FALSE, &limit);
    if (o->answer)
        ExReleaseResourceLite(o->resource);
    KeLeaveCriticalRegion();
}

static void other_starts(struct other *o, ERESOURCE *r,
                         BOOLEAN (*acquire)(PERESOURCE resource, BOOLEAN wait), BOOLEAN wait)
{
    memset(o, 0, sizeof *o);
    o->resource = r;
    o->acquire = acquire;
    o->wait = wait;
    KeInitializeEvent(&o->let_go, NotificationEvent, FALSE);
    assert_int_equal(os_thread_start(&o->thread, "other", be_other, o), 0);
}

static void other_ends(struct other *o)
{
    KeSetEvent(&o->let_go, 0, FALSE);
    os_thread_join(o->thread);
}

static BOOLEAN answer_of(struct other *o)
{
    AWAIT(atomic_load(&o->answered));
    return o->answer;
}

static void who_does_not_wait_is_told_at_once(void **state)
{
    struct other reader, writer;
    ERESOURCE r;

    (void)state;
    ExInitializeResourceLite(&r);
    KeEnterCriticalRegion();
    assert_true(ExAcquireResourceSharedLite(&r, TRUE));
    other_starts(&reader, &r, ExAcquireResourceSharedLite, FALSE);
    assert_true(answer_of(&reader)); /* beside the other reader */
    other_starts(&writer, &r, ExAcquireResourceExclusiveLite, FALSE);
    assert_false(answer_of(&writer));
    other_ends(&writer);
    other_ends(&reader);
    ExReleaseResourceLite(&r);
    assert_true(ExAcquireResourceExclusiveLite(&r, FALSE));
    other_starts(&reader, &r, ExAcquireResourceSharedLite, FALSE);
    assert_false(answer_of(&reader));
    other_ends(&reader);
    other_starts(&reader, &r, ExAcquireSharedStarveExclusive, FALSE);
    assert_false(answer_of(&reader));
    other_ends(&reader);
    ExReleaseResourceLite(&r);
    KeLeaveCriticalRegion();
    assert_int_equal(ExDeleteResourceLite(&r), STATUS_SUCCESS);
}

static void waiting_writers_hold_up_patient_readers(void **state)
{
    struct other writer, patient, hasty;
    ERESOURCE r;

    (void)state;
    ExInitializeResourceLite(&r);
    KeEnterCriticalRegion();
    assert_true(ExAcquireResourceSharedLite(&r, TRUE));
    other_starts(&writer, &r, ExAcquireResourceExclusiveLite, TRUE);
    AWAIT(ExGetExclusiveWaiterCount(&r) == 1);
    other_starts(&patient, &r, ExAcquireResourceSharedLite, TRUE);
    AWAIT(ExGetSharedWaiterCount(&r) == 1);
    other_starts(&hasty, &r, ExAcquireSharedStarveExclusive, TRUE);
    assert_true(answer_of(&hasty));                      /* past the writer */
    assert_true(ExAcquireResourceSharedLite(&r, FALSE)); /* and so does who reads already */
    assert_int_equal(atomic_load(&writer.answered), 0);
    assert_int_equal(atomic_load(&patient.answered), 0);
    other_ends(&hasty);
    ExReleaseResourceLite(&r);
    assert_int_equal(atomic_load(&writer.answered), 0);
    ExReleaseResourceLite(&r);
    assert_true(answer_of(&writer));
    assert_int_equal(atomic_load(&patient.answered), 0);
    other_ends(&writer);
    assert_true(answer_of(&patient));
    other_ends(&patient);
    KeLeaveCriticalRegion();
    assert_int_equal(ExDeleteResourceLite(&r), STATUS_SUCCESS);
}

static void a_writer_may_go_on_as_a_reader(void **state)
{
    struct other reader, writer;
    ERESOURCE r;

    (void)state;
    ExInitializeResourceLite(&r);
    KeEnterCriticalRegion();
    assert_true(ExAcquireResourceExclusiveLite(&r, TRUE));
    assert_true(ExAcquireResourceExclusiveLite(&r, TRUE));
    other_starts(&reader, &r, ExAcquireResourceSharedLite, TRUE);
    AWAIT(ExGetSharedWaiterCount(&r) == 1);
    ExConvertExclusiveToSharedLite(&r);
    assert_true(answer_of(&reader)); /* let in */
    assert_false(ExIsResourceAcquiredExclusiveLite(&r));
    assert_int_equal(ExIsResourceAcquiredSharedLite(&r), 2);
    other_starts(&writer, &r, ExAcquireResourceExclusiveLite, FALSE);
    assert_false(answer_of(&writer));
    other_ends(&writer);
    ExReleaseResourceLite(&r);
    ExReleaseResourceLite(&r);
    other_ends(&reader);
    assert_true(ExAcquireResourceExclusiveLite(&r, FALSE));
    ExReleaseResourceLite(&r);
    KeLeaveCriticalRegion();
    assert_int_equal(ExDeleteResourceLite(&r), STATUS_SUCCESS);
}

/* ---- many threads ---------------------------------------------------------------------------- */

enum { THREADS = 4, ROUNDS = 3000 };

struct shared {
    ERESOURCE resource;
    long count; /* under the resource, no atomic */
};

static void read_and_write(void *arg)
{
    struct shared *s = arg;

    KeEnterCriticalRegion();
    for (int i = 0; i < ROUNDS; i++) {
        long seen;

        if (i % 3 == 0) {
            ExAcquireResourceExclusiveLite(&s->resource, TRUE);
            s->count++;
            if (i % 2)
                ExConvertExclusiveToSharedLite(&s->resource);
            seen = s->count;
        } else {
            ExAcquireResourceSharedLite(&s->resource, TRUE);
            seen = s->count;
        }
        if (seen != s->count)
            abort();
        ExReleaseResourceLite(&s->resource);
    }
    KeLeaveCriticalRegion();
}

static void there_are_readers_or_a_writer(void **state)
{
    unsigned findings = nt_finding_count();
    struct os_thread *threads[THREADS];
    struct shared s = {.count = 0};

    (void)state;
    ExInitializeResourceLite(&s.resource);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(os_thread_start(&threads[i], "resource", read_and_write, &s), 0);
    for (int i = 0; i < THREADS; i++)
        os_thread_join(threads[i]);
    assert_int_equal(s.count, THREADS * ROUNDS / 3);
    assert_int_equal(ExDeleteResourceLite(&s.resource), STATUS_SUCCESS);
    assert_int_equal(nt_finding_count(), findings);
}

/* ---- misuse --------------------------------------------------------------------------------- */

static void misuse_is_found(void **state)
{
    unsigned findings = nt_finding_count();
    ERESOURCE r, none;

    (void)state;
    memset(&none, 0x5a, sizeof none);
    ExInitializeResourceLite(&r);
    assert_int_equal(ExInitializeResourceLite(&r), STATUS_SUCCESS);
    ASSERT_FINDING(findings, "is initialized already");
    assert_true(ExAcquireResourceSharedLite(&r, TRUE));
    ASSERT_FINDING(findings + 1, "neither in a critical region nor at APC_LEVEL");
    KeEnterCriticalRegion();
    assert_false(ExAcquireResourceExclusiveLite(&r, TRUE));
    ASSERT_FINDING(findings + 2, "would wait for itself");
    ExDeleteResourceLite(&r);
    ASSERT_FINDING(findings + 3, "is held");
    ExConvertExclusiveToSharedLite(&r);
    ASSERT_FINDING(findings + 4, "does not hold");
    ExReleaseResourceLite(&r);
    ExReleaseResourceLite(&r);
    ASSERT_FINDING(findings + 5, "this thread does not hold");
    assert_false(ExAcquireResourceSharedLite(&none, TRUE));
    ASSERT_FINDING(findings + 6, "is no resource");
    KeLeaveCriticalRegion();
    assert_int_equal(ExDeleteResourceLite(&r), STATUS_SUCCESS);
    assert_int_equal(ExDeleteResourceLite(&r), STATUS_INVALID_PARAMETER);
    ASSERT_FINDING(findings + 7, "is no resource, or deleted already");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(holders_take_it_again),
        cmocka_unit_test(who_does_not_wait_is_told_at_once),
        cmocka_unit_test(waiting_writers_hold_up_patient_readers),
        cmocka_unit_test(a_writer_may_go_on_as_a_reader),
        cmocka_unit_test(there_are_readers_or_a_writer),
        cmocka_unit_test(misuse_is_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
