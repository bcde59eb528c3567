// SPDX-License-Identifier: MIT
/*
 * wskndk.h - how a kernel consumer gets an NDK adapter: as an extension of Winsock Kernel.
 *
 * WskRegister, WskCaptureProviderNPI, then WskControlClient with the code below fills a
 * WSK_PROVIDER_NDK_DISPATCH, through which adapters are opened by interface index. Adapters are
 * closed before WskReleaseProviderNPI. "NDIS side 2" is the section of the reference.
 */
#ifndef SOFTNDK_WSKNDK_H
#define SOFTNDK_WSKNDK_H

#include <wsk.h>

#include "ndkpi.h"

#ifdef __cplusplus
extern "C" {
#endif

/*
 * WskOpenNdkAdapter: opens the adapter of interface IfIndex. NdkVersion is the major version and
 * the lowest minor version accepted; the provider runs the highest minor version it has of that
 * major. An interface may be opened many times, each open is its own object. IRQL = PASSIVE_LEVEL.
 * Returns STATUS_SUCCESS or an error: no such interface or no NDK on it, version not supported, NDK
 * disabled, out of resources.
 */
typedef _IRQL_requires_max_(PASSIVE_LEVEL)
    NTSTATUS(WSKAPI *PFN_WSK_NDK_OPEN_ADAPTER)(_In_ PWSK_CLIENT Client, _In_ NDK_VERSION NdkVersion,
                                               _In_ NET_IFINDEX IfIndex,
                                               _Out_ NDK_ADAPTER **ppNdkAdapter);

/*
 * WskCloseNdkAdapter: closes an adapter. Blocks until all objects created from it are closed and
 * all their callbacks have returned, so never call it from a callback. After it the consumer may
 * unload. IRQL = PASSIVE_LEVEL.
 */
typedef _IRQL_requires_max_(PASSIVE_LEVEL)
    VOID(WSKAPI *PFN_WSK_NDK_CLOSE_ADAPTER)(_In_ PWSK_CLIENT Client, _In_ NDK_ADAPTER *pNdkAdapter);

typedef struct _WSK_PROVIDER_NDK_DISPATCH {
    PFN_WSK_NDK_OPEN_ADAPTER WskOpenNdkAdapter;
    PFN_WSK_NDK_CLOSE_ADAPTER WskCloseNdkAdapter;
} WSK_PROVIDER_NDK_DISPATCH, *PWSK_PROVIDER_NDK_DISPATCH;

/* Control code; the output buffer is the structure above itself. Spells 'NDKD'. */
#define WSKNDK_GET_WSK_PROVIDER_NDK_DISPATCH ((ULONG)0x4E444B44)

#ifdef __cplusplus
}
#endif

#endif /* SOFTNDK_WSKNDK_H */
