// SPDX-License-Identifier: MIT
/*
 * connection.c - a connection's life, as a list of steps. Each call may answer at once or later;
 * both ways lead to Run(), which takes the next step. After STATUS_PENDING nothing here touches the
 * connection: its completion may have run already, and taken it far.
 */
#include "server.h"

static VOID Run(_In_ CONNECTION *Connection, _In_ NTSTATUS Status);

static VOID OnStep(_In_opt_ PVOID Context, _In_ NTSTATUS Status)
{
    Run((CONNECTION *)Context, Status);
}

static VOID OnStepCreated(_In_opt_ PVOID Context, _In_ NTSTATUS Status,
                          _In_ NDK_OBJECT_HEADER *Object)
{
    CONNECTION *connection = (CONNECTION *)Context;

    if (NT_SUCCESS(Status) && Object->ObjectType == NdkObjectTypeQp)
        connection->Qp = CONTAINING_RECORD(Object, NDK_QP, Header);
    else if (NT_SUCCESS(Status))
        connection->Connector = CONTAINING_RECORD(Object, NDK_CONNECTOR, Header);
    Run(connection, Status);
}

static VOID OnStepClosed(_In_opt_ PVOID Context)
{
    Run((CONNECTION *)Context, STATUS_SUCCESS);
}

static VOID OnRefused(_In_opt_ PVOID Context)
{
    UNREFERENCED_PARAMETER(Context); /* the listener's close waits for it */
}

/* ---- taking it down ---- */

/* All requests are back and the queue pair is gone: the slot is free. */
VOID Release(_In_ CONNECTION *Connection)
{
    SIDE *side = Connection->Side;

    if (InterlockedDecrement(&Connection->References) > 0)
        return;
    while (Connection->Hurries > 0)
        Calm(Connection);
    if (!NT_SUCCESS(Connection->Status))
        InterlockedCompareExchange(&side->Status, Connection->Status, STATUS_SUCCESS);
    InterlockedIncrement(&side->Ended);
    InterlockedExchange(&Connection->Busy, SLOT_FREE);
    ExReleaseRundownProtection(&side->Rundown);
}

static VOID Lower(_In_ CONNECTION *Connection)
{
    if (InterlockedDecrement(&Connection->Gate) == 0)
        Run(Connection, STATUS_SUCCESS);
}

/* A reason to end it; the first one counts. */
VOID GoDown(_In_ CONNECTION *Connection, _In_ NTSTATUS Status)
{
    if (InterlockedExchange(&Connection->Going, TRUE))
        return;
    InterlockedExchange(&Connection->Status, Status);
    Lower(Connection);
}

/* The peer has ended the connection: a client's success, since a server never does, but the end of
 * everything when it is told to a client that had more to say. */
static VOID OnDisconnect(_In_opt_ PVOID Context)
{
    CONNECTION *connection = (CONNECTION *)Context;

    GoDown(connection, connection->Side->Server ? STATUS_SUCCESS : STATUS_CONNECTION_DISCONNECTED);
}

/* Ends all connections of a server, and those that are just coming. */
VOID Stop(_In_ SIDE *Side)
{
    ULONG i;

    InterlockedExchange(&Side->Stopping, TRUE);
    for (i = 0; i < Side->Count; i++)
        if (ReadAcquire(&Side->Connections[i].Busy) == SLOT_LIVE)
            GoDown(&Side->Connections[i], STATUS_SUCCESS);
}

/* ---- the steps ---- */

static NTSTATUS CreateQp(_In_ CONNECTION *Connection)
{
    SIDE *side = Connection->Side;
    ULONG receives = side->Server ? BURST : 1;

    return side->Pd->Dispatch->NdkCreateQp(side->Pd, side->Cq, side->Cq, Connection, receives,
                                           DEPTH - receives, 1, 1, 0, OnStepCreated, Connection,
                                           &Connection->Qp);
}

static NTSTATUS ConnectOrAccept(_In_ CONNECTION *Connection)
{
    NDK_CONNECTOR *connector = Connection->Connector;
    NTSTATUS status = PostReceives(Connection);

    if (!NT_SUCCESS(status))
        return status;
    if (Connection->Side->Server)
        return connector->Dispatch->NdkAccept(connector, Connection->Qp, 0, 0, NULL, 0,
                                              OnDisconnect, Connection, OnStep, Connection);
    return connector->Dispatch->NdkConnect(
        connector, Connection->Qp, (PSOCKADDR)&Config.Local, sizeof(Config.Local),
        (PSOCKADDR)&Config.Target, sizeof(Config.Target), 0, 0, NULL, 0, OnStep, Connection);
}

static VOID Up(_In_ CONNECTION *Connection)
{
    NTSTATUS status = STATUS_SUCCESS;

    if (!Connection->Side->Server)
        status = SendBurst(Connection);
    if (!NT_SUCCESS(status))
        GoDown(Connection, status);
    Lower(Connection);
}

static NTSTATUS CloseConnector(_In_ CONNECTION *Connection)
{
    NDK_CONNECTOR *connector = Connection->Connector;

    Hurry(Connection);
    if (!connector)
        return STATUS_SUCCESS;
    return connector->Dispatch->NdkCloseConnector(&connector->Header, OnStepClosed, Connection);
}

static NTSTATUS CloseQp(_In_ CONNECTION *Connection)
{
    NDK_QP *qp = Connection->Qp;

    if (!qp)
        return STATUS_SUCCESS;
    qp->Dispatch->NdkFlush(qp); /* receives of one that never was connected */
    return qp->Dispatch->NdkCloseQp(&qp->Header, OnStepClosed, Connection);
}

/* The next step first, then the call. */
static VOID Run(_In_ CONNECTION *Connection, _In_ NTSTATUS Status)
{
    NDK_CONNECTOR *connector;

    while (Status != STATUS_PENDING) {
        if (!NT_SUCCESS(Status) && Connection->Step <= StepUp) {
            InterlockedExchange(&Connection->Status, Status);
            Connection->Step = StepCloseConnector;
        }
        connector = Connection->Connector;
        switch (Connection->Step) {
        case StepQp:
            Connection->Step = Connection->Side->Server ? StepConnect : StepConnector;
            Status = CreateQp(Connection);
            break;
        case StepConnector:
            Connection->Step = StepConnect;
            Status = Adapter->Dispatch->NdkCreateConnector(Adapter, OnStepCreated, Connection,
                                                           &Connection->Connector);
            break;
        case StepConnect:
            Connection->Step = Connection->Side->Server ? StepUp : StepComplete;
            Status = ConnectOrAccept(Connection);
            break;
        case StepComplete:
            Connection->Step = StepUp;
            Status = connector->Dispatch->NdkCompleteConnect(connector, OnDisconnect, Connection,
                                                             OnStep, Connection);
            break;
        case StepUp:
            Connection->Step = StepDisconnect;
            Up(Connection);
            return;
        case StepDisconnect:
            Connection->Step = StepCloseConnector;
            Status = connector->Dispatch->NdkDisconnect(connector, OnStep, Connection);
            break;
        case StepCloseConnector:
            Connection->Step = StepCloseQp;
            Status = CloseConnector(Connection);
            break;
        case StepCloseQp:
            Connection->Step = StepGone;
            Status = CloseQp(Connection);
            break;
        case StepGone:
            Release(Connection);
            return;
        }
    }
}

/* ---- beginnings ---- */

/* Takes a slot, unless it is in use. Nobody else looks into it before BringUp(). */
static BOOLEAN Reserve(_In_ CONNECTION *Connection)
{
    if (InterlockedCompareExchange(&Connection->Busy, SLOT_TAKEN, SLOT_FREE) != SLOT_FREE)
        return FALSE;
    Connection->References = 1;
    Connection->Gate = 2;
    Connection->Going = FALSE;
    Connection->Status = STATUS_SUCCESS;
    Connection->Step = StepQp;
    Connection->Qp = NULL;
    Connection->Connector = NULL;
    Connection->Sum = Connection->Burst = Connection->Number = 0;
    Connection->AnswerOut = Connection->AnswerOwed = Connection->Hurrying = FALSE;
    return TRUE;
}

/* From now on Stop() finds it; a stop that came before is found here. */
static VOID BringUp(_In_ CONNECTION *Connection)
{
    InterlockedExchange(&Connection->Busy, SLOT_LIVE);
    if (ReadAcquire(&Connection->Side->Stopping))
        GoDown(Connection, STATUS_SUCCESS);
    Run(Connection, STATUS_SUCCESS);
}

VOID OnConnect(_In_opt_ PVOID Context, _In_ NDK_CONNECTOR *Connector)
{
    SIDE *side = (SIDE *)Context;
    CONNECTION *connection = NULL;
    ULONG i;

    if (ExAcquireRundownProtection(&side->Rundown)) {
        for (i = 0; !connection && i < side->Count; i++)
            if (Reserve(&side->Connections[i]))
                connection = &side->Connections[i];
        if (!connection)
            ExReleaseRundownProtection(&side->Rundown);
    }
    if (!connection) {
        Connector->Dispatch->NdkReject(Connector, NULL, 0);
        Connector->Dispatch->NdkCloseConnector(&Connector->Header, OnRefused, NULL);
        return;
    }
    connection->Connector = Connector;
    BringUp(connection);
}

VOID StartClient(_In_ CONNECTION *Connection)
{
    if (ExAcquireRundownProtection(&Connection->Side->Rundown) && Reserve(Connection))
        BringUp(Connection);
}
