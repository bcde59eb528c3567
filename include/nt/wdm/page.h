// SPDX-License-Identifier: MIT
/*
 * wdm/page.h - the size of a page, and sums with it. A part of wdm.h; include that.
 */
#ifndef SOFTNDK_WDM_PAGE_H
#define SOFTNDK_WDM_PAGE_H

#include "../ntdef.h"

SOFTNDK_BEGIN_C

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

SOFTNDK_END_C

#endif /* SOFTNDK_WDM_PAGE_H */
