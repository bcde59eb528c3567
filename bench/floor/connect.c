// SPDX-License-Identifier: MIT
/*
 * connect.c - lives of connections, from bind to close; --sockets of them at once.
 *
 * connect: accept, 24 octets each way (an MPA frame with its four octets of IRD and ORD), close.
 * One at a time the client waits in its calls.
 * mpa: what TCP has to do for one life of an NDK connection: Request, Reply, the ready-to-receive
 * message (a Read Request) and its Response, then both ends shut down and see the other's FIN. Both
 * wait in epoll as the library does, however many lives there are at once.
 *
 * The client closes first, as the side that disconnects does, so its ports rest in TIME_WAIT unless
 * the system is told not to let them (bench/run.py does): it binds to port 0 with SO_REUSEADDR and
 * makes no more connections than the range of ports holds.
 */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include "floor/modes.h"
#include "floor/poll.h"

#define WORD_MAX 64u
#define EVENTS   256

/* What goes over one connection, and how it ends. Requests differ in length: see serve(). */
struct life {
    unsigned count;
    struct {
        uint32_t request, reply; /* octets */
    } words[2];
    bool edges;    /* both ends always wait for edges */
    bool farewell; /* nobody closes before both FINs are seen */
};

static const struct life connect_life = {.count = 1, .words = {{24, 24}}};
static const struct life mpa_life = {
    .count = 2, .words = {{24, 24}, {52, 20}}, .edges = true, .farewell = true};

/* ---- client ---------------------------------------------------------------------------------- */

struct episode {
    int fd;
    unsigned sent; /* requests, and the FIN of a farewell */
    uint64_t begin;
};

struct caller {
    struct bench_end *end;
    const struct life *life;
    struct sockaddr_storage local;
    struct bench_samples samples;
    struct episode *episodes;
    unsigned running;
    uint64_t calls;
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
    caller->calls++;
    return fd;
}

static void one_at_a_time(struct caller *caller)
{
    const struct life *life = caller->life;
    bool spin = caller->end->plan.spin;
    uint64_t begin = bench_now_ns();
    char word[WORD_MAX] = "MPA ID Req Frame";
    int fd = call(caller, true);

    if (!bench_send(fd, word, life->words[0].request, spin) ||
        !bench_recv_all(fd, word, life->words[0].reply, spin))
        bench_die("the server has closed a connection");
    close(fd);
    bench_sample(&caller->samples, bench_now_ns() - begin);
}

static void start(struct caller *caller, struct episode *episode)
{
    episode->begin = bench_now_ns();
    episode->sent = 0;
    episode->fd = call(caller, false);
    floor_poll_add(caller->poll, episode->fd, FLOOR_EDGES, (epoll_data_t){.ptr = episode});
    caller->running++;
}

/* The next thing that the client has to say. False: nothing is left, it is over. */
static bool say(const struct life *life, struct episode *episode)
{
    char word[WORD_MAX] = "MPA ID Req Frame";

    if (episode->sent < life->count) {
        if (!bench_send(episode->fd, word, life->words[episode->sent].request, true))
            bench_die(episode->sent ? "the server has closed a connection" : "connect: refused");
    } else if (!life->farewell || episode->sent > life->count) {
        return false;
    } else if (shutdown(episode->fd, SHUT_WR) != 0) {
        bench_die_errno("shutdown");
    }
    episode->sent++;
    return true;
}

/* Goes on with an episode that has something to do. True: it is over. */
static bool advance(struct caller *caller, struct episode *episode, uint32_t events)
{
    const struct life *life = caller->life;
    char word[WORD_MAX];
    ssize_t n, expected;

    if (episode->sent == 0) {
        if (events & EPOLLOUT)
            say(life, episode);
        return false;
    }
    if (!(events & FLOOR_READABLE))
        return false;
    n = recv(episode->fd, word, sizeof word, MSG_DONTWAIT);
    if (n < 0 && errno == EAGAIN)
        return false;
    expected = episode->sent > life->count ? 0 : (ssize_t)life->words[episode->sent - 1].reply;
    if (n != expected)
        bench_die("%zd octets in place of %zd", n, expected);
    if (say(life, episode))
        return false;
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
    bool polled = plan->sockets > 1 || caller->life->edges, more = true;

    for (unsigned i = 0; polled && i < plan->sockets; i++, begun++)
        start(caller, &caller->episodes[i]);
    while (more || caller->running) {
        int n;

        more = more && (iters ? begun < iters : bench_now_ns() < stop);
        if (!polled) {
            if (more)
                one_at_a_time(caller);
            begun++;
            continue;
        }
        n = floor_poll_wait(caller->poll, events, EVENTS, plan->spin);
        for (int i = 0; i < n; i++) {
            struct episode *episode = events[i].data.ptr;

            if (advance(caller, episode, events[i].events) && more && (!iters || begun < iters)) {
                start(caller, episode);
                begun++;
            }
        }
    }
}

static void measure(struct bench_end *end, struct bench_result *result, const struct life *life)
{
    const struct bench_plan *plan = &end->plan;
    struct caller caller = {.end = end, .life = life, .poll = floor_poll_open()};
    socklen_t len = sizeof caller.local;
    uint64_t begin;

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
    result->connections = true;
    bench_samples_finish(&caller.samples, 1, result);
    if (!bench_send(end->control, "", 1, false))
        bench_die("the server is gone");
    bench_expect(end, caller.calls * life->count);
}

static void connect_client(struct bench_end *end, struct bench_result *result)
{
    measure(end, result, &connect_life);
}

static void mpa_client(struct bench_end *end, struct bench_result *result)
{
    measure(end, result, &mpa_life);
}

/* ---- server ---------------------------------------------------------------------------------- */

struct host {
    struct bench_end *end;
    const struct life *life;
    int poll;
    struct bench_report *report;
};

/*
 * Answers, if a request is there; its length tells which. True: the client has closed or shut down,
 * and so has the server.
 */
static bool serve(struct host *host, int fd)
{
    const struct life *life = host->life;
    char word[WORD_MAX];
    ssize_t n = recv(fd, word, sizeof word, MSG_DONTWAIT);
    unsigned i = 0;

    if (n < 0 && errno == EAGAIN)
        return false;
    if (n <= 0) {
        if (life->farewell)
            shutdown(fd, SHUT_WR);
        return true;
    }
    while (i < life->count && n != (ssize_t)life->words[i].request)
        i++;
    if (i == life->count)
        bench_die("%zd octets are no request", n);
    host->report->messages++;
    host->report->octets += (uint64_t)n;
    return !bench_send(fd, word, life->words[i].reply, true);
}

static void watch(struct host *host, int fd, uint32_t events)
{
    floor_poll_add(host->poll, fd, events, (epoll_data_t){.fd = fd});
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
            watch(host, fd, host->life->edges ? FLOOR_EDGES : EPOLLIN);
    }
}

static void be_host(struct bench_end *end, struct bench_report *report, const struct life *life)
{
    struct host host = {.end = end, .life = life, .poll = floor_poll_open(), .report = report};
    struct epoll_event events[EVENTS];
    bool over = false;

    bench_unblock(end->listener);
    watch(&host, end->listener, EPOLLIN);
    watch(&host, end->control, EPOLLIN);
    while (!over) {
        int n = floor_poll_wait(host.poll, events, EVENTS, end->plan.spin);

        for (int i = 0; i < n; i++) {
            int fd = events[i].data.fd;

            if (fd == end->listener)
                accept_all(&host);
            else if (fd == end->control)
                over = true;
            else if (events[i].events & FLOOR_READABLE && serve(&host, fd))
                close(fd);
        }
    }
}

static void connect_server(struct bench_end *end, struct bench_report *report)
{
    be_host(end, report, &connect_life);
}

static void mpa_server(struct bench_end *end, struct bench_report *report)
{
    be_host(end, report, &mpa_life);
}

const struct bench_mode floor_connect = {"connect", connect_client, connect_server,
                                         "connect, accept, 24 octets each way, close"};
const struct bench_mode floor_mpa = {"mpa", mpa_client, mpa_server,
                                     "connect, accept, the messages of MPA, both FINs, close"};
