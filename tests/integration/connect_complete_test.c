// SPDX-License-Identifier: MIT
/*
 * The second half of an establishment: NdkCompleteConnect(Ex), NdkAccept(Ex), NdkReject and close,
 * on time, too early, twice, on the wrong side, and when the other side rejects, goes or is silent.
 * Every status each of them documents, in each completion mode.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ends.h"
#include "os/os.h"

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

static void ends_open(struct pair *p, const char *client, const char *server)
{
    memset(p, 0, sizeof *p);
    end_open(&p->server, server);
    end_open(&p->client, client);
    listen_on(p->server.adapter, "127.0.0.1", &p->listening);
}

static void dial_to(struct end *c, const SOCKADDR_INET *target, struct call *call)
{
    SOCKADDR_INET local = *target, peer = *target;

    local.Ipv4.sin_port = 0;
    if (!c->connector)
        c->connector = make_connector(c->adapter);
    wait_init(&call->wait);
    call->returned = c->connector->Dispatch->NdkConnect(
        c->connector, c->qp, (PSOCKADDR)&local, sizeof local.Ipv4, (PSOCKADDR)&peer,
        sizeof peer.Ipv4, 8, 8, NULL, 0, wait_request, &call->wait);
    assert_int_equal(call->returned, STATUS_PENDING);
}

static void accept_ex(struct end *s, struct call *call)
{
    wait_init(&call->wait);
    call->returned = s->connector->Dispatch->NdkAcceptEx(
        s->connector, s->qp, 8, 8, NULL, 0, end_disconnected, s, wait_request, &call->wait);
}

static void complete(NDK_CONNECTOR *connector, struct call *call)
{
    wait_init(&call->wait);
    call->returned =
        connector->Dispatch->NdkCompleteConnect(connector, NULL, NULL, wait_request, &call->wait);
}

static void complete_ex(NDK_CONNECTOR *connector, struct call *call)
{
    wait_init(&call->wait);
    call->returned =
        connector->Dispatch->NdkCompleteConnectEx(connector, NULL, NULL, wait_request, &call->wait);
}

/* Both forms of complete connect: the status both must answer. */
static void expect_complete(NDK_CONNECTOR *connector, NTSTATUS status)
{
    struct call call;

    complete(connector, &call);
    assert_int_equal(known(&call), status);
    complete_ex(connector, &call);
    assert_int_equal(known(&call), status);
}

/* Connected as far as the active side's decision. */
static void dial_and_accept(struct pair *p, struct call *accept)
{
    struct call connect;

    dial_to(&p->client, &p->listening.address, &connect);
    p->server.connector = next_incoming(&p->listening);
    accept_ex(&p->server, accept);
    assert_int_equal(ended(&connect), STATUS_SUCCESS);
}

static void drop(NDK_CONNECTOR **connector)
{
    CLOSE(*connector, NdkCloseConnector);
    *connector = NULL;
}

/* Octets from the client to the server, as a proof of life. */
static void expect_alive(struct pair *p)
{
    struct end *c = &p->client, *s = &p->server;

    assert_int_equal(s->qp->Dispatch->NdkReceive(s->qp, p, NULL, 0), STATUS_SUCCESS);
    assert_int_equal(c->qp->Dispatch->NdkSend(c->qp, p, NULL, 0, 0), STATUS_SUCCESS);
    assert_int_equal(queue_next(&s->receive).Status, STATUS_SUCCESS);
    assert_int_equal(queue_next(&c->initiator).Status, STATUS_SUCCESS);
}

/* ---- CompleteConnect ------------------------------------------------------------------------ */

static VOID plain_event(PVOID context)
{
    end_disconnected(context, 0);
}

/* Both calls without Ex: established, and their event comes. */
static void without_ex(void **state)
{
    struct pair p;
    struct call connect, accept, done;
    struct end *c = &p.client, *s = &p.server;

    (void)state;
    ends_open(&p, NULL, NULL);
    dial_to(c, &p.listening.address, &connect);
    s->connector = next_incoming(&p.listening);
    wait_init(&accept.wait);
    accept.returned = s->connector->Dispatch->NdkAccept(s->connector, s->qp, 8, 8, NULL, 0,
                                                        plain_event, s, wait_request, &accept.wait);
    assert_int_equal(accept.returned, STATUS_PENDING);
    assert_int_equal(ended(&connect), STATUS_SUCCESS);
    assert_int_equal(atomic_load(&accept.wait.calls), 0); /* nothing before CompleteConnect */
    wait_init(&done.wait);
    done.returned = c->connector->Dispatch->NdkCompleteConnect(c->connector, plain_event, c,
                                                               wait_request, &done.wait);
    assert_int_equal(ended(&done), STATUS_SUCCESS);
    assert_int_equal(ended(&accept), STATUS_SUCCESS);
    expect_alive(&p);
    drop(&s->connector);
    if (!wait_event(&c->disconnected, WAIT_S * 1000))
        test_fail("no disconnect event");
    assert_int_equal(atomic_load(&c->disconnects), 1);
    assert_int_equal(atomic_load(&s->disconnects), 0);
    pair_close(&p);
}

/* Before, during and after the connect; twice; on the passive side. */
static void complete_at_the_wrong_time(void **state)
{
    struct pair p;
    struct call connect, accept, done;

    (void)state;
    ends_open(&p, NULL, NULL);
    p.client.connector = make_connector(p.client.adapter);
    expect_complete(p.client.connector, STATUS_CONNECTION_INVALID);
    dial_to(&p.client, &p.listening.address, &connect);
    expect_complete(p.client.connector, STATUS_CONNECTION_INVALID);
    p.server.connector = next_incoming(&p.listening);
    expect_complete(p.server.connector, STATUS_CONNECTION_INVALID);
    expect_complete(p.client.connector, STATUS_CONNECTION_INVALID);
    accept_ex(&p.server, &accept);
    expect_complete(p.server.connector, STATUS_CONNECTION_INVALID);
    assert_int_equal(ended(&connect), STATUS_SUCCESS);
    complete_ex(p.client.connector, &done);
    assert_int_equal(ended(&done), STATUS_SUCCESS);
    assert_int_equal(ended(&accept), STATUS_SUCCESS);
    expect_complete(p.client.connector, STATUS_CONNECTION_INVALID);
    expect_complete(p.server.connector, STATUS_CONNECTION_INVALID);
    expect_alive(&p);
    pair_close(&p);
}

/* The calls fail as injected, whatever the state, and may be repeated. */
static void complete_injected(void **state)
{
    static const NTSTATUS documented[] = {STATUS_CONNECTION_INVALID, STATUS_CONNECTION_ABORTED,
                                          STATUS_IO_TIMEOUT, STATUS_INSUFFICIENT_RESOURCES};
    struct pair p;
    struct call accept, done;
    char rules[128];

    (void)state;
    ends_open(&p, NULL, NULL);
    dial_and_accept(&p, &accept);
    for (size_t i = 0; i < sizeof documented / sizeof documented[0]; i++) {
        snprintf(rules, sizeof rules, "NdkCompleteConnect:1:0x%08x,NdkCompleteConnectEx:1:0x%08x",
                 (unsigned)documented[i], (unsigned)documented[i]);
        assert_int_equal(softndk_set_fail(rules), STATUS_SUCCESS);
        expect_complete(p.client.connector, documented[i]);
    }
    assert_int_equal(softndk_set_fail("memory:1"), STATUS_SUCCESS);
    complete(p.client.connector, &done);
    assert_int_equal(known(&done), STATUS_INSUFFICIENT_RESOURCES);
    assert_int_equal(softndk_set_fail(NULL), STATUS_SUCCESS);
    complete_ex(p.client.connector, &done);
    assert_int_equal(ended(&done), STATUS_SUCCESS);
    assert_int_equal(ended(&accept), STATUS_SUCCESS);
    expect_alive(&p);
    pair_close(&p);
}

/* The peer closes its accepted connector between the Reply and the complete connect. */
static void complete_aborted(void **state)
{
    struct pair p;
    struct call accept, done;

    (void)state;
    for (int i = 0; i < 2; i++) {
        ends_open(&p, NULL, NULL);
        dial_and_accept(&p, &accept);
        drop(&p.server.connector);
        assert_int_equal(ended(&accept), STATUS_CANCELLED);
        (i ? complete_ex : complete)(p.client.connector, &done);
        assert_int_equal(ended(&done), STATUS_CONNECTION_ABORTED);
        pair_close(&p);
    }
}

/* The active side lets its time pass: its own call tells so, the peer's accept is aborted. */
static void complete_too_late(void **state)
{
    struct pair p;
    struct call accept, done;

    (void)state;
    for (int i = 0; i < 2; i++) {
        ends_open(&p, "establish_ms=50", NULL);
        dial_and_accept(&p, &accept);
        assert_int_equal(ended(&accept), STATUS_CONNECTION_ABORTED); /* the timer has run */
        (i ? complete_ex : complete)(p.client.connector, &done);
        assert_int_equal(known(&done), STATUS_IO_TIMEOUT);
        pair_close(&p);
    }
}

/* The passive side's time passes: its accept tells so, the active side finds it aborted. */
static void accept_timed_out(void **state)
{
    struct pair p;
    struct call accept, done;

    (void)state;
    ends_open(&p, NULL, "establish_ms=50");
    dial_and_accept(&p, &accept);
    assert_int_equal(ended(&accept), STATUS_IO_TIMEOUT);
    complete(p.client.connector, &done);
    assert_int_equal(ended(&done), STATUS_CONNECTION_ABORTED);
    pair_close(&p);
}

/* ---- a peer by hand ------------------------------------------------------------------------- */

/* A listening socket of no NDK consumer. */
static int hand_listen(SOCKADDR_INET *address)
{
    struct os_addr at;
    int fd = os_tcp_socket(OS_FAMILY_V4);
    ULONG length;

    assert_int_equal(os_addr_parse("127.0.0.1", &at), 0);
    assert_true(fd >= 0);
    assert_int_equal(os_tcp_bind(fd, &at), 0);
    assert_int_equal(os_tcp_listen(fd, 4), 0);
    assert_int_equal(os_tcp_local(fd, &at), 0);
    assert_int_equal(softndk_address_from_text("127.0.0.1", address, &length), STATUS_SUCCESS);
    address->Ipv4.sin_port = RtlUshortByteSwap(at.port);
    return fd;
}

static int hand_accept(int listener)
{
    int fd;

    wait_until((fd = os_tcp_accept(listener, NULL)) >= 0, "a connection");
    return fd;
}

/* Nobody answers the Request: connect ends in time, and its QP connects elsewhere afterwards. */
static void connect_timed_out(void **state)
{
    struct pair p;
    struct call connect;
    SOCKADDR_INET silent;
    int listener = hand_listen(&silent), fd;

    (void)state;
    ends_open(&p, "connect_ms=50", NULL);
    dial_to(&p.client, &silent, &connect);
    fd = hand_accept(listener);
    assert_int_equal(ended(&connect), STATUS_IO_TIMEOUT);
    expect_complete(p.client.connector, STATUS_CONNECTION_INVALID);
    drop(&p.client.connector);
    os_tcp_close(fd);
    os_tcp_close(listener);
    end_close(&p.client);
    end_open(&p.client, NULL);
    pair_connect(&p);
    pair_close(&p);
}

/* The Reply comes, the answer to the ready-to-receive message does not: a second call while the
 * first pends, and the time-out through the callback. */
static void complete_pends(void **state)
{
    static const uint8_t reply[24] = {'M', 'P', 'A', ' ', 'I',  'D', ' ', 'R', 'e',  'p', ' ',  'F',
                                      'r', 'a', 'm', 'e', 0x50, 2,   0,   4,   0x80, 8,   0x40, 8};
    struct pair p;
    struct call connect, first, second;
    struct os_iov iov = {(void *)(uintptr_t)reply, sizeof reply};
    SOCKADDR_INET hand;
    uint8_t request[64];
    size_t got = 0;
    int listener = hand_listen(&hand), fd;

    (void)state;
    ends_open(&p, "establish_ms=1000", NULL);
    dial_to(&p.client, &hand, &connect);
    fd = hand_accept(listener);
    while (got < 24) {
        ssize_t n = -1;

        wait_until((n = os_tcp_recv(fd, request, 24 - got)) > 0, "the Request");
        got += (size_t)n;
    }
    assert_int_equal(os_tcp_send(fd, &iov, 1), sizeof reply);
    assert_int_equal(ended(&connect), STATUS_SUCCESS);
    complete_ex(p.client.connector, &first);
    assert_int_equal(first.returned, STATUS_PENDING);
    complete(p.client.connector, &second);
    assert_int_equal(known(&second), STATUS_CONNECTION_INVALID);
    assert_int_equal(ended(&first), STATUS_IO_TIMEOUT);
    os_tcp_close(fd);
    os_tcp_close(listener);
    pair_close(&p);
}

/* ---- refusals ------------------------------------------------------------------------------- */

/* Reject with and without private data, close instead of a decision, nobody there, paused: REFUSED
 * each time; complete connect is invalid after it; the QP is free for the next attempt. */
static void refused(void **state)
{
    static const char words[] = "not today";
    struct pair p;
    struct call connect;
    NDK_LISTENER *listener;
    char data[64];
    ULONG length;

    (void)state;
    ends_open(&p, NULL, NULL);
    listener = p.listening.listener;
    for (int how = 0; how < 5; how++) {
        SOCKADDR_INET target = p.listening.address;

        if (how == 3)
            listener->Dispatch->NdkControlConnectEvents(listener, TRUE);
        if (how == 4) { /* nobody has ever listened on port 1 of it */
            listener->Dispatch->NdkControlConnectEvents(listener, FALSE);
            target.Ipv4.sin_port = RtlUshortByteSwap(1);
        }
        dial_to(&p.client, &target, &connect);
        if (how < 3)
            p.server.connector = next_incoming(&p.listening);
        if (how == 0)
            assert_int_equal(p.server.connector->Dispatch->NdkReject(p.server.connector, NULL, 0),
                             STATUS_SUCCESS);
        if (how == 1)
            assert_int_equal(p.server.connector->Dispatch->NdkReject(
                                 p.server.connector, (PVOID)(uintptr_t)words, sizeof words),
                             STATUS_SUCCESS);
        if (how == 2)
            drop(&p.server.connector);
        assert_int_equal(ended(&connect), STATUS_CONNECTION_REFUSED);
        expect_complete(p.client.connector, STATUS_CONNECTION_INVALID);
        length = sizeof data;
        if (how < 3) {
            assert_int_equal(p.client.connector->Dispatch->NdkGetConnectionData(
                                 p.client.connector, NULL, NULL, data, &length),
                             STATUS_SUCCESS);
            assert_int_equal(length, how == 1 ? sizeof words : 0);
            assert_memory_equal(data, words, length);
        }
        if (p.server.connector)
            drop(&p.server.connector);
        drop(&p.client.connector);
    }
    pair_connect(&p);
    expect_alive(&p);
    pair_close(&p);
}

/* By reject: REFUSED; by close: ABORTED. */
static void refused_by_the_active_side(void **state)
{
    char words[] = "too late";
    struct pair p;
    struct call accept, done;

    (void)state;
    for (int i = 0; i < 20; i++) {
        ends_open(&p, NULL, NULL);
        dial_and_accept(&p, &accept);
        if (i % 2) {
            drop(&p.client.connector);
        } else {
            assert_int_equal(
                p.client.connector->Dispatch->NdkReject(p.client.connector, words, sizeof words),
                STATUS_SUCCESS);
            complete(p.client.connector, &done);
            assert_int_equal(known(&done), STATUS_CONNECTION_INVALID);
            assert_int_not_equal(
                p.client.connector->Dispatch->NdkReject(p.client.connector, NULL, 0),
                STATUS_SUCCESS);
        }
        assert_int_equal(ended(&accept),
                         i % 2 ? STATUS_CONNECTION_ABORTED : STATUS_CONNECTION_REFUSED);
        assert_int_equal(atomic_load(&p.server.disconnects), 0);
        pair_close(&p);
    }
}

/* The connecting peer leaves before the decision: accept and reject tell so. */
static void peer_left_before_the_decision(void **state)
{
    struct pair p, q;
    struct call connect, accept;

    (void)state;
    for (int i = 0; i < 2; i++) {
        ends_open(&p, NULL, NULL);
        dial_to(&p.client, &p.listening.address, &connect);
        p.server.connector = next_incoming(&p.listening);
        drop(&p.client.connector);
        assert_int_equal(ended(&connect), STATUS_CANCELLED);
        if (i == 0) {
            accept_ex(&p.server, &accept);
            assert_int_equal(ended(&accept), STATUS_CONNECTION_ABORTED);
        } else {
            NTSTATUS status;

            /* What the listener's thread hears later is later: it knows by now. */
            ends_open(&q, NULL, NULL);
            dial_to(&p.client, &p.listening.address, &connect);
            assert_ptr_not_equal(next_incoming(&p.listening), p.server.connector);
            status = p.server.connector->Dispatch->NdkReject(p.server.connector, NULL, 0);
            assert_int_equal(status, STATUS_CONNECTION_ABORTED);
            CLOSE(p.listening.incoming, NdkCloseConnector);
            assert_int_equal(ended(&connect), STATUS_CONNECTION_REFUSED);
            pair_close(&q);
        }
        pair_close(&p);
    }
}

int main(void)
{
    static const char *const modes[] = {"never", "always", "early", "random:5"};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_ex),
        cmocka_unit_test(complete_at_the_wrong_time),
        cmocka_unit_test(complete_injected),
        cmocka_unit_test(complete_aborted),
        cmocka_unit_test(complete_too_late),
        cmocka_unit_test(accept_timed_out),
        cmocka_unit_test(connect_timed_out),
        cmocka_unit_test(complete_pends),
        cmocka_unit_test(refused),
        cmocka_unit_test(refused_by_the_active_side),
        cmocka_unit_test(peer_left_before_the_decision),
    };
    int failed = 0;

    for (size_t i = 0; i < sizeof modes / sizeof modes[0] && !failed; i++) {
        mode = modes[i];
        softndk_set_pend(mode);
        failed += cmocka_run_group_tests_name(mode, tests, NULL, NULL);
    }
    return failed;
}
