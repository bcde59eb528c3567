// SPDX-License-Identifier: MIT
/* See qp.h. Creation, binding, flush; posting is in qp_post.c. */
#include "provider/qp.h"

#include <ntstatus.h>
#include <stdlib.h>

#include "base/red.h"
#include "provider/adapter.h"
#include "provider/qp_post.h"

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
    os_mutex_destroy(&qp->lock);
}

static void receive_cq_died(struct cq_user *user)
{
    qp_overrun_later(CONTAINING_RECORD(user, struct qp, receive_user));
}

static void initiator_cq_died(struct cq_user *user)
{
    qp_overrun_later(CONTAINING_RECORD(user, struct qp, initiator_user));
}

static const struct object_class qp_class = {
    .type = NdkObjectTypeQp,
    .name = "qp",
    .size = sizeof(struct qp),
    .cancel = qp_cancel,
    .release = qp_release,
};

struct qp_limit {
    const char *name;
    ULONG have, most;
};

/* The first size beyond its limit, or NULL. */
static const struct qp_limit *limits_check(const struct qp_limit *limits, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (limits[i].have > limits[i].most)
            return &limits[i];
    return NULL;
}

NTSTATUS qp_create(NDK_PD *ndk_pd, NDK_CQ *receive_cq, NDK_CQ *initiator_cq, PVOID qp_context,
                   ULONG receive_depth, ULONG initiator_depth, ULONG max_receive_sge,
                   ULONG max_initiator_sge, ULONG inline_octets,
                   NDK_FN_CREATE_COMPLETION completion, PVOID context, NDK_QP **out)
{
    struct pd *pd = pd_from(ndk_pd);
    struct object *parent = &pd->object;
    const struct options *o = &parent->adapter->options;
    const struct qp_limit limits[] = {
        {"ReceiveQueueDepth", receive_depth, o->max_receive_depth},
        {"InitiatorQueueDepth", initiator_depth, o->max_initiator_depth},
        {"MaxReceiveRequestSge", max_receive_sge, o->max_receive_sge},
        {"MaxInitiatorRequestSge", max_initiator_sge, o->max_initiator_sge},
        {"InlineDataSize", inline_octets, o->max_inline},
    };
    const struct qp_limit *over = limits_check(limits, sizeof limits / sizeof limits[0]);
    NTSTATUS status = object_injected(parent, CALL_CREATE_QP);
    struct object *object = NULL;
    struct qp *qp;

    if (status != STATUS_SUCCESS) {
        ;
    } else if (over) {
        status = object_fail(parent, CALL_CREATE_QP, STATUS_INVALID_PARAMETER,
                             "%s (have %u, need <= %u), rule NDKPI 8.4", over->name, over->have,
                             over->most);
    } else if (!receive_cq || !initiator_cq || receive_cq->Header.ObjectType != NdkObjectTypeCq ||
               initiator_cq->Header.ObjectType != NdkObjectTypeCq ||
               cq_from(receive_cq)->object.adapter != parent->adapter ||
               cq_from(initiator_cq)->object.adapter != parent->adapter) {
        status = object_fail(parent, CALL_CREATE_QP, STATUS_INVALID_PARAMETER,
                             "a CQ is NULL, no CQ, or of another adapter, rule NDKPI 8.4");
    } else {
        object = object_new(&qp_class, parent, &qp_dispatch);
        if (!object)
            status =
                object_fail(parent, CALL_CREATE_QP, STATUS_INSUFFICIENT_RESOURCES, "no memory");
    }
    if (object) {
        ULONG sge = max_initiator_sge > o->max_read_sge ? max_initiator_sge : o->max_read_sge;

        qp = CONTAINING_RECORD(object, struct qp, object);
        qp->pd = pd;
        qp->receive_cq = cq_from(receive_cq);
        qp->initiator_cq = cq_from(initiator_cq);
        qp->context = qp_context;
        qp->max_initiator_sge = max_initiator_sge;
        qp->max_receive_sge = max_receive_sge;
        qp->max_read_sge = o->max_read_sge;
        qp->max_inline = inline_octets;
        qp->max_transfer = o->max_transfer;
        qp->overrun.run = qp_overrun;
        os_mutex_init(&qp->lock);
        /* Reads have their own SGE limit, which overrides the initiator's. */
        conn_queue_init(&qp->initiator, initiator_depth, sge, inline_octets);
        conn_queue_init(&qp->receive, receive_depth, max_receive_sge, 0);
        object->home = qp->receive_cq->object.home;
        object_follow(object, &qp->receive_cq->object);
        object_follow(object, &qp->initiator_cq->object);
        cq_join(qp->receive_cq, &qp->receive_user, receive_cq_died);
        cq_join(qp->initiator_cq, &qp->initiator_user, initiator_cq_died);
    }
    return create_answer(parent, CALL_CREATE_QP, completion, context, status, object, (void **)out);
}

/* ---- binding -------------------------------------------------------------------------------- */

bool qp_dead(const struct qp *qp)
{
    return cq_dead(qp->receive_cq) || cq_dead(qp->initiator_cq);
}

/* A CQ that dies behind the look at it finds the connection bound (qp_overrun takes the lock). */
NTSTATUS qp_bind(struct qp *qp, struct conn *conn)
{
    NTSTATUS status = STATUS_SUCCESS;

    os_mutex_lock(&qp->lock);
    if (qp->bound) {
        status = STATUS_CONNECTION_ACTIVE;
    } else if (qp_dead(qp) && !RED("qp-binds-dead")) {
        status = STATUS_INTERNAL_ERROR;
    } else {
        qp->bound = true;
        conn_ref(conn);
        atomic_store(&qp->conn, conn);
    }
    os_mutex_unlock(&qp->lock);
    return status;
}

/* Without a connection the lock makes this thread the taker. */
static void receives_cancel(struct qp *qp)
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
            if (conn_flush_pending(conn))
                receives_cancel(qp);
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
            receives_cancel(qp);
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
