// SPDX-License-Identifier: MIT
/*
 * Fast-register regions between two connected ends: what the peer reaches through their tokens and
 * at which addresses, how each registration ends (NdkInvalidate, the peer's Send with Invalidate, a
 * Read with local invalidate), what is refused, DEFER chains and fences. The ends complete Sends
 * and Writes when they are placed, so that the initiator's status of a remote error is exact.
 */
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

/* The server's region is written and read by the client. */
static void exchange(struct bed *bed, struct region *r, unsigned seed)
{
    struct end *c = &bed->pair.client;
    ULONG size = (ULONG)r->size;

    fill(bed->client.data, size, seed);
    expect_call(post_write(c, &bed->client, size, r->base, r->remote, 0, CTX(1)), STATUS_SUCCESS,
                "NdkWrite", &c->qp->Header);
    expect_completion(&c->initiator, "write", CTX(1), NdkOperationTypeWrite, STATUS_SUCCESS);
    assert_true(check(r->data, size, seed));
    assert_true(region_guarded(r));
    memset(bed->client.data, 0, size);
    expect_call(post_read(c, &bed->client, size, r->base, r->remote, 0, CTX(2)), STATUS_SUCCESS,
                "NdkRead", &c->qp->Header);
    expect_completion(&c->initiator, "read", CTX(2), NdkOperationTypeRead, STATUS_SUCCESS);
    assert_true(check(bed->client.data, size, seed));
    /* One octet in the middle: addresses count from the base. */
    bed->client.data[0] = (uint8_t)seed;
    expect_call(post_write(c, &bed->client, 1, r->base + size / 2, r->remote, 0, CTX(3)),
                STATUS_SUCCESS, "NdkWrite", &c->qp->Header);
    expect_completion(&c->initiator, "write", CTX(3), NdkOperationTypeWrite, STATUS_SUCCESS);
    assert_int_equal(r->data[size / 2], (uint8_t)seed);
}

static void reached_at_its_base(void **state)
{
    static const struct {
        UINT64 base;
        size_t offset, size;
    } cases[] = {
        {0, 0, 3 * PAGE},                           /* 0-based */
        {0x123, 0x123, 3 * PAGE},                   /* 0-based, but for the FBO */
        {UINT64_C(0x7700000000), 0, PAGE + 1},      /* chosen */
        {UINT64_C(0x7700000fff), 0xfff, 2},         /* over a page boundary */
        {UINT64_C(0x7700001001), 1, 16 * PAGE - 1}, /* 16 pages to the last octet */
        {UINT64_MAX - 9 * PAGE + 1, 0, 9 * PAGE},   /* up to the end of all addresses */
        {UINT64_C(0x555), 0x555, 1},
    };

    (void)state;
    for (unsigned scattered = 0; scattered < 2; scattered++) {
        struct bed bed;

        bed_open(&bed, scattered ? OPTIONS ",scattered=1" : OPTIONS, SIZE, ALL_RIGHTS);
        for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            struct region r;

            region_open(&bed.pair.server, cases[i].offset, cases[i].size, 0, TRUE, &r);
            region_register(&r, cases[i].base, REMOTE_BOTH);
            exchange(&bed, &r, i + 1);
            region_invalidate(&r);
            region_close(&r);
        }
        bed_close(&bed);
    }
}

/* The server's region is reached through this token in vain: 1/1/00 and a broken connection. */
static void token_is_dead(struct bed *bed, UINT64 to, UINT32 token)
{
    struct end *c = &bed->pair.client, *s = &bed->pair.server;

    expect_call(post_write(c, &bed->client, 8, to, token, 0, CTX(9)), STATUS_SUCCESS, "NdkWrite",
                &c->qp->Header);
    expect_completion(&c->initiator, "write with a dead token", CTX(9), NdkOperationTypeWrite,
                      STATUS_ACCESS_VIOLATION);
    expect_event(c, "client, dead token", REASON_TERMINATE_RECEIVED, IWARP_ERR_TAG_STAG);
    expect_event(s, "server, dead token", REASON_TERMINATE_SENT, IWARP_ERR_TAG_STAG);
}

static void a_new_token_each_time(void **state)
{
    struct bed bed;
    struct region r;
    UINT32 before = 0, local;

    (void)state;
    bed_open(&bed, OPTIONS, SIZE, ALL_RIGHTS);
    region_open(&bed.pair.server, 0, 4 * PAGE, 0, TRUE, &r);
    local = r.local;
    for (unsigned round = 0; round < 20; round++) {
        before = r.remote;
        region_register(&r, 0x10000, REMOTE_BOTH);
        assert_int_not_equal(r.remote, before);
        assert_int_not_equal(r.remote, local);
        assert_int_equal(r.mr->Dispatch->NdkGetLocalTokenFromMr(r.mr), local);
        exchange(&bed, &r, round);
        if (round < 19)
            region_invalidate(&r);
    }
    token_is_dead(&bed, r.base, before);
    region_close(&r);
    bed_close(&bed);
}

static void invalidated_is_dead(void **state)
{
    struct bed bed;
    struct region r;

    (void)state;
    bed_open(&bed, OPTIONS, SIZE, ALL_RIGHTS);
    region_open(&bed.pair.server, 0, 4 * PAGE, 0, TRUE, &r);
    region_register(&r, 0, REMOTE_BOTH);
    exchange(&bed, &r, 1);
    region_invalidate(&r);
    token_is_dead(&bed, r.base, r.remote);
    region_close(&r);
    bed_close(&bed);
}

/* A local operation of the server failed: its later requests are cancelled; both ends hear it. */
static void server_failed(struct bed *bed, const char *what, NDK_OPERATION_TYPE type)
{
    struct end *c = &bed->pair.client, *s = &bed->pair.server;

    expect_completion(&s->initiator, what, CTX(5), type, STATUS_INVALID_DEVICE_REQUEST);
    expect_completion(&s->initiator, what, CTX(6), NdkOperationTypeSend, STATUS_CANCELLED);
    expect_event(s, what, REASON_TERMINATE_SENT, IWARP_ERR_RDMAP_LOCAL);
    expect_event(c, what, REASON_TERMINATE_RECEIVED, IWARP_ERR_RDMAP_LOCAL);
    assert_int_equal(s->qp->Dispatch->NdkSend(s->qp, NULL, NULL, 0, 0), STATUS_CONNECTION_INVALID);
}

static void invalidate_twice(void **state)
{
    struct bed bed;
    struct region r;
    NDK_QP *qp;

    (void)state;
    bed_open(&bed, OPTIONS, SIZE, ALL_RIGHTS);
    qp = bed.pair.server.qp;
    region_open(&bed.pair.server, 0, PAGE, 0, TRUE, &r);
    region_register(&r, 0, REMOTE_BOTH);
    region_invalidate(&r);
    assert_int_equal(qp->Dispatch->NdkInvalidate(qp, CTX(5), &r.mr->Header, NDK_OP_FLAG_DEFER),
                     STATUS_SUCCESS);
    assert_int_equal(qp->Dispatch->NdkSend(qp, CTX(6), NULL, 0, 0), STATUS_SUCCESS);
    server_failed(&bed, "second invalidate", NdkOperationTypeInvalidate);
    region_close(&r);
    bed_close(&bed);
}

static void register_twice(void **state)
{
    struct bed bed;
    struct region r;
    NDK_QP *qp;

    (void)state;
    bed_open(&bed, OPTIONS, SIZE, ALL_RIGHTS);
    qp = bed.pair.server.qp;
    region_open(&bed.pair.server, 0, PAGE, 0, TRUE, &r);
    region_register(&r, 0, REMOTE_BOTH);
    exchange(&bed, &r, 4);
    assert_int_equal(region_post(&r, 0, REMOTE_BOTH | NDK_OP_FLAG_DEFER, CTX(5)), STATUS_SUCCESS);
    assert_int_equal(qp->Dispatch->NdkSend(qp, CTX(6), NULL, 0, 0), STATUS_SUCCESS);
    server_failed(&bed, "second fast-register", NdkOperationTypeFastRegister);
    region_close(&r);
    bed_close(&bed);
}

/* ---- what the call itself refuses ----------------------------------------------------------- */

static void expect_reason(const NDK_OBJECT_HEADER *object, const char *words)
{
    char text[512];

    softndk_reason(object, text, sizeof text);
    if (!strstr(text, words))
        test_fail("the reason is \"%s\", without \"%s\"", text, words);
}

static void refused_inline(void **state)
{
    struct bed bed;
    struct end *s;
    struct region closed, small;
    NTSTATUS status;
    struct wait w;

    (void)state;
    bed_open(&bed, OPTIONS, SIZE, ALL_RIGHTS);
    s = &bed.pair.server;
    region_open(s, 0, 2 * PAGE, 0, FALSE, &closed);
    for (ULONG flags = 0x8; flags <= 0x38; flags += 0x10) /* read; write; both; local write */
        if (flags != 0x28) {
            bool local = flags == 0x18;

            status = region_post(&closed, 0, local ? NDK_OP_FLAG_ALLOW_LOCAL_WRITE : flags, s);
            assert_int_equal(status, local ? STATUS_SUCCESS : STATUS_ACCESS_VIOLATION);
            if (local) {
                expect_completion(&s->initiator, "local rights", s, NdkOperationTypeFastRegister,
                                  STATUS_SUCCESS);
                region_invalidate(&closed);
            } else {
                expect_reason(&s->qp->Header, "RemoteAccess FALSE");
            }
        }
    region_open(s, 0, 3 * PAGE, 2, TRUE, &small);
    assert_int_equal(region_post(&small, 0, REMOTE_BOTH, s), STATUS_INVALID_PARAMETER);
    expect_reason(&s->qp->Header, "have 3, need <= 2");
    small.size = 2 * PAGE + 1; /* more than the pages hold */
    small.lam.map->AdapterPageCount = 2;
    assert_int_equal(region_post(&small, 0, REMOTE_BOTH, s), STATUS_INVALID_PARAMETER);
    expect_reason(&s->qp->Header, "Length too large");
    small.size = 2 * PAGE;
    assert_int_equal(region_post(&small, 1, REMOTE_BOTH, s), STATUS_INVALID_PARAMETER);
    expect_reason(&s->qp->Header, "BaseVirtualAddress");
    assert_int_equal(region_post(&small, 0, 0x20, s), STATUS_INVALID_PARAMETER);
    /* None of that hurt: */
    region_register(&small, 0, REMOTE_BOTH);
    exchange(&bed, &small, 3);
    small.lam.map->AdapterPageCount = 3;
    wait_init(&w);
    status =
        closed.mr->Dispatch->NdkInitializeFastRegisterMr(closed.mr, 257, TRUE, wait_request, &w);
    assert_int_equal(wait_end(&w, status), STATUS_IMPLEMENTATION_LIMIT);
    expect_nothing(&s->initiator, "refused", 20);
    region_close(&closed);
    region_close(&small);
    bed_close(&bed);
}

static void not_connected(void **state)
{
    struct end end;
    struct region r;

    (void)state;
    end_open(&end, NULL);
    region_open(&end, 0, PAGE, 0, TRUE, &r);
    assert_int_equal(region_post(&r, 0, 0, &end), STATUS_CONNECTION_INVALID);
    assert_int_equal(end.qp->Dispatch->NdkInvalidate(end.qp, &end, &r.mr->Header, 0),
                     STATUS_CONNECTION_INVALID);
    region_close(&r);
    end_close(&end);
}

/* ---- DEFER and fences ----------------------------------------------------------------------- */

static void deferred_chain(void **state)
{
    struct bed bed;
    struct end *c, *s;
    struct region a, b;
    NDK_SGE sge;

    (void)state;
    bed_open(&bed, OPTIONS, SIZE, ALL_RIGHTS);
    c = &bed.pair.client;
    s = &bed.pair.server;
    region_open(s, 0, 4 * PAGE, 0, TRUE, &a);
    region_open(s, 7, 4 * PAGE, 0, TRUE, &b);
    for (unsigned round = 0; round < 20; round++) {
        fill(a.data, a.size, round);
        post_receive(c, &bed.client, SIZE, CTX(1));
        assert_int_equal(region_post(&a, 0x4000, REMOTE_BOTH | NDK_OP_FLAG_DEFER, CTX(2)),
                         STATUS_SUCCESS);
        assert_int_equal(region_post(&b, 0x4007, REMOTE_BOTH | NDK_OP_FLAG_DEFER, CTX(3)),
                         STATUS_SUCCESS);
        sge = region_sge(&a, 0, 4 * PAGE); /* the region that the chain makes */
        assert_int_equal(s->qp->Dispatch->NdkSend(s->qp, CTX(4), &sge, 1, 0), STATUS_SUCCESS);
        expect_completion(&c->receive, "chain", CTX(1), NdkOperationTypeReceive, STATUS_SUCCESS);
        assert_true(check(bed.client.data, a.size, round));
        expect_completion(&s->initiator, "chain", CTX(2), NdkOperationTypeFastRegister,
                          STATUS_SUCCESS);
        expect_completion(&s->initiator, "chain", CTX(3), NdkOperationTypeFastRegister,
                          STATUS_SUCCESS);
        expect_completion(&s->initiator, "chain", CTX(4), NdkOperationTypeSend, STATUS_SUCCESS);
        exchange(&bed, &b, round);
        region_invalidate(&a);
        region_invalidate(&b);
    }
    region_close(&a);
    region_close(&b);
    bed_close(&bed);
}

/* The documented example: the first of a chain is accepted with DEFER, the second fails inline, the
 * Send is never posted. The first must run and complete all the same. */
static void failure_in_a_chain(void **state)
{
    struct bed bed;
    struct end *s;
    struct region a, b;

    (void)state;
    bed_open(&bed, OPTIONS, SIZE, ALL_RIGHTS);
    s = &bed.pair.server;
    region_open(s, 0, 4 * PAGE, 0, TRUE, &a);
    region_open(s, 0, 4 * PAGE, 3, TRUE, &b); /* a page too small */
    for (unsigned round = 0; round < 20; round++) {
        assert_int_equal(region_post(&a, 0, REMOTE_BOTH | NDK_OP_FLAG_DEFER, CTX(2)),
                         STATUS_SUCCESS);
        assert_int_equal(region_post(&b, 0, REMOTE_BOTH | NDK_OP_FLAG_DEFER, CTX(3)),
                         STATUS_INVALID_PARAMETER);
        expect_completion(&s->initiator, "chain", CTX(2), NdkOperationTypeFastRegister,
                          STATUS_SUCCESS);
        exchange(&bed, &a, round);
        region_invalidate(&a); /* and nothing of the second */
    }
    expect_nothing(&s->initiator, "chain", 20);
    region_close(&a);
    region_close(&b);
    bed_close(&bed);
}

/* A fenced invalidation of a Read's sink, and a fenced registration of it for something else. The
 * Read cannot be answered before all are posted: it is behind a Send that has no receive yet. */
static void fenced_local_operations(void **state)
{
    struct bed bed;
    struct end *c, *s;
    struct region r;

    (void)state;
    bed_open(&bed, OPTIONS ",holdback_ms=600000", SIZE, ALL_RIGHTS);
    c = &bed.pair.client;
    s = &bed.pair.server;
    region_open(c, 0, SIZE, 0, TRUE, &r);
    for (unsigned round = 0; round < 20; round++) {
        NDK_SGE sge;

        fill(bed.server.data, SIZE, round);
        memset(r.data, 0, SIZE);
        region_register(&r, 0, NDK_OP_FLAG_ALLOW_LOCAL_WRITE | NDK_OP_FLAG_RDMA_READ_SINK);
        sge = region_sge(&r, 0, SIZE);
        assert_int_equal(post_send(c, &bed.client, 0, 0, CTX(9)), STATUS_SUCCESS);
        assert_int_equal(c->qp->Dispatch->NdkRead(c->qp, CTX(1), &sge, 1,
                                                  (UINT64)(uintptr_t)bed.server.data,
                                                  bed.server.remote, 0),
                         STATUS_SUCCESS);
        assert_int_equal(
            c->qp->Dispatch->NdkInvalidate(c->qp, CTX(2), &r.mr->Header, NDK_OP_FLAG_READ_FENCE),
            STATUS_SUCCESS);
        /* elsewhere, so that it cannot stand in for the one that is invalidated */
        assert_int_equal(region_post(&r, 1u << 28, REMOTE_BOTH | NDK_OP_FLAG_READ_FENCE, CTX(3)),
                         STATUS_SUCCESS);
        post_receive(s, &bed.server, SIZE, CTX(8));
        expect_completion(&s->receive, "receive", CTX(8), NdkOperationTypeReceive, STATUS_SUCCESS);
        expect_completion(&c->initiator, "send", CTX(9), NdkOperationTypeSend, STATUS_SUCCESS);
        expect_completion(&c->initiator, "read", CTX(1), NdkOperationTypeRead, STATUS_SUCCESS);
        assert_true(check(r.data, SIZE, round));
        expect_completion(&c->initiator, "fenced invalidate", CTX(2), NdkOperationTypeInvalidate,
                          STATUS_SUCCESS);
        expect_completion(&c->initiator, "fenced fast-register", CTX(3),
                          NdkOperationTypeFastRegister, STATUS_SUCCESS);
        region_invalidate(&r);
    }
    region_close(&r);
    bed_close(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH_MODES(reached_at_its_base), BOTH_MODES(a_new_token_each_time),
        BOTH_MODES(invalidated_is_dead), BOTH_MODES(invalidate_twice),
        BOTH_MODES(register_twice),      BOTH_MODES(refused_inline),
        BOTH_MODES(not_connected),       BOTH_MODES(deferred_chain),
        BOTH_MODES(failure_in_a_chain),  BOTH_MODES(fenced_local_operations),
    };

    return cmocka_run_group_tests_name("memory_fast", tests, NULL, NULL);
}
