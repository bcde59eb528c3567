// SPDX-License-Identifier: MIT
/*
 * The registry: which NDK miniport stands behind an interface index, and who has it open.
 *
 * Drivers register as on Windows (ndis.h, ndisndk.h); what PnP does there, bringing an instance up
 * and taking it away, is ndis_adapter_add() and ndis_adapter_remove(). The registry knows no
 * provider; ndis_open_adapter() (doors.c) has the soft miniport bring up the instance of an
 * interface that nobody else serves.
 *
 * Ownership: a driver's record lives from register to deregister, an instance's from add to remove,
 * an open's from open to close. One lock, the registry's, guards all lists and counts; no handler
 * runs and nothing else is locked while it is held. An open is counted at its instance before its
 * handler is called, so neither remove nor the disable event passes an open that has begun.
 * Everything at PASSIVE_LEVEL.
 */
#ifndef SOFTNDK_NDIS_REGISTRY_H
#define SOFTNDK_NDIS_REGISTRY_H

#include <ndisndk.h>
#include <stdbool.h>
#include <stddef.h>

/* Tells what keeps an adapter open; see ndis_adapter_tell(). */
typedef size_t (*ndis_tell)(NDK_ADAPTER *adapter, void (*line)(void *, const char *),
                            void *context);

/*
 * Opens by interface index. The open handler's status is passed through; an index that no miniport
 * with NDK serves: STATUS_NOT_SUPPORTED; NDK is disabled: NDIS_STATUS_ADAPTER_NOT_READY; version:
 * NDIS_STATUS_BAD_VERSION; the configuration is wrong: STATUS_INVALID_PARAMETER; a provider that
 * answers success without a proper adapter: STATUS_UNSUCCESSFUL. error[size]: a sentence on
 * failure. *out is written on success alone.
 */
NTSTATUS ndis_open_adapter(NET_IFINDEX index, NDK_VERSION version, NDK_ADAPTER **out, char *error,
                           size_t size);
/* The same among the instances that are there. */
NTSTATUS ndis_registry_open(NET_IFINDEX index, NDK_VERSION version, NDK_ADAPTER **out, char *error,
                            size_t size);

/* Closes what was opened by index; blocks as the close of its provider does. */
void ndis_close_adapter(NDK_ADAPTER *adapter);

/* Tells, a line a call, what keeps this open adapter open, if its provider can tell. Returns how
 * many things; line may be NULL. The caller keeps the adapter open meanwhile. */
size_t ndis_adapter_tell(NDK_ADAPTER *adapter, void (*line)(void *, const char *), void *context);

/* Brings up an instance of a registered driver: InitializeHandlerEx. An index that is taken:
 * STATUS_OBJECT_NAME_COLLISION; else the handler's status. */
NTSTATUS ndis_adapter_add(NDIS_HANDLE driver, NET_IFINDEX index, NDIS_HANDLE *instance);
/* Takes it away: waits until its opens are closed, then HaltHandlerEx. */
void ndis_adapter_remove(NDIS_HANDLE instance);
/* Whether an instance serves the index. */
bool ndis_adapter_known(NET_IFINDEX index);

/* In InitializeHandlerEx: the context that the instance's handlers get. (On Windows it is part of
 * the registration attributes, which this subset leaves out.) */
void ndis_adapter_context(NDIS_HANDLE instance, NDIS_HANDLE context);
/* In SetOptionsHandler: the driver's teller. */
void ndis_driver_tell(NDIS_HANDLE driver, ndis_tell tell);
/* In the open handler: why it fails. */
void ndis_open_reason(const char *text);

#endif
