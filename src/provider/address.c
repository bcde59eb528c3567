// SPDX-License-Identifier: MIT
/* See address.h. Two arrays of the same pairs, each in the order of one side. */
#include "provider/address.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/red.h"
#include "provider/adapter.h"

/* ---- the table ------------------------------------------------------------------------------ */

struct address_map {
    size_t count;
    struct address_pair *by_ndk, *by_host; /* count each */
};

static struct address_map map;

/* An order of addresses, ports left aside. */
static int compare(const struct os_addr *a, const struct os_addr *b)
{
    int octets;

    if (a->family != b->family)
        return a->family < b->family ? -1 : 1;
    octets = memcmp(a->ip, b->ip, a->family == OS_FAMILY_V4 ? 4 : 16);
    if (octets || a->family == OS_FAMILY_V4)
        return octets;
    return a->scope_id < b->scope_id ? -1 : a->scope_id > b->scope_id;
}

static int compare_ndk(const void *a, const void *b)
{
    return compare(&((const struct address_pair *)a)->ndk, &((const struct address_pair *)b)->ndk);
}

static int compare_host(const void *a, const void *b)
{
    return compare(&((const struct address_pair *)a)->host,
                   &((const struct address_pair *)b)->host);
}

bool address_map_set(const struct address_pair *pairs, size_t count)
{
    struct address_pair *both = count ? calloc(2 * count, sizeof *both) : NULL;

    if (count && !both)
        return false;
    free(map.by_ndk);
    map = (struct address_map){count, both, both ? both + count : NULL};
    if (count == 0)
        return true;
    memcpy(map.by_ndk, pairs, count * sizeof *pairs);
    memcpy(map.by_host, pairs, count * sizeof *pairs);
    qsort(map.by_ndk, count, sizeof *pairs, compare_ndk);
    qsort(map.by_host, count, sizeof *pairs, compare_host);
    return true;
}

bool address_map_host(const struct os_addr *ndk, struct os_addr *host)
{
    struct address_pair key = {.ndk = *ndk}, *found = NULL;

    if (map.count && !RED("address-not-translated"))
        found = bsearch(&key, map.by_ndk, map.count, sizeof key, compare_ndk);
    if (!found)
        return false;
    *host = found->host;
    host->port = key.ndk.port;
    return true;
}

bool address_map_ndk(const struct os_addr *host, struct os_addr *ndk)
{
    struct address_pair key = {.host = *host}, *found = NULL;

    if (map.count && !RED("address-not-translated-back"))
        found = bsearch(&key, map.by_host, map.count, sizeof key, compare_host);
    if (!found)
        return false;
    *ndk = found->ndk;
    ndk->port = key.host.port;
    return true;
}

/* ---- forms of one address ------------------------------------------------------------------- */

static const uint8_t mapped_prefix[12] = {[10] = 0xff, [11] = 0xff};

/* ::ffff:a.b.c.d as a.b.c.d. */
static bool unwrap(const struct os_addr *v6, struct os_addr *v4)
{
    struct os_addr out = {.family = OS_FAMILY_V4, .port = v6->port};

    if (v6->family != OS_FAMILY_V6 || memcmp(v6->ip, mapped_prefix, sizeof mapped_prefix) != 0)
        return false;
    memcpy(out.ip, v6->ip + sizeof mapped_prefix, 4);
    *v4 = out;
    return true;
}

static struct os_addr wrapped(const struct os_addr *v4)
{
    struct os_addr out = {.family = OS_FAMILY_V6, .port = v4->port};

    memcpy(out.ip, mapped_prefix, sizeof mapped_prefix);
    memcpy(out.ip + sizeof mapped_prefix, v4->ip, 4);
    return out;
}

static bool is_link_local(const struct os_addr *a)
{
    return a->family == OS_FAMILY_V6 && a->ip[0] == 0xfe && (a->ip[1] & 0xc0) == 0x80;
}

/* ---- in, out -------------------------------------------------------------------------------- */

static struct os_addr to_host(const struct os_interface *interface, const struct os_addr *ndk)
{
    struct os_addr zoned = *ndk, host;

    /* One without its zone is on this adapter's link. */
    if (is_link_local(&zoned) && zoned.scope_id == 0)
        zoned.scope_id = interface->index;
    if (address_map_host(&zoned, &host))
        return host;
    if (zoned.scope_id == interface->index)
        zoned.scope_id = interface->host_index;
    return is_link_local(ndk) ? zoned : *ndk;
}

struct os_addr address_ndk_on(const struct os_interface *interface, const struct os_addr *host)
{
    struct os_addr ndk;

    if (address_map_ndk(host, &ndk))
        return ndk;
    ndk = *host;
    if (is_link_local(&ndk) && ndk.scope_id == interface->host_index)
        ndk.scope_id = interface->index;
    return ndk;
}

bool address_get(const struct adapter *adapter, CONST SOCKADDR *from, ULONG length,
                 struct address *out)
{
    struct address result = {0};

    if (!sockaddr_get(from, length, &result.ndk, &result.family))
        return false;
    result.v6 = result.ndk.family == OS_FAMILY_V6;
    if (!RED("address-mapped-form-ignored"))
        (void)unwrap(&result.ndk, &result.ndk);
    result.host = to_host(&adapter->interface, &result.ndk);
    *out = result;
    return true;
}

struct os_addr address_ndk(const struct adapter *adapter, const struct os_addr *host)
{
    return address_ndk_on(&adapter->interface, host);
}

NTSTATUS address_put(const struct adapter *adapter, const struct os_addr *host,
                     ADDRESS_FAMILY family, PSOCKADDR out, ULONG *length)
{
    struct os_addr ndk = address_ndk_on(&adapter->interface, host);

    if (family == AF_INET && ndk.family == OS_FAMILY_V6)
        ndk = *host;
    else if (family != AF_INET && family != 0 && ndk.family == OS_FAMILY_V4)
        ndk = wrapped(&ndk);
    return sockaddr_put(&ndk, family, out, length);
}

const char *address_text(const struct adapter *adapter, const struct os_addr *host, bool with_port,
                         char text[OS_ADDR_TEXT_MAX])
{
    struct os_addr ndk = address_ndk_on(&adapter->interface, host);

    return os_addr_text(&ndk, with_port, text);
}

/* ---- whose it is ---------------------------------------------------------------------------- */

bool address_is_of(const struct os_interface *interface, const struct os_addr *ndk)
{
    struct os_addr other;

    if (interface->loopback && ndk->family == OS_FAMILY_V4 && ndk->ip[0] == 127)
        return (!address_map_ndk(ndk, &other) && !address_map_host(ndk, &other)) ||
               RED("address-host-taken-by-loopback");
    for (unsigned i = 0; i < interface->addr_count; i++) {
        struct os_addr own = interface->addr[i];

        if (ndk->scope_id == 0)
            own.scope_id = 0; /* a link-local address without its zone: this interface's */
        if (os_addr_ip_equal(&own, ndk))
            return true;
    }
    return false;
}

const char *address_list(const struct os_interface *interface, char text[ADDRESS_LIST_MAX])
{
    char one[OS_ADDR_TEXT_MAX];
    size_t used = 0;

    snprintf(text, ADDRESS_LIST_MAX, "%s",
             interface->loopback ? "127.0.0.0/8" : "an address on it");
    if (interface->loopback)
        used = strlen(text);
    for (unsigned i = 0; i < interface->addr_count; i++) {
        const struct os_addr *own = &interface->addr[i];

        if (interface->loopback && own->family == OS_FAMILY_V4 && own->ip[0] == 127)
            continue;
        os_addr_text(own, false, one);
        if (used + strlen(one) + 8 > ADDRESS_LIST_MAX) {
            snprintf(text + used, ADDRESS_LIST_MAX - used, ", ...");
            break;
        }
        used +=
            (size_t)snprintf(text + used, ADDRESS_LIST_MAX - used, "%s%s", used ? ", " : "", one);
    }
    return text;
}

const char *address_foreign(const struct os_interface *interface, const struct os_addr *ndk,
                            char text[ADDRESS_FOREIGN_MAX])
{
    char given[OS_ADDR_TEXT_MAX], means[OS_ADDR_TEXT_MAX], list[ADDRESS_LIST_MAX];
    struct os_addr meant;
    bool other = address_map_ndk(ndk, &meant) && !os_addr_ip_equal(&meant, ndk);

    snprintf(text, ADDRESS_FOREIGN_MAX, "address %s is not one of interface %s (need %s)%s%s",
             os_addr_text(ndk, false, given), interface->name, address_list(interface, list),
             other ? "; it is the host's of " : "",
             other ? os_addr_text(&meant, false, means) : "");
    return text;
}
