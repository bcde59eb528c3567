// SPDX-License-Identifier: MIT
/*
 * The connections of a listener that have sent no whole MPA Request yet, or are being refused:
 * anybody can open them, so they are counted, all together (option max_startups) and by peer
 * address (max_startups_per_peer). IPv6 peers are counted by the first 64 bits of their address:
 * whoever has one address of a network has all of them.
 *
 * The counts of peers stand in a hash that is seeded, so that nobody can choose addresses of one
 * chain. A peer without startups has no entry: memory is bounded by max_startups.
 *
 * Lock: the listener's, held by the caller in every function.
 */
#ifndef SOFTNDK_PROVIDER_STARTUPS_H
#define SOFTNDK_PROVIDER_STARTUPS_H

#include <stdbool.h>
#include <stdint.h>

#include "os/os.h"

struct connector;
struct options;

#define STARTUPS_BUCKETS 64u

/* One peer address. */
struct startups_peer {
    struct startups_peer *next;
    struct os_addr address;
    unsigned count;
};

struct startups {
    struct connector *first;
    unsigned count;
    uint64_t seed;
    struct startups_peer *peers[STARTUPS_BUCKETS];
};

enum startups_verdict { STARTUPS_TAKEN, STARTUPS_FULL, STARTUPS_PEER_FULL, STARTUPS_NO_MEMORY };

void startups_init(struct startups *startups);
/* Takes the connector into the list, or says why not. */
enum startups_verdict startups_add(struct startups *startups, struct connector *connector,
                                   const struct os_addr *peer, const struct options *options);
/* Does nothing for one that is not there. */
void startups_remove(struct startups *startups, struct connector *connector);
/* The bound of one peer address. */
uint32_t startups_per_peer(const struct options *options);

#endif
