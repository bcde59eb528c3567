// SPDX-License-Identifier: MIT
/*
 * talk: one connection on which exactly the given steps are done, for peers whose protocol is
 * simpler than that of rping, and for what no well-behaved consumer does.
 *
 *   talk -c ADDRESS PORT STEP...     connects
 *   talk -s ADDRESS STEP...          listens, prints "listening on ADDRESS:PORT", takes one client
 *
 *   send:N         a Send of N octets, waited for
 *   recv:N         the next receive must bring N octets
 *   advert-wrong   a Send as rping's, whose token names nothing: the peer will read from it
 *   write-wrong    a Write to a token that names nothing
 *   read-wrong     a Read from one; ends in failure, which is not waited for
 *   until:PATH     waits until there is such a file
 *   gone           the peer ends the connection; prints "ended: why"
 *   refuse         -s, alone: rejects the client, with private data
 *
 * Receives for all recv steps are posted before the connection is made. At the end disconnects,
 * unless the peer has gone. Exit status 0: every step was done.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/tool_args.h"
#include "ndkping/link.h"

#define OCTETS   4096    /* of a message at most */
#define NOWHERE  0x7f00u /* a token that a fresh peer has not given out */
#define AT       0x1000u
#define LIMIT_MS 30000

struct talk {
    struct link link;
    NDK_ADAPTER *adapter;
    struct tool_memory out, in;
    char **steps;
    int count;
    bool gone;
    /* passive */
    KEVENT asked;
    NDK_CONNECTOR *volatile incoming; /* before the event is set */
};

static bool step_number(const char *step, const char *name, ULONG *octets)
{
    size_t length = strlen(name);
    uint64_t number;

    if (strncmp(step, name, length) != 0 || step[length] != ':' ||
        !tool_number(step + length + 1, 0, OCTETS, &number))
        return false;
    *octets = (ULONG)number;
    return true;
}

/* ---- steps ---- */

static enum link_result do_send(struct talk *t, ULONG octets)
{
    for (ULONG i = 0; i < octets; i++)
        t->out.data[i] = (UCHAR)('a' + i % 26);
    return link_send(&t->link, &t->out, 0, octets) ? link_wait(&t->link, LINK_SEND) : LINK_FAILED;
}

static enum link_result do_receive(struct talk *t, ULONG octets)
{
    enum link_result result = link_wait(&t->link, LINK_RECEIVE);

    if (result == LINK_GOOD && t->link.octets != octets) {
        tool_say("a message of %u octets (need %u)", (unsigned)t->link.octets, (unsigned)octets);
        result = LINK_FAILED;
    }
    return result;
}

/* Address 8, token 4, length 4, big-endian. */
static enum link_result do_advert(struct talk *t)
{
    static const UCHAR advert[16] = {[6] = AT >> 8, [10] = NOWHERE >> 8, [15] = 64};

    memcpy(t->out.data, advert, sizeof(advert));
    if (!link_send(&t->link, &t->out, 0, sizeof(advert)))
        return LINK_FAILED;
    return link_wait(&t->link, LINK_SEND);
}

/* The event itself is waited for: which requests are flushed in what order is not the point. */
static enum link_result do_gone(struct talk *t)
{
    LARGE_INTEGER limit;
    char text[320];

    limit.QuadPart = -10000ll * LIMIT_MS;
    while (!atomic_load(&t->link.disconnected)) {
        if (KeWaitForSingleObject(&t->link.wake, Executive, KernelMode, FALSE, &limit) ==
            STATUS_TIMEOUT) {
            tool_say("the peer is still there after %u ms", (unsigned)LIMIT_MS);
            return LINK_FAILED;
        }
    }
    softndk_reason_text(atomic_load(&t->link.reason), text, sizeof(text));
    printf("ended: %s\n", text);
    t->gone = true;
    return LINK_GOOD;
}

static enum link_result do_until(const char *path)
{
    for (unsigned waited = 0; access(path, F_OK) != 0; waited += 20) {
        if (waited > LIMIT_MS)
            return LINK_FAILED;
        usleep(20000);
    }
    return LINK_GOOD;
}

static enum link_result do_step(struct talk *t, const char *step)
{
    ULONG octets;

    if (step_number(step, "send", &octets))
        return do_send(t, octets);
    if (step_number(step, "recv", &octets))
        return do_receive(t, octets);
    if (strcmp(step, "advert-wrong") == 0)
        return do_advert(t);
    if (strcmp(step, "write-wrong") == 0)
        return link_write(&t->link, &t->out, 64, AT, NOWHERE) ? LINK_GOOD : LINK_FAILED;
    if (strcmp(step, "read-wrong") == 0)
        return link_read(&t->link, &t->in, 64, AT, NOWHERE) ? LINK_GOOD : LINK_FAILED;
    if (strncmp(step, "until:", 6) == 0)
        return do_until(step + 6);
    if (strcmp(step, "gone") == 0)
        return do_gone(t);
    tool_say("%s: no such step", step);
    return LINK_FAILED;
}

/* ---- the connection ---- */

static bool prepare(struct talk *t, NDK_CONNECTOR *connector)
{
    ULONG octets;

    if (!link_open(&t->link, t->adapter, connector, (ULONG)t->count + 1, 4) ||
        !tool_memory_create(t->link.pd, OCTETS, NDK_MR_FLAG_ALLOW_LOCAL_READ, &t->out) ||
        !tool_memory_create(t->link.pd, OCTETS,
                            NDK_MR_FLAG_ALLOW_REMOTE_WRITE | NDK_MR_FLAG_RDMA_READ_SINK, &t->in))
        return false;
    for (int i = 0; i < t->count; i++)
        if (step_number(t->steps[i], "recv", &octets) && !link_receive(&t->link, &t->in, 0, OCTETS))
            return false;
    return true;
}

static enum link_result talk_run(struct talk *t)
{
    enum link_result result = LINK_GOOD;

    for (int i = 0; i < t->count && result == LINK_GOOD; i++) {
        result = do_step(t, t->steps[i]);
        if (result == LINK_GONE) {
            link_report_lost(&t->link);
            result = LINK_FAILED;
        }
        printf("%s: %s\n", t->steps[i], result == LINK_GOOD ? "done" : "not done");
        fflush(stdout);
    }
    return result;
}

static int finish(struct talk *t, enum link_result result)
{
    if (!link_end(&t->link, result == LINK_GOOD && !t->gone) && !t->gone)
        result = LINK_FAILED;
    tool_memory_close(&t->out);
    tool_memory_close(&t->in);
    link_close(&t->link);
    return result == LINK_GOOD ? TOOL_GOOD : TOOL_FAILED;
}

static const struct link_terms terms = {1, 1, NULL, 0};

static int connect_to(struct talk *t, const char *source, const SOCKADDR_INET *peer, ULONG length)
{
    enum link_result result = LINK_FAILED;
    SOCKADDR_INET local;
    ULONG local_length;

    if (softndk_address_from_text(source, &local, &local_length) == STATUS_SUCCESS &&
        prepare(t, NULL)) {
        result = link_connect(&t->link, &local, local_length, peer, length, &terms);
        if (result == LINK_GOOD)
            result = link_complete_connect(&t->link);
        if (result == LINK_GOOD)
            result = talk_run(t);
    }
    return finish(t, result);
}

static int be_client(struct talk *t, const char *address, const char *port)
{
    char selector[SOFTNDK_ADDRESS_MAX], source[SOFTNDK_ADDRESS_MAX];
    SOCKADDR_INET peer;
    ULONG length;
    uint64_t number;
    int result;

    if (softndk_address_from_text(address, &peer, &length) != STATUS_SUCCESS ||
        !tool_number(port, 1, 65535, &number))
        return tool_usage_error("need an address and a port");
    peer.Ipv4.sin_port = RtlUshortByteSwap((USHORT)number); /* where IPv6 has it too */
    if (softndk_adapter_for_route(address, selector, sizeof(selector), source, sizeof(source)) !=
            STATUS_SUCCESS ||
        tool_open_adapter(selector, &t->adapter) != STATUS_SUCCESS)
        return TOOL_FAILED;
    result = connect_to(t, source, &peer, length);
    softndk_close_adapter(t->adapter);
    return result;
}

static VOID on_connect(PVOID context, NDK_CONNECTOR *connector)
{
    struct talk *t = context;

    if (t->incoming) {
        connector->Dispatch->NdkReject(connector, NULL, 0);
        connector->Dispatch->NdkCloseConnector(&connector->Header, tool_closed_alone, NULL);
        return;
    }
    t->incoming = connector;
    KeSetEvent(&t->asked, IO_NO_INCREMENT, FALSE);
}

static int serve(struct talk *t)
{
    static char why[] = "not today";
    NDK_CONNECTOR *connector;
    enum link_result result = LINK_FAILED;
    LARGE_INTEGER limit;

    limit.QuadPart = -10000ll * LIMIT_MS;
    if (KeWaitForSingleObject(&t->asked, Executive, KernelMode, FALSE, &limit) == STATUS_TIMEOUT) {
        tool_say("no client after %u ms", (unsigned)LIMIT_MS);
        return TOOL_FAILED;
    }
    connector = t->incoming;
    if (t->count == 1 && strcmp(t->steps[0], "refuse") == 0) {
        NTSTATUS status = connector->Dispatch->NdkReject(connector, why, sizeof(why));

        if (status != STATUS_SUCCESS)
            tool_report(&connector->Header, "NdkReject", status);
        tool_close(&connector->Header, connector->Dispatch->NdkCloseConnector);
        puts("refuse: done");
        return status == STATUS_SUCCESS ? TOOL_GOOD : TOOL_FAILED;
    }
    if (prepare(t, connector)) {
        result = link_accept(&t->link, &terms);
        if (result == LINK_GOOD)
            result = talk_run(t);
    }
    return finish(t, result);
}

static int be_server(struct talk *t, const char *address)
{
    NDK_LISTENER *listener = NULL;
    SOCKADDR_INET local;
    int result = TOOL_FAILED;
    ULONG length;

    if (softndk_address_from_text(address, &local, &length) != STATUS_SUCCESS)
        return tool_usage_error("%s: need an address", address);
    if (tool_open_adapter(address, &t->adapter) != STATUS_SUCCESS)
        return TOOL_FAILED;
    KeInitializeEvent(&t->asked, SynchronizationEvent, FALSE);
    if (tool_create_listener(t->adapter, on_connect, t, &listener) &&
        tool_listen(listener, &local, length, false) == STATUS_SUCCESS) {
        tool_tell_listening(listener);
        result = serve(t);
    }
    if (listener)
        tool_close(&listener->Header, listener->Dispatch->NdkCloseListener);
    softndk_close_adapter(t->adapter);
    return result;
}

int main(int argc, char **argv)
{
    struct talk t;
    int result;

    tool_name = "talk";
    memset(&t, 0, sizeof(t));
    bool client = argc > 3 && strcmp(argv[1], "-c") == 0;

    if (!client && (argc < 3 || strcmp(argv[1], "-s") != 0))
        return tool_usage_error("need -c ADDRESS PORT STEP... or -s ADDRESS STEP...");
    t.steps = argv + (client ? 4 : 3);
    t.count = argc - (client ? 4 : 3);
    if (!tool_stop_begin()) {
        tool_say("cannot start a thread for signals");
        return TOOL_FAILED;
    }
    result = client ? be_client(&t, argv[2], argv[3]) : be_server(&t, argv[2]);
    tool_stop_end();
    return tool_finish(result);
}
