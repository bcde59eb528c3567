// SPDX-License-Identifier: MIT
/*
 * traffic.c - bursts and answers. All of it runs in the callbacks of the two completion queues, and
 * a client's first burst when its connection is up.
 */
#include "server.h"

static ULONG TextSum(_In_ const MESSAGE *Message)
{
    ULONG i, sum = 0;

    for (i = 0; i < sizeof(Message->Text); i++)
        sum = sum * 31 + (UCHAR)Message->Text[i];
    return sum;
}

static NTSTATUS PostReceive(_In_ CONNECTION *Connection, _In_ MESSAGE *Place)
{
    NDK_SGE sge;
    NTSTATUS status;

    sge.VirtualAddress = Place;
    sge.Length = sizeof(*Place);
    sge.MemoryRegionToken = Connection->Side->Token;
    InterlockedIncrement(&Connection->References);
    status = Connection->Qp->Dispatch->NdkReceive(Connection->Qp, Place, &sge, 1);
    if (!NT_SUCCESS(status))
        Release(Connection);
    return status;
}

/* Before the connection is made: no message may come before its receive. */
NTSTATUS PostReceives(_In_ CONNECTION *Connection)
{
    ULONG i, count = Connection->Side->Server ? BURST : 1;
    NTSTATUS status = STATUS_SUCCESS;

    for (i = 0; NT_SUCCESS(status) && i < count; i++)
        status = PostReceive(Connection, &Connection->Received[i]);
    return status;
}

/* Only a send that is not silent has a context and a completion. */
static NTSTATUS PostSend(_In_ CONNECTION *Connection, _In_ MESSAGE *Message, _In_ ULONG Flags)
{
    BOOLEAN silent = (Flags & NDK_OP_FLAG_SILENT_SUCCESS) != 0;
    NDK_SGE sge;
    NTSTATUS status;

    sge.VirtualAddress = Message;
    sge.Length = sizeof(*Message);
    sge.MemoryRegionToken = Connection->Side->Token;
    if (!silent)
        InterlockedIncrement(&Connection->References);
    status =
        Connection->Qp->Dispatch->NdkSend(Connection->Qp, silent ? NULL : Message, &sge, 1, Flags);
    if (!NT_SUCCESS(status) && !silent)
        Release(Connection);
    return status;
}

/* ---- client ---- */

/* All but the last are silent, deferred to it, and wake nobody. */
NTSTATUS SendBurst(_In_ CONNECTION *Connection)
{
    NTSTATUS status = STATUS_SUCCESS;
    ULONG i;

    Connection->Left = 2; /* the last send, and the answer */
    Connection->Sum = 0;
    for (i = 0; NT_SUCCESS(status) && i < BURST; i++) {
        MESSAGE *message = &Connection->Sent[i];

        message->Client = Connection->Index;
        message->Burst = Connection->Burst;
        message->Number = i;
        message->Sum = 0;
        RtlStringCbPrintfA(message->Text, sizeof(message->Text), "client %u, burst %u, message %u",
                           Connection->Index, Connection->Burst, i);
        Connection->Sum += TextSum(message);
        status = PostSend(Connection, message,
                          i < BURST - 1 ? NDK_OP_FLAG_SILENT_SUCCESS | NDK_OP_FLAG_DEFER
                                        : NDK_OP_FLAG_SEND_AND_SOLICIT_EVENT);
    }
    return status;
}

/* The answer proves that the burst has arrived, but the next one needs the send queue's room, which
 * only the completion of the send gives back. It wakes nobody either, unless it is asked for. */
static NTSTATUS ClientStep(_In_ CONNECTION *Connection, _In_ BOOLEAN Answered)
{
    if (--Connection->Left > 0) {
        if (Answered) {
            Connection->Hurrying = TRUE;
            Hurry(Connection);
        }
        return STATUS_SUCCESS;
    }
    if (Connection->Hurrying) {
        Connection->Hurrying = FALSE;
        Calm(Connection);
    }
    if (++Connection->Burst < Config.Bursts)
        return SendBurst(Connection);
    GoDown(Connection, STATUS_SUCCESS);
    return STATUS_SUCCESS;
}

static NTSTATUS OnAnswer(_In_ CONNECTION *Connection, _In_ MESSAGE *Answer)
{
    NTSTATUS status;

    if (Answer->Burst != Connection->Burst || Answer->Sum != Connection->Sum)
        return STATUS_DATA_ERROR;
    InterlockedIncrement(&Connection->Side->Messages);
    status = PostReceive(Connection, Answer);
    return NT_SUCCESS(status) ? ClientStep(Connection, TRUE) : status;
}

/* ---- server ---- */

static NTSTATUS SendAnswer(_In_ CONNECTION *Connection)
{
    MESSAGE *answer = &Connection->Sent[0];

    answer->Burst = Connection->Burst - 1;
    answer->Sum = Connection->Sum;
    Connection->Sum = 0;
    Connection->AnswerOut = TRUE;
    return PostSend(Connection, answer, NDK_OP_FLAG_SEND_AND_SOLICIT_EVENT);
}

static NTSTATUS OnRequestMessage(_In_ CONNECTION *Connection, _In_ MESSAGE *Message)
{
    NTSTATUS status;

    if (Message->Burst != Connection->Burst || Message->Number != Connection->Number)
        return STATUS_DATA_ERROR;
    InterlockedIncrement(&Connection->Side->Messages);
    Connection->Sum += TextSum(Message);
    status = PostReceive(Connection, Message); /* before the answer, which allows a burst */
    if (!NT_SUCCESS(status) || ++Connection->Number < BURST)
        return status;
    Connection->Number = 0;
    Connection->Burst++;
    if (!Connection->AnswerOut)
        return SendAnswer(Connection);
    Connection->AnswerOwed = Connection->Hurrying = TRUE;
    Hurry(Connection);
    return STATUS_SUCCESS;
}

static NTSTATUS OnAnswerSent(_In_ CONNECTION *Connection)
{
    Connection->AnswerOut = FALSE;
    if (!Connection->AnswerOwed)
        return STATUS_SUCCESS;
    Connection->AnswerOwed = Connection->Hurrying = FALSE;
    Calm(Connection);
    return SendAnswer(Connection);
}

/* A request of the connection is complete. A failure ends it. */
NTSTATUS OnMessage(_In_ CONNECTION *Connection, _In_ const NDK_RESULT_EX *Result)
{
    MESSAGE *message = (MESSAGE *)Result->RequestContext;

    if (!(Result->Type & NdkOperationTypeReceive))
        return Connection->Side->Server ? OnAnswerSent(Connection) : ClientStep(Connection, FALSE);
    if (Result->BytesTransferred != sizeof(*message))
        return STATUS_INVALID_NETWORK_RESPONSE;
    return Connection->Side->Server ? OnRequestMessage(Connection, message)
                                    : OnAnswer(Connection, message);
}
