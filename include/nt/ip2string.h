// SPDX-License-Identifier: MIT
/*
 * ip2string.h - addresses as text and back. Included by netioapi.h and wsk.h.
 *
 * Ports are in network byte order, scopes in the host's. All at any IRQL on resident memory.
 */
#ifndef SOFTNDK_IP2STRING_H
#define SOFTNDK_IP2STRING_H

#include "in6addr.h"
#include "inaddr.h"
#include "ntstatus.h"

SOFTNDK_BEGIN_C

/*
 * "a.b.c.d", each part decimal. Unless Strict also fewer parts, the last of which fills the octets
 * that are left, and parts in octal (0...) or hexadecimal (0x...). STATUS_SUCCESS, or
 * STATUS_INVALID_PARAMETER when the text does not begin with an address; Terminator is where
 * reading stopped.
 */
NTSTATUS RtlIpv4StringToAddressA(PCSTR S, BOOLEAN Strict, PCSTR *Terminator, IN_ADDR *Addr);
NTSTATUS RtlIpv4StringToAddressW(PCWSTR S, BOOLEAN Strict, PCWSTR *Terminator, IN_ADDR *Addr);

/* The same with ":port" behind, which may be missing (then 0) and may be octal or hexadecimal; a
 * port of 0, and anything else behind, is STATUS_INVALID_PARAMETER. The address may be stored even
 * then. */
NTSTATUS RtlIpv4StringToAddressExA(PCSTR AddressString, BOOLEAN Strict, IN_ADDR *Address,
                                   PUSHORT Port);
NTSTATUS RtlIpv4StringToAddressExW(PCWSTR AddressString, BOOLEAN Strict, IN_ADDR *Address,
                                   PUSHORT Port);

/* "x:x:x:x:x:x:x:x", with "::" once, with the last two groups as "a.b.c.d". */
NTSTATUS RtlIpv6StringToAddressA(PCSTR S, PCSTR *Terminator, IN6_ADDR *Addr);
NTSTATUS RtlIpv6StringToAddressW(PCWSTR S, PCWSTR *Terminator, IN6_ADDR *Addr);

/* The whole text: "address", "address%scope", "[address%scope]", "[address]:port"; the scope is a
 * decimal number. What is missing is 0. */
NTSTATUS RtlIpv6StringToAddressExA(PCSTR AddressString, IN6_ADDR *Address, PULONG ScopeId,
                                   PUSHORT Port);
NTSTATUS RtlIpv6StringToAddressExW(PCWSTR AddressString, IN6_ADDR *Address, PULONG ScopeId,
                                   PUSHORT Port);

/* Into room for 16 (IPv4) or 46 (IPv6) characters; returns where the terminator stands. */
PSTR RtlIpv4AddressToStringA(const IN_ADDR *Addr, PSTR S);
PWSTR RtlIpv4AddressToStringW(const IN_ADDR *Addr, PWSTR S);
PSTR RtlIpv6AddressToStringA(const IN6_ADDR *Addr, PSTR S);
PWSTR RtlIpv6AddressToStringW(const IN6_ADDR *Addr, PWSTR S);

/* The length is in characters with the terminator: the room, and then what was or would be used.
 * Too little room is STATUS_INVALID_PARAMETER. A port (scope) of 0 is left away. */
NTSTATUS RtlIpv4AddressToStringExA(const IN_ADDR *Address, USHORT Port, PSTR AddressString,
                                   PULONG AddressStringLength);
NTSTATUS RtlIpv4AddressToStringExW(const IN_ADDR *Address, USHORT Port, PWSTR AddressString,
                                   PULONG AddressStringLength);
NTSTATUS RtlIpv6AddressToStringExA(const IN6_ADDR *Address, ULONG ScopeId, USHORT Port,
                                   PSTR AddressString, PULONG AddressStringLength);
NTSTATUS RtlIpv6AddressToStringExW(const IN6_ADDR *Address, ULONG ScopeId, USHORT Port,
                                   PWSTR AddressString, PULONG AddressStringLength);

SOFTNDK_END_C

#endif /* SOFTNDK_IP2STRING_H */
