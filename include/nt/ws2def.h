// SPDX-License-Identifier: MIT
/*
 * ws2def.h - socket addresses as Windows lays them out; the family numbers are those of Windows.
 *
 * AF_INET6 is 23 here and 10 on Linux, and the structure tags are those of the system's own
 * headers, so a source file includes these headers or the system's, never both.
 * Ports and addresses are in network byte order. Included by ndkpi.h and ws2ipdef.h.
 */
#ifndef SOFTNDK_WS2DEF_H
#define SOFTNDK_WS2DEF_H

#include "inaddr.h"
#include "ntdef.h"

typedef USHORT ADDRESS_FAMILY;

#define AF_UNSPEC 0
#define AF_UNIX   1
#define AF_INET   2
#define AF_INET6  23

#define SOCK_STREAM 1
#define SOCK_DGRAM  2

/* Any address: the family decides what sa_data holds. 16 bytes. */
typedef struct sockaddr {
    ADDRESS_FAMILY sa_family;
    CHAR sa_data[14];
} SOCKADDR, *PSOCKADDR, *LPSOCKADDR;
typedef CONST SOCKADDR *PCSOCKADDR;

/* IPv4 address and port, 16 bytes. */
typedef struct sockaddr_in {
    ADDRESS_FAMILY sin_family;
    USHORT sin_port;
    IN_ADDR sin_addr;
    CHAR sin_zero[8];
} SOCKADDR_IN, *PSOCKADDR_IN;

#define _SS_MAXSIZE   128
#define _SS_ALIGNSIZE (sizeof(__INT64_TYPE__))
#define _SS_PAD1SIZE  (_SS_ALIGNSIZE - sizeof(USHORT))
#define _SS_PAD2SIZE  (_SS_MAXSIZE - (sizeof(USHORT) + _SS_PAD1SIZE + _SS_ALIGNSIZE))

/* Room and alignment for every kind of address, 128 bytes. */
typedef struct sockaddr_storage {
    ADDRESS_FAMILY ss_family;
    CHAR __ss_pad1[_SS_PAD1SIZE];
    INT64 __ss_align;
    CHAR __ss_pad2[_SS_PAD2SIZE];
} SOCKADDR_STORAGE, *PSOCKADDR_STORAGE, *LPSOCKADDR_STORAGE;

#define SS_PORT(ssp) (((PSOCKADDR_IN)(ssp))->sin_port)

/* Host byte order, as everywhere: compare with RtlUlongByteSwap(s_addr). */
#define INADDR_ANY       ((ULONG)0x00000000)
#define INADDR_LOOPBACK  ((ULONG)0x7f000001)
#define INADDR_BROADCAST ((ULONG)0xffffffff)
#define INADDR_NONE      0xffffffff

typedef enum {
    IPPROTO_ICMP = 1,
    IPPROTO_TCP = 6,
    IPPROTO_UDP = 17,
    IPPROTO_IPV6 = 41,
    IPPROTO_ICMPV6 = 58,
    IPPROTO_MAX = 256
} IPPROTO,
    *PIPROTO;

/* The zone an IPv6 address is relative to. */
typedef struct {
    __extension__ union {
        struct {
            ULONG Zone : 28;
            ULONG Level : 4;
        };
        ULONG Value;
    };
} SCOPE_ID, *PSCOPE_ID;

#endif /* SOFTNDK_WS2DEF_H */
