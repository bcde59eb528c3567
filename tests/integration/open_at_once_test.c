// SPDX-License-Identifier: MIT
/*
 * The first opens of an interface, several at once: each finds the adapter, whoever brings it up.
 * Each try is a process of its own, since an interface comes up once a process.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "ndis/registry.h"

enum { TRIES = 10, THREADS = 4, LOOPBACK = 1 };

struct opener {
    pthread_t thread;
    NTSTATUS status; /* read after the join */
    char error[256];
};

static pthread_barrier_t start;

static void *open_main(void *argument)
{
    struct opener *o = argument;
    NDK_ADAPTER *adapter = NULL;

    pthread_barrier_wait(&start);
    o->status =
        ndis_open_adapter(LOOPBACK, (NDK_VERSION){1, 2}, &adapter, o->error, sizeof o->error);
    if (o->status == STATUS_SUCCESS)
        ndis_close_adapter(adapter);
    return NULL;
}

/* In a child; its exit status is how many opens failed. */
static int open_at_once(void)
{
    static struct opener openers[THREADS];
    int failed = 0;

    pthread_barrier_init(&start, NULL, THREADS);
    for (int i = 0; i < THREADS; i++)
        if (pthread_create(&openers[i].thread, NULL, open_main, &openers[i]))
            return 99;
    for (int i = 0; i < THREADS; i++) {
        pthread_join(openers[i].thread, NULL);
        if (openers[i].status != STATUS_SUCCESS) {
            fprintf(stderr, "open %d: 0x%08x: %s\n", i, (unsigned)openers[i].status,
                    openers[i].error);
            failed++;
        }
    }
    return failed;
}

static void first_opens_at_once_all_succeed(void **state)
{
    (void)state;
    for (int i = 0; i < TRIES; i++) {
        int status = -1;
        pid_t pid = fork();

        assert_true(pid >= 0);
        if (pid == 0)
            _exit(open_at_once());
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(first_opens_at_once_all_succeed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
