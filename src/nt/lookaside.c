// SPDX-License-Identifier: MIT
/*
 * Lookaside lists without spare blocks: see wdm/lookaside.h for why. The three kinds are one.
 *
 * How many blocks are out is TotalAllocates - TotalFrees. The counts are atomics; a list has no
 * lock.
 */
#include "base/red.h"
#include "nt/left.h"
#include "nt/nt.h"
#include "nt/pool.h"

static bool list_is(PGENERAL_LOOKASIDE l, const char *call, const void *caller)
{
    if (nt_left_find(NT_LEFT_LOOKASIDE, l, NULL, NULL))
        return true;
    nt_finding_from(caller, "%s: %p is no list, or deleted already", call, (void *)l);
    return false;
}

static void list_init(PGENERAL_LOOKASIDE l, POOL_TYPE type, SIZE_T size, ULONG tag,
                      const char *call, const void *caller)
{
    (void)nt_irql_at_most(DISPATCH_LEVEL, call, caller);
    if (nt_left_find(NT_LEFT_LOOKASIDE, l, NULL, NULL)) {
        nt_finding_from(caller, "%s: the list %p is initialized already", call, (void *)l);
        (void)nt_left_drop(NT_LEFT_LOOKASIDE, l);
    }
    *l = (GENERAL_LOOKASIDE){.Type = type, .Size = size, .Tag = tag};
    /* Without memory for the record the list works all the same, and is not reported. */
    (void)nt_left_add(NT_LEFT_LOOKASIDE, l, 0, tag, 0, caller);
}

static void list_delete(PGENERAL_LOOKASIDE l, const char *call, const void *caller)
{
    ULONG out;

    (void)nt_irql_at_most(DISPATCH_LEVEL, call, caller);
    if (!list_is(l, call, caller))
        return;
    out = __atomic_load_n(&l->TotalAllocates, __ATOMIC_RELAXED) -
          __atomic_load_n(&l->TotalFrees, __ATOMIC_RELAXED);
    if (out && !RED("nt-lookaside-blocks-forgotten"))
        nt_finding_from(caller, "%s: blocks of the list %p are still out (%u)", call, (void *)l,
                        out);
    (void)nt_left_drop(NT_LEFT_LOOKASIDE, l);
}

static bool has_routines(const GENERAL_LOOKASIDE *l)
{
    return l->Allocate || l->AllocateEx || l->Free || l->FreeEx;
}

static PVOID list_allocate(PGENERAL_LOOKASIDE l, const char *call, const void *caller)
{
    PVOID block;

    if (has_routines(l)) /* otherwise the pool looks at the IRQL */
        (void)nt_irql_at_most(l->Type & 1 ? APC_LEVEL : DISPATCH_LEVEL, call, caller);
    if (!list_is(l, call, caller))
        return NULL;
    if (l->AllocateEx)
        block = l->AllocateEx(l->Type, l->Size, l->Tag, CONTAINING_RECORD(l, LOOKASIDE_LIST_EX, L));
    else if (l->Allocate)
        block = l->Allocate(l->Type, l->Size, l->Tag);
    else
        block = nt_pool_allocate(l->Type, l->Size, l->Tag, call, caller);
    if (block)
        __atomic_fetch_add(&l->TotalAllocates, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&l->AllocateMisses, 1, __ATOMIC_RELAXED);
    return block;
}

static void list_free(PGENERAL_LOOKASIDE l, PVOID block, const char *call, const void *caller)
{
    size_t size;

    if (has_routines(l)) /* otherwise the pool looks at the IRQL */
        (void)nt_irql_at_most(l->Type & 1 ? APC_LEVEL : DISPATCH_LEVEL, call, caller);
    if (!list_is(l, call, caller))
        return;
    if (!has_routines(l) && (!nt_left_find(NT_LEFT_POOL, block, &size, NULL) || size != l->Size)) {
        nt_finding_from(caller, "%s: %p is no block of the list %p, or given back already", call,
                        block, (void *)l);
        return;
    }
    __atomic_fetch_add(&l->TotalFrees, 1, __ATOMIC_RELAXED);
    __atomic_fetch_add(&l->FreeMisses, 1, __ATOMIC_RELAXED);
    if (l->FreeEx)
        l->FreeEx(block, CONTAINING_RECORD(l, LOOKASIDE_LIST_EX, L));
    else if (l->Free)
        l->Free(block);
    else
        nt_pool_free(block, l->Tag, call, caller);
}

/* ---- nonpaged -------------------------------------------------------------------------------- */

static POOL_TYPE with_flags(POOL_TYPE type, ULONG flags)
{
    return (POOL_TYPE)((ULONG)type |
                       (flags & (POOL_RAISE_IF_ALLOCATION_FAILURE | POOL_NX_ALLOCATION)));
}

VOID ExInitializeNPagedLookasideList(PNPAGED_LOOKASIDE_LIST Lookaside, PALLOCATE_FUNCTION Allocate,
                                     PFREE_FUNCTION Free, ULONG Flags, SIZE_T Size, ULONG Tag,
                                     USHORT Depth)
{
    (void)Depth;
    list_init(&Lookaside->L, with_flags(NonPagedPool, Flags), Size, Tag,
              "ExInitializeNPagedLookasideList", NT_CALLER);
    Lookaside->L.Allocate = Allocate;
    Lookaside->L.Free = Free;
}

VOID ExDeleteNPagedLookasideList(PNPAGED_LOOKASIDE_LIST Lookaside)
{
    list_delete(&Lookaside->L, "ExDeleteNPagedLookasideList", NT_CALLER);
}

PVOID ExAllocateFromNPagedLookasideList(PNPAGED_LOOKASIDE_LIST Lookaside)
{
    return list_allocate(&Lookaside->L, "ExAllocateFromNPagedLookasideList", NT_CALLER);
}

VOID ExFreeToNPagedLookasideList(PNPAGED_LOOKASIDE_LIST Lookaside, PVOID Entry)
{
    list_free(&Lookaside->L, Entry, "ExFreeToNPagedLookasideList", NT_CALLER);
}

/* ---- paged ----------------------------------------------------------------------------------- */

VOID ExInitializePagedLookasideList(PPAGED_LOOKASIDE_LIST Lookaside, PALLOCATE_FUNCTION Allocate,
                                    PFREE_FUNCTION Free, ULONG Flags, SIZE_T Size, ULONG Tag,
                                    USHORT Depth)
{
    (void)Depth;
    (void)nt_irql_at_most(APC_LEVEL, "ExInitializePagedLookasideList", NT_CALLER);
    list_init(&Lookaside->L, with_flags(PagedPool, Flags), Size, Tag,
              "ExInitializePagedLookasideList", NT_CALLER);
    Lookaside->L.Allocate = Allocate;
    Lookaside->L.Free = Free;
}

VOID ExDeletePagedLookasideList(PPAGED_LOOKASIDE_LIST Lookaside)
{
    list_delete(&Lookaside->L, "ExDeletePagedLookasideList", NT_CALLER);
}

PVOID ExAllocateFromPagedLookasideList(PPAGED_LOOKASIDE_LIST Lookaside)
{
    return list_allocate(&Lookaside->L, "ExAllocateFromPagedLookasideList", NT_CALLER);
}

VOID ExFreeToPagedLookasideList(PPAGED_LOOKASIDE_LIST Lookaside, PVOID Entry)
{
    list_free(&Lookaside->L, Entry, "ExFreeToPagedLookasideList", NT_CALLER);
}

/* ---- of either kind -------------------------------------------------------------------------- */

NTSTATUS ExInitializeLookasideListEx(PLOOKASIDE_LIST_EX Lookaside, PALLOCATE_FUNCTION_EX Allocate,
                                     PFREE_FUNCTION_EX Free, POOL_TYPE PoolType, ULONG Flags,
                                     SIZE_T Size, ULONG Tag, USHORT Depth)
{
    ULONG known =
        EX_LOOKASIDE_LIST_EX_FLAGS_RAISE_ON_FAIL | EX_LOOKASIDE_LIST_EX_FLAGS_FAIL_NO_RAISE;
    ULONG raise =
        Flags & EX_LOOKASIDE_LIST_EX_FLAGS_RAISE_ON_FAIL ? POOL_RAISE_IF_ALLOCATION_FAILURE : 0u;

    (void)Depth;
    if (PoolType != NonPagedPool && PoolType != PagedPool && PoolType != NonPagedPoolNx)
        return STATUS_INVALID_PARAMETER_4;
    if ((Flags & ~known) || Flags == known)
        return STATUS_INVALID_PARAMETER_5;
    list_init(&Lookaside->L, with_flags(PoolType, raise), Size, Tag, "ExInitializeLookasideListEx",
              NT_CALLER);
    Lookaside->L.AllocateEx = Allocate;
    Lookaside->L.FreeEx = Free;
    return STATUS_SUCCESS;
}

VOID ExDeleteLookasideListEx(PLOOKASIDE_LIST_EX Lookaside)
{
    list_delete(&Lookaside->L, "ExDeleteLookasideListEx", NT_CALLER);
}

VOID ExFlushLookasideListEx(PLOOKASIDE_LIST_EX Lookaside)
{
    /* There is nothing spare to give back. */
    (void)nt_irql_at_most(DISPATCH_LEVEL, "ExFlushLookasideListEx", NT_CALLER);
    (void)list_is(&Lookaside->L, "ExFlushLookasideListEx", NT_CALLER);
}

PVOID ExAllocateFromLookasideListEx(PLOOKASIDE_LIST_EX Lookaside)
{
    return list_allocate(&Lookaside->L, "ExAllocateFromLookasideListEx", NT_CALLER);
}

VOID ExFreeToLookasideListEx(PLOOKASIDE_LIST_EX Lookaside, PVOID Entry)
{
    list_free(&Lookaside->L, Entry, "ExFreeToLookasideListEx", NT_CALLER);
}
