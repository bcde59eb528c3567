// SPDX-License-Identifier: MIT
/*
 * FPDUs and what is in them: framing is the same however much lies behind, a bad CRC never passes,
 * a decoded segment lies inside its ULPDU, what was decoded can be encoded again, and Terminates
 * say what they were made of.
 */
#include "fuzz.h"

#include <string.h>

#include "iwarp/crc32c.h"
#include "iwarp/fpdu.h"
#include "iwarp/rdmap.h"
#include "iwarp/terminate.h"

static void same_request(const struct iwarp_read_request *a, const struct iwarp_read_request *b)
{
    need(a->sink_stag == b->sink_stag && a->sink_to == b->sink_to && a->size == b->size &&
         a->source_stag == b->source_stag && a->source_to == b->source_to);
}

/* The header of a segment, encoded again, decodes to the same. */
static void encoded_again(const struct iwarp_segment *s)
{
    static uint8_t octets[2 + 65535];
    struct iwarp_segment again;
    size_t n;

    switch (s->opcode) {
    case IWARP_OP_WRITE:
        n = iwarp_rdmap_put_write(octets, s->stag, s->to, s->payload_len, s->last);
        break;
    case IWARP_OP_READ_RESPONSE:
        n = iwarp_rdmap_put_read_response(octets, s->stag, s->to, s->payload_len, s->last);
        break;
    case IWARP_OP_READ_REQUEST:
        n = iwarp_rdmap_put_read_request(octets, s->msn, &s->read);
        break;
    case IWARP_OP_SEND:
    case IWARP_OP_SEND_INVALIDATE:
    case IWARP_OP_SEND_SE:
    case IWARP_OP_SEND_SE_INVALIDATE:
        n = iwarp_rdmap_put_send(octets, (enum iwarp_opcode)s->opcode, s->inv_stag, s->msn, s->mo,
                                 s->payload_len, s->last);
        break;
    default:
        return;
    }
    if (s->opcode != IWARP_OP_READ_REQUEST) {
        memcpy(octets + n, s->payload, s->payload_len);
        n += s->payload_len;
    }
    need(iwarp_get_be16(octets) == n - 2);
    need(iwarp_rdmap_decode(octets + 2, (uint32_t)n - 2, 0, &again) == IWARP_OK);
    need(again.opcode == s->opcode && again.tagged == s->tagged && again.last == s->last);
    need(again.payload_len == s->payload_len);
    if (s->tagged)
        need(again.stag == s->stag && again.to == s->to);
    else
        need(again.qn == s->qn && again.msn == s->msn && again.mo == s->mo);
    if (iwarp_opcode_invalidates(s->opcode))
        need(again.inv_stag == s->inv_stag);
    if (s->opcode == IWARP_OP_READ_REQUEST)
        same_request(&again.read, &s->read);
}

static void terminate(const struct iwarp_segment *s, bool startup)
{
    struct iwarp_terminate t;
    enum iwarp_verdict verdict = iwarp_terminate_decode(s, startup, &t);

    need(verdict == IWARP_OK || verdict == IWARP_CLOSE);
    need(iwarp_error_text(t.error) != NULL && iwarp_error_known(t.error) == t.known);
    if (verdict == IWARP_OK && t.has_ddp) {
        need(t.ddp >= s->ulpdu && t.ddp + t.ddp_len <= s->ulpdu + s->ulpdu_len);
        need(t.ddp_len == 14 || t.ddp_len == 18);
    }
}

/* Our own Terminate about this ULPDU, read by ourselves. */
static void answered(iwarp_error error, const uint8_t *ulpdu, uint32_t length)
{
    uint8_t octets[IWARP_FPDU_TERMINATE_MAX + IWARP_FPDU_TRAILER_MAX];
    size_t n = iwarp_terminate_put(octets, error, ulpdu, length);
    struct iwarp_segment segment;
    struct iwarp_terminate t;

    need(n >= 24 && n <= IWARP_FPDU_TERMINATE_MAX);
    need(iwarp_rdmap_decode(octets + 2, (uint32_t)n - 2, 0, &segment) == IWARP_OK);
    need(iwarp_terminate_decode(&segment, false, &t) == IWARP_OK);
    need(!t.known || t.error == error);
}

static void decode(const uint8_t *ulpdu, uint32_t length, unsigned flags, bool startup)
{
    struct iwarp_segment s;
    enum iwarp_verdict verdict = iwarp_rdmap_decode(ulpdu, length, flags, &s);

    if (verdict == IWARP_TERMINATE) {
        need(s.error != IWARP_NO_ERROR && iwarp_error_known(s.error));
        answered(s.error, ulpdu, length);
        return;
    }
    if (verdict != IWARP_OK || length == 0)
        return;
    need(s.payload >= ulpdu && s.payload + s.payload_len == ulpdu + length);
    need(iwarp_opcode_name(s.opcode) != NULL);
    encoded_again(&s);
    if (s.opcode == IWARP_OP_TERMINATE)
        terminate(&s, startup);
    if (s.opcode == IWARP_OP_ATOMIC_REQUEST) {
        struct iwarp_atomic_request request;

        iwarp_rdmap_get_atomic_request(&s, &request);
    } else if (s.opcode == IWARP_OP_ATOMIC_RESPONSE) {
        struct iwarp_atomic_response response;

        iwarp_rdmap_get_atomic_response(&s, &response);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {data, size};
    unsigned how = take(&in, 1);
    bool crc = how & 1;

    if (how & 2) { /* the rest is one ULPDU */
        if (in.left <= 65535)
            decode(in.at, (uint32_t)in.left, how >> 2 & 3, how & 16);
        return 0;
    }
    while (in.left) {
        struct iwarp_fpdu fpdu, shorter;
        enum iwarp_verdict verdict = iwarp_fpdu_parse(in.at, in.left, crc, &fpdu);

        if (verdict != IWARP_OK) {
            need(verdict == IWARP_MORE ? fpdu.size == 0 || fpdu.size > in.left
                                       : crc && fpdu.error == IWARP_ERROR(2, 0, 2));
            return 0;
        }
        need(fpdu.size <= in.left && fpdu.size % 4 == 0);
        need(fpdu.size == iwarp_fpdu_size(fpdu.ulpdu_len));
        need(fpdu.ulpdu == in.at + 2);
        need(iwarp_fpdu_parse(in.at, fpdu.size, crc, &shorter) == IWARP_OK);
        need(iwarp_fpdu_parse(in.at, fpdu.size - 1, crc, &shorter) == IWARP_MORE);
        decode(fpdu.ulpdu, fpdu.ulpdu_len, how >> 2 & 3, how & 16);
        in.at += fpdu.size;
        in.left -= fpdu.size;
    }
    return 0;
}
