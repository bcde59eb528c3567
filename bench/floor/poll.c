// SPDX-License-Identifier: MIT
/* poll.c - epoll for the modes that wait by it; see poll.h. */
#include "floor/poll.h"

#include <errno.h>

int floor_poll_open(void)
{
    int poll = epoll_create1(EPOLL_CLOEXEC);

    if (poll < 0)
        bench_die_errno("epoll_create1");
    return poll;
}

void floor_poll_add(int poll, int fd, uint32_t events, epoll_data_t data)
{
    struct epoll_event event = {.events = events, .data = data};

    if (epoll_ctl(poll, EPOLL_CTL_ADD, fd, &event) != 0)
        bench_die_errno("epoll_ctl");
}

int floor_poll_wait(int poll, struct epoll_event *events, int max, bool spin)
{
    int n = epoll_wait(poll, events, max, spin ? 0 : -1);

    if (n < 0 && errno != EINTR)
        bench_die_errno("epoll_wait");
    return n < 0 ? 0 : n;
}
