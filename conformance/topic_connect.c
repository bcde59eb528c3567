// SPDX-License-Identifier: MIT
/*
 * Connecting, both sides (NDKPI 13, lifetime 9). CON-001 is the pattern of a case whose halves do
 * every step by hand.
 */
#include "kit.h"

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

static const struct kit_case cases[] = {
    KIT_CASE_TWO("CON-001", "connect, accept and complete, with private data both ways",
                 "lifetime 9.1", "NdkConnect", whole_server, whole_client),
};

KIT_TOPIC(connect, "connecting");
