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

/* Before any thread is started: they all inherit it, the library's too. */
static bool pin(const struct perf_options *options)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    for (unsigned i = 0; i < PERF_CPUS_MAX && i < CPU_SETSIZE; i++)
        if (options->cpus[i / 64] >> i % 64 & 1)
            CPU_SET(i, &set);
    if (sched_setaffinity(0, sizeof(set), &set) == 0)
        return true;
    tool_say("--cpu: %s", strerror(errno));
    return false;
}

int main(int argc, char **argv)
{
    struct perf_options options;
    int result;

    tool_name = "ndkperf";
    result = args_read(argc, argv, &options);
    if (result >= 0)
        return tool_finish(result);
    if (options.pinned && !pin(&options))
        return TOOL_FAILED;
    if (!tool_stop_begin()) {
        tool_say("cannot start a thread for signals");
        return TOOL_FAILED;
    }
    result = run_role(&options);
    tool_stop_end();
    return tool_finish(result);
}
