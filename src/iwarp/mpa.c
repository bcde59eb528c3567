// SPDX-License-Identifier: MIT
/*
 * mpa.c - MPA startup frames and their parser. The negotiation is in mpa_negotiate.c.
 *
 * Invariants: the parser takes no octet beyond its frame, stores at most IWARP_MPA_FRAME_MAX
 * octets, and judges each header octet as it comes. Called by the connection's startup.
 */
#include "iwarp/mpa.h"

#include <string.h>

#include "base/red.h"

static const uint8_t *mpa_key(enum iwarp_mpa_kind kind)
{
    return (const uint8_t *)(kind == IWARP_MPA_REQUEST ? IWARP_MPA_KEY_REQUEST
                                                       : IWARP_MPA_KEY_REPLY);
}

/* ---- encoding ------------------------------------------------------------------------------ */

static void mpa_put_words(uint8_t *dst, const struct iwarp_mpa_frame *frame)
{
    unsigned first = frame->ird & IWARP_MPA_DEPTH_MASK;
    unsigned second = frame->ord & IWARP_MPA_DEPTH_MASK;

    first |= frame->peer_to_peer ? IWARP_MPA_WORD_HIGH : 0u;
    first |= (frame->rtr & IWARP_RTR_SEND) != 0 ? IWARP_MPA_WORD_LOW : 0u;
    second |= (frame->rtr & IWARP_RTR_WRITE) != 0 ? IWARP_MPA_WORD_HIGH : 0u;
    second |= (frame->rtr & IWARP_RTR_READ) != 0 ? IWARP_MPA_WORD_LOW : 0u;
    iwarp_put_be16(dst, (uint16_t)first);
    iwarp_put_be16(dst + 2, (uint16_t)second);
}

size_t iwarp_mpa_put(uint8_t *dst, const struct iwarp_mpa_frame *frame)
{
    uint32_t prefix = frame->enhanced ? IWARP_MPA_PREFIX_LEN : 0;
    uint32_t pd_length = prefix + frame->private_len;
    unsigned flags = 0;

    if (frame->private_len > iwarp_mpa_private_max(frame->enhanced)) {
        return 0;
    }
    flags |= frame->markers ? IWARP_MPA_FLAG_M : 0u;
    flags |= frame->crc ? IWARP_MPA_FLAG_C : 0u;
    flags |= frame->rejected ? IWARP_MPA_FLAG_R : 0u;
    flags |= frame->enhanced ? IWARP_MPA_FLAG_S : 0u;
    memcpy(dst, mpa_key(frame->kind), IWARP_MPA_KEY_LEN);
    dst[IWARP_MPA_OFF_FLAGS] = (uint8_t)flags;
    dst[IWARP_MPA_OFF_REVISION] = frame->revision;
    iwarp_put_be16(dst + IWARP_MPA_OFF_PD_LENGTH, (uint16_t)pd_length);
    if (frame->enhanced) {
        mpa_put_words(dst + IWARP_MPA_HEADER_LEN, frame);
    }
    if (frame->private_len > 0) {
        memcpy(dst + IWARP_MPA_HEADER_LEN + prefix, frame->private_data, frame->private_len);
    }
    return IWARP_MPA_HEADER_LEN + pd_length;
}

/* ---- parsing ------------------------------------------------------------------------------- */

void iwarp_mpa_parser_init(struct iwarp_mpa_parser *parser, enum iwarp_mpa_kind kind, uint8_t asked)
{
    memset(parser, 0, sizeof *parser);
    parser->kind = (uint8_t)kind;
    parser->asked = asked;
}

/* Octets the frame has as far as known: the header, then the whole of it. */
static uint32_t mpa_frame_len(const struct iwarp_mpa_parser *parser)
{
    if (parser->have < IWARP_MPA_HEADER_LEN) {
        return IWARP_MPA_HEADER_LEN;
    }
    return IWARP_MPA_HEADER_LEN + (uint32_t)iwarp_get_be16(parser->buf + IWARP_MPA_OFF_PD_LENGTH);
}

size_t iwarp_mpa_parser_want(const struct iwarp_mpa_parser *parser)
{
    return parser->done ? 0 : mpa_frame_len(parser) - parser->have;
}

static bool mpa_honours_s(const struct iwarp_mpa_parser *parser)
{
    return (parser->buf[IWARP_MPA_OFF_FLAGS] & IWARP_MPA_FLAG_S) != 0 &&
           (parser->buf[IWARP_MPA_OFF_REVISION] >= 2 || RED("iwarp-mpa-s-in-revision-1"));
}

static enum iwarp_mpa_fault mpa_check_revision(const struct iwarp_mpa_parser *parser)
{
    uint8_t revision = parser->buf[IWARP_MPA_OFF_REVISION];

    if (parser->kind == IWARP_MPA_REQUEST) {
        return revision == 1 || revision == 2 ? IWARP_MPA_FAULT_NONE : IWARP_MPA_FAULT_REVISION;
    }
    if (revision != parser->asked && !RED("iwarp-mpa-reply-revision-unchecked")) {
        return IWARP_MPA_FAULT_REVISION;
    }
    return revision == 2 && !mpa_honours_s(parser) ? IWARP_MPA_FAULT_PLAIN : IWARP_MPA_FAULT_NONE;
}

static enum iwarp_mpa_fault mpa_check_length(const struct iwarp_mpa_parser *parser)
{
    uint32_t length = iwarp_get_be16(parser->buf + IWARP_MPA_OFF_PD_LENGTH);

    if (length > IWARP_MPA_PD_MAX) {
        return IWARP_MPA_FAULT_LENGTH;
    }
    return mpa_honours_s(parser) && length < IWARP_MPA_PREFIX_LEN ? IWARP_MPA_FAULT_PREFIX
                                                                  : IWARP_MPA_FAULT_NONE;
}

/* Judges the header octet at `at`, which was just stored; those before it passed. */
static enum iwarp_mpa_fault mpa_check_octet(const struct iwarp_mpa_parser *parser, uint32_t at)
{
    enum iwarp_mpa_kind kind = (enum iwarp_mpa_kind)parser->kind;
    uint8_t octet = parser->buf[at];

    if (at < IWARP_MPA_KEY_LEN) {
        enum iwarp_mpa_kind other = kind == IWARP_MPA_REQUEST ? IWARP_MPA_REPLY : IWARP_MPA_REQUEST;

        if (octet == mpa_key(kind)[at]) {
            return IWARP_MPA_FAULT_NONE;
        }
        return octet == mpa_key(other)[at] ? IWARP_MPA_FAULT_KIND : IWARP_MPA_FAULT_KEY;
    }
    if (at == IWARP_MPA_OFF_REVISION) {
        return mpa_check_revision(parser);
    }
    if (at == IWARP_MPA_OFF_PD_LENGTH) {
        return octet > IWARP_MPA_PD_MAX >> 8 ? IWARP_MPA_FAULT_LENGTH : IWARP_MPA_FAULT_NONE;
    }
    if (at == IWARP_MPA_OFF_PD_LENGTH + 1) {
        return mpa_check_length(parser);
    }
    return IWARP_MPA_FAULT_NONE; /* flags: reserved bits are ignored, the others judged later */
}

static void mpa_get_words(const uint8_t *src, struct iwarp_mpa_frame *out)
{
    unsigned first = iwarp_get_be16(src);
    unsigned second = iwarp_get_be16(src + 2);

    out->peer_to_peer = (first & IWARP_MPA_WORD_HIGH) != 0;
    out->rtr = (uint8_t)(((first & IWARP_MPA_WORD_LOW) != 0 ? IWARP_RTR_SEND : 0u) |
                         ((second & IWARP_MPA_WORD_HIGH) != 0 ? IWARP_RTR_WRITE : 0u) |
                         ((second & IWARP_MPA_WORD_LOW) != 0 ? IWARP_RTR_READ : 0u));
    out->ird = (uint16_t)(first & IWARP_MPA_DEPTH_MASK);
    out->ord = (uint16_t)(second & IWARP_MPA_DEPTH_MASK);
}

static void mpa_get_frame(const struct iwarp_mpa_parser *parser, struct iwarp_mpa_frame *out)
{
    const uint8_t *data = parser->buf + IWARP_MPA_HEADER_LEN;
    uint32_t length = iwarp_get_be16(parser->buf + IWARP_MPA_OFF_PD_LENGTH);
    unsigned flags = parser->buf[IWARP_MPA_OFF_FLAGS];

    memset(out, 0, sizeof *out);
    out->kind = (enum iwarp_mpa_kind)parser->kind;
    out->revision = parser->buf[IWARP_MPA_OFF_REVISION];
    out->markers = (flags & IWARP_MPA_FLAG_M) != 0;
    out->crc = (flags & IWARP_MPA_FLAG_C) != 0;
    out->rejected = (flags & IWARP_MPA_FLAG_R) != 0;
    out->enhanced = mpa_honours_s(parser);
    if (out->enhanced) {
        mpa_get_words(data, out);
        data += IWARP_MPA_PREFIX_LEN;
        length -= IWARP_MPA_PREFIX_LEN;
    }
    out->private_data = data;
    out->private_len = (uint16_t)length;
}

enum iwarp_verdict iwarp_mpa_parse(struct iwarp_mpa_parser *parser, const void *data, size_t len,
                                   size_t *consumed, struct iwarp_mpa_frame *out)
{
    const uint8_t *p = data;
    size_t used = 0;

    *consumed = 0;
    if (parser->done) {
        return IWARP_CLOSE;
    }
    while (parser->have < IWARP_MPA_HEADER_LEN && used < len) {
        parser->buf[parser->have] = p[used++];
        parser->fault = mpa_check_octet(parser, parser->have++);
        if (parser->fault != IWARP_MPA_FAULT_NONE) {
            parser->done = true;
            *consumed = used;
            return IWARP_CLOSE;
        }
    }
    if (parser->have >= IWARP_MPA_HEADER_LEN) {
        size_t want = iwarp_mpa_parser_want(parser);
        size_t take = len - used < want ? len - used : want;

        if (take > 0) {
            memcpy(parser->buf + parser->have, p + used, take);
            parser->have += (uint32_t)take;
            used += take;
        }
        if (RED("iwarp-mpa-swallows-next-octet") && used < len) {
            used++;
        }
        parser->done = take == want;
    }
    *consumed = used;
    if (!parser->done) {
        return IWARP_MORE;
    }
    mpa_get_frame(parser, out);
    return IWARP_OK;
}

const char *iwarp_mpa_fault_text(enum iwarp_mpa_fault fault)
{
    switch (fault) {
    case IWARP_MPA_FAULT_NONE:
        return "no fault";
    case IWARP_MPA_FAULT_KEY:
        return "not an MPA frame";
    case IWARP_MPA_FAULT_KIND:
        return "the other kind of MPA frame: both ends initiate, or both respond";
    case IWARP_MPA_FAULT_REVISION:
        return "MPA revision not acceptable";
    case IWARP_MPA_FAULT_LENGTH:
        return "private data longer than 512 octets";
    case IWARP_MPA_FAULT_PREFIX:
        return "S set, but no room for the IRD/ORD words";
    case IWARP_MPA_FAULT_PLAIN:
        return "Reply without S to a Request with S";
    case IWARP_MPA_FAULT_MARKERS:
        return "peer demands markers";
    case IWARP_MPA_FAULT_REJECTED:
        return "peer rejected the connection";
    case IWARP_MPA_FAULT_IRD:
        return "peer wants more reads open than can be held";
    case IWARP_MPA_FAULT_RTR:
        return "no ready-to-receive message in common";
    }
    return "unknown fault";
}
