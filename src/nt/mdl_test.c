// SPDX-License-Identifier: MIT
/*
 * Tests of mdl.c: spans, page arrays, chains, locking state, partial lists.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

#include "nt/left.h"
#include "nt/nt.h"

enum { PAGES = 8 };

/* PAGES pages of memory at a page boundary. */
static char *pages_map(void)
{
    void *p =
        mmap(NULL, PAGES * PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_true(p != MAP_FAILED);
    return p;
}

static void pages_unmap(char *p)
{
    assert_int_equal(munmap(p, PAGES * PAGE_SIZE), 0);
}

static uintptr_t page_of(const void *address)
{
    return (uintptr_t)address >> PAGE_SHIFT;
}

static void span_counts_every_touched_page(void **state)
{
    static const struct {
        size_t offset, length, pages;
    } cases[] = {
        {0, 0, 0},      {0, 1, 1},       {0, 4096, 1},      {0, 4097, 2},
        {4095, 1, 1},   {4095, 2, 2},    {1, 4096, 2},      {1, 4095, 1},
        {100, 8192, 3}, {4095, 8194, 4}, {0, 1 << 20, 256}, {4095, 4098, 3},
    };
    char *base = (char *)(uintptr_t)0x7f0000000000;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char *at = base + cases[i].offset;

        assert_int_equal(ADDRESS_AND_SIZE_TO_SPAN_PAGES(at, cases[i].length), cases[i].pages);
        assert_int_equal(MmSizeOfMdl(at, cases[i].length),
                         sizeof(MDL) + cases[i].pages * sizeof(PFN_NUMBER));
    }
}

static void allocation_describes_the_buffer(void **state)
{
    char *p = pages_map();
    size_t live = nt_left_count(NT_LEFT_MDL);
    PMDL mdl = IoAllocateMdl(p + 5000, 9000, FALSE, FALSE, NULL);

    (void)state;
    assert_non_null(mdl);
    assert_int_equal(nt_left_count(NT_LEFT_MDL), live + 1);
    assert_null(mdl->Next);
    assert_ptr_equal(MmGetMdlBaseVa(mdl), p + 4096);
    assert_int_equal(MmGetMdlByteOffset(mdl), 904);
    assert_int_equal(MmGetMdlByteCount(mdl), 9000);
    assert_ptr_equal(MmGetMdlVirtualAddress(mdl), p + 5000);
    assert_int_equal(mdl->Size, sizeof(MDL) + 3 * sizeof(PFN_NUMBER));
    assert_int_equal(mdl->MdlFlags, 0);
    IoFreeMdl(mdl);
    assert_int_equal(nt_left_count(NT_LEFT_MDL), live);
    pages_unmap(p);
}

static void building_fills_the_page_array(void **state)
{
    char *p = pages_map();
    PMDL mdl = IoAllocateMdl(p + 4095, 4098, FALSE, FALSE, NULL);

    (void)state;
    MmBuildMdlForNonPagedPool(mdl);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(MmGetMdlPfnArray(mdl)[i], page_of(p) + i);
    assert_true(mdl->MdlFlags & MDL_SOURCE_IS_NONPAGED_POOL);
    assert_ptr_equal(MmGetSystemAddressForMdlSafe(mdl, NormalPagePriority), p + 4095);
    IoFreeMdl(mdl);
    pages_unmap(p);
}

static void an_mdl_may_live_in_the_callers_memory(void **state)
{
    union {
        MDL mdl;
        char bytes[sizeof(MDL) + 2 * sizeof(PFN_NUMBER)];
    } room;
    char *p = pages_map();

    (void)state;
    memset(&room, 0xee, sizeof(room));
    MmInitializeMdl(&room.mdl, p + 10, 4096);
    assert_null(room.mdl.Next);
    assert_int_equal(room.mdl.MdlFlags, 0);
    MmBuildMdlForNonPagedPool(&room.mdl);
    assert_int_equal(MmGetMdlPfnArray(&room.mdl)[1], page_of(p) + 1);
    pages_unmap(p);
}

static void an_irp_gathers_a_chain(void **state)
{
    char *p = pages_map();
    IRP irp = {.MdlAddress = NULL};
    PMDL first = IoAllocateMdl(p, 10, FALSE, FALSE, &irp);
    PMDL second = IoAllocateMdl(p + 4096, 10, TRUE, FALSE, &irp);
    PMDL third = IoAllocateMdl(p + 8192, 10, TRUE, FALSE, &irp);

    (void)state;
    assert_ptr_equal(irp.MdlAddress, first);
    assert_ptr_equal(first->Next, second);
    assert_ptr_equal(second->Next, third);
    assert_null(third->Next);
    IoFreeMdl(third);
    IoFreeMdl(second);
    IoFreeMdl(first);
    pages_unmap(p);
}

static void locking_checks_the_memory_and_keeps_state(void **state)
{
    char *p = pages_map();
    PMDL mdl = IoAllocateMdl(p + 100, 3 * PAGE_SIZE, FALSE, FALSE, NULL);
    unsigned findings = nt_finding_count();

    (void)state;
    MmProbeAndLockPages(mdl, KernelMode, IoWriteAccess);
    assert_int_equal(nt_finding_count(), findings);
    assert_true(mdl->MdlFlags & MDL_PAGES_LOCKED);
    assert_true(mdl->MdlFlags & MDL_WRITE_OPERATION);
    assert_int_equal(MmGetMdlPfnArray(mdl)[3], page_of(p) + 3);
    assert_ptr_equal(MmGetSystemAddressForMdlSafe(mdl, NormalPagePriority), p + 100);
    assert_true(mdl->MdlFlags & MDL_MAPPED_TO_SYSTEM_VA);

    MmProbeAndLockPages(mdl, KernelMode, IoReadAccess); /* a second time */
    assert_int_equal(nt_finding_count(), findings + 1);

    MmUnlockPages(mdl);
    assert_int_equal(mdl->MdlFlags & (MDL_PAGES_LOCKED | MDL_MAPPED_TO_SYSTEM_VA), 0);
    assert_int_equal(nt_finding_count(), findings + 1);
    MmUnlockPages(mdl); /* not locked */
    assert_int_equal(nt_finding_count(), findings + 2);

    MmProbeAndLockPages(mdl, KernelMode, IoReadAccess);
    assert_false(mdl->MdlFlags & MDL_WRITE_OPERATION);
    IoFreeMdl(mdl); /* still locked */
    assert_int_equal(nt_finding_count(), findings + 3);
    pages_unmap(p);
}

static void missing_memory_is_found_wherever_it_is(void **state)
{
    (void)state;
    for (size_t hole = 0; hole < 3; hole++) {
        char *p = pages_map();
        PMDL mdl = IoAllocateMdl(p + 100, 2 * PAGE_SIZE, FALSE, FALSE, NULL); /* pages 0 to 2 */
        unsigned findings = nt_finding_count();

        assert_int_equal(munmap(p + hole * PAGE_SIZE, PAGE_SIZE), 0);
        MmProbeAndLockPages(mdl, KernelMode, IoReadAccess);
        assert_int_equal(nt_finding_count(), findings + 1);
        assert_false(mdl->MdlFlags & MDL_PAGES_LOCKED);
        IoFreeMdl(mdl);
        pages_unmap(p);
    }
}

static void mapping_needs_locked_pages(void **state)
{
    char *p = pages_map();
    PMDL mdl = IoAllocateMdl(p, 100, FALSE, FALSE, NULL);
    unsigned findings = nt_finding_count();

    (void)state;
    MmMapLockedPages(mdl, KernelMode);
    assert_int_equal(nt_finding_count(), findings + 1);
    MmUnmapLockedPages(p, mdl);
    assert_int_equal(nt_finding_count(), findings + 1);
    MmUnmapLockedPages(p, mdl);
    assert_int_equal(nt_finding_count(), findings + 2);
    MmMapLockedPages(mdl, KernelMode);
    MmPrepareMdlForReuse(mdl);
    assert_int_equal(mdl->MdlFlags, 0);
    IoFreeMdl(mdl);
    pages_unmap(p);
}

static void a_partial_mdl_takes_the_sources_pages(void **state)
{
    char *p = pages_map();
    PMDL source = IoAllocateMdl(p + 100, 6 * PAGE_SIZE, FALSE, FALSE, NULL);
    PMDL target = IoAllocateMdl(p + 100, 6 * PAGE_SIZE, FALSE, FALSE, NULL);
    PMDL small = IoAllocateMdl(p, 1, FALSE, FALSE, NULL);
    unsigned findings = nt_finding_count();

    (void)state;
    MmBuildMdlForNonPagedPool(source);
    for (size_t i = 0; i < 7; i++)
        MmGetMdlPfnArray(source)[i] = 1000 + 7 * i; /* pages that addresses do not tell */

    IoBuildPartialMdl(source, target, p + 2 * PAGE_SIZE + 5, PAGE_SIZE);
    assert_ptr_equal(MmGetMdlVirtualAddress(target), p + 2 * PAGE_SIZE + 5);
    assert_int_equal(target->ByteCount, PAGE_SIZE);
    assert_true(target->MdlFlags & MDL_PARTIAL);
    assert_int_equal(MmGetMdlPfnArray(target)[0], 1014);
    assert_int_equal(MmGetMdlPfnArray(target)[1], 1021);
    assert_ptr_equal(MmGetSystemAddressForMdlSafe(target, 0), p + 2 * PAGE_SIZE + 5);

    IoBuildPartialMdl(source, target, p + 5 * PAGE_SIZE, 0); /* to the end */
    assert_int_equal(target->ByteCount, PAGE_SIZE + 100);
    assert_int_equal(MmGetMdlPfnArray(target)[1], 1042);
    assert_int_equal(nt_finding_count(), findings);

    IoBuildPartialMdl(source, target, p + 99, 10); /* before the source */
    assert_int_equal(nt_finding_count(), findings + 1);
    IoBuildPartialMdl(source, target, p + 200, 6 * PAGE_SIZE); /* past its end */
    assert_int_equal(nt_finding_count(), findings + 2);
    IoBuildPartialMdl(source, small, p + 200, PAGE_SIZE); /* two pages into room for one */
    assert_int_equal(nt_finding_count(), findings + 3);
    assert_int_equal(target->ByteCount, PAGE_SIZE + 100);

    IoFreeMdl(small);
    IoFreeMdl(target);
    IoFreeMdl(source);
    pages_unmap(p);
}

static void an_mdl_is_freed_once(void **state)
{
    unsigned findings = nt_finding_count();
    char *p = pages_map();
    PMDL mdl = IoAllocateMdl(p, 100, FALSE, FALSE, NULL);
    MDL own;

    (void)state;
    IoFreeMdl(mdl);
    assert_int_equal(nt_finding_count(), findings);
    IoFreeMdl(mdl);
    assert_int_equal(nt_finding_count(), findings + 1);
    MmInitializeMdl(&own, p, 0);
    IoFreeMdl(&own); /* of the caller's own memory */
    assert_int_equal(nt_finding_count(), findings + 2);
    nt_irql_set(HIGH_LEVEL);
    mdl = IoAllocateMdl(p, 100, FALSE, FALSE, NULL);
    IoFreeMdl(mdl);
    nt_irql_set(PASSIVE_LEVEL);
    assert_int_equal(nt_finding_count(), findings + 4);
    pages_unmap(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(span_counts_every_touched_page),
        cmocka_unit_test(allocation_describes_the_buffer),
        cmocka_unit_test(building_fills_the_page_array),
        cmocka_unit_test(an_mdl_may_live_in_the_callers_memory),
        cmocka_unit_test(an_irp_gathers_a_chain),
        cmocka_unit_test(locking_checks_the_memory_and_keeps_state),
        cmocka_unit_test(missing_memory_is_found_wherever_it_is),
        cmocka_unit_test(mapping_needs_locked_pages),
        cmocka_unit_test(a_partial_mdl_takes_the_sources_pages),
        cmocka_unit_test(an_mdl_is_freed_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
