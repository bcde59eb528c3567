// SPDX-License-Identifier: MIT
/* Shared endpoints as blocking calls; include after ends.h. */
#ifndef SOFTNDK_TESTS_SHARED_H
#define SOFTNDK_TESTS_SHARED_H

#include <string.h>

#include "ends.h"

static inline ULONG length_of(const SOCKADDR_INET *address)
{
    return address->si_family == AF_INET ? sizeof address->Ipv4 : sizeof address->Ipv6;
}

static inline USHORT *port_field(SOCKADDR_INET *address)
{
    return address->si_family == AF_INET ? &address->Ipv4.sin_port : &address->Ipv6.sin6_port;
}

/* text's address with a port in host order. */
static inline SOCKADDR_INET at_port(const char *text, unsigned port)
{
    SOCKADDR_INET address;
    ULONG length;

    if (softndk_address_from_text(text, &address, &length) != STATUS_SUCCESS)
        test_fail("no address: %s", text);
    *port_field(&address) = RtlUshortByteSwap((USHORT)port);
    return address;
}

/* NdkCreateSharedEndpoint; returned: what the call itself returned. On failure *out is as it was.
 */
static inline NTSTATUS create_shared(NDK_ADAPTER *adapter, const SOCKADDR_INET *address,
                                     ULONG length, NTSTATUS *returned, NDK_SHARED_ENDPOINT **out)
{
    SOCKADDR_INET copy;
    struct wait w;
    NTSTATUS status;

    if (address)
        copy = *address;
    wait_init(&w);
    *returned = adapter->Dispatch->NdkCreateSharedEndpoint(
        adapter, address ? (PSOCKADDR)&copy : NULL, length, wait_create, &w, out);
    status = wait_end(&w, *returned);
    if (*returned == STATUS_PENDING && status == STATUS_SUCCESS)
        *out = (NDK_SHARED_ENDPOINT *)(void *)w.object;
    else if (*returned == STATUS_PENDING && w.object)
        test_fail("an object together with %s", softndk_status_name(status));
    return status;
}

static inline NDK_SHARED_ENDPOINT *make_shared(NDK_ADAPTER *adapter, const SOCKADDR_INET *address)
{
    NDK_SHARED_ENDPOINT *endpoint = NULL;
    NTSTATUS returned, status;

    status = create_shared(adapter, address, length_of(address), &returned, &endpoint);
    if (status != STATUS_SUCCESS)
        test_fail("NdkCreateSharedEndpoint: %s", softndk_status_name(status));
    return endpoint;
}

static inline SOCKADDR_INET shared_address(NDK_SHARED_ENDPOINT *endpoint)
{
    SOCKADDR_INET address;
    ULONG length = sizeof address;

    memset(&address, 0, sizeof address);
    if (endpoint->Dispatch->NdkGetLocalAddress(endpoint, (PSOCKADDR)&address, &length) !=
        STATUS_SUCCESS)
        test_fail("no address of a shared endpoint");
    return address;
}

/* A call under way. */
struct call {
    struct wait wait;
    NTSTATUS returned;
};

static inline NTSTATUS ended(struct call *call)
{
    return wait_end(&call->wait, call->returned);
}

/* NdkConnectWithSharedEndpoint of a connector; the answer is in the call. */
static inline void dial_over(NDK_CONNECTOR *connector, NDK_QP *qp, NDK_SHARED_ENDPOINT *endpoint,
                             const SOCKADDR_INET *to, struct call *call)
{
    SOCKADDR_INET peer = *to;

    wait_init(&call->wait);
    call->returned = connector->Dispatch->NdkConnectWithSharedEndpoint(
        connector, qp, endpoint, (PSOCKADDR)&peer, length_of(to), 8, 8, NULL, 0, wait_request,
        &call->wait);
}

/* One more QP of an end, with receives in this CQ. */
static inline NDK_QP *make_qp_on(struct end *end, NDK_CQ *receive)
{
    NDK_QP *qp = NULL;
    struct wait w;
    NTSTATUS status;

    wait_init(&w);
    status = end->pd->Dispatch->NdkCreateQp(end->pd, receive, end->initiator.cq, NULL, 8, 8, 1, 1,
                                            0, wait_create, &w, &qp);
    if (wait_end(&w, status) != STATUS_SUCCESS)
        test_fail("no QP");
    return status == STATUS_PENDING ? (NDK_QP *)(void *)w.object : qp;
}

static inline NDK_QP *make_qp(struct end *end)
{
    return make_qp_on(end, end->receive.cq);
}

/* Refuses the next connect by closing its connector. */
static inline void close_next(struct listening *listening)
{
    NDK_CONNECTOR *connector = next_incoming(listening);

    CLOSE(connector, NdkCloseConnector);
}

/* The status of a listener on this address, which is closed again. */
static inline VOID no_event(PVOID context, NDK_CONNECTOR *connector)
{
    (void)context;
    CLOSE(connector, NdkCloseConnector);
}

static inline NTSTATUS listen_status(NDK_ADAPTER *adapter, const SOCKADDR_INET *address)
{
    SOCKADDR_INET copy = *address;
    NDK_LISTENER *listener = NULL;
    struct wait w;
    NTSTATUS status;

    wait_init(&w);
    status =
        adapter->Dispatch->NdkCreateListener(adapter, no_event, NULL, wait_create, &w, &listener);
    if (wait_end(&w, status) != STATUS_SUCCESS)
        test_fail("no listener");
    if (status == STATUS_PENDING)
        listener = (NDK_LISTENER *)(void *)w.object;
    wait_init(&w);
    status = wait_end(&w, listener->Dispatch->NdkListen(listener, (PSOCKADDR)&copy,
                                                        length_of(address), wait_request, &w));
    CLOSE(listener, NdkCloseListener);
    return status;
}

#endif
