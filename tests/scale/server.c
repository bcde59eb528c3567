// SPDX-License-Identifier: MIT
/*
 * The listening side. A link: QP, receive and accept inside the connect event, the message checked
 * and sent back; when the peer leaves, disconnect and close. See scale.h.
 */
#include "scale.h"

#include "../support/modes.h"

static VOID server_disconnected(PVOID context, NTSTATUS status)
{
    struct link *link = context;

    if (status != STATUS_SUCCESS)
        link_fail(link, "NdkDisconnect", status, &link->connector->Header);
    link_close(link);
}

/* The client left, which it does last. */
static VOID server_left(PVOID context, ULONG reason)
{
    struct link *link = context;
    NDK_CONNECTOR *connector = link->connector;
    NTSTATUS status;

    (void)reason;
    atomic_fetch_add(&link->side->gone, 1);
    status = connector->Dispatch->NdkDisconnect(connector, server_disconnected, link);
    if (status != STATUS_PENDING)
        server_disconnected(link, status);
}

static VOID server_accepted(PVOID context, NTSTATUS status)
{
    struct link *link = context;

    if (status != STATUS_SUCCESS)
        link_fail(link, "NdkAcceptEx", status, &link->connector->Header);
}

static VOID server_has_qp(PVOID context, NTSTATUS status, NDK_OBJECT_HEADER *object)
{
    struct link *link = context;
    NDK_CONNECTOR *connector = link->connector;

    if (status != STATUS_SUCCESS)
        link_fail(link, "NdkCreateQp", status, &link->side->pd->Header);
    link->qp = (NDK_QP *)(void *)object;
    link_post_receive(link);
    status = connector->Dispatch->NdkAcceptEx(connector, link->qp, 1, 1, NULL, 0, server_left, link,
                                              server_accepted, link);
    if (status != STATUS_PENDING)
        server_accepted(link, status);
}

static VOID server_event(PVOID context, NDK_CONNECTOR *connector)
{
    struct server *server = context;
    struct side *side = &server->side;
    unsigned i = atomic_fetch_add(&side->next, 1);
    struct link *link;
    NTSTATUS status;

    if (i >= side->count) {
        struct link none = {.side = side, .index = i};

        link_fail(&none, "one connect event too many", STATUS_UNSUCCESSFUL, NULL);
    }
    link = &side->links[i];
    link->connector = connector;
    status = link_create_qp(link, server_has_qp);
    if (status != STATUS_PENDING)
        server_has_qp(link, status, status == STATUS_SUCCESS ? &link->qp->Header : NULL);
}

static void server_result(struct link *link, const NDK_RESULT_EX *result, bool received)
{
    unsigned index;

    if (result->Status == STATUS_CANCELLED)
        return; /* flushed on the way down */
    if (result->Status != STATUS_SUCCESS)
        link_fail(link, received ? "a receive" : "a send", result->Status, &link->qp->Header);
    if (!received)
        return;
    if (result->BytesTransferred != MESSAGE || !link_check(link_in(link), &index))
        link_fail(link, "a message is not whole", STATUS_DATA_ERROR, NULL);
    link_send(link, link_in(link));
    atomic_fetch_add(&link->side->verified, 1);
}

unsigned server_listen(struct server *server, const char *text)
{
    struct side *side = &server->side;
    SOCKADDR_INET address;
    ULONG length;
    struct wait w;
    NTSTATUS status;

    side->result = server_result;
    wait_init(&w);
    status =
        wait_end(&w, side->adapter->Dispatch->NdkCreateListener(
                         side->adapter, server_event, server, wait_create, &w, &server->listener));
    if (status == STATUS_SUCCESS && w.object)
        server->listener = (NDK_LISTENER *)(void *)w.object;
    if (status != STATUS_SUCCESS)
        link_fail(&side->links[0], "NdkCreateListener", status, &side->adapter->Header);
    if (softndk_address_from_text(text, &address, &length) != STATUS_SUCCESS)
        test_fail("no address: %s", text);
    wait_init(&w);
    status = wait_end(&w, server->listener->Dispatch->NdkListen(
                              server->listener, (PSOCKADDR)&address, length, wait_request, &w));
    if (status != STATUS_SUCCESS)
        link_fail(&side->links[0], "NdkListen", status, &server->listener->Header);
    status = server->listener->Dispatch->NdkGetLocalAddress(server->listener, (PSOCKADDR)&address,
                                                            &length);
    if (status != STATUS_SUCCESS)
        link_fail(&side->links[0], "NdkGetLocalAddress", status, &server->listener->Header);
    return inet_port(&address);
}

void server_unlisten(struct server *server)
{
    CLOSE(server->listener, NdkCloseListener);
    server->listener = NULL;
}
