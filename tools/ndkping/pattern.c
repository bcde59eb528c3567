// SPDX-License-Identifier: MIT
/*
 * See pattern.h. Pure.
 */
#include "pattern.h"

#include <stdio.h>
#include <string.h>

#define FIRST 65u
#define LAST  122u

/* "rdma-ping-N: " with N as rping's int; returns its length. */
static size_t prefix(char text[32], uint64_t n)
{
    return (size_t)snprintf(text, 32, "rdma-ping-%u: ", (unsigned)(n & 0x7fffffff));
}

void pattern_text(uint8_t *out, size_t size, uint64_t n)
{
    unsigned c = FIRST + (unsigned)(n % (LAST - FIRST + 1));
    char text[32];
    size_t used = prefix(text, n);

    memcpy(out, text, used);
    for (size_t i = used; i < size; i++) {
        out[i] = (uint8_t)c;
        c = c == LAST ? FIRST : c + 1;
    }
    out[size - 1] = 0;
}

bool pattern_text_good(const uint8_t *data, size_t size, uint64_t n, size_t *at)
{
    char text[32];
    size_t used = prefix(text, n), i;
    unsigned c;

    *at = 0;
    if (size == 0)
        return false;
    for (i = 0; i < used && i + 1 < size; i++) {
        if (data[i] != (uint8_t)text[i]) {
            *at = i;
            return false;
        }
    }
    c = data[i];
    for (; i + 1 < size; i++) {
        if (data[i] != c || c < FIRST || c > LAST) {
            *at = i;
            return false;
        }
        c = c == LAST ? FIRST : c + 1;
    }
    *at = size - 1;
    return data[size - 1] == 0;
}

uint8_t pattern_octet(size_t at, uint64_t n)
{
    return (uint8_t)(at * 7 + (at >> 8) * 13 + (at >> 16) * 29 + n);
}

void pattern_octets(uint8_t *out, size_t size, uint64_t n)
{
    for (size_t i = 0; i < size; i++)
        out[i] = pattern_octet(i, n);
}

bool pattern_octets_good(const uint8_t *data, size_t size, uint64_t n, size_t *at)
{
    for (size_t i = 0; i < size; i++) {
        if (data[i] != pattern_octet(i, n)) {
            *at = i;
            return false;
        }
    }
    return true;
}
