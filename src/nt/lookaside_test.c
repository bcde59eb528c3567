// SPDX-License-Identifier: MIT
/*
 * Tests of lookaside.c: the three kinds, routines of the consumer's own, misuse.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "nt/left.h"
#include "nt/nt_testing.h"

#define TAG 'tseT'

static void blocks_come_and_go(void **state)
{
    unsigned findings = nt_finding_count();
    size_t lists = nt_left_count(NT_LEFT_LOOKASIDE), blocks = nt_left_count(NT_LEFT_POOL);
    NPAGED_LOOKASIDE_LIST nonpaged;
    PAGED_LOOKASIDE_LIST paged;
    LOOKASIDE_LIST_EX either;
    char *a, *b, *c;

    (void)state;
    ExInitializeNPagedLookasideList(&nonpaged, NULL, NULL, POOL_NX_ALLOCATION, 100, TAG, 0);
    ExInitializePagedLookasideList(&paged, NULL, NULL, 0, 200, TAG, 0);
    assert_int_equal(
        ExInitializeLookasideListEx(&either, NULL, NULL, NonPagedPoolNx, 0, 300, TAG, 0),
        STATUS_SUCCESS);
    assert_int_equal(nt_left_count(NT_LEFT_LOOKASIDE), lists + 3);
    a = ExAllocateFromNPagedLookasideList(&nonpaged);
    b = ExAllocateFromPagedLookasideList(&paged);
    c = ExAllocateFromLookasideListEx(&either);
    assert_int_equal(nt_left_count(NT_LEFT_POOL), blocks + 3);
    memset(a, 1, 100);
    memset(b, 2, 200);
    memset(c, 3, 300);
    ExFreeToNPagedLookasideList(&nonpaged, a);
    ExFreeToPagedLookasideList(&paged, b);
    ExFreeToLookasideListEx(&either, c);
    ExFlushLookasideListEx(&either);
    assert_int_equal(either.L.TotalAllocates, 1);
    assert_int_equal(either.L.TotalFrees, 1);
    assert_int_equal(nt_left_count(NT_LEFT_POOL), blocks);
    ExDeleteNPagedLookasideList(&nonpaged);
    ExDeletePagedLookasideList(&paged);
    ExDeleteLookasideListEx(&either);
    assert_int_equal(nt_left_count(NT_LEFT_LOOKASIDE), lists);
    assert_int_equal(nt_finding_count(), findings);
}

/* ---- routines -------------------------------------------------------------------------------- */

static int allocated, freed;
static char room[64];

static PVOID my_allocate(POOL_TYPE type, SIZE_T size, ULONG tag)
{
    assert_int_equal(type, NonPagedPool);
    assert_int_equal(size, 50);
    assert_int_equal(tag, TAG);
    allocated++;
    return room;
}

static VOID my_free(PVOID block)
{
    assert_ptr_equal(block, room);
    freed++;
}

static PLOOKASIDE_LIST_EX told;

static PVOID my_allocate_ex(POOL_TYPE type, SIZE_T size, ULONG tag, PLOOKASIDE_LIST_EX list)
{
    assert_int_equal(type, PagedPool);
    assert_int_equal(size, 60);
    assert_int_equal(tag, TAG);
    told = list;
    return allocated++ ? NULL : room;
}

static VOID my_free_ex(PVOID block, PLOOKASIDE_LIST_EX list)
{
    assert_ptr_equal(block, room);
    assert_ptr_equal(list, told);
    freed++;
}

static void routines_are_asked_for_blocks(void **state)
{
    unsigned findings = nt_finding_count();
    NPAGED_LOOKASIDE_LIST list;
    LOOKASIDE_LIST_EX ex;

    (void)state;
    allocated = freed = 0;
    ExInitializeNPagedLookasideList(&list, my_allocate, my_free, 0, 50, TAG, 0);
    assert_ptr_equal(ExAllocateFromNPagedLookasideList(&list), room);
    ExFreeToNPagedLookasideList(&list, room);
    assert_int_equal(allocated, 1);
    assert_int_equal(freed, 1);
    ExDeleteNPagedLookasideList(&list);

    allocated = freed = 0;
    ExInitializeLookasideListEx(&ex, my_allocate_ex, my_free_ex, PagedPool,
                                EX_LOOKASIDE_LIST_EX_FLAGS_FAIL_NO_RAISE, 60, TAG, 0);
    assert_ptr_equal(ExAllocateFromLookasideListEx(&ex), room);
    assert_ptr_equal(told, &ex);
    assert_null(ExAllocateFromLookasideListEx(&ex)); /* and it does not count */
    ExFreeToLookasideListEx(&ex, room);
    assert_int_equal(freed, 1);
    ExDeleteLookasideListEx(&ex);
    assert_int_equal(nt_finding_count(), findings);
}

static void parameters_must_fit(void **state)
{
    LOOKASIDE_LIST_EX ex;

    (void)state;
    assert_int_equal(ExInitializeLookasideListEx(&ex, NULL, NULL, (POOL_TYPE)77, 0, 10, TAG, 0),
                     STATUS_INVALID_PARAMETER_4);
    assert_int_equal(ExInitializeLookasideListEx(&ex, NULL, NULL, PagedPool, 8, 10, TAG, 0),
                     STATUS_INVALID_PARAMETER_5);
    assert_int_equal(ExInitializeLookasideListEx(&ex, NULL, NULL, PagedPool, 3, 10, TAG, 0),
                     STATUS_INVALID_PARAMETER_5);
}

/* ---- misuse --------------------------------------------------------------------------------- */

static void misuse_is_found(void **state)
{
    unsigned findings = nt_finding_count();
    NPAGED_LOOKASIDE_LIST list;
    PVOID block, other = ExAllocatePool2(POOL_FLAG_NON_PAGED, 77, TAG);

    (void)state;
    ExInitializeNPagedLookasideList(&list, NULL, NULL, 0, 100, TAG, 0);
    block = ExAllocateFromNPagedLookasideList(&list);
    ExFreeToNPagedLookasideList(&list, other);
    ASSERT_FINDING(findings, "is no block of the list");
    ExDeleteNPagedLookasideList(&list);
    ASSERT_FINDING(findings + 1, "are still out (1)");
    ExFreePoolWithTag(block, TAG);
    ExFreePoolWithTag(other, TAG);
    assert_null(ExAllocateFromNPagedLookasideList(&list));
    ASSERT_FINDING(findings + 2, "is no list, or deleted already");
    ExDeleteNPagedLookasideList(&list);
    ASSERT_FINDING(findings + 3, "is no list, or deleted already");

    ExInitializeNPagedLookasideList(&list, NULL, NULL, 0, 100, TAG, 0);
    ExInitializeNPagedLookasideList(&list, NULL, NULL, 0, 100, TAG, 0);
    ASSERT_FINDING(findings + 4, "is initialized already");
    block = ExAllocateFromNPagedLookasideList(&list);
    ExFreeToNPagedLookasideList(&list, block);
    ExFreeToNPagedLookasideList(&list, block);
    ASSERT_FINDING(findings + 5, "or given back already");
    ExDeleteNPagedLookasideList(&list);
    assert_int_equal(nt_finding_count(), findings + 6);
}

static void levels_are_checked(void **state)
{
    unsigned findings = nt_finding_count();
    PAGED_LOOKASIDE_LIST paged;
    NPAGED_LOOKASIDE_LIST nonpaged;
    PVOID block;

    (void)state;
    ExInitializePagedLookasideList(&paged, NULL, NULL, 0, 200, TAG, 0);
    ExInitializeNPagedLookasideList(&nonpaged, NULL, NULL, 0, 200, TAG, 0);
    nt_irql_set(DISPATCH_LEVEL);
    block = ExAllocateFromNPagedLookasideList(&nonpaged);
    ExFreeToNPagedLookasideList(&nonpaged, block);
    assert_int_equal(nt_finding_count(), findings);
    block = ExAllocateFromPagedLookasideList(&paged);
    ASSERT_FINDING(findings, "ExAllocateFromPagedLookasideList: IRQL too high");
    nt_irql_set(PASSIVE_LEVEL);
    ExFreeToPagedLookasideList(&paged, block);
    ExDeletePagedLookasideList(&paged);
    ExDeleteNPagedLookasideList(&nonpaged);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_come_and_go),  cmocka_unit_test(routines_are_asked_for_blocks),
        cmocka_unit_test(parameters_must_fit), cmocka_unit_test(misuse_is_found),
        cmocka_unit_test(levels_are_checked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
