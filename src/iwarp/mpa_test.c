// SPDX-License-Identifier: MIT
/* mpa_test.c - startup frames: every published one, in every split, and what is not one. */
#include "iwarp/mpa.h"

#include <stdio.h>

#include "iwarp/test_vectors.h"

/* Parses `len` octets given in one piece. */
static enum iwarp_verdict parse(struct iwarp_mpa_parser *parser, enum iwarp_mpa_kind kind,
                                uint8_t asked, const uint8_t *octets, size_t len, size_t *consumed,
                                struct iwarp_mpa_frame *frame)
{
    iwarp_mpa_parser_init(parser, kind, asked);
    return iwarp_mpa_parse(parser, octets, len, consumed, frame);
}

static const struct {
    const char *name;
    const char *text;
    uint8_t asked;
    struct iwarp_mpa_frame frame;
} frames[] = {
    {"W-3 revision 1 Request",
     V_REQUEST_1,
     0,
     {.kind = IWARP_MPA_REQUEST,
      .revision = 1,
      .crc = true,
      .private_len = 5,
      .private_data = (const uint8_t *)"hello"}},
    {"W-1 revision 2 Request",
     V_REQUEST_2,
     0,
     {.kind = IWARP_MPA_REQUEST,
      .revision = 2,
      .crc = true,
      .enhanced = true,
      .peer_to_peer = true,
      .rtr = IWARP_RTR_WRITE | IWARP_RTR_READ,
      .ird = 16,
      .ord = 16}},
    {"Reply with Read",
     V_REPLY_READ,
     2,
     {.kind = IWARP_MPA_REPLY,
      .revision = 2,
      .crc = true,
      .enhanced = true,
      .peer_to_peer = true,
      .rtr = IWARP_RTR_READ,
      .ird = 16,
      .ord = 16}},
    {"siw Request",
     V_REQUEST_SIW,
     0,
     {.kind = IWARP_MPA_REQUEST, .revision = 2, .enhanced = true, .ird = 1, .ord = 1}},
    {"Reply to siw",
     V_REPLY_SIW,
     2,
     {.kind = IWARP_MPA_REPLY, .revision = 2, .crc = true, .enhanced = true, .ird = 1, .ord = 1}},
    {"Refusal",
     V_REPLY_REFUSED,
     2,
     {.kind = IWARP_MPA_REPLY,
      .revision = 2,
      .crc = true,
      .rejected = true,
      .enhanced = true,
      .ird = 4,
      .ord = 32}},
};

static void check_frame(const struct iwarp_mpa_frame *have, const struct iwarp_mpa_frame *want,
                        const char *name)
{
    check_case(have->kind == want->kind && have->revision == want->revision, name);
    check_case(have->markers == want->markers && have->crc == want->crc, name);
    check_case(have->rejected == want->rejected && have->enhanced == want->enhanced, name);
    check_case(have->peer_to_peer == want->peer_to_peer && have->rtr == want->rtr, name);
    check_case(have->ird == want->ird && have->ord == want->ord, name);
    check_case(have->private_len == want->private_len, name);
    check_case(want->private_len == 0 ||
                   memcmp(have->private_data, want->private_data, want->private_len) == 0,
               name);
}

static void w1_w3_published_frames_both_ways(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(frames); i++) {
        const char *name = frames[i].name;
        size_t len;
        size_t consumed;
        uint8_t *octets = octets_of(frames[i].text, &len);
        uint8_t encoded[IWARP_MPA_FRAME_MAX];
        struct iwarp_mpa_parser parser;
        struct iwarp_mpa_frame frame;

        check_case(parse(&parser, frames[i].frame.kind, frames[i].asked, octets, len, &consumed,
                         &frame) == IWARP_OK,
                   name);
        check_case(consumed == len && parser.fault == IWARP_MPA_FAULT_NONE, name);
        check_frame(&frame, &frames[i].frame, name);
        check_case(iwarp_mpa_put(encoded, &frames[i].frame) == len, name);
        check_case(memcmp(encoded, octets, len) == 0, name);
        free(octets);
    }
}

/* W-6, W-7, W-54: in two pieces, in single octets, with an FPDU right behind. */
static void w6_w7_every_split(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(frames); i++) {
        const char *name = frames[i].name;
        size_t len;
        uint8_t *octets = octets_of(frames[i].text, &len);
        uint8_t longer[64];
        struct iwarp_mpa_parser parser;
        struct iwarp_mpa_frame frame;
        size_t consumed;

        memcpy(longer, octets, len);
        memset(longer + len, 0xfd, sizeof longer - len);
        for (size_t cut = 0; cut < len; cut++) {
            iwarp_mpa_parser_init(&parser, frames[i].frame.kind, frames[i].asked);
            check_case(iwarp_mpa_parse(&parser, longer, cut, &consumed, &frame) == IWARP_MORE,
                       name);
            check_case(consumed == cut, name);
            check_case(iwarp_mpa_parser_want(&parser) >= 1, name);
            check_case(cut + iwarp_mpa_parser_want(&parser) <= len, name);
            check_case(iwarp_mpa_parse(&parser, longer + cut, sizeof longer - cut, &consumed,
                                       &frame) == IWARP_OK,
                       name);
            check_case(consumed == len - cut, name);
            check_frame(&frame, &frames[i].frame, name);
            check_case(iwarp_mpa_parser_want(&parser) == 0, name);
        }
        iwarp_mpa_parser_init(&parser, frames[i].frame.kind, frames[i].asked);
        for (size_t at = 0; at < len; at++) {
            enum iwarp_verdict verdict;

            check_case(iwarp_mpa_parse(&parser, NULL, 0, &consumed, &frame) == IWARP_MORE, name);
            verdict = iwarp_mpa_parse(&parser, octets + at, 1, &consumed, &frame);
            check_case(verdict == (at + 1 < len ? IWARP_MORE : IWARP_OK), name);
            check_case(consumed == 1, name);
        }
        check_frame(&frame, &frames[i].frame, name);
        check_case(iwarp_mpa_parse(&parser, octets, len, &consumed, &frame) == IWARP_CLOSE, name);
        check_case(consumed == 0, name);
        free(octets);
    }
}

/* Reading just what is wanted never takes an octet beyond the frame. */
static void w7_want_leads_to_the_end(void **state)
{
    size_t len;
    uint8_t *octets = octets_of(V_REQUEST_1, &len);
    struct iwarp_mpa_parser parser;
    struct iwarp_mpa_frame frame;
    size_t consumed;

    (void)state;
    iwarp_mpa_parser_init(&parser, IWARP_MPA_REQUEST, 0);
    assert_int_equal(iwarp_mpa_parser_want(&parser), 20);
    assert_int_equal(iwarp_mpa_parse(&parser, octets, 20, &consumed, &frame), IWARP_MORE);
    assert_int_equal(iwarp_mpa_parser_want(&parser), 5);
    assert_int_equal(iwarp_mpa_parse(&parser, octets + 20, 5, &consumed, &frame), IWARP_OK);
    free(octets);
}

/* W-2, W-26 and the lengths at which other stacks went wrong. */
static void w2_w26_private_data_lengths(void **state)
{
    static const uint16_t lengths[] = {0, 1, 3, 4, 5, 100, 251, 252, 255, 256, 257, 507, 508, 512};
    uint8_t data[512];

    (void)state;
    for (size_t i = 0; i < sizeof data; i++) {
        data[i] = (uint8_t)(i * 7 + 1);
    }
    for (size_t i = 0; i < COUNT_OF(lengths); i++) {
        for (unsigned enhanced = 0; enhanced <= 1; enhanced++) {
            const struct iwarp_mpa_frame frame = {.kind = IWARP_MPA_REQUEST,
                                                  .revision = (uint8_t)(1 + enhanced),
                                                  .crc = true,
                                                  .enhanced = enhanced != 0,
                                                  .ird = 3,
                                                  .ord = 5,
                                                  .private_len = lengths[i],
                                                  .private_data = data};
            uint8_t octets[IWARP_MPA_FRAME_MAX + 8];
            size_t len = iwarp_mpa_put(octets, &frame);
            struct iwarp_mpa_parser parser;
            struct iwarp_mpa_frame got;
            size_t consumed;

            if (lengths[i] > iwarp_mpa_private_max(enhanced != 0)) {
                assert_int_equal(len, 0);
                continue;
            }
            assert_int_equal(len, 20u + 4u * enhanced + lengths[i]);
            assert_int_equal(iwarp_get_be16(octets + 18), 4u * enhanced + lengths[i]);
            assert_memory_equal(octets + 20 + 4 * enhanced, data, lengths[i]);
            assert_int_equal(
                parse(&parser, IWARP_MPA_REQUEST, 0, octets, sizeof octets, &consumed, &got),
                IWARP_OK);
            assert_int_equal(consumed, len);
            assert_int_equal(got.private_len, lengths[i]);
            assert_memory_equal(got.private_data, data, lengths[i]);
        }
    }
    assert_int_equal(iwarp_mpa_private_max(false), 512);
    assert_int_equal(iwarp_mpa_private_max(true), 508);
}

static void m1_m2_m3_wrong_keys(void **state)
{
    (void)state;
    for (unsigned kind = 0; kind <= 1; kind++) {
        size_t len;
        uint8_t *octets = octets_of(kind == 0 ? V_REQUEST_2 : V_REPLY_READ, &len);
        struct iwarp_mpa_parser parser;
        struct iwarp_mpa_frame frame;
        size_t consumed;

        for (size_t at = 0; at < 16; at++) {
            octets[at] ^= 0x20;
            assert_int_equal(
                parse(&parser, (enum iwarp_mpa_kind)kind, 2, octets, len, &consumed, &frame),
                IWARP_CLOSE);
            assert_int_equal(consumed, at + 1); /* M-3: at the first wrong octet */
            assert_int_equal(parser.fault, IWARP_MPA_FAULT_KEY);
            assert_int_equal(
                parse(&parser, (enum iwarp_mpa_kind)kind, 2, octets, at + 1, &consumed, &frame),
                IWARP_CLOSE);
            octets[at] ^= 0x20;
        }
        assert_int_equal(
            parse(&parser, (enum iwarp_mpa_kind)(1 - kind), 2, octets, len, &consumed, &frame),
            IWARP_CLOSE); /* M-2 */
        assert_int_equal(parser.fault, IWARP_MPA_FAULT_KIND);
        assert_int_equal(iwarp_mpa_parse(&parser, octets, len, &consumed, &frame), IWARP_CLOSE);
        assert_int_equal(consumed, 0);
        free(octets);
    }
    for (size_t i = 0; i < 3; i++) {
        static const char *const others[] = {"GET / HTTP/1.1", "\x16\x03\x01\x02", "MPA id Req"};
        static const size_t wrong[] = {0, 0, 4};
        struct iwarp_mpa_parser parser;
        struct iwarp_mpa_frame frame;
        size_t consumed;

        assert_int_equal(parse(&parser, IWARP_MPA_REQUEST, 0, (const uint8_t *)others[i],
                               strlen(others[i]), &consumed, &frame),
                         IWARP_CLOSE);
        assert_int_equal(consumed, wrong[i] + 1);
    }
}

/* Header fields of a frame and what the parser makes of them. */
static const struct {
    const char *name;
    enum iwarp_mpa_kind kind;
    uint8_t asked;
    uint8_t flags;
    uint8_t revision;
    uint16_t pd_length;
    enum iwarp_mpa_fault fault;
} headers[] = {
    {"M-4 513", IWARP_MPA_REQUEST, 0, 0x40, 1, 513, IWARP_MPA_FAULT_LENGTH},
    {"M-4 ffff", IWARP_MPA_REQUEST, 0, 0x50, 2, 0xffff, IWARP_MPA_FAULT_LENGTH},
    {"M-4 0300", IWARP_MPA_REPLY, 2, 0x50, 2, 0x300, IWARP_MPA_FAULT_LENGTH},
    {"W-26 512", IWARP_MPA_REQUEST, 0, 0x40, 1, 512, IWARP_MPA_FAULT_NONE},
    {"M-10 revision 0", IWARP_MPA_REQUEST, 0, 0x40, 0, 0, IWARP_MPA_FAULT_REVISION},
    {"M-10 revision 3", IWARP_MPA_REQUEST, 0, 0x50, 3, 4, IWARP_MPA_FAULT_REVISION},
    {"M-10 revision 255", IWARP_MPA_REQUEST, 0, 0x50, 255, 4, IWARP_MPA_FAULT_REVISION},
    {"M-11 S in revision 1", IWARP_MPA_REQUEST, 0, 0x50, 1, 3, IWARP_MPA_FAULT_NONE},
    {"M-12 S with 0", IWARP_MPA_REQUEST, 0, 0x50, 2, 0, IWARP_MPA_FAULT_PREFIX},
    {"M-12 S with 1", IWARP_MPA_REQUEST, 0, 0x50, 2, 1, IWARP_MPA_FAULT_PREFIX},
    {"M-12 S with 3", IWARP_MPA_REQUEST, 0, 0x50, 2, 3, IWARP_MPA_FAULT_PREFIX},
    {"M-12 Reply S with 3", IWARP_MPA_REPLY, 2, 0x50, 2, 3, IWARP_MPA_FAULT_PREFIX},
    {"revision 2 without S", IWARP_MPA_REQUEST, 0, 0x40, 2, 3, IWARP_MPA_FAULT_NONE},
    {"M-13 Reply without S", IWARP_MPA_REPLY, 2, 0x40, 2, 4, IWARP_MPA_FAULT_PLAIN},
    {"M-13 Reply of revision 1", IWARP_MPA_REPLY, 2, 0x50, 1, 4, IWARP_MPA_FAULT_REVISION},
    {"Reply of revision 3", IWARP_MPA_REPLY, 2, 0x50, 3, 4, IWARP_MPA_FAULT_REVISION},
    {"Reply of revision 0", IWARP_MPA_REPLY, 1, 0x40, 0, 0, IWARP_MPA_FAULT_REVISION},
    {"M-14 Reply of revision 2", IWARP_MPA_REPLY, 1, 0x50, 2, 4, IWARP_MPA_FAULT_REVISION},
    {"M-14 stray S", IWARP_MPA_REPLY, 1, 0x50, 1, 2, IWARP_MPA_FAULT_NONE},
    {"W-13 revision 1 Reply", IWARP_MPA_REPLY, 1, 0x40, 1, 0, IWARP_MPA_FAULT_NONE},
    {"W-9 reserved flags", IWARP_MPA_REPLY, 2, 0x5f, 2, 4, IWARP_MPA_FAULT_NONE},
    {"W-25 siw hint", IWARP_MPA_REQUEST, 0, 0x18, 2, 4, IWARP_MPA_FAULT_NONE},
    {"W-22 Request with R", IWARP_MPA_REQUEST, 0, 0x70, 2, 4, IWARP_MPA_FAULT_NONE},
};

static void m4_m10_to_m14_headers(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(headers); i++) {
        uint8_t octets[IWARP_MPA_FRAME_MAX] = {0};
        struct iwarp_mpa_parser parser;
        struct iwarp_mpa_frame frame;
        enum iwarp_verdict verdict;
        size_t consumed;
        size_t len = 20u + headers[i].pd_length;

        memcpy(octets,
               headers[i].kind == IWARP_MPA_REQUEST ? IWARP_MPA_KEY_REQUEST : IWARP_MPA_KEY_REPLY,
               16);
        octets[16] = headers[i].flags;
        octets[17] = headers[i].revision;
        iwarp_put_be16(octets + 18, headers[i].pd_length);
        len = len < sizeof octets ? len : sizeof octets;
        verdict = parse(&parser, headers[i].kind, headers[i].asked, octets, len, &consumed, &frame);
        check_case(parser.fault == headers[i].fault, headers[i].name);
        if (headers[i].fault != IWARP_MPA_FAULT_NONE) {
            check_case(verdict == IWARP_CLOSE && consumed <= 20, headers[i].name);
            continue;
        }
        check_case(verdict == IWARP_OK && consumed == len, headers[i].name);
        check_case(frame.enhanced == (headers[i].revision == 2 && (headers[i].flags & 0x10) != 0),
                   headers[i].name);
        check_case(frame.private_len == headers[i].pd_length - (frame.enhanced ? 4 : 0),
                   headers[i].name);
    }
}

/* M-5, M-6: an announced length that does not come leaves the parser waiting, at every length. */
static void m5_m6_incomplete_frames_wait(void **state)
{
    uint8_t octets[IWARP_MPA_FRAME_MAX] = {0};

    (void)state;
    memcpy(octets, IWARP_MPA_KEY_REQUEST, 16);
    octets[16] = 0x50;
    octets[17] = 2;
    iwarp_put_be16(octets + 18, 512);
    for (size_t len = 0; len < sizeof octets; len++) {
        uint8_t *exact = exact_copy(octets, len);
        struct iwarp_mpa_parser parser;
        struct iwarp_mpa_frame frame;
        size_t consumed;

        assert_int_equal(parse(&parser, IWARP_MPA_REQUEST, 0, exact, len, &consumed, &frame),
                         IWARP_MORE);
        assert_int_equal(consumed, len);
        free(exact);
    }
}

static void all_flag_and_word_bits_both_ways(void **state)
{
    (void)state;
    for (unsigned bits = 0; bits < 256; bits++) {
        const struct iwarp_mpa_frame frame = {.kind = IWARP_MPA_REPLY,
                                              .revision = 2,
                                              .markers = (bits & 1u) != 0,
                                              .crc = (bits & 2u) != 0,
                                              .rejected = (bits & 4u) != 0,
                                              .enhanced = true,
                                              .peer_to_peer = (bits & 8u) != 0,
                                              .rtr = (uint8_t)(bits >> 4 & 7u),
                                              .ird = (bits & 0x80u) != 0 ? 0x3fff : 0x1234,
                                              .ord = (bits & 0x80u) != 0 ? 0 : 0x2aaa};
        uint8_t octets[IWARP_MPA_FRAME_MAX];
        struct iwarp_mpa_parser parser;
        struct iwarp_mpa_frame got;
        size_t consumed;

        assert_int_equal(iwarp_mpa_put(octets, &frame), 24);
        assert_int_equal(octets[16] & 0x0f, 0);
        assert_int_equal(parse(&parser, IWARP_MPA_REPLY, 2, octets, 24, &consumed, &got), IWARP_OK);
        check_frame(&got, &frame, "bits");
    }
}

static void faults_in_words(void **state)
{
    (void)state;
    for (int fault = IWARP_MPA_FAULT_NONE; fault <= IWARP_MPA_FAULT_RTR; fault++) {
        assert_string_not_equal(iwarp_mpa_fault_text((enum iwarp_mpa_fault)fault), "unknown fault");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(w1_w3_published_frames_both_ways),
        cmocka_unit_test(w6_w7_every_split),
        cmocka_unit_test(w7_want_leads_to_the_end),
        cmocka_unit_test(w2_w26_private_data_lengths),
        cmocka_unit_test(m1_m2_m3_wrong_keys),
        cmocka_unit_test(m4_m10_to_m14_headers),
        cmocka_unit_test(m5_m6_incomplete_frames_wait),
        cmocka_unit_test(all_flag_and_word_bits_both_ways),
        cmocka_unit_test(faults_in_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
