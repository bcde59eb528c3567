// SPDX-License-Identifier: MIT
/*
 * The 23 rules that a naive implementer gets wrong (lifetime 13), one case each, by their numbers.
 * Where a rule has a topic of its own the case here is the shortest that can break it. Connections
 * are pairs in one function: a is active, b is passive.
 */
#include "kit.h"

#define LENGTH 64

/* ---- helpers -------------------------------------------------------------------------------- */

static BOOLEAN receive_at(struct kit_end *end, struct kit_memory *memory, ULONG slot,
                          struct kit_request **out)
{
    NDK_SGE sge = kit_sge(memory, slot * LENGTH, LENGTH);

    return kit_ok(*out = kit_receive(end->qp, &sge, 1));
}

static BOOLEAN send_from(struct kit_end *end, struct kit_memory *memory, ULONG slot, ULONG flags,
                         struct kit_request **out)
{
    NDK_SGE sge = kit_sge(memory, slot * LENGTH, LENGTH);

    return kit_ok(*out = kit_send(end->qp, &sge, 1, flags));
}

/* A connected pair with a page of memory at each end. */
struct ready {
    struct kit_pair pair;
    struct kit_memory *out, *in; /* of a, of b */
};

static BOOLEAN ready_open(struct kit *k, const struct kit_end_options *options, ULONG flags,
                          struct ready *r)
{
    TRY_OR_FALSE(kit_pair_open(k, options, &r->pair));
    TRY_OR_FALSE(kit_memory_new(r->pair.a.pd, PAGE_SIZE,
                                NDK_MR_FLAG_ALLOW_LOCAL_WRITE | NDK_MR_FLAG_RDMA_READ_SINK,
                                &r->out));
    return kit_memory_new(r->pair.b.pd, PAGE_SIZE, flags, &r->in);
}

/* ---- 1 to 4: calls and closes --------------------------------------------------------------- */

static VOID close_owner(struct kit_call *call, PVOID context)
{
    (void)context;
    (void)kit_close_start(call->owner);
}

/* 1: the connector is closed in the completion of its failing connect, which may come before the
 * connect has returned. A provider that touches it afterwards touches freed memory. */
static VOID touched_after_completion(struct kit *k)
{
    static const char *const modes[] = {NULL, "always", "early"};
    SOCKADDR_INET address;
    struct kit_pair pair;

    TRY(kit_pair_apart(k, &pair, &address));
    TRY(kit_close(&pair.b.listener->object));
    for (ULONG i = 0; i < RTL_NUMBER_OF(modes); i++) {
        struct kit_connector *connector;
        struct kit_call *connect;

        if (modes[i] && !kit_door.answer)
            break;
        TRY(kit_connector_new(pair.a.adapter, &connector));
        if (modes[i])
            TRY(kit_answer_mode(k, modes[i]));
        kit_next_then(k, close_owner, NULL);
        connect = kit_connect_start(connector, pair.a.qp, &address, NULL);
        TRY(kit_answer_is(connect, STATUS_CONNECTION_REFUSED));
        if (connect->returned == STATUS_PENDING)
            TRY(kit_answer_is(connector->object.close, STATUS_SUCCESS));
    }
}

static VOID linger(struct kit_call *call, PVOID context)
{
    (void)call;
    (void)context;
    kit_os_stall_ms(100);
}

/* 2: the closes of three generations, the eldest first; the youngest's completion lingers. */
static VOID antecedent_waits_for_return(struct kit *k)
{
    struct kit_call *pd, *cq, *qp;
    struct kit_end end;

    TRY(kit_end_open(k, NULL, &end));
    if (kit_door.answer)
        TRY(kit_answer_mode(k, "always")); /* so that the youngest has a completion */
    pd = kit_close_start(&end.pd->object);
    cq = kit_close_start(&end.receive->object);
    qp = kit_close_then(&end.qp->object, linger, NULL);
    TRY(kit_answer_is(pd, STATUS_SUCCESS));
    TRY(kit_answer_is(cq, STATUS_SUCCESS));
    CHECK(k, kit_os_get(&qp->inside) == 0 && kit_os_get(&qp->completions) <= 1,
          "the PD's close was done before the QP's close completion had returned");
    TRY(kit_answer_is(qp, STATUS_SUCCESS));
}

/* 3: a whole connection whose objects have another Dispatch from birth on. */
static VOID dispatch_is_not_read(struct kit *k)
{
    struct kit_request *receive, *send, *read;
    struct ready r;
    NDK_SGE sge;

    kit_hide_dispatch(k);
    TRY(ready_open(k, NULL, NDK_MR_FLAG_ALLOW_LOCAL_WRITE | NDK_MR_FLAG_ALLOW_REMOTE_READ, &r));
    TRY(receive_at(&r.pair.b, r.in, 0, &receive));
    TRY(send_from(&r.pair.a, r.out, 0, 0, &send));
    TRY(kit_expect(receive, STATUS_SUCCESS, NULL));
    TRY(kit_expect(send, STATUS_SUCCESS, NULL));
    sge = kit_sge(r.out, 0, LENGTH);
    TRY(kit_ok(read =
                   kit_read(r.pair.a.qp, &sge, 1, (UINT64)(ULONG_PTR)r.in->data, r.in->remote, 0)));
    TRY(kit_expect(read, STATUS_SUCCESS, NULL));
    TRY(kit_disconnect_start(r.pair.a.connector) != NULL);
    TRY(kit_wait(k, &r.pair.b.connector->event, "the disconnect event"));
    TRY(kit_answer_is(kit_disconnect_start(r.pair.b.connector), STATUS_SUCCESS));
}

/* 4: the kit looks at every out parameter; here all creates go through the completion. */
static VOID out_is_not_written(struct kit *k)
{
    static const NDK_OBJECT_TYPE types[] = {NdkObjectTypeCq,        NdkObjectTypePd,
                                            NdkObjectTypeQp,        NdkObjectTypeMr,
                                            NdkObjectTypeConnector, NdkObjectTypeListener};

    for (ULONG i = 0; i < RTL_NUMBER_OF(types); i++) {
        struct kit_object *object;
        struct kit_base base;
        struct kit_call *call;

        TRY(kit_base_open(k, types[i], &base));
        TRY(kit_answer_mode(k, i % 2 ? "always" : "early"));
        call = kit_any_start(&base, types[i], &object);
        TRY(kit_answer_mode(k, NULL));
        TRY(kit_answer_is(call, STATUS_SUCCESS));
        CHECK_STATUS(k, call->name, call->returned, STATUS_PENDING);
    }
}

/* ---- 5, 6: arms ----------------------------------------------------------------------------- */

/* 5: of ANY and SOLICITED the larger number is not the stronger one. */
static VOID stronger_arm_holds(struct kit *k)
{
    struct kit_request *receive, *send;
    struct kit_result result;
    struct ready r;

    TRY(ready_open(k, NULL, NDK_MR_FLAG_ALLOW_LOCAL_WRITE, &r));
    TRY(receive_at(&r.pair.b, r.in, 0, &receive));
    kit_cq_arm(r.pair.b.receive, NDK_CQ_NOTIFY_ANY);
    kit_cq_arm(r.pair.b.receive, NDK_CQ_NOTIFY_SOLICITED);
    TRY(send_from(&r.pair.a, r.out, 0, 0, &send));
    TRY(kit_cq_wait_notified(r.pair.b.receive, 1));
    CHECK_EQUAL(k, "results", kit_cq_poll(r.pair.b.receive, &result, 1), 1);
}

#define RACES 48

/* 6: the CQ is polled empty, a completion comes, the CQ is armed. The Send goes out between the
 * two; whether its receive is there when the arm is, the pause decides, and both must be told. */
static VOID no_completion_is_missed(struct kit *k)
{
    struct kit_request *receive, *send;
    struct kit_result result;
    struct ready r;

    TRY(ready_open(k, NULL, NDK_MR_FLAG_ALLOW_LOCAL_WRITE, &r));
    for (LONG i = 0; i < RACES; i++) {
        TRY(receive_at(&r.pair.b, r.in, 0, &receive));
        TRY(kit_cq_is_empty(r.pair.b.receive));
        TRY(send_from(&r.pair.a, r.out, 0, 0, &send));
        kit_os_sleep_ms((ULONG)i % 4);
        kit_cq_arm(r.pair.b.receive, NDK_CQ_NOTIFY_ANY);
        TRY(kit_cq_wait_notified(r.pair.b.receive, i + 1));
        CHECK_EQUAL(k, "results", kit_cq_poll(r.pair.b.receive, &result, 1), 1);
        TRY(kit_expect(send, STATUS_SUCCESS, NULL));
    }
}

/* ---- 7: the flag of two bits ---------------------------------------------------------------- */

static BOOLEAN write_is_refused(struct kit *k, struct ready *r, const struct kit_memory *target,
                                UINT32 token)
{
    struct kit_request *write;
    NDK_SGE sge = kit_sge(r->out, 0, LENGTH);

    kit_fill(r->out->data, LENGTH, 7);
    TRY_OR_FALSE(kit_ok(
        write = kit_write(r->pair.a.qp, &sge, 1, (UINT64)(ULONG_PTR)target->data, token, 0)));
    TRY_OR_FALSE(kit_ends_badly(&r->pair.a, write));
    for (ULONG i = 0; i < LENGTH; i++)
        if (target->data[i])
            return kit_fail(k, KIT_HERE, "a Write reached memory that grants no remote write");
    return TRUE;
}

static VOID remote_write_is_two_bits(struct kit *k)
{
    struct kit_request *fast;
    struct kit_memory *memory;
    struct kit_lam *lam;
    struct kit_mr *mr;
    struct ready r;

    TRY(ready_open(k, NULL, NDK_MR_FLAG_ALLOW_LOCAL_WRITE, &r));
    TRY(write_is_refused(k, &r, r.in, r.in->remote));

    TRY(ready_open(k, NULL, NDK_MR_FLAG_ALLOW_LOCAL_WRITE, &r));
    TRY(kit_memory_bare(k, PAGE_SIZE, &memory));
    TRY(kit_lam_new(r.pair.b.adapter, memory->mdl, PAGE_SIZE, &lam));
    TRY(kit_mr_new(r.pair.b.pd, TRUE, &mr));
    TRY(kit_answer_is(kit_fast_start(mr, 1, TRUE), STATUS_SUCCESS));
    TRY(kit_ok(fast = kit_fast_register(r.pair.b.qp, mr, lam, PAGE_SIZE, memory->data,
                                        NDK_OP_FLAG_ALLOW_LOCAL_WRITE)));
    TRY(kit_expect(fast, STATUS_SUCCESS, NULL));
    TRY(write_is_refused(k, &r, memory, mr->table->NdkGetRemoteTokenFromMr(mr->ndk)));
}

/* ---- 8, 9: posts ---------------------------------------------------------------------------- */

/* 8: a post that fails lets go what was deferred before it, and completes nothing itself. */
static VOID failed_post_flushes_deferred(struct kit *k)
{
    struct kit_request *receive, *first, *second;
    struct ready r;
    NDK_SGE sges[65];
    ULONG count;

    TRY(ready_open(k, NULL, NDK_MR_FLAG_ALLOW_LOCAL_WRITE, &r));
    count = kit_qp_modest(r.pair.a.adapter).initiator_sge + 1;
    CHECK(k, count <= RTL_NUMBER_OF(sges), "the kit has room for fewer SGEs");
    for (ULONG i = 0; i < count; i++)
        sges[i] = kit_sge(r.out, i, 1);
    TRY(receive_at(&r.pair.b, r.in, 0, &receive));
    TRY(send_from(&r.pair.a, r.out, 0, NDK_OP_FLAG_DEFER, &first));
    second = kit_send(r.pair.a.qp, sges, count, NDK_OP_FLAG_DEFER);
    CHECK(k, second && second->posted != STATUS_SUCCESS, "a Send of too many SGEs was posted");
    TRY(kit_expect(receive, STATUS_SUCCESS, NULL));
    TRY(kit_expect(first, STATUS_SUCCESS, NULL));
    TRY(kit_cq_is_empty(r.pair.a.initiator));
}

/* 9: a silent Read of memory that grants none. */
static VOID silent_failure_is_told(struct kit *k)
{
    struct kit_request *read;
    struct kit_result result;
    struct ready r;
    NDK_SGE sge;

    TRY(ready_open(k, NULL, NDK_MR_FLAG_ALLOW_LOCAL_WRITE, &r));
    sge = kit_sge(r.out, 0, LENGTH);
    TRY(kit_ok(read = kit_read(r.pair.a.qp, &sge, 1, (UINT64)(ULONG_PTR)r.in->data, r.in->remote,
                               NDK_OP_FLAG_SILENT_SUCCESS)));
    TRY(kit_cq_next(r.pair.a.initiator, &result));
    CHECK(k, result.request == read, "the result is not that of the silent Read");
    CHECK(k, result.status != STATUS_SUCCESS, "a Read of memory that grants none succeeded");
}

/* ---- 10, 11: disconnecting ------------------------------------------------------------------ */

/* 10: the peer's disconnect leaves the receives where they are; one's own flushes them. */
static VOID peers_disconnect_does_not_flush(struct kit *k)
{
    struct kit_request *receives[4];
    struct kit_call *disconnect;
    struct ready r;

    TRY(ready_open(k, NULL, NDK_MR_FLAG_ALLOW_LOCAL_WRITE, &r));
    for (ULONG i = 0; i < 4; i++)
        TRY(receive_at(&r.pair.b, r.in, i, &receives[i]));
    disconnect = kit_disconnect_start(r.pair.a.connector);
    TRY(kit_wait(k, &r.pair.b.connector->event, "the disconnect event"));
    kit_settle(k);
    TRY(kit_cq_is_empty(r.pair.b.receive));
    TRY(kit_answer_is(kit_disconnect_start(r.pair.b.connector), STATUS_SUCCESS));
    TRY(kit_answer_is(disconnect, STATUS_SUCCESS));
    for (ULONG i = 0; i < 4; i++)
        TRY(kit_expect(receives[i], STATUS_CANCELLED, NULL));
}

#define SILENT 16

/* 11: silent Sends are on their way: when the disconnect is done their memory is no longer read. (A
 * peer that never answers: TMO-005.) */
static VOID disconnect_waits_for_transfers(struct kit *k)
{
    struct kit_request *receives[SILENT], *send;
    struct kit_call *disconnect;
    struct ready r;

    TRY(ready_open(k, NULL, NDK_MR_FLAG_ALLOW_LOCAL_WRITE, &r));
    for (ULONG i = 0; i < SILENT; i++) {
        TRY(receive_at(&r.pair.b, r.in, i, &receives[i]));
        kit_fill(r.out->data + i * LENGTH, LENGTH, i);
    }
    for (ULONG i = 0; i < SILENT; i++)
        TRY(send_from(&r.pair.a, r.out, i, NDK_OP_FLAG_SILENT_SUCCESS, &send));
    disconnect = kit_disconnect_start(r.pair.a.connector);
    TRY(kit_wait(k, &r.pair.b.connector->event, "the disconnect event"));
    TRY(kit_disconnect_start(r.pair.b.connector) != NULL);
    TRY(kit_answer_is(disconnect, STATUS_SUCCESS));
    RtlFillMemory(r.out->data, PAGE_SIZE, 0xee);
    for (ULONG i = 0; i < SILENT; i++) {
        TRY(kit_expect(receives[i], STATUS_SUCCESS, NULL));
        TRY(kit_filled(k, "a silent Send", r.in->data + i * LENGTH, LENGTH, i));
    }
}

/* ---- 12 to 14: establishing ----------------------------------------------------------------- */

/* 12: the accept is done when the active side has completed, not before. */
static VOID accept_waits_for_complete(struct kit *k)
{
    struct kit_call *connect, *accept;
    SOCKADDR_INET address;
    struct kit_pair pair;

    TRY(kit_pair_apart(k, &pair, &address));
    connect = kit_connect_start(pair.a.connector, pair.a.qp, &address, NULL);
    TRY(kit_incoming(pair.b.listener, &pair.b.connector));
    accept = kit_accept_start(pair.b.connector, pair.b.qp, NULL);
    TRY(kit_answer_is(connect, STATUS_SUCCESS));
    kit_settle(k);
    CHECK(k, accept->returned == STATUS_PENDING && kit_os_get(&accept->completions) == 0,
          "NdkAccept was done before NdkCompleteConnect was called");
    TRY(kit_answer_is(kit_complete_start(pair.a.connector), STATUS_SUCCESS));
    TRY(kit_answer_is(accept, STATUS_SUCCESS));
}

/* 13: STATUS_PENDING passes NT_SUCCESS; a provider that takes its own helpers' answer for final
 * completes with it, or shows an object that is not there. The kit refuses both. */
static VOID pending_is_no_outcome(struct kit *k)
{
    struct kit_pair pair;

    TRY(kit_answer_mode(k, "always"));
    TRY(kit_pair_open(k, NULL, &pair));
    TRY(kit_disconnect_start(pair.a.connector) != NULL);
    TRY(kit_wait(k, &pair.b.connector->event, "the disconnect event"));
    TRY(kit_answer_is(kit_disconnect_start(pair.b.connector), STATUS_SUCCESS));
}

static NTSTATUS data_of(struct kit_connector *connector, PVOID data, ULONG *length)
{
    return connector->table->NdkGetConnectionData(connector->ndk, NULL, NULL, data, length);
}

static BOOLEAN data_protocol(struct kit *k, struct kit_connector *connector, const char *need,
                             ULONG sent)
{
    ULONG told = 0, length;
    UCHAR data[1024];

    TRY_OR_FALSE(kit_status(k, KIT_HERE, "NdkGetConnectionData(NULL, 0)",
                            data_of(connector, NULL, &told), STATUS_SUCCESS));
    if (told < sent || told > sizeof data / 2)
        return kit_fail(k, KIT_HERE, "private data size: have %u, need %u or some more",
                        (unsigned)told, (unsigned)sent);
    length = told;
    TRY_OR_FALSE(kit_status(k, KIT_HERE, "NdkGetConnectionData with that size",
                            data_of(connector, data, &length), STATUS_SUCCESS));
    TRY_OR_FALSE(kit_equal(k, KIT_HERE, "the size with that size", length, told));
    TRY_OR_FALSE(kit_bytes(k, KIT_HERE, "private data", data, need, sent));
    length = sizeof data;
    RtlZeroMemory(data, sizeof data);
    TRY_OR_FALSE(kit_status(k, KIT_HERE, "NdkGetConnectionData with more room",
                            data_of(connector, data, &length), STATUS_SUCCESS));
    TRY_OR_FALSE(kit_equal(k, KIT_HERE, "the size with more room", length, told));
    TRY_OR_FALSE(kit_bytes(k, KIT_HERE, "private data", data, need, sent));
    length = 3;
    RtlFillMemory(data, sizeof data, 0xa5);
    TRY_OR_FALSE(kit_status(k, KIT_HERE, "NdkGetConnectionData with three bytes",
                            data_of(connector, data, &length), STATUS_BUFFER_TOO_SMALL));
    TRY_OR_FALSE(kit_equal(k, KIT_HERE, "the size with three bytes", length, told));
    TRY_OR_FALSE(kit_bytes(k, KIT_HERE, "the first three bytes", data, need, 3));
    return kit_equal(k, KIT_HERE, "the fourth byte", data[3], 0xa5);
}

/* 14: sizes of private data. */
static VOID private_data_sizes(struct kit *k)
{
    static const char asked[] = "a question of twenty-odd bytes", said[] = "an answer";
    struct kit_connect_options question = {1, 1, asked, sizeof asked};
    struct kit_connect_options answer = {1, 1, said, sizeof said};
    struct kit_call *connect;
    SOCKADDR_INET address;
    struct kit_pair pair;

    TRY(kit_pair_apart(k, &pair, &address));
    connect = kit_connect_start(pair.a.connector, pair.a.qp, &address, &question);
    TRY(kit_incoming(pair.b.listener, &pair.b.connector));
    TRY(data_protocol(k, pair.b.connector, asked, sizeof asked));
    TRY(kit_accept_start(pair.b.connector, pair.b.qp, &answer) != NULL);
    TRY(kit_answer_is(connect, STATUS_SUCCESS));
    TRY(data_protocol(k, pair.a.connector, said, sizeof said));
}

/* ---- 15, 16: listeners ---------------------------------------------------------------------- */

/* 15: the port is held until the last connection over it is closed. */
static VOID port_is_held(struct kit *k)
{
    struct kit_listener *second;
    struct kit_call *close;
    struct kit_pair pair;
    SOCKADDR_INET address;
    ULONG length = sizeof address;

    TRY(kit_pair_open(k, NULL, &pair));
    RtlZeroMemory(&address, sizeof address);
    CHECK_STATUS(k, "NdkGetLocalAddress",
                 pair.b.listener->table->NdkGetLocalAddress(pair.b.listener->ndk,
                                                            (PSOCKADDR)&address, &length),
                 STATUS_SUCCESS);
    close = kit_close_start(&pair.b.listener->object);
    TRY(kit_listener_new(pair.b.adapter, &second));
    TRY(kit_answer_is(kit_listen_start(second, &address), STATUS_SHARING_VIOLATION));
    TRY(kit_close(&pair.b.connector->object));
    TRY(kit_answer_is(close, STATUS_SUCCESS));
    TRY(kit_listener_new(pair.b.adapter, &second));
    TRY(kit_answer_is(kit_listen_start(second, &address), STATUS_SUCCESS));
}

/* 16: a paused listener is as if nobody listened. */
static VOID paused_refuses(struct kit *k)
{
    struct kit_connector *again;
    struct kit_call *connect;
    SOCKADDR_INET address;
    struct kit_pair pair;

    TRY(kit_pair_apart(k, &pair, &address));
    pair.b.listener->table->NdkControlConnectEvents(pair.b.listener->ndk, TRUE);
    TRY(kit_answer_is(kit_connect_start(pair.a.connector, pair.a.qp, &address, NULL),
                      STATUS_CONNECTION_REFUSED));
    CHECK_EQUAL(k, "connect events of a paused listener", kit_os_get(&pair.b.listener->events), 0);
    pair.b.listener->table->NdkControlConnectEvents(pair.b.listener->ndk, FALSE);
    TRY(kit_connector_new(pair.a.adapter, &again));
    connect = kit_connect_start(again, pair.a.qp, &address, NULL);
    TRY(kit_incoming(pair.b.listener, &pair.b.connector));
    TRY(kit_accept_start(pair.b.connector, pair.b.qp, NULL) != NULL);
    TRY(kit_answer_is(connect, STATUS_SUCCESS));
}

/* ---- 17, 18: what is lowered or ignored instead of refused ---------------------------------- */

/* 17: read limits above the adapter's. */
static VOID limits_are_capped(struct kit *k)
{
    struct kit_end_options options = {.connect = {MAXULONG, MAXULONG, NULL, 0}};
    struct kit_pair pair;
    struct kit_end *ends[2] = {&pair.a, &pair.b};

    TRY(kit_pair_open(k, &options, &pair));
    for (ULONG i = 0; i < 2; i++) {
        struct kit_connector *c = ends[i]->connector;
        ULONG inbound = MAXULONG, outbound = MAXULONG, length = 0;

        CHECK_STATUS(k, "NdkGetConnectionData",
                     c->table->NdkGetConnectionData(c->ndk, &inbound, &outbound, NULL, &length),
                     STATUS_SUCCESS);
        CHECK(k, inbound <= k->info.MaxInboundReadLimit,
              "inbound read limit: have %u, need at most %u", (unsigned)inbound,
              (unsigned)k->info.MaxInboundReadLimit);
        CHECK(k, outbound <= k->info.MaxOutboundReadLimit,
              "outbound read limit: have %u, need at most %u", (unsigned)outbound,
              (unsigned)k->info.MaxOutboundReadLimit);
    }
}

/* 18: the sink flags, whether the adapter needs them or not. */
static VOID sink_flag_is_taken(struct kit *k)
{
    struct kit_request *fast, *read;
    struct kit_memory *all, *bare;
    struct kit_lam *lam;
    struct kit_mr *mr;
    struct ready r;
    NDK_SGE sge;

    TRY(ready_open(k, NULL, NDK_MR_FLAG_ALLOW_REMOTE_READ, &r));
    kit_fill(r.in->data, LENGTH, 18);
    TRY(kit_memory_new(r.pair.a.pd, PAGE_SIZE,
                       NDK_MR_FLAG_ALLOW_LOCAL_WRITE | NDK_MR_FLAG_ALLOW_REMOTE_READ |
                           NDK_MR_FLAG_ALLOW_REMOTE_WRITE | NDK_MR_FLAG_RDMA_READ_SINK,
                       &all));
    TRY(kit_memory_bare(k, PAGE_SIZE, &bare));
    TRY(kit_lam_new(r.pair.a.adapter, bare->mdl, PAGE_SIZE, &lam));
    TRY(kit_mr_new(r.pair.a.pd, TRUE, &mr));
    TRY(kit_answer_is(kit_fast_start(mr, 1, TRUE), STATUS_SUCCESS));
    TRY(kit_ok(fast =
                   kit_fast_register(r.pair.a.qp, mr, lam, PAGE_SIZE, bare->data,
                                     NDK_OP_FLAG_ALLOW_LOCAL_WRITE | NDK_OP_FLAG_RDMA_READ_SINK)));
    TRY(kit_expect(fast, STATUS_SUCCESS, NULL));
    sge = kit_sge(bare, 0, LENGTH);
    sge.MemoryRegionToken = mr->table->NdkGetLocalTokenFromMr(mr->ndk);
    TRY(kit_ok(read =
                   kit_read(r.pair.a.qp, &sge, 1, (UINT64)(ULONG_PTR)r.in->data, r.in->remote, 0)));
    TRY(kit_expect(read, STATUS_SUCCESS, NULL));
    TRY(kit_filled(k, "what was read", bare->data, LENGTH, 18));
}

/* ---- 19 to 23 ------------------------------------------------------------------------------- */

/* 19: each close that pends calls the routine it was given, with its one argument. */
static VOID close_completions_are_called(struct kit *k)
{
    struct kit_call *calls[6];
    struct kit_pair pair;
    ULONG count = 0;

    TRY(kit_pair_open(k, NULL, &pair));
    calls[count++] = kit_close_start(&pair.b.listener->object);
    calls[count++] = kit_close_start(&pair.b.receive->object);
    calls[count++] = kit_close_start(&pair.b.pd->object);
    calls[count++] = kit_close_start(&pair.b.qp->object);
    for (ULONG i = 0; i < count; i++)
        CHECK_STATUS(k, calls[i]->name, calls[i]->returned, STATUS_PENDING);
    TRY(kit_close(&pair.b.connector->object));
    for (ULONG i = 0; i < count; i++)
        TRY(kit_answer_is(calls[i], STATUS_SUCCESS));
}

/* 20: the version in every header is the one the provider runs, its highest minor. */
static VOID version_is_the_providers(struct kit *k)
{
    struct kit_adapter *by_default, *asked_low;
    NDK_VERSION low;
    char why[256] = "";

    TRY(kit_adapter_open(k, &by_default));
    low = by_default->info.Version;
    TRY(kit_adapter_try(k, low, &asked_low, why, sizeof why) == STATUS_SUCCESS);
    low.Minor = 0;
    CHECK_STATUS(k, why, kit_adapter_try(k, low, &asked_low, why, sizeof why), STATUS_SUCCESS);
    CHECK_EQUAL(k, "Minor of a consumer that needs 0", asked_low->ndk->Header.Version.Minor,
                by_default->info.Version.Minor);
    low.Minor = (USHORT)(by_default->info.Version.Minor + 1);
    CHECK(k, kit_adapter_try(k, low, &asked_low, why, sizeof why) != STATUS_SUCCESS,
          "a higher minor can be had than the one that is run");
}

#define PIECES 8

/* 21: a QP of one SGE a request still reads into as many as MaxReadRequestSge says, and sends
 * inline from more than one. */
static VOID sges_of_reads_and_inline(struct kit *k)
{
    struct kit_end_options options = {.sizes = {0, 0, 0, 1, 0}};
    struct kit_request *read, *receive, *send;
    NDK_SGE sges[PIECES];
    struct ready r;
    ULONG count;

    TRY(ready_open(k, &options, NDK_MR_FLAG_ALLOW_LOCAL_WRITE | NDK_MR_FLAG_ALLOW_REMOTE_READ, &r));
    count = k->info.MaxReadRequestSge < PIECES ? k->info.MaxReadRequestSge : PIECES;
    for (ULONG i = 0; i < PIECES; i++)
        sges[i] = kit_sge(r.out, 64 * i, 4);
    kit_fill(r.in->data, 4 * count, 21);
    TRY(kit_ok(
        read = kit_read(r.pair.a.qp, sges, count, (UINT64)(ULONG_PTR)r.in->data, r.in->remote, 0)));
    TRY(kit_expect(read, STATUS_SUCCESS, NULL));
    for (ULONG i = 0; i < count; i++)
        CHECK_BYTES(k, "a piece of the Read", r.out->data + 64 * i, r.in->data + 4 * i, 4);
    if (kit_qp_modest(r.pair.a.adapter).inline_size < 4 * PIECES)
        return;
    TRY(receive_at(&r.pair.b, r.in, 1, &receive));
    TRY(kit_ok(send = kit_send(r.pair.a.qp, sges, PIECES, NDK_OP_FLAG_INLINE)));
    TRY(kit_expect(receive, STATUS_SUCCESS, NULL));
    TRY(kit_expect(send, STATUS_SUCCESS, NULL));
    for (ULONG i = 0; i < PIECES; i++)
        CHECK_BYTES(k, "a piece of the Send", r.in->data + LENGTH + 4 * i, r.out->data + 64 * i, 4);
}

/* 22: it is the message's length that a receive tells, not the buffer's. */
static VOID bytes_of_receives(struct kit *k)
{
    static const ULONG lengths[] = {LENGTH, 1, 0, 17};
    struct ready r;

    TRY(ready_open(k, NULL, NDK_MR_FLAG_ALLOW_LOCAL_WRITE, &r));
    for (ULONG i = 0; i < RTL_NUMBER_OF(lengths); i++) {
        struct kit_request *receive, *send;
        struct kit_result result;
        NDK_SGE sge = kit_sge(r.out, 0, lengths[i]);

        TRY(receive_at(&r.pair.b, r.in, i, &receive));
        TRY(kit_ok(send = kit_send(r.pair.a.qp, &sge, 1, 0)));
        TRY(kit_expect(receive, STATUS_SUCCESS, &result));
        CHECK_EQUAL(k, "BytesTransferred", result.bytes, lengths[i]);
        TRY(kit_expect(send, STATUS_SUCCESS, NULL));
    }
}

/* 23: the sender of an invalidating Send has sent; its receiver has received and invalidated. */
static VOID kinds_of_invalidating_send(struct kit *k)
{
    struct kit_request *fast, *receive, *send;
    struct kit_memory *memory;
    struct kit_result result;
    struct kit_lam *lam;
    struct kit_mr *mr;
    struct ready r;
    UINT32 token;
    NDK_SGE sge;

    TRY(ready_open(k, NULL, NDK_MR_FLAG_ALLOW_LOCAL_WRITE, &r));
    TRY(kit_memory_bare(k, PAGE_SIZE, &memory));
    TRY(kit_lam_new(r.pair.b.adapter, memory->mdl, PAGE_SIZE, &lam));
    TRY(kit_mr_new(r.pair.b.pd, TRUE, &mr));
    TRY(kit_answer_is(kit_fast_start(mr, 1, TRUE), STATUS_SUCCESS));
    TRY(kit_ok(fast = kit_fast_register(r.pair.b.qp, mr, lam, PAGE_SIZE, memory->data,
                                        NDK_OP_FLAG_ALLOW_REMOTE_READ)));
    TRY(kit_expect(fast, STATUS_SUCCESS, NULL));
    token = mr->table->NdkGetRemoteTokenFromMr(mr->ndk);
    TRY(receive_at(&r.pair.b, r.in, 0, &receive));
    sge = kit_sge(r.out, 0, LENGTH);
    TRY(kit_ok(send = kit_send_and_invalidate(r.pair.a.qp, &sge, 1, 0, token)));
    TRY(kit_expect(send, STATUS_SUCCESS, &result));
    CHECK_EQUAL(k, "the sender's Type", result.type, NdkOperationTypeSend);
    TRY(kit_expect(receive, STATUS_SUCCESS, &result));
    CHECK_EQUAL(k, "the receiver's Type", result.type, NdkOperationTypeReceiveAndInvalidate);
    CHECK_EQUAL(k, "the receiver's token", result.output, token);
}

/* ---- the table ------------------------------------------------------------------------------ */

#define LOOP KIT_NEEDS_LOOPBACK
#define RULE(number_, title_, function_, run_, ...)                                                \
    KIT_CASE("S13-" number_, title_, "lifetime 13." number_, function_, run_, __VA_ARGS__)

static const struct kit_case cases[] = {
    RULE("01", "nothing is touched after its completion was called", "NdkConnect",
         touched_after_completion, .needs = LOOP),
    RULE("02", "an antecedent's close waits for the successor's completion to return", "close",
         antecedent_waits_for_return),
    RULE("03", "Dispatch is not read back", "Dispatch", dispatch_is_not_read,
         .needs = LOOP | KIT_NEEDS_DIRECT | KIT_NEEDS_READ),
    RULE("04", "the out parameter is left alone on the asynchronous path", "create",
         out_is_not_written, .needs = KIT_NEEDS_ANSWER),
    RULE("05", "of two arms the stronger holds, not the larger", "NdkArmCq", stronger_arm_holds,
         .needs = LOOP),
    RULE("06", "no completion is missed between polled empty and armed", "NdkArmCq",
         no_completion_is_missed, .needs = LOOP),
    RULE("07", "remote write is granted by both of its bits only", "NdkRegisterMr",
         remote_write_is_two_bits, .needs = LOOP),
    RULE("08", "a failing post lets deferred ones go and completes nothing", "NdkSend",
         failed_post_flushes_deferred, .needs = LOOP, .version = {1, 2}),
    RULE("09", "a silent request that fails leaves an entry", "NdkRead", silent_failure_is_told,
         .needs = LOOP | KIT_NEEDS_READ),
    RULE("10", "the peer's disconnect does not flush", "NdkDisconnect",
         peers_disconnect_does_not_flush, .needs = LOOP),
    RULE("11", "a disconnect waits for transfers, silent ones too", "NdkDisconnect",
         disconnect_waits_for_transfers, .needs = LOOP),
    RULE("12", "an accept is done after the peer has completed", "NdkAccept",
         accept_waits_for_complete, .needs = LOOP),
    RULE("13", "STATUS_PENDING is no outcome", "NdkConnect", pending_is_no_outcome,
         .needs = LOOP | KIT_NEEDS_ANSWER),
    RULE("14", "the sizes of private data", "NdkGetConnectionData", private_data_sizes,
         .needs = LOOP),
    RULE("15", "a port is held by connections of a closed listener", "NdkListen", port_is_held,
         .needs = LOOP),
    RULE("16", "a paused listener refuses", "NdkControlConnectEvents", paused_refuses,
         .needs = LOOP),
    RULE("17", "read limits that are too large are lowered", "NdkConnect", limits_are_capped,
         .needs = LOOP | KIT_NEEDS_READ),
    RULE("18", "the read sink flag is taken by every adapter", "NdkRegisterMr", sink_flag_is_taken,
         .needs = LOOP | KIT_NEEDS_READ),
    RULE("19", "close completions are called as they are declared", "close",
         close_completions_are_called, .needs = LOOP),
    RULE("20", "the version is the provider's, not the consumer's", "open",
         version_is_the_providers),
    RULE("21", "reads have a limit of SGEs of their own, inline sends none", "NdkRead",
         sges_of_reads_and_inline, .needs = LOOP | KIT_NEEDS_READ),
    RULE("22", "BytesTransferred of receives", "NdkReceive", bytes_of_receives, .needs = LOOP),
    RULE("23", "the kinds of an invalidating Send at its two ends", "NdkSendAndInvalidate",
         kinds_of_invalidating_send, .needs = LOOP, .version = {1, 2}),
};

KIT_TOPIC(section13, "the 23 rules that are easily broken");
