// SPDX-License-Identifier: MIT
/*
 * Tests of rtl.c, format.c and debug.c: memory, counted strings, printing as Windows does.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ntstrsafe.h>

#include "nt/nt_testing.h"

static void comparing_counts_equal_bytes(void **state)
{
    char a[300], b[300];

    (void)state;
    memset(a, 'x', sizeof a);
    memcpy(b, a, sizeof a);
    assert_int_equal(RtlCompareMemory(a, b, sizeof a), sizeof a);
    assert_int_equal(RtlCompareMemory(a, b, 0), 0);
    for (size_t at = 0; at < sizeof a; at += 7) {
        b[at] = 'y';
        assert_int_equal(RtlCompareMemory(a, b, sizeof a), at);
        assert_int_equal(RtlCompareMemory(a, b, at), at);
        assert_false(RtlEqualMemory(a, b, sizeof a));
        assert_true(RtlEqualMemory(a, b, at));
        b[at] = 'x';
    }
}

static void memory_is_filled_copied_and_moved(void **state)
{
    char a[16] = "0123456789", b[16];

    (void)state;
    RtlZeroMemory(b, sizeof b);
    assert_int_equal(RtlCompareMemory(b, "\0\0\0\0", 4), 4);
    RtlFillMemory(b, 4, 'f');
    assert_memory_equal(b, "ffff\0", 5);
    RtlCopyMemory(b, a, 11);
    assert_string_equal(b, "0123456789");
    RtlMoveMemory(a + 2, a, 5); /* they overlap */
    assert_string_equal(a, "0101234789");
    assert_int_equal(RtlUshortByteSwap(0x1234), 0x3412);
    assert_int_equal(RtlUlongByteSwap(0x12345678), 0x78563412);
    assert_true(RtlUlonglongByteSwap(0x123456789abcdef0ull) == 0xf0debc9a78563412ull);
}

static void a_counted_string_describes_a_terminated_one(void **state)
{
    static WCHAR longest[40000];
    static const UNICODE_STRING constant = RTL_CONSTANT_STRING(u"abc");
    WCHAR room[8];
    UNICODE_STRING s;

    (void)state;
    RtlInitUnicodeString(&s, u"\u00e9t\u00e9");
    assert_int_equal(s.Length, 6);
    assert_int_equal(s.MaximumLength, 8);
    assert_int_equal(s.Buffer[0], 0xe9);
    RtlInitUnicodeString(&s, u"");
    assert_int_equal(s.Length, 0);
    assert_int_equal(s.MaximumLength, 2);
    RtlInitUnicodeString(&s, NULL);
    assert_int_equal(s.Length, 0);
    assert_int_equal(s.MaximumLength, 0);
    assert_null(s.Buffer);
    for (size_t i = 0; i < 39999; i++)
        longest[i] = 'x';
    RtlInitUnicodeString(&s, longest);
    assert_int_equal(s.Length, 65532);
    assert_int_equal(s.MaximumLength, 65534);
    assert_int_equal(constant.Length, 6);
    assert_int_equal(constant.MaximumLength, 8);
    RtlInitEmptyUnicodeString(&s, room, sizeof room);
    assert_int_equal(s.Length, 0);
    assert_int_equal(s.MaximumLength, 16);
    assert_ptr_equal(s.Buffer, room);
}

/* ---- printing ------------------------------------------------------------------------------- */

#define ASSERT_PRINTS(want, ...)                                                                   \
    do {                                                                                           \
        char text_[600];                                                                           \
        memset(text_, '#', sizeof text_);                                                          \
        assert_int_equal(RtlStringCbPrintfA(text_, sizeof text_, __VA_ARGS__), STATUS_SUCCESS);    \
        assert_string_equal(text_, want);                                                          \
    } while (0)

static void integers_have_the_sizes_of_windows(void **state)
{
    (void)state;
    ASSERT_PRINTS("5 -5 5", "%d %i %u", 5, -5, 5u);
    ASSERT_PRINTS("4294967295 -1", "%lu %ld", (ULONG)-1, (LONG)-1); /* l is 32 bits */
    /* Garbage in the upper half of where the caller put 32 bits must not show. */
    ASSERT_PRINTS("1 2", "%lu %lx", 0xabcd00000001ull, 0xabcd00000002ull);
    ASSERT_PRINTS("18446744073709551615 ffffffffffffffff", "%I64u %I64x", ~0ull, ~0ull);
    ASSERT_PRINTS("-9223372036854775808 9223372036854775807", "%lld %I64d", INT64_MIN, INT64_MAX);
    ASSERT_PRINTS("7 8 9", "%I32u %Iu %zu", 7, (SIZE_T)8, (SIZE_T)9);
    ASSERT_PRINTS("-2 65534 -2 254", "%hd %hu %hhd %hhu", -2, -2, -2, -2);
    ASSERT_PRINTS("ff FF 377", "%x %X %o", 255, 255, 255);
    ASSERT_PRINTS("0xff 0XFF 0377 0 0", "%#x %#X %#o %#x %#o", 255, 255, 255, 0, 0);
    ASSERT_PRINTS("0", "%u", 0);
    ASSERT_PRINTS("", "%.0u", 0);
}

static void fields_are_padded_and_signed(void **state)
{
    (void)state;
    ASSERT_PRINTS("[   42][42   ][00042][+42][ 42]", "[%5d][%-5d][%05d][%+d][% d]", 42, 42, 42, 42,
                  42);
    ASSERT_PRINTS("[-0042][ -042][  007]", "[%05d][%5.3d][%5.3u]", -42, -42, 7);
    ASSERT_PRINTS("[   42][42   ]", "[%*d][%*d]", 5, 42, -5, 42);
    ASSERT_PRINTS("0xC000000D", "0x%08X", STATUS_INVALID_PARAMETER);
    ASSERT_PRINTS("0000000000001234", "%p", (PVOID)(ULONG_PTR)0x1234);
    ASSERT_PRINTS("FFFF8000DEADBEEF", "%p", (PVOID)(ULONG_PTR)0xffff8000deadbeef);
    ASSERT_PRINTS("0000000000000000", "%p", NULL);
    ASSERT_PRINTS("100%", "%d%%", 100);
    ASSERT_PRINTS("y", "%y"); /* an unknown type prints itself */
    ASSERT_PRINTS("", "%");
    ASSERT_PRINTS("  3.50 1e+10", "%6.2f %g", 3.5, 1e10);
}

static void strings_are_narrow_wide_or_counted(void **state)
{
    static WCHAR letters[] = u"abcdef";
    static char more[] = "xyz";
    UNICODE_STRING wide = {.Length = 6, .MaximumLength = 6, .Buffer = letters};
    ANSI_STRING narrow = {.Length = 2, .MaximumLength = 8, .Buffer = more};
    UNICODE_STRING none = {.Length = 0};

    (void)state;
    ASSERT_PRINTS("abc", "%s", "abc");
    ASSERT_PRINTS("[  abc][abc  ][ab]", "[%5s][%-5s][%.2s]", "abc", "abc", "abc");
    ASSERT_PRINTS("abc abc abc abc", "%ws %S %ls %hs", u"abc", u"abc", u"abc", "abc");
    ASSERT_PRINTS("abc", "%hS", "abc");
    ASSERT_PRINTS("[  abc][abc  ]", "[%5ws][%-5S]", u"abc", u"abc");
    ASSERT_PRINTS("abc xy", "%wZ %Z", &wide, &narrow);
    ASSERT_PRINTS("(null) (null) (null) (null)", "%s %ws %wZ %Z", NULL, NULL, NULL, &none);
    ASSERT_PRINTS("a b c", "%c %C %lc", 'a', 'b', 'c');
    ASSERT_PRINTS("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", "%ws", u"\u00e9\u20ac\U0001f600");
    ASSERT_PRINTS("\xef\xbf\xbd!", "%ws", (const WCHAR[]){0xd800, '!', 0}); /* a lone surrogate */
    ASSERT_PRINTS("[\xc3\xa9]", "[%.3ws]", u"\u00e9\u20ac"); /* no character in part */
    ASSERT_PRINTS("ab", "%.2s", (const char[]){'a', 'b'}); /* no terminator within the precision */
}

static void sizes_are_kept(void **state)
{
    char text[8];

    (void)state;
    memset(text, '#', sizeof text);
    assert_int_equal(RtlStringCbPrintfA(text, 5, "%s", "1234"), STATUS_SUCCESS);
    assert_memory_equal(text, "1234\0###", 8);
    assert_int_equal(RtlStringCbPrintfA(text, 5, "%s", "12345"), STATUS_BUFFER_OVERFLOW);
    assert_memory_equal(text, "1234\0###", 8);
    assert_int_equal(RtlStringCchPrintfA(text, 3, "%d", 123456), STATUS_BUFFER_OVERFLOW);
    assert_string_equal(text, "12");
    assert_int_equal(RtlStringCchPrintfA(text, 1, "x"), STATUS_BUFFER_OVERFLOW);
    assert_string_equal(text, "");
    text[0] = '#';
    assert_int_equal(RtlStringCbPrintfA(text, 0, "x"), STATUS_INVALID_PARAMETER);
    assert_int_equal(text[0], '#');
    assert_int_equal(RtlStringCbPrintfA(text, (size_t)NTSTRSAFE_MAX_CCH + 1, "x"),
                     STATUS_INVALID_PARAMETER);
    assert_int_equal(text[0], '\0');
}

static NTSTATUS print_through(char *text, size_t size, bool in_characters, const char *format, ...)
{
    NTSTATUS status;
    va_list ap;

    va_start(ap, format);
    status = in_characters ? RtlStringCchVPrintfA(text, size, format, ap)
                           : RtlStringCbVPrintfA(text, size, format, ap);
    va_end(ap);
    return status;
}

static void argument_lists_are_taken_too(void **state)
{
    char text[40];

    (void)state;
    assert_int_equal(print_through(text, sizeof text, false, "%d %s %I64x", 1, "two", 3ull),
                     STATUS_SUCCESS);
    assert_string_equal(text, "1 two 3");
    assert_int_equal(print_through(text, 4, true, "%d %s", 1, "two"), STATUS_BUFFER_OVERFLOW);
    assert_string_equal(text, "1 t");
}

/* ---- to the debugger ------------------------------------------------------------------------- */

static ULONG print_list(const char *format, ...)
{
    va_list ap;
    ULONG status;

    va_start(ap, format);
    status = vDbgPrintEx(DPFLTR_IHVDRIVER_ID, DPFLTR_TRACE_LEVEL, format, ap);
    va_end(ap);
    return status;
}

static void print_debug(void *arg)
{
    (void)arg;
    DbgPrint("one %d, %ws\n", 1, u"w");
    DbgPrintEx(DPFLTR_IHVDRIVER_ID, DPFLTR_ERROR_LEVEL, "two %I64u", 2ull);
    assert_int_equal(print_list(" three %hhu", 259), STATUS_SUCCESS);
    KdPrint(("not in a free build\n"));
    KdPrintEx((DPFLTR_IHVDRIVER_ID, DPFLTR_ERROR_LEVEL, "nor this\n"));
}

static void print_much(void *arg)
{
    char text[700];

    (void)arg;
    memset(text, 'x', sizeof text);
    text[699] = '\0';
    assert_int_equal(DbgPrint("%s", text), STATUS_SUCCESS);
}

static void debug_output_goes_to_stderr_as_it_is(void **state)
{
    char text[2000];

    (void)state;
    assert_int_equal(child_run(print_debug, NULL, text, sizeof text), 0);
    assert_string_equal(text, "one 1, w\ntwo 2 three 3");
    assert_int_equal(child_run(print_much, NULL, text, sizeof text), 0);
    assert_int_equal(strlen(text), 512);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(comparing_counts_equal_bytes),
        cmocka_unit_test(memory_is_filled_copied_and_moved),
        cmocka_unit_test(a_counted_string_describes_a_terminated_one),
        cmocka_unit_test(integers_have_the_sizes_of_windows),
        cmocka_unit_test(fields_are_padded_and_signed),
        cmocka_unit_test(strings_are_narrow_wide_or_counted),
        cmocka_unit_test(sizes_are_kept),
        cmocka_unit_test(argument_lists_are_taken_too),
        cmocka_unit_test(debug_output_goes_to_stderr_as_it_is),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
