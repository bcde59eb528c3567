// SPDX-License-Identifier: MIT
/*
 * ndis.h - as much of the NDIS interface as an NDK miniport and its layer above talk through.
 */
#ifndef SOFTNDK_NDIS_H
#define SOFTNDK_NDIS_H

#include "ntddndis.h"
#include "wdm.h"

SOFTNDK_BEGIN_C

typedef PVOID NDIS_HANDLE, *PNDIS_HANDLE;
typedef int NDIS_STATUS, *PNDIS_STATUS;
typedef UNICODE_STRING NDIS_STRING, *PNDIS_STRING;

#define NDIS_STATUS_SUCCESS             ((NDIS_STATUS)0x00000000)
#define NDIS_STATUS_PENDING             ((NDIS_STATUS)0x00000103)
#define NDIS_STATUS_NOT_RECOGNIZED      ((NDIS_STATUS)0x00010001)
#define NDIS_STATUS_FAILURE             ((NDIS_STATUS)0xC0000001)
#define NDIS_STATUS_INVALID_PARAMETER   ((NDIS_STATUS)0xC000000D)
#define NDIS_STATUS_RESOURCES           ((NDIS_STATUS)0xC000009A)
#define NDIS_STATUS_NOT_SUPPORTED       ((NDIS_STATUS)0xC00000BB)
#define NDIS_STATUS_BAD_VERSION         ((NDIS_STATUS)0xC0010004)
#define NDIS_STATUS_BAD_CHARACTERISTICS ((NDIS_STATUS)0xC0010005)
#define NDIS_STATUS_ADAPTER_NOT_FOUND   ((NDIS_STATUS)0xC0010006)
#define NDIS_STATUS_OPEN_FAILED         ((NDIS_STATUS)0xC0010007)
#define NDIS_STATUS_ADAPTER_NOT_READY   ((NDIS_STATUS)0xC0010011)
#define NDIS_STATUS_INVALID_LENGTH      ((NDIS_STATUS)0xC0010014)
#define NDIS_STATUS_INVALID_DATA        ((NDIS_STATUS)0xC0010015)
#define NDIS_STATUS_BUFFER_TOO_SHORT    ((NDIS_STATUS)0xC0010016)
#define NDIS_STATUS_INVALID_OID         ((NDIS_STATUS)0xC0010017)

/* Initializer of a counted string from a plain literal. */
#ifdef __cplusplus
#if defined(__SIZEOF_WCHAR_T__) && __SIZEOF_WCHAR_T__ == 2
#define SOFTNDK_WIDE(x) const_cast<PWCH>(L##x)
#else
#define SOFTNDK_WIDE(x) const_cast<PWCH>(u##x)
#endif
#else
#define SOFTNDK_WIDE(x) ((PWCH)u##x)
#endif
#define NDIS_STRING_CONST(x)                                                                       \
    {                                                                                              \
        (USHORT)((sizeof(x) - 1) * sizeof(WCHAR)), (USHORT)(sizeof(x) * sizeof(WCHAR)),            \
            SOFTNDK_WIDE(x)                                                                        \
    }

/* Events a miniport raises by NdisMNetPnPEvent, those of NDK among them (NDIS side 3.5). */
typedef enum _NET_PNP_EVENT_CODE {
    NetEventSetPower,
    NetEventQueryPower,
    NetEventQueryRemoveDevice,
    NetEventCancelRemoveDevice,
    NetEventReconfigure,
    NetEventBindList,
    NetEventBindsComplete,
    NetEventPnPCapabilities,
    NetEventPause,
    NetEventRestart,
    NetEventPortActivation,
    NetEventPortDeactivation,
    NetEventIMReEnableDevice,
    NetEventNDKEnable = 13,
    NetEventNDKDisable = 14
} NET_PNP_EVENT_CODE,
    *PNET_PNP_EVENT_CODE;

#define NDIS_MINIPORT_ADAPTER_NDK_ATTRIBUTES_REVISION_1 1

/* Registered at initialization, also while NDK is disabled. NDIS side 3.4. */
typedef struct _NDIS_MINIPORT_ADAPTER_NDK_ATTRIBUTES {
    NDIS_OBJECT_HEADER Header;
    BOOLEAN Enabled;
    PNDIS_NDK_CAPABILITIES NdkCapabilities;
} NDIS_MINIPORT_ADAPTER_NDK_ATTRIBUTES, *PNDIS_MINIPORT_ADAPTER_NDK_ATTRIBUTES;

#define NDIS_SIZEOF_MINIPORT_ADAPTER_NDK_ATTRIBUTES_REVISION_1                                     \
    RTL_SIZEOF_THROUGH_FIELD(NDIS_MINIPORT_ADAPTER_NDK_ATTRIBUTES, NdkCapabilities)

/* ---- miniport drivers (NDIS side 3.4) ---- */

typedef struct _NDIS_MINIPORT_INIT_PARAMETERS {
    NDIS_OBJECT_HEADER Header;
    ULONG Flags;
    PVOID AllocatedResources; /* NULL here */
    PVOID IMDeviceInstanceContext;
    PVOID MiniportAddDeviceContext;
    ULONG IfIndex;
} NDIS_MINIPORT_INIT_PARAMETERS, *PNDIS_MINIPORT_INIT_PARAMETERS;

#define NDIS_MINIPORT_INIT_PARAMETERS_REVISION_1 1

typedef enum _NDIS_HALT_ACTION {
    NdisHaltDeviceDisabled,
    NdisHaltDeviceInstanceDeInitialized,
    NdisHaltDevicePoweredDown,
    NdisHaltDeviceSurpriseRemoved,
    NdisHaltDeviceFailed,
    NdisHaltDeviceInitializationFailed,
    NdisHaltDeviceStopped
} NDIS_HALT_ACTION;

typedef NDIS_STATUS (*SET_OPTIONS_HANDLER)(NDIS_HANDLE NdisDriverHandle, NDIS_HANDLE DriverContext);
typedef NDIS_STATUS (*MINIPORT_INITIALIZE_HANDLER)(
    NDIS_HANDLE NdisMiniportHandle, NDIS_HANDLE MiniportDriverContext,
    PNDIS_MINIPORT_INIT_PARAMETERS MiniportInitParameters);
typedef VOID (*MINIPORT_HALT_HANDLER)(NDIS_HANDLE MiniportAdapterContext,
                                      NDIS_HALT_ACTION HaltAction);

/* What a driver registers of itself. The handlers of packets and power are not called here, and may
 * be NULL. */
typedef struct _NDIS_MINIPORT_DRIVER_CHARACTERISTICS {
    NDIS_OBJECT_HEADER Header;
    UCHAR MajorNdisVersion;
    UCHAR MinorNdisVersion;
    UCHAR MajorDriverVersion;
    UCHAR MinorDriverVersion;
    ULONG Flags;
    SET_OPTIONS_HANDLER SetOptionsHandler;
    MINIPORT_INITIALIZE_HANDLER InitializeHandlerEx;
    MINIPORT_HALT_HANDLER HaltHandlerEx;
    PVOID UnloadHandler;
    PVOID PauseHandler;
    PVOID RestartHandler;
    PVOID OidRequestHandler;
    PVOID SendNetBufferListsHandler;
    PVOID ReturnNetBufferListsHandler;
    PVOID CancelSendHandler;
    PVOID CheckForHangHandlerEx;
    PVOID ResetHandlerEx;
    PVOID DevicePnPEventNotifyHandler;
    PVOID ShutdownHandlerEx;
    PVOID CancelOidRequestHandler;
    PVOID DirectOidRequestHandler;
    PVOID CancelDirectOidRequestHandler;
} NDIS_MINIPORT_DRIVER_CHARACTERISTICS, *PNDIS_MINIPORT_DRIVER_CHARACTERISTICS;

#define NDIS_MINIPORT_DRIVER_CHARACTERISTICS_REVISION_1 1
#define NDIS_MINIPORT_DRIVER_CHARACTERISTICS_REVISION_2 2
#define NDIS_SIZEOF_MINIPORT_DRIVER_CHARACTERISTICS_REVISION_2                                     \
    RTL_SIZEOF_THROUGH_FIELD(NDIS_MINIPORT_DRIVER_CHARACTERISTICS, CancelDirectOidRequestHandler)

/* Attributes of NdisMSetMiniportAttributes: the structure that Header says. */
typedef union _NDIS_MINIPORT_ADAPTER_ATTRIBUTES {
    NDIS_OBJECT_HEADER Header;
    NDIS_MINIPORT_ADAPTER_NDK_ATTRIBUTES NDKAttributes;
} NDIS_MINIPORT_ADAPTER_ATTRIBUTES, *PNDIS_MINIPORT_ADAPTER_ATTRIBUTES;

typedef NDIS_OBJECT_HEADER NDIS_DRIVER_OPTIONAL_HANDLERS, *PNDIS_DRIVER_OPTIONAL_HANDLERS;

typedef struct _NET_PNP_EVENT {
    NET_PNP_EVENT_CODE NetEvent;
    PVOID Buffer;
    ULONG BufferLength;
    ULONG_PTR NdisReserved[4];
    ULONG_PTR TransportReserved[4];
    ULONG_PTR TdiReserved[4];
    ULONG_PTR TdiClientReserved[4];
} NET_PNP_EVENT, *PNET_PNP_EVENT;

typedef struct _NET_PNP_EVENT_NOTIFICATION {
    NDIS_OBJECT_HEADER Header; /* NDIS_OBJECT_TYPE_DEFAULT, revision 1 or later */
    ULONG PortNumber;
    NET_PNP_EVENT NetPnPEvent;
    ULONG Flags;
} NET_PNP_EVENT_NOTIFICATION, *PNET_PNP_EVENT_NOTIFICATION;

#define NET_PNP_EVENT_NOTIFICATION_REVISION_1 1
#define NDIS_SIZEOF_NET_PNP_EVENT_NOTIFICATION_REVISION_1                                          \
    RTL_SIZEOF_THROUGH_FIELD(NET_PNP_EVENT_NOTIFICATION, Flags)

/* All at PASSIVE_LEVEL. A wrong header: NDIS_STATUS_BAD_CHARACTERISTICS of the first and third,
 * NDIS_STATUS_INVALID_PARAMETER of the last two, and a line of the log. NDIS side 3.4, 3.5. */
NDIS_STATUS
NdisMRegisterMiniportDriver(PDRIVER_OBJECT DriverObject, PUNICODE_STRING RegistryPath,
                            NDIS_HANDLE MiniportDriverContext,
                            PNDIS_MINIPORT_DRIVER_CHARACTERISTICS MiniportDriverCharacteristics,
                            PNDIS_HANDLE NdisMiniportDriverHandle);
VOID NdisMDeregisterMiniportDriver(NDIS_HANDLE NdisMiniportDriverHandle);
NDIS_STATUS NdisSetOptionalHandlers(NDIS_HANDLE NdisHandle,
                                    PNDIS_DRIVER_OPTIONAL_HANDLERS OptionalHandlers);
NDIS_STATUS NdisMSetMiniportAttributes(NDIS_HANDLE NdisMiniportAdapterHandle,
                                       PNDIS_MINIPORT_ADAPTER_ATTRIBUTES MiniportAttributes);
NDIS_STATUS NdisMNetPnPEvent(NDIS_HANDLE MiniportAdapterHandle,
                             PNET_PNP_EVENT_NOTIFICATION NetPnPEvent);

SOFTNDK_END_C

#endif /* SOFTNDK_NDIS_H */
