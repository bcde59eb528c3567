// SPDX-License-Identifier: MIT
/*
 * The allocation-failure sweep: a scenario is run again and again; in run n the nth allocation that
 * its call reaches, on whatever thread, gives nothing. Each time the call must end as documented
 * (success, STATUS_INSUFFICIENT_RESOURCES, or what the scenario allows when the memory was missing
 * at the peer), the same call must succeed on the same objects when memory is there again, and when
 * all is closed not one block may be left. The sweep of a scenario is over with the first run that
 * no longer reaches its allocation, or after `most` of them.
 */
#ifndef SOFTNDK_TESTS_SWEEP_H
#define SOFTNDK_TESTS_SWEEP_H

#include "heap.h"
#include "regions.h"

struct world {
    struct bed bed;
    struct end end;
    struct listening listening;
    struct queue queue;
    struct memory memory;
    struct region region;
    NDK_OBJECT_HEADER *object; /* what the call made */
    struct lam lam;
    NDK_SRQ *srq;
    ULONG rounds;
    bool plain; /* calls of NDKPI 1.1 where later ones exist */
};

struct scenario {
    const char *name;
    void (*setup)(struct world *w);
    NTSTATUS (*act)(struct world *w);
    void (*undo)(struct world *w); /* after an act that succeeded; may be NULL */
    void (*teardown)(struct world *w);
    bool once;          /* a failure uses the objects up: the act is not repeated */
    unsigned most;      /* allocations to go through when the number depends on timing; 0: all */
    NTSTATUS others[4]; /* further outcomes that are right; 0 ends */
};

/* Sweeps one scenario; fails the test with the scenario's name and the run. */
void sweep(const struct scenario *scenario);

#endif
