// SPDX-License-Identifier: MIT
/*
 * Semaphores. Waiting is wait.c's; a count is given to waiters under the bucket's lock, one each.
 */
#include "base/red.h"
#include "nt/nt.h"
#include "nt/wait.h"

VOID KeInitializeSemaphore(PRKSEMAPHORE Semaphore, LONG Count, LONG Limit)
{
    bool waited_for =
        nt_header_init(&Semaphore->Header, NT_SEMAPHORE, sizeof(KSEMAPHORE), Count != 0);

    Semaphore->Header.SignalState = Count;
    Semaphore->Limit = Limit;
    if (waited_for)
        nt_finding_from(NT_CALLER, "KeInitializeSemaphore: a thread is waiting for %p",
                        (void *)Semaphore);
    if (Count < 0 || Limit <= 0 || Count > Limit)
        nt_finding_from(NT_CALLER, "KeInitializeSemaphore: the count does not fit (have %d of %d)",
                        (int)Count, (int)Limit);
}

LONG KeReleaseSemaphore(PRKSEMAPHORE Semaphore, KPRIORITY Increment, LONG Adjustment, BOOLEAN Wait)
{
    DISPATCHER_HEADER *header = &Semaphore->Header;
    LONG old, limit = Semaphore->Limit;
    struct nt_bucket *b;
    bool fits;

    (void)Increment;
    (void)nt_irql_at_most(Wait ? APC_LEVEL : DISPATCH_LEVEL, "KeReleaseSemaphore", NT_CALLER);
    b = nt_wait_lock(header);
    old = header->SignalState;
    fits = Adjustment > 0 && Adjustment <= limit - old;
    if (fits && !RED("nt-semaphore-gives-one"))
        header->SignalState += Adjustment;
    else if (fits)
        header->SignalState += 1;
    while (header->SignalState > 0 && nt_wait_release_one(b, header))
        header->SignalState--;
    nt_wait_unlock(b);
    if (!fits)
        nt_finding_from(NT_CALLER,
                        "KeReleaseSemaphore: the limit is exceeded (have %d, add %d, limit %d)",
                        (int)old, (int)Adjustment, (int)limit);
    return old;
}

LONG KeReadStateSemaphore(PRKSEMAPHORE Semaphore)
{
    struct nt_bucket *b = nt_wait_lock(Semaphore);
    LONG state = Semaphore->Header.SignalState;

    nt_wait_unlock(b);
    return state;
}
