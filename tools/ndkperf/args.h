// SPDX-License-Identifier: MIT
/*
 * The command line of ndkperf.
 */
#ifndef SOFTNDK_NDKPERF_ARGS_H
#define SOFTNDK_NDKPERF_ARGS_H

#include "plan.h"

#define PERF_PORT      7175
#define PERF_SIZES_MAX 32
#define PERF_CPUS_MAX  1024

enum perf_role { PERF_NO_ROLE, PERF_SERVER, PERF_CLIENT, PERF_SELF };

struct perf_options {
    enum perf_role role;
    const char *address; /* NULL: not given */
    const char *local;   /* client: where to connect from; NULL: as the route says */
    uint16_t port;
    bool once; /* server: ends after its first client */
    bool json;
    const char *plot;                  /* the SVG's file; NULL: none */
    uint64_t cpus[PERF_CPUS_MAX / 64]; /* a bit a processor */
    bool pinned;

    struct plan plan; /* but for size, iterations and warm-up, which sizes and the following say */
    uint32_t sizes[PERF_SIZES_MAX];
    unsigned size_count;
    uint64_t iterations; /* 0: not given */
    bool warmup_given;

    /* As given on the command line; for headings and JSON the client puts in what adapters have. */
    const char *progress, *completion, *crc;
    uint32_t fpdu;
};

/* usage.c: what --help prints. */
extern const char args_usage[];

/* -1: the options are good; otherwise the exit status, with the reason told. */
int args_read(int argc, char **argv, struct perf_options *out);

/* The plan for the nth size. */
struct plan args_plan(const struct perf_options *options, unsigned n);

/* "64", "4K", "1M"; false: not such a text, or 0, or too large. */
bool args_size(const char *text, uint32_t *out);

#endif
