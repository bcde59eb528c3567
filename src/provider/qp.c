// SPDX-License-Identifier: MIT
/* See qp.h. Creation, binding, flush; posting is in qp_post.c. */
#include "provider/qp.h"

#include <ntstatus.h>
#include <stdlib.h>

#include "base/red.h"
#include "provider/adapter.h"
#include "provider/qp_post.h"
#include "provider/versions.h"

static void qp_flush_object(struct qp *qp);

static void qp_cancel(struct object *object)
{
    qp_flush_object(CONTAINING_RECORD(object, struct qp, object));
}

static void qp_release(struct object *object)
{
    struct qp *qp = CONTAINING_RECORD(object, struct qp, object);
    struct conn *conn = atomic_load(&qp->conn);

    cq_leave(qp->receive_cq, &qp->receive_user);
    cq_leave(qp->initiator_cq, &qp->initiator_user);
    while (qp->retired) {
        struct qp_retired *next = qp->retired->next;

        conn_unref(qp->retired->conn);
        free(qp->retired);
        qp->retired = next;
    }
    if (conn)
        conn_unref(conn);
    conn_queue_destroy(&qp->initiator);
    conn_queue_destroy(&qp->receive);
    mw_list_destroy(&qp->windows);
    os_mutex_destroy(&qp->lock);
}

static const struct object_class qp_class = {
    .type = NdkObjectTypeQp,
    .name = "qp",
    .size = sizeof(struct qp),
    .cancel = qp_cancel,
    .release = qp_release,
};

/* From here on it ends with its CQs. False: one of them is dead. */
static bool join_cqs(struct qp *qp)
{
    const struct cq_user user = {.died = qp_cq_died, .owner = qp};

    qp->receive_user = qp->initiator_user = user;
    return cq_join(qp->receive_cq, &qp->receive_user) &&
           (qp->initiator_cq == qp->receive_cq || cq_join(qp->initiator_cq, &qp->initiator_user));
}

/* What a new QP is made of. */
struct qp_plan {
    enum call call;
    const char *rule; /* the section of the reference */
    NDK_CQ *receive_cq, *initiator_cq;
    NDK_SRQ *srq;
    bool shared; /* srq is to be there */
    PVOID context;
    ULONG receive_depth, initiator_depth, max_receive_sge, max_initiator_sge, inline_octets;
};

static NTSTATUS sizes_check(struct object *parent, const struct qp_plan *plan)
{
    const struct options *o = &parent->adapter->options;
    const struct {
        const char *name;
        ULONG have, most;
    } limits[] = {
        {"ReceiveQueueDepth", plan->receive_depth, o->max_receive_depth},
        {"InitiatorQueueDepth", plan->initiator_depth, o->max_initiator_depth},
        {"MaxReceiveRequestSge", plan->max_receive_sge, o->max_receive_sge},
        {"MaxInitiatorRequestSge", plan->max_initiator_sge, o->max_initiator_sge},
        {"InlineDataSize", plan->inline_octets, o->max_inline},
    };

    for (size_t i = 0; i < sizeof limits / sizeof limits[0]; i++)
        if (limits[i].have > limits[i].most)
            return object_fail(parent, plan->call, STATUS_INVALID_PARAMETER,
                               "%s (have %u, need <= %u), rule %s", limits[i].name, limits[i].have,
                               limits[i].most, plan->rule);
    return STATUS_SUCCESS;
}

static bool cq_usable(const struct object *parent, NDK_CQ *cq)
{
    return cq && cq->Header.ObjectType == NdkObjectTypeCq &&
           cq_from(cq)->object.adapter == parent->adapter;
}

static NTSTATUS queues_check(struct object *parent, const struct qp_plan *plan)
{
    if (!cq_usable(parent, plan->receive_cq) || !cq_usable(parent, plan->initiator_cq))
        return object_fail(parent, plan->call, STATUS_INVALID_PARAMETER,
                           "a CQ is NULL, no CQ, or of another adapter, rule %s", plan->rule);
    if (!plan->shared)
        return STATUS_SUCCESS;
    if (!plan->srq || plan->srq->Header.ObjectType != NdkObjectTypeSrq)
        return object_fail(parent, plan->call, STATUS_INVALID_PARAMETER,
                           "pSrq is NULL or no SRQ, rule %s", plan->rule);
    if (&srq_from(plan->srq)->pd->object != parent && !RED("srq-of-another-pd"))
        return object_fail(parent, plan->call, STATUS_INVALID_PARAMETER,
                           "srq #%u is of another PD (have pd #%u, need pd #%u), rule %s",
                           srq_from(plan->srq)->object.id, srq_from(plan->srq)->pd->object.id,
                           parent->id, plan->rule);
    return STATUS_SUCCESS;
}

static void qp_init(struct qp *qp, struct pd *pd, const struct qp_plan *plan)
{
    const struct options *o = &pd->object.adapter->options;
    ULONG sge = plan->max_initiator_sge;

    if (sge < o->max_read_sge) /* Reads have their own SGE limit, which overrides the initiator's */
        sge = o->max_read_sge;
    qp->pd = pd;
    qp->receive_cq = cq_from(plan->receive_cq);
    qp->initiator_cq = cq_from(plan->initiator_cq);
    qp->srq = plan->shared ? srq_from(plan->srq) : NULL;
    qp->context = plan->context;
    qp->max_initiator_sge = plan->max_initiator_sge;
    qp->max_receive_sge = plan->max_receive_sge;
    qp->max_read_sge = o->max_read_sge;
    qp->max_inline = plan->inline_octets;
    if (!version_is_at_least(pd->object.adapter->version, 1, 2)) {
        qp->flags_absent = NDK_OP_FLAG_DEFER;
        qp->flags_ignored = NDK_OP_FLAG_RDMA_READ_LOCAL_INVALIDATE;
    }
    qp->overrun.run = qp_overrun;
    mw_list_init(&qp->windows, qp);
    os_mutex_init(&qp->lock);
    conn_queue_init(&qp->initiator, plan->initiator_depth, sge, plan->inline_octets);
    conn_queue_init(&qp->receive, plan->receive_depth,
                    qp->srq ? qp->srq->max_sge : plan->max_receive_sge, 0);
    qp->object.home = qp->receive_cq->object.home;
    object_follow(&qp->object, &qp->receive_cq->object);
    object_follow(&qp->object, &qp->initiator_cq->object);
    cq_progress_also(qp->initiator_cq, qp->receive_cq);
    if (qp->srq)
        object_follow(&qp->object, &qp->srq->object);
}

static struct object *qp_new(struct pd *pd, const struct qp_plan *plan)
{
    struct object *object = object_new(&qp_class, &pd->object, &qp_dispatch);
    struct qp *qp;

    if (!object)
        return NULL;
    qp = CONTAINING_RECORD(object, struct qp, object);
    qp_init(qp, pd, plan);
    /* Taking from the SRQ must not fail for want of memory. */
    if (qp->srq && !conn_queue_reserve(&qp->receive)) {
        object_discard(object);
        return NULL;
    }
    return object;
}

static NTSTATUS qp_make(struct pd *pd, const struct qp_plan *plan,
                        NDK_FN_CREATE_COMPLETION completion, PVOID context, NDK_QP **out)
{
    struct object *parent = &pd->object;
    NTSTATUS status = object_injected(parent, plan->call);
    struct object *object = NULL;

    if (status == STATUS_SUCCESS)
        status = sizes_check(parent, plan);
    if (status == STATUS_SUCCESS)
        status = queues_check(parent, plan);
    if (status == STATUS_SUCCESS) {
        object = qp_new(pd, plan);
        if (!object)
            status = object_fail(parent, plan->call, STATUS_INSUFFICIENT_RESOURCES, "no memory");
    }
    if (object && !join_cqs(CONTAINING_RECORD(object, struct qp, object))) {
        object_discard(object);
        object = NULL;
        status = object_fail(parent, plan->call, STATUS_INVALID_DEVICE_STATE,
                             "a CQ of it overran and is dead, rule NDKPI 4.4");
    }
    return create_answer(parent, plan->call, completion, context, status, object, (void **)out);
}

NTSTATUS qp_create(NDK_PD *pd, NDK_CQ *receive_cq, NDK_CQ *initiator_cq, PVOID qp_context,
                   ULONG receive_depth, ULONG initiator_depth, ULONG max_receive_sge,
                   ULONG max_initiator_sge, ULONG inline_octets,
                   NDK_FN_CREATE_COMPLETION completion, PVOID context, NDK_QP **out)
{
    const struct qp_plan plan = {
        .call = CALL_CREATE_QP,
        .rule = "NDKPI 8.4",
        .receive_cq = receive_cq,
        .initiator_cq = initiator_cq,
        .context = qp_context,
        .receive_depth = receive_depth,
        .initiator_depth = initiator_depth,
        .max_receive_sge = max_receive_sge,
        .max_initiator_sge = max_initiator_sge,
        .inline_octets = inline_octets,
    };

    return qp_make(pd_from(pd), &plan, completion, context, out);
}

NTSTATUS qp_create_with_srq(NDK_PD *pd, NDK_CQ *receive_cq, NDK_CQ *initiator_cq, NDK_SRQ *srq,
                            PVOID qp_context, ULONG initiator_depth, ULONG max_initiator_sge,
                            ULONG inline_octets, NDK_FN_CREATE_COMPLETION completion, PVOID context,
                            NDK_QP **out)
{
    const struct qp_plan plan = {
        .call = CALL_CREATE_QP_WITH_SRQ,
        .rule = "NDKPI 8.5",
        .receive_cq = receive_cq,
        .initiator_cq = initiator_cq,
        .srq = srq,
        .shared = true,
        .context = qp_context,
        .receive_depth = 1, /* the receive in hand */
        .initiator_depth = initiator_depth,
        .max_initiator_sge = max_initiator_sge,
        .inline_octets = inline_octets,
    };

    return qp_make(pd_from(pd), &plan, completion, context, out);
}

/* ---- binding -------------------------------------------------------------------------------- */

NTSTATUS qp_bind(struct qp *qp, struct conn *conn)
{
    NTSTATUS status = STATUS_SUCCESS;

    os_mutex_lock(&qp->lock);
    if (atomic_load(&qp->dead) && !RED("qp-binds-dead")) {
        status = STATUS_INTERNAL_ERROR;
    } else if (qp->bound) {
        status = STATUS_CONNECTION_ACTIVE;
    } else {
        qp->bound = true;
        conn_ref(conn);
        atomic_store(&qp->conn, conn);
    }
    os_mutex_unlock(&qp->lock);
    return status;
}

void qp_receives_cancel(struct qp *qp)
{
    struct conn_wr *wr;

    while ((wr = conn_queue_peek(&qp->receive)) != NULL) {
        struct conn_completion c = {
            .context = wr->context, .status = STATUS_CANCELLED, .op = CONN_OP_RECEIVE};

        conn_queue_advance(&qp->receive);
        conn_queue_release_head(&qp->receive);
        qp_complete_receives(qp, &c, 1);
    }
}

void qp_unbind(struct qp *qp, struct conn *conn)
{
    struct qp_retired *retired = malloc(sizeof *retired);

    os_mutex_lock(&qp->lock);
    if (qp->bound && atomic_load(&qp->conn) == conn) {
        /* Without memory for the note the QP stays bound: it cannot be used again, nothing else. */
        if (retired) {
            retired->conn = conn;
            retired->next = qp->retired;
            qp->retired = retired;
            retired = NULL;
            qp->bound = false;
            atomic_store(&qp->conn, NULL);
            /* A flush that met a dead direction saw the QP still bound, or we see the flush. */
            if (conn_flush_pending(conn) || atomic_load(&qp->dead))
                qp_receives_cancel(qp);
        }
    }
    os_mutex_unlock(&qp->lock);
    free(retired);
}

/* ---- flush ---------------------------------------------------------------------------------- */

static void qp_flush_object(struct qp *qp)
{
    struct conn *conn;

    for (;;) {
        os_mutex_lock(&qp->lock);
        conn = atomic_load(&qp->conn);
        if (conn)
            conn_ref(conn);
        else
            qp_receives_cancel(qp);
        os_mutex_unlock(&qp->lock);
        if (!conn)
            return;
        conn_flush(conn);
        conn_unref(conn);
        /* The attempt may have failed meanwhile and left the receives to nobody. */
        if (atomic_load(&qp->conn) == conn)
            return;
    }
}

static VOID qp_flush(NDK_QP *ndk)
{
    qp_flush_object(qp_from(ndk));
}

const NDK_QP_DISPATCH qp_dispatch = {
    .NdkCloseQp = object_close,
    .NdkQueryExtension = object_query_extension,
    .NdkFlush = qp_flush,
    .NdkSend = qp_send,
    .NdkReceive = qp_receive,
    .NdkBind = qp_post_bind,
    .NdkFastRegister = qp_fast_register,
    .NdkInvalidate = qp_invalidate,
    .NdkRead = qp_read,
    .NdkWrite = qp_write,
    .NdkSendAndInvalidate = qp_send_and_invalidate,
};
