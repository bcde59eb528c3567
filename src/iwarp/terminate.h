// SPDX-License-Identifier: MIT
/*
 * terminate.h - the Terminate message: what to send for an error, what a received one says, and
 * errors in words.
 *
 * Sent in the order of RFC 5040. Received in that order or in the one that Linux siw produces on
 * little-endian hosts (nibbles of the first octet and the flag bits reversed). Decoding serves
 * diagnosis only: the connection is over whatever it says, and a Terminate is never answered.
 *
 * Pure; called by the connection's transmit and receive paths and by diagnostics.
 */
#ifndef SOFTNDK_IWARP_TERMINATE_H
#define SOFTNDK_IWARP_TERMINATE_H

#include "iwarp/ddp.h"

/* Longest Terminate up to and including its body, ULPDU_Length included; the trailer comes on top.
 */
#define IWARP_FPDU_TERMINATE_MAX (IWARP_FPDU_UNTAGGED_LEN + IWARP_TERM_BODY_MAX)

/* A received Terminate. */
struct iwarp_terminate {
    iwarp_error error;
    bool known;        /* layer, type and code are in the tables */
    bool reversed;     /* it came in siw's order */
    bool ambiguous;    /* both orders give a known error and nothing in the message decides */
    iwarp_error other; /* when ambiguous: the reading not chosen */
    bool has_length;   /* segment_length is meaningful (M) */
    bool has_ddp;
    bool has_read;
    uint16_t segment_length; /* as sent; RFC: octets of the offending ULPDU, siw: of its payload */
    uint32_t ddp_len;        /* 14 or 18 when has_ddp */
    const uint8_t *ddp;      /* the offender's DDP header, inside the ULPDU given */
    struct iwarp_read_request read; /* the offending Read Request when has_read */
};

/*
 * Writes a Terminate (ULPDU_Length, DDP header with queue 2, MSN 1, body) for `error`; the trailer
 * follows at dst + result. dst has room for IWARP_FPDU_TERMINATE_MAX.
 * `ulpdu` is the offending ULPDU, as far as it is at hand, or NULL; what of it is copied depends
 * on the class of the error: DDP header and length for 0/1, 0/2, 1/1, 1/2, and the Read Request
 * body for 0/1 when the offender is one. A part that is not wholly within ulpdu_len is left out.
 * Returns the octets written, 24..72.
 */
size_t iwarp_terminate_put(uint8_t *dst, iwarp_error error, const uint8_t *ulpdu,
                           uint32_t ulpdu_len);

/*
 * The same for a Read Request that failed after `done` octets of its Response were sent (0 when it
 * failed at once): header and body are rebuilt, both offsets advanced and the size reduced by
 * `done`, which is at most request->size.
 */
size_t iwarp_terminate_put_read(uint8_t *dst, iwarp_error error, uint32_t msn,
                                const struct iwarp_read_request *request, uint32_t done);

/*
 * Reads the body of a Terminate that iwarp_rdmap_decode() accepted. `startup` says that no other
 * FPDU was sent or received on this connection before it: that decides between the readings "MPA
 * startup error" and "RDMAP operation error" of the control words that mean either. (Being the
 * first FPDU of its own direction is not enough: siw as responder often answers our first FPDU
 * with one.)
 * IWARP_OK, or IWARP_CLOSE when the announced headers are not all there (out->error, known and
 * reversed are valid even then).
 */
enum iwarp_verdict iwarp_terminate_decode(const struct iwarp_segment *segment, bool startup,
                                          struct iwarp_terminate *out);

/* Whether layer, type and code are in the tables. */
bool iwarp_error_known(iwarp_error error);

/* The error in words, for instance "DDP: tagged buffer: invalid STag". Never NULL. */
const char *iwarp_error_text(iwarp_error error);

#endif
