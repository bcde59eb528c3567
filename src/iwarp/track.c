// SPDX-License-Identifier: MIT
/*
 * track.c - stream state of one direction.
 *
 * Invariants: a check changes nothing; an advance is only called for a segment whose check passed,
 * so message length and read progress never exceed what the caller announced and no sum overflows.
 * Called by the connection's receive and transmit paths, by the owner of the direction.
 */
#include "iwarp/track.h"

#include <string.h>

#include "base/red.h"
#include "iwarp/rdmap.h"

static void track_init_msn(uint32_t *msn)
{
    for (unsigned qn = 0; qn < IWARP_QN_COUNT; qn++) {
        msn[qn] = RED("iwarp-track-msn-starts-at-0") ? 0 : IWARP_MSN_FIRST;
    }
}

void iwarp_track_tx_init(struct iwarp_track_tx *track)
{
    track_init_msn(track->msn);
}

void iwarp_track_rx_init(struct iwarp_track_rx *track)
{
    memset(track, 0, sizeof *track);
    track_init_msn(track->msn);
}

uint32_t iwarp_track_tx_take(struct iwarp_track_tx *track, unsigned qn)
{
    return track->msn[qn]++;
}

/* An empty segment that is not the last one moves nothing; only so many may follow each other. */
static bool track_idles(const struct iwarp_segment *segment)
{
    return segment->payload_len == 0 && !segment->last;
}

iwarp_error iwarp_track_send_check(const struct iwarp_track_rx *track,
                                   const struct iwarp_segment *segment, bool posted,
                                   uint32_t receive_len)
{
    if (segment->msn != track->msn[IWARP_QN_SEND]) {
        return IWARP_ERR_UNTAG_MSN;
    }
    if (track->in_message) {
        if (segment->opcode != track->opcode) {
            return IWARP_ERR_OP_OPCODE;
        }
        if (iwarp_opcode_invalidates(segment->opcode) && segment->inv_stag != track->inv_stag) {
            return IWARP_ERR_OP_OPCODE;
        }
    }
    if (!posted) {
        return IWARP_ERR_UNTAG_NO_BUFFER;
    }
    if (segment->mo != track->mo && !RED("iwarp-track-offset-unchecked")) {
        return IWARP_ERR_UNTAG_MO;
    }
    if (track_idles(segment) && track->empties >= IWARP_TRACK_EMPTY_MAX) {
        return IWARP_ERR_UNTAG_MO;
    }
    if ((uint64_t)segment->mo + segment->payload_len > receive_len) {
        return IWARP_ERR_UNTAG_LENGTH;
    }
    return IWARP_NO_ERROR;
}

bool iwarp_track_send_advance(struct iwarp_track_rx *track, const struct iwarp_segment *segment,
                              uint32_t *message_len)
{
    track->mo += segment->payload_len;
    if (!segment->last) {
        track->in_message = true;
        track->opcode = segment->opcode;
        track->inv_stag = segment->inv_stag;
        track->empties = track_idles(segment) ? (uint8_t)(track->empties + 1) : 0;
        return false;
    }
    *message_len = track->mo;
    track->mo = 0;
    track->empties = 0;
    track->in_message = false;
    track->msn[IWARP_QN_SEND]++;
    return true;
}

iwarp_error iwarp_track_request_check(const struct iwarp_track_rx *track,
                                      const struct iwarp_segment *segment, uint32_t open,
                                      uint32_t slots)
{
    if (segment->msn != track->msn[IWARP_QN_READ_REQUEST]) {
        return IWARP_ERR_UNTAG_MSN;
    }
    if (open >= slots && !RED("iwarp-track-read-slots-unchecked")) {
        return IWARP_ERR_UNTAG_NO_BUFFER;
    }
    return IWARP_NO_ERROR;
}

void iwarp_track_request_advance(struct iwarp_track_rx *track)
{
    track->msn[IWARP_QN_READ_REQUEST]++;
}

void iwarp_track_read_open(struct iwarp_track_read *read, const struct iwarp_read_request *request)
{
    read->stag = request->sink_stag;
    read->to = request->sink_to;
    read->remaining = request->size;
    read->empties = 0;
    read->begun = false;
}

iwarp_error iwarp_track_read_check(const struct iwarp_track_read *read,
                                   const struct iwarp_segment *segment)
{
    if (read == NULL) {
        return IWARP_ERR_OP_OPCODE;
    }
    if (read->begun && read->remaining == 0) {
        return IWARP_ERR_TAG_BOUNDS;
    }
    if (segment->payload_len == 0 && segment->last) {
        return read->remaining == 0 ? IWARP_NO_ERROR : IWARP_ERR_TAG_BOUNDS;
    }
    if (segment->stag != read->stag) {
        return IWARP_ERR_TAG_STAG;
    }
    if (segment->to != read->to || segment->payload_len > read->remaining) {
        return IWARP_ERR_TAG_BOUNDS;
    }
    if (segment->last && segment->payload_len != read->remaining &&
        !RED("iwarp-track-read-short-accepted")) {
        return IWARP_ERR_TAG_BOUNDS;
    }
    if (track_idles(segment) && read->empties >= IWARP_TRACK_EMPTY_MAX) {
        return IWARP_ERR_TAG_BOUNDS;
    }
    return IWARP_NO_ERROR;
}

bool iwarp_track_read_advance(struct iwarp_track_read *read, const struct iwarp_segment *segment)
{
    read->begun = true;
    read->to += segment->payload_len;
    read->remaining -= segment->payload_len;
    read->empties = track_idles(segment) ? (uint8_t)(read->empties + 1) : 0;
    return segment->last;
}
