// SPDX-License-Identifier: MIT
/*
 * NT socket addresses to and from struct os_addr. Families accepted: AF_INET (2), AF_INET6 (23, the
 * Windows number) and 10, Linux's own number for IPv6, since a consumer's address may come from the
 * host's resolver. Answers use the family number that the consumer gave. Called by the connector,
 * the listener and the API; pure, no lock.
 */
#ifndef SOFTNDK_PROVIDER_SOCKADDR_H
#define SOFTNDK_PROVIDER_SOCKADDR_H

#include <ndkpi.h>
#include <ws2ipdef.h>

#include "os/os.h"

#define SOCKADDR_LINUX_INET6 10

/*
 * Reads an address of `length` octets (at least 16 for IPv4, 28 for IPv6; more is fine). False:
 * NULL, too short, or another family; *out and *family are then untouched. family (may be NULL):
 * the number the consumer used, for sockaddr_put().
 */
bool sockaddr_get(CONST SOCKADDR *address, ULONG length, struct os_addr *out,
                  ADDRESS_FAMILY *family);

/*
 * The answer of the NdkGet...Address functions. *length: in the room at out, out the octets written
 * or needed (16 or 28). STATUS_SUCCESS, STATUS_BUFFER_TOO_SMALL (out may be NULL then: the size
 * query), STATUS_INVALID_PARAMETER (length is NULL). as: the number to use for IPv6, 0 for 23.
 */
NTSTATUS sockaddr_put(const struct os_addr *address, ADDRESS_FAMILY as, PSOCKADDR out,
                      ULONG *length);

#endif
