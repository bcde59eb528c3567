// SPDX-License-Identifier: MIT
/*
 * See adapter_counters.h. Sets are added to a list that is sorted by index and never taken out of
 * it, so whoever has a pointer may go on without the lock.
 */
#include "provider/adapter_counters.h"

#include <stdio.h>
#include <string.h>

#include "base/red.h"
#include "provider/hooks.h"

struct set {
    struct set *next; /* fixed under the lock; read under it */
    uint32_t index;
    char name[OS_IF_NAME_MAX];
    struct adapter_counters counters;
};

static os_mutex lock = OS_MUTEX_INITIALIZER;
static struct set *sets;

struct adapter_counters *adapter_counters_of(const struct os_interface *interface)
{
    struct set **at, *set;

    os_mutex_lock(&lock);
    for (at = &sets; *at && (*at)->index < interface->index;)
        at = &(*at)->next;
    set = *at;
    if (!set || set->index != interface->index || RED("adapter-counters-of-each-open")) {
        set = hooks_alloc(sizeof *set);
        if (set) {
            set->index = interface->index;
            snprintf(set->name, sizeof set->name, "%s", interface->name);
            set->next = *at;
            *at = set;
        }
    }
    os_mutex_unlock(&lock);
    return set ? &set->counters : NULL;
}

static unsigned long long get(const atomic_ullong *counter)
{
    return atomic_load_explicit(counter, memory_order_relaxed);
}

static void read_set(const struct set *set, struct adapter_totals *out)
{
    const struct adapter_counters *c = &set->counters;

    *out = (struct adapter_totals){
        .connect = get(&c->connect),
        .accept = get(&c->accept),
        .connect_failure = get(&c->connect_failure),
        .connection_error = get(&c->connection_error),
        .active_connection = get(&c->active_connection),
        .cq_error = get(&c->cq_error),
        .in_octets = get(&c->wire.in_octets),
        .out_octets = get(&c->wire.out_octets),
        .in_frames = get(&c->wire.in_frames),
        .out_frames = get(&c->wire.out_frames),
    };
}

void adapter_counters_walk(void (*fn)(void *context, uint32_t index, const char *name,
                                      const struct adapter_totals *totals),
                           void *context)
{
    const struct set *set;

    os_mutex_lock(&lock);
    set = sets;
    while (set) {
        struct adapter_totals totals;

        os_mutex_unlock(&lock);
        read_set(set, &totals);
        fn(context, set->index, set->name, &totals);
        os_mutex_lock(&lock);
        set = set->next;
    }
    os_mutex_unlock(&lock);
}

bool adapter_counters_read(uint32_t index, struct adapter_totals *out)
{
    const struct set *set;

    memset(out, 0, sizeof *out);
    os_mutex_lock(&lock);
    for (set = sets; set && set->index != index;)
        set = set->next;
    os_mutex_unlock(&lock);
    if (set)
        read_set(set, out);
    return set != NULL;
}
