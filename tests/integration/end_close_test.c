// SPDX-License-Identifier: MIT
/*
 * Closing a connector in each state it can be in: the close completes, what was pending completes
 * before it (CANCELLED), the other side learns what the state allows, and the QP's requests are
 * cancelled. That no data is lost is in end_linger_test.c.
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

struct call {
    struct wait wait;
    NTSTATUS returned;
};

static NTSTATUS ended(struct call *call)
{
    return wait_end(&call->wait, call->returned);
}

static bool over(const struct call *call)
{
    return call->returned != STATUS_PENDING || atomic_load(&call->wait.calls) == 1;
}

static void ends_open(struct pair *p)
{
    memset(p, 0, sizeof *p);
    end_open(&p->server, NULL);
    end_open(&p->client, NULL);
    listen_on(p->server.adapter, "127.0.0.1", &p->listening);
}

static void dial_to(struct end *c, const SOCKADDR_INET *target, struct call *call)
{
    SOCKADDR_INET local = *target, peer = *target;

    local.Ipv4.sin_port = 0;
    c->connector = make_connector(c->adapter);
    wait_init(&call->wait);
    call->returned = c->connector->Dispatch->NdkConnect(
        c->connector, c->qp, (PSOCKADDR)&local, sizeof local.Ipv4, (PSOCKADDR)&peer,
        sizeof peer.Ipv4, 4, 4, NULL, 0, wait_request, &call->wait);
    assert_int_equal(call->returned, STATUS_PENDING);
}

static void accept_ex(struct end *s, struct call *call)
{
    wait_init(&call->wait);
    call->returned = s->connector->Dispatch->NdkAcceptEx(
        s->connector, s->qp, 4, 4, NULL, 0, end_disconnected, s, wait_request, &call->wait);
}

static void complete_ex(struct end *c, struct call *call)
{
    wait_init(&call->wait);
    call->returned = c->connector->Dispatch->NdkCompleteConnectEx(c->connector, end_disconnected, c,
                                                                  wait_request, &call->wait);
}

static void disconnect(struct end *end, struct call *call)
{
    wait_init(&call->wait);
    call->returned =
        end->connector->Dispatch->NdkDisconnect(end->connector, wait_request, &call->wait);
}

static void drop(struct end *end)
{
    CLOSE(end->connector, NdkCloseConnector);
    end->connector = NULL;
}

static void expect_event(struct end *end, const char *words)
{
    char text[256];

    if (!wait_event(&end->disconnected, WAIT_S * 1000))
        test_fail("no disconnect event");
    assert_int_equal(atomic_load(&end->disconnects), 1);
    softndk_reason_text(end->reason, text, sizeof text);
    if (!strstr(text, words))
        test_fail("the reason is \"%s\", not \"%s\"", text, words);
}

static void post_receive(struct end *end, void *context)
{
    assert_int_equal(end->qp->Dispatch->NdkReceive(end->qp, context, NULL, 0), STATUS_SUCCESS);
}

static void expect_cancelled(struct queue *queue, void *context)
{
    NDK_RESULT_EX result = queue_next(queue);

    assert_int_equal(result.Status, STATUS_CANCELLED);
    assert_ptr_equal(result.RequestContext, context);
}

/* ---- before the connection is up ------------------------------------------------------------ */

static void idle(void **state)
{
    struct pair p;

    (void)state;
    ends_open(&p);
    p.client.connector = make_connector(p.client.adapter);
    drop(&p.client);
    pair_connect(&p);
    pair_close(&p);
}

/* Nobody answers: connect is cancelled before the close completes; the QP is as before. */
static void connecting(void **state)
{
    struct pair p;
    struct call connect;
    SOCKADDR_INET silent;
    struct os_addr at;
    ULONG length;
    int fd = os_tcp_socket(OS_FAMILY_V4);

    (void)state;
    assert_int_equal(os_addr_parse("127.0.0.1", &at), 0);
    assert_int_equal(os_tcp_bind(fd, &at), 0);
    assert_int_equal(os_tcp_listen(fd, 4), 0);
    assert_int_equal(os_tcp_local(fd, &at), 0);
    assert_int_equal(softndk_address_from_text("127.0.0.1", &silent, &length), STATUS_SUCCESS);
    silent.Ipv4.sin_port = RtlUshortByteSwap(at.port);
    ends_open(&p);
    for (int i = 0; i < 10; i++) {
        dial_to(&p.client, &silent, &connect);
        drop(&p.client);
        assert_true(over(&connect));
        assert_int_equal(ended(&connect), STATUS_CANCELLED);
    }
    os_tcp_close(fd);
    pair_connect(&p);
    pair_close(&p);
}

/* Each side before the other knew. */
static void undecided(void **state)
{
    struct pair p;
    struct call connect, accept;

    (void)state;
    ends_open(&p);
    dial_to(&p.client, &p.listening.address, &connect);
    p.server.connector = next_incoming(&p.listening);
    drop(&p.server);
    assert_int_equal(ended(&connect), STATUS_CONNECTION_REFUSED);
    drop(&p.client); /* of a failed attempt */
    dial_to(&p.client, &p.listening.address, &connect);
    p.server.connector = next_incoming(&p.listening);
    drop(&p.client);
    assert_true(over(&connect));
    assert_int_equal(ended(&connect), STATUS_CANCELLED);
    accept_ex(&p.server, &accept);
    assert_int_equal(ended(&accept), STATUS_CONNECTION_ABORTED);
    drop(&p.server);
    pair_close(&p);
}

/* Accepted, not completed: by the side whose accept pends, by the side that has to decide. Receives
 * that were posted already come back. */
static void accepted(void **state)
{
    struct pair p;
    struct call connect, accept, complete;

    (void)state;
    for (int i = 0; i < 2; i++) {
        ends_open(&p);
        dial_to(&p.client, &p.listening.address, &connect);
        p.server.connector = next_incoming(&p.listening);
        post_receive(&p.server, &p);
        accept_ex(&p.server, &accept);
        assert_int_equal(ended(&connect), STATUS_SUCCESS);
        post_receive(&p.client, &p);
        if (i == 0) {
            drop(&p.server);
            assert_true(over(&accept));
            assert_int_equal(ended(&accept), STATUS_CANCELLED);
            complete_ex(&p.client, &complete);
            assert_int_equal(ended(&complete), STATUS_CONNECTION_ABORTED);
        } else {
            drop(&p.client);
            assert_int_equal(ended(&accept), STATUS_CONNECTION_ABORTED);
        }
        expect_cancelled(&p.server.receive, &p);
        p.client.qp->Dispatch->NdkFlush(p.client.qp);
        expect_cancelled(&p.client.receive, &p);
        assert_int_equal(atomic_load(&p.client.disconnects), 0);
        assert_int_equal(atomic_load(&p.server.disconnects), 0);
        pair_close(&p);
    }
}

/* Right after the call of complete connect: it ends one way or the other, before the close. */
static void completing(void **state)
{
    struct pair p;
    struct call connect, accept, complete;

    (void)state;
    for (int i = 0; i < 20; i++) {
        NTSTATUS status;

        ends_open(&p);
        dial_to(&p.client, &p.listening.address, &connect);
        p.server.connector = next_incoming(&p.listening);
        accept_ex(&p.server, &accept);
        assert_int_equal(ended(&connect), STATUS_SUCCESS);
        complete_ex(&p.client, &complete);
        drop(&p.client);
        assert_true(over(&complete));
        status = ended(&complete);
        assert_true(status == STATUS_SUCCESS || status == STATUS_CANCELLED);
        status = ended(&accept);
        assert_true(status == STATUS_SUCCESS || status == STATUS_CONNECTION_ABORTED);
        if (status == STATUS_SUCCESS)
            expect_event(&p.server, "RST");
        else
            assert_int_equal(atomic_load(&p.server.disconnects), 0);
        assert_int_equal(atomic_load(&p.client.disconnects), 0);
        pair_close(&p);
    }
}

/* ---- connected, and after ------------------------------------------------------------------- */

static void connected(void **state)
{
    struct pair p;
    struct call call;

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct end *a = i ? &p.server : &p.client, *b = i ? &p.client : &p.server;

        pair_open(&p, "127.0.0.1", NULL, NULL);
        for (uintptr_t n = 0; n < 3; n++) {
            post_receive(a, (void *)n);
            post_receive(b, (void *)n);
        }
        drop(a);
        for (uintptr_t n = 0; n < 3; n++)
            expect_cancelled(&a->receive, (void *)n);
        assert_int_equal(a->qp->Dispatch->NdkSend(a->qp, a, NULL, 0, 0), STATUS_CONNECTION_INVALID);
        expect_event(b, "RST");
        for (uintptr_t n = 0; n < 3; n++)
            expect_cancelled(&b->receive, (void *)n);
        assert_int_equal(b->qp->Dispatch->NdkSend(b->qp, b, NULL, 0, 0), STATUS_CONNECTION_INVALID);
        post_receive(b, b);
        expect_cancelled(&b->receive, b);
        post_receive(a, a);
        expect_cancelled(&a->receive, a);
        assert_int_equal(atomic_load(&a->disconnects), 0);
        disconnect(b, &call);
        assert_int_equal(ended(&call), STATUS_SUCCESS);
        drop(b);
        pair_close(&p);
    }
}

/* After the peer's FIN; with a disconnect pending; after a disconnect that ended; both at once. */
static void around_a_disconnect(void **state)
{
    struct pair p;
    struct call first, second, close;
    NTSTATUS status;

    (void)state;
    pair_open(&p, "127.0.0.1", NULL, NULL);
    post_receive(&p.server, &p);
    disconnect(&p.client, &first);
    expect_event(&p.server, "FIN");
    drop(&p.server);
    expect_cancelled(&p.server.receive, &p);
    assert_int_equal(ended(&first), STATUS_SUCCESS);
    drop(&p.client);
    pair_close(&p);

    pair_open(&p, "127.0.0.1", NULL, NULL);
    post_receive(&p.client, &p);
    disconnect(&p.client, &first);
    drop(&p.client); /* without the answer: cancelled, then an RST behind the FIN */
    assert_true(over(&first));
    status = ended(&first);
    assert_int_equal(status, STATUS_CANCELLED);
    expect_cancelled(&p.client.receive, &p);
    expect_event(&p.server, "FIN");
    disconnect(&p.server, &second);
    status = ended(&second);
    assert_true(status == STATUS_SUCCESS || status == STATUS_CONNECTION_ABORTED);
    drop(&p.server);
    pair_close(&p);

    for (int i = 0; i < 10; i++) {
        pair_open(&p, "127.0.0.1", NULL, NULL);
        wait_init(&close.wait);
        close.returned = p.client.connector->Dispatch->NdkCloseConnector(
            &p.client.connector->Header, wait_close, &close.wait);
        drop(&p.server);
        assert_int_equal(ended(&close), STATUS_SUCCESS);
        p.client.connector = NULL;
        pair_close(&p);
    }
}

int main(void)
{
    static const char *const modes[] = {"never", "always", "early", "random:41"};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(idle),
        cmocka_unit_test(connecting),
        cmocka_unit_test(undecided),
        cmocka_unit_test(accepted),
        cmocka_unit_test(completing),
        cmocka_unit_test(connected),
        cmocka_unit_test(around_a_disconnect),
    };
    int failed = 0;

    for (size_t i = 0; i < sizeof modes / sizeof modes[0] && !failed; i++) {
        softndk_set_pend(modes[i]);
        failed += cmocka_run_group_tests_name(modes[i], tests, NULL, NULL);
    }
    return failed;
}
