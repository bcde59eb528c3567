// SPDX-License-Identifier: MIT
/*
 * Queue pairs: parameter checks and posting here, everything that moves in the connection room,
 * which asks back through qp_conn_ops (memory, local operations, completions).
 *
 * States: IDLE - a connector binds it (Connect, Accept) - BOUND - an attempt that failed before
 * work could be posted unbinds it again. A pair that was connected stays bound for good. One of
 * whose CQs overran is dead in any state: it takes no posts and no connection, its connection is
 * reset, and what it has queued is flushed to the CQ that lives, if one does.
 *
 * Locks: qp->lock (order: conn->lock, qp->lock, queue lock, CQ lock) guards state and conn. Posts
 * take none: the consumer serializes them per queue. The connections of failed attempts are kept
 * until the QP goes, since a post may still be looking at one.
 */
#ifndef SOFTNDK_PROVIDER_QP_H
#define SOFTNDK_PROVIDER_QP_H

#include "conn/conn.h"
#include "provider/cq.h"
#include "provider/mr.h"
#include "provider/mw.h"
#include "provider/pd.h"
#include "provider/srq.h"

struct qp_retired {
    struct qp_retired *next;
    struct conn *conn;
};

struct qp {
    struct object object;
    struct pd *pd;
    struct cq *receive_cq, *initiator_cq;
    PVOID context;
    ULONG max_initiator_sge, max_receive_sge, max_read_sge, max_inline;
    ULONG flags_absent, flags_ignored; /* request flags that came after the version that runs */
    struct conn_queue initiator, receive;
    struct srq *srq; /* or NULL. With one, `receive` holds the receive in hand, and its poster is
                        the receive owner of the connection */
    struct srq_waiter waiter; /* under the SRQ's lock */
    struct mw_list windows;   /* bound over this QP; they end with its connection */

    os_mutex lock;
    bool bound;
    _Atomic(struct conn *) conn; /* referenced */
    atomic_bool dead;            /* a CQ overran; set before `overrun` is queued */
    struct qp_retired *retired;

    struct cq_user receive_user, initiator_user; /* the second only if the CQs are two */
    struct engine_work overrun;                  /* ends the connection; a reference while queued */
    /* the local operation and the invalidation that pended; one of each at a time */
    struct conn_wr *local_wr;
    struct object *local_object, *invalidating;
};

static inline struct qp *qp_from(NDK_QP *ndk)
{
    return (struct qp *)(void *)ndk;
}

extern const NDK_QP_DISPATCH qp_dispatch;
/* PD slots NdkCreateQp and NdkCreateQpWithSrq. */
NTSTATUS qp_create(NDK_PD *pd, NDK_CQ *receive_cq, NDK_CQ *initiator_cq, PVOID qp_context,
                   ULONG receive_depth, ULONG initiator_depth, ULONG max_receive_sge,
                   ULONG max_initiator_sge, ULONG inline_octets,
                   NDK_FN_CREATE_COMPLETION completion, PVOID context, NDK_QP **out);
NTSTATUS qp_create_with_srq(NDK_PD *pd, NDK_CQ *receive_cq, NDK_CQ *initiator_cq, NDK_SRQ *srq,
                            PVOID qp_context, ULONG initiator_depth, ULONG max_initiator_sge,
                            ULONG inline_octets, NDK_FN_CREATE_COMPLETION completion, PVOID context,
                            NDK_QP **out);

/* Takes the QP for a connection, which is referenced. STATUS_CONNECTION_ACTIVE: it is in use or was
 * connected before; STATUS_INTERNAL_ERROR: it is dead. Who started the connection then looks at
 * qp->dead once more (struct conn_binding). */
NTSTATUS qp_bind(struct qp *qp, struct conn *conn);
/* The attempt failed before work could be posted: the QP is as before. */
void qp_unbind(struct qp *qp, struct conn *conn);

/* Memory, local operations and completions for the connection room (qp_ops.c). */
enum access_result qp_map(void *qp, uint32_t token, uint64_t address, uint32_t length,
                          uint32_t need, struct access *hold, struct os_iov *pieces, int *count);
void qp_unmap(void *qp, struct access *hold);
void qp_note(void *qp, const char *text);
NTSTATUS qp_local(void *qp, struct conn_wr *wr);
void qp_local_drop(void *qp, struct conn_wr *wr);
enum access_result qp_invalidate_token(void *qp, uint32_t token, bool remote, bool *pending);
bool qp_take_receive(void *qp, bool wait);
void qp_stop_waiting(void *qp);
void qp_over(void *qp);
void qp_complete_receives(void *qp, const struct conn_completion *list, unsigned count);
void qp_complete_requests(void *qp, const struct conn_completion *list, unsigned count);
/* A CQ of the QP died: cq_user's function, and the rest, on a shard. */
void qp_cq_died(void *qp);
void qp_overrun(struct engine_work *work);
/* lock held; without a connection it makes this thread the taker of the receives */
void qp_receives_cancel(struct qp *qp);

#endif
