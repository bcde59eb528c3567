// SPDX-License-Identifier: MIT
/*
 * terminate.c - Terminate messages out and in, and errors in words.
 *
 * Invariants: what is sent follows RFC 5040 and copies only octets that are at hand; what is
 * received is never believed about lengths; nothing here decides more than what a log line says.
 * Called by the connection's transmit and receive paths.
 */
#include "iwarp/terminate.h"

#include <string.h>

#include "base/red.h"
#include "iwarp/rdmap.h"

/* siw on little-endian hosts: the flags from the other end of the octet. */
#define SIW_M 0x01u
#define SIW_D 0x02u
#define SIW_R 0x04u

static const struct {
    iwarp_error error;
    const char *text;
} terminate_texts[] = {
    {IWARP_ERR_RDMAP_LOCAL, "RDMAP: local catastrophic error"},
    {IWARP_ERR_PROT_STAG, "RDMAP: remote protection: invalid STag"},
    {IWARP_ERR_PROT_BOUNDS, "RDMAP: remote protection: base or bounds violation"},
    {IWARP_ERR_PROT_RIGHTS, "RDMAP: remote protection: access rights violation"},
    {IWARP_ERR_PROT_STREAM, "RDMAP: remote protection: STag not associated with the stream"},
    {IWARP_ERR_PROT_WRAP, "RDMAP: remote protection: tagged offset wraps"},
    {IWARP_ERR_PROT_INVALIDATE, "RDMAP: remote protection: STag cannot be invalidated"},
    {IWARP_ERR_PROT_OTHER, "RDMAP: remote protection: unspecified error"},
    {IWARP_ERR_OP_VERSION, "RDMAP: remote operation: invalid RDMAP version"},
    {IWARP_ERR_OP_OPCODE, "RDMAP: remote operation: unexpected opcode"},
    {IWARP_ERR_OP_STREAM, "RDMAP: remote operation: catastrophic error of this stream"},
    {IWARP_ERR_OP_ADAPTER, "RDMAP: remote operation: catastrophic error of the adapter"},
    {IWARP_ERR_OP_INVALIDATE, "RDMAP: remote operation: STag cannot be invalidated"},
    {IWARP_ERR_OP_OTHER, "RDMAP: remote operation: unspecified error"},
    {IWARP_ERR_DDP_LOCAL, "DDP: local catastrophic error"},
    {IWARP_ERR_TAG_STAG, "DDP: tagged buffer: invalid STag"},
    {IWARP_ERR_TAG_BOUNDS, "DDP: tagged buffer: base or bounds violation"},
    {IWARP_ERR_TAG_STREAM, "DDP: tagged buffer: STag not associated with the stream"},
    {IWARP_ERR_TAG_WRAP, "DDP: tagged buffer: tagged offset wraps"},
    {IWARP_ERR_TAG_VERSION, "DDP: tagged buffer: invalid DDP version"},
    {IWARP_ERR_UNTAG_QN, "DDP: untagged buffer: invalid queue number"},
    {IWARP_ERR_UNTAG_NO_BUFFER, "DDP: untagged buffer: no buffer for this message"},
    {IWARP_ERR_UNTAG_MSN, "DDP: untagged buffer: message sequence number out of range"},
    {IWARP_ERR_UNTAG_MO, "DDP: untagged buffer: invalid message offset"},
    {IWARP_ERR_UNTAG_LENGTH, "DDP: untagged buffer: message too long for the buffer"},
    {IWARP_ERR_UNTAG_VERSION, "DDP: untagged buffer: invalid DDP version"},
    {IWARP_ERR_MPA_LOST, "MPA: TCP connection lost"},
    {IWARP_ERR_MPA_CRC, "MPA: CRC mismatch"},
    {IWARP_ERR_MPA_MARKER, "MPA: marker and length disagree"},
    {IWARP_ERR_MPA_FRAME, "MPA: invalid Request or Reply frame"},
    {IWARP_ERR_MPA_LOCAL, "MPA: local catastrophic error"},
    {IWARP_ERR_MPA_IRD, "MPA: insufficient IRD"},
    {IWARP_ERR_MPA_RTR, "MPA: no matching ready-to-receive option"},
};

#define TERMINATE_TEXT_COUNT (sizeof terminate_texts / sizeof terminate_texts[0])

/* NULL when not in the tables. Every code of 0/0 means the same. */
static const char *terminate_find_text(iwarp_error error)
{
    if (iwarp_error_layer(error) == 0 && iwarp_error_type(error) == 0 && error != IWARP_NO_ERROR) {
        error = IWARP_ERR_RDMAP_LOCAL;
    }
    for (size_t i = 0; i < TERMINATE_TEXT_COUNT; i++) {
        if (terminate_texts[i].error == error) {
            return terminate_texts[i].text;
        }
    }
    return NULL;
}

bool iwarp_error_known(iwarp_error error)
{
    return terminate_find_text(error) != NULL;
}

const char *iwarp_error_text(iwarp_error error)
{
    const char *text = terminate_find_text(error);

    if (text != NULL) {
        return text;
    }
    if (error == IWARP_NO_ERROR) {
        return "no error";
    }
    switch (iwarp_error_layer(error)) {
    case 0:
        return "RDMAP: unknown error";
    case 1:
        return "DDP: unknown error";
    case 2:
        return "MPA: unknown error";
    default:
        return "unknown layer and error";
    }
}

/* ---- out ----------------------------------------------------------------------------------- */

/* Whether errors of this class carry the offender's DDP header and segment length. */
static bool terminate_copies_header(iwarp_error error)
{
    unsigned layer = iwarp_error_layer(error);
    unsigned type = iwarp_error_type(error);

    return layer <= 1 && (type == 1 || type == 2);
}

static bool terminate_copies_read(iwarp_error error, const uint8_t *ulpdu, uint32_t ulpdu_len)
{
    return iwarp_error_layer(error) == 0 && iwarp_error_type(error) == 1 &&
           ulpdu_len >= IWARP_READ_ULPDU_LEN && (ulpdu[IWARP_DDP_OFF_CONTROL] & IWARP_DDP_T) == 0 &&
           (ulpdu[IWARP_DDP_OFF_ULP] & IWARP_RDMAP_OPCODE_MASK) == IWARP_OP_READ_REQUEST;
}

/* Octets of the DDP header at ulpdu, 0 if it is not all there. */
static uint32_t terminate_header_len(const uint8_t *ulpdu, uint32_t ulpdu_len)
{
    uint32_t header_len;

    if (ulpdu == NULL || ulpdu_len == 0) {
        return 0;
    }
    header_len =
        (ulpdu[IWARP_DDP_OFF_CONTROL] & IWARP_DDP_T) != 0 ? IWARP_TAGGED_LEN : IWARP_UNTAGGED_LEN;
    return ulpdu_len >= header_len ? header_len : 0;
}

size_t iwarp_terminate_put(uint8_t *dst, iwarp_error error, const uint8_t *ulpdu,
                           uint32_t ulpdu_len)
{
    uint8_t *body = dst + IWARP_FPDU_UNTAGGED_LEN;
    uint32_t body_len = IWARP_TERM_CONTROL_LEN;
    uint32_t header_len = terminate_header_len(ulpdu, ulpdu_len);

    memset(body, 0, IWARP_TERM_CONTROL_LEN);
    iwarp_put_be16(body + IWARP_TERM_OFF_ERROR, (uint16_t)error);
    if (RED("iwarp-terminate-nibbles-reversed")) {
        body[0] = (uint8_t)(body[0] << 4 | body[0] >> 4);
    }
    if (terminate_copies_header(error) && header_len != 0) {
        body[IWARP_TERM_OFF_FLAGS] = IWARP_TERM_M | IWARP_TERM_D;
        iwarp_put_be16(body + body_len, (uint16_t)ulpdu_len);
        body_len += IWARP_TERM_LENGTH_LEN;
        memcpy(body + body_len, ulpdu, header_len);
        body_len += header_len;
        if (terminate_copies_read(error, ulpdu, ulpdu_len)) {
            body[IWARP_TERM_OFF_FLAGS] |= IWARP_TERM_R;
            memcpy(body + body_len, ulpdu + IWARP_UNTAGGED_LEN, IWARP_READ_BODY_LEN);
            body_len += IWARP_READ_BODY_LEN;
        }
    }
    iwarp_ddp_put_untagged(dst, body_len, true,
                           (uint8_t)(IWARP_RDMAP_VERSION | (unsigned)IWARP_OP_TERMINATE), 0,
                           IWARP_QN_TERMINATE, IWARP_MSN_FIRST, 0);
    return IWARP_FPDU_UNTAGGED_LEN + body_len;
}

size_t iwarp_terminate_put_read(uint8_t *dst, iwarp_error error, uint32_t msn,
                                const struct iwarp_read_request *request, uint32_t done)
{
    uint8_t fpdu[IWARP_FPDU_READ_REQUEST_LEN];
    struct iwarp_read_request rest = *request;

    if (!RED("iwarp-terminate-read-not-advanced")) {
        rest.sink_to += done;
        rest.source_to += done;
        rest.size -= done;
    }
    iwarp_rdmap_put_read_request(fpdu, msn, &rest);
    return iwarp_terminate_put(dst, error, fpdu + IWARP_FPDU_LENGTH_LEN, IWARP_READ_ULPDU_LEN);
}

/* ---- in ------------------------------------------------------------------------------------ */

/* Both readings are known and neither flags nor tables decide. */
static void terminate_choose(struct iwarp_terminate *out, iwarp_error rfc, iwarp_error siw,
                             bool startup)
{
    bool siw_is_mpa = iwarp_error_layer(siw) == 2;
    bool rfc_is_mpa = iwarp_error_layer(rfc) == 2;

    out->ambiguous = true;
    /* 0/2/xx against 2/0/xx: startup errors come first of all, operation errors do not. */
    out->reversed = siw_is_mpa != rfc_is_mpa && siw_is_mpa == startup;
    out->error = out->reversed ? siw : rfc;
    out->other = out->reversed ? rfc : siw;
}

/* Sets error, known, reversed, ambiguous, other; returns the flags in RFC positions. */
static unsigned terminate_read_control(const uint8_t *body, bool startup,
                                       struct iwarp_terminate *out)
{
    unsigned flags = body[IWARP_TERM_OFF_FLAGS];
    unsigned layer = body[0] >> 4;
    unsigned type = body[0] & 0xfu;
    iwarp_error rfc = IWARP_ERROR(layer, type, body[1]);
    iwarp_error siw = IWARP_ERROR(type, layer, body[1]);
    bool siw_flags = (flags & (IWARP_TERM_M | IWARP_TERM_D | IWARP_TERM_R)) == 0 &&
                     (flags & (SIW_M | SIW_D | SIW_R)) != 0;

    if (RED("iwarp-terminate-siw-flags-ignored")) {
        siw_flags = false;
    }
    out->error = rfc;
    if (siw_flags) {
        out->reversed = true;
        out->error = siw;
    } else if ((flags & (IWARP_TERM_M | IWARP_TERM_D | IWARP_TERM_R)) == 0 && rfc != siw &&
               iwarp_error_known(siw)) {
        if (iwarp_error_known(rfc)) {
            terminate_choose(out, rfc, siw, startup);
        } else {
            out->reversed = true;
            out->error = siw;
        }
    }
    out->known = iwarp_error_known(out->error);
    if (siw_flags) {
        return ((flags & SIW_M) != 0 ? IWARP_TERM_M : 0u) |
               ((flags & SIW_D) != 0 ? IWARP_TERM_D : 0u) |
               ((flags & SIW_R) != 0 ? IWARP_TERM_R : 0u);
    }
    return flags;
}

enum iwarp_verdict iwarp_terminate_decode(const struct iwarp_segment *segment, bool startup,
                                          struct iwarp_terminate *out)
{
    const uint8_t *body = segment->payload;
    uint32_t left = segment->payload_len;
    unsigned flags;

    memset(out, 0, sizeof *out);
    if (left < IWARP_TERM_CONTROL_LEN) {
        return IWARP_CLOSE;
    }
    flags = terminate_read_control(body, startup, out);
    body += IWARP_TERM_CONTROL_LEN;
    left -= IWARP_TERM_CONTROL_LEN;
    if ((flags & IWARP_TERM_D) != 0) {
        if (left < IWARP_TERM_LENGTH_LEN) {
            return IWARP_CLOSE;
        }
        out->segment_length = iwarp_get_be16(body);
        body += IWARP_TERM_LENGTH_LEN;
        left -= IWARP_TERM_LENGTH_LEN;
        out->ddp_len = terminate_header_len(body, left);
        if (out->ddp_len == 0) {
            return IWARP_CLOSE;
        }
        out->has_ddp = true;
        out->has_length = (flags & IWARP_TERM_M) != 0;
        out->ddp = body;
        body += out->ddp_len;
        left -= out->ddp_len;
    }
    if ((flags & IWARP_TERM_R) != 0) {
        if (left < IWARP_READ_BODY_LEN) {
            return IWARP_CLOSE;
        }
        out->has_read = true;
        iwarp_rdmap_get_read_request(body, &out->read);
    }
    return IWARP_OK;
}
