// SPDX-License-Identifier: MIT
/*
 * Objects of all types: creating them, their limits, closing them one by one (NDKPI 5, 6, 8;
 * lifetime 2). How closes depend on each other is in topic_closing.c.
 */
#include "kit.h"

/* ---- every type ----------------------------------------------------------------------------- */

static VOID created_and_closed(struct kit *k)
{
    NDK_OBJECT_TYPE type = (NDK_OBJECT_TYPE)k->test->arg;
    struct kit_object *object;
    struct kit_base base;

    TRY(kit_base_open(k, type, &base));
    TRY(kit_answer_is(kit_any_start(&base, type, &object), STATUS_SUCCESS));
    TRY(kit_close(object));
}

static BOOLEAN extension_unknown(struct kit *k, NDK_OBJECT_HEADER *header,
                                 NDK_FN_QUERY_EXTENSION_INTERFACE query)
{
    GUID unknown = {0x6b1f5a2e, 0x77c4, 0x4d0b, {0x9d, 0x31, 0x5e, 0x0c, 0x8a, 0x42, 0xf1, 0x06}};
    NDK_EXTENSION_INTERFACE extension = {NULL};
    NDK_VERSION version = {1, 0};

    return kit_status(k, KIT_HERE, "NdkQueryExtension of an unknown GUID",
                      query(header, &unknown, version, &extension), STATUS_NOT_SUPPORTED);
}

/* Slot 1 of every table but the adapter's. */
static VOID extensions(struct kit *k)
{
    NDK_OBJECT_TYPE type = (NDK_OBJECT_TYPE)k->test->arg;
    struct kit_object *object;
    struct kit_base base;

    TRY(kit_base_open(k, type, &base));
    TRY(kit_answer_is(kit_any_start(&base, type, &object), STATUS_SUCCESS));
    TRY(extension_unknown(
        k, object->header,
        CONTAINING_RECORD(object, struct kit_cq, object)->table->NdkQueryExtension));
}

static VOID extensions_of_the_adapter(struct kit *k)
{
    struct kit_adapter *adapter;

    TRY(kit_adapter_open(k, &adapter));
    TRY(extension_unknown(k, &adapter->ndk->Header, adapter->table->NdkQueryExtension));
}

static VOID no_resources(struct kit *k)
{
    NDK_OBJECT_TYPE type = (NDK_OBJECT_TYPE)k->test->arg;
    struct kit_object *object;
    struct kit_base base;

    TRY(kit_base_open(k, type, &base));
    TRY(kit_make_fail(k, k->test->function, STATUS_INSUFFICIENT_RESOURCES));
    TRY(kit_answer_is(kit_any_start(&base, type, &object), STATUS_INSUFFICIENT_RESOURCES));
    TRY(kit_answer_is(kit_any_start(&base, type, &object), STATUS_SUCCESS));
}

#define MANY 32

static VOID many(struct kit *k)
{
    NDK_OBJECT_TYPE type = (NDK_OBJECT_TYPE)k->test->arg;
    struct kit_object *objects[MANY];
    struct kit_call *calls[MANY];
    struct kit_base base;

    TRY(kit_base_open(k, type, &base));
    for (ULONG i = 0; i < MANY; i++)
        calls[i] = kit_any_start(&base, type, &objects[i]);
    for (ULONG i = 0; i < MANY; i++)
        TRY(kit_answer_is(calls[i], STATUS_SUCCESS));
    for (ULONG i = 0; i < MANY; i++) /* every other one first */
        calls[i] = kit_close_start(objects[(i * 2) % MANY + (i * 2) / MANY]);
    for (ULONG i = 0; i < MANY; i++)
        TRY(kit_answer_is(calls[i], STATUS_SUCCESS));
}

/* ---- limits --------------------------------------------------------------------------------- */

static const NTSTATUS at_limit[] = {STATUS_SUCCESS, STATUS_INSUFFICIENT_RESOURCES, STATUS_PENDING};

static VOID cq_limits(struct kit *k)
{
    struct kit_adapter *adapter;
    struct kit_cq *cq;

    TRY(kit_adapter_open(k, &adapter));
    TRY(kit_status_among(k, KIT_HERE, "NdkCreateCq of MaxCqDepth",
                         kit_answer(kit_cq_start(adapter, adapter->info.MaxCqDepth, &cq)),
                         at_limit));
    if (adapter->info.MaxCqDepth == MAXULONG)
        return;
    TRY(kit_answer_is(kit_cq_start(adapter, adapter->info.MaxCqDepth + 1, &cq),
                      STATUS_INVALID_PARAMETER));
}

enum qp_limit { RECEIVE_DEPTH, INITIATOR_DEPTH, RECEIVE_SGE, INITIATOR_SGE, INLINE_SIZE };

static const char *const qp_limit_names[] = {"ReceiveQueueDepth", "InitiatorQueueDepth",
                                             "MaxReceiveRequestSge", "MaxInitiatorRequestSge",
                                             "InlineDataSize"};

static ULONG *qp_size(struct kit_qp_sizes *sizes, enum qp_limit which)
{
    switch (which) {
    case RECEIVE_DEPTH:
        return &sizes->receive_depth;
    case INITIATOR_DEPTH:
        return &sizes->initiator_depth;
    case RECEIVE_SGE:
        return &sizes->receive_sge;
    case INITIATOR_SGE:
        return &sizes->initiator_sge;
    default:
        return &sizes->inline_size;
    }
}

static ULONG qp_limit(const NDK_ADAPTER_INFO *info, enum qp_limit which)
{
    const ULONG limits[] = {info->MaxReceiveQueueDepth, info->MaxInitiatorQueueDepth,
                            info->MaxReceiveRequestSge, info->MaxInitiatorRequestSge,
                            info->MaxInlineDataSize};

    return limits[which];
}

/* One of the sizes at its limit, then above it, with an SRQ or without. */
static VOID qp_limits_of(struct kit *k, enum qp_limit which, struct kit_base *base,
                         struct kit_srq *srq)
{
    struct kit_qp_sizes sizes = kit_qp_modest(base->adapter);
    ULONG limit = qp_limit(&base->adapter->info, which);
    struct kit_qp *qp;

    *qp_size(&sizes, which) = limit;
    TRY(kit_status_among(k, KIT_HERE, qp_limit_names[which],
                         kit_answer(kit_qp_start(base->pd, base->cq, base->cq, srq, &sizes, &qp)),
                         at_limit));
    if (limit == MAXULONG)
        return;
    *qp_size(&sizes, which) = limit + 1;
    CHECK_STATUS(k, qp_limit_names[which],
                 kit_answer(kit_qp_start(base->pd, base->cq, base->cq, srq, &sizes, &qp)),
                 STATUS_INVALID_PARAMETER);
}

static VOID qp_limits(struct kit *k)
{
    struct kit_base base;

    TRY(kit_base_open(k, NdkObjectTypeQp, &base));
    qp_limits_of(k, (enum qp_limit)k->test->arg, &base, NULL);
}

static VOID qp_limits_with_srq(struct kit *k)
{
    struct kit_srq *srq;
    struct kit_base base;

    TRY(kit_base_open(k, NdkObjectTypeQp, &base));
    TRY(kit_answer_is(kit_srq_start(base.pd, 16, 1, 0, &srq), STATUS_SUCCESS));
    qp_limits_of(k, (enum qp_limit)k->test->arg, &base, srq);
}

static VOID srq_limits(struct kit *k)
{
    const NDK_ADAPTER_INFO *info;
    struct kit_srq *srq;
    struct kit_base base;

    TRY(kit_base_open(k, NdkObjectTypeSrq, &base));
    info = &base.adapter->info;
    TRY(kit_status_among(
        k, KIT_HERE, "NdkCreateSrq of MaxSrqDepth and MaxReceiveRequestSge",
        kit_answer(kit_srq_start(base.pd, info->MaxSrqDepth, info->MaxReceiveRequestSge, 0, &srq)),
        at_limit));
    CHECK_STATUS(k, "NdkCreateSrq above MaxSrqDepth",
                 kit_answer(kit_srq_start(base.pd, info->MaxSrqDepth + 1, 1, 0, &srq)),
                 STATUS_INVALID_PARAMETER);
    CHECK_STATUS(k, "NdkCreateSrq above MaxReceiveRequestSge",
                 kit_answer(kit_srq_start(base.pd, 1, info->MaxReceiveRequestSge + 1, 0, &srq)),
                 STATUS_INVALID_PARAMETER);
}

/* ---- details -------------------------------------------------------------------------------- */

static VOID endpoint_address(struct kit *k)
{
    struct kit_adapter *adapter;
    struct kit_endpoint *endpoint;
    SOCKADDR_INET address;
    ULONG length = 0;

    TRY(kit_adapter_open(k, &adapter));
    TRY(kit_answer_is(kit_endpoint_start(adapter, &k->config->local, &endpoint), STATUS_SUCCESS));
    CHECK_STATUS(k, "NdkGetLocalAddress without room",
                 endpoint->table->NdkGetLocalAddress(endpoint->ndk, (PSOCKADDR)&address, &length),
                 STATUS_BUFFER_TOO_SMALL);
    CHECK_EQUAL(k, "size needed", length, kit_address_length(&k->config->local));
    CHECK_STATUS(k, "NdkGetLocalAddress",
                 endpoint->table->NdkGetLocalAddress(endpoint->ndk, (PSOCKADDR)&address, &length),
                 STATUS_SUCCESS);
    CHECK(k, kit_port(&address) >= 49152, "the port chosen for 0: have %u, need 49152 to 65535",
          kit_port(&address));
}

/* A mask that names no processor that exists is a preference like any other. */
static VOID affinity(struct kit *k)
{
    struct kit_adapter *adapter;
    GROUP_AFFINITY preferred;
    struct kit_cq *cq;

    RtlZeroMemory(&preferred, sizeof preferred);
    preferred.Mask = k->test->arg == 0 ? 1 : (KAFFINITY)1 << (8 * sizeof(KAFFINITY) - 1);
    TRY(kit_adapter_open(k, &adapter));
    TRY(kit_answer_is(kit_cq_start_affine(adapter, 4, &preferred, &cq), STATUS_SUCCESS));
}

/* ---- the table ------------------------------------------------------------------------------ */

#define ROW(id_, what_, type_, title_, reference_, function_, run_, needs_)                        \
    KIT_CASE(id_, what_ ": " title_, reference_, function_, run_, .arg = NdkObjectType##type_,     \
             .needs = (needs_))

/* A row for each type that is created; the id is the text and one digit. */
#define EACH_TYPE(id_, title_, reference_, run_, needs_)                                           \
    ROW(id_ "1", "CQ", Cq, title_, reference_, "NdkCreateCq", run_, needs_),                       \
        ROW(id_ "2", "PD", Pd, title_, reference_, "NdkCreatePd", run_, needs_),                   \
        ROW(id_ "3", "QP", Qp, title_, reference_, "NdkCreateQp", run_, needs_),                   \
        ROW(id_ "4", "MR", Mr, title_, reference_, "NdkCreateMr", run_, needs_),                   \
        ROW(id_ "5", "connector", Connector, title_, reference_, "NdkCreateConnector", run_,       \
            needs_),                                                                               \
        ROW(id_ "6", "listener", Listener, title_, reference_, "NdkCreateListener", run_, needs_), \
        ROW(id_ "7", "SRQ", Srq, title_, reference_, "NdkCreateSrq", run_,                         \
            (needs_) | KIT_NEEDS_SRQ),                                                             \
        ROW(id_ "8", "MW", Mw, title_, reference_, "NdkCreateMw", run_, (needs_) | KIT_NEEDS_MW),  \
        ROW(id_ "9", "shared endpoint", SharedEndpoint, title_, reference_,                        \
            "NdkCreateSharedEndpoint", run_, (needs_) | KIT_NEEDS_ENDPOINT)

#define QP_LIMIT(id_, name_, which_)                                                               \
    KIT_CASE(id_, "QP: " name_ " at and above the limit", "NDKPI 8.4", "NdkCreateQp", qp_limits,   \
             .arg = which_)
#define QP_SRQ_LIMIT(id_, name_, which_)                                                           \
    KIT_CASE(id_, "QP with SRQ: " name_ " at and above the limit", "NDKPI 8.5",                    \
             "NdkCreateQpWithSrq", qp_limits_with_srq, .arg = which_, .needs = KIT_NEEDS_SRQ)

static const struct kit_case cases[] = {
    EACH_TYPE("OBJ-01", "is created whole, and closes", "lifetime 2", created_and_closed, 0),
    KIT_CASE("OBJ-020", "adapter: an unknown extension is NOT_SUPPORTED", "NDKPI 5.2",
             "NdkQueryExtension", extensions_of_the_adapter),
    EACH_TYPE("OBJ-02", "an unknown extension is NOT_SUPPORTED", "NDKPI 5.2", extensions, 0),
    EACH_TYPE("OBJ-03", "a create without resources, and one after it", "NDKPI 6, 8", no_resources,
              KIT_NEEDS_FAIL),
    EACH_TYPE("OBJ-04", "many at once", "lifetime 3", many, 0),
    KIT_CASE("OBJ-050", "CQ: CqDepth at and above the limit", "NDKPI 6.2", "NdkCreateCq",
             cq_limits),
    QP_LIMIT("OBJ-051", "ReceiveQueueDepth", RECEIVE_DEPTH),
    QP_LIMIT("OBJ-052", "InitiatorQueueDepth", INITIATOR_DEPTH),
    QP_LIMIT("OBJ-053", "MaxReceiveRequestSge", RECEIVE_SGE),
    QP_LIMIT("OBJ-054", "MaxInitiatorRequestSge", INITIATOR_SGE),
    QP_LIMIT("OBJ-055", "InlineDataSize", INLINE_SIZE),
    QP_SRQ_LIMIT("OBJ-056", "InitiatorQueueDepth", INITIATOR_DEPTH),
    QP_SRQ_LIMIT("OBJ-057", "MaxInitiatorRequestSge", INITIATOR_SGE),
    QP_SRQ_LIMIT("OBJ-058", "InlineDataSize", INLINE_SIZE),
    KIT_CASE("OBJ-059", "SRQ: depth and SGEs at and above the limits", "NDKPI 8.3", "NdkCreateSrq",
             srq_limits, .needs = KIT_NEEDS_SRQ),
    KIT_CASE("OBJ-060", "shared endpoint: its address, and an ephemeral port", "NDKPI 15.1",
             "NdkGetLocalAddress", endpoint_address, .needs = KIT_NEEDS_ENDPOINT),
    KIT_CASE("OBJ-061", "CQ: an affinity is taken", "NDKPI 6.2", "NdkCreateCq", affinity),
    KIT_CASE("OBJ-062", "CQ: an affinity to no processor at all is taken", "NDKPI 6.2",
             "NdkCreateCq", affinity, .arg = 1),
};

KIT_TOPIC(objects, "objects of all types: creating, limits, closing");
