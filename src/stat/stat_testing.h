// SPDX-License-Identifier: MIT
/*
 * What the tests of src/stat share: a directory of the test's own, and a client that reads to the
 * end. Included after <cmocka.h>.
 */
#ifndef SOFTNDK_STAT_STAT_TESTING_H
#define SOFTNDK_STAT_STAT_TESTING_H

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "os/os.h"
#include "os/os_local.h"
#include "stat/place.h"

#define UNUSED __attribute__((unused))

enum { LIMIT_US = 60000000 }; /* for what must come */

static char scratch[64];

static UNUSED int scratch_make(void **state)
{
    (void)state;
    snprintf(scratch, sizeof scratch, "/tmp/softndk-stat-XXXXXX");
    return mkdtemp(scratch) ? 0 : -1;
}

static UNUSED void scratch_forget(void *context, const char *name)
{
    os_local_remove(*(const int *)context, name);
}

static UNUSED int scratch_remove(void **state)
{
    char why[STAT_WHY_MAX];
    int dir = os_local_dir(scratch, false, why, sizeof why);

    (void)state;
    os_local_names(dir, 1000, scratch_forget, &dir);
    os_local_close(dir);
    return rmdir(scratch);
}

static UNUSED int scratch_open(void)
{
    char why[STAT_WHY_MAX] = "";
    int dir = os_local_dir(scratch, false, why, sizeof why);

    if (dir < 0)
        fail_msg("%s: %s", scratch, why);
    return dir;
}

static UNUSED bool there(int dir, const char *name)
{
    return os_local_age_s(dir, name) >= 0;
}

/* What comes until the other end closes: how much, the first of it in text, terminated. */
static UNUSED size_t read_to_end(int fd, char *text, size_t size)
{
    struct os_local_wait wait = {.fd = fd, .read = true};
    uint64_t until = os_now_us() + LIMIT_US;
    char octets[65536];
    size_t total = 0;
    ssize_t n;

    text[0] = '\0';
    while ((n = os_local_recv(fd, octets, sizeof octets)) != 0) {
        if (n == -EAGAIN) {
            assert_true(os_now_us() < until);
            assert_true(os_local_wait(&wait, 1, LIMIT_US) > 0);
            continue;
        }
        if (n < 0) /* closed while it had not read what we sent */
            break;
        if (total < size - 1) {
            size_t fits = (size_t)n < size - 1 - total ? (size_t)n : size - 1 - total;

            memcpy(text + total, octets, fits);
            text[total + fits] = '\0';
        }
        total += (size_t)n;
    }
    os_local_close(fd);
    return total;
}

/* A connection to a name that listens; waits while its queue is full. */
static UNUSED int connect_to(int dir, const char *name)
{
    uint64_t until = os_now_us() + LIMIT_US;
    int fd;

    while ((fd = os_local_connect(dir, name)) == -EAGAIN && os_now_us() < until)
        os_sleep_us(500);
    if (fd < 0)
        fail_msg("connect to %s: %s", name, strerror(-fd));
    return fd;
}

#endif
