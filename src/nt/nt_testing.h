// SPDX-License-Identifier: MIT
/*
 * nt_testing.h - what the tests of src/nt share: children whose end is the point, findings counted
 * and read, waiting for a condition. Included after <cmocka.h>.
 */
#ifndef SOFTNDK_NT_NT_TESTING_H
#define SOFTNDK_NT_NT_TESTING_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nt/nt.h"
#include "os/os_sync.h"

#pragma GCC diagnostic ignored "-Wmultichar" /* pool tags */

#define UNUSED __attribute__((unused))

enum { LIMIT_S = 60 }; /* for what must come; a lost wake-up fails the test instead of hanging it */

/* Polls until the condition holds; fails the test after the limit. */
#define AWAIT(condition)                                                                           \
    do {                                                                                           \
        uint64_t until_ = os_now_us() + LIMIT_S * 1000000ull;                                      \
        while (!(condition) && os_now_us() < until_)                                               \
            os_sleep_us(500);                                                                      \
        assert_true(condition);                                                                    \
    } while (0)

/* One more finding than before, whose text holds `part`. Only the first ones of a process are kept.
 */
#define ASSERT_FINDING(before, part)                                                               \
    do {                                                                                           \
        char text_[NT_FINDING_TEXT] = "";                                                          \
        assert_int_equal(nt_finding_count(), (before) + 1);                                        \
        if (nt_finding_text(before, text_) && !strstr(text_, part))                                \
            fail_msg("finding \"%s\" has no \"%s\"", text_, part);                                 \
    } while (0)

/* Runs fn in a child and gathers what it writes to stderr. What waitpid() tells of it. */
static UNUSED int child_run(void (*fn)(void *), void *arg, char *text, size_t size)
{
    int ends[2], status = -1;
    size_t n = 0;
    ssize_t got;
    pid_t pid;

    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        fn(arg);
        _exit(0);
    }
    close(ends[1]);
    while ((got = read(ends[0], text + n, size - 1 - n)) > 0)
        n += (size_t)got;
    text[n] = '\0';
    close(ends[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

/* Another process of this program with one argument, what it writes to stderr, and its end. */
static UNUSED int self_run(const char *argument, char *text, size_t size)
{
    int ends[2], status = -1;
    size_t n = 0;
    ssize_t got;
    pid_t pid;

    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        dup2(ends[1], STDERR_FILENO);
        close(ends[0]);
        close(ends[1]);
        execl("/proc/self/exe", "self", argument, (char *)NULL);
        _exit(126);
    }
    close(ends[1]);
    while ((got = read(ends[0], text + n, size - 1 - n)) > 0)
        n += (size_t)got;
    text[n] = '\0';
    close(ends[0]);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return status;
}

/* A directory of its own for the test, removed by the caller with what is in it. */
static UNUSED void scratch_make(char path[64])
{
    snprintf(path, 64, "/tmp/softndk-nt-XXXXXX");
    assert_non_null(mkdtemp(path));
}

static UNUSED void scratch_remove(const char *path)
{
    char command[128];

    snprintf(command, sizeof command, "rm -rf '%s'", path);
    assert_int_equal(system(command), 0);
}

#endif /* SOFTNDK_NT_NT_TESTING_H */
