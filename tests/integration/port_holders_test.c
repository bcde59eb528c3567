// SPDX-License-Identifier: MIT
/*
 * Who holds a port, from when until when (docs/connections.md): in this process, where our own
 * table decides; between processes, where the kernel does, also right behind a run that ended well,
 * badly or by a signal; and a paused listener, whose port another process may take.
 *
 * Another process is a bare socket with the options that this library sets, or, where the end of a
 * process matters, a real one.
 */
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "ends.h"
#include "peer.h"
#include "os/os.h"

static VOID ignore_event(PVOID context, NDK_CONNECTOR *connector)
{
    (void)context;
    CLOSE(connector, NdkCloseConnector);
}

/* NdkListen on port; its listener if it succeeds and out is given. */
static NTSTATUS listens(NDK_ADAPTER *adapter, uint16_t port, NDK_LISTENER **out)
{
    SOCKADDR_INET address = address_of(port);
    NDK_LISTENER *listener = NULL;
    struct wait w;
    NTSTATUS status;

    wait_init(&w);
    status = adapter->Dispatch->NdkCreateListener(adapter, ignore_event, NULL, wait_create, &w,
                                                  &listener);
    must(&w, status, "NdkCreateListener");
    if (status == STATUS_PENDING)
        listener = (NDK_LISTENER *)(void *)w.object;
    wait_init(&w);
    status = wait_end(&w, listener->Dispatch->NdkListen(listener, (PSOCKADDR)&address,
                                                        address_length(), wait_request, &w));
    if (status == STATUS_SUCCESS && out)
        *out = listener;
    else
        CLOSE(listener, NdkCloseListener);
    return status;
}

static void expect_held(NDK_ADAPTER *adapter, uint16_t port)
{
    assert_int_equal(listens(adapter, port, NULL), STATUS_SHARING_VIOLATION);
}

static void expect_free(NDK_ADAPTER *adapter, uint16_t port)
{
    assert_int_equal(listens(adapter, port, NULL), STATUS_SUCCESS);
}

static uint16_t port_of_address(const SOCKADDR_INET *address)
{
    return RtlUshortByteSwap(address->Ipv4.sin_port);
}

static uint16_t local_port(NDK_CONNECTOR *k)
{
    SOCKADDR_INET address;
    ULONG length = sizeof address;

    must(NULL, k->Dispatch->NdkGetLocalAddress(k, (PSOCKADDR)&address, &length),
         "NdkGetLocalAddress");
    return port_of_address(&address);
}

/* NdkConnect from a port to another. */
static NTSTATUS connects(struct end *end, uint16_t from, uint16_t to, struct wait *w)
{
    SOCKADDR_INET local = address_of(from), peer = address_of(to);

    wait_init(w);
    return end->connector->Dispatch->NdkConnect(end->connector, end->qp, (PSOCKADDR)&local,
                                                address_length(), (PSOCKADDR)&peer,
                                                address_length(), 1, 1, NULL, 0, wait_request, w);
}

static void drop(struct end *end)
{
    CLOSE(end->connector, NdkCloseConnector);
    end->connector = NULL;
}

/* ---- other processes ------------------------------------------------------------------------ */

enum fate { ENDS_WELL, EXITS, IS_KILLED };

/* In a child, before this process has a thread: a connection over a port, which is told. */
static void child(int tell, enum fate fate)
{
    struct pair p;
    struct wait w;
    NTSTATUS returned;
    uint16_t port;

    pair_open(&p, "127.0.0.1", NULL, NULL);
    port = port_of_address(&p.listening.address);
    wait_init(&w); /* by the side with the listener's port: that keeps the wait state */
    returned = p.server.connector->Dispatch->NdkDisconnect(p.server.connector, wait_request, &w);
    if (!wait_event(&p.client.disconnected, WAIT_S * 1000) ||
        write(tell, &port, sizeof port) != sizeof port)
        _exit(1);
    if (fate == IS_KILLED)
        pause();
    if (fate == EXITS)
        _exit(0);
    drop(&p.client);
    if (wait_end(&w, returned) != STATUS_SUCCESS)
        _exit(1);
    pair_close(&p);
    _exit(0);
}

/* What an earlier run leaves behind in the kernel keeps nobody waiting. */
static void right_behind_a_run(void **state)
{
    (void)state;
    for (enum fate fate = ENDS_WELL; fate <= IS_KILLED; fate++) {
        NDK_ADAPTER *adapter;
        uint16_t port = 0;
        int told[2], status;
        pid_t pid;

        assert_int_equal(pipe(told), 0);
        fflush(NULL);
        pid = fork();
        assert_true(pid >= 0);
        if (pid == 0)
            child(told[1], fate);
        close(told[1]);
        assert_int_equal(read(told[0], &port, sizeof port), sizeof port);
        close(told[0]);
        if (fate == IS_KILLED) { /* while it lives, the port is its own */
            adapter = open_adapter(NULL);
            expect_held(adapter, port);
            softndk_close_adapter(adapter);
            kill(pid, SIGKILL);
        }
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(fate == IS_KILLED ? WIFSIGNALED(status)
                                      : WIFEXITED(status) && !WEXITSTATUS(status));
        adapter = open_adapter(NULL);
        expect_free(adapter, port);
        softndk_close_adapter(adapter);
    }
}

/* A socket of another program that uses this library, bound as all of them are; -errno if the
 * kernel refuses. */
static int foreign_bind(uint16_t port)
{
    struct os_addr at;
    int fd, err;

    assert_int_equal(os_addr_parse("127.0.0.1", &at), 0);
    at.port = port;
    fd = os_tcp_socket(OS_FAMILY_V4);
    assert_true(fd >= 0);
    err = os_tcp_bind(fd, &at);
    if (err == 0)
        return fd;
    os_tcp_close(fd);
    return err;
}

static int foreign_listen(uint16_t port)
{
    int fd = foreign_bind(port), err;

    if (fd < 0)
        return fd;
    err = os_tcp_listen(fd, 4);
    if (err == 0)
        return fd;
    os_tcp_close(fd);
    return err;
}

static void expect_allowed(int fd)
{
    assert_true(fd >= 0);
    os_tcp_close(fd);
}

/* What the kernel keeps apart: a listener's port from everybody, a connector's from its own
 * destination only. */
static void kept_apart_by_the_kernel(void **state)
{
    struct pair p;
    struct os_addr to;
    uint16_t port;
    int fd, err;

    (void)state;
    pair_open(&p, "127.0.0.1", NULL, NULL);
    port = port_of_address(&p.listening.address);
    assert_int_equal(foreign_bind(port), -EADDRINUSE); /* to listen, connect or hold it */
    port = local_port(p.client.connector);
    expect_allowed(foreign_listen(port));
    fd = foreign_bind(port); /* as a shared endpoint */
    assert_true(fd >= 0);
    assert_int_equal(os_tcp_hold(fd), 0);
    os_tcp_close(fd);
    fd = foreign_bind(port);
    assert_true(fd >= 0);
    assert_int_equal(os_addr_parse("127.0.0.1", &to), 0);
    to.port = port_of_address(&p.listening.address);
    assert_int_equal(os_tcp_connect(fd, &to), -EADDRNOTAVAIL); /* the same two addresses */
    assert_int_equal(os_addr_parse("127.0.0.77", &to), 0);
    to.port = port;
    err = os_tcp_connect(fd, &to);
    assert_true(err == -ECONNREFUSED || err == -EINPROGRESS); /* nobody listens, but it may ask */
    os_tcp_close(fd);
    pair_close(&p);
}

/* ---- listeners ------------------------------------------------------------------------------ */

static void a_listener(void **state)
{
    struct end c;
    struct wait w;
    NDK_LISTENER *first, *second;
    NDK_ADAPTER *other = open_adapter(NULL);
    struct peer early;
    uint16_t port;
    int fd;

    (void)state;
    end_open(&c, NULL);
    c.connector = make_connector(c.adapter);
    peer_init(&early);
    port = peer_listen(&early); /* a number that is free in a moment */
    assert_int_equal(listens(c.adapter, port, NULL), STATUS_SHARING_VIOLATION); /* the kernel's */
    peer_close(&early);
    /* That failure took nothing; and the port is held from the success on, by any adapter. */
    assert_int_equal(listens(c.adapter, port, &first), STATUS_SUCCESS);
    expect_held(c.adapter, port);
    expect_held(other, port);
    assert_int_equal(wait_end(&w, connects(&c, port, 9, &w)), STATUS_SHARING_VIOLATION);
    assert_int_equal(foreign_listen(port), -EADDRINUSE);
    /* A connection without a Request holds it no longer than the listener. */
    peer_connect(&early, port);
    assert_true(peer_quiet(&early, 5));
    CLOSE(first, NdkCloseListener);
    assert_int_equal(peer_await_end(&early), PEER_RST);
    peer_close(&early);
    assert_int_equal(listens(other, port, &second), STATUS_SUCCESS);
    CLOSE(second, NdkCloseListener);
    fd = foreign_listen(port);
    expect_allowed(fd);
    softndk_close_adapter(other);
    end_close(&c);
}

/* Each connector that the listener delivered holds its port until its close, whatever became of it.
 */
static void an_incoming_connector(void **state)
{
    (void)state;
    for (int how = 0; how < 4; how++) {
        struct end c, s;
        struct listening l;
        struct wait w, accept;
        uint16_t port;
        NTSTATUS status, returned;

        end_open(&s, NULL);
        end_open(&c, NULL);
        listen_on(s.adapter, "127.0.0.1", &l);
        port = port_of_address(&l.address);
        c.connector = make_connector(c.adapter);
        status = connects(&c, 0, port, &w);
        s.connector = next_incoming(&l);
        if (how == 0) { /* rejected */
            must(NULL, s.connector->Dispatch->NdkReject(s.connector, NULL, 0), "NdkReject");
            assert_int_equal(wait_end(&w, status), STATUS_CONNECTION_REFUSED);
        } else if (how == 1) { /* left by its peer */
            drop(&c);
            assert_int_equal(wait_end(&w, status), STATUS_CANCELLED);
        } else { /* accepted; and then aborted */
            returned = end_accepts(&s, 1, 1, NULL, 0, &accept);
            must(&w, status, "NdkConnect");
            if (how == 3) {
                drop(&c);
                assert_int_equal(wait_end(&accept, returned), STATUS_CONNECTION_ABORTED);
            }
        }
        wait_init(&w);
        status = l.listener->Dispatch->NdkCloseListener(&l.listener->Header, wait_close, &w);
        assert_int_equal(status, STATUS_PENDING);
        expect_held(c.adapter, port);
        drop(&s);
        must(&w, status, "NdkCloseListener");
        if (how == 2)
            wait_end(&accept, returned);
        expect_free(c.adapter, port);
        end_close(&c);
        end_close(&s);
    }
}

/* ---- connectors ----------------------------------------------------------------------------- */

/* From the call until the close; but an inline failure frees the port at once. */
static void an_active_connector(void **state)
{
    struct end c;
    struct peer peer;
    struct wait w;
    uint16_t to, port;
    NTSTATUS status;

    (void)state;
    end_open(&c, NULL);
    c.connector = make_connector(c.adapter);
    peer_init(&peer);
    to = peer_listen(&peer);
    status = connects(&c, 0, to, &w);
    port = local_port(c.connector);
    expect_held(c.adapter, port);
    peer_accept(&peer);
    drop(&c);
    assert_int_equal(wait_end(&w, status), STATUS_CANCELLED);
    expect_free(c.adapter, port);

    c.connector = make_connector(c.adapter);
    os_fault_set("connect", 1, EHOSTUNREACH, false);
    assert_int_equal(wait_end(&w, connects(&c, port, to, &w)), STATUS_HOST_UNREACHABLE);
    os_fault_clear();
    expect_free(c.adapter, port); /* the connector is still open */

    status = connects(&c, port, to, &w); /* and can be used again */
    peer_hang_up(&peer, true);
    peer_accept(&peer);
    peer_close(&peer);
    assert_int_equal(wait_end(&w, status), STATUS_CONNECTION_REFUSED);
    expect_held(c.adapter, port); /* failed, but not closed */
    drop(&c);
    expect_free(c.adapter, port);
    end_close(&c);
}

/* ---- paused --------------------------------------------------------------------------------- */

static void control(struct listening *l, BOOLEAN pause)
{
    l->listener->Dispatch->NdkControlConnectEvents(l->listener, pause);
}

/* The next connect to the listener: refused, or its event comes and refuses it. */
static bool is_heard(struct end *c, struct listening *l)
{
    unsigned before = atomic_load(&l->events);
    struct wait w;
    NTSTATUS status;
    bool heard;

    c->connector = make_connector(c->adapter);
    status = connects(c, 0, port_of_address(&l->address), &w);
    if (status == STATUS_PENDING)
        wait_until(atomic_load(&w.calls) || atomic_load(&l->events) != before, "an answer");
    heard = atomic_load(&l->events) != before;
    if (heard) {
        NDK_CONNECTOR *k = next_incoming(l);

        CLOSE(k, NdkCloseConnector);
    }
    assert_int_equal(wait_end(&w, status), STATUS_CONNECTION_REFUSED);
    drop(c);
    return heard;
}

/* Refused at once, the port kept; then as before. */
static void a_paused_listener(void **state)
{
    struct end c;
    struct listening l;
    uint16_t port;

    (void)state;
    end_open(&c, NULL);
    listen_on(c.adapter, "127.0.0.1", &l);
    port = port_of_address(&l.address);
    for (int i = 0; i < 3; i++) {
        assert_true(is_heard(&c, &l));
        control(&l, TRUE);
        assert_false(is_heard(&c, &l));
        expect_held(c.adapter, port);
        control(&l, FALSE);
    }
    assert_true(is_heard(&c, &l));
    control(&l, TRUE); /* closed while paused */
    CLOSE(l.listener, NdkCloseListener);
    expect_free(c.adapter, port);
    end_close(&c);
}

/* Between processes a paused listener's port is free. One that is gone at the resume is waited for:
 * the reason says so, and the listener listens within a second or so of its return; unless it is
 * paused or closed before. */
static void a_port_that_is_gone_at_the_resume(void **state)
{
    struct end c;
    struct listening l;
    char text[256];
    uint16_t port;
    int fd;

    (void)state;
    end_open(&c, "retry_v1=0");
    listen_on(c.adapter, "127.0.0.1", &l);
    port = port_of_address(&l.address);
    control(&l, TRUE);
    fd = foreign_listen(port);
    assert_true(fd >= 0);
    control(&l, FALSE);
    softndk_reason(&l.listener->Header, text, sizeof text);
    if (!strstr(text, "cannot listen again after a pause"))
        test_fail("the reason is \"%s\"", text);
    test_sleep_ms(1200); /* it has tried once more, in vain */
    os_tcp_close(fd);
    wait_until(is_heard(&c, &l), "the listener to listen again");

    control(&l, TRUE);
    fd = foreign_listen(port);
    control(&l, FALSE);
    control(&l, TRUE); /* it is not to listen any more */
    os_tcp_close(fd);
    test_sleep_ms(1200);
    assert_false(is_heard(&c, &l));
    fd = foreign_listen(port);
    control(&l, FALSE);
    CLOSE(l.listener, NdkCloseListener); /* with its timer */
    os_tcp_close(fd);
    expect_free(c.adapter, port);
    end_close(&c);
}

int main(void)
{
    static const char *const modes[] = {"never", "always"};
    const struct CMUnitTest alone[] = {cmocka_unit_test(right_behind_a_run)};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kept_apart_by_the_kernel),
        cmocka_unit_test(a_listener),
        cmocka_unit_test(an_incoming_connector),
        cmocka_unit_test(an_active_connector),
        cmocka_unit_test(a_paused_listener),
        cmocka_unit_test(a_port_that_is_gone_at_the_resume),
    };
    int failed = cmocka_run_group_tests_name("processes", alone, NULL, NULL);

    for (size_t i = 0; i < sizeof modes / sizeof modes[0] && !failed; i++) {
        softndk_set_pend(modes[i]);
        failed += cmocka_run_group_tests_name(modes[i], tests, NULL, NULL);
    }
    return failed;
}
