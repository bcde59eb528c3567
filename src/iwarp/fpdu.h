// SPDX-License-Identifier: MIT
/*
 * fpdu.h - MPA framing: ULPDU_Length, ULPDU, pad, CRC-32C.
 *
 * Transmit: an encoder of ddp.h or rdmap.h writes the 2-octet length together with the header
 * (16 or 20 octets); the payload follows from wherever it lies; iwarp_fpdu_put_trailer() writes
 * pad and CRC (4..7 octets). Receive: iwarp_fpdu_parse() looks at the octets at hand and copies
 * nothing. No markers: neither side of this implementation asks for them or agrees to send them.
 *
 * Pure; called by the connection's transmit and receive paths.
 */
#ifndef SOFTNDK_IWARP_FPDU_H
#define SOFTNDK_IWARP_FPDU_H

#include "iwarp/wire.h"

/* A piece of payload. */
struct iwarp_span {
    const void *base;
    size_t len; /* octets */
};

/* One FPDU found in a buffer. */
struct iwarp_fpdu {
    const uint8_t *ulpdu; /* points into the buffer given; valid with IWARP_OK only */
    uint32_t ulpdu_len;   /* octets, 0..65535 */
    uint32_t size;        /* octets of the whole FPDU; with IWARP_MORE 0 when not yet known */
    iwarp_error error;    /* with IWARP_TERMINATE: 2/0/02 */
};

/* Pad octets behind a ULPDU of this length: 0..3. */
static inline uint32_t iwarp_fpdu_pad(uint32_t ulpdu_len)
{
    return (0u - (IWARP_FPDU_LENGTH_LEN + ulpdu_len)) & 3u;
}

/* Octets on the wire of an FPDU with a ULPDU of this length; a multiple of 4, 8..65544. */
static inline uint32_t iwarp_fpdu_size(uint32_t ulpdu_len)
{
    return IWARP_FPDU_LENGTH_LEN + ulpdu_len + iwarp_fpdu_pad(ulpdu_len) + IWARP_FPDU_CRC_LEN;
}

/*
 * The largest ULPDU to send, in octets, when TCP sends segments of at most `emss` octets: the FPDU
 * then fills one segment. Never below 128. An emss beyond what the 16-bit length can express gives
 * 65534, the largest ULPDU that needs no pad.
 */
uint32_t iwarp_fpdu_mulpdu(uint32_t emss);

/*
 * Writes pad and CRC of an FPDU of `ulpdu_len` octets to dst (room for IWARP_FPDU_TRAILER_MAX).
 * `crc_state` is the state after ULPDU_Length and ULPDU; with crc false it is not used and the CRC
 * field is zero. Returns the octets written, 4..7.
 */
size_t iwarp_fpdu_put_trailer_state(uint8_t *dst, uint32_t ulpdu_len, bool crc, uint32_t crc_state);

/*
 * The same, computing the CRC over the header (16 or 20 octets or more, ULPDU_Length included) and
 * the payload spans in order; empty spans are fine. The ULPDU length follows from the lengths
 * given; header_len must be at least 2 and the sum at most 2 + 65535.
 */
size_t iwarp_fpdu_put_trailer(uint8_t *dst, bool crc, const uint8_t *header, size_t header_len,
                              const struct iwarp_span *spans, size_t span_count);

/*
 * Looks for one whole FPDU at p, with `len` octets at hand.
 * IWARP_OK: out is filled; the next FPDU starts at p + out->size.
 * IWARP_MORE: fewer octets than the FPDU has; out->size says how many it has, if known.
 * IWARP_TERMINATE: `crc` is true and the CRC does not match; out->error is 2/0/02. Nothing more of
 * this direction may be used.
 * With `crc` false the CRC field is not looked at. Pad octets are not looked at.
 */
enum iwarp_verdict iwarp_fpdu_parse(const uint8_t *p, size_t len, bool crc, struct iwarp_fpdu *out);

#endif
