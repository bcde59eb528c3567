// SPDX-License-Identifier: MIT
/*
 * System calls that return at once, past the C library. There each is a cancellation point, which a
 * process with threads pays for with two locked instructions and forty others, and nobody can be
 * cancelled in a call that does not wait. A sanitizer sees the library's functions.
 */
#ifndef SOFTNDK_OS_LINUX_BARE_H
#define SOFTNDK_OS_LINUX_BARE_H

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "os/linux/tsan.h"

#if defined(OS_TSAN) || defined(__SANITIZE_ADDRESS__)
#define OS_BARE 0
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define OS_BARE 0
#endif
#endif
#ifndef OS_BARE
#define OS_BARE 1
#endif

/* Of a descriptor that does not block. */
static inline ssize_t os_bare_recv(int fd, void *buf, size_t len)
{
#if OS_BARE && defined(SYS_recvfrom)
    return syscall(SYS_recvfrom, fd, buf, len, 0, NULL, NULL);
#else
    return recv(fd, buf, len, 0);
#endif
}

static inline ssize_t os_bare_send(int fd, const void *buf, size_t len)
{
#if OS_BARE && defined(SYS_sendto)
    return syscall(SYS_sendto, fd, buf, len, MSG_NOSIGNAL, NULL, 0);
#else
    return send(fd, buf, len, MSG_NOSIGNAL);
#endif
}

static inline ssize_t os_bare_sendmsg(int fd, const struct msghdr *msg)
{
#if OS_BARE && defined(SYS_sendmsg)
    return syscall(SYS_sendmsg, fd, msg, MSG_NOSIGNAL);
#else
    return os_sendmsg(fd, msg, MSG_NOSIGNAL);
#endif
}

/* What is ready now. */
static inline int os_bare_epoll_look(int fd, struct epoll_event *events, int max)
{
#if OS_BARE && defined(SYS_epoll_wait)
    return (int)syscall(SYS_epoll_wait, fd, events, max, 0);
#else
    return epoll_wait(fd, events, max, 0);
#endif
}

#endif
