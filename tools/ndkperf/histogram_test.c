// SPDX-License-Identifier: MIT
/* histogram_test.c - what is read from a histogram, against the sorted samples themselves. */
#include "histogram.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define SAMPLES 20000

static uint64_t seed;

static uint64_t next_random(void)
{
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return seed >> 11;
}

/* Kinds of distributions; each returns a sample. */
static uint64_t flat(void)
{
    return next_random() % 100000;
}

static uint64_t few(void)
{
    return 40 + next_random() % 5;
}

/* Over many powers of two, as times with outliers are. */
static uint64_t wide(void)
{
    return next_random() >> (11 + next_random() % 50);
}

static uint64_t two_humps(void)
{
    return next_random() % 10 ? 3000 + next_random() % 200 : 900000 + next_random() % 90000;
}

static uint64_t (*const kinds[])(void) = {flat, few, wide, two_humps};

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/* Not below the sample, and above it by less than a part of it. */
static void compare(const struct histogram *h, const uint64_t *sorted, size_t count,
                    double fraction)
{
    size_t rank = (size_t)ceil(fraction * (double)count);
    uint64_t sample = sorted[rank ? rank - 1 : 0], read = histogram_percentile(h, fraction);

    assert_true(read >= sample);
    assert_true(read - sample <= sample / HISTOGRAM_PARTS);
}

static void check(const struct histogram *h, uint64_t *samples, size_t count)
{
    static const double fractions[] = {0, 0.001, 0.01, 0.25, 0.5, 0.9, 0.99, 0.999, 1};
    double sum = 0, squares = 0, mean;

    qsort(samples, count, sizeof(samples[0]), by_value);
    for (size_t i = 0; i < sizeof(fractions) / sizeof(fractions[0]); i++)
        compare(h, samples, count, fractions[i]);
    for (size_t i = 0; i < count; i++)
        sum += (double)samples[i];
    mean = sum / (double)count;
    for (size_t i = 0; i < count; i++)
        squares += ((double)samples[i] - mean) * ((double)samples[i] - mean);
    assert_int_equal(h->count, count);
    assert_int_equal(h->least, samples[0]);
    assert_int_equal(h->most, samples[count - 1]);
    assert_true(fabs(histogram_average(h) - mean) <= mean * 1e-9);
    assert_true(fabs(histogram_deviation(h) - sqrt(squares / (double)count)) <= mean * 1e-6 + 1e-6);
}

static void percentiles_of_sorted_samples(void **state)
{
    static struct histogram h;
    static uint64_t samples[SAMPLES];

    (void)state;
    for (size_t kind = 0; kind < sizeof(kinds) / sizeof(kinds[0]); kind++) {
        seed = kind + 1;
        histogram_clear(&h);
        for (size_t i = 0; i < SAMPLES; i++)
            histogram_add(&h, samples[i] = kinds[kind]());
        check(&h, samples, SAMPLES);
    }
}

/* Two threads' histograms are one. */
static void merged(void **state)
{
    static struct histogram one, two, none;
    static uint64_t samples[SAMPLES];

    (void)state;
    for (size_t kind = 0; kind < sizeof(kinds) / sizeof(kinds[0]); kind++) {
        seed = kind + 7;
        histogram_clear(&one);
        histogram_clear(&two);
        histogram_clear(&none);
        for (size_t i = 0; i < SAMPLES; i++) {
            /* The largest are in the second one. */
            samples[i] = kinds[kind]() * (i % 3 ? 1 : 2);
            histogram_add(i % 3 ? &one : &two, samples[i]);
        }
        histogram_merge(&one, &none);
        histogram_merge(&none, &two);
        histogram_merge(&one, &none);
        check(&one, samples, SAMPLES);
    }
}

/* Each value is inside its bucket, and buckets follow each other without gap or overlap. */
static void buckets(void **state)
{
    (void)state;
    assert_int_equal(histogram_low(0), 0);
    for (unsigned i = 0; i + 1 < HISTOGRAM_BUCKETS; i++) {
        assert_true(histogram_low(i) <= histogram_high(i));
        assert_int_equal(histogram_high(i) + 1, histogram_low(i + 1));
        assert_int_equal(histogram_bucket(histogram_low(i)), i);
        assert_int_equal(histogram_bucket(histogram_high(i)), i);
    }
    assert_int_equal(histogram_bucket(UINT64_MAX), HISTOGRAM_BUCKETS - 1);
    assert_int_equal(histogram_high(HISTOGRAM_BUCKETS - 1), UINT64_MAX);
}

static void empty(void **state)
{
    static struct histogram h;

    (void)state;
    histogram_clear(&h);
    assert_int_equal(histogram_percentile(&h, 0.5), 0);
    assert_true(histogram_average(&h) == 0 && histogram_deviation(&h) == 0);
    histogram_add(&h, 12345);
    assert_int_equal(histogram_percentile(&h, 0), 12345);
    assert_int_equal(histogram_percentile(&h, 1), 12345);
    assert_true(histogram_average(&h) == 12345 && histogram_deviation(&h) == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(percentiles_of_sorted_samples),
        cmocka_unit_test(merged),
        cmocka_unit_test(buckets),
        cmocka_unit_test(empty),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
