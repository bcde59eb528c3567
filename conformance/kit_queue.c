// SPDX-License-Identifier: MIT
/*
 * Completion queues and work requests: what was posted is remembered per queue, and every result is
 * held against it (lifetime 6.1, 6.3, 6.4; NDKPI 1.5-1.7).
 *
 * A request is put into its queue's list before the post, since it may complete before the post
 * returns, and taken out again if the post fails. All lists are under the case's lock.
 */
#include "kit_internal.h"

/* ---- posting -------------------------------------------------------------------------------- */

static const char *request_name(const struct kit_request *r)
{
    switch (r->type) {
    case NdkOperationTypeReceive:
        return r->srq ? "NdkSrqReceive" : "NdkReceive";
    case NdkOperationTypeSend:
        return r->invalidates ? "NdkSendAndInvalidate" : "NdkSend";
    case NdkOperationTypeFastRegister:
        return "NdkFastRegister";
    case NdkOperationTypeBind:
        return "NdkBind";
    case NdkOperationTypeInvalidate:
        return "NdkInvalidate";
    case NdkOperationTypeRead:
        return "NdkRead";
    default:
        return "NdkWrite";
    }
}

static struct kit_request *request_new(struct kit *k, struct kit_qp *qp, struct kit_srq *srq,
                                       NDK_OPERATION_TYPE type, const NDK_SGE *sges, ULONG count,
                                       ULONG flags)
{
    struct kit_request *r = kit_alloc(k, sizeof *r);

    if (!r)
        return NULL;
    r->qp = qp;
    r->srq = srq;
    r->type = type;
    r->flags = flags;
    r->receive = type == NdkOperationTypeReceive;
    for (ULONG i = 0; sges && i < count; i++)
        r->length += sges[i].Length;
    kit_os_lock(&k->in->lock);
    r->all = k->in->requests;
    k->in->requests = r;
    if (qp) {
        if (qp->last[r->receive])
            qp->last[r->receive]->next = r;
        else
            qp->first[r->receive] = r;
        qp->last[r->receive] = r;
    }
    kit_os_unlock(&k->in->lock);
    return r;
}

/* Takes r out of its queue's list; the lock is held. */
static VOID unlink(struct kit_request *r)
{
    struct kit_request **link, *before = NULL;

    if (!r->qp)
        return;
    for (link = &r->qp->first[r->receive]; *link && *link != r; link = &(*link)->next)
        before = *link;
    if (*link) {
        *link = r->next;
        if (r->qp->last[r->receive] == r)
            r->qp->last[r->receive] = before;
    }
}

static struct kit_request *request_returned(struct kit *k, struct kit_request *r, NTSTATUS status)
{
    kit_doing(k, NULL);
    kit_answered(request_name(r), status, KIT_INLINE);
    kit_os_lock(&k->in->lock);
    r->posted = status;
    if (status != STATUS_SUCCESS) {
        if (r->state == KIT_POSTED)
            unlink(r);
        r->state = KIT_NOT_POSTED;
    }
    kit_os_unlock(&k->in->lock);
    if (status == STATUS_PENDING)
        kit_breach(k, "lifetime 6.1", "a work request returned STATUS_PENDING");
    return r;
}

#define POST(qp_, type_, sges_, count_, flags_, name_, ...)                                        \
    struct kit_request *r =                                                                        \
        request_new((qp_)->object.k, (qp_), NULL, (type_), (sges_), (count_), (flags_));           \
    if (!r)                                                                                        \
        return NULL;                                                                               \
    kit_doing((qp_)->object.k, #name_);                                                            \
    return request_returned((qp_)->object.k, r, (qp_)->table->name_((qp_)->ndk, r, __VA_ARGS__))

struct kit_request *kit_send(struct kit_qp *qp, const NDK_SGE *sges, ULONG count, ULONG flags)
{
    POST(qp, NdkOperationTypeSend, sges, count, flags, NdkSend, sges, count, flags);
}

struct kit_request *kit_receive(struct kit_qp *qp, const NDK_SGE *sges, ULONG count)
{
    POST(qp, NdkOperationTypeReceive, sges, count, 0, NdkReceive, sges, count);
}

struct kit_request *kit_srq_receive(struct kit_srq *srq, const NDK_SGE *sges, ULONG count)
{
    struct kit *k = srq->object.k;
    struct kit_request *r = request_new(k, NULL, srq, NdkOperationTypeReceive, sges, count, 0);

    if (!r)
        return NULL;
    kit_doing(k, "NdkSrqReceive");
    return request_returned(k, r, srq->table->NdkSrqReceive(srq->ndk, r, sges, count));
}

struct kit_request *kit_read(struct kit_qp *qp, const NDK_SGE *sges, ULONG count, UINT64 address,
                             UINT32 token, ULONG flags)
{
    POST(qp, NdkOperationTypeRead, sges, count, flags, NdkRead, sges, count, address, token, flags);
}

struct kit_request *kit_write(struct kit_qp *qp, const NDK_SGE *sges, ULONG count, UINT64 address,
                              UINT32 token, ULONG flags)
{
    POST(qp, NdkOperationTypeWrite, sges, count, flags, NdkWrite, sges, count, address, token,
         flags);
}

struct kit_request *kit_send_and_invalidate(struct kit_qp *qp, const NDK_SGE *sges, ULONG count,
                                            ULONG flags, UINT32 token)
{
    struct kit *k = qp->object.k;
    struct kit_request *r = request_new(k, qp, NULL, NdkOperationTypeSend, sges, count, flags);

    if (!r)
        return NULL;
    r->invalidates = TRUE;
    kit_doing(k, "NdkSendAndInvalidate");
    return request_returned(k, r,
                            qp->table->NdkSendAndInvalidate(qp->ndk, r, sges, count, flags, token));
}

struct kit_request *kit_bind(struct kit_qp *qp, struct kit_mr *mr, struct kit_mw *mw, PVOID address,
                             SIZE_T length, ULONG flags)
{
    POST(qp, NdkOperationTypeBind, NULL, 0, flags, NdkBind, mr->ndk, mw->ndk, address, length,
         flags);
}

struct kit_request *kit_fast_register(struct kit_qp *qp, struct kit_mr *mr,
                                      const struct kit_lam *lam, SIZE_T length, PVOID base,
                                      ULONG flags)
{
    POST(qp, NdkOperationTypeFastRegister, NULL, 0, flags, NdkFastRegister, mr->ndk,
         lam->ndk->AdapterPageCount, lam->ndk->AdapterPageArray, lam->fbo, length, base, flags);
}

struct kit_request *kit_invalidate(struct kit_qp *qp, struct kit_object *mr_or_mw, ULONG flags)
{
    POST(qp, NdkOperationTypeInvalidate, NULL, 0, flags, NdkInvalidate, mr_or_mw->header, flags);
}

BOOLEAN kit_posted(struct kit_request *r, NTSTATUS need)
{
    char words[256] = "";
    struct kit_object *object;

    TRY_OR_FALSE(r != NULL);
    if (r->posted == need)
        return TRUE;
    object = r->qp ? &r->qp->object : &r->srq->object;
    if (kit_door.reason && r->posted != STATUS_SUCCESS)
        kit_door.reason(object->header, words, sizeof words);
    return kit_fail(object->k, (struct kit_here){NULL, 0}, "a post returned %s, need %s%s%s%s",
                    kit_status_name(r->posted), kit_status_name(need),
                    words[0] ? " (provider: " : "", words, words[0] ? ")" : "");
}

BOOLEAN kit_ok(struct kit_request *r)
{
    return kit_posted(r, STATUS_SUCCESS);
}

VOID kit_flush(struct kit_qp *qp)
{
    kit_doing(qp->object.k, "NdkFlush");
    qp->table->NdkFlush(qp->ndk);
    kit_doing(qp->object.k, NULL);
}

/* ---- results -------------------------------------------------------------------------------- */

/* The request of a context, if it is one of this case at all; the lock is held. */
static struct kit_request *find(struct kit *k, PVOID context)
{
    for (struct kit_request *r = k->in->requests; r; r = r->all)
        if (r == context)
            return r;
    return NULL;
}

/* Takes the request and the silent ones before it out of its queue. The lock is held. Returns what
 * is wrong, or NULL. */
static const char *take(struct kit_request *r)
{
    struct kit_request *first;

    if (r->state == KIT_COMPLETED)
        return "it completed twice";
    if (r->state == KIT_NOT_POSTED)
        return "its post had failed";
    if (r->state == KIT_SILENT)
        return "a later request of its queue has completed before (lifetime 6.3)";
    r->state = KIT_COMPLETED;
    if (!r->qp)
        return NULL;
    while ((first = r->qp->first[r->receive]) != r) {
        if (!first)
            return "it is in no queue";
        unlink(first);
        if (!(first->flags & NDK_OP_FLAG_SILENT_SUCCESS)) {
            first->state = KIT_SILENT;
            unlink(r);
            return "an earlier request of its queue has not completed (lifetime 6.3)";
        }
        first->state = KIT_SILENT;
    }
    unlink(r);
    return NULL;
}

static const char *check_kind(const struct kit_request *r, const NDK_RESULT_EX *raw,
                              BOOLEAN extended)
{
    if (r->receive && raw->Status == STATUS_SUCCESS && raw->BytesTransferred > r->length)
        return "it has more bytes than its receive";
    if (!extended)
        return NULL;
    if (raw->Type != r->type && !(r->receive && raw->Type == NdkOperationTypeReceiveAndInvalidate))
        return "its Type is not that of the request (NDKPI 1.7)";
    if (raw->Status == STATUS_SUCCESS && raw->ProviderErrorCode)
        return "it has a ProviderErrorCode though it succeeded (NDKPI 1.6)";
    return NULL;
}

static VOID check(struct kit_cq *cq, const NDK_RESULT_EX *raw, BOOLEAN extended,
                  struct kit_result *out)
{
    struct kit *k = cq->object.k;
    const char *wrong;
    struct kit_request *r;

    RtlZeroMemory(out, sizeof *out);
    out->status = raw->Status;
    out->bytes = raw->BytesTransferred;
    out->ex = extended;
    if (extended) {
        out->type = raw->Type;
        out->provider_error = raw->ProviderErrorCode;
        out->output = raw->TypeSpecificCompletionOutput;
    }
    kit_os_lock(&k->in->lock);
    r = find(k, raw->RequestContext);
    wrong = r ? take(r) : "its RequestContext was never posted";
    if (r) {
        r->status = raw->Status;
        if (!wrong)
            wrong = check_kind(r, raw, extended);
        if (!wrong && raw->Status == STATUS_SUCCESS && (r->flags & NDK_OP_FLAG_SILENT_SUCCESS))
            wrong = "it is a silent request that succeeded (lifetime 6.4)";
        if (!wrong && r->qp && raw->QPContext != r->qp)
            wrong = "its QPContext is not that of its QP";
        if (!wrong && r->qp && (r->receive ? r->qp->receive : r->qp->initiator) != cq)
            wrong = "it came out of another CQ than its queue's";
        out->qp = r->qp ? r->qp : raw->QPContext;
    }
    kit_os_unlock(&k->in->lock);
    out->request = r;
    if (r)
        kit_answered(request_name(r), raw->Status, KIT_COMPLETION);
    if (raw->Status == STATUS_PENDING)
        wrong = "its status is STATUS_PENDING";
    if (wrong)
        kit_breach(k, "lifetime 6.1", "a result of cq #%u with %s: %s", (unsigned)cq->object.number,
                   kit_status_name(raw->Status), wrong);
}

#define BATCH 64

static ULONG poll_extended(struct kit_cq *cq, struct kit_result *results, ULONG n)
{
    NDK_RESULT_EX raw[BATCH];
    ULONG count = cq->table->NdkGetCqResultsEx(cq->ndk, raw, n);

    for (ULONG i = 0; i < count && i < n; i++)
        check(cq, &raw[i], TRUE, &results[i]);
    return count;
}

ULONG kit_cq_poll_plain(struct kit_cq *cq, struct kit_result *results, ULONG n)
{
    NDK_RESULT raw[BATCH];
    ULONG count;

    n = n < BATCH ? n : BATCH;
    count = cq->table->NdkGetCqResults(cq->ndk, raw, n);
    for (ULONG i = 0; i < count && i < n; i++) {
        NDK_RESULT_EX wide = {raw[i].Status,
                              raw[i].BytesTransferred,
                              raw[i].QPContext,
                              raw[i].RequestContext,
                              NdkOperationTypeReceive,
                              0,
                              0};

        check(cq, &wide, FALSE, &results[i]);
    }
    if (count > n)
        kit_breach(cq->object.k, "NDKPI 7.3", "%u results though %u were asked for",
                   (unsigned)count, (unsigned)n);
    return count < n ? count : n;
}

ULONG kit_cq_poll(struct kit_cq *cq, struct kit_result *results, ULONG n)
{
    NDK_VERSION version = cq->object.header->Version;
    ULONG count;

    if (version.Major == 1 && version.Minor < 2)
        return kit_cq_poll_plain(cq, results, n);
    n = n < BATCH ? n : BATCH;
    count = poll_extended(cq, results, n);
    if (count > n)
        kit_breach(cq->object.k, "NDKPI 7.5", "%u results though %u were asked for",
                   (unsigned)count, (unsigned)n);
    return count < n ? count : n;
}

VOID kit_cq_arm(struct kit_cq *cq, ULONG type)
{
    kit_os_add(&cq->arms, 1);
    kit_doing(cq->object.k, "NdkArmCq");
    cq->table->NdkArmCq(cq->ndk, type);
    kit_doing(cq->object.k, NULL);
}

BOOLEAN kit_cq_next(struct kit_cq *cq, struct kit_result *result)
{
    struct kit *k = cq->object.k;

    for (;;) {
        if (kit_cq_poll(cq, result, 1) == 1)
            return TRUE;
        if (kit_os_get(&cq->dead))
            return kit_fail(k, (struct kit_here){NULL, 0}, "cq #%u is dead: %s",
                            (unsigned)cq->object.number, kit_status_name(cq->status));
        kit_cq_arm(cq, NDK_CQ_NOTIFY_ANY);
        TRY_OR_FALSE(kit_wait(k, &cq->event, "a completion"));
    }
}

BOOLEAN kit_cq_poll_next(struct kit_cq *cq, struct kit_result *result)
{
    static const char what[] = "a completion, by polling";
    volatile LONG never = 0;

    while (kit_cq_poll(cq, result, 1) == 0) {
        if (kit_time_left(cq->object.k) == 0 || kit_os_get(&cq->object.k->in->aborted))
            return kit_wait_number(cq->object.k, &never, 1, what);
        kit_os_sleep_ms(1);
    }
    return TRUE;
}

BOOLEAN kit_expect(struct kit_request *r, NTSTATUS status, struct kit_result *result)
{
    struct kit_result own;
    struct kit_cq *cq;

    TRY_OR_FALSE(kit_ok(r));
    if (!result)
        result = &own;
    cq = r->receive ? r->qp->receive : r->qp->initiator;
    TRY_OR_FALSE(kit_cq_next(cq, result));
    if (result->request != r)
        return kit_fail(cq->object.k, (struct kit_here){NULL, 0},
                        "the next result is that of another request (%s with %s), need %s",
                        result->request ? request_name(result->request) : "unknown",
                        kit_status_name(result->status), request_name(r));
    if (result->status != status)
        return kit_fail(cq->object.k, (struct kit_here){NULL, 0}, "%s completed: have %s, need %s",
                        request_name(r), kit_status_name(result->status), kit_status_name(status));
    return TRUE;
}

BOOLEAN kit_cq_wait_notified(struct kit_cq *cq, LONG n)
{
    char what[64];

    kit_print_to(what, sizeof what, "notification %d of cq #%u", (int)n,
                 (unsigned)cq->object.number);
    return kit_wait_number(cq->object.k, &cq->returned, n, what);
}

BOOLEAN kit_cq_is_empty(struct kit_cq *cq)
{
    struct kit_result result;

    if (kit_cq_poll(cq, &result, 1) == 0)
        return TRUE;
    return kit_fail(cq->object.k, (struct kit_here){NULL, 0},
                    "cq #%u must be empty, but has a result of %s with %s",
                    (unsigned)cq->object.number,
                    result.request ? request_name(result.request) : "an unknown request",
                    kit_status_name(result.status));
}

BOOLEAN kit_cq_notified_is(struct kit_cq *cq, LONG need)
{
    kit_settle(cq->object.k);
    if (kit_os_get(&cq->notified) == need)
        return TRUE;
    return kit_fail(cq->object.k, (struct kit_here){NULL, 0},
                    "notifications of cq #%u: have %d, need %d", (unsigned)cq->object.number,
                    (int)kit_os_get(&cq->notified), (int)need);
}

struct kit_call *kit_resize_start(struct kit_cq *cq, ULONG depth)
{
    struct kit_call *call = kit_call_new(cq->object.k, &cq->object, "NdkResizeCq");

    if (call)
        kit_call_returned(call, cq->table->NdkResizeCq(cq->ndk, depth, kit_request_done, call));
    return call;
}

NTSTATUS kit_moderate(struct kit_cq *cq, ULONG interval_us, ULONG count)
{
    NTSTATUS status;

    kit_doing(cq->object.k, "NdkControlCqInterruptModeration");
    status = cq->table->NdkControlCqInterruptModeration(cq->ndk, interval_us, count);
    kit_answered("NdkControlCqInterruptModeration", status, KIT_INLINE);
    kit_doing(cq->object.k, NULL);
    if (status == STATUS_PENDING)
        kit_breach(cq->object.k, "NDKPI 7.4",
                   "NdkControlCqInterruptModeration returned STATUS_PENDING");
    return status;
}

struct kit_call *kit_modify_srq_start(struct kit_srq *srq, ULONG depth, ULONG threshold)
{
    struct kit_call *call = kit_call_new(srq->object.k, &srq->object, "NdkModifySrq");

    if (call)
        kit_call_returned(
            call, srq->table->NdkModifySrq(srq->ndk, depth, threshold, kit_request_done, call));
    return call;
}
