// SPDX-License-Identifier: MIT
/*
 * pingpong.c - a message there and back, one at a time.
 *
 * pingpong: one connection; both ends receive with recv() alone.
 * robin: the client takes its connections in turn. It knows which one answers next and receives
 * from that; the server cannot know, so it asks epoll. With one connection it does the same, so
 * that the growth from 1 to N shows what N connections cost TCP, not what epoll costs.
 */
#include <errno.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "floor/modes.h"

#define EVENTS 256

/* ---- client ---------------------------------------------------------------------------------- */

static void exchange(struct bench_end *end, int fd, char *data)
{
    const struct bench_plan *plan = &end->plan;

    if (!bench_send(fd, data, plan->size, plan->spin) ||
        !bench_recv_all(fd, data, plan->size, plan->spin))
        bench_die("the server has closed a connection");
}

static void client(struct bench_end *end, struct bench_result *result)
{
    const struct bench_plan *plan = &end->plan;
    struct bench_samples samples;
    char *data = bench_alloc(plan->size);
    int *fds = bench_alloc(plan->sockets * sizeof *fds);
    uint64_t begin, last, stop;
    unsigned turn = 0;

    bench_samples_open(&samples);
    for (unsigned i = 0; i < plan->sockets; i++)
        fds[i] = bench_connect_one(end);

    /* Every connection is used before anything counts. */
    begin = last = bench_now_ns();
    for (unsigned i = 0; i < plan->sockets || (double)(last - begin) < plan->warm_up * 1e9; i++) {
        exchange(end, fds[i % plan->sockets], data);
        last = bench_now_ns();
    }

    begin = last = bench_now_ns();
    stop = begin + (uint64_t)(plan->seconds * 1e9);
    while (plan->iters ? result->iters < plan->iters : last < stop) {
        uint64_t now;

        exchange(end, fds[turn], data);
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
        close(fds[i]);
}

/* ---- servers --------------------------------------------------------------------------------- */

/* Sends one message back. False: the client has closed this connection. */
static bool answer(const struct bench_plan *plan, int fd, char *data, struct bench_report *report)
{
    if (!bench_recv_all(fd, data, plan->size, plan->spin) ||
        !bench_send(fd, data, plan->size, plan->spin))
        return false;
    report->messages++;
    report->octets += plan->size;
    return true;
}

static void pingpong_server(struct bench_end *end, struct bench_report *report)
{
    char *data = bench_alloc(end->plan.size);
    int fd = bench_accept_one(end);

    while (answer(&end->plan, fd, data, report))
        ;
    close(fd);
}

static void robin_server(struct bench_end *end, struct bench_report *report)
{
    const struct bench_plan *plan = &end->plan;
    char *data = bench_alloc(plan->size);
    struct epoll_event events[EVENTS];
    int poll = epoll_create1(EPOLL_CLOEXEC);
    unsigned open = plan->sockets;

    if (poll < 0)
        bench_die_errno("epoll_create1");
    for (unsigned i = 0; i < plan->sockets; i++) {
        int fd = bench_accept_one(end);
        struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

        if (epoll_ctl(poll, EPOLL_CTL_ADD, fd, &event) != 0)
            bench_die_errno("epoll_ctl");
    }
    while (open > 0) {
        int n = epoll_wait(poll, events, EVENTS, plan->spin ? 0 : -1);

        if (n < 0 && errno != EINTR)
            bench_die_errno("epoll_wait");
        for (int i = 0; i < n; i++)
            if (!answer(plan, events[i].data.fd, data, report)) {
                close(events[i].data.fd);
                open--;
            }
    }
    close(poll);
}

const struct bench_mode floor_pingpong = {"pingpong", client, pingpong_server,
                                          "half round trip of one message"};
const struct bench_mode floor_robin = {"robin", client, robin_server,
                                       "the same over --sockets connections in turn"};
