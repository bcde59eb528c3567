// SPDX-License-Identifier: MIT
/*
 * Deferred procedure calls: one queue, and up to DPC_THREADS threads that serve it at
 * DISPATCH_LEVEL.
 *
 * A DPC is out of the queue, and marked so, before its routine runs, and is not touched after that.
 * Each gets a turn as it is queued; turns rise. A flush waits until no turn up to the present one
 * is queued or running, so it ends however many are queued meanwhile.
 *
 * The queue's lock is a leaf; ktimer.c takes it under its own.
 */
#include "base/log.h"
#include "base/red.h"
#include "nt/nt.h"
#include "nt/ktimer.h"
#include "os/os_sync.h"

enum { DPC_THREADS = 4, TYPE_DPC = 19 };

static struct {
    os_mutex lock;
    os_cond work;
    os_cond over; /* one has ended */
    PKDPC first, last;
    unsigned threads, idle, queued;
    uint64_t turn; /* the last one given */
    struct server {
        bool there;
        uint64_t running; /* a turn, 0: none */
    } servers[DPC_THREADS];
} dpcs = {.lock = OS_MUTEX_INITIALIZER, .work = OS_COND_INITIALIZER, .over = OS_COND_INITIALIZER};

static void run(PKDPC dpc)
{
    PKDEFERRED_ROUTINE routine = dpc->DeferredRoutine;
    PVOID context = dpc->DeferredContext, one = dpc->SystemArgument1, two = dpc->SystemArgument2;

    dpc->DpcData = NULL; /* from here on it may be queued again */
    os_mutex_unlock(&dpcs.lock);
    nt_irql_set(RED("nt-dpc-at-passive") ? PASSIVE_LEVEL : DISPATCH_LEVEL);
    routine(dpc, context, one, two);
    nt_routine_returned("DPC", (const void *)(ULONG_PTR)routine, DISPATCH_LEVEL);
    nt_irql_set(PASSIVE_LEVEL);
    os_mutex_lock(&dpcs.lock);
}

static void serve(void *arg)
{
    struct server *me = arg;

    os_mutex_lock(&dpcs.lock);
    for (;;) {
        PKDPC dpc;

        while (!dpcs.first) {
            dpcs.idle++;
            os_cond_wait(&dpcs.work, &dpcs.lock);
            dpcs.idle--;
        }
        dpc = dpcs.first;
        dpcs.first = dpc->Next;
        if (!dpcs.first)
            dpcs.last = NULL;
        dpcs.queued--;
        me->running = dpc->Turn;
        run(dpc);
        me->running = 0;
        os_cond_broadcast(&dpcs.over);
    }
}

/* The link that points at the DPC, or at the end of the queue; the lock is held. */
static PKDPC *link_to(const KDPC *dpc)
{
    PKDPC *at = &dpcs.first;

    while (*at && *at != dpc)
        at = (PKDPC *)&(*at)->Next;
    return at;
}

VOID KeInitializeDpc(PRKDPC Dpc, PKDEFERRED_ROUTINE DeferredRoutine, PVOID DeferredContext)
{
    bool queued;

    os_mutex_lock(&dpcs.lock);
    queued = *link_to(Dpc) != NULL;
    os_mutex_unlock(&dpcs.lock);
    if (queued) {
        nt_finding_from(NT_CALLER, "KeInitializeDpc: %p is queued", (void *)Dpc);
        (void)KeRemoveQueueDpc(Dpc);
    }
    *Dpc = (KDPC){
        .Type = TYPE_DPC,
        .Importance = MediumImportance,
        .DeferredRoutine = DeferredRoutine,
        .DeferredContext = DeferredContext,
    };
}

/* A thread more than there are, if one is needed and there may be more; NULL. */
static struct server *server_wanted(void)
{
    for (int i = 0; dpcs.queued > dpcs.idle && i < DPC_THREADS; i++) {
        if (!dpcs.servers[i].there) {
            dpcs.servers[i].there = true;
            dpcs.threads++;
            return &dpcs.servers[i];
        }
    }
    return NULL;
}

bool nt_dpc_queue(PKDPC dpc, PVOID one, PVOID two)
{
    struct server *more = NULL;
    bool fresh;

    os_mutex_lock(&dpcs.lock);
    fresh = dpc->DpcData == NULL;
    if (fresh) {
        dpc->SystemArgument1 = one;
        dpc->SystemArgument2 = two;
        dpc->DpcData = &dpcs;
        dpc->Next = NULL;
        dpc->Turn = (ULONG_PTR)++dpcs.turn;
        *(dpcs.last ? &dpcs.last->Next : &dpcs.first) = dpc;
        dpcs.last = dpc;
        dpcs.queued++;
        more = server_wanted();
        os_cond_signal(&dpcs.work);
    }
    os_mutex_unlock(&dpcs.lock);
    if (more && os_thread_start_detached("ndk-dpc", serve, more) != 0) {
        os_mutex_lock(&dpcs.lock);
        more->there = false;
        if (--dpcs.threads == 0)
            log_error("DPCs: no thread to run them");
        os_mutex_unlock(&dpcs.lock);
    }
    return fresh;
}

BOOLEAN KeInsertQueueDpc(PRKDPC Dpc, PVOID SystemArgument1, PVOID SystemArgument2)
{
    if (Dpc->Type != TYPE_DPC) {
        nt_finding_from(NT_CALLER, "KeInsertQueueDpc: %p is not initialized", (void *)Dpc);
        return FALSE;
    }
    return nt_dpc_queue(Dpc, SystemArgument1, SystemArgument2);
}

BOOLEAN KeRemoveQueueDpc(PRKDPC Dpc)
{
    PKDPC *at, before = NULL;
    bool queued;

    os_mutex_lock(&dpcs.lock);
    at = link_to(Dpc);
    queued = *at != NULL;
    if (queued) {
        if (at != &dpcs.first)
            before = CONTAINING_RECORD(at, KDPC, Next);
        *at = Dpc->Next;
        if (dpcs.last == Dpc)
            dpcs.last = before;
        Dpc->DpcData = NULL;
        dpcs.queued--;
        os_cond_broadcast(&dpcs.over);
    }
    os_mutex_unlock(&dpcs.lock);
    return queued;
}

/* Whether a turn up to this one is queued or running; the lock is held. */
static bool turns_are_left(uint64_t turn)
{
    if (dpcs.first && dpcs.first->Turn <= turn)
        return true;
    for (int i = 0; i < DPC_THREADS; i++)
        if (dpcs.servers[i].running && dpcs.servers[i].running <= turn)
            return true;
    return false;
}

VOID KeFlushQueuedDpcs(VOID)
{
    uint64_t turn;

    if (!nt_irql_at_most(PASSIVE_LEVEL, "KeFlushQueuedDpcs", NT_CALLER))
        return; /* in a DPC it would wait for itself */
    os_mutex_lock(&dpcs.lock);
    turn = dpcs.turn;
    while (turns_are_left(turn) && !RED("nt-dpc-flush-early"))
        os_cond_wait(&dpcs.over, &dpcs.lock);
    os_mutex_unlock(&dpcs.lock);
}

VOID KeSetImportanceDpc(PRKDPC Dpc, KDPC_IMPORTANCE Importance)
{
    Dpc->Importance = (UCHAR)Importance;
}

VOID KeSetTargetProcessorDpc(PRKDPC Dpc, CCHAR Number)
{
    Dpc->Number = (USHORT)(unsigned char)Number;
}

NTSTATUS KeSetTargetProcessorDpcEx(PKDPC Dpc, PPROCESSOR_NUMBER ProcNumber)
{
    if (ProcNumber->Reserved ||
        ProcNumber->Number >= KeQueryActiveProcessorCountEx(ProcNumber->Group))
        return STATUS_INVALID_PARAMETER;
    Dpc->Number = (USHORT)(ProcNumber->Group * 64 + ProcNumber->Number);
    return STATUS_SUCCESS;
}
