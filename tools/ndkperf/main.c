// SPDX-License-Identifier: MIT
/*
 * ndkperf - how fast two ends send, write, read, register and connect through NDK.
 *
 * An NDK consumer like any other: it sees the public headers only. This file plays the roles.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* sched_setaffinity() */
#endif

#include "perf.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>

#include "common/tool_args.h"

/* ---- both ends in one process ---- */

struct self {
    struct perf_options options;
    struct perf_door door;
    int result;
};

static void *self_server(void *argument)
{
    struct self *self = argument;

    self->result = perf_server(&self->options, &self->door);
    return NULL;
}

/* The server ends after its first client, or when that is over without having come. */
static int run_self(const struct perf_options *options)
{
    struct perf_options client = *options;
    struct self self = {.options = *options};
    pthread_t thread;
    int result;

    self.options.role = PERF_SERVER;
    self.options.once = true;
    self.options.port = 0;
    if (!self.options.address)
        self.options.address = "127.0.0.1";
    KeInitializeEvent(&self.door.open, NotificationEvent, FALSE);
    KeInitializeEvent(&self.door.wake, SynchronizationEvent, FALSE);
    if (pthread_create(&thread, NULL, self_server, &self) != 0) {
        tool_say("cannot start a thread for the server");
        return TOOL_FAILED;
    }
    KeWaitForSingleObject(&self.door.open, Executive, KernelMode, FALSE, NULL);
    client.address = self.options.address;
    client.port = self.door.port;
    result = self.door.port ? perf_client(&client) : TOOL_FAILED;
    atomic_store(&self.door.over, true);
    KeSetEvent(&self.door.wake, IO_NO_INCREMENT, FALSE);
    pthread_join(thread, NULL);
    return result != TOOL_GOOD ? result : self.result;
}

static int run_role(const struct perf_options *options)
{
    switch (options->role) {
    case PERF_SERVER:
        return perf_server(options, NULL);
    case PERF_SELF:
        return run_self(options);
    default:
        return perf_client(options);
    }
}

/* Before any thread is started: they all inherit it, the library's too. -1: done; otherwise the
 * exit status. The kernel would pass over processors that are not there beside others that are. */
static int pin(const struct perf_options *options)
{
    unsigned first = PERF_CPUS_MAX, last = 0;
    cpu_set_t set, ours;

    CPU_ZERO(&set);
    CPU_ZERO(&ours);
    if (sched_getaffinity(0, sizeof(ours), &ours) != 0) {
        tool_say("--cpu: %s", strerror(errno));
        return TOOL_FAILED;
    }
    for (unsigned i = 0; i < PERF_CPUS_MAX && i < CPU_SETSIZE; i++)
        if (CPU_ISSET(i, &ours)) {
            first = i < first ? i : first;
            last = i;
        }
    for (unsigned i = 0; i < PERF_CPUS_MAX && i < CPU_SETSIZE; i++)
        if (options->cpus[i / 64] >> i % 64 & 1) {
            if (!CPU_ISSET(i, &ours))
                return tool_usage_error("--cpu %u: not a processor that this process may run on; "
                                        "those are %d from %u to %u",
                                        i, CPU_COUNT(&ours), first, last);
            CPU_SET(i, &set);
        }
    if (sched_setaffinity(0, sizeof(set), &set) == 0)
        return -1;
    tool_say("--cpu: %s", strerror(errno));
    return TOOL_FAILED;
}

/* The library says whether the options for adapters are good ones: -1, or the exit status. What
 * else is wrong with adapters, the run will tell. */
static int check_adapters(const struct perf_options *options)
{
    static const NDK_VERSION one = {1, 0};
    NDK_ADAPTER *adapter = NULL;
    char reason[320] = "";

    if (!options->plan.adapter[0])
        return -1;
    if (softndk_open_adapter("127.0.0.1", options->plan.adapter, one, &adapter) ==
        STATUS_INVALID_PARAMETER) {
        softndk_open_error(reason, sizeof(reason));
        if (softndk_open_adapter("127.0.0.1", NULL, one, &adapter) == STATUS_SUCCESS) {
            softndk_close_adapter(adapter);
            return tool_usage_error("%s", reason);
        }
        return -1;
    }
    softndk_close_adapter(adapter);
    return -1;
}

/* A socket that took the place of a missing standard file would be read and written as if it were
 * that. What is put there instead refuses both, as nothing did. */
static void fill_files(void)
{
    for (int file = 0; file <= 2; file++)
        if (fcntl(file, F_GETFD) == -1)
            (void)!open("/dev/null", file == 0 ? O_WRONLY : O_RDONLY);
}

int main(int argc, char **argv)
{
    struct perf_options options;
    int result;

    tool_name = "ndkperf";
    fill_files();
    result = args_read(argc, argv, &options);
    if (result >= 0)
        return tool_finish(result);
    if (options.pinned && (result = pin(&options)) >= 0)
        return tool_finish(result);
    if (!tool_stop_begin()) {
        tool_say("cannot start a thread for signals");
        return TOOL_FAILED;
    }
    result = check_adapters(&options);
    if (result < 0)
        result = run_role(&options);
    tool_stop_end();
    return tool_finish(result);
}
