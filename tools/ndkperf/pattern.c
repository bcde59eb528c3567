// SPDX-License-Identifier: MIT
/* What messages hold: words that depend on their place and on the message's number. */
#include "run.h"

#include <string.h>

#include "common/tool_red.h"

static uint64_t word_of(uint64_t n, size_t at)
{
    return (n + 1) * UINT64_C(0x9E3779B97F4A7C15) + at * UINT64_C(0x0101010101010101);
}

void pattern_fill(UCHAR *octets, size_t size, uint64_t n)
{
    size_t at = 0;

    for (; at + 8 <= size; at += 8) {
        uint64_t word = word_of(n, at);

        memcpy(octets + at, &word, 8);
    }
    for (; at < size; at++)
        octets[at] = (UCHAR)(word_of(n, at) >> 56);
}

/*
 * A write of the peer tells its target nothing: lat looks at memory until it changes, and then
 * here. That a write's last octet is placed last orders the two; a thread sanitizer cannot know it.
 */
__attribute__((no_sanitize("thread"))) bool pattern_good(const UCHAR *octets, size_t size,
                                                         uint64_t n)
{
    size_t at = 0;

    for (; at + 8 <= size; at += 8) {
        uint64_t word;

        __builtin_memcpy(&word, octets + at, 8); /* a load, no call that a sanitizer sees */
        if (word != word_of(n, at))
            return false;
    }
    for (; at < size && !RED("ndkperf-pattern-tail"); at++)
        if (octets[at] != (UCHAR)(word_of(n, at) >> 56))
            return false;
    return true;
}
