// SPDX-License-Identifier: MIT
/* The engine: start and stop, deferred items, what comes after them, stepping, staging. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "engine/engine_internal.h"
#include "os/os_testing.h"

static const struct engine_config stepped = {.shards = 2, .stepped = true};

/* A line of what happened, in order. */
static char trace[4096];

static void note(const char *what)
{
    size_t len = strlen(trace);

    snprintf(trace + len, sizeof trace - len, "%s%s", len ? " " : "", what);
}

struct thing {
    struct engine_item item;
    struct engine_work work;
    struct engine_after after;
    struct engine_timer timer;
    const char *name;
};

static void note_item(struct engine_item *item)
{
    assert_true(engine_in_item());
    note(((struct thing *)item)->name);
}

static struct thing *of_work(struct engine_work *work)
{
    return (struct thing *)((char *)work - offsetof(struct thing, work));
}

static struct thing *of_after(struct engine_after *after)
{
    return (struct thing *)((char *)after - offsetof(struct thing, after));
}

static void note_work(struct engine_work *work)
{
    assert_false(engine_in_item());
    note(of_work(work)->name);
}

static void note_after(struct engine_after *after)
{
    assert_true(engine_in_item());
    note(of_after(after)->name);
}

/* ---- start and stop ------------------------------------------------------------------------- */

static void start_stop(void **state)
{
    (void)state;
    assert_int_equal(engine_shard_count(), 0);
    for (unsigned i = 0; i < 200; i++) {
        struct engine_config config = {.shards = 1 + i % 3};

        assert_int_equal(engine_get(&config), 0);
        assert_int_equal(engine_shard_count(), config.shards);
        engine_put();
        assert_int_equal(engine_shard_count(), 0);
    }
}

static void counted(void **state)
{
    struct engine_config other = {.shards = 5};
    struct engine_shard *first;
    unsigned n;

    (void)state;
    assert_int_equal(engine_get(NULL), 0);
    n = engine_shard_count();
    assert_true(n >= 2 && n <= 8);
    assert_int_equal(engine_get(&other), 0);
    assert_int_equal(engine_shard_count(), n);
    engine_put();
    assert_int_equal(engine_shard_count(), n);
    first = engine_shard_at(0);
    for (unsigned i = 0; i < n; i++)
        assert_int_equal(engine_shard_index(engine_shard_at(i)), i);
    for (unsigned i = 0; i < 3 * n; i++)
        assert_ptr_equal(engine_shard_next(), engine_shard_at(i % n));
    assert_ptr_equal(engine_shard_at(0), first);
    assert_null(engine_self());
    assert_false(engine_in_item());
    engine_put();
    other.shards = 65;
    setenv("SOFTNDK_LOG", "none", 1);
    assert_int_equal(engine_get(&other), -EINVAL);
}

static void failed_start(void **state)
{
    struct engine_config config = {.shards = 4};

    (void)state;
    for (unsigned nth = 1; nth <= 4; nth++) {
        assert_int_equal(os_fault_set("thread", nth, EAGAIN, false), 0);
        assert_int_equal(engine_get(&config), -EAGAIN);
        assert_int_equal(engine_shard_count(), 0);
        os_fault_clear();
    }
    assert_int_equal(engine_get(&config), 0);
    engine_put();
}

static void get_put_race(void *arg)
{
    (void)arg;
    for (int i = 0; i < 100; i++)
        if (engine_get(NULL) == 0)
            engine_put();
}

static void gets_of_many_threads(void **state)
{
    struct os_thread *threads[3];

    (void)state;
    for (int i = 0; i < 3; i++)
        assert_int_equal(os_thread_start(&threads[i], "getter", get_put_race, NULL), 0);
    for (int i = 0; i < 3; i++)
        os_thread_join(threads[i]);
    assert_int_equal(engine_shard_count(), 0);
}

/* A chain of items, each deferring the next to the next shard. */
struct chain {
    struct engine_item item;
    unsigned hops, limit;
    int get_result;
};

static void chain_hop(struct engine_item *item)
{
    struct chain *c = (struct chain *)item;
    unsigned next = (engine_shard_index(engine_self()) + 1) % engine_shard_count();

    if (++c->hops == 1)
        c->get_result = engine_get(NULL);
    if (c->hops == 1 && c->get_result == 0)
        c->get_result = -1000; /* the count is put back by the test */
    if (c->hops < c->limit)
        engine_defer(engine_shard_at(next), item);
}

static void put_drains(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 100; round++) {
        struct engine_config config = {.shards = 2, .stepped = round % 2 == 0};
        struct chain c = {.item.run = chain_hop, .limit = 200};
        bool counted_on;

        assert_int_equal(engine_get(&config), 0);
        engine_defer(engine_shard_at(round % 2), &c.item);
        engine_put();
        counted_on = engine_shard_count() != 0; /* the chain began before the put */
        if (counted_on)
            engine_put();
        assert_int_equal(c.get_result, counted_on ? -1000 : -ESHUTDOWN);
        assert_int_equal(c.hops, c.limit);
    }
}

/* ---- deferred items ------------------------------------------------------------------------- */

#define PUSHERS 4
#define PUSHES  10000

struct ordered {
    struct engine_item item;
    unsigned pusher, number;
};

static struct ordered ordered[PUSHERS][PUSHES];
static unsigned order_next[PUSHERS], order_faults; /* the shard's */
static atomic_uint order_done;

static void ordered_run(struct engine_item *item)
{
    struct ordered *o = (struct ordered *)item;

    if (order_next[o->pusher]++ != o->number)
        order_faults++;
    atomic_fetch_add(&order_done, 1);
}

static void pusher(void *arg)
{
    struct ordered *mine = arg;

    for (unsigned i = 0; i < PUSHES; i++)
        engine_defer(engine_shard_at(0), &mine[i].item);
}

static void deferred_order(void **state)
{
    struct engine_config config = {.shards = 1};
    struct os_thread *threads[PUSHERS];

    (void)state;
    assert_int_equal(engine_get(&config), 0);
    for (unsigned p = 0; p < PUSHERS; p++)
        for (unsigned i = 0; i < PUSHES; i++)
            ordered[p][i] = (struct ordered){.item.run = ordered_run, .pusher = p, .number = i};
    for (unsigned p = 0; p < PUSHERS; p++)
        assert_int_equal(os_thread_start(&threads[p], "pusher", pusher, ordered[p]), 0);
    for (unsigned p = 0; p < PUSHERS; p++)
        os_thread_join(threads[p]);
    assert_true(TEST_WAIT(atomic_load(&order_done) == PUSHERS * PUSHES));
    engine_put();
    assert_int_equal(order_faults, 0);
    for (unsigned p = 0; p < PUSHERS; p++)
        assert_int_equal(order_next[p], PUSHES);
}

static struct thing again = {.name = "again"};

static void defers_again(struct engine_item *item)
{
    note(((struct thing *)item)->name);
    engine_defer(engine_self(), &again.item);
}

static void frees_itself(struct engine_item *item)
{
    note("freed");
    free(item);
}

/* A turn runs what was deferred before it, in order; what that defers waits for the next turn. */
static void snapshot(void **state)
{
    struct thing a = {.name = "a", .item.run = defers_again};
    struct thing b = {.name = "b", .item.run = note_item};
    struct thing c = {.name = "c", .work.run = note_work};
    struct engine_item *heap = malloc(sizeof *heap);
    struct engine_shard *s;

    (void)state;
    assert_non_null(heap);
    heap->run = frees_itself;
    again.item.run = note_item;
    trace[0] = '\0';
    assert_int_equal(engine_get(&stepped), 0);
    s = engine_shard_at(0);
    assert_false(engine_step(s, 0));
    engine_defer(s, &a.item);
    engine_defer(s, heap);
    engine_defer(s, &b.item);
    engine_run(s, &c.work);
    assert_false(engine_step(engine_shard_at(1), 0));
    assert_true(engine_step(s, 1000000));
    assert_string_equal(trace, "c a freed b");
    assert_true(engine_step(s, 1000000));
    assert_string_equal(trace, "c a freed b again");
    assert_false(engine_step(s, 0));
    assert_null(engine_self());
    engine_put();
}

/* ---- after an item -------------------------------------------------------------------------- */

static struct thing x = {.name = "x"}, y = {.name = "y"}, z = {.name = "z"};

static void after_adds(struct engine_after *after)
{
    note_after(after);
    engine_after(&z.after);
}

static void leaves_two(struct engine_item *item)
{
    note_item(item);
    engine_after(&x.after);
    engine_after(&y.after);
    note("still");
}

static void leaves_and_flushes(struct engine_item *item)
{
    note_item(item);
    assert_false(engine_after_flush());
    engine_after(&y.after);
    engine_after(&x.after);
    assert_true(engine_after_flush());
    assert_false(engine_after_flush());
    note("still");
    engine_after(&y.after);
}

static void after_list(void **state)
{
    struct thing a = {.name = "a", .item.run = leaves_two};
    struct thing b = {.name = "b", .item.run = leaves_and_flushes};

    (void)state;
    x.after.run = after_adds;
    y.after.run = note_after;
    z.after.run = note_after;
    trace[0] = '\0';
    assert_int_equal(engine_get(&stepped), 0);
    engine_defer(engine_shard_at(0), &a.item);
    engine_defer(engine_shard_at(0), &b.item);
    engine_step(engine_shard_at(0), 0);
    assert_string_equal(trace, "a still x y z b y x z still y");
    engine_put();
}

/* ---- nested poll ---------------------------------------------------------------------------- */

static void note_timer(struct engine_timer *timer)
{
    assert_false(engine_in_item());
    assert_ptr_equal(engine_self(), timer->shard);
    note("timer");
}

static void polls_nested(struct engine_item *item)
{
    struct thing *t = (struct thing *)item;

    note_item(item);
    engine_after(&x.after);
    engine_run(engine_self(), &t->work);
    engine_timer_set(&t->timer, 0);
    engine_defer(engine_self(), &again.item);
    engine_poll_nested();
    assert_true(engine_in_item());
    note("polled");
}

/* Inside an item the shard's I/O goes on, but no other item runs, nor what comes after this one. */
static void nested_poll(void **state)
{
    struct thing a = {.name = "a", .item.run = polls_nested, .work.run = note_work};
    struct thing b = {.name = "b", .item.run = note_item};
    struct engine_shard *s;

    (void)state;
    x.after.run = note_after;
    again.item.run = note_item;
    trace[0] = '\0';
    assert_int_equal(engine_get(&stepped), 0);
    s = engine_shard_at(0);
    engine_timer_init(&a.timer, s, note_timer);
    engine_defer(s, &a.item);
    engine_defer(s, &b.item);
    engine_step(s, 0);
    /* The work is of the same thing, hence the second "a". */
    assert_string_equal(trace, "a a timer polled x b");
    engine_step(s, 0);
    assert_string_equal(trace, "a a timer polled x b again");
    engine_put();
}

/* ---- staging -------------------------------------------------------------------------------- */

struct staged {
    struct engine_item item;
    uint8_t *area;
    atomic_bool done;
};

static void use_staging(struct staged *s)
{
    s->area = engine_staging();
    memset(s->area, 0x5a, ENGINE_STAGING);
    if (engine_staging() != s->area)
        s->area = NULL;
    atomic_store(&s->done, true);
}

static void staging_item(struct engine_item *item)
{
    use_staging((struct staged *)item);
}

static void staging_thread(void *arg)
{
    use_staging(arg);
}

static void staging(void **state)
{
    struct engine_config config = {.shards = 2};
    struct staged a = {.item.run = staging_item}, b = {.item.run = staging_item},
                  c = {.area = NULL};
    struct os_thread *thread;
    uint8_t *mine = engine_staging(); /* also without a running engine */

    (void)state;
    memset(mine, 0xa5, ENGINE_STAGING);
    assert_int_equal(engine_get(&config), 0);
    engine_defer(engine_shard_at(0), &a.item);
    engine_defer(engine_shard_at(1), &b.item);
    assert_true(TEST_WAIT(atomic_load(&a.done) && atomic_load(&b.done)));
    assert_int_equal(os_thread_start(&thread, "stager", staging_thread, &c), 0);
    os_thread_join(thread);
    assert_true(a.area && b.area && c.area);
    assert_true(a.area != b.area && a.area != mine && b.area != mine && c.area != a.area);
    assert_int_equal(((uintptr_t)mine | (uintptr_t)a.area | (uintptr_t)c.area) % 64, 0);
    assert_ptr_equal(engine_staging(), mine);
    assert_int_equal(mine[ENGINE_STAGING - 1], 0xa5);
    engine_put();
}

/* ---- stepped mode --------------------------------------------------------------------------- */

struct walker {
    struct engine_item item;
    struct engine_work work;
    uint32_t seed;
    unsigned left;
    char name[8];
};

static void walker_go(struct walker *w, const char *how)
{
    struct engine_shard *to = engine_shard_at(test_random(&w->seed) % 2);
    char line[32];

    snprintf(line, sizeof line, "%s%s%u", w->name, how, engine_shard_index(engine_self()));
    note(line);
    if (w->left-- == 0)
        return;
    if (test_random(&w->seed) % 2)
        engine_defer(to, &w->item);
    else
        engine_run(to, &w->work);
}

static void walker_item(struct engine_item *item)
{
    walker_go((struct walker *)item, "i");
}

static void walker_work(struct engine_work *work)
{
    walker_go((struct walker *)((char *)work - offsetof(struct walker, work)), "w");
}

static void walk(uint32_t seed, char *out, size_t size)
{
    struct walker w[5];
    bool ran;

    trace[0] = '\0';
    assert_int_equal(engine_get(&stepped), 0);
    for (unsigned i = 0; i < 5; i++) {
        w[i] = (struct walker){.item.run = walker_item, .work.run = walker_work, .left = 40};
        w[i].seed = seed + i * 77 + 1;
        snprintf(w[i].name, sizeof w[i].name, "%c", 'A' + (int)i);
        engine_defer(engine_shard_at(i % 2), &w[i].item);
    }
    do {
        ran = engine_step(engine_shard_at(0), 0);
        ran = engine_step(engine_shard_at(1), 0) || ran;
    } while (ran);
    engine_put();
    snprintf(out, size, "%s", trace);
}

static void stepping_is_deterministic(void **state)
{
    static char first[sizeof trace], second[sizeof trace];
    uint32_t seed = test_seed();

    (void)state;
    walk(seed, first, sizeof first);
    walk(seed, second, sizeof second);
    assert_string_equal(first, second);
    assert_true(strlen(first) > 5 * 40 * 3);
    walk(seed + 1, second, sizeof second);
    assert_string_not_equal(first, second);
}

/* ---- misuse --------------------------------------------------------------------------------- */

static void misuse_put(void)
{
    engine_put();
}

static void misuse_after(void)
{
    engine_after(&x.after);
}

static void misuse_nested(void)
{
    engine_poll_nested();
}

static void misuse_shard(void)
{
    engine_get(&stepped);
    engine_shard_at(2);
}

static void misuse_next(void)
{
    engine_shard_next();
}

static void put_item(struct engine_item *item)
{
    (void)item;
    engine_put();
}

static void misuse_put_in_item(void)
{
    struct engine_item item = {.run = put_item};

    engine_get(&stepped);
    engine_defer(engine_shard_at(0), &item);
    engine_step(engine_shard_at(0), 0);
}

static void step_item(struct engine_item *item)
{
    (void)item;
    engine_step(engine_shard_at(0), 0);
}

static void misuse_step_in_step(void)
{
    struct engine_item item = {.run = step_item};

    engine_get(&stepped);
    engine_defer(engine_shard_at(0), &item);
    engine_step(engine_shard_at(0), 0);
}

static void misuse_aborts(void **state)
{
    static void (*const cases[])(void) = {misuse_put,         misuse_after, misuse_nested,
                                          misuse_shard,       misuse_next,  misuse_put_in_item,
                                          misuse_step_in_step};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        pid_t child;
        int status;

        fflush(NULL);
        child = fork();
        assert_true(child >= 0);
        if (child == 0) {
            signal(SIGABRT, SIG_DFL);
            close(STDERR_FILENO);
            alarm(10);
            cases[i]();
            _exit(0);
        }
        assert_int_equal(waitpid(child, &status, 0), child);
        if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGABRT)
            fail_msg("misuse %zu was let through (status 0x%x)", i, status);
    }
}

/* The first start decides how many shards there are; how long they spin, whoever wants most. */
static void later_ones_may_ask_for_more_spinning(void **state)
{
    const struct engine_config adaptive = {.spin_us = 50, .adaptive = true};
    const struct engine_config longer = {.spin_us = 70, .adaptive = true}, always = {.spin_us = 60};

    (void)state;
    assert_int_equal(engine_get(&stepped), 0);
    assert_int_equal(atomic_load(&engine_shard_at(1)->spin_us), 0);
    assert_int_equal(engine_get(&adaptive), 0);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(atomic_load(&engine_shard_at(i)->spin_us), 50);
        assert_true(atomic_load(&engine_shard_at(i)->adaptive));
    }
    assert_int_equal(engine_get(NULL), 0);
    assert_int_equal(engine_get(&longer), 0);
    assert_int_equal(atomic_load(&engine_shard_at(0)->spin_us), 70);
    assert_int_equal(engine_get(&always), 0);
    assert_int_equal(atomic_load(&engine_shard_at(0)->spin_us), 70);
    assert_false(atomic_load(&engine_shard_at(0)->adaptive));
    assert_int_equal(engine_get(&adaptive), 0);
    assert_false(atomic_load(&engine_shard_at(1)->adaptive));
    for (unsigned i = 0; i < 6; i++)
        engine_put();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(misuse_aborts), /* first: while this process has one thread */
        cmocka_unit_test(start_stop),
        cmocka_unit_test(counted),
        cmocka_unit_test(later_ones_may_ask_for_more_spinning),
        cmocka_unit_test(failed_start),
        cmocka_unit_test(gets_of_many_threads),
        cmocka_unit_test(put_drains),
        cmocka_unit_test(deferred_order),
        cmocka_unit_test(snapshot),
        cmocka_unit_test(after_list),
        cmocka_unit_test(nested_poll),
        cmocka_unit_test(staging),
        cmocka_unit_test(stepping_is_deterministic),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
