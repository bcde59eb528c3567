// SPDX-License-Identifier: MIT
/* See regions.h. */
#include "regions.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define PAGE 4096u

/* ---- modes ---------------------------------------------------------------------------------- */

static int pend(const char *mode)
{
    if (!atomic_load(&test_has_failed))
        return softndk_set_pend(mode) != STATUS_SUCCESS;
    print_message("not run, since an earlier one has failed\n");
    return -1;
}

int pend_never(void **state)
{
    (void)state;
    return pend("never");
}

int pend_always(void **state)
{
    (void)state;
    return pend("always");
}

/* ---- what must have happened ---------------------------------------------------------------- */

static const char *name_of(NTSTATUS status)
{
    const char *name = softndk_status_name(status);

    return name ? name : "an unnamed status";
}

void expect_completion(struct queue *queue, const char *what, void *context,
                       NDK_OPERATION_TYPE type, NTSTATUS status)
{
    NDK_RESULT_EX result = queue_next(queue);

    if (result.Status != status)
        test_fail("%s: %s (0x%x), not %s", what, name_of(result.Status), (unsigned)result.Status,
                  name_of(status));
    if (result.RequestContext != context)
        test_fail("%s: the completion of request %p, not %p", what, result.RequestContext, context);
    if (result.Type != type && runs_at_least(&queue->cq->Header, 1, 2))
        test_fail("%s: type 0x%x, not 0x%x", what, (unsigned)result.Type, (unsigned)type);
}

void expect_nothing(struct queue *queue, const char *what, unsigned ms)
{
    NDK_RESULT_EX result;

    if (queue_try(queue, &result, ms))
        test_fail("%s: a completion of request %p with %s", what, result.RequestContext,
                  name_of(result.Status));
}

void expect_event(struct end *end, const char *what, enum reason_source source, iwarp_error error)
{
    char text[256];

    if (!wait_event(&end->disconnected, WAIT_S * 1000))
        test_fail("%s: no disconnect event within %d s", what, WAIT_S);
    softndk_reason_text(end->reason, text, sizeof text);
    if (reason_source(end->reason) != source || reason_wire_error(end->reason) != (error & 0xffffu))
        test_fail("%s: the event says 0x%x (%s), not source %u with error %04x", what, end->reason,
                  text, source, error & 0xffffu);
    assert_int_equal(atomic_load(&end->disconnects), 1);
    KeClearEvent(&end->disconnected);
}

void expect_call(NTSTATUS status, NTSTATUS wanted, const char *what,
                 const NDK_OBJECT_HEADER *object)
{
    char text[512] = "";

    if (status == wanted)
        return;
    softndk_reason(object, text, sizeof text);
    test_fail("%s: %s (0x%x), not %s: %s", what, name_of(status), (unsigned)status, name_of(wanted),
              text);
}

/* ---- adapter pages -------------------------------------------------------------------------- */

static NTSTATUS build(NDK_ADAPTER *adapter, MDL *mdl, SIZE_T length,
                      NDK_LOGICAL_ADDRESS_MAPPING *map, ULONG *size, ULONG *fbo)
{
    struct wait w;

    wait_init(&w);
    return wait_end(
        &w, adapter->Dispatch->NdkBuildLAM(adapter, mdl, length, wait_request, &w, map, size, fbo));
}

void lam_open(NDK_ADAPTER *adapter, MDL *mdl, SIZE_T length, struct lam *out)
{
    ULONG size = 0;

    out->adapter = adapter;
    out->length = length;
    expect_call(build(adapter, mdl, length, NULL, &size, &out->fbo), STATUS_BUFFER_TOO_SMALL,
                "NdkBuildLAM, size", &adapter->Header);
    out->map = malloc(size);
    assert_non_null(out->map);
    expect_call(build(adapter, mdl, length, out->map, &size, &out->fbo), STATUS_SUCCESS,
                "NdkBuildLAM", &adapter->Header);
}

void lam_close(struct lam *lam)
{
    lam->adapter->Dispatch->NdkReleaseLAM(lam->adapter, lam->map);
    free(lam->map);
}

UINT64 lam_page(const struct lam *lam, ULONG index)
{
    return (UINT64)lam->map->AdapterPageArray[index].QuadPart;
}

ULONG lam_sges(NDK_PD *pd, const struct lam *lam, NDK_SGE *sges, ULONG room)
{
    SIZE_T left = lam->length;
    ULONG at = lam->fbo, count = 0;
    UINT32 token;

    pd->Dispatch->NdkGetPrivilegedMemoryRegionToken(pd, &token);
    while (left && count < room) {
        ULONG n = left < PAGE - at ? (ULONG)left : PAGE - at;

        memset(&sges[count], 0, sizeof sges[count]);
        sges[count].LogicalAddress.QuadPart = (LONGLONG)(lam_page(lam, count) + at);
        sges[count].Length = n;
        sges[count].MemoryRegionToken = token;
        count++;
        left -= n;
        at = 0;
    }
    return count;
}

/* ---- fast-register regions ------------------------------------------------------------------ */

void region_open(struct end *end, size_t offset, size_t size, ULONG capacity, BOOLEAN remote,
                 struct region *out)
{
    struct wait w;
    NTSTATUS status;

    memset(out, 0, sizeof *out);
    out->end = end;
    out->size = size;
    out->room_size = (offset + size + 2 * PAGE - 1) / PAGE * PAGE;
    out->room = aligned_alloc(PAGE, out->room_size);
    assert_non_null(out->room);
    memset(out->room, GUARD, out->room_size);
    out->data = out->room + offset;
    out->mdl = IoAllocateMdl(out->data, (ULONG)size, FALSE, FALSE, NULL);
    MmBuildMdlForNonPagedPool(out->mdl);
    lam_open(end->adapter, out->mdl, size, &out->lam);
    assert_int_equal(out->lam.fbo, offset);
    wait_init(&w);
    status = end->pd->Dispatch->NdkCreateMr(end->pd, TRUE, wait_create, &w, &out->mr);
    expect_call(wait_end(&w, status), STATUS_SUCCESS, "NdkCreateMr", &end->pd->Header);
    if (status == STATUS_PENDING)
        out->mr = (NDK_MR *)(void *)w.object;
    wait_init(&w);
    status = out->mr->Dispatch->NdkInitializeFastRegisterMr(
        out->mr, capacity ? capacity : out->lam.map->AdapterPageCount, remote, wait_request, &w);
    expect_call(wait_end(&w, status), STATUS_SUCCESS, "NdkInitializeFastRegisterMr",
                &out->mr->Header);
    out->local = out->mr->Dispatch->NdkGetLocalTokenFromMr(out->mr);
}

void region_close(struct region *r)
{
    CLOSE(r->mr, NdkCloseMr);
    lam_close(&r->lam);
    IoFreeMdl(r->mdl);
    free(r->room);
}

NTSTATUS region_post(struct region *r, UINT64 base, ULONG flags, void *context)
{
    NDK_QP *qp = r->end->qp;
    NTSTATUS status = qp->Dispatch->NdkFastRegister(
        qp, context, r->mr, r->lam.map->AdapterPageCount, r->lam.map->AdapterPageArray, r->lam.fbo,
        r->size, (PVOID)(uintptr_t)base, flags);

    r->base = base;
    r->remote = r->mr->Dispatch->NdkGetRemoteTokenFromMr(r->mr);
    return status;
}

void region_register(struct region *r, UINT64 base, ULONG flags)
{
    expect_call(region_post(r, base, flags, r), STATUS_SUCCESS, "NdkFastRegister",
                &r->end->qp->Header);
    expect_completion(&r->end->initiator, "fast-register", r, NdkOperationTypeFastRegister,
                      STATUS_SUCCESS);
}

void region_invalidate(struct region *r)
{
    NDK_QP *qp = r->end->qp;

    expect_call(qp->Dispatch->NdkInvalidate(qp, r, &r->mr->Header, 0), STATUS_SUCCESS,
                "NdkInvalidate", &qp->Header);
    expect_completion(&r->end->initiator, "invalidate", r, NdkOperationTypeInvalidate,
                      STATUS_SUCCESS);
}

bool region_guarded(const struct region *r)
{
    for (size_t i = 0; i < r->room_size; i++)
        if ((r->room + i < r->data || r->room + i >= r->data + r->size) && r->room[i] != GUARD)
            return false;
    return true;
}

NDK_SGE region_sge(const struct region *r, size_t offset, ULONG length)
{
    NDK_SGE sge;

    memset(&sge, 0, sizeof sge);
    sge.VirtualAddress = (PVOID)(uintptr_t)(r->base + offset);
    sge.Length = length;
    sge.MemoryRegionToken = r->local;
    return sge;
}

/* ---- requests ------------------------------------------------------------------------------- */

NTSTATUS post_write(struct end *end, const struct memory *from, ULONG length, UINT64 to,
                    UINT32 token, ULONG flags, void *context)
{
    NDK_SGE sge = memory_sge(from, 0, length);

    return end->qp->Dispatch->NdkWrite(end->qp, context, &sge, 1, to, token, flags);
}

NTSTATUS post_read(struct end *end, const struct memory *into, ULONG length, UINT64 from,
                   UINT32 token, ULONG flags, void *context)
{
    NDK_SGE sge = memory_sge(into, 0, length);

    return end->qp->Dispatch->NdkRead(end->qp, context, &sge, 1, from, token, flags);
}

NTSTATUS post_send(struct end *end, const struct memory *from, ULONG length, ULONG flags,
                   void *context)
{
    NDK_SGE sge = memory_sge(from, 0, length);

    return end->qp->Dispatch->NdkSend(end->qp, context, &sge, 1, flags);
}

void post_receive(struct end *end, const struct memory *into, ULONG length, void *context)
{
    NDK_SGE sge = memory_sge(into, 0, length);

    expect_call(end->qp->Dispatch->NdkReceive(end->qp, context, &sge, 1), STATUS_SUCCESS,
                "NdkReceive", &end->qp->Header);
}

void synchronize(struct end *from, struct end *to)
{
    expect_call(to->qp->Dispatch->NdkReceive(to->qp, to, NULL, 0), STATUS_SUCCESS, "NdkReceive",
                &to->qp->Header);
    expect_call(from->qp->Dispatch->NdkSend(from->qp, from, NULL, 0, 0), STATUS_SUCCESS, "NdkSend",
                &from->qp->Header);
    expect_completion(&to->receive, "synchronize", to, NdkOperationTypeReceive, STATUS_SUCCESS);
    expect_completion(&from->initiator, "synchronize", from, NdkOperationTypeSend, STATUS_SUCCESS);
}

void bed_open(struct bed *bed, const char *options, size_t size, ULONG flags)
{
    bed_open_two(bed, options, options, size, flags);
}

void bed_open_two(struct bed *bed, const char *client_options, const char *server_options,
                  size_t size, ULONG flags)
{
    memset(bed, 0, sizeof *bed);
    pair_open(&bed->pair, "127.0.0.1", client_options, server_options);
    make_memory(bed->pair.client.pd, size, flags, &bed->client);
    make_memory(bed->pair.server.pd, size, flags, &bed->server);
}

void bed_close(struct bed *bed)
{
    free_memory(&bed->client);
    free_memory(&bed->server);
    pair_close(&bed->pair);
}
