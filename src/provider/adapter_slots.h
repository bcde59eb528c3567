// SPDX-License-Identifier: MIT
/* The adapter's dispatch table. Slots of other rooms stand in their headers. */
#ifndef SOFTNDK_PROVIDER_ADAPTER_SLOTS_H
#define SOFTNDK_PROVIDER_ADAPTER_SLOTS_H

#include <ndkpi.h>

extern const NDK_ADAPTER_DISPATCH adapter_dispatch;

#endif
