// SPDX-License-Identifier: MIT
/*
 * wdm.h - the kernel services that NDK consumers use, simulated in user mode.
 *
 * Structure layouts follow Windows where consumers or the NDK interface can see them. What is
 * misuse on Windows is a finding here: one line, counted, and the call goes on as well as it can.
 * docs/nt-surface.md lists the services, the findings and what differs from Windows.
 * Implemented in src/nt. Included by ntddk.h and by ndkpi.h.
 */
#ifndef SOFTNDK_WDM_H
#define SOFTNDK_WDM_H

#include "ntdef.h"
#include "ntstatus.h"

#include "wdm/irql.h"
#include "wdm/wait.h"
#include "wdm/lock.h"
#include "wdm/mutex.h"
#include "wdm/interlocked.h"
#include "wdm/list.h"
#include "wdm/page.h"
#include "wdm/pool.h"
#include "wdm/lookaside.h"
#include "wdm/mdl.h"
#include "wdm/rtl.h"
#include "wdm/time.h"
#include "wdm/timer.h"
#include "wdm/io.h"
#include "wdm/work.h"
#include "wdm/zw.h"
#include "wdm/thread.h"
#include "wdm/debug.h"

#endif /* SOFTNDK_WDM_H */
