// SPDX-License-Identifier: MIT
/*
 * adapters.h - where the door's adapters come from: open and close by interface index. The one file
 * of this room that knows the floor below.
 */
#ifndef SOFTNDK_WSK_ADAPTERS_H
#define SOFTNDK_WSK_ADAPTERS_H

#include <ndkpi.h>
#include <ifdef.h>

/*
 * Opens the adapter of an interface. The provider's status is passed on; no such interface:
 * STATUS_NOT_SUPPORTED; no such version: NDIS_STATUS_BAD_VERSION. error[size] receives a sentence
 * on failure. PASSIVE_LEVEL.
 */
NTSTATUS wsk_adapter_open(NET_IFINDEX index, NDK_VERSION version, NDK_ADAPTER **out, char *error,
                          size_t size);

/* Blocks until all that descends from the adapter is closed. PASSIVE_LEVEL. */
void wsk_adapter_close(NDK_ADAPTER *adapter);

/* Tells, a line a call, what keeps an open adapter open; how many things. No lock is held. */
size_t wsk_adapter_tell(NDK_ADAPTER *adapter, void (*line)(void *context, const char *text),
                        void *context);

#endif
