// SPDX-License-Identifier: MIT
/*
 * The sweep over every call that makes or changes one object: opens, creates, registrations,
 * mappings, listening, posts of local operations. In modes never and always, since a pending answer
 * has allocations of its own.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "sweep.h"

#define PAGE 4096u
#define SIZE (64u * 1024)
#define CTX  ((void *)(uintptr_t)7)

/* ---- setups --------------------------------------------------------------------------------- */

static void nothing(struct world *w)
{
    (void)w;
}

static void setup_end(struct world *w)
{
    end_open(&w->end, NULL);
}

static void teardown_end(struct world *w)
{
    end_close(&w->end);
}

static void setup_bed(struct world *w)
{
    bed_open(&w->bed, NULL, SIZE, ALL_RIGHTS);
}

static void teardown_bed(struct world *w)
{
    bed_close(&w->bed);
}

/* The result of a create, kept in w->object. */
static NTSTATUS created(struct world *w, struct wait *wait, NTSTATUS returned, void *inline_object)
{
    NTSTATUS status = wait_end(wait, returned);

    if (status == STATUS_SUCCESS)
        w->object = returned == STATUS_PENDING ? wait->object : inline_object;
    return status;
}

static void undo_object(struct world *w)
{
    NDK_OBJECT_HEADER *object = w->object;

    w->object = NULL;
    switch (object->ObjectType) {
    case NdkObjectTypeCq:
        CLOSE((NDK_CQ *)(void *)object, NdkCloseCq);
        break;
    case NdkObjectTypePd:
        CLOSE((NDK_PD *)(void *)object, NdkClosePd);
        break;
    case NdkObjectTypeMr:
        CLOSE((NDK_MR *)(void *)object, NdkCloseMr);
        break;
    case NdkObjectTypeQp:
        CLOSE((NDK_QP *)(void *)object, NdkCloseQp);
        break;
    case NdkObjectTypeConnector:
        CLOSE((NDK_CONNECTOR *)(void *)object, NdkCloseConnector);
        break;
    case NdkObjectTypeSrq:
        CLOSE((NDK_SRQ *)(void *)object, NdkCloseSrq);
        break;
    case NdkObjectTypeSharedEndpoint:
        CLOSE((NDK_SHARED_ENDPOINT *)(void *)object, NdkCloseSharedEndpoint);
        break;
    case NdkObjectTypeListener:
        CLOSE((NDK_LISTENER *)(void *)object, NdkCloseListener);
        break;
    default:
        test_fail("no close for object type %d", object->ObjectType);
    }
}

/* ---- acts: the adapter and its children ----------------------------------------------------- */

static NTSTATUS open_act(struct world *w)
{
    NDK_VERSION version = {2, 1};

    return softndk_open_adapter("lo", NULL, version, &w->end.adapter);
}

static void open_undo(struct world *w)
{
    softndk_close_adapter(w->end.adapter);
}

static VOID notified(PVOID context, NTSTATUS status)
{
    (void)context;
    (void)status;
}

static NTSTATUS cq_act(struct world *w)
{
    NDK_ADAPTER *a = w->end.adapter;
    struct wait wait;
    NDK_CQ *cq = NULL;
    NTSTATUS returned;

    wait_init(&wait);
    returned = a->Dispatch->NdkCreateCq(a, 100, notified, NULL, NULL, wait_create, &wait, &cq);
    return created(w, &wait, returned, cq);
}

static NTSTATUS pd_act(struct world *w)
{
    struct wait wait;
    NDK_PD *pd = NULL;
    NTSTATUS returned;

    wait_init(&wait);
    returned = w->end.adapter->Dispatch->NdkCreatePd(w->end.adapter, wait_create, &wait, &pd);
    return created(w, &wait, returned, pd);
}

static NTSTATUS connector_act(struct world *w)
{
    struct wait wait;
    NDK_CONNECTOR *k = NULL;
    NTSTATUS returned;

    wait_init(&wait);
    returned = w->end.adapter->Dispatch->NdkCreateConnector(w->end.adapter, wait_create, &wait, &k);
    return created(w, &wait, returned, k);
}

static VOID connect_event(PVOID context, NDK_CONNECTOR *connector)
{
    (void)context;
    (void)connector;
}

static NTSTATUS listener_act(struct world *w)
{
    struct wait wait;
    NDK_LISTENER *listener = NULL;
    NTSTATUS returned;

    wait_init(&wait);
    returned = w->end.adapter->Dispatch->NdkCreateListener(w->end.adapter, connect_event, NULL,
                                                           wait_create, &wait, &listener);
    return created(w, &wait, returned, listener);
}

static void listen_setup(struct world *w)
{
    setup_end(w);
    if (listener_act(w) != STATUS_SUCCESS)
        test_fail("NdkCreateListener");
}

static NTSTATUS listen_act(struct world *w)
{
    NDK_LISTENER *listener = (NDK_LISTENER *)(void *)w->object;
    SOCKADDR_INET address;
    ULONG length;
    struct wait wait;

    softndk_address_from_text("127.0.0.1", &address, &length);
    wait_init(&wait);
    return wait_end(&wait, listener->Dispatch->NdkListen(listener, (PSOCKADDR)&address, length,
                                                         wait_request, &wait));
}

static NTSTATUS endpoint_act(struct world *w)
{
    NDK_ADAPTER *a = w->end.adapter;
    NDK_SHARED_ENDPOINT *endpoint = NULL;
    SOCKADDR_INET address;
    ULONG length;
    struct wait wait;
    NTSTATUS returned;

    softndk_address_from_text("127.0.0.1", &address, &length);
    wait_init(&wait);
    returned = a->Dispatch->NdkCreateSharedEndpoint(a, (PSOCKADDR)&address, length, wait_create,
                                                    &wait, &endpoint);
    return created(w, &wait, returned, endpoint);
}

static NTSTATUS qp_act(struct world *w)
{
    struct end *e = &w->end;
    struct wait wait;
    NDK_QP *qp = NULL;
    NTSTATUS returned;

    wait_init(&wait);
    returned = e->pd->Dispatch->NdkCreateQp(e->pd, e->receive.cq, e->initiator.cq, NULL, 16, 16, 4,
                                            4, 64, wait_create, &wait, &qp);
    return created(w, &wait, returned, qp);
}

static NTSTATUS srq_act(struct world *w)
{
    struct wait wait;
    NDK_SRQ *srq = NULL;
    NTSTATUS returned;

    wait_init(&wait);
    returned = w->end.pd->Dispatch->NdkCreateSrq(w->end.pd, 64, 4, 0, NULL, NULL, NULL, wait_create,
                                                 &wait, &srq);
    return created(w, &wait, returned, srq);
}

static void srq_setup(struct world *w)
{
    setup_end(w);
    if (srq_act(w) != STATUS_SUCCESS)
        test_fail("NdkCreateSrq");
    w->srq = (NDK_SRQ *)(void *)w->object;
}

static void srq_teardown(struct world *w)
{
    CLOSE(w->srq, NdkCloseSrq);
    teardown_end(w);
}

static NTSTATUS srq_receive_act(struct world *w)
{
    NTSTATUS status = STATUS_SUCCESS;

    /* More than one chunk of the queue. */
    for (w->rounds = 0; w->rounds < 40 && status == STATUS_SUCCESS; w->rounds++)
        status = w->srq->Dispatch->NdkSrqReceive(w->srq, CTX, NULL, 0);
    return status;
}

static NTSTATUS srq_modify_act(struct world *w)
{
    struct wait wait;

    wait_init(&wait);
    return wait_end(&wait, w->srq->Dispatch->NdkModifySrq(w->srq, 128, 2, wait_request, &wait));
}

static NTSTATUS srq_qp_act(struct world *w)
{
    struct end *e = &w->end;
    struct wait wait;
    NDK_QP *qp = NULL;
    NTSTATUS returned;

    wait_init(&wait);
    returned = e->pd->Dispatch->NdkCreateQpWithSrq(e->pd, e->receive.cq, e->initiator.cq, w->srq,
                                                   NULL, 16, 4, 64, wait_create, &wait, &qp);
    return created(w, &wait, returned, qp);
}

/* ---- acts: memory --------------------------------------------------------------------------- */

static NTSTATUS mr_create(struct world *w, BOOLEAN fast)
{
    struct wait wait;
    NDK_MR *mr = NULL;
    NTSTATUS returned;

    wait_init(&wait);
    returned = w->end.pd->Dispatch->NdkCreateMr(w->end.pd, fast, wait_create, &wait, &mr);
    return created(w, &wait, returned, mr);
}

static NTSTATUS mr_act(struct world *w)
{
    return mr_create(w, FALSE);
}

static NTSTATUS frmr_act(struct world *w)
{
    return mr_create(w, TRUE);
}

/* An end, an MR of either kind, and an MDL. */
static void mr_setup(struct world *w, BOOLEAN fast)
{
    setup_end(w);
    if (mr_create(w, fast) != STATUS_SUCCESS)
        test_fail("NdkCreateMr");
    w->memory.data = aligned_alloc(PAGE, SIZE);
    w->memory.mdl = IoAllocateMdl(w->memory.data, SIZE, FALSE, FALSE, NULL);
    MmBuildMdlForNonPagedPool(w->memory.mdl);
}

static void register_setup(struct world *w)
{
    mr_setup(w, FALSE);
}

static void initialize_setup(struct world *w)
{
    mr_setup(w, TRUE);
}

static void mr_teardown(struct world *w)
{
    undo_object(w);
    IoFreeMdl(w->memory.mdl);
    free(w->memory.data);
    end_close(&w->end);
}

static NTSTATUS register_act(struct world *w)
{
    NDK_MR *mr = (NDK_MR *)(void *)w->object;
    struct wait wait;

    wait_init(&wait);
    return wait_end(&wait, mr->Dispatch->NdkRegisterMr(mr, w->memory.mdl, SIZE, ALL_RIGHTS,
                                                       wait_request, &wait));
}

static NTSTATUS deregister_act(struct world *w)
{
    NDK_MR *mr = (NDK_MR *)(void *)w->object;
    struct wait wait;

    wait_init(&wait);
    return wait_end(&wait, mr->Dispatch->NdkDeregisterMr(mr, wait_request, &wait));
}

static void registered_setup(struct world *w)
{
    register_setup(w);
    if (register_act(w) != STATUS_SUCCESS)
        test_fail("NdkRegisterMr");
}

static NTSTATUS initialize_act(struct world *w)
{
    NDK_MR *mr = (NDK_MR *)(void *)w->object;
    struct wait wait;

    wait_init(&wait);
    return wait_end(&wait,
                    mr->Dispatch->NdkInitializeFastRegisterMr(mr, 16, TRUE, wait_request, &wait));
}

static void lam_setup(struct world *w)
{
    register_setup(w);
    w->lam.adapter = w->end.adapter;
    w->lam.map = malloc(sizeof *w->lam.map + (SIZE / PAGE + 1) * sizeof(NDK_LOGICAL_ADDRESS));
}

static void lam_teardown(struct world *w)
{
    free(w->lam.map);
    mr_teardown(w);
}

static NTSTATUS lam_act(struct world *w)
{
    NDK_ADAPTER *a = w->end.adapter;
    ULONG room = (ULONG)(sizeof *w->lam.map + (SIZE / PAGE + 1) * sizeof(NDK_LOGICAL_ADDRESS));
    struct wait wait;

    wait_init(&wait);
    return wait_end(&wait, a->Dispatch->NdkBuildLAM(a, w->memory.mdl, SIZE, wait_request, &wait,
                                                    w->lam.map, &room, &w->lam.fbo));
}

static void lam_undo(struct world *w)
{
    w->end.adapter->Dispatch->NdkReleaseLAM(w->end.adapter, w->lam.map);
}

/* ---- acts: posts that need no peer's answer ------------------------------------------------- */

/* What was posted completes; a refused post leaves nothing. */
static NTSTATUS posted(struct queue *queue, NTSTATUS status)
{
    if (status == STATUS_SUCCESS)
        status = queue_next(queue).Status;
    return status;
}

static NTSTATUS receive_act(struct world *w)
{
    struct end *e = &w->end;
    NDK_SGE sge = {0};
    NTSTATUS status = e->qp->Dispatch->NdkReceive(e->qp, CTX, &sge, 0);

    if (status != STATUS_SUCCESS)
        return status;
    e->qp->Dispatch->NdkFlush(e->qp);
    status = queue_next(&e->receive).Status;
    return status == STATUS_CANCELLED ? STATUS_SUCCESS : status;
}

static void region_setup(struct world *w)
{
    setup_bed(w);
    region_open(&w->bed.pair.client, 0, 8 * PAGE, 0, TRUE, &w->region);
}

static void region_teardown(struct world *w)
{
    region_close(&w->region);
    teardown_bed(w);
}

static NTSTATUS fast_register_act(struct world *w)
{
    return posted(&w->bed.pair.client.initiator,
                  region_post(&w->region, 0x10000, REMOTE_BOTH, CTX));
}

static void region_undo(struct world *w)
{
    region_invalidate(&w->region);
}

static void invalidate_setup(struct world *w)
{
    region_setup(w);
    region_register(&w->region, 0x10000, REMOTE_BOTH);
}

static NTSTATUS invalidate_act(struct world *w)
{
    NDK_QP *qp = w->bed.pair.client.qp;

    return posted(&w->bed.pair.client.initiator,
                  qp->Dispatch->NdkInvalidate(qp, CTX, &w->region.mr->Header, 0));
}

/* ---- the sweeps ----------------------------------------------------------------------------- */

static const struct scenario scenarios[] = {
    {"open of an adapter", nothing, open_act, open_undo, nothing, false, 0, {0}},
    {"NdkCreateCq", setup_end, cq_act, undo_object, teardown_end, false, 0, {0}},
    {"NdkCreatePd", setup_end, pd_act, undo_object, teardown_end, false, 0, {0}},
    {"NdkCreateConnector", setup_end, connector_act, undo_object, teardown_end, false, 0, {0}},
    {"NdkCreateListener", setup_end, listener_act, undo_object, teardown_end, false, 0, {0}},
    {"NdkListen", listen_setup, listen_act, undo_object, teardown_end, false, 0, {0}},
    {"NdkCreateSharedEndpoint", setup_end, endpoint_act, undo_object, teardown_end, false, 0, {0}},
    {"NdkCreateQp", setup_end, qp_act, undo_object, teardown_end, false, 0, {0}},
    {"NdkCreateSrq", setup_end, srq_act, undo_object, teardown_end, false, 0, {0}},
    {"NdkSrqReceive", srq_setup, srq_receive_act, NULL, srq_teardown, true, 0, {0}},
    {"NdkModifySrq", srq_setup, srq_modify_act, NULL, srq_teardown, false, 0, {0}},
    {"NdkCreateQpWithSrq", srq_setup, srq_qp_act, undo_object, srq_teardown, false, 0, {0}},
    {"NdkCreateMr", setup_end, mr_act, undo_object, teardown_end, false, 0, {0}},
    {"NdkCreateMr, fast", setup_end, frmr_act, undo_object, teardown_end, false, 0, {0}},
    {"NdkRegisterMr", register_setup, register_act, NULL, mr_teardown, false, 0, {0}},
    {"NdkDeregisterMr", registered_setup, deregister_act, NULL, mr_teardown, false, 0, {0}},
    {"NdkInitializeFastRegisterMr",
     initialize_setup,
     initialize_act,
     NULL,
     mr_teardown,
     false,
     0,
     {0}},
    {"NdkBuildLAM", lam_setup, lam_act, lam_undo, lam_teardown, false, 0, {0}},
    {"NdkReceive, NdkFlush", setup_end, receive_act, NULL, teardown_end, false, 0, {0}},
    {"NdkFastRegister",
     region_setup,
     fast_register_act,
     region_undo,
     region_teardown,
     false,
     0,
     {0}},
    {"NdkInvalidate", invalidate_setup, invalidate_act, NULL, region_teardown, false, 0, {0}},
};

static void every_call(void **state)
{
    (void)state;
    for (unsigned i = 0; i < sizeof scenarios / sizeof scenarios[0]; i++)
        sweep(&scenarios[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {BOTH_MODES(every_call)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
