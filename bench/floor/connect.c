// SPDX-License-Identifier: MIT
/*
 * connect.c - bind, connect, accept, 24 octets each way (an MPA frame with its four octets of IRD
 * and ORD), close; --sockets of them at once.
 *
 * The client closes first, as the side that disconnects does, so its ports rest in TIME_WAIT: it
 * binds to port 0 with SO_REUSEADDR and makes no more connections than the range of ports holds.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "floor/modes.h"

#define WORD   24u
#define EVENTS 256

/* ---- client ---------------------------------------------------------------------------------- */

struct episode {
    int fd;
    bool sent;
    uint64_t begin;
};

struct caller {
    struct bench_end *end;
    struct sockaddr_storage local;
    struct bench_samples samples;
    struct episode *episodes;
    unsigned running;
    int poll;
};

/* A socket that is bound and connecting. */
static int call(struct caller *caller, bool wait)
{
    struct bench_end *end = caller->end;
    int on = 1;
    int fd =
        socket(end->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | (wait ? 0 : SOCK_NONBLOCK), 0);

    if (fd < 0)
        bench_die_errno("socket");
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    bench_shape(fd, &end->plan);
    if (bind(fd, (struct sockaddr *)&caller->local, end->address_len) != 0)
        bench_die_errno("bind");
    if (connect(fd, (struct sockaddr *)&end->address, end->address_len) != 0 &&
        errno != EINPROGRESS)
        bench_die_errno("connect");
    return fd;
}

static void one_at_a_time(struct caller *caller)
{
    bool spin = caller->end->plan.spin;
    uint64_t begin = bench_now_ns();
    char word[WORD] = "MPA ID Req Frame";
    int fd = call(caller, true);

    if (!bench_send(fd, word, WORD, spin) || !bench_recv_all(fd, word, WORD, spin))
        bench_die("the server has closed a connection");
    close(fd);
    bench_sample(&caller->samples, bench_now_ns() - begin);
}

static void start(struct caller *caller, struct episode *episode)
{
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLET, .data.ptr = episode};

    episode->begin = bench_now_ns();
    episode->sent = false;
    episode->fd = call(caller, false);
    if (epoll_ctl(caller->poll, EPOLL_CTL_ADD, episode->fd, &event) != 0)
        bench_die_errno("epoll_ctl");
    caller->running++;
}

/* Goes on with an episode that has something to do. True: it is over. */
static bool advance(struct caller *caller, struct episode *episode, uint32_t events)
{
    char word[WORD] = "MPA ID Req Frame";

    if (!episode->sent && events & EPOLLOUT) {
        if (!bench_send(episode->fd, word, WORD, true))
            bench_die("connect: refused");
        episode->sent = true;
    }
    if (!(events & EPOLLIN))
        return false;
    if (!bench_recv_all(episode->fd, word, WORD, true))
        bench_die("the server has closed a connection");
    close(episode->fd);
    bench_sample(&caller->samples, bench_now_ns() - episode->begin);
    caller->running--;
    return true;
}

static void run(struct caller *caller, uint64_t iters, double seconds)
{
    const struct bench_plan *plan = &caller->end->plan;
    struct epoll_event events[EVENTS];
    uint64_t stop = bench_now_ns() + (uint64_t)(seconds * 1e9), begun = 0;
    bool more = true;

    for (unsigned i = 0; plan->sockets > 1 && i < plan->sockets; i++, begun++)
        start(caller, &caller->episodes[i]);
    while (more || caller->running) {
        int n;

        more = more && (iters ? begun < iters : bench_now_ns() < stop);
        if (plan->sockets <= 1) {
            if (more)
                one_at_a_time(caller);
            begun++;
            continue;
        }
        n = epoll_wait(caller->poll, events, EVENTS, plan->spin ? 0 : -1);
        for (int i = 0; i < n; i++) {
            struct episode *episode = events[i].data.ptr;

            if (advance(caller, episode, events[i].events) && more && (!iters || begun < iters)) {
                start(caller, episode);
                begun++;
            }
        }
    }
}

static void client(struct bench_end *end, struct bench_result *result)
{
    const struct bench_plan *plan = &end->plan;
    struct caller caller = {.end = end, .poll = epoll_create1(EPOLL_CLOEXEC)};
    socklen_t len = sizeof caller.local;
    uint64_t begin;

    if (caller.poll < 0)
        bench_die_errno("epoll_create1");
    getsockname(end->control, (struct sockaddr *)&caller.local, &len);
    /* The port stands at the same place in both families. */
    ((struct sockaddr_in *)&caller.local)->sin_port = 0;
    caller.episodes = bench_alloc(plan->sockets * sizeof *caller.episodes);
    bench_samples_open(&caller.samples);
    if (plan->warm_up > 0)
        run(&caller, 0, plan->warm_up);
    bench_samples_clear(&caller.samples);
    begin = bench_now_ns();
    run(&caller, plan->iters, plan->seconds);
    result->seconds = (double)(bench_now_ns() - begin) * 1e-9;
    result->iters = caller.samples.seen;
    bench_samples_finish(&caller.samples, 1, result);
    if (!bench_send(end->control, "", 1, false))
        bench_die("the server is gone");
}

/* ---- server ---------------------------------------------------------------------------------- */

struct host {
    struct bench_end *end;
    int poll;
    struct bench_report *report;
};

/* Answers, if the word is there. True: the client has closed. */
static bool serve(struct host *host, int fd)
{
    char word[WORD];
    ssize_t n = recv(fd, word, sizeof word, MSG_DONTWAIT);

    if (n == 0 || (n < 0 && errno != EAGAIN))
        return true;
    if (n < 0)
        return false;
    if (n != WORD)
        bench_die("%zd octets in place of a word", n);
    host->report->messages++;
    host->report->octets += WORD;
    return !bench_send(fd, word, WORD, true);
}

static void watch(struct host *host, int fd)
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};

    if (epoll_ctl(host->poll, EPOLL_CTL_ADD, fd, &event) != 0)
        bench_die_errno("epoll_ctl");
}

static void accept_all(struct host *host)
{
    for (;;) {
        int fd = accept4(host->end->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

        if (fd < 0)
            return;
        bench_shape(fd, &host->end->plan);
        if (serve(host, fd))
            close(fd);
        else
            watch(host, fd);
    }
}

static void server(struct bench_end *end, struct bench_report *report)
{
    struct host host = {.end = end, .poll = epoll_create1(EPOLL_CLOEXEC), .report = report};
    struct epoll_event events[EVENTS];
    bool over = false;

    if (host.poll < 0)
        bench_die_errno("epoll_create1");
    bench_unblock(end->listener);
    watch(&host, end->listener);
    watch(&host, end->control);
    while (!over) {
        int n = epoll_wait(host.poll, events, EVENTS, end->plan.spin ? 0 : -1);

        for (int i = 0; i < n; i++) {
            int fd = events[i].data.fd;

            if (fd == end->listener)
                accept_all(&host);
            else if (fd == end->control)
                over = true;
            else if (serve(&host, fd))
                close(fd);
        }
    }
}

const struct bench_mode floor_connect = {"connect", client, server,
                                         "connect, accept, 24 octets each way, close"};
