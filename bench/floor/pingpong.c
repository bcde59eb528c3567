// SPDX-License-Identifier: MIT
/*
 * pingpong.c - a message there and back, one at a time.
 *
 * pingpong: one connection; both ends receive with recv() alone.
 * event: the same, but both ends wait in epoll, edge-triggered, as the library waits for its
 * sockets, and receive when that tells them to.
 * robin: the client takes its connections in turn. It knows which one answers next and receives
 * from that; the server cannot know, so it asks epoll. With one connection it does the same, so
 * that the growth from 1 to N shows what N connections cost TCP, not what epoll costs.
 */
#include <errno.h>
#include <unistd.h>

#include "floor/modes.h"
#include "floor/poll.h"

#define EVENTS 256

/* ---- both ends ------------------------------------------------------------------------------- */

/* A connection, and what waits for it; -1: recv() itself. */
struct wire {
    int fd, poll;
};

static struct wire wire_on(int fd, bool edges)
{
    struct wire wire = {fd, -1};

    if (edges) {
        wire.poll = floor_poll_open();
        floor_poll_add(wire.poll, fd, FLOOR_EDGES, (epoll_data_t){.fd = fd});
    }
    return wire;
}

/* Room for a message and one octet more: see receive_by_edges(). */
static char *message_room(const struct bench_plan *plan)
{
    return bench_alloc(plan->size + 1);
}

/*
 * One recv() an edge: more is asked for than a message has, so each gives less than was asked, and
 * that has drained the socket; what comes later is an edge of its own.
 */
static bool receive_by_edges(const struct bench_plan *plan, const struct wire *wire, char *data)
{
    struct epoll_event event;
    size_t have = 0;

    while (have < plan->size) {
        ssize_t n;

        if (floor_poll_wait(wire->poll, &event, 1, plan->spin) == 0 ||
            !(event.events & FLOOR_READABLE))
            continue;
        n = recv(wire->fd, data + have, plan->size + 1 - have, MSG_DONTWAIT);
        if (n == 0 || (n < 0 && errno != EAGAIN))
            return false;
        if (n > 0)
            have += (size_t)n;
    }
    return true;
}

static bool receive(const struct bench_plan *plan, const struct wire *wire, char *data)
{
    return wire->poll < 0 ? bench_recv_all(wire->fd, data, plan->size, plan->spin)
                          : receive_by_edges(plan, wire, data);
}

/* ---- client ---------------------------------------------------------------------------------- */

static void exchange(const struct bench_plan *plan, const struct wire *wire, char *data)
{
    if (!bench_send(wire->fd, data, plan->size, plan->spin) || !receive(plan, wire, data))
        bench_die("the server has closed a connection");
}

static void measure(struct bench_end *end, struct bench_result *result, bool edges)
{
    const struct bench_plan *plan = &end->plan;
    struct bench_samples samples;
    char *data = message_room(plan);
    struct wire *wires = bench_alloc(plan->sockets * sizeof *wires);
    uint64_t begin, last, stop;
    unsigned turn = 0;

    bench_samples_open(&samples);
    for (unsigned i = 0; i < plan->sockets; i++)
        wires[i] = wire_on(bench_connect_one(end), edges);

    /* Every connection is used before anything counts. */
    begin = last = bench_now_ns();
    for (unsigned i = 0; i < plan->sockets || (double)(last - begin) < plan->warm_up * 1e9; i++) {
        exchange(plan, &wires[i % plan->sockets], data);
        last = bench_now_ns();
    }

    begin = last = bench_now_ns();
    stop = begin + (uint64_t)(plan->seconds * 1e9);
    while (plan->iters ? result->iters < plan->iters : last < stop) {
        uint64_t now;

        exchange(plan, &wires[turn], data);
        now = bench_now_ns();
        bench_sample(&samples, now - last);
        last = now;
        result->iters++;
        turn = turn + 1 < plan->sockets ? turn + 1 : 0;
    }
    result->seconds = (double)(last - begin) * 1e-9;
    result->octets = 2.0 * plan->size * (double)result->iters;
    bench_samples_finish(&samples, 2, result);
    for (unsigned i = 0; i < plan->sockets; i++)
        close(wires[i].fd);
}

static void client(struct bench_end *end, struct bench_result *result)
{
    measure(end, result, false);
}

static void event_client(struct bench_end *end, struct bench_result *result)
{
    measure(end, result, true);
}

/* ---- servers --------------------------------------------------------------------------------- */

/* Sends one message back. False: the client has closed this connection. */
static bool answer(const struct bench_plan *plan, const struct wire *wire, char *data,
                   struct bench_report *report)
{
    if (!receive(plan, wire, data) || !bench_send(wire->fd, data, plan->size, plan->spin))
        return false;
    report->messages++;
    report->octets += plan->size;
    return true;
}

static void answer_one(struct bench_end *end, struct bench_report *report, bool edges)
{
    char *data = message_room(&end->plan);
    struct wire wire = wire_on(bench_accept_one(end), edges);

    while (answer(&end->plan, &wire, data, report))
        ;
    close(wire.fd);
}

static void pingpong_server(struct bench_end *end, struct bench_report *report)
{
    answer_one(end, report, false);
}

static void event_server(struct bench_end *end, struct bench_report *report)
{
    answer_one(end, report, true);
}

static void robin_server(struct bench_end *end, struct bench_report *report)
{
    const struct bench_plan *plan = &end->plan;
    char *data = message_room(plan);
    struct epoll_event events[EVENTS];
    int poll = floor_poll_open();
    unsigned open = plan->sockets;

    for (unsigned i = 0; i < plan->sockets; i++) {
        int fd = bench_accept_one(end);

        floor_poll_add(poll, fd, EPOLLIN, (epoll_data_t){.fd = fd});
    }
    while (open > 0) {
        int n = floor_poll_wait(poll, events, EVENTS, plan->spin);

        for (int i = 0; i < n; i++) {
            struct wire wire = {events[i].data.fd, -1};

            if (!answer(plan, &wire, data, report)) {
                close(wire.fd);
                open--;
            }
        }
    }
    close(poll);
}

const struct bench_mode floor_pingpong = {"pingpong", client, pingpong_server,
                                          "half round trip of one message"};
const struct bench_mode floor_event = {"event", event_client, event_server,
                                       "the same, both ends waiting in epoll"};
const struct bench_mode floor_robin = {"robin", client, robin_server,
                                       "pingpong over --sockets connections in turn"};
