// SPDX-License-Identifier: MIT
/*
 * What the receive owner does with a Send: the receive it takes, of this queue or through it of a
 * shared one; holding back while there is none; placing; the invalidation that a Send asks for.
 */
#include <ntstatus.h>
#include <stdio.h>

#include "base/red.h"
#include "conn/rx_internal.h"

/* The next receive: of this queue, or through it of a shared one (wait: see take_receive). */
struct conn_wr *rx_receive_next(struct conn *conn, bool wait)
{
    struct conn_wr *wr = conn_queue_peek(conn->receive);

    if (!wr && conn->ops->take_receive(conn->qp, wait))
        wr = conn_queue_peek(conn->receive);
    return wr;
}

static void receive_take(struct conn *conn, bool wait)
{
    struct conn_rx *rx = &conn->rx;

    rx->current = rx_receive_next(conn, wait);
    if (!rx->current)
        return;
    conn_queue_advance(conn->receive);
    rx->hold_spent = false; /* the next Send has the whole time again */
    rx->current_length = rx->current->length;
    rx->sge = rx->sge_offset = 0;
}

/*
 * A Send has met no receive: the connection is held back until one is posted or holdback_ms have
 * passed. True: held (rx->holding), or a receive was posted meanwhile (rx->current). False: the
 * time is over. The poster publishes its receive and then looks at `held`; here it is the other way
 * round. A shared queue has its own way of waking (srq.h): it knows who waits while rx->holding.
 */
static bool hold_back(struct conn *conn)
{
    struct conn_rx *rx = &conn->rx;
    uint32_t ms = conn->options->holdback_ms;

    if (ms == 0 || rx->hold_spent)
        return false;
    atomic_store(&conn->held, true);
    receive_take(conn, true);
    if (rx->current) {
        atomic_store(&conn->held, false);
        return true;
    }
    rx->holding = true;
    rx->hold_until_us = os_now_us() + (uint64_t)ms * 1000;
    conn_hold_timer(conn, ms);
    return true;
}

/* Looks again. False: still nothing, the segment goes on waiting. */
bool rx_hold_over(struct conn *conn)
{
    struct conn_rx *rx = &conn->rx;
    uint64_t now;
    bool over;

    if (!rx->holding)
        return true;
    if (!conn_queue_peek(conn->receive)) { /* else nobody need look at the clock */
        now = os_now_us();
        over = now >= rx->hold_until_us && !RED("hold-for-ever");
        if (!rx_receive_next(conn, !over)) {
            if (!over) {
                /* In milliseconds, not before: the timer may have been of an earlier Send. */
                if (now < rx->hold_until_us)
                    conn_hold_timer(conn, (uint32_t)((rx->hold_until_us - now) / 1000 + 1));
                return false;
            }
            rx->hold_spent = true;
        }
    }
    rx->holding = false;
    atomic_store(&conn->held, false);
    return true;
}

/* The message is whole (and what it invalidates is invalid): the receive completes. */
void rx_receive_complete(struct conn *conn, struct rx_run *run, unsigned opcode, uint32_t length,
                         uint32_t token)
{
    struct conn_rx *rx = &conn->rx;
    struct conn_completion *c = &run->list[run->count++];

    c->context = rx->current->context;
    c->status = STATUS_SUCCESS;
    c->octets = length;
    c->provider_code = 0;
    c->op = CONN_OP_RECEIVE;
    c->invalidated = iwarp_opcode_invalidates(opcode);
    c->token = token;
    c->solicited = iwarp_opcode_solicits(opcode) && !RED("solicited_send_unnoticed");
    rx->current = NULL;
    conn_queue_release_head(conn->receive);
    if (run->count == RX_COMPLETIONS)
        rx_run_flush(conn, run);
}

static void receive_failed(struct conn *conn, struct rx_run *run, NTSTATUS status,
                           iwarp_error error, const struct iwarp_segment *segment)
{
    conn->rx.current_status = status;
    rx_fail(conn, run, error, segment);
}

/* A Send that cannot be taken, in words. */
static void send_refused(struct conn *conn, iwarp_error error, const struct iwarp_segment *segment)
{
    char text[200];

    if (error == IWARP_ERR_UNTAG_NO_BUFFER)
        snprintf(text, sizeof text,
                 "a Send of the peer (message %u) met no receive (have 0 posted, need 1; "
                 "holdback_ms %u)",
                 segment->msn, conn->options->holdback_ms);
    else if (error == IWARP_ERR_UNTAG_LENGTH)
        snprintf(text, sizeof text,
                 "a Send of the peer is longer than its receive (have %u octets, need at least %u)",
                 conn->rx.current_length, segment->mo + segment->payload_len);
    else
        snprintf(text, sizeof text, "a Send of the peer is out of order: %s",
                 iwarp_error_text(error));
    conn->ops->note(conn->qp, text);
}

void rx_send_in(struct conn *conn, struct rx_run *run, const struct iwarp_segment *segment)
{
    struct conn_rx *rx = &conn->rx;
    iwarp_error error;
    uint32_t length;

    if (!rx->current)
        receive_take(conn, false);
    error = iwarp_track_send_check(&rx->track, segment, rx->current != NULL, rx->current_length);
    if (error == IWARP_ERR_UNTAG_NO_BUFFER && hold_back(conn)) {
        if (rx->holding) {
            run->stop = run->hold = true;
            return;
        }
        /* A receive was posted this very moment. */
        error = iwarp_track_send_check(&rx->track, segment, true, rx->current_length);
    }
    if (error != IWARP_NO_ERROR) {
        send_refused(conn, error, segment);
        receive_failed(conn, run,
                       error == IWARP_ERR_UNTAG_LENGTH && !RED("conn-short-receive-cancelled")
                           ? STATUS_BUFFER_OVERFLOW
                           : STATUS_CANCELLED,
                       error, segment);
        return;
    }
    if (segment->payload_len &&
        place_scatter(conn, rx->current, &rx->sge, &rx->sge_offset, segment->payload,
                      segment->payload_len, ACCESS_LOCAL_WRITE) != ACCESS_OK) {
        receive_failed(conn, run, STATUS_ACCESS_VIOLATION, IWARP_ERR_DDP_LOCAL, segment);
        return;
    }
    if (!iwarp_track_send_advance(&rx->track, segment, &length))
        return;
    if (iwarp_opcode_invalidates(segment->opcode) && !RED("remote-invalidation-ignored")) {
        bool pending = false;

        conn_reuse_drop(conn, &rx->reuse);
        if (conn->ops->invalidate(conn->qp, segment->inv_stag, true, &pending) != ACCESS_OK) {
            receive_failed(conn, run, STATUS_ACCESS_VIOLATION, IWARP_ERR_PROT_INVALIDATE, segment);
            return;
        }
        if (pending) {
            rx->waiting_length = length;
            rx->waiting_opcode = segment->opcode;
            rx->waiting_token = segment->inv_stag;
            rx->waiting = true;
            run->stop = true;
            return;
        }
    }
    rx_receive_complete(conn, run, segment->opcode, length, segment->inv_stag);
}
