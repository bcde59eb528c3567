// SPDX-License-Identifier: MIT
/*
 * The process' heap under the test's control: the program is linked with --wrap for the functions
 * that allocate (CMakeLists.txt), so every allocation of the library passes here. One of them can
 * be made to fail, whichever thread makes it, and what is not freed is counted.
 *
 * Threads: all functions may be called from any thread; the counters are atomic.
 */
#ifndef SOFTNDK_TESTS_HEAP_H
#define SOFTNDK_TESTS_HEAP_H

#include <stdbool.h>

/* Allocation n from now on (1 is the next) gives nothing; 0: none fails, they are only counted. */
void heap_arm(unsigned n);
/* No allocation fails any more. Returns how many were made since heap_arm(). */
unsigned heap_disarm(void);
/* Did the allocation that heap_arm() named fail? */
bool heap_fired(void);
/* Blocks that are allocated and not freed. */
long heap_outstanding(void);

#endif
