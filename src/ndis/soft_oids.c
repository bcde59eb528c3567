// SPDX-License-Identifier: MIT
/*
 * See soft_oids.h. The numbers are those of provider/adapter_counters.h, the lists those of
 * provider/adapter_snapshot.h, of every adapter that is open on the interface, whoever opened it.
 *
 * iWARP connections are TCP connections: each item has two entries, the even one with the address
 * that consumers know, the odd one with that of the host's TCP; what else is in an odd entry is
 * left as it was (NDIS side 4.3).
 */
#include "ndis/soft_oids.h"

#include <stdlib.h>
#include <string.h>

#include "base/red.h"
#include "ndis/interfaces.h"
#include "provider/adapter_counters.h"
#include "provider/adapter_snapshot.h"
#include "provider/address.h"

/* Room for need octets? */
static bool has_room(struct _QUERY *q, size_t need)
{
    q->BytesWritten = 0;
    q->BytesNeeded = (UINT)need;
    return q->InformationBuffer &&
           (q->InformationBufferLength >= need || RED("ndis-oid-length-unchecked"));
}

static NDIS_OBJECT_HEADER header(UCHAR revision, size_t size)
{
    NDIS_OBJECT_HEADER h = {NDIS_OBJECT_TYPE_DEFAULT, revision, 0};

    h.Size = (USHORT)(size < MAXUSHORT ? size : MAXUSHORT);
    return h;
}

/* ---- counters ---- */

static NDIS_STATUS statistics(ULONG index, struct _QUERY *q)
{
    NDIS_NDK_STATISTICS_INFO info;
    struct adapter_totals n;

    if (!has_room(q, NDIS_SIZEOF_NDK_STATISTICS_INFO_REVISION_1))
        return NDIS_STATUS_BUFFER_TOO_SHORT;
    (void)adapter_counters_read(index, &n); /* all 0 where nothing was open yet */
    memset(&info, 0, sizeof info);
    info.Header =
        header(NDIS_NDK_STATISTICS_INFO_REVISION_1, NDIS_SIZEOF_NDK_STATISTICS_INFO_REVISION_1);
    info.CounterSet.Connect = n.connect;
    info.CounterSet.Accept = n.accept;
    info.CounterSet.ConnectFailure = n.connect_failure;
    info.CounterSet.ConnectionError = n.connection_error;
    info.CounterSet.ActiveConnection = n.active_connection;
    info.CounterSet.CQError = n.cq_error;
    info.CounterSet.RDMAInOctets = n.in_octets;
    info.CounterSet.RDMAOutOctets = n.out_octets;
    info.CounterSet.RDMAInFrames = n.in_frames;
    info.CounterSet.RDMAOutFrames = n.out_frames;
    memcpy(q->InformationBuffer, &info, sizeof info);
    q->BytesWritten = sizeof info;
    return NDIS_STATUS_SUCCESS;
}

/* ---- lists ---- */

static void put(SOCKADDR_INET *to, const struct os_addr *address)
{
    ULONG length = sizeof *to;

    memset(to, 0, sizeof *to);
    (void)sockaddr_put(address, AF_INET6, (PSOCKADDR)(void *)to, &length);
}

static bool is_connection(const struct adapter_endpoint *e)
{
    return e->kind == ADAPTER_ROW_ESTABLISHED;
}

static bool is_endpoint(const struct adapter_endpoint *e)
{
    return e->kind == ADAPTER_ROW_LISTENER || e->kind == ADAPTER_ROW_SHARED;
}

/* Of the interface, those that are wanted, moved to the front; to be freed. How many, or < 0. */
static ssize_t select_rows(ULONG index, bool (*wanted)(const struct adapter_endpoint *),
                           struct adapter_endpoint **out)
{
    ssize_t n = adapter_snapshot_all(index, out), kept = 0;

    if (n < 0)
        return n;
    for (ssize_t i = 0; i < n; i++)
        if (wanted(&(*out)[i]))
            (*out)[kept++] = (*out)[i];
    return kept;
}

static void fill_connections(NDIS_NDK_CONNECTIONS *to, const struct os_interface *interface,
                             const struct adapter_endpoint *rows, size_t count)
{
    to->Header =
        header(NDIS_NDK_CONNECTIONS_REVISION_1, NDIS_SIZEOF_NDK_CONNECTIONS_REVISION_1(2 * count));
    to->Flags = 0;
    to->Count = (ULONG)(RED("ndis-items-counted") ? count : 2 * count);
    to->NDConnectionsMappedtoTCPConnections = TRUE;
    for (size_t i = 0; i < count; i++) {
        NDIS_NDK_CONNECTION_ENTRY *ndk = &to->Connections[2 * i], *tcp = ndk + 1;
        struct os_addr local = address_ndk_on(interface, &rows[i].local);
        struct os_addr remote = address_ndk_on(interface, &rows[i].remote);

        put(&ndk->Local, &local);
        put(&ndk->Remote, &remote);
        ndk->UserModeOwner = FALSE; /* consumers of NDK are drivers */
        ndk->OwnerPid = 0;
        put(&tcp->Local, &rows[i].local);
        put(&tcp->Remote, &rows[i].remote);
    }
}

static void fill_endpoints(NDIS_NDK_LOCAL_ENDPOINTS *to, const struct os_interface *interface,
                           const struct adapter_endpoint *rows, size_t count)
{
    to->Header = header(NDIS_NDK_LOCAL_ENDPOINTS_REVISION_1,
                        NDIS_SIZEOF_NDK_LOCAL_ENDPOINTS_REVISION_1(2 * count));
    to->Flags = 0;
    to->Count = (ULONG)(2 * count);
    to->NDLocalEndpointsMappedtoTCPLocalEndpoints = TRUE;
    for (size_t i = 0; i < count; i++) {
        NDIS_NDK_LOCAL_ENDPOINT_ENTRY *ndk = &to->LocalEndpoints[2 * i], *tcp = ndk + 1;
        struct os_addr local = address_ndk_on(interface, &rows[i].local);

        put(&ndk->Local, &local);
        ndk->UserModeOwner = FALSE;
        ndk->Listener = rows[i].kind == ADAPTER_ROW_LISTENER || RED("ndis-all-are-listeners");
        ndk->OwnerPid = 0;
        put(&tcp->Local, &rows[i].local);
    }
}

static NDIS_STATUS lists(ULONG index, struct _QUERY *q)
{
    bool connections = q->Oid == OID_NDK_CONNECTIONS;
    struct adapter_endpoint *rows;
    struct os_interface interface;
    ssize_t count = select_rows(index, connections ? is_connection : is_endpoint, &rows);
    NDIS_STATUS status = NDIS_STATUS_SUCCESS;
    size_t need;

    if (count < 0)
        return NDIS_STATUS_RESOURCES;
    need = connections ? NDIS_SIZEOF_NDK_CONNECTIONS_REVISION_1(2 * (size_t)count)
                       : NDIS_SIZEOF_NDK_LOCAL_ENDPOINTS_REVISION_1(2 * (size_t)count);
    /* One that is gone has no addresses that differ from the host's. */
    if (interfaces_find(index, &interface) <= 0)
        interface = (struct os_interface){.index = index, .host_index = index};
    if (!has_room(q, need))
        status = NDIS_STATUS_BUFFER_TOO_SHORT;
    else if (connections)
        fill_connections(q->InformationBuffer, &interface, rows, (size_t)count);
    else
        fill_endpoints(q->InformationBuffer, &interface, rows, (size_t)count);
    if (status == NDIS_STATUS_SUCCESS)
        q->BytesWritten = (UINT)need;
    free(rows);
    return status;
}

NDIS_STATUS soft_oids_query(ULONG index, PNDIS_OID_REQUEST request)
{
    struct _QUERY *q = &request->DATA.QUERY_INFORMATION;

    if (request->RequestType != NdisRequestQueryInformation &&
        request->RequestType != NdisRequestQueryStatistics)
        return NDIS_STATUS_NOT_SUPPORTED;
    switch (q->Oid) {
    case OID_NDK_STATISTICS:
        return statistics(index, q);
    case OID_NDK_CONNECTIONS:
    case OID_NDK_LOCAL_ENDPOINTS:
        return lists(index, q);
    default:
        return NDIS_STATUS_NOT_SUPPORTED;
    }
}
