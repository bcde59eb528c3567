// SPDX-License-Identifier: MIT
/*
 * The floor under all tests of statuses: every call on adapters, queues and memory fails with every
 * status that it is documented to give (injected.h). Where a status has a cause that can be had,
 * other tests have it; here it is what a consumer would see. Connections have a test of their own,
 * status_injected_connect_test.c.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "injected.h"

/* ---- every call once ------------------------------------------------------------------------ */

static NTSTATUS query_extension(struct injected *b, struct wait *w)
{
    GUID id = {0};
    NDK_VERSION version = {1, 0};
    NDK_EXTENSION_INTERFACE interface;

    (void)w;
    memset(&interface, 0, sizeof interface);
    return b->end.adapter->Dispatch->NdkQueryExtension(&b->end.adapter->Header, &id, version,
                                                       &interface);
}

static NTSTATUS query_adapter_info(struct injected *b, struct wait *w)
{
    NDK_ADAPTER_INFO info;
    ULONG size = sizeof info;

    (void)w;
    return b->end.adapter->Dispatch->NdkQueryAdapterInfo(b->end.adapter, &info, &size);
}

static NTSTATUS create_cq(struct injected *b, struct wait *w)
{
    return b->end.adapter->Dispatch->NdkCreateCq(b->end.adapter, 4, injected_notification, NULL,
                                                 NULL, wait_create, w, (NDK_CQ **)&b->out);
}

static NTSTATUS resize_cq(struct injected *b, struct wait *w)
{
    return b->end.receive.cq->Dispatch->NdkResizeCq(b->end.receive.cq, 8, wait_request, w);
}

static NTSTATUS control_moderation(struct injected *b, struct wait *w)
{
    (void)w;
    return b->end.receive.cq->Dispatch->NdkControlCqInterruptModeration(b->end.receive.cq, 0, 0);
}

static NTSTATUS create_pd(struct injected *b, struct wait *w)
{
    return b->end.adapter->Dispatch->NdkCreatePd(b->end.adapter, wait_create, w,
                                                 (NDK_PD **)&b->out);
}

static NTSTATUS create_connector(struct injected *b, struct wait *w)
{
    return b->end.adapter->Dispatch->NdkCreateConnector(b->end.adapter, wait_create, w,
                                                        (NDK_CONNECTOR **)&b->out);
}

static NTSTATUS create_listener(struct injected *b, struct wait *w)
{
    return b->end.adapter->Dispatch->NdkCreateListener(b->end.adapter, injected_connect_event, NULL,
                                                       wait_create, w, (NDK_LISTENER **)&b->out);
}

static NTSTATUS create_shared_endpoint(struct injected *b, struct wait *w)
{
    return b->end.adapter->Dispatch->NdkCreateSharedEndpoint(b->end.adapter, (PSOCKADDR)&b->local,
                                                             b->address_length, wait_create, w,
                                                             (NDK_SHARED_ENDPOINT **)&b->out);
}

static NTSTATUS get_shared_address(struct injected *b, struct wait *w)
{
    SOCKADDR_INET address;
    ULONG length = sizeof address;

    (void)w;
    return b->shared->Dispatch->NdkGetLocalAddress(b->shared, (PSOCKADDR)&address, &length);
}

static NTSTATUS build_lam(struct injected *b, struct wait *w)
{
    _Alignas(NDK_LOGICAL_ADDRESS_MAPPING) uint8_t room[256];
    ULONG size = sizeof room, fbo;

    return b->end.adapter->Dispatch->NdkBuildLAM(
        b->end.adapter, b->memory.mdl, b->memory.size, wait_request, w,
        (NDK_LOGICAL_ADDRESS_MAPPING *)(void *)room, &size, &fbo);
}

static NTSTATUS create_mr(struct injected *b, struct wait *w)
{
    return b->end.pd->Dispatch->NdkCreateMr(b->end.pd, FALSE, wait_create, w, (NDK_MR **)&b->out);
}

static NTSTATUS create_qp(struct injected *b, struct wait *w)
{
    return b->end.pd->Dispatch->NdkCreateQp(b->end.pd, b->end.receive.cq, b->end.initiator.cq, NULL,
                                            4, 4, 1, 1, 0, wait_create, w, (NDK_QP **)&b->out);
}

static NTSTATUS create_mw(struct injected *b, struct wait *w)
{
    return b->end.pd->Dispatch->NdkCreateMw(b->end.pd, wait_create, w, (NDK_MW **)&b->out);
}

static NTSTATUS create_srq(struct injected *b, struct wait *w)
{
    return b->end.pd->Dispatch->NdkCreateSrq(b->end.pd, 4, 1, 0, NULL, NULL, NULL, wait_create, w,
                                             (NDK_SRQ **)&b->out);
}

static NTSTATUS create_qp_with_srq(struct injected *b, struct wait *w)
{
    return b->end.pd->Dispatch->NdkCreateQpWithSrq(b->end.pd, b->end.receive.cq,
                                                   b->end.initiator.cq, b->srq, NULL, 4, 1, 0,
                                                   wait_create, w, (NDK_QP **)&b->out);
}

static NTSTATUS modify_srq(struct injected *b, struct wait *w)
{
    return b->srq->Dispatch->NdkModifySrq(b->srq, 5, 1, wait_request, w);
}

static NTSTATUS srq_receive(struct injected *b, struct wait *w)
{
    NDK_SGE sge = memory_sge(&b->memory, 0, 8);

    (void)w;
    return b->srq->Dispatch->NdkSrqReceive(b->srq, NULL, &sge, 1);
}

static NTSTATUS register_mr(struct injected *b, struct wait *w)
{
    return b->memory.mr->Dispatch->NdkRegisterMr(b->memory.mr, b->memory.mdl, b->memory.size, 0,
                                                 wait_request, w);
}

static NTSTATUS deregister_mr(struct injected *b, struct wait *w)
{
    return b->memory.mr->Dispatch->NdkDeregisterMr(b->memory.mr, wait_request, w);
}

static NTSTATUS initialize_fast(struct injected *b, struct wait *w)
{
    return b->fast->Dispatch->NdkInitializeFastRegisterMr(b->fast, 4, TRUE, wait_request, w);
}

static NTSTATUS send_it(struct injected *b, struct wait *w)
{
    NDK_SGE sge = memory_sge(&b->memory, 0, 8);

    (void)w;
    return b->end.qp->Dispatch->NdkSend(b->end.qp, NULL, &sge, 1, 0);
}

static NTSTATUS receive_it(struct injected *b, struct wait *w)
{
    NDK_SGE sge = memory_sge(&b->memory, 0, 8);

    (void)w;
    return b->end.qp->Dispatch->NdkReceive(b->end.qp, NULL, &sge, 1);
}

static NTSTATUS bind_it(struct injected *b, struct wait *w)
{
    (void)w;
    return b->end.qp->Dispatch->NdkBind(b->end.qp, NULL, b->memory.mr, b->window, b->memory.data, 8,
                                        NDK_OP_FLAG_ALLOW_REMOTE_READ);
}

static NTSTATUS fast_register(struct injected *b, struct wait *w)
{
    NDK_LOGICAL_ADDRESS page = {.QuadPart = (LONGLONG)(uintptr_t)b->memory.data};

    (void)w;
    return b->end.qp->Dispatch->NdkFastRegister(b->end.qp, NULL, b->fast, 1, &page, 0, 4096,
                                                b->memory.data, 0);
}

static NTSTATUS invalidate(struct injected *b, struct wait *w)
{
    (void)w;
    return b->end.qp->Dispatch->NdkInvalidate(b->end.qp, NULL, &b->fast->Header, 0);
}

static NTSTATUS read_it(struct injected *b, struct wait *w)
{
    NDK_SGE sge = memory_sge(&b->memory, 0, 8);

    (void)w;
    return b->end.qp->Dispatch->NdkRead(b->end.qp, NULL, &sge, 1, 0, 0, 0);
}

static NTSTATUS write_it(struct injected *b, struct wait *w)
{
    NDK_SGE sge = memory_sge(&b->memory, 0, 8);

    (void)w;
    return b->end.qp->Dispatch->NdkWrite(b->end.qp, NULL, &sge, 1, 0, 0, 0);
}

static NTSTATUS send_and_invalidate(struct injected *b, struct wait *w)
{
    NDK_SGE sge = memory_sge(&b->memory, 0, 8);

    (void)w;
    return b->end.qp->Dispatch->NdkSendAndInvalidate(b->end.qp, NULL, &sge, 1, 0, 1);
}

/* ---- what each must give --------------------------------------------------------------------- */

#define TRANSFER                                                                                   \
    STATUS_NO_MORE_ENTRIES, STATUS_DATA_OVERRUN, STATUS_BUFFER_OVERFLOW, STATUS_INVALID_PARAMETER, \
        STATUS_INSUFFICIENT_RESOURCES, STATUS_ACCESS_VIOLATION

static const struct injected_entry adapter_entries[] = {
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

static const struct injected_entry memory_entries[] = {
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

static const struct injected_entry qp_entries[] = {
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

static const struct injected_entry srq_entries[] = {
    {"NdkCreateSrq", NULL, create_srq, {STATUS_INVALID_PARAMETER, STATUS_INSUFFICIENT_RESOURCES}},
    {"NdkCreateQpWithSrq",
     NULL,
     create_qp_with_srq,
     {STATUS_INVALID_PARAMETER, STATUS_INSUFFICIENT_RESOURCES, STATUS_INVALID_DEVICE_STATE}},
    {"NdkModifySrq", NULL, modify_srq, {STATUS_INVALID_PARAMETER}},
    {"NdkSrqReceive", NULL, srq_receive, {TRANSFER}},
    {NULL, NULL, NULL, {0}},
};

/* ---- the tests ------------------------------------------------------------------------------ */

static void adapter_calls(void **state)
{
    (void)state;
    injected_run(adapter_entries);
}

static void memory_calls(void **state)
{
    (void)state;
    injected_run(memory_entries);
}

static void qp_calls(void **state)
{
    (void)state;
    injected_run(qp_entries);
}

static void srq_calls(void **state)
{
    (void)state;
    injected_run(srq_entries);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(adapter_calls),
        cmocka_unit_test(memory_calls),
        cmocka_unit_test(qp_calls),
        cmocka_unit_test(srq_calls),
    };

    return cmocka_run_group_tests_name("status_injected", tests, NULL, NULL);
}
