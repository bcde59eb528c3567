// SPDX-License-Identifier: MIT
/*
 * Ways of answering of listening, connecting and disconnecting (lifetime 3; async.h).
 */
#include "async.h"

/* ---- listening ------------------------------------------------------------------------------ */

static BOOLEAN prepare_listener(struct scene *s)
{
    TRY_OR_FALSE(kit_base_open(s->k, NdkObjectTypeListener, &s->base));
    s->address = s->k->config->local;
    return kit_listener_new(s->base.adapter, &s->listener);
}

/* An address for documents, which no host has (RFC 5737, RFC 3849). */
static VOID foreign(SOCKADDR_INET *address)
{
    static const UCHAR v6[16] = {0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
    static const UCHAR v4[4] = {192, 0, 2, 1};

    if (address->si_family == AF_INET6)
        RtlCopyMemory(&address->Ipv6.sin6_addr, v6, sizeof v6);
    else
        RtlCopyMemory(&address->Ipv4.sin_addr, v4, sizeof v4);
}

static BOOLEAN prepare_foreign_listener(struct scene *s)
{
    TRY_OR_FALSE(prepare_listener(s));
    foreign(&s->address);
    return TRUE;
}

static BOOLEAN prepare_taken_listener(struct scene *s)
{
    struct kit_listener *first;

    TRY_OR_FALSE(prepare_listener(s));
    TRY_OR_FALSE(kit_listener_new(s->base.adapter, &first));
    return kit_listen(first, &s->address);
}

static struct kit_call *start_listen(struct scene *s)
{
    return kit_listen_start(s->listener, &s->address);
}

/* ---- ports ---------------------------------------------------------------------------------- */

#define PORTS 64

/* Takes ports until there is none; only where the user gave the adapter a few. */
static BOOLEAN take_ports(struct scene *s, struct kit_adapter *adapter)
{
    for (ULONG i = 0; i < PORTS; i++) {
        struct kit_listener *listener;
        NTSTATUS status;

        TRY_OR_FALSE(kit_listener_new(adapter, &listener));
        status = kit_answer(kit_listen_start(listener, &s->k->config->local));
        if (status == STATUS_TOO_MANY_ADDRESSES)
            return TRUE;
        TRY_OR_FALSE(kit_status(s->k, KIT_HERE, "NdkListen", status, STATUS_SUCCESS));
    }
    return kit_skip(
        s->k,
        "the adapter has more than the %u ephemeral ports that a case takes: run it with fewer",
        PORTS);
}

static BOOLEAN prepare_no_ports(struct scene *s)
{
    TRY_OR_FALSE(prepare_listener(s));
    return take_ports(s, s->base.adapter);
}

/* ---- shared endpoints ----------------------------------------------------------------------- */

static BOOLEAN prepare_foreign_endpoint(struct scene *s)
{
    TRY_OR_FALSE(kit_base_open(s->k, NdkObjectTypeSharedEndpoint, &s->base));
    s->address = s->k->config->local;
    foreign(&s->address);
    return TRUE;
}

static struct kit_call *start_endpoint(struct scene *s)
{
    return kit_endpoint_start(s->base.adapter, &s->address, &s->endpoint);
}

/* ---- connecting ----------------------------------------------------------------------------- */

static BOOLEAN prepare_ends(struct scene *s)
{
    return kit_pair_apart(s->k, &s->pair, &s->address);
}

static struct kit_call *start_connect(struct scene *s)
{
    return kit_connect_start(s->pair.a.connector, s->pair.a.qp, &s->address, NULL);
}

static BOOLEAN follow_connect(struct scene *s, struct kit_call *call)
{
    TRY_OR_FALSE(kit_incoming(s->pair.b.listener, &s->pair.b.connector));
    TRY_OR_FALSE(kit_accept_start(s->pair.b.connector, s->pair.b.qp, NULL) != NULL);
    TRY_OR_FALSE(kit_answer_is(call, STATUS_SUCCESS));
    return kit_answer_is(kit_complete_start(s->pair.a.connector), STATUS_SUCCESS);
}

static BOOLEAN prepare_endpoint_connect(struct scene *s)
{
    TRY_OR_FALSE(prepare_ends(s));
    return kit_answer_is(kit_endpoint_start(s->pair.a.adapter, &s->k->config->local, &s->endpoint),
                         STATUS_SUCCESS);
}

static struct kit_call *start_endpoint_connect(struct scene *s)
{
    return kit_connect_endpoint(s->pair.a.connector, s->pair.a.qp, s->endpoint, &s->address, NULL);
}

static BOOLEAN prepare_connect_without_port(struct scene *s)
{
    TRY_OR_FALSE(prepare_ends(s));
    return take_ports(s, s->pair.a.adapter);
}

/* Nobody listens there any more. */
static BOOLEAN prepare_refused(struct scene *s)
{
    TRY_OR_FALSE(prepare_ends(s));
    return kit_close(&s->pair.b.listener->object);
}

static struct kit_call *start_connect_foreign(struct scene *s)
{
    SOCKADDR_INET from = s->k->config->local;

    foreign(&from);
    return kit_connect_from(s->pair.a.connector, s->pair.a.qp, &from, &s->address, NULL);
}

/* From the address and port of the listener. */
static struct kit_call *start_connect_taken(struct scene *s)
{
    return kit_connect_from(s->pair.a.connector, s->pair.a.qp, &s->address, &s->address, NULL);
}

static BOOLEAN prepare_incoming(struct scene *s)
{
    TRY_OR_FALSE(prepare_ends(s));
    s->other = start_connect(s);
    return s->other && kit_incoming(s->pair.b.listener, &s->pair.b.connector);
}

static struct kit_call *start_accept(struct scene *s)
{
    return kit_accept_start(s->pair.b.connector, s->pair.b.qp, NULL);
}

static struct kit_call *start_accept_plain(struct scene *s)
{
    return kit_accept_plain(s->pair.b.connector, s->pair.b.qp, NULL);
}

static BOOLEAN follow_accept(struct scene *s, struct kit_call *call)
{
    (void)call;
    TRY_OR_FALSE(kit_answer_is(s->other, STATUS_SUCCESS));
    return kit_answer_is(kit_complete_start(s->pair.a.connector), STATUS_SUCCESS);
}

static BOOLEAN prepare_complete(struct scene *s)
{
    struct kit_call *connect;

    TRY_OR_FALSE(prepare_incoming(s));
    connect = s->other;
    s->other = start_accept(s);
    return kit_answer_is(connect, STATUS_SUCCESS);
}

static struct kit_call *start_complete(struct scene *s)
{
    return kit_complete_start(s->pair.a.connector);
}

static struct kit_call *start_complete_plain(struct scene *s)
{
    return kit_complete_plain(s->pair.a.connector);
}

static BOOLEAN follow_complete(struct scene *s, struct kit_call *call)
{
    TRY_OR_FALSE(kit_answer_is(call, STATUS_SUCCESS));
    return kit_answer_is(s->other, STATUS_SUCCESS);
}

/* Whoever is to be answered has left. */
static BOOLEAN prepare_complete_alone(struct scene *s)
{
    TRY_OR_FALSE(prepare_complete(s));
    return kit_close(&s->pair.b.connector->object);
}

static BOOLEAN prepare_accept_alone(struct scene *s)
{
    TRY_OR_FALSE(prepare_incoming(s));
    TRY_OR_FALSE(kit_close(&s->pair.a.connector->object));
    return kit_answer(s->other) != KIT_NO_ANSWER;
}

static BOOLEAN prepare_connected(struct scene *s)
{
    TRY_OR_FALSE(prepare_complete(s));
    return follow_complete(s, start_complete(s));
}

static struct kit_call *start_disconnect(struct scene *s)
{
    return kit_disconnect_start(s->pair.a.connector);
}

static BOOLEAN follow_disconnect(struct scene *s, struct kit_call *call)
{
    (void)call;
    TRY_OR_FALSE(kit_wait(s->k, &s->pair.b.connector->event, "the disconnect event"));
    return kit_answer_is(kit_disconnect_start(s->pair.b.connector), STATUS_SUCCESS);
}

/* ---- calls that never pend, while all others do --------------------------------------------- */

static VOID never_pending(struct kit *k)
{
    struct kit_request *send, *receive;
    struct kit_memory *out, *in;
    struct kit_pair pair;
    SOCKADDR_INET address;
    ULONG length = sizeof address, size = 0;
    NDK_SGE sge;

    TRY(kit_answer_mode(k, async_modes[LATER]));
    TRY(kit_pair_open(k, NULL, &pair));
    TRY(kit_memory_new(pair.a.pd, 64, 0, &out));
    TRY(kit_memory_new(pair.b.pd, 64, NDK_MR_FLAG_ALLOW_LOCAL_WRITE, &in));
    sge = kit_sge(in, 0, 64);
    TRY(kit_ok(receive = kit_receive(pair.b.qp, &sge, 1)));
    sge = kit_sge(out, 0, 64);
    TRY(kit_ok(send = kit_send(pair.a.qp, &sge, 1, 0)));
    TRY(kit_expect(receive, STATUS_SUCCESS, NULL));
    TRY(kit_expect(send, STATUS_SUCCESS, NULL));
    CHECK_STATUS(k, "NdkGetPeerAddress",
                 pair.b.connector->table->NdkGetPeerAddress(pair.b.connector->ndk,
                                                            (PSOCKADDR)&address, &length),
                 STATUS_SUCCESS);
    CHECK_STATUS(k, "NdkGetConnectionData",
                 pair.b.connector->table->NdkGetConnectionData(pair.b.connector->ndk, NULL, NULL,
                                                               NULL, &size),
                 STATUS_SUCCESS);
}

/* ---- the table ------------------------------------------------------------------------------ */

#define LOOP KIT_NEEDS_LOOPBACK

static const struct kit_case cases[] = {
    CALL("ASY-24", "NdkListen", prepare_listener, start_listen, NULL, 0),
    CALL("ASY-25", "NdkConnect", prepare_ends, start_connect, follow_connect, LOOP),
    CALL("ASY-26", "NdkConnectWithSharedEndpoint", prepare_endpoint_connect, start_endpoint_connect,
         follow_connect, LOOP | KIT_NEEDS_ENDPOINT),
    CALL("ASY-27", "NdkAccept", prepare_incoming, start_accept_plain, follow_accept, LOOP),
    CALL("ASY-28", "NdkAcceptEx", prepare_incoming, start_accept, follow_accept, LOOP,
         .version = {2, 1}),
    CALL("ASY-29", "NdkCompleteConnect", prepare_complete, start_complete_plain, follow_complete,
         LOOP),
    CALL("ASY-30", "NdkCompleteConnectEx", prepare_complete, start_complete, follow_complete, LOOP,
         .version = {2, 1}),
    CALL("ASY-31", "NdkDisconnect", prepare_connected, start_disconnect, follow_disconnect, LOOP),
    FAILS("ASY-46", "NdkListen", prepare_foreign_listener, start_listen, STATUS_INVALID_ADDRESS,
          Listener, 0),
    FAILS("ASY-47", "NdkListen", prepare_taken_listener, start_listen, STATUS_SHARING_VIOLATION,
          Listener, 0),
    FAILS("ASY-48", "NdkConnect", prepare_ends, start_connect_foreign, STATUS_INVALID_ADDRESS,
          Connector, LOOP),
    FAILS("ASY-49", "NdkConnect", prepare_ends, start_connect_taken, STATUS_SHARING_VIOLATION,
          Connector, LOOP),
    FAILS("ASY-50", "NdkConnect", prepare_refused, start_connect, STATUS_CONNECTION_REFUSED,
          Connector, LOOP),
    FAILS("ASY-51", "NdkCompleteConnect", prepare_ends, start_complete_plain,
          STATUS_CONNECTION_INVALID, Connector, LOOP),
    FAILS("ASY-52", "NdkCreateSharedEndpoint", prepare_foreign_endpoint, start_endpoint,
          STATUS_INVALID_ADDRESS, SharedEndpoint, KIT_NEEDS_ENDPOINT),
    FAILS("ASY-53", "NdkCreateSharedEndpoint", prepare_taken_listener, start_endpoint,
          STATUS_SHARING_VIOLATION, SharedEndpoint, KIT_NEEDS_ENDPOINT),
    FAILS("ASY-54", "NdkListen", prepare_no_ports, start_listen, STATUS_TOO_MANY_ADDRESSES,
          Listener, 0),
    FAILS("ASY-55", "NdkCreateSharedEndpoint", prepare_no_ports, start_endpoint,
          STATUS_TOO_MANY_ADDRESSES, SharedEndpoint, KIT_NEEDS_ENDPOINT),
    FAILS("ASY-56", "NdkConnect", prepare_connect_without_port, start_connect,
          STATUS_TOO_MANY_ADDRESSES, Connector, LOOP),
    WAYS("ASY-72", ": STATUS_CONNECTION_INVALID", "NdkCompleteConnectEx",
         (prepare_ends, start_complete, NULL, STATUS_CONNECTION_INVALID, NdkObjectTypeCq), LOOP,
         .version = {2, 1}),
    FAILS("ASY-73", "NdkCompleteConnect", prepare_complete_alone, start_complete_plain,
          STATUS_CONNECTION_ABORTED, Connector, LOOP),
    WAYS("ASY-74", ": STATUS_CONNECTION_ABORTED", "NdkCompleteConnectEx",
         (prepare_complete_alone, start_complete, NULL, STATUS_CONNECTION_ABORTED, NdkObjectTypeCq),
         LOOP, .version = {2, 1}),
    FAILS("ASY-75", "NdkAccept", prepare_accept_alone, start_accept_plain,
          STATUS_CONNECTION_ABORTED, Connector, LOOP),
    WAYS("ASY-76", ": STATUS_CONNECTION_ABORTED", "NdkAcceptEx",
         (prepare_accept_alone, start_accept, NULL, STATUS_CONNECTION_ABORTED, NdkObjectTypeCq),
         LOOP, .version = {2, 1}),
    KIT_CASE("ASY-800", "posts and queries never pend", "lifetime 3", "NdkSend", never_pending,
             .needs = KIT_NEEDS_ANSWER | KIT_NEEDS_LOOPBACK),
};

KIT_TOPIC(async_connect, "each way of answering: connections");
