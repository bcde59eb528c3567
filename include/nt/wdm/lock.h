// SPDX-License-Identifier: MIT
/*
 * wdm/lock.h - spin locks, and rundown protection. A part of wdm.h; include that.
 */
#ifndef SOFTNDK_WDM_LOCK_H
#define SOFTNDK_WDM_LOCK_H

#include "irql.h"

SOFTNDK_BEGIN_C

/* ---- spin locks ---- */

/*
 * A word, 0 when nobody holds it; a static one needs no initialization. A thread that finds it
 * taken spins for a moment and then sleeps, so that a holder which lost its processor costs little.
 * Taking a lock twice, releasing one that is not held or another thread's, and a level that does
 * not fit are findings. One lock is taken either by the ordinary calls or by the in-stack queued
 * ones, never by both: a finding where it is noticed.
 */
typedef ULONG_PTR KSPIN_LOCK, *PKSPIN_LOCK;

VOID KeInitializeSpinLock(PKSPIN_LOCK SpinLock);

/* Raises to DISPATCH_LEVEL, takes the lock, returns the former level. IRQL <= DISPATCH_LEVEL. */
KIRQL KeAcquireSpinLockRaiseToDpc(PKSPIN_LOCK SpinLock);
#define KeAcquireSpinLock(SpinLock, OldIrql) (*(OldIrql) = KeAcquireSpinLockRaiseToDpc(SpinLock))

/* Releases the lock and goes to the level that the acquire returned. */
VOID KeReleaseSpinLock(PKSPIN_LOCK SpinLock, KIRQL NewIrql);

/* The same for callers that are at DISPATCH_LEVEL already; the level stays. */
VOID KeAcquireSpinLockAtDpcLevel(PKSPIN_LOCK SpinLock);
VOID KeReleaseSpinLockFromDpcLevel(PKSPIN_LOCK SpinLock);

/* Takes the lock if nobody has it; FALSE otherwise, and nothing happened. IRQL >= DISPATCH_LEVEL */
BOOLEAN KeTryToAcquireSpinLockAtDpcLevel(PKSPIN_LOCK SpinLock);

/* Whether the lock is free at this moment. */
BOOLEAN KeTestSpinLock(PKSPIN_LOCK SpinLock);

typedef struct _KSPIN_LOCK_QUEUE {
    struct _KSPIN_LOCK_QUEUE *volatile Next;
    PKSPIN_LOCK volatile Lock;
} KSPIN_LOCK_QUEUE, *PKSPIN_LOCK_QUEUE;

/* The holder's, usually on its stack, between acquire and release. */
typedef struct _KLOCK_QUEUE_HANDLE {
    KSPIN_LOCK_QUEUE LockQueue;
    KIRQL OldIrql;
} KLOCK_QUEUE_HANDLE, *PKLOCK_QUEUE_HANDLE;

VOID KeAcquireInStackQueuedSpinLock(PKSPIN_LOCK SpinLock, PKLOCK_QUEUE_HANDLE LockHandle);
VOID KeReleaseInStackQueuedSpinLock(PKLOCK_QUEUE_HANDLE LockHandle);
VOID KeAcquireInStackQueuedSpinLockAtDpcLevel(PKSPIN_LOCK SpinLock, PKLOCK_QUEUE_HANDLE LockHandle);
VOID KeReleaseInStackQueuedSpinLockFromDpcLevel(PKLOCK_QUEUE_HANDLE LockHandle);

/* ---- rundown protection ---- */

/*
 * Holds something in place while it is in use: users acquire and release, the owner waits once for
 * all of them to be gone, and from the beginning of that wait on no acquire succeeds.
 */
typedef struct _EX_RUNDOWN_REF {
    union {
        ULONG_PTR Count;
        PVOID Ptr;
    };
} EX_RUNDOWN_REF, *PEX_RUNDOWN_REF;

VOID ExInitializeRundownProtection(PEX_RUNDOWN_REF RunRef);

/* After a wait has ended: protection is to be had again. With users left it is a finding. */
VOID ExReInitializeRundownProtection(PEX_RUNDOWN_REF RunRef);

/* FALSE: the rundown has begun or is over, keep off. IRQL <= DISPATCH_LEVEL. */
BOOLEAN ExAcquireRundownProtection(PEX_RUNDOWN_REF RunRef);
BOOLEAN ExAcquireRundownProtectionEx(PEX_RUNDOWN_REF RunRef, ULONG Count);

/* Gives back one acquire, or Count of them. More than were acquired is a finding. The owner's wait
 * may end, and the memory go, with this call. IRQL <= DISPATCH_LEVEL. */
VOID ExReleaseRundownProtection(PEX_RUNDOWN_REF RunRef);
VOID ExReleaseRundownProtectionEx(PEX_RUNDOWN_REF RunRef, ULONG Count);

/* Stops further acquires and waits for the present users. May be called again; it returns at once
 * then. IRQL <= APC_LEVEL. */
VOID ExWaitForRundownProtectionRelease(PEX_RUNDOWN_REF RunRef);

/* Says that the rundown is over, for an owner that knows without waiting. */
VOID ExRundownCompleted(PEX_RUNDOWN_REF RunRef);

SOFTNDK_END_C

#endif /* SOFTNDK_WDM_LOCK_H */
