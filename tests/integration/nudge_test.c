// SPDX-License-Identifier: MIT
/*
 * The nudge: one empty Write for a responder that has overlooked our first FPDU (src/conn/nudge.c).
 * A raw peer that stays silent gets it once, whatever the first FPDU was; one that says anything,
 * that got later octets, or whose connection ends, does not. And the other side: our own responder
 * takes such a Write silently wherever it may come.
 *
 * What must come before nudge_ms have passed is measured, and done again if the machine was slow.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include "ends.h"
#include "peer.h"
#include "provider/adapter.h"

static struct wire t;
static struct wait connecting, completing;
static NTSTATUS complete_status;
static unsigned long long first_at; /* our first FPDU is not older than this */

#define KEY   "MPA ID Rep Frame"
#define SOON  100u /* nudge_ms where it is waited for */
#define LATER 500u /* nudge_ms where something has to happen before */
#define TRIES 20

/* What the peer agrees to, and so what the first FPDU is. */
struct kind {
    const char *name, *option, *reply;
    size_t reply_length;
    unsigned first; /* opcode */
};

static const struct kind kinds[] = {
    {"Read", "", KEY "\x50\x02\x00\x04\x80\x08\x40\x08", 24, 1},
    {"Write", "", KEY "\x50\x02\x00\x04\x80\x08\x80\x08", 24, 0},
    {"A=0", "", KEY "\x50\x02\x00\x04\x00\x08\x00\x08", 24, 3},
    {"p2p=0", ",p2p=0", KEY "\x50\x02\x00\x04\x00\x08\x00\x08", 24, 3},
    {"revision 1", ",mpa_revision=1", KEY "\x40\x01\x00\x00", 20, 3},
};

enum { READ, WRITE, NONE, NOT_ASKED, REVISION_1, KINDS };

/* ---- steps ---------------------------------------------------------------------------------- */

/* As far as the consumer's call of complete connect. */
static void completes(const struct kind *kind, unsigned nudge_ms, const char *more)
{
    char options[128];
    uint8_t frame[532];
    NTSTATUS status;

    snprintf(options, sizeof options, "nudge_ms=%u%s%s", nudge_ms, kind->option, more);
    wire_bench(&t, options);
    end_of_bench(&t.bench, &t.link.end);
    status =
        end_connects(&t.bench, &t.link.end, peer_listen(&t.link.peer), 8, 8, NULL, 0, &connecting);
    peer_accept(&t.link.peer);
    peer_frame(&t.link.peer, frame);
    peer_send(&t.link.peer, kind->reply, kind->reply_length);
    must(&connecting, status, "NdkConnect");
    first_at = test_now_ms();
    complete_status = end_completes(&t.link.end, &completing);
    t.link.send_msn = t.link.read_msn = 1;
}

static void send_empty(uintptr_t context)
{
    struct end *end = &t.link.end;

    must(NULL, end->qp->Dispatch->NdkSend(end->qp, (void *)context, NULL, 0, 0), "NdkSend");
}

/* And the first FPDU: the message of the library, else one of the consumer. */
static void speaks(const struct kind *kind, unsigned nudge_ms, const char *more)
{
    const struct peer_fpdu *f;

    completes(kind, nudge_ms, more);
    if (kind->first == 3) {
        must(&completing, complete_status, "NdkCompleteConnectEx");
        first_at = test_now_ms();
        send_empty(77);
    }
    f = peer_fpdu(&t.link.peer);
    if (f->opcode != kind->first)
        test_fail("%s: the first FPDU has opcode %u", kind->name, f->opcode);
}

static bool late(unsigned nudge_ms)
{
    return test_now_ms() - first_at >= nudge_ms;
}

/* No octet until well behind the time of a nudge. */
static void expect_none(const char *name, unsigned nudge_ms)
{
    unsigned long long end = first_at + nudge_ms + 200, now = test_now_ms();

    if (!peer_quiet(&t.link.peer, (unsigned)(now < end ? end - now : 0) + 50))
        test_fail("%s: a nudge", name);
}

static void expect_nudge(const char *name)
{
    const struct peer_fpdu *f = peer_fpdu(&t.link.peer);

    if (f->opcode != 0 || f->length != 14 || !f->last || f->stag != 1 || f->to != 0)
        test_fail("%s: opcode %u, %u octets, STag %u where the nudge was due", name, f->opcode,
                  f->length, f->stag);
    if (test_now_ms() - first_at + 1 < SOON)
        test_fail("%s: a nudge after %llu ms", name, test_now_ms() - first_at);
}

/* The peer speaks at last; the connection is as any other. */
static void goes_on(const struct kind *kind, const struct peer_fpdu *rtr)
{
    if (kind->first == 1) {
        assert_int_equal(atomic_load(&completing.calls), 0);
        stream_response(&t.s, true, rtr->sink_stag, rtr->sink_to, NULL, 0);
        wire_send(&t);
    }
    if (kind->first != 3)
        must(&completing, complete_status, "NdkCompleteConnectEx");
    else
        expect_result(&t.link.end.initiator, kind->name, 77, STATUS_SUCCESS);
    link_works(&t.bench, &t.link, kind->name, 0);
    expect_no_result(&t.link.end.initiator, kind->name);
    expect_no_result(&t.link.end.receive, kind->name);
    assert_int_equal(atomic_load(&t.link.end.disconnects), 0);
}

/* ---- it comes ------------------------------------------------------------------------------- */

static void overlooked(void **state)
{
    (void)state;
    for (int i = 0; i < KINDS; i++) {
        static struct peer_fpdu rtr;

        speaks(&kinds[i], SOON, "");
        rtr = t.link.peer.got;
        expect_nudge(kinds[i].name);
        /* Once, however long the silence. */
        if (!peer_quiet(&t.link.peer, 4 * SOON))
            test_fail("%s: a second nudge", kinds[i].name);
        goes_on(&kinds[i], &rtr);
        wire_close(&t);
    }
}

/* Requests posted right behind the message do not count as a sign of life: it may all have come
 * too early. */
static void overlooked_with_all_behind_it(void **state)
{
    (void)state;
    for (int tries = 0;; tries++) {
        speaks(&kinds[WRITE], SOON, "");
        send_empty(1);
        send_empty(2);
        if (test_now_ms() - first_at < 10)
            break;
        if (tries == TRIES)
            test_fail("this machine never posts within 10 ms");
        wire_close(&t);
    }
    assert_int_equal(peer_fpdu(&t.link.peer)->opcode, 3);
    assert_int_equal(peer_fpdu(&t.link.peer)->opcode, 3);
    expect_nudge("all behind it");
    wire_close(&t);
}

/* ---- it does not come ----------------------------------------------------------------------- */

/* Nothing is nudged before the consumer has said its first word. */
static void not_before_the_first_fpdu(void **state)
{
    (void)state;
    for (int i = NONE; i < KINDS; i++) {
        completes(&kinds[i], SOON, "");
        must(&completing, complete_status, "NdkCompleteConnectEx");
        if (!peer_quiet(&t.link.peer, 4 * SOON))
            test_fail("%s: octets before the first word", kinds[i].name);
        wire_close(&t);
    }
}

static void not_when_turned_off(void **state)
{
    (void)state;
    for (int i = 0; i < KINDS; i++) {
        speaks(&kinds[i], 0, "");
        if (!peer_quiet(&t.link.peer, 300))
            test_fail("%s: a nudge", kinds[i].name);
        wire_close(&t);
    }
}

/* An answer, a message, a single octet of one: whatever came. */
static void not_when_anything_came(void **state)
{
    (void)state;
    for (int how = 0; how < 3; how++) {
        const struct kind *kind = &kinds[how == 0 ? READ : how == 1 ? WRITE : NONE];

        for (int tries = 0;; tries++) {
            static struct peer_fpdu rtr;

            speaks(kind, LATER, "");
            rtr = t.link.peer.got;
            if (how == 0) {
                stream_response(&t.s, true, rtr.sink_stag, rtr.sink_to, NULL, 0);
            } else {
                link_receive(&t.bench, &t.link, 0);
                stream_send(&t.s, 1, t.octets, 5);
            }
            if (how == 2) /* the rest of it later */
                peer_send(&t.link.peer, t.s.octets, 1);
            else
                peer_send(&t.link.peer, t.s.octets, t.s.length);
            /* A slow machine: perhaps it was due by now. */
            if (how != 2)
                wait_until(how ? queue_try(&t.link.end.receive, &(NDK_RESULT_EX){0}, 1)
                               : atomic_load(&completing.calls) ||
                                     complete_status != STATUS_PENDING,
                           "what the peer sent");
            if (!late(LATER))
                break;
            if (tries == TRIES)
                test_fail("the peer is never heard within %u ms", LATER);
            wire_close(&t);
        }
        expect_none(kind->name, LATER);
        wire_close(&t);
    }
}

/* What follows the first FPDU after some time wakes the peer as well as a nudge would. */
static void not_when_later_octets_followed(void **state)
{
    (void)state;
    for (int tries = 0;; tries++) {
        speaks(&kinds[WRITE], LATER, "");
        test_sleep_ms(30);
        send_empty(1);
        if (!late(LATER))
            break;
        if (tries == TRIES)
            test_fail("this machine never posts within %u ms", LATER);
        wire_close(&t);
    }
    assert_int_equal(peer_fpdu(&t.link.peer)->opcode, 3);
    expect_none("later octets", LATER);
    wire_close(&t);
}

/* Within a message nothing may stand: one that the peer's window holds up is not cut. */
static void not_within_a_message(void **state)
{
    const ULONG size = 3u << 20;
    struct memory from;
    NDK_SGE sge;
    uint32_t got = 0;

    (void)state;
    completes(&kinds[NONE], SOON, ",tcp_buffer=65536");
    must(&completing, complete_status, "NdkCompleteConnectEx");
    make_memory(t.bench.pd, size, 0, &from);
    fill(from.data, size, 3);
    sge = memory_sge(&from, 0, size);
    must(NULL, t.link.end.qp->Dispatch->NdkSend(t.link.end.qp, &t, &sge, 1, 0), "NdkSend");
    test_sleep_ms(3 * SOON); /* the peer does not read */
    while (got < size) {
        const struct peer_fpdu *f = peer_fpdu(&t.link.peer);

        if (f->opcode != 3 || f->mo != got ||
            memcmp(f->payload, from.data + got, f->payload_length))
            test_fail("opcode %u with offset %u at octet %u of the message", f->opcode, f->mo, got);
        got += f->payload_length;
    }
    expect_result(&t.link.end.initiator, "within a message", (uintptr_t)&t, STATUS_SUCCESS);
    if (!peer_quiet(&t.link.peer, 2 * SOON))
        test_fail("octets behind the message");
    free_memory(&from);
    wire_close(&t);
}

/* The connection ends while the timer runs: by either side, in either way. */
static void not_after_the_end(void **state)
{
    static const char *const names[] = {"disconnect", "close", "FIN", "RST"};

    (void)state;
    for (int how = 0; how < 4; how++) {
        struct wait w;
        NTSTATUS status = STATUS_SUCCESS;

        for (int tries = 0;; tries++) {
            struct end *end = &t.link.end;

            speaks(&kinds[WRITE], LATER, "");
            must(&completing, complete_status, "NdkCompleteConnectEx");
            wait_init(&w);
            if (how == 0) {
                status = end->connector->Dispatch->NdkDisconnect(end->connector, wait_request, &w);
                assert_int_equal(peer_await_end(&t.link.peer), PEER_FIN);
            } else if (how == 1) {
                CLOSE(end->connector, NdkCloseConnector);
                end->connector = NULL;
                assert_int_equal(peer_await_end(&t.link.peer), PEER_RST);
            } else if (how == 2) {
                peer_half_close(&t.link.peer);
            } else {
                peer_reset(&t.link.peer);
            }
            if (how >= 2)
                expect_event(end, names[how], how == 2 ? 1 : 2, 0);
            if (!late(LATER))
                break;
            if (tries == TRIES)
                test_fail("%s: never within %u ms", names[how], LATER);
            if (how == 0)
                peer_half_close(&t.link.peer);
            wait_end(&w, status);
            wire_close(&t);
        }
        if (how == 0) { /* behind the FIN there is nothing, not even an error */
            test_sleep_ms(LATER + 50);
            assert_int_equal(peer_await_end(&t.link.peer), PEER_FIN);
            peer_half_close(&t.link.peer);
            assert_int_equal(wait_end(&w, status), STATUS_SUCCESS);
        }
        wire_close(&t);
    }
}

/* The timer is still armed when everything goes: nothing waits for it, nothing is left. */
static void the_timer_goes_with_its_connection(void **state)
{
    unsigned long long began = test_now_ms();

    (void)state;
    for (int i = 0; i < KINDS; i++) {
        speaks(&kinds[i], 3600000, "");
        wire_close(&t);
    }
    assert_true(test_now_ms() - began < 60000);
}

/* ---- what completions promise --------------------------------------------------------------- */

/* `placed` counts FPDUs: the nudge is one of them. What the other end has not processed does not
 * complete because of it. */
static void placed_with_a_nudge(void **state)
{
    struct pair p;
    struct end *c = &p.client, *s = &p.server;
    NDK_RESULT_EX result;
    unsigned long long before;
    atomic_ullong *frames;

    (void)state;
    pair_open(&p, "127.0.0.1", "p2p=0,completion=placed,nudge_ms=50", NULL);
    frames = &adapter_from(s->adapter)->counters->wire.in_frames;
    before = atomic_load(frames); /* of all that the interface has seen */
    must(NULL, s->qp->Dispatch->NdkReceive(s->qp, s, NULL, 0), "NdkReceive");
    must(NULL, c->qp->Dispatch->NdkSend(c->qp, (void *)1, NULL, 0, 0), "NdkSend");
    expect_result(&c->initiator, "placed", 1, STATUS_SUCCESS);
    wait_until(atomic_load(frames) == before + 2, "the nudge");
    must(NULL, c->qp->Dispatch->NdkSend(c->qp, (void *)2, NULL, 0, 0), "NdkSend");
    if (queue_try(&c->initiator, &result, 200)) /* it is held back: nothing was placed */
        test_fail("placed: completed before it was received");
    must(NULL, s->qp->Dispatch->NdkReceive(s->qp, s, NULL, 0), "NdkReceive");
    expect_result(&c->initiator, "placed", 2, STATUS_SUCCESS);
    expect_result(&s->receive, "placed", (uintptr_t)s, STATUS_SUCCESS);
    expect_result(&s->receive, "placed", (uintptr_t)s, STATUS_SUCCESS);
    pair_close(&p);
}

/* ---- our own responder ---------------------------------------------------------------------- */

static void take_one(const char *name)
{
    stream_write(&t.s, 1, 0, NULL, 0);
    wire_send(&t);
    if (!peer_quiet(&t.link.peer, 20))
        test_fail("%s: an answer to a nudge", name);
    expect_no_result(&t.link.end.receive, name);
    expect_no_result(&t.link.end.initiator, name);
    assert_int_equal(atomic_load(&t.link.end.disconnects), 0);
    bench_unchanged(&t.bench, name);
}

/* Behind each kind of first FPDU, in the same segment. */
static void taken_behind_the_first_fpdu(void **state)
{
    static const struct {
        const char *name, *request;
        unsigned first; /* 0: Write, 1: Read, 2: an empty FPDU, 3: an empty Send, 4: the nudge */
    } rows[] = {
        {"Read", "MPA ID Req Frame\x50\x02\x00\x04\x80\x08\x40\x08", 1},
        {"Write", "MPA ID Req Frame\x50\x02\x00\x04\x80\x08\x80\x08", 0},
        {"empty FPDU", "MPA ID Req Frame\x50\x02\x00\x04\xc0\x08\x00\x08", 2},
        {"empty Send", "MPA ID Req Frame\x50\x02\x00\x04\xc0\x08\x00\x08", 3},
        {"A=0", "MPA ID Req Frame\x50\x02\x00\x04\x00\x08\x00\x08", 4},
    };

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct wait w;
        NTSTATUS status;
        uint8_t frame[532];

        wire_bench(&t, NULL);
        end_of_bench(&t.bench, &t.link.end);
        peer_connect(&t.link.peer, port_of(&t.bench.listening));
        peer_send(&t.link.peer, rows[i].request, 24);
        t.link.end.connector = next_incoming(&t.bench.listening);
        status = end_accepts(&t.link.end, 8, 8, NULL, 0, &w);
        peer_frame(&t.link.peer, frame);
        t.link.send_msn = t.link.read_msn = 1;
        if (rows[i].first == 0)
            stream_write(&t.s, 1, 0, NULL, 0);
        else if (rows[i].first == 1)
            stream_read(&t.s, t.link.read_msn++, 0x2200, 0, 0, 1, 0);
        else if (rows[i].first == 2)
            stream_fpdu(&t.s, "", 0);
        else if (rows[i].first == 3)
            stream_send(&t.s, t.link.send_msn++, NULL, 0);
        stream_write(&t.s, 1, 0, NULL, 0);
        wire_send(&t);
        must(&w, status, "NdkAcceptEx");
        if (rows[i].first == 1)
            assert_int_equal(peer_fpdu(&t.link.peer)->opcode, 2);
        take_one(rows[i].name);
        link_works(&t.bench, &t.link, rows[i].name, 0);
        wire_close(&t);
    }
}

/* While it waits for something, and while it ends. */
static void taken_in_every_state(void **state)
{
    struct wait w;
    NTSTATUS status;
    uint8_t offender[18];

    (void)state;
    wire_open(&t, NULL, true); /* to an initiator, which expects none */
    take_one("initiator");
    link_works(&t.bench, &t.link, "initiator", 0);
    wire_close(&t);

    wire_open(&t, "holdback_ms=60000", false);
    link_read(&t.bench, &t.link, 0, 16); /* a Read of ours is open */
    peer_fpdu(&t.link.peer);
    take_one("a Read is open");
    stream_response(&t.s, true, t.link.peer.got.sink_stag, t.link.peer.got.sink_to, t.octets, 16);
    wire_send(&t);
    expect_result(&t.link.end.initiator, "a Read is open", 1, STATUS_SUCCESS);
    memcpy(t.bench.before + SINK_AT, t.octets, 16);

    stream_send(&t.s, t.link.send_msn++, NULL, 0); /* meets no receive */
    wire_send(&t);
    take_one("held back");
    link_receive(&t.bench, &t.link, 0);
    expect_result(&t.link.end.receive, "held back", 1, STATUS_SUCCESS);
    link_works(&t.bench, &t.link, "held back", 1);

    wait_init(&w); /* our FIN is out */
    status = t.link.end.connector->Dispatch->NdkDisconnect(t.link.end.connector, wait_request, &w);
    assert_int_equal(peer_await_end(&t.link.peer), PEER_FIN);
    stream_write(&t.s, 1, 0, NULL, 0);
    wire_send(&t);
    peer_half_close(&t.link.peer);
    assert_int_equal(wait_end(&w, status), STATUS_SUCCESS);
    wire_close(&t);

    wire_open(&t, "drain_ms=10000", false); /* behind its Terminate it discards */
    stream_send(&t.s, 99, NULL, 0);
    memcpy(offender, t.s.octets + t.s.ulpdu_at, sizeof offender);
    wire_send(&t);
    expect_event(&t.link.end, "drained", 3, 0x1203);
    stream_write(&t.s, 1, 0, NULL, 0);
    wire_send(&t);
    peer_expect_terminate(&t.link.peer, "drained", 0x1203, PEER_DDP, offender, sizeof offender);
    peer_half_close(&t.link.peer);
    assert_int_equal(peer_await_end(&t.link.peer), PEER_FIN);
    wire_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(overlooked),
        cmocka_unit_test(overlooked_with_all_behind_it),
        cmocka_unit_test(not_before_the_first_fpdu),
        cmocka_unit_test(not_when_turned_off),
        cmocka_unit_test(not_when_anything_came),
        cmocka_unit_test(not_when_later_octets_followed),
        cmocka_unit_test(not_within_a_message),
        cmocka_unit_test(not_after_the_end),
        cmocka_unit_test(the_timer_goes_with_its_connection),
        cmocka_unit_test(placed_with_a_nudge),
        cmocka_unit_test(taken_behind_the_first_fpdu),
        cmocka_unit_test(taken_in_every_state),
    };

    return cmocka_run_group_tests_name("nudge", tests, NULL, NULL);
}
