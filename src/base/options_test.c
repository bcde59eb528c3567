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
    struct options o;

    (void)state;
    options_defaults(&o);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(field(&o, &table[i]), table[i].standard);
    assert_int_equal(o.connect_ms, 10000);
    assert_int_equal(o.max_cq_depth, 65536);
    assert_int_equal(o.max_caller_data, 251);
    assert_int_equal(o.ndkpi_major, 2);
    assert_int_equal(o.ndkpi_minor, 1);
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

static void versions_come_as_one_key(void **state)
{
    static const char *const good[] = {"ndkpi=1.1", "ndkpi=1.2", "ndkpi=2.0", "ndkpi=2.1"};
    static const char *const bad[] = {"ndkpi", "ndkpi=", "ndkpi=1.0", "ndkpi=2.2", "ndkpi=2.10"};
    struct options o;
    char error[300];

    (void)state;
    options_defaults(&o);
    for (unsigned i = 0; i < 4; i++) {
        assert_true(options_apply(&o, good[i], error, sizeof error));
        assert_int_equal(o.ndkpi_major, good[i][6] - '0');
        assert_int_equal(o.ndkpi_minor, good[i][8] - '0');
    }
    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_false(options_apply(&o, bad[i], error, sizeof error));
        assert_non_null(strstr(error, "ndkpi"));
    }
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

static void the_environment_is_applied(void **state)
{
    struct options o;
    char error[300];

    (void)state;
    unsetenv("SOFTNDK_TIMEOUTS");
    setenv("SOFTNDK_OPTIONS", "shards=3,frmr_pages=99", 1);
    assert_true(options_from_environment(&o, error, sizeof error));
    assert_int_equal(o.shards, 3);
    assert_int_equal(o.frmr_pages, 99);
    assert_int_equal(o.connect_ms, 10000);
    setenv("SOFTNDK_TIMEOUTS", "off", 1);
    assert_true(options_from_environment(&o, error, sizeof error));
    assert_int_equal(o.connect_ms, 0);
    assert_int_equal(o.request_ms, 0);
    assert_int_equal(o.establish_ms, 0);
    assert_int_equal(o.disconnect_ms, 0);
    assert_int_equal(o.user_timeout_ms, 0);
    assert_int_equal(o.keepalive_s, 0);
    assert_int_equal(o.nudge_ms, 0);
    setenv("SOFTNDK_OPTIONS", "shards=many", 1);
    assert_false(options_from_environment(&o, error, sizeof error));
    assert_non_null(strstr(error, "shards"));
    assert_non_null(strstr(error, "many"));
    unsetenv("SOFTNDK_OPTIONS");
    unsetenv("SOFTNDK_TIMEOUTS");
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
        cmocka_unit_test(versions_come_as_one_key),
        cmocka_unit_test(bad_texts_change_nothing),
        cmocka_unit_test(the_environment_is_applied),
        cmocka_unit_test(a_long_text_is_cut_in_the_sentence),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
