// SPDX-License-Identifier: MIT
/*
 * The counters of NDIS_NDK_PERFORMANCE_COUNTERS that a software provider can count. They belong to
 * the interface: all adapters that are open on it add to one set, which stays when they are closed
 * and lives as long as the process.
 *
 * Octets are those of the TCP streams of established connections, without the headers of TCP, IP
 * and link, which a user-mode provider does not see; frames are FPDUs.
 *
 * Lock: the list's (leaf). The numbers themselves are relaxed atomics.
 */
#ifndef SOFTNDK_PROVIDER_ADAPTER_COUNTERS_H
#define SOFTNDK_PROVIDER_ADAPTER_COUNTERS_H

#include "conn/conn.h"
#include "os/os.h"

struct adapter_counters {
    atomic_ullong connect, accept;   /* connections that came up, as active and as passive side */
    atomic_ullong connect_failure;   /* attempts of either side that ended before they were up */
    atomic_ullong connection_error;  /* were up, and ended other than by anybody's disconnect */
    atomic_ullong active_connection; /* are up now */
    atomic_ullong cq_error;          /* CQs that overran */
    struct conn_counters wire;
};

/* Those of the interface with this index; its name is that of the first adapter. NULL: no memory.
 */
struct adapter_counters *adapter_counters_of(const struct os_interface *interface);

/* The numbers at one moment (each for itself: they are not stopped). */
struct adapter_totals {
    unsigned long long connect, accept, connect_failure, connection_error, active_connection;
    unsigned long long cq_error, in_octets, out_octets, in_frames, out_frames;
};

/* Calls fn for each interface on which an adapter was ever opened, by index; no lock is held. */
void adapter_counters_walk(void (*fn)(void *context, uint32_t index, const char *name,
                                      const struct adapter_totals *totals),
                           void *context);
/* Of one interface; false, and all 0: no adapter was ever opened on it. */
bool adapter_counters_read(uint32_t index, struct adapter_totals *out);

#endif
