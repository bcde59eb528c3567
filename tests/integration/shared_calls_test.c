// SPDX-License-Identifier: MIT
/*
 * What NdkCreateSharedEndpoint, NdkConnectWithSharedEndpoint and the endpoint's NdkGetLocalAddress
 * answer: success, every documented failure and ours, and that nothing is half done after one. All
 * of it in each completion mode: an answer that is known at once is inline in mode never and comes
 * through the callback in mode always.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "modes.h"
#include "os/os.h"
#include "peer.h"
#include "shared.h"

#define LINUX_AF_INET6 10

/* The answer came the way the mode demands. */
static NTSTATUS in_mode(NTSTATUS returned, NTSTATUS status)
{
    if (strcmp(mode, "never") == 0)
        assert_int_not_equal(returned, STATUS_PENDING);
    if (strcmp(mode, "always") == 0 || strcmp(mode, "early") == 0)
        assert_int_equal(returned, STATUS_PENDING);
    return status;
}

static NTSTATUS create(NDK_ADAPTER *adapter, const SOCKADDR_INET *address, ULONG length,
                       NDK_SHARED_ENDPOINT **out)
{
    NTSTATUS returned, status = create_shared(adapter, address, length, &returned, out);

    return in_mode(returned, status);
}

/* ---- creating ------------------------------------------------------------------------------- */

static void creating(void **state)
{
    NDK_ADAPTER *adapter = open_adapter(NULL);
    NDK_SHARED_ENDPOINT *const untouched = (NDK_SHARED_ENDPOINT *)(void *)&adapter;
    NDK_SHARED_ENDPOINT *endpoint = untouched;
    SOCKADDR_INET any = at_port("127.0.0.1", 0), read;
    const NDK_OBJECT_HEADER_RESERVED_BLOCK zero = {0};
    struct wait w;
    NTSTATUS returned;

    (void)state;
    wait_init(&w);
    returned = adapter->Dispatch->NdkCreateSharedEndpoint(adapter, (PSOCKADDR)&any, sizeof any.Ipv4,
                                                          wait_create, &w, &endpoint);
    assert_int_equal(in_mode(returned, wait_end(&w, returned)), STATUS_SUCCESS);
    if (returned == STATUS_PENDING) {
        assert_ptr_equal(endpoint, untouched);
        endpoint = (NDK_SHARED_ENDPOINT *)(void *)w.object;
    }
    assert_int_equal(endpoint->Header.ObjectType, NdkObjectTypeSharedEndpoint);
    assert_int_equal(endpoint->Header.Version.Major, adapter->Header.Version.Major);
    assert_int_equal(endpoint->Header.Version.Minor, adapter->Header.Version.Minor);
    assert_memory_equal(&endpoint->Header.NdkReserved, &zero, sizeof zero);
    assert_int_equal(endpoint->Dispatch->NdkQueryExtension(&endpoint->Header, &(GUID){0},
                                                           (NDK_VERSION){1, 0}, NULL),
                     STATUS_NOT_SUPPORTED);
    read = shared_address(endpoint);
    assert_in_range(RtlUshortByteSwap(read.Ipv4.sin_port), 49152, 65535);
    assert_memory_equal(&read.Ipv4.sin_addr, &any.Ipv4.sin_addr, 4);
    CLOSE(endpoint, NdkCloseSharedEndpoint);
    softndk_close_adapter(adapter);
}

static void create_injected(void **state)
{
    static const NTSTATUS documented[] = {STATUS_INSUFFICIENT_RESOURCES, STATUS_SHARING_VIOLATION,
                                          STATUS_TOO_MANY_ADDRESSES, STATUS_INVALID_ADDRESS};
    NDK_ADAPTER *adapter = open_adapter(NULL);
    NDK_SHARED_ENDPOINT *const untouched = (NDK_SHARED_ENDPOINT *)(void *)&adapter;
    NDK_SHARED_ENDPOINT *endpoint = untouched;
    SOCKADDR_INET any = at_port("127.0.0.1", 0);

    (void)state;
    for (size_t i = 0; i < sizeof documented / sizeof documented[0]; i++) {
        fail_next("NdkCreateSharedEndpoint", documented[i]);
        assert_int_equal(create(adapter, &any, sizeof any.Ipv4, &endpoint), documented[i]);
        assert_ptr_equal(endpoint, untouched);
        expect_reason(&adapter->Header, "NdkCreateSharedEndpoint");
    }
    assert_int_equal(softndk_set_fail("memory:1"), STATUS_SUCCESS);
    assert_int_equal(create(adapter, &any, sizeof any.Ipv4, &endpoint),
                     STATUS_INSUFFICIENT_RESOURCES);
    assert_ptr_equal(endpoint, untouched);
    assert_int_equal(softndk_set_fail(NULL), STATUS_SUCCESS);
    /* What the system may say of the socket that holds the port. */
    assert_int_equal(os_fault_set("socket", 1, EMFILE, false), 0);
    assert_int_equal(create(adapter, &any, sizeof any.Ipv4, &endpoint),
                     STATUS_INSUFFICIENT_RESOURCES);
    expect_reason(&adapter->Header, "cannot hold local address 127.0.0.1");
    assert_int_equal(os_fault_set("bind", 1, EADDRNOTAVAIL, false), 0);
    assert_int_equal(create(adapter, &any, sizeof any.Ipv4, &endpoint), STATUS_INVALID_ADDRESS);
    /* Another program's port is passed over. */
    assert_int_equal(os_fault_set("bind", 1, EADDRINUSE, false), 0);
    assert_int_equal(create(adapter, &any, sizeof any.Ipv4, &endpoint), STATUS_SUCCESS);
    os_fault_clear();
    CLOSE(endpoint, NdkCloseSharedEndpoint);
    softndk_close_adapter(adapter);
}

static void create_addresses(void **state)
{
    NDK_ADAPTER *adapter = open_adapter(NULL);
    SOCKADDR_INET good = at_port("127.0.0.1", 0), bad;
    NDK_SHARED_ENDPOINT *endpoint = NULL;

    (void)state;
    bad = at_port("192.0.2.1", 0);
    assert_int_equal(create(adapter, &bad, sizeof bad.Ipv4, &endpoint), STATUS_INVALID_ADDRESS);
    expect_reason(&adapter->Header, "192.0.2.1");
    bad = at_port("0.0.0.0", 0); /* no wildcard */
    assert_int_equal(create(adapter, &bad, sizeof bad.Ipv4, &endpoint), STATUS_INVALID_ADDRESS);
    bad = at_port("::", 0);
    assert_int_equal(create(adapter, &bad, sizeof bad.Ipv6, &endpoint), STATUS_INVALID_ADDRESS);
    bad = at_port("2001:db8::1", 0);
    assert_int_equal(create(adapter, &bad, sizeof bad.Ipv6, &endpoint), STATUS_INVALID_ADDRESS);
    assert_int_equal(create(adapter, NULL, 0, &endpoint), STATUS_INVALID_ADDRESS);
    assert_int_equal(create(adapter, NULL, sizeof good, &endpoint), STATUS_INVALID_ADDRESS);
    assert_int_equal(create(adapter, &good, 0, &endpoint), STATUS_INVALID_ADDRESS);
    assert_int_equal(create(adapter, &good, sizeof good.Ipv4 - 1, &endpoint),
                     STATUS_INVALID_ADDRESS);
    bad = good;
    bad.si_family = 99;
    assert_int_equal(create(adapter, &bad, sizeof bad, &endpoint), STATUS_INVALID_ADDRESS);
    expect_reason(&adapter->Header, "no IPv4 or IPv6 address");
    assert_null(endpoint);
    softndk_close_adapter(adapter);
}

/* One port in the range, so that it can run out. */
static void create_ports(void **state)
{
    NDK_ADAPTER *adapter = open_adapter("port_low=50030,port_high=50030");
    SOCKADDR_INET any = at_port(own_address(), 0), one = at_port(own_address(), 50030);
    NDK_SHARED_ENDPOINT *first = NULL, *second = NULL;
    struct os_addr foreign;
    int fd;

    (void)state;
    assert_int_equal(create(adapter, &any, sizeof any.Ipv4, &first), STATUS_SUCCESS);
    assert_int_equal(create(adapter, &any, sizeof any.Ipv4, &second), STATUS_TOO_MANY_ADDRESSES);
    expect_reason(&adapter->Header, "50030");
    assert_int_equal(create(adapter, &one, sizeof one.Ipv4, &second), STATUS_SHARING_VIOLATION);
    CLOSE(first, NdkCloseSharedEndpoint);
    assert_int_equal(create(adapter, &one, sizeof one.Ipv4, &second), STATUS_SUCCESS);
    assert_int_equal(shared_address(second).Ipv4.sin_port, one.Ipv4.sin_port);
    CLOSE(second, NdkCloseSharedEndpoint);
    /* Another program listens there. */
    assert_int_equal(os_addr_parse(own_address(), &foreign), 0);
    foreign.port = 50030;
    fd = os_tcp_socket(OS_FAMILY_V4);
    assert_int_equal(os_tcp_bind(fd, &foreign), 0);
    assert_int_equal(os_tcp_listen(fd, 1), 0);
    assert_int_equal(create(adapter, &one, sizeof one.Ipv4, &second), STATUS_SHARING_VIOLATION);
    assert_int_equal(create(adapter, &any, sizeof any.Ipv4, &second), STATUS_TOO_MANY_ADDRESSES);
    os_tcp_close(fd);
    softndk_close_adapter(adapter);
}

/* ---- NdkGetLocalAddress --------------------------------------------------------------------- */

static void reading_the_address(void **state)
{
    static const struct {
        const char *text;
        ADDRESS_FAMILY family;
    } forms[] = {{"127.0.0.2", AF_INET}, {"::1", AF_INET6}, {"::1", LINUX_AF_INET6}};
    NDK_ADAPTER *adapter = open_adapter(NULL);

    (void)state;
    for (size_t i = 0; i < (have_ipv6() ? 3 : 1); i++) {
        SOCKADDR_INET address = at_port(forms[i].text, 0), read;
        ULONG need = length_of(&address), length;
        NDK_SHARED_ENDPOINT *endpoint;

        address.si_family = forms[i].family;
        endpoint = make_shared(adapter, &address);
        for (length = 0; length < need; length += need - 1) {
            ULONG told = length;

            assert_int_equal(
                endpoint->Dispatch->NdkGetLocalAddress(endpoint, (PSOCKADDR)&read, &told),
                STATUS_BUFFER_TOO_SMALL);
            assert_int_equal(told, need);
        }
        length = need;
        assert_int_equal(endpoint->Dispatch->NdkGetLocalAddress(endpoint, NULL, &length),
                         STATUS_BUFFER_TOO_SMALL);
        assert_int_equal(length, need);
        assert_int_equal(endpoint->Dispatch->NdkGetLocalAddress(endpoint, (PSOCKADDR)&read, NULL),
                         STATUS_INVALID_PARAMETER);
        fail_next("NdkGetLocalAddress", STATUS_BUFFER_TOO_SMALL);
        assert_int_equal(
            endpoint->Dispatch->NdkGetLocalAddress(endpoint, (PSOCKADDR)&read, &length),
            STATUS_BUFFER_TOO_SMALL);
        expect_reason(&endpoint->Header, "NdkGetLocalAddress");
        assert_int_equal(softndk_set_fail(NULL), STATUS_SUCCESS);
        read = shared_address(endpoint);
        assert_int_equal(read.si_family, forms[i].family); /* answered as asked */
        assert_int_not_equal(*port_field(&read), 0);
        CLOSE(endpoint, NdkCloseSharedEndpoint);
    }
    softndk_close_adapter(adapter);
}

/* ---- who may have the address meanwhile ----------------------------------------------------- */

static NTSTATUS connect_from(struct end *c, const SOCKADDR_INET *from, const SOCKADDR_INET *to)
{
    NDK_CONNECTOR *connector = make_connector(c->adapter);
    SOCKADDR_INET local = *from, peer = *to;
    struct wait w;
    NTSTATUS status;

    wait_init(&w);
    status = wait_end(&w, connector->Dispatch->NdkConnect(
                              connector, c->qp, (PSOCKADDR)&local, length_of(from),
                              (PSOCKADDR)&peer, length_of(to), 1, 1, NULL, 0, wait_request, &w));
    CLOSE(connector, NdkCloseConnector);
    return status;
}

static void held_against_everybody(void **state)
{
    struct end c;
    SOCKADDR_INET any = at_port(own_address(), 0), at, elsewhere = at_port(other_address(), 0);
    NDK_SHARED_ENDPOINT *endpoint, *second = NULL;
    struct os_addr system;
    int fd;

    (void)state;
    end_open(&c, "retry_v1=0");
    endpoint = make_shared(c.adapter, &any);
    at = shared_address(endpoint);
    assert_int_equal(listen_status(c.adapter, &at), STATUS_SHARING_VIOLATION);
    assert_int_equal(connect_from(&c, &at, &elsewhere), STATUS_INVALID_ADDRESS); /* port 0 */
    elsewhere.Ipv4.sin_port = at.Ipv4.sin_port;
    assert_int_equal(connect_from(&c, &at, &elsewhere), STATUS_SHARING_VIOLATION);
    assert_int_equal(create(c.adapter, &at, sizeof at.Ipv4, &second), STATUS_SHARING_VIOLATION);
    /* Other programs, this library in them included. */
    assert_int_equal(os_addr_parse(own_address(), &system), 0);
    system.port = RtlUshortByteSwap(at.Ipv4.sin_port);
    fd = os_tcp_socket(OS_FAMILY_V4);
    assert_int_equal(os_tcp_bind(fd, &system), -EADDRINUSE);
    os_tcp_close(fd);
    /* The same port of another address is another port. */
    assert_int_equal(listen_status(c.adapter, &elsewhere), STATUS_SUCCESS);
    /* Nobody listens at the address itself, and TCP must not connect it to itself. */
    CLOSE(endpoint, NdkCloseSharedEndpoint);
    assert_int_equal(connect_from(&c, &at, &at), STATUS_CONNECTION_REFUSED);
    assert_int_equal(listen_status(c.adapter, &at), STATUS_SUCCESS);
    end_close(&c);
}

/* ---- connecting: what is known at once ------------------------------------------------------ */

struct dial {
    NDK_QP *qp;
    NDK_SHARED_ENDPOINT *endpoint;
    SOCKADDR_INET target;
    ULONG target_length, data_length;
    const void *data;
};

static NTSTATUS dial_now(NDK_CONNECTOR *connector, const struct dial *d)
{
    struct dial copy = *d;
    struct wait w;
    NTSTATUS returned;

    wait_init(&w);
    returned = connector->Dispatch->NdkConnectWithSharedEndpoint(
        connector, copy.qp, copy.endpoint, copy.target_length ? (PSOCKADDR)&copy.target : NULL,
        copy.target_length, 8, 8, (PVOID)(uintptr_t)copy.data, copy.data_length, wait_request, &w);
    return in_mode(returned, wait_end(&w, returned));
}

/* Two ends, a listener, an endpoint and an idle connector; *good: a connect that would succeed. */
static void dial_open(struct pair *p, struct dial *good)
{
    SOCKADDR_INET any = at_port("127.0.0.1", 0);

    memset(p, 0, sizeof *p);
    end_open(&p->server, NULL);
    end_open(&p->client, NULL);
    listen_on(p->server.adapter, "127.0.0.1", &p->listening);
    p->client.connector = make_connector(p->client.adapter);
    memset(good, 0, sizeof *good);
    good->qp = p->client.qp;
    good->endpoint = make_shared(p->client.adapter, &any);
    good->target = p->listening.address;
    good->target_length = p->listening.address_length;
}

/* Connector, QP and endpoint are as they were before the calls that failed: they connect. */
static void dial_close(struct pair *p, struct dial *good)
{
    struct call call;

    assert_int_equal(softndk_set_fail(NULL), STATUS_SUCCESS);
    os_fault_clear();
    assert_int_equal(atomic_load(&p->listening.events), 0);
    dial_over(p->client.connector, good->qp, good->endpoint, &good->target, &call);
    assert_int_equal(call.returned, STATUS_PENDING);
    p->server.connector = next_incoming(&p->listening);
    assert_int_equal(p->server.connector->Dispatch->NdkReject(p->server.connector, NULL, 0),
                     STATUS_SUCCESS);
    assert_int_equal(ended(&call), STATUS_CONNECTION_REFUSED);
    /* One attempt a connector, also over an endpoint. */
    assert_int_equal(dial_now(p->client.connector, good), STATUS_CONNECTION_INVALID);
    CLOSE(p->client.connector, NdkCloseConnector);
    p->client.connector = NULL;
    CLOSE(good->endpoint, NdkCloseSharedEndpoint);
    pair_close(p);
}

static void connect_injected(void **state)
{
    static const NTSTATUS documented[] = {
        STATUS_INSUFFICIENT_RESOURCES, STATUS_NETWORK_UNREACHABLE, STATUS_HOST_UNREACHABLE,
        STATUS_CONNECTION_REFUSED,     STATUS_IO_TIMEOUT,          STATUS_ADDRESS_ALREADY_EXISTS};
    struct pair p;
    struct dial good;

    (void)state;
    dial_open(&p, &good);
    for (size_t i = 0; i < sizeof documented / sizeof documented[0]; i++) {
        fail_next("NdkConnectWithSharedEndpoint", documented[i]);
        assert_int_equal(dial_now(p.client.connector, &good), documented[i]);
        expect_reason(&p.client.connector->Header, "NdkConnectWithSharedEndpoint");
    }
    assert_int_equal(softndk_set_fail("memory:1"), STATUS_SUCCESS);
    assert_int_equal(dial_now(p.client.connector, &good), STATUS_INSUFFICIENT_RESOURCES);
    dial_close(&p, &good);
}

/* What the system answers to bind and connect; each leaves a reason with both addresses. */
static void connect_system_faults(void **state)
{
    static const struct {
        const char *op;
        int err;
        NTSTATUS status;
    } faults[] = {
        {"socket", EMFILE, STATUS_INSUFFICIENT_RESOURCES},
        {"bind", EADDRINUSE, STATUS_SHARING_VIOLATION},
        {"bind", EADDRNOTAVAIL, STATUS_INVALID_ADDRESS}, /* the host has lost it */
        {"connect", EADDRNOTAVAIL, STATUS_ADDRESS_ALREADY_EXISTS},
        {"connect", ENETUNREACH, STATUS_NETWORK_UNREACHABLE},
        {"connect", EHOSTUNREACH, STATUS_HOST_UNREACHABLE},
        {"connect", ECONNREFUSED, STATUS_CONNECTION_REFUSED},
        {"connect", ETIMEDOUT, STATUS_IO_TIMEOUT},
    };
    struct pair p;
    struct dial good, nobody;
    struct os_addr closed;
    int fd;

    (void)state;
    dial_open(&p, &good);
    /* Nobody listens there, so that the fault can meet none but the connector's socket. */
    assert_int_equal(os_addr_parse(own_address(), &closed), 0);
    fd = os_tcp_socket(OS_FAMILY_V4);
    assert_int_equal(os_tcp_bind(fd, &closed), 0);
    assert_int_equal(os_tcp_local(fd, &closed), 0);
    nobody = good;
    nobody.target = at_port(own_address(), closed.port);
    assert_int_equal(os_fault_set("poll_add", 1, ENOMEM, false), 0);
    assert_int_equal(dial_now(p.client.connector, &nobody), STATUS_INSUFFICIENT_RESOURCES);
    os_tcp_close(fd);
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++) {
        assert_int_equal(os_fault_set(faults[i].op, 1, faults[i].err, false), 0);
        assert_int_equal(dial_now(p.client.connector, &good), faults[i].status);
        expect_reason(&p.client.connector->Header, "cannot connect 127.0.0.1:");
    }
    dial_close(&p, &good);
}

static void connect_addresses(void **state)
{
    struct pair p;
    struct dial good, d;

    (void)state;
    dial_open(&p, &good);
    d = good;
    d.target = at_port("127.0.0.1", 0);
    assert_int_equal(dial_now(p.client.connector, &d), STATUS_INVALID_ADDRESS);
    d.target = at_port("0.0.0.0", 7);
    assert_int_equal(dial_now(p.client.connector, &d), STATUS_INVALID_ADDRESS);
    d.target = good.target;
    d.target.si_family = 99;
    assert_int_equal(dial_now(p.client.connector, &d), STATUS_INVALID_ADDRESS);
    d = good;
    d.target_length = 0;
    assert_int_equal(dial_now(p.client.connector, &d), STATUS_INVALID_ADDRESS);
    d.target_length = sizeof d.target.Ipv4 - 1;
    assert_int_equal(dial_now(p.client.connector, &d), STATUS_INVALID_ADDRESS);
    d = good; /* another family than the endpoint's */
    d.target = at_port("::1", 1);
    d.target_length = sizeof d.target.Ipv6;
    assert_int_equal(dial_now(p.client.connector, &d), STATUS_INVALID_ADDRESS);
    d = good; /* itself */
    d.target = shared_address(good.endpoint);
    assert_int_equal(dial_now(p.client.connector, &d), STATUS_CONNECTION_REFUSED);
    dial_close(&p, &good);
}

static void connect_arguments(void **state)
{
    struct pair p, other;
    struct dial good, d;
    SOCKADDR_INET any = at_port("127.0.0.1", 0);
    uint8_t data[252] = {0};

    (void)state;
    pair_open(&other, "127.0.0.1", NULL, NULL);
    dial_open(&p, &good);
    d = good;
    d.endpoint = NULL;
    assert_int_equal(dial_now(p.client.connector, &d), STATUS_INVALID_PARAMETER);
    expect_reason(&p.client.connector->Header, "the shared endpoint is NULL");
    d.endpoint = (NDK_SHARED_ENDPOINT *)(void *)p.client.connector; /* something else */
    assert_int_equal(dial_now(p.client.connector, &d), STATUS_INVALID_PARAMETER);
    d.endpoint = make_shared(p.server.adapter, &any); /* of another adapter */
    assert_int_equal(dial_now(p.client.connector, &d), STATUS_INVALID_PARAMETER);
    CLOSE(d.endpoint, NdkCloseSharedEndpoint);
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
    /* A connector, or a QP, that is connected. */
    assert_int_equal(dial_now(other.client.connector, &good), STATUS_CONNECTION_ACTIVE);
    d = good;
    d.endpoint = make_shared(other.client.adapter, &any);
    d.qp = other.client.qp;
    CLOSE(p.client.connector, NdkCloseConnector);
    p.client.connector = make_connector(other.client.adapter);
    assert_int_equal(dial_now(p.client.connector, &d), STATUS_CONNECTION_ACTIVE);
    CLOSE(p.client.connector, NdkCloseConnector);
    CLOSE(d.endpoint, NdkCloseSharedEndpoint);
    p.client.connector = make_connector(p.client.adapter);
    dial_close(&p, &good);
    pair_close(&other);
}

/* The same destination twice: from our own connector, and when only the system knows of it. */
static void same_destination_twice(void **state)
{
    struct pair p;
    struct dial good, d;
    struct call first;
    struct os_addr from, to;
    NDK_QP *spare;
    NDK_CONNECTOR *second;
    int fd;

    (void)state;
    dial_open(&p, &good);
    /* One that belongs to nobody here. */
    assert_int_equal(os_addr_parse("127.0.0.1", &from), 0);
    to = from;
    from.port = RtlUshortByteSwap(shared_address(good.endpoint).Ipv4.sin_port);
    to.port = RtlUshortByteSwap(good.target.Ipv4.sin_port);
    fd = os_tcp_socket(OS_FAMILY_V4);
    assert_int_equal(os_tcp_share(fd), 0);
    assert_int_equal(os_tcp_bind(fd, &from), 0);
    assert_int_equal(os_tcp_connect(fd, &to), -EINPROGRESS);
    assert_int_equal(dial_now(p.client.connector, &good), STATUS_ADDRESS_ALREADY_EXISTS);
    expect_reason(&p.client.connector->Header, "a connection between the two addresses");
    os_tcp_abort(fd);
    /* One of ours: refused at once, in whatever state it is. */
    dial_over(p.client.connector, good.qp, good.endpoint, &good.target, &first);
    assert_int_equal(first.returned, STATUS_PENDING);
    second = make_connector(p.client.adapter);
    d = good;
    assert_int_equal(dial_now(second, &d), STATUS_CONNECTION_ACTIVE); /* the QP comes first */
    CLOSE(second, NdkCloseConnector);
    spare = make_qp(&p.client);
    second = make_connector(p.client.adapter);
    d.qp = spare;
    assert_int_equal(dial_now(second, &d), STATUS_ADDRESS_ALREADY_EXISTS);
    p.server.connector = next_incoming(&p.listening);
    assert_int_equal(dial_now(second, &d), STATUS_ADDRESS_ALREADY_EXISTS);
    CLOSE(p.client.connector, NdkCloseConnector); /* RST: the 4-tuple is free */
    p.client.connector = NULL;
    assert_int_equal(ended(&first), STATUS_CANCELLED);
    dial_over(second, spare, good.endpoint, &good.target, &first);
    assert_int_equal(first.returned, STATUS_PENDING);
    close_next(&p.listening);
    assert_int_equal(ended(&first), STATUS_CONNECTION_REFUSED);
    CLOSE(second, NdkCloseConnector);
    CLOSE(spare, NdkCloseQp);
    CLOSE(good.endpoint, NdkCloseSharedEndpoint);
    pair_close(&p);
}

/* ---- connecting: what comes later ----------------------------------------------------------- */

/* Whatever the mode, these come through the callback. */
static NTSTATUS later(struct call *call)
{
    assert_int_equal(call->returned, STATUS_PENDING);
    return ended(call);
}

/* One attempt of a fresh connector. */
static void attempt_with(struct end *c, NDK_QP *qp, NDK_SHARED_ENDPOINT *endpoint,
                         const SOCKADDR_INET *to, struct call *call)
{
    if (c->connector)
        CLOSE(c->connector, NdkCloseConnector);
    c->connector = make_connector(c->adapter);
    dial_over(c->connector, qp, endpoint, to, call);
}

/* With the same QP each time, which stays as it was. */
static void attempt(struct end *c, NDK_SHARED_ENDPOINT *endpoint, const SOCKADDR_INET *to,
                    struct call *call)
{
    attempt_with(c, c->qp, endpoint, to, call);
}

static void refused_and_timed_out(void **state)
{
    struct end c;
    struct peer peer;
    struct listening l;
    struct call call;
    SOCKADDR_INET any = at_port("127.0.0.1", 0), to;
    NDK_SHARED_ENDPOINT *endpoint;

    (void)state;
    end_open(&c, "connect_ms=150,retry_v1=0");
    endpoint = make_shared(c.adapter, &any);
    peer_init(&peer);
    to = at_port("127.0.0.1", peer_listen(&peer));
    attempt(&c, endpoint, &to, &call); /* TCP is there, no Reply comes */
    assert_int_equal(later(&call), STATUS_IO_TIMEOUT);
    expect_reason(&c.connector->Header, "NdkConnectWithSharedEndpoint");
    peer_close(&peer);
    attempt(&c, endpoint, &to, &call); /* nobody listens there any more */
    assert_int_equal(later(&call), STATUS_CONNECTION_REFUSED);
    listen_on(c.adapter, "127.0.0.1", &l);
    attempt(&c, endpoint, &l.address, &call); /* the consumer says no */
    close_next(&l);
    assert_int_equal(later(&call), STATUS_CONNECTION_REFUSED);
    CLOSE(l.listener, NdkCloseListener);
    CLOSE(c.connector, NdkCloseConnector);
    c.connector = NULL;
    CLOSE(endpoint, NdkCloseSharedEndpoint);
    end_close(&c);
}

static void aborted_cancelled_overrun(void **state)
{
    struct end c;
    struct peer peer;
    struct call call, closing;
    struct queue small;
    NDK_QP *qp;
    SOCKADDR_INET any = at_port("127.0.0.1", 0), to;
    NDK_SHARED_ENDPOINT *endpoint;
    uint8_t frame[532];

    (void)state;
    end_open(&c, "retry_v1=0");
    endpoint = make_shared(c.adapter, &any);
    peer_init(&peer);
    to = at_port("127.0.0.1", peer_listen(&peer));
    /* A Reply that asks for more Reads than we offered is a breach: Terminate. */
    attempt(&c, endpoint, &to, &call);
    peer_accept(&peer);
    peer_frame(&peer, frame);
    peer_send_frame(&peer, true, 0x8008, 0x4020);
    assert_int_equal(later(&call), STATUS_CONNECTION_ABORTED);
    peer_hang_up(&peer, true);
    /* Closed while it connects. */
    attempt(&c, endpoint, &to, &call);
    assert_int_equal(call.returned, STATUS_PENDING);
    peer_accept(&peer);
    wait_init(&closing.wait);
    closing.returned =
        c.connector->Dispatch->NdkCloseConnector(&c.connector->Header, wait_close, &closing.wait);
    assert_int_equal(ended(&call), STATUS_CANCELLED);
    assert_int_equal(ended(&closing), STATUS_SUCCESS);
    c.connector = NULL;
    peer_hang_up(&peer, true);
    /* A flush makes more completions than the CQ holds. */
    make_queue(c.adapter, 1, &small);
    qp = make_qp_on(&c, small.cq);
    for (int i = 0; i < 2; i++)
        assert_int_equal(qp->Dispatch->NdkReceive(qp, NULL, NULL, 0), STATUS_SUCCESS);
    attempt_with(&c, qp, endpoint, &to, &call);
    peer_accept(&peer);
    peer_frame(&peer, frame);
    qp->Dispatch->NdkFlush(qp);
    assert_int_equal(later(&call), STATUS_INTERNAL_ERROR);
    /* That queue pair takes no other connection. */
    attempt_with(&c, qp, endpoint, &to, &call);
    assert_int_equal(in_mode(call.returned, ended(&call)), STATUS_INTERNAL_ERROR);
    peer_close(&peer);
    CLOSE(c.connector, NdkCloseConnector);
    c.connector = NULL;
    CLOSE(qp, NdkCloseQp);
    CLOSE(small.cq, NdkCloseCq);
    CLOSE(endpoint, NdkCloseSharedEndpoint);
    end_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(creating),
        cmocka_unit_test(create_injected),
        cmocka_unit_test(create_addresses),
        cmocka_unit_test(create_ports),
        cmocka_unit_test(reading_the_address),
        cmocka_unit_test(held_against_everybody),
        cmocka_unit_test(connect_injected),
        cmocka_unit_test(connect_system_faults),
        cmocka_unit_test(connect_addresses),
        cmocka_unit_test(connect_arguments),
        cmocka_unit_test(same_destination_twice),
        cmocka_unit_test(refused_and_timed_out),
        cmocka_unit_test(aborted_cancelled_overrun),
    };

    return RUN_IN_MODES(tests);
}
