// SPDX-License-Identifier: MIT
/*
 * What the files of the Linux backend share. Seen by src/os/linux and its tests only.
 */
#ifndef SOFTNDK_OS_LINUX_BACKEND_H
#define SOFTNDK_OS_LINUX_BACKEND_H

#include <netinet/in.h>
#include <stdatomic.h>
#include <sys/socket.h>

#include "os/os.h"

/* ---- addr.c --------------------------------------------------------------------------------- */

union os_sockaddr {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
};

/* Length of the result, or 0 when the family is unknown. */
socklen_t os_addr_to_sockaddr(const struct os_addr *a, union os_sockaddr *out);
/* False: neither IPv4 nor IPv6; out is all zero then. */
bool os_addr_from_sockaddr(const struct sockaddr *sa, struct os_addr *out);

/* ---- fault.c -------------------------------------------------------------------------------- */

enum os_fault_op {
    OS_FAULT_SOCKET,
    OS_FAULT_BIND,
    OS_FAULT_CONNECT,
    OS_FAULT_CONNECT_RESULT,
    OS_FAULT_LISTEN,
    OS_FAULT_ACCEPT,
    OS_FAULT_SEND,
    OS_FAULT_RECV,
    OS_FAULT_SHUTDOWN,
    OS_FAULT_POLL_ADD,
    OS_FAULT_THREAD,
    OS_FAULT_OPS
};

/* -1: the environment was not read yet; 0: nothing is armed; 1: something may be. */
extern atomic_int os_fault_state;
int os_fault_count_call(enum os_fault_op op);

/* The error (> 0) that this call is to fail with, or 0. One relaxed load when nothing is armed. */
static inline int os_fault(enum os_fault_op op)
{
    if (__builtin_expect(atomic_load_explicit(&os_fault_state, memory_order_relaxed) == 0, 1))
        return 0;
    return os_fault_count_call(op);
}

/* ---- poll.c --------------------------------------------------------------------------------- */

/* Reports the descriptor's readiness anew in the set it stands in: the edge that would follow a
 * real -EAGAIN or short count, after an injected one. */
/* Set when the kernel has no timeouts finer than a millisecond; tests set it by hand. */
extern atomic_bool os_poll_coarse;

/* ---- probe.c -------------------------------------------------------------------------------- */

/* os_probe() for kernels before 5.14. */
int os_probe_by_map(const void *addr, size_t len, bool writable);

#endif
