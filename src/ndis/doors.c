// SPDX-License-Identifier: MIT
/* Opening by index, whoever serves it. See registry.h. No state. */
#include "ndis/registry.h"
#include "ndis/soft_miniport.h"

NTSTATUS ndis_open_adapter(NET_IFINDEX index, NDK_VERSION version, NDK_ADAPTER **out, char *error,
                           size_t size)
{
    NTSTATUS status = soft_miniport_bring_up(index, error, size);

    if (status != STATUS_SUCCESS)
        return status;
    return ndis_registry_open(index, version, out, error, size);
}
