// SPDX-License-Identifier: MIT
/*
 * See wait.h. Also KeWaitForSingleObject and KeDelayExecutionThread.
 *
 * A signal is handed to the waiter under the bucket's lock: a synchronization object that has a
 * waiter stays unsignalled, so no later waiter can overtake.
 */
#include "nt/wait.h"

#include <stdint.h>

#include "base/red.h"
#include "nt/nt.h"

enum { BUCKETS = 64 }; /* a power of two; only unrelated objects contend for one */

static struct nt_bucket buckets[BUCKETS] = {
    [0 ... BUCKETS - 1] = {.lock = OS_MUTEX_INITIALIZER},
};

struct nt_bucket *nt_wait_bucket(const void *object)
{
    uintptr_t n = (uintptr_t)object >> 4;

    return &buckets[(n ^ (n >> 6) ^ (n >> 12)) & (BUCKETS - 1)];
}

struct nt_bucket *nt_wait_lock(const void *object)
{
    struct nt_bucket *b = nt_wait_bucket(object);

    os_mutex_lock(&b->lock);
    return b;
}

void nt_wait_unlock(struct nt_bucket *b)
{
    os_mutex_unlock(&b->lock);
}

void nt_wait_link(struct nt_bucket *b, struct nt_waiter *w)
{
    w->next = NULL;
    w->prev = b->last;
    *(b->last ? &b->last->next : &b->first) = w;
    b->last = w;
}

void nt_wait_unlink(struct nt_bucket *b, struct nt_waiter *w)
{
    *(w->prev ? &w->prev->next : &b->first) = w->next;
    *(w->next ? &w->next->prev : &b->last) = w->prev;
}

static struct nt_waiter *next_waiter_of(struct nt_waiter *w, const void *object)
{
    while (w && w->object != object)
        w = w->next;
    return w;
}

/* Ends one wait, or tells a wait for all to look again. Whether the signal is spent on it. The
 * condition is signalled with the lock held, since w is gone once its thread runs. */
static bool waiter_release(struct nt_bucket *b, struct nt_waiter *w)
{
    struct nt_group *g = w->group;
    bool spent;

    if (!g) {
        nt_wait_unlink(b, w);
        w->released = true;
        os_cond_signal(&w->woken);
        return true;
    }
    os_mutex_lock(&g->lock);
    spent = !g->all && (g->taken < 0 || RED("nt-wait-any-spends-two"));
    if (spent)
        g->taken = w->index;
    g->looked = false;
    os_cond_signal(&g->changed);
    os_mutex_unlock(&g->lock);
    return spent;
}

bool nt_wait_any(const struct nt_bucket *b, const void *object)
{
    return next_waiter_of(b->first, object) != NULL;
}

bool nt_wait_release_one(struct nt_bucket *b, const void *object)
{
    struct nt_waiter *w = next_waiter_of(b->first, object);

    if (w && RED("nt-event-lost-wakeup"))
        w = NULL;
    while (w) {
        struct nt_waiter *following = w->next;

        if (waiter_release(b, w))
            return true;
        w = next_waiter_of(following, object);
    }
    return false;
}

unsigned nt_wait_release_all(struct nt_bucket *b, const void *object)
{
    struct nt_waiter *w = next_waiter_of(b->first, object);
    unsigned count = 0;

    if (w && RED("nt-event-lost-wakeup"))
        w = NULL;
    while (w) {
        struct nt_waiter *following = w->next;

        count += waiter_release(b, w);
        w = next_waiter_of(following, object);
    }
    return count;
}

bool nt_wait_sleep(struct nt_bucket *b, const void *object, const struct os_deadline *until)
{
    struct nt_waiter w = {.object = object, .woken = OS_COND_INITIALIZER};
    bool in_time = true;

    nt_wait_link(b, &w);
    while (!w.released && in_time)
        in_time = os_cond_wait_deadline(&w.woken, &b->lock, until);
    /* A wake-up that crossed the deadline counts: the signal was spent on this waiter. */
    if (!w.released)
        nt_wait_unlink(b, &w);
    os_cond_destroy(&w.woken);
    return w.released;
}

struct os_deadline nt_wait_deadline(const LARGE_INTEGER *timeout, bool *at_once)
{
    struct os_deadline d = {.clock = OS_NEVER};

    *at_once = false;
    if (!timeout)
        return d;
    if (timeout->QuadPart < 0) {
        uint64_t now = os_mono_100ns(), ticks = 0 - (uint64_t)timeout->QuadPart;

        d.clock = OS_MONO;
        d.at_100ns = ticks > INT64_MAX - now ? INT64_MAX : now + ticks;
    } else {
        d.clock = OS_WALL;
        d.at_100ns = (uint64_t)timeout->QuadPart;
        *at_once = timeout->QuadPart == 0 || os_deadline_passed(&d);
    }
    return d;
}

/* ---- objects with a header ------------------------------------------------------------------ */

bool nt_header_init(DISPATCHER_HEADER *header, unsigned type, size_t size, bool signalled)
{
    struct nt_bucket *b = nt_wait_lock(header);
    bool waited_for = nt_wait_any(b, header);

    *header = (DISPATCHER_HEADER){
        .Type = (UCHAR)type,
        .Size = (UCHAR)(size / sizeof(LONG)),
        .SignalState = signalled ? 1 : 0,
    };
    header->WaitListHead.Flink = header->WaitListHead.Blink = &header->WaitListHead;
    nt_wait_unlock(b);
    return waited_for;
}

LONG nt_header_signal(DISPATCHER_HEADER *header)
{
    struct nt_bucket *b = nt_wait_lock(header);
    LONG old = header->SignalState;

    if (header->Type != NT_EVENT_SYNCHRONIZATION && header->Type != NT_TIMER_SYNCHRONIZATION) {
        header->SignalState = 1;
        (void)nt_wait_release_all(b, header);
    } else if (!nt_wait_release_one(b, header)) {
        header->SignalState = 1;
    }
    nt_wait_unlock(b);
    return old;
}

bool nt_header_waitable(const DISPATCHER_HEADER *header)
{
    unsigned type = header->Type;

    return type <= NT_EVENT_SYNCHRONIZATION || type == NT_SEMAPHORE || type == NT_THREAD ||
           type == NT_TIMER_NOTIFICATION || type == NT_TIMER_SYNCHRONIZATION;
}

void nt_header_consume(DISPATCHER_HEADER *header)
{
    unsigned type = header->Type;

    if (type == NT_SEMAPHORE)
        header->SignalState--;
    else if ((type == NT_EVENT_SYNCHRONIZATION || type == NT_TIMER_SYNCHRONIZATION) &&
             !RED("nt-event-not-consumed"))
        header->SignalState = 0;
}

NTSTATUS KeWaitForSingleObject(PVOID Object, KWAIT_REASON WaitReason, KPROCESSOR_MODE WaitMode,
                               BOOLEAN Alertable, PLARGE_INTEGER Timeout)
{
    DISPATCHER_HEADER *header = Object;
    NTSTATUS status = STATUS_SUCCESS;
    struct os_deadline until;
    struct nt_bucket *b;
    unsigned type;
    bool at_once;

    (void)WaitReason;
    (void)WaitMode;
    (void)Alertable;
    (void)nt_irql_at_most(Timeout && Timeout->QuadPart == 0 ? DISPATCH_LEVEL : APC_LEVEL,
                          "KeWaitForSingleObject", NT_CALLER);
    until = nt_wait_deadline(Timeout, &at_once);

    b = nt_wait_lock(header);
    type = header->Type;
    if (!nt_header_waitable(header)) {
        status = STATUS_INVALID_PARAMETER;
    } else if (header->SignalState > 0) {
        nt_header_consume(header);
    } else if (at_once || !nt_wait_sleep(b, header, &until)) {
        status = STATUS_TIMEOUT;
    }
    nt_wait_unlock(b);
    if (status == STATUS_INVALID_PARAMETER)
        nt_finding_from(
            NT_CALLER,
            "KeWaitForSingleObject: %p is no event, semaphore, timer or thread (type %u)", Object,
            type);
    return status;
}

NTSTATUS KeDelayExecutionThread(KPROCESSOR_MODE WaitMode, BOOLEAN Alertable,
                                PLARGE_INTEGER Interval)
{
    struct os_deadline until;
    bool at_once;

    (void)WaitMode;
    (void)Alertable;
    (void)nt_irql_at_most(APC_LEVEL, "KeDelayExecutionThread", NT_CALLER);
    until = nt_wait_deadline(Interval, &at_once);
    if (!at_once)
        os_sleep_until(&until);
    return STATUS_SUCCESS;
}
