// SPDX-License-Identifier: MIT
/*
 * iptext.h - reading and writing addresses in plain characters, for ipstring.c, which has the
 * calls.
 */
#ifndef SOFTNDK_NT_IPTEXT_H
#define SOFTNDK_NT_IPTEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Each reads from *at on and moves it to where reading stopped; false: not readable. */
bool iptext_read_v4(const char **at, bool strict, uint8_t out[4]);
bool iptext_read_v6(const char **at, uint8_t out[16]);
/* Decimal, or with a prefix octal or hexadecimal: 1 to 65535. */
bool iptext_read_port(const char **at, uint16_t *port);
/* Decimal, 32 bits. */
bool iptext_read_scope(const char **at, uint32_t *scope);

/* Without port or scope; terminated; the length. */
enum { IPTEXT_V4_MAX = 16, IPTEXT_V6_MAX = 46 };
size_t iptext_write_v4(const uint8_t address[4], char out[IPTEXT_V4_MAX]);
size_t iptext_write_v6(const uint8_t address[16], char out[IPTEXT_V6_MAX]);

#endif /* SOFTNDK_NT_IPTEXT_H */
