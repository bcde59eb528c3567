// SPDX-License-Identifier: MIT
/*
 * A batch: the FPDUs that one system call sends. Headers, trailers and small payload stand in its
 * arena, large payload by reference into memory that is held until TCP took the octets. Built on
 * the stack of the transmit owner; what TCP does not take moves to the heap, encoded as it is.
 */
#ifndef SOFTNDK_CONN_TX_BATCH_H
#define SOFTNDK_CONN_TX_BATCH_H

#include "conn/conn_internal.h"

#define BATCH_ARENA  16384u
#define BATCH_IOV    512
#define BATCH_MARKS  200
#define BATCH_HOLDS  300
#define BATCH_COPIES 128
#define BATCH_FRAMES 512
#define BATCH_OCTETS (1024u * 1024u) /* gathered for one system call */
#define COPY_MAX     512u            /* payload up to this goes into the arena */
#define PIECES_MAX   20 /* host pieces of one element within one FPDU: 64 KiB of pages */
/* The most one FPDU can need: 64 elements, each cut at page boundaries. */
#define FPDU_PIECES_MAX 150
#define FPDU_HOLDS_MAX  64

/* A message whose last octet is in this batch. */
struct batch_mark {
    size_t end;         /* octets of the batch that TCP must have taken */
    struct conn_wr *wr; /* NULL: an answer */
    uint64_t frames;    /* FPDUs of the connection up to and including its last one */
    bool complete;      /* false: a Read Request, which completes with its Response */
};

struct conn_batch {
    size_t octets, sent;
    int iov_count, iov_first;
    uint32_t arena_used;
    unsigned mark_count, mark_first;
    unsigned hold_count;
    unsigned copy_count;
    unsigned frame_count;
    struct conn_reuse reuse; /* of small payload, while the batch is built */
    /* The last of `holds`, for more of the same region by reference: it is held until the batch is
     * out, and an invalidation that comes meanwhile pends. */
    struct conn_reuse large;
    bool large_answer;
    struct os_iov iov[BATCH_IOV];
    bool answer[BATCH_IOV]; /* this piece is an answer's source, held by reference */
    struct batch_mark marks[BATCH_MARKS];
    struct access holds[BATCH_HOLDS];
    bool hold_answer[BATCH_HOLDS];
    void *copies[BATCH_COPIES];
    size_t ends[BATCH_FRAMES]; /* where each FPDU ends in the batch's stream */
    uint8_t arena[BATCH_ARENA];
};

/* The CRC over what an FPDU consists of so far. Pieces that follow each other in memory, as header
 * and small payload do in the arena, go through it at once: [run, run + run_len) is still to. */
struct tx_frame {
    uint32_t crc;
    bool with_crc;
    const uint8_t *run;
    size_t run_len;
};

/* Undoes what was appended since a point: the FPDU will not be sent. */
struct tx_point {
    size_t octets;
    int iov_count;
    size_t last_len;
    uint32_t arena_used;
};

/* tx_build.c: fills b with what is to be sent next, within one system call's limits. False: there
 * is nothing. */
bool tx_build(struct conn *conn, struct conn_batch *b);

/* Empty; the arrays are not touched. */
void tx_batch_init(struct conn_batch *b);
/* Lets go of held regions and copies. */
void tx_batch_release(struct conn_batch *b, struct conn *conn);
/* A batch that tx_batch_keep() made. */
void tx_batch_free(struct conn_batch *batch, struct conn *conn);
/* No room for one more FPDU of any kind, or as much as one system call is to take. */
bool tx_batch_full(const struct conn_batch *b);
/* Appends a piece that does not continue the one before it, and is no answer's. */
static inline void tx_batch_piece(struct conn_batch *b, void *base, size_t len)
{
    b->iov[b->iov_count] = (struct os_iov){base, len};
    b->answer[b->iov_count++] = false;
    b->octets += len;
}
/* Appends a piece; one that continues the arena piece before it is joined to it. */
void tx_batch_reference(struct conn_batch *b, void *base, size_t len, bool answer);
/* The next len arena octets, part of the stream from now on. */
uint8_t *tx_batch_take(struct conn_batch *b, size_t len);
/* Octets for the CRC; they stay as they are until tx_frame_close(). */
void tx_frame_add(struct tx_frame *f, const void *data, size_t len);
/* Appends length octets at address of the region that token names: small ones and answers that
 * are checksummed by copy, others by reference. */
enum access_result tx_batch_payload(struct conn *conn, struct conn_batch *b, struct tx_frame *f,
                                    uint32_t token, uint64_t address, uint32_t length,
                                    uint32_t need, bool answer);
/* Where the batch stands, and back to there: the FPDU begun since is not sent. */
struct tx_point tx_batch_point(const struct conn_batch *b);
void tx_batch_back(struct conn_batch *b, struct tx_point p);
/* Pad and CRC. */
void tx_frame_close(struct conn *conn, struct conn_batch *b, struct tx_frame *f, uint32_t ulpdu);
/* What TCP did not take, on the heap as conn->tx.pending; answers by reference are copied. False:
 * no memory. */
bool tx_batch_keep(struct conn *conn, const struct conn_batch *b);
/* Answers' sources are not held over a blocked socket. */
void tx_batch_release_answers(struct conn *conn, struct conn_batch *b);
/* Octets that are missing of the FPDU which TCP took in part. */
size_t tx_batch_fpdu_rest(const struct conn_batch *b);

#endif
