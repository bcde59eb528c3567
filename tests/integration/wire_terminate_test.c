// SPDX-License-Identifier: MIT
/*
 * Terminates in both directions and the ends of a connection, against a foreign peer (W-97..W-109,
 * M-83..M-88). Names carry the row's number.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include "ends.h"
#include "peer.h"

/* ---- W-102..W-106, M-83..M-88: received ----------------------------------------------------- */

static const uint8_t bodies[][52] = {
    {0x12, 0x02, 0xc0, 0, 0, 0x22, 0x41, 0x43, [15] = 9},
    {0x21, 0x02, 0x03, 0, 0, 0x10, 0x41, 0x43, [15] = 9},
    {0x02, 0x02},
    {0x20, 0x02},
    {0x11, 0x00, 0xc0, 0, 0, 0x2e, 0xc1, 0x40, 0xde, 0xad, 0xbe},
    {0x11, 0x00, 0x03, 0, 0, 0x20, 0xc1, 0x40, 0xde, 0xad, 0xbe},
    {0x02, 0x06},
    {0x20, 0x06},
    {0x00, 0x00},
    {0xf7, 0x99},
    {0x01, 0x01, 0xe0, 0, 0, 0x2e, 0x41, 0x41, [15] = 5},
    {0x12, 0x02, 0x20, 0},
    {0x12, 0x02, 0x40, 0},
};

enum body {
    RFC_NO_BUFFER,
    SIW_NO_BUFFER,
    SIW_CRC,
    RFC_CRC,
    RFC_STAG,
    SIW_STAG,
    RFC_OPCODE,
    EITHER_OPCODE,
    CATASTROPHIC,
    UNKNOWN,
    RFC_BOUNDS,
    ONLY_R,
    ONLY_D
};

#define BODY(body, length) ((unsigned)(body) << 8 | (length))

static void terminate(struct row_run *r)
{
    stream_terminate(&r->stream, bodies[r->param >> 8], r->param & 0xff);
}

static void terminate_then_write(struct row_run *r)
{
    terminate(r);
    stream_write(&r->stream, r->bench->target.remote, target_to(r->bench, 0), r->octets, 32);
    stream_send(&r->stream, 1, r->octets, 32);
    stream_raw(&r->stream, "nonsense", 8);
}

static void terminate_on_queue(struct row_run *r)
{
    stream_untagged(&r->stream, 0x41, 0x47, 0, r->param, 1, 0, bodies[RFC_CRC], 4);
}

static void terminate_with_msn(struct row_run *r)
{
    stream_untagged(&r->stream, 0x41, 0x47, 0, 2, r->param, 0, bodies[RFC_CRC], 4);
}

static void terminate_not_last(struct row_run *r)
{
    stream_untagged(&r->stream, 0x01, 0x47, 0, 2, 1, 0, bodies[RFC_CRC], 4);
}

static void terminate_offset(struct row_run *r)
{
    stream_untagged(&r->stream, 0x41, 0x47, 0, 2, 1, 4, bodies[RFC_CRC], 4);
}

/* Our own error and theirs: nobody answers. */
static void both_terminate(struct row_run *r)
{
    stream_write(&r->stream, 0xdeadbe00, 0x1000, r->octets, 32);
    terminate(r);
    r->stream.ulpdu_at = 2;
    r->stream.ulpdu_length = 46;
}

static void two_errors(struct row_run *r)
{
    stream_send(&r->stream, 7, r->octets, 1);
    r->stream.octets[r->stream.length - 1] ^= 1; /* CRC: the first error wins */
    stream_write(&r->stream, 0xdeadbe00, 0x1000, r->octets, 32);
}

#define RECEIVED(row, body, length, wire, status)                                                  \
    {                                                                                              \
        .name = row, .build = terminate, .param = BODY(body, length), .end = ROW_CLOSE,            \
        .source = 4, .error = wire, .reads = 2, .request = status                                  \
    }
#define MALFORMED(row, builder, number)                                                            \
    {                                                                                              \
        .name = row, .build = builder, .param = number, .end = ROW_CLOSE, .source = 6, .reads = 2  \
    }

static const struct row rows[] = {
    RECEIVED("W-103", RFC_NO_BUFFER, 24, 0x1202, STATUS_IO_TIMEOUT),
    RECEIVED("W-104", SIW_NO_BUFFER, 24, 0x1202, STATUS_IO_TIMEOUT),
    RECEIVED("W-105", SIW_CRC, 4, 0x2002, STATUS_REMOTE_RESOURCES),
    RECEIVED("W-102 CRC", RFC_CRC, 4, 0x2002, STATUS_REMOTE_RESOURCES),
    RECEIVED("W-102 STag", RFC_STAG, 20, 0x1100, STATUS_ACCESS_VIOLATION),
    RECEIVED("W-102 STag, siw", SIW_STAG, 20, 0x1100, STATUS_ACCESS_VIOLATION),
    RECEIVED("W-102 opcode", RFC_OPCODE, 4, 0x0206, STATUS_REMOTE_RESOURCES),
    RECEIVED("W-102 opcode, siw", EITHER_OPCODE, 4, 0x0206, STATUS_REMOTE_RESOURCES),
    RECEIVED("W-102 catastrophic", CATASTROPHIC, 4, 0x0000, STATUS_REMOTE_RESOURCES),
    {.name = "W-106",
     .build = both_terminate,
     .param = BODY(RFC_CRC, 4),
     .error = 0x1100,
     .headers = PEER_DDP,
     .reads = 2},
    {.name = "W-100 two errors", .build = two_errors, .error = 0x2002, .reads = 2},
    MALFORMED("M-83 ULPDU 18", terminate, BODY(RFC_CRC, 0)),
    MALFORMED("M-83 ULPDU 19", terminate, BODY(RFC_CRC, 1)),
    MALFORMED("M-83 ULPDU 20", terminate, BODY(RFC_CRC, 2)),
    MALFORMED("M-83 ULPDU 21", terminate, BODY(RFC_CRC, 3)),
    RECEIVED("M-84 D without length", ONLY_D, 4, 0x1202, STATUS_IO_TIMEOUT),
    RECEIVED("M-84 D without header", ONLY_D, 6, 0x1202, STATUS_IO_TIMEOUT),
    RECEIVED("M-84 header cut", RFC_NO_BUFFER, 23, 0x1202, STATUS_IO_TIMEOUT),
    RECEIVED("M-84 header cut, siw", SIW_STAG, 19, 0x1100, STATUS_ACCESS_VIOLATION),
    RECEIVED("M-84 R cut", RFC_BOUNDS, 51, 0x0101, STATUS_REMOTE_RESOURCES),
    RECEIVED("M-84 R without D, cut", ONLY_R, 31, 0x1202, STATUS_IO_TIMEOUT),
    MALFORMED("M-85 queue 0", terminate_on_queue, 0),
    MALFORMED("M-85 queue 1", terminate_on_queue, 1),
    MALFORMED("M-85 queue 3", terminate_on_queue, 3),
    MALFORMED("M-85 queue 4", terminate_on_queue, 4),
    MALFORMED("M-85 MSN 0", terminate_with_msn, 0),
    MALFORMED("M-85 MSN 2", terminate_with_msn, 2),
    MALFORMED("M-85 L=0", terminate_not_last, 0),
    MALFORMED("M-85 MO 4", terminate_offset, 0),
    RECEIVED("M-86 unknown", UNKNOWN, 4, 0xf799, STATUS_REMOTE_RESOURCES),
    {.name = "M-88",
     .build = terminate_then_write,
     .param = BODY(RFC_CRC, 4),
     .end = ROW_CLOSE,
     .source = 4,
     .error = 0x2002,
     .reads = 2,
     .request = STATUS_REMOTE_RESOURCES},
};

static void received_and_malformed(void **state)
{
    (void)state;
    rows_play(rows, sizeof rows / sizeof rows[0], NULL);
}

static struct wire t;

/* A Terminate that names the second open Read: that one gets the status. */
static void names_a_read(const uint8_t *control)
{
    uint8_t body[52] = {[5] = 46};

    memcpy(body, control, 3);
    wire_open(&t, NULL, role_active);
    for (unsigned i = 0; i < 3; i++) {
        link_read(&t.bench, &t.link, i, 64);
        assert_int_equal(peer_fpdu(&t.link.peer)->opcode, 1);
        if (i == 1)
            memcpy(body + 6, t.link.peer.got.octets + 2, 46);
    }
    stream_terminate(&t.s, body, sizeof body);
    wire_send(&t);
    expect_result(&t.link.end.initiator, "W-102", 1, STATUS_CANCELLED);
    expect_result(&t.link.end.initiator, "W-102", 2, STATUS_REMOTE_RESOURCES);
    expect_result(&t.link.end.initiator, "W-102", 3, STATUS_CANCELLED);
    expect_event(&t.link.end, "W-102", 4, 0x0101);
    assert_int_equal(peer_await_end(&t.link.peer), PEER_FIN);
    assert_int_not_equal(t.link.end.qp->Dispatch->NdkSend(t.link.end.qp, NULL, NULL, 0, 0),
                         STATUS_SUCCESS);
    wire_close(&t);
}

static void W_102_names_a_read(void **state)
{
    (void)state;
    names_a_read((const uint8_t *)"\x01\x01\xe0");
    names_a_read((const uint8_t *)"\x10\x01\x07"); /* siw's order */
}

/* ---- W-97..W-101: sent ---------------------------------------------------------------------- */

static const uint8_t invalid_stag[] = {
    0x00, 0x26, 0x41, 0x47, 0, 0,    0, 0,    0,    0, 0,    2,    0,    0,    0,
    1,    0,    0,    0,    0, 0x11, 0, 0xc0, 0,    0, 0x2e, 0xc1, 0x40, 0xde, 0xad,
    0xbe, 0,    0,    0,    0, 0,    0, 0,    0x10, 0, 0xb0, 0x3d, 0x76, 0xca};
static const uint8_t crc_error[] = {0x00, 0x16, 0x41, 0x47, 0,    0,    0,    0,   0, 0,
                                    0,    2,    0,    0,    0,    1,    0,    0,   0, 0,
                                    0x20, 0x02, 0,    0,    0x7f, 0xe4, 0x25, 0x85};

static void expect_octets(const char *row, const uint8_t *want, size_t length)
{
    uint8_t got[128];

    if (peer_read(&t.link.peer, got, length, WAIT_S * 1000) != PEER_DATA)
        test_fail("%s: no Terminate", row);
    assert_memory_equal(got, want, length);
    assert_int_equal(peer_await_end(&t.link.peer), PEER_FIN);
}

static void W_97_W_99_octets(void **state)
{
    (void)state;
    wire_open(&t, NULL, role_active);
    stream_write(&t.s, 0xdeadbe00, 0x1000, t.octets, 32);
    wire_send(&t);
    expect_octets("W-97", invalid_stag, sizeof invalid_stag);
    wire_close(&t);
    wire_open(&t, NULL, true);
    stream_send(&t.s, 1, t.octets, 3);
    t.s.octets[t.s.length - 1] ^= 0x80;
    wire_send(&t);
    expect_octets("W-99", crc_error, sizeof crc_error);
    wire_close(&t);
}

/* Answers before it go out; then the Terminate for the bad one, and nothing for those behind. */
static void W_98_read_request_among_others(void **state)
{
    (void)state;
    wire_open(&t, NULL, role_active);
    stream_read(&t.s, t.link.read_msn++, 0x2200, 1, 16, t.bench.target.remote,
                target_to(&t.bench, 0));
    stream_read(&t.s, t.link.read_msn++, 0x2200, 0x7f00aa000000, 0x4000, t.bench.target.remote,
                target_to(&t.bench, 0));
    stream_write(&t.s, 0, 0, NULL, 0);
    assert_true(peer_send(&t.link.peer, t.s.octets, t.s.length));
    assert_int_equal(peer_fpdu(&t.link.peer)->payload_length, 16);
    peer_expect_terminate(&t.link.peer, "W-98", 0x0101, PEER_DDP_READ, t.s.octets + 52 + 2, 46);
    assert_int_equal(peer_await_end(&t.link.peer), PEER_FIN);
    expect_event(&t.link.end, "W-98", 3, 0x0101);
    wire_close(&t);
}

/* The peer goes on sending behind the error: drained, so that no RST destroys the Terminate. */
static void W_101_drained(void **state)
{
    (void)state;
    wire_open(&t, "drain_ms=60000", role_active);
    stream_write(&t.s, 0xdeadbe00, 0x1000, t.octets, 32);
    wire_send(&t);
    expect_event(&t.link.end, "W-101", 3, 0x1100);
    for (int i = 0; i < 256; i++) {
        stream_raw(&t.s, t.octets, sizeof t.octets);
        wire_send(&t);
    }
    expect_octets("W-101", invalid_stag, sizeof invalid_stag);
    for (int i = 0; i < 16; i++) {
        stream_raw(&t.s, t.octets, sizeof t.octets);
        wire_send(&t);
    }
    assert_int_equal(peer_await_end(&t.link.peer), PEER_FIN); /* no RST came after it either */
    peer_half_close(&t.link.peer);
    wire_close(&t);
}

/* A peer that neither closes nor stops is not drained for ever. */
static void W_101_drained_for_a_while(void **state)
{
    unsigned long long end;

    (void)state;
    wire_open(&t, "drain_ms=100", role_active);
    stream_write(&t.s, 0xdeadbe00, 0x1000, t.octets, 32);
    wire_send(&t);
    expect_octets("W-101", invalid_stag, sizeof invalid_stag);
    end = test_now_ms() + WAIT_S * 1000u;
    while (peer_send(&t.link.peer, t.octets, 100)) {
        if (test_now_ms() > end)
            test_fail("W-101: still drained");
        test_sleep_ms(5);
    }
    wire_close(&t);
}

/* ---- W-107..W-109: ends --------------------------------------------------------------------- */

#define LARGE (24u << 20)

static void W_107_disconnect_drains_the_queue(void **state)
{
    struct memory large;
    struct wait disconnect;
    NDK_SGE sge;
    NTSTATUS status;
    size_t got = 0;
    enum peer_end end;

    (void)state;
    wire_bench(&t, "disconnect_ms=0");
    t.link.peer.receive_room = 16384;
    link_open(&t.bench, &t.link, role_active);
    make_memory(t.bench.pd, LARGE, 0, &large);
    sge = memory_sge(&large, 0, LARGE);
    link_receive(&t.bench, &t.link, 0);
    for (uintptr_t i = 1; i <= 3; i++)
        assert_int_equal(
            t.link.end.qp->Dispatch->NdkSend(t.link.end.qp, (void *)i, &sge, i == 1 ? 1 : 0, 0),
            STATUS_SUCCESS);
    wait_init(&disconnect);
    status = t.link.end.connector->Dispatch->NdkDisconnect(t.link.end.connector, wait_request,
                                                           &disconnect);
    while (peer_fpdu_or_end(&t.link.peer, &end) != NULL)
        got += t.link.peer.got.payload_length;
    assert_int_equal(end, PEER_FIN);
    assert_int_equal(got, LARGE);
    for (uintptr_t i = 1; i <= 3; i++)
        expect_result(&t.link.end.initiator, "W-107", i, STATUS_SUCCESS);
    expect_no_result(&t.link.end.receive, "W-107");
    peer_half_close(&t.link.peer);
    assert_int_equal(wait_end(&disconnect, status), STATUS_SUCCESS);
    expect_result(&t.link.end.receive, "W-107", 1, STATUS_CANCELLED);
    assert_int_equal(atomic_load(&t.link.end.disconnects), 0);
    free_memory(&large);
    wire_close(&t);
}

static void W_108_close_resets(void **state)
{
    (void)state;
    wire_open(&t, NULL, role_active);
    for (unsigned i = 0; i < 3; i++)
        link_receive(&t.bench, &t.link, i);
    link_read(&t.bench, &t.link, 0, 64);
    link_read(&t.bench, &t.link, 1, 64);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(peer_fpdu(&t.link.peer)->opcode, 1);
    CLOSE(t.link.end.connector, NdkCloseConnector);
    t.link.end.connector = NULL;
    assert_int_equal(peer_await_end(&t.link.peer), PEER_RST);
    for (unsigned i = 0; i < 3; i++)
        expect_result(&t.link.end.receive, "W-108", i + 1, STATUS_CANCELLED);
    for (unsigned i = 0; i < 2; i++)
        expect_result(&t.link.end.initiator, "W-108", i + 1, STATUS_CANCELLED);
    assert_int_equal(atomic_load(&t.link.end.disconnects), 0);
    bench_unchanged(&t.bench, "W-108");
    wire_close(&t);
}

static void fin_with_reads_open(unsigned quiet_ms)
{
    struct wait disconnect;

    wire_open(&t, NULL, role_active);
    link_receive(&t.bench, &t.link, 0);
    link_read(&t.bench, &t.link, 0, 64);
    link_read(&t.bench, &t.link, 1, 64);
    assert_int_equal(t.link.end.qp->Dispatch->NdkSend(t.link.end.qp, (void *)(uintptr_t)3, NULL, 0,
                                                      NDK_OP_FLAG_READ_FENCE),
                     STATUS_SUCCESS);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(peer_fpdu(&t.link.peer)->opcode, 1);
    peer_half_close(&t.link.peer);
    expect_event(&t.link.end, "W-109", 1, 0);
    expect_result(&t.link.end.initiator, "W-109", 1, STATUS_IO_TIMEOUT);
    expect_result(&t.link.end.initiator, "W-109", 2, STATUS_CANCELLED);
    expect_result(&t.link.end.initiator, "W-109", 3, STATUS_CANCELLED);
    assert_true(peer_quiet(&t.link.peer, quiet_ms));
    expect_no_result(&t.link.end.receive, "W-109");
    wait_init(&disconnect);
    assert_int_equal(wait_end(&disconnect, t.link.end.connector->Dispatch->NdkDisconnect(
                                               t.link.end.connector, wait_request, &disconnect)),
                     STATUS_SUCCESS);
    expect_result(&t.link.end.receive, "W-109", 1, STATUS_CANCELLED);
    assert_int_equal(peer_await_end(&t.link.peer), PEER_FIN);
    bench_unchanged(&t.bench, "W-109");
    wire_close(&t);
}

static void W_109_fin_with_reads_open(void **state)
{
    (void)state;
    fin_with_reads_open(50);
    for (int i = 0; i < 40; i++) /* a fenced request that races with the failing Reads */
        fin_with_reads_open(0);
}

static void reset_when_established(void **state)
{
    (void)state;
    wire_open(&t, NULL, role_active);
    link_receive(&t.bench, &t.link, 0);
    link_read(&t.bench, &t.link, 0, 64);
    assert_int_equal(peer_fpdu(&t.link.peer)->opcode, 1);
    peer_reset(&t.link.peer);
    expect_event(&t.link.end, "RST", 2, 0);
    expect_result(&t.link.end.receive, "RST", 1, STATUS_CANCELLED);
    expect_result(&t.link.end.initiator, "RST", 1, STATUS_CANCELLED);
    wire_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(received_and_malformed),
        cmocka_unit_test(W_102_names_a_read),
        cmocka_unit_test(W_97_W_99_octets),
        cmocka_unit_test(W_98_read_request_among_others),
        cmocka_unit_test(W_101_drained),
        cmocka_unit_test(W_101_drained_for_a_while),
        cmocka_unit_test(W_107_disconnect_drains_the_queue),
        cmocka_unit_test(W_108_close_resets),
        cmocka_unit_test(W_109_fin_with_reads_open),
        cmocka_unit_test(reset_when_established),
    };

    return RUN_IN_ROLES("wire_terminate", tests);
}
