// SPDX-License-Identifier: MIT
/*
 * Memory of a thread's own. What is large stands here and not in thread-local variables: those of
 * this library are reached without a call (initial-exec), for which they must stay small enough for
 * the room that the C library keeps for libraries loaded later.
 *
 * One key, made with the first use; its destructor frees all there is. No lock.
 */
#include <pthread.h>
#include <stdlib.h>

#include "base/red.h"
#include "os/linux/backend.h"
#include "os/os_sync.h"

struct kept {
    void *of[OS_THREAD_USES];
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key;
static int key_error;

static void kept_free(void *value)
{
    struct kept *kept = value;

    for (unsigned i = 0; i < OS_THREAD_USES; i++)
        free(kept->of[i]);
    free(kept);
}

static void key_make(void)
{
    key_error = pthread_key_create(&key, RED("os-thread-memory-leaks") ? NULL : kept_free);
}

void *os_thread_memory(enum os_thread_use use, size_t octets)
{
    struct kept *kept;

    pthread_once(&once, key_make);
    if (key_error)
        return NULL;
    kept = pthread_getspecific(key);
    if (!kept) {
        kept = octets ? calloc(1, sizeof *kept) : NULL;
        if (!kept)
            return NULL;
        if (pthread_setspecific(key, kept) != 0) {
            free(kept);
            return NULL;
        }
    }
    if (!kept->of[use] && octets)
        kept->of[use] = calloc(1, octets);
    return kept->of[use];
}
