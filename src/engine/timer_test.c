// SPDX-License-Identifier: MIT
/* Timers: order, never early, cancel, arming anew, sooner deadlines for a sleeping shard, races. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "engine/engine_internal.h"
#include "os/os_testing.h"

#define HOUR_US UINT64_C(3600000000)
#define MANY    2000

static const struct engine_config stepped = {.shards = 1, .stepped = true};

struct ticket {
    struct engine_timer timer;
    uint64_t not_before_us, due_us; /* asked for; set by the engine */
    unsigned fired, times_more;
};

static unsigned fired_count, fired_early, fired_disorder;
static uint64_t last_due;

static void punch(struct engine_timer *timer)
{
    struct ticket *t = (struct ticket *)timer;

    fired_early += os_now_us() < t->not_before_us;
    fired_disorder += t->due_us < last_due;
    last_due = t->due_us;
    fired_count++;
    t->fired++;
}

static void set_ticket(struct ticket *t, uint64_t delay_us)
{
    t->not_before_us = os_now_us() + delay_us;
    engine_timer_set(&t->timer, delay_us);
    t->due_us = t->timer.due_us;
}

static struct engine_shard *begin(void)
{
    assert_int_equal(engine_get(&stepped), 0);
    fired_count = fired_early = fired_disorder = 0;
    last_due = 0;
    return engine_shard_at(0);
}

static bool step_until_fired(struct engine_shard *s, unsigned count)
{
    uint64_t until = os_now_us() + TEST_LIMIT_US;

    while (fired_count < count && os_now_us() < until)
        engine_step(s, 100000);
    return fired_count == count;
}

static void in_order_never_early(void **state)
{
    static struct ticket t[MANY];
    uint32_t seed = test_seed();
    struct engine_shard *s = begin();

    (void)state;
    memset(t, 0, sizeof t);
    for (unsigned i = 0; i < MANY; i++) {
        engine_timer_init(&t[i].timer, s, punch);
        /* Beyond the time that setting them takes: they fire in one order, whenever set. */
        set_ticket(&t[i], 200000 + test_random(&seed) % 20000);
    }
    assert_true(step_until_fired(s, MANY));
    assert_int_equal(fired_early, 0);
    assert_int_equal(fired_disorder, 0);
    for (unsigned i = 0; i < MANY; i++)
        assert_int_equal(t[i].fired, 1);
    assert_false(engine_step(s, 0));
    engine_put();
}

/* How many timers are in a heap: each at its place, and none due before the one above it. */
static unsigned count_heap(const struct engine_timer *root, struct engine_timer *const *place)
{
    unsigned count = 0;

    for (const struct engine_timer *t = root; t; place = &t->next, t = t->next) {
        assert_ptr_equal(t->back, place);
        for (const struct engine_timer *child = t->child; child; child = child->next)
            assert_true(child->due_us >= t->due_us);
        count += 1 + count_heap(t->child, &t->child);
    }
    return count;
}

/* After each random step: the heap is a heap of those armed, the first deadline published. */
static void check_heap(struct engine_shard *s, const struct ticket *t, const uint64_t *due)
{
    unsigned armed = 0;
    uint64_t first = ENGINE_NEVER;

    for (unsigned i = 0; i < 64; i++) {
        armed += due[i] != 0;
        if (due[i] != 0 && due[i] < first)
            first = due[i];
        assert_int_equal(t[i].timer.back != NULL, due[i] != 0);
    }
    assert_int_equal(s->timer_count, armed);
    assert_int_equal(count_heap(s->timers, &s->timers), armed);
    assert_true(atomic_load(&s->next_due_us) == first);
}

static void heap_against_model(void **state)
{
    static struct ticket t[64];
    static uint64_t due[64];
    uint32_t seed = test_seed();
    struct engine_shard *s = begin();

    (void)state;
    for (unsigned i = 0; i < 64; i++)
        engine_timer_init(&t[i].timer, s, punch);
    for (unsigned round = 0; round < 20000; round++) {
        unsigned i = test_random(&seed) % 64;

        if (test_random(&seed) % 3 == 0) {
            assert_int_equal(engine_timer_cancel(&t[i].timer), due[i] != 0);
            due[i] = 0;
        } else {
            assert_int_equal(engine_timer_set(&t[i].timer, HOUR_US + test_random(&seed) % 1000),
                             due[i] != 0);
            due[i] = t[i].timer.due_us;
        }
        check_heap(s, t, due);
    }
    for (unsigned i = 0; i < 64; i++)
        assert_int_equal(engine_timer_cancel(&t[i].timer), due[i] != 0);
    assert_int_equal(s->timer_count, 0);
    assert_false(engine_step(s, 0));
    assert_int_equal(fired_count, 0);
    engine_put();
}

static void cancelled_and_moved(void **state)
{
    struct ticket a = {.fired = 0}, b = {.fired = 0}, c = {.fired = 0};
    struct engine_shard *s = begin();

    (void)state;
    engine_timer_init(&a.timer, s, punch);
    engine_timer_init(&b.timer, s, punch);
    engine_timer_init(&c.timer, s, punch);
    assert_false(engine_timer_cancel(&a.timer));
    assert_false(engine_timer_set(&a.timer, 0));
    assert_true(engine_timer_cancel(&a.timer));
    assert_false(engine_timer_cancel(&a.timer));
    assert_false(engine_step(s, 2000));
    assert_int_equal(a.fired, 0);

    /* later: the old deadline does not fire; sooner: the new one does */
    set_ticket(&a, 0);
    assert_true(engine_timer_set(&a.timer, HOUR_US));
    assert_false(engine_step(s, 2000));
    set_ticket(&b, HOUR_US);
    set_ticket(&c, 2 * HOUR_US);
    set_ticket(&c, 1000);
    assert_true(step_until_fired(s, 1));
    assert_int_equal(c.fired, 1);
    assert_int_equal(fired_early, 0);
    assert_true(engine_timer_cancel(&a.timer));
    assert_true(engine_timer_cancel(&b.timer));
    assert_false(engine_timer_cancel(&c.timer));

    /* a delay beyond all clocks is never, not now */
    assert_false(engine_timer_set(&a.timer, UINT64_MAX));
    assert_false(engine_step(s, 2000));
    assert_true(engine_timer_cancel(&a.timer));
    engine_put();
}

static void punch_again(struct engine_timer *timer)
{
    struct ticket *t = (struct ticket *)timer;

    punch(timer);
    if (t->times_more-- > 0)
        set_ticket(t, 0);
}

/* Armed anew in its own fire: once a turn, so that it keeps nothing else from running. */
static void again_in_fire(void **state)
{
    struct ticket a = {.times_more = 9};
    struct engine_shard *s = begin();
    unsigned turns = 0;

    (void)state;
    engine_timer_init(&a.timer, s, punch_again);
    set_ticket(&a, 0);
    while (fired_count < 10 && turns++ < 1000000)
        engine_step(s, 0);
    assert_int_equal(fired_count, 10);
    assert_true(turns >= 10);
    assert_false(engine_step(s, 0));
    engine_put();
}

static void cancel_other(struct engine_timer *timer)
{
    struct ticket *t = (struct ticket *)timer;

    punch(timer);
    assert_true(engine_timer_cancel(&t[1].timer));
}

/* Both are due; the first cancels the second. */
static void cancelled_by_another(void **state)
{
    struct ticket pair[2] = {{.fired = 0}, {.fired = 0}};
    struct engine_shard *s = begin();

    (void)state;
    engine_timer_init(&pair[0].timer, s, cancel_other);
    engine_timer_init(&pair[1].timer, s, punch);
    set_ticket(&pair[0], 0);
    set_ticket(&pair[1], 1);
    os_sleep_us(2000);
    engine_step(s, 0);
    assert_int_equal(pair[0].fired, 1);
    assert_int_equal(pair[1].fired, 0);
    engine_put();
}

/* ---- with threads --------------------------------------------------------------------------- */

static atomic_uint fires;

static void count_fire(struct engine_timer *timer)
{
    (void)timer;
    atomic_fetch_add(&fires, 1);
}

/* The shard sleeps towards a far deadline (or none); a sooner one set elsewhere shortens that. */
static void sooner_wakes(void **state)
{
    struct engine_config config = {.shards = 1};
    struct engine_timer far, near;

    (void)state;
    assert_int_equal(engine_get(&config), 0);
    engine_timer_init(&far, engine_shard_at(0), count_fire);
    engine_timer_init(&near, engine_shard_at(0), count_fire);
    atomic_store(&fires, 0);
    for (unsigned round = 0; round < 100; round++) {
        assert_false(engine_timer_set(&far, HOUR_US));
        if (round % 2)
            os_sleep_us(500); /* asleep by now, most likely */
        if (round % 3 == 0) {
            assert_true(engine_timer_set(&far, 500));
        } else {
            assert_false(engine_timer_set(&near, 500));
        }
        if (!TEST_WAIT(atomic_load(&fires) == round + 1))
            fail_msg("round %u: the sleeping shard was not told", round);
        assert_int_equal(engine_timer_cancel(&far), round % 3 != 0);
    }
    engine_put();
}

struct racer {
    struct engine_timer timer;
    atomic_uint armed, ended; /* armed from not armed; cancelled in time or fired */
    atomic_uint fired;
};

static struct racer racers[3];

static void racer_fire(struct engine_timer *timer)
{
    struct racer *r = (struct racer *)timer;

    atomic_fetch_add(&r->fired, 1);
    atomic_fetch_add(&r->ended, 1);
}

static void race(void *arg)
{
    uint32_t seed = *(uint32_t *)arg;

    for (unsigned i = 0; i < 20000; i++) {
        struct racer *r = &racers[test_random(&seed) % 3];
        uint32_t what = test_random(&seed) % 8;

        if (what < 3) {
            if (engine_timer_cancel(&r->timer))
                atomic_fetch_add(&r->ended, 1);
        } else if (!engine_timer_set(&r->timer, what == 7 ? HOUR_US : what * 2)) {
            atomic_fetch_add(&r->armed, 1);
        }
        for (uint32_t spin = test_random(&seed) % 200; spin > 0; spin--)
            os_cpu_relax();
    }
}

/* Two threads set and cancel what a shard fires: each arming ends exactly once. */
static void set_cancel_fire_race(void **state)
{
    struct engine_config config = {.shards = 2};
    struct os_thread *threads[2];
    uint32_t seeds[2];

    (void)state;
    assert_int_equal(engine_get(&config), 0);
    for (unsigned i = 0; i < 3; i++)
        engine_timer_init(&racers[i].timer, engine_shard_at(i % 2), racer_fire);
    for (unsigned i = 0; i < 2; i++) {
        seeds[i] = test_seed();
        assert_int_equal(os_thread_start(&threads[i], "racer", race, &seeds[i]), 0);
    }
    for (unsigned i = 0; i < 2; i++)
        os_thread_join(threads[i]);
    for (unsigned i = 0; i < 3; i++) {
        struct racer *r = &racers[i];

        if (engine_timer_cancel(&r->timer))
            atomic_fetch_add(&r->ended, 1);
        /* One may be on its way from the heap to its fire. */
        assert_true(TEST_WAIT(atomic_load(&r->ended) == atomic_load(&r->armed)));
        print_message("timer %u: armed %u, fired %u\n", i, atomic_load(&r->armed),
                      atomic_load(&r->fired));
        assert_true(atomic_load(&r->armed) > 0);
    }
    engine_put();
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(atomic_load(&racers[i].ended), atomic_load(&racers[i].armed));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_order_never_early), cmocka_unit_test(heap_against_model),
        cmocka_unit_test(cancelled_and_moved),  cmocka_unit_test(again_in_fire),
        cmocka_unit_test(cancelled_by_another), cmocka_unit_test(sooner_wakes),
        cmocka_unit_test(set_cancel_fire_race),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
