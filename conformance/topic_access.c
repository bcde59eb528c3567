// SPDX-License-Identifier: MIT
/*
 * Who may reach which bytes: the elements of one's own requests, and the peer's Reads and Writes
 * (NDKPI 1.9, 12.7, 12.8, 17, lifetime 7.3). A row is an access; each is tried in every way there
 * is.
 */
#include "kit_work.h"

#define SEED 51

enum token {
    GOOD,
    STALE,         /* deregistered */
    RENEWED,       /* deregistered and registered again: the token of before */
    UNKNOWN,       /* nobody was given it */
    OTHER_PD,      /* of the same bytes, in another domain */
    OTHER_ADAPTER, /* ... of another adapter */
    LOCAL,         /* the region's local token, where a remote one is needed */
    PRIVILEGED     /* the domain's, where a remote one is needed */
};

#define WRAPS (-1000000) /* stands for 8 bytes before the end of all addresses */

struct access {
    LONGLONG at; /* from the region's first byte */
    ULONG length;
    ULONG flags; /* of the region */
    enum token token;
    BOOLEAN good;
    BOOLEAN outside; /* that is what is wrong */
};

#define SIZE   KIT_PART_SIZE
#define LWRITE NDK_MR_FLAG_ALLOW_LOCAL_WRITE
#define RREAD  NDK_MR_FLAG_ALLOW_REMOTE_READ
#define RWRITE NDK_MR_FLAG_ALLOW_REMOTE_WRITE
#define ALL    (RREAD | RWRITE | NDK_MR_FLAG_RDMA_READ_SINK)

static const struct access rows[] = {
    /* 0 */ {0, 1, ALL, GOOD, TRUE, FALSE},
    /* 1 */ {SIZE - 1, 1, ALL, GOOD, TRUE, FALSE},
    /* 2 */ {0, SIZE, ALL, GOOD, TRUE, FALSE},
    /* 3 */ {SIZE, 0, ALL, GOOD, TRUE, FALSE},
    /* 4 */ {-1, 1, ALL, GOOD, FALSE, TRUE},
    /* 5 */ {-1, 2, ALL, GOOD, FALSE, TRUE},
    /* 6 */ {SIZE, 1, ALL, GOOD, FALSE, TRUE},
    /* 7 */ {SIZE - 1, 2, ALL, GOOD, FALSE, TRUE},
    /* 8 */ {0, SIZE + 1, ALL, GOOD, FALSE, TRUE},
    /* 9 */ {WRAPS, 16, ALL, GOOD, FALSE, FALSE},
    /* 10 */ {0, 8, ALL, STALE, FALSE, FALSE},
    /* 11 */ {0, 8, ALL, RENEWED, FALSE, FALSE},
    /* 12 */ {0, 8, ALL, UNKNOWN, FALSE, FALSE},
    /* 13 */ {0, 8, ALL, OTHER_PD, FALSE, FALSE},
    /* 14 */ {0, 8, ALL, OTHER_ADAPTER, FALSE, FALSE},
    /* 15 */ {0, 8, ALL, LOCAL, FALSE, FALSE},
    /* 16 */ {0, 8, ALL, PRIVILEGED, FALSE, FALSE},
    /* 17 */ {0, 8, RREAD | NDK_MR_FLAG_RDMA_READ_SINK, GOOD, FALSE, FALSE},
    /* 18 */ {0, 8, RWRITE, GOOD, FALSE, FALSE},
    /* 19 */ {0, 8, LWRITE, GOOD, FALSE, FALSE},
    /* 20 */ {0, 8, LWRITE, GOOD, TRUE, FALSE},
    /* 21 */ {0, 8, RREAD, GOOD, TRUE, FALSE},
    /* 22 */ {0, 8, RWRITE, GOOD, TRUE, FALSE},
    /* 23 */ {0, 8, 0, GOOD, TRUE, FALSE},
    /* 24 */ {0, 8, LWRITE | NDK_MR_FLAG_RDMA_READ_SINK, GOOD, TRUE, FALSE},
};

/* Of a case: how, and the row (the server's .row would be its options). */
#define ARG(use, row) ((row) << 4 | (use))
#define USE(k)        ((enum use)((k)->test->arg & 15))
#define ROW(k)        (&rows[(k)->test->arg >> 4])

enum use { USE_SEND, USE_RECEIVE, USE_READ, USE_WRITE };

static PUCHAR address_of(const struct access *access, const struct kit_part *part)
{
    return access->at == WRAPS ? (PUCHAR) ~(ULONG_PTR)7 : part->data + access->at;
}

/* Registers the part as the row has it; *part has the token to use in local and in remote. */
static BOOLEAN part_of(const struct access *access, struct kit_end *end, struct kit_part *part)
{
    struct kit_adapter *adapter = end->adapter;
    struct kit_pd *pd = end->pd;
    struct kit_part before;

    if (access->token == OTHER_ADAPTER)
        TRY_OR_FALSE(kit_adapter_open(end->k, &adapter));
    if (access->token == OTHER_PD || access->token == OTHER_ADAPTER)
        TRY_OR_FALSE(kit_pd_new(adapter, &pd));
    TRY_OR_FALSE(kit_part_open(pd, part));
    TRY_OR_FALSE(kit_part_register(part, access->flags));
    switch (access->token) {
    case STALE:
        return kit_answer_is(kit_deregister_start(part->mr), STATUS_SUCCESS);
    case RENEWED:
        before = *part;
        TRY_OR_FALSE(kit_answer_is(kit_deregister_start(part->mr), STATUS_SUCCESS));
        TRY_OR_FALSE(kit_part_register(part, access->flags));
        if (part->local == before.local || part->remote == before.remote)
            return kit_skip(end->k, "a region that is registered again has its old tokens");
        part->local = before.local;
        part->remote = before.remote;
        return TRUE;
    case UNKNOWN:
        part->local ^= 0x5a5a5a;
        part->remote ^= 0x5a5a5a;
        return TRUE;
    case LOCAL:
        if (part->local == part->remote)
            return kit_skip(end->k, "local and remote tokens are the same here");
        part->remote = part->local;
        return TRUE;
    case PRIVILEGED:
        pd->table->NdkGetPrivilegedMemoryRegionToken(pd->ndk, &part->remote);
        return TRUE;
    default:
        return TRUE;
    }
}

/* An access that failed has changed nothing; one that reached over an end may have got as far as
 * the end before that was seen, since it comes in segments. */
static BOOLEAN unchanged(struct kit *k, const struct kit_part *part, const struct access *access)
{
    SIZE_T size = part->around->size;
    UCHAR *image = kit_alloc(k, size);

    TRY_OR_FALSE(image != NULL);
    kit_fill(image, size, SEED);
    if (access->outside)
        RtlCopyMemory(image + KIT_PART_AT, part->data, KIT_PART_SIZE);
    return kit_bytes(k, KIT_HERE, "the memory", part->around->data, image, size);
}

/* Changed by exactly that access, which wrote or read what was filled with that seed. */
static BOOLEAN changed(struct kit *k, const struct kit_part *part, const struct access *access,
                       ULONG seed)
{
    SIZE_T size = part->around->size;
    UCHAR *image = kit_alloc(k, size);

    TRY_OR_FALSE(image != NULL);
    kit_fill(image, size, SEED);
    kit_fill(image + KIT_PART_AT + access->at, access->length, seed);
    return kit_bytes(k, KIT_HERE, "the memory", part->around->data, image, size);
}

/* ---- one's own elements --------------------------------------------------------------------- */

static BOOLEAN local_good(struct kit_end *end, struct kit_request *r, const struct kit_part *part)
{
    const struct access *access = ROW(end->k);
    struct kit *k = end->k;

    TRY_OR_FALSE(kit_expect(r, STATUS_SUCCESS, NULL));
    switch (USE(k)) {
    case USE_SEND:
        TRY_OR_FALSE(kit_order_received(k, 1, access->length, SEED + 1));
        return changed(k, part, access, SEED + 1);
    case USE_WRITE:
        TRY_OR_FALSE(kit_still_works(end)); /* the message behind it is there */
        return !access->length || kit_order_holds(k, 0, access->length, SEED + 1);
    default:
        return changed(k, part, access, SEED + 2);
    }
}

static VOID local(struct kit *k)
{
    const struct access *access = ROW(k);
    enum use use = USE(k);
    struct kit_request *r = NULL;
    struct kit_part part;
    struct kit_end end;
    BOOLEAN refused;
    UINT64 address;
    UINT32 token;
    NDK_SGE sge;

    TRY(kit_end_open(k, NULL, &end));
    TRY(part_of(access, &end, &part));
    kit_fill(part.around->data, part.around->size, SEED);
    if (access->good && (use == USE_SEND || use == USE_WRITE))
        kit_fill(part.data + access->at, access->length, SEED + 1);
    RtlZeroMemory(&sge, sizeof sge);
    sge.VirtualAddress = address_of(access, &part);
    sge.Length = access->length;
    sge.MemoryRegionToken = part.local;
    if (use == USE_RECEIVE)
        TRY((r = kit_receive(end.qp, &sge, 1)) != NULL);
    TRY(kit_end_connect(&end, NULL));
    TRY(kit_order_expose(k, 2 * PAGE_SIZE,
                         NDK_MR_FLAG_ALLOW_REMOTE_READ | NDK_MR_FLAG_ALLOW_REMOTE_WRITE, SEED + 2,
                         &address, &token));
    if (use == USE_SEND) {
        TRY(kit_order_receive(k, 1, access->length));
        r = kit_send(end.qp, &sge, 1, 0);
    } else if (use == USE_READ) {
        r = kit_read(end.qp, &sge, 1, address, token, 0);
    } else if (use == USE_WRITE) {
        r = kit_write(end.qp, &sge, 1, address, token, 0);
    } else if (NT_SUCCESS(r->posted)) {
        TRY(kit_order_send(k, 1, access->length, 0, SEED + 2));
    }
    if (access->good) {
        TRY(local_good(&end, r, &part));
        return;
    }
    TRY(kit_expect_local_error(r, &refused));
    if (!refused)
        TRY(kit_ends(&end));
    TRY(unchanged(k, &part, access));
}

/* ---- the peer's accesses -------------------------------------------------------------------- */

#define NOTE 8 /* bytes of the message behind an access */

struct exposed {
    UINT64 address;
    UINT32 token, reserved;
};

static VOID remote_server(struct kit *k)
{
    const struct access *access = ROW(k);
    BOOLEAN write = (BOOLEAN)(USE(k) == USE_WRITE);
    struct exposed exposed = {0, 0, 0};
    struct kit_memory *memory;
    struct kit_request *receive;
    struct kit_part part;
    struct kit_end end;

    TRY(kit_end_open(k, NULL, &end));
    TRY(part_of(access, &end, &part));
    kit_fill(part.around->data, part.around->size, SEED);
    if (access->good && !write)
        kit_fill(part.data + access->at, access->length, SEED + 1);
    TRY(kit_memory_new(end.pd, NOTE, NDK_MR_FLAG_ALLOW_LOCAL_WRITE, &memory));
    TRY(kit_ok(receive = kit_receive_all(&end, memory, NOTE)));
    TRY(kit_end_connect(&end, NULL));
    exposed.address = (UINT64)(ULONG_PTR)address_of(access, &part);
    exposed.token = part.remote;
    TRY(kit_tell(k, "exposed", &exposed, sizeof exposed));
    TRY(kit_expect(receive, access->good ? STATUS_SUCCESS : STATUS_CANCELLED, NULL));
    TRY(access->good ? changed(k, &part, access, SEED + 1) : unchanged(k, &part, access));
    TRY(kit_meet(k, "looked"));
}

static VOID remote_client(struct kit *k)
{
    const struct access *access = ROW(k);
    BOOLEAN write = (BOOLEAN)(USE(k) == USE_WRITE);
    struct kit_memory *memory;
    struct exposed exposed;
    struct kit_request *r;
    struct kit_end end;
    NTSTATUS exact;
    NDK_SGE sge;

    TRY(kit_end_open(k, NULL, &end));
    TRY(kit_memory_new(end.pd, 2 * PAGE_SIZE, KIT_SINK, &memory));
    if (write)
        kit_fill(memory->data, access->length, SEED + 1);
    TRY(kit_end_connect(&end, NULL));
    TRY(kit_hear(k, "exposed", &exposed, sizeof exposed));
    sge = kit_sge(memory, 0, access->length);
    r = write ? kit_write(end.qp, &sge, 1, exposed.address, exposed.token, 0)
              : kit_read(end.qp, &sge, 1, exposed.address, exposed.token, 0);
    if (access->good) {
        TRY(kit_expect(r, STATUS_SUCCESS, NULL));
        if (!write)
            TRY(kit_filled(k, "what was read", memory->data, access->length, SEED + 1));
        TRY(kit_expect(kit_send_all(&end, memory, NOTE, 0), STATUS_SUCCESS, NULL));
    } else {
        exact = access->outside && !write ? STATUS_REMOTE_RESOURCES : STATUS_ACCESS_VIOLATION;
        /* The number may happen to name some region of this adapter too. */
        TRY(kit_expect_remote_error(r, access->token == OTHER_ADAPTER ? STATUS_PENDING : exact));
        TRY(kit_ends(&end));
        for (ULONG i = 0; i < memory->size && !write; i++)
            CHECK_EQUAL(k, "a byte of the sink", memory->data[i], 0);
    }
    TRY(kit_meet(k, "looked"));
}

/* ---- regions that go ------------------------------------------------------------------------ */

#define WRITES 16
#define BULK   (64u << 10)

/* Deregistered while the peer writes to it: once that has completed nothing changes it any more. */
static VOID deregistered_under_load(struct kit *k)
{
    static const NTSTATUS any[] = {STATUS_SUCCESS,          STATUS_ACCESS_VIOLATION,
                                   STATUS_REMOTE_RESOURCES, STATUS_CANCELLED,
                                   STATUS_IO_TIMEOUT,       STATUS_PENDING};
    static const struct kit_end_options options = {.sizes = {.initiator_depth = WRITES}};
    struct kit_memory *from, *to;
    struct kit_request *requests[WRITES];
    struct kit_pair pair;
    struct kit_call *call;
    NDK_SGE sge;

    TRY(kit_pair_open(k, &options, &pair));
    TRY(kit_memory_new(pair.a.pd, BULK, 0, &from));
    TRY(kit_memory_new(pair.b.pd, BULK, NDK_MR_FLAG_ALLOW_REMOTE_WRITE, &to));
    kit_fill(from->data, BULK, SEED);
    sge = kit_sge(from, 0, BULK);
    for (ULONG i = 0; i < WRITES; i++) {
        requests[i] = kit_write(pair.a.qp, &sge, 1, (UINT64)(ULONG_PTR)to->data, to->remote, 0);
        TRY(requests[i] != NULL);
    }
    TRY((call = kit_deregister_start(to->mr)) != NULL);
    TRY(kit_answer_is(call, STATUS_SUCCESS));
    kit_fill(to->data, BULK, SEED + 1);
    for (ULONG i = 0; i < WRITES; i++)
        if (NT_SUCCESS(requests[i]->posted))
            TRY(kit_expect_among(requests[i], any, NULL));
    kit_settle(k);
    TRY(kit_filled(k, "the memory that was registered", to->data, BULK, SEED + 1));
}

/* ---- the table ------------------------------------------------------------------------------ */

#define OWN(id_, name_, use_, title_, row_, ...)                                                   \
    KIT_CASE_TWO(id_, name_ ": " title_, "NDKPI 1.9, 17", "Ndk" name_, kit_obey, local,            \
                 .arg = ARG(use_, row_), __VA_ARGS__)
#define PEERS(id_, name_, use_, title_, row_, ...)                                                 \
    KIT_CASE_TWO(id_, "the peer's " name_ ": " title_, "NDKPI 17", "Ndk" name_, remote_server,     \
                 remote_client, .arg = ARG(use_, row_), __VA_ARGS__)

#define OWN_FOUR(id_, title_, row_)                                                                \
    OWN("SGE-" id_ "1", "Send", USE_SEND, title_, row_, .needs = 0),                               \
        OWN("SGE-" id_ "2", "Receive", USE_RECEIVE, title_, row_, .needs = 0),                     \
        OWN("SGE-" id_ "3", "Read", USE_READ, title_, row_, .needs = KIT_NEEDS_READ),              \
        OWN("SGE-" id_ "4", "Write", USE_WRITE, title_, row_, .needs = 0)
#define PEERS_TWO(id_, title_, row_)                                                               \
    PEERS("RMT-" id_ "1", "Read", USE_READ, title_, row_, .needs = KIT_NEEDS_READ),                \
        PEERS("RMT-" id_ "2", "Write", USE_WRITE, title_, row_, .needs = 0)
#define SIX(id_, title_, row_) OWN_FOUR(id_, title_, row_), PEERS_TWO(id_, title_, row_)

static const struct kit_case cases[] = {
    SIX("01", "the first byte of a region", 0),
    SIX("02", "the last byte of a region", 1),
    SIX("03", "all of a region", 2),
    SIX("04", "no byte, at the end of a region", 3),
    SIX("05", "the byte before a region", 4),
    SIX("06", "from the byte before a region", 5),
    SIX("07", "the byte behind a region", 6),
    SIX("08", "to the byte behind a region", 7),
    SIX("09", "a byte more than a region has", 8),
    SIX("10", "over the end of all addresses", 9),
    SIX("11", "a token of a region that was deregistered", 10),
    SIX("12", "the former token of a region", 11),
    SIX("13", "a token that nobody was given", 12),
    SIX("14", "a token of another PD", 13),
    SIX("15", "a token of another adapter", 14),
    PEERS_TWO("16", "the region's local token", 15),
    PEERS_TWO("17", "the privileged token", 16),
    PEERS("RMT-181", "Read", USE_READ, "without the right, to a writable region", 18,
          .needs = KIT_NEEDS_READ),
    PEERS("RMT-182", "Write", USE_WRITE, "without the right, to a readable region", 17, .needs = 0),
    PEERS_TWO("19", "without the right, to a region for local writing", 19),
    PEERS("RMT-201", "Read", USE_READ, "with that right alone", 21, .needs = KIT_NEEDS_READ),
    PEERS("RMT-202", "Write", USE_WRITE, "with that right alone", 22, .needs = 0),

    OWN("SGE-211", "Send", USE_SEND, "a region without any flag", 23, .needs = 0),
    OWN("SGE-214", "Write", USE_WRITE, "a region without any flag", 23, .needs = 0),
    OWN("SGE-222", "Receive", USE_RECEIVE, "a region without LOCAL_WRITE", 17, .needs = 0),
    OWN("SGE-223", "Read", USE_READ, "a region without LOCAL_WRITE", 17, .needs = KIT_NEEDS_READ),
    OWN("SGE-232", "Receive", USE_RECEIVE, "a region with LOCAL_WRITE alone", 20, .needs = 0),
    OWN("SGE-233", "Read", USE_READ, "a region with LOCAL_WRITE alone, where sinks need no right",
        20, .needs = KIT_NEEDS_READ, .adapter_flags = NDK_ADAPTER_FLAG_RDMA_READ_SINK_NOT_REQUIRED),
    OWN("SGE-243", "Read", USE_READ,
        "a region with LOCAL_WRITE alone, where sinks need their right", 19,
        .needs = KIT_NEEDS_READ,
        .adapter_flags_clear = NDK_ADAPTER_FLAG_RDMA_READ_SINK_NOT_REQUIRED),
    OWN("SGE-253", "Read", USE_READ, "a region with LOCAL_WRITE and RDMA_READ_SINK", 24,
        .needs = KIT_NEEDS_READ),
    OWN("SGE-262", "Receive", USE_RECEIVE, "REMOTE_WRITE contains LOCAL_WRITE", 22, .needs = 0),

    KIT_CASE("RMT-301", "a region deregistered while the peer writes to it", "lifetime 7.3",
             "NdkDeregisterMr", deregistered_under_load, .needs = KIT_NEEDS_LOOPBACK),
};

KIT_TOPIC(access, "who may reach which bytes");
