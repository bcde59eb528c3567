// SPDX-License-Identifier: MIT
/* MDL chains to page lists: what is measured, what is refused and with which words, what is
 * probed. The MDLs are made by hand, so that each malformation can be had. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "os/os.h"
#include "provider/pages.h"

#define MOST 8 /* page numbers in one MDL of these tests */

struct test_mdl {
    MDL mdl;
    PFN_NUMBER pages[MOST];
};

_Static_assert(offsetof(struct test_mdl, pages) == sizeof(MDL), "pages follow the MDL");

/* [va, va + octets) with pages first, first + 1, ... */
static void make(struct test_mdl *at, uint64_t va, uint32_t octets, PFN_NUMBER first)
{
    memset(at, 0xa5, sizeof *at); /* what must not be looked at is rubbish */
    at->mdl.Next = NULL;
    at->mdl.StartVa = (PVOID)(uintptr_t)(va & ~UINT64_C(0xfff));
    at->mdl.ByteOffset = (ULONG)(va & 0xfff);
    at->mdl.ByteCount = octets;
    for (unsigned i = 0; i < MOST; i++)
        at->pages[i] = first + i;
}

static void chain(struct test_mdl *mdls, unsigned count)
{
    for (unsigned i = 0; i + 1 < count; i++)
        mdls[i].mdl.Next = &mdls[i + 1].mdl;
}

static void assert_measure(const struct test_mdl *mdl, uint64_t length, uint32_t fbo,
                           uint32_t count)
{
    struct pages_extent extent;
    char reason[PAGES_REASON_MAX] = "";

    if (!pages_measure(&mdl->mdl, length, &extent, reason))
        fail_msg("refused: %s", reason);
    assert_int_equal(extent.address, (uintptr_t)mdl->mdl.StartVa + mdl->mdl.ByteOffset);
    assert_int_equal(extent.length, length);
    assert_int_equal(extent.fbo, fbo);
    assert_int_equal(extent.count, count);
}

static void assert_refused(const MDL *mdl, uint64_t length, const char *words)
{
    struct pages_extent extent;
    char reason[PAGES_REASON_MAX] = "";

    assert_false(pages_measure(mdl, length, &extent, reason));
    if (!strstr(reason, words))
        fail_msg("reason \"%s\" lacks \"%s\"", reason, words);
    assert_non_null(strstr(reason, "(have "));
    assert_non_null(strstr(reason, ", need "));
    assert_int_equal(reason[strlen(reason) - 1], ')');
}

/* Fills, with guards around an output that is not aligned, and compares. */
static void assert_pages(const struct test_mdl *mdl, uint64_t length, const PFN_NUMBER *expected,
                         uint32_t count)
{
    struct pages_extent extent;
    char reason[PAGES_REASON_MAX];
    uint8_t out[8 * 32 + 8];

    assert_true(pages_measure(&mdl->mdl, length, &extent, reason));
    assert_int_equal(extent.count, count);
    assert_true(count <= 31);
    memset(out, 0x5a, sizeof out);
    pages_fill(&mdl->mdl, &extent, out + 3);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t page;

        memcpy(&page, out + 3 + 8 * i, 8);
        assert_int_equal(page, (uint64_t)expected[i] << 12);
    }
    assert_int_equal(out[2], 0x5a);
    assert_int_equal(out[3 + 8 * count], 0x5a);
}

/* ---- one MDL -------------------------------------------------------------------------------- */

static void one_mdl(void **state)
{
    static const PFN_NUMBER expected[] = {70, 71, 72};
    struct test_mdl mdl;

    (void)state;
    make(&mdl, 0x10000, 0x3000, 70);
    assert_measure(&mdl, 0x3000, 0, 3);
    assert_measure(&mdl, 0x2001, 0, 3);
    assert_measure(&mdl, 0x2000, 0, 2);
    assert_measure(&mdl, 1, 0, 1);
    assert_measure(&mdl, 0, 0, 0);
    assert_pages(&mdl, 0x3000, expected, 3);
    assert_pages(&mdl, 0x1001, expected, 2);
    assert_pages(&mdl, 0, expected, 0);
    make(&mdl, 0x10ffe, 0x2000, 70);
    assert_measure(&mdl, 2, 0xffe, 1);
    assert_measure(&mdl, 3, 0xffe, 2);
    assert_measure(&mdl, 0x1002, 0xffe, 2);
    assert_measure(&mdl, 0x1003, 0xffe, 3);
    assert_measure(&mdl, 0x2000, 0xffe, 3);
    assert_pages(&mdl, 0x2000, expected, 3);
}

static void more_than_the_chain_holds(void **state)
{
    struct test_mdl mdls[2];

    (void)state;
    make(&mdls[0], 0x10000, 0x1000, 70);
    assert_refused(&mdls[0].mdl, 0x1001, "have 4097, need <= 4096");
    make(&mdls[1], 0x11000, 0x800, 90);
    chain(mdls, 2);
    assert_measure(mdls, 0x1800, 0, 2);
    assert_refused(&mdls[0].mdl, 0x1801, "have 6145, need <= 6144");
    make(&mdls[0], 0x10000, 0, 70);
    assert_measure(mdls, 0, 0, 0);
    assert_refused(&mdls[0].mdl, 1, "have 1, need <= 0");
}

static void malformed(void **state)
{
    struct test_mdl mdls[2];

    (void)state;
    assert_refused(NULL, 1, "no MDL");
    assert_refused(NULL, 0, "no MDL");
    make(&mdls[0], 0x10000, 0x2000, 70);
    mdls[0].mdl.ByteOffset = 0x1000;
    assert_refused(&mdls[0].mdl, 1, "MDL 1 malformed");
    assert_refused(&mdls[0].mdl, 0, "MDL 1 malformed");
    make(&mdls[0], 0x10000, 0x1000, 70);
    mdls[0].mdl.StartVa = (PVOID)(uintptr_t)0x10001;
    assert_refused(&mdls[0].mdl, 1, "MDL 1 malformed");
    make(&mdls[0], 0x10000, 0x1000, 70);
    make(&mdls[1], 0x11000, 0x1000, 80);
    mdls[1].mdl.StartVa = (PVOID)(uintptr_t)0x10000;
    mdls[1].mdl.ByteOffset = 0x1000; /* names the right address */
    chain(mdls, 2);
    assert_measure(mdls, 0x1000, 0, 1);
    assert_refused(&mdls[0].mdl, 0x1001, "MDL 2 malformed");
}

static void the_end_of_the_address_space(void **state)
{
    struct test_mdl mdl;

    (void)state;
    make(&mdl, UINTPTR_MAX - 0xfff, 0x2000, 70);
    assert_measure(&mdl, 0x1000, 0, 1);
    assert_refused(&mdl.mdl, 0x1001, "need <= 4096, the end of the address space");
    assert_refused(&mdl.mdl, UINT64_MAX, "the end of the address space");
}

/* ---- chains --------------------------------------------------------------------------------- */

static void chains_at_page_boundaries(void **state)
{
    static const PFN_NUMBER expected[] = {70, 71, 10, 90, 91};
    struct test_mdl mdls[3];

    (void)state;
    make(&mdls[0], 0x10800, 0x1800, 70); /* begins within a page: only the first may, or so */
    make(&mdls[1], 0x12000, 0x1000, 10);
    make(&mdls[2], 0x13000, 0x1004, 90);
    chain(mdls, 3);
    assert_measure(mdls, 0x1800 + 0x1000 + 0x1004, 0x800, 5);
    assert_pages(mdls, 0x1800 + 0x1000 + 0x1004, expected, 5);
    assert_pages(mdls, 0x1800 + 0x1000 + 0x1000, expected, 4);
    assert_pages(mdls, 0x1800 + 0x1000, expected, 3);
    assert_pages(mdls, 0x1801, expected, 3);
    assert_pages(mdls, 0x1800, expected, 2);
}

static void gaps_are_refused(void **state)
{
    static const uint64_t starts[] = {0x13000, 0x11000, 0x10000, 0x12001, 0x11fff, 0};
    struct test_mdl mdls[2];

    (void)state;
    for (size_t i = 0; i < sizeof starts / sizeof starts[0]; i++) {
        make(&mdls[0], 0x10000, 0x2000, 70);
        make(&mdls[1], starts[i], 0x1000, 72);
        chain(mdls, 2);
        assert_measure(mdls, 0x2000, 0, 2); /* the second MDL is not needed */
        assert_refused(&mdls[0].mdl, 0x2001, "not virtually contiguous (have MDL 2 at 0x");
        assert_refused(&mdls[0].mdl, 0x2001, "need 0x12000)");
    }
}

/* What IoBuildPartialMdl makes of one buffer: both halves name the page in the middle. */
static void a_page_in_two_mdls_counts_once(void **state)
{
    static const PFN_NUMBER expected[] = {70, 71, 72, 73};
    struct test_mdl mdls[4];

    (void)state;
    make(&mdls[0], 0x10010, 0x1234, 70);          /* pages 70, 71 */
    make(&mdls[1], 0x10010 + 0x1234, 0x100, 71);  /* 71 */
    make(&mdls[2], 0x10010 + 0x1334, 0xd00, 71);  /* 71, 72 */
    make(&mdls[3], 0x10010 + 0x2034, 0x1000, 72); /* 72, 73 */
    chain(mdls, 4);
    assert_measure(mdls, 0x3034, 0x10, 4);
    assert_pages(mdls, 0x3034, expected, 4);
    assert_pages(mdls, 0x1235, expected, 2);
    assert_pages(mdls, 0x1334 + 0xccc, expected, 3);
    /* The same addresses, but another page: no one page list can say that. */
    mdls[1].pages[0] = 99;
    assert_refused(&mdls[0].mdl, 0x1235, "MDL 2 begins within a page (have page number 0x63");
    assert_measure(mdls, 0x1234, 0x10, 2);
}

static void empty_mdls_add_nothing(void **state)
{
    static const PFN_NUMBER expected[] = {70, 90};
    struct test_mdl mdls[4];

    (void)state;
    make(&mdls[0], 0x10000, 0, 40);
    make(&mdls[1], 0x10000, 0x1000, 70);
    make(&mdls[2], 0x7777000, 0, 50);
    make(&mdls[3], 0x11000, 0x1000, 90);
    chain(mdls, 4);
    assert_measure(mdls, 0x2000, 0, 2);
    assert_pages(mdls, 0x2000, expected, 2);
    mdls[0].mdl.StartVa =
        (PVOID)(uintptr_t)0x20000; /* the range starts at the first MDL's address */
    assert_refused(&mdls[0].mdl, 0x2000, "not virtually contiguous");
}

/* ---- memory --------------------------------------------------------------------------------- */

static void probing(void **state)
{
    uint8_t *m =
        mmap(NULL, 4 * PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t pages[4];
    uint64_t bad = 0;

    (void)state;
    assert_true(m != MAP_FAILED);
    for (unsigned i = 0; i < 4; i++)
        pages[i] = (uintptr_t)m + i * PAGE_SIZE;
    assert_true(pages_probe(pages, 4, true, &bad));
    assert_true(pages_probe(pages, 0, true, &bad));
    assert_int_equal(mprotect(m + 2 * PAGE_SIZE, PAGE_SIZE, PROT_READ), 0);
    assert_true(pages_probe(pages, 4, false, &bad));
    assert_false(pages_probe(pages, 4, true, &bad));
    assert_int_equal(bad, pages[2]);
    assert_true(pages_probe(pages, 2, true, &bad));
    assert_int_equal(munmap(m + 3 * PAGE_SIZE, PAGE_SIZE), 0);
    assert_false(pages_probe(pages, 4, false, &bad));
    assert_int_equal(bad, pages[3]);
    /* Scattered: each run is asked for. */
    pages[0] = pages[3];
    assert_false(pages_probe(pages, 2, false, &bad));
    assert_int_equal(bad, pages[3]);
    pages[0] = 0;
    assert_false(pages_probe(pages, 1, false, &bad));
    assert_int_equal(bad, 0);
    pages[0] = UINT64_C(0xffffffffffff) << 12;
    assert_false(pages_probe(pages, 1, false, &bad));
    assert_int_equal(munmap(m, 3 * PAGE_SIZE), 0);
}

static void known_pages_are_not_asked_for_again(void **state)
{
    struct pages_known *known = calloc(1, sizeof *known);
    uint8_t *m =
        mmap(NULL, 4 * PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t pages[4], other;
    uint64_t bad = 0;

    (void)state;
    assert_true(m != MAP_FAILED);
    for (unsigned i = 0; i < 4; i++)
        pages[i] = (uintptr_t)m + i * PAGE_SIZE;
    assert_int_equal(mprotect(m + 2 * PAGE_SIZE, PAGE_SIZE, PROT_READ), 0);
    assert_false(pages_probe_once(known, pages, 4, true, &bad));
    assert_int_equal(bad, pages[2]);
    assert_true(pages_probe_once(known, pages, 4, false, &bad));
    /* Known to be readable is not known to be writable. */
    assert_false(pages_probe_once(known, pages, 4, true, &bad));
    assert_int_equal(bad, pages[2]);
    assert_int_equal(mprotect(m + 2 * PAGE_SIZE, PAGE_SIZE, PROT_READ | PROT_WRITE), 0);
    assert_true(pages_probe_once(known, pages, 4, true, &bad));
    /* Writable implies readable. What is known is believed: the mapping is not looked at. */
    assert_int_equal(munmap(m, 4 * PAGE_SIZE), 0);
    assert_true(pages_probe_once(known, pages, 4, true, &bad));
    assert_true(pages_probe_once(known, pages, 4, false, &bad));
    assert_false(pages_probe(pages, 4, false, &bad));
    /* A page of the same entry is another page. */
    other = pages[1] + (uint64_t)PAGES_KNOWN * PAGE_SIZE * 1024;
    assert_false(pages_probe_once(known, &other, 1, false, &bad));
    assert_int_equal(bad, other);
    pages[0] = 0; /* an empty entry is no page 0 */
    assert_false(pages_probe_once(known, pages, 1, false, &bad));
    free(known);
}

static void flatness(void **state)
{
    uint64_t pages[] = {0x5000, 0x6000, 0x7000, 0x9000};

    (void)state;
    assert_ptr_equal(pages_flat(pages, 3, 0x123), (void *)(uintptr_t)0x5123);
    assert_ptr_equal(pages_flat(pages, 1, 0), (void *)(uintptr_t)0x5000);
    assert_null(pages_flat(pages, 4, 0));
    assert_null(pages_flat(pages, 0, 0));
    pages[1] = 0x4000;
    assert_null(pages_flat(pages, 2, 0));
}

/* Both ways, offsets kept, no two neighbours beside each other, no host address among them. */
static void scattered_addresses(void **state)
{
    const uint64_t host = UINT64_C(0x7f1234560000);

    (void)state;
    for (uint64_t page = 0; page < 100; page++) {
        uint64_t at = host + page * PAGE_SIZE, offset = page * 41 % PAGE_SIZE;
        uint64_t logical = pages_to_logical(true, at);

        assert_int_equal(pages_to_logical(false, at + offset), at + offset);
        assert_int_equal(pages_from_logical(false, at + offset), at + offset);
        assert_int_equal(pages_from_logical(true, logical + offset), at + offset);
        assert_int_equal(pages_to_logical(true, at + offset), logical + offset);
        assert_true(logical >= PAGES_SCATTERED);
        for (int step = -1; step <= 1; step += 2) {
            uint64_t beside = pages_to_logical(true, at + (uint64_t)step * PAGE_SIZE);

            assert_int_not_equal(beside, logical + PAGE_SIZE);
            assert_int_not_equal(beside + PAGE_SIZE, logical);
        }
        for (uint64_t other = 0; other < page; other++)
            assert_int_not_equal(pages_to_logical(true, host + other * PAGE_SIZE), logical);
    }
    assert_true(pages_in_one(4095, 1) && !pages_in_one(4095, 2) && pages_in_one(0, 4096));
    assert_true(!pages_in_one(1, 4096) && pages_in_one(4095, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scattered_addresses),
        cmocka_unit_test(one_mdl),
        cmocka_unit_test(more_than_the_chain_holds),
        cmocka_unit_test(malformed),
        cmocka_unit_test(the_end_of_the_address_space),
        cmocka_unit_test(chains_at_page_boundaries),
        cmocka_unit_test(gaps_are_refused),
        cmocka_unit_test(a_page_in_two_mdls_counts_once),
        cmocka_unit_test(empty_mdls_add_nothing),
        cmocka_unit_test(probing),
        cmocka_unit_test(known_pages_are_not_asked_for_again),
        cmocka_unit_test(flatness),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
