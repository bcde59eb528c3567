// SPDX-License-Identifier: MIT
/*
 * The monotonic clock, sleeping, randomness, the process number.
 */
#include <fcntl.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "os/linux/backend.h"

uint64_t os_now_us(void)
{
    struct timespec ts;

    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000u + (uint64_t)ts.tv_nsec / 1000u;
}

void os_sleep_us(uint64_t us)
{
    uint64_t until = os_now_us() + us;
    struct timespec ts = {.tv_sec = (time_t)(until / 1000000u),
                          .tv_nsec = (long)(until % 1000000u * 1000u)};

    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &ts, NULL) == EINTR)
        ;
}

void os_random(void *buf, size_t len)
{
    uint8_t *at = buf;

    while (len > 0) {
        ssize_t n = getrandom(at, len, 0);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) { /* no such call in this kernel or filter */
            int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);

            n = fd < 0 ? -1 : read(fd, at, len);
            if (n <= 0)
                os_fatal("random", errno);
            close(fd);
        }
        at += n;
        len -= (size_t)n;
    }
}

uint32_t os_pid(void)
{
    return (uint32_t)getpid();
}
