// SPDX-License-Identifier: MIT
/*
 * Memory windows as a foreign peer meets them: Writes, Read Requests and invalidations that must
 * end the connection with the right Terminate and touch nothing, and those that are taken.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include "ends.h"
#include "peer.h"

/* The window: some octets of the target. */
#define WINDOW_AT   16u
#define WINDOW_SIZE 100u

#define READABLE NDK_OP_FLAG_ALLOW_REMOTE_READ
#define WRITABLE NDK_OP_FLAG_ALLOW_REMOTE_WRITE

enum condition {
    BOUND,
    READ_ONLY,
    WRITE_ONLY,
    INVALID,  /* bound, and invalidated again */
    OLDER,    /* bound anew: the token of before */
    ELSEWHERE /* bound over another QP */
};

static NDK_MW *window;
static struct link *elsewhere; /* a connection that goes on throughout */

static void window_open(struct bench *b)
{
    struct wait w;

    wait_init(&w);
    must(&w, b->pd->Dispatch->NdkCreateMw(b->pd, wait_create, &w, &window), "NdkCreateMw");
}

static uint64_t window_to(const struct bench *b, size_t offset)
{
    return target_to(b, WINDOW_AT) + offset;
}

static void done(struct end *end, NDK_OPERATION_TYPE type)
{
    NDK_RESULT_EX result = expect_result(&end->initiator, "window", 77, STATUS_SUCCESS);

    assert_int_equal(result.Type, type);
}

static uint32_t bind_over(struct bench *b, struct link *l, ULONG flags)
{
    NDK_QP *qp = l->end.qp;

    must(NULL,
         qp->Dispatch->NdkBind(qp, (void *)77, b->target.mr, window,
                               (PVOID)(uintptr_t)window_to(b, 0), WINDOW_SIZE, flags),
         "NdkBind");
    done(&l->end, NdkOperationTypeBind);
    return window->Dispatch->NdkGetRemoteTokenFromMw(window);
}

static void invalidate_over(struct link *l)
{
    NDK_QP *qp = l->end.qp;

    must(NULL, qp->Dispatch->NdkInvalidate(qp, (void *)77, &window->Header, 0), "NdkInvalidate");
    done(&l->end, NdkOperationTypeInvalidate);
}

/* What a row's builder finds: its token. A window that an earlier row left bound has ended with its
 * connection, but for the one of another QP. */
static uint32_t arrange(struct row_run *r)
{
    struct link *over = r->param == ELSEWHERE ? elsewhere : r->link;
    ULONG flags = r->param == READ_ONLY    ? READABLE
                  : r->param == WRITE_ONLY ? WRITABLE
                                           : READABLE | WRITABLE;
    uint32_t token = bind_over(r->bench, over, flags);

    if (r->param == INVALID || r->param == OLDER)
        invalidate_over(over);
    if (r->param == OLDER)
        bind_over(r->bench, over, flags);
    return token;
}

/* ---- rows ----------------------------------------------------------------------------------- */

static void write_of(struct row_run *r, uint64_t to, uint32_t length)
{
    stream_write(&r->stream, arrange(r), to, r->octets, length);
}

static void write_inside(struct row_run *r)
{
    write_of(r, window_to(r->bench, 8), 8);
}

static void write_before(struct row_run *r)
{
    write_of(r, window_to(r->bench, 0) - 1, 2);
}

static void write_behind(struct row_run *r)
{
    write_of(r, window_to(r->bench, WINDOW_SIZE), 1);
}

static void write_over(struct row_run *r)
{
    write_of(r, window_to(r->bench, WINDOW_SIZE - 1), 2);
}

static void write_wraps(struct row_run *r)
{
    write_of(r, UINT64_MAX - 3, 8);
}

static void read_of(struct row_run *r, uint64_t from, uint32_t size)
{
    stream_read(&r->stream, r->link->read_msn, 0x2200, 0x7f00aa000000, size, arrange(r), from);
}

static void read_inside(struct row_run *r)
{
    read_of(r, window_to(r->bench, 8), 8);
}

static void read_before(struct row_run *r)
{
    read_of(r, window_to(r->bench, 0) - 1, 2);
}

static void read_over(struct row_run *r)
{
    read_of(r, window_to(r->bench, WINDOW_SIZE - 1), 2);
}

static void read_wraps(struct row_run *r)
{
    read_of(r, UINT64_MAX - 3, 8);
}

static void send_invalidates(struct row_run *r)
{
    stream_untagged(&r->stream, 0x41, 0x44, arrange(r), 0, 1, 0, r->octets, 4);
}

#define WRITE(row, builder, condition, code)                                                       \
    {                                                                                              \
        .name = row, .build = builder, .param = condition, .error = code, .headers = PEER_DDP      \
    }
#define READ(row, builder, condition, code)                                                        \
    {                                                                                              \
        .name = row, .build = builder, .param = condition, .error = code, .headers = PEER_DDP_READ \
    }
#define INVALIDATE(row, condition)                                                                 \
    {                                                                                              \
        .name = row, .build = send_invalidates, .param = condition, .error = 0x0109,               \
        .headers = PEER_DDP, .fills = true, .failed = STATUS_ACCESS_VIOLATION                      \
    }

static const struct row rows[] = {
    WRITE("write, before the window", write_before, BOUND, 0x1101),
    WRITE("write, behind it", write_behind, BOUND, 0x1101),
    WRITE("write, over its end", write_over, BOUND, 0x1101),
    WRITE("write, wraps", write_wraps, BOUND, 0x1103),
    WRITE("write, no right", write_inside, READ_ONLY, 0x1100),
    WRITE("write, invalidated", write_inside, INVALID, 0x1100),
    WRITE("write, bound anew", write_inside, OLDER, 0x1100),
    WRITE("write, another QP", write_inside, ELSEWHERE, 0x1102),
    READ("read, before the window", read_before, BOUND, 0x0101),
    READ("read, over its end", read_over, BOUND, 0x0101),
    READ("read, wraps", read_wraps, BOUND, 0x0104),
    READ("read, no right", read_inside, WRITE_ONLY, 0x0102),
    READ("read, invalidated", read_inside, INVALID, 0x0100),
    READ("read, bound anew", read_inside, OLDER, 0x0100),
    READ("read, another QP", read_inside, ELSEWHERE, 0x0103),
    INVALIDATE("invalidate, invalidated", INVALID),
    INVALIDATE("invalidate, bound anew", OLDER),
    INVALIDATE("invalidate, another QP", ELSEWHERE),
};

/* Whole, octet by octet, and with the end as initiator. */
static void refused(void **state)
{
    static struct bench bench;
    static struct link other;

    (void)state;
    bench_open(&bench, NULL);
    link_init(&other);
    link_open(&bench, &other, false);
    window_open(&bench);
    elsewhere = &other;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (unsigned how = 0; how < 3; how++) {
            row_play(&bench, &other, &rows[i], how == 2, how == 1);
            if (rows[i].param == ELSEWHERE)
                invalidate_over(&other); /* it was still bound */
        }
    link_close(&other);
    CLOSE(window, NdkCloseMw);
    bench_close(&bench);
}

/* ---- what is taken -------------------------------------------------------------------------- */

/* Writes and Reads inside the window and a Send that invalidates it, in both roles. */
static void taken(void **state)
{
    (void)state;
    for (int active = 0; active < 2; active++) {
        struct wire w;
        struct bench *b = &w.bench;
        const struct peer_fpdu *f;
        NDK_RESULT_EX result;
        uint32_t token;

        wire_open(&w, NULL, active != 0);
        window_open(b);
        for (unsigned round = 0; round < 5; round++) {
            token = bind_over(b, &w.link, READABLE | WRITABLE);
            stream_write(&w.s, token, window_to(b, 0), w.octets + round, WINDOW_SIZE);
            memcpy(b->before + TARGET_AT + WINDOW_AT, w.octets + round, WINDOW_SIZE);
            stream_read(&w.s, w.link.read_msn++, 0x2200, 0x7f00aa000000, WINDOW_SIZE, token,
                        window_to(b, 0));
            wire_send(&w);
            f = peer_fpdu(&w.link.peer);
            assert_int_equal(f->opcode, 2);
            assert_int_equal(f->stag, 0x2200);
            assert_int_equal(f->payload_length, WINDOW_SIZE);
            assert_memory_equal(f->payload, w.octets + round, WINDOW_SIZE);
            link_receive(b, &w.link, 0);
            stream_untagged(&w.s, 0x41, round % 2 ? 0x46 : 0x44, token, 0, w.link.send_msn++, 0,
                            NULL, 0);
            wire_send(&w);
            result = expect_result(&w.link.end.receive, "invalidated", 1, STATUS_SUCCESS);
            assert_int_equal(result.Type, NdkOperationTypeReceiveAndInvalidate);
            assert_int_equal(result.TypeSpecificCompletionOutput, token);
            bench_unchanged(b, "taken");
        }
        CLOSE(window, NdkCloseMw);
        wire_close(&w);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(taken),
        cmocka_unit_test(refused),
    };

    return cmocka_run_group_tests_name("wire_window", tests, NULL, NULL);
}
