// SPDX-License-Identifier: MIT
/* See ports.h. A hash of chains by port: the range holds tens of thousands, a chain a few. */
#include "provider/ports.h"

#include <stdlib.h>

#include "base/red.h"

#define BUCKETS 1024u

struct endpoint {
    struct endpoint *next;
    struct os_addr address;
    unsigned references; /* table lock */
};

static os_mutex table_lock = OS_MUTEX_INITIALIZER;
static struct endpoint *buckets[BUCKETS];

static struct endpoint **bucket_of(const struct os_addr *address)
{
    return &buckets[address->port % BUCKETS];
}

/* Lock held. */
static struct endpoint *find(const struct os_addr *address)
{
    for (struct endpoint *e = *bucket_of(address); e; e = e->next)
        if (os_addr_equal(&e->address, address))
            return e;
    return NULL;
}

struct endpoint *endpoint_take(const struct os_addr *address, bool *memory)
{
    struct endpoint *endpoint = calloc(1, sizeof *endpoint);

    *memory = endpoint == NULL;
    if (!endpoint)
        return NULL;
    os_mutex_lock(&table_lock);
    if (find(address) && !RED("port_taken_twice")) {
        os_mutex_unlock(&table_lock);
        free(endpoint);
        return NULL;
    }
    endpoint->address = *address;
    endpoint->references = 1;
    endpoint->next = *bucket_of(address);
    *bucket_of(address) = endpoint;
    os_mutex_unlock(&table_lock);
    return endpoint;
}

void endpoint_ref(struct endpoint *endpoint)
{
    os_mutex_lock(&table_lock);
    endpoint->references++;
    os_mutex_unlock(&table_lock);
}

void endpoint_drop(struct endpoint *endpoint)
{
    struct endpoint **at;

    if (!endpoint)
        return;
    os_mutex_lock(&table_lock);
    if (--endpoint->references) {
        os_mutex_unlock(&table_lock);
        return;
    }
    for (at = bucket_of(&endpoint->address); *at != endpoint; at = &(*at)->next)
        ;
    *at = endpoint->next;
    os_mutex_unlock(&table_lock);
    free(endpoint);
}

const struct os_addr *endpoint_address(const struct endpoint *endpoint)
{
    return &endpoint->address;
}

void port_walk_begin(struct port_walk *walk, uint32_t low, uint32_t high)
{
    uint32_t random;

    os_random(&random, sizeof random);
    walk->low = low;
    walk->count = high - low + 1;
    walk->at = random % walk->count;
    walk->seen = 0;
    walk->no_memory = false;
}

struct endpoint *port_walk_next(struct port_walk *walk, const struct os_addr *address,
                                const struct os_addr *avoid)
{
    while (walk->seen < walk->count) {
        struct os_addr candidate = *address;
        struct endpoint *endpoint;
        bool memory;

        candidate.port = (uint16_t)(walk->low + walk->at);
        walk->at = (walk->at + 1) % walk->count;
        walk->seen++;
        if (avoid && os_addr_equal(&candidate, avoid))
            continue;
        endpoint = endpoint_take(&candidate, &memory);
        if (endpoint)
            return endpoint;
        if (memory) {
            walk->no_memory = true;
            return NULL;
        }
    }
    return NULL;
}

int endpoint_open(struct endpoint **out, const struct os_addr *address, uint32_t low, uint32_t high,
                  int (*make)(void *context, const struct os_addr *address), void *context)
{
    struct port_walk walk = {0};
    bool memory = false;
    int fd;

    if (address->port == 0)
        port_walk_begin(&walk, low, high);
    do {
        *out =
            address->port ? endpoint_take(address, &memory) : port_walk_next(&walk, address, NULL);
        if (!*out)
            return memory || walk.no_memory ? -ENOMEM : address->port ? -EADDRINUSE : -ERANGE;
        fd = make(context, endpoint_address(*out));
        if (fd < 0) {
            endpoint_drop(*out);
            *out = NULL;
        }
    } while (fd == -EADDRINUSE && address->port == 0);
    return fd;
}
