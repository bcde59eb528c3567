// SPDX-License-Identifier: MIT
/*
 * track.h - what one direction of a stream has seen so far: message sequence numbers, the current
 * untagged message, the open read.
 *
 * Checks do not change anything, so that a segment can be looked at again later (a Send that waits
 * for a receive); iwarp_track_*_advance() makes it count once it was placed. Facts about buffers
 * come from the caller as numbers. A segment given here was accepted by iwarp_rdmap_decode().
 *
 * No lock: whoever owns the direction owns its state. Called by the connection's receive and
 * transmit paths.
 */
#ifndef SOFTNDK_IWARP_TRACK_H
#define SOFTNDK_IWARP_TRACK_H

#include "iwarp/ddp.h"

/* Empty segments with L=0 that are taken in a row before 1/2/04. */
#define IWARP_TRACK_EMPTY_MAX 16u

/* Outbound: the next MSN of each queue. */
struct iwarp_track_tx {
    uint32_t msn[IWARP_QN_COUNT];
};

/* Inbound, untagged. */
struct iwarp_track_rx {
    uint32_t msn[IWARP_QN_COUNT]; /* expected next */
    uint32_t mo;                  /* octets placed of the current Send */
    uint32_t inv_stag;            /* of the current Send */
    uint8_t opcode;               /* of the current Send */
    uint8_t empties;              /* empty L=0 segments in a row */
    bool in_message;              /* a first segment was seen, the last one not */
};

/* Inbound, the oldest open read of ours. */
struct iwarp_track_read {
    uint32_t stag;      /* expected sink STag */
    uint32_t remaining; /* octets still to come */
    uint64_t to;        /* expected next sink TO */
    uint8_t empties;
    bool begun; /* at least one segment was seen */
};

/* Both directions of a new stream: every queue starts with MSN 1. */
void iwarp_track_tx_init(struct iwarp_track_tx *track);
void iwarp_track_rx_init(struct iwarp_track_rx *track);

/* The MSN for the next message on queue `qn`; it is used up. */
uint32_t iwarp_track_tx_take(struct iwarp_track_tx *track, unsigned qn);

/*
 * A segment of the Send family (or Immediate Data). `posted`: a receive is at hand for the current
 * message; receive_len its length in octets (not looked at without one).
 * IWARP_NO_ERROR: place payload_len octets at segment->mo of the receive, then advance.
 * Else, in this order: 1/2/03 MSN not the expected one; 0/2/06 opcode or Invalidate STag differs
 * from the earlier segments of the message; 1/2/02 no receive (a caller that holds back keeps the
 * segment and asks again); 1/2/04 MO not the octets placed, or too many empty segments; 1/2/05
 * longer than the receive.
 */
iwarp_error iwarp_track_send_check(const struct iwarp_track_rx *track,
                                   const struct iwarp_segment *segment, bool posted,
                                   uint32_t receive_len);

/*
 * Counts a segment that iwarp_track_send_check() passed. Returns true when it was the last of its
 * message; *message_len is then the length of the whole message in octets.
 * A ready-to-receive Send (agreed option B) is checked with posted true and receive_len 0, and
 * advanced like any other: it uses up MSN 1 and no receive.
 */
bool iwarp_track_send_advance(struct iwarp_track_rx *track, const struct iwarp_segment *segment,
                              uint32_t *message_len);

/*
 * A Read Request (or Atomic Request) while `open` earlier ones are unanswered and `slots` can be
 * held. 1/2/03 wrong MSN, 1/2/02 no slot.
 */
iwarp_error iwarp_track_request_check(const struct iwarp_track_rx *track,
                                      const struct iwarp_segment *segment, uint32_t open,
                                      uint32_t slots);
void iwarp_track_request_advance(struct iwarp_track_rx *track);

/* Starts to expect the Response to a Read Request of ours. */
void iwarp_track_read_open(struct iwarp_track_read *read, const struct iwarp_read_request *request);

/*
 * A Read Response segment; `read` is the oldest open read, NULL when none is.
 * IWARP_NO_ERROR: place payload_len octets at read's sink, then advance. Else: 0/2/06 none open;
 * 1/1/00 STag differs; 1/1/01 TO not the next, more octets than asked for, L=1 before the last
 * octet, or anything after the last octet came without L=1. STag and TO of an empty segment with
 * L=1 are not looked at.
 */
iwarp_error iwarp_track_read_check(const struct iwarp_track_read *read,
                                   const struct iwarp_segment *segment);

/* Counts a segment that passed. Returns true when the read is complete. */
bool iwarp_track_read_advance(struct iwarp_track_read *read, const struct iwarp_segment *segment);

#endif
