// SPDX-License-Identifier: MIT
/*
 * Resets that do not come alone: behind the peer's FIN, while transmit is blocked, and at the very
 * moment a post transmits, so that the sender takes the socket's error and the receiver only sees
 * an end. Each must be told from a FIN, since a FIN flushes nothing and a reset everything.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/reason.h"
#include "ends.h"
#include "peer.h"

#define ROUNDS 100u

/* The peer reset behind its FIN: receives that were kept are given back. */
static void reset_behind_a_fin(void **state)
{
    struct bench b;

    (void)state;
    bench_open(&b, NULL);
    for (int active = 0; active < 2; active++) {
        struct link l;

        link_init(&l);
        link_open(&b, &l, active);
        link_receive(&b, &l, 0);
        link_receive(&b, &l, 1);
        peer_half_close(&l.peer);
        expect_event(&l.end, "FIN", REASON_PEER_FIN, 0);
        expect_no_result(&l.end.receive, "the FIN flushes nothing");
        peer_reset(&l.peer);
        expect_result(&l.end.receive, "reset", 1, STATUS_CANCELLED);
        expect_result(&l.end.receive, "reset", 2, STATUS_CANCELLED);
        assert_int_equal(atomic_load(&l.end.disconnects), 1);
        link_close(&l);
    }
    bench_close(&b);
}

/* Behind the FIN a Send that TCP cannot finish: it completes when the reset comes. */
static void reset_behind_a_fin_with_a_blocked_send(void **state)
{
    enum { BIG = 16u << 20 };
    struct bench b;
    struct link l;
    struct memory big;
    NDK_SGE sge;

    (void)state;
    bench_open(&b, NULL);
    link_init(&l);
    l.peer.receive_room = 65536;
    link_open(&b, &l, true);
    make_memory(b.pd, BIG, NDK_MR_FLAG_ALLOW_LOCAL_WRITE, &big);
    sge = memory_sge(&big, 0, BIG);
    peer_half_close(&l.peer);
    expect_event(&l.end, "FIN", REASON_PEER_FIN, 0);
    must(NULL, l.end.qp->Dispatch->NdkSend(l.end.qp, (void *)(uintptr_t)1, &sge, 1, 0), "NdkSend");
    must(NULL, l.end.qp->Dispatch->NdkSend(l.end.qp, (void *)(uintptr_t)2, &sge, 1, 0), "NdkSend");
    expect_no_result(&l.end.initiator, "blocked");
    peer_reset(&l.peer);
    expect_result(&l.end.initiator, "reset", 1, STATUS_CANCELLED);
    expect_result(&l.end.initiator, "reset", 2, STATUS_CANCELLED);
    link_close(&l);
    free_memory(&big);
    bench_close(&b);
}

/* Posts keep transmitting while the peer resets: whoever meets the error first, all that was posted
 * completes, receives too, and the event says reset. */
static void reset_while_transmit_runs(void **state)
{
    struct bench b;

    (void)state;
    bench_open(&b, NULL);
    for (unsigned round = 0; round < ROUNDS; round++) {
        struct link l;
        NDK_QP *qp;
        NTSTATUS status;
        uintptr_t posted = 0;

        link_init(&l);
        link_open(&b, &l, round % 2);
        qp = l.end.qp;
        link_receive(&b, &l, 0);
        peer_reset(&l.peer);
        do
            status = qp->Dispatch->NdkSend(qp, (void *)(posted + 1), NULL, 0, 0);
        while (status == STATUS_SUCCESS && ++posted < END_DEPTH);
        expect_event(&l.end, "reset", REASON_PEER_RST, 0);
        expect_result(&l.end.receive, "reset", 1, STATUS_CANCELLED);
        for (uintptr_t i = 0; i < posted; i++)
            assert_ptr_equal(queue_next(&l.end.initiator).RequestContext, (void *)(i + 1));
        expect_no_result(&l.end.initiator, "reset");
        link_close(&l);
    }
    bench_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(reset_behind_a_fin),
        cmocka_unit_test(reset_behind_a_fin_with_a_blocked_send),
        cmocka_unit_test(reset_while_transmit_runs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
