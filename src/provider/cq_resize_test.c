// SPDX-License-Identifier: MIT
/*
 * NdkResizeCq: the new depth holds exactly, nothing is lost or reordered whatever ring it is in,
 * what is refused leaves the CQ as it was; and all of that beside puts, polls, arms, notifications
 * and other resizes.
 */
#include "cq_test.h"

struct answer {
    atomic_uint calls;
    NTSTATUS status;
};

static VOID answered(PVOID context, NTSTATUS status)
{
    struct answer *answer = context;

    answer->status = status;
    atomic_fetch_add(&answer->calls, 1);
}

/* The outcome, whichever way it comes. */
static NTSTATUS resize(struct seen *seen, ULONG depth)
{
    struct answer answer = {0};
    NTSTATUS status = cq_dispatch.NdkResizeCq(ndk_cq(seen), depth, answered, &answer);

    if (status != STATUS_PENDING) {
        assert_int_equal(atomic_load(&answer.calls), 0);
        return status;
    }
    wait_for(atomic_load(&answer.calls) == 1);
    return answer.status;
}

/* How many more fit; the CQ is dead then. */
static unsigned room(struct seen *seen)
{
    unsigned fitted = 0;

    while (put(seen, 0, STATUS_SUCCESS, false))
        fitted++;
    return fitted;
}

static void the_new_depth_holds_exactly(void **state)
{
    static const struct {
        ULONG from, to;
        unsigned queued;
    } table[] = {
        {4, 5, 0},    {4, 5, 4},    {4, 64, 3},   {4, 4, 4},     {8, 4, 4},      {8, 4, 0},
        {8, 1, 1},    {1, 2, 1},    {5, 6, 5},    {5, 8, 5},     {4096, 7, 7},   {4096, 7, 0},
        {7, 4096, 7}, {1000, 1, 0}, {1, 1000, 0}, {300, 200, 9}, {2000, 33, 33},
    };

    (void)state;
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct seen seen;

        make(&seen, table[i].from);
        put_many(&seen, 1, 0); /* the indexes do not begin at 0 */
        take(&seen, 1);
        put_many(&seen, table[i].queued, 100);
        assert_int_equal(resize(&seen, table[i].to), STATUS_SUCCESS);
        put_many(&seen, table[i].to - table[i].queued, 100 + table[i].queued);
        take_numbered(&seen, table[i].to, 100);
        for (int turn = 0; turn < 3; turn++) {
            put_many(&seen, table[i].to, 0);
            take_numbered(&seen, table[i].to, 0);
        }
        assert_int_equal(room(&seen), table[i].to);
        end(&seen);
    }
}

static void what_is_refused_changes_nothing(void **state)
{
    ULONG most = adapter_from(adapter)->options.max_cq_depth;
    struct seen seen;
    char text[256];

    (void)state;
    make(&seen, 8);
    put_many(&seen, 5, 0);
    assert_int_equal(resize(&seen, 0), STATUS_INVALID_PARAMETER);
    assert_int_equal(resize(&seen, most + 1), STATUS_INVALID_PARAMETER);
    assert_int_equal(resize(&seen, MAXULONG), STATUS_INVALID_PARAMETER);
    assert_int_equal(resize(&seen, 4), STATUS_INVALID_PARAMETER);
    softndk_reason(&seen.cq->object.header, text, sizeof text);
    assert_non_null(strstr(text, "CqDepth (have 4, need >= 5"));
    put_many(&seen, 3, 5);
    assert_int_equal(resize(&seen, 7), STATUS_INVALID_PARAMETER);
    take_numbered(&seen, 8, 0);
    assert_int_equal(room(&seen), 8);
    end(&seen);
    make(&seen, 8);
    put_many(&seen, 5, 0);
    assert_int_equal(resize(&seen, most), STATUS_SUCCESS);
    assert_int_equal(resize(&seen, 5), STATUS_SUCCESS);
    take_numbered(&seen, 5, 0);
    assert_int_equal(room(&seen), 5);
    end(&seen);
}

static void a_dead_cq_stays_as_it_is(void **state)
{
    struct seen seen;

    (void)state;
    make(&seen, 4);
    put_many(&seen, 4, 0);
    assert_false(put(&seen, 4, STATUS_SUCCESS, false));
    assert_int_equal(resize(&seen, 8), STATUS_INVALID_DEVICE_STATE);
    assert_false(put(&seen, 4, STATUS_SUCCESS, false));
    take_numbered(&seen, 4, 0);
    arm(&seen, ERRORS);
    assert_int_equal(count(&seen), 1);
    assert_int_equal(atomic_load(&seen.status), STATUS_BUFFER_OVERFLOW);
    end(&seen);
}

/* Each row of the status table, inline and through the completion. */
static void answers_in_both_ways(void **state)
{
    (void)state;
    for (int async = 0; async < 2; async++) {
        static const char *const modes[] = {"never", "always"};
        struct answer answer = {0};
        struct seen seen;
        unsigned calls = 0;

#define ANSWERS(depth, wanted)                                                                     \
    do {                                                                                           \
        NTSTATUS status_ = cq_dispatch.NdkResizeCq(ndk_cq(&seen), depth, answered, &answer);       \
                                                                                                   \
        assert_int_equal(status_, async ? STATUS_PENDING : (wanted));                              \
        calls += async;                                                                            \
        wait_for(atomic_load(&answer.calls) == calls);                                             \
        if (async)                                                                                 \
            assert_int_equal(answer.status, wanted);                                               \
    } while (0)

        make(&seen, 4);
        assert_int_equal(softndk_set_pend(modes[async]), STATUS_SUCCESS);
        ANSWERS(8, STATUS_SUCCESS);
        ANSWERS(0, STATUS_INVALID_PARAMETER);
        assert_int_equal(softndk_set_fail("memory:1"), STATUS_SUCCESS);
        ANSWERS(4096, STATUS_INSUFFICIENT_RESOURCES);
        assert_int_equal(softndk_set_fail("NdkResizeCq:1:STATUS_INTERNAL_ERROR"), STATUS_SUCCESS);
        ANSWERS(4096, STATUS_INTERNAL_ERROR);
        assert_int_equal(softndk_set_fail(""), STATUS_SUCCESS);
        assert_int_equal(room(&seen), 8); /* only the first did anything */
        ANSWERS(16, STATUS_INVALID_DEVICE_STATE);
        assert_int_equal(softndk_set_pend("never"), STATUS_SUCCESS);
        end(&seen);
    }
}

/* ---- rings ---- */

static void an_arm_looks_into_each_ring(void **state)
{
    struct seen seen;

    (void)state;
    make(&seen, 4);
    put_many(&seen, 4, 0);
    assert_int_equal(resize(&seen, 300), STATUS_SUCCESS);
    put_many(&seen, 2, 4);
    assert_int_equal(resize(&seen, 3000), STATUS_SUCCESS);
    put_many(&seen, 1, 6);
    arm(&seen, SOLICITED);
    assert_int_equal(count(&seen), 0);
    assert_true(put(&seen, 7, STATUS_SUCCESS, true));
    assert_int_equal(count(&seen), 1);
    take_numbered(&seen, 8, 0);

    /* The one that solicits was there before, in the last ring but one. */
    put_many(&seen, 1, 0);
    assert_int_equal(resize(&seen, 4), STATUS_SUCCESS);
    put_many(&seen, 1, 1);
    assert_true(put(&seen, 2, STATUS_SUCCESS, true));
    assert_int_equal(resize(&seen, 5000), STATUS_SUCCESS);
    put_many(&seen, 5, 3);
    arm(&seen, SOLICITED);
    assert_int_equal(count(&seen), 2);
    take_numbered(&seen, 8, 0);
    end(&seen);
}

/* Up and down without a poll between: the chain does not grow for ever; and memory comes back. */
static void the_chain_is_bounded(void **state)
{
    struct seen seen;

    (void)state;
    make(&seen, 16);
    put_many(&seen, 3, 0);
    for (int i = 0; i < 1000; i++) {
        assert_int_equal(resize(&seen, 1u << (i * 7 % 16)),
                         i * 7 % 16 < 2 ? STATUS_INVALID_PARAMETER : STATUS_SUCCESS);
        assert_true(atomic_load(&seen.cq->rings) <= 18);
    }
    take_numbered(&seen, 3, 0);
    assert_int_equal(resize(&seen, 65536), STATUS_SUCCESS);
    put_many(&seen, 1, 0);
    take_numbered(&seen, 1, 0);
    assert_int_equal(atomic_load(&seen.cq->rings), 1);
    assert_int_equal(seen.cq->ring->mask, 65535);
    assert_int_equal(resize(&seen, 16), STATUS_SUCCESS);
    assert_int_equal(seen.cq->ring->mask, 15);
    assert_int_equal(room(&seen), 16);
    end(&seen);
}

/* Random puts, polls of both kinds, arms and resizes against a model of what must come out. */
static void as_the_model_says(void **state)
{
    unsigned depth = 10, queued = 0, resizes = 0;
    uintptr_t put_next = 0, take_next = 0;
    uint64_t x = 88172645463325252u;
    struct seen seen;

    (void)state;
    make(&seen, depth);
    for (int step = 0; step < 100000; step++) {
        unsigned what, n;

        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        what = (unsigned)(x >> 32) % 16;
        n = (unsigned)(x >> 40) % 40;
        if (what < 5) {
            for (; n && queued < depth; n--, queued++)
                assert_true(put(&seen, put_next++, STATUS_SUCCESS, n % 4 == 0));
        } else if (what < 11) {
            NDK_RESULT plain[40];
            NDK_RESULT_EX ex[40];
            unsigned got = what % 2 ? cq_dispatch.NdkGetCqResults(ndk_cq(&seen), plain, n)
                                    : cq_dispatch.NdkGetCqResultsEx(ndk_cq(&seen), ex, n);

            assert_int_equal(got, n < queued ? n : queued);
            for (unsigned i = 0; i < got; i++)
                assert_int_equal(
                    (uintptr_t)(what % 2 ? plain[i].RequestContext : ex[i].RequestContext),
                    take_next++);
            queued -= got;
        } else if (what < 13) {
            arm(&seen, what == 11 ? SOLICITED : ANY);
        } else {
            ULONG to = (ULONG)(x >> 50) % (what == 13 ? 20 : what == 14 ? 200 : 2000);

            assert_int_equal(resize(&seen, to),
                             to == 0 || to < queued ? STATUS_INVALID_PARAMETER : STATUS_SUCCESS);
            if (to && to >= queued) {
                depth = to;
                resizes++;
            }
        }
    }
    print_message("%u resizes, %u entries\n", resizes, (unsigned)put_next);
    assert_true(resizes > 1000 && put_next > 10000);
    assert_int_equal(room(&seen), depth - queued);
    end(&seen);
}

/* ---- everything at once ---- */

#define PUTTERS 3
#define RESIZES 3000u
#define AHEAD   200 /* of each putter; together below the smallest depth */
#define LEAST   1024u

static struct {
    struct seen seen;
    KEVENT event;
    atomic_uint put[PUTTERS], taken;
    atomic_bool over, bad;
    atomic_uint resized, putters;
} race;

static void wake(struct seen *seen)
{
    (void)seen;
    KeSetEvent(&race.event, 0, FALSE);
}

static void putter(void *number)
{
    uintptr_t me = *(unsigned *)number;

    for (uintptr_t i = 0; !atomic_load(&race.over);) {
        int ahead = (int)(atomic_load(&race.put[me]) - atomic_load(&race.taken) / PUTTERS);
        struct cq_entry batch[5];
        unsigned n = 0;

        if (ahead > AHEAD) {
            os_sleep_us(20);
            continue;
        }
        for (; n < 1 + i % 5; n++)
            batch[n] = (struct cq_entry){.context = (PVOID)(me << 24 | (i + n)),
                                         .status = (i + n) % 61 ? STATUS_SUCCESS : STATUS_CANCELLED,
                                         .solicits = (i + n) % 61 == 0};
        if (!cq_put(race.seen.cq, batch, n)) {
            atomic_store(&race.bad, true);
            break;
        }
        i += n;
        atomic_store(&race.put[me], (unsigned)i);
    }
    /* The consumer may wait for more; and none may come before it looked. */
    if (atomic_fetch_sub(&race.putters, 1) == 1)
        KeSetEvent(&race.event, 0, FALSE);
}

/* Other depths, and now and then other settings of moderation, which may wait but not lose. */
static void resizer(void *first)
{
    for (unsigned i = *(unsigned *)first; !atomic_load(&race.over); i++) {
        struct answer answer = {0};
        ULONG depth = LEAST << (i * 3 % 5);

        if (cq_dispatch.NdkResizeCq(ndk_cq(&race.seen), depth, answered, &answer) !=
                STATUS_SUCCESS ||
            cq_dispatch.NdkResizeCq(ndk_cq(&race.seen), 0, answered, &answer) !=
                STATUS_INVALID_PARAMETER)
            atomic_store(&race.bad, true);
        if (i % 64 == 0 && *(unsigned *)first == 1)
            cq_dispatch.NdkControlCqInterruptModeration(ndk_cq(&race.seen), i / 64 % 3 * 40,
                                                        i / 64 % 5 * 8);
        if (atomic_fetch_add(&race.resized, 1) >= RESIZES || atomic_load(&race.bad))
            atomic_store(&race.over, true);
        os_sleep_us(i % 4 * 10);
    }
}

static unsigned check_order(const NDK_RESULT *results, unsigned n, unsigned *next)
{
    for (unsigned i = 0; i < n; i++) {
        uintptr_t word = (uintptr_t)results[i].RequestContext;

        if (word >> 24 >= PUTTERS || (word & 0xffffff) != next[word >> 24]++)
            atomic_store(&race.bad, true);
    }
    return n;
}

static void resized_in_the_middle_of_everything(void **state)
{
    unsigned numbers[PUTTERS], next[PUTTERS] = {0}, total = 0, arms = 0, first[2] = {1, 4};
    struct os_thread *threads[PUTTERS + 2];

    (void)state;
    make(&race.seen, LEAST);
    race.seen.inside_do = wake;
    KeInitializeEvent(&race.event, SynchronizationEvent, FALSE);
    atomic_store(&race.putters, PUTTERS);
    for (unsigned i = 0; i < PUTTERS; i++) {
        numbers[i] = i;
        assert_int_equal(os_thread_start(&threads[i], "putter", putter, &numbers[i]), 0);
    }
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(os_thread_start(&threads[PUTTERS + i], "resizer", resizer, &first[i]), 0);
    while (!atomic_load(&race.bad)) {
        bool last = atomic_load(&race.putters) == 0;
        LARGE_INTEGER limit = {.QuadPart = -(LONGLONG)WAIT_US * 10};
        NDK_RESULT results[50];
        unsigned n = check_order(
            results,
            cq_dispatch.NdkGetCqResults(ndk_cq(&race.seen), results, 1 + (total + arms) % 50),
            next);

        total += n;
        atomic_store(&race.taken, total);
        if (n)
            continue;
        if (last)
            break;
        arms++;
        arm(&race.seen, ANY);
        if (KeWaitForSingleObject(&race.event, Executive, KernelMode, FALSE, &limit) !=
            STATUS_SUCCESS)
            atomic_store(&race.bad, true); /* a wake-up was lost */
    }
    atomic_store(&race.over, true);
    for (int i = 0; i < PUTTERS + 2; i++)
        os_thread_join(threads[i]);
    print_message("%u resizes, %u entries, %u arms, %u notifications\n", atomic_load(&race.resized),
                  total, arms, atomic_load(&race.seen.calls));
    assert_false(atomic_load(&race.bad));
    for (int i = 0; i < PUTTERS; i++)
        assert_int_equal(next[i], atomic_load(&race.put[i]));
    assert_in_range(count(&race.seen), 1, arms);
    end(&race.seen);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_new_depth_holds_exactly),
        cmocka_unit_test(what_is_refused_changes_nothing),
        cmocka_unit_test(a_dead_cq_stays_as_it_is),
        cmocka_unit_test(answers_in_both_ways),
        cmocka_unit_test(an_arm_looks_into_each_ring),
        cmocka_unit_test(the_chain_is_bounded),
        cmocka_unit_test(as_the_model_says),
        cmocka_unit_test(resized_in_the_middle_of_everything),
    };

    alarm(60); /* a list that was corrupted may have no end */
    return cmocka_run_group_tests_name("cq resize", tests, open_it, close_it);
}
