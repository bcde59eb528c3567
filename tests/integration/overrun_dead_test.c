// SPDX-License-Identifier: MIT
/*
 * A CQ that overran takes every queue pair with it that uses it, idle ones too, whatever their
 * state: connected, connecting, not connected. What such a CQ or queue pair is asked for later is
 * refused. And a death beside connects and closes of the queue pairs.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <pthread.h>

#include <cmocka.h>

/* before ends.h: the peer alone */
#include "peer.h"

#include "shallow.h"
#include "shared.h"

#define DEPTH 4

static void arm_errors(struct watched *cq)
{
    cq->queue.cq->Dispatch->NdkArmCq(cq->queue.cq, NDK_CQ_NOTIFY_ERRORS);
}

/* The CQ dies: by the flush of an own queue pair, not connected, with more receives than it has
 * room for. */
static void overrun_by_flush(struct end *end, struct watched *cq, unsigned depth)
{
    NDK_QP *qp = make_qp_with(end, &cq->queue, &cq->queue);

    for (unsigned i = 0; i <= depth; i++)
        assert_int_equal(qp->Dispatch->NdkReceive(qp, NULL, NULL, 0), STATUS_SUCCESS);
    qp->Dispatch->NdkFlush(qp);
    CLOSE(qp, NdkCloseQp);
}

/* ---- shared CQs ----------------------------------------------------------------------------- */

enum shared { RECEIVE_OF_BOTH, RECEIVE_AND_INITIATOR, INITIATOR_OF_BOTH };

/* Two connections between two adapters; two of the server's CQs are one. */
static void two_share(const char *what, enum shared shared)
{
    struct shallow a; /* its server is the one that overruns */
    const struct depths depths = {.server_receive = shared == INITIATOR_OF_BOTH ? 0 : DEPTH,
                                  .server_initiator = shared == INITIATOR_OF_BOTH ? DEPTH : 0};
    struct watched spare, *dies;
    struct pair b;

    shallow_open(&a, NULL, depths);
    dies = shared == INITIATOR_OF_BOTH ? &a.server_initiator : &a.server_receive;

    /* The second connection: a server end in the adapter of the first, with one CQ of it. */
    memset(&b, 0, sizeof b);
    end_open(&b.client, NULL);
    b.server = a.pair.server;
    b.server.connector = NULL;
    atomic_store(&b.server.disconnects, 0);
    KeInitializeEvent(&b.server.disconnected, NotificationEvent, FALSE);
    watched_open(b.server.adapter, 0, &spare);
    b.server.qp = make_qp_with(&b.server, shared == RECEIVE_OF_BOTH ? &dies->queue : &spare.queue,
                               shared == RECEIVE_OF_BOTH ? &spare.queue : &dies->queue);
    listen_on(b.server.adapter, "127.0.0.1", &b.listening);
    pair_connect(&b);

    arm_errors(dies);
    if (shared == INITIATOR_OF_BOTH) {
        post_receives(&a.pair.client, DEPTH + 1);
        post_sends(&a.pair.server, DEPTH, NDK_OP_FLAG_DEFER);
        post_sends(&a.pair.server, 1, 0);
    } else {
        post_receives(&a.pair.server, DEPTH + 1);
        post_sends(&a.pair.client, DEPTH + 1, 0);
    }
    expect_death(dies, what);
    expect_posts_refused(&a.pair.server, &a.server);
    expect_posts_refused(&b.server, &a.server); /* although it did nothing */
    expect_dead_pair(&a.pair.server, &a.pair.client, what);
    expect_dead_pair(&b.server, &b.client, what);

    end_close(&b.client);
    CLOSE(b.server.connector, NdkCloseConnector);
    CLOSE(b.server.qp, NdkCloseQp);
    CLOSE(b.listening.listener, NdkCloseListener);
    watched_close(&spare, 0);
    shallow_close(&a, 1);
}

static void all_that_share_it_die(void **state)
{
    (void)state;
    two_share("the receive CQ of both", RECEIVE_OF_BOTH);
    two_share("receive CQ of the one, initiator CQ of the other", RECEIVE_AND_INITIATOR);
    two_share("the initiator CQ of both", INITIATOR_OF_BOTH);
}

/* The CQ of an idle pair dies by somebody else's flush: its receives come back through the CQ that
 * lives, if that is theirs. */
static void an_idle_one_is_flushed(void **state)
{
    struct watched lives, dies;
    struct end end;

    (void)state;
    end_open(&end, NULL);
    CLOSE(end.qp, NdkCloseQp);
    watched_open(end.adapter, 0, &lives);
    watched_open(end.adapter, 2, &dies);
    end.qp = make_qp_with(&end, &lives.queue, &dies.queue);
    post_receives(&end, 3);
    overrun_by_flush(&end, &dies, 2);
    for (uintptr_t i = 1; i <= 3; i++)
        expect_completion(&lives.queue, "a receive", (PVOID)i, NdkOperationTypeReceive,
                          STATUS_CANCELLED);
    assert_int_equal(end.qp->Dispatch->NdkReceive(end.qp, NULL, NULL, 0),
                     STATUS_CONNECTION_INVALID);
    CLOSE(end.qp, NdkCloseQp);
    end.qp = NULL;
    watched_close(&dies, 0); /* nobody had armed it */
    watched_close(&lives, 0);
    end_close(&end);
}

/* ---- what is refused afterwards ------------------------------------------------------------- */

/* A queue pair whose CQ died, and a listener with a client that connects. */
struct corpse {
    struct end server, client;
    struct watched cq;
    NDK_QP *qp;
    struct listening listening;
    struct wait connect;
};

static void corpse_open(struct corpse *c, bool incoming)
{
    SOCKADDR_INET local;
    NTSTATUS status;

    memset(c, 0, sizeof *c);
    end_open(&c->server, NULL);
    end_open(&c->client, NULL);
    watched_open(c->server.adapter, 2, &c->cq);
    c->qp = make_qp_with(&c->server, &c->server.receive, &c->cq.queue);
    overrun_by_flush(&c->server, &c->cq, 2);
    listen_on(c->server.adapter, "127.0.0.1", &c->listening);
    if (!incoming)
        return;
    local = local_of(&c->listening);
    c->client.connector = make_connector(c->client.adapter);
    wait_init(&c->connect);
    status = c->client.connector->Dispatch->NdkConnect(
        c->client.connector, c->client.qp, (PSOCKADDR)&local, c->listening.address_length,
        (PSOCKADDR)&c->listening.address, c->listening.address_length, 1, 1, NULL, 0, wait_request,
        &c->connect);
    assert_int_equal(status, STATUS_PENDING);
    c->server.connector = next_incoming(&c->listening);
}

static void corpse_close(struct corpse *c)
{
    if (c->server.connector) {
        CLOSE(c->server.connector, NdkCloseConnector);
        c->server.connector = NULL;
    }
    CLOSE(c->qp, NdkCloseQp);
    watched_close(&c->cq, 0);
    end_close(&c->client);
    CLOSE(c->listening.listener, NdkCloseListener);
    end_close(&c->server);
}

/* What a call on the dead answers: at once in mode never, through the callback in mode always. */
#define REFUSED(call, w, wanted)                                                                   \
    do {                                                                                           \
        NTSTATUS status_;                                                                          \
                                                                                                   \
        wait_init(w);                                                                              \
        status_ = (call);                                                                          \
        assert_true(status_ == STATUS_PENDING || status_ == (wanted));                             \
        assert_int_equal(status_ == STATUS_PENDING, always);                                       \
        assert_int_equal(wait_end(w, status_), wanted);                                            \
    } while (0)

static bool always;

static int mode_never(void **state)
{
    always = false;
    return pend_never(state);
}

static int mode_always(void **state)
{
    always = true;
    return pend_always(state);
}

/* As BOTH_MODES, and `always` says which. */
#define KNOWN_MODES(test)                                                                          \
    {#test " (never)", test, mode_never, NULL, NULL},                                              \
    {                                                                                              \
#test " (always)", test, mode_always, NULL, NULL                                           \
    }

static NDK_SRQ *make_srq(struct end *end)
{
    NDK_SRQ *srq = NULL;
    struct wait w;
    NTSTATUS status;

    wait_init(&w);
    status =
        end->pd->Dispatch->NdkCreateSrq(end->pd, 4, 1, 0, NULL, NULL, NULL, wait_create, &w, &srq);
    assert_int_equal(wait_end(&w, status), STATUS_SUCCESS);
    return status == STATUS_PENDING ? (NDK_SRQ *)(void *)w.object : srq;
}

static void no_queue_pair_is_created(void **state)
{
    NDK_QP *qp = NULL;
    struct corpse c;
    struct wait w;
    NDK_SRQ *srq;

    (void)state;
    corpse_open(&c, false);
    srq = make_srq(&c.server);
    for (int first = 0; first < 2; first++) {
        NDK_CQ *receive = first ? c.cq.queue.cq : c.server.receive.cq;
        NDK_CQ *initiator = first ? c.server.initiator.cq : c.cq.queue.cq;

        REFUSED(c.server.pd->Dispatch->NdkCreateQp(c.server.pd, receive, initiator, NULL, 1, 1, 1,
                                                   1, 0, wait_create, &w, &qp),
                &w, STATUS_INVALID_DEVICE_STATE);
        REFUSED(c.server.pd->Dispatch->NdkCreateQpWithSrq(c.server.pd, receive, initiator, srq,
                                                          NULL, 1, 1, 0, wait_create, &w, &qp),
                &w, STATUS_INVALID_DEVICE_STATE);
    }
    assert_null(qp);
    CLOSE(srq, NdkCloseSrq);
    corpse_close(&c);
}

static void no_connect_is_started(void **state)
{
    NDK_SHARED_ENDPOINT *endpoint;
    SOCKADDR_INET local;
    struct corpse c;
    struct wait w;

    (void)state;
    corpse_open(&c, false);
    local = local_of(&c.listening);
    endpoint = make_shared(c.server.adapter, &local);
    c.server.connector = make_connector(c.server.adapter);
    for (int turn = 0; turn < 2; turn++) {
        REFUSED(c.server.connector->Dispatch->NdkConnect(
                    c.server.connector, c.qp, (PSOCKADDR)&local, c.listening.address_length,
                    (PSOCKADDR)&c.listening.address, c.listening.address_length, 1, 1, NULL, 0,
                    wait_request, &w),
                &w, STATUS_INTERNAL_ERROR);
        REFUSED(c.server.connector->Dispatch->NdkConnectWithSharedEndpoint(
                    c.server.connector, c.qp, endpoint, (PSOCKADDR)&c.listening.address,
                    c.listening.address_length, 1, 1, NULL, 0, wait_request, &w),
                &w, STATUS_INTERNAL_ERROR);
    }
    CLOSE(endpoint, NdkCloseSharedEndpoint);
    corpse_close(&c);
}

/* The connection stays undecided: another queue pair can have it. */
static void no_connection_is_accepted(void **state)
{
    struct corpse c;
    struct wait w;
    NTSTATUS status;

    (void)state;
    corpse_open(&c, true);
    REFUSED(c.server.connector->Dispatch->NdkAccept(c.server.connector, c.qp, 1, 1, NULL, 0, NULL,
                                                    NULL, wait_request, &w),
            &w, STATUS_INTERNAL_ERROR);
    REFUSED(c.server.connector->Dispatch->NdkAcceptEx(c.server.connector, c.qp, 1, 1, NULL, 0,
                                                      end_disconnected, &c.server, wait_request,
                                                      &w),
            &w, STATUS_INTERNAL_ERROR);
    wait_init(&w);
    status = c.server.connector->Dispatch->NdkAccept(c.server.connector, c.server.qp, 1, 1, NULL, 0,
                                                     NULL, NULL, wait_request, &w);
    assert_int_equal(wait_end(&c.connect, STATUS_PENDING), STATUS_SUCCESS);
    {
        struct wait complete;

        wait_init(&complete);
        assert_int_equal(
            wait_end(&complete, c.client.connector->Dispatch->NdkCompleteConnect(
                                    c.client.connector, NULL, NULL, wait_request, &complete)),
            STATUS_SUCCESS);
    }
    assert_int_equal(wait_end(&w, status), STATUS_SUCCESS);
    corpse_close(&c);
}

/* ---- a death meanwhile ---------------------------------------------------------------------- */

/* What pends when the CQ dies is answered. */
static void what_pends_is_answered(void **state)
{
    struct shallow s;
    const struct depths depths = {.client_initiator = 2};
    struct corpse c;
    struct wait w;
    NTSTATUS status;

    (void)state;
    /* a connect that is not accepted, an accept that is not completed: the CQ is not dead yet */
    memset(&c, 0, sizeof c);
    for (int accept = 0; accept < 2; accept++) {
        struct watched cq;
        NDK_QP *qp;
        SOCKADDR_INET local;
        struct end *dying;

        end_open(&c.server, NULL);
        end_open(&c.client, NULL);
        dying = accept ? &c.server : &c.client;
        listen_on(c.server.adapter, "127.0.0.1", &c.listening);
        watched_open(dying->adapter, 2, &cq);
        qp = make_qp_with(dying, &dying->receive, &cq.queue);
        local = local_of(&c.listening);
        c.client.connector = make_connector(c.client.adapter);
        wait_init(&c.connect);
        assert_int_equal(c.client.connector->Dispatch->NdkConnect(
                             c.client.connector, accept ? c.client.qp : qp, (PSOCKADDR)&local,
                             c.listening.address_length, (PSOCKADDR)&c.listening.address,
                             c.listening.address_length, 1, 1, NULL, 0, wait_request, &c.connect),
                         STATUS_PENDING);
        c.server.connector = next_incoming(&c.listening);
        wait_init(&w);
        status = STATUS_PENDING;
        if (accept) {
            status = c.server.connector->Dispatch->NdkAccept(c.server.connector, qp, 1, 1, NULL, 0,
                                                             NULL, NULL, wait_request, &w);
            assert_int_equal(wait_end(&c.connect, STATUS_PENDING), STATUS_SUCCESS);
        }
        overrun_by_flush(dying, &cq, 2);
        if (accept)
            assert_int_equal(wait_end(&w, status), STATUS_INTERNAL_ERROR);
        else
            assert_int_equal(wait_end(&c.connect, STATUS_PENDING), STATUS_INTERNAL_ERROR);
        CLOSE(c.server.connector, NdkCloseConnector);
        c.server.connector = NULL;
        CLOSE(c.client.connector, NdkCloseConnector);
        c.client.connector = NULL;
        CLOSE(qp, NdkCloseQp);
        watched_close(&cq, 0);
        end_close(&c.client);
        CLOSE(c.listening.listener, NdkCloseListener);
        end_close(&c.server);
    }
    /* a disconnect that the peer does not answer, since it is held back */
    shallow_open(&s, NULL, depths);
    post_sends(&s.pair.client, 1, 0);
    expect_completion(&s.client_initiator.queue, "a send", (PVOID)1, NdkOperationTypeSend,
                      STATUS_SUCCESS);
    wait_init(&w);
    status =
        s.pair.client.connector->Dispatch->NdkDisconnect(s.pair.client.connector, wait_request, &w);
    overrun_by_flush(&s.pair.client, &s.client_initiator, 2);
    assert_int_equal(wait_end(&w, status), STATUS_INTERNAL_ERROR);
    shallow_close(&s, 0);
}

struct racing {
    pthread_t thread;
    NDK_QP *flushed;
    unsigned delay;
    atomic_bool ready, go;
};

static void *flush_then(void *context)
{
    struct racing *r = context;

    atomic_store(&r->ready, true);
    while (!atomic_load(&r->go))
        ;
    for (volatile unsigned spin = 0; spin < r->delay; spin++)
        ;
    r->flushed->Dispatch->NdkFlush(r->flushed);
    return NULL;
}

/* The CQ dies by another's flush while a queue pair begins to connect: the connect fails, also when
 * the death came between the two. The peer never answers. */
static void dies_while_a_connect_begins(void **state)
{
    SOCKADDR_INET local, address;
    unsigned at_once = 0;
    struct end client;
    struct peer peer;
    ULONG length;
    uint16_t port;

    (void)state;
    end_open(&client, NULL);
    peer_init(&peer);
    port = peer_listen(&peer);
    assert_int_equal(softndk_address_from_text("127.0.0.1", &address, &length), STATUS_SUCCESS);
    local = address;
    address.Ipv4.sin_port = (USHORT)(port >> 8 | port << 8);
    for (unsigned round = 0; round < 300; round++) {
        struct racing r = {.delay = round * 97 % 30000};
        struct watched cq;
        struct wait w;
        NTSTATUS status;
        NDK_QP *qp;

        watched_open(client.adapter, 1, &cq);
        r.flushed = make_qp_with(&client, &cq.queue, &cq.queue);
        qp = make_qp_with(&client, &client.receive, &cq.queue);
        for (int i = 0; i < 2; i++)
            assert_int_equal(r.flushed->Dispatch->NdkReceive(r.flushed, NULL, NULL, 0),
                             STATUS_SUCCESS);
        client.connector = make_connector(client.adapter);
        assert_int_equal(pthread_create(&r.thread, NULL, flush_then, &r), 0);
        wait_init(&w);
        wait_until(atomic_load(&r.ready), "the other thread");
        atomic_store(&r.go, true);
        for (volatile unsigned spin = 0; round % 3 == 0 && spin < 2 * r.delay; spin++)
            ;
        status = client.connector->Dispatch->NdkConnect(client.connector, qp, (PSOCKADDR)&local,
                                                        length, (PSOCKADDR)&address, length, 1, 1,
                                                        NULL, 0, wait_request, &w);
        at_once += status == STATUS_INTERNAL_ERROR;
        pthread_join(r.thread, NULL);
        assert_int_equal(wait_end(&w, status), STATUS_INTERNAL_ERROR);
        while (peer_connect_arrives(&peer, 0)) {
            peer_accept(&peer);
            peer_hang_up(&peer, true);
        }
        CLOSE(client.connector, NdkCloseConnector);
        client.connector = NULL;
        CLOSE(r.flushed, NdkCloseQp);
        CLOSE(qp, NdkCloseQp);
        watched_close(&cq, 0);
    }
    print_message("%u of 300 refused at once\n", at_once);
    end_close(&client);
    peer_close(&peer);
}

/* ... while queue pairs that use it are closed and others are created. */
static void dies_while_queue_pairs_come_and_go(void **state)
{
    struct end end;

    (void)state;
    end_open(&end, NULL);
    for (unsigned round = 0; round < 300; round++) {
        struct racing r = {.delay = round * 31 % 3000};
        NDK_QP *others[4];
        struct watched cq;
        struct wait w;

        watched_open(end.adapter, 1, &cq);
        arm_errors(&cq);
        r.flushed = make_qp_with(&end, &cq.queue, &cq.queue);
        for (int i = 0; i < 2; i++)
            assert_int_equal(r.flushed->Dispatch->NdkReceive(r.flushed, NULL, NULL, 0),
                             STATUS_SUCCESS);
        for (int i = 0; i < 4; i++)
            others[i] = make_qp_with(&end, &cq.queue, &end.initiator);
        assert_int_equal(pthread_create(&r.thread, NULL, flush_then, &r), 0);
        wait_until(atomic_load(&r.ready), "the other thread");
        atomic_store(&r.go, true);
        for (int i = 0; i < 4; i++)
            CLOSE(others[i], NdkCloseQp);
        for (int i = 0; i < 4; i++) {
            NDK_QP *qp = NULL;
            NTSTATUS status, final;

            wait_init(&w);
            status = end.pd->Dispatch->NdkCreateQp(end.pd, cq.queue.cq, cq.queue.cq, NULL, 1, 1, 1,
                                                   1, 0, wait_create, &w, &qp);
            final = wait_end(&w, status);
            if (status == STATUS_PENDING)
                qp = (NDK_QP *)(void *)w.object;
            assert_true(final == STATUS_SUCCESS || final == STATUS_INVALID_DEVICE_STATE);
            if (final == STATUS_SUCCESS)
                CLOSE(qp, NdkCloseQp);
        }
        pthread_join(r.thread, NULL);
        expect_death(&cq, "a flush beside closes");
        CLOSE(r.flushed, NdkCloseQp);
        watched_close(&cq, 1);
    }
    end_close(&end);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH_MODES(all_that_share_it_die),       BOTH_MODES(an_idle_one_is_flushed),
        KNOWN_MODES(no_queue_pair_is_created),   KNOWN_MODES(no_connect_is_started),
        KNOWN_MODES(no_connection_is_accepted),  BOTH_MODES(what_pends_is_answered),
        BOTH_MODES(dies_while_a_connect_begins), BOTH_MODES(dies_while_queue_pairs_come_and_go),
    };

    return cmocka_run_group_tests_name("overrun, dead", tests, NULL, NULL);
}
