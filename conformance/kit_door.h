// SPDX-License-Identifier: MIT
/*
 * kit_door.h - how the kit gets at a provider.
 *
 * NDKPI does not say how an adapter is opened. One file a provider says it here and defines
 * `kit_door`; it is the only file of the kit that may include headers of that provider. For softndk
 * it is door_softndk.c. docs/conformance.md tells how to write another.
 */
#ifndef KIT_DOOR_H
#define KIT_DOOR_H

#include <ndkpi.h>

struct kit_door {
    const char *name; /* of the provider */

    /*
     * Opens an adapter that owns the local address. version is {major, lowest minor that will do}.
     * options: a text of the user that only the provider understands, or NULL. why gets a sentence
     * when it fails. PASSIVE_LEVEL.
     */
    NTSTATUS(*open)
    (const SOCKADDR_INET *local, ULONG local_length, const char *options, NDK_VERSION version,
     NDK_ADAPTER **out, char *why, SIZE_T why_size);
    /* Closes it; blocks until every callback has returned. PASSIVE_LEVEL. */
    VOID (*close)(NDK_ADAPTER *adapter);

    /* "1.2.3.4", "1.2.3.4:80", "::1", "[::1]:80": an address, port 0 when none is said. */
    NTSTATUS (*address)(const char *text, SOCKADDR_INET *out, ULONG *length);
    /* An address as text, with its port unless that is 0. */
    VOID (*address_text)(const SOCKADDR_INET *address, char *text, SIZE_T size);

    /*
     * TRUE: the kit is the layer directly above the provider, so that NdkReserved and Dispatch of
     * every object are the kit's to change. FALSE: another layer (tcpip.sys on Windows) is between,
     * and the cases that play its part are skipped.
     */
    BOOLEAN direct;

    /* ---- optional, each may be NULL: what a provider offers to its testers ---- */

    /* Which provider this is, for --version: "0.1.0". */
    const char *(*version)(VOID);
    /* The local address the host would use towards a peer. */
    NTSTATUS (*local_for)(const SOCKADDR_INET *peer, SOCKADDR_INET *out, ULONG *length);
    /* The provider's own words for the last failure at an object; "" when it has none. */
    VOID (*reason)(const NDK_OBJECT_HEADER *object, char *text, SIZE_T size);
    /* How calls that may pend answer: "never", "always", "early" (the completion runs before the
     * call returns STATUS_PENDING), "random:SEED". NULL: back to the default. */
    NTSTATUS (*answer)(const char *mode);
    /* The next call of that function ("NdkCreateCq") fails with that status. NULL: no more. */
    NTSTATUS (*fail)(const char *function, NTSTATUS status);
    /* How often the provider or its kernel found a misuse so far: a case may add none. */
    ULONG (*findings)(VOID);
    /* TRUE: with these options, and both ends in this process, a request completes when the peer
     * has done it, so that one that the peer could not do has exactly its status of NDKPI 17. */
    BOOLEAN (*exact)(const char *options);
};

extern const struct kit_door kit_door;

#endif /* KIT_DOOR_H */
