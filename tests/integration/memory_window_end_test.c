// SPDX-License-Identifier: MIT
/*
 * The end of memory windows: by the peer's Send with Invalidate and what of it is refused, with the
 * connection, by a close; and what a window means to its region: it cannot be deregistered, its
 * close waits. The ends complete Sends and Writes when they are placed.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "windows.h"

#define PAGE    4096u
#define SIZE    (4 * PAGE)
#define OPTIONS "completion=placed"
#define CTX(n)  ((void *)(uintptr_t)(n))

#define READABLE NDK_OP_FLAG_ALLOW_REMOTE_READ
#define WRITABLE NDK_OP_FLAG_ALLOW_REMOTE_WRITE
#define BOTH     (READABLE | WRITABLE)

static void write_through(struct end *c, struct bed *bed, UINT32 token, unsigned seed)
{
    fill(bed->client.data, PAGE, seed);
    expect_call(post_write(c, &bed->client, PAGE, memory_at(&bed->server, 0), token, 0, CTX(90)),
                STATUS_SUCCESS, "NdkWrite", &c->qp->Header);
    expect_completion(&c->initiator, "write", CTX(90), NdkOperationTypeWrite, STATUS_SUCCESS);
    assert_true(check(bed->server.data, PAGE, seed));
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

/* ---- by the peer ---------------------------------------------------------------------------- */

static void by_the_peer(void **state)
{
    struct bed bed;
    struct end *c = &bed.pair.client, *s = &bed.pair.server;
    UINT32 token = 0;
    NDK_MW *mw;

    (void)state;
    bed_open(&bed, OPTIONS, SIZE, ALL_RIGHTS);
    mw = window_open(s->pd);
    for (unsigned round = 0; round < 20; round++) {
        NDK_RESULT_EX result;

        token = window_bind(s, mw, &bed.server, 0, PAGE, round % 2 ? WRITABLE : BOTH);
        assert_int_equal(memory_deregister(&bed.server), STATUS_DEVICE_BUSY);
        fill(bed.client.data, PAGE, round);
        assert_int_equal(post_write(c, &bed.client, PAGE, memory_at(&bed.server, 0), token,
                                    NDK_OP_FLAG_DEFER, CTX(1)),
                         STATUS_SUCCESS);
        post_receive(s, &bed.server, 0, CTX(2));
        assert_int_equal(post_send_invalidate(c, round & 2 ? NDK_OP_FLAG_SEND_AND_SOLICIT_EVENT : 0,
                                              token, CTX(3)),
                         STATUS_SUCCESS);
        result = queue_next(&s->receive);
        assert_int_equal(result.Status, STATUS_SUCCESS);
        assert_int_equal(result.Type & 0xffff, NdkOperationTypeReceiveAndInvalidate & 0xffff);
        assert_int_equal(result.TypeSpecificCompletionOutput, token);
        assert_true(check(bed.server.data, PAGE, round));
        expect_completion(&c->initiator, "write", CTX(1), NdkOperationTypeWrite, STATUS_SUCCESS);
        expect_completion(&c->initiator, "send", CTX(3), NdkOperationTypeSend, STATUS_SUCCESS);
        /* It is over: the region is free, and the window can be bound at the top of the loop. */
        assert_int_equal(memory_deregister(&bed.server), STATUS_SUCCESS);
        memory_register(&bed.server, ALL_RIGHTS);
    }
    write_in_vain(&bed, token, IWARP_ERR_TAG_STAG);
    CLOSE(mw, NdkCloseMw);
    bed_close(&bed);
}

/* NdkInvalidate comes too late for a consumer that does not look at what the receive says. */
static void by_the_peer_and_oneself(void **state)
{
    struct bed bed;
    struct end *c = &bed.pair.client, *s = &bed.pair.server;
    NDK_MW *mw;
    UINT32 token;

    (void)state;
    bed_open(&bed, OPTIONS, SIZE, ALL_RIGHTS);
    mw = window_open(s->pd);
    token = window_bind(s, mw, &bed.server, 0, PAGE, BOTH);
    post_receive(s, &bed.server, 0, CTX(2));
    assert_int_equal(post_send_invalidate(c, 0, token, CTX(3)), STATUS_SUCCESS);
    expect_completion(&s->receive, "receive", CTX(2), NdkOperationTypeReceiveAndInvalidate,
                      STATUS_SUCCESS);
    assert_int_equal(window_post_invalidate(s, mw, 0, CTX(4)), STATUS_SUCCESS);
    expect_completion(&s->initiator, "too late", CTX(4), NdkOperationTypeInvalidate,
                      STATUS_INVALID_DEVICE_REQUEST);
    expect_terminated("too late", s, c, IWARP_ERR_RDMAP_LOCAL);
    CLOSE(mw, NdkCloseMw);
    bed_close(&bed);
}

enum bad_token {
    BAD_NEVER,       /* never bound */
    BAD_INVALIDATED, /* already */
    BAD_OLDER,       /* of the bind before */
    BAD_CLOSED,      /* the window is gone */
    BAD_OTHER,       /* bound over another QP */
    BAD_FOREIGN,     /* in another domain, over a QP of that */
    BAD_TOKENS
};

static void a_bad_token(enum bad_token bad)
{
    struct bed bed;
    struct end *c = &bed.pair.client, *s = &bed.pair.server, *over = s;
    struct memory memory;
    struct pair second;
    NDK_PD *foreign;
    NDK_MW *mw;
    UINT32 token;

    bed_open(&bed, OPTIONS, SIZE, ALL_RIGHTS);
    foreign = make_pd(s->adapter);
    second_open(&bed, bad == BAD_FOREIGN ? foreign : NULL, &second);
    if (bad == BAD_OTHER || bad == BAD_FOREIGN)
        over = &second.server;
    make_memory(over->pd, PAGE, ALL_RIGHTS, &memory);
    mw = window_open(over->pd);
    token = window_token(mw);
    if (bad != BAD_NEVER)
        token = window_bind(over, mw, &memory, 0, PAGE, BOTH);
    if (bad == BAD_INVALIDATED || bad == BAD_OLDER)
        window_invalidate(over, mw);
    if (bad == BAD_OLDER)
        window_bind(over, mw, &memory, 0, PAGE, BOTH);
    if (bad == BAD_CLOSED)
        CLOSE(mw, NdkCloseMw);
    post_receive(s, &bed.server, 64, CTX(1));
    post_receive(s, &bed.server, 64, CTX(2));
    assert_int_equal(post_send_invalidate(c, 0, token, CTX(3)), STATUS_SUCCESS);
    expect_completion(&s->receive, "bad token", CTX(1), NdkOperationTypeReceive,
                      STATUS_ACCESS_VIOLATION);
    expect_completion(&s->receive, "bad token", CTX(2), NdkOperationTypeReceive, STATUS_CANCELLED);
    expect_completion(&c->initiator, "bad token", CTX(3), NdkOperationTypeSend,
                      STATUS_ACCESS_VIOLATION);
    expect_terminated("bad token", s, c, IWARP_ERR_PROT_INVALIDATE);
    if (over != s) { /* still bound */
        window_invalidate(over, mw);
        synchronize(&second.client, &second.server);
    }
    if (bad != BAD_CLOSED)
        CLOSE(mw, NdkCloseMw);
    free_memory(&memory);
    second_close(&second);
    CLOSE(foreign, NdkClosePd);
    bed_close(&bed);
}

static void bad_tokens(void **state)
{
    (void)state;
    for (int bad = 0; bad < BAD_TOKENS; bad++)
        a_bad_token((enum bad_token)bad);
}

/* ---- with the connection -------------------------------------------------------------------- */

enum way {
    LOCAL_DISCONNECT, /* after the peer's, so that it is a graceful one */
    LOCAL_CLOSE,
    PEER_CLOSE, /* abortive */
    PEER_FAULT, /* an access that is refused */
    WAYS
};

static NTSTATUS disconnect(struct end *end, struct wait *w)
{
    wait_init(w);
    return end->connector->Dispatch->NdkDisconnect(end->connector, wait_request, w);
}

static void end_by(enum way way, struct bed *bed)
{
    struct end *c = &bed->pair.client, *s = &bed->pair.server;
    struct wait cw, sw;
    NTSTATUS cs, ss;

    switch (way) {
    case LOCAL_DISCONNECT:
        cs = disconnect(c, &cw);
        if (!wait_event(&s->disconnected, WAIT_S * 1000))
            test_fail("no disconnect event");
        /* The connection is not over yet, and the window is what it was. */
        assert_int_equal(memory_deregister(&bed->server), STATUS_DEVICE_BUSY);
        ss = disconnect(s, &sw);
        assert_int_equal(wait_end(&sw, ss), STATUS_SUCCESS);
        assert_int_equal(wait_end(&cw, cs), STATUS_SUCCESS);
        break;
    case LOCAL_CLOSE:
        CLOSE(s->connector, NdkCloseConnector);
        s->connector = NULL;
        break;
    case PEER_CLOSE:
        CLOSE(c->connector, NdkCloseConnector);
        c->connector = NULL;
        break;
    default:
        write_in_vain(bed, 0x00abcd00, IWARP_ERR_TAG_STAG);
        break;
    }
}

/* The receive that is cancelled tells that the connection is over: from then on the region is free,
 * and the window can be bound over another QP. */
static void with_the_connection(void **state)
{
    (void)state;
    for (int way = 0; way < WAYS; way++) {
        struct bed bed;
        struct end *s = &bed.pair.server;
        struct pair second;
        NDK_MW *mw, *other;
        UINT32 token, old;

        bed_open(&bed, OPTIONS, SIZE, ALL_RIGHTS);
        second_open(&bed, NULL, &second);
        mw = window_open(s->pd);
        other = window_open(s->pd);
        old = window_bind(s, mw, &bed.server, 0, PAGE, BOTH);
        window_bind(s, other, &bed.server, 0, PAGE, BOTH);
        write_through(&bed.pair.client, &bed, old, 1);
        post_receive(s, &bed.server, 64, CTX(1));
        end_by((enum way)way, &bed);
        expect_completion(&s->receive, "cancelled", CTX(1), NdkOperationTypeReceive,
                          STATUS_CANCELLED);
        expect_call(memory_deregister(&bed.server), STATUS_SUCCESS, "NdkDeregisterMr",
                    &bed.server.mr->Header);
        memory_register(&bed.server, ALL_RIGHTS);
        assert_int_equal(window_post_invalidate(s, mw, 0, NULL), STATUS_CONNECTION_INVALID);
        token = window_bind(&second.server, mw, &bed.server, 0, PAGE, BOTH);
        assert_int_not_equal(token, old);
        write_through(&second.client, &bed, token, 2);
        CLOSE(other, NdkCloseMw);
        second_close(&second); /* bound: it ends with this connection */
        assert_int_equal(memory_deregister(&bed.server), STATUS_SUCCESS);
        memory_register(&bed.server, ALL_RIGHTS);
        CLOSE(mw, NdkCloseMw);
        bed_close(&bed);
    }
}

/* ---- the region ----------------------------------------------------------------------------- */

/* Refused while a window is bound, inline or through the completion; nothing is lost by it. */
static void a_region_with_a_window_is_busy(void **state)
{
    struct bed bed;
    struct end *c = &bed.pair.client, *s = &bed.pair.server;
    NDK_MW *a, *b;
    UINT32 token;
    char text[512];

    (void)state;
    bed_open(&bed, OPTIONS, SIZE, ALL_RIGHTS);
    a = window_open(s->pd);
    b = window_open(s->pd);
    token = window_bind(s, a, &bed.server, 0, PAGE, BOTH);
    window_bind(s, b, &bed.server, 0, PAGE, READABLE);
    assert_int_equal(memory_deregister(&bed.server), STATUS_DEVICE_BUSY);
    softndk_reason(&bed.server.mr->Header, text, sizeof text);
    assert_non_null(strstr(text, "(have 2, need 0), rule NDKPI 9.2"));
    write_through(c, &bed, bed.server.remote, 1);
    write_through(c, &bed, token, 2);
    window_invalidate(s, a);
    assert_int_equal(memory_deregister(&bed.server), STATUS_DEVICE_BUSY);
    CLOSE(b, NdkCloseMw);
    assert_int_equal(memory_deregister(&bed.server), STATUS_SUCCESS);
    memory_register(&bed.server, ALL_RIGHTS);
    CLOSE(a, NdkCloseMw);
    bed_close(&bed);
}

/* Closed before its windows: its own tokens are dead at once, the windows are not, and the close
 * completes when the last of them has ended. */
static void a_region_is_closed_first(void **state)
{
    struct bed bed;
    struct end *c = &bed.pair.client, *s = &bed.pair.server;
    struct memory own;
    NDK_MW *a, *b;
    UINT32 token;
    struct wait w;
    NTSTATUS status;

    (void)state;
    bed_open(&bed, OPTIONS, SIZE, ALL_RIGHTS);
    make_memory(s->pd, PAGE, ALL_RIGHTS, &own);
    a = window_open(s->pd);
    b = window_open(s->pd);
    token = window_bind(s, a, &own, 0, PAGE, BOTH);
    window_bind(s, b, &own, 0, PAGE, READABLE);
    wait_init(&w);
    status = own.mr->Dispatch->NdkCloseMr(&own.mr->Header, wait_close, &w);
    assert_int_equal(status, STATUS_PENDING);
    for (unsigned round = 0; round < 5; round++) {
        fill(bed.client.data, PAGE, round);
        assert_int_equal(post_write(c, &bed.client, PAGE, memory_at(&own, 0), token, 0, CTX(1)),
                         STATUS_SUCCESS);
        expect_completion(&c->initiator, "write", CTX(1), NdkOperationTypeWrite, STATUS_SUCCESS);
        assert_true(check(own.data, PAGE, round));
    }
    CLOSE(b, NdkCloseMw);
    test_sleep_ms(20);
    assert_int_equal(atomic_load(&w.calls), 0);
    window_invalidate(s, a);
    assert_int_equal(wait_end(&w, status), STATUS_SUCCESS);
    assert_int_equal(post_write(c, &bed.client, 8, memory_at(&own, 0), own.remote, 0, CTX(2)),
                     STATUS_SUCCESS);
    expect_completion(&c->initiator, "the region's token", CTX(2), NdkOperationTypeWrite,
                      STATUS_ACCESS_VIOLATION);
    expect_terminated("the region's token", s, c, IWARP_ERR_TAG_STAG);
    IoFreeMdl(own.mdl);
    free(own.data);
    CLOSE(a, NdkCloseMw);
    bed_close(&bed);
}

/* ---- closes in each order ------------------------------------------------------------------- */

enum thing { WINDOW, REGION, QP, THINGS };

struct closing {
    struct wait w;
    NTSTATUS status;
    bool called;
};

/* Connector and QP count as one: the QP's close waits for the connector's. */
static void close_thing(struct bed *bed, NDK_MW *mw, enum thing thing, struct closing *k)
{
    struct end *s = &bed->pair.server;

    wait_init(&k->w);
    k->called = true;
    switch (thing) {
    case WINDOW:
        k->status = mw->Dispatch->NdkCloseMw(&mw->Header, wait_close, &k->w);
        break;
    case REGION:
        k->status =
            bed->server.mr->Dispatch->NdkCloseMr(&bed->server.mr->Header, wait_close, &k->w);
        break;
    default:
        k->status = s->qp->Dispatch->NdkCloseQp(&s->qp->Header, wait_close, &k->w);
        CLOSE(s->connector, NdkCloseConnector);
        s->connector = NULL;
        s->qp = NULL;
        break;
    }
}

static void one_order(const enum thing *order)
{
    struct closing closes[THINGS];
    struct bed bed;
    struct end *s = &bed.pair.server;
    NDK_MW *mw;

    memset(closes, 0, sizeof closes);
    bed_open(&bed, OPTIONS, SIZE, ALL_RIGHTS);
    mw = window_open(s->pd);
    write_through(&bed.pair.client, &bed, window_bind(s, mw, &bed.server, 0, PAGE, BOTH), 1);
    for (unsigned i = 0; i < THINGS; i++) {
        close_thing(&bed, mw, order[i], &closes[order[i]]);
        /* A region waits for its window, or for the connection with which that ends. */
        if (closes[REGION].called && !closes[WINDOW].called && !closes[QP].called) {
            test_sleep_ms(5);
            assert_int_equal(closes[REGION].status, STATUS_PENDING);
            assert_int_equal(atomic_load(&closes[REGION].w.calls), 0);
        }
    }
    for (unsigned i = 0; i < THINGS; i++)
        assert_int_equal(wait_end(&closes[i].w, closes[i].status), STATUS_SUCCESS);
    IoFreeMdl(bed.server.mdl);
    free(bed.server.data);
    free_memory(&bed.client);
    pair_close(&bed.pair);
}

static void closed_in_each_order(void **state)
{
    static const enum thing orders[][THINGS] = {
        {WINDOW, REGION, QP}, {WINDOW, QP, REGION}, {REGION, WINDOW, QP},
        {REGION, QP, WINDOW}, {QP, WINDOW, REGION}, {QP, REGION, WINDOW},
    };

    (void)state;
    for (size_t i = 0; i < sizeof orders / sizeof orders[0]; i++)
        one_order(orders[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH_MODES(by_the_peer),
        BOTH_MODES(by_the_peer_and_oneself),
        BOTH_MODES(bad_tokens),
        BOTH_MODES(with_the_connection),
        BOTH_MODES(a_region_with_a_window_is_busy),
        BOTH_MODES(a_region_is_closed_first),
        BOTH_MODES(closed_in_each_order),
    };

    return cmocka_run_group_tests_name("memory_window_end", tests, NULL, NULL);
}
