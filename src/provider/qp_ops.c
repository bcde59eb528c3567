// SPDX-License-Identifier: MIT
/* What the connection room asks of a queue pair; see struct conn_ops. Called by the owners of the
 * connection's directions, without a lock unless struct conn_ops says otherwise. */
#include <ntstatus.h>

#include "base/red.h"
#include "base/usdt.h"
#include "provider/adapter.h"
#include "provider/invalidate.h"
#include "provider/pages.h"
#include "provider/qp.h"

/* Adapter pages are this process's pages; without `scattered` a logical address is the host
 * address. With it, an element of several pages was refused when it was posted, and a page that is
 * not there is found here. */
static enum access_result map_privileged(struct adapter *adapter, uint64_t address, uint32_t length,
                                         uint32_t need, struct access *hold, struct os_iov *pieces,
                                         int *count)
{
    if (need & ACCESS_READ_SINK)
        return ACCESS_NO_RIGHT;
    if (address + length < address)
        return ACCESS_WRAP;
    if (adapter->options.scattered) {
        bool write = (need & ACCESS_LOCAL_WRITE) != 0;
        uint64_t page, bad;

        address = pages_from_logical(true, address);
        page = address & ~(uint64_t)(PAGE_SIZE - 1);
        if (length && !pages_probe_once(mem_known(adapter->tokens), &page, 1, write, &bad))
            return ACCESS_INVALID_TOKEN;
    }
    hold->slot = NULL;
    if (*count) {
        pieces[0].base = (void *)(uintptr_t)address;
        pieces[0].len = length;
        *count = 1;
    }
    return ACCESS_OK;
}

/* A refused access in words: the consumer sees only a status, or the peer's error code. */
static void access_refused(struct qp *qp, enum access_result result, uint32_t token,
                           uint64_t address, uint32_t length, uint32_t need)
{
    static const char *const why[] = {
        [ACCESS_INVALID_TOKEN] = "the token names nothing now (never given out, deregistered or "
                                 "invalidated, or a local token where a remote one is needed)",
        [ACCESS_WRONG_DOMAIN] = "the token is of another protection domain, or of a window that is "
                                "bound over another QP",
        [ACCESS_NO_RIGHT] = "the region was registered, or the window bound, without the right",
        [ACCESS_BOUNDS] = "outside of the region or window",
        [ACCESS_WRAP] = "address + length passes 2^64",
    };
    const char *who = need & ACCESS_REMOTE_WRITE  ? "a Write of the peer (needs remote write)"
                      : need & ACCESS_REMOTE_READ ? "a Read of the peer (needs remote read)"
                      : need & ACCESS_READ_SINK
                          ? "the sink of a Read (needs local write and RDMA_READ_SINK)"
                      : need & ACCESS_LOCAL_WRITE ? "a receive or the sink of a Read (needs local "
                                                    "write)"
                                                  : "the SGE of a Send or Write";

    object_note(&qp->object, "%s: token 0x%08x, %u octets at 0x%llx: %s", who, token, length,
                (unsigned long long)address, why[result]);
}

enum access_result qp_map(void *owner, uint32_t token, uint64_t address, uint32_t length,
                          uint32_t need, struct access *hold, struct os_iov *pieces, int *count)
{
    struct qp *qp = owner;
    enum access_result result;
    int room = *count;

    if (token == qp->pd->privileged_token && !(need & (ACCESS_REMOTE_READ | ACCESS_REMOTE_WRITE))) {
        result = map_privileged(qp->object.adapter, address, length, need, hold, pieces, count);
    } else {
        result =
            mem_begin(qp->object.adapter->tokens, token, qp->pd, qp, address, length, need, hold);
        if (result == ACCESS_OK && room) {
            *count = mem_pieces(hold, address, length, pieces, room);
            if (*count < 0) {
                mem_end(hold);
                result = ACCESS_BOUNDS;
            }
        }
    }
    if (result != ACCESS_OK)
        access_refused(qp, result, token, address, length, need);
    return result;
}

void qp_note(void *owner, const char *text)
{
    struct qp *qp = owner;

    object_note(&qp->object, "%s", text);
}

void qp_unmap(void *owner, struct access *hold)
{
    (void)owner;
    if (hold->slot)
        mem_end(hold);
}

/* ---- local operations ----------------------------------------------------------------------- */

static void local_over(void *context)
{
    struct qp *qp = context;
    struct object *object = qp->local_object;

    conn_local_done(atomic_load(&qp->conn), qp->local_wr, STATUS_SUCCESS);
    object_unref(object);
    object_unref(&qp->object);
}

static NTSTATUS local_invalidate(struct qp *qp, struct conn_wr *wr)
{
    struct object *object = wr->object;
    NTSTATUS status;

    wr->object = NULL;
    qp->local_wr = wr;
    qp->local_object = object;
    object_ref(&qp->object); /* until local_over() */
    status = object->class->invalidate(object, qp, 0, local_over, qp);
    if (status == STATUS_PENDING)
        return status;
    object_unref(object);
    object_unref(&qp->object);
    return status;
}

NTSTATUS qp_local(void *owner, struct conn_wr *wr)
{
    void *object = wr->object;

    switch (wr->op) {
    case CONN_OP_BIND:
        wr->object = NULL;
        return mw_bind_execute(object);
    case CONN_OP_FAST_REGISTER:
        wr->object = NULL;
        return mr_fast_execute(object);
    case CONN_OP_INVALIDATE:
        return local_invalidate(owner, wr);
    default:
        return STATUS_INVALID_DEVICE_REQUEST;
    }
}

void qp_local_drop(void *owner, struct conn_wr *wr)
{
    (void)owner;
    if (!wr->object)
        return;
    if (wr->op == CONN_OP_BIND)
        mw_bind_discard(wr->object);
    else if (wr->op == CONN_OP_FAST_REGISTER)
        mr_fast_discard(wr->object);
    else if (wr->op == CONN_OP_INVALIDATE)
        object_unref(wr->object);
    wr->object = NULL;
}

static void invalidated(void *context)
{
    struct qp *qp = context;
    struct object *object = qp->invalidating;

    conn_invalidated(atomic_load(&qp->conn));
    object_unref(object);
    object_unref(&qp->object);
}

enum access_result qp_invalidate_token(void *owner, uint32_t token, bool remote, bool *pending)
{
    struct qp *qp = owner;
    struct object *object = invalidate_find(qp->object.adapter->tokens, token, qp->pd, qp,
                                            remote ? MEM_BY_PEER : MEM_BY_READ);
    NTSTATUS status;

    if (!object)
        return ACCESS_INVALID_TOKEN;
    qp->invalidating = object;
    object_ref(&qp->object); /* until invalidated() */
    status = object->class->invalidate(object, qp, token, invalidated, qp);
    *pending = status == STATUS_PENDING;
    if (*pending)
        return ACCESS_OK;
    object_unref(object);
    object_unref(&qp->object);
    return NT_SUCCESS(status) ? ACCESS_OK : ACCESS_INVALID_TOKEN;
}

/* ---- receives of a shared queue ------------------------------------------------------------- */

bool qp_take_receive(void *owner, bool wait)
{
    struct qp *qp = owner;

    return qp->srq && srq_take(qp->srq, &qp->waiter, atomic_load(&qp->conn), &qp->receive, wait);
}

void qp_stop_waiting(void *owner)
{
    struct qp *qp = owner;

    if (qp->srq)
        srq_leave(qp->srq, &qp->waiter);
}

void qp_over(void *owner)
{
    struct qp *qp = owner;

    mw_list_end(&qp->windows);
}

/* ---- completions ---------------------------------------------------------------------------- */

static const NDK_OPERATION_TYPE operation_types[] = {
    [CONN_OP_RECEIVE] = NdkOperationTypeReceive,
    [CONN_OP_SEND] = NdkOperationTypeSend,
    [CONN_OP_WRITE] = NdkOperationTypeWrite,
    [CONN_OP_READ] = NdkOperationTypeRead,
    [CONN_OP_BIND] = NdkOperationTypeBind,
    [CONN_OP_FAST_REGISTER] = NdkOperationTypeFastRegister,
    [CONN_OP_INVALIDATE] = NdkOperationTypeInvalidate,
};

#define ENTRY_BATCH 32u

static void complete(struct qp *qp, struct cq *cq, const struct conn_completion *list,
                     unsigned count)
{
    struct cq_entry entries[ENTRY_BATCH];

    while (count) {
        unsigned n = count < ENTRY_BATCH ? count : ENTRY_BATCH;

        for (unsigned i = 0; i < n; i++) {
            const struct conn_completion *c = &list[i];

            USDT(complete, qp->object.id, c->context, c->op, c->status, c->octets);
            entries[i] = (struct cq_entry){
                .status = c->status,
                .octets = c->octets + (RED("qp-octets-one-more") ? 1 : 0),
                .qp_context = qp->context,
                .context = c->context,
                .type = c->invalidated && !RED("qp-invalidated-receive-is-plain")
                            ? NdkOperationTypeReceiveAndInvalidate
                            : operation_types[c->op],
                .provider_code = c->provider_code,
                .token = c->token,
                .solicits = c->solicited || (!NT_SUCCESS(c->status) && !RED("error_not_solicited")),
            };
        }
        cq_put(cq, entries, n); /* dead: qp_cq_died() is or was called */
        list += n;
        count -= n;
    }
}

void qp_complete_receives(void *owner, const struct conn_completion *list, unsigned count)
{
    struct qp *qp = owner;

    complete(qp, qp->receive_cq, list, count);
}

void qp_complete_requests(void *owner, const struct conn_completion *list, unsigned count)
{
    struct qp *qp = owner;

    complete(qp, qp->initiator_cq, list, count);
}

void qp_cq_died(void *owner)
{
    struct qp *qp = owner;

    if (atomic_exchange(&qp->dead, true) || !object_ref_living(&qp->object))
        return;
    object_note(&qp->object, "a CQ of it overran: the QP is dead, rule NDKPI 4.4");
    engine_run(qp->object.home, &qp->overrun);
}

void qp_overrun(struct engine_work *work)
{
    struct qp *qp = CONTAINING_RECORD(work, struct qp, overrun);
    struct conn *conn;

    os_mutex_lock(&qp->lock);
    conn = atomic_load(&qp->conn);
    if (conn)
        conn_ref(conn);
    else
        qp_receives_cancel(qp);
    os_mutex_unlock(&qp->lock);
    if (conn) {
        conn_overrun(conn);
        conn_unref(conn);
    }
    object_unref(&qp->object);
}
