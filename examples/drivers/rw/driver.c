// SPDX-License-Identifier: MIT
/*
 * driver.c - the driver: where it finds its values, its one or two threads, its end. See rw.h.
 *
 * Values below its service key's Parameters: Role (REG_SZ; both, server, client), LocalAddress,
 * TargetAddress (REG_SZ; 127.0.0.1), Port (REG_DWORD; 0: any, the server tells which), IfIndex
 * (REG_DWORD; none: the first interface of type loopback), Rounds (REG_DWORD; 16). In the role of a
 * server alone it serves one client after the other until it is unloaded. Built for Windows it
 * needs netio.lib.
 */
#include "rw.h"

DRIVER_INITIALIZE DriverEntry;
static DRIVER_UNLOAD Unload;
static KSTART_ROUTINE ServerMain, ClientMain;

#ifdef ALLOC_PRAGMA
#pragma alloc_text(INIT, DriverEntry)
#pragma alloc_text(PAGE, Unload)
#endif

#define IF_TYPE_LO 24 /* IF_TYPE_SOFTWARE_LOOPBACK */
#define MAX_INDEX  4096
#define NO_MORE    ((PVOID)(ULONG_PTR)1)

static WSK_REGISTRATION Registration;
static WSK_PROVIDER_NPI Provider;
static WSK_PROVIDER_NDK_DISPATCH Ndk;
static PKTHREAD ServerThread, ClientThread;
static KEVENT StopEvent, ListenEvent, ArrivedEvent;
static PVOID volatile Incoming; /* a connector that waits for the server's thread, or NO_MORE */
static NTSTATUS ServerStatus, ClientStatus;

static struct {
    WCHAR Role[16];
    ULONG IfIndex, Port, Rounds;
    SOCKADDR_IN Local, Target;
} Config;

/* ---- an end ---- */

static NTSTATUS EndOpen(_Out_ END *OfEnd)
{
    NDK_VERSION version = {1, 2};
    ULONG size = sizeof(OfEnd->Info);
    NTSTATUS status;
    CALL call;

    RtlZeroMemory(OfEnd, sizeof(*OfEnd));
    status = Ndk.WskOpenNdkAdapter(Provider.Client, version, Config.IfIndex, &OfEnd->Adapter);
    if (!NT_SUCCESS(status))
        return status;
    status = OfEnd->Adapter->Dispatch->NdkQueryAdapterInfo(OfEnd->Adapter, &OfEnd->Info, &size);
    if (NT_SUCCESS(status))
        status = End(&call,
                     OfEnd->Adapter->Dispatch->NdkCreatePd(OfEnd->Adapter, OnCreated, Begin(&call),
                                                           &OfEnd->Pd),
                     &OfEnd->Pd);
    if (NT_SUCCESS(status))
        OfEnd->Pd->Dispatch->NdkGetPrivilegedMemoryRegionToken(OfEnd->Pd, &OfEnd->PrivilegedToken);
    return status;
}

static VOID EndClose(_In_ END *OfEnd)
{
    if (OfEnd->Pd)
        Close(OfEnd->Pd, OfEnd->Pd->Dispatch->NdkClosePd);
    if (OfEnd->Adapter)
        Ndk.WskCloseNdkAdapter(Provider.Client, OfEnd->Adapter);
}

/* ---- server ---- */

/* One connector may wait for the thread; a further one is told to come again. */
static VOID OnConnect(_In_opt_ PVOID Context, _In_ NDK_CONNECTOR *Connector)
{
    UNREFERENCED_PARAMETER(Context);
    if (InterlockedCompareExchangePointer(&Incoming, Connector, NULL) == NULL) {
        KeSetEvent(&ArrivedEvent, IO_NO_INCREMENT, FALSE);
        return;
    }
    Connector->Dispatch->NdkReject(Connector, NULL, 0);
    Connector->Dispatch->NdkCloseConnector(&Connector->Header, OnClosed, NULL);
}

static NTSTATUS Listen(_In_ END *OfEnd, _Out_ NDK_LISTENER **Listener)
{
    SOCKADDR_IN address = Config.Local;
    ULONG size = sizeof(address);
    CALL call;
    NTSTATUS status;

    address.sin_port = RtlUshortByteSwap((USHORT)Config.Port);
    status = End(&call,
                 OfEnd->Adapter->Dispatch->NdkCreateListener(OfEnd->Adapter, OnConnect, NULL,
                                                             OnCreated, Begin(&call), Listener),
                 Listener);
    if (NT_SUCCESS(status))
        status = End(&call,
                     (*Listener)->Dispatch->NdkListen(*Listener, (PSOCKADDR)&address,
                                                      sizeof(address), OnRequest, Begin(&call)),
                     NULL);
    if (NT_SUCCESS(status))
        status = (*Listener)->Dispatch->NdkGetLocalAddress(*Listener, (PSOCKADDR)&address, &size);
    if (!NT_SUCCESS(status))
        return status;
    Config.Target.sin_port = address.sin_port; /* for a client of this driver */
    DbgPrint("rw: listening on port %u\n", RtlUshortByteSwap(address.sin_port));
    KeSetEvent(&ListenEvent, IO_NO_INCREMENT, FALSE);
    return status;
}

/* The next client, from its arrival to its end. */
static NTSTATUS ServeOne(_In_ END *OfEnd)
{
    SESSION *session;
    NTSTATUS status;
    CALL call;

    session = SessionOpen(OfEnd, TRUE, &status);
    if (!session)
        return status;
    if (!WaitFirst(&ArrivedEvent, &StopEvent, 0)) {
        SessionClose(session);
        return STATUS_SUCCESS;
    }
    session->Connector = InterlockedExchangePointer(&Incoming, NULL);
    status = End(&call,
                 session->Connector->Dispatch->NdkAccept(
                     session->Connector, session->Qp, OfEnd->Info.MaxInboundReadLimit,
                     OfEnd->Info.MaxOutboundReadLimit, NULL, 0, OnDisconnect, session, OnRequest,
                     Begin(&call)),
                 NULL);
    if (NT_SUCCESS(status)) {
        session->Connected = TRUE;
        WaitFirst(&session->Broken, &StopEvent, 0);
        status = session->Status;
    }
    SessionClose(session);
    return status;
}

static VOID ServerMain(_In_ PVOID Context)
{
    NDK_LISTENER *listener = NULL;
    NDK_CONNECTOR *late;
    END end;
    BOOLEAN forever = Config.Role[0] == L's';

    UNREFERENCED_PARAMETER(Context);
    ServerStatus = EndOpen(&end);
    if (NT_SUCCESS(ServerStatus))
        ServerStatus = Listen(&end, &listener);
    if (NT_SUCCESS(ServerStatus)) {
        do {
            NTSTATUS status = ServeOne(&end);

            if (!NT_SUCCESS(status))
                DbgPrint("rw: server: a session ended with status 0x%08x\n", status);
            if (!forever)
                ServerStatus = status;
        } while (forever && KeReadStateEvent(&StopEvent) == 0);
    }
    KeSetEvent(&ListenEvent, IO_NO_INCREMENT, FALSE); /* nobody need wait for it */
    late = InterlockedExchangePointer(&Incoming, NO_MORE);
    if (late)
        Close(late, late->Dispatch->NdkCloseConnector);
    if (listener)
        Close(listener, listener->Dispatch->NdkCloseListener);
    EndClose(&end);
    PsTerminateSystemThread(ServerStatus);
}

/* ---- client ---- */

static NTSTATUS Connect(_In_ END *OfEnd, _In_ SESSION *Session)
{
    SOCKADDR_IN from = Config.Local;
    NTSTATUS status;
    CALL call;

    status = End(&call,
                 OfEnd->Adapter->Dispatch->NdkCreateConnector(OfEnd->Adapter, OnCreated,
                                                              Begin(&call), &Session->Connector),
                 &Session->Connector);
    if (NT_SUCCESS(status))
        status = End(&call,
                     Session->Connector->Dispatch->NdkConnect(
                         Session->Connector, Session->Qp, (PSOCKADDR)&from, sizeof(from),
                         (PSOCKADDR)&Config.Target, sizeof(Config.Target),
                         OfEnd->Info.MaxInboundReadLimit, OfEnd->Info.MaxOutboundReadLimit, NULL, 0,
                         OnRequest, Begin(&call)),
                     NULL);
    if (NT_SUCCESS(status))
        status = End(&call,
                     Session->Connector->Dispatch->NdkCompleteConnect(
                         Session->Connector, OnDisconnect, Session, OnRequest, Begin(&call)),
                     NULL);
    Session->Connected = NT_SUCCESS(status);
    return status;
}

static VOID ClientMain(_In_ PVOID Context)
{
    SESSION *session = NULL;
    NTSTATUS status;
    END end;

    UNREFERENCED_PARAMETER(Context);
    status = EndOpen(&end);
    if (NT_SUCCESS(status))
        session = SessionOpen(&end, FALSE, &status);
    if (session) {
        if (Config.Role[0] != L'c')
            KeWaitForSingleObject(&ListenEvent, Executive, KernelMode, FALSE, NULL);
        status = Connect(&end, session);
        if (NT_SUCCESS(status))
            status = ClientRounds(session, Config.Rounds);
        if (NT_SUCCESS(status))
            DbgPrint("rw: %u rounds of %u writes and reads compared\n", Config.Rounds, SLOTS);
        SessionClose(session);
    }
    if (!NT_SUCCESS(status))
        KeSetEvent(&StopEvent, IO_NO_INCREMENT, FALSE); /* the server need not wait for us */
    EndClose(&end);
    ClientStatus = status;
    PsTerminateSystemThread(status);
}

/* ---- where to ---- */

static VOID ReadValue(_In_ HANDLE Key, _In_ PCWSTR Name, _In_ ULONG Type, _Out_ PVOID Value,
                      _In_ ULONG Size)
{
    struct {
        KEY_VALUE_PARTIAL_INFORMATION Info;
        WCHAR More[64];
    } buffer;
    UNICODE_STRING name;
    ULONG size;

    RtlInitUnicodeString(&name, Name);
    if (NT_SUCCESS(ZwQueryValueKey(Key, &name, KeyValuePartialInformation, &buffer, sizeof(buffer),
                                   &size)) &&
        buffer.Info.Type == Type && buffer.Info.DataLength <= Size)
        RtlCopyMemory(Value, buffer.Info.Data, buffer.Info.DataLength);
}

static VOID ReadAddress(_In_ HANDLE Key, _In_ PCWSTR Name, _Inout_ SOCKADDR_IN *Address)
{
    WCHAR text[32] = L"";
    PCWSTR end;

    ReadValue(Key, Name, REG_SZ, text, sizeof(text) - sizeof(WCHAR));
    if (text[0])
        RtlIpv4StringToAddressW(text, TRUE, &end, &Address->sin_addr);
}

static VOID ReadParameters(_In_ PUNICODE_STRING RegistryPath)
{
    OBJECT_ATTRIBUTES attributes;
    UNICODE_STRING below;
    HANDLE service, key;

    InitializeObjectAttributes(&attributes, RegistryPath, OBJ_CASE_INSENSITIVE | OBJ_KERNEL_HANDLE,
                               NULL, NULL);
    if (!NT_SUCCESS(ZwOpenKey(&service, KEY_READ, &attributes)))
        return;
    RtlInitUnicodeString(&below, L"Parameters");
    InitializeObjectAttributes(&attributes, &below, OBJ_CASE_INSENSITIVE | OBJ_KERNEL_HANDLE,
                               service, NULL);
    if (NT_SUCCESS(ZwOpenKey(&key, KEY_READ, &attributes))) {
        ReadValue(key, L"Role", REG_SZ, Config.Role, sizeof(Config.Role) - sizeof(WCHAR));
        ReadValue(key, L"IfIndex", REG_DWORD, &Config.IfIndex, sizeof(ULONG));
        ReadValue(key, L"Port", REG_DWORD, &Config.Port, sizeof(ULONG));
        ReadValue(key, L"Rounds", REG_DWORD, &Config.Rounds, sizeof(ULONG));
        ReadAddress(key, L"LocalAddress", &Config.Local);
        ReadAddress(key, L"TargetAddress", &Config.Target);
        ZwClose(key);
    }
    ZwClose(service);
}

static VOID Configure(_In_ PUNICODE_STRING RegistryPath)
{
    MIB_IF_ROW2 row;
    ULONG i;

    Config.Rounds = 16;
    Config.Local.sin_family = Config.Target.sin_family = AF_INET;
    Config.Local.sin_addr.s_addr = RtlUlongByteSwap(INADDR_LOOPBACK);
    Config.Target.sin_addr = Config.Local.sin_addr;
    ReadParameters(RegistryPath);
    Config.Target.sin_port = RtlUshortByteSwap((USHORT)Config.Port);
    for (i = 1; Config.IfIndex == 0 && i < MAX_INDEX; i++) {
        RtlZeroMemory(&row, sizeof(row));
        row.InterfaceIndex = i;
        if (GetIfEntry2(&row) == STATUS_SUCCESS && row.Type == IF_TYPE_LO)
            Config.IfIndex = i;
    }
}

/* ---- the driver ---- */

static VOID Join(_In_opt_ PKTHREAD Thread)
{
    if (!Thread)
        return;
    KeWaitForSingleObject(Thread, Executive, KernelMode, FALSE, NULL);
    ObDereferenceObject(Thread);
}

static VOID Unload(_In_ PDRIVER_OBJECT DriverObject)
{
    NTSTATUS status;

    PAGED_CODE();
    UNREFERENCED_PARAMETER(DriverObject);
    KeSetEvent(&StopEvent, IO_NO_INCREMENT, FALSE);
    Join(ClientThread);
    Join(ServerThread);
    WskReleaseProviderNPI(&Registration);
    WskDeregister(&Registration);
    status = NT_SUCCESS(ClientStatus) ? ServerStatus : ClientStatus;
    DbgPrint("rw: %s, status 0x%08x\n", NT_SUCCESS(status) ? "done" : "failed", status);
}

static NTSTATUS StartThread(_In_ PKSTART_ROUTINE Routine, _Out_ PKTHREAD *Thread)
{
    HANDLE handle;
    NTSTATUS status;

    status = PsCreateSystemThread(&handle, THREAD_ALL_ACCESS, NULL, NULL, NULL, Routine, NULL);
    if (!NT_SUCCESS(status))
        return status;
    ObReferenceObjectByHandle(handle, THREAD_ALL_ACCESS, NULL, KernelMode, (PVOID *)Thread, NULL);
    ZwClose(handle);
    return STATUS_SUCCESS;
}

static NTSTATUS Start(void)
{
    NTSTATUS status;

    status =
        Provider.Dispatch->WskControlClient(Provider.Client, WSKNDK_GET_WSK_PROVIDER_NDK_DISPATCH,
                                            0, NULL, sizeof(Ndk), &Ndk, NULL, NULL);
    if (NT_SUCCESS(status) && Config.Role[0] != L'c')
        status = StartThread(ServerMain, &ServerThread);
    if (NT_SUCCESS(status) && Config.Role[0] != L's')
        status = StartThread(ClientMain, &ClientThread);
    if (!NT_SUCCESS(status) && ServerThread) {
        KeSetEvent(&StopEvent, IO_NO_INCREMENT, FALSE);
        Join(ServerThread);
    }
    return status;
}

NTSTATUS DriverEntry(_In_ PDRIVER_OBJECT DriverObject, _In_ PUNICODE_STRING RegistryPath)
{
    static const WSK_CLIENT_DISPATCH dispatch = {MAKE_WSK_VERSION(1, 0), 0, NULL};
    WSK_CLIENT_NPI npi = {NULL, &dispatch};
    NTSTATUS status;

    Configure(RegistryPath);
    KeInitializeEvent(&StopEvent, NotificationEvent, FALSE);
    KeInitializeEvent(&ListenEvent, NotificationEvent, FALSE);
    KeInitializeEvent(&ArrivedEvent, SynchronizationEvent, FALSE);
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
