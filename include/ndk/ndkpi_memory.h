// SPDX-License-Identifier: MIT
/*
 * ndkpi_memory.h - memory regions, memory windows and the protection domain they live in.
 *
 * A part of ndkpi.h, which says how the comments are to be read; include that.
 */
#ifndef SOFTNDK_NDKPI_MEMORY_H
#define SOFTNDK_NDKPI_MEMORY_H

#include "ndkpi_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- memory region ---- */

/*
 * NdkRegisterMr: registers the first Length bytes of an MDL chain, for regions created with
 * FastRegister FALSE. The chain describes locked, virtually contiguous memory; its address names
 * the region's first byte and is not dereferenced. The chain must not be used while the call pends.
 * Flags: NDK_MR_FLAG_...; RDMA_READ_SINK is needed for the sink of a read unless the adapter sets
 * NDK_ADAPTER_FLAG_RDMA_READ_SINK_NOT_REQUIRED, where it is ignored.
 * Slot mr[2]. IRQL <= DISPATCH_LEVEL. Since 1.1. May pend (request).
 * Statuses:
 *   STATUS_SUCCESS                 inline          registered; both tokens are valid
 *   STATUS_PENDING                 inline          started; RequestCompletion is called exactly
 *                                                  once with the outcome
 *   STATUS_INVALID_PARAMETER       async-possible  the bytes named by Mdl and Length are not
 *                                                  virtually contiguous, or Length is more than
 *                                                  the chain holds
 *   STATUS_INSUFFICIENT_RESOURCES  both            out of memory or of an adapter resource
 *   STATUS_ACCESS_VIOLATION        async-possible* a page of the chain is not there, or cannot be
 *                                                  written although Flags allows local write
 *   STATUS_INVALID_DEVICE_REQUEST  async-possible* the region is registered already, or was
 *                                                  created with FastRegister TRUE
 *   any other                      async-possible  the list is open-ended
 * NDKPI reference 9.1.
 */
typedef _IRQL_requires_max_(DISPATCH_LEVEL)
    NTSTATUS (*NDK_FN_REGISTER_MR)(_In_ NDK_MR *pNdkMr, _In_ MDL *Mdl, _In_ SIZE_T Length,
                                   _In_ ULONG Flags,
                                   _In_ NDK_FN_REQUEST_COMPLETION RequestCompletion,
                                   _In_opt_ PVOID RequestContext);

/*
 * NdkDeregisterMr: ends what NdkRegisterMr began. After it the memory may be unlocked.
 * Slot mr[3]. IRQL <= DISPATCH_LEVEL. Since 1.1. May pend (request).
 * Statuses:
 *   STATUS_SUCCESS                 inline          deregistered; the tokens are dead
 *   STATUS_PENDING                 inline          started; RequestCompletion is called exactly
 *                                                  once with the outcome
 *   STATUS_INVALID_DEVICE_REQUEST  async-possible* the region is not registered, or was created
 *                                                  with FastRegister TRUE
 *   STATUS_DEVICE_BUSY             async-possible* a window is bound to the region, or a bind is
 *                                                  posted; it stays registered
 *   STATUS_INSUFFICIENT_RESOURCES  async-possible* out of memory; the region stays registered
 *   any other                      async-possible  the list is open-ended
 * NDKPI reference 9.2.
 */
typedef _IRQL_requires_max_(DISPATCH_LEVEL)
    NTSTATUS (*NDK_FN_DEREGISTER_MR)(_In_ NDK_MR *pNdkMr,
                                     _In_ NDK_FN_REQUEST_COMPLETION RequestCompletion,
                                     _In_opt_ PVOID RequestContext);

/*
 * NdkInitializeFastRegisterMr: prepares a region created with FastRegister TRUE for registrations
 * of up to AdapterPageCount pages. RemoteAccess must be TRUE if any of them will grant remote
 * rights.
 * Slot mr[4]. IRQL <= DISPATCH_LEVEL. Since 1.1. May pend (request).
 * Statuses:
 *   STATUS_SUCCESS                 inline          NdkFastRegister may be posted for this region
 *   STATUS_PENDING                 inline          started; RequestCompletion is called exactly
 *                                                  once with the outcome
 *   STATUS_IMPLEMENTATION_LIMIT    async-possible  the adapter cannot do that many pages in one
 *                                                  region
 *   STATUS_INVALID_PARAMETER       async-possible* AdapterPageCount is 0
 *   STATUS_INVALID_DEVICE_REQUEST  async-possible* the region was created with FastRegister FALSE,
 *                                                  or a fast registration of it is posted or valid
 *   STATUS_INSUFFICIENT_RESOURCES  async-possible* out of memory
 *   any other                      async-possible  the list is open-ended
 * NDKPI reference 9.3.
 */
typedef _IRQL_requires_max_(DISPATCH_LEVEL)
    NTSTATUS (*NDK_FN_INITIALIZE_FAST_REGISTER_MR)(_In_ NDK_MR *pNdkMr, _In_ ULONG AdapterPageCount,
                                                   _In_ BOOLEAN RemoteAccess,
                                                   _In_ NDK_FN_REQUEST_COMPLETION RequestCompletion,
                                                   _In_opt_ PVOID RequestContext);

/*
 * NdkGetRemoteTokenFromMr: the token the peer needs to reach this region. Valid once the region is
 * registered; of a fast-register region it is to be read again after each NdkFastRegister has
 * returned, since it may change.
 * Slot mr[5]. IRQL <= DISPATCH_LEVEL. Since 1.1. Returns a value, cannot fail.
 * NDKPI reference 9.4.
 */
typedef _IRQL_requires_max_(DISPATCH_LEVEL)
    UINT32 (*NDK_FN_GET_REMOTE_TOKEN_FROM_MR)(_In_ NDK_MR *pNdkMr);

/*
 * NdkGetLocalTokenFromMr: the token for NDK_SGE.MemoryRegionToken. Valid once NdkRegisterMr or
 * NdkInitializeFastRegisterMr has succeeded.
 * Slot mr[6]. IRQL <= DISPATCH_LEVEL. Since 1.1. Returns a value, cannot fail.
 * NDKPI reference 9.5.
 */
typedef _IRQL_requires_max_(DISPATCH_LEVEL)
    UINT32 (*NDK_FN_GET_LOCAL_TOKEN_FROM_MR)(_In_ NDK_MR *pNdkMr);

typedef struct _NDK_MR_DISPATCH {
    NDK_FN_CLOSE_OBJECT NdkCloseMr;
    NDK_FN_QUERY_EXTENSION_INTERFACE NdkQueryExtension;
    NDK_FN_REGISTER_MR NdkRegisterMr;
    NDK_FN_DEREGISTER_MR NdkDeregisterMr;
    NDK_FN_INITIALIZE_FAST_REGISTER_MR NdkInitializeFastRegisterMr;
    NDK_FN_GET_REMOTE_TOKEN_FROM_MR NdkGetRemoteTokenFromMr;
    NDK_FN_GET_LOCAL_TOKEN_FROM_MR NdkGetLocalTokenFromMr;
} NDK_MR_DISPATCH;

struct _NDK_MR {
    NDK_OBJECT_HEADER Header;
    CONST NDK_MR_DISPATCH *Dispatch;
};

/* ---- memory window ---- */

/*
 * NdkGetRemoteTokenFromMw: the token the peer needs to reach the bound window. Valid as soon as
 * NdkBind has returned, also with binds and invalidations queued behind each other; it changes with
 * each NdkBind.
 * Slot mw[2]. IRQL <= DISPATCH_LEVEL. Since 1.1. Returns a value, cannot fail.
 * NDKPI reference 10.1.
 */
typedef _IRQL_requires_max_(DISPATCH_LEVEL)
    UINT32 (*NDK_FN_GET_REMOTE_TOKEN_FROM_MW)(_In_ NDK_MW *pNdkMw);

typedef struct _NDK_MW_DISPATCH {
    NDK_FN_CLOSE_OBJECT NdkCloseMw;
    NDK_FN_QUERY_EXTENSION_INTERFACE NdkQueryExtension;
    NDK_FN_GET_REMOTE_TOKEN_FROM_MW NdkGetRemoteTokenFromMw;
} NDK_MW_DISPATCH;

struct _NDK_MW {
    NDK_OBJECT_HEADER Header;
    CONST NDK_MW_DISPATCH *Dispatch;
};

/* ---- protection domain ---- */

/*
 * NdkCreateMr: creates a region that is used either with NdkRegisterMr (FastRegister FALSE) or with
 * NdkInitializeFastRegisterMr and NdkFastRegister (TRUE).
 * Slot pd[2]. IRQL <= DISPATCH_LEVEL. Since 1.1. May pend (create).
 * Statuses:
 *   STATUS_SUCCESS                 inline          *ppNdkMr is the new region
 *   STATUS_PENDING                 inline          started; CreateCompletion is called exactly
 *                                                  once with the outcome
 *   STATUS_INSUFFICIENT_RESOURCES  both            out of memory or of an adapter resource
 *   any other                      async-possible  the list is open-ended
 * NDKPI reference 8.1.
 */
typedef _IRQL_requires_max_(DISPATCH_LEVEL)
    NTSTATUS (*NDK_FN_CREATE_MR)(_In_ NDK_PD *pNdkPd, _In_ BOOLEAN FastRegister,
                                 _In_ NDK_FN_CREATE_COMPLETION CreateCompletion,
                                 _In_opt_ PVOID RequestContext, _Outptr_ NDK_MR **ppNdkMr);

/*
 * NdkCreateMw: creates a window that is not bound. Its close ends what it is bound to.
 * Slot pd[3]. IRQL <= DISPATCH_LEVEL. Since 1.1. May pend (create).
 * Statuses:
 *   STATUS_SUCCESS                 inline          *ppNdkMw is the new window
 *   STATUS_PENDING                 inline          started; CreateCompletion is called exactly
 *                                                  once with the outcome
 *   STATUS_INSUFFICIENT_RESOURCES  both            out of memory or of an adapter resource
 *   any other                      async-possible  the list is open-ended
 * NDKPI reference 8.2.
 */
typedef _IRQL_requires_max_(DISPATCH_LEVEL)
    NTSTATUS (*NDK_FN_CREATE_MW)(_In_ NDK_PD *pNdkPd,
                                 _In_ NDK_FN_CREATE_COMPLETION CreateCompletion,
                                 _In_opt_ PVOID RequestContext, _Outptr_ NDK_MW **ppNdkMw);

/*
 * NdkCreateSrq: creates a shared receive queue of SrqDepth receives with up to
 * MaxReceiveRequestSge SGEs each. SrqNotification, optional, is called once when the number of
 * receives queued falls below NotifyThreshold (0: never), and again only after NdkModifySrq has
 * armed it. Affinity: processors preferred for it, or NULL. Closing waits for the queue pairs of
 * the queue; receives that are then still queued are dropped without a completion.
 * Slot pd[4]. IRQL <= DISPATCH_LEVEL. Since 1.1. May pend (create).
 * Statuses:
 *   STATUS_SUCCESS                 inline          *ppNdkSrq is the new queue
 *   STATUS_PENDING                 inline          started; CreateCompletion is called exactly
 *                                                  once with the outcome
 *   STATUS_INVALID_PARAMETER       async-possible  SrqDepth or MaxReceiveRequestSge is above the
 *                                                  adapter's limit (any depth is when MaxSrqDepth
 *                                                  is 0), or SrqDepth is 0
 *   STATUS_INSUFFICIENT_RESOURCES  both            out of memory or of an adapter resource
 *   any other                      async-possible  the list is open-ended
 * NDKPI reference 8.3.
 */
typedef _IRQL_requires_max_(DISPATCH_LEVEL)
    NTSTATUS (*NDK_FN_CREATE_SRQ)(_In_ NDK_PD *pNdkPd, _In_ ULONG SrqDepth,
                                  _In_ ULONG MaxReceiveRequestSge, _In_ ULONG NotifyThreshold,
                                  _In_opt_ NDK_FN_SRQ_NOTIFICATION_CALLBACK SrqNotification,
                                  _In_opt_ PVOID SrqNotificationContext,
                                  _In_opt_ GROUP_AFFINITY *Affinity,
                                  _In_ NDK_FN_CREATE_COMPLETION CreateCompletion,
                                  _In_opt_ PVOID RequestContext, _Outptr_ NDK_SRQ **ppNdkSrq);

/*
 * NdkCreateQp: creates a queue pair whose receives complete to pReceiveCq and whose other requests
 * complete to pInitiatorCq; they may be one queue. The depths are requests outstanding, the Sge
 * values pieces of one request, InlineDataSize bytes of one inline send or write. QPContext comes
 * back in every result. Neither CQ can finish closing before the queue pair has.
 * Slot pd[5]. IRQL <= DISPATCH_LEVEL. Since 1.1. May pend (create).
 * Statuses:
 *   STATUS_SUCCESS                 inline          *ppNdkQp is the new queue pair
 *   STATUS_PENDING                 inline          started; CreateCompletion is called exactly
 *                                                  once with the outcome
 *   STATUS_INVALID_PARAMETER       async-possible  one of the five sizes is above the adapter's
 *                                                  limit
 *   STATUS_INSUFFICIENT_RESOURCES  both            out of memory or of an adapter resource
 *   STATUS_INVALID_DEVICE_STATE    async-possible* one of the completion queues overran and is dead
 *   any other                      async-possible  the list is open-ended
 * NDKPI reference 8.4.
 */
typedef _IRQL_requires_max_(DISPATCH_LEVEL)
    NTSTATUS (*NDK_FN_CREATE_QP)(_In_ NDK_PD *pNdkPd, _In_ NDK_CQ *pReceiveCq,
                                 _In_ NDK_CQ *pInitiatorCq, _In_opt_ PVOID QPContext,
                                 _In_ ULONG ReceiveQueueDepth, _In_ ULONG InitiatorQueueDepth,
                                 _In_ ULONG MaxReceiveRequestSge, _In_ ULONG MaxInitiatorRequestSge,
                                 _In_ ULONG InlineDataSize,
                                 _In_ NDK_FN_CREATE_COMPLETION CreateCompletion,
                                 _In_opt_ PVOID RequestContext, _Outptr_ NDK_QP **ppNdkQp);

/*
 * NdkCreateQpWithSrq: as NdkCreateQp, with receives taken from pSrq, one when a message begins.
 * They still complete to pReceiveCq. What was not taken stays in pSrq when the queue pair is
 * flushed, disconnected or closed.
 * Slot pd[6]. IRQL <= DISPATCH_LEVEL. Since 1.1. May pend (create).
 * Statuses:
 *   STATUS_SUCCESS                 inline          *ppNdkQp is the new queue pair
 *   STATUS_PENDING                 inline          started; CreateCompletion is called exactly
 *                                                  once with the outcome
 *   STATUS_INVALID_PARAMETER       async-possible  one of the three sizes is above the adapter's
 *                                                  limit; a CQ or pSrq is NULL, or pSrq is of
 *                                                  another protection domain
 *   STATUS_INSUFFICIENT_RESOURCES  both            out of memory or of an adapter resource
 *   STATUS_INVALID_DEVICE_STATE    async-possible* one of the completion queues overran and is dead
 *   any other                      async-possible  the list is open-ended
 * NDKPI reference 8.5.
 */
typedef _IRQL_requires_max_(DISPATCH_LEVEL) NTSTATUS (*NDK_FN_CREATE_QP_WITH_SRQ)(
    _In_ NDK_PD *pNdkPd, _In_ NDK_CQ *pReceiveCq, _In_ NDK_CQ *pInitiatorCq, _In_ NDK_SRQ *pSrq,
    _In_opt_ PVOID QPContext, _In_ ULONG InitiatorQueueDepth, _In_ ULONG MaxInitiatorRequestSge,
    _In_ ULONG InlineDataSize, _In_ NDK_FN_CREATE_COMPLETION CreateCompletion,
    _In_opt_ PVOID RequestContext, _Outptr_ NDK_QP **ppNdkQp);

/*
 * NdkGetPrivilegedMemoryRegionToken: the token with which SGEs name adapter addresses of a LAM
 * directly, for local reading and writing. It never gives the peer anything; as the sink of a read
 * it works only when the adapter sets NDK_ADAPTER_FLAG_RDMA_READ_SINK_NOT_REQUIRED.
 * Slot pd[7]. IRQL <= DISPATCH_LEVEL. Since 1.1. Returns nothing, cannot fail.
 * NDKPI reference 8.6.
 */
typedef _IRQL_requires_max_(DISPATCH_LEVEL)
    VOID (*NDK_FN_GET_PRIVILEGED_MEMORY_REGION_TOKEN)(_In_ NDK_PD *pNdkPd, _Out_ UINT32 *pToken);

typedef struct _NDK_PD_DISPATCH {
    NDK_FN_CLOSE_OBJECT NdkClosePd;
    NDK_FN_QUERY_EXTENSION_INTERFACE NdkQueryExtension;
    NDK_FN_CREATE_MR NdkCreateMr;
    NDK_FN_CREATE_MW NdkCreateMw;
    NDK_FN_CREATE_SRQ NdkCreateSrq;
    NDK_FN_CREATE_QP NdkCreateQp;
    NDK_FN_CREATE_QP_WITH_SRQ NdkCreateQpWithSrq;
    NDK_FN_GET_PRIVILEGED_MEMORY_REGION_TOKEN NdkGetPrivilegedMemoryRegionToken;
} NDK_PD_DISPATCH;

struct _NDK_PD {
    NDK_OBJECT_HEADER Header;
    CONST NDK_PD_DISPATCH *Dispatch;
};

#ifdef __cplusplus
}
#endif

#endif /* SOFTNDK_NDKPI_MEMORY_H */
