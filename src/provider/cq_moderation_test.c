// SPDX-License-Identifier: MIT
/*
 * NdkControlCqInterruptModeration: what waits for what, for how long at most, and what does not
 * wait. The engine is stepped: with an interval of an hour nothing comes but by another rule, and
 * where the interval ends the waiting the test asks only that it was not sooner.
 */
#include "cq_test.h"

#define HOUR_US 3600000000u
#define NEVER   MAXULONG

extern atomic_bool os_poll_coarse; /* os/linux/backend.h, which does not go with NT types */

static NTSTATUS moderate(struct seen *seen, ULONG interval_us, ULONG number)
{
    return cq_dispatch.NdkControlCqInterruptModeration(ndk_cq(seen), interval_us, number);
}

/* A CQ that is moderated. */
static void make_moderated(struct seen *seen, ULONG depth, ULONG interval_us, ULONG number)
{
    make(seen, depth);
    assert_int_equal(moderate(seen, interval_us, number), STATUS_SUCCESS);
}

static VOID resized(PVOID context, NTSTATUS status)
{
    (void)context;
    (void)status;
    abort(); /* not in mode "never" */
}

static NTSTATUS resize(struct seen *seen, ULONG depth)
{
    return cq_dispatch.NdkResizeCq(ndk_cq(seen), depth, resized, NULL);
}

/* ---- settings ---- */

static void settings_that_mean_none(void **state)
{
    static const struct {
        ULONG interval_us, count;
    } table[] = {{0, 0},       {0, 1},       {0, 8},     {0, NEVER}, {0, 17},
                 {HOUR_US, 0}, {HOUR_US, 1}, {NEVER, 0}, {NEVER, 1}};

    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct seen seen;

        make_moderated(&seen, 16, table[i].interval_us, table[i].count);
        arm(&seen, ANY);
        put_many(&seen, 1, 0);
        assert_int_equal(count(&seen), 1);
        end(&seen);
    }
}

static void a_new_cq_has_none(void **state)
{
    struct seen seen;

    (void)state;
    make(&seen, 16);
    arm(&seen, ANY);
    put_many(&seen, 1, 0);
    assert_int_equal(count(&seen), 1);
    end(&seen);
}

/* Nothing would ever end the waiting. */
static void settings_that_exclude_each_other(void **state)
{
    struct seen seen;
    char text[256];

    (void)state;
    make_moderated(&seen, 16, HOUR_US, 3);
    assert_int_equal(moderate(&seen, NEVER, NEVER), STATUS_INVALID_PARAMETER_MIX);
    assert_int_equal(moderate(&seen, NEVER, 17), STATUS_INVALID_PARAMETER_MIX);
    softndk_reason(&seen.cq->object.header, text, sizeof text);
    assert_non_null(strstr(text, "ModerationCount (have 17, need <= the depth 16)"));
    arm(&seen, ANY);
    put_many(&seen, 2, 0);
    assert_int_equal(count(&seen), 0); /* the settings from before hold */
    put_many(&seen, 1, 2);
    assert_int_equal(count(&seen), 1);
    assert_int_equal(moderate(&seen, NEVER, 16), STATUS_SUCCESS);
    assert_int_equal(moderate(&seen, HOUR_US, NEVER), STATUS_SUCCESS);
    assert_int_equal(moderate(&seen, HOUR_US, 17), STATUS_SUCCESS);
    /* What the depth is now, not what it was. */
    assert_int_equal(resize(&seen, 32), STATUS_SUCCESS);
    assert_int_equal(moderate(&seen, NEVER, 32), STATUS_SUCCESS);
    assert_int_equal(moderate(&seen, NEVER, 33), STATUS_INVALID_PARAMETER_MIX);
    assert_int_equal(resize(&seen, 8), STATUS_SUCCESS);
    assert_int_equal(moderate(&seen, NEVER, 9), STATUS_INVALID_PARAMETER_MIX);
    assert_int_equal(moderate(&seen, NEVER, 8), STATUS_SUCCESS);
    end(&seen);
}

/* ---- the count ---- */

static void so_many_completions_notify(void **state)
{
    static const ULONG intervals[] = {HOUR_US, NEVER};
    static const ULONG arms[] = {ANY, SOLICITED};

    (void)state;
    for (int i = 0; i < 2; i++)
        for (int a = 0; a < 2; a++) {
            struct seen seen;

            make_moderated(&seen, 16, intervals[i], 4);
            for (unsigned turn = 0; turn < 3; turn++) {
                arm(&seen, arms[a]);
                assert_true(put(&seen, 0, STATUS_SUCCESS, true));
                put_many(&seen, 2, 1);
                assert_int_equal(count(&seen), turn);
                put_many(&seen, 1, 3); /* any further one counts */
                assert_int_equal(count(&seen), turn + 1);
                take_numbered(&seen, 4, 0);
            }
            end(&seen);
        }
}

/* One that was polled has come all the same. */
static void polled_completions_count(void **state)
{
    struct seen seen;

    (void)state;
    make_moderated(&seen, 16, NEVER, 4);
    arm(&seen, ANY);
    for (unsigned i = 0; i < 3; i++) {
        put_many(&seen, 1, i);
        take_numbered(&seen, 1, i);
        assert_int_equal(count(&seen), 0);
    }
    put_many(&seen, 1, 3);
    assert_int_equal(count(&seen), 1);
    end(&seen);
}

static void completions_that_are_there_count(void **state)
{
    struct seen seen;

    (void)state;
    make_moderated(&seen, 16, HOUR_US, 4);
    arm(&seen, SOLICITED);
    put_many(&seen, 3, 0);
    assert_int_equal(count(&seen), 0);
    assert_true(put(&seen, 3, STATUS_SUCCESS, true)); /* the fourth, and the one that satisfies */
    assert_int_equal(count(&seen), 1);
    take_numbered(&seen, 4, 0);
    /* Before the arm: enough, and not enough. */
    put_many(&seen, 4, 0);
    arm(&seen, ANY);
    assert_int_equal(count(&seen), 2);
    take_numbered(&seen, 4, 0);
    put_many(&seen, 3, 0);
    arm(&seen, ANY);
    assert_int_equal(count(&seen), 2);
    put_many(&seen, 1, 3);
    assert_int_equal(count(&seen), 3);
    end(&seen);
}

static void a_solicited_arm_waits_for_its_completion_first(void **state)
{
    struct seen seen;

    (void)state;
    make_moderated(&seen, 16, NEVER, 2);
    arm(&seen, SOLICITED);
    put_many(&seen, 10, 0);
    assert_int_equal(count(&seen), 0); /* more than enough, but none that solicits */
    assert_true(put(&seen, 10, STATUS_SUCCESS, true));
    assert_int_equal(count(&seen), 1);
    end(&seen);
}

/* ---- the interval ---- */

static void the_interval_notifies(void **state)
{
    static const ULONG counts[] = {100, 129, NEVER};
    static const ULONG intervals[] = {1, 300, 20000};

    (void)state;
    for (int c = 0; c < 3; c++)
        for (int i = 0; i < 3; i++) {
            struct seen seen;
            uint64_t began;

            make_moderated(&seen, 128, intervals[i], counts[c]);
            arm(&seen, ANY);
            began = os_now_us();
            put_many(&seen, 1, 0);
            wait_for(atomic_load(&seen.calls) == 1);
            assert_true(atomic_load(&seen.at_us) - began >= intervals[i]);
            /* Others do not put it off. */
            arm(&seen, ANY);
            while (atomic_load(&seen.calls) == 1 && os_now_us() - began < WAIT_US) {
                if (take(&seen, 64) < 64)
                    put_many(&seen, 1, 0);
                step_all();
            }
            assert_int_equal(atomic_load(&seen.calls), 2);
            end(&seen);
        }
}

/* It begins with the completion, although the arm came later. */
static void the_interval_begins_with_the_completion(void **state)
{
    struct seen seen;

    (void)state;
    make_moderated(&seen, 16, 200000, 10);
    put_many(&seen, 1, 0);
    os_sleep_us(200000);
    arm(&seen, ANY);
    assert_int_equal(count(&seen), 1);
    take_numbered(&seen, 1, 0);
    /* The same for one that came after the notification, and behind polled ones. */
    put_many(&seen, 2, 0);
    take(&seen, 1);
    os_sleep_us(200000);
    arm(&seen, ANY);
    assert_int_equal(count(&seen), 2);
    end(&seen);
}

/* The oldest completion that an arm may find is the first one in a queue that was empty: not one
 * that was polled long ago. */
static void what_was_polled_does_not_begin_it(void **state)
{
    uint64_t now = os_now_us();
    struct seen seen;

    (void)state;
    make_moderated(&seen, 16, now > HOUR_US ? HOUR_US : (ULONG)now - 2, 10);
    put_many(&seen, 1, 0);
    take_numbered(&seen, 1, 0);
    seen.cq->moderation.fresh_us = 1; /* so long ago that the interval is over */
    put_many(&seen, 2, 1);
    arm(&seen, ANY);
    assert_int_equal(count(&seen), 0);
    end(&seen);
}

/* A timer that counts milliseconds: never later than asked for, so sooner. */
static void what_the_timer_cannot_do_is_rounded_down(void **state)
{
    bool coarse = atomic_exchange(&os_poll_coarse, true);
    struct seen seen;

    (void)state;
    make_moderated(&seen, 16, 999, 10);
    arm(&seen, ANY);
    put_many(&seen, 1, 0);
    assert_int_equal(count(&seen), 1);
    assert_int_equal(moderate(&seen, 2999, 10), STATUS_SUCCESS);
    assert_int_equal(seen.cq->moderation.interval_us, 2000);
    assert_int_equal(moderate(&seen, NEVER, 10), STATUS_SUCCESS);
    assert_int_equal(seen.cq->moderation.interval_us, NEVER);
    end(&seen);
    atomic_store(&os_poll_coarse, coarse);
}

/* ---- what does not wait ---- */

static void errors_do_not_wait(void **state)
{
    struct seen seen;

    (void)state;
    make_moderated(&seen, 16, HOUR_US, 10);
    arm(&seen, ANY);
    assert_true(put(&seen, 0, STATUS_CANCELLED, true)); /* satisfies it */
    assert_int_equal(count(&seen), 1);
    arm(&seen, SOLICITED);
    assert_true(put(&seen, 1, STATUS_SUCCESS, true)); /* waits for the error behind it */
    assert_int_equal(count(&seen), 1);
    assert_true(put(&seen, 2, STATUS_IO_TIMEOUT, true));
    assert_int_equal(count(&seen), 2);
    /* There before the arm, behind a success. */
    put_many(&seen, 2, 3);
    assert_true(put(&seen, 5, STATUS_ACCESS_VIOLATION, true));
    put_many(&seen, 1, 6);
    arm(&seen, ANY);
    assert_int_equal(count(&seen), 3);
    take_numbered(&seen, 7, 0);
    end(&seen);
}

static void death_does_not_wait(void **state)
{
    static const ULONG arms[] = {ERRORS, ANY};

    (void)state;
    for (int a = 0; a < 2; a++) {
        struct seen seen;

        make_moderated(&seen, 4, HOUR_US, NEVER);
        arm(&seen, arms[a]);
        put_many(&seen, 4, 0);
        assert_int_equal(count(&seen), 0);
        assert_false(put(&seen, 4, STATUS_SUCCESS, false));
        assert_int_equal(count(&seen), 1);
        assert_int_equal(atomic_load(&seen.status), STATUS_BUFFER_OVERFLOW);
        take_numbered(&seen, 4, 0);
        end(&seen);
    }
}

/* ---- one arm, one notification ---- */

static void further_arms_change_nothing(void **state)
{
    struct seen seen;

    (void)state;
    make_moderated(&seen, 16, HOUR_US, 4);
    arm(&seen, SOLICITED);
    assert_true(put(&seen, 0, STATUS_SUCCESS, true));
    take_numbered(&seen, 1, 0);
    arm(&seen, ERRORS);
    arm(&seen, ANY);
    arm(&seen, SOLICITED);
    assert_int_equal(count(&seen), 0);
    put_many(&seen, 3, 1); /* of any kind: it was satisfied */
    assert_int_equal(count(&seen), 1);
    put_many(&seen, 5, 4);
    assert_int_equal(count(&seen), 1);
    end(&seen);
}

static void arm_and_put_inside(struct seen *seen)
{
    if (atomic_load(&seen->calls) != 1)
        return;
    arm(seen, ANY);
    put_many(seen, 2, 0);
}

static void one_may_wait_while_another_runs(void **state)
{
    struct seen seen;

    (void)state;
    make_moderated(&seen, 16, HOUR_US, 3);
    seen.inside_do = arm_and_put_inside;
    arm(&seen, ANY);
    put_many(&seen, 3, 0);
    assert_int_equal(count(&seen), 2); /* five are there when the callback's arm looks */
    take(&seen, 16);
    arm(&seen, ANY);
    put_many(&seen, 2, 0);
    assert_int_equal(count(&seen), 2);
    put_many(&seen, 1, 2);
    assert_int_equal(count(&seen), 3);
    end(&seen);
}

/* ---- newer settings ---- */

static void the_newest_settings_win(void **state)
{
    struct seen seen;
    uint64_t began;

    (void)state;
    /* none any more */
    make_moderated(&seen, 16, HOUR_US, 8);
    arm(&seen, ANY);
    put_many(&seen, 3, 0);
    assert_int_equal(count(&seen), 0);
    assert_int_equal(moderate(&seen, 0, 0), STATUS_SUCCESS);
    assert_int_equal(count(&seen), 1);
    take_numbered(&seen, 3, 0);
    /* a count that is reached */
    assert_int_equal(moderate(&seen, HOUR_US, 8), STATUS_SUCCESS);
    arm(&seen, ANY);
    put_many(&seen, 3, 0);
    assert_int_equal(moderate(&seen, HOUR_US, 4), STATUS_SUCCESS);
    assert_int_equal(count(&seen), 1);
    assert_int_equal(moderate(&seen, NEVER, 3), STATUS_SUCCESS);
    assert_int_equal(count(&seen), 2);
    take_numbered(&seen, 3, 0);
    /* a longer interval, none at all, and one that ends; it counts from the completion */
    assert_int_equal(moderate(&seen, 1000, 8), STATUS_SUCCESS);
    arm(&seen, ANY);
    began = os_now_us();
    put_many(&seen, 1, 0);
    assert_int_equal(moderate(&seen, HOUR_US, 8), STATUS_SUCCESS);
    os_sleep_us(2000);
    assert_int_equal(count(&seen), 2);
    assert_int_equal(moderate(&seen, NEVER, 8), STATUS_SUCCESS);
    os_sleep_us(2000);
    assert_int_equal(count(&seen), 2);
    assert_int_equal(moderate(&seen, 10000, 8), STATUS_SUCCESS);
    wait_for(atomic_load(&seen.calls) == 3);
    assert_true(atomic_load(&seen.at_us) - began >= 10000);
    end(&seen);
}

/* The same settings over and over, sooner than the interval each time. */
static void settings_do_not_put_it_off(void **state)
{
    struct seen seen;
    uint64_t began;

    (void)state;
    make_moderated(&seen, 16, 30000, 8);
    arm(&seen, ANY);
    began = os_now_us();
    put_many(&seen, 1, 0);
    while (atomic_load(&seen.calls) == 0 && os_now_us() - began < WAIT_US / 4) {
        assert_int_equal(moderate(&seen, 30000, 8), STATUS_SUCCESS);
        os_sleep_us(200);
        step_all();
    }
    assert_int_equal(atomic_load(&seen.calls), 1);
    assert_true(atomic_load(&seen.at_us) - began >= 30000);
    end(&seen);
}

/* The depth decides what the count means. */
static void a_resize_changes_what_the_count_means(void **state)
{
    struct seen seen;

    (void)state;
    make_moderated(&seen, 16, NEVER, 8);
    arm(&seen, ANY);
    put_many(&seen, 3, 0);
    assert_int_equal(count(&seen), 0);
    assert_int_equal(resize(&seen, 8), STATUS_SUCCESS);
    assert_int_equal(count(&seen), 0);
    assert_int_equal(resize(&seen, 7), STATUS_SUCCESS); /* 8 cannot be there any more */
    assert_int_equal(count(&seen), 1);
    arm(&seen, ANY);
    put_many(&seen, 1, 3);
    assert_int_equal(count(&seen), 2);
    take_numbered(&seen, 4, 0);
    assert_int_equal(resize(&seen, 8), STATUS_SUCCESS); /* now it can again */
    arm(&seen, ANY);
    put_many(&seen, 7, 0);
    assert_int_equal(count(&seen), 2);
    put_many(&seen, 1, 7);
    assert_int_equal(count(&seen), 3);
    end(&seen);
    /* With an interval that alone decides. */
    make_moderated(&seen, 16, HOUR_US, 4);
    assert_int_equal(resize(&seen, 3), STATUS_SUCCESS);
    arm(&seen, ANY);
    put_many(&seen, 3, 0);
    for (int i = 0; i < 5; i++) {
        take_numbered(&seen, 3, 0);
        put_many(&seen, 3, 0);
    }
    assert_int_equal(count(&seen), 0);
    end(&seen);
}

/* ---- closing ---- */

static void closing_drops_what_waits(void **state)
{
    static const ULONG intervals[] = {HOUR_US, NEVER};

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct seen seen;

        make_moderated(&seen, 16, intervals[i], 8);
        arm(&seen, ANY);
        put_many(&seen, 3, 0);
        assert_int_equal(count(&seen), 0);
        end(&seen); /* and does not wait an hour for it */
        while (step_all())
            ;
        assert_int_equal(atomic_load(&seen.calls), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_cq_has_none),
        cmocka_unit_test(settings_that_mean_none),
        cmocka_unit_test(settings_that_exclude_each_other),
        cmocka_unit_test(so_many_completions_notify),
        cmocka_unit_test(polled_completions_count),
        cmocka_unit_test(completions_that_are_there_count),
        cmocka_unit_test(a_solicited_arm_waits_for_its_completion_first),
        cmocka_unit_test(the_interval_notifies),
        cmocka_unit_test(the_interval_begins_with_the_completion),
        cmocka_unit_test(what_was_polled_does_not_begin_it),
        cmocka_unit_test(what_the_timer_cannot_do_is_rounded_down),
        cmocka_unit_test(errors_do_not_wait),
        cmocka_unit_test(death_does_not_wait),
        cmocka_unit_test(further_arms_change_nothing),
        cmocka_unit_test(one_may_wait_while_another_runs),
        cmocka_unit_test(the_newest_settings_win),
        cmocka_unit_test(settings_do_not_put_it_off),
        cmocka_unit_test(a_resize_changes_what_the_count_means),
        cmocka_unit_test(closing_drops_what_waits),
    };

    alarm(60);
    return cmocka_run_group_tests_name("cq moderation", tests, open_stepped, close_stepped);
}
