// SPDX-License-Identifier: MIT
/*
 * Statuses of work completions that other tests do not have for each kind of request: flushed local
 * operations, a peer that stops reading, and a peer that gives up while a request is under way.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "foreign.h"
#include "modes.h"
#include "regions.h"

#define CTX(n) ((void *)(uintptr_t)(n))
#define MUCH   (8u << 20) /* more than two small socket buffers hold */

/* What stands behind a Read that is not answered, since the peer holds back the Send before it,
 * waits: local operations because of their fence. A close cancels all of it, in order. */
static void flushed(void **state)
{
    static const NDK_OPERATION_TYPE types[] = {NdkOperationTypeRead, NdkOperationTypeFastRegister,
                                               NdkOperationTypeInvalidate, NdkOperationTypeSend,
                                               NdkOperationTypeWrite};
    struct bed bed;
    struct region ready, valid;
    struct end *c;

    (void)state;
    bed_open_two(&bed, NULL, "holdback_ms=3600000", PAGE, ALL_RIGHTS);
    c = &bed.pair.client;
    region_open(c, 0, PAGE, 0, TRUE, &ready);
    region_open(c, 0, PAGE, 0, TRUE, &valid);
    region_register(&valid, 0, REMOTE_BOTH);
    assert_int_equal(post_send(c, &bed.client, 8, 0, CTX(9)), STATUS_SUCCESS);
    expect_completion(&c->initiator, "the Send that is held back", CTX(9), NdkOperationTypeSend,
                      STATUS_SUCCESS);
    assert_int_equal(
        post_read(c, &bed.client, 8, (uintptr_t)bed.server.data, bed.server.remote, 0, CTX(0)),
        STATUS_SUCCESS);
    assert_int_equal(region_post(&ready, 0, NDK_OP_FLAG_READ_FENCE, CTX(1)), STATUS_SUCCESS);
    assert_int_equal(
        c->qp->Dispatch->NdkInvalidate(c->qp, CTX(2), &valid.mr->Header, NDK_OP_FLAG_READ_FENCE),
        STATUS_SUCCESS);
    assert_int_equal(post_send(c, &bed.client, 8, 0, CTX(3)), STATUS_SUCCESS);
    assert_int_equal(
        post_write(c, &bed.client, 8, (uintptr_t)bed.server.data, bed.server.remote, 0, CTX(4)),
        STATUS_SUCCESS);
    expect_nothing(&c->initiator, "fenced", 5);
    CLOSE(c->connector, NdkCloseConnector);
    c->connector = NULL;
    for (uintptr_t i = 0; i < sizeof types / sizeof types[0]; i++)
        expect_completion(&c->initiator, "flushed", CTX(i), types[i], STATUS_CANCELLED);
    expect_nothing(&c->initiator, "all is flushed", 5);
    region_close(&ready);
    region_close(&valid);
    bed_close(&bed);
}

/* ---- a request that gets stuck in TCP ---------------------------------------------------------
 */

/* Connected, and a big Send or Write is on its way to a peer that does not read. */
static void stuck_open(struct foreign *f, const char *options, bool write, struct memory *memory)
{
    struct call connect, complete;

    end_open(&f->end, options);
    peer_init(&f->peer);
    f->peer.receive_room = 65536;
    f->address = address_of(peer_listen(&f->peer));
    foreign_dial(f, &connect);
    foreign_reply(f, &connect);
    wait_init(&complete.wait);
    complete.returned = f->end.connector->Dispatch->NdkCompleteConnectEx(
        f->end.connector, end_disconnected, &f->end, wait_request, &complete.wait);
    peer_answer_rtr_read(&f->peer);
    assert_int_equal(later(&complete), STATUS_SUCCESS);
    make_memory(f->end.pd, MUCH, NDK_MR_FLAG_ALLOW_LOCAL_WRITE, memory);
    if (write)
        assert_int_equal(post_write(&f->end, memory, MUCH, 0, 1, 0, CTX(1)), STATUS_SUCCESS);
    else
        assert_int_equal(post_send(&f->end, memory, MUCH, 0, CTX(1)), STATUS_SUCCESS);
    assert_int_equal(post_send(&f->end, memory, 8, 0, CTX(2)), STATUS_SUCCESS);
}

/* The oldest request has the status, the one behind it is cancelled. */
static void stuck_close(struct foreign *f, bool write, NTSTATUS status, struct memory *memory)
{
    expect_completion(&f->end.initiator, "the oldest", CTX(1),
                      write ? NdkOperationTypeWrite : NdkOperationTypeSend, status);
    expect_completion(&f->end.initiator, "the next", CTX(2), NdkOperationTypeSend,
                      STATUS_CANCELLED);
    if (!wait_event(&f->end.disconnected, WAIT_S * 1000))
        test_fail("no disconnect event");
    free_memory(memory);
    foreign_close(f);
}

/* The peer takes nothing for longer than the TCP user timeout. */
static void peer_takes_nothing(void **state)
{
    (void)state;
    for (int write = 0; write < 2; write++) {
        struct foreign f;
        struct memory memory;

        stuck_open(&f, "tcp_buffer=65536,user_timeout_ms=200", write != 0, &memory);
        stuck_close(&f, write != 0, STATUS_IO_TIMEOUT, &memory);
    }
}

/* The peer says Terminate: an error of its own, that no code for memory describes. */
static void peer_gives_up(void **state)
{
    static const uint8_t crc_error[4] = {0x20, 0x02, 0x00, 0x00}; /* layer 2, type 0, code 2 */

    (void)state;
    for (int write = 0; write < 2; write++) {
        struct foreign f;
        struct memory memory;
        struct stream s;

        stuck_open(&f, "tcp_buffer=65536", write != 0, &memory);
        stream_init(&s, true);
        stream_terminate(&s, crc_error, sizeof crc_error);
        assert_true(peer_send(&f.peer, s.octets, s.length));
        stream_free(&s);
        stuck_close(&f, write != 0, STATUS_REMOTE_RESOURCES, &memory);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(flushed),
        cmocka_unit_test(peer_takes_nothing),
        cmocka_unit_test(peer_gives_up),
    };

    return cmocka_run_group_tests_name("status_completion", tests, NULL, NULL);
}
