// SPDX-License-Identifier: MIT
/*
 * What the completion of a Send or a Write promises, for each of the three meanings: local, placed,
 * acked. The data patterns with each; then what only the one or the other may say: placed against a
 * peer in this process and one that is not softndk, acked against what a peer's kernel holds, local
 * against a peer that does nothing. docs/completions.md says the same in words.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>

#include <cmocka.h>

#include "peer.h" /* before ends.h: the peer alone */
#include "regions.h"

#define SIZE   (2u << 20)
#define CTX(n) ((void *)(uintptr_t)(n))

static const char *const meanings[] = {"completion=local", "completion=placed", "completion=acked"};

/* ---- the data patterns, with each ----------------------------------------------------------- */

static void patterns_one_way(struct bed *bed, ULONG length, unsigned seed)
{
    struct end *c = &bed->pair.client, *s = &bed->pair.server;
    const UINT64 to = (UINT64)(uintptr_t)bed->server.data + 3;

    fill(bed->client.data, length, seed);
    memset(bed->server.data, 0, (size_t)length + 3);
    post_receive(s, &bed->server, SIZE, CTX(1));
    assert_int_equal(post_send(c, &bed->client, length, 0, CTX(2)), STATUS_SUCCESS);
    expect_completion(&s->receive, "send", CTX(1), NdkOperationTypeReceive, STATUS_SUCCESS);
    expect_completion(&c->initiator, "send", CTX(2), NdkOperationTypeSend, STATUS_SUCCESS);
    assert_true(check(bed->server.data, length, seed));
    fill(bed->client.data, length, seed + 1);
    assert_int_equal(post_write(c, &bed->client, length, to, bed->server.remote, 0, CTX(3)),
                     STATUS_SUCCESS);
    expect_completion(&c->initiator, "write", CTX(3), NdkOperationTypeWrite, STATUS_SUCCESS);
    synchronize(c, s);
    assert_true(check(bed->server.data + 3, length, seed + 1));
    memset(bed->client.data, 0, length);
    assert_int_equal(post_read(c, &bed->client, length, to, bed->server.remote, 0, CTX(4)),
                     STATUS_SUCCESS);
    expect_completion(&c->initiator, "read", CTX(4), NdkOperationTypeRead, STATUS_SUCCESS);
    assert_true(check(bed->client.data, length, seed + 1));
}

/* Writes, Reads and Sends of both ends at once: completions come in the order of the posts. */
static void patterns_mixed(struct bed *bed, unsigned rounds)
{
    struct end *ends[2] = {&bed->pair.client, &bed->pair.server};
    struct memory *own[2] = {&bed->client, &bed->server};
    struct memory inbox[2] = {bed->client, bed->server};

    for (unsigned e = 0; e < 2; e++) /* not where something is sent from */
        inbox[e].data += SIZE / 4;
    for (unsigned round = 0; round < rounds; round++) {
        for (unsigned e = 0; e < 2; e++)
            for (unsigned i = 0; i < 8; i++)
                post_receive(ends[e], &inbox[e], 64, CTX(i));
        for (unsigned e = 0; e < 2; e++) {
            struct memory *peer = own[1 - e];
            const UINT64 to = (UINT64)(uintptr_t)peer->data + SIZE / 2;

            for (unsigned i = 0; i < 24; i += 3) {
                ULONG more = i == 21 ? 0 : NDK_OP_FLAG_DEFER;

                assert_int_equal(post_write(ends[e], own[e], 3000 * i, to, peer->remote,
                                            NDK_OP_FLAG_DEFER, CTX(i)),
                                 STATUS_SUCCESS);
                assert_int_equal(post_read(ends[e], &inbox[e], 500, to + SIZE / 4, peer->remote,
                                           NDK_OP_FLAG_DEFER, CTX(i + 1)),
                                 STATUS_SUCCESS);
                assert_int_equal(post_send(ends[e], own[e], 64, more, CTX(i + 2)), STATUS_SUCCESS);
            }
        }
        for (unsigned e = 0; e < 2; e++) {
            static const NDK_OPERATION_TYPE types[] = {NdkOperationTypeWrite, NdkOperationTypeRead,
                                                       NdkOperationTypeSend};

            for (unsigned i = 0; i < 24; i++)
                expect_completion(&ends[e]->initiator, "mixed", CTX(i), types[i % 3],
                                  STATUS_SUCCESS);
            for (unsigned i = 0; i < 8; i++)
                expect_completion(&ends[e]->receive, "mixed", CTX(i), NdkOperationTypeReceive,
                                  STATUS_SUCCESS);
        }
    }
}

static void data_with_each(void **state)
{
    static const ULONG lengths[] = {0, 1, 64, 1408, 4096, 65473, 65474, 300000, 1048577};
    static const char *const more[] = {"", ",crc=0", ",fpdu_max=1442", ",tcp_buffer=131072"};

    (void)state;
    for (unsigned m = 0; m < 3; m++)
        for (unsigned o = 0; o < 4; o++) {
            struct bed bed;
            char options[128];

            snprintf(options, sizeof options, "%s%s", meanings[m], more[o]);
            bed_open(&bed, options, SIZE, ALL_RIGHTS);
            for (unsigned i = 0; i < sizeof lengths / sizeof lengths[0]; i++)
                patterns_one_way(&bed, lengths[i], i);
            patterns_mixed(&bed, 10);
            bed_close(&bed);
        }
}

/* Silent successes leave nothing, and the one behind them tells of them all. */
static void silent_with_each(void **state)
{
    (void)state;
    for (unsigned m = 0; m < 3; m++) {
        struct bed bed;
        struct end *c;

        bed_open(&bed, meanings[m], SIZE, ALL_RIGHTS);
        c = &bed.pair.client;
        for (unsigned round = 0; round < 10; round++) {
            for (unsigned i = 0; i < 40; i++)
                assert_int_equal(post_write(c, &bed.client, 1000,
                                            (UINT64)(uintptr_t)bed.server.data, bed.server.remote,
                                            i < 39 ? NDK_OP_FLAG_SILENT_SUCCESS : 0, CTX(i)),
                                 STATUS_SUCCESS);
            expect_completion(&c->initiator, "the last", CTX(39), NdkOperationTypeWrite,
                              STATUS_SUCCESS);
        }
        bed_close(&bed);
    }
}

/* ---- placed --------------------------------------------------------------------------------- */

/* Ten seconds of them are enough, and a hundred the least. */
#define PLACED_ROUNDS 500u
#define PLACED_LEAST  100u
#define PLACED_MS     10000u

static void placed_is_placed(void **state)
{
    unsigned long long end = test_now_ms() + PLACED_MS;
    struct bed bed;
    struct end *c;

    (void)state;
    bed_open(&bed, "completion=placed,crc=0", SIZE, ALL_RIGHTS);
    c = &bed.pair.client;
    for (unsigned round = 0; round < PLACED_ROUNDS; round++) {
        if (round >= PLACED_LEAST && test_now_ms() > end)
            break;
        const ULONG length = round % 8 ? 300000 : SIZE;

        memset(bed.client.data, (int)(round % 251), length);
        assert_int_equal(post_write(c, &bed.client, length, (UINT64)(uintptr_t)bed.server.data,
                                    bed.server.remote, 0, CTX(round)),
                         STATUS_SUCCESS);
        expect_completion(&c->initiator, "placed", CTX(round), NdkOperationTypeWrite,
                          STATUS_SUCCESS);
        /* No Send behind it: the completion alone says so. */
        assert_memory_equal(bed.server.data, bed.client.data, length);
    }
    bed_close(&bed);
}

enum fault { BAD_TOKEN, OUT_OF_BOUNDS, READ_BAD_TOKEN, READ_OUT_OF_BOUNDS, NO_RECEIVE, TOO_LONG };

static const struct {
    const char *name;
    NDK_OPERATION_TYPE type;
    NTSTATUS initiator, receive; /* receive: of one that was posted */
    iwarp_error error;
} faults[] = {
    [BAD_TOKEN] = {"bad token", NdkOperationTypeWrite, STATUS_ACCESS_VIOLATION, STATUS_CANCELLED,
                   IWARP_ERR_TAG_STAG},
    [OUT_OF_BOUNDS] = {"out of bounds", NdkOperationTypeWrite, STATUS_ACCESS_VIOLATION,
                       STATUS_CANCELLED, IWARP_ERR_TAG_BOUNDS},
    [READ_BAD_TOKEN] = {"read, bad token", NdkOperationTypeRead, STATUS_ACCESS_VIOLATION,
                        STATUS_CANCELLED, IWARP_ERR_PROT_STAG},
    [READ_OUT_OF_BOUNDS] = {"read, out of bounds", NdkOperationTypeRead, STATUS_REMOTE_RESOURCES,
                            STATUS_CANCELLED, IWARP_ERR_PROT_BOUNDS},
    [NO_RECEIVE] = {"no receive", NdkOperationTypeSend, STATUS_IO_TIMEOUT, STATUS_CANCELLED,
                    IWARP_ERR_UNTAG_NO_BUFFER},
    [TOO_LONG] = {"too long", NdkOperationTypeSend, STATUS_REMOTE_RESOURCES, STATUS_BUFFER_OVERFLOW,
                  IWARP_ERR_UNTAG_LENGTH},
};

/* Good requests before and behind one that the peer refuses. */
static void placed_fault(enum fault fault, unsigned before)
{
    struct bed bed;
    struct end *c, *s;
    UINT64 to;
    UINT32 token;
    NTSTATUS status = STATUS_SUCCESS;

    bed_open(&bed, "completion=placed,holdback_ms=50", SIZE, ALL_RIGHTS);
    c = &bed.pair.client;
    s = &bed.pair.server;
    to = (UINT64)(uintptr_t)bed.server.data;
    token = bed.server.remote;
    if (fault != NO_RECEIVE)
        post_receive(s, &bed.server, 100, CTX(1));
    for (unsigned i = 0; i < before; i++)
        assert_int_equal(post_write(c, &bed.client, 100000, to, token, NDK_OP_FLAG_DEFER, CTX(i)),
                         STATUS_SUCCESS);
    switch (fault) {
    case BAD_TOKEN:
        status = post_write(c, &bed.client, 8, to, token ^ 1, NDK_OP_FLAG_DEFER, CTX(77));
        break;
    case OUT_OF_BOUNDS:
        status = post_write(c, &bed.client, SIZE, to + 1, token, NDK_OP_FLAG_DEFER, CTX(77));
        break;
    case READ_BAD_TOKEN:
        status = post_read(c, &bed.client, 8, to, token ^ 1, NDK_OP_FLAG_DEFER, CTX(77));
        break;
    case READ_OUT_OF_BOUNDS:
        status = post_read(c, &bed.client, SIZE, to + 1, token, NDK_OP_FLAG_DEFER, CTX(77));
        break;
    case NO_RECEIVE:
        status = post_send(c, &bed.client, 8, NDK_OP_FLAG_DEFER, CTX(77));
        break;
    case TOO_LONG:
        status = post_send(c, &bed.client, 101, NDK_OP_FLAG_DEFER, CTX(77));
        break;
    }
    assert_int_equal(status, STATUS_SUCCESS);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(post_write(c, &bed.client, 100000, to, token,
                                    NDK_OP_FLAG_READ_FENCE | (i < 2 ? NDK_OP_FLAG_DEFER : 0),
                                    CTX(100 + i)),
                         STATUS_SUCCESS);
    for (unsigned i = 0; i < before; i++)
        expect_completion(&c->initiator, faults[fault].name, CTX(i), NdkOperationTypeWrite,
                          STATUS_SUCCESS);
    expect_completion(&c->initiator, faults[fault].name, CTX(77), faults[fault].type,
                      faults[fault].initiator);
    for (unsigned i = 0; i < 3; i++)
        expect_completion(&c->initiator, faults[fault].name, CTX(100 + i), NdkOperationTypeWrite,
                          STATUS_CANCELLED);
    if (fault != NO_RECEIVE)
        expect_completion(&s->receive, faults[fault].name, CTX(1), NdkOperationTypeReceive,
                          faults[fault].receive);
    expect_event(s, faults[fault].name, REASON_TERMINATE_SENT, faults[fault].error);
    expect_event(c, faults[fault].name, REASON_TERMINATE_RECEIVED, faults[fault].error);
    bed_close(&bed);
}

static void placed_statuses_are_exact(void **state)
{
    (void)state;
    for (int fault = BAD_TOKEN; fault <= TOO_LONG; fault++)
        for (unsigned before = 0; before < 30; before += 7)
            placed_fault((enum fault)fault, before);
}

/* A peer that holds back has not placed anything. */
static void placed_waits_for_the_receive(void **state)
{
    struct bed bed;
    struct end *c, *s;

    (void)state;
    bed_open(&bed, "completion=placed", SIZE, ALL_RIGHTS);
    c = &bed.pair.client;
    s = &bed.pair.server;
    assert_int_equal(post_send(c, &bed.client, 100, 0, CTX(1)), STATUS_SUCCESS);
    expect_nothing(&c->initiator, "placed, no receive", 50);
    post_receive(s, &bed.server, 100, CTX(2));
    expect_completion(&s->receive, "receive", CTX(2), NdkOperationTypeReceive, STATUS_SUCCESS);
    expect_completion(&c->initiator, "send", CTX(1), NdkOperationTypeSend, STATUS_SUCCESS);
    bed_close(&bed);
}

/* Each end has its own meaning; that of the other one does not matter. */
static void each_end_for_itself(void **state)
{
    (void)state;
    for (unsigned m = 0; m < 9; m++) {
        struct bed bed;

        bed_open_two(&bed, meanings[m % 3], meanings[m / 3], SIZE, ALL_RIGHTS);
        patterns_one_way(&bed, 100000, m);
        patterns_mixed(&bed, 3);
        bed_close(&bed);
    }
}

/* ---- a peer that is not softndk ------------------------------------------------------------- */

/* An end that is connected to a plain socket, whose owner reads when it likes. */
struct foreign {
    struct end end;
    struct memory memory;
    struct peer peer;
};

static SOCKADDR_INET loopback(uint16_t port)
{
    SOCKADDR_INET address;
    ULONG length;

    assert_int_equal(softndk_address_from_text("127.0.0.1", &address, &length), STATUS_SUCCESS);
    address.Ipv4.sin_port = (USHORT)(port >> 8 | port << 8);
    return address;
}

static void foreign_open(struct foreign *f, const char *options)
{
    SOCKADDR_INET local = loopback(0), remote;
    uint8_t frame[532];
    struct end *end = &f->end;
    struct wait w;
    NTSTATUS status;

    memset(f, 0, sizeof *f);
    end_open(end, options);
    make_memory(end->pd, SIZE, ALL_RIGHTS, &f->memory);
    peer_init(&f->peer);
    f->peer.receive_room = 65536;
    remote = loopback(peer_listen(&f->peer));
    end->connector = make_connector(end->adapter);
    wait_init(&w);
    status = end->connector->Dispatch->NdkConnect(
        end->connector, end->qp, (PSOCKADDR)&local, sizeof local.Ipv4, (PSOCKADDR)&remote,
        sizeof remote.Ipv4, 8, 8, NULL, 0, wait_request, &w);
    peer_accept(&f->peer);
    peer_frame(&f->peer, frame);
    peer_send_frame(&f->peer, true, 0x8008, 0x4008);
    expect_call(wait_end(&w, status), STATUS_SUCCESS, "NdkConnect", &end->connector->Header);
    wait_init(&w);
    status = end->connector->Dispatch->NdkCompleteConnectEx(end->connector, end_disconnected, end,
                                                            wait_request, &w);
    peer_answer_rtr_read(&f->peer);
    expect_call(wait_end(&w, status), STATUS_SUCCESS, "NdkCompleteConnectEx",
                &end->connector->Header);
}

static void foreign_close(struct foreign *f)
{
    peer_close(&f->peer);
    free_memory(&f->memory);
    end_close(&f->end);
}

/* Octets in the peer's kernel that it has not read. */
static size_t unread(struct foreign *f)
{
    int n = 0;

    assert_int_equal(ioctl(f->peer.fd, FIONREAD, &n), 0);
    return (size_t)n;
}

/* The octets of a Send on the wire, at least: its payload. */
static size_t send_some(struct foreign *f, ULONG length, uintptr_t context)
{
    assert_int_equal(post_send(&f->end, &f->memory, length, 0, CTX(context)), STATUS_SUCCESS);
    return length;
}

/* local: nobody need read; done as soon as TCP has taken it, and not before. */
static void local_is_taken(void **state)
{
    static const char *const options[] = {"tcp_buffer=131072",
                                          "completion=placed,tcp_buffer=131072"};

    (void)state;
    for (unsigned o = 0; o < 2; o++) { /* placed has nobody to ask here: it falls back */
        struct foreign f;
        NDK_RESULT_EX result;
        unsigned taken = 0;

        foreign_open(&f, options[o]);
        for (unsigned i = 0; i < 40; i++)
            send_some(&f, 100000, i);
        expect_completion(&f.end.initiator, "taken", CTX(0), NdkOperationTypeSend, STATUS_SUCCESS);
        for (taken = 1; queue_try(&f.end.initiator, &result, 200); taken++)
            assert_int_equal(result.Status, STATUS_SUCCESS);
        /* More than the peer's kernel has, less than all: buffers hold the difference. */
        if (unread(&f) >= taken * (size_t)100000)
            test_fail("%u Sends done, all of them with the peer", taken);
        if (taken >= 30)
            test_fail("%u of 40 Sends done although nobody reads", taken);
        foreign_close(&f);
    }
}

/* acked: never more is done than the peer's kernel has got. */
static void acked_is_acknowledged(void **state)
{
    static uint8_t octets[50000];
    struct foreign f;
    size_t have_read = 0, done = 0;
    unsigned next = 0;
    unsigned long long end = test_now_ms() + WAIT_S * 1000;

    (void)state;
    foreign_open(&f, "completion=acked,tcp_buffer=1048576");
    for (unsigned i = 0; i < 60; i++)
        send_some(&f, i % 3 ? 100000 : 5000, i);
    while (next < 60) {
        NDK_RESULT_EX result;
        struct end *e = &f.end;

        if (test_now_ms() > end)
            test_fail("%u of 60 Sends done", next);
        if (queue_try(&e->initiator, &result, 20)) {
            assert_int_equal(result.Status, STATUS_SUCCESS);
            assert_ptr_equal(result.RequestContext, CTX(next));
            done += next++ % 3 ? 100000 : 5000;
            if (done > have_read + unread(&f))
                test_fail("%zu octets done, %zu with the peer", done, have_read + unread(&f));
        } else {
            size_t n = unread(&f);

            n = n < sizeof octets ? n : sizeof octets;
            assert_int_equal(peer_read(&f.peer, octets, n, 1000), PEER_DATA);
            have_read += n;
        }
    }
    foreign_close(&f);
}

/* acked: an acknowledged request is done although nobody has read it. */
static void acked_needs_no_reader(void **state)
{
    struct foreign f;

    (void)state;
    foreign_open(&f, "completion=acked");
    for (unsigned i = 0; i < 50; i++) {
        send_some(&f, 200, i);
        expect_completion(&f.end.initiator, "acked", CTX(i), NdkOperationTypeSend, STATUS_SUCCESS);
    }
    foreign_close(&f);
}

/* The peer resets: what it had acknowledged is done, what it had not is cancelled. */
static void acked_and_reset(void **state)
{
    struct foreign f;
    NDK_RESULT_EX result;
    unsigned done = 0;
    size_t octets;

    (void)state;
    foreign_open(&f, "completion=acked,tcp_buffer=1048576");
    for (unsigned i = 0; i < 20; i++)
        send_some(&f, 100000, i);
    do { /* until the peer's window is shut */
        octets = unread(&f);
        while (queue_try(&f.end.initiator, &result, 100))
            done++;
    } while (unread(&f) != octets);
    peer_reset(&f.peer);
    if (!wait_event(&f.end.disconnected, WAIT_S * 1000))
        test_fail("no event after the reset");
    /* The last acknowledgement may have been looked at only now. */
    for (; done < 20; done++) {
        result = queue_next(&f.end.initiator);
        if (result.Status != STATUS_SUCCESS)
            break;
    }
    for (unsigned i = done; i < 20; i++) {
        if (result.Status != STATUS_CANCELLED || result.RequestContext != CTX(i))
            test_fail("reset: Send %u: %s", i, softndk_status_name(result.Status));
        if (i < 19)
            result = queue_next(&f.end.initiator);
    }
    if (done * (size_t)100000 > octets)
        test_fail("%u Sends done, %zu octets with the peer", done, octets);
    foreign_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH_MODES(data_with_each),
        BOTH_MODES(silent_with_each),
        BOTH_MODES(each_end_for_itself),
        BOTH_MODES(placed_is_placed),
        BOTH_MODES(placed_statuses_are_exact),
        BOTH_MODES(placed_waits_for_the_receive),
        BOTH_MODES(local_is_taken),
        BOTH_MODES(acked_is_acknowledged),
        BOTH_MODES(acked_needs_no_reader),
        BOTH_MODES(acked_and_reset),
    };

    return cmocka_run_group_tests_name("completion", tests, NULL, NULL);
}
