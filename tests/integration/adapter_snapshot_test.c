// SPDX-License-Identifier: MIT
/*
 * What adapters show of themselves: rows come and go with connections, listeners and shared
 * endpoints, with the addresses that those have; each event counts once, in the set of the
 * interface, which outlives the adapters; and a reader beside connections that come and go sees
 * whole rows.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <pthread.h>

#include <cmocka.h>

#include "ends.h"
#include "provider/adapter.h"

static uint32_t lo_index;

static struct adapter_totals totals(void)
{
    struct adapter_totals t;

    adapter_counters_read(lo_index, &t);
    return t;
}

static size_t rows_of(NDK_ADAPTER *adapter, enum adapter_row_kind kind,
                      struct adapter_endpoint *first)
{
    struct adapter_endpoint rows[16];
    size_t count = adapter_snapshot(adapter_from(adapter), rows, 16), found = 0;

    for (size_t i = 0; i < count && i < 16; i++)
        if (rows[i].kind == kind && !found++ && first)
            *first = rows[i];
    return found;
}

static unsigned port_of(const SOCKADDR_INET *address)
{
    return RtlUshortByteSwap(address->Ipv4.sin_port);
}

/* ---- rows ----------------------------------------------------------------------------------- */

static void rows_come_and_go(void **state)
{
    struct adapter_endpoint client, server, listener, *all;
    NDK_ADAPTER *other;
    struct wait closing, ending;
    NTSTATUS returned;
    struct pair pair;
    ssize_t count;

    (void)state;
    pair_open(&pair, "127.0.0.1", NULL, NULL);
    assert_int_equal(rows_of(pair.client.adapter, ADAPTER_ROW_ESTABLISHED, &client), 1);
    assert_int_equal(rows_of(pair.server.adapter, ADAPTER_ROW_ESTABLISHED, &server), 1);
    assert_int_equal(rows_of(pair.server.adapter, ADAPTER_ROW_LISTENER, &listener), 1);
    assert_int_equal(rows_of(pair.client.adapter, ADAPTER_ROW_LISTENER, NULL), 0);
    assert_true(os_addr_equal(&client.local, &server.remote));
    assert_true(os_addr_equal(&client.remote, &server.local));
    assert_true(os_addr_equal(&listener.local, &server.local));
    assert_int_equal(listener.local.port, port_of(&pair.listening.address));
    assert_int_equal(listener.remote.family, OS_FAMILY_NONE);
    assert_int_equal(client.interface, lo_index);
    assert_int_not_equal(client.adapter, server.adapter);

    other = open_adapter(NULL);
    assert_int_equal(rows_of(other, ADAPTER_ROW_ESTABLISHED, NULL), 0);
    count = adapter_snapshot_all(0, &all);
    assert_int_equal(count, 3);
    for (int i = 1; i < 3; i++) {
        assert_true(all[i - 1].adapter <= all[i].adapter);
        assert_true(all[i - 1].adapter != all[i].adapter || all[i - 1].kind <= all[i].kind);
    }
    free(all);
    assert_int_equal(adapter_snapshot_all(lo_index + 1000, &all), 0);
    free(all);
    /* Room for less than there is: told nevertheless. */
    assert_int_equal(adapter_snapshot(adapter_from(pair.server.adapter), &server, 1), 2);
    softndk_close_adapter(other);

    /* Not listening at once; the end waits for the connector that came over it. */
    wait_init(&closing);
    returned = pair.listening.listener->Dispatch->NdkCloseListener(&pair.listening.listener->Header,
                                                                   wait_close, &closing);
    pair.listening.listener = NULL;
    assert_int_equal(rows_of(pair.server.adapter, ADAPTER_ROW_LISTENER, NULL), 0);
    CLOSE(pair.client.connector, NdkCloseConnector);
    pair.client.connector = NULL;
    /* Whether this finds an end or asks for one, both directions are over afterwards. */
    wait_init(&ending);
    wait_end(&ending, pair.server.connector->Dispatch->NdkDisconnect(pair.server.connector,
                                                                     wait_request, &ending));
    assert_int_equal(rows_of(pair.server.adapter, ADAPTER_ROW_ESTABLISHED, NULL), 0);
    assert_int_equal(rows_of(pair.client.adapter, ADAPTER_ROW_ESTABLISHED, NULL), 0);
    CLOSE(pair.server.connector, NdkCloseConnector);
    pair.server.connector = NULL;
    wait_end(&closing, returned);
    end_close(&pair.client);
    end_close(&pair.server);
    assert_int_equal(adapter_snapshot_all(0, &all), 0);
    free(all);
}

static void shared_endpoints_have_rows(void **state)
{
    NDK_ADAPTER *adapter = open_adapter(NULL);
    struct adapter_endpoint row;
    NDK_SHARED_ENDPOINT *shared = NULL;
    SOCKADDR_INET local;
    ULONG length;
    struct wait w;
    NTSTATUS status;

    (void)state;
    assert_int_equal(softndk_address_from_text("127.0.0.1", &local, &length), STATUS_SUCCESS);
    wait_init(&w);
    status = adapter->Dispatch->NdkCreateSharedEndpoint(adapter, (PSOCKADDR)(void *)&local, length,
                                                        wait_create, &w, &shared);
    assert_int_equal(wait_end(&w, status), STATUS_SUCCESS);
    if (status == STATUS_PENDING)
        shared = (NDK_SHARED_ENDPOINT *)(void *)w.object;
    length = sizeof local;
    assert_int_equal(rows_of(adapter, ADAPTER_ROW_SHARED, &row), 1);
    assert_int_equal(
        shared->Dispatch->NdkGetLocalAddress(shared, (PSOCKADDR)(void *)&local, &length),
        STATUS_SUCCESS);
    assert_int_equal(row.local.port, port_of(&local));
    CLOSE(shared, NdkCloseSharedEndpoint);
    assert_int_equal(rows_of(adapter, ADAPTER_ROW_SHARED, NULL), 0);
    softndk_close_adapter(adapter);
}

/* ---- counters ------------------------------------------------------------------------------- */

static void a_connection_counts_once_at_each_end(void **state)
{
    struct adapter_totals before = totals(), up, after;
    struct pair pair;

    (void)state;
    pair_open(&pair, "127.0.0.1", NULL, NULL);
    up = totals();
    assert_int_equal(up.connect - before.connect, 1);
    assert_int_equal(up.accept - before.accept, 1);
    assert_int_equal(up.active_connection, 2);
    assert_int_equal(up.connect_failure, before.connect_failure);
    pair_close(&pair);
    after = totals(); /* no adapter is open any more */
    assert_int_equal(after.connect, up.connect);
    assert_int_equal(after.accept, up.accept);
    assert_int_equal(after.active_connection, 0);
    assert_int_equal(after.connect_failure, before.connect_failure);
}

/* All that one end sent the other received, once both are over. */
static void octets_and_frames_agree(void **state)
{
    struct adapter_totals before = totals(), after;
    struct pair pair;
    enum { SENDS = 10 };

    (void)state;
    pair_open(&pair, "127.0.0.1", NULL, NULL);
    for (int i = 0; i < SENDS; i++) {
        assert_int_equal(pair.server.qp->Dispatch->NdkReceive(pair.server.qp, NULL, NULL, 0),
                         STATUS_SUCCESS);
        assert_int_equal(pair.client.qp->Dispatch->NdkSend(pair.client.qp, NULL, NULL, 0, 0),
                         STATUS_SUCCESS);
        assert_int_equal(queue_next(&pair.server.receive).Status, STATUS_SUCCESS);
        assert_int_equal(queue_next(&pair.client.initiator).Status, STATUS_SUCCESS);
    }
    pair_close(&pair);
    after = totals();
    assert_true(after.out_frames - before.out_frames >= SENDS);
    assert_int_equal(after.in_frames - before.in_frames, after.out_frames - before.out_frames);
    assert_true(after.out_octets - before.out_octets >= SENDS * 24u);
    assert_true(after.in_octets - before.in_octets >= SENDS * 24u);
}

struct attempt {
    struct end client, server;
    struct listening listening;
    NDK_CONNECTOR *incoming;
    struct wait connect;
    NTSTATUS returned;
};

/* Up to the connect event. */
static void attempt_begin(struct attempt *t)
{
    SOCKADDR_INET local;

    end_open(&t->client, NULL);
    end_open(&t->server, NULL);
    listen_on(t->server.adapter, "127.0.0.1", &t->listening);
    t->client.connector = make_connector(t->client.adapter);
    local = local_of(&t->listening);
    wait_init(&t->connect);
    t->returned = t->client.connector->Dispatch->NdkConnect(
        t->client.connector, t->client.qp, (PSOCKADDR)(void *)&local, sizeof local.Ipv4,
        (PSOCKADDR)(void *)&t->listening.address, t->listening.address_length, 0, 0, NULL, 0,
        wait_request, &t->connect);
    t->incoming = next_incoming(&t->listening);
}

/* Both ends failed, each counted once; nothing else was. */
static void attempt_end(struct attempt *t, const struct adapter_totals *before)
{
    struct adapter_totals after;

    CLOSE(t->incoming, NdkCloseConnector);
    assert_int_equal(rows_of(t->server.adapter, ADAPTER_ROW_CONNECTING, NULL), 0);
    CLOSE(t->listening.listener, NdkCloseListener);
    end_close(&t->client);
    end_close(&t->server);
    after = totals();
    assert_int_equal(after.connect_failure - before->connect_failure, 2);
    assert_int_equal(after.connect, before->connect);
    assert_int_equal(after.accept, before->accept);
    assert_int_equal(after.active_connection, 0);
}

/* The consumer of the passive side refuses: an attempt that failed, at either end. */
static void a_refusal_is_a_failure_at_both_ends(void **state)
{
    struct adapter_totals before = totals();
    struct attempt t;

    (void)state;
    attempt_begin(&t);
    assert_int_equal(rows_of(t.server.adapter, ADAPTER_ROW_CONNECTING, NULL), 1);
    assert_int_equal(totals().active_connection, 0);
    assert_int_equal(t.incoming->Dispatch->NdkReject(t.incoming, NULL, 0), STATUS_SUCCESS);
    assert_int_equal(wait_end(&t.connect, t.returned), STATUS_CONNECTION_REFUSED);
    attempt_end(&t, &before);
}

/* It accepts, and the peer closes without completing: the accept fails, then the connection ends,
 * which is the same failure. */
static void an_accept_in_vain_counts_once(void **state)
{
    struct adapter_totals before = totals();
    struct wait accept;
    struct attempt t;
    NTSTATUS status;

    (void)state;
    attempt_begin(&t);
    wait_init(&accept);
    status = t.incoming->Dispatch->NdkAccept(t.incoming, t.server.qp, 0, 0, NULL, 0, NULL, NULL,
                                             wait_request, &accept);
    assert_int_equal(wait_end(&t.connect, t.returned), STATUS_SUCCESS);
    assert_int_equal(rows_of(t.client.adapter, ADAPTER_ROW_CONNECTING, NULL), 1);
    CLOSE(t.client.connector, NdkCloseConnector);
    t.client.connector = NULL;
    assert_false(NT_SUCCESS(wait_end(&accept, status)));
    attempt_end(&t, &before);
}

/* ---- beside each other ---------------------------------------------------------------------- */

static atomic_bool stop;

static void *reads(void *unused)
{
    while (!atomic_load(&stop)) {
        struct adapter_endpoint *all = NULL;
        ssize_t count = adapter_snapshot_all(0, &all);

        for (ssize_t i = 0; i < count; i++)
            if (all[i].local.family != OS_FAMILY_V4 || all[i].local.port == 0 ||
                (all[i].kind <= ADAPTER_ROW_ESTABLISHED) != (all[i].remote.port != 0))
                test_fail("row %zd of %zd is not whole", i, count);
        free(all);
        totals();
    }
    return unused;
}

static void a_reader_does_not_disturb(void **state)
{
    pthread_t reader;

    (void)state;
    atomic_store(&stop, false);
    assert_int_equal(pthread_create(&reader, NULL, reads, NULL), 0);
    for (int i = 0; i < 20; i++) {
        struct pair pair;

        pair_open(&pair, "127.0.0.1", NULL, NULL);
        pair_close(&pair);
    }
    atomic_store(&stop, true);
    pthread_join(reader, NULL);
    assert_int_equal(totals().active_connection, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_come_and_go),
        cmocka_unit_test(shared_endpoints_have_rows),
        cmocka_unit_test(a_connection_counts_once_at_each_end),
        cmocka_unit_test(octets_and_frames_agree),
        cmocka_unit_test(a_refusal_is_a_failure_at_both_ends),
        cmocka_unit_test(an_accept_in_vain_counts_once),
        cmocka_unit_test(a_reader_does_not_disturb),
    };
    NDK_ADAPTER *adapter = open_adapter(NULL);

    lo_index = adapter_from(adapter)->interface.index;
    softndk_close_adapter(adapter);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
