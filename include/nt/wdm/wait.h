// SPDX-License-Identifier: MIT
/*
 * wdm/wait.h - events and waiting for them. A part of wdm.h; include that.
 */
#ifndef SOFTNDK_WDM_WAIT_H
#define SOFTNDK_WDM_WAIT_H

#include "../ntdef.h"
#include "../ntstatus.h"

SOFTNDK_BEGIN_C

typedef LONG KPRIORITY;
typedef CCHAR KPROCESSOR_MODE;

typedef enum _MODE { KernelMode, UserMode, MaximumMode } MODE;

typedef enum _KWAIT_REASON {
    Executive = 0,
    FreePage = 1,
    PageIn = 2,
    PoolAllocation = 3,
    DelayExecution = 4,
    Suspended = 5,
    UserRequest = 6
} KWAIT_REASON;

#define IO_NO_INCREMENT 0
#define EVENT_INCREMENT 1

/* Head of every object that can be waited for. */
typedef struct _DISPATCHER_HEADER {
    UCHAR Type;
    UCHAR Absolute;
    UCHAR Size;
    UCHAR Inserted;
    LONG SignalState;
    LIST_ENTRY WaitListHead;
} DISPATCHER_HEADER;

/* The kind of an event. A notification event releases all waiters and stays signalled until it is
 * cleared; a synchronization event releases one waiter and clears itself. */
typedef enum _EVENT_TYPE { NotificationEvent, SynchronizationEvent } EVENT_TYPE;

/* An event needs no destruction and may live on a stack: nothing keeps a pointer to it except a
 * thread that is waiting for it at that moment. */
typedef struct _KEVENT {
    DISPATCHER_HEADER Header;
} KEVENT, *PKEVENT, *PRKEVENT;

/* Initializes an event. Doing so while a thread waits for it is a finding. */
VOID KeInitializeEvent(PRKEVENT Event, EVENT_TYPE Type, BOOLEAN State);

/* Signals the event. Returns its former state, 0 when it was not signalled. The event's memory is
 * not touched after a waiter can return, so the waiter may free it at once. IRQL <= DISPATCH_LEVEL;
 * Wait = TRUE promises an immediate wait and is allowed up to APC_LEVEL only. */
LONG KeSetEvent(PRKEVENT Event, KPRIORITY Increment, BOOLEAN Wait);

/* Makes the event not signalled. */
VOID KeClearEvent(PRKEVENT Event);

/* As KeClearEvent, and returns the former state. */
LONG KeResetEvent(PRKEVENT Event);

/* Returns the state: non-zero when signalled. */
LONG KeReadStateEvent(PRKEVENT Event);

/* A semaphore: signalled while its count is above 0. A wait takes one. */
typedef struct _KSEMAPHORE {
    DISPATCHER_HEADER Header;
    LONG Limit;
} KSEMAPHORE, *PKSEMAPHORE, *PRKSEMAPHORE;

VOID KeInitializeSemaphore(PRKSEMAPHORE Semaphore, LONG Count, LONG Limit);

/* Adds to the count; the former one. More than the limit raises an exception on Windows: here it is
 * a finding and adds nothing. IRQL as for KeSetEvent. */
LONG KeReleaseSemaphore(PRKSEMAPHORE Semaphore, KPRIORITY Increment, LONG Adjustment, BOOLEAN Wait);

LONG KeReadStateSemaphore(PRKSEMAPHORE Semaphore);

/*
 * Waits until Object (an event, a semaphore, a timer, a thread) is signalled.
 * Timeout: in units of 100 ns; NULL waits for ever, 0 only looks, a negative value is relative to
 * now, a positive one is an absolute system time counted from 1601-01-01 UTC.
 * Returns STATUS_SUCCESS or STATUS_TIMEOUT. WaitReason, WaitMode and Alertable have no effect.
 * IRQL: <= APC_LEVEL, with a zero timeout <= DISPATCH_LEVEL; more is a finding.
 */
NTSTATUS KeWaitForSingleObject(PVOID Object, KWAIT_REASON WaitReason, KPROCESSOR_MODE WaitMode,
                               BOOLEAN Alertable, PLARGE_INTEGER Timeout);

/* The most objects that one call waits for, and how many of them without a WaitBlockArray. */
#define MAXIMUM_WAIT_OBJECTS 64
#define THREAD_WAIT_OBJECTS  3

typedef enum _WAIT_TYPE { WaitAll, WaitAny } WAIT_TYPE;

/* Room for one object of a wait for several. Opaque. */
typedef struct _KWAIT_BLOCK {
    PVOID Reserved[6];
} KWAIT_BLOCK, *PKWAIT_BLOCK, *PRKWAIT_BLOCK;

/*
 * Waits until one (WaitAny) or all (WaitAll) of Count objects are signalled. Timeout and IRQL are
 * as above. More than THREAD_WAIT_OBJECTS objects need a WaitBlockArray of Count entries, more
 * than MAXIMUM_WAIT_OBJECTS cannot be waited for: both are bug check 0x0C.
 * Returns STATUS_WAIT_0 + index of the object whose signal ended the wait, the lowest when several
 * are signalled; STATUS_SUCCESS (WaitAll); STATUS_TIMEOUT. WaitAny changes the state of that one
 * object, WaitAll of all or, at a timeout, of none.
 */
NTSTATUS KeWaitForMultipleObjects(ULONG Count, PVOID Object[], WAIT_TYPE WaitType,
                                  KWAIT_REASON WaitReason, KPROCESSOR_MODE WaitMode,
                                  BOOLEAN Alertable, PLARGE_INTEGER Timeout,
                                  PKWAIT_BLOCK WaitBlockArray);

SOFTNDK_END_C

#endif /* SOFTNDK_WDM_WAIT_H */
