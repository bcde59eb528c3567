// SPDX-License-Identifier: MIT
/*
 * The process's shards: started by the first engine_get(), stopped by the last engine_put().
 *
 * Two locks, taken in this order. transition_lock is held through a whole start or stop, so that a
 * get by a foreign thread waits for a stop in progress. count_lock guards the count alone; a get on
 * a shard's thread takes only that one, since a stop may wait for that very thread.
 */
#include "engine/engine_internal.h"

#include <stdio.h>

#include "base/red.h"

static os_mutex transition_lock = OS_MUTEX_INITIALIZER;
static os_mutex count_lock = OS_MUTEX_INITIALIZER;
static unsigned engine_count;

/* Written by a start or stop only, while nobody has a count. */
static struct engine_shard *shards[ENGINE_SHARDS_MAX];
static unsigned shard_count;
static atomic_uint shard_turn; /* whose it is in engine_shard_next() */

/* Runs what is left on shards whose threads have ended, until nothing makes anything new. */
static void shards_drain(unsigned count)
{
    bool ran;

    do {
        ran = false;
        for (unsigned i = 0; i < count; i++) {
            engine_thread.self = shards[i];
            while (engine_queued(shards[i]))
                ran = engine_shard_turn(shards[i], 0) || ran;
        }
        engine_thread.self = NULL;
    } while (ran);
}

static void shards_stop(unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        if (!shards[i]->thread)
            continue;
        atomic_store(&shards[i]->stop, true);
        os_poll_wake(shards[i]->set);
    }
    for (unsigned i = 0; i < count; i++)
        if (shards[i]->thread)
            os_thread_join(shards[i]->thread);
    /* One shard's last item may have left something with a shard that had ended by then. */
    if (!RED("engine-stop-drops"))
        shards_drain(count);
    for (unsigned i = 0; i < count; i++) {
        engine_shard_close(shards[i]);
        shards[i] = NULL;
    }
    shard_count = 0;
}

static int shards_start(const struct engine_config *config)
{
    struct engine_config wanted = config ? *config : (struct engine_config){0};
    unsigned count = wanted.shards;
    int rc = 0;

    if (count == 0) {
        count = os_cpu_count();
        count = count < 2 ? 2 : count > 8 ? 8 : count;
    }
    if (count > ENGINE_SHARDS_MAX) {
        log_error("engine: start: too many shards (have %u, need <= %d)", count, ENGINE_SHARDS_MAX);
        return -EINVAL;
    }
    for (unsigned i = 0; i < count; i++) {
        rc = engine_shard_open(&shards[i], i, &wanted);
        if (rc < 0) {
            shards_stop(i);
            return rc;
        }
    }
    shard_count = count;
    atomic_store(&shard_turn, 0);
    for (unsigned i = 0; i < count && !wanted.stepped; i++) {
        char name[16];

        snprintf(name, sizeof name, "softndk-%u", i);
        rc = os_thread_start(&shards[i]->thread, name, engine_shard_main, shards[i]);
        if (rc < 0) {
            shards[i]->thread = NULL;
            shards_stop(count);
            return rc;
        }
    }
    return 0;
}

/* count_lock held. Who asks for more spinning than there is gets it, for all. */
static void spin_more(const struct engine_config *config)
{
    for (unsigned i = 0; config && config->spin_us && i < shard_count; i++) {
        struct engine_shard *s = shards[i];
        uint32_t have = atomic_load(&s->spin_us);

        if (!config->adaptive || have == 0)
            atomic_store(&s->adaptive, config->adaptive);
        if (config->spin_us > have && !RED("engine-later-spin-ignored"))
            atomic_store(&s->spin_us, config->spin_us);
    }
}

/* One more count if there is one already. */
static bool count_further(const struct engine_config *config)
{
    bool running;

    os_mutex_lock(&count_lock);
    running = engine_count > 0;
    if (running) {
        engine_count++;
        spin_more(config);
    }
    os_mutex_unlock(&count_lock);
    return running;
}

int engine_get(const struct engine_config *config)
{
    int rc = 0;

    if (engine_thread.self)
        return count_further(config) ? 0 : -ESHUTDOWN;
    os_mutex_lock(&transition_lock);
    if (!count_further(config)) {
        rc = shards_start(config);
        if (rc == 0) {
            os_mutex_lock(&count_lock);
            engine_count = 1;
            os_mutex_unlock(&count_lock);
        }
    }
    os_mutex_unlock(&transition_lock);
    return rc;
}

void engine_put(void)
{
    unsigned left;

    ENGINE_REQUIRE(!engine_thread.self, "engine: put: on the thread of shard %u",
                   engine_thread.self->index);
    os_mutex_lock(&transition_lock);
    os_mutex_lock(&count_lock);
    ENGINE_REQUIRE(engine_count > 0, "engine: put: without a get");
    left = --engine_count;
    os_mutex_unlock(&count_lock);
    if (left == 0)
        shards_stop(shard_count);
    os_mutex_unlock(&transition_lock);
}

unsigned engine_shard_count(void)
{
    return shard_count;
}

struct engine_shard *engine_shard_at(unsigned index)
{
    ENGINE_REQUIRE(index < shard_count, "engine: shard_at: no such shard (have %u, need < %u)",
                   index, shard_count);
    return shards[index];
}

struct engine_shard *engine_shard_next(void)
{
    ENGINE_REQUIRE(shard_count > 0, "engine: shard_next: the engine is not running");
    return shards[atomic_fetch_add(&shard_turn, 1) % shard_count];
}

unsigned engine_shard_index(const struct engine_shard *shard)
{
    return shard->index;
}

struct engine_shard *engine_self(void)
{
    return engine_thread.self;
}
