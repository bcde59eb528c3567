// SPDX-License-Identifier: MIT
/*
 * From an MDL chain to a page list. A page is named by its host address; its adapter logical
 * address is the same, or a permutation of it with the option `scattered`. Of an MDL only the page
 * numbers, ByteCount, ByteOffset, Next and the virtual address StartVa + ByteOffset are used, and
 * that address as an index only: nothing here, or above, dereferences it.
 *
 * Pure functions; the caller keeps the chain unchanged between measure and fill. No locks.
 */
#ifndef SOFTNDK_PROVIDER_PAGES_H
#define SOFTNDK_PROVIDER_PAGES_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <wdm.h>

/* What the first octets of a chain cover. */
struct pages_extent {
    uint64_t address; /* the first MDL's virtual address */
    uint64_t length;  /* octets */
    uint32_t fbo;     /* offset of the first octet in the first page */
    uint32_t count;   /* pages */
};

#define PAGES_REASON_MAX 160

/*
 * Measures the first length octets of the chain. False, with "what is wrong (have X, need Y)" in
 * reason: no chain, malformed MDL, chain shorter than length, or not virtually contiguous. An MDL
 * may begin within the page in which the one before it ended, if both name the same page there.
 */
bool pages_measure(const MDL *mdl, uint64_t length, struct pages_extent *out,
                   char reason[PAGES_REASON_MAX]);
/* Writes extent->count host addresses of 8 octets each to out, which need not be aligned. */
void pages_fill(const MDL *mdl, const struct pages_extent *extent, void *out);
/* Are all pages there, and writable if that is asked? False: *bad is the first one that is not. */
bool pages_probe(const uint64_t *pages, uint32_t count, bool writable, uint64_t *bad);

/*
 * Pages that were there when they were asked for: a probe costs a system call and about 0.4 us a
 * page, too much for each mapping of a buffer that is used again and again. Page number n is
 * remembered in entry n % PAGES_KNOWN. It may be out of date: what is not noticed then is a buffer
 * that was unmapped or write-protected, and mapped or fast-registered again. All zero: knows
 * nothing.
 */
#define PAGES_KNOWN 4096u
struct pages_known {
    atomic_ullong pages[PAGES_KNOWN]; /* address, plus 1; plus 2 if writable */
};
/* As pages_probe, but does not ask again for pages that are known. Any thread. */
bool pages_probe_once(struct pages_known *known, const uint64_t *pages, uint32_t count,
                      bool writable, uint64_t *bad);

/*
 * Adapter logical addresses. Without `scattered` they are host addresses. With it, a permutation of
 * page numbers (offsets in a page stay): pages change places within each group of eight, so that no
 * two host pages that follow each other have logical addresses that follow each other, in either
 * direction; and PAGES_SCATTERED is flipped, so that a host address given for a logical one names
 * nothing. Any address has a counterpart; whether a page is there shows when it is probed.
 */
#define PAGES_SCATTERED (UINT64_C(1) << 56)
uint64_t pages_to_logical(bool scattered, uint64_t host);
uint64_t pages_from_logical(bool scattered, uint64_t logical);
/* Does [address, address + length) of logical addresses lie in one page? An empty one does. */
static inline bool pages_in_one(uint64_t address, uint64_t length)
{
    return length == 0 || address % 4096 + length <= 4096;
}

/* The host address of the first octet if the pages follow each other in this process, or NULL. */
uint8_t *pages_flat(const uint64_t *pages, uint32_t count, uint32_t fbo);

#endif
