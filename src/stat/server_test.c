// SPDX-License-Identifier: MIT
/*
 * server_test.c - the socket of a process: it comes and goes with the first and the last user, with
 * exit and fork; clients that are another user's, do not read, go away or send hold nobody up; what
 * cannot be made is a line of the log.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "stat/server.h"
#include "stat/stat_testing.h"

#define LINE "{\"kind\":\"test\"}\n"

static char own[STAT_NAME_MAX], log_path[80];
static atomic_uint octets_to_write; /* 0: LINE */
static int dir = -1;

static void write_answer(struct stat_text *text)
{
    unsigned octets = atomic_load(&octets_to_write);

    if (octets == 0)
        stat_text_add(text, LINE);
    while (text->length < octets)
        stat_text_add(text, "%.*s", 400,
                      "................................................"
                      "................................................");
}

static unsigned users; /* of the main thread */

static void get(void)
{
    stat_get(write_answer);
    users++;
}

static void put(void)
{
    users--;
    stat_put();
}

/* After each test, also one that failed in its middle. */
static int reset(void **state)
{
    (void)state;
    while (users > 0)
        put();
    atomic_store(&octets_to_write, 0);
    atomic_store(&stat_client_us, 2000000);
    atomic_store(&os_local_user, -1);
    os_fault_clear();
    setenv("SOFTNDK_STAT", scratch, 1);
    return 0;
}

static void answered(void)
{
    char text[100];

    assert_int_equal(read_to_end(connect_to(dir, own), text, sizeof text), strlen(LINE));
    assert_string_equal(text, LINE);
}

/* How many lines of the log have both parts. */
static unsigned logged(const char *part, const char *other)
{
    char *text = NULL;
    size_t length;
    unsigned count = 0;

    if (os_file_read(log_path, 1 << 20, &text, &length) != 0)
        return 0;
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
        count += strstr(line, part) && strstr(line, other);
    free(text);
    return count;
}

/* ---- comes and goes; without threads at the fork -------------------------------------------- */

static void the_first_makes_it_the_last_removes_it(void **state)
{
    (void)state;
    for (int round = 0; round < 3; round++) {
        assert_false(there(dir, own));
        get();
        answered();
        get();
        put();
        answered();
        put();
        assert_int_equal(os_local_connect(dir, own), -ENOENT);
    }
}

/* A child that shows itself; what it wrote to the pipe is in *name. */
static pid_t showing_child(char name[STAT_NAME_MAX], bool killed)
{
    int ends[2];
    pid_t pid;

    assert_int_equal(pipe(ends), 0);
    fflush(NULL);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        stat_get(write_answer);
        close(ends[0]);
        close(ends[1]);
        if (killed)
            for (;;)
                pause();
        exit(0);
    }
    close(ends[1]);
    stat_name((uint32_t)pid, name);
    assert_int_equal(read(ends[0], name + STAT_NAME_MAX - 1, 1), 0);
    close(ends[0]);
    return pid;
}

static void an_exit_removes_it(void **state)
{
    char name[STAT_NAME_MAX];
    pid_t pid = showing_child(name, false);
    int status;

    (void)state;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_false(there(dir, name));
}

static void a_killed_ones_is_tidied_by_the_next_that_starts(void **state)
{
    char name[STAT_NAME_MAX];
    pid_t pid = showing_child(name, true);

    (void)state;
    assert_true(there(dir, name));
    kill(pid, SIGKILL);
    assert_int_equal(waitpid(pid, NULL, 0), pid);
    assert_true(there(dir, name));
    assert_int_equal(os_local_connect(dir, name), -ECONNREFUSED);
    get();
    assert_false(there(dir, name));
    answered();
    put();
}

/* ---- fork ----------------------------------------------------------------------------------- */

/* A child that runs, and waits until the parent closes its end of the pipe. */
static pid_t waiting_child(int *parents_end)
{
    int ends[2], began[2];
    char octet = 'x';
    pid_t pid;

    assert_int_equal(pipe(ends), 0);
    assert_int_equal(pipe(began), 0);
    fflush(NULL);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        ssize_t n;

        alarm(60);
        close(ends[1]);
        n = write(began[1], &octet, 1);
        n = n == 1 ? read(ends[0], &octet, 1) : -1;
        stat_put(); /* as if it closed the adapter that it has inherited */
        exit(n == 0 ? 0 : 1);
    }
    close(ends[0]);
    close(began[1]);
    assert_int_equal(read(began[0], &octet, 1), 1);
    close(began[0]);
    *parents_end = ends[1];
    return pid;
}

static void a_child_holds_nothing_of_it(void **state)
{
    char path[100], copy[100], text[100];
    int client, pipe_end, status;
    pid_t pid;

    (void)state;
    snprintf(path, sizeof path, "%s/%s", scratch, own);
    snprintf(copy, sizeof copy, "%s/copy", scratch);
    atomic_store(&octets_to_write, 4000000);
    atomic_store(&stat_client_us, 3600000000u);
    get();
    client = connect_to(dir, own);
    {
        struct os_local_wait wait = {.fd = client, .read = true};

        assert_int_equal(os_local_wait(&wait, 1, LIMIT_US), 1); /* it has begun to answer */
    }
    pid = waiting_child(&pipe_end);
    assert_int_equal(link(path, copy), 0);
    put();
    /* The listening socket and the client's end are closed although the child lives. */
    assert_int_equal(os_local_connect(dir, "copy"), -ECONNREFUSED);
    assert_true(read_to_end(client, text, sizeof text) < 4000000);
    atomic_store(&octets_to_write, 0);
    get();
    close(pipe_end);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    answered(); /* the child's end has removed nothing */
    put();
    unlink(copy);
}

/* ---- clients -------------------------------------------------------------------------------- */

static void another_user_gets_nothing(void **state)
{
    char text[100];

    (void)state;
    get();
    atomic_store(&os_local_user, (int64_t)os_user() + 1);
    assert_int_equal(read_to_end(connect_to(dir, own), text, sizeof text), 0);
    atomic_store(&os_local_user, -1);
    answered();
    put();
}

/* As many as are served at once begin to take a long answer and then take no more of it. */
static void those_that_do_not_read_are_dropped(void **state)
{
    int idle[STAT_CLIENTS];
    char text[100];

    (void)state;
    atomic_store(&octets_to_write, 4000000);
    atomic_store(&stat_client_us, 200000);
    get();
    for (unsigned i = 0; i < STAT_CLIENTS; i++) {
        struct os_local_wait wait = {.fd = -1, .read = true};

        wait.fd = idle[i] = connect_to(dir, own);
        assert_int_equal(os_local_wait(&wait, 1, LIMIT_US), 1);
    }
    atomic_store(&octets_to_write, 0);
    answered(); /* in the place of the first of them, whose time is over first */
    assert_true(read_to_end(idle[0], text, sizeof text) < 4000000);
    for (unsigned i = 1; i < STAT_CLIENTS; i++)
        os_local_close(idle[i]);
    put();
}

/* The end does not wait for them either. */
static void the_end_waits_for_no_client(void **state)
{
    int idle[STAT_CLIENTS + 3];
    char text[100];

    (void)state;
    atomic_store(&octets_to_write, 4000000);
    atomic_store(&stat_client_us, 3600000000u);
    get();
    for (unsigned i = 0; i < STAT_CLIENTS + 3; i++)
        idle[i] = connect_to(dir, own);
    put();
    for (unsigned i = 0; i < STAT_CLIENTS + 3; i++)
        assert_true(read_to_end(idle[i], text, sizeof text) < 4000000);
}

static void those_that_go_or_send_do_no_harm(void **state)
{
    char garbage[4096], text[100];

    (void)state;
    memset(garbage, '{', sizeof garbage);
    get();
    for (int i = 0; i < 100; i++) {
        int fd = connect_to(dir, own);

        if (i % 3 == 0)
            while (os_local_send(fd, garbage, sizeof garbage) > 0)
                ;
        if (i % 7 == 0)
            read_to_end(fd, text, sizeof text);
        else
            os_local_close(fd);
    }
    answered();
    put();
}

/* More at once than are served at once, each gets all of it. */
static void many_at_once_are_all_answered(void **state)
{
    enum { MANY = 12 };
    int fds[MANY];
    char text[100];

    (void)state;
    atomic_store(&octets_to_write, 1000000);
    atomic_store(&stat_client_us, 3600000000u);
    get();
    for (int i = 0; i < MANY; i++)
        fds[i] = connect_to(dir, own);
    for (int i = 0; i < MANY; i++)
        assert_true(read_to_end(fds[i], text, sizeof text) >= 1000000);
    put();
}

/* A client waits while the process has no descriptor for it. */
static void without_descriptors_it_goes_on_later(void **state)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct os_local_wait wait = {.fd = -1, .read = true};
    struct rlimit before, low;
    char text[100];
    int next;

    (void)state;
    get();
    answered();
    snprintf(address.sun_path, sizeof address.sun_path, "%s/%s", scratch, own);
    wait.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(wait.fd >= 0);
    next = dup(wait.fd); /* the lowest that is free */
    assert_true(next >= 0);
    close(next);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    low = before;
    low.rlim_cur = (rlim_t)next;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    assert_int_equal(connect(wait.fd, (struct sockaddr *)&address, sizeof address), 0);
    next = os_local_wait(&wait, 1, 50000);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(next, 0); /* nothing came */
    assert_int_equal(read_to_end(wait.fd, text, sizeof text), strlen(LINE));
    assert_string_equal(text, LINE);
    put();
}

/* ---- what cannot be ------------------------------------------------------------------------- */

static void switched_off_there_is_none(void **state)
{
    (void)state;
    setenv("SOFTNDK_STAT", "0", 1);
    get();
    assert_false(there(dir, own));
    put();
    setenv("SOFTNDK_STAT", scratch, 1);
    assert_int_equal(logged("stat:", ""), 0);
}

static void what_fails_is_a_line(void **state)
{
    (void)state;
    setenv("SOFTNDK_STAT", "yes", 1);
    get();
    get();
    put();
    put();
    assert_int_equal(logged("stat: SOFTNDK_STAT", "neither 0 nor"), 1);

    setenv("SOFTNDK_STAT", "/proc/self/no/such", 1);
    get();
    put();
    assert_int_equal(logged("/proc/self/no/such", "cannot be made"), 1);

    setenv("SOFTNDK_STAT", scratch, 1);
    assert_int_equal(os_fault_set("thread", 1, EAGAIN, false), 0);
    get();
    os_fault_clear();
    assert_int_equal(logged(own, "no thread"), 1);
    assert_false(there(dir, own));
    put();
    assert_int_equal(logged("stat:", ""), 3);
    get();
    answered();
    put();
}

/* A process of another namespace has our number: its socket stays. */
static void a_name_that_is_taken_is_left(void **state)
{
    int listening = os_local_listen(dir, own, 4);

    (void)state;
    assert_true(listening >= 0);
    get();
    put();
    assert_true(there(dir, own));
    os_local_close(listening);
    assert_int_equal(logged(own, "cannot listen"), 1);
    /* One that we left ourselves, before an exec, is not. */
    get();
    answered();
    put();
}

/* ---- beside each other ---------------------------------------------------------------------- */

static void comes_and_goes(void *unused)
{
    (void)unused;
    for (int i = 0; i < 40; i++) {
        stat_get(write_answer);
        stat_put();
    }
}

static void users_beside_each_other(void **state)
{
    struct os_thread *threads[3];

    (void)state;
    for (int i = 0; i < 3; i++)
        assert_int_equal(os_thread_start(&threads[i], "user", comes_and_goes, NULL), 0);
    for (int i = 0; i < 50; i++) {
        int fd = os_local_connect(dir, own);
        char text[100];

        if (fd >= 0)
            read_to_end(fd, text, sizeof text);
    }
    for (int i = 0; i < 3; i++)
        os_thread_join(threads[i]);
    assert_false(there(dir, own));
}

static int set_up(void **state)
{
    if (scratch_make(state) != 0)
        return -1;
    dir = scratch_open();
    setenv("SOFTNDK_STAT", scratch, 1);
    stat_name(os_pid(), own);
    return 0;
}

static int tear_down(void **state)
{
    unlink(log_path);
    os_local_close(dir);
    return scratch_remove(state);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(the_first_makes_it_the_last_removes_it, reset),
        cmocka_unit_test_teardown(an_exit_removes_it, reset),
        cmocka_unit_test_teardown(a_killed_ones_is_tidied_by_the_next_that_starts, reset),
        cmocka_unit_test_teardown(a_child_holds_nothing_of_it, reset),
        cmocka_unit_test_teardown(another_user_gets_nothing, reset),
        cmocka_unit_test_teardown(those_that_do_not_read_are_dropped, reset),
        cmocka_unit_test_teardown(the_end_waits_for_no_client, reset),
        cmocka_unit_test_teardown(those_that_go_or_send_do_no_harm, reset),
        cmocka_unit_test_teardown(many_at_once_are_all_answered, reset),
        cmocka_unit_test_teardown(without_descriptors_it_goes_on_later, reset),
        cmocka_unit_test_teardown(switched_off_there_is_none, reset),
        cmocka_unit_test_teardown(what_fails_is_a_line, reset),
        cmocka_unit_test_teardown(a_name_that_is_taken_is_left, reset),
        cmocka_unit_test_teardown(users_beside_each_other, reset),
    };

    snprintf(log_path, sizeof log_path, "/tmp/softndk-stat-log-%u", (unsigned)os_pid());
    setenv("SOFTNDK_LOG_FILE", log_path, 1);
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
