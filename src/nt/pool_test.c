// SPDX-License-Identifier: MIT
/*
 * Tests of pool.c: alignment and pages, contents, flags, and each kind of misuse.
 *
 * What is written where it must not be is a finding without a sanitizer; under AddressSanitizer the
 * sanitizer itself stops such a program, so those tests are left out there.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "nt/left.h"
#include "nt/nt_testing.h"
#include "nt/pool.h"
#include "os/sanitize.h"

#define TAG 'tseT'

static bool all_are(const void *block, size_t size, unsigned char byte)
{
    const unsigned char *at = block;

    for (size_t i = 0; i < size; i++)
        if (at[i] != byte)
            return false;
    return true;
}

static void pages_are_aligned_and_small_blocks_within_one(void **state)
{
    static const size_t sizes[] = {1,    8,    15,   16,   17,    24,    100,  511,
                                   512,  513,  1000, 2047, 2048,  2049,  3000, 4095,
                                   4096, 4097, 8192, 9000, 65536, 100000};

    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (int turn = 0; turn < 20; turn++) {
            char *keep[20];
            size_t size = sizes[i];
            uintptr_t at;

            keep[turn] = ExAllocatePoolWithTag(NonPagedPool, size, TAG);
            at = (uintptr_t)keep[turn];
            assert_non_null(keep[turn]);
            assert_int_equal(at % (size >= PAGE_SIZE ? PAGE_SIZE : 16), 0);
            if (size <= PAGE_SIZE)
                assert_int_equal(at / PAGE_SIZE, (at + size - 1) / PAGE_SIZE);
            memset(keep[turn], 0xaa, size);
            ExFreePoolWithTag(keep[turn], TAG);
        }
    }
}

static void many_small_blocks_cross_no_page(void **state)
{
    enum { MANY = 500 };
    static char *blocks[MANY];

    (void)state;
    for (size_t i = 0; i < MANY; i++) {
        size_t size = 1 + 37 * i % 4000;

        blocks[i] = ExAllocatePool2(POOL_FLAG_NON_PAGED, size, TAG);
        assert_non_null(blocks[i]);
        assert_int_equal((uintptr_t)blocks[i] / PAGE_SIZE,
                         ((uintptr_t)blocks[i] + size - 1) / PAGE_SIZE);
    }
    for (size_t i = 0; i < MANY; i++)
        ExFreePool(blocks[i]);
}

static void contents_are_zero_only_where_promised(void **state)
{
    PVOID block;

    (void)state;
    for (int turn = 0; turn < 3; turn++) {
        block = ExAllocatePool2(POOL_FLAG_NON_PAGED, 5000, TAG);
        assert_true(all_are(block, 5000, 0));
        memset(block, 0x77, 5000);
        ExFreePool2(block, TAG, NULL, 0);
        block = ExAllocatePool2(POOL_FLAG_PAGED | POOL_FLAG_UNINITIALIZED, 100, TAG);
        assert_false(all_are(block, 100, 0));
        ExFreePool(block);
        block = ExAllocatePoolWithTag(NonPagedPoolNx, 100, TAG);
        assert_false(all_are(block, 100, 0));
        ExFreePool(block);
        block = ExAllocatePoolWithTag((POOL_TYPE)(PagedPool | POOL_ZERO_ALLOCATION), 100, TAG);
        assert_true(all_are(block, 100, 0));
        ExFreePool(block);
        block = ExAllocatePoolWithTagPriority(NonPagedPoolCacheAligned, 20, TAG, HighPoolPriority);
        assert_int_equal((uintptr_t)block % 64, 0);
        ExFreePool(block);
        block = ExAllocatePool2(POOL_FLAG_NON_PAGED | POOL_FLAG_CACHE_ALIGNED, 20, TAG);
        assert_int_equal((uintptr_t)block % 64, 0);
        ExFreePool(block);
    }
}

static void what_cannot_be_had_is_null(void **state)
{
    unsigned findings = nt_finding_count();

    (void)state;
    assert_null(ExAllocatePoolWithTag(NonPagedPool, SIZE_MAX, TAG));
    assert_null(ExAllocatePool2(POOL_FLAG_NON_PAGED, SIZE_MAX - 100, TAG));
    assert_int_equal(nt_finding_count(), findings);
    assert_null(ExAllocatePool2(POOL_FLAG_NON_PAGED | POOL_FLAG_RAISE_ON_FAILURE, SIZE_MAX, TAG));
    ASSERT_FINDING(findings, "no memory, where an exception is asked for");
    assert_null(ExAllocatePoolWithTag((POOL_TYPE)(NonPagedPool | POOL_RAISE_IF_ALLOCATION_FAILURE),
                                      SIZE_MAX, TAG));
    assert_int_equal(nt_finding_count(), findings + 2);
}

static void flags_must_fit(void **state)
{
    static const POOL_FLAGS bad[] = {
        0,
        POOL_FLAG_UNINITIALIZED,
        POOL_FLAG_NON_PAGED | POOL_FLAG_PAGED,
        POOL_FLAG_NON_PAGED | POOL_FLAG_RESERVED2,
        POOL_FLAG_NON_PAGED | POOL_FLAG_REQUIRED_END,
    };
    unsigned findings = nt_finding_count();
    PVOID block;

    (void)state;
    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_null(ExAllocatePool2(bad[i], 10, TAG));
        ASSERT_FINDING(findings + i, "the flags do not fit");
    }
    findings = nt_finding_count();
    block = ExAllocatePool2(POOL_FLAG_NON_PAGED_EXECUTE | POOL_FLAG_USE_QUOTA |
                                POOL_FLAG_SPECIAL_POOL | POOL_FLAG_OPTIONAL_END,
                            10, TAG); /* wishes that nobody knows do no harm */
    assert_non_null(block);
    ExFreePool(block);
    assert_int_equal(nt_finding_count(), findings);
}

static void parameters_are_met_or_refused(void **state)
{
    POOL_EXTENDED_PARAMETER p[2];
    unsigned findings = nt_finding_count();
    PVOID block;

    (void)state;
    memset(p, 0, sizeof p);
    p[0].Type = PoolExtendedParameterPriority;
    p[0].Priority = HighPoolPriority;
    p[1].Type = PoolExtendedParameterNumaNode;
    p[1].PreferredNode = 0;
    block = ExAllocatePool3(POOL_FLAG_NON_PAGED, 10, TAG, p, 2);
    assert_true(all_are(block, 10, 0));
    ExFreePool2(block, TAG, NULL, 0);
    p[1].Type = PoolExtendedParameterSecurePool;
    assert_int_equal(nt_finding_count(), findings);
    assert_null(ExAllocatePool3(POOL_FLAG_NON_PAGED, 10, TAG, p, 2));
    ASSERT_FINDING(findings, "parameter 1 cannot be met");
    p[1].Optional = 1;
    block = ExAllocatePool3(POOL_FLAG_NON_PAGED, 10, TAG, p, 2);
    assert_non_null(block);
    ExFreePool2(block, TAG, p, 1);
    ASSERT_FINDING(findings + 1, "no parameter is known");
    block = ExAllocatePool3(POOL_FLAG_PAGED, 10, TAG, NULL, 0);
    assert_non_null(block);
    ExFreePool(block);
    assert_int_equal(nt_finding_count(), findings + 2);
}

/* ---- misuse --------------------------------------------------------------------------------- */

static void lengths_and_tags_of_0_are_findings(void **state)
{
    unsigned findings = nt_finding_count();
    PVOID block;

    (void)state;
    block = ExAllocatePoolWithTag(NonPagedPool, 10, 0);
    ASSERT_FINDING(findings, "the tag is 0");
    assert_non_null(block);
    ExFreePool(block);
    block = ExAllocatePoolWithTag(NonPagedPool, 0, TAG);
    ASSERT_FINDING(findings + 1, "the length is 0, tag 'Test'");
    assert_non_null(block);
    ExFreePool(block);
    assert_null(ExAllocatePool2(POOL_FLAG_NON_PAGED, 10, 0));
    assert_null(ExAllocatePool2(POOL_FLAG_NON_PAGED, 0, TAG));
    assert_int_equal(nt_finding_count(), findings + 4);
}

static void paged_pool_is_for_low_levels(void **state)
{
    unsigned findings = nt_finding_count();
    PVOID paged, nonpaged;

    (void)state;
    nt_irql_set(APC_LEVEL);
    paged = ExAllocatePoolWithTag(PagedPool, 10, TAG);
    nt_irql_set(DISPATCH_LEVEL);
    nonpaged = ExAllocatePool2(POOL_FLAG_NON_PAGED, 10, TAG);
    ExFreePool(nonpaged);
    assert_int_equal(nt_finding_count(), findings);
    ExFreePool(paged);
    ASSERT_FINDING(findings, "ExFreePool: IRQL too high (have 2, need <= 1)");
    paged = ExAllocatePool2(POOL_FLAG_PAGED, 10, TAG);
    ASSERT_FINDING(findings + 1, "ExAllocatePool2: IRQL too high (have 2, need <= 1)");
    nt_irql_set(HIGH_LEVEL);
    nonpaged = ExAllocatePoolWithTag(NonPagedPool, 10, TAG);
    ASSERT_FINDING(findings + 2, "IRQL too high (have 15, need <= 2)");
    nt_irql_set(PASSIVE_LEVEL);
    ExFreePool(paged);
    ExFreePool(nonpaged);
    assert_int_equal(nt_finding_count(), findings + 3);
}

static void another_tag_is_a_finding(void **state)
{
    unsigned findings = nt_finding_count();
    PVOID block = ExAllocatePool2(POOL_FLAG_NON_PAGED, 10, 'oneT');

    (void)state;
    ExFreePoolWithTag(block, 'twoT');
    ASSERT_FINDING(findings, "has another tag (have 'Towt', need 'Teno')");
    block = ExAllocatePool2(POOL_FLAG_NON_PAGED, 10, 'oneT');
    ExFreePoolWithTag(block, 'oneT');
    assert_int_equal(nt_finding_count(), findings + 1);
}

static void what_is_no_block_cannot_be_freed(void **state)
{
    unsigned findings = nt_finding_count();
    size_t before = nt_left_count(NT_LEFT_POOL);
    char *block = ExAllocatePool2(POOL_FLAG_NON_PAGED, 100, TAG);
    int local;

    (void)state;
    ExFreePool(NULL);
    ASSERT_FINDING(findings, "is no block of pool");
    ExFreePool(&local);
    ASSERT_FINDING(findings + 1, "is no block of pool");
    ExFreePool(block + 16);
    ASSERT_FINDING(findings + 2, "is no block of pool");
    ExFreePool(block);
    assert_int_equal(nt_finding_count(), findings + 3);
    ExFreePoolWithTag(block, TAG);
    ASSERT_FINDING(findings + 3, "freed already");
    assert_int_equal(nt_left_count(NT_LEFT_POOL), before);
}

static void writing_past_the_end_is_found_when_it_is_freed(void **state)
{
    static const size_t sizes[] = {1, 100, 512, 4096, 5000, 100000};
    unsigned findings = nt_finding_count();

    (void)state;
    if (sanitize_address())
        skip();
    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        char *block = ExAllocatePool2(POOL_FLAG_NON_PAGED, sizes[i], TAG);
        char *end = block + sizes[i];

        __asm__ __volatile__("" : "+r"(end)); /* the compiler must not see it coming */
        end[3] = 'x';
        ExFreePool(block);
        ASSERT_FINDING(findings + i, "written beyond its end");
    }
}

static void writing_past_the_end_is_found_at_the_report_once(void **state)
{
    unsigned findings = nt_finding_count();
    char *block, *end;

    (void)state;
    if (sanitize_address())
        skip();
    block = ExAllocatePool2(POOL_FLAG_NON_PAGED, 40, TAG);
    end = block + 40;
    __asm__ __volatile__("" : "+r"(end));
    *end = 'x';
    nt_pool_check();
    ASSERT_FINDING(findings, "'Test' of 40 bytes, at byte 40");
    nt_pool_check();
    ExFreePool(block);
    assert_int_equal(nt_finding_count(), findings + 1);
}

static void writing_after_freeing_is_found(void **state)
{
    unsigned findings = nt_finding_count();
    char *block;

    (void)state;
    if (sanitize_address() || sanitize_thread())
        skip();
    block = ExAllocatePool2(POOL_FLAG_NON_PAGED, 200, TAG);
    ExFreePool(block);
    __asm__ __volatile__("" : "+r"(block));
    block[150] = 'x';
    nt_pool_check();
    ASSERT_FINDING(findings, "written after it was freed: block");
    /* Also when it is pushed out by others, without a report. */
    block = ExAllocatePool2(POOL_FLAG_NON_PAGED, 200, TAG);
    ExFreePool(block);
    __asm__ __volatile__("" : "+r"(block));
    block[0] = 'x';
    for (int i = 0; i < 2000 && nt_finding_count() == findings + 1; i++)
        ExFreePool(ExAllocatePool2(POOL_FLAG_NON_PAGED, 60000, TAG));
    ASSERT_FINDING(findings + 1, "of 200 bytes, at byte 0");
}

/* ---- many threads ---------------------------------------------------------------------------- */

static void take_and_give(void *arg)
{
    unsigned seed = (unsigned)(uintptr_t)arg;
    char *blocks[16] = {NULL};

    for (int i = 0; i < 4000; i++) {
        unsigned at = (seed = seed * 1103515245 + 12345) >> 16 & 15;

        if (blocks[at])
            ExFreePoolWithTag(blocks[at], TAG);
        blocks[at] = ExAllocatePool2(POOL_FLAG_NON_PAGED, 1 + (seed >> 8 & 0x1fff), TAG);
        blocks[at][0] = 'x';
    }
    for (int i = 0; i < 16; i++)
        if (blocks[i])
            ExFreePool(blocks[i]);
}

static void threads_share_the_pool(void **state)
{
    unsigned findings = nt_finding_count();
    size_t before = nt_left_count(NT_LEFT_POOL);
    struct os_thread *threads[4];

    (void)state;
    for (uintptr_t i = 0; i < 4; i++)
        assert_int_equal(os_thread_start(&threads[i], "pool", take_and_give, (void *)(i + 1)), 0);
    for (int i = 0; i < 4; i++)
        os_thread_join(threads[i]);
    nt_pool_check();
    assert_int_equal(nt_finding_count(), findings);
    assert_int_equal(nt_left_count(NT_LEFT_POOL), before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pages_are_aligned_and_small_blocks_within_one),
        cmocka_unit_test(many_small_blocks_cross_no_page),
        cmocka_unit_test(contents_are_zero_only_where_promised),
        cmocka_unit_test(what_cannot_be_had_is_null),
        cmocka_unit_test(flags_must_fit),
        cmocka_unit_test(parameters_are_met_or_refused),
        cmocka_unit_test(lengths_and_tags_of_0_are_findings),
        cmocka_unit_test(paged_pool_is_for_low_levels),
        cmocka_unit_test(another_tag_is_a_finding),
        cmocka_unit_test(what_is_no_block_cannot_be_freed),
        cmocka_unit_test(writing_past_the_end_is_found_when_it_is_freed),
        cmocka_unit_test(writing_past_the_end_is_found_at_the_report_once),
        cmocka_unit_test(writing_after_freeing_is_found),
        cmocka_unit_test(threads_share_the_pool),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
