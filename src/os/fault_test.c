// SPDX-License-Identifier: MIT
/* Fault hooks: from the environment, and by call; each operation; the edge after a fault. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include "os/os_testing.h"

/* main() set: socket:2:EMFILE,bind:1:98,listen:1:EACCES:repeat and entries that are wrong. */
static void environment(void **state)
{
    struct os_addr a = test_addr("127.0.0.1");
    int fd = os_tcp_socket(OS_FAMILY_V4);

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(os_tcp_socket(OS_FAMILY_V4), -EMFILE);
    assert_int_equal(os_tcp_bind(fd, &a), -98);
    assert_int_equal(os_tcp_bind(fd, &a), 0);
    assert_int_equal(os_tcp_listen(fd, 1), -EACCES);
    assert_int_equal(os_tcp_listen(fd, 1), -EACCES);
    os_fault_clear();
    assert_int_equal(os_tcp_listen(fd, 1), 0);
    os_tcp_close(fd);
}

static void arguments(void **state)
{
    (void)state;
    assert_int_equal(os_fault_set("nothing", 1, EIO, false), -EINVAL);
    assert_int_equal(os_fault_set("", 1, EIO, false), -EINVAL);
    assert_int_equal(os_fault_set("send", 0, EIO, false), -EINVAL);
    assert_int_equal(os_fault_set("send", 1, 0, false), -EINVAL);
    assert_int_equal(os_fault_set("send", 1, -EIO, false), -EINVAL);
    assert_int_equal(os_fault_set("recv", 1, OS_FAULT_SHORT, false), -EINVAL);
    for (int i = 0; i < 32; i++)
        assert_int_equal(os_fault_set("send", 1, EIO, false), 0);
    assert_int_equal(os_fault_set("send", 1, EIO, false), -ENOSPC);
    os_fault_clear();
}

static void nothing(void *arg)
{
    (void)arg;
}

static int try_thread(void)
{
    struct os_thread *t;
    int rc = os_thread_start(&t, "nothing", nothing, NULL);

    if (rc == 0)
        os_thread_join(t);
    return rc;
}

static struct {
    struct os_addr at;
    int listener, a, b;
    struct os_poll *set;
} world;

/* The result of one call of that operation, made so that it works without a fault. */
static int call(const char *op)
{
    static const struct os_addr none = {.family = OS_FAMILY_V4, .ip = {127, 0, 0, 1}};
    char octet;
    int fd, rc;

    if (strcmp(op, "thread") == 0)
        return try_thread();
    if (strcmp(op, "send") == 0)
        return test_send(world.a, "x", 1) == 1 ? 0 : (int)test_send(world.a, "x", 1);
    if (strcmp(op, "recv") == 0) {
        rc = (int)os_tcp_recv(world.b, &octet, 1);
        return rc >= 0 || rc == -EAGAIN ? 0 : rc;
    }
    if (strcmp(op, "accept") == 0) {
        rc = os_tcp_accept(world.listener, NULL);
        return rc == -EAGAIN ? 0 : rc;
    }
    if (strcmp(op, "shutdown") == 0)
        return os_tcp_shutdown_send(world.a);
    fd = os_tcp_socket(OS_FAMILY_V4);
    if (fd < 0)
        return fd;
    rc = 0;
    if (strcmp(op, "bind") == 0)
        rc = os_tcp_bind(fd, &none);
    if (strcmp(op, "listen") == 0)
        rc = os_tcp_listen(fd, 1);
    if (strcmp(op, "connect") == 0)
        rc = os_tcp_connect(fd, &world.at);
    if (strcmp(op, "connect_result") == 0)
        rc = os_tcp_connect_result(fd);
    if (strcmp(op, "poll_add") == 0)
        rc = os_poll_add(world.set, fd, NULL);
    os_tcp_close(fd);
    return rc == -EINPROGRESS ? 0 : rc;
}

static void open_world(void)
{
    memset(&world, 0, sizeof world);
    world.listener = test_listener("127.0.0.1", &world.at);
    test_pair("127.0.0.1", &world.a, &world.b);
    assert_int_equal(os_poll_create(&world.set), 0);
}

static void close_world(void)
{
    os_fault_clear();
    os_tcp_close(world.listener);
    os_tcp_close(world.a);
    os_tcp_close(world.b);
    os_poll_destroy(world.set);
}

static void each_operation(void **state)
{
    static const char *const ops[] = {"socket", "bind",     "listen", "connect",  "accept",
                                      "recv",   "poll_add", "thread", "shutdown", "connect_result"};

    (void)state;
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) {
        open_world();
        if (call(ops[i]) < 0)
            fail_msg("%s does not work by itself", ops[i]);
        /* the third from here, once; another operation's calls do not count */
        assert_int_equal(os_fault_set(ops[i], 3, EIO, false), 0);
        assert_int_equal(test_send(world.b, "x", 1), 1);
        for (int k = 1; k <= 5; k++)
            if (call(ops[i]) != (k == 3 ? -EIO : 0) && strcmp(ops[i], "accept") != 0)
                fail_msg("%s: call %d", ops[i], k);
        os_fault_clear();
        /* all from the second on */
        assert_int_equal(os_fault_set(ops[i], 2, ENOBUFS, true), 0);
        for (int k = 1; k <= 5; k++)
            if (call(ops[i]) != (k >= 2 ? -ENOBUFS : 0) && strcmp(ops[i], "accept") != 0)
                fail_msg("%s: repeated, call %d", ops[i], k);
        os_fault_clear();
        assert_true(call(ops[i]) >= 0);
        close_world();
    }
}

static void sends(void **state)
{
    char first[] = "abc", second[] = "def", buf[16];
    struct os_iov iov[3] = {{first, 0}, {first, 3}, {second, 3}};

    (void)state;
    open_world();
    assert_int_equal(os_fault_set("send", 1, ENOBUFS, false), 0);
    assert_int_equal(os_fault_set("send", 3, OS_FAULT_SHORT, false), 0);
    assert_int_equal(os_tcp_send(world.a, iov, 3), -ENOBUFS);
    assert_int_equal(os_tcp_send(world.a, iov, 3), 6);
    assert_int_equal(os_tcp_send(world.a, iov, 3), 1);
    assert_int_equal(os_tcp_send(world.a, iov, 3), 6);
    assert_true(TEST_WAIT(os_tcp_unacked(world.a) == 0));
    assert_int_equal(test_recv(world.b, buf, sizeof buf), 13);
    assert_memory_equal(buf, "abcdefaabcdef", 13);
    close_world();
}

static unsigned collect(struct os_poll *set, const void *cookie)
{
    struct os_event event = {0};
    uint64_t until = os_now_us() + TEST_LIMIT_US;
    int n;

    while ((n = os_poll_wait(set, &event, 1, 100000)) == 0 && os_now_us() < until)
        ;
    assert_int_equal(n, 1);
    assert_ptr_equal(event.cookie, cookie);
    return event.events;
}

/* Who stops at a short count or -EAGAIN waits for an edge: an injected one has it too. */
static void edge_after_fault(void **state)
{
    struct os_event event;
    char buf[16];

    (void)state;
    open_world();
    assert_int_equal(os_poll_add(world.set, world.a, &world.a), 0);
    assert_int_equal(collect(world.set, &world.a), OS_WRITABLE);
    assert_int_equal(os_poll_wait(world.set, &event, 1, 0), 0);
    assert_int_equal(os_fault_set("send", 1, OS_FAULT_SHORT, false), 0);
    assert_int_equal(os_fault_set("send", 2, EAGAIN, false), 0);
    assert_int_equal(test_send(world.a, "abc", 3), 1);
    assert_true(collect(world.set, &world.a) & OS_WRITABLE);
    assert_int_equal(os_poll_wait(world.set, &event, 1, 0), 0);
    assert_int_equal(test_send(world.a, "bc", 2), -EAGAIN);
    assert_true(collect(world.set, &world.a) & OS_WRITABLE);
    assert_int_equal(test_send(world.a, "bc", 2), 2);

    assert_int_equal(test_send(world.b, "y", 1), 1);
    assert_true(collect(world.set, &world.a) & OS_READABLE);
    assert_int_equal(os_fault_set("recv", 1, EAGAIN, false), 0);
    assert_int_equal(os_tcp_recv(world.a, buf, sizeof buf), -EAGAIN);
    assert_true(collect(world.set, &world.a) & OS_READABLE);
    assert_int_equal(os_tcp_recv(world.a, buf, sizeof buf), 1);
    /* A descriptor that stands in no set, or no longer, does no harm. */
    assert_int_equal(os_poll_del(world.set, world.a), 0);
    assert_int_equal(os_fault_set("recv", 1, EAGAIN, true), 0);
    assert_int_equal(os_tcp_recv(world.a, buf, sizeof buf), -EAGAIN);
    assert_int_equal(os_tcp_recv(world.b, buf, sizeof buf), -EAGAIN);
    assert_int_equal(os_poll_wait(world.set, &event, 1, 0), 0);
    close_world();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(environment),      cmocka_unit_test(arguments),
        cmocka_unit_test(each_operation),   cmocka_unit_test(sends),
        cmocka_unit_test(edge_after_fault),
    };

    /* Read with the first call; the wrong entries would only say so in the log. */
    setenv("SOFTNDK_LOG", "none", 1);
    setenv("SOFTNDK_OS_FAIL",
           "socket:2:EMFILE,bind:1:98,,listen:1:EACCES:repeat,nonsense,send:0:EIO,recv:1:EWHAT,"
           "connect:1:EIO:often,accept:1:EIO:repeat:more,poll_add:1:,thread:x:EIO,recv:1:SHORT",
           1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
