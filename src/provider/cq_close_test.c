// SPDX-License-Identifier: MIT
/*
 * A CQ that is closed while a notification waits, is due, runs, while its timer fires and while
 * others put: the close completes, soon, and no notification comes after that.
 */
#include "cq_test.h"

#define HOUR_US 3600000000u
#define ROUNDS  400u

static struct {
    struct seen seen;
    atomic_uint round, done; /* the putter's turns */
    atomic_bool over;
} race;

/* What a queue pair is to its CQ: a reference, and puts. */
static void putter(void *unused)
{
    unsigned turn = 0;

    (void)unused;
    while (!atomic_load(&race.over)) {
        if (atomic_load(&race.round) == turn) {
            os_cpu_relax();
            continue;
        }
        turn++;
        /* Too few now and then, so that something waits when it is closed. */
        for (unsigned i = 0; i < (turn % 4 == 3 ? 1 : 20 + turn % 30); i++) {
            put(&race.seen, i, i == 40 ? STATUS_CANCELLED : STATUS_SUCCESS, i % 3 == 0);
            os_sleep_us(turn % 7 * 4);
        }
        object_unref(&race.seen.cq->object);
        atomic_store(&race.done, turn);
    }
}

static void closed_at_any_moment(void **state)
{
    static const ULONG intervals[] = {20, 100, 400, HOUR_US, MAXULONG, 0};
    unsigned calls = 0, pended = 0;
    struct os_thread *thread;

    (void)state;
    assert_int_equal(os_thread_start(&thread, "putter", putter, NULL), 0);
    for (unsigned i = 1; i <= ROUNDS; i++) {
        NTSTATUS status;

        make(&race.seen, 64);
        assert_int_equal(cq_dispatch.NdkControlCqInterruptModeration(ndk_cq(&race.seen),
                                                                     intervals[i % 6], 2 + i % 11),
                         STATUS_SUCCESS);
        arm(&race.seen, i % 2 ? ANY : SOLICITED);
        object_ref(&race.seen.cq->object);
        atomic_store(&race.round, i);
        for (unsigned n = 0; n < i % 5; n++) {
            os_sleep_us(i % 13 * 10);
            take(&race.seen, 3);
            arm(&race.seen, ANY);
        }
        status = cq_dispatch.NdkCloseCq(&race.seen.cq->object.header, closed, &race.seen);
        pended += status == STATUS_PENDING;
        if (status != STATUS_PENDING)
            atomic_store(&race.seen.closed, true);
        wait_for(atomic_load(&race.seen.closed));
        still_open--;
        wait_for(atomic_load(&race.done) == i);
        calls += atomic_load(&race.seen.calls);
        assert_int_equal(atomic_load(&race.seen.overlaps), 0);
        assert_int_equal(atomic_load(&race.seen.after_close), 0);
    }
    atomic_store(&race.over, true);
    os_thread_join(thread);
    print_message("%u closes, %u pended, %u notifications\n", ROUNDS, pended, calls);
    assert_true(calls > 0);
}

/* Its timer is due at that very moment. */
static void closed_as_the_interval_ends(void **state)
{
    unsigned calls = 0;

    (void)state;
    for (unsigned i = 0; i < ROUNDS; i++) {
        struct seen seen;

        make(&seen, 8);
        assert_int_equal(cq_dispatch.NdkControlCqInterruptModeration(ndk_cq(&seen), 100, 8),
                         STATUS_SUCCESS);
        arm(&seen, ANY);
        put_many(&seen, 1, 0);
        os_sleep_us(60 + i % 60);
        end(&seen);
        calls += atomic_load(&seen.calls);
    }
    print_message("%u closes, %u notifications\n", ROUNDS, calls);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(closed_at_any_moment),
        cmocka_unit_test(closed_as_the_interval_ends),
    };

    alarm(120);
    return cmocka_run_group_tests_name("cq close", tests, open_it, close_it);
}
