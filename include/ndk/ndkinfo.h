// SPDX-License-Identifier: MIT
/*
 * ndkinfo.h - what an NDK adapter can do: version, technology, limits and flags.
 *
 * Numbers are limits of one consumer's use of the adapter; a provider fills them in
 * NdkQueryAdapterInfo and keeps to them from then on. Section numbers in the form
 * "NDKPI reference 1.3" refer to the interface reference this project is written against.
 */
#ifndef SOFTNDK_NDKINFO_H
#define SOFTNDK_NDKINFO_H

#include <ntdef.h>

#ifdef __cplusplus
extern "C" {
#endif

/*
 * Version of the interface, passed by value. 1.1 is the base; 1.2 adds the invalidating send, the
 * extended results and deferred posts; 2.0 changes no table; 2.1 adds the extended connect calls.
 * A higher minor version is a superset of a lower one. NDKPI reference 1.1, adapter info 1.1.
 */
typedef struct {
    USHORT Major;
    USHORT Minor;
} NDK_VERSION;

/* The RDMA protocol an adapter speaks. Adapter info 1.2. */
typedef enum _NDK_RDMA_TECHNOLOGY {
    NdkUndefined = 0,
    NdkiWarp = 1,
    NdkInfiniBand = 2,
    NdkRoCE = 3,
    NdkRoCEv2 = 4,
    NdkMaxTechnology = 5
} NDK_RDMA_TECHNOLOGY;

/* Capabilities and limits of an adapter, returned by NdkQueryAdapterInfo. Adapter info 1.3. */
typedef struct _NDK_ADAPTER_INFO {
    NDK_VERSION Version;          /* the version the provider runs, not the one asked for */
    UINT32 VendorId;              /* vendor's OUI, its six digits read as one number */
    UINT32 DeviceId;              /* vendor-defined */
    SIZE_T MaxRegistrationSize;   /* bytes in one memory registration */
    SIZE_T MaxWindowSize;         /* bytes in one memory window; 0: no useful windows */
    ULONG FRMRPageCount;          /* pages of a fast-register region at which most of them exist */
    ULONG MaxInitiatorRequestSge; /* SGEs of a send or write */
    ULONG MaxReceiveRequestSge;   /* SGEs of a receive */
    ULONG MaxReadRequestSge;      /* SGEs of a read; the value above does not apply to reads */
    ULONG MaxTransferLength;      /* bytes of all SGEs of one send, receive, read or write */
    ULONG MaxInlineDataSize;      /* inline bytes of one send or write */
    ULONG MaxInboundReadLimit;    /* reads by the peer in progress, for each QP */
    ULONG MaxOutboundReadLimit;   /* reads by us in progress, for each QP */
    ULONG MaxReceiveQueueDepth;   /* receives outstanding, for each receive queue */
    ULONG MaxInitiatorQueueDepth; /* requests outstanding, for each initiator queue */
    ULONG MaxSrqDepth;            /* receives outstanding, for each SRQ; 0: no SRQ support */
    ULONG MaxCqDepth;             /* entries, for each CQ */
    ULONG LargeRequestThreshold;  /* bytes above which read and write beat send; a hint */
    ULONG MaxCallerData;          /* bytes of private data in a connect request */
    ULONG MaxCalleeData;          /* bytes of private data in an accept or reject */
    ULONG AdapterFlags;           /* NDK_ADAPTER_FLAG_... */
    NDK_RDMA_TECHNOLOGY RdmaTechnology;
} NDK_ADAPTER_INFO;

/* Bits of AdapterFlags. Adapter info 1.4. */

/* Received data is placed in order: no byte of a buffer changes before an earlier one has. */
#define NDK_ADAPTER_FLAG_IN_ORDER_DMA_SUPPORTED 0x00000001
/* The sink of a read needs no special right: the READ_SINK flags are optional and ignored. */
#define NDK_ADAPTER_FLAG_RDMA_READ_SINK_NOT_REQUIRED 0x00000002
/* NdkControlCqInterruptModeration works. */
#define NDK_ADAPTER_FLAG_CQ_INTERRUPT_MODERATION_SUPPORTED 0x00000004
/* Several engines: more than one connection may be faster than one. */
#define NDK_ADAPTER_FLAG_MULTI_ENGINE_SUPPORTED 0x00000008
/* A read can invalidate the local token of its first SGE. Since 1.2. */
#define NDK_ADAPTER_FLAG_RDMA_READ_LOCAL_INVALIDATE_SUPPORTED 0x00000010
/* NdkResizeCq works; a consumer must not call it otherwise. */
#define NDK_ADAPTER_FLAG_CQ_RESIZE_SUPPORTED 0x00000100
/* A local address can connect to the same address of the same adapter. */
#define NDK_ADAPTER_FLAG_LOOPBACK_CONNECTIONS_SUPPORTED 0x00010000

#ifdef __cplusplus
}
#endif

#endif /* SOFTNDK_NDKINFO_H */
