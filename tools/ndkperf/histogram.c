// SPDX-License-Identifier: MIT
/*
 * See histogram.h. Values below HISTOGRAM_PARTS have a bucket each. Above, a value whose highest
 * bit is bit e keeps that bit and the HISTOGRAM_BITS below it: what is cut off is its distance to
 * the bucket's lower end.
 */
#include "histogram.h"

#include <math.h>
#include <string.h>

#include "common/tool_red.h"

void histogram_clear(struct histogram *h)
{
    memset(h, 0, sizeof(*h));
}

unsigned histogram_bucket(uint64_t value)
{
    unsigned exponent, shift;

    if (value < HISTOGRAM_PARTS)
        return (unsigned)value;
    exponent = 63 - (unsigned)__builtin_clzll(value);
    shift = exponent - HISTOGRAM_BITS;
    if (RED("ndkperf-histogram-coarse"))
        return (shift + 1) * HISTOGRAM_PARTS;
    /* The highest bit adds HISTOGRAM_PARTS once more. */
    return shift * HISTOGRAM_PARTS + (unsigned)(value >> shift);
}

uint64_t histogram_low(unsigned bucket)
{
    unsigned shift;

    if (bucket < 2 * HISTOGRAM_PARTS)
        return bucket;
    shift = bucket / HISTOGRAM_PARTS - 1;
    return (uint64_t)(bucket % HISTOGRAM_PARTS + HISTOGRAM_PARTS) << shift;
}

uint64_t histogram_high(unsigned bucket)
{
    /* The last bucket's successor would be 2^64. */
    return bucket + 1 == HISTOGRAM_BUCKETS ? UINT64_MAX : histogram_low(bucket + 1) - 1;
}

void histogram_add(struct histogram *h, uint64_t value)
{
    double distance;

    if (h->count == 0) {
        h->first = (double)value;
        h->least = h->most = value;
    }
    distance = (double)value - h->first;
    h->count++;
    h->sum += distance;
    h->squares += distance * distance;
    if (value < h->least)
        h->least = value;
    if (value > h->most)
        h->most = value;
    h->buckets[histogram_bucket(value)]++;
}

void histogram_merge(struct histogram *into, const struct histogram *from)
{
    double shift;

    if (from->count == 0)
        return;
    if (into->count == 0) {
        *into = *from;
        return;
    }
    /* From distances to the other's first value to distances to ours. */
    shift = from->first - into->first;
    into->squares += from->squares + 2 * shift * from->sum + (double)from->count * shift * shift;
    into->sum += from->sum + (double)from->count * shift;
    into->count += from->count;
    if (from->least < into->least)
        into->least = from->least;
    if (from->most > into->most && !RED("ndkperf-histogram-merge"))
        into->most = from->most;
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++)
        into->buckets[i] += from->buckets[i];
}

double histogram_average(const struct histogram *h)
{
    return h->count ? h->first + h->sum / (double)h->count : 0;
}

double histogram_deviation(const struct histogram *h)
{
    double mean, variance;

    if (h->count == 0)
        return 0;
    mean = h->sum / (double)h->count;
    variance = h->squares / (double)h->count - mean * mean;
    return variance > 0 ? sqrt(variance) : 0;
}

uint64_t histogram_percentile(const struct histogram *h, double fraction)
{
    uint64_t rank = (uint64_t)ceil(fraction * (double)h->count), seen = 0;

    if (h->count == 0)
        return 0;
    if (rank == 0)
        rank = 1;
    if (RED("ndkperf-histogram-rank"))
        rank = rank > 1 ? rank / 2 : rank;
    for (unsigned i = 0; i < HISTOGRAM_BUCKETS; i++) {
        seen += h->buckets[i];
        if (seen >= rank)
            return histogram_high(i) < h->most ? histogram_high(i) : h->most;
    }
    return h->most;
}
