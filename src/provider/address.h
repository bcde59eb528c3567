// SPDX-License-Identifier: MIT
/*
 * The addresses that consumers know and those of the host: where they differ by configuration, they
 * are translated here, at the boundary of the provider. What a consumer passes becomes an address
 * of the host, what it reads back is the NDK address again. Everything below (ports, connections,
 * the wire) and between (endpoint table, listeners) goes on with addresses of the host.
 *
 * The table pairs NDK address and host address, one to one; an IPv6 NDK address may have an IPv4
 * host address. An address that stands nowhere in it passes as it is. Without a configuration it is
 * empty. Scopes of link-local addresses are indexes of interfaces, and so translated with them.
 *
 * ::ffff:a.b.c.d means a.b.c.d. Answers come in the family that was asked in: to one who asked in
 * IPv6, an IPv4 address is told as ::ffff:a.b.c.d; to one who asked in IPv4, an address that has no
 * such form is told as the host's.
 *
 * The table is laid down before the first adapter is opened and then never changed: no lock.
 */
#ifndef SOFTNDK_PROVIDER_ADDRESS_H
#define SOFTNDK_PROVIDER_ADDRESS_H

#include "provider/sockaddr.h"

struct adapter;

struct address_pair {
    struct os_addr ndk, host; /* port 0 */
};

/* Copies the pairs; each address stands once on its side. Replaces what was there: not while an
 * adapter is open. False without memory, and nothing changed. */
bool address_map_set(const struct address_pair *pairs, size_t count);
/* The other side of a pair, with the port of the address given; false: it stands nowhere. */
bool address_map_host(const struct os_addr *ndk, struct os_addr *host);
bool address_map_ndk(const struct os_addr *host, struct os_addr *ndk);

/* What a consumer passed. */
struct address {
    struct os_addr ndk, host;
    ADDRESS_FAMILY family; /* the number it used, for address_put() */
    bool v6;               /* it was passed as IPv6 */
};

/* Reads an address as sockaddr_get() does. */
bool address_get(const struct adapter *adapter, CONST SOCKADDR *from, ULONG length,
                 struct address *out);
/* The answer of the NdkGet...Address functions, as sockaddr_put() gives it. family: of the one who
 * asks; 0: the address's own. */
NTSTATUS address_put(const struct adapter *adapter, const struct os_addr *host,
                     ADDRESS_FAMILY family, PSOCKADDR out, ULONG *length);
/* The NDK address of a host address on an interface; the same for an adapter's, and as text. */
struct os_addr address_ndk_on(const struct os_interface *interface, const struct os_addr *host);
struct os_addr address_ndk(const struct adapter *adapter, const struct os_addr *host);
const char *address_text(const struct adapter *adapter, const struct os_addr *host, bool with_port,
                         char text[OS_ADDR_TEXT_MAX]);

/* Is this NDK address one of the interface's? A loopback interface has all of 127.0.0.0/8 but what
 * stands in the map. */
bool address_is_of(const struct os_interface *interface, const struct os_addr *ndk);
/* The addresses that address_is_of() takes, for sentences: "10.0.0.1, fd00::1"; as many as there is
 * room for. */
#define ADDRESS_LIST_MAX 200
const char *address_list(const struct os_interface *interface, char text[ADDRESS_LIST_MAX]);
/* The sentence for one that it does not take: "address X is not one of interface I (have ...)". */
#define ADDRESS_FOREIGN_MAX 420
const char *address_foreign(const struct os_interface *interface, const struct os_addr *ndk,
                            char text[ADDRESS_FOREIGN_MAX]);

#endif
