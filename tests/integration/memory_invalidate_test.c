// SPDX-License-Identifier: MIT
/*
 * Invalidation by others than NdkInvalidate, and its rule: the peer's Send with Invalidate, what of
 * it is refused, a Read that invalidates its sink, and that no octet of the peer enters a region
 * once its invalidation or deregistration has completed, however it streams.
 */
#include <pthread.h>
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "regions.h"

#define PAGE    4096u
#define SIZE    (1u << 20)
#define OPTIONS "completion=placed"
#define CTX(n)  ((void *)(uintptr_t)(n))

static NTSTATUS send_invalidate(struct end *end, const struct memory *from, ULONG length,
                                ULONG flags, UINT32 token, void *context)
{
    NDK_SGE sge = memory_sge(from, 0, length);

    return end->qp->Dispatch->NdkSendAndInvalidate(end->qp, context, &sge, 1, flags, token);
}

static void write_is_refused(struct bed *bed, UINT64 to, UINT32 token)
{
    struct end *c = &bed->pair.client, *s = &bed->pair.server;

    assert_int_equal(post_write(c, &bed->client, 8, to, token, 0, CTX(9)), STATUS_SUCCESS);
    expect_completion(&c->initiator, "write with a dead token", CTX(9), NdkOperationTypeWrite,
                      STATUS_ACCESS_VIOLATION);
    expect_event(c, "client, dead token", REASON_TERMINATE_RECEIVED, IWARP_ERR_TAG_STAG);
    expect_event(s, "server, dead token", REASON_TERMINATE_SENT, IWARP_ERR_TAG_STAG);
}

/* ---- by the peer's Send --------------------------------------------------------------------- */

static void by_the_peer(void **state)
{
    struct bed bed;
    struct end *c, *s;
    struct region r;
    UINT32 older;

    (void)state;
    bed_open(&bed, OPTIONS, SIZE, ALL_RIGHTS);
    c = &bed.pair.client;
    s = &bed.pair.server;
    region_open(s, 100, 4 * PAGE, 0, TRUE, &r);
    for (unsigned round = 0; round < 20; round++) {
        NDK_RESULT_EX result;
        ULONG size = round % 2 ? 300000 : 11; /* several segments, or one */

        region_register(&r, 100, REMOTE_BOTH);
        fill(bed.client.data, size, round);
        assert_int_equal(post_write(c, &bed.client, 4 * PAGE, 100, r.remote, 0, CTX(1)),
                         STATUS_SUCCESS);
        post_receive(s, &bed.server, size, CTX(2));
        assert_int_equal(send_invalidate(c, &bed.client, size,
                                         round & 2 ? NDK_OP_FLAG_SEND_AND_SOLICIT_EVENT : 0,
                                         r.remote, CTX(3)),
                         STATUS_SUCCESS);
        result = queue_next(&s->receive);
        assert_int_equal(result.Status, STATUS_SUCCESS);
        assert_int_equal(result.Type & 0xffff, NdkOperationTypeReceiveAndInvalidate & 0xffff);
        assert_int_equal(result.TypeSpecificCompletionOutput, r.remote);
        assert_int_equal(result.BytesTransferred, size);
        assert_true(check(bed.server.data, size, round));
        expect_completion(&c->initiator, "write", CTX(1), NdkOperationTypeWrite, STATUS_SUCCESS);
        expect_completion(&c->initiator, "send", CTX(3), NdkOperationTypeSend, STATUS_SUCCESS);
        /* It is invalid already: a new registration succeeds at the top of the loop. */
    }
    /* What was invalidated stays so, whatever the region is registered for anew. */
    older = r.remote;
    region_register(&r, 100, REMOTE_BOTH);
    write_is_refused(&bed, 100, older);
    region_close(&r);
    bed_close(&bed);
}

/* The older call tells of the receive, not of the invalidation. */
static void by_the_peer_plain_results(void **state)
{
    struct bed bed;
    struct end *c, *s;
    struct region r;
    NDK_RESULT result;

    (void)state;
    bed_open(&bed, OPTIONS, SIZE, ALL_RIGHTS);
    c = &bed.pair.client;
    s = &bed.pair.server;
    region_open(s, 0, PAGE, 0, TRUE, &r);
    region_register(&r, 0, NDK_OP_FLAG_ALLOW_REMOTE_READ);
    post_receive(s, &bed.server, 64, CTX(2));
    assert_int_equal(send_invalidate(c, &bed.client, 64, 0, r.remote, CTX(3)), STATUS_SUCCESS);
    memset(&result, 0x55, sizeof result);
    wait_until(s->receive.cq->Dispatch->NdkGetCqResults(s->receive.cq, &result, 1) == 1,
               "the receive");
    assert_int_equal(result.Status, STATUS_SUCCESS);
    assert_int_equal(result.BytesTransferred, 64);
    assert_ptr_equal(result.QPContext, s);
    assert_ptr_equal(result.RequestContext, CTX(2));
    expect_completion(&c->initiator, "send", CTX(3), NdkOperationTypeSend, STATUS_SUCCESS);
    region_register(&r, 0, NDK_OP_FLAG_ALLOW_REMOTE_READ);
    region_close(&r);
    bed_close(&bed);
}

enum bad_token {
    BAD_UNKNOWN,
    BAD_ZERO,
    BAD_REGISTERED,  /* of a normal region */
    BAD_LOCAL,       /* the region's local token */
    BAD_NO_REMOTE,   /* valid, but grants the peer nothing */
    BAD_INVALIDATED, /* invalid already */
    BAD_OLDER,       /* of the registration before */
    BAD_PRIVILEGED,
    BAD_FOREIGN, /* another protection domain */
    BAD_TOKENS
};

static void a_bad_token(enum bad_token bad)
{
    struct bed bed;
    struct end *c, *s, foreign;
    struct region r, other;
    UINT32 tokens[BAD_TOKENS] = {[BAD_UNKNOWN] = 0x00abcd00};

    bed_open(&bed, OPTIONS, PAGE, ALL_RIGHTS);
    c = &bed.pair.client;
    s = &bed.pair.server;
    foreign = *s;
    foreign.pd = make_pd(s->adapter);
    region_open(s, 0, PAGE, 0, TRUE, &r);
    region_register(&r, 0, REMOTE_BOTH);
    tokens[BAD_OLDER] = r.remote;
    region_invalidate(&r);
    region_register(&r, 0, bad == BAD_NO_REMOTE ? 0 : REMOTE_BOTH);
    if (bad == BAD_INVALIDATED)
        region_invalidate(&r);
    tokens[BAD_REGISTERED] = bed.server.remote;
    tokens[BAD_LOCAL] = r.local;
    tokens[BAD_NO_REMOTE] = tokens[BAD_INVALIDATED] = r.remote;
    s->pd->Dispatch->NdkGetPrivilegedMemoryRegionToken(s->pd, &tokens[BAD_PRIVILEGED]);
    region_open(&foreign, 0, PAGE, 0, TRUE, &other); /* never filled: its QP is of the other PD */
    tokens[BAD_FOREIGN] = other.mr->Dispatch->NdkGetRemoteTokenFromMr(other.mr);
    post_receive(s, &bed.server, 64, CTX(1));
    post_receive(s, &bed.server, 64, CTX(2));
    assert_int_equal(send_invalidate(c, &bed.client, 8, 0, tokens[bad], CTX(3)), STATUS_SUCCESS);
    expect_completion(&s->receive, "bad token", CTX(1), NdkOperationTypeReceive,
                      STATUS_ACCESS_VIOLATION);
    expect_completion(&s->receive, "bad token", CTX(2), NdkOperationTypeReceive, STATUS_CANCELLED);
    expect_completion(&c->initiator, "bad token", CTX(3), NdkOperationTypeSend,
                      STATUS_ACCESS_VIOLATION);
    expect_event(s, "bad token, server", REASON_TERMINATE_SENT, IWARP_ERR_PROT_INVALIDATE);
    expect_event(c, "bad token, client", REASON_TERMINATE_RECEIVED, IWARP_ERR_PROT_INVALIDATE);
    region_close(&r);
    region_close(&other);
    CLOSE(foreign.pd, NdkClosePd);
    bed_close(&bed);
}

static void bad_tokens(void **state)
{
    (void)state;
    for (int bad = 0; bad < BAD_TOKENS; bad++)
        a_bad_token((enum bad_token)bad);
}

/* ---- by a Read of one's own ----------------------------------------------------------------- */

static NTSTATUS read_invalidate(struct bed *bed, const NDK_SGE *sges, ULONG count, void *context)
{
    struct end *c = &bed->pair.client;

    return c->qp->Dispatch->NdkRead(c->qp, context, sges, count,
                                    (UINT64)(uintptr_t)bed->server.data, bed->server.remote,
                                    NDK_OP_FLAG_RDMA_READ_LOCAL_INVALIDATE);
}

static void by_a_read(void **state)
{
    struct bed bed;
    struct end *c;
    struct region a, b;
    NDK_SGE sges[2];
    const ULONG rights = NDK_OP_FLAG_ALLOW_LOCAL_WRITE | NDK_OP_FLAG_RDMA_READ_SINK;

    (void)state;
    bed_open(&bed, OPTIONS, SIZE, ALL_RIGHTS);
    c = &bed.pair.client;
    region_open(c, 0, 100 * PAGE, 0, TRUE, &a);
    region_open(c, 9, 10 * PAGE, 0, TRUE, &b);
    region_register(&b, 9, rights);
    for (unsigned round = 0; round < 20; round++) {
        region_register(&a, 0x1000, rights);
        fill(bed.server.data, 110 * PAGE, round);
        sges[0] = region_sge(&a, 0, 100 * PAGE);
        sges[1] = region_sge(&b, 0, 10 * PAGE);
        assert_int_equal(read_invalidate(&bed, sges, 2, CTX(1)), STATUS_SUCCESS);
        expect_completion(&c->initiator, "read", CTX(1), NdkOperationTypeRead, STATUS_SUCCESS);
        assert_true(check(a.data, a.size, round));
        assert_memory_equal(b.data, bed.server.data + a.size, b.size);
        /* a is invalid, b is not. */
    }
    region_invalidate(&b);
    assert_int_equal(c->qp->Dispatch->NdkInvalidate(c->qp, CTX(2), &a.mr->Header, 0),
                     STATUS_SUCCESS);
    expect_completion(&c->initiator, "invalid already", CTX(2), NdkOperationTypeInvalidate,
                      STATUS_INVALID_DEVICE_REQUEST);
    region_close(&a);
    region_close(&b);
    bed_close(&bed);
}

/* A sink that cannot be invalidated: the Read fails, and with it the connection. */
static void by_a_read_in_vain(void **state)
{
    struct bed bed;
    struct end *c, *s;
    NDK_SGE sge;

    (void)state;
    bed_open(&bed, OPTIONS, PAGE, ALL_RIGHTS);
    c = &bed.pair.client;
    s = &bed.pair.server;
    sge = memory_sge(&bed.client, 0, PAGE);
    assert_int_equal(read_invalidate(&bed, &sge, 1, CTX(1)), STATUS_SUCCESS);
    expect_completion(&c->initiator, "read", CTX(1), NdkOperationTypeRead,
                      STATUS_INVALID_DEVICE_REQUEST);
    expect_event(c, "client", REASON_TERMINATE_SENT, IWARP_ERR_RDMAP_LOCAL);
    expect_event(s, "server", REASON_TERMINATE_RECEIVED, IWARP_ERR_RDMAP_LOCAL);
    bed_close(&bed);
}

/* ---- while the peer streams ----------------------------------------------------------------- */

struct streamer {
    struct bed *bed;
    UINT64 to;
    UINT32 token;
    pthread_t thread;
    atomic_uint done; /* Writes that TCP has taken */
};

/* Writes without end until the connection breaks. */
static void *streamer_run(void *context)
{
    struct streamer *t = context;
    struct end *c = &t->bed->pair.client;
    unsigned posted = 0, done = 0;

    for (;;) {
        NDK_RESULT_EX result;

        if (posted - done < END_DEPTH / 2) {
            if (post_write(c, &t->bed->client, SIZE, t->to, t->token, 0, NULL) != STATUS_SUCCESS)
                break;
            posted++;
        }
        while (c->initiator.cq->Dispatch->NdkGetCqResultsEx(c->initiator.cq, &result, 1) == 1) {
            atomic_store(&t->done, ++done);
            if (result.Status != STATUS_SUCCESS)
                return NULL;
        }
    }
    return NULL;
}

static void end_of_access(struct bed *bed, struct region *r, bool registered, unsigned round)
{
    struct end *s = &bed->pair.server;
    struct streamer t;
    uint8_t *data = registered ? bed->server.data : r->data;
    struct wait w;
    NDK_RESULT_EX result;

    memset(&t, 0, sizeof t);
    t.bed = bed;
    t.to = registered ? (UINT64)(uintptr_t)data : r->base;
    t.token = registered ? bed->server.remote : r->remote;
    memset(bed->client.data, 0x11, SIZE);
    memset(data, 0x77, SIZE);
    assert_int_equal(pthread_create(&t.thread, NULL, streamer_run, &t), 0);
    wait_until(atomic_load(&t.done) > 2 + round % 8, "the stream");
    if (registered) {
        wait_init(&w);
        expect_call(wait_end(&w, bed->server.mr->Dispatch->NdkDeregisterMr(bed->server.mr,
                                                                           wait_request, &w)),
                    STATUS_SUCCESS, "NdkDeregisterMr", &bed->server.mr->Header);
    } else {
        assert_int_equal(s->qp->Dispatch->NdkInvalidate(s->qp, r, &r->mr->Header, 0),
                         STATUS_SUCCESS);
        while (s->initiator.cq->Dispatch->NdkGetCqResultsEx(s->initiator.cq, &result, 1) == 0)
            ;
        assert_int_equal(result.Status, STATUS_SUCCESS);
    }
    memset(data, 0x77, SIZE);
    expect_event(s, "stream, server", REASON_TERMINATE_SENT, IWARP_ERR_TAG_STAG);
    expect_event(&bed->pair.client, "stream, client", REASON_TERMINATE_RECEIVED,
                 IWARP_ERR_TAG_STAG);
    pthread_join(t.thread, NULL);
    for (size_t i = 0; i < SIZE; i++)
        if (data[i] != 0x77)
            test_fail("round %u: octet %zu came in after the end of the access", round, i);
}

/* So that closing the bed finds what it expects. */
static NTSTATUS register_again(struct memory *memory)
{
    struct wait w;

    wait_init(&w);
    return wait_end(&w, memory->mr->Dispatch->NdkRegisterMr(memory->mr, memory->mdl, memory->size,
                                                            0, wait_request, &w));
}

#define STREAM_ROUNDS 30u

static void nothing_enters_after_the_end(void **state)
{
    /* One shard: it discards what still streams in and must let its other end hear of the end. The
     * Terminate is lost if the client has not read it after drain_ms. */
    static const char *const options[] = {"crc=1,drain_ms=20000", "crc=0,drain_ms=20000",
                                          "crc=0,shards=1,drain_ms=20000"};

    (void)state;
    for (unsigned round = 0; round < STREAM_ROUNDS; round++) {
        bool registered = round % 2 != 0;
        struct bed bed;
        struct region r;

        bed_open(&bed, options[round / 2 % 3], SIZE, ALL_RIGHTS);
        if (!registered) {
            region_open(&bed.pair.server, 0, SIZE, 0, TRUE, &r);
            region_register(&r, 0, REMOTE_BOTH);
        }
        end_of_access(&bed, &r, registered, round);
        if (registered)
            assert_int_equal(register_again(&bed.server), STATUS_SUCCESS);
        else
            region_close(&r);
        bed_close(&bed);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH_MODES(by_the_peer),       BOTH_MODES(by_the_peer_plain_results),
        BOTH_MODES(bad_tokens),        BOTH_MODES(by_a_read),
        BOTH_MODES(by_a_read_in_vain), BOTH_MODES(nothing_enters_after_the_end),
    };

    return cmocka_run_group_tests_name("memory_invalidate", tests, NULL, NULL);
}
