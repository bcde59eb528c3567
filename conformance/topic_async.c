// SPDX-License-Identifier: MIT
/*
 * Every function that may pend, in each way of answering (lifetime 3): inline, later, before the
 * function returns, and by chance; and the statuses that it may bring through its completion. The
 * door chooses the way; the kit watches that nothing depends on it.
 *
 * An operation is prepared in the usual way, then started in the way under test, then followed by
 * what lets it end, in the usual way again.
 */
#include "kit.h"

struct scene {
    struct kit *k;
    struct kit_base base;
    struct kit_object *object;
    struct kit_end a, b;
    struct kit_endpoint *endpoint;
    struct kit_srq *srq;
    struct kit_listener *listener;
    struct kit_memory *memory;
    struct kit_call *other;
    SOCKADDR_INET address;
    ULONGLONG lam[32]; /* aligned as a mapping is */
    ULONG lam_size, fbo;
};

struct operation {
    BOOLEAN (*prepare)(struct scene *s);
    struct kit_call *(*start)(struct scene *s);
    BOOLEAN (*follow)(struct scene *s, struct kit_call *call); /* or NULL */
    NTSTATUS status;
    NDK_OBJECT_TYPE type; /* of creates and closes */
};

enum way { INLINE, LATER, BEFORE, CHANCE, FAILING, FAILING_INLINE };

static const char *const modes[] = {"never", "always", "early", "random:1", "always", "never"};

static VOID answered(struct kit *k)
{
    const struct operation *operation = k->test->row;
    enum way way = (enum way)k->test->arg;
    BOOLEAN failing = (BOOLEAN)(way == FAILING || way == FAILING_INLINE);
    NTSTATUS need = failing ? STATUS_INSUFFICIENT_RESOURCES : operation->status;
    struct scene *s = kit_alloc(k, sizeof *s);
    struct kit_call *call;

    TRY(s != NULL);
    s->k = k;
    TRY(operation->prepare(s));
    if (failing)
        TRY(kit_make_fail(k, k->test->function, need));
    TRY(kit_answer_mode(k, modes[way]));
    call = operation->start(s);
    TRY(call != NULL);
    TRY(kit_answer_mode(k, NULL));
    if (way == LATER || way == BEFORE || way == FAILING)
        CHECK_STATUS(k, "the return value of a call that is to answer through its completion",
                     call->returned, STATUS_PENDING);
    if (way == FAILING_INLINE)
        CHECK_STATUS(k, "the return value of a call that is to answer inline", call->returned,
                     need);
    if (operation->follow && need == STATUS_SUCCESS)
        TRY(operation->follow(s, call));
    TRY(kit_answer_is(call, need));
}

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

/* ---- listening ------------------------------------------------------------------------------ */

static BOOLEAN prepare_listener(struct scene *s)
{
    TRY_OR_FALSE(kit_base_open(s->k, NdkObjectTypeListener, &s->base));
    s->address = s->k->config->local;
    return kit_listener_new(s->base.adapter, &s->listener);
}

/* An address for documents, which no host has (RFC 5737, RFC 3849). */
static VOID foreign(SOCKADDR_INET *address)
{
    static const UCHAR v6[16] = {0x20, 0x01, 0x0d, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1};
    static const UCHAR v4[4] = {192, 0, 2, 1};

    if (address->si_family == AF_INET6)
        RtlCopyMemory(&address->Ipv6.sin6_addr, v6, sizeof v6);
    else
        RtlCopyMemory(&address->Ipv4.sin_addr, v4, sizeof v4);
}

static BOOLEAN prepare_foreign_listener(struct scene *s)
{
    TRY_OR_FALSE(prepare_listener(s));
    foreign(&s->address);
    return TRUE;
}

static BOOLEAN prepare_taken_listener(struct scene *s)
{
    struct kit_listener *first;

    TRY_OR_FALSE(prepare_listener(s));
    TRY_OR_FALSE(kit_listener_new(s->base.adapter, &first));
    return kit_listen(first, &s->address);
}

static struct kit_call *start_listen(struct scene *s)
{
    return kit_listen_start(s->listener, &s->address);
}

/* ---- ports ---------------------------------------------------------------------------------- */

#define PORTS 64

/* Takes ports until there is none; only where the user gave the adapter a few. */
static BOOLEAN take_ports(struct scene *s, struct kit_adapter *adapter)
{
    for (ULONG i = 0; i < PORTS; i++) {
        struct kit_listener *listener;
        NTSTATUS status;

        TRY_OR_FALSE(kit_listener_new(adapter, &listener));
        status = kit_answer(kit_listen_start(listener, &s->k->config->local));
        if (status == STATUS_TOO_MANY_ADDRESSES)
            return TRUE;
        TRY_OR_FALSE(kit_status(s->k, KIT_HERE, "NdkListen", status, STATUS_SUCCESS));
    }
    return kit_skip(s->k, "the adapter has more ephemeral ports than a case takes (%u)", PORTS);
}

static BOOLEAN prepare_no_ports(struct scene *s)
{
    TRY_OR_FALSE(prepare_listener(s));
    return take_ports(s, s->base.adapter);
}

/* ---- shared endpoints ----------------------------------------------------------------------- */

static BOOLEAN prepare_foreign_endpoint(struct scene *s)
{
    TRY_OR_FALSE(kit_base_open(s->k, NdkObjectTypeSharedEndpoint, &s->base));
    s->address = s->k->config->local;
    foreign(&s->address);
    return TRUE;
}

static struct kit_call *start_endpoint(struct scene *s)
{
    return kit_endpoint_start(s->base.adapter, &s->address, &s->endpoint);
}

/* ---- connecting ----------------------------------------------------------------------------- */

static BOOLEAN prepare_ends(struct scene *s)
{
    TRY_OR_FALSE(kit_end_open(s->k, NULL, &s->b));
    TRY_OR_FALSE(kit_end_open(s->k, NULL, &s->a));
    TRY_OR_FALSE(kit_listener_new(s->b.adapter, &s->b.listener));
    TRY_OR_FALSE(kit_listen(s->b.listener, &s->address));
    return kit_connector_new(s->a.adapter, &s->a.connector);
}

static struct kit_call *start_connect(struct scene *s)
{
    return kit_connect_start(s->a.connector, s->a.qp, &s->address, NULL);
}

static BOOLEAN follow_connect(struct scene *s, struct kit_call *call)
{
    TRY_OR_FALSE(kit_incoming(s->b.listener, &s->b.connector));
    TRY_OR_FALSE(kit_accept_start(s->b.connector, s->b.qp, NULL) != NULL);
    TRY_OR_FALSE(kit_answer_is(call, STATUS_SUCCESS));
    return kit_answer_is(kit_complete_start(s->a.connector), STATUS_SUCCESS);
}

static BOOLEAN prepare_endpoint_connect(struct scene *s)
{
    TRY_OR_FALSE(prepare_ends(s));
    return kit_answer_is(kit_endpoint_start(s->a.adapter, &s->k->config->local, &s->endpoint),
                         STATUS_SUCCESS);
}

static struct kit_call *start_endpoint_connect(struct scene *s)
{
    return kit_connect_endpoint(s->a.connector, s->a.qp, s->endpoint, &s->address, NULL);
}

static BOOLEAN prepare_connect_without_port(struct scene *s)
{
    TRY_OR_FALSE(prepare_ends(s));
    return take_ports(s, s->a.adapter);
}

/* Nobody listens there any more. */
static BOOLEAN prepare_refused(struct scene *s)
{
    TRY_OR_FALSE(prepare_ends(s));
    return kit_close(&s->b.listener->object);
}

static struct kit_call *start_connect_foreign(struct scene *s)
{
    SOCKADDR_INET from = s->k->config->local;

    foreign(&from);
    return kit_connect_from(s->a.connector, s->a.qp, &from, &s->address, NULL);
}

/* From the address and port of the listener. */
static struct kit_call *start_connect_taken(struct scene *s)
{
    return kit_connect_from(s->a.connector, s->a.qp, &s->address, &s->address, NULL);
}

static BOOLEAN prepare_incoming(struct scene *s)
{
    TRY_OR_FALSE(prepare_ends(s));
    s->other = start_connect(s);
    return s->other && kit_incoming(s->b.listener, &s->b.connector);
}

static struct kit_call *start_accept(struct scene *s)
{
    return kit_accept_start(s->b.connector, s->b.qp, NULL);
}

static struct kit_call *start_accept_plain(struct scene *s)
{
    return kit_accept_plain(s->b.connector, s->b.qp, NULL);
}

static BOOLEAN follow_accept(struct scene *s, struct kit_call *call)
{
    (void)call;
    TRY_OR_FALSE(kit_answer_is(s->other, STATUS_SUCCESS));
    return kit_answer_is(kit_complete_start(s->a.connector), STATUS_SUCCESS);
}

static BOOLEAN prepare_complete(struct scene *s)
{
    struct kit_call *connect;

    TRY_OR_FALSE(prepare_incoming(s));
    connect = s->other;
    s->other = start_accept(s);
    return kit_answer_is(connect, STATUS_SUCCESS);
}

static struct kit_call *start_complete(struct scene *s)
{
    return kit_complete_start(s->a.connector);
}

static struct kit_call *start_complete_plain(struct scene *s)
{
    return kit_complete_plain(s->a.connector);
}

static BOOLEAN follow_complete(struct scene *s, struct kit_call *call)
{
    TRY_OR_FALSE(kit_answer_is(call, STATUS_SUCCESS));
    return kit_answer_is(s->other, STATUS_SUCCESS);
}

/* Whoever is to be answered has left. */
static BOOLEAN prepare_complete_alone(struct scene *s)
{
    TRY_OR_FALSE(prepare_complete(s));
    return kit_close(&s->b.connector->object);
}

static BOOLEAN prepare_accept_alone(struct scene *s)
{
    TRY_OR_FALSE(prepare_incoming(s));
    TRY_OR_FALSE(kit_close(&s->a.connector->object));
    return kit_answer(s->other) != KIT_NO_ANSWER;
}

static BOOLEAN prepare_connected(struct scene *s)
{
    TRY_OR_FALSE(prepare_complete(s));
    return follow_complete(s, start_complete(s));
}

static struct kit_call *start_disconnect(struct scene *s)
{
    return kit_disconnect_start(s->a.connector);
}

static BOOLEAN follow_disconnect(struct scene *s, struct kit_call *call)
{
    (void)call;
    TRY_OR_FALSE(kit_wait(s->k, &s->b.connector->event, "the disconnect event"));
    return kit_answer_is(kit_disconnect_start(s->b.connector), STATUS_SUCCESS);
}

/* ---- calls that never pend, while all others do --------------------------------------------- */

static VOID never_pending(struct kit *k)
{
    struct kit_request *send, *receive;
    struct kit_memory *out, *in;
    struct kit_pair pair;
    SOCKADDR_INET address;
    ULONG length = sizeof address, size = 0;
    NDK_SGE sge;

    TRY(kit_answer_mode(k, modes[LATER]));
    TRY(kit_pair_open(k, NULL, &pair));
    TRY(kit_memory_new(pair.a.pd, 64, 0, &out));
    TRY(kit_memory_new(pair.b.pd, 64, NDK_MR_FLAG_ALLOW_LOCAL_WRITE, &in));
    sge = kit_sge(in, 0, 64);
    TRY(kit_ok(receive = kit_receive(pair.b.qp, &sge, 1)));
    sge = kit_sge(out, 0, 64);
    TRY(kit_ok(send = kit_send(pair.a.qp, &sge, 1, 0)));
    TRY(kit_expect(receive, STATUS_SUCCESS, NULL));
    TRY(kit_expect(send, STATUS_SUCCESS, NULL));
    CHECK_STATUS(k, "NdkGetPeerAddress",
                 pair.b.connector->table->NdkGetPeerAddress(pair.b.connector->ndk,
                                                            (PSOCKADDR)&address, &length),
                 STATUS_SUCCESS);
    CHECK_STATUS(k, "NdkGetConnectionData",
                 pair.b.connector->table->NdkGetConnectionData(pair.b.connector->ndk, NULL, NULL,
                                                               NULL, &size),
                 STATUS_SUCCESS);
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
        TRY(kit_answer_mode(k, modes[way]));
        kit_next_then(k, close_created, NULL);
        TRY(kit_answer_is(kit_any_start(&base, type, &object), STATUS_SUCCESS));
        TRY(kit_answer_is(object->close, STATUS_SUCCESS));
        TRY(kit_answer_mode(k, NULL));
    }
}

/* ---- the table ------------------------------------------------------------------------------ */

#define ONE(id_, what_, how_, function_, way_, operation_, needs_, ...)                            \
    KIT_CASE(id_, function_ what_ how_, "lifetime 3", function_, answered, .arg = way_,            \
             .row = &(const struct operation)operation_, .needs = (needs_) | KIT_NEEDS_ANSWER,     \
             __VA_ARGS__)
#define OF(...)                                                                                    \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

/* The id is a text and one digit: 0 inline, 1 later, 2 before, 3 by chance, 4 and 5 no resources.
 */
#define WAYS(id_, what_, function_, operation_, needs_, ...)                                       \
    ONE(id_ "0", what_, ", inline where it can", function_, INLINE, OF operation_, needs_,         \
        __VA_ARGS__),                                                                              \
        ONE(id_ "1", what_, ", later", function_, LATER, OF operation_, needs_, __VA_ARGS__),      \
        ONE(id_ "2", what_, ", before it returns", function_, BEFORE, OF operation_, needs_,       \
            __VA_ARGS__),                                                                          \
        ONE(id_ "3", what_, ", by chance", function_, CHANCE, OF operation_, needs_, __VA_ARGS__)
#define WAYS_AND_FAILING(id_, what_, function_, operation_, needs_, ...)                           \
    WAYS(id_, what_, function_, operation_, needs_, __VA_ARGS__),                                  \
        ONE(id_ "4", what_, ", no resources, later", function_, FAILING, OF operation_,            \
            (needs_) | KIT_NEEDS_FAIL, __VA_ARGS__),                                               \
        ONE(id_ "5", what_, ", no resources, inline", function_, FAILING_INLINE, OF operation_,    \
            (needs_) | KIT_NEEDS_FAIL, __VA_ARGS__)

#define CREATE(id_, function_, type_, needs_)                                                      \
    WAYS_AND_FAILING(id_, "", function_,                                                           \
                     (prepare_base, start_create, NULL, STATUS_SUCCESS, NdkObjectType##type_),     \
                     needs_)
#define CLOSE(id_, function_, type_, needs_)                                                       \
    WAYS(id_, "", function_,                                                                       \
         (prepare_object, start_close, NULL, STATUS_SUCCESS, NdkObjectType##type_), needs_)
#define CALL(id_, function_, prepare_, start_, follow_, needs_, ...)                               \
    WAYS_AND_FAILING(id_, "", function_,                                                           \
                     (prepare_, start_, follow_, STATUS_SUCCESS, NdkObjectTypeCq), needs_,         \
                     __VA_ARGS__)
#define FAILS(id_, function_, prepare_, start_, status_, type_, needs_)                            \
    WAYS(id_, ": " #status_, function_, (prepare_, start_, NULL, status_, NdkObjectType##type_),   \
         needs_)
#define IN_COMPLETION(id_, function_, type_, needs_)                                               \
    KIT_CASE(id_, function_ ", closed in its completion", "lifetime 3", function_,                 \
             closed_in_completion, .arg = NdkObjectType##type_,                                    \
             .needs = (needs_) | KIT_NEEDS_ANSWER)

#define LOOP KIT_NEEDS_LOOPBACK

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
    CALL("ASY-24", "NdkListen", prepare_listener, start_listen, NULL, 0),
    CALL("ASY-25", "NdkConnect", prepare_ends, start_connect, follow_connect, LOOP),
    CALL("ASY-26", "NdkConnectWithSharedEndpoint", prepare_endpoint_connect, start_endpoint_connect,
         follow_connect, LOOP | KIT_NEEDS_ENDPOINT),
    CALL("ASY-27", "NdkAccept", prepare_incoming, start_accept_plain, follow_accept, LOOP),
    CALL("ASY-28", "NdkAcceptEx", prepare_incoming, start_accept, follow_accept, LOOP,
         .version = {2, 1}),
    CALL("ASY-29", "NdkCompleteConnect", prepare_complete, start_complete_plain, follow_complete,
         LOOP),
    CALL("ASY-30", "NdkCompleteConnectEx", prepare_complete, start_complete, follow_complete, LOOP,
         .version = {2, 1}),
    CALL("ASY-31", "NdkDisconnect", prepare_connected, start_disconnect, follow_disconnect, LOOP),
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
    FAILS("ASY-46", "NdkListen", prepare_foreign_listener, start_listen, STATUS_INVALID_ADDRESS,
          Listener, 0),
    FAILS("ASY-47", "NdkListen", prepare_taken_listener, start_listen, STATUS_SHARING_VIOLATION,
          Listener, 0),
    FAILS("ASY-48", "NdkConnect", prepare_ends, start_connect_foreign, STATUS_INVALID_ADDRESS,
          Connector, LOOP),
    FAILS("ASY-49", "NdkConnect", prepare_ends, start_connect_taken, STATUS_SHARING_VIOLATION,
          Connector, LOOP),
    FAILS("ASY-50", "NdkConnect", prepare_refused, start_connect, STATUS_CONNECTION_REFUSED,
          Connector, LOOP),
    FAILS("ASY-51", "NdkCompleteConnect", prepare_ends, start_complete_plain,
          STATUS_CONNECTION_INVALID, Connector, LOOP),
    FAILS("ASY-52", "NdkCreateSharedEndpoint", prepare_foreign_endpoint, start_endpoint,
          STATUS_INVALID_ADDRESS, SharedEndpoint, KIT_NEEDS_ENDPOINT),
    FAILS("ASY-53", "NdkCreateSharedEndpoint", prepare_taken_listener, start_endpoint,
          STATUS_SHARING_VIOLATION, SharedEndpoint, KIT_NEEDS_ENDPOINT),
    FAILS("ASY-54", "NdkListen", prepare_no_ports, start_listen, STATUS_TOO_MANY_ADDRESSES,
          Listener, 0),
    FAILS("ASY-55", "NdkCreateSharedEndpoint", prepare_no_ports, start_endpoint,
          STATUS_TOO_MANY_ADDRESSES, SharedEndpoint, KIT_NEEDS_ENDPOINT),
    FAILS("ASY-56", "NdkConnect", prepare_connect_without_port, start_connect,
          STATUS_TOO_MANY_ADDRESSES, Connector, LOOP),
    FAILS("ASY-57", "NdkBuildLAM", prepare_gap, start_lam, STATUS_INVALID_PARAMETER, Mr, 0),
    FAILS("ASY-58", "NdkRegisterMr", prepare_gap, start_register, STATUS_INVALID_PARAMETER, Mr, 0),
    FAILS("ASY-59", "NdkCreateQpWithSrq", prepare_srq, start_deep_qp_with_srq,
          STATUS_INVALID_PARAMETER, Qp, KIT_NEEDS_SRQ),
    FAILS("ASY-70", "NdkModifySrq", prepare_object, start_modify_deep, STATUS_INVALID_PARAMETER,
          Srq, KIT_NEEDS_SRQ),
    WAYS("ASY-71", ": STATUS_INVALID_PARAMETER", "NdkResizeCq",
         (prepare_object, start_resize_deep, NULL, STATUS_INVALID_PARAMETER, NdkObjectTypeCq), 0,
         .adapter_flags = NDK_ADAPTER_FLAG_CQ_RESIZE_SUPPORTED),
    WAYS("ASY-72", ": STATUS_CONNECTION_INVALID", "NdkCompleteConnectEx",
         (prepare_ends, start_complete, NULL, STATUS_CONNECTION_INVALID, NdkObjectTypeCq), LOOP,
         .version = {2, 1}),
    FAILS("ASY-73", "NdkCompleteConnect", prepare_complete_alone, start_complete_plain,
          STATUS_CONNECTION_ABORTED, Connector, LOOP),
    WAYS("ASY-74", ": STATUS_CONNECTION_ABORTED", "NdkCompleteConnectEx",
         (prepare_complete_alone, start_complete, NULL, STATUS_CONNECTION_ABORTED, NdkObjectTypeCq),
         LOOP, .version = {2, 1}),
    FAILS("ASY-75", "NdkAccept", prepare_accept_alone, start_accept_plain,
          STATUS_CONNECTION_ABORTED, Connector, LOOP),
    WAYS("ASY-76", ": STATUS_CONNECTION_ABORTED", "NdkAcceptEx",
         (prepare_accept_alone, start_accept, NULL, STATUS_CONNECTION_ABORTED, NdkObjectTypeCq),
         LOOP, .version = {2, 1}),

    IN_COMPLETION("ASY-601", "NdkCreateCq", Cq, 0),
    IN_COMPLETION("ASY-602", "NdkCreatePd", Pd, 0),
    IN_COMPLETION("ASY-603", "NdkCreateQp", Qp, 0),
    IN_COMPLETION("ASY-604", "NdkCreateMr", Mr, 0),
    IN_COMPLETION("ASY-605", "NdkCreateConnector", Connector, 0),
    IN_COMPLETION("ASY-606", "NdkCreateListener", Listener, 0),
    IN_COMPLETION("ASY-607", "NdkCreateSrq", Srq, KIT_NEEDS_SRQ),
    IN_COMPLETION("ASY-608", "NdkCreateMw", Mw, KIT_NEEDS_MW),
    IN_COMPLETION("ASY-609", "NdkCreateSharedEndpoint", SharedEndpoint, KIT_NEEDS_ENDPOINT),

    KIT_CASE("ASY-800", "posts and queries never pend", "lifetime 3", "NdkSend", never_pending,
             .needs = KIT_NEEDS_ANSWER | KIT_NEEDS_LOOPBACK),
};

KIT_TOPIC(async, "each way of answering, of each function that may pend");
