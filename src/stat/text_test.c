// SPDX-License-Identifier: MIT
/* text_test.c - lines of JSON: what is escaped, what is no UTF-8, and the limit. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "stat/text.h"

static void strings_are_escaped(void **state)
{
    static const struct {
        const char *text, *json;
    } cases[] = {
        {"", "\"\""},
        {"lo", "\"lo\""},
        {"a\"b\\c", "\"a\\\"b\\\\c\""},
        {"tab\tline\n\x01", "\"tab\\u0009line\\u000a\\u0001\""},
        {"K\xc3\xb6ln \xe2\x82\xac \xf0\x9f\x98\x80",
         "\"K\xc3\xb6ln \xe2\x82\xac \xf0\x9f\x98\x80\""},
        {"\x80", "\"\\ufffd\""},            /* begins in the middle */
        {"\xc3", "\"\\ufffd\""},            /* ends in the middle */
        {"\xc3(", "\"\\ufffd(\""},          /* breaks off */
        {"\xc0\xaf", "\"\\ufffd\\ufffd\""}, /* longer than need be */
        {"\xe0\x80\xaf", "\"\\ufffd\\ufffd\\ufffd\""},
        {"\xed\xa0\x80", "\"\\ufffd\\ufffd\\ufffd\""},            /* a surrogate */
        {"\xf4\x90\x80\x80", "\"\\ufffd\\ufffd\\ufffd\\ufffd\""}, /* beyond the last */
        {"\xff", "\"\\ufffd\""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct stat_text text = {0};

        stat_text_string(&text, cases[i].text);
        assert_false(text.full);
        assert_string_equal(text.at, cases[i].json);
        assert_int_equal(text.length, strlen(cases[i].json));
        free(text.at);
    }
}

static void it_grows_up_to_its_limit(void **state)
{
    struct stat_text text = {.limit = 5000};
    size_t before;

    (void)state;
    while (!text.full) {
        before = text.length;
        stat_text_add(&text, "%u,", 1234u);
    }
    assert_int_equal(text.length, 5000);
    assert_int_equal(strlen(text.at), text.length);
    stat_text_add(&text, "x"); /* not even this */
    assert_int_equal(text.length, 5000);
    stat_text_cut(&text, before - 5);
    stat_text_add(&text, "end");
    assert_false(text.full);
    assert_int_equal(text.length, before - 2);
    assert_string_equal(text.at + before - 7, "4,end");
    free(text.at);
}

static void one_that_is_too_long_for_a_line_is_left_out(void **state)
{
    struct stat_text text = {0};
    char name[2000];

    (void)state;
    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    stat_text_add(&text, "{");
    stat_text_add(&text, "%s", name);
    assert_true(text.full);
    assert_string_equal(text.at, "{");
    stat_text_cut(&text, 1);
    stat_text_string(&text, name); /* by pieces, so it fits */
    assert_false(text.full);
    assert_int_equal(text.length, sizeof name + 2);
    free(text.at);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strings_are_escaped),
        cmocka_unit_test(it_grows_up_to_its_limit),
        cmocka_unit_test(one_that_is_too_long_for_a_line_is_left_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
