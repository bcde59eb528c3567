// SPDX-License-Identifier: MIT
/*
 * ddp.h - DDP segment headers, and the decoded segment that travels up the receive path.
 *
 * Encoders write the ULPDU_Length in front of the header, so one call gives what precedes the
 * payload of an FPDU: 16 octets (tagged) or 20 (untagged). Decoding fills pointers and numbers and
 * copies no payload.
 *
 * Pure; called by iwarp/rdmap, the transmit path and iwarp/terminate.
 */
#ifndef SOFTNDK_IWARP_DDP_H
#define SOFTNDK_IWARP_DDP_H

#include "iwarp/wire.h"

/* The body of a Read Request. Offsets and size in octets. */
struct iwarp_read_request {
    uint32_t sink_stag;
    uint64_t sink_to;
    uint32_t size;
    uint32_t source_stag;
    uint64_t source_to;
};

/*
 * One received segment. iwarp_ddp_decode() fills what belongs to DDP, iwarp_rdmap_decode() all.
 * Fields named for one model or opcode are not written for the others.
 */
struct iwarp_segment {
    const uint8_t *ulpdu; /* the whole ULPDU, for a Terminate */
    uint32_t ulpdu_len;
    iwarp_error error; /* IWARP_NO_ERROR unless the verdict is IWARP_TERMINATE */

    const uint8_t *payload; /* behind the DDP header, inside ulpdu */
    uint32_t payload_len;   /* octets */

    uint8_t opcode;  /* enum iwarp_opcode */
    uint8_t control; /* the RDMAP control octet as received */
    bool tagged;
    bool last; /* L bit */

    /* tagged */
    uint32_t stag;
    uint64_t to;

    /* untagged */
    uint32_t qn;
    uint32_t msn;
    uint32_t mo;
    uint32_t inv_stag; /* opcodes 4 and 6: STag to invalidate; otherwise without meaning */

    struct iwarp_read_request read; /* opcode 1 */
};

/*
 * Writes ULPDU_Length and tagged header for `payload_len` octets of payload (at most 65535 - 14).
 * `ulp` is the RDMAP control octet. Returns 16.
 */
size_t iwarp_ddp_put_tagged(uint8_t *dst, uint32_t payload_len, bool last, uint8_t ulp,
                            uint32_t stag, uint64_t to);

/*
 * Writes ULPDU_Length and untagged header for `payload_len` octets of payload (at most 65535 - 18).
 * `ulp32` is the Invalidate STag or 0. Returns 20.
 */
size_t iwarp_ddp_put_untagged(uint8_t *dst, uint32_t payload_len, bool last, uint8_t ulp,
                              uint32_t ulp32, uint32_t qn, uint32_t msn, uint32_t mo);

/*
 * Decodes the DDP header of a ULPDU. Checks, in this order: room for the header (else 1/0/00), DDP
 * version (1/1/04 or 1/2/06). IWARP_OK or IWARP_TERMINATE with out->error. On a version error
 * ulpdu, ulpdu_len and tagged are valid.
 */
enum iwarp_verdict iwarp_ddp_decode(const uint8_t *ulpdu, uint32_t ulpdu_len,
                                    struct iwarp_segment *out);

/* Octets of payload that fit into one segment of at most `mulpdu` octets (mulpdu >= 128). */
static inline uint32_t iwarp_ddp_payload_max(uint32_t mulpdu, bool tagged)
{
    return mulpdu - (tagged ? IWARP_TAGGED_LEN : IWARP_UNTAGGED_LEN);
}

/* Segments that a message of `len` octets takes; an empty message takes one. */
uint32_t iwarp_ddp_segment_count(uint32_t len, uint32_t mulpdu, bool tagged);

#endif
