// SPDX-License-Identifier: MIT
/*
 * read.c - read requests, --window of them in flight, answered from a snapshot.
 *
 * The server copies what is asked for before it answers: a response that TCP holds for a while must
 * not change with the region, and the CRC is that of the octets sent. A short response is copied
 * once, beside its header, which is its snapshot.
 * Each end handles everything that one recv() brought before it sends once.
 */
#include <unistd.h>

#include "floor/frame.h"
#include "floor/modes.h"

#define SNAPSHOTS (256u << 10) /* octets of snapshots that wait for one sendmsg */

/* ---- client ---------------------------------------------------------------------------------- */

struct reader {
    struct bench_end *end;
    struct frame_tx tx;
    struct frame_rx rx;
    uint8_t *sink;
    unsigned in_flight;
};

static void ask(struct reader *reader, unsigned count)
{
    uint8_t request[FRAME_REQUEST_LEN];

    frame_put32(request, FRAME_STAG);
    frame_put64(request + 4, 0);
    frame_put32(request + 12, reader->end->plan.size);
    frame_put32(request + 16, FRAME_STAG);
    frame_put64(request + 20, 0);
    for (unsigned i = 0; i < count; i++)
        frame_message(&reader->tx, FRAME_READ_REQUEST, 0, request, sizeof request);
    reader->in_flight += count;
    if (count && !frame_flush(&reader->tx))
        bench_die("the server has closed the connection");
}

/* Takes what one recv() brings. Returns how many reads are complete. */
static unsigned take(struct reader *reader)
{
    uint32_t size = reader->end->plan.size;
    struct frame frame;
    unsigned done = 0;

    if (!frame_fill(&reader->rx))
        bench_die("the server has closed the connection");
    while (frame_next(&reader->rx, &frame)) {
        if (frame.op != FRAME_READ_RESPONSE || frame.to > size || frame.len > size - frame.to)
            bench_die("a response that nobody asked for");
        memcpy(reader->sink + frame.to, frame.payload, frame.len);
        done += frame.last;
    }
    reader->in_flight -= done;
    return done;
}

/* Reads `iters` times, or as long as that; leaves nothing in flight. */
static uint64_t run(struct reader *reader, uint64_t iters, double seconds)
{
    uint64_t stop = bench_now_ns() + (uint64_t)(seconds * 1e9), asked, done = 0;
    unsigned window = reader->end->plan.window;

    asked = iters && iters < window ? iters : window;
    ask(reader, (unsigned)asked);
    while (done < asked) {
        unsigned more = take(reader);

        done += more;
        if (iters ? asked < iters : bench_now_ns() < stop) {
            if (iters && more > iters - asked)
                more = (unsigned)(iters - asked);
            ask(reader, more);
            asked += more;
        }
    }
    return done;
}

static void client(struct bench_end *end, struct bench_result *result)
{
    const struct bench_plan *plan = &end->plan;
    struct reader *reader = bench_alloc(sizeof *reader);
    int fd = bench_connect_one(end);
    uint64_t begin, warm;

    reader->end = end;
    reader->in_flight = 0;
    reader->sink = bench_alloc(plan->size);
    frame_tx_open(&reader->tx, plan, fd);
    frame_rx_open(&reader->rx, plan, fd);
    warm = plan->warm_up > 0 ? run(reader, 0, plan->warm_up) : 0;
    begin = bench_now_ns();
    result->iters = run(reader, plan->iters, plan->seconds);
    result->seconds = (double)(bench_now_ns() - begin) * 1e-9;
    result->octets = (double)result->iters * plan->size;
    if (reader->rx.bad)
        bench_die("%lu bad FPDUs", (unsigned long)reader->rx.bad);
    close(fd);
    bench_expect(end, result->iters + warm);
}

/* ---- server ---------------------------------------------------------------------------------- */

struct responder {
    const struct bench_plan *plan;
    struct frame_tx tx;
    uint8_t *source, *snapshots;
    size_t room, used;
};

static bool respond(struct responder *responder)
{
    size_t size = responder->plan->size;
    const uint8_t *data = responder->source;

    if (size > FRAME_FLAT_MAX) {
        if (responder->used + size > responder->room) {
            if (!frame_flush(&responder->tx))
                return false;
            responder->used = 0;
        }
        data = memcpy(responder->snapshots + responder->used, data, size);
        responder->used += size;
    }
    return frame_message(&responder->tx, FRAME_READ_RESPONSE, 0, data, size);
}

static void server(struct bench_end *end, struct bench_report *report)
{
    const struct bench_plan *plan = &end->plan;
    struct responder *responder = bench_alloc(sizeof *responder);
    int fd = bench_accept_one(end);
    struct frame_rx rx;
    struct frame frame;
    bool there = true;

    responder->plan = plan;
    responder->room = plan->size > SNAPSHOTS ? plan->size : SNAPSHOTS;
    responder->used = 0;
    responder->source = bench_alloc(plan->size);
    responder->snapshots = bench_alloc(responder->room);
    frame_tx_open(&responder->tx, plan, fd);
    frame_rx_open(&rx, plan, fd);
    while (there && frame_fill(&rx)) {
        while (there && frame_next(&rx, &frame)) {
            if (frame.op != FRAME_READ_REQUEST || frame.len != FRAME_REQUEST_LEN ||
                frame_get32(frame.payload + 12) != plan->size ||
                frame_get32(frame.payload + 16) != FRAME_STAG)
                bench_die("a request that nobody sent");
            there = respond(responder);
            report->messages++;
            report->octets += plan->size;
        }
        there = there && frame_flush(&responder->tx);
        responder->used = 0;
    }
    report->bad = rx.bad;
    close(fd);
}

const struct bench_mode floor_read = {"read", client, server,
                                      "read requests answered from a snapshot"};
