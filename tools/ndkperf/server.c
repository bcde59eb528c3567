// SPDX-License-Identifier: MIT
/*
 * The server: listens for control connections, serves one client after another, as the client says.
 *
 * The connect event runs at DISPATCH_LEVEL: it puts the connector into the queue of those who wait,
 * or rejects it when that is full.
 */
#include "perf.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/tool_args.h"

#define WAITING_MAX    16
#define INTERFACES_MAX 64
#define TICK_MS        100

struct entry {
    NDK_ADAPTER *adapter;
    NDK_LISTENER *listener;
    struct server *server;
};

struct server {
    const struct perf_options *options;
    struct perf_door *door;
    struct entry entries[INTERFACES_MAX];
    unsigned entry_count;
    KEVENT own_wake; /* without a door */
    KEVENT *wake;    /* a client came, or the program is to stop */
    struct tool_stop_watch stop;

    pthread_mutex_t lock; /* of what follows */
    NDK_CONNECTOR *waiting[WAITING_MAX];
    NDK_ADAPTER *through[WAITING_MAX]; /* the adapter it came through */
    unsigned waiting_count;
    bool closing;
};

/* ---- listening ---- */

static VOID on_connect(PVOID context, NDK_CONNECTOR *connector)
{
    struct entry *entry = context;
    struct server *server = entry->server;
    bool taken = false;

    pthread_mutex_lock(&server->lock);
    if (!server->closing && server->waiting_count < WAITING_MAX) {
        server->waiting[server->waiting_count] = connector;
        server->through[server->waiting_count++] = entry->adapter;
        taken = true;
    }
    pthread_mutex_unlock(&server->lock);
    if (taken) {
        KeSetEvent(server->wake, IO_NO_INCREMENT, FALSE);
        return;
    }
    connector->Dispatch->NdkReject(connector, NULL, 0);
    connector->Dispatch->NdkCloseConnector(&connector->Header, tool_closed_alone, NULL);
}

static void tell_listening(struct server *server, NDK_LISTENER *listener)
{
    SOCKADDR_INET address;
    ULONG length = sizeof(address);

    if (!server->door)
        tool_tell_listening(listener);
    else if (listener->Dispatch->NdkGetLocalAddress(listener, (PSOCKADDR)&address, &length) ==
             STATUS_SUCCESS)
        server->door->port = RtlUshortByteSwap(SS_PORT(&address));
}

static bool listen_on(struct server *server, const char *text, bool quiet)
{
    struct entry *entry = &server->entries[server->entry_count];
    SOCKADDR_INET address;
    ULONG length = tool_address(text, server->options->port, &address);

    if (length == 0 || server->entry_count == INTERFACES_MAX)
        return false;
    entry->server = server;
    if (tool_open_adapter(text, &entry->adapter) != STATUS_SUCCESS)
        return false;
    server->entry_count++; /* from here on closed with the others */
    if (!tool_create_listener(entry->adapter, on_connect, entry, &entry->listener) ||
        tool_listen(entry->listener, &address, length, quiet) != STATUS_SUCCESS)
        return false;
    tell_listening(server, entry->listener);
    return true;
}

static bool listen_everywhere(struct server *server)
{
    struct softndk_adapter *list = calloc(INTERFACES_MAX, sizeof(*list));
    ULONG count = 0;
    NTSTATUS status;
    bool listens = false;

    if (!list)
        return false;
    status = softndk_adapter_list(list, INTERFACES_MAX, &count);
    if (status != STATUS_SUCCESS)
        tool_report_open("softndk_adapter_list", status);
    for (ULONG i = 0; status == STATUS_SUCCESS && i < count && i < INTERFACES_MAX; i++)
        for (ULONG k = 0; list[i].up && k < list[i].address_count; k++)
            listens = listen_on(server, list[i].addresses[k], true) || listens;
    free(list);
    if (!listens)
        tool_say("no address to listen on at port %u", (unsigned)server->options->port);
    return listens;
}

/* ---- a run ---- */

/* Where the client came to: the data connections go there as well. */
static bool local_of(struct control *control, SOCKADDR_INET *local, ULONG *length,
                     char text[SOFTNDK_ADDRESS_MAX])
{
    NDK_CONNECTOR *connector = control->link.connector;
    NTSTATUS status;

    *length = sizeof(*local);
    status = connector->Dispatch->NdkGetLocalAddress(connector, (PSOCKADDR)local, length);
    if (status != STATUS_SUCCESS) {
        tool_report(&connector->Header, "NdkGetLocalAddress", status);
        return false;
    }
    SS_PORT(local) = 0;
    softndk_address_to_text((const SOCKADDR *)local, *length, text, SOFTNDK_ADDRESS_MAX);
    return true;
}

/* Until the workers have ended; the client's end or a signal ends a run, too. */
static void wait_for_end(struct run *run, struct control *control)
{
    LARGE_INTEGER tick = {.QuadPart = -10000ll * TICK_MS};

    while (!run_is_over(run)) {
        KeWaitForSingleObject(&run->wake, Executive, KernelMode, FALSE, &tick);
        if (control_lost(control))
            run_fail(run, "the client has gone");
        if (tool_stopped())
            run_fail(run, "interrupted");
    }
    run_join(run);
}

/* Data connections have been made when the client says go. A client that failed says done. */
static bool hear_go(struct run *run, struct control *control, bool *done)
{
    char line[PLAN_TEXT_MAX];
    enum link_result result = control_hear(control, line, false);

    *done = true;
    if (result != LINK_GOOD) {
        run_fail(run, result == LINK_STOPPED ? "interrupted" : "the client has gone");
        return false;
    }
    if (sscanf(line, "go %" SCNx64 " %" SCNx32, &run->peer_address, &run->peer_token) != 2) {
        run_fail(run, "the client could not connect or start");
        return false;
    }
    *done = false;
    /* The client's side of a connection may be complete a little before ours. */
    while (!run_failed(run) && atomic_load(&run->connected) < run->plan.qps && !tool_stopped() &&
           !control_lost(control))
        run_wait(run, TICK_MS);
    return !run_failed(run);
}

static void say_result(struct run *run, struct control *control)
{
    uint64_t count = 0, began = UINT64_MAX, ended = 0;
    double peak = 0;

    for (unsigned i = 0; i < run->plan.threads; i++) {
        const struct figures *figures = &run->workers[i].figures;

        if (figures->count == 0)
            continue;
        count += figures->count;
        peak += figures->peak;
        began = figures->began_ns < began ? figures->began_ns : began;
        ended = figures->ended_ns > ended ? figures->ended_ns : ended;
    }
    control_say(control, "result %" PRIu64 " %" PRIu64 " %.0f", count, count ? ended - began : 0,
                peak);
}

static void carry_out(struct run *run, struct control *control)
{
    char line[PLAN_TEXT_MAX];
    bool done = true;

    if (!control_say(control, "ready %u %" PRIx64 " %" PRIx32, run->port,
                     (uint64_t)(uintptr_t)run->memory.data, run->memory.remote)) {
        run_fail(run, "the client has gone");
    } else if (hear_go(run, control, &done) && run_start(run)) {
        if (!control_say(control, "started"))
            run_fail(run, "the client has gone");
    } else if (!done && !control_lost(control)) { /* it waits to hear "started" */
        control_say(control, "error %s", run->error);
    }
    wait_for_end(run, control);
    if (!run_failed(run) && run->plan.verify && run->plan.op == PERF_WRITE &&
        run->plan.mode != PERF_LAT)
        stream_verify_end(run);
    if (run_failed(run))
        meet_part(run); /* so that the client, too, notices */
    if (control_lost(control) || (!done && control_hear(control, line, false) != LINK_GOOD)) {
        run_fail(run, "the client has gone");
        return;
    }
    if (run_failed(run))
        control_say(control, "error %s", run->error);
    else
        say_result(run, control);
}

/* The client says done when its last connection is closed. */
static void carry_out_conn(struct run *run, struct control *control)
{
    char line[PLAN_TEXT_MAX];

    if (!control_say(control, "ready %u 0 0", run->port) ||
        control_hear(control, line, false) != LINK_GOOD || !control_say(control, "started") ||
        control_hear(control, line, false) != LINK_GOOD) {
        run_fail(run, "the client has gone");
        return;
    }
    cycles_drain(run);
    if (run_failed(run))
        control_say(control, "error %s", run->error);
    else
        control_say(control, "result 0 0 0");
}

static bool serve_plan(struct control *control, const struct plan *plan)
{
    char selector[SOFTNDK_ADDRESS_MAX];
    SOCKADDR_INET local;
    ULONG length;
    struct run run;
    bool good;

    if (!local_of(control, &local, &length, selector))
        return false;
    if (!run_open(&run, plan, true, selector) ||
        !(plan->mode == PERF_CONN ? cycles_listen(&run, &local, length)
                                  : meet_listen(&run, meet_event, &local, length)))
        control_say(control, "error %s", run.error);
    else if (plan->mode == PERF_CONN)
        carry_out_conn(&run, control);
    else
        carry_out(&run, control);
    good = !run_failed(&run);
    if (!good)
        tool_say("%s: %s", control->link.peer, run.error);
    meet_part(&run);
    run_close(&run);
    return good;
}

/* ---- clients ---- */

static bool is_ours(struct link *link)
{
    char data[sizeof(CONTROL_DATA)] = "";
    ULONG length;

    return link_private_data(link, data, sizeof(data), &length) && length == sizeof(data) &&
           memcmp(data, CONTROL_DATA, sizeof(data)) == 0;
}

static void name_peer(struct link *link)
{
    NDK_CONNECTOR *connector = link->connector;
    SOCKADDR_INET address;
    ULONG length = sizeof(address);

    if (connector->Dispatch->NdkGetPeerAddress(connector, (PSOCKADDR)&address, &length) ==
        STATUS_SUCCESS)
        softndk_address_to_text((const SOCKADDR *)&address, length, link->peer, sizeof(link->peer));
}

enum served { STRANGER, SERVED, BADLY_SERVED };

/* False: a run failed, or there was none. */
static bool serve_plans(struct control *control)
{
    char line[PLAN_TEXT_MAX], error[240];
    bool good = true, any = false;
    struct plan plan;

    while (control_hear(control, line, true) == LINK_GOOD) {
        any = true;
        if (plan_read(line, &plan, error, sizeof(error))) {
            good = serve_plan(control, &plan) && good;
            continue;
        }
        good = false;
        tool_say("%s: refused: %s", control->link.peer, error);
        control_say(control, "error %s", error);
    }
    return good && (any || tool_stopped());
}

static enum served serve(NDK_ADAPTER *adapter, NDK_CONNECTOR *connector)
{
    struct link_terms terms = {1, 1, NULL, 0};
    enum served served = BADLY_SERVED;
    struct control control;

    if (!control_open(&control, adapter, connector)) {
        control_close(&control);
        return served;
    }
    name_peer(&control.link);
    if (!is_ours(&control.link)) {
        tool_say("%s: rejected: it is no ndkperf of this version", control.link.peer);
        connector->Dispatch->NdkReject(connector, NULL, 0);
        served = STRANGER;
    } else if (link_accept(&control.link, &terms) == LINK_GOOD && serve_plans(&control)) {
        served = SERVED;
    }
    control_close(&control);
    return served;
}

/* The client that has waited longest. false: none is there. */
static bool next_client(struct server *server, NDK_ADAPTER **adapter, NDK_CONNECTOR **connector)
{
    bool found;

    pthread_mutex_lock(&server->lock);
    found = server->waiting_count > 0;
    if (found) {
        *connector = server->waiting[0];
        *adapter = server->through[0];
        server->waiting_count--;
        memmove(&server->waiting[0], &server->waiting[1],
                server->waiting_count * sizeof(server->waiting[0]));
        memmove(&server->through[0], &server->through[1],
                server->waiting_count * sizeof(server->through[0]));
    }
    pthread_mutex_unlock(&server->lock);
    return found;
}

/* False: the only client that was to come had a run that failed. */
static bool serve_all(struct server *server)
{
    NDK_CONNECTOR *connector;
    NDK_ADAPTER *adapter;

    while (!tool_stopped() && !(server->door && atomic_load(&server->door->over))) {
        enum served served;

        if (!next_client(server, &adapter, &connector)) {
            KeWaitForSingleObject(server->wake, Executive, KernelMode, FALSE, NULL);
            continue;
        }
        served = serve(adapter, connector);
        if (server->options->once && served != STRANGER)
            return served == SERVED;
    }
    return true;
}

static void close_all(struct server *server)
{
    NDK_CONNECTOR *connector;
    NDK_ADAPTER *adapter;

    pthread_mutex_lock(&server->lock);
    server->closing = true;
    pthread_mutex_unlock(&server->lock);
    while (next_client(server, &adapter, &connector))
        tool_close(&connector->Header, connector->Dispatch->NdkCloseConnector);
    for (unsigned i = 0; i < server->entry_count; i++) {
        NDK_LISTENER *listener = server->entries[i].listener;

        if (listener)
            tool_close(&listener->Header, listener->Dispatch->NdkCloseListener);
        softndk_close_adapter(server->entries[i].adapter);
    }
}

int perf_server(const struct perf_options *options, struct perf_door *door)
{
    struct server *server = calloc(1, sizeof(*server));
    bool good;

    if (!server)
        return TOOL_FAILED;
    server->options = options;
    server->door = door;
    KeInitializeEvent(&server->own_wake, SynchronizationEvent, FALSE);
    server->wake = door ? &door->wake : &server->own_wake;
    pthread_mutex_init(&server->lock, NULL);
    tool_stop_watch(&server->stop, server->wake);
    good =
        options->address ? listen_on(server, options->address, false) : listen_everywhere(server);
    if (door)
        KeSetEvent(&door->open, IO_NO_INCREMENT, FALSE);
    if (good)
        good = serve_all(server);
    close_all(server);
    tool_stop_unwatch(&server->stop);
    pthread_mutex_destroy(&server->lock);
    free(server);
    return good ? TOOL_GOOD : TOOL_FAILED;
}
