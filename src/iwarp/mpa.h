// SPDX-License-Identifier: MIT
/*
 * mpa.h - MPA connection startup, revisions 1 (RFC 5044) and 2 (RFC 6581): frames, an incremental
 * parser, and the negotiation.
 *
 * The parser takes octets as they come and never one beyond its frame: FPDUs may follow a Reply in
 * the same TCP segment. It refuses at the first octet that cannot belong to a valid frame. Octets
 * behind a Request are for the caller to treat as an error.
 *
 * IRD and ORD are always from the point of view of the end that holds the structure: `ird` = reads
 * the other end may have open towards us, `ord` = reads we may have open towards it. In a frame
 * they are the sender's.
 *
 * Pure; called by the connection's startup.
 */
#ifndef SOFTNDK_IWARP_MPA_H
#define SOFTNDK_IWARP_MPA_H

#include "iwarp/wire.h"

enum iwarp_mpa_kind {
    IWARP_MPA_REQUEST,
    IWARP_MPA_REPLY,
};

/* Kinds of ready-to-receive message; a set of them in offers. */
#define IWARP_RTR_NONE  0x0u
#define IWARP_RTR_SEND  0x1u /* option B: zero-length Send, or an FPDU without ULPDU */
#define IWARP_RTR_WRITE 0x2u /* option C: zero-length RDMA Write */
#define IWARP_RTR_READ  0x4u /* option D: Read Request of size 0 */
#define IWARP_RTR_ALL   0x7u

/* A startup frame, decoded or to be encoded. */
struct iwarp_mpa_frame {
    enum iwarp_mpa_kind kind;
    uint8_t revision;
    bool markers;      /* M */
    bool crc;          /* C */
    bool rejected;     /* R; without meaning in a Request */
    bool enhanced;     /* S, only ever true for revision 2: the next four fields are on the wire */
    bool peer_to_peer; /* A */
    uint8_t rtr;       /* B, C, D as a set of IWARP_RTR_* */
    uint16_t ird;      /* 0..0x3fff */
    uint16_t ord;
    uint16_t private_len;        /* octets for the ULP, the IRD/ORD words not counted */
    const uint8_t *private_data; /* decoded: inside the parser */
};

/* Why a frame was not accepted. */
enum iwarp_mpa_fault {
    IWARP_MPA_FAULT_NONE,
    IWARP_MPA_FAULT_KEY,      /* not MPA at all */
    IWARP_MPA_FAULT_KIND,     /* Request where a Reply was due, or the reverse */
    IWARP_MPA_FAULT_REVISION, /* a revision we cannot speak, or not the one asked for */
    IWARP_MPA_FAULT_LENGTH,   /* PD_Length above 512 */
    IWARP_MPA_FAULT_PREFIX,   /* S set with fewer than 4 octets of private data */
    IWARP_MPA_FAULT_PLAIN,    /* Reply without S to a Request with S */
    IWARP_MPA_FAULT_MARKERS,  /* negotiation: the peer demands markers */
    IWARP_MPA_FAULT_REJECTED, /* negotiation: R=1 */
    IWARP_MPA_FAULT_IRD,      /* negotiation: the peer wants more reads than we hold (2/0/06) */
    IWARP_MPA_FAULT_RTR,      /* negotiation: no ready-to-receive message in common (2/0/07) */
};

/* Incremental parser of one frame. 532 octets of buffer; needed during startup only. */
struct iwarp_mpa_parser {
    uint8_t kind;  /* enum iwarp_mpa_kind expected */
    uint8_t asked; /* Reply: revision of our Request */
    bool done;     /* verdict other than IWARP_MORE given */
    enum iwarp_mpa_fault fault;
    uint32_t have; /* octets in buf */
    uint8_t buf[IWARP_MPA_FRAME_MAX];
};

/* What one end wants or can do. */
struct iwarp_mpa_config {
    uint8_t revision;  /* initiator: 1 or 2 */
    bool crc;          /* C in what we send; false only when both ends may go without */
    bool peer_to_peer; /* initiator: A */
    uint8_t rtr;       /* initiator: offer; responder: accepted set. 0: Write and Read / all */
    uint16_t ird;      /* most reads we hold for the peer, also the most we can provide */
    uint16_t ord;      /* most reads we want to have open */
};

/* What both ends agreed on. */
struct iwarp_mpa_agreed {
    bool crc;           /* generate and verify */
    uint8_t revision;   /* of both frames */
    uint8_t rtr;        /* initiator: the one to send; responder: the one to expect; or NONE */
    uint16_t ird;       /* to report and to hold: reads the peer may have open */
    uint16_t ord;       /* to report and to keep to: reads we may have open */
    uint16_t ird_slots; /* responder: slots to hold, `ird` and one more for a Read RTR */
    uint16_t peer_ird;  /* as in the peer's frame; IWARP_MPA_DEPTH_UNKNOWN when it said nothing */
    uint16_t peer_ord;
};

/*
 * Prepares for one frame of `kind`. For a Reply `asked` is the revision of our Request (1 or 2);
 * for a Request it is ignored.
 */
void iwarp_mpa_parser_init(struct iwarp_mpa_parser *parser, enum iwarp_mpa_kind kind,
                           uint8_t asked);

/*
 * How many octets can be read now without going beyond the frame: at least 1 while the parser
 * says IWARP_MORE.
 */
size_t iwarp_mpa_parser_want(const struct iwarp_mpa_parser *parser);

/*
 * Feeds `len` octets (0 is fine). *consumed tells how many belong to the frame; the rest is not
 * looked at. IWARP_MORE: all consumed, frame incomplete. IWARP_OK: out is filled; private_data
 * points into the parser. IWARP_CLOSE: not acceptable, parser->fault says why. After a verdict
 * other than IWARP_MORE further calls consume nothing and return IWARP_CLOSE.
 *
 * Requests: revisions 1 and 2 only. Replies: the revision asked for, and S if it was 2. S counts
 * in revision 2 only. Reserved flag bits are ignored.
 */
enum iwarp_verdict iwarp_mpa_parse(struct iwarp_mpa_parser *parser, const void *data, size_t len,
                                   size_t *consumed, struct iwarp_mpa_frame *out);

/*
 * Writes a frame to dst, which has room for IWARP_MPA_FRAME_MAX octets. Returns the octets
 * written, or 0 when the private data does not fit (512 octets, 508 with S).
 */
size_t iwarp_mpa_put(uint8_t *dst, const struct iwarp_mpa_frame *frame);

/* Most octets of private data for the ULP in a frame with or without S: 508 or 512. */
static inline uint32_t iwarp_mpa_private_max(bool enhanced)
{
    return IWARP_MPA_PD_MAX - (enhanced ? IWARP_MPA_PREFIX_LEN : 0u);
}

/* Initiator: the Request for a configuration, without private data (set it in out afterwards). */
void iwarp_mpa_make_request(const struct iwarp_mpa_config *config, struct iwarp_mpa_frame *out);

/*
 * Responder: the Reply to an accepted Request, without private data, and what it settles.
 * IWARP_OK: send *reply, go on with *agreed. IWARP_REFUSE: the Request asks for markers; *reply
 * has R=1, send it and end the connection; *fault tells why.
 */
enum iwarp_verdict iwarp_mpa_answer(const struct iwarp_mpa_frame *request,
                                    const struct iwarp_mpa_config *config,
                                    struct iwarp_mpa_frame *reply, struct iwarp_mpa_agreed *agreed,
                                    enum iwarp_mpa_fault *fault);

/* Responder: the Reply with R=1 (the ULP rejects), without private data. */
void iwarp_mpa_refuse(const struct iwarp_mpa_frame *request, const struct iwarp_mpa_config *config,
                      struct iwarp_mpa_frame *reply);

/*
 * Initiator: judges the Reply to `request` (as made by iwarp_mpa_make_request()).
 * IWARP_OK: go on with *agreed; agreed->rtr is the one message to send first, or NONE.
 * IWARP_REFUSE: R=1. IWARP_CLOSE: the peer demands markers. IWARP_TERMINATE: *error is 2/0/06 or
 * 2/0/07. *fault names the reason in each case.
 * A 0x3fff in the Reply leaves our own depth alone, asked for or not: hardware sends it when its
 * depths were not set. A kind that was not offered is accepted if it is Write or Read.
 * A Read RTR takes one of the peer's read slots until its Response is in: count it as one of
 * agreed->ord towards a foreign peer.
 */
enum iwarp_verdict iwarp_mpa_judge(const struct iwarp_mpa_frame *request,
                                   const struct iwarp_mpa_config *config,
                                   const struct iwarp_mpa_frame *reply,
                                   struct iwarp_mpa_agreed *agreed, iwarp_error *error,
                                   enum iwarp_mpa_fault *fault);

/* A fault in words; never NULL. */
const char *iwarp_mpa_fault_text(enum iwarp_mpa_fault fault);

#endif
