// SPDX-License-Identifier: MIT
/*
 * softndk_activity(): what a program that runs drivers asks to know when they are done. The parts
 * are read one after the other; turns tells whether something began between two looks.
 */
#include <softndk.h>

#include "base/red.h"
#include "nt/left.h"
#include "nt/nt.h"
#include "provider/adapter.h"

void softndk_activity(struct softndk_activity *out)
{
    unsigned long long opened, queued;

    /* Work before adapters: an item that opens one is seen as one or the other. */
    out->work_items = nt_work_count(&queued);
    out->adapters = adapter_count(&opened);
    out->threads = (ULONG)nt_left_count(NT_LEFT_THREAD);
    out->turns = RED("activity-turns-stand") ? 0 : opened + queued;
}
