// SPDX-License-Identifier: MIT
/* See heap.h. */
#include "heap.h"

#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

void *__real_malloc(size_t size);
void *__real_calloc(size_t count, size_t size);
void *__real_realloc(void *block, size_t size);
void *__real_aligned_alloc(size_t alignment, size_t size);
void __real_free(void *block);
void *__wrap_malloc(size_t size);
void *__wrap_calloc(size_t count, size_t size);
void *__wrap_realloc(void *block, size_t size);
void *__wrap_aligned_alloc(size_t alignment, size_t size);
char *__wrap_strdup(const char *text);
void __wrap_free(void *block);

static atomic_uint made, fail_at;
static atomic_bool armed, fired;
static atomic_long outstanding;

void heap_arm(unsigned n)
{
    atomic_store(&made, 0);
    atomic_store(&fired, false);
    atomic_store(&fail_at, n);
    atomic_store(&armed, true);
}

unsigned heap_disarm(void)
{
    atomic_store(&armed, false);
    return atomic_load(&made);
}

bool heap_fired(void)
{
    return atomic_load(&fired);
}

long heap_outstanding(void)
{
    return atomic_load(&outstanding);
}

/* May this allocation be made? */
static bool allowed(void)
{
    if (!atomic_load(&armed))
        return true;
    if (atomic_fetch_add(&made, 1) + 1 != atomic_load(&fail_at))
        return true;
    atomic_store(&fired, true);
    return false;
}

static void *counted(void *block)
{
    if (block)
        atomic_fetch_add(&outstanding, 1);
    return block;
}

void *__wrap_malloc(size_t size)
{
    return allowed() ? counted(__real_malloc(size)) : NULL;
}

void *__wrap_calloc(size_t count, size_t size)
{
    return allowed() ? counted(__real_calloc(count, size)) : NULL;
}

void *__wrap_realloc(void *block, size_t size)
{
    void *moved;

    if (!allowed())
        return NULL;
    moved = __real_realloc(block, size);
    return block ? moved : counted(moved);
}

void *__wrap_aligned_alloc(size_t alignment, size_t size)
{
    return allowed() ? counted(__real_aligned_alloc(alignment, size)) : NULL;
}

char *__wrap_strdup(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = __wrap_malloc(size);

    if (copy)
        memcpy(copy, text, size);
    return copy;
}

void __wrap_free(void *block)
{
    if (block)
        atomic_fetch_sub(&outstanding, 1);
    __real_free(block);
}
