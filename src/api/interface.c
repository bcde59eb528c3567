// SPDX-License-Identifier: MIT
/* Interfaces at run time, OIDs, providers: see softndk.h. Thin, over ndis/registry.h. No state. */
#include "api/api.h"

#include <string.h>

#include "ndis/registry.h"

static NTSTATUS told(NTSTATUS status, const char *text)
{
    if (status != STATUS_SUCCESS)
        (void)api_failed(status, "%s", text);
    return status;
}

NTSTATUS softndk_interface_state(ULONG index, struct softndk_interface_state *out)
{
    struct ndis_state state;
    char text[1024] = "";
    NTSTATUS status;

    api_begin();
    if (!out)
        return api_failed(STATUS_INVALID_PARAMETER, "no place for the state: out is NULL");
    status = ndis_interface_state(index, &state, text, sizeof text);
    if (status != STATUS_SUCCESS)
        return told(status, text);
    memset(out, 0, sizeof *out);
    out->enabled = state.enabled;
    out->allowed = state.allowed;
    out->opens = state.opens;
    return STATUS_SUCCESS;
}

static NTSTATUS set_state(ULONG index, bool enable)
{
    char text[1024] = "";

    api_begin();
    return told(ndis_interface_set_state(index, enable, text, sizeof text), text);
}

NTSTATUS softndk_interface_enable(ULONG index)
{
    return set_state(index, true);
}

NTSTATUS softndk_interface_disable(ULONG index)
{
    return set_state(index, false);
}

static NTSTATUS request(ULONG index, NDIS_REQUEST_TYPE type, ULONG oid, void *buffer, ULONG length,
                        ULONG *bytes)
{
    char text[1024] = "";

    api_begin();
    if (length && !buffer)
        return api_failed(STATUS_INVALID_PARAMETER, "no buffer, and its length is %u",
                          (unsigned)length);
    return told(ndis_oid_request(index, type, oid, buffer, length, bytes, text, sizeof text), text);
}

NTSTATUS softndk_oid_query(ULONG index, ULONG oid, void *buffer, ULONG length, ULONG *bytes)
{
    return request(index, NdisRequestQueryInformation, oid, buffer, length, bytes);
}

NTSTATUS softndk_oid_set(ULONG index, ULONG oid, void *buffer, ULONG length, ULONG *bytes)
{
    return request(index, NdisRequestSetInformation, oid, buffer, length, bytes);
}

NTSTATUS softndk_provider_start(PVOID driver, ULONG index, PVOID *instance)
{
    NDIS_HANDLE made;
    NTSTATUS status;

    api_begin();
    if (!driver || !instance || !index)
        return api_failed(STATUS_INVALID_PARAMETER,
                          "no handle of a driver, no index, or no place for the instance");
    status = ndis_adapter_add(driver, index, &made);
    if (status == STATUS_OBJECT_NAME_COLLISION)
        return api_failed(status, "interface %u: a provider serves it already", (unsigned)index);
    if (status != STATUS_SUCCESS)
        return api_failed(status, "interface %u: the provider's instance does not come up",
                          (unsigned)index);
    *instance = made;
    return STATUS_SUCCESS;
}

void softndk_provider_stop(PVOID instance)
{
    if (instance)
        ndis_adapter_remove(instance);
}
