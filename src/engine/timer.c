// SPDX-License-Identifier: MIT
/*
 * Timers: one pairing heap a shard, the one due first its root. The links are part of the timers,
 * so that arming one needs no memory and cannot fail. Lock: the shard's timer_lock, a leaf; due_us
 * and the links of a timer belong to it too. fire() is called without it.
 *
 * Invariant: next_due_us is the root's deadline whenever the lock is free. A thread that makes it
 * sooner then nudges the shard, so that a sleeping shard sleeps less long.
 */
#include "engine/engine_internal.h"

#include "base/red.h"

void engine_timers_open(struct engine_shard *s)
{
    s->timers = NULL;
    s->timer_count = 0;
    atomic_store(&s->next_due_us, ENGINE_NEVER);
    os_mutex_init(&s->timer_lock);
}

/* The functions down to timer_remove() run under the lock. */

/* Two heaps become one. The later root becomes the first child of the other. */
static struct engine_timer *heap_meld(struct engine_timer *a, struct engine_timer *b)
{
    struct engine_timer *first = a, *later = b;

    if (b->due_us < a->due_us && !RED("engine-timer-order")) {
        first = b;
        later = a;
    }
    later->next = first->child;
    if (later->next)
        later->next->back = &later->next;
    later->back = &first->child;
    first->child = later;
    return first;
}

/* One heap of all the children of a timer that goes: melded in pairs, then the pairs from the last
 * to the first, which keeps later removals cheap. */
static struct engine_timer *heap_of(struct engine_timer *children)
{
    struct engine_timer *pairs = NULL, *root = NULL;

    while (children) {
        struct engine_timer *one = children, *two = one->next;

        children = two ? two->next : NULL;
        if (two)
            one = heap_meld(one, two);
        one->next = pairs;
        pairs = one;
    }
    while (pairs) {
        struct engine_timer *one = pairs;

        pairs = one->next;
        root = root ? heap_meld(root, one) : one;
    }
    return root;
}

static void heap_add(struct engine_shard *s, struct engine_timer *t)
{
    struct engine_timer *root = s->timers ? heap_meld(s->timers, t) : t;

    root->next = NULL;
    root->back = &s->timers;
    s->timers = root;
}

static void heap_publish(struct engine_shard *s)
{
    atomic_store(&s->next_due_us, s->timers ? s->timers->due_us : ENGINE_NEVER);
}

static void timer_remove(struct engine_shard *s, struct engine_timer *t)
{
    struct engine_timer *below = heap_of(t->child);

    *t->back = t->next;
    if (t->next)
        t->next->back = t->back;
    t->child = t->next = NULL;
    t->back = NULL;
    s->timer_count--;
    if (below)
        heap_add(s, below);
    heap_publish(s);
}

void engine_timers_close(struct engine_shard *s)
{
    if (s->timer_count != 0)
        log_error("engine: shard %u: stop: timers were not cancelled (have %u, need 0)", s->index,
                  s->timer_count);
    while (s->timers)
        timer_remove(s, s->timers);
    os_mutex_destroy(&s->timer_lock);
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
    was_armed = t->back != NULL;
    sooner = !s->timers || due < s->timers->due_us;
    if (was_armed)
        timer_remove(s, t);
    t->due_us = due;
    s->timer_count++;
    heap_add(s, t);
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
    was_armed = t->back != NULL;
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
        if (s->timers && s->timers->due_us <= now) {
            t = s->timers;
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
