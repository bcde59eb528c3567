// SPDX-License-Identifier: MIT
/*
 * Completing a request: as much of the I/O manager as a driver's stubs need.
 */
#include "base/red.h"
#include "nt/nt.h"

/* Whether the routine of a location wants to hear of this end. */
static bool wants(const IO_STACK_LOCATION *location, const IRP *irp)
{
    UCHAR control = location->Control;

    if (!location->CompletionRoutine)
        return false;
    return (NT_SUCCESS(irp->IoStatus.Status) && (control & SL_INVOKE_ON_SUCCESS)) ||
           (!NT_SUCCESS(irp->IoStatus.Status) && (control & SL_INVOKE_ON_ERROR)) ||
           (irp->Cancel && (control & SL_INVOKE_ON_CANCEL));
}

/* Runs completion routines from the present location up. False: one of them kept the request. */
static bool climb(PIRP irp)
{
    while (irp->CurrentLocation <= irp->StackCount) {
        PIO_STACK_LOCATION location = irp->Tail.Overlay.CurrentStackLocation;
        PDEVICE_OBJECT device;

        irp->PendingReturned = (location->Control & SL_PENDING_RETURNED) != 0;
        irp->CurrentLocation++;
        irp->Tail.Overlay.CurrentStackLocation++;
        if (!wants(location, irp))
            continue;
        /* A routine belongs to the driver above, and is told that one's device. */
        device = irp->CurrentLocation <= irp->StackCount ? location[1].DeviceObject : NULL;
        if (location->CompletionRoutine(device, irp, location->Context) ==
            STATUS_MORE_PROCESSING_REQUIRED)
            return false;
    }
    irp->CurrentLocation++; /* completed: past the place that is nobody's */
    return true;
}

VOID IofCompleteRequest(PIRP Irp, CCHAR PriorityBoost)
{
    PIO_STATUS_BLOCK result;
    PKEVENT event;

    (void)PriorityBoost;
    (void)nt_irql_at_most(DISPATCH_LEVEL, "IoCompleteRequest", NT_CALLER);
    if (Irp->CurrentLocation > Irp->StackCount + 1) {
        nt_finding_from(NT_CALLER, "IoCompleteRequest: the request %p is completed already",
                        (void *)Irp);
        return;
    }
    if (Irp->IoStatus.Status == STATUS_PENDING)
        nt_finding_from(NT_CALLER, "IoCompleteRequest: the request %p ends with STATUS_PENDING",
                        (void *)Irp);
    if (!climb(Irp))
        return;
    /* The requestor may free the request as soon as its event is set. */
    result = Irp->UserIosb;
    event = Irp->UserEvent;
    if (result && !RED("nt-irp-result-lost"))
        *result = Irp->IoStatus;
    if (event)
        KeSetEvent(event, IO_NO_INCREMENT, FALSE);
}
