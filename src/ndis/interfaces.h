// SPDX-License-Identifier: MIT
/*
 * The NDK interfaces there are: those of the configuration, and the host's own under their own
 * names and indexes. Every door, the soft miniport and the IP helper of src/nt find them here.
 *
 * The configuration (ndis/config.h) is SOFTNDK_CONFIG's file, SOFTNDK_INTERFACES and SOFTNDK_PEERS.
 * It is read once a process, at the first question, and is then in force: the address map is laid
 * down (provider/address.h), and the registry knows its values. One that is wrong is in force
 * nowhere: every question is answered with the same sentence.
 *
 * A configured interface stands over one of the host: the one its `host` names, else the one that
 * has one of its host addresses, else loopback. If the host has none such, it is listed as down, so
 * that the ends of a connection can share one file. The host's own interfaces are listed too,
 * without the addresses that the map gives to others, but for those that a configured one stands
 * over by name (loopback stays), or that share index or name with one.
 *
 * PASSIVE_LEVEL. Lock: the one of the first reading (outer to nothing; the registry's is held
 * around it when a driver's first call is one of the registry).
 */
#ifndef SOFTNDK_NDIS_INTERFACES_H
#define SOFTNDK_NDIS_INTERFACES_H

#include "base/options.h"
#include "ndis/config.h"
#include "os/os.h"

/* False: the configuration is wrong, and error[size] says how. */
bool interfaces_ready(char *error, size_t size);

/* All of them, configured ones first, each kind by index; as os_interfaces() answers. -EINVAL: the
 * configuration is wrong. -ENOMEM may pass: it is then read at the next question. */
int interfaces_list(struct os_interface *out, unsigned max);

/* The one with this index. 1: found; 0: there is none; negative: as interfaces_list(). */
int interfaces_find(uint32_t index, struct os_interface *out);

/* The name of the host's interface below, or an empty text: the host has none such. */
void interfaces_host(const struct os_interface *interface, char name[OS_IF_NAME_MAX]);

/* The options of an open on this interface: as settings_for_open(), with what the configuration
 * says between the profile and the environment. */
bool interfaces_settings(uint32_t index, const char *text, struct options *out, char *error,
                         size_t size);

/* The keyword *NetworkDirect: whether NDK may be enabled on this interface. True where nothing is
 * said. */
bool interfaces_network_direct(uint32_t index);

/* What is in force; NULL: the configuration is wrong. */
const struct config *interfaces_config(void);

/* The interface to reach a peer from, an NDK address, among count listed ones, and the NDK address
 * to reach it from. NULL: none; *rc then is what the host said about the way, or 0. */
const struct os_interface *interfaces_route(const struct os_interface *list, unsigned count,
                                            const struct os_addr *peer, struct os_addr *source,
                                            int *rc);

/* What is in force, a line each, with the place that says it. */
void interfaces_tell(void (*line)(void *context, const char *text), void *context);

/* For tests: the next question reads the configuration anew. Not while an adapter is open. */
void interfaces_forget(void);

#endif
