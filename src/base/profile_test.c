// SPDX-License-Identifier: MIT
/*
 * The reader of profiles: what is taken, what is refused and in which words, that nothing is half
 * applied; and texts broken in every way, which must neither crash it nor get past it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/profile.h"
#include "base/mixed_text_test.h"

static bool apply(struct options *o, const char *text, size_t length, char *error, size_t size)
{
    /* A copy of its exact length, so that a read beyond it shows under a sanitizer. */
    char *copy = malloc(length ? length : 1);
    bool good;

    assert_non_null(copy);
    memcpy(copy, text, length);
    error[0] = '\0';
    good = profile_apply(o, "here", copy, length, error, size);
    free(copy);
    return good;
}

static void takes(const char *text, size_t length, struct options *o)
{
    char error[400];

    options_defaults(o);
    if (!apply(o, text, length, error, sizeof error))
        fail_msg("refused: %s", error);
    assert_string_equal(error, "");
}

#define TAKES(text, o) takes(text, sizeof text - 1, o)

static void refuses(const char *text, size_t length, const char *sentence)
{
    struct options o, before;
    char error[400];

    options_defaults(&o);
    before = o;
    if (apply(&o, text, length, error, sizeof error))
        fail_msg("taken: %s", text);
    assert_string_equal(error, sentence);
    assert_memory_equal(&o, &before, sizeof o);
}

#define REFUSES(text, sentence) refuses(text, sizeof text - 1, sentence)

static void settings_are_taken(void **state)
{
    struct options o, standard;

    (void)state;
    options_defaults(&standard);
    TAKES("", &o);
    assert_memory_equal(&o, &standard, sizeof o);
    TAKES("\n\n  \n\t\n# nothing\n   # nothing either", &o);
    assert_memory_equal(&o, &standard, sizeof o);
    TAKES("frmr_pages = 16\n", &o);
    assert_int_equal(o.frmr_pages, 16);
    TAKES("frmr_pages=17", &o); /* no end of the last line */
    assert_int_equal(o.frmr_pages, 17);
    TAKES("  \tfrmr_pages\t =\t 0x12 \t# pages\ncrc = off#really\n", &o);
    assert_int_equal(o.frmr_pages, 18);
    assert_int_equal(o.crc, 0);
    TAKES("frmr_pages = 19\r\nndkpi = 1.2\r\n\r\ncompletion = placed\r\n", &o);
    assert_int_equal(o.frmr_pages, 19);
    assert_int_equal(o.ndkpi, 1);
    assert_int_equal(o.completion, 1);
    TAKES("crc = 0\r", &o); /* an end of line that is cut in half */
    assert_int_equal(o.crc, 0);
    TAKES("port_low = 60000\nport_high = 60001\n", &o);
    assert_int_equal(o.port_high, 60001);
    TAKES("port_high = 100\nport_low = 99\n", &o);        /* what goes together is looked at last */
    TAKES("# caf\xc3\xa9 \x01\nshards = 3 # \xff\n", &o); /* comments hold anything */
    assert_int_equal(o.shards, 3);
}

static void a_profile_comes_on_top(void **state)
{
    struct options o;
    char error[200];

    (void)state;
    options_defaults(&o);
    o.shards = 7;
    assert_true(apply(&o, "crc = 0\n", 8, error, sizeof error));
    assert_int_equal(o.shards, 7);
    assert_int_equal(o.crc, 0);
}

static void faults_are_named_with_their_line(void **state)
{
    (void)state;
    REFUSES("\n# x\nnonsense = 1\n",
            "here:3: unknown option \"nonsense\" (ndkinfo --options lists them)");
    REFUSES("shards = 2\nfrmr_pages = 15\n",
            "here:2: option frmr_pages: have \"15\", need a number from 16 to 65536, pages");
    REFUSES("crc = 0\r\np2p = maybe\r\n",
            "here:2: option p2p: have \"maybe\", need a number from 0 to 1, 0/1");
    REFUSES("ndkpi = 3.0", "here:1: option ndkpi: have \"3.0\", need 1.1, 1.2, 2.0 or 2.1");
    REFUSES("crc = 1\nshards = 2\ncrc = 1\n",
            "here:3: option crc: is given twice (first in line 1)");
    REFUSES("shards", "here:1: have \"shards\", need key = value");
    REFUSES("shards 4 # four", "here:1: have \"shards 4\", need key = value");
    REFUSES("shards = ", "here:1: option shards: have \"\", need a number from 0 to 64, threads");
    REFUSES("= 4", "here:1: unknown option \"\" (ndkinfo --options lists them)");
    REFUSES("shards = 4 5",
            "here:1: option shards: have \"4 5\", need a number from 0 to 64, threads");
    REFUSES("shards = 4,crc = 0",
            "here:1: option shards: have \"4,crc = 0\", need a number from 0 to 64, threads");
    REFUSES("crc = 0\nprofile = strict\n", /* profiles do not include each other */
            "here:2: unknown option \"profile\" (ndkinfo --options lists them)");
    REFUSES("port_low = 60000\nport_high = 50000\n# end\n",
            "here:3: option port_low: have 60000, need <= port_high (50000)");
}

static void octets_that_are_no_text(void **state)
{
    (void)state;
    REFUSES("crc = 0\nsha\0rds = 1\n", "here:2: octet 0x00 in column 4 (need printable ASCII)");
    REFUSES("# a\0b\n", "here:1: octet 0x00 in column 4 (need printable ASCII)");
    REFUSES("\0", "here:1: octet 0x00 in column 1 (need printable ASCII)");
    REFUSES("shards\x1b[2J = 1", "here:1: octet 0x1b in column 7 (need printable ASCII)");
    REFUSES("\xef\xbb\xbfshards = 1", "here:1: octet 0xef in column 1 (need printable ASCII)");
    REFUSES("crc = 1\rshards = 1", "here:1: octet 0x0d in column 8 (need printable ASCII)");
    REFUSES("crc = 1\r\r\n", "here:1: octet 0x0d in column 8 (need printable ASCII)");
}

static void lengths_have_a_limit(void **state)
{
    static char text[PROFILE_TEXT_MAX + 2];
    struct options o;
    size_t n;

    (void)state;
    memset(text, '#', sizeof text);
    takes(text, PROFILE_LINE_MAX, &o);
    refuses(text, PROFILE_LINE_MAX + 1,
            "here:1: the line is too long (have 401 octets, need <= 400)");
    memcpy(text, "crc=", 4); /* and none is cut to what fits */
    memset(text + 4, '0', PROFILE_LINE_MAX - 3);
    refuses(text, PROFILE_LINE_MAX + 1,
            "here:1: the line is too long (have 401 octets, need <= 400)");
    for (n = 0; n < sizeof text; n++)
        text[n] = n % 100 == 99 ? '\n' : '#';
    takes(text, PROFILE_TEXT_MAX, &o);
    refuses(text, PROFILE_TEXT_MAX + 1,
            "here:0: the text is too long (have 65537 octets, need <= 65536)");
}

static void a_sentence_is_cut_to_its_room(void **state)
{
    struct options o;
    char error[20];

    (void)state;
    options_defaults(&o);
    for (size_t size = 0; size <= sizeof error; size++) {
        memset(error, 'x', sizeof error);
        assert_false(profile_apply(&o, "a/rather/long/name", "nonsense = 1", 12, error, size));
        if (size)
            assert_true(memchr(error, '\0', size) != NULL);
        for (size_t i = size; i < sizeof error; i++)
            assert_int_equal(error[i], 'x');
    }
}

static void names(void **state)
{
    static const char *const good[] = {"strict", "cx3", "iwarp-rnic", "a.b_C-9",
                                       "12345678901234567890123456789012"};
    static const char *const bad[] = {
        "",    ".",   "..",          ".x",  "a/b",
        "a b", "a\n", "caf\xc3\xa9", "a=b", "123456789012345678901234567890123"};

    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++)
        assert_true(profile_name_is_good(good[i], strlen(good[i])));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(profile_name_is_good(bad[i], strlen(bad[i])));
    assert_false(profile_name_is_good("a\0b", 3));
}

static void what_it_says_of_itself(void **state)
{
    static const char text[] = "# SPDX-License-Identifier: MIT\n#\ncrc = 1\n#  Some \x1b thing \n"
                               "# more\n";
    char about[100], tight[5];

    (void)state;
    profile_about(text, sizeof text - 1, about, sizeof about);
    assert_string_equal(about, "Some ? thing");
    profile_about(text, sizeof text - 1, tight, sizeof tight);
    assert_string_equal(tight, "Some");
    profile_about("crc = 1\n", 8, about, sizeof about);
    assert_string_equal(about, "");
    profile_about("", 0, about, sizeof about);
    assert_string_equal(about, "");
}

/* ---- broken texts --------------------------------------------------------------------------- */

static const char whole[] = "# a profile\r\n"
                            "ndkpi = 2.1   # the newest\n"
                            "\tfrmr_pages=\t0x10\r\n"
                            "completion = placed\n\n"
                            "crc = off\n"
                            "port_low = 50000\nport_high = 50010\n"
                            "max_caller_data = 56";

/* Whatever the text: all or nothing; all options in their ranges; a sentence exactly when it is
 * refused, of printable text, that names the place. */
static void judge(const char *text, size_t length)
{
    size_t count;
    const struct option_info *table = options_table(&count);
    struct options o, before;
    char error[400];

    options_defaults(&o);
    before = o;
    if (!apply(&o, text, length, error, sizeof error)) {
        assert_memory_equal(&o, &before, sizeof o);
        assert_int_equal(strncmp(error, "here:", 5), 0);
        for (const char *p = error; *p; p++)
            assert_in_range(*p == '\t' ? ' ' : *p, 0x20, 0x7e);
        return;
    }
    assert_string_equal(error, "");
    for (size_t i = 0; i < count; i++) {
        uint32_t value;

        memcpy(&value, (const char *)&o + table[i].offset, sizeof value);
        assert_in_range(value, table[i].minimum, table[i].maximum);
    }
    assert_true(o.port_low <= o.port_high);
}

static void every_beginning_of_a_text(void **state)
{
    (void)state;
    for (size_t length = 0; length < sizeof whole; length++)
        judge(whole, length);
}

static void every_octet_changed(void **state)
{
    char text[sizeof whole - 1];

    (void)state;
    for (size_t at = 0; at < sizeof text; at++)
        for (unsigned octet = 0; octet < 256; octet++) {
            memcpy(text, whole, sizeof text);
            text[at] = (char)octet;
            judge(text, sizeof text);
        }
}

static void texts_cut_and_mixed(void **state)
{
    static const char alphabet[] = "=#\n\r\t 0x.,\0\xff";
    const struct mixture mixture = {.good = whole,
                                    .octets = alphabet,
                                    .good_length = sizeof whole - 1,
                                    .octet_count = sizeof alphabet - 1,
                                    .piece = 40,
                                    .pieces = 8};
    char text[600];

    (void)state;
    for (unsigned round = 0; round < 20000; round++)
        judge(text, mixed_text(&mixture, text, sizeof text));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(settings_are_taken),
        cmocka_unit_test(a_profile_comes_on_top),
        cmocka_unit_test(faults_are_named_with_their_line),
        cmocka_unit_test(octets_that_are_no_text),
        cmocka_unit_test(lengths_have_a_limit),
        cmocka_unit_test(a_sentence_is_cut_to_its_room),
        cmocka_unit_test(names),
        cmocka_unit_test(what_it_says_of_itself),
        cmocka_unit_test(every_beginning_of_a_text),
        cmocka_unit_test(every_octet_changed),
        cmocka_unit_test(texts_cut_and_mixed),
    };

    return cmocka_run_group_tests_name("profile", tests, NULL, NULL);
}
