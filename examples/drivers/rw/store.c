// SPDX-License-Identifier: MIT
/* store.c - the server: requests are served in the CQ's callback, as they come. See rw.h. */
#include "rw.h"

static VOID Answer(_In_ SLOT *Slot, _In_ NTSTATUS Status)
{
    ANSWER *answer = (ANSWER *)Slot->SendBuffer;
    NTSTATUS status;

    answer->Slot = Slot->Request.Slot;
    answer->Status = Status;
    status = PostReceive(Slot); /* first: the answer allows the client to send */
    if (NT_SUCCESS(status))
        status = PostSend(Slot, sizeof(*answer), Slot->Request.KeepToken ? 0 : Slot->Request.Token);
    if (!NT_SUCCESS(status))
        SessionBreak(Slot->Session, status);
}

/* The client's data into the store: a read whose sink is a region of its own. */
static NTSTATUS Pull(_In_ SLOT *Slot)
{
    SESSION *session = Slot->Session;
    const REQUEST *request = &Slot->Request;
    NDK_SGE sge;
    NTSTATUS status;

    status = PostFastRegister(Slot, request->Offset, request->Length,
                              NDK_OP_FLAG_ALLOW_LOCAL_WRITE | NDK_OP_FLAG_RDMA_READ_SINK);
    if (!NT_SUCCESS(status))
        return status;
    if (!Hold(session))
        return STATUS_DELETE_PENDING;
    sge.VirtualAddress = session->Data.Va + request->Offset;
    sge.Length = request->Length;
    sge.MemoryRegionToken = Slot->Frmr->Dispatch->NdkGetLocalTokenFromMr(Slot->Frmr);
    /* Without the capability the flag is ignored, see OnStoreMoved(). */
    return Posted(session, session->Qp->Dispatch->NdkRead(session->Qp, &Slot->Moved, &sge, 1,
                                                          request->Address, request->Token,
                                                          NDK_OP_FLAG_RDMA_READ_LOCAL_INVALIDATE));
}

VOID OnStoreMoved(_In_ SLOT *Slot, _In_ const NDK_RESULT_EX *Result)
{
    SESSION *session = Slot->Session;
    NTSTATUS status = STATUS_SUCCESS;

    UNREFERENCED_PARAMETER(Result);
    if (!(session->End->Info.AdapterFlags & NDK_ADAPTER_FLAG_RDMA_READ_LOCAL_INVALIDATE_SUPPORTED))
        status = session->Qp->Dispatch->NdkInvalidate(
            session->Qp, NULL, &Slot->Frmr->Header, NDK_OP_FLAG_SILENT_SUCCESS | NDK_OP_FLAG_DEFER);
    if (NT_SUCCESS(status))
        Answer(Slot, STATUS_SUCCESS);
    else
        SessionBreak(session, status);
}

/* The store's data to the client: a write a page, with the privileged token and the adapter's
 * addresses, no registration at all. The answer ends the chain. */
static NTSTATUS Push(_In_ SLOT *Slot)
{
    SESSION *session = Slot->Session;
    const REQUEST *request = &Slot->Request;
    NTSTATUS status = STATUS_SUCCESS;
    ULONG done = 0, at;
    NDK_SGE sge;

    for (; NT_SUCCESS(status) && done < request->Length; done += sge.Length) {
        at = request->Offset + done;
        sge.LogicalAddress.QuadPart =
            session->Data.Lam->AdapterPageArray[at >> PAGE_SHIFT].QuadPart + BYTE_OFFSET(at);
        sge.Length = min(PAGE_SIZE - BYTE_OFFSET(at), request->Length - done);
        sge.MemoryRegionToken = session->End->PrivilegedToken;
        status = session->Qp->Dispatch->NdkWrite(session->Qp, NULL, &sge, 1,
                                                 request->Address + done, request->Token,
                                                 NDK_OP_FLAG_SILENT_SUCCESS | NDK_OP_FLAG_DEFER);
    }
    return status;
}

static VOID Serve(_In_ SLOT *Slot)
{
    REQUEST *request = &Slot->Request;
    NTSTATUS status;

    Slot->Ready = 0;
    RtlCopyMemory(request, Slot->ReceiveBuffer, sizeof(*request));
    if (request->Offset >= STORE_BYTES || request->Length == 0 ||
        request->Length > SLOT_BYTES - BYTE_OFFSET(request->Offset) ||
        request->Length > STORE_BYTES - request->Offset) {
        Answer(Slot, STATUS_INVALID_PARAMETER);
        return;
    }
    if (request->Operation == StoreWrite) {
        status = Pull(Slot);
    } else {
        status = Push(Slot);
        if (NT_SUCCESS(status))
            Answer(Slot, STATUS_SUCCESS);
    }
    if (!NT_SUCCESS(status))
        SessionBreak(Slot->Session, status);
}

VOID OnStoreReceived(_In_ SLOT *Slot, _In_ const NDK_RESULT_EX *Result)
{
    if (Result->BytesTransferred != sizeof(REQUEST))
        SessionBreak(Slot->Session, STATUS_INVALID_NETWORK_RESPONSE);
    else if (++Slot->Ready == 2)
        Serve(Slot);
}

VOID OnStoreSent(_In_ SLOT *Slot, _In_ const NDK_RESULT_EX *Result)
{
    UNREFERENCED_PARAMETER(Result);
    if (++Slot->Ready == 2)
        Serve(Slot);
}
