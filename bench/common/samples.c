// SPDX-License-Identifier: MIT
/* samples.c - times of single iterations, sorted in the end; see bench.h. */
#include <stdlib.h>

#include "common/bench.h"

#define ROOM (1u << 20)

void bench_samples_open(struct bench_samples *samples)
{
    *samples = (struct bench_samples){.ns = bench_alloc(ROOM * sizeof *samples->ns), .max = ROOM};
}

void bench_samples_clear(struct bench_samples *samples)
{
    samples->count = 0;
    samples->sum_ns = 0;
    samples->seen = 0;
}

static int by_time(const void *a, const void *b)
{
    uint32_t left = *(const uint32_t *)a, right = *(const uint32_t *)b;

    return (left > right) - (left < right);
}

void bench_samples_finish(struct bench_samples *samples, double divide, struct bench_result *result)
{
    size_t n = samples->count;
    double unit = 1e-3 / divide;

    if (n == 0)
        bench_die("nothing measured");
    qsort(samples->ns, n, sizeof *samples->ns, by_time);
    result->has_latency = true;
    result->min_us = samples->ns[0] * unit;
    result->typical_us = samples->ns[n / 2] * unit;
    result->avg_us = samples->sum_ns / (double)samples->seen * unit;
    result->p99_us = samples->ns[(n - 1) * 99 / 100] * unit;
    result->max_us = samples->ns[n - 1] * unit;
}
