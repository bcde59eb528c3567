// SPDX-License-Identifier: MIT
/*
 * ntddndis.h - NDIS object headers, and the OIDs and structures by which NDIS knows an NDK adapter.
 *
 * The capabilities here describe the adapter as a whole, for whoever partitions it;
 * NDK_ADAPTER_INFO describes what one consumer may use. "NDIS side n" refers to the sections of the
 * reference on the adapter information and the NDIS side. Included by ndis.h and ndisndk.h.
 */
#ifndef SOFTNDK_NTDDNDIS_H
#define SOFTNDK_NTDDNDIS_H

#include "ifdef.h"
#include "ntdef.h"
#include "ws2ipdef.h"

#include <ndkinfo.h>

/* Which NDIS the code is written for; 6.50 adds the switch fields of the open parameters. */
#ifndef NDIS_SUPPORT_NDIS630
#define NDIS_SUPPORT_NDIS630 1
#endif
#ifndef NDIS_SUPPORT_NDIS650
#define NDIS_SUPPORT_NDIS650 1
#endif

SOFTNDK_BEGIN_C

/* Characters of an interface's name without its terminator. */
#define NDIS_IF_MAX_STRING_SIZE IF_MAX_STRING_SIZE

/* What an interface is made of, as far as it is told (MIB_IF_ROW2). */
typedef enum _NDIS_MEDIUM {
    NdisMedium802_3 = 0,
    NdisMediumInfiniBand = 16,
    NdisMediumLoopback = 17
} NDIS_MEDIUM,
    *PNDIS_MEDIUM;

typedef enum _NDIS_PHYSICAL_MEDIUM {
    NdisPhysicalMediumUnspecified = 0,
    NdisPhysicalMediumInfiniband = 11,
    NdisPhysicalMedium802_3 = 14
} NDIS_PHYSICAL_MEDIUM,
    *PNDIS_PHYSICAL_MEDIUM;

/* First member of NDIS structures: what it is, which revision, and its size in bytes. */
typedef struct _NDIS_OBJECT_HEADER {
    UCHAR Type;
    UCHAR Revision;
    USHORT Size;
} NDIS_OBJECT_HEADER, *PNDIS_OBJECT_HEADER;

#define NDIS_OBJECT_TYPE_DEFAULT                                  0x80
#define NDIS_OBJECT_TYPE_MINIPORT_INIT_PARAMETERS                 0x81
#define NDIS_OBJECT_TYPE_MINIPORT_DRIVER_CHARACTERISTICS          0x8A
#define NDIS_OBJECT_TYPE_OID_REQUEST                              0x96
#define NDIS_OBJECT_TYPE_MINIPORT_ADAPTER_REGISTRATION_ATTRIBUTES 0x9E
#define NDIS_OBJECT_TYPE_CONFIGURATION_OBJECT                     0xA9
#define NDIS_OBJECT_TYPE_NDK_PROVIDER_CHARACTERISTICS             0xB2
#define NDIS_OBJECT_TYPE_MINIPORT_ADAPTER_NDK_ATTRIBUTES          0xB3

typedef ULONG NDIS_OID, *PNDIS_OID;
typedef ULONG NDIS_NIC_SWITCH_ID, *PNDIS_NIC_SWITCH_ID;
typedef ULONG NDIS_NIC_SWITCH_VPORT_ID, *PNDIS_NIC_SWITCH_VPORT_ID;
#define NDIS_DEFAULT_SWITCH_ID 0
#define NDIS_DEFAULT_VPORT_ID  0

/* OIDs of an NDK miniport. NDIS side 5. */
#define OID_NDK_SET_STATE       0xFC040201 /* set; BOOLEAN: enable or disable NDK */
#define OID_NDK_STATISTICS      0xFC040202 /* query; NDIS_NDK_STATISTICS_INFO */
#define OID_NDK_CONNECTIONS     0xFC040203 /* query; NDIS_NDK_CONNECTIONS */
#define OID_NDK_LOCAL_ENDPOINTS 0xFC040204 /* query; NDIS_NDK_LOCAL_ENDPOINTS */

/* ---- capabilities (NDIS side 4.1) ---- */

#define NDIS_NDK_CAPABILITIES_REVISION_1 1

/* Adapter-wide limits. Header: NDIS_OBJECT_TYPE_DEFAULT, revision 1, the size below. */
typedef struct _NDIS_NDK_CAPABILITIES {
    NDIS_OBJECT_HEADER Header;
    ULONG Flags; /* 0 */
    ULONG MaxQpCount;
    ULONG MaxCqCount;
    ULONG MaxMrCount;
    ULONG MaxPdCount;
    ULONG MaxInboundReadLimit;  /* reads in progress, all QPs together; 0: no such limit */
    ULONG MaxOutboundReadLimit; /* likewise */
    ULONG MaxMwCount;
    ULONG MaxSrqCount;
    ULONG64 MissingCounterMask; /* bit n: performance counter n is not kept */
    NDK_ADAPTER_INFO *NdkInfo;
} NDIS_NDK_CAPABILITIES, *PNDIS_NDK_CAPABILITIES;

#define NDIS_SIZEOF_NDK_CAPABILITIES_REVISION_1                                                    \
    RTL_SIZEOF_THROUGH_FIELD(NDIS_NDK_CAPABILITIES, NdkInfo)

/* ---- performance counters (NDIS side 4.2) ---- */

/* Totals since the adapter started. Octets and frames count layer 2, overhead included. */
typedef struct _NDIS_NDK_PERFORMANCE_COUNTERS {
    ULONG64 Connect;          /* outgoing connections made */
    ULONG64 Accept;           /* incoming connections made */
    ULONG64 ConnectFailure;   /* attempts of either kind that failed */
    ULONG64 ConnectionError;  /* connections that broke before a consumer ended them */
    ULONG64 ActiveConnection; /* connections up now */
    ULONG64 Reserved01;       /* the reserved ones are 0 */
    ULONG64 Reserved02;
    ULONG64 Reserved03;
    ULONG64 Reserved04;
    ULONG64 Reserved05;
    ULONG64 Reserved06;
    ULONG64 Reserved07;
    ULONG64 Reserved08;
    ULONG64 Reserved09;
    ULONG64 Reserved10;
    ULONG64 Reserved11;
    ULONG64 Reserved12;
    ULONG64 Reserved13;
    ULONG64 Reserved14;
    ULONG64 Reserved15;
    ULONG64 Reserved16;
    ULONG64 Reserved17;
    ULONG64 Reserved18;
    ULONG64 Reserved19;
    ULONG64 Reserved20;
    ULONG64 CQError; /* completion queues that went into error */
    ULONG64 RDMAInOctets;
    ULONG64 RDMAOutOctets;
    ULONG64 RDMAInFrames;
    ULONG64 RDMAOutFrames;
} NDIS_NDK_PERFORMANCE_COUNTERS, *PNDIS_NDK_PERFORMANCE_COUNTERS;

/* The bit of MissingCounterMask that belongs to a counter. */
#define NDIS_NDK_PERFORMANCE_COUNTER_MASK(_MEMBER_)                                                \
    (((ULONG64)1) << (FIELD_OFFSET(NDIS_NDK_PERFORMANCE_COUNTERS, _MEMBER_) / sizeof(ULONG64)))

#define NDIS_NDK_STATISTICS_INFO_REVISION_1 1

typedef struct _NDIS_NDK_STATISTICS_INFO {
    NDIS_OBJECT_HEADER Header;
    ULONG Flags; /* 0 */
    NDIS_NDK_PERFORMANCE_COUNTERS CounterSet;
} NDIS_NDK_STATISTICS_INFO, *PNDIS_NDK_STATISTICS_INFO;

#define NDIS_SIZEOF_NDK_STATISTICS_INFO_REVISION_1                                                 \
    RTL_SIZEOF_THROUGH_FIELD(NDIS_NDK_STATISTICS_INFO, CounterSet)

/* ---- connections and endpoints (NDIS side 4.3) ---- */

/*
 * A technology that maps its connections to TCP (iWARP does) sets the ...MappedtoTCP... flag and
 * reports each item twice: the even entry with the RDMA addresses and all other fields, the odd one
 * with the TCP addresses alone. Count is in entries, hence twice the items. OwnerPid counts only
 * when UserModeOwner is TRUE.
 */

#define NDIS_NDK_CONNECTIONS_REVISION_1 1

typedef struct _NDIS_NDK_CONNECTION_ENTRY {
    SOCKADDR_INET Local;
    SOCKADDR_INET Remote;
    BOOLEAN UserModeOwner;
    ULONG OwnerPid;
} NDIS_NDK_CONNECTION_ENTRY, *PNDIS_NDK_CONNECTION_ENTRY;

typedef struct _NDIS_NDK_CONNECTIONS {
    NDIS_OBJECT_HEADER Header;
    ULONG Flags; /* 0 */
    ULONG Count;
    BOOLEAN NDConnectionsMappedtoTCPConnections;
    NDIS_NDK_CONNECTION_ENTRY Connections[1]; /* Count of them */
} NDIS_NDK_CONNECTIONS, *PNDIS_NDK_CONNECTIONS;

/* Bytes of the structure with n entries; Header.Size is the lesser of it and MAXUSHORT. */
#define NDIS_SIZEOF_NDK_CONNECTIONS_REVISION_1(n)                                                  \
    (FIELD_OFFSET(NDIS_NDK_CONNECTIONS, Connections) + (n) * sizeof(NDIS_NDK_CONNECTION_ENTRY))

#define NDIS_NDK_LOCAL_ENDPOINTS_REVISION_1 1

typedef struct _NDIS_NDK_LOCAL_ENDPOINT_ENTRY {
    SOCKADDR_INET Local;
    BOOLEAN UserModeOwner;
    BOOLEAN Listener; /* TRUE: a listener, FALSE: a shared endpoint */
    ULONG OwnerPid;
} NDIS_NDK_LOCAL_ENDPOINT_ENTRY, *PNDIS_NDK_LOCAL_ENDPOINT_ENTRY;

typedef struct _NDIS_NDK_LOCAL_ENDPOINTS {
    NDIS_OBJECT_HEADER Header;
    ULONG Flags; /* 0 */
    ULONG Count;
    BOOLEAN NDLocalEndpointsMappedtoTCPLocalEndpoints;
    NDIS_NDK_LOCAL_ENDPOINT_ENTRY LocalEndpoints[1]; /* Count of them */
} NDIS_NDK_LOCAL_ENDPOINTS, *PNDIS_NDK_LOCAL_ENDPOINTS;

#define NDIS_SIZEOF_NDK_LOCAL_ENDPOINTS_REVISION_1(n)                                              \
    (FIELD_OFFSET(NDIS_NDK_LOCAL_ENDPOINTS, LocalEndpoints) +                                      \
     (n) * sizeof(NDIS_NDK_LOCAL_ENDPOINT_ENTRY))

/* ---- virtual port parameters (NDIS side 4.4) ---- */

typedef struct _NDIS_NDK_REQUEST_PARAMETERS {
    BOOLEAN RdmaRequested;
    ULONG SwitchPortId;
    ULONG IfIndex;
    UCHAR MacAddress[32];
    ULONG VlanId;
    NDIS_NDK_CAPABILITIES NdkReserved;
} NDIS_NDK_REQUEST_PARAMETERS, *PNDIS_NDK_REQUEST_PARAMETERS;

typedef struct _NDIS_NDK_RESPONSE_PARAMETERS {
    BOOLEAN CapabilitiesAvailable;
    NDIS_NDK_CAPABILITIES ReceivedCapabilities;
} NDIS_NDK_RESPONSE_PARAMETERS, *PNDIS_NDK_RESPONSE_PARAMETERS;

/* ---- management mirrors: the same numbers in one layout for every target (NDIS side 4.4) ---- */

typedef struct _NDK_WMI_ADAPTER_INFO {
    NDK_VERSION Version;
    UINT32 VendorId;
    UINT32 DeviceId;
    ULONGLONG MaxRegistrationSize;
    ULONGLONG MaxWindowSize;
    ULONG FRMRPageCount;
    ULONG MaxInitiatorRequestSge;
    ULONG MaxReceiveRequestSge;
    ULONG MaxReadRequestSge;
    ULONG MaxTransferLength;
    ULONG MaxInlineDataSize;
    ULONG MaxInboundReadLimit;
    ULONG MaxOutboundReadLimit;
    ULONG MaxReceiveQueueDepth;
    ULONG MaxInitiatorQueueDepth;
    ULONG MaxSrqDepth;
    ULONG MaxCqDepth;
    ULONG LargeRequestThreshold;
    ULONG MaxCallerData;
    ULONG MaxCalleeData;
    ULONG AdapterFlags;
    NDK_RDMA_TECHNOLOGY RdmaTechnology;
} NDK_WMI_ADAPTER_INFO, *PNDK_WMI_ADAPTER_INFO;

typedef struct _NDIS_WMI_NDK_CAPABILITIES {
    ULONG MaxQpCount;
    ULONG MaxCqCount;
    ULONG MaxMrCount;
    ULONG MaxPdCount;
    ULONG MaxInboundReadLimit;
    ULONG MaxOutboundReadLimit;
    ULONG MaxMwCount;
    ULONG MaxSrqCount;
    ULONG64 MissingCounterMask;
    NDK_WMI_ADAPTER_INFO NdkInfo;
} NDIS_WMI_NDK_CAPABILITIES, *PNDIS_WMI_NDK_CAPABILITIES;

DEFINE_GUID(GUID_NDIS_NDK_CAPABILITIES, 0x7969ba4d, 0xdd80, 0x4bc7, 0xb3, 0xe6, 0x68, 0x04, 0x39,
            0x97, 0xe5, 0x19);
DEFINE_GUID(GUID_NDIS_NDK_STATE, 0x530c69c9, 0x2f51, 0x49de, 0xa1, 0xaf, 0x08, 0x8d, 0x54, 0xff,
            0xa4, 0x74);

SOFTNDK_END_C

#endif /* SOFTNDK_NTDDNDIS_H */
