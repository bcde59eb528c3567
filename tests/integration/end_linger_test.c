// SPDX-License-Identifier: MIT
/*
 * A close while data is on its way: whatever the closer saw sent is received, by a slow reader too;
 * a reader that never reads holds it up for linger_ms and no longer, one that reads hardly anything
 * for linger_total_ms.
 */
#include <errno.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ends.h"
#include "os/os.h"

struct call {
    struct wait wait;
    NTSTATUS returned;
};

static NTSTATUS ended(struct call *call)
{
    return wait_end(&call->wait, call->returned);
}

static void expect_event(struct end *end, const char *words)
{
    char text[256];

    if (!wait_event(&end->disconnected, WAIT_S * 1000))
        test_fail("no disconnect event");
    assert_int_equal(atomic_load(&end->disconnects), 1);
    softndk_reason_text(end->reason, text, sizeof text);
    if (!strstr(text, words))
        test_fail("the reason is \"%s\", not \"%s\"", text, words);
}

static void post_receive(struct end *end, void *context)
{
    assert_int_equal(end->qp->Dispatch->NdkReceive(end->qp, context, NULL, 0), STATUS_SUCCESS);
}

/* ---- no data is lost ------------------------------------------------------------------------ */

#define CHUNK  (64u << 10)
#define CHUNKS 60u /* nearly 4 MiB: far more than the socket buffers hold */

/* The reader: its shard, the only one, stands still in the CQ's callback until the gate opens. */
struct gate {
    KEVENT inside;
    atomic_bool open;
    atomic_uint passes;
};

static void stand_still(struct queue *queue, void *context)
{
    struct gate *gate = context;

    (void)queue;
    if (atomic_fetch_add(&gate->passes, 1))
        return;
    KeSetEvent(&gate->inside, 0, FALSE);
    while (!atomic_load(&gate->open)) /* no waiting at DISPATCH_LEVEL */
        test_sleep_ms(1);
}

/* The connection is up, the reader stands still behind a first Send. */
static void reader_stands_still(struct pair *p, struct gate *gate)
{
    struct end *c = &p->client, *s = &p->server;

    memset(gate, 0, sizeof *gate);
    KeInitializeEvent(&gate->inside, NotificationEvent, FALSE);
    s->receive.in_callback = stand_still;
    s->receive.context = gate;
    post_receive(s, s);
    s->receive.cq->Dispatch->NdkArmCq(s->receive.cq, NDK_CQ_NOTIFY_ANY);
    assert_int_equal(c->qp->Dispatch->NdkSend(c->qp, c, NULL, 0, 0), STATUS_SUCCESS);
    assert_int_equal(queue_next(&c->initiator).Status, STATUS_SUCCESS);
    if (!wait_event(&gate->inside, WAIT_S * 1000))
        test_fail("the reader was not notified");
}

static void slow_reader(void **state)
{
    static const char options[] = "tcp_buffer=131072,linger_ms=60000,shards=1";
    struct pair p;
    struct end *c = &p.client, *s = &p.server;
    struct gate gate;
    struct memory from, to;
    struct call close;
    NDK_RESULT_EX result;
    size_t sent = 0, got = 0;

    (void)state;
    pair_open(&p, "127.0.0.1", options, options);
    make_memory(c->pd, CHUNK, 0, &from);
    make_memory(s->pd, (size_t)CHUNK * CHUNKS, NDK_MR_FLAG_ALLOW_LOCAL_WRITE, &to);
    fill(from.data, CHUNK, 8);
    reader_stands_still(&p, &gate);
    for (uintptr_t i = 0; i < CHUNKS; i++) {
        NDK_SGE in = memory_sge(&to, i * CHUNK, CHUNK), out = memory_sge(&from, 0, CHUNK);

        assert_int_equal(s->qp->Dispatch->NdkReceive(s->qp, (void *)i, &in, 1), STATUS_SUCCESS);
        assert_int_equal(c->qp->Dispatch->NdkSend(c->qp, (void *)i, &out, 1, 0), STATUS_SUCCESS);
    }
    post_receive(s, s); /* one that nothing will reach */
    /* With the first one taken by TCP the buffers begin to fill; close in the middle. */
    result = queue_next(&c->initiator);
    assert_int_equal(result.Status, STATUS_SUCCESS);
    wait_init(&close.wait);
    close.returned =
        c->connector->Dispatch->NdkCloseConnector(&c->connector->Header, wait_close, &close.wait);
    c->connector = NULL;
    assert_int_equal(close.returned, STATUS_PENDING);
    atomic_store(&gate.open, true);
    assert_int_equal(ended(&close), STATUS_SUCCESS);
    /* The closer's view: some Sends succeeded, the others were cancelled, in order. */
    for (sent = 1; sent < CHUNKS; sent++) {
        result = queue_next(&c->initiator);
        assert_ptr_equal(result.RequestContext, (void *)sent);
        if (result.Status != STATUS_SUCCESS)
            break;
    }
    assert_true(sent < CHUNKS); /* the buffers cannot have held it all */
    for (size_t i = sent; i < CHUNKS; i++) {
        assert_int_equal(result.Status, STATUS_CANCELLED);
        if (i + 1 < CHUNKS)
            result = queue_next(&c->initiator);
    }
    /* The reader's view: at least those, octet for octet, then the end. */
    expect_event(s, "RST");
    result = queue_next(&s->receive);
    assert_int_equal(result.Status, STATUS_SUCCESS); /* the first one */
    for (got = 0; got <= CHUNKS; got++) {
        result = queue_next(&s->receive);
        assert_ptr_equal(result.RequestContext, got < CHUNKS ? (void *)got : s);
        if (result.Status != STATUS_SUCCESS)
            break;
        assert_int_equal(result.BytesTransferred, CHUNK);
        assert_true(check(to.data + got * CHUNK, CHUNK, 8));
    }
    if (got < sent)
        test_fail("%zu Sends succeeded, %zu were received", sent, got);
    for (size_t i = got; i <= CHUNKS; i++) {
        assert_int_equal(result.Status, STATUS_CANCELLED);
        if (i < CHUNKS)
            result = queue_next(&s->receive);
    }
    free_memory(&from);
    free_memory(&to);
    pair_close(&p);
}

/* ---- a peer that never reads ---------------------------------------------------------------- */

/* A peer by hand: its Reply wants no ready-to-receive message, so that the complete connect ends at
 * once; it reads the Request and nothing else. */
static int hand_connect(struct end *c)
{
    static const uint8_t reply[24] = {'M', 'P', 'A', ' ', 'I',  'D', ' ', 'R', 'e', 'p', ' ', 'F',
                                      'r', 'a', 'm', 'e', 0x50, 2,   0,   4,   0,   4,   0,   4};
    struct os_iov iov = {(void *)(uintptr_t)reply, sizeof reply};
    struct os_addr at;
    SOCKADDR_INET local, peer;
    struct call connect, complete;
    uint8_t request[24];
    size_t got = 0;
    ULONG length;
    int listener = os_tcp_socket(OS_FAMILY_V4), fd;

    assert_int_equal(os_addr_parse("127.0.0.1", &at), 0);
    assert_int_equal(os_tcp_bind(listener, &at), 0);
    assert_int_equal(os_tcp_listen(listener, 4), 0);
    assert_int_equal(os_tcp_local(listener, &at), 0);
    assert_int_equal(softndk_address_from_text("127.0.0.1", &local, &length), STATUS_SUCCESS);
    peer = local;
    peer.Ipv4.sin_port = RtlUshortByteSwap(at.port);
    c->connector = make_connector(c->adapter);
    wait_init(&connect.wait);
    connect.returned = c->connector->Dispatch->NdkConnect(c->connector, c->qp, (PSOCKADDR)&local,
                                                          length, (PSOCKADDR)&peer, length, 4, 4,
                                                          NULL, 0, wait_request, &connect.wait);
    wait_until((fd = os_tcp_accept(listener, NULL)) >= 0, "a connection");
    while (got < sizeof request) {
        ssize_t n = -1;

        wait_until((n = os_tcp_recv(fd, request, sizeof request - got)) > 0, "the Request");
        got += (size_t)n;
    }
    assert_int_equal(os_tcp_send(fd, &iov, 1), sizeof reply);
    assert_int_equal(ended(&connect), STATUS_SUCCESS);
    wait_init(&complete.wait);
    complete.returned = c->connector->Dispatch->NdkCompleteConnectEx(
        c->connector, end_disconnected, c, wait_request, &complete.wait);
    assert_int_equal(ended(&complete), STATUS_SUCCESS);
    os_tcp_close(listener);
    return fd;
}

static void reader_never_reads(void **state)
{
    struct end c;
    struct memory from;
    NDK_RESULT_EX result;
    int fd;

    (void)state;
    end_open(&c, "tcp_buffer=131072,linger_ms=100");
    make_memory(c.pd, CHUNK, 0, &from);
    fd = hand_connect(&c);
    for (uintptr_t i = 0; i < CHUNKS; i++) {
        NDK_SGE out = memory_sge(&from, 0, CHUNK);

        assert_int_equal(c.qp->Dispatch->NdkSend(c.qp, (void *)i, &out, 1, 0), STATUS_SUCCESS);
    }
    CLOSE(c.connector, NdkCloseConnector);
    c.connector = NULL;
    for (uintptr_t i = 0; i < CHUNKS; i++) {
        result = queue_next(&c.initiator);
        assert_ptr_equal(result.RequestContext, (void *)i);
        assert_true(result.Status == STATUS_SUCCESS || result.Status == STATUS_CANCELLED);
    }
    assert_int_equal(result.Status, STATUS_CANCELLED);
    assert_int_equal(atomic_load(&c.disconnects), 0);
    os_tcp_close(fd);
    free_memory(&from);
    end_close(&c);
}

/* One that begins to read when the connection has ended for the closer, all results are there and
 * the close lingers: it gets every octet of the Sends that succeeded. */
static void reader_comes_late(void **state)
{
    struct end c;
    struct memory from;
    struct call close;
    NDK_RESULT_EX result;
    uint8_t octets[8192];
    size_t sent = 0, got = 0;
    ssize_t n;
    int fd;

    (void)state;
    end_open(&c, "tcp_buffer=131072,linger_ms=60000");
    make_memory(c.pd, CHUNK, 0, &from);
    fd = hand_connect(&c);
    for (uintptr_t i = 0; i < CHUNKS; i++) {
        NDK_SGE out = memory_sge(&from, 0, CHUNK);

        assert_int_equal(c.qp->Dispatch->NdkSend(c.qp, (void *)i, &out, 1, 0), STATUS_SUCCESS);
    }
    wait_init(&close.wait);
    close.returned =
        c.connector->Dispatch->NdkCloseConnector(&c.connector->Header, wait_close, &close.wait);
    c.connector = NULL;
    assert_int_equal(close.returned, STATUS_PENDING);
    for (uintptr_t i = 0; i < CHUNKS; i++) {
        result = queue_next(&c.initiator);
        sent += result.Status == STATUS_SUCCESS;
    }
    assert_in_range(sent, 1, CHUNKS - 1);
    for (;;) {
        wait_until((n = os_tcp_recv(fd, octets, sizeof octets)) != -EAGAIN, "octets");
        if (n <= 0)
            break;
        got += (size_t)n;
    }
    if (got < sent * CHUNK)
        test_fail("%zu octets of %zu successful Sends arrived", got, sent);
    assert_int_equal(ended(&close), STATUS_SUCCESS);
    os_tcp_close(fd);
    free_memory(&from);
    end_close(&c);
}

/* One that makes progress, but not enough of it: the close ends by linger_total_ms. */
static void reader_reads_too_slowly(void **state)
{
    struct end c;
    struct memory from;
    struct call close;
    uint8_t octets[512];
    size_t got = 0;
    int fd;

    (void)state;
    end_open(&c, "tcp_buffer=131072,linger_ms=60000,linger_total_ms=60");
    make_memory(c.pd, CHUNK, 0, &from);
    fd = hand_connect(&c);
    for (uintptr_t i = 0; i < CHUNKS; i++) {
        NDK_SGE out = memory_sge(&from, 0, CHUNK);

        assert_int_equal(c.qp->Dispatch->NdkSend(c.qp, (void *)i, &out, 1, 0), STATUS_SUCCESS);
    }
    wait_init(&close.wait);
    close.returned =
        c.connector->Dispatch->NdkCloseConnector(&c.connector->Header, wait_close, &close.wait);
    c.connector = NULL;
    assert_int_equal(close.returned, STATUS_PENDING);
    /* Far less than there is to read, so that only the time can end it. */
    for (unsigned i = 0; i < 32 && !atomic_load(&close.wait.calls); i++) {
        ssize_t n = os_tcp_recv(fd, octets, sizeof octets);

        got += n > 0 ? (size_t)n : 0;
        test_sleep_ms(1);
    }
    assert_int_equal(ended(&close), STATUS_SUCCESS);
    assert_in_range(got, 0, CHUNK);
    for (uintptr_t i = 0; i < CHUNKS; i++)
        assert_ptr_equal(queue_next(&c.initiator).RequestContext, (void *)i);
    os_tcp_close(fd);
    free_memory(&from);
    end_close(&c);
}

/* The socket fails under a Send of ours while Sends of the peer are still unread: they arrive. */
static void failed_send_loses_nothing(void **state)
{
    struct pair p;
    struct end *c = &p.client, *s = &p.server;
    struct gate gate;

    (void)state;
    pair_open(&p, "127.0.0.1", "shards=1", "shards=1");
    reader_stands_still(&p, &gate);
    for (uintptr_t i = 1; i <= 8; i++)
        post_receive(s, (void *)i);
    for (uintptr_t i = 1; i <= 8; i++) {
        assert_int_equal(c->qp->Dispatch->NdkSend(c->qp, (void *)i, NULL, 0, 0), STATUS_SUCCESS);
        assert_int_equal(queue_next(&c->initiator).Status, STATUS_SUCCESS);
    }
    assert_int_equal(os_fault_set("send", 1, ECONNRESET, false), 0);
    assert_int_equal(s->qp->Dispatch->NdkSend(s->qp, s, NULL, 0, 0), STATUS_SUCCESS);
    os_fault_clear();
    atomic_store(&gate.open, true);
    assert_ptr_equal(queue_next(&s->receive).RequestContext, s); /* what it stood still behind */
    for (uintptr_t i = 1; i <= 8; i++) {
        NDK_RESULT_EX result = queue_next(&s->receive);

        assert_int_equal(result.Status, STATUS_SUCCESS);
        assert_ptr_equal(result.RequestContext, (void *)i);
    }
    assert_int_equal(queue_next(&s->initiator).Status, STATUS_CANCELLED);
    expect_event(s, "RST");
    pair_close(&p);
}

int main(void)
{
    static const char *const modes[] = {"never", "always", "early", "random:43"};
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(failed_send_loses_nothing), cmocka_unit_test(slow_reader),
        cmocka_unit_test(reader_never_reads),        cmocka_unit_test(reader_comes_late),
        cmocka_unit_test(reader_reads_too_slowly),
    };
    int failed = 0;

    for (size_t i = 0; i < sizeof modes / sizeof modes[0] && !failed; i++) {
        softndk_set_pend(modes[i]);
        failed += cmocka_run_group_tests_name(modes[i], tests, NULL, NULL);
    }
    return failed;
}
