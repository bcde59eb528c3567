// SPDX-License-Identifier: MIT
/*
 * mpa_negotiate.c - what two MPA frames settle: CRC, the ready-to-receive message, read depths.
 *
 * Invariants: a Reply has the revision and the form (S) of its Request and never M; CRC is on when
 * either frame says so; at most one ready-to-receive kind is agreed; the depth 0x3fff is sent only
 * in answer to itself. Called by the connection's startup.
 */
#include <string.h>

#include "base/red.h"
#include "iwarp/mpa.h"

/* 0x3fff means something else. */
#define DEPTH_MAX (IWARP_MPA_DEPTH_UNKNOWN - 1u)

static uint16_t mpa_depth(uint16_t configured)
{
    return configured > DEPTH_MAX ? (uint16_t)DEPTH_MAX : configured;
}

/* Our depth against the peer's opposite one. */
static uint16_t mpa_depth_agreed(uint16_t ours, uint16_t peers)
{
    if (peers == IWARP_MPA_DEPTH_UNKNOWN || ours < peers) {
        return ours;
    }
    return peers;
}

/* One of a set: Read, else Write, else Send. */
static uint8_t mpa_prefer(unsigned set)
{
    if ((set & IWARP_RTR_READ) != 0) {
        return IWARP_RTR_READ;
    }
    return (uint8_t)((set & IWARP_RTR_WRITE) != 0 ? IWARP_RTR_WRITE : set & IWARP_RTR_SEND);
}

void iwarp_mpa_make_request(const struct iwarp_mpa_config *config, struct iwarp_mpa_frame *out)
{
    const unsigned can_send = IWARP_RTR_WRITE | IWARP_RTR_READ;
    unsigned offer = config->rtr & can_send;

    memset(out, 0, sizeof *out);
    out->kind = IWARP_MPA_REQUEST;
    out->revision = config->revision;
    out->crc = config->crc;
    if (config->revision < 2) {
        return;
    }
    out->enhanced = true;
    out->ird = mpa_depth(config->ird);
    out->ord = mpa_depth(config->ord);
    out->peer_to_peer = config->peer_to_peer;
    if (config->peer_to_peer) {
        out->rtr = (uint8_t)(offer != 0 ? offer : can_send);
    }
}

/* What every Reply has in common; S is answered with our own depths. */
static void mpa_start_reply(const struct iwarp_mpa_frame *request,
                            const struct iwarp_mpa_config *config, struct iwarp_mpa_frame *reply)
{
    memset(reply, 0, sizeof *reply);
    reply->kind = IWARP_MPA_REPLY;
    reply->revision = request->revision;
    reply->enhanced = request->enhanced;
    reply->crc = config->crc || request->crc;
    if (reply->enhanced) {
        reply->ird = mpa_depth(config->ird);
        reply->ord = mpa_depth(config->ord);
    }
}

void iwarp_mpa_refuse(const struct iwarp_mpa_frame *request, const struct iwarp_mpa_config *config,
                      struct iwarp_mpa_frame *reply)
{
    mpa_start_reply(request, config, reply);
    reply->rejected = true;
}

static uint8_t mpa_answer_rtr(const struct iwarp_mpa_frame *request,
                              const struct iwarp_mpa_config *config)
{
    unsigned accepted = config->rtr & IWARP_RTR_ALL;

    if (accepted == 0) {
        accepted = IWARP_RTR_ALL;
    }
    if ((request->rtr & accepted) != 0) {
        return mpa_prefer(request->rtr & accepted);
    }
    return mpa_prefer(accepted);
}

/* IRD and ORD of a Reply with S, and of the agreement. */
static void mpa_answer_depths(const struct iwarp_mpa_frame *request, struct iwarp_mpa_frame *reply,
                              struct iwarp_mpa_agreed *agreed)
{
    agreed->ird = mpa_depth_agreed(reply->ird, request->ord);
    agreed->ord = mpa_depth_agreed(reply->ord, request->ird);
    agreed->ird_slots = (uint16_t)(agreed->ird + (reply->rtr == IWARP_RTR_READ ? 1 : 0));
    agreed->peer_ird = request->ird;
    agreed->peer_ord = request->ord;
    reply->ird = agreed->ird;
    reply->ord = agreed->ord;
    if (reply->rtr == IWARP_RTR_READ && reply->ird == 0) {
        reply->ird = 1; /* the peer may need to see room for its Read RTR */
    }
    if (RED("iwarp-mpa-unknown-depth-not-echoed")) {
        return;
    }
    if (request->ord == IWARP_MPA_DEPTH_UNKNOWN) {
        reply->ird = IWARP_MPA_DEPTH_UNKNOWN;
    }
    if (request->ird == IWARP_MPA_DEPTH_UNKNOWN) {
        reply->ord = IWARP_MPA_DEPTH_UNKNOWN;
    }
}

/* An agreement in which no depth and no ready-to-receive message was exchanged. */
static void mpa_agree_plain(const struct iwarp_mpa_config *config, bool crc, uint8_t revision,
                            struct iwarp_mpa_agreed *agreed)
{
    memset(agreed, 0, sizeof *agreed);
    agreed->crc = crc;
    agreed->revision = revision;
    agreed->ird = mpa_depth(config->ird);
    agreed->ord = mpa_depth(config->ord);
    agreed->ird_slots = agreed->ird;
    agreed->peer_ird = IWARP_MPA_DEPTH_UNKNOWN;
    agreed->peer_ord = IWARP_MPA_DEPTH_UNKNOWN;
}

enum iwarp_verdict iwarp_mpa_answer(const struct iwarp_mpa_frame *request,
                                    const struct iwarp_mpa_config *config,
                                    struct iwarp_mpa_frame *reply, struct iwarp_mpa_agreed *agreed,
                                    enum iwarp_mpa_fault *fault)
{
    *fault = IWARP_MPA_FAULT_NONE;
    mpa_start_reply(request, config, reply);
    mpa_agree_plain(config, reply->crc, reply->revision, agreed);
    if (request->markers) {
        *fault = IWARP_MPA_FAULT_MARKERS;
        reply->rejected = true;
        return IWARP_REFUSE;
    }
    if (!reply->enhanced) {
        return IWARP_OK;
    }
    if (request->peer_to_peer) {
        reply->peer_to_peer = !RED("iwarp-mpa-a-not-echoed");
        reply->rtr = mpa_answer_rtr(request, config);
        agreed->rtr = reply->rtr;
    }
    mpa_answer_depths(request, reply, agreed);
    return IWARP_OK;
}

enum iwarp_verdict iwarp_mpa_judge(const struct iwarp_mpa_frame *request,
                                   const struct iwarp_mpa_config *config,
                                   const struct iwarp_mpa_frame *reply,
                                   struct iwarp_mpa_agreed *agreed, iwarp_error *error,
                                   enum iwarp_mpa_fault *fault)
{
    *error = IWARP_NO_ERROR;
    *fault = IWARP_MPA_FAULT_NONE;
    mpa_agree_plain(config, request->crc || reply->crc, reply->revision, agreed);
    if (reply->rejected) {
        *fault = IWARP_MPA_FAULT_REJECTED;
        return IWARP_REFUSE;
    }
    if (reply->enhanced != request->enhanced) {
        *fault = IWARP_MPA_FAULT_PLAIN;
        return IWARP_CLOSE;
    }
    if (reply->markers && !RED("iwarp-mpa-markers-accepted")) {
        *fault = IWARP_MPA_FAULT_MARKERS;
        return IWARP_CLOSE;
    }
    if (!reply->enhanced) {
        return IWARP_OK;
    }
    agreed->peer_ird = reply->ird;
    agreed->peer_ord = reply->ord;
    if (reply->ord != IWARP_MPA_DEPTH_UNKNOWN && reply->ord > agreed->ird) {
        *fault = IWARP_MPA_FAULT_IRD;
        *error = IWARP_ERR_MPA_IRD;
        return IWARP_TERMINATE;
    }
    agreed->ird = mpa_depth_agreed(agreed->ird, reply->ord);
    agreed->ird_slots = agreed->ird;
    agreed->ord = mpa_depth_agreed(agreed->ord, reply->ird);
    if (request->peer_to_peer && reply->peer_to_peer) {
        agreed->rtr = mpa_prefer(reply->rtr & (IWARP_RTR_WRITE | IWARP_RTR_READ));
        if (agreed->rtr == IWARP_RTR_NONE) {
            *fault = IWARP_MPA_FAULT_RTR;
            *error = IWARP_ERR_MPA_RTR;
            return IWARP_TERMINATE;
        }
    }
    return IWARP_OK;
}
