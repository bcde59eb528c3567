// SPDX-License-Identifier: MIT
/* registry_test.c - drivers, instances, opens by index, enable and disable (NDIS side 3). */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ndis/ndis_testing.h"
#include "ndis/registry.h"
#include "nt/nt.h"
#include "os/os.h"

#define TINY 4711u

/* A provider of two slots. */
static struct tiny {
    NDK_ADAPTER slot[2];
    bool taken[2];
    NDIS_STATUS answer;
    bool null;
    unsigned closes;
    atomic_uint halts;
    NDIS_HANDLE instance;
    bool unregistered;  /* initializes without registration attributes */
    bool event_in_oid;  /* raises its event in the OID handler, and not by itself */
    NDIS_STATUS event;  /* what that was answered with */
    KEVENT *begun, *go; /* InitializeHandlerEx: is running, may return */
} tiny;
static const NDK_ADAPTER_DISPATCH tiny_dispatch;
static NDIS_HANDLE tiny_driver;
static USHORT header_size;
static bool has_direct = true;

static NDIS_STATUS tiny_open(NDIS_HANDLE context, PNDIS_OPEN_NDK_ADAPTER_PARAMETERS parameters,
                             NDK_ADAPTER **out)
{
    struct tiny *t = context;

    if (t->answer != NDIS_STATUS_SUCCESS)
        return t->answer;
    for (unsigned i = 0; i < 2 && !t->null; i++)
        if (!t->taken[i]) {
            t->taken[i] = true;
            t->slot[i].Header.Version = parameters->Version;
            t->slot[i].Dispatch = &tiny_dispatch;
            *out = &t->slot[i];
            return NDIS_STATUS_SUCCESS;
        }
    return t->null ? NDIS_STATUS_SUCCESS : NDIS_STATUS_RESOURCES;
}

static VOID tiny_close(NDIS_HANDLE context, NDK_ADAPTER *adapter)
{
    struct tiny *t = context;

    t->taken[adapter - t->slot] = false;
    t->closes++;
}

static NDIS_STATUS tiny_options(NDIS_HANDLE driver, NDIS_HANDLE context)
{
    NDIS_NDK_PROVIDER_CHARACTERISTICS c = {
        .Header = {NDIS_OBJECT_TYPE_NDK_PROVIDER_CHARACTERISTICS, 1, header_size},
        .OpenNDKAdapterHandler = tiny_open,
        .CloseNDKAdapterHandler = tiny_close,
    };

    (void)context;
    return NdisSetOptionalHandlers(driver, &c.Header);
}

static NDIS_STATUS tiny_initialize(NDIS_HANDLE instance, NDIS_HANDLE context,
                                   PNDIS_MINIPORT_INIT_PARAMETERS parameters)
{
    assert_ptr_equal(context, &tiny);
    assert_int_equal(parameters->IfIndex, TINY);
    if (tiny.begun) {
        KeSetEvent(tiny.begun, IO_NO_INCREMENT, FALSE);
        KeWaitForSingleObject(tiny.go, Executive, KernelMode, FALSE, NULL);
    }
    if (!tiny.unregistered)
        assert_int_equal(miniport_set_context(instance, &tiny), NDIS_STATUS_SUCCESS);
    return miniport_set_ndk(instance);
}

static VOID tiny_halt(NDIS_HANDLE context, NDIS_HALT_ACTION action)
{
    (void)action;
    atomic_fetch_add(&((struct tiny *)context)->halts, 1);
}

static NDIS_STATUS raise_event(NET_PNP_EVENT_CODE code)
{
    NET_PNP_EVENT_NOTIFICATION event = {
        .Header = {NDIS_OBJECT_TYPE_DEFAULT, 1, NDIS_SIZEOF_NET_PNP_EVENT_NOTIFICATION_REVISION_1},
        .NetPnPEvent = {.NetEvent = code},
    };

    return NdisMNetPnPEvent(tiny.instance, &event);
}

static NDIS_STATUS tiny_oid(NDIS_HANDLE context, PNDIS_OID_REQUEST request)
{
    struct tiny *t = context;

    if (request->DATA.SET_INFORMATION.Oid != OID_NDK_SET_STATE)
        return NDIS_STATUS_NOT_SUPPORTED;
    if (t->event_in_oid)
        t->event = raise_event(NetEventNDKDisable);
    return NDIS_STATUS_SUCCESS;
}

static NDIS_STATUS tiny_register(USHORT size)
{
    NDIS_MINIPORT_DRIVER_CHARACTERISTICS c = {
        .Header = {NDIS_OBJECT_TYPE_MINIPORT_DRIVER_CHARACTERISTICS, 2, size},
        .MajorNdisVersion = 6,
        .MinorNdisVersion = 30,
        .SetOptionsHandler = tiny_options,
        .InitializeHandlerEx = tiny_initialize,
        .HaltHandlerEx = tiny_halt,
        .OidRequestHandler = tiny_oid,
        .DirectOidRequestHandler = has_direct ? tiny_oid : NULL,
    };

    return NdisMRegisterMiniportDriver(NULL, NULL, &tiny, &c, &tiny_driver);
}

static int set_up(void **state)
{
    (void)state;
    memset(&tiny, 0, sizeof tiny);
    tiny.slot[0].Header.ObjectType = tiny.slot[1].Header.ObjectType = NdkObjectTypeAdapter;
    header_size = NDIS_SIZEOF_NDK_PROVIDER_CHARACTERISTICS_REVISION_1;
    assert_int_equal(tiny_register(NDIS_SIZEOF_MINIPORT_DRIVER_CHARACTERISTICS_REVISION_2), 0);
    assert_int_equal(ndis_adapter_add(tiny_driver, TINY, &tiny.instance), STATUS_SUCCESS);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    ndis_adapter_remove(tiny.instance);
    assert_int_equal(atomic_load(&tiny.halts), 1);
    NdisMDeregisterMiniportDriver(tiny_driver);
    return 0;
}

static NTSTATUS open_index(NET_IFINDEX index, NDK_ADAPTER **out, char error[300])
{
    NDK_VERSION version = {1, 0};

    error[0] = '\0';
    return ndis_open_adapter(index, version, out, error, 300);
}

/* ---- tests ---- */

static void wrong_headers_are_refused(void **state)
{
    NDIS_HANDLE kept = tiny_driver;
    unsigned whole = NDIS_SIZEOF_MINIPORT_DRIVER_CHARACTERISTICS_REVISION_2;

    (void)state;
    assert_int_equal(tiny_register((USHORT)(whole - 1)), NDIS_STATUS_BAD_CHARACTERISTICS);
    header_size--;
    assert_int_equal(tiny_register((USHORT)whole), NDIS_STATUS_BAD_CHARACTERISTICS);
    header_size++;
    has_direct = false; /* OID_NDK_STATISTICS has nowhere to go */
    assert_int_equal(tiny_register((USHORT)whole), NDIS_STATUS_BAD_CHARACTERISTICS);
    has_direct = true;
    tiny_driver = kept;
}

static void two_providers_are_open_side_by_side(void **state)
{
    NDK_ADAPTER *a = NULL, *b = NULL, *c = NULL, *soft = NULL;
    struct os_interface lo[64];
    NDK_ADAPTER_INFO info;
    ULONG size = sizeof info;
    NET_IFINDEX index = 0;
    char error[300];
    int n = os_interfaces(lo, 64);

    (void)state;
    for (int i = 0; i < n && i < 64; i++)
        if (lo[i].loopback)
            index = lo[i].index;
    assert_int_equal(open_index(TINY, &a, error), STATUS_SUCCESS);
    assert_int_equal(open_index(TINY, &b, error), STATUS_SUCCESS);
    assert_ptr_not_equal(a, b);
    assert_int_equal(open_index(TINY, &c, error), NDIS_STATUS_RESOURCES);
    assert_null(c);
    assert_int_equal(open_index(index, &soft, error), STATUS_SUCCESS);
    info.Version.Major = info.Version.Minor = 0;
    assert_int_equal(soft->Dispatch->NdkQueryAdapterInfo(soft, &info, &size), STATUS_SUCCESS);
    assert_int_equal(info.Version.Major, 1);
    assert_int_equal(info.Version.Minor, 2);
    assert_int_equal(ndis_adapter_tell(soft, NULL, NULL), 0);
    assert_int_equal(ndis_adapter_add(tiny_driver, index, &tiny.instance),
                     STATUS_OBJECT_NAME_COLLISION);
    ndis_close_adapter(soft);
    ndis_close_adapter(a);
    ndis_close_adapter(b);
    assert_int_equal(tiny.closes, 2);
}

static void an_unknown_index_is_not_supported(void **state)
{
    NDK_ADAPTER *a = NULL;
    char error[300];

    (void)state;
    assert_int_equal(open_index(0x7ffffff1, &a, error), STATUS_NOT_SUPPORTED);
    assert_string_equal(error, "interface 2147483633: no NDK adapter has this index");
    assert_null(a);
}

static void a_version_that_is_not_offered_is_passed_through(void **state)
{
    NDK_ADAPTER *a = NULL;
    char error[300];

    (void)state;
    tiny.answer = NDIS_STATUS_BAD_VERSION;
    assert_int_equal(open_index(TINY, &a, error), NDIS_STATUS_BAD_VERSION);
    assert_non_null(strstr(error, "refused"));
}

/* What a refused open leaves: nothing to close. Closed nevertheless if it was not refused, so that
 * the test ends. */
static NTSTATUS open_refused(char error[300])
{
    NDK_ADAPTER *a = NULL;
    NTSTATUS status = open_index(TINY, &a, error);

    if (status == STATUS_SUCCESS)
        ndis_close_adapter(a);
    else
        assert_null(a);
    return status;
}

static void a_provider_that_misbehaves_is_named(void **state)
{
    char error[300];

    (void)state;
    tiny.null = true;
    assert_int_equal(open_refused(error), STATUS_UNSUCCESSFUL);
    assert_non_null(strstr(error, "success without an adapter"));
    tiny.null = false;
    tiny.slot[0].Header.ObjectType = NdkObjectTypeCq;
    assert_int_equal(open_refused(error), STATUS_UNSUCCESSFUL);
    assert_non_null(strstr(error, "type adapter"));
    assert_int_equal(tiny.closes, 1);
}

static atomic_bool event_returned;

static void *disable(void *context)
{
    (void)context;
    raise_event(NetEventNDKDisable);
    atomic_store(&event_returned, true);
    return NULL;
}

static bool disabled_seen;

static void a_disabled_instance_is_not_ready(void **state)
{
    char error[300];

    (void)state;
    assert_int_equal(raise_event(NetEventNDKDisable), NDIS_STATUS_SUCCESS);
    assert_int_equal(open_refused(error), NDIS_STATUS_ADAPTER_NOT_READY);
    assert_string_equal(error, "interface 4711: NDK is disabled");
    disabled_seen = true;
    assert_int_equal(raise_event(NetEventNDKEnable), NDIS_STATUS_SUCCESS);
    assert_int_equal(open_refused(error), STATUS_SUCCESS);
    assert_int_equal(raise_event(NetEventPause), NDIS_STATUS_NOT_SUPPORTED);
}

static bool returned_until(uint64_t limit)
{
    while (!atomic_load(&event_returned) && os_now_us() < limit)
        sched_yield();
    return atomic_load(&event_returned);
}

static void a_disable_is_pending_until_the_opens_are_closed(void **state)
{
    NDK_ADAPTER *a = NULL;
    NTSTATUS status;
    pthread_t thread;
    uint64_t limit;
    char error[300];
    bool early;

    (void)state;
    assert_true(disabled_seen); /* else the refusal is waited for in vain */
    atomic_store(&event_returned, false);
    assert_int_equal(open_index(TINY, &a, error), STATUS_SUCCESS);
    assert_int_equal(pthread_create(&thread, NULL, disable, NULL), 0);
    limit = os_now_us() + 20000000u;
    do { /* an open that is refused: the event has taken effect */
        status = open_refused(error);
    } while (status == STATUS_SUCCESS && os_now_us() < limit);
    early = returned_until(os_now_us() + 100000u); /* longer would find no more faults */
    ndis_close_adapter(a);
    pthread_join(thread, NULL);
    assert_int_equal(status, NDIS_STATUS_ADAPTER_NOT_READY);
    assert_false(early);
}

static void a_close_of_what_is_not_open_is_found(void **state)
{
    unsigned before = nt_finding_count();

    (void)state;
    ndis_close_adapter(&tiny.slot[0]);
    assert_int_equal(nt_finding_count(), before + 1);
    assert_int_equal(tiny.closes, 0);
}

/* ---- an enable ends it; a removal waits ---- */

static void an_enable_ends_a_disable_that_is_pending(void **state)
{
    NDK_ADAPTER *a = NULL;
    pthread_t thread;
    uint64_t limit = os_now_us() + 20000000u;
    NTSTATUS status;
    char error[300];
    bool ended;

    (void)state;
    assert_true(disabled_seen);
    atomic_store(&event_returned, false);
    assert_int_equal(open_index(TINY, &a, error), STATUS_SUCCESS);
    assert_int_equal(pthread_create(&thread, NULL, disable, NULL), 0);
    do {
        status = open_refused(error);
    } while (status == STATUS_SUCCESS && os_now_us() < limit);
    assert_int_equal(raise_event(NetEventNDKEnable), NDIS_STATUS_SUCCESS);
    ended = returned_until(os_now_us() + 5000000u); /* with the adapter open */
    assert_int_equal(open_refused(error), STATUS_SUCCESS);
    ndis_close_adapter(a);
    pthread_join(thread, NULL);
    assert_true(ended);
}

static atomic_bool removed;

static void *remove_tiny(void *context)
{
    ndis_adapter_remove(tiny.instance);
    atomic_store(&removed, true);
    return context;
}

static void a_removal_waits_for_the_opens(void **state)
{
    NDK_ADAPTER *a = NULL;
    NTSTATUS status;
    pthread_t thread;
    uint64_t limit = os_now_us() + 20000000u;
    char error[300];
    unsigned halts;

    (void)state;
    atomic_store(&removed, false);
    assert_int_equal(open_index(TINY, &a, error), STATUS_SUCCESS);
    assert_int_equal(pthread_create(&thread, NULL, remove_tiny, NULL), 0);
    do { /* refused: the removal has begun; it is not an instance any more, nor halted */
        status = open_refused(error);
    } while (status == STATUS_SUCCESS && os_now_us() < limit);
    for (limit = os_now_us() + 100000u; os_now_us() < limit && !atomic_load(&removed);)
        sched_yield();
    halts = atomic_load(&tiny.halts);
    ndis_close_adapter(a);
    pthread_join(thread, NULL);
    assert_int_equal(status, STATUS_NOT_SUPPORTED);
    assert_int_equal(halts, 0);
    assert_int_equal(atomic_load(&tiny.halts), 1);
    atomic_store(&tiny.halts, 0);
    assert_int_equal(ndis_adapter_add(tiny_driver, TINY, &tiny.instance), STATUS_SUCCESS);
}

/* ---- what begins ---- */

static atomic_int opened_status;

static void *open_early(void *context)
{
    NDK_ADAPTER *a = NULL;
    char error[300];
    NTSTATUS status = open_index(TINY, &a, error);

    if (status == STATUS_SUCCESS)
        ndis_close_adapter(a);
    atomic_store(&opened_status, status);
    return context;
}

static void *add_tiny(void *context)
{
    (void)ndis_adapter_add(tiny_driver, TINY, &tiny.instance);
    return context;
}

static void an_open_waits_for_an_instance_that_starts(void **state)
{
    KEVENT begun, go;
    pthread_t adds, opens;
    uint64_t limit;

    (void)state;
    ndis_adapter_remove(tiny.instance);
    atomic_store(&tiny.halts, 0);
    KeInitializeEvent(&begun, NotificationEvent, FALSE);
    KeInitializeEvent(&go, NotificationEvent, FALSE);
    tiny.begun = &begun;
    tiny.go = &go;
    atomic_store(&opened_status, STATUS_PENDING);
    assert_int_equal(pthread_create(&adds, NULL, add_tiny, NULL), 0);
    KeWaitForSingleObject(&begun, Executive, KernelMode, FALSE, NULL);
    assert_int_equal(pthread_create(&opens, NULL, open_early, NULL), 0);
    /* An open that does not wait has its answer soon; longer would find no more faults. */
    for (limit = os_now_us() + 200000u;
         os_now_us() < limit && atomic_load(&opened_status) == STATUS_PENDING;)
        sched_yield();
    KeSetEvent(&go, IO_NO_INCREMENT, FALSE);
    pthread_join(adds, NULL);
    pthread_join(opens, NULL);
    tiny.begun = NULL;
    assert_int_equal(atomic_load(&opened_status), STATUS_SUCCESS);
}

static void ndk_attributes_come_after_those_of_registration(void **state)
{
    NDIS_HANDLE none = NULL;

    (void)state;
    ndis_adapter_remove(tiny.instance);
    tiny.unregistered = true;
    assert_int_equal(ndis_adapter_add(tiny_driver, TINY, &none), NDIS_STATUS_INVALID_PARAMETER);
    assert_false(ndis_adapter_known(TINY));
    tiny.unregistered = false;
    atomic_store(&tiny.halts, 0);
    assert_int_equal(ndis_adapter_add(tiny_driver, TINY, &tiny.instance), STATUS_SUCCESS);
}

static void options_are_for_providers_that_take_them(void **state)
{
    NDK_VERSION version = {1, 0};
    NDK_ADAPTER *a = NULL;
    char error[300];

    (void)state;
    assert_int_equal(ndis_open_adapter_with(TINY, version, "crc=off", &a, error, sizeof error),
                     STATUS_INVALID_PARAMETER);
    assert_string_equal(error, "interface 4711: options are given, and its provider takes none");
    assert_null(a);
    assert_int_equal(ndis_open_adapter_with(TINY, version, "", &a, error, sizeof error),
                     STATUS_SUCCESS);
    ndis_close_adapter(a);
}

static void an_event_in_an_oid_handler_is_found(void **state)
{
    unsigned before = nt_finding_count();
    BOOLEAN off = FALSE;
    char error[300];

    (void)state;
    tiny.event_in_oid = true;
    assert_int_equal(ndis_oid_request(TINY, NdisRequestSetInformation, OID_NDK_SET_STATE, &off,
                                      sizeof off, NULL, error, sizeof error),
                     STATUS_SUCCESS);
    assert_int_equal(tiny.event, NDIS_STATUS_FAILURE);
    assert_int_equal(nt_finding_count(), before + 1);
    assert_int_equal(open_refused(error), STATUS_SUCCESS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(wrong_headers_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(two_providers_are_open_side_by_side, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_unknown_index_is_not_supported, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_version_that_is_not_offered_is_passed_through, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_provider_that_misbehaves_is_named, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_disabled_instance_is_not_ready, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_disable_is_pending_until_the_opens_are_closed, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(an_enable_ends_a_disable_that_is_pending, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_removal_waits_for_the_opens, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_open_waits_for_an_instance_that_starts, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(ndk_attributes_come_after_those_of_registration, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(options_are_for_providers_that_take_them, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(an_event_in_an_oid_handler_is_found, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_close_of_what_is_not_open_is_found, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
