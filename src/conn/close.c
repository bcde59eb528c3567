// SPDX-License-Identifier: MIT
/*
 * Every ending. The first cause wins (conn_end): it fixes how the socket ends, the reason and the
 * statuses, and sets END on both directions. When both owners have let go, the home shard flushes
 * the queues in order, raises what is still owed (connect, accept, complete connect, the disconnect
 * event, the disconnect request) and ends the socket:
 *
 *   HOW_RST     at once
 *   HOW_FIN     both FINs were exchanged, or nothing is owed to the peer
 *   HOW_DRAIN   the tail (a Terminate, a refusing Reply) goes out, then FIN; what the peer still
 *               sends is discarded until its FIN or drain_ms, since unread octets would make the
 *               kernel reset the connection and destroy the tail
 *   HOW_LINGER  local close: until the octets of completed requests are acknowledged, linger_ms
 *               pass without progress, or linger_total_ms altogether, since a peer may acknowledge
 *               an octet a second; then FIN if the peer's FIN was in, else RST
 *
 * Only the home shard's thread touches the descriptor from the flush on.
 */
#include <ntstatus.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/red.h"
#include "conn/conn_internal.h"

/* How often a lingering close looks at the unacknowledged octets, at first and at most. */
#define LINGER_LOOK_MS     1u
#define LINGER_LOOK_MAX_MS 10u
#define DRAIN_HELPINGS     8 /* receives of one turn */

bool conn_end_locked(struct conn *conn, enum conn_how how, uint32_t reason, NTSTATUS status)
{
    if (conn->how != HOW_NONE)
        return false;
    conn->how = how;
    conn->reason = reason;
    conn->end_status = status;
    USDT(end, conn, how, reason, status);
    if (atomic_load(&conn->state) == CONN_NEW) {
        conn_state_set(conn, CONN_GONE);
        return false;
    }
    conn_timer_stop(conn);
    conn_state_set(conn, CONN_ENDING);
    return true;
}

bool conn_end_kick(struct conn *conn)
{
    if (atomic_load(&conn->state) != CONN_ENDING)
        return false;
    conn_kick(&conn->rx.dir, DIR_END);
    conn_kick(&conn->tx.dir, DIR_END);
    return true;
}

void conn_end(struct conn *conn, enum conn_how how, uint32_t reason, NTSTATUS status)
{
    os_mutex_lock(&conn->lock);
    conn_end_locked(conn, how, reason, status);
    os_mutex_unlock(&conn->lock);
    conn_end_kick(conn);
}

/* Lock held. Before the peer's Reply it is a connect that failed, whichever owner notices. */
static NTSTATUS lost_status(const struct conn *conn, int error)
{
    if (conn->active && atomic_load(&conn->state) <= CONN_WAIT_REPLY &&
        !RED("conn-lost-request-aborts"))
        return conn_status_from_connect(error);
    return error == -ETIMEDOUT ? STATUS_IO_TIMEOUT : STATUS_CONNECTION_ABORTED;
}

void conn_lost(struct conn *conn, int error)
{
    os_mutex_lock(&conn->lock);
    if (error == -ETIMEDOUT && !RED("conn-timeout-cancels"))
        conn->first_status = STATUS_IO_TIMEOUT;
    conn_end_locked(conn, HOW_RST, conn_reason_socket(error), lost_status(conn, error));
    os_mutex_unlock(&conn->lock);
    conn_end_kick(conn);
}

bool conn_tail_set(struct conn *conn, const uint8_t *octets, size_t length)
{
    uint8_t *tail = length <= sizeof conn->tail_room ? conn->tail_room : malloc(length);

    conn->tail = tail;
    conn->tail_length = tail ? (uint32_t)length : 0;
    if (tail)
        memcpy(tail, octets, length);
    return tail != NULL;
}

void conn_tail_free(struct conn *conn)
{
    if (conn->tail != conn->tail_room)
        free(conn->tail);
    conn->tail = NULL;
}

/* Ends with the Terminate whose header and body stand in octets[length]. */
static void end_with(struct conn *conn, iwarp_error error, uint8_t *octets, size_t length,
                     unsigned cause)
{
    uint32_t crc = iwarp_crc32c_init();
    enum reason_source source;

    if (conn->crc)
        crc = iwarp_crc32c(crc, octets, length);
    length += iwarp_fpdu_put_trailer_state(
        octets + length, (uint32_t)length - IWARP_FPDU_LENGTH_LEN, conn->crc, crc);
    os_mutex_lock(&conn->lock);
    /* Nothing can follow our FIN: then the error is only told here. */
    source = cause ? REASON_LOCAL_FAULT
             : atomic_load(&conn->fin_sent) && !RED("conn-terminate-behind-fin")
                 ? REASON_VIOLATION
                 : REASON_TERMINATE_SENT;
    if (conn_end_locked(conn, HOW_DRAIN, reason_make(source, error, cause),
                        cause ? STATUS_INSUFFICIENT_RESOURCES : STATUS_CONNECTION_ABORTED)) {
        if (!atomic_load(&conn->fin_sent))
            conn_tail_set(conn, octets, length);
        log_info("connection: %s: %s", conn->tail ? "terminated" : "an error behind our FIN",
                 iwarp_error_text(error));
    }
    os_mutex_unlock(&conn->lock);
    conn_end_kick(conn);
}

void conn_end_terminate(struct conn *conn, iwarp_error error, const uint8_t *ulpdu,
                        uint32_t ulpdu_length)
{
    uint8_t octets[IWARP_FPDU_TERMINATE_MAX + IWARP_FPDU_TRAILER_MAX];

    end_with(conn, error, octets, iwarp_terminate_put(octets, error, ulpdu, ulpdu_length), 0);
}

void conn_end_no_memory(struct conn *conn)
{
    uint8_t octets[IWARP_FPDU_TERMINATE_MAX + IWARP_FPDU_TRAILER_MAX];

    end_with(conn, IWARP_ERR_RDMAP_LOCAL, octets,
             iwarp_terminate_put(octets, IWARP_ERR_RDMAP_LOCAL, NULL, 0), REASON_CAUSE_NO_MEMORY);
}

void conn_end_terminate_read(struct conn *conn, iwarp_error error, const struct conn_answer *answer,
                             uint32_t done)
{
    uint8_t octets[IWARP_FPDU_TERMINATE_MAX + IWARP_FPDU_TRAILER_MAX];

    end_with(conn, error, octets,
             iwarp_terminate_put_read(octets, error, answer->msn, &answer->request, done), 0);
}

void conn_raise_disconnected(struct conn *conn, uint32_t reason)
{
    if (!conn->established || conn->event_raised || conn->closed)
        return;
    if (conn->local_disconnect && !RED("event_after_local_disconnect"))
        return;
    conn->event_raised = true;
    conn->ops->disconnected(conn->up, reason);
}

void conn_direction_dead(struct conn *conn, unsigned bit)
{
    unsigned before = atomic_fetch_or(&conn->dead, bit);

    if ((before | bit) != 3u || before == 3u)
        return;
    conn_ref(conn);
    engine_run(atomic_load(&conn->home), &conn->final);
}

/* Lock held. Everything that is in the queues completes. */
static void flush_queues(struct conn *conn)
{
    if (conn->initiator)
        conn_queue_flush(conn->initiator, conn->first_status, conn->reason, conn->ops->local_drop,
                         conn->ops->complete_requests, conn->qp);
    if (conn->receive) {
        /* Receives leave in order: the one a message had begun to fill is the oldest. */
        NTSTATUS first = conn->rx.current ? conn->rx.current_status : STATUS_CANCELLED;

        conn->rx.current = NULL;
        conn_queue_flush(conn->receive, first, conn->reason, NULL, conn->ops->complete_receives,
                         conn->qp);
    }
    conn->first_status = STATUS_CANCELLED;
}

void conn_late_flush(struct conn *conn)
{
    os_mutex_lock(&conn->lock);
    if (atomic_load(&conn->flushed))
        flush_queues(conn);
    os_mutex_unlock(&conn->lock);
}

/*
 * Both FINs are there, but the completion of a Send promises more than that TCP took it: it gets
 * the time to come true, no longer than a disconnect may take.
 */
static bool final_waits(struct conn *conn)
{
    uint32_t ms = conn->options->disconnect_ms ? conn->options->disconnect_ms : 1000;

    if (conn->how != HOW_FIN || !conn->bound || RED("final-does-not-wait") || !meaning_waits(conn))
        return false;
    if (conn->final_until_us == 0)
        conn->final_until_us = os_now_us() + (uint64_t)ms * 1000;
    if (os_now_us() >= conn->final_until_us)
        return false;
    engine_timer_set(&conn->final_timer, 1000);
    return true;
}

void conn_final_fired(struct engine_timer *timer)
{
    struct conn *conn = (struct conn *)(void *)((char *)timer - offsetof(struct conn, final_timer));

    conn_final(&conn->final);
}

/* On the home shard; both directions are DEAD. */
void conn_final(struct engine_work *work)
{
    struct conn *conn = (struct conn *)(void *)((char *)work - offsetof(struct conn, final));
    NTSTATUS status;

    if (engine_self() != atomic_load(&conn->home)) { /* it moved meanwhile */
        engine_run(atomic_load(&conn->home), &conn->final);
        return;
    }
    if (final_waits(conn))
        return; /* the reference goes on to the timer */
    os_mutex_lock(&conn->lock);
    if (conn->bound) {
        /* First the flag, then the queues: a poster that comes now sees it, or is seen. */
        atomic_store(&conn->flushed, true);
        meaning_end(conn);
        if (conn->qp)
            conn->ops->over(conn->qp);
        flush_queues(conn);
    } else {
        meaning_end(conn);
    }
    status = conn->closed ? STATUS_CANCELLED : conn->end_status;
    if (!conn->established) {
        if (conn->active && !conn->bound)
            conn->ops->connected(conn->up, status);
        else if (conn->bound)
            conn->ops->established(conn->up, status);
    }
    conn_raise_disconnected(conn, conn->reason);
    conn->ops->ended(conn->up, status);
    conn_state_set(conn, CONN_CLOSING);
    conn->linger_unacked = -1;
    if (conn->how == HOW_DRAIN)
        conn_timer_arm(conn, TIMER_CLOSING, conn->options->drain_ms);
    os_mutex_unlock(&conn->lock);
    closing_step(conn);
    conn_unref(conn);
}

/* The socket goes; nothing of the connection runs any more. */
static void dispose(struct conn *conn, bool abort_it)
{
    os_mutex_lock(&conn->lock);
    conn_timer_stop(conn);
    conn_state_set(conn, CONN_GONE);
    os_mutex_unlock(&conn->lock);
    if (conn->watching) {
        engine_watch_del(&conn->watch);
        if (abort_it)
            os_tcp_abort(conn->fd);
        else
            os_tcp_close(conn->fd);
        conn_unref(conn);       /* the watch's; the caller has one of its own */
    } else if (conn->fd >= 0) { /* it could not be watched */
        os_tcp_abort(conn->fd);
    }
    conn->ops->closed(conn->up);
}

/* What was queued for the flush is free for this once the flush has run. */
static void drain_again(struct engine_work *work)
{
    struct conn *conn = (struct conn *)(void *)((char *)work - offsetof(struct conn, final));

    conn->drain_queued = false;
    closing_step(conn);
    conn_unref(conn);
}

/* Sends the tail, half-closes, discards. True: the peer's FIN (or an error) is in. */
static bool drain(struct conn *conn)
{
    while (conn->tail_sent < conn->tail_length) {
        struct os_iov iov = {conn->tail + conn->tail_sent, conn->tail_length - conn->tail_sent};
        ssize_t n = os_tcp_send(conn->fd, &iov, 1);

        if (n == -EAGAIN)
            break;
        if (n < 0)
            return true;
        conn->tail_sent += (uint32_t)n;
    }
    if (conn->tail_sent == conn->tail_length && !conn->tail_shut) {
        conn->tail_shut = true;
        os_tcp_shutdown_send(conn->fd);
    }
    if (RED("terminate_not_drained"))
        return true;
    for (int i = 0; i < DRAIN_HELPINGS; i++) {
        ssize_t n = os_tcp_recv(conn->fd, engine_staging(), ENGINE_STAGING);

        if (n == -EAGAIN)
            return false;
        if (n <= 0)
            return true;
    }
    /* A peer that streams on must not keep this thread from its other work: our own timer, or the
     * peer itself, which is to read the Terminate. */
    if (!conn->drain_queued) {
        conn->drain_queued = true;
        conn_ref(conn);
        conn->final.run = drain_again;
        engine_run(atomic_load(&conn->home), &conn->final);
    }
    return false;
}

static bool linger_over(const struct conn *conn, uint64_t now)
{
    const struct options *o = conn->options;

    return now - conn->linger_progress_us >= (uint64_t)o->linger_ms * 1000 ||
           (o->linger_total_ms && !RED("linger-total-unbounded") &&
            now - conn->linger_began_us >= (uint64_t)o->linger_total_ms * 1000);
}

/* True: everything is acknowledged, or it took too long. */
static bool linger(struct conn *conn)
{
    int unacked = os_tcp_unacked(conn->fd);
    uint64_t now = os_now_us();
    struct os_addr peer;
    bool over;

    if (unacked <= 0 || RED("close_does_not_linger"))
        return true;
    /* Reset by the peer: a socket that has none any more gets no acknowledgement. */
    if (os_tcp_peer(conn->fd, &peer) < 0 && !RED("linger_after_reset"))
        return true;
    if (conn->linger_unacked < 0)
        conn->linger_began_us = now;
    if (unacked != conn->linger_unacked) {
        conn->linger_unacked = unacked;
        conn->linger_progress_us = now;
        conn->linger_look_ms = LINGER_LOOK_MS;
    }
    over = linger_over(conn, now);
    if (!over) {
        os_mutex_lock(&conn->lock);
        conn_timer_arm(conn, TIMER_CLOSING, conn->linger_look_ms);
        if (conn->linger_look_ms < LINGER_LOOK_MAX_MS)
            conn->linger_look_ms++;
        os_mutex_unlock(&conn->lock);
    }
    return over;
}

/* One step of ending the socket: from the flush, an event or the timer, on the home shard. */
void closing_step(struct conn *conn)
{
    bool expired;

    if (atomic_load(&conn->state) != CONN_CLOSING)
        return;
    switch (conn->how) {
    case HOW_DRAIN:
        os_mutex_lock(&conn->lock);
        expired = conn->timer_kind == TIMER_CLOSING && os_now_us() + 500 >= conn->timer_due_us;
        os_mutex_unlock(&conn->lock);
        if (drain(conn) || expired)
            dispose(conn, false);
        break;
    case HOW_LINGER:
        if (linger(conn))
            dispose(conn, !atomic_load(&conn->fin_received) || RED("conn-close-resets-after-fin"));
        break;
    case HOW_FIN:
        dispose(conn, false);
        break;
    default:
        dispose(conn, true);
        break;
    }
}

/* ---- the consumer's calls ------------------------------------------------------------------- */

NTSTATUS conn_disconnect(struct conn *conn, bool *done)
{
    bool over;

    *done = false;
    os_mutex_lock(&conn->lock);
    if (!conn->established || conn->closed || conn->local_disconnect) {
        os_mutex_unlock(&conn->lock);
        return STATUS_CONNECTION_INVALID;
    }
    conn->local_disconnect = true;
    /* It may have ended by itself: then the answer follows the flush, or nothing is left to do. */
    over = conn->how != HOW_NONE;
    *done = over && atomic_load(&conn->flushed);
    if (!over) {
        atomic_store(&conn->fin_wanted, true);
        conn_timer_arm(conn, TIMER_DISCONNECT, conn->options->disconnect_ms);
    }
    os_mutex_unlock(&conn->lock);
    if (!over)
        conn_kick(&conn->tx.dir, 0);
    return STATUS_SUCCESS;
}

void conn_overrun(struct conn *conn)
{
    os_mutex_lock(&conn->lock);
    switch (atomic_load(&conn->state)) {
    case CONN_NEW:
    case CONN_UNDECIDED:
        break;
    default:
        conn_end_locked(conn, HOW_RST, R(LOCAL_FAULT, CQ_OVERRUN), STATUS_INTERNAL_ERROR);
        break;
    }
    os_mutex_unlock(&conn->lock);
    conn_end_kick(conn);
}

/* The implicit reject of an undecided connector: a Reply with R=1, then FIN. Lock held. */
static void refuse_locked(struct conn *conn)
{
    struct iwarp_mpa_frame reply;
    uint8_t octets[IWARP_MPA_FRAME_MAX];

    iwarp_mpa_refuse(&conn->request, &conn->config, &reply);
    conn_tail_set(conn, octets, iwarp_mpa_put(octets, &reply));
    conn_end_locked(conn, HOW_DRAIN, R(LOCAL_CLOSE, REJECTED), STATUS_CANCELLED);
}

void conn_close(struct conn *conn)
{
    bool never;

    conn_ref(conn);
    os_mutex_lock(&conn->lock);
    never = !conn->started && !conn->closed;
    conn->closed = true;
    switch (atomic_load(&conn->state)) {
    case CONN_NEW:
        conn_state_set(conn, CONN_GONE);
        break;
    case CONN_UNDECIDED:
        refuse_locked(conn);
        break;
    case CONN_OPEN:
        conn_end_locked(conn, HOW_LINGER, R(LOCAL_CLOSE, CLOSED), STATUS_CANCELLED);
        break;
    case CONN_ENDING:
    case CONN_CLOSING:
    case CONN_GONE:
        break;
    default:
        conn_end_locked(conn, HOW_RST, R(LOCAL_CLOSE, CLOSED), STATUS_CANCELLED);
        break;
    }
    os_mutex_unlock(&conn->lock);
    conn_end_kick(conn);
    if (never)
        conn->ops->closed(conn->up);
    conn_unref(conn);
}
