// SPDX-License-Identifier: MIT
/*
 * rw.h - a store that is reached by RDMA, and its client: how storage protocols move data. The
 * client opens a piece of its memory to the server with a fast registration and sends a request
 * with the token. The server takes the data with an RDMA read, or delivers it with RDMA writes, and
 * answers; the answer invalidates the token at the client. The client writes, reads back, compares.
 *
 *   client  FastRegister, Send(request)         one chain, posted with DEFER
 *   server  FastRegister, Read                  "write": the data comes into the store
 *           Write, Write, ... Send(answer)      "read": the store's pages go to the client
 *   client  sees that the answer took the token, or invalidates it itself
 *
 * driver.c: the driver, its configuration and threads. session.c: one end of a connection, and how
 * it is taken down. store.c: the server's side of requests. client.c: the client's. calls.c: calls
 * that pend, and memory.
 */
#pragma once

#include <ntddk.h>
#include <ntstrsafe.h>
#include <netioapi.h>
#include <ip2string.h>
#include <wsk.h>
#include <wskndk.h>
#include <ndkpi.h>

#define TAG           'wrMN'
#define SLOTS         4 /* requests of one session in progress */
#define SLOT_PAGES    16
#define SLOT_BYTES    (SLOT_PAGES * PAGE_SIZE)
#define STORE_BYTES   (SLOTS * SLOT_BYTES)
#define MESSAGE_BYTES 64
#define QUEUE_DEPTH                                                                                \
    (SLOTS * (SLOT_PAGES + 2)) /* a read of the store: a write a page, an answer                   \
                                */
#define LIMIT_SECONDS 60

/* Both ends are of one byte order here; a protocol would say which. */
typedef enum _OPERATION { StoreWrite = 1, StoreRead = 2 } OPERATION;

typedef struct _REQUEST {
    ULONG Operation, Slot, Offset, Length;
    UINT64 Address;
    UINT32 Token;
    BOOLEAN KeepToken; /* the client will invalidate it itself */
} REQUEST;

typedef struct _ANSWER {
    ULONG Slot;
    NTSTATUS Status;
} ANSWER;

C_ASSERT(sizeof(REQUEST) <= MESSAGE_BYTES && sizeof(ANSWER) <= MESSAGE_BYTES);

/* One call that may pend. */
typedef struct _CALL {
    KEVENT Done;
    NTSTATUS Status;
    NDK_OBJECT_HEADER *Object;
} CALL;

/* Memory of the nonpaged pool, and its pages as the adapter sees them. */
typedef struct _MEMORY {
    PUCHAR Va;
    PMDL Mdl;
    NDK_LOGICAL_ADDRESS_MAPPING *Lam;
} MEMORY;

/* What a signalled request has as its context. Silent ones have none: a signalled one behind them
 * speaks for them. */
typedef struct _SLOT SLOT;
typedef VOID (*WORK_DONE)(SLOT *Slot, const NDK_RESULT_EX *Result);
typedef struct _WORK {
    SLOT *Slot;
    WORK_DONE Done;
} WORK;

struct _SLOT {
    struct _SESSION *Session;
    ULONG Index;
    NDK_MR *Frmr;
    WORK Received, Sent, Moved; /* Moved: a read, an invalidation */
    PUCHAR ReceiveBuffer, SendBuffer;

    /* Client: what the thread waits for. */
    KEVENT Done;
    LONG Waiting;
    UINT32 Token;
    BOOLEAN TokenTaken;
    NTSTATUS Status;

    /* Server: a request is begun when it is there and the slot's last answer is out. Used by the CQ
     * callback only, which never runs twice at once. */
    ULONG Ready;
    REQUEST Request;
};

typedef struct _END {
    NDK_ADAPTER *Adapter;
    NDK_ADAPTER_INFO Info;
    NDK_PD *Pd;
    UINT32 PrivilegedToken;
} END;

/*
 * One end of a connection. Rundown: whoever posts a request holds it until the request's completion
 * has been seen. When the teardown waits for it nothing can be posted any more, and nothing that
 * was posted touches the session's memory. Lock: polls and arms of Cq, which is NULL once it is
 * being closed.
 */
typedef struct _SESSION {
    EX_RUNDOWN_REF Rundown;
    KSPIN_LOCK Lock;
    END *End;
    NDK_CQ *Cq;
    NDK_QP *Qp;
    NDK_CONNECTOR *Connector;
    BOOLEAN Connected;
    NDK_MR *MessageMr;
    UINT32 MessageToken;
    MEMORY Data, Messages;
    KEVENT Broken; /* the connection ended, or never should have been */
    LONG Status;   /* the first failure */
    SLOT Slots[SLOTS];
} SESSION;

/* ---- calls.c ---- */

CALL *Begin(_Out_ CALL *Call);
NTSTATUS End(_Inout_ CALL *Call, _In_ NTSTATUS Status, _Out_opt_ PVOID ObjectPlace);
VOID Close(_In_ PVOID Object, _In_ NDK_FN_CLOSE_OBJECT Function);
BOOLEAN WaitFirst(_In_ PKEVENT First, _In_ PKEVENT Second, _In_ ULONG Seconds);
VOID OnCreated(_In_opt_ PVOID Context, _In_ NTSTATUS Status, _In_ NDK_OBJECT_HEADER *Object);
VOID OnRequest(_In_opt_ PVOID Context, _In_ NTSTATUS Status);
VOID OnClosed(_In_opt_ PVOID Context);
NTSTATUS MemoryAllocate(_Out_ MEMORY *Memory, _In_ ULONG Length);
NTSTATUS MemoryMap(_In_ END *OfEnd, _Inout_ MEMORY *Memory);
VOID MemoryFree(_In_ END *OfEnd, _Inout_ MEMORY *Memory);

/* ---- session.c ---- */

SESSION *SessionOpen(_In_ END *OfEnd, _In_ BOOLEAN Server, _Out_ NTSTATUS *Status);
VOID SessionBreak(_In_ SESSION *Session, _In_ NTSTATUS Status);
VOID SessionClose(_In_ SESSION *Session);
VOID OnDisconnect(_In_opt_ PVOID Context);
BOOLEAN Hold(_In_ SESSION *Session);
NTSTATUS Posted(_In_ SESSION *Session, _In_ NTSTATUS Status);
NTSTATUS PostReceive(_In_ SLOT *Slot);
NTSTATUS PostSend(_In_ SLOT *Slot, _In_ ULONG Length, _In_ UINT32 Token);
NTSTATUS PostFastRegister(_In_ SLOT *Slot, _In_ ULONG Offset, _In_ ULONG Length, _In_ ULONG Rights);

/* ---- store.c, client.c ---- */

VOID OnStoreReceived(_In_ SLOT *Slot, _In_ const NDK_RESULT_EX *Result);
VOID OnStoreSent(_In_ SLOT *Slot, _In_ const NDK_RESULT_EX *Result);
VOID OnStoreMoved(_In_ SLOT *Slot, _In_ const NDK_RESULT_EX *Result);
VOID OnClientReceived(_In_ SLOT *Slot, _In_ const NDK_RESULT_EX *Result);
VOID OnClientStep(_In_ SLOT *Slot, _In_ const NDK_RESULT_EX *Result);
NTSTATUS ClientRounds(_In_ SESSION *Session, _In_ ULONG Rounds);
