// SPDX-License-Identifier: MIT
/*
 * Tests of bugcheck.c and of the assertions of wdm/debug.h: what is said, and that it is the end.
 */
#define DBG 1 /* a checked build */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/log.h"
#include "nt/nt_testing.h"

static void check_known(void *arg)
{
    (void)arg;
    KeBugCheckEx(0xD1, 0x1000, 2, 0, 0xffff0000);
}

static void check_own(void *arg)
{
    (void)arg;
    KeBugCheckEx(0xBADC0DE, 1, 2, 3, 4);
}

static void check_short(void *arg)
{
    (void)arg;
    KeBugCheck(0xE2);
}

static void fail_fast(void *arg)
{
    (void)arg;
    RtlFailFast(14);
}

static void check_unlogged(void *arg)
{
    (void)arg;
    log_set_level((enum log_level) - 1);
    KeBugCheck(0xE2);
}

static int two(void)
{
    return 2;
}

static void assert_wrong(void *arg)
{
    NT_ASSERT(arg == NULL);
    NT_ASSERT(two() + 2 == 5);
}

static void verify_wrong(void *arg)
{
    (void)arg;
    if (!NT_VERIFY(two() == 2))
        _exit(9);
    NT_VERIFY(two() == 3);
}

static void assert_by_hand(void *arg)
{
    static char message[] = "what it means";

    RtlAssert(arg, (PVOID)(ULONG_PTR) "file.c", 12, message);
}

static void legacy_assert(void *arg)
{
    ASSERT(arg != NULL);
}

static void ends_saying(void (*fn)(void *), const char *want)
{
    char text[8000];
    int status = child_run(fn, NULL, text, sizeof text);

    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    if (!strstr(text, want))
        fail_msg("\"%s\" has no \"%s\"", text, want);
}

static void a_bug_check_is_told_in_words(void **state)
{
    (void)state;
    ends_saying(check_known, "bug check 0xD1 DRIVER_IRQL_NOT_LESS_OR_EQUAL (address 0x1000, IRQL "
                             "0x2, access 0x0, instruction 0xffff0000)\n");
    ends_saying(check_own, "bug check 0xBADC0DE a code of the driver's own (0x1, 0x2, 0x3, 0x4)\n");
    ends_saying(check_short, "bug check 0xE2 MANUALLY_INITIATED_CRASH (0x0, 0x0, 0x0, 0x0)\n");
    ends_saying(fail_fast, "KERNEL_SECURITY_CHECK_FAILURE (kind 0xe, 0x0, 0x0, 0x0): invalid "
                           "reference count\n");
}

static void it_is_told_whatever_the_log_is(void **state)
{
    (void)state;
    ends_saying(check_unlogged, "MANUALLY_INITIATED_CRASH");
}

static void the_call_stack_is_told(void **state)
{
    (void)state;
    ends_saying(check_short, "\nsoftndk: error:   ");
}

static void assertions_of_a_checked_build_are_the_end(void **state)
{
    (void)state;
    ends_saying(assert_wrong, "assertion failed: two() + 2 == 5, ");
    ends_saying(assert_wrong, "bugcheck_test.c:");
    ends_saying(verify_wrong, "assertion failed: two() == 3, ");
    ends_saying(assert_by_hand, "assertion failed: what it means: (null), file.c:12\n");
    ends_saying(legacy_assert, "assertion failed: arg != ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bug_check_is_told_in_words),
        cmocka_unit_test(it_is_told_whatever_the_log_is),
        cmocka_unit_test(the_call_stack_is_told),
        cmocka_unit_test(assertions_of_a_checked_build_are_the_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
