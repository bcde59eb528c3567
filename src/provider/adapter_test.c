// SPDX-License-Identifier: MIT
/* adapter_test.c - versions, the information structure, the blocking close (C7, C9, C10). */
#include <sys/wait.h>

#include "nt/nt.h"
#include "provider/adapter_info.h"
#include "provider/address.h"
#include "provider/object_test.h"

/* ---- versions ---- */

static void the_highest_minor_of_the_major_runs(void **state)
{
    static const struct {
        unsigned major, minor; /* offered at most */
        unsigned want_major, want_minor;
        unsigned runs_major, runs_minor; /* 0.0: BAD_VERSION */
    } cases[] = {
        {2, 1, 1, 0, 1, 2}, {2, 1, 1, 1, 1, 2},           {2, 1, 1, 2, 1, 2}, {2, 1, 1, 3, 0, 0},
        {2, 1, 2, 0, 2, 1}, {2, 1, 2, 1, 2, 1},           {2, 1, 2, 2, 0, 0}, {2, 1, 0, 0, 0, 0},
        {2, 1, 3, 0, 0, 0}, {2, 1, 0xffff, 0xffff, 0, 0}, {2, 0, 2, 0, 2, 0}, {2, 0, 2, 1, 0, 0},
        {2, 0, 1, 2, 1, 2}, {1, 2, 1, 0, 1, 2},           {1, 2, 2, 0, 0, 0}, {1, 1, 1, 0, 1, 1},
        {1, 1, 1, 2, 0, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct options options;
        NDK_VERSION wanted = {(USHORT)cases[i].want_major, (USHORT)cases[i].want_minor};
        NDK_VERSION runs = {0, 0};
        char text[16], error[100];
        bool ok;

        options_defaults(&options);
        snprintf(text, sizeof text, "ndkpi=%u.%u", cases[i].major, cases[i].minor);
        assert_true(options_apply(&options, text, error, sizeof error));
        ok = adapter_negotiate(wanted, &options, &runs);
        if (ok != (cases[i].runs_major != 0) || runs.Major != cases[i].runs_major ||
            runs.Minor != cases[i].runs_minor)
            fail_msg("case %zu: runs %u.%u", i, runs.Major, runs.Minor);
    }
}

static void an_open_refuses_a_version_in_words(void **state)
{
    struct os_interface interface;
    struct options options;
    struct adapter *adapter = NULL;
    NDK_VERSION version = {2, 1};
    char error[200] = "";

    (void)state;
    test_loopback(&interface);
    options_defaults(&options);
    assert_true(options_apply(&options, "ndkpi=1.2", error, sizeof error));
    assert_int_equal(adapter_open(&interface, &options, version, &adapter, error, sizeof error),
                     ADAPTER_BAD_VERSION);
    assert_null(adapter);
    assert_string_equal(error, "NDKPI 2.1 is not offered (highest 1.2), rule 3.3");
}

static void an_open_without_threads_or_memory_fails_cleanly(void **state)
{
    struct os_interface interface;
    struct options options;
    struct adapter *adapter = NULL;
    NDK_VERSION version = {2, 0};
    char error[200] = "";

    (void)state;
    test_loopback(&interface);
    options_defaults(&options);
    assert_true(fail_set("memory:1"));
    assert_int_equal(adapter_open(&interface, &options, version, &adapter, error, sizeof error),
                     ADAPTER_RESOURCES);
    assert_true(fail_set(NULL));
    assert_int_equal(os_fault_set("thread", 1, EAGAIN, false), 0);
    assert_int_equal(adapter_open(&interface, &options, version, &adapter, error, sizeof error),
                     ADAPTER_RESOURCES);
    os_fault_clear();
    assert_null(adapter);
    assert_int_equal(engine_shard_count(), 0);
}

/* ---- information ---- */

static NDK_ADAPTER *ndk_of(struct adapter *adapter)
{
    return (NDK_ADAPTER *)(void *)adapter;
}

static NTSTATUS query(struct adapter *adapter, void *info, ULONG *size)
{
    NDK_ADAPTER *ndk = ndk_of(adapter);

    return ndk->Dispatch->NdkQueryAdapterInfo(ndk, info, size);
}

static void the_numbers_are_the_advertised_ones(void **state)
{
    NDK_ADAPTER_INFO info;
    ULONG size = sizeof info;

    memset(&info, 0xa5, sizeof info);
    assert_int_equal(query(*state, &info, &size), STATUS_SUCCESS);
    assert_int_equal(size, sizeof info);
    assert_int_equal(info.Version.Major, 2);
    assert_int_equal(info.Version.Minor, 1);
    assert_int_equal(info.FRMRPageCount, 256);
    assert_int_equal(info.MaxInitiatorRequestSge, 16);
    assert_int_equal(info.MaxReceiveRequestSge, 16);
    assert_int_equal(info.MaxReadRequestSge, 16);
    assert_int_equal(info.MaxTransferLength, 1u << 30);
    assert_int_equal(info.MaxInlineDataSize, 256);
    assert_int_equal(info.MaxInboundReadLimit, 16);
    assert_int_equal(info.MaxOutboundReadLimit, 16);
    assert_int_equal(info.MaxReceiveQueueDepth, 4096);
    assert_int_equal(info.MaxInitiatorQueueDepth, 4096);
    assert_int_equal(info.MaxSrqDepth, 4096);
    assert_int_equal(info.MaxCqDepth, 65536);
    assert_int_equal(info.MaxWindowSize, info.MaxRegistrationSize);
    assert_int_equal(info.MaxCallerData, 251);
    assert_int_equal(info.MaxCalleeData, 251);
    assert_int_equal(info.RdmaTechnology, NdkiWarp);
    /* nothing whose function is not there: no IN_ORDER_DMA */
    assert_int_equal(info.AdapterFlags, 0x1011e);
    assert_true(info.MaxRegistrationSize >= info.MaxTransferLength);
}

static void flags_follow_options_and_version(void **state)
{
    NDK_VERSION old = {1, 1}, newer = {1, 2};
    NDK_ADAPTER_INFO info;
    struct options options;

    (void)state;
    options_defaults(&options);
    options.read_sink_not_required = 0;
    adapter_info_fill(&info, &options, newer);
    assert_int_equal(info.AdapterFlags, 0x1011c);
    adapter_info_fill(&info, &options, old);
    assert_int_equal(info.AdapterFlags, 0x1010c); /* local invalidate came with 1.2 */
}

static void the_size_protocol_tells_what_is_needed(void **state)
{
    struct adapter *adapter = *state;
    unsigned char buffer[sizeof(NDK_ADAPTER_INFO) + 32];
    ULONG size = 0;

    assert_int_equal(query(adapter, NULL, &size), STATUS_BUFFER_TOO_SMALL);
    assert_int_equal(size, sizeof(NDK_ADAPTER_INFO));
    size = 4096;
    assert_int_equal(query(adapter, NULL, &size), STATUS_BUFFER_TOO_SMALL);
    assert_int_equal(size, sizeof(NDK_ADAPTER_INFO));
    for (ULONG room = 0; room < sizeof buffer; room++) {
        NTSTATUS status;

        memset(buffer, 0xa5, sizeof buffer);
        size = room;
        status = query(adapter, buffer, &size);
        assert_int_equal(size, sizeof(NDK_ADAPTER_INFO));
        assert_int_equal(status, room < size ? STATUS_BUFFER_TOO_SMALL : STATUS_SUCCESS);
        for (ULONG i = room < size ? 0 : size; i < sizeof buffer; i++)
            assert_int_equal(buffer[i], 0xa5);
    }
    assert_int_equal(query(adapter, buffer, NULL), STATUS_INVALID_PARAMETER);
}

static void major_1_takes_the_older_structure(void **state)
{
    const ULONG older = offsetof(NDK_ADAPTER_INFO, RdmaTechnology);
    struct os_interface interface;
    struct options options;
    struct adapter *adapter = NULL;
    NDK_VERSION version = {1, 0};
    char error[200];
    NDK_ADAPTER_INFO info;
    ULONG size = older;

    (void)state;
    test_loopback(&interface);
    options_defaults(&options);
    assert_int_equal(adapter_open(&interface, &options, version, &adapter, error, sizeof error), 0);
    memset(&info, 0xa5, sizeof info);
    assert_int_equal(query(adapter, &info, &size), STATUS_SUCCESS);
    assert_int_equal(size, older);
    assert_int_equal(info.Version.Minor, 2);
    assert_int_equal((unsigned)info.RdmaTechnology, 0xa5a5a5a5u);
    size = older - 1;
    assert_int_equal(query(adapter, &info, &size), STATUS_BUFFER_TOO_SMALL);
    assert_int_equal(size, sizeof info);
    assert_int_equal(query(adapter, &info, &size), STATUS_SUCCESS);
    assert_int_equal(info.RdmaTechnology, NdkiWarp);
    adapter_close(adapter);
}

static void a_query_can_be_made_to_fail(void **state)
{
    NDK_ADAPTER_INFO info;
    ULONG size = sizeof info;
    char text[200];

    assert_true(fail_set("NdkQueryAdapterInfo:1:STATUS_DEVICE_REMOVED"));
    assert_int_equal(query(*state, &info, &size), STATUS_DEVICE_REMOVED);
    assert_true(object_reason(*state, text, sizeof text));
    assert_non_null(strstr(text, "SOFTNDK_FAIL"));
    assert_int_equal(query(*state, &info, &size), STATUS_SUCCESS);
}

static void a_query_above_passive_level_is_a_finding(void **state)
{
    NDK_ADAPTER_INFO info;
    ULONG size = sizeof info;
    unsigned before = nt_finding_count();
    KIRQL old = KeRaiseIrqlToDpcLevel();
    NTSTATUS status = query(*state, &info, &size);

    KeLowerIrql(old);
    assert_int_equal(status, STATUS_SUCCESS); /* found, and answered all the same */
    assert_int_equal(nt_finding_count(), before + 1);
    assert_int_equal(query(*state, &info, &size), STATUS_SUCCESS);
    assert_int_equal(nt_finding_count(), before + 1);
}

/* ---- addresses ---- */

static void loopback_owns_its_network(void **state)
{
    static const struct {
        const char *text;
        bool own;
    } cases[] = {{"127.0.0.1", true},   {"127.255.1.2:80", true}, {"128.0.0.1", false},
                 {"10.255.0.9", false}, {"fe80::1234", false},    {"0.0.0.0", false}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct os_addr address;

        assert_int_equal(os_addr_parse(cases[i].text, &address), 0);
        assert_int_equal(address_is_of(&((struct adapter *)*state)->interface, &address),
                         cases[i].own);
    }
}

static void a_link_local_address_may_come_without_its_zone(void **state)
{
    struct adapter *adapter = *state;
    struct os_interface kept = adapter->interface;
    struct os_addr address = {.family = OS_FAMILY_V6, .ip = {0xfe, 0x80, [15] = 1}};

    adapter->interface.addr_count = 1;
    adapter->interface.addr[0] = address;
    adapter->interface.addr[0].scope_id = 7;
    assert_true(address_is_of(&adapter->interface, &address));
    address.scope_id = 7;
    assert_true(address_is_of(&adapter->interface, &address));
    address.scope_id = 8;
    assert_false(address_is_of(&adapter->interface, &address));
    adapter->interface = kept;
}

/* ---- close ---- */

struct closer {
    struct adapter *adapter;
    atomic_bool returned;
};

static void close_thread(void *argument)
{
    struct closer *closer = argument;

    adapter_close(closer->adapter);
    atomic_store(&closer->returned, true);
    test_note("adapter-closed");
}

/* C9: objects first. C7: the successor's close completion has returned, not only begun. */
static void a_close_blocks_until_the_last_callback_returned(void **state)
{
    struct adapter *adapter = test_adapter_with("shards=2");
    struct test_object *object = test_object_new(&adapter->object, NULL);
    struct test_done closed = {.begin = "closed", .end = "returned", .stay_us = 60000};
    struct closer closer = {.adapter = adapter};
    struct os_thread *thread;

    (void)state;
    test_clear();
    assert_int_equal(os_thread_start(&thread, "closer", close_thread, &closer), 0);
    test_expect_still("");
    assert_true(pend_set("always"));
    assert_int_equal(test_close(object, &closed), STATUS_PENDING);
    test_expect("closed returned adapter-closed ");
    assert_true(pend_set("never"));
    os_thread_join(thread);
}

/* Again and again, with the close racing the completion's return and the engine's stop. */
static void a_close_races_the_last_completion(void **state)
{
    for (int i = 0; i < 100; i++) {
        struct adapter *adapter;
        struct test_object *object;
        struct test_done closed = {0}, created = {0};
        void *out = NULL;

        if (i == 50) { /* from here on nobody else holds the engine */
            adapter_close(*state);
            *state = NULL;
        }
        adapter = test_adapter_with("shards=2");
        object = test_object_new(&adapter->object, NULL);
        assert_true(pend_set("always"));
        create_answer(&adapter->object, CALL_CREATE_CQ, test_create_done, &created,
                      STATUS_INSUFFICIENT_RESOURCES, NULL, &out);
        assert_int_equal(test_close(object, &closed), STATUS_PENDING);
        assert_true(pend_set("never"));
        adapter_close(adapter);
        assert_int_equal(atomic_load(&closed.returns), 1);
        assert_int_equal(atomic_load(&created.returns), 1);
    }
    *state = test_adapter_with("shards=2");
}

struct inside {
    struct adapter *adapter;
    atomic_bool returned;
};

static void close_adapter_inside(PVOID context, NTSTATUS status)
{
    struct inside *inside = context;

    (void)status;
    adapter_close(inside->adapter);
    atomic_store(&inside->returned, true);
}

/* C10 in a process of its own. tolerant: the close returns and the adapter leaks. The status is
 * that of waitpid; what was printed is in text. */
static int close_inside_child(bool tolerant, char *text, size_t size)
{
    int out[2], status;
    ssize_t used = 0, n;
    pid_t child;

    assert_int_equal(pipe(out), 0);
    child = fork();
    if (child == 0) {
        static struct inside inside;
        struct adapter *adapter;

        alarm(10);
        dup2(out[1], STDERR_FILENO);
        dup2(out[1], STDOUT_FILENO);
        close(out[0]);
        setenv("SOFTNDK_TOLERANT", tolerant ? "1" : "0", 1);
        adapter = test_adapter_with("shards=2");
        inside.adapter = adapter;
        request_complete(
            request_new(&adapter->object, CALL_CREATE_CQ, close_adapter_inside, &inside),
            STATUS_SUCCESS);
        while (!atomic_load(&inside.returned))
            os_sleep_us(1000);
        _exit(0);
    }
    close(out[1]);
    while ((n = read(out[0], text + used, size - 1 - (size_t)used)) > 0)
        used += n;
    text[used] = '\0';
    close(out[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static void a_close_inside_a_callback_is_named_and_ends_the_process(void **state)
{
    char text[2000];
    int status;

    (void)state;
    status = close_inside_child(false, text, sizeof text);
    assert_non_null(strstr(text, "closed inside a consumer callback"));
    assert_non_null(strstr(text, "rule C10"));
    assert_true(WIFSIGNALED(status) || WEXITSTATUS(status) != 0);
    status = close_inside_child(true, text, sizeof text);
    assert_non_null(strstr(text, "rule C10"));
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

/* Takes more than the five seconds. The log goes to a file of a child's own. */
static void a_close_that_waits_long_says_for_what(void **state)
{
    char path[] = "/tmp/softndk-adapter-XXXXXX", text[8000];
    int fd = mkstemp(path), status;
    ssize_t n;
    pid_t child;

    (void)state;
    assert_true(fd >= 0);
    child = fork();
    if (child == 0) {
        struct adapter *adapter;
        struct test_object *object, *second;
        struct test_done done = {0};
        struct closer closer = {0};
        struct os_thread *thread;

        alarm(40);
        dup2(fd, STDERR_FILENO);
        adapter = test_adapter_with("shards=2");
        object = test_object_new(&adapter->object, NULL);
        second = test_object_new(&object->object, NULL);
        test_close(object, &done);
        closer.adapter = adapter;
        if (os_thread_start(&thread, "closer", close_thread, &closer) != 0)
            _exit(2);
        os_sleep_us(5500000);
        test_close(second, &done);
        os_thread_join(thread);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    n = pread(fd, text, sizeof text - 1, 0);
    assert_true(n > 0);
    text[n] = '\0';
    close(fd);
    unlink(path);
    if (status != 0)
        fail_msg("status 0x%x: %s", (unsigned)status, text);
    assert_non_null(strstr(text, "close waits since 5 s for 2 objects: fake #"));
    assert_non_null(strstr(text, "(open, 1 reference), fake #"));
    assert_non_null(strstr(text, "(closing, 1 reference), rule C9\n"));
}

#define T(name) cmocka_unit_test_setup_teardown(name, test_setup, test_teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        /* those that fork come while no thread runs */
        cmocka_unit_test(a_close_inside_a_callback_is_named_and_ends_the_process),
        cmocka_unit_test(a_close_that_waits_long_says_for_what),
        cmocka_unit_test(the_highest_minor_of_the_major_runs),
        cmocka_unit_test(an_open_refuses_a_version_in_words),
        cmocka_unit_test(an_open_without_threads_or_memory_fails_cleanly),
        T(the_numbers_are_the_advertised_ones),
        T(flags_follow_options_and_version),
        T(the_size_protocol_tells_what_is_needed),
        T(major_1_takes_the_older_structure),
        T(a_query_can_be_made_to_fail),
        T(a_query_above_passive_level_is_a_finding),
        T(loopback_owns_its_network),
        T(a_link_local_address_may_come_without_its_zone),
        T(a_close_blocks_until_the_last_callback_returned),
        T(a_close_races_the_last_completion),
    };

    return cmocka_run_group_tests(tests, test_group_setup, NULL);
}
