// SPDX-License-Identifier: MIT
/* Watches: events reach them; one that was deleted is not called again, not even in its batch. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "engine/engine_internal.h"
#include "os/os_testing.h"

static const struct engine_config stepped = {.shards = 1, .stepped = true};

#define ENDS 4

/* A connection: the near end is watched. */
struct end {
    struct engine_watch watch;
    int near, far;
    unsigned calls, events, octets;
    struct end *victim;  /* deleted by the next call */
    struct end *newborn; /* then added */
};

static void open_end(struct end *e)
{
    memset(e, 0, sizeof *e);
    test_pair("127.0.0.1", &e->near, &e->far);
}

static void close_end(struct end *e)
{
    os_tcp_close(e->near);
    os_tcp_close(e->far);
}

static void ready(struct engine_watch *watch, unsigned events)
{
    struct end *e = (struct end *)watch;
    char buf[64];
    ssize_t n;

    e->calls++;
    e->events |= events;
    while (e->watch.shard && (n = os_tcp_recv(e->near, buf, sizeof buf)) > 0)
        e->octets += (unsigned)n;
    if (e->victim && e->victim->watch.shard) {
        engine_watch_del(&e->victim->watch);
        if (e->newborn)
            assert_int_equal(
                engine_watch_add(&e->newborn->watch, engine_self(), e->newborn->near, ready), 0);
    }
}

static void settle(struct engine_shard *s)
{
    while (engine_step(s, 0))
        ;
}

/* A turn in which an event comes, waiting for it. */
static bool step_event(struct engine_shard *s)
{
    uint64_t until = os_now_us() + TEST_LIMIT_US;

    while (!engine_step(s, 100000))
        if (os_now_us() > until)
            return false;
    return true;
}

static void send_and_arrive(struct end *e)
{
    assert_int_equal(test_send(e->far, "x", 1), 1);
    assert_true(TEST_WAIT(os_tcp_unacked(e->far) == 0));
}

static void events_arrive(void **state)
{
    struct engine_shard *s;
    struct end e;

    (void)state;
    assert_int_equal(engine_get(&stepped), 0);
    s = engine_shard_at(0);
    open_end(&e);
    assert_int_equal(engine_watch_add(&e.watch, s, e.near, ready), 0);
    assert_true(step_event(s));
    assert_int_equal(e.events, OS_WRITABLE);
    send_and_arrive(&e);
    assert_true(step_event(s));
    assert_int_equal(e.octets, 1);
    assert_false(engine_step(s, 0));
    assert_int_equal(os_tcp_shutdown_send(e.far), 0);
    assert_true(step_event(s));
    assert_true(e.events & OS_PEER_DONE);
    engine_watch_del(&e.watch); /* the caller stands for the shard between two steps */
    assert_null(e.watch.shard);
    e.calls = 0;
    os_tcp_close(e.far);
    assert_false(engine_step(s, 2000));
    assert_int_equal(e.calls, 0);
    os_tcp_close(e.near);
    engine_put();
}

static void failed_add(void **state)
{
    struct end e;

    (void)state;
    assert_int_equal(engine_get(&stepped), 0);
    open_end(&e);
    assert_int_equal(os_fault_set("poll_add", 1, ENOSPC, false), 0);
    assert_int_equal(engine_watch_add(&e.watch, engine_shard_at(0), e.near, ready), -ENOSPC);
    assert_null(e.watch.shard);
    assert_false(engine_step(engine_shard_at(0), 0));
    assert_int_equal(atomic_load(&engine_shard_at(0)->watches), 0);
    close_end(&e);
    engine_put();
}

static void open_all(struct engine_shard *s, struct end *e)
{
    for (unsigned i = 0; i < ENDS; i++) {
        open_end(&e[i]);
        assert_int_equal(engine_watch_add(&e[i].watch, s, e[i].near, ready), 0);
    }
    settle(s);
    for (unsigned i = 0; i < ENDS; i++) {
        e[i].calls = e[i].events = 0;
        send_and_arrive(&e[i]);
    }
}

static void close_all(struct end *e)
{
    for (unsigned i = 0; i < ENDS; i++) {
        if (e[i].watch.shard)
            engine_watch_del(&e[i].watch);
        close_end(&e[i]);
    }
}

/* All are ready in one batch; whichever comes first deletes its neighbour. */
static void deleted_in_the_batch(void **state)
{
    struct end e[ENDS];
    struct engine_shard *s;
    unsigned calls = 0, deleted = 0;

    (void)state;
    assert_int_equal(engine_get(&stepped), 0);
    s = engine_shard_at(0);
    open_all(s, e);
    for (unsigned i = 0; i < ENDS; i++)
        e[i].victim = &e[i ^ 1];
    engine_step(s, 0);
    for (unsigned i = 0; i < ENDS; i++) {
        calls += e[i].calls;
        deleted += e[i].watch.shard == NULL;
        if (!e[i].watch.shard)
            assert_int_equal(e[i].calls, 0);
    }
    assert_int_equal(calls, ENDS / 2);
    assert_int_equal(deleted, ENDS / 2);
    close_all(e);
    engine_put();
}

static void deletes_itself(void **state)
{
    struct end e[ENDS];
    struct engine_shard *s;

    (void)state;
    assert_int_equal(engine_get(&stepped), 0);
    s = engine_shard_at(0);
    open_all(s, e);
    for (unsigned i = 0; i < ENDS; i++)
        e[i].victim = &e[i];
    engine_step(s, 0);
    for (unsigned i = 0; i < ENDS; i++) {
        assert_int_equal(e[i].calls, 1);
        assert_null(e[i].watch.shard);
        send_and_arrive(&e[i]);
    }
    assert_false(engine_step(s, 2000));
    close_all(e);
    engine_put();
}

/* Deleted and added again within the batch, in the same memory: only fresh events count. */
static void reborn_in_the_batch(void **state)
{
    struct end e[ENDS];
    struct engine_shard *s;

    (void)state;
    assert_int_equal(engine_get(&stepped), 0);
    s = engine_shard_at(0);
    open_all(s, e);
    for (unsigned i = 0; i < ENDS; i++)
        e[i].victim = e[i].newborn = &e[i ^ 1];
    engine_step(s, 0);
    for (unsigned i = 0; i < ENDS; i += 2)
        assert_int_equal(e[i].calls + e[i + 1].calls, 1);
    for (unsigned i = 0; i < ENDS; i++)
        e[i].victim = NULL;
    settle(s);
    /* Whoever was replaced has its octet by the new registration's first event. */
    for (unsigned i = 0; i < ENDS; i++)
        assert_int_equal(e[i].octets, 1);
    close_all(e);
    engine_put();
}

static struct end *nested_ends;

static void polls_nested(struct engine_item *item)
{
    (void)item;
    for (unsigned i = 0; i < ENDS; i++)
        send_and_arrive(&nested_ends[i]);
    engine_poll_nested();
    for (unsigned i = 0; i < ENDS; i += 2)
        assert_int_equal(nested_ends[i].calls + nested_ends[i + 1].calls, 1);
}

static void deleted_in_a_nested_poll(void **state)
{
    struct engine_item item = {.run = polls_nested};
    struct end e[ENDS];
    struct engine_shard *s;

    (void)state;
    assert_int_equal(engine_get(&stepped), 0);
    s = engine_shard_at(0);
    open_all(s, e);
    settle(s);
    for (unsigned i = 0; i < ENDS; i++) {
        e[i].calls = 0;
        e[i].victim = &e[i ^ 1];
    }
    nested_ends = e;
    engine_defer(s, &item);
    engine_step(s, 0);
    settle(s);
    assert_null(s->batches);
    close_all(e);
    engine_put();
}

/* ---- with threads --------------------------------------------------------------------------- */

struct served {
    struct engine_watch watch;
    struct engine_item remove;
    int near, far;
    atomic_uint octets;
    atomic_bool removed;
    unsigned late; /* calls after the deletion */
};

static void serve(struct engine_watch *watch, unsigned events)
{
    struct served *v = (struct served *)watch;
    char buf[256];
    ssize_t n;

    (void)events;
    if (atomic_load(&v->removed))
        v->late++;
    while ((n = os_tcp_recv(v->near, buf, sizeof buf)) > 0)
        atomic_fetch_add(&v->octets, (unsigned)n);
}

static void serve_no_more(struct engine_item *item)
{
    struct served *v = (struct served *)((char *)item - offsetof(struct served, remove));

    engine_watch_del(&v->watch);
    atomic_store(&v->removed, true);
}

/* Added from outside while octets come in, deleted by an item while they still do. */
static void added_from_outside(void **state)
{
    struct engine_config config = {.shards = 2};

    (void)state;
    assert_int_equal(engine_get(&config), 0);
    for (unsigned round = 0; round < 200; round++) {
        struct served v = {.remove.run = serve_no_more};
        struct engine_shard *s = engine_shard_next();
        unsigned sent = 0;

        test_pair("127.0.0.1", &v.near, &v.far);
        for (unsigned i = 0; i < 10; i++, sent++)
            assert_int_equal(test_send(v.far, "x", 1), 1);
        assert_int_equal(engine_watch_add(&v.watch, s, v.near, serve), 0);
        for (unsigned i = 0; i < 10; i++, sent++)
            assert_int_equal(test_send(v.far, "x", 1), 1);
        assert_true(TEST_WAIT(atomic_load(&v.octets) == sent));
        engine_defer(s, &v.remove);
        for (unsigned i = 0; i < 10; i++)
            assert_int_equal(test_send(v.far, "x", 1), 1);
        assert_true(TEST_WAIT(atomic_load(&v.removed)));
        assert_int_equal(v.late, 0);
        os_tcp_close(v.near);
        os_tcp_close(v.far);
    }
    engine_put();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(events_arrive),        cmocka_unit_test(failed_add),
        cmocka_unit_test(deleted_in_the_batch), cmocka_unit_test(deletes_itself),
        cmocka_unit_test(reborn_in_the_batch),  cmocka_unit_test(deleted_in_a_nested_poll),
        cmocka_unit_test(added_from_outside),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
