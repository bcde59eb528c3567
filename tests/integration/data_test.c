// SPDX-License-Identifier: MIT
/*
 * Octets between two connected ends: Send, Write, Read, inline, zero length, many sizes, DEFER
 * chains, several SGEs; CRC on and off; IPv4 and IPv6. What arrives is compared octet by octet.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "ends.h"

#define BUFFER (4u << 20)
#define ALL_RIGHTS                                                                                 \
    (NDK_MR_FLAG_ALLOW_LOCAL_WRITE | NDK_MR_FLAG_ALLOW_REMOTE_READ |                               \
     NDK_MR_FLAG_ALLOW_REMOTE_WRITE | NDK_MR_FLAG_RDMA_READ_SINK)

struct fixture {
    struct pair pair;
    struct memory client, server;
};

static void fixture_open(struct fixture *f, const char *address, const char *options)
{
    memset(f, 0, sizeof *f);
    pair_open(&f->pair, address, options, options);
    make_memory(f->pair.client.pd, BUFFER, ALL_RIGHTS, &f->client);
    make_memory(f->pair.server.pd, BUFFER, ALL_RIGHTS, &f->server);
}

static void fixture_close(struct fixture *f)
{
    free_memory(&f->client);
    free_memory(&f->server);
    pair_close(&f->pair);
}

static void post_receive(struct end *end, const struct memory *memory, ULONG length, void *context)
{
    NDK_SGE sge = memory_sge(memory, 0, length);

    assert_int_equal(end->qp->Dispatch->NdkReceive(end->qp, context, &sge, 1), STATUS_SUCCESS);
}

static void expect_done(struct queue *queue, void *context, NDK_OPERATION_TYPE type)
{
    NDK_RESULT_EX result = queue_next(queue);

    assert_int_equal(result.Status, STATUS_SUCCESS);
    assert_ptr_equal(result.RequestContext, context);
    assert_int_equal(result.Type, type);
}

static void send_one(struct fixture *f, ULONG length, ULONG flags)
{
    struct end *c = &f->pair.client, *s = &f->pair.server;
    NDK_SGE sge = memory_sge(&f->client, 0, length);
    NDK_RESULT_EX result;

    fill(f->client.data, length, length + 1);
    memset(f->server.data, 0xee, (size_t)length + 1);
    post_receive(s, &f->server, BUFFER, &f->server);
    assert_int_equal(c->qp->Dispatch->NdkSend(c->qp, &sge, &sge, 1, flags), STATUS_SUCCESS);
    result = queue_next(&s->receive);
    assert_int_equal(result.Status, STATUS_SUCCESS);
    assert_int_equal(result.BytesTransferred, length);
    assert_int_equal(result.Type, NdkOperationTypeReceive);
    assert_ptr_equal(result.RequestContext, &f->server);
    assert_ptr_equal(result.QPContext, s);
    assert_true(check(f->server.data, length, length + 1));
    assert_int_equal(f->server.data[length], 0xee);
    expect_done(&c->initiator, &sge, NdkOperationTypeSend);
}

static void write_one(struct fixture *f, ULONG length)
{
    struct end *c = &f->pair.client, *s = &f->pair.server;
    NDK_SGE sge = memory_sge(&f->client, 0, length);

    fill(f->client.data, length, length + 2);
    memset(f->server.data, 0xee, (size_t)length + 4);
    assert_int_equal(c->qp->Dispatch->NdkWrite(c->qp, &sge, &sge, 1,
                                               (UINT64)(uintptr_t)f->server.data + 3,
                                               f->server.remote, 0),
                     STATUS_SUCCESS);
    expect_done(&c->initiator, &sge, NdkOperationTypeWrite);
    /* A Send behind the Write tells that it is placed. */
    post_receive(s, &f->client, 1, f);
    assert_int_equal(c->qp->Dispatch->NdkSend(c->qp, f, NULL, 0, 0), STATUS_SUCCESS);
    expect_done(&s->receive, f, NdkOperationTypeReceive);
    expect_done(&c->initiator, f, NdkOperationTypeSend);
    assert_int_equal(f->server.data[2], 0xee);
    assert_true(check(f->server.data + 3, length, length + 2));
    assert_int_equal(f->server.data[3 + length], 0xee);
}

static void read_one(struct fixture *f, ULONG length)
{
    struct end *c = &f->pair.client;
    NDK_SGE sge = memory_sge(&f->client, 5, length);

    fill(f->server.data + 7, length, length + 3);
    memset(f->client.data, 0xee, (size_t)length + 6);
    assert_int_equal(c->qp->Dispatch->NdkRead(c->qp, &sge, &sge, 1,
                                              (UINT64)(uintptr_t)f->server.data + 7,
                                              f->server.remote, 0),
                     STATUS_SUCCESS);
    expect_done(&c->initiator, &sge, NdkOperationTypeRead);
    assert_int_equal(f->client.data[4], 0xee);
    assert_true(check(f->client.data + 5, length, length + 3));
    assert_int_equal(f->client.data[5 + length], 0xee);
}

static const ULONG sizes[] = {0,    1,     3,     4,     63,     64,     1408,    1442,
                              4096, 65473, 65474, 65536, 131071, 300000, 1048576, 3000001};

static void all_sizes(const char *address, const char *options)
{
    struct fixture f;

    fixture_open(&f, address, options);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        send_one(&f, sizes[i], 0);
        write_one(&f, sizes[i]);
        read_one(&f, sizes[i]);
    }
    fixture_close(&f);
}

static void sizes_ipv4(void **state)
{
    (void)state;
    all_sizes("127.0.0.1", NULL);
}

static void sizes_no_crc(void **state)
{
    (void)state;
    all_sizes("127.0.0.1", "crc=0");
}

static void sizes_small_fpdus(void **state)
{
    (void)state;
    all_sizes("127.0.0.1", "fpdu_max=1442");
}

static void sizes_small_buffers(void **state)
{
    (void)state;
    all_sizes("127.0.0.1", "tcp_buffer=131072");
}

static void sizes_ipv6(void **state)
{
    (void)state;
    if (!have_ipv6())
        skip();
    all_sizes("::1", NULL);
}

static void inline_send(void **state)
{
    struct fixture f;
    struct end *c, *s;
    NDK_SGE sges[8];

    (void)state;
    fixture_open(&f, "127.0.0.1", NULL);
    c = &f.pair.client;
    s = &f.pair.server;
    fill(f.client.data, 64, 9);
    /* More elements than the QP allows: an inline request is not limited by them. */
    for (int i = 0; i < 8; i++) {
        memset(&sges[i], 0, sizeof sges[i]);
        sges[i].VirtualAddress = f.client.data + 8 * i;
        sges[i].Length = 8;
        sges[i].MemoryRegionToken = 0xdead;
    }
    post_receive(s, &f.server, 64, &f);
    assert_int_equal(
        c->qp->Dispatch->NdkSend(c->qp, &f, sges, 8, NDK_OP_FLAG_INLINE | NDK_OP_FLAG_DEFER),
        STATUS_SUCCESS);
    memset(f.client.data, 0, 64); /* the buffer is ours again already */
    post_receive(s, &f.server, 0, &f);
    assert_int_equal(c->qp->Dispatch->NdkSend(c->qp, &f, NULL, 0, 0), STATUS_SUCCESS);
    expect_done(&s->receive, &f, NdkOperationTypeReceive);
    assert_true(check(f.server.data, 64, 9));
    sges[0].Length = 65;
    assert_int_equal(c->qp->Dispatch->NdkSend(c->qp, &f, sges, 1, NDK_OP_FLAG_INLINE),
                     STATUS_BUFFER_OVERFLOW);
    fixture_close(&f);
}

static void scatter_gather(void **state)
{
    struct fixture f;
    struct end *c, *s;
    NDK_SGE out[4], in[3];
    NDK_RESULT_EX result;

    (void)state;
    fixture_open(&f, "127.0.0.1", NULL);
    c = &f.pair.client;
    s = &f.pair.server;
    fill(f.client.data, 300000, 4);
    out[0] = memory_sge(&f.client, 0, 1);
    out[1] = memory_sge(&f.client, 1, 99999);
    out[2] = memory_sge(&f.client, 100000, 0);
    out[3] = memory_sge(&f.client, 100000, 200000);
    in[0] = memory_sge(&f.server, 0, 70001);
    in[1] = memory_sge(&f.server, 70001, 7);
    in[2] = memory_sge(&f.server, 70008, 300000);
    assert_int_equal(s->qp->Dispatch->NdkReceive(s->qp, &f, in, 3), STATUS_SUCCESS);
    assert_int_equal(c->qp->Dispatch->NdkSend(c->qp, &f, out, 4, 0), STATUS_SUCCESS);
    result = queue_next(&s->receive);
    assert_int_equal(result.Status, STATUS_SUCCESS);
    assert_int_equal(result.BytesTransferred, 300000);
    assert_true(check(f.server.data, 300000, 4));
    fixture_close(&f);
}

/* Both directions at once, deferred in chains; completions come in posting order. */
static void chains_both_ways(void **state)
{
    struct fixture f;
    struct end *ends[2];

    (void)state;
    fixture_open(&f, "127.0.0.1", NULL);
    ends[0] = &f.pair.client;
    ends[1] = &f.pair.server;
    for (int round = 0; round < 50; round++) {
        for (int e = 0; e < 2; e++)
            for (uintptr_t i = 0; i < 32; i++)
                post_receive(ends[e], e ? &f.server : &f.client, 64, (void *)i);
        for (int e = 0; e < 2; e++)
            for (uintptr_t i = 0; i < 32; i++) {
                NDK_SGE sge = memory_sge(e ? &f.server : &f.client, 4096 * (e + 1) + i * 64, 64);

                assert_int_equal(ends[e]->qp->Dispatch->NdkSend(ends[e]->qp, (void *)i, &sge, 1,
                                                                i == 31 ? 0 : NDK_OP_FLAG_DEFER),
                                 STATUS_SUCCESS);
            }
        for (int e = 0; e < 2; e++)
            for (uintptr_t i = 0; i < 32; i++) {
                expect_done(&ends[e]->receive, (void *)i, NdkOperationTypeReceive);
                expect_done(&ends[e]->initiator, (void *)i, NdkOperationTypeSend);
            }
    }
    fixture_close(&f);
}

/* More Reads than the limit, a fenced Send behind them: order and data hold. */
static void reads_beyond_the_limit(void **state)
{
    struct fixture f;
    struct end *c, *s;

    (void)state;
    fixture_open(&f, "127.0.0.1", "max_outbound_reads=2,max_inbound_reads=2");
    c = &f.pair.client;
    s = &f.pair.server;
    fill(f.server.data, 40 * 5000, 77);
    post_receive(s, &f.client, 1, &f);
    for (uintptr_t i = 0; i < 40; i++) {
        NDK_SGE sge = memory_sge(&f.client, i * 5000, 5000);

        assert_int_equal(c->qp->Dispatch->NdkRead(c->qp, (void *)i, &sge, 1,
                                                  (UINT64)(uintptr_t)f.server.data + i * 5000,
                                                  f.server.remote, i == 39 ? 0 : NDK_OP_FLAG_DEFER),
                         STATUS_SUCCESS);
    }
    assert_int_equal(c->qp->Dispatch->NdkSend(c->qp, &f, NULL, 0, NDK_OP_FLAG_READ_FENCE),
                     STATUS_SUCCESS);
    expect_done(&s->receive, &f, NdkOperationTypeReceive);
    /* The Send was fenced: when it is here, every Read is placed. */
    assert_true(check(f.client.data, 40 * 5000, 77));
    for (uintptr_t i = 0; i < 40; i++)
        expect_done(&c->initiator, (void *)i, NdkOperationTypeRead);
    expect_done(&c->initiator, &f, NdkOperationTypeSend);
    fixture_close(&f);
}

static void silent_success(void **state)
{
    struct fixture f;
    struct end *c, *s;

    (void)state;
    fixture_open(&f, "127.0.0.1", NULL);
    c = &f.pair.client;
    s = &f.pair.server;
    for (int round = 0; round < 10; round++) {
        for (uintptr_t i = 0; i < 32; i++) {
            post_receive(s, &f.server, 64, (void *)i);
            assert_int_equal(c->qp->Dispatch->NdkSend(
                                 c->qp, (void *)i, NULL, 0,
                                 i == 31 ? 0 : NDK_OP_FLAG_SILENT_SUCCESS | NDK_OP_FLAG_DEFER),
                             STATUS_SUCCESS);
        }
        expect_done(&c->initiator, (void *)31, NdkOperationTypeSend);
        for (uintptr_t i = 0; i < 32; i++)
            expect_done(&s->receive, (void *)i, NdkOperationTypeReceive);
    }
    fixture_close(&f);
}

/* A chain that breaks off: what was deferred before the refused request is still sent. */
static void defer_then_refusal(void **state)
{
    struct fixture f;
    struct end *c, *s;
    NDK_SGE sges[5];

    (void)state;
    fixture_open(&f, "127.0.0.1", NULL);
    c = &f.pair.client;
    s = &f.pair.server;
    for (int i = 0; i < 5; i++)
        sges[i] = memory_sge(&f.client, 0, 8);
    post_receive(s, &f.server, 64, &f);
    assert_int_equal(c->qp->Dispatch->NdkSend(c->qp, &f, sges, 1, NDK_OP_FLAG_DEFER),
                     STATUS_SUCCESS);
    assert_int_equal(c->qp->Dispatch->NdkSend(c->qp, &sges, sges, 5, 0), STATUS_DATA_OVERRUN);
    expect_done(&s->receive, &f, NdkOperationTypeReceive);
    expect_done(&c->initiator, &f, NdkOperationTypeSend);
    fixture_close(&f);
}

/* A completion in error satisfies an arm for solicited events; an ordinary one does not. */
static void error_satisfies_solicited(void **state)
{
    struct fixture f;
    struct end *c;
    NDK_SGE sge;
    NDK_RESULT_EX result;
    char text[512];

    (void)state;
    fixture_open(&f, "127.0.0.1", NULL);
    c = &f.pair.client;
    c->initiator.cq->Dispatch->NdkArmCq(c->initiator.cq, NDK_CQ_NOTIFY_SOLICITED);
    post_receive(&f.pair.server, &f.server, 64, &f);
    assert_int_equal(c->qp->Dispatch->NdkSend(c->qp, &f, NULL, 0, 0), STATUS_SUCCESS);
    wait_until(c->initiator.cq->Dispatch->NdkGetCqResultsEx(c->initiator.cq, &result, 1) == 1,
               "the good Send");
    assert_int_equal(atomic_load(&c->initiator.notified), 0);
    sge = memory_sge(&f.client, 0, 8);
    sge.MemoryRegionToken ^= 1; /* stale */
    assert_int_equal(c->qp->Dispatch->NdkSend(c->qp, &sge, &sge, 1, 0), STATUS_SUCCESS);
    wait_until(atomic_load(&c->initiator.notified) == 1, "the notification of an error");
    result = queue_next(&c->initiator);
    assert_int_equal(result.Status, STATUS_ACCESS_VIOLATION);
    assert_ptr_equal(result.RequestContext, &sge);
    /* The status alone does not tell the mistake: the reason at the QP does. */
    softndk_reason(&c->qp->Header, text, sizeof text);
    assert_non_null(strstr(text, "token 0x"));
    assert_non_null(strstr(text, "names nothing now"));
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_ipv4),         cmocka_unit_test(sizes_no_crc),
        cmocka_unit_test(sizes_small_fpdus),  cmocka_unit_test(sizes_small_buffers),
        cmocka_unit_test(sizes_ipv6),         cmocka_unit_test(inline_send),
        cmocka_unit_test(scatter_gather),     cmocka_unit_test(chains_both_ways),
        cmocka_unit_test(silent_success),     cmocka_unit_test(reads_beyond_the_limit),
        cmocka_unit_test(defer_then_refusal), cmocka_unit_test(error_satisfies_solicited),
    };

    return cmocka_run_group_tests_name("data", tests, NULL, NULL);
}
