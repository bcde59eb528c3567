/* SPDX-License-Identifier: MIT */
/* red_test.c - RED() is off unless a breach is named, and names match as a whole. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/red.h"

/* The one breach that lies in a test: it shows that the red run notices a test that fails. */
static void nothing_is_breached_unless_named(void **state)
{
    (void)state;
    assert_false(RED("base-red-self"));
}

#if defined(SOFTNDK_RED) && SOFTNDK_RED

static void names_match_as_a_whole(void **state)
{
    static const struct {
        const char *list;
        int named;
    } cases[] = {
        {"room-what", 1},
        {"room-whatever", 0},
        {"room-wha", 0},
        {"room", 0},
        {"", 0},
        {",", 0},
        {"a,room-what", 1},
        {"room-what,a", 1},
        {",,room-what", 1},
        {"a,room-whatever,b", 0},
        {"Room-what", 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_int_equal(setenv("SOFTNDK_RED_BREACH", cases[i].list, 1), 0);
        assert_int_equal(red_breach_named("room-what"), cases[i].named);
    }
    assert_int_equal(unsetenv("SOFTNDK_RED_BREACH"), 0);
    assert_int_equal(red_breach_named("room-what"), 0);
}

static void a_place_keeps_its_first_answer(void **state)
{
    atomic_int place = 0;
    atomic_int other_place = 0;

    (void)state;
    assert_false(red_breach_cached("room-what", &place));
    assert_int_equal(setenv("SOFTNDK_RED_BREACH", "room-what", 1), 0);
    assert_false(red_breach_cached("room-what", &place));
    assert_true(red_breach_cached("room-what", &other_place));
    assert_int_equal(unsetenv("SOFTNDK_RED_BREACH"), 0);
    assert_true(red_breach_cached("room-what", &other_place));
}

#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_breached_unless_named),
#if defined(SOFTNDK_RED) && SOFTNDK_RED
        cmocka_unit_test(names_match_as_a_whole),
        cmocka_unit_test(a_place_keeps_its_first_answer),
#endif
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
