// SPDX-License-Identifier: MIT
/*
 * The OIDs of the soft provider, asked through the public calls, with real connections, listeners
 * and shared endpoints on two configured interfaces: each item with the address that consumers know
 * and with that of the host; counters of the interface; lengths of OID_NDK_SET_STATE.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <ntddndis.h>

#include "modes.h"

#define BUFFER_TOO_SHORT ((NTSTATUS)0xC0010016)
#define INVALID_LENGTH   ((NTSTATUS)0xC0010014)

static int configure(void **state)
{
    char text[200];

    (void)state;
    snprintf(text, sizeof text, "12=10.0.0.1=%s,15=10.0.0.2=%s", own_address(), other_address());
    setenv("SOFTNDK_INTERFACES", text, 1);
    return 0;
}

static void open_pair(struct pair *p)
{
    SOCKADDR_INET from = inet_address("10.0.0.1", 0);

    memset(p, 0, sizeof *p);
    end_open_on(&p->server, "15", NULL);
    end_open_on(&p->client, "12", NULL);
    listen_on(p->server.adapter, "10.0.0.2", &p->listening);
    pair_connect_from(p, &from);
}

static void is_address(const SOCKADDR_INET *address, const char *ip, unsigned port)
{
    SOCKADDR_INET expected = inet_address(ip, port);

    assert_memory_equal(address, &expected, sizeof(SOCKADDR_IN));
}

static void connections_are_told_twice(void **state)
{
    union {
        NDIS_NDK_CONNECTIONS list;
        UCHAR octets[0x10 + 4 * 0x40];
    } buffer;
    const NDIS_NDK_CONNECTION_ENTRY *e = buffer.list.Connections;
    unsigned client_port, server_port;
    SOCKADDR_INET local;
    ULONG bytes = 0, length = sizeof local;
    struct pair p;

    (void)state;
    open_pair(&p);
    server_port = inet_port(&p.listening.address);
    assert_int_equal(p.client.connector->Dispatch->NdkGetLocalAddress(
                         p.client.connector, (PSOCKADDR)(void *)&local, &length),
                     STATUS_SUCCESS);
    client_port = inet_port(&local);
    assert_int_equal(softndk_oid_query(12, OID_NDK_CONNECTIONS, NULL, 0, &bytes), BUFFER_TOO_SHORT);
    assert_int_equal(bytes, 0x10 + 2 * 0x40);
    memset(&buffer, 0xaa, sizeof buffer);
    assert_int_equal(softndk_oid_query(12, OID_NDK_CONNECTIONS, &buffer, sizeof buffer, &bytes),
                     STATUS_SUCCESS);
    assert_int_equal(bytes, 0x10 + 2 * 0x40);
    assert_int_equal(buffer.list.Header.Size, bytes);
    assert_int_equal(buffer.list.Count, 2);
    is_address(&e[0].Local, "10.0.0.1", client_port);
    is_address(&e[0].Remote, "10.0.0.2", server_port);
    assert_int_equal(e[0].UserModeOwner, FALSE);
    is_address(&e[1].Local, own_address(), client_port);
    is_address(&e[1].Remote, other_address(), server_port);
    assert_int_equal(e[1].UserModeOwner, 0xaa); /* the rest of an odd entry is as it was */
    assert_int_equal(e[1].OwnerPid, 0xaaaaaaaa);
    assert_int_equal(softndk_oid_query(15, OID_NDK_CONNECTIONS, &buffer, sizeof buffer, &bytes),
                     STATUS_SUCCESS);
    assert_int_equal(buffer.list.Count, 2);
    is_address(&e[0].Remote, "10.0.0.1", client_port);
    pair_close(&p);
    assert_int_equal(softndk_oid_query(12, OID_NDK_CONNECTIONS, &buffer, sizeof buffer, &bytes),
                     STATUS_SUCCESS);
    assert_int_equal(bytes, 0x10);
    assert_int_equal(buffer.list.Count, 0);
}

static void listeners_and_shared_endpoints_are_told(void **state)
{
    union {
        NDIS_NDK_LOCAL_ENDPOINTS list;
        UCHAR octets[0x10 + 4 * 0x24];
    } buffer;
    const NDIS_NDK_LOCAL_ENDPOINT_ENTRY *e = buffer.list.LocalEndpoints;
    SOCKADDR_INET local = inet_address("10.0.0.2", 0);
    NDK_SHARED_ENDPOINT *shared = NULL;
    ULONG bytes = 0, length = sizeof local;
    struct listening listening;
    unsigned port, l;
    NDK_ADAPTER *adapter;
    struct end end;
    struct wait w;
    NTSTATUS status;

    (void)state;
    end_open_on(&end, "15", NULL);
    adapter = end.adapter;
    listen_on(adapter, "10.0.0.2", &listening);
    wait_init(&w);
    status = adapter->Dispatch->NdkCreateSharedEndpoint(adapter, (PSOCKADDR)(void *)&local, length,
                                                        wait_create, &w, &shared);
    assert_int_equal(wait_end(&w, status), STATUS_SUCCESS);
    if (status == STATUS_PENDING)
        shared = (NDK_SHARED_ENDPOINT *)(void *)w.object;
    assert_int_equal(
        shared->Dispatch->NdkGetLocalAddress(shared, (PSOCKADDR)(void *)&local, &length),
        STATUS_SUCCESS);
    port = inet_port(&local);
    assert_int_equal(
        softndk_oid_query(15, OID_NDK_LOCAL_ENDPOINTS, &buffer, sizeof buffer - 1, &bytes),
        BUFFER_TOO_SHORT);
    assert_int_equal(bytes, sizeof buffer);
    memset(&buffer, 0xaa, sizeof buffer);
    assert_int_equal(softndk_oid_query(15, OID_NDK_LOCAL_ENDPOINTS, &buffer, sizeof buffer, &bytes),
                     STATUS_SUCCESS);
    assert_int_equal(buffer.list.Count, 4);
    l = e[0].Listener ? 0 : 2; /* the order is not promised */
    assert_int_equal(e[l].Listener, TRUE);
    is_address(&e[l].Local, "10.0.0.2", inet_port(&listening.address));
    is_address(&e[l + 1].Local, other_address(), inet_port(&listening.address));
    assert_int_equal(e[l + 1].Listener, 0xaa);
    assert_int_equal(e[2 - l].Listener, FALSE);
    is_address(&e[2 - l].Local, "10.0.0.2", port);
    is_address(&e[2 - l + 1].Local, other_address(), port);
    CLOSE(shared, NdkCloseSharedEndpoint);
    CLOSE(listening.listener, NdkCloseListener);
    assert_int_equal(softndk_oid_query(15, OID_NDK_LOCAL_ENDPOINTS, &buffer, sizeof buffer, &bytes),
                     STATUS_SUCCESS);
    assert_int_equal(buffer.list.Count, 0);
    end_close(&end);
}

static NDIS_NDK_PERFORMANCE_COUNTERS counters(ULONG index)
{
    NDIS_NDK_STATISTICS_INFO info;
    ULONG bytes = 0;

    assert_int_equal(softndk_oid_query(index, OID_NDK_STATISTICS, &info, sizeof info, &bytes),
                     STATUS_SUCCESS);
    assert_int_equal(bytes, sizeof info);
    return info.CounterSet;
}

static void counters_are_the_interfaces(void **state)
{
    NDIS_NDK_PERFORMANCE_COUNTERS client = counters(12), server = counters(15), now;
    struct pair p;

    (void)state;
    open_pair(&p);
    now = counters(12);
    assert_int_equal(now.Connect, client.Connect + 1);
    assert_int_equal(now.Accept, client.Accept);
    assert_int_equal(now.ActiveConnection, 1);
    now = counters(15);
    assert_int_equal(now.Accept, server.Accept + 1);
    assert_int_equal(now.Connect, server.Connect);
    pair_close(&p);
    now = counters(12);
    assert_int_equal(now.ActiveConnection, 0);
    assert_int_equal(now.Connect, client.Connect + 1);
    assert_int_equal(now.ConnectionError, client.ConnectionError);
    assert_int_equal(counters(15).ActiveConnection, 0);
}

static void a_state_is_one_octet(void **state)
{
    BOOLEAN on[2] = {TRUE, TRUE};
    ULONG bytes = 9;
    char text[300];

    (void)state;
    assert_int_equal(softndk_oid_set(12, OID_NDK_SET_STATE, on, 2, &bytes), INVALID_LENGTH);
    assert_int_equal(bytes, 1);
    assert_int_equal(softndk_oid_set(12, OID_NDK_SET_STATE, NULL, 0, &bytes), INVALID_LENGTH);
    assert_int_equal(bytes, 1);
    softndk_open_error(text, sizeof text);
    assert_string_equal(text, "interface 12: OID 0xfc040201: the buffer has 0 octets (need 1)");
    assert_int_equal(softndk_oid_set(12, OID_NDK_SET_STATE, on, 1, &bytes), STATUS_SUCCESS);
    assert_int_equal(bytes, 1);
    assert_int_equal(softndk_oid_set(12, OID_NDK_SET_STATE, NULL, 1, NULL),
                     STATUS_INVALID_PARAMETER);
    assert_int_equal(softndk_oid_query(12, OID_NDK_SET_STATE, on, 1, NULL), STATUS_NOT_SUPPORTED);
    assert_int_equal(softndk_oid_set(12, OID_NDK_STATISTICS, on, 1, NULL), STATUS_NOT_SUPPORTED);
    assert_int_equal(softndk_oid_query(4000000, OID_NDK_STATISTICS, NULL, 0, NULL),
                     STATUS_NOT_SUPPORTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(connections_are_told_twice),
        cmocka_unit_test(listeners_and_shared_endpoints_are_told),
        cmocka_unit_test(counters_are_the_interfaces),
        cmocka_unit_test(a_state_is_one_octet),
    };

    return cmocka_run_group_tests_name("oids", tests, configure, NULL);
}
