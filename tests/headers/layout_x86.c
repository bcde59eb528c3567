// SPDX-License-Identifier: MIT
/*
 * layout_x86.c - compiles for a 32-bit target only if the layouts the reference gives for x86 are
 * those of our headers. Freestanding: it also proves that the headers need no C library.
 */
#include <stddef.h>

#include <ndisndk.h>
#include <ndkpi.h>
#include <netioapi.h>
#include <wskndk.h>

#define AT(type, field, offset)                                                                    \
    _Static_assert(offsetof(type, field) == (offset), #type "." #field " is not at " #offset)
#define SIZE(type, size)   _Static_assert(sizeof(type) == (size), #type " has not size " #size)
#define VALUE(name, value) _Static_assert((name) == (value), #name " is not " #value)
#define SLOT(table, field, index)                                                                  \
    _Static_assert(offsetof(table, field) == (index) * sizeof(void *),                             \
                   #table "." #field " is not slot " #index)
#define SLOTS(table, count)                                                                        \
    _Static_assert(sizeof(table) == (count) * sizeof(void *), #table " has not " #count " slots")

SIZE(void *, 4);
SIZE(ULONG, 4);
SIZE(ULONG_PTR, 4);
SIZE(SIZE_T, 4);
SIZE(WCHAR, 2);
SIZE(MDL, 0x1c);
SIZE(KEVENT, 0x10);
SIZE(SOCKADDR_STORAGE, 128);
SIZE(SOCKADDR_IN6, 28);

/* 64-bit integers keep the alignment they have on Windows. */
_Static_assert(_Alignof(LONGLONG) == 8 && _Alignof(ULONG64) == 8, "64-bit integers align to 8");
_Static_assert(_Alignof(LARGE_INTEGER) == 8, "LARGE_INTEGER aligns to 8");

/* NDKPI reference, appendix B, and what follows from 1.3 to 1.9 with 4-byte pointers */
SIZE(NDK_OBJECT_HEADER, 0x18);
SIZE(NDK_CQ, 0x1c);
SIZE(NDK_RESULT, 0x10);
SIZE(NDK_RESULT_EX, 0x1c);
AT(NDK_RESULT_EX, Type, 0x10);
AT(NDK_RESULT_EX, ProviderErrorCode, 0x14);
AT(NDK_RESULT_EX, TypeSpecificCompletionOutput, 0x18);
SIZE(NDK_SGE, 0x10);
AT(NDK_SGE, VirtualAddress, 0x00);
AT(NDK_SGE, LogicalAddress, 0x00);
AT(NDK_SGE, Length, 0x08);
AT(NDK_SGE, MemoryRegionToken, 0x0c);
SIZE(NDK_LOGICAL_ADDRESS_MAPPING, 0x10);
AT(NDK_LOGICAL_ADDRESS_MAPPING, AdapterPageArray, 0x08);
SIZE(NDK_ADAPTER_INFO, 0x58);
AT(NDK_ADAPTER_INFO, Version, 0x00);
AT(NDK_ADAPTER_INFO, VendorId, 0x04);
AT(NDK_ADAPTER_INFO, DeviceId, 0x08);
AT(NDK_ADAPTER_INFO, MaxRegistrationSize, 0x0c);
AT(NDK_ADAPTER_INFO, MaxWindowSize, 0x10);
AT(NDK_ADAPTER_INFO, FRMRPageCount, 0x14);
AT(NDK_ADAPTER_INFO, MaxInitiatorRequestSge, 0x18);
AT(NDK_ADAPTER_INFO, MaxReceiveRequestSge, 0x1c);
AT(NDK_ADAPTER_INFO, MaxReadRequestSge, 0x20);
AT(NDK_ADAPTER_INFO, MaxTransferLength, 0x24);
AT(NDK_ADAPTER_INFO, MaxInlineDataSize, 0x28);
AT(NDK_ADAPTER_INFO, MaxInboundReadLimit, 0x2c);
AT(NDK_ADAPTER_INFO, MaxOutboundReadLimit, 0x30);
AT(NDK_ADAPTER_INFO, MaxReceiveQueueDepth, 0x34);
AT(NDK_ADAPTER_INFO, MaxInitiatorQueueDepth, 0x38);
AT(NDK_ADAPTER_INFO, MaxSrqDepth, 0x3c);
AT(NDK_ADAPTER_INFO, MaxCqDepth, 0x40);
AT(NDK_ADAPTER_INFO, LargeRequestThreshold, 0x44);
AT(NDK_ADAPTER_INFO, MaxCallerData, 0x48);
AT(NDK_ADAPTER_INFO, MaxCalleeData, 0x4c);
AT(NDK_ADAPTER_INFO, AdapterFlags, 0x50);
AT(NDK_ADAPTER_INFO, RdmaTechnology, 0x54);
SIZE(NDIS_NDK_CAPABILITIES, 0x38);
AT(NDIS_NDK_CAPABILITIES, Header, 0x00);
AT(NDIS_NDK_CAPABILITIES, Flags, 0x04);
AT(NDIS_NDK_CAPABILITIES, MaxQpCount, 0x08);
AT(NDIS_NDK_CAPABILITIES, MaxCqCount, 0x0c);
AT(NDIS_NDK_CAPABILITIES, MaxMrCount, 0x10);
AT(NDIS_NDK_CAPABILITIES, MaxPdCount, 0x14);
AT(NDIS_NDK_CAPABILITIES, MaxInboundReadLimit, 0x18);
AT(NDIS_NDK_CAPABILITIES, MaxOutboundReadLimit, 0x1c);
AT(NDIS_NDK_CAPABILITIES, MaxMwCount, 0x20);
AT(NDIS_NDK_CAPABILITIES, MaxSrqCount, 0x24);
AT(NDIS_NDK_CAPABILITIES, MissingCounterMask, 0x28);
AT(NDIS_NDK_CAPABILITIES, NdkInfo, 0x30);
SIZE(NDIS_NDK_PERFORMANCE_COUNTERS, 0xf0);
SIZE(NDIS_NDK_STATISTICS_INFO, 0xf8);
SIZE(NDIS_NDK_CONNECTION_ENTRY, 0x40);
SIZE(NDIS_NDK_PROVIDER_CHARACTERISTICS, 0x10);
SIZE(NDK_ADAPTER_DISPATCH, 0x24);
SIZE(NDK_CONNECTOR_DISPATCH, 0x34); /* 0x2c before 2.1 */
AT(NDK_CONNECTOR_DISPATCH, NdkCompleteConnectEx, 0x2c);

/* ---- dispatch tables, NDKPI reference 3 ---- */

/* NDK_ADAPTER_DISPATCH */
SLOT(NDK_ADAPTER_DISPATCH, NdkQueryExtension, 0);
SLOT(NDK_ADAPTER_DISPATCH, NdkQueryAdapterInfo, 1);
SLOT(NDK_ADAPTER_DISPATCH, NdkCreateCq, 2);
SLOT(NDK_ADAPTER_DISPATCH, NdkCreatePd, 3);
SLOT(NDK_ADAPTER_DISPATCH, NdkCreateSharedEndpoint, 4);
SLOT(NDK_ADAPTER_DISPATCH, NdkCreateConnector, 5);
SLOT(NDK_ADAPTER_DISPATCH, NdkCreateListener, 6);
SLOT(NDK_ADAPTER_DISPATCH, NdkBuildLAM, 7);
SLOT(NDK_ADAPTER_DISPATCH, NdkReleaseLAM, 8);
SLOTS(NDK_ADAPTER_DISPATCH, 9);

/* NDK_CQ_DISPATCH */
SLOT(NDK_CQ_DISPATCH, NdkCloseCq, 0);
SLOT(NDK_CQ_DISPATCH, NdkQueryExtension, 1);
SLOT(NDK_CQ_DISPATCH, NdkResizeCq, 2);
SLOT(NDK_CQ_DISPATCH, NdkArmCq, 3);
SLOT(NDK_CQ_DISPATCH, NdkGetCqResults, 4);
SLOT(NDK_CQ_DISPATCH, NdkControlCqInterruptModeration, 5);
SLOT(NDK_CQ_DISPATCH, NdkGetCqResultsEx, 6);
SLOTS(NDK_CQ_DISPATCH, 7);

/* NDK_PD_DISPATCH */
SLOT(NDK_PD_DISPATCH, NdkClosePd, 0);
SLOT(NDK_PD_DISPATCH, NdkQueryExtension, 1);
SLOT(NDK_PD_DISPATCH, NdkCreateMr, 2);
SLOT(NDK_PD_DISPATCH, NdkCreateMw, 3);
SLOT(NDK_PD_DISPATCH, NdkCreateSrq, 4);
SLOT(NDK_PD_DISPATCH, NdkCreateQp, 5);
SLOT(NDK_PD_DISPATCH, NdkCreateQpWithSrq, 6);
SLOT(NDK_PD_DISPATCH, NdkGetPrivilegedMemoryRegionToken, 7);
SLOTS(NDK_PD_DISPATCH, 8);

/* NDK_MR_DISPATCH */
SLOT(NDK_MR_DISPATCH, NdkCloseMr, 0);
SLOT(NDK_MR_DISPATCH, NdkQueryExtension, 1);
SLOT(NDK_MR_DISPATCH, NdkRegisterMr, 2);
SLOT(NDK_MR_DISPATCH, NdkDeregisterMr, 3);
SLOT(NDK_MR_DISPATCH, NdkInitializeFastRegisterMr, 4);
SLOT(NDK_MR_DISPATCH, NdkGetRemoteTokenFromMr, 5);
SLOT(NDK_MR_DISPATCH, NdkGetLocalTokenFromMr, 6);
SLOTS(NDK_MR_DISPATCH, 7);

/* NDK_QP_DISPATCH */
SLOT(NDK_QP_DISPATCH, NdkCloseQp, 0);
SLOT(NDK_QP_DISPATCH, NdkQueryExtension, 1);
SLOT(NDK_QP_DISPATCH, NdkFlush, 2);
SLOT(NDK_QP_DISPATCH, NdkSend, 3);
SLOT(NDK_QP_DISPATCH, NdkReceive, 4);
SLOT(NDK_QP_DISPATCH, NdkBind, 5);
SLOT(NDK_QP_DISPATCH, NdkFastRegister, 6);
SLOT(NDK_QP_DISPATCH, NdkInvalidate, 7);
SLOT(NDK_QP_DISPATCH, NdkRead, 8);
SLOT(NDK_QP_DISPATCH, NdkWrite, 9);
SLOT(NDK_QP_DISPATCH, NdkSendAndInvalidate, 10);
SLOTS(NDK_QP_DISPATCH, 11);

/* NDK_CONNECTOR_DISPATCH */
SLOT(NDK_CONNECTOR_DISPATCH, NdkCloseConnector, 0);
SLOT(NDK_CONNECTOR_DISPATCH, NdkQueryExtension, 1);
SLOT(NDK_CONNECTOR_DISPATCH, NdkConnect, 2);
SLOT(NDK_CONNECTOR_DISPATCH, NdkConnectWithSharedEndpoint, 3);
SLOT(NDK_CONNECTOR_DISPATCH, NdkCompleteConnect, 4);
SLOT(NDK_CONNECTOR_DISPATCH, NdkAccept, 5);
SLOT(NDK_CONNECTOR_DISPATCH, NdkReject, 6);
SLOT(NDK_CONNECTOR_DISPATCH, NdkGetConnectionData, 7);
SLOT(NDK_CONNECTOR_DISPATCH, NdkGetLocalAddress, 8);
SLOT(NDK_CONNECTOR_DISPATCH, NdkGetPeerAddress, 9);
SLOT(NDK_CONNECTOR_DISPATCH, NdkDisconnect, 10);
SLOT(NDK_CONNECTOR_DISPATCH, NdkCompleteConnectEx, 11);
SLOT(NDK_CONNECTOR_DISPATCH, NdkAcceptEx, 12);
SLOTS(NDK_CONNECTOR_DISPATCH, 13);

/* NDK_LISTENER_DISPATCH */
SLOT(NDK_LISTENER_DISPATCH, NdkCloseListener, 0);
SLOT(NDK_LISTENER_DISPATCH, NdkQueryExtension, 1);
SLOT(NDK_LISTENER_DISPATCH, NdkListen, 2);
SLOT(NDK_LISTENER_DISPATCH, NdkGetLocalAddress, 3);
SLOT(NDK_LISTENER_DISPATCH, NdkControlConnectEvents, 4);
SLOTS(NDK_LISTENER_DISPATCH, 5);

/* NDK_MW_DISPATCH */
SLOT(NDK_MW_DISPATCH, NdkCloseMw, 0);
SLOT(NDK_MW_DISPATCH, NdkQueryExtension, 1);
SLOT(NDK_MW_DISPATCH, NdkGetRemoteTokenFromMw, 2);
SLOTS(NDK_MW_DISPATCH, 3);

/* NDK_SRQ_DISPATCH */
SLOT(NDK_SRQ_DISPATCH, NdkCloseSrq, 0);
SLOT(NDK_SRQ_DISPATCH, NdkQueryExtension, 1);
SLOT(NDK_SRQ_DISPATCH, NdkModifySrq, 2);
SLOT(NDK_SRQ_DISPATCH, NdkSrqReceive, 3);
SLOTS(NDK_SRQ_DISPATCH, 4);

/* NDK_SHARED_ENDPOINT_DISPATCH */
SLOT(NDK_SHARED_ENDPOINT_DISPATCH, NdkCloseSharedEndpoint, 0);
SLOT(NDK_SHARED_ENDPOINT_DISPATCH, NdkQueryExtension, 1);
SLOT(NDK_SHARED_ENDPOINT_DISPATCH, NdkGetLocalAddress, 2);
SLOTS(NDK_SHARED_ENDPOINT_DISPATCH, 3);
