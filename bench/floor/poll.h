// SPDX-License-Identifier: MIT
/* poll.h - how the modes of floor wait by epoll. Each function ends the program on failure. */
#ifndef SOFTNDK_BENCH_FLOOR_POLL_H
#define SOFTNDK_BENCH_FLOOR_POLL_H

#include <sys/epoll.h>

#include "common/bench.h"

/* What the library registers its sockets with, and what tells that a recv() is worth its call. */
#define FLOOR_EDGES    ((uint32_t)(EPOLLIN | EPOLLOUT | EPOLLRDHUP) | (uint32_t)EPOLLET)
#define FLOOR_READABLE ((uint32_t)(EPOLLIN | EPOLLRDHUP | EPOLLERR | EPOLLHUP))

int floor_poll_open(void);
void floor_poll_add(int poll, int fd, uint32_t events, epoll_data_t data);

/* How many events there are; 0 is possible. Sleeps until there are some, or never if `spin`. */
int floor_poll_wait(int poll, struct epoll_event *events, int max, bool spin);

#endif
