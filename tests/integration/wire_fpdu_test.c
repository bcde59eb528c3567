// SPDX-License-Identifier: MIT
/*
 * FPDUs as a foreign peer makes them: cut and joined in every way, of every size, and damaged
 * (W-50..W-63, M-22..M-33). Names carry the row's number.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "ends.h"
#include "peer.h"
#include "provider/adapter.h"

/* ---- M-22..M-30: damaged -------------------------------------------------------------------- */

static void good_write(struct row_run *r)
{
    stream_write(&r->stream, r->bench->target.remote, target_to(r->bench, 0), r->octets, 33);
}

/* Bit param of the FPDU's last octets, or of its ULPDU. */
static void crc_bit(struct row_run *r)
{
    good_write(r);
    r->stream.octets[r->stream.length - 4 + r->param / 8] ^= (uint8_t)(1u << r->param % 8);
}

static void ulpdu_bit(struct row_run *r)
{
    good_write(r);
    r->stream.octets[r->stream.ulpdu_at + r->param / 8] ^= (uint8_t)(1u << r->param % 8);
}

static void crc_big_endian(struct row_run *r)
{
    uint8_t *crc;

    good_write(r);
    crc = r->stream.octets + r->stream.length - 4;
    for (int i = 0; i < 2; i++) {
        uint8_t octet = crc[i];

        crc[i] = crc[3 - i];
        crc[3 - i] = octet;
    }
}

static void length_larger(struct row_run *r)
{
    good_write(r);
    r->stream.octets[r->stream.ulpdu_at - 1] += (uint8_t)r->param;
    good_write(r); /* the octets it lacks */
    r->stream.length -= (size_t)(2 + 47 + 3 + 4) - r->param;
}

static void short_tagged(struct row_run *r)
{
    r->octets[0] = 0xc1;
    r->octets[1] = 0x40;
    stream_fpdu(&r->stream, r->octets, r->param);
}

static void short_untagged(struct row_run *r)
{
    r->octets[0] = 0x41;
    r->octets[1] = 0x43;
    stream_fpdu(&r->stream, r->octets, r->param);
}

static void marker_in_front(struct row_run *r)
{
    stream_raw(&r->stream, "\0\0\0\0", 4);
    good_write(r);
}

static void marker_inside(struct row_run *r)
{
    stream_write(&r->stream, r->bench->target.remote, target_to(r->bench, 0), r->octets, 602);
    memmove(r->stream.octets + 516, r->stream.octets + 512, r->stream.length - 512);
    memcpy(r->stream.octets + 512, "\0\0\2\0", 4);
}

static void fin_in_fpdu(struct row_run *r)
{
    stream_send(&r->stream, 1, r->octets, 9);
    r->stream.length -= r->param;
}

static void fin_in_message(struct row_run *r)
{
    for (unsigned i = 0; i < r->param; i++)
        stream_untagged(&r->stream, 0x01, 0x43, 0, 0, 1, 8 * i, r->octets, 8);
}

#define ROWS_MAX 128

struct table {
    struct row rows[ROWS_MAX];
    char names[ROWS_MAX][40];
    size_t count;
};

static void add(struct table *t, const char *name, unsigned param, const struct row *row)
{
    struct row *to = &t->rows[t->count];

    if (t->count == ROWS_MAX)
        test_fail("too many rows");
    *to = *row;
    to->param = param;
    snprintf(t->names[t->count], sizeof t->names[0], "%s %u", name, param);
    to->name = t->names[t->count++];
}

static void M_22_M_23_crc(void **state)
{
    static struct table t;
    const struct row in_crc = {.build = crc_bit, .error = 0x2002};
    const struct row in_ulpdu = {.build = ulpdu_bit, .error = 0x2002};
    const struct row reversed = {.build = crc_big_endian, .error = 0x2002};

    (void)state;
    t.count = 0;
    for (unsigned bit = 0; bit < 32; bit++)
        add(&t, "M-22 CRC bit", bit, &in_crc);
    for (unsigned bit = 0; bit < 50 * 8; bit += 7) /* ULPDU and pad */
        add(&t, "M-22 ULPDU bit", bit, &in_ulpdu);
    add(&t, "M-23", 0, &reversed);
    rows_play(t.rows, t.count, NULL);
}

static void M_24_M_25_M_26_M_30_lengths(void **state)
{
    static struct table t;
    const struct row larger = {.build = length_larger, .error = 0x2002};
    const struct row tagged = {.build = short_tagged, .error = 0x1000};
    const struct row untagged = {.build = short_untagged, .error = 0x1000};
    const struct row front = {.build = marker_in_front, .error = 0x2002};
    const struct row inside = {.build = marker_inside, .error = 0x2002};

    (void)state;
    t.count = 0;
    for (unsigned more = 4; more <= 16; more += 4)
        add(&t, "M-24 length larger by", more, &larger);
    for (unsigned length = 0; length < 14; length++)
        add(&t, length < 2 ? "M-25 tagged" : "M-26 tagged", length, &tagged);
    for (unsigned length = 1; length < 18; length++)
        add(&t, length < 2 ? "M-25 untagged" : "M-26 untagged", length, &untagged);
    add(&t, "M-30 marker in front", 0, &front);
    add(&t, "M-30 marker inside", 0, &inside);
    rows_play(t.rows, t.count, NULL);
}

static void M_28_M_29_fin(void **state)
{
    static struct table t;
    const struct row fpdu = {
        .build = fin_in_fpdu, .end = ROW_FIN, .source = 6, .error = 0x2001, .reads = 2};
    const struct row message = {
        .build = fin_in_message, .end = ROW_FIN, .source = 6, .error = 0x2001, .fills = true};

    (void)state;
    t.count = 0;
    for (unsigned missing = 1; missing < 36; missing++)
        add(&t, "M-28 octets missing", missing, &fpdu);
    add(&t, "M-29 segments", 1, &message);
    add(&t, "M-29 segments", 3, &message);
    rows_play(t.rows, t.count, NULL);
}

/* ---- octets withheld, floods ---------------------------------------------------------------- */

static struct wire t;

static void M_27_octets_withheld(void **state)
{
    static struct link other;

    (void)state;
    wire_open(&t, NULL, role_active);
    link_init(&other);
    link_open(&t.bench, &other, false);
    stream_raw(&t.s, "\xff\xff\x41\x43", 4);
    wire_send(&t);
    for (int i = 0; i < 20; i++) {
        stream_raw(&t.s, t.octets, sizeof t.octets / 4);
        wire_send(&t);
        link_works(&t.bench, &other, "M-27", ROW_RECEIVES);
    }
    assert_true(peer_quiet(&t.link.peer, 100));
    peer_half_close(&t.link.peer);
    peer_await_end(&t.link.peer);
    expect_event(&t.link.end, "M-27", 6, 0x2001);
    bench_unchanged(&t.bench, "M-27");
    link_close(&other);
    wire_close(&t);
}

static void M_33_flood_of_empty_writes(void **state)
{
    static struct link other;
    NDK_RESULT_EX result;

    (void)state;
    wire_open(&t, NULL, role_active);
    link_init(&other);
    link_open(&t.bench, &other, false);
    for (int i = 0; i < 2000; i++)
        stream_write(&t.s, 0xffffffff, UINT64_MAX, NULL, 0);
    for (int i = 0; i < 20; i++) {
        assert_true(peer_send(&t.link.peer, t.s.octets, t.s.length));
        link_works(&t.bench, &other, "M-33", ROW_RECEIVES);
    }
    stream_reset(&t.s);
    assert_false(queue_try(&t.link.end.receive, &result, 1));
    wire_sync(&t, "M-33");
    assert_int_equal(atomic_load(&t.link.end.disconnects), 0);
    link_close(&other);
    wire_close(&t);
}

/* ---- W-50, W-51, W-53: pads ----------------------------------------------------------------- */

/* The peer judges CRC and that pads are zero; here their number. */
static void W_50_W_51_pads(void **state)
{
    (void)state;
    wire_open(&t, NULL, role_active);
    for (ULONG n = 0; n < 40; n++) {
        NDK_SGE sge = memory_sge(&t.bench.sink, 0, n);
        const struct peer_fpdu *f;

        assert_int_equal(
            t.link.end.qp->Dispatch->NdkWrite(t.link.end.qp, NULL, &sge, 1, 0x1000, 0x10, 0),
            STATUS_SUCCESS);
        f = peer_fpdu(&t.link.peer);
        assert_int_equal(f->length, 14 + n);
        assert_int_equal(f->pad, (4 - n % 4) % 4);
        assert_memory_equal(f->payload, t.bench.arena + SINK_AT, n);
    }
    wire_close(&t);
}

static void W_53_pad_not_zero(void **state)
{
    (void)state;
    wire_open(&t, NULL, role_active);
    t.s.pad = (const uint8_t *)"\xff\x01\xaa";
    for (unsigned n = 1; n <= 4; n++) {
        link_receive(&t.bench, &t.link, 0);
        stream_send(&t.s, t.link.send_msn++, t.octets, n);
        wire_send(&t);
        assert_int_equal(
            expect_result(&t.link.end.receive, "W-53", 1, STATUS_SUCCESS).BytesTransferred, n);
    }
    memcpy(t.bench.before + INBOX_AT, t.octets, 4);
    bench_unchanged(&t.bench, "W-53");
    wire_close(&t);
}

/* ---- W-54, W-55, W-56: cut and joined ------------------------------------------------------- */

static unsigned long long octets_in(void)
{
    return atomic_load(&adapter_from(t.bench.adapter)->counters->wire.in_octets);
}

/* Sends, Writes and Read Requests of several kinds; what they do is checked by mix_check(). */
static void mix(void)
{
    uint32_t token = t.bench.target.remote;

    stream_send(&t.s, t.link.send_msn++, t.octets, 5);
    stream_write(&t.s, token, target_to(&t.bench, 0), t.octets + 100, 3);
    stream_read(&t.s, t.link.read_msn++, 0x2200, 0x7f00aa000000, 7, token, target_to(&t.bench, 1));
    stream_write(&t.s, 0, 0, NULL, 0);
    stream_untagged(&t.s, 0x01, 0x43, 0, 0, t.link.send_msn, 0, t.octets + 200, 17);
    stream_read(&t.s, t.link.read_msn++, 0x2300, 0, 0, 0, 0);
    stream_untagged(&t.s, 0x41, 0x43, 0, 0, t.link.send_msn++, 17, t.octets + 217, 2);
    stream_untagged(&t.s, 0x41, 0x45, 0, 0, t.link.send_msn++, 0, NULL, 0);
}

#define MIX_RECEIVES 3

static void mix_check(const char *row, unsigned first)
{
    const struct peer_fpdu *f;
    static const ULONG lengths[MIX_RECEIVES] = {5, 19, 0};

    for (unsigned i = 0; i < MIX_RECEIVES; i++)
        assert_int_equal(
            expect_result(&t.link.end.receive, row, first + i + 1, STATUS_SUCCESS).BytesTransferred,
            lengths[i]);
    memcpy(t.bench.before + INBOX_AT + inbox_at(first), t.octets, 5);
    memcpy(t.bench.before + INBOX_AT + inbox_at(first + 1), t.octets + 200, 19);
    memcpy(t.bench.before + TARGET_AT, t.octets + 100, 3);
    bench_unchanged(&t.bench, row);
    f = peer_fpdu(&t.link.peer);
    assert_true(f->opcode == 2 && f->last && f->stag == 0x2200 && f->to == 0x7f00aa000000);
    assert_int_equal(f->payload_length, 7);
    assert_memory_equal(f->payload, t.bench.before + TARGET_AT + 1, 7);
    f = peer_fpdu(&t.link.peer);
    assert_true(f->opcode == 2 && f->last && f->stag == 0x2300 && f->payload_length == 0);
}

static void mix_receives(unsigned first)
{
    for (unsigned i = 0; i < MIX_RECEIVES; i++)
        link_receive(&t.bench, &t.link, first + i);
}

/* In two pieces, the second one only when the end has read the first. */
static void W_54_cut_at_every_octet(void **state)
{
    size_t length = 2;

    (void)state;
    wire_open(&t, NULL, role_active);
    for (size_t cut = 1; cut < length; cut++) {
        unsigned long long before = octets_in();

        mix_receives(0);
        stream_reset(&t.s);
        mix();
        length = t.s.length;
        assert_true(peer_send(&t.link.peer, t.s.octets, cut));
        wait_until(octets_in() >= before + cut, "the first piece");
        assert_true(peer_send(&t.link.peer, t.s.octets + cut, length - cut));
        mix_check("W-54", 0);
        memset(t.bench.arena + TARGET_AT, (int)cut, 3);
        memset(t.bench.before + TARGET_AT, (int)cut, 3);
    }
    assert_true(length > 200);
    wire_close(&t);
}

static void W_54_octet_by_octet(void **state)
{
    (void)state;
    wire_open(&t, NULL, role_active);
    for (int round = 0; round < 3; round++) {
        mix_receives(0);
        stream_reset(&t.s);
        mix();
        assert_true(peer_trickle(&t.link.peer, t.s.octets, t.s.length));
        mix_check("W-54", 0);
    }
    /* Each octet alone, the next only when it was read. */
    mix_receives(0);
    stream_reset(&t.s);
    mix();
    for (size_t i = 0; i < t.s.length; i++) {
        unsigned long long before = octets_in();

        assert_true(peer_send(&t.link.peer, t.s.octets + i, 1));
        wait_until(octets_in() > before, "an octet");
    }
    mix_check("W-54", 0);
    wire_close(&t);
}

static void W_55_ten_in_a_segment(void **state)
{
    (void)state;
    wire_open(&t, NULL, role_active);
    for (unsigned round = 0; round < 20; round++) {
        for (unsigned i = 0; i < 10; i++) {
            link_receive(&t.bench, &t.link, i);
            stream_send(&t.s, t.link.send_msn++, t.octets + i, 100 + i);
            memcpy(t.bench.before + INBOX_AT + inbox_at(i), t.octets + i, 100 + i);
        }
        wire_send(&t);
        for (unsigned i = 0; i < 10; i++)
            assert_int_equal(
                expect_result(&t.link.end.receive, "W-55", i + 1, STATUS_SUCCESS).BytesTransferred,
                100 + i);
        bench_unchanged(&t.bench, "W-55");
    }
    wire_close(&t);
}

static void W_56_long_fpdus(void **state)
{
    static const uint32_t lengths[] = {65474, 65486, 65534, 65535, 65474};
    static uint8_t octets[65536];
    struct memory memory;

    (void)state;
    wire_open(&t, NULL, role_active);
    make_memory(t.bench.pd, sizeof octets, NDK_MR_FLAG_ALLOW_LOCAL_WRITE, &memory);
    for (size_t i = 0; i < sizeof lengths / sizeof lengths[0]; i++) {
        NDK_SGE sge = memory_sge(&memory, 0, 65536);
        uint32_t payload = lengths[i] - 18;

        fill(octets, payload, (unsigned)i);
        assert_int_equal(
            t.link.end.qp->Dispatch->NdkReceive(t.link.end.qp, (void *)(uintptr_t)5, &sge, 1),
            STATUS_SUCCESS);
        stream_send(&t.s, t.link.send_msn++, octets, payload);
        if (i == 4) { /* cut in three */
            assert_true(peer_send(&t.link.peer, t.s.octets, 20000));
            test_sleep_ms(2);
            assert_true(peer_send(&t.link.peer, t.s.octets + 20000, 30001));
            test_sleep_ms(2);
            assert_true(peer_send(&t.link.peer, t.s.octets + 50001, t.s.length - 50001));
            stream_reset(&t.s);
        } else {
            wire_send(&t);
        }
        assert_int_equal(
            expect_result(&t.link.end.receive, "W-56", 5, STATUS_SUCCESS).BytesTransferred,
            payload);
        assert_memory_equal(memory.data, octets, payload);
    }
    free_memory(&memory);
    wire_close(&t);
}

/* ---- W-57, W-58: sizes the end chooses ------------------------------------------------------ */

static void sizes(const char *row, int segment, uint32_t least, uint32_t most)
{
    const struct peer_fpdu *f;
    NDK_SGE sge;
    uint32_t at = 0;

    wire_bench(&t, NULL);
    t.link.peer.segment_size = segment;
    link_open(&t.bench, &t.link, true);
    sge = memory_sge(&t.bench.sink, 0, 8000);
    assert_int_equal(t.link.end.qp->Dispatch->NdkSend(t.link.end.qp, NULL, &sge, 1, 0),
                     STATUS_SUCCESS);
    do {
        f = peer_fpdu(&t.link.peer);
        if (f->length > most || (!f->last && f->length < least) || f->mo != at || f->msn != 1)
            test_fail("%s: ULPDU of %u octets at %u", row, f->length, f->mo);
        assert_memory_equal(f->payload, t.bench.arena + SINK_AT + at, f->payload_length);
        at += f->payload_length;
    } while (!f->last);
    assert_int_equal(at, 8000);
    wire_close(&t);
}

static void W_57_W_58_segment_sizes(void **state)
{
    (void)state;
    sizes("W-57", 1460, 1400, 1454); /* less 12 octets of TCP options */
    sizes("W-58", 100, 128, 128);
}

/* ---- W-63 ----------------------------------------------------------------------------------- */

static void W_63_fin_when_idle(void **state)
{
    struct wait disconnect;

    (void)state;
    wire_open(&t, NULL, role_active);
    link_receive(&t.bench, &t.link, 0);
    peer_half_close(&t.link.peer);
    expect_event(&t.link.end, "W-63", 1, 0);
    assert_true(peer_quiet(&t.link.peer, 100)); /* no FIN of ours, no flush */
    expect_no_result(&t.link.end.receive, "W-63");
    assert_int_equal(t.link.end.qp->Dispatch->NdkSend(t.link.end.qp, &t, NULL, 0, 0),
                     STATUS_SUCCESS);
    assert_int_equal(peer_fpdu(&t.link.peer)->opcode, 3);
    expect_result(&t.link.end.initiator, "W-63", (uintptr_t)&t, STATUS_SUCCESS);
    wait_init(&disconnect);
    assert_int_equal(wait_end(&disconnect, t.link.end.connector->Dispatch->NdkDisconnect(
                                               t.link.end.connector, wait_request, &disconnect)),
                     STATUS_SUCCESS);
    assert_int_equal(peer_await_end(&t.link.peer), PEER_FIN);
    expect_result(&t.link.end.receive, "W-63", 1, STATUS_CANCELLED);
    assert_int_equal(atomic_load(&t.link.end.disconnects), 1);
    wire_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(M_22_M_23_crc),
        cmocka_unit_test(M_24_M_25_M_26_M_30_lengths),
        cmocka_unit_test(M_28_M_29_fin),
        cmocka_unit_test(M_27_octets_withheld),
        cmocka_unit_test(M_33_flood_of_empty_writes),
        cmocka_unit_test(W_50_W_51_pads),
        cmocka_unit_test(W_53_pad_not_zero),
        cmocka_unit_test(W_54_cut_at_every_octet),
        cmocka_unit_test(W_54_octet_by_octet),
        cmocka_unit_test(W_55_ten_in_a_segment),
        cmocka_unit_test(W_56_long_fpdus),
        cmocka_unit_test(W_57_W_58_segment_sizes),
        cmocka_unit_test(W_63_fin_when_idle),
    };

    return RUN_IN_ROLES("wire_fpdu", tests);
}
