// SPDX-License-Identifier: MIT
/*
 * The simulated interrupt request level, one for each thread.
 *
 * It masks nothing; it records what the code claims to be, so that calls which would be illegal in
 * a driver are found. Threads start at PASSIVE_LEVEL. Called by consumers, and by the engine around
 * callbacks (nt_irql_set).
 */
#include "nt/nt.h"

#include "base/red.h"

static _Thread_local KIRQL current_irql = PASSIVE_LEVEL;

KIRQL KeGetCurrentIrql(VOID)
{
    return current_irql;
}

KIRQL KfRaiseIrql(KIRQL NewIrql)
{
    KIRQL old = current_irql;

    if (NewIrql < old)
        nt_finding("KeRaiseIrql: the new level is below the current one (have %u, current %u)",
                   NewIrql, old);
    current_irql = NewIrql;
    if (RED("nt-irql-old-level-lost"))
        return NewIrql;
    return old;
}

KIRQL KeRaiseIrqlToDpcLevel(VOID)
{
    return KfRaiseIrql(DISPATCH_LEVEL);
}

VOID KeLowerIrql(KIRQL NewIrql)
{
    if (NewIrql > current_irql)
        nt_finding("KeLowerIrql: the new level is above the current one (have %u, current %u)",
                   NewIrql, current_irql);
    current_irql = NewIrql;
}

void nt_irql_set(KIRQL irql)
{
    current_irql = irql;
}
