// SPDX-License-Identifier: MIT
/*
 * ONE connection's life, from the socket to its disposal: startup, transmit, receive, ending. Knows
 * iwarp, the engine and the os; of the provider only the table below, which the provider registers.
 *
 * Ownership. Each direction has one word: BUSY | MORE | END | DEAD. Who sets BUSY from 0 owns the
 * direction and works; anybody else only sets MORE. The owner clears MORE, works, and gives the
 * direction up only by changing exactly BUSY to 0. After a budget it hands the direction, still
 * BUSY, to the home shard's run list. END makes the owner stop and mark the direction DEAD; when
 * both are DEAD nobody touches the consumer's memory or the descriptor any more, and the home shard
 * flushes the queues and ends the socket.
 *
 * Receive state belongs to the receive owner, transmit state to the transmit owner. conn->lock
 * guards the state of the connection (startup, ending, timer); it is never held over a system call
 * that moves data, but events to the provider are raised under it, so that their order is the
 * order of the states. Lock order: conn->lock, queue lock, CQ lock, engine. The lists of all
 * connections (twins in meaning.c, holders of octets in partial.c) have locks of their own, leaves.
 *
 * References: the provider's connector holds one, a watched descriptor one, an armed timer one, a
 * direction on a run list one; who kicks holds one of these.
 */
#ifndef SOFTNDK_CONN_CONN_H
#define SOFTNDK_CONN_CONN_H

#include <ntdef.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/options.h"
#include "conn/access.h"
#include "conn/queue.h"
#include "engine/engine.h"
#include "os/os.h"

struct conn;

/* What the connection asks of the provider. `up` is the connector, `qp` the queue pair. */
struct conn_ops {
    /* Memory behind a token: checks it and, on ACCESS_OK, holds the region and gives its host
     * pieces
     * (*count in: room, out: pieces; ACCESS_BOUNDS when they do not fit; room 0: a check alone).
     * Any owner; no lock. */
    enum access_result (*map)(void *qp, uint32_t token, uint64_t address, uint32_t length,
                              uint32_t need, struct access *hold, struct os_iov *pieces,
                              int *count);
    void (*unmap)(void *qp, struct access *hold);
    /* A reason in words for what ends the connection, kept at the queue pair. */
    void (*note)(void *qp, const char *text);
    /* Carries out a local operation in order. STATUS_PENDING: conn_local_done() follows. */
    NTSTATUS (*local)(void *qp, struct conn_wr *wr);
    /* A local operation that will not be carried out: frees what it holds. */
    void (*local_drop)(void *qp, struct conn_wr *wr);
    /* Invalidates a token for a peer's Send (remote true) or a completed Read of ours. ACCESS_OK:
     * done. pending is set when accesses are in progress: conn_invalidated() follows. */
    enum access_result (*invalidate)(void *qp, uint32_t token, bool remote, bool *pending);
    /* The receive queue is empty: has the next receive of a shared queue put there. False: there is
     * none. With wait, conn_resume() is called when it is this connection's turn, until it
     * takes, asks without wait, or stop_waiting(). The receive owner; no lock. */
    bool (*take_receive)(void *qp, bool wait);
    void (*stop_waiting)(void *qp);
    /* Both directions are over: no access of this connection is in progress, none follows. Before
     * the queues are flushed, under conn->lock. */
    void (*over)(void *qp);
    /* Completions, in order. Receives or initiator requests. Holds the queue lock for the latter.
     */
    conn_queue_sink *complete_receives, *complete_requests;

    /* Events, raised under conn->lock: they may only leave word (defer), not call back down. */
    void (*connected)(void *up,
                      NTSTATUS status); /* active: the Reply is in, or the attempt failed */
    void (*requested)(void *up);        /* passive: a whole Request is in */
    void (*established)(void *up, NTSTATUS status); /* complete connect, accept */
    void (*completed)(void *up); /* up without a message: conn_complete() tells *done */
    void (*disconnected)(void *up, uint32_t reason); /* peer's end or abort, once */
    void (*ended)(void *up, NTSTATUS status); /* both directions over, queues flushed, once */
    /* The socket is gone; the connection's reference on `up` ends here. No lock held. */
    void (*closed)(void *up);
};

/* Shared by all connections of an adapter. */
struct conn_counters {
    atomic_ullong in_octets, out_octets, in_frames, out_frames;
};

/* Queues and limits that Connect or Accept bind to the connection. */
struct conn_binding {
    void *qp;
    struct conn_queue *initiator, *receive;
    struct engine_shard *home;  /* of the receive CQ */
    struct engine_group *group; /* of the receive CQ, at that shard; NULL: it has none */
    const atomic_bool *dead;    /* set before conn_overrun(), which may come before it can act */
    uint32_t inbound_reads, outbound_reads;
    const void *private_data;
    uint32_t private_length;
    bool shares_port; /* active: other sockets connect from the same local address */
};

/*
 * A new connection, no socket yet, one reference for the caller. The connection calls ops->closed
 * exactly once, after conn_close(), or at once from conn_close() if nothing was started. options
 * and counters outlive it. NULL: no memory.
 */
struct conn *conn_new(const struct conn_ops *ops, void *up, const struct options *options,
                      struct conn_counters *counters);
void conn_ref(struct conn *conn);
void conn_unref(struct conn *conn);

/*
 * Active side: a socket bound to local, connecting to peer. STATUS_SUCCESS: started, ops->connected
 * follows. Otherwise nothing was started: the statuses of NdkConnect. local's port is not 0.
 */
NTSTATUS conn_connect(struct conn *conn, const struct os_addr *local, const struct os_addr *peer,
                      const struct conn_binding *binding);
/* Sets what the options say of sockets. A listening one hands it on to those it accepts. */
void conn_socket_options(int fd, const struct options *options);
/* Passive side: takes a descriptor accepted from such a one; ops->requested follows, or ops->closed
 * alone when the peer leaves or never completes its Request. False: no resources, the descriptor is
 * closed. */
bool conn_incoming(struct conn *conn, int fd, const struct os_addr *peer,
                   struct engine_shard *home);

/* Passive: the consumer accepts. STATUS_SUCCESS: ops->established follows. CONNECTION_ABORTED: the
 * peer has gone. CONNECTION_INVALID: not undecided. From success on work may be posted. */
NTSTATUS conn_accept(struct conn *conn, const struct conn_binding *binding);
/* Passive: Reply with R=1. Active, after the Reply: FIN before any FPDU. */
NTSTATUS conn_reject(struct conn *conn, const void *data, uint32_t length);
/* Active, after ops->connected(SUCCESS): sends the ready-to-receive message. STATUS_SUCCESS: *done
 * tells whether the connection is up already (no message was agreed); else ops->established
 * follows. */
NTSTATUS conn_complete(struct conn *conn, bool *done);
/* Is the connection at the point that conn_complete() needs? It never comes back to it. */
bool conn_may_complete(const struct conn *conn);
/* Graceful end: FIN behind the queued requests. STATUS_SUCCESS: *done tells whether it has ended by
 * itself already; else ops->ended follows. CONNECTION_INVALID: there is no connection to end. */
NTSTATUS conn_disconnect(struct conn *conn, bool *done);
/* A CQ of the queue pair died: so does the connection. One that the queue pair is not bound to yet
 * is left alone: conn_connect() and conn_accept() look at binding->dead. No lock held. */
void conn_overrun(struct conn *conn);
/* The consumer closed the connector. ops->closed follows from some thread, or already came. */
void conn_close(struct conn *conn);

/* Work was pushed to the initiator queue. Inline transmit unless this thread runs a callback: then
 * after it. False: the direction is over, nobody will look: flush with conn_late_flush(). */
bool conn_post_kick(struct conn *conn);
/* A receive was pushed; cheap when nobody waits for it. False as above. */
bool conn_receive_kick(struct conn *conn);
void conn_late_flush(struct conn *conn);
/* Both owners look again, on the home shard: for callers who may be in the middle of another
 * connection's placement, with this thread's staging area in use. The caller holds a reference and
 * any locks. */
void conn_resume(struct conn *conn);
/* The consumer's poll found nothing: this thread looks at the connections in the group, moves what
 * is there, and takes the wake-ups for it from their shard until engine_group_return(). Runs no
 * callback. True: something was there. Not on a shard's thread. */
bool conn_group_poll(struct engine_group *group);
/* NdkFlush: cancels what is queued at this moment in both directions. */
void conn_flush(struct conn *conn);
/* The receive part of a flush came too late to be carried out: the attempt had failed already. */
bool conn_flush_pending(const struct conn *conn);
/* A local operation or invalidation that pended is over. */
void conn_local_done(struct conn *conn, struct conn_wr *wr, NTSTATUS status);
void conn_invalidated(struct conn *conn);

/* From accept or complete connect to the end; and is our FIN not out yet, so that initiator
 * requests can still be taken? */
bool conn_is_open(const struct conn *conn);
bool conn_takes_requests(const struct conn *conn);
/* What the stream of a connection that is open is like. False: it is not. */
struct conn_stream {
    uint32_t fpdu_payload; /* of an FPDU at most, now */
    bool crc;
    uint8_t mpa_revision;
};
bool conn_stream(struct conn *conn, struct conn_stream *out);
/* Effective read limits (0 before the negotiation), private data of the peer; any time. */
void conn_limits(struct conn *conn, uint32_t *inbound, uint32_t *outbound);
/* The effective outbound limit, without a lock: once conn_takes_requests() was true. */
uint32_t conn_read_limit(const struct conn *conn);
uint32_t conn_private_data(struct conn *conn, const uint8_t **data);
bool conn_addresses(struct conn *conn, struct os_addr *local, struct os_addr *peer);
/* The same inside an event. */
bool conn_addresses_locked(const struct conn *conn, struct os_addr *local, struct os_addr *peer);
/* The 32-bit reason of the end (base/reason.h), 0 while there is none. */
uint32_t conn_reason(struct conn *conn);
uint32_t conn_reason_locked(const struct conn *conn); /* inside an event */

/* Octets of incomplete FPDUs that the process keeps between receives; for tests. */
size_t conn_staged(void);
/* How many octets were ever copied between these and the staging areas; for tests. */
unsigned long long conn_partial_copied(void);

/* Status for a failure of the os floor, by what was being done (errmap.c, the only place). */
NTSTATUS conn_status_from_connect(int error);
NTSTATUS conn_status_from_bind(int error);

#endif
