// SPDX-License-Identifier: MIT
/*
 * ndkpi.h - the Network Direct Kernel Provider Interface, versions 1.1 to 2.1.
 *
 * A provider implements ten kinds of objects. Each object is a structure that starts with a header
 * and holds a pointer to a table of functions; a consumer calls through that table and hands over
 * callbacks of its own. The whole interface is types and constants: nothing here is linked.
 *
 * How the comments of provider functions are to be read:
 *  - "May pend": STATUS_PENDING means that the completion callback will be called exactly once,
 *    possibly before the function returns. Any other return value means that the call is over and
 *    that the callback is not called. Contexts must stay valid until the callback has run.
 *  - Statuses: "inline" is a return value only; "both" is documented to come as a return value or
 *    through the callback; "async-possible" is listed for a call that may pend, so that it too may
 *    come either way. A "*" marks a code that NDKPI leaves to the provider and softndk chose.
 *  - Sizes and lengths are bytes, depths and counts are entries, unless said otherwise.
 *  - Object pointers stay valid from creation until the object's close function is called.
 *  - "NDKPI reference n.m" names the section of the interface reference the project works from.
 *
 * All NDK_FN_ types are pointers to functions, callbacks included, as in the Windows kit.
 */
#ifndef SOFTNDK_NDKPI_H
#define SOFTNDK_NDKPI_H

#include "ndkpi_types.h"
#include "ndkpi_queue.h"
#include "ndkpi_memory.h"
#include "ndkpi_connect.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- adapter ---- */

/*
 * NdkQueryAdapterInfo: reads what the adapter can do; blocks until done. *pBufferSize: bytes at
 * pInfo, then bytes written or needed; NULL with size 0 asks for the size.
 * Slot adapter[1]. IRQL = PASSIVE_LEVEL. Since 1.1. Never pends.
 * Statuses:
 *   STATUS_SUCCESS                 inline          the structure was written; *pBufferSize is the
 *                                                  bytes written
 *   STATUS_BUFFER_TOO_SMALL        inline          the buffer cannot hold the structure;
 *                                                  *pBufferSize is the size needed
 *   STATUS_INVALID_PARAMETER       inline*         pBufferSize is NULL
 *   any other                      inline          the list is open-ended
 * NDKPI reference 6.1.
 */
typedef _IRQL_requires_max_(PASSIVE_LEVEL)
    NTSTATUS (*NDK_FN_QUERY_ADAPTER_INFO)(_In_ NDK_ADAPTER *pNdkAdapter,
                                          _Out_writes_bytes_to_opt_(*pBufferSize, *pBufferSize)
                                              NDK_ADAPTER_INFO *pInfo,
                                          _Inout_ ULONG *pBufferSize);

/* NdkQueryAdapterInfoEx: a type without a slot in any table, that asks for the structure of a
 * given version. IRQL = PASSIVE_LEVEL. NDKPI reference 16. */
typedef _IRQL_requires_max_(PASSIVE_LEVEL)
    NTSTATUS (*NDK_FN_QUERY_ADAPTER_INFO_EX)(_In_ NDK_ADAPTER *pNdkAdapter,
                                             _In_ NDK_VERSION Version,
                                             _Out_writes_bytes_to_opt_(*pBufferSize, *pBufferSize)
                                                 NDK_ADAPTER_INFO *pInfo,
                                             _Inout_ ULONG *pBufferSize);

/*
 * NdkCreateCq: creates a queue of CqDepth entries (<= MaxCqDepth). CqNotification is called only
 * after NdkArmCq, with CqNotificationContext. Affinity: processors preferred for it, or NULL. More
 * completions than entries kill the queue.
 * Slot adapter[2]. IRQL <= DISPATCH_LEVEL. Since 1.1. May pend (create).
 * Statuses:
 *   STATUS_SUCCESS                 inline          *ppNdkCq is the new queue
 *   STATUS_PENDING                 inline          started; CreateCompletion is called exactly
 *                                                  once with the outcome
 *   STATUS_INVALID_PARAMETER       async-possible  CqDepth is above the adapter's MaxCqDepth
 *   STATUS_INSUFFICIENT_RESOURCES  both            out of memory or of an adapter resource
 *   any other                      async-possible  the list is open-ended
 * NDKPI reference 6.2.
 */
typedef _IRQL_requires_max_(DISPATCH_LEVEL)
    NTSTATUS (*NDK_FN_CREATE_CQ)(_In_ NDK_ADAPTER *pNdkAdapter, _In_ ULONG CqDepth,
                                 _In_ NDK_FN_CQ_NOTIFICATION_CALLBACK CqNotification,
                                 _In_opt_ PVOID CqNotificationContext,
                                 _In_opt_ GROUP_AFFINITY *Affinity,
                                 _In_ NDK_FN_CREATE_COMPLETION CreateCompletion,
                                 _In_opt_ PVOID RequestContext, _Outptr_ NDK_CQ **ppNdkCq);

/*
 * NdkCreatePd: creates a domain: regions, windows and queue pairs work together within one.
 * Slot adapter[3]. IRQL <= DISPATCH_LEVEL. Since 1.1. May pend (create).
 * Statuses:
 *   STATUS_SUCCESS                 inline          *ppNdkPd is the new domain
 *   STATUS_PENDING                 inline          started; CreateCompletion is called exactly
 *                                                  once with the outcome
 *   STATUS_INSUFFICIENT_RESOURCES  both            out of memory or of an adapter resource
 *   any other                      async-possible  the list is open-ended
 * NDKPI reference 6.3.
 */
typedef _IRQL_requires_max_(DISPATCH_LEVEL)
    NTSTATUS (*NDK_FN_CREATE_PD)(_In_ NDK_ADAPTER *pNdkAdapter,
                                 _In_ NDK_FN_CREATE_COMPLETION CreateCompletion,
                                 _In_opt_ PVOID RequestContext, _Outptr_ NDK_PD **ppNdkPd);

/*
 * NdkCreateSharedEndpoint: takes the local address pAddress (port 0: one of 49152-65535 is chosen)
 * for outgoing connections.
 * Slot adapter[4]. IRQL <= DISPATCH_LEVEL. Since 1.1. May pend (create).
 * Statuses:
 *   STATUS_SUCCESS                 inline          *ppNdkSharedEndpoint is the new endpoint
 *   STATUS_PENDING                 inline          started; CreateCompletion is called exactly
 *                                                  once with the outcome
 *   STATUS_INSUFFICIENT_RESOURCES  both            out of memory or of an adapter resource
 *   STATUS_SHARING_VIOLATION       both            the local address and port are in use
 *   STATUS_TOO_MANY_ADDRESSES      async-possible  port 0 was asked for and 49152-65535 has no
 *                                                  free port
 *   STATUS_INVALID_ADDRESS         both            the local address does not belong to this
 *                                                  adapter
 *   any other                      async-possible  the list is open-ended
 * NDKPI reference 6.4.
 */
typedef _IRQL_requires_max_(DISPATCH_LEVEL) NTSTATUS (*NDK_FN_CREATE_SHARED_ENDPOINT)(
    _In_ NDK_ADAPTER *pNdkAdapter, _In_reads_bytes_(AddressLength) CONST PSOCKADDR pAddress,
    _In_ ULONG AddressLength, _In_ NDK_FN_CREATE_COMPLETION CreateCompletion,
    _In_opt_ PVOID RequestContext, _Outptr_ NDK_SHARED_ENDPOINT **ppNdkSharedEndpoint);

/*
 * NdkCreateConnector: creates a connector for one outgoing connection.
 * Slot adapter[5]. IRQL <= DISPATCH_LEVEL. Since 1.1. May pend (create).
 * Statuses:
 *   STATUS_SUCCESS                 inline          *ppNdkConnector is the new connector
 *   STATUS_PENDING                 inline          started; CreateCompletion is called exactly
 *                                                  once with the outcome
 *   STATUS_INSUFFICIENT_RESOURCES  both            out of memory or of an adapter resource
 *   any other                      async-possible  the list is open-ended
 * NDKPI reference 6.5.
 */
typedef _IRQL_requires_max_(DISPATCH_LEVEL)
    NTSTATUS (*NDK_FN_CREATE_CONNECTOR)(_In_ NDK_ADAPTER *pNdkAdapter,
                                        _In_ NDK_FN_CREATE_COMPLETION CreateCompletion,
                                        _In_opt_ PVOID RequestContext,
                                        _Outptr_ NDK_CONNECTOR **ppNdkConnector);

/*
 * NdkCreateListener: creates a listener. ConnectEvent is called with ConnectEventContext for each
 * incoming connection once NdkListen was called.
 * Slot adapter[6]. IRQL <= DISPATCH_LEVEL. Since 1.1. May pend (create).
 * Statuses:
 *   STATUS_SUCCESS                 inline          *ppNdkListener is the new listener
 *   STATUS_PENDING                 inline          started; CreateCompletion is called exactly
 *                                                  once with the outcome
 *   STATUS_INSUFFICIENT_RESOURCES  both            out of memory or of an adapter resource
 *   STATUS_INVALID_PARAMETER       async-possible* ConnectEvent is NULL
 *   any other                      async-possible  the list is open-ended
 * NDKPI reference 6.6.
 */
typedef _IRQL_requires_max_(DISPATCH_LEVEL) NTSTATUS (*NDK_FN_CREATE_LISTENER)(
    _In_ NDK_ADAPTER *pNdkAdapter, _In_ NDK_FN_CONNECT_EVENT_CALLBACK ConnectEvent,
    _In_opt_ PVOID ConnectEventContext, _In_ NDK_FN_CREATE_COMPLETION CreateCompletion,
    _In_opt_ PVOID RequestContext, _Outptr_ NDK_LISTENER **ppNdkListener);

/*
 * NdkBuildLAM: writes the adapter pages of the first Length bytes of an MDL chain to pNdkLAM. The
 * chain describes locked, virtually contiguous memory; it must not be used while the call pends.
 * *pLAMSize: bytes at pNdkLAM, then bytes written or needed. *pFBO: offset of the first byte in the
 * first page. The mapping holds until NdkReleaseLAM.
 * Slot adapter[7]. IRQL <= DISPATCH_LEVEL. Since 1.1. May pend (request).
 * Statuses:
 *   STATUS_SUCCESS                 inline          the mapping was written; *pLAMSize is the bytes
 *                                                  written
 *   STATUS_PENDING                 inline          started; RequestCompletion is called exactly
 *                                                  once with the outcome
 *   STATUS_INVALID_PARAMETER       async-possible  the bytes named by Mdl and Length are not
 *                                                  virtually contiguous, Length is more than the
 *                                                  chain holds, or RequestCompletion is NULL and
 *                                                  the call would pend
 *   STATUS_INSUFFICIENT_RESOURCES  both            out of memory or of an adapter resource
 *   STATUS_BUFFER_TOO_SMALL        async-possible  the mapping does not fit; *pLAMSize is the size
 *                                                  needed
 *   STATUS_ACCESS_VIOLATION        async-possible* a page of the chain is not there or cannot be
 *                                                  read
 *   any other                      async-possible  the list is open-ended
 * NDKPI reference 6.7.
 */
typedef _IRQL_requires_max_(DISPATCH_LEVEL)
    NTSTATUS (*NDK_FN_BUILD_LAM)(_In_ NDK_ADAPTER *pNdkAdapter, _In_ MDL *Mdl, _In_ SIZE_T Length,
                                 _In_opt_ NDK_FN_REQUEST_COMPLETION RequestCompletion,
                                 _In_opt_ PVOID RequestContext,
                                 _Out_writes_bytes_to_opt_(*pLAMSize, *pLAMSize)
                                     NDK_LOGICAL_ADDRESS_MAPPING *pNdkLAM,
                                 _Inout_ ULONG *pLAMSize, _Out_ ULONG *pFBO);

/*
 * NdkReleaseLAM: ends a mapping, not before every request and fast registration that uses its
 * pages is done.
 * Slot adapter[8]. IRQL <= DISPATCH_LEVEL. Since 1.1. Returns nothing, cannot fail.
 * NDKPI reference 6.8.
 */
typedef _IRQL_requires_max_(DISPATCH_LEVEL)
    VOID (*NDK_FN_RELEASE_LAM)(_In_ NDK_ADAPTER *pNdkAdapter,
                               _In_ NDK_LOGICAL_ADDRESS_MAPPING *pNdkLAM);

/* The one table without a close: who opened an adapter closes it (wskndk.h, ndisndk.h). */
typedef struct _NDK_ADAPTER_DISPATCH {
    NDK_FN_QUERY_EXTENSION_INTERFACE NdkQueryExtension;
    NDK_FN_QUERY_ADAPTER_INFO NdkQueryAdapterInfo;
    NDK_FN_CREATE_CQ NdkCreateCq;
    NDK_FN_CREATE_PD NdkCreatePd;
    NDK_FN_CREATE_SHARED_ENDPOINT NdkCreateSharedEndpoint;
    NDK_FN_CREATE_CONNECTOR NdkCreateConnector;
    NDK_FN_CREATE_LISTENER NdkCreateListener;
    NDK_FN_BUILD_LAM NdkBuildLAM;
    NDK_FN_RELEASE_LAM NdkReleaseLAM;
} NDK_ADAPTER_DISPATCH;

struct _NDK_ADAPTER {
    NDK_OBJECT_HEADER Header;
    CONST NDK_ADAPTER_DISPATCH *Dispatch;
};

#ifdef __cplusplus
}
#endif

#endif /* SOFTNDK_NDKPI_H */
