// SPDX-License-Identifier: MIT
/*
 * DDP as a foreign peer speaks it: segments that a sink must take (W-64..W-76), and those that it
 * must answer with a Terminate without touching memory (M-34..M-58). Names carry the row's number.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "ends.h"
#include "peer.h"

/* ---- M-34..M-45: tagged --------------------------------------------------------------------- */

static void write_with(struct row_run *r, uint8_t ddp, uint32_t stag, uint64_t to, uint32_t length)
{
    stream_tagged(&r->stream, ddp, 0x40, stag, to, r->octets, length);
}

static void write_to(struct row_run *r, uint32_t stag, size_t arena_offset, uint32_t length)
{
    write_with(r, 0xc1, stag, (uint64_t)(uintptr_t)(r->bench->arena + arena_offset), length);
}

static void version_0(struct row_run *r)
{
    write_with(r, 0xc0, r->bench->target.remote, target_to(r->bench, 0), 32);
}

static void version_2(struct row_run *r)
{
    write_with(r, 0xc2, r->bench->target.remote, target_to(r->bench, 0), 32);
}

static void version_3(struct row_run *r)
{
    write_with(r, 0xc3, r->bench->target.remote, target_to(r->bench, 0), 32);
}

static void stag_unknown(struct row_run *r)
{
    write_to(r, 0xdeadbe00, TARGET_AT, 32);
}

static void stag_key(struct row_run *r)
{
    write_to(r, r->bench->target.remote ^ 1, TARGET_AT, 32);
}

static void stag_local(struct row_run *r)
{
    write_to(r, r->bench->target.local, TARGET_AT, 32);
}

static void stag_foreign(struct row_run *r)
{
    write_to(r, r->bench->foreign.remote, FOREIGN_AT, 32);
}

static void no_right(struct row_run *r)
{
    write_to(r, r->bench->readable.remote, READABLE_AT, 32);
}

static void below(struct row_run *r)
{
    write_to(r, r->bench->target.remote, TARGET_AT - 1, 32);
}

static void end_beyond(struct row_run *r)
{
    write_to(r, r->bench->target.remote, TARGET_AT + TARGET_SIZE - 31, 32);
}

static void far_above(struct row_run *r)
{
    write_to(r, r->bench->target.remote, TARGET_AT + TARGET_SIZE, 1);
}

static void at_zero(struct row_run *r)
{
    write_with(r, 0xc1, r->bench->target.remote, 0, 32);
}

static void wraps(struct row_run *r)
{
    write_with(r, 0xc1, r->bench->target.remote, UINT64_MAX - 15, 32);
}

static void stag_zero(struct row_run *r)
{
    write_to(r, 0, TARGET_AT, 1);
}

static void stag_gone(struct row_run *r)
{
    write_to(r, r->bench->stale, TARGET_AT, 32);
}

static void later_segment_beyond(struct row_run *r)
{
    write_with(r, 0x81, r->bench->target.remote, target_to(r->bench, 64), 0);
    write_to(r, r->bench->target.remote, TARGET_AT + TARGET_SIZE - 8, 9);
}

static const struct row tagged_rows[] = {
    {.name = "M-34 DV 0", .build = version_0, .error = 0x1104, .headers = PEER_DDP},
    {.name = "M-34 DV 2", .build = version_2, .error = 0x1104, .headers = PEER_DDP},
    {.name = "M-34 DV 3", .build = version_3, .error = 0x1104, .headers = PEER_DDP},
    {.name = "M-35 STag unknown", .build = stag_unknown, .error = 0x1100, .headers = PEER_DDP},
    {.name = "M-35 key stale", .build = stag_key, .error = 0x1100, .headers = PEER_DDP},
    {.name = "M-35 local token", .build = stag_local, .error = 0x1100, .headers = PEER_DDP},
    {.name = "M-36 other PD", .build = stag_foreign, .error = 0x1102, .headers = PEER_DDP},
    {.name = "M-37 no right", .build = no_right, .error = 0x1100, .headers = PEER_DDP},
    {.name = "M-38 below", .build = below, .error = 0x1101, .headers = PEER_DDP},
    {.name = "M-38 TO 0", .build = at_zero, .error = 0x1101, .headers = PEER_DDP},
    {.name = "M-39 end beyond", .build = end_beyond, .error = 0x1101, .headers = PEER_DDP},
    {.name = "M-39 all beyond", .build = far_above, .error = 0x1101, .headers = PEER_DDP},
    {.name = "M-39 later segment",
     .build = later_segment_beyond,
     .error = 0x1101,
     .headers = PEER_DDP},
    {.name = "M-40 wrap", .build = wraps, .error = 0x1103, .headers = PEER_DDP},
    {.name = "M-41 STag 0", .build = stag_zero, .error = 0x1100, .headers = PEER_DDP},
    {.name = "M-42 STag gone", .build = stag_gone, .error = 0x1100, .headers = PEER_DDP},
};

static void malformed_tagged(void **state)
{
    (void)state;
    rows_play(tagged_rows, sizeof tagged_rows / sizeof tagged_rows[0], NULL);
}

/* ---- M-46..M-58: untagged ------------------------------------------------------------------- */

static void send_with(struct row_run *r, uint8_t ddp, uint32_t qn, uint32_t msn, uint32_t mo,
                      uint32_t length)
{
    stream_untagged(&r->stream, ddp, 0x43, 0, qn, msn, mo, r->octets, length);
}

static void untagged_version_0(struct row_run *r)
{
    send_with(r, 0x40, 0, 1, 0, 8);
}

static void untagged_version_2(struct row_run *r)
{
    send_with(r, 0x42, 0, 1, 0, 8);
}

static void untagged_version_3(struct row_run *r)
{
    send_with(r, 0x43, 0, 1, 0, 8);
}

static void queue_4(struct row_run *r)
{
    send_with(r, 0x41, 4, 1, 0, 8);
}

static void queue_max(struct row_run *r)
{
    send_with(r, 0x41, 0xffffffff, 1, 0, 8);
}

static void queue_1(struct row_run *r)
{
    send_with(r, 0x41, 1, 1, 0, 8);
}

static void queue_2(struct row_run *r)
{
    send_with(r, 0x41, 2, 1, 0, 8);
}

static void queue_3(struct row_run *r)
{
    send_with(r, 0x41, 3, 1, 0, 8);
}

static void read_on_queue_0(struct row_run *r)
{
    uint8_t body[28];

    stream_read_body(body, 1, 2, 8, r->bench->target.remote, target_to(r->bench, 0));
    stream_untagged(&r->stream, 0x41, 0x41, 0, 0, r->link->read_msn, 0, body, sizeof body);
}

static void msn_high(struct row_run *r)
{
    send_with(r, 0x41, 0, 2, 0, 8);
}

static void msn_repeated(struct row_run *r)
{
    send_with(r, 0x41, 0, 1, 0, 8);
    send_with(r, 0x41, 0, 1, 0, 8);
}

static void msn_zero(struct row_run *r)
{
    send_with(r, 0x41, 0, 0, 0, 8);
}

static void msn_max(struct row_run *r)
{
    send_with(r, 0x41, 0, 0xffffffff, 0, 8);
}

static void read_msn_high(struct row_run *r)
{
    stream_read(&r->stream, r->link->read_msn + 1, 1, 2, 8, r->bench->target.remote,
                target_to(r->bench, 0));
}

static void no_receive(struct row_run *r)
{
    send_with(r, 0x41, 0, 1, 0, 16);
}

static void offset_at_first(struct row_run *r)
{
    send_with(r, 0x01, 0, 1, 4, 8);
}

static void offset_gap(struct row_run *r)
{
    send_with(r, 0x01, 0, 1, 0, 8);
    send_with(r, 0x41, 0, 1, 9, 8);
}

static void offset_overlap(struct row_run *r)
{
    send_with(r, 0x01, 0, 1, 0, 8);
    send_with(r, 0x41, 0, 1, 7, 8);
}

static void offset_wraps(struct row_run *r)
{
    send_with(r, 0x41, 0, 1, 0xfffffffc, 8);
}

static void too_long(struct row_run *r)
{
    send_with(r, 0x41, 0, 1, 0, RECEIVE_LENGTH + 1);
}

static void too_long_later(struct row_run *r)
{
    send_with(r, 0x01, 0, 1, 0, RECEIVE_LENGTH);
    send_with(r, 0x41, 0, 1, RECEIVE_LENGTH, 1);
}

static void msn_changes(struct row_run *r)
{
    send_with(r, 0x01, 0, 1, 0, 8);
    send_with(r, 0x41, 0, 2, 8, 8);
}

static void opcode_changes(struct row_run *r)
{
    send_with(r, 0x01, 0, 1, 0, 8);
    stream_untagged(&r->stream, 0x41, 0x45, 0, 0, 1, 8, r->octets, 8);
}

static void invalidate_changes(struct row_run *r)
{
    stream_untagged(&r->stream, 0x01, 0x44, 0x1100, 0, 1, 0, r->octets, 8);
    stream_untagged(&r->stream, 0x41, 0x44, 0x1101, 0, 1, 8, r->octets, 8);
}

static void empties(struct row_run *r)
{
    for (int i = 0; i < 17; i++)
        send_with(r, 0x01, 0, 1, 0, 0);
}

static void no_end(struct row_run *r)
{
    for (uint32_t at = 0; at <= RECEIVE_LENGTH; at += 64)
        send_with(r, 0x01, 0, 1, at, 64);
}

#define SEND_ROW(row, builder, wire)                                                               \
    {                                                                                              \
        .name = row, .build = builder, .error = wire, .headers = PEER_DDP                          \
    }

static const struct row untagged_rows[] = {
    SEND_ROW("M-46 DV 0", untagged_version_0, 0x1206),
    SEND_ROW("M-46 DV 2", untagged_version_2, 0x1206),
    SEND_ROW("M-46 DV 3", untagged_version_3, 0x1206),
    SEND_ROW("M-47 QN 4", queue_4, 0x1201),
    SEND_ROW("M-47 QN ffffffff", queue_max, 0x1201),
    SEND_ROW("M-48 Send on queue 1", queue_1, 0x1201),
    SEND_ROW("M-48 Send on queue 2", queue_2, 0x1201),
    SEND_ROW("M-48 Send on queue 3", queue_3, 0x1201),
    SEND_ROW("M-48 Read Request on queue 0", read_on_queue_0, 0x1201),
    SEND_ROW("M-49 MSN too high", msn_high, 0x1203),
    {.name = "M-49 MSN repeated",
     .build = msn_repeated,
     .error = 0x1203,
     .headers = PEER_DDP,
     .delivered = 1,
     .fills = true},
    SEND_ROW("M-49 Read Request's MSN", read_msn_high, 0x1203),
    SEND_ROW("M-50 MSN 0", msn_zero, 0x1203),
    SEND_ROW("M-50 MSN ffffffff", msn_max, 0x1203),
    {.name = "M-51 no receive",
     .build = no_receive,
     .error = 0x1202,
     .headers = PEER_DDP,
     .no_receives = 1},
    SEND_ROW("M-52 first MO not 0", offset_at_first, 0x1204),
    {.name = "M-53 gap", .build = offset_gap, .error = 0x1204, .headers = PEER_DDP, .fills = true},
    {.name = "M-53 overlap",
     .build = offset_overlap,
     .error = 0x1204,
     .headers = PEER_DDP,
     .fills = true},
    SEND_ROW("M-54 MO wraps", offset_wraps, 0x1204),
    {.name = "M-55 too long",
     .build = too_long,
     .error = 0x1205,
     .headers = PEER_DDP,
     .failed = STATUS_BUFFER_OVERFLOW},
    {.name = "M-55 too long later",
     .build = too_long_later,
     .error = 0x1205,
     .headers = PEER_DDP,
     .failed = STATUS_BUFFER_OVERFLOW,
     .fills = true},
    {.name = "M-56 MSN changes",
     .build = msn_changes,
     .error = 0x1203,
     .headers = PEER_DDP,
     .fills = true},
    {.name = "M-56 opcode changes",
     .build = opcode_changes,
     .error = 0x0206,
     .headers = PEER_DDP,
     .fills = true},
    {.name = "M-56 Invalidate STag changes",
     .build = invalidate_changes,
     .error = 0x0206,
     .headers = PEER_DDP,
     .fills = true},
    SEND_ROW("M-57 empty segments", empties, 0x1204),
    {.name = "M-58 no end",
     .build = no_end,
     .error = 0x1205,
     .headers = PEER_DDP,
     .failed = STATUS_BUFFER_OVERFLOW,
     .fills = true},
};

static void malformed_untagged(void **state)
{
    (void)state;
    rows_play(untagged_rows, sizeof untagged_rows / sizeof untagged_rows[0], NULL);
}

/* ---- W-64..W-76, M-44, M-45, M-57: what is taken --------------------------------------------- */

static struct wire t;

static void W_65_reserved_bits(void **state)
{
    (void)state;
    wire_open(&t, NULL, role_active);
    link_receive(&t.bench, &t.link, 0);
    stream_untagged(&t.s, 0x41 | 0x3c, 0x43 | 0x30, 0x1234, 0, t.link.send_msn++, 0, t.octets, 9);
    stream_tagged(&t.s, 0xc1 | 0x3c, 0x40 | 0x30, t.bench.target.remote, target_to(&t.bench, 7),
                  t.octets, 3);
    wire_send(&t);
    assert_int_equal(expect_result(&t.link.end.receive, "W-65", 1, STATUS_SUCCESS).BytesTransferred,
                     9);
    wire_sync(&t, "W-65");
    memcpy(t.bench.before + INBOX_AT, t.octets, 9);
    memcpy(t.bench.before + TARGET_AT + 7, t.octets, 3);
    bench_unchanged(&t.bench, "W-65");
    wire_close(&t);
}

/* Two segments of what the end sends, with these sizes of payload. */
static void expect_segments(const char *row, uint64_t to, uint32_t first, uint32_t second)
{
    const struct peer_fpdu *f = peer_fpdu(&t.link.peer);
    uint32_t msn = f->msn, stag = f->stag;

    if (f->payload_length != first || f->last || f->mo != 0 || f->to != to)
        test_fail("%s: first segment %u octets, L=%d", row, f->payload_length, f->last);
    assert_memory_equal(f->payload, t.bench.arena + SINK_AT, first);
    f = peer_fpdu(&t.link.peer);
    if (f->payload_length != second || !f->last || f->msn != msn || f->stag != stag)
        test_fail("%s: second segment %u octets, L=%d", row, f->payload_length, f->last);
    if (f->tagged ? f->to != to + first : f->mo != first)
        test_fail("%s: second segment at the wrong place", row);
    assert_memory_equal(f->payload, t.bench.arena + SINK_AT + first, second);
}

static void W_66_W_67_segments(void **state)
{
    NDK_SGE sge;

    (void)state;
    wire_open(&t, "fpdu_max=1500", role_active);
    sge = memory_sge(&t.bench.sink, 0, 2048);
    assert_int_equal(t.link.end.qp->Dispatch->NdkSend(t.link.end.qp, NULL, &sge, 1, 0),
                     STATUS_SUCCESS);
    expect_segments("W-66", 0, 1482, 566);
    assert_int_equal(
        t.link.end.qp->Dispatch->NdkWrite(t.link.end.qp, NULL, &sge, 1, 16384, 0x1234, 0),
        STATUS_SUCCESS);
    expect_segments("W-67", 16384, 1486, 562);
    wire_close(&t);
}

static void W_68_W_70_first_messages(void **state)
{
    const struct peer_fpdu *f;

    (void)state;
    wire_open(&t, NULL, role_active);
    assert_int_equal(t.link.end.qp->Dispatch->NdkSend(t.link.end.qp, NULL, NULL, 0, 0),
                     STATUS_SUCCESS);
    f = peer_fpdu(&t.link.peer);
    assert_int_equal(f->length, 18);
    assert_true(f->last && f->qn == 0 && f->msn == 1 && f->mo == 0);
    link_read(&t.bench, &t.link, 0, 16); /* an end that connects has sent one already */
    f = peer_fpdu(&t.link.peer);
    assert_true(f->opcode == 1 && f->qn == 1 && f->msn == (role_active ? 2 : 1));
    stream_write(&t.s, 0xdeadbe00, 0x1000, t.octets, 32);
    wire_send(&t); /* queue 2 has its own numbers: peer_expect_terminate() wants MSN 1 */
    peer_expect_terminate(&t.link.peer, "W-70", 0x1100, PEER_DDP, t.s.octets + t.s.ulpdu_at, 46);
    wire_close(&t);
}

static void W_69_W_75_writes(void **state)
{
    (void)state;
    wire_open(&t, NULL, role_active);
    stream_write(&t.s, 0xffffffff, UINT64_MAX, NULL, 0);
    stream_write(&t.s, 0, 0, NULL, 0);
    stream_write(&t.s, t.bench.foreign.remote, 0, NULL, 0);
    stream_write(&t.s, t.bench.target.remote, target_to(&t.bench, TARGET_SIZE - 32), t.octets, 32);
    wire_sync(&t, "W-69");
    memcpy(t.bench.before + TARGET_AT + TARGET_SIZE - 32, t.octets, 32);
    bench_unchanged(&t.bench, "W-75");
    wire_close(&t);
}

static void W_72_W_73_W_74_receives(void **state)
{
    NDK_SGE sges[3];

    (void)state;
    wire_open(&t, NULL, role_active);
    sges[0] = memory_sge(&t.bench.inbox, 100, 10);
    sges[1] = memory_sge(&t.bench.inbox, 50, 1);
    sges[2] = memory_sge(&t.bench.inbox, 1000, 100);
    assert_int_equal(
        t.link.end.qp->Dispatch->NdkReceive(t.link.end.qp, (void *)(uintptr_t)7, sges, 3),
        STATUS_SUCCESS);
    stream_untagged(&t.s, 0x01, 0x43, 0, 0, 1, 0, t.octets, 7);
    stream_untagged(&t.s, 0x01, 0x43, 0, 0, 1, 7, t.octets + 7, 9);
    stream_untagged(&t.s, 0x41, 0x43, 0, 0, 1, 16, t.octets + 16, 30);
    t.link.send_msn = 2;
    wire_send(&t);
    assert_int_equal(expect_result(&t.link.end.receive, "W-72", 7, STATUS_SUCCESS).BytesTransferred,
                     46);
    memcpy(t.bench.before + INBOX_AT + 100, t.octets, 10);
    memcpy(t.bench.before + INBOX_AT + 50, t.octets + 10, 1);
    memcpy(t.bench.before + INBOX_AT + 1000, t.octets + 11, 35);
    bench_unchanged(&t.bench, "W-74");
    wire_sync(&t, "W-72");
    wire_close(&t);
}

/* Segments of one Write may go to different places: each is checked by itself. No event. */
static void W_76_M_44_writes_in_segments(void **state)
{
    NDK_RESULT_EX result;

    (void)state;
    wire_open(&t, NULL, role_active);
    stream_tagged(&t.s, 0x81, 0x40, t.bench.target.remote, target_to(&t.bench, 0), t.octets, 64);
    stream_tagged(&t.s, 0x81, 0x40, t.bench.target.remote, target_to(&t.bench, 64), t.octets + 64,
                  64);
    stream_tagged(&t.s, 0x81, 0x40, t.bench.target.remote, target_to(&t.bench, 256), t.octets, 1);
    stream_tagged(&t.s, 0xc1, 0x40, t.bench.target.remote, target_to(&t.bench, 200), t.octets, 2);
    wire_sync(&t, "M-44");
    memcpy(t.bench.before + TARGET_AT, t.octets, 128);
    memcpy(t.bench.before + TARGET_AT + 256, t.octets, 1);
    memcpy(t.bench.before + TARGET_AT + 200, t.octets, 2);
    bench_unchanged(&t.bench, "W-76");
    assert_false(queue_try(&t.link.end.receive, &result, 1));
    assert_false(queue_try(&t.link.end.initiator, &result, 1));
    assert_int_equal(atomic_load(&t.link.end.disconnects), 0);
    wire_close(&t);
}

static void M_45_read_only_mapping(void **state)
{
    uint8_t *page = mmap(NULL, PAGE, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct memory memory;

    (void)state;
    assert_true(page != MAP_FAILED);
    wire_open(&t, NULL, role_active);
    bench_register(t.bench.pd, page, PAGE, NDK_MR_FLAG_ALLOW_REMOTE_READ, &memory);
    stream_write(&t.s, memory.remote, (uint64_t)(uintptr_t)page, t.octets, 8);
    wire_send(&t);
    peer_expect_terminate(&t.link.peer, "M-45", 0x1100, PEER_DDP, t.s.octets + t.s.ulpdu_at, 22);
    expect_event(&t.link.end, "M-45", 3, 0x1100);
    bench_forget(&memory);
    wire_close(&t);
    munmap(page, PAGE);
}

static void M_57_sixteen_empty_segments(void **state)
{
    (void)state;
    wire_open(&t, NULL, role_active);
    for (unsigned round = 0; round < 3; round++) {
        link_receive(&t.bench, &t.link, 0);
        for (int i = 0; i < 16; i++)
            stream_untagged(&t.s, 0x01, 0x43, 0, 0, t.link.send_msn, 0, NULL, 0);
        stream_untagged(&t.s, 0x01, 0x43, 0, 0, t.link.send_msn, 0, t.octets, 1);
        for (int i = 0; i < 16; i++)
            stream_untagged(&t.s, 0x01, 0x43, 0, 0, t.link.send_msn, 1, NULL, 0);
        stream_untagged(&t.s, 0x41, 0x43, 0, 0, t.link.send_msn++, 1, NULL, 0);
        wire_send(&t);
        assert_int_equal(
            expect_result(&t.link.end.receive, "M-57", 1, STATUS_SUCCESS).BytesTransferred, 1);
    }
    wire_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(malformed_tagged),         cmocka_unit_test(malformed_untagged),
        cmocka_unit_test(W_65_reserved_bits),       cmocka_unit_test(W_66_W_67_segments),
        cmocka_unit_test(W_68_W_70_first_messages), cmocka_unit_test(W_69_W_75_writes),
        cmocka_unit_test(W_72_W_73_W_74_receives),  cmocka_unit_test(W_76_M_44_writes_in_segments),
        cmocka_unit_test(M_45_read_only_mapping),   cmocka_unit_test(M_57_sixteen_empty_segments),
    };

    return RUN_IN_ROLES("wire_ddp", tests);
}
