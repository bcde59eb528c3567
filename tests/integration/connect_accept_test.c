// SPDX-License-Identifier: MIT
/*
 * The passive side's calls with wrong arguments, in wrong states, or failing as told: each answers
 * its status and changes nothing; the undecided connector can still be accepted afterwards. The
 * synchronous calls of a connector fail as told, too.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ends.h"

static const char *mode;

struct call {
    struct wait wait;
    NTSTATUS returned;
};

static NTSTATUS ended(struct call *call)
{
    return wait_end(&call->wait, call->returned);
}

/* For answers that are known at once: they come as the mode demands. */
static NTSTATUS known(struct call *call)
{
    NTSTATUS status = ended(call);

    if (strcmp(mode, "never") == 0)
        assert_int_not_equal(call->returned, STATUS_PENDING);
    if (strcmp(mode, "always") == 0 || strcmp(mode, "early") == 0)
        assert_int_equal(call->returned, STATUS_PENDING);
    return status;
}

static void plain_accept(NDK_CONNECTOR *connector, NDK_QP *qp, struct call *call)
{
    wait_init(&call->wait);
    call->returned = connector->Dispatch->NdkAccept(connector, qp, 4, 4, NULL, 0, NULL, NULL,
                                                    wait_request, &call->wait);
}

static void accept_ex(NDK_CONNECTOR *connector, NDK_QP *qp, struct call *call)
{
    wait_init(&call->wait);
    call->returned = connector->Dispatch->NdkAcceptEx(connector, qp, 4, 4, NULL, 0, NULL, NULL,
                                                      wait_request, &call->wait);
}

static void expect_accept(NDK_CONNECTOR *connector, NDK_QP *qp, NTSTATUS status)
{
    struct call call;

    plain_accept(connector, qp, &call);
    assert_int_equal(known(&call), status);
    accept_ex(connector, qp, &call);
    assert_int_equal(known(&call), status);
}

static void expect_reject(NDK_CONNECTOR *connector, NTSTATUS status)
{
    assert_int_equal(connector->Dispatch->NdkReject(connector, NULL, 0), status);
}

/* A connect that waits for the decision. */
static void incoming_open(struct pair *p, struct call *connect)
{
    struct end *c = &p->client;
    SOCKADDR_INET local;

    memset(p, 0, sizeof *p);
    end_open(&p->server, NULL);
    end_open(c, NULL);
    listen_on(p->server.adapter, "127.0.0.1", &p->listening);
    local = local_of(&p->listening);
    c->connector = make_connector(c->adapter);
    wait_init(&connect->wait);
    connect->returned = c->connector->Dispatch->NdkConnect(
        c->connector, c->qp, (PSOCKADDR)&local, p->listening.address_length,
        (PSOCKADDR)&p->listening.address, p->listening.address_length, 4, 4, NULL, 0, wait_request,
        &connect->wait);
    p->server.connector = next_incoming(&p->listening);
}

/* The decision is still open: it is taken now, and the connection works. */
static void incoming_close(struct pair *p, struct call *connect)
{
    struct end *c = &p->client, *s = &p->server;
    struct call accept, complete;

    assert_int_equal(softndk_set_fail(NULL), STATUS_SUCCESS);
    assert_int_equal(atomic_load(&connect->wait.calls), 0);
    accept_ex(s->connector, s->qp, &accept);
    assert_int_equal(ended(connect), STATUS_SUCCESS);
    wait_init(&complete.wait);
    complete.returned = c->connector->Dispatch->NdkCompleteConnect(c->connector, NULL, NULL,
                                                                   wait_request, &complete.wait);
    assert_int_equal(ended(&complete), STATUS_SUCCESS);
    assert_int_equal(ended(&accept), STATUS_SUCCESS);
    assert_int_equal(s->qp->Dispatch->NdkReceive(s->qp, s, NULL, 0), STATUS_SUCCESS);
    assert_int_equal(c->qp->Dispatch->NdkSend(c->qp, c, NULL, 0, 0), STATUS_SUCCESS);
    assert_int_equal(queue_next(&s->receive).Status, STATUS_SUCCESS);
    pair_close(p);
}

static void accept_arguments(void **state)
{
    struct pair p, other;
    struct call connect;

    (void)state;
    pair_open(&other, "127.0.0.1", NULL, NULL);
    incoming_open(&p, &connect);
    expect_accept(p.server.connector, NULL, STATUS_INVALID_PARAMETER);
    expect_accept(p.server.connector, other.server.qp, STATUS_INVALID_PARAMETER);
    /* The client's own connector cannot accept; nor can one that is idle. */
    expect_accept(p.client.connector, p.client.qp, STATUS_CONNECTION_INVALID);
    expect_accept(other.client.connector, other.client.qp, STATUS_CONNECTION_INVALID);
    /* One that is accepted cannot be accepted again. */
    expect_accept(other.server.connector, other.server.qp, STATUS_CONNECTION_INVALID);
    incoming_close(&p, &connect);
    pair_close(&other);
}

/* A QP that serves another connection of the same adapter. */
static void accept_with_a_used_qp(void **state)
{
    struct pair p;
    struct end more;
    struct call connect;
    SOCKADDR_INET local;
    NDK_CONNECTOR *second;

    (void)state;
    pair_open(&p, "127.0.0.1", NULL, NULL);
    local = local_of(&p.listening);
    end_open(&more, NULL);
    more.connector = make_connector(more.adapter);
    wait_init(&connect.wait);
    connect.returned = more.connector->Dispatch->NdkConnect(
        more.connector, more.qp, (PSOCKADDR)&local, p.listening.address_length,
        (PSOCKADDR)&p.listening.address, p.listening.address_length, 4, 4, NULL, 0, wait_request,
        &connect.wait);
    second = next_incoming(&p.listening);
    expect_accept(second, p.server.qp, STATUS_CONNECTION_ACTIVE);
    assert_int_equal(atomic_load(&connect.wait.calls), 0);
    expect_reject(second, STATUS_SUCCESS);
    assert_int_equal(ended(&connect), STATUS_CONNECTION_REFUSED);
    CLOSE(second, NdkCloseConnector);
    end_close(&more);
    pair_close(&p);
}

static void accept_injected(void **state)
{
    static const NTSTATUS documented[] = {STATUS_CONNECTION_ABORTED, STATUS_IO_TIMEOUT,
                                          STATUS_INSUFFICIENT_RESOURCES};
    struct pair p;
    struct call connect, call;
    char rules[128];

    (void)state;
    incoming_open(&p, &connect);
    for (size_t i = 0; i < sizeof documented / sizeof documented[0]; i++) {
        snprintf(rules, sizeof rules, "NdkAccept:1:0x%08x,NdkAcceptEx:1:0x%08x",
                 (unsigned)documented[i], (unsigned)documented[i]);
        assert_int_equal(softndk_set_fail(rules), STATUS_SUCCESS);
        expect_accept(p.server.connector, p.server.qp, documented[i]);
    }
    assert_int_equal(softndk_set_fail("memory:1"), STATUS_SUCCESS);
    plain_accept(p.server.connector, p.server.qp, &call);
    assert_int_equal(known(&call), STATUS_INSUFFICIENT_RESOURCES);
    assert_int_equal(softndk_set_fail("NdkReject:1:STATUS_CONNECTION_ABORTED"), STATUS_SUCCESS);
    expect_reject(p.server.connector, STATUS_CONNECTION_ABORTED);
    incoming_close(&p, &connect);
}

/* Reject where there is nothing to reject, or not any more; accept after it. */
static void reject_in_wrong_states(void **state)
{
    struct pair p;
    struct call connect, accept;

    (void)state;
    incoming_open(&p, &connect);
    expect_reject(p.client.connector, STATUS_CONNECTION_INVALID); /* still connecting */
    accept_ex(p.server.connector, p.server.qp, &accept);
    assert_int_equal(accept.returned, STATUS_PENDING);
    expect_reject(p.server.connector, STATUS_CONNECTION_INVALID); /* accepted */
    assert_int_equal(ended(&connect), STATUS_SUCCESS);
    expect_reject(p.server.connector, STATUS_CONNECTION_INVALID);
    expect_reject(p.client.connector, STATUS_SUCCESS); /* the active side's turn */
    assert_int_equal(ended(&accept), STATUS_CONNECTION_REFUSED);
    expect_reject(p.client.connector, STATUS_CONNECTION_INVALID);
    pair_close(&p);
    incoming_open(&p, &connect);
    expect_reject(p.server.connector, STATUS_SUCCESS);
    expect_reject(p.server.connector, STATUS_CONNECTION_INVALID);
    expect_accept(p.server.connector, p.server.qp, STATUS_CONNECTION_INVALID);
    assert_int_equal(ended(&connect), STATUS_CONNECTION_REFUSED);
    expect_reject(p.client.connector, STATUS_CONNECTION_INVALID);
    pair_close(&p);
    pair_open(&p, "127.0.0.1", NULL, NULL);
    expect_reject(p.client.connector, STATUS_CONNECTION_INVALID); /* connected */
    expect_reject(p.server.connector, STATUS_CONNECTION_INVALID);
    pair_close(&p);
}

/* A complete connect that is refused, on either side, leaves the disconnect event as it is. */
static void refused_complete_changes_nothing(void **state)
{
    struct pair p;

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct end *a = i ? &p.server : &p.client, *b = i ? &p.client : &p.server;
        struct call call;

        pair_open(&p, "127.0.0.1", NULL, NULL);
        wait_init(&call.wait);
        call.returned = a->connector->Dispatch->NdkCompleteConnect(a->connector, NULL, NULL,
                                                                   wait_request, &call.wait);
        assert_int_equal(known(&call), STATUS_CONNECTION_INVALID);
        CLOSE(b->connector, NdkCloseConnector);
        b->connector = NULL;
        if (!wait_event(&a->disconnected, 5000))
            test_fail("the disconnect event is lost");
        pair_close(&p);
    }
}

static void queries_injected(void **state)
{
    struct pair p;
    NDK_CONNECTOR *k;
    NDK_LISTENER *l;
    SOCKADDR_INET address;
    ULONG length = sizeof address, in = 77;

    (void)state;
    pair_open(&p, "127.0.0.1", NULL, NULL);
    k = p.client.connector;
    l = p.listening.listener;
    assert_int_equal(softndk_set_fail("NdkGetConnectionData:1:STATUS_BUFFER_TOO_SMALL,"
                                      "NdkGetLocalAddress:1:STATUS_BUFFER_TOO_SMALL:repeat,"
                                      "NdkGetPeerAddress:1:STATUS_BUFFER_TOO_SMALL"),
                     STATUS_SUCCESS);
    assert_int_equal(k->Dispatch->NdkGetConnectionData(k, &in, NULL, NULL, NULL),
                     STATUS_BUFFER_TOO_SMALL);
    assert_int_equal(in, 77);
    assert_int_equal(k->Dispatch->NdkGetLocalAddress(k, (PSOCKADDR)&address, &length),
                     STATUS_BUFFER_TOO_SMALL);
    assert_int_equal(l->Dispatch->NdkGetLocalAddress(l, (PSOCKADDR)&address, &length),
                     STATUS_BUFFER_TOO_SMALL);
    assert_int_equal(k->Dispatch->NdkGetPeerAddress(k, (PSOCKADDR)&address, &length),
                     STATUS_BUFFER_TOO_SMALL);
    assert_int_equal(softndk_set_fail(NULL), STATUS_SUCCESS);
    assert_int_equal(k->Dispatch->NdkGetConnectionData(k, &in, NULL, NULL, NULL), STATUS_SUCCESS);
    assert_int_equal(in, 8);
    assert_int_equal(k->Dispatch->NdkGetLocalAddress(k, (PSOCKADDR)&address, NULL),
                     STATUS_INVALID_PARAMETER);
    pair_close(&p);
}

int main(void)
{
    static const char *const modes[] = {"never", "always", "early", "random:61"};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(accept_arguments), cmocka_unit_test(accept_with_a_used_qp),
        cmocka_unit_test(accept_injected),  cmocka_unit_test(reject_in_wrong_states),
        cmocka_unit_test(queries_injected), cmocka_unit_test(refused_complete_changes_nothing),
    };
    int failed = 0;

    for (size_t i = 0; i < sizeof modes / sizeof modes[0] && !failed; i++) {
        mode = modes[i];
        softndk_set_pend(mode);
        failed += cmocka_run_group_tests_name(mode, tests, NULL, NULL);
    }
    return failed;
}
