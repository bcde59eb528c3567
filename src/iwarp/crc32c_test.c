// SPDX-License-Identifier: MIT
/* crc32c_test.c - published vectors on every implementation, pieces, alignment, cross-checks. */
#include "iwarp/crc32c.h"

#include <stdio.h>

#include "iwarp/test_vectors.h"
#include "iwarp/wire.h"

#define TWELVE_ZEROS "00 00 00 00 00 00 00 00 00 00 00 00 "
#define RISING                                                                                     \
    "00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f 10 11 12 13 14 15 16 17 18 19 1a 1b 1c 1d "   \
    "1e 1f"
#define FALLING                                                                                    \
    "1f 1e 1d 1c 1b 1a 19 18 17 16 15 14 13 12 11 10 0f 0e 0d 0c 0b 0a 09 08 07 06 05 04 03 02 "   \
    "01 00"
#define EIGHT_ZEROS "00 00 00 00 00 00 00 00 "
#define EIGHT_ONES  "ff ff ff ff ff ff ff ff "
#define ISCSI_READ                                                                                 \
    "01 c0 00 00 " TWELVE_ZEROS "14 00 00 00 00 00 04 00 00 00 00 14 00 00 00 18 28 00 00 00 00 "  \
    "00 00 00 02 00 00 00 00 00 00 00"

static const struct {
    const char *name;
    const char *input;
    uint32_t value;
    const char *wire;
} vectors[] = {
    {"W-52 123456789", "31 32 33 34 35 36 37 38 39", 0xe3069283u, "83 92 06 e3"},
    {"W-52 zeros", EIGHT_ZEROS EIGHT_ZEROS EIGHT_ZEROS EIGHT_ZEROS, 0x8a9136aau, "aa 36 91 8a"},
    {"W-52 ones", EIGHT_ONES EIGHT_ONES EIGHT_ONES EIGHT_ONES, 0x62a8ab43u, "43 ab a8 62"},
    {"W-52 rising", RISING, 0x46dd794eu, "4e 79 dd 46"},
    {"W-52 falling", FALLING, 0x113fdb5cu, "5c db 3f 11"},
    {"W-52 iSCSI Read", ISCSI_READ, 0xd9963a56u, "56 3a 96 d9"},
    {"W-60 marker in front", V_MARKER_FIRST, 0x83992352u, "52 23 99 83"},
    {"W-61 marker inside", V_MARKER_INSIDE, 0x98589284u, "84 92 58 98"},
};

/* The whole-input value by one implementation; an index behind the last is the dispatcher. */
static uint32_t crc_of(unsigned impl, const uint8_t *p, size_t len)
{
    uint32_t state = iwarp_crc32c_init();

    if (impl == IWARP_CRC32C_IMPL_COUNT) {
        return iwarp_crc32c_final(iwarp_crc32c(state, p, len));
    }
    return iwarp_crc32c_final(iwarp_crc32c_with((enum iwarp_crc32c_impl)impl, state, p, len));
}

static bool available(unsigned impl)
{
    return impl == IWARP_CRC32C_IMPL_COUNT || iwarp_crc32c_has((enum iwarp_crc32c_impl)impl);
}

/* Bit by bit, from the definition. */
static uint32_t crc_by_definition(const uint8_t *p, size_t len)
{
    uint32_t crc = 0xffffffffu;

    for (size_t i = 0; i < len; i++) {
        crc ^= p[i];
        for (int bit = 0; bit < 8; bit++) {
            crc = crc >> 1 ^ ((crc & 1u) != 0 ? 0x82f63b78u : 0u);
        }
    }
    return ~crc;
}

static void w52_vectors_on_all_implementations(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(vectors); i++) {
        size_t len;
        size_t wire_len;
        uint8_t *input = octets_of(vectors[i].input, &len);
        uint8_t *wire = octets_of(vectors[i].wire, &wire_len);

        if (strstr(vectors[i].name, "W-60") || strstr(vectors[i].name, "W-61")) {
            check_case(memcmp(input + len - 4, wire, 4) == 0, vectors[i].name);
            len -= 4; /* the dump ends with its CRC */
        }
        check_case(crc_by_definition(input, len) == vectors[i].value, vectors[i].name);
        check_case(iwarp_get_le32(wire) == vectors[i].value, vectors[i].name);
        for (unsigned impl = 0; impl <= IWARP_CRC32C_IMPL_COUNT; impl++) {
            check_case(!available(impl) || crc_of(impl, input, len) == vectors[i].value,
                       vectors[i].name);
        }
        free(input);
        free(wire);
    }
}

/* A marked FPDU of 1460 octets: a Send of 1424 zeros with markers at 0, 512 and 1024. */
static void w60_marked_fpdu_of_a_full_segment(void **state)
{
    static const uint8_t start[] = {0, 0, 0, 0, 0x05, 0xa2, 0x41, 0x43};
    uint8_t fpdu[1456] = {0};

    (void)state;
    memcpy(fpdu, start, sizeof start);
    iwarp_put_be32(fpdu + 16, 1); /* MSN */
    iwarp_put_be32(fpdu + 512, 0x1fc);
    iwarp_put_be32(fpdu + 1024, 0x3fc);
    for (unsigned impl = 0; impl <= IWARP_CRC32C_IMPL_COUNT; impl++) {
        if (available(impl)) {
            assert_int_equal(crc_of(impl, fpdu, sizeof fpdu), 0x02dcc7c4);
        }
    }
}

/* Lengths around every block size of every implementation, all at once and against another one. */
static void lengths_agree(void **state)
{
    const size_t size = 70000;
    uint8_t *octets = malloc(size);
    uint32_t seed = 0x2545f491u;

    (void)state;
    assert_non_null(octets);
    for (size_t i = 0; i < size; i++) {
        octets[i] = (uint8_t)test_random(&seed);
    }
    for (size_t len = 0; len <= 5000; len++) {
        uint32_t expected = crc_of(IWARP_CRC32C_PORTABLE, octets, len);

        if (len < 300) {
            assert_int_equal(expected, crc_by_definition(octets, len));
        }
        for (unsigned impl = 1; impl <= IWARP_CRC32C_IMPL_COUNT; impl++) {
            assert_true(!available(impl) || crc_of(impl, octets, len) == expected);
        }
    }
    for (unsigned round = 0; round < 400; round++) {
        size_t offset = test_random(&seed) % 64;
        size_t len = test_random(&seed) % (size - 64);
        uint32_t expected = crc_of(IWARP_CRC32C_PORTABLE, octets + offset, len);

        for (unsigned impl = 1; impl <= IWARP_CRC32C_IMPL_COUNT; impl++) {
            assert_true(!available(impl) || crc_of(impl, octets + offset, len) == expected);
        }
    }
    free(octets);
}

/* In memory of exactly the length, at all alignments: no octet outside is read. */
static void unaligned_and_exact(void **state)
{
    uint32_t seed = 77;

    (void)state;
    for (size_t offset = 0; offset < 16; offset++) {
        for (size_t len = 0; len < 600; len += 1 + len / 40) {
            uint8_t *octets = malloc(offset + len + 1);
            uint32_t expected;

            assert_non_null(octets);
            for (size_t i = 0; i < offset + len; i++) {
                octets[i] = (uint8_t)test_random(&seed);
            }
            octets = realloc(octets, offset + len > 0 ? offset + len : 1);
            assert_non_null(octets);
            expected = crc_by_definition(octets + offset, len);
            for (unsigned impl = 0; impl <= IWARP_CRC32C_IMPL_COUNT; impl++) {
                assert_true(!available(impl) || crc_of(impl, octets + offset, len) == expected);
            }
            free(octets);
        }
    }
}

/* Any pieces, each through whatever implementation, give what one piece gives. */
static void pieces_through_mixed_implementations(void **state)
{
    uint8_t octets[5000];
    uint32_t seed = 4711;

    (void)state;
    for (size_t i = 0; i < sizeof octets; i++) {
        octets[i] = (uint8_t)test_random(&seed);
    }
    for (size_t split = 0; split <= 600; split++) {
        uint32_t crc = iwarp_crc32c_init();

        crc = iwarp_crc32c(crc, octets, split);
        crc = iwarp_crc32c(crc, octets + split, 600 - split);
        assert_int_equal(iwarp_crc32c_final(crc), crc_by_definition(octets, 600));
    }
    for (unsigned round = 0; round < 300; round++) {
        size_t len = test_random(&seed) % (sizeof octets + 1);
        uint32_t crc = iwarp_crc32c_init();

        for (size_t done = 0; done < len;) {
            size_t piece = 1 + test_random(&seed) % 900;
            unsigned impl = test_random(&seed) % IWARP_CRC32C_IMPL_COUNT;

            piece = piece < len - done ? piece : len - done;
            impl = available(impl) ? impl : (unsigned)IWARP_CRC32C_PORTABLE;
            crc = iwarp_crc32c_with((enum iwarp_crc32c_impl)impl, crc, octets + done, piece);
            done += piece;
        }
        assert_int_equal(iwarp_crc32c_final(crc), crc_by_definition(octets, len));
    }
}

static void empty_input_changes_nothing(void **state)
{
    (void)state;
    assert_int_equal(iwarp_crc32c(0x12345678u, NULL, 0), 0x12345678u);
    for (unsigned impl = 0; impl < IWARP_CRC32C_IMPL_COUNT; impl++) {
        if (available(impl)) {
            assert_int_equal(iwarp_crc32c_with((enum iwarp_crc32c_impl)impl, 5, NULL, 0), 5);
        }
    }
}

static void names_tell_what_is_used(void **state)
{
    const char *name = iwarp_crc32c_impl_name();

    (void)state;
    printf("CRC32C by %s\n", name);
    assert_true(iwarp_crc32c_has(IWARP_CRC32C_PORTABLE));
    assert_false(iwarp_crc32c_has(IWARP_CRC32C_IMPL_COUNT));
    assert_int_equal(strstr(name, "sse4.2") != NULL, iwarp_crc32c_has(IWARP_CRC32C_SSE42));
    assert_int_equal(strstr(name, "isa-l") != NULL, iwarp_crc32c_has(IWARP_CRC32C_ISAL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(w52_vectors_on_all_implementations),
        cmocka_unit_test(w60_marked_fpdu_of_a_full_segment),
        cmocka_unit_test(lengths_agree),
        cmocka_unit_test(unaligned_and_exact),
        cmocka_unit_test(pieces_through_mixed_implementations),
        cmocka_unit_test(empty_input_changes_nothing),
        cmocka_unit_test(names_tell_what_is_used),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
