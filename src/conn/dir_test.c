// SPDX-License-Identifier: MIT
/*
 * The direction word with a work function of the test's own: nothing that was published before a
 * kick is left behind, one owner at a time, the budget hands over to the home shard, END makes DEAD
 * exactly once. The connection is a real one without a socket; only its directions are used.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "conn/conn_internal.h"

#define WAIT_US 20000000u

/* One direction's fake work. */
struct fake {
    atomic_uint published, consumed;
    atomic_uint inside, overlaps; /* work and end on two threads at once */
    atomic_uint works, ends, after_end;
    atomic_int helpings;                  /* how often work says that there is more */
    atomic_uint here, at_home, elsewhere; /* helpings by thread */
    atomic_bool again;                    /* work kicks its own direction, once */
};

static struct {
    struct conn *conn;
    struct options options;
    struct conn_counters counters;
    struct fake rx, tx;
    struct os_thread *caller;
    atomic_uint finals;
} t;

static _Thread_local bool is_caller;

static void enter(struct fake *fake)
{
    if (atomic_fetch_add(&fake->inside, 1) != 0)
        atomic_fetch_add(&fake->overlaps, 1);
}

static bool work(struct fake *fake, struct conn_dir *dir)
{
    unsigned published;

    enter(fake);
    atomic_fetch_add(&fake->works, 1);
    if (atomic_load(&fake->ends))
        atomic_fetch_add(&fake->after_end, 1);
    if (is_caller)
        atomic_fetch_add(&fake->here, 1);
    else if (engine_self() == atomic_load(&t.conn->home))
        atomic_fetch_add(&fake->at_home, 1);
    else
        atomic_fetch_add(&fake->elsewhere, 1);
    if (atomic_exchange(&fake->again, false)) {
        atomic_fetch_add(&fake->published, 1);
        conn_kick(dir, 0); /* owned by us: only leaves word */
        atomic_fetch_sub(&fake->inside, 1);
        return false;
    }
    published = atomic_load(&fake->published);
    atomic_store(&fake->consumed, published);
    atomic_fetch_sub(&fake->inside, 1);
    return atomic_fetch_sub(&fake->helpings, 1) > 0;
}

static bool rx_fake(struct conn *conn)
{
    return work(&t.rx, &conn->rx.dir);
}

static bool tx_fake(struct conn *conn)
{
    return work(&t.tx, &conn->tx.dir);
}

static void end(struct fake *fake)
{
    enter(fake);
    os_sleep_us(200);
    atomic_fetch_add(&fake->ends, 1);
    atomic_fetch_sub(&fake->inside, 1);
}

static void rx_fake_end(struct conn *conn)
{
    (void)conn;
    end(&t.rx);
}

static void tx_fake_end(struct conn *conn)
{
    (void)conn;
    end(&t.tx);
}

static void final(struct engine_work *item)
{
    struct conn *conn = (struct conn *)(void *)((char *)item - offsetof(struct conn, final));

    atomic_fetch_add(&t.finals, 1);
    conn_unref(conn);
}

static int setup(void **state)
{
    static const struct conn_ops no_ops;
    const struct engine_config config = {.shards = 2};

    (void)state;
    memset(&t, 0, sizeof t);
    is_caller = true;
    assert_int_equal(engine_get(&config), 0);
    options_defaults(&t.options);
    t.conn = conn_new(&no_ops, NULL, &t.options, &t.counters);
    assert_non_null(t.conn);
    conn_dir_init(&t.conn->rx.dir, t.conn, rx_fake, rx_fake_end);
    conn_dir_init(&t.conn->tx.dir, t.conn, tx_fake, tx_fake_end);
    t.conn->final.run = final;
    atomic_store(&t.conn->home, engine_shard_at(0));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    engine_put(); /* runs what is still on the run lists */
    conn_unref(t.conn);
    return 0;
}

#define wait_for(condition)                                                                        \
    do {                                                                                           \
        uint64_t wait_end_ = os_now_us() + WAIT_US;                                                \
        while (!(condition) && os_now_us() < wait_end_)                                            \
            os_sleep_us(100);                                                                      \
        assert_true(condition);                                                                    \
    } while (0)

static bool idle(struct conn_dir *dir)
{
    return atomic_load(&dir->word) == 0;
}

/* ---- one thread ---- */

static void a_kick_works_here_and_lets_go(void **state)
{
    (void)state;
    atomic_store(&t.tx.published, 5);
    assert_true(conn_kick(&t.conn->tx.dir, 0));
    assert_int_equal(atomic_load(&t.tx.works), 1);
    assert_int_equal(atomic_load(&t.tx.here), 1);
    assert_int_equal(atomic_load(&t.tx.consumed), 5);
    assert_true(idle(&t.conn->tx.dir));
    assert_int_equal(atomic_load(&t.rx.works), 0);
}

static void a_kick_by_the_owner_only_leaves_word(void **state)
{
    (void)state;
    atomic_store(&t.tx.again, true);
    assert_true(conn_kick(&t.conn->tx.dir, 0));
    assert_int_equal(atomic_load(&t.tx.works), 2);
    assert_int_equal(atomic_load(&t.tx.overlaps), 0);
    assert_int_equal(atomic_load(&t.tx.consumed), 1);
    assert_true(idle(&t.conn->tx.dir));
}

/* Work that does not end by itself goes to the home shard, so that the kicker comes back. */
static void the_budget_hands_over_to_the_home_shard(void **state)
{
    (void)state;
    atomic_store(&t.tx.helpings, 1000);
    assert_true(conn_kick(&t.conn->tx.dir, 0));
    assert_in_range(atomic_load(&t.tx.here), 1, 100);
    wait_for(idle(&t.conn->tx.dir));
    assert_int_equal(atomic_load(&t.tx.works), 1001);
    assert_int_equal(atomic_load(&t.tx.here) + atomic_load(&t.tx.at_home), 1001);
    assert_in_range(atomic_load(&t.tx.at_home), 901, 1000);
    assert_int_equal(atomic_load(&t.tx.elsewhere) + atomic_load(&t.tx.overlaps), 0);
}

static void a_kick_while_it_is_handed_over_is_not_lost(void **state)
{
    (void)state;
    for (int turn = 0; turn < 200; turn++) {
        unsigned published;

        atomic_store(&t.tx.helpings, 20);
        conn_kick(&t.conn->tx.dir, 0);
        published = atomic_fetch_add(&t.tx.published, 1) + 1;
        assert_true(conn_kick(&t.conn->tx.dir, 0));
        wait_for(idle(&t.conn->tx.dir));
        assert_int_equal(atomic_load(&t.tx.consumed), published);
    }
    assert_int_equal(atomic_load(&t.tx.overlaps), 0);
}

static void end_makes_dead_once(void **state)
{
    (void)state;
    assert_true(conn_kick(&t.conn->tx.dir, DIR_END));
    assert_int_equal(atomic_load(&t.tx.ends), 1);
    assert_int_equal(atomic_load(&t.conn->tx.dir.word), DIR_DEAD);
    assert_false(conn_kick(&t.conn->tx.dir, 0));
    assert_false(conn_kick(&t.conn->tx.dir, DIR_END));
    assert_int_equal(atomic_load(&t.tx.works), 0);
    assert_int_equal(atomic_load(&t.tx.ends), 1);
    assert_int_equal(atomic_load(&t.finals), 0); /* the other direction lives */
    assert_true(conn_kick(&t.conn->rx.dir, 0));
    assert_int_equal(atomic_load(&t.rx.works), 1);
    assert_true(conn_kick(&t.conn->rx.dir, DIR_END));
    wait_for(atomic_load(&t.finals) == 1);
}

static void end_stops_work_that_was_handed_over(void **state)
{
    (void)state;
    atomic_store(&t.tx.helpings, 1000000000);
    conn_kick(&t.conn->tx.dir, 0);
    wait_for(atomic_load(&t.tx.at_home) > 0);
    assert_true(conn_kick(&t.conn->tx.dir, DIR_END));
    assert_true(conn_kick(&t.conn->rx.dir, DIR_END));
    wait_for(atomic_load(&t.finals) == 1);
    assert_int_equal(atomic_load(&t.tx.ends), 1);
    assert_int_equal(atomic_load(&t.tx.after_end) + atomic_load(&t.tx.overlaps), 0);
}

/* ---- a thread that polls ---- */

static atomic_bool has_left;

static void leave_group(struct engine_work *work)
{
    (void)work;
    engine_watch_del(&t.conn->watch);
    conn_unref(t.conn);
    atomic_store(&has_left, true);
}

/*
 * While the lease is out, what is more than a turn is left to the next polls, one turn each: the
 * shard does not become a second thread at the same work. The lease goes back when this thread does
 * not run for a millisecond; then the shard may take part, so that turn proves nothing.
 */
static void what_is_left_waits_for_the_poll(void **state)
{
    struct engine_work work = {.run = leave_group};
    struct engine_group *group = engine_group_open(engine_shard_at(0));
    int ends[2];
    bool alone = false;

    (void)state;
    assert_non_null(group);
    assert_int_equal(pipe(ends), 0);
    t.conn->fd = ends[0];
    t.conn->group = group;
    assert_int_equal(conn_watch(t.conn, engine_shard_at(0)), 0);
    for (unsigned turn = 0; turn < 1000 && !alone; turn++) {
        uint64_t limit = os_now_us() + WAIT_US;

        while (!engine_group_leased(group))
            conn_group_poll(group);
        atomic_store(&t.tx.works, 0);
        atomic_store(&t.tx.at_home, 0);
        atomic_store(&t.tx.helpings, 50);
        assert_true(conn_kick(&t.conn->tx.dir, 0));
        while (atomic_load(&t.tx.works) < 51 && os_now_us() < limit)
            conn_group_poll(group);
        assert_int_equal(atomic_load(&t.tx.works), 51);
        wait_for(idle(&t.conn->tx.dir));
        alone = atomic_load(&t.tx.at_home) == 0;
    }
    assert_true(alone);
    assert_int_equal(atomic_load(&t.tx.overlaps), 0);
    engine_run(engine_shard_at(0), &work);
    engine_group_close(group);
    wait_for(atomic_load(&has_left));
    close(ends[0]);
    close(ends[1]);
}

/* ---- many threads ---- */

#define KICKERS 4
#define KICKS   30000u

static void kicker(void *direction)
{
    struct conn_dir *dir = direction;
    struct fake *fake = dir == &t.conn->rx.dir ? &t.rx : &t.tx;

    for (unsigned i = 0; i < KICKS; i++) {
        atomic_fetch_add(&fake->published, 1);
        if (i % 64 == 0)
            atomic_store(&fake->helpings, 12);
        conn_kick(dir, 0);
    }
}

/* Each thread waits, after a kick, until somebody has consumed what it published before. */
static void waiting_kicker(void *direction)
{
    struct conn_dir *dir = direction;

    for (unsigned i = 0; i < KICKS / 4; i++) {
        unsigned mine = atomic_fetch_add(&t.tx.published, 1) + 1;
        uint64_t limit = os_now_us() + WAIT_US;

        conn_kick(dir, 0);
        while ((int)(atomic_load(&t.tx.consumed) - mine) < 0)
            if (os_now_us() > limit)
                return;
    }
}

static void run_kickers(void (*fn)(void *), struct conn_dir *dir)
{
    struct os_thread *threads[KICKERS];

    for (int i = 0; i < KICKERS; i++)
        assert_int_equal(os_thread_start(&threads[i], "kicker", fn, dir), 0);
    for (int i = 0; i < KICKERS; i++)
        os_thread_join(threads[i]);
}

static void kickers_lose_nothing(void **state)
{
    (void)state;
    run_kickers(kicker, &t.conn->tx.dir);
    wait_for(idle(&t.conn->tx.dir));
    assert_int_equal(atomic_load(&t.tx.consumed), KICKERS * KICKS);
    assert_int_equal(atomic_load(&t.tx.overlaps), 0);
}

static void a_kicker_finds_its_work_done(void **state)
{
    (void)state;
    run_kickers(waiting_kicker, &t.conn->tx.dir);
    assert_int_equal(atomic_load(&t.tx.published), KICKERS * (KICKS / 4));
    wait_for(idle(&t.conn->tx.dir));
    assert_int_equal(atomic_load(&t.tx.consumed), KICKERS * (KICKS / 4));
    assert_int_equal(atomic_load(&t.tx.overlaps), 0);
}

static void ender(void *turn)
{
    unsigned order = *(unsigned *)turn;

    for (unsigned i = 0; i < 40; i++) {
        conn_kick(&t.conn->tx.dir, order % 2 && i == 20 ? DIR_END : 0);
        conn_kick(&t.conn->rx.dir, i == 20 ? DIR_END : 0);
        conn_kick(&t.conn->tx.dir, i == 20 ? DIR_END : 0);
    }
}

static void enders_and_kickers(void **state)
{
    for (unsigned turn = 0; turn < 60; turn++) {
        struct os_thread *threads[KICKERS];

        for (int i = 0; i < KICKERS; i++)
            assert_int_equal(os_thread_start(&threads[i], "ender", ender, &turn), 0);
        for (int i = 0; i < KICKERS; i++)
            os_thread_join(threads[i]);
        wait_for(atomic_load(&t.finals) >= 1);
        assert_int_equal(atomic_load(&t.rx.ends), 1);
        assert_int_equal(atomic_load(&t.tx.ends), 1);
        assert_int_equal(atomic_load(&t.rx.overlaps) + atomic_load(&t.tx.overlaps), 0);
        assert_int_equal(atomic_load(&t.rx.after_end) + atomic_load(&t.tx.after_end), 0);
        teardown(state);
        assert_int_equal(atomic_load(&t.finals), 1);
        setup(state);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_kick_works_here_and_lets_go),
        TEST(a_kick_by_the_owner_only_leaves_word),
        TEST(the_budget_hands_over_to_the_home_shard),
        TEST(a_kick_while_it_is_handed_over_is_not_lost),
        TEST(end_makes_dead_once),
        TEST(end_stops_work_that_was_handed_over),
        TEST(what_is_left_waits_for_the_poll),
        TEST(kickers_lose_nothing),
        TEST(a_kicker_finds_its_work_done),
        TEST(enders_and_kickers),
    };

    return cmocka_run_group_tests_name("dir", tests, NULL, NULL);
}
