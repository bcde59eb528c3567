// SPDX-License-Identifier: MIT
/*
 * The passive side of the startup: an accepted descriptor, the peer's Request, and the consumer's
 * decision. Reading the Request is the receive owner's (startup.c), as is the first FPDU; accept
 * and reject come on any thread and change the state under the lock. NdkReject of the active side
 * stands here too: one decision, two roles.
 */
#include <ntstatus.h>
#include <stdlib.h>
#include <string.h>

#include "base/red.h"
#include "conn/conn_internal.h"

bool conn_incoming(struct conn *conn, int fd, const struct os_addr *peer, struct engine_shard *home)
{
    int err;

    startup_configure(conn, NULL);
    conn->fd = fd;
    if (!startup_parser(conn, IWARP_MPA_REQUEST)) {
        os_tcp_close(fd);
        conn->fd = -1;
        return false;
    }
    os_mutex_lock(&conn->lock);
    if (conn->closed) { /* by the listener's close, before it could start */
        os_mutex_unlock(&conn->lock);
        os_tcp_abort(fd);
        conn->fd = -1;
        return false;
    }
    conn->peer = *peer;
    os_tcp_local(fd, &conn->local);
    conn->started = true;
    atomic_store(&conn->tx_hold, !RED("first_fpdu_not_awaited"));
    conn_state_set(conn, CONN_WAIT_REQUEST);
    err = conn_watch(conn, home);
    if (err == 0) {
        meaning_list(conn); /* only what ends through conn_final() may stand there */
        if (!RED("startup-request-untimed"))
            conn_timer_arm(conn, TIMER_REQUEST, conn->options->request_ms);
    } else {
        conn->started = false;
        conn_state_set(conn, CONN_NEW);
    }
    os_mutex_unlock(&conn->lock);
    if (err) {
        os_tcp_close(fd);
        conn->fd = -1;
        return false;
    }
    return true;
}

void startup_request(struct conn *conn, const struct iwarp_mpa_frame *request)
{
    /* The Initiator has no Reply yet: nothing may follow its Request. */
    if (os_tcp_peek(conn->fd) > 0 && !RED("request_trailing_unseen")) {
        conn_end(conn, HOW_RST, R(VIOLATION, REPLY_TRAILING), STATUS_CONNECTION_ABORTED);
        return;
    }
    os_mutex_lock(&conn->lock);
    conn->request = *request;
    conn->request.private_data = NULL;
    if (!startup_keep(&conn->private_data, &conn->private_length, request->private_data,
                      request->private_len)) {
        conn_end_locked(conn, HOW_RST, R(LOCAL_FAULT, NO_MEMORY), STATUS_INSUFFICIENT_RESOURCES);
    } else if (request->markers) {
        struct iwarp_mpa_frame reply;
        uint8_t octets[IWARP_MPA_FRAME_MAX];

        iwarp_mpa_refuse(&conn->request, &conn->config, &reply);
        conn_tail_set(conn, octets, iwarp_mpa_put(octets, &reply));
        conn_end_locked(conn, HOW_DRAIN, R(VIOLATION, MARKERS), STATUS_CONNECTION_ABORTED);
    } else if (atomic_load(&conn->state) == CONN_WAIT_REQUEST) {
        conn_timer_stop(conn);
        conn_state_set(conn, CONN_UNDECIDED);
        /* What the peer asked for, in our view, until the accept negotiates it. */
        conn->agreed.ird = (uint16_t)startup_clamp(request->enhanced ? request->ord : 0,
                                                   conn->options->max_inbound_reads);
        conn->agreed.ord = (uint16_t)startup_clamp(request->enhanced ? request->ird : 0,
                                                   conn->options->max_outbound_reads);
        conn->ops->requested(conn->up);
    }
    os_mutex_unlock(&conn->lock);
    conn_end_kick(conn);
}

/* Lock held: the accepted connection is on its shard; the Reply may go. */
void startup_moved(struct conn *conn)
{
    conn_state_set(conn, CONN_WAIT_FIRST);
    if (conn->agreed.rtr != IWARP_RTR_NONE)
        conn_timer_arm(conn, TIMER_ESTABLISH, conn->options->establish_ms);
}

/* Lock held: there is nothing to decide. ABORTED when there was, and it ended without our doing. */
static NTSTATUS decision_refusal(const struct conn *conn)
{
    bool was = conn->active ? conn->reads != NULL : conn->started;

    if (conn->bound && !RED("conn-decided-twice"))
        return STATUS_CONNECTION_INVALID; /* it was decided */
    return was && conn->how != HOW_NONE && !conn->closed && !conn->established &&
                   (reason_source(conn->reason) != REASON_LOCAL_CLOSE ||
                    RED("conn-decided-is-aborted"))
               ? STATUS_CONNECTION_ABORTED
               : STATUS_CONNECTION_INVALID;
}

NTSTATUS conn_accept(struct conn *conn, const struct conn_binding *binding)
{
    struct iwarp_mpa_frame reply;
    uint8_t octets[IWARP_MPA_FRAME_MAX];
    enum iwarp_mpa_fault fault;
    uint32_t length;
    bool here;

    os_mutex_lock(&conn->lock);
    if (atomic_load(&conn->state) != CONN_UNDECIDED) {
        NTSTATUS status = decision_refusal(conn);

        os_mutex_unlock(&conn->lock);
        return status;
    }
    startup_configure(conn, binding);
    /* A Read as ready-to-receive message would need an inbound limit of 1, and the peer would see
     * one. */
    if (conn->config.ird == 0 && (conn->request.rtr & IWARP_RTR_WRITE) &&
        !RED("conn-limit-0-with-read-rtr"))
        conn->config.rtr = IWARP_RTR_WRITE;
    if (iwarp_mpa_answer(&conn->request, &conn->config, &reply, &conn->agreed, &fault) !=
        IWARP_OK) {
        os_mutex_unlock(&conn->lock);
        return STATUS_CONNECTION_ABORTED;
    }
    reply.private_data = binding->private_data;
    reply.private_len = (uint16_t)binding->private_length;
    length = (uint32_t)iwarp_mpa_put(octets, &reply);
    if (!startup_rings(conn, conn->agreed.ord,
                       conn->agreed.ird_slots > conn->agreed.ird ? conn->agreed.ird_slots
                                                                 : conn->agreed.ird) ||
        length == 0 ||
        !conn_set_out(conn, octets, length,
                      conn->agreed.rtr == IWARP_RTR_NONE || RED("accept-ends-with-reply")
                          ? OUT_ESTABLISHES
                          : OUT_PLAIN)) {
        free(conn->reads);
        free(conn->answers);
        conn->reads = NULL;
        conn->answers = NULL;
        os_mutex_unlock(&conn->lock);
        return STATUS_INSUFFICIENT_RESOURCES;
    }
    conn->crc = conn->agreed.crc;
    startup_bind(conn, binding);
    meaning_begin(conn);
    conn->bound = true;
    conn->move_to = binding->home;
    conn->move_group = binding->group;
    conn_state_set(conn, CONN_MOVING);
    here = atomic_load(&conn->home) == binding->home && !binding->group;
    if (here)
        startup_moved(conn);
    startup_end_if_dead(conn, binding);
    conn_ref(conn);
    os_mutex_unlock(&conn->lock);
    conn_end_kick(conn);
    if (!here && engine_self() != atomic_load(&conn->home)) {
        engine_run(atomic_load(&conn->home), &conn->move);
        return STATUS_SUCCESS;
    }
    if (!here) {
        conn_move_now(conn);
    } else {
        conn_kick(&conn->tx.dir, 0);
        conn_kick(&conn->rx.dir, 0);
    }
    conn_unref(conn);
    return STATUS_SUCCESS;
}

NTSTATUS conn_reject(struct conn *conn, const void *data, uint32_t length)
{
    NTSTATUS status = STATUS_SUCCESS;

    os_mutex_lock(&conn->lock);
    switch (atomic_load(&conn->state)) {
    case CONN_UNDECIDED: {
        struct iwarp_mpa_frame reply;
        uint8_t octets[IWARP_MPA_FRAME_MAX];

        iwarp_mpa_refuse(&conn->request, &conn->config, &reply);
        reply.private_data = data;
        reply.private_len = (uint16_t)length;
        if (!conn_tail_set(conn, octets, iwarp_mpa_put(octets, &reply))) {
            status = STATUS_INSUFFICIENT_RESOURCES;
            break;
        }
        conn_end_locked(conn, HOW_DRAIN, R(LOCAL_CLOSE, REJECTED), STATUS_CONNECTION_REFUSED);
        break;
    }
    case CONN_DECIDE:
        /* There is no frame for it: FIN before any FPDU. */
        conn_end_locked(conn, HOW_DRAIN, R(LOCAL_CLOSE, REJECTED), STATUS_CONNECTION_REFUSED);
        break;
    default:
        status = decision_refusal(conn);
        break;
    }
    os_mutex_unlock(&conn->lock);
    conn_end_kick(conn);
    return status;
}
