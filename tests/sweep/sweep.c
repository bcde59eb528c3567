// SPDX-License-Identifier: MIT
/* See sweep.h. */
#include "sweep.h"

#include <stdarg.h>
#include <setjmp.h>
#include <string.h>

#include <cmocka.h>

/* More allocations than any call has; a sweep that does not end is a fault of its scenario. */
#define RUNS_MAX 400u

static bool allowed(const struct scenario *s, NTSTATUS status)
{
    if (status == STATUS_SUCCESS || status == STATUS_INSUFFICIENT_RESOURCES)
        return true;
    for (unsigned i = 0; i < sizeof s->others / sizeof s->others[0] && s->others[i]; i++)
        if (s->others[i] == status)
            return true;
    return false;
}

/* False: the allocation was not reached, the sweep is over. *left: blocks that were not freed. */
static bool run(const struct scenario *s, unsigned n, long *left)
{
    struct world w;
    long before = heap_outstanding();
    NTSTATUS status;
    bool fired;

    memset(&w, 0, sizeof w);
    s->setup(&w);
    heap_arm(n);
    status = s->act(&w);
    heap_disarm();
    fired = heap_fired();
    if (!fired && status != STATUS_SUCCESS)
        test_fail("%s: run %u, no allocation failed: %s", s->name, n, softndk_status_name(status));
    if (!allowed(s, status))
        test_fail("%s: allocation %u failed: %s", s->name, n, softndk_status_name(status));
    if (status != STATUS_SUCCESS && !s->once) {
        status = s->act(&w);
        if (status != STATUS_SUCCESS)
            test_fail("%s: again after allocation %u had failed: %s", s->name, n,
                      softndk_status_name(status));
    }
    if (status == STATUS_SUCCESS && s->undo)
        s->undo(&w);
    s->teardown(&w);
    *left = heap_outstanding() - before;
    return fired;
}

void sweep(const struct scenario *s)
{
    unsigned n = 1;
    long left;

    while (run(s, n, &left)) {
        /* A table of the process that grew stays as it is in a second run; a leak leaks again. */
        if (left)
            run(s, n, &left);
        if (left)
            test_fail("%s: allocation %u failed: %ld blocks are left", s->name, n, left);
        if (++n == s->most + 1 && s->most)
            break;
        if (n > RUNS_MAX)
            test_fail("%s: still reaching allocations after %u runs", s->name, RUNS_MAX);
    }
    print_message("%-40s %3u allocations\n", s->name, n - 1);
}
