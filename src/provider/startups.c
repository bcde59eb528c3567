// SPDX-License-Identifier: MIT
/* See startups.h. Every entry of the hash has a count above 0, the sum of all counts is `count`. */
#include "provider/startups.h"

#include <stdlib.h>
#include <string.h>

#include "base/options.h"
#include "base/red.h"
#include "provider/connector.h"

#define PREFIX_OCTETS 8 /* of an IPv6 address */

void startups_init(struct startups *s)
{
    memset(s, 0, sizeof *s);
    os_random(&s->seed, sizeof s->seed);
}

uint32_t startups_per_peer(const struct options *o)
{
    if (o->max_startups_per_peer)
        return o->max_startups_per_peer;
    return o->max_startups > 1 ? o->max_startups / 2 : 1;
}

/* What is counted as one peer. */
static struct os_addr peer_of(const struct os_addr *address)
{
    struct os_addr peer = *address;

    peer.port = 0;
    if (peer.family == OS_FAMILY_V6 && !RED("startups-whole-ipv6-address"))
        memset(peer.ip + PREFIX_OCTETS, 0, sizeof peer.ip - PREFIX_OCTETS);
    return peer;
}

static struct startups_peer **bucket_of(struct startups *s, const struct os_addr *peer)
{
    uint64_t hash = s->seed;

    for (size_t i = 0; i < sizeof peer->ip; i++)
        hash = (hash ^ peer->ip[i]) * 0x9e3779b97f4a7c15u;
    return &s->peers[hash >> 32 & (STARTUPS_BUCKETS - 1)];
}

/* Its entry, a new one if need be; NULL: no memory. */
static struct startups_peer *entry_of(struct startups *s, const struct os_addr *peer)
{
    struct startups_peer **bucket = bucket_of(s, peer), *entry;

    for (entry = *bucket; entry; entry = entry->next)
        if (os_addr_ip_equal(&entry->address, peer))
            return entry;
    entry = calloc(1, sizeof *entry);
    if (!entry)
        return NULL;
    entry->address = *peer;
    entry->next = *bucket;
    *bucket = entry;
    return entry;
}

/* Frees the entry of one that has no startups. */
static void entry_drop(struct startups *s, struct startups_peer *entry)
{
    struct startups_peer **at = bucket_of(s, &entry->address);

    while (*at != entry)
        at = &(*at)->next;
    *at = entry->next;
    free(entry);
}

enum startups_verdict startups_add(struct startups *s, struct connector *k,
                                   const struct os_addr *address, const struct options *options)
{
    struct os_addr peer = peer_of(address);
    struct startups_peer *entry;

    if (s->count >= options->max_startups)
        return STARTUPS_FULL;
    entry = entry_of(s, &peer);
    if (!entry)
        return STARTUPS_NO_MEMORY;
    if (entry->count >= startups_per_peer(options) && !RED("startups-peer-unbounded"))
        return STARTUPS_PEER_FULL;
    entry->count++;
    s->count++;
    k->startup_peer = entry;
    k->startup_previous = NULL;
    k->startup_next = s->first;
    if (s->first)
        s->first->startup_previous = k;
    s->first = k;
    return STARTUPS_TAKEN;
}

void startups_remove(struct startups *s, struct connector *k)
{
    if (!k->startup_peer)
        return;
    if (--k->startup_peer->count == 0)
        entry_drop(s, k->startup_peer);
    k->startup_peer = NULL;
    s->count--;
    if (k->startup_previous)
        k->startup_previous->startup_next = k->startup_next;
    else
        s->first = k->startup_next;
    if (k->startup_next)
        k->startup_next->startup_previous = k->startup_previous;
}
