// SPDX-License-Identifier: MIT
/*
 * Shared endpoints: a local address that many connectors connect from, to as many destinations. The
 * object takes the address in the endpoint table (ports.h) and holds it in the system with a socket
 * that is bound and never listens. Each connector that connects over it refers to the address and
 * has the object as antecedent, so that the port is free, and a close that pended completes, when
 * the object and all of them are closed.
 *
 * The object knows the destinations in use, each from the call until the socket is gone: the same
 * one twice is refused here, also while no socket stands for it (between the two attempts of the
 * retry with MPA revision 1). What an earlier connection left in the system is the system's to say.
 *
 * Lock: shared_endpoint->lock (leaf) guards the list.
 */
#ifndef SOFTNDK_PROVIDER_SHARED_ENDPOINT_H
#define SOFTNDK_PROVIDER_SHARED_ENDPOINT_H

#include "provider/connector.h"

struct shared_endpoint {
    struct object object;
    struct endpoint *endpoint;
    ADDRESS_FAMILY family; /* the number the consumer asked with */
    int holder;            /* descriptor */
    struct adapter_row row;
    os_mutex lock;
    struct connector *over; /* by shared_next */
};

extern const NDK_SHARED_ENDPOINT_DISPATCH shared_endpoint_dispatch;
/* Adapter slot NdkCreateSharedEndpoint. */
NTSTATUS shared_endpoint_create(NDK_ADAPTER *adapter, CONST PSOCKADDR address, ULONG length,
                                NDK_FN_CREATE_COMPLETION completion, PVOID context,
                                NDK_SHARED_ENDPOINT **out);

/* What a consumer passed as one; NULL unless it is a shared endpoint of this adapter. */
struct shared_endpoint *shared_endpoint_of(NDK_SHARED_ENDPOINT *ndk, const struct adapter *adapter);

/* The connector connects over it: antecedent, address, destination. False: another one does so to
 * this peer; nothing is changed. */
bool shared_endpoint_join(struct shared_endpoint *shared, struct connector *k,
                          const struct os_addr *peer);
/* The connector's socket is gone: the destination is free. Fine for one that never joined. */
void shared_endpoint_leave(struct connector *k);
/* The connect failed before anything else could see the connector: as if it had not joined, but for
 * the reference on the address, which stays with k->endpoint. */
void shared_endpoint_leave_unused(struct connector *k);

#endif
