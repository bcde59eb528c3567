// SPDX-License-Identifier: MIT
/*
 * See origin.h. Called by object.c, adapter.c and lam.c when they make something, and by
 * adapter_left.c, which tells of what is there.
 */
#include "provider/origin.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/red.h"
#include "os/os_trace.h"

/* Ours, between the consumer's call and here, and the consumer's. */
enum { FRAMES = 24, TOLD_DEFAULT = 8, TOLD_MAX = 32 };

struct origin {
    unsigned depth;
    void *frames[];
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static unsigned told; /* frames of the consumer; 0: origins are not wanted */

static void read_environment(void)
{
    const char *text = getenv("SOFTNDK_STACKS"); /* src/nt/left.c complains of nonsense */
    unsigned long n = text ? strtoul(text, NULL, 10) : 0;

    if (text)
        told = n >= 1 && n <= TOLD_MAX ? (unsigned)n : TOLD_DEFAULT;
}

struct origin *origin_take(void)
{
    void *frames[FRAMES];
    struct origin *origin;
    unsigned depth;

    pthread_once(&once, read_environment);
    if (!told || RED("origin-not-taken"))
        return NULL;
    depth = os_trace(frames, FRAMES, __builtin_return_address(0));
    origin = malloc(sizeof *origin + depth * sizeof frames[0]);
    if (!origin)
        return NULL;
    origin->depth = depth;
    memcpy(origin->frames, frames, depth * sizeof frames[0]);
    return origin;
}

void origin_free(struct origin *origin)
{
    free(origin);
}

struct origin *origin_copy(const struct origin *origin)
{
    size_t size = origin ? sizeof *origin + origin->depth * sizeof origin->frames[0] : 0;
    struct origin *copy = size ? malloc(size) : NULL;

    if (copy)
        memcpy(copy, origin, size);
    return copy;
}

bool origin_same(const struct origin *a, const struct origin *b)
{
    if (!a || !b)
        return a == b;
    return a->depth == b->depth &&
           memcmp(a->frames, b->frames, a->depth * sizeof a->frames[0]) == 0;
}

/* The first frame that is not this library's; where everything is one program, the first. */
static unsigned first_foreign(const struct origin *origin)
{
    for (unsigned i = 0; i < origin->depth; i++)
        if (!os_same_module(origin->frames[i], (const void *)&told))
            return i;
    return 0;
}

size_t origin_text(const struct origin *origin, char *text, size_t size)
{
    char symbol[OS_SYMBOL_MAX];
    unsigned first, end;
    size_t at = 0;

    if (size)
        text[0] = '\0';
    if (!origin)
        return 0;
    first = first_foreign(origin);
    end = first + told < origin->depth ? first + told : origin->depth;
    for (unsigned i = first; i < end; i++)
        at += (size_t)snprintf(at < size ? text + at : NULL, at < size ? size - at : 0, "%s%s",
                               i == first ? ", made by " : " <- ",
                               os_symbol(origin->frames[i], symbol));
    return at;
}
