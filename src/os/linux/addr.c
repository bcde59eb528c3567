// SPDX-License-Identifier: MIT
/*
 * Addresses: comparison, text, and the way to and from the system's sockaddr. Pure, except that a
 * scope given by name is looked up among the host's interfaces.
 */
#include <arpa/inet.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

#include "base/red.h"
#include "os/linux/backend.h"

static size_t addr_octets(const struct os_addr *a)
{
    switch (a->family) {
    case OS_FAMILY_V4:
        return 4;
    case OS_FAMILY_V6:
        return 16;
    default:
        return 0;
    }
}

/* Only there does a scope tell two addresses apart: fe80::/10, ff01::/16 and ff02::/16. */
static bool addr_takes_scope(const uint8_t ip[16])
{
    if (ip[0] == 0xfe && (ip[1] & 0xc0) == 0x80)
        return true;
    return ip[0] == 0xff && ((ip[1] & 0x0f) == 1 || (ip[1] & 0x0f) == 2);
}

bool os_addr_ip_equal(const struct os_addr *a, const struct os_addr *b)
{
    if (a->family != b->family || memcmp(a->ip, b->ip, addr_octets(a)) != 0)
        return false;
    if (RED("os-addr-scope-ignored"))
        return true;
    return a->family != OS_FAMILY_V6 || a->scope_id == b->scope_id;
}

bool os_addr_equal(const struct os_addr *a, const struct os_addr *b)
{
    return a->port == b->port && os_addr_ip_equal(a, b);
}

bool os_addr_is_wildcard(const struct os_addr *a)
{
    size_t octets = addr_octets(a);

    for (size_t i = 0; i < octets; i++)
        if (a->ip[i] != 0)
            return false;
    return octets != 0;
}

bool os_addr_is_loopback(const struct os_addr *a)
{
    static const uint8_t v6[16] = {[15] = 1};

    if (a->family == OS_FAMILY_V4)
        return a->ip[0] == 127;
    return a->family == OS_FAMILY_V6 && memcmp(a->ip, v6, sizeof v6) == 0;
}

const char *os_addr_text(const struct os_addr *a, bool with_port, char buf[OS_ADDR_TEXT_MAX])
{
    char ip[INET6_ADDRSTRLEN] = "";
    char scope[16] = "";

    if (a->family == OS_FAMILY_V4) {
        inet_ntop(AF_INET, a->ip, ip, sizeof ip);
        if (with_port)
            snprintf(buf, OS_ADDR_TEXT_MAX, "%s:%u", ip, (unsigned)a->port);
        else
            snprintf(buf, OS_ADDR_TEXT_MAX, "%s", ip);
    } else if (a->family == OS_FAMILY_V6) {
        inet_ntop(AF_INET6, a->ip, ip, sizeof ip);
        if (a->scope_id != 0)
            snprintf(scope, sizeof scope, "%%%u", (unsigned)a->scope_id);
        if (with_port)
            snprintf(buf, OS_ADDR_TEXT_MAX, "[%s%s]:%u", ip, scope, (unsigned)a->port);
        else
            snprintf(buf, OS_ADDR_TEXT_MAX, "%s%s", ip, scope);
    } else {
        snprintf(buf, OS_ADDR_TEXT_MAX, "(none)");
    }
    return buf;
}

/* A whole string of decimal digits, at most max. */
static bool parse_decimal(const char *text, uint32_t max, uint32_t *out)
{
    uint64_t value = 0;

    if (*text == '\0')
        return false;
    for (; *text != '\0'; text++) {
        if (*text < '0' || *text > '9')
            return false;
        value = value * 10 + (uint64_t)(*text - '0');
        if (value > max)
            return false;
    }
    *out = (uint32_t)value;
    return true;
}

static bool parse_v6(char *text, struct os_addr *out)
{
    char *scope = strchr(text, '%');

    if (scope)
        *scope++ = '\0';
    if (inet_pton(AF_INET6, text, out->ip) != 1)
        return false;
    out->family = OS_FAMILY_V6;
    if (!scope)
        return true;
    if (!addr_takes_scope(out->ip))
        return false;
    if (!parse_decimal(scope, UINT32_MAX, &out->scope_id))
        out->scope_id = if_nametoindex(scope);
    return out->scope_id != 0;
}

int os_addr_parse(const char *text, struct os_addr *out)
{
    struct os_addr a = {0};
    char copy[OS_ADDR_TEXT_MAX + IF_NAMESIZE];
    size_t len = strlen(text);
    char *host = copy;
    char *port = NULL;
    uint32_t number = 0;

    if (len >= sizeof copy)
        return -EINVAL;
    memcpy(copy, text, len + 1);
    if (copy[0] == '[') {
        char *end = strchr(copy, ']');

        if (!end || (end[1] != '\0' && end[1] != ':'))
            return -EINVAL;
        *end = '\0';
        host++;
        if (end[1] == ':')
            port = end + 2;
        if (!parse_v6(host, &a))
            return -EINVAL;
    } else {
        port = strchr(copy, ':');
        if (port && strchr(port + 1, ':'))
            port = NULL; /* a bare IPv6 address */
        if (port)
            *port++ = '\0';
        if (inet_pton(AF_INET, host, a.ip) == 1)
            a.family = OS_FAMILY_V4;
        else if (port || !parse_v6(host, &a))
            return -EINVAL;
    }
    if (port && !parse_decimal(port, UINT16_MAX, &number))
        return -EINVAL;
    a.port = (uint16_t)number;
    *out = a;
    return 0;
}

socklen_t os_addr_to_sockaddr(const struct os_addr *a, union os_sockaddr *out)
{
    memset(out, 0, sizeof *out);
    if (a->family == OS_FAMILY_V4) {
        out->v4.sin_family = AF_INET;
        out->v4.sin_port = htons(a->port);
        memcpy(&out->v4.sin_addr, a->ip, 4);
        return sizeof out->v4;
    }
    if (a->family == OS_FAMILY_V6) {
        out->v6.sin6_family = AF_INET6;
        out->v6.sin6_port = htons(a->port);
        out->v6.sin6_scope_id = a->scope_id;
        memcpy(&out->v6.sin6_addr, a->ip, 16);
        return sizeof out->v6;
    }
    return 0;
}

bool os_addr_from_sockaddr(const struct sockaddr *sa, struct os_addr *out)
{
    memset(out, 0, sizeof *out);
    if (sa->sa_family == AF_INET) {
        struct sockaddr_in v4;

        memcpy(&v4, sa, sizeof v4);
        out->family = OS_FAMILY_V4;
        out->port = ntohs(v4.sin_port);
        memcpy(out->ip, &v4.sin_addr, 4);
        return true;
    }
    if (sa->sa_family == AF_INET6) {
        struct sockaddr_in6 v6;

        memcpy(&v6, sa, sizeof v6);
        out->family = OS_FAMILY_V6;
        out->port = ntohs(v6.sin6_port);
        memcpy(out->ip, &v6.sin6_addr, 16);
        if (addr_takes_scope(out->ip))
            out->scope_id = v6.sin6_scope_id;
        return true;
    }
    return false;
}
