// SPDX-License-Identifier: MIT
/*
 * The receive owner: one large receive into this thread's staging area, every whole FPDU in it
 * parsed, its CRC checked, its octets placed; completions are handed over once a batch, then the
 * transmit direction is kicked once if there is an answer to send.
 *
 * Only octets of an incomplete FPDU (or those behind one that waits) leave the staging area: into a
 * buffer of the connection, counted against a cap of the process (partial.c). Everything from the
 * wire is checked before it is used; an error ends the connection with a Terminate, the rest of the
 * process does not notice.
 */
#include <ntstatus.h>
#include <string.h>

#include "base/log.h"
#include "base/red.h"
#include "base/usdt.h"
#include "conn/rx_internal.h"

#define RX_HELPINGS 4 /* receives of one turn */

void rx_run_flush(struct conn *conn, struct rx_run *run)
{
    conn_reuse_drop(conn, &conn->rx.reuse); /* who is told may deregister */
    if (run->count) {
        meaning_received(conn);
        conn->ops->complete_receives(conn->qp, run->list, run->count);
    }
    run->count = 0;
    meaning_placed(conn);
    if (run->retire)
        conn_queue_retire(conn->initiator, conn->ops->complete_requests, conn->qp);
    run->retire = false;
}

static void run_end(struct conn *conn, struct rx_run *run)
{
    rx_run_flush(conn, run);
    if (run->kick)
        conn_kick(&conn->tx.dir, 0);
    run->kick = false;
}

void rx_fail(struct conn *conn, struct rx_run *run, iwarp_error error,
             const struct iwarp_segment *segment)
{
    run->stop = true;
    rx_run_flush(conn, run);
    conn_end_terminate(conn, error, segment ? segment->ulpdu : NULL,
                       segment ? segment->ulpdu_len : 0);
}

/* ---- Reads ---------------------------------------------------------------------------------- */

static void request_in(struct conn *conn, struct rx_run *run, const struct iwarp_segment *segment)
{
    unsigned in = atomic_load(&conn->answers_in);
    iwarp_error error = iwarp_track_request_check(
        &conn->rx.track, segment, in - atomic_load(&conn->answers_free), conn->answer_limit);
    struct conn_answer *answer;

    if (error != IWARP_NO_ERROR) {
        rx_fail(conn, run, error, segment);
        return;
    }
    answer = &conn->answers[in & conn->answer_mask];
    answer->request = segment->read;
    answer->msn = segment->msn;
    iwarp_track_request_advance(&conn->rx.track);
    atomic_store(&conn->answers_in, in + 1);
    run->kick = true;
}

/* The oldest open Read of ours, or NULL. */
static struct conn_read *oldest_read(struct conn *conn)
{
    unsigned done = atomic_load(&conn->reads_done);

    if (done == atomic_load(&conn->reads_opened))
        return NULL;
    return &conn->reads[done & conn->read_mask];
}

static void read_done(struct conn *conn, struct rx_run *run, struct conn_read *read)
{
    conn->rx.read_active = false;
    if (!read->wr) {
        atomic_fetch_add(&conn->reads_done, 1);
        startup_established(conn);
    } else {
        struct conn_wr *wr = read->wr;
        NTSTATUS status = STATUS_SUCCESS;

        if ((wr->flags & CONN_WR_INVALIDATE) && wr->sge_count &&
            !RED("read-invalidation-ignored")) {
            bool pending = false;

            conn_reuse_drop(conn, &conn->rx.reuse);
            if (conn->ops->invalidate(conn->qp, wr->sge[0].token, false, &pending) != ACCESS_OK)
                status = STATUS_INVALID_DEVICE_REQUEST;
            if (pending) { /* the Read completes when the last access has ended */
                conn->rx.waiting_read = wr;
                conn->rx.waiting = true;
                run->stop = true;
                return;
            }
        }
        conn_queue_finish(conn->initiator, wr, status, 0);
        atomic_fetch_add(&conn->reads_done, 1);
        run->retire = true;
        if (status != STATUS_SUCCESS) { /* an error completion ends the connection */
            atomic_store(&conn->requests_failed, true);
            rx_fail(conn, run, IWARP_ERR_RDMAP_LOCAL, NULL);
        }
    }
    run->kick = true;
}

static void response_in(struct conn *conn, struct rx_run *run, const struct iwarp_segment *segment)
{
    struct conn_rx *rx = &conn->rx;
    struct conn_read *read = oldest_read(conn);
    iwarp_error error;

    if (read && !rx->read_active) {
        iwarp_track_read_open(&rx->read, &read->request);
        rx->read_active = true;
        rx->read_sge = rx->read_sge_offset = 0;
    }
    error = iwarp_track_read_check(read ? &rx->read : NULL, segment);
    if (error == IWARP_NO_ERROR && segment->payload_len) {
        uint32_t need = ACCESS_LOCAL_WRITE;

        if (!conn->options->read_sink_not_required)
            need |= ACCESS_READ_SINK;
        if (!read->wr)
            error = IWARP_ERR_TAG_BOUNDS; /* the ready-to-receive Read has no memory */
        else if (place_scatter(conn, read->wr, &rx->read_sge, &rx->read_sge_offset,
                               segment->payload, segment->payload_len, need) != ACCESS_OK) {
            os_mutex_lock(&conn->lock);
            conn->first_status = STATUS_ACCESS_VIOLATION;
            os_mutex_unlock(&conn->lock);
            error = IWARP_ERR_DDP_LOCAL;
        }
    }
    if (error != IWARP_NO_ERROR) {
        rx_fail(conn, run, error, segment);
        return;
    }
    if (iwarp_track_read_advance(&rx->read, segment))
        read_done(conn, run, read);
}

/* No Response can come any more: open Reads end in error, later requests are cancelled. */
static void reads_fail(struct conn *conn)
{
    struct conn_read *read;
    NTSTATUS status = STATUS_IO_TIMEOUT;

    if (!oldest_read(conn))
        return;
    atomic_store(&conn->requests_failed, true);
    while ((read = oldest_read(conn)) != NULL) {
        if (read->wr)
            conn_queue_finish(conn->initiator, read->wr, status, R(PEER_FIN, FIN_WITH_READS));
        status = STATUS_CANCELLED;
        conn->rx.read_active = false;
        atomic_fetch_add(&conn->reads_done, 1);
    }
    conn_queue_retire(conn->initiator, conn->ops->complete_requests, conn->qp);
    conn_kick(&conn->tx.dir, 0);
}

/* ---- Terminate ------------------------------------------------------------------------------ */

static void terminate_in(struct conn *conn, struct rx_run *run, const struct iwarp_segment *segment)
{
    struct iwarp_terminate terminate;
    NTSTATUS status;
    unsigned done = atomic_load(&conn->reads_done);

    memset(&terminate, 0, sizeof terminate);
    iwarp_terminate_decode(segment, !conn->rx.first_seen && !atomic_load(&conn->fpdu_sent),
                           &terminate);
    status = conn_status_from_terminate(terminate.error);
    log_info("connection: the peer terminated: %s", iwarp_error_text(terminate.error));
    run->stop = true;
    rx_run_flush(conn, run);
    /* When it names one of our Reads, that one gets the status; else the oldest request does. */
    for (unsigned i = done; terminate.has_read && i != atomic_load(&conn->reads_opened) &&
                            !RED("terminated_read_unnamed");
         i++) {
        struct conn_read *read = &conn->reads[i & conn->read_mask];

        if (read->wr && read->request.sink_stag == terminate.read.sink_stag) {
            conn_queue_finish(conn->initiator, read->wr, status,
                              reason_make(REASON_TERMINATE_RECEIVED, terminate.error, 0));
            status = STATUS_CANCELLED;
            break;
        }
    }
    os_mutex_lock(&conn->lock);
    conn->first_status = RED("conn-terminate-cancels-first") ? STATUS_CANCELLED : status;
    conn_end_locked(conn, HOW_DRAIN, reason_make(REASON_TERMINATE_RECEIVED, terminate.error, 0),
                    STATUS_CONNECTION_ABORTED);
    os_mutex_unlock(&conn->lock);
    conn_end_kick(conn);
}

/* ---- segments ------------------------------------------------------------------------------- */

/* True: it is an agreed ready-to-receive message and nothing else. */
static bool first_fpdu(struct conn *conn, const struct iwarp_segment *segment)
{
    if (conn->agreed.rtr != IWARP_RTR_SEND)
        return false;
    if (segment->opcode == IWARP_OP_EMPTY)
        return true;
    if (segment->opcode == IWARP_OP_SEND && segment->last && segment->payload_len == 0 &&
        iwarp_track_send_check(&conn->rx.track, segment, true, 0) == IWARP_NO_ERROR) {
        uint32_t length;

        /* It uses up its MSN, no receive, no completion. */
        iwarp_track_send_advance(&conn->rx.track, segment, &length);
        return true;
    }
    return false;
}

static void segment_apply(struct conn *conn, struct rx_run *run,
                          const struct iwarp_segment *segment)
{
    switch (segment->opcode) {
    case IWARP_OP_WRITE:
        if (segment->payload_len) {
            enum access_result result = place_remote(conn, segment->stag, segment->to,
                                                     segment->payload, segment->payload_len);

            if (result != ACCESS_OK)
                rx_fail(conn, run, conn_error_from_write(result), segment);
        }
        break;
    case IWARP_OP_READ_REQUEST:
        request_in(conn, run, segment);
        break;
    case IWARP_OP_READ_RESPONSE:
        response_in(conn, run, segment);
        break;
    case IWARP_OP_TERMINATE:
        terminate_in(conn, run, segment);
        break;
    default:
        rx_send_in(conn, run, segment);
        break;
    }
}

static void segment_in(struct conn *conn, struct rx_run *run, const struct iwarp_segment *segment)
{
    bool first = !conn->rx.first_seen && segment->opcode != IWARP_OP_TERMINATE;

    if (first)
        conn->rx.first_seen = true;
    first = first && !conn->active;
    if (!first || !first_fpdu(conn, segment))
        segment_apply(conn, run, segment);
    if (!first)
        return;
    /* Only now, so that the Response to a ready-to-receive Read precedes what was posted, and a
     * FIN of ours. */
    atomic_store(&conn->tx_hold, false);
    run->kick = true;
    startup_established(conn);
}

/* Whole FPDUs of [octets, octets + length); how many octets were used. */
static size_t rx_parse(struct conn *conn, struct rx_run *run, const uint8_t *octets, size_t length)
{
    size_t at = 0;
    uint64_t frames = 0;

    while (at < length && !run->stop &&
           !(atomic_load_explicit(&conn->rx.dir.word, memory_order_relaxed) & DIR_END)) {
        struct iwarp_fpdu fpdu;
        struct iwarp_segment segment;
        unsigned flags = 0;
        enum iwarp_verdict verdict = iwarp_fpdu_parse(octets + at, length - at, conn->crc, &fpdu);

        if (verdict == IWARP_MORE)
            break;
        if (verdict != IWARP_OK) {
            rx_fail(conn, run, fpdu.error, NULL);
            break;
        }
        if (!conn->rx.first_seen && !conn->active && conn->agreed.rtr == IWARP_RTR_SEND)
            flags |= IWARP_DECODE_EMPTY;
        verdict = iwarp_rdmap_decode(fpdu.ulpdu, fpdu.ulpdu_len, flags, &segment);
        if (verdict == IWARP_OK) {
            USDT(receive, conn, segment.opcode, segment.msn, segment.payload_len, segment.last);
            segment_in(conn, run, &segment);
        } else if (verdict == IWARP_TERMINATE) {
            rx_fail(conn, run, segment.error, &segment);
        } else {
            run->stop = true;
            rx_run_flush(conn, run);
            conn_end(conn, HOW_FIN, R(VIOLATION, SEQUENCE), STATUS_CONNECTION_ABORTED);
        }
        if (run->hold)
            break; /* this FPDU stays at the front */
        at += fpdu.size;
        frames++;
        /* Processed, not merely received; one that waits counts when that is over. */
        if (!run->stop || (conn->rx.waiting && RED("placed-before-invalidation")))
            conn->frames_in++;
    }
    conn_reuse_drop(conn, &conn->rx.reuse);
    atomic_fetch_add_explicit(&conn->counters->in_frames, frames, memory_order_relaxed);
    return at;
}

/* ---- the ends that TCP reports -------------------------------------------------------------- */

static void fin_in(struct conn *conn, size_t left)
{
    enum conn_state state = atomic_load(&conn->state);

    conn->rx.fin = true;
    if ((left && !RED("fin_in_fpdu_unseen")) || conn->rx.track.in_message ||
        (conn->rx.read_active && conn->rx.read.begun)) {
        conn_end(conn, HOW_RST,
                 reason_make(REASON_VIOLATION, IWARP_ERR_MPA_LOST,
                             left ? REASON_CAUSE_FIN_IN_FPDU : REASON_CAUSE_FIN_IN_MESSAGE),
                 STATUS_CONNECTION_ABORTED);
        return;
    }
    if (state == CONN_COMPLETING || state == CONN_WAIT_FIRST) {
        conn_end(conn, HOW_FIN, R(PEER_FIN, FIN_IN_STARTUP),
                 state == CONN_WAIT_FIRST && !RED("conn-reject-aborts-accept")
                     ? STATUS_CONNECTION_REFUSED
                     : STATUS_CONNECTION_ABORTED);
        return;
    }
    os_mutex_lock(&conn->lock);
    atomic_store(&conn->fin_received, true);
    conn_raise_disconnected(conn, R(PEER_FIN, NOTHING));
    if (atomic_load(&conn->fin_sent) || RED("conn-peer-fin-flushes"))
        conn_end_locked(conn, HOW_FIN, R(PEER_FIN, NOTHING), STATUS_SUCCESS);
    os_mutex_unlock(&conn->lock);
    reads_fail(conn);
    conn_end_kick(conn);
}

/* Everything that had arrived is processed. */
static void lost(struct conn *conn, int error)
{
    int tx_error = atomic_load(&conn->tx_error);

    conn_lost(conn, tx_error ? tx_error : error);
}

/*
 * The peer has ended. A FIN, or a reset? A receive gives 0 for both when a FIN came before the
 * reset, or when a transmit of ours has taken the error from the socket, perhaps this very moment.
 * After a FIN alone the socket is not closed unless we have sent one too.
 */
static bool is_reset(struct conn *conn)
{
    return atomic_load(&conn->tx_error) ||
           (!atomic_load(&conn->fin_wanted) && os_tcp_is_closed(conn->fd) &&
            !RED("reset-taken-for-fin"));
}

/* The peer's FIN was read before, and something has happened. */
static void after_fin(struct conn *conn)
{
    if (is_reset(conn) && !RED("reset-behind-fin-unseen"))
        lost(conn, -ECONNRESET);
    else
        reads_fail(conn);
}

/* What waited for an invalidation goes on. False: it still waits. */
static bool waiting_over(struct conn *conn, struct rx_run *run)
{
    struct conn_rx *rx = &conn->rx;

    if (!rx->waiting)
        return true;
    if (!atomic_exchange(&conn->invalidated, false))
        return false;
    rx->waiting = false;
    if (!RED("placed-before-invalidation"))
        conn->frames_in++;
    if (rx->waiting_read) {
        conn_queue_finish(conn->initiator, rx->waiting_read, STATUS_SUCCESS, 0);
        rx->waiting_read = NULL;
        atomic_fetch_add(&conn->reads_done, 1);
        run->retire = run->kick = true;
    } else {
        rx_receive_complete(conn, run, rx->waiting_opcode, rx->waiting_length, rx->waiting_token);
    }
    return true;
}

/* NdkFlush: receives that no message has reached. One that is half filled cannot be taken back
 * without losing the stream, so that ends the connection. */
void rx_flush(struct conn *conn)
{
    struct conn_wr *wr;

    if (conn->rx.current) {
        conn_end(conn, HOW_RST, R(LOCAL_CLOSE, FLUSHED), STATUS_CANCELLED);
        return;
    }
    while ((wr = RED("srq-flushed-with-qp") ? rx_receive_next(conn, false)
                                            : conn_queue_peek(conn->receive)) != NULL) {
        struct conn_completion c = {
            .context = wr->context, .status = STATUS_CANCELLED, .op = CONN_OP_RECEIVE};

        conn_queue_advance(conn->receive);
        conn_queue_release_head(conn->receive);
        conn->ops->complete_receives(conn->qp, &c, 1);
    }
}

/* What stands at the front of the staging area, for one turn. */
struct rx_stage {
    uint8_t *octets;
    size_t have;
    size_t missing; /* not 0: octets [0, have) are still in the connection's buffer (partial.c), the
                       beginning of an FPDU that lacks so many */
    size_t used;    /* octets that were processed */
    bool progress;  /* an FPDU was processed */
    bool kept;      /* nothing is here: what waits stays in the connection's buffer */
};

static void stage_parse(struct conn *conn, struct rx_run *run, struct rx_stage *stage)
{
    size_t used = rx_parse(conn, run, stage->octets, stage->have);

    stage->have -= used;
    stage->used += used;
    stage->progress |= used != 0;
    if (used && stage->have)
        memmove(stage->octets, stage->octets + used, stage->have);
}

static void stage_begin(struct conn *conn, struct rx_run *run, struct rx_stage *stage)
{
    const uint8_t *octets;
    size_t length;

    stage->octets = engine_staging();
    stage->have = stage->used = 0;
    stage->progress = stage->kept = false;
    stage->missing = partial_missing(conn);
    if (stage->missing) {
        stage->have = conn->rx.partial.length;
        return;
    }
    /* Behind a Send that waited, perhaps many whole FPDUs: where they stand, until one waits again
     * or is not whole. */
    octets = partial_octets(conn, &length);
    if (length && !RED("partial-copied-each-receive")) {
        size_t used = rx_parse(conn, run, octets, length);

        stage->used = used;
        partial_use(conn, used);
        stage->kept = run->stop;
        stage->progress = used != 0;
    }
    if (stage->kept)
        return;
    stage->have = partial_load(conn, stage->octets);
    if (stage->have && RED("partial-copied-each-receive"))
        stage_parse(conn, run, stage);
}

/* So many octets came, behind those that are there. */
static void stage_add(struct conn *conn, struct rx_run *run, struct rx_stage *stage, size_t came)
{
    if (came < stage->missing) {
        if (!partial_append(conn, stage->octets + stage->have, came))
            run->stop = true;
        stage->missing -= came;
        stage->have += came;
        return;
    }
    if (stage->missing)
        partial_load(conn, stage->octets);
    stage->missing = 0;
    stage->have += came;
    stage_parse(conn, run, stage);
}

/* The room for the next receive of this turn, which has taken so much. */
static size_t turn_room(const struct conn *conn, const struct rx_stage *stage, size_t taken)
{
    size_t room = ENGINE_STAGING - stage->have, most = conn->rx.most;

    if (most == ENGINE_STAGING)
        return room;
    if (taken >= most)
        return 0;
    return most - taken < room ? most - taken : room;
}

bool rx_work(struct conn *conn)
{
    struct rx_run run;
    struct rx_stage stage;
    size_t taken;
    bool more = false;

    run.count = 0;
    run.retire = run.kick = run.stop = run.hold = false;
    if (conn->rx.fin) {
        after_fin(conn);
        return false;
    }
    if (!waiting_over(conn, &run) || !rx_hold_over(conn)) {
        /* Nothing is read meanwhile, not even the peer's end: what it saw completed is still to be
         * received. Transmit may have noticed that it is gone; then nobody waits for the hold. */
        if (atomic_load(&conn->tx_error))
            lost(conn, 0);
        return false;
    }
    stage_begin(conn, &run, &stage);
    taken = stage.used;
    for (int i = 0; !run.stop; i++) {
        size_t room = turn_room(conn, &stage, taken);
        ssize_t n;

        if (i == RX_HELPINGS || room == 0) {
            more = true;
            conn->rx.dir.yields = room == 0;
            break;
        }
        n = os_tcp_recv(conn->fd, stage.octets + stage.have, room);
        USDT(recv, conn, n);
        if (n == -EAGAIN && !atomic_load(&conn->tx_error))
            break;
        if (n <= 0) {
            run_end(conn, &run);
            partial_drop(conn);
            if (n == 0 && !is_reset(conn))
                fin_in(conn, stage.have);
            else
                lost(conn, n ? (int)n : -ECONNRESET);
            return false;
        }
        if (atomic_load_explicit(&conn->nudge, memory_order_relaxed) != NUDGE_OFF)
            nudge_octets_came(conn);
        atomic_fetch_add_explicit(&conn->counters->in_octets, (unsigned long long)n,
                                  memory_order_relaxed);
        taken += (size_t)n;
        stage_add(conn, &run, &stage, (size_t)n);
        if ((size_t)n < room && !atomic_load(&conn->hangup))
            break; /* drained; what comes later is a new edge */
    }
    if (!stage.missing && !stage.kept && (!run.stop || conn->rx.waiting || run.hold))
        partial_keep(conn, stage.octets, stage.have, stage.progress);
    if (run.hold || !run.stop)
        conn->rx.most = rx_most_next(conn->rx.most, run.hold, stage.used, taken);
    run_end(conn, &run);
    return more;
}

void rx_end(struct conn *conn)
{
    conn_hold_timer(conn, 0);
    if (conn->rx.holding) {
        if (!RED("srq-end-keeps-waiting"))
            conn->ops->stop_waiting(conn->qp);
    }
    partial_drop(conn);
}
