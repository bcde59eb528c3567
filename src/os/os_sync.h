// SPDX-License-Identifier: MIT
/*
 * What the simulated kernel needs of the system beside os.h: waiting on a word of memory, moments
 * of two clocks, the calling thread's number, threads nobody joins, the present processor.
 *
 * Results and rules as in os.h: 0 or a negative errno value, EINTR never leaves, nothing here takes
 * a lock of an upper floor. Times are in units of 100 ns, as NT counts them.
 */
#ifndef SOFTNDK_OS_SYNC_H
#define SOFTNDK_OS_SYNC_H

#include "os/os.h"

/* ---- clocks --------------------------------------------------------------------------------- */

uint64_t os_wall_100ns(void); /* since 1601-01-01 UTC; follows the host's clock when it is set */
uint64_t os_mono_100ns(void); /* since an arbitrary moment; never jumps */

/* A moment at which a wait ends. */
enum os_clock { OS_NEVER, OS_MONO, OS_WALL };
struct os_deadline {
    enum os_clock clock;
    uint64_t at_100ns; /* of that clock */
};

/* Whether the moment has come. */
bool os_deadline_passed(const struct os_deadline *d);
/* Sleeps until then; OS_NEVER sleeps for ever. */
void os_sleep_until(const struct os_deadline *d);

/* ---- condition variables, with either clock ------------------------------------------------- */

/* false: the moment came. A wake-up may be spurious, as always. */
bool os_cond_wait_deadline(os_cond *c, os_mutex *m, const struct os_deadline *d);
void os_cond_signal(os_cond *c);                     /* wakes one waiter */
#define OS_COND_INITIALIZER PTHREAD_COND_INITIALIZER /* for os_cond_wait_deadline() and _wait() */

/* ---- waiting on a word ---------------------------------------------------------------------- */

/*
 * Sleeps while *word is value, until a wake on the same address. Returns at once when it is not;
 * may return early for no reason. The memory may be gone by the time of a wake: nothing is read
 * then, and a waiter that came to use the address anew gets a spurious wake-up.
 */
void os_futex_wait(const uint32_t *word, uint32_t value);
void os_futex_wake(const uint32_t *word, unsigned waiters);

/* ---- threads and processors ----------------------------------------------------------------- */

/* The calling thread's number: not 0, below 2^30, no other live thread's. */
uint32_t os_thread_id(void);

/* As os_thread_start(), for a thread that nobody joins; its resources go when it ends. */
int os_thread_start_detached(const char *name, void (*fn)(void *), void *arg);

/* Ends the calling thread, which os_thread_start...() started. */
_Noreturn void os_thread_exit(void);

/*
 * Memory of the calling thread, zero when it is made and freed when the thread ends; octets is the
 * same in all calls for one use, or 0: what is there, if anything. NULL: no memory.
 */
enum os_thread_use { OS_THREAD_STACKS, OS_THREAD_ERROR, OS_THREAD_USES };
void *os_thread_memory(enum os_thread_use use, size_t octets);

/* The processor this runs on right now, below os_cpu_count(): the how manieth of those that the
 * process may use. */
unsigned os_cpu_current(void);

/* CPU time the calling thread has used, microseconds. */
uint64_t os_thread_cpu_us(void);

#endif
