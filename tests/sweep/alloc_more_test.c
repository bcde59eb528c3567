// SPDX-License-Identifier: MIT
/*
 * The sweep over memory windows, what changes a CQ, and connecting over a shared endpoint. In modes
 * never and always.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "shared.h"
#include "sweep.h"
#include "windows.h"

#define SIZE (16u * 1024)
#define CTX  ((void *)(uintptr_t)7)
#define LOST STATUS_INTERNAL_ERROR /* of an act: the connection did not survive */

static void setup_end(struct world *w)
{
    end_open(&w->end, NULL);
}

static void teardown_end(struct world *w)
{
    end_close(&w->end);
}

/* ---- windows -------------------------------------------------------------------------------- */

static NTSTATUS window_act(struct world *w)
{
    NDK_PD *pd = w->end.pd;
    NDK_MW *mw = NULL;
    struct wait wait;
    NTSTATUS returned, status;

    wait_init(&wait);
    returned = pd->Dispatch->NdkCreateMw(pd, wait_create, &wait, &mw);
    status = wait_end(&wait, returned);
    if (status == STATUS_SUCCESS)
        w->object =
            returned == STATUS_PENDING ? wait.object : (NDK_OBJECT_HEADER *)(void *)&mw->Header;
    return status;
}

static void window_undo(struct world *w)
{
    CLOSE((NDK_MW *)(void *)w->object, NdkCloseMw);
    w->object = NULL;
}

static NDK_MW *window_of(struct world *w)
{
    return (NDK_MW *)(void *)w->object;
}

static void bind_setup(struct world *w)
{
    bed_open(&w->bed, NULL, SIZE, ALL_RIGHTS);
    w->object = &window_open(w->bed.pair.client.pd)->Header;
}

static void bind_teardown(struct world *w)
{
    window_undo(w);
    bed_close(&w->bed);
}

/* The completion of a post that succeeded. */
static NTSTATUS posted(struct world *w, NTSTATUS status)
{
    return status == STATUS_SUCCESS ? queue_next(&w->bed.pair.client.initiator).Status : status;
}

static NTSTATUS bind_act(struct world *w)
{
    return posted(w, window_post(&w->bed.pair.client, window_of(w), &w->bed.client, 16, 100,
                                 REMOTE_BOTH, CTX));
}

static void bind_undo(struct world *w)
{
    window_invalidate(&w->bed.pair.client, window_of(w));
}

static void bound_setup(struct world *w)
{
    bind_setup(w);
    window_bind(&w->bed.pair.client, window_of(w), &w->bed.client, 16, 100, REMOTE_BOTH);
}

static NTSTATUS invalidate_act(struct world *w)
{
    return posted(w, window_post_invalidate(&w->bed.pair.client, window_of(w), 0, CTX));
}

/* The peer's Send names the window. An allocation may be one of the server's. */
static NTSTATUS remote_act(struct world *w)
{
    struct end *c = &w->bed.pair.client, *s = &w->bed.pair.server;
    UINT32 token = window_token(window_of(w));
    NTSTATUS status = c->qp->Dispatch->NdkReceive(c->qp, CTX, NULL, 0);

    if (status != STATUS_SUCCESS)
        return status;
    status = post_send_invalidate(s, 0, token, CTX);
    if (status != STATUS_SUCCESS)
        return status;
    if (queue_next(&s->initiator).Status != STATUS_SUCCESS)
        return LOST;
    return queue_next(&c->receive).Status == STATUS_SUCCESS ? STATUS_SUCCESS : LOST;
}

/* ---- completion queues ---------------------------------------------------------------------- */

static NTSTATUS resize(struct world *w, ULONG depth)
{
    NDK_CQ *cq = w->end.receive.cq;
    struct wait wait;

    wait_init(&wait);
    return wait_end(&wait, cq->Dispatch->NdkResizeCq(cq, depth, wait_request, &wait));
}

static NTSTATUS grow_act(struct world *w)
{
    return resize(w, 5000);
}

static void grow_undo(struct world *w)
{
    if (resize(w, 4 * END_DEPTH) != STATUS_SUCCESS)
        test_fail("NdkResizeCq, back");
}

static void grown_setup(struct world *w)
{
    setup_end(w);
    if (grow_act(w) != STATUS_SUCCESS)
        test_fail("NdkResizeCq");
}

static NTSTATUS shrink_act(struct world *w)
{
    return resize(w, 16);
}

static NTSTATUS moderate_act(struct world *w)
{
    NDK_CQ *cq = w->end.receive.cq;

    return cq->Dispatch->NdkControlCqInterruptModeration(cq, 1000, 8);
}

/* ---- a refusal ------------------------------------------------------------------------------ */

/* An older sentence of the same object. */
static void refused_setup(struct world *w)
{
    NDK_ADAPTER *a;
    NDK_ADAPTER_INFO info;
    ULONG size = 1;

    setup_end(w);
    a = w->end.adapter;
    if (a->Dispatch->NdkQueryAdapterInfo(a, &info, &size) == STATUS_SUCCESS)
        test_fail("NdkQueryAdapterInfo took a small buffer");
}

/* Without memory for its sentence the status is what it was, and the older one is gone. */
static NTSTATUS refused_act(struct world *w)
{
    NDK_ADAPTER *a = w->end.adapter;
    struct wait wait;
    NDK_CQ *cq = NULL;
    NTSTATUS status;
    char text[400];

    wait_init(&wait);
    status =
        wait_end(&wait, a->Dispatch->NdkCreateCq(a, 0, NULL, NULL, NULL, wait_create, &wait, &cq));
    softndk_reason(&a->Header, text, sizeof text);
    if (!strstr(text, "NdkCreateCq") && !strstr(text, "no memory"))
        test_fail("the reason of another call: %s", text);
    return status == STATUS_INVALID_PARAMETER ? STATUS_SUCCESS : status;
}

/* ---- over a shared endpoint ----------------------------------------------------------------- */

static void setup_shared(struct world *w)
{
    SOCKADDR_INET local;

    end_open(&w->bed.pair.server, NULL);
    end_open(&w->bed.pair.client, NULL);
    listen_on(w->bed.pair.server.adapter, "127.0.0.1", &w->bed.pair.listening);
    local = local_of(&w->bed.pair.listening);
    w->object = &make_shared(w->bed.pair.client.adapter, &local)->Header;
    w->bed.pair.client.connector = make_connector(w->bed.pair.client.adapter);
}

static void teardown_shared(struct world *w)
{
    struct end *c = &w->bed.pair.client;

    CLOSE(c->connector, NdkCloseConnector);
    c->connector = NULL;
    CLOSE((NDK_SHARED_ENDPOINT *)(void *)w->object, NdkCloseSharedEndpoint);
    pair_close(&w->bed.pair);
}

/* The consumer there refuses, so that the attempt ends with no more than itself. */
static NTSTATUS shared_act(struct world *w)
{
    struct listening *l = &w->bed.pair.listening;
    struct end *c = &w->bed.pair.client;
    NDK_CONNECTOR *incoming;
    struct call call;
    NTSTATUS status;

    dial_over(c->connector, c->qp, (NDK_SHARED_ENDPOINT *)(void *)w->object, &l->address, &call);
    wait_until(atomic_load(&l->events) > w->rounds || call.returned != STATUS_PENDING ||
                   atomic_load(&call.wait.calls),
               "a connect event, or the answer of the connect");
    if (atomic_load(&l->events) > w->rounds) {
        w->rounds = atomic_load(&l->events);
        incoming = l->incoming;
        (void)incoming->Dispatch->NdkReject(incoming, NULL, 0);
        CLOSE(incoming, NdkCloseConnector); /* refuses, too, if that could not */
    }
    status = ended(&call);
    return status == STATUS_CONNECTION_REFUSED ? STATUS_SUCCESS : status;
}

/* ---- the sweeps ----------------------------------------------------------------------------- */

static const struct scenario scenarios[] = {
    {"NdkCreateMw", setup_end, window_act, window_undo, teardown_end, false, 0, {0}},
    {"NdkBind", bind_setup, bind_act, bind_undo, bind_teardown, false, 0, {0}},
    {"NdkInvalidate, window", bound_setup, invalidate_act, NULL, bind_teardown, false, 0, {0}},
    {"NdkSendAndInvalidate", bound_setup, remote_act, NULL, bind_teardown, true, 0, {LOST}},
    {"NdkResizeCq, growing", setup_end, grow_act, grow_undo, teardown_end, false, 0, {0}},
    {"NdkResizeCq, shrinking", grown_setup, shrink_act, NULL, teardown_end, false, 0, {0}},
    {"NdkControlCqInterruptModeration", setup_end, moderate_act, NULL, teardown_end, false, 0, {0}},
    {"a refusal's sentence", refused_setup, refused_act, NULL, teardown_end, false, 0, {0}},
    {"NdkConnectWithSharedEndpoint",
     setup_shared,
     shared_act,
     NULL,
     teardown_shared,
     true,
     0,
     {STATUS_CONNECTION_ABORTED}},
};

static void every_call(void **state)
{
    (void)state;
    for (unsigned i = 0; i < sizeof scenarios / sizeof scenarios[0]; i++)
        sweep(&scenarios[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {BOTH_MODES(every_call)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
