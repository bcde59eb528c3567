// SPDX-License-Identifier: MIT
/*
 * What travels with an establishment: private data both ways in every length, the protocol of its
 * query, the read limits as both ends see them; what is too long is refused and nothing is done.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ends.h"

#define MOST 251 /* of the default profile, each way */

struct call {
    struct wait wait;
    NTSTATUS returned;
};

static NTSTATUS ended(struct call *call)
{
    return wait_end(&call->wait, call->returned);
}

static void ends_open(struct pair *p, const char *client, const char *server)
{
    memset(p, 0, sizeof *p);
    end_open(&p->server, server);
    end_open(&p->client, client);
    listen_on(p->server.adapter, "127.0.0.1", &p->listening);
}

static void dial(struct pair *p, ULONG inbound, ULONG outbound, void *data, ULONG length,
                 struct call *call)
{
    struct end *c = &p->client;
    SOCKADDR_INET local = local_of(&p->listening);

    if (!c->connector)
        c->connector = make_connector(c->adapter);
    wait_init(&call->wait);
    call->returned = c->connector->Dispatch->NdkConnect(
        c->connector, c->qp, (PSOCKADDR)&local, p->listening.address_length,
        (PSOCKADDR)&p->listening.address, p->listening.address_length, inbound, outbound, data,
        length, wait_request, &call->wait);
}

/* Alternates the two forms. */
static void accept_with(struct pair *p, ULONG inbound, ULONG outbound, void *data, ULONG length,
                        struct call *call)
{
    static unsigned turn;
    struct end *s = &p->server;

    wait_init(&call->wait);
    if (turn++ % 2)
        call->returned =
            s->connector->Dispatch->NdkAccept(s->connector, s->qp, inbound, outbound, data, length,
                                              NULL, NULL, wait_request, &call->wait);
    else
        call->returned = s->connector->Dispatch->NdkAcceptEx(s->connector, s->qp, inbound, outbound,
                                                             data, length, end_disconnected, s,
                                                             wait_request, &call->wait);
}

static void complete(struct pair *p, struct call *call)
{
    NDK_CONNECTOR *connector = p->client.connector;

    wait_init(&call->wait);
    call->returned = connector->Dispatch->NdkCompleteConnectEx(
        connector, end_disconnected, &p->client, wait_request, &call->wait);
}

static void disconnected_again(struct pair *p)
{
    if (p->client.connector)
        CLOSE(p->client.connector, NdkCloseConnector);
    if (p->server.connector)
        CLOSE(p->server.connector, NdkCloseConnector);
    p->client.connector = p->server.connector = NULL;
}

/* All rows of the query's table, against what the peer gave. */
static void expect_data(NDK_CONNECTOR *connector, const uint8_t *data, ULONG length)
{
    const NDK_CONNECTOR_DISPATCH *slot = connector->Dispatch;
    uint8_t got[MOST + 9];
    ULONG size = 0, in, out;

    assert_int_equal(slot->NdkGetConnectionData(connector, NULL, NULL, NULL, &size),
                     STATUS_SUCCESS);
    assert_int_equal(size, length);
    size = 7;
    assert_int_equal(slot->NdkGetConnectionData(connector, NULL, NULL, NULL, &size),
                     STATUS_INVALID_PARAMETER);
    assert_int_equal(slot->NdkGetConnectionData(connector, &in, &out, NULL, NULL), STATUS_SUCCESS);
    if (length) { /* short */
        memset(got, 0xee, sizeof got);
        size = length - 1;
        assert_int_equal(slot->NdkGetConnectionData(connector, &in, &out, got, &size),
                         STATUS_BUFFER_TOO_SMALL);
        assert_int_equal(size, length);
        assert_memory_equal(got, data, length - 1);
        assert_int_equal(got[length - 1], 0xee);
    }
    for (ULONG more = 0; more <= 8; more += 8) { /* exact, and larger */
        memset(got, 0xee, sizeof got);
        size = length + more;
        assert_int_equal(slot->NdkGetConnectionData(connector, NULL, NULL, got, &size),
                         STATUS_SUCCESS);
        assert_int_equal(size, length);
        assert_memory_equal(got, data, length);
        assert_int_equal(got[length], 0xee);
    }
}

static void private_data(void **state)
{
    static const ULONG lengths[] = {0, 1, 2, 3, 4, 127, 128, MOST - 1, MOST};
    uint8_t there[MOST], back[MOST];
    struct pair p;

    (void)state;
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        ULONG length = lengths[i], other = MOST - length;
        struct call connect, accept, done;

        ends_open(&p, NULL, NULL);
        fill(there, sizeof there, length);
        fill(back, sizeof back, 1000 + length);
        dial(&p, 8, 8, there, length, &connect);
        memset(there, 0, sizeof there); /* read during the call only */
        p.server.connector = next_incoming(&p.listening);
        fill(there, sizeof there, length);
        expect_data(p.server.connector, there, length);
        accept_with(&p, 8, 8, back, other, &accept);
        memset(back, 0, sizeof back);
        fill(back, sizeof back, 1000 + length);
        assert_int_equal(ended(&connect), STATUS_SUCCESS);
        expect_data(p.client.connector, back, other);
        complete(&p, &done);
        assert_int_equal(ended(&done), STATUS_SUCCESS);
        assert_int_equal(ended(&accept), STATUS_SUCCESS);
        /* Some consumers ask again, later. */
        expect_data(p.client.connector, back, other);
        expect_data(p.server.connector, there, length);
        pair_close(&p);
    }
}

static void rejected_with_data(void **state)
{
    static const ULONG lengths[] = {0, 1, MOST};
    uint8_t words[MOST];
    struct pair p;

    (void)state;
    ends_open(&p, NULL, NULL);
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        struct call connect;

        fill(words, sizeof words, (unsigned)i);
        dial(&p, 8, 8, NULL, 0, &connect);
        p.server.connector = next_incoming(&p.listening);
        assert_int_equal(
            p.server.connector->Dispatch->NdkReject(p.server.connector, words, lengths[i]),
            STATUS_SUCCESS);
        assert_int_equal(ended(&connect), STATUS_CONNECTION_REFUSED);
        expect_data(p.client.connector, words, lengths[i]);
        disconnected_again(&p);
    }
    pair_close(&p);
}

/* One octet too many at each of the calls, then the same call with what fits. */
static void too_much(void **state)
{
    uint8_t data[MOST + 1] = {0};
    struct pair p;
    struct call connect, accept, done;

    (void)state;
    ends_open(&p, NULL, NULL);
    for (int i = 0; i < 2; i++) {
        dial(&p, 8, 8, data, MOST + 1, &connect);
        assert_int_equal(ended(&connect), STATUS_INVALID_BUFFER_SIZE);
        dial(&p, 8, 8, data, MOST, &connect);
        p.server.connector = next_incoming(&p.listening);
        accept_with(&p, 8, 8, data, MOST + 1, &accept);
        assert_int_equal(ended(&accept), STATUS_INVALID_BUFFER_SIZE);
        accept_with(&p, 8, 8, NULL, 1, &accept);
        assert_int_equal(ended(&accept), STATUS_INVALID_PARAMETER);
        assert_int_equal(
            p.server.connector->Dispatch->NdkReject(p.server.connector, data, MOST + 1),
            STATUS_INVALID_BUFFER_SIZE);
        assert_int_equal(atomic_load(&connect.wait.calls), 0); /* nothing was decided */
        if (i == 0) { /* and now by reject, then by accept */
            assert_int_equal(
                p.server.connector->Dispatch->NdkReject(p.server.connector, data, MOST),
                STATUS_SUCCESS);
            assert_int_equal(ended(&connect), STATUS_CONNECTION_REFUSED);
            disconnected_again(&p);
            continue;
        }
        accept_with(&p, 8, 8, data, MOST, &accept);
        assert_int_equal(ended(&connect), STATUS_SUCCESS);
        assert_int_equal(
            p.client.connector->Dispatch->NdkReject(p.client.connector, data, MOST + 1),
            STATUS_INVALID_BUFFER_SIZE);
        complete(&p, &done);
        assert_int_equal(ended(&done), STATUS_SUCCESS);
        assert_int_equal(ended(&accept), STATUS_SUCCESS);
    }
    pair_close(&p);
}

/* A connector that never connected knows nothing; a caller may leave out what it does not want. */
static void nothing_to_tell(void **state)
{
    struct pair p;
    NDK_CONNECTOR *k;
    SOCKADDR_INET address;
    ULONG length = sizeof address, in;

    (void)state;
    ends_open(&p, NULL, NULL);
    k = p.client.connector = make_connector(p.client.adapter);
    assert_int_equal(k->Dispatch->NdkGetConnectionData(k, &in, NULL, NULL, NULL),
                     STATUS_CONNECTION_INVALID);
    assert_int_equal(k->Dispatch->NdkGetLocalAddress(k, (PSOCKADDR)&address, &length),
                     STATUS_CONNECTION_INVALID);
    assert_int_equal(k->Dispatch->NdkGetPeerAddress(k, (PSOCKADDR)&address, &length),
                     STATUS_CONNECTION_INVALID);
    assert_int_equal(k->Dispatch->NdkReject(k, NULL, 0), STATUS_CONNECTION_INVALID);
    pair_close(&p);
}

/* ---- read limits ---------------------------------------------------------------------------- */

struct limits {
    ULONG in, out;
};

static struct limits limits_of(NDK_CONNECTOR *connector)
{
    struct limits l = {~0u, ~0u};

    assert_int_equal(
        connector->Dispatch->NdkGetConnectionData(connector, &l.in, &l.out, NULL, NULL),
        STATUS_SUCCESS);
    return l;
}

static ULONG least(ULONG a, ULONG b)
{
    return a < b ? a : b;
}

static void read_status(struct end *end, const struct memory *to, const struct memory *from,
                        NTSTATUS posted)
{
    NDK_SGE sge = memory_sge(to, 0, 16);

    assert_int_equal(end->qp->Dispatch->NdkRead(end->qp, end, &sge, 1,
                                                (UINT64)(uintptr_t)from->data, from->remote, 0),
                     posted);
    if (posted == STATUS_SUCCESS)
        assert_int_equal(queue_next(&end->initiator).Status, STATUS_SUCCESS);
}

/* Caps of the adapters are 16 and 6 here. */
static void read_limits(void **state)
{
    static const struct {
        ULONG c_in, c_out, s_in, s_out;
    } rows[] = {{8, 8, 8, 8}, {1, 5, 3, 2}, {16, 1, 4, 16}, {1000, 0xffffffff, 1000, 70000},
                {0, 4, 4, 0}, {4, 0, 0, 4}, {4, 0, 3, 3},   {3, 3, 0, 4},
                {0, 0, 0, 0}};
    const ULONG rights = NDK_MR_FLAG_ALLOW_LOCAL_WRITE | NDK_MR_FLAG_ALLOW_REMOTE_READ;
    struct pair p;
    struct memory cm, sm;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct call connect, accept, done;
        struct limits c, s;
        /* What the client reads is the server's inbound, and the other way round. */
        ULONG there = least(least(rows[i].c_out, 16), least(rows[i].s_in, 6));
        ULONG back = least(least(rows[i].c_in, 16), least(rows[i].s_out, 6));

        ends_open(&p, NULL, "max_inbound_reads=6,max_outbound_reads=6");
        dial(&p, rows[i].c_in, rows[i].c_out, NULL, 0, &connect);
        p.server.connector = next_incoming(&p.listening);
        s = limits_of(p.server.connector); /* what the peer asks for, capped, in our view */
        assert_int_equal(s.in, least(rows[i].c_out, 6));
        assert_int_equal(s.out, least(rows[i].c_in, 6));
        accept_with(&p, rows[i].s_in, rows[i].s_out, NULL, 0, &accept);
        assert_int_equal(ended(&connect), STATUS_SUCCESS);
        c = limits_of(p.client.connector);
        complete(&p, &done);
        assert_int_equal(ended(&done), STATUS_SUCCESS);
        assert_int_equal(ended(&accept), STATUS_SUCCESS);
        for (int again = 0; again < 2; again++) {
            s = limits_of(p.server.connector);
            if (c.out != there || c.in != back || s.in != there || s.out != back)
                test_fail("row %zu: client out %u in %u, server in %u out %u, need %u and %u", i,
                          c.out, c.in, s.in, s.out, there, back);
            c = limits_of(p.client.connector);
        }
        make_memory(p.client.pd, 4096, rights, &cm);
        make_memory(p.server.pd, 4096, rights, &sm);
        read_status(&p.client, &cm, &sm, there ? STATUS_SUCCESS : STATUS_INVALID_DEVICE_REQUEST);
        read_status(&p.server, &sm, &cm, back ? STATUS_SUCCESS : STATUS_INVALID_DEVICE_REQUEST);
        free_memory(&cm);
        free_memory(&sm);
        pair_close(&p);
    }
}

int main(void)
{
    static const char *const modes[] = {"never", "always", "early", "random:9"};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(private_data), cmocka_unit_test(rejected_with_data),
        cmocka_unit_test(too_much),     cmocka_unit_test(nothing_to_tell),
        cmocka_unit_test(read_limits),
    };
    int failed = 0;

    for (size_t i = 0; i < sizeof modes / sizeof modes[0] && !failed; i++) {
        softndk_set_pend(modes[i]);
        failed += cmocka_run_group_tests_name(modes[i], tests, NULL, NULL);
    }
    return failed;
}
