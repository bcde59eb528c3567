// SPDX-License-Identifier: MIT
/*
 * rdmap.h - RDMAP messages: one decoder for every received ULPDU, one encoder for every header
 * that this implementation sends.
 *
 * The decoder makes every check that needs no state, in the order DDP then RDMAP; what depends on
 * the stream (MSN, MO, buffers, open reads) is iwarp/track.h, what depends on memory is above.
 * Encoders write ULPDU_Length, DDP header and RDMAP header and return the octets written; payload,
 * if any, follows, then iwarp_fpdu_put_trailer().
 *
 * Pure; called by the connection's transmit and receive paths.
 */
#ifndef SOFTNDK_IWARP_RDMAP_H
#define SOFTNDK_IWARP_RDMAP_H

#include "iwarp/ddp.h"

/* Flags for iwarp_rdmap_decode(). */
#define IWARP_DECODE_EXTENSIONS 0x1u /* opcodes 8..11 are known; otherwise 0/2/06 */
#define IWARP_DECODE_EMPTY      0x2u /* a ULPDU of 0 octets is legal here (RTR option B) */

/* Octets of a Read Request up to and including its body, and of the two RTR FPDUs. */
#define IWARP_FPDU_READ_REQUEST_LEN 48u
#define IWARP_FPDU_RTR_WRITE_LEN    20u
#define IWARP_FPDU_RTR_READ_LEN     52u

/*
 * Decodes one ULPDU and makes the stateless checks. Order, first failure wins:
 *   length 0 or 1 ......................................... 1/0/00 (0 with IWARP_DECODE_EMPTY: ok)
 *   shorter than its DDP header ........................... 1/0/00
 *   DDP version ........................................... 1/1/04 tagged, 1/2/06 untagged
 *   malformed Terminate (untagged, right RDMAP version) ... IWARP_CLOSE, it is never answered
 *   queue number above 3 .................................. 1/2/01
 *   RDMAP version ......................................... 0/2/05
 *   opcode unknown, or 8..11 without the flag ............. 0/2/06
 *   tagged bit contradicts the opcode ..................... 0/2/06
 *   queue number wrong for the opcode ..................... 1/2/01
 *   Read/Atomic Request: too short 1/0/00, L=0 or MO not 0 1/2/04, too long 1/2/05
 *   Atomic Request: operation unknown 0/2/06, target not a multiple of 8 0/2/07
 *   Atomic Response: as Atomic Request
 *   Immediate: not 8 octets or L=0 ........................ 0/2/ff
 * A malformed Terminate is one whose queue is not 2, MSN not 1, MO not 0, L not set, or whose
 * ULPDU is shorter than 22 octets. Its body is read by iwarp_terminate_decode().
 *
 * IWARP_OK: out is filled. IWARP_TERMINATE: out->error, ulpdu and ulpdu_len are filled (give them
 * to iwarp_terminate_put()). IWARP_CLOSE: close without an answer.
 */
enum iwarp_verdict iwarp_rdmap_decode(const uint8_t *ulpdu, uint32_t ulpdu_len, unsigned flags,
                                      struct iwarp_segment *out);

/* Reads the 28 octets of a Read Request body. iwarp_rdmap_decode() has done it for opcode 1. */
void iwarp_rdmap_get_read_request(const uint8_t *body, struct iwarp_read_request *out);

/* True for the four Send opcodes. */
static inline bool iwarp_opcode_is_send(unsigned opcode)
{
    return opcode - IWARP_OP_SEND <= IWARP_OP_SEND_SE_INVALIDATE - IWARP_OP_SEND;
}

/* True for the Send opcodes that name an STag to invalidate. */
static inline bool iwarp_opcode_invalidates(unsigned opcode)
{
    return opcode == IWARP_OP_SEND_INVALIDATE || opcode == IWARP_OP_SEND_SE_INVALIDATE;
}

/* True for the opcodes that raise an event on a queue armed for solicited events only. */
static inline bool iwarp_opcode_solicits(unsigned opcode)
{
    return opcode == IWARP_OP_SEND_SE || opcode == IWARP_OP_SEND_SE_INVALIDATE ||
           opcode == IWARP_OP_IMMEDIATE_SE;
}

/* The Send opcode for a pair of properties. */
static inline enum iwarp_opcode iwarp_opcode_send(bool solicited, bool invalidate)
{
    return (enum iwarp_opcode)(IWARP_OP_SEND + (solicited ? 2 : 0) + (invalidate ? 1 : 0));
}

/* "Write", "Read Request", ...; "opcode N" is not formatted: "unassigned". */
const char *iwarp_opcode_name(unsigned opcode);

/* One segment of a Write: 16 octets. */
size_t iwarp_rdmap_put_write(uint8_t *dst, uint32_t stag, uint64_t to, uint32_t payload_len,
                             bool last);

/* One segment of a Read Response: 16 octets. stag and to are the request's sink, advanced. */
size_t iwarp_rdmap_put_read_response(uint8_t *dst, uint32_t stag, uint64_t to, uint32_t payload_len,
                                     bool last);

/*
 * One segment of a Send: 20 octets. `opcode` is one of the four Send opcodes; inv_stag is written
 * only if it invalidates, in every segment of the message. mo: octets of the message sent before.
 */
size_t iwarp_rdmap_put_send(uint8_t *dst, enum iwarp_opcode opcode, uint32_t inv_stag, uint32_t msn,
                            uint32_t mo, uint32_t payload_len, bool last);

/* A Read Request, header and body: 48 octets, no payload follows. */
size_t iwarp_rdmap_put_read_request(uint8_t *dst, uint32_t msn,
                                    const struct iwarp_read_request *request);

/* A whole FPDU: zero-length Write with this STag, TO 0, as ready-to-receive message. 20 octets. */
size_t iwarp_rdmap_put_rtr_write(uint8_t *dst, uint32_t stag, bool crc);

/*
 * A whole FPDU: Read Request of size 0 with MSN 1, as ready-to-receive message. 52 octets. The
 * caller's queue 1 continues with MSN 2. Some hardware refuses a zero sink STag: give another.
 */
size_t iwarp_rdmap_put_rtr_read(uint8_t *dst, uint32_t sink_stag, uint32_t source_stag, bool crc);

/* ---- extensions, to recognise only --------------------------------------------------------- */

/* Body of an Atomic Request. */
struct iwarp_atomic_request {
    uint8_t operation; /* IWARP_ATOMIC_* */
    uint32_t id;
    uint32_t stag;
    uint64_t to;
    uint64_t data;
    uint64_t mask;
    uint64_t compare;
    uint64_t compare_mask;
};

/* Body of an Atomic Response. */
struct iwarp_atomic_response {
    uint32_t id;
    uint64_t value; /* what the target held before */
};

/* Reads the body of a segment that iwarp_rdmap_decode() accepted with the opcode in question. */
void iwarp_rdmap_get_atomic_request(const struct iwarp_segment *segment,
                                    struct iwarp_atomic_request *out);
void iwarp_rdmap_get_atomic_response(const struct iwarp_segment *segment,
                                     struct iwarp_atomic_response *out);

#endif
