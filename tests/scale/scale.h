// SPDX-License-Identifier: MIT
/*
 * Many connections between two processes, driven by callbacks alone as a server driver is: what one
 * costs, and whether thousands of them come up, carry their own message and go down, again and
 * again.
 *
 * scale_test.c is the program and tells through pipes; side.c is what both processes share;
 * client.c and server.c are the two state machines. A record belongs to the callback that runs for
 * it: its calls follow one another, so nothing of it is locked. Counts are atomic.
 */
#ifndef SOFTNDK_TESTS_SCALE_H
#define SOFTNDK_TESTS_SCALE_H

#include <stdatomic.h>
#include <stdint.h>

#include "../support/ends.h"

#define LINKS_A_CQ   64  /* connections that share a CQ */
#define MESSAGE      64  /* octets each way */
#define MOST_AT_ONCE 64  /* connects, and disconnects, under way */
#define SILENCE_S    120 /* without any progress: given up */

struct side;

struct link {
    struct side *side;
    unsigned index;
    NDK_CONNECTOR *connector;
    NDK_QP *qp;
    atomic_uint parts; /* of the close that are to come */
};

struct cq {
    struct side *side;
    NDK_CQ *cq;
};

struct side {
    unsigned count;
    NDK_ADAPTER *adapter;
    NDK_PD *pd;
    struct memory memory; /* per link MESSAGE to send, MESSAGE to receive */
    struct cq *cqs;
    struct link *links;
    SOCKADDR_INET local, remote; /* client: from, to */
    /* a result of the link's QP; runs in the CQ's notification */
    void (*result)(struct link *link, const NDK_RESULT_EX *result, bool received);
    atomic_uint next;                   /* the first unused record */
    atomic_uint verified, gone, closed; /* links so far */
};

void scale_open(struct side *side, unsigned count);
/* CQs and records of a round, and their end. */
void scale_begin(struct side *side);
void scale_end(struct side *side);
void scale_close(struct side *side);
/* Waits until a count is the number of links; gives up when it stands still. */
void scale_wait(const struct side *side, const atomic_uint *count, const char *what);
/* Octets of this process's own memory. */
size_t scale_memory(void);

NTSTATUS link_create_qp(struct link *link, NDK_FN_CREATE_COMPLETION created);
void link_post_receive(struct link *link);
void link_send(struct link *link, const uint8_t *data);
uint8_t *link_in(struct link *link);
/* A message is its link's number in every octet. */
void link_fill(uint8_t *data, unsigned index);
bool link_check(const uint8_t *data, unsigned *index);
/* Connector and QP; counts in side->closed when both are. */
void link_close(struct link *link);
/* The process ends, naming link, call and reason. */
void link_fail(const struct link *link, const char *call, NTSTATUS status,
               const NDK_OBJECT_HEADER *at) __attribute__((noreturn));

/* All links up and verified; all disconnected and closed. */
void client_up(struct side *side);
void client_down(struct side *side);

struct server {
    struct side side;
    NDK_LISTENER *listener;
};
/* Listens at text, an ephemeral port, which it returns. */
unsigned server_listen(struct server *server, const char *text);
void server_unlisten(struct server *server);

#endif
