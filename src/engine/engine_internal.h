// SPDX-License-Identifier: MIT
/*
 * What the files of the engine share. Seen by src/engine and its tests only.
 *
 * Who touches what of a shard: `deferred`, `run_list`, `awake`, `stop`, `next_due_us` any thread,
 * always sequentially consistent (the wake-up rule of engine.h is a store by one side, then a load
 * of what the other side stores first); the heap under timer_lock; `batches` and `firing_us` the
 * shard's own thread alone.
 */
#ifndef SOFTNDK_ENGINE_ENGINE_INTERNAL_H
#define SOFTNDK_ENGINE_ENGINE_INTERNAL_H

#include "base/log.h"
#include "engine/engine.h"

#define ENGINE_SHARDS_MAX 64
#define ENGINE_BATCH      64 /* events taken from the poll set at once */
#define ENGINE_NEVER      UINT64_MAX

/* Events in hand, on the stack of the I/O phase that took them. */
struct engine_batch {
    struct engine_batch *outer; /* of the I/O phase that this one is nested in */
    int next, count;
    struct os_event events[ENGINE_BATCH]; /* cookie: a watch, NULL once it was deleted */
};

struct engine_shard {
    unsigned index;
    bool stepped;
    bool spin_pays;       /* adaptive: the last wait ended within spin_us; shard's thread */
    atomic_bool adaptive; /* with spin_us: engine_get() */
    atomic_uint spin_us;
    struct os_poll *set;
    struct os_thread *thread;
    uint8_t *staging;
    struct engine_batch *batches;

    os_mutex timer_lock;
    struct engine_timer *timers; /* the one due first, and the others below it */
    uint32_t timer_count;
    uint64_t firing_us; /* the time the timers now firing were due by, 0 outside; shard's thread */
    atomic_uint watches;

    /* Written by other threads: away from what only the shard uses. */
    _Alignas(64) _Atomic(struct engine_item *) deferred;
    _Atomic(struct engine_work *) run_list;
    atomic_int awake; /* 0: about to wait or waiting, and nobody has woken it yet */
    atomic_bool stop;
    _Atomic uint64_t next_due_us; /* of timers, ENGINE_NEVER without one; written under the lock */
};

/* What a thread is to the engine. */
struct engine_thread {
    struct engine_shard *self;
    bool in_item;
    struct engine_after *after_first, *after_last;
    uint8_t *staging; /* of a thread that is no shard's */
};
extern _Thread_local struct engine_thread engine_thread;

/* Misuse by an upper floor: the process ends with the line. */
_Noreturn void engine_misuse(const char *format, ...) __attribute__((format(printf, 1, 2)));
#define ENGINE_REQUIRE(condition, ...)                                                             \
    (__builtin_expect(!!(condition), 1) ? (void)0 : engine_misuse(__VA_ARGS__))

/* shard.c */
int engine_shard_open(struct engine_shard **out, unsigned index,
                      const struct engine_config *config);
void engine_shard_close(struct engine_shard *shard);
void engine_shard_main(void *shard);
bool engine_shard_turn(struct engine_shard *shard, int64_t max_wait_us);
/* After something was published for the shard: wakes it if it sleeps. */
void engine_shard_nudge(struct engine_shard *shard);

/* What is ready in a set nested in the shard's, on the shard's thread. */
void engine_shard_batch(struct engine_shard *shard, struct os_poll *set);

/* group.c */
int engine_group_add(struct engine_group *group, struct engine_watch *watch);
void engine_group_del(struct engine_group *group, struct engine_watch *watch);
struct engine_shard *engine_group_shard(const struct engine_group *group);

/* queue.c */
bool engine_queued(struct engine_shard *shard);
bool engine_run_works(struct engine_shard *shard);
bool engine_run_items(struct engine_shard *shard);

/* timer.c */
void engine_timers_open(struct engine_shard *shard);
void engine_timers_close(struct engine_shard *shard);
bool engine_timers_fire(struct engine_shard *shard);

/* staging.c */
uint8_t *engine_staging_alloc(void); /* or NULL */

#endif
