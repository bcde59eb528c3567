// SPDX-License-Identifier: MIT
/*
 * wire.h - every number that stands on an iWARP wire: MPA (RFC 5044, 6581), DDP (RFC 5041), RDMAP
 * (RFC 5040) and, to be recognised only, the extensions of RFC 7306.
 *
 * Formats are octet arrays with offsets and get/put helpers. Every field is big-endian except the
 * CRC of an FPDU, which is stored least significant octet first (iwarp_put_le32).
 *
 * This header also holds the two result types of the room. No function here does I/O, allocates,
 * locks or keeps state.
 */
#ifndef SOFTNDK_IWARP_WIRE_H
#define SOFTNDK_IWARP_WIRE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* ---- results ------------------------------------------------------------------------------- */

/* What a decoder or a negotiation step asks its caller to do. */
enum iwarp_verdict {
    IWARP_OK = 0,    /* done, the output is valid */
    IWARP_MORE,      /* not enough octets yet; nothing is wrong so far */
    IWARP_TERMINATE, /* protocol error: send a Terminate with the error given, half-close */
    IWARP_CLOSE,     /* close TCP without sending anything */
    IWARP_REFUSE,    /* startup only: responder sends its Reply with R=1; initiator was refused */
};

/*
 * An error as a Terminate names it: layer, type within the layer, code within the type. The low 16
 * bits are the first two octets of a Terminate body, in RFC order; bit 16 tells 0/0/00 from "none".
 */
typedef uint32_t iwarp_error;

#define IWARP_NO_ERROR 0u
#define IWARP_ERROR(layer, type, code)                                                             \
    (0x10000u | ((uint32_t)(layer) << 12) | ((uint32_t)(type) << 8) | (uint32_t)(code))

static inline unsigned iwarp_error_layer(iwarp_error error)
{
    return (error >> 12) & 0xfu;
}

static inline unsigned iwarp_error_type(iwarp_error error)
{
    return (error >> 8) & 0xfu;
}

static inline unsigned iwarp_error_code(iwarp_error error)
{
    return error & 0xffu;
}

/* Layer 0, RDMAP. Types: 0 local catastrophic, 1 remote protection, 2 remote operation. */
#define IWARP_ERR_RDMAP_LOCAL     IWARP_ERROR(0, 0, 0x00)
#define IWARP_ERR_PROT_STAG       IWARP_ERROR(0, 1, 0x00)
#define IWARP_ERR_PROT_BOUNDS     IWARP_ERROR(0, 1, 0x01)
#define IWARP_ERR_PROT_RIGHTS     IWARP_ERROR(0, 1, 0x02)
#define IWARP_ERR_PROT_STREAM     IWARP_ERROR(0, 1, 0x03)
#define IWARP_ERR_PROT_WRAP       IWARP_ERROR(0, 1, 0x04)
#define IWARP_ERR_PROT_INVALIDATE IWARP_ERROR(0, 1, 0x09)
#define IWARP_ERR_PROT_OTHER      IWARP_ERROR(0, 1, 0xff)
#define IWARP_ERR_OP_VERSION      IWARP_ERROR(0, 2, 0x05)
#define IWARP_ERR_OP_OPCODE       IWARP_ERROR(0, 2, 0x06)
#define IWARP_ERR_OP_STREAM       IWARP_ERROR(0, 2, 0x07)
#define IWARP_ERR_OP_ADAPTER      IWARP_ERROR(0, 2, 0x08)
#define IWARP_ERR_OP_INVALIDATE   IWARP_ERROR(0, 2, 0x09)
#define IWARP_ERR_OP_OTHER        IWARP_ERROR(0, 2, 0xff)

/* Layer 1, DDP. Types: 0 local catastrophic, 1 tagged buffer, 2 untagged buffer. */
#define IWARP_ERR_DDP_LOCAL       IWARP_ERROR(1, 0, 0x00)
#define IWARP_ERR_TAG_STAG        IWARP_ERROR(1, 1, 0x00)
#define IWARP_ERR_TAG_BOUNDS      IWARP_ERROR(1, 1, 0x01)
#define IWARP_ERR_TAG_STREAM      IWARP_ERROR(1, 1, 0x02)
#define IWARP_ERR_TAG_WRAP        IWARP_ERROR(1, 1, 0x03)
#define IWARP_ERR_TAG_VERSION     IWARP_ERROR(1, 1, 0x04)
#define IWARP_ERR_UNTAG_QN        IWARP_ERROR(1, 2, 0x01)
#define IWARP_ERR_UNTAG_NO_BUFFER IWARP_ERROR(1, 2, 0x02)
#define IWARP_ERR_UNTAG_MSN       IWARP_ERROR(1, 2, 0x03)
#define IWARP_ERR_UNTAG_MO        IWARP_ERROR(1, 2, 0x04)
#define IWARP_ERR_UNTAG_LENGTH    IWARP_ERROR(1, 2, 0x05)
#define IWARP_ERR_UNTAG_VERSION   IWARP_ERROR(1, 2, 0x06)

/* Layer 2, MPA. Type 0 only. */
#define IWARP_ERR_MPA_LOST   IWARP_ERROR(2, 0, 0x01) /* local report only, never sent */
#define IWARP_ERR_MPA_CRC    IWARP_ERROR(2, 0, 0x02)
#define IWARP_ERR_MPA_MARKER IWARP_ERROR(2, 0, 0x03)
#define IWARP_ERR_MPA_FRAME  IWARP_ERROR(2, 0, 0x04)
#define IWARP_ERR_MPA_LOCAL  IWARP_ERROR(2, 0, 0x05)
#define IWARP_ERR_MPA_IRD    IWARP_ERROR(2, 0, 0x06)
#define IWARP_ERR_MPA_RTR    IWARP_ERROR(2, 0, 0x07)

/* ---- MPA startup frames -------------------------------------------------------------------- */

#define IWARP_MPA_KEY_LEN     16u
#define IWARP_MPA_KEY_REQUEST "MPA ID Req Frame"
#define IWARP_MPA_KEY_REPLY   "MPA ID Rep Frame"

#define IWARP_MPA_OFF_FLAGS     16u
#define IWARP_MPA_OFF_REVISION  17u
#define IWARP_MPA_OFF_PD_LENGTH 18u
#define IWARP_MPA_HEADER_LEN    20u
#define IWARP_MPA_PD_MAX        512u /* octets of private data in a frame */
#define IWARP_MPA_PREFIX_LEN    4u   /* IRD/ORD words in front of it when S is honoured */
#define IWARP_MPA_FRAME_MAX     (IWARP_MPA_HEADER_LEN + IWARP_MPA_PD_MAX)

#define IWARP_MPA_FLAG_M 0x80u /* put markers into what you send me */
#define IWARP_MPA_FLAG_C 0x40u /* CRC wanted */
#define IWARP_MPA_FLAG_R 0x20u /* Reply: refused */
#define IWARP_MPA_FLAG_S 0x10u /* revision 2: private data starts with the IRD/ORD words */

#define IWARP_MPA_WORD_HIGH     0x8000u /* A in the first word, C in the second */
#define IWARP_MPA_WORD_LOW      0x4000u /* B in the first word, D in the second */
#define IWARP_MPA_DEPTH_MASK    0x3fffu /* IRD in the first word, ORD in the second */
#define IWARP_MPA_DEPTH_UNKNOWN 0x3fffu /* "not negotiated here" */

/* ---- FPDU ---------------------------------------------------------------------------------- */

#define IWARP_FPDU_LENGTH_LEN  2u /* ULPDU_Length in front */
#define IWARP_FPDU_CRC_LEN     4u
#define IWARP_FPDU_PAD_MAX     3u
#define IWARP_FPDU_TRAILER_MAX (IWARP_FPDU_PAD_MAX + IWARP_FPDU_CRC_LEN)
#define IWARP_ULPDU_MAX        65535u
#define IWARP_FPDU_MAX         65544u /* the longest FPDU: 2 + 65535 + 3 + 4 */
#define IWARP_MULPDU_MIN       128u

/* ---- DDP ----------------------------------------------------------------------------------- */

#define IWARP_DDP_T            0x80u
#define IWARP_DDP_L            0x40u
#define IWARP_DDP_VERSION_MASK 0x03u
#define IWARP_DDP_VERSION      1u

#define IWARP_DDP_OFF_CONTROL 0u
#define IWARP_DDP_OFF_ULP     1u /* the RDMAP control octet */

#define IWARP_TAGGED_OFF_STAG 2u
#define IWARP_TAGGED_OFF_TO   6u
#define IWARP_TAGGED_LEN      14u

#define IWARP_UNTAGGED_OFF_ULP32 2u /* Invalidate STag, or zero */
#define IWARP_UNTAGGED_OFF_QN    6u
#define IWARP_UNTAGGED_OFF_MSN   10u
#define IWARP_UNTAGGED_OFF_MO    14u
#define IWARP_UNTAGGED_LEN       18u

/* With the ULPDU_Length in front, as the encoders write them. */
#define IWARP_FPDU_TAGGED_LEN   16u
#define IWARP_FPDU_UNTAGGED_LEN 20u

#define IWARP_QN_SEND            0u
#define IWARP_QN_READ_REQUEST    1u /* Atomic Requests too */
#define IWARP_QN_TERMINATE       2u
#define IWARP_QN_ATOMIC_RESPONSE 3u
#define IWARP_QN_COUNT           4u
#define IWARP_MSN_FIRST          1u

/* ---- RDMAP --------------------------------------------------------------------------------- */

#define IWARP_RDMAP_VERSION_MASK 0xc0u
#define IWARP_RDMAP_VERSION      0x40u
#define IWARP_RDMAP_OPCODE_MASK  0x0fu

enum iwarp_opcode {
    IWARP_OP_WRITE = 0,
    IWARP_OP_READ_REQUEST = 1,
    IWARP_OP_READ_RESPONSE = 2,
    IWARP_OP_SEND = 3,
    IWARP_OP_SEND_INVALIDATE = 4,
    IWARP_OP_SEND_SE = 5,
    IWARP_OP_SEND_SE_INVALIDATE = 6,
    IWARP_OP_TERMINATE = 7,
    IWARP_OP_IMMEDIATE = 8,
    IWARP_OP_IMMEDIATE_SE = 9,
    IWARP_OP_ATOMIC_REQUEST = 10,
    IWARP_OP_ATOMIC_RESPONSE = 11,
    IWARP_OP_EMPTY = 16, /* not on the wire: the FPDU without a ULPDU (RTR option B) */
};

/* Read Request body, offsets within the body. */
#define IWARP_READ_OFF_SINK_STAG   0u
#define IWARP_READ_OFF_SINK_TO     4u
#define IWARP_READ_OFF_SIZE        12u
#define IWARP_READ_OFF_SOURCE_STAG 16u
#define IWARP_READ_OFF_SOURCE_TO   20u
#define IWARP_READ_BODY_LEN        28u
#define IWARP_READ_ULPDU_LEN       46u

/* Immediate Data and Atomics, offsets within the body. */
#define IWARP_IMMEDIATE_BODY_LEN      8u
#define IWARP_ATOMIC_OFF_OPCODE       0u
#define IWARP_ATOMIC_OFF_ID           4u
#define IWARP_ATOMIC_OFF_STAG         8u
#define IWARP_ATOMIC_OFF_TO           12u
#define IWARP_ATOMIC_OFF_DATA         20u
#define IWARP_ATOMIC_OFF_MASK         28u
#define IWARP_ATOMIC_OFF_COMPARE      36u
#define IWARP_ATOMIC_OFF_COMPARE_MASK 44u
#define IWARP_ATOMIC_REQUEST_LEN      52u
#define IWARP_ATOMIC_RESPONSE_LEN     12u
#define IWARP_ATOMIC_FETCH_ADD        0u
#define IWARP_ATOMIC_CMP_SWAP         2u

/* Terminate, offsets within the body. */
#define IWARP_TERM_OFF_ERROR   0u /* layer and type nibbles, then the code */
#define IWARP_TERM_OFF_FLAGS   2u
#define IWARP_TERM_CONTROL_LEN 4u
#define IWARP_TERM_LENGTH_LEN  2u
#define IWARP_TERM_M           0x80u
#define IWARP_TERM_D           0x40u
#define IWARP_TERM_R           0x20u
#define IWARP_TERM_BODY_MAX    52u /* control, length, untagged header, Read Request body */

static_assert(sizeof(IWARP_MPA_KEY_REQUEST) == IWARP_MPA_KEY_LEN + 1, "key length");
static_assert(sizeof(IWARP_MPA_KEY_REPLY) == IWARP_MPA_KEY_LEN + 1, "key length");
static_assert(IWARP_TAGGED_OFF_TO + 8 == IWARP_TAGGED_LEN, "tagged header");
static_assert(IWARP_UNTAGGED_OFF_MO + 4 == IWARP_UNTAGGED_LEN, "untagged header");
static_assert(IWARP_FPDU_LENGTH_LEN + IWARP_TAGGED_LEN == IWARP_FPDU_TAGGED_LEN, "tagged form");
static_assert(IWARP_FPDU_LENGTH_LEN + IWARP_UNTAGGED_LEN == IWARP_FPDU_UNTAGGED_LEN,
              "untagged form");
static_assert(IWARP_READ_OFF_SOURCE_TO + 8 == IWARP_READ_BODY_LEN, "Read Request body");
static_assert(IWARP_UNTAGGED_LEN + IWARP_READ_BODY_LEN == IWARP_READ_ULPDU_LEN, "Read Request");
static_assert(IWARP_ATOMIC_OFF_COMPARE_MASK + 8 == IWARP_ATOMIC_REQUEST_LEN, "Atomic Request body");
static_assert(IWARP_FPDU_MAX == IWARP_FPDU_LENGTH_LEN + IWARP_ULPDU_MAX + IWARP_FPDU_TRAILER_MAX,
              "longest FPDU");
static_assert(IWARP_TERM_BODY_MAX == IWARP_TERM_CONTROL_LEN + IWARP_TERM_LENGTH_LEN +
                                         IWARP_UNTAGGED_LEN + IWARP_READ_BODY_LEN,
              "longest Terminate body");

/* ---- octets -------------------------------------------------------------------------------- */

/*
 * One load or store and a byte swap each. Put together octet by octet, gcc 12 at -O2 merges the
 * fields of a header into vectors, octet by octet, at five times the instructions.
 */
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define IWARP_BE(bits, v) __builtin_bswap##bits(v)
#define IWARP_LE32(v)     (v)
#else
#define IWARP_BE(bits, v) (v)
#define IWARP_LE32(v)     __builtin_bswap32(v)
#endif

static inline uint16_t iwarp_get_be16(const uint8_t *p)
{
    uint16_t v;

    memcpy(&v, p, sizeof v);
    return IWARP_BE(16, v);
}

static inline uint32_t iwarp_get_be32(const uint8_t *p)
{
    uint32_t v;

    memcpy(&v, p, sizeof v);
    return IWARP_BE(32, v);
}

static inline uint64_t iwarp_get_be64(const uint8_t *p)
{
    uint64_t v;

    memcpy(&v, p, sizeof v);
    return IWARP_BE(64, v);
}

static inline uint32_t iwarp_get_le32(const uint8_t *p)
{
    uint32_t v;

    memcpy(&v, p, sizeof v);
    return IWARP_LE32(v);
}

static inline void iwarp_put_be16(uint8_t *p, uint16_t v)
{
    v = IWARP_BE(16, v);
    memcpy(p, &v, sizeof v);
}

static inline void iwarp_put_be32(uint8_t *p, uint32_t v)
{
    v = IWARP_BE(32, v);
    memcpy(p, &v, sizeof v);
}

static inline void iwarp_put_be64(uint8_t *p, uint64_t v)
{
    v = IWARP_BE(64, v);
    memcpy(p, &v, sizeof v);
}

static inline void iwarp_put_le32(uint8_t *p, uint32_t v)
{
    v = IWARP_LE32(v);
    memcpy(p, &v, sizeof v);
}

#endif
