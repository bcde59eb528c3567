// SPDX-License-Identifier: MIT
/* reason_test.c - the 32-bit reasons: the encoding loses nothing, the words name everything. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <softndk.h>

#include "base/reason.h"
#include "iwarp/terminate.h"

static const struct {
    const char *name;
    unsigned value;
} causes[] = {
#define X(name, value, text) {#name, value},
    REASON_CAUSES(X)
#undef X
};

static void the_parts_come_back(void **state)
{
    (void)state;
    for (unsigned source = 0; source < 16; source++)
        for (unsigned wire = 0; wire < 0x10000; wire += 251) {
            uint32_t code = reason_make((enum reason_source)source, wire | 0x10000, 0xabc);

            assert_int_equal(reason_source(code), source);
            assert_int_equal(reason_wire_error(code), wire);
            assert_int_equal(reason_cause(code), 0xabc);
        }
    assert_int_equal(
        reason_make(REASON_TERMINATE_SENT, IWARP_ERROR(1, 2, 0x02), REASON_CAUSE_NO_RECEIVE),
        0x31202062);
    assert_int_equal(reason_make(REASON_NONE, 0, 0), 0);
}

static void causes_are_distinct_and_in_range(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof causes / sizeof causes[0]; i++) {
        assert_true(causes[i].value < REASON_CAUSE_SOCKET);
        for (size_t k = 0; k < i; k++)
            if (causes[i].value == causes[k].value)
                fail_msg("%s and %s", causes[i].name, causes[k].name);
    }
}

static void every_cause_and_source_has_words_of_its_own(void **state)
{
    char texts[128][200];
    size_t count = 0;

    (void)state;
    for (size_t i = 0; i < sizeof causes / sizeof causes[0]; i++)
        softndk_reason_text(reason_make(REASON_LOCAL_FAULT, 0, causes[i].value), texts[count++],
                            200);
    for (unsigned source = 0; source < REASON_SOURCES; source++)
        if (source != REASON_LOCAL_FAULT)
            softndk_reason_text(reason_make((enum reason_source)source, 0, 0), texts[count++], 200);
    assert_true(count < 128);
    for (size_t i = 0; i < count; i++) {
        assert_true(strlen(texts[i]) > 5);
        assert_null(strstr(texts[i], "unknown source"));
        assert_null(strstr(texts[i], "unknown cause"));
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(texts[i], texts[k]);
    }
}

static void a_terminate_is_told_in_full(void **state)
{
    char text[400], expected[400];

    (void)state;
    snprintf(expected, sizeof expected, "Terminate sent: %s (1/2/02); a Send met no receive",
             iwarp_error_text(IWARP_ERROR(1, 2, 0x02)));
    softndk_reason_text(
        reason_make(REASON_TERMINATE_SENT, IWARP_ERROR(1, 2, 0x02), REASON_CAUSE_NO_RECEIVE), text,
        sizeof text);
    assert_string_equal(text, expected);
    /* 0/0/00 is an error too when a Terminate carried it */
    softndk_reason_text(reason_make(REASON_TERMINATE_RECEIVED, IWARP_ERROR(0, 0, 0), 0), text,
                        sizeof text);
    assert_non_null(strstr(text, "Terminate received: "));
    assert_non_null(strstr(text, "(0/0/00)"));
    softndk_reason_text(reason_make(REASON_PEER_RST, 0, REASON_CAUSE_FIN_IN_FPDU), text,
                        sizeof text);
    assert_string_equal(text, "the peer reset the connection (RST); FIN inside an FPDU");
    softndk_reason_text(0, text, sizeof text);
    assert_string_equal(text, "no reason given");
}

static void socket_errors_keep_their_number(void **state)
{
    char text[200];

    (void)state;
    assert_int_equal(reason_socket_cause(-ECONNRESET), 0x800 + ECONNRESET);
    assert_int_equal(reason_socket_cause(ECONNRESET), 0x800 + ECONNRESET);
    assert_int_equal(reason_socket_cause(100000), 0xfff);
    assert_int_equal(reason_socket_cause(INT32_MIN), 0xfff);
    softndk_reason_text(reason_make(REASON_LOCAL_FAULT, 0, reason_socket_cause(-EHOSTUNREACH)),
                        text, sizeof text);
    assert_string_equal(text, "failed locally; socket error EHOSTUNREACH, no way to the host");
    softndk_reason_text(reason_make(REASON_LOCAL_FAULT, 0, reason_socket_cause(-1900)), text,
                        sizeof text);
    assert_string_equal(text, "failed locally; socket error 1900");
}

/* Any number at all gives a text, whole or cut off, and its whole length. */
static void any_number_gives_a_text(void **state)
{
    uint32_t code = 1;
    char text[500], part[500];

    (void)state;
    for (unsigned i = 0; i < 20000; i++) {
        size_t length, room;

        code = code * 1664525u + 1013904223u;
        length = softndk_reason_text(code, text, sizeof text);
        assert_int_equal(length, strlen(text));
        assert_in_range(length, 5, 399);
        room = code % 40;
        memset(part, 'x', sizeof part);
        assert_int_equal(softndk_reason_text(code, part, room), length);
        if (room) {
            assert_int_equal(strlen(part), length < room ? length : room - 1);
            assert_memory_equal(part, text, strlen(part));
        }
        assert_int_equal(part[room], 'x');
    }
    assert_true(softndk_reason_text(7, NULL, 0) > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_parts_come_back),
        cmocka_unit_test(causes_are_distinct_and_in_range),
        cmocka_unit_test(every_cause_and_source_has_words_of_its_own),
        cmocka_unit_test(a_terminate_is_told_in_full),
        cmocka_unit_test(socket_errors_keep_their_number),
        cmocka_unit_test(any_number_gives_a_text),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
