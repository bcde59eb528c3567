// SPDX-License-Identifier: MIT
/*
 * timer.h - timers and DPCs, for the other files of src/nt.
 */
#ifndef SOFTNDK_NT_KTIMER_H
#define SOFTNDK_NT_KTIMER_H

#include <stdbool.h>
#include <stddef.h>

#include <wdm.h>

/* Queues a DPC; false: it was queued already. */
bool nt_dpc_queue(PKDPC dpc, PVOID one, PVOID two);

/* Before memory goes: takes the timers in it that are set off the lists. Whether there were any. */
bool nt_timer_forget(const void *begin, size_t size);

#endif /* SOFTNDK_NT_KTIMER_H */
