// SPDX-License-Identifier: MIT
/*
 * See held.h. Called by spinlock.c with a lock's holder as the calling thread.
 *
 * A thread's record is made when it takes its first lock and is freed when it ends. The list of the
 * records has a lock, which is a leaf; the slots are atomics, written by the record's thread alone.
 */
#include "nt/held.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/red.h"
#include "nt/nt.h"
#include "os/os_sync.h"
#include "os/os_trace.h"

enum { SLOTS = 8, THREADS_TOLD = 64 };

struct record {
    struct record *next, *previous;
    uint32_t thread;
    struct {
        _Atomic(const void *) lock; /* NULL: free */
        _Atomic(const void *) caller;
    } slots[SLOTS];
};

static os_mutex records_lock = OS_MUTEX_INITIALIZER; /* leaf */
static struct record *records;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static _Thread_local struct record *mine;

/* One line a lock; the text is made under the list's lock, told without it. */
static size_t report(nt_report_line line, void *context)
{
    char(*texts)[OS_SYMBOL_MAX + 100] = line ? malloc(THREADS_TOLD * sizeof *texts) : NULL;
    size_t count = 0, told = 0;
    char symbol[OS_SYMBOL_MAX];

    os_mutex_lock(&records_lock);
    for (struct record *r = records; r; r = r->next) {
        for (unsigned i = 0; i < SLOTS; i++) {
            const void *lock = atomic_load_explicit(&r->slots[i].lock, memory_order_relaxed);
            const void *by = atomic_load_explicit(&r->slots[i].caller, memory_order_relaxed);

            if (!lock || RED("nt-held-unseen"))
                continue;
            count++;
            if (texts && told < THREADS_TOLD)
                snprintf(texts[told++], sizeof *texts,
                         "left: spin lock %p is held by thread %u, taken by %s", lock, r->thread,
                         os_symbol(by, symbol));
        }
    }
    os_mutex_unlock(&records_lock);
    for (size_t i = 0; i < told; i++)
        line(context, texts[i]);
    free(texts);
    return count;
}

/* A thread ends: what it holds will never be released. */
static void thread_ends(void *arg)
{
    struct record *r = arg;
    char symbol[OS_SYMBOL_MAX];

    for (unsigned i = 0; i < SLOTS; i++) {
        const void *lock = atomic_load_explicit(&r->slots[i].lock, memory_order_relaxed);

        if (lock)
            nt_finding("a thread ended with the spin lock %p held, taken by %s", lock,
                       os_symbol(r->slots[i].caller, symbol));
    }
    os_mutex_lock(&records_lock);
    if (r->previous)
        r->previous->next = r->next;
    else
        records = r->next;
    if (r->next)
        r->next->previous = r->previous;
    os_mutex_unlock(&records_lock);
    mine = NULL;
    free(r);
}

static void init(void)
{
    if (pthread_key_create(&key, thread_ends) == 0)
        nt_report_source(report);
}

static struct record *record_new(void)
{
    struct record *r = calloc(1, sizeof *r);

    pthread_once(&once, init);
    if (!r || pthread_setspecific(key, r) != 0) {
        free(r);
        return NULL;
    }
    r->thread = os_thread_id();
    os_mutex_lock(&records_lock);
    r->next = records;
    if (records)
        records->previous = r;
    records = r;
    os_mutex_unlock(&records_lock);
    mine = r;
    return r;
}

void nt_held_add(const void *lock, const void *caller)
{
    struct record *r = mine ? mine : record_new();

    for (unsigned i = 0; r && i < SLOTS; i++) {
        if (atomic_load_explicit(&r->slots[i].lock, memory_order_relaxed))
            continue;
        atomic_store_explicit(&r->slots[i].caller, caller, memory_order_relaxed);
        atomic_store_explicit(&r->slots[i].lock, lock, memory_order_relaxed);
        return;
    }
}

void nt_held_drop(const void *lock)
{
    for (unsigned i = SLOTS; mine && i-- > 0;) {
        if (atomic_load_explicit(&mine->slots[i].lock, memory_order_relaxed) != lock)
            continue;
        atomic_store_explicit(&mine->slots[i].lock, NULL, memory_order_relaxed);
        return;
    }
}
