// SPDX-License-Identifier: MIT
/*
 * Kernel events on POSIX threads.
 *
 * An event may be freed by its waiter the moment the wait returns, while the thread that signalled
 * it is still inside KeSetEvent. So nothing here hangs on the event: waiting threads queue up, with
 * a record on their own stacks, in one of a fixed number of buckets chosen by the event's address,
 * and the event's state is read and written only under that bucket's lock. A waiter needs the lock
 * to return, hence KeSetEvent is done with the event, and with the waiter's record, before that.
 *
 * KeSetEvent hands a synchronization event straight to the first waiter: its state stays 0, and no
 * later waiter can overtake. Lock order: a bucket's lock is the innermost lock of the process; no
 * call leaves this file with it held.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "nt/nt.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/red.h"

/* Values of DISPATCHER_HEADER.Type, those of Windows. */
enum { OBJECT_EVENT_NOTIFICATION = 0, OBJECT_EVENT_SYNCHRONIZATION = 1 };

enum { BUCKETS = 64 }; /* a power of two; only unrelated events contend for one */

#define TICKS_PER_SECOND   10000000ull /* Windows counts time in 100 ns */
#define TICKS_1601_TO_1970 116444736000000000ull

struct waiter {
    struct waiter *next;
    struct waiter *prev;
    const KEVENT *event;
    bool satisfied;
    pthread_cond_t woken;
};

/* Waiters in the order of their arrival, those of all events of the bucket mixed. */
struct bucket {
    pthread_mutex_t lock;
    struct waiter *first;
    struct waiter *last;
};

static struct bucket buckets[BUCKETS] = {
    [0 ... BUCKETS - 1] = {.lock = PTHREAD_MUTEX_INITIALIZER},
};

static struct bucket *bucket_of(const void *event)
{
    uintptr_t n = (uintptr_t)event >> 4;

    return &buckets[(n ^ (n >> 6) ^ (n >> 12)) & (BUCKETS - 1)];
}

static void waiter_link(struct bucket *b, struct waiter *w)
{
    w->next = NULL;
    w->prev = b->last;
    *(b->last ? &b->last->next : &b->first) = w;
    b->last = w;
}

static void waiter_unlink(struct bucket *b, struct waiter *w)
{
    *(w->prev ? &w->prev->next : &b->first) = w->next;
    *(w->next ? &w->next->prev : &b->last) = w->prev;
}

/* Ends one wait. The signal is sent with the lock held, since w is gone once its thread runs. */
static void waiter_satisfy(struct bucket *b, struct waiter *w)
{
    waiter_unlink(b, w);
    w->satisfied = true;
    pthread_cond_signal(&w->woken);
}

static struct waiter *next_waiter_of(struct waiter *w, const KEVENT *event)
{
    while (w && w->event != event)
        w = w->next;
    return w;
}

VOID KeInitializeEvent(PRKEVENT Event, EVENT_TYPE Type, BOOLEAN State)
{
    struct bucket *b = bucket_of(Event);
    bool waited_for;

    pthread_mutex_lock(&b->lock);
    waited_for = next_waiter_of(b->first, Event) != NULL;
    Event->Header = (DISPATCHER_HEADER){
        .Type =
            Type == SynchronizationEvent ? OBJECT_EVENT_SYNCHRONIZATION : OBJECT_EVENT_NOTIFICATION,
        .Size = sizeof(KEVENT) / sizeof(LONG),
        .SignalState = State ? 1 : 0,
    };
    InitializeListHead(&Event->Header.WaitListHead);
    pthread_mutex_unlock(&b->lock);
    if (waited_for)
        nt_finding("KeInitializeEvent: a thread is waiting for the event %p", (void *)Event);
}

LONG KeSetEvent(PRKEVENT Event, KPRIORITY Increment, BOOLEAN Wait)
{
    struct bucket *b = bucket_of(Event);
    struct waiter *w;
    LONG old;

    (void)Increment;
    if (KeGetCurrentIrql() > (Wait ? APC_LEVEL : DISPATCH_LEVEL))
        nt_finding("KeSetEvent: IRQL too high (have %u, need <= %u)", KeGetCurrentIrql(),
                   Wait ? APC_LEVEL : DISPATCH_LEVEL);

    pthread_mutex_lock(&b->lock);
    old = Event->Header.SignalState;
    w = next_waiter_of(b->first, Event);
    if (w && RED("nt-event-lost-wakeup"))
        w = NULL;
    if (Event->Header.Type == OBJECT_EVENT_SYNCHRONIZATION && w) {
        waiter_satisfy(b, w);
    } else {
        Event->Header.SignalState = 1;
        while (w) {
            struct waiter *following = w->next;

            waiter_satisfy(b, w);
            w = next_waiter_of(following, Event);
        }
    }
    pthread_mutex_unlock(&b->lock);
    return old;
}

LONG KeResetEvent(PRKEVENT Event)
{
    struct bucket *b = bucket_of(Event);
    LONG old;

    pthread_mutex_lock(&b->lock);
    old = Event->Header.SignalState;
    Event->Header.SignalState = 0;
    pthread_mutex_unlock(&b->lock);
    return old;
}

VOID KeClearEvent(PRKEVENT Event)
{
    (void)KeResetEvent(Event);
}

LONG KeReadStateEvent(PRKEVENT Event)
{
    struct bucket *b = bucket_of(Event);
    LONG state;

    pthread_mutex_lock(&b->lock);
    state = Event->Header.SignalState;
    pthread_mutex_unlock(&b->lock);
    return state;
}

/* When a wait ends: never, at once, or at a time of a clock. */
struct deadline {
    bool never;
    bool at_once;
    clockid_t clock;
    struct timespec time;
};

static struct deadline deadline_of(const LARGE_INTEGER *timeout)
{
    struct deadline d = {.never = timeout == NULL, .clock = CLOCK_MONOTONIC};
    uint64_t ticks;

    if (d.never)
        return d;
    if (timeout->QuadPart < 0) {
        ticks = 0 - (uint64_t)timeout->QuadPart;
        clock_gettime(d.clock, &d.time);
    } else {
        d.at_once = (uint64_t)timeout->QuadPart <= TICKS_1601_TO_1970;
        d.clock = CLOCK_REALTIME;
        ticks = d.at_once ? 0 : (uint64_t)timeout->QuadPart - TICKS_1601_TO_1970;
    }
    d.time.tv_sec += (time_t)(ticks / TICKS_PER_SECOND);
    d.time.tv_nsec += (long)(ticks % TICKS_PER_SECOND) * 100;
    if (d.time.tv_nsec >= 1000000000) {
        d.time.tv_sec++;
        d.time.tv_nsec -= 1000000000;
    }
    return d;
}

/* Queues the calling thread up and blocks; b is locked on entry and on return. */
static NTSTATUS wait_in(struct bucket *b, const KEVENT *event, const struct deadline *d)
{
    struct waiter w = {.event = event, .woken = PTHREAD_COND_INITIALIZER};
    int rc = 0;

    waiter_link(b, &w);
    while (!w.satisfied && rc != ETIMEDOUT) {
        if (d->never)
            rc = pthread_cond_wait(&w.woken, &b->lock);
        else
            rc = pthread_cond_clockwait(&w.woken, &b->lock, d->clock, &d->time);
    }
    /* A wakeup that crossed the deadline counts: the event was consumed for this waiter. */
    if (!w.satisfied)
        waiter_unlink(b, &w);
    pthread_cond_destroy(&w.woken);
    return w.satisfied ? STATUS_SUCCESS : STATUS_TIMEOUT;
}

NTSTATUS KeWaitForSingleObject(PVOID Object, KWAIT_REASON WaitReason, KPROCESSOR_MODE WaitMode,
                               BOOLEAN Alertable, PLARGE_INTEGER Timeout)
{
    KEVENT *event = Object;
    struct bucket *b = bucket_of(event);
    struct deadline d = deadline_of(Timeout);
    KIRQL irql = KeGetCurrentIrql();
    NTSTATUS status = STATUS_SUCCESS;
    UCHAR type;

    (void)WaitReason;
    (void)WaitMode;
    (void)Alertable;
    if (Timeout && Timeout->QuadPart == 0 ? irql > DISPATCH_LEVEL : irql > APC_LEVEL)
        nt_finding("KeWaitForSingleObject: IRQL too high to wait (have %u, need <= %u)", irql,
                   Timeout && Timeout->QuadPart == 0 ? DISPATCH_LEVEL : APC_LEVEL);

    pthread_mutex_lock(&b->lock);
    type = event->Header.Type;
    if (type != OBJECT_EVENT_NOTIFICATION && type != OBJECT_EVENT_SYNCHRONIZATION) {
        status = STATUS_INVALID_PARAMETER;
    } else if (event->Header.SignalState > 0) {
        if (type == OBJECT_EVENT_SYNCHRONIZATION && !RED("nt-event-not-consumed"))
            event->Header.SignalState = 0;
    } else if (d.at_once) {
        status = STATUS_TIMEOUT;
    } else {
        status = wait_in(b, event, &d);
    }
    pthread_mutex_unlock(&b->lock);
    if (status == STATUS_INVALID_PARAMETER)
        nt_finding("KeWaitForSingleObject: %p is no event (type %u)", Object, type);
    return status;
}
