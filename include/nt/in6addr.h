// SPDX-License-Identifier: MIT
/*
 * in6addr.h - an IPv6 address as Windows lays it out. Network byte order in memory.
 *
 * Never include it together with the system's socket headers. Included by ws2ipdef.h.
 */
#ifndef SOFTNDK_IN6ADDR_H
#define SOFTNDK_IN6ADDR_H

#include "ntdef.h"

typedef struct in6_addr {
    union {
        UCHAR Byte[16];
        USHORT Word[8];
    } u;
} IN6_ADDR, *PIN6_ADDR, *LPIN6_ADDR;

#define in_addr6 in6_addr
#define _S6_un   u
#define _S6_u8   Byte
#define s6_addr  _S6_un._S6_u8
#define s6_bytes u.Byte
#define s6_words u.Word

#endif /* SOFTNDK_IN6ADDR_H */
