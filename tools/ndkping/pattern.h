// SPDX-License-Identifier: MIT
/*
 * What ndkping's buffers hold: rping's text, or octets that differ in every place and iteration.
 */
#ifndef SOFTNDK_NDKPING_PATTERN_H
#define SOFTNDK_NDKPING_PATTERN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * rping's pattern for iteration n, counted from 0: "rdma-ping-N: ", then consecutive characters of
 * 65..122 that start one further with each iteration, a zero at the end. size is at least 23
 * octets.
 */
void pattern_text(uint8_t *out, size_t size, uint64_t n);
/* Does it hold text of that form? The start character is taken from the text itself. Otherwise *at
 * is the first wrong octet. */
bool pattern_text_good(const uint8_t *data, size_t size, uint64_t n, size_t *at);

/* Every octet of [0, size) depends on its place and on n; no octet is the same for n and n + 1. */
void pattern_octets(uint8_t *out, size_t size, uint64_t n);
bool pattern_octets_good(const uint8_t *data, size_t size, uint64_t n, size_t *at);
/* The octet that should stand at a place. */
uint8_t pattern_octet(size_t at, uint64_t n);

#endif
