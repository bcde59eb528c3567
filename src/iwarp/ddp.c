// SPDX-License-Identifier: MIT
/*
 * ddp.c - DDP segment headers.
 *
 * Invariants: everything sent has DV=1 and the reserved bits zero; reserved bits received are not
 * looked at; no octet beyond ulpdu_len is read. Called by iwarp/rdmap and iwarp/terminate.
 */
#include "iwarp/ddp.h"

#include "base/red.h"

static uint8_t ddp_control(bool tagged, bool last)
{
    return (uint8_t)((tagged ? IWARP_DDP_T : 0u) | (last ? IWARP_DDP_L : 0u) | IWARP_DDP_VERSION);
}

size_t iwarp_ddp_put_tagged(uint8_t *dst, uint32_t payload_len, bool last, uint8_t ulp,
                            uint32_t stag, uint64_t to)
{
    uint8_t *header = dst + IWARP_FPDU_LENGTH_LEN;

    iwarp_put_be16(dst, (uint16_t)(IWARP_TAGGED_LEN + payload_len));
    header[IWARP_DDP_OFF_CONTROL] = ddp_control(true, last);
    header[IWARP_DDP_OFF_ULP] = ulp;
    iwarp_put_be32(header + IWARP_TAGGED_OFF_STAG, stag);
    iwarp_put_be64(header + IWARP_TAGGED_OFF_TO, to);
    return IWARP_FPDU_TAGGED_LEN;
}

size_t iwarp_ddp_put_untagged(uint8_t *dst, uint32_t payload_len, bool last, uint8_t ulp,
                              uint32_t ulp32, uint32_t qn, uint32_t msn, uint32_t mo)
{
    uint8_t *header = dst + IWARP_FPDU_LENGTH_LEN;

    iwarp_put_be16(dst, (uint16_t)(IWARP_UNTAGGED_LEN + payload_len));
    header[IWARP_DDP_OFF_CONTROL] = ddp_control(false, last);
    header[IWARP_DDP_OFF_ULP] = ulp;
    iwarp_put_be32(header + IWARP_UNTAGGED_OFF_ULP32, ulp32);
    iwarp_put_be32(header + IWARP_UNTAGGED_OFF_QN, qn);
    iwarp_put_be32(header + IWARP_UNTAGGED_OFF_MSN, msn);
    iwarp_put_be32(header + IWARP_UNTAGGED_OFF_MO, mo);
    return IWARP_FPDU_UNTAGGED_LEN;
}

static enum iwarp_verdict ddp_fail(struct iwarp_segment *out, iwarp_error error)
{
    out->error = error;
    return IWARP_TERMINATE;
}

enum iwarp_verdict iwarp_ddp_decode(const uint8_t *ulpdu, uint32_t ulpdu_len,
                                    struct iwarp_segment *out)
{
    uint32_t header_len;
    unsigned control;

    out->ulpdu = ulpdu;
    out->ulpdu_len = ulpdu_len;
    out->error = IWARP_NO_ERROR;
    if (ulpdu_len < IWARP_TAGGED_LEN) {
        return ddp_fail(out, IWARP_ERR_DDP_LOCAL);
    }
    control = ulpdu[IWARP_DDP_OFF_CONTROL];
    out->tagged = (control & IWARP_DDP_T) != 0;
    out->last = (control & IWARP_DDP_L) != 0;
    header_len = out->tagged ? IWARP_TAGGED_LEN : IWARP_UNTAGGED_LEN;
    if (ulpdu_len < header_len && !RED("iwarp-ddp-short-untagged-accepted")) {
        return ddp_fail(out, IWARP_ERR_DDP_LOCAL);
    }
    if ((control & IWARP_DDP_VERSION_MASK) != IWARP_DDP_VERSION) {
        return ddp_fail(out, out->tagged ? IWARP_ERR_TAG_VERSION : IWARP_ERR_UNTAG_VERSION);
    }
    out->control = ulpdu[IWARP_DDP_OFF_ULP];
    out->payload = ulpdu + header_len;
    out->payload_len = ulpdu_len - header_len;
    if (out->tagged) {
        out->msn = 0; /* told by a probe */
        out->stag = iwarp_get_be32(ulpdu + IWARP_TAGGED_OFF_STAG);
        out->to = iwarp_get_be64(ulpdu + IWARP_TAGGED_OFF_TO);
    } else {
        out->inv_stag = iwarp_get_be32(ulpdu + IWARP_UNTAGGED_OFF_ULP32);
        out->qn = iwarp_get_be32(ulpdu + IWARP_UNTAGGED_OFF_QN);
        out->msn = iwarp_get_be32(ulpdu + IWARP_UNTAGGED_OFF_MSN);
        out->mo = iwarp_get_be32(ulpdu + IWARP_UNTAGGED_OFF_MO);
    }
    return IWARP_OK;
}

uint32_t iwarp_ddp_segment_count(uint32_t len, uint32_t mulpdu, bool tagged)
{
    uint32_t room = iwarp_ddp_payload_max(mulpdu, tagged);

    if (len == 0 && !RED("iwarp-ddp-no-segment-for-empty-message")) {
        return 1;
    }
    return len / room + (len % room != 0);
}
