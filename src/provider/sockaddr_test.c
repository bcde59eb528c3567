// SPDX-License-Identifier: MIT
/* sockaddr_test.c - NT addresses in and out: families, lengths, alignment, scopes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "provider/sockaddr.h"

static void v4(SOCKADDR_IN *out)
{
    memset(out, 0, sizeof *out);
    out->sin_family = AF_INET;
    out->sin_port = RtlUshortByteSwap(445);
    out->sin_addr.s_addr = RtlUlongByteSwap(0x0a010203);
}

static void v6(SOCKADDR_IN6 *out, unsigned family, unsigned char first)
{
    memset(out, 0, sizeof *out);
    out->sin6_family = (ADDRESS_FAMILY)family;
    out->sin6_port = RtlUshortByteSwap(5445);
    out->sin6_flowinfo = 77;
    out->sin6_scope_id = 3;
    for (unsigned i = 0; i < 16; i++)
        ((unsigned char *)&out->sin6_addr)[i] = (unsigned char)(i * 16);
    ((unsigned char *)&out->sin6_addr)[0] = first;
    ((unsigned char *)&out->sin6_addr)[1] = first == 0xfe ? 0x80 : 1;
}

static void v4_goes_both_ways(void **state)
{
    SOCKADDR_IN in, back;
    struct os_addr address;
    ADDRESS_FAMILY family = 0;
    ULONG length = sizeof back;

    (void)state;
    v4(&in);
    assert_true(sockaddr_get((PSOCKADDR)&in, sizeof in, &address, &family));
    assert_int_equal(family, AF_INET);
    assert_int_equal(address.family, OS_FAMILY_V4);
    assert_int_equal(address.port, 445);
    assert_memory_equal(address.ip, ((uint8_t[4]){10, 1, 2, 3}), 4);
    memset(&back, 0xa5, sizeof back);
    assert_int_equal(sockaddr_put(&address, family, (PSOCKADDR)&back, &length), STATUS_SUCCESS);
    assert_int_equal(length, 16);
    assert_memory_equal(&back, &in, sizeof in);
}

static void v6_answers_in_the_family_it_was_asked_in(void **state)
{
    static const unsigned families[] = {AF_INET6, SOCKADDR_LINUX_INET6};

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        SOCKADDR_IN6 in, back;
        struct os_addr address;
        ADDRESS_FAMILY family = 0;
        ULONG length = sizeof back;

        v6(&in, families[i], 0xfe);
        assert_true(sockaddr_get((PSOCKADDR)&in, sizeof in, &address, &family));
        assert_int_equal(family, families[i]);
        assert_int_equal(address.family, OS_FAMILY_V6);
        assert_int_equal(address.port, 5445);
        assert_int_equal(address.scope_id, 3);
        assert_int_equal(sockaddr_put(&address, family, (PSOCKADDR)&back, &length), 0);
        assert_int_equal(length, 28);
        in.sin6_flowinfo = 0; /* not kept */
        assert_memory_equal(&back, &in, sizeof in);
        assert_int_equal(sockaddr_put(&address, 0, (PSOCKADDR)&back, &length), 0);
        assert_int_equal(back.sin6_family, 23);
    }
}

static void a_scope_counts_on_link_local_addresses_only(void **state)
{
    SOCKADDR_IN6 in;
    struct os_addr address;

    (void)state;
    v6(&in, AF_INET6, 0x20);
    assert_true(sockaddr_get((PSOCKADDR)&in, sizeof in, &address, NULL));
    assert_int_equal(address.scope_id, 0);
    v6(&in, AF_INET6, 0xff);
    assert_true(sockaddr_get((PSOCKADDR)&in, sizeof in, &address, NULL));
    assert_int_equal(address.scope_id, 3);
}

/* Each length in memory of just that length, so that a sanitizer sees a read beyond it. */
static void short_and_foreign_addresses_are_refused(void **state)
{
    static const unsigned families[] = {AF_INET, AF_INET6, SOCKADDR_LINUX_INET6};
    struct os_addr address = {.port = 9};
    ADDRESS_FAMILY family = 99;

    (void)state;
    for (unsigned f = 0; f < 3; f++)
        for (ULONG length = 0; length < 40; length++) {
            ULONG need = f == 0 ? 16 : 28;
            unsigned char *octets = malloc(length ? length : 1);
            SOCKADDR_IN6 in;

            assert_non_null(octets);
            v6(&in, families[f], 0x20);
            memset(octets, 0, length);
            memcpy(octets, &in, length < sizeof in ? length : sizeof in);
            if (sockaddr_get((PSOCKADDR)(void *)octets, length, &address, &family) !=
                (length >= need))
                fail_msg("family %u length %u", families[f], length);
            free(octets);
        }
    address.port = 9;
    family = 99;
    for (unsigned number = 0; number < 64; number++) {
        SOCKADDR_IN6 in;

        if (number == 2 || number == 10 || number == 23)
            continue;
        v6(&in, number, 0x20);
        assert_false(sockaddr_get((PSOCKADDR)&in, sizeof in, &address, &family));
    }
    assert_false(sockaddr_get(NULL, 28, &address, &family));
    assert_int_equal(address.port, 9);
    assert_int_equal(family, 99);
}

static void an_unaligned_address_is_read(void **state)
{
    unsigned char octets[sizeof(SOCKADDR_STORAGE) + 1];
    SOCKADDR_IN6 in;
    struct os_addr address;

    (void)state;
    v6(&in, AF_INET6, 0x20);
    memset(octets, 0, sizeof octets);
    memcpy(octets + 1, &in, sizeof in);
    assert_true(
        sockaddr_get((PSOCKADDR)(void *)(octets + 1), sizeof(SOCKADDR_STORAGE), &address, NULL));
    assert_int_equal(address.port, 5445);
}

static void a_small_buffer_learns_what_is_needed(void **state)
{
    static const struct os_addr addresses[] = {{.family = OS_FAMILY_V4, .ip = {1, 2, 3, 4}},
                                               {.family = OS_FAMILY_V6, .ip = {0x20}}};

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        ULONG need = i ? 28 : 16;

        for (ULONG room = 0; room < 40; room++) {
            unsigned char buffer[40];
            ULONG length = room;
            NTSTATUS status;

            memset(buffer, 0xa5, sizeof buffer);
            status = sockaddr_put(&addresses[i], 0, (PSOCKADDR)(void *)buffer, &length);
            assert_int_equal(length, need);
            assert_int_equal(status, room < need ? STATUS_BUFFER_TOO_SMALL : STATUS_SUCCESS);
            for (ULONG k = room < need ? 0 : need; k < sizeof buffer; k++)
                assert_int_equal(buffer[k], 0xa5);
        }
        {
            ULONG length = 128;

            assert_int_equal(sockaddr_put(&addresses[i], 0, NULL, &length),
                             STATUS_BUFFER_TOO_SMALL);
            assert_int_equal(length, need);
            assert_int_equal(sockaddr_put(&addresses[i], 0, NULL, NULL), STATUS_INVALID_PARAMETER);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(v4_goes_both_ways),
        cmocka_unit_test(v6_answers_in_the_family_it_was_asked_in),
        cmocka_unit_test(a_scope_counts_on_link_local_addresses_only),
        cmocka_unit_test(short_and_foreign_addresses_are_refused),
        cmocka_unit_test(an_unaligned_address_is_read),
        cmocka_unit_test(a_small_buffer_learns_what_is_needed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
