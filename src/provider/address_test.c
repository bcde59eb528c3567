// SPDX-License-Identifier: MIT
/*
 * The address map: each pair both ways, what stands nowhere, the forms of an address, zones, and
 * the sentences that list an interface's addresses.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <ntstatus.h>

#include "provider/adapter.h"
#include "provider/address.h"

static struct adapter adapter; /* its interface only */

static struct os_addr parsed(const char *text)
{
    struct os_addr address;

    assert_int_equal(os_addr_parse(text, &address), 0);
    return address;
}

static int lay_down(void **state)
{
    static const char *const pairs[][2] = {
        {"10.0.0.1", "127.0.0.2"}, {"10.0.0.2", "127.0.0.77"},  {"fd00::1", "127.0.0.3"},
        {"fd00::2", "fd01::2"},    {"fe80::1%12", "127.0.0.4"}, {"10.0.0.9", "192.168.7.9"},
        {"10.0.0.3", "10.0.0.4"},  {"10.0.0.4", "10.0.0.3"}, /* crosswise */
    };
    struct address_pair all[sizeof pairs / sizeof pairs[0]];

    (void)state;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++)
        all[i] = (struct address_pair){parsed(pairs[i][0]), parsed(pairs[i][1])};
    assert_true(address_map_set(all, sizeof pairs / sizeof pairs[0]));
    adapter.interface = (struct os_interface){.index = 12, .host_index = 3, .name = "Ethernet 2"};
    return 0;
}

static int take_up(void **state)
{
    (void)state;
    return address_map_set(NULL, 0) ? 0 : -1;
}

/* Through the boundary and back; family of the answer as asked. */
static void passes(const char *given, const char *host, const char *back)
{
    struct os_addr from = parsed(given);
    char text[OS_ADDR_TEXT_MAX];
    SOCKADDR_INET in, out;
    ULONG length = sizeof in;
    struct address got;

    assert_int_equal(sockaddr_put(&from, 0, (PSOCKADDR)&in, &length), STATUS_SUCCESS);
    assert_true(address_get(&adapter, (PSOCKADDR)&in, length, &got));
    assert_string_equal(os_addr_text(&got.host, true, text), host);
    assert_int_equal(got.v6, from.family == OS_FAMILY_V6);
    length = sizeof out;
    assert_int_equal(address_put(&adapter, &got.host, got.family, (PSOCKADDR)&out, &length),
                     STATUS_SUCCESS);
    assert_true(sockaddr_get((PSOCKADDR)&out, length, &from, NULL));
    assert_string_equal(os_addr_text(&from, true, text), back);
}

static void addresses_pass_both_ways(void **state)
{
    (void)state;
    passes("10.0.0.1:80", "127.0.0.2:80", "10.0.0.1:80");
    passes("10.0.0.2:54321", "127.0.0.77:54321", "10.0.0.2:54321");
    passes("[fd00::1]:7", "127.0.0.3:7", "[fd00::1]:7");
    passes("[fd00::2]:7", "[fd01::2]:7", "[fd00::2]:7");
    passes("10.0.0.3:1", "10.0.0.4:1", "10.0.0.3:1");
    passes("10.0.0.4:1", "10.0.0.3:1", "10.0.0.4:1");
    passes("[::ffff:10.0.0.1]:80", "127.0.0.2:80", "[::ffff:10.0.0.1]:80");
}

static void what_stands_nowhere_passes_as_it_is(void **state)
{
    (void)state;
    passes("10.0.0.5:80", "10.0.0.5:80", "10.0.0.5:80");
    passes("0.0.0.0:80", "0.0.0.0:80", "0.0.0.0:80");
    passes("[::]:80", "[::]:80", "[::]:80");
    passes("[::1]:80", "[::1]:80", "[::1]:80");
    passes("[::ffff:127.0.0.1]:80", "127.0.0.1:80", "[::ffff:127.0.0.1]:80");
}

static void zones_are_indexes(void **state)
{
    (void)state;
    passes("[fe80::9%12]:1", "[fe80::9%3]:1", "[fe80::9%12]:1");
    passes("[fe80::9]:1", "[fe80::9%3]:1", "[fe80::9%12]:1");  /* the adapter's link */
    passes("[fe80::9%7]:1", "[fe80::9%7]:1", "[fe80::9%7]:1"); /* another's */
    passes("[fe80::1]:1", "127.0.0.4:1", "[fe80::1%12]:1");
    passes("[fe80::1%12]:1", "127.0.0.4:1", "[fe80::1%12]:1");
}

/* One who asks in IPv4 has no room for more. */
static void the_family_asked_in_stays(void **state)
{
    struct os_addr host = parsed("127.0.0.3:9"); /* fd00::1 */
    SOCKADDR_IN v4;
    SOCKADDR_INET any;
    ULONG length = sizeof v4;

    (void)state;
    assert_int_equal(address_put(&adapter, &host, AF_INET, (PSOCKADDR)&v4, &length), 0);
    assert_int_equal(v4.sin_addr.S_un.S_un_b.s_b4, 3);
    length = sizeof any;
    assert_int_equal(address_put(&adapter, &host, 0, (PSOCKADDR)&any, &length), 0);
    assert_int_equal(any.si_family, AF_INET6);
    length = 0;
    assert_int_equal(address_put(&adapter, &host, AF_INET6, NULL, &length),
                     STATUS_BUFFER_TOO_SMALL);
    assert_int_equal(length, 28);
    assert_int_equal(address_put(&adapter, &host, AF_INET6, NULL, NULL), STATUS_INVALID_PARAMETER);
}

static void loopback_has_what_is_left(void **state)
{
    struct os_interface lo = {.index = 1, .host_index = 1, .name = "lo", .loopback = true};
    static const struct {
        const char *text;
        bool own;
    } cases[] = {{"127.0.0.1", true},   {"127.9.9.9", true}, {"127.0.0.2", false},
                 {"127.0.0.77", false}, {"10.0.0.1", false}, {"::1", true}};

    (void)state;
    lo.addr[lo.addr_count++] = parsed("::1");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct os_addr address = parsed(cases[i].text);

        assert_int_equal(address_is_of(&lo, &address), cases[i].own);
    }
}

static void sentences_list_what_would_do(void **state)
{
    struct os_interface it = {.index = 12, .name = "Ethernet 2"};
    struct os_addr address = parsed("10.0.0.7");
    char text[ADDRESS_FOREIGN_MAX];

    (void)state;
    assert_string_equal(
        address_foreign(&it, &address, text),
        "address 10.0.0.7 is not one of interface Ethernet 2 (need an address on it)");
    it.addr[it.addr_count++] = parsed("10.0.0.1");
    it.addr[it.addr_count++] = parsed("fd00::1");
    address = parsed("127.0.0.2");
    assert_string_equal(address_foreign(&it, &address, text),
                        "address 127.0.0.2 is not one of interface Ethernet 2 (need "
                        "10.0.0.1, fd00::1); it is the host's of 10.0.0.1");
    while (it.addr_count < OS_IF_ADDR_MAX)
        it.addr[it.addr_count++] = parsed("2001:db8:1111:2222:3333:4444:5555:6666");
    address_list(&it, text);
    assert_true(strlen(text) < ADDRESS_LIST_MAX);
    assert_non_null(strstr(text, ", ..."));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(addresses_pass_both_ways),
        cmocka_unit_test(what_stands_nowhere_passes_as_it_is),
        cmocka_unit_test(zones_are_indexes),
        cmocka_unit_test(the_family_asked_in_stays),
        cmocka_unit_test(loopback_has_what_is_left),
        cmocka_unit_test(sentences_list_what_would_do),
    };

    return cmocka_run_group_tests_name("address", tests, lay_down, take_up);
}
