// SPDX-License-Identifier: MIT
/*
 * ndkpi_queue.h - completion queues, shared receive queues and queue pairs: where work is done.
 *
 * A part of ndkpi.h, which says how the comments are to be read; include that.
 */
#ifndef SOFTNDK_NDKPI_QUEUE_H
#define SOFTNDK_NDKPI_QUEUE_H

#include "ndkpi_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- completion queue ---- */

/*
 * NdkResizeCq: changes the depth to CqDepth entries (<= MaxCqDepth). Allowed only when the adapter
 * sets NDK_ADAPTER_FLAG_CQ_RESIZE_SUPPORTED. No completion is lost or reordered. It may run beside
 * all other calls on the queue.
 * Slot cq[2]. IRQL <= DISPATCH_LEVEL. Since 1.1. May pend (request).
 * Statuses:
 *   STATUS_SUCCESS                 inline          the queue has the new depth
 *   STATUS_PENDING                 inline          started; RequestCompletion is called exactly
 *                                                  once with the outcome
 *   STATUS_INVALID_PARAMETER       async-possible  CqDepth is 0, above the adapter's MaxCqDepth, or
 *                                                  below the number of completions that are
 *                                                  queued; the queue is as before
 *   STATUS_INSUFFICIENT_RESOURCES  both            out of memory or of an adapter resource
 *   STATUS_NOT_SUPPORTED           async-possible* the adapter does not set its resize flag
 *   STATUS_INVALID_DEVICE_STATE    async-possible* the queue overran and is dead
 *   any other                      async-possible  the list is open-ended
 * NDKPI reference 7.1.
 */
typedef _IRQL_requires_max_(DISPATCH_LEVEL)
    NTSTATUS (*NDK_FN_RESIZE_CQ)(_In_ NDK_CQ *pNdkCq, _In_ ULONG CqDepth,
                                 _In_ NDK_FN_REQUEST_COMPLETION RequestCompletion,
                                 _In_opt_ PVOID RequestContext);

/*
 * NdkArmCq: asks for one call of the notification callback. Type is NDK_CQ_NOTIFY_...: ERRORS for
 * the end of the CQ only, SOLICITED for a receive met by a soliciting send or any failed request,
 * ANY for every completion. Of two arms before a notification the stronger one holds. Completions
 * that came since the last notification satisfy the arm at once. The consumer serializes it with
 * the calls that take results.
 * Slot cq[3]. IRQL <= DISPATCH_LEVEL. Since 1.1. Returns nothing, cannot fail.
 * NDKPI reference 7.2.
 */
typedef _IRQL_requires_max_(DISPATCH_LEVEL)
    VOID (*NDK_FN_ARM_CQ)(_In_ NDK_CQ *pNdkCq, _In_ ULONG Type);

/*
 * NdkGetCqResults: moves up to nResults completions into Results and returns how many, 0 when the
 * queue is empty. Also returns receives that met an invalidating send, without telling the token.
 * Slot cq[4]. IRQL <= DISPATCH_LEVEL. Since 1.1. Returns a value, cannot fail.
 * NDKPI reference 7.3.
 */
typedef _IRQL_requires_max_(DISPATCH_LEVEL)
    ULONG (*NDK_FN_GET_CQ_RESULTS)(_In_ NDK_CQ *pNdkCq,
                                   _Out_writes_to_(nResults, return ) NDK_RESULT Results[],
                                   _In_ ULONG nResults);

/*
 * NdkControlCqInterruptModeration: how long and how many completions may be gathered before an
 * armed queue notifies. ModerationInterval: microseconds, 0 for no moderation, MAXULONG to let the
 * count alone decide. ModerationCount: completions, 0 or 1 for no moderation, MAXULONG or more than
 * the depth to let the interval alone decide. A new queue has no moderation. The consumer does not
 * call it twice at once for one queue.
 * Slot cq[5]. IRQL <= DISPATCH_LEVEL. Since 1.1. Never pends.
 * Statuses:
 *   STATUS_SUCCESS                 inline          the settings were taken
 *   STATUS_INSUFFICIENT_RESOURCES  inline          out of memory
 *   STATUS_NOT_SUPPORTED           inline          the adapter does not set its interrupt
 *                                                  moderation flag
 *   STATUS_INVALID_PARAMETER_MIX   inline          the interval is MAXULONG and the count is
 *                                                  MAXULONG or above the depth, so that nothing
 *                                                  would ever end the gathering
 *   any other                      inline          the list is open-ended
 * NDKPI reference 7.4.
 */
typedef _IRQL_requires_max_(DISPATCH_LEVEL)
    NTSTATUS (*NDK_FN_CONTROL_CQ_INTERRUPT_MODERATION)(_In_ NDK_CQ *pNdkCq,
                                                       _In_ ULONG ModerationInterval,
                                                       _In_ ULONG ModerationCount);

/*
 * NdkGetCqResultsEx: as NdkGetCqResults, with the kind of each request and the invalidated token.
 * Both may be used on one queue.
 * Slot cq[6]. IRQL <= DISPATCH_LEVEL. Since 1.2. Returns a value, cannot fail.
 * NDKPI reference 7.5.
 */
typedef _IRQL_requires_max_(DISPATCH_LEVEL)
    ULONG (*NDK_FN_GET_CQ_RESULTS_EX)(_In_ NDK_CQ *pNdkCq,
                                      _Out_writes_to_(nResults, return ) NDK_RESULT_EX Results[],
                                      _In_ ULONG nResults);

/* A consumer may touch the last slot only when the object's version is 1.2 or more. */
typedef struct _NDK_CQ_DISPATCH {
    NDK_FN_CLOSE_OBJECT NdkCloseCq;
    NDK_FN_QUERY_EXTENSION_INTERFACE NdkQueryExtension;
    NDK_FN_RESIZE_CQ NdkResizeCq;
    NDK_FN_ARM_CQ NdkArmCq;
    NDK_FN_GET_CQ_RESULTS NdkGetCqResults;
    NDK_FN_CONTROL_CQ_INTERRUPT_MODERATION NdkControlCqInterruptModeration;
    NDK_FN_GET_CQ_RESULTS_EX NdkGetCqResultsEx;
} NDK_CQ_DISPATCH;

struct _NDK_CQ {
    NDK_OBJECT_HEADER Header;
    CONST NDK_CQ_DISPATCH *Dispatch;
};

/* ---- shared receive queue ---- */

/*
 * NdkModifySrq: changes the depth to SrqDepth entries (0 keeps it) and arms the notification for
 * the moment when fewer than NotifyThreshold receives are queued, at once when that is so already
 * (0 keeps threshold and arming as they are). One notification for each arming.
 * Slot srq[2]. IRQL <= DISPATCH_LEVEL. Since 1.1. May pend (request).
 * Statuses:
 *   STATUS_SUCCESS                 inline          changed
 *   STATUS_PENDING                 inline          started; RequestCompletion is called exactly
 *                                                  once with the outcome
 *   STATUS_INVALID_PARAMETER       async-possible  SrqDepth is above the adapter's MaxSrqDepth, or
 *                                                  below the number of receives queued
 *   any other                      async-possible  the list is open-ended
 * NDKPI reference 11.1.
 */
typedef _IRQL_requires_max_(DISPATCH_LEVEL)
    NTSTATUS (*NDK_FN_MODIFY_SRQ)(_In_ NDK_SRQ *pNdkSrq, _In_ ULONG SrqDepth,
                                  _In_ ULONG NotifyThreshold,
                                  _In_ NDK_FN_REQUEST_COMPLETION RequestCompletion,
                                  _In_opt_ PVOID RequestContext);

/*
 * NdkSrqReceive: posts a receive of nSge pieces that any queue pair of the shared queue may use.
 * The consumer serializes posts to one shared queue.
 * Slot srq[3]. IRQL <= DISPATCH_LEVEL. Since 1.1. Work request, never pends.
 * Statuses:
 *   STATUS_SUCCESS                 inline          posted; the receive CQ of the queue pair that
 *                                                  uses it gets the entry
 *   STATUS_NO_MORE_ENTRIES         inline*         the queue already holds as many receives as its
 *                                                  depth
 *   STATUS_DATA_OVERRUN            inline*         more SGEs than the queue was created for
 *   STATUS_BUFFER_OVERFLOW         inline*         more bytes than the adapter moves in one
 *                                                  request
 *   STATUS_INVALID_PARAMETER       inline*         pSgl is NULL although nSge is not 0
 *   STATUS_INSUFFICIENT_RESOURCES  inline*         no memory for the queue
 *   STATUS_ACCESS_VIOLATION        inline*         option scattered: an SGE with the privileged
 *                                                  token crosses an adapter page
 *   any other                      inline          the list is open-ended
 * NDKPI reference 11.2.
 */
typedef _IRQL_requires_max_(DISPATCH_LEVEL)
    NTSTATUS (*NDK_FN_SRQ_RECEIVE)(_In_ NDK_SRQ *pNdkSrq, _In_opt_ PVOID RequestContext,
                                   _In_reads_(nSge) CONST NDK_SGE *pSgl, _In_ ULONG nSge);

typedef struct _NDK_SRQ_DISPATCH {
    NDK_FN_CLOSE_OBJECT NdkCloseSrq;
    NDK_FN_QUERY_EXTENSION_INTERFACE NdkQueryExtension;
    NDK_FN_MODIFY_SRQ NdkModifySrq;
    NDK_FN_SRQ_RECEIVE NdkSrqReceive;
} NDK_SRQ_DISPATCH;

struct _NDK_SRQ {
    NDK_OBJECT_HEADER Header;
    CONST NDK_SRQ_DISPATCH *Dispatch;
};

/* ---- queue pair ---- */

/*
 * Work requests (all functions here but NdkFlush) complete through the CQ of their queue, in the
 * order in which they were posted to it. A success return means posted, any failure means not
 * posted and no completion. RequestContext comes back in the result. The consumer serializes posts
 * to one queue; the two queues of a pair are independent of each other.
 */

/*
 * NdkFlush: starts cancelling all requests of both queues; each completes with STATUS_CANCELLED.
 * Returns possibly before they have. May run together with posts.
 * Slot qp[2]. IRQL <= DISPATCH_LEVEL. Since 1.1. Returns nothing, cannot fail.
 * NDKPI reference 12.1.
 */
typedef _IRQL_requires_max_(DISPATCH_LEVEL) VOID (*NDK_FN_FLUSH)(_In_ NDK_QP *pNdkQp);

/*
 * NdkSend: sends nSge pieces as one message to the peer's next receive. Flags: SILENT_SUCCESS,
 * READ_FENCE, SEND_AND_SOLICIT_EVENT, INLINE, DEFER. With INLINE the number of SGEs is free and
 * their total is limited by the queue pair's InlineDataSize.
 * Slot qp[3]. IRQL <= DISPATCH_LEVEL. Since 1.1. Work request, never pends.
 * Statuses:
 *   STATUS_SUCCESS                 inline          posted; the completion queue gets one entry
 *                                                  (none for a silent success)
 *   STATUS_CONNECTION_INVALID      inline          the queue pair is not connected
 *   STATUS_NO_MORE_ENTRIES         inline*         the queue already holds as many requests as its
 *                                                  depth
 *   STATUS_DATA_OVERRUN            inline*         more SGEs than the queue was created for
 *   STATUS_BUFFER_OVERFLOW         inline*         more bytes than one transfer, or with the
 *                                                  inline flag than the inline size, allows
 *   STATUS_INVALID_PARAMETER       inline*         Flags has a bit that does not belong here, or
 *                                                  pSgl is NULL although nSge is not 0
 *   STATUS_INSUFFICIENT_RESOURCES  inline*         no memory for the queue
 *   STATUS_ACCESS_VIOLATION        inline*         option scattered: an SGE with the privileged
 *                                                  token crosses an adapter page
 *   any other                      inline          the list is open-ended
 * NDKPI reference 12.2.
 */
typedef _IRQL_requires_max_(DISPATCH_LEVEL)
    NTSTATUS (*NDK_FN_SEND)(_In_ NDK_QP *pNdkQp, _In_opt_ PVOID RequestContext,
                            _In_reads_(nSge) CONST NDK_SGE *pSgl, _In_ ULONG nSge,
                            _In_ ULONG Flags);

/*
 * NdkReceive: posts memory for one message of the peer, of a queue pair without shared queue. It
 * must be there before the message is.
 * Slot qp[4]. IRQL <= DISPATCH_LEVEL. Since 1.1. Work request, never pends.
 * Statuses:
 *   STATUS_SUCCESS                 inline          posted; the receive CQ gets one entry
 *   STATUS_CONNECTION_INVALID      inline*         a completion queue of the queue pair overran:
 *                                                  it is dead
 *   STATUS_INVALID_DEVICE_REQUEST  inline*         the queue pair receives through a shared
 *                                                  receive queue
 *   STATUS_NO_MORE_ENTRIES         inline*         the queue already holds as many requests as its
 *                                                  depth
 *   STATUS_DATA_OVERRUN            inline*         more SGEs than the queue was created for
 *   STATUS_BUFFER_OVERFLOW         inline*         more bytes than the adapter moves in one
 *                                                  request
 *   STATUS_INVALID_PARAMETER       inline*         pSgl is NULL although nSge is not 0
 *   STATUS_INSUFFICIENT_RESOURCES  inline*         no memory for the queue
 *   STATUS_ACCESS_VIOLATION        inline*         option scattered: an SGE with the privileged
 *                                                  token crosses an adapter page
 *   any other                      inline          the list is open-ended
 * NDKPI reference 12.3.
 */
typedef _IRQL_requires_max_(DISPATCH_LEVEL)
    NTSTATUS (*NDK_FN_RECEIVE)(_In_ NDK_QP *pNdkQp, _In_opt_ PVOID RequestContext,
                               _In_reads_(nSge) CONST NDK_SGE *pSgl, _In_ ULONG nSge);

/*
 * NdkBind: opens Length bytes from VirtualAddress of the registered region pMr to the peer, under
 * the token of the window pMw, which is valid when this returns. VirtualAddress is an address of
 * the region and is not dereferenced. Flags: SILENT_SUCCESS, READ_FENCE, ALLOW_REMOTE_READ,
 * ALLOW_REMOTE_WRITE, DEFER, at least one ALLOW among them. The window is reached and invalidated
 * over this queue pair only, must be invalidated before it is bound again, and ends with the
 * connection. The region cannot be deregistered meanwhile. It needs no remote right of its own.
 * Slot qp[5]. IRQL <= DISPATCH_LEVEL. Since 1.1. Work request, never pends.
 * Statuses:
 *   STATUS_SUCCESS                 inline          posted; the completion queue gets one entry
 *                                                  (none for a silent success)
 *   STATUS_CONNECTION_INVALID      inline          the queue pair is not connected
 *   STATUS_ACCESS_VIOLATION        inline          the region lacks a right that the window asks
 *                                                  for; remote write needs a region with local
 *                                                  write
 *   STATUS_NO_MORE_ENTRIES         inline*         the queue already holds as many requests as its
 *                                                  depth
 *   STATUS_INVALID_PARAMETER       inline*         Flags has a bit that does not belong here,
 *                                                  remote write without its second bit, or no
 *                                                  right at all; the region or the window is of
 *                                                  another domain; the window is empty or not
 *                                                  inside the region
 *   STATUS_INVALID_DEVICE_REQUEST  inline*         the region is not registered, or was created
 *                                                  with FastRegister TRUE
 *   STATUS_INSUFFICIENT_RESOURCES  inline*         no memory for the request or the queue
 *   any other                      inline          the list is open-ended
 * NDKPI reference 12.4.
 */
typedef _IRQL_requires_max_(DISPATCH_LEVEL)
    NTSTATUS (*NDK_FN_BIND)(_In_ NDK_QP *pNdkQp, _In_opt_ PVOID RequestContext, _In_ NDK_MR *pMr,
                            _In_ NDK_MW *pMw, _In_ PVOID VirtualAddress, _In_ SIZE_T Length,
                            _In_ ULONG Flags);

/*
 * NdkFastRegister: makes the fast-register region pMr cover AdapterPageCount pages of a LAM. FBO:
 * offset of the first byte in the first page. Length: bytes, <= AdapterPageCount * PAGE_SIZE - FBO.
 * BaseVirtualAddress: the address under which the first byte will be named, FBO plus a multiple of
 * PAGE_SIZE, not dereferenced. Flags: SILENT_SUCCESS, READ_FENCE, ALLOW_REMOTE_READ,
 * ALLOW_LOCAL_WRITE, ALLOW_REMOTE_WRITE, RDMA_READ_SINK (see NdkRegisterMr), DEFER. The new remote
 * token can be read when this returns.
 * Slot qp[6]. IRQL <= DISPATCH_LEVEL. Since 1.1. Work request, never pends.
 * Statuses:
 *   STATUS_SUCCESS                 inline          posted; the completion queue gets one entry
 *                                                  (none for a silent success)
 *   STATUS_CONNECTION_INVALID      inline          the queue pair is not connected
 *   STATUS_ACCESS_VIOLATION        inline          remote rights were asked for on a region
 *                                                  initialized with RemoteAccess FALSE, or a page
 *                                                  is not there with the access that Flags asks
 *                                                  for
 *   STATUS_NO_MORE_ENTRIES         inline*         the queue already holds as many requests as its
 *                                                  depth
 *   STATUS_INVALID_PARAMETER       inline*         Flags has a bit that does not belong here, or
 *                                                  remote write without its local write; the
 *                                                  region is of another domain; more pages than
 *                                                  initialized; a page is not aligned; FBO, Length
 *                                                  or BaseVirtualAddress does not fit
 *   STATUS_INVALID_DEVICE_STATE    inline*         the region was not initialized, or was created
 *                                                  with FastRegister FALSE
 *   STATUS_INSUFFICIENT_RESOURCES  inline*         no memory for the page list or the queue
 *   any other                      inline          the list is open-ended
 * NDKPI reference 12.5.
 */
typedef _IRQL_requires_max_(DISPATCH_LEVEL)
    NTSTATUS (*NDK_FN_FAST_REGISTER)(_In_ NDK_QP *pNdkQp, _In_opt_ PVOID RequestContext,
                                     _In_ NDK_MR *pMr, _In_ ULONG AdapterPageCount,
                                     _In_reads_(AdapterPageCount)
                                         CONST NDK_LOGICAL_ADDRESS *AdapterPageArray,
                                     _In_ ULONG FBO, _In_ SIZE_T Length,
                                     _In_ PVOID BaseVirtualAddress, _In_ ULONG Flags);

/*
 * NdkInvalidate: takes its memory from a fast-registered region or a window; pNdkMrOrMw is the
 * header of either. Not for regions of NdkRegisterMr. Flags: SILENT_SUCCESS, READ_FENCE, DEFER.
 * Slot qp[7]. IRQL <= DISPATCH_LEVEL. Since 1.1. Work request, never pends.
 * Statuses:
 *   STATUS_SUCCESS                 inline          posted; the completion queue gets one entry
 *                                                  (none for a silent success)
 *   STATUS_CONNECTION_INVALID      inline          the queue pair is not connected
 *   STATUS_NO_MORE_ENTRIES         inline*         the queue already holds as many requests as its
 *                                                  depth
 *   STATUS_INVALID_PARAMETER       inline*         Flags has a bit that does not belong here, or
 *                                                  the object is neither a fast-register region
 *                                                  nor a window, or is of another domain
 *   STATUS_INSUFFICIENT_RESOURCES  inline*         no memory for the queue
 *   any other                      inline          the list is open-ended
 * NDKPI reference 12.6.
 */
typedef _IRQL_requires_max_(DISPATCH_LEVEL)
    NTSTATUS (*NDK_FN_INVALIDATE)(_In_ NDK_QP *pNdkQp, _In_opt_ PVOID RequestContext,
                                  _In_ NDK_OBJECT_HEADER *pNdkMrOrMw, _In_ ULONG Flags);

/*
 * NdkRead: reads from RemoteAddress (host byte order) of the memory the peer named by RemoteToken
 * into nSge pieces, at most MaxReadRequestSge. Flags: SILENT_SUCCESS, READ_FENCE,
 * RDMA_READ_LOCAL_INVALIDATE (invalidates the token of the first SGE on success, ignored when the
 * adapter does not offer it), DEFER.
 * Slot qp[8]. IRQL <= DISPATCH_LEVEL. Since 1.1. Work request, never pends.
 * Statuses:
 *   STATUS_SUCCESS                 inline          posted; the completion queue gets one entry
 *                                                  (none for a silent success)
 *   STATUS_CONNECTION_INVALID      inline          the queue pair is not connected
 *   STATUS_REMOTE_RESOURCES        inline          the read goes past the end of the peer's
 *                                                  memory; NDKPI lists it as a return value, but
 *                                                  only the peer can tell, so expect it as the
 *                                                  completion's status
 *   STATUS_NO_MORE_ENTRIES         inline*         the queue already holds as many requests as its
 *                                                  depth
 *   STATUS_DATA_OVERRUN            inline*         more SGEs than the adapter's MaxReadRequestSge
 *   STATUS_BUFFER_OVERFLOW         inline*         more bytes than the adapter moves in one
 *                                                  request
 *   STATUS_INVALID_DEVICE_REQUEST  inline*         the connection's outbound read limit is 0
 *   STATUS_INVALID_PARAMETER       inline*         Flags has a bit that does not belong here, or
 *                                                  pSgl is NULL although nSge is not 0
 *   STATUS_INSUFFICIENT_RESOURCES  inline*         no memory for the queue
 *   STATUS_ACCESS_VIOLATION        inline*         option scattered: an SGE with the privileged
 *                                                  token crosses an adapter page
 *   any other                      inline          the list is open-ended
 * NDKPI reference 12.7.
 */
typedef _IRQL_requires_max_(DISPATCH_LEVEL)
    NTSTATUS (*NDK_FN_READ)(_In_ NDK_QP *pNdkQp, _In_opt_ PVOID RequestContext,
                            _In_reads_(nSge) CONST NDK_SGE *pSgl, _In_ ULONG nSge,
                            _In_ UINT64 RemoteAddress, _In_ UINT32 RemoteToken, _In_ ULONG Flags);

/*
 * NdkWrite: writes nSge pieces to RemoteAddress (host byte order) of the memory the peer named by
 * RemoteToken. Flags: SILENT_SUCCESS, READ_FENCE, INLINE (as for NdkSend), DEFER.
 * Slot qp[9]. IRQL <= DISPATCH_LEVEL. Since 1.1. Work request, never pends.
 * Statuses:
 *   STATUS_SUCCESS                 inline          posted; the completion queue gets one entry
 *                                                  (none for a silent success)
 *   STATUS_CONNECTION_INVALID      inline          the queue pair is not connected
 *   STATUS_NO_MORE_ENTRIES         inline*         the queue already holds as many requests as its
 *                                                  depth
 *   STATUS_DATA_OVERRUN            inline*         more SGEs than the queue was created for
 *   STATUS_BUFFER_OVERFLOW         inline*         more bytes than one transfer, or with the
 *                                                  inline flag than the inline size, allows
 *   STATUS_INVALID_PARAMETER       inline*         Flags has a bit that does not belong here, or
 *                                                  pSgl is NULL although nSge is not 0
 *   STATUS_INSUFFICIENT_RESOURCES  inline*         no memory for the queue
 *   STATUS_ACCESS_VIOLATION        inline*         option scattered: an SGE with the privileged
 *                                                  token crosses an adapter page
 *   any other                      inline          the list is open-ended
 * NDKPI reference 12.8.
 */
typedef _IRQL_requires_max_(DISPATCH_LEVEL)
    NTSTATUS (*NDK_FN_WRITE)(_In_ NDK_QP *pNdkQp, _In_opt_ PVOID RequestContext,
                             _In_reads_(nSge) CONST NDK_SGE *pSgl, _In_ ULONG nSge,
                             _In_ UINT64 RemoteAddress, _In_ UINT32 RemoteToken, _In_ ULONG Flags);

/*
 * NdkSendAndInvalidate: as NdkSend, and RemoteToken is dead at the peer before its receive
 * completes. Note the order: Flags before RemoteToken. Only for peers known to support it.
 * Slot qp[10]. IRQL <= DISPATCH_LEVEL. Since 1.2. Work request, never pends.
 * Statuses:
 *   STATUS_SUCCESS                 inline          posted; the completion queue gets one entry
 *                                                  (none for a silent success)
 *   STATUS_CONNECTION_INVALID      inline          the queue pair is not connected
 *   STATUS_NO_MORE_ENTRIES         inline*         the queue already holds as many requests as its
 *                                                  depth
 *   STATUS_DATA_OVERRUN            inline*         more SGEs than the queue was created for
 *   STATUS_BUFFER_OVERFLOW         inline*         more bytes than one transfer, or with the
 *                                                  inline flag than the inline size, allows
 *   STATUS_INVALID_PARAMETER       inline*         Flags has a bit that does not belong here, or
 *                                                  pSgl is NULL although nSge is not 0
 *   STATUS_INSUFFICIENT_RESOURCES  inline*         no memory for the queue
 *   STATUS_ACCESS_VIOLATION        inline*         option scattered: an SGE with the privileged
 *                                                  token crosses an adapter page
 *   STATUS_NOT_SUPPORTED           inline*         the adapter runs NDKPI 1.1, whose table ends
 *                                                  before this slot
 *   any other                      inline          the list is open-ended
 * NDKPI reference 12.9.
 */
typedef _IRQL_requires_max_(DISPATCH_LEVEL)
    NTSTATUS (*NDK_FN_SEND_AND_INVALIDATE)(_In_ NDK_QP *pNdkQp, _In_opt_ PVOID RequestContext,
                                           _In_reads_(nSge) CONST NDK_SGE *pSgl, _In_ ULONG nSge,
                                           _In_ ULONG Flags, _In_ UINT32 RemoteToken);

/* A consumer may touch the last slot only when the object's version is 1.2 or more. */
typedef struct _NDK_QP_DISPATCH {
    NDK_FN_CLOSE_OBJECT NdkCloseQp;
    NDK_FN_QUERY_EXTENSION_INTERFACE NdkQueryExtension;
    NDK_FN_FLUSH NdkFlush;
    NDK_FN_SEND NdkSend;
    NDK_FN_RECEIVE NdkReceive;
    NDK_FN_BIND NdkBind;
    NDK_FN_FAST_REGISTER NdkFastRegister;
    NDK_FN_INVALIDATE NdkInvalidate;
    NDK_FN_READ NdkRead;
    NDK_FN_WRITE NdkWrite;
    NDK_FN_SEND_AND_INVALIDATE NdkSendAndInvalidate;
} NDK_QP_DISPATCH;

struct _NDK_QP {
    NDK_OBJECT_HEADER Header;
    CONST NDK_QP_DISPATCH *Dispatch;
};

#ifdef __cplusplus
}
#endif

#endif /* SOFTNDK_NDKPI_QUEUE_H */
