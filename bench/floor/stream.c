// SPDX-License-Identifier: MIT
/*
 * stream.c - messages one way, as fast as they go.
 *
 * send: untagged messages into slots, as receives posted by a consumer; write: tagged messages into
 * one region. Both framed, see frame.h. raw: no frames, the sender writes and the receiver reads
 * what it gets; this is TCP alone.
 *
 * The client stops the clock when the server has taken the last octet out of its socket.
 */
#include <unistd.h>

#include "floor/frame.h"
#include "floor/modes.h"

#define SLOTS      128u
#define CHECK_EACH (64u << 10) /* octets between looks at the clock */

struct flow {
    struct bench_end *end;
    struct frame_tx tx;
    uint8_t *source;
    unsigned each; /* messages a batch */
    int fd;
};

static enum frame_op op_of(const struct bench_plan *plan)
{
    return strcmp(plan->mode, "send") == 0 ? FRAME_SEND : FRAME_WRITE;
}

/* ---- client ---------------------------------------------------------------------------------- */

static bool one_batch(struct flow *flow)
{
    const struct bench_plan *plan = &flow->end->plan;

    if (strcmp(plan->mode, "raw") == 0)
        return bench_send(flow->fd, flow->source, plan->size, plan->spin);
    for (unsigned i = 0; i < flow->each; i++)
        if (!frame_message(&flow->tx, op_of(plan), 0, flow->source, plan->size))
            return false;
    return frame_flush(&flow->tx);
}

/* Returns the number of messages; `iters` 0: for that long. */
static uint64_t run(struct flow *flow, uint64_t iters, double seconds)
{
    const struct bench_plan *plan = &flow->end->plan;
    uint64_t begin = bench_now_ns(), stop = begin + (uint64_t)(seconds * 1e9), done = 0;
    uint64_t octets = 0;

    while (iters ? done < iters : true) {
        if (!iters && (octets == 0 || octets >= CHECK_EACH)) {
            octets = 0;
            if (bench_now_ns() >= stop)
                break;
        }
        if (!one_batch(flow))
            bench_die("the server has closed the connection");
        done += flow->each;
        octets += (uint64_t)flow->each * plan->size;
    }
    return done;
}

static void client(struct bench_end *end, struct bench_result *result)
{
    const struct bench_plan *plan = &end->plan;
    struct flow *flow = bench_alloc(sizeof *flow);
    uint64_t begin, warm;
    char rest;

    flow->end = end;
    flow->each = strcmp(plan->mode, "raw") == 0 ? 1 : plan->gather;
    flow->fd = bench_connect_one(end);
    flow->source = bench_alloc(plan->size);
    frame_tx_open(&flow->tx, plan, flow->fd);

    warm = plan->warm_up > 0 ? run(flow, 0, plan->warm_up) : 0;
    begin = bench_now_ns();
    result->iters = run(flow, plan->iters, plan->seconds);
    shutdown(flow->fd, SHUT_WR);
    if (bench_recv(flow->fd, &rest, 1, plan->spin) != 0)
        bench_die("the server says something");
    result->seconds = (double)(bench_now_ns() - begin) * 1e-9;
    result->octets = (double)result->iters * plan->size;
    close(flow->fd);
    bench_expect(end, result->iters + warm);
}

/* ---- servers --------------------------------------------------------------------------------- */

/* Copies into place; a place outside of what was agreed on is bad and not written to. */
static void place(struct frame_rx *rx, const struct frame *frame, uint8_t *sink, uint8_t *slots,
                  struct bench_report *report)
{
    size_t size = rx->plan->size;
    bool send = frame->op == FRAME_SEND;
    uint64_t at = send ? frame->mo : frame->to;

    if (at > size || frame->len > size - at) {
        rx->bad++;
        return;
    }
    memcpy((send ? slots + (frame->msn % SLOTS) * size : sink) + at, frame->payload, frame->len);
    report->messages += frame->last;
    report->octets += frame->len;
}

static void framed_server(struct bench_end *end, struct bench_report *report)
{
    const struct bench_plan *plan = &end->plan;
    bool send = op_of(plan) == FRAME_SEND;
    uint8_t *sink = send ? NULL : bench_alloc(plan->size);
    uint8_t *slots = send ? bench_alloc((size_t)SLOTS * plan->size) : NULL;
    int fd = bench_accept_one(end);
    struct frame_rx rx;
    struct frame frame;

    frame_rx_open(&rx, plan, fd);
    while (frame_fill(&rx))
        while (frame_next(&rx, &frame)) {
            if (frame.op != op_of(plan))
                bench_die("a message of kind %d that nobody sent", frame.op);
            place(&rx, &frame, sink, slots, report);
        }
    report->bad = rx.bad + (rx.at != rx.end);
    close(fd);
}

static void raw_server(struct bench_end *end, struct bench_report *report)
{
    const struct bench_plan *plan = &end->plan;
    uint8_t *staging = bench_alloc(FRAME_STAGING);
    int fd = bench_accept_one(end);
    size_t n;

    while ((n = bench_recv(fd, staging, FRAME_STAGING, plan->spin)) > 0)
        report->octets += n;
    report->messages = report->octets / plan->size;
    close(fd);
}

const struct bench_mode floor_send = {"send", client, framed_server,
                                      "framed untagged messages, parsed and copied"};
const struct bench_mode floor_write = {"write", client, framed_server,
                                       "framed tagged messages, parsed and copied"};
const struct bench_mode floor_raw = {"raw", client, raw_server, "octets without frames"};
