// SPDX-License-Identifier: MIT
/* Poll sets: edges, wakes, nesting, timeouts. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <stdatomic.h>

#include "os/linux/backend.h"
#include "os/os_testing.h"

static struct os_poll *new_set(void)
{
    struct os_poll *set;

    assert_int_equal(os_poll_create(&set), 0);
    return set;
}

/* The events of the next report, which must come and be for that cookie. */
static unsigned next_event(struct os_poll *set, const void *cookie)
{
    uint64_t until = os_now_us() + TEST_LIMIT_US;
    struct os_event event = {0};
    int n;

    while ((n = os_poll_wait(set, &event, 1, 100000)) == 0 && os_now_us() < until)
        ;
    assert_int_equal(n, 1);
    assert_ptr_equal(event.cookie, cookie);
    return event.events;
}

static void assert_quiet(struct os_poll *set)
{
    struct os_event event;

    assert_int_equal(os_poll_wait(set, &event, 1, 0), 0);
}

static void edges(void **state)
{
    struct os_poll *set = new_set();
    char buf[16];
    int a, b;

    (void)state;
    test_pair("127.0.0.1", &a, &b);
    assert_int_equal(os_poll_add(set, b, &b), 0);
    assert_int_equal(os_poll_add(set, b, &b), -EEXIST);
    /* What is the case already counts as new. */
    assert_int_equal(next_event(set, &b), OS_WRITABLE);
    assert_quiet(set);
    assert_int_equal(test_send(a, "1", 1), 1);
    assert_true(next_event(set, &b) & OS_READABLE);
    assert_quiet(set); /* though it was not read */
    assert_int_equal(test_send(a, "2", 1), 1);
    assert_true(next_event(set, &b) & OS_READABLE);
    assert_int_equal(test_recv(b, buf, sizeof buf), 2);
    assert_quiet(set);
    assert_int_equal(os_tcp_shutdown_send(a), 0);
    assert_int_equal(next_event(set, &b) & (OS_READABLE | OS_PEER_DONE | OS_HANGUP),
                     OS_READABLE | OS_PEER_DONE);
    assert_int_equal(os_poll_del(set, b), 0);
    assert_int_equal(os_poll_del(set, b), -ENOENT);
    assert_int_equal(test_recv(b, buf, sizeof buf), 0);
    os_tcp_close(a);
    assert_quiet(set);
    os_tcp_close(b);
    os_poll_destroy(set);
}

/* Octets and FIN in one event: without OS_PEER_DONE a short count would hide the FIN. */
static void data_and_fin_together(void **state)
{
    struct os_poll *set = new_set();
    char buf[16];
    int a, b;

    (void)state;
    test_pair("127.0.0.1", &a, &b);
    assert_int_equal(test_send(a, "12", 2), 2);
    assert_int_equal(os_tcp_shutdown_send(a), 0);
    assert_true(TEST_WAIT(os_tcp_unacked(a) == 0));
    assert_int_equal(os_poll_add(set, b, &b), 0);
    assert_true(next_event(set, &b) & OS_PEER_DONE);
    assert_int_equal(os_tcp_recv(b, buf, sizeof buf), 2);
    assert_quiet(set);
    assert_int_equal(os_tcp_recv(b, buf, sizeof buf), 0);
    os_tcp_close(a);
    os_tcp_close(b);
    os_poll_destroy(set);
}

static void connect_ends(void **state)
{
    struct os_poll *set = new_set();
    struct os_addr at;
    int listener = test_listener("127.0.0.1", &at);
    int a = os_tcp_socket(OS_FAMILY_V4), b, rc;
    unsigned events;

    (void)state;
    assert_int_equal(os_poll_add(set, listener, &listener), 0);
    assert_quiet(set);
    rc = os_tcp_connect(a, &at);
    assert_true(rc == 0 || rc == -EINPROGRESS);
    assert_true(next_event(set, &listener) & OS_READABLE);
    assert_int_equal(os_poll_add(set, a, &a), 0);
    assert_int_equal(next_event(set, &a), OS_WRITABLE);
    assert_int_equal(os_tcp_connect_result(a), 0);
    b = test_accept(listener);
    os_tcp_close(a);
    os_tcp_close(b);
    os_tcp_close(listener);

    a = os_tcp_socket(OS_FAMILY_V4);
    rc = os_tcp_connect(a, &at);
    assert_int_equal(os_poll_add(set, a, &a), 0);
    events = next_event(set, &a);
    assert_int_equal(events & (OS_WRITABLE | OS_HANGUP), OS_WRITABLE | OS_HANGUP);
    if (rc == -EINPROGRESS)
        assert_int_equal(os_tcp_connect_result(a), -ECONNREFUSED);
    else
        assert_int_equal(rc, -ECONNREFUSED);
    os_tcp_close(a);
    os_poll_destroy(set);
}

#define MANY 40

/* More is ready than one wait takes: each is told of exactly once, a wake takes nobody's place. */
static void many_ready(void **state)
{
    struct os_poll *set = new_set();
    int a[MANY], b[MANY], times[MANY] = {0}, total = 0, n;
    struct os_event events[7];

    (void)state;
    for (int i = 0; i < MANY; i++) {
        test_pair("127.0.0.1", &a[i], &b[i]);
        assert_int_equal(os_poll_add(set, a[i], &times[i]), 0);
        if (i == MANY / 2)
            os_poll_wake(set);
    }
    for (int i = 0; i < 10 * MANY; i++) {
        n = os_poll_wait(set, events, i % 7 + 1, 0);
        assert_true(n >= 0 && n <= i % 7 + 1);
        for (int k = 0; k < n; k++, total++)
            ++*(int *)events[k].cookie;
    }
    assert_int_equal(total, MANY);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(times[i], 1);
        os_tcp_close(a[i]);
        os_tcp_close(b[i]);
    }
    assert_int_equal(os_poll_wait(set, events, 0, 0), -EINVAL);
    os_poll_destroy(set);
}

static void never_early(void **state)
{
    static const int64_t waits[] = {1, 250, 1500, 20300};
    struct os_poll *set = new_set();
    bool coarse = atomic_load(&os_poll_coarse);

    (void)state;
    for (int pass = 0; pass < 2; pass++) {
        atomic_store(&os_poll_coarse, pass == 1 || coarse);
        assert_int_equal(os_poll_grain_us(), pass == 1 || coarse ? 1000 : 1);
        for (size_t i = 0; i < sizeof waits / sizeof *waits; i++) {
            struct os_event event;
            uint64_t start = os_now_us();

            assert_int_equal(os_poll_wait(set, &event, 1, waits[i]), 0);
            assert_true(os_now_us() - start >= (uint64_t)waits[i]);
        }
    }
    atomic_store(&os_poll_coarse, coarse);
    os_poll_destroy(set);
}

static void wake_before_wait(void **state)
{
    struct os_poll *set = new_set();
    struct os_event event;
    uint64_t start;

    (void)state;
    for (int i = 0; i < 1000; i++)
        os_poll_wake(set);
    start = os_now_us();
    assert_int_equal(os_poll_wait(set, &event, 1, TEST_LIMIT_US + 2000000), 0);
    assert_true(os_now_us() - start < TEST_LIMIT_US);
    /* All of them were one wake. */
    start = os_now_us();
    assert_int_equal(os_poll_wait(set, &event, 1, 5000), 0);
    assert_true(os_now_us() - start >= 5000);
    os_poll_destroy(set);
}

struct sleeper {
    struct os_poll *set;
    atomic_uint returned;
    atomic_bool stop;
};

static void sleeper_main(void *arg)
{
    struct sleeper *s = arg;

    while (!atomic_load(&s->stop)) {
        struct os_event event;

        os_poll_wait(s->set, &event, 1, -1);
        atomic_fetch_add(&s->returned, 1);
    }
}

/* Every wake makes a wait return, wherever the sleeper is at that moment. */
static void no_wake_is_lost(void **state)
{
    struct sleeper s = {.set = new_set()};
    uint32_t seed = test_seed();
    struct os_thread *thread;

    (void)state;
    assert_int_equal(os_thread_start(&thread, "sleeper", sleeper_main, &s), 0);
    for (unsigned round = 0; round < 10000; round++) {
        unsigned before = atomic_load(&s.returned);
        uint64_t until = os_now_us() + TEST_LIMIT_US;

        for (uint32_t spin = test_random(&seed) % 2000; spin > 0; spin--)
            os_cpu_relax();
        os_poll_wake(s.set);
        while (atomic_load(&s.returned) == before && os_now_us() < until)
            os_cpu_relax();
        if (atomic_load(&s.returned) == before)
            fail_msg("round %u: the wake was lost", round);
    }
    atomic_store(&s.stop, true);
    os_poll_wake(s.set);
    os_thread_join(thread);
    os_poll_destroy(s.set);
}

static void nested(void **state)
{
    struct os_poll *outer = new_set(), *inner = new_set();
    struct os_event event;
    char buf[8];
    int a, b;

    (void)state;
    test_pair("127.0.0.1", &a, &b);
    assert_int_equal(os_poll_add_set(outer, inner, inner), 0);
    assert_quiet(outer);
    assert_int_equal(os_poll_add(inner, b, &b), 0);
    /* Level-triggered: told of until the inner set was drained. */
    assert_int_equal(next_event(outer, inner), OS_READABLE);
    assert_int_equal(next_event(outer, inner), OS_READABLE);
    assert_int_equal(next_event(inner, &b), OS_WRITABLE);
    assert_quiet(outer);
    assert_int_equal(test_send(a, "1", 1), 1);
    assert_int_equal(next_event(outer, inner), OS_READABLE);
    assert_true(next_event(inner, &b) & OS_READABLE);
    assert_int_equal(test_recv(b, buf, sizeof buf), 1);
    assert_quiet(outer);
    /* Taken out and put back: nothing is missed meanwhile. */
    assert_int_equal(os_poll_del_set(outer, inner), 0);
    assert_int_equal(test_send(a, "2", 1), 1);
    assert_int_equal(test_recv(b, buf, 0), 0);
    assert_true(TEST_WAIT(os_tcp_unacked(a) == 0));
    assert_quiet(outer);
    assert_int_equal(os_poll_add_set(outer, inner, inner), 0);
    assert_int_equal(next_event(outer, inner), OS_READABLE);
    assert_true(next_event(inner, &b) & OS_READABLE);
    assert_int_equal(test_recv(b, buf, sizeof buf), 1);
    /* A wake of the inner set is seen from outside, and consumed inside. */
    os_poll_wake(inner);
    assert_int_equal(next_event(outer, inner), OS_READABLE);
    assert_int_equal(os_poll_wait(inner, &event, 1, 0), 0);
    assert_quiet(outer);
    os_tcp_close(a);
    os_tcp_close(b);
    os_poll_destroy(inner);
    assert_quiet(outer);
    os_poll_destroy(outer);
}

static void bad_descriptors(void **state)
{
    struct os_poll *set = new_set();

    (void)state;
    assert_int_equal(os_poll_add(set, -1, NULL), -EBADF);
    assert_int_equal(os_poll_del(set, -1), -EBADF);
    assert_int_equal(os_poll_del(set, 100000), -EBADF);
    os_poll_destroy(set);
    os_poll_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(edges),           cmocka_unit_test(data_and_fin_together),
        cmocka_unit_test(connect_ends),    cmocka_unit_test(many_ready),
        cmocka_unit_test(never_early),     cmocka_unit_test(wake_before_wait),
        cmocka_unit_test(no_wake_is_lost), cmocka_unit_test(nested),
        cmocka_unit_test(bad_descriptors),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
