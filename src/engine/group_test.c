// SPDX-License-Identifier: MIT
/*
 * Groups: who polls takes the events of the members, the shard does not see them; when the lease is
 * back, for whatever reason, the shard finds what is there. A watch that was deleted is not polled.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "engine/engine_internal.h"
#include "os/os_testing.h"

static const struct engine_config stepped = {.shards = 1, .stepped = true};

struct end {
    struct engine_watch watch;
    int near, far;
    unsigned calls, holds, polls, octets;
    unsigned events; /* of the last poll */
};

static struct engine_shard *shard;
static struct engine_group *group;

static void drain(struct end *e)
{
    char buf[64];
    ssize_t n;

    while ((n = os_tcp_recv(e->near, buf, sizeof buf)) > 0)
        e->octets += (unsigned)n;
}

static void ready(struct engine_watch *watch, unsigned events)
{
    struct end *e = (struct end *)watch;

    (void)events;
    e->calls++;
    drain(e);
}

static void hold(struct engine_watch *watch)
{
    ((struct end *)watch)->holds++;
}

static void polled(struct engine_watch *watch, unsigned events)
{
    struct end *e = (struct end *)watch;

    e->polls++;
    e->events = events;
    drain(e);
}

static bool poll_group(void)
{
    return engine_group_poll(group, hold, polled);
}

static void settle(void)
{
    while (engine_step(shard, 0))
        ;
}

static void join(struct end *e)
{
    memset(e, 0, sizeof *e);
    test_pair("127.0.0.1", &e->near, &e->far);
    assert_int_equal(engine_watch_join(&e->watch, group, e->near, ready), 0);
    settle();
    while (poll_group() && e->polls < 32)
        ; /* the edge of a new descriptor, which can be written to */
    e->calls = e->holds = e->polls = 0;
}

static void leave(struct end *e)
{
    engine_watch_del(&e->watch);
    os_tcp_close(e->near);
    os_tcp_close(e->far);
}

static void join_two(struct end *e, struct end *f)
{
    join(e);
    join(f);
}

static void leave_two(struct end *e, struct end *f)
{
    leave(e);
    leave(f);
}

static void send_and_arrive(struct end *e)
{
    assert_int_equal(test_send(e->far, "x", 1), 1);
    assert_true(TEST_WAIT(os_tcp_unacked(e->far) == 0));
}

/* Turns until it was called. */
static void shard_calls(struct end *e)
{
    uint64_t until = os_now_us() + TEST_LIMIT_US;

    while (e->calls == 0 && os_now_us() < until)
        engine_step(shard, 1000);
    assert_int_not_equal(e->calls, 0);
}

static int begin(void **state)
{
    (void)state;
    assert_int_equal(engine_get(&stepped), 0);
    shard = engine_shard_at(0);
    group = engine_group_open(shard);
    assert_non_null(group);
    return 0;
}

static int end(void **state)
{
    (void)state;
    engine_group_close(group);
    settle();
    engine_put();
    return 0;
}

static void without_a_poller_the_shard_serves(void **state)
{
    struct end e, f;

    (void)state;
    join_two(&e, &f);
    engine_group_return(group);
    settle();
    e.calls = f.calls = 0;
    send_and_arrive(&e);
    shard_calls(&e);
    assert_int_equal(e.octets, 1);
    assert_int_equal(e.holds + e.polls, 0);
    assert_int_equal(f.calls, 0);
    leave_two(&e, &f);
}

/* One member: nobody asks which. Several: only those that have something. */
static void who_polls_serves(void **state)
{
    struct end e, f;

    (void)state;
    assert_false(poll_group()); /* nobody */
    assert_false(engine_group_leased(group));
    join(&e);
    send_and_arrive(&e);
    for (unsigned i = 0; e.octets == 0 && i < 8; i++)
        assert_true(poll_group() || e.octets == 0);
    assert_true(engine_group_leased(group));
    assert_int_equal(e.octets, 1);
    assert_int_equal(e.holds, e.polls);
    join(&f);
    while (poll_group())
        ;
    e.polls = f.polls = f.holds = 0;
    send_and_arrive(&f);
    assert_true(poll_group());
    assert_int_equal(e.polls, 0);
    assert_int_equal(f.polls, 1);
    assert_int_equal(f.holds, 1);
    assert_true(f.events & OS_READABLE);
    assert_int_equal(f.octets, 1);
    assert_false(poll_group());
    settle(); /* the timer alone: the lease is out */
    assert_int_equal(e.calls + f.calls, 0);
    leave(&f);
    leave(&e);
}

static void what_came_meanwhile_is_found(void **state)
{
    struct end e, f;

    (void)state;
    join_two(&e, &f);
    poll_group();
    assert_true(engine_group_leased(group));
    send_and_arrive(&e);
    engine_group_return(group);
    assert_false(engine_group_leased(group));
    shard_calls(&e);
    assert_int_equal(e.octets, 1);
    leave_two(&e, &f);
}

/* No poll for a while: the shard takes it back by itself. */
static void a_forgotten_lease_goes_back(void **state)
{
    struct end e, f;

    (void)state;
    join_two(&e, &f);
    poll_group();
    assert_true(engine_group_leased(group));
    send_and_arrive(&f);
    shard_calls(&f);
    assert_false(engine_group_leased(group));
    leave_two(&e, &f);
}

/* Without memory to put the set back at once it is put back soon. */
static void a_return_that_fails_is_made_up(void **state)
{
    struct end e, f;

    (void)state;
    join_two(&e, &f);
    poll_group();
    send_and_arrive(&e);
    os_fault_set("poll_add", 1, ENOMEM, false);
    engine_group_return(group);
    os_fault_clear();
    assert_true(engine_group_leased(group));
    shard_calls(&e);
    assert_false(engine_group_leased(group));
    leave_two(&e, &f);
}

static void the_deleted_are_not_polled(void **state)
{
    struct end e, f;

    (void)state;
    join_two(&e, &f);
    poll_group();
    send_and_arrive(&e);
    e.polls = e.holds = 0;
    leave(&e);
    while (poll_group() && f.polls < 32)
        ;
    assert_int_equal(e.polls + e.holds, 0);
    leave(&f);
    assert_false(poll_group());
}

/* Something is to be done that no event tells of: for that member alone, and once. */
static void who_is_asked_for_is_polled(void **state)
{
    struct end e, f;

    (void)state;
    join_two(&e, &f);
    engine_group_return(group);
    settle();
    assert_false(engine_group_ask(group, &f.watch)); /* nobody polls */
    while (poll_group())
        ;
    e.polls = f.polls = f.holds = f.events = 0;
    assert_true(engine_group_ask(group, &f.watch));
    assert_true(engine_group_ask(group, &f.watch));
    assert_true(poll_group());
    assert_int_equal(f.polls, 1);
    assert_int_equal(f.holds, 1);
    assert_int_equal(f.events, OS_READABLE);
    assert_false(poll_group());
    assert_int_equal(e.polls, 0);
    assert_int_equal(f.polls, 1);
    leave_two(&e, &f);
}

/* More than a poll takes at once. */
static void all_who_are_asked_for_are_polled(void **state)
{
    struct end ends[40];

    (void)state;
    for (unsigned i = 0; i < 40; i++)
        join(&ends[i]);
    while (poll_group())
        ;
    for (unsigned i = 0; i < 40; i++) {
        ends[i].polls = 0;
        assert_true(engine_group_ask(group, &ends[i].watch));
    }
    for (unsigned i = 0; i < 3; i++)
        assert_true(poll_group());
    assert_false(poll_group());
    for (unsigned i = 0; i < 40; i++) {
        assert_int_equal(ends[i].polls, 1);
        leave(&ends[i]);
    }
}

static void what_was_asked_for_goes_back_with_the_lease(void **state)
{
    struct end e, f;

    (void)state;
    for (unsigned forgotten = 0; forgotten < 2; forgotten++) {
        join_two(&e, &f);
        while (poll_group())
            ;
        settle();
        e.calls = f.calls = 0;
        assert_true(engine_group_ask(group, &e.watch));
        if (!forgotten)
            engine_group_return(group);
        shard_calls(&e);
        settle();
        assert_int_equal(e.calls, 1);
        assert_int_equal(f.calls, 0);
        leave_two(&e, &f);
    }
}

/* Polls that find what they want without looking here keep the lease, and take it. */
static void a_busy_poller_keeps_the_lease(void **state)
{
    struct end e, f;
    uint64_t until;

    (void)state;
    engine_group_polling(group); /* no member: nothing to take */
    assert_false(engine_group_leased(group));
    join_two(&e, &f);
    engine_group_return(group);
    engine_group_polling(group);
    assert_true(engine_group_leased(group));
    for (until = os_now_us() + 20000; os_now_us() < until;) {
        engine_group_polling(group);
        engine_step(shard, 0);
    }
    assert_true(engine_group_leased(group));
    leave_two(&e, &f);
}

/* Its maker has gone, a member is still there; and nobody joins what cannot be watched. */
static void members_keep_it(void **state)
{
    struct engine_group *other = engine_group_open(shard);
    struct end e;

    (void)state;
    memset(&e, 0, sizeof e);
    test_pair("127.0.0.1", &e.near, &e.far);
    os_fault_set("poll_add", 1, ENOSPC, false);
    assert_int_equal(engine_watch_join(&e.watch, other, e.near, ready), -ENOSPC);
    os_fault_clear();
    assert_int_equal(engine_watch_join(&e.watch, other, e.near, ready), 0);
    engine_group_close(other);
    settle();
    e.calls = 0;
    send_and_arrive(&e);
    shard_calls(&e);
    leave(&e);
}

int main(void)
{
#define EACH(test) cmocka_unit_test_setup_teardown(test, begin, end)
    const struct CMUnitTest tests[] = {
        EACH(without_a_poller_the_shard_serves),
        EACH(who_polls_serves),
        EACH(what_came_meanwhile_is_found),
        EACH(a_forgotten_lease_goes_back),
        EACH(a_return_that_fails_is_made_up),
        EACH(the_deleted_are_not_polled),
        EACH(who_is_asked_for_is_polled),
        EACH(all_who_are_asked_for_are_polled),
        EACH(what_was_asked_for_goes_back_with_the_lease),
        EACH(a_busy_poller_keeps_the_lease),
        EACH(members_keep_it),
    };

    return cmocka_run_group_tests_name("group", tests, NULL, NULL);
}
