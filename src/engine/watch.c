// SPDX-License-Identifier: MIT
/*
 * Descriptors in a shard's poll set. The cookie of an event is the watch itself, so a watch that
 * is deleted must also leave the events that were fetched already: those of every I/O phase that
 * is under way on the shard's thread, the outer ones of a nested poll included.
 */
#include "engine/engine_internal.h"

#include "base/red.h"

int engine_watch_add(struct engine_watch *w, struct engine_shard *s, int fd,
                     void (*ready)(struct engine_watch *, unsigned))
{
    int rc;

    *w = (struct engine_watch){.shard = s, .fd = fd, .ready = ready};
    atomic_fetch_add(&s->watches, 1);
    /* From here on the watch may be called, and even deleted, by the shard. */
    rc = os_poll_add(s->set, fd, w);
    if (rc < 0) {
        atomic_fetch_sub(&s->watches, 1);
        *w = (struct engine_watch){.fd = -1};
    }
    return rc;
}

int engine_watch_join(struct engine_watch *w, struct engine_group *g, int fd,
                      void (*ready)(struct engine_watch *, unsigned))
{
    struct engine_shard *s = engine_group_shard(g);
    int rc;

    *w = (struct engine_watch){.shard = s, .fd = fd, .ready = ready, .group = g};
    atomic_fetch_add(&s->watches, 1);
    rc = engine_group_add(g, w);
    if (rc < 0) {
        atomic_fetch_sub(&s->watches, 1);
        *w = (struct engine_watch){.fd = -1};
    }
    return rc;
}

void engine_watch_del(struct engine_watch *w)
{
    struct engine_shard *s = w->shard;
    struct engine_shard *self = engine_thread.self;

    ENGINE_REQUIRE(s, "engine: watch_del: the watch was not added");
    ENGINE_REQUIRE(self == s || (!self && s->stepped),
                   "engine: watch_del: not on the thread of shard %u", s->index);
    if (w->group)
        engine_group_del(w->group, w);
    else
        os_poll_del(s->set, w->fd);
    for (struct engine_batch *b = s->batches; b && !RED("engine-batch-kept"); b = b->outer)
        for (int i = b->next; i < b->count; i++)
            if (b->events[i].cookie == w)
                b->events[i].cookie = NULL;
    atomic_fetch_sub(&s->watches, 1);
    w->shard = NULL;
    w->group = NULL;
    w->fd = -1;
}
