// SPDX-License-Identifier: MIT
/*
 * The token table and the access check. See mem.h for the contract.
 *
 * The word of a slot: bit 63 valid; bit 62 a retirement waits for the last access; bits 32-39 the
 * key; bits 0-31 the accesses in progress. Invariants:
 *  - only mem_publish sets valid, only mem_retire clears it;
 *  - the count grows only while the slot is valid, except for the retirer's own hold;
 *  - the contents (key, region, done) are written only while the word is neither valid nor in use,
 *    or, for done, while the retirer holds the slot. So whoever holds may read them without a lock.
 *
 * Called by the receive owner of any connection (begin/end: no lock), by posts (the same), and by
 * the owners of slots: MRs, windows, PDs. The allocation lock guards the free list only.
 */
#include "provider/mem.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/red.h"
#include "provider/pages.h"

#define SLOT_VALID     (UINT64_C(1) << 63)
#define SLOT_DRAIN     (UINT64_C(1) << 62)
#define SLOT_KEY_SHIFT 32
#define SLOT_KEY       (UINT64_C(0xff) << SLOT_KEY_SHIFT)
#define SLOT_COUNT     UINT64_C(0xffffffff)

#define CHUNK_SHIFT 8
#define CHUNK_SLOTS (1u << CHUNK_SHIFT)
#define INDEX_LIMIT                                                                                \
    (1u << 23) /* of 24 bits; the top one belongs to the connections' open Reads                   \
                */
#define CHUNKS (INDEX_LIMIT >> CHUNK_SHIFT)

#define CACHE_LINE 64

struct mem_slot {
    _Alignas(CACHE_LINE) atomic_ullong word;
    struct mem_region region;
    void (*done)(void *context);
    void *context;
    struct mem_slot *next_free;
    uint32_t index; /* set when the chunk is made */
    bool given;     /* not free; allocation lock */
};

struct mem_table {
    os_mutex lock;
    struct mem_slot *free_first, **free_last; /* recycled, the one free for longest first */
    uint32_t fresh;                           /* the lowest index that was never given out */
    _Atomic(struct mem_slot *) chunks[CHUNKS];
    struct pages_known known;
};

/* ---- the table ------------------------------------------------------------------------------ */

struct mem_table *mem_table_new(void)
{
    struct mem_table *table = calloc(1, sizeof *table);

    if (!table)
        return NULL;
    os_mutex_init(&table->lock);
    table->free_last = &table->free_first;
    table->fresh = 1;
    return table;
}

void mem_table_free(struct mem_table *table)
{
    if (!table)
        return;
    for (uint32_t i = 0; i < CHUNKS; i++) {
        struct mem_slot *chunk = atomic_load_explicit(&table->chunks[i], memory_order_relaxed);

        if (!chunk)
            break;
        free(chunk);
    }
    os_mutex_destroy(&table->lock);
    free(table);
}

struct pages_known *mem_known(struct mem_table *table)
{
    return &table->known;
}

static struct mem_slot *slot_at(struct mem_table *table, uint32_t index)
{
    struct mem_slot *chunk;

    if (index == 0 || index >= INDEX_LIMIT)
        return NULL;
    chunk = atomic_load_explicit(&table->chunks[index >> CHUNK_SHIFT], memory_order_acquire);
    return chunk ? &chunk[index & (CHUNK_SLOTS - 1)] : NULL;
}

/* A slot that was never used; allocation lock held. Fresh ones come before recycled ones as long as
 * the newest chunk has any, so an index rests for at least a chunk's worth of allocations. */
static struct mem_slot *slot_fresh(struct mem_table *table)
{
    uint32_t index = table->fresh;

    if (index >= INDEX_LIMIT)
        return NULL;
    if (!slot_at(table, index)) {
        struct mem_slot *chunk;

        if (table->free_first)
            return NULL;
        chunk = aligned_alloc(CACHE_LINE, CHUNK_SLOTS * sizeof *chunk);
        if (!chunk)
            return NULL;
        memset(chunk, 0, CHUNK_SLOTS * sizeof *chunk);
        for (uint32_t i = 0; i < CHUNK_SLOTS; i++)
            chunk[i].index = index - index % CHUNK_SLOTS + i;
        atomic_store_explicit(&table->chunks[index >> CHUNK_SHIFT], chunk, memory_order_release);
    }
    table->fresh = index + 1;
    return slot_at(table, index);
}

static struct mem_slot *slot_recycled(struct mem_table *table)
{
    struct mem_slot *slot = table->free_first;

    if (slot) {
        table->free_first = slot->next_free;
        if (!table->free_first)
            table->free_last = &table->free_first;
        slot->next_free = NULL;
    }
    return slot;
}

struct mem_slot *mem_slot_new(struct mem_table *table, const struct mem_region *region)
{
    struct mem_slot *slot;

    os_mutex_lock(&table->lock);
    slot = slot_fresh(table);
    if (!slot)
        slot = slot_recycled(table);
    if (slot)
        slot->given = true;
    os_mutex_unlock(&table->lock);
    if (slot)
        slot->region = *region;
    return slot;
}

void mem_slot_free(struct mem_table *table, struct mem_slot *slot)
{
    uint64_t word = atomic_load_explicit(&slot->word, memory_order_acquire);
    uint32_t token = mem_next_token(slot);

    assert((word & (SLOT_VALID | SLOT_DRAIN | SLOT_COUNT)) == 0);
    (void)word;
    /* The key advances here, so that from now on the old token names nothing. */
    if (!RED("mem-key-kept"))
        atomic_store_explicit(&slot->word, (uint64_t)(token & 0xff) << SLOT_KEY_SHIFT,
                              memory_order_relaxed);
    memset(&slot->region, 0, sizeof slot->region);
    os_mutex_lock(&table->lock);
    slot->given = false;
    if (RED("mem-last-in-first-out")) {
        slot->next_free = table->free_first;
        if (!table->free_first)
            table->free_last = &slot->next_free;
        table->free_first = slot;
    } else {
        slot->next_free = NULL;
        *table->free_last = slot;
        table->free_last = &slot->next_free;
    }
    os_mutex_unlock(&table->lock);
}

/* ---- slots ---------------------------------------------------------------------------------- */

uint32_t mem_token(const struct mem_slot *slot)
{
    uint64_t word = atomic_load_explicit(&slot->word, memory_order_relaxed);

    return slot->index << 8 | (uint32_t)(word >> SLOT_KEY_SHIFT & 0xff);
}

uint32_t mem_next_token(struct mem_slot *slot)
{
    return mem_token_after(mem_token(slot));
}

uint32_t mem_tokens_next(struct mem_tokens *tokens, uint32_t *before)
{
    *before = tokens->shown;
    tokens->posted++;
    tokens->last = mem_token_after(tokens->last);
    return tokens->shown = tokens->last;
}

void mem_tokens_over(struct mem_tokens *tokens, const struct mem_slot *slot, uint32_t token,
                     uint32_t before)
{
    if (--tokens->posted == 0 && !(RED("mem-tokens-never-shown-again") && mem_token(slot) != token))
        tokens->shown = mem_token(slot);
    else if (tokens->shown == token)
        tokens->shown = before;
}

void mem_refill(struct mem_slot *slot, uint32_t token, const struct mem_region *region)
{
    uint64_t word = atomic_load_explicit(&slot->word, memory_order_acquire);

    assert((word & (SLOT_VALID | SLOT_DRAIN | SLOT_COUNT)) == 0);
    assert(token >> 8 == slot->index);
    (void)word;
    slot->region = *region;
    atomic_store_explicit(&slot->word, (uint64_t)(token & 0xff) << SLOT_KEY_SHIFT,
                          memory_order_relaxed);
}

void mem_publish(struct mem_slot *slot)
{
    /* Release: who sees "valid" sees the contents. */
    uint64_t before = atomic_fetch_or_explicit(&slot->word, SLOT_VALID, memory_order_release);

    assert((before & (SLOT_VALID | SLOT_DRAIN | SLOT_COUNT)) == 0);
    (void)before;
}

bool mem_valid(const struct mem_slot *slot)
{
    return (atomic_load_explicit(&slot->word, memory_order_acquire) & SLOT_VALID) != 0;
}

bool mem_retire(struct mem_slot *slot, void (*done)(void *context), void *context)
{
    unsigned long long word = atomic_load_explicit(&slot->word, memory_order_relaxed);
    unsigned long long next;

    /* Clear "valid"; if somebody is inside, hold the slot too until done is written down. */
    do {
        if (!(word & SLOT_VALID))
            return true;
        next = (word & ~SLOT_VALID) + ((word & SLOT_COUNT) != 0);
    } while (!atomic_compare_exchange_weak_explicit(&slot->word, &word, next, memory_order_acq_rel,
                                                    memory_order_relaxed));
    if ((next & SLOT_COUNT) == 0)
        return true;
    slot->done = done;
    slot->context = context;
    word = next;
    do {
        next = word - 1;
        if ((next & SLOT_COUNT) != 0 && !RED("mem-retire-not-waiting"))
            next |= SLOT_DRAIN;
    } while (!atomic_compare_exchange_weak_explicit(&slot->word, &word, next, memory_order_acq_rel,
                                                    memory_order_acquire));
    return (next & SLOT_DRAIN) == 0;
}

const struct mem_region *mem_region_of(const struct mem_slot *slot)
{
    return &slot->region;
}

struct mem_slot *mem_find(struct mem_table *table, uint32_t token)
{
    struct mem_slot *slot;

    os_mutex_lock(&table->lock);
    slot = slot_at(table, token >> 8);
    if (slot && (!slot->given || mem_token(slot) != token))
        slot = NULL;
    os_mutex_unlock(&table->lock);
    return slot;
}

/* ---- accesses ------------------------------------------------------------------------------- */

/* One more access, if the slot is valid under this key. */
static bool slot_take(struct mem_slot *slot, uint32_t key)
{
    unsigned long long word = atomic_load_explicit(&slot->word, memory_order_relaxed);
    unsigned long long mask = SLOT_VALID | SLOT_KEY;
    unsigned long long want = SLOT_VALID | (uint64_t)key << SLOT_KEY_SHIFT;

    if (RED("mem-key-unchecked"))
        mask = want = SLOT_VALID;
    do {
        if ((word & mask) != want)
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&slot->word, &word, word + 1,
                                                    memory_order_acquire, memory_order_relaxed));
    return true;
}

static void slot_drop(struct mem_slot *slot)
{
    uint64_t before = atomic_fetch_sub_explicit(&slot->word, 1, memory_order_acq_rel);

    assert((before & SLOT_COUNT) != 0);
    if ((before & (SLOT_DRAIN | SLOT_COUNT)) == (SLOT_DRAIN | 1)) {
        void (*done)(void *) = slot->done;
        void *context = slot->context;

        atomic_store_explicit(&slot->word, before & SLOT_KEY, memory_order_release);
        done(context);
    }
}

static enum access_result range_check(const struct mem_region *region, uint64_t address,
                                      uint64_t length)
{
    uint64_t offset = address - region->address;
    uint64_t limit = region->length + (RED("mem-end-off-by-one") ? 1 : 0);

    if (length != 0 && length - 1 > UINT64_MAX - address)
        return ACCESS_WRAP;
    if (address < region->address && !RED("mem-start-unchecked"))
        return ACCESS_BOUNDS;
    if (offset > limit || length > limit - offset)
        return ACCESS_BOUNDS;
    return ACCESS_OK;
}

static enum access_result region_check(const struct mem_region *region, const void *domain,
                                       const void *qp, uint64_t address, uint64_t length,
                                       uint32_t need)
{
    if (region->domain != domain && !RED("mem-domain-unchecked"))
        return ACCESS_WRONG_DOMAIN;
    if (region->bound_to && region->bound_to != qp && !RED("mem-any-connection"))
        return ACCESS_WRONG_DOMAIN;
    if ((region->rights & need) != need && !RED("mem-rights-unchecked"))
        return ACCESS_NO_RIGHT;
    return range_check(region, address, length);
}

static void access_fill(struct access *out, struct mem_slot *slot)
{
    out->slot = slot;
    out->region = &slot->region;
    out->host = slot->region.flat;
    out->first = slot->region.address;
    out->length = slot->region.length;
}

enum access_result mem_begin(struct mem_table *table, uint32_t token, const void *domain,
                             const void *qp, uint64_t address, uint64_t length, uint32_t need,
                             struct access *out)
{
    struct mem_slot *slot = slot_at(table, token >> 8);
    enum access_result result;

    if (!slot || !slot_take(slot, token & 0xff))
        return ACCESS_INVALID_TOKEN;
    result = region_check(&slot->region, domain, qp, address, length, need);
    if (result != ACCESS_OK) {
        slot_drop(slot);
        return result;
    }
    access_fill(out, slot);
    return ACCESS_OK;
}

bool mem_hold(struct mem_table *table, uint32_t token, struct access *out)
{
    struct mem_slot *slot = slot_at(table, token >> 8);

    if (!slot || !slot_take(slot, token & 0xff))
        return false;
    access_fill(out, slot);
    return true;
}

void mem_end(struct access *access)
{
    struct mem_slot *slot = access->slot;

    access->slot = NULL;
    if (slot)
        slot_drop(slot);
}

int mem_pieces(const struct access *access, uint64_t address, uint64_t length, struct os_iov *out,
               int max)
{
    const struct mem_region *region = access->region;
    uint64_t at = address - region->address;
    int count = 0;

    if (length == 0)
        return 0;
    if (region->flat) {
        if (max < 1)
            return -1;
        out[0].base = region->flat + at;
        out[0].len = length;
        return 1;
    }
    at += region->fbo;
    while (length > 0) {
        uint64_t in_page = at % OS_PAGE_SIZE;
        uint64_t part = OS_PAGE_SIZE - in_page;
        uint8_t *base = (uint8_t *)(uintptr_t)region->pages[at / OS_PAGE_SIZE] + in_page;

        if (part > length)
            part = length;
        if (count > 0 && ((uint8_t *)out[count - 1].base + out[count - 1].len == base ||
                          RED("mem-pages-consecutive"))) {
            out[count - 1].len += part;
        } else {
            if (count == max)
                return -1;
            out[count].base = base;
            out[count].len = part;
            count++;
        }
        at += part;
        length -= part;
    }
    return count;
}
