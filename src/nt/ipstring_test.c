// SPDX-License-Identifier: MIT
/*
 * Tests of ipstring.c and iptext.c: addresses, ports and scopes from text and to text, narrow and
 * wide alike.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ip2string.h>

#include "nt/nt_testing.h"

enum { BAD = -1 }; /* as where reading stops: the text does not begin with an address */

static const WCHAR *wide(const char *text)
{
    static WCHAR room[400];
    size_t i = 0;

    do {
        room[i] = (WCHAR)(unsigned char)text[i];
    } while (text[i++]);
    return room;
}

/* Reads narrow and wide; both must agree. Where reading stopped, or BAD. */
static int read_v4(const char *text, BOOLEAN strict, ULONG *address)
{
    IN_ADDR a = {.S_un.S_addr = 0}, w = {.S_un.S_addr = 0};
    const WCHAR *wide_text = wide(text), *wide_stop = NULL;
    const char *stop = NULL;
    NTSTATUS status = RtlIpv4StringToAddressA(text, strict, &stop, &a);

    assert_int_equal(RtlIpv4StringToAddressW(wide_text, strict, &wide_stop, &w), status);
    assert_int_equal(wide_stop - wide_text, stop - text);
    assert_int_equal(w.S_un.S_addr, a.S_un.S_addr);
    *address = RtlUlongByteSwap(a.S_un.S_addr);
    assert_true(status == STATUS_SUCCESS || status == STATUS_INVALID_PARAMETER);
    return status == STATUS_SUCCESS ? (int)(stop - text) : BAD;
}

static void four_parts_or_fewer(void **state)
{
    static const struct {
        const char *text;
        int stop, strict_stop;
        ULONG address;
    } cases[] = {
        {"10.20.30.40", 11, 11, 0x0a141e28},
        {"0.0.0.0", 7, 7, 0},
        {"255.255.255.255", 15, 15, 0xffffffff},
        {"1.2.3.4:80", 7, 7, 0x01020304},
        {"1.2.3.4 and more", 7, 7, 0x01020304},
        {"1.2.3.4x", 7, 7, 0x01020304},
        {"10.0.5", 6, BAD, 0x0a000005},
        {"10.0.1000", 9, BAD, 0x0a0003e8},
        {"10.65537", 8, BAD, 0x0a010001},
        {"3232235777", 10, BAD, 0xc0a80101},
        {"0xc0.0250.1.0X1", 15, BAD, 0xc0a80101},
        {"0x7f000001", 10, BAD, 0x7f000001},
        {"017700000001", 12, BAD, 0x7f000001},
        {"1.2.3.00", 8, BAD, 0x01020300},
        {"1.2.3.0a", 7, 7, 0x01020300},
        {"", BAD, BAD, 0},
        {" 1.2.3.4", BAD, BAD, 0},
        {"1.2.3.256", BAD, BAD, 0},
        {"256.2.3.4", BAD, BAD, 0},
        {"1.256.3.4", BAD, BAD, 0},
        {"1.2.65536", BAD, BAD, 0},
        {"1.16777216", BAD, BAD, 0},
        {"1.2.3.4294967297", BAD, BAD, 0},
        {"1.2.3.99999999999999999999", BAD, BAD, 0},
        {"1.2.3.4.5", BAD, BAD, 0},
        {"1.2.3.4.", BAD, BAD, 0},
        {"1.2.", BAD, BAD, 0},
        {"1..2", BAD, BAD, 0},
        {".1.2.3", BAD, BAD, 0},
        {"1.2.3.08", BAD, BAD, 0},
        {"1.2.3.0x", BAD, BAD, 0},
        {"1.2.3.-4", BAD, BAD, 0},
        {"1.2.3.+4", BAD, BAD, 0},
        {"a.b.c.d", BAD, BAD, 0},
        {"::1", BAD, BAD, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ULONG address;

        assert_int_equal(read_v4(cases[i].text, FALSE, &address), cases[i].stop);
        if (cases[i].stop != BAD)
            assert_int_equal(address, cases[i].address);
        assert_int_equal(read_v4(cases[i].text, TRUE, &address), cases[i].strict_stop);
        if (cases[i].strict_stop != BAD)
            assert_int_equal(address, cases[i].address);
    }
}

static void ipv4_with_a_port(void **state)
{
    static const struct {
        const char *text;
        int port; /* host order, BAD */
    } cases[] = {
        {"1.2.3.4", 0},           {"1.2.3.4:1", 1},
        {"1.2.3.4:65535", 65535}, {"1.2.3.4:0x50", 80},
        {"1.2.3.4:0120", 80},     {"1.2.3.4:", BAD},
        {"1.2.3.4:0", BAD},       {"1.2.3.4:65536", BAD},
        {"1.2.3.4:80x", BAD},     {"1.2.3.4:80 ", BAD},
        {"1.2.3.4: 80", BAD},     {"1.2.3.4:-80", BAD},
        {"1.2.3.4:080", BAD},     {"1.2.3.4 ", BAD},
        {"1.2.3.4]", BAD},        {"1.2.3.4:99999999999", BAD},
        {"1.2.3.4.5:80", BAD},    {"", BAD},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        for (int strict = 0; strict < 2; strict++) {
            NTSTATUS want = cases[i].port == BAD ? STATUS_INVALID_PARAMETER : STATUS_SUCCESS;
            USHORT port = 0xbeef, wide_port = 0xbeef;
            IN_ADDR a, w;

            assert_int_equal(RtlIpv4StringToAddressExA(cases[i].text, (BOOLEAN)strict, &a, &port),
                             want);
            assert_int_equal(
                RtlIpv4StringToAddressExW(wide(cases[i].text), (BOOLEAN)strict, &w, &wide_port),
                want);
            if (want == STATUS_SUCCESS) {
                assert_int_equal(RtlUlongByteSwap(a.S_un.S_addr), 0x01020304);
                assert_int_equal(w.S_un.S_addr, a.S_un.S_addr);
                assert_int_equal(RtlUshortByteSwap(port), cases[i].port);
                assert_int_equal(wide_port, port);
            } else {
                assert_int_equal(port, 0xbeef);
                assert_int_equal(wide_port, 0xbeef);
            }
        }
    }
}

static void wide_text_is_read_by_its_own_characters(void **state)
{
    IN_ADDR a;
    IN6_ADDR a6;
    USHORT port;
    ULONG scope;

    (void)state;
    /* U+0131 would be '1' if only the low octet counted. */
    assert_int_equal(RtlIpv4StringToAddressExW(u"\u0131.2.3.4", TRUE, &a, &port),
                     STATUS_INVALID_PARAMETER);
    assert_int_equal(RtlIpv4StringToAddressExW(u"1.2.3.4\u013a80", TRUE, &a, &port),
                     STATUS_INVALID_PARAMETER);
    assert_int_equal(RtlIpv6StringToAddressExW(u"::\u0131", &a6, &scope, &port),
                     STATUS_INVALID_PARAMETER);
    assert_int_equal(RtlIpv4StringToAddressExW(u"192.168.0.1:4420", TRUE, &a, &port),
                     STATUS_SUCCESS);
    assert_int_equal(RtlUshortByteSwap(port), 4420);
}

static void nulls_are_refused(void **state)
{
    IN_ADDR a;
    IN6_ADDR a6;
    USHORT port;
    ULONG scope, length = 50;
    char text[50];

    (void)state;
    assert_int_equal(RtlIpv4StringToAddressExA(NULL, TRUE, &a, &port), STATUS_INVALID_PARAMETER);
    assert_int_equal(RtlIpv4StringToAddressExW(NULL, TRUE, &a, &port), STATUS_INVALID_PARAMETER);
    assert_int_equal(RtlIpv4StringToAddressExA("1.2.3.4", TRUE, NULL, &port),
                     STATUS_INVALID_PARAMETER);
    assert_int_equal(RtlIpv4StringToAddressExW(u"1.2.3.4", TRUE, &a, NULL),
                     STATUS_INVALID_PARAMETER);
    assert_int_equal(RtlIpv6StringToAddressExW(NULL, &a6, &scope, &port), STATUS_INVALID_PARAMETER);
    assert_int_equal(RtlIpv6StringToAddressExA("::", NULL, &scope, &port),
                     STATUS_INVALID_PARAMETER);
    assert_int_equal(RtlIpv6StringToAddressExA("::", &a6, NULL, &port), STATUS_INVALID_PARAMETER);
    assert_int_equal(RtlIpv6StringToAddressExA("::", &a6, &scope, NULL), STATUS_INVALID_PARAMETER);
    assert_int_equal(RtlIpv4AddressToStringExA(NULL, 0, text, &length), STATUS_INVALID_PARAMETER);
    assert_int_equal(RtlIpv4AddressToStringExA(&a, 0, NULL, &length), STATUS_INVALID_PARAMETER);
    assert_int_equal(RtlIpv4AddressToStringExA(&a, 0, text, NULL), STATUS_INVALID_PARAMETER);
    assert_int_equal(RtlIpv6AddressToStringExA(NULL, 0, 0, text, &length),
                     STATUS_INVALID_PARAMETER);
}

/* ---- IPv6 ----------------------------------------------------------------------------------- */

static int read_v6(const char *text, IN6_ADDR *a)
{
    const WCHAR *wide_text = wide(text), *wide_stop = NULL;
    const char *stop = NULL;
    NTSTATUS status;
    IN6_ADDR w;

    memset(a, 0, sizeof *a);
    memset(&w, 0, sizeof w);
    status = RtlIpv6StringToAddressA(text, &stop, a);
    assert_int_equal(RtlIpv6StringToAddressW(wide_text, &wide_stop, &w), status);
    assert_int_equal(wide_stop - wide_text, stop - text);
    assert_memory_equal(&w, a, sizeof w);
    return status == STATUS_SUCCESS ? (int)(stop - text) : BAD;
}

static void groups_gaps_and_dotted_tails(void **state)
{
    static const struct {
        const char *text;
        int stop;
        USHORT groups[8];
    } cases[] = {
        {"1:2:3:4:5:6:7:8", 15, {1, 2, 3, 4, 5, 6, 7, 8}},
        {"FEDC:ba98:0007:0:0:0:0:1", 24, {0xfedc, 0xba98, 7, 0, 0, 0, 0, 1}},
        {"::", 2, {0}},
        {"::1", 3, {0, 0, 0, 0, 0, 0, 0, 1}},
        {"1::", 3, {1}},
        {"1::8", 4, {1, 0, 0, 0, 0, 0, 0, 8}},
        {"fe80::a:b", 9, {0xfe80, 0, 0, 0, 0, 0, 0xa, 0xb}},
        {"1:2:3:4:5:6:7::", 15, {1, 2, 3, 4, 5, 6, 7, 0}},
        {"::2:3:4:5:6:7:8", 15, {0, 2, 3, 4, 5, 6, 7, 8}},
        {"1:2:3::5:6:7:8", 14, {1, 2, 3, 0, 5, 6, 7, 8}},
        {"::10.20.30.40", 13, {0, 0, 0, 0, 0, 0, 0x0a14, 0x1e28}},
        {"::ffff:10.20.30.40", 18, {0, 0, 0, 0, 0, 0xffff, 0x0a14, 0x1e28}},
        {"1:2:3:4:5:6:10.20.30.40", 23, {1, 2, 3, 4, 5, 6, 0x0a14, 0x1e28}},
        {"1::5:010.020.30.40", 18, {1, 0, 0, 0, 0, 5, 0x0a14, 0x1e28}},
        {"::1%5", 3, {0, 0, 0, 0, 0, 0, 0, 1}},
        {"::1/64", 3, {0, 0, 0, 0, 0, 0, 0, 1}},
        {"::1 ", 3, {0, 0, 0, 0, 0, 0, 0, 1}},
        {"1:2:3:4:5:6:7:8:9", 15, {1, 2, 3, 4, 5, 6, 7, 8}},
        {"1:2:3:4:5:6:7:8:", 15, {1, 2, 3, 4, 5, 6, 7, 8}},
        {"1::2::3", 4, {1, 0, 0, 0, 0, 0, 0, 2}},
        {"1:::2", 3, {1}},
        {"1::a.b", 4, {1, 0, 0, 0, 0, 0, 0, 0xa}},
        {"", BAD, {0}},
        {":", BAD, {0}},
        {":1", BAD, {0}},
        {"1", BAD, {0}},
        {"1:2", BAD, {0}},
        {"1:2:3:4:5:6:7", BAD, {0}},
        {"1:2:3:4:5:6:7:", BAD, {0}},
        {"1::2:", BAD, {0}},
        {"12345::", BAD, {0}},
        {"::12345", BAD, {0}},
        {"1:2:3:4:5:6:7:12345", BAD, {0}},
        {"g::", BAD, {0}},
        {"1.2.3.4", BAD, {0}},
        {"::1.2.3", BAD, {0}},
        {"::1.2.3.", BAD, {0}},
        {"::1.2.3.256", BAD, {0}},
        {"::1.2.0003.4", BAD, {0}},
        {"1:2:3:10.20.30.40", BAD, {0}},
        {"[::1]", BAD, {0}},
        {" ::1", BAD, {0}},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        IN6_ADDR a;

        assert_int_equal(read_v6(cases[i].text, &a), cases[i].stop);
        for (int g = 0; cases[i].stop != BAD && g < 8; g++)
            assert_int_equal(RtlUshortByteSwap(a.s6_words[g]), cases[i].groups[g]);
    }
}

static void ipv6_with_a_scope_and_a_port(void **state)
{
    static const struct {
        const char *text;
        int port;
        ULONG scope;
    } cases[] = {
        {"fe80::1", 0, 0},
        {"fe80::1%3", 0, 3},
        {"fe80::1%0", 0, 0},
        {"[fe80::1]", 0, 0},
        {"[fe80::1%4294967295]", 0, 0xffffffff},
        {"[fe80::1]:4420", 4420, 0},
        {"[fe80::1%16]:0x50", 80, 16},
        {"[fe80::1]:0120", 80, 0},
        {"fe80::1:80 ", BAD, 0},
        {"fe80::1%", BAD, 0},
        {"fe80::1%eth0", BAD, 0},
        {"fe80::1%-1", BAD, 0},
        {"fe80::1%0x10", BAD, 0},
        {"fe80::1%4294967296", BAD, 0},
        {"fe80::1%3:80", BAD, 0},
        {"fe80::1]", BAD, 0},
        {"[fe80::1", BAD, 0},
        {"[fe80::1%3", BAD, 0},
        {"[fe80::1]80", BAD, 0},
        {"[fe80::1]:", BAD, 0},
        {"[fe80::1]:0", BAD, 0},
        {"[fe80::1]:65536", BAD, 0},
        {"[fe80::1]:080", BAD, 0},
        {"[fe80::1].80", BAD, 0},
        {"[fe80::1 ]:80", BAD, 0},
        {"[ fe80::1]:80", BAD, 0},
        {"fe80::1/64", BAD, 0},
        {"", BAD, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        NTSTATUS want = cases[i].port == BAD ? STATUS_INVALID_PARAMETER : STATUS_SUCCESS;
        ULONG scope = 77, wide_scope = 77;
        USHORT port = 0xbeef, wide_port = 0xbeef;
        IN6_ADDR a, w;

        assert_int_equal(RtlIpv6StringToAddressExA(cases[i].text, &a, &scope, &port), want);
        assert_int_equal(
            RtlIpv6StringToAddressExW(wide(cases[i].text), &w, &wide_scope, &wide_port), want);
        if (want == STATUS_SUCCESS) {
            assert_int_equal(a.s6_words[0], 0x80fe);
            assert_memory_equal(&a, &w, sizeof a);
            assert_int_equal(scope, cases[i].scope);
            assert_int_equal(RtlUshortByteSwap(port), cases[i].port);
        } else {
            assert_int_equal(scope, 77);
            assert_int_equal(port, 0xbeef);
        }
        assert_int_equal(wide_scope, scope);
        assert_int_equal(wide_port, port);
    }
}

/* ---- to text -------------------------------------------------------------------------------- */

static void ipv4_to_text(void **state)
{
    IN_ADDR a = {.S_un.S_un_b = {192, 168, 0, 25}};
    char text[40];
    WCHAR wide_text[40];
    ULONG length;

    (void)state;
    assert_ptr_equal(RtlIpv4AddressToStringA(&a, text), text + 12);
    assert_string_equal(text, "192.168.0.25");
    assert_ptr_equal(RtlIpv4AddressToStringW(&a, wide_text), wide_text + 12);
    assert_memory_equal(wide_text, u"192.168.0.25", 26);
    length = 40;
    assert_int_equal(RtlIpv4AddressToStringExA(&a, RtlUshortByteSwap(80), text, &length),
                     STATUS_SUCCESS);
    assert_string_equal(text, "192.168.0.25:80");
    assert_int_equal(length, 16);
    length = 15;
    text[0] = '#';
    assert_int_equal(RtlIpv4AddressToStringExA(&a, RtlUshortByteSwap(80), text, &length),
                     STATUS_INVALID_PARAMETER);
    assert_int_equal(length, 16);
    assert_int_equal(text[0], '#');
    assert_int_equal(RtlIpv4AddressToStringExW(&a, 0, wide_text, &length), STATUS_SUCCESS);
    assert_memory_equal(wide_text, u"192.168.0.25", 26);
    assert_int_equal(length, 13);
}

static void ipv6_to_text(void **state)
{
    static const struct {
        USHORT groups[8];
        const char *text;
    } cases[] = {
        {{0}, "::"},
        {{0, 0, 0, 0, 0, 0, 0, 1}, "::1"},
        {{1}, "1::"},
        {{1, 2, 3, 4, 5, 6, 7, 8}, "1:2:3:4:5:6:7:8"},
        {{0xfe80, 0, 0, 0, 0xa, 0xb, 0xc, 0xd}, "fe80::a:b:c:d"},
        {{1, 0, 3, 4, 5, 6, 7, 8}, "1:0:3:4:5:6:7:8"}, /* one zero is no gap */
        {{1, 0, 0, 4, 0, 0, 7, 8}, "1::4:0:0:7:8"},    /* the first of equal ones */
        {{1, 0, 0, 4, 0, 0, 0, 8}, "1:0:0:4::8"},      /* the longest */
        {{1, 2, 3, 4, 5, 6, 0, 0}, "1:2:3:4:5:6::"},
        {{0, 0, 3, 4, 5, 6, 7, 8}, "::3:4:5:6:7:8"},
        {{0, 0, 0, 0, 0, 0xffff, 0x0a14, 0x1e28}, "::ffff:10.20.30.40"},
        {{0, 0, 0, 0, 0xffff, 0, 0x0a14, 0x1e28}, "::ffff:0:10.20.30.40"},
        {{0, 0, 0, 0, 0, 0, 0x0a14, 0x1e28}, "::10.20.30.40"},
        {{0, 0, 0, 0, 0, 0xffff, 0, 0x1e28}, "::ffff:0:1e28"},
        {{0, 0, 0, 0, 0, 0xfffe, 0x0a14, 0x1e28}, "::fffe:a14:1e28"},
        {{1, 2, 3, 4, 0, 0x5efe, 0x0a14, 0x1e28}, "1:2:3:4:0:5efe:10.20.30.40"},
        {{0xfe80, 0, 0, 0, 0x200, 0x5efe, 0x0a14, 0x1e28}, "fe80::200:5efe:10.20.30.40"},
        {{0xffff, 0xffff, 0xffff, 0xffff, 0xffff, 0xffff, 0xffff, 0xffff},
         "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        size_t n = strlen(cases[i].text);
        char text[46];
        WCHAR wide_text[46];
        IN6_ADDR a, back;

        for (int g = 0; g < 8; g++)
            a.s6_words[g] = RtlUshortByteSwap(cases[i].groups[g]);
        assert_ptr_equal(RtlIpv6AddressToStringA(&a, text), text + n);
        assert_string_equal(text, cases[i].text);
        assert_ptr_equal(RtlIpv6AddressToStringW(&a, wide_text), wide_text + n);
        assert_memory_equal(wide_text, wide(cases[i].text), 2 * n + 2);
        assert_int_equal(read_v6(text, &back), n);
        assert_memory_equal(&a, &back, sizeof a);
    }
}

static void ipv6_to_text_with_scope_and_port(void **state)
{
    IN6_ADDR a = {{{0xfe, 0x80, [15] = 1}}};
    char text[70];
    WCHAR wide_text[70];
    ULONG length = 70;

    (void)state;
    assert_int_equal(RtlIpv6AddressToStringExA(&a, 0, 0, text, &length), STATUS_SUCCESS);
    assert_string_equal(text, "fe80::1");
    assert_int_equal(length, 8);
    length = 70;
    assert_int_equal(RtlIpv6AddressToStringExA(&a, 3, 0, text, &length), STATUS_SUCCESS);
    assert_string_equal(text, "fe80::1%3");
    length = 70;
    assert_int_equal(
        RtlIpv6AddressToStringExW(&a, 4294967295u, RtlUshortByteSwap(65535), wide_text, &length),
        STATUS_SUCCESS);
    assert_memory_equal(wide_text, u"[fe80::1%4294967295]:65535", 54);
    assert_int_equal(length, 27);
    length = 11;
    assert_int_equal(RtlIpv6AddressToStringExA(&a, 0, RtlUshortByteSwap(80), text, &length),
                     STATUS_INVALID_PARAMETER);
    assert_int_equal(length, 13);
    assert_int_equal(RtlIpv6AddressToStringExA(&a, 0, RtlUshortByteSwap(80), text, &length),
                     STATUS_SUCCESS);
    assert_string_equal(text, "[fe80::1]:80");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(four_parts_or_fewer),
        cmocka_unit_test(ipv4_with_a_port),
        cmocka_unit_test(wide_text_is_read_by_its_own_characters),
        cmocka_unit_test(nulls_are_refused),
        cmocka_unit_test(groups_gaps_and_dotted_tails),
        cmocka_unit_test(ipv6_with_a_scope_and_a_port),
        cmocka_unit_test(ipv4_to_text),
        cmocka_unit_test(ipv6_to_text),
        cmocka_unit_test(ipv6_to_text_with_scope_and_port),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
