// SPDX-License-Identifier: MIT
/*
 * Kernel events: the calls that set, clear and look. Waiting is wait.c's.
 */
#include "nt/nt.h"
#include "nt/wait.h"

VOID KeInitializeEvent(PRKEVENT Event, EVENT_TYPE Type, BOOLEAN State)
{
    unsigned type = Type == SynchronizationEvent ? NT_EVENT_SYNCHRONIZATION : NT_EVENT_NOTIFICATION;

    if (nt_header_init(&Event->Header, type, sizeof(KEVENT), State))
        nt_finding_from(NT_CALLER, "KeInitializeEvent: a thread is waiting for the event %p",
                        (void *)Event);
}

LONG KeSetEvent(PRKEVENT Event, KPRIORITY Increment, BOOLEAN Wait)
{
    (void)Increment;
    (void)nt_irql_at_most(Wait ? APC_LEVEL : DISPATCH_LEVEL, "KeSetEvent", NT_CALLER);
    return nt_header_signal(&Event->Header);
}

LONG KeResetEvent(PRKEVENT Event)
{
    struct nt_bucket *b = nt_wait_lock(Event);
    LONG old = Event->Header.SignalState;

    Event->Header.SignalState = 0;
    nt_wait_unlock(b);
    return old;
}

VOID KeClearEvent(PRKEVENT Event)
{
    (void)KeResetEvent(Event);
}

LONG KeReadStateEvent(PRKEVENT Event)
{
    struct nt_bucket *b = nt_wait_lock(Event);
    LONG state = Event->Header.SignalState;

    nt_wait_unlock(b);
    return state;
}
