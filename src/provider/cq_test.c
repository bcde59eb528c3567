// SPDX-License-Identifier: MIT
/*
 * Completion queues of a real adapter, with entries that the test puts itself: which arm is
 * satisfied by what, one notification an arm, never two at a time, nothing lost between poll and
 * arm, order.
 */
#include "cq_test.h"

/* ---- the two tables ---- */

/* Which arm is there? Put what satisfies the strongest only, then what the weaker ones need. */
static void expect_arm(struct seen *seen, ULONG type)
{
    assert_int_equal(count(seen), 0);
    assert_true(put(seen, 1, STATUS_SUCCESS, false));
    assert_int_equal(count(seen), type == ANY);
    assert_true(put(seen, 2, STATUS_SUCCESS, true));
    assert_int_equal(count(seen), type == ANY || type == SOLICITED);
    while (put(seen, 3, STATUS_SUCCESS, true))
        ;
    assert_int_equal(count(seen), 1); /* the overrun satisfies each of them */
    assert_int_equal(atomic_load(&seen->status),
                     type == ERRORS ? STATUS_BUFFER_OVERFLOW : STATUS_SUCCESS);
}

static void two_arms_leave_the_stronger(void **state)
{
    static const struct {
        ULONG first, second, result;
    } table[] = {
        {ANY, ANY, ANY},
        {ANY, ERRORS, ANY},
        {ANY, SOLICITED, ANY},
        {ERRORS, ANY, ANY},
        {ERRORS, ERRORS, ERRORS},
        {ERRORS, SOLICITED, SOLICITED},
        {SOLICITED, ANY, ANY},
        {SOLICITED, ERRORS, SOLICITED},
        {SOLICITED, SOLICITED, SOLICITED},
    };

    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) {
        struct seen seen;

        make(&seen, 8);
        arm(&seen, table[i].first);
        arm(&seen, table[i].second);
        expect_arm(&seen, table[i].result);
        end(&seen);
    }
}

static void what_satisfies_what(void **state)
{
    static const struct {
        NTSTATUS status;
        bool solicits;
        bool errors, solicited, any;
    } table[] = {
        {STATUS_SUCCESS, false, false, false, true},
        {STATUS_SUCCESS, true, false, true, true},
        {STATUS_CANCELLED, true, false, true, true}, /* the QP marks each error as soliciting */
        {STATUS_ACCESS_VIOLATION, true, false, true, true},
    };
    static const ULONG arms[] = {ERRORS, SOLICITED, ANY};

    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        for (int a = 0; a < 3; a++)
            for (int before = 0; before < 2; before++) {
                bool expected = a == 0   ? table[i].errors
                                : a == 1 ? table[i].solicited
                                         : table[i].any;
                struct seen seen;

                /* The entry after the arm, and already there. */
                make(&seen, 8);
                if (!before)
                    arm(&seen, arms[a]);
                assert_true(put(&seen, i, table[i].status, table[i].solicits));
                if (before)
                    arm(&seen, arms[a]);
                assert_int_equal(count(&seen), expected);
                end(&seen);
            }
}

static void one_arm_is_one_notification(void **state)
{
    struct seen seen;

    (void)state;
    make(&seen, 64);
    for (int i = 0; i < 10; i++)
        assert_true(put(&seen, 0, STATUS_SUCCESS, false));
    assert_int_equal(count(&seen), 0); /* none without an arm */
    assert_int_equal(take(&seen, 64), 10);
    arm(&seen, ANY);
    assert_int_equal(count(&seen), 0); /* an empty CQ waits */
    for (int i = 0; i < 10; i++)
        assert_true(put(&seen, 0, STATUS_SUCCESS, false));
    assert_int_equal(count(&seen), 1);
    assert_int_equal(take(&seen, 64), 10);
    /* An entry that came after the last notification was called satisfies an arm at once. */
    assert_true(put(&seen, 0, STATUS_SUCCESS, false));
    arm(&seen, ANY);
    assert_int_equal(count(&seen), 2);
    end(&seen);
}

/* A solicited entry behind ordinary ones counts for the immediate rule, one before does not hide.
 */
static void the_immediate_rule_looks_at_all(void **state)
{
    struct seen seen;

    (void)state;
    make(&seen, 64);
    for (int i = 0; i < 5; i++)
        put(&seen, 0, STATUS_SUCCESS, i == 3);
    arm(&seen, SOLICITED);
    assert_int_equal(count(&seen), 1);
    assert_int_equal(take(&seen, 4), 4);
    put(&seen, 0, STATUS_SUCCESS, false);
    arm(&seen, SOLICITED); /* what solicits is taken */
    assert_int_equal(count(&seen), 1);
    arm(&seen, ANY);
    assert_int_equal(count(&seen), 2);
    end(&seen);
}

/* ---- while the callback runs ---- */

/* A put by the shard that is not the CQ's: what it makes due would run there. */
static struct {
    struct engine_item item;
    struct seen *seen;
    atomic_bool done;
} elsewhere;

static void put_run(struct engine_item *item)
{
    (void)item;
    put(elsewhere.seen, 0, STATUS_SUCCESS, false);
    atomic_store(&elsewhere.done, true);
}

static void put_elsewhere(struct seen *seen)
{
    unsigned home = engine_shard_index(seen->cq->object.home);

    elsewhere.seen = seen;
    elsewhere.item.run = put_run;
    atomic_store(&elsewhere.done, false);
    engine_defer(engine_shard_at((home + 1) % engine_shard_count()), &elsewhere.item);
    wait_for(atomic_load(&elsewhere.done));
}

static void arm_first(struct seen *seen)
{
    if (atomic_load(&seen->calls) == 1)
        arm(seen, ANY);
}

static void notifications_of_two_shards_do_not_overlap(void **state)
{
    struct seen seen;

    (void)state;
    make(&seen, 64);
    seen.inside_do = arm_first;
    atomic_store(&seen.gated, true);
    arm(&seen, ANY);
    put(&seen, 0, STATUS_SUCCESS, false);
    wait_for(atomic_load(&seen.calls) == 1);
    put_elsewhere(&seen);
    os_sleep_us(20000);
    assert_int_equal(atomic_load(&seen.calls), 1);
    atomic_store(&seen.gate, 100);
    wait_for(atomic_load(&seen.returns) == 2);
    assert_int_equal(count(&seen), 2);
    end(&seen);
}

static void arm_inside(struct seen *seen)
{
    if (atomic_load(&seen->calls) <= 3)
        arm(seen, ANY);
}

static void a_notification_waits_for_the_one_that_runs(void **state)
{
    struct seen seen;

    (void)state;
    make(&seen, 64);
    seen.inside_do = arm_inside;
    atomic_store(&seen.gated, true);
    arm(&seen, ANY);
    put(&seen, 0, STATUS_SUCCESS, false);
    for (unsigned i = 1; i <= 3; i++) {
        wait_for(atomic_load(&seen.calls) == i);
        os_sleep_us(2000);                                 /* it has armed */
        assert_true(put(&seen, i, STATUS_SUCCESS, false)); /* due, but not yet */
        assert_true(put(&seen, i, STATUS_SUCCESS, false)); /* the same arm: nothing more */
        os_sleep_us(5000);
        assert_int_equal(atomic_load(&seen.calls), i);
        atomic_store(&seen.gate, i);
    }
    atomic_store(&seen.gate, 100);
    wait_for(atomic_load(&seen.returns) == 4);
    assert_int_equal(count(&seen), 4);
    end(&seen);
}

/* ---- producers against one consumer ---- */

#define PRODUCERS 3
#define ENTRIES   20000u

static struct {
    struct seen seen;
    KEVENT event;
    atomic_uint produced[PRODUCERS], consumed;
} race;

static void event_inside(struct seen *seen)
{
    (void)seen;
    KeSetEvent(&race.event, 0, FALSE);
}

static void producer(void *number)
{
    uintptr_t me = *(unsigned *)number;
    uint64_t limit = os_now_us() + 2 * WAIT_US;

    for (uintptr_t i = 0; i < ENTRIES;) {
        int ahead =
            (int)(atomic_load(&race.produced[me]) - atomic_load(&race.consumed) / PRODUCERS);

        if (ahead > 200) { /* three of them fit into 1024 */
            if (os_now_us() > limit)
                return;
            os_sleep_us(20);
            continue;
        }
        if (!put(&race.seen, me << 24 | i, STATUS_SUCCESS, i % 16 == 15))
            return;
        atomic_store(&race.produced[me], (unsigned)++i);
        if (i % 97 == 0)
            os_sleep_us(30);
    }
}

/* Polls to empty, arms, waits: nothing may be left behind, whoever puts when. */
static void nothing_is_lost_between_poll_and_arm(void **state)
{
    unsigned numbers[PRODUCERS], next[PRODUCERS] = {0}, total = 0, arms = 0;
    struct os_thread *threads[PRODUCERS];
    bool stuck = false;

    (void)state;
    make(&race.seen, 1024);
    race.seen.inside_do = event_inside;
    KeInitializeEvent(&race.event, SynchronizationEvent, FALSE);
    for (unsigned i = 0; i < PRODUCERS; i++) {
        numbers[i] = i;
        assert_int_equal(os_thread_start(&threads[i], "producer", producer, &numbers[i]), 0);
    }
    while (total < PRODUCERS * ENTRIES && !stuck) {
        NDK_RESULT results[7];
        ULONG n = cq_dispatch.NdkGetCqResults((NDK_CQ *)(void *)race.seen.cq, results, 7);
        LARGE_INTEGER limit = {.QuadPart = -(LONGLONG)WAIT_US / 2 * 10};

        for (ULONG i = 0; i < n; i++) {
            uintptr_t word = (uintptr_t)results[i].RequestContext;

            if ((word & 0xffffff) != next[word >> 24]++)
                stuck = true; /* out of order */
        }
        total += n;
        atomic_store(&race.consumed, total);
        if (n)
            continue;
        arms++;
        arm(&race.seen, ANY);
        stuck |= KeWaitForSingleObject(&race.event, Executive, KernelMode, FALSE, &limit) !=
                 STATUS_SUCCESS;
    }
    for (int i = 0; i < PRODUCERS; i++)
        os_thread_join(threads[i]);
    assert_false(stuck);
    assert_in_range(atomic_load(&race.seen.calls), 1, arms);
    end(&race.seen);
}

/* ---- the ring ---- */

static void both_polls_give_the_fields(void **state)
{
    const struct cq_entry entry = {.status = STATUS_IO_TIMEOUT,
                                   .octets = 77,
                                   .qp_context = &adapter,
                                   .context = &race,
                                   .type = NdkOperationTypeReceiveAndInvalidate,
                                   .provider_code = 0x1234,
                                   .token = 0x5678,
                                   .solicits = 1};
    NDK_RESULT plain;
    NDK_RESULT_EX ex;
    struct seen seen;

    (void)state;
    make(&seen, 2);
    assert_int_equal(cq_dispatch.NdkGetCqResults((NDK_CQ *)(void *)seen.cq, &plain, 1), 0);
    assert_true(cq_put(seen.cq, &entry, 1) && cq_put(seen.cq, &entry, 1));
    assert_int_equal(cq_dispatch.NdkGetCqResults((NDK_CQ *)(void *)seen.cq, &plain, 1), 1);
    assert_int_equal(cq_dispatch.NdkGetCqResultsEx((NDK_CQ *)(void *)seen.cq, &ex, 1), 1);
    assert_int_equal(plain.Status, STATUS_IO_TIMEOUT);
    assert_int_equal(plain.BytesTransferred, 77);
    assert_ptr_equal(plain.QPContext, entry.qp_context);
    assert_ptr_equal(plain.RequestContext, entry.context);
    assert_int_equal(ex.Status, STATUS_IO_TIMEOUT);
    assert_int_equal(ex.BytesTransferred, 77);
    assert_ptr_equal(ex.QPContext, entry.qp_context);
    assert_ptr_equal(ex.RequestContext, entry.context);
    assert_int_equal(ex.Type, NdkOperationTypeReceiveAndInvalidate);
    assert_int_equal(ex.ProviderErrorCode, 0x1234);
    assert_int_equal(ex.TypeSpecificCompletionOutput, 0x5678);
    end(&seen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_arms_leave_the_stronger),
        cmocka_unit_test(what_satisfies_what),
        cmocka_unit_test(one_arm_is_one_notification),
        cmocka_unit_test(the_immediate_rule_looks_at_all),
        cmocka_unit_test(a_notification_waits_for_the_one_that_runs),
        cmocka_unit_test(notifications_of_two_shards_do_not_overlap),
        cmocka_unit_test(nothing_is_lost_between_poll_and_arm),
        cmocka_unit_test(both_polls_give_the_fields),
    };

    alarm(60); /* a list that was corrupted may have no end */
    return cmocka_run_group_tests_name("cq", tests, open_it, close_it);
}
