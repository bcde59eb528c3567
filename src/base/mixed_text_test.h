// SPDX-License-Identifier: MIT
/*
 * Texts for the tests of readers: pieces of a good text and odd octets, mixed by a generator of its
 * own, so that each run sees the same ones. One file of a program includes it. No lock: one thread.
 */
#ifndef SOFTNDK_BASE_MIXED_TEXT_TEST_H
#define SOFTNDK_BASE_MIXED_TEXT_TEST_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

static uint32_t mixed_state = 12345;

/* 0 to below - 1. */
static uint32_t mixed_draw(uint32_t below)
{
    mixed_state = mixed_state * 1664525u + 1013904223u;
    return (mixed_state >> 8) % below;
}

/* What to mix: a good text, single octets, and how long a piece is at most and the whole on average
 * (in pieces). */
struct mixture {
    const char *good, *octets;
    size_t good_length, octet_count;
    uint32_t piece, pieces;
};

/* Fills text[size]; the length. size is more than good_length. */
static size_t mixed_text(const struct mixture *m, char *text, size_t size)
{
    size_t length = 0;

    while (length < size - m->good_length - 1 && mixed_draw(m->pieces) != 0) {
        if (mixed_draw(2)) {
            size_t from = mixed_draw((uint32_t)m->good_length), n = mixed_draw(m->piece);

            if (n > m->good_length - from)
                n = m->good_length - from;
            memcpy(text + length, m->good + from, n);
            length += n;
        } else {
            text[length++] = m->octets[mixed_draw((uint32_t)m->octet_count)];
        }
    }
    return length;
}

#endif
