// SPDX-License-Identifier: MIT
/*
 * MDL chain -> page list. See pages.h. Called by registration and by NdkBuildLAM; holds no lock.
 *
 * measure proves what fill relies on: each MDL that contributes is well formed, begins at the
 * virtual address at which the one before it ended, and names the same page if that is within one.
 */
#include "provider/pages.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/red.h"
#include "os/os.h"

_Static_assert(PAGE_SIZE == OS_PAGE_SIZE, "one page size");

static uint64_t mdl_address(const MDL *mdl)
{
    return (uint64_t)(uintptr_t)mdl->StartVa + mdl->ByteOffset;
}

static const PFN_NUMBER *mdl_pages(const MDL *mdl)
{
    return (const PFN_NUMBER *)(const void *)(mdl + 1);
}

/* The pages that the first used octets of an MDL touch; used > 0. */
static uint64_t mdl_page_count(const MDL *mdl, uint64_t used)
{
    return (mdl->ByteOffset + used + PAGE_SIZE - 1) >> PAGE_SHIFT;
}

static bool refuse(char reason[PAGES_REASON_MAX], const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static bool refuse(char reason[PAGES_REASON_MAX], const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    vsnprintf(reason, PAGES_REASON_MAX, format, ap);
    va_end(ap);
    return false;
}

static bool well_formed(const MDL *mdl, unsigned number, char reason[PAGES_REASON_MAX])
{
    if (mdl->ByteOffset < PAGE_SIZE && BYTE_OFFSET(mdl->StartVa) == 0)
        return true;
    return refuse(reason,
                  "MDL %u malformed (have StartVa %p, ByteOffset %u, need a page-aligned StartVa "
                  "and ByteOffset < 4096)",
                  number, mdl->StartVa, (unsigned)mdl->ByteOffset);
}

/* May mdl, the number-th of the chain, give the octets from virtual address at on? last: the page
 * in which the one before it ended, 0 if there is none. */
static bool follows(const MDL *mdl, unsigned number, uint64_t at, PFN_NUMBER last,
                    char reason[PAGES_REASON_MAX])
{
    if (mdl_address(mdl) != at && !RED("pages-gap-unseen"))
        return refuse(reason,
                      "not virtually contiguous (have MDL %u at 0x%" PRIx64 ", need 0x%" PRIx64 ")",
                      number, mdl_address(mdl), at);
    if (last != 0 && mdl->ByteOffset != 0 && mdl_pages(mdl)[0] != last &&
        !RED("pages-torn-page-unseen"))
        return refuse(reason,
                      "MDL %u begins within a page (have page number 0x%" PRIx64 ", need 0x%" PRIx64
                      ", where the one before it ended)",
                      number, (uint64_t)mdl_pages(mdl)[0], (uint64_t)last);
    return true;
}

bool pages_measure(const MDL *mdl, uint64_t length, struct pages_extent *out,
                   char reason[PAGES_REASON_MAX])
{
    uint64_t done = 0, pages = 0;
    PFN_NUMBER last = 0;
    unsigned number = 1;

    if (!mdl)
        return refuse(reason, "no MDL (have NULL, need a chain)");
    if (!well_formed(mdl, 1, reason))
        return false;
    out->address = mdl_address(mdl);
    out->length = length;
    out->fbo = mdl->ByteOffset;
    if (length > 0 && length - 1 > UINTPTR_MAX - out->address)
        return refuse(reason,
                      "Length too large (have %" PRIu64 ", need <= %" PRIu64
                      ", the end of the address space)",
                      length, UINTPTR_MAX - out->address + 1);
    for (; mdl && done < length; mdl = mdl->Next, number++) {
        uint64_t left = length - done;
        uint64_t used = mdl->ByteCount < left ? mdl->ByteCount : left;
        uint64_t count;

        if (used == 0)
            continue;
        if (!well_formed(mdl, number, reason) ||
            !follows(mdl, number, out->address + done, last, reason))
            return false;
        count = mdl_page_count(mdl, used);
        last = mdl_pages(mdl)[count - 1];
        pages += done > 0 && mdl->ByteOffset != 0 ? count - 1 : count;
        done += used;
    }
    if (done < length && !RED("pages-short-chain-unseen"))
        return refuse(reason,
                      "Length too large (have %" PRIu64 ", need <= %" PRIu64 ", the chain's total)",
                      length, done);
    if (pages > UINT32_MAX)
        return refuse(reason, "too many pages (have %" PRIu64 ", need < 2^32)", pages);
    out->count = (uint32_t)pages;
    return true;
}

void pages_fill(const MDL *mdl, const struct pages_extent *extent, void *out)
{
    uint8_t *to = out;
    uint64_t done = 0;

    for (; mdl && done < extent->length; mdl = mdl->Next) {
        uint64_t left = extent->length - done;
        uint64_t used = mdl->ByteCount < left ? mdl->ByteCount : left;
        uint64_t count = used > 0 ? mdl_page_count(mdl, used) : 0;
        /* The page that this MDL shares with the one before it is there already. */
        uint64_t i = done > 0 && mdl->ByteOffset != 0 && !RED("pages-shared-page-twice") ? 1 : 0;

        for (; i < count; i++) {
            uint64_t address = (uint64_t)mdl_pages(mdl)[i] << PAGE_SHIFT;

            memcpy(to, &address, sizeof address);
            to += sizeof address;
        }
        done += used;
    }
}

/* How many of the count pages follow each other from the first on. */
static uint32_t run_length(const uint64_t *pages, uint32_t count)
{
    uint32_t n = 1;

    while (n < count && pages[n] == pages[n - 1] + PAGE_SIZE)
        n++;
    return n;
}

static bool probe_one(uint64_t page, uint64_t octets, bool writable)
{
    if (page > UINTPTR_MAX)
        return false;
    return os_probe((const void *)(uintptr_t)page, octets, writable) == 0;
}

bool pages_probe(const uint64_t *pages, uint32_t count, bool writable, uint64_t *bad)
{
    uint32_t at = 0;

    if (RED("pages-unprobed"))
        return true;
    while (at < count) {
        uint32_t n = run_length(pages + at, count - at);

        if (!probe_one(pages[at], (uint64_t)n * PAGE_SIZE, writable)) {
            /* Name the very page; a failure that has healed meanwhile is the run's first one. */
            *bad = pages[at];
            for (uint32_t i = 0; i < n; i++) {
                if (!probe_one(pages[at + i], PAGE_SIZE, writable)) {
                    *bad = pages[at + i];
                    break;
                }
            }
            return false;
        }
        at += n;
    }
    return true;
}

static atomic_ullong *known_entry(struct pages_known *known, uint64_t page)
{
    return &known->pages[(page >> PAGE_SHIFT) % PAGES_KNOWN];
}

static bool is_known(struct pages_known *known, uint64_t page, bool writable)
{
    uint64_t entry = atomic_load_explicit(known_entry(known, page), memory_order_relaxed);

    return entry == (page | 3) || (entry == (page | 1) && (!writable || RED("pages-known-any")));
}

bool pages_probe_once(struct pages_known *known, const uint64_t *pages, uint32_t count,
                      bool writable, uint64_t *bad)
{
    uint32_t at = 0;

    while (at < count) {
        uint32_t n = 0;

        if (is_known(known, pages[at], writable)) {
            at++;
            continue;
        }
        while (at + n < count && !is_known(known, pages[at + n], writable))
            n++;
        if (!pages_probe(pages + at, n, writable, bad))
            return false;
        for (; n > 0; n--, at++)
            atomic_store_explicit(known_entry(known, pages[at]),
                                  pages[at] | 1 | (writable ? 2u : 0u), memory_order_relaxed);
    }
    return true;
}

/* Page number times 3 within a group of 8: 0 3 6 1 4 7 2 5, which is its own inverse. */
static uint64_t permute_page(uint64_t address)
{
    const uint64_t group = UINT64_C(7) << PAGE_SHIFT;

    return (address & ~group) | ((address & group) * 3 & group);
}

uint64_t pages_to_logical(bool scattered, uint64_t host)
{
    if (!scattered || RED("pages-not-scattered"))
        return host;
    return permute_page(host) ^ PAGES_SCATTERED;
}

uint64_t pages_from_logical(bool scattered, uint64_t logical)
{
    if (!scattered || RED("pages-not-scattered"))
        return logical;
    return permute_page(logical) ^ PAGES_SCATTERED;
}

uint8_t *pages_flat(const uint64_t *pages, uint32_t count, uint32_t fbo)
{
    if (count == 0 || run_length(pages, count) != count)
        return NULL;
    return (uint8_t *)(uintptr_t)pages[0] + fbo;
}
