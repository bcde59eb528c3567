// SPDX-License-Identifier: MIT
/*
 * os_sync.h on Linux: futexes, both clocks, thread numbers, processor ranks.
 */
#define _GNU_SOURCE 1 /* pthread_cond_clockwait, sched_getcpu */

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/red.h"
#include "os/linux/backend.h"
#include "os/os_sync.h"

#define TICKS_PER_SECOND   10000000ull
#define TICKS_1601_TO_1970 116444736000000000ull

static uint64_t ticks_of(clockid_t clock)
{
    struct timespec ts;

    clock_gettime(clock, &ts);
    return (uint64_t)ts.tv_sec * TICKS_PER_SECOND + (uint64_t)ts.tv_nsec / 100;
}

uint64_t os_wall_100ns(void)
{
    return ticks_of(CLOCK_REALTIME) + TICKS_1601_TO_1970;
}

uint64_t os_mono_100ns(void)
{
    return ticks_of(CLOCK_MONOTONIC);
}

bool os_deadline_passed(const struct os_deadline *d)
{
    if (d->clock == OS_NEVER)
        return false;
    return d->at_100ns <= (d->clock == OS_WALL ? os_wall_100ns() : os_mono_100ns());
}

/* The clock of the system, and the moment on it; a wall time before 1970 is 1970. */
static clockid_t system_clock_of(const struct os_deadline *d, struct timespec *ts)
{
    uint64_t at = d->at_100ns;

    if (d->clock == OS_WALL)
        at = at > TICKS_1601_TO_1970 ? at - TICKS_1601_TO_1970 : 0;
    ts->tv_sec = (time_t)(at / TICKS_PER_SECOND);
    ts->tv_nsec = (long)(at % TICKS_PER_SECOND * 100);
    return d->clock == OS_WALL ? CLOCK_REALTIME : CLOCK_MONOTONIC;
}

void os_sleep_until(const struct os_deadline *d)
{
    struct timespec ts;
    clockid_t clock;

    while (d->clock == OS_NEVER)
        pause();
    clock = system_clock_of(d, &ts);
    while (clock_nanosleep(clock, TIMER_ABSTIME, &ts, NULL) == EINTR)
        ;
}

bool os_cond_wait_deadline(os_cond *c, os_mutex *m, const struct os_deadline *d)
{
    struct timespec ts;
    clockid_t clock;
    int err;

    if (d->clock == OS_NEVER) {
        os_cond_wait(c, m);
        return true;
    }
    clock = system_clock_of(d, &ts);
    err = pthread_cond_clockwait(c, m, clock, &ts);
    if (err && err != ETIMEDOUT)
        os_fatal("cond_wait_deadline", err);
    return err == 0;
}

void os_cond_signal(os_cond *c)
{
    int err = pthread_cond_signal(c);

    if (err)
        os_fatal("cond_signal", err);
}

void os_futex_wait(const uint32_t *word, uint32_t value)
{
    /* Whatever it says - woken, changed meanwhile, interrupted - the caller looks again. */
    (void)syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}

void os_futex_wake(const uint32_t *word, unsigned waiters)
{
    if (!RED("os-futex-wake-lost"))
        (void)syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, waiters, NULL, NULL, 0);
}

uint32_t os_thread_id(void)
{
    static _Thread_local uint32_t id;

    if (__builtin_expect(id == 0, 0))
        id = (uint32_t)syscall(SYS_gettid);
    return id;
}

/* Ranks of the processors that this process may use; taken once, since consumers size their arrays
 * by the count. */
static struct {
    pthread_once_t once;
    unsigned count;
    unsigned short rank[CPU_SETSIZE];
} processors = {.once = PTHREAD_ONCE_INIT};

static void processors_read(void)
{
    cpu_set_t set;

    processors.count = os_cpu_count();
    CPU_ZERO(&set);
    if (sched_getaffinity(0, sizeof set, &set) < 0)
        return;
    for (unsigned cpu = 0, next = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &set))
            processors.rank[cpu] = (unsigned short)next++;
}

unsigned os_cpu_current(void)
{
    int cpu = sched_getcpu();

    pthread_once(&processors.once, processors_read);
    if (cpu < 0 || cpu >= CPU_SETSIZE)
        return 0;
    /* The affinity may have been widened since: stay below the count all the same. */
    return processors.rank[cpu] % processors.count;
}

uint64_t os_thread_cpu_us(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
    return (uint64_t)ts.tv_sec * 1000000u + (uint64_t)ts.tv_nsec / 1000u;
}
