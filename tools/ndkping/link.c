// SPDX-License-Identifier: MIT
/*
 * See link.h: the objects of one connection, and its beginning and end. The data path is in
 * link_data.c.
 *
 * Requests that must also end when the program stops complete through the link itself and not
 * through a struct tool_wait: the link outlives them, whoever wakes its thread.
 */
#include "link.h"

#include <stdlib.h>
#include <string.h>

#include "common/tool_args.h"
#include "link_internal.h"

#define STOP_GRACE_MS 2000 /* how long a stopped program waits for its peer's disconnect */

static VOID on_disconnect_ex(PVOID context, ULONG reason)
{
    struct link *link = context;

    atomic_store(&link->reason, reason);
    atomic_store(&link->disconnected, true);
    KeSetEvent(&link->wake, IO_NO_INCREMENT, FALSE);
}

static VOID on_disconnect(PVOID context)
{
    on_disconnect_ex(context, 0);
}

static VOID on_request(PVOID context, NTSTATUS status)
{
    struct link *link = context;

    link->request_status = status;
    atomic_store(&link->request_done, true);
    KeSetEvent(&link->wake, IO_NO_INCREMENT, FALSE);
}

/* ---- objects ---- */

bool link_open(struct link *link, NDK_ADAPTER *adapter, NDK_CONNECTOR *connector, ULONG receives,
               ULONG requests)
{
    memset(link, 0, sizeof(*link));
    link->adapter = adapter;
    link->connector = connector;
    KeInitializeEvent(&link->wake, SynchronizationEvent, FALSE);
    pthread_mutex_init(&link->lock, NULL);
    tool_stop_watch(&link->stop, &link->wake);
    return tool_create_cq(adapter, receives + requests, link_notified, link, &link->cq) &&
           tool_create_pd(adapter, &link->pd) &&
           tool_create_qp(link->pd, link->cq, receives, requests, &link->qp) &&
           (connector || tool_create_connector(adapter, &link->connector));
}

static void close_connector(struct link *link)
{
    NDK_CONNECTOR *connector = link->connector;

    link->connector = NULL;
    if (connector)
        tool_close(&connector->Header, connector->Dispatch->NdkCloseConnector);
}

static void close_pair(struct link *link)
{
    NDK_QP *qp = link->qp;

    close_connector(link);
    link->qp = NULL;
    if (qp)
        tool_close(&qp->Header, qp->Dispatch->NdkCloseQp);
}

void link_close(struct link *link)
{
    NDK_RESULT_EX result;

    close_pair(link);
    if (link->cq) {
        pthread_mutex_lock(&link->lock);
        while (link->cq->Dispatch->NdkGetCqResultsEx(link->cq, &result, 1) == 1) {
            /* Flushed requests; nobody waits for them. */
        }
        pthread_mutex_unlock(&link->lock);
        tool_close(&link->cq->Header, link->cq->Dispatch->NdkCloseCq);
    }
    if (link->pd)
        tool_close(&link->pd->Header, link->pd->Dispatch->NdkClosePd);
    tool_stop_unwatch(&link->stop);
    pthread_mutex_destroy(&link->lock);
}

/* ---- connecting ---- */

/* Relative time for KeWaitForSingleObject. */
LARGE_INTEGER link_timeout(unsigned milliseconds)
{
    LARGE_INTEGER timeout;

    timeout.QuadPart = -10000ll * milliseconds;
    return timeout;
}

/*
 * Waits for a request of the connector. When the program is to stop, it gives the peer grace_ms
 * more and then closes the connector, which ends the request.
 */
static enum link_result wait_request(struct link *link, NTSTATUS returned, unsigned grace_ms,
                                     NTSTATUS *status)
{
    LARGE_INTEGER grace = link_timeout(grace_ms);
    NTSTATUS woken = STATUS_SUCCESS;

    *status = returned;
    if (returned != STATUS_PENDING)
        return LINK_GOOD;
    while (!atomic_load(&link->request_done)) {
        bool stopped = tool_stopped() && link->connector;

        if (stopped && (grace_ms == 0 || woken == STATUS_TIMEOUT)) {
            close_connector(link); /* the request is over when this returns */
            continue;
        }
        woken = KeWaitForSingleObject(&link->wake, Executive, KernelMode, FALSE,
                                      stopped ? &grace : NULL);
    }
    *status = link->request_status;
    return link->connector ? LINK_GOOD : LINK_STOPPED;
}

static enum link_result judge_request(struct link *link, const char *call, NTSTATUS returned)
{
    NTSTATUS status;

    if (wait_request(link, returned, 0, &status) == LINK_STOPPED)
        return LINK_STOPPED;
    if (status == STATUS_SUCCESS)
        return LINK_GOOD;
    tool_say("%s: cannot connect", link->peer[0] ? link->peer : "peer");
    tool_report(&link->connector->Header, call, status);
    return LINK_FAILED;
}

static void begin_request(struct link *link)
{
    atomic_store(&link->request_done, false);
}

static bool has_extended(const NDK_CONNECTOR *connector)
{
    NDK_VERSION runs = connector->Header.Version;

    return runs.Major > 2 || (runs.Major == 2 && runs.Minor >= 1);
}

enum link_result link_connect(struct link *link, const SOCKADDR_INET *local, ULONG local_length,
                              const SOCKADDR_INET *peer, ULONG peer_length,
                              const struct link_terms *terms)
{
    NDK_CONNECTOR *connector = link->connector;
    NTSTATUS status;

    softndk_address_to_text((const SOCKADDR *)peer, peer_length, link->peer, sizeof(link->peer));
    begin_request(link);
    status = connector->Dispatch->NdkConnect(connector, link->qp, (PSOCKADDR)local, local_length,
                                             (PSOCKADDR)peer, peer_length, terms->inbound_reads,
                                             terms->outbound_reads, (PVOID)terms->data,
                                             terms->length, on_request, link);
    return judge_request(link, "NdkConnect", status);
}

enum link_result link_complete_connect(struct link *link)
{
    NDK_CONNECTOR *connector = link->connector;
    enum link_result result;
    NTSTATUS status;

    begin_request(link);
    if (has_extended(connector))
        status = connector->Dispatch->NdkCompleteConnectEx(connector, on_disconnect_ex, link,
                                                           on_request, link);
    else
        status = connector->Dispatch->NdkCompleteConnect(connector, on_disconnect, link, on_request,
                                                         link);
    result = judge_request(link, "NdkCompleteConnect", status);
    link->established = result == LINK_GOOD;
    return result;
}

enum link_result link_accept(struct link *link, const struct link_terms *terms)
{
    NDK_CONNECTOR *connector = link->connector;
    enum link_result result;
    NTSTATUS status;

    begin_request(link);
    if (has_extended(connector))
        status = connector->Dispatch->NdkAcceptEx(
            connector, link->qp, terms->inbound_reads, terms->outbound_reads, (PVOID)terms->data,
            terms->length, on_disconnect_ex, link, on_request, link);
    else
        status = connector->Dispatch->NdkAccept(
            connector, link->qp, terms->inbound_reads, terms->outbound_reads, (PVOID)terms->data,
            terms->length, on_disconnect, link, on_request, link);
    result = judge_request(link, "NdkAccept", status);
    link->established = result == LINK_GOOD;
    return result;
}

bool link_private_data(struct link *link, void *data, ULONG size, ULONG *length)
{
    NDK_CONNECTOR *connector = link->connector;
    ULONG container = 0;
    UCHAR *whole = NULL;
    NTSTATUS status;

    /* The size first, then exactly that much: some providers insist. */
    status = connector->Dispatch->NdkGetConnectionData(connector, NULL, NULL, NULL, &container);
    if (status == STATUS_SUCCESS && container > 0) {
        whole = malloc(container);
        if (!whole)
            status = STATUS_INSUFFICIENT_RESOURCES;
        else
            status =
                connector->Dispatch->NdkGetConnectionData(connector, NULL, NULL, whole, &container);
    }
    if (status == STATUS_SUCCESS) {
        *length = container < size ? container : size;
        if (*length > 0)
            memcpy(data, whole, *length);
    } else {
        tool_report(&connector->Header, "NdkGetConnectionData", status);
    }
    free(whole);
    return status == STATUS_SUCCESS;
}

/* ---- ending ---- */

bool link_end(struct link *link, bool tell)
{
    NDK_CONNECTOR *connector = link->connector;
    NTSTATUS status = STATUS_SUCCESS;

    pthread_mutex_lock(&link->lock);
    link->handler = NULL; /* from here on a notification only wakes */
    pthread_mutex_unlock(&link->lock);
    if (link->established && connector) {
        begin_request(link);
        status = connector->Dispatch->NdkDisconnect(connector, on_request, link);
        if (wait_request(link, status, STOP_GRACE_MS, &status) == LINK_GOOD &&
            status != STATUS_SUCCESS && tell)
            tool_report(&connector->Header, "NdkDisconnect", status);
    }
    link->established = false;
    close_pair(link);
    return status == STATUS_SUCCESS;
}

void link_report_lost(struct link *link)
{
    char text[320];

    softndk_reason_text(atomic_load(&link->reason), text, sizeof(text));
    tool_say("%s: connection lost: %s", link->peer, text);
}
