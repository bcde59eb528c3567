// SPDX-License-Identifier: MIT
/*
 * ws2ipdef.h - IPv6 socket addresses and the union of both families, as Windows lays them out.
 */
#ifndef SOFTNDK_WS2IPDEF_H
#define SOFTNDK_WS2IPDEF_H

#include "in6addr.h"
#include "ws2def.h"

/* IPv6 address, port and scope, 28 bytes. */
typedef struct sockaddr_in6 {
    ADDRESS_FAMILY sin6_family;
    USHORT sin6_port;
    ULONG sin6_flowinfo;
    IN6_ADDR sin6_addr;
    union {
        ULONG sin6_scope_id;
        SCOPE_ID sin6_scope_struct;
    };
} SOCKADDR_IN6_LH, *PSOCKADDR_IN6_LH, SOCKADDR_IN6, *PSOCKADDR_IN6;

/* Either family; si_family overlays the family field of both. 28 bytes. */
typedef union _SOCKADDR_INET {
    SOCKADDR_IN Ipv4;
    SOCKADDR_IN6 Ipv6;
    ADDRESS_FAMILY si_family;
} SOCKADDR_INET, *PSOCKADDR_INET;

#define INET_ADDRSTRLEN  22
#define INET6_ADDRSTRLEN 65

#define IN6ADDR_ANY_INIT                                                                           \
    {                                                                                              \
        {                                                                                          \
            {                                                                                      \
                0                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }
#define IN6ADDR_LOOPBACK_INIT                                                                      \
    {                                                                                              \
        {                                                                                          \
            {                                                                                      \
                0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1                                     \
            }                                                                                      \
        }                                                                                          \
    }

#endif /* SOFTNDK_WS2IPDEF_H */
