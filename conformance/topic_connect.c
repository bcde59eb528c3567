// SPDX-License-Identifier: MIT
/*
 * Connecting, both sides (NDKPI 13, lifetime 9). CON-001 is the pattern of a case whose halves do
 * every step by hand.
 */
#include "kit_steps.h"

/* ---- the whole way --------------------------------------------------------------------------- */

static const char request[] = "what the active side says";
static const char reply[] = "what the passive side says";

/* The peer's private data: the size query, then the data, which may be padded (lifetime 9.3). */
static BOOLEAN has_data(struct kit_connector *connector, const char *need, ULONG length)
{
    struct kit *k = connector->object.k;
    ULONG inbound, outbound, size = 0;
    UCHAR data[1024];

    TRY_OR_FALSE(kit_status(
        k, KIT_HERE, "the size query of NdkGetConnectionData",
        connector->table->NdkGetConnectionData(connector->ndk, &inbound, &outbound, NULL, &size),
        STATUS_SUCCESS));
    if (size < length || size > sizeof data)
        return kit_fail(k, KIT_HERE, "private data size: have %u, need at least %u", (unsigned)size,
                        (unsigned)length);
    TRY_OR_FALSE(
        kit_status(k, KIT_HERE, "NdkGetConnectionData",
                   connector->table->NdkGetConnectionData(connector->ndk, NULL, NULL, data, &size),
                   STATUS_SUCCESS));
    return kit_bytes(k, KIT_HERE, "private data", data, need, length);
}

static VOID whole_server(struct kit *k)
{
    struct kit_connect_options options = {1, 1, reply, sizeof reply};
    struct kit_call *accept;
    struct kit_end end;
    SOCKADDR_INET address;

    TRY(kit_end_open(k, NULL, &end));
    TRY(kit_listener_new(end.adapter, &end.listener));
    TRY(kit_listen(end.listener, &address));
    TRY(kit_tell(k, "listening", &address, sizeof address));
    TRY(kit_incoming(end.listener, &end.connector));
    TRY(has_data(end.connector, request, sizeof request));
    accept = kit_accept_start(end.connector, end.qp, &options);
    /* It must not be done before the active side has completed: it says when it will. */
    TRY(kit_hear(k, "completing", NULL, 0));
    TRY(kit_answer_is(accept, STATUS_SUCCESS));
    TRY(kit_meet(k, "connected"));
}

static VOID whole_client(struct kit *k)
{
    struct kit_connect_options options = {1, 1, request, sizeof request};
    struct kit_end end;
    SOCKADDR_INET address;

    TRY(kit_end_open(k, NULL, &end));
    TRY(kit_connector_new(end.adapter, &end.connector));
    TRY(kit_hear(k, "listening", &address, sizeof address));
    TRY(kit_answer_is(kit_connect_start(end.connector, end.qp, &address, &options),
                      STATUS_SUCCESS));
    TRY(has_data(end.connector, reply, sizeof reply));
    TRY(kit_tell(k, "completing", NULL, 0));
    TRY(kit_answer_is(kit_complete_start(end.connector), STATUS_SUCCESS));
    TRY(kit_meet(k, "connected"));
}

/* ---- refusals ------------------------------------------------------------------------------- */

static const NTSTATUS busy[] = {STATUS_CONNECTION_ACTIVE, STATUS_CONNECTION_INVALID,
                                STATUS_PENDING};
static const NTSTATUS left[] = {STATUS_CONNECTION_ABORTED, STATUS_CONNECTION_REFUSED,
                                STATUS_IO_TIMEOUT, STATUS_PENDING};

/* Nobody listens at an address at which somebody did. */
static VOID nobody_listens(struct kit *k)
{
    struct kit_steps s;

    TRY(kit_steps_to(k, KIT_STEP_NEW, NULL, &s));
    TRY(kit_close(&s.b.listener->object));
    TRY(kit_answer_is(kit_connect_start(s.a.connector, s.a.qp, &s.address, NULL),
                      STATUS_CONNECTION_REFUSED));
}

/* arg: octets of private data with the reject. */
static VOID rejected(struct kit *k)
{
    ULONG length = (ULONG)k->test->arg;
    struct kit_steps s;

    TRY(kit_steps_to(k, KIT_STEP_ASKED, NULL, &s));
    CHECK_STATUS(k, "NdkReject", kit_reject(s.b.connector, length ? reply : NULL, length),
                 STATUS_SUCCESS);
    TRY(kit_answer_is(s.connect, STATUS_CONNECTION_REFUSED));
    if (length)
        TRY(has_data(s.a.connector, reply, length));
}

/* The incoming connector is closed, not accepted: an implicit reject (lifetime 4.4). */
static VOID closed_undecided(struct kit *k)
{
    struct kit_steps s;

    TRY(kit_steps_to(k, KIT_STEP_ASKED, NULL, &s));
    TRY(kit_close(&s.b.connector->object));
    TRY(kit_answer_is(s.connect, STATUS_CONNECTION_REFUSED));
}

/* The active side changes its mind after the accept. arg 0: NdkReject, 1: close. */
static VOID not_completed(struct kit *k)
{
    struct kit_steps s;

    TRY(kit_steps_to(k, KIT_STEP_ACCEPTED, NULL, &s));
    if (k->test->arg)
        TRY(kit_close(&s.a.connector->object));
    else
        CHECK_STATUS(k, "NdkReject of the active side", kit_reject(s.a.connector, NULL, 0),
                     STATUS_SUCCESS);
    TRY(kit_status_among(k, KIT_HERE, "NdkAccept of a peer that did not complete",
                         kit_answer(s.accept), left));
}

/* The active side leaves while it is asked. The passive side may learn of it with any call. */
static VOID left_undecided(struct kit *k)
{
    static const NTSTATUS gone[] = {STATUS_CONNECTION_ABORTED, STATUS_CONNECTION_INVALID,
                                    STATUS_CONNECTION_REFUSED, STATUS_IO_TIMEOUT, STATUS_PENDING};
    struct kit_steps s;
    NTSTATUS status;

    TRY(kit_steps_to(k, KIT_STEP_ASKED, NULL, &s));
    TRY(kit_close(&s.a.connector->object));
    status = kit_answer(s.connect);
    CHECK(k, !NT_SUCCESS(status), "NdkConnect of a connector that was closed: have %s",
          kit_status_name(status));
    TRY(kit_status_among(k, KIT_HERE, "NdkAccept of a peer that has left",
                         kit_answer(kit_accept_start(s.b.connector, s.b.qp, NULL)), gone));
}

/* The passive side leaves after its accept. */
static VOID accepted_and_left(struct kit *k)
{
    struct kit_steps s;

    TRY(kit_steps_to(k, KIT_STEP_ACCEPTED, NULL, &s));
    TRY(kit_close(&s.b.connector->object));
    TRY(kit_status_among(k, KIT_HERE, "NdkCompleteConnect with a peer that has left",
                         kit_answer(kit_complete_start(s.a.connector)), left));
}

/* A failed attempt leaves the QP as it was: with another connector it connects. */
static VOID qp_after_a_failure(struct kit *k)
{
    struct kit_connector *first;
    struct kit_steps s;

    TRY(kit_steps_to(k, KIT_STEP_ASKED, NULL, &s));
    CHECK_STATUS(k, "NdkReject", kit_reject(s.b.connector, NULL, 0), STATUS_SUCCESS);
    TRY(kit_answer_is(s.connect, STATUS_CONNECTION_REFUSED));
    first = s.a.connector;
    TRY(kit_close(&first->object));
    TRY(kit_connector_new(s.a.adapter, &s.a.connector));
    TRY(kit_steps_ask(&s, NULL));
    TRY(kit_steps_accept(&s, NULL));
    TRY(kit_steps_complete(&s));
}

/* Nothing is there to complete after a connect that failed, or to try with the connector again. */
static VOID connector_after_a_failure(struct kit *k)
{
    struct kit_steps s;

    TRY(kit_steps_to(k, KIT_STEP_ASKED, NULL, &s));
    CHECK_STATUS(k, "NdkReject", kit_reject(s.b.connector, NULL, 0), STATUS_SUCCESS);
    TRY(kit_answer_is(s.connect, STATUS_CONNECTION_REFUSED));
    TRY(kit_answer_is(kit_complete_start(s.a.connector), STATUS_CONNECTION_INVALID));
}

/* ---- order ---------------------------------------------------------------------------------- */

/* Connect waits for the accept, accept for the completion (lifetime 9.1). */
static VOID each_waits_for_the_other(struct kit *k)
{
    struct kit_steps s;

    TRY(kit_steps_to(k, KIT_STEP_ASKED, NULL, &s));
    kit_settle(k);
    CHECK_EQUAL(k, "completions of NdkConnect before the accept",
                kit_os_get(&s.connect->completions), 0);
    TRY(kit_steps_accept(&s, NULL));
    kit_settle(k);
    CHECK_EQUAL(k, "completions of NdkAccept before the peer completed",
                kit_os_get(&s.accept->completions), 0);
    TRY(kit_steps_complete(&s));
}

/* arg: the step at which each call that does not belong there is made, at both ends. */
static VOID calls_out_of_order(struct kit *k)
{
    enum kit_step step = (enum kit_step)k->test->arg;
    struct kit_steps s;

    TRY(kit_steps_to(k, step, NULL, &s));
    if (step != KIT_STEP_ACCEPTED)
        TRY(kit_answer_is(kit_complete_start(s.a.connector), STATUS_CONNECTION_INVALID));
    TRY(kit_status_among(k, KIT_HERE, "NdkAccept of an active connector",
                         kit_answer(kit_accept_start(s.a.connector, s.b.qp, NULL)), busy));
    if (step != KIT_STEP_NEW)
        TRY(kit_status_among(k, KIT_HERE, "NdkConnect of a connector in use",
                             kit_answer(kit_connect_start(s.a.connector, s.a.qp, &s.address, NULL)),
                             busy));
    if (step == KIT_STEP_NEW)
        return;
    TRY(kit_answer_is(kit_complete_start(s.b.connector), STATUS_CONNECTION_INVALID));
    TRY(kit_status_among(k, KIT_HERE, "NdkConnect of an incoming connector",
                         kit_answer(kit_connect_start(s.b.connector, s.b.qp, &s.address, NULL)),
                         busy));
    if (step != KIT_STEP_ASKED)
        TRY(kit_status_among(k, KIT_HERE, "a second NdkAccept",
                             kit_answer(kit_accept_start(s.b.connector, s.b.qp, NULL)), busy));
    /* What was wrong has changed nothing. */
    if (step == KIT_STEP_ASKED)
        TRY(kit_steps_accept(&s, NULL));
    if (step != KIT_STEP_CONNECTED)
        TRY(kit_steps_complete(&s));
}

/* A close at each step; both sides. The kit watches that calls end and callbacks are over. */
static VOID closed_at_each_step(struct kit *k)
{
    for (LONG step = KIT_STEP_NEW; step < KIT_STEPS; step++) {
        struct kit_steps s;

        TRY(kit_steps_to(k, (enum kit_step)step, NULL, &s));
        if (k->test->arg && s.b.connector)
            TRY(kit_close(&s.b.connector->object));
        TRY(kit_close(&s.a.connector->object));
    }
}

/* ---- private data --------------------------------------------------------------------------- */

static VOID data_of_each_length(struct kit *k)
{
    static const ULONG lengths[] = {0,   1,   2,   16,  28,  56,  148,
                                    196, 251, 255, 256, 508, 512, MAXULONG};
    UCHAR out[1024], back[1024];

    kit_fill(out, sizeof out, 3);
    kit_fill(back, sizeof back, 4);
    for (ULONG i = 0; i < RTL_NUMBER_OF(lengths); i++) {
        struct kit_connect_options ask = {1, 1, out, lengths[i]}, answer = {1, 1, back, lengths[i]};
        struct kit_steps s;

        TRY(kit_steps_to(k, KIT_STEP_NEW, NULL, &s));
        if (ask.data_length > s.a.adapter->info.MaxCallerData)
            ask.data_length = s.a.adapter->info.MaxCallerData;
        if (answer.data_length > s.b.adapter->info.MaxCalleeData)
            answer.data_length = s.b.adapter->info.MaxCalleeData;
        CHECK(k, ask.data_length <= sizeof out && answer.data_length <= sizeof back,
              "private data limits above %u octets", (unsigned)sizeof out);
        TRY(kit_steps_ask(&s, &ask));
        TRY(has_data(s.b.connector, (const char *)out, ask.data_length));
        TRY(kit_steps_accept(&s, &answer));
        TRY(has_data(s.a.connector, (const char *)back, answer.data_length));
        TRY(kit_steps_complete(&s));
    }
}

static VOID too_much_data(struct kit *k)
{
    struct kit_connect_options options = {1, 1, NULL, 0};
    UCHAR *data = kit_alloc(k, 4096);
    struct kit_steps s;
    NTSTATUS status;

    TRY(data != NULL);
    options.data = data;
    TRY(kit_steps_to(k, KIT_STEP_NEW, NULL, &s));
    options.data_length = s.a.adapter->info.MaxCallerData + 1;
    status = kit_answer(kit_connect_start(s.a.connector, s.a.qp, &s.address, &options));
    CHECK(k, !NT_SUCCESS(status), "NdkConnect with MaxCallerData + 1 octets: have %s",
          kit_status_name(status));
    TRY(kit_steps_ask(&s, NULL)); /* the refused call has changed nothing */
    options.data_length = s.b.adapter->info.MaxCalleeData + 1;
    status = kit_answer(kit_accept_start(s.b.connector, s.b.qp, &options));
    CHECK(k, !NT_SUCCESS(status), "NdkAccept with MaxCalleeData + 1 octets: have %s",
          kit_status_name(status));
    status = kit_reject(s.b.connector, data, s.b.adapter->info.MaxCalleeData + 1);
    CHECK(k, !NT_SUCCESS(status), "NdkReject with MaxCalleeData + 1 octets: have %s",
          kit_status_name(status));
    TRY(kit_steps_accept(&s, NULL));
    TRY(kit_steps_complete(&s));
}

static VOID data_buffer_too_small(struct kit *k)
{
    struct kit_connect_options options = {1, 1, request, sizeof request};
    struct kit_steps s;
    ULONG size = sizeof request - 1, whole = 0;
    NDK_CONNECTOR *ndk;
    UCHAR data[1024];

    TRY(kit_steps_to(k, KIT_STEP_ASKED, &options, &s));
    ndk = s.b.connector->ndk;
    CHECK_STATUS(k, "NdkGetConnectionData with a buffer one octet too small",
                 s.b.connector->table->NdkGetConnectionData(ndk, NULL, NULL, data, &size),
                 STATUS_BUFFER_TOO_SMALL);
    CHECK_STATUS(k, "the size query",
                 s.b.connector->table->NdkGetConnectionData(ndk, NULL, NULL, NULL, &whole),
                 STATUS_SUCCESS);
    CHECK_EQUAL(k, "the size with BUFFER_TOO_SMALL and that of the query", size, whole);
}

/* ---- read limits ---------------------------------------------------------------------------- */

/* Asked for too much, they are capped, not refused (lifetime 13, rule 17); both ends agree. */
static VOID read_limits(struct kit *k)
{
    ULONG ask = (ULONG)k->test->arg;
    struct kit_connect_options options = {ask, ask, NULL, 0};
    ULONG in[2], out[2], size = 0;
    struct kit_steps s;

    TRY(kit_steps_to(k, KIT_STEP_CONNECTED, &options, &s));
    CHECK_STATUS(k, "NdkGetConnectionData of the active side",
                 s.a.connector->table->NdkGetConnectionData(s.a.connector->ndk, &in[0], &out[0],
                                                            NULL, &size),
                 STATUS_SUCCESS);
    size = 0;
    CHECK_STATUS(k, "NdkGetConnectionData of the passive side",
                 s.b.connector->table->NdkGetConnectionData(s.b.connector->ndk, &in[1], &out[1],
                                                            NULL, &size),
                 STATUS_SUCCESS);
    CHECK(k, in[0] <= s.a.adapter->info.MaxInboundReadLimit && (in[0] <= ask || ask == 0),
          "inbound limit: have %u, asked for %u, the adapter has %u", (unsigned)in[0],
          (unsigned)ask, (unsigned)s.a.adapter->info.MaxInboundReadLimit);
    CHECK(k, out[0] <= s.a.adapter->info.MaxOutboundReadLimit && out[0] <= ask,
          "outbound limit: have %u, asked for %u", (unsigned)out[0], (unsigned)ask);
    CHECK(k, out[0] <= in[1] && out[1] <= in[0],
          "one end's outbound limit is above the other's inbound: %u and %u, %u and %u",
          (unsigned)out[0], (unsigned)in[1], (unsigned)out[1], (unsigned)in[0]);
    if (ask)
        CHECK(k, out[0] && out[1], "no reads, though both ends asked for some");
}

/* ---- addresses ------------------------------------------------------------------------------ */

static BOOLEAN addresses_agree(struct kit *k, struct kit_steps *s)
{
    SOCKADDR_INET local[2], peer[2];
    ULONG size;

    for (int i = 0; i < 2; i++) {
        struct kit_connector *c = i ? s->b.connector : s->a.connector;

        size = sizeof local[i];
        TRY_OR_FALSE(kit_status(k, KIT_HERE, "NdkGetLocalAddress",
                                c->table->NdkGetLocalAddress(c->ndk, (PSOCKADDR)&local[i], &size),
                                STATUS_SUCCESS));
        TRY_OR_FALSE(kit_equal(k, KIT_HERE, "its length", size, kit_address_length(&local[i])));
        size = sizeof peer[i];
        TRY_OR_FALSE(kit_status(k, KIT_HERE, "NdkGetPeerAddress",
                                c->table->NdkGetPeerAddress(c->ndk, (PSOCKADDR)&peer[i], &size),
                                STATUS_SUCCESS));
    }
    TRY_OR_FALSE(kit_bytes(k, KIT_HERE, "the active side's address at both ends", &local[0],
                           &peer[1], kit_address_length(&local[0])));
    TRY_OR_FALSE(kit_bytes(k, KIT_HERE, "the passive side's address at both ends", &local[1],
                           &peer[0], kit_address_length(&local[1])));
    return kit_equal(k, KIT_HERE, "the passive side's port", kit_port(&local[1]),
                     kit_port(&s->address));
}

static VOID addresses(struct kit *k)
{
    struct kit_steps s;

    TRY(kit_steps_to(k, KIT_STEP_CONNECTED, NULL, &s));
    TRY(addresses_agree(k, &s));
}

static VOID addresses_too_small(struct kit *k)
{
    SOCKADDR_INET address;
    struct kit_steps s;
    ULONG size = 4;

    TRY(kit_steps_to(k, KIT_STEP_CONNECTED, NULL, &s));
    CHECK_STATUS(
        k, "NdkGetLocalAddress with 4 octets",
        s.a.connector->table->NdkGetLocalAddress(s.a.connector->ndk, (PSOCKADDR)&address, &size),
        STATUS_BUFFER_TOO_SMALL);
    CHECK_EQUAL(k, "the size needed", size, kit_address_length(&s.address));
    size = 4;
    CHECK_STATUS(
        k, "NdkGetPeerAddress with 4 octets",
        s.a.connector->table->NdkGetPeerAddress(s.a.connector->ndk, (PSOCKADDR)&address, &size),
        STATUS_BUFFER_TOO_SMALL);
    CHECK_EQUAL(k, "the size needed", size, kit_address_length(&s.address));
}

/* ---- many ----------------------------------------------------------------------------------- */

enum { MANY = 16 };

/* Sixteen connects are under way at once to one listener (arg 1) or two. */
static VOID many_at_once(struct kit *k)
{
    ULONG listeners = (ULONG)k->test->arg;
    struct kit_listener *listener[2];
    struct kit_call *connect[MANY], *accept[MANY];
    SOCKADDR_INET address[2];
    struct kit_end a[MANY], b[MANY];

    for (ULONG i = 0; i < MANY; i++) {
        TRY(kit_end_open(k, NULL, &b[i]));
        TRY(kit_end_open(k, NULL, &a[i]));
        TRY(kit_connector_new(a[i].adapter, &a[i].connector));
    }
    for (ULONG i = 0; i < listeners; i++) {
        TRY(kit_listener_new(b[0].adapter, &listener[i]));
        TRY(kit_listen(listener[i], &address[i]));
    }
    for (ULONG i = 0; i < MANY; i++)
        TRY((connect[i] = kit_connect_start(a[i].connector, a[i].qp, &address[i % listeners],
                                            NULL)) != NULL);
    for (ULONG i = 0; i < MANY; i++) {
        struct kit_end *end = &b[i];
        struct kit_end own;

        TRY(kit_incoming(listener[i % listeners], &end->connector));
        /* Accepted with a QP of the listener's adapter. */
        own = *end;
        TRY(kit_pd_new(b[0].adapter, &own.pd));
        TRY(kit_qp_new(own.pd, b[0].receive, b[0].initiator, NULL, &own.qp));
        TRY((accept[i] = kit_accept_start(end->connector, own.qp, NULL)) != NULL);
    }
    for (ULONG i = 0; i < MANY; i++)
        TRY(kit_answer_is(connect[i], STATUS_SUCCESS));
    for (ULONG i = 0; i < MANY; i++)
        TRY(kit_answer_is(kit_complete_start(a[i].connector), STATUS_SUCCESS));
    for (ULONG i = 0; i < MANY; i++)
        TRY(kit_answer_is(accept[i], STATUS_SUCCESS));
}

#define HERE .needs = KIT_NEEDS_LOOPBACK

static const struct kit_case cases[] = {
    KIT_CASE_TWO("CON-001", "connect, accept and complete, with private data both ways",
                 "lifetime 9.1", "NdkConnect", whole_server, whole_client),
    KIT_CASE("CON-010", "nobody listens", "NDKPI 13.1", "NdkConnect", nobody_listens, HERE),
    KIT_CASE("CON-011", "a reject without private data", "NDKPI 13.5", "NdkReject", rejected, HERE,
             .arg = 0),
    KIT_CASE("CON-012", "a reject with private data", "NDKPI 13.5", "NdkReject", rejected, HERE,
             .arg = 20),
    KIT_CASE("CON-013", "an undecided connector is closed: an implicit reject", "lifetime 4.4",
             "NdkCloseConnector", closed_undecided, HERE),
    KIT_CASE("CON-014", "the active side rejects after the accept", "lifetime 9.2", "NdkReject",
             not_completed, HERE, .arg = 0),
    KIT_CASE("CON-015", "the active side closes after the accept", "lifetime 9.2", "NdkAccept",
             not_completed, HERE, .arg = 1),
    KIT_CASE("CON-016", "the active side leaves before the accept", "lifetime 9.2", "NdkAccept",
             left_undecided, HERE),
    KIT_CASE("CON-017", "the passive side leaves after its accept", "lifetime 9.2",
             "NdkCompleteConnect", accepted_and_left, HERE),
    KIT_CASE("CON-018", "the QP of a failed attempt connects again", "lifetime 9.2", "NdkConnect",
             qp_after_a_failure, HERE),
    KIT_CASE("CON-019", "nothing to complete after a connect that failed", "NDKPI 13.3",
             "NdkCompleteConnect", connector_after_a_failure, HERE),
    KIT_CASE("CON-020", "connect waits for the accept, accept for the completion", "lifetime 9.1",
             "NdkAccept", each_waits_for_the_other, HERE),
    KIT_CASE("CON-021", "calls out of order: new", "lifetime 9.2", "NdkCompleteConnect",
             calls_out_of_order, HERE, .arg = KIT_STEP_NEW),
    KIT_CASE("CON-022", "calls out of order: asked", "lifetime 9.2", "NdkCompleteConnect",
             calls_out_of_order, HERE, .arg = KIT_STEP_ASKED),
    KIT_CASE("CON-023", "calls out of order: accepted", "lifetime 9.2", "NdkConnect",
             calls_out_of_order, HERE, .arg = KIT_STEP_ACCEPTED),
    KIT_CASE("CON-024", "calls out of order: connected", "lifetime 9.2", "NdkCompleteConnect",
             calls_out_of_order, HERE, .arg = KIT_STEP_CONNECTED),
    KIT_CASE("CON-025", "the active side closes at each step", "lifetime 4.4", "NdkCloseConnector",
             closed_at_each_step, HERE, .arg = 0),
    KIT_CASE("CON-026", "the passive side closes at each step", "lifetime 4.4", "NdkCloseConnector",
             closed_at_each_step, HERE, .arg = 1),
    KIT_CASE("CON-030", "private data of each length, both ways", "lifetime 9.3",
             "NdkGetConnectionData", data_of_each_length, HERE),
    KIT_CASE("CON-031", "more private data than the adapter takes", "lifetime 9.3", "NdkConnect",
             too_much_data, HERE),
    KIT_CASE("CON-032", "a buffer too small for the private data", "NDKPI 13.6",
             "NdkGetConnectionData", data_buffer_too_small, HERE),
    KIT_CASE("CON-040", "read limits of one", "NDKPI 13.1", "NdkConnect", read_limits,
             .needs = KIT_NEEDS_LOOPBACK | KIT_NEEDS_READ, .arg = 1),
    KIT_CASE("CON-041", "no reads asked for", "NDKPI 13.1", "NdkConnect", read_limits, HERE,
             .arg = 0),
    KIT_CASE("CON-042", "read limits too large are capped", "lifetime 13, rule 17", "NdkConnect",
             read_limits, .needs = KIT_NEEDS_LOOPBACK | KIT_NEEDS_READ, .arg = MAXULONG),
    KIT_CASE("CON-050", "both ends tell the same addresses", "NDKPI 13.7", "NdkGetLocalAddress",
             addresses, HERE),
    KIT_CASE("CON-051", "a buffer too small for an address", "NDKPI 13.8", "NdkGetPeerAddress",
             addresses_too_small, HERE),
    KIT_CASE("CON-060", "sixteen connects at once to one listener", "lifetime 9.1", "NdkConnect",
             many_at_once, HERE, .arg = 1),
    KIT_CASE("CON-061", "sixteen connects at once to two listeners", "lifetime 9.1", "NdkConnect",
             many_at_once, HERE, .arg = 2),
};

KIT_TOPIC(connect, "connecting");
