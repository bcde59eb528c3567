// SPDX-License-Identifier: MIT
/* See windows.h. */
#include "windows.h"

#include <stdarg.h>
#include <setjmp.h>
#include <string.h>

#include <cmocka.h>

NDK_MW *window_open(NDK_PD *pd)
{
    struct wait w;
    NDK_MW *mw = NULL;
    NTSTATUS status;

    wait_init(&w);
    status = pd->Dispatch->NdkCreateMw(pd, wait_create, &w, &mw);
    expect_call(wait_end(&w, status), STATUS_SUCCESS, "NdkCreateMw", &pd->Header);
    return status == STATUS_PENDING ? (NDK_MW *)(void *)w.object : mw;
}

UINT32 window_token(NDK_MW *mw)
{
    return mw->Dispatch->NdkGetRemoteTokenFromMw(mw);
}

NTSTATUS window_post(struct end *end, NDK_MW *mw, const struct memory *memory, size_t offset,
                     SIZE_T length, ULONG flags, void *context)
{
    return end->qp->Dispatch->NdkBind(end->qp, context, memory->mr, mw,
                                      (PVOID)(uintptr_t)memory_at(memory, offset), length, flags);
}

UINT32 window_bind(struct end *end, NDK_MW *mw, const struct memory *memory, size_t offset,
                   SIZE_T length, ULONG flags)
{
    expect_call(window_post(end, mw, memory, offset, length, flags, mw), STATUS_SUCCESS, "NdkBind",
                &end->qp->Header);
    expect_completion(&end->initiator, "bind", mw, NdkOperationTypeBind, STATUS_SUCCESS);
    return window_token(mw);
}

NTSTATUS window_post_invalidate(struct end *end, NDK_MW *mw, ULONG flags, void *context)
{
    return end->qp->Dispatch->NdkInvalidate(end->qp, context, &mw->Header, flags);
}

void window_invalidate(struct end *end, NDK_MW *mw)
{
    expect_call(window_post_invalidate(end, mw, 0, mw), STATUS_SUCCESS, "NdkInvalidate",
                &end->qp->Header);
    expect_completion(&end->initiator, "invalidate", mw, NdkOperationTypeInvalidate,
                      STATUS_SUCCESS);
}

NTSTATUS memory_deregister(struct memory *memory)
{
    struct wait w;

    wait_init(&w);
    return wait_end(&w, memory->mr->Dispatch->NdkDeregisterMr(memory->mr, wait_request, &w));
}

void memory_register(struct memory *memory, ULONG flags)
{
    struct wait w;

    wait_init(&w);
    expect_call(wait_end(&w, memory->mr->Dispatch->NdkRegisterMr(
                                 memory->mr, memory->mdl, memory->size, flags, wait_request, &w)),
                STATUS_SUCCESS, "NdkRegisterMr", &memory->mr->Header);
    memory->local = memory->mr->Dispatch->NdkGetLocalTokenFromMr(memory->mr);
    memory->remote = memory->mr->Dispatch->NdkGetRemoteTokenFromMr(memory->mr);
}

NTSTATUS post_send_invalidate(struct end *end, ULONG flags, UINT32 token, void *context)
{
    return end->qp->Dispatch->NdkSendAndInvalidate(end->qp, context, NULL, 0, flags, token);
}

void expect_terminated(const char *what, struct end *finder, struct end *other, iwarp_error error)
{
    expect_event(finder, what, REASON_TERMINATE_SENT, error);
    expect_event(other, what, REASON_TERMINATE_RECEIVED, error);
}

static void second_end(const struct end *first, NDK_PD *pd, struct end *out)
{
    struct wait w;
    NTSTATUS status;

    memset(out, 0, sizeof *out);
    out->adapter = first->adapter;
    out->pd = pd;
    KeInitializeEvent(&out->disconnected, NotificationEvent, FALSE);
    make_queue(out->adapter, 4 * END_DEPTH, &out->receive);
    make_queue(out->adapter, 4 * END_DEPTH, &out->initiator);
    wait_init(&w);
    status = pd->Dispatch->NdkCreateQp(pd, out->receive.cq, out->initiator.cq, out, END_DEPTH,
                                       END_DEPTH, 4, 4, 64, wait_create, &w, &out->qp);
    expect_call(wait_end(&w, status), STATUS_SUCCESS, "NdkCreateQp", &pd->Header);
    if (status == STATUS_PENDING)
        out->qp = (NDK_QP *)(void *)w.object;
}

void second_open(const struct bed *bed, NDK_PD *server_pd, struct pair *out)
{
    const struct end *c = &bed->pair.client, *s = &bed->pair.server;

    memset(out, 0, sizeof *out);
    second_end(c, c->pd, &out->client);
    second_end(s, server_pd ? server_pd : s->pd, &out->server);
    listen_on(s->adapter, "127.0.0.1", &out->listening);
    pair_connect(out);
}

void second_close(struct pair *second)
{
    second->client.pd = second->server.pd = NULL; /* the bed's, or the caller's */
    second->client.adapter = second->server.adapter = NULL;
    pair_close(second);
}
