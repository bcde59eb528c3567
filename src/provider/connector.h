// SPDX-License-Identifier: MIT
/*
 * Connectors: the face of a connection. The connection room decides what happens; this room turns
 * its events into request completions and event callbacks, in their order (the connector's strand).
 *
 * At most one of connect, complete connect and accept pends at a time, and at most one disconnect:
 * whoever takes the request out of `pending` or `disconnecting` completes it. The connection holds
 * a reference on the connector until its socket is gone, so a close pends as long.
 *
 * Lock: connector->lock (leaf) guards what the calls of the consumer have fixed (bound, addresses'
 * family, event function); events come under conn->lock and take no lock of this room.
 */
#ifndef SOFTNDK_PROVIDER_CONNECTOR_H
#define SOFTNDK_PROVIDER_CONNECTOR_H

#include "base/reason.h"
#include "conn/conn.h"
#include "provider/adapter_snapshot.h"
#include "provider/object.h"
#include "provider/ports.h"
#include "provider/qp.h"

struct listener;
struct shared_endpoint;
struct startups_peer;

struct connector {
    struct object object;
    struct conn *conn;
    struct qp *qp; /* bound by Connect or Accept; an antecedent from then on */
    struct endpoint *endpoint;
    struct shared_endpoint *shared; /* the endpoint is its; an antecedent then */
    ADDRESS_FAMILY family;          /* the number the consumer asked with, 0: none yet */

    _Atomic(struct request *) pending, disconnecting;
    _Atomic enum call pending_call; /* what `pending` asks; set before it */

    /* the disconnect event, fixed before the call that can lead to it */
    NDK_FN_DISCONNECT_EVENT_CALLBACK event;
    NDK_FN_DISCONNECT_EVENT_CALLBACK_EX event_ex;
    PVOID event_context;
    ULONG event_reason;
    struct engine_item event_item;

    /* passive side */
    struct listener *listener; /* an antecedent */
    struct engine_item request_item;
    atomic_bool delivered; /* the connect event is due or was raised */
    /* listener's list of startups; its lock */
    struct connector *startup_next, *startup_previous;
    struct startups_peer *startup_peer; /* NULL: not in the list */
    /* active side, over a shared endpoint: the list of its 4-tuples; its lock */
    struct connector *shared_next, *shared_previous;
    struct os_addr shared_peer;
    bool in_shared;
    bool undecided;         /* counts at the listener; consumer's calls only, after delivery */
    bool active;            /* counts as an active connection; conn->lock */
    bool counted;           /* so does how the attempt ended; conn->lock */
    struct adapter_row row; /* conn->lock says when it changes */
    bool connect_told;      /* Connect has its answer; conn->lock */
};

static inline struct connector *connector_from(NDK_CONNECTOR *ndk)
{
    return (struct connector *)(void *)ndk;
}

extern const NDK_CONNECTOR_DISPATCH connector_dispatch;
/* Adapter slot NdkCreateConnector. */
NTSTATUS connector_create(NDK_ADAPTER *adapter, NDK_FN_CREATE_COMPLETION completion, PVOID context,
                          NDK_CONNECTOR **out);

/*
 * A connector for a descriptor that the listener accepted; shown to the consumer with the connect
 * event once a whole Request is in, discarded otherwise. The listener's startup list gets it before
 * anything can happen. False: no resources, the descriptor is closed.
 */
bool connector_incoming(struct listener *listener, int fd, const struct os_addr *peer);

/* The consumer has decided about an incoming connector: it counts no longer as undecided. */
void connector_decided(struct connector *connector);

/*
 * Parts that the calls share; each leaves its reason. The queue pair becomes an antecedent; undone
 * (last taken, first undone) only while nothing else can have touched the connector.
 */
NTSTATUS connector_take_qp(struct connector *k, enum call call, NDK_QP *qp);
void connector_untake_qp(struct connector *k);
NTSTATUS connector_check_private(struct connector *k, enum call call, CONST VOID *data,
                                 ULONG length, ULONG most);

/* Slots of connector_connect.c. */
NTSTATUS connector_connect(NDK_CONNECTOR *connector, NDK_QP *qp, CONST PSOCKADDR source,
                           ULONG source_length, CONST PSOCKADDR target, ULONG target_length,
                           ULONG inbound, ULONG outbound, CONST PVOID data, ULONG data_length,
                           NDK_FN_REQUEST_COMPLETION completion, PVOID context);
NTSTATUS connector_connect_shared(NDK_CONNECTOR *connector, NDK_QP *qp,
                                  NDK_SHARED_ENDPOINT *endpoint, CONST PSOCKADDR target,
                                  ULONG target_length, ULONG inbound, ULONG outbound,
                                  CONST PVOID data, ULONG data_length,
                                  NDK_FN_REQUEST_COMPLETION completion, PVOID context);
/* Slots of connector_slots.c. */
NTSTATUS connector_reject(NDK_CONNECTOR *connector, CONST PVOID data, ULONG length);
NTSTATUS connector_get_data(NDK_CONNECTOR *connector, ULONG *inbound, ULONG *outbound, PVOID data,
                            ULONG *length);
NTSTATUS connector_get_local(NDK_CONNECTOR *connector, PSOCKADDR address, ULONG *length);
NTSTATUS connector_get_peer(NDK_CONNECTOR *connector, PSOCKADDR address, ULONG *length);

#endif
