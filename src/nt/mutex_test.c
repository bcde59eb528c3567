// SPDX-License-Identifier: MIT
/*
 * Tests of mutex.c: critical regions, fast and guarded mutexes, push locks.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "nt/nt_testing.h"
#include "nt/wait.h"

static void regions_nest(void **state)
{
    unsigned findings = nt_finding_count();

    (void)state;
    assert_false(KeAreApcsDisabled());
    KeEnterCriticalRegion();
    KeEnterCriticalRegion();
    KeLeaveCriticalRegion();
    assert_true(KeAreApcsDisabled());
    KeLeaveCriticalRegion();
    assert_false(KeAreApcsDisabled());
    nt_irql_set(APC_LEVEL);
    assert_true(KeAreApcsDisabled());
    nt_irql_set(PASSIVE_LEVEL);
    assert_int_equal(nt_finding_count(), findings);
    KeLeaveCriticalRegion();
    ASSERT_FINDING(findings, "KeLeaveCriticalRegion: the thread is in none");
}

/* ---- fast mutexes ---------------------------------------------------------------------------- */

static void a_fast_mutex_raises_to_apc_level(void **state)
{
    unsigned findings = nt_finding_count();
    FAST_MUTEX m;

    (void)state;
    ExInitializeFastMutex(&m);
    ExAcquireFastMutex(&m);
    assert_int_equal(KeGetCurrentIrql(), APC_LEVEL);
    assert_int_equal(m.Count, 0);
    ExReleaseFastMutex(&m);
    assert_int_equal(KeGetCurrentIrql(), PASSIVE_LEVEL);
    assert_true(ExTryToAcquireFastMutex(&m));
    assert_int_equal(KeGetCurrentIrql(), APC_LEVEL);
    assert_false(ExTryToAcquireFastMutex(&m)); /* no matter whose */
    ExReleaseFastMutex(&m);
    assert_int_equal(KeGetCurrentIrql(), PASSIVE_LEVEL);
    KeEnterCriticalRegion();
    ExAcquireFastMutexUnsafe(&m);
    assert_int_equal(KeGetCurrentIrql(), PASSIVE_LEVEL);
    ExReleaseFastMutexUnsafe(&m);
    KeLeaveCriticalRegion();
    assert_int_equal(nt_finding_count(), findings);
}

enum { THREADS = 4, ROUNDS = 5000 };

struct shared {
    FAST_MUTEX mutex;
    EX_PUSH_LOCK lock;
    long count; /* under the lock in question, no atomic */
    atomic_int readers, most_readers;
};

static void count_under_mutex(void *arg)
{
    struct shared *s = arg;

    for (int i = 0; i < ROUNDS; i++) {
        ExAcquireFastMutex(&s->mutex);
        s->count++;
        ExReleaseFastMutex(&s->mutex);
    }
}

static void run_threads(void (*fn)(void *), struct shared *s)
{
    struct os_thread *threads[THREADS];

    for (int i = 0; i < THREADS; i++)
        assert_int_equal(os_thread_start(&threads[i], "lock", fn, s), 0);
    for (int i = 0; i < THREADS; i++)
        os_thread_join(threads[i]);
}

static void a_fast_mutex_has_one_owner(void **state)
{
    struct shared s = {.count = 0};

    (void)state;
    ExInitializeFastMutex(&s.mutex);
    run_threads(count_under_mutex, &s);
    assert_int_equal(s.count, THREADS * ROUNDS);
    assert_int_equal(s.mutex.Count, 1);
}

struct scene {
    FAST_MUTEX *mutex;
    atomic_int has;
};

static void take_and_free(void *arg)
{
    struct scene *s = arg;

    ExAcquireFastMutex(s->mutex);
    atomic_store(&s->has, 1);
    ExReleaseFastMutex(s->mutex);
    free(s->mutex);
}

static void the_next_owner_may_free_the_mutex(void **state)
{
    (void)state;
    for (int i = 0; i < 300; i++) {
        struct scene s = {.mutex = malloc(sizeof *s.mutex)};
        struct os_thread *thread;

        assert_non_null(s.mutex);
        ExInitializeFastMutex(s.mutex);
        ExAcquireFastMutex(s.mutex);
        assert_int_equal(os_thread_start(&thread, "free", take_and_free, &s), 0);
        if (i % 2)
            AWAIT(__atomic_load_n(&s.mutex->Contention, __ATOMIC_RELAXED)); /* it waits */
        assert_int_equal(atomic_load(&s.has), 0);
        ExReleaseFastMutex(s.mutex);
        os_thread_join(thread);
        assert_int_equal(atomic_load(&s.has), 1);
    }
}

static void release_it(void *arg)
{
    nt_irql_set(APC_LEVEL);
    ExReleaseFastMutex(arg);
}

static void misuse_of_a_fast_mutex_is_found(void **state)
{
    unsigned findings = nt_finding_count();
    struct os_thread *thread;
    FAST_MUTEX m;

    (void)state;
    ExInitializeFastMutex(&m);
    ExAcquireFastMutex(&m);
    ExAcquireFastMutex(&m);
    ASSERT_FINDING(findings, "this thread holds the mutex");
    ExReleaseFastMutex(&m);
    assert_int_equal(m.Count, 0);
    assert_int_equal(KeGetCurrentIrql(), APC_LEVEL);
    assert_int_equal(os_thread_start(&thread, "other", release_it, &m), 0);
    os_thread_join(thread);
    ASSERT_FINDING(findings + 1, "this thread does not hold the mutex");
    assert_int_equal(m.Count, 0);
    ExReleaseFastMutex(&m);
    assert_int_equal(KeGetCurrentIrql(), PASSIVE_LEVEL);
    ExReleaseFastMutex(&m);
    ASSERT_FINDING(findings + 2, "this thread does not hold the mutex");
    ExAcquireFastMutexUnsafe(&m);
    ASSERT_FINDING(findings + 3, "neither in a critical region nor at APC_LEVEL");
    ExReleaseFastMutexUnsafe(&m);
    assert_int_equal(nt_finding_count(), findings + 5);
    nt_irql_set(DISPATCH_LEVEL);
    ExAcquireFastMutex(&m);
    ASSERT_FINDING(findings + 5, "ExAcquireFastMutex: IRQL too high");
    ExReleaseFastMutex(&m);
    assert_int_equal(KeGetCurrentIrql(), DISPATCH_LEVEL);
    nt_irql_set(PASSIVE_LEVEL);
}

/* ---- guarded mutexes ------------------------------------------------------------------------- */

static void a_guarded_mutex_leaves_the_level(void **state)
{
    unsigned findings = nt_finding_count();
    KGUARDED_MUTEX m;

    (void)state;
    KeInitializeGuardedMutex(&m);
    KeAcquireGuardedMutex(&m);
    assert_int_equal(KeGetCurrentIrql(), PASSIVE_LEVEL);
    assert_true(KeAreApcsDisabled());
    assert_false(KeTryToAcquireGuardedMutex(&m));
    KeReleaseGuardedMutex(&m);
    assert_false(KeAreApcsDisabled());
    assert_true(KeTryToAcquireGuardedMutex(&m));
    assert_true(KeAreApcsDisabled());
    KeReleaseGuardedMutex(&m);
    assert_false(KeAreApcsDisabled());
    KeEnterGuardedRegion();
    KeAcquireGuardedMutexUnsafe(&m);
    KeReleaseGuardedMutexUnsafe(&m);
    assert_true(KeAreApcsDisabled());
    KeLeaveGuardedRegion();
    assert_false(KeAreApcsDisabled());
    assert_int_equal(nt_finding_count(), findings);
}

static void count_under_guarded_mutex(void *arg)
{
    struct shared *s = arg;

    for (int i = 0; i < ROUNDS; i++) {
        KeAcquireGuardedMutex(&s->mutex);
        s->count++;
        KeReleaseGuardedMutex(&s->mutex);
    }
}

static void a_guarded_mutex_has_one_owner(void **state)
{
    struct shared s = {.count = 0};

    (void)state;
    KeInitializeGuardedMutex(&s.mutex);
    run_threads(count_under_guarded_mutex, &s);
    assert_int_equal(s.count, THREADS * ROUNDS);
    assert_int_equal(s.mutex.Count, 1);
}

static void misuse_of_a_guarded_mutex_is_found(void **state)
{
    unsigned findings = nt_finding_count();
    KGUARDED_MUTEX m;

    (void)state;
    KeInitializeGuardedMutex(&m);
    KeReleaseGuardedMutex(&m);
    ASSERT_FINDING(findings, "this thread does not hold the mutex");
    KeAcquireGuardedMutex(&m);
    KeAcquireGuardedMutex(&m);
    ASSERT_FINDING(findings + 1, "this thread holds the mutex");
    KeReleaseGuardedMutex(&m);
    assert_int_equal(m.Count, 0);
    assert_true(KeAreApcsDisabled());
    KeReleaseGuardedMutex(&m);
    assert_int_equal(m.Count, 1);
    assert_false(KeAreApcsDisabled());
    KeAcquireGuardedMutexUnsafe(&m);
    ASSERT_FINDING(findings + 2, "KeAcquireGuardedMutexUnsafe: neither in a critical region");
    KeReleaseGuardedMutexUnsafe(&m);
    KeLeaveGuardedRegion();
    ASSERT_FINDING(findings + 4, "KeLeaveGuardedRegion: the thread is in none");
    nt_irql_set(DISPATCH_LEVEL);
    assert_true(KeTryToAcquireGuardedMutex(&m));
    ASSERT_FINDING(findings + 5, "KeTryToAcquireGuardedMutex: IRQL too high");
    nt_irql_set(PASSIVE_LEVEL);
    KeReleaseGuardedMutex(&m);
}

/* ---- push locks ------------------------------------------------------------------------------ */

static void count_under_push_lock(void *arg)
{
    struct shared *s = arg;

    KeEnterCriticalRegion();
    for (int i = 0; i < ROUNDS; i++) {
        if (i % 4 == 0) {
            ExAcquirePushLockExclusive(&s->lock);
            if (atomic_load(&s->readers))
                abort();
            s->count++;
            ExReleasePushLockExclusive(&s->lock);
        } else {
            long before;

            ExAcquirePushLockShared(&s->lock);
            before = s->count;
            atomic_fetch_add(&s->readers, 1);
            if (s->count != before)
                abort();
            atomic_fetch_sub(&s->readers, 1);
            ExReleasePushLockShared(&s->lock);
        }
    }
    KeLeaveCriticalRegion();
}

static void a_push_lock_has_readers_or_a_writer(void **state)
{
    struct shared s = {.count = 0};

    (void)state;
    ExInitializePushLock(&s.lock);
    run_threads(count_under_push_lock, &s);
    assert_int_equal(s.count, THREADS * ROUNDS / 4);
    assert_int_equal(s.lock, 0);
}

static void read_together(void *arg)
{
    struct shared *s = arg;
    uint64_t limit = os_now_us() + LIMIT_S * 1000000ull;

    KeEnterCriticalRegion();
    ExAcquirePushLockShared(&s->lock);
    atomic_fetch_add(&s->readers, 1);
    while (atomic_load(&s->readers) < THREADS && os_now_us() < limit)
        os_sleep_us(100);
    if (atomic_load(&s->readers) == THREADS)
        atomic_fetch_add(&s->most_readers, 1);
    ExReleasePushLockShared(&s->lock);
    KeLeaveCriticalRegion();
}

static void readers_are_in_at_once(void **state)
{
    struct shared s = {.count = 0};

    (void)state;
    ExInitializePushLock(&s.lock);
    run_threads(read_together, &s); /* each stays until all are in */
    assert_int_equal(s.most_readers, THREADS);
    assert_int_equal(s.lock, 0);
}

struct queue {
    EX_PUSH_LOCK lock;
    atomic_int order, writer_at, reader_at;
};

static void write_late(void *arg)
{
    struct queue *q = arg;

    KeEnterCriticalRegion();
    ExAcquirePushLockExclusive(&q->lock);
    atomic_store(&q->writer_at, atomic_fetch_add(&q->order, 1) + 1);
    ExReleasePushLockExclusive(&q->lock);
    KeLeaveCriticalRegion();
}

static void read_later(void *arg)
{
    struct queue *q = arg;

    KeEnterCriticalRegion();
    ExAcquirePushLockShared(&q->lock);
    atomic_store(&q->reader_at, atomic_fetch_add(&q->order, 1) + 1);
    ExReleasePushLockShared(&q->lock);
    KeLeaveCriticalRegion();
}

/* Readers queue up one octet further than writers. */
static bool waits_at(const void *object)
{
    struct nt_bucket *b = nt_wait_lock(object);
    bool any = nt_wait_any(b, object);

    nt_wait_unlock(b);
    return any;
}

static void a_writer_that_waits_holds_up_new_readers(void **state)
{
    struct queue q = {.lock = 0};
    struct os_thread *writer, *reader;

    (void)state;
    KeEnterCriticalRegion();
    ExAcquirePushLockShared(&q.lock);
    assert_int_equal(os_thread_start(&writer, "write", write_late, &q), 0);
    AWAIT(waits_at(&q.lock));
    assert_int_equal(os_thread_start(&reader, "read", read_later, &q), 0);
    AWAIT(atomic_load(&q.reader_at) || waits_at((const char *)&q.lock + 1));
    assert_int_equal(atomic_load(&q.reader_at), 0);
    assert_int_equal(atomic_load(&q.writer_at), 0);
    ExReleasePushLockShared(&q.lock);
    KeLeaveCriticalRegion();
    os_thread_join(writer);
    os_thread_join(reader);
    assert_int_equal(atomic_load(&q.writer_at) + atomic_load(&q.reader_at), 3);
    assert_int_equal(q.lock, 0);
}

static void misuse_of_a_push_lock_is_found(void **state)
{
    unsigned findings = nt_finding_count();
    EX_PUSH_LOCK lock;

    (void)state;
    ExInitializePushLock(&lock);
    ExAcquirePushLockShared(&lock);
    ASSERT_FINDING(findings, "neither in a critical region nor at APC_LEVEL");
    ExReleasePushLockShared(&lock);
    findings = nt_finding_count();
    KeEnterCriticalRegion();
    ExAcquirePushLockExclusiveEx(&lock, EX_DEFAULT_PUSH_LOCK_FLAGS);
    ExReleasePushLockExclusiveEx(&lock, EX_DEFAULT_PUSH_LOCK_FLAGS);
    ExAcquirePushLockSharedEx(&lock, EX_DEFAULT_PUSH_LOCK_FLAGS);
    ExReleasePushLockSharedEx(&lock, EX_DEFAULT_PUSH_LOCK_FLAGS);
    assert_int_equal(nt_finding_count(), findings);
    ExAcquirePushLockExclusive(&lock);
    ExAcquirePushLockExclusive(&lock);
    ASSERT_FINDING(findings, "this thread holds the lock");
    ExReleasePushLockExclusive(&lock);
    ExReleasePushLockShared(&lock);
    ASSERT_FINDING(findings + 1, "ExReleasePushLockShared: nobody holds the lock");
    ExReleasePushLockExclusive(&lock);
    ExReleasePushLockExclusive(&lock);
    ASSERT_FINDING(findings + 2, "ExReleasePushLockExclusive: nobody holds the lock");
    ExAcquirePushLockShared(&lock);
    ExReleasePushLockExclusive(&lock);
    assert_int_equal(nt_finding_count(), findings + 4);
    ExReleasePushLockShared(&lock);
    KeLeaveCriticalRegion();
    assert_int_equal(lock, 0);
    assert_int_equal(nt_finding_count(), findings + 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(regions_nest),
        cmocka_unit_test(a_fast_mutex_raises_to_apc_level),
        cmocka_unit_test(a_fast_mutex_has_one_owner),
        cmocka_unit_test(the_next_owner_may_free_the_mutex),
        cmocka_unit_test(misuse_of_a_fast_mutex_is_found),
        cmocka_unit_test(a_guarded_mutex_leaves_the_level),
        cmocka_unit_test(a_guarded_mutex_has_one_owner),
        cmocka_unit_test(misuse_of_a_guarded_mutex_is_found),
        cmocka_unit_test(a_push_lock_has_readers_or_a_writer),
        cmocka_unit_test(readers_are_in_at_once),
        cmocka_unit_test(a_writer_that_waits_holds_up_new_readers),
        cmocka_unit_test(misuse_of_a_push_lock_is_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
