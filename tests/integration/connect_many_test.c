// SPDX-License-Identifier: MIT
/*
 * Listeners: many connects to one, in a row and at once; two listeners; accept and peer address
 * inside the connect event; pause and resume; how many undecided connectors there may be.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ends.h"

#define CROWD 16

static const char *mode;

struct call {
    struct wait wait;
    NTSTATUS returned;
};

static NTSTATUS ended(struct call *call)
{
    return wait_end(&call->wait, call->returned);
}

static void dial(struct end *c, const struct listening *listening, struct call *call)
{
    SOCKADDR_INET local = local_of(listening), peer = listening->address;

    if (!c->connector)
        c->connector = make_connector(c->adapter);
    wait_init(&call->wait);
    call->returned = c->connector->Dispatch->NdkConnect(
        c->connector, c->qp, (PSOCKADDR)&local, listening->address_length, (PSOCKADDR)&peer,
        listening->address_length, 4, 4, NULL, 0, wait_request, &call->wait);
    assert_int_equal(call->returned, STATUS_PENDING);
}

static void accept_one(struct end *s, NDK_CONNECTOR *connector, struct call *call)
{
    s->connector = connector;
    wait_init(&call->wait);
    call->returned = connector->Dispatch->NdkAcceptEx(
        connector, s->qp, 4, 4, NULL, 0, end_disconnected, s, wait_request, &call->wait);
}

static void complete(struct end *c, struct call *call)
{
    wait_init(&call->wait);
    call->returned = c->connector->Dispatch->NdkCompleteConnectEx(c->connector, end_disconnected, c,
                                                                  wait_request, &call->wait);
}

/* Refuses the next connect by closing its connector. */
static void close_next(struct listening *listening)
{
    NDK_CONNECTOR *connector = next_incoming(listening);

    CLOSE(connector, NdkCloseConnector);
}

static void expect_alive(struct end *c, struct end *s)
{
    assert_int_equal(s->qp->Dispatch->NdkReceive(s->qp, s, NULL, 0), STATUS_SUCCESS);
    assert_int_equal(c->qp->Dispatch->NdkSend(c->qp, c, NULL, 0, 0), STATUS_SUCCESS);
    assert_int_equal(queue_next(&s->receive).Status, STATUS_SUCCESS);
    assert_int_equal(queue_next(&c->initiator).Status, STATUS_SUCCESS);
}

static SOCKADDR_INET address_from(NDK_CONNECTOR *connector, bool peer)
{
    SOCKADDR_INET address;
    ULONG length = 1;
    const NDK_CONNECTOR_DISPATCH *slot = connector->Dispatch;

    memset(&address, 0, sizeof address);
    assert_int_equal((peer ? slot->NdkGetPeerAddress
                           : slot->NdkGetLocalAddress)(connector, (PSOCKADDR)&address, &length),
                     STATUS_BUFFER_TOO_SMALL);
    assert_int_equal((peer ? slot->NdkGetPeerAddress
                           : slot->NdkGetLocalAddress)(connector, (PSOCKADDR)&address, &length),
                     STATUS_SUCCESS);
    return address;
}

/* ---- inside the connect event --------------------------------------------------------------- */

struct server {
    struct end *ends;
    struct call *calls;
    unsigned count;
    atomic_uint used;
    SOCKADDR_INET peer[CROWD]; /* as seen in the callback */
};

/* Accepts with the next QP. */
static void accept_here(struct listening *listening, NDK_CONNECTOR *connector, void *context)
{
    struct server *server = context;
    unsigned i = atomic_load(&server->used);

    (void)listening;
    if (i == server->count)
        test_fail("more connect events than connects");
    server->peer[i % CROWD] = address_from(connector, true);
    accept_one(&server->ends[i], connector, &server->calls[i]);
    atomic_store(&server->used, i + 1);
}

static void make_qp(struct end *e)
{
    struct wait w;
    NTSTATUS status;

    wait_init(&w);
    status = e->pd->Dispatch->NdkCreateQp(e->pd, e->receive.cq, e->initiator.cq, e, 4, 4, 1, 1, 0,
                                          wait_create, &w, &e->qp);
    assert_int_equal(wait_end(&w, status), STATUS_SUCCESS);
    if (status == STATUS_PENDING)
        e->qp = (NDK_QP *)(void *)w.object;
}

/* An end on the adapter and PD of another. */
static void end_share(struct end *e, const struct end *of)
{
    memset(e, 0, sizeof *e);
    KeInitializeEvent(&e->disconnected, NotificationEvent, FALSE);
    e->pd = of->pd;
    make_queue(of->adapter, 4, &e->receive);
    make_queue(of->adapter, 4, &e->initiator);
    make_qp(e);
}

static void end_unshare(struct end *e)
{
    e->pd = NULL;
    end_close(e);
}

/* Each client talks to the server whose connect event showed its address. */
static void expect_everybody_alive(struct end *client, struct server *s)
{
    unsigned matches = 0;

    for (int c = 0; c < CROWD; c++) {
        SOCKADDR_INET mine = address_from(client[c].connector, false);

        for (int i = 0; i < CROWD; i++)
            if (s->peer[i].Ipv4.sin_port == mine.Ipv4.sin_port) {
                expect_alive(&client[c], &s->ends[i]);
                matches++;
            }
    }
    assert_int_equal(matches, CROWD);
}

/* Sixteen connects at once, each accepted inside its event. */
static void crowd(void **state)
{
    struct end *client = calloc(CROWD, sizeof *client), *server = calloc(CROWD, sizeof *server);
    struct call connect[CROWD], accept[CROWD], done[CROWD];
    struct listening listening;
    struct server s = {.ends = server, .calls = accept, .count = CROWD};

    (void)state;
    assert_non_null(client);
    assert_non_null(server);
    end_open(&server[0], NULL);
    for (int i = 0; i < CROWD; i++) {
        if (i)
            end_share(&server[i], &server[0]);
        end_open(&client[i], NULL);
    }
    listen_on(server[0].adapter, "127.0.0.1", &listening);
    listening.context = &s;
    listening.in_callback = accept_here;
    for (int i = 0; i < CROWD; i++)
        dial(&client[i], &listening, &connect[i]);
    for (int i = 0; i < CROWD; i++)
        assert_int_equal(ended(&connect[i]), STATUS_SUCCESS);
    for (int i = 0; i < CROWD; i++)
        complete(&client[i], &done[i]);
    for (int i = 0; i < CROWD; i++)
        assert_int_equal(ended(&done[i]), STATUS_SUCCESS);
    wait_until(atomic_load(&s.used) == CROWD, "all connect events");
    for (int i = 0; i < CROWD; i++)
        assert_int_equal(ended(&accept[i]), STATUS_SUCCESS);
    expect_everybody_alive(client, &s);
    for (int i = 0; i < CROWD; i++) {
        end_close(&client[i]);
        if (i)
            end_unshare(&server[i]);
    }
    CLOSE(server[0].connector, NdkCloseConnector);
    server[0].connector = NULL;
    CLOSE(listening.listener, NdkCloseListener);
    end_close(&server[0]);
    free(client);
    free(server);
}

/* A hundred (or, in the other modes, a few), one after the other. QPs are new each time: one serves
 * one connection. A close waits for the peer's delayed acknowledgement, some 40 ms. */
static void hundred_in_a_row(void **state)
{
    struct pair p;

    (void)state;
    pair_open(&p, "127.0.0.1", NULL, NULL);
    for (unsigned i = 1; i < (strcmp(mode, "never") ? 20 : 100); i++) {
        assert_int_equal(atomic_load(&p.listening.events), i);
        expect_alive(&p.client, &p.server);
        end_close(&p.client);
        CLOSE(p.server.connector, NdkCloseConnector);
        p.server.connector = NULL;
        CLOSE(p.server.qp, NdkCloseQp);
        end_open(&p.client, NULL);
        make_qp(&p.server);
        pair_connect(&p);
    }
    pair_close(&p);
}

/* Two listeners of one adapter: each gets its own, and closing one leaves the other. */
static void two_listeners(void **state)
{
    struct pair p;
    struct end c;
    struct listening second;
    struct call connect;

    (void)state;
    pair_open(&p, "127.0.0.1", NULL, NULL);
    listen_on(p.server.adapter, "127.0.0.1", &second);
    assert_int_not_equal(second.address.Ipv4.sin_port, p.listening.address.Ipv4.sin_port);
    end_open(&c, NULL);
    dial(&c, &second, &connect);
    close_next(&second);
    assert_int_equal(ended(&connect), STATUS_CONNECTION_REFUSED);
    CLOSE(second.listener, NdkCloseListener);
    CLOSE(c.connector, NdkCloseConnector);
    c.connector = NULL;
    dial(&c, &second, &connect);
    assert_int_equal(ended(&connect), STATUS_CONNECTION_REFUSED);
    CLOSE(c.connector, NdkCloseConnector);
    c.connector = NULL;
    assert_int_equal(atomic_load(&second.events), 1);
    assert_int_equal(atomic_load(&p.listening.events), 1);
    dial(&c, &p.listening, &connect);
    close_next(&p.listening);
    assert_int_equal(ended(&connect), STATUS_CONNECTION_REFUSED);
    end_close(&c);
    expect_alive(&p.client, &p.server);
    pair_close(&p);
}

/* ---- pause, and too many at once ------------------------------------------------------------ */

static void paused(void **state)
{
    struct pair p;
    struct call connect;

    (void)state;
    memset(&p, 0, sizeof p);
    end_open(&p.server, NULL);
    end_open(&p.client, NULL);
    listen_on(p.server.adapter, "127.0.0.1", &p.listening);
    for (int i = 0; i < 5; i++) {
        NDK_LISTENER *l = p.listening.listener;

        l->Dispatch->NdkControlConnectEvents(l, TRUE);
        l->Dispatch->NdkControlConnectEvents(l, TRUE);
        dial(&p.client, &p.listening, &connect);
        assert_int_equal(ended(&connect), STATUS_CONNECTION_REFUSED);
        CLOSE(p.client.connector, NdkCloseConnector);
        p.client.connector = NULL;
        assert_int_equal(atomic_load(&p.listening.events), i);
        l->Dispatch->NdkControlConnectEvents(l, FALSE);
        l->Dispatch->NdkControlConnectEvents(l, FALSE);
        dial(&p.client, &p.listening, &connect);
        close_next(&p.listening);
        assert_int_equal(ended(&connect), STATUS_CONNECTION_REFUSED);
        CLOSE(p.client.connector, NdkCloseConnector);
        p.client.connector = NULL;
    }
    pair_connect(&p);
    expect_alive(&p.client, &p.server);
    pair_close(&p);
}

/* Of two undecided ones the second is refused where one is allowed; after a decision there is room
 * again. */
static void too_many_undecided(void **state)
{
    struct pair p;
    struct end c;
    struct call first, connect, accept, done;

    (void)state;
    memset(&p, 0, sizeof p);
    end_open(&p.server, "max_pending_connects=1");
    end_open(&p.client, NULL);
    end_open(&c, NULL);
    listen_on(p.server.adapter, "127.0.0.1", &p.listening);
    dial(&p.client, &p.listening, &first);
    p.server.connector = next_incoming(&p.listening);
    for (int i = 0; i < 3; i++) {
        dial(&c, &p.listening, &connect);
        assert_int_equal(ended(&connect), STATUS_CONNECTION_REFUSED);
        CLOSE(c.connector, NdkCloseConnector);
        c.connector = NULL;
    }
    assert_int_equal(atomic_load(&p.listening.events), 1);
    accept_one(&p.server, p.server.connector, &accept);
    for (int i = 0; i < 3; i++) { /* by reject, by close, by close */
        NDK_CONNECTOR *k;

        dial(&c, &p.listening, &connect);
        k = next_incoming(&p.listening);
        if (i == 0)
            assert_int_equal(k->Dispatch->NdkReject(k, NULL, 0), STATUS_SUCCESS);
        CLOSE(k, NdkCloseConnector);
        assert_int_equal(ended(&connect), STATUS_CONNECTION_REFUSED);
        CLOSE(c.connector, NdkCloseConnector);
        c.connector = NULL;
    }
    assert_int_equal(ended(&first), STATUS_SUCCESS);
    complete(&p.client, &done);
    assert_int_equal(ended(&done), STATUS_SUCCESS);
    assert_int_equal(ended(&accept), STATUS_SUCCESS);
    end_close(&c);
    pair_close(&p);
}

int main(void)
{
    static const char *const modes[] = {"never", "always", "early", "random:16"};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crowd),
        cmocka_unit_test(hundred_in_a_row),
        cmocka_unit_test(paused),
        cmocka_unit_test(two_listeners),
        cmocka_unit_test(too_many_undecided),
    };
    int failed = 0;

    for (size_t i = 0; i < sizeof modes / sizeof modes[0] && !failed; i++) {
        mode = modes[i];
        softndk_set_pend(mode);
        failed += cmocka_run_group_tests_name(mode, tests, NULL, NULL);
    }
    return failed;
}
