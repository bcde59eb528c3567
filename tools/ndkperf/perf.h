// SPDX-License-Identifier: MIT
/*
 * ndkperf: how its files hang together.
 *
 *   main.c       roles                    server.c     listeners; one client after another
 *   args.c       command line, usage.c    client.c     a run for each size
 *   plan.c       what a run is            report.c     rows and JSON; plot.c a drawing
 *   control.c    the two ends' talk       run.h        a run at one end, and its files
 *   histogram.c  times
 */
#ifndef SOFTNDK_NDKPERF_PERF_H
#define SOFTNDK_NDKPERF_PERF_H

#include "args.h"
#include "control.h"
#include "plot.h"
#include "run.h"

/* What one run came to. Times in ns, rates a second. */
struct outcome {
    struct plan plan;
    uint64_t iterations; /* that count */
    double rate, peak;   /* iterations a second, both ends' where both post */
    const struct histogram *times;
};

/* report.c: the heading, once, and a row for each run. */
void report_heading(const struct perf_options *options, const char *peer);
void report_row(const struct perf_options *options, const struct outcome *outcome);
/* Before anything is measured: can the drawing be written? False: told. */
bool report_can_plot(const char *path);
/* --plot: of all rows so far; `outcome` is the last one's. False: told. */
bool report_plot(const struct perf_options *options, struct plot *plot,
                 const struct outcome *outcome);

/* Exit statuses. A server in a thread of this process (--self) tells its port there, and learns
 * that its client is over, which need not have come. */
struct perf_door {
    KEVENT open; /* the port is known, or the server has failed */
    uint16_t port;
    KEVENT wake; /* a client came, its client is over, or the program is to stop */
    atomic_bool over;
};
int perf_server(const struct perf_options *options, struct perf_door *door);
int perf_client(const struct perf_options *options);

#endif
