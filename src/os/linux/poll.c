// SPDX-License-Identifier: MIT
/*
 * Poll sets on epoll, edge-triggered, with an eventfd for wakes.
 *
 * The eventfd is edge-triggered too and is never read: each write makes a new edge, the edge stays
 * until a wait collects it, and its counter would need 2^64 writes to block.
 *
 * Where a descriptor stands is remembered in one table under one leaf lock, so that an injected
 * -EAGAIN or short count can be followed by the edge that a real one would have. Only add, del and
 * that case touch it; an entry left by a closed descriptor is harmless (the kernel refuses it).
 */
#include <limits.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/red.h"
#include "os/linux/backend.h"
#include "os/linux/bare.h"

#define POLL_BATCH 256
#define POLL_EDGES ((uint32_t)(EPOLLIN | EPOLLOUT | EPOLLRDHUP) | (uint32_t)EPOLLET)

struct os_poll {
    int epoll_fd;
    int wake_fd; /* its address is the cookie of the wake */
    /* Counts adds: what the adder wrote before is seen by the waiter that gets the cookie. */
    atomic_uint adds;
};

struct poll_place {
    int epoll_fd; /* 0: in no set (standard input is not an epoll descriptor of ours) */
    void *cookie;
};

static os_mutex place_lock = OS_MUTEX_INITIALIZER;
static struct poll_place *places;
static size_t place_count;

atomic_bool os_poll_coarse;

static void place_set(int fd, int epoll_fd, void *cookie)
{
    os_mutex_lock(&place_lock);
    if ((size_t)fd >= place_count && epoll_fd != 0) {
        size_t count = place_count ? place_count : 64;
        struct poll_place *grown;

        while (count <= (size_t)fd)
            count *= 2;
        grown = realloc(places, count * sizeof *grown);
        if (grown) {
            for (size_t i = place_count; i < count; i++)
                grown[i] = (struct poll_place){0};
            places = grown;
            place_count = count;
        }
    }
    /* Without memory for it only the edge after an injected fault is lost. */
    if ((size_t)fd < place_count)
        places[fd] = (struct poll_place){.epoll_fd = epoll_fd, .cookie = cookie};
    os_mutex_unlock(&place_lock);
}

void os_poll_rearm(int fd)
{
    struct epoll_event ev = {.events = POLL_EDGES};

    if (RED("os-fault-no-edge"))
        return;
    os_mutex_lock(&place_lock);
    if (fd >= 0 && (size_t)fd < place_count && places[fd].epoll_fd != 0) {
        ev.data.ptr = places[fd].cookie;
        epoll_ctl(places[fd].epoll_fd, EPOLL_CTL_MOD, fd, &ev);
    }
    os_mutex_unlock(&place_lock);
}

/* Remembers when the kernel (before 5.11) or a filter refuses the fine timeout. -1 with errno, or
 * the number of events. */
static int poll_wait_fine(int epoll_fd, struct epoll_event *ev, int max, int64_t timeout_us)
{
#ifdef SYS_epoll_pwait2
    if (!atomic_load_explicit(&os_poll_coarse, memory_order_relaxed)) {
        struct {
            int64_t sec, nsec; /* the kernel's own layout, whatever time_t is */
        } ts = {timeout_us / 1000000, timeout_us % 1000000 * 1000};
        long n = syscall(SYS_epoll_pwait2, epoll_fd, ev, max, &ts, NULL, (size_t)0);

        if (n >= 0 || (errno != ENOSYS && errno != EPERM))
            return (int)n;
    }
#else
    (void)epoll_fd;
    (void)ev;
    (void)max;
    (void)timeout_us;
#endif
    atomic_store_explicit(&os_poll_coarse, true, memory_order_relaxed);
    errno = ENOSYS;
    return -1;
}

unsigned os_poll_grain_us(void)
{
    return atomic_load_explicit(&os_poll_coarse, memory_order_relaxed) ? 1000 : 1;
}

int os_poll_create(struct os_poll **out)
{
    struct os_poll *set = calloc(1, sizeof *set);
    struct epoll_event ev = {.events = (uint32_t)EPOLLIN | (uint32_t)EPOLLET};
    int err;

    if (!set)
        return -ENOMEM;
    set->wake_fd = -1;
    set->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (set->epoll_fd >= 0)
        set->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    ev.data.ptr = &set->wake_fd;
    if (set->wake_fd >= 0 && epoll_ctl(set->epoll_fd, EPOLL_CTL_ADD, set->wake_fd, &ev) == 0) {
        poll_wait_fine(set->epoll_fd, &ev, 1, 0); /* so that the grain is known */
        *out = set;
        return 0;
    }
    err = errno;
    if (set->wake_fd >= 0)
        close(set->wake_fd);
    if (set->epoll_fd >= 0)
        close(set->epoll_fd);
    free(set);
    return -err;
}

void os_poll_destroy(struct os_poll *set)
{
    if (!set)
        return;
    close(set->epoll_fd);
    close(set->wake_fd);
    free(set);
}

static int poll_add(struct os_poll *set, int fd, uint32_t events, void *cookie)
{
    struct epoll_event ev = {.events = events, .data = {.ptr = cookie}};
    int fault = os_fault(OS_FAULT_POLL_ADD);

    if (fault)
        return -fault;
    atomic_fetch_add(&set->adds, 1);
    return epoll_ctl(set->epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}

int os_poll_add(struct os_poll *set, int fd, void *cookie)
{
    int rc;

    if (fd < 0)
        return -EBADF;
    rc = poll_add(set, fd, POLL_EDGES, cookie);
    if (rc == 0)
        place_set(fd, set->epoll_fd, cookie);
    return rc;
}

int os_poll_del(struct os_poll *set, int fd)
{
    struct epoll_event ev = {0}; /* kernels before 2.6.9 looked at it */

    if (fd < 0)
        return -EBADF;
    place_set(fd, 0, NULL);
    return epoll_ctl(set->epoll_fd, EPOLL_CTL_DEL, fd, &ev) < 0 ? -errno : 0;
}

int os_poll_add_set(struct os_poll *set, struct os_poll *inner, void *cookie)
{
    return poll_add(set, inner->epoll_fd, EPOLLIN, cookie);
}

int os_poll_del_set(struct os_poll *set, struct os_poll *inner)
{
    struct epoll_event ev = {0};

    return epoll_ctl(set->epoll_fd, EPOLL_CTL_DEL, inner->epoll_fd, &ev) < 0 ? -errno : 0;
}

static int poll_wait_once(int epoll_fd, struct epoll_event *ev, int max, int64_t timeout_us)
{
    int64_t ms;
    int n;

    if (timeout_us == 0)
        return os_bare_epoll_look(epoll_fd, ev, max);
    if (timeout_us < 0)
        return epoll_wait(epoll_fd, ev, max, -1);
    n = poll_wait_fine(epoll_fd, ev, max, timeout_us);
    if (n >= 0 || !atomic_load_explicit(&os_poll_coarse, memory_order_relaxed))
        return n;
    ms = timeout_us / 1000 + (timeout_us % 1000 != 0); /* never early */
    return epoll_wait(epoll_fd, ev, max, ms > INT_MAX ? INT_MAX : (int)ms);
}

static unsigned poll_translate(uint32_t events)
{
    unsigned out = 0;

    if (events & (uint32_t)(EPOLLIN | EPOLLPRI | EPOLLRDHUP | EPOLLERR | EPOLLHUP))
        out |= OS_READABLE;
    if (events & (uint32_t)(EPOLLOUT | EPOLLERR | EPOLLHUP) && !RED("os-poll-edge-lost"))
        out |= OS_WRITABLE;
    if (events & (uint32_t)(EPOLLERR | EPOLLHUP))
        out |= OS_HANGUP;
    if (events & (uint32_t)(EPOLLRDHUP | EPOLLERR | EPOLLHUP) && !RED("os-poll-fin-hidden"))
        out |= OS_PEER_DONE;
    return out;
}

int os_poll_wait(struct os_poll *set, struct os_event *events, int max, int64_t timeout_us)
{
    struct epoll_event ev[POLL_BATCH];
    uint64_t deadline = timeout_us > 0 ? os_now_us() + (uint64_t)timeout_us : 0;
    int got, count = 0;

    if (max <= 0)
        return -EINVAL;
    while ((got = poll_wait_once(set->epoll_fd, ev, max < POLL_BATCH ? max : POLL_BATCH,
                                 timeout_us)) < 0) {
        if (errno != EINTR)
            return -errno;
        if (timeout_us > 0) {
            uint64_t now = os_now_us();

            timeout_us = now < deadline ? (int64_t)(deadline - now) : 0;
        }
    }
    atomic_load(&set->adds);
    for (int i = 0; i < got; i++) {
        if (ev[i].data.ptr == &set->wake_fd)
            continue;
        events[count].cookie = ev[i].data.ptr;
        events[count].events = poll_translate(ev[i].events);
        count++;
    }
    return count;
}

void os_poll_wake(struct os_poll *set)
{
    const uint64_t one = 1;

    if (RED("os-poll-lost-wake"))
        return;
    while (write(set->wake_fd, &one, sizeof one) < 0 && errno == EINTR)
        ;
}
