// SPDX-License-Identifier: MIT
/*
 * What the tests of src/os and src/engine share: waiting with a limit, connected sockets, random
 * numbers from a printed seed. Include after cmocka.h.
 */
#ifndef SOFTNDK_OS_OS_TESTING_H
#define SOFTNDK_OS_OS_TESTING_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "os/os.h"

#define TEST_LIMIT_US 10000000u /* no test waits longer for anything; none expects it sooner */

/* True as soon as the condition holds, false if it does not within the limit. */
#define TEST_WAIT(condition)                                                                       \
    (__extension__({                                                                               \
        uint64_t wait_until_ = os_now_us() + TEST_LIMIT_US;                                        \
        bool wait_ok_;                                                                             \
        while (!(wait_ok_ = (condition)) && os_now_us() < wait_until_)                             \
            os_sleep_us(50);                                                                       \
        wait_ok_;                                                                                  \
    }))

/* For rounds of threads that spin for one another. Where processors are few, or a checker of races
 * looks on, a round takes turns of the scheduler: then five seconds are enough, and a few hundred
 * rounds are the least. */
static inline bool test_goes_on(unsigned round, unsigned rounds, uint64_t begin_us)
{
    return round < rounds && (round < 300 || os_now_us() - begin_us < 5000000);
}

static inline uint32_t test_random(uint32_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 17;
    *state ^= *state << 5;
    return *state;
}

/* SOFTNDK_TEST_SEED repeats a run. */
static inline uint32_t test_seed(void)
{
    const char *text = getenv("SOFTNDK_TEST_SEED");
    uint32_t seed = 0;

    if (text)
        seed = (uint32_t)strtoul(text, NULL, 0);
    while (seed == 0)
        os_random(&seed, sizeof seed);
    print_message("seed 0x%x\n", seed);
    return seed;
}

static inline struct os_addr test_addr(const char *text)
{
    struct os_addr a;

    assert_int_equal(os_addr_parse(text, &a), 0);
    return a;
}

/* A listener on an ephemeral port of that address; its address comes back in *at. */
static inline int test_listener(const char *text, struct os_addr *at)
{
    int fd;

    *at = test_addr(text);
    fd = os_tcp_socket(at->family);
    assert_true(fd >= 0);
    assert_int_equal(os_tcp_bind(fd, at), 0);
    assert_int_equal(os_tcp_listen(fd, 16), 0);
    assert_int_equal(os_tcp_local(fd, at), 0);
    assert_int_not_equal(at->port, 0);
    return fd;
}

static inline int test_accept(int listener)
{
    int fd = -EAGAIN;

    assert_true(TEST_WAIT((fd = os_tcp_accept(listener, NULL)) != -EAGAIN));
    assert_true(fd >= 0);
    return fd;
}

/* Two ends of one connection. */
static inline void test_pair(const char *text, int *active, int *passive)
{
    struct os_addr at, peer;
    int listener = test_listener(text, &at);
    int fd = os_tcp_socket(at.family);
    int rc;

    assert_true(fd >= 0);
    rc = os_tcp_connect(fd, &at);
    assert_true(rc == 0 || rc == -EINPROGRESS);
    *passive = test_accept(listener);
    assert_true(TEST_WAIT(os_tcp_peer(fd, &peer) == 0));
    assert_int_equal(os_tcp_connect_result(fd), 0);
    *active = fd;
    os_tcp_close(listener);
}

static inline ssize_t test_send(int fd, const void *octets, size_t len)
{
    struct os_iov iov = {.base = (void *)octets, .len = len};

    return os_tcp_send(fd, &iov, 1);
}

/* What recv says next, other than -EAGAIN. */
static inline ssize_t test_recv(int fd, void *buf, size_t len)
{
    ssize_t n = -EAGAIN;

    assert_true(TEST_WAIT((n = os_tcp_recv(fd, buf, len)) != -EAGAIN));
    return n;
}

#endif
