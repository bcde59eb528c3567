// SPDX-License-Identifier: MIT
/*
 * log_test.c - levels, the file, whole lines. The environment is read once a process, so each case
 * runs in a child that writes to a file of its own.
 */
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/log.h"

#define TEXT_MAX 300000
static char text[TEXT_MAX];

/* Runs body in a child with these settings (NULL: unset); what it logged is in text. */
static void logged(const char *level, bool file, void (*body)(void))
{
    char path[] = "/tmp/softndk-log-XXXXXX";
    int fd = mkstemp(path), status;
    ssize_t n;
    pid_t child;

    assert_true(fd >= 0);
    child = fork();
    if (child == 0) {
        unsetenv("SOFTNDK_LOG");
        unsetenv("SOFTNDK_LOG_FILE");
        if (level)
            setenv("SOFTNDK_LOG", level, 1);
        if (file)
            setenv("SOFTNDK_LOG_FILE", path, 1);
        else
            dup2(fd, STDERR_FILENO);
        body();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    n = pread(fd, text, TEXT_MAX - 1, 0);
    assert_true(n >= 0);
    text[n] = '\0';
    close(fd);
    unlink(path);
}

static void one_of_each(void)
{
    log_error("e %d", 1);
    log_info("i %s", "two");
    log_debug("d %u", 3u);
}

static void the_level_decides(void **state)
{
    static const struct {
        const char *level, *expected;
    } cases[] = {
        {NULL, "softndk: error: e 1\n"},
        {"error", "softndk: error: e 1\n"},
        {"info", "softndk: error: e 1\nsoftndk: info: i two\n"},
        {"debug", "softndk: error: e 1\nsoftndk: info: i two\nsoftndk: debug: d 3\n"},
        {"none", ""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        logged(cases[i].level, false, one_of_each);
        assert_string_equal(text, cases[i].expected);
        logged(cases[i].level, true, one_of_each);
        assert_string_equal(text, cases[i].expected);
    }
}

static void an_unknown_level_is_reported_once(void **state)
{
    (void)state;
    logged("loud", false, one_of_each);
    assert_string_equal(text,
                        "softndk: error: SOFTNDK_LOG: unknown level (have \"loud\", need none, "
                        "error, info or debug)\nsoftndk: error: e 1\n");
}

static void bad_file(void)
{
    setenv("SOFTNDK_LOG_FILE", "/nonexistent/softndk.log", 1);
    log_error("e");
}

static void a_file_that_cannot_be_opened_is_reported(void **state)
{
    (void)state;
    logged(NULL, false, bad_file);
    assert_string_equal(text, "softndk: error: SOFTNDK_LOG_FILE: cannot open "
                              "\"/nonexistent/softndk.log\"\nsoftndk: error: e\n");
}

static void set_by_program(void)
{
    log_set_level(LOG_DEBUG);
    log_debug("seen");
    log_set_level(LOG_ERROR);
    log_info("not seen");
}

static void a_program_may_set_the_level(void **state)
{
    (void)state;
    logged("none", false, set_by_program);
    assert_string_equal(text, "softndk: debug: seen\n");
}

static int evaluated;

static int evaluate(void)
{
    return ++evaluated;
}

static void count_arguments(void)
{
    log_debug("%d", evaluate());
    log_error("%d", evaluated);
}

static void arguments_of_a_silent_line_are_not_evaluated(void **state)
{
    (void)state;
    logged("info", false, count_arguments);
    assert_string_equal(text, "softndk: error: 0\n");
}

static void long_lines(void)
{
    log_error("%2000d", 7);
    log_error("%01010d", 8); /* around the cut */
    log_error("short");
}

static void a_long_line_is_cut_and_still_a_line(void **state)
{
    const char *second;

    (void)state;
    logged(NULL, false, long_lines);
    second = strchr(text, '\n');
    assert_non_null(second);
    assert_in_range(second - text, 900, 1023);
    assert_int_equal(strncmp(second + 1, "softndk: error: 000", 19), 0);
    second = strchr(second + 1, '\n');
    assert_non_null(second);
    assert_string_equal(second + 1, "softndk: error: short\n");
}

static void *chatter(void *argument)
{
    char filler[81];

    memset(filler, *(char *)argument, 80);
    filler[80] = '\0';
    for (int i = 0; i < 400; i++)
        log_error("%s", filler);
    return NULL;
}

static void two_threads(void)
{
    static char letters[2] = {'a', 'b'};
    pthread_t threads[2];

    for (int i = 0; i < 2; i++)
        pthread_create(&threads[i], NULL, chatter, &letters[i]);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
}

static void lines_of_two_threads_do_not_mix(void **state)
{
    unsigned lines = 0;
    char *p = text;

    (void)state;
    logged(NULL, true, two_threads);
    while (*p) {
        char *end = strchr(p, '\n');

        assert_non_null(end);
        assert_int_equal(end - p, 16 + 80);
        assert_int_equal(strncmp(p, "softndk: error: ", 16), 0);
        for (char *c = p + 17; c < end; c++)
            assert_int_equal(*c, p[16]);
        lines++;
        p = end + 1;
    }
    assert_int_equal(lines, 800);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_level_decides),
        cmocka_unit_test(an_unknown_level_is_reported_once),
        cmocka_unit_test(a_file_that_cannot_be_opened_is_reported),
        cmocka_unit_test(a_program_may_set_the_level),
        cmocka_unit_test(arguments_of_a_silent_line_are_not_evaluated),
        cmocka_unit_test(a_long_line_is_cut_and_still_a_line),
        cmocka_unit_test(lines_of_two_threads_do_not_mix),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
