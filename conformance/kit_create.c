// SPDX-License-Identifier: MIT
/*
 * Creating objects. Each record is made before the call, since a create may be completed on another
 * thread before it returns; the event callbacks of a CQ, an SRQ and a listener get their record as
 * context and stand here too.
 */
#include "kit_internal.h"

static struct kit_call *create(struct kit_object *object, struct kit_object *parent,
                               const char *name)
{
    struct kit_call *call = kit_call_new(object->k, parent, name);

    if (!call)
        return NULL;
    call->kind = KIT_CREATE;
    call->object = object;
    return call;
}

/* ---- children of the adapter ---------------------------------------------------------------- */

struct kit_call *kit_pd_start(struct kit_adapter *adapter, struct kit_pd **out)
{
    struct kit_pd *pd = kit_object_record(adapter->object.k, NdkObjectTypePd, sizeof *pd);
    struct kit_call *call = pd ? create(&pd->object, &adapter->object, "NdkCreatePd") : NULL;

    if (!call)
        return NULL;
    *out = pd;
    pd->adapter = adapter;
    kit_follow(&pd->object, &adapter->object);
    kit_call_returned(
        call, adapter->table->NdkCreatePd(adapter->ndk, kit_create_done, call, &call->out.pd));
    return call;
}

static VOID cq_notified(PVOID context, NTSTATUS status)
{
    struct kit_cq *cq = context;
    VOID (*in_callback)(struct kit_cq *, NTSTATUS);

    kit_event_enter(&cq->object, "the notification");
    if (kit_os_get(&cq->object.running) > 1)
        kit_breach(cq->object.k, "lifetime 5.1", "notifications of cq #%u overlap",
                   (unsigned)cq->object.number);
    if (kit_os_add(&cq->notified, 1) > kit_os_get(&cq->arms))
        kit_breach(cq->object.k, "lifetime 5.2", "cq #%u: %d notifications for %d arms",
                   (unsigned)cq->object.number, (int)kit_os_get(&cq->notified),
                   (int)kit_os_get(&cq->arms));
    if (kit_os_get(&cq->dead) && status == STATUS_SUCCESS)
        kit_breach(cq->object.k, "lifetime 5.4", "cq #%u notifies of completions though it is dead",
                   (unsigned)cq->object.number);
    cq->status = status;
    if (status != STATUS_SUCCESS)
        kit_os_set(&cq->dead, 1);
    kit_os_lock(&cq->object.k->in->lock); /* the clean-up takes it away */
    in_callback = cq->in_callback;
    kit_os_unlock(&cq->object.k->in->lock);
    if (in_callback)
        in_callback(cq, status);
    kit_os_add(&cq->returned, 1);
    KeSetEvent(&cq->event, IO_NO_INCREMENT, FALSE);
    kit_event_leave(&cq->object);
}

struct kit_call *kit_cq_start_affine(struct kit_adapter *adapter, ULONG depth,
                                     GROUP_AFFINITY *affinity, struct kit_cq **out)
{
    struct kit_cq *cq = kit_object_record(adapter->object.k, NdkObjectTypeCq, sizeof *cq);
    struct kit_call *call = cq ? create(&cq->object, &adapter->object, "NdkCreateCq") : NULL;

    if (!call)
        return NULL;
    *out = cq;
    KeInitializeEvent(&cq->event, SynchronizationEvent, FALSE);
    kit_follow(&cq->object, &adapter->object);
    kit_call_returned(call,
                      adapter->table->NdkCreateCq(adapter->ndk, depth, cq_notified, cq, affinity,
                                                  kit_create_done, call, &call->out.cq));
    return call;
}

struct kit_call *kit_cq_start(struct kit_adapter *adapter, ULONG depth, struct kit_cq **out)
{
    return kit_cq_start_affine(adapter, depth, NULL, out);
}

struct kit_call *kit_connector_start(struct kit_adapter *adapter, struct kit_connector **out)
{
    struct kit_connector *connector =
        kit_object_record(adapter->object.k, NdkObjectTypeConnector, sizeof *connector);
    struct kit_call *call =
        connector ? create(&connector->object, &adapter->object, "NdkCreateConnector") : NULL;

    if (!call)
        return NULL;
    *out = connector;
    KeInitializeEvent(&connector->event, NotificationEvent, FALSE);
    kit_follow(&connector->object, &adapter->object);
    kit_call_returned(call, adapter->table->NdkCreateConnector(adapter->ndk, kit_create_done, call,
                                                               &call->out.connector));
    return call;
}

/* A connector that nobody will take, since the listener is being closed, is closed here. */
static VOID connect_event(PVOID context, NDK_CONNECTOR *ndk)
{
    struct kit_listener *listener = context;
    struct kit *k = listener->object.k;
    VOID (*in_callback)(struct kit_listener *, struct kit_connector *);
    struct kit_connector *connector;

    kit_event_enter(&listener->object, "the connect event");
    connector = ndk ? kit_object_record(k, NdkObjectTypeConnector, sizeof *connector) : NULL;
    if (!ndk)
        kit_breach(k, "NDKPI 4.6", "a connect event without a connector");
    if (connector) {
        KeInitializeEvent(&connector->event, NotificationEvent, FALSE);
        kit_follow(&connector->object, listener->object.antecedents[0]);
        kit_follow(&connector->object, &listener->object);
        kit_object_born(&connector->object, &ndk->Header);
        kit_os_add(&listener->events, 1);
        kit_os_lock(&k->in->lock);
        in_callback = listener->in_callback;
        kit_os_unlock(&k->in->lock);
        if (kit_os_get(&listener->object.life) != KIT_OPEN) {
            (void)kit_close_start(&connector->object);
        } else if (in_callback) {
            in_callback(listener, connector);
        } else {
            kit_os_lock(&k->in->lock);
            if (listener->last)
                listener->last->next_incoming = connector;
            else
                listener->first = connector;
            listener->last = connector;
            kit_os_unlock(&k->in->lock);
        }
        KeSetEvent(&listener->event, IO_NO_INCREMENT, FALSE);
    }
    kit_event_leave(&listener->object);
}

struct kit_call *kit_listener_start(struct kit_adapter *adapter, struct kit_listener **out)
{
    struct kit_listener *listener =
        kit_object_record(adapter->object.k, NdkObjectTypeListener, sizeof *listener);
    struct kit_call *call =
        listener ? create(&listener->object, &adapter->object, "NdkCreateListener") : NULL;

    if (!call)
        return NULL;
    *out = listener;
    KeInitializeEvent(&listener->event, SynchronizationEvent, FALSE);
    kit_follow(&listener->object, &adapter->object);
    kit_call_returned(call, adapter->table->NdkCreateListener(adapter->ndk, connect_event, listener,
                                                              kit_create_done, call,
                                                              &call->out.listener));
    return call;
}

struct kit_call *kit_endpoint_start(struct kit_adapter *adapter, const SOCKADDR_INET *address,
                                    struct kit_endpoint **out)
{
    struct kit_endpoint *endpoint =
        kit_object_record(adapter->object.k, NdkObjectTypeSharedEndpoint, sizeof *endpoint);
    struct kit_call *call =
        endpoint ? create(&endpoint->object, &adapter->object, "NdkCreateSharedEndpoint") : NULL;
    SOCKADDR_INET copy = *address;

    if (!call)
        return NULL;
    *out = endpoint;
    kit_follow(&endpoint->object, &adapter->object);
    kit_call_returned(call, adapter->table->NdkCreateSharedEndpoint(
                                adapter->ndk, (PSOCKADDR)&copy, kit_address_length(&copy),
                                kit_create_done, call, &call->out.endpoint));
    return call;
}

/* ---- children of a PD ----------------------------------------------------------------------- */

struct kit_call *kit_mr_start(struct kit_pd *pd, BOOLEAN fast, struct kit_mr **out)
{
    struct kit_mr *mr = kit_object_record(pd->object.k, NdkObjectTypeMr, sizeof *mr);
    struct kit_call *call = mr ? create(&mr->object, &pd->object, "NdkCreateMr") : NULL;

    if (!call)
        return NULL;
    *out = mr;
    kit_follow(&mr->object, &pd->adapter->object);
    kit_follow(&mr->object, &pd->object);
    kit_call_returned(call,
                      pd->table->NdkCreateMr(pd->ndk, fast, kit_create_done, call, &call->out.mr));
    return call;
}

struct kit_call *kit_mw_start(struct kit_pd *pd, struct kit_mw **out)
{
    struct kit_mw *mw = kit_object_record(pd->object.k, NdkObjectTypeMw, sizeof *mw);
    struct kit_call *call = mw ? create(&mw->object, &pd->object, "NdkCreateMw") : NULL;

    if (!call)
        return NULL;
    *out = mw;
    kit_follow(&mw->object, &pd->adapter->object);
    kit_follow(&mw->object, &pd->object);
    kit_call_returned(call, pd->table->NdkCreateMw(pd->ndk, kit_create_done, call, &call->out.mw));
    return call;
}

static VOID srq_notified(PVOID context, NTSTATUS status)
{
    struct kit_srq *srq = context;

    kit_event_enter(&srq->object, "the notification");
    if (kit_os_get(&srq->dead))
        kit_breach(srq->object.k, "NDKPI 4.5", "srq #%u notifies though it is dead",
                   (unsigned)srq->object.number);
    srq->status = status;
    if (status != STATUS_SUCCESS)
        kit_os_set(&srq->dead, 1);
    kit_os_add(&srq->notified, 1);
    KeSetEvent(&srq->event, IO_NO_INCREMENT, FALSE);
    kit_event_leave(&srq->object);
}

struct kit_call *kit_srq_start(struct kit_pd *pd, ULONG depth, ULONG sge, ULONG threshold,
                               struct kit_srq **out)
{
    struct kit_srq *srq = kit_object_record(pd->object.k, NdkObjectTypeSrq, sizeof *srq);
    struct kit_call *call = srq ? create(&srq->object, &pd->object, "NdkCreateSrq") : NULL;

    if (!call)
        return NULL;
    *out = srq;
    KeInitializeEvent(&srq->event, SynchronizationEvent, FALSE);
    kit_follow(&srq->object, &pd->adapter->object);
    kit_follow(&srq->object, &pd->object);
    kit_call_returned(call,
                      pd->table->NdkCreateSrq(pd->ndk, depth, sge, threshold, srq_notified, srq,
                                              NULL, kit_create_done, call, &call->out.srq));
    return call;
}

static ULONG least(ULONG a, ULONG b)
{
    return a < b ? a : b;
}

struct kit_qp_sizes kit_qp_modest(const struct kit_adapter *adapter)
{
    struct kit_qp_sizes sizes;

    sizes.receive_depth = least(32, adapter->info.MaxReceiveQueueDepth);
    sizes.initiator_depth = least(32, adapter->info.MaxInitiatorQueueDepth);
    sizes.receive_sge = least(4, adapter->info.MaxReceiveRequestSge);
    sizes.initiator_sge = least(4, adapter->info.MaxInitiatorRequestSge);
    sizes.inline_size = least(64, adapter->info.MaxInlineDataSize);
    return sizes;
}

struct kit_call *kit_qp_start(struct kit_pd *pd, struct kit_cq *receive, struct kit_cq *initiator,
                              struct kit_srq *srq, const struct kit_qp_sizes *wanted,
                              struct kit_qp **out)
{
    struct kit_qp_sizes s = wanted ? *wanted : kit_qp_modest(pd->adapter);
    struct kit_qp *qp = kit_object_record(pd->object.k, NdkObjectTypeQp, sizeof *qp);
    struct kit_call *call =
        qp ? create(&qp->object, &pd->object, srq ? "NdkCreateQpWithSrq" : "NdkCreateQp") : NULL;

    if (!call)
        return NULL;
    *out = qp;
    qp->receive = receive;
    qp->initiator = initiator;
    qp->srq = srq;
    kit_follow(&qp->object, &pd->adapter->object);
    kit_follow(&qp->object, &pd->object);
    kit_follow(&qp->object, &receive->object);
    if (initiator != receive)
        kit_follow(&qp->object, &initiator->object);
    if (srq) {
        kit_follow(&qp->object, &srq->object);
        kit_call_returned(
            call, pd->table->NdkCreateQpWithSrq(pd->ndk, receive->ndk, initiator->ndk, srq->ndk, qp,
                                                s.initiator_depth, s.initiator_sge, s.inline_size,
                                                kit_create_done, call, &call->out.qp));
    } else {
        kit_call_returned(
            call, pd->table->NdkCreateQp(pd->ndk, receive->ndk, initiator->ndk, qp, s.receive_depth,
                                         s.initiator_depth, s.receive_sge, s.initiator_sge,
                                         s.inline_size, kit_create_done, call, &call->out.qp));
    }
    return call;
}

/* ---- creates that must succeed -------------------------------------------------------------- */

BOOLEAN kit_pd_new(struct kit_adapter *adapter, struct kit_pd **out)
{
    return kit_answer_is(kit_pd_start(adapter, out), STATUS_SUCCESS);
}

BOOLEAN kit_cq_new(struct kit_adapter *adapter, ULONG depth, struct kit_cq **out)
{
    return kit_answer_is(kit_cq_start(adapter, depth, out), STATUS_SUCCESS);
}

BOOLEAN kit_connector_new(struct kit_adapter *adapter, struct kit_connector **out)
{
    return kit_answer_is(kit_connector_start(adapter, out), STATUS_SUCCESS);
}

BOOLEAN kit_listener_new(struct kit_adapter *adapter, struct kit_listener **out)
{
    return kit_answer_is(kit_listener_start(adapter, out), STATUS_SUCCESS);
}

BOOLEAN kit_mr_new(struct kit_pd *pd, BOOLEAN fast, struct kit_mr **out)
{
    return kit_answer_is(kit_mr_start(pd, fast, out), STATUS_SUCCESS);
}

BOOLEAN kit_mw_new(struct kit_pd *pd, struct kit_mw **out)
{
    return kit_answer_is(kit_mw_start(pd, out), STATUS_SUCCESS);
}

BOOLEAN kit_qp_new(struct kit_pd *pd, struct kit_cq *receive, struct kit_cq *initiator,
                   const struct kit_qp_sizes *sizes, struct kit_qp **out)
{
    return kit_answer_is(kit_qp_start(pd, receive, initiator, NULL, sizes, out), STATUS_SUCCESS);
}

/* ---- any type ------------------------------------------------------------------------------- */

BOOLEAN kit_base_open(struct kit *k, NDK_OBJECT_TYPE type, struct kit_base *base)
{
    RtlZeroMemory(base, sizeof *base);
    TRY_OR_FALSE(kit_adapter_open(k, &base->adapter));
    if (type == NdkObjectTypeMr || type == NdkObjectTypeMw || type == NdkObjectTypeSrq ||
        type == NdkObjectTypeQp)
        TRY_OR_FALSE(kit_pd_new(base->adapter, &base->pd));
    if (type == NdkObjectTypeQp)
        TRY_OR_FALSE(kit_cq_new(base->adapter, 16, &base->cq));
    return TRUE;
}

#define TAKE(kind, start)                                                                          \
    do {                                                                                           \
        struct kit_##kind *record_ = NULL;                                                         \
        struct kit_call *call_ = (start);                                                          \
                                                                                                   \
        *out = record_ ? &record_->object : NULL;                                                  \
        return call_;                                                                              \
    } while (0)

struct kit_call *kit_any_start(struct kit_base *base, NDK_OBJECT_TYPE type, struct kit_object **out)
{
    const SOCKADDR_INET *local = &base->adapter->object.k->config->local;

    switch (type) {
    case NdkObjectTypeCq:
        TAKE(cq, kit_cq_start(base->adapter, 16, &record_));
    case NdkObjectTypePd:
        TAKE(pd, kit_pd_start(base->adapter, &record_));
    case NdkObjectTypeConnector:
        TAKE(connector, kit_connector_start(base->adapter, &record_));
    case NdkObjectTypeListener:
        TAKE(listener, kit_listener_start(base->adapter, &record_));
    case NdkObjectTypeSharedEndpoint:
        TAKE(endpoint, kit_endpoint_start(base->adapter, local, &record_));
    case NdkObjectTypeMr:
        TAKE(mr, kit_mr_start(base->pd, FALSE, &record_));
    case NdkObjectTypeMw:
        TAKE(mw, kit_mw_start(base->pd, &record_));
    case NdkObjectTypeSrq:
        TAKE(srq, kit_srq_start(base->pd, 16, 1, 0, &record_));
    default:
        TAKE(qp, kit_qp_start(base->pd, base->cq, base->cq, NULL, NULL, &record_));
    }
}
