// SPDX-License-Identifier: MIT
/* See proxy.h. One thread, one poll(); each direction has one buffer, which is emptied before more
 * is read, so that what is planned for an octet is decided when it is about to be sent. */
#define _GNU_SOURCE // accept4(), pipe2()
#include "proxy.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ROOM      65536
#define LANES     8   /* connections at a time; a test needs two */
#define SPLIT_MAX 300 /* octets that go one by one */
#define QUIET_MS  10  /* nothing more came: what was gathered goes */

void test_fail(const char *format, ...) __attribute__((format(printf, 1, 2), noreturn));
unsigned long long test_now_ms(void);

struct way { /* one direction of a lane */
    int from, to;
    uint8_t octets[ROOM];
    size_t begin, length, sent; /* sent: since the connection began */
    bool ended, closed, cut;    /* the source's end of file; passed on; by plan */
    unsigned long long until;   /* delay, gather: not before */
    bool waited;
};

struct lane {
    bool live;
    struct proxy_plan plan;
    struct way ways[PROXY_DIRECTIONS];
};

struct proxy {
    pthread_t thread;
    int listener, wake[2];
    struct sockaddr_in address;
    pthread_mutex_t lock; /* of plan and target */
    struct proxy_plan plan;
    unsigned target;
    atomic_size_t carried[PROXY_DIRECTIONS];
    atomic_bool struck, released, stop;
    struct lane lanes[LANES];
    struct lane *newest;
};

/* ---- what happens to the octets ------------------------------------------------------------- */

static void strike(struct proxy *p, const struct lane *lane)
{
    if (lane == p->newest)
        atomic_store(&p->struck, true);
}

static void reset(int fd)
{
    struct linger linger = {1, 0};

    setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof linger);
    close(fd);
}

static void lane_reset(struct lane *lane)
{
    if (!lane->live)
        return;
    lane->live = false;
    reset(lane->ways[0].from);
    reset(lane->ways[0].to);
}

/* How many of the octets in hand may go now; changes what is to be changed. */
static size_t allowed(struct proxy *p, struct lane *lane, int direction)
{
    struct way *w = &lane->ways[direction];
    const struct proxy_plan *plan = &lane->plan;
    size_t before;

    if (plan->fault == FAULT_NONE || plan->direction != direction)
        return w->length;
    if (w->sent < plan->at) {
        before = plan->at - w->sent;
        return w->length < before ? w->length : before;
    }
    switch (plan->fault) {
    case FAULT_SPLIT:
        strike(p, lane);
        return w->length && w->sent - plan->at < SPLIT_MAX ? 1 : w->length;
    case FAULT_GATHER:
    case FAULT_DELAY:
        if (w->length == 0 || w->waited)
            return w->length;
        strike(p, lane);
        if (w->until == 0)
            w->until = test_now_ms() + (plan->fault == FAULT_DELAY ? PROXY_DELAY_MS : QUIET_MS);
        if (test_now_ms() < w->until)
            return 0;
        w->waited = plan->fault == FAULT_DELAY;
        w->until = 0;
        return w->length;
    case FAULT_STALL:
        if (w->length)
            strike(p, lane);
        return atomic_load(&p->released) ? w->length : 0;
    case FAULT_CORRUPT:
        if (w->length && w->sent == plan->at && !w->waited) {
            strike(p, lane);
            w->octets[w->begin] ^= 0x5a;
            w->waited = true;
        }
        return w->length;
    case FAULT_HALF_CLOSE:
        strike(p, lane);
        w->cut = true;
        w->length = 0;
        return 0;
    case FAULT_RESET:
        strike(p, lane);
        lane_reset(lane);
        return 0;
    default:
        return w->length;
    }
}

/* False: the lane is gone. */
static bool way_send(struct proxy *p, struct lane *lane, int direction)
{
    struct way *w = &lane->ways[direction];

    for (;;) {
        size_t n = allowed(p, lane, direction);
        ssize_t sent;

        if (!lane->live)
            return false;
        if (n == 0)
            break;
        if (lane == p->newest) /* before: who got them may look */
            atomic_store(&p->carried[direction], w->sent + n);
        sent = send(w->to, w->octets + w->begin, n, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0) {
            if (errno == EAGAIN || errno == EINTR)
                break;
            lane_reset(lane);
            return false;
        }
        w->begin += (size_t)sent;
        w->length -= (size_t)sent;
        w->sent += (size_t)sent;
        if (lane == p->newest)
            atomic_store(&p->carried[direction], w->sent);
    }
    if ((w->cut || (w->ended && w->length == 0)) && !w->closed) {
        w->closed = true;
        shutdown(w->to, SHUT_WR);
    }
    return true;
}

static void way_receive(struct lane *lane, struct way *w)
{
    ssize_t n;

    if (w->length == 0)
        w->begin = 0;
    if (w->begin + w->length == ROOM)
        return;
    n = recv(w->from, w->octets + w->begin + w->length, ROOM - w->begin - w->length, MSG_DONTWAIT);
    if (n > 0) {
        if (!w->cut)
            w->length += (size_t)n;
        if (lane->plan.fault == FAULT_GATHER && w->until)
            w->until = test_now_ms() + QUIET_MS;
    } else if (n == 0) {
        w->ended = true;
    } else if (errno != EAGAIN && errno != EINTR) {
        lane_reset(lane);
    }
}

/* ---- connections ---------------------------------------------------------------------------- */

static void lane_open(struct proxy *p)
{
    int here = accept4(p->listener, NULL, NULL, SOCK_CLOEXEC), there, one = 1;
    struct sockaddr_in target = p->address;
    struct lane *lane = NULL;

    if (here < 0)
        return;
    for (int i = 0; i < LANES && !lane; i++)
        if (!p->lanes[i].live)
            lane = &p->lanes[i];
    there = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    pthread_mutex_lock(&p->lock);
    target.sin_port = htons((uint16_t)p->target);
    if (!lane || connect(there, (struct sockaddr *)&target, sizeof target) != 0) {
        pthread_mutex_unlock(&p->lock);
        reset(here);
        close(there);
        return;
    }
    memset(lane, 0, sizeof *lane);
    lane->plan = p->plan;
    pthread_mutex_unlock(&p->lock);
    setsockopt(here, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(there, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    lane->ways[PROXY_TO_TARGET].from = lane->ways[PROXY_FROM_TARGET].to = here;
    lane->ways[PROXY_TO_TARGET].to = lane->ways[PROXY_FROM_TARGET].from = there;
    lane->live = true;
    p->newest = lane;
    atomic_store(&p->carried[0], 0);
    atomic_store(&p->carried[1], 0);
    atomic_store(&p->struck, false);
}

/* Sends what may go, and how long poll() may wait. */
static int lane_turn(struct proxy *p, struct lane *lane)
{
    int wait = -1;

    for (int d = 0; d < PROXY_DIRECTIONS && lane->live; d++) {
        struct way *w = &lane->ways[d];

        if (!way_send(p, lane, d))
            return -1;
        if (w->until)
            wait = 1;
    }
    if (lane->live && lane->ways[0].closed && lane->ways[1].closed && lane->ways[0].ended &&
        lane->ways[1].ended) {
        lane->live = false;
        close(lane->ways[0].from);
        close(lane->ways[0].to);
    }
    return wait;
}

static void *carry(void *argument)
{
    struct proxy *p = argument;

    while (!atomic_load(&p->stop)) {
        struct pollfd fds[2 + 2 * LANES];
        struct way *ways[2 + 2 * LANES];
        struct lane *lanes[2 + 2 * LANES];
        nfds_t count = 2;
        int wait = -1;

        fds[0] = (struct pollfd){p->listener, POLLIN, 0};
        fds[1] = (struct pollfd){p->wake[0], POLLIN, 0};
        for (int i = 0; i < LANES; i++) {
            struct lane *lane = &p->lanes[i];

            if (lane->live && lane_turn(p, lane) > 0)
                wait = 1;
            for (int d = 0; d < PROXY_DIRECTIONS && lane->live; d++) {
                struct way *w = &lane->ways[d];
                bool room = !w->ended && w->begin + w->length < ROOM;
                bool stuck = w->length && !w->until;

                /* Held octets by plan make the sink writable all the time: look each ms then. */
                if (stuck)
                    wait = 1;
                ways[count] = w;
                lanes[count] = lane;
                fds[count++] = (struct pollfd){w->from, room ? POLLIN : 0, 0};
            }
        }
        if (poll(fds, count, wait) < 0 && errno != EINTR)
            test_fail("proxy: poll: %s", strerror(errno));
        if (fds[1].revents) {
            char drop[64];

            (void)!read(p->wake[0], drop, sizeof drop);
        }
        for (nfds_t i = 2; i < count; i++)
            if (lanes[i]->live && !ways[i]->ended && fds[i].revents)
                way_receive(lanes[i], ways[i]);
        if (fds[0].revents)
            lane_open(p);
    }
    return NULL;
}

static void wake(struct proxy *p)
{
    (void)!write(p->wake[1], "", 1);
}

/* ---- the test's side ------------------------------------------------------------------------ */

struct proxy *proxy_open(const char *address, unsigned *port)
{
    struct proxy *p = calloc(1, sizeof *p);
    socklen_t size = sizeof p->address;

    if (!p)
        test_fail("proxy: no memory");
    p->address.sin_family = AF_INET;
    inet_pton(AF_INET, address, &p->address.sin_addr);
    p->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (bind(p->listener, (struct sockaddr *)&p->address, size) != 0 ||
        listen(p->listener, 16) != 0 ||
        getsockname(p->listener, (struct sockaddr *)&p->address, &size) != 0 ||
        pipe2(p->wake, O_CLOEXEC) != 0)
        test_fail("proxy: %s: %s", address, strerror(errno));
    *port = ntohs(p->address.sin_port);
    pthread_mutex_init(&p->lock, NULL);
    if (pthread_create(&p->thread, NULL, carry, p) != 0)
        test_fail("proxy: no thread");
    return p;
}

void proxy_aim(struct proxy *p, unsigned port)
{
    pthread_mutex_lock(&p->lock);
    p->target = port;
    pthread_mutex_unlock(&p->lock);
}

void proxy_plan(struct proxy *p, const struct proxy_plan *plan)
{
    atomic_store(&p->released, false);
    pthread_mutex_lock(&p->lock);
    p->plan = *plan;
    pthread_mutex_unlock(&p->lock);
}

size_t proxy_carried(const struct proxy *p, int direction)
{
    return atomic_load(&p->carried[direction]);
}

bool proxy_has_struck(const struct proxy *p)
{
    return atomic_load(&p->struck);
}

void proxy_release(struct proxy *p)
{
    atomic_store(&p->released, true);
    wake(p);
}

void proxy_close(struct proxy *p)
{
    atomic_store(&p->stop, true);
    wake(p);
    pthread_join(p->thread, NULL);
    for (int i = 0; i < LANES; i++)
        lane_reset(&p->lanes[i]);
    close(p->listener);
    close(p->wake[0]);
    close(p->wake[1]);
    pthread_mutex_destroy(&p->lock);
    free(p);
}
