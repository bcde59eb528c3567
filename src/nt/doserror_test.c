// SPDX-License-Identifier: MIT
/*
 * Tests of doserror.c: well-known pairs, and that no status of the status table is forgotten.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <wdm.h>

static void statuses_have_their_error_numbers(void **state)
{
    (void)state;
    assert_int_equal(RtlNtStatusToDosError(STATUS_SUCCESS), 0);
    assert_int_equal(RtlNtStatusToDosError(STATUS_PENDING), 997);
    assert_int_equal(RtlNtStatusToDosError(STATUS_ACCESS_DENIED), 5);
    assert_int_equal(RtlNtStatusToDosError(STATUS_INVALID_PARAMETER), 87);
    assert_int_equal(RtlNtStatusToDosError(STATUS_BUFFER_OVERFLOW), 234);
    assert_int_equal(RtlNtStatusToDosError(STATUS_IO_TIMEOUT), 121);
    assert_int_equal(RtlNtStatusToDosError(STATUS_CONNECTION_REFUSED), 1225);
    assert_int_equal(RtlNtStatusToDosError(STATUS_CANCELLED), 995);
    assert_int_equal(RtlNtStatusToDosError(STATUS_NOINTERFACE), 632);
    assert_int_equal(RtlNtStatusToDosError(STATUS_ALREADY_INITIALIZED), 1247);
    assert_int_equal(RtlNtStatusToDosError((NTSTATUS)0xE0001234), 317);
}

static void every_status_of_ours_has_one(void **state)
{
#define NDK_MEANING(status, meaning, causes) status,
#define NDK_NAME(status, meaning)            status,
    static const NTSTATUS all[] = {
#include "base/status_table.def"
    };

    (void)state;
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (RtlNtStatusToDosError(all[i]) == 317)
            fail_msg("status 0x%08X has no error number", (unsigned)all[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(statuses_have_their_error_numbers),
        cmocka_unit_test(every_status_of_ours_has_one),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
