// SPDX-License-Identifier: MIT
/*
 * A work queue: the initiator or the receive queue of a queue pair. Three parties walk it in the
 * same order:
 *
 *   poster    pushes at the tail. The NDK consumer serializes posts of one queue.
 *   taker     the owner of the connection's direction (transmit for initiator requests, receive for
 *             receives); without a connection whoever holds the QP's lock.
 *   retirer   whoever finished a request: under `lock`, completes from the head what is finished,
 *             so that completions leave in posting order although transmit and receive owner both
 *             finish initiator requests.
 *
 * Requests live in chunks that are linked as they are needed, so memory follows what is
 * outstanding, not the depth; a chunk has 16 slots, or as many as a shorter queue is deep. Every
 * cursor moves to the next chunk only when it touches a request
 * there, and the head touches only requests that were taken; since head <= take <= tail, a chunk
 * that the head leaves is used by nobody.
 *
 * Lock: `lock` (order: conn->lock, then this, then a CQ's). posted is stored and read sequentially
 * consistent: a poster publishes first and then looks whether the taker has gone, the taker the
 * other way round, so one of the two sees the other.
 */
#ifndef SOFTNDK_CONN_QUEUE_H
#define SOFTNDK_CONN_QUEUE_H

#include <ntdef.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "os/os.h"

enum conn_op {
    CONN_OP_RECEIVE,
    CONN_OP_SEND,
    CONN_OP_WRITE,
    CONN_OP_READ,
    /* carried out locally, in order, by the transmit owner */
    CONN_OP_BIND,
    CONN_OP_FAST_REGISTER,
    CONN_OP_INVALIDATE
};

#define CONN_WR_SILENT     0x01u /* success leaves no completion */
#define CONN_WR_FENCE      0x02u /* waits for all earlier Reads */
#define CONN_WR_SOLICIT    0x04u
#define CONN_WR_INLINE     0x08u /* the octets are in the request, sge_count is 0 */
#define CONN_WR_INVALIDATE 0x10u /* Send: token names the STag. Read: first SGE's token dies */

struct conn_sge { /* the layout of NDK_SGE */
    uint64_t address;
    uint32_t length;
    uint32_t token;
};

struct conn_wr {
    void *context;
    void *object; /* local operations: what they work on */
    uint64_t remote_address;
    uint32_t token;         /* remote token, or the STag to invalidate */
    uint32_t length;        /* octets of the message */
    NTSTATUS status;        /* valid once finished is set */
    uint32_t provider_code; /* ProviderErrorCode, 0 with success */
    uint64_t position;      /* once sent: what the peer must have got before it completes */
    uint8_t op;             /* enum conn_op */
    uint8_t flags;          /* CONN_WR_* */
    uint16_t sge_count;
    atomic_bool sent;     /* TCP took it; it completes when `position` is reached (meaning.c) */
    atomic_bool finished; /* set last by whoever finished it; the rest is readable then */
    union {
        struct conn_sge sge[1]; /* sge_count of them */
        uint8_t octets[16];     /* CONN_WR_INLINE: length of them */
    };
};

#define CONN_CHUNK_SLOTS 16u

struct conn_chunk;

struct conn_cursor {
    struct conn_chunk *chunk;
    uint32_t slot; /* queue->chunk_slots: at the end, next is in chunk->next */
};

/* A completion on its way to the provider. */
struct conn_completion {
    void *context;
    NTSTATUS status;
    uint32_t octets; /* receives */
    uint32_t provider_code;
    uint32_t token; /* the token that was invalidated by this receive */
    uint8_t op;
    bool invalidated, solicited;
};

#define CONN_QUEUE_LIVE 0x71756575u

struct conn_queue {
    uint32_t live; /* CONN_QUEUE_LIVE until it is destroyed, for asserts */
    uint32_t depth, slot_octets, chunk_slots;
    /* poster */
    struct conn_cursor tail;
    atomic_uint posted; /* requests ever pushed */
    /* taker */
    struct conn_cursor take;
    atomic_uint taken; /* requests ever taken; the retirer goes no further */
    /* retirer */
    os_mutex lock;
    struct conn_cursor head;
    atomic_uint retired;
    _Atomic(struct conn_chunk *) spare;
};

void conn_queue_init(struct conn_queue *queue, uint32_t depth, uint32_t max_sge,
                     uint32_t max_inline);
void conn_queue_destroy(struct conn_queue *queue);
/* Before anything is posted: makes the chunks with which a queue no deeper than one chunk lives, so
 * that conn_queue_prepare() never lacks memory. False: no memory (destroy the queue as usual). */
bool conn_queue_reserve(struct conn_queue *queue);

/* Poster. A slot for the next request with finished and the sizes cleared, or NULL: *status says
 * whether the queue is full (STATUS_NO_MORE_ENTRIES) or there is no memory. */
struct conn_wr *conn_queue_prepare(struct conn_queue *queue, NTSTATUS *status);
/* Poster. Makes the prepared request visible. */
void conn_queue_push(struct conn_queue *queue);

/* Taker. The next request that was not taken, or NULL. */
struct conn_wr *conn_queue_peek(struct conn_queue *queue);
/* Taker. Takes what peek showed. */
void conn_queue_advance(struct conn_queue *queue);

typedef void conn_queue_sink(void *owner, const struct conn_completion *list, unsigned count);

/* Marks a taken request finished; no lock. Retire afterwards, once for a batch. */
void conn_queue_finish(struct conn_queue *queue, struct conn_wr *wr, NTSTATUS status,
                       uint32_t provider_code);
/* Finishes, in order, the Sends and Writes that are sent and whose position is reached, then
 * retires. True: others are sent and wait. Any thread. */
bool conn_queue_pass(struct conn_queue *queue, uint64_t position, conn_queue_sink *sink,
                     void *owner);
/* Hands finished requests to sink from the head on, in order, under the lock. */
void conn_queue_retire(struct conn_queue *queue, conn_queue_sink *sink, void *owner);
/* Everything that is left, taken or not: the first gets first_status, the rest STATUS_CANCELLED,
 * requests already finished keep their own. The caller is the only taker. on_drop (may be NULL) is
 * called for each request that was not taken, before it is completed. */
void conn_queue_flush(struct conn_queue *queue, NTSTATUS first_status, uint32_t provider_code,
                      void (*on_drop)(void *owner, struct conn_wr *wr), conn_queue_sink *sink,
                      void *owner);
/* Receive queues: the taker alone retires, in the order it took, so this needs no lock. Frees the
 * slot of the oldest request. */
void conn_queue_release_head(struct conn_queue *queue);

static inline uint32_t conn_queue_outstanding(struct conn_queue *queue)
{
    return atomic_load(&queue->posted) - atomic_load(&queue->retired);
}

#endif
