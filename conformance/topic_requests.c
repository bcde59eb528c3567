// SPDX-License-Identifier: MIT
/*
 * Posting work requests: where they may not be posted, how many elements and bytes they name, full
 * queues, inline data (NDKPI 12, lifetime 6.1, 6.7). What becomes of posted ones is in
 * topic_order.c.
 */
#include "kit_work.h"

#define LENGTH 64
#define SEED   21

/* ---- without a connection ------------------------------------------------------------------- */

enum kind { SEND, SEND_INVALIDATE, READ, WRITE, FAST_REGISTER, INVALIDATE, BIND };

/* What a request of any kind names. */
struct things {
    struct kit_end end;
    struct kit_memory *memory;
    struct kit_fast fast;
    struct kit_mw *mw;
};

static BOOLEAN things_open(struct kit *k, struct things *t)
{
    enum kind kind = (enum kind)k->test->arg;

    TRY_OR_FALSE(kit_end_open(k, NULL, &t->end));
    TRY_OR_FALSE(kit_memory_new(t->end.pd, LENGTH, KIT_SINK, &t->memory));
    if (kind == FAST_REGISTER || kind == INVALIDATE)
        TRY_OR_FALSE(kit_fast_open(&t->end, PAGE_SIZE, FALSE, &t->fast));
    if (kind == BIND)
        TRY_OR_FALSE(kit_mw_new(t->end.pd, &t->mw));
    return TRUE;
}

static struct kit_request *post(struct things *t, enum kind kind)
{
    UINT64 address = (UINT64)(ULONG_PTR)t->memory->data;
    struct kit_qp *qp = t->end.qp;
    NDK_SGE sge = kit_sge(t->memory, 0, LENGTH);

    switch (kind) {
    case SEND:
        return kit_send(qp, &sge, 1, 0);
    case SEND_INVALIDATE:
        return kit_send_and_invalidate(qp, &sge, 1, 0, t->memory->remote);
    case READ:
        return kit_read(qp, &sge, 1, address, t->memory->remote, 0);
    case WRITE:
        return kit_write(qp, &sge, 1, address, t->memory->remote, 0);
    case FAST_REGISTER:
        return kit_fast_again(qp, &t->fast, 0);
    case INVALIDATE:
        return kit_invalidate(qp, &t->fast.mr->object, 0);
    default:
        return kit_bind(qp, t->memory->mr, t->mw, t->memory->data, LENGTH,
                        NDK_OP_FLAG_ALLOW_REMOTE_READ);
    }
}

static VOID unconnected(struct kit *k)
{
    struct things t;

    TRY(things_open(k, &t));
    TRY(kit_posted(post(&t, (enum kind)k->test->arg), STATUS_CONNECTION_INVALID));
    kit_settle(k);
    TRY(kit_cq_is_empty(t.end.initiator));
}

/* The connection was and is no more: refused as if it had never been, or flushed. */
static VOID disconnected(struct kit *k)
{
    struct kit_call *call;
    struct kit_request *r;
    struct things t;

    TRY(things_open(k, &t));
    TRY(kit_end_connect(&t.end, NULL));
    TRY((call = kit_disconnect_start(t.end.connector)) != NULL);
    TRY(kit_order_disconnect(k));
    TRY(kit_answer_is(call, STATUS_SUCCESS));
    TRY((r = post(&t, (enum kind)k->test->arg)) != NULL);
    if (NT_SUCCESS(r->posted))
        TRY(kit_expect(r, STATUS_CANCELLED, NULL));
    else
        TRY(kit_posted(r, STATUS_CONNECTION_INVALID));
}

/* ---- how many elements ---------------------------------------------------------------------- */

#define PIECE 3 /* bytes of one element, each ... */
#define APART 8 /* ... so far behind the one before */
#define MOST  4096

enum data { DATA_SEND, DATA_RECEIVE, DATA_READ, DATA_WRITE };

struct gather {
    struct kit_end_options options;
    struct kit_end end;
    struct kit_memory *memory;
    NDK_SGE *sges;
    UCHAR *flat; /* what the elements hold, one behind the other */
    ULONG count, length;
};

static ULONG sge_limit(const NDK_ADAPTER_INFO *info, enum data data)
{
    if (data == DATA_RECEIVE)
        return info->MaxReceiveRequestSge;
    return data == DATA_READ ? info->MaxReadRequestSge : info->MaxInitiatorRequestSge;
}

/* A queue pair with the adapter's limits, and limit + extra elements of which each request may name
 * `limit`; not connected yet. */
static BOOLEAN gather_open(struct kit *k, enum data data, struct gather *g)
{
    const NDK_ADAPTER_INFO *info = &k->info;
    struct kit_adapter *adapter;

    RtlZeroMemory(g, sizeof *g);
    TRY_OR_FALSE(kit_adapter_open(k, &adapter));
    g->count = sge_limit(info, data);
    if (g->count > MOST)
        return kit_skip(k, "%u elements are too many for this case", (unsigned)g->count);
    g->options.sizes.initiator_sge = info->MaxInitiatorRequestSge;
    g->options.sizes.receive_sge = info->MaxReceiveRequestSge;
    g->length = g->count * PIECE;
    g->sges = kit_alloc(k, (g->count + 1) * sizeof *g->sges);
    g->flat = kit_alloc(k, g->length);
    TRY_OR_FALSE(g->sges && g->flat);
    TRY_OR_FALSE(kit_end_open(k, &g->options, &g->end));
    TRY_OR_FALSE(kit_memory_new(g->end.pd, (g->count + 1) * APART, KIT_SINK, &g->memory));
    for (ULONG i = 0; i <= g->count; i++) /* from the last to the first */
        g->sges[i] = kit_sge(g->memory, (g->count - i) * APART, PIECE);
    return TRUE;
}

static VOID gather_copy(struct gather *g, BOOLEAN out)
{
    for (ULONG i = 0; i < g->count; i++) {
        UCHAR *there = g->sges[i].VirtualAddress, *flat = g->flat + i * PIECE;

        RtlCopyMemory(out ? there : flat, out ? flat : there, PIECE);
    }
}

static VOID sges_sent(struct kit *k)
{
    struct kit_request *r;
    struct gather g;

    TRY(gather_open(k, DATA_SEND, &g));
    TRY(kit_end_connect(&g.end, &g.options));
    kit_fill(g.flat, g.length, SEED);
    gather_copy(&g, TRUE);
    TRY(kit_order_receive(k, 1, g.length));
    TRY(kit_expect(r = kit_send(g.end.qp, g.sges, g.count, 0), STATUS_SUCCESS, NULL));
    TRY(kit_order_received(k, 1, g.length, SEED));
    TRY(kit_refused(k, r = kit_send(g.end.qp, g.sges, g.count + 1, 0), "a Send with one too many"));
    TRY(kit_still_works(&g.end));
}

static VOID sges_received(struct kit *k)
{
    struct kit_request *r;
    struct gather g;

    TRY(gather_open(k, DATA_RECEIVE, &g));
    TRY(kit_refused(k, kit_receive(g.end.qp, g.sges, g.count + 1), "a receive with one too many"));
    TRY(kit_ok(r = kit_receive(g.end.qp, g.sges, g.count)));
    TRY(kit_end_connect(&g.end, &g.options));
    TRY(kit_order_send(k, 1, g.length, 0, SEED));
    TRY(kit_expect(r, STATUS_SUCCESS, NULL));
    gather_copy(&g, FALSE);
    TRY(kit_filled(k, "the message", g.flat, g.length, SEED));
    CHECK_EQUAL(k, "the byte behind an element", g.memory->data[APART + PIECE], 0);
}

static VOID sges_written(struct kit *k)
{
    struct gather g;
    UINT64 address;
    UINT32 token;

    TRY(gather_open(k, DATA_WRITE, &g));
    TRY(kit_end_connect(&g.end, &g.options));
    kit_fill(g.flat, g.length, SEED);
    gather_copy(&g, TRUE);
    TRY(kit_order_expose(k, g.length, NDK_MR_FLAG_ALLOW_REMOTE_WRITE, 1, &address, &token));
    TRY(kit_refused(k, kit_write(g.end.qp, g.sges, g.count + 1, address, token, 0),
                    "a Write with one too many"));
    TRY(kit_expect(kit_write(g.end.qp, g.sges, g.count, address, token, 0), STATUS_SUCCESS, NULL));
    TRY(kit_still_works(&g.end)); /* behind it: so the Write is there */
    TRY(kit_order_holds(k, 0, g.length, SEED));
}

static VOID sges_read(struct kit *k)
{
    struct gather g;
    UINT64 address;
    UINT32 token;

    TRY(gather_open(k, DATA_READ, &g));
    TRY(kit_end_connect(&g.end, &g.options));
    TRY(kit_order_expose(k, g.length, NDK_MR_FLAG_ALLOW_REMOTE_READ, SEED, &address, &token));
    TRY(kit_refused(k, kit_read(g.end.qp, g.sges, g.count + 1, address, token, 0),
                    "a Read with one too many"));
    TRY(kit_expect(kit_read(g.end.qp, g.sges, g.count, address, token, 0), STATUS_SUCCESS, NULL));
    gather_copy(&g, FALSE);
    TRY(kit_filled(k, "what was read", g.flat, g.length, SEED));
    CHECK_EQUAL(k, "the byte behind an element", g.memory->data[APART + PIECE], 0);
}

/* None at all: an empty message. */
static VOID no_sges(struct kit *k)
{
    enum data data = (enum data)k->test->arg;
    struct kit_request *r = NULL;
    struct kit_result result;
    struct kit_end end;
    UINT64 address;
    UINT32 token;

    TRY(kit_end_open(k, NULL, &end));
    if (data == DATA_RECEIVE)
        TRY(kit_ok(r = kit_receive(end.qp, NULL, 0)));
    TRY(kit_end_connect(&end, NULL));
    TRY(kit_order_expose(k, LENGTH, NDK_MR_FLAG_ALLOW_REMOTE_READ | NDK_MR_FLAG_ALLOW_REMOTE_WRITE,
                         SEED, &address, &token));
    if (data == DATA_SEND) {
        TRY(kit_order_receive(k, 1, LENGTH));
        r = kit_send(end.qp, NULL, 0, 0);
    } else if (data == DATA_RECEIVE) {
        TRY(kit_order_send(k, 1, 0, 0, SEED));
    } else if (data == DATA_WRITE) {
        r = kit_write(end.qp, NULL, 0, address, token, 0);
    } else {
        r = kit_read(end.qp, NULL, 0, address, token, 0);
    }
    TRY(kit_expect(r, STATUS_SUCCESS, &result));
    if (data == DATA_SEND)
        TRY(kit_order_received(k, 1, 0, SEED));
    if (data == DATA_RECEIVE)
        CHECK_EQUAL(k, "BytesTransferred", result.bytes, 0);
    TRY(kit_still_works(&end));
    TRY(kit_order_holds(k, 0, LENGTH, SEED));
}

/* ---- how many bytes ------------------------------------------------------------------------- */

#define LARGEST (80u << 20) /* bytes of memory that a case asks for */

/* One byte more than MaxTransferLength, in as many elements as may be. */
static VOID too_long(struct kit *k)
{
    enum data data = (enum data)k->test->arg;
    struct kit_request *r;
    struct gather g;
    ULONG limit, each, last;
    UINT64 address;
    UINT32 token;

    TRY(gather_open(k, data, &g));
    limit = k->info.MaxTransferLength;
    each = limit / g.count;
    last = limit - each * (g.count - 1) + 1;
    if (limit == MAXULONG || last > LARGEST)
        TRY(kit_skip(k,
                     "more than MaxTransferLength (%u) needs a larger region than a case has (%u)",
                     (unsigned)limit, LARGEST));
    TRY(kit_memory_new(g.end.pd, last, KIT_SINK, &g.memory));
    for (ULONG i = 0; i < g.count; i++)
        g.sges[i] = kit_sge(g.memory, 0, i == g.count - 1 ? last : each);
    TRY(kit_end_connect(&g.end, &g.options));
    TRY(kit_order_expose(k, LENGTH, NDK_MR_FLAG_ALLOW_REMOTE_READ | NDK_MR_FLAG_ALLOW_REMOTE_WRITE,
                         SEED, &address, &token));
    if (data == DATA_SEND)
        r = kit_send(g.end.qp, g.sges, g.count, 0);
    else if (data == DATA_RECEIVE)
        r = kit_receive(g.end.qp, g.sges, g.count);
    else if (data == DATA_WRITE)
        r = kit_write(g.end.qp, g.sges, g.count, address, token, 0);
    else
        r = kit_read(g.end.qp, g.sges, g.count, address, token, 0);
    TRY(r != NULL);
    if (NT_SUCCESS(r->posted) && data != DATA_RECEIVE) { /* NDKPI 17 knows this one too */
        TRY(kit_expect(r, STATUS_DATA_OVERRUN, NULL));
        return;
    }
    TRY(kit_refused(k, r, "a request of MaxTransferLength + 1 bytes"));
    TRY(kit_still_works(&g.end));
}

#define LONGEST (4u << 20)

/* Exactly MaxTransferLength, where that is not more than a case may move. */
static VOID longest(struct kit *k)
{
    struct kit_memory *memory;
    struct kit_end end;
    UINT64 address;
    UINT32 token;
    ULONG limit;
    NDK_SGE sge;

    TRY(kit_end_open(k, NULL, &end));
    limit = k->info.MaxTransferLength;
    if (limit > LONGEST)
        TRY(kit_skip(k, "MaxTransferLength is %u, a case moves no more than %u", (unsigned)limit,
                     LONGEST));
    TRY(kit_memory_new(end.pd, limit, KIT_SINK, &memory));
    TRY(kit_end_connect(&end, NULL));
    kit_fill(memory->data, limit, SEED);
    TRY(kit_order_expose(k, limit, NDK_MR_FLAG_ALLOW_REMOTE_READ | NDK_MR_FLAG_ALLOW_REMOTE_WRITE,
                         1, &address, &token));
    TRY(kit_order_receive(k, 1, limit));
    sge = kit_sge(memory, 0, limit);
    TRY(kit_expect(kit_send(end.qp, &sge, 1, 0), STATUS_SUCCESS, NULL));
    TRY(kit_order_received(k, 1, limit, SEED));
    TRY(kit_expect(kit_write(end.qp, &sge, 1, address, token, 0), STATUS_SUCCESS, NULL));
    if (k->info.MaxInboundReadLimit && k->info.MaxOutboundReadLimit) {
        RtlZeroMemory(memory->data, limit);
        TRY(kit_expect(kit_read(end.qp, &sge, 1, address, token, 0), STATUS_SUCCESS, NULL));
        TRY(kit_filled(k, "what was written and read", memory->data, limit, SEED));
    }
}

/* ---- full queues ---------------------------------------------------------------------------- */

/* A depth is what the consumer may count on; more than the adapter's there cannot be. */
static VOID receive_queue_full(struct kit *k)
{
    struct kit_end_options options = {.sizes = {.receive_depth = (ULONG)k->test->arg}};
    struct kit_request *r = NULL;
    struct kit_memory *memory;
    struct kit_result result;
    struct kit_adapter *adapter;
    struct kit_end end;
    ULONG taken = 0, most;

    TRY(kit_adapter_open(k, &adapter));
    most = k->info.MaxReceiveQueueDepth;
    options.cq_depth = k->info.MaxCqDepth;
    if (most > options.cq_depth || most > MOST)
        most = options.cq_depth < MOST ? options.cq_depth : MOST;
    if (!options.sizes.receive_depth)
        options.sizes.receive_depth = most;
    TRY(kit_end_open(k, &options, &end));
    TRY(kit_memory_new(end.pd, LENGTH, NDK_MR_FLAG_ALLOW_LOCAL_WRITE, &memory));
    while (taken <= most) {
        TRY((r = kit_receive_all(&end, memory, LENGTH)) != NULL);
        if (!NT_SUCCESS(r->posted))
            break;
        taken++;
    }
    CHECK(k, taken >= options.sizes.receive_depth, "a queue of depth %u took %u",
          (unsigned)options.sizes.receive_depth, (unsigned)taken);
    if (k->info.MaxReceiveQueueDepth <= most)
        TRY(kit_refused(k, r, "one receive more than MaxReceiveQueueDepth"));
    kit_flush(end.qp);
    for (ULONG i = 0; i < taken; i++) {
        TRY(kit_cq_next(end.receive, &result));
        CHECK_STATUS(k, "a flushed receive", result.status, STATUS_CANCELLED);
    }
    kit_settle(k);
    TRY(kit_cq_is_empty(end.receive));
}

/* The full queue takes another once one has completed. */
static VOID receive_queue_again(struct kit *k)
{
    static const struct kit_end_options options = {.sizes = {.receive_depth = 2}};
    struct kit_request *r[2], *third;
    struct kit_memory *memory;
    struct kit_end end;

    TRY(kit_end_open(k, &options, &end));
    TRY(kit_memory_new(end.pd, LENGTH, NDK_MR_FLAG_ALLOW_LOCAL_WRITE, &memory));
    for (ULONG i = 0; i < 2; i++)
        TRY(kit_ok(r[i] = kit_receive_all(&end, memory, LENGTH)));
    TRY(kit_end_connect(&end, NULL));
    TRY(kit_order_send(k, 1, LENGTH, 0, SEED));
    TRY(kit_expect(r[0], STATUS_SUCCESS, NULL));
    TRY(kit_ok(third = kit_receive_all(&end, memory, LENGTH)));
    TRY(kit_order_send(k, 2, LENGTH, 0, SEED + 1));
    TRY(kit_expect(r[1], STATUS_SUCCESS, NULL));
    TRY(kit_expect(third, STATUS_SUCCESS, NULL));
}

#define BULK  (1u << 20)
#define TRIES 512
#define SHORT 4

/* Large Writes, posted faster than they can go. */
static VOID initiator_queue_full(struct kit *k)
{
    static const struct kit_end_options options = {.sizes = {.initiator_depth = SHORT},
                                                   .cq_depth = TRIES};
    ULONG length, posted = 0, polled = 0;
    struct kit_request *r = NULL;
    struct kit_memory *memory;
    struct kit_result result;
    struct kit_end end;
    UINT64 address;
    UINT32 token;
    NDK_SGE sge;

    TRY(kit_end_open(k, &options, &end));
    length = k->info.MaxTransferLength < BULK ? k->info.MaxTransferLength : BULK;
    TRY(kit_memory_new(end.pd, length, 0, &memory));
    TRY(kit_end_connect(&end, &options));
    TRY(kit_order_expose(k, length, NDK_MR_FLAG_ALLOW_REMOTE_WRITE, 1, &address, &token));
    sge = kit_sge(memory, 0, length);
    while (posted < TRIES) {
        TRY((r = kit_write(end.qp, &sge, 1, address, token, 0)) != NULL);
        if (!NT_SUCCESS(r->posted))
            break;
        posted++;
    }
    CHECK(k, posted >= SHORT, "a queue of depth %u took %u", SHORT, (unsigned)posted);
    for (; polled < posted; polled++) {
        TRY(kit_cq_next(end.initiator, &result));
        CHECK_STATUS(k, "a Write", result.status, STATUS_SUCCESS);
    }
    TRY(kit_still_works(&end));
    if (posted == TRIES)
        TRY(kit_skip(k, "the queue never was full: it empties faster than the kit posts"));
}

/* ---- inline data ---------------------------------------------------------------------------- */

#define INLINE_MOST 4096

/* A queue pair with InlineDataSize at the adapter's limit, and memory that is not registered. */
static BOOLEAN inline_open(struct kit *k, struct gather *g)
{
    struct kit_adapter *adapter;

    RtlZeroMemory(g, sizeof *g);
    TRY_OR_FALSE(kit_adapter_open(k, &adapter));
    g->length = k->info.MaxInlineDataSize;
    if (!g->length)
        return kit_skip(k, "MaxInlineDataSize is 0");
    if (g->length > INLINE_MOST)
        g->length = INLINE_MOST;
    g->options.sizes.inline_size = g->length;
    TRY_OR_FALSE(kit_end_open(k, &g->options, &g->end));
    TRY_OR_FALSE(kit_memory_bare(k, g->length + 1, &g->memory));
    g->sges = kit_alloc(k, (g->length + 1) * sizeof *g->sges);
    TRY_OR_FALSE(g->sges != NULL);
    g->sges[0] = kit_sge(g->memory, 0, g->length);
    g->sges[0].MemoryRegionToken = 0xdeadbeef; /* means nothing */
    kit_fill(g->memory->data, g->length, SEED);
    return kit_end_connect(&g->end, &g->options);
}

static VOID inline_captured(struct kit *k)
{
    struct kit_request *r;
    struct gather g;

    TRY(inline_open(k, &g));
    TRY(kit_order_receive(k, 1, g.length));
    r = kit_send(g.end.qp, g.sges, 1, NDK_OP_FLAG_INLINE | (ULONG)k->test->arg);
    RtlZeroMemory(g.memory->data, g.length);
    g.sges[0].VirtualAddress = NULL;
    if (k->test->arg & NDK_OP_FLAG_DEFER) { /* the end of the chain: an empty one */
        TRY(kit_ok(r));
        TRY(kit_order_receive(k, 1, 0));
        TRY(kit_ok(kit_send(g.end.qp, NULL, 0, NDK_OP_FLAG_INLINE | NDK_OP_FLAG_SILENT_SUCCESS)));
    }
    TRY(kit_expect(r, STATUS_SUCCESS, NULL));
    TRY(kit_order_received(k, 1, g.length, SEED));
}

static VOID inline_many(struct kit *k)
{
    struct gather g;
    ULONG count;

    TRY(inline_open(k, &g));
    count = k->info.MaxInitiatorRequestSge + 1;
    if (count > g.length)
        TRY(kit_skip(k, "InlineDataSize has no room for more elements than are allowed otherwise"));
    for (ULONG i = 0; i < count; i++)
        g.sges[i] = kit_sge(g.memory, i, 1);
    TRY(kit_order_receive(k, 1, count));
    TRY(kit_expect(kit_send(g.end.qp, g.sges, count, NDK_OP_FLAG_INLINE), STATUS_SUCCESS, NULL));
    TRY(kit_order_received(k, 1, count, SEED));
}

static VOID inline_too_long(struct kit *k)
{
    struct gather g;

    TRY(inline_open(k, &g));
    if (g.length < k->info.MaxInlineDataSize)
        TRY(kit_skip(k, "MaxInlineDataSize is too large for this case: %u",
                     (unsigned)k->info.MaxInlineDataSize));
    g.sges[0].Length = g.length + 1;
    TRY(kit_refused(k, kit_send(g.end.qp, g.sges, 1, NDK_OP_FLAG_INLINE),
                    "inline data of MaxInlineDataSize + 1 bytes"));
    g.sges[0].Length = g.length;
    TRY(kit_order_receive(k, 1, g.length));
    TRY(kit_expect(kit_send(g.end.qp, g.sges, 1, NDK_OP_FLAG_INLINE), STATUS_SUCCESS, NULL));
    TRY(kit_order_received(k, 1, g.length, SEED));
}

/* NDKPI 18.2: the flag is not in the table of NdkWrite, but InlineDataSize speaks of Writes. */
static VOID inline_write(struct kit *k)
{
    struct kit_request *r;
    struct gather g;
    UINT64 address;
    UINT32 token;

    TRY(inline_open(k, &g));
    TRY(kit_order_expose(k, g.length, NDK_MR_FLAG_ALLOW_REMOTE_WRITE, 1, &address, &token));
    TRY((r = kit_write(g.end.qp, g.sges, 1, address, token, NDK_OP_FLAG_INLINE)) != NULL);
    RtlZeroMemory(g.memory->data, g.length);
    if (!NT_SUCCESS(r->posted))
        TRY(kit_skip(k, "the provider has no inline Writes"));
    TRY(kit_expect(r, STATUS_SUCCESS, NULL));
    TRY(kit_still_works(&g.end));
    TRY(kit_order_holds(k, 0, g.length, SEED));
}

/* ---- calls that fail ------------------------------------------------------------------------ */

static BOOLEAN send_once(struct kit_pair *pair, struct kit_memory *out, struct kit_memory *in)
{
    struct kit_request *receive, *send;

    TRY_OR_FALSE(kit_ok(receive = kit_receive_all(&pair->b, in, LENGTH)));
    TRY_OR_FALSE(kit_ok(send = kit_send_all(&pair->a, out, LENGTH, 0)));
    TRY_OR_FALSE(kit_expect(send, STATUS_SUCCESS, NULL));
    return kit_expect(receive, STATUS_SUCCESS, NULL);
}

/* An inline failure hurts nobody. */
static VOID no_resources(struct kit *k)
{
    BOOLEAN receive = (BOOLEAN)(k->test->arg != 0);
    struct kit_memory *out, *in;
    struct kit_pair pair;

    TRY(kit_pair_open(k, NULL, &pair));
    TRY(kit_memory_new(pair.a.pd, LENGTH, 0, &out));
    TRY(kit_memory_new(pair.b.pd, LENGTH, NDK_MR_FLAG_ALLOW_LOCAL_WRITE, &in));
    TRY(send_once(&pair, out, in));
    TRY(kit_make_fail(k, k->test->function, STATUS_INSUFFICIENT_RESOURCES));
    TRY(kit_posted(receive ? kit_receive_all(&pair.b, in, LENGTH)
                           : kit_send_all(&pair.a, out, LENGTH, 0),
                   STATUS_INSUFFICIENT_RESOURCES));
    TRY(send_once(&pair, out, in));
    kit_settle(k);
    TRY(kit_cq_is_empty(pair.a.initiator));
    TRY(kit_cq_is_empty(pair.b.receive));
}

/* ---- the table ------------------------------------------------------------------------------ */

#define UNCONNECTED(id_, name_, kind_, ...)                                                        \
    KIT_CASE("REQ-00" id_, name_ " without a connection: CONNECTION_INVALID", "NDKPI 12",          \
             "Ndk" name_, unconnected, .arg = kind_, __VA_ARGS__),                                 \
        KIT_CASE_TWO("REQ-01" id_, name_ " after the connection", "lifetime 6.10", "Ndk" name_,    \
                     kit_obey, disconnected, .arg = kind_, __VA_ARGS__)
#define DATA(id_, name_, what_, reference_, data_, run_, ...)                                      \
    KIT_CASE_TWO(id_, name_ what_, reference_, "Ndk" name_, kit_obey, run_, .arg = data_,          \
                 __VA_ARGS__)

static const struct kit_case cases[] = {
    UNCONNECTED("1", "Send", SEND, .needs = 0),
    UNCONNECTED("2", "SendAndInvalidate", SEND_INVALIDATE, .version = {1, 2}),
    UNCONNECTED("3", "Read", READ, .needs = KIT_NEEDS_READ),
    UNCONNECTED("4", "Write", WRITE, .needs = 0),
    UNCONNECTED("5", "FastRegister", FAST_REGISTER, .needs = 0),
    UNCONNECTED("6", "Invalidate", INVALIDATE, .needs = 0),
    UNCONNECTED("7", "Bind", BIND, .needs = KIT_NEEDS_MW),

    DATA("REQ-021", "Send", " of no elements", "NDKPI 12", DATA_SEND, no_sges, .needs = 0),
    DATA("REQ-022", "Receive", " of no elements", "NDKPI 12", DATA_RECEIVE, no_sges, .needs = 0),
    DATA("REQ-023", "Read", " of no elements", "NDKPI 12", DATA_READ, no_sges,
         .needs = KIT_NEEDS_READ),
    DATA("REQ-024", "Write", " of no elements", "NDKPI 12", DATA_WRITE, no_sges, .needs = 0),
    DATA("REQ-031", "Send", ": MaxInitiatorRequestSge elements and one more", "NDKPI 12.2",
         DATA_SEND, sges_sent, .needs = 0),
    DATA("REQ-032", "Receive", ": MaxReceiveRequestSge elements and one more", "NDKPI 12.3",
         DATA_RECEIVE, sges_received, .needs = 0),
    DATA("REQ-033", "Read", ": MaxReadRequestSge elements and one more", "NDKPI 12.7", DATA_READ,
         sges_read, .needs = KIT_NEEDS_READ),
    DATA("REQ-034", "Write", ": MaxInitiatorRequestSge elements and one more", "NDKPI 12.8",
         DATA_WRITE, sges_written, .needs = 0),
    DATA("REQ-041", "Send", " of more than MaxTransferLength", "NDKPI 12", DATA_SEND, too_long,
         .needs = 0),
    DATA("REQ-042", "Receive", " of more than MaxTransferLength", "NDKPI 12", DATA_RECEIVE,
         too_long, .needs = 0),
    DATA("REQ-043", "Read", " of more than MaxTransferLength", "NDKPI 12", DATA_READ, too_long,
         .needs = KIT_NEEDS_READ),
    DATA("REQ-044", "Write", " of more than MaxTransferLength", "NDKPI 12", DATA_WRITE, too_long,
         .needs = 0),
    DATA("REQ-045", "Send", ", Write and Read of MaxTransferLength", "NDKPI 12", 0, longest,
         .needs = 0),

    KIT_CASE("REQ-051", "a receive queue of depth 4 is full in the end", "NDKPI 12", "NdkReceive",
             receive_queue_full, .arg = 4),
    KIT_CASE("REQ-052", "a receive queue of MaxReceiveQueueDepth takes so many and no more",
             "NDKPI 12", "NdkReceive", receive_queue_full),
    KIT_CASE_TWO("REQ-053", "a completed receive makes room", "lifetime 6.1", "NdkReceive",
                 kit_obey, receive_queue_again),
    KIT_CASE_TWO("REQ-054", "a full initiator queue refuses, and works on", "NDKPI 12", "NdkWrite",
                 kit_obey, initiator_queue_full),

    KIT_CASE_TWO("REQ-061", "inline data is taken during the call", "lifetime 6.7", "NdkSend",
                 kit_obey, inline_captured),
    KIT_CASE_TWO("REQ-062", "... of a deferred request too", "lifetime 6.7", "NdkSend", kit_obey,
                 inline_captured, .arg = NDK_OP_FLAG_DEFER, .version = {1, 2}),
    KIT_CASE_TWO("REQ-063", "inline data in more elements than MaxInitiatorRequestSge",
                 "lifetime 6.7", "NdkSend", kit_obey, inline_many),
    KIT_CASE_TWO("REQ-064", "inline data of MaxInlineDataSize, and of one byte more",
                 "lifetime 6.7", "NdkSend", kit_obey, inline_too_long),
    KIT_CASE_TWO("REQ-065", "an inline Write", "NDKPI 18.2", "NdkWrite", kit_obey, inline_write),

    KIT_CASE("REQ-071", "a Send that fails for want of resources", "lifetime 6.1", "NdkSend",
             no_resources, .needs = KIT_NEEDS_FAIL | KIT_NEEDS_LOOPBACK),
    KIT_CASE("REQ-072", "a receive that fails for want of resources", "lifetime 6.1", "NdkReceive",
             no_resources, .needs = KIT_NEEDS_FAIL | KIT_NEEDS_LOOPBACK, .arg = 1),
};

KIT_TOPIC(requests, "posting work requests");
