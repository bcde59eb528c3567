// SPDX-License-Identifier: MIT
/*
 * One completion more than the depth: the CQ is dead and so is whoever uses it, one notification
 * tells of it, what was queued stays. The edge of the depth itself is safe for ever.
 */
#include "cq_test.h"

/* Fills the CQ to its depth, which it bears. */
static void fill_up(struct seen *seen)
{
    put_many(seen, seen->cq->depth, 0);
}

static unsigned long long cq_errors(void)
{
    return atomic_load(&adapter_from(adapter)->counters->cq_error);
}

static void the_depth_fits_and_one_more_is_the_end(void **state)
{
    static const ULONG depths[] = {1, 4, 5, 63, 64};

    (void)state;
    for (int d = 0; d < 5; d++) {
        unsigned long long errors = cq_errors();
        char text[256];
        struct seen seen;

        make(&seen, depths[d]);
        for (int turn = 0; turn < 1000; turn++) {
            fill_up(&seen);
            assert_int_equal(take(&seen, 64), depths[d]);
        }
        fill_up(&seen);
        arm(&seen, ERRORS);
        assert_int_equal(count(&seen), 0);
        assert_int_equal(cq_errors(), errors);
        assert_false(put(&seen, 99, STATUS_SUCCESS, false));
        assert_int_equal(count(&seen), 1);
        assert_int_equal(atomic_load(&seen.status), STATUS_BUFFER_OVERFLOW);
        assert_int_equal(cq_errors(), errors + 1);
        softndk_reason(&seen.cq->object.header, text, sizeof text);
        assert_non_null(strstr(text, "overrun: more completions than the depth"));
        assert_false(put(&seen, 99, STATUS_SUCCESS, false));
        assert_int_equal(cq_errors(), errors + 1);
        end(&seen);
    }
}

/* A batch that is too long: what fits is there. */
static void a_batch_fits_as_far_as_it_goes(void **state)
{
    struct cq_entry batch[8];
    struct seen seen;

    (void)state;
    for (uintptr_t i = 0; i < 8; i++)
        batch[i] = (struct cq_entry){.context = (PVOID)(i + 3)};
    make(&seen, 8);
    put_many(&seen, 3, 0);
    assert_true(cq_put(seen.cq, batch, 5));
    take_numbered(&seen, 8, 0);
    put_many(&seen, 3, 0);
    assert_false(cq_put(seen.cq, batch, 6));
    take_numbered(&seen, 8, 0);
    /* Room does not revive it. */
    assert_false(cq_put(seen.cq, batch, 1));
    take_numbered(&seen, 0, 0);
    end(&seen);
}

static void what_was_queued_can_be_polled_after(void **state)
{
    NDK_RESULT_EX ex;
    NDK_RESULT plain;
    struct seen seen;

    (void)state;
    make(&seen, 3);
    fill_up(&seen);
    arm(&seen, ANY);
    assert_false(put(&seen, 99, STATUS_SUCCESS, false));
    settle(&seen);
    assert_int_equal(cq_dispatch.NdkGetCqResults(ndk_cq(&seen), &plain, 1), 1);
    assert_ptr_equal(plain.RequestContext, (PVOID)0);
    assert_int_equal(cq_dispatch.NdkGetCqResultsEx(ndk_cq(&seen), &ex, 1), 1);
    assert_ptr_equal(ex.RequestContext, (PVOID)1);
    take_numbered(&seen, 1, 2);
    end(&seen);
}

/* ---- how often it is told ---- */

static void each_arm_is_told_and_only_one(void **state)
{
    static const ULONG arms[] = {ERRORS, SOLICITED, ANY};

    (void)state;
    for (int a = 0; a < 3; a++)
        for (int later = 0; later < 2; later++) {
            struct seen seen;

            make(&seen, 2);
            fill_up(&seen);
            take(&seen, 2);
            if (!later)
                arm(&seen, arms[a]);
            fill_up(&seen);
            settle(&seen);
            /* ANY is used up by the first entry, and if its notification did not see the second
             * one, then by that. */
            for (int i = 0; i < 2 && !later && arms[a] == ANY; i++) {
                arm(&seen, ANY);
                settle(&seen);
            }
            assert_int_equal(atomic_load(&seen.failures), 0);
            assert_false(put(&seen, 9, STATUS_SUCCESS, false));
            if (later) {
                assert_int_equal(count(&seen), 0); /* nobody has asked */
                arm(&seen, arms[a]);
            }
            settle(&seen);
            assert_int_equal(atomic_load(&seen.failures), 1);
            assert_int_equal(atomic_load(&seen.status), STATUS_BUFFER_OVERFLOW);
            for (int again = 0; again < 3; again++) {
                unsigned calls = count(&seen);

                arm(&seen, arms[again]);
                assert_false(put(&seen, 9, STATUS_SUCCESS, true));
                assert_int_equal(count(&seen), calls);
            }
            end(&seen);
        }
}

/* The entry that satisfied the arm and the one too many in one batch: one notification, which has
 * not run yet, tells of both. */
static void a_notification_on_its_way_tells_it(void **state)
{
    const struct cq_entry batch[3] = {{.status = STATUS_SUCCESS}};
    struct seen seen;

    (void)state;
    make(&seen, 2);
    arm(&seen, ANY);
    assert_false(cq_put(seen.cq, batch, 3));
    arm(&seen, ANY);
    assert_int_equal(count(&seen), 1);
    assert_int_equal(atomic_load(&seen.failures), 1);
    end(&seen);
}

static void overrun_inside(struct seen *seen)
{
    if (atomic_load(&seen->calls) != 1)
        return;
    while (put(seen, 0, STATUS_SUCCESS, false))
        ;
    for (int i = 0; i < 3; i++)
        arm(seen, ERRORS);
}

/* It dies while a callback runs that says all is well: told when that has returned, once. */
static void a_death_inside_a_callback_is_told_after_it(void **state)
{
    struct seen seen;

    (void)state;
    make(&seen, 4);
    seen.inside_do = overrun_inside;
    arm(&seen, ANY);
    assert_true(put(&seen, 0, STATUS_SUCCESS, false));
    settle(&seen);
    assert_int_equal(count(&seen), 2);
    assert_int_equal(atomic_load(&seen.failures), 1);
    arm(&seen, ANY);
    assert_int_equal(count(&seen), 2);
    end(&seen);
}

/* ---- those that use it ---- */

static unsigned deaths[3];

static void died(void *owner)
{
    ++*(unsigned *)owner;
}

static void all_that_use_it_are_told_once(void **state)
{
    struct cq_user users[3], late = {.died = died, .owner = &deaths[0]};
    struct seen seen;

    (void)state;
    memset(deaths, 0, sizeof deaths);
    make(&seen, 1);
    for (int i = 0; i < 3; i++) {
        users[i] = (struct cq_user){.died = died, .owner = &deaths[i]};
        assert_true(cq_join(seen.cq, &users[i]));
    }
    cq_leave(seen.cq, &users[1]);
    cq_leave(seen.cq, &users[1]);
    fill_up(&seen);
    assert_int_equal(deaths[0] + deaths[1] + deaths[2], 0);
    assert_false(put(&seen, 9, STATUS_SUCCESS, false));
    assert_false(put(&seen, 9, STATUS_SUCCESS, false));
    assert_int_equal(deaths[0], 1);
    assert_int_equal(deaths[1], 0); /* it had left */
    assert_int_equal(deaths[2], 1);
    assert_false(cq_join(seen.cq, &late));
    assert_int_equal(deaths[0], 1);
    cq_leave(seen.cq, &late);
    cq_leave(seen.cq, &users[2]);
    cq_leave(seen.cq, &users[0]);
    assert_null(seen.cq->users);
    end(&seen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_depth_fits_and_one_more_is_the_end),
        cmocka_unit_test(a_batch_fits_as_far_as_it_goes),
        cmocka_unit_test(what_was_queued_can_be_polled_after),
        cmocka_unit_test(each_arm_is_told_and_only_one),
        cmocka_unit_test(a_notification_on_its_way_tells_it),
        cmocka_unit_test(a_death_inside_a_callback_is_told_after_it),
        cmocka_unit_test(all_that_use_it_are_told_once),
    };

    alarm(60); /* a list that was corrupted may have no end */
    return cmocka_run_group_tests_name("cq overrun", tests, open_it, close_it);
}
