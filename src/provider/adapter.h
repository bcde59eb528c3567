// SPDX-License-Identifier: MIT
/*
 * One open of an adapter: the root of an object graph, its options, its token table, its numbers.
 * Opening starts the engine (counted); the blocking close waits until every descendant is closed
 * and every callback has returned, then stops it.
 */
#ifndef SOFTNDK_PROVIDER_ADAPTER_H
#define SOFTNDK_PROVIDER_ADAPTER_H

#include <ndkinfo.h>

#include "base/options.h"
#include "conn/conn.h"
#include "provider/adapter_counters.h"
#include "provider/adapter_snapshot.h"
#include "provider/mem.h"
#include "provider/object.h"

struct adapter {
    struct object object;
    struct options options;
    NDK_VERSION version;
    NDK_ADAPTER_INFO info;         /* what NdkQueryAdapterInfo answers */
    struct os_interface interface; /* as consumers know it: index, name, NDK addresses */
    struct mem_table *tokens;
    struct adapter_counters *counters;     /* of the interface; outlive the adapter */
    _Atomic(struct engine_shard *) first;  /* where its first CQ is at home, or NULL */
    os_mutex table_lock;                   /* leaf: live list and reason strings */
    struct object *live;                   /* every object that is not gone */
    struct adapter_row *rows, **rows_last; /* adapter_snapshot.h; table lock */
    unsigned outstanding_lams;             /* table lock */
    struct lam_record *lams;               /* those of them whose making was recorded; table lock */
    struct adapter *open_next, *open_previous; /* all open adapters; process lock */
};

/* A mapping that is not released yet, where origins are recorded. */
struct lam_record {
    struct lam_record *next;
    const void *lam;
    struct origin *origin;
};

/* NDIS_STATUS_BAD_VERSION and NDIS_STATUS_RESOURCES, without the NDIS headers. */
#define ADAPTER_BAD_VERSION ((NTSTATUS)0xC0010004)
#define ADAPTER_RESOURCES   STATUS_INSUFFICIENT_RESOURCES

/*
 * Opens the adapter on one interface. version: {major, lowest minor}. The answer is a status
 * of the NDIS open handler: STATUS_SUCCESS, NDIS_STATUS_BAD_VERSION, NDIS_STATUS_RESOURCES. IRQL
 * PASSIVE. error[size] receives a sentence on failure.
 */
NTSTATUS adapter_open(const struct os_interface *interface, const struct options *options,
                      NDK_VERSION version, struct adapter **out, char *error, size_t size);
/* Blocks until every descendant is gone and every callback returned. Inside a consumer callback it
 * could only wait for itself: that is reported and the process aborts (SOFTNDK_TOLERANT=1: it
 * returns and the adapter leaks). */
void adapter_close(struct adapter *adapter);

/* References on the adapter, under the process lock; object_ref/object_unref come here. */
void adapter_ref(struct adapter *adapter);
void adapter_unref(struct adapter *adapter);

/* Calls fn for each adapter that is open or closing, in the order of their opening, with a
 * reference held and no lock. One that is opened meanwhile may be left out. */
void adapter_walk(void (*fn)(struct adapter *adapter, void *context), void *context);

/* How many adapters are open or closing, and how many were opened in this process. */
unsigned adapter_count(unsigned long long *opened);

/* A CQ begins its life on this shard. */
static inline void adapter_note_first(struct adapter *adapter, struct engine_shard *shard)
{
    struct engine_shard *none = NULL;

    if (!atomic_load_explicit(&adapter->first, memory_order_relaxed))
        atomic_compare_exchange_strong(&adapter->first, &none, shard);
}

/* Where what is accepted will mostly be at home: a connection then needs not move to its receive
 * CQ's shard, which costs two wake-ups. */
static inline struct engine_shard *adapter_listening_shard(struct adapter *adapter)
{
    struct engine_shard *first = atomic_load(&adapter->first);

    return first ? first : engine_shard_next();
}

static inline struct adapter *adapter_from(NDK_ADAPTER *ndk)
{
    return (struct adapter *)(void *)ndk;
}

#endif
