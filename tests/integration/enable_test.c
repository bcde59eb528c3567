// SPDX-License-Identifier: MIT
/*
 * The registry from the outside, with the soft provider: an interface is disabled and enabled while
 * connections live, what every door then answers, *NetworkDirect, and a provider of the test's own
 * behind the direct door. What OIDs answer is in oids_test.c.
 *
 * Interfaces 12 and 15 stand over addresses of this run, 20 has *NetworkDirect = 0, 30 is served by
 * the test.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pthread.h>

#include <cmocka.h>

#include <ndisndk.h>
#include <wskndk.h>

#include "modes.h"
#include "ndis/ndis_testing.h"
#include "os/os.h"
#include "os/os_file.h"

static const NDK_VERSION v2 = {2, 0};

/* ---- surroundings --------------------------------------------------------------------------- */

static char path[OS_PATH_MAX];

static int configure(void **state)
{
    char text[600];
    int fd, length;

    (void)state;
    length = snprintf(text, sizeof text,
                      "[interface 12]\naddress = 10.0.0.1 = %s\n"
                      "[interface 15]\naddress = 10.0.0.2 = %s\n"
                      "[interface 20]\nhost = lo\n*NetworkDirect = 0\n"
                      "[interface 30]\nhost = lo\nalias = mine\n",
                      own_address(), other_address());
    snprintf(path, sizeof path, "%s/softndk-registry-test-%u", os_temp_dir(), os_pid());
    fd = os_file_open(path, OS_FILE_WRITE | OS_FILE_CREATE);
    assert_true(fd >= 0);
    assert_int_equal(os_file_truncate(fd), 0);
    assert_int_equal(os_file_write(fd, text, (size_t)length, 0), 0);
    os_file_close(fd);
    setenv("SOFTNDK_CONFIG", path, 1);
    return 0;
}

static int forget(void **state)
{
    (void)state;
    os_file_remove(path);
    return 0;
}

static struct softndk_interface_state state_of(ULONG index)
{
    struct softndk_interface_state s = {0};

    assert_int_equal(softndk_interface_state(index, &s), STATUS_SUCCESS);
    return s;
}

static bool is_enabled(ULONG index)
{
    struct softndk_interface_state s = {0};

    return softndk_interface_state(index, &s) == STATUS_SUCCESS && s.enabled;
}

/* Opens and closes again; the status. */
static NTSTATUS try_open(const char *selector, const char *options)
{
    NDK_ADAPTER *adapter = NULL;
    NTSTATUS status = softndk_open_adapter(selector, options, v2, &adapter);

    if (status == STATUS_SUCCESS)
        softndk_close_adapter(adapter);
    else
        assert_null(adapter);
    return status;
}

/* Through the WSK door. */
static NTSTATUS try_open_by_index(NET_IFINDEX index)
{
    static const WSK_CLIENT_DISPATCH dispatch = {MAKE_WSK_VERSION(1, 0), 0, NULL};
    WSK_CLIENT_NPI npi = {NULL, &dispatch};
    WSK_REGISTRATION registration;
    WSK_PROVIDER_NPI wsk;
    WSK_PROVIDER_NDK_DISPATCH ndk;
    NDK_ADAPTER *adapter = NULL;
    NTSTATUS status;

    assert_int_equal(WskRegister(&npi, &registration), STATUS_SUCCESS);
    assert_int_equal(WskCaptureProviderNPI(&registration, WSK_INFINITE_WAIT, &wsk), STATUS_SUCCESS);
    assert_int_equal(wsk.Dispatch->WskControlClient(wsk.Client,
                                                    WSKNDK_GET_WSK_PROVIDER_NDK_DISPATCH, 0, NULL,
                                                    sizeof ndk, &ndk, NULL, NULL),
                     STATUS_SUCCESS);
    status = ndk.WskOpenNdkAdapter(wsk.Client, v2, index, &adapter);
    if (status == STATUS_SUCCESS)
        ndk.WskCloseNdkAdapter(wsk.Client, adapter);
    WskReleaseProviderNPI(&registration);
    WskDeregister(&registration);
    return status;
}

static void expect_error(const char *part)
{
    char text[600];

    softndk_open_error(text, sizeof text);
    if (!strstr(text, part))
        fail_msg("not said: \"%s\", but: \"%s\"", part, text);
}

static ULONG work_items(void)
{
    struct softndk_activity now;

    softndk_activity(&now);
    return now.work_items;
}

/* A Send from the client to the server. */
static void send_one(struct pair *p)
{
    struct memory from, to;
    NDK_SGE sge;

    make_memory(p->client.pd, 100, 0, &from);
    make_memory(p->server.pd, 100, NDK_MR_FLAG_ALLOW_LOCAL_WRITE, &to);
    fill(from.data, 100, 7);
    sge = memory_sge(&to, 0, 100);
    assert_int_equal(p->server.qp->Dispatch->NdkReceive(p->server.qp, NULL, &sge, 1), 0);
    sge = memory_sge(&from, 0, 100);
    assert_int_equal(p->client.qp->Dispatch->NdkSend(p->client.qp, NULL, &sge, 1, 0), 0);
    assert_int_equal(queue_next(&p->server.receive).Status, STATUS_SUCCESS);
    assert_true(check(to.data, 100, 7));
    assert_int_equal(queue_next(&p->client.initiator).Status, STATUS_SUCCESS);
    free_memory(&from);
    free_memory(&to);
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

/* ---- enable, disable ------------------------------------------------------------------------ */

static void a_disabled_interface_keeps_what_is_open(void **state)
{
    struct pair p;
    struct softndk_interface_state s;

    (void)state;
    open_pair(&p);
    s = state_of(15);
    assert_true(s.enabled && s.allowed);
    assert_int_equal(s.opens, 1);
    assert_int_equal(softndk_interface_disable(15), STATUS_SUCCESS);
    s = state_of(15);
    assert_false(s.enabled);
    assert_true(s.allowed);
    assert_int_equal(s.opens, 1);
    assert_int_equal(try_open("15", NULL), NDIS_STATUS_ADAPTER_NOT_READY);
    expect_error("interface 15: NDK is disabled");
    assert_int_equal(try_open_by_index(15), NDIS_STATUS_ADAPTER_NOT_READY);
    assert_int_equal(try_open("12", NULL), STATUS_SUCCESS); /* the other one is as it was */
    send_one(&p);
    test_sleep_ms(100);                /* longer would find no more faults */
    assert_int_equal(work_items(), 1); /* the event pends */
    assert_int_equal(softndk_interface_disable(15), STATUS_SUCCESS); /* is so already: no event */
    assert_int_equal(work_items(), 1);
    pair_close(&p);
    wait_until(work_items() == 0, "the event's end when the last adapter is closed");
    assert_int_equal(state_of(15).opens, 0);
    assert_int_equal(try_open("15", NULL), NDIS_STATUS_ADAPTER_NOT_READY);
    assert_int_equal(softndk_interface_enable(15), STATUS_SUCCESS);
    open_pair(&p);
    send_one(&p);
    pair_close(&p);
    wait_until(work_items() == 0, "the end of the enable's event");
}

static void it_is_enabled_while_the_disable_pends(void **state)
{
    NDK_ADAPTER *adapter = NULL;

    (void)state;
    assert_int_equal(softndk_open_adapter("15", NULL, v2, &adapter), STATUS_SUCCESS);
    assert_int_equal(softndk_interface_disable(15), STATUS_SUCCESS);
    assert_int_equal(softndk_interface_enable(15), STATUS_SUCCESS);
    assert_int_equal(try_open("15", NULL), STATUS_SUCCESS);
    wait_until(work_items() == 0, "the event's end with the adapter open");
    assert_int_equal(state_of(15).opens, 1);
    softndk_close_adapter(adapter);
}

static NTSTATUS set_state(ULONG index, BOOLEAN enable)
{
    ULONG bytes = 0;
    NTSTATUS status = softndk_oid_set(index, OID_NDK_SET_STATE, &enable, sizeof enable, &bytes);

    if (status == STATUS_SUCCESS)
        assert_int_equal(bytes, 1);
    return status;
}

/* One event is on its way, and the interface disabled: it is not the last that was ordered, an
 * enable, since none ends before that has taken effect. */
static bool overtaken(ULONG index)
{
    return work_items() == 1 && !is_enabled(index);
}

/* Requests that do not wait for their events. */
static void the_last_request_wins(void **state)
{
    NDK_ADAPTER *adapter = NULL;
    bool enabled;

    (void)state;
    assert_int_equal(softndk_open_adapter("15", NULL, v2, &adapter), STATUS_SUCCESS);
    for (unsigned i = 0; i < 20; i++) {
        assert_int_equal(set_state(15, FALSE), STATUS_SUCCESS);
        assert_int_equal(set_state(15, TRUE), STATUS_SUCCESS);
    }
    wait_until(work_items() == 0 || overtaken(15), "the end of all events, the last an enable");
    enabled = is_enabled(15);
    if (!enabled)
        softndk_close_adapter(adapter); /* else the other tests find it open */
    assert_true(enabled);
    assert_int_equal(set_state(15, FALSE), STATUS_SUCCESS);
    /* Opens are refused by the provider at once, whatever has become of the event. */
    assert_int_equal(try_open("15", NULL), NDIS_STATUS_ADAPTER_NOT_READY);
    wait_until(!is_enabled(15), "the disable");
    softndk_close_adapter(adapter);
    wait_until(work_items() == 0, "the end of the disable");
    assert_int_equal(softndk_interface_enable(15), STATUS_SUCCESS);
    wait_until(work_items() == 0, "the end of the enable's event");
}

static void network_direct_0_is_for_good(void **state)
{
    struct softndk_interface_state s;

    (void)state;
    s = state_of(20);
    assert_false(s.enabled || s.allowed);
    assert_int_equal(try_open("20", NULL), NDIS_STATUS_ADAPTER_NOT_READY);
    expect_error("interface 20: NDK is disabled, *NetworkDirect is 0 (need 1)");
    assert_int_equal(try_open_by_index(20), NDIS_STATUS_ADAPTER_NOT_READY);
    assert_int_equal(softndk_interface_enable(20), NDIS_STATUS_ADAPTER_NOT_READY);
    expect_error("*NetworkDirect is 0 (need 1)");
    assert_int_equal(set_state(20, TRUE), NDIS_STATUS_ADAPTER_NOT_READY);
    assert_int_equal(softndk_interface_disable(20), STATUS_SUCCESS);
    assert_false(state_of(20).enabled);
    assert_int_equal(work_items(), 0);
}

static void what_is_not_there_has_no_state(void **state)
{
    struct softndk_interface_state s;

    (void)state;
    assert_int_equal(softndk_interface_state(4000000, &s), STATUS_NOT_SUPPORTED);
    expect_error("interface 4000000: no NDK adapter has this index");
    assert_int_equal(softndk_interface_enable(4000000), STATUS_NOT_SUPPORTED);
    assert_int_equal(softndk_interface_disable(4000000), STATUS_NOT_SUPPORTED);
    expect_error("interface 4000000: no NDK adapter has this index");
    assert_int_equal(softndk_interface_state(15, NULL), STATUS_INVALID_PARAMETER);
}

/* ---- a provider of the test's own ----------------------------------------------------------- */

/* One adapter; the event of OID_NDK_SET_STATE from a work item, as it should be. */
static struct mine {
    NDK_ADAPTER adapter;
    NDIS_HANDLE driver, handle;
    atomic_uint opens, closes, halts;
} mine;
static const NDK_ADAPTER_DISPATCH my_dispatch;

static NDIS_STATUS my_open(NDIS_HANDLE context, PNDIS_OPEN_NDK_ADAPTER_PARAMETERS parameters,
                           NDK_ADAPTER **out)
{
    struct mine *m = context;

    if (atomic_fetch_add(&m->opens, 1) != 0) {
        atomic_fetch_sub(&m->opens, 1);
        return NDIS_STATUS_RESOURCES;
    }
    m->adapter.Header.ObjectType = NdkObjectTypeAdapter;
    m->adapter.Header.Version = parameters->Version;
    m->adapter.Dispatch = &my_dispatch;
    *out = &m->adapter;
    return NDIS_STATUS_SUCCESS;
}

static VOID my_close(NDIS_HANDLE context, NDK_ADAPTER *adapter)
{
    struct mine *m = context;

    (void)adapter;
    atomic_fetch_add(&m->closes, 1);
    atomic_fetch_sub(&m->opens, 1);
}

static NDIS_STATUS my_options(NDIS_HANDLE driver, NDIS_HANDLE context)
{
    NDIS_NDK_PROVIDER_CHARACTERISTICS c = {
        .Header = {NDIS_OBJECT_TYPE_NDK_PROVIDER_CHARACTERISTICS, 1,
                   NDIS_SIZEOF_NDK_PROVIDER_CHARACTERISTICS_REVISION_1},
        .OpenNDKAdapterHandler = my_open,
        .CloseNDKAdapterHandler = my_close,
    };

    (void)context;
    return NdisSetOptionalHandlers(driver, &c.Header);
}

static NDIS_STATUS my_initialize(NDIS_HANDLE handle, NDIS_HANDLE context,
                                 PNDIS_MINIPORT_INIT_PARAMETERS parameters)
{
    (void)parameters;
    mine.handle = handle;
    assert_int_equal(miniport_set_context(handle, context), NDIS_STATUS_SUCCESS);
    return miniport_set_ndk(handle);
}

static VOID my_halt(NDIS_HANDLE context, NDIS_HALT_ACTION action)
{
    (void)action;
    atomic_fetch_add(&((struct mine *)context)->halts, 1);
}

static VOID my_event(PVOID context, NDIS_HANDLE item)
{
    NET_PNP_EVENT_NOTIFICATION event = {
        .Header = {NDIS_OBJECT_TYPE_DEFAULT, 1, NDIS_SIZEOF_NET_PNP_EVENT_NOTIFICATION_REVISION_1},
        .NetPnPEvent = {.NetEvent = context ? NetEventNDKEnable : NetEventNDKDisable},
    };

    NdisMNetPnPEvent(mine.handle, &event);
    NdisFreeIoWorkItem(item);
}

static NDIS_STATUS my_oid(NDIS_HANDLE context, PNDIS_OID_REQUEST request)
{
    NDIS_HANDLE item;

    if (request->DATA.SET_INFORMATION.Oid != OID_NDK_SET_STATE)
        return NDIS_STATUS_NOT_SUPPORTED;
    item = NdisAllocateIoWorkItem(mine.handle);
    if (!item)
        return NDIS_STATUS_RESOURCES;
    NdisQueueIoWorkItem(item, my_event,
                        *(BOOLEAN *)request->DATA.SET_INFORMATION.InformationBuffer ? context
                                                                                    : NULL);
    return NDIS_STATUS_SUCCESS;
}

static void register_mine(void)
{
    NDIS_MINIPORT_DRIVER_CHARACTERISTICS c = {
        .Header = {NDIS_OBJECT_TYPE_MINIPORT_DRIVER_CHARACTERISTICS, 2,
                   NDIS_SIZEOF_MINIPORT_DRIVER_CHARACTERISTICS_REVISION_2},
        .MajorNdisVersion = 6,
        .MinorNdisVersion = 50,
        .SetOptionsHandler = my_options,
        .InitializeHandlerEx = my_initialize,
        .HaltHandlerEx = my_halt,
        .OidRequestHandler = my_oid,
        .DirectOidRequestHandler = my_oid,
    };

    memset(&mine, 0, sizeof mine);
    assert_int_equal(NdisMRegisterMiniportDriver(NULL, NULL, &mine, &c, &mine.driver),
                     NDIS_STATUS_SUCCESS);
}

static atomic_bool stopped;

static void *stop(void *instance)
{
    softndk_provider_stop(instance);
    atomic_store(&stopped, true);
    return NULL;
}

static void the_direct_door_leads_to_every_provider(void **state)
{
    NDK_ADAPTER *adapter = NULL;
    PVOID instance = NULL, none = NULL;

    (void)state;
    register_mine();
    assert_int_equal(softndk_provider_start(mine.driver, 12, &none), STATUS_OBJECT_NAME_COLLISION);
    expect_error("interface 12: a provider serves it already");
    assert_int_equal(softndk_provider_start(NULL, 30, &none), STATUS_INVALID_PARAMETER);
    assert_int_equal(softndk_provider_start(mine.driver, 30, &instance), STATUS_SUCCESS);
    assert_int_equal(softndk_open_adapter("mine", NULL, v2, &adapter), STATUS_SUCCESS);
    assert_ptr_equal(adapter, &mine.adapter);
    assert_int_equal(try_open("30", NULL), NDIS_STATUS_RESOURCES);
    expect_error("interface 30: its provider refused the open");
    assert_int_equal(try_open("30", "crc=off"), STATUS_INVALID_PARAMETER);
    expect_error("its provider takes none");
    assert_int_equal(softndk_interface_disable(30), STATUS_SUCCESS);
    assert_int_equal(try_open("30", NULL), NDIS_STATUS_ADAPTER_NOT_READY);
    assert_int_equal(softndk_interface_enable(30), STATUS_SUCCESS);
    wait_until(work_items() == 0, "the end of the provider's events");
    softndk_close_adapter(adapter);
    assert_int_equal(atomic_load(&mine.closes), 1);
    softndk_provider_stop(instance);
    assert_int_equal(atomic_load(&mine.halts), 1);
    NdisMDeregisterMiniportDriver(mine.driver);
    assert_int_equal(try_open("30", NULL), STATUS_SUCCESS); /* the soft provider's now */
}

/* An index that is no interface of the host's or the configuration's; a stop waits for its opens.
 */
static void an_index_of_a_provider_alone(void **state)
{
    NDK_ADAPTER *adapter = NULL;
    PVOID instance = NULL;
    pthread_t thread;
    bool early;

    (void)state;
    register_mine();
    assert_int_equal(try_open("4000001", NULL), STATUS_NOT_FOUND);
    assert_int_equal(softndk_provider_start(mine.driver, 4000001, &instance), STATUS_SUCCESS);
    assert_int_equal(softndk_open_adapter("if4000001", NULL, v2, &adapter), STATUS_SUCCESS);
    atomic_store(&stopped, false);
    assert_int_equal(pthread_create(&thread, NULL, stop, instance), 0);
    wait_until(try_open_by_index(4000001) == STATUS_NOT_SUPPORTED, "the stop's begin");
    test_sleep_ms(100); /* longer would find no more faults */
    early = atomic_load(&stopped) || atomic_load(&mine.halts);
    softndk_close_adapter(adapter);
    pthread_join(thread, NULL);
    assert_false(early);
    assert_int_equal(atomic_load(&mine.halts), 1);
    assert_int_equal(try_open("4000001", NULL), STATUS_NOT_FOUND);
    NdisMDeregisterMiniportDriver(mine.driver);
    softndk_provider_stop(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_disabled_interface_keeps_what_is_open),
        cmocka_unit_test(it_is_enabled_while_the_disable_pends),
        cmocka_unit_test(the_last_request_wins),
        cmocka_unit_test(network_direct_0_is_for_good),
        cmocka_unit_test(what_is_not_there_has_no_state),
        cmocka_unit_test(the_direct_door_leads_to_every_provider),
        cmocka_unit_test(an_index_of_a_provider_alone),
    };

    return cmocka_run_group_tests_name("registry", tests, configure, forget);
}
