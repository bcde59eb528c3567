// SPDX-License-Identifier: MIT
/*
 * netioapi.h - the IP helper: which interfaces there are. Interfaces are named as in ifdef.h.
 */
#ifndef SOFTNDK_NETIOAPI_H
#define SOFTNDK_NETIOAPI_H

#include "ifdef.h"
#include "ip2string.h"
#include "ntddndis.h"
#include "ntstatus.h"
#include "ws2ipdef.h"

SOFTNDK_BEGIN_C

/* What IP helper functions return; in kernel mode a status, not a Win32 error. */
typedef NTSTATUS NETIO_STATUS;
#define NETIO_SUCCESS(x) ((x) == STATUS_SUCCESS)
#define NETIOAPI_API     NETIO_STATUS NTAPI

/* What is known of an interface. Here: its names, index, type, MTU in bytes, link address, and
 * whether it is up; speeds (bits a second) and counters are 0. */
typedef struct _MIB_IF_ROW2 {
    NET_LUID InterfaceLuid;
    NET_IFINDEX InterfaceIndex;
    GUID InterfaceGuid;
    WCHAR Alias[IF_MAX_STRING_SIZE + 1];
    WCHAR Description[IF_MAX_STRING_SIZE + 1];
    ULONG PhysicalAddressLength;
    UCHAR PhysicalAddress[IF_MAX_PHYS_ADDRESS_LENGTH];
    UCHAR PermanentPhysicalAddress[IF_MAX_PHYS_ADDRESS_LENGTH];
    ULONG Mtu;
    ULONG Type; /* IF_TYPE_ */
    TUNNEL_TYPE TunnelType;
    NDIS_MEDIUM MediaType;
    NDIS_PHYSICAL_MEDIUM PhysicalMediumType;
    NET_IF_ACCESS_TYPE AccessType;
    NET_IF_DIRECTION_TYPE DirectionType;
    struct {
        BOOLEAN HardwareInterface : 1;
        BOOLEAN FilterInterface : 1;
        BOOLEAN ConnectorPresent : 1;
        BOOLEAN NotAuthenticated : 1;
        BOOLEAN NotMediaConnected : 1;
        BOOLEAN Paused : 1;
        BOOLEAN LowPower : 1;
        BOOLEAN EndPointInterface : 1;
    } InterfaceAndOperStatusFlags;
    IF_OPER_STATUS OperStatus;
    NET_IF_ADMIN_STATUS AdminStatus;
    NET_IF_MEDIA_CONNECT_STATE MediaConnectState;
    NET_IF_NETWORK_GUID NetworkGuid;
    NET_IF_CONNECTION_TYPE ConnectionType;
    ULONG64 TransmitLinkSpeed;
    ULONG64 ReceiveLinkSpeed;
    ULONG64 InOctets;
    ULONG64 InUcastPkts;
    ULONG64 InNUcastPkts;
    ULONG64 InDiscards;
    ULONG64 InErrors;
    ULONG64 InUnknownProtos;
    ULONG64 InUcastOctets;
    ULONG64 InMulticastOctets;
    ULONG64 InBroadcastOctets;
    ULONG64 OutOctets;
    ULONG64 OutUcastPkts;
    ULONG64 OutNUcastPkts;
    ULONG64 OutDiscards;
    ULONG64 OutErrors;
    ULONG64 OutUcastOctets;
    ULONG64 OutMulticastOctets;
    ULONG64 OutBroadcastOctets;
    ULONG64 OutQLen;
} MIB_IF_ROW2, *PMIB_IF_ROW2;

/* All at PASSIVE_LEVEL. STATUS_INVALID_PARAMETER: a NULL, or no such interface. */
NETIOAPI_API ConvertInterfaceIndexToLuid(NET_IFINDEX InterfaceIndex, PNET_LUID InterfaceLuid);

/* Length: room in characters, NDIS_IF_MAX_STRING_SIZE + 1 suffices. STATUS_NO_MEMORY: too little.
 */
NETIOAPI_API ConvertInterfaceLuidToAlias(const NET_LUID *InterfaceLuid, PWSTR InterfaceAlias,
                                         SIZE_T Length);

/* Fills the row of the interface that its InterfaceLuid, or if that is 0 its InterfaceIndex, names.
 * STATUS_INVALID_PARAMETER: neither does. STATUS_NOT_FOUND: there is no such interface. */
NETIOAPI_API GetIfEntry2(PMIB_IF_ROW2 Row);

SOFTNDK_END_C

#endif /* SOFTNDK_NETIOAPI_H */
