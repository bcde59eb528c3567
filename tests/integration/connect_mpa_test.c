// SPDX-License-Identifier: MIT
/*
 * The options of the startup frames, each proved by octets that move: CRC by either side or by
 * none, connections without a ready-to-receive message, revision 1. Where no such message was
 * agreed, the passive side's Sends are held until the active side has spoken.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ends.h"

#define SIZE 100000u
#define RIGHTS                                                                                     \
    (NDK_MR_FLAG_ALLOW_LOCAL_WRITE | NDK_MR_FLAG_ALLOW_REMOTE_READ |                               \
     NDK_MR_FLAG_ALLOW_REMOTE_WRITE | NDK_MR_FLAG_RDMA_READ_SINK)

struct fixture {
    struct pair pair;
    struct memory client, server;
};

static void fixture_open(struct fixture *f, const char *address, const char *client,
                         const char *server)
{
    memset(f, 0, sizeof *f);
    end_open(&f->pair.server, server);
    end_open(&f->pair.client, client);
    listen_on(f->pair.server.adapter, address, &f->pair.listening);
    make_memory(f->pair.client.pd, SIZE, RIGHTS, &f->client);
    make_memory(f->pair.server.pd, SIZE, RIGHTS, &f->server);
}

static void fixture_close(struct fixture *f)
{
    free_memory(&f->client);
    free_memory(&f->server);
    pair_close(&f->pair);
}

static void expect_success(struct queue *queue)
{
    assert_int_equal(queue_next(queue).Status, STATUS_SUCCESS);
}

static void post_receive(struct end *end, const struct memory *memory)
{
    NDK_SGE sge = memory_sge(memory, 0, SIZE);

    assert_int_equal(end->qp->Dispatch->NdkReceive(end->qp, end, &sge, 1), STATUS_SUCCESS);
}

static void post_send(struct end *end, const struct memory *memory)
{
    NDK_SGE sge = memory_sge(memory, 0, SIZE);

    assert_int_equal(end->qp->Dispatch->NdkSend(end->qp, end, &sge, 1, 0), STATUS_SUCCESS);
}

/* A Send, a Write behind it and a Read, from one end to the other. */
static void move(struct end *from, const struct memory *source, struct end *to,
                 const struct memory *sink, unsigned seed)
{
    NDK_SGE sge = memory_sge(source, 0, SIZE);
    UINT64 remote = (UINT64)(uintptr_t)sink->data;

    fill(source->data, SIZE, seed);
    post_receive(to, sink);
    post_send(from, source);
    expect_success(&to->receive);
    expect_success(&from->initiator);
    assert_true(check(sink->data, SIZE, seed));
    fill(source->data, SIZE, seed + 1);
    assert_int_equal(from->qp->Dispatch->NdkWrite(from->qp, from, &sge, 1, remote, sink->remote, 0),
                     STATUS_SUCCESS);
    expect_success(&from->initiator);
    memset(source->data, 0, SIZE);
    assert_int_equal(from->qp->Dispatch->NdkRead(from->qp, from, &sge, 1, remote, sink->remote, 0),
                     STATUS_SUCCESS);
    expect_success(&from->initiator);
    assert_true(check(source->data, SIZE, seed + 1));
}

static void move_all(struct fixture *f)
{
    move(&f->pair.client, &f->client, &f->pair.server, &f->server, 3);
    move(&f->pair.server, &f->server, &f->pair.client, &f->client, 30);
}

/* ---- CRC ------------------------------------------------------------------------------------ */

static void crc(void **state)
{
    static const char *const ways[][2] = {
        {"crc=1", "crc=1"}, {"crc=0", "crc=0"}, {"crc=0", "crc=1"}, {"crc=1", "crc=0"}};
    struct fixture f;

    (void)state;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        fixture_open(&f, "127.0.0.1", ways[i][0], ways[i][1]);
        pair_connect(&f.pair);
        move_all(&f);
        fixture_close(&f);
    }
}

/* ---- without a ready-to-receive message ----------------------------------------------------- */

struct started {
    struct wait connect, accept, complete;
    NTSTATUS connecting, accepting, completing;
};

/* As far as the active side's decision. */
static void start(struct pair *p, struct started *t)
{
    SOCKADDR_INET local = local_of(&p->listening);
    struct end *c = &p->client, *s = &p->server;

    c->connector = make_connector(c->adapter);
    wait_init(&t->connect);
    wait_init(&t->accept);
    t->connecting = c->connector->Dispatch->NdkConnect(
        c->connector, c->qp, (PSOCKADDR)&local, p->listening.address_length,
        (PSOCKADDR)&p->listening.address, p->listening.address_length, 8, 8, NULL, 0, wait_request,
        &t->connect);
    s->connector = next_incoming(&p->listening);
    t->accepting = s->connector->Dispatch->NdkAcceptEx(
        s->connector, s->qp, 8, 8, NULL, 0, end_disconnected, s, wait_request, &t->accept);
    assert_int_equal(wait_end(&t->connect, t->connecting), STATUS_SUCCESS);
}

static void finish(struct pair *p, struct started *t)
{
    struct end *c = &p->client;

    wait_init(&t->complete);
    t->completing = c->connector->Dispatch->NdkCompleteConnectEx(c->connector, end_disconnected, c,
                                                                 wait_request, &t->complete);
    assert_int_equal(wait_end(&t->complete, t->completing), STATUS_SUCCESS);
}

/* The accept ends before anybody completed the connect; what the passive side posts then waits for
 * the active side's first Send. */
static void held_until_spoken_to(void **state)
{
    static const char *const options[] = {"p2p=0", "mpa_revision=1", "p2p=0,crc=0"};
    struct fixture f;
    struct started t;
    NDK_RESULT_EX result;

    (void)state;
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        struct end *c = &f.pair.client, *s = &f.pair.server;

        fixture_open(&f, "127.0.0.1", options[i], options[i]);
        start(&f.pair, &t);
        assert_int_equal(wait_end(&t.accept, t.accepting), STATUS_SUCCESS);
        post_receive(c, &f.client);
        post_receive(s, &f.server);
        fill(f.server.data, SIZE, 5);
        post_send(s, &f.server);
        finish(&f.pair, &t);
        if (t.completing != STATUS_PENDING)
            assert_int_equal(t.completing, STATUS_SUCCESS); /* there is nothing to wait for */
        /* Nothing may arrive; a Send that is not held arrives well within this time. */
        assert_false(queue_try(&c->receive, &result, 100));
        assert_false(queue_try(&s->initiator, &result, 1));
        assert_int_equal(c->qp->Dispatch->NdkSend(c->qp, c, NULL, 0, 0), STATUS_SUCCESS);
        expect_success(&s->receive);
        expect_success(&c->receive);
        expect_success(&s->initiator);
        expect_success(&c->initiator);
        assert_true(check(f.client.data, SIZE, 5));
        move_all(&f);
        fixture_close(&f);
    }
}

/* One side that does not ask for the peer-to-peer model, or speaks revision 1: the active side's
 * Request decides, the passive side answers in kind. */
static void mixed(void **state)
{
    static const char *const ways[][2] = {{"p2p=0", "p2p=1"},
                                          {"p2p=1", "p2p=0"},
                                          {"mpa_revision=1", "mpa_revision=2"},
                                          {"mpa_revision=1,crc=0", "crc=0"}};
    struct fixture f;

    (void)state;
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        fixture_open(&f, "127.0.0.1", ways[i][0], ways[i][1]);
        pair_connect(&f.pair);
        move_all(&f);
        fixture_close(&f);
    }
}

/* The passive side may end such a connection before a word was said: by a disconnect (a FIN is no
 * FPDU), or by a close. */
static void ended_before_a_word(void **state)
{
    struct fixture f;
    struct started t;
    struct wait w[2];
    NTSTATUS returned[2];

    (void)state;
    for (int i = 0; i < 2; i++) {
        struct end *c = &f.pair.client, *s = &f.pair.server;

        fixture_open(&f, "127.0.0.1", "p2p=0", "p2p=0");
        start(&f.pair, &t);
        assert_int_equal(wait_end(&t.accept, t.accepting), STATUS_SUCCESS);
        finish(&f.pair, &t);
        wait_init(&w[0]);
        wait_init(&w[1]);
        if (i == 0) {
            returned[0] = s->connector->Dispatch->NdkDisconnect(s->connector, wait_request, &w[0]);
        } else {
            CLOSE(s->connector, NdkCloseConnector);
            s->connector = NULL;
        }
        if (!wait_event(&c->disconnected, WAIT_S * 1000))
            test_fail("no disconnect event");
        if (i == 0) {
            returned[1] = c->connector->Dispatch->NdkDisconnect(c->connector, wait_request, &w[1]);
            assert_int_equal(wait_end(&w[1], returned[1]), STATUS_SUCCESS);
            assert_int_equal(wait_end(&w[0], returned[0]), STATUS_SUCCESS);
        }
        assert_int_equal(atomic_load(&c->disconnects), 1);
        fixture_close(&f);
    }
}

/* ---- the rest ------------------------------------------------------------------------------- */

static void ipv6(void **state)
{
    struct fixture f;

    (void)state;
    if (!have_ipv6()) {
        print_message("skipped: ::1 is not there\n");
        skip();
    }
    fixture_open(&f, "::1", NULL, NULL);
    pair_connect(&f.pair);
    move_all(&f);
    fixture_close(&f);
}

/* A peer that hooks its socket late is given time: nothing leaves for so long behind its Reply. */
static void first_fpdu_waits(void **state)
{
    struct pair p;
    unsigned long long begin = test_now_ms();

    (void)state;
    /* The complete connect ends with the answer to the ready-to-receive Read, the first FPDU. */
    pair_open(&p, "127.0.0.1", "first_fpdu_delay_us=300000", NULL);
    assert_true(test_now_ms() - begin >= 299);
    pair_close(&p);
}

int main(void)
{
    static const char *const modes[] = {"never", "always", "early", "random:3"};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crc),   cmocka_unit_test(held_until_spoken_to),
        cmocka_unit_test(mixed), cmocka_unit_test(ended_before_a_word),
        cmocka_unit_test(ipv6),  cmocka_unit_test(first_fpdu_waits),
    };
    int failed = 0;

    for (size_t i = 0; i < sizeof modes / sizeof modes[0] && !failed; i++) {
        softndk_set_pend(modes[i]);
        failed += cmocka_run_group_tests_name(modes[i], tests, NULL, NULL);
    }
    return failed;
}
