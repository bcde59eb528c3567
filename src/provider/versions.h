// SPDX-License-Identifier: MIT
/*
 * What an adapter that runs an older version of NDKPI does not have. Dispatch tables grow at their
 * tail: NdkGetCqResultsEx and NdkSendAndInvalidate came with 1.2, NdkCompleteConnectEx and
 * NdkAcceptEx with 2.1; before, they lie beyond the table, and what a consumer finds there is
 * nobody's function. Here it finds one that reports the misuse and does nothing.
 *
 * Flags: NDK_OP_FLAG_DEFER came with 1.2 and is no flag before it; a Read's LOCAL_INVALIDATE is
 * ignored by an adapter that does not advertise it, as documented.
 *
 * Called by the object core and the queue pair. Tables are made once a process; no lock.
 */
#ifndef SOFTNDK_PROVIDER_VERSIONS_H
#define SOFTNDK_PROVIDER_VERSIONS_H

#include <ndkpi.h>
#include <stdbool.h>

static inline bool version_is_at_least(NDK_VERSION runs, unsigned major, unsigned minor)
{
    return runs.Major > major || (runs.Major == major && runs.Minor >= minor);
}

/* The table that an object of this type has with this version; newest: that of the last one. */
const void *version_dispatch(NDK_OBJECT_TYPE type, NDK_VERSION runs, const void *newest);

#endif
