// SPDX-License-Identifier: MIT
/*
 * Timers: one binary heap a shard, the one due first at [1]. Lock: the shard's timer_lock, a leaf;
 * heap_index and due_us of a timer belong to it too. fire() is called without it.
 *
 * Invariant: next_due_us is the heap's first deadline whenever the lock is free. A thread that
 * makes it sooner then nudges the shard, so that a sleeping shard sleeps less long.
 */
#include "engine/engine_internal.h"

#include <stdlib.h>

#include "base/red.h"

#define TIMER_ROOM_FIRST 256u

int engine_timers_open(struct engine_shard *s)
{
    s->heap = calloc(TIMER_ROOM_FIRST, sizeof *s->heap);
    if (!s->heap)
        return -ENOMEM;
    s->heap_room = TIMER_ROOM_FIRST;
    atomic_store(&s->next_due_us, ENGINE_NEVER);
    os_mutex_init(&s->timer_lock);
    return 0;
}

void engine_timers_close(struct engine_shard *s)
{
    if (s->heap_count != 0)
        log_error("engine: shard %u: stop: timers were not cancelled (have %u, need 0)", s->index,
                  s->heap_count);
    for (uint32_t i = 1; i <= s->heap_count; i++)
        s->heap[i]->heap_index = 0;
    os_mutex_destroy(&s->timer_lock);
    free(s->heap);
}

/* The functions down to timer_remove() run under the lock. */

static inline void heap_put(struct engine_shard *s, uint32_t at, struct engine_timer *t)
{
    s->heap[at] = t;
    t->heap_index = at;
}

static void heap_settle(struct engine_shard *s, uint32_t at, struct engine_timer *t)
{
    uint32_t child;

    while (at > 1 && s->heap[at / 2]->due_us > t->due_us) {
        heap_put(s, at, s->heap[at / 2]);
        at /= 2;
    }
    while ((child = at * 2) <= s->heap_count && !RED("engine-timer-order")) {
        if (child < s->heap_count && s->heap[child + 1]->due_us < s->heap[child]->due_us)
            child++;
        if (s->heap[child]->due_us >= t->due_us)
            break;
        heap_put(s, at, s->heap[child]);
        at = child;
    }
    heap_put(s, at, t);
}

static void heap_publish(struct engine_shard *s)
{
    atomic_store(&s->next_due_us, s->heap_count ? s->heap[1]->due_us : ENGINE_NEVER);
}

static void heap_grow(struct engine_shard *s)
{
    struct engine_timer **grown = NULL;

    if (s->heap_room <= UINT32_MAX / 2)
        grown = realloc(s->heap, (size_t)s->heap_room * 2 * sizeof *grown);
    ENGINE_REQUIRE(grown, "engine: shard %u: timer_set: out of memory (have %u timers)", s->index,
                   s->heap_count);
    s->heap = grown;
    s->heap_room *= 2;
}

static void timer_remove(struct engine_shard *s, struct engine_timer *t)
{
    uint32_t at = t->heap_index;
    struct engine_timer *last = s->heap[s->heap_count--];

    t->heap_index = 0;
    if (last != t)
        heap_settle(s, at, last);
    heap_publish(s);
}

void engine_timer_init(struct engine_timer *t, struct engine_shard *s,
                       void (*fire)(struct engine_timer *))
{
    *t = (struct engine_timer){.shard = s, .fire = fire};
}

bool engine_timer_set(struct engine_timer *t, uint64_t delay_us)
{
    struct engine_shard *s = t->shard;
    uint64_t now = os_now_us();
    uint64_t due = delay_us < ENGINE_NEVER - 1 - now ? now + delay_us : ENGINE_NEVER - 1;
    bool was_armed, sooner;

    /* Set by a timer that fires: not in the same turn again, also within the same microsecond. */
    if (s == engine_thread.self && due <= s->firing_us)
        due = s->firing_us + 1;
    os_mutex_lock(&s->timer_lock);
    was_armed = t->heap_index != 0;
    sooner = s->heap_count == 0 || due < s->heap[1]->due_us;
    t->due_us = due;
    if (!was_armed) {
        if (s->heap_count + 1 == s->heap_room)
            heap_grow(s);
        s->heap_count++;
        heap_settle(s, s->heap_count, t);
    } else {
        heap_settle(s, t->heap_index, t);
    }
    heap_publish(s);
    os_mutex_unlock(&s->timer_lock);
    if (sooner && !RED("engine-timer-no-wake"))
        engine_shard_nudge(s);
    return was_armed;
}

bool engine_timer_cancel(struct engine_timer *t)
{
    struct engine_shard *s = t->shard;
    bool was_armed;

    os_mutex_lock(&s->timer_lock);
    was_armed = t->heap_index != 0;
    if (was_armed && !RED("engine-timer-cancel-ignored"))
        timer_remove(s, t);
    os_mutex_unlock(&s->timer_lock);
    return was_armed;
}

/* Those due when it began; a timer that re-arms itself waits for the next turn. */
bool engine_timers_fire(struct engine_shard *s)
{
    bool ran = false;
    uint64_t now;

    if (atomic_load(&s->next_due_us) == ENGINE_NEVER)
        return false;
    now = os_now_us();
    s->firing_us = now;
    while (atomic_load(&s->next_due_us) <= now) {
        struct engine_timer *t = NULL;

        os_mutex_lock(&s->timer_lock);
        if (s->heap_count != 0 && s->heap[1]->due_us <= now) {
            t = s->heap[1];
            timer_remove(s, t);
        }
        os_mutex_unlock(&s->timer_lock);
        if (!t)
            break;
        t->fire(t);
        ran = true;
    }
    s->firing_us = 0;
    return ran;
}
