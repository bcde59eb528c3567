// SPDX-License-Identifier: MIT
/* client.c - the client: a thread that writes, reads back and compares. See rw.h. */
#include "rw.h"

static VOID ClientStep(_In_ SLOT *Slot)
{
    if (InterlockedDecrement(&Slot->Waiting) == 0)
        KeSetEvent(&Slot->Done, IO_NO_INCREMENT, FALSE);
}

/* Answers come in the order in which the server gives them; they say whose they are. */
VOID OnClientReceived(_In_ SLOT *Slot, _In_ const NDK_RESULT_EX *Result)
{
    const ANSWER *answer = (const ANSWER *)Slot->ReceiveBuffer;
    SLOT *slot;

    if (Result->BytesTransferred != sizeof(*answer) || answer->Slot >= SLOTS) {
        SessionBreak(Slot->Session, STATUS_INVALID_NETWORK_RESPONSE);
        return;
    }
    slot = &Slot->Session->Slots[answer->Slot];
    slot->Status = answer->Status;
    slot->TokenTaken = Result->Type == NdkOperationTypeReceiveAndInvalidate &&
                       Result->TypeSpecificCompletionOutput == slot->Token;
    ClientStep(slot);
}

VOID OnClientStep(_In_ SLOT *Slot, _In_ const NDK_RESULT_EX *Result)
{
    UNREFERENCED_PARAMETER(Result);
    ClientStep(Slot);
}

static NTSTATUS ClientPost(_In_ SLOT *Slot, _In_ OPERATION Operation, _In_ ULONG Offset,
                           _In_ ULONG Length, _In_ BOOLEAN KeepToken)
{
    REQUEST *request = (REQUEST *)Slot->SendBuffer;
    NTSTATUS status;

    Slot->Waiting = 2; /* the answer, and the request's own completion */
    status = PostReceive(Slot);
    if (NT_SUCCESS(status))
        status = PostFastRegister(Slot, Offset, Length,
                                  Operation == StoreWrite ? NDK_OP_FLAG_ALLOW_REMOTE_READ
                                                          : NDK_OP_FLAG_ALLOW_REMOTE_WRITE);
    if (!NT_SUCCESS(status))
        return status;
    Slot->Token = Slot->Frmr->Dispatch->NdkGetRemoteTokenFromMr(Slot->Frmr);
    request->Operation = Operation;
    request->Slot = Slot->Index;
    request->Offset = Offset;
    request->Length = Length;
    request->Address = (UINT64)(ULONG_PTR)(Slot->Session->Data.Va + Offset);
    request->Token = Slot->Token;
    request->KeepToken = KeepToken;
    return PostSend(Slot, sizeof(*request), 0);
}

/* Ends what ClientPost() began: the memory is the client's again. */
static NTSTATUS ClientFinish(_In_ SLOT *Slot)
{
    SESSION *session = Slot->Session;
    NTSTATUS status;

    if (!WaitFirst(&Slot->Done, &session->Broken, LIMIT_SECONDS))
        return NT_SUCCESS(session->Status) ? STATUS_CONNECTION_DISCONNECTED : session->Status;
    if (Slot->TokenTaken || !NT_SUCCESS(Slot->Status))
        return Slot->Status;
    if (!Hold(session))
        return STATUS_DELETE_PENDING;
    Slot->Waiting = 1;
    status = Posted(session, session->Qp->Dispatch->NdkInvalidate(session->Qp, &Slot->Moved,
                                                                  &Slot->Frmr->Header, 0));
    if (NT_SUCCESS(status) && !WaitFirst(&Slot->Done, &session->Broken, LIMIT_SECONDS))
        status = STATUS_CONNECTION_DISCONNECTED;
    return status;
}

/* One operation of every slot, each at an offset and of a length of its own. */
static NTSTATUS ClientAll(_In_ SESSION *Session, _In_ OPERATION Operation, _In_ ULONG Round)
{
    NTSTATUS status = STATUS_SUCCESS, one;
    ULONG i, begun;

    for (i = 0; NT_SUCCESS(status) && i < SLOTS; i++)
        status = ClientPost(&Session->Slots[i], Operation, i * SLOT_BYTES + Round * 257 % PAGE_SIZE,
                            1 + (Round * 7919 + i * 4099) % (SLOT_BYTES - PAGE_SIZE),
                            (BOOLEAN)((Round + i) & 1));
    begun = NT_SUCCESS(status) ? i : i - 1;
    for (i = 0; i < begun; i++) {
        one = ClientFinish(&Session->Slots[i]);
        if (NT_SUCCESS(status))
            status = one;
    }
    return status;
}

NTSTATUS ClientRounds(_In_ SESSION *Session, _In_ ULONG Rounds)
{
    NTSTATUS status = STATUS_SUCCESS;
    ULONG round, i, offset, length, at;
    PUCHAR data = Session->Data.Va;

    for (round = 0; NT_SUCCESS(status) && round < Rounds; round++) {
        for (at = 0; at < STORE_BYTES; at++)
            data[at] = (UCHAR)(at * 31 + (at >> 8) + round);
        status = ClientAll(Session, StoreWrite, round);
        if (!NT_SUCCESS(status))
            break;
        RtlFillMemory(data, STORE_BYTES, 0xEE);
        status = ClientAll(Session, StoreRead, round);
        for (i = 0; NT_SUCCESS(status) && i < SLOTS; i++) {
            offset = i * SLOT_BYTES + round * 257 % PAGE_SIZE;
            length = 1 + (round * 7919 + i * 4099) % (SLOT_BYTES - PAGE_SIZE);
            for (at = i * SLOT_BYTES; at < (i + 1) * SLOT_BYTES; at++)
                if (data[at] !=
                    (at - offset < length ? (UCHAR)(at * 31 + (at >> 8) + round) : 0xEE))
                    status = STATUS_DATA_ERROR;
        }
    }
    return status;
}
