// SPDX-License-Identifier: MIT
/*
 * Groups: descriptors with a poll set of their own, nested in their shard's, which a thread that
 * polls may take out of there for a while (the lease). See engine.h.
 *
 * Lock: one a group, a leaf above the shard's timer lock: the list of members, the lease, and the
 * step from "an event was fetched" to "its watch is held", so that a watch deleted by the shard is
 * not among what a poller has in hand without a hold. The lease moves inside it together with the
 * system call: a word first and the call afterwards can leave the set unwatched for ever.
 *
 * What is asked for waits for a poll. Who asks sets the flags and then looks whether the lease is
 * out; who gives it back does so first and then looks at the flags; so one of the two sees to it.
 *
 * The lease saves wake-ups and owns nothing. A poller may still be at work on what it fetched when
 * the shard has the set again; who may touch a connection is decided there.
 */
#include <stdlib.h>

#include "base/red.h"
#include "engine/engine_internal.h"

#define GROUP_EVENTS  16    /* of one poll */
#define GROUP_LOOK_US 1000u /* a lease without a poll for so long goes back */
#define GROUP_DIRECT  15u   /* of sixteen polls of a group of one */
#define GROUP_RESTS   8     /* looks at a group without a lease before they stop */

struct engine_group {
    atomic_uint references;     /* its maker's, its users', and one a member */
    struct engine_watch nested; /* the set, in the shard's */
    struct engine_timer look;
    struct engine_work gone, sweep;
    struct os_poll *set;
    os_mutex lock;
    struct engine_watch *first;
    atomic_uint members;  /* written under the lock */
    atomic_bool leased;   /* written under the lock */
    atomic_bool asked;    /* a member was asked for */
    atomic_bool sweeping; /* `sweep` is queued */
    bool looking;         /* the timer is armed */
    atomic_uint polls;    /* a hint, so increments may be lost */
    unsigned looked, rests;
};

static struct engine_group *group_of(struct engine_watch *nested)
{
    return (struct engine_group *)(void *)((char *)nested - offsetof(struct engine_group, nested));
}

/* The shard's thread: the nested set has something. */
static void group_ready(struct engine_watch *nested, unsigned events)
{
    (void)events;
    engine_shard_batch(nested->shard, group_of(nested)->set);
}

/* Lock held. */
static void group_give_back(struct engine_group *g)
{
    if (!atomic_load(&g->leased) || RED("engine-lease-kept"))
        return;
    /* Without memory for it the timer, which runs while the lease is out, tries again. */
    if (os_poll_add_set(g->nested.shard->set, g->set, &g->nested) != 0)
        return;
    atomic_store(&g->leased, false);
    if (atomic_load(&g->asked) && !atomic_exchange(&g->sweeping, true) &&
        !RED("engine-asked-in-vain")) {
        atomic_fetch_add(&g->references, 1);
        engine_run(g->nested.shard, &g->sweep);
    }
}

/* Lock held. */
static void group_take(struct engine_group *g)
{
    os_poll_del_set(g->nested.shard->set, g->set);
    atomic_store(&g->leased, true);
    g->rests = 0;
    if (!g->looking) {
        g->looking = true;
        engine_timer_set(&g->look, GROUP_LOOK_US);
    }
}

/* The shard's thread, each millisecond while the lease is out and for a little behind it: arming
 * the timer for each of many short leases would wake the shard each time. */
static void group_look(struct engine_timer *timer)
{
    struct engine_group *g =
        (struct engine_group *)(void *)((char *)timer - offsetof(struct engine_group, look));

    os_mutex_lock(&g->lock);
    if (atomic_load(&g->leased) && atomic_load(&g->polls) == g->looked &&
        !RED("engine-lease-for-ever"))
        group_give_back(g);
    g->looked = atomic_load(&g->polls);
    g->rests = atomic_load(&g->leased) ? 0 : g->rests + 1;
    g->looking = g->rests < GROUP_RESTS;
    if (g->looking)
        engine_timer_set(&g->look, GROUP_LOOK_US);
    os_mutex_unlock(&g->lock);
}

/* On the shard's run list, behind every event in hand: nobody refers to it any more. */
static void group_gone(struct engine_work *work)
{
    struct engine_group *g =
        (struct engine_group *)(void *)((char *)work - offsetof(struct engine_group, gone));

    engine_timer_cancel(&g->look);
    if (!atomic_load(&g->leased))
        os_poll_del_set(g->nested.shard->set, g->set);
    os_poll_destroy(g->set);
    os_mutex_destroy(&g->lock);
    free(g);
}

static void group_unref(struct engine_group *g)
{
    if (atomic_fetch_sub(&g->references, 1) == 1)
        engine_run(g->nested.shard, &g->gone);
}

/* Lock held. Takes the asking back. */
static bool group_takes(struct engine_watch *w)
{
    return atomic_load(&w->asked) && atomic_exchange(&w->asked, false);
}

/* On the shard's run list: nobody polls any more, and members were asked for. Watches are deleted
 * on this thread alone. */
static void group_sweep(struct engine_work *work)
{
    struct engine_group *g =
        (struct engine_group *)(void *)((char *)work - offsetof(struct engine_group, sweep));
    struct engine_watch *w;

    atomic_store(&g->sweeping, false);
    atomic_store(&g->asked, false);
    do {
        os_mutex_lock(&g->lock);
        for (w = g->first; w && !group_takes(w); w = w->next)
            ;
        os_mutex_unlock(&g->lock);
        if (w)
            w->ready(w, OS_READABLE);
    } while (w);
    group_unref(g);
}

bool engine_group_ask(struct engine_group *g, struct engine_watch *w)
{
    atomic_store(&w->asked, true);
    atomic_store(&g->asked, true);
    return atomic_load(&g->leased);
}

struct engine_group *engine_group_open(struct engine_shard *shard)
{
    struct engine_group *g = calloc(1, sizeof *g);

    if (!g)
        return NULL;
    if (os_poll_create(&g->set) < 0) {
        free(g);
        return NULL;
    }
    atomic_init(&g->references, 1);
    os_mutex_init(&g->lock);
    g->gone.run = group_gone;
    g->sweep.run = group_sweep;
    g->nested = (struct engine_watch){.shard = shard, .fd = -1, .ready = group_ready};
    engine_timer_init(&g->look, shard, group_look);
    if (os_poll_add_set(shard->set, g->set, &g->nested) < 0) {
        os_poll_destroy(g->set);
        os_mutex_destroy(&g->lock);
        free(g);
        return NULL;
    }
    return g;
}

void engine_group_close(struct engine_group *g)
{
    engine_group_return(g);
    group_unref(g);
}

struct engine_shard *engine_group_shard(const struct engine_group *g)
{
    return g->nested.shard;
}

struct engine_group *engine_group_ref(struct engine_group *g)
{
    atomic_fetch_add(&g->references, 1);
    return g;
}

void engine_group_return(struct engine_group *g)
{
    if (!atomic_load(&g->leased))
        return;
    os_mutex_lock(&g->lock);
    group_give_back(g);
    os_mutex_unlock(&g->lock);
}

bool engine_group_leased(const struct engine_group *g)
{
    return atomic_load_explicit(&g->leased, memory_order_relaxed);
}

int engine_group_add(struct engine_group *g, struct engine_watch *w)
{
    int rc;

    atomic_fetch_add(&g->references, 1);
    os_mutex_lock(&g->lock);
    w->next = g->first;
    w->back = &g->first;
    if (w->next)
        w->next->back = &w->next;
    g->first = w;
    rc = os_poll_add(g->set, w->fd, w);
    if (rc == 0)
        atomic_fetch_add(&g->members, 1);
    else
        *w->back = w->next;
    if (rc != 0 && w->next)
        w->next->back = w->back;
    os_mutex_unlock(&g->lock);
    if (rc != 0)
        group_unref(g);
    return rc;
}

void engine_group_del(struct engine_group *g, struct engine_watch *w)
{
    os_mutex_lock(&g->lock);
    os_poll_del(g->set, w->fd);
    *w->back = w->next;
    if (w->next)
        w->next->back = w->back;
    atomic_fetch_sub(&g->members, 1);
    os_mutex_unlock(&g->lock);
    group_unref(g);
}

/* Lock held. Those that were asked for, as many as the room is for. */
static int group_asked(struct engine_group *g, struct os_event *events)
{
    int count = 0;

    if (!atomic_load(&g->asked) || RED("engine-asked-not-polled"))
        return 0;
    atomic_store(&g->asked, false);
    for (struct engine_watch *w = g->first; w; w = w->next) {
        if (count == GROUP_EVENTS) {
            atomic_store(&g->asked, true); /* perhaps more: the next poll */
            break;
        }
        if (group_takes(w))
            events[count++] = (struct os_event){.cookie = w, .events = OS_READABLE};
    }
    return count;
}

static unsigned group_count_poll(struct engine_group *g)
{
    unsigned polls = atomic_load_explicit(&g->polls, memory_order_relaxed) + 1;

    atomic_store_explicit(&g->polls, polls, memory_order_relaxed);
    return polls;
}

void engine_group_polling(struct engine_group *g)
{
    group_count_poll(g);
    if (engine_group_leased(g))
        return;
    os_mutex_lock(&g->lock);
    if (!atomic_load(&g->leased) && g->first)
        group_take(g);
    os_mutex_unlock(&g->lock);
}

bool engine_group_poll(struct engine_group *g, void (*hold)(struct engine_watch *),
                       void (*polled)(struct engine_watch *, unsigned))
{
    struct os_event events[GROUP_EVENTS];
    unsigned polls;
    int count;

    if (atomic_load_explicit(&g->members, memory_order_relaxed) == 0)
        return false;
    os_mutex_lock(&g->lock);
    if (!atomic_load(&g->leased))
        group_take(g);
    polls = group_count_poll(g);
    count = group_asked(g, events);
    if (count)
        ;
    else if (g->first && !g->first->next && (polls & GROUP_DIRECT) != 0) {
        events[0] = (struct os_event){.cookie = g->first, .events = 0};
        count = 1;
    } else if (g->first) {
        count = os_poll_wait(g->set, events, GROUP_EVENTS, 0);
    }
    for (int i = 0; i < count; i++)
        hold(events[i].cookie);
    os_mutex_unlock(&g->lock);
    for (int i = 0; i < count; i++)
        polled(events[i].cookie, events[i].events);
    return count > 0;
}
