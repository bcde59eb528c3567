// SPDX-License-Identifier: MIT
/*
 * Faults of the system under a connection, and an end that comes too soon: a poll set
 * that takes no descriptor, descriptors that run out, a peer that resets while a Send of its is
 * held back, and completions that promise more than `local` when both ends disconnect.
 */
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ends.h"
#include "os/os.h"
#include "provider/cq.h"
#include "provider/listener.h"

static NTSTATUS connect_start(struct pair *p, struct wait *w)
{
    struct end *c = &p->client;
    SOCKADDR_INET local = local_of(&p->listening);

    c->connector = make_connector(c->adapter);
    wait_init(w);
    return c->connector->Dispatch->NdkConnect(
        c->connector, c->qp, (PSOCKADDR)&local, p->listening.address_length,
        (PSOCKADDR)&p->listening.address, p->listening.address_length, 1, 1, NULL, 0, wait_request,
        w);
}

static void ends_open(struct pair *p, const char *options)
{
    end_open(&p->server, options);
    end_open(&p->client, options);
    listen_on(p->server.adapter, "127.0.0.1", &p->listening);
}

static void again(struct pair *p)
{
    CLOSE(p->client.connector, NdkCloseConnector);
    p->client.connector = NULL;
    pair_connect(p);
    pair_close(p);
}

/* The accepted socket cannot be watched: that connection is lost, nothing else. The peer is a bare
 * socket, so that nobody else uses up the fault. */
static void incoming_is_not_watched(void **state)
{
    struct pair p;

    (void)state;
    for (int round = 0; round < 3; round++) {
        struct os_addr address = {.family = OS_FAMILY_V4, .ip = {127, 0, 0, 1}};
        int fd = os_tcp_socket(OS_FAMILY_V4), err;

        ends_open(&p, NULL);
        address.port = (uint16_t)(p.listening.address.Ipv4.sin_port << 8 |
                                  p.listening.address.Ipv4.sin_port >> 8);
        os_fault_set("poll_add", 1, ENOMEM, false);
        err = os_tcp_connect(fd, &address);
        assert_true(err == 0 || err == -EINPROGRESS);
        wait_until(os_tcp_peek(fd) != -EAGAIN, "the end of the connection");
        os_fault_clear();
        os_tcp_close(fd);
        pair_connect(&p);
        pair_close(&p);
    }
}

/* A QP of the server, with receives in a CQ that is not at home where the listener is. */
static NDK_QP *qp_away(struct pair *p, struct queue *queue)
{
    NDK_PD *pd = p->server.pd;
    NDK_QP *qp = NULL;
    struct wait w;
    NTSTATUS status;

    for (;;) {
        make_queue(p->server.adapter, END_DEPTH, queue);
        if (cq_from(queue->cq)->object.home != listener_from(p->listening.listener)->object.home)
            break;
        CLOSE(queue->cq, NdkCloseCq);
    }
    wait_init(&w);
    status = pd->Dispatch->NdkCreateQp(pd, queue->cq, queue->cq, NULL, 8, 8, 1, 1, 0, wait_create,
                                       &w, &qp);
    assert_int_equal(wait_end(&w, status), STATUS_SUCCESS);
    return status == STATUS_PENDING ? (NDK_QP *)(void *)w.object : qp;
}

/* The accepted connection cannot enter the poll set of its new shard. */
static void accepted_does_not_move(void **state)
{
    (void)state;
    for (int round = 0; round < 8; round++) {
        struct pair p;
        struct wait connect, accept;
        struct end *s = &p.server;
        struct queue away;
        NTSTATUS connecting, status;
        NDK_QP *qp;

        ends_open(&p, "shards=3,retry_v1=0");
        qp = qp_away(&p, &away);
        connecting = connect_start(&p, &connect);
        s->connector = next_incoming(&p.listening);
        os_fault_set("poll_add", 1, ENOMEM, false);
        wait_init(&accept);
        status = s->connector->Dispatch->NdkAcceptEx(s->connector, qp, 1, 1, NULL, 0,
                                                     end_disconnected, s, wait_request, &accept);
        assert_int_equal(wait_end(&accept, status), STATUS_INSUFFICIENT_RESOURCES);
        os_fault_clear();
        CLOSE(s->connector, NdkCloseConnector);
        s->connector = NULL;
        wait_end(&connect, connecting);
        CLOSE(p.client.connector, NdkCloseConnector);
        p.client.connector = NULL;
        CLOSE(qp, NdkCloseQp);
        CLOSE(away.cq, NdkCloseCq);
        pair_close(&p);
    }
}

/* A connect that fails at once, at the poll set, leaves the connector as it was. The target is a
 * socket that nobody accepts from, so that no other end uses up the fault. */
static void connector_is_used_again(void **state)
{
    struct pair p;
    struct end *c = &p.client;
    struct os_addr address = {.family = OS_FAMILY_V4, .ip = {127, 0, 0, 1}};
    SOCKADDR_INET target, local;
    int fd = os_tcp_socket(OS_FAMILY_V4);

    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(os_tcp_bind(fd, &address), 0);
    assert_int_equal(os_tcp_listen(fd, 8), 0);
    assert_int_equal(os_tcp_local(fd, &address), 0);
    ends_open(&p, "shards=3");
    target = p.listening.address;
    target.Ipv4.sin_port = (USHORT)(address.port << 8 | address.port >> 8);
    local = local_of(&p.listening);
    c->connector = make_connector(c->adapter);
    for (int round = 0; round < 4; round++) {
        struct wait w;

        os_fault_set("poll_add", 1, ENOMEM, false);
        wait_init(&w);
        assert_int_equal(
            wait_end(&w, c->connector->Dispatch->NdkConnect(
                             c->connector, c->qp, (PSOCKADDR)&local, p.listening.address_length,
                             (PSOCKADDR)&target, p.listening.address_length, 1, 1, NULL, 0,
                             wait_request, &w)),
            STATUS_INSUFFICIENT_RESOURCES);
        os_fault_clear();
    }
    os_tcp_close(fd);
    again(&p);
}

/* The connection is lost before the peer's Reply, to the transmit of the Request or to a receive:
 * the status tells of a connect that failed. */
static void lost_before_the_reply(void **state)
{
    static const struct {
        const char *op;
        int error;
        NTSTATUS status;
    } cases[] = {
        {"send", ECONNRESET, STATUS_CONNECTION_REFUSED},
        {"send", EPIPE, STATUS_CONNECTION_REFUSED},
        {"send", ETIMEDOUT, STATUS_IO_TIMEOUT},
        {"recv", ECONNRESET, STATUS_CONNECTION_REFUSED},
        {"recv", ETIMEDOUT, STATUS_IO_TIMEOUT},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct os_addr address = {.family = OS_FAMILY_V4, .ip = {127, 0, 0, 1}}, from;
        int fd = os_tcp_socket(OS_FAMILY_V4), peer = -EAGAIN;
        NTSTATUS connecting;
        struct pair p;
        struct wait w;

        assert_int_equal(os_tcp_bind(fd, &address), 0);
        assert_int_equal(os_tcp_listen(fd, 8), 0);
        assert_int_equal(os_tcp_local(fd, &address), 0);
        ends_open(&p, "retry_v1=0");
        p.listening.address.Ipv4.sin_port = (USHORT)(address.port << 8 | address.port >> 8);
        assert_int_equal(os_fault_set(cases[i].op, 1, cases[i].error, false), 0);
        connecting = connect_start(&p, &w);
        wait_until((peer = os_tcp_accept(fd, &from)) != -EAGAIN, "the connection");
        assert_true(peer >= 0);
        os_tcp_close(peer); /* something to receive */
        assert_int_equal(wait_end(&w, connecting), cases[i].status);
        os_fault_clear();
        os_tcp_close(fd);
        CLOSE(p.client.connector, NdkCloseConnector);
        p.client.connector = NULL;
        pair_close(&p);
    }
}

/* No descriptor is left for a moment: the connection waits in the backlog and is then served. */
static void descriptors_run_out(void **state)
{
    struct pair p;
    struct wait w;
    NTSTATUS connecting;

    (void)state;
    ends_open(&p, NULL);
    os_fault_set("accept", 1, EMFILE, false);
    connecting = connect_start(&p, &w);
    p.server.connector = next_incoming(&p.listening);
    os_fault_clear();
    CLOSE(p.server.connector, NdkCloseConnector);
    p.server.connector = NULL;
    assert_int_equal(wait_end(&w, connecting), STATUS_CONNECTION_REFUSED);
    again(&p);
}

/* The peer disconnects, we Send and disconnect: what it received completes with success here. */
static void promised_until_the_end(void **state)
{
    static const char *const options[] = {"completion=placed", "completion=acked"};

    (void)state;
    for (int round = 0; round < 40; round++) {
        struct pair p;
        struct end *c = &p.client, *s = &p.server;
        struct memory from, to;
        struct wait ours, theirs;
        NTSTATUS ours_returned, theirs_returned;
        NDK_SGE out, in;

        pair_open(&p, "127.0.0.1", options[round % 2], options[round % 2]);
        make_memory(c->pd, 524288, 0, &from);
        make_memory(s->pd, 524288, NDK_MR_FLAG_ALLOW_LOCAL_WRITE, &to);
        out = memory_sge(&from, 0, 524288);
        in = memory_sge(&to, 0, 524288);
        assert_int_equal(s->qp->Dispatch->NdkReceive(s->qp, &to, &in, 1), STATUS_SUCCESS);
        wait_init(&theirs);
        theirs_returned =
            s->connector->Dispatch->NdkDisconnect(s->connector, wait_request, &theirs);
        if (!wait_event(&c->disconnected, WAIT_S * 1000))
            test_fail("no disconnect event");
        assert_int_equal(c->qp->Dispatch->NdkSend(c->qp, &from, &out, 1, 0), STATUS_SUCCESS);
        wait_init(&ours);
        ours_returned = c->connector->Dispatch->NdkDisconnect(c->connector, wait_request, &ours);
        assert_int_equal(wait_end(&ours, ours_returned), STATUS_SUCCESS);
        assert_int_equal(wait_end(&theirs, theirs_returned), STATUS_SUCCESS);
        assert_int_equal(queue_next(&s->receive).Status, STATUS_SUCCESS);
        assert_int_equal(queue_next(&c->initiator).Status, STATUS_SUCCESS);
        free_memory(&from);
        free_memory(&to);
        pair_close(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(incoming_is_not_watched), cmocka_unit_test(accepted_does_not_move),
        cmocka_unit_test(connector_is_used_again), cmocka_unit_test(descriptors_run_out),
        cmocka_unit_test(lost_before_the_reply),   cmocka_unit_test(promised_until_the_end),
    };

    return cmocka_run_group_tests_name("end_faults", tests, NULL, NULL);
}
