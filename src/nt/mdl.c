// SPDX-License-Identifier: MIT
/*
 * Memory descriptor lists: allocation, page arrays, chains, partial lists.
 *
 * "Physical" pages are the process's own: the number of a page is its host address >> PAGE_SHIFT.
 * The page array behind the structure, ByteOffset, ByteCount and Next are all a provider reads, so
 * they must be right whatever becomes of the addresses in the structure.
 * Locking pins nothing; it checks that the memory is there, once, and keeps the state that Windows
 * keeps, so that unbalanced calls are found. Called by consumers; no lock, an MDL has one owner.
 * MDLs that nobody frees are reported (left.h).
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif

#include "nt/nt.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/red.h"
#include "nt/left.h"

_Static_assert(sizeof(MDL) % sizeof(PFN_NUMBER) == 0, "the page array follows the structure");

/* Pages that [address, address + length) touches. */
static size_t span_pages(uintptr_t address, size_t length)
{
    size_t offset = address & (PAGE_SIZE - 1);

    if (RED("nt-mdl-offset-forgotten"))
        offset = 0;
    return (offset + length + PAGE_SIZE - 1) >> PAGE_SHIFT;
}

static uintptr_t mdl_address(const MDL *mdl)
{
    return (uintptr_t)mdl->StartVa + mdl->ByteOffset;
}

SIZE_T MmSizeOfMdl(PVOID Base, SIZE_T Length)
{
    return sizeof(MDL) + span_pages((uintptr_t)Base, Length) * sizeof(PFN_NUMBER);
}

PMDL IoAllocateMdl(PVOID VirtualAddress, ULONG Length, BOOLEAN SecondaryBuffer, BOOLEAN ChargeQuota,
                   PIRP Irp)
{
    size_t size = MmSizeOfMdl(VirtualAddress, Length);
    PMDL mdl = calloc(1, size);
    PMDL *link;

    (void)ChargeQuota;
    (void)nt_irql_at_most(DISPATCH_LEVEL, "IoAllocateMdl", NT_CALLER);
    if (!mdl || !nt_left_add(NT_LEFT_MDL, mdl, size, 0, 0, NT_CALLER)) {
        free(mdl);
        return NULL;
    }
    mdl->Size = (CSHORT)(size > MAXSHORT ? MAXSHORT : size);
    mdl->StartVa = PAGE_ALIGN(VirtualAddress);
    mdl->ByteOffset = BYTE_OFFSET(VirtualAddress);
    mdl->ByteCount = Length;
    if (Irp) {
        link = &Irp->MdlAddress;
        while (SecondaryBuffer && *link)
            link = &(*link)->Next;
        *link = mdl;
    }
    return mdl;
}

VOID IoFreeMdl(PMDL Mdl)
{
    (void)nt_irql_at_most(DISPATCH_LEVEL, "IoFreeMdl", NT_CALLER);
    if (!nt_left_drop(NT_LEFT_MDL, Mdl)) {
        nt_finding_from(NT_CALLER, "IoFreeMdl: %p is no MDL of IoAllocateMdl, or freed already",
                        (void *)Mdl);
        return;
    }
    if (Mdl->MdlFlags & MDL_PAGES_LOCKED)
        nt_finding_from(NT_CALLER, "IoFreeMdl: the pages of MDL %p are still locked", (void *)Mdl);
    free(Mdl);
}

static void fill_pages(PMDL mdl)
{
    size_t count = span_pages(mdl_address(mdl), mdl->ByteCount);
    PPFN_NUMBER pages = MmGetMdlPfnArray(mdl);

    for (size_t i = 0; i < count; i++)
        pages[i] = ((uintptr_t)mdl->StartVa >> PAGE_SHIFT) + i;
}

VOID MmBuildMdlForNonPagedPool(PMDL MemoryDescriptorList)
{
    PMDL mdl = MemoryDescriptorList;

    if (mdl->MdlFlags & MDL_PAGES_LOCKED)
        nt_finding_from(NT_CALLER, "MmBuildMdlForNonPagedPool: the pages of MDL %p are locked",
                        (void *)mdl);
    fill_pages(mdl);
    mdl->MdlFlags |= MDL_SOURCE_IS_NONPAGED_POOL;
    mdl->MappedSystemVa = MmGetMdlVirtualAddress(mdl);
}

/* Whether every page of [address, address + length) is mapped. mincore() fails for one that is not;
 * what it says about the others does not matter. */
static bool is_mapped(uintptr_t address, size_t length)
{
    enum { STEP = 128 }; /* host pages a call */
    unsigned char resident[STEP];
    size_t host_page = (size_t)sysconf(_SC_PAGESIZE);
    uintptr_t at = address & ~(uintptr_t)(host_page - 1);
    uintptr_t end = address + length;

    while (at < end) {
        size_t bytes = end - at;

        if (bytes > STEP * host_page)
            bytes = STEP * host_page;
        if (mincore((void *)at, bytes, resident) != 0)
            return false;
        at += bytes;
    }
    return true;
}

VOID MmProbeAndLockPages(PMDL MemoryDescriptorList, KPROCESSOR_MODE AccessMode,
                         LOCK_OPERATION Operation)
{
    PMDL mdl = MemoryDescriptorList;

    (void)AccessMode;
    if (mdl->MdlFlags & (MDL_PAGES_LOCKED | MDL_PARTIAL | MDL_SOURCE_IS_NONPAGED_POOL)) {
        nt_finding_from(NT_CALLER,
                        "MmProbeAndLockPages: MDL %p is locked or built already (flags 0x%x)",
                        (void *)mdl, (unsigned)mdl->MdlFlags);
        return;
    }
    if (!is_mapped(mdl_address(mdl), mdl->ByteCount)) {
        nt_finding_from(NT_CALLER,
                        "MmProbeAndLockPages: no memory at %p, %u bytes (STATUS_ACCESS_VIOLATION)",
                        MmGetMdlVirtualAddress(mdl), mdl->ByteCount);
        return;
    }
    fill_pages(mdl);
    mdl->MdlFlags |= MDL_PAGES_LOCKED;
    if (Operation != IoReadAccess)
        mdl->MdlFlags |= MDL_WRITE_OPERATION;
}

VOID MmUnlockPages(PMDL MemoryDescriptorList)
{
    PMDL mdl = MemoryDescriptorList;

    if (!(mdl->MdlFlags & MDL_PAGES_LOCKED)) {
        nt_finding_from(NT_CALLER, "MmUnlockPages: MDL %p is not locked", (void *)mdl);
        return;
    }
    mdl->MdlFlags &= (CSHORT) ~(MDL_PAGES_LOCKED | MDL_WRITE_OPERATION | MDL_MAPPED_TO_SYSTEM_VA);
    mdl->MappedSystemVa = NULL;
}

PVOID MmMapLockedPages(PMDL MemoryDescriptorList, KPROCESSOR_MODE AccessMode)
{
    PMDL mdl = MemoryDescriptorList;

    (void)AccessMode;
    if (!(mdl->MdlFlags & (MDL_PAGES_LOCKED | MDL_PARTIAL)))
        nt_finding_from(NT_CALLER, "MmMapLockedPages: the pages of MDL %p are not locked",
                        (void *)mdl);
    mdl->MdlFlags |= MDL_MAPPED_TO_SYSTEM_VA;
    mdl->MappedSystemVa = MmGetMdlVirtualAddress(mdl);
    return mdl->MappedSystemVa;
}

VOID MmUnmapLockedPages(PVOID BaseAddress, PMDL MemoryDescriptorList)
{
    PMDL mdl = MemoryDescriptorList;

    if (!(mdl->MdlFlags & MDL_MAPPED_TO_SYSTEM_VA) || mdl->MappedSystemVa != BaseAddress) {
        nt_finding_from(NT_CALLER, "MmUnmapLockedPages: MDL %p is not mapped at %p", (void *)mdl,
                        BaseAddress);
        return;
    }
    mdl->MdlFlags &= (CSHORT)~MDL_MAPPED_TO_SYSTEM_VA;
    mdl->MappedSystemVa = NULL;
}

VOID IoBuildPartialMdl(PMDL SourceMdl, PMDL TargetMdl, PVOID VirtualAddress, ULONG Length)
{
    uintptr_t address = (uintptr_t)VirtualAddress;
    size_t before = address - mdl_address(SourceMdl);
    size_t room = SourceMdl->ByteCount - before;
    size_t length = Length ? Length : room;
    size_t skip = (address >> PAGE_SHIFT) - ((uintptr_t)SourceMdl->StartVa >> PAGE_SHIFT);
    size_t count = span_pages(address, length);

    if (RED("nt-mdl-partial-from-start"))
        skip = 0;
    if (address < mdl_address(SourceMdl) || before >= SourceMdl->ByteCount || length > room) {
        nt_finding_from(NT_CALLER, "IoBuildPartialMdl: %p, %zu bytes, is not inside MDL %p",
                        VirtualAddress, length, (void *)SourceMdl);
        return;
    }
    /* Size says what the target has room for, up to its own limit. */
    if (TargetMdl->Size < MAXSHORT &&
        sizeof(MDL) + count * sizeof(PFN_NUMBER) > (size_t)TargetMdl->Size) {
        nt_finding_from(NT_CALLER, "IoBuildPartialMdl: %zu pages do not fit into MDL %p", count,
                        (void *)TargetMdl);
        return;
    }
    TargetMdl->StartVa = PAGE_ALIGN(VirtualAddress);
    TargetMdl->ByteOffset = BYTE_OFFSET(VirtualAddress);
    TargetMdl->ByteCount = (ULONG)length;
    TargetMdl->MdlFlags &= MDL_ALLOCATED_FIXED_SIZE;
    TargetMdl->MdlFlags |= MDL_PARTIAL;
    for (size_t i = 0; i < count; i++)
        MmGetMdlPfnArray(TargetMdl)[i] = MmGetMdlPfnArray(SourceMdl)[skip + i];
    if (SourceMdl->MdlFlags & (MDL_SOURCE_IS_NONPAGED_POOL | MDL_MAPPED_TO_SYSTEM_VA)) {
        TargetMdl->MdlFlags |= SourceMdl->MdlFlags & MDL_SOURCE_IS_NONPAGED_POOL;
        TargetMdl->MdlFlags |= MDL_MAPPED_TO_SYSTEM_VA;
        TargetMdl->MappedSystemVa = (PCHAR)SourceMdl->MappedSystemVa + before;
    } else {
        TargetMdl->MappedSystemVa = NULL;
    }
}
