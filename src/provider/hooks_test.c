// SPDX-License-Identifier: MIT
/* hooks_test.c - the completion mode, the nth-call failures, and their texts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include <ntstatus.h>

#include "provider/hooks.h"

static void the_modes_are_what_they_say(void **state)
{
    (void)state;
    assert_int_equal(pend_choose(), PEND_NEVER);
    assert_true(pend_set("always"));
    assert_int_equal(pend_choose(), PEND_ALWAYS);
    assert_true(pend_set("early"));
    assert_int_equal(pend_choose(), PEND_EARLY);
    assert_true(pend_set("never"));
    assert_int_equal(pend_choose(), PEND_NEVER);
}

static void a_bad_mode_changes_nothing(void **state)
{
    static const char *const bad[] = {"",
                                      "Never",
                                      "nev",
                                      "never ",
                                      "random",
                                      "random:",
                                      "random:x",
                                      "random:1x",
                                      "random:-1",
                                      "random: 1",
                                      "random:99999999999999999999"};

    (void)state;
    assert_true(pend_set("early"));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_false(pend_set(bad[i]));
    assert_false(pend_set(NULL));
    assert_int_equal(pend_choose(), PEND_EARLY);
}

static void a_seed_gives_one_sequence(void **state)
{
    enum pend_mode first[300], other[300];
    unsigned count[3] = {0};
    unsigned differ = 0;

    (void)state;
    assert_true(pend_set("random:1"));
    for (int i = 0; i < 300; i++)
        count[first[i] = pend_choose()]++;
    assert_true(pend_set("random:1"));
    for (int i = 0; i < 300; i++)
        assert_int_equal(pend_choose(), first[i]);
    assert_true(pend_set("random:0x2"));
    for (int i = 0; i < 300; i++)
        differ += (other[i] = pend_choose()) != first[i];
    for (int i = 0; i < 3; i++)
        assert_in_range(count[i], 60, 150);
    assert_in_range(differ, 120, 270);
}

static void the_nth_call_fails_once(void **state)
{
    (void)state;
    assert_true(fail_set("NdkCreateCq:3:0xC000009A"));
    assert_int_equal(fail_check(CALL_CREATE_CQ), STATUS_SUCCESS);
    assert_int_equal(fail_check(CALL_CREATE_PD), STATUS_SUCCESS);
    assert_int_equal(fail_check(CALL_CREATE_CQ), STATUS_SUCCESS);
    assert_int_equal(fail_check(CALL_CREATE_CQ), STATUS_INSUFFICIENT_RESOURCES);
    for (int i = 0; i < 10; i++)
        assert_int_equal(fail_check(CALL_CREATE_CQ), STATUS_SUCCESS);
}

static void repeat_fails_all_the_rest(void **state)
{
    (void)state;
    assert_true(fail_set("NdkSend:2:STATUS_IO_TIMEOUT:repeat"));
    assert_int_equal(fail_check(CALL_SEND), STATUS_SUCCESS);
    for (int i = 0; i < 5; i++)
        assert_int_equal(fail_check(CALL_SEND), STATUS_IO_TIMEOUT);
    assert_true(fail_set(""));
    assert_int_equal(fail_check(CALL_SEND), STATUS_SUCCESS);
}

static void rules_stand_side_by_side(void **state)
{
    (void)state;
    assert_true(fail_set("NdkConnect:1:STATUS_CONNECTION_REFUSED,NdkConnect:2:3221226045,"
                         "NdkListen:1:STATUS_SHARING_VIOLATION"));
    assert_int_equal(fail_check(CALL_LISTEN), STATUS_SHARING_VIOLATION);
    assert_int_equal(fail_check(CALL_CONNECT), STATUS_CONNECTION_REFUSED);
    assert_int_equal(fail_check(CALL_CONNECT), STATUS_HOST_UNREACHABLE);
    assert_int_equal(fail_check(CALL_CONNECT), STATUS_SUCCESS);
}

static void every_call_can_be_named(void **state)
{
    char text[80];

    (void)state;
    for (int i = 0; i < CALL_COUNT; i++) {
        assert_int_equal(strncmp(call_name((enum call)i), "Ndk", 3), 0);
        strcpy(text, call_name((enum call)i));
        strcat(text, ":1:STATUS_INTERNAL_ERROR");
        if (i == CALL_CLOSE) {
            assert_false(fail_set(text)); /* a close cannot fail */
            continue;
        }
        assert_true(fail_set(text));
        assert_int_equal(fail_check((enum call)i), STATUS_INTERNAL_ERROR);
    }
    assert_string_equal(call_name(CALL_COUNT), "?");
}

static void bad_rules_change_nothing(void **state)
{
    static const char *const bad[] = {
        "NdkCreateCq",
        "NdkCreateCq:1",
        "NdkCreateCq:0:0xC000009A",
        "NdkCreateCq:x:0xC000009A",
        "NdkCreateCq:-1:0xC000009A",
        "NdkCreateCq:1:",
        "NdkCreateCq:1:STATUS_NONSENSE",
        "NdkCreateCq:1:0x1C000009A",
        "NdkCreateCq:1:0xC000009Ag",
        "NdkCreateCq:1:0", /* a success without its object */
        "NdkCreateCq:1:0x103",
        "NdkCreateCq:1:STATUS_PENDING",
        "NdkCreateCq:1:0xC000009A:again",
        "NdkCreateCq:1:0xC000009A:repeat:x",
        "NdkCreateCq:1:0xC000009A,",
        ",NdkCreateCq:1:0xC000009A",
        "NdkNothing:1:0xC000009A",
        "memory",
        "memory:0",
        "memory:1:0xC000009A",
    };

    (void)state;
    assert_true(fail_set("NdkSend:1:STATUS_IO_TIMEOUT"));
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (fail_set(bad[i]))
            fail_msg("taken: %s", bad[i]);
    assert_int_equal(fail_check(CALL_SEND), STATUS_IO_TIMEOUT);
    assert_int_equal(fail_check(CALL_CREATE_CQ), STATUS_SUCCESS);
}

static void memory_is_a_call_too(void **state)
{
    void *first, *second;

    (void)state;
    assert_true(fail_set("memory:2"));
    first = hooks_alloc(16);
    assert_non_null(first);
    assert_memory_equal(first, (char[16]){0}, 16);
    assert_null(hooks_alloc(16));
    second = hooks_alloc(16);
    assert_non_null(second);
    free(first);
    free(second);
    assert_true(fail_set(NULL));
}

/* A child that has not read the environment yet. 0: as expected. */
static int environment_case(const char *pend, const char *rules, enum pend_mode mode,
                            NTSTATUS status)
{
    int result;
    pid_t child = fork();

    if (child == 0) {
        setenv("SOFTNDK_LOG", "none", 1);
        setenv("SOFTNDK_PEND", pend, 1);
        setenv("SOFTNDK_FAIL", rules, 1);
        _exit(pend_choose() == mode && fail_check(CALL_LISTEN) == status ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &result, 0), child);
    return result;
}

/* Runs first, while this process has not read it either. */
static void the_environment_is_read(void **state)
{
    (void)state;
    assert_int_equal(environment_case("early", "NdkListen:1:STATUS_INVALID_ADDRESS", PEND_EARLY,
                                      STATUS_INVALID_ADDRESS),
                     0);
    assert_int_equal(environment_case("nonsense", "nonsense", PEND_NEVER, STATUS_SUCCESS), 0);
    assert_int_equal(environment_case("", "", PEND_NEVER, STATUS_SUCCESS), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_environment_is_read),    cmocka_unit_test(the_modes_are_what_they_say),
        cmocka_unit_test(a_bad_mode_changes_nothing), cmocka_unit_test(a_seed_gives_one_sequence),
        cmocka_unit_test(the_nth_call_fails_once),    cmocka_unit_test(repeat_fails_all_the_rest),
        cmocka_unit_test(rules_stand_side_by_side),   cmocka_unit_test(every_call_can_be_named),
        cmocka_unit_test(bad_rules_change_nothing),   cmocka_unit_test(memory_is_a_call_too),
    };

    unsetenv("SOFTNDK_PEND");
    unsetenv("SOFTNDK_FAIL");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
