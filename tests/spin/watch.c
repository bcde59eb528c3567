// SPDX-License-Identifier: MIT
/* Rings, random streams, the watchdog; see spin.h. */
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "spin.h"

#define RING    48u
#define THREADS 64u

struct entry {
    const char *_Atomic what;
    atomic_uint object, kind, number, ms;
};

struct ring {
    struct entry entries[RING];
    atomic_uint used;
    atomic_bool watched;
    atomic_ullong beat;
};

unsigned spin_seed, patience_s = 60;
static struct ring rings[THREADS];
static atomic_uint ring_count;
static atomic_uint streams;
static _Thread_local struct ring *mine;
static _Thread_local unsigned stream;
static pthread_t watchdog;
static atomic_bool stopping;

static const char *const kinds[] = {"cq",        "pd",       "mr",       "srq", "qp",
                                    "connector", "listener", "endpoint", "mw"};

/* ---- the ring ------------------------------------------------------------------------------- */

static struct ring *my_ring(void)
{
    if (!mine)
        mine = &rings[atomic_fetch_add(&ring_count, 1) % THREADS]; /* shared at worst */
    return mine;
}

void note(const char *what, const struct object *object, unsigned number)
{
    struct ring *ring = my_ring();
    struct entry *entry = &ring->entries[atomic_fetch_add(&ring->used, 1) % RING];
    unsigned long long ms = test_now_ms();

    atomic_store(&entry->what, what);
    atomic_store(&entry->object, object ? object->number : 0);
    atomic_store(&entry->kind, object ? object->kind : KINDS);
    atomic_store(&entry->number, number);
    atomic_store(&entry->ms, (unsigned)(ms % 1000000));
    atomic_store(&ring->beat, ms);
}

static void ring_print(const struct ring *ring)
{
    unsigned used = atomic_load(&ring->used), from = used > RING ? used - RING : 0;

    fprintf(stderr, "thread %td%s:\n", ring - rings, ring == mine ? " (this one)" : "");
    for (unsigned i = from; i < used; i++) {
        const struct entry *e = &ring->entries[i % RING];
        unsigned kind = atomic_load(&e->kind);
        const char *what = atomic_load(&e->what);

        fprintf(stderr, "  %6u %s %s #%u (%u)\n", atomic_load(&e->ms), what ? what : "?",
                kind < KINDS ? kinds[kind] : "-", atomic_load(&e->object), atomic_load(&e->number));
    }
}

void spin_die(const char *format, ...)
{
    static atomic_flag once = ATOMIC_FLAG_INIT;
    va_list ap;

    while (atomic_flag_test_and_set(&once))
        test_sleep_ms(1000); /* another thread is about to end the process */
    fprintf(stderr, "spin: ");
    va_start(ap, format);
    vfprintf(stderr, format, ap);
    va_end(ap);
    fprintf(stderr, "\n");
    for (unsigned i = 0; i < atomic_load(&ring_count) && i < THREADS; i++)
        ring_print(&rings[i]);
    fprintf(stderr, "spin: the reason stands above; SOFTNDK_TEST_SEED=%u\n", spin_seed);
    fflush(NULL);
    abort();
}

/* ---- random numbers ------------------------------------------------------------------------- */

void draw_seed(unsigned seed)
{
    stream = seed * 2654435761u + 1;
}

unsigned draw(unsigned below)
{
    if (!stream) /* a thread of the library */
        draw_seed(spin_seed + 1000 + atomic_fetch_add(&streams, 1));
    stream = stream * 1664525u + 1013904223u;
    return (stream >> 8) % below;
}

/* ---- the watchdog --------------------------------------------------------------------------- */

void watch_me(bool on)
{
    atomic_store(&my_ring()->beat, test_now_ms());
    atomic_store(&my_ring()->watched, on);
}

static void *watch(void *context)
{
    (void)context;
    while (!atomic_load(&stopping)) {
        unsigned long long limit = test_now_ms() - patience_s * 1000ull;

        for (unsigned i = 0; i < THREADS; i++)
            if (atomic_load(&rings[i].watched) && atomic_load(&rings[i].beat) < limit)
                spin_die("thread %u has been in its last call for %u s", i, patience_s);
        test_sleep_ms(50);
    }
    return NULL;
}

static void crashed(int number)
{
    spin_die("signal %d", number);
}

void watch_begin(void)
{
    const char *text = getenv("SOFTNDK_SPIN_PATIENCE_S");

    if (text)
        patience_s = (unsigned)strtoul(text, NULL, 0);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
    signal(SIGSEGV, crashed); /* cmocka's would end the process without a word */
    signal(SIGBUS, crashed);
#else
    (void)crashed;
#endif
    need(pthread_create(&watchdog, NULL, watch, NULL) == 0);
}

void watch_end(void)
{
    atomic_store(&stopping, true);
    pthread_join(watchdog, NULL);
}
