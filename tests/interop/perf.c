// SPDX-License-Identifier: MIT
/*
 * perf: the other end of perftest's ib_send_bw, ib_write_bw and ib_read_bw with -R.
 *
 *   perf -c ADDRESS PORT send|write|read OCTETS COUNT    is the client: does the transfers
 *   perf -s ADDRESS send|write|read OCTETS COUNT         prints "listening on ADDRESS:PORT", serves
 * one
 *
 * perftest has two connections to one port. On the first each end tells the other what it needs to
 * know, in Sends, the client first, and the server answers each with one of the same length: its
 * version (16 octets), two sizes of its machine (4 each), the path MTU (2), and then, over and
 * over, where its memory is (56); write and read end with five results (8 each). The second
 * connection begins behind the first 56 octets, which are zeros, and is for the transfers alone.
 *
 * The server of ib_send_bw tells the client how many messages it has taken, as credits: a number of
 * 4 octets, the lowest first, that it writes to where the client's memory is. As client we need
 * none: COUNT is at most COUNT_MAX, and the server has that many receives.
 *
 * Exit status 0: every transfer was done, and the peer has closed in order.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/tool_args.h"
#include "ndkping/link.h"

#define OCTETS_MAX (1u << 20)
#define COUNT_MAX  256u
#define IN_FLIGHT  8u
#define CYCLE      4096u /* small messages go round in so much memory */
#define MESSAGE    64u   /* of the first connection, at most */
#define PLACE      56u
#define FRESH      0xa5 /* in memory to be filled */
#define OTHER      0x5a /* in memory to be sent */
#define LIMIT_MS   60000

enum kind { SEND, WRITE, READ };
static const char *const kind_names[] = {"send", "write", "read"};

struct perf {
    enum kind kind;
    ULONG octets, count;
    NDK_ADAPTER *adapter;
    struct link control, data;
    struct tool_memory messages; /* what we say, and behind it what we are told */
    struct tool_memory region;   /* the transfers' */
    struct tool_memory credit;
    UINT64 address; /* of the peer's memory */
    UINT32 token;
    bool has_control, has_data;
    /* server */
    pthread_t thread; /* owns the second connection, from when it is accepted */
    bool has_thread, received;
    KEVENT asked;
    NDK_CONNECTOR *incoming[2];
    atomic_uint arrived, taken;
};

static UCHAR *said(struct perf *p)
{
    return p->messages.data + MESSAGE;
}

static void put_be(UCHAR *out, unsigned octets, UINT64 value)
{
    while (octets-- > 0) {
        out[octets] = (UCHAR)value;
        value >>= 8;
    }
}

static UINT64 get_be(const UCHAR *in, unsigned octets)
{
    UINT64 value = 0;

    for (unsigned i = 0; i < octets; i++)
        value = value << 8 | in[i];
    return value;
}

/* lid, reads in progress, queue pair, sequence number, token (4 each), 4 unused, address (8), gid
 * (16), shared receive queue, index of the gid (4 each). */
static void put_place(struct perf *p, UCHAR *out)
{
    UCHAR *at = p->region.data;

    if (p->kind ==
        SEND) /* credits: not where the messages are sent from, whose CRC is made before */
        at += p->octets;
    memset(out, 0, PLACE);
    put_be(out + 4, 4, 1);
    put_be(out + 8, 4, 2);
    put_be(out + 12, 4, 1);
    put_be(out + 16, 4, p->region.remote);
    put_be(out + 24, 8, (UINT64)(ULONG_PTR)at);
}

static void take_place(struct perf *p, const UCHAR *in)
{
    p->token = (UINT32)get_be(in + 16, 4);
    p->address = get_be(in + 24, 8);
}

/* ---- the two connections ---- */

static bool open_control(struct perf *p, NDK_CONNECTOR *connector)
{
    p->has_control = true;
    return link_open(&p->control, p->adapter, connector, 2, 2) &&
           tool_memory_create(p->control.pd, 2 * MESSAGE, NDK_MR_FLAG_ALLOW_LOCAL_WRITE,
                              &p->messages);
}

static bool open_data(struct perf *p, NDK_CONNECTOR *connector)
{
    bool is_filled = connector ? p->kind == WRITE : p->kind == READ;
    size_t size = p->octets + 2 * CYCLE;

    p->has_data = true;
    if (!link_open(&p->data, p->adapter, connector, p->count + 1, IN_FLIGHT) ||
        !tool_memory_create(p->data.pd, size,
                            NDK_MR_FLAG_ALLOW_REMOTE_READ | NDK_MR_FLAG_ALLOW_REMOTE_WRITE |
                                NDK_MR_FLAG_RDMA_READ_SINK,
                            &p->region) ||
        !tool_memory_create(p->data.pd, 4, NDK_MR_FLAG_ALLOW_LOCAL_READ, &p->credit))
        return false;
    memset(p->region.data, is_filled ? FRESH : OTHER, size);
    return true;
}

static bool touched(struct perf *p)
{
    for (size_t i = 0; i < p->octets; i++)
        if (p->region.data[i] != FRESH)
            return true;
    tool_say("no octet of the memory has changed");
    return false;
}

static const struct link_terms control_terms = {1, 1, NULL, 0};
static const struct link_terms data_terms = {IN_FLIGHT, IN_FLIGHT, NULL, 0};

static void close_data(struct perf *p)
{
    if (!p->has_data)
        return;
    link_end(&p->data, false);
    tool_memory_close(&p->region);
    tool_memory_close(&p->credit);
    link_close(&p->data);
    p->has_data = false;
}

static void close_all(struct perf *p)
{
    close_data(p);
    if (p->has_control) {
        link_end(&p->control, false);
        tool_memory_close(&p->messages);
        link_close(&p->control);
    }
}

/* ---- the client ---- */

/* Says what stands in messages, and waits for as much. */
static bool exchange(struct perf *p, ULONG octets)
{
    enum link_result result = LINK_FAILED;

    if (link_receive(&p->control, &p->messages, MESSAGE, MESSAGE) &&
        link_send(&p->control, &p->messages, 0, octets)) {
        result = link_wait(&p->control, LINK_SEND);
        if (result == LINK_GOOD)
            result = link_wait(&p->control, LINK_RECEIVE);
    }
    if (result == LINK_GONE)
        link_report_lost(&p->control);
    if (result == LINK_GOOD && p->control.octets != octets) {
        tool_say("an answer of %u octets (need %u)", (unsigned)p->control.octets, (unsigned)octets);
        result = LINK_FAILED;
    }
    return result == LINK_GOOD;
}

static bool exchange_text(struct perf *p, const char *text, ULONG octets)
{
    memset(p->messages.data, 0, MESSAGE);
    memcpy(p->messages.data, text, strlen(text));
    return exchange(p, octets);
}

static bool exchange_number(struct perf *p, ULONG octets, UINT64 number)
{
    put_be(p->messages.data, octets, number);
    return exchange(p, octets);
}

static bool exchange_places(struct perf *p, unsigned times)
{
    while (times-- > 0) {
        put_place(p, p->messages.data);
        if (!exchange(p, PLACE))
            return false;
    }
    return true;
}

static bool post(struct perf *p)
{
    switch (p->kind) {
    case SEND:
        return link_send(&p->data, &p->region, 0, p->octets);
    case WRITE:
        return link_write(&p->data, &p->region, p->octets, p->address, p->token);
    default:
        return link_read(&p->data, &p->region, p->octets, p->address, p->token);
    }
}

static bool transfer(struct perf *p)
{
    static const enum link_kind kinds[] = {LINK_SEND, LINK_WRITE, LINK_READ};
    enum link_result result = LINK_GOOD;

    for (ULONG posted = 0, done = 0; done < p->count && result == LINK_GOOD;) {
        if (posted < p->count && posted - done < IN_FLIGHT) {
            if (!post(p))
                return false;
            posted++;
            continue;
        }
        result = link_wait(&p->data, kinds[p->kind]);
        done++;
    }
    if (result == LINK_GONE)
        link_report_lost(&p->data);
    return result == LINK_GOOD && (p->kind != READ || touched(p));
}

static bool connect_link(struct link *link, const SOCKADDR_INET *peer, ULONG length,
                         const char *source, const struct link_terms *terms)
{
    SOCKADDR_INET local;
    ULONG local_length;

    return softndk_address_from_text(source, &local, &local_length) == STATUS_SUCCESS &&
           link_connect(link, &local, local_length, peer, length, terms) == LINK_GOOD &&
           link_complete_connect(link) == LINK_GOOD;
}

/* The server listens anew, after it has answered; until then it refuses. */
static bool connect_data(struct perf *p, const SOCKADDR_INET *peer, ULONG length,
                         const char *source)
{
    for (unsigned waited = 0; waited < LIMIT_MS / 3; waited += 100) {
        if (!open_data(p, NULL))
            return false;
        if (connect_link(&p->data, peer, length, source, &data_terms))
            return true;
        close_data(p);
        usleep(100000);
    }
    return false;
}

static bool client(struct perf *p, const SOCKADDR_INET *peer, ULONG length, const char *source)
{
    if (!open_control(p, NULL) ||
        !connect_link(&p->control, peer, length, source, &control_terms) ||
        !exchange_text(p, "6.06", 16) || !exchange_number(p, 4, CYCLE) ||
        !exchange_number(p, 4, 64) || !exchange_text(p, "3", 2) || !exchange_text(p, "", PLACE))
        return false;
    if (!connect_data(p, peer, length, source) || !exchange_text(p, "", PLACE) ||
        !exchange_places(p, 1))
        return false;
    take_place(p, said(p));
    /* send tells once more where credits go; write and read tell their results, which nobody reads.
     */
    if (!exchange_places(p, p->kind == SEND ? 3 : 2) || !transfer(p) || !exchange_places(p, 1))
        return false;
    for (unsigned i = 0; p->kind != SEND && i < 5; i++)
        if (!exchange_number(p, 8, i < 1 ? p->octets : p->count))
            return false;
    if (p->kind != SEND && !exchange_places(p, 1))
        return false;
    return link_end(&p->data, true) && link_end(&p->control, true);
}

static bool be_client(struct perf *p, const char *address, const char *port)
{
    char selector[SOFTNDK_ADDRESS_MAX], source[SOFTNDK_ADDRESS_MAX];
    SOCKADDR_INET peer;
    ULONG length;
    uint64_t number;
    bool good;

    if (softndk_address_from_text(address, &peer, &length) != STATUS_SUCCESS ||
        !tool_number(port, 1, 65535, &number))
        return tool_usage_error("need an address and a port"), false;
    peer.Ipv4.sin_port = RtlUshortByteSwap((USHORT)number); /* where IPv6 has it too */
    if (softndk_adapter_for_route(address, selector, sizeof(selector), source, sizeof(source)) !=
            STATUS_SUCCESS ||
        tool_open_adapter(selector, &p->adapter) != STATUS_SUCCESS)
        return false;
    good = client(p, &peer, length, source);
    close_all(p);
    softndk_close_adapter(p->adapter);
    return good;
}

/* ---- the server ---- */

static VOID on_connect(PVOID context, NDK_CONNECTOR *connector)
{
    struct perf *p = context;
    unsigned n = atomic_load(&p->arrived);

    if (n == 2) {
        connector->Dispatch->NdkReject(connector, NULL, 0);
        connector->Dispatch->NdkCloseConnector(&connector->Header, tool_closed_alone, NULL);
        return;
    }
    p->incoming[n] = connector;
    atomic_store(&p->arrived, n + 1);
    KeSetEvent(&p->asked, IO_NO_INCREMENT, FALSE);
}

/* The next connection; its link owns it. */
static NDK_CONNECTOR *next(struct perf *p)
{
    unsigned n = atomic_load(&p->taken);
    LARGE_INTEGER limit;

    limit.QuadPart = -10000ll * LIMIT_MS;
    while (atomic_load(&p->arrived) == n) {
        if (KeWaitForSingleObject(&p->asked, Executive, KernelMode, FALSE, &limit) ==
            STATUS_TIMEOUT) {
            tool_say("no connection %u after %u ms", n + 1, (unsigned)LIMIT_MS);
            return NULL;
        }
    }
    atomic_store(&p->taken, n + 1);
    return p->incoming[n];
}

/* So many messages have been taken. */
static bool give_credit(struct perf *p, ULONG count)
{
    for (unsigned i = 0; i < 4; i++)
        p->credit.data[i] = (UCHAR)(count >> 8 * i);
    return link_write(&p->data, &p->credit, 4, p->address, p->token) &&
           link_wait(&p->data, LINK_WRITE) == LINK_GOOD;
}

/* The messages that are to come, and then the end. */
static bool receive_all(struct perf *p)
{
    ULONG count = p->kind == SEND ? p->count : 0;

    for (ULONG i = 0; i < count; i++) {
        if (link_wait(&p->data, LINK_RECEIVE) != LINK_GOOD) {
            tool_say("%u messages have come (need %u)", (unsigned)i, (unsigned)p->count);
            return false;
        }
        if (p->data.octets != p->octets) {
            tool_say("a message of %u octets (need %u)", (unsigned)p->data.octets,
                     (unsigned)p->octets);
            return false;
        }
        if (!give_credit(p, i + 1))
            return false;
    }
    return link_wait(&p->data, LINK_RECEIVE) == LINK_GONE && (p->kind != WRITE || touched(p));
}

/* Answers the client's disconnect at once: it may wait for that before it ends the other one. */
static void *attend_data(void *context)
{
    struct perf *p = context;

    p->received = receive_all(p);
    link_end(&p->data, false);
    return NULL;
}

static bool accept_data(struct perf *p)
{
    NDK_CONNECTOR *connector = next(p);

    if (!connector || !open_data(p, connector))
        return false;
    for (ULONG i = 0; p->kind == SEND && i < p->count; i++)
        if (!link_receive(&p->data, &p->region, 0, p->octets))
            return false;
    if (link_accept(&p->data, &data_terms) != LINK_GOOD)
        return false;
    p->has_thread = pthread_create(&p->thread, NULL, attend_data, p) == 0;
    return p->has_thread;
}

/* Answers one message with one of its kind. */
static bool answer(struct perf *p)
{
    static const UCHAR nothing[PLACE];
    ULONG octets = p->control.octets;
    bool first = octets == PLACE && !p->has_data;

    memcpy(p->messages.data, said(p), MESSAGE);
    if (octets == PLACE && memcmp(said(p), nothing, PLACE) != 0) {
        if (!p->has_data) {
            tool_say("the client tells where its memory is before its second connection");
            return false;
        }
        if (!p->token)
            take_place(p, said(p)); /* the same ever after */
        put_place(p, p->messages.data);
    }
    if (!link_receive(&p->control, &p->messages, MESSAGE, MESSAGE) ||
        !link_send(&p->control, &p->messages, 0, octets) ||
        link_wait(&p->control, LINK_SEND) != LINK_GOOD)
        return false;
    return !first || accept_data(p);
}

static bool serve(struct perf *p)
{
    NDK_CONNECTOR *connector = next(p);
    enum link_result result;
    bool good;

    if (!connector || !open_control(p, connector) ||
        !link_receive(&p->control, &p->messages, MESSAGE, MESSAGE) ||
        link_accept(&p->control, &control_terms) != LINK_GOOD)
        return false;
    do {
        result = link_wait_idle(&p->control, LINK_RECEIVE);
        good = result == LINK_GONE || (result == LINK_GOOD && answer(p));
    } while (result == LINK_GOOD && good);
    if (result == LINK_GONE && !p->has_thread) {
        tool_say("the client has gone before its second connection");
        return false;
    }
    if (p->has_thread)
        pthread_join(p->thread, NULL);
    return good && p->received;
}

static bool be_server(struct perf *p, const char *address)
{
    NDK_LISTENER *listener = NULL;
    SOCKADDR_INET local;
    bool good = false;
    ULONG length;

    if (softndk_address_from_text(address, &local, &length) != STATUS_SUCCESS)
        return tool_usage_error("%s: need an address", address), false;
    if (tool_open_adapter(address, &p->adapter) != STATUS_SUCCESS)
        return false;
    KeInitializeEvent(&p->asked, SynchronizationEvent, FALSE);
    if (tool_create_listener(p->adapter, on_connect, p, &listener) &&
        tool_listen(listener, &local, length, false) == STATUS_SUCCESS) {
        tool_tell_listening(listener);
        good = serve(p);
    }
    close_all(p);
    if (listener)
        tool_close(&listener->Header, listener->Dispatch->NdkCloseListener);
    while (atomic_load(&p->taken) < atomic_load(&p->arrived)) { /* a connection nobody asked for */
        NDK_CONNECTOR *left = p->incoming[atomic_fetch_add(&p->taken, 1)];

        tool_close(&left->Header, left->Dispatch->NdkCloseConnector);
    }
    softndk_close_adapter(p->adapter);
    return good;
}

/* KIND OCTETS COUNT */
static bool read_transfer(struct perf *p, char **words)
{
    uint64_t octets, count;

    for (unsigned i = 0; i < 3; i++) {
        if (strcmp(words[0], kind_names[i]) == 0) {
            p->kind = (enum kind)i;
            if (!tool_number(words[1], 1, OCTETS_MAX, &octets) ||
                !tool_number(words[2], 1, COUNT_MAX, &count))
                return false;
            p->octets = (ULONG)octets;
            p->count = (ULONG)count;
            return true;
        }
    }
    return false;
}

int main(int argc, char **argv)
{
    static struct perf p;
    bool is_client = argc == 7 && strcmp(argv[1], "-c") == 0;
    bool good;

    tool_name = "perf";
    if ((!is_client && (argc != 6 || strcmp(argv[1], "-s") != 0)) ||
        !read_transfer(&p, argv + (is_client ? 4 : 3)))
        return tool_usage_error(
            "need -c ADDRESS PORT KIND OCTETS COUNT or -s ADDRESS KIND OCTETS COUNT");
    if (!tool_stop_begin()) {
        tool_say("cannot start a thread for signals");
        return TOOL_FAILED;
    }
    good = is_client ? be_client(&p, argv[2], argv[3]) : be_server(&p, argv[2]);
    tool_stop_end();
    if (good)
        printf("%s: %u transfers of %u octets\n", kind_names[p.kind], (unsigned)p.count,
               (unsigned)p.octets);
    return tool_finish(good ? TOOL_GOOD : TOOL_FAILED);
}
