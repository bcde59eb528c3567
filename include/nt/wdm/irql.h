// SPDX-License-Identifier: MIT
/*
 * wdm/irql.h - interrupt request levels, one simulated level a thread. A part of wdm.h; include
 * that.
 */
#ifndef SOFTNDK_WDM_IRQL_H
#define SOFTNDK_WDM_IRQL_H

#include "../ntdef.h"

SOFTNDK_BEGIN_C

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

/* Marks code that may be paged out: running it above APC_LEVEL is a finding. */
#define PAGED_CODE() softndk_paged_code(__FILE__, __LINE__)
VOID softndk_paged_code(const char *File, int Line);

SOFTNDK_END_C

#endif /* SOFTNDK_WDM_IRQL_H */
