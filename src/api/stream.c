// SPDX-License-Identifier: MIT
/*
 * softndk_stream(): what a queue pair's connection is like on the wire. The queue pair's lock keeps
 * the connection until it is referenced; the connection's own keeps the descriptor while TCP is
 * asked.
 */
#include <ntstatus.h>
#include <softndk.h>

#include "provider/qp.h"

static struct conn *conn_of(struct qp *qp)
{
    struct conn *conn;

    os_mutex_lock(&qp->lock);
    conn = atomic_load(&qp->conn);
    if (conn)
        conn_ref(conn);
    os_mutex_unlock(&qp->lock);
    return conn;
}

NTSTATUS softndk_stream(const NDK_QP *ndk, struct softndk_stream *out)
{
    struct conn_stream stream;
    struct conn *conn;
    bool known;

    if (!ndk || !out || ndk->Header.ObjectType != NdkObjectTypeQp)
        return STATUS_INVALID_PARAMETER;
    conn = conn_of(qp_from((NDK_QP *)(ULONG_PTR)ndk));
    if (!conn)
        return STATUS_CONNECTION_INVALID;
    known = conn_stream(conn, &stream);
    conn_unref(conn);
    if (!known)
        return STATUS_CONNECTION_INVALID;
    *out = (struct softndk_stream){.fpdu_payload = stream.fpdu_payload,
                                   .crc = stream.crc,
                                   .mpa_revision = stream.mpa_revision};
    return STATUS_SUCCESS;
}
