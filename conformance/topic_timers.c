// SPDX-License-Identifier: MIT
/*
 * What becomes of a peer that does not do its part: the provider gives up in a time of its own
 * (lifetime L6), and STATUS_IO_TIMEOUT says so. A provider that has not given up when the case's
 * time is nearly over leaves the case undecided. Run with --slow.
 */
#include "kit.h"

struct scene {
    struct kit_pair pair; /* b listens */
    SOCKADDR_INET address;
    struct kit_call *connect;
};

/* a asks, b has the request. */
static BOOLEAN asked(struct kit *k, struct scene *s)
{
    TRY_OR_FALSE(kit_pair_apart(k, &s->pair, &s->address));
    s->connect = kit_connect_start(s->pair.a.connector, s->pair.a.qp, &s->address, NULL);
    return kit_incoming(s->pair.b.listener, &s->pair.b.connector);
}

static BOOLEAN times_out(struct kit *k, struct kit_call *call)
{
    if (!kit_answers_in_time(call))
        return kit_skip(k, "the provider has not given up in the time of a case");
    return kit_answer_is(call, STATUS_IO_TIMEOUT);
}

/* Both ends have a timer: the one whose runs out first says IO_TIMEOUT, the other may have been
 * left by then. */
static const NTSTATUS either[] = {STATUS_IO_TIMEOUT, STATUS_CONNECTION_ABORTED, STATUS_PENDING};

static BOOLEAN gives_up(struct kit *k, struct kit_call *call)
{
    if (!kit_answers_in_time(call))
        return kit_skip(k, "the provider has not given up in the time of a case");
    return kit_status_among(k, KIT_HERE, "the call that waited", kit_answer(call), either);
}

/* The peer accepts, and the active side never completes. */
static VOID accept_alone(struct kit *k)
{
    struct kit_call *accept;
    struct scene s;

    TRY(asked(k, &s));
    accept = k->test->arg ? kit_accept_plain(s.pair.b.connector, s.pair.b.qp, NULL)
                          : kit_accept_start(s.pair.b.connector, s.pair.b.qp, NULL);
    TRY(kit_answer_is(s.connect, STATUS_SUCCESS));
    TRY(gives_up(k, accept));
}

/* The active side completes after that: too late, for which it has two words. */
static VOID complete_too_late(struct kit *k)
{
    struct kit_call *accept, *complete;
    struct scene s;

    TRY(asked(k, &s));
    accept = kit_accept_start(s.pair.b.connector, s.pair.b.qp, NULL);
    TRY(kit_answer_is(s.connect, STATUS_SUCCESS));
    TRY(gives_up(k, accept));
    complete = k->test->arg ? kit_complete_plain(s.pair.a.connector)
                            : kit_complete_start(s.pair.a.connector);
    TRY(kit_status_among(k, KIT_HERE, "the call that came too late", kit_answer(complete), either));
}

/* The request is there, and nobody decides. */
static VOID connect_undecided(struct kit *k)
{
    struct scene s;

    TRY(asked(k, &s));
    TRY(times_out(k, s.connect));
}

/* The peer is told of the end and does not answer. */
static VOID disconnect_unanswered(struct kit *k)
{
    struct kit_pair pair;

    TRY(kit_pair_open(k, NULL, &pair));
    TRY(times_out(k, kit_disconnect_start(pair.a.connector)));
    CHECK_EQUAL(k, "disconnect events at the end that disconnected",
                kit_os_get(&pair.a.connector->disconnects), 0);
}

/* An address that no host has (RFC 5737, RFC 3849): how the way there ends, the network decides. */
static VOID nobody_there(struct kit *k)
{
    static const UCHAR v6[16] = {0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
    static const UCHAR v4[4] = {192, 0, 2, 1};
    static const NTSTATUS allowed[] = {STATUS_NETWORK_UNREACHABLE, STATUS_HOST_UNREACHABLE,
                                       STATUS_IO_TIMEOUT, STATUS_PENDING};
    SOCKADDR_INET to = k->config->local;
    struct kit_call *connect;
    struct kit_end a;

    if (to.si_family == AF_INET6)
        RtlCopyMemory(&to.Ipv6.sin6_addr, v6, sizeof v6);
    else
        RtlCopyMemory(&to.Ipv4.sin_addr, v4, sizeof v4);
    kit_set_port(&to, 5445);
    TRY(kit_end_open(k, NULL, &a));
    TRY(kit_connector_new(a.adapter, &a.connector));
    connect = kit_connect_start(a.connector, a.qp, &to, NULL);
    if (!kit_answers_in_time(connect))
        TRY(kit_skip(k, "the provider has not given up in the time of a case"));
    TRY(kit_status_among(k, KIT_HERE, "NdkConnect to an address that no host has",
                         kit_answer(connect), allowed));
}

#define SLOW (KIT_NEEDS_LOOPBACK | KIT_NEEDS_PATIENCE)

static const struct kit_case cases[] = {
    KIT_CASE("TMO-001", "an accept whose peer never completes", "NDKPI 13.4", "NdkAcceptEx",
             accept_alone, .needs = SLOW),
    KIT_CASE("TMO-002", "an accept whose peer never completes (plain)", "NDKPI 13.4", "NdkAccept",
             accept_alone, .needs = SLOW, .arg = 1),
    KIT_CASE("TMO-003", "a connect that nobody decides", "NDKPI 13.1", "NdkConnect",
             connect_undecided, .needs = SLOW),
    KIT_CASE("TMO-004", "a connect is completed too late", "NDKPI 13.3", "NdkCompleteConnectEx",
             complete_too_late, .needs = SLOW),
    KIT_CASE("TMO-005", "a disconnect that the peer does not answer", "lifetime 10.1",
             "NdkDisconnect", disconnect_unanswered, .needs = SLOW),
    KIT_CASE("TMO-006", "a connect is completed too late (plain)", "NDKPI 13.3",
             "NdkCompleteConnect", complete_too_late, .needs = SLOW, .arg = 1),
    KIT_CASE("TMO-010", "a connect to where nobody is", "NDKPI 13.1", "NdkConnect", nobody_there,
             .needs = KIT_NEEDS_PATIENCE),
};

KIT_TOPIC(timers, "peers that do not do their part");
