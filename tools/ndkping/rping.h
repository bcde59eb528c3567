// SPDX-License-Identifier: MIT
/*
 * The application protocol of rping, both roles. See rping.c for one iteration.
 */
#ifndef SOFTNDK_NDKPING_RPING_H
#define SOFTNDK_NDKPING_RPING_H

#include "link.h"

struct rping {
    struct link *link;
    bool server, exact, verify, verbose;
    ULONG size;     /* octets; plain server: the most that an advert may name */
    uint64_t count; /* iterations, 0 for no limit */

    uint64_t iterations; /* done */
    struct tool_memory receive, send, source, sink;
};

/* The fields above the line are set. Memory, and the first receive. rping_close() in any case. */
bool rping_open(struct rping *rping);
/* Iterates on the connected link. Client: LINK_GOOD after count iterations. Server: LINK_GOOD when
 * the client went between two iterations. LINK_STOPPED between two iterations or inside one. */
enum link_result rping_run(struct rping *rping);
/* After link_end(). */
void rping_close(struct rping *rping);

#endif
