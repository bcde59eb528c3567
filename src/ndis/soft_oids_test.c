// SPDX-License-Identifier: MIT
/*
 * soft_oids_test.c - what the soft miniport answers to queries: lists of rows that the test puts
 * into an adapter, sizes, headers, kinds of requests. (What real connections show:
 * tests/integration/oids_test.c.)
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <softndk.h>

#include "ndis/soft_oids.h"
#include "provider/adapter.h"

static NDK_ADAPTER *open_one;
static struct adapter *adapter;
static ULONG lo;

static int set_up(void **state)
{
    const NDK_VERSION version = {2, 0};

    (void)state;
    assert_int_equal(softndk_open_adapter("lo", NULL, version, &open_one), STATUS_SUCCESS);
    adapter = adapter_from(open_one);
    lo = adapter->interface.index;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    softndk_close_adapter(open_one);
    return 0;
}

enum { ROWS = 920 }; /* 2 x 920 x 36 octets, more than 65535 */
static struct adapter_row rows[ROWS];

/* Also after a test that failed. */
static int clear_rows(void **state)
{
    (void)state;
    for (unsigned i = 0; i < ROWS; i++)
        adapter_row_clear(adapter, &rows[i]);
    return 0;
}

static NDIS_STATUS ask_as(NDIS_REQUEST_TYPE type, NDIS_OID oid, void *buffer, UINT length,
                          struct _QUERY *out)
{
    NDIS_OID_REQUEST request = {
        .RequestType = type,
        .DATA.QUERY_INFORMATION = {.Oid = oid,
                                   .InformationBuffer = buffer,
                                   .InformationBufferLength = length},
    };
    NDIS_STATUS status = soft_oids_query(lo, &request);

    *out = request.DATA.QUERY_INFORMATION;
    return status;
}

static NDIS_STATUS ask(NDIS_OID oid, void *buffer, UINT length, struct _QUERY *out)
{
    return ask_as(NdisRequestQueryInformation, oid, buffer, length, out);
}

static struct os_addr address(const char *text, unsigned port)
{
    struct os_addr a;

    assert_int_equal(os_addr_parse(text, &a), 0);
    a.port = (uint16_t)port;
    return a;
}

static unsigned port_of(const SOCKADDR_INET *a)
{
    return RtlUshortByteSwap(a->Ipv4.sin_port);
}

/* ---- empty, and all kinds of rows ---- */

static void an_empty_list_has_a_header(void **state)
{
    NDIS_NDK_CONNECTIONS list;
    struct _QUERY q;

    (void)state;
    memset(&list, 0xaa, sizeof list);
    assert_int_equal(ask(OID_NDK_CONNECTIONS, &list, 0x10, &q), NDIS_STATUS_SUCCESS);
    assert_int_equal(q.BytesWritten, 0x10);
    assert_int_equal(list.Header.Type, NDIS_OBJECT_TYPE_DEFAULT);
    assert_int_equal(list.Header.Revision, NDIS_NDK_CONNECTIONS_REVISION_1);
    assert_int_equal(list.Header.Size, 0x10);
    assert_int_equal(list.Flags, 0);
    assert_int_equal(list.Count, 0);
    assert_int_equal(list.NDConnectionsMappedtoTCPConnections, TRUE);
    assert_int_equal(ask(OID_NDK_LOCAL_ENDPOINTS, &list, 0x0f, &q), NDIS_STATUS_BUFFER_TOO_SHORT);
    assert_int_equal(q.BytesNeeded, 0x10);
    assert_int_equal(q.BytesWritten, 0);
    assert_int_equal(ask(OID_NDK_LOCAL_ENDPOINTS, NULL, 0, &q), NDIS_STATUS_BUFFER_TOO_SHORT);
    assert_int_equal(q.BytesNeeded, 0x10);
}

static void each_kind_is_in_its_list(void **state)
{
    struct os_addr a = address("127.0.0.1", 1001), b = address("::1", 1002),
                   c = address("127.0.0.9", 1003), d = address("127.0.0.1", 1004);
    NDIS_NDK_CONNECTIONS *connections = calloc(1, 0x10 + 2 * 0x40);
    NDIS_NDK_LOCAL_ENDPOINTS *endpoints = calloc(1, 0x10 + 4 * 0x24);
    struct _QUERY q;

    (void)state;
    adapter_row_set(adapter, &rows[0], ADAPTER_ROW_CONNECTING, &a, &c);
    adapter_row_set(adapter, &rows[1], ADAPTER_ROW_ESTABLISHED, &b, &b);
    adapter_row_set(adapter, &rows[2], ADAPTER_ROW_LISTENER, &c, NULL);
    adapter_row_set(adapter, &rows[3], ADAPTER_ROW_SHARED, &d, NULL);
    assert_int_equal(ask(OID_NDK_CONNECTIONS, connections, 0x10 + 2 * 0x40 - 1, &q),
                     NDIS_STATUS_BUFFER_TOO_SHORT);
    assert_int_equal(q.BytesNeeded, 0x10 + 2 * 0x40);
    assert_int_equal(ask(OID_NDK_CONNECTIONS, connections, 0x10 + 2 * 0x40, &q),
                     NDIS_STATUS_SUCCESS);
    assert_int_equal(q.BytesWritten, 0x10 + 2 * 0x40);
    assert_int_equal(connections->Count, 2);
    assert_int_equal(connections->Connections[0].Local.si_family, AF_INET6);
    assert_int_equal(port_of(&connections->Connections[0].Local), 1002);
    assert_int_equal(port_of(&connections->Connections[0].Remote), 1002);
    assert_int_equal(connections->Connections[0].UserModeOwner, FALSE);
    assert_int_equal(ask(OID_NDK_LOCAL_ENDPOINTS, endpoints, 0x10 + 4 * 0x24, &q),
                     NDIS_STATUS_SUCCESS);
    assert_int_equal(endpoints->Header.Revision, NDIS_NDK_LOCAL_ENDPOINTS_REVISION_1);
    assert_int_equal(endpoints->Header.Size, 0x10 + 4 * 0x24);
    assert_int_equal(endpoints->Count, 4);
    assert_int_equal(endpoints->NDLocalEndpointsMappedtoTCPLocalEndpoints, TRUE);
    assert_int_equal(port_of(&endpoints->LocalEndpoints[0].Local), 1003);
    assert_int_equal(endpoints->LocalEndpoints[0].Listener, TRUE);
    assert_int_equal(port_of(&endpoints->LocalEndpoints[2].Local), 1004);
    assert_int_equal(endpoints->LocalEndpoints[2].Listener, FALSE);
    free(connections);
    free(endpoints);
}

/* Header.Size is 16 bits; the size that counts is BytesWritten. */
static void a_long_list_has_the_largest_size(void **state)
{
    struct os_addr a = address("127.0.0.1", 1);
    UINT size = 0x10 + 2 * ROWS * 0x24;
    NDIS_NDK_LOCAL_ENDPOINTS *list = calloc(1, size);
    struct _QUERY q;

    (void)state;
    for (unsigned i = 0; i < ROWS; i++) {
        a.port = (uint16_t)(i + 1);
        adapter_row_set(adapter, &rows[i], ADAPTER_ROW_LISTENER, &a, NULL);
    }
    assert_int_equal(ask(OID_NDK_LOCAL_ENDPOINTS, list, size, &q), NDIS_STATUS_SUCCESS);
    assert_int_equal(q.BytesWritten, size);
    assert_int_equal(list->Header.Size, MAXUSHORT);
    assert_int_equal(list->Count, 2 * ROWS);
    free(list);
}

/* ---- what else is asked ---- */

static void statistics_have_one_size(void **state)
{
    NDIS_NDK_STATISTICS_INFO info;
    const ULONG64 *counters = &info.CounterSet.Connect;
    struct _QUERY q;

    (void)state;
    assert_int_equal(ask(OID_NDK_STATISTICS, &info, sizeof info - 1, &q),
                     NDIS_STATUS_BUFFER_TOO_SHORT);
    assert_int_equal(q.BytesNeeded, 0xf8);
    memset(&info, 0xaa, sizeof info);
    assert_int_equal(ask_as(NdisRequestQueryStatistics, OID_NDK_STATISTICS, &info, sizeof info, &q),
                     NDIS_STATUS_SUCCESS);
    assert_int_equal(q.BytesWritten, 0xf8);
    assert_int_equal(info.Header.Type, NDIS_OBJECT_TYPE_DEFAULT);
    assert_int_equal(info.Header.Revision, NDIS_NDK_STATISTICS_INFO_REVISION_1);
    assert_int_equal(info.Header.Size, 0xf8);
    assert_int_equal(info.Flags, 0);
    for (unsigned i = 5; i <= 24; i++)
        assert_int_equal(counters[i], 0);
}

static void only_queries_are_answered(void **state)
{
    NDIS_NDK_STATISTICS_INFO info;
    struct _QUERY q;

    (void)state;
    assert_int_equal(ask_as(NdisRequestSetInformation, OID_NDK_STATISTICS, &info, sizeof info, &q),
                     NDIS_STATUS_NOT_SUPPORTED);
    assert_int_equal(ask_as(NdisRequestMethod, OID_NDK_STATISTICS, &info, sizeof info, &q),
                     NDIS_STATUS_NOT_SUPPORTED);
    assert_int_equal(ask(OID_NDK_SET_STATE, &info, 1, &q), NDIS_STATUS_NOT_SUPPORTED);
    assert_int_equal(ask(0x00010101, &info, sizeof info, &q), NDIS_STATUS_NOT_SUPPORTED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_list_has_a_header),
        cmocka_unit_test_teardown(each_kind_is_in_its_list, clear_rows),
        cmocka_unit_test_teardown(a_long_list_has_the_largest_size, clear_rows),
        cmocka_unit_test(statistics_have_one_size),
        cmocka_unit_test(only_queries_are_answered),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
