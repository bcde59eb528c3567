// SPDX-License-Identifier: MIT
/*
 * The client: a control connection, over it a run for each size, and the rows.
 */
#include "perf.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/tool_args.h"

#define TICK_MS     100
#define PROGRESS_NS UINT64_C(2000000000)

struct client {
    struct perf_options whole;          /* as given, with what the adapter has instead */
    const struct perf_options *options; /* those */
    char progress[12], completion[12];
    struct control control;
    bool told;                          /* the heading */
    char selector[SOFTNDK_ADDRESS_MAX]; /* of the adapter */
    SOCKADDR_INET local, peer;
    ULONG local_length, peer_length;
    struct histogram *times; /* of all threads */
    struct plot plot;
};

/* ---- talking ---- */

/* The server's answer, or run_fail() with its sentence. */
static bool hear(struct client *client, struct run *run, char line[PLAN_TEXT_MAX])
{
    enum link_result result = control_hear(&client->control, line, false);

    if (result != LINK_GOOD) {
        run_fail(run, result == LINK_STOPPED ? "interrupted" : "the server has gone");
        return false;
    }
    if (strncmp(line, "error ", 6) != 0)
        return true;
    run_fail(run, "the server says: %.360s", line + 6);
    return false;
}

/* Asks for the run and learns where its data connections go. */
static bool arrange(struct client *client, const struct plan *plan, struct run *run)
{
    char line[PLAN_TEXT_MAX];
    unsigned port;

    plan_write(plan, line);
    if (!control_say(&client->control, "%s", line)) {
        run_fail(run, "the server has gone");
        return false;
    }
    if (!hear(client, run, line))
        return false;
    if (sscanf(line, "ready %u %" SCNx64 " %" SCNx32, &port, &run->peer_address,
               &run->peer_token) != 3 ||
        port == 0 || port > 65535) {
        run_fail(run, "the server answers what this ndkperf does not understand");
        return false;
    }
    SS_PORT(&client->peer) = RtlUshortByteSwap((USHORT)port);
    return true;
}

/* ---- the run ---- */

static void show_progress(const struct run *run, uint64_t began_ns)
{
    uint64_t done = 0;

    for (unsigned i = 0; i < run->plan.threads; i++)
        done += atomic_load_explicit(&run->workers[i].progress, memory_order_relaxed);
    fprintf(stderr, "\r%5.1f s  %" PRIu64 " iterations of %u octets ",
            (double)(run_now_ns() - began_ns) / 1e9, done, run->plan.size);
    fflush(stderr);
}

static void wait_for_end(struct client *client, struct run *run)
{
    LARGE_INTEGER tick = {.QuadPart = -10000ll * TICK_MS};
    uint64_t began = run_now_ns(), shown = began + PROGRESS_NS - UINT64_C(500000000);
    bool terminal = isatty(STDERR_FILENO), told = false;

    while (!run_is_over(run)) {
        uint64_t now;

        KeWaitForSingleObject(&run->wake, Executive, KernelMode, FALSE, &tick);
        if (control_lost(&client->control))
            run_fail(run, "the server has gone");
        if (tool_stopped())
            run_fail(run, "interrupted");
        now = run_now_ns();
        if (terminal && now > shown && now - shown >= UINT64_C(500000000)) {
            show_progress(run, began);
            shown = now;
            told = true;
        }
    }
    if (told)
        fprintf(stderr, "\r%60s\r", "");
    run_join(run);
}

/* The heading, once there is a connection: what both ends agreed on is in force, whatever was asked
 * for here. Connections that come and go (mode conn) are not asked. */
static void tell(struct client *client, const struct run *run)
{
    struct softndk_stream stream;

    if (client->told)
        return;
    client->told = true;
    if (run->plan.mode != PERF_CONN &&
        softndk_stream(run->workers[0].qps[0].qp, &stream) == STATUS_SUCCESS) {
        client->whole.crc = stream.crc ? "on" : "off";
        client->whole.fpdu = stream.fpdu_payload;
    }
    report_heading(client->options, client->control.link.peer);
}

static bool go(struct client *client, struct run *run)
{
    char line[PLAN_TEXT_MAX];

    if (run->plan.mode == PERF_CONN) {
        tell(client, run);
        return control_say(&client->control, "go 0 0") && hear(client, run, line) &&
               cycles_begin(run, &client->local, client->local_length, &client->peer,
                            client->peer_length);
    }
    if (!meet_connect(run, &client->local, client->local_length, &client->peer,
                      client->peer_length))
        return false;
    tell(client, run);
    if (!control_say(&client->control, "go %" PRIx64 " %" PRIx32,
                     (uint64_t)(uintptr_t)run->memory.data, run->memory.remote)) {
        run_fail(run, "the server has gone");
        return false;
    }
    return hear(client, run, line) && run_start(run);
}

/* What the workers found, and what the server did itself. */
static void gather(struct client *client, struct run *run, const char *line,
                   struct outcome *outcome)
{
    uint64_t began = UINT64_MAX, ended = 0, count = 0, server_ns = 0, server_count = 0;
    double server_peak = 0;

    memset(outcome, 0, sizeof(*outcome));
    outcome->plan = run->plan;
    histogram_clear(client->times);
    for (unsigned i = 0; i < run->plan.threads; i++) {
        const struct figures *figures = &run->workers[i].figures;

        if (figures->count == 0) /* fewer iterations than threads */
            continue;
        count += figures->count;
        outcome->peak += figures->peak;
        began = figures->began_ns < began ? figures->began_ns : began;
        ended = figures->ended_ns > ended ? figures->ended_ns : ended;
        histogram_merge(client->times, figures->times);
    }
    outcome->iterations = count;
    outcome->times = client->times;
    if (ended > began)
        outcome->rate = (double)count * 1e9 / (double)(ended - began);
    sscanf(line, "result %" SCNu64 " %" SCNu64 " %lf", &server_count, &server_ns, &server_peak);
    if (run->plan.both_ways && server_ns > 0) {
        outcome->rate += (double)server_count * 1e9 / (double)server_ns;
        outcome->peak += server_peak;
    }
}

/* One run, from the plan to the row. */
static bool run_one(struct client *client, const struct plan *plan)
{
    struct outcome outcome;
    char line[PLAN_TEXT_MAX] = "", ours[sizeof(((struct run *)0)->error)];
    struct run run;
    bool good = run_open(&run, plan, false, client->selector), arranged, told;

    arranged = good && arrange(client, plan, &run);
    if (arranged && go(client, &run))
        wait_for_end(client, &run);
    if (!run_failed(&run)) {
        if (plan->verify && plan->op == PERF_WRITE && plan->mode != PERF_LAT)
            stream_verify_end(&run);
        told = control_say(&client->control, "done");
    } else {
        run_join(&run);
        if (plan->mode == PERF_CONN)
            cycles_drain(&run);
        /* Said first: the server may wait for "go", and parting waits for the server. */
        told = arranged && control_say(&client->control, "done");
        meet_part(&run); /* so that the server, too, notices */
    }
    /* The server's sentence is nearer to the cause than "connection lost". */
    memcpy(ours, run.error, sizeof(ours));
    if (told) {
        run.error[0] = '\0';
        hear(client, &run, line);
        if (ours[0] && (!run.error[0] || !strstr(ours, "connection lost")))
            memcpy(run.error, ours, sizeof(ours));
    }
    good = !run_failed(&run);
    if (good) {
        gather(client, &run, line, &outcome);
        report_row(client->options, &outcome);
        if (client->options->plot)
            good = report_plot(client->options, &client->plot, &outcome);
    } else {
        tool_say("%s", run.error);
    }
    meet_part(&run);
    run_close(&run);
    return good;
}

/* ---- connecting ---- */

static bool choose(struct client *client, uint16_t port)
{
    const struct perf_options *options = client->options;
    const char *address = options->address ? options->address : "127.0.0.1";
    char source[SOFTNDK_ADDRESS_MAX];
    NTSTATUS status;

    client->peer_length = tool_address(address, port, &client->peer);
    if (options->local) {
        snprintf(client->selector, sizeof(client->selector), "%s", options->local);
        snprintf(source, sizeof(source), "%s", options->local);
    } else {
        status = softndk_adapter_for_route(address, client->selector, sizeof(client->selector),
                                           source, sizeof(source));
        if (status != STATUS_SUCCESS) {
            tool_report_open("softndk_adapter_for_route", status);
            return false;
        }
    }
    client->local_length = tool_address(source, 0, &client->local);
    return client->peer_length > 0 && client->local_length > 0;
}

/* What the adapters of the runs have, whoever said it: the environment, a profile, an option. */
static void ask_adapter(struct client *client)
{
    static const NDK_VERSION one = {1, 0};
    struct perf_options *whole = &client->whole;
    NDK_ADAPTER *adapter = NULL;
    char text[12];

    if (softndk_open_adapter(client->selector, whole->plan.adapter, one, &adapter) !=
        STATUS_SUCCESS)
        return; /* the run will tell */
    softndk_adapter_option(adapter, "progress", client->progress, sizeof(client->progress));
    softndk_adapter_option(adapter, "completion", client->completion, sizeof(client->completion));
    whole->progress = client->progress;
    whole->completion = client->completion;
    softndk_adapter_option(adapter, "crc", text, sizeof(text));
    whole->crc = strcmp(text, "0") == 0 ? "off" : "on";
    softndk_adapter_option(adapter, "fpdu_max", text, sizeof(text));
    whole->fpdu = (uint32_t)strtoul(text, NULL, 10);
    whole->plan.spins_long = strcmp(client->progress, "engine") != 0;
    softndk_close_adapter(adapter);
}

static bool connect_control(struct client *client, NDK_ADAPTER *adapter)
{
    struct link_terms terms = {1, 1, CONTROL_DATA, sizeof(CONTROL_DATA)};
    struct link *link = &client->control.link;
    enum link_result result;

    if (!control_open(&client->control, adapter, NULL))
        return false;
    result = link_connect(link, &client->local, client->local_length, &client->peer,
                          client->peer_length, &terms);
    if (result == LINK_GOOD)
        result = link_complete_connect(link);
    if (result == LINK_STOPPED)
        tool_say("%s: interrupted while connecting", link->peer);
    return result == LINK_GOOD;
}

int perf_client(const struct perf_options *options)
{
    struct client *client = calloc(1, sizeof(*client));
    NDK_ADAPTER *adapter = NULL;
    bool good = false;

    if (client)
        client->times = malloc(sizeof(*client->times));
    if (client && client->times) {
        client->whole = *options;
        client->options = options = &client->whole;
        good = (!options->plot || report_can_plot(options->plot)) &&
               choose(client, options->port) &&
               tool_open_adapter(client->selector, &adapter) == STATUS_SUCCESS;
    }
    if (good) {
        good = connect_control(client, adapter);
        ask_adapter(client);
        for (unsigned i = 0; good && i < options->size_count; i++) {
            struct plan plan = args_plan(options, i);

            good = run_one(client, &plan);
        }
        control_close(&client->control);
    }
    softndk_close_adapter(adapter);
    if (client)
        free(client->times);
    free(client);
    return good ? TOOL_GOOD : TOOL_FAILED;
}
