// SPDX-License-Identifier: MIT
/* softndk_test.c - the direct door, seen as a consumer sees it: public headers only. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <softndk.h>

static const NDK_VERSION v1 = {1, 0}, v2 = {2, 0};

static VOID nothing_to_do(PVOID context)
{
    (void)context;
}

static VOID create_done(PVOID context, NTSTATUS status, NDK_OBJECT_HEADER *object)
{
    (void)context;
    (void)status;
    (void)object;
}

/* The loopback interface of this host. */
static struct softndk_adapter loopback(void)
{
    struct softndk_adapter list[64];
    ULONG count = 0;

    assert_int_equal(softndk_adapter_list(list, 64, &count), STATUS_SUCCESS);
    for (ULONG i = 0; i < count && i < 64; i++)
        if (list[i].loopback && list[i].up)
            return list[i];
    fail_msg("no loopback interface");
    return list[0];
}

static void open_and_close(const char *selector, NDK_VERSION version, const char *options,
                           unsigned major, unsigned minor)
{
    NDK_ADAPTER *adapter = NULL;
    NDK_ADAPTER_INFO info;
    ULONG size = sizeof info;
    char text[200];

    if (softndk_open_adapter(selector, options, version, &adapter) != STATUS_SUCCESS) {
        softndk_open_error(text, sizeof text);
        fail_msg("%s: %s", selector ? selector : "(null)", text);
    }
    assert_int_equal(softndk_open_error(text, sizeof text), 0);
    assert_string_equal(text, "");
    assert_int_equal(adapter->Header.ObjectType, NdkObjectTypeAdapter);
    assert_int_equal(adapter->Header.Version.Major, major);
    assert_int_equal(adapter->Header.Version.Minor, minor);
    assert_int_equal(adapter->Dispatch->NdkQueryAdapterInfo(adapter, &info, &size), STATUS_SUCCESS);
    assert_int_equal(info.Version.Major, major);
    assert_int_equal(info.Version.Minor, minor);
    softndk_close_adapter(adapter);
}

static void every_kind_of_selector_opens(void **state)
{
    struct softndk_adapter lo = loopback();
    char text[32];

    (void)state;
    open_and_close(lo.name, v2, NULL, 2, 1);
    open_and_close("127.0.0.1", v1, "", 1, 2);
    open_and_close("127.9.9.9", v2, "ndkpi=2.0", 2, 0);
    open_and_close(NULL, v2, "max_cq_depth=100,connect_ms=7", 2, 1);
    open_and_close("", v1, "ndkpi=1.1", 1, 1);
    snprintf(text, sizeof text, "%u", lo.index);
    open_and_close(text, v2, NULL, 2, 1);
    snprintf(text, sizeof text, "if%u", lo.index);
    open_and_close(text, v2, NULL, 2, 1);
    for (ULONG i = 0; i < lo.address_count; i++)
        open_and_close(lo.addresses[i], v2, NULL, 2, 1);
}

/* The first interface of a host is up as a rule; then the flag is all that can be seen. */
static void no_selector_means_one_that_is_up(void **state)
{
    struct softndk_adapter list[64];
    NDK_ADAPTER *adapter = NULL;
    ULONG count = 0, up = 0;

    (void)state;
    assert_int_equal(softndk_adapter_list(list, 64, &count), STATUS_SUCCESS);
    for (ULONG i = 0; i < count && i < 64; i++)
        up += list[i].up;
    assert_int_equal(softndk_open_adapter(NULL, NULL, v2, &adapter),
                     up ? STATUS_SUCCESS : STATUS_NOT_FOUND);
    softndk_close_adapter(adapter);
}

static void every_failure_leaves_a_sentence(void **state)
{
    static const struct {
        const char *selector, *options;
        NDK_VERSION version;
        NTSTATUS status;
        const char *says;
    } cases[] = {
        {"nosuchif0", NULL, {2, 0}, STATUS_NOT_FOUND, "nosuchif0"},
        {"4000000000", NULL, {2, 0}, STATUS_NOT_FOUND, "4000000000"},
        {"if", NULL, {2, 0}, STATUS_NOT_FOUND, "\"if\""},
        {"192.0.2.77", NULL, {2, 0}, STATUS_NOT_FOUND, "192.0.2.77"},
        {"fe80::1%nosuchif0", NULL, {2, 0}, STATUS_NOT_FOUND, "fe80::1%nosuchif0"},
        {"127.0.0.1", "nonsense=1", {2, 0}, STATUS_INVALID_PARAMETER, "nonsense"},
        {"127.0.0.1", "crc=7", {2, 0}, STATUS_INVALID_PARAMETER, "crc"},
        {"127.0.0.1", "max_cq_depth=4294967295", {2, 0}, STATUS_INVALID_PARAMETER, "4194304"},
        {"127.0.0.1", NULL, {3, 0}, (NTSTATUS)0xC0010004, "3.0"},
        {"127.0.0.1", "ndkpi=1.1", {1, 2}, (NTSTATUS)0xC0010004, "1.1"},
        {"127.0.0.1", "profile=absent", {2, 0}, STATUS_INVALID_PARAMETER, "profile absent: "},
        {"127.0.0.1", "profile=a/b", {2, 0}, STATUS_INVALID_PARAMETER, "\"a/b\""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        NDK_ADAPTER *adapter = (NDK_ADAPTER *)(void *)&cases;
        char text[300], part[8];
        size_t need;
        NTSTATUS status =
            softndk_open_adapter(cases[i].selector, cases[i].options, cases[i].version, &adapter);

        assert_int_equal(status, cases[i].status);
        assert_ptr_equal(adapter, &cases);
        need = softndk_open_error(text, sizeof text);
        assert_int_equal(need, strlen(text));
        if (!strstr(text, cases[i].says))
            fail_msg("\"%s\" does not say %s", text, cases[i].says);
        assert_int_equal(softndk_open_error(part, sizeof part), need);
        assert_int_equal(strlen(part), 7);
    }
    assert_int_equal(softndk_open_adapter("127.0.0.1", NULL, v2, NULL), STATUS_INVALID_PARAMETER);
    softndk_close_adapter(NULL);
}

static void the_environment_reaches_the_adapter(void **state)
{
    NDK_ADAPTER *adapter = NULL;
    NDK_ADAPTER_INFO info;
    ULONG size = sizeof info;
    char text[300];

    (void)state;
    setenv("SOFTNDK_OPTIONS", "max_cq_depth=77 frmr_pages=32", 1);
    assert_int_equal(softndk_open_adapter("127.0.0.1", "frmr_pages=64", v2, &adapter), 0);
    assert_int_equal(adapter->Dispatch->NdkQueryAdapterInfo(adapter, &info, &size), 0);
    assert_int_equal(info.MaxCqDepth, 77);
    assert_int_equal(info.FRMRPageCount, 64); /* the argument wins */
    assert_int_equal(softndk_adapter_option(adapter, "max_cq_depth", text, sizeof text), 2);
    assert_string_equal(text, "77");
    softndk_adapter_option(adapter, "frmr_pages", text, sizeof text);
    assert_string_equal(text, "64");
    assert_int_equal(softndk_adapter_option(adapter, "progress", text, 3), 6);
    assert_string_equal(text, "en");
    assert_int_equal(softndk_adapter_option(adapter, "no_such", text, sizeof text), 0);
    assert_int_equal(softndk_adapter_option(NULL, "progress", text, sizeof text), 0);
    softndk_close_adapter(adapter);
    setenv("SOFTNDK_OPTIONS", "max_cq_depth=", 1);
    assert_int_equal(softndk_open_adapter("127.0.0.1", NULL, v2, &adapter),
                     STATUS_INVALID_PARAMETER);
    softndk_open_error(text, sizeof text);
    assert_non_null(strstr(text, "SOFTNDK_OPTIONS: option max_cq_depth"));
    unsetenv("SOFTNDK_OPTIONS");
    setenv("SOFTNDK_PROFILE", "strict", 1);
    assert_int_equal(softndk_open_adapter("127.0.0.1", "max_cq_depth=77", v2, &adapter), 0);
    size = sizeof info;
    assert_int_equal(adapter->Dispatch->NdkQueryAdapterInfo(adapter, &info, &size), 0);
    assert_int_equal(info.MaxCqDepth, 77);
    assert_int_equal(info.FRMRPageCount, 16);
    softndk_close_adapter(adapter);
    unsetenv("SOFTNDK_PROFILE");
}

static void an_adapter_opens_many_times(void **state)
{
    NDK_ADAPTER *adapters[5];

    (void)state;
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(softndk_open_adapter("127.0.0.1", NULL, v2, &adapters[i]), 0);
    for (unsigned i = 0; i < 5; i++)
        for (unsigned k = 0; k < i; k++)
            assert_ptr_not_equal(adapters[i], adapters[k]);
    for (unsigned i = 0; i < 5; i++)
        softndk_close_adapter(adapters[(i * 2) % 5]);
}

static void the_list_counts_what_does_not_fit(void **state)
{
    struct softndk_adapter lo = loopback(), one;
    ULONG count = 0, again = 0;

    (void)state;
    assert_true(lo.index > 0 && lo.mtu > 500 && lo.address_count > 0);
    assert_string_equal(lo.addresses[0], "127.0.0.1");
    assert_int_equal(softndk_adapter_list(NULL, 0, &count), STATUS_SUCCESS);
    assert_true(count > 0);
    assert_int_equal(softndk_adapter_list(&one, 1, &again), STATUS_SUCCESS);
    assert_int_equal(again, count);
    assert_int_equal(softndk_adapter_list(NULL, 1, &count), STATUS_INVALID_PARAMETER);
    assert_int_equal(softndk_adapter_list(&one, 1, NULL), STATUS_INVALID_PARAMETER);
}

static void a_route_names_its_adapter(void **state)
{
    struct softndk_adapter lo = loopback();
    char selector[SOFTNDK_NAME_MAX], source[SOFTNDK_ADDRESS_MAX];

    (void)state;
    assert_int_equal(softndk_adapter_for_route("127.0.0.1:445", selector, sizeof selector, source,
                                               sizeof source),
                     STATUS_SUCCESS);
    assert_string_equal(selector, lo.name);
    assert_string_equal(source, "127.0.0.1");
    open_and_close(selector, v2, NULL, 2, 1);
    open_and_close(source, v2, NULL, 2, 1);
    assert_int_equal(softndk_adapter_for_route("127.0.0.3", selector, sizeof selector, NULL, 0),
                     STATUS_SUCCESS);
    assert_string_equal(selector, lo.name);
    assert_int_equal(softndk_adapter_for_route("127.0.0.1", selector, 1, NULL, 0),
                     STATUS_BUFFER_TOO_SMALL);
    assert_int_equal(softndk_adapter_for_route("127.0.0.1", selector, sizeof selector, source, 9),
                     STATUS_BUFFER_TOO_SMALL);
    assert_int_equal(softndk_adapter_for_route("localhost", selector, sizeof selector, NULL, 0),
                     STATUS_INVALID_PARAMETER);
    assert_int_equal(softndk_adapter_for_route(NULL, selector, sizeof selector, NULL, 0),
                     STATUS_INVALID_PARAMETER);
}

static void addresses_go_to_text_and_back(void **state)
{
    static const struct {
        const char *from, *to;
        unsigned family, port;
        ULONG length;
    } cases[] = {
        {"1.2.3.4", "1.2.3.4", AF_INET, 0, 16},
        {"1.2.3.4:445", "1.2.3.4:445", AF_INET, 445, 16},
        {"::1", "::1", AF_INET6, 0, 28},
        {"[::1]:5445", "[::1]:5445", AF_INET6, 5445, 28},
        {"fe80::1%7", "fe80::1%7", AF_INET6, 0, 28},
        {"[fe80::1%7]:65535", "[fe80::1%7]:65535", AF_INET6, 65535, 28},
    };
    static const char *const bad[] = {"", "localhost", "1.2.3", "1.2.3.4:70000", "[::1", "::1%7"};
    SOCKADDR_INET address;
    ULONG length = 0;
    char text[SOFTNDK_ADDRESS_MAX];

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(softndk_address_from_text(cases[i].from, &address, &length), 0);
        assert_int_equal(address.si_family, cases[i].family);
        assert_int_equal(RtlUshortByteSwap(address.Ipv4.sin_port), cases[i].port);
        assert_int_equal(length, cases[i].length);
        assert_int_equal(softndk_address_to_text((PSOCKADDR)&address, length, text, sizeof text),
                         strlen(cases[i].to));
        assert_string_equal(text, cases[i].to);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_int_equal(softndk_address_from_text(bad[i], &address, &length),
                         STATUS_INVALID_PARAMETER);
    assert_int_equal(softndk_address_from_text(NULL, &address, &length), STATUS_INVALID_PARAMETER);
    assert_int_equal(softndk_address_to_text((PSOCKADDR)&address, 3, text, sizeof text), 1);
    assert_string_equal(text, "?");
}

static void a_reason_stays_at_the_object(void **state)
{
    NDK_ADAPTER *adapter = NULL;
    NDK_PD *pd = NULL;
    NDK_SRQ *srq = NULL;
    char text[300];
    size_t need;

    (void)state;
    assert_int_equal(softndk_open_adapter("127.0.0.1", NULL, v2, &adapter), 0);
    assert_int_equal(softndk_reason(&adapter->Header, text, sizeof text), 0);
    assert_int_equal(softndk_reason(NULL, text, sizeof text), 0);
    assert_int_equal(adapter->Dispatch->NdkCreatePd(adapter, create_done, NULL, &pd), 0);
    assert_int_equal(
        pd->Dispatch->NdkCreateSrq(pd, 0, 1, 0, NULL, NULL, NULL, create_done, NULL, &srq),
        STATUS_INVALID_PARAMETER);
    need = softndk_reason(&pd->Header, text, sizeof text);
    assert_int_equal(need, strlen(text));
    assert_non_null(strstr(text, "pd #"));
    assert_non_null(strstr(text, ": NdkCreateSrq: "));
    assert_int_equal(softndk_set_fail("NdkCreatePd:1:STATUS_IO_TIMEOUT"), STATUS_SUCCESS);
    assert_int_equal(adapter->Dispatch->NdkCreatePd(adapter, create_done, NULL, &pd),
                     STATUS_IO_TIMEOUT);
    softndk_reason(&adapter->Header, text, sizeof text);
    assert_non_null(strstr(text, ": NdkCreatePd: fails on request"));
    assert_int_equal(pd->Dispatch->NdkClosePd(&pd->Header, nothing_to_do, NULL), STATUS_SUCCESS);
    softndk_close_adapter(adapter);
}

static void steering_checks_its_text(void **state)
{
    (void)state;
    assert_int_equal(softndk_set_pend("random:5"), STATUS_SUCCESS);
    assert_int_equal(softndk_set_pend("never"), STATUS_SUCCESS);
    assert_int_equal(softndk_set_pend("sometimes"), STATUS_INVALID_PARAMETER);
    assert_int_equal(softndk_set_pend(NULL), STATUS_INVALID_PARAMETER);
    assert_int_equal(softndk_set_fail("sometimes"), STATUS_INVALID_PARAMETER);
    assert_int_equal(softndk_set_fail(NULL), STATUS_SUCCESS);
}

static void findings_are_counted(void **state)
{
    ULONG before = softndk_finding_count();

    (void)state;
    KeLowerIrql(DISPATCH_LEVEL); /* upwards: a misuse */
    assert_int_equal(softndk_finding_count(), before + 1);
    KeLowerIrql(PASSIVE_LEVEL);
    assert_int_equal(softndk_finding_count(), before + 1);
}

static void the_options_are_described(void **state)
{
    size_t need = softndk_options_describe(NULL, 0);
    char *text = malloc(need + 1), part[100];
    const char *line;

    (void)state;
    assert_non_null(text);
    assert_int_equal(softndk_options_describe(text, need + 1), need);
    assert_int_equal(strlen(text), need);
    line = strstr(text, "connect_ms ");
    assert_non_null(line);
    assert_non_null(strstr(line, "10000"));
    assert_non_null(strstr(text, "0..3600000"));
    assert_non_null(strstr(text, "\nread_sink_not_required "));
    assert_int_equal(text[need - 1], '\n'); /* no line is cut off */
    assert_int_equal(softndk_options_describe(part, sizeof part), need);
    assert_int_equal(strlen(part), 99);
    assert_memory_equal(part, text, 99);
    free(text);
}

/* Two lines each. */
static void the_profiles_are_described(void **state)
{
    size_t need = softndk_profiles_describe(NULL, 0);
    char *text = malloc(need + 1), part[50];
    unsigned lines = 0;

    (void)state;
    assert_non_null(text);
    assert_int_equal(softndk_profiles_describe(text, need + 1), need);
    assert_int_equal(strlen(text), need);
    for (const char *p = text; *p; p++)
        lines += *p == '\n';
    assert_true(lines >= 8);
    assert_int_equal(lines % 2, 0);
    assert_int_equal(text[need - 1], '\n');
    assert_non_null(strstr(text, "\nstrict "));
    assert_non_null(strstr(text, "/share/softndk/profiles/strict\n"));
    assert_int_equal(softndk_profiles_describe(part, sizeof part), need);
    assert_int_equal(strlen(part), 49);
    assert_memory_equal(part, text, 49);
    setenv("SOFTNDK_PROFILE_DIR", "/nonexistent", 1);
    softndk_profiles_describe(text, need + 1);
    assert_non_null(strstr(text, "compiled in\n"));
    unsetenv("SOFTNDK_PROFILE_DIR");
    free(text);
}

/* The number in the header is that of the build. */
static void the_version_is_the_projects(void **state)
{
    const char *source = getenv("SOFTNDK_SOURCE_DIR");
    char path[1024], line[300], expected[64];
    bool found = false;
    FILE *file;

    (void)state;
    assert_string_equal(softndk_version_string(), SOFTNDK_VERSION);
    if (!source)
        skip();
    snprintf(path, sizeof path, "%s/CMakeLists.txt", source);
    snprintf(expected, sizeof expected, "VERSION %s ", SOFTNDK_VERSION);
    file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file))
        if (strncmp(line, "project(softndk ", 16) == 0)
            found = strstr(line, expected) != NULL;
    fclose(file);
    assert_true(found);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_of_selector_opens),
        cmocka_unit_test(no_selector_means_one_that_is_up),
        cmocka_unit_test(every_failure_leaves_a_sentence),
        cmocka_unit_test(the_environment_reaches_the_adapter),
        cmocka_unit_test(an_adapter_opens_many_times),
        cmocka_unit_test(the_list_counts_what_does_not_fit),
        cmocka_unit_test(a_route_names_its_adapter),
        cmocka_unit_test(addresses_go_to_text_and_back),
        cmocka_unit_test(a_reason_stays_at_the_object),
        cmocka_unit_test(steering_checks_its_text),
        cmocka_unit_test(findings_are_counted),
        cmocka_unit_test(the_options_are_described),
        cmocka_unit_test(the_profiles_are_described),
        cmocka_unit_test(the_version_is_the_projects),
    };

    unsetenv("SOFTNDK_OPTIONS");
    unsetenv("SOFTNDK_TIMEOUTS");
    unsetenv("SOFTNDK_PEND");
    unsetenv("SOFTNDK_FAIL");
    return cmocka_run_group_tests(tests, NULL, NULL);
}
