// SPDX-License-Identifier: MIT
/*
 * Binds as work requests: what the call refuses, the token that is right when it returns, binds and
 * invalidations queued behind each other, DEFER, silent success, fences, flush, and what fails when
 * it is executed. The ends complete Sends and Writes when they are placed.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "provider/mw.h" /* whether a window is bound at this moment */
#include "windows.h"

#define PAGE    4096u
#define SIZE    (1u << 18)
#define OPTIONS "completion=placed"
#define CTX(n)  ((void *)(uintptr_t)(n))

#define READABLE NDK_OP_FLAG_ALLOW_REMOTE_READ
#define WRITABLE NDK_OP_FLAG_ALLOW_REMOTE_WRITE
#define BOTH     (READABLE | WRITABLE)

static void expect_reason(const NDK_OBJECT_HEADER *object, const char *words)
{
    char text[512];

    softndk_reason(object, text, sizeof text);
    if (!strstr(text, words))
        test_fail("the reason is \"%s\", without \"%s\"", text, words);
}

/* The client writes some octets to the server's memory through this token. */
static void write_through(struct bed *bed, UINT32 token, size_t at, ULONG length, unsigned seed)
{
    struct end *c = &bed->pair.client;

    fill(bed->client.data, length, seed);
    expect_call(post_write(c, &bed->client, length, memory_at(&bed->server, at), token, 0, CTX(90)),
                STATUS_SUCCESS, "NdkWrite", &c->qp->Header);
    expect_completion(&c->initiator, "write", CTX(90), NdkOperationTypeWrite, STATUS_SUCCESS);
    assert_true(check(bed->server.data + at, length, seed));
}

static void write_in_vain(struct bed *bed, UINT32 token, iwarp_error error)
{
    struct end *c = &bed->pair.client, *s = &bed->pair.server;

    assert_int_equal(post_write(c, &bed->client, 8, memory_at(&bed->server, 0), token, 0, CTX(91)),
                     STATUS_SUCCESS);
    expect_completion(&c->initiator, "write in vain", CTX(91), NdkOperationTypeWrite,
                      STATUS_ACCESS_VIOLATION);
    expect_terminated("write in vain", s, c, error);
}

static bool is_bound(NDK_MW *mw)
{
    struct mw *window = mw_from(mw);
    bool bound;

    os_mutex_lock(&window->lock);
    bound = window->state == MW_BOUND;
    os_mutex_unlock(&window->lock);
    return bound;
}

/* ---- what the call itself refuses ----------------------------------------------------------- */

struct refusal {
    const char *name, *reason;
    NTSTATUS status;
    ULONG flags;
    INT64 at;
    SIZE_T length;
};

static const struct refusal refusals[] = {
    {"no right", "allows nothing", STATUS_INVALID_PARAMETER, 0, 0, 8},
    {"no right, silent", "allows nothing", STATUS_INVALID_PARAMETER,
     NDK_OP_FLAG_SILENT_SUCCESS | NDK_OP_FLAG_READ_FENCE, 0, 8},
    {"half of remote write", "need 0x30", STATUS_INVALID_PARAMETER, 0x20, 0, 8},
    {"local write", "need 0x30", STATUS_INVALID_PARAMETER, 0x10, 0, 8},
    {"read and local write", "need 0x30", STATUS_INVALID_PARAMETER, 0x18, 0, 8},
    {"solicit", "Flags", STATUS_INVALID_PARAMETER, BOTH | 0x4, 0, 8},
    {"inline", "Flags", STATUS_INVALID_PARAMETER, BOTH | NDK_OP_FLAG_INLINE, 0, 8},
    {"read sink", "Flags", STATUS_INVALID_PARAMETER, BOTH | NDK_OP_FLAG_RDMA_READ_SINK, 0, 8},
    {"local invalidate", "Flags", STATUS_INVALID_PARAMETER, BOTH | 0x100, 0, 8},
    {"a bit that is not defined", "Flags", STATUS_INVALID_PARAMETER, BOTH | 0x400, 0, 8},
    {"empty", "empty", STATUS_INVALID_PARAMETER, BOTH, 0, 0},
    {"before the first", "not inside", STATUS_INVALID_PARAMETER, BOTH, -1, 8},
    {"behind the last", "not inside", STATUS_INVALID_PARAMETER, BOTH, SIZE, 1},
    {"over the last", "not inside", STATUS_INVALID_PARAMETER, BOTH, SIZE - 7, 8},
    {"wraps", "not inside", STATUS_INVALID_PARAMETER, BOTH, 1, SIZE_MAX},
};

static void refused_inline(void **state)
{
    struct bed bed;
    struct end *s = &bed.pair.server;
    struct region fast;
    struct memory plain;
    NDK_MW *mw, *stranger;
    NDK_PD *pd;
    UINT32 token;

    (void)state;
    bed_open(&bed, OPTIONS, SIZE, ALL_RIGHTS);
    pd = make_pd(s->adapter);
    mw = window_open(s->pd);
    stranger = window_open(pd);
    token = window_token(mw);
    for (size_t i = 0; i < sizeof refusals / sizeof refusals[0]; i++) {
        const struct refusal *k = &refusals[i];

        expect_call(window_post(s, mw, &bed.server, (size_t)k->at, k->length, k->flags, s),
                    k->status, k->name, &s->qp->Header);
        expect_reason(&s->qp->Header, k->reason);
    }
    make_memory(s->pd, PAGE, NDK_MR_FLAG_ALLOW_REMOTE_READ, &plain);
    assert_int_equal(window_post(s, mw, &plain, 0, 8, WRITABLE, s), STATUS_ACCESS_VIOLATION);
    expect_reason(&s->qp->Header, "NDK_MR_FLAG_ALLOW_LOCAL_WRITE");
    assert_int_equal(window_post(s, mw, &plain, 0, 8, BOTH, s), STATUS_ACCESS_VIOLATION);
    assert_int_equal(window_post(s, stranger, &plain, 0, 8, READABLE, s), STATUS_INVALID_PARAMETER);
    expect_reason(&s->qp->Header, "another domain");
    assert_int_equal(window_post_invalidate(s, stranger, 0, s), STATUS_INVALID_PARAMETER);
    expect_reason(&s->qp->Header, "another domain");
    assert_int_equal(s->qp->Dispatch->NdkInvalidate(s->qp, s, &plain.mr->Header, 0),
                     STATUS_INVALID_PARAMETER);
    expect_reason(&s->qp->Header, "neither a fast-register MR nor a window");
    assert_int_equal(s->qp->Dispatch->NdkInvalidate(s->qp, s, &s->qp->Header, 0),
                     STATUS_INVALID_PARAMETER);
    assert_int_equal(memory_deregister(&plain), STATUS_SUCCESS);
    assert_int_equal(window_post(s, mw, &plain, 0, 8, READABLE, s), STATUS_INVALID_DEVICE_REQUEST);
    expect_reason(&s->qp->Header, "no registration");
    memory_register(&plain, 0);
    region_open(s, 0, PAGE, 0, TRUE, &fast);
    region_register(&fast, 0, REMOTE_BOTH);
    assert_int_equal(s->qp->Dispatch->NdkBind(s->qp, s, fast.mr, mw, NULL, 8, READABLE),
                     STATUS_INVALID_DEVICE_REQUEST);
    expect_reason(&s->qp->Header, "FastRegister TRUE");
    /* None of that hurt, or used up anything. */
    expect_nothing(&s->initiator, "refused", 20);
    assert_int_equal(window_token(mw), token);
    write_through(&bed, window_bind(s, mw, &bed.server, 0, 64, BOTH), 0, 64, 1);
    CLOSE(mw, NdkCloseMw);
    CLOSE(stranger, NdkCloseMw);
    region_close(&fast);
    free_memory(&plain);
    CLOSE(pd, NdkClosePd);
    bed_close(&bed);
}

static void not_connected(void **state)
{
    struct end end;
    struct memory memory;
    NDK_MW *mw;

    (void)state;
    end_open(&end, NULL);
    make_memory(end.pd, PAGE, ALL_RIGHTS, &memory);
    mw = window_open(end.pd);
    assert_int_equal(window_post(&end, mw, &memory, 0, 8, READABLE, NULL),
                     STATUS_CONNECTION_INVALID);
    assert_int_equal(window_post_invalidate(&end, mw, 0, NULL), STATUS_CONNECTION_INVALID);
    free_memory(&memory);
    CLOSE(mw, NdkCloseMw);
    end_close(&end);
}

/* A queue without room, an adapter without memory, and statuses on request. */
static void refused_for_want(void **state)
{
    struct bed bed;
    struct end *s = &bed.pair.server;
    NDK_MW *mw;
    unsigned posted = 0;
    NTSTATUS status;

    (void)state;
    bed_open(&bed, OPTIONS, SIZE, ALL_RIGHTS);
    mw = window_open(s->pd);
    assert_int_equal(softndk_set_fail("memory:1"), STATUS_SUCCESS);
    assert_int_equal(window_post(s, mw, &bed.server, 0, 8, READABLE, NULL),
                     STATUS_INSUFFICIENT_RESOURCES);
    assert_int_equal(softndk_set_fail("NdkBind:2:STATUS_IO_TIMEOUT"), STATUS_SUCCESS);
    /* What was deferred goes when the next one is refused. */
    assert_int_equal(window_post(s, mw, &bed.server, 0, 8, READABLE | NDK_OP_FLAG_DEFER, CTX(1)),
                     STATUS_SUCCESS);
    assert_int_equal(window_post(s, mw, &bed.server, 0, 8, READABLE, CTX(2)), STATUS_IO_TIMEOUT);
    assert_int_equal(softndk_set_fail(NULL), STATUS_SUCCESS);
    expect_completion(&s->initiator, "deferred", CTX(1), NdkOperationTypeBind, STATUS_SUCCESS);
    window_invalidate(s, mw);
    do {
        status = posted % 2
                     ? window_post_invalidate(s, mw, NDK_OP_FLAG_DEFER, CTX(3))
                     : window_post(s, mw, &bed.server, 0, 8, READABLE | NDK_OP_FLAG_DEFER, CTX(3));
        posted += status == STATUS_SUCCESS;
    } while (status == STATUS_SUCCESS);
    assert_int_equal(posted, END_DEPTH);
    assert_int_equal(status, STATUS_NO_MORE_ENTRIES);
    for (unsigned i = 0; i < posted; i++)
        expect_completion(&s->initiator, "a full queue", CTX(3),
                          i % 2 ? NdkOperationTypeInvalidate : NdkOperationTypeBind,
                          STATUS_SUCCESS);
    expect_nothing(&s->initiator, "a full queue", 20);
    CLOSE(mw, NdkCloseMw);
    bed_close(&bed);
}

/* ---- order ---------------------------------------------------------------------------------- */

/* The token goes out in a Send right behind the bind, before anything has completed. */
static void the_token_when_the_call_returns(void **state)
{
    struct bed bed;
    struct end *c = &bed.pair.client, *s = &bed.pair.server;
    NDK_MW *mw;

    (void)state;
    bed_open(&bed, OPTIONS, SIZE, ALL_RIGHTS);
    mw = window_open(s->pd);
    for (unsigned round = 0; round < 50; round++) {
        const ULONG defer = round % 2 ? NDK_OP_FLAG_DEFER : 0;
        UINT32 token, sent;
        NDK_SGE sge;

        post_receive(c, &bed.client, sizeof token, CTX(1));
        assert_int_equal(window_post(s, mw, &bed.server, round, 64, WRITABLE | defer, CTX(2)),
                         STATUS_SUCCESS);
        token = window_token(mw);
        memset(&sge, 0, sizeof sge);
        sge.VirtualAddress = &token;
        sge.Length = sizeof token;
        assert_int_equal(s->qp->Dispatch->NdkSend(s->qp, CTX(3), &sge, 1, NDK_OP_FLAG_INLINE),
                         STATUS_SUCCESS);
        expect_completion(&c->receive, "token", CTX(1), NdkOperationTypeReceive, STATUS_SUCCESS);
        memcpy(&sent, bed.client.data, sizeof sent);
        write_through(&bed, sent, round, 64, round);
        expect_completion(&s->initiator, "bind", CTX(2), NdkOperationTypeBind, STATUS_SUCCESS);
        expect_completion(&s->initiator, "send", CTX(3), NdkOperationTypeSend, STATUS_SUCCESS);
        window_invalidate(s, mw);
    }
    CLOSE(mw, NdkCloseMw);
    bed_close(&bed);
}

/* Bind, invalidate, bind, invalidate, bind, posted at once: each token is told at its post, and
 * only the last one's window is there in the end. */
static void queued_behind_each_other(void **state)
{
    struct bed bed;
    struct end *s = &bed.pair.server;
    UINT32 tokens[3];
    NDK_MW *mw;

    (void)state;
    for (int deferred = 0; deferred < 2; deferred++) {
        const ULONG defer = deferred ? NDK_OP_FLAG_DEFER : 0;

        bed_open(&bed, OPTIONS, SIZE, ALL_RIGHTS);
        mw = window_open(s->pd);
        for (unsigned i = 0; i < 3; i++) {
            if (i)
                assert_int_equal(window_post_invalidate(s, mw, defer, CTX(10 + i)), STATUS_SUCCESS);
            assert_int_equal(window_post(s, mw, &bed.server, i * PAGE, 64,
                                         BOTH | (i < 2 ? defer : 0), CTX(20 + i)),
                             STATUS_SUCCESS);
            tokens[i] = window_token(mw);
        }
        assert_int_not_equal(tokens[0], tokens[1]);
        assert_int_not_equal(tokens[1], tokens[2]);
        for (unsigned i = 0; i < 3; i++) {
            if (i)
                expect_completion(&s->initiator, "queued", CTX(10 + i), NdkOperationTypeInvalidate,
                                  STATUS_SUCCESS);
            expect_completion(&s->initiator, "queued", CTX(20 + i), NdkOperationTypeBind,
                              STATUS_SUCCESS);
        }
        assert_int_equal(window_token(mw), tokens[2]);
        write_through(&bed, tokens[2], 2 * PAGE, 64, 3);
        write_in_vain(&bed, tokens[deferred], IWARP_ERR_TAG_STAG);
        CLOSE(mw, NdkCloseMw);
        bed_close(&bed);
    }
}

/* The documented example of a chain, with binds: the first is accepted with DEFER, the second is
 * refused. The first runs and completes all the same. */
static void failure_in_a_chain(void **state)
{
    struct bed bed;
    struct end *s = &bed.pair.server;
    NDK_MW *a, *b;

    (void)state;
    bed_open(&bed, OPTIONS, SIZE, ALL_RIGHTS);
    a = window_open(s->pd);
    b = window_open(s->pd);
    for (unsigned round = 0; round < 20; round++) {
        assert_int_equal(window_post(s, a, &bed.server, 0, 64, BOTH | NDK_OP_FLAG_DEFER, CTX(1)),
                         STATUS_SUCCESS);
        assert_int_equal(window_post(s, b, &bed.server, SIZE, 64, BOTH | NDK_OP_FLAG_DEFER, CTX(2)),
                         STATUS_INVALID_PARAMETER);
        expect_completion(&s->initiator, "chain", CTX(1), NdkOperationTypeBind, STATUS_SUCCESS);
        write_through(&bed, window_token(a), 0, 64, round);
        window_invalidate(s, a);
    }
    expect_nothing(&s->initiator, "chain", 20);
    CLOSE(a, NdkCloseMw);
    CLOSE(b, NdkCloseMw);
    bed_close(&bed);
}

/* Silent ones leave no entry when they succeed; a signalled one behind them tells that they have.
 */
static void silent(void **state)
{
    struct bed bed;
    struct end *c = &bed.pair.client, *s = &bed.pair.server;
    const ULONG quietly = NDK_OP_FLAG_SILENT_SUCCESS;
    NDK_MW *mw;

    (void)state;
    bed_open(&bed, OPTIONS, SIZE, ALL_RIGHTS);
    mw = window_open(s->pd);
    for (unsigned round = 0; round < 20; round++) {
        assert_int_equal(window_post(s, mw, &bed.server, 0, 64, BOTH | quietly, CTX(1)),
                         STATUS_SUCCESS);
        assert_int_equal(window_post_invalidate(s, mw, quietly, CTX(2)), STATUS_SUCCESS);
        assert_int_equal(window_post(s, mw, &bed.server, 0, 64, BOTH, CTX(3)), STATUS_SUCCESS);
        expect_completion(&s->initiator, "signalled", CTX(3), NdkOperationTypeBind, STATUS_SUCCESS);
        write_through(&bed, window_token(mw), 0, 64, round);
        window_invalidate(s, mw);
    }
    /* A failure always leaves one. */
    assert_int_equal(window_post_invalidate(s, mw, quietly, CTX(4)), STATUS_SUCCESS);
    expect_completion(&s->initiator, "silent, failed", CTX(4), NdkOperationTypeInvalidate,
                      STATUS_INVALID_DEVICE_REQUEST);
    expect_terminated("silent, failed", s, c, IWARP_ERR_RDMAP_LOCAL);
    CLOSE(mw, NdkCloseMw);
    bed_close(&bed);
}

/*
 * Behind a Read that cannot be answered, since it is behind a Send that has no receive: what has a
 * fence waits, so the window that is to be invalidated is still reached, and the one to be bound is
 * not bound; what has none does not wait.
 */
static void fenced(void **state)
{
    struct bed bed;
    struct end *c = &bed.pair.client, *s = &bed.pair.server;
    NDK_MW *old, *fresh, *hasty;
    UINT32 token;

    (void)state;
    bed_open(&bed, OPTIONS ",holdback_ms=600000", SIZE, ALL_RIGHTS);
    old = window_open(c->pd);
    fresh = window_open(c->pd);
    hasty = window_open(c->pd);
    for (unsigned round = 0; round < 10; round++) {
        const ULONG fence = NDK_OP_FLAG_READ_FENCE;

        token = window_bind(c, old, &bed.client, PAGE, 64, WRITABLE);
        assert_int_equal(post_send(c, &bed.client, 0, 0, CTX(1)), STATUS_SUCCESS);
        assert_int_equal(
            post_read(c, &bed.client, 64, memory_at(&bed.server, 0), bed.server.remote, 0, CTX(2)),
            STATUS_SUCCESS);
        assert_int_equal(window_post(c, hasty, &bed.client, 0, 64, READABLE, CTX(3)),
                         STATUS_SUCCESS);
        assert_int_equal(window_post(c, fresh, &bed.client, 0, 64, READABLE | fence, CTX(4)),
                         STATUS_SUCCESS);
        assert_int_equal(window_post_invalidate(c, old, fence, CTX(5)), STATUS_SUCCESS);
        wait_until(is_bound(hasty), "the bind without a fence");
        assert_int_equal(
            post_write(s, &bed.server, 64, memory_at(&bed.client, PAGE), token, 0, CTX(6)),
            STATUS_SUCCESS);
        expect_completion(&s->initiator, "write", CTX(6), NdkOperationTypeWrite, STATUS_SUCCESS);
        assert_false(is_bound(fresh));
        post_receive(s, &bed.server, 64, CTX(7));
        expect_completion(&s->receive, "receive", CTX(7), NdkOperationTypeReceive, STATUS_SUCCESS);
        expect_completion(&c->initiator, "send", CTX(1), NdkOperationTypeSend, STATUS_SUCCESS);
        expect_completion(&c->initiator, "read", CTX(2), NdkOperationTypeRead, STATUS_SUCCESS);
        expect_completion(&c->initiator, "bind", CTX(3), NdkOperationTypeBind, STATUS_SUCCESS);
        expect_completion(&c->initiator, "fenced bind", CTX(4), NdkOperationTypeBind,
                          STATUS_SUCCESS);
        expect_completion(&c->initiator, "fenced invalidate", CTX(5), NdkOperationTypeInvalidate,
                          STATUS_SUCCESS);
        window_invalidate(c, fresh);
        window_invalidate(c, hasty);
    }
    CLOSE(old, NdkCloseMw);
    CLOSE(fresh, NdkCloseMw);
    CLOSE(hasty, NdkCloseMw);
    bed_close(&bed);
}

/* ---- flush ---------------------------------------------------------------------------------- */

/* Binds that have not begun are cancelled; the window's token is again what it was, and the region
 * is free. */
static void flushed(void **state)
{
    struct bed bed;
    struct end *s = &bed.pair.server;
    const ULONG defer = NDK_OP_FLAG_DEFER;
    NDK_MW *mw, *idle;
    UINT32 token, before;

    (void)state;
    for (unsigned round = 0; round < 10; round++) {
        bed_open(&bed, OPTIONS, SIZE, ALL_RIGHTS);
        mw = window_open(s->pd);
        idle = window_open(s->pd);
        token = window_bind(s, mw, &bed.server, 0, 64, BOTH);
        before = window_token(idle);
        assert_int_equal(window_post_invalidate(s, mw, defer, CTX(1)), STATUS_SUCCESS);
        assert_int_equal(window_post(s, mw, &bed.server, 0, 128, BOTH | defer, CTX(2)),
                         STATUS_SUCCESS);
        assert_int_equal(window_post(s, idle, &bed.server, 0, 128,
                                     BOTH | defer | NDK_OP_FLAG_SILENT_SUCCESS, CTX(3)),
                         STATUS_SUCCESS);
        assert_int_equal(window_post(s, idle, &bed.server, 0, 256, BOTH | defer, CTX(4)),
                         STATUS_SUCCESS);
        s->qp->Dispatch->NdkFlush(s->qp);
        expect_completion(&s->initiator, "flush", CTX(1), NdkOperationTypeInvalidate,
                          STATUS_CANCELLED);
        for (unsigned i = 2; i < 5; i++)
            expect_completion(&s->initiator, "flush", CTX(i), NdkOperationTypeBind,
                              STATUS_CANCELLED);
        assert_int_equal(window_token(mw), token);
        assert_int_equal(window_token(idle), before);
        assert_int_equal(memory_deregister(&bed.server), STATUS_DEVICE_BUSY); /* mw is bound */
        write_through(&bed, token, 0, 64, round);
        window_invalidate(s, mw);
        assert_int_equal(memory_deregister(&bed.server), STATUS_SUCCESS);
        memory_register(&bed.server, ALL_RIGHTS);
        CLOSE(mw, NdkCloseMw);
        CLOSE(idle, NdkCloseMw);
        bed_close(&bed);
    }
}

/* Behind an open Read, which a flush cannot take back: the connection ends, and with it what is
 * bound; what is queued is cancelled. */
static void flushed_with_the_connection(void **state)
{
    struct bed bed;
    struct end *c = &bed.pair.client, *s = &bed.pair.server;
    NDK_MW *a, *b;

    (void)state;
    bed_open(&bed, OPTIONS ",holdback_ms=600000", SIZE, ALL_RIGHTS);
    a = window_open(c->pd);
    b = window_open(c->pd);
    window_bind(c, a, &bed.client, 0, 64, READABLE);
    assert_int_equal(post_send(c, &bed.client, 0, 0, CTX(1)), STATUS_SUCCESS);
    assert_int_equal(
        post_read(c, &bed.client, 64, memory_at(&bed.server, 0), bed.server.remote, 0, CTX(2)),
        STATUS_SUCCESS);
    assert_int_equal(
        window_post(c, b, &bed.client, 0, 64, READABLE | NDK_OP_FLAG_READ_FENCE, CTX(3)),
        STATUS_SUCCESS);
    c->qp->Dispatch->NdkFlush(c->qp);
    expect_completion(&c->initiator, "flush", CTX(1), NdkOperationTypeSend, STATUS_CANCELLED);
    expect_completion(&c->initiator, "flush", CTX(2), NdkOperationTypeRead, STATUS_CANCELLED);
    expect_completion(&c->initiator, "flush", CTX(3), NdkOperationTypeBind, STATUS_CANCELLED);
    assert_false(is_bound(a));
    assert_false(is_bound(b));
    assert_int_equal(memory_deregister(&bed.client), STATUS_SUCCESS);
    memory_register(&bed.client, ALL_RIGHTS);
    (void)s;
    CLOSE(a, NdkCloseMw);
    CLOSE(b, NdkCloseMw);
    bed_close(&bed);
}

/* ---- what fails when its turn comes ---------------------------------------------------------- */

enum bad { BOUND_TWICE, BOUND_ELSEWHERE, NEVER_BOUND, INVALIDATED_TWICE, INVALIDATED_ELSEWHERE };

static void one_failure(enum bad bad)
{
    struct bed bed;
    struct end *c = &bed.pair.client, *s = &bed.pair.server;
    struct pair second;
    NDK_MW *mw;
    UINT32 token = 0;
    bool binds = bad == BOUND_TWICE || bad == BOUND_ELSEWHERE;
    bool elsewhere = bad == BOUND_ELSEWHERE || bad == INVALIDATED_ELSEWHERE;

    bed_open(&bed, OPTIONS, SIZE, ALL_RIGHTS);
    second_open(&bed, NULL, &second);
    mw = window_open(s->pd);
    if (bad != NEVER_BOUND)
        token = window_bind(elsewhere ? &second.server : s, mw, &bed.server, 0, 64, BOTH);
    if (bad == INVALIDATED_TWICE)
        window_invalidate(s, mw);
    if (binds)
        assert_int_equal(window_post(s, mw, &bed.server, 0, 128, BOTH | NDK_OP_FLAG_DEFER, CTX(1)),
                         STATUS_SUCCESS);
    else
        assert_int_equal(window_post_invalidate(s, mw, NDK_OP_FLAG_DEFER, CTX(1)), STATUS_SUCCESS);
    assert_int_equal(s->qp->Dispatch->NdkSend(s->qp, CTX(2), NULL, 0, 0), STATUS_SUCCESS);
    expect_completion(&s->initiator, "its turn", CTX(1),
                      binds ? NdkOperationTypeBind : NdkOperationTypeInvalidate,
                      STATUS_INVALID_DEVICE_REQUEST);
    expect_completion(&s->initiator, "its turn", CTX(2), NdkOperationTypeSend, STATUS_CANCELLED);
    expect_terminated("its turn", s, c, IWARP_ERR_RDMAP_LOCAL);
    assert_int_equal(window_post(s, mw, &bed.server, 0, 64, BOTH, NULL), STATUS_CONNECTION_INVALID);
    if (elsewhere) { /* it is as it was */
        assert_int_equal(window_token(mw), token);
        fill(bed.client.data, 64, 7);
        assert_int_equal(post_write(&second.client, &bed.client, 64, memory_at(&bed.server, 0),
                                    token, 0, CTX(3)),
                         STATUS_SUCCESS);
        expect_completion(&second.client.initiator, "as it was", CTX(3), NdkOperationTypeWrite,
                          STATUS_SUCCESS);
        assert_true(check(bed.server.data, 64, 7));
    }
    CLOSE(mw, NdkCloseMw);
    second_close(&second);
    bed_close(&bed);
}

static void failures_in_their_turn(void **state)
{
    (void)state;
    for (int bad = BOUND_TWICE; bad <= INVALIDATED_ELSEWHERE; bad++)
        one_failure((enum bad)bad);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH_MODES(refused_inline),
        BOTH_MODES(not_connected),
        BOTH_MODES(refused_for_want),
        BOTH_MODES(the_token_when_the_call_returns),
        BOTH_MODES(queued_behind_each_other),
        BOTH_MODES(failure_in_a_chain),
        BOTH_MODES(silent),
        BOTH_MODES(fenced),
        BOTH_MODES(flushed),
        BOTH_MODES(flushed_with_the_connection),
        BOTH_MODES(failures_in_their_turn),
    };

    return cmocka_run_group_tests_name("memory_bind", tests, NULL, NULL);
}
