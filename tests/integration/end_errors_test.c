// SPDX-License-Identifier: MIT
/*
 * Ends that an error brings: a Send that meets no receive or a short one, Writes and Reads of what
 * the peer does not give, a request that is wrong locally. Each ends its connection with the
 * Terminate it should, both sides are told in its words, requests end with the status of the
 * reference, later ones are CANCELLED or refused; and a second connection does not notice.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ends.h"

#define SIZE 8192u
#define ALL                                                                                        \
    (NDK_MR_FLAG_ALLOW_LOCAL_WRITE | NDK_MR_FLAG_ALLOW_REMOTE_READ |                               \
     NDK_MR_FLAG_ALLOW_REMOTE_WRITE | NDK_MR_FLAG_RDMA_READ_SINK)

struct one {
    struct pair pair;
    struct memory client, server;
};

/* The one that errs, and one that must go on. */
struct fixture {
    struct one bad, good;
};

static const char *const option_sets[] = {"holdback_ms=0", "holdback_ms=0,crc=0"};
static const char *options; /* of both sides */

static void one_open(struct one *o)
{
    memset(o, 0, sizeof *o);
    pair_open(&o->pair, "127.0.0.1", options, options);
    make_memory(o->pair.client.pd, SIZE, ALL, &o->client);
    make_memory(o->pair.server.pd, SIZE, ALL, &o->server);
}

static void one_close(struct one *o)
{
    free_memory(&o->client);
    free_memory(&o->server);
    pair_close(&o->pair);
}

static void expect_alive(struct one *o)
{
    struct end *c = &o->pair.client, *s = &o->pair.server;
    NDK_SGE out = memory_sge(&o->client, 0, SIZE), in = memory_sge(&o->server, 0, SIZE);
    static unsigned seed;

    fill(o->client.data, SIZE, ++seed);
    assert_int_equal(s->qp->Dispatch->NdkReceive(s->qp, o, &in, 1), STATUS_SUCCESS);
    assert_int_equal(c->qp->Dispatch->NdkSend(c->qp, o, &out, 1, 0), STATUS_SUCCESS);
    assert_int_equal(queue_next(&s->receive).Status, STATUS_SUCCESS);
    assert_int_equal(queue_next(&c->initiator).Status, STATUS_SUCCESS);
    assert_true(check(o->server.data, SIZE, seed));
}

static void fixture_open(struct fixture *f)
{
    one_open(&f->good);
    one_open(&f->bad);
    expect_alive(&f->good);
    expect_alive(&f->bad);
}

static void fixture_close(struct fixture *f)
{
    expect_alive(&f->good);
    assert_int_equal(atomic_load(&f->good.pair.client.disconnects), 0);
    assert_int_equal(atomic_load(&f->good.pair.server.disconnects), 0);
    one_close(&f->bad);
    expect_alive(&f->good);
    one_close(&f->good);
}

/* The event comes, once, and its reason has both words. */
static void expect_event(struct end *end, const char *source, const char *code)
{
    char text[256];

    if (!wait_event(&end->disconnected, WAIT_S * 1000))
        test_fail("no disconnect event");
    assert_int_equal(atomic_load(&end->disconnects), 1);
    softndk_reason_text(end->reason, text, sizeof text);
    if (!strstr(text, source) || !strstr(text, code))
        test_fail("the reason is \"%s\", not \"%s ... %s\"", text, source, code);
}

static void post_receive(struct end *end, const struct memory *memory, ULONG length, void *context)
{
    NDK_SGE sge = memory_sge(memory, 0, length);

    assert_int_equal(end->qp->Dispatch->NdkReceive(end->qp, context, &sge, 1), STATUS_SUCCESS);
}

static void expect_result(struct queue *queue, void *context, NTSTATUS status)
{
    NDK_RESULT_EX result = queue_next(queue);

    assert_ptr_equal(result.RequestContext, context);
    if (result.Status != status)
        test_fail("a request ended %s, not %s", softndk_status_name(result.Status),
                  softndk_status_name(status));
}

/* Nothing works any more at this end; what it had posted comes back. */
static void expect_over(struct end *end)
{
    NDK_RESULT_EX result;
    struct wait w;

    assert_int_equal(end->qp->Dispatch->NdkSend(end->qp, end, NULL, 0, 0),
                     STATUS_CONNECTION_INVALID);
    assert_int_equal(end->qp->Dispatch->NdkWrite(end->qp, end, NULL, 0, 0, 0, NDK_OP_FLAG_DEFER),
                     STATUS_CONNECTION_INVALID);
    assert_int_equal(end->qp->Dispatch->NdkRead(end->qp, end, NULL, 0, 0, 0, 0),
                     STATUS_CONNECTION_INVALID);
    assert_int_equal(end->qp->Dispatch->NdkReceive(end->qp, &w, NULL, 0), STATUS_SUCCESS);
    expect_result(&end->receive, &w, STATUS_CANCELLED);
    assert_false(queue_try(&end->initiator, &result, 1));
    wait_init(&w); /* benign */
    assert_int_equal(
        wait_end(&w, end->connector->Dispatch->NdkDisconnect(end->connector, wait_request, &w)),
        STATUS_SUCCESS);
}

/* ---- Sends ---------------------------------------------------------------------------------- */

static void send_without_receive(void **state)
{
    struct fixture f;
    struct end *c = &f.bad.pair.client, *s = &f.bad.pair.server;

    (void)state;
    fixture_open(&f);
    post_receive(c, &f.bad.client, 64, (void *)1);
    post_receive(c, &f.bad.client, 64, (void *)2);
    assert_int_equal(c->qp->Dispatch->NdkSend(c->qp, &f, NULL, 0, 0), STATUS_SUCCESS);
    expect_result(&c->initiator, &f, STATUS_SUCCESS); /* it went out: all that "local" promises */
    expect_event(s, "Terminate sent", "(1/2/02)");
    expect_event(c, "Terminate received", "(1/2/02)");
    expect_result(&c->receive, (void *)1, STATUS_CANCELLED);
    expect_result(&c->receive, (void *)2, STATUS_CANCELLED);
    expect_over(c);
    expect_over(s);
    fixture_close(&f);
}

/* A Read behind the Send that does not arrive: it cannot succeed any more. */
static void later_requests_fail(void **state)
{
    struct fixture f;
    struct end *c = &f.bad.pair.client, *s = &f.bad.pair.server;
    NTSTATUS first;

    (void)state;
    fixture_open(&f);
    assert_int_equal(c->qp->Dispatch->NdkSend(c->qp, (void *)1, NULL, 0, NDK_OP_FLAG_DEFER),
                     STATUS_SUCCESS);
    for (uintptr_t i = 2; i < 5; i++) {
        NDK_SGE sge = memory_sge(&f.bad.client, 0, 16);

        assert_int_equal(c->qp->Dispatch->NdkRead(
                             c->qp, (void *)i, &sge, 1, (UINT64)(uintptr_t)f.bad.server.data,
                             f.bad.server.remote, i == 4 ? 0 : NDK_OP_FLAG_DEFER),
                         STATUS_SUCCESS);
    }
    expect_result(&c->initiator, (void *)1, STATUS_SUCCESS);
    {
        NDK_RESULT_EX result = queue_next(&c->initiator);

        first = result.Status;
        assert_ptr_equal(result.RequestContext, (void *)2);
    }
    assert_int_equal(first, STATUS_IO_TIMEOUT); /* what a Send without a receive is told as */
    expect_result(&c->initiator, (void *)3, STATUS_CANCELLED);
    expect_result(&c->initiator, (void *)4, STATUS_CANCELLED);
    expect_event(c, "Terminate received", "(1/2/02)");
    expect_event(s, "Terminate sent", "(1/2/02)");
    expect_over(c);
    expect_over(s);
    fixture_close(&f);
}

static void send_longer_than_receive(void **state)
{
    static const ULONG lengths[] = {101, SIZE};
    struct fixture f;

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct end *c = &f.bad.pair.client, *s = &f.bad.pair.server;
        NDK_SGE out;

        fixture_open(&f);
        out = memory_sge(&f.bad.client, 0, lengths[i]);
        memset(f.bad.server.data, 0xee, SIZE);
        post_receive(s, &f.bad.server, 100, (void *)1);
        post_receive(s, &f.bad.server, SIZE, (void *)2);
        assert_int_equal(c->qp->Dispatch->NdkSend(c->qp, &f, &out, 1, 0), STATUS_SUCCESS);
        expect_result(&c->initiator, &f, STATUS_SUCCESS);
        expect_result(&s->receive, (void *)1, STATUS_BUFFER_OVERFLOW);
        expect_result(&s->receive, (void *)2, STATUS_CANCELLED);
        assert_int_equal(f.bad.server.data[100], 0xee);
        expect_event(s, "Terminate sent", "(1/2/05)");
        expect_event(c, "Terminate received", "(1/2/05)");
        expect_over(c);
        expect_over(s);
        fixture_close(&f);
    }
}

/* ---- what the peer does not give ------------------------------------------------------------ */

struct remote {
    const char *what;
    int64_t offset; /* from the start of the region */
    ULONG length;
    UINT32 token_change; /* exclusive-or */
    bool no_rights;
    const char *write_code, *read_code;
    NTSTATUS read_status;
};

static const struct remote remotes[] = {
    {"bad key", 0, 16, 1, false, "(1/1/00)", "(0/1/00)", STATUS_ACCESS_VIOLATION},
    {"bad index", 0, 16, 0x40000000, false, "(1/1/00)", "(0/1/00)", STATUS_ACCESS_VIOLATION},
    {"one behind", SIZE - 15, 16, 0, false, "(1/1/01)", "(0/1/01)", STATUS_REMOTE_RESOURCES},
    {"one before", -1, 16, 0, false, "(1/1/01)", "(0/1/01)", STATUS_REMOTE_RESOURCES},
    {"far away", 1 << 30, 1, 0, false, "(1/1/01)", "(0/1/01)", STATUS_REMOTE_RESOURCES},
    {"no right", 0, 16, 0, true, "(1/1/00)", "(0/1/02)", STATUS_ACCESS_VIOLATION},
};

/* The memory a row speaks of, at the server. */
static void remote_memory(struct fixture *f, const struct remote *r)
{
    if (r->no_rights) {
        free_memory(&f->bad.server);
        make_memory(f->bad.pair.server.pd, SIZE, NDK_MR_FLAG_ALLOW_LOCAL_WRITE, &f->bad.server);
    }
    memset(f->bad.server.data, 0xee, SIZE);
    post_receive(&f->bad.pair.server, &f->bad.server, SIZE, (void *)1);
}

static UINT64 remote_address(const struct fixture *f, const struct remote *r)
{
    return (UINT64)(uintptr_t)f->bad.server.data + (UINT64)r->offset;
}

static void wrong_writes(void **state)
{
    struct fixture f;
    struct end *c = &f.bad.pair.client, *s = &f.bad.pair.server;

    (void)state;
    for (size_t i = 0; i < sizeof remotes / sizeof remotes[0]; i++) {
        const struct remote *r = &remotes[i];
        NDK_SGE sge;

        fixture_open(&f);
        remote_memory(&f, r);
        sge = memory_sge(&f.bad.client, 0, r->length);
        assert_int_equal(c->qp->Dispatch->NdkWrite(c->qp, &f, &sge, 1, remote_address(&f, r),
                                                   f.bad.server.remote ^ r->token_change, 0),
                         STATUS_SUCCESS);
        expect_result(&c->initiator, &f, STATUS_SUCCESS);
        expect_event(s, "Terminate sent", r->write_code);
        expect_event(c, "Terminate received", r->write_code);
        expect_result(&s->receive, (void *)1, STATUS_CANCELLED);
        for (size_t n = 0; n < SIZE; n++)
            if (f.bad.server.data[n] != 0xee)
                test_fail("%s: octet %zu was written", r->what, n);
        expect_over(c);
        expect_over(s);
        fixture_close(&f);
    }
}

static void wrong_reads(void **state)
{
    struct fixture f;
    struct end *c = &f.bad.pair.client, *s = &f.bad.pair.server;

    (void)state;
    for (size_t i = 0; i < sizeof remotes / sizeof remotes[0]; i++) {
        const struct remote *r = &remotes[i];
        NDK_SGE sge;

        fixture_open(&f);
        remote_memory(&f, r);
        memset(f.bad.client.data, 0xaa, SIZE);
        sge = memory_sge(&f.bad.client, 0, r->length);
        assert_int_equal(c->qp->Dispatch->NdkRead(c->qp, (void *)1, &sge, 1, remote_address(&f, r),
                                                  f.bad.server.remote ^ r->token_change,
                                                  NDK_OP_FLAG_DEFER),
                         STATUS_SUCCESS);
        assert_int_equal(c->qp->Dispatch->NdkRead(c->qp, (void *)2, &sge, 1,
                                                  (UINT64)(uintptr_t)f.bad.server.data,
                                                  f.bad.server.remote, 0),
                         STATUS_SUCCESS);
        expect_result(&c->initiator, (void *)1, r->read_status);
        expect_result(&c->initiator, (void *)2, STATUS_CANCELLED);
        expect_event(s, "Terminate sent", r->read_code);
        expect_event(c, "Terminate received", r->read_code);
        expect_result(&s->receive, (void *)1, STATUS_CANCELLED);
        assert_int_equal(f.bad.client.data[0], 0xaa);
        expect_over(c);
        expect_over(s);
        fixture_close(&f);
    }
}

/* Good Reads before the bad one keep their octets and their success. */
static void good_reads_before(void **state)
{
    struct fixture f;
    struct end *c = &f.bad.pair.client, *s = &f.bad.pair.server;

    (void)state;
    fixture_open(&f);
    fill(f.bad.server.data, SIZE, 4);
    for (uintptr_t i = 0; i < 6; i++) {
        NDK_SGE sge = memory_sge(&f.bad.client, i * 1000, 1000);
        UINT64 from = (UINT64)(uintptr_t)f.bad.server.data + i * 1000 + (i == 4 ? SIZE : 0);

        assert_int_equal(c->qp->Dispatch->NdkRead(c->qp, (void *)i, &sge, 1, from,
                                                  f.bad.server.remote,
                                                  i == 5 ? 0 : NDK_OP_FLAG_DEFER),
                         STATUS_SUCCESS);
    }
    for (uintptr_t i = 0; i < 4; i++)
        expect_result(&c->initiator, (void *)i, STATUS_SUCCESS);
    assert_true(check(f.bad.client.data, 4000, 4));
    expect_result(&c->initiator, (void *)4, STATUS_REMOTE_RESOURCES);
    expect_result(&c->initiator, (void *)5, STATUS_CANCELLED);
    expect_event(c, "Terminate received", "(0/1/01)");
    expect_event(s, "Terminate sent", "(0/1/01)");
    fixture_close(&f);
}

/* ---- what is wrong here --------------------------------------------------------------------- */

/* A token of nobody in a Send's SGE; in a receive's; a receive in memory that may not be written.
 */
static void wrong_locally(void **state)
{
    struct fixture f;

    (void)state;
    for (int i = 0; i < 3; i++) {
        struct end *c = &f.bad.pair.client, *s = &f.bad.pair.server;
        struct memory fixed;
        NDK_SGE out, in;

        fixture_open(&f);
        make_memory(s->pd, SIZE, 0, &fixed);
        out = memory_sge(&f.bad.client, 0, 100);
        in = memory_sge(i == 2 ? &fixed : &f.bad.server, 0, 100);
        if (i == 0)
            out.MemoryRegionToken ^= 1;
        if (i == 1)
            in.MemoryRegionToken ^= 1;
        assert_int_equal(s->qp->Dispatch->NdkReceive(s->qp, (void *)1, &in, 1), STATUS_SUCCESS);
        post_receive(s, &f.bad.server, 100, (void *)2);
        assert_int_equal(c->qp->Dispatch->NdkSend(c->qp, (void *)3, &out, 1, 0), STATUS_SUCCESS);
        expect_result(&c->initiator, (void *)3, i ? STATUS_SUCCESS : STATUS_ACCESS_VIOLATION);
        expect_result(&s->receive, (void *)1, i ? STATUS_ACCESS_VIOLATION : STATUS_CANCELLED);
        expect_result(&s->receive, (void *)2, STATUS_CANCELLED);
        expect_event(i ? s : c, "Terminate sent", "");
        expect_event(i ? c : s, "Terminate received", "");
        expect_over(c);
        expect_over(s);
        free_memory(&fixed);
        fixture_close(&f);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(send_without_receive),
        cmocka_unit_test(later_requests_fail),
        cmocka_unit_test(send_longer_than_receive),
        cmocka_unit_test(wrong_writes),
        cmocka_unit_test(wrong_reads),
        cmocka_unit_test(good_reads_before),
        cmocka_unit_test(wrong_locally),
    };
    int failed = 0;

    for (size_t i = 0; i < sizeof option_sets / sizeof option_sets[0] && !failed; i++) {
        options = option_sets[i];
        softndk_set_pend(i ? "random:51" : "never");
        failed += cmocka_run_group_tests_name(options, tests, NULL, NULL);
    }
    return failed;
}
