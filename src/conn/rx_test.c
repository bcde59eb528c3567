// SPDX-License-Identifier: MIT
/* How much the receive owner takes from the socket in one turn. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "conn/rx_internal.h"

static void all_there_is_as_long_as_receives_suffice(void **state)
{
    (void)state;
    assert_int_equal(rx_most_next(ENGINE_STAGING, false, 1000, 1000), ENGINE_STAGING);
    assert_int_equal(rx_most_next(ENGINE_STAGING, false, ENGINE_STAGING, ENGINE_STAGING),
                     ENGINE_STAGING);
}

static void what_receives_sufficed_for(void **state)
{
    (void)state;
    assert_int_equal(rx_most_next(ENGINE_STAGING, true, 90000, 300000), 90000);
    assert_int_equal(rx_most_next(90000, true, 50000, 90000), 50000);
    /* Few small ones: the next may be large. */
    assert_int_equal(rx_most_next(90000, true, 24, 90000), RX_LEAST);
    /* None at all says nothing of how many are posted at once. */
    assert_int_equal(rx_most_next(90000, true, 0, 90000), 90000);
}

static void a_little_more_each_time(void **state)
{
    size_t most = RX_LEAST;
    unsigned turns = 0;

    (void)state;
    assert_int_equal(rx_most_next(8000, false, 8000, 8000), 9000);
    assert_int_equal(rx_most_next(8000, false, 7000, 7999), 8000); /* it was not at the limit */
    for (; most < ENGINE_STAGING; turns++)
        most = rx_most_next(most, false, most, most);
    assert_int_equal(most, ENGINE_STAGING);
    assert_true(turns < 50);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_there_is_as_long_as_receives_suffice),
        cmocka_unit_test(what_receives_sufficed_for),
        cmocka_unit_test(a_little_more_each_time),
    };

    return cmocka_run_group_tests_name("rx", tests, NULL, NULL);
}
