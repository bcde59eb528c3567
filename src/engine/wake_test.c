// SPDX-License-Identifier: MIT
/* The wake-up rule under stress: nothing published is left behind a sleeping shard. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "engine/engine.h"
#include "os/os_testing.h"

static atomic_uint ran;

static void count_item(struct engine_item *item)
{
    (void)item;
    atomic_fetch_add(&ran, 1);
}

static void count_work(struct engine_work *work)
{
    (void)work;
    atomic_fetch_add(&ran, 1);
}

static void count_timer(struct engine_timer *timer)
{
    (void)timer;
    atomic_fetch_add(&ran, 1);
}

static bool ran_by(unsigned target)
{
    uint64_t until = os_now_us() + TEST_LIMIT_US;

    while (atomic_load(&ran) != target && os_now_us() < until)
        os_cpu_relax();
    return atomic_load(&ran) == target;
}

/* One shard with nothing else to do, pushed to at every distance from its falling asleep. */
static void sleeping_shard(unsigned spin_us, unsigned rounds)
{
    struct engine_config config = {.shards = 1, .spin_us = spin_us};
    struct engine_item item = {.run = count_item};
    struct engine_work work = {.run = count_work};
    struct engine_timer timer;
    uint32_t seed = test_seed();
    uint64_t begin = os_now_us();
    struct engine_shard *s;

    atomic_store(&ran, 0);
    assert_int_equal(engine_get(&config), 0);
    s = engine_shard_at(0);
    engine_timer_init(&timer, s, count_timer);
    for (unsigned round = 1; test_goes_on(round - 1, rounds, begin); round++) {
        uint32_t pause = test_random(&seed);

        if (pause % 64 == 0)
            os_sleep_us(pause / 64 % 200);
        else
            for (pause %= 3000; pause > 0; pause--)
                os_cpu_relax();
        switch (test_random(&seed) % 3) {
        case 0:
            engine_defer(s, &item);
            break;
        case 1:
            engine_run(s, &work);
            break;
        default:
            engine_timer_set(&timer, 0);
            break;
        }
        if (!ran_by(round))
            fail_msg("round %u: left behind a sleeping shard", round);
    }
    engine_put();
}

static void sleeping(void **state)
{
    (void)state;
    sleeping_shard(0, 20000);
}

static void spinning(void **state)
{
    (void)state;
    sleeping_shard(20, 10000);
}

#define WANDERERS 3
#define HOPS      100 /* at least; they go on until the strangers have gone */
#define STRANGERS 2
#define VISITS    2000

/* Items that wander between shards which sleep in between. */
struct wanderer {
    struct engine_item item;
    unsigned left;
};

static atomic_uint strangers_left;

static void wander(struct engine_item *item)
{
    struct wanderer *w = (struct wanderer *)item;
    unsigned next = (engine_shard_index(engine_self()) + 1) % engine_shard_count();

    if (w->left > 0)
        w->left--;
    if (w->left > 0 || atomic_load(&strangers_left) > 0)
        engine_defer(engine_shard_at(next), item);
    else
        atomic_fetch_add(&ran, 1);
}

/* Threads that push one item at a time meanwhile, each from its own stack. */
struct visit {
    struct engine_item item;
    atomic_bool done;
};

static void visited(struct engine_item *item)
{
    atomic_store(&((struct visit *)item)->done, true);
}

static atomic_uint strangers_done;

static void stranger(void *arg)
{
    uint32_t seed = *(uint32_t *)arg;
    uint64_t begin = os_now_us();
    bool good = true;

    for (unsigned i = 0; good && test_goes_on(i, VISITS, begin); i++) {
        static _Thread_local struct visit v; /* outlives a failed wait */
        uint64_t until = os_now_us() + TEST_LIMIT_US;

        v.item.run = visited;
        atomic_store(&v.done, false);
        engine_defer(engine_shard_at(test_random(&seed) % engine_shard_count()), &v.item);
        while (good && !atomic_load(&v.done))
            good = os_now_us() <= until;
    }
    if (good)
        atomic_fetch_add(&strangers_done, 1);
    atomic_fetch_sub(&strangers_left, 1);
}

static void wandering(void **state)
{
    static struct wanderer w[WANDERERS];
    struct engine_config config = {.shards = 3};
    struct os_thread *threads[STRANGERS];
    uint32_t seeds[STRANGERS];

    (void)state;
    atomic_store(&ran, 0);
    atomic_store(&strangers_left, STRANGERS);
    assert_int_equal(engine_get(&config), 0);
    for (unsigned i = 0; i < STRANGERS; i++) {
        seeds[i] = test_seed();
        assert_int_equal(os_thread_start(&threads[i], "stranger", stranger, &seeds[i]), 0);
    }
    for (unsigned i = 0; i < WANDERERS; i++) {
        w[i] = (struct wanderer){.item.run = wander, .left = HOPS};
        engine_defer(engine_shard_at(i), &w[i].item);
    }
    for (unsigned i = 0; i < STRANGERS; i++)
        os_thread_join(threads[i]);
    assert_int_equal(atomic_load(&strangers_done), STRANGERS);
    assert_true(TEST_WAIT(atomic_load(&ran) == WANDERERS));
    engine_put();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sleeping),
        cmocka_unit_test(spinning),
        cmocka_unit_test(wandering),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
