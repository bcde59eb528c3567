// SPDX-License-Identifier: MIT
/*
 * driver.c - the driver: where it finds its values, its thread, its end. See server.h.
 *
 * Values below its service key's Parameters: Role (REG_SZ; both, server, client), LocalAddress,
 * TargetAddress (REG_SZ; 127.0.0.1), Port (REG_DWORD; 0: any, the server tells which), IfIndex
 * (REG_DWORD; none: the first interface of type loopback), Connections (REG_DWORD; 64), Bursts
 * (REG_DWORD; 16). In the role of a server alone it serves until it is unloaded. Built for Windows
 * it needs netio.lib.
 */
#include "server.h"

DRIVER_INITIALIZE DriverEntry;
static DRIVER_UNLOAD Unload;
static KSTART_ROUTINE Main;

#ifdef ALLOC_PRAGMA
#pragma alloc_text(INIT, DriverEntry)
#pragma alloc_text(PAGE, Unload)
#endif

#define IF_TYPE_LO 24 /* IF_TYPE_SOFTWARE_LOOPBACK */
#define MAX_INDEX  4096

CONFIG Config;
NDK_ADAPTER *Adapter;
NDK_ADAPTER_INFO Info;

static WSK_REGISTRATION Registration;
static WSK_PROVIDER_NPI Provider;
static WSK_PROVIDER_NDK_DISPATCH Ndk;
static PKTHREAD Thread;
static KEVENT StopEvent;

/* ---- what the thread does ---- */

static NTSTATUS Listen(_In_ SIDE *Side, _Out_ NDK_LISTENER **Listener)
{
    SOCKADDR_IN address = Config.Local;
    ULONG size = sizeof(address);
    NTSTATUS status;
    CALL call;

    address.sin_port = RtlUshortByteSwap((USHORT)Config.Port);
    status = End(&call,
                 Adapter->Dispatch->NdkCreateListener(Adapter, OnConnect, Side, OnCreated,
                                                      Begin(&call), Listener),
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
    Config.Target.sin_port = address.sin_port; /* for clients of this driver */
    DbgPrint("server: listening on port %u\n", RtlUshortByteSwap(address.sin_port));
    return status;
}

/* All clients at once, until the last has gone. */
static NTSTATUS Clients(_In_ SIDE *Side)
{
    ULONG messages = Config.Connections * Config.Bursts, i;

    for (i = 0; i < Side->Count; i++)
        StartClient(&Side->Connections[i]);
    ExWaitForRundownProtectionRelease(&Side->Rundown);
    if (NT_SUCCESS(Side->Status) && (ULONG)Side->Messages != messages)
        return STATUS_DATA_ERROR;
    return Side->Status;
}

static NTSTATUS Serve(_In_ NDK_PD *Pd)
{
    BOOLEAN both = Config.Role[0] == L'b';
    NTSTATUS status = STATUS_SUCCESS;
    NDK_LISTENER *listener = NULL;
    SIDE server, clients;

    RtlZeroMemory(&clients, sizeof(clients));
    RtlZeroMemory(&server, sizeof(server));
    if (Config.Role[0] != L'c') {
        status = SideOpen(&server, TRUE, Pd);
        if (NT_SUCCESS(status))
            status = Listen(&server, &listener);
    }
    if (NT_SUCCESS(status) && Config.Role[0] != L's') {
        status = SideOpen(&clients, FALSE, Pd);
        if (NT_SUCCESS(status))
            status = Clients(&clients);
    } else if (NT_SUCCESS(status)) {
        KeWaitForSingleObject(&StopEvent, Executive, KernelMode, FALSE, NULL);
    }
    if (listener) {
        listener->Dispatch->NdkControlConnectEvents(listener, TRUE);
        if (!both || !NT_SUCCESS(status))
            Stop(&server); /* else the clients' end is the connections' end */
        ExWaitForRundownProtectionRelease(&server.Rundown);
        Close(listener, listener->Dispatch->NdkCloseListener);
        if (NT_SUCCESS(status))
            status = server.Status;
        if (both && NT_SUCCESS(status) && server.Messages != clients.Messages * BURST)
            status = STATUS_DATA_ERROR;
        DbgPrint("server: %d connections, %d messages, %d notifications\n", server.Ended,
                 server.Messages, server.Notifications);
    }
    SideClose(&clients);
    SideClose(&server);
    return status;
}

static VOID Main(_In_ PVOID Context)
{
    NDK_VERSION version = {1, 2};
    ULONG size = sizeof(Info);
    NDK_PD *pd = NULL;
    NTSTATUS status;
    CALL call;

    UNREFERENCED_PARAMETER(Context);
    status = Ndk.WskOpenNdkAdapter(Provider.Client, version, Config.IfIndex, &Adapter);
    if (NT_SUCCESS(status)) {
        status = Adapter->Dispatch->NdkQueryAdapterInfo(Adapter, &Info, &size);
        if (NT_SUCCESS(status))
            status = End(
                &call, Adapter->Dispatch->NdkCreatePd(Adapter, OnCreated, Begin(&call), &pd), &pd);
        if (NT_SUCCESS(status)) {
            status = Serve(pd);
            Close(pd, pd->Dispatch->NdkClosePd);
        }
        Ndk.WskCloseNdkAdapter(Provider.Client, Adapter);
    }
    DbgPrint("server: %s, status 0x%08x\n", NT_SUCCESS(status) ? "done" : "failed", status);
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
        ReadValue(key, L"Connections", REG_DWORD, &Config.Connections, sizeof(ULONG));
        ReadValue(key, L"Bursts", REG_DWORD, &Config.Bursts, sizeof(ULONG));
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

    Config.Role[0] = L'b';
    Config.Connections = 64;
    Config.Bursts = 16;
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

static VOID Unload(_In_ PDRIVER_OBJECT DriverObject)
{
    PAGED_CODE();
    UNREFERENCED_PARAMETER(DriverObject);
    KeSetEvent(&StopEvent, IO_NO_INCREMENT, FALSE);
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
    status = PsCreateSystemThread(&handle, THREAD_ALL_ACCESS, NULL, NULL, NULL, Main, NULL);
    if (!NT_SUCCESS(status))
        return status;
    ObReferenceObjectByHandle(handle, THREAD_ALL_ACCESS, NULL, KernelMode, (PVOID *)&Thread, NULL);
    ZwClose(handle);
    return STATUS_SUCCESS;
}

NTSTATUS DriverEntry(_In_ PDRIVER_OBJECT DriverObject, _In_ PUNICODE_STRING RegistryPath)
{
    static const WSK_CLIENT_DISPATCH dispatch = {MAKE_WSK_VERSION(1, 0), 0, NULL};
    WSK_CLIENT_NPI npi = {NULL, &dispatch};
    NTSTATUS status;

    Configure(RegistryPath);
    KeInitializeEvent(&StopEvent, NotificationEvent, FALSE);
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
