// SPDX-License-Identifier: MIT
/*
 * TCP sockets. Every call is one system call in the usual case; each starts with its fault hook.
 * No state here, so no lock: a descriptor belongs to its caller, and the caller sees to it that it
 * is not closed under a running call.
 *
 * An accepted socket inherits TCP_NODELAY and SO_REUSEADDR from its listener on Linux, which saves
 * two system calls a connection; the unit test holds the kernel to it.
 */
#define _GNU_SOURCE 1 /* accept4, IOV_MAX */

#include <limits.h>
#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <sys/ioctl.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/red.h"
#include "os/linux/backend.h"
#include "os/linux/bare.h"

#ifdef OS_TSAN
char os_tsan_wire;
#endif

_Static_assert(sizeof(struct os_iov) == sizeof(struct iovec), "os_iov is iovec");
_Static_assert(offsetof(struct os_iov, base) == offsetof(struct iovec, iov_base), "os_iov.base");
_Static_assert(offsetof(struct os_iov, len) == offsetof(struct iovec, iov_len), "os_iov.len");
_Static_assert(OS_IOV_MAX <= IOV_MAX, "OS_IOV_MAX");

static int set_int(int fd, int level, int option, int value)
{
    return setsockopt(fd, level, option, &value, sizeof value) < 0 ? -errno : 0;
}

int os_tcp_socket(enum os_family family)
{
    int domain = family == OS_FAMILY_V6 ? AF_INET6 : AF_INET;
    int fault = os_fault(OS_FAULT_SOCKET);
    int fd, rc;

    if (fault)
        return -fault;
    if (family != OS_FAMILY_V4 && family != OS_FAMILY_V6)
        return -EAFNOSUPPORT;
    fd = socket(domain, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_TCP);
    if (fd < 0)
        return -errno;
    rc = set_int(fd, IPPROTO_TCP, TCP_NODELAY, 1);
    if (rc == 0)
        rc = set_int(fd, SOL_SOCKET, SO_REUSEADDR, 1);
    if (rc == 0 && family == OS_FAMILY_V6)
        rc = set_int(fd, IPPROTO_IPV6, IPV6_V6ONLY, 1);
    if (rc < 0) {
        close(fd);
        return rc;
    }
    return fd;
}

int os_tcp_bind(int fd, const struct os_addr *local)
{
    union os_sockaddr sa;
    socklen_t len = os_addr_to_sockaddr(local, &sa);
    int fault = os_fault(OS_FAULT_BIND);

    if (fault)
        return -fault;
    if (len == 0)
        return -EAFNOSUPPORT;
    return bind(fd, &sa.any, len) < 0 ? -errno : 0;
}

/*
 * The holder was bound with SO_REUSEADDR, so that wait states of earlier connections do not matter,
 * and without SO_REUSEPORT, so that another holder does. The exchange afterwards makes Linux refuse
 * whoever has not SO_REUSEPORT (and our user), since two sockets must both have the option that
 * lets them share.
 */
int os_tcp_hold(int fd)
{
    int rc = set_int(fd, SOL_SOCKET, SO_REUSEPORT, 1);

    if (rc == 0 && !RED("os-hold-is-open"))
        rc = set_int(fd, SOL_SOCKET, SO_REUSEADDR, 0);
    return rc;
}

/* SO_REUSEADDR stays, for the wait states. */
int os_tcp_share(int fd)
{
    return set_int(fd, SOL_SOCKET, SO_REUSEPORT, 1);
}

int os_tcp_connect(int fd, const struct os_addr *peer)
{
    union os_sockaddr sa;
    socklen_t len = os_addr_to_sockaddr(peer, &sa);
    int fault = os_fault(OS_FAULT_CONNECT);

    if (fault)
        return -fault;
    if (len == 0)
        return -EAFNOSUPPORT;
    if (connect(fd, &sa.any, len) == 0)
        return 0;
    /* An interrupted connect goes on by itself. */
    return errno == EINTR ? -EINPROGRESS : -errno;
}

int os_tcp_connect_result(int fd)
{
    int fault = os_fault(OS_FAULT_CONNECT_RESULT);
    int err = 0;
    socklen_t len = sizeof err;

    if (fault)
        return -fault;
    if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &err, &len) < 0)
        return -errno;
    return -err;
}

int os_tcp_listen(int fd, int backlog)
{
    int fault = os_fault(OS_FAULT_LISTEN);

    if (fault)
        return -fault;
    return listen(fd, backlog) < 0 ? -errno : 0;
}

int os_tcp_accept(int fd, struct os_addr *peer)
{
    int fault = os_fault(OS_FAULT_ACCEPT);

    if (fault) {
        if (fault == EAGAIN)
            os_poll_rearm(fd);
        return -fault;
    }
    for (;;) {
        union os_sockaddr sa = {0};
        socklen_t len = sizeof sa;
        int got = accept4(fd, &sa.any, &len, SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (got >= 0) {
            if (peer)
                os_addr_from_sockaddr(&sa.any, peer);
            return got;
        }
        /* ECONNABORTED: that one went away while it was queued; the next may be there. */
        if (errno != EINTR && errno != ECONNABORTED)
            return -errno;
    }
}

ssize_t os_tcp_send(int fd, const struct os_iov *iov, int count)
{
    int fault = os_fault(OS_FAULT_SEND);
    struct msghdr msg = {0};
    ssize_t n;

    if (fault && fault != OS_FAULT_SHORT) {
        if (fault == EAGAIN)
            os_poll_rearm(fd);
        return -fault;
    }
    if (count <= 0 || count > OS_IOV_MAX)
        return -EINVAL;
    if (fault == OS_FAULT_SHORT) {
        while (count > 1 && iov->len == 0) {
            iov++;
            count--;
        }
        do {
            n = os_bare_send(fd, iov->base, iov->len ? 1 : 0);
        } while (n < 0 && errno == EINTR);
        os_poll_rearm(fd);
        return n < 0 ? -errno : n;
    }
    msg.msg_iov = (struct iovec *)iov;
    msg.msg_iovlen = (size_t)count;
    do {
#ifndef OS_TSAN
        if (count == 1) /* about 5 % cheaper than sendmsg() */
            n = os_bare_send(fd, iov->base, iov->len);
        else
#endif
            n = os_bare_sendmsg(fd, &msg);
    } while (n < 0 && errno == EINTR);
    return n < 0 ? -errno : n;
}

ssize_t os_tcp_recv(int fd, void *buf, size_t len)
{
    int fault = os_fault(OS_FAULT_RECV);
    ssize_t n;

    if (fault) {
        if (fault == EAGAIN)
            os_poll_rearm(fd);
        return -fault;
    }
    do {
        n = os_bare_recv(fd, buf, len);
    } while (n < 0 && errno == EINTR);
    os_received();
    return n < 0 ? -errno : n;
}

int os_tcp_shutdown_send(int fd)
{
    int fault = os_fault(OS_FAULT_SHUTDOWN);

    if (fault)
        return -fault;
    if (RED("os-tcp-no-fin"))
        return 0;
    return shutdown(fd, SHUT_WR) < 0 ? -errno : 0;
}

int os_tcp_shutdown_recv(int fd)
{
    int fault = os_fault(OS_FAULT_SHUTDOWN);

    if (fault)
        return -fault;
    return shutdown(fd, SHUT_RD) < 0 ? -errno : 0;
}

/* EINTR from close() on Linux means closed: a second close could hit a stranger's descriptor. */
void os_tcp_close(int fd)
{
    close(fd);
}

void os_tcp_abort(int fd)
{
    struct linger hard = {.l_onoff = 1, .l_linger = 0};

    if (!RED("os-tcp-abort-orderly"))
        setsockopt(fd, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    close(fd);
}

int os_tcp_local(int fd, struct os_addr *out)
{
    union os_sockaddr sa = {0};
    socklen_t len = sizeof sa;

    if (getsockname(fd, &sa.any, &len) < 0)
        return -errno;
    return os_addr_from_sockaddr(&sa.any, out) ? 0 : -EAFNOSUPPORT;
}

int os_tcp_peer(int fd, struct os_addr *out)
{
    union os_sockaddr sa = {0};
    socklen_t len = sizeof sa;

    if (getpeername(fd, &sa.any, &len) < 0)
        return -errno;
    return os_addr_from_sockaddr(&sa.any, out) ? 0 : -EAFNOSUPPORT;
}

int os_tcp_mss(int fd)
{
    int mss = 0;
    socklen_t len = sizeof mss;

    /* The sending size now in force, options taken off: what TCP_INFO calls snd_mss, but without
     * the socket lock and the 200 octets of other facts. */
    if (getsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &mss, &len) < 0)
        return -errno;
    return mss;
}

bool os_tcp_is_closed(int fd)
{
    struct tcp_info info;
    socklen_t len = sizeof info;

    return getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) == 0 && info.tcpi_state == TCP_CLOSE;
}

int os_tcp_unacked(int fd)
{
    int octets = 0;

    if (ioctl(fd, SIOCOUTQ, &octets) < 0)
        return -errno;
    return RED("os-tcp-unacked-zero") ? 0 : octets;
}

int os_tcp_set_user_timeout_ms(int fd, unsigned ms)
{
    return set_int(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, ms > INT_MAX ? INT_MAX : (int)ms);
}

int os_tcp_set_keepalive_s(int fd, unsigned idle_s)
{
    int rc;

    if (idle_s == 0)
        return set_int(fd, SOL_SOCKET, SO_KEEPALIVE, 0);
    rc = set_int(fd, IPPROTO_TCP, TCP_KEEPIDLE, idle_s > 32767 ? 32767 : (int)idle_s);
    return rc < 0 ? rc : set_int(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
}

int os_tcp_set_buffers(int fd, int send_octets, int recv_octets)
{
    int rc = 0;

    if (send_octets > 0)
        rc = set_int(fd, SOL_SOCKET, SO_SNDBUF, send_octets);
    if (rc == 0 && recv_octets > 0)
        rc = set_int(fd, SOL_SOCKET, SO_RCVBUF, recv_octets);
    return rc;
}
