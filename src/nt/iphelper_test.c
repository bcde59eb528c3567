// SPDX-License-Identifier: MIT
/*
 * Tests of iphelper.c, over a list of its own and over the host's interfaces.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <netioapi.h>

#include "nt/nt_testing.h"
#include "os/os.h"

/* Two interfaces, as a map would have them. */
static int two_interfaces(struct os_interface *out, unsigned max)
{
    static const struct os_interface all[] = {
        {.index = 37, .name = "rdma0", .mtu = 9000, .up = true},
        {.index = 1, .name = "loop", .mtu = 65536, .loopback = true},
    };

    if (max)
        memcpy(out, all, (max < 2 ? max : 2) * sizeof all[0]);
    return 2;
}

static int no_interfaces(struct os_interface *out, unsigned max)
{
    (void)out;
    (void)max;
    return -EMFILE;
}

static int use_two(void **state)
{
    (void)state;
    nt_interface_source(two_interfaces);
    return 0;
}

static void indexes_become_luids_and_names(void **state)
{
    WCHAR alias[NDIS_IF_MAX_STRING_SIZE + 1];
    NET_LUID luid;
    NETIO_STATUS status = ConvertInterfaceIndexToLuid(37, &luid);

    (void)state;
    assert_true(NETIO_SUCCESS(status));
    assert_int_equal(luid.Info.IfType, IF_TYPE_ETHERNET_CSMACD);
    assert_int_equal(luid.Info.NetLuidIndex, 37);
    assert_int_equal(ConvertInterfaceLuidToAlias(&luid, alias, NDIS_IF_MAX_STRING_SIZE + 1),
                     STATUS_SUCCESS);
    assert_memory_equal(alias, u"rdma0", 12);
    assert_int_equal(ConvertInterfaceLuidToAlias(&luid, alias, 6), STATUS_SUCCESS);
    assert_int_equal(ConvertInterfaceLuidToAlias(&luid, alias, 5), STATUS_NO_MEMORY);
    assert_int_equal(ConvertInterfaceIndexToLuid(1, &luid), STATUS_SUCCESS);
    assert_int_equal(luid.Info.IfType, IF_TYPE_SOFTWARE_LOOPBACK);
}

static void what_is_not_there_is_refused(void **state)
{
    NET_LUID luid = {.Value = 5};
    MIB_IF_ROW2 row = {.InterfaceIndex = 99};
    WCHAR alias[20];

    (void)state;
    assert_int_equal(ConvertInterfaceIndexToLuid(38, &luid), STATUS_INVALID_PARAMETER);
    assert_int_equal(luid.Value, 0);
    assert_int_equal(ConvertInterfaceIndexToLuid(0, &luid), STATUS_INVALID_PARAMETER);
    assert_int_equal(ConvertInterfaceIndexToLuid(37, NULL), STATUS_INVALID_PARAMETER);
    assert_int_equal(ConvertInterfaceLuidToAlias(&luid, alias, 20), STATUS_INVALID_PARAMETER);
    luid.Info.IfType = IF_TYPE_SOFTWARE_LOOPBACK;
    luid.Info.NetLuidIndex = 37; /* of another type */
    assert_int_equal(ConvertInterfaceLuidToAlias(&luid, alias, 20), STATUS_INVALID_PARAMETER);
    assert_int_equal(ConvertInterfaceLuidToAlias(NULL, alias, 20), STATUS_INVALID_PARAMETER);
    assert_int_equal(ConvertInterfaceLuidToAlias(&luid, NULL, 20), STATUS_INVALID_PARAMETER);
    assert_int_equal(GetIfEntry2(&row), STATUS_NOT_FOUND);
    row.InterfaceIndex = 0;
    assert_int_equal(GetIfEntry2(&row), STATUS_INVALID_PARAMETER);
    assert_int_equal(GetIfEntry2(NULL), STATUS_INVALID_PARAMETER);
    nt_interface_source(no_interfaces);
    assert_int_equal(ConvertInterfaceIndexToLuid(37, &luid), STATUS_INVALID_PARAMETER);
}

static void a_row_tells_the_interface(void **state)
{
    MIB_IF_ROW2 row = {.InterfaceIndex = 37}, same;

    (void)state;
    assert_int_equal(GetIfEntry2(&row), STATUS_SUCCESS);
    assert_int_equal(row.InterfaceIndex, 37);
    assert_int_equal(row.Mtu, 9000);
    assert_int_equal(row.Type, IF_TYPE_ETHERNET_CSMACD);
    assert_int_equal(row.OperStatus, IfOperStatusUp);
    assert_int_equal(row.MediaConnectState, MediaConnectStateConnected);
    assert_memory_equal(row.Alias, u"rdma0", 12);
    same = (MIB_IF_ROW2){.InterfaceLuid = row.InterfaceLuid, .InterfaceIndex = 1};
    assert_int_equal(GetIfEntry2(&same), STATUS_SUCCESS); /* the LUID decides */
    assert_memory_equal(&same, &row, sizeof row);
    row = (MIB_IF_ROW2){.InterfaceIndex = 1};
    assert_int_equal(GetIfEntry2(&row), STATUS_SUCCESS);
    assert_int_equal(row.OperStatus, IfOperStatusDown);
    assert_int_equal(row.AccessType, NET_IF_ACCESS_LOOPBACK);
}

static void by_itself_it_is_the_hosts(void **state)
{
    struct os_interface host;
    MIB_IF_ROW2 row;

    (void)state;
    nt_interface_source(NULL);
    if (os_interfaces(&host, 1) < 1)
        skip();
    row = (MIB_IF_ROW2){.InterfaceIndex = host.index};
    assert_int_equal(GetIfEntry2(&row), STATUS_SUCCESS);
    assert_int_equal(row.Mtu, host.mtu);
    for (size_t i = 0; i <= strlen(host.name); i++)
        assert_int_equal(row.Alias[i], host.name[i]);
}

static void levels_are_checked(void **state)
{
    unsigned findings = nt_finding_count();
    MIB_IF_ROW2 row = {.InterfaceIndex = 37};
    NET_LUID luid;
    WCHAR alias[20];

    (void)state;
    nt_irql_set(APC_LEVEL);
    ConvertInterfaceIndexToLuid(37, &luid);
    ConvertInterfaceLuidToAlias(&luid, alias, 20);
    GetIfEntry2(&row);
    nt_irql_set(PASSIVE_LEVEL);
    assert_int_equal(nt_finding_count(), findings + 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(indexes_become_luids_and_names, use_two),
        cmocka_unit_test_setup(what_is_not_there_is_refused, use_two),
        cmocka_unit_test_setup(a_row_tells_the_interface, use_two),
        cmocka_unit_test_setup(by_itself_it_is_the_hosts, use_two),
        cmocka_unit_test_setup(levels_are_checked, use_two),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
