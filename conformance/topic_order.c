// SPDX-License-Identifier: MIT
/*
 * What becomes of posted work requests: silent success, fences, deferring, order, flushing, and
 * messages that do not fit their receives (NDKPI 12, 17, lifetime 6).
 */
#include "kit_work.h"

#define LENGTH 64
#define SEED   31

enum data { DATA_SEND, DATA_READ, DATA_WRITE };

/* An end with memory that may be used for anything, and a region of the server's. */
struct one {
    struct kit_end end;
    struct kit_memory *memory;
    UINT64 address;
    UINT32 token;
};

static BOOLEAN one_open(struct kit *k, struct one *one)
{
    RtlZeroMemory(one, sizeof *one);
    TRY_OR_FALSE(kit_end_open(k, NULL, &one->end));
    TRY_OR_FALSE(kit_memory_new(one->end.pd, PAGE_SIZE, KIT_SINK, &one->memory));
    TRY_OR_FALSE(kit_end_connect(&one->end, NULL));
    kit_fill(one->memory->data, LENGTH, SEED);
    return kit_order_expose(k, PAGE_SIZE,
                            NDK_MR_FLAG_ALLOW_REMOTE_READ | NDK_MR_FLAG_ALLOW_REMOTE_WRITE, SEED,
                            &one->address, &one->token);
}

static struct kit_request *post(struct one *one, enum data data, ULONG flags)
{
    /* Reads have a sink of their own: others may read their source at the same time. */
    NDK_SGE sge = kit_sge(one->memory, data == DATA_READ ? PAGE_SIZE / 2 : 0, LENGTH);

    switch (data) {
    case DATA_SEND:
        return kit_send(one->end.qp, &sge, 1, flags);
    case DATA_READ:
        return kit_read(one->end.qp, &sge, 1, one->address, one->token, flags);
    default:
        return kit_write(one->end.qp, &sge, 1, one->address, one->token, flags);
    }
}

/* ---- silent success ------------------------------------------------------------------------- */

#define SILENT 3

static VOID silent(struct kit *k)
{
    enum data data = (enum data)k->test->arg;
    struct kit_request *last;
    struct one one;

    TRY(one_open(k, &one));
    TRY(kit_order_receive(k, data == DATA_SEND ? SILENT + 1 : 1, LENGTH));
    for (ULONG i = 0; i < SILENT; i++)
        TRY(kit_ok(post(&one, data, NDK_OP_FLAG_SILENT_SUCCESS)));
    TRY(kit_ok(last = post(&one, DATA_SEND, 0)));
    TRY(kit_expect(last, STATUS_SUCCESS, NULL));
    for (ULONG i = 0; i < (data == DATA_SEND ? SILENT + 1u : 1u); i++)
        TRY(kit_order_received(k, 1, LENGTH, SEED));
    kit_settle(k);
    TRY(kit_cq_is_empty(one.end.initiator));
}

/* No notification either, whatever was armed. */
static VOID silent_unnoticed(struct kit *k)
{
    struct one one;

    TRY(one_open(k, &one));
    TRY(kit_order_receive(k, 1, LENGTH));
    kit_cq_arm(one.end.initiator, NDK_CQ_NOTIFY_ANY);
    TRY(kit_ok(post(&one, DATA_SEND, NDK_OP_FLAG_SILENT_SUCCESS)));
    TRY(kit_order_received(k, 1, LENGTH, SEED));
    TRY(kit_cq_notified_is(one.end.initiator, 0));
    TRY(kit_cq_is_empty(one.end.initiator));
}

/* A token that nobody was given. */
static struct kit_request *post_wrong(struct one *one, ULONG flags)
{
    NDK_SGE sge = kit_sge(one->memory, 0, LENGTH);

    sge.MemoryRegionToken ^= 0x5a5a5a;
    return kit_send(one->end.qp, &sge, 1, flags);
}

static VOID silent_failure(struct kit *k)
{
    BOOLEAN refused;
    struct one one;

    TRY(one_open(k, &one));
    TRY(kit_expect_local_error(post_wrong(&one, NDK_OP_FLAG_SILENT_SUCCESS), &refused));
    if (refused)
        TRY(kit_still_works(&one.end));
}

/* Behind a failure: flushed, and that is no success. With DEFER both are mostly posted before the
 * first is looked at. */
static VOID silent_flushed(struct kit *k)
{
    struct kit_request *first, *second;
    BOOLEAN refused;
    struct one one;

    TRY(one_open(k, &one));
    TRY((first = post_wrong(&one, NDK_OP_FLAG_SILENT_SUCCESS | NDK_OP_FLAG_DEFER)) != NULL);
    TRY((second = post(&one, DATA_WRITE, NDK_OP_FLAG_SILENT_SUCCESS)) != NULL);
    TRY(kit_expect_local_error(first, &refused));
    if (refused)
        TRY(kit_skip(k, "the provider refuses a bad element when it is posted"));
    if (NT_SUCCESS(second->posted))
        TRY(kit_expect(second, STATUS_CANCELLED, NULL));
}

/* ---- what an error completion does ---------------------------------------------------------- */

static VOID error_ends(struct kit *k)
{
    struct kit_request *receive, *later;
    BOOLEAN refused;
    struct one one;

    TRY(one_open(k, &one));
    TRY(kit_ok(receive = kit_receive_all(&one.end, one.memory, LENGTH)));
    TRY(kit_expect_local_error(post_wrong(&one, 0), &refused));
    if (refused) {
        TRY(kit_still_works(&one.end));
        return;
    }
    TRY(kit_ends(&one.end));
    TRY(kit_expect(receive, STATUS_CANCELLED, NULL));
    TRY((later = post(&one, DATA_SEND, 0)) != NULL);
    if (NT_SUCCESS(later->posted))
        TRY(kit_expect(later, STATUS_CANCELLED, NULL));
}

/* ---- fences --------------------------------------------------------------------------------- */

#define BULK (128u << 10)

/* What is read here is sent on at once, from the same memory. */
static VOID fence(struct kit *k)
{
    BOOLEAN write = (BOOLEAN)(k->test->arg == DATA_WRITE);
    struct kit_request *read, *next;
    struct kit_memory *memory;
    struct kit_end end;
    UINT64 from, to;
    UINT32 from_token, to_token;
    ULONG length;
    NDK_SGE sge;

    TRY(kit_end_open(k, NULL, &end));
    length = k->info.MaxTransferLength < BULK ? k->info.MaxTransferLength : BULK;
    TRY(kit_memory_new(end.pd, length, KIT_SINK, &memory));
    TRY(kit_end_connect(&end, NULL));
    TRY(kit_order_expose(k, length, NDK_MR_FLAG_ALLOW_REMOTE_READ, SEED, &from, &from_token));
    TRY(kit_order_expose(k, length, NDK_MR_FLAG_ALLOW_REMOTE_WRITE, 1, &to, &to_token));
    TRY(kit_order_receive(k, 1, length));
    sge = kit_sge(memory, 0, length);
    TRY(kit_ok(read = kit_read(end.qp, &sge, 1, from, from_token, 0)));
    if (write)
        TRY(kit_ok(kit_write(end.qp, &sge, 1, to, to_token,
                             NDK_OP_FLAG_READ_FENCE | NDK_OP_FLAG_SILENT_SUCCESS)));
    TRY(kit_ok(next = kit_send(end.qp, &sge, 1, NDK_OP_FLAG_READ_FENCE)));
    TRY(kit_expect(read, STATUS_SUCCESS, NULL));
    TRY(kit_expect(next, STATUS_SUCCESS, NULL));
    TRY(kit_order_received(k, 1, length, SEED));
    if (write)
        TRY(kit_order_holds(k, 0, length, SEED));
}

/* ---- deferring ------------------------------------------------------------------------------ */

#define CHAIN 4

static BOOLEAN chain(struct one *one, ULONG flags, struct kit_request **requests)
{
    for (ULONG i = 0; i < CHAIN; i++)
        TRY_OR_FALSE(kit_ok(requests[i] = post(one, DATA_SEND, NDK_OP_FLAG_DEFER | flags)));
    return TRUE;
}

static BOOLEAN chain_received(struct kit *k, ULONG count)
{
    for (ULONG i = 0; i < count; i++)
        TRY_OR_FALSE(kit_order_received(k, 1, LENGTH, SEED));
    return TRUE;
}

static VOID deferred(struct kit *k)
{
    ULONG flags = (ULONG)k->test->arg;
    struct kit_request *requests[CHAIN], *last;
    struct one one;

    TRY(one_open(k, &one));
    TRY(kit_order_receive(k, CHAIN + 1, LENGTH));
    TRY(chain(&one, flags, requests));
    TRY(kit_ok(last = post(&one, DATA_SEND, 0)));
    for (ULONG i = 0; i < CHAIN && !(flags & NDK_OP_FLAG_SILENT_SUCCESS); i++)
        TRY(kit_expect(requests[i], STATUS_SUCCESS, NULL));
    TRY(kit_expect(last, STATUS_SUCCESS, NULL));
    TRY(chain_received(k, CHAIN + 1));
}

/* The end of the chain may be a request of any kind. */
static VOID deferred_to(struct kit *k)
{
    enum data data = (enum data)k->test->arg;
    struct kit_request *requests[CHAIN], *last;
    struct one one;

    TRY(one_open(k, &one));
    TRY(kit_order_receive(k, CHAIN, LENGTH));
    TRY(chain(&one, 0, requests));
    TRY(kit_ok(last = post(&one, data, NDK_OP_FLAG_READ_FENCE)));
    for (ULONG i = 0; i < CHAIN; i++)
        TRY(kit_expect(requests[i], STATUS_SUCCESS, NULL));
    TRY(kit_expect(last, STATUS_SUCCESS, NULL));
    TRY(chain_received(k, CHAIN));
}

enum failure { TOO_MANY, INLINE_TOO_LONG, NO_RIGHT };

/* Something that cannot be posted. */
static BOOLEAN fails(struct one *one, enum failure failure)
{
    struct kit *k = one->end.k;
    NDK_SGE sge = kit_sge(one->memory, 0, LENGTH), *sges;
    ULONG count = k->info.MaxInitiatorRequestSge + 1;
    struct kit_fast fast;

    switch (failure) {
    case TOO_MANY:
        sges = kit_alloc(k, count * sizeof *sges);
        TRY_OR_FALSE(sges != NULL);
        for (ULONG i = 0; i < count; i++)
            sges[i] = kit_sge(one->memory, i, 1);
        return kit_refused(k, kit_send(one->end.qp, sges, count, 0), "one element too many");
    case INLINE_TOO_LONG:
        if (k->info.MaxInlineDataSize >= PAGE_SIZE)
            return kit_skip(k, "MaxInlineDataSize is too large: %u",
                            (unsigned)k->info.MaxInlineDataSize);
        sge.Length = k->info.MaxInlineDataSize + 1;
        return kit_refused(k, kit_send(one->end.qp, &sge, 1, NDK_OP_FLAG_INLINE),
                           "an inline byte too many");
    default: /* the example of NDKPI's pages: a fast-register */
        TRY_OR_FALSE(kit_fast_open(&one->end, PAGE_SIZE, FALSE, &fast));
        return kit_posted(kit_fast_again(one->end.qp, &fast, NDK_OP_FLAG_ALLOW_REMOTE_READ),
                          STATUS_ACCESS_VIOLATION);
    }
}

static VOID deferred_then_failure(struct kit *k)
{
    struct kit_request *requests[CHAIN];
    struct one one;

    TRY(one_open(k, &one));
    TRY(kit_order_receive(k, CHAIN, LENGTH));
    TRY(chain(&one, 0, requests));
    TRY(fails(&one, (enum failure)k->test->arg));
    for (ULONG i = 0; i < CHAIN; i++)
        TRY(kit_expect(requests[i], STATUS_SUCCESS, NULL));
    TRY(chain_received(k, CHAIN));
    kit_settle(k);
    TRY(kit_cq_is_empty(one.end.initiator));
    TRY(kit_still_works(&one.end));
}

static const NTSTATUS done_or_cancelled[] = {STATUS_SUCCESS, STATUS_CANCELLED, STATUS_PENDING};

enum end_of_all { FLUSH, DISCONNECT, CLOSE_CONNECTOR, CLOSE_QP };

/* A chain without an end, and then the end of everything: each completes all the same. */
static VOID deferred_then_end(struct kit *k)
{
    struct kit_request *requests[CHAIN];
    struct kit_call *call = NULL, *closed = NULL;
    struct one one;

    TRY(one_open(k, &one));
    TRY(kit_order_receive(k, CHAIN, LENGTH));
    TRY(chain(&one, 0, requests));
    switch ((enum end_of_all)k->test->arg) {
    case FLUSH:
        kit_flush(one.end.qp);
        break;
    case DISCONNECT:
        TRY((call = kit_disconnect_start(one.end.connector)) != NULL);
        TRY(kit_order_disconnect(k));
        TRY(kit_answer_is(call, STATUS_SUCCESS));
        break;
    case CLOSE_QP:
        TRY((call = kit_close_start(&one.end.qp->object)) != NULL);
        /* FALLTHROUGH */
    default:
        TRY((closed = kit_close_start(&one.end.connector->object)) != NULL);
    }
    for (ULONG i = 0; i < CHAIN; i++)
        TRY(kit_expect_among(requests[i], done_or_cancelled, NULL));
}

/* ---- order ---------------------------------------------------------------------------------- */

#define ROUNDS 5

/* Requests of all kinds, every other one silent: the kit looks at the order of what completes. */
static VOID initiator_order(struct kit *k)
{
    BOOLEAN reads = (BOOLEAN)(k->info.MaxInboundReadLimit && k->info.MaxOutboundReadLimit);
    struct kit_request *last = NULL;
    struct kit_result result;
    struct one one;
    ULONG sends = 0;

    TRY(one_open(k, &one));
    reads = (BOOLEAN)(k->info.MaxInboundReadLimit && k->info.MaxOutboundReadLimit);
    TRY(kit_order_receive(k, ROUNDS, LENGTH));
    for (ULONG i = 0; i < ROUNDS * 3; i++) {
        enum data data = i % 3 == 0 ? DATA_SEND : i % 3 == 1 && reads ? DATA_READ : DATA_WRITE;

        sends += data == DATA_SEND;
        TRY(kit_ok(last = post(&one, data, i % 2 ? NDK_OP_FLAG_SILENT_SUCCESS : 0)));
    }
    do {
        TRY(kit_cq_next(one.end.initiator, &result));
        CHECK_STATUS(k, "a request", result.status, STATUS_SUCCESS);
    } while (result.request != last);
    for (ULONG i = 0; i < sends; i++)
        TRY(kit_order_received(k, 1, LENGTH, SEED));
}

static VOID receive_order(struct kit *k)
{
    struct kit_request *receives[ROUNDS];
    struct kit_memory *memory;
    struct kit_result result;
    struct kit_end end;

    TRY(kit_end_open(k, NULL, &end));
    TRY(kit_memory_new(end.pd, ROUNDS * LENGTH, KIT_SINK, &memory));
    for (ULONG i = 0; i < ROUNDS; i++) {
        NDK_SGE sge = kit_sge(memory, i * LENGTH, LENGTH);

        TRY(kit_ok(receives[i] = kit_receive(end.qp, &sge, 1)));
    }
    TRY(kit_end_connect(&end, NULL));
    for (ULONG i = 0; i < ROUNDS; i++)
        TRY(kit_order_send(k, 1, LENGTH - i, 0, SEED + i));
    for (ULONG i = 0; i < ROUNDS; i++) {
        TRY(kit_expect(receives[i], STATUS_SUCCESS, &result));
        CHECK_EQUAL(k, "BytesTransferred", result.bytes, LENGTH - i);
        TRY(kit_filled(k, "the message", memory->data + i * LENGTH, LENGTH - i, SEED + i));
    }
}

/* ---- flushing ------------------------------------------------------------------------------- */

#define FLUSHED 2

static BOOLEAN receives(struct kit_qp *qp, struct kit_memory *memory, struct kit_request **requests)
{
    NDK_SGE sge = kit_sge(memory, 0, LENGTH);

    for (ULONG i = 0; i < FLUSHED; i++)
        TRY_OR_FALSE(kit_ok(requests[i] = kit_receive(qp, &sge, 1)));
    return TRUE;
}

static BOOLEAN cancelled(struct kit_request **requests)
{
    for (ULONG i = 0; i < FLUSHED; i++)
        TRY_OR_FALSE(kit_expect(requests[i], STATUS_CANCELLED, NULL));
    return TRUE;
}

static VOID flush_unconnected(struct kit *k)
{
    struct kit_request *requests[FLUSHED];
    struct kit_memory *memory;
    struct kit_end end;

    TRY(kit_end_open(k, NULL, &end));
    TRY(kit_memory_new(end.pd, LENGTH, NDK_MR_FLAG_ALLOW_LOCAL_WRITE, &memory));
    TRY(receives(end.qp, memory, requests));
    kit_cq_arm(end.receive, NDK_CQ_NOTIFY_ANY);
    kit_flush(end.qp);
    TRY(kit_cq_wait_notified(end.receive, 1));
    TRY(kit_cq_notified_is(end.receive, 1));
    TRY(cancelled(requests));
    TRY(kit_cq_is_empty(end.receive));
}

static VOID flush_nothing(struct kit *k)
{
    struct kit_end end;

    TRY(kit_end_open(k, NULL, &end));
    kit_cq_arm(end.receive, NDK_CQ_NOTIFY_ANY);
    kit_cq_arm(end.initiator, NDK_CQ_NOTIFY_ANY);
    kit_flush(end.qp);
    kit_flush(end.qp);
    TRY(kit_cq_notified_is(end.receive, 0));
    TRY(kit_cq_notified_is(end.initiator, 0));
    TRY(kit_cq_is_empty(end.receive));
    TRY(kit_cq_is_empty(end.initiator));
}

/* Of the other queue some may have been done already. */
static VOID flush_connected(struct kit *k)
{
    struct kit_request *requests[FLUSHED], *writes[FLUSHED];
    struct one one;

    TRY(one_open(k, &one));
    TRY(receives(one.end.qp, one.memory, requests));
    for (ULONG i = 0; i < FLUSHED; i++)
        TRY(kit_ok(writes[i] = post(&one, k->test->arg ? DATA_READ : DATA_WRITE, 0)));
    kit_flush(one.end.qp);
    kit_flush(one.end.qp);
    TRY(cancelled(requests));
    for (ULONG i = 0; i < FLUSHED; i++)
        TRY(kit_expect_among(writes[i], done_or_cancelled, NULL));
    kit_settle(k);
    TRY(kit_cq_is_empty(one.end.receive));
    TRY(kit_cq_is_empty(one.end.initiator));
}

static VOID flush_shared_cq(struct kit *k)
{
    struct kit_request *first[FLUSHED], *second[FLUSHED];
    struct kit_memory *memory;
    struct kit_end end;
    struct kit_qp *qp;

    TRY(kit_end_open(k, NULL, &end));
    TRY(kit_memory_new(end.pd, LENGTH, NDK_MR_FLAG_ALLOW_LOCAL_WRITE, &memory));
    TRY(kit_qp_new(end.pd, end.receive, end.receive, NULL, &qp));
    TRY(receives(qp, memory, first));
    TRY(receives(end.qp, memory, second));
    kit_flush(end.qp);
    TRY(cancelled(second));
    kit_settle(k);
    TRY(kit_cq_is_empty(end.receive));
    kit_flush(qp);
    TRY(cancelled(first));
}

/* ---- messages and receives that do not fit -------------------------------------------------- */

#define SMALL 16

static VOID receive_too_short(struct kit *k)
{
    struct kit_request *receive, *behind;
    struct kit_memory *memory;
    struct kit_end end;

    TRY(kit_end_open(k, NULL, &end));
    TRY(kit_memory_new(end.pd, LENGTH, NDK_MR_FLAG_ALLOW_LOCAL_WRITE, &memory));
    TRY(kit_ok(receive = kit_receive_all(&end, memory, SMALL)));
    TRY(kit_ok(behind = kit_receive_all(&end, memory, SMALL)));
    TRY(kit_end_connect(&end, NULL));
    TRY(kit_order_send(k, 1, LENGTH, 0, SEED));
    TRY(kit_expect(receive, STATUS_BUFFER_OVERFLOW, NULL));
    TRY(kit_ends(&end));
    TRY(kit_expect(behind, STATUS_CANCELLED, NULL));
    for (ULONG i = SMALL; i < LENGTH; i++)
        CHECK_EQUAL(k, "a byte behind the receive", memory->data[i], 0);
}

static VOID send_too_long(struct kit *k)
{
    struct one one;

    TRY(one_open(k, &one));
    TRY(kit_order_receive(k, 1, SMALL));
    TRY(kit_expect_remote_error(post(&one, DATA_SEND, 0), STATUS_REMOTE_RESOURCES));
    TRY(kit_ends(&one.end));
}

/* The receive comes later: either the message was kept for it, or the connection is over. */
static VOID receive_late(struct kit *k)
{
    struct kit_memory *out, *in;
    struct kit_request *receive;
    struct kit_result result;
    struct kit_pair pair;

    TRY(kit_pair_open(k, NULL, &pair));
    TRY(kit_memory_new(pair.a.pd, LENGTH, 0, &out));
    TRY(kit_memory_new(pair.b.pd, LENGTH, NDK_MR_FLAG_ALLOW_LOCAL_WRITE, &in));
    kit_fill(out->data, LENGTH, SEED);
    TRY(kit_ok(kit_send_all(&pair.a, out, LENGTH, 0)));
    kit_settle(k);
    TRY((receive = kit_receive_all(&pair.b, in, LENGTH)) != NULL);
    if (NT_SUCCESS(receive->posted)) {
        TRY(kit_cq_next(pair.b.receive, &result));
        if (result.status == STATUS_SUCCESS) {
            TRY(kit_filled(k, "the message", in->data, LENGTH, SEED));
            return;
        }
        CHECK_STATUS(k, "a receive that came too late", result.status, STATUS_CANCELLED);
    }
    TRY(kit_ends(&pair.a));
    TRY(kit_ends(&pair.b));
}

static VOID receive_never(struct kit *k)
{
    struct one one;

    TRY(one_open(k, &one));
    TRY(kit_expect_remote_error(post(&one, DATA_SEND, 0), STATUS_IO_TIMEOUT));
    TRY(kit_ends(&one.end));
}

/* ---- the table ------------------------------------------------------------------------------ */

#define ORDER(id_, title_, reference_, function_, run_, ...)                                       \
    KIT_CASE_TWO(id_, title_, reference_, "Ndk" function_, kit_obey, run_, __VA_ARGS__)

static const struct kit_case cases[] = {
    ORDER("ORD-001", "silent Sends leave nothing", "lifetime 6.4", "Send", silent,
          .arg = DATA_SEND),
    ORDER("ORD-002", "silent Writes leave nothing", "lifetime 6.4", "Write", silent,
          .arg = DATA_WRITE),
    ORDER("ORD-003", "silent Reads leave nothing", "lifetime 6.4", "Read", silent, .arg = DATA_READ,
          .needs = KIT_NEEDS_READ),
    ORDER("ORD-004", "a silent success satisfies no arm", "lifetime 6.4", "Send", silent_unnoticed,
          .arg = 0),
    ORDER("ORD-005", "a silent request that fails leaves its entry", "lifetime 6.4", "Send",
          silent_failure, .arg = 0),
    ORDER("ORD-006", "a silent request that is flushed leaves its entry", "lifetime 6.4", "Write",
          silent_flushed, .version = {1, 2}),
    ORDER("ORD-007", "an error completion ends the connection", "lifetime 6.10", "Send", error_ends,
          .arg = 0),

    ORDER("ORD-011", "a fenced Send waits for the Read before it", "lifetime 6.5", "Send", fence,
          .arg = DATA_SEND, .needs = KIT_NEEDS_READ),
    ORDER("ORD-012", "a fenced Write waits for the Read before it", "lifetime 6.5", "Write", fence,
          .arg = DATA_WRITE, .needs = KIT_NEEDS_READ),

    ORDER("ORD-021", "deferred requests complete with the end of their chain", "lifetime 6.6 no. 2",
          "Send", deferred, .version = {1, 2}),
    ORDER("ORD-022", "deferred silent requests vouched for by the end of their chain",
          "lifetime 6.6 no. 2", "Send", deferred, .arg = NDK_OP_FLAG_SILENT_SUCCESS,
          .version = {1, 2}),
    ORDER("ORD-023", "a chain that ends with a Write", "lifetime 6.6 no. 4", "Write", deferred_to,
          .arg = DATA_WRITE, .version = {1, 2}),
    ORDER("ORD-024", "a chain that ends with a fenced Read", "lifetime 6.6 no. 4", "Read",
          deferred_to, .arg = DATA_READ, .version = {1, 2}, .needs = KIT_NEEDS_READ),
    ORDER("ORD-025", "a refused Send sends deferred ones on their way", "lifetime 6.6 no. 3",
          "Send", deferred_then_failure, .arg = TOO_MANY, .version = {1, 2}),
    ORDER("ORD-026", "a refused inline Send sends deferred ones on their way", "lifetime 6.6 no. 3",
          "Send", deferred_then_failure, .arg = INLINE_TOO_LONG, .version = {1, 2}),
    ORDER("ORD-027", "a refused FastRegister sends deferred ones on their way",
          "lifetime 6.6 no. 5", "FastRegister", deferred_then_failure, .arg = NO_RIGHT,
          .version = {1, 2}),
    ORDER("ORD-028", "deferred requests are flushed", "lifetime 6.6", "Flush", deferred_then_end,
          .arg = FLUSH, .version = {1, 2}),
    ORDER("ORD-029", "deferred requests complete when the connection ends", "lifetime 6.6",
          "Disconnect", deferred_then_end, .arg = DISCONNECT, .version = {1, 2}),
    ORDER("ORD-030", "deferred requests complete when the connector is closed", "lifetime 6.6",
          "CloseConnector", deferred_then_end, .arg = CLOSE_CONNECTOR, .version = {1, 2}),
    ORDER("ORD-031", "deferred requests complete when the QP is closed", "lifetime 6.6", "CloseQp",
          deferred_then_end, .arg = CLOSE_QP, .version = {1, 2}),

    ORDER("ORD-041", "initiator requests of all kinds complete in their order", "lifetime 6.3",
          "Send", initiator_order, .arg = 0),
    ORDER("ORD-042", "receives complete in their order", "lifetime 6.3", "Receive", receive_order,
          .arg = 0),

    KIT_CASE("ORD-051", "flush: two receives without a connection, one notification", "NDKPI 12.1",
             "NdkFlush", flush_unconnected),
    KIT_CASE("ORD-052", "flush: nothing to cancel, nothing comes", "NDKPI 12.1", "NdkFlush",
             flush_nothing),
    ORDER("ORD-053", "flush: both queues of a connection, with Writes", "NDKPI 12.1", "Flush",
          flush_connected, .arg = 0),
    ORDER("ORD-054", "flush: both queues of a connection, with Reads", "NDKPI 12.1", "Flush",
          flush_connected, .arg = 1, .needs = KIT_NEEDS_READ),
    KIT_CASE("ORD-055", "flush: only that QP, though the CQ is shared", "NDKPI 12.1", "NdkFlush",
             flush_shared_cq),

    ORDER("ORD-061", "a receive that is too short: BUFFER_OVERFLOW and the end", "NDKPI 17",
          "Receive", receive_too_short, .arg = 0),
    ORDER("ORD-062", "a Send that is too long for the receive", "NDKPI 17", "Send", send_too_long,
          .arg = 0),
    KIT_CASE("ORD-063", "a Send whose receive comes late", "lifetime 6.10", "NdkReceive",
             receive_late, .needs = KIT_NEEDS_LOOPBACK),
    ORDER("ORD-064", "a Send whose receive never comes", "lifetime 6.10", "Send", receive_never,
          .arg = 0),
};

KIT_TOPIC(order, "what becomes of work requests");
