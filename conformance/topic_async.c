// SPDX-License-Identifier: MIT
/*
 * Ways of answering of creates, closes and what has to do with memory (lifetime 3; async.h).
 */
#include "async.h"

/* ---- objects -------------------------------------------------------------------------------- */

static const struct operation *operation_of(struct scene *s)
{
    return s->k->test->row;
}

static BOOLEAN prepare_base(struct scene *s)
{
    return kit_base_open(s->k, operation_of(s)->type, &s->base);
}

static struct kit_call *start_create(struct scene *s)
{
    return kit_any_start(&s->base, operation_of(s)->type, &s->object);
}

static BOOLEAN prepare_object(struct scene *s)
{
    TRY_OR_FALSE(prepare_base(s));
    return kit_answer_is(start_create(s), STATUS_SUCCESS);
}

static struct kit_call *start_close(struct scene *s)
{
    return kit_close_start(s->object);
}

/* ---- limits --------------------------------------------------------------------------------- */

static struct kit_call *start_deep_cq(struct scene *s)
{
    struct kit_cq *cq;

    return kit_cq_start(s->base.adapter, s->base.adapter->info.MaxCqDepth + 1, &cq);
}

static struct kit_call *start_deep_qp(struct scene *s)
{
    struct kit_qp_sizes sizes = kit_qp_modest(s->base.adapter);
    struct kit_qp *qp;

    sizes.receive_depth = s->base.adapter->info.MaxReceiveQueueDepth + 1;
    return kit_qp_start(s->base.pd, s->base.cq, s->base.cq, NULL, &sizes, &qp);
}

static struct kit_call *start_deep_srq(struct scene *s)
{
    struct kit_srq *srq;

    return kit_srq_start(s->base.pd, s->base.adapter->info.MaxSrqDepth + 1, 1, 0, &srq);
}

static struct kit_call *start_resize(struct scene *s)
{
    return kit_resize_start(CONTAINING_RECORD(s->object, struct kit_cq, object), 64);
}

static struct kit_call *start_modify(struct scene *s)
{
    return kit_modify_srq_start(CONTAINING_RECORD(s->object, struct kit_srq, object), 32, 0);
}

static struct kit_call *start_modify_deep(struct scene *s)
{
    return kit_modify_srq_start(CONTAINING_RECORD(s->object, struct kit_srq, object),
                                s->base.adapter->info.MaxSrqDepth + 1, 0);
}

static struct kit_call *start_resize_deep(struct scene *s)
{
    return kit_resize_start(CONTAINING_RECORD(s->object, struct kit_cq, object),
                            s->base.adapter->info.MaxCqDepth + 1);
}

/* A QP with an SRQ. */
static BOOLEAN prepare_srq(struct scene *s)
{
    TRY_OR_FALSE(kit_base_open(s->k, NdkObjectTypeQp, &s->base));
    return kit_answer_is(kit_srq_start(s->base.pd, 16, 1, 0, &s->srq), STATUS_SUCCESS);
}

static struct kit_call *start_qp_with_srq(struct scene *s)
{
    struct kit_qp *qp;

    return kit_qp_start(s->base.pd, s->base.cq, s->base.cq, s->srq, NULL, &qp);
}

static struct kit_call *start_deep_qp_with_srq(struct scene *s)
{
    struct kit_qp_sizes sizes = kit_qp_modest(s->base.adapter);
    struct kit_qp *qp;

    sizes.initiator_depth = s->base.adapter->info.MaxInitiatorQueueDepth + 1;
    return kit_qp_start(s->base.pd, s->base.cq, s->base.cq, s->srq, &sizes, &qp);
}

/* ---- memory --------------------------------------------------------------------------------- */

static BOOLEAN prepare_region_of(struct scene *s, BOOLEAN fast)
{
    TRY_OR_FALSE(kit_base_open(s->k, NdkObjectTypeMr, &s->base));
    TRY_OR_FALSE(kit_memory_bare(s->k, 3 * PAGE_SIZE, &s->memory));
    return kit_mr_new(s->base.pd, fast, &s->memory->mr);
}

static BOOLEAN prepare_region(struct scene *s)
{
    return prepare_region_of(s, FALSE);
}

static BOOLEAN prepare_fast_region(struct scene *s)
{
    return prepare_region_of(s, TRUE);
}

static struct kit_call *start_register(struct scene *s)
{
    return kit_register_start(s->memory->mr, s->memory->mdl, s->memory->size,
                              NDK_MR_FLAG_ALLOW_LOCAL_WRITE);
}

static struct kit_call *start_register_beyond(struct scene *s)
{
    return kit_register_start(s->memory->mr, s->memory->mdl, s->memory->size + 1, 0);
}

static BOOLEAN prepare_registered(struct scene *s)
{
    TRY_OR_FALSE(prepare_region(s));
    return kit_answer_is(start_register(s), STATUS_SUCCESS);
}

static struct kit_call *start_deregister(struct scene *s)
{
    return kit_deregister_start(s->memory->mr);
}

static struct kit_call *start_fast(struct scene *s)
{
    return kit_fast_start(s->memory->mr, 4, TRUE);
}

static struct kit_call *start_fast_beyond(struct scene *s)
{
    return kit_fast_start(s->memory->mr, MAXULONG, FALSE);
}

static struct kit_call *start_lam(struct scene *s)
{
    NDK_ADAPTER *ndk = s->base.adapter->ndk;
    struct kit_call *call = kit_call_new(s->k, &s->base.adapter->object, "NdkBuildLAM");

    if (call)
        kit_call_returned(call,
                          s->base.adapter->table->NdkBuildLAM(
                              ndk, s->memory->mdl, s->memory->size, kit_request_done, call,
                              (NDK_LOGICAL_ADDRESS_MAPPING *)(PVOID)s->lam, &s->lam_size, &s->fbo));
    return call;
}

static BOOLEAN prepare_lam(struct scene *s)
{
    s->lam_size = sizeof s->lam;
    return prepare_region(s);
}

static BOOLEAN follow_lam(struct scene *s, struct kit_call *call)
{
    NDK_LOGICAL_ADDRESS_MAPPING *lam = (NDK_LOGICAL_ADDRESS_MAPPING *)(PVOID)s->lam;

    TRY_OR_FALSE(kit_answer_is(call, STATUS_SUCCESS));
    TRY_OR_FALSE(kit_equal(s->k, KIT_HERE, "AdapterPageCount", lam->AdapterPageCount, 3));
    s->base.adapter->table->NdkReleaseLAM(s->base.adapter->ndk, lam);
    return TRUE;
}

static BOOLEAN prepare_small_lam(struct scene *s)
{
    s->lam_size = FIELD_OFFSET(NDK_LOGICAL_ADDRESS_MAPPING, AdapterPageArray) +
                  2 * sizeof(NDK_LOGICAL_ADDRESS);
    return prepare_region(s);
}

/* A chain of two MDLs that do not follow each other in memory. */
static BOOLEAN prepare_gap(struct scene *s)
{
    struct kit_memory *a, *b;

    TRY_OR_FALSE(kit_base_open(s->k, NdkObjectTypeMr, &s->base));
    TRY_OR_FALSE(kit_memory_bare(s->k, PAGE_SIZE, &a));
    TRY_OR_FALSE(kit_memory_bare(s->k, PAGE_SIZE, &b));
    s->memory = a->data + PAGE_SIZE == b->data ? b : a;
    s->memory->mdl->Next = s->memory == a ? b->mdl : a->mdl;
    s->memory->size = 2 * PAGE_SIZE;
    s->lam_size = sizeof s->lam;
    return kit_mr_new(s->base.pd, FALSE, &s->memory->mr);
}

/* Creates that are closed in their completion, of each type, by both ways through it. */
static VOID close_created(struct kit_call *call, PVOID context)
{
    (void)context;
    if (call->status == STATUS_SUCCESS)
        (void)kit_close_start(call->object);
}

static VOID closed_in_completion(struct kit *k)
{
    NDK_OBJECT_TYPE type = (NDK_OBJECT_TYPE)k->test->arg;
    struct kit_object *object;
    struct kit_base base;

    TRY(kit_base_open(k, type, &base));
    for (enum way way = LATER; way <= BEFORE; way++) {
        TRY(kit_answer_mode(k, async_modes[way]));
        kit_next_then(k, close_created, NULL);
        TRY(kit_answer_is(kit_any_start(&base, type, &object), STATUS_SUCCESS));
        TRY(kit_answer_is(object->close, STATUS_SUCCESS));
        TRY(kit_answer_mode(k, NULL));
    }
}

/* ---- the table ------------------------------------------------------------------------------ */

#define CREATE(id_, function_, type_, needs_)                                                      \
    WAYS_AND_FAILING(id_, "", function_,                                                           \
                     (prepare_base, start_create, NULL, STATUS_SUCCESS, NdkObjectType##type_),     \
                     needs_)
#define CLOSE(id_, function_, type_, needs_)                                                       \
    WAYS(id_, "", function_,                                                                       \
         (prepare_object, start_close, NULL, STATUS_SUCCESS, NdkObjectType##type_), needs_)
#define IN_COMPLETION(id_, function_, type_, needs_)                                               \
    KIT_CASE(id_, function_ ", closed in its completion", "lifetime 3", function_,                 \
             closed_in_completion, .arg = NdkObjectType##type_,                                    \
             .needs = (needs_) | KIT_NEEDS_ANSWER)

static const struct kit_case cases[] = {
    CREATE("ASY-01", "NdkCreateCq", Cq, 0),
    CREATE("ASY-02", "NdkCreatePd", Pd, 0),
    CREATE("ASY-03", "NdkCreateQp", Qp, 0),
    CREATE("ASY-04", "NdkCreateMr", Mr, 0),
    CREATE("ASY-05", "NdkCreateConnector", Connector, 0),
    CREATE("ASY-06", "NdkCreateListener", Listener, 0),
    CREATE("ASY-07", "NdkCreateSrq", Srq, KIT_NEEDS_SRQ),
    CREATE("ASY-08", "NdkCreateMw", Mw, KIT_NEEDS_MW),
    CREATE("ASY-09", "NdkCreateSharedEndpoint", SharedEndpoint, KIT_NEEDS_ENDPOINT),
    CLOSE("ASY-11", "NdkCloseCq", Cq, 0),
    CLOSE("ASY-12", "NdkClosePd", Pd, 0),
    CLOSE("ASY-13", "NdkCloseQp", Qp, 0),
    CLOSE("ASY-14", "NdkCloseMr", Mr, 0),
    CLOSE("ASY-15", "NdkCloseConnector", Connector, 0),
    CLOSE("ASY-16", "NdkCloseListener", Listener, 0),
    CLOSE("ASY-17", "NdkCloseSrq", Srq, KIT_NEEDS_SRQ),
    CLOSE("ASY-18", "NdkCloseMw", Mw, KIT_NEEDS_MW),
    CLOSE("ASY-19", "NdkCloseSharedEndpoint", SharedEndpoint, KIT_NEEDS_ENDPOINT),
    CALL("ASY-20", "NdkRegisterMr", prepare_region, start_register, NULL, 0),
    CALL("ASY-21", "NdkDeregisterMr", prepare_registered, start_deregister, NULL, 0),
    CALL("ASY-22", "NdkInitializeFastRegisterMr", prepare_fast_region, start_fast, NULL, 0),
    CALL("ASY-23", "NdkBuildLAM", prepare_lam, start_lam, follow_lam, 0),
    CALL("ASY-32", "NdkResizeCq", prepare_object, start_resize, NULL, 0,
         .adapter_flags = NDK_ADAPTER_FLAG_CQ_RESIZE_SUPPORTED),
    WAYS_AND_FAILING("ASY-33", "", "NdkModifySrq",
                     (prepare_object, start_modify, NULL, STATUS_SUCCESS, NdkObjectTypeSrq),
                     KIT_NEEDS_SRQ),
    WAYS_AND_FAILING("ASY-34", "", "NdkCreateQpWithSrq",
                     (prepare_srq, start_qp_with_srq, NULL, STATUS_SUCCESS, NdkObjectTypeQp),
                     KIT_NEEDS_SRQ),
    FAILS("ASY-40", "NdkCreateCq", prepare_base, start_deep_cq, STATUS_INVALID_PARAMETER, Cq, 0),
    FAILS("ASY-41", "NdkCreateQp", prepare_base, start_deep_qp, STATUS_INVALID_PARAMETER, Qp, 0),
    FAILS("ASY-42", "NdkCreateSrq", prepare_base, start_deep_srq, STATUS_INVALID_PARAMETER, Srq, 0),
    FAILS("ASY-43", "NdkRegisterMr", prepare_region, start_register_beyond,
          STATUS_INVALID_PARAMETER, Mr, 0),
    FAILS("ASY-44", "NdkInitializeFastRegisterMr", prepare_fast_region, start_fast_beyond,
          STATUS_IMPLEMENTATION_LIMIT, Mr, 0),
    FAILS("ASY-45", "NdkBuildLAM", prepare_small_lam, start_lam, STATUS_BUFFER_TOO_SMALL, Mr, 0),
    FAILS("ASY-57", "NdkBuildLAM", prepare_gap, start_lam, STATUS_INVALID_PARAMETER, Mr, 0),
    FAILS("ASY-58", "NdkRegisterMr", prepare_gap, start_register, STATUS_INVALID_PARAMETER, Mr, 0),
    FAILS("ASY-59", "NdkCreateQpWithSrq", prepare_srq, start_deep_qp_with_srq,
          STATUS_INVALID_PARAMETER, Qp, KIT_NEEDS_SRQ),
    FAILS("ASY-70", "NdkModifySrq", prepare_object, start_modify_deep, STATUS_INVALID_PARAMETER,
          Srq, KIT_NEEDS_SRQ),
    WAYS("ASY-71", ": STATUS_INVALID_PARAMETER", "NdkResizeCq",
         (prepare_object, start_resize_deep, NULL, STATUS_INVALID_PARAMETER, NdkObjectTypeCq), 0,
         .adapter_flags = NDK_ADAPTER_FLAG_CQ_RESIZE_SUPPORTED),
    IN_COMPLETION("ASY-601", "NdkCreateCq", Cq, 0),
    IN_COMPLETION("ASY-602", "NdkCreatePd", Pd, 0),
    IN_COMPLETION("ASY-603", "NdkCreateQp", Qp, 0),
    IN_COMPLETION("ASY-604", "NdkCreateMr", Mr, 0),
    IN_COMPLETION("ASY-605", "NdkCreateConnector", Connector, 0),
    IN_COMPLETION("ASY-606", "NdkCreateListener", Listener, 0),
    IN_COMPLETION("ASY-607", "NdkCreateSrq", Srq, KIT_NEEDS_SRQ),
    IN_COMPLETION("ASY-608", "NdkCreateMw", Mw, KIT_NEEDS_MW),
    IN_COMPLETION("ASY-609", "NdkCreateSharedEndpoint", SharedEndpoint, KIT_NEEDS_ENDPOINT),
};

KIT_TOPIC(async, "each way of answering: objects and memory");
