// SPDX-License-Identifier: MIT
/*
 * The 32-bit reason of base/reason.h in words: "Terminate sent: DDP: ...; a Send met no receive".
 * Pure. Behind softndk_reason_text(), and for the reasons kept at objects.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/red.h"
#include "conn/reason_text.h"
#include "iwarp/terminate.h"

static const char *source_text(enum reason_source source)
{
    static const char *const texts[REASON_SOURCES] = {
        [REASON_NONE] = "no reason given",
        [REASON_PEER_FIN] = "the peer closed the connection (FIN)",
        [REASON_PEER_RST] = "the peer reset the connection (RST)",
        [REASON_TERMINATE_SENT] = "Terminate sent",
        [REASON_TERMINATE_RECEIVED] = "Terminate received",
        [REASON_TIMEOUT] = "timed out",
        [REASON_VIOLATION] = "the peer broke the protocol",
        [REASON_LOCAL_CLOSE] = "ended by the local consumer",
        [REASON_LOCAL_FAULT] = "failed locally",
        [REASON_REFUSED] = "refused",
    };

    return source < REASON_SOURCES ? texts[source] : "unknown source";
}

static const char *errno_text(unsigned number)
{
    switch (number) {
    case ECONNRESET:
        return "ECONNRESET, reset by the peer";
    case ECONNREFUSED:
        return "ECONNREFUSED, nobody listens there";
    case ECONNABORTED:
        return "ECONNABORTED, aborted";
    case ETIMEDOUT:
        return "ETIMEDOUT, no answer";
    case EHOSTUNREACH:
        return "EHOSTUNREACH, no way to the host";
    case ENETUNREACH:
        return "ENETUNREACH, no way to the network";
    case ENETDOWN:
        return "ENETDOWN, the network is down";
    case EPIPE:
        return "EPIPE, the connection is closed";
    case EADDRINUSE:
        return "EADDRINUSE, address in use";
    case EADDRNOTAVAIL:
        return "EADDRNOTAVAIL, address not available";
    case ENOBUFS:
        return "ENOBUFS, no buffer space";
    case ENOMEM:
        return "ENOMEM, no memory";
    case EMFILE:
        return "EMFILE, too many descriptors";
    case EACCES:
        return "EACCES, not permitted";
    case EPROTO:
        return "EPROTO, protocol error";
    default:
        return NULL;
    }
}

static const char *cause_text(unsigned cause)
{
    switch (cause) {
#define X(name, value, text)                                                                       \
    case value:                                                                                    \
        return text;
        REASON_CAUSES(X)
#undef X
    default:
        return "unknown cause";
    }
}

static void cause_write(unsigned cause, char *text, size_t size)
{
    if (cause >= REASON_CAUSE_SOCKET) {
        unsigned number = cause - REASON_CAUSE_SOCKET;
        const char *name = errno_text(number);

        if (name)
            snprintf(text, size, "socket error %s", name);
        else
            snprintf(text, size, "socket error %u", number);
        return;
    }
    snprintf(text, size, "%s", cause_text(cause));
}

size_t reason_text(uint32_t code, char *text, size_t size)
{
    unsigned wire = reason_wire_error(code);
    char cause[120], whole[400];
    int n;

    cause_write(reason_cause(code), cause, sizeof cause);
    n = snprintf(whole, sizeof whole, "%s", source_text(reason_source(code)));
    if (reason_has_wire_error(code) && !RED("api-reason-without-wire"))
        n += snprintf(whole + n, sizeof whole - (size_t)n, ": %s (%u/%u/%02x)",
                      iwarp_error_text(IWARP_ERROR(wire >> 12, wire >> 8 & 0xf, wire & 0xff)),
                      wire >> 12, wire >> 8 & 0xf, wire & 0xff);
    if (cause[0])
        n += snprintf(whole + n, sizeof whole - (size_t)n, "; %s", cause);
    if (size)
        snprintf(text, size, "%s", whole);
    return strlen(whole);
}
