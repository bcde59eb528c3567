// SPDX-License-Identifier: MIT
/* TCP over the loopback: what the floors above rely on, held against this kernel. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <fcntl.h>
#include <netinet/tcp.h>

#include "os/linux/backend.h"
#include "os/os_testing.h"

static bool have_v6(void)
{
    struct os_addr a = test_addr("::1");
    int fd = os_tcp_socket(OS_FAMILY_V6);
    bool have = fd >= 0 && os_tcp_bind(fd, &a) == 0;

    if (fd >= 0)
        os_tcp_close(fd);
    return have;
}

static int option(int fd, int level, int name)
{
    int value = -1;
    socklen_t len = sizeof value;

    assert_int_equal(getsockopt(fd, level, name, &value, &len), 0);
    return value;
}

static void check_socket_options(int fd)
{
    assert_int_not_equal(option(fd, IPPROTO_TCP, TCP_NODELAY), 0);
    assert_int_not_equal(option(fd, SOL_SOCKET, SO_REUSEADDR), 0);
    assert_int_not_equal(fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
    assert_int_not_equal(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
}

static void exchange(const char *text)
{
    struct os_addr at, peer, local;
    int listener = test_listener(text, &at);
    int a = os_tcp_socket(at.family), b = -EAGAIN, rc;
    char one[] = "one", two[] = "two";
    struct os_iov iov[3] = {{one, 3}, {one, 0}, {two, 3}};
    char buf[16];

    assert_int_equal(os_tcp_accept(listener, &peer), -EAGAIN);
    rc = os_tcp_connect(a, &at);
    assert_true(rc == 0 || rc == -EINPROGRESS);
    assert_true(TEST_WAIT((b = os_tcp_accept(listener, &peer)) != -EAGAIN));
    assert_true(b >= 0);
    assert_int_equal(os_tcp_local(a, &local), 0);
    assert_true(os_addr_equal(&peer, &local));
    assert_int_equal(os_tcp_peer(b, &peer), 0);
    assert_true(os_addr_equal(&peer, &local));
    assert_int_equal(os_tcp_peer(a, &peer), 0);
    assert_true(os_addr_equal(&peer, &at));
    assert_int_equal(os_tcp_connect_result(a), 0);
    check_socket_options(listener);
    check_socket_options(a);
    check_socket_options(b);

    assert_int_equal(os_tcp_recv(b, buf, sizeof buf), -EAGAIN);
    assert_int_equal(os_tcp_send(a, iov, 3), 6);
    assert_true(TEST_WAIT(os_tcp_unacked(a) == 0));
    assert_int_equal(test_recv(b, buf, sizeof buf), 6);
    assert_memory_equal(buf, "onetwo", 6);
    assert_int_equal(os_tcp_send(b, iov, 1), 3);
    assert_int_equal(test_recv(a, buf, 2), 2);
    assert_int_equal(test_recv(a, buf, sizeof buf), 1);
    assert_int_equal(buf[0], 'e');
    assert_int_equal(os_tcp_send(a, iov, 0), -EINVAL);
    assert_int_equal(os_tcp_send(a, iov, OS_IOV_MAX + 1), -EINVAL);
    os_tcp_close(a);
    assert_int_equal(test_recv(b, buf, sizeof buf), 0);
    os_tcp_close(b);
    os_tcp_close(listener);
}

static void exchange_v4(void **state)
{
    (void)state;
    exchange("127.0.0.1");
}

static void exchange_v6(void **state)
{
    (void)state;
    if (!have_v6()) {
        print_message("skipped: this host has no ::1\n");
        skip();
    }
    exchange("::1");
}

static void v6_socket_is_v6_only(void **state)
{
    struct os_addr at, v4;
    int listener, fd, rc;

    (void)state;
    if (!have_v6()) {
        print_message("skipped: this host has no ::1\n");
        skip();
    }
    listener = test_listener("::", &at);
    v4 = test_addr("127.0.0.1");
    v4.port = at.port;
    fd = os_tcp_socket(OS_FAMILY_V4);
    rc = os_tcp_connect(fd, &v4);
    if (rc == -EINPROGRESS)
        assert_true(TEST_WAIT((rc = os_tcp_connect_result(fd)) != 0));
    assert_int_equal(rc, -ECONNREFUSED);
    os_tcp_close(fd);
    os_tcp_close(listener);
}

static void bad_families(void **state)
{
    struct os_addr none = {0};
    int fd = os_tcp_socket(OS_FAMILY_V4);

    (void)state;
    assert_int_equal(os_tcp_socket(OS_FAMILY_NONE), -EAFNOSUPPORT);
    assert_int_equal(os_tcp_bind(fd, &none), -EAFNOSUPPORT);
    assert_int_equal(os_tcp_connect(fd, &none), -EAFNOSUPPORT);
    os_tcp_close(fd);
}

/* Waits until one of the wanted events came for the one descriptor of the set. */
static unsigned wait_event(struct os_poll *set, unsigned wanted)
{
    uint64_t until = os_now_us() + TEST_LIMIT_US;
    unsigned seen = 0;

    while ((seen & wanted) == 0 && os_now_us() < until) {
        struct os_event event;
        int n = os_poll_wait(set, &event, 1, 100000);

        assert_true(n >= 0);
        if (n == 1)
            seen |= event.events;
    }
    assert_int_not_equal(seen & wanted, 0);
    return seen;
}

static void full_then_writable(void **state)
{
    static char block[65536];
    struct os_poll *set;
    struct os_event event;
    size_t sent = 0, got = 0, more = 0;
    int a, b, kicks = 0;
    ssize_t n;

    (void)state;
    for (size_t i = 0; i < sizeof block; i++)
        block[i] = (char)(i * 7 + i / 256);
    test_pair("127.0.0.1", &a, &b);
    assert_int_equal(os_tcp_set_buffers(a, 131072, 0), 0);
    assert_int_equal(os_tcp_set_buffers(b, 0, 262144), 0);
    assert_int_equal(os_poll_create(&set), 0);
    assert_int_equal(os_poll_add(set, a, &a), 0);
    wait_event(set, OS_WRITABLE);
    while ((n = test_send(a, block + sent % sizeof block, sizeof block - sent % sizeof block)) > 0)
        sent += (size_t)n;
    assert_int_equal(n, -EAGAIN);
    assert_true(sent > 0);
    assert_true(os_tcp_unacked(a) > 0);
    /* Nobody reads: it stays full. Edges that were on their way are told once. */
    while ((n = os_poll_wait(set, &event, 1, 20000)) > 0 && kicks < 100) {
        while ((n = test_send(a, block + sent % sizeof block, 1)) > 0)
            sent += (size_t)n;
        kicks++;
    }
    assert_true(kicks < 100);
    while (more == 0) {
        char buf[65536];

        n = os_tcp_recv(b, buf, sizeof buf);
        assert_true(n > 0 || n == -EAGAIN);
        for (ssize_t i = 0; i < n; i++, got++)
            if (buf[i] != block[got % sizeof block])
                fail_msg("octet %zu differs", got);
        if (n == -EAGAIN) {
            wait_event(set, OS_WRITABLE);
            n = test_send(a, block + sent % sizeof block, 1);
            if (n > 0)
                more += (size_t)n;
        }
    }
    sent += more;
    while (got < sent) {
        char buf[65536];

        n = test_recv(b, buf, sizeof buf);
        assert_true(n > 0);
        got += (size_t)n;
    }
    assert_int_equal(got, sent);
    assert_true(TEST_WAIT(os_tcp_unacked(a) == 0));
    os_poll_destroy(set);
    os_tcp_close(a);
    os_tcp_close(b);
}

static void unacked_counts(void **state)
{
    static char block[1 << 20];
    int a, b, left, before;
    ssize_t n, sent = 0;

    (void)state;
    test_pair("127.0.0.1", &a, &b);
    assert_int_equal(os_tcp_unacked(a), 0);
    /* Not too small: a window below the loopback's segment size opens by timers only. */
    assert_int_equal(os_tcp_set_buffers(a, 131072, 0), 0);
    assert_int_equal(os_tcp_set_buffers(b, 0, 262144), 0);
    while ((n = test_send(a, block, sizeof block)) > 0)
        sent += n;
    left = os_tcp_unacked(a);
    assert_true(left > 0 && left <= sent);
    before = left;
    while (sent > 0) {
        n = test_recv(b, block, sizeof block);
        assert_true(n > 0);
        sent -= n;
        left = os_tcp_unacked(a);
        assert_true(left >= 0 && left <= before);
        before = left;
    }
    assert_true(TEST_WAIT(os_tcp_unacked(a) == 0));
    os_tcp_close(a);
    os_tcp_close(b);
}

static void fin(void **state)
{
    char buf[8];
    int a, b;

    (void)state;
    test_pair("127.0.0.1", &a, &b);
    assert_int_equal(test_send(a, "last", 4), 4);
    assert_int_equal(os_tcp_shutdown_send(a), 0);
    assert_int_equal(test_recv(b, buf, sizeof buf), 4);
    assert_int_equal(test_recv(b, buf, sizeof buf), 0);
    assert_int_equal(test_recv(b, buf, sizeof buf), 0);
    /* The other direction lives on. */
    assert_int_equal(test_send(b, "more", 4), 4);
    assert_int_equal(test_recv(a, buf, sizeof buf), 4);
    assert_int_equal(test_send(a, "x", 1), -EPIPE);
    assert_true(TEST_WAIT(os_tcp_unacked(a) == 0));
    os_tcp_close(b);
    assert_int_equal(test_recv(a, buf, sizeof buf), 0);
    os_tcp_close(a);
}

static void reset_after_data(void **state)
{
    struct os_poll *set;
    char buf[8];
    int a, b;

    (void)state;
    test_pair("127.0.0.1", &a, &b);
    assert_int_equal(os_poll_create(&set), 0);
    assert_int_equal(os_poll_add(set, b, &b), 0);
    assert_int_equal(test_send(a, "last", 4), 4);
    assert_true(TEST_WAIT(os_tcp_unacked(a) == 0));
    os_tcp_abort(a);
    assert_true(wait_event(set, OS_HANGUP) & OS_READABLE);
    assert_int_equal(os_tcp_recv(b, buf, sizeof buf), 4);
    assert_memory_equal(buf, "last", 4);
    assert_int_equal(os_tcp_recv(b, buf, sizeof buf), -ECONNRESET);
    assert_int_equal(os_tcp_recv(b, buf, sizeof buf), 0);
    os_poll_destroy(set);
    os_tcp_close(b);
}

/* The error is told once: a send that hears of it leaves recv the octets and then 0. */
static void reset_told_to_send(void **state)
{
    struct os_poll *set;
    char buf[8];
    int a, b;

    (void)state;
    test_pair("127.0.0.1", &a, &b);
    assert_int_equal(os_poll_create(&set), 0);
    assert_int_equal(os_poll_add(set, b, &b), 0);
    assert_int_equal(test_send(a, "last", 4), 4);
    assert_true(TEST_WAIT(os_tcp_unacked(a) == 0));
    os_tcp_abort(a);
    wait_event(set, OS_HANGUP);
    assert_int_equal(test_send(b, "x", 1), -ECONNRESET);
    assert_int_equal(test_send(b, "x", 1), -EPIPE);
    assert_int_equal(os_tcp_recv(b, buf, sizeof buf), 4);
    assert_int_equal(os_tcp_recv(b, buf, sizeof buf), 0);
    os_poll_destroy(set);
    os_tcp_close(b);
}

/* Peeking takes no octets; but an error that it tells is told. */
static void peeking(void **state)
{
    struct os_poll *set;
    char buf[8];
    int a, b;

    (void)state;
    test_pair("127.0.0.1", &a, &b);
    assert_int_equal(os_poll_create(&set), 0);
    assert_int_equal(os_poll_add(set, b, &b), 0);
    assert_int_equal(os_tcp_peek(b), -EAGAIN);
    assert_int_equal(test_send(a, "last", 4), 4);
    assert_true(TEST_WAIT(os_tcp_peek(b) == 1));
    assert_int_equal(os_tcp_peek(b), 1);
    assert_true(TEST_WAIT(os_tcp_unacked(a) == 0));
    os_tcp_abort(a);
    wait_event(set, OS_HANGUP);
    assert_int_equal(os_tcp_peek(b), 1);
    assert_int_equal(test_recv(b, buf, sizeof buf), 4);
    assert_int_equal(os_tcp_peek(b), -ECONNRESET);
    assert_int_equal(os_tcp_peek(b), 0);
    assert_int_equal(os_tcp_recv(b, buf, sizeof buf), 0);
    os_poll_destroy(set);
    os_tcp_close(b);
}

static void connect_refused(void **state)
{
    struct os_addr at;
    int fd, rc;

    (void)state;
    os_tcp_close(test_listener("127.0.0.1", &at));
    fd = os_tcp_socket(OS_FAMILY_V4);
    rc = os_tcp_connect(fd, &at);
    if (rc == -EINPROGRESS)
        assert_true(TEST_WAIT((rc = os_tcp_connect_result(fd)) != 0));
    assert_int_equal(rc, -ECONNREFUSED);
    os_tcp_close(fd);
}

static int try_connect(const struct os_addr *at)
{
    int fd = os_tcp_socket(at->family), rc;
    struct os_addr peer;

    assert_true(fd >= 0);
    rc = os_tcp_connect(fd, at);
    if (rc == -EINPROGRESS) {
        assert_true(
            TEST_WAIT((rc = os_tcp_connect_result(fd)) != 0 || os_tcp_peer(fd, &peer) == 0));
    }
    os_tcp_close(fd);
    return rc;
}

/* A listener on a port that is bound by number: one that was free a moment ago. */
static int numbered_listener(struct os_addr *at)
{
    for (int i = 0; i < 50; i++) {
        int fd;

        os_tcp_close(test_listener("127.0.0.1", at));
        fd = os_tcp_socket(OS_FAMILY_V4);
        assert_true(fd >= 0);
        if (os_tcp_bind(fd, at) == 0 && os_tcp_listen(fd, 16) == 0)
            return fd;
        os_tcp_close(fd);
    }
    fail_msg("no port stays free");
    return -1;
}

static void pause_and_resume(void **state)
{
    struct os_addr at, local;
    int listener;

    (void)state;
    listener = numbered_listener(&at);
    assert_int_equal(try_connect(&at), 0);
    for (int round = 0; round < 3; round++) {
        assert_int_equal(os_tcp_shutdown_recv(listener), 0);
        assert_int_equal(try_connect(&at), -ECONNREFUSED);
        assert_int_equal(os_tcp_accept(listener, NULL), -EINVAL);
        assert_int_equal(os_tcp_local(listener, &local), 0);
        assert_true(os_addr_equal(&local, &at));
        assert_int_equal(os_tcp_listen(listener, 16), 0);
        assert_int_equal(try_connect(&at), 0);
        os_tcp_close(test_accept(listener));
    }
    os_tcp_close(listener);
}

/* A bound socket of the kind that connections use; the descriptor or -errno. */
static int bound(const struct os_addr *at, bool share)
{
    int fd = os_tcp_socket((enum os_family)at->family);
    int rc = share ? os_tcp_share(fd) : 0;

    if (rc == 0)
        rc = os_tcp_bind(fd, at);
    if (rc < 0) {
        os_tcp_close(fd);
        return rc;
    }
    return fd;
}

/* A connection from a held address; its two descriptors. */
static void connect_from(const struct os_addr *from, int listener, const struct os_addr *to, int *a,
                         int *b)
{
    struct os_addr peer;
    int rc;

    *a = bound(from, true);
    assert_true(*a >= 0);
    rc = os_tcp_connect(*a, to);
    assert_true(rc == 0 || rc == -EINPROGRESS);
    assert_true(TEST_WAIT((*b = os_tcp_accept(listener, &peer)) != -EAGAIN));
    assert_true(*b >= 0);
    assert_true(os_addr_equal(&peer, from));
}

/* Two destinations from one port; the same one twice is refused by the kernel; nobody but sockets
 * that share has the address, until all are closed. */
static void held_address(const char *text)
{
    struct os_addr first, second, at = test_addr(text);
    int l1 = test_listener(text, &first), l2 = test_listener(text, &second);
    int holder, a1, a2, b1, b2, fd;

    holder = bound(&at, false);
    assert_true(holder >= 0);
    assert_int_equal(os_tcp_local(holder, &at), 0);
    assert_int_equal(os_tcp_hold(holder), 0);
    assert_int_equal(bound(&at, false), -EADDRINUSE); /* to listen, to connect, to hold */
    connect_from(&at, l1, &first, &a1, &b1);
    connect_from(&at, l2, &second, &a2, &b2);
    fd = bound(&at, true);
    assert_true(fd >= 0);
    assert_int_equal(os_tcp_connect(fd, &first), -EADDRNOTAVAIL);
    os_tcp_close(fd);
    assert_int_equal(bound(&at, false), -EADDRINUSE);
    /* An orderly end leaves a wait state, which is in nobody's way. */
    os_tcp_close(a1);
    os_tcp_close(b1);
    connect_from(&at, l1, &first, &a1, &b1);
    os_tcp_close(holder);
    os_tcp_close(a1);
    os_tcp_close(a2);
    os_tcp_close(b1);
    os_tcp_close(b2);
    os_tcp_close(l1);
    os_tcp_close(l2);
}

static void holding_v4(void **state)
{
    (void)state;
    held_address("127.0.0.1");
}

static void holding_v6(void **state)
{
    (void)state;
    if (!have_v6()) {
        print_message("skipped: ::1 is not there\n");
        skip();
    }
    held_address("::1");
}

/* The port is free when the last of them is closed, wait states aside; and can be held again. */
static void held_until_the_last(void **state)
{
    struct os_addr to, at = test_addr("127.0.0.1");
    int listener = test_listener("127.0.0.1", &to);
    int holder = bound(&at, false), a, b, fd;

    (void)state;
    assert_int_equal(os_tcp_local(holder, &at), 0);
    assert_int_equal(os_tcp_hold(holder), 0);
    connect_from(&at, listener, &to, &a, &b);
    os_tcp_close(holder);
    os_tcp_close(a); /* first: the wait state is this port's */
    os_tcp_close(b);
    fd = bound(&at, false);
    assert_true(fd >= 0);
    assert_int_equal(os_tcp_hold(fd), 0);
    connect_from(&at, listener, &to, &a, &b);
    os_tcp_abort(a);
    os_tcp_abort(b);
    os_tcp_close(fd);
    fd = bound(&at, false);
    assert_true(fd >= 0);
    assert_int_equal(os_tcp_listen(fd, 1), 0);
    os_tcp_close(fd);
    os_tcp_close(listener);
}

static void segment_size(void **state)
{
    struct tcp_info info;
    socklen_t len = sizeof info;
    int a, b, mss;

    (void)state;
    test_pair("127.0.0.1", &a, &b);
    mss = os_tcp_mss(a);
    assert_true(mss >= 64 && mss <= 65535);
    assert_int_equal(getsockopt(a, IPPROTO_TCP, TCP_INFO, &info, &len), 0);
    assert_int_equal(mss, info.tcpi_snd_mss);
    assert_int_equal(os_tcp_mss(-1), -EBADF);
    os_tcp_close(a);
    os_tcp_close(b);
}

static void tuning(void **state)
{
    int a, b;

    (void)state;
    test_pair("127.0.0.1", &a, &b);
    assert_int_equal(os_tcp_set_user_timeout_ms(a, 30000), 0);
    assert_int_equal(option(a, IPPROTO_TCP, TCP_USER_TIMEOUT), 30000);
    assert_int_equal(os_tcp_set_keepalive_s(a, 120), 0);
    assert_int_equal(option(a, SOL_SOCKET, SO_KEEPALIVE), 1);
    assert_int_equal(option(a, IPPROTO_TCP, TCP_KEEPIDLE), 120);
    assert_int_equal(os_tcp_set_keepalive_s(a, 0), 0);
    assert_int_equal(option(a, SOL_SOCKET, SO_KEEPALIVE), 0);
    assert_int_equal(os_tcp_set_buffers(a, 65536, 65536), 0);
    assert_true(option(a, SOL_SOCKET, SO_SNDBUF) >= 65536);
    assert_true(option(a, SOL_SOCKET, SO_RCVBUF) >= 65536);
    os_tcp_close(a);
    os_tcp_close(b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exchange_v4),
        cmocka_unit_test(exchange_v6),
        cmocka_unit_test(v6_socket_is_v6_only),
        cmocka_unit_test(bad_families),
        cmocka_unit_test(full_then_writable),
        cmocka_unit_test(unacked_counts),
        cmocka_unit_test(fin),
        cmocka_unit_test(reset_after_data),
        cmocka_unit_test(reset_told_to_send),
        cmocka_unit_test(peeking),
        cmocka_unit_test(connect_refused),
        cmocka_unit_test(pause_and_resume),
        cmocka_unit_test(holding_v4),
        cmocka_unit_test(holding_v6),
        cmocka_unit_test(held_until_the_last),
        cmocka_unit_test(segment_size),
        cmocka_unit_test(tuning),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
