// SPDX-License-Identifier: MIT
/*
 * Who holds a local address, and until when (lifetime 9.4); pausing and closing a listener (9.5);
 * addresses that a call cannot take.
 */
#include "kit_steps.h"

#define FIRST_EPHEMERAL 49152

/* Does a new listener get this address? */
static BOOLEAN listen_gives(struct kit_adapter *adapter, const SOCKADDR_INET *address,
                            NTSTATUS need, struct kit_listener **out)
{
    struct kit_listener *listener;

    TRY_OR_FALSE(kit_listener_new(adapter, &listener));
    if (out)
        *out = listener;
    return kit_answer_is(kit_listen_start(listener, address), need);
}

static BOOLEAN local_of(struct kit *k, struct kit_connector *c, SOCKADDR_INET *address)
{
    ULONG size = sizeof *address;

    return kit_status(k, KIT_HERE, "NdkGetLocalAddress",
                      c->table->NdkGetLocalAddress(c->ndk, (PSOCKADDR)address, &size),
                      STATUS_SUCCESS);
}

static BOOLEAN is_ephemeral(struct kit *k, const char *what, const SOCKADDR_INET *address)
{
    if (kit_port(address) < FIRST_EPHEMERAL)
        return kit_fail(k, KIT_HERE, "%s: have port %u, need 49152 to 65535", what,
                        kit_port(address));
    return TRUE;
}

/* ---- ephemeral ports ------------------------------------------------------------------------ */

static VOID port_0(struct kit *k)
{
    SOCKADDR_INET second, local;
    struct kit_listener *other;
    struct kit_steps s;

    TRY(kit_steps_to(k, KIT_STEP_CONNECTED, NULL, &s));
    TRY(is_ephemeral(k, "a listener on port 0", &s.address));
    TRY(kit_listener_new(s.b.adapter, &other));
    TRY(kit_listen(other, &second));
    CHECK(k, kit_port(&second) != kit_port(&s.address), "two listeners have port %u",
          kit_port(&second));
    TRY(local_of(k, s.a.connector, &local));
    TRY(is_ephemeral(k, "a connector from port 0", &local));
}

/* ---- held ----------------------------------------------------------------------------------- */

static VOID held_by_a_listener(struct kit *k)
{
    struct kit_steps s;

    TRY(kit_steps_to(k, KIT_STEP_NEW, NULL, &s));
    TRY(listen_gives(s.b.adapter, &s.address, STATUS_SHARING_VIOLATION, NULL));
    TRY(listen_gives(s.a.adapter, &s.address, STATUS_SHARING_VIOLATION, NULL));
    TRY(kit_answer_is(kit_connect_from(s.a.connector, s.a.qp, &s.address, &s.address, NULL),
                      STATUS_SHARING_VIOLATION));
    TRY(kit_close(&s.b.listener->object));
    TRY(listen_gives(s.a.adapter, &s.address, STATUS_SUCCESS, NULL));
}

/* The listener is closed, a connector that it delivered is not (rule 15 of section 13). */
static VOID held_by_an_accepted_connector(struct kit *k)
{
    struct kit_call *close;
    struct kit_steps s;

    TRY(kit_steps_to(k, KIT_STEP_CONNECTED, NULL, &s));
    close = kit_close_start(&s.b.listener->object);
    TRY(close != NULL);
    CHECK_STATUS(k, "closing a listener with an open connector", close->returned, STATUS_PENDING);
    TRY(listen_gives(s.a.adapter, &s.address, STATUS_SHARING_VIOLATION, NULL));
    TRY(kit_close(&s.b.connector->object));
    TRY(kit_answer_is(close, STATUS_SUCCESS));
    TRY(listen_gives(s.a.adapter, &s.address, STATUS_SUCCESS, NULL));
}

/* arg 0: connected. 1: the connect was refused; its address is held all the same. */
static VOID held_by_an_active_connector(struct kit *k)
{
    SOCKADDR_INET local;
    struct kit_steps s;

    TRY(kit_steps_to(k, KIT_STEP_ASKED, NULL, &s));
    TRY(local_of(k, s.a.connector, &local));
    if (k->test->arg) {
        CHECK_STATUS(k, "NdkReject", kit_reject(s.b.connector, NULL, 0), STATUS_SUCCESS);
        TRY(kit_answer_is(s.connect, STATUS_CONNECTION_REFUSED));
    } else {
        TRY(kit_steps_accept(&s, NULL));
        TRY(kit_steps_complete(&s));
    }
    TRY(listen_gives(s.b.adapter, &local, STATUS_SHARING_VIOLATION, NULL));
    TRY(kit_close(&s.a.connector->object));
    TRY(listen_gives(s.b.adapter, &local, STATUS_SUCCESS, NULL));
}

/* A connection that ended in good order costs its addresses nothing: no TIME_WAIT to sit out. */
static VOID free_at_once(struct kit *k)
{
    SOCKADDR_INET local;
    struct kit_call *first;
    struct kit_steps s;

    TRY(kit_steps_to(k, KIT_STEP_CONNECTED, NULL, &s));
    TRY(local_of(k, s.a.connector, &local));
    first = kit_disconnect_start(s.a.connector);
    TRY(kit_steps_disconnected(&s.b));
    TRY(kit_answer_is(kit_disconnect_start(s.b.connector), STATUS_SUCCESS));
    TRY(kit_answer_is(first, STATUS_SUCCESS));
    TRY(kit_close(&s.a.connector->object));
    TRY(kit_close(&s.b.connector->object));
    TRY(kit_close(&s.b.listener->object));
    TRY(listen_gives(s.b.adapter, &s.address, STATUS_SUCCESS, NULL));
    TRY(listen_gives(s.a.adapter, &local, STATUS_SUCCESS, NULL));
}

/* ---- shared endpoints ----------------------------------------------------------------------- */

static BOOLEAN endpoint_at(struct kit *k, struct kit_adapter *adapter, const SOCKADDR_INET *wanted,
                           struct kit_endpoint **out, SOCKADDR_INET *address)
{
    ULONG size = sizeof *address;

    TRY_OR_FALSE(kit_answer_is(kit_endpoint_start(adapter, wanted, out), STATUS_SUCCESS));
    return kit_status(k, KIT_HERE, "NdkGetLocalAddress of the endpoint",
                      (*out)->table->NdkGetLocalAddress((*out)->ndk, (PSOCKADDR)address, &size),
                      STATUS_SUCCESS);
}

static VOID held_by_an_endpoint(struct kit *k)
{
    struct kit_endpoint *endpoint, *second;
    SOCKADDR_INET address;
    struct kit_steps s;

    TRY(kit_steps_to(k, KIT_STEP_NEW, NULL, &s));
    TRY(endpoint_at(k, s.a.adapter, &k->config->local, &endpoint, &address));
    TRY(is_ephemeral(k, "an endpoint at port 0", &address));
    TRY(listen_gives(s.b.adapter, &address, STATUS_SHARING_VIOLATION, NULL));
    TRY(kit_answer_is(kit_endpoint_start(s.a.adapter, &address, &second),
                      STATUS_SHARING_VIOLATION));
    TRY(kit_answer_is(kit_connect_from(s.a.connector, s.a.qp, &address, &s.address, NULL),
                      STATUS_SHARING_VIOLATION));
    TRY(kit_close(&endpoint->object));
    TRY(listen_gives(s.b.adapter, &address, STATUS_SUCCESS, NULL));
}

/* Two connections from one address to two listeners; a third one like the first is refused. */
static VOID shared(struct kit *k)
{
    struct kit_endpoint *endpoint;
    struct kit_listener *second;
    struct kit_connector *third;
    struct kit_call *connect, *accept;
    struct kit_end c, d;
    SOCKADDR_INET address, there, local[2];
    struct kit_steps s;

    TRY(kit_steps_to(k, KIT_STEP_NEW, NULL, &s));
    TRY(endpoint_at(k, s.a.adapter, &k->config->local, &endpoint, &address));
    s.connect = kit_connect_endpoint(s.a.connector, s.a.qp, endpoint, &s.address, NULL);
    TRY(kit_incoming(s.b.listener, &s.b.connector));
    TRY(kit_steps_accept(&s, NULL));
    TRY(kit_steps_complete(&s));

    TRY(kit_end_open(k, NULL, &d));
    TRY(kit_listener_new(d.adapter, &second));
    TRY(kit_listen(second, &there));
    TRY(kit_pd_new(s.a.adapter, &c.pd));
    TRY(kit_qp_new(c.pd, s.a.receive, s.a.initiator, NULL, &c.qp));
    TRY(kit_connector_new(s.a.adapter, &third));
    TRY(kit_answer_is(kit_connect_endpoint(third, c.qp, endpoint, &s.address, NULL),
                      STATUS_ADDRESS_ALREADY_EXISTS));
    TRY(kit_close(&third->object));
    TRY(kit_connector_new(s.a.adapter, &c.connector));
    connect = kit_connect_endpoint(c.connector, c.qp, endpoint, &there, NULL);
    TRY(kit_incoming(second, &d.connector));
    TRY((accept = kit_accept_start(d.connector, d.qp, NULL)) != NULL);
    TRY(kit_answer_is(connect, STATUS_SUCCESS));
    TRY(kit_answer_is(kit_complete_start(c.connector), STATUS_SUCCESS));
    TRY(kit_answer_is(accept, STATUS_SUCCESS));

    TRY(local_of(k, s.a.connector, &local[0]));
    TRY(local_of(k, c.connector, &local[1]));
    CHECK_EQUAL(k, "the first connection's local port", kit_port(&local[0]), kit_port(&address));
    CHECK_EQUAL(k, "the second connection's local port", kit_port(&local[1]), kit_port(&address));
}

/* The endpoint object is closed, a connector over it is not. */
static VOID held_over_an_endpoint(struct kit *k)
{
    struct kit_endpoint *endpoint;
    struct kit_call *close;
    SOCKADDR_INET address;
    struct kit_steps s;

    TRY(kit_steps_to(k, KIT_STEP_NEW, NULL, &s));
    TRY(endpoint_at(k, s.a.adapter, &k->config->local, &endpoint, &address));
    s.connect = kit_connect_endpoint(s.a.connector, s.a.qp, endpoint, &s.address, NULL);
    TRY(kit_incoming(s.b.listener, &s.b.connector));
    TRY(kit_steps_accept(&s, NULL));
    close = kit_close_start(&endpoint->object);
    TRY(close != NULL);
    CHECK_STATUS(k, "closing an endpoint with an open connector", close->returned, STATUS_PENDING);
    TRY(listen_gives(s.b.adapter, &address, STATUS_SHARING_VIOLATION, NULL));
    TRY(kit_close(&s.a.connector->object));
    TRY(kit_answer_is(close, STATUS_SUCCESS));
    TRY(listen_gives(s.b.adapter, &address, STATUS_SUCCESS, NULL));
}

/* ---- addresses that cannot be taken --------------------------------------------------------- */

static VOID foreign_addresses(struct kit *k)
{
    SOCKADDR_INET foreign = k->config->local, wildcard = k->config->local;
    struct kit_endpoint *endpoint;
    struct kit_steps s;

    /* Documentation addresses: no host has them. */
    if (foreign.si_family == AF_INET) {
        static const UCHAR octets[4] = {192, 0, 2, 1};

        RtlCopyMemory(&foreign.Ipv4.sin_addr, octets, 4);
        RtlZeroMemory(&wildcard.Ipv4.sin_addr, 4);
    } else {
        static const UCHAR octets[16] = {0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0,
                                         0,    0,    0,    0,    0, 0, 0, 1};

        RtlCopyMemory(&foreign.Ipv6.sin6_addr, octets, 16);
        foreign.Ipv6.sin6_scope_id = 0;
        RtlZeroMemory(&wildcard.Ipv6.sin6_addr, 16);
    }
    TRY(kit_steps_to(k, KIT_STEP_NEW, NULL, &s));
    TRY(listen_gives(s.b.adapter, &foreign, STATUS_INVALID_ADDRESS, NULL));
    TRY(kit_answer_is(kit_connect_from(s.a.connector, s.a.qp, &foreign, &s.address, NULL),
                      STATUS_INVALID_ADDRESS));
    TRY(kit_answer_is(kit_connect_from(s.a.connector, s.a.qp, &wildcard, &s.address, NULL),
                      STATUS_INVALID_ADDRESS));
    if (k->test->arg)
        TRY(kit_answer_is(kit_endpoint_start(s.a.adapter, &foreign, &endpoint),
                          STATUS_INVALID_ADDRESS));
    /* What was refused has changed nothing. */
    TRY(kit_steps_ask(&s, NULL));
    TRY(kit_steps_accept(&s, NULL));
    TRY(kit_steps_complete(&s));
}

static VOID address_of_a_listener(struct kit *k)
{
    struct kit_listener *listener;
    SOCKADDR_INET address;
    struct kit_steps s;
    ULONG size = sizeof address;
    NTSTATUS status;

    TRY(kit_steps_to(k, KIT_STEP_NEW, NULL, &s));
    TRY(kit_listener_new(s.b.adapter, &listener));
    status = listener->table->NdkGetLocalAddress(listener->ndk, (PSOCKADDR)&address, &size);
    CHECK(k, !NT_SUCCESS(status), "the address of a listener that does not listen: have %s",
          kit_status_name(status));
    size = 4;
    CHECK_STATUS(
        k, "NdkGetLocalAddress with 4 octets",
        s.b.listener->table->NdkGetLocalAddress(s.b.listener->ndk, (PSOCKADDR)&address, &size),
        STATUS_BUFFER_TOO_SMALL);
    CHECK_EQUAL(k, "the size needed", size, kit_address_length(&s.address));
}

/* ---- pause and close ------------------------------------------------------------------------ */

static VOID paused(struct kit *k)
{
    struct kit_connector *refused;
    struct kit_steps s;

    TRY(kit_steps_to(k, KIT_STEP_NEW, NULL, &s));
    for (ULONG round = 0; round < 3; round++) {
        s.b.listener->table->NdkControlConnectEvents(s.b.listener->ndk, TRUE);
        TRY(kit_connector_new(s.a.adapter, &refused));
        /* Refused, not kept for later (rule 16 of section 13). */
        TRY(kit_answer_is(kit_connect_start(refused, s.a.qp, &s.address, NULL),
                          STATUS_CONNECTION_REFUSED));
        TRY(listen_gives(s.a.adapter, &s.address, STATUS_SHARING_VIOLATION, NULL));
        s.b.listener->table->NdkControlConnectEvents(s.b.listener->ndk, FALSE);
    }
    kit_settle(k);
    CHECK_EQUAL(k, "connect events of a paused listener", kit_os_get(&s.b.listener->events), 0);
    TRY(kit_steps_ask(&s, NULL));
    TRY(kit_steps_accept(&s, NULL));
    TRY(kit_steps_complete(&s));
}

/* A listener that is closed refuses at once, though its close pends (C8). */
static VOID closing_refuses(struct kit *k)
{
    struct kit_connector *late;
    struct kit_call *close;
    struct kit_steps s;
    struct kit_qp *qp;

    TRY(kit_steps_to(k, KIT_STEP_CONNECTED, NULL, &s));
    close = kit_close_start(&s.b.listener->object);
    TRY(close != NULL);
    TRY(kit_connector_new(s.a.adapter, &late));
    TRY(kit_qp_new(s.a.pd, s.a.receive, s.a.initiator, NULL, &qp));
    TRY(kit_answer_is(kit_connect_start(late, qp, &s.address, NULL), STATUS_CONNECTION_REFUSED));
    TRY(kit_close(&s.b.connector->object));
    TRY(kit_answer_is(close, STATUS_SUCCESS));
}

#define HERE     .needs = KIT_NEEDS_LOOPBACK
#define ENDPOINT .needs = KIT_NEEDS_LOOPBACK | KIT_NEEDS_ENDPOINT

static const struct kit_case cases[] = {
    KIT_CASE("PORT-001", "port 0 takes one of 49152 to 65535", "lifetime 9.4", "NdkListen", port_0,
             HERE),
    KIT_CASE("PORT-002", "a listener holds its address", "lifetime 9.4", "NdkListen",
             held_by_a_listener, HERE),
    KIT_CASE("PORT-003", "an accepted connector holds the listener's address", "lifetime 9.4",
             "NdkCloseListener", held_by_an_accepted_connector, HERE),
    KIT_CASE("PORT-004", "an active connector holds its address", "lifetime 9.4", "NdkConnect",
             held_by_an_active_connector, HERE, .arg = 0),
    KIT_CASE("PORT-005", "a refused connector holds its address until it is closed", "lifetime 9.4",
             "NdkConnect", held_by_an_active_connector, HERE, .arg = 1),
    KIT_CASE("PORT-006", "addresses are free as soon as all is closed", "lifetime 9.4", "NdkListen",
             free_at_once, HERE),
    KIT_CASE("PORT-010", "a shared endpoint holds its address", "lifetime 9.4",
             "NdkCreateSharedEndpoint", held_by_an_endpoint, ENDPOINT),
    KIT_CASE("PORT-011", "two connections from one shared endpoint", "NDKPI 13.2",
             "NdkConnectWithSharedEndpoint", shared, ENDPOINT),
    KIT_CASE("PORT-012", "a connector holds the address of its closed endpoint", "lifetime 9.4",
             "NdkCloseSharedEndpoint", held_over_an_endpoint, ENDPOINT),
    KIT_CASE("PORT-020", "addresses that are not the adapter's", "NDKPI 13.1", "NdkConnect",
             foreign_addresses, HERE, .arg = 0),
    KIT_CASE("PORT-021", "a shared endpoint at an address that is not the adapter's", "NDKPI 6.4",
             "NdkCreateSharedEndpoint", foreign_addresses, ENDPOINT, .arg = 1),
    KIT_CASE("PORT-022", "the address of a listener", "NDKPI 14.2", "NdkGetLocalAddress",
             address_of_a_listener, HERE),
    KIT_CASE("PORT-030", "a paused listener refuses and keeps its address", "lifetime 9.5",
             "NdkControlConnectEvents", paused, HERE),
    KIT_CASE("PORT-031", "a listener that is being closed refuses", "lifetime 4.1, C8",
             "NdkCloseListener", closing_refuses, HERE),
};

KIT_TOPIC(ports, "addresses, ports, listeners");
