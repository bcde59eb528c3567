// SPDX-License-Identifier: MIT
/*
 * See left.h. Called by every file of src/nt that hands something out, and by report.c.
 *
 * How many frames a stack has is SOFTNDK_STACKS, 8 by default; 1 keeps the caller alone and costs
 * next to nothing.
 */
#include "nt/left.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/red.h"
#include "os/os.h"
#include "os/os_trace.h"

enum { BUCKETS = 256, FRAMES_DEFAULT = 8, FRAMES_MAX = 32 };

static struct bucket {
    os_mutex lock;
    struct nt_left *first;
} buckets[BUCKETS] = {
    [0 ... BUCKETS - 1] = {.lock = OS_MUTEX_INITIALIZER},
};

static atomic_size_t counts[NT_LEFT_KINDS];
static atomic_ullong next_serial = 1;

static const char *const kind_names[NT_LEFT_KINDS] = {
    [NT_LEFT_POOL] = "pool block",     [NT_LEFT_MDL] = "MDL",
    [NT_LEFT_WORK_ITEM] = "work item", [NT_LEFT_LOOKASIDE] = "lookaside list",
    [NT_LEFT_RESOURCE] = "resource",   [NT_LEFT_TIMER] = "timer that is set",
    [NT_LEFT_THREAD] = "thread",       [NT_LEFT_HANDLE] = "open handle",
};

const char *nt_left_kind_name(enum nt_left_kind kind)
{
    return kind_names[kind];
}

static unsigned frames_wanted = FRAMES_DEFAULT;
static pthread_once_t frames_once = PTHREAD_ONCE_INIT;

static void frames_read(void)
{
    const char *text = getenv("SOFTNDK_STACKS");
    char *end;
    unsigned long n;

    if (!text)
        return;
    n = strtoul(text, &end, 10);
    if (end == text || *end || n < 1 || n > FRAMES_MAX)
        log_error("SOFTNDK_STACKS: frames a stack (have \"%s\", need 1 to %d)", text, FRAMES_MAX);
    else
        frames_wanted = (unsigned)n;
}

static struct bucket *bucket_of(const void *address)
{
    uintptr_t n = (uintptr_t)address >> 4;

    n ^= n >> 8 ^ n >> 16;
    return &buckets[n % BUCKETS];
}

struct nt_left *nt_left_add(enum nt_left_kind kind, const void *address, size_t size, uint32_t tag,
                            unsigned flags, const void *caller)
{
    void *frames[FRAMES_MAX];
    struct bucket *b = bucket_of(address);
    struct nt_left *r;
    unsigned depth;

    pthread_once(&frames_once, frames_read);
    depth = os_trace(frames, frames_wanted, caller);
    r = malloc(sizeof *r + depth * sizeof frames[0]);
    if (!r)
        return NULL;
    *r = (struct nt_left){
        .address = address,
        .size = size,
        .serial = atomic_fetch_add_explicit(&next_serial, 1, memory_order_relaxed),
        .tag = tag,
        .flags = (uint16_t)flags,
        .kind = (uint8_t)kind,
        .depth = (uint8_t)depth,
    };
    memcpy(r->frames, frames, depth * sizeof frames[0]);
    os_mutex_lock(&b->lock);
    r->next = b->first;
    b->first = r;
    os_mutex_unlock(&b->lock);
    atomic_fetch_add_explicit(&counts[kind], 1, memory_order_relaxed);
    return r;
}

/* The link that points at the record; b is locked. */
static struct nt_left **link_to(struct bucket *b, enum nt_left_kind kind, const void *address)
{
    struct nt_left **at = &b->first;

    while (*at && ((*at)->address != address || (*at)->kind != kind))
        at = &(*at)->next;
    return at;
}

struct nt_left *nt_left_take(enum nt_left_kind kind, const void *address)
{
    struct bucket *b = bucket_of(address);
    struct nt_left **at, *r;

    os_mutex_lock(&b->lock);
    at = link_to(b, kind, address);
    r = *at;
    if (r && !RED("nt-left-stays"))
        *at = r->next;
    os_mutex_unlock(&b->lock);
    if (r && !RED("nt-left-stays"))
        atomic_fetch_sub_explicit(&counts[kind], 1, memory_order_relaxed);
    return r;
}

void nt_left_free(struct nt_left *record)
{
    if (!RED("nt-left-stays"))
        free(record);
}

bool nt_left_drop(enum nt_left_kind kind, const void *address)
{
    struct nt_left *r = nt_left_take(kind, address);

    if (!r)
        return false;
    nt_left_free(r);
    return true;
}

bool nt_left_find(enum nt_left_kind kind, const void *address, size_t *size, unsigned *flags)
{
    struct bucket *b = bucket_of(address);
    struct nt_left *r;

    os_mutex_lock(&b->lock);
    r = *link_to(b, kind, address);
    if (r && size)
        *size = r->size;
    if (r && flags)
        *flags = r->flags;
    os_mutex_unlock(&b->lock);
    return r != NULL;
}

size_t nt_left_count(enum nt_left_kind kind)
{
    return atomic_load_explicit(&counts[kind], memory_order_relaxed);
}

static int by_serial(const void *a, const void *b)
{
    const struct nt_left *x = *(struct nt_left *const *)a, *y = *(struct nt_left *const *)b;

    return x->serial < y->serial ? -1 : x->serial > y->serial;
}

static struct nt_left *copy_of(const struct nt_left *r)
{
    size_t size = sizeof *r + r->depth * sizeof r->frames[0];
    struct nt_left *copy = malloc(size);

    if (copy)
        memcpy(copy, r, size);
    return copy;
}

struct copies {
    struct nt_left **list;
    size_t count, room;
};

static void copies_add(struct copies *c, const struct nt_left *r, unsigned flags)
{
    struct nt_left **more, *copy;

    if (c->count == c->room) {
        more = realloc(c->list, (c->room + 64) * sizeof *more);
        if (!more)
            return;
        c->list = more;
        c->room += 64;
    }
    copy = copy_of(r);
    if (!copy)
        return;
    copy->flags = (uint16_t)flags;
    c->list[c->count++] = copy;
}

struct nt_left **nt_left_list(unsigned (*pick)(const struct nt_left *record), size_t *count)
{
    struct copies c = {.list = NULL};

    for (size_t i = 0; i < BUCKETS; i++) {
        os_mutex_lock(&buckets[i].lock);
        for (struct nt_left *r = buckets[i].first; r; r = r->next) {
            unsigned flags = pick ? pick(r) : r->flags;

            if (flags || !pick)
                copies_add(&c, r, flags);
        }
        os_mutex_unlock(&buckets[i].lock);
    }
    if (c.count)
        qsort(c.list, c.count, sizeof *c.list, by_serial);
    *count = c.count;
    return c.list;
}

void nt_left_list_free(struct nt_left **list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(list[i]);
    free(list);
}

void nt_left_stack(const struct nt_left *record, char *text, size_t size)
{
    char symbol[OS_SYMBOL_MAX];
    size_t at = 0;

    text[0] = '\0';
    for (unsigned i = 0; i < record->depth && at < size; i++)
        at += (size_t)snprintf(text + at, size - at, "%s%s", i ? " <- " : "",
                               os_symbol(record->frames[i], symbol));
}
