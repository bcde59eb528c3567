// SPDX-License-Identifier: MIT
/*
 * Pool: blocks with a tag, and what a verifier looks for in them.
 *
 * A block is aligned to the next power of two of its length, up to a page; so it crosses no page
 * if it fits into one. Behind it stands a guard, looked at when it is freed. A freed block of up to
 * 64 KiB is filled and kept for a while; when it leaves, and when a run is reported, it must still
 * be what it was filled with. Under AddressSanitizer blocks have no guard and are freed at once,
 * since the sanitizer watches their ends and their reuse better; under ThreadSanitizer they are
 * freed at once as well, as a freed lock must be forgotten.
 *
 * The lock of the kept blocks is a leaf. Called by consumers, from any thread.
 */
#include "nt/pool.h"

#include <stdlib.h>
#include <string.h>

#include "base/red.h"
#include "nt/left.h"
#include "nt/nt.h"
#include "nt/ktimer.h"
#include "os/os.h"
#include "os/os_trace.h"
#include "os/sanitize.h"

enum {
    GUARD = 16, /* bytes behind a block */
    BYTE_GUARD = 0xfd,
    BYTE_NEW = 0xc5, /* of a block that is not to be zero */
    BYTE_FREED = 0xdd,
    FILL_MAX = 65536, /* bytes; longer blocks are not filled, and not kept */
    KEPT_MAX = 512,   /* freed blocks */
    KEPT_BYTES = 4 << 20,
    ALIGN_MIN = 16,
    ALIGN_CACHE = 64,
};

/* nt_left.flags of a block */
enum { BLOCK_PAGED = 1, BLOCK_GUARDED = 2 };

static size_t alignment_of(size_t size, size_t least)
{
    size_t align = least;

    if (size >= PAGE_SIZE)
        return PAGE_SIZE;
    while (align < size)
        align *= 2;
    return RED("nt-pool-crosses-pages") ? ALIGN_MIN : align;
}

struct wish {
    const char *call;
    const void *caller;
    size_t size;
    uint32_t tag;
    bool paged, zero, cache_aligned;
};

static void *block_new(const struct wish *w)
{
    bool guarded = !sanitize_address();
    unsigned flags = (w->paged ? BLOCK_PAGED : 0u) | (guarded ? BLOCK_GUARDED : 0u);
    size_t size = w->size ? w->size : 1;
    size_t align = alignment_of(size, w->cache_aligned ? ALIGN_CACHE : ALIGN_MIN);
    void *block;

    if (size > SIZE_MAX / 2 || posix_memalign(&block, align, size + (guarded ? GUARD : 0)) != 0)
        return NULL;
    if (!nt_left_add(NT_LEFT_POOL, block, w->size, w->tag, flags, w->caller)) {
        free(block);
        return NULL;
    }
    if (w->zero)
        memset(block, 0, size);
    else if (size <= FILL_MAX)
        memset(block, BYTE_NEW, size);
    if (guarded)
        memset((char *)block + w->size, BYTE_GUARD, GUARD);
    return block;
}

/* A tag as its four letters, for messages. */
struct tag_text {
    char text[5];
};
static struct tag_text tag_text(uint32_t tag)
{
    struct tag_text t;

    for (int i = 0; i < 4; i++) {
        t.text[i] = (char)(tag >> 8 * i);
        if (t.text[i] < ' ' || t.text[i] > '~')
            t.text[i] = '.';
    }
    t.text[4] = '\0';
    return t;
}

/* The findings that every way to allocate shares; false when the length or the tag is 0. */
static bool wish_checked(const struct wish *w)
{
    (void)nt_irql_at_most(w->paged ? APC_LEVEL : DISPATCH_LEVEL, w->call, w->caller);
    if (w->tag == 0)
        nt_finding_from(w->caller, "%s: the tag is 0", w->call);
    if (w->size == 0)
        nt_finding_from(w->caller, "%s: the length is 0, tag '%s'", w->call, tag_text(w->tag).text);
    return w->tag != 0 && w->size != 0;
}

/* ---- freed blocks that are kept -------------------------------------------------------------- */

struct freed {
    struct nt_left *record; /* of the block when it was one */
    const void *by;         /* who freed it */
};

static os_mutex kept_lock = OS_MUTEX_INITIALIZER;
static struct freed kept[KEPT_MAX]; /* a ring */
static unsigned kept_first, kept_count;
static size_t kept_bytes;

/* What is wrong with a freed block, if anything, told with the lock not held. */
static void freed_check(const struct freed *f)
{
    const unsigned char *at = f->record->address;
    char made[OS_SYMBOL_MAX], by[OS_SYMBOL_MAX];
    size_t i = 0;

    while (i < f->record->size && at[i] == BYTE_FREED)
        i++;
    if (i < f->record->size && !RED("nt-pool-freed-write-missed"))
        nt_finding("pool: written after it was freed: block %p '%s' of %zu bytes, at byte %zu; "
                   "made by %s, freed by %s",
                   f->record->address, tag_text(f->record->tag).text, f->record->size, i,
                   os_symbol(f->record->frames[0], made), os_symbol(f->by, by));
}

static void freed_end(struct freed *f)
{
    void *block = (void *)(uintptr_t)f->record->address;

    freed_check(f);
    free(block);
    nt_left_free(f->record);
}

/* Takes the oldest kept block out when there are more than may be; false when there are not. */
static bool kept_take(struct freed *out, unsigned blocks_max, size_t bytes_max)
{
    bool full;

    os_mutex_lock(&kept_lock);
    full = kept_count > blocks_max || (kept_count > 0 && kept_bytes > bytes_max);
    if (full) {
        *out = kept[kept_first];
        kept_first = (kept_first + 1) % KEPT_MAX;
        kept_count--;
        kept_bytes -= out->record->size;
    }
    os_mutex_unlock(&kept_lock);
    return full;
}

static void keep(struct nt_left *record, const void *by)
{
    struct freed f = {.record = record, .by = by}, out;
    bool stored = false;

    memset((void *)(uintptr_t)record->address, BYTE_FREED, record->size);
    while (!stored) {
        while (kept_take(&out, KEPT_MAX - 1, KEPT_BYTES - record->size))
            freed_end(&out);
        os_mutex_lock(&kept_lock);
        stored = kept_count < KEPT_MAX;
        if (stored) {
            kept[(kept_first + kept_count++) % KEPT_MAX] = f;
            kept_bytes += record->size;
        }
        os_mutex_unlock(&kept_lock);
    }
}

/* Who freed the block that began here, if it is still kept. */
static const void *freed_by(const void *address, uint32_t *tag)
{
    const void *by = NULL;

    os_mutex_lock(&kept_lock);
    for (unsigned i = 0; i < kept_count; i++) {
        struct freed *f = &kept[(kept_first + i) % KEPT_MAX];

        if (f->record->address == address) {
            by = f->by;
            *tag = f->record->tag;
        }
    }
    os_mutex_unlock(&kept_lock);
    return by;
}

/* ---- freeing -------------------------------------------------------------------------------- */

/* Where a guard was written to first, 1 for its first byte, and mends it, so that it is told once;
 * 0: nowhere, or there is no guard. */
static unsigned guard_broken(const struct nt_left *r)
{
    unsigned char *guard = (unsigned char *)(uintptr_t)r->address + r->size;

    if (r->kind != NT_LEFT_POOL || !(r->flags & BLOCK_GUARDED) || RED("nt-pool-guard-unread"))
        return 0;
    for (unsigned i = 0; i < GUARD; i++) {
        if (guard[i] != BYTE_GUARD) {
            memset(guard, BYTE_GUARD, GUARD);
            return i + 1;
        }
    }
    return 0;
}

static void guard_tell(const struct nt_left *r, unsigned at, const char *call, const void *caller)
{
    char made[OS_SYMBOL_MAX];

    nt_finding_from(caller,
                    "%s: written beyond its end: block %p '%s' of %zu bytes, at byte %zu; made by "
                    "%s",
                    call, r->address, tag_text(r->tag).text, r->size, r->size + at - 1,
                    os_symbol(r->frames[0], made));
}

static void no_block(const void *block, const char *call, const void *caller)
{
    char symbol[OS_SYMBOL_MAX];
    uint32_t tag = 0;
    const void *by = freed_by(block, &tag);

    if (by)
        nt_finding_from(caller, "%s: freed already: block %p '%s', by %s", call, block,
                        tag_text(tag).text, os_symbol(by, symbol));
    else
        nt_finding_from(caller, "%s: %p is no block of pool, or freed already", call, block);
}

void nt_pool_free(void *block, uint32_t tag, const char *call, const void *caller)
{
    struct nt_left *r = block ? nt_left_take(NT_LEFT_POOL, block) : NULL;
    unsigned at;

    if (!r) {
        (void)nt_irql_at_most(DISPATCH_LEVEL, call, caller);
        no_block(block, call, caller);
        return;
    }
    (void)nt_irql_at_most(r->flags & BLOCK_PAGED ? APC_LEVEL : DISPATCH_LEVEL, call, caller);
    if (tag && tag != r->tag)
        nt_finding_from(caller, "%s: block %p has another tag (have '%s', need '%s')", call, block,
                        tag_text(tag).text, tag_text(r->tag).text);
    at = guard_broken(r);
    if (at)
        guard_tell(r, at, call, caller);
    if (nt_timer_forget(block, r->size))
        nt_finding_from(caller, "%s: a timer in block %p '%s' is set", call, block,
                        tag_text(r->tag).text);
    if (r->size <= FILL_MAX && !sanitize_address() && !sanitize_thread()) {
        keep(r, caller);
        return;
    }
    free(block);
    nt_left_free(r);
}

void nt_pool_check(void)
{
    struct nt_left **list;
    struct freed oldest;
    size_t count;

    list = nt_left_list(guard_broken, &count);
    for (size_t i = 0; i < count; i++)
        guard_tell(list[i], list[i]->flags, "pool", NULL);
    nt_left_list_free(list, count);
    while (kept_take(&oldest, 0, 0))
        freed_end(&oldest);
}

/* ---- the calls ------------------------------------------------------------------------------ */

void *nt_pool_allocate(POOL_TYPE type, size_t size, uint32_t tag, const char *call,
                       const void *caller)
{
    unsigned bits = (unsigned)type;
    struct wish w = {
        .call = call,
        .caller = caller,
        .size = size,
        .tag = tag,
        .paged = bits & 1,
        .zero = (bits & POOL_ZERO_ALLOCATION) != 0,
        .cache_aligned = (bits & 4) != 0,
    };
    void *block;

    (void)wish_checked(&w);
    block = block_new(&w);
    if (!block && (bits & POOL_RAISE_IF_ALLOCATION_FAILURE))
        nt_finding_from(caller, "%s: no memory, where an exception is asked for (%zu bytes)", call,
                        size);
    return block;
}

PVOID ExAllocatePoolWithTag(POOL_TYPE PoolType, SIZE_T NumberOfBytes, ULONG Tag)
{
    return nt_pool_allocate(PoolType, NumberOfBytes, Tag, "ExAllocatePoolWithTag", NT_CALLER);
}

PVOID ExAllocatePoolWithTagPriority(POOL_TYPE PoolType, SIZE_T NumberOfBytes, ULONG Tag,
                                    EX_POOL_PRIORITY Priority)
{
    (void)Priority;
    return nt_pool_allocate(PoolType, NumberOfBytes, Tag, "ExAllocatePoolWithTagPriority",
                            NT_CALLER);
}

/* Whether the demands are known and name one kind of memory. */
static bool flags_fit(POOL_FLAGS flags)
{
    POOL_FLAGS kind = flags & (POOL_FLAG_NON_PAGED | POOL_FLAG_NON_PAGED_EXECUTE | POOL_FLAG_PAGED);
    POOL_FLAGS unknown =
        flags & 0xffffffff &
        ~(POOL_FLAGS)(POOL_FLAG_USE_QUOTA | POOL_FLAG_UNINITIALIZED | POOL_FLAG_SESSION |
                      POOL_FLAG_CACHE_ALIGNED | POOL_FLAG_RAISE_ON_FAILURE | POOL_FLAG_NON_PAGED |
                      POOL_FLAG_NON_PAGED_EXECUTE | POOL_FLAG_PAGED);

    return unknown == 0 && kind != 0 && (kind & (kind - 1)) == 0;
}

static void *allocate_flagged(POOL_FLAGS flags, size_t size, uint32_t tag, const char *call,
                              const void *caller)
{
    struct wish w = {
        .call = call,
        .caller = caller,
        .size = size,
        .tag = tag,
        .paged = (flags & POOL_FLAG_PAGED) != 0,
        .zero = !(flags & POOL_FLAG_UNINITIALIZED) && !RED("nt-pool2-not-zeroed"),
        .cache_aligned = (flags & POOL_FLAG_CACHE_ALIGNED) != 0,
    };
    bool good = wish_checked(&w);
    void *block;

    if (!flags_fit(flags))
        nt_finding_from(caller,
                        "%s: the flags do not fit (have 0x%llx, need one kind of memory and "
                        "no unknown demand)",
                        call, (unsigned long long)flags);
    if (!good || !flags_fit(flags))
        return NULL;
    block = block_new(&w);
    if (!block && (flags & POOL_FLAG_RAISE_ON_FAILURE))
        nt_finding_from(caller, "%s: no memory, where an exception is asked for (%zu bytes)", call,
                        size);
    return block;
}

PVOID ExAllocatePool2(POOL_FLAGS Flags, SIZE_T NumberOfBytes, ULONG Tag)
{
    return allocate_flagged(Flags, NumberOfBytes, Tag, "ExAllocatePool2", NT_CALLER);
}

PVOID ExAllocatePool3(POOL_FLAGS Flags, SIZE_T NumberOfBytes, ULONG Tag,
                      PCPOOL_EXTENDED_PARAMETER ExtendedParameters, ULONG ExtendedParametersCount)
{
    for (ULONG i = 0; i < ExtendedParametersCount; i++) {
        unsigned type = ExtendedParameters ? (unsigned)ExtendedParameters[i].Type : 0;

        if (type == PoolExtendedParameterPriority || type == PoolExtendedParameterNumaNode ||
            (ExtendedParameters && ExtendedParameters[i].Optional))
            continue;
        nt_finding_from(NT_CALLER, "ExAllocatePool3: parameter %u cannot be met (type %u)", i,
                        type);
        return NULL;
    }
    return allocate_flagged(Flags, NumberOfBytes, Tag, "ExAllocatePool3", NT_CALLER);
}

VOID ExFreePool(PVOID P)
{
    nt_pool_free(P, 0, "ExFreePool", NT_CALLER);
}

VOID ExFreePoolWithTag(PVOID P, ULONG Tag)
{
    nt_pool_free(P, Tag, "ExFreePoolWithTag", NT_CALLER);
}

VOID ExFreePool2(PVOID P, ULONG Tag, PCPOOL_EXTENDED_PARAMETER ExtendedParameters,
                 ULONG ExtendedParametersCount)
{
    (void)ExtendedParameters;
    if (ExtendedParametersCount)
        nt_finding_from(NT_CALLER, "ExFreePool2: no parameter is known (have %u, need 0)",
                        ExtendedParametersCount);
    nt_pool_free(P, Tag, "ExFreePool2", NT_CALLER);
}
