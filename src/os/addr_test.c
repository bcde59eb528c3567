// SPDX-License-Identifier: MIT
/* Addresses: text and back, scopes, comparison, bad input. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <net/if.h>

#include "os/linux/backend.h"
#include "os/os_testing.h"

static void round_trip(void **state)
{
    static const struct {
        const char *in, *out;
        bool with_port;
    } cases[] = {
        {"1.2.3.4", "1.2.3.4", false},
        {"1.2.3.4:80", "1.2.3.4:80", true},
        {"0.0.0.0", "0.0.0.0:0", true},
        {"255.255.255.255:65535", "255.255.255.255:65535", true},
        {"::1", "::1", false},
        {"::", "[::]:0", true},
        {"[::1]:80", "[::1]:80", true},
        {"[2001:db8::5]", "2001:db8::5", false},
        {"2001:DB8:0:0:0:0:0:5", "2001:db8::5", false},
        {"::ffff:1.2.3.4", "::ffff:1.2.3.4", false},
        {"fe80::1%2", "fe80::1%2", false},
        {"[fe80::1%2]:80", "[fe80::1%2]:80", true},
        {"ff02::1%4294967295", "ff02::1%4294967295", false},
        {"fe80::1", "fe80::1", false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct os_addr a, b;
        char text[OS_ADDR_TEXT_MAX];

        assert_int_equal(os_addr_parse(cases[i].in, &a), 0);
        assert_string_equal(os_addr_text(&a, cases[i].with_port, text), cases[i].out);
        assert_int_equal(os_addr_parse(text, &b), 0);
        assert_true(os_addr_ip_equal(&a, &b));
        assert_int_equal(b.port, cases[i].with_port ? a.port : 0);
    }
}

static void longest_text(void **state)
{
    struct os_addr a = {.family = OS_FAMILY_V6, .port = 65535, .scope_id = UINT32_MAX};
    struct os_addr b;
    char text[OS_ADDR_TEXT_MAX];

    (void)state;
    memset(a.ip, 0xfe, sizeof a.ip);
    a.ip[1] = 0xbe;
    os_addr_text(&a, true, text);
    assert_int_equal(os_addr_parse(text, &b), 0);
    assert_true(os_addr_equal(&a, &b));
    a.family = OS_FAMILY_NONE;
    assert_string_equal(os_addr_text(&a, true, text), "(none)");
}

static void fields(void **state)
{
    static const uint8_t v4[4] = {1, 2, 3, 4};
    struct os_addr a = test_addr("1.2.3.4:258");

    (void)state;
    assert_int_equal(a.family, OS_FAMILY_V4);
    assert_int_equal(a.port, 258);
    assert_int_equal(a.scope_id, 0);
    assert_memory_equal(a.ip, v4, 4);
    a = test_addr("fe80::1%7");
    assert_int_equal(a.family, OS_FAMILY_V6);
    assert_int_equal(a.scope_id, 7);
    assert_int_equal(a.ip[0], 0xfe);
    assert_int_equal(a.ip[15], 1);
}

static void scope_by_name(void **state)
{
    char name[IF_NAMESIZE], text[64];
    struct os_addr a;

    (void)state;
    if (!if_indextoname(1, name)) {
        print_message("skipped: no interface has index 1\n");
        skip();
    }
    snprintf(text, sizeof text, "[fe80::1%%%s]:9", name);
    a = test_addr(text);
    assert_int_equal(a.scope_id, 1);
}

static void bad_input(void **state)
{
    static const char *const bad[] = {
        "",
        " ",
        "1.2.3",
        "1.2.3.4.5",
        "1.2.3.256",
        "1.2.3.4:",
        "1.2.3.4:x",
        "1.2.3.4:+1",
        "1.2.3.4:-1",
        "1.2.3.4:65536",
        "1.2.3.4:99999999999999999999",
        "1.2.3.4: 1",
        "1.2.3.4 ",
        " 1.2.3.4",
        "[1.2.3.4]:1",
        "[::1",
        "[::1]x",
        "[::1]:",
        "[::1]:65536",
        "::1]",
        "[]",
        "[]:1",
        "[[::1]]",
        "fe80::1%",
        "fe80::1%0",
        "fe80::1%no-such-interface",
        "fe80::1%4294967296",
        "::1%1",
        "2001:db8::1%1",
        "1.2.3.4%1",
        ":::1",
        "12345::1",
        "localhost",
        ":80",
        "%1",
        "[%1]:1",
        "1.2.3.4:1:1",
    };
    char text[400];
    struct os_addr a, untouched;

    (void)state;
    memset(&a, 0x5a, sizeof a);
    untouched = a;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        if (os_addr_parse(bad[i], &a) != -EINVAL)
            fail_msg("accepted \"%s\"", bad[i]);
        assert_memory_equal(&a, &untouched, sizeof a);
    }
    memset(text, '1', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    assert_int_equal(os_addr_parse(text, &a), -EINVAL);
}

static void comparison(void **state)
{
    struct os_addr a = test_addr("1.2.3.4:1"), b = test_addr("1.2.3.4:2");
    struct os_addr c = test_addr("fe80::1%1"), d = test_addr("fe80::1%2");
    struct os_addr e = test_addr("102:304::");

    (void)state;
    assert_true(os_addr_ip_equal(&a, &b));
    assert_false(os_addr_equal(&a, &b));
    b.port = 1;
    assert_true(os_addr_equal(&a, &b));
    b.ip[9] = 1; /* beyond an IPv4 address */
    assert_true(os_addr_equal(&a, &b));
    assert_false(os_addr_ip_equal(&c, &d));
    d.scope_id = 1;
    assert_true(os_addr_ip_equal(&c, &d));
    assert_false(os_addr_ip_equal(&a, &e));
}

static void kinds(void **state)
{
    struct os_addr none = {0};
    struct os_addr a;

    (void)state;
    assert_false(os_addr_is_wildcard(&none));
    assert_false(os_addr_is_loopback(&none));
    a = test_addr("0.0.0.0:5");
    assert_true(os_addr_is_wildcard(&a));
    a = test_addr("::");
    assert_true(os_addr_is_wildcard(&a));
    assert_false(os_addr_is_loopback(&a));
    a = test_addr("::1");
    assert_true(os_addr_is_loopback(&a));
    assert_false(os_addr_is_wildcard(&a));
    a = test_addr("127.9.9.9");
    assert_true(os_addr_is_loopback(&a));
    a = test_addr("128.0.0.1");
    assert_false(os_addr_is_loopback(&a));
    a = test_addr("::2");
    assert_false(os_addr_is_loopback(&a));
}

static void sockaddrs(void **state)
{
    static const char *const texts[] = {"1.2.3.4:80", "[2001:db8::5]:81", "[fe80::1%3]:82"};
    struct sockaddr other = {.sa_family = AF_UNIX};
    struct os_addr none = {0}, b;
    union os_sockaddr sa;

    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        struct os_addr a = test_addr(texts[i]);

        assert_int_not_equal(os_addr_to_sockaddr(&a, &sa), 0);
        assert_true(os_addr_from_sockaddr(&sa.any, &b));
        assert_true(os_addr_equal(&a, &b));
    }
    assert_int_equal(os_addr_to_sockaddr(&none, &sa), 0);
    assert_false(os_addr_from_sockaddr(&other, &b));
    assert_int_equal(b.family, OS_FAMILY_NONE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip), cmocka_unit_test(longest_text),
        cmocka_unit_test(fields),     cmocka_unit_test(scope_by_name),
        cmocka_unit_test(bad_input),  cmocka_unit_test(comparison),
        cmocka_unit_test(kinds),      cmocka_unit_test(sockaddrs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
