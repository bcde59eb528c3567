// SPDX-License-Identifier: MIT
/*
 * Shards: one reactor thread each, with a poll set, timers, a run list and a deferred queue (what a
 * DPC queue is in the kernel). Knows neither NDK nor iwarp.
 *
 * One turn of a shard: wait for events (not at all when something is queued) - hand every ready
 * watch its events - the run list once - a snapshot of the deferred queue, each item followed by
 * what it left to be done after it - due timers. Watches, run-list work and timers are "I/O phase":
 * they never call a consumer. Only deferred items may.
 *
 * Wake-up rule: a pusher first publishes its entry, then exchanges the shard's awake flag with 1
 * and wakes the poll set only if it was 0. The shard clears the flag, looks at its queues once
 * more, then waits. So no entry is left behind a sleeping shard, and a busy shard costs the pusher
 * no system call.
 *
 * Locks: each shard has one timer lock (leaf). The deferred queue and the run list are lock-free
 * stacks that the shard takes whole and reverses, so that items run in the order of their pushes,
 * from whatever thread. The process-wide start/stop lock is taken by engine_get/engine_put only.
 */
#ifndef SOFTNDK_ENGINE_ENGINE_H
#define SOFTNDK_ENGINE_ENGINE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "os/os.h"

struct engine_shard;

/* An entry of the deferred queue; lives in its owner and may be freed by its own run function. */
struct engine_item {
    struct engine_item *next;
    void (*run)(struct engine_item *item);
};

/* An entry of a run list: work that was interrupted for fairness or handed over. */
struct engine_work {
    struct engine_work *next;
    void (*run)(struct engine_work *work);
};

/* Something to be done by this thread right after the deferred item that is running now. */
struct engine_after {
    struct engine_after *next;
    void (*run)(struct engine_after *after);
};

struct engine_timer {
    struct engine_shard *shard;
    void (*fire)(struct engine_timer *timer); /* on the shard's thread, I/O phase, no lock held */
    uint64_t due_us;
    /* In the shard's heap. back: the pointer to this one; NULL: not armed. */
    struct engine_timer *child, *next, **back;
};

struct engine_group;

/* A descriptor in a shard's poll set, edge-triggered, for both directions from the start. */
struct engine_watch {
    struct engine_shard *shard;
    int fd;
    void (*ready)(struct engine_watch *watch, unsigned os_events); /* I/O phase */
    struct engine_group *group;                                    /* NULL: in none */
    struct engine_watch *next, **back;                             /* in it; its lock */
    atomic_bool asked;                                             /* engine_group_ask() */
};

struct engine_config {
    unsigned shards;  /* 0: max(2, min(8, processors)) */
    unsigned spin_us; /* how long a shard polls without sleeping before it sleeps; 0: not at all */
    bool adaptive;    /* only while that was seen to shorten the wait */
    bool stepped;     /* no threads: the caller runs engine_step() (tests, simulation) */
};

/*
 * Starts the process's shards with the first call, counts further ones. The first one's config
 * counts (NULL: defaults); of further ones more spinning is taken over, by all shards, until the
 * last put. 0 or -errno (nothing started then).
 */
int engine_get(const struct engine_config *config);
/* Drops one count; the last one runs what is still deferred, until nothing makes anything new, then
 * stops and joins the threads. Not from a shard's thread. Watches and timers must be gone by then:
 * what is left is dropped, with a line in the log. While the last put runs, a get on a shard's
 * thread answers -ESHUTDOWN; one on another thread waits and starts anew. */
void engine_put(void);

unsigned engine_shard_count(void);
struct engine_shard *engine_shard_at(unsigned index);
struct engine_shard *engine_shard_next(void); /* dealt round robin */
unsigned engine_shard_index(const struct engine_shard *shard);
struct engine_shard *engine_self(void); /* the shard whose thread this is, or NULL */
/* True while this thread runs a deferred item, or what it left to be done after it; false in I/O
 * phase code, also where a nested poll inside an item runs it. */
bool engine_in_item(void);

/* Queue an item or work. Any thread. The entry must not be queued already. */
void engine_defer(struct engine_shard *shard, struct engine_item *item);
void engine_run(struct engine_shard *shard, struct engine_work *work);
/* Only where engine_in_item(): run when the item has returned, in the order of the calls. One that
 * is added while the list runs is run in the same go. */
void engine_after(struct engine_after *after);
/* Runs this thread's after-list now (the first empty poll inside a callback). True: it ran some. */
bool engine_after_flush(void);
/* Inside an item only: one non-waiting I/O phase of this thread's shard (events, run list, timers;
 * no deferred item). For a consumer that posts in a callback and polls for the result there. */
void engine_poll_nested(void);

void engine_timer_init(struct engine_timer *timer, struct engine_shard *shard,
                       void (*fire)(struct engine_timer *));
/* Arms or re-arms; any thread. True when it was armed before (and so will not fire for that). */
bool engine_timer_set(struct engine_timer *timer, uint64_t delay_us);
/* True: it was armed and will not fire. False: not armed, or it is firing or has fired. A timer may
 * be freed or armed anew in its own fire(). Equal deadlines fire in no particular order. */
bool engine_timer_cancel(struct engine_timer *timer);

/* Adds or removes a descriptor. After engine_watch_del returned on the shard's own thread outside
 * of an I/O event batch - that is, from an item, run-list work, timer or another watch of the same
 * batch - no further ready call is made: the batch in hand is searched for it. Only the shard's own
 * thread may delete (assert; in stepped mode also the caller between two steps), and before the
 * descriptor is closed. engine_watch_add: any thread; events may come before it returns. */
int engine_watch_add(struct engine_watch *watch, struct engine_shard *shard, int fd,
                     void (*ready)(struct engine_watch *, unsigned));
void engine_watch_del(struct engine_watch *watch);

/*
 * A group: watches of one shard that a thread which polls for their outcome may serve itself. The
 * first engine_group_poll() takes the lease: the shard sleeps through what happens to the members.
 * engine_group_return(), or a millisecond or two without a poll, gives it back; nothing that
 * happened meanwhile is lost. The lease is a hint, no ownership: a poller and the shard may find
 * the same descriptor ready.
 *
 * References: engine_group_open() gives one, engine_group_ref() another, engine_group_close() drops
 * one; each member has its own. Any thread.
 */
struct engine_group *engine_group_open(struct engine_shard *shard); /* NULL: no memory */
struct engine_group *engine_group_ref(struct engine_group *group);
void engine_group_close(struct engine_group *group); /* gives the lease back, too */
/* As engine_watch_add(), into the group's set. engine_watch_del() takes it out again. */
int engine_watch_join(struct engine_watch *watch, struct engine_group *group, int fd,
                      void (*ready)(struct engine_watch *, unsigned));
/*
 * Not from a shard's thread. Takes the lease, looks once without waiting; polled() is called for
 * each watch that may have something, at most 16, after hold() was called for it at a time when it
 * was not deleted yet: hold() takes a reference (under the group's lock, so it may do little else),
 * polled() drops it. With no event in os_events nobody looked, since it is the only member: it may
 * have something to read. True: there was one, or there may have been.
 */
bool engine_group_poll(struct engine_group *group, void (*hold)(struct engine_watch *),
                       void (*polled)(struct engine_watch *, unsigned os_events));
/* The poller found what it wanted without looking here, and will look again: takes or keeps the
 * lease. */
void engine_group_polling(struct engine_group *group);
/* Any thread. There is something to do for this member that no event tells of, and it may wait for
 * the next poll. True: that, or who gives the lease back, sees to it, by polled() or ready() with
 * OS_READABLE. False: nobody polls, the caller does it. */
bool engine_group_ask(struct engine_group *group, struct engine_watch *watch);
void engine_group_return(struct engine_group *group);
bool engine_group_leased(const struct engine_group *group);

/* This thread's receive staging area: ENGINE_STAGING octets, cache-warm, 64-octet aligned, valid
 * until the function that asked returns. Shards own one; other threads get one on first use, which
 * is freed when they end. Never NULL: without memory for it the process ends. */
#define ENGINE_STAGING (320u * 1024u)
uint8_t *engine_staging(void);

/* Stepped mode: one turn of a shard, waiting at most max_wait_us. True when anything ran. */
bool engine_step(struct engine_shard *shard, uint64_t max_wait_us);

#endif
