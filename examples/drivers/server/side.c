// SPDX-License-Identifier: MIT
/* side.c - what the connections of one side share, first of all their completion queue. */
#include "server.h"

#define INTERVAL 50 /* microseconds that completions may be gathered */
#define GATHER   16 /* or so many of them */

/* ---- calls that pend, for the thread ---- */

VOID OnCreated(_In_opt_ PVOID Context, _In_ NTSTATUS Status, _In_ NDK_OBJECT_HEADER *Object)
{
    CALL *call = (CALL *)Context;

    call->Status = Status;
    call->Object = Object;
    KeSetEvent(&call->Done, IO_NO_INCREMENT, FALSE);
}

VOID OnRequest(_In_opt_ PVOID Context, _In_ NTSTATUS Status)
{
    OnCreated(Context, Status, NULL);
}

static VOID OnClosed(_In_opt_ PVOID Context)
{
    OnCreated(Context, STATUS_SUCCESS, NULL);
}

CALL *Begin(_Out_ CALL *Call)
{
    KeInitializeEvent(&Call->Done, NotificationEvent, FALSE);
    Call->Object = NULL;
    return Call;
}

/* The final status of a call; for a create that pended the object, too. */
NTSTATUS End(_Inout_ CALL *Call, _In_ NTSTATUS Status, _Out_opt_ PVOID ObjectPlace)
{
    if (Status != STATUS_PENDING)
        return Status;
    KeWaitForSingleObject(&Call->Done, Executive, KernelMode, FALSE, NULL);
    if (NT_SUCCESS(Call->Status) && ObjectPlace)
        *(NDK_OBJECT_HEADER **)ObjectPlace = Call->Object;
    return Call->Status;
}

VOID Close(_In_ PVOID Object, _In_ NDK_FN_CLOSE_OBJECT Function)
{
    CALL call;

    End(&call, Function((NDK_OBJECT_HEADER *)Object, OnClosed, Begin(&call)), NULL);
}

/* ---- the queue ---- */

/* From here on the connection needs to see every completion soon, not only solicited ones: it is
 * being taken down, or cannot go on before a send of its own is complete. */
VOID Hurry(_In_ CONNECTION *Connection)
{
    SIDE *side = Connection->Side;
    KIRQL irql;

    InterlockedIncrement(&Connection->Hurries);
    InterlockedIncrement(&side->Impatient);
    KeAcquireSpinLock(&side->Lock, &irql);
    if (side->Cq)
        side->Cq->Dispatch->NdkArmCq(side->Cq, NDK_CQ_NOTIFY_ANY);
    KeReleaseSpinLock(&side->Lock, irql);
}

VOID Calm(_In_ CONNECTION *Connection)
{
    InterlockedDecrement(&Connection->Hurries);
    InterlockedDecrement(&Connection->Side->Impatient);
}

/* What is there, or else the queue armed for what is needed. */
static ULONG Poll(_In_ SIDE *Side, _Out_ NDK_RESULT_EX *Results, _In_ ULONG Room)
{
    ULONG count = 0;
    KIRQL irql;

    KeAcquireSpinLock(&Side->Lock, &irql);
    if (Side->Cq) {
        count = Side->Cq->Dispatch->NdkGetCqResultsEx(Side->Cq, Results, Room);
        if (count == 0)
            Side->Cq->Dispatch->NdkArmCq(Side->Cq, Side->Impatient ? NDK_CQ_NOTIFY_ANY
                                                                   : NDK_CQ_NOTIFY_SOLICITED);
    }
    KeReleaseSpinLock(&Side->Lock, irql);
    return count;
}

/* The connection is told by the queue pair's context. A request without a context of its own was
 * silent: it is here because it failed, and nobody waits for it. */
static VOID OnCq(_In_opt_ PVOID Context, _In_ NTSTATUS CqStatus)
{
    SIDE *side = (SIDE *)Context;
    NDK_RESULT_EX results[32];
    ULONG count, i;

    NT_ASSERT(NT_SUCCESS(CqStatus)); /* it has room for all that can be posted */
    UNREFERENCED_PARAMETER(CqStatus);
    InterlockedIncrement(&side->Notifications);
    while ((count = Poll(side, results, ARRAYSIZE(results))) > 0)
        for (i = 0; i < count; i++) {
            CONNECTION *connection = (CONNECTION *)results[i].QPContext;
            NTSTATUS status = results[i].Status;

            if (NT_SUCCESS(status))
                status = OnMessage(connection, &results[i]);
            if (!NT_SUCCESS(status))
                GoDown(connection, status);
            if (results[i].RequestContext)
                Release(connection);
        }
}

static NTSTATUS CreateQueue(_Inout_ SIDE *Side)
{
    NDK_RESULT_EX none;
    NTSTATUS status;
    CALL call;

    status = End(&call,
                 Adapter->Dispatch->NdkCreateCq(Adapter, Side->Count * DEPTH, OnCq, Side, NULL,
                                                OnCreated, Begin(&call), &Side->Cq),
                 &Side->Cq);
    if (NT_SUCCESS(status) &&
        (Info.AdapterFlags & NDK_ADAPTER_FLAG_CQ_INTERRUPT_MODERATION_SUPPORTED))
        status = Side->Cq->Dispatch->NdkControlCqInterruptModeration(Side->Cq, INTERVAL, GATHER);
    if (NT_SUCCESS(status))
        Poll(Side, &none, 1); /* there is none: arms it */
    return status;
}

/* ---- a side ---- */

NTSTATUS SideOpen(_Out_ SIDE *Side, _In_ BOOLEAN Server, _In_ NDK_PD *Pd)
{
    SIZE_T bytes = Config.Connections * sizeof(CONNECTION);
    NTSTATUS status;
    CALL call;
    ULONG i;

    RtlZeroMemory(Side, sizeof(*Side));
    Side->Server = Server;
    Side->Count = Config.Connections;
    Side->Pd = Pd;
    KeInitializeSpinLock(&Side->Lock);
    ExInitializeRundownProtection(&Side->Rundown);
    Side->Connections = (CONNECTION *)ExAllocatePool2(POOL_FLAG_NON_PAGED, bytes, TAG);
    if (Side->Connections)
        Side->Mdl = IoAllocateMdl(Side->Connections, (ULONG)bytes, FALSE, FALSE, NULL);
    if (!Side->Mdl)
        return STATUS_INSUFFICIENT_RESOURCES;
    MmBuildMdlForNonPagedPool(Side->Mdl);
    for (i = 0; i < Side->Count; i++) {
        Side->Connections[i].Side = Side;
        Side->Connections[i].Index = i;
    }
    status = End(&call, Pd->Dispatch->NdkCreateMr(Pd, FALSE, OnCreated, Begin(&call), &Side->Mr),
                 &Side->Mr);
    if (NT_SUCCESS(status))
        status = End(&call,
                     Side->Mr->Dispatch->NdkRegisterMr(Side->Mr, Side->Mdl, bytes,
                                                       NDK_MR_FLAG_ALLOW_LOCAL_WRITE, OnRequest,
                                                       Begin(&call)),
                     NULL);
    if (!NT_SUCCESS(status))
        return status;
    Side->Token = Side->Mr->Dispatch->NdkGetLocalTokenFromMr(Side->Mr);
    return CreateQueue(Side);
}

/* The connections are gone already, their rundown has been waited for. */
VOID SideClose(_Inout_ SIDE *Side)
{
    NDK_CQ *cq = Side->Cq;
    KIRQL irql;

    KeAcquireSpinLock(&Side->Lock, &irql);
    Side->Cq = NULL;
    KeReleaseSpinLock(&Side->Lock, irql);
    if (cq)
        Close(cq, cq->Dispatch->NdkCloseCq);
    if (Side->Mr)
        Close(Side->Mr, Side->Mr->Dispatch->NdkCloseMr);
    if (Side->Mdl)
        IoFreeMdl(Side->Mdl);
    if (Side->Connections)
        ExFreePoolWithTag(Side->Connections, TAG);
}
