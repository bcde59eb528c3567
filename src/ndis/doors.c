// SPDX-License-Identifier: MIT
/*
 * By index, whoever serves it: the soft miniport is asked to bring up its instance first. See
 * registry.h. No state.
 */
#include <string.h>

#include "ndis/registry.h"
#include "ndis/soft_miniport.h"

NTSTATUS ndis_open_adapter_with(NET_IFINDEX index, NDK_VERSION version, const char *options,
                                NDK_ADAPTER **out, char *error, size_t size)
{
    NTSTATUS status = soft_miniport_bring_up(index, error, size);

    if (status != STATUS_SUCCESS)
        return status;
    return ndis_registry_open(index, version, options, out, error, size);
}

NTSTATUS ndis_open_adapter(NET_IFINDEX index, NDK_VERSION version, NDK_ADAPTER **out, char *error,
                           size_t size)
{
    return ndis_open_adapter_with(index, version, NULL, out, error, size);
}

NTSTATUS ndis_oid_request(NET_IFINDEX index, NDIS_REQUEST_TYPE type, NDIS_OID oid, void *buffer,
                          ULONG length, ULONG *bytes, char *error, size_t size)
{
    NTSTATUS status = soft_miniport_bring_up(index, error, size);

    if (bytes)
        *bytes = 0;
    if (status != STATUS_SUCCESS)
        return status;
    return ndis_registry_oid(index, type, oid, buffer, length, bytes, error, size);
}

NTSTATUS ndis_interface_state(NET_IFINDEX index, struct ndis_state *out, char *error, size_t size)
{
    NTSTATUS status = soft_miniport_bring_up(index, error, size);

    if (status != STATUS_SUCCESS)
        return status;
    return ndis_registry_state(index, out, error, size);
}

NTSTATUS ndis_interface_set_state(NET_IFINDEX index, bool enable, char *error, size_t size)
{
    NTSTATUS status = soft_miniport_bring_up(index, error, size);

    if (status != STATUS_SUCCESS)
        return status;
    return ndis_registry_set_state(index, enable, error, size);
}
