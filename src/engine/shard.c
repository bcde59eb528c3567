// SPDX-License-Identifier: MIT
/*
 * One shard's turn: wait, events, run list, deferred items, timers; and the sleep that loses no
 * wake-up. Called by the shard's thread, by engine_step() and, for what is left at the end, by the
 * last engine_put() once the threads are gone.
 *
 * Invariant: `awake` is 0 only between the store in shard_wait() and the return of the wait there,
 * and only until the first nudge in between. Whoever publishes work and finds 1 knows that the
 * shard looks at its queues once more before it sleeps; whoever finds 0 and turns it into 1 wakes
 * the poll set.
 */
#include "engine/engine_internal.h"

#include <stdlib.h>

#include "base/red.h"

_Thread_local struct engine_thread engine_thread;

_Noreturn void engine_misuse(const char *format, ...)
{
    va_list ap;

    log_init();
    va_start(ap, format);
    log_vwrite(LOG_ERROR, format, ap);
    va_end(ap);
    abort();
}

int engine_shard_open(struct engine_shard **out, unsigned index, const struct engine_config *config)
{
    struct engine_shard *s = aligned_alloc(_Alignof(struct engine_shard), sizeof *s);
    int rc;

    if (!s)
        return -ENOMEM;
    *s = (struct engine_shard){.index = index,
                               .stepped = config->stepped,
                               .spin_us = config->spin_us,
                               .adaptive = config->adaptive,
                               .awake = 1};
    engine_timers_open(s);
    s->staging = engine_staging_alloc();
    rc = s->staging ? os_poll_create(&s->set) : -ENOMEM;
    if (rc < 0) {
        engine_shard_close(s);
        return rc;
    }
    *out = s;
    return 0;
}

void engine_shard_close(struct engine_shard *s)
{
    unsigned left = atomic_load(&s->watches);

    if (left != 0)
        log_error("engine: shard %u: stop: watches were not deleted (have %u, need 0)", s->index,
                  left);
    engine_timers_close(s);
    os_poll_destroy(s->set);
    free(s->staging);
    free(s);
}

void engine_shard_nudge(struct engine_shard *s)
{
    if (s == engine_thread.self)
        return;
    /* The load spares a busy shard the exchange on its cache line; it is as good as one that read
     * 1, since it comes after the publication in the one order of all these operations. */
    if (atomic_load(&s->awake) == 0 && atomic_exchange(&s->awake, 1) == 0) {
        if (!RED("engine-lost-wake"))
            os_poll_wake(s->set);
    }
}

/* Something to do without waiting? */
static bool shard_due(struct engine_shard *s)
{
    return engine_queued(s) || atomic_load(&s->stop);
}

/* Shortens a wait (< 0: for ever) to the next timer; 0 when something is queued. */
static int64_t shard_shorten(struct engine_shard *s, int64_t wait_us)
{
    uint64_t due = atomic_load(&s->next_due_us);
    uint64_t now;

    if (shard_due(s))
        return 0;
    if (due == ENGINE_NEVER)
        return wait_us;
    now = os_now_us();
    if (due <= now)
        return 0;
    if (wait_us >= 0 && (uint64_t)wait_us <= due - now)
        return wait_us;
    return due - now > INT64_MAX ? INT64_MAX : (int64_t)(due - now);
}

/* Is it worth trying? A shard without a descriptor is woken by others only. */
static bool shard_spins(struct engine_shard *s)
{
    bool adaptive = atomic_load_explicit(&s->adaptive, memory_order_relaxed);

    if (atomic_load_explicit(&s->spin_us, memory_order_relaxed) == 0 || (adaptive && !s->spin_pays))
        return false;
    return !adaptive || atomic_load_explicit(&s->watches, memory_order_relaxed) != 0;
}

/* Polls awake for up to spin_us; true when there is something to do (or nothing to wait for). */
static bool shard_spin(struct engine_shard *s, struct engine_batch *batch, int64_t max_wait_us)
{
    int64_t wait_us = shard_shorten(s, max_wait_us);
    int64_t spin_us = (int64_t)atomic_load_explicit(&s->spin_us, memory_order_relaxed);
    uint64_t until;

    if (wait_us < 0 || wait_us > spin_us)
        wait_us = spin_us;
    until = os_now_us() + (uint64_t)wait_us;
    do {
        batch->count = os_poll_wait(s->set, batch->events, ENGINE_BATCH, 0);
        if (batch->count != 0 || shard_due(s))
            return true;
        os_cpu_relax();
    } while (os_now_us() < until);
    s->spin_pays = false;
    return false;
}

static void shard_wait(struct engine_shard *s, struct engine_batch *batch, int64_t max_wait_us)
{
    if (max_wait_us == 0 || shard_due(s)) {
        batch->count = os_poll_wait(s->set, batch->events, ENGINE_BATCH, 0);
    } else if (!shard_spins(s) || !shard_spin(s, batch, max_wait_us)) {
        int64_t wait_us = max_wait_us;
        bool adaptive = atomic_load_explicit(&s->adaptive, memory_order_relaxed);
        uint64_t began = adaptive ? os_now_us() : 0;

        if (RED("engine-check-before-awake")) {
            wait_us = shard_shorten(s, wait_us);
            os_sleep_us(20); /* the window is a few nanoseconds otherwise */
        }
        atomic_store(&s->awake, 0);
        if (!RED("engine-check-before-awake"))
            wait_us = shard_shorten(s, wait_us);
        batch->count = os_poll_wait(s->set, batch->events, ENGINE_BATCH, wait_us);
        atomic_store(&s->awake, 1);
        if (adaptive) /* a wake-up alone takes about as long as a spin does */
            s->spin_pays = os_now_us() - began <
                           2 * (uint64_t)atomic_load_explicit(&s->spin_us, memory_order_relaxed);
    }
    ENGINE_REQUIRE(batch->count >= 0, "engine: shard %u: wait: failed (errno %d)", s->index,
                   -batch->count);
}

static bool shard_hand_out(struct engine_shard *s, struct engine_batch *batch)
{
    bool ran = false;

    batch->outer = s->batches;
    s->batches = batch;
    while (batch->next < batch->count) {
        struct os_event *event = &batch->events[batch->next++];
        struct engine_watch *watch = event->cookie;

        if (watch) {
            watch->ready(watch, event->events);
            ran = true;
        }
    }
    s->batches = batch->outer;
    return ran;
}

void engine_shard_batch(struct engine_shard *s, struct os_poll *set)
{
    struct engine_batch batch = {0};

    batch.count = os_poll_wait(set, batch.events, ENGINE_BATCH, 0);
    ENGINE_REQUIRE(batch.count >= 0, "engine: shard %u: a group: wait: failed (errno %d)", s->index,
                   -batch.count);
    shard_hand_out(s, &batch);
}

/* Events and the run list. Timers are fired by the caller, after the items in a whole turn. */
static bool shard_io(struct engine_shard *s, int64_t max_wait_us)
{
    struct engine_batch batch;
    bool ran;

    batch.next = batch.count = 0;
    shard_wait(s, &batch, max_wait_us);
    ran = shard_hand_out(s, &batch);
    return engine_run_works(s) || ran;
}

bool engine_shard_turn(struct engine_shard *s, int64_t max_wait_us)
{
    bool ran = shard_io(s, max_wait_us);

    ran = engine_run_items(s) || ran;
    return engine_timers_fire(s) || ran;
}

void engine_poll_nested(void)
{
    struct engine_thread *me = &engine_thread;

    ENGINE_REQUIRE(me->self && me->in_item, "engine: poll_nested: not inside a deferred item");
    me->in_item = false;
    shard_io(me->self, 0);
    if (RED("engine-nested-runs-items"))
        engine_run_items(me->self);
    engine_timers_fire(me->self);
    me->in_item = true;
}

void engine_shard_main(void *shard)
{
    struct engine_shard *s = shard;

    engine_thread.self = s;
    os_thread_wake_exactly();
    while (!atomic_load(&s->stop) || engine_queued(s))
        engine_shard_turn(s, -1);
    engine_thread.self = NULL;
}

bool engine_step(struct engine_shard *s, uint64_t max_wait_us)
{
    bool ran;

    ENGINE_REQUIRE(s->stepped, "engine: step: shard %u has a thread of its own", s->index);
    ENGINE_REQUIRE(!engine_thread.self, "engine: step: called inside a step");
    engine_thread.self = s;
    ran = engine_shard_turn(s, max_wait_us > INT64_MAX ? INT64_MAX : (int64_t)max_wait_us);
    engine_thread.self = NULL;
    return ran;
}
