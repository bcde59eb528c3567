// SPDX-License-Identifier: MIT
/*
 * How the connection room asks for memory that a token names. The provider's memory room answers
 * (through struct conn_ops); the connection room turns a refusal into the wire's error code, the
 * queue pair into a status. Between begin and end the region cannot be invalidated or deregistered:
 * the check and the copy are one critical section.
 */
#ifndef SOFTNDK_CONN_ACCESS_H
#define SOFTNDK_CONN_ACCESS_H

#include <stdint.h>

enum access_need {
    ACCESS_LOCAL_READ = 0x01,
    ACCESS_LOCAL_WRITE = 0x02,
    ACCESS_REMOTE_READ = 0x04,
    ACCESS_REMOTE_WRITE = 0x08,
    ACCESS_READ_SINK = 0x10 /* local sink of our own Read */
};

enum access_result {
    ACCESS_OK = 0,
    ACCESS_INVALID_TOKEN, /* unknown index, stale key, not valid now */
    ACCESS_WRONG_DOMAIN,  /* another protection domain, or a window of another QP */
    ACCESS_NO_RIGHT,
    ACCESS_BOUNDS,
    ACCESS_WRAP /* address + length passes 2^64 */
};

struct access {
    void *slot;   /* the token slot that is held, or NULL (privileged token: nothing to hold) */
    void *region; /* opaque to the holder */
    /* Where the process has the octets [first, first + length) of what is held, when it has them in
     * one piece; otherwise host is NULL. */
    uint8_t *host;
    uint64_t first, length;
};

#endif
