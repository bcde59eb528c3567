// SPDX-License-Identifier: MIT
/*
 * ndisndk.h - how a miniport registers as an NDK provider and how its adapters are opened.
 *
 * A miniport hands NDIS_NDK_PROVIDER_CHARACTERISTICS to NDIS when it sets its options; NDIS then
 * opens and closes adapters through the two handlers. Both run at PASSIVE_LEVEL and are
 * synchronous. "NDIS side n" refers to the sections of the reference on the NDIS side.
 */
#ifndef SOFTNDK_NDISNDK_H
#define SOFTNDK_NDISNDK_H

#include <ndis.h>

#include "ndkpi.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Configuration keywords, as initializers of an NDIS_STRING. NDIS side 3.1. */
#define NETWORK_DIRECT_KEYWORD              NDIS_STRING_CONST("*NetworkDirect")
#define NETWORK_DIRECT_GLOBAL_FLAGS_KEYWORD NDIS_STRING_CONST("*NetworkDirectGlobalFlags")

#define NETWORK_DIRECT_GLOBAL_FLAGS_ALLOW_REMOTE_IP_SUBNET 0x00000001

/* What to open: the major version and the lowest minor one accepted; for virtual ports of a NIC
 * switch also which, else the defaults, 0. No NDIS header. NDIS side 3.2. */
typedef struct _NDIS_OPEN_NDK_ADAPTER_PARAMETERS {
    NDK_VERSION Version;
#if (NDIS_SUPPORT_NDIS650)
    NDIS_NIC_SWITCH_ID SwitchId;
    NDIS_NIC_SWITCH_VPORT_ID VPortId;
#endif
} NDIS_OPEN_NDK_ADAPTER_PARAMETERS, *PNDIS_OPEN_NDK_ADAPTER_PARAMETERS;

/*
 * OpenNDKAdapterHandler: creates an NDK_ADAPTER of the miniport adapter. May be called many times.
 * NDIS_STATUS_SUCCESS, NDIS_STATUS_BAD_VERSION (major unknown, or minor above the provider's
 * highest), NDIS_STATUS_ADAPTER_NOT_READY (NDK is disabled), NDIS_STATUS_RESOURCES. The version
 * that runs is the provider's highest minor one of the major asked for. NDIS side 3.3.
 */
typedef NDIS_STATUS (*OPEN_NDK_ADAPTER_HANDLER)(_In_ NDIS_HANDLE MiniportAdapterContext,
                                                _In_ PNDIS_OPEN_NDK_ADAPTER_PARAMETERS Parameters,
                                                _Outptr_ NDK_ADAPTER **ppNdkAdapter);

/* CloseNDKAdapterHandler: destroys an adapter, blocking until every object created from it is
 * closed and every callback has returned. NDIS side 3.3. */
typedef VOID (*CLOSE_NDK_ADAPTER_HANDLER)(_In_ NDIS_HANDLE MiniportAdapterContext,
                                          _In_ NDK_ADAPTER *pNdkAdapter);

#define NDIS_NDK_PROVIDER_CHARACTERISTICS_REVISION_1 1

/* Filled by the miniport, header included: NDIS_OBJECT_TYPE_NDK_PROVIDER_CHARACTERISTICS,
 * revision 1, the size below. NDIS side 3.2. */
typedef struct _NDIS_NDK_PROVIDER_CHARACTERISTICS {
    NDIS_OBJECT_HEADER Header;
    ULONG Flags; /* 0 */
    OPEN_NDK_ADAPTER_HANDLER OpenNDKAdapterHandler;
    CLOSE_NDK_ADAPTER_HANDLER CloseNDKAdapterHandler;
} NDIS_NDK_PROVIDER_CHARACTERISTICS, *PNDIS_NDK_PROVIDER_CHARACTERISTICS;

#define NDIS_SIZEOF_NDK_PROVIDER_CHARACTERISTICS_REVISION_1                                        \
    RTL_SIZEOF_THROUGH_FIELD(NDIS_NDK_PROVIDER_CHARACTERISTICS, CloseNDKAdapterHandler)

#ifdef __cplusplus
}
#endif

#endif /* SOFTNDK_NDISNDK_H */
