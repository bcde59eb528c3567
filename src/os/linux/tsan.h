// SPDX-License-Identifier: MIT
/*
 * What TCP orders, told to ThreadSanitizer. When both ends of a connection live in one process,
 * what one end wrote before it sent is ordered before what the other does after it received; the
 * sanitizer cannot see that through the kernel. Its own interceptors come close, but record the
 * reading of the sent octets after the release, so that a buffer which the peer's answer hands back
 * looks raced on. So in that build the octets are noted as read first, then the release, then the
 * bare system call.
 */
#ifndef SOFTNDK_OS_LINUX_TSAN_H
#define SOFTNDK_OS_LINUX_TSAN_H

#include <sys/socket.h>

#if defined(__SANITIZE_THREAD__)
#define OS_TSAN 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define OS_TSAN 1
#endif
#endif

#ifdef OS_TSAN
#include <sys/syscall.h>
#include <unistd.h>

void __tsan_acquire(void *addr);
void __tsan_release(void *addr);
void __tsan_read_range(void *addr, long size);
extern char os_tsan_wire;

static inline ssize_t os_sendmsg(int fd, const struct msghdr *msg, int flags)
{
    for (size_t i = 0; i < msg->msg_iovlen; i++)
        __tsan_read_range(msg->msg_iov[i].iov_base, (long)msg->msg_iov[i].iov_len);
    __tsan_release(&os_tsan_wire);
    return syscall(SYS_sendmsg, fd, msg, flags);
}

static inline void os_received(void)
{
    __tsan_acquire(&os_tsan_wire);
}
#else
static inline ssize_t os_sendmsg(int fd, const struct msghdr *msg, int flags)
{
    return sendmsg(fd, msg, flags);
}

static inline void os_received(void)
{
}
#endif

#endif
