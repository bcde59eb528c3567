// SPDX-License-Identifier: MIT
/*
 * A log-linear histogram of times in nanoseconds: every power of two is cut into HISTOGRAM_PARTS
 * equal buckets, so that a percentile read from it is at most one part in HISTOGRAM_PARTS above the
 * sample it stands for. Least, most, average and deviation are exact. Adding takes no memory and a
 * few instructions.
 *
 * One thread at a time.
 */
#ifndef SOFTNDK_NDKPERF_HISTOGRAM_H
#define SOFTNDK_NDKPERF_HISTOGRAM_H

#include <stdint.h>

#define HISTOGRAM_BITS    7
#define HISTOGRAM_PARTS   (1u << HISTOGRAM_BITS)
#define HISTOGRAM_BUCKETS ((64 - HISTOGRAM_BITS + 1) * HISTOGRAM_PARTS)

struct histogram {
    uint64_t count, least, most;
    double sum, squares; /* of the distances to `first`, so that squares stay small */
    double first;
    uint64_t buckets[HISTOGRAM_BUCKETS];
};

void histogram_clear(struct histogram *h);
void histogram_add(struct histogram *h, uint64_t value);
void histogram_merge(struct histogram *into, const struct histogram *from);

/* All 0 while the histogram is empty. */
double histogram_average(const struct histogram *h);
double histogram_deviation(const struct histogram *h);
/*
 * The least value v such that at least `fraction` (0..1) of the samples are <= v: the upper end of
 * the bucket of that sample, but not above the largest sample.
 */
uint64_t histogram_percentile(const struct histogram *h, double fraction);

/* The buckets, for drawing: values of `bucket` are low .. high, both included. */
unsigned histogram_bucket(uint64_t value);
uint64_t histogram_low(unsigned bucket);
uint64_t histogram_high(unsigned bucket);

#endif
