// SPDX-License-Identifier: MIT
/*
 * Between rx.c (a turn of the receive owner: octets, FPDUs, Reads, ends) and rx_send.c (Sends). All
 * of it is called by the receive owner alone; no lock is held.
 */
#ifndef SOFTNDK_CONN_RX_INTERNAL_H
#define SOFTNDK_CONN_RX_INTERNAL_H

#include "conn/conn_internal.h"

#define RX_COMPLETIONS 64u

/* One turn. */
struct rx_run {
    struct conn_completion list[RX_COMPLETIONS];
    unsigned count;
    bool retire; /* a Read finished */
    bool kick;   /* the transmit owner has something new */
    bool stop;   /* the connection ends, or waits: nothing more is parsed */
    bool hold;   /* the segment in hand met no receive: it is looked at again later */
};

#define RX_LEAST 4096u

/*
 * How many octets a turn is to take at most. To take more Sends than receives are posted for costs
 * twice: the rest is kept in the connection's buffer, and looked at again as receives are posted.
 * So when they ran out, the next turn takes what they sufficed for (used), and each one that gets
 * by with all it may take lets the next one take an eighth more.
 */
static inline size_t rx_most_next(size_t most, bool ran_out, size_t used, size_t taken)
{
    if (ran_out && used && !RED("rx-reads-beyond-receives"))
        most = used > RX_LEAST ? used : RX_LEAST;
    else if (!ran_out && taken >= most)
        most += most / 8;
    return most < ENGINE_STAGING ? most : ENGINE_STAGING;
}

/* Hands over what has completed so far. */
void rx_run_flush(struct conn *conn, struct rx_run *run);
/* Ends the connection with a Terminate for the segment, or for the stream (NULL). */
void rx_fail(struct conn *conn, struct rx_run *run, iwarp_error error,
             const struct iwarp_segment *segment);

void rx_send_in(struct conn *conn, struct rx_run *run, const struct iwarp_segment *segment);
/* The next receive, not taken yet; wait: the connection waits at a shared queue that is empty. */
struct conn_wr *rx_receive_next(struct conn *conn, bool wait);
/* The message is whole, and what it invalidates is invalid: its receive completes. */
void rx_receive_complete(struct conn *conn, struct rx_run *run, unsigned opcode, uint32_t length,
                         uint32_t token);
/* A Send that found no receive looks again. False: it goes on waiting. */
bool rx_hold_over(struct conn *conn);

#endif
