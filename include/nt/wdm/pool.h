// SPDX-License-Identifier: MIT
/*
 * wdm/pool.h - memory with a tag, and lists of spare blocks. A part of wdm.h; include that.
 */
#ifndef SOFTNDK_WDM_POOL_H
#define SOFTNDK_WDM_POOL_H

#include "../ntdef.h"
#include "list.h"

SOFTNDK_BEGIN_C

/* ---- pool ---- */

/*
 * A block of PAGE_SIZE bytes or more begins at a page boundary; a smaller one at a multiple of 16
 * (8 on 32-bit targets) and lies within one page. Nothing is paged here, but paged pool may be
 * allocated and freed up to APC_LEVEL only, nonpaged pool up to DISPATCH_LEVEL.
 * What is written beyond a block, or into it after it was freed, freeing a block twice or with
 * another tag than its own, a tag of 0 and a length of 0 are findings. Blocks that nobody frees are
 * reported by tag and call stack.
 */
typedef enum _POOL_TYPE {
    NonPagedPool = 0,
    NonPagedPoolExecute = 0,
    PagedPool = 1,
    NonPagedPoolMustSucceed = 2,
    DontUseThisType = 3,
    NonPagedPoolCacheAligned = 4,
    PagedPoolCacheAligned = 5,
    NonPagedPoolCacheAlignedMustS = 6,
    MaxPoolType = 7,
    NonPagedPoolBase = 0,
    NonPagedPoolNx = 512,
    NonPagedPoolNxCacheAligned = 516
} POOL_TYPE;

/* May be or-ed to a POOL_TYPE. */
#define POOL_QUOTA_FAIL_INSTEAD_OF_RAISE 8
#define POOL_RAISE_IF_ALLOCATION_FAILURE 16
#define POOL_COLD_ALLOCATION             256
#define POOL_NX_ALLOCATION               512
#define POOL_ZERO_ALLOCATION             1024

typedef enum _EX_POOL_PRIORITY {
    LowPoolPriority = 0,
    LowPoolPrioritySpecialPoolOverrun = 8,
    LowPoolPrioritySpecialPoolUnderrun = 9,
    NormalPoolPriority = 16,
    NormalPoolPrioritySpecialPoolOverrun = 24,
    NormalPoolPrioritySpecialPoolUnderrun = 25,
    HighPoolPriority = 32,
    HighPoolPrioritySpecialPoolOverrun = 40,
    HighPoolPrioritySpecialPoolUnderrun = 41
} EX_POOL_PRIORITY;

/* Returns NULL without memory; the contents are not initialized. Tag: one to four characters. */
PVOID ExAllocatePoolWithTag(POOL_TYPE PoolType, SIZE_T NumberOfBytes, ULONG Tag);
PVOID ExAllocatePoolWithTagPriority(POOL_TYPE PoolType, SIZE_T NumberOfBytes, ULONG Tag,
                                    EX_POOL_PRIORITY Priority);

/* The low half are demands, an unknown one fails the call; the high half are wishes. Exactly one of
 * NON_PAGED, NON_PAGED_EXECUTE and PAGED is given. */
typedef ULONG64 POOL_FLAGS;
#define POOL_FLAG_REQUIRED_START    0x0000000000000001ULL
#define POOL_FLAG_USE_QUOTA         0x0000000000000001ULL
#define POOL_FLAG_UNINITIALIZED     0x0000000000000002ULL
#define POOL_FLAG_SESSION           0x0000000000000004ULL
#define POOL_FLAG_CACHE_ALIGNED     0x0000000000000008ULL
#define POOL_FLAG_RESERVED1         0x0000000000000010ULL
#define POOL_FLAG_RAISE_ON_FAILURE  0x0000000000000020ULL
#define POOL_FLAG_NON_PAGED         0x0000000000000040ULL
#define POOL_FLAG_NON_PAGED_EXECUTE 0x0000000000000080ULL
#define POOL_FLAG_PAGED             0x0000000000000100ULL
#define POOL_FLAG_RESERVED2         0x0000000000000200ULL
#define POOL_FLAG_RESERVED3         0x0000000000000400ULL
#define POOL_FLAG_REQUIRED_END      0x0000000080000000ULL
#define POOL_FLAG_OPTIONAL_START    0x0000000100000000ULL
#define POOL_FLAG_SPECIAL_POOL      0x0000000100000000ULL
#define POOL_FLAG_OPTIONAL_END      0x8000000000000000ULL

/* The contents are zero unless UNINITIALIZED is given. NULL without memory, with a tag or length of
 * 0, or with flags that do not fit. */
PVOID ExAllocatePool2(POOL_FLAGS Flags, SIZE_T NumberOfBytes, ULONG Tag);

/* The same for old systems: zeroed or not, with the types of ExAllocatePoolWithTag. */
#define ExAllocatePoolZero(PoolType, NumberOfBytes, Tag)                                           \
    ExAllocatePoolWithTag((POOL_TYPE)((PoolType) | POOL_ZERO_ALLOCATION), NumberOfBytes, Tag)
#define ExAllocatePoolUninitialized(PoolType, NumberOfBytes, Tag)                                  \
    ExAllocatePoolWithTag(PoolType, NumberOfBytes, Tag)

/* What DriverEntry says of its pool; nothing here is executable anyway. */
#define DrvRtPoolNxOptIn                 0x00000001
#define ExInitializeDriverRuntime(Flags) ((void)(Flags))

typedef enum POOL_EXTENDED_PARAMETER_TYPE {
    PoolExtendedParameterInvalidType = 0,
    PoolExtendedParameterPriority,
    PoolExtendedParameterSecurePool,
    PoolExtendedParameterNumaNode,
    PoolExtendedParameterMax
} POOL_EXTENDED_PARAMETER_TYPE,
    *PPOOL_EXTENDED_PARAMETER_TYPE;

typedef ULONG POOL_NODE_REQUIREMENT;
#define MM_ANY_NODE_OK 0x80000000

typedef struct _POOL_EXTENDED_PARAMS_SECURE_POOL {
    HANDLE SecurePoolHandle;
    PVOID Buffer;
    ULONG_PTR Cookie;
    ULONG SecurePoolFlags;
} POOL_EXTENDED_PARAMS_SECURE_POOL;

/* One more wish. Optional: one that is not understood is left aside; else it fails the call. */
typedef struct _POOL_EXTENDED_PARAMETER {
    __extension__ struct {
        ULONG64 Type : 8;
        ULONG64 Optional : 1;
        ULONG64 Reserved : 55;
    };
    union {
        ULONG64 Reserved2;
        PVOID Reserved3;
        EX_POOL_PRIORITY Priority;
        POOL_EXTENDED_PARAMS_SECURE_POOL *SecurePoolParams;
        POOL_NODE_REQUIREMENT PreferredNode;
    };
} POOL_EXTENDED_PARAMETER, *PPOOL_EXTENDED_PARAMETER;
typedef const POOL_EXTENDED_PARAMETER *PCPOOL_EXTENDED_PARAMETER;

/* As ExAllocatePool2. Priority and node change nothing here; there is no secure pool. */
PVOID ExAllocatePool3(POOL_FLAGS Flags, SIZE_T NumberOfBytes, ULONG Tag,
                      PCPOOL_EXTENDED_PARAMETER ExtendedParameters, ULONG ExtendedParametersCount);

VOID ExFreePool(PVOID P);
/* Tag 0 asks for no check. */
VOID ExFreePoolWithTag(PVOID P, ULONG Tag);
VOID ExFreePool2(PVOID P, ULONG Tag, PCPOOL_EXTENDED_PARAMETER ExtendedParameters,
                 ULONG ExtendedParametersCount);

SOFTNDK_END_C

#endif /* SOFTNDK_WDM_POOL_H */
