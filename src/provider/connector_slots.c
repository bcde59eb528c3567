// SPDX-License-Identifier: MIT
/* What a connector can be asked at any time: the peer's private data, read limits, addresses. */
#include <ntstatus.h>
#include <string.h>

#include "base/red.h"
#include "provider/adapter.h"
#include "provider/address.h"
#include "provider/connector.h"

/* As much of the container of `size` octets, `sent` of them from the peer, as there is room for. */
static void data_copy(void *to, ULONG room, const uint8_t *bytes, uint32_t sent, uint32_t size)
{
    uint32_t octets = size < room ? size : room;
    uint32_t real = octets < sent ? octets : sent;

    if (real)
        memcpy(to, bytes, real);
    if (octets > real && !RED("connector-container-not-zeroed"))
        memset((uint8_t *)to + real, 0, octets - real);
}

NTSTATUS connector_get_data(NDK_CONNECTOR *ndk, ULONG *inbound, ULONG *outbound, PVOID data,
                            ULONG *length)
{
    struct connector *k = connector_from(ndk);
    NTSTATUS status = object_injected(&k->object, CALL_GET_CONNECTION_DATA);
    struct os_addr local, peer;
    const struct options *o = &k->object.adapter->options;
    const uint8_t *bytes;
    uint32_t sent, size, in, out;

    if (status != STATUS_SUCCESS)
        return status;
    if (!conn_addresses(k->conn, &local, &peer))
        return object_fail(&k->object, CALL_GET_CONNECTION_DATA, STATUS_CONNECTION_INVALID,
                           "no connect was started, rule NDKPI 13.6");
    conn_limits(k->conn, &in, &out);
    if (inbound)
        *inbound = in;
    if (outbound)
        *outbound = out;
    if (!length)
        return STATUS_SUCCESS;
    sent = conn_private_data(k->conn, &bytes);
    /* Some transports carry private data in a container of their own size. */
    size = sent < o->private_data_container ? o->private_data_container : sent;
    if (!data) {
        if (*length)
            return object_fail(&k->object, CALL_GET_CONNECTION_DATA, STATUS_INVALID_PARAMETER,
                               "pPrivateData is NULL with length %u (need 0 for the size query), "
                               "rule NDKPI 13.6",
                               *length);
        *length = size;
        return RED("size_query_too_small") ? STATUS_BUFFER_TOO_SMALL : STATUS_SUCCESS;
    }
    if (o->private_data_exact && *length > size) {
        *length = 0;
        return STATUS_SUCCESS;
    }
    data_copy(data, *length, bytes, sent, size);
    if (*length < size)
        status = object_fail(&k->object, CALL_GET_CONNECTION_DATA, STATUS_BUFFER_TOO_SMALL,
                             "private data buffer (have %u octets, need %u), rule NDKPI 13.6",
                             *length, size);
    *length = size;
    return status;
}

static NTSTATUS get_address(NDK_CONNECTOR *ndk, enum call call, bool want_peer, PSOCKADDR address,
                            ULONG *length)
{
    struct connector *k = connector_from(ndk);
    NTSTATUS status = object_injected(&k->object, call);
    struct os_addr local, peer;

    if (status != STATUS_SUCCESS)
        return status;
    if (!conn_addresses(k->conn, &local, &peer))
        return object_fail(&k->object, call, STATUS_CONNECTION_INVALID,
                           "no connect was started, rule NDKPI 13.7");
    status = address_put(k->object.adapter,
                         want_peer && !RED("connector-peer-is-local") ? &peer : &local, k->family,
                         address, length);
    if (status != STATUS_SUCCESS)
        object_fail(&k->object, call, status, "address buffer is too small (need %u octets)",
                    length ? *length : 0);
    return status;
}

NTSTATUS connector_get_local(NDK_CONNECTOR *ndk, PSOCKADDR address, ULONG *length)
{
    return get_address(ndk, CALL_GET_ADDRESS, false, address, length);
}

NTSTATUS connector_get_peer(NDK_CONNECTOR *ndk, PSOCKADDR address, ULONG *length)
{
    return get_address(ndk, CALL_GET_PEER_ADDRESS, true, address, length);
}
