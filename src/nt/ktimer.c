// SPDX-License-Identifier: MIT
/*
 * Timers: two lists, of those that are due by the monotonic clock and of those that are due by the
 * host's, each in the order of its times, and one thread that waits for the first of both.
 *
 * A timer that is due is taken off its list, its DPC queued and its object signalled with the lock
 * held, in this order: KeCancelTimer takes the lock, so after it the library touches the timer no
 * more, and whoever waited for the timer may free it when the wait returns, since the signal is the
 * last that is done to it. A periodic one goes back on the list first.
 *
 * Lock order: this lock, then the queue of DPCs or a bucket (wait.h) or a record's (left.h).
 */
#include "nt/ktimer.h"

#include <stdatomic.h>

#include "base/log.h"
#include "base/red.h"
#include "nt/left.h"
#include "nt/nt.h"
#include "nt/wait.h"

#define MS_100NS 10000ull

static struct {
    os_mutex lock;
    os_cond changed;
    LIST_ENTRY mono, wall;
    bool thread;
    atomic_size_t set; /* timers on the lists */
} timers = {
    .lock = OS_MUTEX_INITIALIZER,
    .changed = OS_COND_INITIALIZER,
    .mono = {&timers.mono, &timers.mono},
    .wall = {&timers.wall, &timers.wall},
};

static PKTIMER timer_at(PLIST_ENTRY entry)
{
    return CONTAINING_RECORD(entry, KTIMER, TimerListEntry);
}

static bool is_set(PKTIMER timer)
{
    return timer->Header.Inserted != 0;
}

/* Enters it before the first that is due later. */
static void insert(PKTIMER timer)
{
    PLIST_ENTRY head = timer->Header.Absolute ? &timers.wall : &timers.mono;
    PLIST_ENTRY at = head->Blink;

    while (at != head && timer_at(at)->DueTime.QuadPart > timer->DueTime.QuadPart)
        at = at->Blink;
    InsertHeadList(at, &timer->TimerListEntry); /* behind at */
    timer->Header.Inserted = 1;
    atomic_fetch_add(&timers.set, 1);
}

static void take_off(PKTIMER timer)
{
    RemoveEntryList(&timer->TimerListEntry);
    timer->Header.Inserted = 0;
    atomic_fetch_sub(&timers.set, 1);
}

/* ---- the thread ------------------------------------------------------------------------------ */

static void fire(PKTIMER timer, uint64_t now)
{
    PKDPC dpc = timer->Dpc;
    uint64_t period = timer->Period * MS_100NS;
    LARGE_INTEGER wall;

    take_off(timer);
    if (period && !RED("nt-timer-period-lost")) {
        /* Steady, but a thread that was held up does not make up for it. */
        timer->DueTime.QuadPart += period;
        if (timer->Header.Absolute) {
            timer->Header.Absolute = 0; /* by the monotonic clock from the first time on */
            timer->DueTime.QuadPart = os_mono_100ns() + period;
        } else if (timer->DueTime.QuadPart <= now) {
            timer->DueTime.QuadPart = now + period;
        }
        insert(timer);
    } else {
        (void)nt_left_drop(NT_LEFT_TIMER, timer);
    }
    if (dpc) {
        KeQuerySystemTime(&wall);
        (void)nt_dpc_queue(dpc, (PVOID)(ULONG_PTR)wall.LowPart,
                           (PVOID)(ULONG_PTR)(ULONG)wall.HighPart);
    }
    (void)nt_header_signal(&timer->Header);
}

static void fire_due(PLIST_ENTRY head, uint64_t (*clock)(void))
{
    while (!IsListEmpty(head)) {
        PKTIMER first = timer_at(head->Flink);
        uint64_t now = clock();

        if (first->DueTime.QuadPart > now)
            return;
        fire(first, now);
    }
}

/* The moment of the first timer. When both lists have one, not later than in a second: the host's
 * clock may be set while this waits by the other. */
static struct os_deadline next_moment(void)
{
    struct os_deadline d = {.clock = OS_NEVER};
    uint64_t mono, soon = os_mono_100ns() + 1000 * MS_100NS;

    if (!IsListEmpty(&timers.mono)) {
        mono = timer_at(timers.mono.Flink)->DueTime.QuadPart;
        d = (struct os_deadline){.clock = OS_MONO, .at_100ns = mono};
        if (!IsListEmpty(&timers.wall)) {
            uint64_t wall = timer_at(timers.wall.Flink)->DueTime.QuadPart, now = os_wall_100ns();
            uint64_t left = wall > now ? wall - now : 0;

            if (left < 1000 * MS_100NS)
                soon = os_mono_100ns() + left;
            d.at_100ns = mono < soon ? mono : soon;
        }
    } else if (!IsListEmpty(&timers.wall)) {
        d = (struct os_deadline){.clock = OS_WALL,
                                 .at_100ns = timer_at(timers.wall.Flink)->DueTime.QuadPart};
    }
    return d;
}

static void serve(void *arg)
{
    (void)arg;
    os_mutex_lock(&timers.lock);
    for (;;) {
        struct os_deadline next;

        fire_due(&timers.mono, os_mono_100ns);
        fire_due(&timers.wall, os_wall_100ns);
        next = next_moment();
        (void)os_cond_wait_deadline(&timers.changed, &timers.lock, &next);
    }
}

/* ---- the calls ------------------------------------------------------------------------------- */

VOID KeInitializeTimer(PKTIMER Timer)
{
    KeInitializeTimerEx(Timer, NotificationTimer);
}

/* Whether the timer, whose memory may be anything, is on a list; the lock is held. */
static bool is_listed(const KTIMER *timer)
{
    LIST_ENTRY *const heads[] = {&timers.mono, &timers.wall};

    for (int i = 0; i < 2; i++)
        for (PLIST_ENTRY at = heads[i]->Flink; at != heads[i]; at = at->Flink)
            if (timer_at(at) == timer)
                return true;
    return false;
}

VOID KeInitializeTimerEx(PKTIMER Timer, TIMER_TYPE Type)
{
    bool set;

    os_mutex_lock(&timers.lock);
    set = atomic_load(&timers.set) && is_listed(Timer);
    if (set)
        take_off(Timer);
    *Timer = (KTIMER){.Period = 0};
    (void)nt_header_init(&Timer->Header,
                         Type == SynchronizationTimer ? NT_TIMER_SYNCHRONIZATION
                                                      : NT_TIMER_NOTIFICATION,
                         sizeof *Timer, false);
    os_mutex_unlock(&timers.lock);
    if (set) {
        (void)nt_left_drop(NT_LEFT_TIMER, Timer);
        nt_finding_from(NT_CALLER, "KeInitializeTimer: %p is set", (void *)Timer);
    }
}

static bool is_timer(PKTIMER timer)
{
    return timer->Header.Type == NT_TIMER_NOTIFICATION ||
           timer->Header.Type == NT_TIMER_SYNCHRONIZATION;
}

static void unsignal(PKTIMER timer)
{
    struct nt_bucket *b = nt_wait_lock(timer);

    timer->Header.SignalState = 0;
    nt_wait_unlock(b);
}

static void due_at(PKTIMER timer, LARGE_INTEGER due)
{
    bool at_once;
    struct os_deadline d = nt_wait_deadline(&due, &at_once);

    timer->Header.Absolute = d.clock == OS_WALL && !at_once;
    timer->DueTime.QuadPart = at_once ? os_mono_100ns() : d.at_100ns;
}

static BOOLEAN set_timer(PKTIMER timer, LARGE_INTEGER due, ULONG period, PKDPC dpc,
                         const char *call, const void *caller)
{
    bool was_set, start;

    (void)nt_irql_at_most(DISPATCH_LEVEL, call, caller);
    if (!is_timer(timer)) {
        nt_finding_from(caller, "%s: %p is not initialized", call, (void *)timer);
        return FALSE;
    }
    os_mutex_lock(&timers.lock);
    was_set = is_set(timer);
    if (was_set)
        take_off(timer);
    else
        (void)nt_left_add(NT_LEFT_TIMER, timer, 0, 0, 0, caller);
    unsignal(timer);
    timer->Dpc = dpc;
    timer->Period = period;
    due_at(timer, due);
    insert(timer);
    start = !timers.thread;
    timers.thread = true;
    os_cond_signal(&timers.changed);
    os_mutex_unlock(&timers.lock);
    if (start && os_thread_start_detached("ndk-timer", serve, NULL) != 0) {
        os_mutex_lock(&timers.lock);
        timers.thread = false;
        os_mutex_unlock(&timers.lock);
        log_error("timers: no thread to serve them");
    }
    return was_set;
}

BOOLEAN KeSetTimer(PKTIMER Timer, LARGE_INTEGER DueTime, PKDPC Dpc)
{
    return set_timer(Timer, DueTime, 0, Dpc, "KeSetTimer", NT_CALLER);
}

BOOLEAN KeSetTimerEx(PKTIMER Timer, LARGE_INTEGER DueTime, LONG Period, PKDPC Dpc)
{
    if (Period < 0)
        nt_finding_from(NT_CALLER, "KeSetTimerEx: a negative period (have %d)", Period);
    return set_timer(Timer, DueTime, Period < 0 ? 0 : (ULONG)Period, Dpc, "KeSetTimerEx",
                     NT_CALLER);
}

BOOLEAN KeSetCoalescableTimer(PKTIMER Timer, LARGE_INTEGER DueTime, ULONG Period,
                              ULONG TolerableDelay, PKDPC Dpc)
{
    (void)TolerableDelay;
    return set_timer(Timer, DueTime, Period, Dpc, "KeSetCoalescableTimer", NT_CALLER);
}

BOOLEAN KeCancelTimer(PKTIMER Timer)
{
    bool was_set;

    (void)nt_irql_at_most(DISPATCH_LEVEL, "KeCancelTimer", NT_CALLER);
    if (!is_timer(Timer)) {
        nt_finding_from(NT_CALLER, "KeCancelTimer: %p is not initialized", (void *)Timer);
        return FALSE;
    }
    os_mutex_lock(&timers.lock);
    was_set = is_set(Timer);
    if (was_set)
        take_off(Timer);
    os_mutex_unlock(&timers.lock);
    if (was_set)
        (void)nt_left_drop(NT_LEFT_TIMER, Timer);
    return was_set;
}

BOOLEAN KeReadStateTimer(PKTIMER Timer)
{
    struct nt_bucket *b = nt_wait_lock(Timer);
    bool signalled = Timer->Header.SignalState > 0;

    nt_wait_unlock(b);
    return signalled;
}

bool nt_timer_forget(const void *begin, size_t size)
{
    const char *from = begin;
    LIST_ENTRY *const heads[] = {&timers.mono, &timers.wall};
    bool any = false;

    if (atomic_load(&timers.set) == 0)
        return false;
    os_mutex_lock(&timers.lock);
    for (int i = 0; i < 2; i++) {
        PLIST_ENTRY at = heads[i]->Flink;

        while (at != heads[i]) {
            PKTIMER timer = timer_at(at);

            at = at->Flink;
            if ((const char *)timer >= from && (const char *)timer < from + size) {
                take_off(timer);
                (void)nt_left_drop(NT_LEFT_TIMER, timer);
                any = true;
            }
        }
    }
    os_mutex_unlock(&timers.lock);
    return any;
}
