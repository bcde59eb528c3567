// SPDX-License-Identifier: MIT
/*
 * What an adapter has open towards the network, for whoever shows it: connections, listeners,
 * shared endpoints; with the addresses of the host (address_ndk() gives those of consumers).
 *
 * Each such object has a row of its own, which it puts into the adapter's list, changes and takes
 * out as its state goes; a snapshot copies rows. So it never touches the objects themselves, holds
 * none of them and makes no close wait.
 *
 *   connection        from the Request or the Reply on (connecting), then established, until both
 *                     directions are over; established rows are what active_connection counts
 *   listener          while it listens, or is paused and keeps its port
 *   shared endpoint   from its creation until it is closed and nobody connects over it any more
 *
 * Lock: the adapter's table lock (leaf), so rows may be set under any other lock.
 */
#ifndef SOFTNDK_PROVIDER_ADAPTER_SNAPSHOT_H
#define SOFTNDK_PROVIDER_ADAPTER_SNAPSHOT_H

#include "os/os.h"

struct adapter;

enum adapter_row_kind {
    ADAPTER_ROW_CONNECTING,
    ADAPTER_ROW_ESTABLISHED,
    ADAPTER_ROW_LISTENER,
    ADAPTER_ROW_SHARED
};

struct adapter_endpoint {
    enum adapter_row_kind kind;
    uint32_t interface;           /* index, as consumers know it */
    uint32_t adapter;             /* id of the open, "#7" */
    struct os_addr local, remote; /* of the host; remote of connections only */
};

/* Part of the object; zero: not in the list. */
struct adapter_row {
    struct adapter_row *next, **link;
    enum adapter_row_kind kind;
    struct os_addr local, remote;
};

/* Puts the row in, or changes it. remote may be NULL. */
void adapter_row_set(struct adapter *adapter, struct adapter_row *row, enum adapter_row_kind kind,
                     const struct os_addr *local, const struct os_addr *remote);
/* Takes it out; fine for one that is not in. */
void adapter_row_clear(struct adapter *adapter, struct adapter_row *row);

/*
 * Copies at most room rows of one adapter, the oldest first; returns how many there are. The caller
 * holds the adapter (open, or a reference), and no lock.
 */
size_t adapter_snapshot(struct adapter *adapter, struct adapter_endpoint *out, size_t room);
/* Appends all rows of an adapter to *list, which has count and is to be freed, also after a
 * failure. How many it has then, or -ENOMEM. The same conditions. */
ssize_t adapter_snapshot_add(struct adapter *adapter, struct adapter_endpoint **list, size_t count);
/*
 * Those of all adapters that are open on the interface with this index, or, with 0, of all of the
 * process, sorted by interface. *out is to be freed. How many, or -ENOMEM.
 */
ssize_t adapter_snapshot_all(uint32_t index, struct adapter_endpoint **out);

#endif
