// SPDX-License-Identifier: MIT
/*
 * Spin locks.
 *
 * The low 32 bits of the word are 0, or the holder's thread number, with CONTENDED set when
 * somebody may sleep. Whoever finds it taken spins for about a microsecond, as the holder usually
 * runs on the other processor and is done by then; after that it sets CONTENDED and sleeps in the
 * kernel until a release wakes it, since a holder that lost its processor may be away for
 * milliseconds. A woken thread takes the lock with CONTENDED set, because others may still sleep.
 * The last thing a release touches is the word: the next holder may free its memory (a wake on an
 * address reads nothing).
 *
 * Where a word has 64 bits the upper half keeps how the lock is taken, by the ordinary calls or by
 * the queued ones. It is written by holders only.
 */
#include <stdint.h>

#include "base/red.h"
#include "nt/held.h"
#include "nt/nt.h"
#include "os/os_sync.h"
#include "os/sanitize.h"

#define CONTENDED  0x80000000u
#define SPIN_TURNS 100 /* of os_cpu_relax(): 1 to 5 us */

enum { TAKEN_PLAIN = 1, TAKEN_QUEUED = 2 };

static uint32_t *word_of(PKSPIN_LOCK lock)
{
    uint32_t *half = (uint32_t *)(void *)lock;

#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    half += sizeof(*lock) / sizeof(*half) - 1;
#endif
    return half;
}

/* Notes how the lock is taken, by its holder; false when that was otherwise before. */
static bool note_way(PKSPIN_LOCK lock, uint32_t way)
{
#if __SIZEOF_POINTER__ == 8
    uint32_t *half = word_of(lock) + (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__ ? -1 : 1);
    uint32_t before = __atomic_load_n(half, __ATOMIC_RELAXED);

    if (before == way)
        return true;
    __atomic_store_n(half, way, __ATOMIC_RELAXED);
    return before == 0;
#else
    (void)lock;
    (void)way;
    return true;
#endif
}

static bool try_word(uint32_t *word, uint32_t value)
{
    uint32_t free = 0;

    return __atomic_compare_exchange_n(word, &free, value, false, __ATOMIC_ACQUIRE,
                                       __ATOMIC_RELAXED);
}

static void take_word(uint32_t *word, uint32_t me)
{
    uint32_t seen;

    for (int turn = 0; turn < SPIN_TURNS; turn++) {
        if (__atomic_load_n(word, __ATOMIC_RELAXED) == 0 && try_word(word, me))
            return;
        os_cpu_relax();
    }
    for (;;) {
        seen = __atomic_load_n(word, __ATOMIC_RELAXED);
        if (seen == 0) {
            if (try_word(word, me | CONTENDED))
                return;
            continue;
        }
        if (!(seen & CONTENDED) &&
            !__atomic_compare_exchange_n(word, &seen, seen | CONTENDED, false, __ATOMIC_RELAXED,
                                         __ATOMIC_RELAXED))
            continue;
        if (!RED("nt-spin-no-sleep"))
            os_futex_wait(word, seen | CONTENDED);
    }
}

/* Takes the lock; the level is the caller's affair. */
static void take(PKSPIN_LOCK lock, uint32_t way, const char *call, const void *caller)
{
    uint32_t me = os_thread_id();
    uint32_t *word = word_of(lock);

    if ((__atomic_load_n(word, __ATOMIC_RELAXED) & ~CONTENDED) == me) {
        nt_finding_from(caller, "%s: this thread holds the lock %p already", call, (void *)lock);
        if (nt_again_add(lock)) {
            nt_holds_spin_lock(+1);
            return;
        }
    }
    sanitize_lock_taking(lock);
    if (RED("nt-spin-not-exclusive"))
        __atomic_store_n(word, me, __ATOMIC_RELAXED);
    else if (!try_word(word, me))
        take_word(word, me);
    sanitize_lock_taken(lock);
    nt_holds_spin_lock(+1);
    nt_held_add(lock, caller);
    if (!note_way(lock, way))
        nt_finding_from(caller, "%s: the lock %p is taken by ordinary and by queued calls", call,
                        (void *)lock);
}

static void release(PKSPIN_LOCK lock, const char *call, const void *caller)
{
    uint32_t me = os_thread_id();
    uint32_t *word = word_of(lock);
    uint32_t seen = __atomic_load_n(word, __ATOMIC_RELAXED);

    if ((seen & ~CONTENDED) != me) {
        nt_finding_from(caller, "%s: the lock %p is held by %s", call, (void *)lock,
                        seen ? "another thread" : "nobody");
        if (seen == 0) {
            nt_holds_spin_lock(-1);
            return;
        }
    } else {
        nt_holds_spin_lock(-1);
        if (nt_again_drop(lock))
            return;
        nt_held_drop(lock);
    }
    sanitize_lock_releasing(lock);
    seen = __atomic_exchange_n(word, 0, __ATOMIC_RELEASE);
    sanitize_lock_released(lock);
    if (seen & CONTENDED)
        os_futex_wake(word, 1);
}

static void need_dispatch(const char *call, const void *caller)
{
    KIRQL now = KeGetCurrentIrql();

    if (now < DISPATCH_LEVEL)
        nt_finding_from(caller, "%s: IRQL too low (have %u, need >= %u)", call, now,
                        DISPATCH_LEVEL);
}

/* Raises to DISPATCH_LEVEL for a lock; the former level. */
static KIRQL raise_for(const char *call, const void *caller)
{
    KIRQL old = KeGetCurrentIrql();

    if (nt_irql_at_most(DISPATCH_LEVEL, call, caller))
        nt_irql_set(DISPATCH_LEVEL);
    return old;
}

/* Goes to the level of before a raise. Another lock may be held still, taken meanwhile. */
static void lower_to(KIRQL level, const char *call, const void *caller)
{
    if (level > DISPATCH_LEVEL)
        nt_finding_from(caller, "%s: no level that an acquire returned (have %u)", call, level);
    if (level < DISPATCH_LEVEL && nt_spin_locks_held() > 0)
        nt_finding_from(caller, "%s: below DISPATCH_LEVEL with another spin lock held (have %u)",
                        call, level);
    nt_irql_set(level);
}

VOID KeInitializeSpinLock(PKSPIN_LOCK SpinLock)
{
    sanitize_lock_init(SpinLock);
    *SpinLock = 0;
}

KIRQL KeAcquireSpinLockRaiseToDpc(PKSPIN_LOCK SpinLock)
{
    KIRQL old = raise_for("KeAcquireSpinLock", NT_CALLER);

    take(SpinLock, TAKEN_PLAIN, "KeAcquireSpinLock", NT_CALLER);
    return old;
}

VOID KeReleaseSpinLock(PKSPIN_LOCK SpinLock, KIRQL NewIrql)
{
    need_dispatch("KeReleaseSpinLock", NT_CALLER);
    release(SpinLock, "KeReleaseSpinLock", NT_CALLER);
    lower_to(NewIrql, "KeReleaseSpinLock", NT_CALLER);
}

VOID KeAcquireSpinLockAtDpcLevel(PKSPIN_LOCK SpinLock)
{
    need_dispatch("KeAcquireSpinLockAtDpcLevel", NT_CALLER);
    take(SpinLock, TAKEN_PLAIN, "KeAcquireSpinLockAtDpcLevel", NT_CALLER);
}

VOID KeReleaseSpinLockFromDpcLevel(PKSPIN_LOCK SpinLock)
{
    need_dispatch("KeReleaseSpinLockFromDpcLevel", NT_CALLER);
    release(SpinLock, "KeReleaseSpinLockFromDpcLevel", NT_CALLER);
}

BOOLEAN KeTryToAcquireSpinLockAtDpcLevel(PKSPIN_LOCK SpinLock)
{
    bool taken;

    need_dispatch("KeTryToAcquireSpinLockAtDpcLevel", NT_CALLER);
    sanitize_lock_try(SpinLock);
    taken = try_word(word_of(SpinLock), os_thread_id());
    sanitize_lock_tried(SpinLock, taken);
    if (!taken)
        return FALSE;
    nt_holds_spin_lock(+1);
    nt_held_add(SpinLock, NT_CALLER);
    (void)note_way(SpinLock, TAKEN_PLAIN);
    return TRUE;
}

BOOLEAN KeTestSpinLock(PKSPIN_LOCK SpinLock)
{
    return __atomic_load_n(word_of(SpinLock), __ATOMIC_RELAXED) == 0;
}

VOID KeAcquireInStackQueuedSpinLock(PKSPIN_LOCK SpinLock, PKLOCK_QUEUE_HANDLE LockHandle)
{
    KIRQL old = raise_for("KeAcquireInStackQueuedSpinLock", NT_CALLER);

    take(SpinLock, TAKEN_QUEUED, "KeAcquireInStackQueuedSpinLock", NT_CALLER);
    LockHandle->LockQueue.Next = NULL;
    LockHandle->LockQueue.Lock = SpinLock;
    LockHandle->OldIrql = old;
}

VOID KeReleaseInStackQueuedSpinLock(PKLOCK_QUEUE_HANDLE LockHandle)
{
    KIRQL old = LockHandle->OldIrql;

    need_dispatch("KeReleaseInStackQueuedSpinLock", NT_CALLER);
    release(LockHandle->LockQueue.Lock, "KeReleaseInStackQueuedSpinLock", NT_CALLER);
    lower_to(old, "KeReleaseInStackQueuedSpinLock", NT_CALLER);
}

VOID KeAcquireInStackQueuedSpinLockAtDpcLevel(PKSPIN_LOCK SpinLock, PKLOCK_QUEUE_HANDLE LockHandle)
{
    need_dispatch("KeAcquireInStackQueuedSpinLockAtDpcLevel", NT_CALLER);
    take(SpinLock, TAKEN_QUEUED, "KeAcquireInStackQueuedSpinLockAtDpcLevel", NT_CALLER);
    LockHandle->LockQueue.Next = NULL;
    LockHandle->LockQueue.Lock = SpinLock;
    LockHandle->OldIrql = KeGetCurrentIrql();
}

VOID KeReleaseInStackQueuedSpinLockFromDpcLevel(PKLOCK_QUEUE_HANDLE LockHandle)
{
    need_dispatch("KeReleaseInStackQueuedSpinLockFromDpcLevel", NT_CALLER);
    release(LockHandle->LockQueue.Lock, "KeReleaseInStackQueuedSpinLockFromDpcLevel", NT_CALLER);
}
