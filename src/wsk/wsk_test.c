// SPDX-License-Identifier: MIT
/*
 * Tests of the WSK door: registration, capture, control codes, opens by interface index, who waits
 * for whom, and what is said of every misuse.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "nt/nt_testing.h"

#include <softndk.h>
#include <wskndk.h>

static const WSK_CLIENT_DISPATCH dispatch_1_0 = {MAKE_WSK_VERSION(1, 0), 0, NULL};
static WSK_CLIENT_NPI npi = {NULL, &dispatch_1_0};
static const NDK_VERSION version_2_0 = {2, 0};
static NET_IFINDEX lo; /* index of the loopback interface */

/* ---- what is logged ---- */

static int log_ends[2] = {-1, -1}; /* a file's: written, read */
static int log_kept = -1;

static void log_begin(void)
{
    FILE *file = tmpfile();

    assert_non_null(file);
    log_kept = dup(STDERR_FILENO);
    log_ends[0] = dup(fileno(file));
    fclose(file);
    dup2(log_ends[0], STDERR_FILENO);
}

/* What was written until now; the log is still gathered. */
static const char *log_text(void)
{
    static char text[65536];
    ssize_t n = pread(log_ends[0], text, sizeof text - 1, 0);

    text[n > 0 ? n : 0] = '\0';
    return text;
}

static void log_end(void)
{
    dup2(log_kept, STDERR_FILENO);
    close(log_kept);
    close(log_ends[0]);
    log_kept = -1;
}

static void assert_logged(const char *part, int line)
{
    const char *said = log_text();

    if (strstr(said, part))
        return;
    log_end();
    fail_msg("line %d: not logged: \"%s\", but: %.2000s", line, part, said);
}
#define ASSERT_LOGGED(part) assert_logged(part, __LINE__)

/* ---- a client ---- */

struct client {
    WSK_REGISTRATION registration;
    WSK_PROVIDER_NPI provider;
    WSK_PROVIDER_NDK_DISPATCH ndk;
};

static void client_begin(struct client *c)
{
    memset(c, 0, sizeof *c);
    assert_int_equal(WskRegister(&npi, &c->registration), STATUS_SUCCESS);
    assert_int_equal(WskCaptureProviderNPI(&c->registration, WSK_NO_WAIT, &c->provider),
                     STATUS_SUCCESS);
    assert_int_equal(c->provider.Dispatch->WskControlClient(
                         c->provider.Client, WSKNDK_GET_WSK_PROVIDER_NDK_DISPATCH, 0, NULL,
                         sizeof c->ndk, &c->ndk, NULL, NULL),
                     STATUS_SUCCESS);
}

static NDK_ADAPTER *client_open(struct client *c)
{
    NDK_ADAPTER *adapter = NULL;

    assert_int_equal(c->ndk.WskOpenNdkAdapter(c->provider.Client, version_2_0, lo, &adapter),
                     STATUS_SUCCESS);
    assert_non_null(adapter);
    return adapter;
}

static void client_end(struct client *c)
{
    WskReleaseProviderNPI(&c->registration);
    WskDeregister(&c->registration);
}

static int find_loopback(void **state)
{
    struct softndk_adapter list[32];
    ULONG count = 0;

    (void)state;
    assert_int_equal(softndk_adapter_list(list, 32, &count), STATUS_SUCCESS);
    for (ULONG i = 0; i < count && i < 32; i++)
        if (list[i].loopback)
            lo = list[i].index;
    assert_int_not_equal(lo, 0);
    return 0;
}

static int no_finding(void **state)
{
    (void)state;
    unsetenv("SOFTNDK_WSK_LATE_MS");
    unsetenv("SOFTNDK_WSK_TELL_S");
    if (log_kept >= 0) { /* the test has failed, and why is in there */
        const char *text = log_text();

        log_end();
        fprintf(stderr, "%s", text);
    }
    return softndk_report(NULL, NULL) == nt_finding_count() ? 0 : -1; /* nothing is left */
}

/* ---- tests ---- */

static void keep_line(void *context, const char *text)
{
    char *all = context;
    size_t at = strlen(all);

    snprintf(all + at, 16384 - at, "%s\n", text);
}

static void the_way_of_a_consumer(void **state)
{
    static char all[16384];
    unsigned findings = nt_finding_count();
    NDK_ADAPTER *a, *b;
    NDK_ADAPTER_INFO info;
    ULONG size = sizeof info;
    WSK_PROVIDER_CHARACTERISTICS range;
    struct client c;

    (void)state;
    client_begin(&c);
    assert_int_equal(WskQueryProviderCharacteristics(&c.registration, &range), STATUS_SUCCESS);
    assert_int_equal(range.HighestVersion, MAKE_WSK_VERSION(1, 0));
    assert_int_equal(range.LowestVersion, MAKE_WSK_VERSION(1, 0));
    assert_int_equal(c.provider.Dispatch->Version, MAKE_WSK_VERSION(1, 0));
    a = client_open(&c);
    b = client_open(&c); /* each open is its own */
    assert_ptr_not_equal(a, b);
    assert_int_equal(a->Dispatch->NdkQueryAdapterInfo(a, &info, &size), STATUS_SUCCESS);
    assert_int_equal(info.Version.Major, 2);
    c.ndk.WskCloseNdkAdapter(c.provider.Client, a);
    c.ndk.WskCloseNdkAdapter(c.provider.Client, b);
    all[0] = '\0';
    assert_int_equal(softndk_report(keep_line, all), findings + 1); /* the client itself */
    assert_null(strstr(all, "left: adapter"));
    client_end(&c);
    assert_int_equal(nt_finding_count(), findings);
    assert_int_equal(softndk_report(NULL, NULL), findings);
}

static void an_adapter_that_cannot_be_opened_says_why(void **state)
{
    NDK_ADAPTER *adapter = (NDK_ADAPTER *)0x1;
    struct client c;

    (void)state;
    client_begin(&c);
    log_begin();
    assert_int_equal(c.ndk.WskOpenNdkAdapter(c.provider.Client, (NDK_VERSION){9, 1}, lo, &adapter),
                     (NTSTATUS)0xC0010004); /* NDIS_STATUS_BAD_VERSION */
    ASSERT_LOGGED("version 9.1");
    ASSERT_LOGGED("2.1"); /* what there is */
    assert_int_equal(c.ndk.WskOpenNdkAdapter(c.provider.Client, version_2_0, 987654, &adapter),
                     STATUS_NOT_SUPPORTED);
    ASSERT_LOGGED("interface 987654");
    assert_ptr_equal(adapter, (NDK_ADAPTER *)0x1);
    log_end();
    client_end(&c);
}

static void the_size_of_a_pointer_is_named(void **state)
{
    WSK_PROVIDER_NDK_DISPATCH ndk, *pointer = &ndk;
    SIZE_T returned = 77;
    struct client c;

    (void)state;
    client_begin(&c);
    log_begin();
    assert_int_equal(c.provider.Dispatch->WskControlClient(
                         c.provider.Client, WSKNDK_GET_WSK_PROVIDER_NDK_DISPATCH, 0, NULL,
                         sizeof pointer, &pointer, &returned, NULL),
                     STATUS_INVALID_PARAMETER);
    ASSERT_LOGGED("output buffer 8, need 16");
    assert_int_equal(returned, 77);
    assert_ptr_equal(pointer, &ndk);
    assert_int_equal(c.provider.Dispatch->WskControlClient(c.provider.Client,
                                                           WSKNDK_GET_WSK_PROVIDER_NDK_DISPATCH, 0,
                                                           NULL, sizeof ndk, NULL, NULL, NULL),
                     STATUS_INVALID_PARAMETER);
    ASSERT_LOGGED("the buffer is NULL");
    assert_int_equal(c.provider.Dispatch->WskControlClient(c.provider.Client,
                                                           WSKNDK_GET_WSK_PROVIDER_NDK_DISPATCH, 4,
                                                           &ndk, sizeof ndk, &ndk, NULL, NULL),
                     STATUS_INVALID_PARAMETER);
    log_end();
    assert_int_equal(c.provider.Dispatch->WskControlClient(c.provider.Client,
                                                           WSKNDK_GET_WSK_PROVIDER_NDK_DISPATCH, 0,
                                                           NULL, sizeof ndk, &ndk, &returned, NULL),
                     STATUS_SUCCESS);
    assert_int_equal(returned, 16);
    client_end(&c);
}

static void what_is_for_sockets_is_refused(void **state)
{
    static const ULONG codes[] = {WSK_TRANSPORT_LIST_QUERY,
                                  WSK_TRANSPORT_LIST_CHANGE,
                                  WSK_CACHE_SD,
                                  WSK_RELEASE_SD,
                                  WSK_TDI_BEHAVIOR,
                                  WSK_SET_STATIC_EVENT_CALLBACKS,
                                  WSK_TDI_DEVICENAME_MAPPING};
    const WSK_PROVIDER_DISPATCH *d;
    unsigned findings;
    struct client c;
    PWSK_CLIENT id;
    PADDRINFOEXW result;
    struct {
        IRP irp;
        IO_STACK_LOCATION location;
    } r;
    IO_STATUS_BLOCK answer = {{0}, 0};
    KEVENT done;

    (void)state;
    client_begin(&c);
    log_begin();
    d = c.provider.Dispatch;
    id = c.provider.Client;
    for (unsigned i = 0; i < sizeof codes / sizeof codes[0]; i++)
        assert_int_equal(d->WskControlClient(id, codes[i], 0, NULL, 0, NULL, NULL, NULL),
                         STATUS_NOT_SUPPORTED);
    ASSERT_LOGGED("WSK_SET_STATIC_EVENT_CALLBACKS");
    assert_int_equal(d->WskControlClient(id, 0x4E44, 0, NULL, 0, NULL, NULL, NULL),
                     STATUS_INVALID_PARAMETER);
    ASSERT_LOGGED("0x00004e44, need WSKNDK_GET");

    /* A request that comes along is completed. */
    memset(&r, 0, sizeof r);
    KeInitializeEvent(&done, NotificationEvent, FALSE);
    r.irp.StackCount = 1;
    r.irp.CurrentLocation = 1;
    r.irp.Tail.Overlay.CurrentStackLocation = &r.location;
    r.irp.UserIosb = &answer;
    r.irp.UserEvent = &done;
    assert_int_equal(d->WskSocket(id, AF_INET, SOCK_STREAM, IPPROTO_TCP, WSK_FLAG_LISTEN_SOCKET,
                                  NULL, NULL, NULL, NULL, NULL, &r.irp),
                     STATUS_NOT_SUPPORTED);
    assert_int_equal(KeWaitForSingleObject(&done, Executive, KernelMode, FALSE, NULL),
                     STATUS_SUCCESS);
    assert_int_equal(answer.Status, STATUS_NOT_SUPPORTED);
    ASSERT_LOGGED("WskSocket: Winsock Kernel is here for NDK alone");
    assert_int_equal(d->WskSocketConnect(id, SOCK_STREAM, IPPROTO_TCP, NULL, NULL, 0, NULL, NULL,
                                         NULL, NULL, NULL, NULL),
                     STATUS_NOT_SUPPORTED);
    assert_int_equal(d->WskGetAddressInfo(id, NULL, NULL, 0, NULL, NULL, &result, NULL, NULL, NULL),
                     STATUS_NOT_SUPPORTED);
    assert_int_equal(d->WskGetNameInfo(id, NULL, 0, NULL, NULL, 0, NULL, NULL, NULL),
                     STATUS_NOT_SUPPORTED);
    findings = nt_finding_count();
    d->WskFreeAddressInfo(id, NULL);
    ASSERT_FINDING(findings, "WskFreeAddressInfo");
    log_end();
    client_end(&c);
}

static void a_provider_that_comes_late(void **state)
{
    WSK_PROVIDER_CHARACTERISTICS range;
    WSK_PROVIDER_NPI provider;
    WSK_REGISTRATION registration;

    (void)state;
    setenv("SOFTNDK_WSK_LATE_MS", "3600000", 1);
    assert_int_equal(WskRegister(&npi, &registration), STATUS_SUCCESS);
    assert_int_equal(WskCaptureProviderNPI(&registration, WSK_NO_WAIT, &provider),
                     STATUS_DEVICE_NOT_READY);
    assert_int_equal(WskCaptureProviderNPI(&registration, 20, &provider), STATUS_DEVICE_NOT_READY);
    assert_int_equal(WskQueryProviderCharacteristics(&registration, &range),
                     STATUS_DEVICE_NOT_READY);
    WskDeregister(&registration);
    setenv("SOFTNDK_WSK_LATE_MS", "50", 1);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(WskRegister(&npi, &registration), STATUS_SUCCESS);
        assert_int_equal(
            WskCaptureProviderNPI(&registration, i ? 60000 : WSK_INFINITE_WAIT, &provider),
            STATUS_SUCCESS);
        WskReleaseProviderNPI(&registration);
        WskDeregister(&registration);
    }
}

static void another_version_of_winsock_kernel(void **state)
{
    static const WSK_CLIENT_DISPATCH dispatch_2_0 = {MAKE_WSK_VERSION(2, 0), 0, NULL};
    WSK_CLIENT_NPI newer = {NULL, &dispatch_2_0};
    WSK_PROVIDER_NPI provider;
    WSK_REGISTRATION registration;

    (void)state;
    assert_int_equal(WskRegister(&newer, &registration), STATUS_SUCCESS);
    log_begin();
    assert_int_equal(WskCaptureProviderNPI(&registration, WSK_NO_WAIT, &provider),
                     STATUS_NOINTERFACE);
    ASSERT_LOGGED("have 1.0, need 2.0");
    log_end();
    WskDeregister(&registration);
}

/* ---- who waits ---- */

struct waiter {
    struct client *client;
    NTSTATUS status;
    atomic_bool begun, over;
    struct os_thread *thread;
};

static void release(void *arg)
{
    struct waiter *w = arg;

    atomic_store(&w->begun, true);
    WskReleaseProviderNPI(&w->client->registration);
    atomic_store(&w->over, true);
}

static void deregister(void *arg)
{
    struct waiter *w = arg;

    atomic_store(&w->begun, true);
    WskDeregister(&w->client->registration);
    atomic_store(&w->over, true);
}

static void capture(void *arg)
{
    struct waiter *w = arg;
    WSK_PROVIDER_NPI provider;

    atomic_store(&w->begun, true);
    w->status = WskCaptureProviderNPI(&w->client->registration, WSK_INFINITE_WAIT, &provider);
    atomic_store(&w->over, true);
}

static void start(struct waiter *w, struct client *c, void (*fn)(void *))
{
    memset(w, 0, sizeof *w);
    w->client = c;
    assert_int_equal(os_thread_start(&w->thread, "waiter", fn, w), 0);
    AWAIT(atomic_load(&w->begun));
}

static void ended(struct waiter *w)
{
    AWAIT(atomic_load(&w->over));
    os_thread_join(w->thread);
}

static VOID closed(PVOID context)
{
    (void)context;
}

static VOID created(PVOID context, NTSTATUS status, NDK_OBJECT_HEADER *object)
{
    (void)context, (void)status, (void)object;
}

static void a_release_waits_and_tells_what_is_open(void **state)
{
    unsigned findings = nt_finding_count();
    NDK_ADAPTER *a, *b, *refused = NULL;
    struct waiter w;
    struct client c;
    NDK_PD *pd;

    (void)state;
    setenv("SOFTNDK_WSK_TELL_S", "1", 1);
    client_begin(&c);
    a = client_open(&c);
    b = client_open(&c);
    assert_int_equal(a->Dispatch->NdkCreatePd(a, created, NULL, &pd), STATUS_SUCCESS);
    log_begin();
    start(&w, &c, release);
    AWAIT(strstr(log_text(), "opened by") || atomic_load(&w.over));
    ASSERT_LOGGED("WskReleaseProviderNPI: waits since 1 s: 2 adapters open");
    ASSERT_LOGGED("NDKPI 2.1 (asked for 2.0), opened by ");
    AWAIT(strstr(log_text(), "since 2 s") || strstr(log_text(), "since 3 s") ||
          atomic_load(&w.over)); /* again */
    ASSERT_LOGGED("pd");         /* what keeps it open */
    assert_false(atomic_load(&w.over));

    /* Closing goes on, opening does not. */
    assert_int_equal(c.ndk.WskOpenNdkAdapter(c.provider.Client, version_2_0, lo, &refused),
                     STATUS_INVALID_PARAMETER);
    ASSERT_FINDING(findings, "given back");
    pd->Dispatch->NdkClosePd(&pd->Header, closed, NULL);
    c.ndk.WskCloseNdkAdapter(c.provider.Client, a);
    assert_false(atomic_load(&w.over));
    c.ndk.WskCloseNdkAdapter(c.provider.Client, b);
    ended(&w);
    log_end();
    WskDeregister(&c.registration);
    unsetenv("SOFTNDK_WSK_TELL_S");
}

static void a_deregistration_waits_for_the_captures(void **state)
{
    WSK_PROVIDER_NPI provider;
    struct waiter w;
    struct client c;

    (void)state;
    client_begin(&c);
    assert_int_equal(WskCaptureProviderNPI(&c.registration, WSK_INFINITE_WAIT, &provider),
                     STATUS_SUCCESS);
    start(&w, &c, deregister);
    /* From its begin on nobody captures any more. */
    AWAIT(WskCaptureProviderNPI(&c.registration, WSK_NO_WAIT, &provider) ==
              STATUS_DEVICE_NOT_READY ||
          (WskReleaseProviderNPI(&c.registration), false));
    WskReleaseProviderNPI(&c.registration);
    os_sleep_us(2000);
    assert_false(atomic_load(&w.over));
    WskReleaseProviderNPI(&c.registration);
    ended(&w);
    assert_int_equal(WskCaptureProviderNPI(&c.registration, WSK_NO_WAIT, &provider),
                     STATUS_DEVICE_NOT_READY);
}

static void a_deregistration_ends_captures_that_wait(void **state)
{
    struct waiter w;
    struct client c;

    (void)state;
    setenv("SOFTNDK_WSK_LATE_MS", "3600000", 1);
    memset(&c, 0, sizeof c);
    assert_int_equal(WskRegister(&npi, &c.registration), STATUS_SUCCESS);
    start(&w, &c, capture);
    WskDeregister(&c.registration);
    ended(&w);
    assert_int_equal(w.status, STATUS_DEVICE_NOT_READY);
}

/* ---- misuse ---- */

static void handles_and_registrations_that_are_none(void **state)
{
    WSK_PROVIDER_NPI provider;
    WSK_REGISTRATION copy;
    NDK_ADAPTER *adapter = NULL;
    unsigned n;
    struct client c, other;

    (void)state;
    client_begin(&c);
    client_begin(&other);
    log_begin();
    n = nt_finding_count();
    assert_int_equal(WskRegister(&npi, &c.registration), STATUS_INVALID_PARAMETER);
    ASSERT_FINDING(n, "in use");
    assert_int_equal(WskRegister(NULL, &copy), STATUS_INVALID_PARAMETER);
    ASSERT_FINDING(n + 1, "WskClientNpi is NULL");
    copy = c.registration;
    assert_int_equal(WskCaptureProviderNPI(&copy, WSK_NO_WAIT, &provider),
                     STATUS_INVALID_PARAMETER);
    ASSERT_FINDING(n + 2, "a copy");
    memset(&copy, 0, sizeof copy);
    WskReleaseProviderNPI(&copy);
    ASSERT_FINDING(n + 3, "was not made by WskRegister");
    assert_int_equal(c.ndk.WskOpenNdkAdapter((PWSK_CLIENT)(void *)&c, version_2_0, lo, &adapter),
                     STATUS_INVALID_PARAMETER);
    ASSERT_FINDING(n + 4, "no client");
    assert_int_equal(c.ndk.WskOpenNdkAdapter(c.provider.Client, version_2_0, lo, NULL),
                     STATUS_INVALID_PARAMETER);
    ASSERT_FINDING(n + 5, "ppNdkAdapter is NULL");

    adapter = client_open(&c);
    other.ndk.WskCloseNdkAdapter(other.provider.Client, adapter);
    ASSERT_FINDING(n + 6, "did not open this adapter");
    c.ndk.WskCloseNdkAdapter(c.provider.Client, adapter);
    assert_int_equal(nt_finding_count(), n + 7);
    c.ndk.WskCloseNdkAdapter(c.provider.Client, adapter);
    ASSERT_FINDING(n + 7, "closed already");
    c.ndk.WskCloseNdkAdapter(c.provider.Client, NULL);
    ASSERT_FINDING(n + 8, "no such adapter");

    WskReleaseProviderNPI(&c.registration);
    c.ndk.WskCloseNdkAdapter(c.provider.Client, adapter);
    ASSERT_FINDING(n + 9, "given back by WskReleaseProviderNPI");
    WskReleaseProviderNPI(&c.registration);
    ASSERT_FINDING(n + 10, "more often");
    WskDeregister(&c.registration);
    assert_int_equal(c.ndk.WskOpenNdkAdapter(c.provider.Client, version_2_0, lo, &adapter),
                     STATUS_INVALID_PARAMETER);
    ASSERT_FINDING(n + 11, "WskDeregister has ended it");
    WskDeregister(&c.registration);
    ASSERT_FINDING(n + 12, "WskDeregister has ended it");
    WskDeregister(NULL);
    ASSERT_FINDING(n + 13, "have NULL");
    assert_int_equal(WskCaptureProviderNPI(&other.registration, WSK_NO_WAIT, NULL),
                     STATUS_INVALID_PARAMETER);
    ASSERT_FINDING(n + 14, "WskProviderNpi is NULL");
    assert_int_equal(WskQueryProviderCharacteristics(&other.registration, NULL),
                     STATUS_INVALID_PARAMETER);
    ASSERT_FINDING(n + 15, "WskQueryProviderCharacteristics");
    log_end();
    client_end(&other);
}

static void levels(void **state)
{
    WSK_PROVIDER_NPI provider;
    WSK_PROVIDER_NDK_DISPATCH ndk;
    NDK_ADAPTER *adapter;
    unsigned n;
    struct client c;
    KIRQL old;

    (void)state;
    client_begin(&c);
    log_begin();
    n = nt_finding_count();
    KeRaiseIrql(DISPATCH_LEVEL, &old);
    assert_int_equal(WskCaptureProviderNPI(&c.registration, WSK_NO_WAIT, &provider),
                     STATUS_SUCCESS);
    assert_int_equal(provider.Dispatch->WskControlClient(provider.Client,
                                                         WSKNDK_GET_WSK_PROVIDER_NDK_DISPATCH, 0,
                                                         NULL, sizeof ndk, &ndk, NULL, NULL),
                     STATUS_SUCCESS);
    WskReleaseProviderNPI(&c.registration);
    assert_int_equal(nt_finding_count(), n);
    assert_int_equal(WskCaptureProviderNPI(&c.registration, 10, &provider), STATUS_SUCCESS);
    ASSERT_FINDING(n, "WskCaptureProviderNPI");
    WskReleaseProviderNPI(&c.registration);
    KeLowerIrql(old);
    KeRaiseIrql(APC_LEVEL, &old);
    assert_int_equal(ndk.WskOpenNdkAdapter(c.provider.Client, version_2_0, lo, &adapter),
                     STATUS_SUCCESS);
    ASSERT_FINDING(n + 1, "WskOpenNdkAdapter");
    KeLowerIrql(old);
    ndk.WskCloseNdkAdapter(c.provider.Client, adapter);
    assert_int_equal(nt_finding_count(), n + 2);
    log_end();
    client_end(&c);
}

static void what_is_left_is_reported(void **state)
{
    static char all[16384];
    NDK_ADAPTER *adapter;
    size_t before = softndk_report(NULL, NULL);
    struct client c;

    (void)state;
    client_begin(&c);
    assert_int_equal(softndk_report(NULL, NULL), before + 1);
    adapter = client_open(&c);
    all[0] = '\0';
    assert_true(softndk_report(keep_line, all) > before);
    assert_non_null(strstr(all, "left: WSK client #"));
    assert_non_null(strstr(all, "captured 1 time, registered by "));
    assert_non_null(strstr(all, "left: adapter of interface "));
    c.ndk.WskCloseNdkAdapter(c.provider.Client, adapter);
    client_end(&c);
    assert_int_equal(softndk_report(NULL, NULL), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(the_way_of_a_consumer, no_finding),
        cmocka_unit_test_teardown(an_adapter_that_cannot_be_opened_says_why, no_finding),
        cmocka_unit_test_teardown(the_size_of_a_pointer_is_named, no_finding),
        cmocka_unit_test_teardown(what_is_for_sockets_is_refused, no_finding),
        cmocka_unit_test_teardown(a_provider_that_comes_late, no_finding),
        cmocka_unit_test_teardown(another_version_of_winsock_kernel, no_finding),
        cmocka_unit_test_teardown(a_release_waits_and_tells_what_is_open, no_finding),
        cmocka_unit_test_teardown(a_deregistration_waits_for_the_captures, no_finding),
        cmocka_unit_test_teardown(a_deregistration_ends_captures_that_wait, no_finding),
        cmocka_unit_test_teardown(handles_and_registrations_that_are_none, no_finding),
        cmocka_unit_test_teardown(levels, no_finding),
        cmocka_unit_test_teardown(what_is_left_is_reported, no_finding),
    };

    return cmocka_run_group_tests(tests, find_loopback, NULL);
}
