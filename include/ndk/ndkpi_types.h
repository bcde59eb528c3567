// SPDX-License-Identifier: MIT
/*
 * ndkpi_types.h - what all parts of the interface share: object header, results, flags, callbacks.
 *
 * A part of ndkpi.h, which says how the comments are to be read; include that.
 */
#ifndef SOFTNDK_NDKPI_TYPES_H
#define SOFTNDK_NDKPI_TYPES_H

#include <wdm.h>
#include <ws2def.h>
#include <ws2ipdef.h>

#include "ndkinfo.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- objects: what all have in common ---- */

/* What an object is. NDKPI reference 1.2. */
typedef enum _NDK_OBJECT_TYPE {
    NdkObjectTypeUndefined = 0,
    NdkObjectTypeAdapter = 1,
    NdkObjectTypeQp = 2,
    NdkObjectTypeCq = 3,
    NdkObjectTypeMr = 4,
    NdkObjectTypeMw = 5,
    NdkObjectTypePd = 6,
    NdkObjectTypeSharedEndpoint = 7,
    NdkObjectTypeConnector = 8,
    NdkObjectTypeListener = 9,
    NdkObjectTypeSrq = 10,
    NdkObjectTypeMax = 11 /* may grow with a later version */
} NDK_OBJECT_TYPE;

/* Belongs to the layer between consumer and provider. NDKPI reference 1.3. */
typedef struct _NDK_OBJECT_HEADER_RESERVED_BLOCK {
    PVOID rf[4];
} NDK_OBJECT_HEADER_RESERVED_BLOCK;

/*
 * First member of every object. The provider sets Version (the one it runs) and ObjectType, zeroes
 * NdkReserved, and does not touch NdkReserved again before the object is closed.
 * NDKPI reference 1.3.
 */
typedef struct _NDK_OBJECT_HEADER {
    NDK_VERSION Version;
    NDK_OBJECT_TYPE ObjectType;
    NDK_OBJECT_HEADER_RESERVED_BLOCK NdkReserved;
} NDK_OBJECT_HEADER;

/* The ten objects. Each is a header and a pointer to its table, Dispatch, which the provider fills
 * before it shows the object to anyone and never reads again: the layer above may put a table of
 * its own there. NDKPI reference 1.4. */
typedef struct _NDK_ADAPTER NDK_ADAPTER;
typedef struct _NDK_CQ NDK_CQ;
typedef struct _NDK_PD NDK_PD;
typedef struct _NDK_MR NDK_MR;
typedef struct _NDK_MW NDK_MW;
typedef struct _NDK_SRQ NDK_SRQ;
typedef struct _NDK_QP NDK_QP;
typedef struct _NDK_CONNECTOR NDK_CONNECTOR;
typedef struct _NDK_LISTENER NDK_LISTENER;
typedef struct _NDK_SHARED_ENDPOINT NDK_SHARED_ENDPOINT;

/* ---- results and requests ---- */

/* A completion taken from a CQ. BytesTransferred is defined for receives only; QPContext was given
 * when the QP was created, RequestContext when the request was posted. NDKPI reference 1.5. */
typedef struct _NDK_RESULT {
    NTSTATUS Status;
    ULONG BytesTransferred;
    PVOID QPContext;
    PVOID RequestContext;
} NDK_RESULT;

/* The kind of a completed request. A receive that met an invalidating send keeps the bit of an
 * ordinary receive, so that "Type & NdkOperationTypeReceive" finds both; the sender of such a
 * message sees NdkOperationTypeSend. Since 1.2. NDKPI reference 1.7. */
typedef enum _NDK_OPERATION_TYPE {
    NdkOperationTypeReceive = 1,
    NdkOperationTypeReceiveAndInvalidate = 32769,
    NdkOperationTypeSend = 2,
    NdkOperationTypeFastRegister = 4,
    NdkOperationTypeBind = 8,
    NdkOperationTypeInvalidate = 16,
    NdkOperationTypeRead = 32,
    NdkOperationTypeWrite = 64
} NDK_OPERATION_TYPE;

/* A completion with its kind. ProviderErrorCode (2.1) is 0 on success, and on failure a diagnostic
 * number of the provider or 0 when it has none. TypeSpecificCompletionOutput holds the invalidated
 * token for NdkOperationTypeReceiveAndInvalidate, otherwise nothing. Since 1.2; on 64-bit targets
 * the 2.1 field fills what was padding. NDKPI reference 1.6. */
typedef struct _NDK_RESULT_EX {
    NTSTATUS Status;
    ULONG BytesTransferred;
    PVOID QPContext;
    PVOID RequestContext;
    NDK_OPERATION_TYPE Type;
    ULONG ProviderErrorCode;
    ULONG_PTR TypeSpecificCompletionOutput;
} NDK_RESULT_EX;

/* An address as the adapter sees memory; use QuadPart. NDKPI reference 1.8. */
typedef PHYSICAL_ADDRESS NDK_LOGICAL_ADDRESS;

/*
 * The adapter pages of a virtually contiguous buffer (a "LAM"), made by NdkBuildLAM. Every entry is
 * PAGE_SIZE-aligned and stands for PAGE_SIZE bytes; entries need not be consecutive. AdapterContext
 * is the provider's. Takes FIELD_OFFSET(NDK_LOGICAL_ADDRESS_MAPPING, AdapterPageArray) +
 * AdapterPageCount * sizeof(NDK_LOGICAL_ADDRESS) bytes. NDKPI reference 1.8.
 */
typedef struct _NDK_LOGICAL_ADDRESS_MAPPING {
    PVOID AdapterContext;
    ULONG AdapterPageCount;
    NDK_LOGICAL_ADDRESS AdapterPageArray[1];
} NDK_LOGICAL_ADDRESS_MAPPING;

/*
 * One piece of local memory of a request. With the PD's privileged token LogicalAddress counts (an
 * adapter address from a LAM), with any other token VirtualAddress (inside the registered region).
 * With NDK_OP_FLAG_INLINE it is VirtualAddress, read by the processor during the call, and the
 * token is ignored. The array of SGEs is read only during the call. NDKPI reference 1.9.
 */
typedef struct _NDK_SGE {
    union {
        PVOID VirtualAddress;
        NDK_LOGICAL_ADDRESS LogicalAddress;
    };
    ULONG Length;
    UINT32 MemoryRegionToken;
} NDK_SGE;

/* Flags of initiator requests; which request takes which is told there. NDKPI reference 2.1. */
#define NDK_OP_FLAG_SILENT_SUCCESS             0x00000001 /* no CQ entry on success */
#define NDK_OP_FLAG_READ_FENCE                 0x00000002 /* waits for all earlier reads */
#define NDK_OP_FLAG_SEND_AND_SOLICIT_EVENT     0x00000004 /* wakes a SOLICITED arm */
#define NDK_OP_FLAG_ALLOW_REMOTE_READ          0x00000008
#define NDK_OP_FLAG_ALLOW_LOCAL_WRITE          0x00000010
#define NDK_OP_FLAG_ALLOW_REMOTE_WRITE         0x00000030 /* two bits: contains ALLOW_LOCAL_WRITE */
#define NDK_OP_FLAG_INLINE                     0x00000040 /* copy the data during the call */
#define NDK_OP_FLAG_RDMA_READ_SINK             0x00000080
#define NDK_OP_FLAG_RDMA_READ_LOCAL_INVALIDATE 0x00000100 /* since 1.2 */
#define NDK_OP_FLAG_DEFER                      0x00000200 /* since 1.2: may wait for the next one */

/* Flags of NdkRegisterMr, to be OR-ed although they overlap. NDKPI reference 2.2. */
#define NDK_MR_FLAG_ALLOW_LOCAL_READ   0x00000000 /* always granted */
#define NDK_MR_FLAG_ALLOW_LOCAL_WRITE  0x00000001
#define NDK_MR_FLAG_ALLOW_REMOTE_READ  0x00000002
#define NDK_MR_FLAG_ALLOW_REMOTE_WRITE 0x00000005 /* two bits: contains ALLOW_LOCAL_WRITE */
#define NDK_MR_FLAG_RDMA_READ_SINK     0x00000008

/* What NdkArmCq waits for. Values, not bits, and not ordered: ERRORS is the weakest, ANY the
 * strongest. NDKPI reference 2.3. */
#define NDK_CQ_NOTIFY_ERRORS    0
#define NDK_CQ_NOTIFY_ANY       1
#define NDK_CQ_NOTIFY_SOLICITED 2

/* ---- callbacks: implemented by the consumer ---- */

/* The provider calls them at any IRQL <= DISPATCH_LEVEL. None may be NULL unless its parameter is
 * declared optional. */

/* Completes a close that pended. The last callback of the object; carries no status because a
 * close cannot fail. NDKPI reference 4.1. */
typedef _IRQL_requires_max_(DISPATCH_LEVEL) _Function_class_(NDK_FN_CLOSE_COMPLETION)
    VOID (*NDK_FN_CLOSE_COMPLETION)(_In_opt_ PVOID Context);

/* Completes a create that pended. On success pNdkObject is the header of the new object, which is
 * its first member: a cast gives the object. On failure it means nothing. NDKPI reference 4.2. */
typedef _IRQL_requires_max_(DISPATCH_LEVEL) _Function_class_(NDK_FN_CREATE_COMPLETION)
    VOID (*NDK_FN_CREATE_COMPLETION)(_In_opt_ PVOID Context, _In_ NTSTATUS Status,
                                     _In_ NDK_OBJECT_HEADER *pNdkObject);

/* Completes any other call that pended, with one of the statuses listed at that call.
 * NDKPI reference 4.3. */
typedef _IRQL_requires_max_(DISPATCH_LEVEL) _Function_class_(NDK_FN_REQUEST_COMPLETION)
    VOID (*NDK_FN_REQUEST_COMPLETION)(_In_opt_ PVOID Context, _In_ NTSTATUS Status);

/* Tells that what an arm asked for has happened: one call for each arm, never two at once for one
 * CQ. CqStatus STATUS_SUCCESS: completions are there. STATUS_BUFFER_OVERFLOW: the CQ overran;
 * STATUS_INTERNAL_ERROR: it broke; in both cases it and its QPs are dead. NDKPI reference 4.4. */
typedef _IRQL_requires_max_(DISPATCH_LEVEL) _Function_class_(NDK_FN_CQ_NOTIFICATION_CALLBACK)
    VOID (*NDK_FN_CQ_NOTIFICATION_CALLBACK)(_In_opt_ PVOID CqNotificationContext,
                                            _In_ NTSTATUS CqStatus);

/* Tells that the queued receives fell below the threshold (STATUS_SUCCESS), or that the SRQ and
 * its QPs are dead (STATUS_INTERNAL_ERROR). NDKPI reference 4.5. */
typedef _IRQL_requires_max_(DISPATCH_LEVEL) _Function_class_(NDK_FN_SRQ_NOTIFICATION_CALLBACK)
    VOID (*NDK_FN_SRQ_NOTIFICATION_CALLBACK)(_In_opt_ PVOID SrqNotificationContext,
                                             _In_ NTSTATUS SrqStatus);

/* Delivers a new connector for an incoming connection. The consumer owns it from here on and must
 * close it in the end; closing it undecided rejects the connection. NDKPI reference 4.6. */
typedef _IRQL_requires_max_(DISPATCH_LEVEL) _Function_class_(NDK_FN_CONNECT_EVENT_CALLBACK)
    VOID (*NDK_FN_CONNECT_EVENT_CALLBACK)(_In_opt_ PVOID ConnectEventContext,
                                          _In_ NDK_CONNECTOR *pNdkConnector);

/* Tells, at most once for each connection, that the peer disconnected or the connection broke. Says
 * nothing about requests: a peer's disconnect flushes none. NDKPI reference 4.7. */
typedef _IRQL_requires_max_(DISPATCH_LEVEL) _Function_class_(NDK_FN_DISCONNECT_EVENT_CALLBACK)
    VOID (*NDK_FN_DISCONNECT_EVENT_CALLBACK)(_In_opt_ PVOID DisconnectEventContext);

/* The same with a reason of the provider, 0 for none. Since 2.1. NDKPI reference 4.7. */
typedef _IRQL_requires_max_(DISPATCH_LEVEL) _Function_class_(NDK_FN_DISCONNECT_EVENT_CALLBACK_EX)
    VOID (*NDK_FN_DISCONNECT_EVENT_CALLBACK_EX)(_In_opt_ PVOID DisconnectEventContext,
                                                _In_ ULONG ProviderDisconnectReason);

/* ---- functions of every object ---- */

/*
 * NdkClose...: closes any object but an adapter. pNdkObject is the address of the object's header;
 * the object must not be used after the call. The close starts whatever flushing it needs and ends
 * when no request, callback or successor object is left; an antecedent may be closed before its
 * successors and then pends. CloseCompletion must be a function even if nobody cares.
 * Slot [0] of every table but the adapter's. IRQL <= DISPATCH_LEVEL. Since 1.1. May pend (close).
 * Statuses:
 *   STATUS_SUCCESS                 inline          closed; no callback of this object will run any
 *                                                  more
 *   STATUS_PENDING                 inline          closing; CloseCompletion is the last callback
 *                                                  of the object
 *   any other                      async-possible  the list is open-ended
 * NDKPI reference 5.1.
 */
typedef _IRQL_requires_max_(DISPATCH_LEVEL)
    NTSTATUS (*NDK_FN_CLOSE_OBJECT)(_In_ NDK_OBJECT_HEADER *pNdkObject,
                                    _In_ NDK_FN_CLOSE_COMPLETION CloseCompletion,
                                    _In_opt_ PVOID RequestContext);

/* The table of an extension; its type is known to those who know the GUID. NDKPI reference 1.10. */
typedef struct _NDK_EXTENSION_INTERFACE {
    CONST VOID *Dispatch;
} NDK_EXTENSION_INTERFACE;

/*
 * NdkQueryExtension: asks an object for the table of the extension ExtensionInterfaceID in version
 * ExtensionInterfaceVersion. The table stays valid as long as the object.
 * Slot adapter[0], [1] of all others. IRQL <= DISPATCH_LEVEL. Since 1.1. Never pends.
 * Statuses:
 *   STATUS_SUCCESS                 inline          the extension's table was returned
 *   STATUS_NOT_SUPPORTED           inline          the extension is unknown; no standard one
 *                                                  exists
 *   any other                      inline          the list is open-ended
 * NDKPI reference 5.2.
 */
typedef _IRQL_requires_max_(DISPATCH_LEVEL) NTSTATUS (*NDK_FN_QUERY_EXTENSION_INTERFACE)(
    _In_ NDK_OBJECT_HEADER *pNdkObject, _In_ GUID *ExtensionInterfaceID,
    _In_ NDK_VERSION ExtensionInterfaceVersion, _Out_ NDK_EXTENSION_INTERFACE *pExtensionInterface);

#ifdef __cplusplus
}
#endif

#endif /* SOFTNDK_NDKPI_TYPES_H */
