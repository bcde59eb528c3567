// SPDX-License-Identifier: MIT
/*
 * ifdef.h - how network interfaces are named: by index, which may change, or by LUID, which stays.
 */
#ifndef SOFTNDK_IFDEF_H
#define SOFTNDK_IFDEF_H

#include "ntdef.h"

typedef ULONG NET_IFINDEX, *PNET_IFINDEX;
typedef NET_IFINDEX IF_INDEX, *PIF_INDEX;
typedef USHORT NET_IFTYPE, *PNET_IFTYPE;
typedef NET_IFTYPE IFTYPE;

#define NET_IFINDEX_UNSPECIFIED   ((NET_IFINDEX)0)
#define IFI_UNSPECIFIED           NET_IFINDEX_UNSPECIFIED
#define IF_TYPE_ETHERNET_CSMACD   6
#define IF_TYPE_SOFTWARE_LOOPBACK 24

/* Low 24 bits reserved, then 24 bits of index within the type, then the interface type. */
typedef union _NET_LUID_LH {
    ULONG64 Value;
    struct {
        ULONG64 Reserved : 24;
        ULONG64 NetLuidIndex : 24;
        ULONG64 IfType : 16;
    } Info;
} NET_LUID_LH, *PNET_LUID_LH, NET_LUID, *PNET_LUID;
typedef NET_LUID IF_LUID, *PIF_LUID;

#endif /* SOFTNDK_IFDEF_H */
