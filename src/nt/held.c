// SPDX-License-Identifier: MIT
/*
 * See held.h. Called by spinlock.c with a lock's holder as the calling thread.
 *
 * A thread takes a record when it takes its first lock and gives it back when it ends. Records are
 * never freed: they are on a list that only grows, and belong to the thread whose number they bear.
 * There is no lock, and threads order nothing here but by what the slots of a record tell: a lock
 * of ours would order what drivers' threads do before and after it, and a ThreadSanitizer would no
 * longer see their races. Only the report acquires what a thread has published.
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
    struct record *next;     /* constant once it is on the list */
    _Atomic uint32_t thread; /* 0: nobody's */
    struct {
        _Atomic(const void *) lock; /* NULL: free */
        _Atomic(const void *) caller;
    } slots[SLOTS];
};

static struct record *_Atomic records;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static _Thread_local struct record *mine;

/* One line a lock. The lines are told in the end: telling one may take a lock. */
static size_t report(nt_report_line line, void *context)
{
    char(*texts)[OS_SYMBOL_MAX + 100] = line ? malloc(THREADS_TOLD * sizeof *texts) : NULL;
    size_t count = 0, told = 0;
    char symbol[OS_SYMBOL_MAX];

    for (struct record *r = atomic_load(&records); r; r = r->next) {
        for (unsigned i = 0; i < SLOTS; i++) {
            const void *lock = atomic_load_explicit(&r->slots[i].lock, memory_order_relaxed);
            const void *by = atomic_load_explicit(&r->slots[i].caller, memory_order_relaxed);

            if (!lock || RED("nt-held-unseen"))
                continue;
            count++;
            if (texts && told < THREADS_TOLD)
                snprintf(texts[told++], sizeof *texts,
                         "left: spin lock %p is held by thread %u, taken by %s", lock,
                         atomic_load_explicit(&r->thread, memory_order_relaxed),
                         os_symbol(by, symbol));
        }
    }
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
    mine = NULL;
    for (unsigned i = 0; i < SLOTS; i++)
        atomic_store_explicit(&r->slots[i].lock, NULL, memory_order_relaxed);
    atomic_store_explicit(&r->thread, 0, memory_order_relaxed);
}

static void init(void)
{
    if (pthread_key_create(&key, thread_ends) == 0)
        nt_report_source(report);
}

/* One that nobody has any more. What its last thread did is of no interest: its slots are free. */
static struct record *record_reuse(uint32_t thread)
{
    struct record *r = atomic_load_explicit(&records, memory_order_consume);

    for (; r; r = r->next) {
        uint32_t nobody = 0;

        if (atomic_compare_exchange_strong_explicit(&r->thread, &nobody, thread,
                                                    memory_order_relaxed, memory_order_relaxed))
            break;
    }
    return r;
}

static struct record *record_new(void)
{
    struct record *r;

    pthread_once(&once, init);
    r = record_reuse(os_thread_id());
    if (!r) {
        r = calloc(1, sizeof *r);
        if (!r)
            return NULL;
        atomic_store_explicit(&r->thread, os_thread_id(), memory_order_relaxed);
        r->next = atomic_load_explicit(&records, memory_order_relaxed);
        while (!atomic_compare_exchange_weak_explicit(&records, &r->next, r, memory_order_release,
                                                      memory_order_relaxed))
            ;
    }
    if (pthread_setspecific(key, r) != 0) {
        atomic_store_explicit(&r->thread, 0, memory_order_relaxed);
        return NULL;
    }
    mine = r;
    return r;
}

void nt_held_add(const void *lock, const void *caller)
{
    struct record *r = mine ? mine : record_new();

    for (unsigned i = 0; r && i < SLOTS; i++) {
        const void *empty = NULL;

        if (atomic_load_explicit(&r->slots[i].lock, memory_order_relaxed))
            continue;
        atomic_store_explicit(&r->slots[i].caller, caller, memory_order_relaxed);
        /* Exchanged, since the record's last thread may have emptied it without this one having
         * acquired that. */
        if (atomic_compare_exchange_strong_explicit(&r->slots[i].lock, &empty, lock,
                                                    memory_order_relaxed, memory_order_relaxed))
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
