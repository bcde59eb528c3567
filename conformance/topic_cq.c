// SPDX-License-Identifier: MIT
/*
 * Completion queues but for arming: taking results with either function, what stands in them,
 * moderation and resizing (NDKPI 1.5-1.7, 7; lifetime 5.5-5.7).
 */
#include "kit.h"

/* ---- an end that is flushed: completions without a connection ------------------------------- */

#define LENGTH 32

struct flushed {
    struct kit_end end;
    struct kit_memory *memory;
    struct kit_request *receives[16];
};

/* count receives, cancelled and in the CQ. */
static BOOLEAN flushed_open(struct kit *k, ULONG count, ULONG cq_depth, struct flushed *f)
{
    struct kit_end_options options = {.cq_depth = cq_depth};

    TRY_OR_FALSE(kit_end_open(k, &options, &f->end));
    TRY_OR_FALSE(kit_memory_new(f->end.pd, PAGE_SIZE, NDK_MR_FLAG_ALLOW_LOCAL_WRITE, &f->memory));
    for (ULONG i = 0; i < count; i++) {
        NDK_SGE sge = kit_sge(f->memory, i * LENGTH, LENGTH);

        TRY_OR_FALSE(kit_ok(f->receives[i] = kit_receive(f->end.qp, &sge, 1)));
    }
    kit_flush(f->end.qp);
    return kit_close(&f->end.qp->object); /* so that all flushes are in the CQ */
}

typedef ULONG poll_function(struct kit_cq *cq, struct kit_result *results, ULONG n);

static poll_function *poll_of(struct kit *k)
{
    return k->test->arg ? kit_cq_poll_plain : kit_cq_poll;
}

static VOID new_is_empty(struct kit *k)
{
    struct kit_adapter *adapter;
    struct kit_result result;
    struct kit_cq *cq;

    TRY(kit_adapter_open(k, &adapter));
    TRY(kit_cq_new(adapter, 4, &cq));
    CHECK_EQUAL(k, "results of a new CQ", poll_of(k)(cq, &result, 1), 0);
}

static VOID none_asked(struct kit *k)
{
    struct kit_result result;
    struct flushed f;

    TRY(flushed_open(k, 1, 16, &f));
    CHECK_EQUAL(k, "results when none are asked for", poll_of(k)(f.end.receive, &result, 0), 0);
    CHECK_EQUAL(k, "results afterwards", poll_of(k)(f.end.receive, &result, 1), 1);
}

/* Seven in portions of three: 3, 3, 1, 0, each in its turn. */
static VOID in_portions(struct kit *k)
{
    static const ULONG portions[] = {3, 3, 1, 0};
    struct kit_result results[3];
    struct flushed f;
    ULONG next = 0;

    TRY(flushed_open(k, 7, 16, &f));
    for (ULONG p = 0; p < RTL_NUMBER_OF(portions); p++) {
        CHECK_EQUAL(k, "results of a portion", poll_of(k)(f.end.receive, results, 3), portions[p]);
        for (ULONG i = 0; i < portions[p]; i++)
            CHECK(k, results[i].request == f.receives[next++], "result %u is out of its turn",
                  (unsigned)next);
    }
}

static VOID by_turns(struct kit *k)
{
    struct kit_result result;
    struct flushed f;

    TRY(flushed_open(k, 8, 16, &f));
    for (ULONG i = 0; i < 8; i++) {
        CHECK_EQUAL(k, "results",
                    (i % 2 ? kit_cq_poll_plain : kit_cq_poll)(f.end.receive, &result, 1), 1);
        CHECK(k, result.request == f.receives[i], "result %u is out of its turn", (unsigned)i);
        CHECK_STATUS(k, "a flushed receive", result.status, STATUS_CANCELLED);
    }
}

static VOID full_to_its_depth(struct kit *k)
{
    struct kit_result result;
    struct flushed f;

    TRY(flushed_open(k, 8, 8, &f));
    for (ULONG i = 0; i < 8; i++)
        CHECK_EQUAL(k, "results", kit_cq_poll(f.end.receive, &result, 1), 1);
    TRY(kit_cq_is_empty(f.end.receive));
}

/* The kit holds QPContext and RequestContext of each result against what was given. */
static VOID two_qps(struct kit *k)
{
    struct kit_result result;
    struct kit_qp *qps[2];
    struct kit_memory *memory;
    struct kit_end end;
    ULONG seen[2] = {0, 0};

    TRY(kit_end_open(k, NULL, &end));
    TRY(kit_memory_new(end.pd, PAGE_SIZE, NDK_MR_FLAG_ALLOW_LOCAL_WRITE, &memory));
    for (ULONG q = 0; q < 2; q++) { /* one CQ for both queues of both */
        TRY(kit_qp_new(end.pd, end.receive, end.receive, NULL, &qps[q]));
        for (ULONG i = 0; i < 3; i++) {
            NDK_SGE sge = kit_sge(memory, (3 * q + i) * LENGTH, LENGTH);

            TRY(kit_ok(kit_receive(qps[q], &sge, 1)));
        }
    }
    kit_flush(qps[1]);
    kit_flush(qps[0]);
    for (ULONG i = 0; i < 6; i++) {
        TRY(kit_cq_next(end.receive, &result));
        CHECK(k, result.qp == qps[0] || result.qp == qps[1], "a result of neither QP");
        seen[result.qp == qps[1]]++;
    }
    CHECK_EQUAL(k, "results of the first QP", seen[0], 3);
    CHECK_EQUAL(k, "results of the second QP", seen[1], 3);
}

/* ---- what stands in a result ---------------------------------------------------------------- */

enum kind { SEND, SEND_INLINE, RECEIVE, WRITE, READ, FAST_REGISTER, INVALIDATE };

static BOOLEAN sends(struct kit *k, struct kit_end *end, struct kit_memory *memory, enum kind kind,
                     struct kit_request **out)
{
    NDK_SGE sge = kit_sge(memory, 0, LENGTH);
    UINT64 address;
    UINT32 token;

    if (kind == SEND || kind == SEND_INLINE) {
        kit_fill(memory->data, LENGTH, 5);
        TRY_OR_FALSE(kit_order_receive(k, 1, LENGTH));
        *out = kit_send(end->qp, &sge, 1, kind == SEND_INLINE ? NDK_OP_FLAG_INLINE : 0);
        return kit_ok(*out);
    }
    TRY_OR_FALSE(kit_order_expose(k, LENGTH,
                                  NDK_MR_FLAG_ALLOW_REMOTE_READ | NDK_MR_FLAG_ALLOW_REMOTE_WRITE, 3,
                                  &address, &token));
    *out = kind == WRITE ? kit_write(end->qp, &sge, 1, address, token, 0)
                         : kit_read(end->qp, &sge, 1, address, token, 0);
    return kit_ok(*out);
}

/* Registers memory by fast registration, and for INVALIDATE takes it back. */
static BOOLEAN registers(struct kit_end *end, enum kind kind, struct kit_request **out)
{
    struct kit_memory *memory;
    struct kit_request *r;
    struct kit_lam *lam;
    struct kit_mr *mr;

    TRY_OR_FALSE(kit_memory_bare(end->k, PAGE_SIZE, &memory));
    TRY_OR_FALSE(kit_lam_new(end->adapter, memory->mdl, PAGE_SIZE, &lam));
    TRY_OR_FALSE(kit_mr_new(end->pd, TRUE, &mr));
    TRY_OR_FALSE(kit_answer_is(kit_fast_start(mr, 1, FALSE), STATUS_SUCCESS));
    r = kit_fast_register(end->qp, mr, lam, PAGE_SIZE, memory->data, NDK_OP_FLAG_ALLOW_LOCAL_WRITE);
    TRY_OR_FALSE(kit_ok(r));
    if (kind == INVALIDATE) {
        TRY_OR_FALSE(kit_expect(r, STATUS_SUCCESS, NULL));
        TRY_OR_FALSE(kit_ok(r = kit_invalidate(end->qp, &mr->object, 0)));
    }
    *out = r;
    return TRUE;
}

static NDK_OPERATION_TYPE type_of(enum kind kind)
{
    static const NDK_OPERATION_TYPE types[] = {
        NdkOperationTypeSend,      NdkOperationTypeSend, NdkOperationTypeReceive,
        NdkOperationTypeWrite,     NdkOperationTypeRead, NdkOperationTypeFastRegister,
        NdkOperationTypeInvalidate};

    return types[kind];
}

static VOID kinds(struct kit *k)
{
    enum kind kind = (enum kind)k->test->arg;
    struct kit_request *receive, *request = NULL;
    struct kit_memory *memory;
    struct kit_result result;
    struct kit_end end;
    NDK_SGE sge;

    TRY(kit_end_open(k, NULL, &end));
    if (kind == SEND_INLINE && k->info.MaxInlineDataSize < LENGTH)
        TRY(kit_skip(k, "the adapter sends less than %u bytes inline", LENGTH));
    TRY(kit_memory_new(end.pd, PAGE_SIZE,
                       NDK_MR_FLAG_ALLOW_LOCAL_WRITE | NDK_MR_FLAG_RDMA_READ_SINK, &memory));
    sge = kit_sge(memory, PAGE_SIZE / 2, 2 * LENGTH);
    TRY(kit_ok(receive = kit_receive(end.qp, &sge, 1)));
    TRY(kit_end_connect(&end, NULL));
    if (kind == RECEIVE) {
        TRY(kit_order_send(k, 1, LENGTH, 0, 1));
        request = receive;
    } else if (kind == FAST_REGISTER || kind == INVALIDATE) {
        TRY(registers(&end, kind, &request));
    } else {
        TRY(sends(k, &end, memory, kind, &request));
    }
    TRY(kit_expect(request, STATUS_SUCCESS, &result));
    CHECK(k, result.ex, "the result came without its kind");
    CHECK_EQUAL(k, "Type", result.type, type_of(kind));
    CHECK_EQUAL(k, "ProviderErrorCode", result.provider_error, 0);
    if (kind == RECEIVE)
        CHECK_EQUAL(k, "BytesTransferred", result.bytes, LENGTH);
    if (kind == SEND || kind == SEND_INLINE)
        TRY(kit_order_received(k, 1, LENGTH, 5));
}

/* A receive that met an invalidating send: with the token from the one function, and plain from the
 * other (lifetime 5.6). */
static VOID invalidated_server(struct kit *k)
{
    struct kit_memory *out;
    struct kit_request *send;
    struct kit_result result;
    struct kit_end end;
    UINT32 token;
    NDK_SGE sge;

    TRY(kit_end_open(k, NULL, &end));
    TRY(kit_memory_new(end.pd, LENGTH, 0, &out));
    TRY(kit_end_connect(&end, NULL));
    TRY(kit_hear(k, "token", &token, sizeof token));
    sge = kit_sge(out, 0, LENGTH);
    TRY(kit_ok(send = kit_send_and_invalidate(end.qp, &sge, 1, 0, token)));
    TRY(kit_expect(send, STATUS_SUCCESS, &result));
    CHECK_EQUAL(k, "the sender's Type", result.type, NdkOperationTypeSend);
    TRY(kit_hear(k, "received", NULL, 0));
}

static VOID invalidated_client(struct kit *k)
{
    struct kit_request *receive, *fast;
    struct kit_memory *memory, *target;
    struct kit_result result;
    struct kit_lam *lam;
    struct kit_end end;
    struct kit_mr *mr;
    UINT32 token;
    NDK_SGE sge;

    TRY(kit_end_open(k, NULL, &end));
    TRY(kit_memory_new(end.pd, LENGTH, NDK_MR_FLAG_ALLOW_LOCAL_WRITE, &target));
    sge = kit_sge(target, 0, LENGTH);
    TRY(kit_ok(receive = kit_receive(end.qp, &sge, 1)));
    TRY(kit_end_connect(&end, NULL));
    TRY(kit_memory_bare(k, PAGE_SIZE, &memory));
    TRY(kit_lam_new(end.adapter, memory->mdl, PAGE_SIZE, &lam));
    TRY(kit_mr_new(end.pd, TRUE, &mr));
    TRY(kit_answer_is(kit_fast_start(mr, 1, TRUE), STATUS_SUCCESS));
    TRY(kit_ok(fast = kit_fast_register(end.qp, mr, lam, PAGE_SIZE, memory->data,
                                        NDK_OP_FLAG_ALLOW_REMOTE_READ)));
    TRY(kit_expect(fast, STATUS_SUCCESS, NULL));
    token = mr->table->NdkGetRemoteTokenFromMr(mr->ndk);
    TRY(kit_tell(k, "token", &token, sizeof token));
    kit_cq_arm(end.receive, NDK_CQ_NOTIFY_ANY);
    TRY(kit_cq_wait_notified(end.receive, 1));
    CHECK_EQUAL(k, "results", poll_of(k)(end.receive, &result, 1), 1);
    CHECK(k, result.request == receive, "the result is not that of the receive");
    CHECK_STATUS(k, "the receive", result.status, STATUS_SUCCESS);
    CHECK_EQUAL(k, "BytesTransferred", result.bytes, LENGTH);
    if (result.ex) {
        CHECK_EQUAL(k, "Type", result.type, NdkOperationTypeReceiveAndInvalidate);
        CHECK_EQUAL(k, "TypeSpecificCompletionOutput", result.output, token);
    }
    /* It is dead either way: it can be registered again. */
    TRY(kit_ok(fast = kit_fast_register(end.qp, mr, lam, PAGE_SIZE, memory->data,
                                        NDK_OP_FLAG_ALLOW_REMOTE_READ)));
    TRY(kit_expect(fast, STATUS_SUCCESS, NULL));
    TRY(kit_tell(k, "received", NULL, 0));
}

/* ---- moderation ----------------------------------------------------------------------------- */

struct setting {
    ULONG interval_us, count;
    NTSTATUS status;
};

static VOID moderation(struct kit *k)
{
    const struct setting *setting = k->test->row;
    struct kit_adapter *adapter;
    struct kit_cq *cq;

    TRY(kit_adapter_open(k, &adapter));
    TRY(kit_cq_new(adapter, 16, &cq));
    CHECK_STATUS(k, "NdkControlCqInterruptModeration",
                 kit_moderate(cq, setting->interval_us, setting->count), setting->status);
}

/* Whatever is set, a completion is told of in the end. */
static VOID moderated_notification(struct kit *k)
{
    const struct setting *setting = k->test->row;
    struct kit_memory *memory;
    struct kit_end end;

    TRY(kit_end_open(k, NULL, &end));
    TRY(kit_memory_new(end.pd, PAGE_SIZE, NDK_MR_FLAG_ALLOW_LOCAL_WRITE, &memory));
    for (ULONG i = 0; i < 4; i++) {
        NDK_SGE sge = kit_sge(memory, i * LENGTH, LENGTH);

        TRY(kit_ok(kit_receive(end.qp, &sge, 1)));
    }
    CHECK_STATUS(k, "NdkControlCqInterruptModeration",
                 kit_moderate(end.receive, setting->interval_us, setting->count), STATUS_SUCCESS);
    kit_cq_arm(end.receive, NDK_CQ_NOTIFY_ANY);
    kit_flush(end.qp);
    TRY(kit_cq_wait_notified(end.receive, 1));
    TRY(kit_cq_notified_is(end.receive, 1));
}

static VOID moderation_fails(struct kit *k)
{
    struct kit_adapter *adapter;
    struct kit_cq *cq;

    TRY(kit_adapter_open(k, &adapter));
    TRY(kit_cq_new(adapter, 16, &cq));
    TRY(kit_make_fail(k, "NdkControlCqInterruptModeration", STATUS_INSUFFICIENT_RESOURCES));
    CHECK_STATUS(k, "NdkControlCqInterruptModeration", kit_moderate(cq, 0, 0),
                 STATUS_INSUFFICIENT_RESOURCES);
}

/* ---- resizing ------------------------------------------------------------------------------- */

/* Seven results in the CQ, the first two taken: the others survive the new depth in their order. */
static VOID resized(struct kit *k)
{
    struct kit_result result;
    struct flushed f;

    TRY(flushed_open(k, 7, 8, &f));
    for (ULONG i = 0; i < 7; i++) {
        if (i == 2)
            TRY(kit_answer_is(kit_resize_start(f.end.receive, (ULONG)k->test->arg),
                              STATUS_SUCCESS));
        CHECK_EQUAL(k, "results", kit_cq_poll(f.end.receive, &result, 1), 1);
        CHECK(k, result.request == f.receives[i], "result %u is out of its turn", (unsigned)i);
    }
    TRY(kit_cq_is_empty(f.end.receive));
}

/* A CQ that has grown holds more than it did. */
static VOID grown(struct kit *k)
{
    struct kit_memory *memory;
    struct kit_result result;
    struct kit_qp *qp;
    struct flushed f;

    TRY(flushed_open(k, 4, 4, &f));
    TRY(kit_answer_is(kit_resize_start(f.end.receive, 16), STATUS_SUCCESS));
    TRY(kit_memory_new(f.end.pd, PAGE_SIZE, NDK_MR_FLAG_ALLOW_LOCAL_WRITE, &memory));
    TRY(kit_qp_new(f.end.pd, f.end.receive, f.end.initiator, NULL, &qp));
    for (ULONG i = 0; i < 12; i++) {
        NDK_SGE sge = kit_sge(memory, i * LENGTH, LENGTH);

        TRY(kit_ok(kit_receive(qp, &sge, 1)));
    }
    kit_flush(qp);
    TRY(kit_close(&qp->object));
    for (ULONG i = 0; i < 16; i++)
        CHECK_EQUAL(k, "results", kit_cq_poll(f.end.receive, &result, 1), 1);
}

/* Less room than there are results: refused, and nothing is lost. */
static VOID shrunk_too_far(struct kit *k)
{
    struct kit_result result;
    struct kit_call *call;
    struct flushed f;
    NTSTATUS status;

    TRY(flushed_open(k, 7, 8, &f));
    call = kit_resize_start(f.end.receive, 3);
    status = kit_answer(call);
    CHECK(k, status != KIT_NO_ANSWER, "no answer");
    for (ULONG i = 0; i < 7; i++) {
        CHECK_EQUAL(k, "results after a resize below them", kit_cq_poll(f.end.receive, &result, 1),
                    1);
        CHECK(k, result.request == f.receives[i], "result %u is out of its turn", (unsigned)i);
    }
}

static VOID resize_limits(struct kit *k)
{
    struct kit_adapter *adapter;
    struct kit_cq *cq;

    TRY(kit_adapter_open(k, &adapter));
    TRY(kit_cq_new(adapter, 4, &cq));
    TRY(kit_answer_is(kit_resize_start(cq, adapter->info.MaxCqDepth + 1),
                      STATUS_INVALID_PARAMETER));
}

static VOID resize_fails(struct kit *k)
{
    struct kit_adapter *adapter;
    struct kit_cq *cq;

    TRY(kit_adapter_open(k, &adapter));
    TRY(kit_cq_new(adapter, 4, &cq));
    TRY(kit_make_fail(k, "NdkResizeCq", STATUS_INSUFFICIENT_RESOURCES));
    TRY(kit_answer_is(kit_resize_start(cq, 8), STATUS_INSUFFICIENT_RESOURCES));
    TRY(kit_answer_is(kit_resize_start(cq, 8), STATUS_SUCCESS));
}

/* ---- the table ------------------------------------------------------------------------------ */

#define EX    0
#define PLAIN 1

/* A row for each function. */
#define BOTH(id_ex, id_plain, title_, run_)                                                        \
    KIT_CASE(id_ex, title_, "NDKPI 7.5", "NdkGetCqResultsEx", run_, .arg = EX, .version = {1, 2}), \
        KIT_CASE(id_plain, title_ " (plain)", "NDKPI 7.3", "NdkGetCqResults", run_, .arg = PLAIN)

#define KIND(id_, title_, kind_, function_, ...)                                                   \
    KIT_CASE_TWO(id_, title_, "NDKPI 1.7", function_, kit_obey, kinds, .arg = kind_,               \
                 .version = {1, 2}, __VA_ARGS__)

#define MODERATES NDK_ADAPTER_FLAG_CQ_INTERRUPT_MODERATION_SUPPORTED
#define RESIZES   NDK_ADAPTER_FLAG_CQ_RESIZE_SUPPORTED

#define SETTING(interval_, count_, status_)                                                        \
    &(const struct setting)                                                                        \
    {                                                                                              \
        interval_, count_, status_                                                                 \
    }
#define MODERATION(id_, title_, run_, setting_)                                                    \
    KIT_CASE(id_, title_, "NDKPI 7.4", "NdkControlCqInterruptModeration", run_,                    \
             .adapter_flags = MODERATES, .row = setting_)

static const struct kit_case cases[] = {
    BOTH("CQ-001", "CQ-002", "a new CQ is empty", new_is_empty),
    BOTH("CQ-003", "CQ-004", "asked for none it gives none and keeps all", none_asked),
    BOTH("CQ-005", "CQ-006", "results in portions, in order", in_portions),
    KIT_CASE("CQ-007", "both functions by turns on one CQ", "NDKPI 7.5", "NdkGetCqResultsEx",
             by_turns, .version = {1, 2}),
    KIT_CASE("CQ-008", "it holds as many as its depth", "lifetime 5.5", "NdkCreateCq",
             full_to_its_depth),
    KIT_CASE("CQ-009", "results of two QPs and four queues in one CQ", "NDKPI 1.5",
             "NdkGetCqResultsEx", two_qps),

    KIND("CQ-010", "the kind of a Send", SEND, "NdkSend"),
    KIND("CQ-011", "the kind of an inline Send", SEND_INLINE, "NdkSend"),
    KIND("CQ-012", "the kind of a Receive", RECEIVE, "NdkReceive"),
    KIND("CQ-013", "the kind of a Write", WRITE, "NdkWrite"),
    KIND("CQ-014", "the kind of a Read", READ, "NdkRead", .needs = KIT_NEEDS_READ),
    KIND("CQ-015", "the kind of a FastRegister", FAST_REGISTER, "NdkFastRegister"),
    KIND("CQ-016", "the kind of an Invalidate", INVALIDATE, "NdkInvalidate"),
    KIT_CASE_TWO("CQ-017", "a receive and its invalidated token", "NDKPI 1.6", "NdkGetCqResultsEx",
                 invalidated_server, invalidated_client, .arg = EX, .version = {1, 2}),
    KIT_CASE_TWO("CQ-018", "the plain function gives such a receive too, and the token is dead",
                 "lifetime 5.6", "NdkGetCqResults", invalidated_server, invalidated_client,
                 .arg = PLAIN, .version = {1, 2}),

    KIT_CASE("CQ-020", "without the flag moderation is NOT_SUPPORTED", "NDKPI 7.4",
             "NdkControlCqInterruptModeration", moderation, .adapter_flags_clear = MODERATES,
             .row = SETTING(10, 4, STATUS_NOT_SUPPORTED)),
    MODERATION("CQ-021", "moderation by interval and count", moderation,
               SETTING(10, 4, STATUS_SUCCESS)),
    MODERATION("CQ-022", "moderation by count alone", moderation,
               SETTING(MAXULONG, 4, STATUS_SUCCESS)),
    MODERATION("CQ-023", "moderation by interval alone", moderation,
               SETTING(10, MAXULONG, STATUS_SUCCESS)),
    MODERATION("CQ-024", "no moderation", moderation, SETTING(0, MAXULONG, STATUS_SUCCESS)),
    MODERATION("CQ-025", "neither interval nor count: INVALID_PARAMETER_MIX", moderation,
               SETTING(MAXULONG, MAXULONG, STATUS_INVALID_PARAMETER_MIX)),
    MODERATION("CQ-026", "no interval and a count above the depth: INVALID_PARAMETER_MIX",
               moderation, SETTING(MAXULONG, MAXULONG - 1, STATUS_INVALID_PARAMETER_MIX)),
    MODERATION("CQ-027", "an interval is over some time", moderated_notification,
               SETTING(1000, MAXULONG, STATUS_SUCCESS)),
    MODERATION("CQ-028", "a count is reached", moderated_notification,
               SETTING(MAXULONG, 4, STATUS_SUCCESS)),
    MODERATION("CQ-029", "with an interval of 0 nothing is held back", moderated_notification,
               SETTING(0, MAXULONG, STATUS_SUCCESS)),
    KIT_CASE("CQ-030", "moderation without resources", "NDKPI 7.4",
             "NdkControlCqInterruptModeration", moderation_fails, .adapter_flags = MODERATES,
             .needs = KIT_NEEDS_FAIL),

    KIT_CASE("CQ-040", "grown with results in it", "NDKPI 7.1", "NdkResizeCq", resized,
             .adapter_flags = RESIZES, .arg = 64),
    KIT_CASE("CQ-041", "shrunk with results in it", "NDKPI 7.1", "NdkResizeCq", resized,
             .adapter_flags = RESIZES, .arg = 5),
    KIT_CASE("CQ-042", "a grown CQ holds more", "NDKPI 7.1", "NdkResizeCq", grown,
             .adapter_flags = RESIZES),
    KIT_CASE("CQ-043", "shrinking below what it holds loses nothing", "NDKPI 7.1", "NdkResizeCq",
             shrunk_too_far, .adapter_flags = RESIZES),
    KIT_CASE("CQ-044", "above MaxCqDepth: INVALID_PARAMETER", "NDKPI 7.1", "NdkResizeCq",
             resize_limits, .adapter_flags = RESIZES),
    KIT_CASE("CQ-045", "resizing without resources", "NDKPI 7.1", "NdkResizeCq", resize_fails,
             .adapter_flags = RESIZES, .needs = KIT_NEEDS_FAIL),
};

KIT_TOPIC(cq, "completion queues: results, moderation, resizing");
