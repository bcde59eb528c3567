// SPDX-License-Identifier: MIT
/*
 * The floor under all tests of statuses: every call, made to fail with every status that it is
 * documented to give (SOFTNDK_FAIL). A call that may pend gives each inline, through the callback,
 * and through a callback that has run before the call returns; exactly once, without an object,
 * with a reason, and with nothing left behind: the objects close and the adapter goes. Where a
 * status has a cause that can be had, other tests have it; here it is what a consumer would see.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/status.h"
#include "modes.h"

#define WAITS_MAX    256
#define STATUSES_MAX 24

/* One object of each kind that a call needs, and what its arguments point to. */
struct bench {
    struct end end;
    struct memory memory;
    NDK_MR *fast; /* created with FastRegister TRUE */
    NDK_MW *window;
    NDK_SRQ *srq;
    NDK_CONNECTOR *connector;
    NDK_LISTENER *listener;
    NDK_SHARED_ENDPOINT *shared;
    SOCKADDR_INET local, peer;
    ULONG address_length;
    void *out; /* of a create */
    struct wait waits[WAITS_MAX];
    unsigned wait_count, pended;
};

typedef NTSTATUS bench_call(struct bench *b, struct wait *w);

struct entry {
    const char *function; /* as the table of statuses calls it */
    const char *call;     /* as SOFTNDK_FAIL does, if that differs */
    bench_call *make;
    NTSTATUS statuses[STATUSES_MAX]; /* ends with STATUS_SUCCESS */
};

static VOID no_connect_event(PVOID context, NDK_CONNECTOR *connector)
{
    (void)context;
    CLOSE(connector, NdkCloseConnector);
}

static VOID no_notification(PVOID context, NTSTATUS status)
{
    (void)context;
    (void)status;
}

static void bench_open(struct bench *b)
{
    NDK_ADAPTER *adapter;
    struct wait w;
    NTSTATUS status;

    mode_set("never");
    memset(b, 0, sizeof *b);
    end_open(&b->end, NULL);
    adapter = b->end.adapter;
    make_memory(b->end.pd, 4096, NDK_MR_FLAG_ALLOW_LOCAL_WRITE, &b->memory);
    wait_init(&w);
    status = b->end.pd->Dispatch->NdkCreateMr(b->end.pd, TRUE, wait_create, &w, &b->fast);
    assert_int_equal(status, STATUS_SUCCESS);
    status = b->end.pd->Dispatch->NdkCreateMw(b->end.pd, wait_create, &w, &b->window);
    assert_int_equal(status, STATUS_SUCCESS);
    status = b->end.pd->Dispatch->NdkCreateSrq(b->end.pd, 4, 1, 0, NULL, NULL, NULL, wait_create,
                                               &w, &b->srq);
    assert_int_equal(status, STATUS_SUCCESS);
    b->connector = make_connector(adapter);
    status = adapter->Dispatch->NdkCreateListener(adapter, no_connect_event, NULL, wait_create, &w,
                                                  &b->listener);
    assert_int_equal(status, STATUS_SUCCESS);
    assert_int_equal(softndk_address_from_text("127.0.0.1", &b->local, &b->address_length),
                     STATUS_SUCCESS);
    b->peer = b->local;
    b->peer.Ipv4.sin_port = 1;
    status = adapter->Dispatch->NdkCreateSharedEndpoint(
        adapter, (PSOCKADDR)&b->local, b->address_length, wait_create, &w, &b->shared);
    assert_int_equal(status, STATUS_SUCCESS);
}

/* No call has left anything, since the adapter closes; and none was answered twice. */
static void bench_close(struct bench *b)
{
    unsigned answers = 0;

    assert_int_equal(softndk_set_fail(NULL), STATUS_SUCCESS);
    mode_set("never");
    CLOSE(b->shared, NdkCloseSharedEndpoint);
    CLOSE(b->listener, NdkCloseListener);
    CLOSE(b->connector, NdkCloseConnector);
    CLOSE(b->srq, NdkCloseSrq);
    CLOSE(b->window, NdkCloseMw);
    CLOSE(b->fast, NdkCloseMr);
    free_memory(&b->memory);
    end_close(&b->end);
    for (unsigned i = 0; i < b->wait_count; i++)
        answers += atomic_load(&b->waits[i].calls);
    assert_int_equal(answers, b->pended);
}

/* ---- every call once ------------------------------------------------------------------------ */

static NTSTATUS query_extension(struct bench *b, struct wait *w)
{
    GUID id = {0};
    NDK_VERSION version = {1, 0};
    NDK_EXTENSION_INTERFACE interface;

    (void)w;
    memset(&interface, 0, sizeof interface);
    return b->end.adapter->Dispatch->NdkQueryExtension(&b->end.adapter->Header, &id, version,
                                                       &interface);
}

static NTSTATUS query_adapter_info(struct bench *b, struct wait *w)
{
    NDK_ADAPTER_INFO info;
    ULONG size = sizeof info;

    (void)w;
    return b->end.adapter->Dispatch->NdkQueryAdapterInfo(b->end.adapter, &info, &size);
}

static NTSTATUS create_cq(struct bench *b, struct wait *w)
{
    return b->end.adapter->Dispatch->NdkCreateCq(b->end.adapter, 4, no_notification, NULL, NULL,
                                                 wait_create, w, (NDK_CQ **)&b->out);
}

static NTSTATUS resize_cq(struct bench *b, struct wait *w)
{
    return b->end.receive.cq->Dispatch->NdkResizeCq(b->end.receive.cq, 8, wait_request, w);
}

static NTSTATUS control_moderation(struct bench *b, struct wait *w)
{
    (void)w;
    return b->end.receive.cq->Dispatch->NdkControlCqInterruptModeration(b->end.receive.cq, 0, 0);
}

static NTSTATUS create_pd(struct bench *b, struct wait *w)
{
    return b->end.adapter->Dispatch->NdkCreatePd(b->end.adapter, wait_create, w,
                                                 (NDK_PD **)&b->out);
}

static NTSTATUS create_connector(struct bench *b, struct wait *w)
{
    return b->end.adapter->Dispatch->NdkCreateConnector(b->end.adapter, wait_create, w,
                                                        (NDK_CONNECTOR **)&b->out);
}

static NTSTATUS create_listener(struct bench *b, struct wait *w)
{
    return b->end.adapter->Dispatch->NdkCreateListener(b->end.adapter, no_connect_event, NULL,
                                                       wait_create, w, (NDK_LISTENER **)&b->out);
}

static NTSTATUS create_shared_endpoint(struct bench *b, struct wait *w)
{
    return b->end.adapter->Dispatch->NdkCreateSharedEndpoint(b->end.adapter, (PSOCKADDR)&b->local,
                                                             b->address_length, wait_create, w,
                                                             (NDK_SHARED_ENDPOINT **)&b->out);
}

static NTSTATUS get_shared_address(struct bench *b, struct wait *w)
{
    SOCKADDR_INET address;
    ULONG length = sizeof address;

    (void)w;
    return b->shared->Dispatch->NdkGetLocalAddress(b->shared, (PSOCKADDR)&address, &length);
}

static NTSTATUS build_lam(struct bench *b, struct wait *w)
{
    _Alignas(NDK_LOGICAL_ADDRESS_MAPPING) uint8_t room[256];
    ULONG size = sizeof room, fbo;

    return b->end.adapter->Dispatch->NdkBuildLAM(
        b->end.adapter, b->memory.mdl, b->memory.size, wait_request, w,
        (NDK_LOGICAL_ADDRESS_MAPPING *)(void *)room, &size, &fbo);
}

static NTSTATUS create_mr(struct bench *b, struct wait *w)
{
    return b->end.pd->Dispatch->NdkCreateMr(b->end.pd, FALSE, wait_create, w, (NDK_MR **)&b->out);
}

static NTSTATUS create_qp(struct bench *b, struct wait *w)
{
    return b->end.pd->Dispatch->NdkCreateQp(b->end.pd, b->end.receive.cq, b->end.initiator.cq, NULL,
                                            4, 4, 1, 1, 0, wait_create, w, (NDK_QP **)&b->out);
}

static NTSTATUS create_mw(struct bench *b, struct wait *w)
{
    return b->end.pd->Dispatch->NdkCreateMw(b->end.pd, wait_create, w, (NDK_MW **)&b->out);
}

static NTSTATUS create_srq(struct bench *b, struct wait *w)
{
    return b->end.pd->Dispatch->NdkCreateSrq(b->end.pd, 4, 1, 0, NULL, NULL, NULL, wait_create, w,
                                             (NDK_SRQ **)&b->out);
}

static NTSTATUS create_qp_with_srq(struct bench *b, struct wait *w)
{
    return b->end.pd->Dispatch->NdkCreateQpWithSrq(b->end.pd, b->end.receive.cq,
                                                   b->end.initiator.cq, b->srq, NULL, 4, 1, 0,
                                                   wait_create, w, (NDK_QP **)&b->out);
}

static NTSTATUS modify_srq(struct bench *b, struct wait *w)
{
    return b->srq->Dispatch->NdkModifySrq(b->srq, 5, 1, wait_request, w);
}

static NTSTATUS srq_receive(struct bench *b, struct wait *w)
{
    NDK_SGE sge = memory_sge(&b->memory, 0, 8);

    (void)w;
    return b->srq->Dispatch->NdkSrqReceive(b->srq, NULL, &sge, 1);
}

static NTSTATUS register_mr(struct bench *b, struct wait *w)
{
    return b->memory.mr->Dispatch->NdkRegisterMr(b->memory.mr, b->memory.mdl, b->memory.size, 0,
                                                 wait_request, w);
}

static NTSTATUS deregister_mr(struct bench *b, struct wait *w)
{
    return b->memory.mr->Dispatch->NdkDeregisterMr(b->memory.mr, wait_request, w);
}

static NTSTATUS initialize_fast(struct bench *b, struct wait *w)
{
    return b->fast->Dispatch->NdkInitializeFastRegisterMr(b->fast, 4, TRUE, wait_request, w);
}

static NTSTATUS send_it(struct bench *b, struct wait *w)
{
    NDK_SGE sge = memory_sge(&b->memory, 0, 8);

    (void)w;
    return b->end.qp->Dispatch->NdkSend(b->end.qp, NULL, &sge, 1, 0);
}

static NTSTATUS receive_it(struct bench *b, struct wait *w)
{
    NDK_SGE sge = memory_sge(&b->memory, 0, 8);

    (void)w;
    return b->end.qp->Dispatch->NdkReceive(b->end.qp, NULL, &sge, 1);
}

static NTSTATUS bind_it(struct bench *b, struct wait *w)
{
    (void)w;
    return b->end.qp->Dispatch->NdkBind(b->end.qp, NULL, b->memory.mr, b->window, b->memory.data, 8,
                                        NDK_OP_FLAG_ALLOW_REMOTE_READ);
}

static NTSTATUS fast_register(struct bench *b, struct wait *w)
{
    NDK_LOGICAL_ADDRESS page = {.QuadPart = (LONGLONG)(uintptr_t)b->memory.data};

    (void)w;
    return b->end.qp->Dispatch->NdkFastRegister(b->end.qp, NULL, b->fast, 1, &page, 0, 4096,
                                                b->memory.data, 0);
}

static NTSTATUS invalidate(struct bench *b, struct wait *w)
{
    (void)w;
    return b->end.qp->Dispatch->NdkInvalidate(b->end.qp, NULL, &b->fast->Header, 0);
}

static NTSTATUS read_it(struct bench *b, struct wait *w)
{
    NDK_SGE sge = memory_sge(&b->memory, 0, 8);

    (void)w;
    return b->end.qp->Dispatch->NdkRead(b->end.qp, NULL, &sge, 1, 0, 0, 0);
}

static NTSTATUS write_it(struct bench *b, struct wait *w)
{
    NDK_SGE sge = memory_sge(&b->memory, 0, 8);

    (void)w;
    return b->end.qp->Dispatch->NdkWrite(b->end.qp, NULL, &sge, 1, 0, 0, 0);
}

static NTSTATUS send_and_invalidate(struct bench *b, struct wait *w)
{
    NDK_SGE sge = memory_sge(&b->memory, 0, 8);

    (void)w;
    return b->end.qp->Dispatch->NdkSendAndInvalidate(b->end.qp, NULL, &sge, 1, 0, 1);
}

static NTSTATUS connect_it(struct bench *b, struct wait *w)
{
    return b->connector->Dispatch->NdkConnect(b->connector, b->end.qp, (PSOCKADDR)&b->local,
                                              b->address_length, (PSOCKADDR)&b->peer,
                                              b->address_length, 1, 1, NULL, 0, wait_request, w);
}

static NTSTATUS connect_shared(struct bench *b, struct wait *w)
{
    return b->connector->Dispatch->NdkConnectWithSharedEndpoint(
        b->connector, b->end.qp, b->shared, (PSOCKADDR)&b->peer, b->address_length, 1, 1, NULL, 0,
        wait_request, w);
}

static NTSTATUS complete_connect(struct bench *b, struct wait *w)
{
    return b->connector->Dispatch->NdkCompleteConnect(b->connector, NULL, NULL, wait_request, w);
}

static NTSTATUS complete_connect_ex(struct bench *b, struct wait *w)
{
    return b->connector->Dispatch->NdkCompleteConnectEx(b->connector, NULL, NULL, wait_request, w);
}

static NTSTATUS accept_it(struct bench *b, struct wait *w)
{
    return b->connector->Dispatch->NdkAccept(b->connector, b->end.qp, 1, 1, NULL, 0, NULL, NULL,
                                             wait_request, w);
}

static NTSTATUS accept_ex(struct bench *b, struct wait *w)
{
    return b->connector->Dispatch->NdkAcceptEx(b->connector, b->end.qp, 1, 1, NULL, 0, NULL, NULL,
                                               wait_request, w);
}

static NTSTATUS reject_it(struct bench *b, struct wait *w)
{
    (void)w;
    return b->connector->Dispatch->NdkReject(b->connector, NULL, 0);
}

static NTSTATUS get_connection_data(struct bench *b, struct wait *w)
{
    ULONG inbound, outbound, length = 0;

    (void)w;
    return b->connector->Dispatch->NdkGetConnectionData(b->connector, &inbound, &outbound, NULL,
                                                        &length);
}

static NTSTATUS get_local_address(struct bench *b, struct wait *w)
{
    SOCKADDR_INET address;
    ULONG length = sizeof address;

    (void)w;
    return b->connector->Dispatch->NdkGetLocalAddress(b->connector, (PSOCKADDR)&address, &length);
}

static NTSTATUS get_peer_address(struct bench *b, struct wait *w)
{
    SOCKADDR_INET address;
    ULONG length = sizeof address;

    (void)w;
    return b->connector->Dispatch->NdkGetPeerAddress(b->connector, (PSOCKADDR)&address, &length);
}

static NTSTATUS disconnect_it(struct bench *b, struct wait *w)
{
    return b->connector->Dispatch->NdkDisconnect(b->connector, wait_request, w);
}

static NTSTATUS listen_it(struct bench *b, struct wait *w)
{
    return b->listener->Dispatch->NdkListen(b->listener, (PSOCKADDR)&b->local, b->address_length,
                                            wait_request, w);
}

static NTSTATUS get_listener_address(struct bench *b, struct wait *w)
{
    SOCKADDR_INET address;
    ULONG length = sizeof address;

    (void)w;
    return b->listener->Dispatch->NdkGetLocalAddress(b->listener, (PSOCKADDR)&address, &length);
}

/* ---- what each must give --------------------------------------------------------------------- */

#define TRANSFER                                                                                   \
    STATUS_NO_MORE_ENTRIES, STATUS_DATA_OVERRUN, STATUS_BUFFER_OVERFLOW, STATUS_INVALID_PARAMETER, \
        STATUS_INSUFFICIENT_RESOURCES, STATUS_ACCESS_VIOLATION

static const struct entry adapter_entries[] = {
    {"NdkQueryExtension", NULL, query_extension, {STATUS_NOT_SUPPORTED}},
    {"NdkQueryAdapterInfo",
     NULL,
     query_adapter_info,
     {STATUS_BUFFER_TOO_SMALL, STATUS_INVALID_PARAMETER}},
    {"NdkCreateCq", NULL, create_cq, {STATUS_INVALID_PARAMETER, STATUS_INSUFFICIENT_RESOURCES}},
    {"NdkResizeCq",
     NULL,
     resize_cq,
     {STATUS_INVALID_PARAMETER, STATUS_INSUFFICIENT_RESOURCES, STATUS_NOT_SUPPORTED,
      STATUS_INVALID_DEVICE_STATE}},
    {"NdkControlCqInterruptModeration",
     NULL,
     control_moderation,
     {STATUS_INSUFFICIENT_RESOURCES, STATUS_NOT_SUPPORTED, STATUS_INVALID_PARAMETER_MIX}},
    {"NdkCreatePd", NULL, create_pd, {STATUS_INSUFFICIENT_RESOURCES}},
    {"NdkCreateConnector", NULL, create_connector, {STATUS_INSUFFICIENT_RESOURCES}},
    {"NdkCreateListener",
     NULL,
     create_listener,
     {STATUS_INSUFFICIENT_RESOURCES, STATUS_INVALID_PARAMETER}},
    {"NdkCreateSharedEndpoint",
     NULL,
     create_shared_endpoint,
     {STATUS_INSUFFICIENT_RESOURCES, STATUS_SHARING_VIOLATION, STATUS_TOO_MANY_ADDRESSES,
      STATUS_INVALID_ADDRESS}},
    {"NdkGetSharedEndpointLocalAddress",
     "NdkGetLocalAddress",
     get_shared_address,
     {STATUS_BUFFER_TOO_SMALL, STATUS_INVALID_PARAMETER}},
    {"NdkBuildLAM",
     NULL,
     build_lam,
     {STATUS_INVALID_PARAMETER, STATUS_INSUFFICIENT_RESOURCES, STATUS_BUFFER_TOO_SMALL,
      STATUS_ACCESS_VIOLATION}},
    {NULL, NULL, NULL, {0}},
};

static const struct entry memory_entries[] = {
    {"NdkCreateMr", NULL, create_mr, {STATUS_INSUFFICIENT_RESOURCES}},
    {"NdkCreateMw", NULL, create_mw, {STATUS_INSUFFICIENT_RESOURCES}},
    {"NdkRegisterMr",
     NULL,
     register_mr,
     {STATUS_INVALID_PARAMETER, STATUS_INSUFFICIENT_RESOURCES, STATUS_ACCESS_VIOLATION,
      STATUS_INVALID_DEVICE_REQUEST}},
    {"NdkDeregisterMr",
     NULL,
     deregister_mr,
     {STATUS_INVALID_DEVICE_REQUEST, STATUS_DEVICE_BUSY, STATUS_INSUFFICIENT_RESOURCES}},
    {"NdkInitializeFastRegisterMr",
     NULL,
     initialize_fast,
     {STATUS_IMPLEMENTATION_LIMIT, STATUS_INVALID_PARAMETER, STATUS_INVALID_DEVICE_REQUEST,
      STATUS_INSUFFICIENT_RESOURCES}},
    {NULL, NULL, NULL, {0}},
};

static const struct entry qp_entries[] = {
    {"NdkCreateQp",
     NULL,
     create_qp,
     {STATUS_INVALID_PARAMETER, STATUS_INSUFFICIENT_RESOURCES, STATUS_INVALID_DEVICE_STATE}},
    {"NdkSend", NULL, send_it, {STATUS_CONNECTION_INVALID, TRANSFER}},
    {"NdkReceive",
     NULL,
     receive_it,
     {STATUS_CONNECTION_INVALID, STATUS_INVALID_DEVICE_REQUEST, TRANSFER}},
    {"NdkBind",
     NULL,
     bind_it,
     {STATUS_CONNECTION_INVALID, STATUS_ACCESS_VIOLATION, STATUS_NO_MORE_ENTRIES,
      STATUS_INVALID_PARAMETER, STATUS_INVALID_DEVICE_REQUEST, STATUS_INSUFFICIENT_RESOURCES}},
    {"NdkFastRegister",
     NULL,
     fast_register,
     {STATUS_CONNECTION_INVALID, STATUS_ACCESS_VIOLATION, STATUS_NO_MORE_ENTRIES,
      STATUS_INVALID_PARAMETER, STATUS_INVALID_DEVICE_STATE, STATUS_INSUFFICIENT_RESOURCES}},
    {"NdkInvalidate",
     NULL,
     invalidate,
     {STATUS_CONNECTION_INVALID, STATUS_NO_MORE_ENTRIES, STATUS_INVALID_PARAMETER,
      STATUS_INSUFFICIENT_RESOURCES}},
    {"NdkRead",
     NULL,
     read_it,
     {STATUS_CONNECTION_INVALID, STATUS_REMOTE_RESOURCES, STATUS_INVALID_DEVICE_REQUEST, TRANSFER}},
    {"NdkWrite", NULL, write_it, {STATUS_CONNECTION_INVALID, TRANSFER}},
    {"NdkSendAndInvalidate",
     NULL,
     send_and_invalidate,
     {STATUS_CONNECTION_INVALID, STATUS_NOT_SUPPORTED, TRANSFER}},
    {NULL, NULL, NULL, {0}},
};

#define COMPLETE                                                                                   \
    STATUS_CONNECTION_INVALID, STATUS_CONNECTION_ABORTED, STATUS_IO_TIMEOUT,                       \
        STATUS_INSUFFICIENT_RESOURCES, STATUS_CANCELLED, STATUS_INTERNAL_ERROR
#define ACCEPT                                                                                     \
    COMPLETE, STATUS_CONNECTION_REFUSED, STATUS_INVALID_BUFFER_SIZE, STATUS_CONNECTION_ACTIVE,     \
        STATUS_INVALID_PARAMETER

static const struct entry srq_entries[] = {
    {"NdkCreateSrq", NULL, create_srq, {STATUS_INVALID_PARAMETER, STATUS_INSUFFICIENT_RESOURCES}},
    {"NdkCreateQpWithSrq",
     NULL,
     create_qp_with_srq,
     {STATUS_INVALID_PARAMETER, STATUS_INSUFFICIENT_RESOURCES, STATUS_INVALID_DEVICE_STATE}},
    {"NdkModifySrq", NULL, modify_srq, {STATUS_INVALID_PARAMETER}},
    {"NdkSrqReceive", NULL, srq_receive, {TRANSFER}},
    {NULL, NULL, NULL, {0}},
};

static const struct entry connector_entries[] = {
    {"NdkConnect",
     NULL,
     connect_it,
     {STATUS_INSUFFICIENT_RESOURCES, STATUS_NETWORK_UNREACHABLE, STATUS_HOST_UNREACHABLE,
      STATUS_CONNECTION_REFUSED, STATUS_IO_TIMEOUT, STATUS_SHARING_VIOLATION,
      STATUS_INVALID_ADDRESS, STATUS_TOO_MANY_ADDRESSES, STATUS_ADDRESS_ALREADY_EXISTS,
      STATUS_INVALID_BUFFER_SIZE, STATUS_CONNECTION_ACTIVE, STATUS_INVALID_PARAMETER,
      STATUS_CONNECTION_INVALID, STATUS_CONNECTION_ABORTED, STATUS_CANCELLED,
      STATUS_INTERNAL_ERROR}},
    {"NdkConnectWithSharedEndpoint",
     NULL,
     connect_shared,
     {STATUS_INSUFFICIENT_RESOURCES, STATUS_NETWORK_UNREACHABLE, STATUS_HOST_UNREACHABLE,
      STATUS_CONNECTION_REFUSED, STATUS_IO_TIMEOUT, STATUS_ADDRESS_ALREADY_EXISTS,
      STATUS_INVALID_PARAMETER, STATUS_INVALID_ADDRESS, STATUS_SHARING_VIOLATION,
      STATUS_INVALID_BUFFER_SIZE, STATUS_CONNECTION_ACTIVE, STATUS_CONNECTION_INVALID,
      STATUS_CONNECTION_ABORTED, STATUS_CANCELLED, STATUS_INTERNAL_ERROR}},
    {"NdkCompleteConnect", NULL, complete_connect, {COMPLETE}},
    {"NdkCompleteConnectEx", NULL, complete_connect_ex, {COMPLETE, STATUS_NOT_SUPPORTED}},
    {"NdkAccept", NULL, accept_it, {ACCEPT}},
    {"NdkAcceptEx", NULL, accept_ex, {ACCEPT, STATUS_NOT_SUPPORTED}},
    {"NdkReject",
     NULL,
     reject_it,
     {STATUS_CONNECTION_ABORTED, STATUS_INVALID_BUFFER_SIZE, STATUS_INVALID_PARAMETER,
      STATUS_CONNECTION_INVALID, STATUS_INSUFFICIENT_RESOURCES}},
    {"NdkGetConnectionData",
     NULL,
     get_connection_data,
     {STATUS_BUFFER_TOO_SMALL, STATUS_CONNECTION_INVALID, STATUS_INVALID_PARAMETER}},
    {"NdkGetLocalAddress",
     NULL,
     get_local_address,
     {STATUS_BUFFER_TOO_SMALL, STATUS_CONNECTION_INVALID, STATUS_INVALID_PARAMETER}},
    {"NdkGetPeerAddress",
     NULL,
     get_peer_address,
     {STATUS_BUFFER_TOO_SMALL, STATUS_CONNECTION_INVALID, STATUS_INVALID_PARAMETER}},
    {"NdkDisconnect",
     NULL,
     disconnect_it,
     {STATUS_IO_TIMEOUT, STATUS_CONNECTION_INVALID, STATUS_CONNECTION_ABORTED,
      STATUS_INSUFFICIENT_RESOURCES, STATUS_CANCELLED, STATUS_INTERNAL_ERROR}},
    {NULL, NULL, NULL, {0}},
};

static const struct entry listener_entries[] = {
    {"NdkListen",
     NULL,
     listen_it,
     {STATUS_INSUFFICIENT_RESOURCES, STATUS_SHARING_VIOLATION, STATUS_INVALID_ADDRESS,
      STATUS_TOO_MANY_ADDRESSES, STATUS_INVALID_DEVICE_STATE}},
    {"NdkGetListenerLocalAddress",
     "NdkGetLocalAddress",
     get_listener_address,
     {STATUS_BUFFER_TOO_SMALL, STATUS_INVALID_DEVICE_STATE, STATUS_INVALID_PARAMETER}},
    {NULL, NULL, NULL, {0}},
};

/* ---- the tests ------------------------------------------------------------------------------ */

static bool lists(const struct entry *entry, NTSTATUS status)
{
    for (size_t i = 0; entry->statuses[i] != STATUS_SUCCESS; i++)
        if (entry->statuses[i] == status)
            return true;
    return false;
}

/* The list above is the documented one. */
static const struct softndk_function *documented(const struct entry *entry)
{
    const struct softndk_function *function = softndk_function_by_name(entry->function);
    const struct softndk_function_status *row;

    if (!function)
        test_fail("%s is no function", entry->function);
    for (size_t i = 0; (row = softndk_function_status_at(function, i)) != NULL; i++) {
        if (row->status != STATUS_SUCCESS && row->status != STATUS_PENDING &&
            !lists(entry, row->status))
            test_fail("%s: %s is documented and not tested here", entry->function,
                      softndk_status_name(row->status));
    }
    return function;
}

static void one_call(struct bench *b, const struct entry *entry, bool pends, NTSTATUS status)
{
    static uint8_t untouched;
    const char *call = entry->call ? entry->call : entry->function;
    struct wait *w = &b->waits[b->wait_count++];
    NTSTATUS returned;

    assert_true(b->wait_count <= WAITS_MAX);
    wait_init(w);
    b->out = &untouched;
    fail_next(call, status);
    returned = entry->make(b, w);
    b->pended += returned == STATUS_PENDING;
    if (!pends && returned == STATUS_PENDING)
        test_fail("%s pends", entry->function);
    if (pends)
        returned = mode_refusal(w, returned);
    if (returned != status)
        test_fail("%s in mode %s: have %s, need %s", entry->function, mode,
                  softndk_status_name(returned), softndk_status_name(status));
    assert_ptr_equal(b->out, &untouched);
}

static void each_status(const struct entry *entries)
{
    static const char *const modes[] = {"never", "always", "early"};
    static struct bench b;

    bench_open(&b);
    for (const struct entry *entry = entries; entry->function; entry++) {
        const struct softndk_function *function = documented(entry);
        bool pends =
            function->model == SOFTNDK_MODEL_CREATE || function->model == SOFTNDK_MODEL_REQUEST;

        for (size_t i = 0; entry->statuses[i] != STATUS_SUCCESS; i++) {
            if (!softndk_function_status(function, entry->statuses[i]))
                test_fail("%s: %s is not documented", entry->function,
                          softndk_status_name(entry->statuses[i]));
            for (size_t m = 0; m < (pends ? 3 : 1); m++) {
                mode_set(modes[m]);
                one_call(&b, entry, pends, entry->statuses[i]);
            }
        }
    }
    bench_close(&b);
}

static void adapter_calls(void **state)
{
    (void)state;
    each_status(adapter_entries);
}

static void memory_calls(void **state)
{
    (void)state;
    each_status(memory_entries);
}

static void qp_calls(void **state)
{
    (void)state;
    each_status(qp_entries);
}

static void srq_calls(void **state)
{
    (void)state;
    each_status(srq_entries);
}

static void connector_calls(void **state)
{
    (void)state;
    each_status(connector_entries);
}

static void listener_calls(void **state)
{
    (void)state;
    each_status(listener_entries);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adapter_calls),   cmocka_unit_test(memory_calls),
        cmocka_unit_test(qp_calls),        cmocka_unit_test(srq_calls),
        cmocka_unit_test(connector_calls), cmocka_unit_test(listener_calls),
    };

    return cmocka_run_group_tests_name("status_injected", tests, NULL, NULL);
}
