// SPDX-License-Identifier: MIT
/* See kit_work.h. */
#include "kit_work.h"

BOOLEAN kit_refused(struct kit *k, struct kit_request *r, const char *what)
{
    TRY_OR_FALSE(r != NULL);
    if (!NT_SUCCESS(r->posted))
        return TRUE;
    return kit_fail(k, KIT_HERE, "%s was posted, need a refusal", what);
}

BOOLEAN kit_expect_among(struct kit_request *r, const NTSTATUS *need, NTSTATUS *status)
{
    struct kit_result result;
    struct kit *k;

    TRY_OR_FALSE(kit_ok(r));
    k = r->qp->object.k;
    TRY_OR_FALSE(kit_cq_next(r->receive ? r->qp->receive : r->qp->initiator, &result));
    if (result.request != r)
        return kit_fail(k, KIT_HERE, "the next result is that of another request (%s)",
                        kit_status_name(result.status));
    TRY_OR_FALSE(kit_status_among(k, KIT_HERE, "the completion", result.status, need));
    if (status)
        *status = result.status;
    return TRUE;
}

BOOLEAN kit_expect_remote_error(struct kit_request *r, NTSTATUS exact)
{
    /* NDKPI 17; the first only where the peer is not waited for. */
    static const NTSTATUS errors[] = {STATUS_SUCCESS,
                                      STATUS_ACCESS_VIOLATION,
                                      STATUS_REMOTE_RESOURCES,
                                      STATUS_INTERNAL_ERROR,
                                      STATUS_INVALID_DEVICE_REQUEST,
                                      STATUS_IO_TIMEOUT,
                                      STATUS_BUFFER_OVERFLOW,
                                      STATUS_CANCELLED,
                                      STATUS_PENDING};

    TRY_OR_FALSE(kit_ok(r));
    if (exact != STATUS_PENDING && kit_exact(r->qp->object.k))
        return kit_expect(r, exact, NULL);
    return kit_expect_among(r, errors + (r->type == NdkOperationTypeRead), NULL);
}

BOOLEAN kit_expect_local_error(struct kit_request *r, BOOLEAN *refused)
{
    TRY_OR_FALSE(r != NULL);
    *refused = (BOOLEAN)!NT_SUCCESS(r->posted);
    return *refused || kit_expect(r, STATUS_ACCESS_VIOLATION, NULL);
}

BOOLEAN kit_ends(struct kit_end *end)
{
    return kit_wait(end->k, &end->connector->event, "the disconnect event");
}

struct kit_request *kit_send_all(struct kit_end *end, const struct kit_memory *memory, ULONG length,
                                 ULONG flags)
{
    NDK_SGE sge = kit_sge(memory, 0, length);

    return kit_send(end->qp, &sge, 1, flags);
}

struct kit_request *kit_receive_all(struct kit_end *end, const struct kit_memory *memory,
                                    ULONG length)
{
    NDK_SGE sge = kit_sge(memory, 0, length);

    return kit_receive(end->qp, &sge, 1);
}

#define STILL 24

BOOLEAN kit_still_works(struct kit_end *end)
{
    struct kit_memory *memory;

    TRY_OR_FALSE(kit_memory_new(end->pd, STILL, 0, &memory));
    kit_fill(memory->data, STILL, 4711);
    TRY_OR_FALSE(kit_order_receive(end->k, 1, STILL));
    TRY_OR_FALSE(kit_expect(kit_send_all(end, memory, STILL, 0), STATUS_SUCCESS, NULL));
    return kit_order_received(end->k, 1, STILL, 4711);
}

/* ---- parts of memory ------------------------------------------------------------------------ */

BOOLEAN kit_part_open(struct kit_pd *pd, struct kit_part *part)
{
    struct kit *k = pd->object.k;

    RtlZeroMemory(part, sizeof *part);
    TRY_OR_FALSE(kit_memory_bare(k, KIT_PART_AROUND, &part->around));
    part->data = part->around->data + KIT_PART_AT;
    TRY_OR_FALSE(kit_mdl_new(k, part->data, KIT_PART_SIZE, &part->mdl));
    return kit_mr_new(pd, FALSE, &part->mr);
}

BOOLEAN kit_part_register(struct kit_part *part, ULONG flags)
{
    TRY_OR_FALSE(kit_answer_is(kit_register_start(part->mr, part->mdl, KIT_PART_SIZE, flags),
                               STATUS_SUCCESS));
    part->local = part->mr->table->NdkGetLocalTokenFromMr(part->mr->ndk);
    part->remote = part->mr->table->NdkGetRemoteTokenFromMr(part->mr->ndk);
    return TRUE;
}

/* ---- fast-registers ------------------------------------------------------------------------- */

BOOLEAN kit_fast_open(struct kit_end *end, SIZE_T length, BOOLEAN remote, struct kit_fast *fast)
{
    RtlZeroMemory(fast, sizeof *fast);
    TRY_OR_FALSE(kit_memory_bare(end->k, length, &fast->memory));
    TRY_OR_FALSE(kit_lam_new(end->adapter, fast->memory->mdl, length, &fast->lam));
    TRY_OR_FALSE(kit_mr_new(end->pd, TRUE, &fast->mr));
    fast->base = fast->memory->data;
    fast->length = length;
    return kit_answer_is(kit_fast_start(fast->mr, fast->lam->ndk->AdapterPageCount, remote),
                         STATUS_SUCCESS);
}

struct kit_request *kit_fast_again(struct kit_qp *qp, struct kit_fast *fast, ULONG flags)
{
    struct kit_request *r =
        kit_fast_register(qp, fast->mr, fast->lam, fast->length, fast->base, flags);

    fast->local = fast->mr->table->NdkGetLocalTokenFromMr(fast->mr->ndk);
    fast->remote = fast->mr->table->NdkGetRemoteTokenFromMr(fast->mr->ndk);
    return r;
}

BOOLEAN kit_fast_done(struct kit_qp *qp, struct kit_fast *fast, ULONG flags)
{
    return kit_expect(kit_fast_again(qp, fast, flags), STATUS_SUCCESS, NULL);
}

NDK_SGE kit_fast_sge(const struct kit_fast *fast, SIZE_T offset, ULONG length)
{
    NDK_SGE sge;

    RtlZeroMemory(&sge, sizeof sge);
    sge.VirtualAddress = fast->base + offset;
    sge.Length = length;
    sge.MemoryRegionToken = fast->local;
    return sge;
}
