// SPDX-License-Identifier: MIT
/*
 * The connecting side. A link: connector and QP are created, connect, complete-connect, a receive
 * and a message; its echo is checked, and the next link starts. On the way down: disconnect, close,
 * the next. See scale.h.
 */
#include "scale.h"

static void link_start(struct side *side);
static void link_stop(struct side *side);

static struct link *next_link(struct side *side)
{
    unsigned i = atomic_fetch_add(&side->next, 1);

    return i < side->count ? &side->links[i] : NULL;
}

/* ---- up ------------------------------------------------------------------------------------- */

/* The other side does not leave before it is told to. */
static VOID client_left(PVOID context, ULONG reason)
{
    struct link *link = context;
    char text[128];

    softndk_reason_text(reason, text, sizeof text);
    if (atomic_load(&link->parts) == 0)
        link_fail(link, text, STATUS_CONNECTION_DISCONNECTED, NULL);
}

static VOID client_complete(PVOID context, NTSTATUS status)
{
    struct link *link = context;
    uint8_t data[MESSAGE];

    if (status != STATUS_SUCCESS)
        link_fail(link, "NdkCompleteConnectEx", status, &link->connector->Header);
    link_post_receive(link);
    link_fill(data, link->index);
    link_send(link, data);
}

static VOID client_connected(PVOID context, NTSTATUS status)
{
    struct link *link = context;
    NDK_CONNECTOR *connector = link->connector;

    if (status != STATUS_SUCCESS)
        link_fail(link, "NdkConnect", status, &connector->Header);
    status = connector->Dispatch->NdkCompleteConnectEx(connector, client_left, link,
                                                       client_complete, link);
    if (status != STATUS_PENDING)
        client_complete(link, status);
}

static VOID client_has_qp(PVOID context, NTSTATUS status, NDK_OBJECT_HEADER *object)
{
    struct link *link = context;
    struct side *side = link->side;
    NDK_CONNECTOR *connector = link->connector;

    if (status != STATUS_SUCCESS)
        link_fail(link, "NdkCreateQp", status, &side->pd->Header);
    link->qp = (NDK_QP *)(void *)object;
    status = connector->Dispatch->NdkConnect(
        connector, link->qp, (PSOCKADDR)&side->local, sizeof side->local.Ipv4,
        (PSOCKADDR)&side->remote, sizeof side->remote.Ipv4, 1, 1, NULL, 0, client_connected, link);
    if (status != STATUS_PENDING)
        client_connected(link, status);
}

static VOID client_has_connector(PVOID context, NTSTATUS status, NDK_OBJECT_HEADER *object)
{
    struct link *link = context;

    if (status != STATUS_SUCCESS)
        link_fail(link, "NdkCreateConnector", status, &link->side->adapter->Header);
    link->connector = (NDK_CONNECTOR *)(void *)object;
    status = link_create_qp(link, client_has_qp);
    if (status != STATUS_PENDING)
        client_has_qp(link, status, status == STATUS_SUCCESS ? &link->qp->Header : NULL);
}

static void link_start(struct side *side)
{
    struct link *link = next_link(side);
    NTSTATUS status;

    if (!link)
        return;
    status = side->adapter->Dispatch->NdkCreateConnector(side->adapter, client_has_connector, link,
                                                         &link->connector);
    if (status != STATUS_PENDING)
        client_has_connector(link, status,
                             status == STATUS_SUCCESS ? &link->connector->Header : NULL);
}

static void client_result(struct link *link, const NDK_RESULT_EX *result, bool received)
{
    unsigned index;

    if (atomic_load(&link->parts) || atomic_load(&link->side->gone) == link->side->count)
        return; /* flushed on the way down */
    if (result->Status != STATUS_SUCCESS)
        link_fail(link, received ? "a receive" : "a send", result->Status, &link->qp->Header);
    if (!received)
        return;
    if (result->BytesTransferred != MESSAGE || !link_check(link_in(link), &index) ||
        index != link->index)
        link_fail(link, "the echo is another's", STATUS_DATA_ERROR, NULL);
    atomic_fetch_add(&link->side->verified, 1);
    link_start(link->side);
}

void client_up(struct side *side)
{
    side->result = client_result;
    for (unsigned i = 0; i < MOST_AT_ONCE; i++)
        link_start(side);
    scale_wait(side, &side->verified, "verified");
}

/* ---- down ----------------------------------------------------------------------------------- */

static VOID client_disconnected(PVOID context, NTSTATUS status)
{
    struct link *link = context;

    if (status != STATUS_SUCCESS)
        link_fail(link, "NdkDisconnect", status, &link->connector->Header);
    atomic_fetch_add(&link->side->gone, 1);
    link_close(link);
    link_stop(link->side);
}

static void link_stop(struct side *side)
{
    struct link *link = next_link(side);
    NTSTATUS status;

    if (!link)
        return;
    atomic_store(&link->parts, 3); /* under way down */
    status = link->connector->Dispatch->NdkDisconnect(link->connector, client_disconnected, link);
    if (status != STATUS_PENDING)
        client_disconnected(link, status);
}

void client_down(struct side *side)
{
    atomic_store(&side->next, 0);
    for (unsigned i = 0; i < MOST_AT_ONCE; i++)
        link_stop(side);
    scale_wait(side, &side->closed, "closed");
}
