// SPDX-License-Identifier: MIT
/*
 * How connects, accepts, complete connects and disconnects end, by a real cause each: both forms of
 * a call (with Ex and without) in each completion mode. What waits for the peer is answered through
 * the callback in every mode; what is known at once comes as the mode demands. Causes that other
 * tests have are not repeated here: connect_*_test, end_*_test, wire_*_test.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "foreign.h"
#include "modes.h"

static NTSTATUS at_once(struct call *call)
{
    return mode_answer(&call->wait, call->returned);
}

static void expect_status(const char *what, int form, NTSTATUS have, NTSTATUS need)
{
    if (have != need)
        test_fail("%s, form %d, mode %s: have %s, need %s", what, form, mode,
                  softndk_status_name(have), softndk_status_name(need));
}

static VOID plain_event(PVOID context)
{
    end_disconnected(context, 0);
}

/* form 0: without Ex, 1: with. */
static void accept_form(int form, struct end *s, struct call *call)
{
    NDK_CONNECTOR *k = s->connector;

    wait_init(&call->wait);
    call->returned = form ? k->Dispatch->NdkAcceptEx(k, s->qp, 8, 8, NULL, 0, end_disconnected, s,
                                                     wait_request, &call->wait)
                          : k->Dispatch->NdkAccept(k, s->qp, 8, 8, NULL, 0, plain_event, s,
                                                   wait_request, &call->wait);
}

static void complete_form(int form, struct end *c, struct call *call)
{
    NDK_CONNECTOR *k = c->connector;

    wait_init(&call->wait);
    call->returned =
        form ? k->Dispatch->NdkCompleteConnectEx(k, end_disconnected, c, wait_request, &call->wait)
             : k->Dispatch->NdkCompleteConnect(k, plain_event, c, wait_request, &call->wait);
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

/* More receives are flushed into the end's receive CQ than it holds: it dies, and with it the
 * connections of all queue pairs on it. */
static void overrun(struct end *end)
{
    enum { SPOILERS = 5 }; /* times END_DEPTH is more than the depth, 4 * END_DEPTH */
    NDK_QP *spoilers[SPOILERS];

    for (int i = 0; i < SPOILERS; i++) {
        struct wait w;
        NTSTATUS returned;

        wait_init(&w);
        returned =
            end->pd->Dispatch->NdkCreateQp(end->pd, end->receive.cq, end->initiator.cq, NULL,
                                           END_DEPTH, 1, 1, 1, 0, wait_create, &w, &spoilers[i]);
        assert_int_equal(wait_end(&w, returned), STATUS_SUCCESS);
        if (returned == STATUS_PENDING)
            spoilers[i] = (NDK_QP *)(void *)w.object;
        for (int n = 0; n < END_DEPTH; n++)
            assert_int_equal(spoilers[i]->Dispatch->NdkReceive(spoilers[i], NULL, NULL, 0),
                             STATUS_SUCCESS);
        spoilers[i]->Dispatch->NdkFlush(spoilers[i]);
    }
    for (int i = 0; i < SPOILERS; i++)
        CLOSE(spoilers[i], NdkCloseQp);
}

/* ---- Connect -------------------------------------------------------------------------------- */

static void a_connect_overrun(void **state)
{
    struct foreign f;
    struct call connect;

    (void)state;
    foreign_open(&f, NULL);
    foreign_dial(&f, &connect);
    overrun(&f.end);
    assert_int_equal(later(&connect), STATUS_INTERNAL_ERROR);
    expect_reason(&f.end.connector->Header, "overr");
    foreign_close(&f);
}

/* A queue pair whose CQ is dead takes no connection, on either side; another one does. */
static void a_dead_queue_pair(void **state)
{
    (void)state;
    for (int form = 0; form < 2; form++) {
        struct pair p;
        struct end good;
        struct call connect, accept;

        memset(&p, 0, sizeof p);
        end_open(&p.server, NULL);
        end_open(&p.client, NULL);
        end_open(&good, NULL);
        listen_on(p.server.adapter, "127.0.0.1", &p.listening);
        overrun(&p.client);
        overrun(&p.server);
        dial(&p.client, &p.listening.address, &connect);
        assert_int_equal(at_once(&connect), STATUS_INTERNAL_ERROR);
        expect_reason(&p.client.connector->Header, "overrun");
        dial(&good, &p.listening.address, &connect);
        p.server.connector = next_incoming(&p.listening);
        accept_form(form, &p.server, &accept);
        expect_status("accept", form, at_once(&accept), STATUS_INTERNAL_ERROR);
        assert_int_equal(p.server.connector->Dispatch->NdkReject(p.server.connector, NULL, 0),
                         STATUS_SUCCESS);
        assert_int_equal(later(&connect), STATUS_CONNECTION_REFUSED);
        end_close(&good);
        pair_close(&p);
    }
}

/* A connection over which nothing moves ends all the same when a CQ of its queue pair dies. */
static void an_idle_connection_overrun(void **state)
{
    struct pair p;

    (void)state;
    pair_open(&p, "127.0.0.1", NULL, NULL);
    overrun(&p.client);
    if (!wait_event(&p.client.disconnected, WAIT_S * 1000) ||
        !wait_event(&p.server.disconnected, WAIT_S * 1000))
        test_fail("the connection outlived its CQ");
    pair_close(&p);
}

/* A connector serves one attempt; the QP is free again. */
static void a_used_connector(void **state)
{
    struct foreign f;
    struct call first, second;

    (void)state;
    foreign_open(&f, "retry_v1=0");
    foreign_dial(&f, &first);
    peer_hang_up(&f.peer, false);
    assert_int_equal(later(&first), STATUS_CONNECTION_REFUSED);
    dial(&f.end, &f.address, &second);
    assert_int_equal(at_once(&second), STATUS_CONNECTION_INVALID);
    expect_reason(&f.end.connector->Header, "one attempt");
    drop(&f.end);
    foreign_dial(&f, &second);
    foreign_reply(&f, &second);
    foreign_close(&f);
}

/* ---- CompleteConnect ------------------------------------------------------------------------ */

enum cause { PEER_LEAVES, PEER_REJECTS, PEER_SILENT, CLOSED_HERE, OVERRUN_HERE, PEER_AGREES };

/* The peer's Reply is in, the ready-to-receive message is out, its answer does not come. */
static void complete_outcomes(void **state)
{
    static const struct {
        enum cause cause;
        NTSTATUS status;
    } cases[] = {{PEER_LEAVES, STATUS_CONNECTION_ABORTED},
                 {CLOSED_HERE, STATUS_CANCELLED},
                 {OVERRUN_HERE, STATUS_INTERNAL_ERROR},
                 {PEER_AGREES, STATUS_SUCCESS}};

    (void)state;
    for (int i = 0; i < 8; i++) {
        struct foreign f;
        struct call connect, done;
        int form = i % 2;

        foreign_open(&f, NULL);
        foreign_dial(&f, &connect);
        foreign_reply(&f, &connect);
        complete_form(form, &f.end, &done);
        switch (cases[i / 2].cause) {
        case PEER_LEAVES:
            peer_hang_up(&f.peer, true);
            break;
        case CLOSED_HERE:
            drop(&f.end);
            break;
        case OVERRUN_HERE:
            overrun(&f.end);
            break;
        default:
            peer_answer_rtr_read(&f.peer);
            break;
        }
        expect_status("complete connect", form, later(&done), cases[i / 2].status);
        foreign_close(&f);
    }
}

/* The peer agreed to no ready-to-receive message: nothing is to wait for. */
static void complete_at_once(void **state)
{
    (void)state;
    for (int form = 0; form < 2; form++) {
        struct foreign f;
        struct call connect, done;

        foreign_open(&f, NULL);
        foreign_dial(&f, &connect);
        peer_send_frame(&f.peer, true, 8, 8);
        assert_int_equal(later(&connect), STATUS_SUCCESS);
        complete_form(form, &f.end, &done);
        expect_status("complete connect", form, at_once(&done), STATUS_SUCCESS);
        foreign_close(&f);
    }
}

/* The CQ died between the Reply and the call; the peer's RST says that it has been noticed. */
static void complete_after_an_overrun(void **state)
{
    (void)state;
    for (int form = 0; form < 2; form++) {
        struct foreign f;
        struct call connect, done;

        foreign_open(&f, NULL);
        foreign_dial(&f, &connect);
        foreign_reply(&f, &connect);
        overrun(&f.end);
        assert_int_equal(peer_await_end(&f.peer), PEER_RST);
        complete_form(form, &f.end, &done);
        expect_status("complete connect", form, at_once(&done), STATUS_INTERNAL_ERROR);
        foreign_close(&f);
    }
}

/* The peer went between its Reply and the call. One thread hears everything here: what it heard
 * before another connect of this process ended, it knows. */
static void complete_of_one_that_left(void **state)
{
    (void)state;
    for (int form = 0; form < 2; form++) {
        struct foreign f, other;
        struct call connect, again, done;

        foreign_open(&f, "shards=1,retry_v1=0");
        foreign_open(&other, "shards=1,retry_v1=0");
        foreign_dial(&f, &connect);
        foreign_reply(&f, &connect);
        peer_hang_up(&f.peer, form != 0);
        foreign_dial(&other, &again);
        peer_hang_up(&other.peer, false);
        assert_int_equal(later(&again), STATUS_CONNECTION_REFUSED);
        complete_form(form, &f.end, &done);
        expect_status("complete connect", form, at_once(&done), STATUS_CONNECTION_ABORTED);
        foreign_close(&f);
        foreign_close(&other);
    }
}

/* ---- Accept --------------------------------------------------------------------------------- */

static void ends_open(struct pair *p, const char *server_options)
{
    memset(p, 0, sizeof *p);
    end_open(&p->server, server_options);
    end_open(&p->client, NULL);
    listen_on(p->server.adapter, "127.0.0.1", &p->listening);
}

/* The Reply is out, the active side has not completed. */
static void accept_outcomes(void **state)
{
    static const struct {
        enum cause cause;
        NTSTATUS status;
    } cases[] = {
        {PEER_LEAVES, STATUS_CONNECTION_ABORTED}, {PEER_REJECTS, STATUS_CONNECTION_REFUSED},
        {PEER_SILENT, STATUS_IO_TIMEOUT},         {CLOSED_HERE, STATUS_CANCELLED},
        {OVERRUN_HERE, STATUS_INTERNAL_ERROR},    {PEER_AGREES, STATUS_SUCCESS}};

    (void)state;
    for (int i = 0; i < 12; i++) {
        struct pair p;
        struct end *c = &p.client, *s = &p.server;
        struct call connect, accept, done;
        enum cause cause = cases[i / 2].cause;
        int form = i % 2;

        ends_open(&p, cause == PEER_SILENT ? "establish_ms=50" : NULL);
        dial(c, &p.listening.address, &connect);
        s->connector = next_incoming(&p.listening);
        accept_form(form, s, &accept);
        assert_int_equal(later(&connect), STATUS_SUCCESS);
        if (cause == PEER_LEAVES)
            drop(c);
        if (cause == PEER_REJECTS)
            assert_int_equal(c->connector->Dispatch->NdkReject(c->connector, NULL, 0),
                             STATUS_SUCCESS);
        if (cause == CLOSED_HERE)
            drop(s);
        if (cause == OVERRUN_HERE)
            overrun(s);
        if (cause == PEER_AGREES)
            complete_form(form, c, &done);
        expect_status("accept", form, later(&accept), cases[i / 2].status);
        if (cause == PEER_AGREES)
            assert_int_equal(wait_end(&done.wait, done.returned), STATUS_SUCCESS);
        pair_close(&p);
    }
}

/* The connecting peer went while the consumer made up its mind. A second one arrives behind that,
 * on the listener's thread: what that thread heard before, it knows. */
static void accept_of_one_that_left(void **state)
{
    (void)state;
    for (int form = 0; form < 2; form++) {
        struct pair p;
        struct call connect, again, accept;
        NDK_CONNECTOR *second;

        ends_open(&p, NULL);
        dial(&p.client, &p.listening.address, &connect);
        p.server.connector = next_incoming(&p.listening);
        drop(&p.client);
        assert_int_equal(later(&connect), STATUS_CANCELLED);
        dial(&p.client, &p.listening.address, &again);
        second = next_incoming(&p.listening);
        accept_form(form, &p.server, &accept);
        expect_status("accept", form, at_once(&accept), STATUS_CONNECTION_ABORTED);
        CLOSE(second, NdkCloseConnector);
        assert_int_equal(later(&again), STATUS_CONNECTION_REFUSED);
        pair_close(&p);
    }
}

/* ---- Disconnect ----------------------------------------------------------------------------- */

/* Our FIN is out, the peer's is not in. */
static void disconnect_outcomes(void **state)
{
    static const struct {
        enum cause cause;
        NTSTATUS status;
    } cases[] = {{PEER_LEAVES, STATUS_CONNECTION_ABORTED},
                 {PEER_SILENT, STATUS_IO_TIMEOUT},
                 {CLOSED_HERE, STATUS_CANCELLED},
                 {OVERRUN_HERE, STATUS_INTERNAL_ERROR},
                 {PEER_AGREES, STATUS_SUCCESS}};

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct foreign f;
        struct call connect, done, end;

        foreign_open(&f, cases[i].cause == PEER_SILENT ? "disconnect_ms=50" : NULL);
        foreign_dial(&f, &connect);
        foreign_reply(&f, &connect);
        complete_form(1, &f.end, &done);
        peer_answer_rtr_read(&f.peer);
        assert_int_equal(later(&done), STATUS_SUCCESS);
        disconnect(&f.end, &end);
        assert_int_equal(end.returned, STATUS_PENDING);
        if (cases[i].cause != PEER_SILENT)
            assert_int_equal(peer_await_end(&f.peer), PEER_FIN);
        switch (cases[i].cause) {
        case PEER_LEAVES:
            peer_hang_up(&f.peer, true);
            break;
        case CLOSED_HERE:
            drop(&f.end);
            break;
        case OVERRUN_HERE:
            overrun(&f.end);
            break;
        case PEER_AGREES:
            peer_hang_up(&f.peer, false);
            break;
        default:
            break;
        }
        expect_status("disconnect", (int)i, later(&end), cases[i].status);
        assert_int_equal(atomic_load(&f.end.disconnects), 0);
        foreign_close(&f);
    }
}

/* It has ended already, which the event told of: nothing is left to wait for. */
static void disconnect_when_it_is_over(void **state)
{
    struct pair p;
    struct call end;

    (void)state;
    pair_open(&p, "127.0.0.1", NULL, NULL);
    drop(&p.server);
    if (!wait_event(&p.client.disconnected, WAIT_S * 1000))
        test_fail("no disconnect event");
    disconnect(&p.client, &end);
    assert_int_equal(at_once(&end), STATUS_SUCCESS);
    disconnect(&p.client, &end);
    assert_int_equal(at_once(&end), STATUS_CONNECTION_INVALID);
    pair_close(&p);
}

/* ---- Reject and the queries: always inline ----------------------------------------------------
 */

static void reject_arguments(void **state)
{
    struct pair p;
    struct call connect;
    NDK_CONNECTOR *k;

    (void)state;
    ends_open(&p, NULL);
    dial(&p.client, &p.listening.address, &connect);
    k = p.server.connector = next_incoming(&p.listening);
    assert_int_equal(k->Dispatch->NdkReject(k, NULL, 1), STATUS_INVALID_PARAMETER);
    expect_reason(&k->Header, "pPrivateData is NULL");
    /* No memory for the Reply: on request, as it does not come by itself. Nothing is decided. */
    fail_next("NdkReject", STATUS_INSUFFICIENT_RESOURCES);
    assert_int_equal(k->Dispatch->NdkReject(k, NULL, 0), STATUS_INSUFFICIENT_RESOURCES);
    assert_int_equal(softndk_set_fail(NULL), STATUS_SUCCESS);
    assert_int_equal(k->Dispatch->NdkReject(k, NULL, 0), STATUS_SUCCESS);
    assert_int_equal(later(&connect), STATUS_CONNECTION_REFUSED);
    pair_close(&p);
}

static void query_arguments(void **state)
{
    struct pair p;
    NDK_CONNECTOR *k;
    NDK_LISTENER *l;
    SOCKADDR_INET address;
    ULONG length = 1;

    (void)state;
    memset(&p, 0, sizeof p);
    pair_open(&p, "127.0.0.1", NULL, NULL);
    k = p.client.connector;
    l = p.listening.listener;
    assert_int_equal(k->Dispatch->NdkGetLocalAddress(k, (PSOCKADDR)&address, NULL),
                     STATUS_INVALID_PARAMETER);
    assert_int_equal(k->Dispatch->NdkGetPeerAddress(k, (PSOCKADDR)&address, NULL),
                     STATUS_INVALID_PARAMETER);
    assert_int_equal(l->Dispatch->NdkGetLocalAddress(l, (PSOCKADDR)&address, NULL),
                     STATUS_INVALID_PARAMETER);
    assert_int_equal(k->Dispatch->NdkGetConnectionData(k, NULL, NULL, NULL, &length),
                     STATUS_INVALID_PARAMETER);
    pair_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_connect_overrun),
        cmocka_unit_test(a_dead_queue_pair),
        cmocka_unit_test(an_idle_connection_overrun),
        cmocka_unit_test(complete_after_an_overrun),
        cmocka_unit_test(a_used_connector),
        cmocka_unit_test(complete_outcomes),
        cmocka_unit_test(complete_at_once),
        cmocka_unit_test(complete_of_one_that_left),
        cmocka_unit_test(accept_outcomes),
        cmocka_unit_test(accept_of_one_that_left),
        cmocka_unit_test(disconnect_outcomes),
        cmocka_unit_test(disconnect_when_it_is_over),
        cmocka_unit_test(reject_arguments),
        cmocka_unit_test(query_arguments),
    };

    return RUN_IN_MODES(tests);
}
