// SPDX-License-Identifier: MIT
/*
 * Why a connection ended, in 32 bits: ProviderDisconnectReason of the disconnect event and
 * ProviderErrorCode of a work completion. softndk_reason_text() puts it in words.
 *
 *   31..28 source   27..24 layer   23..20 type   19..12 code   11..0 cause
 *
 * layer, type and code are those of a Terminate message, as RFC 5040 and iwarp_error spell them;
 * they are meaningful for the sources TERMINATE_SENT, TERMINATE_RECEIVED and VIOLATION, and zero
 * otherwise. cause says what happened here, also beside a Terminate. 0: no reason, no error.
 * Pure; written by the connection room, read by src/api/reason.c.
 */
#ifndef SOFTNDK_BASE_REASON_H
#define SOFTNDK_BASE_REASON_H

#include <stdbool.h>
#include <stdint.h>

enum reason_source {
    REASON_NONE = 0,
    REASON_PEER_FIN = 1,           /* the peer closed in good order */
    REASON_PEER_RST = 2,           /* the peer reset the connection */
    REASON_TERMINATE_SENT = 3,     /* we found an error and told the peer */
    REASON_TERMINATE_RECEIVED = 4, /* the peer found an error and told us */
    REASON_TIMEOUT = 5,            /* a timer of ours or of TCP; cause says which */
    REASON_VIOLATION = 6,          /* the peer broke the protocol, no Terminate was possible */
    REASON_LOCAL_CLOSE = 7,        /* the consumer closed or disconnected */
    REASON_LOCAL_FAULT = 8,        /* this host: socket error, resources, caps */
    REASON_REFUSED = 9,            /* establishment: refused or rejected, by TCP or by a Reply */
    REASON_SOURCES
};

/* X(name, value, text): what happened on this side. Values are stable. */
#define REASON_CAUSES(X)                                                                           \
    X(NOTHING, 0, "")                                                                              \
    /* timers */                                                                                   \
    X(CONNECT_TIMER, 1, "no MPA Reply in time (connect_ms)")                                       \
    X(REQUEST_TIMER, 2, "no MPA Request in time (request_ms)")                                     \
    X(ESTABLISH_TIMER, 3, "establishment not finished in time (establish_ms)")                     \
    X(HOLDBACK_TIMER, 4, "no receive was posted in time (holdback_ms)")                            \
    X(DISCONNECT_TIMER, 5, "the peer did not answer our disconnect in time (disconnect_ms)")       \
    X(LINGER_TIMER, 6, "no acknowledgement progress while closing (linger_ms)")                    \
    X(DRAIN_TIMER, 7, "no FIN in time after a Terminate (drain_ms)")                               \
    X(USER_TIMEOUT, 8, "TCP got no acknowledgement in time (user_timeout_ms)")                     \
    X(KEEPALIVE, 9, "TCP keepalive got no answer (keepalive_s)")                                   \
    /* ends in the wrong place */                                                                  \
    X(FIN_IN_STARTUP, 0x20, "FIN before the connection was established")                           \
    X(FIN_IN_FPDU, 0x21, "FIN inside an FPDU")                                                     \
    X(FIN_IN_MESSAGE, 0x22, "FIN inside a message")                                                \
    X(FIN_WITH_READS, 0x23, "FIN with Reads of ours unanswered")                                   \
    X(FIN_AFTER_TERMINATE, 0x24, "FIN after a Terminate")                                          \
    /* startup */                                                                                  \
    X(BAD_STARTUP_FRAME, 0x40, "malformed MPA Request or Reply")                                   \
    X(REPLY_REJECTED, 0x41, "the peer's Reply rejects the connection")                             \
    X(REVISION, 0x42, "MPA revisions do not match")                                                \
    X(MARKERS, 0x43, "the peer wants markers, which are not supported")                            \
    X(CRC_MODE, 0x44, "CRC settings do not match")                                                 \
    X(READ_LIMITS, 0x45, "read limits (IRD/ORD) do not fit")                                       \
    X(RTR, 0x46, "no common ready-to-receive message, or a wrong one")                             \
    X(PRIVATE_DATA, 0x47, "too much private data")                                                 \
    X(TOO_MANY_PENDING, 0x48, "too many undecided connections at the listener")                    \
    X(NOT_LISTENING, 0x49, "nobody listens there, or the listener is paused or closing")           \
    X(REJECTED, 0x4a, "the consumer rejected or closed an undecided connector")                    \
    X(REPLY_TRAILING, 0x4b, "octets follow a Reply or Request that must stand alone")              \
    /* traffic */                                                                                  \
    X(CRC, 0x60, "CRC error in an FPDU")                                                           \
    X(FPDU_LENGTH, 0x61, "FPDU length out of range")                                               \
    X(NO_RECEIVE, 0x62, "a Send met no receive")                                                   \
    X(RECEIVE_TOO_SHORT, 0x63, "a Send was longer than its receive")                               \
    X(TOKEN, 0x64, "an access with an invalid token")                                              \
    X(RIGHTS, 0x65, "an access without the right for it")                                          \
    X(BOUNDS, 0x66, "an access outside its region")                                                \
    X(READ_LIMIT_EXCEEDED, 0x67, "more Reads in progress than agreed")                             \
    X(READ_RESPONSE, 0x68, "a Read Response that matches no Read")                                 \
    X(INVALIDATE, 0x69, "remote invalidation of something that cannot be invalidated")             \
    X(LOCAL_REQUEST, 0x6a, "a request of ours failed locally")                                     \
    X(SEQUENCE, 0x6b, "a message out of sequence")                                                 \
    /* resources */                                                                                \
    X(STAGING_CAP, 0x80, "too many octets of partial FPDUs held (staging cap)")                    \
    X(NO_MEMORY, 0x81, "no memory")                                                                \
    X(CQ_OVERRUN, 0x82, "its CQ overran")                                                          \
    /* the consumer */                                                                             \
    X(CLOSED, 0xa0, "connector closed")                                                            \
    X(DISCONNECTED, 0xa1, "disconnected")                                                          \
    X(FLUSHED, 0xa2, "QP flushed")                                                                 \
    X(ADAPTER_REMOVED, 0xa3, "adapter removed")

enum reason_cause {
#define X(name, value, text) REASON_CAUSE_##name = (value),
    REASON_CAUSES(X)
#undef X
    /* 0x800 + errno: a socket error of this host. */
    REASON_CAUSE_SOCKET = 0x800,
    REASON_CAUSE_MAX = 0xfff
};

/* error: 0 or a negative or positive errno value; what does not fit is 0x7ff, "unknown". */
static inline unsigned reason_socket_cause(int error)
{
    unsigned number = error < 0 ? 0u - (unsigned)error : (unsigned)error;

    return REASON_CAUSE_SOCKET + (number > 0x7ff ? 0x7ff : number);
}

/* wire_error: layer << 12 | type << 8 | code, as iwarp_error has it in its low 16 bits (its higher
 * bits are ignored); 0 when there is none. */
static inline uint32_t reason_make(enum reason_source source, uint32_t wire_error, unsigned cause)
{
    return ((uint32_t)source & 0xfu) << 28 | (wire_error & 0xffffu) << 12 | (cause & 0xfffu);
}

static inline enum reason_source reason_source(uint32_t reason)
{
    return (enum reason_source)(reason >> 28);
}

/* layer << 12 | type << 8 | code */
static inline uint32_t reason_wire_error(uint32_t reason)
{
    return (reason >> 12) & 0xffffu;
}

static inline unsigned reason_cause(uint32_t reason)
{
    return reason & 0xfffu;
}

/* Does this source carry layer, type and code? */
static inline bool reason_has_wire_error(uint32_t reason)
{
    enum reason_source source = reason_source(reason);

    return source == REASON_TERMINATE_SENT || source == REASON_TERMINATE_RECEIVED ||
           (source == REASON_VIOLATION && reason_wire_error(reason) != 0);
}

#endif
