// SPDX-License-Identifier: MIT
/*
 * fpdu.c - MPA framing.
 *
 * Invariants: the CRC covers ULPDU_Length, ULPDU and pad, and is the only little-endian field; the
 * parser reads no octet at or beyond p + len; an FPDU is never longer than IWARP_FPDU_MAX.
 * Called by the connection's transmit and receive paths.
 */
#include "iwarp/fpdu.h"

#include <string.h>

#include "base/red.h"
#include "iwarp/crc32c.h"

#define MULPDU_MAX 65534u /* 2 + 65534 is a multiple of 4 */

static_assert(((IWARP_FPDU_LENGTH_LEN + MULPDU_MAX) & 3u) == 0, "largest ULPDU without pad");

uint32_t iwarp_fpdu_mulpdu(uint32_t emss)
{
    uint32_t overhead = IWARP_FPDU_LENGTH_LEN + IWARP_FPDU_CRC_LEN + (emss & 3u);

    if (RED("iwarp-fpdu-mulpdu-unrounded")) {
        overhead &= ~3u;
    }
    if (emss < IWARP_MULPDU_MIN + overhead) {
        return IWARP_MULPDU_MIN;
    }
    return emss - overhead > MULPDU_MAX ? MULPDU_MAX : emss - overhead;
}

size_t iwarp_fpdu_put_trailer_state(uint8_t *dst, uint32_t ulpdu_len, bool crc, uint32_t crc_state)
{
    uint32_t pad = iwarp_fpdu_pad(ulpdu_len);

    if (RED("iwarp-fpdu-pad-ignores-length-field")) {
        pad = (0u - ulpdu_len) & 3u;
    }
    if (pad != 0) {
        memset(dst, 0, pad);
        if (crc) {
            crc_state = iwarp_crc32c(crc_state, dst, pad);
        }
    }
    if (!crc) {
        iwarp_put_le32(dst + pad, 0);
    } else if (RED("iwarp-fpdu-crc-big-endian")) {
        iwarp_put_be32(dst + pad, iwarp_crc32c_final(crc_state));
    } else {
        iwarp_put_le32(dst + pad, iwarp_crc32c_final(crc_state));
    }
    return pad + IWARP_FPDU_CRC_LEN;
}

size_t iwarp_fpdu_put_trailer(uint8_t *dst, bool crc, const uint8_t *header, size_t header_len,
                              const struct iwarp_span *spans, size_t span_count)
{
    size_t octets = header_len;
    uint32_t state = iwarp_crc32c_init();

    if (crc) {
        state = iwarp_crc32c(state, header, header_len);
    }
    for (size_t i = 0; i < span_count; i++) {
        octets += spans[i].len;
        if (crc) {
            state = iwarp_crc32c(state, spans[i].base, spans[i].len);
        }
    }
    return iwarp_fpdu_put_trailer_state(dst, (uint32_t)(octets - IWARP_FPDU_LENGTH_LEN), crc,
                                        state);
}

enum iwarp_verdict iwarp_fpdu_parse(const uint8_t *p, size_t len, bool crc, struct iwarp_fpdu *out)
{
    uint32_t covered;
    uint32_t value;

    out->error = IWARP_NO_ERROR;
    if (len < IWARP_FPDU_LENGTH_LEN) {
        out->size = 0;
        return IWARP_MORE;
    }
    out->ulpdu = p + IWARP_FPDU_LENGTH_LEN;
    out->ulpdu_len = iwarp_get_be16(p);
    out->size = iwarp_fpdu_size(out->ulpdu_len);
    if (len < out->size) {
        return IWARP_MORE;
    }
    if (!crc || RED("iwarp-fpdu-crc-unchecked")) {
        return IWARP_OK;
    }
    covered = out->size - IWARP_FPDU_CRC_LEN;
    value = iwarp_crc32c_final(iwarp_crc32c(iwarp_crc32c_init(), p, covered));
    if (value != iwarp_get_le32(p + covered)) {
        out->error = IWARP_ERR_MPA_CRC;
        return IWARP_TERMINATE;
    }
    return IWARP_OK;
}
