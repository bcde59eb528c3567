// SPDX-License-Identifier: MIT
/*
 * test_vectors.h - whole frames and FPDUs as hexadecimal text, CRC included, and the few helpers
 * that the tests of this room share. Included by *_test.c only.
 */
#ifndef SOFTNDK_IWARP_TEST_VECTORS_H
#define SOFTNDK_IWARP_TEST_VECTORS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- startup frames ------------------------------------------------------------------------ */

#define V_KEY_REQUEST   "4d 50 41 20 49 44 20 52 65 71 20 46 72 61 6d 65 "
#define V_KEY_REPLY     "4d 50 41 20 49 44 20 52 65 70 20 46 72 61 6d 65 "
#define V_REQUEST_1     V_KEY_REQUEST "40 01 00 05 68 65 6c 6c 6f"
#define V_REQUEST_2     V_KEY_REQUEST "50 02 00 04 80 10 c0 10"
#define V_REPLY_READ    V_KEY_REPLY "50 02 00 04 80 10 40 10"
#define V_REQUEST_SIW   V_KEY_REQUEST "10 02 00 04 00 01 00 01"
#define V_REPLY_SIW     V_KEY_REPLY "50 02 00 04 00 01 00 01"
#define V_REPLY_REFUSED V_KEY_REPLY "70 02 00 04 00 04 00 20"

/* ---- FPDUs --------------------------------------------------------------------------------- */

#define V_SEND                                                                                     \
    "00 22 41 43 00 00 00 00 00 00 00 00 00 00 00 01 00 00 00 00 00 00 7f 00 12 34 50 00 00 00 "   \
    "a1 01 00 00 00 40 dd 3d ce df"
#define V_WRITE                                                                                    \
    "00 13 c1 40 00 00 12 34 00 00 00 00 10 00 00 10 68 65 6c 6c 6f 00 00 00 7f cc 29 5b"
#define V_READ_REQUEST                                                                             \
    "00 2e 41 41 00 00 00 00 00 00 00 01 00 00 00 01 00 00 00 00 00 00 22 00 00 00 7f 00 aa 00 "   \
    "00 00 00 00 00 40 00 00 a1 01 00 00 7f 00 12 34 50 00 9a b4 d1 11"
#define V_READ_RESPONSE                                                                            \
    "00 16 c1 42 00 00 22 00 00 00 7f 00 aa 00 00 00 00 01 02 03 04 05 06 07 de be 0f 6b"
#define V_SEND_SE_INVALIDATE                                                                       \
    "00 12 41 46 00 00 a1 01 00 00 00 00 00 00 00 02 00 00 00 00 bd a8 5b f3"
#define V_SEND_INVALIDATE                                                                          \
    "00 16 41 44 00 00 a1 01 00 00 00 00 00 00 00 03 00 00 00 00 01 02 03 04 e4 f1 56 f2"

#define V_RTR_WRITE "00 0e c1 40 00 00 00 01 00 00 00 00 00 00 00 00 eb d3 4c 5f"
#define V_RTR_READ                                                                                 \
    "00 2e 41 41 00 00 00 00 00 00 00 01 00 00 00 01 00 00 00 00 00 00 00 00 00 00 00 00 00 00 "   \
    "00 00 00 00 00 00 00 00 00 01 00 00 00 00 00 00 00 00 ba 10 e3 c9"
#define V_RTR_RESPONSE "00 0e c1 42 00 00 00 00 00 00 00 00 00 00 00 00 69 75 d6 ca"
#define V_RTR_SEND     "00 12 41 43 00 00 00 00 00 00 00 00 00 00 00 01 00 00 00 00 58 7b e8 c4"
#define V_RTR_EMPTY    "00 00 00 00 c7 4b 67 48"

#define V_TERM_HEADER(length) "00 " length " 41 47 00 00 00 00 00 00 00 02 00 00 00 01 00 00 00 00 "
#define V_TERM_STAG                                                                                \
    V_TERM_HEADER("26")                                                                            \
    "11 00 c0 00 00 2e c1 40 de ad be 00 00 00 00 00 00 00 10 00 b0 3d 76 ca"
#define V_TERM_READ_BOUNDS                                                                         \
    V_TERM_HEADER("46")                                                                            \
    "01 01 e0 00 00 2e 41 41 00 00 00 00 00 00 00 01 00 00 00 05 00 00 00 00 00 00 22 00 00 00 "   \
    "7f 00 aa 00 00 00 00 00 10 00 00 00 a1 01 00 00 7f 00 12 34 50 00 f1 c9 08 02"
#define V_TERM_NO_BUFFER                                                                           \
    V_TERM_HEADER("2a")                                                                            \
    "12 02 c0 00 00 22 41 43 00 00 00 00 00 00 00 00 00 00 00 09 00 00 00 00 5f ef 84 2d"
#define V_TERM_IRD     V_TERM_HEADER("16") "20 06 00 00 65 40 fb 1b"
#define V_TERM_CRC     V_TERM_HEADER("16") "20 02 00 00 7f e4 25 85"
#define V_TERM_OPCODE  V_TERM_HEADER("16") "02 06 00 00 6f 77 b9 73"
#define V_TERM_SIW_CRC V_TERM_HEADER("16") "02 02 00 00 75 d3 67 ed"
#define V_TERM_SIW_STAG                                                                            \
    V_TERM_HEADER("26")                                                                            \
    "11 00 03 00 00 20 c1 40 de ad be 00 00 00 00 00 00 00 10 00 a5 74 34 c4"

#define V_IMMEDIATE                                                                                \
    "00 1a 41 48 00 00 00 00 00 00 00 00 00 00 00 01 00 00 00 00 01 02 03 04 05 06 07 08 06 c2 "   \
    "28 05"
#define V_FETCH_ADD                                                                                \
    "00 46 41 4a 00 00 00 00 00 00 00 01 00 00 00 01 00 00 00 00 00 00 00 00 00 00 00 07 00 00 "   \
    "a1 01 00 00 7f 00 12 34 50 00 00 00 00 00 00 00 00 01 00 00 00 00 00 00 00 00 00 00 00 00 "   \
    "00 00 00 00 ff ff ff ff ff ff ff ff dd 91 cd 24"
#define V_CMP_SWAP                                                                                 \
    "00 46 41 4a 00 00 00 00 00 00 00 01 00 00 00 02 00 00 00 00 00 00 00 02 00 00 00 08 00 00 "   \
    "a1 01 00 00 7f 00 12 34 50 00 00 00 00 00 00 00 00 05 ff ff ff ff ff ff ff ff 00 00 00 00 "   \
    "00 00 00 04 ff ff ff ff ff ff ff ff 6b 7d dc 0d"
#define V_ATOMIC_RESPONSE                                                                          \
    "00 1e 41 4b 00 00 00 00 00 00 00 03 00 00 00 01 00 00 00 00 00 00 00 07 00 00 00 00 00 00 "   \
    "00 29 b9 eb af e8"

/* ---- markers: only as CRC input ------------------------------------------------------------ */

#define V_MARKER_FIRST                                                                             \
    "00 00 00 00 00 2a 41 43 00 00 00 00 00 00 00 00 00 00 00 01 00 00 00 00 00 00 00 00 00 00 "   \
    "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 52 23 99 83"
#define V_MARKER_INSIDE                                                                            \
    "00 2a 41 43 00 00 00 00 00 00 00 00 00 00 00 02 00 00 00 00 00 00 00 14 00 00 00 00 00 00 "   \
    "00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 84 92 58 98"

/* ---- helpers ------------------------------------------------------------------------------- */

/* The octets of hexadecimal text, in memory of exactly that size: a sanitizer sees any overrun. */
static inline uint8_t *octets_of(const char *text, size_t *len)
{
    size_t count = 0;
    uint8_t *octets;

    for (const char *p = text; *p != '\0'; p++) {
        count += *p != ' ';
    }
    assert_int_equal(count % 2, 0);
    *len = count / 2;
    octets = malloc(*len > 0 ? *len : 1);
    assert_non_null(octets);
    for (size_t i = 0; i < *len; i++) {
        char *end;

        octets[i] = (uint8_t)strtoul(text, &end, 16);
        assert_int_equal(end - text == 2 || *text == ' ', 1);
        text = end;
    }
    return octets;
}

/* A copy in memory of exactly `len` octets. */
static inline uint8_t *exact_copy(const uint8_t *octets, size_t len)
{
    uint8_t *copy = malloc(len > 0 ? len : 1);

    assert_non_null(copy);
    if (len > 0) {
        memcpy(copy, octets, len);
    }
    return copy;
}

/* A small generator, so that every run tests the same "random" input. */
static inline uint32_t test_random(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

/* Fails with the name of the case in a table. */
#define check_case(condition, name)                                                                \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fail_msg("%s: %s", (name), #condition);                                                \
        }                                                                                          \
    } while (0)

#endif
