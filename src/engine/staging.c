// SPDX-License-Identifier: MIT
/*
 * Receive staging areas: a shard's own, opened with it; another thread's on its first use, freed
 * when it ends. No lock.
 */
#include "engine/engine_internal.h"

#include <pthread.h>
#include <stdlib.h>

static pthread_once_t staging_once = PTHREAD_ONCE_INIT;
static pthread_key_t staging_key; /* its only use is the destructor at the thread's end */

/* The area is asked for again if another key's destructor receives: the key is set again then. */
static void staging_free(void *area)
{
    engine_thread.staging = NULL;
    free(area);
}

static void staging_create_key(void)
{
    int err = pthread_key_create(&staging_key, staging_free);

    ENGINE_REQUIRE(err == 0, "engine: staging: no thread key (errno %d)", err);
}

uint8_t *engine_staging_alloc(void)
{
    _Static_assert(ENGINE_STAGING % 64 == 0, "aligned_alloc wants a multiple");
    return aligned_alloc(64, ENGINE_STAGING);
}

uint8_t *engine_staging(void)
{
    struct engine_thread *me = &engine_thread;
    int err;

    if (me->self)
        return me->self->staging;
    if (!me->staging) {
        pthread_once(&staging_once, staging_create_key);
        me->staging = engine_staging_alloc();
        err = me->staging ? pthread_setspecific(staging_key, me->staging) : ENOMEM;
        ENGINE_REQUIRE(err == 0, "engine: staging: no memory for a thread's area (errno %d)", err);
    }
    return me->staging;
}
