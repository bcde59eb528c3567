// SPDX-License-Identifier: MIT
/*
 * sockets.c - NDK as sockets: SockListen, SockConnect, SockAccept, SockSend, SockReceive,
 * SockClose, each of which waits. A server thread echoes what a client thread sends. Each socket
 * has a CQ of its own, a posted receive for each buffer that the peer may fill, and sends from the
 * same memory: a client that has an echo back owns both buffers again, so that no receive is ever
 * missing.
 *
 * Values below its service key's Parameters: IfIndex (REG_DWORD; none: the first interface of type
 * loopback), LocalAddress (REG_SZ; 127.0.0.1).
 */
#include <ntddk.h>
#include <ntstrsafe.h>
#include <netioapi.h>
#include <ip2string.h>
#include <wsk.h>
#include <wskndk.h>
#include <ndkpi.h>

DRIVER_INITIALIZE DriverEntry;
static DRIVER_UNLOAD Unload;

#define TAG         'kcoS'
#define BUFFER_SIZE PAGE_SIZE /* half of it to send from, half to receive into */
#define MESSAGES    200
#define IF_TYPE_LO  24 /* IF_TYPE_SOFTWARE_LOOPBACK */
#define MAX_INDEX   4096

/* One call that may pend. */
typedef struct _CALL {
    KEVENT Done;
    NTSTATUS Status;
    NDK_OBJECT_HEADER *Object;
} CALL;

/* One end of a connection. Used by one thread at a time. */
typedef struct _SOCK {
    NDK_CQ *Cq;
    NDK_QP *Qp;
    NDK_MR *Mr;
    NDK_CONNECTOR *Connector;
    KEVENT CqEvent;
    PMDL Mdl;
    UCHAR *Buffer;
    BOOLEAN Sent, Received; /* completions that came while the other was waited for */
    ULONG Length;
} SOCK;

static WSK_REGISTRATION Registration;
static WSK_PROVIDER_NPI Provider;
static WSK_PROVIDER_NDK_DISPATCH Ndk;
static PKTHREAD Thread;
static ULONG IfIndex;
static SOCKADDR_IN LocalAddress;

static NDK_ADAPTER *Adapter;
static NDK_PD *Pd;
static NDK_LISTENER *Listener;
static NDK_CONNECTOR *Incoming;
static KEVENT ConnectEvent;

/* ---- calls that pend ---- */

static VOID OnCreated(PVOID Context, NTSTATUS Status, NDK_OBJECT_HEADER *Object)
{
    CALL *call = Context;

    call->Status = Status;
    call->Object = Object;
    KeSetEvent(&call->Done, IO_NO_INCREMENT, FALSE);
}

static VOID OnRequest(PVOID Context, NTSTATUS Status)
{
    OnCreated(Context, Status, NULL);
}

static VOID OnClosed(PVOID Context)
{
    OnCreated(Context, STATUS_SUCCESS, NULL);
}

static CALL *Begin(CALL *Call)
{
    KeInitializeEvent(&Call->Done, NotificationEvent, FALSE);
    Call->Object = NULL;
    return Call;
}

/* The final status of a call; for a create that pended the object, too. */
static NTSTATUS End(CALL *Call, NTSTATUS Status, PVOID ObjectPlace)
{
    if (Status != STATUS_PENDING)
        return Status;
    KeWaitForSingleObject(&Call->Done, Executive, KernelMode, FALSE, NULL);
    if (NT_SUCCESS(Call->Status) && ObjectPlace)
        *(NDK_OBJECT_HEADER **)ObjectPlace = Call->Object;
    return Call->Status;
}

static void Close(NDK_OBJECT_HEADER *Object, NDK_FN_CLOSE_OBJECT Function)
{
    CALL call;

    End(&call, Function(Object, OnClosed, Begin(&call)), NULL);
}

/* ---- events ---- */

static VOID OnCq(PVOID Context, NTSTATUS CqStatus)
{
    SOCK *sock = Context;

    UNREFERENCED_PARAMETER(CqStatus);
    KeSetEvent(&sock->CqEvent, IO_NO_INCREMENT, FALSE);
}

static VOID OnConnect(PVOID Context, NDK_CONNECTOR *Connector)
{
    UNREFERENCED_PARAMETER(Context);
    Incoming = Connector;
    KeSetEvent(&ConnectEvent, IO_NO_INCREMENT, FALSE);
}

/* ---- sockets ---- */

static NTSTATUS SockPost(SOCK *Sock)
{
    NDK_SGE sge;

    sge.VirtualAddress = Sock->Buffer + BUFFER_SIZE / 2;
    sge.Length = BUFFER_SIZE / 2;
    sge.MemoryRegionToken = Sock->Mr->Dispatch->NdkGetLocalTokenFromMr(Sock->Mr);
    return Sock->Qp->Dispatch->NdkReceive(Sock->Qp, &Sock->Received, &sge, 1);
}

/* Memory, queues, and the first receive, which must be there before the connection is. */
static NTSTATUS SockOpen(SOCK *Sock)
{
    CALL call;
    NTSTATUS status;

    RtlZeroMemory(Sock, sizeof(*Sock));
    KeInitializeEvent(&Sock->CqEvent, SynchronizationEvent, FALSE);
    Sock->Buffer = ExAllocatePool2(POOL_FLAG_NON_PAGED, BUFFER_SIZE, TAG);
    Sock->Mdl = Sock->Buffer ? IoAllocateMdl(Sock->Buffer, BUFFER_SIZE, FALSE, FALSE, NULL) : NULL;
    if (!Sock->Mdl)
        return STATUS_INSUFFICIENT_RESOURCES;
    MmBuildMdlForNonPagedPool(Sock->Mdl);
    status = End(&call,
                 Adapter->Dispatch->NdkCreateCq(Adapter, 8, OnCq, Sock, NULL, OnCreated,
                                                Begin(&call), &Sock->Cq),
                 &Sock->Cq);
    if (NT_SUCCESS(status))
        status = End(&call,
                     Pd->Dispatch->NdkCreateQp(Pd, Sock->Cq, Sock->Cq, Sock, 2, 2, 1, 1, 0,
                                               OnCreated, Begin(&call), &Sock->Qp),
                     &Sock->Qp);
    if (NT_SUCCESS(status))
        status =
            End(&call, Pd->Dispatch->NdkCreateMr(Pd, FALSE, OnCreated, Begin(&call), &Sock->Mr),
                &Sock->Mr);
    if (NT_SUCCESS(status))
        status = End(&call,
                     Sock->Mr->Dispatch->NdkRegisterMr(Sock->Mr, Sock->Mdl, BUFFER_SIZE,
                                                       NDK_MR_FLAG_ALLOW_LOCAL_WRITE, OnRequest,
                                                       Begin(&call)),
                     NULL);
    return NT_SUCCESS(status) ? SockPost(Sock) : status;
}

/* Waits until the completion that sets Flag has come. */
static NTSTATUS SockWait(SOCK *Sock, BOOLEAN *Flag)
{
    LARGE_INTEGER limit;
    NDK_RESULT result;

    limit.QuadPart = -60 * 10000000LL;
    while (!*Flag) {
        if (Sock->Cq->Dispatch->NdkGetCqResults(Sock->Cq, &result, 1) == 1) {
            if (!NT_SUCCESS(result.Status))
                return result.Status;
            *(BOOLEAN *)result.RequestContext = TRUE;
            if (result.RequestContext == &Sock->Received)
                Sock->Length = result.BytesTransferred;
            continue;
        }
        Sock->Cq->Dispatch->NdkArmCq(Sock->Cq, NDK_CQ_NOTIFY_ANY);
        if (KeWaitForSingleObject(&Sock->CqEvent, Executive, KernelMode, FALSE, &limit) ==
            STATUS_TIMEOUT)
            return STATUS_IO_TIMEOUT;
    }
    *Flag = FALSE;
    return STATUS_SUCCESS;
}

static NTSTATUS SockSend(SOCK *Sock, const void *Data, ULONG Length)
{
    NDK_SGE sge;
    NTSTATUS status;

    if (Length > BUFFER_SIZE / 2)
        return STATUS_INVALID_PARAMETER;
    RtlCopyMemory(Sock->Buffer, Data, Length);
    sge.VirtualAddress = Sock->Buffer;
    sge.Length = Length;
    sge.MemoryRegionToken = Sock->Mr->Dispatch->NdkGetLocalTokenFromMr(Sock->Mr);
    status = Sock->Qp->Dispatch->NdkSend(Sock->Qp, &Sock->Sent, &sge, 1, 0);
    return NT_SUCCESS(status) ? SockWait(Sock, &Sock->Sent) : status;
}

/* The next message; Data has room for half a buffer. The buffer is posted again before the caller
 * answers, since the answer allows the peer to send. */
static NTSTATUS SockReceive(SOCK *Sock, void *Data, ULONG *Length)
{
    NTSTATUS status = SockWait(Sock, &Sock->Received);

    if (!NT_SUCCESS(status))
        return status;
    *Length = Sock->Length;
    RtlCopyMemory(Data, Sock->Buffer + BUFFER_SIZE / 2, Sock->Length);
    return SockPost(Sock);
}

static NTSTATUS SockListen(SOCKADDR_IN *Address)
{
    ULONG size = sizeof(*Address);
    CALL call;
    NTSTATUS status;

    status = End(&call,
                 Adapter->Dispatch->NdkCreateListener(Adapter, OnConnect, NULL, OnCreated,
                                                      Begin(&call), &Listener),
                 &Listener);
    if (NT_SUCCESS(status)) /* port 0: any that is free */
        status = End(&call,
                     Listener->Dispatch->NdkListen(Listener, (PSOCKADDR)&LocalAddress,
                                                   sizeof(LocalAddress), OnRequest, Begin(&call)),
                     NULL);
    if (NT_SUCCESS(status))
        status = Listener->Dispatch->NdkGetLocalAddress(Listener, (PSOCKADDR)Address, &size);
    return status;
}

static NTSTATUS SockAccept(SOCK *Sock)
{
    LARGE_INTEGER limit;
    CALL call;

    limit.QuadPart = -60 * 10000000LL;
    if (KeWaitForSingleObject(&ConnectEvent, Executive, KernelMode, FALSE, &limit) ==
        STATUS_TIMEOUT)
        return STATUS_IO_TIMEOUT;
    Sock->Connector = Incoming;
    return End(&call,
               Incoming->Dispatch->NdkAccept(Incoming, Sock->Qp, 0, 0, NULL, 0, NULL, NULL,
                                             OnRequest, Begin(&call)),
               NULL);
}

static NTSTATUS SockConnect(SOCK *Sock, SOCKADDR_IN *To)
{
    CALL call;
    NTSTATUS status;

    status = End(
        &call,
        Adapter->Dispatch->NdkCreateConnector(Adapter, OnCreated, Begin(&call), &Sock->Connector),
        &Sock->Connector);
    if (NT_SUCCESS(status))
        status = End(&call,
                     Sock->Connector->Dispatch->NdkConnect(
                         Sock->Connector, Sock->Qp, (PSOCKADDR)&LocalAddress, sizeof(LocalAddress),
                         (PSOCKADDR)To, sizeof(*To), 0, 0, NULL, 0, OnRequest, Begin(&call)),
                     NULL);
    if (NT_SUCCESS(status))
        status = End(&call,
                     Sock->Connector->Dispatch->NdkCompleteConnect(Sock->Connector, NULL, NULL,
                                                                   OnRequest, Begin(&call)),
                     NULL);
    return status;
}

static void SockClose(SOCK *Sock)
{
    CALL call;

    if (Sock->Connector) {
        End(&call,
            Sock->Connector->Dispatch->NdkDisconnect(Sock->Connector, OnRequest, Begin(&call)),
            NULL);
        Close(&Sock->Connector->Header, Sock->Connector->Dispatch->NdkCloseConnector);
    }
    if (Sock->Qp)
        Close(&Sock->Qp->Header, Sock->Qp->Dispatch->NdkCloseQp);
    if (Sock->Mr)
        Close(&Sock->Mr->Header, Sock->Mr->Dispatch->NdkCloseMr);
    if (Sock->Cq)
        Close(&Sock->Cq->Header, Sock->Cq->Dispatch->NdkCloseCq);
    if (Sock->Mdl)
        IoFreeMdl(Sock->Mdl);
    if (Sock->Buffer)
        ExFreePoolWithTag(Sock->Buffer, TAG);
}

/* ---- the two ends ---- */

static VOID Server(PVOID Context)
{
    UCHAR data[BUFFER_SIZE / 2];
    ULONG length, i;
    SOCK sock;
    NTSTATUS status;

    UNREFERENCED_PARAMETER(Context);
    status = SockOpen(&sock);
    if (NT_SUCCESS(status))
        status = SockAccept(&sock);
    for (i = 0; NT_SUCCESS(status) && i < MESSAGES; i++) {
        status = SockReceive(&sock, data, &length);
        if (NT_SUCCESS(status))
            status = SockSend(&sock, data, length);
    }
    SockClose(&sock);
    PsTerminateSystemThread(status);
}

static NTSTATUS Echoes(SOCKADDR_IN *To)
{
    UCHAR data[BUFFER_SIZE / 2], back[BUFFER_SIZE / 2];
    ULONG length, got, i;
    SOCK sock;
    NTSTATUS status;

    status = SockOpen(&sock);
    if (NT_SUCCESS(status))
        status = SockConnect(&sock, To);
    for (i = 0; NT_SUCCESS(status) && i < MESSAGES; i++) {
        length = 1 + i * 7 % sizeof(data);
        RtlFillMemory(data, length, (UCHAR)i);
        status = SockSend(&sock, data, length);
        if (NT_SUCCESS(status))
            status = SockReceive(&sock, back, &got);
        if (NT_SUCCESS(status) && (got != length || !RtlEqualMemory(data, back, length)))
            status = STATUS_DATA_ERROR;
    }
    SockClose(&sock);
    return status;
}

static NTSTATUS Both(void)
{
    SOCKADDR_IN to;
    CALL call;
    HANDLE handle;
    PKTHREAD server;
    NTSTATUS status;

    status = End(&call, Adapter->Dispatch->NdkCreatePd(Adapter, OnCreated, Begin(&call), &Pd), &Pd);
    if (NT_SUCCESS(status))
        status = SockListen(&to);
    if (NT_SUCCESS(status))
        status = PsCreateSystemThread(&handle, THREAD_ALL_ACCESS, NULL, NULL, NULL, Server, NULL);
    if (NT_SUCCESS(status)) {
        ObReferenceObjectByHandle(handle, THREAD_ALL_ACCESS, NULL, KernelMode, (PVOID *)&server,
                                  NULL);
        ZwClose(handle);
        status = Echoes(&to);
        KeWaitForSingleObject(server, Executive, KernelMode, FALSE, NULL);
        ObDereferenceObject(server);
    }
    if (Listener)
        Close(&Listener->Header, Listener->Dispatch->NdkCloseListener);
    if (Pd)
        Close(&Pd->Header, Pd->Dispatch->NdkClosePd);
    return status;
}

static VOID Main(PVOID Context)
{
    NDK_VERSION version = {1, 2};
    NTSTATUS status;

    UNREFERENCED_PARAMETER(Context);
    status = Ndk.WskOpenNdkAdapter(Provider.Client, version, IfIndex, &Adapter);
    if (NT_SUCCESS(status)) {
        status = Both();
        Ndk.WskCloseNdkAdapter(Provider.Client, Adapter);
    }
    DbgPrint("sockets: %s, status 0x%08x\n", NT_SUCCESS(status) ? "done" : "failed", status);
    PsTerminateSystemThread(status);
}

/* ---- where to ---- */

static void Configure(PUNICODE_STRING RegistryPath)
{
    struct {
        KEY_VALUE_PARTIAL_INFORMATION Info;
        WCHAR More[64];
    } value;
    OBJECT_ATTRIBUTES attributes;
    UNICODE_STRING name, below;
    PCWSTR end;
    HANDLE service, key;
    ULONG size;
    MIB_IF_ROW2 row;

    LocalAddress.sin_family = AF_INET;
    LocalAddress.sin_addr.s_addr = RtlUlongByteSwap(INADDR_LOOPBACK);
    InitializeObjectAttributes(&attributes, RegistryPath, OBJ_CASE_INSENSITIVE | OBJ_KERNEL_HANDLE,
                               NULL, NULL);
    if (NT_SUCCESS(ZwOpenKey(&service, KEY_READ, &attributes))) {
        RtlInitUnicodeString(&below, L"Parameters");
        InitializeObjectAttributes(&attributes, &below, OBJ_CASE_INSENSITIVE | OBJ_KERNEL_HANDLE,
                                   service, NULL);
        if (NT_SUCCESS(ZwOpenKey(&key, KEY_READ, &attributes))) {
            RtlInitUnicodeString(&name, L"IfIndex");
            if (NT_SUCCESS(ZwQueryValueKey(key, &name, KeyValuePartialInformation, &value,
                                           sizeof(value), &size)) &&
                value.Info.Type == REG_DWORD)
                RtlCopyMemory(&IfIndex, value.Info.Data, sizeof(IfIndex));
            RtlInitUnicodeString(&name, L"LocalAddress");
            if (NT_SUCCESS(ZwQueryValueKey(key, &name, KeyValuePartialInformation, &value,
                                           sizeof(value), &size)) &&
                value.Info.Type == REG_SZ)
                RtlIpv4StringToAddressW((PCWSTR)value.Info.Data, TRUE, &end,
                                        &LocalAddress.sin_addr);
            ZwClose(key);
        }
        ZwClose(service);
    }
    for (ULONG i = 1; IfIndex == 0 && i < MAX_INDEX; i++) {
        RtlZeroMemory(&row, sizeof(row));
        row.InterfaceIndex = i;
        if (GetIfEntry2(&row) == STATUS_SUCCESS && row.Type == IF_TYPE_LO)
            IfIndex = i;
    }
}

static VOID Unload(PDRIVER_OBJECT DriverObject)
{
    UNREFERENCED_PARAMETER(DriverObject);
    KeWaitForSingleObject(Thread, Executive, KernelMode, FALSE, NULL);
    ObDereferenceObject(Thread);
    WskReleaseProviderNPI(&Registration);
    WskDeregister(&Registration);
}

static NTSTATUS Start(void)
{
    HANDLE handle;
    NTSTATUS status;

    status =
        Provider.Dispatch->WskControlClient(Provider.Client, WSKNDK_GET_WSK_PROVIDER_NDK_DISPATCH,
                                            0, NULL, sizeof(Ndk), &Ndk, NULL, NULL);
    if (!NT_SUCCESS(status))
        return status;
    KeInitializeEvent(&ConnectEvent, SynchronizationEvent, FALSE);
    status = PsCreateSystemThread(&handle, THREAD_ALL_ACCESS, NULL, NULL, NULL, Main, NULL);
    if (!NT_SUCCESS(status))
        return status;
    ObReferenceObjectByHandle(handle, THREAD_ALL_ACCESS, NULL, KernelMode, (PVOID *)&Thread, NULL);
    ZwClose(handle);
    return STATUS_SUCCESS;
}

NTSTATUS DriverEntry(PDRIVER_OBJECT DriverObject, PUNICODE_STRING RegistryPath)
{
    static const WSK_CLIENT_DISPATCH dispatch = {MAKE_WSK_VERSION(1, 0), 0, NULL};
    WSK_CLIENT_NPI npi = {NULL, &dispatch};
    NTSTATUS status;

    Configure(RegistryPath);
    status = WskRegister(&npi, &Registration);
    if (!NT_SUCCESS(status))
        return status;
    status = WskCaptureProviderNPI(&Registration, WSK_INFINITE_WAIT, &Provider);
    if (NT_SUCCESS(status)) {
        status = Start();
        if (NT_SUCCESS(status)) {
            DriverObject->DriverUnload = Unload;
            return status;
        }
        WskReleaseProviderNPI(&Registration);
    }
    WskDeregister(&Registration);
    return status;
}
