// SPDX-License-Identifier: MIT
/* See sockaddr.h. Everything is copied through local structures: a consumer's address need not be
 * aligned for the larger types. */
#include "provider/sockaddr.h"

#include <string.h>

#include "base/red.h"

/* Only there does a scope tell two addresses apart: fe80::/10, ff01::/16 and ff02::/16. Elsewhere
 * a consumer may have left anything in the field. */
static bool takes_scope(const uint8_t ip[16])
{
    if (ip[0] == 0xfe && (ip[1] & 0xc0) == 0x80)
        return true;
    return ip[0] == 0xff && ((ip[1] & 0x0f) == 1 || (ip[1] & 0x0f) == 2);
}

bool sockaddr_get(CONST SOCKADDR *address, ULONG length, struct os_addr *out,
                  ADDRESS_FAMILY *family)
{
    struct os_addr result = {0};
    ADDRESS_FAMILY number;

    if (!address || length < sizeof number)
        return false;
    memcpy(&number, address, sizeof number);
    if (number == AF_INET) {
        SOCKADDR_IN v4;

        if (length < sizeof v4)
            return false;
        memcpy(&v4, address, sizeof v4);
        result.family = OS_FAMILY_V4;
        result.port = RtlUshortByteSwap(v4.sin_port);
        memcpy(result.ip, &v4.sin_addr, 4);
    } else if (number == AF_INET6 || number == SOCKADDR_LINUX_INET6) {
        SOCKADDR_IN6 v6;

        if (length < sizeof v6 && !RED("object-sockaddr-short"))
            return false;
        memcpy(&v6, address, sizeof v6);
        result.family = OS_FAMILY_V6;
        result.port = RtlUshortByteSwap(v6.sin6_port);
        memcpy(result.ip, &v6.sin6_addr, 16);
        if (takes_scope(result.ip))
            result.scope_id = v6.sin6_scope_id;
    } else {
        return false;
    }
    *out = result;
    if (family)
        *family = number;
    return true;
}

static NTSTATUS sockaddr_copy(PSOCKADDR out, ULONG *length, const void *from, ULONG need)
{
    ULONG room = *length;

    *length = need;
    if (!out || room < need)
        return STATUS_BUFFER_TOO_SMALL;
    memcpy(out, from, need);
    return STATUS_SUCCESS;
}

NTSTATUS sockaddr_put(const struct os_addr *address, ADDRESS_FAMILY as, PSOCKADDR out,
                      ULONG *length)
{
    SOCKADDR_IN v4;
    SOCKADDR_IN6 v6;

    if (!length)
        return STATUS_INVALID_PARAMETER;
    if (address->family != OS_FAMILY_V6) {
        memset(&v4, 0, sizeof v4);
        v4.sin_family = AF_INET;
        v4.sin_port = RtlUshortByteSwap(address->port);
        memcpy(&v4.sin_addr, address->ip, 4);
        return sockaddr_copy(out, length, &v4, sizeof v4);
    }
    memset(&v6, 0, sizeof v6);
    v6.sin6_family = as == SOCKADDR_LINUX_INET6 ? SOCKADDR_LINUX_INET6 : AF_INET6;
    v6.sin6_port = RtlUshortByteSwap(address->port);
    v6.sin6_scope_id = address->scope_id;
    memcpy(&v6.sin6_addr, address->ip, 16);
    return sockaddr_copy(out, length, &v6, sizeof v6);
}
