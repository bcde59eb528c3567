// SPDX-License-Identifier: MIT
/*
 * The deferred queue and the run list: stacks that anybody pushes on and that the shard takes whole
 * and reverses. Nothing is ever popped singly, so there is no ABA. Also the list of what a thread
 * does after its deferred item. No lock.
 *
 * An entry may be freed by its own run function: its link is read before.
 */
#include "engine/engine_internal.h"

#include "base/red.h"
#include "os/sanitize.h"

void engine_defer(struct engine_shard *s, struct engine_item *item)
{
    struct engine_item *top = atomic_load(&s->deferred);

    sanitize_release(item);
    do {
        item->next = top;
    } while (!atomic_compare_exchange_weak(&s->deferred, &top, item));
    engine_shard_nudge(s);
}

void engine_run(struct engine_shard *s, struct engine_work *work)
{
    struct engine_work *top = atomic_load(&s->run_list);

    sanitize_release(work);
    do {
        work->next = top;
    } while (!atomic_compare_exchange_weak(&s->run_list, &top, work));
    engine_shard_nudge(s);
}

bool engine_queued(struct engine_shard *s)
{
    return atomic_load(&s->deferred) != NULL || atomic_load(&s->run_list) != NULL;
}

/* Everything pushed so far, oldest first. */
static struct engine_item *items_take(struct engine_shard *s)
{
    struct engine_item *at, *next, *first = NULL;

    /* The load spares an empty queue the exchange; what comes after it waits for the next turn. */
    if (atomic_load(&s->deferred) == NULL)
        return NULL;
    at = atomic_exchange(&s->deferred, NULL);
    if (RED("engine-items-reversed"))
        return at;
    for (; at; at = next) {
        next = at->next;
        at->next = first;
        first = at;
    }
    return first;
}

static struct engine_work *works_take(struct engine_shard *s)
{
    struct engine_work *at, *next, *first = NULL;

    if (atomic_load(&s->run_list) == NULL)
        return NULL;
    for (at = atomic_exchange(&s->run_list, NULL); at; at = next) {
        next = at->next;
        at->next = first;
        first = at;
    }
    return first;
}

bool engine_run_works(struct engine_shard *s)
{
    struct engine_work *next, *work = works_take(s);
    bool ran = work != NULL;

    for (; work; work = next) {
        next = work->next;
        sanitize_acquire(work);
        work->run(work);
    }
    return ran;
}

bool engine_run_items(struct engine_shard *s)
{
    struct engine_thread *me = &engine_thread;
    struct engine_item *next, *item = items_take(s);
    bool ran = item != NULL;

    for (; item; item = next) {
        next = item->next;
        me->in_item = true;
        sanitize_acquire(item);
        item->run(item);
        engine_after_flush();
        me->in_item = false;
    }
    return ran;
}

void engine_after(struct engine_after *after)
{
    struct engine_thread *me = &engine_thread;

    ENGINE_REQUIRE(me->in_item, "engine: after: not inside a deferred item");
    if (RED("engine-after-reversed") && me->after_first) {
        after->next = me->after_first;
        me->after_first = after;
        return;
    }
    after->next = NULL;
    if (me->after_first)
        me->after_last->next = after;
    else
        me->after_first = after;
    me->after_last = after;
}

bool engine_after_flush(void)
{
    struct engine_thread *me = &engine_thread;
    bool ran = false;

    for (struct engine_after *after; (after = me->after_first) != NULL; ran = true) {
        me->after_first = after->next;
        after->run(after);
    }
    return ran;
}

bool engine_in_item(void)
{
    return engine_thread.in_item;
}
