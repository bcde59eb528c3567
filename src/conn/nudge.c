// SPDX-License-Identifier: MIT
/*
 * The nudge: one empty Write behind our first FPDU, for a responder that has overlooked it.
 *
 * Linux siw sends its Reply before it hooks its socket; an FPDU that arrives within about a
 * millisecond stays unread until more octets come. So when nothing came from the peer for nudge_ms
 * after our first FPDU (a ready-to-receive message or, where none was agreed, the consumer's first
 * message), a Write of no octets follows. It is legal at any time behind the first FPDU: its STag
 * (1, as in a ready-to-receive Write) is not checked, it takes no sequence number, no receive, no
 * Read slot, and nobody sees a completion.
 *
 * Not sent when anything was received, when octets of ours followed the first FPDU late enough to
 * have woken the peer, within a message, behind our FIN, by the passive end, or twice.
 *
 * Ownership: FIRST (nothing sent yet) - WAIT (the timer runs) - DUE (it fired) - OFF. The transmit
 * owner goes FIRST to WAIT and takes DUE; the timer goes WAIT to DUE; the receive owner goes to OFF
 * from anywhere with the first octet of the peer. Each step is one compare-and-swap or exchange.
 * The armed timer holds a reference; whoever cancels it drops that.
 */
#include "base/log.h"
#include "base/red.h"
#include "conn/tx_batch.h"

/* What is sent this long after the first FPDU finds the peer's socket hooked: twenty times the
 * longest delay at which an FPDU was seen to be overlooked. */
#define WOKEN_AFTER_US 10000u

#define NUDGE_STAG 1u

static void nudge_fired(struct engine_timer *timer)
{
    struct conn *conn = (struct conn *)(void *)((char *)timer - offsetof(struct conn, nudge_timer));
    unsigned wait = NUDGE_WAIT;

    if (atomic_compare_exchange_strong(&conn->nudge, &wait, NUDGE_DUE))
        conn_kick(&conn->tx.dir, 0);
    conn_unref(conn);
}

void nudge_init(struct conn *conn, struct engine_shard *home)
{
    engine_timer_init(&conn->nudge_timer, home, nudge_fired);
}

void nudge_begin(struct conn *conn)
{
    if (conn->options->nudge_ms)
        atomic_store(&conn->nudge, NUDGE_FIRST);
}

static void nudge_cancel(struct conn *conn)
{
    if (engine_timer_cancel(&conn->nudge_timer))
        conn_unref(conn);
}

void nudge_fpdu_sent(struct conn *conn)
{
    unsigned first = NUDGE_FIRST;

    conn->tx.last_us = os_now_us();
    if (!atomic_compare_exchange_strong(&conn->nudge, &first, NUDGE_WAIT))
        return;
    conn->tx.first_us = conn->tx.last_us;
    conn_ref(conn);
    if (engine_timer_set(&conn->nudge_timer, (uint64_t)conn->options->nudge_ms * 1000))
        conn_unref(conn);
    if (atomic_load(&conn->nudge) == NUDGE_OFF) /* the peer was quicker than this timer */
        nudge_cancel(conn);
}

void nudge_octets_came(struct conn *conn)
{
    if (!RED("nudge-though-heard") && atomic_exchange(&conn->nudge, NUDGE_OFF) == NUDGE_WAIT)
        nudge_cancel(conn);
}

void nudge_add(struct conn *conn, struct conn_batch *b)
{
    struct conn_tx *tx = &conn->tx;
    struct tx_frame f = {.crc = iwarp_crc32c_init(), .with_crc = conn->crc};
    uint8_t *header = b->arena + b->arena_used;
    unsigned due = NUDGE_DUE;
    size_t n;

    if (!atomic_compare_exchange_strong(&conn->nudge, &due, NUDGE_OFF))
        return;
    if (RED("nudge-twice"))
        atomic_store(&conn->nudge, NUDGE_FIRST);
    if (atomic_load(&conn->fin_sent) || tx->answer_done || (tx->wr && tx->offset) ||
        (tx->last_us - tx->first_us >= WOKEN_AFTER_US && !RED("nudge-though-woken")))
        return;
    n = iwarp_rdmap_put_write(header, NUDGE_STAG, 0, 0, true);
    tx_batch_take(b, n);
    tx_frame_add(&f, header, n);
    tx_frame_close(conn, b, &f, IWARP_TAGGED_LEN);
    log_info("connection: nothing came for %u ms after our first FPDU: one empty Write follows",
             conn->options->nudge_ms);
    if (RED("nudge-frame-uncounted"))
        tx->frames--;
}

void nudge_end(struct conn *conn)
{
    if (conn->active)
        nudge_cancel(conn);
}
