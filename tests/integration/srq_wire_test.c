// SPDX-License-Identifier: MIT
/*
 * A message of a bare peer that begins and does not end: the receive it took from the shared queue
 * completes at its queue pair with the status of what happened, once; the others are untouched and
 * serve the others.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "peer.h" /* the peer alone */

#include "share.h"

#define CTX(n)  ((void *)(uintptr_t)(n))
#define LENGTH  600u /* of a receive */
#define FIRST   200u /* octets of the first segment */
#define OPTIONS "holdback_ms=600000,shards=4"

#define MORE 0x01 /* DDP: untagged, not the last segment */
#define LAST 0x41
#define SEND 0x43

struct scene {
    struct share share;
    struct end end; /* of the bare peer */
    struct peer peer;
    struct stream stream;
    uint8_t octets[2 * LENGTH];
};

static uint16_t port_of(const struct listening *listening)
{
    USHORT port = listening->address.Ipv4.sin_port;

    return (uint16_t)(port >> 8 | port << 8);
}

static void peer_links(struct scene *s)
{
    struct wait accept;
    NTSTATUS status;

    share_server_end(&s->share, &s->end);
    peer_init(&s->peer);
    peer_connect(&s->peer, port_of(&s->share.listening));
    peer_send_frame(&s->peer, false, 0x8008, 0xc008);
    s->end.connector = next_incoming(&s->share.listening);
    wait_init(&accept);
    status =
        s->end.connector->Dispatch->NdkAcceptEx(s->end.connector, s->end.qp, 8, 8, NULL, 0,
                                                end_disconnected, &s->end, wait_request, &accept);
    peer_expect_frame(&s->peer, "link", "MPA ID Rep Frame\x50\x02\x00\x04\x80\x08\x40\x08", 24);
    peer_rtr_read(&s->peer);
    expect_call(wait_end(&accept, status), STATUS_SUCCESS, "NdkAcceptEx",
                &s->end.connector->Header);
}

static void post(struct scene *s, unsigned slot, UINT32 token)
{
    NDK_SGE sge = memory_sge(&s->share.memory, (size_t)slot * SHARE_SLOT, LENGTH);

    if (token)
        sge.MemoryRegionToken = token;
    expect_call(s->share.srq->Dispatch->NdkSrqReceive(s->share.srq, CTX(slot + 1), &sge, 1),
                STATUS_SUCCESS, "NdkSrqReceive", &s->share.srq->Header);
}

static void send_segment(struct scene *s, uint8_t ddp, uint32_t offset, uint32_t length)
{
    stream_reset(&s->stream);
    stream_untagged(&s->stream, ddp, SEND, 0, 0, 1, offset, s->octets, length);
    peer_send(&s->peer, s->stream.octets, s->stream.length);
}

/* ---- what happens to the half message ------------------------------------------------------- */

static void it_is_reset(struct scene *s)
{
    peer_reset(&s->peer);
}

static void it_is_cut_by_a_fin(struct scene *s)
{
    peer_half_close(&s->peer);
}

static void it_becomes_too_long(struct scene *s)
{
    send_segment(s, LAST, FIRST, LENGTH - FIRST + 1);
}

static void it_has_a_hole(struct scene *s)
{
    send_segment(s, LAST, FIRST + 1, 10);
}

static void its_crc_is_wrong(struct scene *s)
{
    stream_reset(&s->stream);
    stream_untagged(&s->stream, LAST, SEND, 0, 0, 1, FIRST, s->octets, 10);
    s->stream.octets[s->stream.length - 1] ^= 1;
    peer_send(&s->peer, s->stream.octets, s->stream.length);
}

static void it_is_flushed(struct scene *s)
{
    s->end.qp->Dispatch->NdkFlush(s->end.qp);
}

static void its_connector_is_closed(struct scene *s)
{
    CLOSE(s->end.connector, NdkCloseConnector);
    s->end.connector = NULL;
}

static void its_cq_is_left_alone(struct scene *s)
{
    /* The queue pair is closed first: it pends for its connector, whose close ends it. */
    struct wait w;
    NTSTATUS status;

    wait_init(&w);
    status = s->end.qp->Dispatch->NdkCloseQp(&s->end.qp->Header, wait_close, &w);
    assert_int_equal(status, STATUS_PENDING);
    its_connector_is_closed(s);
    assert_int_equal(wait_end(&w, status), STATUS_SUCCESS);
    s->end.qp = NULL;
}

static const struct {
    const char *name;
    void (*happens)(struct scene *s);
    NTSTATUS status;
} rows[] = {
    {"reset", it_is_reset, STATUS_CANCELLED},
    {"FIN in the message", it_is_cut_by_a_fin, STATUS_CANCELLED},
    {"too long", it_becomes_too_long, STATUS_BUFFER_OVERFLOW},
    {"hole", it_has_a_hole, STATUS_CANCELLED},
    {"CRC", its_crc_is_wrong, STATUS_CANCELLED},
    {"flush", it_is_flushed, STATUS_CANCELLED},
    {"close", its_connector_is_closed, STATUS_CANCELLED},
    {"close of the QP", its_cq_is_left_alone, STATUS_CANCELLED},
};

static void scene_open(struct scene *s)
{
    memset(s, 0, sizeof *s);
    share_open(&s->share, OPTIONS, 4, 16, 0);
    share_connect(&s->share, 0);
    peer_links(s);
    stream_init(&s->stream, true);
    fill(s->octets, sizeof s->octets, 4);
}

static void scene_close(struct scene *s)
{
    peer_close(&s->peer);
    share_server_end_close(&s->end);
    stream_free(&s->stream);
    share_close(&s->share);
}

static void half_a_message(void **state)
{
    static struct scene s;

    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        scene_open(&s);
        for (unsigned slot = 0; slot < 3; slot++)
            post(&s, slot, 0);
        send_segment(&s, MORE, 0, FIRST);
        wait_until(share_queued(&s.share) == 2, rows[i].name);
        share_send(&s.share, 0, 300); /* meanwhile the others go on, with the next one */
        assert_int_equal(share_receive(&s.share, 0, 300), 1);
        expect_nothing(&s.end.receive, rows[i].name, 0);
        rows[i].happens(&s);
        expect_completion(&s.end.receive, rows[i].name, CTX(1), NdkOperationTypeReceive,
                          rows[i].status);
        share_send(&s.share, 0, 301);
        assert_int_equal(share_receive(&s.share, 0, 301), 2);
        expect_nothing(&s.end.receive, rows[i].name, 20);
        assert_int_equal(share_queued(&s.share), 0);
        scene_close(&s);
    }
}

/* The receive names no memory: so it ends that connection, and is used up. */
static void a_receive_of_no_memory(void **state)
{
    static struct scene s;

    (void)state;
    scene_open(&s);
    post(&s, 0, s.share.memory.local ^ 0x5500);
    post(&s, 1, 0);
    send_segment(&s, LAST, 0, FIRST);
    expect_completion(&s.end.receive, "bad token", CTX(1), NdkOperationTypeReceive,
                      STATUS_ACCESS_VIOLATION);
    share_send(&s.share, 0, 30);
    assert_int_equal(share_receive(&s.share, 0, 30), 1);
    scene_close(&s);
}

/* A message that is held, then one segment behind the other, all with one receive. */
static void held_in_segments(void **state)
{
    static struct scene s;

    (void)state;
    scene_open(&s);
    for (uint32_t at = 0; at < LENGTH; at += 100) {
        stream_reset(&s.stream);
        stream_untagged(&s.stream, at + 100 < LENGTH ? MORE : LAST, SEND, 0, 0, 1, at,
                        s.octets + at, 100);
        peer_send(&s.peer, s.stream.octets, s.stream.length);
        if (at == 0)
            wait_until(share_waiting(&s.share) == 1, "holding");
    }
    expect_nothing(&s.end.receive, "held", 20);
    post(&s, 2, 0);
    expect_completion(&s.end.receive, "held", CTX(3), NdkOperationTypeReceive, STATUS_SUCCESS);
    assert_memory_equal(share_slot(&s.share, 2), s.octets, LENGTH);
    scene_close(&s);
}

/* A peer that is held goes away: its place is the next one's. */
static void the_first_to_wait_goes_away(void **state)
{
    static struct scene s;

    (void)state;
    for (unsigned flush = 0; flush < 2; flush++) {
        scene_open(&s);
        send_segment(&s, LAST, 0, FIRST);
        wait_until(share_waiting(&s.share) == 1, "holding");
        share_send(&s.share, 0, 50);
        wait_until(share_waiting(&s.share) == 2, "holding");
        if (flush) { /* does not touch who waits: nothing of it is in the queue pair */
            s.end.qp->Dispatch->NdkFlush(s.end.qp);
            expect_nothing(&s.end.receive, "flush", 20);
            assert_int_equal(share_waiting(&s.share), 2);
            post(&s, 1, 0);
            expect_completion(&s.end.receive, "held", CTX(2), NdkOperationTypeReceive,
                              STATUS_SUCCESS);
        } else {
            its_connector_is_closed(&s);
            assert_int_equal(share_waiting(&s.share), 1);
        }
        post(&s, 0, 0);
        assert_int_equal(share_receive(&s.share, 0, 50), 0);
        expect_nothing(&s.end.receive, "the other's receive", 20);
        scene_close(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH_MODES(half_a_message),
        BOTH_MODES(a_receive_of_no_memory),
        BOTH_MODES(held_in_segments),
        BOTH_MODES(the_first_to_wait_goes_away),
    };

    return cmocka_run_group_tests_name("srq_wire", tests, NULL, NULL);
}
