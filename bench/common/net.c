// SPDX-License-Identifier: MIT
/* net.c - sockets, the clock and the end of the program; see bench.h. */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "common/bench.h"

#define BACKLOG 1024

void bench_die(const char *format, ...)
{
    va_list args;

    fprintf(stderr, "%s: ", bench_program);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    exit(1);
}

void bench_die_errno(const char *what)
{
    bench_die("%s: %s", what, strerror(errno));
}

void *bench_alloc(size_t size)
{
    static void *all[64]; /* what a program has lives as long as it does */
    static unsigned count;
    void *memory = NULL;

    if (count == sizeof all / sizeof *all || posix_memalign(&memory, 4096, size) != 0)
        bench_die("no memory for %zu octets", size);
    all[count++] = memory;
    memset(memory, 0, size);
    return memory;
}

uint64_t bench_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

void bench_pin(int cpu)
{
    cpu_set_t set;

    if (cpu < 0)
        return;
    CPU_ZERO(&set);
    CPU_SET((unsigned)cpu, &set);
    if (sched_setaffinity(0, sizeof set, &set) != 0)
        bench_die("--cpu %d: %s", cpu, strerror(errno));
}

void bench_raise_files(unsigned sockets)
{
    struct rlimit limit;
    rlim_t need = sockets + 64;

    getrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_cur >= need)
        return;
    if (limit.rlim_max < need)
        bench_die("%u connections need %lu descriptors, the hard limit is %lu", sockets,
                  (unsigned long)need, (unsigned long)limit.rlim_max);
    limit.rlim_cur = need;
    setrlimit(RLIMIT_NOFILE, &limit);
}

/* ---- connections ----------------------------------------------------------------------------- */

void bench_resolve(const char *address, unsigned port, struct sockaddr_storage *to, socklen_t *len)
{
    struct addrinfo hints = {.ai_flags = AI_NUMERICHOST | AI_NUMERICSERV,
                             .ai_socktype = SOCK_STREAM};
    struct addrinfo *found;
    char service[16];
    int rc;

    snprintf(service, sizeof service, "%u", port);
    rc = getaddrinfo(address, service, &hints, &found);
    if (rc != 0)
        bench_die("%s: %s", address, gai_strerror(rc));
    memcpy(to, found->ai_addr, found->ai_addrlen);
    *len = found->ai_addrlen;
    freeaddrinfo(found);
}

int bench_listen(const char *address, unsigned port, char *text, size_t text_len)
{
    struct sockaddr_storage at;
    socklen_t len;
    char service[16];
    int fd, on = 1;

    bench_resolve(address, port, &at, &len);
    fd = socket(at.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        bench_die_errno("socket");
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, (struct sockaddr *)&at, len) != 0 || listen(fd, BACKLOG) != 0)
        bench_die_errno("listen");
    len = sizeof at;
    getsockname(fd, (struct sockaddr *)&at, &len);
    getnameinfo((struct sockaddr *)&at, len, NULL, 0, service, sizeof service, NI_NUMERICSERV);
    snprintf(text, text_len, "%s:%s", address, service);
    return fd;
}

void bench_shape(int fd, const struct bench_plan *plan)
{
    int on = 1, octets = (int)plan->buffer;

    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (octets) {
        setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &octets, sizeof octets);
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &octets, sizeof octets);
    }
}

int bench_connect_one(struct bench_end *end)
{
    int fd = socket(end->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        bench_die_errno("socket");
    bench_shape(fd, &end->plan);
    if (connect(fd, (struct sockaddr *)&end->address, end->address_len) != 0)
        bench_die_errno("connect");
    return fd;
}

int bench_accept_one(struct bench_end *end)
{
    int fd = accept4(end->listener, NULL, NULL, SOCK_CLOEXEC);

    if (fd < 0)
        bench_die_errno("accept");
    bench_shape(fd, &end->plan);
    return fd;
}

/* ---- octets ---------------------------------------------------------------------------------- */

/* Whether a call that moved nothing is to be made again. */
static bool again(const char *what)
{
    if (errno == EAGAIN || errno == EINTR)
        return true;
    if (errno == EPIPE || errno == ECONNRESET)
        return false;
    bench_die_errno(what);
}

bool bench_send(int fd, const void *data, size_t len, bool spin)
{
    const char *at = data;

    while (len > 0) {
        ssize_t n = send(fd, at, len, MSG_NOSIGNAL | (spin ? MSG_DONTWAIT : 0));

        if (n < 0) {
            if (!again("send"))
                return false;
            continue;
        }
        at += n;
        len -= (size_t)n;
    }
    return true;
}

bool bench_sendv(int fd, struct iovec *iov, unsigned count, bool spin)
{
    while (count > 0) {
        struct msghdr message = {.msg_iov = iov, .msg_iovlen = count};
        ssize_t n = sendmsg(fd, &message, MSG_NOSIGNAL | (spin ? MSG_DONTWAIT : 0));

        if (n < 0) {
            if (!again("sendmsg"))
                return false;
            continue;
        }
        while (count > 0 && (size_t)n >= iov->iov_len) {
            n -= (ssize_t)iov->iov_len;
            iov++;
            count--;
        }
        if (count > 0) {
            iov->iov_base = (char *)iov->iov_base + n;
            iov->iov_len -= (size_t)n;
        }
    }
    return true;
}

size_t bench_recv(int fd, void *data, size_t len, bool spin)
{
    for (;;) {
        ssize_t n = recv(fd, data, len, spin ? MSG_DONTWAIT : 0);

        if (n >= 0)
            return (size_t)n;
        if (!again("recv"))
            return 0;
    }
}

bool bench_recv_all(int fd, void *data, size_t len, bool spin)
{
    char *at = data;

    while (len > 0) {
        size_t n = bench_recv(fd, at, len, spin);

        if (n == 0)
            return false;
        at += n;
        len -= n;
    }
    return true;
}
