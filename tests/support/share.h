// SPDX-License-Identifier: MIT
/*
 * Connections whose server ends receive through one shared receive queue: one server adapter with
 * PD, SRQ, memory and listener, and as many pairs as a test wants, each client an adapter of its
 * own. Receive CQs are dealt to the shards in turn, so the takers are on all of them.
 */
#ifndef SOFTNDK_TESTS_SHARE_H
#define SOFTNDK_TESTS_SHARE_H

#include "regions.h"

#define SHARE_MAX  12u
#define SHARE_SLOT (128u * 1024u) /* octets of a receive; also of a client's memory */

struct share_pair {
    struct end client, server; /* server: adapter and pd are the share's */
    struct memory memory;      /* the client's */
    unsigned sent, received;   /* for the tests */
    bool open;
};

struct share {
    NDK_ADAPTER *adapter;
    NDK_PD *pd;
    NDK_SRQ *srq;
    struct listening listening;
    struct memory memory; /* slots of SHARE_SLOT octets */
    unsigned slots;
    const char *options;
    struct share_pair pairs[SHARE_MAX];
    /* notifications; the function may be NULL */
    void (*in_callback)(struct share *share);
    atomic_uint notified;
    KEVENT event;
};

/* depth, threshold: of the SRQ. options go to all adapters. No pair yet. */
void share_open(struct share *share, const char *options, unsigned slots, ULONG depth,
                ULONG threshold);
/* What is left, pairs first. */
void share_close(struct share *share);
/* A pair, connected. */
void share_connect(struct share *share, unsigned i);
void share_disconnect(struct share *share, unsigned i);
/* Only the server's objects of a pair: CQs and a queue pair of the SRQ. */
void share_server_end(struct share *share, struct end *out);
void share_server_end_close(struct end *end);

/* Posts slot as a receive, context slot + 1. */
NTSTATUS share_post(struct share *share, unsigned slot);
void share_posts(struct share *share, unsigned from, unsigned count); /* all succeed */
NTSTATUS share_modify(struct share *share, ULONG depth, ULONG threshold);
/* The next message of pair i: its length and octets depend on i and its number. */
void share_send(struct share *share, unsigned i, ULONG length);
/* Waits for the next completion of pair i's server end: the message that was to come next, intact.
 * Its slot. */
unsigned share_receive(struct share *share, unsigned i, ULONG length);
/* Connections that are held back now because the queue is empty, and receives queued. */
unsigned share_waiting(struct share *share);
unsigned share_queued(struct share *share);
uint8_t *share_slot(struct share *share, unsigned slot);
unsigned share_seed(unsigned i, unsigned number);

#endif
