// SPDX-License-Identifier: MIT
/*
 * Strands: see object.h. The runner is one engine item; it is queued exactly while `scheduled` is
 * set, and the strand's reference on its owner covers just that time. Called by request.c, by
 * connectors for their events, by object.c for creation and end.
 *
 * Locks: the strand's (leaf), never held while an item runs.
 */
#include <stdlib.h>

#include "base/red.h"
#include "provider/object.h"

static _Thread_local struct strand *running;

static void strand_run(struct engine_item *runner)
{
    struct strand *strand = CONTAINING_RECORD(runner, struct strand, runner);
    struct strand *outer = running;
    struct object *owner = strand->owner;
    struct engine_item *item;
    bool more;

    os_mutex_lock(&strand->lock);
    item = strand->first;
    strand->first = item->next;
    if (!strand->first)
        strand->last = &strand->first;
    os_mutex_unlock(&strand->lock);

    running = strand;
    item->run(item);
    running = outer;

    os_mutex_lock(&strand->lock);
    more = strand->first != NULL;
    strand->scheduled = more;
    os_mutex_unlock(&strand->lock);
    if (more)
        engine_defer(callback_shard(strand->shard), &strand->runner);
    else if (owner)
        object_unref(owner);
}

void strand_init(struct strand *strand, struct engine_shard *shard)
{
    os_mutex_init(&strand->lock);
    strand->first = NULL;
    strand->last = &strand->first;
    strand->scheduled = false;
    strand->runner.run = strand_run;
    strand->shard = shard;
    strand->owner = NULL;
}

void strand_destroy(struct strand *strand)
{
    os_mutex_destroy(&strand->lock);
}

void strand_push_at(struct strand *strand, struct engine_item *item, struct engine_shard *where)
{
    bool start;

    if (RED("object-strand-unordered")) {
        engine_defer(where, item);
        return;
    }
    item->next = NULL;
    os_mutex_lock(&strand->lock);
    *strand->last = item;
    strand->last = &item->next;
    start = !strand->scheduled;
    strand->scheduled = true;
    if (start && strand->owner)
        object_ref(strand->owner); /* the item covers one: the owner lives */
    os_mutex_unlock(&strand->lock);
    if (start && strand->owner)
        object_defer(strand->owner, where, &strand->runner);
    else if (start)
        engine_defer(where, &strand->runner);
}

void strand_push(struct strand *strand, struct engine_item *item)
{
    strand_push_at(strand, item, callback_shard(strand->shard));
}

struct strand *strand_running(void)
{
    return running;
}

struct strand *object_strand(struct object *object)
{
    if (!object->strand) {
        struct strand *strand = hooks_alloc(sizeof *strand);

        if (!strand)
            return NULL;
        strand_init(strand, object->home);
        strand->owner = object;
        object->strand = strand;
    }
    return object->strand;
}
