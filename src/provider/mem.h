// SPDX-License-Identifier: MIT
/*
 * Memory: the token table, access checks, page lists.
 *
 * A token is index << 8 | key. Indexes are recycled first in, first out, so that a stale token is
 * found rather than reused; it is an accident detector, not a secret. Local and remote tokens are
 * distinct: each names a slot that allows only one side. Index 0 is never given out, nor is the top
 * bit of the index (tokens with it name our own open Reads, see conn/).
 *
 * A slot holds one atomic word: state, key and the number of accesses in progress. mem_begin takes
 * the slot only while it is valid and the key matches; mem_retire clears "valid" and calls done
 * when the last access has ended, at once or later, on whatever thread ends it. Fields of a region
 * change only while its slot is neither valid nor in use. Slots are never freed before the table.
 *
 * Locks: the table's allocation lock (leaf). mem_begin and mem_end take none.
 */
#ifndef SOFTNDK_PROVIDER_MEM_H
#define SOFTNDK_PROVIDER_MEM_H

#include <ntdef.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "conn/access.h"
#include "os/os.h"

struct mem_table;
struct mem_slot;
struct pages_known;

/* Who may invalidate what a token names, by that token. */
enum mem_invalidator {
    MEM_BY_PEER = 0x1, /* a Send with Invalidate */
    MEM_BY_READ = 0x2  /* a Read of ours that invalidates its sink */
};

/* What a token names. address is the first octet's "virtual address", an index for the peer and the
 * consumer, never dereferenced. Octet n of the region is at pages[(fbo + n) / 4096] + its offset;
 * flat is set when the pages follow each other in this process. */
struct mem_region {
    uint64_t address, length;
    uint32_t rights;      /* enum access_need bits that this token grants */
    uint32_t invalidates; /* enum mem_invalidator bits */
    const void *domain;   /* the PD; compared only */
    const void *bound_to; /* a QP for windows, else NULL; compared only */
    void *owner;   /* the object (MR, MW) that publishes and retires the slot; see mem_hold */
    uint8_t *flat; /* host address of the first octet, or NULL */
    uint32_t fbo;  /* offset of the first octet in pages[0] */
    uint32_t page_count;
    uint64_t *pages; /* host addresses, owned by whoever filled the region */
};

struct mem_table *mem_table_new(void);
void mem_table_free(struct mem_table *table);
/* The pages that this adapter's mappings and fast-registers have asked for, see pages.h. */
struct pages_known *mem_known(struct mem_table *table);

/* A slot with a fresh key, not valid yet; NULL: table full or no memory. */
struct mem_slot *mem_slot_new(struct mem_table *table, const struct mem_region *region);
uint32_t mem_token(const struct mem_slot *slot);
/* The token this slot would have under its next key. Does not change the slot: a fast-register
 * announces it when it is posted, while the present token may still be valid. */
uint32_t mem_next_token(struct mem_slot *slot);
/* The token with the key after this one's. Who may have several announced at a time (posts behind
 * each other) goes on from the last announced one. */
static inline uint32_t mem_token_after(uint32_t token)
{
    return (token & ~0xffu) | ((token + 1) & 0xffu);
}

/*
 * Remote tokens that are given out when a request is posted and become the slot's when it is
 * executed: of fast-registers and binds. Several may be posted behind each other. Guarded by the
 * owner's lock.
 */
struct mem_tokens {
    uint32_t shown;  /* the answer to "the remote token": of the request posted last, or the slot's
                      */
    uint32_t last;   /* given out last; never given out again before the keys wrap */
    unsigned posted; /* requests that are neither executed nor discarded */
};
/* A request is posted: its token. *before is for mem_tokens_over(). */
uint32_t mem_tokens_next(struct mem_tokens *tokens, uint32_t *before);
/* It was executed, or will never be. With nothing else posted the slot's own token is shown. */
void mem_tokens_over(struct mem_tokens *tokens, const struct mem_slot *slot, uint32_t token,
                     uint32_t before);

/* Not valid, not in use: takes the key of token (same index) and new contents. */
void mem_refill(struct mem_slot *slot, uint32_t token, const struct mem_region *region);
/* From here on accesses are let in. */
void mem_publish(struct mem_slot *slot);
/* No new access from now on. True: none is in progress, done is not called. False: done(context)
 * will be called when the last one ended; it may run before this returns, on another thread. Not
 * valid already: true, whatever is in progress (whoever retired it knows). */
bool mem_retire(struct mem_slot *slot, void (*done)(void *context), void *context);
bool mem_valid(const struct mem_slot *slot);
/* Gives the index back. Not valid, not in use. */
void mem_slot_free(struct mem_table *table, struct mem_slot *slot);

/* Takes the region that token names for [address, address + length) with the needed rights.
 * qp: compared with bound_to. length 0 is checked like any other (callers skip what the wire says
 * must not be checked). Checked in this order: the token, its domain, what it is bound to, the
 * rights, the range. Only ACCESS_OK holds anything. */
enum access_result mem_begin(struct mem_table *table, uint32_t token, const void *domain,
                             const void *qp, uint64_t address, uint64_t length, uint32_t need,
                             struct access *out);
void mem_end(struct access *access);
/* Host pieces of [address, address + length) of a region that is held; the count, or -1 when more
 * than max would be needed. */
int mem_pieces(const struct access *access, uint64_t address, uint64_t length, struct os_iov *out,
               int max);
/* The slot a token names, or NULL: unknown or stale. Good for comparing and for tests only: nothing
 * keeps the slot from being retired and freed meanwhile. */
struct mem_slot *mem_find(struct mem_table *table, uint32_t token);
/*
 * Takes the region that token names now, whatever its range, domain and rights; false: not valid.
 * For invalidation: an owner retires its slots before it drops its last reference, and waits for
 * accesses to end; so the owner is alive, and may be referenced, until mem_end.
 */
bool mem_hold(struct mem_table *table, uint32_t token, struct access *out);
const struct mem_region *mem_region_of(const struct mem_slot *slot);

#endif
