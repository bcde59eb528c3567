// SPDX-License-Identifier: MIT
/*
 * From a socket to an FPDU stream: TCP connect or accept, MPA Request and Reply, the consumer's
 * decision, the ready-to-receive message. Here: the active side, and what the receive owner does
 * for both; the passive side's calls are in startup_passive.c.
 *
 *   active   CONNECTING - WAIT_REPLY - DECIDE - COMPLETING - OPEN
 *   passive  WAIT_REQUEST - UNDECIDED - (MOVING) - WAIT_FIRST - OPEN
 *
 * The receive owner reads exactly the startup frame and nothing behind it: the socket is not read
 * past the Reply until the consumer completes. The consumer's calls (accept, reject, complete) come
 * on any thread and change the state under the lock; what they want sent stands in conn->out, which
 * the transmit owner sends before anything else.
 */
#include <ntstatus.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/red.h"
#include "conn/conn_internal.h"

#define RETRY_WITHIN_US 1000000u
uint32_t startup_clamp(uint32_t value, uint32_t limit)
{
    if (RED("conn-read-limits-uncapped"))
        return value;
    return value < limit ? value : limit;
}

void startup_configure(struct conn *conn, const struct conn_binding *binding)
{
    const struct options *o = conn->options;

    conn->config = (struct iwarp_mpa_config){
        .revision = (uint8_t)o->mpa_revision,
        .crc = o->crc != 0,
        .peer_to_peer = o->p2p != 0,
        .ird = (uint16_t)startup_clamp(binding ? binding->inbound_reads : 0, o->max_inbound_reads),
        .ord =
            (uint16_t)startup_clamp(binding ? binding->outbound_reads : 0, o->max_outbound_reads),
    };
}

void startup_bind(struct conn *conn, const struct conn_binding *binding)
{
    conn->qp = binding->qp;
    conn->initiator = binding->initiator;
    conn->receive = binding->receive;
}

bool startup_keep(uint8_t **to, uint32_t *length, const void *data, uint32_t data_length)
{
    if (data_length) {
        *to = malloc(data_length);
        if (!*to && !RED("startup-no-memory-unseen"))
            return false;
        memcpy(*to, data, data_length);
    }
    *length = data_length;
    return true;
}

void conn_socket_options(int fd, const struct options *options)
{
    os_tcp_set_user_timeout_ms(fd, options->user_timeout_ms);
    if (options->keepalive_s)
        os_tcp_set_keepalive_s(fd, options->keepalive_s);
}

bool startup_parser(struct conn *conn, enum iwarp_mpa_kind kind)
{
    conn->parser = malloc(sizeof *conn->parser);
    if (conn->parser)
        iwarp_mpa_parser_init(conn->parser, kind, conn->config.revision);
    return conn->parser != NULL;
}

bool startup_rings(struct conn *conn, uint32_t read_limit, uint32_t answer_limit)
{
    uint32_t reads = 1, answers = 1;

    /* Powers of two, so that the counters may wrap; one more than the limit, since the
     * ready-to-receive Read has a slot even when no Read is allowed. */
    while (reads < read_limit + 1)
        reads *= 2;
    while (answers < answer_limit)
        answers *= 2;
    conn->read_limit = read_limit;
    conn->read_mask = reads - 1;
    conn->answer_limit = answer_limit;
    conn->answer_mask = answers - 1;
    conn->reads = calloc(reads, sizeof *conn->reads);
    conn->answers = calloc(answers, sizeof *conn->answers);
    return conn->reads && conn->answers;
}

/* Lock held. The stream is up. */
static void established_locked(struct conn *conn)
{
    if (conn->established)
        return;
    conn->established = true;
    if (atomic_load(&conn->state) != CONN_ENDING)
        conn_state_set(conn, CONN_OPEN);
    conn_timer_stop(conn);
    conn->ops->established(conn->up, STATUS_SUCCESS);
    if (atomic_load(&conn->fin_wanted))
        conn_timer_arm(conn, TIMER_DISCONNECT, conn->options->disconnect_ms);
}

void startup_established(struct conn *conn)
{
    os_mutex_lock(&conn->lock);
    /* Without a ready-to-receive message the accept ends with the Reply, but the stream is open for
     * us only after the peer's first FPDU. */
    established_locked(conn);
    os_mutex_unlock(&conn->lock);
}

/* ---- active --------------------------------------------------------------------------------- */

/* Nothing was started: the connection is as new. */
static void connect_undo(struct conn *conn)
{
    free(conn->own_private);
    conn->own_private = NULL;
    conn->own_private_length = 0;
    free(conn->parser);
    conn->parser = NULL;
    conn->qp = NULL;
    conn->initiator = conn->receive = NULL;
}

/* A new socket that is connecting: 0, or -errno with what that is in *status. conn->fd may be open
 * after a failure, too. */
static int tcp_connect(struct conn *conn, const struct os_addr *local, const struct os_addr *peer,
                       NTSTATUS *status)
{
    int octets = (int)conn->options->tcp_buffer;
    int err;

    conn->fd = os_tcp_socket((enum os_family)peer->family);
    *status = conn_status_from_connect(conn->fd);
    if (conn->fd < 0)
        return conn->fd;
    os_tcp_set_buffers(conn->fd, octets, octets);
    err = conn->shares_port ? os_tcp_share(conn->fd) : 0;
    if (err == 0)
        err = os_tcp_bind(conn->fd, local);
    *status =
        RED("conn-bind-as-connect") ? conn_status_from_connect(err) : conn_status_from_bind(err);
    if (err)
        return err;
    err = os_tcp_connect(conn->fd, peer);
    *status = conn_status_from_connect(err);
    return err == -EINPROGRESS ? 0 : err;
}

/* Lock held, and the state set: who lets the queue pair die from now on ends the connection itself.
 * conn_end_kick() follows. */
void startup_end_if_dead(struct conn *conn, const struct conn_binding *binding)
{
    if (binding->dead && atomic_load(binding->dead) && !RED("conn-dead-before-it-began"))
        conn_end_locked(conn, HOW_RST, R(LOCAL_FAULT, CQ_OVERRUN), STATUS_INTERNAL_ERROR);
}

NTSTATUS conn_connect(struct conn *conn, const struct os_addr *local, const struct os_addr *peer,
                      const struct conn_binding *binding)
{
    NTSTATUS status;
    int err;

    startup_configure(conn, binding);
    conn->active = true;
    conn->shares_port = binding->shares_port;
    startup_bind(conn, binding);
    if (!startup_keep(&conn->own_private, &conn->own_private_length, binding->private_data,
                      binding->private_length) ||
        !startup_parser(conn, IWARP_MPA_REPLY)) {
        connect_undo(conn);
        return STATUS_INSUFFICIENT_RESOURCES;
    }
    err = tcp_connect(conn, local, peer, &status);
    if (err)
        goto failed;
    os_mutex_lock(&conn->lock);
    conn->peer = *peer;
    conn->local = *local;
    os_tcp_local(conn->fd, &conn->local);
    conn->started = true;
    conn_state_set(conn, CONN_CONNECTING);
    conn->group = binding->group;
    err = conn_watch(conn, binding->home);
    if (err) {
        status = conn_status_from_connect(err);
        conn->started = false;
        conn_state_set(conn, CONN_NEW);
    } else {
        conn_timer_arm(conn, TIMER_CONNECT, conn->options->connect_ms);
        startup_end_if_dead(conn, binding);
    }
    conn_ref(conn);
    os_mutex_unlock(&conn->lock);
    conn_end_kick(conn);
    conn_unref(conn);
    if (!err)
        return STATUS_SUCCESS;
failed:
    if (conn->fd >= 0)
        os_tcp_close(conn->fd);
    conn->fd = -1;
    connect_undo(conn);
    return status;
}

/* The attempt is over; status goes to NdkConnect. */
static void connect_failed(struct conn *conn, enum conn_how how, uint32_t reason, NTSTATUS status)
{
    conn_end(conn, how, reason, status);
}

/*
 * A peer that only knows revision 1 closes TCP on a Request of revision 2. Once, and only when that
 * happens within a second and before any octet of a Reply, the attempt starts over with a new
 * connection from the same local endpoint.
 */
static bool may_retry(struct conn *conn)
{
    bool may;

    os_mutex_lock(&conn->lock);
    may = atomic_load(&conn->state) == CONN_WAIT_REPLY && conn->config.revision == 2 &&
          conn->options->retry_v1 && !conn->retried && conn->parser->have == 0 &&
          os_now_us() - conn->request_sent_us < RETRY_WITHIN_US;
    if (may) {
        conn->retried = true;
        conn_state_set(conn, CONN_RETRYING);
    }
    os_mutex_unlock(&conn->lock);
    if (may) {
        log_info("connection: the peer closed on MPA revision 2: one more attempt with revision 1");
        conn_ref(conn);
        engine_run(atomic_load(&conn->home), &conn->retry);
    }
    return may;
}

/* On the home shard; in this state neither owner touches the descriptor. */
void startup_retry(struct engine_work *work)
{
    struct conn *conn = (struct conn *)(void *)((char *)work - offsetof(struct conn, retry));
    NTSTATUS status;
    int err;

    os_mutex_lock(&conn->lock);
    if (atomic_load(&conn->state) != CONN_RETRYING) {
        os_mutex_unlock(&conn->lock);
        conn_unref(conn);
        return;
    }
    engine_watch_del(&conn->watch);
    os_tcp_abort(conn->fd);
    conn->watching = false;
    conn_unref(conn); /* the watch's */
    conn->config.revision = 1;
    iwarp_mpa_parser_init(conn->parser, IWARP_MPA_REPLY, 1);
    atomic_store(&conn->writable, false);
    atomic_store(&conn->hangup, false);
    err = tcp_connect(conn, &conn->local, &conn->peer, &status);
    if (err == 0) {
        conn_state_set(conn, CONN_CONNECTING);
        err = conn_watch(conn, atomic_load(&conn->home));
        status = conn_status_from_connect(err);
    }
    if (err)
        conn_end_locked(conn, HOW_RST, conn_reason_socket(err), status);
    os_mutex_unlock(&conn->lock);
    conn_end_kick(conn);
    conn_unref(conn);
}

/* TCP is up: the Request goes out. */
static bool send_request(struct conn *conn)
{
    uint8_t octets[IWARP_MPA_FRAME_MAX];
    size_t length;

    conn_socket_options(conn->fd, conn->options);
    conn->tx.mulpdu =
        0; /* a retry's peer may have another segment size; read with the first FPDU */
    iwarp_mpa_make_request(&conn->config, &conn->request);
    conn->request.private_data = conn->own_private;
    conn->request.private_len = (uint16_t)conn->own_private_length;
    length = iwarp_mpa_put(octets, &conn->request);
    conn->request.private_data = NULL;
    if (length == 0 || !conn_set_out(conn, octets, (uint32_t)length, OUT_PLAIN)) {
        connect_failed(conn, HOW_RST, R(LOCAL_FAULT, NO_MEMORY), STATUS_INSUFFICIENT_RESOURCES);
        return false;
    }
    os_mutex_lock(&conn->lock);
    conn->request_sent_us = os_now_us();
    if (atomic_load(&conn->state) == CONN_CONNECTING)
        conn_state_set(conn, CONN_WAIT_REPLY);
    os_mutex_unlock(&conn->lock);
    conn_kick(&conn->tx.dir, 0);
    return true;
}

static bool connecting(struct conn *conn)
{
    int err;

    if (!atomic_load(&conn->writable))
        return false;
    err = os_tcp_connect_result(conn->fd);
    if (err) {
        connect_failed(conn, HOW_RST, conn_reason_socket(err), conn_status_from_connect(err));
        return false;
    }
    os_mutex_lock(&conn->lock);
    meaning_list(conn);
    os_mutex_unlock(&conn->lock);
    return send_request(conn);
}

/* A whole Reply is in. */
static void judge_reply(struct conn *conn, const struct iwarp_mpa_frame *reply)
{
    struct iwarp_mpa_agreed agreed;
    enum iwarp_mpa_fault fault = IWARP_MPA_FAULT_NONE;
    iwarp_error error = IWARP_NO_ERROR;
    enum iwarp_verdict verdict;

    memset(&agreed, 0, sizeof agreed);
    verdict = iwarp_mpa_judge(&conn->request, &conn->config, reply, &agreed, &error, &fault);
    os_mutex_lock(&conn->lock);
    if (!startup_keep(&conn->private_data, &conn->private_length, reply->private_data,
                      reply->private_len) ||
        (verdict == IWARP_OK && !startup_rings(conn, agreed.ord, agreed.ird))) {
        conn_end_locked(conn, HOW_RST, R(LOCAL_FAULT, NO_MEMORY), STATUS_INSUFFICIENT_RESOURCES);
        os_mutex_unlock(&conn->lock);
        conn_end_kick(conn);
        return;
    }
    conn->agreed = agreed;
    conn->crc = RED("conn-crc-by-own-option") ? conn->config.crc : agreed.crc;
    if (verdict == IWARP_OK && atomic_load(&conn->state) == CONN_WAIT_REPLY) {
        conn_timer_stop(conn);
        if (conn->options->first_fpdu_delay_us && !RED("first-fpdu-not-delayed"))
            conn->first_fpdu_us = os_now_us() + conn->options->first_fpdu_delay_us;
        conn_state_set(conn, CONN_DECIDE);
        conn_timer_arm(conn, TIMER_ESTABLISH, conn->options->establish_ms);
        conn->ops->connected(conn->up, STATUS_SUCCESS);
        os_mutex_unlock(&conn->lock);
        return;
    }
    os_mutex_unlock(&conn->lock);
    if (verdict == IWARP_REFUSE)
        conn_end(conn, HOW_DRAIN, R(REFUSED, REPLY_REJECTED), STATUS_CONNECTION_REFUSED);
    else if (verdict == IWARP_TERMINATE)
        conn_end_terminate(conn, error, NULL, 0);
    else
        conn_end(conn, HOW_RST, R(VIOLATION, BAD_STARTUP_FRAME), STATUS_CONNECTION_REFUSED);
}

/* ---- the receive owner ---------------------------------------------------------------------- */

/* The peer's frame, octet for octet and not one further. */
static bool read_frame(struct conn *conn, NTSTATUS lost)
{
    for (;;) {
        uint8_t octets[IWARP_MPA_FRAME_MAX];
        size_t want = iwarp_mpa_parser_want(conn->parser), consumed;
        struct iwarp_mpa_frame frame;
        ssize_t n = os_tcp_recv(conn->fd, octets, want);
        enum iwarp_verdict verdict;

        if (n == -EAGAIN)
            return false;
        if (n <= 0) {
            if (may_retry(conn))
                return false;
            if (n < 0 && conn->active && !RED("conn-lost-reply-refuses"))
                lost = conn_status_from_connect((int)n);
            conn_end(conn, HOW_RST, n ? conn_reason_socket((int)n) : R(PEER_FIN, FIN_IN_STARTUP),
                     lost);
            return false;
        }
        verdict = iwarp_mpa_parse(conn->parser, octets, (size_t)n, &consumed, &frame);
        if (verdict == IWARP_MORE)
            continue;
        if (verdict != IWARP_OK) {
            log_info("connection: MPA startup: %s", iwarp_mpa_fault_text(conn->parser->fault));
            conn_end(conn, HOW_FIN, R(VIOLATION, BAD_STARTUP_FRAME), lost);
            return false;
        }
        if (atomic_load(&conn->state) == CONN_WAIT_REPLY)
            judge_reply(conn, &frame);
        else
            startup_request(conn, &frame);
        return true;
    }
}

/* While the consumer decides: has the peer gone? Nothing is read. */
static void watch_decision(struct conn *conn, bool passive)
{
    int n = os_tcp_peek(conn->fd);

    if (n == -EAGAIN)
        return;
    if (n > 0 && !passive)
        return; /* a peer that speaks first: read once the consumer completes */
    if (n > 0)
        conn_end(conn, HOW_RST, R(VIOLATION, REPLY_TRAILING), STATUS_CONNECTION_ABORTED);
    else
        conn_end(conn, HOW_RST, n ? conn_reason_socket(n) : R(PEER_FIN, FIN_IN_STARTUP),
                 STATUS_CONNECTION_ABORTED);
}

bool startup_receive(struct conn *conn)
{
    switch (atomic_load(&conn->state)) {
    case CONN_CONNECTING:
        return connecting(conn);
    case CONN_WAIT_REPLY:
        return read_frame(conn, STATUS_CONNECTION_REFUSED);
    case CONN_WAIT_REQUEST:
        return read_frame(conn, STATUS_CONNECTION_ABORTED);
    case CONN_DECIDE:
        watch_decision(conn, false);
        return false;
    case CONN_UNDECIDED:
        watch_decision(conn, true);
        return false;
    default:
        return false;
    }
}

/* ---- completing ----------------------------------------------------------------------------- */

/* Lock held: the status CompleteConnect gets in any state but DECIDE. */
static NTSTATUS complete_refusal(const struct conn *conn)
{
    /* Without an accepting Reply (which made the rings) there never was anything to complete. */
    if (!conn->active || (!conn->reads && !RED("conn-failed-connect-completes")) ||
        conn->established || conn->closed || conn->how == HOW_NONE)
        return STATUS_CONNECTION_INVALID;
    if (reason_source(conn->reason) == REASON_TIMEOUT)
        return STATUS_IO_TIMEOUT;
    if (conn->end_status == STATUS_CONNECTION_ABORTED)
        return STATUS_CONNECTION_ABORTED;
    if (conn->end_status == STATUS_INTERNAL_ERROR)
        return STATUS_INTERNAL_ERROR;
    return STATUS_CONNECTION_INVALID;
}

NTSTATUS conn_complete(struct conn *conn, bool *done)
{
    uint8_t octets[IWARP_FPDU_RTR_READ_LEN];
    uint32_t length = 0;
    int then = OUT_PLAIN;

    *done = false;
    os_mutex_lock(&conn->lock);
    if (atomic_load(&conn->state) != CONN_DECIDE) {
        NTSTATUS status = complete_refusal(conn);

        os_mutex_unlock(&conn->lock);
        return status;
    }
    conn_timer_stop(conn);
    if (conn->agreed.rtr == IWARP_RTR_READ) {
        struct conn_read *read = &conn->reads[0];

        memset(read, 0, sizeof *read);
        read->request.sink_stag = 0x80000001u;
        read->request.source_stag = 1;
        length = (uint32_t)iwarp_rdmap_put_rtr_read(octets, read->request.sink_stag,
                                                    read->request.source_stag, conn->crc);
        iwarp_track_tx_take(&conn->tx.track, IWARP_QN_READ_REQUEST);
        atomic_store(&conn->reads_opened, 1);
    } else if (conn->agreed.rtr == IWARP_RTR_WRITE) {
        length = (uint32_t)iwarp_rdmap_put_rtr_write(octets, 1, conn->crc);
        then = OUT_ESTABLISHES;
    }
    nudge_begin(conn);
    atomic_store(&conn->fpdu_sent, length != 0);
    conn->tx.frames = length != 0;
    meaning_begin(conn);
    conn->bound = true;
    if (length && !conn_set_out(conn, octets, length, then)) {
        atomic_store(&conn->reads_opened, 0);
        conn_end_locked(conn, HOW_RST, R(LOCAL_FAULT, NO_MEMORY), STATUS_INSUFFICIENT_RESOURCES);
        os_mutex_unlock(&conn->lock);
        conn_end_kick(conn);
        return STATUS_INSUFFICIENT_RESOURCES;
    }
    if (length == 0) {
        *done = true;
        conn->established = true;
        conn->ops->completed(conn->up);
        conn_state_set(conn, CONN_OPEN);
    } else {
        if (!RED("rtr-frame-uncounted"))
            atomic_fetch_add_explicit(&conn->counters->out_frames, 1, memory_order_relaxed);
        conn_state_set(conn, CONN_COMPLETING);
        conn_timer_arm(conn, TIMER_ESTABLISH, conn->options->establish_ms);
    }
    os_mutex_unlock(&conn->lock);
    conn_kick(&conn->tx.dir, 0);
    conn_kick(&conn->rx.dir, 0);
    return STATUS_SUCCESS;
}

/* Lock held: a startup timer ran out. */
void startup_deadline(struct conn *conn)
{
    switch (conn->timer_kind) {
    case TIMER_CONNECT:
        conn->timer_kind = TIMER_NONE;
        conn_end_locked(conn, HOW_RST, R(TIMEOUT, CONNECT_TIMER), STATUS_IO_TIMEOUT);
        break;
    case TIMER_REQUEST:
        conn->timer_kind = TIMER_NONE;
        conn_end_locked(conn, HOW_RST, R(TIMEOUT, REQUEST_TIMER), STATUS_CONNECTION_ABORTED);
        break;
    case TIMER_ESTABLISH:
        conn->timer_kind = TIMER_NONE;
        conn_end_locked(conn, HOW_RST, R(TIMEOUT, ESTABLISH_TIMER), STATUS_IO_TIMEOUT);
        break;
    default:
        break;
    }
}
