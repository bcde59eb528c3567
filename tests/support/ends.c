// SPDX-License-Identifier: MIT
/* See ends.h. */
#include "ends.h"

#include <stdarg.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

atomic_bool test_has_failed;

unsigned long long test_now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (unsigned long long)now.tv_sec * 1000u + (unsigned long long)now.tv_nsec / 1000000u;
}

void test_sleep_ms(unsigned ms)
{
    struct timespec t = {ms / 1000, (long)(ms % 1000) * 1000000};

    nanosleep(&t, NULL);
}

void test_fail(const char *format, ...)
{
    char text[512];
    va_list ap;

    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    atomic_store(&test_has_failed, true);
    fail_msg("%s", text);
    abort();
}

/* ---- pending calls -------------------------------------------------------------------------- */

void wait_init(struct wait *w)
{
    KeInitializeEvent(&w->event, NotificationEvent, FALSE);
    w->status = STATUS_PENDING;
    w->object = NULL;
    atomic_store(&w->calls, 0);
}

VOID wait_create(PVOID context, NTSTATUS status, NDK_OBJECT_HEADER *object)
{
    struct wait *w = context;

    w->status = status;
    w->object = object;
    atomic_fetch_add(&w->calls, 1);
    KeSetEvent(&w->event, 0, FALSE);
}

VOID wait_request(PVOID context, NTSTATUS status)
{
    wait_create(context, status, NULL);
}

VOID wait_close(PVOID context)
{
    wait_create(context, STATUS_SUCCESS, NULL);
}

bool wait_event(KEVENT *event, unsigned ms)
{
    LARGE_INTEGER limit;

    limit.QuadPart = -(LONGLONG)ms * 10000;
    return KeWaitForSingleObject(event, Executive, KernelMode, FALSE, &limit) == STATUS_SUCCESS;
}

NTSTATUS wait_end(struct wait *w, NTSTATUS returned)
{
    if (returned != STATUS_PENDING) {
        assert_int_equal(atomic_load(&w->calls), 0);
        return returned;
    }
    if (!wait_event(&w->event, WAIT_S * 1000))
        test_fail("a pending call was not answered within %d s", WAIT_S);
    assert_int_equal(atomic_load(&w->calls), 1);
    return w->status;
}

static void expect_success(NTSTATUS status, const char *call)
{
    if (status != STATUS_SUCCESS)
        test_fail("%s: %s", call, softndk_status_name(status));
}

/* ---- objects -------------------------------------------------------------------------------- */

static NDK_ADAPTER *open_adapter_on(const char *interface, const char *options)
{
    NDK_VERSION newest = {2, 0}, older = {1, 0};
    NDK_ADAPTER *adapter = NULL;
    NTSTATUS status = softndk_open_adapter(interface, options, newest, &adapter);

    if (status == (NTSTATUS)0xC0010004) /* that version is not offered */
        status = softndk_open_adapter(interface, options, older, &adapter);
    if (status != STATUS_SUCCESS) {
        char text[512];

        softndk_open_error(text, sizeof text);
        test_fail("softndk_open_adapter: %s: %s", softndk_status_name(status), text);
    }
    return adapter;
}

NDK_ADAPTER *open_adapter(const char *options)
{
    return open_adapter_on("lo", options);
}

NDK_PD *make_pd(NDK_ADAPTER *adapter)
{
    struct wait w;
    NDK_PD *pd = NULL;
    NTSTATUS status;

    wait_init(&w);
    status = adapter->Dispatch->NdkCreatePd(adapter, wait_create, &w, &pd);
    expect_success(wait_end(&w, status), "NdkCreatePd");
    return status == STATUS_PENDING ? (NDK_PD *)(void *)w.object : pd;
}

NDK_CONNECTOR *make_connector(NDK_ADAPTER *adapter)
{
    struct wait w;
    NDK_CONNECTOR *connector = NULL;
    NTSTATUS status;

    wait_init(&w);
    status = adapter->Dispatch->NdkCreateConnector(adapter, wait_create, &w, &connector);
    expect_success(wait_end(&w, status), "NdkCreateConnector");
    return status == STATUS_PENDING ? (NDK_CONNECTOR *)(void *)w.object : connector;
}

void close_object(NDK_OBJECT_HEADER *header, NDK_FN_CLOSE_OBJECT close)
{
    struct wait w;

    wait_init(&w);
    expect_success(wait_end(&w, close(header, wait_close, &w)), "close");
}

static VOID queue_notified(PVOID context, NTSTATUS status)
{
    struct queue *queue = context;

    queue->status = status;
    if (queue->in_callback)
        queue->in_callback(queue, queue->context);
    atomic_fetch_add(&queue->notified, 1); /* behind the callback: who saw it may read its notes */
    KeSetEvent(&queue->event, 0, FALSE);
}

void make_queue(NDK_ADAPTER *adapter, ULONG depth, struct queue *out)
{
    struct wait w;
    NTSTATUS status;

    memset(out, 0, sizeof *out);
    KeInitializeEvent(&out->event, SynchronizationEvent, FALSE);
    wait_init(&w);
    status = adapter->Dispatch->NdkCreateCq(adapter, depth, queue_notified, out, NULL, wait_create,
                                            &w, &out->cq);
    expect_success(wait_end(&w, status), "NdkCreateCq");
    if (status == STATUS_PENDING)
        out->cq = (NDK_CQ *)(void *)w.object;
}

bool runs_at_least(const NDK_OBJECT_HEADER *header, unsigned major, unsigned minor)
{
    return header->Version.Major > major ||
           (header->Version.Major == major && header->Version.Minor >= minor);
}

/* Takes one result by the newest function that there is. */
static bool queue_take(struct queue *queue, NDK_RESULT_EX *out)
{
    const NDK_CQ_DISPATCH *slot = queue->cq->Dispatch;
    NDK_RESULT old;

    if (runs_at_least(&queue->cq->Header, 1, 2))
        return slot->NdkGetCqResultsEx(queue->cq, out, 1) == 1;
    if (slot->NdkGetCqResults(queue->cq, &old, 1) != 1)
        return false;
    memset(out, 0, sizeof *out);
    out->Status = old.Status;
    out->BytesTransferred = old.BytesTransferred;
    out->QPContext = old.QPContext;
    out->RequestContext = old.RequestContext;
    return true;
}

bool queue_try(struct queue *queue, NDK_RESULT_EX *out, unsigned ms)
{
    unsigned long long end = test_now_ms() + ms;

    for (;;) {
        unsigned long long now;

        if (queue_take(queue, out))
            return true;
        queue->cq->Dispatch->NdkArmCq(queue->cq, NDK_CQ_NOTIFY_ANY);
        now = test_now_ms();
        if (now >= end || !wait_event(&queue->event, (unsigned)(end - now)))
            return queue_take(queue, out);
    }
}

NDK_RESULT_EX queue_next(struct queue *queue)
{
    NDK_RESULT_EX result;

    if (!queue_try(queue, &result, WAIT_S * 1000))
        test_fail("no completion within %d s", WAIT_S);
    return result;
}

void make_memory(NDK_PD *pd, size_t size, ULONG flags, struct memory *out)
{
    struct wait w;
    NTSTATUS status;
    size_t room = (size + 4095) & ~(size_t)4095;

    memset(out, 0, sizeof *out);
    out->size = size;
    out->data = aligned_alloc(4096, room);
    assert_non_null(out->data);
    memset(out->data, 0, room);
    out->mdl = IoAllocateMdl(out->data, (ULONG)size, FALSE, FALSE, NULL);
    assert_non_null(out->mdl);
    MmBuildMdlForNonPagedPool(out->mdl);
    wait_init(&w);
    status = pd->Dispatch->NdkCreateMr(pd, FALSE, wait_create, &w, &out->mr);
    expect_success(wait_end(&w, status), "NdkCreateMr");
    if (status == STATUS_PENDING)
        out->mr = (NDK_MR *)(void *)w.object;
    wait_init(&w);
    status = out->mr->Dispatch->NdkRegisterMr(out->mr, out->mdl, size, flags, wait_request, &w);
    expect_success(wait_end(&w, status), "NdkRegisterMr");
    out->local = out->mr->Dispatch->NdkGetLocalTokenFromMr(out->mr);
    out->remote = out->mr->Dispatch->NdkGetRemoteTokenFromMr(out->mr);
}

void free_memory(struct memory *memory)
{
    struct wait w;
    NTSTATUS status;

    wait_init(&w);
    status = memory->mr->Dispatch->NdkDeregisterMr(memory->mr, wait_request, &w);
    expect_success(wait_end(&w, status), "NdkDeregisterMr");
    CLOSE(memory->mr, NdkCloseMr);
    IoFreeMdl(memory->mdl);
    free(memory->data);
}

NDK_SGE memory_sge(const struct memory *memory, size_t offset, ULONG length)
{
    NDK_SGE sge;

    memset(&sge, 0, sizeof sge);
    sge.VirtualAddress = memory->data + offset;
    sge.Length = length;
    sge.MemoryRegionToken = memory->local;
    return sge;
}

/* ---- ends ----------------------------------------------------------------------------------- */

NDK_ADAPTER_INFO adapter_info(NDK_ADAPTER *adapter)
{
    NDK_ADAPTER_INFO info;
    ULONG size = sizeof info;

    expect_success(adapter->Dispatch->NdkQueryAdapterInfo(adapter, &info, &size),
                   "NdkQueryAdapterInfo");
    return info;
}

static ULONG at_most(ULONG wanted, ULONG limit)
{
    return wanted < limit ? wanted : limit;
}

void end_make_qp(struct end *end, NDK_ADAPTER *adapter, NDK_PD *pd)
{
    NDK_ADAPTER_INFO info = adapter_info(adapter);
    struct wait w;
    NTSTATUS status;

    wait_init(&w);
    status = pd->Dispatch->NdkCreateQp(
        pd, end->receive.cq, end->initiator.cq, end, END_DEPTH, END_DEPTH,
        at_most(4, info.MaxReceiveRequestSge), at_most(4, info.MaxInitiatorRequestSge),
        at_most(64, info.MaxInlineDataSize), wait_create, &w, &end->qp);
    expect_success(wait_end(&w, status), "NdkCreateQp");
    if (status == STATUS_PENDING)
        end->qp = (NDK_QP *)(void *)w.object;
}

void end_open_on(struct end *end, const char *interface, const char *options)
{
    memset(end, 0, sizeof *end);
    KeInitializeEvent(&end->disconnected, NotificationEvent, FALSE);
    end->adapter = open_adapter_on(interface, options);
    end->pd = make_pd(end->adapter);
    make_queue(end->adapter, 4 * END_DEPTH, &end->receive);
    make_queue(end->adapter, 4 * END_DEPTH, &end->initiator);
    end_make_qp(end, end->adapter, end->pd);
}

void end_open(struct end *end, const char *options)
{
    end_open_on(end, "lo", options);
}

void end_close(struct end *end)
{
    if (end->connector)
        CLOSE(end->connector, NdkCloseConnector);
    if (end->qp)
        CLOSE(end->qp, NdkCloseQp);
    if (end->receive.cq)
        CLOSE(end->receive.cq, NdkCloseCq);
    if (end->initiator.cq)
        CLOSE(end->initiator.cq, NdkCloseCq);
    if (end->pd)
        CLOSE(end->pd, NdkClosePd);
    if (end->adapter)
        softndk_close_adapter(end->adapter);
    memset(end, 0, sizeof *end);
}

VOID end_disconnected(PVOID context, ULONG reason)
{
    struct end *end = context;

    end->reason = reason;
    atomic_fetch_add(&end->disconnects, 1);
    KeSetEvent(&end->disconnected, 0, FALSE);
}

VOID end_disconnected_plain(PVOID context)
{
    end_disconnected(context, 0);
}

static VOID connect_event(PVOID context, NDK_CONNECTOR *connector)
{
    struct listening *listening = context;

    listening->incoming = connector;
    if (listening->in_callback)
        listening->in_callback(listening, connector, listening->context);
    atomic_fetch_add(&listening->events, 1);
    KeSetEvent(&listening->event, 0, FALSE);
}

void listen_on(NDK_ADAPTER *adapter, const char *text, struct listening *out)
{
    struct wait w;
    NTSTATUS status;

    memset(out, 0, sizeof *out);
    KeInitializeEvent(&out->event, SynchronizationEvent, FALSE);
    expect_success(softndk_address_from_text(text, &out->address, &out->address_length),
                   "softndk_address_from_text");
    wait_init(&w);
    status = adapter->Dispatch->NdkCreateListener(adapter, connect_event, out, wait_create, &w,
                                                  &out->listener);
    expect_success(wait_end(&w, status), "NdkCreateListener");
    if (status == STATUS_PENDING)
        out->listener = (NDK_LISTENER *)(void *)w.object;
    wait_init(&w);
    status = out->listener->Dispatch->NdkListen(out->listener, (PSOCKADDR)&out->address,
                                                out->address_length, wait_request, &w);
    expect_success(wait_end(&w, status), "NdkListen");
    out->address_length = sizeof out->address;
    expect_success(out->listener->Dispatch->NdkGetLocalAddress(
                       out->listener, (PSOCKADDR)&out->address, &out->address_length),
                   "NdkGetLocalAddress");
}

NDK_CONNECTOR *next_incoming(struct listening *listening)
{
    if (!wait_event(&listening->event, WAIT_S * 1000))
        test_fail("no connect event within %d s", WAIT_S);
    return listening->incoming;
}

SOCKADDR_INET local_of(const struct listening *listening)
{
    SOCKADDR_INET local = listening->address;

    if (local.si_family == AF_INET)
        local.Ipv4.sin_port = 0;
    else
        local.Ipv6.sin6_port = 0;
    return local;
}

void pair_connect(struct pair *pair)
{
    SOCKADDR_INET local = local_of(&pair->listening);

    pair_connect_from(pair, &local);
}

void pair_connect_from(struct pair *pair, const SOCKADDR_INET *local)
{
    struct end *c = &pair->client, *s = &pair->server;
    struct wait connect, complete, accept;
    NTSTATUS connecting, accepting, completing;

    c->connector = make_connector(c->adapter);
    wait_init(&connect);
    connecting = c->connector->Dispatch->NdkConnect(
        c->connector, c->qp, (PSOCKADDR)local, pair->listening.address_length,
        (PSOCKADDR)&pair->listening.address, pair->listening.address_length, 8, 8, NULL, 0,
        wait_request, &connect);
    s->connector = next_incoming(&pair->listening);
    wait_init(&accept);
    accepting =
        runs_at_least(&s->connector->Header, 2, 1)
            ? s->connector->Dispatch->NdkAcceptEx(s->connector, s->qp, 8, 8, NULL, 0,
                                                  end_disconnected, s, wait_request, &accept)
            : s->connector->Dispatch->NdkAccept(s->connector, s->qp, 8, 8, NULL, 0,
                                                end_disconnected_plain, s, wait_request, &accept);
    expect_success(wait_end(&connect, connecting), "NdkConnect");
    wait_init(&complete);
    completing = runs_at_least(&c->connector->Header, 2, 1)
                     ? c->connector->Dispatch->NdkCompleteConnectEx(c->connector, end_disconnected,
                                                                    c, wait_request, &complete)
                     : c->connector->Dispatch->NdkCompleteConnect(
                           c->connector, end_disconnected_plain, c, wait_request, &complete);
    expect_success(wait_end(&complete, completing), "NdkCompleteConnect(Ex)");
    expect_success(wait_end(&accept, accepting), "NdkAccept(Ex)");
}

void pair_open(struct pair *pair, const char *text, const char *client_options,
               const char *server_options)
{
    end_open(&pair->server, server_options);
    end_open(&pair->client, client_options);
    listen_on(pair->server.adapter, text, &pair->listening);
    pair_connect(pair);
}

void pair_close(struct pair *pair)
{
    end_close(&pair->client);
    if (pair->server.connector) {
        CLOSE(pair->server.connector, NdkCloseConnector);
        pair->server.connector = NULL;
    }
    CLOSE(pair->listening.listener, NdkCloseListener);
    end_close(&pair->server);
}

void fill(uint8_t *data, size_t size, unsigned seed)
{
    uint32_t x = seed * 2654435761u + 12345u;

    for (size_t i = 0; i < size; i++) {
        x = x * 1664525u + 1013904223u;
        data[i] = (uint8_t)(x >> 24);
    }
}

bool check(const uint8_t *data, size_t size, unsigned seed)
{
    uint32_t x = seed * 2654435761u + 12345u;

    for (size_t i = 0; i < size; i++) {
        x = x * 1664525u + 1013904223u;
        if (data[i] != (uint8_t)(x >> 24))
            return false;
    }
    return true;
}

bool have_ipv6(void)
{
    FILE *f = fopen("/proc/net/if_inet6", "r");
    char line[128];
    bool found = false;

    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, "00000000000000000000000000000001 ", 33) == 0)
            found = true;
    if (f)
        fclose(f);
    return found;
}
