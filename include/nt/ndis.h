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
typedef ULONG NDIS_PORT_NUMBER, *PNDIS_PORT_NUMBER;

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

/* ---- attributes of an adapter ---- */

typedef enum _NDIS_INTERFACE_TYPE {
    NdisInterfaceInternal = 0,
    NdisInterfacePci = 5,
    NdisInterfacePNPBus = 15
} NDIS_INTERFACE_TYPE,
    *PNDIS_INTERFACE_TYPE;

#define NDIS_MINIPORT_ATTRIBUTES_HARDWARE_DEVICE     0x00000001
#define NDIS_MINIPORT_ATTRIBUTES_NDIS_WDM            0x00000002
#define NDIS_MINIPORT_ATTRIBUTES_SURPRISE_REMOVE_OK  0x00000004
#define NDIS_MINIPORT_ATTRIBUTES_NO_HALT_ON_SUSPEND  0x00000020
#define NDIS_MINIPORT_ATTRIBUTES_BUS_MASTER          0x00000040
#define NDIS_MINIPORT_ATTRIBUTES_NO_PAUSE_ON_SUSPEND 0x00000100

/* The first attributes that InitializeHandlerEx sets: the context that every other handler of the
 * adapter is given. Nothing else of it is looked at here. */
typedef struct _NDIS_MINIPORT_ADAPTER_REGISTRATION_ATTRIBUTES {
    NDIS_OBJECT_HEADER Header;
    NDIS_HANDLE MiniportAdapterContext;
    ULONG AttributeFlags;
    UINT CheckForHangTimeInSeconds;
    NDIS_INTERFACE_TYPE InterfaceType;
} NDIS_MINIPORT_ADAPTER_REGISTRATION_ATTRIBUTES, *PNDIS_MINIPORT_ADAPTER_REGISTRATION_ATTRIBUTES;

#define NDIS_MINIPORT_ADAPTER_REGISTRATION_ATTRIBUTES_REVISION_1 1
#define NDIS_SIZEOF_MINIPORT_ADAPTER_REGISTRATION_ATTRIBUTES_REVISION_1                            \
    RTL_SIZEOF_THROUGH_FIELD(NDIS_MINIPORT_ADAPTER_REGISTRATION_ATTRIBUTES, InterfaceType)

#define NDIS_MINIPORT_ADAPTER_NDK_ATTRIBUTES_REVISION_1 1

/* Registered at initialization, also while NDK is disabled. NDIS side 3.4. */
typedef struct _NDIS_MINIPORT_ADAPTER_NDK_ATTRIBUTES {
    NDIS_OBJECT_HEADER Header;
    BOOLEAN Enabled;
    PNDIS_NDK_CAPABILITIES NdkCapabilities;
} NDIS_MINIPORT_ADAPTER_NDK_ATTRIBUTES, *PNDIS_MINIPORT_ADAPTER_NDK_ATTRIBUTES;

#define NDIS_SIZEOF_MINIPORT_ADAPTER_NDK_ATTRIBUTES_REVISION_1                                     \
    RTL_SIZEOF_THROUGH_FIELD(NDIS_MINIPORT_ADAPTER_NDK_ATTRIBUTES, NdkCapabilities)

/* ---- OID requests (NDIS side 5) ---- */

typedef enum _NDIS_REQUEST_TYPE {
    NdisRequestQueryInformation,
    NdisRequestSetInformation,
    NdisRequestQueryStatistics,
    NdisRequestOpen,
    NdisRequestClose,
    NdisRequestSend,
    NdisRequestTransferData,
    NdisRequestReset,
    NdisRequestGeneric1,
    NdisRequestGeneric2,
    NdisRequestGeneric3,
    NdisRequestGeneric4,
    NdisRequestMethod = 12
} NDIS_REQUEST_TYPE,
    *PNDIS_REQUEST_TYPE;

#define NDIS_OID_REQUEST_NDIS_RESERVED_SIZE 16 /* pointers */

/*
 * A question to a miniport adapter, or a setting. A query writes BytesWritten octets of the buffer,
 * a set reads BytesRead; a buffer that is too small is answered with NDIS_STATUS_BUFFER_TOO_SHORT
 * or NDIS_STATUS_INVALID_LENGTH, and BytesNeeded. An OID that is unknown:
 * NDIS_STATUS_NOT_SUPPORTED. Header: NDIS_OBJECT_TYPE_OID_REQUEST.
 */
typedef struct _NDIS_OID_REQUEST {
    NDIS_OBJECT_HEADER Header;
    NDIS_REQUEST_TYPE RequestType;
    NDIS_PORT_NUMBER PortNumber;
    UINT Timeout; /* s */
    PVOID RequestId;
    NDIS_HANDLE RequestHandle;
    union _REQUEST_DATA {
        struct _QUERY {
            NDIS_OID Oid;
            PVOID InformationBuffer;
            UINT InformationBufferLength;
            UINT BytesWritten;
            UINT BytesNeeded;
        } QUERY_INFORMATION;
        struct _SET {
            NDIS_OID Oid;
            PVOID InformationBuffer;
            UINT InformationBufferLength;
            UINT BytesRead;
            UINT BytesNeeded;
        } SET_INFORMATION;
        struct _METHOD {
            NDIS_OID Oid;
            PVOID InformationBuffer;
            ULONG InputBufferLength;
            ULONG OutputBufferLength;
            ULONG MethodId;
            UINT BytesWritten;
            UINT BytesRead;
            UINT BytesNeeded;
        } METHOD_INFORMATION;
    } DATA;
    UCHAR NdisReserved[NDIS_OID_REQUEST_NDIS_RESERVED_SIZE * sizeof(PVOID)];
    UCHAR MiniportReserved[2 * sizeof(PVOID)];
    UCHAR SourceReserved[2 * sizeof(PVOID)];
    UCHAR SupportedRevision;
    UCHAR Reserved1;
    USHORT Reserved2;
#if (NDIS_SUPPORT_NDIS650)
    NDIS_NIC_SWITCH_ID SwitchId;
    NDIS_NIC_SWITCH_VPORT_ID VPortId;
    ULONG Flags;
#endif
} NDIS_OID_REQUEST, *PNDIS_OID_REQUEST;

#define NDIS_OID_REQUEST_REVISION_1        1
#define NDIS_SIZEOF_OID_REQUEST_REVISION_1 RTL_SIZEOF_THROUGH_FIELD(NDIS_OID_REQUEST, Reserved2)
#if (NDIS_SUPPORT_NDIS650)
#define NDIS_OID_REQUEST_REVISION_2        2
#define NDIS_SIZEOF_OID_REQUEST_REVISION_2 RTL_SIZEOF_THROUGH_FIELD(NDIS_OID_REQUEST, Flags)
#endif

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

typedef enum _NDIS_SHUTDOWN_ACTION {
    NdisShutdownPowerOff,
    NdisShutdownBugCheck
} NDIS_SHUTDOWN_ACTION,
    *PNDIS_SHUTDOWN_ACTION;

/* Of packets and power nothing is known here but the names. */
typedef struct _NDIS_MINIPORT_PAUSE_PARAMETERS *PNDIS_MINIPORT_PAUSE_PARAMETERS;
typedef struct _NDIS_MINIPORT_RESTART_PARAMETERS *PNDIS_MINIPORT_RESTART_PARAMETERS;
typedef struct _NET_BUFFER_LIST *PNET_BUFFER_LIST;
typedef struct _NET_DEVICE_PNP_EVENT *PNET_DEVICE_PNP_EVENT;

/* ---- handlers, as functions to declare and as pointers to them ---- */

typedef NDIS_STATUS(SET_OPTIONS)(NDIS_HANDLE NdisDriverHandle, NDIS_HANDLE DriverContext);
typedef NDIS_STATUS(MINIPORT_INITIALIZE)(NDIS_HANDLE NdisMiniportHandle,
                                         NDIS_HANDLE MiniportDriverContext,
                                         PNDIS_MINIPORT_INIT_PARAMETERS MiniportInitParameters);
typedef VOID(MINIPORT_HALT)(NDIS_HANDLE MiniportAdapterContext, NDIS_HALT_ACTION HaltAction);
typedef VOID(MINIPORT_UNLOAD)(PDRIVER_OBJECT DriverObject);
typedef NDIS_STATUS(MINIPORT_PAUSE)(NDIS_HANDLE MiniportAdapterContext,
                                    PNDIS_MINIPORT_PAUSE_PARAMETERS PauseParameters);
typedef NDIS_STATUS(MINIPORT_RESTART)(NDIS_HANDLE MiniportAdapterContext,
                                      PNDIS_MINIPORT_RESTART_PARAMETERS RestartParameters);
typedef VOID(MINIPORT_SEND_NET_BUFFER_LISTS)(NDIS_HANDLE MiniportAdapterContext,
                                             PNET_BUFFER_LIST NetBufferList,
                                             NDIS_PORT_NUMBER PortNumber, ULONG SendFlags);
typedef VOID(MINIPORT_RETURN_NET_BUFFER_LISTS)(NDIS_HANDLE MiniportAdapterContext,
                                               PNET_BUFFER_LIST NetBufferLists, ULONG ReturnFlags);
typedef VOID(MINIPORT_CANCEL_SEND)(NDIS_HANDLE MiniportAdapterContext, PVOID CancelId);
typedef BOOLEAN(MINIPORT_CHECK_FOR_HANG)(NDIS_HANDLE MiniportAdapterContext);
typedef NDIS_STATUS(MINIPORT_RESET)(NDIS_HANDLE MiniportAdapterContext, PBOOLEAN AddressingReset);
typedef VOID(MINIPORT_DEVICE_PNP_EVENT_NOTIFY)(NDIS_HANDLE MiniportAdapterContext,
                                               PNET_DEVICE_PNP_EVENT NetDevicePnPEvent);
typedef VOID(MINIPORT_SHUTDOWN)(NDIS_HANDLE MiniportAdapterContext,
                                NDIS_SHUTDOWN_ACTION ShutdownAction);
/* Answers, or returns NDIS_STATUS_PENDING and answers with NdisMOidRequestComplete(). One at a time
 * for an adapter, at PASSIVE_LEVEL. NDIS side 5. */
typedef NDIS_STATUS(MINIPORT_OID_REQUEST)(NDIS_HANDLE MiniportAdapterContext,
                                          PNDIS_OID_REQUEST OidRequest);
typedef VOID(MINIPORT_CANCEL_OID_REQUEST)(NDIS_HANDLE MiniportAdapterContext, PVOID RequestId);
/* The same beside each other; OID_NDK_STATISTICS comes here. <= DISPATCH_LEVEL. */
typedef NDIS_STATUS(MINIPORT_DIRECT_OID_REQUEST)(NDIS_HANDLE MiniportAdapterContext,
                                                 PNDIS_OID_REQUEST OidRequest);
typedef VOID(MINIPORT_CANCEL_DIRECT_OID_REQUEST)(NDIS_HANDLE MiniportAdapterContext,
                                                 PVOID RequestId);

typedef SET_OPTIONS *SET_OPTIONS_HANDLER;
typedef MINIPORT_INITIALIZE *MINIPORT_INITIALIZE_HANDLER;
typedef MINIPORT_HALT *MINIPORT_HALT_HANDLER;
typedef MINIPORT_UNLOAD *MINIPORT_DRIVER_UNLOAD;
typedef MINIPORT_PAUSE *MINIPORT_PAUSE_HANDLER;
typedef MINIPORT_RESTART *MINIPORT_RESTART_HANDLER;
typedef MINIPORT_SEND_NET_BUFFER_LISTS *MINIPORT_SEND_NET_BUFFER_LISTS_HANDLER;
typedef MINIPORT_RETURN_NET_BUFFER_LISTS *MINIPORT_RETURN_NET_BUFFER_LISTS_HANDLER;
typedef MINIPORT_CANCEL_SEND *MINIPORT_CANCEL_SEND_HANDLER;
typedef MINIPORT_CHECK_FOR_HANG *MINIPORT_CHECK_FOR_HANG_HANDLER;
typedef MINIPORT_RESET *MINIPORT_RESET_HANDLER;
typedef MINIPORT_DEVICE_PNP_EVENT_NOTIFY *MINIPORT_DEVICE_PNP_EVENT_NOTIFY_HANDLER;
typedef MINIPORT_SHUTDOWN *MINIPORT_SHUTDOWN_HANDLER;
typedef MINIPORT_OID_REQUEST *MINIPORT_OID_REQUEST_HANDLER;
typedef MINIPORT_CANCEL_OID_REQUEST *MINIPORT_CANCEL_OID_REQUEST_HANDLER;
typedef MINIPORT_DIRECT_OID_REQUEST *MINIPORT_DIRECT_OID_REQUEST_HANDLER;
typedef MINIPORT_CANCEL_DIRECT_OID_REQUEST *MINIPORT_CANCEL_DIRECT_OID_REQUEST_HANDLER;

/* What a driver registers of itself. Of the handlers, those of options, of an adapter's begin and
 * end and of OIDs are called here; the others may be NULL. */
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
    MINIPORT_DRIVER_UNLOAD UnloadHandler;
    MINIPORT_PAUSE_HANDLER PauseHandler;
    MINIPORT_RESTART_HANDLER RestartHandler;
    MINIPORT_OID_REQUEST_HANDLER OidRequestHandler;
    MINIPORT_SEND_NET_BUFFER_LISTS_HANDLER SendNetBufferListsHandler;
    MINIPORT_RETURN_NET_BUFFER_LISTS_HANDLER ReturnNetBufferListsHandler;
    MINIPORT_CANCEL_SEND_HANDLER CancelSendHandler;
    MINIPORT_CHECK_FOR_HANG_HANDLER CheckForHangHandlerEx;
    MINIPORT_RESET_HANDLER ResetHandlerEx;
    MINIPORT_DEVICE_PNP_EVENT_NOTIFY_HANDLER DevicePnPEventNotifyHandler;
    MINIPORT_SHUTDOWN_HANDLER ShutdownHandlerEx;
    MINIPORT_CANCEL_OID_REQUEST_HANDLER CancelOidRequestHandler;
    MINIPORT_DIRECT_OID_REQUEST_HANDLER DirectOidRequestHandler;
    MINIPORT_CANCEL_DIRECT_OID_REQUEST_HANDLER CancelDirectOidRequestHandler;
} NDIS_MINIPORT_DRIVER_CHARACTERISTICS, *PNDIS_MINIPORT_DRIVER_CHARACTERISTICS;

#define NDIS_MINIPORT_DRIVER_CHARACTERISTICS_REVISION_1 1
#define NDIS_MINIPORT_DRIVER_CHARACTERISTICS_REVISION_2 2
#define NDIS_SIZEOF_MINIPORT_DRIVER_CHARACTERISTICS_REVISION_2                                     \
    RTL_SIZEOF_THROUGH_FIELD(NDIS_MINIPORT_DRIVER_CHARACTERISTICS, CancelDirectOidRequestHandler)

/* Attributes of NdisMSetMiniportAttributes: the structure that Header says. */
typedef union _NDIS_MINIPORT_ADAPTER_ATTRIBUTES {
    NDIS_OBJECT_HEADER Header;
    NDIS_MINIPORT_ADAPTER_REGISTRATION_ATTRIBUTES RegistrationAttributes;
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

/* ---- configuration ---- */

typedef enum _NDIS_PARAMETER_TYPE {
    NdisParameterInteger,
    NdisParameterHexInteger,
    NdisParameterString,
    NdisParameterMultiString,
    NdisParameterBinary
} NDIS_PARAMETER_TYPE,
    *PNDIS_PARAMETER_TYPE;

typedef struct _NDIS_CONFIGURATION_PARAMETER {
    NDIS_PARAMETER_TYPE ParameterType;
    union {
        ULONG IntegerData;
        NDIS_STRING StringData;
        struct {
            USHORT Length;
            PVOID Buffer;
        } BinaryData;
    } ParameterData;
} NDIS_CONFIGURATION_PARAMETER, *PNDIS_CONFIGURATION_PARAMETER;

typedef struct _NDIS_CONFIGURATION_OBJECT {
    NDIS_OBJECT_HEADER Header; /* NDIS_OBJECT_TYPE_CONFIGURATION_OBJECT */
    NDIS_HANDLE NdisHandle;    /* of InitializeHandlerEx */
    ULONG Flags;
} NDIS_CONFIGURATION_OBJECT, *PNDIS_CONFIGURATION_OBJECT;

#define NDIS_CONFIGURATION_OBJECT_REVISION_1 1
#define NDIS_SIZEOF_CONFIGURATION_OBJECT_REVISION_1                                                \
    RTL_SIZEOF_THROUGH_FIELD(NDIS_CONFIGURATION_OBJECT, Flags)

typedef VOID(NDIS_IO_WORKITEM)(PVOID WorkItemContext, NDIS_HANDLE NdisIoWorkItemHandle);
typedef NDIS_IO_WORKITEM *NDIS_IO_WORKITEM_FUNCTION, *PNDIS_IO_WORKITEM_FUNCTION;

/* ---- functions ---- */

/*
 * At PASSIVE_LEVEL. A wrong header: NDIS_STATUS_BAD_CHARACTERISTICS of registering and of optional
 * handlers, NDIS_STATUS_INVALID_PARAMETER of the others, and a line of the log. NDIS side 3.4, 3.5.
 */
NDIS_STATUS
NdisMRegisterMiniportDriver(PDRIVER_OBJECT DriverObject, PUNICODE_STRING RegistryPath,
                            NDIS_HANDLE MiniportDriverContext,
                            PNDIS_MINIPORT_DRIVER_CHARACTERISTICS MiniportDriverCharacteristics,
                            PNDIS_HANDLE NdisMiniportDriverHandle);
VOID NdisMDeregisterMiniportDriver(NDIS_HANDLE NdisMiniportDriverHandle);
/* In SetOptionsHandler. A provider of NDK has both OID handlers. */
NDIS_STATUS NdisSetOptionalHandlers(NDIS_HANDLE NdisHandle,
                                    PNDIS_DRIVER_OPTIONAL_HANDLERS OptionalHandlers);
/* In InitializeHandlerEx; the registration attributes first. */
NDIS_STATUS NdisMSetMiniportAttributes(NDIS_HANDLE NdisMiniportAdapterHandle,
                                       PNDIS_MINIPORT_ADAPTER_ATTRIBUTES MiniportAttributes);
/*
 * NetEventNDKEnable, NetEventNDKDisable; others: NDIS_STATUS_NOT_SUPPORTED. A disable returns when
 * the last NDK adapter of the interface is closed, or when it is enabled again. An enable while
 * *NetworkDirect is 0: NDIS_STATUS_ADAPTER_NOT_READY. In an OID handler it is a finding and
 * NDIS_STATUS_FAILURE.
 */
NDIS_STATUS NdisMNetPnPEvent(NDIS_HANDLE MiniportAdapterHandle,
                             PNET_PNP_EVENT_NOTIFICATION NetPnPEvent);

/* The answer of an OID request that was left pending. <= DISPATCH_LEVEL. */
VOID NdisMOidRequestComplete(NDIS_HANDLE MiniportAdapterHandle, PNDIS_OID_REQUEST Request,
                             NDIS_STATUS Status);
VOID NdisMDirectOidRequestComplete(NDIS_HANDLE MiniportAdapterHandle, PNDIS_OID_REQUEST Request,
                                   NDIS_STATUS Status);

/*
 * An adapter's keywords, at PASSIVE_LEVEL: "*NetworkDirect", an integer; others are not there,
 * NDIS_STATUS_FAILURE. What is read lives until the configuration is closed.
 */
NDIS_STATUS NdisOpenConfigurationEx(PNDIS_CONFIGURATION_OBJECT ConfigObject,
                                    PNDIS_HANDLE ConfigurationHandle);
VOID NdisReadConfiguration(PNDIS_STATUS Status, PNDIS_CONFIGURATION_PARAMETER *ParameterValue,
                           NDIS_HANDLE ConfigurationHandle, PNDIS_STRING Keyword,
                           NDIS_PARAMETER_TYPE ParameterType);
VOID NdisCloseConfiguration(NDIS_HANDLE ConfigurationHandle);

/* Work items: those of IoAllocateWorkItem() under NDIS' names. <= DISPATCH_LEVEL; the routine runs
 * at PASSIVE_LEVEL. NdisObjectHandle: the driver's or the adapter's. */
NDIS_HANDLE NdisAllocateIoWorkItem(NDIS_HANDLE NdisObjectHandle);
VOID NdisFreeIoWorkItem(NDIS_HANDLE NdisIoWorkItemHandle);
VOID NdisQueueIoWorkItem(NDIS_HANDLE NdisIoWorkItemHandle, NDIS_IO_WORKITEM_FUNCTION Routine,
                         PVOID WorkItemContext);

SOFTNDK_END_C

#endif /* SOFTNDK_NDIS_H */
