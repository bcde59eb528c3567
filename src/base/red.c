/* SPDX-License-Identifier: MIT */
/*
 * red.c - reads SOFTNDK_RED_BREACH for RED(). Empty unless built with SOFTNDK_RED=1.
 *
 * Invariant: a place of use gives one answer for the life of the process. Two threads that meet at
 * a place for the first time may both read the environment; they write the same answer.
 */
#include "base/red.h"

#if defined(SOFTNDK_RED) && SOFTNDK_RED

#include <stdlib.h>
#include <string.h>

enum { RED_UNASKED = 0, RED_NO = 1, RED_YES = 2 };

int red_breach_named(const char *name)
{
    const char *list = getenv("SOFTNDK_RED_BREACH");
    size_t name_length = strlen(name);

    while (list != NULL && *list != '\0') {
        size_t length = strcspn(list, ",");

        if (length == name_length && memcmp(list, name, length) == 0) {
            return 1;
        }
        list += length;
        list += *list == ',';
    }
    return 0;
}

int red_breach_cached(const char *name, atomic_int *cache)
{
    int known = atomic_load_explicit(cache, memory_order_relaxed);

    if (known == RED_UNASKED) {
        known = red_breach_named(name) ? RED_YES : RED_NO;
        atomic_store_explicit(cache, known, memory_order_relaxed);
    }
    return known == RED_YES;
}

#else

/* ISO C wants at least one declaration in a translation unit. */
typedef int red_unused_t;

#endif
