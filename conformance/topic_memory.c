// SPDX-License-Identifier: MIT
/*
 * Memory at this end: registering, mapping, and the privileged token (NDKPI 6.7, 8.6,
 * 9, lifetime 7.1-7.3). Who may reach what is in topic_access.c, fast-registers are in
 * topic_fast.c.
 */
#include "kit_work.h"

#define SEED 41

#define AT     KIT_PART_AT
#define INNER  KIT_PART_SIZE
#define AROUND KIT_PART_AROUND

/* ---- registering ---------------------------------------------------------------------------- */

struct plain {
    struct kit_adapter *adapter;
    struct kit_pd *pd;
    struct kit_part part;
};

static BOOLEAN plain_open(struct kit *k, struct plain *p)
{
    RtlZeroMemory(p, sizeof *p);
    TRY_OR_FALSE(kit_adapter_open(k, &p->adapter));
    TRY_OR_FALSE(kit_pd_new(p->adapter, &p->pd));
    return kit_part_open(p->pd, &p->part);
}

static BOOLEAN fails(struct kit *k, struct kit_call *call, const char *what)
{
    NTSTATUS status = kit_answer(call);

    if (status == KIT_NO_ANSWER)
        return FALSE;
    return NT_SUCCESS(status)
               ? kit_fail(k, KIT_HERE, "%s: have %s, need a failure", what, kit_status_name(status))
               : TRUE;
}

/* All that can be made of 0x1, 0x2, 0x5 and 0x8. */
static VOID flags_taken(struct kit *k)
{
    static const ULONG flags[] = {0x0, 0x1, 0x2, 0x3, 0x5, 0x7, 0x8, 0x9, 0xa, 0xb, 0xd, 0xf};
    struct plain p;

    TRY(plain_open(k, &p));
    for (ULONG i = 0; i < RTL_NUMBER_OF(flags); i++) {
        TRY(kit_part_register(&p.part, flags[i]));
        TRY(kit_answer_is(kit_deregister_start(p.part.mr), STATUS_SUCCESS));
    }
}

static VOID registered_twice(struct kit *k)
{
    struct plain p;

    TRY(plain_open(k, &p));
    TRY(kit_part_register(&p.part, 0));
    TRY(fails(k, kit_register_start(p.part.mr, p.part.mdl, INNER, 0), "registering it again"));
    TRY(kit_answer_is(kit_deregister_start(p.part.mr), STATUS_SUCCESS));
    TRY(kit_part_register(&p.part, 0));
}

static VOID deregistered_twice(struct kit *k)
{
    struct plain p;

    TRY(plain_open(k, &p));
    TRY(kit_part_register(&p.part, 0));
    TRY(kit_answer_is(kit_deregister_start(p.part.mr), STATUS_SUCCESS));
    TRY(fails(k, kit_deregister_start(p.part.mr), "deregistering it again"));
    TRY(kit_part_register(&p.part, 0));
}

static VOID tokens_change(struct kit *k)
{
    struct kit_part before;
    struct plain p;

    TRY(plain_open(k, &p));
    TRY(kit_part_register(&p.part, KIT_SINK | NDK_MR_FLAG_ALLOW_REMOTE_READ));
    before = p.part;
    TRY(kit_answer_is(kit_deregister_start(p.part.mr), STATUS_SUCCESS));
    TRY(kit_part_register(&p.part, KIT_SINK | NDK_MR_FLAG_ALLOW_REMOTE_READ));
    CHECK(k, p.part.local != before.local, "the local token is the same again: 0x%x",
          (unsigned)before.local);
    CHECK(k, p.part.remote != before.remote, "the remote token is the same again: 0x%x",
          (unsigned)before.remote);
}

static VOID wrong_kind(struct kit *k)
{
    struct kit_mr *fast;
    struct plain p;

    TRY(plain_open(k, &p));
    TRY(kit_mr_new(p.pd, TRUE, &fast));
    TRY(fails(k, kit_register_start(fast, p.part.mdl, INNER, 0),
              "NdkRegisterMr of an MR for fast-registers"));
    TRY(fails(k, kit_fast_start(p.part.mr, 1, FALSE),
              "NdkInitializeFastRegisterMr of an MR for NdkRegisterMr"));
    TRY(kit_part_register(&p.part, 0));
}

static VOID register_fails(struct kit *k)
{
    struct plain p;

    TRY(plain_open(k, &p));
    TRY(kit_make_fail(k, "NdkRegisterMr", STATUS_INSUFFICIENT_RESOURCES));
    TRY(kit_answer_is(kit_register_start(p.part.mr, p.part.mdl, INNER, 0),
                      STATUS_INSUFFICIENT_RESOURCES));
    TRY(kit_part_register(&p.part, 0));
}

/* Many at a time, of the same pages. */
static VOID registered_often(struct kit *k)
{
    struct kit_mr *mrs[16];
    struct kit_call *calls[16];
    struct plain p;

    TRY(plain_open(k, &p));
    for (ULONG i = 0; i < RTL_NUMBER_OF(mrs); i++) {
        TRY(kit_mr_new(p.pd, FALSE, &mrs[i]));
        TRY(kit_answer_is(kit_register_start(mrs[i], p.part.mdl, INNER, 0), STATUS_SUCCESS));
        for (ULONG j = 0; j < i; j++)
            CHECK(k,
                  mrs[i]->table->NdkGetLocalTokenFromMr(mrs[i]->ndk) !=
                      mrs[j]->table->NdkGetLocalTokenFromMr(mrs[j]->ndk),
                  "two regions have one local token");
    }
    for (ULONG i = 0; i < RTL_NUMBER_OF(mrs); i++)
        TRY((calls[i] = kit_deregister_start(mrs[i])) != NULL);
    for (ULONG i = 0; i < RTL_NUMBER_OF(mrs); i++)
        TRY(kit_answer_is(calls[i], STATUS_SUCCESS));
}

/* ---- chains --------------------------------------------------------------------------------- */

#define LINKS 3

/* The memory of `around` from AT on, INNER bytes in three descriptors, with a hole before the last
 * one or not. */
static BOOLEAN chain(struct kit *k, struct kit_memory *around, ULONG hole, PMDL *out)
{
    static const ULONG ends[LINKS + 1] = {0, 1000, PAGE_SIZE - AT, INNER};
    PMDL before = NULL, mdl;

    for (ULONG i = 0; i < LINKS; i++) {
        ULONG skip = i == LINKS - 1 ? hole : 0;

        TRY_OR_FALSE(
            kit_mdl_new(k, around->data + AT + ends[i] + skip, ends[i + 1] - ends[i], &mdl));
        if (before)
            before->Next = mdl;
        else
            *out = mdl;
        before = mdl;
    }
    return TRUE;
}

enum chain_length { CHAIN_WHOLE = INNER, CHAIN_SHORTER = 1010, CHAIN_LONGER = INNER + 1 };

/* What is sent from across the borders of the chain is what is there. */
static VOID chain_registered(struct kit *k)
{
    ULONG length = (ULONG)k->test->arg;
    struct kit_memory *around;
    struct kit_request *r;
    struct kit_mr *mr;
    struct kit_end end;
    BOOLEAN refused;
    NDK_SGE sge;
    PMDL mdl;

    TRY(kit_end_open(k, NULL, &end));
    TRY(kit_memory_bare(k, AROUND, &around));
    TRY(chain(k, around, 0, &mdl));
    TRY(kit_mr_new(end.pd, FALSE, &mr));
    TRY(kit_answer_is(kit_register_start(mr, mdl, length, 0), STATUS_SUCCESS));
    kit_fill(around->data + AT, length, SEED);
    TRY(kit_end_connect(&end, NULL));
    TRY(kit_order_receive(k, 1, length));
    RtlZeroMemory(&sge, sizeof sge);
    sge.VirtualAddress = around->data + AT;
    sge.Length = length;
    sge.MemoryRegionToken = mr->table->NdkGetLocalTokenFromMr(mr->ndk);
    TRY(kit_expect(kit_send(end.qp, &sge, 1, 0), STATUS_SUCCESS, NULL));
    TRY(kit_order_received(k, 1, length, SEED));
    sge.Length++; /* it ends at its length, not with the chain */
    TRY(kit_order_receive(k, 1, length + 1));
    TRY(kit_expect_local_error(r = kit_send(end.qp, &sge, 1, 0), &refused));
}

static VOID chain_with_hole(struct kit *k)
{
    struct plain p;
    PMDL mdl;

    TRY(plain_open(k, &p));
    TRY(chain(k, p.part.around, (ULONG)k->test->arg, &mdl));
    TRY(kit_answer_is(kit_register_start(p.part.mr, mdl, INNER, 0), STATUS_INVALID_PARAMETER));
    /* As far as the hole it is one range. */
    TRY(kit_answer_is(kit_register_start(p.part.mr, mdl, PAGE_SIZE - AT, 0), STATUS_SUCCESS));
}

static VOID chain_too_short(struct kit *k)
{
    struct plain p;
    PMDL mdl;

    TRY(plain_open(k, &p));
    TRY(chain(k, p.part.around, 0, &mdl));
    TRY(fails(k, kit_register_start(p.part.mr, mdl, INNER + 1, 0), "more than the chain has"));
    TRY(kit_answer_is(kit_register_start(p.part.mr, mdl, INNER, 0), STATUS_SUCCESS));
}

/* ---- mappings ------------------------------------------------------------------------------- */

#define LAM_PAGES 8
#define LAM_SIZE(pages)                                                                            \
    ((ULONG)(FIELD_OFFSET(NDK_LOGICAL_ADDRESS_MAPPING, AdapterPageArray) +                         \
             (pages) * sizeof(NDK_LOGICAL_ADDRESS)))

struct built {
    NDK_LOGICAL_ADDRESS_MAPPING *lam;
    ULONG size, fbo;
    NTSTATUS status;
};

/* Builds one with room for that many bytes. */
static BOOLEAN build(struct kit_adapter *adapter, PMDL mdl, SIZE_T length, ULONG room,
                     struct built *b)
{
    struct kit *k = adapter->object.k;
    struct kit_call *call = kit_call_new(k, &adapter->object, "NdkBuildLAM");

    b->lam = kit_alloc(k, LAM_SIZE(LAM_PAGES));
    TRY_OR_FALSE(call && b->lam);
    b->size = room;
    kit_call_returned(call,
                      adapter->table->NdkBuildLAM(adapter->ndk, mdl, length, kit_request_done, call,
                                                  room ? b->lam : NULL, &b->size, &b->fbo));
    b->status = kit_answer(call);
    return (BOOLEAN)(b->status != KIT_NO_ANSWER);
}

struct lam_row {
    ULONG at, length;
};

static VOID lam_pages(struct kit *k)
{
    const struct lam_row *row = k->test->row;
    ULONG pages = (row->at % PAGE_SIZE + row->length + PAGE_SIZE - 1) / PAGE_SIZE;
    struct plain p;
    struct built b;
    PMDL mdl;

    TRY(plain_open(k, &p));
    TRY(kit_mdl_new(k, p.part.around->data + row->at, row->length, &mdl));
    TRY(build(p.adapter, mdl, row->length, 0, &b));
    CHECK_STATUS(k, "NdkBuildLAM without room", b.status, STATUS_BUFFER_TOO_SMALL);
    CHECK_EQUAL(k, "size needed", b.size, LAM_SIZE(pages));
    TRY(build(p.adapter, mdl, row->length, LAM_SIZE(pages) - 1, &b));
    CHECK_STATUS(k, "NdkBuildLAM one byte short", b.status, STATUS_BUFFER_TOO_SMALL);
    CHECK_EQUAL(k, "size needed, one byte short", b.size, LAM_SIZE(pages));
    TRY(build(p.adapter, mdl, row->length, LAM_SIZE(pages), &b));
    CHECK_STATUS(k, "NdkBuildLAM", b.status, STATUS_SUCCESS);
    CHECK_EQUAL(k, "AdapterPageCount", b.lam->AdapterPageCount, pages);
    CHECK_EQUAL(k, "size written", b.size, LAM_SIZE(pages));
    CHECK_EQUAL(k, "FBO", b.fbo, row->at % PAGE_SIZE);
    for (ULONG i = 0; i < pages; i++)
        CHECK_EQUAL(k, "offset of an adapter page", b.lam->AdapterPageArray[i].QuadPart % PAGE_SIZE,
                    0);
    p.adapter->table->NdkReleaseLAM(p.adapter->ndk, b.lam);
}

static VOID lam_of_chain(struct kit *k)
{
    struct plain p;
    struct built b;
    PMDL mdl;

    TRY(plain_open(k, &p));
    TRY(chain(k, p.part.around, 0, &mdl));
    TRY(build(p.adapter, mdl, INNER, LAM_SIZE(LAM_PAGES), &b));
    CHECK_STATUS(k, "NdkBuildLAM of a chain", b.status, STATUS_SUCCESS);
    CHECK_EQUAL(k, "AdapterPageCount", b.lam->AdapterPageCount, 2);
    CHECK_EQUAL(k, "FBO", b.fbo, AT);
    p.adapter->table->NdkReleaseLAM(p.adapter->ndk, b.lam);
    TRY(build(p.adapter, mdl, 1, LAM_SIZE(LAM_PAGES), &b));
    CHECK_STATUS(k, "NdkBuildLAM of a chain's first byte", b.status, STATUS_SUCCESS);
    CHECK_EQUAL(k, "AdapterPageCount of a byte", b.lam->AdapterPageCount, 1);
    p.adapter->table->NdkReleaseLAM(p.adapter->ndk, b.lam);
}

static VOID lam_of_hole(struct kit *k)
{
    struct plain p;
    struct built b;
    PMDL mdl;

    TRY(plain_open(k, &p));
    TRY(chain(k, p.part.around, (ULONG)k->test->arg, &mdl));
    TRY(build(p.adapter, mdl, INNER, LAM_SIZE(LAM_PAGES), &b));
    CHECK_STATUS(k, "NdkBuildLAM over a hole", b.status, STATUS_INVALID_PARAMETER);
    TRY(build(p.adapter, mdl, PAGE_SIZE - AT, LAM_SIZE(LAM_PAGES), &b));
    CHECK_STATUS(k, "NdkBuildLAM up to the hole", b.status, STATUS_SUCCESS);
    p.adapter->table->NdkReleaseLAM(p.adapter->ndk, b.lam);
}

static VOID lam_fails(struct kit *k)
{
    struct plain p;
    struct built b;

    TRY(plain_open(k, &p));
    TRY(kit_make_fail(k, "NdkBuildLAM", STATUS_INSUFFICIENT_RESOURCES));
    TRY(build(p.adapter, p.part.mdl, INNER, LAM_SIZE(LAM_PAGES), &b));
    CHECK_STATUS(k, "NdkBuildLAM", b.status, STATUS_INSUFFICIENT_RESOURCES);
    TRY(build(p.adapter, p.part.mdl, INNER, LAM_SIZE(LAM_PAGES), &b));
    CHECK_STATUS(k, "NdkBuildLAM again", b.status, STATUS_SUCCESS);
    p.adapter->table->NdkReleaseLAM(p.adapter->ndk, b.lam);
}

/* Several of the same pages, released in another order; the descriptor stays usable. */
static VOID lam_often(struct kit *k)
{
    struct built b[4];
    struct plain p;

    TRY(plain_open(k, &p));
    for (ULONG i = 0; i < RTL_NUMBER_OF(b); i++) {
        TRY(build(p.adapter, p.part.mdl, INNER, LAM_SIZE(LAM_PAGES), &b[i]));
        CHECK_STATUS(k, "NdkBuildLAM", b[i].status, STATUS_SUCCESS);
    }
    for (ULONG i = 0; i < RTL_NUMBER_OF(b); i++)
        p.adapter->table->NdkReleaseLAM(p.adapter->ndk, b[i ^ 1].lam);
    TRY(kit_part_register(&p.part, 0));
}

/* ---- the privileged token ------------------------------------------------------------------- */

enum use { USE_SEND, USE_RECEIVE, USE_WRITE, USE_READ };

/* The bytes of a page and a half, an element a page. */
#define MAPPED (PAGE_SIZE + PAGE_SIZE / 2)

static BOOLEAN mapped_sges(struct kit_end *end, const struct kit_lam *lam, NDK_SGE sges[2])
{
    UINT32 token;

    end->pd->table->NdkGetPrivilegedMemoryRegionToken(end->pd->ndk, &token);
    RtlZeroMemory(sges, 2 * sizeof *sges);
    if (lam->ndk->AdapterPageCount != 2 || lam->fbo)
        return kit_fail(end->k, KIT_HERE, "%u pages from %u on, need 2 from 0",
                        (unsigned)lam->ndk->AdapterPageCount, (unsigned)lam->fbo);
    for (ULONG i = 0; i < 2; i++) {
        sges[i].LogicalAddress = lam->ndk->AdapterPageArray[i];
        sges[i].Length = i ? MAPPED - PAGE_SIZE : PAGE_SIZE;
        sges[i].MemoryRegionToken = token;
    }
    return TRUE;
}

static VOID privileged(struct kit *k)
{
    enum use use = (enum use)k->test->arg;
    struct kit_memory *memory;
    struct kit_request *r = NULL;
    struct kit_lam *lam;
    struct kit_end end;
    NDK_SGE sges[2];
    UINT64 address;
    UINT32 token;

    TRY(kit_end_open(k, NULL, &end));
    TRY(kit_memory_bare(k, MAPPED, &memory));
    TRY(kit_lam_new(end.adapter, memory->mdl, MAPPED, &lam));
    TRY(mapped_sges(&end, lam, sges));
    if (use != USE_READ && k->info.MaxInitiatorRequestSge < 2)
        TRY(kit_skip(k, "a request may name one element only"));
    if (use == USE_RECEIVE)
        TRY(kit_ok(r = kit_receive(end.qp, sges, 2)));
    else
        kit_fill(memory->data, MAPPED, SEED);
    TRY(kit_end_connect(&end, NULL));
    TRY(kit_order_receive(k, 1, MAPPED));
    TRY(kit_order_expose(k, MAPPED, NDK_MR_FLAG_ALLOW_REMOTE_READ | NDK_MR_FLAG_ALLOW_REMOTE_WRITE,
                         SEED + (use == USE_READ), &address, &token));
    if (use == USE_SEND)
        r = kit_send(end.qp, sges, 2, 0);
    else if (use == USE_WRITE)
        r = kit_write(end.qp, sges, 2, address, token, 0);
    else if (use == USE_READ)
        r = kit_read(end.qp, sges, 1, address, token, 0);
    else
        TRY(kit_order_send(k, 1, MAPPED, 0, SEED));
    TRY(kit_expect(r, STATUS_SUCCESS, NULL));
    if (use == USE_SEND)
        TRY(kit_order_received(k, 1, MAPPED, SEED));
    if (use == USE_RECEIVE)
        TRY(kit_filled(k, "the message", memory->data, MAPPED, SEED));
    if (use == USE_READ)
        TRY(kit_filled(k, "what was read", memory->data, PAGE_SIZE, SEED + 1));
    if (use == USE_WRITE) {
        TRY(kit_expect(kit_send(end.qp, sges, 2, 0), STATUS_SUCCESS, NULL));
        TRY(kit_order_received(k, 1, MAPPED, SEED));
        TRY(kit_order_holds(k, 0, MAPPED, SEED));
    }
}

/* Where sinks need their right the privileged token has none. */
static VOID privileged_no_sink(struct kit *k)
{
    struct kit_memory *memory;
    struct kit_lam *lam;
    struct kit_end end;
    BOOLEAN refused;
    NDK_SGE sges[2];
    UINT64 address;
    UINT32 token;

    TRY(kit_end_open(k, NULL, &end));
    TRY(kit_memory_bare(k, MAPPED, &memory));
    TRY(kit_lam_new(end.adapter, memory->mdl, MAPPED, &lam));
    TRY(mapped_sges(&end, lam, sges));
    TRY(kit_end_connect(&end, NULL));
    TRY(kit_order_expose(k, MAPPED, NDK_MR_FLAG_ALLOW_REMOTE_READ, SEED, &address, &token));
    TRY(kit_expect_local_error(kit_read(end.qp, sges, 1, address, token, 0), &refused));
}

static VOID privileged_of_each_pd(struct kit *k)
{
    struct kit_pd *other;
    struct plain p;
    UINT32 one, two;

    TRY(plain_open(k, &p));
    TRY(kit_pd_new(p.adapter, &other));
    p.pd->table->NdkGetPrivilegedMemoryRegionToken(p.pd->ndk, &one);
    p.pd->table->NdkGetPrivilegedMemoryRegionToken(p.pd->ndk, &two);
    CHECK_EQUAL(k, "the token asked for again", two, one);
    other->table->NdkGetPrivilegedMemoryRegionToken(other->ndk, &two);
    TRY(kit_part_register(&p.part, 0));
    CHECK(k, p.part.local != one && p.part.local != two, "a region has a privileged token");
}

/* ---- the table ------------------------------------------------------------------------------ */

static const struct lam_row byte = {0, 1}, page = {0, PAGE_SIZE},
                            page_and_byte = {0, PAGE_SIZE + 1}, to_the_end = {AT, PAGE_SIZE - AT},
                            over_it = {AT, PAGE_SIZE - AT + 1}, last_byte = {PAGE_SIZE - 1, 1},
                            across = {PAGE_SIZE - 1, 2}, second_page = {PAGE_SIZE + 1, PAGE_SIZE};

#define LAM(id_, title_, row_)                                                                     \
    KIT_CASE(id_, "LAM: pages, FBO and size of " title_, "NDKPI 6.7", "NdkBuildLAM", lam_pages,    \
             .row = &(row_))
#define PRIVILEGED(id_, name_, use_, ...)                                                          \
    KIT_CASE_TWO(id_, "the privileged token and pages of a LAM in a " name_, "lifetime 7.7",       \
                 "Ndk" name_, kit_obey, privileged, .arg = use_, __VA_ARGS__)

static const struct kit_case cases[] = {
    KIT_CASE("MEM-001", "every combination of flags is taken", "NDKPI 2.2", "NdkRegisterMr",
             flags_taken),
    KIT_CASE("MEM-002", "registered twice fails, and changes nothing", "lifetime 7.3",
             "NdkRegisterMr", registered_twice),
    KIT_CASE("MEM-003", "deregistered twice fails, and changes nothing", "NDKPI 9.2",
             "NdkDeregisterMr", deregistered_twice),
    KIT_CASE("MEM-004", "registered again it has new tokens", "lifetime 7.3", "NdkRegisterMr",
             tokens_change),
    KIT_CASE("MEM-005", "an MR is of one kind for its life", "NDKPI 9.1, 9.3", "NdkRegisterMr",
             wrong_kind),
    KIT_CASE("MEM-006", "registering without resources", "NDKPI 9.1", "NdkRegisterMr",
             register_fails, .needs = KIT_NEEDS_FAIL),
    KIT_CASE("MEM-007", "the same pages in many regions", "NDKPI 9.1", "NdkRegisterMr",
             registered_often),
    KIT_CASE_TWO("MEM-011", "a chain with offsets is one region", "NDKPI 9.1", "NdkRegisterMr",
                 kit_obey, chain_registered, .arg = CHAIN_WHOLE),
    KIT_CASE_TWO("MEM-012", "a region that is shorter than its chain", "NDKPI 9.1", "NdkRegisterMr",
                 kit_obey, chain_registered, .arg = CHAIN_SHORTER),
    KIT_CASE("MEM-013", "a chain with a hole of a byte: INVALID_PARAMETER", "NDKPI 9.1",
             "NdkRegisterMr", chain_with_hole, .arg = 1),
    KIT_CASE("MEM-014", "a chain with a hole of a page: INVALID_PARAMETER", "NDKPI 9.1",
             "NdkRegisterMr", chain_with_hole, .arg = PAGE_SIZE),
    KIT_CASE("MEM-015", "a Length beyond the chain fails", "NDKPI 9.1", "NdkRegisterMr",
             chain_too_short),
    LAM("MEM-021", "a byte", byte),
    LAM("MEM-022", "a page", page),
    LAM("MEM-023", "a page and a byte", page_and_byte),
    LAM("MEM-024", "the rest of a page", to_the_end),
    LAM("MEM-025", "the rest of a page and a byte", over_it),
    LAM("MEM-026", "the last byte of a page", last_byte),
    LAM("MEM-027", "two bytes of two pages", across),
    LAM("MEM-028", "a page's length from the middle of the second", second_page),
    KIT_CASE("MEM-031", "LAM: of a chain with offsets, and of its first byte", "NDKPI 6.7",
             "NdkBuildLAM", lam_of_chain),
    KIT_CASE("MEM-032", "LAM: of a chain with a hole of a byte: INVALID_PARAMETER", "NDKPI 6.7",
             "NdkBuildLAM", lam_of_hole, .arg = 1),
    KIT_CASE("MEM-033", "LAM: of a chain with a hole of a page: INVALID_PARAMETER", "NDKPI 6.7",
             "NdkBuildLAM", lam_of_hole, .arg = PAGE_SIZE),
    KIT_CASE("MEM-034", "LAM: without resources", "NDKPI 6.7", "NdkBuildLAM", lam_fails,
             .needs = KIT_NEEDS_FAIL),
    KIT_CASE("MEM-035", "LAM: several of the same pages", "NDKPI 6.8", "NdkReleaseLAM", lam_often),
    PRIVILEGED("MEM-041", "Send", USE_SEND, .needs = 0),
    PRIVILEGED("MEM-042", "Receive", USE_RECEIVE, .needs = 0),
    PRIVILEGED("MEM-043", "Write", USE_WRITE, .needs = 0),
    PRIVILEGED("MEM-044", "Read", USE_READ, .needs = KIT_NEEDS_READ,
               .adapter_flags = NDK_ADAPTER_FLAG_RDMA_READ_SINK_NOT_REQUIRED),
    KIT_CASE_TWO("MEM-045", "the privileged token is no sink where sinks need their right",
                 "lifetime 7.1", "NdkRead", kit_obey, privileged_no_sink, .needs = KIT_NEEDS_READ,
                 .adapter_flags_clear = NDK_ADAPTER_FLAG_RDMA_READ_SINK_NOT_REQUIRED),
    KIT_CASE("MEM-046", "the privileged token is the PD's and no region's", "NDKPI 8.6",
             "NdkGetPrivilegedMemoryRegionToken", privileged_of_each_pd),
};

KIT_TOPIC(memory, "registering and mapping memory");
