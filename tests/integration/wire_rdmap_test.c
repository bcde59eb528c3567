// SPDX-License-Identifier: MIT
/*
 * RDMAP as a foreign peer speaks it: malformed messages, Read Requests and Responses and
 * invalidations that must end the connection and touch nothing (M-59..M-82). What is taken, and the
 * order of things, stands in wire_order_test.c. Names carry the row's number.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include "ends.h"
#include "peer.h"

/* ---- M-59..M-62: control octets ------------------------------------------------------------- */

static void untagged_control(struct row_run *r)
{
    unsigned opcode = r->param & 0xf;
    uint32_t qn = opcode == 1 || opcode == 10 ? 1 : opcode == 11 ? 3 : opcode == 7 ? 2 : 0;
    uint32_t msn = qn == 1 ? r->link->read_msn : 1;

    stream_untagged(&r->stream, 0x41, (uint8_t)r->param, 0, qn, msn, 0, r->octets,
                    opcode == 10   ? 52
                    : opcode == 11 ? 12
                                   : 8);
}

static void tagged_control(struct row_run *r)
{
    stream_tagged(&r->stream, 0xc1, (uint8_t)r->param, r->bench->target.remote,
                  target_to(r->bench, 0), r->octets, 46);
}

#define CONTROL(row, builder, octet, wire)                                                         \
    {                                                                                              \
        .name = row, .build = builder, .param = octet, .error = wire, .headers = PEER_DDP          \
    }

static const struct row control_rows[] = {
    CONTROL("M-59 RV 0 Send", untagged_control, 0x03, 0x0205),
    CONTROL("M-59 RV 2 Send", untagged_control, 0x83, 0x0205),
    CONTROL("M-59 RV 3 Send", untagged_control, 0xc3, 0x0205),
    CONTROL("M-59 RV 0 Write", tagged_control, 0x00, 0x0205),
    CONTROL("M-59 RV 2 Write", tagged_control, 0x80, 0x0205),
    CONTROL("M-59 RV 3 Write", tagged_control, 0xc0, 0x0205),
    CONTROL("M-60 opcode 12", untagged_control, 0x4c, 0x0206),
    CONTROL("M-60 opcode 13", untagged_control, 0x4d, 0x0206),
    CONTROL("M-60 opcode 14", untagged_control, 0x4e, 0x0206),
    CONTROL("M-60 opcode 15", untagged_control, 0x4f, 0x0206),
    CONTROL("M-60 opcode 12 tagged", tagged_control, 0x4c, 0x0206),
    CONTROL("M-61 M-90 Immediate", untagged_control, 0x48, 0x0206),
    CONTROL("M-61 Immediate with SE", untagged_control, 0x49, 0x0206),
    CONTROL("M-61 Atomic Request", untagged_control, 0x4a, 0x0206),
    CONTROL("M-61 M-95 Atomic Response", untagged_control, 0x4b, 0x0206),
    CONTROL("M-62 tagged Read Request", tagged_control, 0x41, 0x0206),
    CONTROL("M-62 tagged Send", tagged_control, 0x43, 0x0206),
    CONTROL("M-62 tagged opcode 4", tagged_control, 0x44, 0x0206),
    CONTROL("M-62 tagged opcode 5", tagged_control, 0x45, 0x0206),
    CONTROL("M-62 tagged opcode 6", tagged_control, 0x46, 0x0206),
    CONTROL("M-62 tagged Terminate", tagged_control, 0x47, 0x0206),
    CONTROL("M-62 tagged Immediate", tagged_control, 0x48, 0x0206),
    CONTROL("M-62 tagged opcode 9", tagged_control, 0x49, 0x0206),
    CONTROL("M-62 tagged opcode 10", tagged_control, 0x4a, 0x0206),
    CONTROL("M-62 tagged opcode 11", tagged_control, 0x4b, 0x0206),
    CONTROL("M-62 untagged Write", untagged_control, 0x40, 0x0206),
    CONTROL("M-62 untagged Read Response", untagged_control, 0x42, 0x0206),
};

static void M_59_M_62_control(void **state)
{
    (void)state;
    rows_play(control_rows, sizeof control_rows / sizeof control_rows[0], NULL);
}

/* ---- M-63..M-71: Read Requests -------------------------------------------------------------- */

static void request_body(struct row_run *r, uint8_t *body)
{
    stream_read_body(body, 0x2200, 0x7f00aa000000, 8, r->bench->target.remote,
                     target_to(r->bench, 0));
}

static void request_length(struct row_run *r)
{
    uint8_t body[64] = {0};

    request_body(r, body);
    stream_untagged(&r->stream, 0x41, 0x41, 0, 1, r->link->read_msn, 0, body, r->param - 18);
}

static void request_not_last(struct row_run *r)
{
    uint8_t body[28];

    request_body(r, body);
    stream_untagged(&r->stream, 0x01, 0x41, 0, 1, r->link->read_msn, 0, body, sizeof body);
}

static void request_offset(struct row_run *r)
{
    uint8_t body[28];

    request_body(r, body);
    stream_untagged(&r->stream, 0x41, 0x41, 0, 1, r->link->read_msn, 4, body, sizeof body);
}

static void source(struct row_run *r, uint32_t stag, uint64_t to, uint32_t size)
{
    stream_read(&r->stream, r->link->read_msn, 0x2200, 0x7f00aa000000, size, stag, to);
}

static void source_unknown(struct row_run *r)
{
    source(r, 0xdeadbe00, 0x1000, 16);
}

static void source_zero(struct row_run *r)
{
    source(r, 0, target_to(r->bench, 0), 16);
}

static void source_gone(struct row_run *r)
{
    source(r, r->bench->stale, target_to(r->bench, 0), 16);
}

static void source_no_right(struct row_run *r)
{
    source(r, r->bench->sink.remote, (uint64_t)(uintptr_t)r->bench->sink.data, 16);
}

static void source_foreign(struct row_run *r)
{
    source(r, r->bench->foreign.remote, (uint64_t)(uintptr_t)r->bench->foreign.data, 16);
}

static void source_beyond(struct row_run *r)
{
    source(r, r->bench->target.remote, target_to(r->bench, TARGET_SIZE - 15), 16);
}

static void source_below(struct row_run *r)
{
    source(r, r->bench->target.remote, target_to(r->bench, 0) - 1, 16);
}

static void source_huge(struct row_run *r)
{
    source(r, r->bench->target.remote, target_to(r->bench, 0), 0xffffffff);
}

static void source_wraps(struct row_run *r)
{
    source(r, r->bench->target.remote, UINT64_MAX - 7, 16);
}

#define SOURCE(row, builder, wire)                                                                 \
    {                                                                                              \
        .name = row, .build = builder, .error = wire, .headers = PEER_DDP_READ                     \
    }

static const struct row request_rows[] = {
    {.name = "M-63 ULPDU 18", .build = request_length, .param = 18, .error = 0x1000},
    {.name = "M-63 ULPDU 19", .build = request_length, .param = 19, .error = 0x1000},
    {.name = "M-63 ULPDU 30", .build = request_length, .param = 30, .error = 0x1000},
    {.name = "M-63 ULPDU 45", .build = request_length, .param = 45, .error = 0x1000},
    CONTROL("M-64 ULPDU 47", request_length, 47, 0x1205),
    CONTROL("M-64 ULPDU 82", request_length, 82, 0x1205),
    CONTROL("M-65 L=0", request_not_last, 0, 0x1204),
    CONTROL("M-65 MO 4", request_offset, 0, 0x1204),
    SOURCE("M-67 STag unknown", source_unknown, 0x0100),
    SOURCE("M-67 STag 0", source_zero, 0x0100),
    SOURCE("M-67 STag gone", source_gone, 0x0100),
    SOURCE("M-68 no right", source_no_right, 0x0102),
    SOURCE("M-69 other PD", source_foreign, 0x0103),
    SOURCE("M-70 beyond", source_beyond, 0x0101),
    SOURCE("M-70 below", source_below, 0x0101),
    SOURCE("M-70 4 GiB", source_huge, 0x0101),
    SOURCE("M-71 wraps", source_wraps, 0x0104),
};

static void M_63_M_71_read_requests(void **state)
{
    (void)state;
    rows_play(request_rows, sizeof request_rows / sizeof request_rows[0], NULL);
}

/* ---- M-74..M-78: Read Responses ------------------------------------------------------------- */

/* The open Read is of 64 octets. */
static void respond(struct row_run *r, bool last, uint32_t stag, uint64_t skip, uint32_t length)
{
    stream_response(&r->stream, last, stag, r->sink_to + skip, r->octets, length);
}

static void response_unasked(struct row_run *r)
{
    stream_response(&r->stream, true, r->bench->target.remote, target_to(r->bench, 0), r->octets,
                    8);
}

static void response_unasked_empty(struct row_run *r)
{
    stream_response(&r->stream, true, 0, 0, NULL, 0);
}

static void response_stag(struct row_run *r)
{
    respond(r, true, r->sink_stag ^ 1, 0, 64);
}

static void response_target(struct row_run *r)
{
    stream_response(&r->stream, true, r->bench->target.remote, target_to(r->bench, 0), r->octets,
                    64);
}

static void response_second_first(struct row_run *r)
{
    respond(r, true, r->sink_stag + 0x100, 0, 64);
}

static void response_skips(struct row_run *r)
{
    respond(r, true, r->sink_stag, 1, 63);
}

static void response_goes_back(struct row_run *r)
{
    respond(r, false, r->sink_stag, 0, 16);
    respond(r, false, r->sink_stag, 8, 16);
}

static void response_too_long(struct row_run *r)
{
    respond(r, true, r->sink_stag, 0, 65);
}

static void response_too_long_later(struct row_run *r)
{
    respond(r, false, r->sink_stag, 0, 60);
    respond(r, true, r->sink_stag, 60, 5);
}

static void response_too_short(struct row_run *r)
{
    respond(r, true, r->sink_stag, 0, 63);
}

static void response_empty(struct row_run *r)
{
    respond(r, true, r->sink_stag, 0, 0);
}

static void response_no_end(struct row_run *r)
{
    respond(r, false, r->sink_stag, 0, 64);
    respond(r, true, r->sink_stag, 64, 1);
}

static void response_no_end_empty(struct row_run *r)
{
    respond(r, false, r->sink_stag, 0, 64);
    respond(r, true, r->sink_stag, 64, 0);
}

#define RESPONSE(row, builder, wire, is_placed)                                                    \
    {                                                                                              \
        .name = row, .build = builder, .error = wire, .headers = PEER_DDP, .reads = 2,             \
        .fills = is_placed                                                                         \
    }

static const struct row response_rows[] = {
    CONTROL("M-74 none open", response_unasked, 0, 0x0206),
    CONTROL("M-74 none open, empty", response_unasked_empty, 0, 0x0206),
    RESPONSE("M-75 STag", response_stag, 0x1100, false),
    RESPONSE("M-75 a region's STag", response_target, 0x1100, false),
    RESPONSE("M-75 the second Read's STag", response_second_first, 0x1100, false),
    RESPONSE("M-76 TO skips", response_skips, 0x1101, false),
    RESPONSE("M-76 TO goes back", response_goes_back, 0x1101, true),
    RESPONSE("M-76 beyond Size", response_too_long, 0x1101, false),
    RESPONSE("M-76 beyond Size later", response_too_long_later, 0x1101, true),
    RESPONSE("M-77 too early", response_too_short, 0x1101, false),
    RESPONSE("M-77 at once", response_empty, 0x1101, false),
    RESPONSE("M-78 more", response_no_end, 0x1101, true),
    RESPONSE("M-78 an empty segment more", response_no_end_empty, 0x1101, true),
};

static void M_74_M_78_read_responses(void **state)
{
    (void)state;
    rows_play(response_rows, sizeof response_rows / sizeof response_rows[0], NULL);
}

/* ---- M-79..M-81: invalidation --------------------------------------------------------------- */

static void invalidate(struct row_run *r, uint32_t stag)
{
    stream_untagged(&r->stream, 0x41, 0x44, stag, 0, 1, 0, r->octets, 4);
}

static void invalidate_unknown(struct row_run *r)
{
    invalidate(r, 0xdeadbe00);
}

static void invalidate_registered(struct row_run *r)
{
    invalidate(r, r->bench->target.remote);
}

static void invalidate_foreign(struct row_run *r)
{
    invalidate(r, r->bench->foreign.remote);
}

static void invalidate_solicited(struct row_run *r)
{
    stream_untagged(&r->stream, 0x41, 0x46, r->bench->stale, 0, 1, 0, NULL, 0);
}

static void invalidate_zero(struct row_run *r)
{
    invalidate(r, 0);
}

static void invalidate_read_sink(struct row_run *r)
{
    invalidate(r, r->sink_stag);
}

static void invalidate_local_token(struct row_run *r)
{
    invalidate(r, r->bench->sink.local);
}

#define INVALIDATE(row, builder, open)                                                             \
    {                                                                                              \
        .name = row, .build = builder, .error = 0x0109, .headers = PEER_DDP, .fills = true,        \
        .reads = open, .failed = STATUS_ACCESS_VIOLATION                                           \
    }

static const struct row invalidate_rows[] = {
    INVALIDATE("M-79 unknown", invalidate_unknown, 0),
    INVALIDATE("M-79 registered", invalidate_registered, 0),
    INVALIDATE("M-79 foreign", invalidate_foreign, 0),
    INVALIDATE("M-79 stale, with SE", invalidate_solicited, 0),
    INVALIDATE("M-80 STag 0", invalidate_zero, 0),
    INVALIDATE("M-81 our Read's sink", invalidate_read_sink, 2),
    INVALIDATE("M-81 our local token", invalidate_local_token, 2),
};

static void M_79_M_81_invalidations(void **state)
{
    (void)state;
    rows_play(invalidate_rows, sizeof invalidate_rows / sizeof invalidate_rows[0], NULL);
}

/* ---- M-43, M-66, M-72, M-73, M-82 ----------------------------------------------------------- */

static struct wire t;

#define LARGE (24u << 20)

/* A peer that takes nothing of a large Response keeps the slots; one request more is too much. */
static void M_66_beyond_ird(void **state)
{
    struct memory large;
    const struct peer_fpdu *f;
    unsigned slots = role_active ? 8 : 9; /* one more for the ready-to-receive Read */

    (void)state;
    wire_bench(&t, NULL);
    t.link.peer.receive_room = 16384;
    link_open(&t.bench, &t.link, role_active);
    make_memory(t.bench.pd, LARGE, NDK_MR_FLAG_ALLOW_REMOTE_READ, &large);
    for (unsigned i = 0; i <= slots; i++)
        stream_read(&t.s, t.link.read_msn++, 0x2200, 0, LARGE, large.remote,
                    (uint64_t)(uintptr_t)large.data);
    assert_true(peer_send(&t.link.peer, t.s.octets, t.s.length));
    expect_event(&t.link.end, "M-66", 3, 0x1202);
    while ((f = peer_fpdu(&t.link.peer))->opcode == 2)
        assert_int_equal(f->stag, 0x2200);
    assert_int_equal(f->opcode, 7);
    assert_memory_equal(f->payload, "\x12\x02\xc0\x00\x00\x2e\x41\x41", 8);
    assert_memory_equal(f->payload + 6, t.s.octets + t.s.ulpdu_at, 18);
    assert_int_equal(f->payload_length, 24);
    assert_int_equal(peer_await_end(&t.link.peer), PEER_FIN);
    free_memory(&large);
    wire_close(&t);
}

/* The source goes while its Response waits for the peer: the rest is an error that says how far. */
static void M_73_source_gone_meanwhile(void **state)
{
    struct memory large;
    const struct peer_fpdu *f;
    uint8_t body[28];
    uint32_t done = 0;

    (void)state;
    wire_bench(&t, NULL);
    t.link.peer.receive_room = 16384;
    link_open(&t.bench, &t.link, role_active);
    make_memory(t.bench.pd, LARGE, NDK_MR_FLAG_ALLOW_REMOTE_READ, &large);
    fill(large.data, LARGE, 3);
    stream_read(&t.s, t.link.read_msn, 0x2200, 0x10000, LARGE, large.remote,
                (uint64_t)(uintptr_t)large.data);
    assert_true(peer_send(&t.link.peer, t.s.octets, t.s.length));
    f = peer_fpdu(&t.link.peer); /* it has begun */
    assert_memory_equal(f->payload, large.data, f->payload_length);
    done = f->payload_length;
    bench_forget(&large); /* not held up by the peer */
    while ((f = peer_fpdu(&t.link.peer))->opcode == 2) {
        assert_int_equal(f->to, 0x10000 + done);
        assert_false(f->last);
        assert_memory_equal(f->payload, large.data + done, f->payload_length);
        done += f->payload_length;
    }
    assert_true(done < LARGE);
    assert_int_equal(f->opcode, 7);
    assert_memory_equal(f->payload, "\x01\x00\xe0\x00\x00\x2e", 6);
    assert_memory_equal(f->payload + 6, t.s.octets + t.s.ulpdu_at, 18);
    stream_read_body(body, 0x2200, 0x10000 + done, LARGE - done, large.remote,
                     (uint64_t)(uintptr_t)large.data + done);
    assert_memory_equal(f->payload + 24, body, sizeof body);
    assert_int_equal(peer_await_end(&t.link.peer), PEER_FIN);
    expect_event(&t.link.end, "M-73", 3, 0x0100);
    free(large.data);
    wire_close(&t);
}

static void M_82_read_never_answered(void **state)
{
    (void)state;
    wire_open(&t, "linger_ms=100,disconnect_ms=200", role_active);
    link_read(&t.bench, &t.link, 0, 64);
    assert_int_equal(peer_fpdu(&t.link.peer)->opcode, 1);
    assert_true(peer_quiet(&t.link.peer, 300));
    expect_no_result(&t.link.end.initiator, "M-82");
    wire_sync(&t, "M-82");
    assert_int_equal(atomic_load(&t.link.end.disconnects), 0);
    bench_unchanged(&t.bench, "M-82");
    wire_close(&t);
}

/* Writes that race with the end of their region: nothing is written once it has ended. */
static void M_43_region_ends_meanwhile(void **state)
{
    static uint8_t ours[60000], theirs[60000];

    (void)state;
    bench_open(&t.bench, NULL);
    memset(ours, 0x55, sizeof ours);
    memset(theirs, 0xaa, sizeof theirs);
    stream_init(&t.s, true);
    for (int round = 0; round < 30; round++) {
        struct memory memory;
        const struct peer_fpdu *f;
        enum peer_end end;

        link_init(&t.link);
        link_open(&t.bench, &t.link, round & 1);
        make_memory(t.bench.pd, sizeof ours, NDK_MR_FLAG_ALLOW_REMOTE_WRITE, &memory);
        stream_reset(&t.s);
        for (int i = 0; i < 20; i++)
            stream_write(&t.s, memory.remote, (uint64_t)(uintptr_t)memory.data, theirs,
                         sizeof theirs);
        assert_true(peer_send(&t.link.peer, t.s.octets, t.s.length / 2));
        peer_send(&t.link.peer, t.s.octets + t.s.length / 2, t.s.length - t.s.length / 2);
        bench_forget(&memory);
        memcpy(memory.data, ours, sizeof ours);
        peer_half_close(&t.link.peer);
        /* All Writes were in time, or one was too late. */
        if (!wait_event(&t.link.end.disconnected, WAIT_S * 1000))
            test_fail("M-43: no event");
        if (t.link.end.reason >> 28 == 3) {
            f = peer_fpdu_or_end(&t.link.peer, &end);
            assert_non_null(f);
            assert_memory_equal(f->payload, "\x11\x00\xc0", 3);
        } else {
            assert_int_equal(t.link.end.reason >> 28, 1);
        }
        link_close(&t.link);
        assert_memory_equal(memory.data, ours, sizeof ours);
        free(memory.data);
    }
    stream_free(&t.s);
    bench_close(&t.bench);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(M_59_M_62_control),        cmocka_unit_test(M_63_M_71_read_requests),
        cmocka_unit_test(M_74_M_78_read_responses), cmocka_unit_test(M_79_M_81_invalidations),
        cmocka_unit_test(M_66_beyond_ird),          cmocka_unit_test(M_73_source_gone_meanwhile),
        cmocka_unit_test(M_82_read_never_answered), cmocka_unit_test(M_43_region_ends_meanwhile),
    };

    return RUN_IN_ROLES("wire_rdmap", tests);
}
