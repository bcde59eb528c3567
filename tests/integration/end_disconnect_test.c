// SPDX-License-Identifier: MIT
/*
 * NdkDisconnect: from either side, from both at once, inside the event, with work queued, against a
 * peer that does not answer, that aborts, or that was never connected. What the other side is told
 * (once, with its reason), and what becomes of the posted requests: nothing by the peer's
 * disconnect, CANCELLED in order by one's own.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ends.h"

#define RECEIVES 5

struct call {
    struct wait wait;
    NTSTATUS returned;
};

static NTSTATUS ended(struct call *call)
{
    return wait_end(&call->wait, call->returned);
}

static void disconnect(struct end *end, struct call *call)
{
    wait_init(&call->wait);
    call->returned =
        end->connector->Dispatch->NdkDisconnect(end->connector, wait_request, &call->wait);
}

/* The event comes, once, and its reason says so. */
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

static void post_receives(struct end *end)
{
    for (uintptr_t i = 0; i < RECEIVES; i++)
        assert_int_equal(end->qp->Dispatch->NdkReceive(end->qp, (void *)i, NULL, 0),
                         STATUS_SUCCESS);
}

static void expect_cancelled(struct end *end)
{
    for (uintptr_t i = 0; i < RECEIVES; i++) {
        NDK_RESULT_EX result = queue_next(&end->receive);

        assert_int_equal(result.Status, STATUS_CANCELLED);
        assert_ptr_equal(result.RequestContext, (void *)i);
    }
}

/* Nothing can be sent any more; a receive is taken and cancelled. */
static void expect_over(struct end *end)
{
    NDK_RESULT_EX result;

    assert_int_equal(end->qp->Dispatch->NdkSend(end->qp, end, NULL, 0, 0),
                     STATUS_CONNECTION_INVALID);
    assert_int_equal(end->qp->Dispatch->NdkWrite(end->qp, end, NULL, 0, 0, 0, 0),
                     STATUS_CONNECTION_INVALID);
    assert_int_equal(end->qp->Dispatch->NdkRead(end->qp, end, NULL, 0, 0, 0, 0),
                     STATUS_CONNECTION_INVALID);
    assert_int_equal(end->qp->Dispatch->NdkReceive(end->qp, end, NULL, 0), STATUS_SUCCESS);
    result = queue_next(&end->receive);
    assert_int_equal(result.Status, STATUS_CANCELLED);
    assert_ptr_equal(result.RequestContext, end);
    assert_false(queue_try(&end->initiator, &result, 1));
    assert_false(queue_try(&end->receive, &result, 1));
}

static void second_disconnect_is_invalid(struct end *end)
{
    struct call call;

    disconnect(end, &call);
    assert_int_equal(ended(&call), STATUS_CONNECTION_INVALID);
}

/* ---- in good order -------------------------------------------------------------------------- */

static void one_after_the_other(void **state)
{
    struct pair p;
    NDK_RESULT_EX result;

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct end *a = i ? &p.server : &p.client, *b = i ? &p.client : &p.server;
        struct call first, second;

        pair_open(&p, "127.0.0.1", NULL, NULL);
        post_receives(a);
        post_receives(b);
        disconnect(a, &first);
        assert_int_equal(first.returned, STATUS_PENDING);
        second_disconnect_is_invalid(a);
        expect_event(b, "FIN");
        /* The peer's disconnect flushes nothing, and does not end this side's request. */
        assert_false(queue_try(&b->receive, &result, 20));
        assert_false(queue_try(&a->receive, &result, 1));
        assert_int_equal(atomic_load(&first.wait.calls), 0);
        disconnect(b, &second);
        assert_int_equal(ended(&second), STATUS_SUCCESS);
        assert_int_equal(ended(&first), STATUS_SUCCESS);
        expect_cancelled(a);
        expect_cancelled(b);
        expect_over(a);
        expect_over(b);
        second_disconnect_is_invalid(b);
        assert_int_equal(atomic_load(&a->disconnects), 0);
        assert_int_equal(atomic_load(&b->disconnects), 1);
        pair_close(&p);
    }
}

static void both_at_once(void **state)
{
    struct pair p;

    (void)state;
    for (int i = 0; i < 10; i++) {
        struct call first, second;

        pair_open(&p, "127.0.0.1", NULL, NULL);
        post_receives(&p.client);
        post_receives(&p.server);
        disconnect(&p.client, &first);
        disconnect(&p.server, &second);
        assert_int_equal(ended(&first), STATUS_SUCCESS);
        assert_int_equal(ended(&second), STATUS_SUCCESS);
        expect_cancelled(&p.client);
        expect_cancelled(&p.server);
        assert_int_equal(atomic_load(&p.client.disconnects), 0);
        assert_true(atomic_load(&p.server.disconnects) <= 1); /* it may have been told before */
        pair_close(&p);
    }
}

/* The usual reaction, where it usually stands: in the event itself. */
struct reaction {
    struct end *end;
    bool close;
    struct call call;
    KEVENT done;
};

static VOID react(PVOID context, ULONG reason)
{
    struct reaction *r = context;

    if (r->close) {
        wait_init(&r->call.wait);
        r->call.returned = r->end->connector->Dispatch->NdkCloseConnector(
            &r->end->connector->Header, wait_close, &r->call.wait);
        r->end->connector = NULL;
    } else {
        disconnect(r->end, &r->call);
    }
    end_disconnected(r->end, reason);
    KeSetEvent(&r->done, 0, FALSE);
}

static void inside_the_event(void **state)
{
    struct pair p;

    (void)state;
    for (int i = 0; i < 2; i++) {
        SOCKADDR_INET local;
        struct call connect, accept, complete, first;
        struct reaction r = {.end = &p.server, .close = i == 1};
        struct end *c = &p.client, *s = &p.server;

        memset(&p, 0, sizeof p);
        KeInitializeEvent(&r.done, NotificationEvent, FALSE);
        end_open(s, NULL);
        end_open(c, NULL);
        listen_on(s->adapter, "127.0.0.1", &p.listening);
        local = local_of(&p.listening);
        c->connector = make_connector(c->adapter);
        wait_init(&connect.wait);
        connect.returned = c->connector->Dispatch->NdkConnect(
            c->connector, c->qp, (PSOCKADDR)&local, p.listening.address_length,
            (PSOCKADDR)&p.listening.address, p.listening.address_length, 1, 1, NULL, 0,
            wait_request, &connect.wait);
        s->connector = next_incoming(&p.listening);
        wait_init(&accept.wait);
        accept.returned = s->connector->Dispatch->NdkAcceptEx(
            s->connector, s->qp, 1, 1, NULL, 0, react, &r, wait_request, &accept.wait);
        assert_int_equal(ended(&connect), STATUS_SUCCESS);
        wait_init(&complete.wait); /* without an event: nothing is told, nothing breaks */
        complete.returned = c->connector->Dispatch->NdkCompleteConnectEx(
            c->connector, NULL, NULL, wait_request, &complete.wait);
        assert_int_equal(ended(&complete), STATUS_SUCCESS);
        assert_int_equal(ended(&accept), STATUS_SUCCESS);
        disconnect(c, &first);
        assert_int_equal(ended(&first), STATUS_SUCCESS);
        if (!wait_event(&r.done, WAIT_S * 1000))
            test_fail("no disconnect event");
        assert_int_equal(ended(&r.call), STATUS_SUCCESS);
        expect_event(s, "FIN");
        pair_close(&p);
    }
}

/* The FIN goes behind what was posted before the disconnect. */
static void behind_queued_work(void **state)
{
    const ULONG size = 200000;
    struct pair p;
    struct memory from, to;
    struct call first, second;

    (void)state;
    pair_open(&p, "127.0.0.1", "tcp_buffer=131072", "tcp_buffer=131072");
    make_memory(p.client.pd, size, 0, &from);
    make_memory(p.server.pd, size * 32, NDK_MR_FLAG_ALLOW_LOCAL_WRITE, &to);
    fill(from.data, size, 11);
    for (uintptr_t i = 0; i < 32; i++) {
        NDK_SGE out = memory_sge(&from, 0, size), in = memory_sge(&to, i * size, size);

        assert_int_equal(p.server.qp->Dispatch->NdkReceive(p.server.qp, (void *)i, &in, 1),
                         STATUS_SUCCESS);
        assert_int_equal(p.client.qp->Dispatch->NdkSend(p.client.qp, (void *)i, &out, 1, 0),
                         STATUS_SUCCESS);
    }
    disconnect(&p.client, &first);
    expect_event(&p.server, "FIN");
    for (uintptr_t i = 0; i < 32; i++) {
        NDK_RESULT_EX result = queue_next(&p.client.initiator);

        assert_int_equal(result.Status, STATUS_SUCCESS);
        result = queue_next(&p.server.receive);
        assert_int_equal(result.Status, STATUS_SUCCESS);
        assert_int_equal(result.BytesTransferred, size);
        assert_true(check(to.data + i * size, size, 11));
    }
    disconnect(&p.server, &second);
    assert_int_equal(ended(&second), STATUS_SUCCESS);
    assert_int_equal(ended(&first), STATUS_SUCCESS);
    free_memory(&from);
    free_memory(&to);
    pair_close(&p);
}

/* ---- not in good order ---------------------------------------------------------------------- */

static void unanswered(void **state)
{
    struct pair p;
    struct call first, second;
    NTSTATUS status;

    (void)state;
    pair_open(&p, "127.0.0.1", "disconnect_ms=100", NULL);
    post_receives(&p.client);
    post_receives(&p.server);
    disconnect(&p.client, &first);
    assert_int_equal(ended(&first), STATUS_IO_TIMEOUT);
    expect_cancelled(&p.client);
    expect_over(&p.client); /* nevertheless closed */
    expect_event(&p.server, "FIN");
    disconnect(&p.server, &second);
    status = ended(&second);
    assert_true(status == STATUS_SUCCESS || status == STATUS_CONNECTION_ABORTED);
    expect_cancelled(&p.server);
    expect_over(&p.server);
    assert_int_equal(atomic_load(&p.server.disconnects), 1);
    assert_int_equal(atomic_load(&p.client.disconnects), 0);
    pair_close(&p);
}

/* The peer aborts, before the disconnect or in answer to it. */
static void aborted(void **state)
{
    struct pair p;
    struct call call;

    (void)state;
    pair_open(&p, "127.0.0.1", NULL, NULL);
    post_receives(&p.client);
    CLOSE(p.server.connector, NdkCloseConnector);
    p.server.connector = NULL;
    expect_event(&p.client, "RST");
    expect_cancelled(&p.client);
    expect_over(&p.client);
    disconnect(&p.client, &call); /* benign: there is nothing left */
    assert_int_equal(ended(&call), STATUS_SUCCESS);
    second_disconnect_is_invalid(&p.client);
    pair_close(&p);

    pair_open(&p, "127.0.0.1", NULL, NULL);
    disconnect(&p.client, &call);
    expect_event(&p.server, "FIN");
    CLOSE(p.server.connector, NdkCloseConnector); /* answers a FIN with a FIN */
    p.server.connector = NULL;
    assert_int_equal(ended(&call), STATUS_SUCCESS);
    assert_int_equal(atomic_load(&p.client.disconnects), 0);
    pair_close(&p);
}

static void not_connected(void **state)
{
    struct pair p;
    struct call connect, accept, call;
    SOCKADDR_INET local;

    (void)state;
    memset(&p, 0, sizeof p);
    end_open(&p.server, NULL);
    end_open(&p.client, NULL);
    listen_on(p.server.adapter, "127.0.0.1", &p.listening);
    local = local_of(&p.listening);
    p.client.connector = make_connector(p.client.adapter);
    second_disconnect_is_invalid(&p.client); /* idle */
    wait_init(&connect.wait);
    connect.returned = p.client.connector->Dispatch->NdkConnect(
        p.client.connector, p.client.qp, (PSOCKADDR)&local, p.listening.address_length,
        (PSOCKADDR)&p.listening.address, p.listening.address_length, 1, 1, NULL, 0, wait_request,
        &connect.wait);
    second_disconnect_is_invalid(&p.client); /* connecting */
    p.server.connector = next_incoming(&p.listening);
    second_disconnect_is_invalid(&p.server); /* undecided */
    wait_init(&accept.wait);
    accept.returned = p.server.connector->Dispatch->NdkAcceptEx(
        p.server.connector, p.server.qp, 1, 1, NULL, 0, end_disconnected, &p.server, wait_request,
        &accept.wait);
    assert_int_equal(ended(&connect), STATUS_SUCCESS);
    second_disconnect_is_invalid(&p.client); /* not completed */
    second_disconnect_is_invalid(&p.server);
    CLOSE(p.client.connector, NdkCloseConnector);
    p.client.connector = NULL;
    assert_int_equal(ended(&accept), STATUS_CONNECTION_ABORTED);
    second_disconnect_is_invalid(&p.server); /* failed */
    pair_close(&p);

    /* Injected, and without memory: the connection stays as it is. */
    pair_open(&p, "127.0.0.1", NULL, NULL);
    assert_int_equal(softndk_set_fail("NdkDisconnect:1:STATUS_IO_TIMEOUT"), STATUS_SUCCESS);
    disconnect(&p.client, &call);
    assert_int_equal(ended(&call), STATUS_IO_TIMEOUT);
    assert_int_equal(softndk_set_fail("memory:1"), STATUS_SUCCESS);
    disconnect(&p.client, &call);
    assert_int_equal(ended(&call), STATUS_INSUFFICIENT_RESOURCES);
    assert_int_equal(softndk_set_fail(NULL), STATUS_SUCCESS);
    post_receives(&p.server);
    assert_int_equal(p.client.qp->Dispatch->NdkSend(p.client.qp, &p, NULL, 0, 0), STATUS_SUCCESS);
    assert_int_equal(queue_next(&p.server.receive).Status, STATUS_SUCCESS);
    pair_close(&p);
}

int main(void)
{
    static const char *const modes[] = {"never", "always", "early", "random:31"};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_after_the_other), cmocka_unit_test(both_at_once),
        cmocka_unit_test(inside_the_event),    cmocka_unit_test(behind_queued_work),
        cmocka_unit_test(unanswered),          cmocka_unit_test(aborted),
        cmocka_unit_test(not_connected),
    };
    int failed = 0;

    for (size_t i = 0; i < sizeof modes / sizeof modes[0] && !failed; i++) {
        softndk_set_pend(modes[i]);
        failed += cmocka_run_group_tests_name(modes[i], tests, NULL, NULL);
    }
    return failed;
}
