// SPDX-License-Identifier: MIT
/*
 * wdm.h - the kernel services that NDK consumers use, simulated in user mode.
 *
 * What stands here: interrupt request levels (one simulated level a thread), events, memory
 * descriptor lists, doubly linked lists, memory primitives. Structure layouts follow Windows where
 * consumers or the NDK interface can see them.
 * Implemented in src/nt. Included by ntddk.h and by ndkpi.h.
 */
#ifndef SOFTNDK_WDM_H
#define SOFTNDK_WDM_H

#include "ntdef.h"
#include "ntstatus.h"

SOFTNDK_BEGIN_C

/* ---- interrupt request levels ---- */

typedef UCHAR KIRQL, *PKIRQL;

#define PASSIVE_LEVEL  0
#define LOW_LEVEL      0
#define APC_LEVEL      1
#define DISPATCH_LEVEL 2
#if defined(__SIZEOF_POINTER__) && __SIZEOF_POINTER__ == 4
#define PROFILE_LEVEL 27
#define CLOCK_LEVEL   28
#define IPI_LEVEL     29
#define POWER_LEVEL   30
#define HIGH_LEVEL    31
#else
#define CMCI_LEVEL    5
#define CLOCK_LEVEL   13
#define IPI_LEVEL     14
#define DRS_LEVEL     14
#define POWER_LEVEL   14
#define PROFILE_LEVEL 15
#define HIGH_LEVEL    15
#endif

/* Returns the calling thread's simulated level. A thread starts at PASSIVE_LEVEL; provider
 * callbacks run at DISPATCH_LEVEL. */
KIRQL KeGetCurrentIrql(VOID);

/* Raises the level to NewIrql and returns the former one. Raising to a lower level is a finding
 * (the level is set all the same, as the caller evidently relies on it). */
KIRQL KfRaiseIrql(KIRQL NewIrql);

/* Raises to DISPATCH_LEVEL and returns the former level. */
KIRQL KeRaiseIrqlToDpcLevel(VOID);

/* Restores a level returned by a raise. Lowering to a higher level is a finding. */
VOID KeLowerIrql(KIRQL NewIrql);

#define KeRaiseIrql(NewIrql, OldIrql) (*(OldIrql) = KfRaiseIrql(NewIrql))
#define KfLowerIrql(NewIrql)          KeLowerIrql(NewIrql)

/* ---- waiting ---- */

typedef ULONG_PTR KSPIN_LOCK, *PKSPIN_LOCK;
typedef LONG KPRIORITY;
typedef CCHAR KPROCESSOR_MODE;

typedef enum _MODE { KernelMode, UserMode, MaximumMode } MODE;

typedef enum _KWAIT_REASON {
    Executive = 0,
    FreePage = 1,
    PageIn = 2,
    PoolAllocation = 3,
    DelayExecution = 4,
    Suspended = 5,
    UserRequest = 6
} KWAIT_REASON;

#define IO_NO_INCREMENT 0
#define EVENT_INCREMENT 1

/* Head of every object that can be waited for. */
typedef struct _DISPATCHER_HEADER {
    UCHAR Type;
    UCHAR Absolute;
    UCHAR Size;
    UCHAR Inserted;
    LONG SignalState;
    LIST_ENTRY WaitListHead;
} DISPATCHER_HEADER;

/* The kind of an event. A notification event releases all waiters and stays signalled until it is
 * cleared; a synchronization event releases one waiter and clears itself. */
typedef enum _EVENT_TYPE { NotificationEvent, SynchronizationEvent } EVENT_TYPE;

/* An event needs no destruction and may live on a stack: nothing keeps a pointer to it except a
 * thread that is waiting for it at that moment. */
typedef struct _KEVENT {
    DISPATCHER_HEADER Header;
} KEVENT, *PKEVENT, *PRKEVENT;

/* Initializes an event. Doing so while a thread waits for it is a finding. */
VOID KeInitializeEvent(PRKEVENT Event, EVENT_TYPE Type, BOOLEAN State);

/* Signals the event. Returns its former state, 0 when it was not signalled. The event's memory is
 * not touched after a waiter can return, so the waiter may free it at once. IRQL <= DISPATCH_LEVEL;
 * Wait = TRUE promises an immediate wait and is allowed up to APC_LEVEL only. */
LONG KeSetEvent(PRKEVENT Event, KPRIORITY Increment, BOOLEAN Wait);

/* Makes the event not signalled. */
VOID KeClearEvent(PRKEVENT Event);

/* As KeClearEvent, and returns the former state. */
LONG KeResetEvent(PRKEVENT Event);

/* Returns the state: non-zero when signalled. */
LONG KeReadStateEvent(PRKEVENT Event);

/*
 * Waits until Object (an event) is signalled.
 * Timeout: in units of 100 ns; NULL waits for ever, 0 only looks, a negative value is relative to
 * now, a positive one is an absolute system time counted from 1601-01-01 UTC.
 * Returns STATUS_SUCCESS or STATUS_TIMEOUT. WaitReason, WaitMode and Alertable have no effect.
 * IRQL: <= APC_LEVEL, with a zero timeout <= DISPATCH_LEVEL; more is a finding.
 */
NTSTATUS KeWaitForSingleObject(PVOID Object, KWAIT_REASON WaitReason, KPROCESSOR_MODE WaitMode,
                               BOOLEAN Alertable, PLARGE_INTEGER Timeout);

/* ---- pages ---- */

#define PAGE_SIZE            0x1000
#define PAGE_SHIFT           12L
#define BYTE_OFFSET(Va)      ((ULONG)((ULONG_PTR)(Va) & (PAGE_SIZE - 1)))
#define PAGE_ALIGN(Va)       ((PVOID)((ULONG_PTR)(Va) & ~(ULONG_PTR)(PAGE_SIZE - 1)))
#define ROUND_TO_PAGES(Size) (((ULONG_PTR)(Size) + PAGE_SIZE - 1) & ~(ULONG_PTR)(PAGE_SIZE - 1))
#define BYTES_TO_PAGES(Size) (((Size) >> PAGE_SHIFT) + (((Size) & (PAGE_SIZE - 1)) != 0))
#define ADDRESS_AND_SIZE_TO_SPAN_PAGES(Va, Size)                                                   \
    ((ULONG)((((ULONG_PTR)BYTE_OFFSET(Va)) + (ULONG_PTR)(Size) + (PAGE_SIZE - 1)) >> PAGE_SHIFT))

/* A page frame number. Here: the page's host address >> PAGE_SHIFT. */
typedef ULONG_PTR PFN_NUMBER, *PPFN_NUMBER;

/* ---- memory descriptor lists ---- */

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

typedef struct _IO_STATUS_BLOCK {
    union {
        NTSTATUS Status;
        PVOID Pointer;
    };
    ULONG_PTR Information;
} IO_STATUS_BLOCK, *PIO_STATUS_BLOCK;

/* The head of an I/O request packet: as much as IoAllocateMdl and request stubs need. */
typedef struct _IRP {
    CSHORT Type;
    USHORT Size;
    PMDL MdlAddress;
    ULONG Flags;
    union {
        struct _IRP *MasterIrp;
        LONG IrpCount;
        PVOID SystemBuffer;
    } AssociatedIrp;
    LIST_ENTRY ThreadListEntry;
    IO_STATUS_BLOCK IoStatus;
} IRP, *PIRP;

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
        PMDL nt_mdl_ = (MemoryDescriptorList);                                                     \
        nt_mdl_->Next = (PMDL)0;                                                                   \
        nt_mdl_->Size =                                                                            \
            (CSHORT)(sizeof(MDL) +                                                                 \
                     sizeof(PFN_NUMBER) * ADDRESS_AND_SIZE_TO_SPAN_PAGES((BaseVa), (Length)));     \
        nt_mdl_->MdlFlags = 0;                                                                     \
        nt_mdl_->StartVa = PAGE_ALIGN(BaseVa);                                                     \
        nt_mdl_->ByteOffset = BYTE_OFFSET(BaseVa);                                                 \
        nt_mdl_->ByteCount = (ULONG)(Length);                                                      \
    } while (0)

#define MmPrepareMdlForReuse(Mdl)                                                                  \
    ((void)((Mdl)->MdlFlags &= (CSHORT) ~(MDL_MAPPED_TO_SYSTEM_VA | MDL_PARTIAL_HAS_BEEN_MAPPED)))

/* The buffer's address in system space; NULL cannot happen here. Priority has no effect. */
FORCEINLINE PVOID MmGetSystemAddressForMdlSafe(PMDL Mdl, ULONG Priority)
{
    (void)Priority;
    if (Mdl->MdlFlags & (MDL_MAPPED_TO_SYSTEM_VA | MDL_SOURCE_IS_NONPAGED_POOL))
        return Mdl->MappedSystemVa;
    return MmMapLockedPages(Mdl, KernelMode);
}

/* ---- doubly linked lists ---- */

FORCEINLINE VOID InitializeListHead(PLIST_ENTRY ListHead)
{
    ListHead->Flink = ListHead->Blink = ListHead;
}

FORCEINLINE BOOLEAN IsListEmpty(const LIST_ENTRY *ListHead)
{
    return (BOOLEAN)(ListHead->Flink == ListHead);
}

/* Unlinks Entry; TRUE when its list is empty afterwards. */
FORCEINLINE BOOLEAN RemoveEntryList(PLIST_ENTRY Entry)
{
    PLIST_ENTRY next = Entry->Flink;
    PLIST_ENTRY prev = Entry->Blink;

    prev->Flink = next;
    next->Blink = prev;
    return (BOOLEAN)(next == prev);
}

FORCEINLINE VOID InsertHeadList(PLIST_ENTRY ListHead, PLIST_ENTRY Entry)
{
    PLIST_ENTRY next = ListHead->Flink;

    Entry->Flink = next;
    Entry->Blink = ListHead;
    next->Blink = Entry;
    ListHead->Flink = Entry;
}

FORCEINLINE VOID InsertTailList(PLIST_ENTRY ListHead, PLIST_ENTRY Entry)
{
    PLIST_ENTRY prev = ListHead->Blink;

    Entry->Flink = ListHead;
    Entry->Blink = prev;
    prev->Flink = Entry;
    ListHead->Blink = Entry;
}

/* Both return the head itself when the list is empty, as Windows does. */
FORCEINLINE PLIST_ENTRY RemoveHeadList(PLIST_ENTRY ListHead)
{
    PLIST_ENTRY entry = ListHead->Flink;

    (void)RemoveEntryList(entry);
    return entry;
}

FORCEINLINE PLIST_ENTRY RemoveTailList(PLIST_ENTRY ListHead)
{
    PLIST_ENTRY entry = ListHead->Blink;

    (void)RemoveEntryList(entry);
    return entry;
}

/* ---- memory ---- */

#define RtlZeroMemory(Destination, Length) ((void)__builtin_memset((Destination), 0, (Length)))
#define RtlFillMemory(Destination, Length, Fill)                                                   \
    ((void)__builtin_memset((Destination), (Fill), (Length)))
#define RtlCopyMemory(Destination, Source, Length)                                                 \
    ((void)__builtin_memcpy((Destination), (Source), (Length)))
#define RtlMoveMemory(Destination, Source, Length)                                                 \
    ((void)__builtin_memmove((Destination), (Source), (Length)))
#define RtlEqualMemory(Destination, Source, Length)                                                \
    (!__builtin_memcmp((Destination), (Source), (Length)))

#define RtlUshortByteSwap(x)    ((USHORT)__builtin_bswap16((USHORT)(x)))
#define RtlUlongByteSwap(x)     ((ULONG)__builtin_bswap32((ULONG)(x)))
#define RtlUlonglongByteSwap(x) ((ULONGLONG)__builtin_bswap64((ULONGLONG)(x)))

SOFTNDK_END_C

#endif /* SOFTNDK_WDM_H */
