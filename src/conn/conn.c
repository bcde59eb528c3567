// SPDX-License-Identifier: MIT
/*
 * A connection's identity: creation, references, timer, the descriptor's events, posts, queries.
 * What happens in the states is in startup.c, rx.c, tx.c and close.c.
 */
#include "conn/conn.h"

#include <ntstatus.h>
#include <stdlib.h>
#include <string.h>

#include "base/red.h"
#include "conn/conn_internal.h"

/* ---- the receive owner's work by state ------------------------------------------------------ */

static bool receive_work(struct conn *conn)
{
    enum conn_state state = atomic_load(&conn->state);

    /* The queues are there in these states, seen through the state that tells of them. */
    if (state >= CONN_CONNECTING && state != CONN_WAIT_REQUEST && state != CONN_UNDECIDED &&
        state <= CONN_OPEN && atomic_load(&conn->flush_rx) &&
        atomic_exchange(&conn->flush_rx, false))
        rx_flush(conn);
    switch (state) {
    case CONN_WAIT_FIRST:
        /* The Reply first, whatever the new shard finds in the socket; out_send() kicks. */
        if (atomic_load(&conn->out) && !atomic_load(&conn->tx_error) && !RED("conn-reads-first"))
            return false;
        return rx_work(conn);
    case CONN_COMPLETING:
    case CONN_OPEN:
        return rx_work(conn);
    case CONN_CONNECTING:
    case CONN_WAIT_REPLY:
    case CONN_DECIDE:
    case CONN_WAIT_REQUEST:
    case CONN_UNDECIDED:
        return startup_receive(conn);
    default:
        return false;
    }
}

static void conn_after(struct engine_after *after)
{
    struct conn *conn = (struct conn *)(void *)((char *)after - offsetof(struct conn, after));

    atomic_store(&conn->after_owner, NULL);
    /* If the direction is over, the queues were or will be flushed, or the post has seen to it;
     * they may be gone with their QP. */
    if (!conn_kick(&conn->tx.dir, 0) && RED("after_flushes") && atomic_load(&conn->flushed))
        conn_late_flush(conn);
    if (atomic_load(&conn->held) && !RED("hold-not-released-behind"))
        conn_kick(&conn->rx.dir, 0);
    conn_unref(conn);
}

static void timer_fired(struct engine_timer *timer);
static void hold_fired(struct engine_timer *timer);
static void first_fired(struct engine_timer *timer);
static void move_run(struct engine_work *work);
static void resume_run(struct engine_work *work);
static void poke_run(struct engine_work *work);

struct conn *conn_new(const struct conn_ops *ops, void *up, const struct options *options,
                      struct conn_counters *counters)
{
    struct conn *conn = calloc(1, sizeof *conn);

    if (!conn)
        return NULL;
    atomic_init(&conn->references, 1);
    conn->ops = ops;
    conn->up = up;
    conn->options = options;
    conn->counters = counters;
    conn->fd = -1;
    conn_dir_init(&conn->rx.dir, conn, receive_work, rx_end);
    conn_dir_init(&conn->tx.dir, conn, tx_work, tx_end);
    iwarp_track_rx_init(&conn->rx.track);
    iwarp_track_tx_init(&conn->tx.track);
    conn->tx.answer_turn = true; /* a ready-to-receive Read is answered before anything else */
    conn->rx.most = ENGINE_STAGING;
    conn->rx.current_status = STATUS_CANCELLED;
    conn->first_status = STATUS_CANCELLED;
    conn->end_status = STATUS_CANCELLED;
    conn->after.run = conn_after;
    conn->final.run = conn_final;
    conn->move.run = move_run;
    conn->retry.run = startup_retry;
    conn->resume.run = resume_run;
    conn->poke.run = poke_run;
    os_mutex_init(&conn->lock);
    atomic_init(&conn->state, CONN_NEW);
    return conn;
}

void conn_ref(struct conn *conn)
{
    atomic_fetch_add(&conn->references, 1);
}

void conn_unref(struct conn *conn)
{
    if (atomic_fetch_sub(&conn->references, 1) != 1)
        return;
    free(atomic_load(&conn->out));
    free(conn->rx.partial.octets);
    free(conn->reads);
    free(conn->answers);
    free(conn->parser);
    free(conn->own_private);
    free(conn->private_data);
    conn_tail_free(conn);
    os_mutex_destroy(&conn->lock);
    free(conn);
}

/* ---- timer ---------------------------------------------------------------------------------- */

void conn_timer_arm(struct conn *conn, enum conn_timer_kind kind, uint32_t ms)
{
    if (ms == 0) {
        conn_timer_stop(conn);
        return;
    }
    conn->timer_kind = kind;
    conn->timer_due_us = os_now_us() + (uint64_t)ms * 1000;
    if (!engine_timer_set(&conn->timer, (uint64_t)ms * 1000))
        conn_ref(conn);
}

void conn_timer_stop(struct conn *conn)
{
    conn->timer_kind = TIMER_NONE;
    if (engine_timer_cancel(&conn->timer))
        conn_unref(conn);
}

static void timer_fired(struct engine_timer *timer)
{
    struct conn *conn = (struct conn *)(void *)((char *)timer - offsetof(struct conn, timer));
    bool closing = false;

    os_mutex_lock(&conn->lock);
    /* It may have been re-armed or stopped between its firing and this lock. */
    if (conn->timer_kind != TIMER_NONE && os_now_us() + 500 >= conn->timer_due_us) {
        switch (conn->timer_kind) {
        case TIMER_CLOSING:
            closing = true;
            break;
        case TIMER_DISCONNECT:
            conn->timer_kind = TIMER_NONE;
            conn_end_locked(conn, HOW_RST, R(TIMEOUT, DISCONNECT_TIMER), STATUS_IO_TIMEOUT);
            break;
        default:
            startup_deadline(conn);
            break;
        }
    }
    os_mutex_unlock(&conn->lock);
    if (closing)
        closing_step(conn);
    else
        conn_end_kick(conn);
    conn_unref(conn);
}

/* A Send has waited for its receive long enough; the receive owner draws the conclusion. */
static void hold_fired(struct engine_timer *timer)
{
    struct conn *conn = (struct conn *)(void *)((char *)timer - offsetof(struct conn, hold_timer));

    /* Before the kick: whoever saw it armed meanwhile is kicked and looks again. */
    atomic_store(&conn->hold_armed, false);
    conn_kick(&conn->rx.dir, 0);
    conn_unref(conn);
}

/* The time before our first FPDU is over. */
static void first_fired(struct engine_timer *timer)
{
    struct conn *conn = (struct conn *)(void *)((char *)timer - offsetof(struct conn, first_timer));

    conn_kick(&conn->tx.dir, 0);
    conn_unref(conn);
}

bool conn_first_fpdu_waits(struct conn *conn)
{
    uint64_t now;

    if (conn->first_fpdu_us == 0)
        return false;
    now = os_now_us();
    if (now >= conn->first_fpdu_us) {
        conn->first_fpdu_us = 0;
        return false;
    }
    if (!engine_timer_set(&conn->first_timer, conn->first_fpdu_us - now))
        conn_ref(conn);
    return true;
}

void conn_hold_timer(struct conn *conn, uint32_t ms)
{
    /*
     * Armed already, it fires earlier than needed, and the owner arms it for the rest. To move it
     * at each Send that waits for a moment would wake the shard for each.
     */
    if (ms) {
        if (!atomic_exchange(&conn->hold_armed, true) &&
            !engine_timer_set(&conn->hold_timer, (uint64_t)ms * 1000))
            conn_ref(conn);
    } else if (atomic_load(&conn->hold_armed) && engine_timer_cancel(&conn->hold_timer)) {
        conn_unref(conn);
    }
}

/* ---- the descriptor ------------------------------------------------------------------------- */

/* Any thread: the receive owner, or who becomes it, looks. */
static void serve(struct conn *conn, unsigned events)
{
    if (atomic_load(&conn->state) == CONN_CONNECTING) {
        if (events & (OS_WRITABLE | OS_HANGUP))
            atomic_store(&conn->writable, true);
        conn_kick(&conn->rx.dir, 0);
        return;
    }
    if (events & (OS_HANGUP | OS_PEER_DONE))
        atomic_store(&conn->hangup, true);
    if (events & (OS_READABLE | OS_HANGUP | OS_PEER_DONE))
        conn_kick(&conn->rx.dir, 0);
    if (((events & OS_WRITABLE) && atomic_exchange(&conn->tx_blocked, false)) ||
        (atomic_load(&conn->tx_left) && atomic_exchange(&conn->tx_left, false)))
        conn_kick(&conn->tx.dir, 0);
}

static void watch_ready(struct engine_watch *watch, unsigned events)
{
    struct conn *conn = (struct conn *)(void *)((char *)watch - offsetof(struct conn, watch));

    conn_ref(conn);
    if (atomic_load(&conn->state) == CONN_CLOSING)
        closing_step(conn);
    else
        serve(conn, events);
    conn_unref(conn);
}

/* ---- progress by who polls ------------------------------------------------------------------ */

/* On the home shard: a poller has taken the event of a socket that is being ended. */
static void poke_run(struct engine_work *work)
{
    struct conn *conn = (struct conn *)(void *)((char *)work - offsetof(struct conn, poke));

    atomic_store(&conn->poke_queued, false);
    if (atomic_load(&conn->state) == CONN_CLOSING)
        closing_step(conn);
    conn_unref(conn);
}

static void hold(struct engine_watch *watch)
{
    conn_ref((struct conn *)(void *)((char *)watch - offsetof(struct conn, watch)));
}

/*
 * An event that was fetched before the state became CLOSING speaks of what the first closing_step()
 * finds by itself.
 */
static void polled(struct engine_watch *watch, unsigned events)
{
    struct conn *conn = (struct conn *)(void *)((char *)watch - offsetof(struct conn, watch));
    enum conn_state state = atomic_load(&conn->state);

    if (events == 0) {
        if (state == CONN_OPEN)
            conn_kick(&conn->rx.dir, 0);
    } else if (state != CONN_CLOSING) {
        serve(conn, events);
    } else if (!RED("conn-poller-keeps-closing") && !atomic_exchange(&conn->poke_queued, true)) {
        conn_ref(conn);
        engine_run(atomic_load(&conn->home), &conn->poke);
    }
    conn_unref(conn);
}

bool conn_group_poll(struct engine_group *group)
{
    bool any;

    conn_polls = true;
    any = engine_group_poll(group, hold, polled);
    conn_polls = false;
    return any;
}

static void timers_init(struct conn *conn, struct engine_shard *home)
{
    engine_timer_init(&conn->timer, home, timer_fired);
    engine_timer_init(&conn->hold_timer, home, hold_fired);
    engine_timer_init(&conn->first_timer, home, first_fired);
    nudge_init(conn, home);
    meaning_init(conn, home);
}

static int watch_add(struct conn *conn, struct engine_shard *home)
{
    return conn->group ? engine_watch_join(&conn->watch, conn->group, conn->fd, watch_ready)
                       : engine_watch_add(&conn->watch, home, conn->fd, watch_ready);
}

int conn_watch(struct conn *conn, struct engine_shard *home)
{
    int err;

    atomic_store(&conn->home, home);
    if (!conn->retried) /* a retry keeps the timer that is running */
        timers_init(conn, home);
    conn_ref(conn);
    conn->watching = true; /* before events can come */
    err = watch_add(conn, home);
    if (err) {
        conn->watching = false;
        conn_unref(conn);
    }
    return err;
}

/* On the old shard's thread: leaves its poll set, enters the new one's. */
static void move_run(struct engine_work *work)
{
    struct conn *conn = (struct conn *)(void *)((char *)work - offsetof(struct conn, move));

    conn_move_now(conn);
    conn_unref(conn);
}

void conn_move_now(struct conn *conn)
{
    int err;

    /* It ended meanwhile and its socket is being ended here, or is gone: it stays. */
    if (atomic_load(&conn->state) >= CONN_CLOSING)
        return;
    engine_watch_del(&conn->watch);
    os_mutex_lock(&conn->lock);
    conn_timer_stop(conn);
    atomic_store(&conn->home, conn->move_to);
    timers_init(conn, conn->move_to);
    conn->group = conn->move_group;
    err = watch_add(conn, conn->move_to);
    if (atomic_load(&conn->state) == CONN_MOVING)
        startup_moved(conn);
    if (err) {
        conn->watching = false;
        conn_end_locked(conn, HOW_RST, R(LOCAL_FAULT, NO_MEMORY), STATUS_INSUFFICIENT_RESOURCES);
    }
    os_mutex_unlock(&conn->lock);
    if (err)
        conn_unref(conn); /* the watch's; the caller has one of its own */
    if (conn_end_kick(conn))
        return;
    if (RED("conn-reads-first"))
        os_sleep_us(20000); /* the new shard has taken what there is by now */
    conn_kick(&conn->tx.dir, 0);
    conn_kick(&conn->rx.dir, 0);
}

bool conn_set_out(struct conn *conn, const uint8_t *octets, uint32_t length, int then)
{
    struct conn_out *out = malloc(sizeof *out + length);

    if (!out)
        return false;
    out->length = length;
    out->sent = 0;
    out->then = then;
    memcpy(out->octets, octets, length);
    atomic_store(&conn->out, out);
    return true;
}

/* ---- posts ---------------------------------------------------------------------------------- */

/* In a callback: what was posted waits for its return, and goes together. False: it is none. */
static bool post_waits(struct conn *conn)
{
    struct engine_shard *self = engine_self();
    struct engine_shard *none = NULL;

    if (!engine_in_item())
        return false;
    if (atomic_load(&conn->after_owner) == self)
        return true;
    conn_ref(conn);
    if (atomic_compare_exchange_strong(&conn->after_owner, &none, self)) {
        engine_after(&conn->after);
        return true;
    }
    /* Another shard's callback remembered it: this post does not wait for that callback. */
    conn_unref(conn);
    return false;
}

bool conn_post_kick(struct conn *conn)
{
    if (!post_waits(conn) && conn_kick(&conn->tx.dir, 0))
        return true;
    return !atomic_load(&conn->flushed);
}

/*
 * The receive is published: either this sees the hold, or whoever holds sees the receive. Many are
 * mostly posted one after the other, so where their poster comes back, from a callback or for a
 * poll, what waited is processed then, all at once.
 */
bool conn_receive_kick(struct conn *conn)
{
    if (atomic_load(&conn->held) && !RED("hold-not-released") &&
        (RED("receives-one-by-one") ||
         (!post_waits(conn) && !(conn->group && engine_group_ask(conn->group, &conn->watch)))))
        conn_kick(&conn->rx.dir, 0);
    return !atomic_load(&conn->flushed);
}

void conn_flush(struct conn *conn)
{
    atomic_store(&conn->flush_tx, true);
    atomic_store(&conn->flush_rx, true);
    conn_kick(&conn->tx.dir, 0);
    conn_kick(&conn->rx.dir, 0);
}

bool conn_flush_pending(const struct conn *conn)
{
    return atomic_load(&conn->flush_rx);
}

void conn_local_done(struct conn *conn, struct conn_wr *wr, NTSTATUS status)
{
    os_mutex_lock(&conn->lock);
    if (!atomic_load(&conn->flushed)) { /* else the flush completed it */
        conn_queue_finish(conn->initiator, wr, status, 0);
        conn_queue_retire(conn->initiator, conn->ops->complete_requests, conn->qp);
    }
    os_mutex_unlock(&conn->lock);
    atomic_store(&conn->local_over, true);
    /* Who ended the last access may be placing what another connection received. */
    conn_resume(conn);
}

void conn_resume(struct conn *conn)
{
    if (atomic_exchange(&conn->resume_queued, true))
        return;
    conn_ref(conn);
    engine_run(atomic_load(&conn->home), &conn->resume);
}

void conn_invalidated(struct conn *conn)
{
    atomic_store(&conn->invalidated, true);
    conn_resume(conn);
}

static void resume_run(struct engine_work *work)
{
    struct conn *conn = (struct conn *)(void *)((char *)work - offsetof(struct conn, resume));

    atomic_store(&conn->resume_queued, false);
    conn_kick(&conn->tx.dir, 0);
    conn_kick(&conn->rx.dir, 0);
    conn_unref(conn);
}

/* ---- queries -------------------------------------------------------------------------------- */

bool conn_may_complete(const struct conn *conn)
{
    return atomic_load(&conn->state) == CONN_DECIDE;
}

bool conn_is_open(const struct conn *conn)
{
    switch (atomic_load(&conn->state)) {
    case CONN_COMPLETING:
    case CONN_MOVING:
    case CONN_WAIT_FIRST:
    case CONN_OPEN:
        return true;
    default:
        return false;
    }
}

bool conn_takes_requests(const struct conn *conn)
{
    return conn_is_open(conn) && (!atomic_load(&conn->fin_sent) || RED("conn-sends-behind-fin"));
}

bool conn_stream(struct conn *conn, struct conn_stream *out)
{
    bool open;

    os_mutex_lock(&conn->lock);
    /* If it is, so is the descriptor, as long as the lock is held. */
    open = conn_is_open(conn) || RED("stream-of-the-ended");
    if (open)
        *out = (struct conn_stream){.fpdu_payload = tx_fpdu_payload(conn),
                                    .crc = conn->crc,
                                    .mpa_revision = conn->agreed.revision};
    os_mutex_unlock(&conn->lock);
    return open;
}

void conn_limits(struct conn *conn, uint32_t *inbound, uint32_t *outbound)
{
    os_mutex_lock(&conn->lock);
    *inbound = conn->agreed.ird;
    *outbound = conn->agreed.ord;
    os_mutex_unlock(&conn->lock);
}

/* Written before the state in which conn_takes_requests() is true. */
uint32_t conn_read_limit(const struct conn *conn)
{
    return conn->read_limit;
}

uint32_t conn_private_data(struct conn *conn, const uint8_t **data)
{
    uint32_t length;

    /* Written once, before the event that tells of it. */
    os_mutex_lock(&conn->lock);
    *data = conn->private_data;
    length = conn->private_length;
    os_mutex_unlock(&conn->lock);
    return length;
}

bool conn_addresses_locked(const struct conn *conn, struct os_addr *local, struct os_addr *peer)
{
    if (!conn->started)
        return false;
    *local = conn->local;
    *peer = conn->peer;
    return true;
}

bool conn_addresses(struct conn *conn, struct os_addr *local, struct os_addr *peer)
{
    bool known;

    os_mutex_lock(&conn->lock);
    known = conn_addresses_locked(conn, local, peer);
    os_mutex_unlock(&conn->lock);
    return known;
}

uint32_t conn_reason(struct conn *conn)
{
    uint32_t reason;

    os_mutex_lock(&conn->lock);
    reason = conn->reason;
    os_mutex_unlock(&conn->lock);
    return reason;
}

uint32_t conn_reason_locked(const struct conn *conn)
{
    return conn->reason;
}
