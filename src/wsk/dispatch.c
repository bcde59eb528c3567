// SPDX-License-Identifier: MIT
/*
 * The provider's dispatch table: WskControlClient, and the functions of sockets, which are here to
 * say that there are none. An IRP that comes with a call is completed, as Winsock Kernel does with
 * every answer, also with an error.
 */
#include "wsk/wsk.h"

#include "base/log.h"
#include "base/red.h"
#include "nt/nt.h"

static NTSTATUS finish(PIRP irp, NTSTATUS status, SIZE_T information)
{
    if (irp) {
        irp->IoStatus.Status = status;
        irp->IoStatus.Information = information;
        IoCompleteRequest(irp, IO_NO_INCREMENT);
    }
    return status;
}

/* ---- WskControlClient ---- */

static const char *control_name(ULONG code)
{
    switch (code) {
    case WSK_TRANSPORT_LIST_QUERY:
        return "WSK_TRANSPORT_LIST_QUERY";
    case WSK_TRANSPORT_LIST_CHANGE:
        return "WSK_TRANSPORT_LIST_CHANGE";
    case WSK_CACHE_SD:
        return "WSK_CACHE_SD";
    case WSK_RELEASE_SD:
        return "WSK_RELEASE_SD";
    case WSK_TDI_DEVICENAME_MAPPING:
        return "WSK_TDI_DEVICENAME_MAPPING";
    case WSK_SET_STATIC_EVENT_CALLBACKS:
        return "WSK_SET_STATIC_EVENT_CALLBACKS";
    case WSK_TDI_BEHAVIOR:
        return "WSK_TDI_BEHAVIOR";
    default:
        return NULL;
    }
}

static NTSTATUS give_ndk(const struct wsk_client *client, SIZE_T input, SIZE_T size, PVOID out,
                         SIZE_T *returned)
{
    const SIZE_T need = sizeof wsk_ndk_dispatch;

    if (input != 0) {
        log_error(
            "wsk client #%u: WskControlClient: WSKNDK_GET_WSK_PROVIDER_NDK_DISPATCH: it takes "
            "no input (have %llu octets, need 0)",
            client->number, (unsigned long long)input);
        return STATUS_INVALID_PARAMETER;
    }
    if (!out || (size != need && !RED("wsk-pointer-size-taken"))) {
        log_error("wsk client #%u: WskControlClient: WSKNDK_GET_WSK_PROVIDER_NDK_DISPATCH: output "
                  "buffer %llu, need %llu%s",
                  client->number, (unsigned long long)(out ? size : 0), (unsigned long long)need,
                  !out                    ? ": the buffer is NULL"
                  : size == sizeof(PVOID) ? ": the size of a pointer; pass a "
                                            "WSK_PROVIDER_NDK_DISPATCH and its size, it is copied"
                                          : ": pass a WSK_PROVIDER_NDK_DISPATCH and its size");
        return STATUS_INVALID_PARAMETER;
    }
    RtlCopyMemory(out, &wsk_ndk_dispatch, need);
    if (returned)
        *returned = need;
    return STATUS_SUCCESS;
}

static NTSTATUS WSKAPI control_client(PWSK_CLIENT Client, ULONG ControlCode, SIZE_T InputSize,
                                      PVOID InputBuffer, SIZE_T OutputSize, PVOID OutputBuffer,
                                      SIZE_T *OutputSizeReturned, PIRP Irp)
{
    struct wsk_client *client;
    const char *name = control_name(ControlCode);
    NTSTATUS status;

    (void)InputBuffer;
    nt_irql_at_most(DISPATCH_LEVEL, "WskControlClient", NT_CALLER);
    client = wsk_client_enter(Client, "WskControlClient", NT_CALLER, false);
    if (!client)
        return finish(Irp, STATUS_INVALID_PARAMETER, 0);
    if (ControlCode == WSKNDK_GET_WSK_PROVIDER_NDK_DISPATCH) {
        status = give_ndk(client, InputSize, OutputSize, OutputBuffer, OutputSizeReturned);
    } else if (name) {
        log_error("wsk client #%u: WskControlClient: %s is for sockets, and there are none",
                  client->number, name);
        status = STATUS_NOT_SUPPORTED;
    } else {
        log_error("wsk client #%u: WskControlClient: unknown control code (have 0x%08x, need "
                  "WSKNDK_GET_WSK_PROVIDER_NDK_DISPATCH, 0x%08x)",
                  client->number, (unsigned)ControlCode,
                  (unsigned)WSKNDK_GET_WSK_PROVIDER_NDK_DISPATCH);
        status = STATUS_INVALID_PARAMETER;
    }
    wsk_client_leave(client);
    return finish(Irp, status, NT_SUCCESS(status) ? sizeof wsk_ndk_dispatch : 0);
}

/* ---- sockets, which are not here ---- */

static NTSTATUS no_sockets(PWSK_CLIENT handle, const char *call, const void *caller, PIRP irp)
{
    struct wsk_client *client;

    nt_irql_at_most(DISPATCH_LEVEL, call, caller);
    client = wsk_client_enter(handle, call, caller, false);
    if (!client)
        return finish(irp, STATUS_INVALID_PARAMETER, 0);
    log_error("wsk client #%u: %s: Winsock Kernel is here for NDK alone, without sockets and names",
              client->number, call);
    wsk_client_leave(client);
    return finish(irp, STATUS_NOT_SUPPORTED, 0);
}

static NTSTATUS WSKAPI no_socket(PWSK_CLIENT Client, ADDRESS_FAMILY AddressFamily,
                                 USHORT SocketType, ULONG Protocol, ULONG Flags,
                                 PVOID SocketContext, CONST VOID *Dispatch, PEPROCESS OwningProcess,
                                 PETHREAD OwningThread, PSECURITY_DESCRIPTOR SecurityDescriptor,
                                 PIRP Irp)
{
    (void)AddressFamily, (void)SocketType, (void)Protocol, (void)Flags, (void)SocketContext;
    (void)Dispatch, (void)OwningProcess, (void)OwningThread, (void)SecurityDescriptor;
    return no_sockets(Client, "WskSocket", NT_CALLER, Irp);
}

static NTSTATUS WSKAPI no_socket_connect(PWSK_CLIENT Client, USHORT SocketType, ULONG Protocol,
                                         PSOCKADDR LocalAddress, PSOCKADDR RemoteAddress,
                                         ULONG Flags, PVOID SocketContext,
                                         CONST WSK_CLIENT_CONNECTION_DISPATCH *Dispatch,
                                         PEPROCESS OwningProcess, PETHREAD OwningThread,
                                         PSECURITY_DESCRIPTOR SecurityDescriptor, PIRP Irp)
{
    (void)SocketType, (void)Protocol, (void)LocalAddress, (void)RemoteAddress, (void)Flags;
    (void)SocketContext, (void)Dispatch, (void)OwningProcess, (void)OwningThread;
    (void)SecurityDescriptor;
    return no_sockets(Client, "WskSocketConnect", NT_CALLER, Irp);
}

static NTSTATUS WSKAPI no_address_info(PWSK_CLIENT Client, PUNICODE_STRING NodeName,
                                       PUNICODE_STRING ServiceName, ULONG NameSpace, GUID *Provider,
                                       PADDRINFOEXW Hints, PADDRINFOEXW *Result,
                                       PEPROCESS OwningProcess, PETHREAD OwningThread, PIRP Irp)
{
    (void)NodeName, (void)ServiceName, (void)NameSpace, (void)Provider, (void)Hints, (void)Result;
    (void)OwningProcess, (void)OwningThread;
    return no_sockets(Client, "WskGetAddressInfo", NT_CALLER, Irp);
}

static VOID WSKAPI no_address_info_to_free(PWSK_CLIENT Client, PADDRINFOEXW AddrInfo)
{
    (void)Client;
    nt_finding_from(NT_CALLER, "WskFreeAddressInfo: %p was not made by WskGetAddressInfo",
                    (void *)AddrInfo);
}

static NTSTATUS WSKAPI no_name_info(PWSK_CLIENT Client, PSOCKADDR SockAddr, ULONG SockAddrLength,
                                    PUNICODE_STRING NodeName, PUNICODE_STRING ServiceName,
                                    ULONG Flags, PEPROCESS OwningProcess, PETHREAD OwningThread,
                                    PIRP Irp)
{
    (void)SockAddr, (void)SockAddrLength, (void)NodeName, (void)ServiceName, (void)Flags;
    (void)OwningProcess, (void)OwningThread;
    return no_sockets(Client, "WskGetNameInfo", NT_CALLER, Irp);
}

const WSK_PROVIDER_DISPATCH wsk_provider_dispatch = {
    .Version = WSK_VERSION_ONLY,
    .WskSocket = no_socket,
    .WskSocketConnect = no_socket_connect,
    .WskControlClient = control_client,
    .WskGetAddressInfo = no_address_info,
    .WskFreeAddressInfo = no_address_info_to_free,
    .WskGetNameInfo = no_name_info,
};
