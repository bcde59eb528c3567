// SPDX-License-Identifier: MIT
/*
 * The server: one listener an address, and a thread for each client that connects.
 *
 * The connect event runs at DISPATCH_LEVEL and decides only whether there is room: it queues a
 * session, which the main thread starts, or rejects. Ending: no more sessions, all of them joined,
 * then the listeners are closed, which waits for their connectors, then the adapters.
 */
#include "ndkping.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/tool_args.h"
#include "session.h"

#define INTERFACES_MAX 64

struct door {
    NDK_ADAPTER *adapter;
    NDK_LISTENER *listener;
    struct server *server;
};

struct server {
    const struct ping_options *options;
    NDK_ADAPTER *adapters[INTERFACES_MAX];
    unsigned adapter_count;
    struct door *doors[INTERFACES_MAX * 2];
    unsigned door_count;
    KEVENT wake; /* a session was queued or has ended, or the program is to stop */
    struct tool_stop_watch stop;

    pthread_mutex_t lock; /* the connect event's side */
    LIST_ENTRY sessions;
    unsigned session_count, taken; /* alive; ever */
    bool closing;
};

/* ---- the connect event ---- */

/* A new session in the list, or NULL when this client is to be rejected. */
static struct session *admit(struct server *server)
{
    struct session *session = NULL;

    pthread_mutex_lock(&server->lock);
    if (!server->closing && server->session_count < PING_CLIENTS &&
        (server->options->persistent || server->taken == 0))
        session = calloc(1, sizeof(*session));
    if (session) {
        server->session_count++;
        server->taken++;
    }
    pthread_mutex_unlock(&server->lock);
    return session;
}

static VOID on_connect(PVOID context, NDK_CONNECTOR *connector)
{
    struct door *door = context;
    struct server *server = door->server;
    struct session *session = admit(server);

    if (!session) {
        connector->Dispatch->NdkReject(connector, NULL, 0);
        connector->Dispatch->NdkCloseConnector(&connector->Header, tool_closed_alone, NULL);
        return;
    }
    session->options = server->options;
    session->adapter = door->adapter;
    session->connector = connector;
    session->ended_event = &server->wake;
    pthread_mutex_lock(&server->lock);
    InsertTailList(&server->sessions, &session->entry);
    pthread_mutex_unlock(&server->lock);
    KeSetEvent(&server->wake, IO_NO_INCREMENT, FALSE);
}

/* ---- listening ---- */

static NDK_ADAPTER *open_adapter(struct server *server, const char *selector)
{
    NDK_ADAPTER *adapter;

    if (server->adapter_count == INTERFACES_MAX ||
        tool_open_adapter(selector, &adapter) != STATUS_SUCCESS)
        return NULL;
    server->adapters[server->adapter_count++] = adapter;
    return adapter;
}

/* One listener. False: told unless quiet. */
static bool listen_on(struct server *server, NDK_ADAPTER *adapter, const char *text, bool quiet)
{
    SOCKADDR_INET address;
    ULONG length = tool_address(text, server->options->port, &address);
    struct door *door;

    if (length == 0 || server->door_count == sizeof(server->doors) / sizeof(server->doors[0]))
        return false;
    door = calloc(1, sizeof(*door));
    if (!door)
        return false;
    door->adapter = adapter;
    door->server = server;
    if (!tool_create_listener(adapter, on_connect, door, &door->listener)) {
        free(door);
        return false;
    }
    server->doors[server->door_count++] = door; /* from here on closed with the others */
    if (tool_listen(door->listener, &address, length, quiet) != STATUS_SUCCESS)
        return false;
    tool_tell_listening(door->listener);
    return true;
}

/* The wildcard of a family, or no address: every address of every interface that is up, or of the
 * one that was named. */
static bool listen_everywhere(struct server *server, int family)
{
    const uint32_t only = server->options->interface;
    struct softndk_adapter *list = calloc(INTERFACES_MAX, sizeof(*list));
    unsigned listening = 0;
    ULONG count = 0;
    NTSTATUS status;

    if (!list)
        return false;
    status = softndk_adapter_list(list, INTERFACES_MAX, &count);
    if (status != STATUS_SUCCESS)
        tool_report_open("softndk_adapter_list", status);
    for (ULONG i = 0; status == STATUS_SUCCESS && i < count && i < INTERFACES_MAX; i++) {
        NDK_ADAPTER *adapter = NULL;

        if (only && list[i].index != only)
            continue;
        for (ULONG k = 0; list[i].up && k < list[i].address_count; k++) {
            SOCKADDR_INET address;

            if (tool_address(list[i].addresses[k], 0, &address) == 0 ||
                (family != AF_UNSPEC && address.si_family != family))
                continue;
            if (!adapter)
                adapter = open_adapter(server, list[i].name);
            if (adapter && listen_on(server, adapter, list[i].addresses[k], true))
                listening++;
        }
    }
    free(list);
    if (listening == 0 && only)
        tool_say("interface %u: no address to listen on at port %u (ndkinfo shows interfaces)",
                 only, (unsigned)server->options->port);
    else if (listening == 0)
        tool_say("no address to listen on at port %u", (unsigned)server->options->port);
    return listening > 0;
}

static bool is_wildcard(const SOCKADDR_INET *address)
{
    static const UCHAR none[16];

    if (address->si_family == AF_INET)
        return memcmp(&address->Ipv4.sin_addr, none, sizeof(address->Ipv4.sin_addr)) == 0;
    return memcmp(&address->Ipv6.sin6_addr, none, sizeof(address->Ipv6.sin6_addr)) == 0;
}

static bool listen_all(struct server *server)
{
    const char *text = server->options->address;
    char interface[SOFTNDK_ADDRESS_MAX];
    SOCKADDR_INET address;
    NDK_ADAPTER *adapter;

    if (!text)
        return listen_everywhere(server, AF_UNSPEC);
    if (tool_address(text, 0, &address) == 0)
        return false; /* main() has checked it */
    if (is_wildcard(&address))
        return listen_everywhere(server, address.si_family);
    ping_interface(server->options->interface, interface);
    adapter = open_adapter(server, interface[0] ? interface : text);
    return adapter && listen_on(server, adapter, text, false);
}

/* ---- sessions ---- */

/* Starts what is new and joins what has ended. Returns how many are left. */
static unsigned tend(struct server *server, int *worst)
{
    LIST_ENTRY *entry, *next;
    unsigned left;

    pthread_mutex_lock(&server->lock);
    for (entry = server->sessions.Flink; entry != &server->sessions; entry = next) {
        struct session *session = CONTAINING_RECORD(entry, struct session, entry);
        bool over = false;

        next = entry->Flink;
        if (!session->started && (server->closing || !session_start(session))) {
            NDK_CONNECTOR *connector = session->connector;

            connector->Dispatch->NdkCloseConnector(&connector->Header, tool_closed_alone, NULL);
            over = true;
        } else if (atomic_load(&session->ended)) {
            session_join(session);
            if (session->result > *worst)
                *worst = session->result;
            over = true;
        }
        if (over) {
            RemoveEntryList(&session->entry);
            server->session_count--;
            free(session);
        }
    }
    left = server->session_count;
    pthread_mutex_unlock(&server->lock);
    return left;
}

/* Until something is to be done. false: the first client has not come in its time. */
static bool wait_for_work(struct server *server, bool first)
{
    const unsigned wait_s = server->options->wait_s;
    LARGE_INTEGER limit = {.QuadPart = -10000000ll * wait_s};

    return KeWaitForSingleObject(&server->wake, Executive, KernelMode, FALSE,
                                 first && wait_s ? &limit : NULL) != STATUS_TIMEOUT;
}

static int serve(struct server *server)
{
    int worst = TOOL_GOOD;

    for (;;) {
        bool over, first;

        pthread_mutex_lock(&server->lock);
        server->closing = server->closing || tool_stopped();
        over = server->closing || (!server->options->persistent && server->taken > 0);
        first = server->taken == 0;
        pthread_mutex_unlock(&server->lock);
        if (tend(server, &worst) == 0 && over)
            return worst;
        if (!wait_for_work(server, first)) {
            tool_say("no client came in %u s", server->options->wait_s);
            return TOOL_FAILED;
        }
    }
}

static void close_all(struct server *server)
{
    pthread_mutex_lock(&server->lock);
    server->closing = true;
    pthread_mutex_unlock(&server->lock);
    for (unsigned i = 0; i < server->door_count; i++) {
        NDK_LISTENER *listener = server->doors[i]->listener;

        tool_close(&listener->Header, listener->Dispatch->NdkCloseListener);
        free(server->doors[i]);
    }
    for (unsigned i = 0; i < server->adapter_count; i++)
        softndk_close_adapter(server->adapters[i]);
}

int ping_server(const struct ping_options *options)
{
    struct server *server = calloc(1, sizeof(*server));
    int result = TOOL_FAILED;

    if (!server)
        return TOOL_FAILED;
    server->options = options;
    KeInitializeEvent(&server->wake, SynchronizationEvent, FALSE);
    InitializeListHead(&server->sessions);
    pthread_mutex_init(&server->lock, NULL);
    tool_stop_watch(&server->stop, &server->wake);
    if (listen_all(server))
        result = serve(server);
    close_all(server);
    tool_stop_unwatch(&server->stop);
    pthread_mutex_destroy(&server->lock);
    free(server);
    return result;
}
