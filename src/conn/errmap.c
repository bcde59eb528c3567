// SPDX-License-Identifier: MIT
/* The one place where failures of the os and verdicts of the wire become statuses and reasons. */
#include <ntstatus.h>

#include "base/red.h"
#include "conn/conn_internal.h"

/* Of connect() alone, and of a socket that could not be had: bind() fails as a listener's does. */
NTSTATUS conn_status_from_connect(int error)
{
    switch (error < 0 ? -error : error) {
    case ECONNREFUSED:
    case ECONNRESET:
    case EPIPE:
        return STATUS_CONNECTION_REFUSED;
    case ENETUNREACH:
    case ENETDOWN:
        return STATUS_NETWORK_UNREACHABLE;
    case EINVAL: /* a route that throws away (blackhole) */
        return RED("conn-route-as-address") ? STATUS_INVALID_ADDRESS : STATUS_NETWORK_UNREACHABLE;
    case EHOSTUNREACH:
    case EHOSTDOWN:
        return STATUS_HOST_UNREACHABLE;
    case EACCES: /* a route or a packet filter that forbids */
    case EPERM:
        return RED("conn-forbidden-as-sharing") ? STATUS_SHARING_VIOLATION
                                                : STATUS_HOST_UNREACHABLE;
    case ETIMEDOUT:
        return STATUS_IO_TIMEOUT;
    case EADDRINUSE:
        return STATUS_SHARING_VIOLATION;
    case EADDRNOTAVAIL: /* this pair of addresses and ports is in use */
        return RED("conn-pair-as-address") ? STATUS_INVALID_ADDRESS : STATUS_ADDRESS_ALREADY_EXISTS;
    case EAFNOSUPPORT:
        return STATUS_INVALID_ADDRESS;
    default:
        return STATUS_INSUFFICIENT_RESOURCES;
    }
}

/* Of bind() and listen(). */
NTSTATUS conn_status_from_bind(int error)
{
    switch (error < 0 ? -error : error) {
    case EADDRINUSE:
    case EACCES:
        return STATUS_SHARING_VIOLATION;
    case EADDRNOTAVAIL:
    case EINVAL:
    case EAFNOSUPPORT:
        return STATUS_INVALID_ADDRESS;
    default:
        return STATUS_INSUFFICIENT_RESOURCES;
    }
}

uint32_t conn_reason_socket(int error)
{
    switch (error < 0 ? -error : error) {
    case ECONNRESET:
    case EPIPE:
        return R(PEER_RST, NOTHING);
    case ETIMEDOUT:
        return R(TIMEOUT, USER_TIMEOUT);
    case ECONNREFUSED:
        return R(REFUSED, NOT_LISTENING);
    default:
        return reason_make(REASON_LOCAL_FAULT, 0, reason_socket_cause(error));
    }
}

/* What the peer's Terminate says about the oldest request of ours. */
NTSTATUS conn_status_from_terminate(iwarp_error error)
{
    switch (error) {
    case IWARP_ERR_PROT_BOUNDS: /* a Read past the end of the peer's memory */
        return STATUS_REMOTE_RESOURCES;
    case IWARP_ERR_PROT_STAG:
    case IWARP_ERR_PROT_RIGHTS:
    case IWARP_ERR_PROT_STREAM:
    case IWARP_ERR_PROT_WRAP:
    case IWARP_ERR_PROT_INVALIDATE:
    case IWARP_ERR_TAG_STAG:
    case IWARP_ERR_TAG_BOUNDS:
    case IWARP_ERR_TAG_STREAM:
    case IWARP_ERR_TAG_WRAP:
        return STATUS_ACCESS_VIOLATION;
    case IWARP_ERR_UNTAG_NO_BUFFER: /* no receive was posted for a Send */
        return STATUS_IO_TIMEOUT;
    default:
        return STATUS_REMOTE_RESOURCES;
    }
}

iwarp_error conn_error_from_write(enum access_result result)
{
    switch (result) {
    case ACCESS_WRONG_DOMAIN:
        return IWARP_ERR_TAG_STREAM;
    case ACCESS_BOUNDS:
        return IWARP_ERR_TAG_BOUNDS;
    case ACCESS_WRAP:
        return IWARP_ERR_TAG_WRAP;
    default: /* DDP has no code for a missing right */
        return IWARP_ERR_TAG_STAG;
    }
}

iwarp_error conn_error_from_read(enum access_result result)
{
    switch (result) {
    case ACCESS_WRONG_DOMAIN:
        return IWARP_ERR_PROT_STREAM;
    case ACCESS_BOUNDS:
        return IWARP_ERR_PROT_BOUNDS;
    case ACCESS_WRAP:
        return IWARP_ERR_PROT_WRAP;
    case ACCESS_NO_RIGHT:
        return IWARP_ERR_PROT_RIGHTS;
    default:
        return IWARP_ERR_PROT_STAG;
    }
}
