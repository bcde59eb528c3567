// SPDX-License-Identifier: MIT
/*
 * wdm/mutex.h - locks that sleep: fast mutexes, push locks, resources. A part of wdm.h; include
 * that.
 *
 * Taken at APC_LEVEL or below. Taking one twice in one thread (where that is not allowed),
 * releasing one that the thread does not hold, and taking one without the protection that the kind
 * needs are findings.
 */
#ifndef SOFTNDK_WDM_MUTEX_H
#define SOFTNDK_WDM_MUTEX_H

#include "wait.h"

SOFTNDK_BEGIN_C

/* Between these, which may nest, a thread is not suspended on Windows; push locks and resources
 * need it. Leaving more often than entering is a finding. */
VOID KeEnterCriticalRegion(VOID);
VOID KeLeaveCriticalRegion(VOID);
/* TRUE within, and at APC_LEVEL or above. */
BOOLEAN KeAreApcsDisabled(VOID);

/* ---- fast mutexes ---- */

typedef struct _FAST_MUTEX {
    LONG Count; /* 1: free */
    PVOID Owner;
    ULONG Contention;
    KEVENT Event;
    ULONG OldIrql;
} FAST_MUTEX, *PFAST_MUTEX;

VOID ExInitializeFastMutex(PFAST_MUTEX FastMutex);

/* Between acquire and release the thread is at APC_LEVEL. */
VOID ExAcquireFastMutex(PFAST_MUTEX FastMutex);
BOOLEAN ExTryToAcquireFastMutex(PFAST_MUTEX FastMutex);
VOID ExReleaseFastMutex(PFAST_MUTEX FastMutex);

/* The same for a caller that is at APC_LEVEL or in a critical region already; the level stays. */
VOID ExAcquireFastMutexUnsafe(PFAST_MUTEX FastMutex);
VOID ExReleaseFastMutexUnsafe(PFAST_MUTEX FastMutex);

/* ---- guarded mutexes ---- */

/* A fast mutex that leaves the level: between acquire and release the thread is in a guarded
 * region, which is to this library as a critical region. IRQL <= APC_LEVEL. */
typedef FAST_MUTEX KGUARDED_MUTEX, *PKGUARDED_MUTEX;

VOID KeEnterGuardedRegion(VOID);
VOID KeLeaveGuardedRegion(VOID);

VOID KeInitializeGuardedMutex(PKGUARDED_MUTEX Mutex);
VOID KeAcquireGuardedMutex(PKGUARDED_MUTEX Mutex);
BOOLEAN KeTryToAcquireGuardedMutex(PKGUARDED_MUTEX Mutex);
VOID KeReleaseGuardedMutex(PKGUARDED_MUTEX Mutex);

/* The same for a caller that is in a guarded region, or at APC_LEVEL, already. */
VOID KeAcquireGuardedMutexUnsafe(PKGUARDED_MUTEX Mutex);
VOID KeReleaseGuardedMutexUnsafe(PKGUARDED_MUTEX Mutex);

/* ---- push locks ---- */

/* One word, 0 when free: many readers, or one writer; who holds it does not take it again. A writer
 * that waits holds up new readers. In a critical region, or at APC_LEVEL. */
typedef ULONG_PTR EX_PUSH_LOCK, *PEX_PUSH_LOCK;

#define EX_DEFAULT_PUSH_LOCK_FLAGS 0

VOID ExInitializePushLock(PEX_PUSH_LOCK PushLock);
VOID ExAcquirePushLockExclusiveEx(PEX_PUSH_LOCK PushLock, ULONG Flags);
VOID ExAcquirePushLockSharedEx(PEX_PUSH_LOCK PushLock, ULONG Flags);
VOID ExReleasePushLockExclusiveEx(PEX_PUSH_LOCK PushLock, ULONG Flags);
VOID ExReleasePushLockSharedEx(PEX_PUSH_LOCK PushLock, ULONG Flags);
#define ExAcquirePushLockExclusive(Lock)                                                           \
    ExAcquirePushLockExclusiveEx(Lock, EX_DEFAULT_PUSH_LOCK_FLAGS)
#define ExAcquirePushLockShared(Lock) ExAcquirePushLockSharedEx(Lock, EX_DEFAULT_PUSH_LOCK_FLAGS)
#define ExReleasePushLockExclusive(Lock)                                                           \
    ExReleasePushLockExclusiveEx(Lock, EX_DEFAULT_PUSH_LOCK_FLAGS)
#define ExReleasePushLockShared(Lock) ExReleasePushLockSharedEx(Lock, EX_DEFAULT_PUSH_LOCK_FLAGS)

/* ---- resources ---- */

/*
 * Many readers, or one writer; a holder may take it again, a writer as a reader too. Acquire
 * answers TRUE when it is held, FALSE when Wait is FALSE and it is not to be had at once. In a
 * critical region, or at APC_LEVEL. One that is not deleted is reported.
 */
typedef struct _ERESOURCE {
    PVOID Reserved[13];
} ERESOURCE, *PERESOURCE;

/* STATUS_SUCCESS, STATUS_INSUFFICIENT_RESOURCES. */
NTSTATUS ExInitializeResourceLite(PERESOURCE Resource);
/* Deleting one that is held is a finding, and nothing else. */
NTSTATUS ExDeleteResourceLite(PERESOURCE Resource);

BOOLEAN ExAcquireResourceExclusiveLite(PERESOURCE Resource, BOOLEAN Wait);
BOOLEAN ExAcquireResourceSharedLite(PERESOURCE Resource, BOOLEAN Wait);
/* Does not wait behind writers that wait. */
BOOLEAN ExAcquireSharedStarveExclusive(PERESOURCE Resource, BOOLEAN Wait);
VOID ExReleaseResourceLite(PERESOURCE Resource);
/* The writer goes on as a reader. */
VOID ExConvertExclusiveToSharedLite(PERESOURCE Resource);

BOOLEAN ExIsResourceAcquiredExclusiveLite(PERESOURCE Resource); /* by this thread */
ULONG ExIsResourceAcquiredSharedLite(PERESOURCE Resource);      /* how often, in either way */
ULONG ExGetExclusiveWaiterCount(PERESOURCE Resource);
ULONG ExGetSharedWaiterCount(PERESOURCE Resource);

SOFTNDK_END_C

#endif /* SOFTNDK_WDM_MUTEX_H */
