// SPDX-License-Identifier: MIT
/*
 * minimal.c - the smallest NDK driver that talks: it opens an adapter, connects to itself and sends
 * one message. Built for Windows it needs netio.lib.
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

#define TAG         'niMN'
#define BUFFER_SIZE PAGE_SIZE
#define IF_TYPE_LO  24 /* IF_TYPE_SOFTWARE_LOOPBACK */
#define MAX_INDEX   4096

static const char Text[] = "hello, RDMA";

/* One call that may pend. */
typedef struct _CALL {
    KEVENT Done;
    NTSTATUS Status;
    NDK_OBJECT_HEADER *Object;
} CALL;

static WSK_REGISTRATION Registration;
static WSK_PROVIDER_NPI Provider;
static WSK_PROVIDER_NDK_DISPATCH Ndk;
static PKTHREAD Thread;
static ULONG IfIndex;
static SOCKADDR_IN LocalAddress;

/* What one connection with both its ends needs. */
static NDK_ADAPTER *Adapter;
static NDK_CQ *Cq;
static NDK_PD *Pd;
static NDK_QP *ClientQp, *ServerQp;
static NDK_LISTENER *Listener;
static NDK_CONNECTOR *Client, *Server;
static NDK_MR *Mr;
static PMDL Mdl;
static UCHAR *Buffer;
static KEVENT CqEvent, ConnectEvent;

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
    UNREFERENCED_PARAMETER(Context);
    UNREFERENCED_PARAMETER(CqStatus);
    KeSetEvent(&CqEvent, IO_NO_INCREMENT, FALSE);
}

static VOID OnConnect(PVOID Context, NDK_CONNECTOR *Connector)
{
    UNREFERENCED_PARAMETER(Context);
    Server = Connector;
    KeSetEvent(&ConnectEvent, IO_NO_INCREMENT, FALSE);
}

/* The next completion. */
static NTSTATUS Completion(NDK_RESULT *Result)
{
    LARGE_INTEGER limit;

    limit.QuadPart = -60 * 10000000LL;
    for (;;) {
        if (Cq->Dispatch->NdkGetCqResults(Cq, Result, 1) == 1)
            return Result->Status;
        Cq->Dispatch->NdkArmCq(Cq, NDK_CQ_NOTIFY_ANY);
        if (KeWaitForSingleObject(&CqEvent, Executive, KernelMode, FALSE, &limit) == STATUS_TIMEOUT)
            return STATUS_IO_TIMEOUT;
    }
}

/* ---- the way to a connection ---- */

static NTSTATUS Create(void)
{
    CALL call;
    NTSTATUS status;

    status = End(
        &call,
        Adapter->Dispatch->NdkCreateCq(Adapter, 16, OnCq, NULL, NULL, OnCreated, Begin(&call), &Cq),
        &Cq);
    if (NT_SUCCESS(status))
        status =
            End(&call, Adapter->Dispatch->NdkCreatePd(Adapter, OnCreated, Begin(&call), &Pd), &Pd);
    if (NT_SUCCESS(status))
        status = End(&call,
                     Pd->Dispatch->NdkCreateQp(Pd, Cq, Cq, NULL, 4, 4, 1, 1, 0, OnCreated,
                                               Begin(&call), &ClientQp),
                     &ClientQp);
    if (NT_SUCCESS(status))
        status = End(&call,
                     Pd->Dispatch->NdkCreateQp(Pd, Cq, Cq, NULL, 4, 4, 1, 1, 0, OnCreated,
                                               Begin(&call), &ServerQp),
                     &ServerQp);
    if (NT_SUCCESS(status))
        status =
            End(&call, Pd->Dispatch->NdkCreateMr(Pd, FALSE, OnCreated, Begin(&call), &Mr), &Mr);
    if (NT_SUCCESS(status))
        status =
            End(&call,
                Mr->Dispatch->NdkRegisterMr(Mr, Mdl, BUFFER_SIZE, NDK_MR_FLAG_ALLOW_LOCAL_WRITE,
                                            OnRequest, Begin(&call)),
                NULL);
    return status;
}

static NTSTATUS Connect(void)
{
    SOCKADDR_IN to, from = LocalAddress;
    ULONG size = sizeof(to);
    CALL call, connect, accept;
    NTSTATUS status, connecting, accepting;

    status = End(&call,
                 Adapter->Dispatch->NdkCreateListener(Adapter, OnConnect, NULL, OnCreated,
                                                      Begin(&call), &Listener),
                 &Listener);
    if (NT_SUCCESS(status)) /* port 0: any that is free */
        status = End(&call,
                     Listener->Dispatch->NdkListen(Listener, (PSOCKADDR)&from, sizeof(from),
                                                   OnRequest, Begin(&call)),
                     NULL);
    if (NT_SUCCESS(status))
        status = Listener->Dispatch->NdkGetLocalAddress(Listener, (PSOCKADDR)&to, &size);
    if (NT_SUCCESS(status))
        status = End(
            &call, Adapter->Dispatch->NdkCreateConnector(Adapter, OnCreated, Begin(&call), &Client),
            &Client);
    if (!NT_SUCCESS(status))
        return status;
    connecting = Client->Dispatch->NdkConnect(Client, ClientQp, (PSOCKADDR)&from, sizeof(from),
                                              (PSOCKADDR)&to, size, 0, 0, NULL, 0, OnRequest,
                                              Begin(&connect));
    if (!NT_SUCCESS(connecting))
        return connecting;
    KeWaitForSingleObject(&ConnectEvent, Executive, KernelMode, FALSE, NULL);
    accepting = Server->Dispatch->NdkAccept(Server, ServerQp, 0, 0, NULL, 0, NULL, NULL, OnRequest,
                                            Begin(&accept));
    status = End(&connect, connecting, NULL);
    if (NT_SUCCESS(status)) /* without it the accept does not complete */
        status =
            End(&call,
                Client->Dispatch->NdkCompleteConnect(Client, NULL, NULL, OnRequest, Begin(&call)),
                NULL);
    accepting = End(&accept, accepting, NULL);
    return NT_SUCCESS(status) ? accepting : status;
}

/* The client sends the first half of the buffer, the server receives into the second. */
static NTSTATUS SendText(void)
{
    NDK_SGE from, to;
    NDK_RESULT result;
    NTSTATUS status;
    ULONG left;

    from.VirtualAddress = Buffer;
    from.Length = sizeof(Text);
    to.VirtualAddress = Buffer + BUFFER_SIZE / 2;
    to.Length = BUFFER_SIZE / 2;
    from.MemoryRegionToken = to.MemoryRegionToken = Mr->Dispatch->NdkGetLocalTokenFromMr(Mr);
    RtlCopyMemory(Buffer, Text, sizeof(Text));
    status = ServerQp->Dispatch->NdkReceive(ServerQp, &to, &to, 1);
    if (NT_SUCCESS(status))
        status = ClientQp->Dispatch->NdkSend(ClientQp, &from, &from, 1, 0);
    for (left = 2; NT_SUCCESS(status) && left > 0; left--) {
        status = Completion(&result);
        if (NT_SUCCESS(status) && result.RequestContext == &to &&
            (result.BytesTransferred != sizeof(Text) ||
             !RtlEqualMemory(to.VirtualAddress, Text, sizeof(Text))))
            status = STATUS_DATA_ERROR;
    }
    return status;
}

/* Both ends at once: an end that disconnects waits for the other to do so, too. */
static void Disconnect(void)
{
    NTSTATUS client = STATUS_SUCCESS, server = STATUS_SUCCESS;
    CALL first, second;

    if (Client)
        client = Client->Dispatch->NdkDisconnect(Client, OnRequest, Begin(&first));
    if (Server)
        server = Server->Dispatch->NdkDisconnect(Server, OnRequest, Begin(&second));
    End(&first, client, NULL);
    End(&second, server, NULL);
}

static void Cleanup(void)
{
    Disconnect();
    if (Client)
        Close(&Client->Header, Client->Dispatch->NdkCloseConnector);
    if (Server)
        Close(&Server->Header, Server->Dispatch->NdkCloseConnector);
    if (Listener)
        Close(&Listener->Header, Listener->Dispatch->NdkCloseListener);
    if (ClientQp)
        Close(&ClientQp->Header, ClientQp->Dispatch->NdkCloseQp);
    if (ServerQp)
        Close(&ServerQp->Header, ServerQp->Dispatch->NdkCloseQp);
    if (Mr)
        Close(&Mr->Header, Mr->Dispatch->NdkCloseMr);
    if (Pd)
        Close(&Pd->Header, Pd->Dispatch->NdkClosePd);
    if (Cq)
        Close(&Cq->Header, Cq->Dispatch->NdkCloseCq);
    Ndk.WskCloseNdkAdapter(Provider.Client, Adapter);
}

static VOID Main(PVOID Context)
{
    NDK_VERSION version = {1, 2};
    NTSTATUS status;

    UNREFERENCED_PARAMETER(Context);
    status = Ndk.WskOpenNdkAdapter(Provider.Client, version, IfIndex, &Adapter);
    if (NT_SUCCESS(status)) {
        status = Create();
        if (NT_SUCCESS(status))
            status = Connect();
        if (NT_SUCCESS(status))
            status = SendText();
        if (NT_SUCCESS(status))
            DbgPrint("minimal: received \"%s\"\n", (char *)Buffer + BUFFER_SIZE / 2);
        Cleanup();
    }
    DbgPrint("minimal: %s, status 0x%08x\n", NT_SUCCESS(status) ? "done" : "failed", status);
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
    if (Thread) {
        KeWaitForSingleObject(Thread, Executive, KernelMode, FALSE, NULL);
        ObDereferenceObject(Thread);
    }
    IoFreeMdl(Mdl);
    ExFreePoolWithTag(Buffer, TAG);
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
    Buffer = ExAllocatePool2(POOL_FLAG_NON_PAGED, BUFFER_SIZE, TAG);
    Mdl = Buffer ? IoAllocateMdl(Buffer, BUFFER_SIZE, FALSE, FALSE, NULL) : NULL;
    if (!Mdl)
        return STATUS_INSUFFICIENT_RESOURCES;
    MmBuildMdlForNonPagedPool(Mdl);
    KeInitializeEvent(&CqEvent, SynchronizationEvent, FALSE);
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
        if (Mdl)
            IoFreeMdl(Mdl);
        if (Buffer)
            ExFreePoolWithTag(Buffer, TAG);
        WskReleaseProviderNPI(&Registration);
    }
    WskDeregister(&Registration);
    return status;
}
