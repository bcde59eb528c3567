// SPDX-License-Identifier: MIT
/*
 * ndkpi_connect.h - shared endpoints, connectors and listeners: how queue pairs get connected.
 *
 * A part of ndkpi.h, which says how the comments are to be read; include that.
 */
#ifndef SOFTNDK_NDKPI_CONNECT_H
#define SOFTNDK_NDKPI_CONNECT_H

#include "ndkpi_types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- shared endpoint ---- */

/*
 * NdkGetLocalAddress of a shared endpoint: writes its address and port, the chosen one when it was
 * created with port 0. *pAddressLength: bytes at pAddress, then bytes written or needed.
 * Slot shared endpoint[2]. IRQL <= DISPATCH_LEVEL. Since 1.1. Never pends.
 * Statuses:
 *   STATUS_SUCCESS                 inline          the address was written; *pAddressLength is
 *                                                  the bytes written
 *   STATUS_BUFFER_TOO_SMALL        inline          the buffer cannot hold the address;
 *                                                  *pAddressLength is the size needed
 *   STATUS_INVALID_PARAMETER       inline*         pAddressLength is NULL
 *   any other                      inline          the list is open-ended
 * NDKPI reference 15.1.
 */
typedef _IRQL_requires_max_(DISPATCH_LEVEL) NTSTATUS (*NDK_FN_GET_SHARED_ENDPOINT_LOCAL_ADDRESS)(
    _In_ NDK_SHARED_ENDPOINT *pNdkSharedEndpoint,
    _Out_writes_bytes_to_opt_(*pAddressLength, *pAddressLength) PSOCKADDR pAddress,
    _Inout_ ULONG *pAddressLength);

typedef struct _NDK_SHARED_ENDPOINT_DISPATCH {
    NDK_FN_CLOSE_OBJECT NdkCloseSharedEndpoint;
    NDK_FN_QUERY_EXTENSION_INTERFACE NdkQueryExtension;
    NDK_FN_GET_SHARED_ENDPOINT_LOCAL_ADDRESS NdkGetLocalAddress;
} NDK_SHARED_ENDPOINT_DISPATCH;

struct _NDK_SHARED_ENDPOINT {
    NDK_OBJECT_HEADER Header;
    CONST NDK_SHARED_ENDPOINT_DISPATCH *Dispatch;
};

/* ---- connector ---- */

/*
 * Read limits of the connecting calls: InboundReadLimit is how many reads of the peer may be in
 * progress, OutboundReadLimit how many of ours. Values above the adapter's limits are lowered to
 * them, and each side is held to what the other allows; NdkGetConnectionData tells the outcome.
 */

/*
 * NdkConnect: asks for a connection of pNdkQp from the local address pSrcAddress (port 0: one of
 * 49152-65535 is chosen) to pDestAddress. Private data: PrivateDataLength bytes, <= MaxCallerData.
 * Success means that the peer accepted; NdkCompleteConnect or NdkReject follows. After a failure
 * the queue pair is as it was.
 * Slot connector[2]. IRQL <= DISPATCH_LEVEL. Since 1.1. May pend (request).
 * Statuses:
 *   STATUS_SUCCESS                 inline          the peer accepted; NdkCompleteConnect comes
 *                                                  next
 *   STATUS_PENDING                 inline          started; RequestCompletion is called exactly
 *                                                  once with the outcome
 *   STATUS_INSUFFICIENT_RESOURCES  both            out of memory or of an adapter resource
 *   STATUS_NETWORK_UNREACHABLE     both            no route to the peer's network; may be tried
 *                                                  again
 *   STATUS_HOST_UNREACHABLE        both            the peer cannot be reached; may be tried again
 *   STATUS_CONNECTION_REFUSED      both            nobody listens there, the backlog is full, or
 *                                                  the peer rejected or went away; may be tried
 *                                                  again
 *   STATUS_IO_TIMEOUT              both            no answer in time; may be tried again
 *   STATUS_SHARING_VIOLATION       both            the local address and port are in use
 *   STATUS_INVALID_ADDRESS         both            the local address does not belong to this
 *                                                  adapter
 *   STATUS_TOO_MANY_ADDRESSES      both            port 0 was asked for and 49152-65535 has no
 *                                                  free port
 *   STATUS_ADDRESS_ALREADY_EXISTS  both            a connection between these two addresses and
 *                                                  ports exists
 *   STATUS_INVALID_BUFFER_SIZE     async-possible* more private data than the adapter's
 *                                                  MaxCallerData
 *   STATUS_CONNECTION_ACTIVE       async-possible* the connector or the queue pair is connecting
 *                                                  or connected already, or the queue pair was
 *                                                  before
 *   STATUS_INVALID_PARAMETER       async-possible* the queue pair is NULL or of another adapter,
 *                                                  or pPrivateData is NULL although
 *                                                  PrivateDataLength is not 0
 *   STATUS_CONNECTION_INVALID      async-possible* an earlier attempt used up this connector:
 *                                                  create a new one
 *   STATUS_CONNECTION_ABORTED      async-possible* the peer's answer broke the protocol
 *   STATUS_CANCELLED               async-possible* the connector was closed meanwhile
 *   STATUS_INTERNAL_ERROR          async-possible* a completion queue of the queue pair has
 *                                                  overrun
 *   any other                      async-possible  the list is open-ended
 * NDKPI reference 13.1.
 */
typedef _IRQL_requires_max_(DISPATCH_LEVEL) NTSTATUS (*NDK_FN_CONNECT)(
    _In_ NDK_CONNECTOR *pNdkConnector, _In_ NDK_QP *pNdkQp,
    _In_reads_bytes_(SrcAddressLength) CONST PSOCKADDR pSrcAddress, _In_ ULONG SrcAddressLength,
    _In_reads_bytes_(DestAddressLength) CONST PSOCKADDR pDestAddress, _In_ ULONG DestAddressLength,
    _In_ ULONG InboundReadLimit, _In_ ULONG OutboundReadLimit,
    _In_reads_bytes_opt_(PrivateDataLength) CONST PVOID pPrivateData, _In_ ULONG PrivateDataLength,
    _In_ NDK_FN_REQUEST_COMPLETION RequestCompletion, _In_opt_ PVOID RequestContext);

/*
 * NdkConnectWithSharedEndpoint: as NdkConnect, from the address of pNdkSharedEndpoint, which many
 * connections may share as long as their destinations differ.
 * Slot connector[3]. IRQL <= DISPATCH_LEVEL. Since 1.1. May pend (request).
 * Statuses:
 *   STATUS_SUCCESS                 inline          the peer accepted; NdkCompleteConnect comes
 *                                                  next
 *   STATUS_PENDING                 inline          started; RequestCompletion is called exactly
 *                                                  once with the outcome
 *   STATUS_INSUFFICIENT_RESOURCES  both            out of memory or of an adapter resource
 *   STATUS_NETWORK_UNREACHABLE     both            no route to the peer's network; may be tried
 *                                                  again
 *   STATUS_HOST_UNREACHABLE        both            the peer cannot be reached; may be tried again
 *   STATUS_CONNECTION_REFUSED      both            nobody listens there, the backlog is full, or
 *                                                  the peer rejected or went away; may be tried
 *                                                  again
 *   STATUS_IO_TIMEOUT              both            no answer in time; may be tried again
 *   STATUS_ADDRESS_ALREADY_EXISTS  both            a connection between these two addresses and
 *                                                  ports exists
 *   STATUS_INVALID_PARAMETER       async-possible* the shared endpoint or the queue pair is NULL,
 *                                                  something else or of another adapter, or
 *                                                  pPrivateData is NULL although
 *                                                  PrivateDataLength is not 0
 *   STATUS_INVALID_ADDRESS         async-possible* pDestAddress is no address with a port, or not
 *                                                  of the endpoint's family
 *   STATUS_SHARING_VIOLATION       async-possible* the system no longer lets this process use the
 *                                                  endpoint's address
 *   STATUS_INVALID_BUFFER_SIZE     async-possible* more private data than the adapter's
 *                                                  MaxCallerData
 *   STATUS_CONNECTION_ACTIVE       async-possible* the connector or the queue pair is connecting
 *                                                  or connected already, or the queue pair was
 *                                                  before
 *   STATUS_CONNECTION_INVALID      async-possible* an earlier attempt used up this connector:
 *                                                  create a new one
 *   STATUS_CONNECTION_ABORTED      async-possible* the peer's answer broke the protocol
 *   STATUS_CANCELLED               async-possible* the connector was closed meanwhile
 *   STATUS_INTERNAL_ERROR          async-possible* a completion queue of the queue pair has
 *                                                  overrun
 *   any other                      async-possible  the list is open-ended
 * NDKPI reference 13.2.
 */
typedef _IRQL_requires_max_(DISPATCH_LEVEL) NTSTATUS (*NDK_FN_CONNECT_WITH_SHARED_ENDPOINT)(
    _In_ NDK_CONNECTOR *pNdkConnector, _In_ NDK_QP *pNdkQp,
    _In_ NDK_SHARED_ENDPOINT *pNdkSharedEndpoint,
    _In_reads_bytes_(DestAddressLength) CONST PSOCKADDR pDestAddress, _In_ ULONG DestAddressLength,
    _In_ ULONG InboundReadLimit, _In_ ULONG OutboundReadLimit,
    _In_reads_bytes_opt_(PrivateDataLength) CONST PVOID pPrivateData, _In_ ULONG PrivateDataLength,
    _In_ NDK_FN_REQUEST_COMPLETION RequestCompletion, _In_opt_ PVOID RequestContext);

/*
 * NdkCompleteConnect: active side, after a successful connect. Makes the connection usable and
 * names the callback for its end.
 * Slot connector[4]. IRQL <= DISPATCH_LEVEL. Since 1.1. May pend (request).
 * Statuses:
 *   STATUS_SUCCESS                 inline          the connection is up
 *   STATUS_PENDING                 inline          started; RequestCompletion is called exactly
 *                                                  once with the outcome
 *   STATUS_CONNECTION_INVALID      both            the queue pair is not connecting
 *   STATUS_CONNECTION_ABORTED      async-possible  the accepting peer gave up
 *   STATUS_IO_TIMEOUT              both            not completed in time; this connector cannot be
 *                                                  used again
 *   STATUS_INSUFFICIENT_RESOURCES  async-possible* out of memory or of an adapter resource
 *   STATUS_CANCELLED               async-possible* the connector was closed, or a flush cut off a
 *                                                  transfer, meanwhile
 *   STATUS_INTERNAL_ERROR          async-possible* a completion queue of the queue pair has
 *                                                  overrun
 *   any other                      async-possible  the list is open-ended
 * NDKPI reference 13.3.
 */
typedef _IRQL_requires_max_(DISPATCH_LEVEL)
    NTSTATUS (*NDK_FN_COMPLETE_CONNECT)(_In_ NDK_CONNECTOR *pNdkConnector,
                                        _In_opt_ NDK_FN_DISCONNECT_EVENT_CALLBACK DisconnectEvent,
                                        _In_opt_ PVOID DisconnectEventContext,
                                        _In_ NDK_FN_REQUEST_COMPLETION RequestCompletion,
                                        _In_opt_ PVOID RequestContext);

/*
 * NdkAccept: passive side, on a connector of the connect event. Takes pNdkQp for the connection,
 * answers with PrivateDataLength bytes, <= MaxCalleeData, and ends when the active side has
 * completed.
 * Slot connector[5]. IRQL <= DISPATCH_LEVEL. Since 1.1. May pend (request).
 * Statuses:
 *   STATUS_SUCCESS                 inline          the connection is up
 *   STATUS_PENDING                 inline          started; RequestCompletion is called exactly
 *                                                  once with the outcome
 *   STATUS_CONNECTION_ABORTED      async-possible  the connecting peer gave up
 *   STATUS_IO_TIMEOUT              async-possible  the connecting peer never completed its side
 *   STATUS_CONNECTION_REFUSED      async-possible* the connecting peer rejected after it saw the
 *                                                  answer
 *   STATUS_INVALID_BUFFER_SIZE     async-possible* more private data than the adapter's
 *                                                  MaxCalleeData
 *   STATUS_CONNECTION_ACTIVE       async-possible* the queue pair is connecting or connected
 *                                                  already, or was before
 *   STATUS_INVALID_PARAMETER       async-possible* the queue pair is NULL or of another adapter,
 *                                                  or pPrivateData is NULL although
 *                                                  PrivateDataLength is not 0
 *   STATUS_CONNECTION_INVALID      async-possible* this connector has no incoming connection that
 *                                                  is undecided
 *   STATUS_INSUFFICIENT_RESOURCES  async-possible* out of memory or of an adapter resource
 *   STATUS_CANCELLED               async-possible* the connector was closed, or a flush cut off a
 *                                                  transfer, meanwhile
 *   STATUS_INTERNAL_ERROR          async-possible* a completion queue of the queue pair has
 *                                                  overrun
 *   any other                      async-possible  the list is open-ended
 * NDKPI reference 13.4.
 */
typedef _IRQL_requires_max_(DISPATCH_LEVEL) NTSTATUS (*NDK_FN_ACCEPT)(
    _In_ NDK_CONNECTOR *pNdkConnector, _In_ NDK_QP *pNdkQp, _In_ ULONG InboundReadLimit,
    _In_ ULONG OutboundReadLimit, _In_reads_bytes_opt_(PrivateDataLength) CONST PVOID pPrivateData,
    _In_ ULONG PrivateDataLength, _In_opt_ NDK_FN_DISCONNECT_EVENT_CALLBACK DisconnectEvent,
    _In_opt_ PVOID DisconnectEventContext, _In_ NDK_FN_REQUEST_COMPLETION RequestCompletion,
    _In_opt_ PVOID RequestContext);

/*
 * NdkReject: passive side, instead of NdkAccept; active side, instead of NdkCompleteConnect.
 * Private data: PrivateDataLength bytes, <= MaxCalleeData.
 * Slot connector[6]. IRQL <= DISPATCH_LEVEL. Since 1.1. Never pends.
 * Statuses:
 *   STATUS_SUCCESS                 inline          refused
 *   STATUS_CONNECTION_ABORTED      inline          the peer has given up already
 *   STATUS_INVALID_BUFFER_SIZE     inline*         more private data than the adapter's
 *                                                  MaxCalleeData
 *   STATUS_INVALID_PARAMETER       inline*         pPrivateData is NULL although PrivateDataLength
 *                                                  is not 0
 *   STATUS_CONNECTION_INVALID      inline*         this connector has no connection that is
 *                                                  undecided
 *   STATUS_INSUFFICIENT_RESOURCES  inline*         no memory for the answer; nothing is decided
 *   any other                      inline          the list is open-ended
 * NDKPI reference 13.5.
 */
typedef _IRQL_requires_max_(DISPATCH_LEVEL)
    NTSTATUS (*NDK_FN_REJECT)(_In_ NDK_CONNECTOR *pNdkConnector,
                              _In_reads_bytes_opt_(PrivateDataLength) CONST PVOID pPrivateData,
                              _In_ ULONG PrivateDataLength);

/*
 * NdkGetConnectionData: the effective read limits and the peer's private data, each optional.
 * *pPrivateDataLength: bytes at pPrivateData, then the required size. That is the size of the
 * transport's container, not of what the peer sent: private data must carry its own length.
 * Slot connector[7]. IRQL <= DISPATCH_LEVEL. Since 1.1. Never pends.
 * Statuses:
 *   STATUS_SUCCESS                 inline          returned; with a NULL buffer of length 0 only
 *                                                  the required length
 *   STATUS_BUFFER_TOO_SMALL        inline          the buffer got as much private data as fits;
 *                                                  *pPrivateDataLength is the size needed
 *   STATUS_CONNECTION_INVALID      inline*         this connector never began to connect
 *   STATUS_INVALID_PARAMETER       inline*         pPrivateData is NULL although
 *                                                  *pPrivateDataLength is not 0
 *   any other                      inline          the list is open-ended
 * NDKPI reference 13.6.
 */
typedef _IRQL_requires_max_(DISPATCH_LEVEL) NTSTATUS (*NDK_FN_GET_CONNECTION_DATA)(
    _In_ NDK_CONNECTOR *pNdkConnector, _Out_opt_ ULONG *pInboundReadLimit,
    _Out_opt_ ULONG *pOutboundReadLimit,
    _Out_writes_bytes_to_opt_(*pPrivateDataLength, *pPrivateDataLength) PVOID pPrivateData,
    _Inout_ ULONG *pPrivateDataLength);

/*
 * NdkGetLocalAddress of a connector: as for a shared endpoint; tells the port chosen for port 0.
 * Slot connector[8]. IRQL <= DISPATCH_LEVEL. Since 1.1. Never pends.
 * Statuses:
 *   STATUS_SUCCESS                 inline          the address was written; *pAddressLength is the
 *                                                  bytes written
 *   STATUS_BUFFER_TOO_SMALL        inline          the buffer cannot hold the address;
 *                                                  *pAddressLength is the size needed
 *   STATUS_CONNECTION_INVALID      inline*         this connector never began to connect
 *   STATUS_INVALID_PARAMETER       inline*         pAddressLength is NULL
 *   any other                      inline          the list is open-ended
 * NDKPI reference 13.7.
 */
typedef _IRQL_requires_max_(DISPATCH_LEVEL)
    NTSTATUS (*NDK_FN_GET_LOCAL_ADDRESS)(_In_ NDK_CONNECTOR *pNdkConnector,
                                         _Out_writes_bytes_to_opt_(*pAddressLength, *pAddressLength)
                                             PSOCKADDR pAddress,
                                         _Inout_ ULONG *pAddressLength);

/*
 * NdkGetPeerAddress: writes the peer's address, also inside the connect event.
 * Slot connector[9]. IRQL <= DISPATCH_LEVEL. Since 1.1. Never pends.
 * Statuses:
 *   STATUS_SUCCESS                 inline          the address was written; *pAddressLength is the
 *                                                  bytes written
 *   STATUS_BUFFER_TOO_SMALL        inline          the buffer cannot hold the address;
 *                                                  *pAddressLength is the size needed
 *   STATUS_CONNECTION_INVALID      inline*         this connector never began to connect
 *   STATUS_INVALID_PARAMETER       inline*         pAddressLength is NULL
 *   any other                      inline          the list is open-ended
 * NDKPI reference 13.8.
 */
typedef _IRQL_requires_max_(DISPATCH_LEVEL)
    NTSTATUS (*NDK_FN_GET_PEER_ADDRESS)(_In_ NDK_CONNECTOR *pNdkConnector,
                                        _Out_writes_bytes_to_opt_(*pAddressLength, *pAddressLength)
                                            PSOCKADDR pAddress,
                                        _Inout_ ULONG *pAddressLength);

/*
 * NdkDisconnect: ends the connection gracefully, then flushes the queue pair. Completes when the
 * peer has ended it too, or never will, and no transfer touches memory any more.
 * Slot connector[10]. IRQL <= DISPATCH_LEVEL. Since 1.1. May pend (request).
 * Statuses:
 *   STATUS_SUCCESS                 inline          both sides have ended the connection and all
 *                                                  transfers have stopped
 *   STATUS_PENDING                 inline          started; RequestCompletion is called exactly
 *                                                  once with the outcome
 *   STATUS_IO_TIMEOUT              both            the peer did not answer in time; the connection
 *                                                  is closed all the same
 *   STATUS_CONNECTION_INVALID      async-possible* the connector is not connected, or
 *                                                  NdkDisconnect was called before
 *   STATUS_CONNECTION_ABORTED      async-possible* the connection broke before both sides had
 *                                                  ended it
 *   STATUS_INSUFFICIENT_RESOURCES  async-possible* out of memory
 *   STATUS_CANCELLED               async-possible* the connector was closed, or a flush cut off a
 *                                                  transfer, meanwhile
 *   STATUS_INTERNAL_ERROR          async-possible* a completion queue of the queue pair has
 *                                                  overrun
 *   any other                      async-possible  the list is open-ended
 * NDKPI reference 13.9.
 */
typedef _IRQL_requires_max_(DISPATCH_LEVEL)
    NTSTATUS (*NDK_FN_DISCONNECT)(_In_ NDK_CONNECTOR *pNdkConnector,
                                  _In_ NDK_FN_REQUEST_COMPLETION RequestCompletion,
                                  _In_opt_ PVOID RequestContext);

/* NdkDisconnectEx: a type without a slot in any table. Abortive TRUE would end the connection
 * without the peer's agreement. IRQL <= DISPATCH_LEVEL. NDKPI reference 16. */
typedef _IRQL_requires_max_(DISPATCH_LEVEL)
    NTSTATUS (*NDK_FN_DISCONNECT_EX)(_In_ NDK_CONNECTOR *pNdkConnector, _In_ BOOLEAN Abortive,
                                     _In_ NDK_FN_REQUEST_COMPLETION RequestCompletion,
                                     _In_opt_ PVOID RequestContext);

/*
 * NdkCompleteConnectEx: as NdkCompleteConnect; the callback also gets a reason.
 * Slot connector[11]. IRQL <= DISPATCH_LEVEL. Since 2.1. May pend (request).
 * Statuses:
 *   STATUS_SUCCESS                 inline          the connection is up
 *   STATUS_PENDING                 inline          started; RequestCompletion is called exactly
 *                                                  once with the outcome
 *   STATUS_CONNECTION_INVALID      both            the queue pair is not connecting
 *   STATUS_CONNECTION_ABORTED      async-possible  the accepting peer gave up
 *   STATUS_IO_TIMEOUT              both            not completed in time; this connector cannot be
 *                                                  used again
 *   STATUS_INSUFFICIENT_RESOURCES  async-possible* out of memory or of an adapter resource
 *   STATUS_CANCELLED               async-possible* the connector was closed, or a flush cut off a
 *                                                  transfer, meanwhile
 *   STATUS_INTERNAL_ERROR          async-possible* a completion queue of the queue pair has
 *                                                  overrun
 *   STATUS_NOT_SUPPORTED           async-possible* the adapter runs less than NDKPI 2.1, whose
 *                                                  table ends before this slot
 *   any other                      async-possible  the list is open-ended
 * NDKPI reference 13.10.
 */
typedef _IRQL_requires_max_(DISPATCH_LEVEL) NTSTATUS (*NDK_FN_COMPLETE_CONNECT_EX)(
    _In_ NDK_CONNECTOR *pNdkConnector, _In_opt_ NDK_FN_DISCONNECT_EVENT_CALLBACK_EX DisconnectEvent,
    _In_opt_ PVOID DisconnectEventContext, _In_ NDK_FN_REQUEST_COMPLETION RequestCompletion,
    _In_opt_ PVOID RequestContext);

/*
 * NdkAcceptEx: as NdkAccept; the callback also gets a reason.
 * Slot connector[12]. IRQL <= DISPATCH_LEVEL. Since 2.1. May pend (request).
 * Statuses:
 *   STATUS_SUCCESS                 inline          the connection is up
 *   STATUS_PENDING                 inline          started; RequestCompletion is called exactly
 *                                                  once with the outcome
 *   STATUS_CONNECTION_ABORTED      async-possible  the connecting peer gave up
 *   STATUS_IO_TIMEOUT              async-possible  the connecting peer never completed its side
 *   STATUS_CONNECTION_REFUSED      async-possible* the connecting peer rejected after it saw the
 *                                                  answer
 *   STATUS_INVALID_BUFFER_SIZE     async-possible* more private data than the adapter's
 *                                                  MaxCalleeData
 *   STATUS_CONNECTION_ACTIVE       async-possible* the queue pair is connecting or connected
 *                                                  already, or was before
 *   STATUS_INVALID_PARAMETER       async-possible* the queue pair is NULL or of another adapter,
 *                                                  or pPrivateData is NULL although
 *                                                  PrivateDataLength is not 0
 *   STATUS_CONNECTION_INVALID      async-possible* this connector has no incoming connection that
 *                                                  is undecided
 *   STATUS_INSUFFICIENT_RESOURCES  async-possible* out of memory or of an adapter resource
 *   STATUS_CANCELLED               async-possible* the connector was closed, or a flush cut off a
 *                                                  transfer, meanwhile
 *   STATUS_INTERNAL_ERROR          async-possible* a completion queue of the queue pair has
 *                                                  overrun
 *   STATUS_NOT_SUPPORTED           async-possible* the adapter runs less than NDKPI 2.1, whose
 *                                                  table ends before this slot
 *   any other                      async-possible  the list is open-ended
 * NDKPI reference 13.11.
 */
typedef _IRQL_requires_max_(DISPATCH_LEVEL) NTSTATUS (*NDK_FN_ACCEPT_EX)(
    _In_ NDK_CONNECTOR *pNdkConnector, _In_ NDK_QP *pNdkQp, _In_ ULONG InboundReadLimit,
    _In_ ULONG OutboundReadLimit, _In_reads_bytes_opt_(PrivateDataLength) CONST PVOID pPrivateData,
    _In_ ULONG PrivateDataLength, _In_opt_ NDK_FN_DISCONNECT_EVENT_CALLBACK_EX DisconnectEvent,
    _In_opt_ PVOID DisconnectEventContext, _In_ NDK_FN_REQUEST_COMPLETION RequestCompletion,
    _In_opt_ PVOID RequestContext);

/* A consumer may touch the last two slots only when the object's version is 2.1 or more. */
typedef struct _NDK_CONNECTOR_DISPATCH {
    NDK_FN_CLOSE_OBJECT NdkCloseConnector;
    NDK_FN_QUERY_EXTENSION_INTERFACE NdkQueryExtension;
    NDK_FN_CONNECT NdkConnect;
    NDK_FN_CONNECT_WITH_SHARED_ENDPOINT NdkConnectWithSharedEndpoint;
    NDK_FN_COMPLETE_CONNECT NdkCompleteConnect;
    NDK_FN_ACCEPT NdkAccept;
    NDK_FN_REJECT NdkReject;
    NDK_FN_GET_CONNECTION_DATA NdkGetConnectionData;
    NDK_FN_GET_LOCAL_ADDRESS NdkGetLocalAddress;
    NDK_FN_GET_PEER_ADDRESS NdkGetPeerAddress;
    NDK_FN_DISCONNECT NdkDisconnect;
    NDK_FN_COMPLETE_CONNECT_EX NdkCompleteConnectEx;
    NDK_FN_ACCEPT_EX NdkAcceptEx;
} NDK_CONNECTOR_DISPATCH;

struct _NDK_CONNECTOR {
    NDK_OBJECT_HEADER Header;
    CONST NDK_CONNECTOR_DISPATCH *Dispatch;
};

/* ---- listener ---- */

/*
 * NdkListen: starts listening on pAddress (port 0: one is chosen).
 * Slot listener[2]. IRQL <= DISPATCH_LEVEL. Since 1.1. May pend (request).
 * Statuses:
 *   STATUS_SUCCESS                 inline          listening; the connect event may come from now
 *                                                  on
 *   STATUS_PENDING                 inline          started; RequestCompletion is called exactly
 *                                                  once with the outcome
 *   STATUS_INSUFFICIENT_RESOURCES  both            out of memory or of an adapter resource
 *   STATUS_SHARING_VIOLATION       both            the local address and port are in use
 *   STATUS_INVALID_ADDRESS         both            the local address does not belong to this
 *                                                  adapter
 *   STATUS_TOO_MANY_ADDRESSES      async-possible  port 0 was asked for and 49152-65535 has no
 *                                                  free port
 *   STATUS_INVALID_DEVICE_STATE    async-possible* the listener is listening already
 *   any other                      async-possible  the list is open-ended
 * NDKPI reference 14.1.
 */
typedef _IRQL_requires_max_(DISPATCH_LEVEL)
    NTSTATUS (*NDK_FN_LISTEN)(_In_ NDK_LISTENER *pNdkListener,
                              _In_reads_bytes_(AddressLength) CONST PSOCKADDR pAddress,
                              _In_ ULONG AddressLength,
                              _In_ NDK_FN_REQUEST_COMPLETION RequestCompletion,
                              _In_opt_ PVOID RequestContext);

/*
 * NdkGetLocalAddress of a listener: as for a shared endpoint.
 * Slot listener[3]. IRQL <= DISPATCH_LEVEL. Since 1.1. Never pends.
 * Statuses:
 *   STATUS_SUCCESS                 inline          the address was written; *pAddressLength is the
 *                                                  bytes written
 *   STATUS_BUFFER_TOO_SMALL        inline          the buffer cannot hold the address;
 *                                                  *pAddressLength is the size needed
 *   STATUS_INVALID_DEVICE_STATE    inline*         the listener is not listening
 *   STATUS_INVALID_PARAMETER       inline*         pAddressLength is NULL
 *   any other                      inline          the list is open-ended
 * NDKPI reference 14.2.
 */
typedef _IRQL_requires_max_(DISPATCH_LEVEL) NTSTATUS (*NDK_FN_GET_LISTENER_LOCAL_ADDRESS)(
    _In_ NDK_LISTENER *pNdkListener,
    _Out_writes_bytes_to_opt_(*pAddressLength, *pAddressLength) PSOCKADDR pAddress,
    _Inout_ ULONG *pAddressLength);

/*
 * NdkControlConnectEvents: with Pause TRUE incoming connections are refused as if nobody listened,
 * with FALSE they are taken again.
 * Slot listener[4]. IRQL <= DISPATCH_LEVEL. Since 1.1. Returns nothing, cannot fail.
 * NDKPI reference 14.3.
 */
typedef _IRQL_requires_max_(DISPATCH_LEVEL)
    VOID (*NDK_FN_CONTROL_CONNECT_EVENTS)(_In_ NDK_LISTENER *pNdkListener, _In_ BOOLEAN Pause);

typedef struct _NDK_LISTENER_DISPATCH {
    NDK_FN_CLOSE_OBJECT NdkCloseListener;
    NDK_FN_QUERY_EXTENSION_INTERFACE NdkQueryExtension;
    NDK_FN_LISTEN NdkListen;
    NDK_FN_GET_LISTENER_LOCAL_ADDRESS NdkGetLocalAddress;
    NDK_FN_CONTROL_CONNECT_EVENTS NdkControlConnectEvents;
} NDK_LISTENER_DISPATCH;

struct _NDK_LISTENER {
    NDK_OBJECT_HEADER Header;
    CONST NDK_LISTENER_DISPATCH *Dispatch;
};

#ifdef __cplusplus
}
#endif

#endif /* SOFTNDK_NDKPI_CONNECT_H */
