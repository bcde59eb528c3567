// SPDX-License-Identifier: MIT
/* Memory probes, by the populate advice and by the mapping table. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#include <sys/mman.h>
#include <unistd.h>

#include "os/linux/backend.h"
#include "os/os_testing.h"

#define PAGE  ((size_t)OS_PAGE_SIZE)
#define PAGES 8

typedef int (*probe_fn)(const void *addr, size_t len, bool writable);

/* Pages 0-1 writable, 2 read-only, 3 without access, 4 not mapped, 5-7 writable. */
static uint8_t *map_pages(void)
{
    uint8_t *m =
        mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_true(m != MAP_FAILED);
    memset(m, 0xa5, 3 * PAGE);
    assert_int_equal(mprotect(m + 2 * PAGE, PAGE, PROT_READ), 0);
    assert_int_equal(mprotect(m + 3 * PAGE, PAGE, PROT_NONE), 0);
    assert_int_equal(munmap(m + 4 * PAGE, PAGE), 0);
    return m;
}

static void check_ranges(probe_fn probe)
{
    uint8_t *m = map_pages();

    /* mapped; a part of a page stands for the page */
    assert_int_equal(probe(m, 2 * PAGE, true), 0);
    assert_int_equal(probe(m, 2 * PAGE, false), 0);
    assert_int_equal(probe(m + 1, 1, true), 0);
    assert_int_equal(probe(m + PAGE - 1, 2, true), 0);
    assert_int_equal(probe(m + 5 * PAGE, 3 * PAGE, true), 0);
    /* read-only */
    assert_int_equal(probe(m, 3 * PAGE, false), 0);
    assert_int_equal(probe(m, 3 * PAGE, true), -EFAULT);
    assert_int_equal(probe(m + 2 * PAGE, 1, true), -EFAULT);
    assert_int_equal(probe(m + 2 * PAGE - 1, 2, true), -EFAULT);
    assert_int_equal(probe(m + 2 * PAGE - 1, 2, false), 0);
    /* no access, not mapped, a hole in the middle, its edges */
    assert_int_equal(probe(m + 3 * PAGE, 1, false), -EFAULT);
    assert_int_equal(probe(m + 4 * PAGE, 1, false), -EFAULT);
    assert_int_equal(probe(m, PAGES * PAGE, false), -EFAULT);
    assert_int_equal(probe(m + 5 * PAGE - 1, 2, true), -EFAULT);
    assert_int_equal(probe(m + 3 * PAGE - 1, 2, false), -EFAULT);
    assert_int_equal(probe(m + 3 * PAGE - 1, 1, false), 0);
    /* nothing, the null page, and addresses that wrap */
    assert_int_equal(probe(m + 4 * PAGE, 0, true), 0);
    assert_int_equal(probe(NULL, 1, false), -EFAULT);
    assert_int_equal(probe(m, SIZE_MAX, false), -EFAULT);
    assert_int_equal(probe((void *)(UINTPTR_MAX - 10), 5, false), -EFAULT);
    assert_int_equal(probe((void *)(UINTPTR_MAX - 10), 500, false), -EFAULT);

    for (size_t i = 0; i < 3 * PAGE; i++)
        assert_int_equal(m[i], 0xa5);
    for (size_t i = 5 * PAGE; i < PAGES * PAGE; i++)
        assert_int_equal(m[i], 0);
    munmap(m, PAGES * PAGE);
}

static void ranges(void **state)
{
    (void)state;
    check_ranges(os_probe);
}

static void ranges_by_map(void **state)
{
    (void)state;
    check_ranges(os_probe_by_map);
}

static void own_memory(void **state)
{
    char local[100];
    static char zero[3 * OS_PAGE_SIZE];
    char *heap = malloc(1 << 20);

    (void)state;
    assert_non_null(heap);
    for (int pass = 0; pass < 2; pass++) {
        probe_fn probe = pass ? os_probe_by_map : os_probe;

        assert_int_equal(probe(local, sizeof local, true), 0);
        assert_int_equal(probe(zero, sizeof zero, true), 0);
        assert_int_equal(probe(heap, 1 << 20, true), 0);
        assert_int_equal(probe("a literal", 9, false), 0);
        assert_int_equal(probe("a literal", 9, true), -EFAULT);
    }
    free(heap);
}

/* A mapping longer than its file: touching the rest would raise a signal. */
static void beyond_the_file(void **state)
{
    char name[] = "/tmp/softndk-probe-XXXXXX";
    int fd = mkstemp(name);
    uint8_t *m, *probe_me;

    (void)state;
    assert_true(fd >= 0);
    unlink(name);
    assert_int_equal(ftruncate(fd, (off_t)PAGE), 0);
    m = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(m != MAP_FAILED);
    probe_me = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(probe_me != MAP_FAILED);
    assert_int_equal(os_probe(m, PAGE, true), 0);
    if (madvise(probe_me, PAGE, 22 /* populate, read */) < 0)
        print_message("partly skipped: this kernel cannot tell a file that is too short\n");
    else
        assert_int_equal(os_probe(m, 2 * PAGE, false), -EFAULT);
    munmap(probe_me, PAGE);
    munmap(m, 2 * PAGE);
    close(fd);
}

/* Probing for writing makes a private copy of nothing that anybody could see. */
static void contents_of_a_file(void **state)
{
    char name[] = "/tmp/softndk-probe-XXXXXX";
    int fd = mkstemp(name);
    char octets[4];
    char *m;

    (void)state;
    assert_true(fd >= 0);
    unlink(name);
    assert_int_equal(write(fd, "abcd", 4), 4);
    m = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    assert_true(m != MAP_FAILED);
    assert_int_equal(os_probe(m, 4, true), 0);
    assert_memory_equal(m, "abcd", 4);
    assert_int_equal(pread(fd, octets, 4, 0), 4);
    assert_memory_equal(octets, "abcd", 4);
    munmap(m, PAGE);
    close(fd);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranges),
        cmocka_unit_test(ranges_by_map),
        cmocka_unit_test(own_memory),
        cmocka_unit_test(beyond_the_file),
        cmocka_unit_test(contents_of_a_file),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
