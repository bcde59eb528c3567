// SPDX-License-Identifier: MIT
/*
 * oid_test.c - OID requests to a provider of the test's own: both ways, answers at once and later,
 * lengths, misuse; and what NDIS does for a provider besides, keywords and work items.
 */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ndis/ndis_testing.h"
#include "ndis/registry_internal.h"
#include "nt/nt.h"

#define PLAYER   4712u
#define LIMIT_US 20000000u

/* OIDs of the provider's own. */
enum {
    OID_FOUR = 0xff000001, /* four octets */
    OID_TOO_MANY,          /* counts more than there is room for */
    OID_LATER,             /* pends; the test answers */
    OID_EARLY,             /* answers, then says that it pends */
    OID_PLAIN              /* counts who is in the handler */
};

static struct player {
    NDIS_HANDLE driver, instance;
    _Atomic(PNDIS_OID_REQUEST) pending;
    atomic_uint plain, direct, halts, worked;
    bool set_state_pends;
    ULONG keyword_integer;
    NDIS_STATUS keyword_string, keyword_unknown, keyword_kind;
    WCHAR keyword_text;
} player;

static NDIS_STATUS answer(struct player *p, PNDIS_OID_REQUEST request)
{
    struct _QUERY *q = &request->DATA.QUERY_INFORMATION;

    assert_int_equal(request->Header.Type, NDIS_OBJECT_TYPE_OID_REQUEST);
    switch (q->Oid) {
    case OID_FOUR:
        q->BytesNeeded = 4;
        if (q->InformationBufferLength < 4)
            return NDIS_STATUS_BUFFER_TOO_SHORT;
        memcpy(q->InformationBuffer, "four", 4);
        q->BytesWritten = 4;
        return NDIS_STATUS_SUCCESS;
    case OID_TOO_MANY:
        q->BytesWritten = 1000;
        return NDIS_STATUS_SUCCESS;
    case OID_LATER:
        atomic_store(&p->pending, request);
        return NDIS_STATUS_PENDING;
    case OID_EARLY:
        q->BytesWritten = 1;
        NdisMOidRequestComplete(p->instance, request, NDIS_STATUS_SUCCESS);
        return NDIS_STATUS_PENDING;
    case OID_NDK_SET_STATE:
        atomic_store(&p->pending, request);
        return p->set_state_pends ? NDIS_STATUS_PENDING : NDIS_STATUS_SUCCESS;
    default:
        return NDIS_STATUS_NOT_SUPPORTED;
    }
}

static NDIS_STATUS plain_oid(NDIS_HANDLE context, PNDIS_OID_REQUEST request)
{
    struct player *p = context;

    atomic_fetch_add(&p->plain, 1);
    return answer(p, request);
}

static NDIS_STATUS direct_oid(NDIS_HANDLE context, PNDIS_OID_REQUEST request)
{
    struct player *p = context;

    atomic_fetch_add(&p->direct, 1);
    assert_int_equal(request->DATA.QUERY_INFORMATION.Oid, OID_NDK_STATISTICS);
    return NDIS_STATUS_SUCCESS;
}

static NDIS_STATUS no_open(NDIS_HANDLE context, PNDIS_OPEN_NDK_ADAPTER_PARAMETERS parameters,
                           NDK_ADAPTER **out)
{
    (void)context;
    (void)parameters;
    (void)out;
    return NDIS_STATUS_RESOURCES;
}

static VOID no_close(NDIS_HANDLE context, NDK_ADAPTER *adapter)
{
    (void)context;
    (void)adapter;
}

static NDIS_STATUS set_options(NDIS_HANDLE driver, NDIS_HANDLE context)
{
    NDIS_NDK_PROVIDER_CHARACTERISTICS c = {
        .Header = {NDIS_OBJECT_TYPE_NDK_PROVIDER_CHARACTERISTICS, 1,
                   NDIS_SIZEOF_NDK_PROVIDER_CHARACTERISTICS_REVISION_1},
        .OpenNDKAdapterHandler = no_open,
        .CloseNDKAdapterHandler = no_close,
    };

    (void)context;
    return NdisSetOptionalHandlers(driver, &c.Header);
}

static void read_keywords(NDIS_HANDLE handle)
{
    NDIS_CONFIGURATION_OBJECT object = {
        .Header = {NDIS_OBJECT_TYPE_CONFIGURATION_OBJECT, 1,
                   NDIS_SIZEOF_CONFIGURATION_OBJECT_REVISION_1},
        .NdisHandle = handle,
    };
    NDIS_STRING direct = NETWORK_DIRECT_KEYWORD;
    NDIS_STRING flags = NETWORK_DIRECT_GLOBAL_FLAGS_KEYWORD;
    PNDIS_CONFIGURATION_PARAMETER value;
    NDIS_HANDLE configuration;
    NDIS_STATUS status;

    assert_int_equal(NdisOpenConfigurationEx(&object, &configuration), NDIS_STATUS_SUCCESS);
    NdisReadConfiguration(&status, &value, configuration, &direct, NdisParameterInteger);
    assert_int_equal(status, NDIS_STATUS_SUCCESS);
    player.keyword_integer = value->ParameterData.IntegerData;
    NdisReadConfiguration(&player.keyword_string, &value, configuration, &direct,
                          NdisParameterString);
    assert_int_equal(value->ParameterType, NdisParameterString);
    assert_int_equal(value->ParameterData.StringData.Length, sizeof(WCHAR));
    player.keyword_text = value->ParameterData.StringData.Buffer[0];
    NdisReadConfiguration(&player.keyword_unknown, &value, configuration, &flags,
                          NdisParameterInteger);
    NdisReadConfiguration(&player.keyword_kind, &value, configuration, &direct,
                          NdisParameterBinary);
    NdisCloseConfiguration(configuration);
    object.Header.Size--;
    assert_int_equal(NdisOpenConfigurationEx(&object, &configuration),
                     NDIS_STATUS_INVALID_PARAMETER);
}

static NDIS_STATUS initialize(NDIS_HANDLE instance, NDIS_HANDLE context,
                              PNDIS_MINIPORT_INIT_PARAMETERS parameters)
{
    (void)parameters;
    assert_int_equal(miniport_set_context(instance, context), NDIS_STATUS_SUCCESS);
    read_keywords(instance);
    return miniport_set_ndk(instance);
}

static VOID halt(NDIS_HANDLE context, NDIS_HALT_ACTION action)
{
    (void)action;
    atomic_fetch_add(&((struct player *)context)->halts, 1);
}

static NDIS_STATUS register_player(bool ndk, PNDIS_HANDLE out)
{
    NDIS_MINIPORT_DRIVER_CHARACTERISTICS c = {
        .Header = {NDIS_OBJECT_TYPE_MINIPORT_DRIVER_CHARACTERISTICS, 2,
                   NDIS_SIZEOF_MINIPORT_DRIVER_CHARACTERISTICS_REVISION_2},
        .MajorNdisVersion = 6,
        .MinorNdisVersion = 30,
        .SetOptionsHandler = ndk ? set_options : NULL,
        .InitializeHandlerEx = initialize,
        .HaltHandlerEx = halt,
        .OidRequestHandler = ndk ? plain_oid : NULL,
        .DirectOidRequestHandler = ndk ? direct_oid : NULL,
    };

    return NdisMRegisterMiniportDriver(NULL, NULL, &player, &c, out);
}

static int set_up(void **state)
{
    (void)state;
    memset(&player, 0, sizeof player);
    assert_int_equal(register_player(true, &player.driver), NDIS_STATUS_SUCCESS);
    assert_int_equal(ndis_adapter_add(player.driver, PLAYER, &player.instance), STATUS_SUCCESS);
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    ndis_adapter_remove(player.instance);
    NdisMDeregisterMiniportDriver(player.driver);
    return 0;
}

static char error[300];

static NTSTATUS query(NDIS_OID oid, void *buffer, ULONG length, ULONG *bytes)
{
    return ndis_oid_request(PLAYER, NdisRequestQueryInformation, oid, buffer, length, bytes, error,
                            sizeof error);
}

/* ---- lengths, unknown ones ---- */

static void octets_are_written_or_needed(void **state)
{
    char buffer[8] = "";
    ULONG bytes = 77;

    (void)state;
    assert_int_equal(query(OID_FOUR, buffer, sizeof buffer, &bytes), STATUS_SUCCESS);
    assert_int_equal(bytes, 4);
    assert_memory_equal(buffer, "four", 4);
    assert_int_equal(query(OID_FOUR, buffer, 3, &bytes), NDIS_STATUS_BUFFER_TOO_SHORT);
    assert_int_equal(bytes, 4);
    assert_string_equal(error, "interface 4712: OID 0xff000001: the buffer has 3 octets (need 4)");
    assert_int_equal(query(OID_FOUR, NULL, 0, NULL), NDIS_STATUS_BUFFER_TOO_SHORT);
    assert_int_equal(query(OID_TOO_MANY, buffer, sizeof buffer, &bytes), STATUS_SUCCESS);
    assert_int_equal(bytes, sizeof buffer);
    bytes = 77;
    assert_int_equal(query(0xff00ffff, buffer, sizeof buffer, &bytes), STATUS_NOT_SUPPORTED);
    assert_int_equal(bytes, 0);
    assert_string_equal(error, "interface 4712: OID 0xff00ffff: its provider answers 0xc00000bb");
}

static void statistics_go_the_direct_way(void **state)
{
    (void)state;
    assert_int_equal(query(OID_NDK_STATISTICS, NULL, 0, NULL), STATUS_SUCCESS);
    assert_int_equal(atomic_load(&player.direct), 1);
    assert_int_equal(atomic_load(&player.plain), 0);
    assert_int_equal(query(OID_NDK_CONNECTIONS, NULL, 0, NULL), STATUS_NOT_SUPPORTED);
    assert_int_equal(atomic_load(&player.direct), 1);
    assert_int_equal(atomic_load(&player.plain), 1);
}

static void who_is_not_there_does_not_answer(void **state)
{
    NDIS_HANDLE driver, instance;

    (void)state;
    assert_int_equal(ndis_oid_request(0x7ffffff1, NdisRequestQueryInformation, OID_FOUR, NULL, 0,
                                      NULL, error, sizeof error),
                     STATUS_NOT_SUPPORTED);
    assert_string_equal(error, "interface 2147483633: no NDK adapter has this index");
    assert_int_equal(register_player(false, &driver), NDIS_STATUS_SUCCESS);
    assert_int_equal(ndis_adapter_add(driver, PLAYER + 1, &instance), STATUS_SUCCESS);
    assert_int_equal(ndis_oid_request(PLAYER + 1, NdisRequestQueryInformation, OID_FOUR, NULL, 0,
                                      NULL, error, sizeof error),
                     STATUS_NOT_SUPPORTED);
    assert_string_equal(error, "interface 4713: its driver has no handler for OID 0xff000001");
    ndis_adapter_remove(instance);
    NdisMDeregisterMiniportDriver(driver);
}

/* ---- answers that come later ---- */

struct asking {
    NDIS_OID oid;
    atomic_int status;
    pthread_t thread;
};

static void *ask(void *context)
{
    struct asking *a = context;

    char text[300];

    atomic_store(&a->status, ndis_oid_request(PLAYER, NdisRequestQueryInformation, a->oid, NULL, 0,
                                              NULL, text, sizeof text));
    return NULL;
}

static void ask_begin(struct asking *a, NDIS_OID oid)
{
    a->oid = oid;
    atomic_store(&a->status, STATUS_PENDING);
    assert_int_equal(pthread_create(&a->thread, NULL, ask, a), 0);
}

static PNDIS_OID_REQUEST await_pending(void)
{
    uint64_t limit = os_now_us() + LIMIT_US;

    while (!atomic_load(&player.pending) && os_now_us() < limit)
        sched_yield();
    return atomic_exchange(&player.pending, NULL);
}

/* For what must not happen: longer would find no more faults. */
static void let_go_wrong(void)
{
    uint64_t limit = os_now_us() + 100000u;

    while (os_now_us() < limit)
        sched_yield();
}

static void an_answer_may_come_later(void **state)
{
    struct asking a;
    PNDIS_OID_REQUEST request;
    NTSTATUS early;
    ULONG bytes = 0;
    char octet;

    (void)state;
    ask_begin(&a, OID_LATER);
    request = await_pending();
    let_go_wrong();
    early = atomic_load(&a.status);
    if (request)
        NdisMOidRequestComplete(player.instance, request, NDIS_STATUS_INVALID_DATA);
    pthread_join(a.thread, NULL);
    assert_non_null(request);
    assert_int_equal(early, STATUS_PENDING);
    assert_int_equal(atomic_load(&a.status), NDIS_STATUS_INVALID_DATA);
    assert_int_equal(query(OID_EARLY, &octet, 1, &bytes), STATUS_SUCCESS);
    assert_int_equal(bytes, 1);
}

static void requests_are_one_at_a_time_but_direct_ones(void **state)
{
    struct asking a, b;
    PNDIS_OID_REQUEST request;
    unsigned beside, direct;

    (void)state;
    ask_begin(&a, OID_LATER);
    request = await_pending();
    assert_non_null(request);
    ask_begin(&b, OID_FOUR);
    assert_int_equal(query(OID_NDK_STATISTICS, NULL, 0, NULL), STATUS_SUCCESS);
    let_go_wrong();
    beside = atomic_load(&player.plain);
    direct = atomic_load(&player.direct);
    NdisMOidRequestComplete(player.instance, request, NDIS_STATUS_SUCCESS);
    pthread_join(a.thread, NULL);
    pthread_join(b.thread, NULL);
    assert_int_equal(direct, 1);
    assert_int_equal(beside, 1);
    assert_int_equal(atomic_load(&player.plain), 2);
    assert_int_equal(atomic_load(&b.status), NDIS_STATUS_BUFFER_TOO_SHORT);
}

static atomic_bool removed;

static void *remove_player(void *context)
{
    ndis_adapter_remove(player.instance);
    atomic_store(&removed, true);
    return context;
}

static void a_removal_waits_for_a_request(void **state)
{
    struct asking a;
    PNDIS_OID_REQUEST request;
    pthread_t thread;
    unsigned halts;
    NTSTATUS late = STATUS_SUCCESS;
    uint64_t limit = os_now_us() + LIMIT_US;

    (void)state;
    atomic_store(&removed, false);
    ask_begin(&a, OID_LATER);
    request = await_pending();
    assert_non_null(request);
    assert_int_equal(pthread_create(&thread, NULL, remove_player, NULL), 0);
    while ((late = query(OID_NDK_STATISTICS, NULL, 0, NULL)) == STATUS_SUCCESS &&
           os_now_us() < limit)
        sched_yield();
    let_go_wrong();
    halts = atomic_load(&player.halts);
    NdisMOidRequestComplete(player.instance, request, NDIS_STATUS_SUCCESS);
    pthread_join(a.thread, NULL);
    pthread_join(thread, NULL);
    assert_int_equal(late, STATUS_NOT_SUPPORTED);
    assert_int_equal(halts, 0);
    assert_int_equal(atomic_load(&a.status), STATUS_SUCCESS);
    assert_int_equal(atomic_load(&player.halts), 1);
    assert_int_equal(ndis_adapter_add(player.driver, PLAYER, &player.instance), STATUS_SUCCESS);
}

/* ---- misuse ---- */

static void a_wrong_answer_is_found(void **state)
{
    unsigned before = nt_finding_count();
    struct asking a;
    NDIS_OID_REQUEST never = {.RequestType = NdisRequestQueryInformation};
    PNDIS_OID_REQUEST request;

    (void)state;
    NdisMOidRequestComplete(player.instance, &never, NDIS_STATUS_SUCCESS);
    assert_int_equal(nt_finding_count(), before + 1);
    ask_begin(&a, OID_LATER);
    request = await_pending();
    assert_non_null(request);
    NdisMDirectOidRequestComplete(player.instance, request, NDIS_STATUS_SUCCESS);
    NdisMOidRequestComplete(&never, request, NDIS_STATUS_SUCCESS);
    NdisMOidRequestComplete(player.instance, request, NDIS_STATUS_FAILURE);
    pthread_join(a.thread, NULL);
    assert_int_equal(nt_finding_count(), before + 3);
    assert_int_equal(atomic_load(&a.status), NDIS_STATUS_FAILURE);
}

static void a_state_is_not_set_later(void **state)
{
    unsigned before = nt_finding_count();
    struct asking a;
    PNDIS_OID_REQUEST request;

    (void)state;
    player.set_state_pends = true;
    ask_begin(&a, OID_NDK_SET_STATE);
    request = await_pending();
    assert_non_null(request);
    NdisMOidRequestComplete(player.instance, request, NDIS_STATUS_SUCCESS);
    pthread_join(a.thread, NULL);
    assert_int_equal(nt_finding_count(), before + 1);
}

static void a_provider_that_sends_no_event_is_named(void **state)
{
    (void)state;
    ndis_event_limit_ms = 50;
    assert_int_equal(ndis_interface_set_state(PLAYER, false, error, sizeof error),
                     STATUS_IO_TIMEOUT);
    assert_string_equal(error, "interface 4712: its provider sends no event after "
                               "OID_NDK_SET_STATE (waited 50 ms), rule 3.5");
    assert_int_equal(ndis_interface_set_state(PLAYER, true, error, sizeof error), STATUS_SUCCESS);
    ndis_event_limit_ms = 10000;
}

/* ---- what else NDIS does ---- */

static void keywords_are_read(void **state)
{
    (void)state;
    assert_int_equal(player.keyword_integer, 1);
    assert_int_equal(player.keyword_string, NDIS_STATUS_SUCCESS);
    assert_int_equal(player.keyword_text, '1');
    assert_int_equal(player.keyword_unknown, NDIS_STATUS_FAILURE);
    assert_int_equal(player.keyword_kind, NDIS_STATUS_FAILURE);
}

static KEVENT worked;

static VOID work(PVOID context, NDIS_HANDLE item)
{
    atomic_fetch_add(&((struct player *)context)->worked, 1);
    if (KeGetCurrentIrql() == PASSIVE_LEVEL)
        NdisFreeIoWorkItem(item);
    KeSetEvent(&worked, IO_NO_INCREMENT, FALSE);
}

static void work_items_run(void **state)
{
    NDIS_HANDLE item = NdisAllocateIoWorkItem(player.instance);

    (void)state;
    assert_non_null(item);
    KeInitializeEvent(&worked, NotificationEvent, FALSE);
    NdisQueueIoWorkItem(item, work, &player);
    KeWaitForSingleObject(&worked, Executive, KernelMode, FALSE, NULL);
    assert_int_equal(atomic_load(&player.worked), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(octets_are_written_or_needed, set_up, tear_down),
        cmocka_unit_test_setup_teardown(statistics_go_the_direct_way, set_up, tear_down),
        cmocka_unit_test_setup_teardown(who_is_not_there_does_not_answer, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_answer_may_come_later, set_up, tear_down),
        cmocka_unit_test_setup_teardown(requests_are_one_at_a_time_but_direct_ones, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_removal_waits_for_a_request, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_wrong_answer_is_found, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_state_is_not_set_later, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_provider_that_sends_no_event_is_named, set_up, tear_down),
        cmocka_unit_test_setup_teardown(keywords_are_read, set_up, tear_down),
        cmocka_unit_test_setup_teardown(work_items_run, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
