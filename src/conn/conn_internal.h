// SPDX-License-Identifier: MIT
/* What the files of this room share. See conn.h for ownership and locks. */
#ifndef SOFTNDK_CONN_INTERNAL_H
#define SOFTNDK_CONN_INTERNAL_H

#include <string.h>

#include "base/reason.h"
#include "base/red.h"
#include "base/usdt.h"
#include "conn/conn.h"
#include "iwarp/crc32c.h"
#include "iwarp/fpdu.h"
#include "iwarp/mpa.h"
#include "iwarp/rdmap.h"
#include "iwarp/terminate.h"
#include "iwarp/track.h"

/* ---- the direction word (dir.c) ------------------------------------------------------------- */

#define DIR_BUSY 0x1u
#define DIR_MORE 0x2u
#define DIR_END  0x4u
#define DIR_DEAD 0x8u

struct conn_dir {
    atomic_uint word;
    struct engine_work later; /* on the home shard's run list, direction still BUSY */
    struct conn *conn;
    /* One helping of work by the owner. True: more is known to be there; with `yields` set it is
     * better done when the callbacks that are due have run. */
    bool (*work)(struct conn *conn);
    bool yields; /* the owner's; cleared by it, too */
    /* The owner saw END: gives back what the direction holds. Marked DEAD afterwards. */
    void (*end)(struct conn *conn);
};

void conn_dir_init(struct conn_dir *dir, struct conn *conn, bool (*work)(struct conn *),
                   void (*end)(struct conn *));
/* False: the direction is DEAD. The caller holds a reference. */
bool conn_kick(struct conn_dir *dir, unsigned bits);
/* This thread serves connections for a consumer that polls: conn_group_poll(). */
extern _Thread_local bool conn_polls;

/* ---- states --------------------------------------------------------------------------------- */

enum conn_state {
    CONN_NEW,
    CONN_CONNECTING,   /* active: TCP */
    CONN_WAIT_REPLY,   /* active: Request is out */
    CONN_RETRYING,     /* active: the peer closed on revision 2; once more, with revision 1 */
    CONN_DECIDE,       /* active: Reply is in, the consumer completes, rejects or closes */
    CONN_COMPLETING,   /* active: ready-to-receive message is out */
    CONN_WAIT_REQUEST, /* passive: TCP accepted */
    CONN_UNDECIDED,    /* passive: Request is in, the consumer accepts, rejects or closes */
    CONN_MOVING,       /* passive: accepted, on its way to the shard of its receive CQ */
    CONN_WAIT_FIRST,   /* passive: Reply is out, first FPDU not in */
    CONN_OPEN,
    CONN_ENDING,  /* END is set on both directions */
    CONN_CLOSING, /* both DEAD, queues flushed: the home shard ends the socket */
    CONN_GONE
};

/* A Terminate and a refusal without private data need no memory: the longest Terminate fits. */
#define CONN_TAIL_ROOM (IWARP_FPDU_TERMINATE_MAX + IWARP_FPDU_TRAILER_MAX)

/* How the socket is ended once both directions are DEAD. */
enum conn_how {
    HOW_NONE,
    HOW_RST,    /* at once */
    HOW_FIN,    /* both FINs are exchanged: plain close */
    HOW_DRAIN,  /* send the tail, half-close, discard until FIN or drain_ms */
    HOW_LINGER, /* local close: until everything is acknowledged, then FIN or RST */
};

enum conn_timer_kind {
    TIMER_NONE,
    TIMER_CONNECT,
    TIMER_REQUEST,
    TIMER_ESTABLISH,
    TIMER_DISCONNECT,
    TIMER_CLOSING
};

/* The empty Write for a peer that overlooked our first FPDU (nudge.c). */
enum conn_nudge {
    NUDGE_OFF,   /* none is to come, or not before the consumer completes the connect */
    NUDGE_FIRST, /* our first FPDU is not out yet */
    NUDGE_WAIT,  /* it is; the timer runs */
    NUDGE_DUE    /* nothing came in time: to be sent at the next boundary of messages */
};

/* Octets that go out before any FPDU of the queues: a startup frame or the RTR. */
struct conn_out {
    uint32_t length, sent;
    enum { OUT_PLAIN, OUT_ESTABLISHES } then; /* the connection is up once TCP took it */
    uint8_t octets[];
};

/* An open Read of ours: pushed by the transmit owner, finished by the receive owner, in order. */
struct conn_read {
    struct conn_wr *wr; /* NULL: the ready-to-receive message */
    struct iwarp_read_request request;
};

/* A Read Request of the peer: pushed by the receive owner, answered by the transmit owner. */
struct conn_answer {
    struct iwarp_read_request request;
    uint32_t msn;
};

/* What the completion of a Send or Write promises (meaning.c); see docs/completions.md. */
enum conn_meaning { MEANING_LOCAL, MEANING_PLACED, MEANING_ACKED };

struct conn_batch; /* tx_batch.h */

/*
 * The region of the last small payload, held on: the next one is mostly of the same, and is then
 * checked for its range alone. Of one owner, who drops it before anything is told to complete,
 * before an invalidation (which would wait for it) and before a system call. hold.slot NULL: none.
 */
struct conn_reuse {
    struct access hold;
    uint32_t token, need;
};
void conn_reuse_drop(struct conn *conn, struct conn_reuse *reuse);
/* Takes the region of these octets in place of the one that was, and copies them: out of it to
 * `octets`, or, with ACCESS_LOCAL_WRITE or ACCESS_REMOTE_WRITE among the needs, into it. */
enum access_result conn_reuse_take(struct conn *conn, struct conn_reuse *reuse, uint32_t token,
                                   uint64_t address, uint32_t length, uint32_t need,
                                   uint8_t *octets);

/* Where the octets are, if they are in the region that is held on, and that is one piece. */
static inline uint8_t *conn_reuse_at(const struct conn_reuse *reuse, uint32_t token,
                                     uint64_t address, uint32_t length, uint32_t need)
{
    const struct access *hold = &reuse->hold;
    uint64_t at = address - hold->first; /* huge, if it is before the first */

    if (!hold->slot || reuse->token != token || reuse->need != need || !hold->host)
        return NULL;
    if ((at > hold->length || length > hold->length - at) && !RED("reuse-unchecked"))
        return NULL;
    return hold->host + at;
}

/* Copies length octets at address, which token names, to `to`. */
static inline enum access_result conn_reuse_get(struct conn *conn, struct conn_reuse *reuse,
                                                uint32_t token, uint64_t address, uint32_t length,
                                                uint32_t need, uint8_t *to)
{
    const uint8_t *at = conn_reuse_at(reuse, token, address, length, need);

    if (!at)
        return conn_reuse_take(conn, reuse, token, address, length, need, to);
    memcpy(to, at, length);
    return ACCESS_OK;
}

/* Copies them from `from` to there. */
static inline enum access_result conn_reuse_put(struct conn *conn, struct conn_reuse *reuse,
                                                uint32_t token, uint64_t address, uint32_t length,
                                                uint32_t need, const uint8_t *from)
{
    uint8_t *at = conn_reuse_at(reuse, token, address, length, need);

    if (!at)
        return conn_reuse_take(conn, reuse, token, address, length, need, (uint8_t *)from);
    memcpy(at, from, length);
    return ACCESS_OK;
}

/* Octets between two turns of the receive owner (partial.c). */
struct conn_partial {
    uint8_t *octets;
    uint32_t start;        /* how many at the front were used already */
    uint32_t length, room; /* octets that stand there behind them; room for all of them */
    bool held;             /* perhaps in the list */
    bool told;             /* the reason was left at the queue pair */
    /* the list of all that hold octets; its lock */
    struct conn *older, *newer;
    bool listed, chosen; /* chosen: to be reset, out of the list for good */
    uint32_t counted;    /* of the total */
    uint64_t since_us;   /* last progress */
    size_t chosen_total; /* octets of the process when it was chosen */
};

struct conn_rx {
    struct conn_dir dir;
    struct iwarp_track_rx track;
    bool fin;        /* the peer's FIN was read */
    bool first_seen; /* a valid FPDU was processed */
    /* the Send that is arriving */
    struct conn_wr *current;
    uint32_t current_length; /* octets of all its SGEs */
    uint32_t sge, sge_offset;
    NTSTATUS current_status; /* what it ends with if the connection ends now */
    /* the Read Response that is arriving */
    struct iwarp_track_read read;
    bool read_active;
    uint32_t read_sge, read_sge_offset;
    struct conn_reuse reuse; /* during rx_parse() only */
    /* Octets to take from the socket in one turn: what receives were posted for the last time that
     * they ran out, and slowly more; the whole staging area as long as they never did. */
    size_t most;
    struct conn_partial partial;
    /* an invalidation is waited for: of the Send in `current`, or of a finished Read */
    bool waiting;
    uint8_t waiting_opcode;
    uint32_t waiting_length, waiting_token;
    struct conn_wr *waiting_read;
    bool holding;    /* a Send met no receive: its FPDU is the first of `partial` */
    bool hold_spent; /* it waited holdback_ms in vain */
    uint64_t hold_until_us;
};

struct conn_tx {
    struct conn_dir dir;
    struct iwarp_track_tx track;
    uint32_t mulpdu;
    uint64_t mulpdu_at_us;
    bool mulpdu_looked; /* at the clock, for the batch that is being built */
    /* the request whose segments are being encoded */
    struct conn_wr *wr;
    uint32_t offset, sge, sge_offset, msn;
    uint32_t read_serial;
    /* the answer that is being encoded */
    uint32_t answer_done;
    bool answer_turn;
    struct conn_batch *pending; /* encoded, not taken by TCP yet */
    bool local_waiting;         /* a local operation pended: nothing behind it starts */
    bool end_after_batch;       /* a local operation failed */
    bool request_failed;        /* the current request names memory it may not read */
    uint64_t frames;            /* FPDUs ever encoded */
    atomic_ullong stream;       /* octets TCP ever took, startup frames included */
    uint32_t answers_encoded;
    iwarp_error answer_error;
    uint64_t first_us,
        last_us; /* while a nudge may become due: octets of FPDUs were handed to TCP */
};

struct conn {
    atomic_uint references;
    const struct conn_ops *ops;
    void *up;
    void *qp; /* set with the queues, before work can be posted */
    struct conn_queue *initiator, *receive;
    const struct options *options;
    struct conn_counters *counters;
    _Atomic(struct engine_shard *) home;
    int fd;
    struct engine_watch watch;
    struct engine_group *group; /* of the receive CQ; NULL: the home's own set */
    struct conn_rx rx;
    struct conn_tx tx;

    /* crossed by both owners */
    bool crc;               /* fixed before the first FPDU */
    atomic_bool tx_hold;    /* passive: nothing before the peer's first FPDU */
    atomic_bool tx_blocked; /* waits for OS_WRITABLE */
    atomic_bool tx_left;    /* more to transmit: for the next poll, or for the home shard */
    atomic_bool writable;   /* an edge was seen (connect) */
    bool bound; /* lock: work could be posted at some time, so the queues are ours to flush */
    atomic_bool fin_wanted, fin_sent, fin_received;
    atomic_bool flush_tx, flush_rx;
    atomic_bool flushed; /* the queues were flushed for good */
    atomic_int tx_error; /* the socket failed in transmit; the receive owner ends the connection */
    atomic_bool hangup;  /* FIN or error is in: read to the end */
    atomic_bool requests_failed; /* initiator requests are cancelled from now on */
    atomic_bool fpdu_sent;
    atomic_uint nudge;       /* enum conn_nudge */
    atomic_bool local_over;  /* the local operation that pended is over */
    atomic_bool invalidated; /* what the receive owner waits for is over */
    atomic_bool held;        /* the receive owner waits for a receive to be posted here */
    atomic_bool resume_queued;
    struct engine_work resume; /* conn_resume() */
    atomic_bool poke_queued;
    struct engine_work poke; /* the home shard looks at an ending socket that a poller saw ready */
    _Atomic(struct conn_out *) out;
    uint32_t read_limit, answer_limit; /* effective limits; rings are powers of two */
    uint32_t read_mask, answer_mask;
    struct conn_read *reads;
    atomic_uint reads_opened, reads_done;
    struct conn_answer *answers;
    atomic_uint answers_in, answers_out;
    /* Ahead of answers_out while a system call hands answers to TCP: the peer may have the last
     * octet, and send its next Request, before that call has returned. */
    atomic_uint answers_free;
    atomic_uint dead; /* bit 0: receive, bit 1: transmit */
    /* posts of a callback, transmitted when it has returned */
    struct engine_after after;
    _Atomic(struct engine_shard *) after_owner;

    /* under the lock */
    os_mutex lock;
    _Atomic enum conn_state state; /* read without it by the owners */
    enum conn_how how;
    uint32_t reason;
    NTSTATUS end_status;   /* for connect, accept, complete connect, disconnect */
    NTSTATUS first_status; /* for the oldest initiator request that is flushed */
    iwarp_error terminate_error;
    uint8_t *tail; /* HOW_DRAIN: octets still to send; conn_tail_set() */
    uint8_t tail_room[CONN_TAIL_ROOM];
    uint32_t tail_length, tail_sent;
    bool established, event_raised, local_disconnect, closed, active;
    bool started;     /* a descriptor exists or existed: ops->closed comes from its end */
    bool shares_port; /* active: fixed before the first socket */
    enum conn_timer_kind timer_kind;
    struct engine_timer timer;
    uint64_t timer_due_us;
    struct engine_timer hold_timer;  /* holdback_ms */
    atomic_bool hold_armed;          /* it will fire; it stays so when the hold is over */
    struct engine_timer first_timer; /* first_fpdu_delay_us */
    uint64_t first_fpdu_us;          /* active: not before; set with the Reply */
    struct engine_timer nudge_timer; /* nudge_ms */
    uint64_t linger_began_us, linger_progress_us;
    int linger_unacked;
    uint32_t linger_look_ms;
    bool watching; /* the descriptor is open and in the home's poll set; the home's thread */
    bool retried;
    struct engine_work final, move, retry;
    bool tail_shut; /* by the home shard, not the lock; apart from the flags that the lock guards */
    bool drain_queued; /* more is to be discarded; the home's thread */
    struct engine_shard *move_to;
    struct engine_group *move_group;

    /* completion meaning; twin and the table under its own lock */
    enum conn_meaning meaning;
    struct conn *twin, *twin_next;
    bool twin_listed;
    atomic_bool twin_waits; /* the twin completes by what we place */
    uint64_t frames_in;     /* FPDUs processed; the receive owner */
    atomic_ullong placed;   /* FPDUs of ours that the twin has processed */
    atomic_bool placed_queued;
    struct engine_work placed_work;
    struct engine_timer acked_timer;
    atomic_bool acked_armed;
    struct engine_timer final_timer; /* the end waits for what completions promise */
    uint64_t final_until_us;

    /* startup and what it settled */
    struct iwarp_mpa_parser *parser;
    struct iwarp_mpa_frame request; /* ours (active) or the peer's (passive) */
    struct iwarp_mpa_config config;
    struct iwarp_mpa_agreed agreed;
    uint8_t *own_private;
    uint32_t own_private_length;
    uint8_t *private_data; /* the peer's */
    uint32_t private_length;
    struct os_addr local, peer;
    uint64_t request_sent_us;
};

/* conn.c */
int conn_watch(struct conn *conn, struct engine_shard *home);
void conn_move_now(struct conn *conn); /* on the old home's thread; reference held */
void conn_timer_arm(struct conn *conn, enum conn_timer_kind kind, uint32_t ms); /* lock held */
void conn_timer_stop(struct conn *conn);                                        /* lock held */
void conn_hold_timer(struct conn *conn, uint32_t ms); /* 0: stops it; the receive owner */
/* Active: must the first FPDU wait (peers that hook their socket late)? The transmit owner. */
bool conn_first_fpdu_waits(struct conn *conn);
bool conn_set_out(struct conn *conn, const uint8_t *octets, uint32_t length, int then);

/* startup.c: the receive owner's work while there is no FPDU stream; true: try again */
bool startup_receive(struct conn *conn);
void startup_retry(struct engine_work *work);
/* The peer's first FPDU was valid, or the Reply went out and no message was agreed. */
void startup_established(struct conn *conn);
void startup_deadline(struct conn *conn); /* TIMER_CONNECT, _REQUEST, _ESTABLISH; lock held */
/* Allocates the rings for the limits agreed on. */
bool startup_rings(struct conn *conn, uint32_t read_limit, uint32_t answer_limit);
/* What both roles do, in startup.c; under the lock where there is a socket already. */
void startup_configure(struct conn *conn, const struct conn_binding *binding); /* NULL: limits */
void startup_bind(struct conn *conn, const struct conn_binding *binding);
bool startup_keep(uint8_t **to, uint32_t *length, const void *data, uint32_t data_length);
bool startup_parser(struct conn *conn, enum iwarp_mpa_kind kind);
void startup_end_if_dead(struct conn *conn, const struct conn_binding *binding);
uint32_t startup_clamp(uint32_t value, uint32_t limit); /* read limits */

/* startup_passive.c: the peer's Request is whole; the receive owner */
void startup_request(struct conn *conn, const struct iwarp_mpa_frame *request);
void startup_moved(struct conn *conn); /* lock held: the accepted connection is at its home */

/* rx.c, tx.c */
bool rx_work(struct conn *conn);
void rx_end(struct conn *conn);
void rx_flush(struct conn *conn); /* by the receive owner, in any state with queues */
bool tx_work(struct conn *conn);
/* Asks TCP: octets of ULPDU that an FPDU carries at most. Who keeps the descriptor open. */
uint32_t tx_fpdu_payload(const struct conn *conn);
void tx_end(struct conn *conn);
void tx_batch_free(struct conn_batch *batch, struct conn *conn);
/* partial.c; the receive owner. How many octets the incomplete FPDU that is kept still lacks; 0:
 * nothing is kept, or what is has to be looked at. */
size_t partial_missing(const struct conn *conn);
/* More octets of it, too few to complete it. False: no memory, the connection ends. */
bool partial_append(struct conn *conn, const uint8_t *octets, size_t length);
/* To the front of staging; how many octets. */
size_t partial_load(struct conn *conn, uint8_t *staging);
/* Keeps what could not be used; progress: an FPDU was processed since the last time. May reset a
 * connection, this one included. */
void partial_keep(struct conn *conn, const uint8_t *octets, size_t length, bool progress);
/* What is kept, where it stands; and the first of it were used. May reset a connection. */
const uint8_t *partial_octets(const struct conn *conn, size_t *length);
void partial_use(struct conn *conn, size_t used);
void partial_drop(struct conn *conn);
/* place.c: copies octets into a request's SGEs from where *sge and *offset stand. */
enum access_result place_scatter(struct conn *conn, const struct conn_wr *wr, uint32_t *sge,
                                 uint32_t *offset, const uint8_t *data, uint32_t length,
                                 uint32_t need);
enum access_result place_remote(struct conn *conn, uint32_t token, uint64_t address,
                                const uint8_t *data, uint32_t length);

/* nudge.c */
void nudge_init(struct conn *conn, struct engine_shard *home);
void nudge_begin(struct conn *conn);       /* active: FPDUs may be sent from now on */
void nudge_fpdu_sent(struct conn *conn);   /* the transmit owner: TCP took octets of FPDUs */
void nudge_octets_came(struct conn *conn); /* the receive owner: the peer is alive */
void nudge_add(struct conn *conn, struct conn_batch *b); /* the transmit owner: if one is due */
void nudge_end(struct conn *conn);                       /* the transmit owner has let go */

/* close.c */
/* Ends the connection: the first call wins. how, reason and status as in struct conn; status is
 * what pending connect, accept, complete connect and disconnect requests end with. No lock held. */
void conn_end(struct conn *conn, enum conn_how how, uint32_t reason, NTSTATUS status);
/* The same with a Terminate to be sent: error, and the octets behind the error code are prepared by
 * the caller in conn->tail only through this function (ulpdu may be NULL). */
void conn_end_terminate(struct conn *conn, iwarp_error error, const uint8_t *ulpdu,
                        uint32_t ulpdu_length);
void conn_end_terminate_read(struct conn *conn, iwarp_error error, const struct conn_answer *answer,
                             uint32_t done);
/* Memory was lacking for what the peer sent: Terminate 0/0/00. */
void conn_end_no_memory(struct conn *conn);
/* What HOW_DRAIN is to send: copies it. False: no memory, and nothing will be sent. Lock held. */
bool conn_tail_set(struct conn *conn, const uint8_t *octets, size_t length);
void conn_tail_free(struct conn *conn);
bool conn_end_locked(struct conn *conn, enum conn_how how, uint32_t reason, NTSTATUS status);
/* Lock held. */
static inline void conn_state_set(struct conn *conn, enum conn_state state)
{
    enum conn_state before = atomic_load(&conn->state);

    USDT(state, conn, state, before);
    atomic_store(&conn->state, state);
}
bool conn_end_kick(struct conn *conn); /* after conn_end_locked, no lock held; true: ended */
void conn_direction_dead(struct conn *conn, unsigned bit);
void conn_final(struct engine_work *work);
void conn_final_fired(struct engine_timer *timer);
void closing_step(struct conn *conn);
void conn_lost(struct conn *conn, int error);                     /* the socket failed */
void conn_raise_disconnected(struct conn *conn, uint32_t reason); /* lock held */

/* meaning.c */
void meaning_init(struct conn *conn, struct engine_shard *home);
void meaning_list(struct conn *conn);   /* both addresses are known: may be found as a twin */
void meaning_begin(struct conn *conn);  /* the stream is up: which meaning can be kept */
void meaning_sent(struct conn *conn);   /* the transmit owner marked requests as sent */
void meaning_placed(struct conn *conn); /* the receive owner has processed more FPDUs */
/* Are requests sent that may still complete as promised? On the home shard, before the flush. */
bool meaning_waits(struct conn *conn);
void meaning_received(struct conn *conn); /* before receives complete: what came acknowledges too */
void meaning_end(struct conn *conn);      /* at the end, before the flush: completes what is due */

/* errmap.c */
#define R(source, cause) reason_make(REASON_##source, 0, REASON_CAUSE_##cause)
uint32_t conn_reason_socket(int error);
NTSTATUS conn_status_from_terminate(iwarp_error error);
iwarp_error conn_error_from_write(enum access_result result);
iwarp_error conn_error_from_read(enum access_result result);

#endif
