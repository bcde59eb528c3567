// SPDX-License-Identifier: MIT
/*
 * What NdkCreateConnector, NdkCreateListener, NdkListen and NdkConnect answer at once: success,
 * every documented failure, and that nothing is half done after one. All of it in each completion
 * mode: an answer is inline in mode never, comes through the callback in mode always.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "modes.h"

/* ---- creating ------------------------------------------------------------------------------- */

static void create_connector(void **state)
{
    NDK_ADAPTER *adapter = open_adapter(NULL);
    NDK_CONNECTOR *const untouched = (NDK_CONNECTOR *)(void *)&adapter;
    NDK_CONNECTOR *connector;
    struct wait w;
    NTSTATUS returned;

    (void)state;
    /* The documented failure, by the hook and by an allocation that fails. */
    for (int i = 0; i < 2; i++) {
        if (i == 0)
            fail_next("NdkCreateConnector", STATUS_INSUFFICIENT_RESOURCES);
        else
            assert_int_equal(softndk_set_fail("memory:1"), STATUS_SUCCESS);
        connector = untouched;
        wait_init(&w);
        returned = adapter->Dispatch->NdkCreateConnector(adapter, wait_create, &w, &connector);
        assert_int_equal(mode_answer(&w, returned), STATUS_INSUFFICIENT_RESOURCES);
        assert_null(w.object);
        assert_ptr_equal(connector, untouched);
        expect_reason(&adapter->Header, "NdkCreateConnector");
    }
    assert_int_equal(softndk_set_fail(NULL), STATUS_SUCCESS);
    connector = untouched;
    wait_init(&w);
    returned = adapter->Dispatch->NdkCreateConnector(adapter, wait_create, &w, &connector);
    assert_int_equal(mode_answer(&w, returned), STATUS_SUCCESS);
    if (returned == STATUS_PENDING) {
        assert_ptr_equal(connector, untouched);
        connector = (NDK_CONNECTOR *)(void *)w.object;
    }
    assert_int_equal(connector->Header.ObjectType, NdkObjectTypeConnector);
    assert_int_equal(connector->Header.Version.Major, adapter->Header.Version.Major);
    assert_non_null(connector->Dispatch);
    CLOSE(connector, NdkCloseConnector);
    softndk_close_adapter(adapter);
}

static VOID no_event(PVOID context, NDK_CONNECTOR *connector)
{
    (void)context;
    CLOSE(connector, NdkCloseConnector);
}

static NTSTATUS create_listener(NDK_ADAPTER *adapter, NDK_FN_CONNECT_EVENT_CALLBACK event,
                                NDK_LISTENER **out)
{
    struct wait w;
    NTSTATUS returned, status;

    *out = NULL;
    wait_init(&w);
    returned = adapter->Dispatch->NdkCreateListener(adapter, event, NULL, wait_create, &w, out);
    status = mode_answer(&w, returned);
    if (returned == STATUS_PENDING) {
        assert_null(*out);
        *out = (NDK_LISTENER *)(void *)w.object;
    }
    return status;
}

static NTSTATUS start_listening(NDK_LISTENER *listener, const SOCKADDR_INET *address, ULONG length)
{
    struct wait w;

    wait_init(&w);
    return mode_answer(&w, listener->Dispatch->NdkListen(listener, (PSOCKADDR)(uintptr_t)address,
                                                         length, wait_request, &w));
}

static void creating_a_listener(void **state)
{
    NDK_ADAPTER *adapter = open_adapter(NULL);
    SOCKADDR_INET address = inet_address("127.0.0.1", 0);
    ULONG length = sizeof address;
    NDK_LISTENER *listener;

    (void)state;
    fail_next("NdkCreateListener", STATUS_INSUFFICIENT_RESOURCES);
    assert_int_equal(create_listener(adapter, no_event, &listener), STATUS_INSUFFICIENT_RESOURCES);
    assert_int_equal(softndk_set_fail("memory:1"), STATUS_SUCCESS);
    assert_int_equal(create_listener(adapter, no_event, &listener), STATUS_INSUFFICIENT_RESOURCES);
    assert_int_equal(softndk_set_fail(NULL), STATUS_SUCCESS);
    assert_int_equal(create_listener(adapter, NULL, &listener), STATUS_INVALID_PARAMETER);
    assert_int_equal(create_listener(adapter, no_event, &listener), STATUS_SUCCESS);
    assert_int_equal(listener->Header.ObjectType, NdkObjectTypeListener);
    /* Not listening yet. */
    assert_int_equal(listener->Dispatch->NdkGetLocalAddress(listener, (PSOCKADDR)&address, &length),
                     STATUS_INVALID_DEVICE_STATE);
    listener->Dispatch->NdkControlConnectEvents(listener, TRUE); /* nothing to pause */
    CLOSE(listener, NdkCloseListener);
    softndk_close_adapter(adapter);
}

/* ---- Listen --------------------------------------------------------------------------------- */

static void listen_addresses(void **state)
{
    NDK_ADAPTER *adapter = open_adapter(NULL);
    SOCKADDR_INET good = inet_address("127.0.0.1", 0), bad, read;
    NDK_LISTENER *listener;
    ULONG length;

    (void)state;
    assert_int_equal(create_listener(adapter, no_event, &listener), STATUS_SUCCESS);
    bad = inet_address("192.0.2.1", 0);
    assert_int_equal(start_listening(listener, &bad, sizeof bad.Ipv4), STATUS_INVALID_ADDRESS);
    expect_reason(&listener->Header, "192.0.2.1");
    assert_int_equal(start_listening(listener, NULL, 0), STATUS_INVALID_ADDRESS);
    assert_int_equal(start_listening(listener, NULL, sizeof good), STATUS_INVALID_ADDRESS);
    assert_int_equal(start_listening(listener, &good, 0), STATUS_INVALID_ADDRESS);
    assert_int_equal(start_listening(listener, &good, sizeof good.Ipv4 - 1),
                     STATUS_INVALID_ADDRESS);
    bad = good;
    bad.si_family = 99;
    assert_int_equal(start_listening(listener, &bad, sizeof bad), STATUS_INVALID_ADDRESS);
    memset(&bad, 0, sizeof bad);
    bad.si_family = AF_INET6;
    assert_int_equal(start_listening(listener, &bad, sizeof bad.Ipv6 - 1), STATUS_INVALID_ADDRESS);
    /* The listener is as before: it listens, once. */
    assert_int_equal(start_listening(listener, &good, sizeof good.Ipv4), STATUS_SUCCESS);
    length = sizeof read;
    assert_int_equal(listener->Dispatch->NdkGetLocalAddress(listener, (PSOCKADDR)&read, &length),
                     STATUS_SUCCESS);
    assert_int_equal(length, sizeof read.Ipv4);
    assert_in_range(inet_port(&read), 49152, 65535);
    assert_memory_equal(&read.Ipv4.sin_addr, &good.Ipv4.sin_addr, 4);
    length = 3;
    assert_int_equal(listener->Dispatch->NdkGetLocalAddress(listener, (PSOCKADDR)&read, &length),
                     STATUS_BUFFER_TOO_SMALL);
    assert_int_equal(length, sizeof read.Ipv4);
    assert_int_equal(start_listening(listener, &good, sizeof good.Ipv4),
                     STATUS_INVALID_DEVICE_STATE);
    CLOSE(listener, NdkCloseListener);
    softndk_close_adapter(adapter);
}

static void listen_injected(void **state)
{
    static const NTSTATUS documented[] = {STATUS_INSUFFICIENT_RESOURCES, STATUS_SHARING_VIOLATION,
                                          STATUS_INVALID_ADDRESS, STATUS_TOO_MANY_ADDRESSES};
    NDK_ADAPTER *adapter = open_adapter(NULL);
    SOCKADDR_INET address = inet_address("127.0.0.1", 0);
    NDK_LISTENER *listener;

    (void)state;
    assert_int_equal(create_listener(adapter, no_event, &listener), STATUS_SUCCESS);
    for (size_t i = 0; i < sizeof documented / sizeof documented[0]; i++) {
        fail_next("NdkListen", documented[i]);
        assert_int_equal(start_listening(listener, &address, sizeof address.Ipv4), documented[i]);
        expect_reason(&listener->Header, "NdkListen");
    }
    assert_int_equal(softndk_set_fail(NULL), STATUS_SUCCESS);
    assert_int_equal(start_listening(listener, &address, sizeof address.Ipv4), STATUS_SUCCESS);
    CLOSE(listener, NdkCloseListener);
    softndk_close_adapter(adapter);
}

/* One port in the range, so that it can run out: TOO_MANY_ADDRESSES for port 0, SHARING_VIOLATION
 * for the number; free again once the holder is closed. */
static void listen_ports(void **state)
{
    NDK_ADAPTER *adapter = open_adapter("port_low=50000,port_high=50000");
    SOCKADDR_INET any = inet_address(own_address(), 0), one = inet_address(own_address(), 50000);
    NDK_LISTENER *first, *second;

    (void)state;
    assert_int_equal(create_listener(adapter, no_event, &first), STATUS_SUCCESS);
    assert_int_equal(create_listener(adapter, no_event, &second), STATUS_SUCCESS);
    assert_int_equal(start_listening(first, &any, sizeof any.Ipv4), STATUS_SUCCESS);
    assert_int_equal(start_listening(second, &any, sizeof any.Ipv4), STATUS_TOO_MANY_ADDRESSES);
    expect_reason(&second->Header, "50000");
    assert_int_equal(start_listening(second, &one, sizeof one.Ipv4), STATUS_SHARING_VIOLATION);
    CLOSE(first, NdkCloseListener);
    assert_int_equal(start_listening(second, &any, sizeof any.Ipv4), STATUS_SUCCESS);
    CLOSE(second, NdkCloseListener);
    softndk_close_adapter(adapter);
}

/* ---- Connect -------------------------------------------------------------------------------- */

struct dial {
    NDK_QP *qp;
    SOCKADDR_INET source, target;
    ULONG source_length, target_length, data_length;
    const void *data;
};

static NTSTATUS dial_now(NDK_CONNECTOR *connector, const struct dial *d)
{
    struct dial copy = *d;
    struct wait w;

    wait_init(&w);
    return mode_answer(&w,
                       connector->Dispatch->NdkConnect(
                           connector, copy.qp, copy.source_length ? (PSOCKADDR)&copy.source : NULL,
                           copy.source_length, copy.target_length ? (PSOCKADDR)&copy.target : NULL,
                           copy.target_length, 8, 8, (PVOID)(uintptr_t)copy.data, copy.data_length,
                           wait_request, &w));
}

/* Two ends, a listener and an idle connector; *good: a connect that would succeed. */
static void dial_open(struct pair *p, struct dial *good)
{
    memset(p, 0, sizeof *p);
    end_open(&p->server, NULL);
    end_open(&p->client, NULL);
    listen_on(p->server.adapter, "127.0.0.1", &p->listening);
    p->client.connector = make_connector(p->client.adapter);
    memset(good, 0, sizeof *good);
    good->qp = p->client.qp;
    good->source = local_of(&p->listening);
    good->target = p->listening.address;
    good->source_length = good->target_length = p->listening.address_length;
}

/* Connector and QP are as they were before the calls that failed: they connect. */
static void dial_close(struct pair *p)
{
    struct end *c = &p->client, *s = &p->server;
    SOCKADDR_INET local = local_of(&p->listening);
    struct wait connect, accept, complete;
    NTSTATUS connecting, accepting, completing;

    assert_int_equal(softndk_set_fail(NULL), STATUS_SUCCESS);
    assert_int_equal(atomic_load(&p->listening.events), 0);
    wait_init(&connect);
    connecting = c->connector->Dispatch->NdkConnect(
        c->connector, c->qp, (PSOCKADDR)&local, p->listening.address_length,
        (PSOCKADDR)&p->listening.address, p->listening.address_length, 8, 8, NULL, 0, wait_request,
        &connect);
    assert_int_equal(connecting, STATUS_PENDING);
    s->connector = next_incoming(&p->listening);
    wait_init(&accept);
    accepting = s->connector->Dispatch->NdkAccept(s->connector, s->qp, 8, 8, NULL, 0, NULL, NULL,
                                                  wait_request, &accept);
    assert_int_equal(wait_end(&connect, connecting), STATUS_SUCCESS);
    wait_init(&complete);
    completing = c->connector->Dispatch->NdkCompleteConnect(c->connector, NULL, NULL, wait_request,
                                                            &complete);
    assert_int_equal(wait_end(&complete, completing), STATUS_SUCCESS);
    assert_int_equal(wait_end(&accept, accepting), STATUS_SUCCESS);
    pair_close(p);
}

static void connect_injected(void **state)
{
    static const NTSTATUS documented[] = {
        STATUS_INSUFFICIENT_RESOURCES, STATUS_NETWORK_UNREACHABLE, STATUS_HOST_UNREACHABLE,
        STATUS_CONNECTION_REFUSED,     STATUS_IO_TIMEOUT,          STATUS_SHARING_VIOLATION,
        STATUS_INVALID_ADDRESS,        STATUS_TOO_MANY_ADDRESSES,  STATUS_ADDRESS_ALREADY_EXISTS};
    struct pair p;
    struct dial good;

    (void)state;
    dial_open(&p, &good);
    for (size_t i = 0; i < sizeof documented / sizeof documented[0]; i++) {
        fail_next("NdkConnect", documented[i]);
        assert_int_equal(dial_now(p.client.connector, &good), documented[i]);
        expect_reason(&p.client.connector->Header, "NdkConnect");
    }
    assert_int_equal(softndk_set_fail("memory:1"), STATUS_SUCCESS);
    assert_int_equal(dial_now(p.client.connector, &good), STATUS_INSUFFICIENT_RESOURCES);
    dial_close(&p);
}

static void connect_addresses(void **state)
{
    struct pair p;
    struct dial good, d;

    (void)state;
    dial_open(&p, &good);
    d = good;
    d.source = inet_address("192.0.2.1", 0);
    assert_int_equal(dial_now(p.client.connector, &d), STATUS_INVALID_ADDRESS);
    expect_reason(&p.client.connector->Header, "192.0.2.1");
    d = good;
    d.source_length = 0;
    assert_int_equal(dial_now(p.client.connector, &d), STATUS_INVALID_ADDRESS);
    d.source_length = sizeof d.source.Ipv4 - 1;
    assert_int_equal(dial_now(p.client.connector, &d), STATUS_INVALID_ADDRESS);
    d = good;
    d.source.si_family = 99;
    assert_int_equal(dial_now(p.client.connector, &d), STATUS_INVALID_ADDRESS);
    d = good;
    d.target = inet_address("127.0.0.1", 0);
    assert_int_equal(dial_now(p.client.connector, &d), STATUS_INVALID_ADDRESS);
    d.target = inet_address("0.0.0.0", 7);
    assert_int_equal(dial_now(p.client.connector, &d), STATUS_INVALID_ADDRESS);
    d = good;
    d.target_length = 0;
    assert_int_equal(dial_now(p.client.connector, &d), STATUS_INVALID_ADDRESS);
    d.target_length = sizeof d.target.Ipv4 - 1;
    assert_int_equal(dial_now(p.client.connector, &d), STATUS_INVALID_ADDRESS);
    d = good; /* another family than the source's */
    memset(&d.target, 0, sizeof d.target);
    d.target.si_family = AF_INET6;
    d.target.Ipv6.sin6_port = 1;
    d.target_length = sizeof d.target.Ipv6;
    assert_int_equal(dial_now(p.client.connector, &d), STATUS_INVALID_ADDRESS);
    d = good; /* the listener holds that port */
    d.source = p.listening.address;
    assert_int_equal(dial_now(p.client.connector, &d), STATUS_SHARING_VIOLATION);
    dial_close(&p);
}

static void connect_arguments(void **state)
{
    struct pair p, other;
    struct dial good, d;
    uint8_t data[252] = {0};

    (void)state;
    pair_open(&other, "127.0.0.1", NULL, NULL);
    dial_open(&p, &good);
    d = good;
    d.qp = NULL;
    assert_int_equal(dial_now(p.client.connector, &d), STATUS_INVALID_PARAMETER);
    d.qp = p.server.qp; /* of another adapter */
    assert_int_equal(dial_now(p.client.connector, &d), STATUS_INVALID_PARAMETER);
    d = good;
    d.data = data;
    d.data_length = sizeof data;
    assert_int_equal(dial_now(p.client.connector, &d), STATUS_INVALID_BUFFER_SIZE);
    d.data = NULL;
    d.data_length = 1;
    assert_int_equal(dial_now(p.client.connector, &d), STATUS_INVALID_PARAMETER);
    /* A connector that is connected. */
    assert_int_equal(dial_now(other.client.connector, &good), STATUS_CONNECTION_ACTIVE);
    assert_int_equal(dial_now(other.server.connector, &good), STATUS_CONNECTION_ACTIVE);
    dial_close(&p);
    pair_close(&other);
}

static void connect_ports(void **state)
{
    struct pair p;
    struct dial d;
    struct end more;
    NDK_CONNECTOR *second;
    struct wait w;
    NTSTATUS returned;

    (void)state;
    memset(&p, 0, sizeof p);
    end_open(&p.server, "port_low=50000,port_high=50010");
    end_open(&p.client, "port_low=50020,port_high=50020");
    listen_on(p.server.adapter, own_address(), &p.listening);
    pair_connect(&p); /* holds the one port of the client's adapter */
    second = make_connector(p.client.adapter);
    memset(&d, 0, sizeof d);
    d.qp = p.client.qp;
    d.source = local_of(&p.listening);
    d.target = p.listening.address;
    d.source_length = d.target_length = p.listening.address_length;
    /* The QP is checked first: it serves one connection. */
    assert_int_equal(dial_now(second, &d), STATUS_CONNECTION_ACTIVE);
    CLOSE(second, NdkCloseConnector);
    end_open(&more, "port_low=50020,port_high=50020");
    more.connector = make_connector(more.adapter);
    d.qp = more.qp;
    assert_int_equal(dial_now(more.connector, &d), STATUS_TOO_MANY_ADDRESSES);
    expect_reason(&more.connector->Header, "50020");
    d.source = inet_address(own_address(), 50020);
    assert_int_equal(dial_now(more.connector, &d), STATUS_SHARING_VIOLATION);
    /* Free once its connector is closed. */
    d.source = inet_address(own_address(), 0);
    CLOSE(p.client.connector, NdkCloseConnector);
    p.client.connector = NULL;
    CLOSE(p.server.connector, NdkCloseConnector);
    p.server.connector = NULL;
    wait_init(&w);
    returned = more.connector->Dispatch->NdkConnect(
        more.connector, more.qp, (PSOCKADDR)&d.source, d.source_length, (PSOCKADDR)&d.target,
        d.target_length, 8, 8, NULL, 0, wait_request, &w);
    if (returned != STATUS_PENDING)
        test_fail("the port is not free again: %s", softndk_status_name(returned));
    p.server.connector = next_incoming(&p.listening);
    assert_int_equal(p.server.connector->Dispatch->NdkReject(p.server.connector, NULL, 0),
                     STATUS_SUCCESS);
    assert_int_equal(wait_end(&w, returned), STATUS_CONNECTION_REFUSED);
    end_close(&more);
    pair_close(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(create_connector),  cmocka_unit_test(creating_a_listener),
        cmocka_unit_test(listen_addresses),  cmocka_unit_test(listen_injected),
        cmocka_unit_test(listen_ports),      cmocka_unit_test(connect_injected),
        cmocka_unit_test(connect_addresses), cmocka_unit_test(connect_arguments),
        cmocka_unit_test(connect_ports),
    };

    return RUN_IN_MODES(tests);
}
