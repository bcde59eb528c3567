// SPDX-License-Identifier: MIT
/*
 * wsk.h - the registration part of Winsock Kernel: the door to the NDK extension (wskndk.h).
 *
 * No sockets: the functions of sockets and names are in the provider's table and answer
 * STATUS_NOT_SUPPORTED. All functions here run at PASSIVE_LEVEL unless said otherwise.
 */
#ifndef SOFTNDK_WSK_H
#define SOFTNDK_WSK_H

#include "ifdef.h"
#include "ip2string.h"
#include "ntddk.h"
#include "ws2def.h"
#include "ws2ipdef.h"

SOFTNDK_BEGIN_C

#define WSKAPI NTAPI

#define MAKE_WSK_VERSION(Mj, Mn) ((USHORT)((Mj) << 8) | (USHORT)((Mn)&0xff))
#define WSK_MAJOR_VERSION(V)     ((UCHAR)((V) >> 8))
#define WSK_MINOR_VERSION(V)     ((UCHAR)(V))

/* Milliseconds to wait for the provider in WskCaptureProviderNPI. */
#define WSK_NO_WAIT       0
#define WSK_INFINITE_WAIT 0xffffffff

/* Operations of WskControlClient that concern sockets: STATUS_NOT_SUPPORTED here. */
#define WSK_TRANSPORT_LIST_QUERY       2
#define WSK_TRANSPORT_LIST_CHANGE      3
#define WSK_CACHE_SD                   4
#define WSK_RELEASE_SD                 5
#define WSK_TDI_DEVICENAME_MAPPING     6
#define WSK_SET_STATIC_EVENT_CALLBACKS 7
#define WSK_TDI_BEHAVIOR               8

/* Flags of WskSocket: the category of a socket. */
#define WSK_FLAG_BASIC_SOCKET      0x00000000
#define WSK_FLAG_LISTEN_SOCKET     0x00000001
#define WSK_FLAG_CONNECTION_SOCKET 0x00000002
#define WSK_FLAG_DATAGRAM_SOCKET   0x00000004

/* Opaque; identifies the client to the provider. */
typedef struct _WSK_CLIENT WSK_CLIENT, *PWSK_CLIENT;

/* Tells a client about changes of the provider; may be NULL in the table. */
typedef NTSTATUS(WSKAPI *PFN_WSK_CLIENT_EVENT)(PVOID ClientContext, ULONG EventType,
                                               PVOID Information, SIZE_T InformationLength);

/* What the client offers. Version by MAKE_WSK_VERSION, Reserved 0. Stays valid until
 * WskDeregister has returned. */
typedef struct _WSK_CLIENT_DISPATCH {
    USHORT Version;
    USHORT Reserved;
    PFN_WSK_CLIENT_EVENT WskClientEvent;
} WSK_CLIENT_DISPATCH, *PWSK_CLIENT_DISPATCH;

typedef struct _WSK_CLIENT_NPI {
    PVOID ClientContext;
    CONST WSK_CLIENT_DISPATCH *Dispatch;
} WSK_CLIENT_NPI, *PWSK_CLIENT_NPI;

/* Asks the provider something by control code. Without an Irp the call is synchronous; with one the
 * Irp is completed with the status that is also returned. Sizes are bytes; the output buffer
 * receives a copy. IRQL <= DISPATCH_LEVEL. */
typedef NTSTATUS(WSKAPI *PFN_WSK_CONTROL_CLIENT)(_In_ PWSK_CLIENT Client, _In_ ULONG ControlCode,
                                                 _In_ SIZE_T InputSize, _In_opt_ PVOID InputBuffer,
                                                 _In_ SIZE_T OutputSize,
                                                 _Out_opt_ PVOID OutputBuffer,
                                                 _Out_opt_ SIZE_T *OutputSizeReturned,
                                                 _Inout_opt_ PIRP Irp);

/* Sockets and names: declared for the layout of the table. An Irp that comes with a call is
 * completed with STATUS_NOT_SUPPORTED. IRQL <= DISPATCH_LEVEL. */
typedef struct _WSK_CLIENT_CONNECTION_DISPATCH WSK_CLIENT_CONNECTION_DISPATCH,
    *PWSK_CLIENT_CONNECTION_DISPATCH;
typedef struct addrinfoexW ADDRINFOEXW, *PADDRINFOEXW;
typedef NTSTATUS(WSKAPI *PFN_WSK_SOCKET)(
    _In_ PWSK_CLIENT Client, _In_ ADDRESS_FAMILY AddressFamily, _In_ USHORT SocketType,
    _In_ ULONG Protocol, _In_ ULONG Flags, _In_opt_ PVOID SocketContext,
    _In_opt_ CONST VOID *Dispatch, _In_opt_ PEPROCESS OwningProcess, _In_opt_ PETHREAD OwningThread,
    _In_opt_ PSECURITY_DESCRIPTOR SecurityDescriptor, _Inout_ PIRP Irp);
typedef NTSTATUS(WSKAPI *PFN_WSK_SOCKET_CONNECT)(
    _In_ PWSK_CLIENT Client, _In_ USHORT SocketType, _In_ ULONG Protocol,
    _In_ PSOCKADDR LocalAddress, _In_ PSOCKADDR RemoteAddress, _Reserved_ ULONG Flags,
    _In_opt_ PVOID SocketContext, _In_opt_ CONST WSK_CLIENT_CONNECTION_DISPATCH *Dispatch,
    _In_opt_ PEPROCESS OwningProcess, _In_opt_ PETHREAD OwningThread,
    _In_opt_ PSECURITY_DESCRIPTOR SecurityDescriptor, _Inout_ PIRP Irp);
typedef NTSTATUS(WSKAPI *PFN_WSK_GET_ADDRESS_INFO)(
    _In_ PWSK_CLIENT Client, _In_opt_ PUNICODE_STRING NodeName,
    _In_opt_ PUNICODE_STRING ServiceName, _In_opt_ ULONG NameSpace, _In_opt_ GUID *Provider,
    _In_opt_ PADDRINFOEXW Hints, _Out_ PADDRINFOEXW *Result, _In_opt_ PEPROCESS OwningProcess,
    _In_opt_ PETHREAD OwningThread, _Inout_ PIRP Irp);
typedef VOID(WSKAPI *PFN_WSK_FREE_ADDRESS_INFO)(_In_ PWSK_CLIENT Client,
                                                _In_ PADDRINFOEXW AddrInfo);
typedef NTSTATUS(WSKAPI *PFN_WSK_GET_NAME_INFO)(_In_ PWSK_CLIENT Client, _In_ PSOCKADDR SockAddr,
                                                _In_ ULONG SockAddrLength,
                                                _Out_opt_ PUNICODE_STRING NodeName,
                                                _Out_opt_ PUNICODE_STRING ServiceName,
                                                _In_ ULONG Flags, _In_opt_ PEPROCESS OwningProcess,
                                                _In_opt_ PETHREAD OwningThread, _Inout_ PIRP Irp);

/* What the provider offers. */
typedef struct _WSK_PROVIDER_DISPATCH {
    USHORT Version;
    USHORT Reserved;
    PFN_WSK_SOCKET WskSocket;
    PFN_WSK_SOCKET_CONNECT WskSocketConnect;
    PFN_WSK_CONTROL_CLIENT WskControlClient;
    PFN_WSK_GET_ADDRESS_INFO WskGetAddressInfo;
    PFN_WSK_FREE_ADDRESS_INFO WskFreeAddressInfo;
    PFN_WSK_GET_NAME_INFO WskGetNameInfo;
} WSK_PROVIDER_DISPATCH, *PWSK_PROVIDER_DISPATCH;

typedef struct _WSK_PROVIDER_NPI {
    PWSK_CLIENT Client;
    CONST WSK_PROVIDER_DISPATCH *Dispatch;
} WSK_PROVIDER_NPI, *PWSK_PROVIDER_NPI;

/* The versions of Winsock Kernel that are offered. */
typedef struct _WSK_PROVIDER_CHARACTERISTICS {
    USHORT HighestVersion;
    USHORT LowestVersion;
} WSK_PROVIDER_CHARACTERISTICS, *PWSK_PROVIDER_CHARACTERISTICS;

/* Memory of the registration, the client's to keep and the provider's to use, until WskDeregister
 * has returned. Its address is the registration: a copy is none. */
typedef struct _WSK_REGISTRATION {
    ULONGLONG ReservedRegistrationState;
    PVOID ReservedRegistrationContext;
    KSPIN_LOCK ReservedRegistrationLock;
} WSK_REGISTRATION, *PWSK_REGISTRATION;

/* Registers a client. STATUS_SUCCESS, STATUS_INVALID_PARAMETER (an argument is NULL, or the
 * registration is in use), STATUS_INSUFFICIENT_RESOURCES. */
_Must_inspect_result_ _IRQL_requires_max_(PASSIVE_LEVEL)
NTSTATUS WSKAPI WskRegister(_In_ PWSK_CLIENT_NPI WskClientNpi,
                            _Out_ PWSK_REGISTRATION WskRegistration);

/* Ends a registration. Captures that wait end with STATUS_DEVICE_NOT_READY; blocks until every
 * capture is released, every call has returned and every adapter is closed. */
_IRQL_requires_max_(PASSIVE_LEVEL) VOID WSKAPI
    WskDeregister(_In_ PWSK_REGISTRATION WskRegistration);

/* Captures the provider's table, each time to be released. Waits up to WaitTimeout milliseconds for
 * the provider (PASSIVE_LEVEL; with WSK_NO_WAIT <= DISPATCH_LEVEL). STATUS_SUCCESS,
 * STATUS_DEVICE_NOT_READY (not there in that time, or WskDeregister was called),
 * STATUS_NOINTERFACE (not in the client's version), STATUS_INVALID_PARAMETER. */
_Must_inspect_result_ NTSTATUS WSKAPI WskCaptureProviderNPI(_In_ PWSK_REGISTRATION WskRegistration,
                                                            _In_ ULONG WaitTimeout,
                                                            _Out_ PWSK_PROVIDER_NPI WskProviderNpi);

/* Gives one capture back. The last one blocks while adapters of the client are open: what is open
 * goes to the log after 5 s (SOFTNDK_WSK_TELL_S) and again each time as long. IRQL <=
 * DISPATCH_LEVEL when all are closed, else PASSIVE_LEVEL. */
VOID WSKAPI WskReleaseProviderNPI(_In_ PWSK_REGISTRATION WskRegistration);

/* Which versions there are. STATUS_SUCCESS, STATUS_DEVICE_NOT_READY (the provider is not there
 * yet), STATUS_INVALID_PARAMETER. IRQL <= DISPATCH_LEVEL. */
_Must_inspect_result_ _IRQL_requires_max_(DISPATCH_LEVEL)
NTSTATUS WSKAPI
WskQueryProviderCharacteristics(_In_ PWSK_REGISTRATION WskRegistration,
                                _Out_ PWSK_PROVIDER_CHARACTERISTICS WskProviderCharacteristics);

SOFTNDK_END_C

#endif /* SOFTNDK_WSK_H */
