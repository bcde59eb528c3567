// SPDX-License-Identifier: MIT
/*
 * NdkConnect and NdkConnectWithSharedEndpoint: one way, two sources of the local address. The
 * request is in `pending` before the connection starts, since its event may come at once; a start
 * that fails takes everything back, so that connector and queue pair are as before.
 */
#include <ntstatus.h>

#include "base/red.h"
#include "base/status.h"
#include "base/usdt.h"
#include "provider/adapter.h"
#include "provider/address.h"
#include "provider/connector.h"
#include "provider/shared_endpoint.h"

struct connect_call {
    enum call call;
    const char *rule;
    struct os_addr local, peer; /* the host's */
    bool v6;                    /* asked for in IPv6 */
    struct conn_binding binding;
};

/* ---- what is asked -------------------------------------------------------------------------- */

/* A connector serves one attempt. */
static NTSTATUS check_unused(struct connector *k, enum call call)
{
    if (conn_reason(k->conn))
        return object_fail(&k->object, call, STATUS_CONNECTION_INVALID,
                           "a connector serves one attempt: create a new one");
    if (k->listener || k->qp)
        return object_fail(&k->object, call, STATUS_CONNECTION_ACTIVE,
                           "the connector is connecting or connected");
    return STATUS_SUCCESS;
}

static NTSTATUS check_local(struct connector *k, CONST SOCKADDR *source, ULONG length,
                            struct connect_call *c)
{
    char text[ADDRESS_FOREIGN_MAX];
    struct address local;

    if (!address_get(k->object.adapter, source, length, &local))
        return object_fail(&k->object, c->call, STATUS_INVALID_ADDRESS,
                           "pSrcAddress is no IPv4 or IPv6 address (length %u)", length);
    if (!address_is_of(&k->object.adapter->interface, &local.ndk))
        return object_fail(&k->object, c->call, STATUS_INVALID_ADDRESS, "local %s, rule %s",
                           address_foreign(&k->object.adapter->interface, &local.ndk, text),
                           c->rule);
    c->local = local.host;
    c->v6 = local.v6;
    k->family = local.family;
    return STATUS_SUCCESS;
}

/* After the local address, whose family it must have. */
static NTSTATUS check_peer(struct connector *k, CONST SOCKADDR *target, ULONG length,
                           struct connect_call *c)
{
    char local_text[OS_ADDR_TEXT_MAX], peer_text[OS_ADDR_TEXT_MAX];
    struct address peer;

    if (!address_get(k->object.adapter, target, length, &peer) || peer.ndk.port == 0 ||
        peer.v6 != c->v6 || os_addr_is_wildcard(&peer.ndk))
        return object_fail(&k->object, c->call, STATUS_INVALID_ADDRESS,
                           "pDestAddress is no address with a port of the source's family "
                           "(length %u)",
                           length);
    c->peer = peer.host;
    if (c->peer.family == c->local.family)
        return STATUS_SUCCESS;
    /* One of them has an IPv4 address of the host, the other has none. */
    return object_fail(&k->object, c->call, STATUS_INVALID_ADDRESS,
                       "the host reaches %s and %s in different families (need a [peer] line, or "
                       "an address line, that gives both the same), rule %s",
                       address_text(k->object.adapter, &c->local, false, local_text),
                       os_addr_text(&peer.ndk, false, peer_text), c->rule);
}

/* ---- starting ------------------------------------------------------------------------------- */

/* The queue pair and the request are taken; connect_end() follows. */
static NTSTATUS connect_begin(struct connector *k, NDK_QP *qp, struct connect_call *c,
                              NDK_FN_REQUEST_COMPLETION completion, PVOID context)
{
    NTSTATUS status = connector_take_qp(k, c->call, qp);
    struct request *request;

    if (status != STATUS_SUCCESS)
        return status;
    request = request_new(&k->object, c->call, completion, context);
    if (!request) {
        connector_untake_qp(k);
        return object_fail(&k->object, c->call, STATUS_INSUFFICIENT_RESOURCES, "no memory");
    }
    c->binding.qp = k->qp;
    c->binding.initiator = &k->qp->initiator;
    c->binding.receive = &k->qp->receive;
    c->binding.home = k->qp->object.home;
    c->binding.group = k->qp->receive_cq->group;
    c->binding.dead = &k->qp->dead;
    k->object.home = k->qp->object.home;
    k->pending_call = c->call;
    atomic_store(&k->pending, request);
    USDT(connect, k->conn, k->object.id, k->qp->object.id);
    return STATUS_SUCCESS;
}

/* status: of the start. After a success the connector may be gone. */
static NTSTATUS connect_end(struct connector *k, NTSTATUS status)
{
    if (status == STATUS_SUCCESS)
        return STATUS_PENDING;
    request_drop(atomic_exchange(&k->pending, NULL));
    endpoint_drop(k->endpoint);
    k->endpoint = NULL;
    if (!RED("connector-refused-call-keeps-qp"))
        connector_untake_qp(k);
    return status;
}

static NTSTATUS fail_start(struct connector *k, const struct connect_call *c, NTSTATUS status)
{
    char local[OS_ADDR_TEXT_MAX], peer[OS_ADDR_TEXT_MAX];

    return object_fail(&k->object, c->call, status, "cannot connect %s to %s: %s, rule %s",
                       address_text(k->object.adapter, &c->local, true, local),
                       address_text(k->object.adapter, &c->peer, true, peer),
                       softndk_status_text(status), c->rule);
}

/* From c->local, whose port is held. TCP would connect an address to itself, which is nobody. */
static NTSTATUS start(struct connector *k, const struct connect_call *c)
{
    NTSTATUS status = STATUS_CONNECTION_REFUSED;

    if (!os_addr_equal(&c->local, &c->peer) || RED("connector-connects-to-itself"))
        status = conn_connect(k->conn, &c->local, &c->peer, &c->binding);
    return status == STATUS_SUCCESS ? status : fail_start(k, c, status);
}

/* The local port is fixed: takes it and starts. */
static NTSTATUS connect_fixed(struct connector *k, const struct connect_call *c)
{
    char text[OS_ADDR_TEXT_MAX];
    bool memory;

    k->endpoint = endpoint_take(&c->local, &memory);
    if (!k->endpoint)
        return object_fail(&k->object, c->call,
                           memory ? STATUS_INSUFFICIENT_RESOURCES : STATUS_SHARING_VIOLATION,
                           "local address %s is in use, rule %s",
                           address_text(k->object.adapter, &c->local, true, text), c->rule);
    return start(k, c);
}

/* Any ephemeral port: the next one that neither this process nor the system holds. */
static NTSTATUS connect_ephemeral(struct connector *k, struct connect_call *c)
{
    const struct options *o = &k->object.adapter->options;
    struct port_walk walk;

    port_walk_begin(&walk, o->port_low, o->port_high);
    while ((k->endpoint = port_walk_next(&walk, &c->local, &c->peer)) != NULL) {
        NTSTATUS status =
            conn_connect(k->conn, endpoint_address(k->endpoint), &c->peer, &c->binding);

        if (status == STATUS_SUCCESS)
            return status;
        if (status != STATUS_SHARING_VIOLATION && status != STATUS_ADDRESS_ALREADY_EXISTS)
            return fail_start(k, c, status);
        endpoint_drop(k->endpoint);
        k->endpoint = NULL;
    }
    if (walk.no_memory)
        return object_fail(&k->object, c->call, STATUS_INSUFFICIENT_RESOURCES,
                           "no memory for an endpoint");
    return object_fail(&k->object, c->call, STATUS_TOO_MANY_ADDRESSES,
                       "no port is left in %u..%u, rule %s", o->port_low, o->port_high, c->rule);
}

/* The port is the shared endpoint's; the destination must be this connector's alone. */
static NTSTATUS connect_over(struct connector *k, struct shared_endpoint *shared,
                             const struct connect_call *c)
{
    NTSTATUS status;

    if (!shared_endpoint_join(shared, k, &c->peer))
        return fail_start(k, c, STATUS_ADDRESS_ALREADY_EXISTS);
    status = start(k, c);
    if (status != STATUS_SUCCESS)
        shared_endpoint_leave_unused(k);
    return status;
}

/* ---- the slots ------------------------------------------------------------------------------ */

NTSTATUS connector_connect(NDK_CONNECTOR *ndk, NDK_QP *qp, CONST PSOCKADDR source,
                           ULONG source_length, CONST PSOCKADDR target, ULONG target_length,
                           ULONG inbound, ULONG outbound, CONST PVOID data, ULONG data_length,
                           NDK_FN_REQUEST_COMPLETION completion, PVOID context)
{
    struct connector *k = connector_from(ndk);
    struct connect_call c = {.call = CALL_CONNECT,
                             .rule = "NDKPI 13.1",
                             .binding = {.inbound_reads = inbound,
                                         .outbound_reads = outbound,
                                         .private_data = data,
                                         .private_length = data_length}};
    NTSTATUS status = object_injected(&k->object, c.call);

    if (status == STATUS_SUCCESS)
        status = check_unused(k, c.call);
    if (status == STATUS_SUCCESS)
        status = connector_check_private(k, c.call, data, data_length,
                                         k->object.adapter->options.max_caller_data);
    if (status == STATUS_SUCCESS)
        status = check_local(k, source, source_length, &c);
    if (status == STATUS_SUCCESS)
        status = check_peer(k, target, target_length, &c);
    if (status == STATUS_SUCCESS)
        status = connect_begin(k, qp, &c, completion, context);
    if (status == STATUS_SUCCESS)
        status = connect_end(k, c.local.port ? connect_fixed(k, &c) : connect_ephemeral(k, &c));
    if (status == STATUS_PENDING)
        return status;
    return request_answer(&k->object, c.call, completion, context, status);
}

NTSTATUS connector_connect_shared(NDK_CONNECTOR *ndk, NDK_QP *qp, NDK_SHARED_ENDPOINT *endpoint,
                                  CONST PSOCKADDR target, ULONG target_length, ULONG inbound,
                                  ULONG outbound, CONST PVOID data, ULONG data_length,
                                  NDK_FN_REQUEST_COMPLETION completion, PVOID context)
{
    struct connector *k = connector_from(ndk);
    struct shared_endpoint *shared = NULL;
    struct connect_call c = {.call = CALL_CONNECT_WITH_SHARED_ENDPOINT,
                             .rule = "NDKPI 13.2",
                             .binding = {.inbound_reads = inbound,
                                         .outbound_reads = outbound,
                                         .private_data = data,
                                         .private_length = data_length,
                                         .shares_port = true}};
    NTSTATUS status = object_injected(&k->object, c.call);

    if (status == STATUS_SUCCESS)
        status = check_unused(k, c.call);
    if (status == STATUS_SUCCESS)
        status = connector_check_private(k, c.call, data, data_length,
                                         k->object.adapter->options.max_caller_data);
    if (status == STATUS_SUCCESS) {
        shared = shared_endpoint_of(endpoint, k->object.adapter);
        if (!shared)
            status = object_fail(&k->object, c.call, STATUS_INVALID_PARAMETER,
                                 "the shared endpoint is NULL, none, or of another adapter");
    }
    if (status == STATUS_SUCCESS) {
        c.local = *endpoint_address(shared->endpoint);
        k->family = shared->family;
        c.v6 = k->family != AF_INET;
        status = check_peer(k, target, target_length, &c);
    }
    if (status == STATUS_SUCCESS)
        status = connect_begin(k, qp, &c, completion, context);
    if (status == STATUS_SUCCESS)
        status = connect_end(k, connect_over(k, shared, &c));
    if (status == STATUS_PENDING)
        return status;
    return request_answer(&k->object, c.call, completion, context, status);
}
