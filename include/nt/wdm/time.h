// SPDX-License-Identifier: MIT
/*
 * wdm/time.h - clocks, sleeping, and processors. A part of wdm.h; include that.
 */
#ifndef SOFTNDK_WDM_TIME_H
#define SOFTNDK_WDM_TIME_H

#include "wait.h"

SOFTNDK_BEGIN_C

/* ---- time ---- */

/* Now, in units of 100 ns since 1601-01-01 UTC. Any IRQL. */
VOID KeQuerySystemTime(PLARGE_INTEGER CurrentTime);

/* A counter that never goes back; its ticks a second (10,000,000) if asked. Any IRQL. */
LARGE_INTEGER KeQueryPerformanceCounter(PLARGE_INTEGER PerformanceFrequency);

/* Sleeps; Interval as the timeout of KeWaitForSingleObject. IRQL <= APC_LEVEL. */
NTSTATUS KeDelayExecutionThread(KPROCESSOR_MODE WaitMode, BOOLEAN Alertable,
                                PLARGE_INTEGER Interval);

/* ---- processors ---- */

/*
 * The processors that this process may use, numbered from 0 in groups of 64. Each group is a node.
 * All at any IRQL.
 */
#define ALL_PROCESSOR_GROUPS 0xffff

/* How many processors a group has, or all groups. 0 when there is no such group. */
ULONG KeQueryActiveProcessorCountEx(USHORT GroupNumber);

/* The number of the processor this runs on, over all groups; by group and number as well if asked.
 */
ULONG KeGetCurrentProcessorNumberEx(PPROCESSOR_NUMBER ProcNumber);

/* Its node. */
USHORT KeGetCurrentNodeNumber(VOID);

/* The processors of a node and their number, each if asked; none when there is no such node. */
VOID KeQueryNodeActiveAffinity(USHORT NodeNumber, PGROUP_AFFINITY Affinity, PUSHORT Count);

SOFTNDK_END_C

#endif /* SOFTNDK_WDM_TIME_H */
