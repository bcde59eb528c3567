// SPDX-License-Identifier: MIT
/* options_test.c - the table of tunables: sources, ranges, all or nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/options.h"

static uint32_t field(const struct options *o, const struct option_info *info)
{
    uint32_t value;

    memcpy(&value, (const char *)o + info->offset, sizeof value);
    return value;
}

static void the_table_covers_the_structure(void **state)
{
    size_t count;
    const struct option_info *table = options_table(&count);
    unsigned char seen[sizeof(struct options)] = {0};

    (void)state;
    assert_int_equal(count * sizeof(uint32_t), sizeof(struct options));
    for (size_t i = 0; i < count; i++) {
        assert_true(table[i].minimum <= table[i].standard);
        assert_true(table[i].standard <= table[i].maximum);
        assert_true(strlen(table[i].help) > 5);
        assert_int_equal(table[i].offset % sizeof(uint32_t), 0);
        assert_int_equal(seen[table[i].offset]++, 0);
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(table[i].name, table[k].name);
    }
}

static void defaults_are_those_of_the_table(void **state)
{
    size_t count;
    const struct option_info *table = options_table(&count);
    unsigned major, minor;
    struct options o;

    (void)state;
    options_defaults(&o);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(field(&o, &table[i]), table[i].standard);
    assert_int_equal(o.connect_ms, 10000);
    assert_int_equal(o.max_cq_depth, 65536);
    assert_int_equal(o.max_caller_data, 251);
    options_ndkpi(&o, &major, &minor);
    assert_int_equal(major, 2);
    assert_int_equal(minor, 1);
}

/* Both ends of each range are taken, one beyond each is not, and the sentence names the key. */
static void ranges_are_kept_to_the_last_number(void **state)
{
    size_t count;
    const struct option_info *table = options_table(&count);

    (void)state;
    for (size_t i = 0; i < count; i++) {
        const struct option_info *info = &table[i];
        struct options o, before;
        char text[100], error[300] = "";

        options_defaults(&o);
        o.port_low = 1;
        o.port_high = 65535; /* so that either may be moved */
        before = o;
        if (info->words)
            continue;
        snprintf(text, sizeof text, "%s=%u", info->name, info->maximum);
        assert_true(options_apply(&o, text, error, sizeof error));
        assert_int_equal(field(&o, info), info->maximum);
        o = before;
        snprintf(text, sizeof text, "%s=%u", info->name, info->minimum);
        assert_true(options_apply(&o, text, error, sizeof error));
        assert_int_equal(field(&o, info), info->minimum);

        o = before;
        snprintf(text, sizeof text, "%s=%llu", info->name, info->maximum + 1ull);
        assert_false(options_apply(&o, text, error, sizeof error));
        assert_non_null(strstr(error, info->name));
        assert_memory_equal(&o, &before, sizeof o);
        if (info->minimum > 0) {
            snprintf(text, sizeof text, "%s=%u", info->name, info->minimum - 1);
            assert_false(options_apply(&o, text, error, sizeof error));
            assert_memory_equal(&o, &before, sizeof o);
        }
    }
}

static void texts_are_taken_apart(void **state)
{
    struct options o;
    char error[300];

    (void)state;
    options_defaults(&o);
    assert_true(options_apply(&o, NULL, error, sizeof error));
    assert_true(options_apply(&o, " , ,\t\n", error, sizeof error));
    assert_true(options_apply(&o, "crc=off,p2p=0 retry_v1=on,,shards=0x10", error, sizeof error));
    assert_int_equal(o.crc, 0);
    assert_int_equal(o.p2p, 0);
    assert_int_equal(o.retry_v1, 1);
    assert_int_equal(o.shards, 16);
    assert_true(options_apply(&o, "linger_ms=1,linger_ms=2", error, sizeof error));
    assert_int_equal(o.linger_ms, 2);
}

/* Options whose values are words take those words and nothing else. */
static void words_are_taken_as_words(void **state)
{
    size_t count;
    const struct option_info *table = options_table(&count);
    unsigned seen = 0;

    (void)state;
    for (size_t i = 0; i < count; i++) {
        const struct option_info *info = &table[i];
        static const char *const bad[] = {"", "0", "1", "local ", "Local", "2.10", "1.0", "on"};
        struct options o, before;
        char text[100], error[300];

        if (!info->words)
            continue;
        seen++;
        options_defaults(&o);
        for (uint32_t v = 0; v <= info->maximum; v++) {
            char room[OPTION_TEXT_MAX];

            assert_string_equal(option_text(info, v, room), info->words[v]);
            snprintf(text, sizeof text, "%s=%s", info->name, info->words[v]);
            assert_true(options_apply(&o, text, error, sizeof error));
            assert_int_equal(field(&o, info), v);
        }
        before = o;
        for (size_t k = 0; k < sizeof bad / sizeof bad[0]; k++) {
            assert_false(option_set(&o, info->name, strlen(info->name), bad[k], strlen(bad[k]),
                                    error, sizeof error));
            assert_non_null(strstr(error, info->name));
            assert_non_null(strstr(error, info->words[info->maximum])); /* what is allowed */
            assert_memory_equal(&o, &before, sizeof o);
        }
    }
    assert_int_equal(seen, 4);
}

static void versions_are_two_numbers(void **state)
{
    static const char *const all[] = {"ndkpi=1.1", "ndkpi=1.2", "ndkpi=2.0", "ndkpi=2.1"};
    unsigned major, minor;
    struct options o;
    char error[300];

    (void)state;
    options_defaults(&o);
    for (unsigned i = 0; i < 4; i++) {
        assert_true(options_apply(&o, all[i], error, sizeof error));
        options_ndkpi(&o, &major, &minor);
        assert_int_equal(major, all[i][6] - '0');
        assert_int_equal(minor, all[i][8] - '0');
    }
    assert_false(options_apply(&o, "ndkpi=2.2", error, sizeof error));
    assert_string_equal(error, "option ndkpi: have \"2.2\", need 1.1, 1.2, 2.0 or 2.1");
}

static void a_profile_is_no_option(void **state)
{
    struct options o;
    char error[300];
    const char *name;
    size_t length = 0;

    (void)state;
    assert_null(option_profile(NULL, &length));
    assert_null(option_profile("crc=0,profiles=1,xprofile=y", &length));
    name = option_profile("profile=a,crc=0 profile=strict\tp2p=0", &length);
    assert_int_equal(length, 6);
    assert_memory_equal(name, "strict", 6); /* the last one */
    assert_non_null(option_profile("profile=", &length));
    assert_int_equal(length, 0);
    options_defaults(&o);
    assert_false(options_apply(&o, "profile=strict", error, sizeof error));
    assert_true(options_apply_after_profile(&o, "crc=0,profile=strict,p2p=0", error, sizeof error));
    assert_int_equal(o.crc + o.p2p, 0);
}

static void bad_texts_change_nothing(void **state)
{
    static const char *const bad[] = {
        "nonsense=1",
        "crc",
        "crc=",
        "crc=yes",
        "crc=-1",
        "crc=1x",
        "=1",
        "Connect_ms=1",
        "connect_ms = 1",
        "connect_ms=99999999999999999",
        "conn=1",
        "connect_msx=1",
        "port_low=60000,port_high=50000",
        "crc=0x",
        "crc=0b1",
    };
    struct options o, before;

    (void)state;
    options_defaults(&o);
    before = o;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        char text[200], error[300] = "";

        /* a good pair before the bad one is not taken either */
        snprintf(text, sizeof text, "linger_ms=77,%s", bad[i]);
        if (options_apply(&o, text, error, sizeof error))
            fail_msg("taken: %s", bad[i]);
        assert_true(strlen(error) > 10);
        assert_memory_equal(&o, &before, sizeof o);
    }
}

static void a_long_text_is_cut_in_the_sentence(void **state)
{
    struct options o;
    char text[3000], error[64];

    (void)state;
    options_defaults(&o);
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    assert_false(options_apply(&o, text, error, sizeof error));
    assert_int_equal(strlen(error), sizeof error - 1);
    memcpy(text, "crc=", 4);
    assert_false(options_apply(&o, text, error, sizeof error));
    assert_int_equal(strncmp(error, "option crc", 10), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_covers_the_structure),
        cmocka_unit_test(defaults_are_those_of_the_table),
        cmocka_unit_test(ranges_are_kept_to_the_last_number),
        cmocka_unit_test(texts_are_taken_apart),
        cmocka_unit_test(words_are_taken_as_words),
        cmocka_unit_test(versions_are_two_numbers),
        cmocka_unit_test(a_profile_is_no_option),
        cmocka_unit_test(bad_texts_change_nothing),
        cmocka_unit_test(a_long_text_is_cut_in_the_sentence),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
