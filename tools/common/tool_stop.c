// SPDX-License-Identifier: MIT
/*
 * See tool_stop.h. The lock guards the list of watches; events are signalled under it, so that a
 * watch is not touched after its unwatch returned.
 */
#include "tool_stop.h"

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdatomic.h>
#include <time.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_ENTRY watches = {&watches, &watches};
static atomic_bool stopped, ending;
static pthread_t thread;

static sigset_t stop_signals(void)
{
    sigset_t set;

    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    return set;
}

/* What comes this soon after the first signal belongs to it: timeout(1) sends to the process and
 * then to its group. */
enum { SAME_MS = 300 };

static int64_t now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

/* One at least is asked for, however late this thread runs: what is pending already is taken. */
static void take_same(const sigset_t *set)
{
    int64_t until = now_ns() + SAME_MS * INT64_C(1000000), left = SAME_MS * INT64_C(1000000);

    do {
        struct timespec wait = {.tv_sec = 0, .tv_nsec = (long)(left > 0 ? left : 0)};

        (void)sigtimedwait(set, NULL, &wait);
        left = until - now_ns();
    } while (left > 0 && !atomic_load(&ending));
}

static void *take_signals(void *unused)
{
    sigset_t set = stop_signals();
    int number;

    (void)unused;
    for (;;) {
        if (sigwait(&set, &number) != 0)
            continue;
        if (atomic_load(&ending))
            return NULL;
        if (atomic_exchange(&stopped, true))
            _exit(128 + number);
        pthread_mutex_lock(&lock);
        for (LIST_ENTRY *entry = watches.Flink; entry != &watches; entry = entry->Flink)
            KeSetEvent(CONTAINING_RECORD(entry, struct tool_stop_watch, link)->event,
                       IO_NO_INCREMENT, FALSE);
        pthread_mutex_unlock(&lock);
        take_same(&set);
        if (atomic_load(&ending))
            return NULL;
    }
}

static void taken_by_the_thread(int number)
{
    (void)number;
}

bool tool_stop_begin(void)
{
    struct sigaction action = {.sa_handler = taken_by_the_thread, .sa_flags = SA_RESTART};
    sigset_t set = stop_signals();

    /* A shell has its background jobs ignore SIGINT, and what is ignored need not stay pending
     * although it is blocked. The handler itself never runs. */
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    return pthread_sigmask(SIG_BLOCK, &set, NULL) == 0 &&
           pthread_create(&thread, NULL, take_signals, NULL) == 0;
}

void tool_stop_end(void)
{
    atomic_store(&ending, true);
    pthread_kill(thread, SIGTERM);
    pthread_join(thread, NULL);
}

bool tool_stopped(void)
{
    return atomic_load(&stopped);
}

void tool_stop_watch(struct tool_stop_watch *watch, KEVENT *event)
{
    watch->event = event;
    pthread_mutex_lock(&lock);
    InsertTailList(&watches, &watch->link);
    if (atomic_load(&stopped))
        KeSetEvent(event, IO_NO_INCREMENT, FALSE);
    pthread_mutex_unlock(&lock);
}

void tool_stop_unwatch(struct tool_stop_watch *watch)
{
    pthread_mutex_lock(&lock);
    RemoveEntryList(&watch->link);
    pthread_mutex_unlock(&lock);
}
