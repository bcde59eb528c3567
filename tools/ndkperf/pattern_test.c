// SPDX-License-Identifier: MIT
/* pattern_test.c - what verification compares: every octet counts, every message differs. */
#include "run.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define SIZE_MAX_TESTED 70

static void every_octet_counts(void **state)
{
    UCHAR octets[SIZE_MAX_TESTED];

    (void)state;
    for (size_t size = 1; size <= SIZE_MAX_TESTED; size++) {
        pattern_fill(octets, size, size);
        assert_true(pattern_good(octets, size, size));
        for (size_t at = 0; at < size; at++) {
            octets[at] ^= 1;
            assert_false(pattern_good(octets, size, size));
            octets[at] ^= 1;
        }
    }
}

/* One message is not taken for the next. */
static void messages_differ(void **state)
{
    UCHAR octets[SIZE_MAX_TESTED];

    (void)state;
    for (size_t size = 1; size <= SIZE_MAX_TESTED; size++)
        for (uint64_t n = 0; n < 300; n++) {
            pattern_fill(octets, size, n);
            assert_false(pattern_good(octets, size, n + 1));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_octet_counts),
        cmocka_unit_test(messages_differ),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
