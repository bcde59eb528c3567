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

SOFTNDK_END_C

#endif /* SOFTNDK_NDIS_H */
