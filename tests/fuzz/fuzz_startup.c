// SPDX-License-Identifier: MIT
/*
 * The startup of a connection, either side, against any octets: the attempt ends, or the connection
 * stands and ends with its peer; both requests are answered once; the listener goes on.
 *
 * Input: role; how many octets of the frame are right before the rest of the input follows; the
 * rest, cut by its own octets.
 */
#include "ends.h"
#include "fuzz.h"
#include "peer.h"

#include <string.h>

static struct bench bench;
static bool opened;
static struct link l;

/*
 * Whether an input brings a connect event is not known beforehand, and the peer may see the end of
 * its connection before a slow machine has told the event. `wanted`: an input waits for one; the
 * event takes that back and leaves the connector, or the input does and goes on without. An event
 * that nobody wants is closed where it comes. (Left alone it would hold the listener open.)
 */
static atomic_bool wanted;
static NDK_CONNECTOR *_Atomic came;

static VOID closed_alone(PVOID context)
{
    (void)context;
}

static void arrived(struct listening *listening, NDK_CONNECTOR *connector, void *context)
{
    (void)listening;
    (void)context;
    if (atomic_exchange(&wanted, false))
        atomic_store(&came, connector);
    else
        connector->Dispatch->NdkCloseConnector(&connector->Header, closed_alone, NULL);
}

/* In pieces: each begins with its length. */
static void send_rest(struct input *in)
{
    while (in->left) {
        size_t length;
        const uint8_t *octets = take_octets(in, take(in, 1) + 1, &length);

        peer_send(&l.peer, octets, length);
    }
    peer_half_close(&l.peer);
}

static void right_octets(struct input *in, const char *frame)
{
    size_t right = take(in, 1) % 33;

    peer_send(&l.peer, frame, right < 24 ? right : 24);
}

static void passive(struct input *in)
{
    struct wait w;
    NTSTATUS status;

    atomic_store(&came, NULL);
    atomic_store(&wanted, true);
    peer_connect(&l.peer, port_of(&bench.listening));
    right_octets(in, "MPA ID Req Frame\x50\x02\x00\x04\x80\x08\xc0\x08");
    send_rest(in);
    /* A connect event, or the end of the connection. */
    while (!atomic_load(&came) && peer_quiet(&l.peer, 1))
        ;
    if (atomic_exchange(&wanted, false))
        return;
    while (!(l.end.connector = atomic_load(&came))) /* between its two steps */
        test_sleep_ms(1);
    status = end_accepts(&l.end, 8, 8, NULL, 0, &w);
    status = wait_end(&w, status);
    need(status == STATUS_SUCCESS || status == STATUS_CONNECTION_ABORTED ||
         status == STATUS_CONNECTION_REFUSED || status == STATUS_IO_TIMEOUT);
    if (status == STATUS_SUCCESS)
        need(wait_event(&l.end.disconnected, 60000));
}

static void active(struct input *in)
{
    struct wait w;
    NTSTATUS status = end_connects(&bench, &l.end, peer_listen(&l.peer), 8, 8, "abc", 3, &w);
    uint8_t frame[532];

    peer_accept(&l.peer);
    peer_frame(&l.peer, frame);
    right_octets(in, "MPA ID Rep Frame\x50\x02\x00\x04\x80\x08\x40\x08");
    send_rest(in);
    status = wait_end(&w, status);
    need(status == STATUS_SUCCESS || status == STATUS_CONNECTION_ABORTED ||
         status == STATUS_CONNECTION_REFUSED || status == STATUS_IO_TIMEOUT);
    if (status != STATUS_SUCCESS)
        return;
    status = end_completes(&l.end, &w);
    status = wait_end(&w, status);
    if (status == STATUS_SUCCESS)
        need(wait_event(&l.end.disconnected, 60000));
    else
        need(status == STATUS_CONNECTION_ABORTED || status == STATUS_IO_TIMEOUT ||
             status == STATUS_CONNECTION_INVALID);
}

static void at_end(void)
{
    bench_close(&bench);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {data, size};
    bool is_active = take(&in, 1) & 1;
    NDK_RESULT_EX result;

    if (!opened) {
        opened = true;
        atexit(at_end);
        bench_open(&bench, "holdback_ms=0,linger_ms=100,drain_ms=100,retry_v1=0");
        bench.listening.in_callback = arrived;
    }
    link_init(&l);
    end_of_bench(&bench, &l.end);
    link_receive(&bench, &l, 0);
    if (is_active)
        active(&in);
    else
        passive(&in);
    if (l.end.connector)
        CLOSE(l.end.connector, NdkCloseConnector);
    l.end.connector = NULL;
    CLOSE(l.end.qp, NdkCloseQp);
    l.end.qp = NULL;
    result = queue_next(&l.end.receive);
    need(result.RequestContext == (void *)1);
    need(l.end.receive.cq->Dispatch->NdkGetCqResultsEx(l.end.receive.cq, &result, 1) == 0);
    need(atomic_load(&l.end.disconnects) <= 1);
    link_close(&l);
    memcpy(bench.arena + INBOX_AT, bench.before + INBOX_AT, RECEIVE_LENGTH);
    memcpy(bench.arena + TARGET_AT, bench.before + TARGET_AT, TARGET_SIZE);
    need(memcmp(bench.arena, bench.before, ARENA_SIZE) == 0);
    return 0;
}
