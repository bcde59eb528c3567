// SPDX-License-Identifier: MIT
/*
 * RtlIpv4StringToAddress... and the like. Wide text is narrowed first, a character that no address
 * has standing for every other one; iptext.c reads and writes.
 */
#include <stdio.h>
#include <string.h>

#include <ip2string.h>

#include "base/red.h"
#include "nt/iptext.h"

enum { TEXT_MAX = 256 }; /* characters looked at; no address is longer */

/* A wide text as a narrow one, cut off. */
static const char *narrow(PCWSTR wide, char text[TEXT_MAX])
{
    size_t i = 0;

    for (; i < TEXT_MAX - 1 && wide[i]; i++)
        text[i] = (char)(wide[i] < 0x80 ? wide[i] : '\x7f');
    text[i] = '\0';
    return text;
}

static void widen(const char *text, PWSTR out)
{
    do {
        *out++ = (WCHAR)(unsigned char)*text;
    } while (*text++);
}

static USHORT to_network(uint16_t port)
{
    return RED("nt-ip-port-in-host-order") ? port : (USHORT)(port << 8 | port >> 8);
}

/* ---- text to address ------------------------------------------------------------------------- */

NTSTATUS RtlIpv4StringToAddressA(PCSTR S, BOOLEAN Strict, PCSTR *Terminator, IN_ADDR *Addr)
{
    const char *at = S;
    uint8_t octets[4];
    bool good = iptext_read_v4(&at, Strict, octets);

    *Terminator = at;
    if (!good)
        return STATUS_INVALID_PARAMETER;
    memcpy(Addr, octets, sizeof octets);
    return STATUS_SUCCESS;
}

NTSTATUS RtlIpv4StringToAddressW(PCWSTR S, BOOLEAN Strict, PCWSTR *Terminator, IN_ADDR *Addr)
{
    char text[TEXT_MAX];
    PCSTR stop;
    NTSTATUS status = RtlIpv4StringToAddressA(narrow(S, text), Strict, &stop, Addr);

    *Terminator = S + (stop - text);
    return status;
}

NTSTATUS RtlIpv4StringToAddressExA(PCSTR AddressString, BOOLEAN Strict, IN_ADDR *Address,
                                   PUSHORT Port)
{
    uint16_t port = 0;
    const char *at;

    if (!AddressString || !Address || !Port ||
        RtlIpv4StringToAddressA(AddressString, Strict, &at, Address) != STATUS_SUCCESS)
        return STATUS_INVALID_PARAMETER;
    if (*at == ':') {
        at++;
        if (!iptext_read_port(&at, &port))
            return STATUS_INVALID_PARAMETER;
    }
    if (*at)
        return STATUS_INVALID_PARAMETER;
    *Port = to_network(port);
    return STATUS_SUCCESS;
}

NTSTATUS RtlIpv4StringToAddressExW(PCWSTR AddressString, BOOLEAN Strict, IN_ADDR *Address,
                                   PUSHORT Port)
{
    char text[TEXT_MAX];

    if (!AddressString)
        return STATUS_INVALID_PARAMETER;
    return RtlIpv4StringToAddressExA(narrow(AddressString, text), Strict, Address, Port);
}

NTSTATUS RtlIpv6StringToAddressA(PCSTR S, PCSTR *Terminator, IN6_ADDR *Addr)
{
    const char *at = S;
    uint8_t octets[16];
    bool good = iptext_read_v6(&at, octets);

    *Terminator = at;
    if (!good)
        return STATUS_INVALID_PARAMETER;
    memcpy(Addr, octets, sizeof octets);
    return STATUS_SUCCESS;
}

NTSTATUS RtlIpv6StringToAddressW(PCWSTR S, PCWSTR *Terminator, IN6_ADDR *Addr)
{
    char text[TEXT_MAX];
    PCSTR stop;
    NTSTATUS status = RtlIpv6StringToAddressA(narrow(S, text), &stop, Addr);

    *Terminator = S + (stop - text);
    return status;
}

NTSTATUS RtlIpv6StringToAddressExA(PCSTR AddressString, IN6_ADDR *Address, PULONG ScopeId,
                                   PUSHORT Port)
{
    const char *at = AddressString;
    uint32_t scope = 0;
    uint16_t port = 0;
    bool bracket;

    if (!AddressString || !Address || !ScopeId || !Port)
        return STATUS_INVALID_PARAMETER;
    bracket = *at == '[';
    at += bracket;
    if (RtlIpv6StringToAddressA(at, &at, Address) != STATUS_SUCCESS)
        return STATUS_INVALID_PARAMETER;
    if (*at == '%') {
        at++;
        if (!iptext_read_scope(&at, &scope))
            return STATUS_INVALID_PARAMETER;
    }
    if (bracket) {
        if (*at++ != ']')
            return STATUS_INVALID_PARAMETER;
        if (*at == ':') {
            at++;
            if (!iptext_read_port(&at, &port))
                return STATUS_INVALID_PARAMETER;
        }
    }
    if (*at)
        return STATUS_INVALID_PARAMETER;
    *ScopeId = scope;
    *Port = to_network(port);
    return STATUS_SUCCESS;
}

NTSTATUS RtlIpv6StringToAddressExW(PCWSTR AddressString, IN6_ADDR *Address, PULONG ScopeId,
                                   PUSHORT Port)
{
    char text[TEXT_MAX];

    if (!AddressString)
        return STATUS_INVALID_PARAMETER;
    return RtlIpv6StringToAddressExA(narrow(AddressString, text), Address, ScopeId, Port);
}

/* ---- address to text ------------------------------------------------------------------------- */

PSTR RtlIpv4AddressToStringA(const IN_ADDR *Addr, PSTR S)
{
    return S + iptext_write_v4((const uint8_t *)Addr, S);
}

PWSTR RtlIpv4AddressToStringW(const IN_ADDR *Addr, PWSTR S)
{
    char text[IPTEXT_V4_MAX];
    size_t n = iptext_write_v4((const uint8_t *)Addr, text);

    widen(text, S);
    return S + n;
}

PSTR RtlIpv6AddressToStringA(const IN6_ADDR *Addr, PSTR S)
{
    return S + iptext_write_v6((const uint8_t *)Addr, S);
}

PWSTR RtlIpv6AddressToStringW(const IN6_ADDR *Addr, PWSTR S)
{
    char text[IPTEXT_V6_MAX];
    size_t n = iptext_write_v6((const uint8_t *)Addr, text);

    widen(text, S);
    return S + n;
}

enum { WHOLE_MAX = IPTEXT_V6_MAX + 24 }; /* with brackets, scope and port */

static size_t whole_v4(const IN_ADDR *address, USHORT port, char out[WHOLE_MAX])
{
    size_t n = iptext_write_v4((const uint8_t *)address, out);

    if (port)
        n += (size_t)snprintf(out + n, WHOLE_MAX - n, ":%u", to_network(port));
    return n;
}

static size_t whole_v6(const IN6_ADDR *address, ULONG scope, USHORT port, char out[WHOLE_MAX])
{
    size_t n = 0;

    if (port)
        out[n++] = '[';
    n += iptext_write_v6((const uint8_t *)address, out + n);
    if (scope)
        n += (size_t)snprintf(out + n, WHOLE_MAX - n, "%%%u", scope);
    if (port)
        n += (size_t)snprintf(out + n, WHOLE_MAX - n, "]:%u", to_network(port));
    return n;
}

/* Notes the length, and whether it fits. */
static bool fits(PULONG length, size_t n)
{
    bool good = *length > n;

    *length = (ULONG)n + 1;
    return good;
}

NTSTATUS RtlIpv4AddressToStringExA(const IN_ADDR *Address, USHORT Port, PSTR AddressString,
                                   PULONG AddressStringLength)
{
    char text[WHOLE_MAX];

    if (!Address || !AddressString || !AddressStringLength ||
        !fits(AddressStringLength, whole_v4(Address, Port, text)))
        return STATUS_INVALID_PARAMETER;
    memcpy(AddressString, text, *AddressStringLength);
    return STATUS_SUCCESS;
}

NTSTATUS RtlIpv4AddressToStringExW(const IN_ADDR *Address, USHORT Port, PWSTR AddressString,
                                   PULONG AddressStringLength)
{
    char text[WHOLE_MAX];

    if (!Address || !AddressString || !AddressStringLength ||
        !fits(AddressStringLength, whole_v4(Address, Port, text)))
        return STATUS_INVALID_PARAMETER;
    widen(text, AddressString);
    return STATUS_SUCCESS;
}

NTSTATUS RtlIpv6AddressToStringExA(const IN6_ADDR *Address, ULONG ScopeId, USHORT Port,
                                   PSTR AddressString, PULONG AddressStringLength)
{
    char text[WHOLE_MAX];

    if (!Address || !AddressString || !AddressStringLength ||
        !fits(AddressStringLength, whole_v6(Address, ScopeId, Port, text)))
        return STATUS_INVALID_PARAMETER;
    memcpy(AddressString, text, *AddressStringLength);
    return STATUS_SUCCESS;
}

NTSTATUS RtlIpv6AddressToStringExW(const IN6_ADDR *Address, ULONG ScopeId, USHORT Port,
                                   PWSTR AddressString, PULONG AddressStringLength)
{
    char text[WHOLE_MAX];

    if (!Address || !AddressString || !AddressStringLength ||
        !fits(AddressStringLength, whole_v6(Address, ScopeId, Port, text)))
        return STATUS_INVALID_PARAMETER;
    widen(text, AddressString);
    return STATUS_SUCCESS;
}
