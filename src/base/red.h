/* SPDX-License-Identifier: MIT */
/*
 * red.h - named breaches: faults that a test must be able to notice.
 *
 * A breach is a deliberate bug behind `if (RED("room-what"))`. In an ordinary build RED() is the
 * constant 0 and the compiler drops the branch. In a red build (SOFTNDK_RED=1) it is true when the
 * environment variable SOFTNDK_RED_BREACH names it; the variable may hold several names separated
 * by commas. tests/red/run.py runs each test with its breaches and demands that it fails.
 *
 * The argument must be a string literal: run.py collects the names from the sources by reading
 * them. Names are lower case words joined by - or _, the room first: "iwarp-crc-unchecked".
 *
 * The environment is read once for each place of use, on its first evaluation, and the answer kept
 * for the life of the process: setting the variable later, from inside the process, has no effect
 * on a place that was already evaluated. Safe from any thread.
 */
#ifndef SOFTNDK_BASE_RED_H
#define SOFTNDK_BASE_RED_H

#if defined(SOFTNDK_RED) && SOFTNDK_RED

#include <stdatomic.h>

/* Non-zero when SOFTNDK_RED_BREACH names `name`. Not cached; use RED(). */
int red_breach_named(const char *name);

/* Answers from *cache (0 not asked yet, 1 no, 2 yes), asking the environment the first time. */
int red_breach_cached(const char *name, atomic_int *cache);

#define RED(name)                                                                                  \
    (__extension__({                                                                               \
        static atomic_int red_cache_;                                                              \
        red_breach_cached("" name, &red_cache_);                                                   \
    }))

#else

/* The array keeps the argument checked as a string literal, at no cost. */
#define RED(name) (0 && sizeof("" name))

#endif

#endif
