// SPDX-License-Identifier: MIT
/*
 * Ends with shallow CQs that count what they are told, for tests of overruns, on top of regions.h.
 */
#ifndef SOFTNDK_TESTS_SHALLOW_H
#define SOFTNDK_TESTS_SHALLOW_H

#include "regions.h"

#define DEEP (4 * END_DEPTH)

/* A CQ that counts its notifications of failure; of success it arms again, if rearm is not 0. */
struct watched {
    struct queue queue;
    atomic_uint failures;
    ULONG rearm; /* NDK_CQ_NOTIFY_ANY or _SOLICITED */
};
void watched_open(NDK_ADAPTER *adapter, ULONG depth, struct watched *out);
/* Closes it; it has told of its death exactly as often as said. */
void watched_close(struct watched *watched, unsigned failures);
/* Waits for the notification of its death, for which an arm must be out. */
void expect_death(struct watched *watched, const char *what);
/* Polls once with room for all: so many are there, their contexts numbered from 1, all success. */
void expect_queued(struct watched *watched, const char *what, unsigned count);

NDK_QP *make_qp_with(struct end *end, struct queue *receive, struct queue *initiator);

/* Two connected ends whose CQs have these depths. Both directions have memory of 4,096 octets. */
struct shallow {
    struct pair pair;
    struct memory client, server;
    struct watched client_receive, client_initiator, server_receive, server_initiator;
};
struct depths {
    ULONG client_receive, client_initiator, server_receive, server_initiator; /* 0: DEEP */
};
void shallow_open(struct shallow *s, const char *client_options, struct depths depths);
/* Closes all; so many notifications of failure came to the four CQs together. */
void shallow_close(struct shallow *s, unsigned failures);
/* Receives without SGEs at the server, contexts from 1; sends of no octets from the client. */
void post_receives(struct end *end, unsigned count);
void post_sends(struct end *end, unsigned count, ULONG flags);

/* Both ends have got their one disconnect event: here since the CQ overran, there by a reset. */
void expect_dead_pair(struct end *here, struct end *there, const char *what);
/* Every kind of post is refused with STATUS_CONNECTION_INVALID, and the reason says why. */
void expect_posts_refused(struct end *end, const struct memory *memory);

#endif
