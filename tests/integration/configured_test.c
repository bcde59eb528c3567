// SPDX-License-Identifier: MIT
/*
 * Consumers over a configuration: indexes and addresses that no host has, both ends in one process;
 * IPv6 over an IPv4 host; what each query answers; who owns which address; which interface leads to
 * a peer; options and registry values; and a configuration that is wrong, at every door.
 *
 * Host addresses are drawn from 127.0.0.0/8 by the process id, so that a fixed port can be used.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <netioapi.h>

#include "ends.h"
#include "ndis/interfaces.h"
#include "os/os.h"
#include "os/os_file.h"

static const NDK_VERSION v2 = {2, 0};

/* ---- configurations ------------------------------------------------------------------------- */

static char path[OS_PATH_MAX];

/* In the text, @ stands for the first three parts of a network that is this process's. */
static void configure(const char *text)
{
    char whole[4000], net[24];
    size_t used = 0;
    int fd;

    snprintf(net, sizeof net, "127.%u.%u", 64 + os_pid() / 256 % 64, os_pid() % 256);
    for (; *text && used < sizeof whole - sizeof net; text++) {
        if (*text == '@')
            used += (size_t)snprintf(whole + used, sizeof net, "%s", net);
        else
            whole[used++] = *text;
    }
    snprintf(path, sizeof path, "%s/softndk-config-test-%u", os_temp_dir(), os_pid());
    fd = os_file_open(path, OS_FILE_WRITE | OS_FILE_CREATE);
    assert_true(fd >= 0);
    assert_int_equal(os_file_truncate(fd), 0);
    assert_int_equal(os_file_write(fd, whole, used, 0), 0);
    os_file_close(fd);
    setenv("SOFTNDK_CONFIG", path, 1);
    interfaces_forget();
}

static int forget(void **state)
{
    (void)state;
    if (path[0])
        os_file_remove(path);
    unsetenv("SOFTNDK_CONFIG");
    unsetenv("SOFTNDK_INTERFACES");
    unsetenv("SOFTNDK_PEERS");
    unsetenv("SOFTNDK_OPTIONS");
    interfaces_forget();
    return 0;
}

/* ---- addresses ------------------------------------------------------------------------------ */

static SOCKADDR_INET address_of(const char *text)
{
    SOCKADDR_INET address;
    ULONG length;

    assert_int_equal(softndk_address_from_text(text, &address, &length), STATUS_SUCCESS);
    return address;
}

/* What an address query answers; without its port unless the text expected has one. */
static void answers(NDK_CONNECTOR *k, bool peer, const char *expected)
{
    SOCKADDR_INET address;
    ULONG length = sizeof address;
    char text[SOFTNDK_ADDRESS_MAX];
    NTSTATUS status = peer ? k->Dispatch->NdkGetPeerAddress(k, (PSOCKADDR)&address, &length)
                           : k->Dispatch->NdkGetLocalAddress(k, (PSOCKADDR)&address, &length);

    assert_int_equal(status, STATUS_SUCCESS);
    if (!strstr(expected, ":54321")) {
        if (address.si_family == AF_INET)
            address.Ipv4.sin_port = 0;
        else
            address.Ipv6.sin6_port = 0;
    }
    softndk_address_to_text((PSOCKADDR)&address, length, text, sizeof text);
    assert_string_equal(text, expected);
}

/* A Send from the client to the server. */
static void send_one(struct pair *p)
{
    struct memory from, to;
    NDK_SGE sge;
    NDK_RESULT_EX result;

    make_memory(p->client.pd, 100, 0, &from);
    make_memory(p->server.pd, 100, NDK_MR_FLAG_ALLOW_LOCAL_WRITE, &to);
    fill(from.data, 100, 7);
    sge = memory_sge(&to, 0, 100);
    assert_int_equal(p->server.qp->Dispatch->NdkReceive(p->server.qp, NULL, &sge, 1), 0);
    sge = memory_sge(&from, 0, 100);
    assert_int_equal(p->client.qp->Dispatch->NdkSend(p->client.qp, NULL, &sge, 1, 0), 0);
    result = queue_next(&p->server.receive);
    assert_int_equal(result.Status, STATUS_SUCCESS);
    assert_true(check(to.data, 100, 7));
    assert_int_equal(queue_next(&p->client.initiator).Status, STATUS_SUCCESS);
    free_memory(&from);
    free_memory(&to);
}

static void open_pair(struct pair *p, const char *client, const char *server, const char *listen,
                      const char *local)
{
    SOCKADDR_INET from = address_of(local);

    memset(p, 0, sizeof *p);
    end_open_on(&p->server, server, NULL);
    end_open_on(&p->client, client, NULL);
    listen_on(p->server.adapter, listen, &p->listening);
    pair_connect_from(p, &from);
}

static const char two[] = "[interface 12]\n"
                          "alias = \"Ethernet 2\"\n"
                          "address = 10.0.0.1 = @.1\n"
                          "address = fd00::1 = @.3\n"
                          "[interface 15]\n"
                          "address = 10.0.0.2 = @.2\n"
                          "address = fd00::2 = @.4\n"
                          "[peer]\n"
                          "10.0.0.9 = @.9\n";

/* ---- connections ---------------------------------------------------------------------------- */

/* The numbers stand in the consumer; nothing of the machine has them. */
static void a_consumer_with_numbers_of_its_own(void **state)
{
    struct pair p;

    (void)state;
    configure(two);
    open_pair(&p, "12", "15", "10.0.0.2:54321", "10.0.0.1");
    answers(p.client.connector, false, "10.0.0.1");
    answers(p.client.connector, true, "10.0.0.2:54321");
    answers(p.server.connector, false, "10.0.0.2:54321");
    answers(p.server.connector, true, "10.0.0.1");
    send_one(&p);
    pair_close(&p);
}

static void ipv6_over_an_ipv4_host(void **state)
{
    struct pair p;

    (void)state;
    configure(two);
    open_pair(&p, "Ethernet 2", "fd00::2", "[fd00::2]:54321", "fd00::1");
    answers(p.client.connector, false, "fd00::1");
    answers(p.client.connector, true, "[fd00::2]:54321");
    answers(p.server.connector, false, "[fd00::2]:54321");
    answers(p.server.connector, true, "fd00::1");
    send_one(&p);
    pair_close(&p);
}

/* The client's adapter is the host's own: its address stands in no map. */
static void a_peer_that_is_mapped_nowhere(void **state)
{
    struct pair p;

    (void)state;
    configure(two);
    open_pair(&p, "lo", "15", "10.0.0.2", "127.0.0.1");
    answers(p.server.connector, true, "127.0.0.1");
    answers(p.client.connector, false, "127.0.0.1");
    send_one(&p);
    pair_close(&p);
    /* It is told in the family of the one who asks. */
    memset(&p, 0, sizeof p);
    end_open_on(&p.server, "15", NULL);
    end_open_on(&p.client, "lo", NULL);
    listen_on(p.server.adapter, "fd00::2", &p.listening);
    {
        SOCKADDR_INET from = address_of("::ffff:127.0.0.1");

        pair_connect_from(&p, &from);
    }
    answers(p.server.connector, true, "::ffff:127.0.0.1");
    answers(p.client.connector, false, "::ffff:127.0.0.1");
    answers(p.client.connector, true,
            RtlUshortByteSwap(p.listening.address.Ipv6.sin6_port) == 54321 ? "[fd00::2]:54321"
                                                                           : "fd00::2");
    pair_close(&p);
}

static NTSTATUS shared_endpoint(NDK_ADAPTER *adapter, const char *text, NDK_SHARED_ENDPOINT **out)
{
    SOCKADDR_INET address = address_of(text);
    struct wait w;
    NTSTATUS status;

    wait_init(&w);
    status = wait_end(&w, adapter->Dispatch->NdkCreateSharedEndpoint(
                              adapter, (PSOCKADDR)&address, sizeof address, wait_create, &w, out));
    if (status == STATUS_SUCCESS && !*out)
        *out = (NDK_SHARED_ENDPOINT *)(void *)w.object;
    return status;
}

static void endpoints_speak_of_ndk_addresses(void **state)
{
    NDK_SHARED_ENDPOINT *endpoint = NULL, *again = NULL;
    NDK_ADAPTER *adapter = NULL;
    SOCKADDR_INET address;
    ULONG length = sizeof address;
    char text[600];

    (void)state;
    configure(two);
    assert_int_equal(softndk_open_adapter("12", NULL, v2, &adapter), 0);
    assert_int_equal(shared_endpoint(adapter, "10.0.0.1:54321", &endpoint), STATUS_SUCCESS);
    assert_int_equal(endpoint->Dispatch->NdkGetLocalAddress(endpoint, (PSOCKADDR)&address, &length),
                     0);
    softndk_address_to_text((PSOCKADDR)&address, length, text, sizeof text);
    assert_string_equal(text, "10.0.0.1:54321");
    assert_true(shared_endpoint(adapter, "10.0.0.1:54321", &again) != STATUS_SUCCESS);
    softndk_reason(&adapter->Header, text, sizeof text);
    assert_non_null(strstr(text, "cannot hold local address 10.0.0.1:54321"));
    assert_int_equal(shared_endpoint(adapter, "10.0.0.2", &again), STATUS_INVALID_ADDRESS);
    softndk_reason(&adapter->Header, text, sizeof text);
    assert_non_null(strstr(text, "address 10.0.0.2 is not one of interface Ethernet 2 (need "
                                 "10.0.0.1, fd00::1)"));
    CLOSE(endpoint, NdkCloseSharedEndpoint);
    softndk_close_adapter(adapter);
}

/* Ends of different families on the host: the call says so, and no connection is tried. */
static void families_must_meet(void **state)
{
    struct end end;
    SOCKADDR_INET from, to;
    struct wait w;
    char text[600];

    (void)state;
    configure(two);
    end_open_on(&end, "12", NULL);
    end.connector = make_connector(end.adapter);
    from = address_of("fd00::1");
    to = address_of("[fd00::77]:5");
    wait_init(&w);
    assert_int_equal(wait_end(&w, end.connector->Dispatch->NdkConnect(
                                      end.connector, end.qp, (PSOCKADDR)&from, sizeof from,
                                      (PSOCKADDR)&to, sizeof to, 0, 0, NULL, 0, wait_request, &w)),
                     STATUS_INVALID_ADDRESS);
    softndk_reason(&end.connector->Header, text, sizeof text);
    assert_non_null(strstr(text, "the host reaches fd00::1 and fd00::77 in different families"));
    from = address_of("10.0.0.1"); /* another family than the target's, though not on the host */
    to = address_of("[fd00::2]:5");
    wait_init(&w);
    assert_int_equal(wait_end(&w, end.connector->Dispatch->NdkConnect(
                                      end.connector, end.qp, (PSOCKADDR)&from, sizeof from,
                                      (PSOCKADDR)&to, sizeof to, 0, 0, NULL, 0, wait_request, &w)),
                     STATUS_INVALID_ADDRESS);
    end_close(&end);
}

/* ---- interfaces ----------------------------------------------------------------------------- */

static void interfaces_have_their_numbers(void **state)
{
    struct softndk_adapter list[4];
    WCHAR alias[NDIS_IF_MAX_STRING_SIZE + 1];
    MIB_IF_ROW2 row = {.InterfaceIndex = 12};
    static const UCHAR mac[6] = {2, 0, 0, 0, 0, 0xc};
    NDK_ADAPTER *adapter = NULL;
    char text[400], host[SOFTNDK_ADDRESS_MAX];
    ULONG count;
    NET_LUID luid;

    (void)state;
    configure("[interface 15]\naddress = 10.0.0.2 = 198.18.255.1\n"
              "[interface 12]\nalias = \"Ethernet 2\"\naddress = 10.0.0.1 = @.1\n"
              "mtu = 9000\nmac = 02-00-00-00-00-0c\n");
    assert_int_equal(softndk_adapter_list(list, 4, &count), 0);
    assert_true(count >= 3);
    assert_string_equal(list[0].name, "Ethernet 2");
    assert_int_equal(list[0].index, 12);
    assert_int_equal(list[0].mtu, 9000);
    assert_true(list[0].up && !list[0].loopback);
    assert_string_equal(list[0].host, "lo");
    assert_string_equal(list[0].addresses[0], "10.0.0.1");
    assert_int_equal(strncmp(list[0].host_addresses[0], "127.", 4), 0);
    assert_string_equal(list[1].name, "if15"); /* its host address is on another machine */
    assert_false(list[1].up);
    assert_string_equal(list[1].host, "");
    assert_string_equal(list[2].name, "lo");
    assert_int_equal(ConvertInterfaceIndexToLuid(12, &luid), STATUS_SUCCESS);
    assert_int_equal(ConvertInterfaceLuidToAlias(&luid, alias, NDIS_IF_MAX_STRING_SIZE + 1),
                     STATUS_SUCCESS);
    assert_memory_equal(alias, u"Ethernet 2", 22);
    assert_int_equal(GetIfEntry2(&row), STATUS_SUCCESS);
    assert_int_equal(row.Mtu, 9000);
    assert_int_equal(row.PhysicalAddressLength, 6);
    assert_memory_equal(row.PhysicalAddress, mac, 6);
    assert_int_equal(row.OperStatus, IfOperStatusUp);
    /* The host's address is not one to ask for. */
    snprintf(host, sizeof host, "%s", list[0].host_addresses[0]);
    assert_int_equal(softndk_open_adapter(host, NULL, v2, &adapter), STATUS_NOT_FOUND);
    softndk_open_error(text, sizeof text);
    assert_non_null(strstr(text, "it is the host's address of 10.0.0.1"));
    assert_int_equal(softndk_open_adapter(NULL, NULL, v2, &adapter), STATUS_SUCCESS);
    softndk_close_adapter(adapter);
}

static void routes_lead_over_configured_interfaces(void **state)
{
    static const struct {
        const char *peer, *name, *source;
    } cases[] = {
        {"10.0.0.2", "if15", "10.0.0.2"},       /* its own interface, as the host does it */
        {"10.0.0.9", "Ethernet 2", "10.0.0.1"}, /* a peer's, over loopback here */
        {"127.0.0.1", "lo", "127.0.0.1"},
    };
    char selector[SOFTNDK_NAME_MAX], source[SOFTNDK_ADDRESS_MAX];

    (void)state;
    configure(two);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(softndk_adapter_for_route(cases[i].peer, selector, sizeof selector, source,
                                                   sizeof source),
                         STATUS_SUCCESS);
        assert_string_equal(selector, cases[i].name);
        assert_string_equal(source, cases[i].source);
    }
}

/* ---- options, registry, variables ----------------------------------------------------------- */

static ULONG frmr_pages(const char *selector, const char *options)
{
    NDK_ADAPTER *adapter = NULL;
    ULONG pages;

    assert_int_equal(softndk_open_adapter(selector, options, v2, &adapter), STATUS_SUCCESS);
    pages = adapter_info(adapter).FRMRPageCount;
    softndk_close_adapter(adapter);
    return pages;
}

static void options_come_in_their_order(void **state)
{
    (void)state;
    configure("[options]\nfrmr_pages = 20\n"
              "[interface 12]\naddress = 10.0.0.1 = @.1\nfrmr_pages = 30\n"
              "[interface 13]\naddress = 10.0.0.2 = @.2\n"
              "[interface 14]\naddress = 10.0.0.3 = @.3\nport_low = 60000\n");
    assert_int_equal(frmr_pages("13", NULL), 20);
    assert_int_equal(frmr_pages("lo", NULL), 20);
    assert_int_equal(frmr_pages("12", NULL), 30);
    setenv("SOFTNDK_OPTIONS", "frmr_pages=40", 1);
    assert_int_equal(frmr_pages("12", NULL), 40);
    assert_int_equal(frmr_pages("12", "frmr_pages=50"), 50);
}

static void variables_do_for_the_simple_cases(void **state)
{
    struct pair p;
    char list[200];

    (void)state;
    snprintf(list, sizeof list, "12=10.0.0.1, 15=10.0.0.2=127.%u.%u.5", 64 + os_pid() / 256 % 64,
             os_pid() % 256);
    setenv("SOFTNDK_INTERFACES", list, 1);
    setenv("SOFTNDK_PEERS", "10.0.0.9=192.168.7.9", 1);
    interfaces_forget();
    open_pair(&p, "12", "15", "10.0.0.2:54321", "10.0.0.1");
    answers(p.server.connector, true, "10.0.0.1");
    pair_close(&p);
}

static void the_configuration_is_described(void **state)
{
    size_t need;
    char text[4000], place[OS_PATH_MAX + 20];

    (void)state;
    configure(two);
    need = softndk_config_describe(text, sizeof text);
    assert_int_equal(need, strlen(text));
    assert_non_null(strstr(text, "interface 12 \"Ethernet 2\" on lo"));
    assert_non_null(strstr(text, "peer 10.0.0.9 = 127."));
    assert_non_null(strstr(text, "interface 1 \"lo\", the host's own\n"));
    snprintf(place, sizeof place, " %s:9\n", path);
    assert_non_null(strstr(text, place));
}

/* ---- what is wrong -------------------------------------------------------------------------- */

static void a_wrong_configuration_is_said_at_every_door(void **state)
{
    char text[1500], sentence[OS_PATH_MAX + 100], selector[SOFTNDK_NAME_MAX];
    NDK_ADAPTER *adapter = NULL;
    NET_LUID luid;
    ULONG count;

    (void)state;
    configure("[interface 12]\naddress = 10.0.0.1\n\nadress = 10.0.0.2\n");
    snprintf(sentence, sizeof sentence, "%s:4: unknown key \"adress\"", path);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(softndk_open_adapter("12", NULL, v2, &adapter), STATUS_INVALID_PARAMETER);
        softndk_open_error(text, sizeof text);
        assert_int_equal(strncmp(text, sentence, strlen(sentence)), 0);
        assert_int_equal(softndk_open_adapter("lo", NULL, v2, &adapter), STATUS_INVALID_PARAMETER);
    }
    assert_int_equal(softndk_adapter_list(NULL, 0, &count), STATUS_INVALID_PARAMETER);
    softndk_open_error(text, sizeof text);
    assert_int_equal(strncmp(text, sentence, strlen(sentence)), 0);
    assert_int_equal(softndk_adapter_for_route("127.0.0.1", selector, sizeof selector, NULL, 0),
                     STATUS_INVALID_PARAMETER);
    assert_int_equal(softndk_config_describe(text, sizeof text), 0);
    softndk_open_error(text, sizeof text);
    assert_int_equal(strncmp(text, sentence, strlen(sentence)), 0);
    assert_int_equal(ConvertInterfaceIndexToLuid(12, &luid), STATUS_INVALID_PARAMETER);
    setenv("SOFTNDK_CONFIG", "/nonexistent/softndk.ini", 1);
    interfaces_forget();
    assert_int_equal(softndk_open_adapter("lo", NULL, v2, &adapter), STATUS_INVALID_PARAMETER);
    softndk_open_error(text, sizeof text);
    assert_non_null(strstr(text, "cannot read \"/nonexistent/softndk.ini\""));
}

/* A registry is loaded once a process: one test for all. */
static void finds(const WCHAR *path_of_key, const WCHAR *name, UCHAR number)
{
    OBJECT_ATTRIBUTES attributes;
    UNICODE_STRING key, value;
    ULONG64 room[8];
    KEY_VALUE_PARTIAL_INFORMATION *found = (KEY_VALUE_PARTIAL_INFORMATION *)(void *)room;
    HANDLE handle;
    ULONG length;

    RtlInitUnicodeString(&key, path_of_key);
    RtlInitUnicodeString(&value, name);
    InitializeObjectAttributes(&attributes, &key, OBJ_CASE_INSENSITIVE | OBJ_KERNEL_HANDLE, NULL,
                               NULL);
    assert_int_equal(ZwOpenKey(&handle, KEY_READ, &attributes), STATUS_SUCCESS);
    assert_int_equal(
        ZwQueryValueKey(handle, &value, KeyValuePartialInformation, room, sizeof room, &length),
        STATUS_SUCCESS);
    assert_int_equal(found->Type, REG_DWORD);
    assert_int_equal(found->Data[0], number);
    ZwClose(handle);
}

static void drivers_find_registry_values(void **state)
{
    static const char kept[] = "[\\Registry\\Machine\\SOFTWARE\\Kept]\n"
                               "\"Depth\"=dword:00000007\n\"Mode\"=dword:00000008\n";
    char beside[OS_PATH_MAX], text[OS_PATH_MAX + 200];
    int fd;

    (void)state;
    snprintf(beside, sizeof beside, "%s/softndk-config-test-%u.reg", os_temp_dir(), os_pid());
    fd = os_file_open(beside, OS_FILE_WRITE | OS_FILE_CREATE);
    assert_true(fd >= 0);
    assert_int_equal(os_file_truncate(fd), 0);
    assert_int_equal(os_file_write(fd, kept, sizeof kept - 1, 0), 0);
    os_file_close(fd);
    snprintf(text, sizeof text,
             "[registry]\nfile = softndk-config-test-%u.reg\n" /* beside the configuration */
             "[HKEY_LOCAL_MACHINE\\SYSTEM\\CurrentControlSet\\Services\\drv]\n"
             "\"Depth\" = dword:40\n"
             "[HKEY_LOCAL_MACHINE\\Software\\Kept]\nMode = 9\n",
             os_pid());
    configure(text);
    finds(u"\\Registry\\Machine\\System\\CurrentControlSet\\Services\\Drv", u"depth", 0x40);
    finds(u"\\Registry\\Machine\\Software\\Kept", u"Depth", 7);
    finds(u"\\Registry\\Machine\\Software\\Kept", u"Mode", 9); /* on top of the file's */
    os_file_remove(beside);
}

#define TEST(name) cmocka_unit_test_teardown(name, forget)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(drivers_find_registry_values),     TEST(a_consumer_with_numbers_of_its_own),
        TEST(ipv6_over_an_ipv4_host),           TEST(a_peer_that_is_mapped_nowhere),
        TEST(endpoints_speak_of_ndk_addresses), TEST(families_must_meet),
        TEST(interfaces_have_their_numbers),    TEST(routes_lead_over_configured_interfaces),
        TEST(options_come_in_their_order),      TEST(variables_do_for_the_simple_cases),
        TEST(the_configuration_is_described),   TEST(a_wrong_configuration_is_said_at_every_door),
    };

    forget(NULL);
    return cmocka_run_group_tests_name("configuration", tests, NULL, NULL);
}
