// SPDX-License-Identifier: MIT
/* See early.h. Called by request.c and by object_close(). */
#include "provider/early.h"

#include <stdlib.h>

#include "base/red.h"

struct early {
    os_mutex lock;
    os_cond changed;
    bool returned;    /* lock */
    unsigned holders; /* lock */
};

/* A shard that is not this thread's, home if possible; NULL when there is none. */
static struct engine_shard *early_shard(struct engine_shard *home)
{
    struct engine_shard *self = engine_self();
    unsigned count = engine_shard_count();

    if (home != self)
        return home;
    if (count < 2)
        return NULL;
    return engine_shard_at((engine_shard_index(self) + 1) % count);
}

struct early *early_new(struct object *object, struct engine_shard **where)
{
    struct engine_shard *shard = early_shard(object->home);
    struct early *early;

    if (!shard || (object->strand && object->strand == strand_running()))
        return NULL;
    early = hooks_alloc(sizeof *early);
    if (!early)
        return NULL;
    os_mutex_init(&early->lock);
    os_cond_init(&early->changed);
    early->holders = 2;
    *where = shard;
    return early;
}

/* Called with the lock held; the lock is gone when it returns. */
static void early_let_go(struct early *early)
{
    bool last = --early->holders == 0;

    os_mutex_unlock(&early->lock);
    if (!last)
        return;
    os_cond_destroy(&early->changed);
    os_mutex_destroy(&early->lock);
    free(early);
}

void early_returned(struct early *early)
{
    os_mutex_lock(&early->lock);
    early->returned = true;
    os_cond_broadcast(&early->changed);
    early_let_go(early);
}

bool early_wait(struct early *early)
{
    uint64_t deadline = os_now_us() + EARLY_WAIT_US;
    bool returned;

    os_mutex_lock(&early->lock);
    while (!early->returned && !RED("object-early-not-waited"))
        if (!os_cond_wait_until(&early->changed, &early->lock, deadline))
            break;
    returned = early->returned;
    early_let_go(early);
    return returned;
}

void early_forget(struct early *early)
{
    os_mutex_lock(&early->lock);
    early_let_go(early);
}
