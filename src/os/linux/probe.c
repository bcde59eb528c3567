// SPDX-License-Identifier: MIT
/*
 * Is memory there? The kernel's populate advice (5.14) faults every page in as a read or a write
 * would, without touching the contents, and says what a signal would have said. Older kernels: the
 * mapping table, which knows the permissions but not a file that is shorter than its mapping.
 */
#include <stdio.h>
#include <sys/mman.h>

#include "base/red.h"
#include "os/linux/backend.h"

#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

/* The pages that hold [addr, addr + len); false when that wraps. */
static bool probe_pages(const void *addr, size_t len, uintptr_t *first, uintptr_t *end)
{
    uintptr_t mask = OS_PAGE_SIZE - 1;
    uintptr_t start = (uintptr_t)addr;

    if (start > UINTPTR_MAX - len || start + len > UINTPTR_MAX - mask)
        return false;
    *first = start & ~mask;
    *end = (start + len + mask) & ~mask;
    return true;
}

static int probe_populate(uintptr_t first, uintptr_t end, bool writable)
{
    int advice = writable ? MADV_POPULATE_WRITE : MADV_POPULATE_READ;
    int rc;

    do {
        rc = madvise((void *)first, end - first, advice);
    } while (rc < 0 && (errno == EINTR || errno == EAGAIN));
    return rc < 0 ? -errno : 0;
}

int os_probe_by_map(const void *addr, size_t len, bool writable)
{
    uintptr_t at, end, from, to;
    char line[512];
    char perms[8];
    FILE *map;

    if (len == 0)
        return 0;
    if (!probe_pages(addr, len, &at, &end))
        return -EFAULT;
    map = fopen("/proc/self/maps", "re");
    if (!map) /* then only whether it is mapped can be told */
        return msync((void *)at, end - at, MS_ASYNC) < 0 ? -EFAULT : 0;
    while (at < end && fgets(line, sizeof line, map)) {
        unsigned long long a, b;

        /* The rest of a line that was too long does not parse. */
        if (sscanf(line, "%llx-%llx %7s", &a, &b, perms) != 3)
            continue;
        from = (uintptr_t)a;
        to = (uintptr_t)b;
        if (to <= at)
            continue;
        if (from > at || perms[0] != 'r' || (writable && perms[1] != 'w'))
            break;
        at = to;
    }
    fclose(map);
    return at < end ? -EFAULT : 0;
}

/* EINVAL means both "no such advice" and "not with these permissions": ask about a page of ours. */
static bool probe_supported(void)
{
    static atomic_int known; /* 0 not asked, 1 no, 2 yes */
    int answer = atomic_load_explicit(&known, memory_order_relaxed);

    if (answer == 0) {
        uintptr_t page = (uintptr_t)&answer & ~(uintptr_t)(OS_PAGE_SIZE - 1);

        answer = probe_populate(page, page + OS_PAGE_SIZE, false) == 0 ? 2 : 1;
        atomic_store_explicit(&known, answer, memory_order_relaxed);
    }
    return answer == 2;
}

int os_probe(const void *addr, size_t len, bool writable)
{
    uintptr_t first, end;

    if (len == 0)
        return 0;
    if (RED("os-probe-writable-ignored"))
        writable = false;
    if (RED("os-probe-first-page-only"))
        len = 1;
    if (!probe_pages(addr, len, &first, &end))
        return -EFAULT;
    if (probe_populate(first, end, writable) == 0)
        return 0;
    if (errno == EINVAL && !probe_supported())
        return os_probe_by_map(addr, len, writable);
    return -EFAULT;
}
