// SPDX-License-Identifier: MIT
/*
 * The simulated interrupt request level, one for each thread, and what else is known of a thread.
 *
 * The level masks nothing; it records what the code claims to be, so that calls which would be
 * illegal in a driver are found. Threads start at PASSIVE_LEVEL. Called by consumers, and by the
 * engine around callbacks (nt_irql_set).
 */
#include "nt/nt.h"

#include "base/red.h"
#include "os/os_trace.h"

enum { AGAIN_MAX = 8 };

static _Thread_local KIRQL current_irql = PASSIVE_LEVEL;
static _Thread_local int spin_locks;       /* held now */
static _Thread_local int critical_regions; /* entered and not left */
/* Locks that this thread took although it had them; NULL where free. */
static _Thread_local const void *again[AGAIN_MAX];

KIRQL KeGetCurrentIrql(VOID)
{
    return current_irql;
}

KIRQL KfRaiseIrql(KIRQL NewIrql)
{
    KIRQL old = current_irql;

    if (NewIrql < old)
        nt_finding_from(NT_CALLER,
                        "KeRaiseIrql: the new level is below the current one (have %u, current %u)",
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
        nt_finding_from(NT_CALLER,
                        "KeLowerIrql: the new level is above the current one (have %u, current %u)",
                        NewIrql, current_irql);
    if (NewIrql < DISPATCH_LEVEL && spin_locks > 0)
        nt_finding_from(NT_CALLER, "KeLowerIrql: a spin lock is held (have %u, need >= %u)",
                        NewIrql, DISPATCH_LEVEL);
    current_irql = NewIrql;
}

void nt_irql_set(KIRQL irql)
{
    current_irql = irql;
}

bool nt_irql_at_most(KIRQL max, const char *call, const void *caller)
{
    if (current_irql <= max || RED("nt-irql-unchecked"))
        return true;
    nt_finding_from(caller, "%s: IRQL too high (have %u, need <= %u)", call, current_irql, max);
    return false;
}

VOID softndk_paged_code(const char *File, int Line)
{
    if (current_irql > APC_LEVEL && !RED("nt-paged-code-silent"))
        nt_finding("PAGED_CODE: IRQL too high (have %u, need <= %u), %s:%d", current_irql,
                   APC_LEVEL, File, Line);
}

void nt_holds_spin_lock(int change)
{
    if (spin_locks + change >= 0)
        spin_locks += change;
}

int nt_spin_locks_held(void)
{
    return spin_locks;
}

bool nt_again_add(const void *lock)
{
    for (unsigned i = 0; i < AGAIN_MAX; i++) {
        if (!again[i]) {
            again[i] = lock;
            return true;
        }
    }
    return false;
}

bool nt_again_drop(const void *lock)
{
    for (unsigned i = 0; i < AGAIN_MAX; i++) {
        if (again[i] == lock) {
            again[i] = NULL;
            return true;
        }
    }
    return false;
}

bool nt_critical_region(int change)
{
    if (critical_regions + change < 0)
        return false;
    critical_regions += change;
    return true;
}

bool nt_in_critical_region(void)
{
    return critical_regions > 0 || current_irql >= APC_LEVEL;
}

void nt_routine_returned(const char *what, const void *routine, KIRQL level)
{
    char symbol[OS_SYMBOL_MAX];

    if (current_irql == level && spin_locks == 0 && critical_regions == 0)
        return;
    nt_finding("%s %s: returned with something held (IRQL %u, need %u; %d spin lock%s; %d critical "
               "region%s)",
               what, os_symbol((const char *)routine + 1, symbol), current_irql, level, spin_locks,
               spin_locks == 1 ? "" : "s", critical_regions, critical_regions == 1 ? "" : "s");
    current_irql = level;
    spin_locks = 0;
    critical_regions = 0;
}
