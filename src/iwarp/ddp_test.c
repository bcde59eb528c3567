// SPDX-License-Identifier: MIT
/* ddp_test.c - DDP headers both ways, the checks of DDP alone, segmentation arithmetic. */
#include "iwarp/ddp.h"

#include <stdio.h>

#include "iwarp/fpdu.h"
#include "iwarp/test_vectors.h"

static void w64_tagged_header_both_ways(void **state)
{
    static const uint8_t expected[] = {0x00, 0x13, 0xc1, 0x40, 0x00, 0x00, 0x12, 0x34,
                                       0x00, 0x00, 0x00, 0x00, 0x10, 0x00, 0x00, 0x10};
    uint8_t octets[IWARP_FPDU_TAGGED_LEN + 5];
    struct iwarp_segment segment;

    (void)state;
    assert_int_equal(iwarp_ddp_put_tagged(octets, 5, true, 0x40, 0x1234, 0x10000010), 16);
    assert_memory_equal(octets, expected, sizeof expected);
    assert_int_equal(iwarp_ddp_decode(octets + 2, 19, &segment), IWARP_OK);
    assert_true(segment.tagged && segment.last);
    assert_int_equal(segment.control, 0x40);
    assert_int_equal(segment.stag, 0x1234);
    assert_int_equal(segment.to, 0x10000010);
    assert_ptr_equal(segment.payload, octets + 16);
    assert_int_equal(segment.payload_len, 5);
    assert_ptr_equal(segment.ulpdu, octets + 2);
    assert_int_equal(segment.ulpdu_len, 19);

    iwarp_ddp_put_tagged(octets, 0, false, 0x42, 0xfedcba98u, 0xfedcba9876543210u);
    assert_int_equal(octets[2], 0x81);
    assert_int_equal(iwarp_ddp_decode(octets + 2, 14, &segment), IWARP_OK);
    assert_false(segment.last);
    assert_int_equal(segment.stag, 0xfedcba98u);
    assert_true(segment.to == 0xfedcba9876543210u);
}

static void w64_untagged_header_both_ways(void **state)
{
    static const uint8_t expected[] = {0x00, 0x16, 0x01, 0x44, 0x0a, 0x0b, 0x0c, 0x0d, 0x00, 0x00,
                                       0x00, 0x02, 0x81, 0x82, 0x83, 0x84, 0x91, 0x92, 0x93, 0x94};
    uint8_t octets[IWARP_FPDU_UNTAGGED_LEN + 4];
    struct iwarp_segment segment;

    (void)state;
    assert_int_equal(
        iwarp_ddp_put_untagged(octets, 4, false, 0x44, 0x0a0b0c0d, 2, 0x81828384u, 0x91929394u),
        20);
    assert_memory_equal(octets, expected, sizeof expected);
    assert_int_equal(iwarp_ddp_decode(octets + 2, 22, &segment), IWARP_OK);
    assert_false(segment.tagged || segment.last);
    assert_int_equal(segment.inv_stag, 0x0a0b0c0d);
    assert_int_equal(segment.qn, 2);
    assert_int_equal(segment.msn, 0x81828384u);
    assert_int_equal(segment.mo, 0x91929394u);
    assert_int_equal(segment.payload_len, 4);
}

static void w65_reserved_bits_are_ignored(void **state)
{
    uint8_t octets[IWARP_FPDU_TAGGED_LEN];
    struct iwarp_segment segment;

    (void)state;
    iwarp_ddp_put_tagged(octets, 0, true, 0x40, 1, 2);
    for (unsigned reserved = 0; reserved <= 0x3c; reserved += 4) {
        octets[2] = (uint8_t)(0xc1u | reserved);
        assert_int_equal(iwarp_ddp_decode(octets + 2, 14, &segment), IWARP_OK);
        assert_true(segment.last && segment.tagged);
    }
}

static void m25_m26_short_ulpdus(void **state)
{
    (void)state;
    for (unsigned tagged = 0; tagged <= 1; tagged++) {
        for (uint32_t len = 0; len < (tagged ? 14u : 18u); len++) {
            uint8_t octets[18];
            uint8_t *exact;
            struct iwarp_segment segment;

            memset(octets, 0x41, sizeof octets);
            octets[0] = tagged ? 0xc1 : 0x41;
            exact = exact_copy(octets, len);
            assert_int_equal(iwarp_ddp_decode(exact, len, &segment), IWARP_TERMINATE);
            assert_int_equal(segment.error, IWARP_ERR_DDP_LOCAL);
            free(exact);
        }
    }
}

static void m34_m46_versions(void **state)
{
    uint8_t octets[IWARP_FPDU_UNTAGGED_LEN];
    struct iwarp_segment segment;

    (void)state;
    for (unsigned version = 0; version <= 3; version++) {
        enum iwarp_verdict expected = version == 1 ? IWARP_OK : IWARP_TERMINATE;

        iwarp_ddp_put_tagged(octets, 0, true, 0x40, 1, 2);
        octets[2] = (uint8_t)(0xc0u | version);
        assert_int_equal(iwarp_ddp_decode(octets + 2, 14, &segment), expected);
        assert_int_equal(segment.error, version == 1 ? IWARP_NO_ERROR : IWARP_ERR_TAG_VERSION);
        iwarp_ddp_put_untagged(octets, 0, true, 0x43, 0, 0, 1, 0);
        octets[2] = (uint8_t)(0x40u | version);
        assert_int_equal(iwarp_ddp_decode(octets + 2, 18, &segment), expected);
        assert_int_equal(segment.error, version == 1 ? IWARP_NO_ERROR : IWARP_ERR_UNTAG_VERSION);
    }
}

/* Cuts a message the way a sender does and returns the number of segments; the last two sizes. */
static uint32_t cut(uint32_t len, uint32_t mulpdu, bool tagged, uint32_t *offsets, uint32_t *sizes)
{
    uint32_t room = iwarp_ddp_payload_max(mulpdu, tagged);
    uint32_t count = 0;
    uint32_t done = 0;

    do {
        uint32_t piece = len - done < room ? len - done : room;

        offsets[count] = done;
        sizes[count] = piece;
        count++;
        done += piece;
    } while (done < len);
    return count;
}

static void w66_w67_segmentation(void **state)
{
    uint32_t offsets[4];
    uint32_t sizes[4];

    (void)state;
    assert_int_equal(cut(2048, 1500, false, offsets, sizes), 2); /* W-66 */
    assert_int_equal(sizes[0], 1482);
    assert_int_equal(sizes[1], 566);
    assert_int_equal(offsets[1], 1482);
    assert_int_equal(iwarp_ddp_segment_count(2048, 1500, false), 2);

    assert_int_equal(cut(2048, 1500, true, offsets, sizes), 2); /* W-67 */
    assert_int_equal(sizes[0], 1486);
    assert_int_equal(sizes[1], 562);
    assert_int_equal(16384 + offsets[1], 17870);
    assert_int_equal(iwarp_ddp_segment_count(2048, 1500, true), 2);
}

static void w68_segment_counts(void **state)
{
    (void)state;
    assert_int_equal(iwarp_ddp_segment_count(0, 1454, false), 1); /* W-68 */
    assert_int_equal(iwarp_ddp_segment_count(1, 1454, false), 1);
    assert_int_equal(iwarp_ddp_segment_count(1436, 1454, false), 1);
    assert_int_equal(iwarp_ddp_segment_count(1437, 1454, false), 2);
    assert_int_equal(iwarp_ddp_segment_count(2872, 1454, false), 2);
    assert_int_equal(iwarp_ddp_segment_count(0xffffffffu, 128, false), 39045158);
    assert_int_equal(iwarp_ddp_segment_count(0xffffffffu, 65534, true), 65553);
}

/* The 2048-octet Send of zeros at a segment size of 1460: two FPDUs of 1460 and 636 octets. */
static void w57_w66_send_of_two_fpdus(void **state)
{
    static const struct {
        uint32_t mo;
        uint32_t len;
        bool last;
        const char *start;
        const char *crc;
        uint32_t size;
    } rows[] = {
        {0, 1436, false, "05 ae 01 43 00 00 00 00 00 00 00 00 00 00 00 01 00 00 00 00 00 00 00 00",
         "6f d9 c0 fb", 1460},
        {1436, 612, true, "02 76 41 43 00 00 00 00 00 00 00 00 00 00 00 01 00 00 05 9c 00 00 00 00",
         "6a 86 ee 89", 636},
    };

    (void)state;
    assert_int_equal(iwarp_fpdu_mulpdu(1460), 1454);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        uint8_t fpdu[1460] = {0};
        size_t len;
        uint8_t *start = octets_of(rows[i].start, &len);
        uint8_t *crc = octets_of(rows[i].crc, &len);
        size_t header = iwarp_ddp_put_untagged(fpdu, rows[i].len, rows[i].last, 0x43, 0,
                                               IWARP_QN_SEND, 1, rows[i].mo);
        size_t body = header + rows[i].len;

        body += iwarp_fpdu_put_trailer(fpdu + body, true, fpdu, body, NULL, 0);
        assert_int_equal(body, rows[i].size);
        assert_memory_equal(fpdu, start, 24);
        assert_memory_equal(fpdu + body - 4, crc, 4);
        free(start);
        free(crc);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(w64_tagged_header_both_ways),
        cmocka_unit_test(w64_untagged_header_both_ways),
        cmocka_unit_test(w65_reserved_bits_are_ignored),
        cmocka_unit_test(m25_m26_short_ulpdus),
        cmocka_unit_test(m34_m46_versions),
        cmocka_unit_test(w66_w67_segmentation),
        cmocka_unit_test(w68_segment_counts),
        cmocka_unit_test(w57_w66_send_of_two_fpdus),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
