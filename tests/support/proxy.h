// SPDX-License-Identifier: MIT
/*
 * A TCP proxy on loopback that does one thing to the octets that pass: at a chosen octet of a
 * chosen direction it splits, gathers, delays, stalls, corrupts, half-closes or resets. A thread of
 * its own carries; what is planned holds for each connection made after proxy_plan(). Ends of file
 * and resets pass from one side to the other as they come.
 *
 * Includes nothing of include/nt. Calls are the test's thread's alone.
 */
#ifndef SOFTNDK_TESTS_PROXY_H
#define SOFTNDK_TESTS_PROXY_H

#include <stdbool.h>
#include <stddef.h>

enum fault {
    FAULT_NONE,
    FAULT_SPLIT,      /* from there on a few hundred octets one by one */
    FAULT_GATHER,     /* from there on held until nothing more comes, then sent at once */
    FAULT_DELAY,      /* held there for PROXY_DELAY_MS */
    FAULT_STALL,      /* held there until proxy_release() */
    FAULT_CORRUPT,    /* that octet is another one */
    FAULT_HALF_CLOSE, /* what is before goes on, then the end of file; the other direction lives */
    FAULT_RESET,      /* what is before goes on, then both sides are reset */
    FAULTS
};

enum { PROXY_TO_TARGET, PROXY_FROM_TARGET, PROXY_DIRECTIONS };

#define PROXY_DELAY_MS 20

struct proxy_plan {
    enum fault fault;
    int direction;
    size_t at; /* octets of that direction which pass unharmed */
};

struct proxy;
/* Listens on an IPv4 address, *port is what it got; connects to the same address at proxy_aim(). */
struct proxy *proxy_open(const char *address, unsigned *port);
void proxy_aim(struct proxy *proxy, unsigned port);
void proxy_plan(struct proxy *proxy, const struct proxy_plan *plan);
/* Octets that the target, or the one who connected, was sent on the newest connection. */
size_t proxy_carried(const struct proxy *proxy, int direction);
/* Did the plan's octet come on the newest connection? */
bool proxy_has_struck(const struct proxy *proxy);
void proxy_release(struct proxy *proxy);
/* Ends every connection that is left, by resets. */
void proxy_close(struct proxy *proxy);

#endif
