// SPDX-License-Identifier: MIT
/* Memory windows: binding, what the peer may reach through one, what ends it (NDKPI 8.2, 11, 12.4,
 * lifetime 7.4). b has the region and the windows; a is the peer. */
#include "kit_work.h"

#define SEED   71
#define AT     40u /* of the window, in the part */
#define LENGTH 200u
#define RREAD  NDK_OP_FLAG_ALLOW_REMOTE_READ
#define RWRITE NDK_OP_FLAG_ALLOW_REMOTE_WRITE
#define BOTH   (RREAD | RWRITE)
#define NEEDS  (KIT_NEEDS_LOOPBACK | KIT_NEEDS_MW)

/* What a bind that must not succeed may answer, once posted. */
static const NTSTATUS failures[] = {STATUS_INVALID_DEVICE_REQUEST,
                                    STATUS_ACCESS_VIOLATION,
                                    STATUS_INTERNAL_ERROR,
                                    STATUS_INVALID_PARAMETER,
                                    STATUS_DEVICE_BUSY,
                                    STATUS_REMOTE_RESOURCES,
                                    STATUS_PENDING};

static BOOLEAN fails(struct kit_request *r)
{
    TRY_OR_FALSE(r != NULL);
    return !NT_SUCCESS(r->posted) || kit_expect_among(r, failures, NULL);
}

struct two {
    struct kit_pair pair;
    struct kit_part part; /* b's */
    struct kit_mw *mw;
    UINT32 token;              /* of the window */
    struct kit_memory *memory; /* a's: source of Writes, sink of Reads */
    struct kit_memory *in;     /* b's, for messages */
};

static UINT32 token_of(const struct kit_mw *mw)
{
    return mw->table->NdkGetRemoteTokenFromMw(mw->ndk);
}

/* Connected; a region with these rights, a window that is not bound. */
static BOOLEAN two_open(struct kit *k, ULONG mr_flags, struct two *two)
{
    struct kit_end *b = &two->pair.b;

    RtlZeroMemory(two, sizeof *two);
    TRY_OR_FALSE(kit_pair_open(k, NULL, &two->pair));
    TRY_OR_FALSE(kit_memory_new(two->pair.a.pd, KIT_PART_AROUND, KIT_SINK, &two->memory));
    TRY_OR_FALSE(kit_memory_new(b->pd, 64, NDK_MR_FLAG_ALLOW_LOCAL_WRITE, &two->in));
    TRY_OR_FALSE(kit_part_open(b->pd, &two->part));
    TRY_OR_FALSE(kit_part_register(&two->part, mr_flags));
    kit_fill(two->part.around->data, two->part.around->size, SEED);
    kit_fill(two->memory->data, KIT_PART_AROUND, SEED + 1);
    return kit_mw_new(b->pd, &two->mw);
}

static struct kit_request *bind(struct two *two, LONGLONG at, SIZE_T length, ULONG flags)
{
    return kit_bind(two->pair.b.qp, two->part.mr, two->mw, two->part.data + at, length, flags);
}

static BOOLEAN bound(struct two *two, ULONG flags)
{
    struct kit_result result;

    TRY_OR_FALSE(kit_expect(bind(two, AT, LENGTH, flags), STATUS_SUCCESS, &result));
    if (result.ex)
        TRY_OR_FALSE(kit_equal(two->pair.b.k, KIT_HERE, "the Type of a bind", result.type,
                               NdkOperationTypeBind));
    two->token = token_of(two->mw);
    return TRUE;
}

static struct kit_request *reach(struct two *two, BOOLEAN write, LONGLONG at, ULONG length,
                                 UINT32 token)
{
    NDK_SGE sge = kit_sge(two->memory, 0, length);
    UINT64 address = (UINT64)(ULONG_PTR)(two->part.data + at);

    return write ? kit_write(two->pair.a.qp, &sge, 1, address, token, 0)
                 : kit_read(two->pair.a.qp, &sge, 1, address, token, 0);
}

/* An access of the peer that is good; what it moved is compared, and nothing else has changed. */
static BOOLEAN reaches(struct two *two, BOOLEAN write, LONGLONG at, ULONG length, UINT32 token)
{
    struct kit *k = two->pair.a.k;
    SIZE_T size = two->part.around->size;
    struct kit_request *receive;
    UCHAR *image = kit_alloc(k, size);

    TRY_OR_FALSE(image != NULL);
    RtlCopyMemory(image, two->part.around->data, size);
    TRY_OR_FALSE(kit_ok(receive = kit_receive_all(&two->pair.b, two->in, 64)));
    TRY_OR_FALSE(kit_expect(reach(two, write, at, length, token), STATUS_SUCCESS, NULL));
    /* Behind a message the Write is there. */
    TRY_OR_FALSE(kit_expect(kit_send_all(&two->pair.a, two->memory, 8, 0), STATUS_SUCCESS, NULL));
    TRY_OR_FALSE(kit_expect(receive, STATUS_SUCCESS, NULL));
    if (write)
        RtlCopyMemory(image + KIT_PART_AT + at, two->memory->data, length);
    else
        TRY_OR_FALSE(kit_bytes(k, KIT_HERE, "what was read", two->memory->data,
                               image + KIT_PART_AT + at, length));
    return kit_bytes(k, KIT_HERE, "the memory", two->part.around->data, image, size);
}

/* An access of the peer that is not: it ends the connection and moves nothing. exact: what the peer
 * learns where the door says so. */
static BOOLEAN refused_with(struct two *two, BOOLEAN write, LONGLONG at, ULONG length, UINT32 token,
                            NTSTATUS exact)
{
    struct kit *k = two->pair.a.k;
    SIZE_T size = two->part.around->size;
    UCHAR *image = kit_alloc(k, size);

    TRY_OR_FALSE(image != NULL);
    RtlCopyMemory(image, two->part.around->data, size);
    TRY_OR_FALSE(kit_expect_remote_error(reach(two, write, at, length, token), exact));
    TRY_OR_FALSE(kit_ends(&two->pair.b));
    return kit_bytes(k, KIT_HERE, "the memory", two->part.around->data, image, size);
}

static BOOLEAN is_refused(struct two *two, BOOLEAN write, LONGLONG at, ULONG length, UINT32 token)
{
    return refused_with(two, write, at, length, token, STATUS_ACCESS_VIOLATION);
}

#define WRITABLE NDK_MR_FLAG_ALLOW_LOCAL_WRITE
#define IS_WRITE ((BOOLEAN)(k->test->arg != 0))

/* ---- binding -------------------------------------------------------------------------------- */

static VOID good(struct kit *k)
{
    struct two two;

    TRY(two_open(k, WRITABLE, &two));
    TRY(bound(&two, BOTH));
    TRY(reaches(&two, IS_WRITE, AT, LENGTH, two.token));
    TRY(reaches(&two, IS_WRITE, AT, 1, two.token));
    TRY(reaches(&two, IS_WRITE, AT + LENGTH - 1, 1, two.token));
}

static VOID whole_region(struct kit *k)
{
    struct two two;

    TRY(two_open(k, WRITABLE, &two));
    TRY(kit_expect(bind(&two, 0, KIT_PART_SIZE, BOTH), STATUS_SUCCESS, NULL));
    TRY(reaches(&two, TRUE, 0, KIT_PART_SIZE, token_of(two.mw)));
    TRY(reaches(&two, FALSE, 0, KIT_PART_SIZE, token_of(two.mw)));
}

/* The token is good for a message right behind the bind: nobody waits for its completion. */
static VOID token_at_return(struct kit *k)
{
    struct kit_request *receive, *sent, *r;
    struct kit_memory *note;
    struct two two;
    UINT32 token;

    TRY(two_open(k, WRITABLE, &two));
    TRY(kit_memory_new(two.pair.b.pd, 64, 0, &note));
    TRY(kit_ok(receive = kit_receive_all(&two.pair.a, two.memory, 64)));
    TRY(kit_ok(r = bind(&two, AT, LENGTH, RREAD)));
    token = token_of(two.mw);
    *(UINT32 *)(PVOID)note->data = token;
    TRY(kit_ok(sent = kit_send_all(&two.pair.b, note, sizeof token, 0)));
    TRY(kit_expect(receive, STATUS_SUCCESS, NULL));
    TRY(kit_expect(r, STATUS_SUCCESS, NULL));
    TRY(kit_expect(sent, STATUS_SUCCESS, NULL));
    CHECK_EQUAL(k, "the token, at return and after the completion", token_of(two.mw), token);
    token = *(UINT32 *)(PVOID)two.memory->data;
    TRY(reaches(&two, FALSE, AT, LENGTH, token));
}

static VOID not_connected(struct kit *k)
{
    struct kit_part part;
    struct kit_mw *mw;
    struct kit_end end;

    TRY(kit_end_open(k, NULL, &end));
    TRY(kit_part_open(end.pd, &part));
    TRY(kit_part_register(&part, WRITABLE));
    TRY(kit_mw_new(end.pd, &mw));
    TRY(kit_posted(kit_bind(end.qp, part.mr, mw, part.data, 8, RREAD), STATUS_CONNECTION_INVALID));
}

/* Remote write asks for local write of the region; remote read for nothing. */
static VOID right_of_the_region(struct kit *k)
{
    struct two two;

    TRY(two_open(k, 0, &two));
    TRY(kit_posted(bind(&two, AT, LENGTH, (ULONG)k->test->arg), STATUS_ACCESS_VIOLATION));
    TRY(bound(&two, RREAD));
    TRY(reaches(&two, FALSE, AT, LENGTH, two.token));
}

struct place {
    LONGLONG at;
    SIZE_T length;
    ULONG flags;
};

/* A bind that cannot be: refused or failed, and when refused the window can still be bound. */
static VOID bad_place(struct kit *k)
{
    const struct place *place = k->test->row;
    struct kit_request *r;
    struct two two;

    TRY(two_open(k, WRITABLE, &two));
    r = bind(&two, place->at, place->length, place->flags);
    TRY(fails(r));
    if (NT_SUCCESS(r->posted))
        return;
    TRY(bound(&two, BOTH));
    TRY(reaches(&two, TRUE, AT, LENGTH, two.token));
}

enum stranger { STRANGE_WINDOW, STRANGE_REGION, UNREGISTERED, FAST };

/* Of another protection domain, or a region that is none yet. */
static VOID strangers(struct kit *k)
{
    struct kit_part other;
    struct kit_pd *pd;
    struct kit_mr *mr;
    struct kit_mw *mw;
    struct two two;

    TRY(two_open(k, WRITABLE, &two));
    TRY(kit_pd_new(two.pair.b.adapter, &pd));
    mw = two.mw;
    mr = two.part.mr;
    other = two.part;
    switch ((enum stranger)k->test->arg) {
    case STRANGE_WINDOW:
        TRY(kit_mw_new(pd, &mw));
        break;
    case STRANGE_REGION:
        TRY(kit_part_open(pd, &other));
        TRY(kit_part_register(&other, WRITABLE));
        mr = other.mr;
        break;
    case UNREGISTERED:
        TRY(kit_mr_new(two.pair.b.pd, FALSE, &mr));
        break;
    case FAST:
        TRY(kit_mr_new(two.pair.b.pd, TRUE, &mr));
        TRY(kit_answer_is(kit_fast_start(mr, 2, TRUE), STATUS_SUCCESS));
        break;
    }
    TRY(fails(kit_bind(two.pair.b.qp, mr, mw, other.data + AT, LENGTH, RREAD)));
}

static VOID silent_and_fenced(struct kit *k)
{
    struct kit_request *last;
    struct two two;

    TRY(two_open(k, WRITABLE, &two));
    TRY(kit_ok(bind(&two, AT, LENGTH, BOTH | NDK_OP_FLAG_SILENT_SUCCESS | (ULONG)k->test->arg)));
    TRY(kit_ok(last = kit_invalidate(two.pair.b.qp, &two.mw->object, 0)));
    TRY(kit_expect(last, STATUS_SUCCESS, NULL));
}

/* ---- what the peer reaches ------------------------------------------------------------------ */

struct reach_row {
    LONGLONG at;
    ULONG length;
};

static VOID outside(struct kit *k)
{
    const struct reach_row *row = k->test->row;
    struct two two;

    TRY(two_open(k, WRITABLE, &two));
    TRY(bound(&two, BOTH));
    TRY(refused_with(&two, IS_WRITE, row->at, row->length, two.token,
                     IS_WRITE ? STATUS_ACCESS_VIOLATION : STATUS_REMOTE_RESOURCES));
}

static VOID without_right(struct kit *k)
{
    struct two two;

    TRY(two_open(k, WRITABLE, &two));
    TRY(bound(&two, IS_WRITE ? RREAD : RWRITE));
    TRY(is_refused(&two, IS_WRITE, AT, 8, two.token));
}

/* A window gives no right to the region's own token. */
static VOID by_the_regions_token(struct kit *k)
{
    struct two two;

    TRY(two_open(k, WRITABLE, &two));
    TRY(bound(&two, BOTH));
    TRY(is_refused(&two, IS_WRITE, AT, 8, two.part.remote));
}

static VOID overlapping(struct kit *k)
{
    struct kit_mw *second;
    struct kit_request *r;
    struct two two;

    TRY(two_open(k, WRITABLE, &two));
    TRY(kit_mw_new(two.pair.b.pd, &second));
    TRY(bound(&two, BOTH));
    r = kit_bind(two.pair.b.qp, two.part.mr, second, two.part.data + AT + LENGTH / 2, LENGTH,
                 RREAD);
    TRY(kit_expect(r, STATUS_SUCCESS, NULL));
    TRY(reaches(&two, TRUE, AT, LENGTH, two.token));
    TRY(reaches(&two, FALSE, AT + LENGTH / 2, LENGTH, token_of(second)));
    TRY(kit_expect(kit_invalidate(two.pair.b.qp, &two.mw->object, 0), STATUS_SUCCESS, NULL));
    TRY(reaches(&two, FALSE, AT + LENGTH / 2, LENGTH, token_of(second)));
    TRY(is_refused(&two, FALSE, AT, 8, two.token));
}

/* ---- what ends a window --------------------------------------------------------------------- */

static BOOLEAN invalidated(struct two *two)
{
    struct kit_result result;

    TRY_OR_FALSE(
        kit_expect(kit_invalidate(two->pair.b.qp, &two->mw->object, 0), STATUS_SUCCESS, &result));
    return !result.ex || kit_equal(two->pair.b.k, KIT_HERE, "the Type of an invalidate",
                                   result.type, NdkOperationTypeInvalidate);
}

static VOID dead_when_invalidated(struct kit *k)
{
    struct two two;

    TRY(two_open(k, WRITABLE, &two));
    TRY(bound(&two, BOTH));
    TRY(invalidated(&two));
    TRY(is_refused(&two, IS_WRITE, AT, 8, two.token));
}

static VOID bound_again(struct kit *k)
{
    struct two two;
    UINT32 before;

    TRY(two_open(k, WRITABLE, &two));
    for (ULONG i = 0; i < 3; i++) {
        before = two.token;
        TRY(bound(&two, BOTH));
        CHECK(k, two.token != before, "the token is the one of before: 0x%x", (unsigned)before);
        TRY(reaches(&two, i & 1, AT, LENGTH, two.token));
        TRY(invalidated(&two));
    }
    before = two.token;
    TRY(bound(&two, BOTH));
    TRY(is_refused(&two, IS_WRITE, AT, 8, before));
}

static VOID bound_twice(struct kit *k)
{
    struct kit_request *r;
    struct two two;

    TRY(two_open(k, WRITABLE, &two));
    TRY(bound(&two, BOTH));
    r = bind(&two, AT, 8, BOTH);
    TRY(fails(r));
    if (!NT_SUCCESS(r->posted))
        TRY(reaches(&two, TRUE, AT, LENGTH, two.token));
}

static VOID invalidated_twice(struct kit *k)
{
    struct two two;

    TRY(two_open(k, WRITABLE, &two));
    if (k->test->arg) {
        TRY(bound(&two, BOTH));
        TRY(invalidated(&two));
    }
    TRY(fails(kit_invalidate(two.pair.b.qp, &two.mw->object, 0)));
}

/* The peer names the window in a Send with Invalidate: it is dead when the receive completes. */
static VOID by_the_peer(struct kit *k)
{
    NDK_SGE sge;
    struct kit_request *receive;
    struct two two;

    TRY(two_open(k, WRITABLE, &two));
    TRY(bound(&two, BOTH));
    TRY(kit_ok(receive = kit_receive_all(&two.pair.b, two.in, 64)));
    sge = kit_sge(two.memory, 0, 8);
    TRY(kit_expect(kit_send_and_invalidate(two.pair.a.qp, &sge, 1, 0, two.token), STATUS_SUCCESS,
                   NULL));
    TRY(kit_expect(receive, STATUS_SUCCESS, NULL));
    if (k->test->arg) {
        TRY(bound(&two, BOTH));
        TRY(reaches(&two, TRUE, AT, LENGTH, two.token));
        return;
    }
    TRY(is_refused(&two, TRUE, AT, 8, two.token));
}

static VOID closed_while_bound(struct kit *k)
{
    struct two two;

    TRY(two_open(k, WRITABLE, &two));
    TRY(bound(&two, BOTH));
    TRY(kit_close(&two.mw->object));
    TRY(is_refused(&two, IS_WRITE, AT, 8, two.token));
}

/* Either the region cannot be deregistered, or its windows are over with it. */
static VOID deregistered_while_bound(struct kit *k)
{
    NTSTATUS status;
    struct two two;

    TRY(two_open(k, WRITABLE, &two));
    TRY(bound(&two, BOTH));
    status = kit_answer(kit_deregister_start(two.part.mr));
    CHECK(k, status != KIT_NO_ANSWER, "no answer");
    if (NT_SUCCESS(status)) {
        TRY(is_refused(&two, TRUE, AT, 8, two.token));
        return;
    }
    TRY(reaches(&two, TRUE, AT, LENGTH, two.token));
    TRY(invalidated(&two));
    TRY(kit_answer_is(kit_deregister_start(two.part.mr), STATUS_SUCCESS));
}

/* ---- the cases ------------------------------------------------------------------------------ */

static const struct place before_region = {-1, 8, BOTH};
static const struct place beyond_region = {KIT_PART_SIZE - 7, 8, BOTH};
static const struct place behind_region = {KIT_PART_SIZE, 1, BOTH};
static const struct place wraps = {AT, ~(SIZE_T)0 - 7, BOTH};
static const struct place without_rights = {AT, LENGTH, 0};

static const struct reach_row one_before = {AT - 1, 1};
static const struct reach_row over_begin = {AT - 1, 8};
static const struct reach_row one_behind = {AT + LENGTH, 1};
static const struct reach_row over_end = {AT + LENGTH - 7, 8};
static const struct reach_row far_away = {0x10000000, 8};

#define BIND "NdkBind"
#define ACCESS(id, title, run, ...)                                                                \
    KIT_CASE(id "R", title ", by a Read", "NDKPI 12.7, lifetime 7.4", "NdkRead", run,              \
             .needs = NEEDS | KIT_NEEDS_READ, .arg = 0, ##__VA_ARGS__),                            \
        KIT_CASE(id "W", title ", by a Write", "NDKPI 12.8, lifetime 7.4", "NdkWrite", run,        \
                 .needs = NEEDS, .arg = 1, ##__VA_ARGS__)

static const struct kit_case cases[] = {
    ACCESS("MW-001", "a window is reached from its first byte to its last", good),
    KIT_CASE("MW-002", "a window of the whole region", "NDKPI 12.4", BIND, whole_region,
             .needs = NEEDS | KIT_NEEDS_READ),
    KIT_CASE("MW-003", "the token is good when NdkBind returns", "NDKPI 11, lifetime 7.4",
             "NdkGetRemoteTokenFromMw", token_at_return, .needs = NEEDS | KIT_NEEDS_READ),
    KIT_CASE("MW-004", "a QP that is not connected: CONNECTION_INVALID", "NDKPI 12.4", BIND,
             not_connected, .needs = KIT_NEEDS_MW),
    KIT_CASE("MW-005", "remote write of a region without local write: ACCESS_VIOLATION",
             "NDKPI 12.4", BIND, right_of_the_region, .needs = NEEDS | KIT_NEEDS_READ,
             .arg = RWRITE),
    KIT_CASE("MW-006", "the same with remote read", "NDKPI 12.4", BIND, right_of_the_region,
             .needs = NEEDS | KIT_NEEDS_READ, .arg = BOTH),
    KIT_CASE("MW-010", "from before the region", "NDKPI 12.4", BIND, bad_place, .needs = NEEDS,
             .row = &before_region),
    KIT_CASE("MW-011", "beyond the region", "NDKPI 12.4", BIND, bad_place, .needs = NEEDS,
             .row = &beyond_region),
    KIT_CASE("MW-012", "behind the region", "NDKPI 12.4", BIND, bad_place, .needs = NEEDS,
             .row = &behind_region),
    KIT_CASE("MW-013", "a length that wraps", "NDKPI 12.4", BIND, bad_place, .needs = NEEDS,
             .row = &wraps),
    KIT_CASE("MW-014", "no remote right at all", "NDKPI 12.4", BIND, bad_place, .needs = NEEDS,
             .row = &without_rights),
    KIT_CASE("MW-015", "a window of another domain", "NDKPI 12.4", BIND, strangers, .needs = NEEDS,
             .arg = STRANGE_WINDOW),
    KIT_CASE("MW-016", "a region of another domain", "NDKPI 12.4", BIND, strangers, .needs = NEEDS,
             .arg = STRANGE_REGION),
    KIT_CASE("MW-017", "a region that is not registered", "NDKPI 12.4", BIND, strangers,
             .needs = NEEDS, .arg = UNREGISTERED),
    KIT_CASE("MW-018", "a region for fast-registers", "NDKPI 12.4", BIND, strangers, .needs = NEEDS,
             .arg = FAST),
    KIT_CASE("MW-019", "bound and invalidated without a word", "NDKPI 12.4, 12.6", BIND,
             silent_and_fenced, .needs = NEEDS),
    KIT_CASE("MW-020", "the same behind a fence", "NDKPI 12.4, 12.6", BIND, silent_and_fenced,
             .needs = NEEDS, .arg = NDK_OP_FLAG_READ_FENCE),
    ACCESS("MW-030", "the byte before a window", outside, .row = &one_before),
    ACCESS("MW-031", "across its begin", outside, .row = &over_begin),
    ACCESS("MW-032", "the byte behind a window", outside, .row = &one_behind),
    ACCESS("MW-033", "across its end", outside, .row = &over_end),
    ACCESS("MW-034", "far from it", outside, .row = &far_away),
    ACCESS("MW-035", "a window without the right", without_right),
    ACCESS("MW-036", "the region's own token gives no right", by_the_regions_token),
    KIT_CASE("MW-037", "windows may overlap, and end by themselves", "lifetime 7.4", BIND,
             overlapping, .needs = NEEDS | KIT_NEEDS_READ),
    ACCESS("MW-040", "an invalidated window", dead_when_invalidated),
    ACCESS("MW-041", "bound again: the token of before", bound_again),
    KIT_CASE("MW-042", "bound while it is bound", "lifetime 7.4", BIND, bound_twice,
             .needs = NEEDS),
    KIT_CASE("MW-043", "invalidated, never bound", "NDKPI 12.6", "NdkInvalidate", invalidated_twice,
             .needs = NEEDS, .arg = 0),
    KIT_CASE("MW-044", "invalidated twice", "NDKPI 12.6", "NdkInvalidate", invalidated_twice,
             .needs = NEEDS, .arg = 1),
    KIT_CASE("MW-045", "invalidated by the peer", "NDKPI 12.9", "NdkSendAndInvalidate", by_the_peer,
             .needs = NEEDS, .arg = 0, .version = {1, 2}),
    KIT_CASE("MW-046", "invalidated by the peer, and bound again", "NDKPI 12.9",
             "NdkSendAndInvalidate", by_the_peer, .needs = NEEDS, .arg = 1, .version = {1, 2}),
    ACCESS("MW-047", "a window that was closed", closed_while_bound),
    KIT_CASE("MW-048", "its region deregistered while it is bound", "lifetime 7.3",
             "NdkDeregisterMr", deregistered_while_bound, .needs = NEEDS),
};

KIT_TOPIC(mw, "memory windows: what they show and what ends them");
