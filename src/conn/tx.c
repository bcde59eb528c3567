// SPDX-License-Identifier: MIT
/*
 * The transmit owner: sends the FPDUs of several requests and answers with one system call each
 * batch, which tx_build.c makes on this stack.
 *
 * What TCP does not take stays encoded: the batch moves to the heap and goes on from there when the
 * socket takes octets again; nothing is encoded or checksummed twice. A request is complete
 * (`local`) once TCP took its last octet. Without CRC, what of an answer TCP did not take is copied
 * before the call returns, so that no peer can hold a region of ours by not reading.
 */
#include <ntstatus.h>
#include <stdlib.h>
#include <string.h>

#include "base/red.h"
#include "base/usdt.h"
#include "conn/tx_batch.h"

#define TX_HELPINGS 8

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
    if (!conn->active)
        conn_kick(&conn->rx.dir, 0); /* what came waits for the Reply */
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

    if (!tx_build(conn, &b)) {
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
