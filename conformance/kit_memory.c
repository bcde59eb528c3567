// SPDX-License-Identifier: MIT
/* Memory, its descriptors, registrations and mappings; patterns. */
#include "kit_internal.h"

BOOLEAN kit_memory_bare(struct kit *k, SIZE_T size, struct kit_memory **out)
{
    struct kit_memory *memory = kit_alloc(k, sizeof *memory);

    TRY_OR_FALSE(memory != NULL);
    memory->size = size;
    memory->data = kit_os_pages(size);
    memory->mdl =
        memory->data ? IoAllocateMdl(memory->data, (ULONG)size, FALSE, FALSE, NULL) : NULL;
    kit_os_lock(&k->in->lock);
    memory->next = k->in->memories;
    k->in->memories = memory;
    kit_os_unlock(&k->in->lock);
    if (!memory->mdl)
        return kit_fail(k, (struct kit_here){NULL, 0}, "the kit has no memory (%llu bytes)",
                        (unsigned long long)size);
    MmBuildMdlForNonPagedPool(memory->mdl);
    *out = memory;
    return TRUE;
}

BOOLEAN kit_mdl_new(struct kit *k, PUCHAR data, ULONG length, PMDL *out)
{
    struct kit_memory *memory = kit_alloc(k, sizeof *memory);

    TRY_OR_FALSE(memory != NULL);
    memory->mdl = IoAllocateMdl(data, length, FALSE, FALSE, NULL);
    if (!memory->mdl)
        return kit_fail(k, (struct kit_here){NULL, 0}, "the kit has no descriptor");
    kit_os_lock(&k->in->lock);
    memory->next = k->in->memories;
    k->in->memories = memory;
    kit_os_unlock(&k->in->lock);
    MmBuildMdlForNonPagedPool(memory->mdl);
    *out = memory->mdl;
    return TRUE;
}

static VOID registered(struct kit_call *call, PVOID context)
{
    struct kit_mr *mr = context;

    if (call->status == STATUS_SUCCESS)
        mr->registered = TRUE;
}

static VOID deregistered(struct kit_call *call, PVOID context)
{
    struct kit_mr *mr = context;

    if (call->status == STATUS_SUCCESS)
        mr->registered = FALSE;
}

struct kit_call *kit_register_start(struct kit_mr *mr, PMDL mdl, SIZE_T length, ULONG flags)
{
    struct kit_call *call = kit_call_new(mr->object.k, &mr->object, "NdkRegisterMr");

    if (!call)
        return NULL;
    call->record = registered;
    call->record_context = mr;
    kit_call_returned(
        call, mr->table->NdkRegisterMr(mr->ndk, mdl, length, flags, kit_request_done, call));
    return call;
}

struct kit_call *kit_deregister_start(struct kit_mr *mr)
{
    struct kit_call *call = kit_call_new(mr->object.k, &mr->object, "NdkDeregisterMr");

    if (!call)
        return NULL;
    call->record = deregistered;
    call->record_context = mr;
    kit_call_returned(call, mr->table->NdkDeregisterMr(mr->ndk, kit_request_done, call));
    return call;
}

struct kit_call *kit_fast_start(struct kit_mr *mr, ULONG pages, BOOLEAN remote)
{
    struct kit_call *call = kit_call_new(mr->object.k, &mr->object, "NdkInitializeFastRegisterMr");

    if (call)
        kit_call_returned(call, mr->table->NdkInitializeFastRegisterMr(mr->ndk, pages, remote,
                                                                       kit_request_done, call));
    return call;
}

BOOLEAN kit_memory_new(struct kit_pd *pd, SIZE_T size, ULONG flags, struct kit_memory **out)
{
    struct kit_memory *memory;

    TRY_OR_FALSE(kit_memory_bare(pd->object.k, size, &memory));
    TRY_OR_FALSE(kit_mr_new(pd, FALSE, &memory->mr));
    TRY_OR_FALSE(
        kit_answer_is(kit_register_start(memory->mr, memory->mdl, size, flags), STATUS_SUCCESS));
    memory->local = memory->mr->table->NdkGetLocalTokenFromMr(memory->mr->ndk);
    memory->remote = memory->mr->table->NdkGetRemoteTokenFromMr(memory->mr->ndk);
    *out = memory;
    return TRUE;
}

NDK_SGE kit_sge(const struct kit_memory *memory, SIZE_T offset, ULONG length)
{
    NDK_SGE sge;

    RtlZeroMemory(&sge, sizeof sge);
    sge.VirtualAddress = memory->data + offset;
    sge.Length = length;
    sge.MemoryRegionToken = memory->local;
    return sge;
}

/* ---- mappings ------------------------------------------------------------------------------- */

BOOLEAN kit_lam_new(struct kit_adapter *adapter, PMDL mdl, SIZE_T length, struct kit_lam **out)
{
    struct kit *k = adapter->object.k;
    struct kit_lam *lam = kit_alloc(k, sizeof *lam);
    struct kit_call *call = kit_call_new(k, &adapter->object, "NdkBuildLAM");

    TRY_OR_FALSE(lam && call);
    lam->adapter = adapter;
    lam->size = (ULONG)(FIELD_OFFSET(NDK_LOGICAL_ADDRESS_MAPPING, AdapterPageArray) +
                        (length / PAGE_SIZE + 2) * sizeof(NDK_LOGICAL_ADDRESS));
    lam->ndk = kit_alloc(k, lam->size);
    TRY_OR_FALSE(lam->ndk != NULL);
    kit_call_returned(call, adapter->table->NdkBuildLAM(adapter->ndk, mdl, length, kit_request_done,
                                                        call, lam->ndk, &lam->size, &lam->fbo));
    if (!kit_answer_is(call, STATUS_SUCCESS)) {
        lam->ndk = NULL;
        return FALSE;
    }
    kit_os_lock(&k->in->lock);
    lam->next = k->in->lams;
    k->in->lams = lam;
    kit_os_unlock(&k->in->lock);
    *out = lam;
    return TRUE;
}

VOID kit_lam_release(struct kit_lam *lam)
{
    if (lam->ndk)
        lam->adapter->table->NdkReleaseLAM(lam->adapter->ndk, lam->ndk);
    lam->ndk = NULL;
}

/* ---- patterns ------------------------------------------------------------------------------- */

static UCHAR next_byte(ULONG *x)
{
    *x = *x * 1664525u + 1013904223u;
    return (UCHAR)(*x >> 24);
}

VOID kit_fill(UCHAR *data, SIZE_T length, ULONG seed)
{
    ULONG x = seed * 2654435761u + 12345u;

    for (SIZE_T i = 0; i < length; i++)
        data[i] = next_byte(&x);
}

BOOLEAN kit_filled(struct kit *k, const char *what, const UCHAR *data, SIZE_T length, ULONG seed)
{
    ULONG x = seed * 2654435761u + 12345u;

    for (SIZE_T i = 0; i < length; i++) {
        UCHAR need = next_byte(&x);

        if (data[i] != need)
            return kit_fail(k, (struct kit_here){NULL, 0},
                            "%s: byte %llu of %llu: have 0x%02x, need 0x%02x", what,
                            (unsigned long long)i, (unsigned long long)length, data[i], need);
    }
    return TRUE;
}
