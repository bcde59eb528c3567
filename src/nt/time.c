// SPDX-License-Identifier: MIT
/*
 * Clocks and processors, straight from the system.
 */
#include "base/red.h"
#include "nt/nt.h"
#include "os/os_sync.h"

enum { GROUP = 64 }; /* processors a group */

VOID KeQuerySystemTime(PLARGE_INTEGER CurrentTime)
{
    CurrentTime->QuadPart = (LONGLONG)os_wall_100ns();
}

LARGE_INTEGER KeQueryPerformanceCounter(PLARGE_INTEGER PerformanceFrequency)
{
    LARGE_INTEGER now;

    if (PerformanceFrequency)
        PerformanceFrequency->QuadPart = 10000000;
    now.QuadPart = (LONGLONG)os_mono_100ns();
    return now;
}

/* Processors of a group; 0 when there is no such group. */
static unsigned group_size(unsigned group)
{
    unsigned all = os_cpu_count();

    if (group >= (all + GROUP - 1) / GROUP)
        return 0;
    return all - group * GROUP < GROUP ? all - group * GROUP : GROUP;
}

ULONG KeQueryActiveProcessorCountEx(USHORT GroupNumber)
{
    if (GroupNumber == ALL_PROCESSOR_GROUPS)
        return os_cpu_count();
    return group_size(GroupNumber);
}

ULONG KeGetCurrentProcessorNumberEx(PPROCESSOR_NUMBER ProcNumber)
{
    unsigned cpu = os_cpu_current();

    if (ProcNumber)
        *ProcNumber = (PROCESSOR_NUMBER){
            .Group = (USHORT)(cpu / GROUP),
            .Number = (UCHAR)(cpu % GROUP),
        };
    return cpu;
}

USHORT KeGetCurrentNodeNumber(VOID)
{
    return (USHORT)(os_cpu_current() / GROUP);
}

VOID KeQueryNodeActiveAffinity(USHORT NodeNumber, PGROUP_AFFINITY Affinity, PUSHORT Count)
{
    unsigned n = group_size(NodeNumber);
    KAFFINITY all = n == 8 * sizeof(KAFFINITY) ? ~(KAFFINITY)0 : ((KAFFINITY)1 << n) - 1;

    if (RED("nt-node-without-processors"))
        all = 0;
    if (Affinity)
        *Affinity = (GROUP_AFFINITY){.Mask = all, .Group = n ? NodeNumber : 0};
    if (Count)
        *Count = (USHORT)n;
}
