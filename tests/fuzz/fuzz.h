// SPDX-License-Identifier: MIT
/*
 * What the fuzz targets share. A target is one file fuzz_NAME.c with LLVMFuzzerTestOneInput(): it
 * takes any octets and aborts through need() when something is not as it must be. `make fuzz`
 * builds the targets with clang's libFuzzer and sanitizers; the ordinary build links them with
 * replay.c, which runs the corpus, tests/fuzz/corpus/NAME, once.
 */
#ifndef SOFTNDK_TESTS_FUZZ_H
#define SOFTNDK_TESTS_FUZZ_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define need(condition)                                                                            \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not so: %s\n", __FILE__, __LINE__, #condition);                \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

/* The input, taken from its front; zeros when it is used up. */
struct input {
    const uint8_t *at;
    size_t left;
};

static inline uint32_t take(struct input *in, unsigned octets)
{
    uint32_t value = 0;

    while (octets--) {
        value <<= 8;
        if (in->left) {
            value |= *in->at++;
            in->left--;
        }
    }
    return value;
}

static inline uint64_t take64(struct input *in)
{
    uint64_t high = take(in, 4);

    return high << 32 | take(in, 4);
}

/* At most n octets of it; *length says how many. */
static inline const uint8_t *take_octets(struct input *in, size_t n, size_t *length)
{
    const uint8_t *octets = in->at;

    *length = n < in->left ? n : in->left;
    in->at += *length;
    in->left -= *length;
    return octets;
}

#endif
