// SPDX-License-Identifier: MIT
/*
 * wdm/timer.h - deferred procedure calls, and timers. A part of wdm.h; include that.
 */
#ifndef SOFTNDK_WDM_TIMER_H
#define SOFTNDK_WDM_TIMER_H

#include "wait.h"

SOFTNDK_BEGIN_C

/* ---- DPCs ---- */

/*
 * A routine that runs soon, at DISPATCH_LEVEL, on a thread of the library; several at a time, and
 * one object's routine beside itself if it is queued again while it runs. The object is not touched
 * once its routine has begun. Importance and processor are noted and have no effect.
 */
struct _KDPC;
typedef VOID KDEFERRED_ROUTINE(struct _KDPC *Dpc, PVOID DeferredContext, PVOID SystemArgument1,
                               PVOID SystemArgument2);
typedef KDEFERRED_ROUTINE *PKDEFERRED_ROUTINE;

typedef enum _KDPC_IMPORTANCE {
    LowImportance,
    MediumImportance,
    HighImportance,
    MediumHighImportance
} KDPC_IMPORTANCE;

typedef struct _KDPC {
    UCHAR Type;
    UCHAR Importance;
    volatile USHORT Number;
    struct _KDPC *Next;
    ULONG_PTR Turn;
    PKDEFERRED_ROUTINE DeferredRoutine;
    PVOID DeferredContext;
    PVOID SystemArgument1;
    PVOID SystemArgument2;
    PVOID DpcData; /* set while it is queued */
} KDPC, *PKDPC, *PRKDPC;

/* Initializing one that is queued is a finding. */
VOID KeInitializeDpc(PRKDPC Dpc, PKDEFERRED_ROUTINE DeferredRoutine, PVOID DeferredContext);

/* FALSE: it was queued already, and its arguments are as they were. Any IRQL. */
BOOLEAN KeInsertQueueDpc(PRKDPC Dpc, PVOID SystemArgument1, PVOID SystemArgument2);

/* TRUE: it was queued, and will not run. It may be running all the same. */
BOOLEAN KeRemoveQueueDpc(PRKDPC Dpc);

/* Waits until all DPCs that are queued or running now are over. PASSIVE_LEVEL. */
VOID KeFlushQueuedDpcs(VOID);

VOID KeSetImportanceDpc(PRKDPC Dpc, KDPC_IMPORTANCE Importance);
VOID KeSetTargetProcessorDpc(PRKDPC Dpc, CCHAR Number);
/* STATUS_SUCCESS, or STATUS_INVALID_PARAMETER when there is no such processor. */
NTSTATUS KeSetTargetProcessorDpcEx(PKDPC Dpc, PPROCESSOR_NUMBER ProcNumber);

/* ---- timers ---- */

/*
 * An object that can be waited for, signalled when its time has come; and then its DPC is queued. A
 * notification timer stays signalled until it is set again, a synchronization timer satisfies one
 * wait. Not to be freed while it is set: pool that is freed with a set timer in it, and
 * initializing one that is set, are findings. One that is set at the end is reported.
 */
typedef enum _TIMER_TYPE { NotificationTimer, SynchronizationTimer } TIMER_TYPE;

typedef struct _KTIMER {
    DISPATCHER_HEADER Header;
    ULARGE_INTEGER DueTime;
    LIST_ENTRY TimerListEntry;
    struct _KDPC *Dpc;
    USHORT Processor;
    USHORT TimerType;
    ULONG Period; /* milliseconds, 0: once */
} KTIMER, *PKTIMER, *PRKTIMER;

VOID KeInitializeTimer(PKTIMER Timer);
VOID KeInitializeTimerEx(PKTIMER Timer, TIMER_TYPE Type);

/* DueTime as the timeout of KeWaitForSingleObject. Clears the signal. TRUE: it was set, and is now
 * set to this time instead. Period in milliseconds. IRQL <= DISPATCH_LEVEL, as for all here. */
BOOLEAN KeSetTimer(PKTIMER Timer, LARGE_INTEGER DueTime, PKDPC Dpc);
BOOLEAN KeSetTimerEx(PKTIMER Timer, LARGE_INTEGER DueTime, LONG Period, PKDPC Dpc);
BOOLEAN KeSetCoalescableTimer(PKTIMER Timer, LARGE_INTEGER DueTime, ULONG Period,
                              ULONG TolerableDelay, PKDPC Dpc);

/* TRUE: it was set, and its time will not come. FALSE: it was not, and its DPC may be queued or
 * running; KeFlushQueuedDpcs waits for that. */
BOOLEAN KeCancelTimer(PKTIMER Timer);

/* Whether it is signalled. */
BOOLEAN KeReadStateTimer(PKTIMER Timer);

SOFTNDK_END_C

#endif /* SOFTNDK_WDM_TIMER_H */
