// SPDX-License-Identifier: MIT
/*
 * The sweep over what two ends do with each other: connecting, data in every kind of request,
 * rejecting, disconnecting, closing. The allocation that fails may be on either side, on any
 * thread: the connection may be lost then, but every request completes once, every close ends, and
 * nothing is left. Nobody waits for a timer of the other side to find out.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "sweep.h"

#define SIZE    (256u << 10)
#define CTX     ((void *)(uintptr_t)7)
#define OPTIONS "completion=placed,fpdu_max=1400"
#define LOST    STATUS_INTERNAL_ERROR /* of an act: the connection did not survive */

/* ---- connecting ----------------------------------------------------------------------------- */

static void setup_ends(struct world *w)
{
    end_open(&w->bed.pair.server, OPTIONS);
    end_open(&w->bed.pair.client, OPTIONS);
    listen_on(w->bed.pair.server.adapter, "127.0.0.1", &w->bed.pair.listening);
}

static void teardown_ends(struct world *w)
{
    pair_close(&w->bed.pair);
}

static NTSTATUS create_connector(struct world *w)
{
    struct end *c = &w->bed.pair.client;
    struct wait wait;
    NDK_CONNECTOR *k = NULL;
    NTSTATUS returned, status;

    wait_init(&wait);
    returned = c->adapter->Dispatch->NdkCreateConnector(c->adapter, wait_create, &wait, &k);
    status = wait_end(&wait, returned);
    if (status == STATUS_SUCCESS)
        c->connector = returned == STATUS_PENDING ? (NDK_CONNECTOR *)(void *)wait.object : k;
    return status;
}

struct attempt {
    struct wait connect, accept, complete;
    NTSTATUS connecting, accepting, completing;
};

static void start_connect(struct world *w, struct attempt *a)
{
    struct end *c = &w->bed.pair.client;
    struct listening *l = &w->bed.pair.listening;
    SOCKADDR_INET local = local_of(l);

    wait_init(&a->connect);
    a->connecting = c->connector->Dispatch->NdkConnect(
        c->connector, c->qp, (PSOCKADDR)&local, l->address_length, (PSOCKADDR)&l->address,
        l->address_length, 8, 8, (PVOID) "abc", 3, wait_request, &a->connect);
}

/* A connect or accept that was answered by now; an answer through the callback counts too. */
static bool answered(const struct wait *wait, NTSTATUS returned)
{
    return returned != STATUS_PENDING || atomic_load(&wait->calls);
}

/* Waits until there is an incoming connector or the connect has been answered. */
static NDK_CONNECTOR *incoming(struct world *w, struct attempt *a)
{
    struct listening *l = &w->bed.pair.listening;

    wait_until(atomic_load(&l->events) > w->rounds || answered(&a->connect, a->connecting),
               "a connect event or the answer of the connect");
    if (atomic_load(&l->events) == w->rounds)
        return NULL;
    w->rounds = atomic_load(&l->events);
    return l->incoming;
}

/* Accepts. If that fails at once the peer learns of it by our close. */
static void accept_it(struct world *w, struct attempt *a)
{
    struct end *s = &w->bed.pair.server;

    wait_init(&a->accept);
    if (w->plain)
        a->accepting =
            s->connector->Dispatch->NdkAccept(s->connector, s->qp, 8, 8, (PVOID) "defg", 4,
                                              end_disconnected_plain, s, wait_request, &a->accept);
    else
        a->accepting =
            s->connector->Dispatch->NdkAcceptEx(s->connector, s->qp, 8, 8, (PVOID) "defg", 4,
                                                end_disconnected, s, wait_request, &a->accept);
    wait_until(answered(&a->connect, a->connecting) || answered(&a->accept, a->accepting),
               "the answer of the connect or of the accept");
    if (answered(&a->accept, a->accepting) &&
        wait_end(&a->accept, a->accepting) != STATUS_SUCCESS) {
        CLOSE(s->connector, NdkCloseConnector);
        s->connector = NULL;
    }
}

static NTSTATUS complete_it(struct world *w, struct attempt *a)
{
    struct end *c = &w->bed.pair.client;

    wait_init(&a->complete);
    if (w->plain)
        a->completing = c->connector->Dispatch->NdkCompleteConnect(
            c->connector, end_disconnected_plain, c, wait_request, &a->complete);
    else
        a->completing = c->connector->Dispatch->NdkCompleteConnectEx(c->connector, end_disconnected,
                                                                     c, wait_request, &a->complete);
    return wait_end(&a->complete, a->completing);
}

static void lose(struct world *w)
{
    struct end *c = &w->bed.pair.client, *s = &w->bed.pair.server;

    if (c->connector)
        CLOSE(c->connector, NdkCloseConnector);
    if (s->connector)
        CLOSE(s->connector, NdkCloseConnector);
    c->connector = s->connector = NULL;
}

static NTSTATUS connect_act(struct world *w)
{
    struct end *c = &w->bed.pair.client, *s = &w->bed.pair.server;
    struct attempt a;
    NTSTATUS status = create_connector(w);

    if (status != STATUS_SUCCESS)
        return status;
    start_connect(w, &a);
    s->connector = incoming(w, &a);
    a.accepting = STATUS_SUCCESS;
    if (s->connector)
        accept_it(w, &a);
    status = wait_end(&a.connect, a.connecting);
    if (status == STATUS_SUCCESS) {
        wait_init(&a.complete);
        status = complete_it(w, &a);
    }
    if (status != STATUS_SUCCESS) { /* the server's accept is answered by our close */
        CLOSE(c->connector, NdkCloseConnector);
        c->connector = NULL;
    }
    if (s->connector && wait_end(&a.accept, a.accepting) != STATUS_SUCCESS &&
        status == STATUS_SUCCESS)
        status = LOST;
    if (status != STATUS_SUCCESS)
        lose(w);
    return status;
}

/* With the calls of NDKPI 1.1. */
static NTSTATUS connect_plain_act(struct world *w)
{
    w->plain = true;
    return connect_act(w);
}

static NTSTATUS reject_act(struct world *w)
{
    struct end *c = &w->bed.pair.client, *s = &w->bed.pair.server;
    struct attempt a;
    NTSTATUS rejected = STATUS_SUCCESS, status = create_connector(w);

    if (status != STATUS_SUCCESS)
        return status;
    start_connect(w, &a);
    s->connector = incoming(w, &a);
    if (s->connector) {
        rejected = s->connector->Dispatch->NdkReject(s->connector, (PVOID) "no", 2);
        CLOSE(s->connector, NdkCloseConnector);
        s->connector = NULL;
    }
    status = wait_end(&a.connect, a.connecting);
    CLOSE(c->connector, NdkCloseConnector);
    c->connector = NULL;
    if (rejected != STATUS_SUCCESS)
        return rejected;
    return status == STATUS_CONNECTION_REFUSED ? STATUS_SUCCESS : status;
}

/* ---- data ----------------------------------------------------------------------------------- */

static void setup_data(struct world *w)
{
    bed_open(&w->bed, OPTIONS, SIZE, ALL_RIGHTS);
    for (unsigned i = 0; i < 4; i++)
        post_receive(&w->bed.pair.server, &w->bed.server, SIZE, CTX);
}

static void teardown_data(struct world *w)
{
    bed_close(&w->bed);
}

/* All `count` requests of this queue complete. */
static bool all_succeed(struct queue *queue, unsigned count)
{
    bool succeeded = true;

    while (count--)
        succeeded &= queue_next(queue).Status == STATUS_SUCCESS;
    return succeeded;
}

/* After a post that was answered with `status`, count requests are on their way. */
static NTSTATUS data_end(struct world *w, NTSTATUS status, unsigned count)
{
    if (!all_succeed(&w->bed.pair.client.initiator, count))
        return LOST;
    return status;
}

static NTSTATUS sends_act(struct world *w)
{
    struct end *c = &w->bed.pair.client;
    static const ULONG sizes[] = {0, 64, 5000, SIZE};
    NTSTATUS status = STATUS_SUCCESS;
    unsigned i;

    for (i = 0; i < 4 && status == STATUS_SUCCESS; i++)
        status = post_send(c, &w->bed.client, sizes[i], i < 3 ? NDK_OP_FLAG_DEFER : 0, CTX);
    return data_end(w, status, status == STATUS_SUCCESS ? i : i - 1);
}

static NTSTATUS writes_act(struct world *w)
{
    struct end *c = &w->bed.pair.client;
    NTSTATUS status = STATUS_SUCCESS;
    unsigned i;

    for (i = 0; i < 8 && status == STATUS_SUCCESS; i++)
        status = post_write(c, &w->bed.client, i % 2 ? 100 : SIZE,
                            (UINT64)(uintptr_t)w->bed.server.data, w->bed.server.remote, 0, CTX);
    return data_end(w, status, status == STATUS_SUCCESS ? i : i - 1);
}

static NTSTATUS reads_act(struct world *w)
{
    struct end *c = &w->bed.pair.client;
    NTSTATUS status = STATUS_SUCCESS;
    unsigned i;

    for (i = 0; i < 8 && status == STATUS_SUCCESS; i++)
        status = post_read(c, &w->bed.client, i % 2 ? 100 : SIZE,
                           (UINT64)(uintptr_t)w->bed.server.data, w->bed.server.remote, 0, CTX);
    return data_end(w, status, status == STATUS_SUCCESS ? i : i - 1);
}

/* ---- endings -------------------------------------------------------------------------------- */

static NTSTATUS disconnect(struct end *end)
{
    struct wait wait;

    wait_init(&wait);
    return wait_end(&wait,
                    end->connector->Dispatch->NdkDisconnect(end->connector, wait_request, &wait));
}

/* The server answers the client's disconnect; if it cannot, it closes. */
static NTSTATUS disconnect_act(struct world *w)
{
    struct end *c = &w->bed.pair.client, *s = &w->bed.pair.server;
    struct wait wait;
    NTSTATUS returned, status;

    wait_init(&wait);
    returned = c->connector->Dispatch->NdkDisconnect(c->connector, wait_request, &wait);
    wait_until(atomic_load(&s->disconnects) || answered(&wait, returned),
               "the server's disconnect event or the answer of the disconnect");
    if (!atomic_load(&s->disconnects))
        return wait_end(&wait, returned);
    if (disconnect(s) != STATUS_SUCCESS) {
        CLOSE(s->connector, NdkCloseConnector);
        s->connector = NULL;
    }
    status = wait_end(&wait, returned);
    return status;
}

static void setup_pair(struct world *w)
{
    struct end *s = &w->bed.pair.server;

    pair_open(&w->bed.pair, "127.0.0.1", OPTIONS, OPTIONS);
    for (unsigned i = 0; i < 4; i++)
        s->qp->Dispatch->NdkReceive(s->qp, CTX, NULL, 0);
}

/* A close cannot fail, whatever memory is missing. */
static NTSTATUS close_act(struct world *w)
{
    pair_close(&w->bed.pair);
    return STATUS_SUCCESS;
}

static void nothing(struct world *w)
{
    (void)w;
}

/* ---- the sweeps ----------------------------------------------------------------------------- */

static const struct scenario scenarios[] = {
    {"connect, accept, complete connect",
     setup_ends,
     connect_act,
     lose,
     teardown_ends,
     true,
     0,
     {STATUS_CONNECTION_REFUSED, STATUS_CONNECTION_ABORTED, LOST}},
    {"connect, accept, complete connect of NDKPI 1.1",
     setup_ends,
     connect_plain_act,
     lose,
     teardown_ends,
     true,
     0,
     {STATUS_CONNECTION_REFUSED, STATUS_CONNECTION_ABORTED, LOST}},
    {"connect, reject",
     setup_ends,
     reject_act,
     NULL,
     teardown_ends,
     false,
     0,
     {STATUS_CONNECTION_ABORTED}},
    {"Sends in a chain", setup_data, sends_act, NULL, teardown_data, true, 60, {LOST}},
    {"Writes", setup_data, writes_act, NULL, teardown_data, true, 60, {LOST}},
    {"Reads", setup_data, reads_act, NULL, teardown_data, true, 60, {LOST}},
    {"NdkDisconnect",
     setup_data,
     disconnect_act,
     NULL,
     teardown_data,
     true,
     0,
     {STATUS_CONNECTION_ABORTED}},
    {"every close", setup_pair, close_act, NULL, nothing, true, 0, {0}},
};

static void every_exchange(void **state)
{
    (void)state;
    for (unsigned i = 0; i < sizeof scenarios / sizeof scenarios[0]; i++)
        sweep(&scenarios[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {BOTH_MODES(every_exchange)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
