// SPDX-License-Identifier: MIT
/* Fast-registers and what ends them (NDKPI 9.3, 12.5, 12.6, 12.9, lifetime 7.5, 7.6). */
#include "kit_work.h"

#define LENGTH 64
#define SEED   61
#define RIGHTS (NDK_OP_FLAG_ALLOW_LOCAL_WRITE | NDK_OP_FLAG_RDMA_READ_SINK)

/* What a request that must not succeed may answer, once posted. */
static const NTSTATUS failures[] = {STATUS_INVALID_DEVICE_REQUEST, STATUS_ACCESS_VIOLATION,
                                    STATUS_INTERNAL_ERROR,         STATUS_INVALID_PARAMETER,
                                    STATUS_REMOTE_RESOURCES,       STATUS_PENDING};

static BOOLEAN fails(struct kit_request *r)
{
    TRY_OR_FALSE(r != NULL);
    return !NT_SUCCESS(r->posted) || kit_expect_among(r, failures, NULL);
}

static BOOLEAN answers_failure(struct kit *k, struct kit_call *call, const char *what)
{
    NTSTATUS status = kit_answer(call);

    if (status == KIT_NO_ANSWER)
        return FALSE;
    return !NT_SUCCESS(status) || kit_fail(k, KIT_HERE, "%s succeeded, need a failure", what);
}

/* ---- initializing --------------------------------------------------------------------------- */

static VOID capacity(struct kit *k)
{
    struct kit_adapter *adapter;
    struct kit_pd *pd;
    struct kit_mr *mr;

    TRY(kit_adapter_open(k, &adapter));
    TRY(kit_pd_new(adapter, &pd));
    TRY(kit_mr_new(pd, TRUE, &mr));
    TRY(kit_answer_is(kit_fast_start(mr, adapter->info.FRMRPageCount, TRUE), STATUS_SUCCESS));
    TRY(kit_mr_new(pd, TRUE, &mr));
    TRY(kit_answer_is(kit_fast_start(mr, adapter->info.FRMRPageCount + 1, TRUE),
                      STATUS_IMPLEMENTATION_LIMIT));
    TRY(kit_answer_is(kit_fast_start(mr, 1, FALSE), STATUS_SUCCESS));
}

/* Many at once, and one again: the later counts. */
static VOID initialized_often(struct kit *k)
{
    struct kit_call *calls[8];
    struct kit_mr *mrs[8];
    struct kit_fast fast;
    struct kit_end end;

    TRY(kit_end_open(k, NULL, &end));
    for (ULONG i = 0; i < RTL_NUMBER_OF(mrs); i++)
        TRY(kit_mr_new(end.pd, TRUE, &mrs[i]));
    for (ULONG i = 0; i < RTL_NUMBER_OF(mrs); i++)
        calls[i] = kit_fast_start(mrs[i], 4, TRUE);
    for (ULONG i = 0; i < RTL_NUMBER_OF(mrs); i++)
        TRY(kit_answer_is(calls[i], STATUS_SUCCESS));
    TRY(kit_fast_open(&end, 3 * PAGE_SIZE, FALSE, &fast));
    fast.mr = mrs[0];
    TRY(kit_answer_is(kit_fast_start(fast.mr, 1, FALSE), STATUS_SUCCESS));
    TRY(kit_answer_is(kit_fast_start(fast.mr, 3, TRUE), STATUS_SUCCESS));
    TRY(kit_end_connect(&end, NULL));
    TRY(kit_fast_done(end.qp, &fast, NDK_OP_FLAG_ALLOW_REMOTE_READ));
}

static VOID initialize_fails(struct kit *k)
{
    struct kit_adapter *adapter;
    struct kit_pd *pd;
    struct kit_mr *mr;

    TRY(kit_adapter_open(k, &adapter));
    TRY(kit_pd_new(adapter, &pd));
    TRY(kit_mr_new(pd, TRUE, &mr));
    TRY(kit_make_fail(k, "NdkInitializeFastRegisterMr", STATUS_INSUFFICIENT_RESOURCES));
    TRY(kit_answer_is(kit_fast_start(mr, 1, FALSE), STATUS_INSUFFICIENT_RESOURCES));
    TRY(kit_answer_is(kit_fast_start(mr, 1, FALSE), STATUS_SUCCESS));
}

/* ---- what is registered --------------------------------------------------------------------- */

/* A connected end and a region of some pages, initialized with remote rights or without. */
struct one {
    struct kit_end end;
    struct kit_fast fast;
};

static BOOLEAN one_open(struct kit *k, SIZE_T length, BOOLEAN remote, struct one *one)
{
    RtlZeroMemory(one, sizeof *one);
    TRY_OR_FALSE(kit_end_open(k, NULL, &one->end));
    TRY_OR_FALSE(kit_fast_open(&one->end, length, remote, &one->fast));
    return kit_end_connect(&one->end, NULL);
}

/* Its bytes go out, and others come in: by a Send, a receive, a Read. */
static BOOLEAN is_usable(struct one *one, SIZE_T offset)
{
    struct kit *k = one->end.k;
    PUCHAR data = one->fast.memory->data + offset;
    NDK_SGE sge = kit_fast_sge(&one->fast, offset, LENGTH);
    struct kit_request *receive;
    UINT64 address;
    UINT32 token;

    kit_fill(data, LENGTH, SEED);
    TRY_OR_FALSE(kit_order_receive(k, 1, LENGTH));
    TRY_OR_FALSE(kit_expect(kit_send(one->end.qp, &sge, 1, 0), STATUS_SUCCESS, NULL));
    TRY_OR_FALSE(kit_order_received(k, 1, LENGTH, SEED));
    TRY_OR_FALSE(kit_ok(receive = kit_receive(one->end.qp, &sge, 1)));
    TRY_OR_FALSE(kit_order_send(k, 1, LENGTH, 0, SEED + 1));
    TRY_OR_FALSE(kit_expect(receive, STATUS_SUCCESS, NULL));
    TRY_OR_FALSE(kit_filled(k, "the message", data, LENGTH, SEED + 1));
    if (!k->info.MaxInboundReadLimit || !k->info.MaxOutboundReadLimit)
        return TRUE;
    TRY_OR_FALSE(
        kit_order_expose(k, LENGTH, NDK_MR_FLAG_ALLOW_REMOTE_READ, SEED + 2, &address, &token));
    TRY_OR_FALSE(
        kit_expect(kit_read(one->end.qp, &sge, 1, address, token, 0), STATUS_SUCCESS, NULL));
    return kit_filled(k, "what was read", data, LENGTH, SEED + 2);
}

enum base { BASE_OWN, BASE_CHOSEN, BASE_ZERO };

static VOID used_at_home(struct kit *k)
{
    struct one one;

    TRY(one_open(k, 2 * PAGE_SIZE, FALSE, &one));
    if (k->test->arg == BASE_CHOSEN)
        one.fast.base = (PUCHAR)(ULONG_PTR)0x7ff00000;
    if (k->test->arg == BASE_ZERO)
        one.fast.base = NULL;
    TRY(kit_fast_done(one.end.qp, &one.fast, RIGHTS));
    TRY(is_usable(&one, 0));
    TRY(is_usable(&one, PAGE_SIZE - LENGTH / 2)); /* across its pages */
    TRY(is_usable(&one, 2 * PAGE_SIZE - LENGTH));
}

#define OFFSET 100

/* The mapping begins within a page. */
static BOOLEAN with_offset(struct one *one)
{
    struct kit_memory *memory = one->fast.memory;
    PMDL mdl;

    TRY_OR_FALSE(
        kit_mdl_new(one->end.k, memory->data + OFFSET, (ULONG)memory->size - OFFSET, &mdl));
    one->fast.length = memory->size - OFFSET;
    one->fast.base += OFFSET;
    return kit_lam_new(one->end.adapter, mdl, one->fast.length, &one->fast.lam);
}

enum shape { OFFSET_WHOLE, BASE_OFF, LENGTH_OFF, FEWER, MORE_PAGES, FBO_OFF };

static VOID shapes(struct kit *k)
{
    enum shape shape = (enum shape)k->test->arg;
    struct kit_fast good;
    struct one one;

    TRY(one_open(k, 2 * PAGE_SIZE, FALSE, &one));
    TRY(with_offset(&one));
    good = one.fast;
    switch (shape) {
    case BASE_OFF:
        one.fast.base += 1;
        break;
    case LENGTH_OFF:
        one.fast.length += 1;
        break;
    case FBO_OFF:
        one.fast.lam->fbo += PAGE_SIZE;
        break;
    case MORE_PAGES:
        TRY(kit_mr_new(one.end.pd, TRUE, &one.fast.mr));
        TRY(kit_answer_is(kit_fast_start(one.fast.mr, 1, FALSE), STATUS_SUCCESS));
        break;
    case FEWER:
        TRY(kit_mr_new(one.end.pd, TRUE, &good.mr));
        TRY(kit_answer_is(kit_fast_start(good.mr, 16, FALSE), STATUS_SUCCESS));
        break;
    default:
        break;
    }
    if (shape != OFFSET_WHOLE && shape != FEWER)
        TRY(kit_refused(k, kit_fast_again(one.end.qp, &one.fast, RIGHTS), "the fast-register"));
    good.lam->fbo = OFFSET;
    TRY(kit_fast_done(one.end.qp, &good, RIGHTS));
    one.fast = good;
    one.fast.memory->data += OFFSET; /* where its first byte is */
    TRY(is_usable(&one, 0));
    TRY(is_usable(&one, one.fast.length - LENGTH));
    one.fast.memory->data -= OFFSET;
}

/* The pages need not follow each other: here the second comes first. */
static VOID pages_swapped(struct kit *k)
{
    struct kit_lam *swapped = kit_alloc(k, sizeof *swapped);
    UCHAR *image = kit_alloc(k, 2 * PAGE_SIZE);
    NDK_LOGICAL_ADDRESS first;
    struct one one;
    NDK_SGE sge;

    TRY(swapped && image);
    TRY(one_open(k, 2 * PAGE_SIZE, FALSE, &one));
    TRY((swapped->ndk = kit_alloc(k, one.fast.lam->size)) != NULL);
    RtlCopyMemory(swapped->ndk, one.fast.lam->ndk, one.fast.lam->size);
    first = swapped->ndk->AdapterPageArray[0];
    swapped->ndk->AdapterPageArray[0] = swapped->ndk->AdapterPageArray[1];
    swapped->ndk->AdapterPageArray[1] = first;
    one.fast.lam = swapped;
    TRY(kit_fast_done(one.end.qp, &one.fast, RIGHTS));
    kit_fill(image, 2 * PAGE_SIZE, SEED);
    RtlCopyMemory(one.fast.memory->data + PAGE_SIZE, image, PAGE_SIZE);
    RtlCopyMemory(one.fast.memory->data, image + PAGE_SIZE, PAGE_SIZE);
    TRY(kit_order_receive(k, 1, 2 * PAGE_SIZE));
    sge = kit_fast_sge(&one.fast, 0, 2 * PAGE_SIZE);
    TRY(kit_expect(kit_send(one.end.qp, &sge, 1, 0), STATUS_SUCCESS, NULL));
    TRY(kit_order_received(k, 1, 2 * PAGE_SIZE, SEED));
}

static VOID no_remote_access(struct kit *k)
{
    struct one one;

    TRY(one_open(k, PAGE_SIZE, FALSE, &one));
    TRY(kit_posted(kit_fast_again(one.end.qp, &one.fast, (ULONG)k->test->arg),
                   STATUS_ACCESS_VIOLATION));
    TRY(kit_fast_done(one.end.qp, &one.fast, RIGHTS));
}

static VOID not_initialized(struct kit *k)
{
    struct one one;

    TRY(one_open(k, PAGE_SIZE, FALSE, &one));
    TRY(kit_mr_new(one.end.pd, TRUE, &one.fast.mr));
    TRY(kit_refused(k, kit_fast_again(one.end.qp, &one.fast, RIGHTS),
                    "a fast-register of an MR that was not initialized"));
    TRY(kit_answer_is(kit_fast_start(one.fast.mr, 1, FALSE), STATUS_SUCCESS));
    TRY(kit_fast_done(one.end.qp, &one.fast, RIGHTS));
}

static VOID of_another_pd(struct kit *k)
{
    struct kit_pd *other;
    struct one one;

    TRY(one_open(k, PAGE_SIZE, FALSE, &one));
    TRY(kit_pd_new(one.end.adapter, &other));
    TRY(kit_mr_new(other, TRUE, &one.fast.mr));
    TRY(kit_answer_is(kit_fast_start(one.fast.mr, 1, FALSE), STATUS_SUCCESS));
    TRY(fails(kit_fast_again(one.end.qp, &one.fast, RIGHTS)));
}

/* ---- again and again ------------------------------------------------------------------------ */

static BOOLEAN invalidated(struct one *one, ULONG flags)
{
    return kit_expect(kit_invalidate(one->end.qp, &one->fast.mr->object, flags), STATUS_SUCCESS,
                      NULL);
}

static VOID twice(struct kit *k)
{
    struct one one;

    TRY(one_open(k, PAGE_SIZE, FALSE, &one));
    TRY(kit_fast_done(one.end.qp, &one.fast, RIGHTS));
    TRY(fails(kit_fast_again(one.end.qp, &one.fast, RIGHTS)));
}

static VOID tokens_change(struct kit *k)
{
    UINT32 before, now;
    struct kit_request *r;
    struct one one;

    TRY(one_open(k, PAGE_SIZE, TRUE, &one));
    TRY(kit_fast_done(one.end.qp, &one.fast, RIGHTS | NDK_OP_FLAG_ALLOW_REMOTE_READ));
    before = one.fast.remote;
    for (ULONG i = 0; i < 3; i++) {
        TRY(invalidated(&one, 0));
        r = kit_fast_again(one.end.qp, &one.fast, RIGHTS | NDK_OP_FLAG_ALLOW_REMOTE_READ);
        TRY(kit_expect(r, STATUS_SUCCESS, NULL));
        now = one.fast.mr->table->NdkGetRemoteTokenFromMr(one.fast.mr->ndk);
        CHECK_EQUAL(k, "the remote token, at return and after the completion", now,
                    one.fast.remote);
        CHECK(k, now != before, "the remote token is the one of before: 0x%x", (unsigned)now);
        before = now;
    }
    TRY(is_usable(&one, 0));
}

static VOID invalidated_twice(struct kit *k)
{
    struct one one;

    TRY(one_open(k, PAGE_SIZE, FALSE, &one));
    TRY(kit_fast_done(one.end.qp, &one.fast, RIGHTS));
    TRY(invalidated(&one, 0));
    TRY(fails(kit_invalidate(one.end.qp, &one.fast.mr->object, 0)));
}

static VOID used_when_invalid(struct kit *k)
{
    BOOLEAN refused;
    struct one one;
    NDK_SGE sge;

    TRY(one_open(k, PAGE_SIZE, FALSE, &one));
    TRY(kit_fast_done(one.end.qp, &one.fast, RIGHTS));
    TRY(invalidated(&one, 0));
    sge = kit_fast_sge(&one.fast, 0, LENGTH);
    TRY(kit_expect_local_error(kit_send(one.end.qp, &sge, 1, 0), &refused));
}

/* A region of NdkRegisterMr is deregistered; one for fast-registers is invalidated. */
static VOID other_kind(struct kit *k)
{
    struct kit_memory *memory;
    struct one one;

    TRY(one_open(k, PAGE_SIZE, FALSE, &one));
    TRY(kit_memory_new(one.end.pd, LENGTH, 0, &memory));
    TRY(kit_fast_done(one.end.qp, &one.fast, RIGHTS));
    TRY(answers_failure(k, kit_deregister_start(one.fast.mr), "NdkDeregisterMr"));
    TRY(is_usable(&one, 0));
    TRY(fails(kit_invalidate(one.end.qp, &memory->mr->object, 0)));
}

/* Registered, used and invalidated in one go, nothing waited for. */
static VOID in_one_go(struct kit *k)
{
    struct kit_request *last = NULL;
    struct one one;
    NDK_SGE sge;

    TRY(one_open(k, PAGE_SIZE, FALSE, &one));
    kit_fill(one.fast.memory->data, LENGTH, SEED);
    TRY(kit_order_receive(k, 3, LENGTH));
    for (ULONG i = 0; i < 3; i++) {
        TRY(kit_ok(kit_fast_again(one.end.qp, &one.fast,
                                  RIGHTS | NDK_OP_FLAG_SILENT_SUCCESS | (ULONG)k->test->arg)));
        sge = kit_fast_sge(&one.fast, 0, LENGTH);
        TRY(kit_ok(
            kit_send(one.end.qp, &sge, 1, NDK_OP_FLAG_SILENT_SUCCESS | (ULONG)k->test->arg)));
        TRY(kit_ok(last = kit_invalidate(one.end.qp, &one.fast.mr->object,
                                         i < 2 ? NDK_OP_FLAG_SILENT_SUCCESS : 0)));
    }
    TRY(kit_expect(last, STATUS_SUCCESS, NULL));
    for (ULONG i = 0; i < 3; i++)
        TRY(kit_order_received(k, 1, LENGTH, SEED));
}

/* The fence keeps the sink until the Read is over. */
static VOID fenced_invalidate(struct kit *k)
{
    struct kit_request *read, *invalidate;
    struct one one;
    UINT64 address;
    UINT32 token;
    NDK_SGE sge;

    TRY(one_open(k, 8 * PAGE_SIZE, FALSE, &one));
    TRY(kit_fast_done(one.end.qp, &one.fast, RIGHTS));
    TRY(kit_order_expose(k, 8 * PAGE_SIZE, NDK_MR_FLAG_ALLOW_REMOTE_READ, SEED, &address, &token));
    sge = kit_fast_sge(&one.fast, 0, 8 * PAGE_SIZE);
    TRY(kit_ok(read = kit_read(one.end.qp, &sge, 1, address, token, 0)));
    TRY(kit_ok(invalidate =
                   kit_invalidate(one.end.qp, &one.fast.mr->object, NDK_OP_FLAG_READ_FENCE)));
    TRY(kit_expect(read, STATUS_SUCCESS, NULL));
    TRY(kit_expect(invalidate, STATUS_SUCCESS, NULL));
    TRY(kit_filled(k, "what was read", one.fast.memory->data, 8 * PAGE_SIZE, SEED));
}

/* A Read that invalidates its sink, where the adapter can; where not, the flag means nothing. */
static VOID read_invalidates(struct kit *k)
{
    struct one one;
    UINT64 address;
    UINT32 token;
    NDK_SGE sge;

    TRY(one_open(k, PAGE_SIZE, FALSE, &one));
    TRY(kit_fast_done(one.end.qp, &one.fast, RIGHTS));
    TRY(kit_order_expose(k, LENGTH, NDK_MR_FLAG_ALLOW_REMOTE_READ, SEED, &address, &token));
    sge = kit_fast_sge(&one.fast, 0, LENGTH);
    TRY(kit_expect(
        kit_read(one.end.qp, &sge, 1, address, token, NDK_OP_FLAG_RDMA_READ_LOCAL_INVALIDATE),
        STATUS_SUCCESS, NULL));
    TRY(kit_filled(k, "what was read", one.fast.memory->data, LENGTH, SEED));
    if (!(k->info.AdapterFlags & NDK_ADAPTER_FLAG_RDMA_READ_LOCAL_INVALIDATE_SUPPORTED))
        TRY(invalidated(&one, 0));
    TRY(kit_fast_done(one.end.qp, &one.fast, RIGHTS));
    TRY(is_usable(&one, 0));
}

/* ---- by the peer ---------------------------------------------------------------------------- */

/* b has the region; a uses it. */
struct two {
    struct kit_pair pair;
    struct kit_fast fast;
    struct kit_memory *memory, *in; /* a's; b's for receives */
    struct kit_request *receive;
};

static BOOLEAN two_open(struct kit *k, ULONG flags, struct two *two)
{
    struct kit_end *b = &two->pair.b;

    TRY_OR_FALSE(kit_pair_open(k, NULL, &two->pair));
    TRY_OR_FALSE(kit_memory_new(two->pair.a.pd, LENGTH, KIT_SINK, &two->memory));
    TRY_OR_FALSE(kit_memory_new(b->pd, LENGTH, NDK_MR_FLAG_ALLOW_LOCAL_WRITE, &two->in));
    TRY_OR_FALSE(kit_ok(two->receive = kit_receive_all(b, two->in, LENGTH)));
    TRY_OR_FALSE(kit_fast_open(b, PAGE_SIZE, TRUE, &two->fast));
    kit_fill(two->fast.memory->data, PAGE_SIZE, SEED);
    kit_fill(two->memory->data, LENGTH, SEED + 1);
    return kit_fast_done(b->qp, &two->fast, flags);
}

static struct kit_request *access(struct two *two, BOOLEAN write)
{
    NDK_SGE sge = kit_sge(two->memory, 0, LENGTH);
    UINT64 address = (UINT64)(ULONG_PTR)two->fast.base;

    return write ? kit_write(two->pair.a.qp, &sge, 1, address, two->fast.remote, 0)
                 : kit_read(two->pair.a.qp, &sge, 1, address, two->fast.remote, 0);
}

struct right {
    ULONG flags;
    BOOLEAN write, good;
};

static VOID rights(struct kit *k)
{
    const struct right *right = k->test->row;
    struct kit_request *r;
    struct two two;

    TRY(two_open(k, right->flags, &two));
    r = access(&two, right->write);
    if (!right->good) {
        TRY(kit_expect_remote_error(r, STATUS_ACCESS_VIOLATION));
        TRY(kit_ends(&two.pair.b));
        TRY(kit_filled(k, "the region", two.fast.memory->data, PAGE_SIZE, SEED));
        return;
    }
    TRY(kit_expect(r, STATUS_SUCCESS, NULL));
    if (!right->write) {
        TRY(kit_filled(k, "what was read", two.memory->data, LENGTH, SEED));
        return;
    }
    TRY(kit_ok(kit_send_all(&two.pair.a, two.memory, LENGTH, 0)));
    TRY(kit_expect(two.receive, STATUS_SUCCESS, NULL));
    TRY(kit_filled(k, "what was written", two.fast.memory->data, LENGTH, SEED + 1));
}

/* Once its owner has invalidated it the peer's access is the end of the connection. */
static VOID dead_for_the_peer(struct kit *k)
{
    struct two two;

    TRY(two_open(k, NDK_OP_FLAG_ALLOW_REMOTE_WRITE | NDK_OP_FLAG_ALLOW_REMOTE_READ, &two));
    TRY(kit_expect(kit_invalidate(two.pair.b.qp, &two.fast.mr->object, 0), STATUS_SUCCESS, NULL));
    TRY(kit_expect_remote_error(access(&two, (BOOLEAN)(k->test->arg != 0)),
                                STATUS_ACCESS_VIOLATION));
    TRY(kit_ends(&two.pair.a));
    TRY(kit_expect(two.receive, STATUS_CANCELLED, NULL));
    TRY(kit_filled(k, "the region", two.fast.memory->data, PAGE_SIZE, SEED));
}

enum target { TARGET_FAST, TARGET_UNKNOWN, TARGET_REGISTERED, TARGET_AGAIN };

static struct kit_request *send_invalidating(struct two *two, UINT32 token)
{
    NDK_SGE sge = kit_sge(two->memory, 0, LENGTH);

    return kit_send_and_invalidate(two->pair.a.qp, &sge, 1, 0, token);
}

static BOOLEAN invalidated_once(struct two *two)
{
    struct kit_result result;
    struct kit *k = two->pair.a.k;

    TRY_OR_FALSE(kit_expect(send_invalidating(two, two->fast.remote), STATUS_SUCCESS, &result));
    TRY_OR_FALSE(kit_equal(k, KIT_HERE, "the sender's Type", result.type, NdkOperationTypeSend));
    TRY_OR_FALSE(kit_expect(two->receive, STATUS_SUCCESS, &result));
    TRY_OR_FALSE(kit_equal(k, KIT_HERE, "the receiver's Type", result.type,
                           NdkOperationTypeReceiveAndInvalidate));
    TRY_OR_FALSE(kit_equal(k, KIT_HERE, "the token", result.output, two->fast.remote));
    return kit_ok(two->receive = kit_receive_all(&two->pair.b, two->in, LENGTH));
}

static VOID invalidated_by_peer(struct kit *k)
{
    ULONG flags = NDK_OP_FLAG_ALLOW_REMOTE_WRITE;
    struct two two;

    TRY(two_open(k, flags, &two));
    for (ULONG i = 0; i < 3; i++) {
        TRY(invalidated_once(&two));
        TRY(kit_fast_done(two.pair.b.qp, &two.fast, flags));
    }
    TRY(invalidated_once(&two));
    TRY(kit_expect_remote_error(access(&two, TRUE), STATUS_ACCESS_VIOLATION));
    TRY(kit_ends(&two.pair.a));
    TRY(kit_filled(k, "the region", two.fast.memory->data, PAGE_SIZE, SEED));
}

/* A token that cannot be invalidated there: the receiver's provider ends the connection. */
static VOID not_invalidated_by_peer(struct kit *k)
{
    static const NTSTATUS ended[] = {STATUS_ACCESS_VIOLATION,       STATUS_CANCELLED,
                                     STATUS_INVALID_DEVICE_REQUEST, STATUS_INTERNAL_ERROR,
                                     STATUS_REMOTE_RESOURCES,       STATUS_PENDING};
    struct two two;
    UINT32 token;

    TRY(two_open(k, NDK_OP_FLAG_ALLOW_REMOTE_WRITE, &two));
    token = two.fast.remote ^ 0x5a5a5a;
    if (k->test->arg == TARGET_AGAIN) {
        TRY(invalidated_once(&two));
        token = two.fast.remote;
    }
    TRY(kit_expect_remote_error(send_invalidating(&two, token), STATUS_ACCESS_VIOLATION));
    TRY(kit_expect_among(two.receive, ended, NULL));
    TRY(kit_ends(&two.pair.a));
    TRY(kit_ends(&two.pair.b));
}

/* ---- the table ------------------------------------------------------------------------------ */

static const struct right reads = {NDK_OP_FLAG_ALLOW_REMOTE_READ, FALSE, TRUE},
                          writes = {NDK_OP_FLAG_ALLOW_REMOTE_WRITE, TRUE, TRUE},
                          no_read = {NDK_OP_FLAG_ALLOW_REMOTE_WRITE, FALSE, FALSE},
                          no_write = {NDK_OP_FLAG_ALLOW_REMOTE_READ, TRUE, FALSE},
                          one_bit = {NDK_OP_FLAG_ALLOW_LOCAL_WRITE, TRUE, FALSE};

#define FAST(id_, title_, reference_, function_, run_, ...)                                        \
    KIT_CASE_TWO(id_, title_, reference_, "Ndk" function_, kit_obey, run_, __VA_ARGS__)
#define PAIR(id_, title_, reference_, function_, run_, ...)                                        \
    KIT_CASE(id_, title_, reference_, "Ndk" function_, run_, __VA_ARGS__)
#define RIGHT(id_, title_, right_, needs_)                                                         \
    PAIR(id_, title_, "NDKPI 12.5", "FastRegister", rights, .row = &(right_),                      \
         .needs = KIT_NEEDS_LOOPBACK | (needs_))

static const struct kit_case cases[] = {
    KIT_CASE("FRM-001", "FRMRPageCount pages, and one more: IMPLEMENTATION_LIMIT", "NDKPI 9.3",
             "NdkInitializeFastRegisterMr", capacity),
    FAST("FRM-002", "initialized in parallel, and one again", "NDKPI 9.3, 18.12",
         "InitializeFastRegisterMr", initialized_often, .arg = 0),
    KIT_CASE("FRM-003", "initializing without resources", "NDKPI 9.3",
             "NdkInitializeFastRegisterMr", initialize_fails, .needs = KIT_NEEDS_FAIL),
    FAST("FRM-011", "the region is used by Send, receive and Read", "lifetime 7.1", "FastRegister",
         used_at_home, .arg = BASE_OWN),
    FAST("FRM-012", "... at a base address of one's choice", "NDKPI 12.5", "FastRegister",
         used_at_home, .arg = BASE_CHOSEN),
    FAST("FRM-013", "... at base address 0", "NDKPI 18.11", "FastRegister", used_at_home,
         .arg = BASE_ZERO),
    FAST("FRM-014", "... from an offset in its first page on", "NDKPI 12.5", "FastRegister", shapes,
         .arg = OFFSET_WHOLE),
    FAST("FRM-015", "a base that does not fit the FBO is refused", "lifetime 7.5 no. 4",
         "FastRegister", shapes, .arg = BASE_OFF),
    FAST("FRM-016", "a Length beyond the pages is refused", "lifetime 7.5 no. 4", "FastRegister",
         shapes, .arg = LENGTH_OFF),
    FAST("FRM-017", "fewer pages than initialized", "lifetime 7.5 no. 3", "FastRegister", shapes,
         .arg = FEWER),
    FAST("FRM-018", "more pages than initialized are refused", "lifetime 7.5 no. 3", "FastRegister",
         shapes, .arg = MORE_PAGES),
    FAST("FRM-019", "an FBO beyond the first page is refused", "NDKPI 12.5", "FastRegister", shapes,
         .arg = FBO_OFF),
    FAST("FRM-020", "pages in any order", "NDKPI 12.5", "FastRegister", pages_swapped, .arg = 0),
    FAST("FRM-021", "REMOTE_READ without RemoteAccess: ACCESS_VIOLATION", "lifetime 7.5 no. 1",
         "FastRegister", no_remote_access, .arg = NDK_OP_FLAG_ALLOW_REMOTE_READ),
    FAST("FRM-022", "REMOTE_WRITE without RemoteAccess: ACCESS_VIOLATION", "lifetime 7.5 no. 1",
         "FastRegister", no_remote_access, .arg = NDK_OP_FLAG_ALLOW_REMOTE_WRITE),
    FAST("FRM-023", "an MR that was not initialized", "lifetime 7.5 no. 1", "FastRegister",
         not_initialized, .arg = 0),
    FAST("FRM-024", "an MR of another PD", "lifetime 7.5 no. 2", "FastRegister", of_another_pd,
         .arg = 0),
    FAST("FRM-031", "not again before it was invalidated", "lifetime 7.5 no. 6", "FastRegister",
         twice, .arg = 0),
    FAST("FRM-032", "each time a new remote token, known when the call returns",
         "lifetime 7.5 no. 5", "GetRemoteTokenFromMr", tokens_change, .arg = 0),
    FAST("FRM-033", "invalidated twice fails", "NDKPI 12.6", "Invalidate", invalidated_twice,
         .arg = 0),
    FAST("FRM-034", "an invalidated region is none", "lifetime 7.6", "Invalidate",
         used_when_invalid, .arg = 0),
    FAST("FRM-035", "neither deregistered nor a registered MR invalidated", "NDKPI 12.6",
         "Invalidate", other_kind, .arg = 0),
    FAST("FRM-036", "registered, sent and invalidated, nothing waited for", "lifetime 6.3",
         "FastRegister", in_one_go, .arg = 0),
    FAST("FRM-037", "... with all but the last deferred", "lifetime 6.6", "FastRegister", in_one_go,
         .arg = NDK_OP_FLAG_DEFER, .version = {1, 2}),
    FAST("FRM-038", "a fenced Invalidate waits for the Read into the region", "lifetime 6.5",
         "Invalidate", fenced_invalidate, .needs = KIT_NEEDS_READ),
    FAST("FRM-039", "a Read invalidates its sink, or ignores the flag", "lifetime 7.6", "Read",
         read_invalidates, .needs = KIT_NEEDS_READ, .version = {1, 2}),
    RIGHT("FRM-041", "the peer's Read with REMOTE_READ", reads, KIT_NEEDS_READ),
    RIGHT("FRM-042", "the peer's Write with REMOTE_WRITE", writes, 0),
    RIGHT("FRM-043", "the peer's Read without REMOTE_READ", no_read, KIT_NEEDS_READ),
    RIGHT("FRM-044", "the peer's Write without REMOTE_WRITE", no_write, 0),
    RIGHT("FRM-045", "the peer's Write with LOCAL_WRITE alone", one_bit, 0),
    PAIR("FRM-051", "the peer's Read after an Invalidate", "lifetime 7.6", "Invalidate",
         dead_for_the_peer, .needs = KIT_NEEDS_LOOPBACK | KIT_NEEDS_READ),
    PAIR("FRM-052", "the peer's Write after an Invalidate", "lifetime 7.6", "Invalidate",
         dead_for_the_peer, .arg = 1, .needs = KIT_NEEDS_LOOPBACK),
    PAIR("FRM-053", "invalidated by the peer, again and again, and then dead", "NDKPI 12.9",
         "SendAndInvalidate", invalidated_by_peer, .needs = KIT_NEEDS_LOOPBACK, .version = {1, 2}),
    PAIR("FRM-054", "an unknown token in a SendAndInvalidate ends the connection", "NDKPI 12.9",
         "SendAndInvalidate", not_invalidated_by_peer, .arg = TARGET_UNKNOWN,
         .needs = KIT_NEEDS_LOOPBACK, .version = {1, 2}),
    PAIR("FRM-055", "a token invalidated twice by the peer ends the connection", "NDKPI 12.9",
         "SendAndInvalidate", not_invalidated_by_peer, .arg = TARGET_AGAIN,
         .needs = KIT_NEEDS_LOOPBACK, .version = {1, 2}),
};

KIT_TOPIC(fast, "fast-registers and what ends them");
