// SPDX-License-Identifier: MIT
/*
 * Rundown protection.
 *
 * Count is twice the number of users, plus 1 from the moment on that the rundown has begun. Without
 * that bit it is changed by atomics alone, and a release touches it once, so the owner may free the
 * memory as soon as it has set the bit and seen no user. With the bit set, only under the lock of
 * the address's bucket, which the waiting owner needs to return (see wait.h).
 */
#include "base/red.h"
#include "nt/nt.h"
#include "nt/wait.h"
#include "os/sanitize.h"

#define RUNNING_DOWN ((ULONG_PTR)1)

VOID ExInitializeRundownProtection(PEX_RUNDOWN_REF RunRef)
{
    __atomic_store_n(&RunRef->Count, 0, __ATOMIC_RELAXED);
}

VOID ExReInitializeRundownProtection(PEX_RUNDOWN_REF RunRef)
{
    ULONG_PTR seen = __atomic_exchange_n(&RunRef->Count, 0, __ATOMIC_RELEASE);

    if (seen != RUNNING_DOWN)
        nt_finding_from(NT_CALLER, "ExReInitializeRundownProtection: %p %s", (void *)RunRef,
                        seen & RUNNING_DOWN ? "is waited for" : "was not run down");
}

VOID ExRundownCompleted(PEX_RUNDOWN_REF RunRef)
{
    ULONG_PTR seen = __atomic_exchange_n(&RunRef->Count, RUNNING_DOWN, __ATOMIC_RELEASE);

    if (seen & ~RUNNING_DOWN)
        nt_finding_from(NT_CALLER, "ExRundownCompleted: %p has %zu users", (void *)RunRef,
                        (size_t)(seen >> 1));
}

static BOOLEAN acquire(PEX_RUNDOWN_REF ref, ULONG count)
{
    ULONG_PTR seen = __atomic_load_n(&ref->Count, __ATOMIC_RELAXED);

    do {
        if (seen & RUNNING_DOWN)
            return FALSE;
    } while (!__atomic_compare_exchange_n(&ref->Count, &seen, seen + 2 * (ULONG_PTR)count, true,
                                          __ATOMIC_ACQUIRE, __ATOMIC_RELAXED));
    sanitize_acquire(ref);
    return TRUE;
}

/* Takes the users off a count that has them; false, and nothing is changed, when it has fewer. */
static bool subtract(PEX_RUNDOWN_REF ref, ULONG count)
{
    ULONG_PTR less = 2 * (ULONG_PTR)count;
    ULONG_PTR seen = __atomic_load_n(&ref->Count, __ATOMIC_RELAXED);
    struct nt_bucket *b;

    sanitize_release(ref);
    while (!(seen & RUNNING_DOWN)) {
        if (seen < less)
            return false;
        if (__atomic_compare_exchange_n(&ref->Count, &seen, seen - less, true, __ATOMIC_RELEASE,
                                        __ATOMIC_RELAXED))
            return true;
    }
    b = nt_wait_lock(ref);
    seen = __atomic_load_n(&ref->Count, __ATOMIC_RELAXED);
    if (seen < less) {
        nt_wait_unlock(b);
        return false;
    }
    __atomic_store_n(&ref->Count, seen - less, __ATOMIC_RELAXED);
    if (seen - less == RUNNING_DOWN && !RED("nt-rundown-not-woken"))
        (void)nt_wait_release_all(b, ref);
    nt_wait_unlock(b);
    return true;
}

BOOLEAN ExAcquireRundownProtection(PEX_RUNDOWN_REF RunRef)
{
    (void)nt_irql_at_most(DISPATCH_LEVEL, "ExAcquireRundownProtection", NT_CALLER);
    return acquire(RunRef, 1);
}

BOOLEAN ExAcquireRundownProtectionEx(PEX_RUNDOWN_REF RunRef, ULONG Count)
{
    (void)nt_irql_at_most(DISPATCH_LEVEL, "ExAcquireRundownProtectionEx", NT_CALLER);
    return acquire(RunRef, Count);
}

VOID ExReleaseRundownProtection(PEX_RUNDOWN_REF RunRef)
{
    ExReleaseRundownProtectionEx(RunRef, 1);
}

VOID ExReleaseRundownProtectionEx(PEX_RUNDOWN_REF RunRef, ULONG Count)
{
    (void)nt_irql_at_most(DISPATCH_LEVEL, "ExReleaseRundownProtection", NT_CALLER);
    if (!subtract(RunRef, Count))
        nt_finding_from(NT_CALLER,
                        "ExReleaseRundownProtection: %p has fewer users than that "
                        "(releasing %u)",
                        (void *)RunRef, Count);
}

VOID ExWaitForRundownProtectionRelease(PEX_RUNDOWN_REF RunRef)
{
    const struct os_deadline never = {.clock = OS_NEVER};
    struct nt_bucket *b;

    (void)nt_irql_at_most(APC_LEVEL, "ExWaitForRundownProtectionRelease", NT_CALLER);
    b = nt_wait_lock(RunRef);
    if (!RED("nt-rundown-stays-open"))
        __atomic_fetch_or(&RunRef->Count, RUNNING_DOWN, __ATOMIC_ACQUIRE);
    while (__atomic_load_n(&RunRef->Count, __ATOMIC_ACQUIRE) & ~RUNNING_DOWN)
        (void)nt_wait_sleep(b, RunRef, &never);
    nt_wait_unlock(b);
    sanitize_acquire(RunRef);
}
