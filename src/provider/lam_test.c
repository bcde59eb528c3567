// SPDX-License-Identifier: MIT
/* Logical address mappings through the adapter's dispatch table. */
#include "provider/mr_test.h"

#define HEAD FIELD_OFFSET(NDK_LOGICAL_ADDRESS_MAPPING, AdapterPageArray)

/* Room for a LAM of 8 pages, with a guard behind it. */
struct room {
    union {
        NDK_LOGICAL_ADDRESS_MAPPING lam;
        uint8_t octets[HEAD + 8 * 8];
    };
    uint8_t guard[32];
};

/* The declared array has one entry only. */
static uint64_t page_at(const NDK_LOGICAL_ADDRESS_MAPPING *lam, unsigned index)
{
    NDK_LOGICAL_ADDRESS page;

    memcpy(&page, (const uint8_t *)lam + HEAD + index * sizeof page, sizeof page);
    return (uint64_t)page.QuadPart;
}

static ULONG size_of(unsigned pages)
{
    return (ULONG)(HEAD + pages * sizeof(NDK_LOGICAL_ADDRESS));
}

static void wipe(struct room *room)
{
    memset(room, 0x5a, sizeof *room);
}

static NTSTATUS build(MDL *mdl, SIZE_T length, NDK_LOGICAL_ADDRESS_MAPPING *lam, ULONG *size,
                      ULONG *fbo)
{
    struct outcome outcome = {0};

    return outcome_of(&outcome,
                      the_adapter->Dispatch->NdkBuildLAM(the_adapter, mdl, length, outcome_request,
                                                         &outcome, lam, size, fbo));
}

static unsigned outstanding(void)
{
    return adapter_from(the_adapter)->outstanding_lams;
}

static void undo(NDK_LOGICAL_ADDRESS_MAPPING *lam)
{
    the_adapter->Dispatch->NdkReleaseLAM(the_adapter, lam);
}

static void a_lam_says_where_the_octets_are(void **state)
{
    static const struct {
        uint32_t offset, octets, pages;
    } cases[] = {
        {0, 1, 1},    {0, 4096, 1}, {0, 4097, 2},       {0, 5 * 4096, 5},
        {4095, 1, 1}, {4095, 2, 2}, {4095, 4097, 2},    {4095, 4098, 3},
        {1, 4095, 1}, {1, 4096, 2}, {100, 7 * 4096, 8}, {64, 8 * 4096 - 64, 8},
    };
    uint8_t *m = memory_new(8 * PAGE_SIZE);

    (void)state;
    for (size_t mode = 0; mode < MODES; mode++) {
        assert_true(pend_set(modes[mode]));
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
            MDL *mdl = mdl_new(m + cases[i].offset, cases[i].octets);
            ULONG size = sizeof(struct room) - 32, fbo = 0x55555555;
            struct room room;
            uint8_t before[sizeof(MDL) + 9 * sizeof(PFN_NUMBER)];
            size_t mdl_octets = MmSizeOfMdl(m + cases[i].offset, cases[i].octets);

            memcpy(before, mdl, mdl_octets);
            wipe(&room);
            assert_int_equal(build(mdl, cases[i].octets, &room.lam, &size, &fbo), STATUS_SUCCESS);
            assert_int_equal(fbo, cases[i].offset);
            assert_int_equal(size, size_of(cases[i].pages));
            assert_int_equal(room.lam.AdapterPageCount, cases[i].pages);
            for (uint32_t k = 0; k < cases[i].pages; k++)
                assert_int_equal(page_at(&room.lam, k), (uintptr_t)m + k * PAGE_SIZE);
            assert_int_equal(((uint8_t *)&room)[size], 0x5a);
            assert_int_equal(outstanding(), 1);
            undo(&room.lam);
            assert_int_equal(outstanding(), 0);
            assert_memory_equal(before, mdl, mdl_octets); /* it leaves the MDL as it was */
            IoFreeMdl(mdl);
        }
    }
    munmap(m, 8 * PAGE_SIZE);
}

static void the_length_may_be_less_than_the_chain(void **state)
{
    uint8_t *m = memory_new(4 * PAGE_SIZE);
    MDL *mdl = mdl_new(m + 10, PAGE_SIZE), *second = mdl_new(m + 10 + PAGE_SIZE, 2 * PAGE_SIZE);
    ULONG size = size_of(8), fbo = 0;
    struct room room;

    (void)state;
    mdl->Next = second;
    wipe(&room);
    assert_int_equal(build(mdl, 20, &room.lam, &size, &fbo), STATUS_SUCCESS);
    assert_int_equal(room.lam.AdapterPageCount, 1);
    undo(&room.lam);
    /* The two meet within page 1, which stands in the mapping once. */
    size = size_of(8);
    assert_int_equal(build(mdl, 3 * PAGE_SIZE, &room.lam, &size, &fbo), STATUS_SUCCESS);
    assert_int_equal(room.lam.AdapterPageCount, 4);
    assert_int_equal(fbo, 10);
    for (uint32_t k = 0; k < 4; k++)
        assert_int_equal(page_at(&room.lam, k), (uintptr_t)m + k * PAGE_SIZE);
    undo(&room.lam);
    size = size_of(8);
    assert_int_equal(build(mdl, 0, &room.lam, &size, &fbo), STATUS_SUCCESS);
    assert_int_equal(room.lam.AdapterPageCount, 0);
    assert_int_equal(size, size_of(0));
    undo(&room.lam);
    IoFreeMdl(mdl);
    IoFreeMdl(second);
    munmap(m, 4 * PAGE_SIZE);
}

static void the_size_protocol(void **state)
{
    uint8_t *m = memory_new(4 * PAGE_SIZE);
    MDL *mdl = mdl_new(m, 4 * PAGE_SIZE);
    struct room room;

    (void)state;
    for (size_t mode = 0; mode < MODES; mode++) {
        ULONG fbo = 0, size;

        assert_true(pend_set(modes[mode]));
        /* The query, in both spellings. */
        size = 0;
        assert_int_equal(build(mdl, 4 * PAGE_SIZE, NULL, &size, &fbo), STATUS_BUFFER_TOO_SMALL);
        assert_int_equal(size, size_of(4));
        size = 1000; /* without a buffer the size says nothing */
        assert_int_equal(build(mdl, 4 * PAGE_SIZE, NULL, &size, &fbo), STATUS_BUFFER_TOO_SMALL);
        assert_int_equal(size, size_of(4));
        for (ULONG have = 0; have < size_of(4); have++) {
            wipe(&room);
            size = have;
            assert_int_equal(build(mdl, 4 * PAGE_SIZE, &room.lam, &size, &fbo),
                             STATUS_BUFFER_TOO_SMALL);
            assert_int_equal(size, size_of(4));
            for (size_t i = 0; i < sizeof room; i++)
                assert_int_equal(((uint8_t *)&room)[i], 0x5a);
        }
        assert_reason(&the_adapter->Header,
                      "NdkBuildLAM: *pLAMSize too small (have 47, need >= 48)");
        assert_int_equal(outstanding(), 0);
        size = size_of(4);
        assert_int_equal(build(mdl, 4 * PAGE_SIZE, &room.lam, &size, &fbo), STATUS_SUCCESS);
        assert_int_equal(size, size_of(4));
        undo(&room.lam);
    }
    IoFreeMdl(mdl);
    munmap(m, 4 * PAGE_SIZE);
}

static void what_cannot_be_mapped(void **state)
{
    uint8_t *m = memory_new(6 * PAGE_SIZE);
    MDL *mdl = mdl_new(m, 2 * PAGE_SIZE), *second = mdl_new(m + 3 * PAGE_SIZE, PAGE_SIZE);
    MDL *hole = mdl_new(m + 4 * PAGE_SIZE, 2 * PAGE_SIZE);
    struct room room;

    (void)state;
    assert_int_equal(munmap(m + 5 * PAGE_SIZE, PAGE_SIZE), 0);
    mdl->Next = second;
    for (size_t mode = 0; mode < MODES; mode++) {
        ULONG size = size_of(8), fbo = 0;
        char page[64];

        assert_true(pend_set(modes[mode]));
        wipe(&room);
        assert_int_equal(build(mdl, 2 * PAGE_SIZE + 1, &room.lam, &size, &fbo),
                         STATUS_INVALID_PARAMETER);
        assert_reason(&the_adapter->Header, "NdkBuildLAM: not virtually contiguous");
        assert_int_equal(build(second, PAGE_SIZE + 1, &room.lam, &size, &fbo),
                         STATUS_INVALID_PARAMETER);
        assert_reason(&the_adapter->Header, "have 4097, need <= 4096");
        assert_int_equal(build(NULL, 1, &room.lam, &size, &fbo), STATUS_INVALID_PARAMETER);
        assert_reason(&the_adapter->Header, "no MDL");
        assert_int_equal(build(mdl, 1, &room.lam, NULL, &fbo), STATUS_INVALID_PARAMETER);
        assert_int_equal(build(mdl, 1, &room.lam, &size, NULL), STATUS_INVALID_PARAMETER);
        assert_int_equal(build(hole, 2 * PAGE_SIZE, &room.lam, &size, &fbo),
                         STATUS_ACCESS_VIOLATION);
        snprintf(page, sizeof page, "page 0x%llx is not there",
                 (unsigned long long)(uintptr_t)(m + 5 * PAGE_SIZE));
        assert_reason(&the_adapter->Header, page);
        assert_true(fail_set("NdkBuildLAM:1:0xC000009A"));
        assert_int_equal(build(mdl, 1, &room.lam, &size, &fbo), STATUS_INSUFFICIENT_RESOURCES);
        assert_int_equal(size, size_of(8));
        assert_int_equal(outstanding(), 0);
    }
    IoFreeMdl(mdl);
    IoFreeMdl(second);
    IoFreeMdl(hole);
    munmap(m, 5 * PAGE_SIZE);
}

static void read_only_pages_can_be_sent_from(void **state)
{
    uint8_t *m = memory_new(PAGE_SIZE);
    MDL *mdl = mdl_new(m, PAGE_SIZE);
    ULONG size = size_of(1), fbo = 0;
    struct room room;

    (void)state;
    assert_int_equal(mprotect(m, PAGE_SIZE, PROT_READ), 0);
    assert_int_equal(build(mdl, PAGE_SIZE, &room.lam, &size, &fbo), STATUS_SUCCESS);
    undo(&room.lam);
    IoFreeMdl(mdl);
    munmap(m, PAGE_SIZE);
}

/* Without a callback: served where the answer is inline, refused where it would pend. */
static void a_call_without_a_completion(void **state)
{
    uint8_t *m = memory_new(PAGE_SIZE);
    MDL *mdl = mdl_new(m, PAGE_SIZE);
    ULONG size = size_of(1), fbo = 0;
    struct room room;
    NTSTATUS status;

    (void)state;
    for (size_t mode = 0; mode < 3; mode++) {
        assert_true(pend_set(modes[mode]));
        status = the_adapter->Dispatch->NdkBuildLAM(the_adapter, mdl, PAGE_SIZE, NULL, NULL,
                                                    &room.lam, &size, &fbo);
        if (mode == 0) {
            assert_int_equal(status, STATUS_SUCCESS);
            undo(&room.lam);
        } else {
            assert_int_equal(status, STATUS_INVALID_PARAMETER);
            assert_reason(&the_adapter->Header, "no RequestCompletion");
        }
        assert_int_equal(outstanding(), 0);
    }
    IoFreeMdl(mdl);
    munmap(m, PAGE_SIZE);
}

/* Told by a line and without consequence. */
static void releases_of_what_is_no_mapping(void **state)
{
    uint8_t *m = memory_new(PAGE_SIZE);
    MDL *mdl = mdl_new(m, PAGE_SIZE);
    ULONG size = size_of(1), fbo = 0;
    struct room one, two;

    (void)state;
    wipe(&two);
    assert_int_equal(build(mdl, PAGE_SIZE, &one.lam, &size, &fbo), STATUS_SUCCESS);
    undo(&two.lam);
    undo(NULL);
    assert_int_equal(outstanding(), 1);
    undo(&one.lam);
    undo(&one.lam);
    assert_int_equal(outstanding(), 0);
    IoFreeMdl(mdl);
    munmap(m, PAGE_SIZE);
}

/* A LAM's pages fill a fast-register region: what the peer reaches is the buffer. */
static void from_a_lam_to_a_region(void **state)
{
    uint8_t *m = memory_new(4 * PAGE_SIZE);
    MDL *mdl = mdl_new(m + 321, 3 * PAGE_SIZE);
    ULONG size = size_of(8), fbo = 0;
    struct outcome outcome = {0};
    NDK_MR *mr = NULL;
    struct mr_fast *fast;
    struct access access;
    struct room room;
    struct os_iov iov;

    (void)state;
    assert_int_equal(build(mdl, 3 * PAGE_SIZE, &room.lam, &size, &fbo), STATUS_SUCCESS);
    assert_int_equal(the_pd->Dispatch->NdkCreateMr(the_pd, TRUE, outcome_create, NULL, &mr),
                     STATUS_SUCCESS);
    assert_int_equal(outcome_of(&outcome, mr->Dispatch->NdkInitializeFastRegisterMr(
                                              mr, 8, TRUE, outcome_request, &outcome)),
                     STATUS_SUCCESS);
    assert_int_equal(mr_fast_prepare(&pd_from(the_pd)->object, pd_from(the_pd), mr,
                                     room.lam.AdapterPageCount, room.lam.AdapterPageArray, fbo,
                                     3 * PAGE_SIZE, (PVOID)(uintptr_t)(0x9000 + fbo),
                                     NDK_OP_FLAG_ALLOW_REMOTE_WRITE, &fast),
                     STATUS_SUCCESS);
    assert_int_equal(mr_fast_execute(fast), STATUS_SUCCESS);
    assert_int_equal(mem_begin(tokens(), mr->Dispatch->NdkGetRemoteTokenFromMr(mr), the_pd, NULL,
                               0x9000 + fbo, 3 * PAGE_SIZE, ACCESS_REMOTE_WRITE, &access),
                     ACCESS_OK);
    assert_int_equal(mem_pieces(&access, 0x9000 + fbo, 3 * PAGE_SIZE, &iov, 1), 1);
    assert_ptr_equal(iov.base, m + 321);
    mem_end(&access);
    close_object(&mr->Header);
    undo(&room.lam);
    IoFreeMdl(mdl);
    munmap(m, 4 * PAGE_SIZE);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_up, world_down)
    const struct CMUnitTest tests[] = {
        TEST(a_lam_says_where_the_octets_are),
        TEST(the_length_may_be_less_than_the_chain),
        TEST(the_size_protocol),
        TEST(what_cannot_be_mapped),
        TEST(read_only_pages_can_be_sent_from),
        TEST(a_call_without_a_completion),
        TEST(releases_of_what_is_no_mapping),
        TEST(from_a_lam_to_a_region),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
