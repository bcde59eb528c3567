// SPDX-License-Identifier: MIT
/*
 * RDMAP between the end and a foreign peer when both behave: Reads in both directions, limits and
 * fences, solicited events, invalidation, the order of completions (W-79..W-96, W-44, W-45, M-72).
 * Names carry the row's number.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "ends.h"
#include "peer.h"

static struct wire t;

#define QP     t.link.end.qp
#define CALL   QP->Dispatch
#define CTX(n) ((void *)(uintptr_t)(n))

static void expect_fpdu(unsigned opcode, const char *row)
{
    const struct peer_fpdu *f = peer_fpdu(&t.link.peer);

    if (f->opcode != opcode)
        test_fail("%s: opcode %u, not %u", row, f->opcode, opcode);
}

static void expect_read_request(unsigned i, const char *row)
{
    expect_fpdu(1, row);
    if (t.link.peer.got.source_stag != 0x7700 + i)
        test_fail("%s: a Read of 0x%x, not number %u", row, t.link.peer.got.source_stag, i);
}

/* The Response to the Read Request that was received last. */
static void respond(uint32_t length)
{
    const struct peer_fpdu *f = &t.link.peer.got;

    stream_response(&t.s, true, f->sink_stag, f->sink_to, t.octets, length);
    wire_send(&t);
}

static void send_empty(uintptr_t context, ULONG flags)
{
    assert_int_equal(CALL->NdkSend(QP, CTX(context), NULL, 0, flags), STATUS_SUCCESS);
}

/* ---- W-79: invalidation --------------------------------------------------------------------- */

struct fast {
    NDK_MR *mr;
    uint8_t *page;
    UINT32 token;
};

static void fast_open(struct fast *fast)
{
    NDK_LOGICAL_ADDRESS at;
    struct wait w;
    NTSTATUS status;

    fast->page = aligned_alloc(PAGE, PAGE);
    assert_non_null(fast->page);
    memset(fast->page, 0, PAGE);
    wait_init(&w);
    status = t.bench.pd->Dispatch->NdkCreateMr(t.bench.pd, TRUE, wait_create, &w, &fast->mr);
    assert_int_equal(wait_end(&w, status), STATUS_SUCCESS);
    if (status == STATUS_PENDING)
        fast->mr = (NDK_MR *)(void *)w.object;
    wait_init(&w);
    status = fast->mr->Dispatch->NdkInitializeFastRegisterMr(fast->mr, 1, TRUE, wait_request, &w);
    assert_int_equal(wait_end(&w, status), STATUS_SUCCESS);
    at.QuadPart = (LONGLONG)(uintptr_t)fast->page;
    assert_int_equal(
        CALL->NdkFastRegister(QP, CTX(77), fast->mr, 1, &at, 0, PAGE, fast->page,
                              NDK_OP_FLAG_ALLOW_REMOTE_READ | NDK_OP_FLAG_ALLOW_REMOTE_WRITE),
        STATUS_SUCCESS);
    fast->token = fast->mr->Dispatch->NdkGetRemoteTokenFromMr(fast->mr);
    expect_result(&t.link.end.initiator, "fast register", 77, STATUS_SUCCESS);
}

static void fast_close(struct fast *fast)
{
    CLOSE(fast->mr, NdkCloseMr);
    free(fast->page);
}

static void W_79_invalidation_received(void **state)
{
    struct fast fast;
    NDK_RESULT_EX result;

    (void)state;
    wire_open(&t, NULL, role_active);
    fast_open(&fast);
    for (unsigned i = 0; i < 2; i++)
        link_receive(&t.bench, &t.link, i);
    stream_write(&t.s, fast.token, (uint64_t)(uintptr_t)fast.page, t.octets, 100);
    stream_send(&t.s, 1, t.octets, 1);
    stream_untagged(&t.s, 0x01, 0x46, fast.token, 0, 2, 0, t.octets, 4);
    stream_untagged(&t.s, 0x41, 0x46, fast.token, 0, 2, 4, t.octets + 4, 4);
    wire_send(&t);
    result = expect_result(&t.link.end.receive, "W-79", 1, STATUS_SUCCESS);
    assert_int_equal(result.Type, NdkOperationTypeReceive);
    result = expect_result(&t.link.end.receive, "W-79", 2, STATUS_SUCCESS);
    assert_int_equal(result.Type, NdkOperationTypeReceiveAndInvalidate);
    assert_int_equal(result.TypeSpecificCompletionOutput, fast.token);
    assert_int_equal(result.BytesTransferred, 8);
    assert_memory_equal(fast.page, t.octets, 100);
    /* What comes after it on the same stream meets nothing (M-42). */
    stream_write(&t.s, fast.token, (uint64_t)(uintptr_t)fast.page, t.octets + 1, 100);
    assert_true(peer_send(&t.link.peer, t.s.octets, t.s.length));
    peer_expect_terminate(&t.link.peer, "M-42", 0x1100, PEER_DDP, t.s.octets + t.s.ulpdu_at, 114);
    assert_memory_equal(fast.page, t.octets, 100);
    link_close(&t.link);
    fast_close(&fast);
    stream_free(&t.s);
    bench_close(&t.bench);
}

static void W_79_invalidation_sent(void **state)
{
    NDK_SGE sge;

    (void)state;
    wire_open(&t, "fpdu_max=1500", role_active);
    sge = memory_sge(&t.bench.sink, 0, 4000);
    for (int solicit = 0; solicit < 2; solicit++) {
        uint32_t at = 0;

        assert_int_equal(
            CALL->NdkSendAndInvalidate(QP, CTX(1), &sge, 1,
                                       solicit ? NDK_OP_FLAG_SEND_AND_SOLICIT_EVENT : 0, 0xa101),
            STATUS_SUCCESS);
        for (int segment = 0; segment < 3; segment++) {
            expect_fpdu(solicit ? 6 : 4, "W-79");
            assert_int_equal(t.link.peer.got.ulp32, 0xa101);
            assert_int_equal(t.link.peer.got.mo, at);
            assert_int_equal(t.link.peer.got.msn, 1 + solicit);
            assert_int_equal(t.link.peer.got.last, segment == 2);
            at += t.link.peer.got.payload_length;
        }
        assert_int_equal(at, 4000);
        expect_result(&t.link.end.initiator, "W-79", 1, STATUS_SUCCESS);
    }
    wire_close(&t);
}

/* ---- W-80, W-81: solicited events ----------------------------------------------------------- */

static void W_80_W_81_solicited_events(void **state)
{
    struct queue *queue = &t.link.end.receive;
    NDK_RESULT_EX result;
    unsigned before;

    (void)state;
    wire_open(&t, NULL, role_active);
    for (unsigned i = 0; i < 3; i++)
        link_receive(&t.bench, &t.link, i);
    KeClearEvent(&queue->event);
    before = atomic_load(&queue->notified);
    queue->cq->Dispatch->NdkArmCq(queue->cq, NDK_CQ_NOTIFY_SOLICITED);
    stream_send(&t.s, 1, t.octets, 1);
    stream_send(&t.s, 2, t.octets, 1);
    wire_send(&t);
    wait_until(queue->cq->Dispatch->NdkGetCqResultsEx(queue->cq, &result, 1) == 1, "W-81");
    assert_ptr_equal(result.RequestContext, CTX(1));
    assert_false(wait_event(&queue->event, 100));
    assert_int_equal(atomic_load(&queue->notified), before);
    stream_untagged(&t.s, 0x41, 0x45, 0, 0, 3, 0, t.octets, 7);
    wire_send(&t);
    assert_true(wait_event(&queue->event, WAIT_S * 1000));
    assert_int_equal(atomic_load(&queue->notified), before + 1);
    expect_result(queue, "W-80", 2, STATUS_SUCCESS);
    assert_int_equal(expect_result(queue, "W-80", 3, STATUS_SUCCESS).BytesTransferred, 7);
    /* And what the end sends: opcode 5 when asked, 3 otherwise. */
    send_empty(1, NDK_OP_FLAG_SEND_AND_SOLICIT_EVENT);
    expect_fpdu(5, "W-80");
    send_empty(1, 0);
    expect_fpdu(3, "W-81");
    wire_close(&t);
}

/* ---- W-82..W-85, W-91, M-72: Reads ---------------------------------------------------------- */

/* The Response to a Read of `length` octets at `source`, in as many segments as it takes. */
static void expect_response(const char *row, uint32_t stag, uint64_t to, const uint8_t *source,
                            uint32_t length)
{
    uint32_t at = 0;
    const struct peer_fpdu *f;

    do {
        expect_fpdu(2, row);
        f = &t.link.peer.got;
        if (f->stag != stag || f->to != to + at || f->payload_length > length - at ||
            (f->payload_length == 0 && length))
            test_fail("%s: a Response of %u octets at %u", row, f->payload_length, at);
        assert_memory_equal(f->payload, source + at, f->payload_length);
        at += f->payload_length;
        assert_int_equal(f->last, at == length);
    } while (at < length);
}

#define MIB (1u << 20)

static void W_82_W_83_W_84_reads_of_the_peer(void **state)
{
    struct memory large;

    (void)state;
    wire_open(&t, role_active ? "fpdu_max=1442" : NULL, role_active);
    make_memory(t.bench.pd, MIB, NDK_MR_FLAG_ALLOW_REMOTE_READ, &large);
    fill(large.data, MIB, 8);
    stream_read(&t.s, t.link.read_msn++, 0x2200, 0x7f00aa000000, MIB, large.remote,
                (uint64_t)(uintptr_t)large.data);
    stream_read(&t.s, t.link.read_msn++, 0, 5, 10, large.remote,
                (uint64_t)(uintptr_t)large.data + MIB - 10);
    stream_read(&t.s, t.link.read_msn++, 0x2400, 6, 0, 0xdeadbe00, UINT64_MAX);
    stream_read(&t.s, t.link.read_msn++, 0x2500, 7, 0, 0, 0);
    wire_send(&t);
    expect_response("W-82", 0x2200, 0x7f00aa000000, large.data, MIB);
    expect_response("W-83", 0, 5, large.data + MIB - 10, 10);
    expect_response("W-84", 0x2400, 6, large.data, 0);
    expect_response("W-84", 0x2500, 7, large.data, 0);
    wire_sync(&t, "W-82");
    free_memory(&large);
    wire_close(&t);
}

static void W_82_W_85_reads_of_the_end(void **state)
{
    struct memory large;
    static uint8_t octets[60000];
    NDK_SGE sges[2];
    uint32_t stag, at = 0;

    (void)state;
    wire_open(&t, NULL, role_active);
    make_memory(t.bench.pd, MIB, NDK_MR_FLAG_ALLOW_LOCAL_WRITE | NDK_MR_FLAG_RDMA_READ_SINK,
                &large);
    sges[0] = memory_sge(&large, 0, 70001);
    sges[1] = memory_sge(&large, 70001, MIB - 70001);
    assert_int_equal(CALL->NdkRead(QP, CTX(1), sges, 2, 0x123456789, 0x77, 0), STATUS_SUCCESS);
    expect_fpdu(1, "W-82");
    assert_int_equal(t.link.peer.got.size, MIB);
    assert_int_equal(t.link.peer.got.source_to, 0x123456789);
    assert_int_equal(t.link.peer.got.source_stag, 0x77);
    stag = t.link.peer.got.sink_stag;
    while (at < MIB) {
        uint32_t n = MIB - at < sizeof octets ? MIB - at : (uint32_t)sizeof octets;

        fill(octets, n, at);
        stream_response(&t.s, at + n == MIB, stag, t.link.peer.got.sink_to + at, octets, n);
        wire_send(&t);
        at += n;
    }
    expect_result(&t.link.end.initiator, "W-82", 1, STATUS_SUCCESS);
    for (at = 0; at < MIB; at += (uint32_t)sizeof octets)
        assert_true(
            check(large.data + at, MIB - at < sizeof octets ? MIB - at : sizeof octets, at));
    assert_int_equal(CALL->NdkRead(QP, CTX(2), NULL, 0, 0, 0, 0), STATUS_SUCCESS);
    expect_fpdu(1, "W-85");
    assert_int_equal(t.link.peer.got.size, 0);
    expect_no_result(&t.link.end.initiator, "W-85");
    respond(0);
    expect_result(&t.link.end.initiator, "W-85", 2, STATUS_SUCCESS);
    free_memory(&large);
    wire_close(&t);
}

static void W_91_write_then_read(void **state)
{
    (void)state;
    wire_open(&t, NULL, role_active);
    for (unsigned i = 0; i < 50; i++) {
        stream_write(&t.s, t.bench.target.remote, target_to(&t.bench, i), t.octets + 3 * i, 200);
        stream_read(&t.s, t.link.read_msn++, 0x2200, 0, 200, t.bench.target.remote,
                    target_to(&t.bench, i));
        wire_send(&t);
        expect_response("W-91", 0x2200, 0, t.octets + 3 * i, 200);
    }
    wire_close(&t);
}

/* 4 GiB less one, served in segments; the peer has enough after 32 MiB. */
static void M_72_huge_read(void **state)
{
    const size_t huge = 0xffffffffu;
    uint8_t *at = mmap(NULL, huge, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    struct memory memory;
    uint32_t got = 0;

    (void)state;
    if (at == MAP_FAILED)
        skip();
    wire_open(&t, NULL, role_active);
    bench_register(t.bench.pd, at, huge, NDK_MR_FLAG_ALLOW_REMOTE_READ, &memory);
    stream_read(&t.s, t.link.read_msn, 0x2200, 0, 0xffffffffu, memory.remote,
                (uint64_t)(uintptr_t)at);
    wire_send(&t);
    while (got < 32 * MIB) {
        expect_fpdu(2, "M-72");
        assert_true(t.link.peer.got.to == got && !t.link.peer.got.last);
        got += t.link.peer.got.payload_length;
    }
    peer_reset(&t.link.peer);
    expect_event(&t.link.end, "M-72", 2, 0);
    bench_forget(&memory);
    wire_close(&t);
    munmap(at, huge);
}

/* ---- W-44, W-45, W-86, W-87: limits --------------------------------------------------------- */

static void never_more_open(const char *row, uint16_t limit, bool active)
{
    unsigned asked = 0, answered = 0;
    uint32_t stags[8];
    uint64_t tos[8];

    wire_bench(&t, NULL);
    t.link.reads = limit;
    link_open(&t.bench, &t.link, active);
    for (unsigned i = 0; i < 6; i++)
        link_read(&t.bench, &t.link, i, 16);
    while (answered < 6) {
        while (asked < 6 && asked - answered < limit) {
            expect_read_request(asked, row);
            assert_int_equal(t.link.peer.got.msn, asked + (active ? 2 : 1));
            stags[asked] = t.link.peer.got.sink_stag;
            tos[asked++] = t.link.peer.got.sink_to;
        }
        if (!peer_quiet(&t.link.peer, 30))
            test_fail("%s: more than %u Reads open", row, limit);
        stream_response(&t.s, true, stags[answered], tos[answered], t.octets + answered, 16);
        wire_send(&t);
        expect_result(&t.link.end.initiator, row, answered + 1, STATUS_SUCCESS);
        assert_memory_equal(t.bench.arena + SINK_AT + 256 * answered, t.octets + answered, 16);
        answered++;
    }
    wire_close(&t);
}

static void W_44_W_45_W_86_read_limits(void **state)
{
    (void)state;
    never_more_open(role_active ? "W-45" : "W-44", 2, role_active);
    never_more_open("W-86", 1, role_active);
}

static void W_87_send_behind_held_read(void **state)
{
    (void)state;
    wire_bench(&t, NULL);
    t.link.reads = 1;
    link_open(&t.bench, &t.link, role_active);
    link_read(&t.bench, &t.link, 0, 16);
    link_read(&t.bench, &t.link, 1, 16);
    send_empty(3, 0);
    expect_read_request(0, "W-87");
    assert_true(peer_quiet(&t.link.peer, 100));
    respond(16);
    expect_read_request(1, "W-87");
    expect_fpdu(3, "W-87");
    wire_close(&t);
}

/* ---- W-88..W-90, W-93..W-96: order ---------------------------------------------------------- */

static void W_88_W_89_fences(void **state)
{
    (void)state;
    wire_open(&t, NULL, role_active);
    link_read(&t.bench, &t.link, 0, 16);
    send_empty(2, 0);
    expect_read_request(0, "W-88");
    stream_response(&t.s, true, t.link.peer.got.sink_stag, t.link.peer.got.sink_to, t.octets, 16);
    expect_fpdu(3, "W-88"); /* no Response yet */
    send_empty(3, NDK_OP_FLAG_READ_FENCE);
    assert_true(peer_quiet(&t.link.peer, 100));
    wire_send(&t);
    expect_fpdu(3, "W-89");
    assert_memory_equal(t.bench.arena + SINK_AT, t.octets, 16);
    for (unsigned i = 1; i <= 3; i++)
        expect_result(&t.link.end.initiator, "W-89", i, STATUS_SUCCESS);
    wire_close(&t);
}

static void W_90_W_96_writes_and_sends(void **state)
{
    (void)state;
    wire_open(&t, NULL, role_active);
    for (unsigned round = 0; round < 40; round++) {
        link_receive(&t.bench, &t.link, round % 8);
        for (unsigned i = 0; i < 64; i++)
            stream_tagged(&t.s, i == 63 ? 0xc1 : 0x81, 0x40, t.bench.target.remote,
                          target_to(&t.bench, i * 128), t.octets + (round * 7 + i) % 1000, 128);
        stream_send(&t.s, t.link.send_msn++, t.octets + round, 20);
        wire_send(&t);
        expect_result(&t.link.end.receive, "W-90", round % 8 + 1, STATUS_SUCCESS);
        for (unsigned i = 0; i < 64; i++)
            assert_memory_equal(t.bench.arena + TARGET_AT + i * 128,
                                t.octets + (round * 7 + i) % 1000, 128);
        assert_memory_equal(t.bench.arena + INBOX_AT + inbox_at(round % 8), t.octets + round, 20);
    }
    wire_close(&t);
}

static void W_93_completions_in_posting_order(void **state)
{
    NDK_SGE sge;

    (void)state;
    wire_open(&t, NULL, role_active);
    sge = memory_sge(&t.bench.sink, 4096, 100);
    send_empty(1, 0);
    link_read(&t.bench, &t.link, 1, 16);
    assert_int_equal(CALL->NdkWrite(QP, CTX(3), &sge, 1, 0x1000, 0x10, 0), STATUS_SUCCESS);
    send_empty(4, 0);
    expect_result(&t.link.end.initiator, "W-93", 1, STATUS_SUCCESS);
    expect_fpdu(3, "W-93");
    expect_read_request(1, "W-93");
    stream_response(&t.s, true, t.link.peer.got.sink_stag, t.link.peer.got.sink_to, t.octets, 16);
    expect_fpdu(0, "W-93");
    expect_fpdu(3, "W-93");
    test_sleep_ms(20);
    expect_no_result(&t.link.end.initiator, "W-93");
    wire_send(&t);
    for (unsigned i = 2; i <= 4; i++)
        expect_result(&t.link.end.initiator, "W-93", i, STATUS_SUCCESS);
    wire_close(&t);
}

/* Silent requests, one that fails, later ones: the failure is reported, the later ones flushed. */
static void W_94_flush_behind_a_failure(void **state)
{
    uint8_t body[52] = {0x01, 0x01, 0xe0, 0, 0, 46};

    (void)state;
    wire_open(&t, NULL, role_active);
    for (unsigned i = 0; i < 5; i++)
        send_empty(100, NDK_OP_FLAG_SILENT_SUCCESS);
    link_read(&t.bench, &t.link, 1, 16);
    send_empty(3, NDK_OP_FLAG_READ_FENCE | NDK_OP_FLAG_SILENT_SUCCESS);
    send_empty(4, NDK_OP_FLAG_READ_FENCE);
    for (unsigned i = 0; i < 5; i++)
        expect_fpdu(3, "W-94");
    expect_read_request(1, "W-94");
    memcpy(body + 6, t.link.peer.got.octets + 2, 46);
    stream_terminate(&t.s, body, sizeof body);
    wire_send(&t);
    expect_result(&t.link.end.initiator, "W-94", 2, STATUS_REMOTE_RESOURCES);
    expect_result(&t.link.end.initiator, "W-94", 3, STATUS_CANCELLED);
    expect_result(&t.link.end.initiator, "W-94", 4, STATUS_CANCELLED);
    expect_event(&t.link.end, "W-94", 4, 0x0101);
    expect_no_result(&t.link.end.initiator, "W-94");
    wire_close(&t);
}

static void W_95_read_sink_gone(void **state)
{
    struct memory sink;
    NDK_SGE sge;
    static uint8_t ours[PAGE];

    (void)state;
    wire_open(&t, NULL, role_active);
    make_memory(t.bench.pd, PAGE, NDK_MR_FLAG_ALLOW_LOCAL_WRITE | NDK_MR_FLAG_RDMA_READ_SINK,
                &sink);
    memset(ours, 0x55, sizeof ours);
    memcpy(sink.data, ours, PAGE);
    sge = memory_sge(&sink, 0, 64);
    assert_int_equal(CALL->NdkRead(QP, CTX(1), &sge, 1, 0, 0x77, 0), STATUS_SUCCESS);
    send_empty(2, NDK_OP_FLAG_READ_FENCE);
    expect_fpdu(1, "W-95");
    bench_forget(&sink);
    stream_response(&t.s, true, t.link.peer.got.sink_stag, t.link.peer.got.sink_to, t.octets, 64);
    wire_send(&t);
    peer_expect_terminate(&t.link.peer, "W-95", 0x1000, PEER_BARE, NULL, 0);
    expect_result(&t.link.end.initiator, "W-95", 1, STATUS_ACCESS_VIOLATION);
    expect_result(&t.link.end.initiator, "W-95", 2, STATUS_CANCELLED);
    expect_event(&t.link.end, "W-95", 3, 0x1000);
    assert_memory_equal(sink.data, ours, PAGE);
    free(sink.data);
    wire_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(W_79_invalidation_received),
        cmocka_unit_test(W_79_invalidation_sent),
        cmocka_unit_test(W_80_W_81_solicited_events),
        cmocka_unit_test(W_82_W_83_W_84_reads_of_the_peer),
        cmocka_unit_test(W_82_W_85_reads_of_the_end),
        cmocka_unit_test(W_91_write_then_read),
        cmocka_unit_test(M_72_huge_read),
        cmocka_unit_test(W_44_W_45_W_86_read_limits),
        cmocka_unit_test(W_87_send_behind_held_read),
        cmocka_unit_test(W_88_W_89_fences),
        cmocka_unit_test(W_90_W_96_writes_and_sends),
        cmocka_unit_test(W_93_completions_in_posting_order),
        cmocka_unit_test(W_94_flush_behind_a_failure),
        cmocka_unit_test(W_95_read_sink_gone),
    };

    return RUN_IN_ROLES("wire_order", tests);
}
