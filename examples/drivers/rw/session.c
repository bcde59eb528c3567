// SPDX-License-Identifier: MIT
/*
 * session.c - one end of a connection: posting, completions, and a teardown after which nothing
 * that was posted is on its way any more. See rw.h.
 */
#include "rw.h"

/* ---- requests ---- */

VOID SessionBreak(_In_ SESSION *Session, _In_ NTSTATUS Status)
{
    InterlockedCompareExchange(&Session->Status, Status, STATUS_SUCCESS);
    KeSetEvent(&Session->Broken, IO_NO_INCREMENT, FALSE);
}

/* Before a signalled request is posted: the reference that its completion gives back. */
BOOLEAN Hold(_In_ SESSION *Session)
{
    return ExAcquireRundownProtection(&Session->Rundown);
}

/* After it was posted: a request that was refused has no completion. */
NTSTATUS Posted(_In_ SESSION *Session, _In_ NTSTATUS Status)
{
    if (!NT_SUCCESS(Status))
        ExReleaseRundownProtection(&Session->Rundown);
    return Status;
}

NTSTATUS PostReceive(_In_ SLOT *Slot)
{
    SESSION *session = Slot->Session;
    NDK_SGE sge;

    if (!Hold(session))
        return STATUS_DELETE_PENDING;
    sge.VirtualAddress = Slot->ReceiveBuffer;
    sge.Length = MESSAGE_BYTES;
    sge.MemoryRegionToken = session->MessageToken;
    return Posted(session,
                  session->Qp->Dispatch->NdkReceive(session->Qp, &Slot->Received, &sge, 1));
}

/* A message from the slot's buffer, the end of every chain. Token: what the peer shall invalidate,
 * or 0. */
NTSTATUS PostSend(_In_ SLOT *Slot, _In_ ULONG Length, _In_ UINT32 Token)
{
    SESSION *session = Slot->Session;
    NDK_QP *qp = session->Qp;
    NDK_SGE sge;

    if (!Hold(session))
        return STATUS_DELETE_PENDING;
    sge.VirtualAddress = Slot->SendBuffer;
    sge.Length = Length;
    sge.MemoryRegionToken = session->MessageToken;
    if (Token)
        return Posted(session,
                      qp->Dispatch->NdkSendAndInvalidate(qp, &Slot->Sent, &sge, 1, 0, Token));
    return Posted(session, qp->Dispatch->NdkSend(qp, &Slot->Sent, &sge, 1, 0));
}

/* The slot's region over a piece of the session's data; silent, and deferred to what follows. */
NTSTATUS PostFastRegister(_In_ SLOT *Slot, _In_ ULONG Offset, _In_ ULONG Length, _In_ ULONG Rights)
{
    SESSION *session = Slot->Session;
    PUCHAR va = session->Data.Va + Offset;

    return session->Qp->Dispatch->NdkFastRegister(
        session->Qp, NULL, Slot->Frmr, ADDRESS_AND_SIZE_TO_SPAN_PAGES(va, Length),
        &session->Data.Lam->AdapterPageArray[Offset >> PAGE_SHIFT], BYTE_OFFSET(Offset), Length, va,
        Rights | NDK_OP_FLAG_SILENT_SUCCESS | NDK_OP_FLAG_DEFER);
}

static ULONG Poll(_In_ SESSION *Session, _Out_ NDK_RESULT_EX *Results, _In_ ULONG Room)
{
    ULONG count = 0;
    KIRQL irql;

    KeAcquireSpinLock(&Session->Lock, &irql);
    if (Session->Cq) {
        count = Session->Cq->Dispatch->NdkGetCqResultsEx(Session->Cq, Results, Room);
        if (count == 0)
            Session->Cq->Dispatch->NdkArmCq(Session->Cq, NDK_CQ_NOTIFY_ANY);
    }
    KeReleaseSpinLock(&Session->Lock, irql);
    return count;
}

/* All completions of a session come here, one callback at a time. */
static VOID OnCq(_In_opt_ PVOID Context, _In_ NTSTATUS CqStatus)
{
    SESSION *session = (SESSION *)Context;
    NDK_RESULT_EX results[8];
    ULONG count, i;

    NT_ASSERT(NT_SUCCESS(CqStatus)); /* it has room for all that can be posted */
    UNREFERENCED_PARAMETER(CqStatus);
    while ((count = Poll(session, results, ARRAYSIZE(results))) > 0)
        for (i = 0; i < count; i++) {
            WORK *work = (WORK *)results[i].RequestContext;

            if (!NT_SUCCESS(results[i].Status)) /* CANCELLED: the connection ended before */
                SessionBreak(session, results[i].Status);
            else if (work)
                work->Done(work->Slot, &results[i]);
            if (work)
                ExReleaseRundownProtection(&session->Rundown);
        }
}

VOID OnDisconnect(_In_opt_ PVOID Context)
{
    SessionBreak((SESSION *)Context, STATUS_SUCCESS);
}

/* ---- sessions ---- */

static NTSTATUS SessionObjects(_In_ SESSION *Session, _In_ BOOLEAN Server)
{
    END *end = Session->End;
    NTSTATUS status;
    CALL call;
    ULONG i;

    status =
        End(&call,
            end->Adapter->Dispatch->NdkCreateCq(end->Adapter, SLOTS + QUEUE_DEPTH, OnCq, Session,
                                                NULL, OnCreated, Begin(&call), &Session->Cq),
            &Session->Cq);
    if (NT_SUCCESS(status))
        status = End(&call,
                     end->Pd->Dispatch->NdkCreateQp(end->Pd, Session->Cq, Session->Cq, Session,
                                                    SLOTS, QUEUE_DEPTH, 1, 1, 0, OnCreated,
                                                    Begin(&call), &Session->Qp),
                     &Session->Qp);
    if (NT_SUCCESS(status))
        status = End(&call,
                     end->Pd->Dispatch->NdkCreateMr(end->Pd, FALSE, OnCreated, Begin(&call),
                                                    &Session->MessageMr),
                     &Session->MessageMr);
    if (NT_SUCCESS(status))
        status = End(&call,
                     Session->MessageMr->Dispatch->NdkRegisterMr(
                         Session->MessageMr, Session->Messages.Mdl, SLOTS * 2 * MESSAGE_BYTES,
                         NDK_MR_FLAG_ALLOW_LOCAL_WRITE, OnRequest, Begin(&call)),
                     NULL);
    if (NT_SUCCESS(status))
        Session->MessageToken =
            Session->MessageMr->Dispatch->NdkGetLocalTokenFromMr(Session->MessageMr);
    for (i = 0; NT_SUCCESS(status) && i < SLOTS; i++) {
        NDK_MR **frmr = &Session->Slots[i].Frmr;

        status =
            End(&call, end->Pd->Dispatch->NdkCreateMr(end->Pd, TRUE, OnCreated, Begin(&call), frmr),
                frmr);
        if (NT_SUCCESS(status))
            status = End(&call,
                         (*frmr)->Dispatch->NdkInitializeFastRegisterMr(*frmr, SLOT_PAGES, !Server,
                                                                        OnRequest, Begin(&call)),
                         NULL);
    }
    return status;
}

VOID SessionClose(_In_ SESSION *Session)
{
    NDK_CQ *cq = Session->Cq;
    CALL call;
    KIRQL irql;
    ULONG i;

    if (Session->Connected)
        End(&call,
            Session->Connector->Dispatch->NdkDisconnect(Session->Connector, OnRequest,
                                                        Begin(&call)),
            NULL);
    if (Session->Connector)
        Close(Session->Connector, Session->Connector->Dispatch->NdkCloseConnector);
    if (Session->Qp)
        Session->Qp->Dispatch->NdkFlush(Session->Qp); /* receives of one that never connected */
    ExWaitForRundownProtectionRelease(&Session->Rundown);
    if (Session->Qp)
        Close(Session->Qp, Session->Qp->Dispatch->NdkCloseQp);
    for (i = 0; i < SLOTS; i++)
        if (Session->Slots[i].Frmr)
            Close(Session->Slots[i].Frmr, Session->Slots[i].Frmr->Dispatch->NdkCloseMr);
    if (Session->MessageMr)
        Close(Session->MessageMr, Session->MessageMr->Dispatch->NdkCloseMr);
    KeAcquireSpinLock(&Session->Lock, &irql);
    Session->Cq = NULL;
    KeReleaseSpinLock(&Session->Lock, irql);
    if (cq)
        Close(cq, cq->Dispatch->NdkCloseCq);
    MemoryFree(Session->End, &Session->Data);
    MemoryFree(Session->End, &Session->Messages);
    ExFreePoolWithTag(Session, TAG);
}

SESSION *SessionOpen(_In_ END *OfEnd, _In_ BOOLEAN Server, _Out_ NTSTATUS *Status)
{
    SESSION *session = (SESSION *)ExAllocatePool2(POOL_FLAG_NON_PAGED, sizeof(SESSION), TAG);
    NDK_RESULT_EX none;
    ULONG i;

    *Status = STATUS_INSUFFICIENT_RESOURCES;
    if (!session)
        return NULL;
    session->End = OfEnd;
    ExInitializeRundownProtection(&session->Rundown);
    KeInitializeSpinLock(&session->Lock);
    KeInitializeEvent(&session->Broken, NotificationEvent, FALSE);
    *Status = MemoryAllocate(&session->Data, STORE_BYTES);
    if (NT_SUCCESS(*Status))
        *Status = MemoryAllocate(&session->Messages, SLOTS * 2 * MESSAGE_BYTES);
    if (NT_SUCCESS(*Status))
        *Status = MemoryMap(OfEnd, &session->Data);
    for (i = 0; i < SLOTS; i++) {
        SLOT *slot = &session->Slots[i];

        slot->Session = session;
        slot->Index = i;
        slot->Ready = 1;
        slot->ReceiveBuffer = session->Messages.Va + 2 * i * MESSAGE_BYTES;
        slot->SendBuffer = slot->ReceiveBuffer + MESSAGE_BYTES;
        slot->Received.Slot = slot->Sent.Slot = slot->Moved.Slot = slot;
        slot->Received.Done = Server ? OnStoreReceived : OnClientReceived;
        slot->Sent.Done = Server ? OnStoreSent : OnClientStep;
        slot->Moved.Done = Server ? OnStoreMoved : OnClientStep;
        KeInitializeEvent(&slot->Done, SynchronizationEvent, FALSE);
    }
    if (NT_SUCCESS(*Status))
        *Status = SessionObjects(session, Server);
    for (i = 0; Server && NT_SUCCESS(*Status) && i < SLOTS; i++)
        *Status = PostReceive(&session->Slots[i]);
    if (NT_SUCCESS(*Status)) {
        Poll(session, &none, 1); /* there is none: arms the queue */
        return session;
    }
    SessionClose(session);
    return NULL;
}
