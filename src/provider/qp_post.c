// SPDX-License-Identifier: MIT
/*
 * Posting. A success return means "posted, exactly one completion follows" (none for a silent
 * success); a failure means "not posted, no completion", and sends on its way whatever was posted
 * with DEFER before it. The SGE array is read during the call only; tokens are looked at when the
 * request runs. Any IRQL up to DISPATCH_LEVEL; no lock: the consumer serializes posts per queue.
 */
#include "provider/qp_post.h"

#include <ntstatus.h>
#include <string.h>

#include "base/red.h"
#include "base/usdt.h"
#include "provider/qp.h"
#include "provider/sges.h"

#define FLAGS_ANY   (NDK_OP_FLAG_SILENT_SUCCESS | NDK_OP_FLAG_READ_FENCE | NDK_OP_FLAG_DEFER)
#define FLAGS_SEND  (FLAGS_ANY | NDK_OP_FLAG_SEND_AND_SOLICIT_EVENT | NDK_OP_FLAG_INLINE)
#define FLAGS_WRITE (FLAGS_ANY | NDK_OP_FLAG_INLINE)
#define FLAGS_READ  (FLAGS_ANY | NDK_OP_FLAG_RDMA_READ_LOCAL_INVALIDATE)
#define FLAGS_BIND  (FLAGS_ANY | NDK_OP_FLAG_ALLOW_REMOTE_READ | NDK_OP_FLAG_ALLOW_REMOTE_WRITE)
#define FLAGS_FAST_REGISTER                                                                        \
    (FLAGS_ANY | NDK_OP_FLAG_ALLOW_REMOTE_READ | NDK_OP_FLAG_ALLOW_REMOTE_WRITE |                  \
     NDK_OP_FLAG_RDMA_READ_SINK)

/* One post of the initiator queue, between its checks and its push. */
struct post {
    struct qp *qp;
    enum call call;
    ULONG flags;
    struct conn *conn;
    struct conn_wr *wr;
};

/* Refuses: what was deferred before must not wait for a request that does not come. */
static NTSTATUS post_refuse(struct post *post, NTSTATUS status)
{
    if (post->conn && !RED("defer_stuck_after_failure"))
        conn_post_kick(post->conn);
    return status;
}

/* Its completion would be lost. */
static NTSTATUS refuse_dead(struct qp *qp, enum call call)
{
    return object_fail(&qp->object, call, STATUS_CONNECTION_INVALID,
                       "a CQ of the QP overran: the QP is dead, rule NDKPI 4.4");
}

static bool is_dead(struct qp *qp)
{
    return __builtin_expect(atomic_load_explicit(&qp->dead, memory_order_relaxed), 0) &&
           !RED("qp-dead-takes-posts");
}

static NTSTATUS post_begin(struct post *post, NDK_QP *ndk, enum call call, ULONG flags,
                           ULONG allowed)
{
    struct qp *qp = qp_from(ndk);
    NTSTATUS status;

    post->qp = qp;
    post->call = call;
    post->flags = flags & ~qp->flags_ignored;
    post->wr = NULL;
    post->conn = atomic_load(&qp->conn);
    status = object_injected(&qp->object, call);
    if (status != STATUS_SUCCESS)
        return post_refuse(post, status);
    if (is_dead(qp))
        return post_refuse(post, refuse_dead(qp, call));
    if (!post->conn || !conn_takes_requests(post->conn))
        return post_refuse(
            post, object_fail(&qp->object, call, STATUS_CONNECTION_INVALID,
                              "the QP is not connected, or is disconnecting, rule NDKPI 12"));
    allowed &= ~qp->flags_absent;
    if ((flags & ~allowed) && !RED("post-flags-unchecked"))
        return post_refuse(post,
                           object_fail(&qp->object, call, STATUS_INVALID_PARAMETER,
                                       "Flags (have 0x%x, need none but 0x%x in this version), "
                                       "rule NDKPI 2.1",
                                       flags, allowed));
    post->wr = conn_queue_prepare(&qp->initiator, &status);
    if (!post->wr)
        return post_refuse(post,
                           object_fail(&qp->object, call, status,
                                       status == STATUS_NO_MORE_ENTRIES
                                           ? "the initiator queue is full (depth %u), rule NDKPI 12"
                                           : "no memory for the initiator queue (depth %u)",
                                       qp->initiator.depth));
    return STATUS_SUCCESS;
}

static NTSTATUS post_end(struct post *post, PVOID context, uint8_t op)
{
    struct conn_wr *wr = post->wr;

    wr->context = context;
    wr->op = op;
    if (post->flags & NDK_OP_FLAG_SILENT_SUCCESS)
        wr->flags |= CONN_WR_SILENT;
    if (post->flags & NDK_OP_FLAG_READ_FENCE)
        wr->flags |= CONN_WR_FENCE;
    if (post->flags & NDK_OP_FLAG_SEND_AND_SOLICIT_EVENT)
        wr->flags |= CONN_WR_SOLICIT;
    USDT(post, post->conn, post->qp->object.id, context, op, wr->length, post->flags);
    conn_queue_push(&post->qp->initiator);
    if (post->flags & NDK_OP_FLAG_DEFER) {
        /* The chain goes with the next post that does not carry DEFER. If the connection has ended
         * meanwhile there may be nobody to flush this one. */
        if (!conn_receive_kick(post->conn))
            conn_late_flush(post->conn);
        return STATUS_SUCCESS;
    }
    if (!conn_post_kick(post->conn))
        conn_late_flush(post->conn);
    return STATUS_SUCCESS;
}

/* INLINE: the octets are taken now, tokens are ignored, the number of SGEs is not limited. */
static NTSTATUS inline_copy(struct qp *qp, enum call call, struct conn_wr *wr, CONST NDK_SGE *sgl,
                            ULONG sges)
{
    uint64_t total = 0;

    if (sges && !sgl)
        return object_fail(&qp->object, call, STATUS_INVALID_PARAMETER, "pSgl is NULL with nSge %u",
                           sges);
    for (ULONG i = 0; i < sges; i++)
        total += sgl[i].Length;
    if (total > qp->max_inline)
        return object_fail(&qp->object, call, STATUS_BUFFER_OVERFLOW,
                           "inline octets (have %llu, need <= InlineDataSize %u), rule NDKPI 12.2",
                           (unsigned long long)total, qp->max_inline);
    for (ULONG i = 0; i < sges; i++) {
        if (sgl[i].Length)
            memcpy(wr->octets + wr->length, sgl[i].VirtualAddress, sgl[i].Length);
        wr->length += sgl[i].Length;
    }
    wr->flags |= CONN_WR_INLINE;
    return STATUS_SUCCESS;
}

static NTSTATUS post_payload(struct post *post, CONST NDK_SGE *sgl, ULONG sges, ULONG most)
{
    struct qp *qp = post->qp;
    NTSTATUS status;

    if (post->flags & NDK_OP_FLAG_INLINE) {
        status = inline_copy(qp, post->call, post->wr, sgl, sges);
    } else {
        status = sges_check(&qp->object, qp->pd, post->call, sgl, sges, most);
        if (status == STATUS_SUCCESS)
            sges_copy(post->wr, sgl, sges);
    }
    return status == STATUS_SUCCESS ? status : post_refuse(post, status);
}

static NTSTATUS post_send(NDK_QP *ndk, enum call call, PVOID context, CONST NDK_SGE *sgl,
                          ULONG sges, ULONG flags, UINT32 token)
{
    struct post post;
    NTSTATUS status = post_begin(&post, ndk, call, flags, FLAGS_SEND);

    if (status == STATUS_SUCCESS)
        status = post_payload(&post, sgl, sges, post.qp->max_initiator_sge);
    if (status != STATUS_SUCCESS)
        return status;
    if (call == CALL_SEND_AND_INVALIDATE) {
        post.wr->flags |= CONN_WR_INVALIDATE;
        post.wr->token = token;
    }
    return post_end(&post, context, CONN_OP_SEND);
}

NTSTATUS qp_send(NDK_QP *ndk, PVOID context, CONST NDK_SGE *sgl, ULONG sges, ULONG flags)
{
    return post_send(ndk, CALL_SEND, context, sgl, sges, flags, 0);
}

NTSTATUS qp_send_and_invalidate(NDK_QP *ndk, PVOID context, CONST NDK_SGE *sgl, ULONG sges,
                                ULONG flags, UINT32 token)
{
    return post_send(ndk, CALL_SEND_AND_INVALIDATE, context, sgl, sges, flags, token);
}

NTSTATUS qp_write(NDK_QP *ndk, PVOID context, CONST NDK_SGE *sgl, ULONG sges, UINT64 address,
                  UINT32 token, ULONG flags)
{
    struct post post;
    NTSTATUS status = post_begin(&post, ndk, CALL_WRITE, flags, FLAGS_WRITE);

    if (status == STATUS_SUCCESS)
        status = post_payload(&post, sgl, sges, post.qp->max_initiator_sge);
    if (status != STATUS_SUCCESS)
        return status;
    post.wr->remote_address = address;
    post.wr->token = token;
    return post_end(&post, context, CONN_OP_WRITE);
}

NTSTATUS qp_read(NDK_QP *ndk, PVOID context, CONST NDK_SGE *sgl, ULONG sges, UINT64 address,
                 UINT32 token, ULONG flags)
{
    struct post post;
    NTSTATUS status = post_begin(&post, ndk, CALL_READ, flags, FLAGS_READ);

    if (status == STATUS_SUCCESS)
        status = post_payload(&post, sgl, sges,
                              RED("post-reads-by-initiator-sges") ? post.qp->max_initiator_sge
                                                                  : post.qp->max_read_sge);
    if (status != STATUS_SUCCESS)
        return status;
    if (conn_read_limit(post.conn) == 0)
        return post_refuse(&post,
                           object_fail(&post.qp->object, CALL_READ, STATUS_INVALID_DEVICE_REQUEST,
                                       "the outbound read limit of this connection is 0"));
    post.wr->remote_address = address;
    post.wr->token = token;
    if (post.flags & NDK_OP_FLAG_RDMA_READ_LOCAL_INVALIDATE)
        post.wr->flags |= CONN_WR_INVALIDATE;
    return post_end(&post, context, CONN_OP_READ);
}

/* ---- local operations ----------------------------------------------------------------------- */

NTSTATUS qp_fast_register(NDK_QP *ndk, PVOID context, NDK_MR *mr, ULONG pages,
                          CONST NDK_LOGICAL_ADDRESS *array, ULONG fbo, SIZE_T length, PVOID base,
                          ULONG flags)
{
    struct post post;
    struct mr_fast *fast;
    NTSTATUS status = post_begin(&post, ndk, CALL_FAST_REGISTER, flags, FLAGS_FAST_REGISTER);

    if (status != STATUS_SUCCESS)
        return status;
    if (!mr || mr->Header.ObjectType != NdkObjectTypeMr)
        return post_refuse(&post, object_fail(&post.qp->object, CALL_FAST_REGISTER,
                                              STATUS_INVALID_PARAMETER,
                                              "pMr is NULL or no MR, rule NDKPI 12.5"));
    status = mr_fast_prepare(&post.qp->object, post.qp->pd, mr, pages, array, fbo, length, base,
                             flags, &fast);
    if (status != STATUS_SUCCESS)
        return post_refuse(&post, status);
    post.wr->object = fast;
    return post_end(&post, context, CONN_OP_FAST_REGISTER);
}

/* The object that NdkInvalidate names, or NULL: refused, with a reason. */
static struct object *invalidatable(struct qp *qp, NDK_OBJECT_HEADER *header)
{
    const struct mr *mr = (const struct mr *)(const void *)header;
    const struct mw *mw = (const struct mw *)(const void *)header;
    const struct pd *pd = NULL;

    if (header && header->ObjectType == NdkObjectTypeMr && mr->fast)
        pd = mr->pd;
    else if (header && header->ObjectType == NdkObjectTypeMw)
        pd = mw->pd;
    if (!pd) {
        object_fail(&qp->object, CALL_INVALIDATE, STATUS_INVALID_PARAMETER,
                    "the object is neither a fast-register MR nor a window (deregister other MRs "
                    "with NdkDeregisterMr), rule NDKPI 12.6");
        return NULL;
    }
    if (pd != qp->pd && !RED("invalidate-domain-unchecked")) {
        object_fail(&qp->object, CALL_INVALIDATE, STATUS_INVALID_PARAMETER,
                    "the object is of another domain (have pd #%u, need pd #%u), rule NDKPI 12.6",
                    pd->object.id, qp->pd->object.id);
        return NULL;
    }
    return CONTAINING_RECORD(header, struct object, header);
}

NTSTATUS qp_invalidate(NDK_QP *ndk, PVOID context, NDK_OBJECT_HEADER *header, ULONG flags)
{
    struct post post;
    struct object *object;
    NTSTATUS status = post_begin(&post, ndk, CALL_INVALIDATE, flags, FLAGS_ANY);

    if (status != STATUS_SUCCESS)
        return status;
    object = invalidatable(post.qp, header);
    if (!object)
        return post_refuse(&post, STATUS_INVALID_PARAMETER);
    object_ref(object);
    post.wr->object = object;
    return post_end(&post, context, CONN_OP_INVALIDATE);
}

NTSTATUS qp_post_bind(NDK_QP *ndk, PVOID context, NDK_MR *mr, NDK_MW *mw, PVOID address,
                      SIZE_T length, ULONG flags)
{
    struct post post;
    struct mw_bind *bind;
    NTSTATUS status = post_begin(&post, ndk, CALL_BIND, flags, FLAGS_BIND);

    if (status != STATUS_SUCCESS)
        return status;
    status = mw_bind_prepare(&post.qp->object, post.qp->pd, &post.qp->windows, mr, mw, address,
                             length, flags, &bind);
    if (status != STATUS_SUCCESS)
        return post_refuse(&post, status);
    post.wr->object = bind;
    return post_end(&post, context, CONN_OP_BIND);
}

/* ---- receives ------------------------------------------------------------------------------- */

NTSTATUS qp_receive(NDK_QP *ndk, PVOID context, CONST NDK_SGE *sgl, ULONG sges)
{
    struct qp *qp = qp_from(ndk);
    NTSTATUS status = object_injected(&qp->object, CALL_RECEIVE);
    struct conn_wr *wr;
    struct conn *conn;

    if (status != STATUS_SUCCESS)
        return status;
    if (qp->srq && !RED("srq-qp-takes-receives"))
        return object_fail(&qp->object, CALL_RECEIVE, STATUS_INVALID_DEVICE_REQUEST,
                           "the QP receives through srq #%u (need NdkSrqReceive), rule NDKPI 8.5",
                           qp->srq->object.id);
    if (is_dead(qp))
        return refuse_dead(qp, CALL_RECEIVE);
    wr = conn_queue_prepare(&qp->receive, &status);
    if (!wr)
        return object_fail(&qp->object, CALL_RECEIVE, status,
                           status == STATUS_NO_MORE_ENTRIES
                               ? "the receive queue is full (depth %u), rule NDKPI 12"
                               : "no memory for the receive queue (depth %u)",
                           qp->receive.depth);
    status = sges_check(&qp->object, qp->pd, CALL_RECEIVE, sgl, sges, qp->max_receive_sge);
    if (status != STATUS_SUCCESS)
        return status;
    sges_copy(wr, sgl, sges);
    wr->context = context;
    wr->op = CONN_OP_RECEIVE;
    USDT(post_receive, qp->object.id, context, wr->length);
    conn_queue_push(&qp->receive);
    conn = atomic_load(&qp->conn);
    if (conn && !conn_receive_kick(conn))
        conn_late_flush(conn);
    return STATUS_SUCCESS;
}
