// SPDX-License-Identifier: MIT
/*
 * Tests of utf.c: there and back, and what is no text.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "nt/utf.h"

static void text_goes_there_and_back(void **state)
{
    static const char text[] = "A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80z";
    static const WCHAR want[] = u"A\u00e9\u20ac\U0001f600z";
    size_t units;
    WCHAR *wide = nt_utf16_of_utf8(text, strlen(text), &units);
    char *back;

    (void)state;
    assert_int_equal(units, sizeof want / 2 - 1);
    assert_memory_equal(wide, want, sizeof want);
    back = nt_utf8_of_units(wide, units);
    assert_string_equal(back, text);
    free(back);
    free(wide);
    wide = nt_utf16_of_utf8("", 0, &units);
    assert_int_equal(units, 0);
    assert_int_equal(wide[0], 0);
    free(wide);
}

static void every_character_survives(void **state)
{
    (void)state;
    for (uint32_t c = 1; c <= 0x10ffff; c += c < 0x11000 ? 1 : 997) {
        WCHAR units[2] = {(WCHAR)c};
        size_t n = 1, back_n;
        char *utf8;
        WCHAR *back;

        if (c >= 0xd800 && c < 0xe000)
            continue;
        if (c >= 0x10000) {
            units[0] = (WCHAR)(0xd7c0 + (c >> 10));
            units[1] = (WCHAR)(0xdc00 | (c & 0x3ff));
            n = 2;
        }
        utf8 = nt_utf8_of_units(units, n);
        back = nt_utf16_of_utf8(utf8, strlen(utf8), &back_n);
        assert_int_equal(back_n, n);
        assert_memory_equal(back, units, 2 * n);
        free(back);
        free(utf8);
    }
}

static void what_is_no_text_is_replaced(void **state)
{
    static const char *const bad[] = {
        "\x80",
        "\xff",
        "\xc0\xaf",
        "\xc3",
        "\xe2\x82",
        "\xf0\x9f\x98",
        "\xed\xa0\x80",
        "\xf4\x90\x80\x80",
        "\xe0\x80\x80",
        "\xf0\x80\x80\x80",
        "\xf8\x88\x80\x80",
        "\xc3(",
    };

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        size_t units;
        WCHAR *wide = nt_utf16_of_utf8(bad[i], strlen(bad[i]), &units);

        assert_true(units >= 1);
        assert_int_equal(wide[0], 0xfffd);
        free(wide);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_goes_there_and_back),
        cmocka_unit_test(every_character_survives),
        cmocka_unit_test(what_is_no_text_is_replaced),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
