// SPDX-License-Identifier: MIT
/*
 * Critical regions, fast mutexes, guarded mutexes (fast ones that enter a critical region instead
 * of raising the level) and push locks. The words of a lock are read and written under the lock of
 * its address's bucket (wait.h). A release hands the lock to a waiter, if there is one: it never
 * becomes free in between, so nobody overtakes.
 *
 * A push lock is a word: EXCLUSIVE, or a number of readers in units of SHARED; where a word has 64
 * bits the upper half is the writer's thread. Writers wait for the address of the lock, readers for
 * that plus 1, which is in the same bucket. After a writer come the readers that wait, after the
 * last reader a writer; a reader that finds a writer waiting queues up. So neither starves.
 */
#include <stdint.h>

#include "base/red.h"
#include "nt/nt.h"
#include "nt/wait.h"
#include "os/sanitize.h"

static const struct os_deadline never = {.clock = OS_NEVER};

static PVOID self(void)
{
    return (PVOID)(uintptr_t)os_thread_id();
}

/* ---- critical regions ------------------------------------------------------------------------ */

VOID KeEnterCriticalRegion(VOID)
{
    nt_critical_region(+1);
}

VOID KeLeaveCriticalRegion(VOID)
{
    if (!nt_critical_region(-1))
        nt_finding_from(NT_CALLER, "KeLeaveCriticalRegion: the thread is in none");
}

BOOLEAN KeAreApcsDisabled(VOID)
{
    return nt_in_critical_region();
}

static void need_region(const char *call, const void *caller)
{
    (void)nt_irql_at_most(APC_LEVEL, call, caller);
    if (!nt_in_critical_region())
        nt_finding_from(caller, "%s: neither in a critical region nor at APC_LEVEL", call);
}

/* ---- fast mutexes ---------------------------------------------------------------------------- */

VOID ExInitializeFastMutex(PFAST_MUTEX FastMutex)
{
    sanitize_lock_init(FastMutex);
    *FastMutex = (FAST_MUTEX){.Count = 1};
    KeInitializeEvent(&FastMutex->Event, SynchronizationEvent, FALSE);
}

static bool mutex_is_mine(PFAST_MUTEX m)
{
    struct nt_bucket *b = nt_wait_lock(m);
    bool mine = m->Count != 1 && m->Owner == self();

    nt_wait_unlock(b);
    return mine;
}

/* A take by the thread that has it: told, and counted with the thread. False: it does not. */
static bool mutex_take_again(PFAST_MUTEX m, const char *call, const void *caller)
{
    if (!mutex_is_mine(m) || !nt_again_add(m))
        return false;
    nt_finding_from(caller, "%s: this thread holds the mutex %p already", call, (void *)m);
    return true;
}

static void mutex_take(PFAST_MUTEX m)
{
    struct nt_bucket *b;

    sanitize_lock_taking(m);
    b = nt_wait_lock(m);
    if (m->Count == 1 || RED("nt-mutex-not-exclusive")) {
        m->Count = 0;
    } else {
        m->Contention++;
        (void)nt_wait_sleep(b, m, &never); /* and it was handed over */
    }
    m->Owner = self();
    nt_wait_unlock(b);
    sanitize_lock_taken(m);
}

/* A release of what the thread does not hold is told, one that belongs to a take too many is
 * counted: false in both cases, and the mutex is as before. */
static bool mutex_may_give(PFAST_MUTEX m, const char *call, const void *caller)
{
    if (mutex_is_mine(m))
        return !nt_again_drop(m);
    nt_finding_from(caller, "%s: this thread does not hold the mutex %p", call, (void *)m);
    return false;
}

/* The mutex may be freed by the next owner as soon as this has let go of the bucket. */
static void mutex_give(PFAST_MUTEX m)
{
    struct nt_bucket *b;

    sanitize_lock_releasing(m);
    b = nt_wait_lock(m);
    m->Owner = NULL;
    if (!nt_wait_release_one(b, m))
        m->Count = 1;
    nt_wait_unlock(b);
    sanitize_lock_released(m);
}

VOID ExAcquireFastMutex(PFAST_MUTEX FastMutex)
{
    KIRQL old = KeGetCurrentIrql();

    (void)nt_irql_at_most(APC_LEVEL, "ExAcquireFastMutex", NT_CALLER);
    if (mutex_take_again(FastMutex, "ExAcquireFastMutex", NT_CALLER))
        return;
    mutex_take(FastMutex);
    FastMutex->OldIrql = old;
    nt_irql_set(old < APC_LEVEL ? APC_LEVEL : old);
}

static bool mutex_try(PFAST_MUTEX m)
{
    struct nt_bucket *b;
    bool taken;

    sanitize_lock_try(m);
    b = nt_wait_lock(m);
    taken = m->Count == 1;
    if (taken) {
        m->Count = 0;
        m->Owner = self();
    }
    nt_wait_unlock(b);
    sanitize_lock_tried(m, taken);
    return taken;
}

BOOLEAN ExTryToAcquireFastMutex(PFAST_MUTEX FastMutex)
{
    KIRQL old = KeGetCurrentIrql();

    (void)nt_irql_at_most(APC_LEVEL, "ExTryToAcquireFastMutex", NT_CALLER);
    if (!mutex_try(FastMutex))
        return FALSE;
    FastMutex->OldIrql = old;
    nt_irql_set(old < APC_LEVEL ? APC_LEVEL : old);
    return TRUE;
}

VOID ExReleaseFastMutex(PFAST_MUTEX FastMutex)
{
    KIRQL old;

    (void)nt_irql_at_most(APC_LEVEL, "ExReleaseFastMutex", NT_CALLER);
    if (!mutex_may_give(FastMutex, "ExReleaseFastMutex", NT_CALLER))
        return;
    old = (KIRQL)FastMutex->OldIrql;
    mutex_give(FastMutex);
    nt_irql_set(old);
}

VOID ExAcquireFastMutexUnsafe(PFAST_MUTEX FastMutex)
{
    need_region("ExAcquireFastMutexUnsafe", NT_CALLER);
    if (!mutex_take_again(FastMutex, "ExAcquireFastMutexUnsafe", NT_CALLER))
        mutex_take(FastMutex);
}

VOID ExReleaseFastMutexUnsafe(PFAST_MUTEX FastMutex)
{
    need_region("ExReleaseFastMutexUnsafe", NT_CALLER);
    if (mutex_may_give(FastMutex, "ExReleaseFastMutexUnsafe", NT_CALLER))
        mutex_give(FastMutex);
}

/* ---- guarded mutexes ------------------------------------------------------------------------- */

VOID KeEnterGuardedRegion(VOID)
{
    nt_critical_region(+1);
}

VOID KeLeaveGuardedRegion(VOID)
{
    if (!nt_critical_region(-1))
        nt_finding_from(NT_CALLER, "KeLeaveGuardedRegion: the thread is in none");
}

VOID KeInitializeGuardedMutex(PKGUARDED_MUTEX Mutex)
{
    ExInitializeFastMutex(Mutex);
}

VOID KeAcquireGuardedMutex(PKGUARDED_MUTEX Mutex)
{
    (void)nt_irql_at_most(APC_LEVEL, "KeAcquireGuardedMutex", NT_CALLER);
    nt_critical_region(+1);
    if (!mutex_take_again(Mutex, "KeAcquireGuardedMutex", NT_CALLER))
        mutex_take(Mutex);
}

BOOLEAN KeTryToAcquireGuardedMutex(PKGUARDED_MUTEX Mutex)
{
    (void)nt_irql_at_most(APC_LEVEL, "KeTryToAcquireGuardedMutex", NT_CALLER);
    if (!mutex_try(Mutex))
        return FALSE;
    nt_critical_region(+1);
    return TRUE;
}

VOID KeReleaseGuardedMutex(PKGUARDED_MUTEX Mutex)
{
    bool held = mutex_is_mine(Mutex);

    (void)nt_irql_at_most(APC_LEVEL, "KeReleaseGuardedMutex", NT_CALLER);
    if (mutex_may_give(Mutex, "KeReleaseGuardedMutex", NT_CALLER))
        mutex_give(Mutex);
    if (held)
        nt_critical_region(-1); /* also of a take too many, which entered one, too */
}

VOID KeAcquireGuardedMutexUnsafe(PKGUARDED_MUTEX Mutex)
{
    need_region("KeAcquireGuardedMutexUnsafe", NT_CALLER);
    if (!mutex_take_again(Mutex, "KeAcquireGuardedMutexUnsafe", NT_CALLER))
        mutex_take(Mutex);
}

VOID KeReleaseGuardedMutexUnsafe(PKGUARDED_MUTEX Mutex)
{
    need_region("KeReleaseGuardedMutexUnsafe", NT_CALLER);
    if (mutex_may_give(Mutex, "KeReleaseGuardedMutexUnsafe", NT_CALLER))
        mutex_give(Mutex);
}

/* ---- push locks ------------------------------------------------------------------------------ */

#define EXCLUSIVE ((ULONG_PTR)1)
#define SHARED    ((ULONG_PTR)2)

/* What waits for a lock: writers for its address, readers for the next. */
static const void *readers_of(const EX_PUSH_LOCK *lock)
{
    return (const char *)lock + 1;
}

static EX_PUSH_LOCK writer_word(void)
{
#if __SIZEOF_POINTER__ == 8
    return EXCLUSIVE | (EX_PUSH_LOCK)os_thread_id() << 32;
#else
    return EXCLUSIVE;
#endif
}

VOID ExInitializePushLock(PEX_PUSH_LOCK PushLock)
{
    sanitize_lock_init(PushLock);
    *PushLock = 0;
}

VOID ExAcquirePushLockExclusiveEx(PEX_PUSH_LOCK PushLock, ULONG Flags)
{
    struct nt_bucket *b;
    bool mine;

    (void)Flags;
    need_region("ExAcquirePushLockExclusive", NT_CALLER);
    b = nt_wait_lock(PushLock);
    mine = *PushLock == writer_word() && writer_word() != EXCLUSIVE;
    nt_wait_unlock(b);
    if (mine && nt_again_add(PushLock)) {
        nt_finding_from(NT_CALLER,
                        "ExAcquirePushLockExclusive: this thread holds the lock %p "
                        "already",
                        (void *)PushLock);
        return;
    }
    sanitize_lock_taking(PushLock);
    b = nt_wait_lock(PushLock);
    if (*PushLock != 0)
        (void)nt_wait_sleep(b, PushLock, &never);
    *PushLock = writer_word();
    nt_wait_unlock(b);
    sanitize_lock_taken(PushLock);
}

VOID ExAcquirePushLockSharedEx(PEX_PUSH_LOCK PushLock, ULONG Flags)
{
    struct nt_bucket *b;

    (void)Flags;
    need_region("ExAcquirePushLockShared", NT_CALLER);
    sanitize_read_taking(PushLock);
    b = nt_wait_lock(PushLock);
    if (((*PushLock & EXCLUSIVE) || nt_wait_any(b, PushLock)) && !RED("nt-push-lock-reads-along"))
        (void)nt_wait_sleep(b, readers_of(PushLock), &never); /* counted by who let it in */
    else
        *PushLock += SHARED;
    nt_wait_unlock(b);
    sanitize_read_taken(PushLock);
}

VOID ExReleasePushLockExclusiveEx(PEX_PUSH_LOCK PushLock, ULONG Flags)
{
    struct nt_bucket *b = nt_wait_lock(PushLock);
    EX_PUSH_LOCK seen = *PushLock;

    (void)Flags;
    nt_wait_unlock(b);
    need_region("ExReleasePushLockExclusive", NT_CALLER);
    if (!(seen & EXCLUSIVE)) {
        nt_finding_from(NT_CALLER, "ExReleasePushLockExclusive: nobody holds the lock %p so",
                        (void *)PushLock);
        return;
    }
    if (seen != writer_word())
        nt_finding_from(NT_CALLER, "ExReleasePushLockExclusive: another thread holds the lock %p",
                        (void *)PushLock);
    else if (nt_again_drop(PushLock))
        return;
    sanitize_lock_releasing(PushLock);
    b = nt_wait_lock(PushLock);
    *PushLock = SHARED * nt_wait_release_all(b, readers_of(PushLock));
    if (*PushLock == 0 && nt_wait_release_one(b, PushLock))
        *PushLock = EXCLUSIVE; /* whose, it says itself */
    nt_wait_unlock(b);
    sanitize_lock_released(PushLock);
}

VOID ExReleasePushLockSharedEx(PEX_PUSH_LOCK PushLock, ULONG Flags)
{
    struct nt_bucket *b = nt_wait_lock(PushLock);
    EX_PUSH_LOCK seen = *PushLock;

    (void)Flags;
    nt_wait_unlock(b);
    need_region("ExReleasePushLockShared", NT_CALLER);
    if (seen < SHARED || (seen & EXCLUSIVE)) {
        nt_finding_from(NT_CALLER, "ExReleasePushLockShared: nobody holds the lock %p so",
                        (void *)PushLock);
        return;
    }
    sanitize_read_releasing(PushLock);
    b = nt_wait_lock(PushLock);
    *PushLock -= SHARED;
    if (*PushLock == 0 && nt_wait_release_one(b, PushLock))
        *PushLock = EXCLUSIVE;
    nt_wait_unlock(b);
    sanitize_read_released(PushLock);
}
