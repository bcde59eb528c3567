// SPDX-License-Identifier: MIT
/*
 * Work items: one queue, and threads that serve it at PASSIVE_LEVEL.
 *
 * A thread is started when an item is queued and no thread is idle, up to WORKERS_MAX, so items
 * that wait for each other do not block; threads stay once they are there. An item is out of the
 * queue, and marked so, before its routine runs, and is not touched after that: the routine may
 * free it, or queue it again.
 *
 * WORK_QUEUE_ITEM.List: Flink NULL means not queued, as Windows has it; Flink then links the queue.
 * The queue's lock is a leaf.
 */
#include <stdlib.h>

#include "base/log.h"
#include "base/red.h"
#include "nt/left.h"
#include "nt/nt.h"
#include "os/os_sync.h"

enum { WORKERS_MAX = 64 };

struct _IO_WORKITEM {
    WORK_QUEUE_ITEM item; /* its routine is run_io_item(), its parameter this structure */
    PDEVICE_OBJECT device;
    PIO_WORKITEM_ROUTINE routine;
    PIO_WORKITEM_ROUTINE_EX routine_ex;
    PVOID context;
};

static struct {
    os_mutex lock;
    os_cond work;
    os_cond done; /* the last one returned */
    LIST_ENTRY queue;
    unsigned workers, idle, queued, running;
    unsigned long long ever; /* how many were queued in this process */
} pool = {
    .lock = OS_MUTEX_INITIALIZER,
    .work = OS_COND_INITIALIZER,
    .done = OS_COND_INITIALIZER,
    .queue = {&pool.queue, &pool.queue},
};

static VOID run_io_item(PVOID parameter)
{
    PIO_WORKITEM io = parameter;
    PIO_WORKITEM_ROUTINE routine = io->routine;

    if (routine)
        routine(io->device, io->context);
    else
        io->routine_ex(io->device, io->context, io);
}

/* Runs an item; it is not the caller's any more, and may not exist when this returns. */
static void run(PWORK_QUEUE_ITEM item)
{
    PWORKER_THREAD_ROUTINE routine = item->WorkerRoutine;
    PVOID parameter = item->Parameter;
    const void *name = (const void *)(ULONG_PTR)routine; /* for a finding */

    if (routine == run_io_item) {
        PIO_WORKITEM io = parameter;

        name = io->routine ? (const void *)(ULONG_PTR)io->routine
                           : (const void *)(ULONG_PTR)io->routine_ex;
    }
    routine(parameter);
    nt_routine_returned("work item", name, PASSIVE_LEVEL);
}

static void worker(void *arg)
{
    PWORK_QUEUE_ITEM item;

    (void)arg;
    os_mutex_lock(&pool.lock);
    for (;;) {
        while (IsListEmpty(&pool.queue)) {
            pool.idle++;
            os_cond_wait(&pool.work, &pool.lock);
            pool.idle--;
        }
        item = CONTAINING_RECORD(RemoveHeadList(&pool.queue), WORK_QUEUE_ITEM, List);
        item->List.Flink = NULL;
        pool.queued--;
        pool.running++;
        os_mutex_unlock(&pool.lock);
        if (RED("nt-work-at-dispatch"))
            nt_irql_set(DISPATCH_LEVEL);
        run(item);
        os_mutex_lock(&pool.lock);
        pool.running--;
        if (pool.running + pool.queued == 0)
            os_cond_broadcast(&pool.done);
    }
}

enum state { STATE_FREE, STATE_QUEUED, STATE_GARBAGE };

/* pool.lock is held. A link that is set although the item is not in the queue was never
 * initialized, or was written over. */
static enum state state_of(const WORK_QUEUE_ITEM *item)
{
    const LIST_ENTRY *at = pool.queue.Flink;

    if (!item->List.Flink)
        return STATE_FREE;
    while (at != &pool.queue && at != &item->List)
        at = at->Flink;
    return at == &item->List ? STATE_QUEUED : STATE_GARBAGE;
}

/* Queues, unless it is queued already; how it was found. */
static enum state queue(PWORK_QUEUE_ITEM item)
{
    enum state before;
    bool start, none;

    os_mutex_lock(&pool.lock);
    before = state_of(item);
    if (before != STATE_QUEUED) {
        InsertTailList(&pool.queue, &item->List);
        pool.queued++;
        pool.ever++;
    }
    /* A thread that was woken and has not run yet still counts as idle: compare with the queue. */
    start = pool.queued > pool.idle && pool.workers < WORKERS_MAX;
    pool.workers += start;
    os_cond_signal(&pool.work);
    os_mutex_unlock(&pool.lock);
    if (start && os_thread_start_detached("ndk-work", worker, NULL) != 0) {
        os_mutex_lock(&pool.lock);
        none = --pool.workers == 0;
        os_mutex_unlock(&pool.lock);
        if (none)
            log_error("work items: no thread to run them");
    }
    return before;
}

bool nt_work_wait_idle(const struct os_deadline *until)
{
    bool idle;

    os_mutex_lock(&pool.lock);
    while (pool.running + pool.queued > 0 && !os_deadline_passed(until))
        (void)os_cond_wait_deadline(&pool.done, &pool.lock, until);
    idle = pool.running + pool.queued == 0;
    os_mutex_unlock(&pool.lock);
    return idle;
}

unsigned nt_work_count(unsigned long long *ever)
{
    unsigned count;

    os_mutex_lock(&pool.lock);
    count = pool.queued + pool.running;
    *ever = pool.ever;
    os_mutex_unlock(&pool.lock);
    return count;
}

VOID ExQueueWorkItem(PWORK_QUEUE_ITEM WorkItem, WORK_QUEUE_TYPE QueueType)
{
    (void)QueueType;
    (void)nt_irql_at_most(DISPATCH_LEVEL, "ExQueueWorkItem", NT_CALLER);
    switch (queue(WorkItem)) {
    case STATE_QUEUED:
        nt_finding_from(NT_CALLER, "ExQueueWorkItem: the item %p is queued already",
                        (void *)WorkItem);
        break;
    case STATE_GARBAGE:
        nt_finding_from(NT_CALLER, "ExQueueWorkItem: the item %p is not initialized",
                        (void *)WorkItem);
        break;
    default:
        break;
    }
}

/* ---- items of the library ------------------------------------------------------------------- */

PIO_WORKITEM IoAllocateWorkItem(PDEVICE_OBJECT DeviceObject)
{
    PIO_WORKITEM io = calloc(1, sizeof *io);

    (void)nt_irql_at_most(DISPATCH_LEVEL, "IoAllocateWorkItem", NT_CALLER);
    if (!io || !nt_left_add(NT_LEFT_WORK_ITEM, io, 0, 0, 0, NT_CALLER)) {
        free(io);
        return NULL;
    }
    io->device = DeviceObject;
    ExInitializeWorkItem(&io->item, run_io_item, io);
    return io;
}

static void queue_io(PIO_WORKITEM io, PIO_WORKITEM_ROUTINE routine,
                     PIO_WORKITEM_ROUTINE_EX routine_ex, PVOID context, const char *call,
                     const void *caller)
{
    bool queued;

    (void)nt_irql_at_most(DISPATCH_LEVEL, call, caller);
    if (!nt_left_find(NT_LEFT_WORK_ITEM, io, NULL, NULL)) {
        nt_finding_from(caller, "%s: %p is no work item, or freed already", call, (void *)io);
        return;
    }
    os_mutex_lock(&pool.lock);
    queued = state_of(&io->item) == STATE_QUEUED;
    if (!queued) {
        io->routine = routine;
        io->routine_ex = routine_ex;
        io->context = context;
    }
    os_mutex_unlock(&pool.lock);
    if (queued || queue(&io->item) == STATE_QUEUED)
        nt_finding_from(caller, "%s: the work item %p is queued already", call, (void *)io);
}

VOID IoQueueWorkItem(PIO_WORKITEM IoWorkItem, PIO_WORKITEM_ROUTINE WorkerRoutine,
                     WORK_QUEUE_TYPE QueueType, PVOID Context)
{
    (void)QueueType;
    queue_io(IoWorkItem, WorkerRoutine, NULL, Context, "IoQueueWorkItem", NT_CALLER);
}

VOID IoQueueWorkItemEx(PIO_WORKITEM IoWorkItem, PIO_WORKITEM_ROUTINE_EX WorkerRoutine,
                       WORK_QUEUE_TYPE QueueType, PVOID Context)
{
    (void)QueueType;
    queue_io(IoWorkItem, NULL, WorkerRoutine, Context, "IoQueueWorkItemEx", NT_CALLER);
}

VOID IoFreeWorkItem(PIO_WORKITEM IoWorkItem)
{
    bool queued;

    (void)nt_irql_at_most(DISPATCH_LEVEL, "IoFreeWorkItem", NT_CALLER);
    if (!nt_left_find(NT_LEFT_WORK_ITEM, IoWorkItem, NULL, NULL)) {
        nt_finding_from(NT_CALLER, "IoFreeWorkItem: %p is no work item, or freed already",
                        (void *)IoWorkItem);
        return;
    }
    os_mutex_lock(&pool.lock);
    queued = state_of(&IoWorkItem->item) == STATE_QUEUED;
    os_mutex_unlock(&pool.lock);
    if (queued) {
        nt_finding_from(NT_CALLER, "IoFreeWorkItem: the work item %p is queued",
                        (void *)IoWorkItem);
        return;
    }
    if (nt_left_drop(NT_LEFT_WORK_ITEM, IoWorkItem))
        free(IoWorkItem);
}
