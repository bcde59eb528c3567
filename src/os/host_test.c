// SPDX-License-Identifier: MIT
/* Clock, threads, condition variables, randomness, interfaces. */
#define _GNU_SOURCE 1 /* thread names */

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <signal.h>
#include <stdatomic.h>

#include "os/os_testing.h"

static void clock_runs(void **state)
{
    uint64_t start = os_now_us(), last = start;

    (void)state;
    for (int i = 0; i < 1000; i++) {
        uint64_t now = os_now_us();

        assert_true(now >= last);
        last = now;
    }
    os_sleep_us(3000);
    assert_true(os_now_us() - start >= 3000);
    os_sleep_us(0);
}

static void randomness(void **state)
{
    uint8_t a[4096], b[4096];
    unsigned seen[256] = {0}, kinds = 0;

    (void)state;
    memset(a, 0, sizeof a);
    os_random(a, sizeof a);
    os_random(b, sizeof b);
    os_random(b, 0);
    assert_memory_not_equal(a, b, sizeof a);
    for (size_t i = 0; i < sizeof a; i++)
        kinds += seen[a[i]]++ == 0;
    assert_true(kinds > 200);
}

struct meeting {
    os_mutex lock;
    os_cond changed;
    int step;
    char name[32];
    bool own_open, others_blocked;
};

static void visitor(void *arg)
{
    struct meeting *m = arg;
    sigset_t mask;

    os_mutex_lock(&m->lock);
    pthread_getname_np(pthread_self(), m->name, sizeof m->name);
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    m->own_open = !sigismember(&mask, SIGSEGV) && !sigismember(&mask, SIGBUS);
    m->others_blocked = sigismember(&mask, SIGINT) && sigismember(&mask, SIGTERM) &&
                        sigismember(&mask, SIGALRM) && sigismember(&mask, SIGUSR1);
    m->step = 1;
    os_cond_broadcast(&m->changed);
    while (m->step != 2)
        os_cond_wait(&m->changed, &m->lock);
    m->step = 3;
    os_cond_broadcast(&m->changed);
    os_mutex_unlock(&m->lock);
}

static void threads(void **state)
{
    struct meeting m = {.step = 0};
    struct os_thread *t;
    sigset_t mask;

    (void)state;
    os_mutex_init(&m.lock);
    os_cond_init(&m.changed);
    assert_int_equal(os_thread_start(&t, "a-name-that-is-too-long", visitor, &m), 0);
    os_mutex_lock(&m.lock);
    while (m.step < 1)
        assert_true(os_cond_wait_until(&m.changed, &m.lock, os_now_us() + TEST_LIMIT_US));
    m.step = 2;
    os_cond_broadcast(&m.changed);
    while (m.step < 3)
        assert_true(os_cond_wait_until(&m.changed, &m.lock, os_now_us() + TEST_LIMIT_US));
    os_mutex_unlock(&m.lock);
    os_thread_join(t);
    assert_string_equal(m.name, "a-name-that-is-");
    assert_true(m.own_open);
    assert_true(m.others_blocked);
    /* The starter's own mask is as it was. */
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    assert_false(sigismember(&mask, SIGUSR1));
    os_cond_destroy(&m.changed);
    os_mutex_destroy(&m.lock);
}

static void timed_wait(void **state)
{
    os_mutex lock = OS_MUTEX_INITIALIZER;
    os_cond never;
    uint64_t start, until;

    (void)state;
    os_cond_init(&never);
    os_mutex_lock(&lock);
    start = os_now_us();
    until = start + 30000;
    while (os_cond_wait_until(&never, &lock, until))
        ;
    assert_true(os_now_us() >= until);
    assert_false(os_cond_wait_until(&never, &lock, start)); /* past */
    os_mutex_unlock(&lock);
    os_cond_destroy(&never);
}

static void counts(void **state)
{
    (void)state;
    assert_true(os_cpu_count() >= 1);
    assert_int_not_equal(os_pid(), 0);
    os_cpu_relax();
}

static void interfaces(void **state)
{
    static struct os_interface list[256], one;
    struct os_addr want = test_addr("127.0.0.1");
    int n = os_interfaces(list, 256), loop = -1;
    bool found = false;

    (void)state;
    assert_true(n >= 1);
    for (int i = 0; i < n && i < 256; i++) {
        assert_int_not_equal(list[i].index, 0);
        assert_int_equal(list[i].host_index, list[i].index);
        assert_true(i == 0 || list[i].index > list[i - 1].index);
        assert_true(list[i].name[0] != '\0' && !strchr(list[i].name, ':'));
        assert_true(list[i].mtu > 0);
        if (list[i].loopback && list[i].up)
            loop = i;
    }
    assert_true(loop >= 0);
    for (unsigned i = 0; i < list[loop].addr_count; i++)
        found |= os_addr_equal(&list[loop].addr[i], &want);
    assert_true(found);
    /* A short list holds the first; the number is that of all. */
    assert_int_equal(os_interfaces(NULL, 0), n);
    assert_int_equal(os_interfaces(&one, 1), n);
    assert_string_equal(one.name, list[0].name);
}

static void routes(void **state)
{
    struct os_addr dest = test_addr("127.0.0.1:9999"), source, none = {0};

    (void)state;
    assert_int_equal(os_route_source(&dest, &source), 0);
    dest.port = 0;
    assert_true(os_addr_equal(&source, &dest));
    assert_int_equal(os_route_source(&dest, &source), 0);
    assert_true(os_addr_equal(&source, &dest));
    assert_int_equal(os_route_source(&none, &source), -EAFNOSUPPORT);
    dest = test_addr("::1");
    if (os_route_source(&dest, &source) < 0)
        print_message("partly skipped: this host has no ::1\n");
    else
        assert_true(os_addr_equal(&source, &dest));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(clock_runs), cmocka_unit_test(randomness), cmocka_unit_test(threads),
        cmocka_unit_test(timed_wait), cmocka_unit_test(counts),     cmocka_unit_test(interfaces),
        cmocka_unit_test(routes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
