// SPDX-License-Identifier: MIT
/*
 * One connection of ndkping: adapter objects, connecting and ending, and its completions, either
 * waited for by the thread that owns the link or taken inside the CQ's notification.
 *
 * Who owns the CQ. Normally the link's thread: it polls, arms when the CQ is empty, and sleeps; the
 * notification only wakes it. During link_run() the notification owns it: it polls, hands each
 * result to the handler, which posts more, and arms again. The lock keeps the two apart.
 */
#ifndef SOFTNDK_NDKPING_LINK_H
#define SOFTNDK_NDKPING_LINK_H

#include <pthread.h>
#include <stdatomic.h>

#include "common/tool_ndk.h"
#include "common/tool_stop.h"

enum link_kind { LINK_RECEIVE, LINK_SEND, LINK_READ, LINK_WRITE, LINK_KINDS };

enum link_result {
    LINK_GOOD,
    LINK_GONE,    /* the peer disconnected or the connection broke */
    LINK_STOPPED, /* SIGINT or SIGTERM */
    LINK_FAILED   /* told on stderr */
};

enum link_step {
    LINK_GO_ON,
    LINK_NOT_MINE, /* keep this result for link_wait(), and go on */
    LINK_FINISHED, /* what comes behind this one is for link_wait() */
    LINK_BROKEN    /* told on stderr */
};
/* Takes one successful result. Runs in the notification, at DISPATCH_LEVEL, and may post. */
typedef enum link_step link_handler(void *context, enum link_kind kind, ULONG octets);

struct link {
    NDK_ADAPTER *adapter;
    NDK_CQ *cq;
    NDK_PD *pd;
    NDK_QP *qp;
    NDK_CONNECTOR *connector;
    char peer[SOFTNDK_ADDRESS_MAX]; /* address and port, for messages */
    bool established;

    KEVENT wake; /* something below changed, or the program is to stop */
    struct tool_stop_watch stop;
    atomic_bool armed, disconnected, request_done;
    atomic_uint reason; /* of the disconnect event */
    atomic_int cq_status;
    NTSTATUS request_status;

    /* The owner's. */
    bool failed;
    ULONG done[LINK_KINDS]; /* results taken and not yet waited for */
    ULONG octets;           /* of the last receive */

    pthread_mutex_t lock; /* the CQ, and what follows */
    link_handler *handler;
    void *context;
    atomic_int step;
    NDK_RESULT_EX broken; /* the result that ended a link_run() */
};

/* Queue depths in entries. connector: of a connect event, or NULL for a new one; the link owns it
 * from here on, also when false is returned. link_close() in any case. */
bool link_open(struct link *link, NDK_ADAPTER *adapter, NDK_CONNECTOR *connector, ULONG receives,
               ULONG requests);
/* Disconnects, waits for the peer to do so too, closes connector and QP; requests that are left are
 * flushed. False: the peer did not agree, which is told only if `tell`. */
bool link_end(struct link *link, bool tell);
/* Closes what is left. Regions must be closed between link_end() and this. */
void link_close(struct link *link);

/* How many reads of the peer and of ours may be in progress; private data may be NULL. */
struct link_terms {
    ULONG inbound_reads, outbound_reads;
    const void *data;
    ULONG length;
};

/* Active side; between the two the peer's private data can be read. */
enum link_result link_connect(struct link *link, const SOCKADDR_INET *local, ULONG local_length,
                              const SOCKADDR_INET *peer, ULONG peer_length,
                              const struct link_terms *terms);
enum link_result link_complete_connect(struct link *link);
/* Passive side. */
enum link_result link_accept(struct link *link, const struct link_terms *terms);
/* The peer's private data, cut off at size; false: told on stderr. */
bool link_private_data(struct link *link, void *data, ULONG size, ULONG *length);

/* Posts; a failure is told and remembered. Tokens and addresses of the peer are in host order. */
bool link_receive(struct link *link, const struct tool_memory *memory, size_t offset, ULONG length);
bool link_send(struct link *link, const struct tool_memory *memory, size_t offset, ULONG length);
bool link_read(struct link *link, const struct tool_memory *memory, ULONG length, UINT64 address,
               UINT32 token);
bool link_write(struct link *link, const struct tool_memory *memory, ULONG length, UINT64 address,
                UINT32 token);

/* Waits for one completion of that kind. A stop lets what is in flight finish for a moment. */
enum link_result link_wait(struct link *link, enum link_kind kind);
/* The same when nothing is in flight: a stop ends the wait at once. */
enum link_result link_wait_idle(struct link *link, enum link_kind kind);
/* Hands results to the handler until it has finished. What was posted before, or completes before,
 * reaches the handler too. */
enum link_result link_run(struct link *link, link_handler *handler, void *context);

/* "connection lost: why", after LINK_GONE in the wrong place. */
void link_report_lost(struct link *link);

#endif
