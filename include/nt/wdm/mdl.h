// SPDX-License-Identifier: MIT
/*
 * wdm/mdl.h - memory descriptor lists. A part of wdm.h; include that.
 */
#ifndef SOFTNDK_WDM_MDL_H
#define SOFTNDK_WDM_MDL_H

#include "../ntdef.h"
#include "page.h"
#include "wait.h"

SOFTNDK_BEGIN_C

/*
 * Describes one virtually contiguous buffer: the page-aligned address StartVa, the offset of the
 * first byte in the first page, and the length, both in bytes. The structure is followed by an
 * array with one PFN_NUMBER a page. Buffers chain by Next.
 * An NDK provider reads the page numbers, ByteOffset, ByteCount and Next, and takes
 * StartVa + ByteOffset as an index only, without dereferencing it.
 */
typedef struct _MDL {
    struct _MDL *Next;
    CSHORT Size;
    CSHORT MdlFlags;
#if defined(__SIZEOF_POINTER__) && __SIZEOF_POINTER__ == 8
    USHORT AllocationProcessorNumber;
    USHORT Reserved;
#endif
    struct _EPROCESS *Process;
    PVOID MappedSystemVa;
    PVOID StartVa;
    ULONG ByteCount;
    ULONG ByteOffset;
} MDL, *PMDL, *PMDLX;

#define MDL_MAPPED_TO_SYSTEM_VA     0x0001
#define MDL_PAGES_LOCKED            0x0002
#define MDL_SOURCE_IS_NONPAGED_POOL 0x0004
#define MDL_ALLOCATED_FIXED_SIZE    0x0008
#define MDL_PARTIAL                 0x0010
#define MDL_PARTIAL_HAS_BEEN_MAPPED 0x0020
#define MDL_IO_PAGE_READ            0x0040
#define MDL_WRITE_OPERATION         0x0080
#define MDL_LOCKED_PAGE_TABLES      0x0100
#define MDL_FREE_EXTRA_PTES         0x0200
#define MDL_DESCRIBES_AWE           0x0400
#define MDL_IO_SPACE                0x0800
#define MDL_NETWORK_HEADER          0x1000
#define MDL_MAPPING_CAN_FAIL        0x2000
#define MDL_PAGE_CONTENTS_INVARIANT 0x4000

typedef enum _LOCK_OPERATION { IoReadAccess, IoWriteAccess, IoModifyAccess } LOCK_OPERATION;
typedef enum _MM_PAGE_PRIORITY {
    LowPagePriority = 0,
    NormalPagePriority = 16,
    HighPagePriority = 32
} MM_PAGE_PRIORITY;
#define MdlMappingNoWrite   0x80000000
#define MdlMappingNoExecute 0x40000000

typedef struct _IRP IRP, *PIRP;

/*
 * Allocates an MDL with room for the pages of [VirtualAddress, VirtualAddress + Length), Length in
 * bytes and below 4 GiB. The page array is not filled: call MmBuildMdlForNonPagedPool or
 * MmProbeAndLockPages. With an Irp the MDL becomes Irp->MdlAddress, or with SecondaryBuffer the
 * last of its chain. Returns NULL without memory. IRQL <= DISPATCH_LEVEL.
 */
PMDL IoAllocateMdl(PVOID VirtualAddress, ULONG Length, BOOLEAN SecondaryBuffer, BOOLEAN ChargeQuota,
                   PIRP Irp);

/* Frees one MDL (not its chain). Freeing one with locked pages is a finding. */
VOID IoFreeMdl(PMDL Mdl);

/* Fills TargetMdl (allocated for at least as many pages) with the pages of
 * [VirtualAddress, VirtualAddress + Length) of SourceMdl; Length 0 means to the end of the source.
 */
VOID IoBuildPartialMdl(PMDL SourceMdl, PMDL TargetMdl, PVOID VirtualAddress, ULONG Length);

/* Fills the page array of one MDL whose buffer is resident memory. */
VOID MmBuildMdlForNonPagedPool(PMDL MemoryDescriptorList);

/* Checks that the buffer of one MDL is mapped, fills its page array and marks it locked. Where
 * Windows would raise an exception it is a finding and the MDL stays unlocked. */
VOID MmProbeAndLockPages(PMDL MemoryDescriptorList, KPROCESSOR_MODE AccessMode,
                         LOCK_OPERATION Operation);

/* Undoes MmProbeAndLockPages. On an MDL that is not locked it is a finding. */
VOID MmUnlockPages(PMDL MemoryDescriptorList);

/* Bytes an MDL for [Base, Base + Length) takes, its page array included. */
SIZE_T MmSizeOfMdl(PVOID Base, SIZE_T Length);

/* Returns an address at which the buffer can be accessed; here the buffer's own. */
PVOID MmMapLockedPages(PMDL MemoryDescriptorList, KPROCESSOR_MODE AccessMode);
VOID MmUnmapLockedPages(PVOID BaseAddress, PMDL MemoryDescriptorList);

#define MmGetMdlPfnArray(Mdl)       ((PPFN_NUMBER)((PMDL)(Mdl) + 1))
#define MmGetMdlByteCount(Mdl)      ((Mdl)->ByteCount)
#define MmGetMdlByteOffset(Mdl)     ((Mdl)->ByteOffset)
#define MmGetMdlBaseVa(Mdl)         ((Mdl)->StartVa)
#define MmGetMdlVirtualAddress(Mdl) ((PVOID)((PCHAR)((Mdl)->StartVa) + (Mdl)->ByteOffset))

#define MmInitializeMdl(MemoryDescriptorList, BaseVa, Length)                                      \
    do {                                                                                           \
        PMDL softndk_mdl_ = (MemoryDescriptorList);                                                \
        softndk_mdl_->Next = (PMDL)0;                                                              \
        softndk_mdl_->Size =                                                                       \
            (CSHORT)(sizeof(MDL) +                                                                 \
                     sizeof(PFN_NUMBER) * ADDRESS_AND_SIZE_TO_SPAN_PAGES((BaseVa), (Length)));     \
        softndk_mdl_->MdlFlags = 0;                                                                \
        softndk_mdl_->StartVa = PAGE_ALIGN(BaseVa);                                                \
        softndk_mdl_->ByteOffset = BYTE_OFFSET(BaseVa);                                            \
        softndk_mdl_->ByteCount = (ULONG)(Length);                                                 \
    } while (0)

#define MmPrepareMdlForReuse(Mdl)                                                                  \
    ((void)((Mdl)->MdlFlags &= (CSHORT) ~(MDL_MAPPED_TO_SYSTEM_VA | MDL_PARTIAL_HAS_BEEN_MAPPED)))

/* The buffer's address in system space; NULL cannot happen here. Priority has no effect. */
SOFTNDK_INLINE PVOID MmGetSystemAddressForMdlSafe(PMDL Mdl, ULONG Priority)
{
    (void)Priority;
    if (Mdl->MdlFlags & (MDL_MAPPED_TO_SYSTEM_VA | MDL_SOURCE_IS_NONPAGED_POOL))
        return Mdl->MappedSystemVa;
    return MmMapLockedPages(Mdl, KernelMode);
}

SOFTNDK_END_C

#endif /* SOFTNDK_WDM_MDL_H */
