// SPDX-License-Identifier: MIT
/*
 * What goes into a batch: the next FPDUs of the requests and of the answers to the peer's Reads.
 *
 * Order: requests in posting order; answers in the order of their requests; the two alternate by
 * message and never mix within one. What cannot be sent (a token that names nothing, say) is left
 * word of in conn->tx; tx.c draws the conclusion when what was built before it is out. With CRC on,
 * answers are sent from a snapshot, since their source may change between checksum and
 * transmission. Used by the transmit owner alone.
 */
#include <ntstatus.h>
#include <string.h>

#include "base/red.h"
#include "base/usdt.h"
#include "conn/tx_batch.h"

#define MULPDU_READ_US 10000u

uint32_t tx_fpdu_payload(const struct conn *conn)
{
    int mss = os_tcp_mss(conn->fd);
    uint32_t payload = iwarp_fpdu_mulpdu(mss > 0 ? (uint32_t)mss : 536);
    uint32_t most = conn->options->fpdu_max;

    if (most == 0 || most >= payload || RED("tx-fpdu-max-ignored"))
        return payload;
    return most < IWARP_MULPDU_MIN ? IWARP_MULPDU_MIN : most;
}

static uint32_t mulpdu(struct conn *conn, bool large)
{
    struct conn_tx *tx = &conn->tx;

    bool look = large && !tx->mulpdu_looked;

    tx->mulpdu_looked = tx->mulpdu_looked || large;
    if (tx->mulpdu == 0 || (look && os_now_us() - tx->mulpdu_at_us > MULPDU_READ_US)) {
        tx->mulpdu = tx_fpdu_payload(conn);
        tx->mulpdu_at_us = os_now_us();
    }
    return tx->mulpdu;
}

/* ---- requests ------------------------------------------------------------------------------- */

static enum access_result request_payload(struct conn *conn, struct conn_batch *b,
                                          struct tx_frame *f, uint32_t length)
{
    struct conn_tx *tx = &conn->tx;
    const struct conn_wr *wr = tx->wr;

    if (wr->flags & CONN_WR_INLINE) {
        if (length) {
            uint8_t *copy;

            if (length <= COPY_MAX) {
                copy = tx_batch_take(b, length);
                memcpy(copy, wr->octets + tx->offset, length);
            } else {
                copy = (uint8_t *)(uintptr_t)(wr->octets + tx->offset);
                tx_batch_reference(b, copy, length, false);
            }
            tx_frame_add(f, copy, length);
        }
        return ACCESS_OK;
    }
    while (length) {
        const struct conn_sge *s = &wr->sge[tx->sge];
        uint32_t room = s->length - tx->sge_offset;
        uint32_t n = length < room ? length : room;
        enum access_result result;

        result = tx_batch_payload(conn, b, f, s->token, s->address + tx->sge_offset, n,
                                  ACCESS_LOCAL_READ, false);
        if (result != ACCESS_OK)
            return result;
        length -= n;
        tx->sge_offset += n;
        if (tx->sge_offset == s->length) {
            tx->sge++;
            tx->sge_offset = 0;
        }
    }
    return ACCESS_OK;
}

/* The header of the current Send's or Write's next segment, n octets of payload. */
static size_t segment_header(struct conn *conn, uint8_t *header, uint32_t n, bool last,
                             unsigned *opcode)
{
    struct conn_tx *tx = &conn->tx;
    const struct conn_wr *wr = tx->wr;
    bool invalidate = (wr->flags & CONN_WR_INVALIDATE) != 0;

    if (wr->op == CONN_OP_WRITE) {
        tx->msn = 0;
        *opcode = IWARP_OP_WRITE;
        return iwarp_rdmap_put_write(header, wr->token, wr->remote_address + tx->offset, n, last);
    }
    if (tx->offset == 0)
        tx->msn = iwarp_track_tx_take(&tx->track, IWARP_QN_SEND);
    *opcode = iwarp_opcode_send((wr->flags & CONN_WR_SOLICIT) != 0, invalidate);
    return iwarp_rdmap_put_send(header, *opcode, invalidate ? wr->token : 0, tx->msn, tx->offset, n,
                                last);
}

/* The current request is in the batch to its last octet. */
static void request_close(struct conn *conn, struct conn_batch *b)
{
    struct conn_tx *tx = &conn->tx;

    b->marks[b->mark_count++] =
        (struct batch_mark){.end = b->octets, .wr = tx->wr, .frames = tx->frames, .complete = true};
    conn_queue_advance(conn->initiator);
    tx->wr = NULL;
}

/* All octets of a small message. */
static enum access_result small_copy(struct conn *conn, struct conn_batch *b, uint8_t *at)
{
    const struct conn_wr *wr = conn->tx.wr;

    if (wr->flags & CONN_WR_INLINE) {
        memcpy(at, wr->octets, wr->length);
        return ACCESS_OK;
    }
    for (unsigned i = 0; i < wr->sge_count; i++) {
        const struct conn_sge *s = &wr->sge[i];
        enum access_result result;

        if (s->length == 0)
            continue;
        result =
            conn_reuse_get(conn, &b->reuse, s->token, s->address, s->length, ACCESS_LOCAL_READ, at);
        if (result != ACCESS_OK)
            return result;
        at += s->length;
    }
    return ACCESS_OK;
}

/* Is the current request such a message, and nothing of it sent? */
static bool is_small(struct conn *conn)
{
    const struct conn_wr *wr = conn->tx.wr;

    return conn->tx.offset == 0 && wr->length <= COPY_MAX &&
           wr->length <= iwarp_ddp_payload_max(mulpdu(conn, false), wr->op == CONN_OP_WRITE);
}

/*
 * The current request, a message so small that its one FPDU is written into the arena as a whole:
 * what rates of messages consist of, so it takes the shortest way. False: as segment_add().
 */
static bool small_add(struct conn *conn, struct conn_batch *b)
{
    struct conn_tx *tx = &conn->tx;
    uint32_t n = tx->wr->length, ulpdu;
    uint8_t *frame = b->arena + b->arena_used;
    unsigned opcode;
    size_t used = segment_header(conn, frame, n, true, &opcode);

    if (small_copy(conn, b, frame + used) != ACCESS_OK)
        return false; /* nothing is in the batch yet */
    used += n;
    ulpdu = (uint32_t)used - IWARP_FPDU_LENGTH_LEN;
    used += iwarp_fpdu_put_trailer_state(frame + used, ulpdu, conn->crc,
                                         conn->crc ? iwarp_crc32c(iwarp_crc32c_init(), frame, used)
                                                   : 0);
    tx_batch_take(b, used);
    b->ends[b->frame_count++] = b->octets;
    tx->frames++;
    USDT(transmit, conn, tx->wr->context, opcode, tx->msn, n, true);
    request_close(conn, b);
    return true;
}

/*
 * Further whole segments of the current message, out of an element whose region the batch holds:
 * what large messages consist of, so they take the shortest way. The last one is left to
 * segment_add().
 */
static void segments_add(struct conn *conn, struct conn_batch *b)
{
    struct conn_tx *tx = &conn->tx;
    const struct conn_wr *wr = tx->wr;
    const struct conn_sge *s = &wr->sge[tx->sge];
    uint32_t n = iwarp_ddp_payload_max(tx->mulpdu, wr->op == CONN_OP_WRITE);
    const uint8_t *from = NULL;

    if (n > COPY_MAX && !(wr->flags & CONN_WR_INLINE) && !b->large_answer)
        from = conn_reuse_at(&b->large, s->token, s->address + tx->sge_offset,
                             s->length - tx->sge_offset, ACCESS_LOCAL_READ);
    if (!from)
        return;
    while (wr->length - tx->offset > n && s->length - tx->sge_offset >= n && !tx_batch_full(b)) {
        uint8_t *header = b->arena + b->arena_used;
        uint32_t crc = iwarp_crc32c_init();
        unsigned opcode;
        size_t used = segment_header(conn, header, n, false, &opcode);
        uint32_t ulpdu = (uint32_t)used - IWARP_FPDU_LENGTH_LEN + n;

        if (conn->crc)
            crc = iwarp_crc32c(iwarp_crc32c(crc, header, used), from, n);
        tx_batch_take(b, used);
        tx_batch_piece(b, (void *)(uintptr_t)from, n);
        used = iwarp_fpdu_put_trailer_state(header + used, ulpdu, conn->crc, crc);
        tx_batch_piece(b, b->arena + b->arena_used, used);
        b->arena_used += (uint32_t)used;
        b->ends[b->frame_count++] = b->octets;
        tx->frames++;
        USDT(transmit, conn, wr->context, opcode, tx->msn, n, false);
        from += n;
        tx->offset += n;
        tx->sge_offset += n;
    }
    if (tx->sge_offset == s->length) {
        tx->sge++;
        tx->sge_offset = 0;
    }
}

/* One segment of the current Send or Write, or some. False: it failed and the connection ends. */
static bool segment_add(struct conn *conn, struct conn_batch *b)
{
    struct conn_tx *tx = &conn->tx;
    struct conn_wr *wr = tx->wr;
    bool tagged = wr->op == CONN_OP_WRITE;
    uint32_t left = wr->length - tx->offset;
    uint32_t max = iwarp_ddp_payload_max(mulpdu(conn, left > tx->mulpdu), tagged);
    uint32_t n = left < max ? left : max;
    bool last = n == left;
    struct tx_frame f = {.crc = iwarp_crc32c_init(), .with_crc = conn->crc};
    struct tx_point point = tx_batch_point(b);
    uint8_t *header = b->arena + b->arena_used;
    unsigned opcode;
    size_t header_len = segment_header(conn, header, n, last, &opcode);

    tx_batch_take(b, header_len);
    tx_frame_add(&f, header, header_len);
    if (request_payload(conn, b, &f, n) != ACCESS_OK) {
        tx_batch_back(b, point);
        return false;
    }
    tx_frame_close(conn, b, &f, (tagged ? IWARP_TAGGED_LEN : IWARP_UNTAGGED_LEN) + n);
    USDT(transmit, conn, wr->context, opcode, tx->msn, n, last);
    tx->offset += n;
    if (last)
        request_close(conn, b);
    else
        segments_add(conn, b);
    return true;
}

static void read_add(struct conn *conn, struct conn_batch *b)
{
    struct conn_tx *tx = &conn->tx;
    struct conn_wr *wr = tx->wr;
    unsigned opened = atomic_load(&conn->reads_opened);
    struct conn_read *read = &conn->reads[opened & conn->read_mask];
    struct tx_frame f = {.crc = iwarp_crc32c_init(), .with_crc = conn->crc};
    uint8_t *header = b->arena + b->arena_used;
    uint32_t msn = iwarp_track_tx_take(&tx->track, IWARP_QN_READ_REQUEST);
    size_t n;

    /* The sink is ours alone: a token that names nothing but this Read. */
    read->wr = wr;
    read->request.sink_stag = 0x80000000u | (++tx->read_serial & 0x7fffffu) << 8 | 0x52u;
    read->request.sink_to = wr->sge_count ? wr->sge[0].address : 0;
    read->request.size = wr->length;
    read->request.source_stag = wr->token;
    read->request.source_to = wr->remote_address;
    n = iwarp_rdmap_put_read_request(header, msn, &read->request);
    tx_batch_take(b, n);
    tx_frame_add(&f, header, n);
    tx_frame_close(conn, b, &f, IWARP_READ_ULPDU_LEN);
    USDT(transmit, conn, wr->context, IWARP_OP_READ_REQUEST, msn, wr->length, true);
    conn_queue_advance(conn->initiator);
    tx->wr = NULL;
    atomic_store(&conn->reads_opened, opened + 1);
}

/* A bind, fast-register or invalidate, carried out at its place in the order. */
static void local_run(struct conn *conn, struct conn_batch *b)
{
    struct conn_tx *tx = &conn->tx;
    struct conn_wr *wr = tx->wr;
    NTSTATUS status;

    conn_reuse_drop(conn, &b->reuse); /* an invalidation would wait for it */
    /* Taken first: one that pends may be finished and retired by another thread at once. */
    conn_queue_advance(conn->initiator);
    tx->wr = NULL;
    status = conn->ops->local(conn->qp, wr);
    if (status == STATUS_PENDING) {
        tx->local_waiting = true;
        return;
    }
    if (!NT_SUCCESS(status)) {
        conn_queue_finish(conn->initiator, wr, status, 0);
        atomic_store(&conn->requests_failed, true);
        tx->end_after_batch = true;
        return;
    }
    b->marks[b->mark_count++] = (struct batch_mark){.end = b->octets, .wr = wr, .complete = true};
}

/* The next request's turn: false when there is none, or it must wait, or the connection ends. */
static bool request_turn(struct conn *conn, struct conn_batch *b)
{
    struct conn_tx *tx = &conn->tx;

    if (tx->local_waiting || tx->end_after_batch)
        return false;
    if (!tx->wr) {
        uint32_t open, limit = RED("read_limit_ignored") ? UINT32_MAX : conn->read_limit;

        tx->wr = conn_queue_peek(conn->initiator);
        if (!tx->wr)
            return false;
        open = atomic_load(&conn->reads_opened) - atomic_load(&conn->reads_done);
        /* Looked at after reads_done: a Read that failed sets it first, and counts as done then. */
        if (atomic_load(&conn->requests_failed)) {
            tx->wr = NULL;
            return false;
        }
        if (((tx->wr->flags & CONN_WR_FENCE) && open && !RED("fence_ignored")) ||
            (tx->wr->op == CONN_OP_READ && open >= limit)) {
            tx->wr = NULL; /* a finished Read kicks us */
            return false;
        }
        tx->offset = tx->sge = tx->sge_offset = 0;
    }
    switch (tx->wr->op) {
    case CONN_OP_SEND:
    case CONN_OP_WRITE:
        if (!(is_small(conn) ? small_add(conn, b) : segment_add(conn, b))) {
            tx->request_failed = true;
            return false;
        }
        return true;
    case CONN_OP_READ:
        read_add(conn, b);
        return true;
    default:
        local_run(conn, b);
        return true;
    }
}

/* ---- answers -------------------------------------------------------------------------------- */

/* The next segment of the oldest answer; false when there is none or it failed. */
static bool answer_turn(struct conn *conn, struct conn_batch *b)
{
    struct conn_tx *tx = &conn->tx;
    unsigned out = atomic_load(&conn->answers_out) + tx->answers_encoded;
    struct conn_answer *answer;
    struct tx_frame f = {.crc = iwarp_crc32c_init(), .with_crc = conn->crc};
    struct tx_point point = tx_batch_point(b);
    enum access_result result = ACCESS_OK;
    uint32_t left, max, n;
    uint8_t *header;

    /* Behind our FIN the peer's Reads get nothing more: it has seen that. */
    if (out == atomic_load(&conn->answers_in) || atomic_load(&conn->fin_sent))
        return false;
    answer = &conn->answers[out & conn->answer_mask];
    left = answer->request.size - tx->answer_done;
    max = iwarp_ddp_payload_max(mulpdu(conn, left > tx->mulpdu), true);
    n = left < max ? left : max;
    if (tx->answer_done == 0 && n < left) {
        /* The whole range must be good before its first octet leaves. */
        struct os_iov pieces[1];
        struct access hold;
        int count = 0;

        result = conn->ops->map(conn->qp, answer->request.source_stag, answer->request.source_to,
                                left, ACCESS_REMOTE_READ, &hold, pieces, &count);
        if (result == ACCESS_OK)
            conn->ops->unmap(conn->qp, &hold);
    }
    header = b->arena + b->arena_used;
    tx_batch_take(b, iwarp_rdmap_put_read_response(header, answer->request.sink_stag,
                                                   answer->request.sink_to + tx->answer_done, n,
                                                   n == left));
    tx_frame_add(&f, header, IWARP_FPDU_TAGGED_LEN);
    if (result == ACCESS_OK)
        result = tx_batch_payload(conn, b, &f, answer->request.source_stag,
                                  answer->request.source_to + tx->answer_done, n,
                                  ACCESS_REMOTE_READ, true);
    if (result != ACCESS_OK) {
        tx_batch_back(b, point);
        tx->answer_error = conn_error_from_read(result);
        return false;
    }
    tx_frame_close(conn, b, &f, IWARP_TAGGED_LEN + n);
    USDT(transmit, conn, NULL, IWARP_OP_READ_RESPONSE, answer->msn, n, n == left);
    tx->answer_done += n;
    if (tx->answer_done == answer->request.size) {
        tx->answer_done = 0;
        tx->answers_encoded++;
        b->marks[b->mark_count++] = (struct batch_mark){.end = b->octets, .wr = NULL};
    }
    return true;
}

/* ---- both ----------------------------------------------------------------------------------- */

bool tx_build(struct conn *conn, struct conn_batch *b)
{
    struct conn_tx *tx = &conn->tx;

    tx_batch_init(b);
    tx->mulpdu_looked = false;
    if (atomic_load_explicit(&conn->nudge, memory_order_relaxed) == NUDGE_DUE)
        nudge_add(conn, b);
    while (!tx_batch_full(b)) {
        bool progressed;

        if (tx->answer_error != IWARP_NO_ERROR || tx->request_failed)
            break;
        /* A message that has begun goes on; between messages the two sides take turns. */
        if (tx->answer_done)
            progressed = answer_turn(conn, b);
        else if (tx->wr && tx->offset)
            progressed = request_turn(conn, b);
        else if (tx->answer_turn)
            progressed = answer_turn(conn, b) || request_turn(conn, b);
        else
            progressed = request_turn(conn, b) || answer_turn(conn, b);
        if (!progressed)
            break;
        tx->answer_turn = !tx->answer_turn;
    }
    conn_reuse_drop(conn, &b->reuse);
    return b->octets != 0 || b->mark_count != 0;
}
