// SPDX-License-Identifier: MIT
/* Listeners and connectors: each call with its record-keeping, and addresses. */
#include "kit_internal.h"

ULONG kit_address_length(const SOCKADDR_INET *address)
{
    return address->si_family == AF_INET6 ? sizeof(SOCKADDR_IN6) : sizeof(SOCKADDR_IN);
}

/* Both families have the port at the same place, in network byte order. */
USHORT kit_port(const SOCKADDR_INET *address)
{
    return RtlUshortByteSwap(address->Ipv4.sin_port);
}

VOID kit_set_port(SOCKADDR_INET *address, USHORT port)
{
    address->Ipv4.sin_port = RtlUshortByteSwap(port);
}

/* ---- listening ------------------------------------------------------------------------------ */

struct kit_call *kit_listen_start(struct kit_listener *listener, const SOCKADDR_INET *address)
{
    struct kit_call *call = kit_call_new(listener->object.k, &listener->object, "NdkListen");
    SOCKADDR_INET copy = *address;

    if (call)
        kit_call_returned(call, listener->table->NdkListen(listener->ndk, (PSOCKADDR)&copy,
                                                           kit_address_length(&copy),
                                                           kit_request_done, call));
    return call;
}

BOOLEAN kit_listen(struct kit_listener *listener, SOCKADDR_INET *address)
{
    struct kit *k = listener->object.k;
    ULONG length = sizeof *address;

    TRY_OR_FALSE(kit_answer_is(kit_listen_start(listener, &k->config->local), STATUS_SUCCESS));
    RtlZeroMemory(address, sizeof *address);
    return kit_status(
        k, KIT_HERE, "NdkGetLocalAddress of a listener",
        listener->table->NdkGetLocalAddress(listener->ndk, (PSOCKADDR)address, &length),
        STATUS_SUCCESS);
}

VOID kit_on_connect(struct kit_listener *listener,
                    VOID (*in_callback)(struct kit_listener *, struct kit_connector *),
                    PVOID context)
{
    kit_os_lock(&listener->object.k->in->lock);
    listener->in_callback = in_callback;
    listener->context = context;
    kit_os_unlock(&listener->object.k->in->lock);
}

BOOLEAN kit_incoming(struct kit_listener *listener, struct kit_connector **out)
{
    struct kit *k = listener->object.k;

    for (;;) {
        struct kit_connector *first;

        kit_os_lock(&k->in->lock);
        first = listener->first;
        if (first) {
            listener->first = first->next_incoming;
            if (!listener->first)
                listener->last = NULL;
        }
        kit_os_unlock(&k->in->lock);
        if (first) {
            *out = first;
            return TRUE;
        }
        TRY_OR_FALSE(kit_wait(k, &listener->event, "a connect event"));
    }
}

/* ---- connecting ----------------------------------------------------------------------------- */

static const struct kit_connect_options one_read = {1, 1, NULL, 0};

/* A connector depends on its QP, and on the endpoint it connects over, from the moment a connecting
 * call was taken until it failed. Whether a failed one keeps its endpoint is the provider's
 * business.
 */
static VOID connected(struct kit_call *call, PVOID context)
{
    struct kit_connector *connector = CONTAINING_RECORD(call->owner, struct kit_connector, object);

    if (call->status == STATUS_SUCCESS)
        return;
    kit_drop(call->owner, context);
    if (connector->over)
        kit_drop(call->owner, &connector->over->object);
}

static struct kit_call *begin(struct kit_connector *connector, struct kit_qp *qp, const char *name)
{
    struct kit_call *call = kit_call_new(connector->object.k, &connector->object, name);

    if (call && qp) {
        call->record = connected;
        call->record_context = &qp->object;
        kit_follow(&connector->object, &qp->object);
    }
    return call;
}

static struct kit_call *end(struct kit_call *call, NTSTATUS status)
{
    kit_call_returned(call, status);
    return call;
}

struct kit_call *kit_connect_from(struct kit_connector *connector, struct kit_qp *qp,
                                  const SOCKADDR_INET *from, const SOCKADDR_INET *to,
                                  const struct kit_connect_options *options)
{
    const struct kit_connect_options *o = options ? options : &one_read;
    struct kit_call *call = begin(connector, qp, "NdkConnect");
    SOCKADDR_INET source = *from, destination = *to;

    if (!call)
        return NULL;
    return end(call, connector->table->NdkConnect(
                         connector->ndk, qp->ndk, (PSOCKADDR)&source, kit_address_length(&source),
                         (PSOCKADDR)&destination, kit_address_length(&destination),
                         o->inbound_reads, o->outbound_reads, (PVOID)(ULONG_PTR)o->data,
                         o->data_length, kit_request_done, call));
}

struct kit_call *kit_connect_start(struct kit_connector *connector, struct kit_qp *qp,
                                   const SOCKADDR_INET *to,
                                   const struct kit_connect_options *options)
{
    return kit_connect_from(connector, qp, &connector->object.k->config->local, to, options);
}

struct kit_call *kit_connect_endpoint(struct kit_connector *connector, struct kit_qp *qp,
                                      struct kit_endpoint *endpoint, const SOCKADDR_INET *to,
                                      const struct kit_connect_options *options)
{
    const struct kit_connect_options *o = options ? options : &one_read;
    struct kit_call *call = begin(connector, qp, "NdkConnectWithSharedEndpoint");
    SOCKADDR_INET destination = *to;

    if (!call)
        return NULL;
    connector->over = endpoint;
    kit_follow(&connector->object, &endpoint->object);
    return end(call, connector->table->NdkConnectWithSharedEndpoint(
                         connector->ndk, qp->ndk, endpoint->ndk, (PSOCKADDR)&destination,
                         kit_address_length(&destination), o->inbound_reads, o->outbound_reads,
                         (PVOID)(ULONG_PTR)o->data, o->data_length, kit_request_done, call));
}

VOID kit_on_disconnect(struct kit_connector *connector,
                       VOID (*in_callback)(struct kit_connector *connector), PVOID context)
{
    kit_os_lock(&connector->object.k->in->lock);
    connector->in_callback = in_callback;
    connector->context = context;
    kit_os_unlock(&connector->object.k->in->lock);
}

static VOID disconnected(PVOID context, ULONG reason)
{
    struct kit_connector *connector = context;
    VOID (*in_callback)(struct kit_connector *);

    kit_event_enter(&connector->object, "the disconnect event");
    if (kit_os_add(&connector->disconnects, 1) > 1)
        kit_breach(connector->object.k, "lifetime 10.2",
                   "a second disconnect event of connector #%u",
                   (unsigned)connector->object.number);
    connector->reason = reason;
    kit_os_lock(&connector->object.k->in->lock);
    in_callback = connector->in_callback;
    kit_os_unlock(&connector->object.k->in->lock);
    if (in_callback)
        in_callback(connector);
    KeSetEvent(&connector->event, IO_NO_INCREMENT, FALSE);
    kit_event_leave(&connector->object);
}

static VOID disconnected_plain(PVOID context)
{
    disconnected(context, 0);
}

static BOOLEAN has_extended(const struct kit_connector *connector)
{
    NDK_VERSION version = connector->object.header->Version;

    return version.Major > 2 || (version.Major == 2 && version.Minor >= 1);
}

struct kit_call *kit_complete_plain(struct kit_connector *connector)
{
    struct kit_call *call = begin(connector, NULL, "NdkCompleteConnect");

    if (!call)
        return NULL;
    return end(call, connector->table->NdkCompleteConnect(connector->ndk, disconnected_plain,
                                                          connector, kit_request_done, call));
}

struct kit_call *kit_complete_start(struct kit_connector *connector)
{
    struct kit_call *call;

    if (!has_extended(connector))
        return kit_complete_plain(connector);
    call = begin(connector, NULL, "NdkCompleteConnectEx");
    if (!call)
        return NULL;
    return end(call, connector->table->NdkCompleteConnectEx(connector->ndk, disconnected, connector,
                                                            kit_request_done, call));
}

struct kit_call *kit_accept_plain(struct kit_connector *connector, struct kit_qp *qp,
                                  const struct kit_connect_options *options)
{
    const struct kit_connect_options *o = options ? options : &one_read;
    struct kit_call *call = begin(connector, qp, "NdkAccept");

    if (!call)
        return NULL;
    return end(call, connector->table->NdkAccept(connector->ndk, qp->ndk, o->inbound_reads,
                                                 o->outbound_reads, (PVOID)(ULONG_PTR)o->data,
                                                 o->data_length, disconnected_plain, connector,
                                                 kit_request_done, call));
}

struct kit_call *kit_accept_start(struct kit_connector *connector, struct kit_qp *qp,
                                  const struct kit_connect_options *options)
{
    const struct kit_connect_options *o = options ? options : &one_read;
    struct kit_call *call;

    if (!has_extended(connector))
        return kit_accept_plain(connector, qp, options);
    call = begin(connector, qp, "NdkAcceptEx");
    if (!call)
        return NULL;
    return end(call, connector->table->NdkAcceptEx(connector->ndk, qp->ndk, o->inbound_reads,
                                                   o->outbound_reads, (PVOID)(ULONG_PTR)o->data,
                                                   o->data_length, disconnected, connector,
                                                   kit_request_done, call));
}

NTSTATUS kit_reject(struct kit_connector *connector, const VOID *data, ULONG length)
{
    struct kit *k = connector->object.k;
    NTSTATUS status;

    kit_doing(k, "NdkReject");
    status = connector->table->NdkReject(connector->ndk, (PVOID)(ULONG_PTR)data, length);
    kit_answered("NdkReject", status, KIT_INLINE);
    kit_doing(k, NULL);
    if (status == STATUS_PENDING)
        kit_breach(k, "lifetime 3", "NdkReject returned STATUS_PENDING");
    return status;
}

struct kit_call *kit_disconnect_start(struct kit_connector *connector)
{
    struct kit_call *call = kit_call_new(connector->object.k, &connector->object, "NdkDisconnect");

    if (call)
        kit_call_returned(call,
                          connector->table->NdkDisconnect(connector->ndk, kit_request_done, call));
    return call;
}
