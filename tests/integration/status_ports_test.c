// SPDX-License-Identifier: MIT
/*
 * What the system and its limits make NdkListen and NdkConnect answer: ports that another process
 * holds, all 16,384 ephemeral ports taken, a pair of addresses that is in use, no descriptor left.
 * All of it for real, on an address of loopback's that nobody else uses, inline and through the
 * callback; and afterwards the same object works.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "modes.h"
#include "os/os.h"
#include "provider/ports.h"

enum { LOW = 49152, HIGH = 65535, PORTS = HIGH - LOW + 1, SPARE_DESCRIPTORS = 200 };

static VOID no_event(PVOID context, NDK_CONNECTOR *connector)
{
    (void)context;
    CLOSE(connector, NdkCloseConnector);
}

static NDK_LISTENER *new_listener(NDK_ADAPTER *adapter)
{
    NDK_LISTENER *listener = NULL;
    struct wait w;
    NTSTATUS returned;

    wait_init(&w);
    returned =
        adapter->Dispatch->NdkCreateListener(adapter, no_event, NULL, wait_create, &w, &listener);
    assert_int_equal(wait_end(&w, returned), STATUS_SUCCESS);
    return returned == STATUS_PENDING ? (NDK_LISTENER *)(void *)w.object : listener;
}

static NTSTATUS listen_at(NDK_LISTENER *listener, unsigned port)
{
    SOCKADDR_INET address = inet_address(own_address(), port);
    struct wait w;

    wait_init(&w);
    return mode_answer(&w, listener->Dispatch->NdkListen(listener, (PSOCKADDR)&address,
                                                         sizeof address.Ipv4, wait_request, &w));
}

static unsigned listener_port(NDK_LISTENER *listener)
{
    SOCKADDR_INET address;
    ULONG length = sizeof address;

    assert_int_equal(listener->Dispatch->NdkGetLocalAddress(listener, (PSOCKADDR)&address, &length),
                     STATUS_SUCCESS);
    return inet_port(&address);
}

/* A port of own_address that another process would hold: listening, of no consumer of ours. */
static int foreign_listener(struct os_addr *at, unsigned port)
{
    int fd = os_tcp_socket(OS_FAMILY_V4);

    assert_true(fd >= 0);
    assert_int_equal(os_addr_parse(own_address(), at), 0);
    at->port = (uint16_t)port;
    assert_int_equal(os_tcp_bind(fd, at), 0);
    assert_int_equal(os_tcp_listen(fd, 4), 0);
    assert_int_equal(os_tcp_local(fd, at), 0);
    return fd;
}

/* From a port of own_address to a foreign listener there. */
static NTSTATUS dial(struct end *end, unsigned from, const struct os_addr *to, struct wait *w)
{
    SOCKADDR_INET source = inet_address(own_address(), from);
    SOCKADDR_INET target = inet_address(own_address(), to->port);

    if (!end->connector)
        end->connector = make_connector(end->adapter);
    wait_init(w);
    return end->connector->Dispatch->NdkConnect(end->connector, end->qp, (PSOCKADDR)&source,
                                                sizeof source.Ipv4, (PSOCKADDR)&target,
                                                sizeof target.Ipv4, 1, 1, NULL, 0, wait_request, w);
}

static NTSTATUS dial_refused(struct end *end, unsigned from, const struct os_addr *to)
{
    struct wait w;

    return mode_answer(&w, dial(end, from, to, &w));
}

/* It connects as far as TCP does; the peer hangs up, which ends the attempt. */
static void dial_works(struct end *end, unsigned from, int listener, const struct os_addr *to)
{
    struct wait w;
    NTSTATUS returned = dial(end, from, to, &w), status;
    int fd = -1;

    assert_int_equal(returned, STATUS_PENDING);
    wait_until((fd = os_tcp_accept(listener, NULL)) >= 0, "the connection");
    os_tcp_abort(fd);
    status = wait_end(&w, returned); /* by who hears of the RST: the receiver or the sender */
    assert_true(status == STATUS_CONNECTION_REFUSED || status == STATUS_CONNECTION_ABORTED);
    CLOSE(end->connector, NdkCloseConnector);
    end->connector = NULL;
}

/* ---- one port ------------------------------------------------------------------------------- */

static void held_by_another_process(void **state)
{
    struct end end;
    struct os_addr held, target;
    NDK_LISTENER *listener;
    int holder, listening;

    (void)state;
    holder = foreign_listener(&held, 0);
    listening = foreign_listener(&target, 0);
    end_open(&end, "retry_v1=0");
    listener = new_listener(end.adapter);
    assert_int_equal(listen_at(listener, held.port), STATUS_SHARING_VIOLATION);
    expect_reason(&listener->Header, "cannot listen on");
    assert_int_equal(dial_refused(&end, held.port, &target), STATUS_SHARING_VIOLATION);
    os_tcp_close(holder);
    assert_int_equal(listen_at(listener, held.port), STATUS_SUCCESS);
    CLOSE(listener, NdkCloseListener);
    dial_works(&end, held.port, listening, &target);
    os_tcp_close(listening);
    end_close(&end);
}

/* Another process has a connection from this very port to this very destination. */
static void a_pair_that_is_in_use(void **state)
{
    struct end end;
    struct os_addr target, source;
    int listening, theirs, accepted = -1, err;

    (void)state;
    listening = foreign_listener(&target, 0);
    theirs = os_tcp_socket(OS_FAMILY_V4);
    assert_int_equal(os_addr_parse(own_address(), &source), 0);
    assert_int_equal(os_tcp_bind(theirs, &source), 0);
    err = os_tcp_connect(theirs, &target);
    assert_true(err == 0 || err == -EINPROGRESS);
    wait_until((accepted = os_tcp_accept(listening, NULL)) >= 0, "their connection");
    assert_int_equal(os_tcp_local(theirs, &source), 0);
    end_open(&end, "retry_v1=0");
    assert_int_equal(dial_refused(&end, source.port, &target), STATUS_ADDRESS_ALREADY_EXISTS);
    os_tcp_abort(theirs);
    wait_until(os_tcp_peek(accepted) != -EAGAIN, "the end of their connection");
    os_tcp_close(accepted);
    dial_works(&end, source.port, listening, &target);
    os_tcp_close(listening);
    end_close(&end);
}

/* ---- all ports ------------------------------------------------------------------------------ */

/* Room for that many descriptors more; the limit before. False: the hard limit is lower. */
static bool room_for(unsigned descriptors, struct rlimit *before)
{
    struct rlimit now;

    assert_int_equal(getrlimit(RLIMIT_NOFILE, before), 0);
    now = *before;
    now.rlim_cur = now.rlim_max;
    if (now.rlim_max != RLIM_INFINITY && now.rlim_max < descriptors)
        return false;
    if (now.rlim_max == RLIM_INFINITY)
        now.rlim_cur = descriptors;
    return setrlimit(RLIMIT_NOFILE, &now) == 0;
}

/* All ports but one stand in our own table: port 0 gets the one, then nothing, by number neither.
 */
static void all_held_in_this_process(void **state)
{
    static struct endpoint *held[PORTS];
    const unsigned gap = LOW + 1234;
    struct os_addr address, target;
    NDK_LISTENER *first, *second;
    struct end end;
    int listening = foreign_listener(&target, 0);
    bool memory;

    (void)state;
    assert_int_equal(os_addr_parse(own_address(), &address), 0);
    for (unsigned i = 0; i < PORTS; i++) {
        address.port = (uint16_t)(LOW + i);
        held[i] = address.port == gap ? NULL : endpoint_take(&address, &memory);
        assert_true(held[i] || address.port == gap);
    }
    end_open(&end, "retry_v1=0");
    first = new_listener(end.adapter);
    second = new_listener(end.adapter);
    if (target.port != gap) {
        assert_int_equal(listen_at(first, 0), STATUS_SUCCESS);
        assert_int_equal(listener_port(first), gap);
    }
    assert_int_equal(listen_at(second, 0), STATUS_TOO_MANY_ADDRESSES);
    expect_reason(&second->Header, "no port is left in 49152..65535");
    assert_int_equal(dial_refused(&end, 0, &target), STATUS_TOO_MANY_ADDRESSES);
    expect_reason(&end.connector->Header, "no port is left in 49152..65535");
    assert_int_equal(listen_at(second, LOW), STATUS_SHARING_VIOLATION);
    CLOSE(first, NdkCloseListener);
    for (unsigned i = 0; i < PORTS; i++)
        endpoint_drop(held[i]);
    dial_works(&end, 0, listening, &target);
    assert_int_equal(listen_at(second, 0), STATUS_SUCCESS);
    CLOSE(second, NdkCloseListener);
    os_tcp_close(listening);
    end_close(&end);
}

/* The modes in which the two long tests below, which run once, ask. */
static const char *const answers[] = {"never", "always", "early"};

/* All ports but one are held by sockets of no consumer: here the kernel is who says no. */
static void all_held_by_other_processes(void **state)
{
    static int held[PORTS];
    const unsigned gap = HIGH - 4321;
    struct rlimit before;
    struct os_addr at;
    struct end end;
    NDK_LISTENER *first, *second;

    (void)state;
    mode_set("never");
    if (!room_for(PORTS + SPARE_DESCRIPTORS, &before)) {
        print_message("skipped: needs %u descriptors\n", PORTS + SPARE_DESCRIPTORS);
        skip();
    }
    for (unsigned i = 0; i < PORTS; i++)
        held[i] = LOW + i == gap ? -1 : foreign_listener(&at, LOW + i);
    end_open(&end, "retry_v1=0");
    first = new_listener(end.adapter);
    second = new_listener(end.adapter);
    assert_int_equal(listen_at(first, 0), STATUS_SUCCESS);
    assert_int_equal(listener_port(first), gap);
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        mode_set(answers[i]);
        assert_int_equal(listen_at(second, 0), STATUS_TOO_MANY_ADDRESSES);
        assert_int_equal(dial_refused(&end, 0, &at), STATUS_TOO_MANY_ADDRESSES);
    }
    for (unsigned i = 1; i < PORTS - 1; i++)
        if (held[i] >= 0)
            os_tcp_close(held[i]);
    assert_int_equal(listen_at(second, 0), STATUS_SUCCESS);
    CLOSE(first, NdkCloseListener);
    CLOSE(second, NdkCloseListener);
    dial_works(&end, 0, held[PORTS - 1], &at);
    os_tcp_close(held[0]);
    os_tcp_close(held[PORTS - 1]);
    end_close(&end);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

/* 16,384 listeners, each with a port of its own, and not one more. */
static void all_listened_at(void **state)
{
    static NDK_LISTENER *listeners[PORTS + 1];
    static uint8_t seen[PORTS];
    struct rlimit before;
    struct end end;

    (void)state;
    mode_set("never");
    if (!room_for(PORTS + SPARE_DESCRIPTORS, &before)) {
        print_message("skipped: needs %u descriptors\n", PORTS + SPARE_DESCRIPTORS);
        skip();
    }
    memset(seen, 0, sizeof seen);
    end_open(&end, NULL);
    for (unsigned i = 0; i < PORTS; i++) {
        unsigned port;

        listeners[i] = new_listener(end.adapter);
        assert_int_equal(listen_at(listeners[i], 0), STATUS_SUCCESS);
        port = listener_port(listeners[i]);
        assert_in_range(port, LOW, HIGH);
        assert_int_equal(seen[port - LOW]++, 0);
    }
    listeners[PORTS] = new_listener(end.adapter);
    for (size_t i = 0; i < sizeof answers / sizeof answers[0]; i++) {
        mode_set(answers[i]);
        assert_int_equal(listen_at(listeners[PORTS], 0), STATUS_TOO_MANY_ADDRESSES);
    }
    mode_set("never");
    CLOSE(listeners[0], NdkCloseListener);
    assert_int_equal(listen_at(listeners[PORTS], 0), STATUS_SUCCESS);
    for (unsigned i = 1; i <= PORTS; i++)
        CLOSE(listeners[i], NdkCloseListener);
    end_close(&end);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
}

/* ---- descriptors ---------------------------------------------------------------------------- */

static void no_descriptor_left(void **state)
{
    struct end end;
    struct os_addr target;
    struct rlimit before, now;
    NDK_LISTENER *listener;
    int listening = foreign_listener(&target, 0), next;

    (void)state;
    end_open(&end, "retry_v1=0");
    end.connector = make_connector(end.adapter);
    listener = new_listener(end.adapter);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    next = os_tcp_socket(OS_FAMILY_V4);
    assert_true(next >= 0);
    os_tcp_close(next);
    now = before;
    now.rlim_cur = (rlim_t)next;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &now), 0);
    assert_int_equal(listen_at(listener, 0), STATUS_INSUFFICIENT_RESOURCES);
    assert_int_equal(dial_refused(&end, 0, &target), STATUS_INSUFFICIENT_RESOURCES);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    expect_reason(&listener->Header, "cannot listen on");
    assert_int_equal(listen_at(listener, 0), STATUS_SUCCESS);
    CLOSE(listener, NdkCloseListener);
    dial_works(&end, 0, listening, &target);
    os_tcp_close(listening);
    end_close(&end);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(held_by_another_process),
        cmocka_unit_test(a_pair_that_is_in_use),
        cmocka_unit_test(all_held_in_this_process),
        cmocka_unit_test(no_descriptor_left),
    };
    const struct CMUnitTest once[] = {
        cmocka_unit_test(all_held_by_other_processes),
        cmocka_unit_test(all_listened_at),
    };
    int failed = RUN_IN_MODES(tests);

    return failed + cmocka_run_group_tests_name("all ports", once, NULL, NULL);
}
