// SPDX-License-Identifier: MIT
/* Ends and pairs: all that a connection needs at one side, and two of them connected. */
#include "kit_internal.h"

static const struct kit_end_options none;

static ULONG some(ULONG wanted, ULONG otherwise)
{
    return wanted ? wanted : otherwise;
}

BOOLEAN kit_end_open(struct kit *k, const struct kit_end_options *options, struct kit_end *end)
{
    const struct kit_end_options *o = options ? options : &none;
    struct kit_qp_sizes sizes;

    RtlZeroMemory(end, sizeof *end);
    end->k = k;
    TRY_OR_FALSE(kit_adapter_open(k, &end->adapter));
    sizes = kit_qp_modest(end->adapter);
    sizes.receive_depth = some(o->sizes.receive_depth, sizes.receive_depth);
    sizes.initiator_depth = some(o->sizes.initiator_depth, sizes.initiator_depth);
    sizes.receive_sge = some(o->sizes.receive_sge, sizes.receive_sge);
    sizes.initiator_sge = some(o->sizes.initiator_sge, sizes.initiator_sge);
    sizes.inline_size = some(o->sizes.inline_size, sizes.inline_size);
    TRY_OR_FALSE(kit_pd_new(end->adapter, &end->pd));
    TRY_OR_FALSE(kit_cq_new(end->adapter, some(o->cq_depth, sizes.receive_depth), &end->receive));
    TRY_OR_FALSE(
        kit_cq_new(end->adapter, some(o->cq_depth, sizes.initiator_depth), &end->initiator));
    return kit_qp_new(end->pd, end->receive, end->initiator, &sizes, &end->qp);
}

static struct kit_connect_options connect_options(const struct kit_end_options *options)
{
    struct kit_connect_options c = options ? options->connect : none.connect;

    if (!(options && options->no_reads)) {
        c.inbound_reads = some(c.inbound_reads, 1);
        c.outbound_reads = some(c.outbound_reads, 1);
    }
    return c;
}

/* A link-local address of the other host is reached through an interface of this one. */
static VOID set_scope(struct kit *k, SOCKADDR_INET *address)
{
    if (address->si_family == AF_INET6 && address->Ipv6.sin6_addr.u.Byte[0] == 0xfe &&
        (address->Ipv6.sin6_addr.u.Byte[1] & 0xc0) == 0x80)
        address->Ipv6.sin6_scope_id = k->config->local.Ipv6.sin6_scope_id;
}

static BOOLEAN connect_client(struct kit_end *end, const struct kit_end_options *options)
{
    struct kit_connect_options c = connect_options(options);
    SOCKADDR_INET to;

    TRY_OR_FALSE(kit_connector_new(end->adapter, &end->connector));
    TRY_OR_FALSE(kit_hear(end->k, "listening", &to, sizeof to));
    set_scope(end->k, &to);
    TRY_OR_FALSE(
        kit_answer_is(kit_connect_start(end->connector, end->qp, &to, &c), STATUS_SUCCESS));
    TRY_OR_FALSE(kit_answer_is(kit_complete_start(end->connector), STATUS_SUCCESS));
    return kit_meet(end->k, "connected");
}

static BOOLEAN connect_server(struct kit_end *end, const struct kit_end_options *options)
{
    struct kit_connect_options c = connect_options(options);
    SOCKADDR_INET address;

    TRY_OR_FALSE(kit_listener_new(end->adapter, &end->listener));
    TRY_OR_FALSE(kit_listen(end->listener, &address));
    TRY_OR_FALSE(kit_tell(end->k, "listening", &address, sizeof address));
    TRY_OR_FALSE(kit_incoming(end->listener, &end->connector));
    TRY_OR_FALSE(kit_answer_is(kit_accept_start(end->connector, end->qp, &c), STATUS_SUCCESS));
    return kit_meet(end->k, "connected");
}

BOOLEAN kit_end_connect(struct kit_end *end, const struct kit_end_options *options)
{
    if (end->k->role == KIT_CLIENT)
        return connect_client(end, options);
    return connect_server(end, options);
}

static BOOLEAN pair_listen(struct kit_pair *pair, SOCKADDR_INET *address)
{
    TRY_OR_FALSE(kit_listener_new(pair->b.adapter, &pair->b.listener));
    TRY_OR_FALSE(kit_listen(pair->b.listener, address));
    return kit_connector_new(pair->a.adapter, &pair->a.connector);
}

BOOLEAN kit_pair_apart(struct kit *k, struct kit_pair *pair, SOCKADDR_INET *address)
{
    TRY_OR_FALSE(kit_end_open(k, NULL, &pair->b));
    TRY_OR_FALSE(kit_end_open(k, NULL, &pair->a));
    return pair_listen(pair, address);
}

BOOLEAN kit_pair_connect(struct kit_pair *pair, const struct kit_end_options *options)
{
    struct kit_connect_options c = connect_options(options);
    struct kit_end *a = &pair->a, *b = &pair->b;
    struct kit_call *connect, *accept;
    SOCKADDR_INET address;

    TRY_OR_FALSE(pair_listen(pair, &address));
    connect = kit_connect_start(a->connector, a->qp, &address, &c);
    TRY_OR_FALSE(kit_incoming(b->listener, &b->connector));
    accept = kit_accept_start(b->connector, b->qp, &c);
    TRY_OR_FALSE(kit_answer_is(connect, STATUS_SUCCESS));
    TRY_OR_FALSE(kit_answer_is(kit_complete_start(a->connector), STATUS_SUCCESS));
    return kit_answer_is(accept, STATUS_SUCCESS);
}

BOOLEAN kit_pair_open(struct kit *k, const struct kit_end_options *options, struct kit_pair *pair)
{
    TRY_OR_FALSE(kit_end_open(k, options, &pair->b));
    TRY_OR_FALSE(kit_end_open(k, options, &pair->a));
    return kit_pair_connect(pair, options);
}

BOOLEAN kit_ends_badly(struct kit_end *end, struct kit_request *request)
{
    struct kit_result result;

    for (;;) {
        if (kit_cq_poll(end->initiator, &result, 1) == 1 && result.request == request &&
            result.status != STATUS_SUCCESS)
            return TRUE;
        if (KeReadStateEvent(&end->connector->event))
            return TRUE;
        if (kit_time_left(end->k) == 0)
            return kit_wait(end->k, &end->connector->event,
                            "the failure of an access that was not granted");
        kit_os_sleep_ms(1);
    }
}
