// SPDX-License-Identifier: MIT
/*
 * Endpoints: which local addresses and ports are held, and by how many. One table of the process,
 * since all adapters share its ports; the kernel decides between processes.
 *
 *   implicit, from NdkListen    the listener and every connector accepted over it
 *   implicit, from NdkConnect   that connector, until it is closed, also when the connect failed
 *   shared endpoint             its object and every connector that connected over it
 *
 * Lock: the table's (leaf).
 */
#ifndef SOFTNDK_PROVIDER_PORTS_H
#define SOFTNDK_PROVIDER_PORTS_H

#include <stdbool.h>
#include <stdint.h>

#include "os/os.h"

struct endpoint;

/* Takes address:port (port not 0) with one reference; NULL: held already, or no memory (*memory is
 * set then). */
struct endpoint *endpoint_take(const struct os_addr *address, bool *memory);
void endpoint_ref(struct endpoint *endpoint);
/* The last one frees the address. NULL is fine. */
void endpoint_drop(struct endpoint *endpoint);
const struct os_addr *endpoint_address(const struct endpoint *endpoint);

/*
 * Walks the ephemeral range from a random start: each call takes the next free port of low..high
 * for address, except the one of `avoid` when that has the same IP (a socket must not connect to
 * itself). NULL: the whole range was seen, or (walk->no_memory) there was no memory.
 */
struct port_walk {
    uint32_t low, count, at, seen;
    bool no_memory;
};
void port_walk_begin(struct port_walk *walk, uint32_t low, uint32_t high);
struct endpoint *port_walk_next(struct port_walk *walk, const struct os_addr *address,
                                const struct os_addr *avoid);

/*
 * Takes address together with a socket: what make(context, address) gives, a descriptor or -errno.
 * Port 0: the first of low..high that nobody here holds and that make() does not find in use. The
 * descriptor; -ENOMEM; -EADDRINUSE: held; -ERANGE: nothing of low..high is free; or what make()
 * said, and nothing is taken.
 */
int endpoint_open(struct endpoint **out, const struct os_addr *address, uint32_t low, uint32_t high,
                  int (*make)(void *context, const struct os_addr *address), void *context);

#endif
