// SPDX-License-Identifier: MIT
/*
 * What an adapter says of itself: the version it runs and NDK_ADAPTER_INFO. Pure functions of the
 * options; what is advertised here must work. Called by adapter.c and by the NDIS room.
 */
#ifndef SOFTNDK_PROVIDER_ADAPTER_INFO_H
#define SOFTNDK_PROVIDER_ADAPTER_INFO_H

#include <ndkpi.h>
#include <stdbool.h>

#include "base/options.h"

#define ADAPTER_DEVICE_ID        1u
#define ADAPTER_MAX_REGISTRATION ((SIZE_T)1 << (sizeof(SIZE_T) == 8 ? 36 : 31)) /* octets */
#define ADAPTER_LARGE_REQUEST    65536u /* octets: LargeRequestThreshold, a hint */

/*
 * The version that runs for a consumer that asks for `wanted` {major, lowest minor}: the highest
 * minor of that major within options.ndkpi, or false: BAD_VERSION. Majors 1 (up to 1.2; a
 * consumer may ask for 1.0) and 2 (up to 2.1).
 */
bool adapter_negotiate(NDK_VERSION wanted, const struct options *options, NDK_VERSION *runs);

void adapter_info_fill(NDK_ADAPTER_INFO *info, const struct options *options, NDK_VERSION runs);

/* The size protocol of NdkQueryAdapterInfo: how many octets go into a buffer of `size`; 0: too
 * small. Major 1 also takes the older structure, which ends before RdmaTechnology. */
ULONG adapter_info_octets(NDK_VERSION runs, ULONG size);

#endif
