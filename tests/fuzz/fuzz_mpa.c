// SPDX-License-Identifier: MIT
/*
 * MPA startup frames: whatever comes, however it is cut, the verdict is the same; what is accepted
 * can be written again, and both negotiations keep to the limits.
 */
#include "fuzz.h"

#include <string.h>

#include "iwarp/mpa.h"

static enum iwarp_verdict whole(enum iwarp_mpa_kind kind, uint8_t asked, const uint8_t *data,
                                size_t size, size_t *consumed, struct iwarp_mpa_parser *parser,
                                struct iwarp_mpa_frame *out)
{
    iwarp_mpa_parser_init(parser, kind, asked);
    return iwarp_mpa_parse(parser, data, size, consumed, out);
}

/* In pieces of `step` octets, none of them wanted beyond the frame. */
static enum iwarp_verdict in_pieces(enum iwarp_mpa_kind kind, uint8_t asked, const uint8_t *data,
                                    size_t size, size_t step, size_t *consumed,
                                    struct iwarp_mpa_parser *parser, struct iwarp_mpa_frame *out)
{
    enum iwarp_verdict verdict = IWARP_MORE;

    *consumed = 0;
    iwarp_mpa_parser_init(parser, kind, asked);
    while (verdict == IWARP_MORE && *consumed < size) {
        size_t n = size - *consumed, used;

        if (n > step)
            n = step;
        need(iwarp_mpa_parser_want(parser) > 0);
        verdict = iwarp_mpa_parse(parser, data + *consumed, n, &used, out);
        need(used <= n);
        need(verdict != IWARP_MORE || used == n);
        *consumed += used;
    }
    return verdict;
}

static bool same(const struct iwarp_mpa_frame *a, const struct iwarp_mpa_frame *b)
{
    return a->kind == b->kind && a->revision == b->revision && a->markers == b->markers &&
           a->crc == b->crc && a->rejected == b->rejected && a->enhanced == b->enhanced &&
           a->private_len == b->private_len &&
           (a->private_len == 0 || memcmp(a->private_data, b->private_data, a->private_len) == 0) &&
           (!a->enhanced || (a->peer_to_peer == b->peer_to_peer && a->rtr == b->rtr &&
                             a->ird == b->ird && a->ord == b->ord));
}

static void written_again(const struct iwarp_mpa_frame *frame, uint8_t asked)
{
    uint8_t octets[IWARP_MPA_FRAME_MAX + 3]; /* and what lies behind */
    struct iwarp_mpa_parser parser;
    struct iwarp_mpa_frame again;
    size_t length = iwarp_mpa_put(octets, frame), consumed;

    need(length >= IWARP_MPA_HEADER_LEN && length <= IWARP_MPA_FRAME_MAX);
    memset(octets + length, 'M', 3);
    need(whole(frame->kind, asked, octets, length + 3, &consumed, &parser, &again) == IWARP_OK);
    need(consumed == length && same(frame, &again));
}

static void negotiate(const struct iwarp_mpa_frame *frame, struct iwarp_mpa_config *config)
{
    struct iwarp_mpa_frame other;
    struct iwarp_mpa_agreed agreed;
    enum iwarp_mpa_fault fault;
    enum iwarp_verdict verdict;
    iwarp_error error;

    memset(&agreed, 0, sizeof agreed);
    if (frame->kind == IWARP_MPA_REQUEST) {
        verdict = iwarp_mpa_answer(frame, config, &other, &agreed, &fault);
        need(verdict == (frame->markers ? IWARP_REFUSE : IWARP_OK));
        need(other.kind == IWARP_MPA_REPLY && other.revision == frame->revision);
        need(other.enhanced == frame->enhanced && !other.markers);
        need(other.rejected == (verdict == IWARP_REFUSE));
    } else {
        iwarp_mpa_make_request(config, &other);
        verdict = iwarp_mpa_judge(&other, config, frame, &agreed, &error, &fault);
        need(verdict == IWARP_OK || fault != IWARP_MPA_FAULT_NONE);
    }
    need(iwarp_mpa_fault_text(fault) != NULL);
    if (verdict != IWARP_OK)
        return;
    need(agreed.ird <= config->ird && agreed.ord <= config->ord);
    need(agreed.ird_slots >= (frame->kind == IWARP_MPA_REQUEST ? agreed.ird : 0));
    need((agreed.rtr & (agreed.rtr - 1)) == 0);
    need(agreed.crc || (!frame->crc && !config->crc));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {data, size};
    unsigned how = take(&in, 1);
    enum iwarp_mpa_kind kind = how & 1 ? IWARP_MPA_REPLY : IWARP_MPA_REQUEST;
    uint8_t asked = how & 2 ? 2 : 1;
    size_t step = take(&in, 1) + 1, first, second;
    struct iwarp_mpa_config config = {.revision = asked,
                                      .crc = how & 4,
                                      .peer_to_peer = how & 8,
                                      .rtr = how >> 4 & 7,
                                      .ird = (uint16_t)(take(&in, 1) % 129),
                                      .ord = (uint16_t)(take(&in, 1) % 129)};
    struct iwarp_mpa_parser a, b;
    struct iwarp_mpa_frame frame, cut;
    enum iwarp_verdict verdict = whole(kind, asked, in.at, in.left, &first, &a, &frame);

    need(first <= in.left);
    need(in_pieces(kind, asked, in.at, in.left, step, &second, &b, &cut) ==
         (in.left ? verdict : IWARP_MORE));
    need(a.fault == b.fault && iwarp_mpa_fault_text(a.fault) != NULL);
    if (verdict != IWARP_OK)
        return 0;
    need(first == second && same(&frame, &cut));
    need(frame.private_len <= iwarp_mpa_private_max(frame.enhanced));
    written_again(&frame, asked);
    negotiate(&frame, &config);
    return 0;
}
