// SPDX-License-Identifier: MIT
/*
 * What the network itself makes NdkConnect and NdkConnectWithSharedEndpoint answer, in network
 * namespaces of this test's own: no route, routes that say no, a host that is not there, a router
 * that says no or is silent, an interface that is down, an address that was taken away, a
 * connection that ended a moment ago.
 *
 *   this namespace            the other one (a child process), a router
 *   ndk0 10.77.0.1/24  ----   ndk1 10.77.0.2/24
 *   10.78.0.0/16 goes there   10.78.1.0/24 unreachable, .2 prohibit, .3 blackhole, else no route
 *
 * Needs the right to make network namespaces, and ip. Without them it is skipped (77).
 */
#include <sched.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "modes.h"

#ifndef CLONE_NEWNET
#define CLONE_NEWNET 0x40000000
int unshare(int flags);
#endif

#define NO_RETRY "retry_v1=0"
#define HERE     "10.77.0.1"

/* ---- the network ---------------------------------------------------------------------------- */

static pid_t router = -1;

static bool run(const char *format, ...) __attribute__((format(printf, 1, 2)));
static bool run(const char *format, ...)
{
    char text[256];
    va_list ap;

    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    return system(text) == 0;
}

static void must(const char *command)
{
    if (!run("%s", command))
        test_fail("%s: failed", command);
}

static bool put(const char *file, const char *text)
{
    FILE *f = fopen(file, "w");
    bool good = f && fputs(text, f) >= 0;

    return f && fclose(f) == 0 && good;
}

static _Noreturn void skip_all(const char *why)
{
    printf("skipped: %s\n", why);
    exit(77);
}

/* The child: a namespace, and in it, once ndk1 is there, the router. It lives until the pipe ends.
 */
static _Noreturn void be_router(int ready, int go)
{
    char octet;

    if (unshare(CLONE_NEWNET) != 0 || write(ready, "n", 1) != 1 || read(go, &octet, 1) != 1)
        _exit(1);
    if (!run("ip link set lo up && ip addr add 10.77.0.2/24 dev ndk1 && ip link set ndk1 up &&"
             " ip route add unreachable 10.78.1.0/24 && ip route add prohibit 10.78.2.0/24 &&"
             " ip route add blackhole 10.78.3.0/24") ||
        !put("/proc/sys/net/ipv4/ip_forward", "1") ||
        !put("/proc/sys/net/ipv4/icmp_ratelimit", "0") || write(ready, "u", 1) != 1)
        _exit(1);
    (void)!read(go, &octet, 1);
    _exit(0);
}

static void network_open(void)
{
    int ready[2], go[2];
    char octet;

    if (!run("ip -V >/dev/null 2>&1"))
        skip_all("needs ip (package iproute2)");
    if (unshare(CLONE_NEWNET) != 0)
        skip_all("needs the right to make network namespaces");
    if (pipe(ready) != 0 || pipe(go) != 0)
        test_fail("no pipes");
    fflush(stdout);
    router = fork();
    if (router == 0) {
        close(ready[0]);
        close(go[1]);
        be_router(ready[1], go[0]);
    }
    close(ready[1]);
    close(go[0]);
    if (router < 0 || read(ready[0], &octet, 1) != 1)
        skip_all("needs a second network namespace");
    if (!run("ip link set lo up && ip link add ndk0 type veth peer name ndk1 netns %d &&"
             " ip addr add " HERE "/24 dev ndk0 && ip link set ndk0 up",
             (int)router))
        skip_all("needs veth pairs");
    if (write(go[1], "g", 1) != 1 || read(ready[0], &octet, 1) != 1)
        test_fail("the router does not come up");
    must("ip route add 10.78.0.0/16 via 10.77.0.2");
    must("ip route add unreachable 10.79.1.0/24");
    must("ip route add prohibit 10.79.2.0/24");
    must("ip route add blackhole 10.79.3.0/24");
    /* Resolution of a neighbour that is not there fails soon. Without timestamps the addresses of a
     * closed connection cannot be used again at once by who names the port. */
    if (!put("/proc/sys/net/ipv4/neigh/ndk0/retrans_time_ms", "100") ||
        !put("/proc/sys/net/ipv4/tcp_timestamps", "0"))
        test_fail("cannot set /proc/sys/net of the namespace");
    /* the write end of go stays open: the router goes with this process */
}

static void network_close(void)
{
    kill(router, SIGKILL);
    waitpid(router, NULL, 0);
}

/* ---- connecting ------------------------------------------------------------------------------ */

static NTSTATUS dial(struct end *end, const char *from, unsigned port, const char *to,
                     unsigned to_port, struct wait *w)
{
    SOCKADDR_INET source = inet_address(from, port), target = inet_address(to, to_port);

    if (!end->connector)
        end->connector = make_connector(end->adapter);
    wait_init(w);
    return end->connector->Dispatch->NdkConnect(end->connector, end->qp, (PSOCKADDR)&source,
                                                sizeof source.Ipv4, (PSOCKADDR)&target,
                                                sizeof target.Ipv4, 1, 1, NULL, 0, wait_request, w);
}

static void expect_status(const char *to, NTSTATUS have, NTSTATUS need)
{
    if (have != need)
        test_fail("to %s in mode %s: have %s, need %s", to, mode, softndk_status_name(have),
                  softndk_status_name(need));
}

/* The same from a shared endpoint. */
static NTSTATUS dial_shared(struct end *end, NDK_SHARED_ENDPOINT *shared, const char *to,
                            struct wait *w)
{
    SOCKADDR_INET target = inet_address(to, 4420);

    if (!end->connector)
        end->connector = make_connector(end->adapter);
    wait_init(w);
    return end->connector->Dispatch->NdkConnectWithSharedEndpoint(
        end->connector, end->qp, shared, (PSOCKADDR)&target, sizeof target.Ipv4, 1, 1, NULL, 0,
        wait_request, w);
}

static NDK_SHARED_ENDPOINT *share(struct end *end, const char *from)
{
    SOCKADDR_INET source = inet_address(from, 0);
    NDK_SHARED_ENDPOINT *shared = NULL;
    struct wait w;
    NTSTATUS returned;

    wait_init(&w);
    returned = end->adapter->Dispatch->NdkCreateSharedEndpoint(
        end->adapter, (PSOCKADDR)&source, sizeof source.Ipv4, wait_create, &w, &shared);
    assert_int_equal(wait_end(&w, returned), STATUS_SUCCESS);
    return returned == STATUS_PENDING ? (NDK_SHARED_ENDPOINT *)(void *)w.object : shared;
}

/* The system knows at once that this does not go; it may be tried again. From a port of its own and
 * from a shared endpoint. */
static void refused_at_once(const char *interface, const char *from, const char *to, NTSTATUS need)
{
    struct end end;
    struct wait w;
    NDK_SHARED_ENDPOINT *shared;

    end_open_on(&end, interface, NO_RETRY);
    shared = share(&end, from);
    for (int i = 0; i < 4; i++) {
        NTSTATUS returned =
            i < 2 ? dial(&end, from, 0, to, 4420, &w) : dial_shared(&end, shared, to, &w);

        expect_status(to, mode_answer(&w, returned), need);
        expect_reason(&end.connector->Header,
                      i < 2 ? "NdkConnect:" : "NdkConnectWithSharedEndpoint:");
    }
    CLOSE(end.connector, NdkCloseConnector);
    end.connector = NULL;
    CLOSE(shared, NdkCloseSharedEndpoint);
    end_close(&end);
}

struct attempt {
    const char *to, *options;
    NTSTATUS need;
};

#define ATTEMPTS_MAX 4

/* The answer comes out of the network, or does not. From a port of its own and from a shared
 * endpoint, and all attempts under way at once: an ICMP message that comes while the call is still
 * running counts with the next SYN only, seconds later. It pends in every mode, so one is enough.
 */
static void refused_later(const struct attempt *attempts, unsigned count)
{
    struct end ends[2 * ATTEMPTS_MAX];
    struct wait w[2 * ATTEMPTS_MAX];
    NDK_SHARED_ENDPOINT *shared[2 * ATTEMPTS_MAX] = {NULL};
    NTSTATUS returned[2 * ATTEMPTS_MAX];

    assert_true(count <= ATTEMPTS_MAX);
    if (strcmp(mode, "never") != 0)
        return;
    for (unsigned i = 0; i < 2 * count; i++) {
        const struct attempt *a = &attempts[i / 2];

        end_open_on(&ends[i], "ndk0", a->options);
        if (i % 2)
            shared[i] = share(&ends[i], HERE);
        returned[i] = i % 2 ? dial_shared(&ends[i], shared[i], a->to, &w[i])
                            : dial(&ends[i], HERE, 0, a->to, 4420, &w[i]);
        assert_int_equal(returned[i], STATUS_PENDING);
    }
    for (unsigned i = 0; i < 2 * count; i++)
        expect_status(attempts[i / 2].to, wait_end(&w[i], returned[i]), attempts[i / 2].need);
    for (unsigned i = 0; i < 2 * count; i++) {
        CLOSE(ends[i].connector, NdkCloseConnector);
        ends[i].connector = NULL;
        if (shared[i])
            CLOSE(shared[i], NdkCloseSharedEndpoint);
        end_close(&ends[i]);
    }
}

/* ---- the tests ------------------------------------------------------------------------------ */

static void no_network(void **state)
{
    static const struct attempt attempt = {"10.78.9.1", NO_RETRY, STATUS_NETWORK_UNREACHABLE};

    (void)state;
    refused_at_once("ndk0", HERE, "10.99.0.1", STATUS_NETWORK_UNREACHABLE);
    refused_at_once("lo", "127.0.0.1", "10.99.0.1", STATUS_NETWORK_UNREACHABLE);
    /* A route into nothing: what is sent there is thrown away. */
    refused_at_once("ndk0", HERE, "10.79.3.1", STATUS_NETWORK_UNREACHABLE);
    refused_later(&attempt, 1); /* the router has no route */
}

static void no_host(void **state)
{
    static const struct attempt attempts[] = {
        {"10.77.0.99", NO_RETRY, STATUS_HOST_UNREACHABLE}, /* nobody answers ARP */
        {"10.78.1.1", NO_RETRY, STATUS_HOST_UNREACHABLE},  /* says the router */
        {"10.78.2.1", NO_RETRY, STATUS_HOST_UNREACHABLE},  /* says it, as not allowed */
    };

    (void)state;
    refused_at_once("ndk0", HERE, "10.79.1.1", STATUS_HOST_UNREACHABLE);
    refused_at_once("ndk0", HERE, "10.79.2.1", STATUS_HOST_UNREACHABLE); /* not allowed */
    refused_later(attempts, 3);
}

static void no_answer(void **state)
{
    static const struct attempt attempts[] = {
        {"10.78.3.1", NO_RETRY ",connect_ms=100", STATUS_IO_TIMEOUT},
        {"10.77.0.2", NO_RETRY, STATUS_CONNECTION_REFUSED}, /* there, but nobody listens */
    };

    (void)state;
    refused_later(attempts, 2);
}

/* An address that was the adapter's when it was opened. */
static void address_taken_away(void **state)
{
    NDK_LISTENER *listener = NULL;
    SOCKADDR_INET gone = inet_address("10.77.0.5", 0);
    struct end end;
    struct wait w;
    NTSTATUS returned;

    (void)state;
    must("ip addr add 10.77.0.5/24 dev ndk0");
    end_open_on(&end, "ndk0", NO_RETRY);
    must("ip addr del 10.77.0.5/24 dev ndk0");
    expect_status("10.77.0.2", mode_answer(&w, dial(&end, "10.77.0.5", 0, "10.77.0.2", 4420, &w)),
                  STATUS_INVALID_ADDRESS);
    expect_status("10.77.0.2",
                  mode_answer(&w, dial(&end, "10.77.0.5", 50000, "10.77.0.2", 4420, &w)),
                  STATUS_INVALID_ADDRESS);
    wait_init(&w);
    returned = end.adapter->Dispatch->NdkCreateListener(
        end.adapter, (NDK_FN_CONNECT_EVENT_CALLBACK)(uintptr_t)wait_close, NULL, wait_create, &w,
        &listener);
    assert_int_equal(wait_end(&w, returned), STATUS_SUCCESS);
    if (returned == STATUS_PENDING)
        listener = (NDK_LISTENER *)(void *)w.object;
    wait_init(&w);
    assert_int_equal(
        mode_answer(&w, listener->Dispatch->NdkListen(listener, (PSOCKADDR)&gone, sizeof gone.Ipv4,
                                                      wait_request, &w)),
        STATUS_INVALID_ADDRESS);
    CLOSE(listener, NdkCloseListener);
    end_close(&end);
}

/* A connection from a fixed port ended by our FIN first: for a while the pair of addresses rests,
 * and connecting from that port to that destination once more is too soon. */
static void too_soon(void **state)
{
    struct pair p;
    struct end *c = &p.client, *s = &p.server;
    struct wait ours, theirs;
    NTSTATUS ours_returned, theirs_returned;
    SOCKADDR_INET from;
    ULONG length = sizeof from;
    struct wait w;

    (void)state;
    memset(&p, 0, sizeof p);
    pair_open(&p, "127.0.0.1", NULL, NULL);
    assert_int_equal(
        c->connector->Dispatch->NdkGetLocalAddress(c->connector, (PSOCKADDR)&from, &length),
        STATUS_SUCCESS);
    wait_init(&ours);
    ours_returned = c->connector->Dispatch->NdkDisconnect(c->connector, wait_request, &ours);
    if (!wait_event(&s->disconnected, WAIT_S * 1000))
        test_fail("no disconnect event");
    wait_init(&theirs);
    theirs_returned = s->connector->Dispatch->NdkDisconnect(s->connector, wait_request, &theirs);
    assert_int_equal(wait_end(&ours, ours_returned), STATUS_SUCCESS);
    assert_int_equal(wait_end(&theirs, theirs_returned), STATUS_SUCCESS);
    end_close(c);
    end_open(c, NULL);
    expect_status("the same",
                  mode_answer(&w, dial(c, "127.0.0.1", inet_port(&from), "127.0.0.1",
                                       inet_port(&p.listening.address), &w)),
                  STATUS_ADDRESS_ALREADY_EXISTS);
    CLOSE(c->connector, NdkCloseConnector);
    c->connector = NULL;
    CLOSE(s->connector, NdkCloseConnector);
    s->connector = NULL;
    /* From any other port it goes. */
    end_close(c);
    CLOSE(p.listening.listener, NdkCloseListener);
    end_close(s);
    pair_open(&p, "127.0.0.1", NULL, NULL);
    pair_close(&p);
}

/* Once, and last: it takes seconds until a link that was down carries everything again. */
static void interface_down(void **state)
{
    static const char *const modes[] = {"never", "always", "early"};

    (void)state;
    must("ip link set ndk0 down");
    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        mode_set(modes[i]);
        refused_at_once("ndk0", HERE, "10.77.0.2", STATUS_NETWORK_UNREACHABLE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_network), cmocka_unit_test(no_host),
        cmocka_unit_test(no_answer),  cmocka_unit_test(address_taken_away),
        cmocka_unit_test(too_soon),
    };
    const struct CMUnitTest last[] = {cmocka_unit_test(interface_down)};
    int failed;

    network_open();
    failed = RUN_IN_MODES(tests);
    failed += cmocka_run_group_tests_name("interface down", last, NULL, NULL);
    network_close();
    return failed;
}
