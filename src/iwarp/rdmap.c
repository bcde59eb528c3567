// SPDX-License-Identifier: MIT
/*
 * rdmap.c - RDMAP segments in and out.
 *
 * Invariants: everything sent has RV=1 and the reserved bits zero; the Invalidate STag field is
 * zero unless the opcode invalidates; reserved bits received are not looked at; the order of checks
 * is the one promised in rdmap.h. Called by the connection's transmit and receive paths.
 */
#include "iwarp/rdmap.h"

#include "base/red.h"
#include "iwarp/fpdu.h"

/* What an opcode demands of its segment. */
static const struct {
    bool tagged;
    uint8_t qn;
    const char *name;
} rdmap_opcodes[] = {
    [IWARP_OP_WRITE] = {true, 0, "Write"},
    [IWARP_OP_READ_REQUEST] = {false, IWARP_QN_READ_REQUEST, "Read Request"},
    [IWARP_OP_READ_RESPONSE] = {true, 0, "Read Response"},
    [IWARP_OP_SEND] = {false, IWARP_QN_SEND, "Send"},
    [IWARP_OP_SEND_INVALIDATE] = {false, IWARP_QN_SEND, "Send with Invalidate"},
    [IWARP_OP_SEND_SE] = {false, IWARP_QN_SEND, "Send with SE"},
    [IWARP_OP_SEND_SE_INVALIDATE] = {false, IWARP_QN_SEND, "Send with SE and Invalidate"},
    [IWARP_OP_TERMINATE] = {false, IWARP_QN_TERMINATE, "Terminate"},
    [IWARP_OP_IMMEDIATE] = {false, IWARP_QN_SEND, "Immediate Data"},
    [IWARP_OP_IMMEDIATE_SE] = {false, IWARP_QN_SEND, "Immediate Data with SE"},
    [IWARP_OP_ATOMIC_REQUEST] = {false, IWARP_QN_READ_REQUEST, "Atomic Request"},
    [IWARP_OP_ATOMIC_RESPONSE] = {false, IWARP_QN_ATOMIC_RESPONSE, "Atomic Response"},
};

#define RDMAP_OPCODE_COUNT (sizeof rdmap_opcodes / sizeof rdmap_opcodes[0])

static enum iwarp_verdict rdmap_fail(struct iwarp_segment *out, iwarp_error error)
{
    out->error = error;
    return IWARP_TERMINATE;
}

/* A message that is one segment with a body of fixed length. */
static iwarp_error rdmap_check_fixed(const struct iwarp_segment *segment, uint32_t body_len)
{
    if (segment->payload_len < body_len) {
        return IWARP_ERR_DDP_LOCAL;
    }
    if (!segment->last || segment->mo != 0) {
        return IWARP_ERR_UNTAG_MO;
    }
    if (segment->payload_len > body_len) {
        return IWARP_ERR_UNTAG_LENGTH;
    }
    return IWARP_NO_ERROR;
}

static iwarp_error rdmap_check_atomic_request(const struct iwarp_segment *segment)
{
    iwarp_error error = rdmap_check_fixed(segment, IWARP_ATOMIC_REQUEST_LEN);
    unsigned operation;

    if (error != IWARP_NO_ERROR) {
        return error;
    }
    operation = segment->payload[IWARP_ATOMIC_OFF_OPCODE + 3] & 0x0fu;
    if (operation != IWARP_ATOMIC_FETCH_ADD && operation != IWARP_ATOMIC_CMP_SWAP) {
        return IWARP_ERR_OP_OPCODE;
    }
    if ((iwarp_get_be64(segment->payload + IWARP_ATOMIC_OFF_TO) & 7u) != 0) {
        return IWARP_ERR_OP_STREAM;
    }
    return IWARP_NO_ERROR;
}

void iwarp_rdmap_get_read_request(const uint8_t *body, struct iwarp_read_request *out)
{
    out->sink_stag = iwarp_get_be32(body + IWARP_READ_OFF_SINK_STAG);
    out->sink_to = iwarp_get_be64(body + IWARP_READ_OFF_SINK_TO);
    out->size = iwarp_get_be32(body + IWARP_READ_OFF_SIZE);
    out->source_stag = iwarp_get_be32(body + IWARP_READ_OFF_SOURCE_STAG);
    out->source_to = iwarp_get_be64(body + IWARP_READ_OFF_SOURCE_TO);
}

/* Checks that belong to one opcode; the model and the queue are right already. */
static iwarp_error rdmap_check_opcode(struct iwarp_segment *segment)
{
    iwarp_error error;

    switch (segment->opcode) {
    case IWARP_OP_READ_REQUEST:
        error = rdmap_check_fixed(segment, IWARP_READ_BODY_LEN);
        if (error == IWARP_NO_ERROR) {
            iwarp_rdmap_get_read_request(segment->payload, &segment->read);
        }
        return error;
    case IWARP_OP_IMMEDIATE:
    case IWARP_OP_IMMEDIATE_SE:
        return segment->payload_len == IWARP_IMMEDIATE_BODY_LEN && segment->last
                   ? IWARP_NO_ERROR
                   : IWARP_ERR_OP_OTHER;
    case IWARP_OP_ATOMIC_REQUEST:
        return rdmap_check_atomic_request(segment);
    case IWARP_OP_ATOMIC_RESPONSE:
        return rdmap_check_fixed(segment, IWARP_ATOMIC_RESPONSE_LEN);
    default:
        return IWARP_NO_ERROR;
    }
}

static bool rdmap_terminate_well_formed(const struct iwarp_segment *segment)
{
    return segment->qn == IWARP_QN_TERMINATE && segment->msn == IWARP_MSN_FIRST &&
           segment->mo == 0 && segment->last && segment->payload_len >= IWARP_TERM_CONTROL_LEN;
}

enum iwarp_verdict iwarp_rdmap_decode(const uint8_t *ulpdu, uint32_t ulpdu_len, unsigned flags,
                                      struct iwarp_segment *out)
{
    enum iwarp_verdict verdict;
    bool version_good;
    unsigned opcode;

    if (ulpdu_len == 0 && (flags & IWARP_DECODE_EMPTY) != 0) {
        *out = (struct iwarp_segment){
            .ulpdu = ulpdu, .payload = ulpdu, .opcode = IWARP_OP_EMPTY, .last = true};
        return IWARP_OK;
    }
    verdict = iwarp_ddp_decode(ulpdu, ulpdu_len, out);
    if (verdict != IWARP_OK) {
        return verdict;
    }
    opcode = out->control & IWARP_RDMAP_OPCODE_MASK;
    version_good = (out->control & IWARP_RDMAP_VERSION_MASK) == IWARP_RDMAP_VERSION;
    out->opcode = (uint8_t)opcode;
    if (!out->tagged) {
        if (opcode == IWARP_OP_TERMINATE && version_good) {
            return rdmap_terminate_well_formed(out) ? IWARP_OK : IWARP_CLOSE;
        }
        if (out->qn >= IWARP_QN_COUNT) {
            return rdmap_fail(out, IWARP_ERR_UNTAG_QN);
        }
    }
    if (!version_good) {
        return rdmap_fail(out, IWARP_ERR_OP_VERSION);
    }
    if (opcode >= RDMAP_OPCODE_COUNT ||
        (opcode > IWARP_OP_TERMINATE && (flags & IWARP_DECODE_EXTENSIONS) == 0)) {
        return rdmap_fail(out, IWARP_ERR_OP_OPCODE);
    }
    if (out->tagged != rdmap_opcodes[opcode].tagged && !RED("iwarp-rdmap-tagged-bit-unchecked")) {
        return rdmap_fail(out, IWARP_ERR_OP_OPCODE);
    }
    if (out->tagged) {
        return IWARP_OK;
    }
    if (out->qn != rdmap_opcodes[opcode].qn && !RED("iwarp-rdmap-queue-unchecked")) {
        return rdmap_fail(out, IWARP_ERR_UNTAG_QN);
    }
    out->error = rdmap_check_opcode(out);
    return out->error == IWARP_NO_ERROR ? IWARP_OK : IWARP_TERMINATE;
}

const char *iwarp_opcode_name(unsigned opcode)
{
    if (opcode == IWARP_OP_EMPTY) {
        return "empty FPDU";
    }
    return opcode < RDMAP_OPCODE_COUNT ? rdmap_opcodes[opcode].name : "unassigned";
}

static uint8_t rdmap_control(enum iwarp_opcode opcode)
{
    return (uint8_t)(IWARP_RDMAP_VERSION | (unsigned)opcode);
}

size_t iwarp_rdmap_put_write(uint8_t *dst, uint32_t stag, uint64_t to, uint32_t payload_len,
                             bool last)
{
    return iwarp_ddp_put_tagged(dst, payload_len, last, rdmap_control(IWARP_OP_WRITE), stag, to);
}

size_t iwarp_rdmap_put_read_response(uint8_t *dst, uint32_t stag, uint64_t to, uint32_t payload_len,
                                     bool last)
{
    return iwarp_ddp_put_tagged(dst, payload_len, last, rdmap_control(IWARP_OP_READ_RESPONSE), stag,
                                to);
}

size_t iwarp_rdmap_put_send(uint8_t *dst, enum iwarp_opcode opcode, uint32_t inv_stag, uint32_t msn,
                            uint32_t mo, uint32_t payload_len, bool last)
{
    if (!iwarp_opcode_invalidates(opcode) && !RED("iwarp-rdmap-send-leaks-stag")) {
        inv_stag = 0;
    }
    return iwarp_ddp_put_untagged(dst, payload_len, last, rdmap_control(opcode), inv_stag,
                                  IWARP_QN_SEND, msn, mo);
}

size_t iwarp_rdmap_put_read_request(uint8_t *dst, uint32_t msn,
                                    const struct iwarp_read_request *request)
{
    uint8_t *body = dst + iwarp_ddp_put_untagged(dst, IWARP_READ_BODY_LEN, true,
                                                 rdmap_control(IWARP_OP_READ_REQUEST), 0,
                                                 IWARP_QN_READ_REQUEST, msn, 0);

    iwarp_put_be32(body + IWARP_READ_OFF_SINK_STAG, request->sink_stag);
    iwarp_put_be64(body + IWARP_READ_OFF_SINK_TO, request->sink_to);
    iwarp_put_be32(body + IWARP_READ_OFF_SIZE, request->size);
    iwarp_put_be32(body + IWARP_READ_OFF_SOURCE_STAG, request->source_stag);
    iwarp_put_be64(body + IWARP_READ_OFF_SOURCE_TO, request->source_to);
    return IWARP_FPDU_READ_REQUEST_LEN;
}

size_t iwarp_rdmap_put_rtr_write(uint8_t *dst, uint32_t stag, bool crc)
{
    size_t len = iwarp_rdmap_put_write(dst, stag, 0, 0, true);

    return len + iwarp_fpdu_put_trailer(dst + len, crc, dst, len, NULL, 0);
}

size_t iwarp_rdmap_put_rtr_read(uint8_t *dst, uint32_t sink_stag, uint32_t source_stag, bool crc)
{
    const struct iwarp_read_request request = {.sink_stag = sink_stag, .source_stag = source_stag};
    size_t len = iwarp_rdmap_put_read_request(dst, IWARP_MSN_FIRST, &request);

    return len + iwarp_fpdu_put_trailer(dst + len, crc, dst, len, NULL, 0);
}

void iwarp_rdmap_get_atomic_request(const struct iwarp_segment *segment,
                                    struct iwarp_atomic_request *out)
{
    const uint8_t *body = segment->payload;

    out->operation = body[IWARP_ATOMIC_OFF_OPCODE + 3] & 0x0fu;
    out->id = iwarp_get_be32(body + IWARP_ATOMIC_OFF_ID);
    out->stag = iwarp_get_be32(body + IWARP_ATOMIC_OFF_STAG);
    out->to = iwarp_get_be64(body + IWARP_ATOMIC_OFF_TO);
    out->data = iwarp_get_be64(body + IWARP_ATOMIC_OFF_DATA);
    out->mask = iwarp_get_be64(body + IWARP_ATOMIC_OFF_MASK);
    out->compare = iwarp_get_be64(body + IWARP_ATOMIC_OFF_COMPARE);
    out->compare_mask = iwarp_get_be64(body + IWARP_ATOMIC_OFF_COMPARE_MASK);
}

void iwarp_rdmap_get_atomic_response(const struct iwarp_segment *segment,
                                     struct iwarp_atomic_response *out)
{
    out->id = iwarp_get_be32(segment->payload);
    out->value = iwarp_get_be64(segment->payload + 4);
}
