// SPDX-License-Identifier: MIT
/*
 * Threads, mutexes and condition variables on pthreads. Misuse of a lock ends the process: nothing
 * above could go on with it.
 *
 * Threads of this library leave the application's signals to the application: all are blocked but
 * those that the thread brings upon itself, whose handlers (of debuggers and sanitizers) must run.
 */
#define _GNU_SOURCE 1 /* thread names, processor sets */

#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/red.h"
#include "os/linux/backend.h"
#include "os/os_sync.h"
#include "os/sanitize.h"

struct os_thread {
    pthread_t id;
    char name[16];
    void (*fn)(void *);
    void *arg;
    bool detached; /* the thread itself frees this, at its start */
};

_Noreturn void os_fatal(const char *call, int err)
{
    log_error("os: %s: failed (%s)", call, strerror(err));
    abort();
}

static inline void check(const char *call, int err)
{
    if (__builtin_expect(err != 0, 0))
        os_fatal(call, err);
}

void os_mutex_init(os_mutex *m)
{
    check("mutex_init", pthread_mutex_init(m, NULL));
}

void os_mutex_destroy(os_mutex *m)
{
    check("mutex_destroy", pthread_mutex_destroy(m));
}

void os_cond_init(os_cond *c)
{
    pthread_condattr_t attr;

    check("cond_init", pthread_condattr_init(&attr));
    if (!RED("os-cond-wall-clock"))
        check("cond_init", pthread_condattr_setclock(&attr, CLOCK_MONOTONIC));
    check("cond_init", pthread_cond_init(c, &attr));
    pthread_condattr_destroy(&attr);
}

void os_cond_destroy(os_cond *c)
{
    check("cond_destroy", pthread_cond_destroy(c));
}

void os_cond_wait(os_cond *c, os_mutex *m)
{
    check("cond_wait", pthread_cond_wait(c, m));
}

bool os_cond_wait_until(os_cond *c, os_mutex *m, uint64_t deadline_us)
{
    struct timespec ts = {.tv_sec = (time_t)(deadline_us / 1000000),
                          .tv_nsec = (long)(deadline_us % 1000000 * 1000)};
    int err = pthread_cond_timedwait(c, m, &ts);

    if (err != ETIMEDOUT)
        check("cond_wait_until", err);
    return err == 0;
}

void os_cond_broadcast(os_cond *c)
{
    check("cond_broadcast", pthread_cond_broadcast(c));
}

void os_thread_wake_exactly(void)
{
    prctl(PR_SET_TIMERSLACK, 1UL);
}

/*
 * Handlers of signals that ask for it (SA_ONSTACK) run on the room of thread_main, at the far end
 * of the thread's stack, so that a program can still tell of a stack that is used up. Untouched,
 * the room costs no memory. A sanitizer has made one of its own already, and takes it away at the
 * end.
 */
enum { SIGNAL_ROOM = 65536 };

static void signal_stack(char *room)
{
    stack_t there, ours = {.ss_sp = room, .ss_size = SIGNAL_ROOM};

    if (sigaltstack(NULL, &there) == 0 && there.ss_flags & SS_DISABLE &&
        !RED("os-thread-no-signal-stack"))
        sigaltstack(&ours, NULL);
}

static void *thread_main(void *arg)
{
    struct os_thread *t = arg;
    void (*fn)(void *) = t->fn;
    char room[SIGNAL_ROOM];

    signal_stack(room);
    arg = t->arg;
    pthread_setname_np(pthread_self(), t->name);
    if (t->detached)
        free(t);
    fn(arg);
    return NULL;
}

/* Makes the object and runs the thread; stores the object, which is gone already when the thread
 * is detached. */
static int thread_spawn(struct os_thread **out, const char *name, void (*fn)(void *), void *arg,
                        bool detached)
{
    static const int own[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS, SIGABRT};
    int state = detached ? PTHREAD_CREATE_DETACHED : PTHREAD_CREATE_JOINABLE;
    int err = os_fault(OS_FAULT_THREAD);
    struct os_thread *t;
    sigset_t block, before;
    pthread_attr_t attr;
    pthread_t id;

    if (err)
        return -err;
    t = calloc(1, sizeof *t);
    if (!t)
        return -ENOMEM;
    t->fn = fn;
    t->arg = arg;
    t->detached = detached;
    memcpy(t->name, name, strnlen(name, sizeof t->name - 1));
    sigfillset(&block);
    for (size_t i = 0; i < sizeof own / sizeof *own; i++)
        sigdelset(&block, own[i]);
    check("thread_start", pthread_attr_init(&attr));
    check("thread_start", pthread_attr_setdetachstate(&attr, state));
    /* The mask is inherited, so there is no moment at which the new thread could take one. */
    pthread_sigmask(SIG_SETMASK, &block, &before);
    err = pthread_create(&id, &attr, thread_main, t);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    if (err) {
        free(t);
        return -err;
    }
    if (!detached) {
        t->id = id;
        *out = t;
    }
    return 0;
}

int os_thread_start(struct os_thread **out, const char *name, void (*fn)(void *), void *arg)
{
    return thread_spawn(out, name, fn, arg, false);
}

int os_thread_start_detached(const char *name, void (*fn)(void *), void *arg)
{
    return thread_spawn(NULL, name, fn, arg, true);
}

void os_thread_exit(void)
{
    sanitize_no_return();
    pthread_exit(NULL);
}

void os_thread_join(struct os_thread *t)
{
    check("thread_join", pthread_join(t->id, NULL));
    free(t);
}

unsigned os_cpu_count(void)
{
    cpu_set_t set;
    long n;

    if (sched_getaffinity(0, sizeof set, &set) == 0)
        return (unsigned)CPU_COUNT(&set);
    n = sysconf(_SC_NPROCESSORS_ONLN); /* more processors than the set holds */
    return n > 0 ? (unsigned)n : 1;
}

void os_cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield" ::: "memory");
#else
    __asm__ __volatile__("" ::: "memory");
#endif
}
