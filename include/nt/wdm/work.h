// SPDX-License-Identifier: MIT
/*
 * wdm/work.h - work items: routines that run later, at PASSIVE_LEVEL, on a thread of the library.
 * A part of wdm.h; include that.
 *
 * There are as many threads as items that block, up to 64; further items wait for one to be free.
 * A routine that returns above PASSIVE_LEVEL or with something held is a finding.
 */
#ifndef SOFTNDK_WDM_WORK_H
#define SOFTNDK_WDM_WORK_H

#include "io.h"

SOFTNDK_BEGIN_C

typedef enum _WORK_QUEUE_TYPE {
    CriticalWorkQueue,
    DelayedWorkQueue,
    HyperCriticalWorkQueue,
    NormalWorkQueue,
    BackgroundWorkQueue,
    RealTimeWorkQueue,
    SuperCriticalWorkQueue,
    MaximumWorkQueue,
    CustomPriorityWorkQueue = 32
} WORK_QUEUE_TYPE;

/* ---- items in the consumer's memory ---- */

typedef VOID WORKER_THREAD_ROUTINE(PVOID Parameter);
typedef WORKER_THREAD_ROUTINE *PWORKER_THREAD_ROUTINE;

/* The library does not touch it once the routine has begun, so the routine may free it. */
typedef struct _WORK_QUEUE_ITEM {
    LIST_ENTRY List;
    PWORKER_THREAD_ROUTINE WorkerRoutine;
    PVOID Parameter;
} WORK_QUEUE_ITEM, *PWORK_QUEUE_ITEM;

#define ExInitializeWorkItem(Item, Routine, Context)                                               \
    ((void)((Item)->WorkerRoutine = (Routine), (Item)->Parameter = (Context),                      \
            (Item)->List.Flink = (PLIST_ENTRY)0))

/* Queuing an item that is queued already is a finding, and nothing else. IRQL <= DISPATCH_LEVEL. */
VOID ExQueueWorkItem(PWORK_QUEUE_ITEM WorkItem, WORK_QUEUE_TYPE QueueType);

/* ---- items of the library ---- */

typedef struct _IO_WORKITEM *PIO_WORKITEM;
typedef VOID IO_WORKITEM_ROUTINE(PDEVICE_OBJECT DeviceObject, PVOID Context);
typedef IO_WORKITEM_ROUTINE *PIO_WORKITEM_ROUTINE;
typedef VOID IO_WORKITEM_ROUTINE_EX(PVOID IoObject, PVOID Context, PIO_WORKITEM IoWorkItem);
typedef IO_WORKITEM_ROUTINE_EX *PIO_WORKITEM_ROUTINE_EX;

/* DeviceObject is handed to the routine and not looked at. NULL without memory.
 * IRQL <= DISPATCH_LEVEL, as for all four. */
PIO_WORKITEM IoAllocateWorkItem(PDEVICE_OBJECT DeviceObject);

/* The item may be queued again, and freed, once the routine has begun, by the routine too. */
VOID IoQueueWorkItem(PIO_WORKITEM IoWorkItem, PIO_WORKITEM_ROUTINE WorkerRoutine,
                     WORK_QUEUE_TYPE QueueType, PVOID Context);
VOID IoQueueWorkItemEx(PIO_WORKITEM IoWorkItem, PIO_WORKITEM_ROUTINE_EX WorkerRoutine,
                       WORK_QUEUE_TYPE QueueType, PVOID Context);

/* Freeing one that is queued, or freed already, is a finding, and nothing else. */
VOID IoFreeWorkItem(PIO_WORKITEM IoWorkItem);

SOFTNDK_END_C

#endif /* SOFTNDK_WDM_WORK_H */
