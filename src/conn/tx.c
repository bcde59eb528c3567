// SPDX-License-Identifier: MIT
/*
 * The transmit owner: gathers FPDUs of several requests and answers into one system call.
 *
 * A batch is built on the stack: headers, trailers and small payload in an arena, large payload by
 * reference into the consumer's memory, which is held (it cannot be invalidated) until TCP took the
 * octets. What TCP does not take stays encoded: the batch moves to the heap and goes on from there
 * when the socket takes octets again; nothing is encoded or checksummed twice.
 *
 * Order: requests in posting order; answers (Read Responses) in the order of their requests; the
 * two alternate by message and never mix within one. A request is complete (`local`) once TCP took
 * its last octet. With CRC on, answers are sent from a snapshot, since their source may change
 * between checksum and transmission; without, what of an answer TCP did not take is copied before
 * the call returns, so that no peer can hold a region of ours by not reading.
 */
#include <ntstatus.h>
#include <stdlib.h>
#include <string.h>

#include "base/red.h"
#include "base/usdt.h"
#include "conn/tx_batch.h"

#define TX_HELPINGS    8
#define MULPDU_READ_US 10000u

static uint32_t mulpdu(struct conn *conn, bool large)
{
    struct conn_tx *tx = &conn->tx;

    if (tx->mulpdu == 0 || (large && os_now_us() - tx->mulpdu_at_us > MULPDU_READ_US)) {
        int mss = os_tcp_mss(conn->fd);

        tx->mulpdu = iwarp_fpdu_mulpdu(mss > 0 ? (uint32_t)mss : 536);
        if (conn->options->fpdu_max && conn->options->fpdu_max < tx->mulpdu &&
            !RED("tx-fpdu-max-ignored"))
            tx->mulpdu = conn->options->fpdu_max < IWARP_MULPDU_MIN ? IWARP_MULPDU_MIN
                                                                    : conn->options->fpdu_max;
        tx->mulpdu_at_us = os_now_us();
    }
    return tx->mulpdu;
}

/* ---- requests ------------------------------------------------------------------------------- */

/* Finishes the current request without sending (more of) it. */
static void request_fail(struct conn *conn, NTSTATUS status)
{
    struct conn_tx *tx = &conn->tx;

    conn_queue_finish(conn->initiator, tx->wr, status, 0);
    conn_queue_advance(conn->initiator);
    tx->wr = NULL;
    atomic_store(&conn->requests_failed, true);
    conn_queue_retire(conn->initiator, conn->ops->complete_requests, conn->qp);
    /* A message cut off in the middle, or one that cannot be sent: the stream is of no further use;
     * what was completed before still arrives. */
    conn_end_terminate(conn, IWARP_ERR_RDMAP_LOCAL, NULL, 0);
}

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

/* One segment of the current Send or Write. False: it failed and the connection ends. */
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

/* ---- sending -------------------------------------------------------------------------------- */

/* Completes what TCP has taken to the last octet. */
static void marks_pass(struct conn *conn, struct conn_batch *b)
{
    bool retire = false, sent = false;
    /* where the batch began in the stream */
    uint64_t base = atomic_load_explicit(&conn->tx.stream, memory_order_relaxed) - b->sent;

    while (b->mark_first < b->mark_count && b->marks[b->mark_first].end <= b->sent) {
        struct batch_mark *mark = &b->marks[b->mark_first++];

        if (!mark->wr) {
            conn->tx.answers_encoded--;
            atomic_fetch_add(&conn->answers_out, 1);
        } else if (mark->complete && conn->meaning != MEANING_LOCAL && mark->frames) {
            mark->wr->position = conn->meaning == MEANING_PLACED ? mark->frames : base + mark->end;
            atomic_store_explicit(&mark->wr->sent, true, memory_order_release);
            sent = true;
        } else if (mark->complete) {
            conn_queue_finish(conn->initiator, mark->wr, STATUS_SUCCESS, 0);
            retire = true;
        }
    }
    if (retire)
        conn_queue_retire(conn->initiator, conn->ops->complete_requests, conn->qp);
    if (sent)
        meaning_sent(conn);
}

/*
 * The socket failed. What the peer sent before is still to be read: a Terminate of its own, Sends
 * that it knows as delivered. So the receive owner, which reads to the end, draws the conclusion;
 * before there is a stream, this one does.
 */
static void lost(struct conn *conn, int error)
{
    int none = 0;

    if (conn_is_open(conn) && !RED("send-error-drops-received")) {
        atomic_compare_exchange_strong(&conn->tx_error, &none, error);
        atomic_store(&conn->hangup, true);
        conn_kick(&conn->rx.dir, 0);
        return;
    }
    conn_lost(conn, error);
}

enum sent { SENT_ALL, SENT_BLOCKED, SENT_LOST };

/* Sends iov[count] from *first on, adjusting it by what TCP took. */
static enum sent send_pieces(struct conn *conn, struct os_iov *iov, int *first, int count,
                             size_t *sent)
{
    while (*first < count) {
        ssize_t n;
        size_t left;

        n = os_tcp_send(conn->fd, iov + *first, count - *first);
        if (n == -EAGAIN) {
            /* The edge may have come between the call and the flag: look once more. */
            if (!atomic_exchange(&conn->tx_blocked, true))
                continue;
            return SENT_BLOCKED;
        }
        if (n < 0) {
            lost(conn, (int)n);
            return SENT_LOST;
        }
        if (atomic_load_explicit(&conn->nudge, memory_order_relaxed) != NUDGE_OFF)
            nudge_fpdu_sent(conn);
        *sent += (size_t)n;
        atomic_fetch_add_explicit(&conn->tx.stream, (unsigned long long)n, memory_order_relaxed);
        atomic_fetch_add_explicit(&conn->counters->out_octets, (unsigned long long)n,
                                  memory_order_relaxed);
        left = (size_t)n;
        while (*first < count && left >= iov[*first].len)
            left -= iov[(*first)++].len;
        if (left) {
            iov[*first].base = (uint8_t *)iov[*first].base + left;
            iov[*first].len -= left;
        }
    }
    if (atomic_load(&conn->tx_blocked))
        atomic_store(&conn->tx_blocked, false);
    return SENT_ALL;
}

/* Sends what is left of a batch. The Reads it answers to the end are the peer's to use again as
 * soon as TCP has the octets; what TCP did not take is counted again. */
static enum sent batch_out(struct conn *conn, struct conn_batch *b)
{
    unsigned answers = conn->tx.answers_encoded, out = atomic_load(&conn->answers_out);
    enum sent sent;

    if (answers && !RED("read-slot-freed-late"))
        atomic_store(&conn->answers_free, out + answers);
    sent = send_pieces(conn, b->iov, &b->iov_first, b->iov_count, &b->sent);
    if (answers && RED("read-slot-freed-late") && out % 16 == 0)
        os_sleep_us(2000);
    marks_pass(conn, b);
    if (answers)
        atomic_store(&conn->answers_free, atomic_load(&conn->answers_out));
    return sent;
}

/* What an earlier call left. True: nothing is pending any more. */
static bool pending_send(struct conn *conn)
{
    struct conn_batch *b = conn->tx.pending;
    enum sent sent;

    if (!b)
        return true;
    sent = batch_out(conn, b);
    USDT(sendmsg_rest, conn, b->octets, b->sent);
    if (sent == SENT_BLOCKED || sent == SENT_LOST)
        return false;
    conn->tx.pending = NULL;
    tx_batch_free(b, conn);
    return true;
}

/* A startup frame or the ready-to-receive message. True: nothing of it is left. */
static bool out_send(struct conn *conn)
{
    struct conn_out *out = atomic_load(&conn->out);
    struct os_iov iov;
    int first = 0;
    size_t sent = 0;
    enum sent result;

    if (!out)
        return true;
    iov.base = out->octets + out->sent;
    iov.len = out->length - out->sent;
    result = send_pieces(conn, &iov, &first, 1, &sent);
    out->sent += (uint32_t)sent;
    if (result != SENT_ALL)
        return false;
    atomic_store(&conn->out, NULL);
    if (out->then == OUT_ESTABLISHES)
        startup_established(conn);
    free(out);
    /* What came waits for the Reply. Not received here: who sends it may be in the middle of
     * another connection's placement. */
    if (!conn->active)
        conn_receive_resume(conn);
    return true;
}

/* Requests that will not be sent: cancelled in order as they are found. */
static void requests_cancel(struct conn *conn)
{
    struct conn_wr *wr;

    conn->tx.wr = NULL;
    while ((wr = conn_queue_peek(conn->initiator)) != NULL) {
        conn->ops->local_drop(conn->qp, wr);
        conn_queue_finish(conn->initiator, wr, STATUS_CANCELLED, 0);
        conn_queue_advance(conn->initiator);
    }
    conn_queue_retire(conn->initiator, conn->ops->complete_requests, conn->qp);
}

/* Is a Read of the consumer open? The ready-to-receive message is none. */
static bool reads_open(struct conn *conn)
{
    unsigned opened = atomic_load(&conn->reads_opened);

    for (unsigned i = atomic_load(&conn->reads_done); i != opened; i++)
        if (conn->reads[i & conn->read_mask].wr || RED("conn-flush-takes-message-for-read"))
            return true;
    return false;
}

/* NdkFlush. What has not begun is cancelled; a request cut off in the middle, or a Read that is
 * open, cannot be taken back without losing the stream: that ends the connection. */
static bool requests_flush(struct conn *conn)
{
    if (conn->tx.pending || (conn->tx.wr && conn->tx.offset) || conn->tx.local_waiting ||
        reads_open(conn)) {
        conn_end(conn, HOW_RST, R(LOCAL_CLOSE, FLUSHED), STATUS_CANCELLED);
        return false;
    }
    requests_cancel(conn);
    return true;
}

/* FIN behind everything that was posted before the disconnect. */
static void fin_send(struct conn *conn)
{
    os_mutex_lock(&conn->lock);
    if (!atomic_load(&conn->fin_sent) && atomic_load(&conn->state) == CONN_OPEN) {
        atomic_store(&conn->fin_sent, true);
        /* What is posted at this very moment: cancelled, as it cannot be sent any more. */
        atomic_store(&conn->requests_failed, !RED("conn-sends-behind-fin"));
        os_tcp_shutdown_send(conn->fd);
        if (atomic_load(&conn->fin_received) || RED("conn-disconnect-does-not-wait"))
            conn_end_locked(conn, HOW_FIN, R(PEER_FIN, NOTHING), STATUS_SUCCESS);
    }
    os_mutex_unlock(&conn->lock);
    conn_end_kick(conn);
}

/* Builds one batch. False: there was nothing to send. */
static bool batch_build(struct conn *conn, struct conn_batch *b)
{
    struct conn_tx *tx = &conn->tx;
    size_t limit = conn->crc ? BATCH_OCTETS_CRC : BATCH_OCTETS;

    tx_batch_init(b);
    if (atomic_load_explicit(&conn->nudge, memory_order_relaxed) == NUDGE_DUE)
        nudge_add(conn, b);
    while (!tx_batch_full(b, limit)) {
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

/* After the batch was sent: what was found wrong while building it. */
static bool batch_failures(struct conn *conn)
{
    struct conn_tx *tx = &conn->tx;

    if (tx->pending)
        return false;
    if (tx->answer_error != IWARP_NO_ERROR) {
        unsigned out = atomic_load(&conn->answers_out);

        conn_end_terminate_read(conn, tx->answer_error, &conn->answers[out & conn->answer_mask],
                                tx->answer_done);
        return true;
    }
    if (tx->request_failed) {
        request_fail(conn, STATUS_ACCESS_VIOLATION);
        return true;
    }
    if (tx->end_after_batch) {
        conn_queue_retire(conn->initiator, conn->ops->complete_requests, conn->qp);
        conn_end_terminate(conn, IWARP_ERR_RDMAP_LOCAL, NULL, 0);
        return true;
    }
    return false;
}

/* True: more to do. False: nothing left, or the socket is full, or the connection ends. */
static bool batch_send(struct conn *conn)
{
    struct conn_batch b;
    enum sent sent;

    if (!batch_build(conn, &b)) {
        tx_batch_release(&b, conn);
        batch_failures(conn);
        return false;
    }
    atomic_store_explicit(&conn->fpdu_sent, true, memory_order_relaxed);
    atomic_fetch_add_explicit(&conn->counters->out_frames, b.frame_count, memory_order_relaxed);
    sent = batch_out(conn, &b);
    USDT(sendmsg, conn, b.frame_count, b.octets, b.sent);
    if (sent == SENT_BLOCKED) {
        if (tx_batch_keep(conn, &b)) {
            /* The copies and holds went along; only answers' sources are let go. */
            tx_batch_release_answers(conn, conn->tx.pending);
            return false;
        }
        tx_batch_release(&b, conn);
        conn_end(conn, HOW_RST, R(LOCAL_FAULT, NO_MEMORY), STATUS_INSUFFICIENT_RESOURCES);
        return false;
    }
    tx_batch_release(&b, conn);
    if (sent == SENT_LOST)
        return false;
    return !batch_failures(conn);
}

/* Is there anything for a batch? It spares the last look the work of building an empty one. */
static bool is_due(struct conn *conn)
{
    const struct conn_tx *tx = &conn->tx;

    return tx->wr || conn_queue_peek(conn->initiator) ||
           atomic_load(&conn->answers_in) != atomic_load(&conn->answers_out) ||
           atomic_load_explicit(&conn->nudge, memory_order_relaxed) == NUDGE_DUE;
}

bool tx_work(struct conn *conn)
{
    struct conn_tx *tx = &conn->tx;
    /* The Reply waits for the move: what it leads to would meet the old shard's timers. */
    bool moving = atomic_load(&conn->state) == CONN_MOVING && !RED("conn-reply-before-move");

    if (atomic_load(&conn->tx_error) || conn_first_fpdu_waits(conn) || (!moving && !out_send(conn)))
        return false;
    if (!conn_is_open(conn)) { /* nothing can be queued yet */
        atomic_store(&conn->flush_tx, false);
        return false;
    }
    if (atomic_load(&conn->tx_hold)) {
        if (atomic_exchange(&conn->flush_tx, false))
            requests_cancel(conn); /* nothing has begun */
        if (atomic_load(&conn->fin_wanted) && !conn_queue_peek(conn->initiator))
            fin_send(conn);
        return false;
    }
    if (!pending_send(conn) || batch_failures(conn))
        return false;
    if (tx->local_waiting && !atomic_exchange(&conn->local_over, false))
        return false;
    tx->local_waiting = false;
    /* The load spares each turn the exchange; who sets it kicks afterwards. */
    if (atomic_load(&conn->flush_tx) && atomic_exchange(&conn->flush_tx, false) &&
        !requests_flush(conn))
        return false;
    for (int i = 0; i < TX_HELPINGS; i++) {
        if (atomic_load(&conn->requests_failed) && !(tx->wr && tx->offset))
            requests_cancel(conn);
        if (!is_due(conn) || !batch_send(conn)) {
            /* A Read that was opened while the peer's FIN came in gets no Response. */
            if (atomic_load(&conn->fin_received) &&
                atomic_load(&conn->reads_opened) != atomic_load(&conn->reads_done))
                conn_kick(&conn->rx.dir, 0);
            if (!tx->pending && !tx->wr && atomic_load(&conn->fin_wanted) &&
                !conn_queue_peek(conn->initiator) &&
                atomic_load(&conn->answers_in) == atomic_load(&conn->answers_out))
                fin_send(conn);
            return false;
        }
        if (atomic_load_explicit(&tx->dir.word, memory_order_relaxed) & DIR_END)
            return true;
    }
    return true;
}

/* ---- the end -------------------------------------------------------------------------------- */

void tx_end(struct conn *conn)
{
    struct conn_tx *tx = &conn->tx;
    struct conn_batch *b = tx->pending;

    if (conn->active && engine_timer_cancel(&conn->first_timer))
        conn_unref(conn);
    nudge_end(conn);
    os_mutex_lock(&conn->lock);
    if (conn->how == HOW_DRAIN && conn->tail_length) {
        struct conn_out *out = atomic_load(&conn->out);
        size_t rest = b ? tx_batch_fpdu_rest(b) : out ? out->length - out->sent : 0;

        if (rest) {
            uint8_t *tail = malloc(rest + conn->tail_length);

            if (tail) {
                if (b) {
                    size_t at = 0;

                    for (int i = b->iov_first; i < b->iov_count && at < rest; i++) {
                        size_t n = b->iov[i].len < rest - at ? b->iov[i].len : rest - at;

                        memcpy(tail + at, b->iov[i].base, n);
                        at += n;
                    }
                } else {
                    memcpy(tail, out->octets + out->sent, rest);
                }
                memcpy(tail + rest, conn->tail, conn->tail_length);
                conn_tail_free(conn);
                conn->tail = tail;
                conn->tail_length += (uint32_t)rest;
            } else {
                conn->tail_length = 0;
            }
        }
    }
    os_mutex_unlock(&conn->lock);
    tx->pending = NULL;
    if (b)
        tx_batch_free(b, conn);
}
