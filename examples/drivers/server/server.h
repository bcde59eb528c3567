// SPDX-License-Identifier: MIT
/*
 * server.h - a server with many connections on one completion queue, and its clients on another. A
 * client sends bursts of messages of which only the last asks for an event; the server looks at its
 * queue when an event comes, reads all that is there, and answers each burst. Both queues gather
 * completions (interrupt moderation). Nothing here waits but the thread that starts and ends it:
 * connections are made, used and closed in callbacks, at DISPATCH_LEVEL.
 *
 * driver.c: the driver, its configuration and thread. side.c: what the connections of one side
 * share; its completion queue. connection.c: a connection's life. traffic.c: what is sent.
 */
#pragma once

#include <ntddk.h>
#include <ntstrsafe.h>
#include <netioapi.h>
#include <ip2string.h>
#include <wsk.h>
#include <wskndk.h>
#include <ndkpi.h>

#define TAG   'rvMN'
#define BURST 8 /* messages of a burst */
#define DEPTH                                                                                      \
    (BURST + 2) /* requests of one connection: a burst's, an answer's and one to spare             \
                 */

typedef struct _MESSAGE {
    ULONG Client, Burst, Number; /* Number: in the burst */
    ULONG Sum;                   /* in an answer: of the texts of the burst */
    CHAR Text[48];
} MESSAGE;

/* One call that may pend, made to wait. */
typedef struct _CALL {
    KEVENT Done;
    NTSTATUS Status;
    NDK_OBJECT_HEADER *Object;
} CALL;

/* What comes next in a connection's life. */
typedef enum _STEP {
    StepQp,
    StepConnector, /* clients */
    StepConnect,   /* servers accept */
    StepComplete,  /* clients */
    StepUp,
    StepDisconnect,
    StepCloseConnector,
    StepCloseQp,
    StepGone
} STEP;

/* Of a connection's place: free, being filled in, found by Stop(). */
enum { SLOT_FREE, SLOT_TAKEN, SLOT_LIVE };

/*
 * References: of the connection's life, and of each posted request that will have a completion.
 * Gate: the connection is taken down when it is up and there is a reason; who comes second does it.
 * What stands below Sum belongs to the side's CQ callback, which never runs twice at once, and to
 * StepUp, before which no message has been sent.
 */
typedef struct _CONNECTION {
    struct _SIDE *Side;
    ULONG Index;
    LONG volatile Busy; /* SLOT_... */
    LONG volatile References, Gate, Going, Hurries;
    LONG volatile Status;
    STEP Step;
    NDK_QP *Qp;
    NDK_CONNECTOR *Connector;

    ULONG Sum, Burst, Number;
    ULONG Left;                    /* client: completions before the next burst */
    BOOLEAN AnswerOut, AnswerOwed; /* server */
    BOOLEAN Hurrying;              /* for the completion of a send */
    MESSAGE Received[BURST], Sent[BURST];
} CONNECTION;

/*
 * The server's side or the clients'. Lock: polls and arms of Cq, which is NULL when it is being
 * closed. The queue is armed for solicited events while nobody needs more, and for all completions
 * while Impatient is not 0. Rundown: held by each connection.
 */
typedef struct _SIDE {
    BOOLEAN Server;
    ULONG Count;
    NDK_PD *Pd;
    NDK_CQ *Cq;
    KSPIN_LOCK Lock;
    LONG volatile Impatient;
    EX_RUNDOWN_REF Rundown;
    CONNECTION *Connections;
    PMDL Mdl;
    NDK_MR *Mr;
    UINT32 Token;
    LONG volatile Status, Stopping;
    LONG volatile Messages, Notifications, Ended;
} SIDE;

/* What the registry says, and the adapter. */
typedef struct _CONFIG {
    WCHAR Role[16];
    ULONG IfIndex, Port, Connections, Bursts;
    SOCKADDR_IN Local, Target;
} CONFIG;

extern CONFIG Config;
extern NDK_ADAPTER *Adapter;
extern NDK_ADAPTER_INFO Info;

/* ---- side.c ---- */

CALL *Begin(_Out_ CALL *Call);
NTSTATUS End(_Inout_ CALL *Call, _In_ NTSTATUS Status, _Out_opt_ PVOID ObjectPlace);
VOID Close(_In_ PVOID Object, _In_ NDK_FN_CLOSE_OBJECT Function);
VOID OnCreated(_In_opt_ PVOID Context, _In_ NTSTATUS Status, _In_ NDK_OBJECT_HEADER *Object);
VOID OnRequest(_In_opt_ PVOID Context, _In_ NTSTATUS Status);

NTSTATUS SideOpen(_Out_ SIDE *Side, _In_ BOOLEAN Server, _In_ NDK_PD *Pd);
VOID SideClose(_Inout_ SIDE *Side);
VOID Hurry(_In_ CONNECTION *Connection);
VOID Calm(_In_ CONNECTION *Connection);

/* ---- connection.c ---- */

VOID OnConnect(_In_opt_ PVOID Context, _In_ NDK_CONNECTOR *Connector);
VOID StartClient(_In_ CONNECTION *Connection);
VOID GoDown(_In_ CONNECTION *Connection, _In_ NTSTATUS Status);
VOID Stop(_In_ SIDE *Side);
VOID Release(_In_ CONNECTION *Connection);

/* ---- traffic.c ---- */

NTSTATUS PostReceives(_In_ CONNECTION *Connection);
NTSTATUS SendBurst(_In_ CONNECTION *Connection);
NTSTATUS OnMessage(_In_ CONNECTION *Connection, _In_ const NDK_RESULT_EX *Result);
