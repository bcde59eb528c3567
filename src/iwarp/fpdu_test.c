// SPDX-License-Identifier: MIT
/* fpdu_test.c - framing: sizes, pad, CRC, every split, every published FPDU. */
#include "iwarp/fpdu.h"

#include <stdio.h>

#include "iwarp/crc32c.h"
#include "iwarp/test_vectors.h"

static const struct {
    const char *name;
    const char *text;
    uint32_t ulpdu_len;
} fpdus[] = {
    {"Send", V_SEND, 34},
    {"Write", V_WRITE, 19},
    {"Read Request", V_READ_REQUEST, 46},
    {"Read Response", V_READ_RESPONSE, 22},
    {"Send with SE and Invalidate", V_SEND_SE_INVALIDATE, 18},
    {"Send with Invalidate", V_SEND_INVALIDATE, 22},
    {"RTR Write", V_RTR_WRITE, 14},
    {"RTR Read", V_RTR_READ, 46},
    {"RTR Read Response", V_RTR_RESPONSE, 14},
    {"RTR Send", V_RTR_SEND, 18},
    {"RTR empty", V_RTR_EMPTY, 0},
    {"Terminate 1/1/00", V_TERM_STAG, 38},
    {"Terminate 0/1/01", V_TERM_READ_BOUNDS, 70},
    {"Terminate 1/2/02", V_TERM_NO_BUFFER, 42},
    {"Terminate 2/0/06", V_TERM_IRD, 22},
    {"Terminate 2/0/02", V_TERM_CRC, 22},
    {"Terminate 0/2/06", V_TERM_OPCODE, 22},
    {"siw Terminate 2/0/02", V_TERM_SIW_CRC, 22},
    {"siw Terminate 1/1/00", V_TERM_SIW_STAG, 38},
    {"Immediate", V_IMMEDIATE, 26},
    {"FetchAdd", V_FETCH_ADD, 70},
    {"CmpSwap", V_CMP_SWAP, 70},
    {"Atomic Response", V_ATOMIC_RESPONSE, 30},
};

static void w51_published_fpdus_parse_and_reencode(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(fpdus); i++) {
        const char *name = fpdus[i].name;
        size_t len;
        uint8_t *octets = octets_of(fpdus[i].text, &len);
        uint8_t trailer[IWARP_FPDU_TRAILER_MAX];
        struct iwarp_fpdu fpdu;
        size_t body = IWARP_FPDU_LENGTH_LEN + fpdus[i].ulpdu_len;

        check_case(iwarp_fpdu_parse(octets, len, true, &fpdu) == IWARP_OK, name);
        check_case(fpdu.size == len && fpdu.error == IWARP_NO_ERROR, name);
        check_case(fpdu.ulpdu == octets + 2 && fpdu.ulpdu_len == fpdus[i].ulpdu_len, name);
        check_case(iwarp_fpdu_put_trailer(trailer, true, octets, body, NULL, 0) == len - body,
                   name);
        check_case(memcmp(trailer, octets + body, len - body) == 0, name);
        free(octets);
    }
}

static void w54_any_part_of_an_fpdu_asks_for_more(void **state)
{
    size_t len;
    uint8_t *octets = octets_of(V_WRITE, &len);

    (void)state;
    for (size_t part = 0; part < len; part++) {
        uint8_t *cut = exact_copy(octets, part);
        struct iwarp_fpdu fpdu;

        assert_int_equal(iwarp_fpdu_parse(cut, part, true, &fpdu), IWARP_MORE);
        assert_int_equal(fpdu.size, part < 2 ? 0 : len);
        free(cut);
    }
    free(octets);
}

static void m22_every_flipped_bit_is_noticed(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(fpdus); i++) {
        size_t len;
        uint8_t *octets = octets_of(fpdus[i].text, &len);

        for (size_t bit = 16; bit < len * 8; bit++) { /* the length field is another row */
            struct iwarp_fpdu fpdu;

            octets[bit / 8] ^= (uint8_t)(1u << bit % 8);
            check_case(iwarp_fpdu_parse(octets, len, true, &fpdu) == IWARP_TERMINATE, "M-22");
            check_case(fpdu.error == IWARP_ERR_MPA_CRC, "M-22 2/0/02");
            check_case(iwarp_fpdu_parse(octets, len, false, &fpdu) == IWARP_OK, "W-20");
            octets[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        free(octets);
    }
}

static void m23_big_endian_crc_is_refused(void **state)
{
    size_t len;
    uint8_t *octets = octets_of(V_SEND, &len);
    struct iwarp_fpdu fpdu;

    (void)state;
    iwarp_put_be32(octets + len - 4, iwarp_get_le32(octets + len - 4));
    assert_int_equal(iwarp_fpdu_parse(octets, len, true, &fpdu), IWARP_TERMINATE);
    assert_int_equal(fpdu.error, IWARP_ERR_MPA_CRC);
    free(octets);
}

static void m24_altered_length_never_reads_beyond(void **state)
{
    size_t len;
    uint8_t *octets = octets_of(V_SEND, &len);

    (void)state;
    for (uint32_t value = 0; value <= 0xffff; value++) {
        struct iwarp_fpdu fpdu;
        enum iwarp_verdict verdict;

        if (value == 34) {
            continue;
        }
        iwarp_put_be16(octets, (uint16_t)value);
        verdict = iwarp_fpdu_parse(octets, len, true, &fpdu);
        assert_int_equal(verdict, iwarp_fpdu_size(value) > len ? IWARP_MORE : IWARP_TERMINATE);
        assert_int_equal(fpdu.size, iwarp_fpdu_size(value));
    }
    free(octets);
}

/* M-17: a second Request read as an FPDU: length 4d50, and the CRC does not match. */
static void m17_startup_frame_as_fpdu(void **state)
{
    uint8_t *octets = calloc(1, IWARP_FPDU_MAX);
    struct iwarp_fpdu fpdu;

    (void)state;
    assert_non_null(octets);
    memcpy(octets, IWARP_MPA_KEY_REQUEST, IWARP_MPA_KEY_LEN);
    assert_int_equal(iwarp_fpdu_parse(octets, 24, true, &fpdu), IWARP_MORE);
    assert_int_equal(fpdu.size, iwarp_fpdu_size(0x4d50));
    assert_int_equal(iwarp_fpdu_parse(octets, fpdu.size, true, &fpdu), IWARP_TERMINATE);
    free(octets);
}

static void m30_markers_are_noticed(void **state)
{
    static const char *const texts[] = {V_MARKER_FIRST, V_MARKER_INSIDE};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        size_t len;
        uint8_t *octets = octets_of(texts[i], &len);
        struct iwarp_fpdu fpdu;

        assert_int_equal(iwarp_fpdu_parse(octets, len, true, &fpdu), IWARP_TERMINATE);
        assert_int_equal(fpdu.error, IWARP_ERR_MPA_CRC);
        free(octets);
    }
}

static void w50_pad(void **state)
{
    static const uint32_t pads[] = {0, 3, 2, 1};
    uint8_t octets[64];

    (void)state;
    for (uint32_t n = 14; n <= 17; n++) {
        struct iwarp_fpdu fpdu;
        size_t len = 2 + n;
        size_t trailer;

        memset(octets, 0xee, sizeof octets);
        iwarp_put_be16(octets, (uint16_t)n);
        trailer = iwarp_fpdu_put_trailer(octets + len, true, octets, len, NULL, 0);
        assert_int_equal(iwarp_fpdu_pad(n), pads[n - 14]);
        assert_int_equal(trailer, pads[n - 14] + 4);
        assert_int_equal((len + trailer) % 4, 0);
        assert_int_equal(len + trailer, iwarp_fpdu_size(n));
        for (uint32_t i = 0; i < pads[n - 14]; i++) {
            assert_int_equal(octets[len + i], 0);
        }
        assert_int_equal(iwarp_fpdu_parse(octets, len + trailer, true, &fpdu), IWARP_OK);
    }
    for (uint32_t n = 0; n <= IWARP_ULPDU_MAX; n++) {
        assert_int_equal(iwarp_fpdu_size(n) % 4, 0);
        assert_true(iwarp_fpdu_pad(n) <= 3 && iwarp_fpdu_size(n) <= IWARP_FPDU_MAX);
    }
}

static void w53_pad_is_not_looked_at_but_covered(void **state)
{
    size_t len;
    uint8_t *octets = octets_of(V_WRITE, &len);
    struct iwarp_fpdu fpdu;

    (void)state;
    memset(octets + 21, 0x5a, 3);
    assert_int_equal(iwarp_fpdu_parse(octets, len, true, &fpdu), IWARP_TERMINATE);
    iwarp_put_le32(octets + 24, iwarp_crc32c_final(iwarp_crc32c(iwarp_crc32c_init(), octets, 24)));
    assert_int_equal(iwarp_fpdu_parse(octets, len, true, &fpdu), IWARP_OK);
    free(octets);
}

static void w20_crc_off(void **state)
{
    size_t len;
    uint8_t *octets = octets_of(V_WRITE, &len);
    uint8_t trailer[IWARP_FPDU_TRAILER_MAX];
    struct iwarp_fpdu fpdu;

    (void)state;
    memset(trailer, 0xee, sizeof trailer);
    assert_int_equal(iwarp_fpdu_put_trailer(trailer, false, octets, 21, NULL, 0), 7);
    for (size_t i = 0; i < sizeof trailer; i++) {
        assert_int_equal(trailer[i], 0);
    }
    iwarp_put_be32(octets + 24, 0xdeadbeefu);
    assert_int_equal(iwarp_fpdu_parse(octets, len, false, &fpdu), IWARP_OK);
    assert_int_equal(fpdu.ulpdu_len, 19);
    free(octets);
}

static void trailer_over_scattered_payload(void **state)
{
    size_t len;
    uint8_t *octets = octets_of(V_WRITE, &len);
    const struct iwarp_span spans[] = {
        {octets + 16, 1}, {NULL, 0}, {octets + 17, 3}, {octets + 20, 1}};
    uint8_t trailer[IWARP_FPDU_TRAILER_MAX];
    uint32_t crc = iwarp_crc32c(iwarp_crc32c_init(), octets, 21);

    (void)state;
    assert_int_equal(iwarp_fpdu_put_trailer(trailer, true, octets, 16, spans, COUNT_OF(spans)), 7);
    assert_memory_equal(trailer, octets + 21, 7);
    memset(trailer, 0, sizeof trailer);
    assert_int_equal(iwarp_fpdu_put_trailer_state(trailer, 19, true, crc), 7);
    assert_memory_equal(trailer, octets + 21, 7);
    free(octets);
}

/* Ten FPDUs in one buffer, then the same stream in two pieces at every boundary. */
static void w54_w55_stream_of_fpdus(void **state)
{
    uint8_t stream[2048];
    size_t total = 0;

    (void)state;
    for (size_t i = 0; i < 10; i++) {
        size_t len;
        uint8_t *octets = octets_of(fpdus[i].text, &len);

        memcpy(stream + total, octets, len);
        total += len;
        free(octets);
    }
    for (size_t cut = 0; cut <= total; cut++) {
        size_t at = 0;
        size_t found = 0;
        size_t ends[2] = {cut, total};

        for (size_t piece = 0; piece < 2; piece++) {
            struct iwarp_fpdu fpdu;

            while (iwarp_fpdu_parse(stream + at, ends[piece] - at, true, &fpdu) == IWARP_OK) {
                assert_int_equal(fpdu.ulpdu_len, fpdus[found].ulpdu_len);
                at += fpdu.size;
                found++;
            }
        }
        assert_int_equal(found, 10);
        assert_int_equal(at, total);
    }
}

static void w56_m27_largest_fpdus(void **state)
{
    static const uint32_t lengths[] = {65474, 65535};

    (void)state;
    for (size_t i = 0; i < COUNT_OF(lengths); i++) {
        uint32_t size = iwarp_fpdu_size(lengths[i]);
        uint8_t *octets = malloc(size);
        struct iwarp_fpdu fpdu;

        assert_non_null(octets);
        memset(octets, 0xa5, size);
        iwarp_put_be16(octets, (uint16_t)lengths[i]);
        iwarp_fpdu_put_trailer(octets + 2 + lengths[i], true, octets, 2 + lengths[i], NULL, 0);
        assert_int_equal(iwarp_fpdu_parse(octets, size - 1, true, &fpdu), IWARP_MORE);
        assert_int_equal(fpdu.size, size);
        assert_int_equal(iwarp_fpdu_parse(octets, size, true, &fpdu), IWARP_OK);
        assert_int_equal(fpdu.ulpdu_len, lengths[i]);
        free(octets);
    }
    assert_int_equal(iwarp_fpdu_size(65535), IWARP_FPDU_MAX);
}

static void w57_w58_mulpdu(void **state)
{
    static const struct {
        uint32_t emss;
        uint32_t mulpdu;
    } rows[] = {
        {536, 530},     {1440, 1434},   {1448, 1442},   {1460, 1454},         {8948, 8942},
        {8960, 8954},   {65483, 65474}, {65495, 65486}, {100, 128},           {0, 128},
        {3, 128},       {134, 128},     {137, 130},     {138, 130},           {140, 134},
        {65540, 65534}, {65541, 65534}, {70000, 65534}, {0xffffffffu, 65534},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_int_equal(iwarp_fpdu_mulpdu(rows[i].emss), rows[i].mulpdu);
    }
    for (uint32_t emss = 0; emss < 70000; emss++) {
        uint32_t mulpdu = iwarp_fpdu_mulpdu(emss);

        assert_true(mulpdu >= 128 && mulpdu <= 65534);
        if (mulpdu > 128) {
            assert_true(iwarp_fpdu_size(mulpdu) <= emss);
            assert_int_equal(iwarp_fpdu_pad(mulpdu), 0);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(w51_published_fpdus_parse_and_reencode),
        cmocka_unit_test(w54_any_part_of_an_fpdu_asks_for_more),
        cmocka_unit_test(m22_every_flipped_bit_is_noticed),
        cmocka_unit_test(m23_big_endian_crc_is_refused),
        cmocka_unit_test(m24_altered_length_never_reads_beyond),
        cmocka_unit_test(m17_startup_frame_as_fpdu),
        cmocka_unit_test(m30_markers_are_noticed),
        cmocka_unit_test(w50_pad),
        cmocka_unit_test(w53_pad_is_not_looked_at_but_covered),
        cmocka_unit_test(w20_crc_off),
        cmocka_unit_test(trailer_over_scattered_payload),
        cmocka_unit_test(w54_w55_stream_of_fpdus),
        cmocka_unit_test(w56_m27_largest_fpdus),
        cmocka_unit_test(w57_w58_mulpdu),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
