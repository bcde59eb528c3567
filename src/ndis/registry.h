// SPDX-License-Identifier: MIT
/*
 * The registry: which NDK miniport stands behind an interface index, and who has it open.
 * docs/registry.md tells it from the outside.
 *
 * Drivers register as on Windows (ndis.h, ndisndk.h); what PnP does there, bringing an instance up
 * and taking it away, is ndis_adapter_add() and ndis_adapter_remove(). The registry knows no
 * provider; the functions of doors.c have the soft miniport bring up the instance of an interface
 * that nobody else serves.
 *
 * Ownership: a driver's record lives from register to deregister, an instance's from add to remove,
 * an open's from open to close. One lock, the registry's, guards all lists and counts; no handler
 * runs and nothing else is locked while it is held. An open is counted at its instance before its
 * handler is called, so neither remove nor the disable event passes an open that has begun; OID
 * requests and events are counted likewise, so remove passes none of them. Everything at
 * PASSIVE_LEVEL but the completions of OID requests.
 */
#ifndef SOFTNDK_NDIS_REGISTRY_H
#define SOFTNDK_NDIS_REGISTRY_H

#include <ndisndk.h>
#include <stdbool.h>
#include <stddef.h>

/* Tells what keeps an adapter open; see ndis_adapter_tell(). */
typedef size_t (*ndis_tell)(NDK_ADAPTER *adapter, void (*line)(void *, const char *),
                            void *context);

/* ---- doors (doors.c) ---- */

/*
 * Opens by interface index. The open handler's status is passed through; an index that no miniport
 * with NDK serves: STATUS_NOT_SUPPORTED; NDK is disabled: NDIS_STATUS_ADAPTER_NOT_READY; version:
 * NDIS_STATUS_BAD_VERSION; the configuration is wrong: STATUS_INVALID_PARAMETER; a provider that
 * answers success without a proper adapter: STATUS_UNSUCCESSFUL. error[size]: a sentence on
 * failure. *out is written on success alone.
 */
NTSTATUS ndis_open_adapter(NET_IFINDEX index, NDK_VERSION version, NDK_ADAPTER **out, char *error,
                           size_t size);
/* The same with options for the open, in the form of SOFTNDK_OPTIONS; NULL or empty: none. A
 * provider that takes none: STATUS_INVALID_PARAMETER. */
NTSTATUS ndis_open_adapter_with(NET_IFINDEX index, NDK_VERSION version, const char *options,
                                NDK_ADAPTER **out, char *error, size_t size);

/*
 * Issues an OID request and waits for its answer, which is passed through. *bytes (may be NULL):
 * written by a query, read by a set; with NDIS_STATUS_BUFFER_TOO_SHORT or
 * NDIS_STATUS_INVALID_LENGTH, needed; else 0. OID_NDK_STATISTICS goes the direct way. An index
 * that no miniport serves: STATUS_NOT_SUPPORTED, as the miniport itself answers to an OID that it
 * does not know; the sentence tells which.
 */
NTSTATUS ndis_oid_request(NET_IFINDEX index, NDIS_REQUEST_TYPE type, NDIS_OID oid, void *buffer,
                          ULONG length, ULONG *bytes, char *error, size_t size);

/* Whether NDK of the interface is enabled, whether it can be, and how many opens it has.
 * STATUS_NOT_SUPPORTED: no miniport with NDK serves the index; else as ndis_open_adapter(). */
struct ndis_state {
    bool enabled, allowed;
    unsigned opens;
};
NTSTATUS ndis_interface_state(NET_IFINDEX index, struct ndis_state *out, char *error, size_t size);
/*
 * OID_NDK_SET_STATE, and waits until the miniport's event has taken effect, not for what is open.
 * Statuses of ndis_oid_request(); a miniport that says yes and sends no event within 10 s:
 * STATUS_IO_TIMEOUT.
 */
NTSTATUS ndis_interface_set_state(NET_IFINDEX index, bool enable, char *error, size_t size);

/* ---- the same among the instances that are there (registry.c, instances.c, oid.c) ---- */

NTSTATUS ndis_registry_open(NET_IFINDEX index, NDK_VERSION version, const char *options,
                            NDK_ADAPTER **out, char *error, size_t size);
NTSTATUS ndis_registry_oid(NET_IFINDEX index, NDIS_REQUEST_TYPE type, NDIS_OID oid, void *buffer,
                           ULONG length, ULONG *bytes, char *error, size_t size);
NTSTATUS ndis_registry_state(NET_IFINDEX index, struct ndis_state *out, char *error, size_t size);
NTSTATUS ndis_registry_set_state(NET_IFINDEX index, bool enable, char *error, size_t size);

/* Closes what was opened by index; blocks as the close of its provider does. */
void ndis_close_adapter(NDK_ADAPTER *adapter);

/* Tells, a line a call, what keeps this open adapter open, if its provider can tell. Returns how
 * many things; line may be NULL. The caller keeps the adapter open meanwhile. */
size_t ndis_adapter_tell(NDK_ADAPTER *adapter, void (*line)(void *, const char *), void *context);

/* ---- instances ---- */

/* Brings up an instance of a registered driver: InitializeHandlerEx. An index that is taken:
 * STATUS_OBJECT_NAME_COLLISION; else the handler's status. */
NTSTATUS ndis_adapter_add(NDIS_HANDLE driver, NET_IFINDEX index, NDIS_HANDLE *instance);
/* Takes it away: new opens and requests find it no more; waits until its opens are closed and its
 * requests answered, then HaltHandlerEx. */
void ndis_adapter_remove(NDIS_HANDLE instance);
/* Whether an instance serves the index; one that is starting does not yet. */
bool ndis_adapter_known(NET_IFINDEX index);

/* ---- for drivers, beside ndis.h ---- */

/* In SetOptionsHandler: the driver's teller; that its open handler looks at ndis_open_options(). */
void ndis_driver_tell(NDIS_HANDLE driver, ndis_tell tell);
void ndis_driver_takes_options(NDIS_HANDLE driver);
/* In the open handler: the options of this open, or NULL; why it fails, in the whole. */
const char *ndis_open_options(void);
void ndis_open_reason(const char *text);
/* Waits until count of the instance's events have taken effect. For a driver that sends one from
 * each of several work items: so they keep their order although a disable pends. */
void ndis_adapter_events_wait(NDIS_HANDLE instance, unsigned long long count);

#endif
