// SPDX-License-Identifier: MIT
/* The miniport driver of the soft provider: registers like any other (registry.h). */
#ifndef SOFTNDK_NDIS_SOFT_MINIPORT_H
#define SOFTNDK_NDIS_SOFT_MINIPORT_H

#include "ndis/registry.h"

/*
 * Brings up an instance for the interface unless the index is served already or is not one of
 * ndis/interfaces.h; both are a success. STATUS_INVALID_PARAMETER: the configuration is wrong;
 * else what registering or bringing up answers. error[size]: a sentence on failure. PASSIVE_LEVEL.
 * Lock: the miniport's own, outside the registry's.
 */
NTSTATUS soft_miniport_bring_up(NET_IFINDEX index, char *error, size_t size);

#endif
