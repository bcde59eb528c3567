// SPDX-License-Identifier: MIT
/* The part of status_injected_test.c about connectors and listeners. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "injected.h"

/* ---- every call once ------------------------------------------------------------------------ */

static NTSTATUS connect_it(struct injected *b, struct wait *w)
{
    return b->connector->Dispatch->NdkConnect(b->connector, b->end.qp, (PSOCKADDR)&b->local,
                                              b->address_length, (PSOCKADDR)&b->peer,
                                              b->address_length, 1, 1, NULL, 0, wait_request, w);
}

static NTSTATUS connect_shared(struct injected *b, struct wait *w)
{
    return b->connector->Dispatch->NdkConnectWithSharedEndpoint(
        b->connector, b->end.qp, b->shared, (PSOCKADDR)&b->peer, b->address_length, 1, 1, NULL, 0,
        wait_request, w);
}

static NTSTATUS complete_connect(struct injected *b, struct wait *w)
{
    return b->connector->Dispatch->NdkCompleteConnect(b->connector, NULL, NULL, wait_request, w);
}

static NTSTATUS complete_connect_ex(struct injected *b, struct wait *w)
{
    return b->connector->Dispatch->NdkCompleteConnectEx(b->connector, NULL, NULL, wait_request, w);
}

static NTSTATUS accept_it(struct injected *b, struct wait *w)
{
    return b->connector->Dispatch->NdkAccept(b->connector, b->end.qp, 1, 1, NULL, 0, NULL, NULL,
                                             wait_request, w);
}

static NTSTATUS accept_ex(struct injected *b, struct wait *w)
{
    return b->connector->Dispatch->NdkAcceptEx(b->connector, b->end.qp, 1, 1, NULL, 0, NULL, NULL,
                                               wait_request, w);
}

static NTSTATUS reject_it(struct injected *b, struct wait *w)
{
    (void)w;
    return b->connector->Dispatch->NdkReject(b->connector, NULL, 0);
}

static NTSTATUS get_connection_data(struct injected *b, struct wait *w)
{
    ULONG inbound, outbound, length = 0;

    (void)w;
    return b->connector->Dispatch->NdkGetConnectionData(b->connector, &inbound, &outbound, NULL,
                                                        &length);
}

static NTSTATUS get_local_address(struct injected *b, struct wait *w)
{
    SOCKADDR_INET address;
    ULONG length = sizeof address;

    (void)w;
    return b->connector->Dispatch->NdkGetLocalAddress(b->connector, (PSOCKADDR)&address, &length);
}

static NTSTATUS get_peer_address(struct injected *b, struct wait *w)
{
    SOCKADDR_INET address;
    ULONG length = sizeof address;

    (void)w;
    return b->connector->Dispatch->NdkGetPeerAddress(b->connector, (PSOCKADDR)&address, &length);
}

static NTSTATUS disconnect_it(struct injected *b, struct wait *w)
{
    return b->connector->Dispatch->NdkDisconnect(b->connector, wait_request, w);
}

static NTSTATUS listen_it(struct injected *b, struct wait *w)
{
    return b->listener->Dispatch->NdkListen(b->listener, (PSOCKADDR)&b->local, b->address_length,
                                            wait_request, w);
}

static NTSTATUS get_listener_address(struct injected *b, struct wait *w)
{
    SOCKADDR_INET address;
    ULONG length = sizeof address;

    (void)w;
    return b->listener->Dispatch->NdkGetLocalAddress(b->listener, (PSOCKADDR)&address, &length);
}

/* ---- what each must give --------------------------------------------------------------------- */

#define COMPLETE                                                                                   \
    STATUS_CONNECTION_INVALID, STATUS_CONNECTION_ABORTED, STATUS_IO_TIMEOUT,                       \
        STATUS_INSUFFICIENT_RESOURCES, STATUS_CANCELLED, STATUS_INTERNAL_ERROR
#define ACCEPT                                                                                     \
    COMPLETE, STATUS_CONNECTION_REFUSED, STATUS_INVALID_BUFFER_SIZE, STATUS_CONNECTION_ACTIVE,     \
        STATUS_INVALID_PARAMETER

static const struct injected_entry connector_entries[] = {
    {"NdkConnect",
     NULL,
     connect_it,
     {STATUS_INSUFFICIENT_RESOURCES, STATUS_NETWORK_UNREACHABLE, STATUS_HOST_UNREACHABLE,
      STATUS_CONNECTION_REFUSED, STATUS_IO_TIMEOUT, STATUS_SHARING_VIOLATION,
      STATUS_INVALID_ADDRESS, STATUS_TOO_MANY_ADDRESSES, STATUS_ADDRESS_ALREADY_EXISTS,
      STATUS_INVALID_BUFFER_SIZE, STATUS_CONNECTION_ACTIVE, STATUS_INVALID_PARAMETER,
      STATUS_CONNECTION_INVALID, STATUS_CONNECTION_ABORTED, STATUS_CANCELLED,
      STATUS_INTERNAL_ERROR}},
    {"NdkConnectWithSharedEndpoint",
     NULL,
     connect_shared,
     {STATUS_INSUFFICIENT_RESOURCES, STATUS_NETWORK_UNREACHABLE, STATUS_HOST_UNREACHABLE,
      STATUS_CONNECTION_REFUSED, STATUS_IO_TIMEOUT, STATUS_ADDRESS_ALREADY_EXISTS,
      STATUS_INVALID_PARAMETER, STATUS_INVALID_ADDRESS, STATUS_SHARING_VIOLATION,
      STATUS_INVALID_BUFFER_SIZE, STATUS_CONNECTION_ACTIVE, STATUS_CONNECTION_INVALID,
      STATUS_CONNECTION_ABORTED, STATUS_CANCELLED, STATUS_INTERNAL_ERROR}},
    {"NdkCompleteConnect", NULL, complete_connect, {COMPLETE}},
    {"NdkCompleteConnectEx", NULL, complete_connect_ex, {COMPLETE, STATUS_NOT_SUPPORTED}},
    {"NdkAccept", NULL, accept_it, {ACCEPT}},
    {"NdkAcceptEx", NULL, accept_ex, {ACCEPT, STATUS_NOT_SUPPORTED}},
    {"NdkReject",
     NULL,
     reject_it,
     {STATUS_CONNECTION_ABORTED, STATUS_INVALID_BUFFER_SIZE, STATUS_INVALID_PARAMETER,
      STATUS_CONNECTION_INVALID, STATUS_INSUFFICIENT_RESOURCES}},
    {"NdkGetConnectionData",
     NULL,
     get_connection_data,
     {STATUS_BUFFER_TOO_SMALL, STATUS_CONNECTION_INVALID, STATUS_INVALID_PARAMETER}},
    {"NdkGetLocalAddress",
     NULL,
     get_local_address,
     {STATUS_BUFFER_TOO_SMALL, STATUS_CONNECTION_INVALID, STATUS_INVALID_PARAMETER}},
    {"NdkGetPeerAddress",
     NULL,
     get_peer_address,
     {STATUS_BUFFER_TOO_SMALL, STATUS_CONNECTION_INVALID, STATUS_INVALID_PARAMETER}},
    {"NdkDisconnect",
     NULL,
     disconnect_it,
     {STATUS_IO_TIMEOUT, STATUS_CONNECTION_INVALID, STATUS_CONNECTION_ABORTED,
      STATUS_INSUFFICIENT_RESOURCES, STATUS_CANCELLED, STATUS_INTERNAL_ERROR}},
    {NULL, NULL, NULL, {0}},
};

static const struct injected_entry listener_entries[] = {
    {"NdkListen",
     NULL,
     listen_it,
     {STATUS_INSUFFICIENT_RESOURCES, STATUS_SHARING_VIOLATION, STATUS_INVALID_ADDRESS,
      STATUS_TOO_MANY_ADDRESSES, STATUS_INVALID_DEVICE_STATE}},
    {"NdkGetListenerLocalAddress",
     "NdkGetLocalAddress",
     get_listener_address,
     {STATUS_BUFFER_TOO_SMALL, STATUS_INVALID_DEVICE_STATE, STATUS_INVALID_PARAMETER}},
    {NULL, NULL, NULL, {0}},
};

/* ---- the tests ------------------------------------------------------------------------------ */

static void connector_calls(void **state)
{
    (void)state;
    injected_run(connector_entries);
}

static void listener_calls(void **state)
{
    (void)state;
    injected_run(listener_entries);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(connector_calls),
        cmocka_unit_test(listener_calls),
    };

    return cmocka_run_group_tests_name("status_injected_connect", tests, NULL, NULL);
}
