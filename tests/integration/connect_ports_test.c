// SPDX-License-Identifier: MIT
/*
 * Addresses and ports: the forms an address comes in (IPv4, IPv6 by Windows' number and by
 * Linux's), what is read back, and who holds a local port until when: the listener and every
 * connector accepted over it, the connector that connected from it, failed or not.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ends.h"
#include "modes.h"

#define LINUX_AF_INET6 10

struct call {
    struct wait wait;
    NTSTATUS returned;
};

static NTSTATUS ended(struct call *call)
{
    return wait_end(&call->wait, call->returned);
}

static VOID no_event(PVOID context, NDK_CONNECTOR *connector)
{
    (void)context;
    CLOSE(connector, NdkCloseConnector);
}

/* A listener on address; its status. On failure there is none. */
static NTSTATUS try_listen(NDK_ADAPTER *adapter, const SOCKADDR_INET *address, ULONG length,
                           NDK_LISTENER **out)
{
    SOCKADDR_INET copy = *address;
    struct wait w;
    NTSTATUS status;

    wait_init(&w);
    status = adapter->Dispatch->NdkCreateListener(adapter, no_event, NULL, wait_create, &w, out);
    assert_int_equal(wait_end(&w, status), STATUS_SUCCESS);
    if (status == STATUS_PENDING)
        *out = (NDK_LISTENER *)(void *)w.object;
    wait_init(&w);
    status =
        wait_end(&w, (*out)->Dispatch->NdkListen(*out, (PSOCKADDR)&copy, length, wait_request, &w));
    if (status != STATUS_SUCCESS) {
        CLOSE(*out, NdkCloseListener);
        *out = NULL;
    }
    return status;
}

static NTSTATUS port_status(NDK_ADAPTER *adapter, const SOCKADDR_INET *address)
{
    NDK_LISTENER *listener;
    NTSTATUS status = try_listen(adapter, address, sizeof address->Ipv4, &listener);

    if (status == STATUS_SUCCESS)
        CLOSE(listener, NdkCloseListener);
    return status;
}

static void dial(struct end *c, const SOCKADDR_INET *from, const SOCKADDR_INET *to, ULONG length,
                 struct call *call)
{
    SOCKADDR_INET local = *from, peer = *to;

    if (!c->connector)
        c->connector = make_connector(c->adapter);
    wait_init(&call->wait);
    call->returned = c->connector->Dispatch->NdkConnect(c->connector, c->qp, (PSOCKADDR)&local,
                                                        length, (PSOCKADDR)&peer, length, 4, 4,
                                                        NULL, 0, wait_request, &call->wait);
    assert_int_equal(call->returned, STATUS_PENDING);
}

/* Refuses the next connect by closing its connector. */
static void close_next(struct listening *listening)
{
    NDK_CONNECTOR *connector = next_incoming(listening);

    CLOSE(connector, NdkCloseConnector);
}

static SOCKADDR_INET address_of(NDK_CONNECTOR *connector, bool peer, ULONG need)
{
    const NDK_CONNECTOR_DISPATCH *slot = connector->Dispatch;
    SOCKADDR_INET address;
    ULONG length;

    memset(&address, 0xee, sizeof address);
    for (length = need - 1; length == need - 1;) { /* too small, then as told */
        assert_int_equal(peer ? slot->NdkGetPeerAddress(connector, (PSOCKADDR)&address, &length)
                              : slot->NdkGetLocalAddress(connector, (PSOCKADDR)&address, &length),
                         STATUS_BUFFER_TOO_SMALL);
        assert_int_equal(length, need);
    }
    assert_int_equal(peer ? slot->NdkGetPeerAddress(connector, (PSOCKADDR)&address, &length)
                          : slot->NdkGetLocalAddress(connector, (PSOCKADDR)&address, &length),
                     STATUS_SUCCESS);
    assert_int_equal(length, need);
    return address;
}

/* ---- who holds the port --------------------------------------------------------------------- */

/* A listener's port: by the listener, then by what was accepted over it, then by nobody. The close
 * of the listener pends until then. */
static void held_by_the_accepted(void **state)
{
    struct pair p;
    struct end more;
    struct call undecided;
    struct wait closing;
    SOCKADDR_INET local;
    NDK_LISTENER *listener;
    NDK_CONNECTOR *second;
    NTSTATUS returned;

    (void)state;
    pair_open(&p, "127.0.0.1", NULL, NULL);
    listener = p.listening.listener;
    local = local_of(&p.listening);
    end_open(&more, NULL);
    dial(&more, &local, &p.listening.address, p.listening.address_length, &undecided);
    second = next_incoming(&p.listening);
    assert_int_equal(port_status(p.server.adapter, &p.listening.address), STATUS_SHARING_VIOLATION);
    /* The same port at another address is another port. */
    assert_int_equal(softndk_address_from_text(other_address(), &local, &(ULONG){0}),
                     STATUS_SUCCESS);
    local.Ipv4.sin_port = p.listening.address.Ipv4.sin_port;
    assert_int_equal(port_status(p.server.adapter, &local), STATUS_SUCCESS);
    wait_init(&closing);
    returned = listener->Dispatch->NdkCloseListener(&listener->Header, wait_close, &closing);
    assert_int_equal(returned, STATUS_PENDING);
    assert_int_equal(port_status(p.server.adapter, &p.listening.address), STATUS_SHARING_VIOLATION);
    CLOSE(second, NdkCloseConnector);
    assert_int_equal(ended(&undecided), STATUS_CONNECTION_REFUSED);
    assert_int_equal(port_status(p.client.adapter, &p.listening.address), STATUS_SHARING_VIOLATION);
    assert_int_equal(atomic_load(&closing.calls), 0);
    CLOSE(p.server.connector, NdkCloseConnector);
    p.server.connector = NULL;
    assert_int_equal(wait_end(&closing, returned), STATUS_SUCCESS);
    assert_int_equal(port_status(p.server.adapter, &p.listening.address), STATUS_SUCCESS);
    end_close(&more);
    end_close(&p.client);
    end_close(&p.server);
}

/* A connector's port: also after its attempt has failed, until it is closed. */
static void held_by_the_connecting(void **state)
{
    struct end c;
    struct call call;
    struct listening l;
    SOCKADDR_INET local, mine;

    (void)state;
    end_open(&c, NULL);
    listen_on(c.adapter, "127.0.0.1", &l);
    local = local_of(&l);
    dial(&c, &local, &l.address, l.address_length, &call);
    mine = address_of(c.connector, false, sizeof mine.Ipv4); /* while it connects */
    assert_int_not_equal(mine.Ipv4.sin_port, 0);
    assert_in_range(RtlUshortByteSwap(mine.Ipv4.sin_port), 49152, 65535);
    assert_int_equal(port_status(c.adapter, &mine), STATUS_SHARING_VIOLATION);
    close_next(&l);
    assert_int_equal(ended(&call), STATUS_CONNECTION_REFUSED);
    assert_int_equal(port_status(c.adapter, &mine), STATUS_SHARING_VIOLATION);
    CLOSE(c.connector, NdkCloseConnector);
    c.connector = NULL;
    assert_int_equal(port_status(c.adapter, &mine), STATUS_SUCCESS);
    /* By number now, the same port again. */
    dial(&c, &mine, &l.address, l.address_length, &call);
    assert_int_equal(address_of(c.connector, false, sizeof mine.Ipv4).Ipv4.sin_port,
                     mine.Ipv4.sin_port);
    close_next(&l);
    assert_int_equal(ended(&call), STATUS_CONNECTION_REFUSED);
    CLOSE(c.connector, NdkCloseConnector);
    c.connector = NULL;
    CLOSE(l.listener, NdkCloseListener);
    end_close(&c);
}

/* A port that was connected a moment ago listens again at once, and the other way round. */
static void again_at_once(void **state)
{
    struct pair p;
    struct wait w;
    SOCKADDR_INET at, mine;

    (void)state;
    for (int i = 0; i < 3; i++) {
        NTSTATUS returned;

        pair_open(&p, "127.0.0.1", NULL, NULL);
        at = p.listening.address;
        mine = address_of(p.client.connector, false, sizeof at.Ipv4);
        wait_init(&w); /* an end in good order leaves a wait state behind */
        returned =
            p.server.connector->Dispatch->NdkDisconnect(p.server.connector, wait_request, &w);
        if (!wait_event(&p.client.disconnected, WAIT_S * 1000))
            test_fail("no disconnect event");
        CLOSE(p.client.connector, NdkCloseConnector);
        p.client.connector = NULL;
        assert_int_equal(wait_end(&w, returned), STATUS_SUCCESS);
        CLOSE(p.server.connector, NdkCloseConnector);
        p.server.connector = NULL;
        CLOSE(p.listening.listener, NdkCloseListener);
        assert_int_equal(port_status(p.server.adapter, &at), STATUS_SUCCESS);
        assert_int_equal(port_status(p.server.adapter, &mine), STATUS_SUCCESS);
        end_close(&p.client);
        end_close(&p.server);
    }
}

/* ---- forms of an address -------------------------------------------------------------------- */

/* A second Listen is refused and changes nothing, not even the number the address is told in. */
static void expect_listening_as(NDK_LISTENER *listener, const SOCKADDR_INET *as)
{
    SOCKADDR_INET again = *as, got;
    ULONG length = sizeof got;
    struct wait w;

    again.si_family = as->si_family == AF_INET6 ? LINUX_AF_INET6 : AF_INET6;
    wait_init(&w);
    assert_int_equal(
        wait_end(&w, listener->Dispatch->NdkListen(listener, (PSOCKADDR)&again, sizeof again.Ipv6,
                                                   wait_request, &w)),
        STATUS_INVALID_DEVICE_STATE);
    assert_int_equal(listener->Dispatch->NdkGetLocalAddress(listener, (PSOCKADDR)&got, &length),
                     STATUS_SUCCESS);
    assert_int_equal(got.si_family, as->si_family);
    assert_int_equal(got.Ipv6.sin6_port, as->Ipv6.sin6_port);
}

static void families(void **state)
{
    static const ADDRESS_FAMILY numbers[][2] = {
        {AF_INET6, AF_INET6}, {LINUX_AF_INET6, LINUX_AF_INET6}, {LINUX_AF_INET6, AF_INET6}};
    struct pair p;
    NDK_LISTENER *listener;

    (void)state;
    if (!have_ipv6()) {
        print_message("skipped: ::1 is not there\n");
        skip();
    }
    for (size_t i = 0; i < 3; i++) {
        SOCKADDR_INET at, from, got;
        ULONG length = sizeof at;
        struct call call;

        memset(&p, 0, sizeof p);
        end_open(&p.server, NULL);
        end_open(&p.client, NULL);
        listen_on(p.server.adapter, "::1", &p.listening);
        assert_int_equal(p.listening.address.si_family, AF_INET6);
        memset(&at, 0, sizeof at);
        at.Ipv6 = p.listening.address.Ipv6;
        at.si_family = numbers[i][0];
        assert_int_equal(try_listen(p.client.adapter, &at, sizeof at.Ipv6, &listener),
                         STATUS_SHARING_VIOLATION);
        at.Ipv6.sin6_port = 0;
        assert_int_equal(try_listen(p.client.adapter, &at, sizeof at.Ipv6 - 1, &listener),
                         STATUS_INVALID_ADDRESS);
        assert_int_equal(try_listen(p.client.adapter, &at, sizeof at.Ipv6, &listener),
                         STATUS_SUCCESS);
        assert_int_equal(listener->Dispatch->NdkGetLocalAddress(listener, (PSOCKADDR)&got, &length),
                         STATUS_SUCCESS);
        assert_int_equal(got.si_family, numbers[i][0]); /* answered as asked */
        expect_listening_as(listener, &got);
        CLOSE(listener, NdkCloseListener);
        from = at;
        at.Ipv6 = p.listening.address.Ipv6;
        at.si_family = numbers[i][1];
        dial(&p.client, &from, &at, sizeof at.Ipv6, &call);
        p.server.connector = next_incoming(&p.listening);
        got = address_of(p.server.connector, true, sizeof got.Ipv6);
        from = address_of(p.client.connector, false, sizeof got.Ipv6);
        assert_int_equal(got.Ipv6.sin6_port, from.Ipv6.sin6_port);
        assert_int_equal(got.si_family, AF_INET6);
        assert_int_equal(from.si_family, numbers[i][0]);
        assert_memory_equal(&got.Ipv6.sin6_addr, &at.Ipv6.sin6_addr, 16);
        assert_int_equal(address_of(p.client.connector, true, sizeof got.Ipv6).Ipv6.sin6_port,
                         p.listening.address.Ipv6.sin6_port);
        assert_int_equal(p.server.connector->Dispatch->NdkReject(p.server.connector, NULL, 0),
                         STATUS_SUCCESS);
        assert_int_equal(ended(&call), STATUS_CONNECTION_REFUSED);
        pair_close(&p);
    }
}

/* Both ends name both addresses alike, before and after the establishment. */
static void both_ends_agree(void **state)
{
    struct pair p;
    SOCKADDR_INET a, b;

    (void)state;
    pair_open(&p, "127.0.0.3", NULL, NULL);
    a = address_of(p.client.connector, false, sizeof a.Ipv4);
    b = address_of(p.server.connector, true, sizeof a.Ipv4);
    assert_memory_equal(&a.Ipv4, &b.Ipv4, sizeof a.Ipv4);
    a = address_of(p.client.connector, true, sizeof a.Ipv4);
    b = address_of(p.server.connector, false, sizeof a.Ipv4);
    assert_memory_equal(&a.Ipv4, &b.Ipv4, sizeof a.Ipv4);
    assert_memory_equal(&a.Ipv4, &p.listening.address.Ipv4, sizeof a.Ipv4);
    pair_close(&p);
}

int main(void)
{
    static const char *const modes[] = {"never", "always", "early", "random:23"};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(held_by_the_accepted), cmocka_unit_test(held_by_the_connecting),
        cmocka_unit_test(again_at_once),        cmocka_unit_test(families),
        cmocka_unit_test(both_ends_agree),
    };
    int failed = 0;

    for (size_t i = 0; i < sizeof modes / sizeof modes[0] && !failed; i++) {
        softndk_set_pend(modes[i]);
        failed += cmocka_run_group_tests_name(modes[i], tests, NULL, NULL);
    }
    return failed;
}
