// SPDX-License-Identifier: MIT
/*
 * What the completion of a Send or a Write promises (docs/completions.md):
 *
 *   local    TCP took its last octet (default)
 *   placed   the other end has processed its last FPDU: the octets are in the peer's memory, or the
 *            peer's error is on its way. Only when both ends live in this process (and network
 *            namespace): found by the reversed pair of addresses. Otherwise as local
 *   acked    the peer's TCP has acknowledged its last octet, as sampled
 *
 * placed: the receiving end stores the number of FPDUs it has processed at its twin and queues the
 * twin's work once; it takes neither the twin's lock nor its queues. The twin passes its queue on
 * its own home shard. A report that came before the transmit owner had marked the request as sent
 * is made good by the owner itself, which passes the queue after it marked.
 *
 * Lock: pair_lock (leaf below conn->lock) guards the table and all twin pointers.
 */
#include <stdlib.h>

#include "base/red.h"
#include "conn/conn_internal.h"

#define BUCKETS 1024u
/* How often acknowledgements are sampled while requests wait for them. */
#define ACKED_FIRST_US 100u
#define ACKED_AGAIN_US 1000u

static os_mutex pair_lock = OS_MUTEX_INITIALIZER;
static struct conn *buckets[BUCKETS];

static struct conn **bucket_of(const struct os_addr *local, const struct os_addr *peer)
{
    return &buckets[(local->port * 31u + peer->port) % BUCKETS];
}

void meaning_list(struct conn *conn)
{
    struct conn **bucket = bucket_of(&conn->local, &conn->peer);

    os_mutex_lock(&pair_lock);
    if (!conn->twin_listed) {
        conn->twin_listed = true;
        conn->twin_next = *bucket;
        *bucket = conn;
    }
    os_mutex_unlock(&pair_lock);
}

/* pair_lock held. */
static struct conn *twin_find(const struct conn *conn)
{
    for (struct conn *c = *bucket_of(&conn->peer, &conn->local); c; c = c->twin_next)
        if (c != conn && os_addr_equal(&c->local, &conn->peer) &&
            os_addr_equal(&c->peer, &conn->local))
            return c;
    return NULL;
}

void meaning_begin(struct conn *conn)
{
    struct conn *twin;

    switch (conn->options->completion) {
    case MEANING_PLACED:
        os_mutex_lock(&pair_lock);
        twin = twin_find(conn);
        if (twin) {
            conn->twin = twin;
            twin->twin = conn;
            atomic_store(&twin->twin_waits, true);
            conn->meaning = MEANING_PLACED;
        }
        os_mutex_unlock(&pair_lock);
        break;
    case MEANING_ACKED:
        conn->meaning = MEANING_ACKED;
        break;
    default:
        break;
    }
}

static bool pass(struct conn *conn, uint64_t position)
{
    return conn_queue_pass(conn->initiator, position, conn->ops->complete_requests, conn->qp);
}

/* ---- placed --------------------------------------------------------------------------------- */

void meaning_placed(struct conn *conn)
{
    struct conn *twin;

    if (!atomic_load_explicit(&conn->twin_waits, memory_order_relaxed))
        return;
    os_mutex_lock(&pair_lock);
    twin = conn->twin;
    if (twin && atomic_load(&twin->placed) != conn->frames_in) {
        atomic_store(&twin->placed, conn->frames_in);
        if (!atomic_exchange(&twin->placed_queued, true)) {
            conn_ref(twin);
            engine_run(atomic_load(&twin->home), &twin->placed_work);
        }
    }
    os_mutex_unlock(&pair_lock);
}

/* On the home shard, where the end of the connection runs too. */
static void placed_run(struct engine_work *work)
{
    struct conn *conn = (struct conn *)(void *)((char *)work - offsetof(struct conn, placed_work));

    atomic_store(&conn->placed_queued, false);
    if (!atomic_load(&conn->flushed) && conn->initiator)
        pass(conn, atomic_load(&conn->placed));
    conn_unref(conn);
}

/* ---- acked ---------------------------------------------------------------------------------- */

/* Octets of ours that the peer's TCP has acknowledged; never too many: the stream may have grown
 * between the two looks. */
static uint64_t acked_octets(struct conn *conn)
{
    uint64_t stream = atomic_load(&conn->tx.stream);
    int unacked = os_tcp_unacked(conn->fd);

    if (unacked < 0 || RED("acked-at-once"))
        return stream;
    return stream > (uint64_t)unacked ? stream - (uint64_t)unacked : 0;
}

/* Not if it is armed: a stream of requests must not put the next look off for ever. */
static void acked_arm(struct conn *conn, uint64_t us)
{
    if (!atomic_exchange(&conn->acked_armed, true) && !engine_timer_set(&conn->acked_timer, us))
        conn_ref(conn);
}

static void acked_fired(struct engine_timer *timer)
{
    struct conn *conn = (struct conn *)(void *)((char *)timer - offsetof(struct conn, acked_timer));

    atomic_store(&conn->acked_armed, false); /* first: what is sent from now on arms it again */
    if (!atomic_load(&conn->flushed) && pass(conn, acked_octets(conn)))
        acked_arm(conn, ACKED_AGAIN_US);
    conn_unref(conn);
}

/* ---- both ----------------------------------------------------------------------------------- */

void meaning_init(struct conn *conn, struct engine_shard *home)
{
    conn->placed_work.run = placed_run;
    engine_timer_init(&conn->acked_timer, home, acked_fired);
    engine_timer_init(&conn->final_timer, home, conn_final_fired);
}

void meaning_sent(struct conn *conn)
{
    if (conn->meaning == MEANING_PLACED)
        pass(conn, RED("placed-at-once") ? UINT64_MAX : atomic_load(&conn->placed));
    else
        acked_arm(conn, ACKED_FIRST_US);
}

bool meaning_waits(struct conn *conn)
{
    bool paired;

    switch (conn->meaning) {
    case MEANING_PLACED:
        os_mutex_lock(&pair_lock);
        paired = conn->twin != NULL;
        os_mutex_unlock(&pair_lock);
        /* A twin that is gone has reported all it processed. */
        return pass(conn, atomic_load(&conn->placed)) && paired;
    case MEANING_ACKED:
        return pass(conn, acked_octets(conn));
    default:
        return false;
    }
}

void meaning_received(struct conn *conn)
{
    if (conn->meaning == MEANING_ACKED)
        pass(conn, acked_octets(conn));
}

void meaning_end(struct conn *conn)
{
    struct conn **at;

    os_mutex_lock(&pair_lock);
    if (conn->twin) {
        conn->twin->twin = NULL;
        conn->twin = NULL;
    }
    if (conn->twin_listed) {
        for (at = bucket_of(&conn->local, &conn->peer); *at != conn; at = &(*at)->twin_next)
            ;
        *at = conn->twin_next;
        conn->twin_listed = false;
    }
    os_mutex_unlock(&pair_lock);
    if (engine_timer_cancel(&conn->acked_timer))
        conn_unref(conn);
    if (!conn->bound)
        return;
    if (conn->meaning == MEANING_PLACED)
        pass(conn, atomic_load(&conn->placed));
    else if (conn->meaning == MEANING_ACKED)
        pass(conn, acked_octets(conn));
}
