// SPDX-License-Identifier: MIT
/* terminate_test.c - Terminates out and in, both orders, hostile lengths, errors in words. */
#include "iwarp/terminate.h"

#include <stdio.h>

#include "iwarp/fpdu.h"
#include "iwarp/rdmap.h"
#include "iwarp/test_vectors.h"

/* Encodes with trailer and compares with a published FPDU. */
static void check_put(const char *text, iwarp_error error, const uint8_t *ulpdu, uint32_t ulpdu_len)
{
    uint8_t fpdu[IWARP_FPDU_TERMINATE_MAX + IWARP_FPDU_TRAILER_MAX];
    size_t len = iwarp_terminate_put(fpdu, error, ulpdu, ulpdu_len);
    size_t expected_len;
    uint8_t *expected = octets_of(text, &expected_len);

    len += iwarp_fpdu_put_trailer(fpdu + len, true, fpdu, len, NULL, 0);
    assert_int_equal(len, expected_len);
    assert_memory_equal(fpdu, expected, len);
    free(expected);
}

static void w97_invalid_stag_of_a_write(void **state)
{
    uint8_t fpdu[IWARP_FPDU_TAGGED_LEN + 32] = {0};

    (void)state;
    iwarp_rdmap_put_write(fpdu, 0xdeadbe00u, 0x1000, 32, true);
    check_put(V_TERM_STAG, IWARP_ERR_TAG_STAG, fpdu + 2, 46);
}

static void w98_bounds_of_a_read_request(void **state)
{
    const struct iwarp_read_request request = {.sink_stag = 0x2200,
                                               .sink_to = 0x7f00aa000000u,
                                               .size = 0x1000,
                                               .source_stag = 0xa101,
                                               .source_to = 0x7f0012345000u};
    uint8_t fpdu[IWARP_FPDU_READ_REQUEST_LEN];
    uint8_t whole[IWARP_FPDU_TERMINATE_MAX];
    uint8_t rebuilt[IWARP_FPDU_TERMINATE_MAX];
    size_t len;

    (void)state;
    iwarp_rdmap_put_read_request(fpdu, 5, &request);
    check_put(V_TERM_READ_BOUNDS, IWARP_ERR_PROT_BOUNDS, fpdu + 2, 46);
    len = iwarp_terminate_put(whole, IWARP_ERR_PROT_BOUNDS, fpdu + 2, 46);
    assert_int_equal(len, IWARP_FPDU_TERMINATE_MAX);
    assert_int_equal(iwarp_terminate_put_read(rebuilt, IWARP_ERR_PROT_BOUNDS, 5, &request, 0), len);
    assert_memory_equal(rebuilt, whole, len);
}

static void m73_read_request_with_advanced_fields(void **state)
{
    const struct iwarp_read_request request = {.sink_stag = 1,
                                               .sink_to = 0x1000,
                                               .size = 3000,
                                               .source_stag = 2,
                                               .source_to = 0xfffffff0u};
    uint8_t fpdu[IWARP_FPDU_TERMINATE_MAX];
    size_t len = iwarp_terminate_put_read(fpdu, IWARP_ERR_PROT_STAG, 9, &request, 1440);
    struct iwarp_segment segment;
    struct iwarp_terminate term;

    (void)state;
    assert_int_equal(len, IWARP_FPDU_TERMINATE_MAX);
    assert_int_equal(iwarp_rdmap_decode(fpdu + 2, (uint32_t)len - 2, 0, &segment), IWARP_OK);
    assert_int_equal(iwarp_terminate_decode(&segment, false, &term), IWARP_OK);
    assert_true(term.has_read && term.has_ddp && term.has_length);
    assert_int_equal(term.segment_length, 46);
    assert_int_equal(iwarp_get_be32(term.ddp + 10), 9);
    assert_int_equal(term.read.sink_stag, 1);
    assert_true(term.read.sink_to == 0x1000 + 1440);
    assert_int_equal(term.read.size, 1560);
    assert_int_equal(term.read.source_stag, 2);
    assert_true(term.read.source_to == UINT64_C(0xfffffff0) + 1440);
}

static void w99_other_published_terminates(void **state)
{
    uint8_t fpdu[IWARP_FPDU_UNTAGGED_LEN + 16] = {0};

    (void)state;
    iwarp_rdmap_put_send(fpdu, IWARP_OP_SEND, 0, 9, 0, 16, true);
    check_put(V_TERM_NO_BUFFER, IWARP_ERR_UNTAG_NO_BUFFER, fpdu + 2, 34);
    check_put(V_TERM_IRD, IWARP_ERR_MPA_IRD, NULL, 0);
    check_put(V_TERM_CRC, IWARP_ERR_MPA_CRC, NULL, 0);
    check_put(V_TERM_CRC, IWARP_ERR_MPA_CRC, fpdu + 2, 34); /* layer 2 copies nothing */
    check_put(V_TERM_OPCODE, IWARP_ERR_OP_OPCODE, NULL, 0);
}

/* What is copied, by class of error and offender. */
static void headers_by_class(void **state)
{
    const struct iwarp_read_request request = {.size = 1};
    uint8_t read[IWARP_FPDU_READ_REQUEST_LEN];
    uint8_t write[IWARP_FPDU_TAGGED_LEN];
    uint8_t send[IWARP_FPDU_UNTAGGED_LEN];
    const struct {
        const char *name;
        iwarp_error error;
        const uint8_t *ulpdu;
        uint32_t len;
        uint8_t flags;
        size_t size;
    } rows[] = {
        {"0/0", IWARP_ERR_RDMAP_LOCAL, read + 2, 46, 0x00, 24},
        {"0/1 Read Request", IWARP_ERR_PROT_STAG, read + 2, 46, 0xe0, 72},
        {"0/1 Send", IWARP_ERR_PROT_INVALIDATE, send + 2, 18, 0xc0, 44},
        {"0/1 Write", IWARP_ERR_PROT_STAG, write + 2, 14, 0xc0, 40},
        {"0/2 Read Request", IWARP_ERR_OP_STREAM, read + 2, 46, 0xc0, 44},
        {"0/2 Write", IWARP_ERR_OP_VERSION, write + 2, 14, 0xc0, 40},
        {"1/0", IWARP_ERR_DDP_LOCAL, send + 2, 18, 0x00, 24},
        {"1/1", IWARP_ERR_TAG_WRAP, write + 2, 14, 0xc0, 40},
        {"1/2 Read Request", IWARP_ERR_UNTAG_LENGTH, read + 2, 46, 0xc0, 44},
        {"2/0", IWARP_ERR_MPA_CRC, send + 2, 18, 0x00, 24},
        {"nothing at hand", IWARP_ERR_TAG_STAG, NULL, 0, 0x00, 24},
        {"no octet", IWARP_ERR_TAG_STAG, write + 2, 0, 0x00, 24},
        {"header cut", IWARP_ERR_TAG_STAG, write + 2, 13, 0x00, 24},
        {"untagged header cut", IWARP_ERR_UNTAG_MSN, send + 2, 17, 0x00, 24},
        {"body of the Read Request cut", IWARP_ERR_PROT_STAG, read + 2, 45, 0xc0, 44},
    };

    (void)state;
    iwarp_rdmap_put_read_request(read, 1, &request);
    iwarp_rdmap_put_write(write, 1, 2, 0, true);
    iwarp_rdmap_put_send(send, IWARP_OP_SEND, 0, 1, 0, 0, true);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        uint8_t fpdu[IWARP_FPDU_TERMINATE_MAX];
        uint8_t *ulpdu = rows[i].ulpdu != NULL ? exact_copy(rows[i].ulpdu, rows[i].len) : NULL;
        size_t len = iwarp_terminate_put(fpdu, rows[i].error, ulpdu, rows[i].len);

        check_case(len == rows[i].size, rows[i].name);
        check_case(fpdu[22] == rows[i].flags && fpdu[23] == 0, rows[i].name);
        check_case(iwarp_get_be16(fpdu) == len - 2, rows[i].name);
        check_case(iwarp_get_be16(fpdu + 20) == (rows[i].error & 0xffffu), rows[i].name);
        check_case(len == 24 || iwarp_get_be16(fpdu + 24) == rows[i].len, rows[i].name);
        free(ulpdu);
    }
}

/* ---- received ------------------------------------------------------------------------------ */

static enum iwarp_verdict receive(const char *text, bool startup, struct iwarp_terminate *term,
                                  uint8_t **octets)
{
    size_t len;
    struct iwarp_fpdu fpdu;
    struct iwarp_segment segment;

    *octets = octets_of(text, &len);
    assert_int_equal(iwarp_fpdu_parse(*octets, len, true, &fpdu), IWARP_OK);
    assert_int_equal(iwarp_rdmap_decode(fpdu.ulpdu, fpdu.ulpdu_len, 0, &segment), IWARP_OK);
    assert_int_equal(segment.opcode, IWARP_OP_TERMINATE);
    return iwarp_terminate_decode(&segment, startup, term);
}

static void w103_published_terminates_decode(void **state)
{
    static const struct {
        const char *name;
        const char *text;
        iwarp_error error;
        bool startup;
        bool reversed;
        uint32_t ddp_len;
        uint16_t segment_length;
        bool has_read;
    } rows[] = {
        {"1/1/00", V_TERM_STAG, IWARP_ERR_TAG_STAG, false, false, 14, 0x2e, false},
        {"0/1/01", V_TERM_READ_BOUNDS, IWARP_ERR_PROT_BOUNDS, false, false, 18, 0x2e, true},
        {"W-103 1/2/02", V_TERM_NO_BUFFER, IWARP_ERR_UNTAG_NO_BUFFER, false, false, 18, 0x22,
         false},
        {"2/0/06 at startup", V_TERM_IRD, IWARP_ERR_MPA_IRD, true, false, 0, 0, false},
        {"2/0/02", V_TERM_CRC, IWARP_ERR_MPA_CRC, false, false, 0, 0, false},
        {"0/2/06", V_TERM_OPCODE, IWARP_ERR_OP_OPCODE, false, false, 0, 0, false},
        {"0/2/06 at startup: 2/0/06 of siw", V_TERM_OPCODE, IWARP_ERR_MPA_IRD, true, true, 0, 0,
         false},
        {"2/0/06 later: 0/2/06 of siw", V_TERM_IRD, IWARP_ERR_OP_OPCODE, false, true, 0, 0, false},
        {"W-105 2/0/02 of siw", V_TERM_SIW_CRC, IWARP_ERR_MPA_CRC, false, true, 0, 0, false},
        {"1/1/00 of siw", V_TERM_SIW_STAG, IWARP_ERR_TAG_STAG, false, true, 14, 0x20, false},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct iwarp_terminate term;
        uint8_t *octets;

        check_case(receive(rows[i].text, rows[i].startup, &term, &octets) == IWARP_OK,
                   rows[i].name);
        check_case(term.error == rows[i].error && term.known, rows[i].name);
        check_case(term.reversed == rows[i].reversed, rows[i].name);
        check_case(term.has_ddp == (rows[i].ddp_len != 0), rows[i].name);
        check_case(term.has_length == term.has_ddp, rows[i].name);
        check_case(term.ddp_len == rows[i].ddp_len, rows[i].name);
        check_case(term.segment_length == rows[i].segment_length, rows[i].name);
        check_case(term.has_read == rows[i].has_read, rows[i].name);
        if (rows[i].ddp_len == 14) {
            check_case(iwarp_get_be32(term.ddp + 2) == 0xdeadbe00u, rows[i].name);
        }
        if (rows[i].has_read) {
            check_case(term.read.size == 0x1000 && term.read.source_stag == 0xa101, rows[i].name);
        }
        free(octets);
    }
}

/* Control words with as many zeros behind as the headers need. */
static void w104_control_words(void **state)
{
    static const struct {
        const char *name;
        uint8_t control[3];
        bool startup;
        iwarp_error error;
        iwarp_error other; /* not 0: ambiguous */
        bool reversed;
        bool known;
    } rows[] = {
        {"siw bounds", {0x10, 0x01, 0x07}, false, IWARP_ERR_PROT_BOUNDS, 0, true, true},
        {"RFC bounds", {0x01, 0x01, 0xe0}, false, IWARP_ERR_PROT_BOUNDS, 0, false, true},
        {"siw 1/1/00", {0x11, 0x00, 0x03}, false, IWARP_ERR_TAG_STAG, 0, true, true},
        {"W-104", {0x21, 0x02, 0x03}, false, IWARP_ERR_UNTAG_NO_BUFFER, 0, true, true},
        {"W-103", {0x12, 0x02, 0xc0}, false, IWARP_ERR_UNTAG_NO_BUFFER, 0, false, true},
        {"W-105", {0x02, 0x02, 0x00}, false, IWARP_ERR_MPA_CRC, 0, true, true},
        {"RFC CRC", {0x20, 0x02, 0x00}, true, IWARP_ERR_MPA_CRC, 0, false, true},
        {"siw QN", {0x21, 0x01, 0x03}, false, IWARP_ERR_UNTAG_QN, 0, true, true},
        {"siw QN without headers", {0x21, 0x01, 0x00}, false, IWARP_ERR_UNTAG_QN, 0, true, true},
        {"siw DDP version", {0x21, 0x06, 0x00}, false, IWARP_ERR_UNTAG_VERSION, 0, true, true},
        {"siw invalidate", {0x20, 0x09, 0x00}, false, IWARP_ERR_OP_INVALIDATE, 0, true, true},
        {"20 05 later",
         {0x20, 0x05, 0x00},
         false,
         IWARP_ERR_OP_VERSION,
         IWARP_ERR_MPA_LOCAL,
         true,
         true},
        {"20 05 at startup",
         {0x20, 0x05, 0x00},
         true,
         IWARP_ERR_MPA_LOCAL,
         IWARP_ERR_OP_VERSION,
         false,
         true},
        {"20 06 at startup",
         {0x20, 0x06, 0x00},
         true,
         IWARP_ERR_MPA_IRD,
         IWARP_ERR_OP_OPCODE,
         false,
         true},
        {"20 06 later",
         {0x20, 0x06, 0x00},
         false,
         IWARP_ERR_OP_OPCODE,
         IWARP_ERR_MPA_IRD,
         true,
         true},
        {"02 06 at startup",
         {0x02, 0x06, 0x00},
         true,
         IWARP_ERR_MPA_IRD,
         IWARP_ERR_OP_OPCODE,
         true,
         true},
        {"02 06 later",
         {0x02, 0x06, 0x00},
         false,
         IWARP_ERR_OP_OPCODE,
         IWARP_ERR_MPA_IRD,
         false,
         true},
        {"02 07 at startup",
         {0x02, 0x07, 0x00},
         true,
         IWARP_ERR_MPA_RTR,
         IWARP_ERR_OP_STREAM,
         true,
         true},
        {"20 07 later",
         {0x20, 0x07, 0x00},
         false,
         IWARP_ERR_OP_STREAM,
         IWARP_ERR_MPA_RTR,
         true,
         true},
        {"01 00 bare",
         {0x01, 0x00, 0x00},
         false,
         IWARP_ERR_PROT_STAG,
         IWARP_ERR_DDP_LOCAL,
         false,
         true},
        {"0/0 any code", {0x00, 0x42, 0x00}, false, IWARP_ERROR(0, 0, 0x42), 0, false, true},
        {"M-86 layer", {0x31, 0x00, 0x00}, false, IWARP_ERROR(3, 1, 0), 0, false, false},
        {"M-86 code", {0x01, 0x77, 0xc0}, false, IWARP_ERROR(0, 1, 0x77), 0, false, false},
        {"M-86 type", {0x1f, 0x01, 0x00}, false, IWARP_ERROR(1, 15, 1), 0, false, false},
        {"RFC flags win", {0x12, 0x02, 0xc7}, false, IWARP_ERR_UNTAG_NO_BUFFER, 0, false, true},
        {"reserved flags only",
         {0x12, 0x02, 0x18},
         false,
         IWARP_ERR_UNTAG_NO_BUFFER,
         0,
         false,
         true},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        uint8_t body[IWARP_TERM_BODY_MAX] = {0};
        struct iwarp_segment segment = {.payload = body, .payload_len = sizeof body};
        struct iwarp_terminate term;

        memcpy(body, rows[i].control, 3);
        check_case(iwarp_terminate_decode(&segment, rows[i].startup, &term) == IWARP_OK,
                   rows[i].name);
        check_case(term.error == rows[i].error, rows[i].name);
        check_case(term.reversed == rows[i].reversed, rows[i].name);
        check_case(term.known == rows[i].known, rows[i].name);
        check_case(term.ambiguous == (rows[i].other != 0), rows[i].name);
        check_case(term.other == rows[i].other, rows[i].name);
    }
}

/* Announced headers that are not all there: close; never a read outside. */
static void m84_hostile_lengths(void **state)
{
    static const struct {
        uint8_t flags;
        bool tagged;
        uint32_t needed; /* octets of the body */
    } rows[] = {
        {0x80, false, 4},
        {0xc0, false, 4 + 2 + 18},
        {0xc0, true, 4 + 2 + 14},
        {0x40, true, 4 + 2 + 14},
        {0x20, false, 4 + 28},
        {0xe0, false, 4 + 2 + 18 + 28},
        {0xe0, true, 4 + 2 + 14 + 28},
        {0x01, false, 4},
        {0x03, false, 4 + 2 + 18},
        {0x03, true, 4 + 2 + 14},
        {0x04, false, 4 + 28},
        {0x07, false, 4 + 2 + 18 + 28},
        {0x07, true, 4 + 2 + 14 + 28},
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        for (uint32_t len = 0; len <= 60; len++) {
            uint8_t body[64] = {0x11, 0x00, rows[i].flags, 0, 0xff, 0xff};
            uint8_t *exact;
            struct iwarp_segment segment;
            struct iwarp_terminate term;
            enum iwarp_verdict verdict;

            body[6] = rows[i].tagged ? 0xc1 : 0x41;
            exact = exact_copy(body, len);
            segment = (struct iwarp_segment){.payload = exact, .payload_len = len};
            verdict = iwarp_terminate_decode(&segment, false, &term);
            assert_int_equal(verdict, len < rows[i].needed ? IWARP_CLOSE : IWARP_OK);
            if (len >= 4) {
                assert_int_equal(term.error, IWARP_ERR_TAG_STAG);
            }
            if (verdict == IWARP_OK && term.has_ddp) {
                assert_ptr_equal(term.ddp, exact + 6);
                assert_int_equal(term.ddp_len, rows[i].tagged ? 14 : 18);
            }
            free(exact);
        }
    }
}

static void errors_in_words(void **state)
{
    unsigned known = 0;

    (void)state;
    for (unsigned layer = 0; layer < 16; layer++) {
        for (unsigned type = 0; type < 16; type++) {
            for (unsigned code = 0; code < 256; code++) {
                iwarp_error error = IWARP_ERROR(layer, type, code);

                assert_non_null(iwarp_error_text(error));
                assert_int_equal(iwarp_error_layer(error), layer);
                assert_int_equal(iwarp_error_type(error), type);
                assert_int_equal(iwarp_error_code(error), code);
                known += iwarp_error_known(error) && !(layer == 0 && type == 0);
            }
        }
    }
    /* 7 + 6 of RDMAP, 1 + 5 + 6 of DDP, 7 of MPA. */
    assert_int_equal(known, 32);
    assert_true(iwarp_error_known(IWARP_ERROR(0, 0, 0x33)));
    assert_false(iwarp_error_known(IWARP_NO_ERROR));
    assert_string_equal(iwarp_error_text(IWARP_ERR_TAG_STAG), "DDP: tagged buffer: invalid STag");
    assert_string_equal(iwarp_error_text(IWARP_ERR_MPA_IRD), "MPA: insufficient IRD");
    assert_string_equal(iwarp_error_text(IWARP_ERROR(0, 0, 9)), "RDMAP: local catastrophic error");
    assert_string_equal(iwarp_error_text(IWARP_ERROR(2, 0, 0x99)), "MPA: unknown error");
    assert_string_equal(iwarp_error_text(IWARP_ERROR(7, 0, 0)), "unknown layer and error");
    assert_string_equal(iwarp_error_text(IWARP_NO_ERROR), "no error");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(w97_invalid_stag_of_a_write),
        cmocka_unit_test(w98_bounds_of_a_read_request),
        cmocka_unit_test(m73_read_request_with_advanced_fields),
        cmocka_unit_test(w99_other_published_terminates),
        cmocka_unit_test(headers_by_class),
        cmocka_unit_test(w103_published_terminates_decode),
        cmocka_unit_test(w104_control_words),
        cmocka_unit_test(m84_hostile_lengths),
        cmocka_unit_test(errors_in_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
