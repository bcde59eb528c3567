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

struct waiter {
    struct waiter *next;
    struct waiter *prev;
    const void *object;
    bool released;
    os_cond woken;
};

/* Waiters in the order of their arrival, those of all objects of the bucket mixed. */
struct nt_bucket {
    os_mutex lock;
    struct waiter *first;
    struct waiter *last;
};

static struct nt_bucket buckets[BUCKETS] = {
    [0 ... BUCKETS - 1] = {.lock = OS_MUTEX_INITIALIZER},
};

struct nt_bucket *nt_wait_lock(const void *object)
{
    uintptr_t n = (uintptr_t)object >> 4;
    struct nt_bucket *b = &buckets[(n ^ (n >> 6) ^ (n >> 12)) & (BUCKETS - 1)];

    os_mutex_lock(&b->lock);
    return b;
}

void nt_wait_unlock(struct nt_bucket *b)
{
    os_mutex_unlock(&b->lock);
}

static void waiter_link(struct nt_bucket *b, struct waiter *w)
{
    w->next = NULL;
    w->prev = b->last;
    *(b->last ? &b->last->next : &b->first) = w;
    b->last = w;
}

static void waiter_unlink(struct nt_bucket *b, struct waiter *w)
{
    *(w->prev ? &w->prev->next : &b->first) = w->next;
    *(w->next ? &w->next->prev : &b->last) = w->prev;
}

static struct waiter *next_waiter_of(struct waiter *w, const void *object)
{
    while (w && w->object != object)
        w = w->next;
    return w;
}

/* Ends one wait. The signal is sent with the lock held, since w is gone once its thread runs. */
static void waiter_release(struct nt_bucket *b, struct waiter *w)
{
    waiter_unlink(b, w);
    w->released = true;
    os_cond_signal(&w->woken);
}

bool nt_wait_any(const struct nt_bucket *b, const void *object)
{
    return next_waiter_of(b->first, object) != NULL;
}

bool nt_wait_release_one(struct nt_bucket *b, const void *object)
{
    struct waiter *w = next_waiter_of(b->first, object);

    if (w && RED("nt-event-lost-wakeup"))
        w = NULL;
    if (w)
        waiter_release(b, w);
    return w != NULL;
}

unsigned nt_wait_release_all(struct nt_bucket *b, const void *object)
{
    struct waiter *w = next_waiter_of(b->first, object);
    unsigned count = 0;

    if (w && RED("nt-event-lost-wakeup"))
        w = NULL;
    while (w) {
        struct waiter *following = w->next;

        waiter_release(b, w);
        w = next_waiter_of(following, object);
        count++;
    }
    return count;
}

bool nt_wait_sleep(struct nt_bucket *b, const void *object, const struct os_deadline *until)
{
    struct waiter w = {.object = object, .woken = OS_COND_INITIALIZER};
    bool in_time = true;

    waiter_link(b, &w);
    while (!w.released && in_time)
        in_time = os_cond_wait_deadline(&w.woken, &b->lock, until);
    /* A wake-up that crossed the deadline counts: the signal was spent on this waiter. */
    if (!w.released)
        waiter_unlink(b, &w);
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

static bool is_waitable(unsigned type)
{
    return type <= NT_EVENT_SYNCHRONIZATION || type == NT_THREAD || type == NT_TIMER_NOTIFICATION ||
           type == NT_TIMER_SYNCHRONIZATION;
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
    if (!is_waitable(type)) {
        status = STATUS_INVALID_PARAMETER;
    } else if (header->SignalState > 0) {
        if ((type == NT_EVENT_SYNCHRONIZATION || type == NT_TIMER_SYNCHRONIZATION) &&
            !RED("nt-event-not-consumed"))
            header->SignalState = 0;
    } else if (at_once || !nt_wait_sleep(b, header, &until)) {
        status = STATUS_TIMEOUT;
    }
    nt_wait_unlock(b);
    if (status == STATUS_INVALID_PARAMETER)
        nt_finding_from(NT_CALLER,
                        "KeWaitForSingleObject: %p is no event, timer or thread (type %u)", Object,
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
