// SPDX-License-Identifier: MIT
/*
 * The rings of a completion queue: polling and NdkResizeCq. See cq.h for who touches what, and
 * docs/models/cq.pml.
 */
#include <ntstatus.h>
#include <stdlib.h>

#include "base/red.h"
#include "os/sanitize.h"
#include "provider/adapter.h"
#include "provider/cq_internal.h"

/* A ring that is this many times larger than needed goes, unless it is small. */
#define RING_WASTE 4u
#define RING_SMALL 256u

/* Of so many polls that find results one looks for more. */
#define CQ_LOOKS 16u

static uint32_t ring_size(ULONG depth)
{
    uint32_t size = 1;

    while (size < depth)
        size *= 2;
    return size;
}

struct cq_ring *cq_ring_new(ULONG depth)
{
    uint32_t size = ring_size(depth);
    struct cq_ring *ring = hooks_alloc(sizeof *ring + size * sizeof ring->entries[0]);

    if (ring)
        ring->mask = size - 1;
    return ring;
}

void cq_rings_free(struct cq *cq)
{
    struct cq_ring *ring = cq->read_ring;

    while (ring) {
        struct cq_ring *next = atomic_load_explicit(&ring->next, memory_order_relaxed);

        free(ring);
        ring = next;
    }
}

const struct cq_entry *cq_ring_seek(struct cq_ring **ring, uint32_t at)
{
    struct cq_ring *next;

    while ((next = atomic_load_explicit(&(*ring)->next, memory_order_relaxed)) != NULL &&
           (int32_t)(at - next->start) >= 0 && !RED("cq-resize-arm-looks-at-old"))
        *ring = next;
    return &(*ring)->entries[at & (*ring)->mask];
}

/* ---- polling -------------------------------------------------------------------------------- */

/*
 * Nothing is there. In a callback the first empty poll transmits what the callback posted; further
 * ones also move data, so that a callback that posts and polls for the result gets it. Elsewhere it
 * is the second in a row that moves data, if the CQ has a group, and each while the lease is here.
 */
static bool cq_empty_poll(struct cq *cq)
{
    if (!engine_in_item()) {
        if (!cq->group || engine_self() ||
            (cq->empty_polls++ == 0 && !engine_group_leased(cq->group)))
            return false;
        atomic_store_explicit(&cq->polled, true, memory_order_relaxed);
        return cq_progress_poll(cq);
    }
    if (engine_after_flush())
        return true;
    if (cq->empty_polls++ == 0)
        return false;
    engine_poll_nested();
    return true;
}

/* Results are there, from a consumer's thread that moves data by polling: it keeps the lease. One
 * that always finds some, say of the Sends it posts, still looks now and then: nobody else does. */
static void cq_busy_poll(struct cq *cq)
{
    if (++cq->busy_polls % CQ_LOOKS != 0 || RED("cq-busy-never-looks"))
        engine_group_polling(cq->group);
    else
        cq_progress_poll(cq);
}

static uint32_t cq_available(struct cq *cq, uint32_t *read)
{
    uint32_t queued;

    *read = atomic_load_explicit(&cq->read, memory_order_relaxed);
    queued = atomic_load_explicit(&cq->written, memory_order_acquire) - *read;
    sanitize_acquire(&cq->written); /* what the completions speak of was written before */
    return queued;
}

/* How many entries are to be returned, *read the first. */
static ULONG cq_take(struct cq *cq, ULONG room, uint32_t *read)
{
    uint32_t available = cq_available(cq, read);

    if (available == 0 && cq_empty_poll(cq))
        available = cq_available(cq, read);
    if (available) {
        cq->empty_polls = 0;
        if (atomic_load_explicit(&cq->polled, memory_order_relaxed) && !engine_in_item())
            cq_busy_poll(cq);
    }
    return available < room ? available : room;
}

/* Where the entry `at` is, and *run, at most as it was, how many follow each other there. All of
 * them were seen to be written, so a ring without next holds them all. */
static const struct cq_ring *cq_ring_at(struct cq *cq, uint32_t at, ULONG *run)
{
    struct cq_ring *ring = cq->read_ring, *next;

    while ((next = atomic_load_explicit(&ring->next, memory_order_acquire)) != NULL &&
           !RED("cq-resize-reader-stays")) {
        uint32_t left = next->start - at;

        if (left && !RED("cq-resize-loses")) {
            if (left < *run)
                *run = left;
            break;
        }
        cq->read_ring = next;
        atomic_fetch_sub_explicit(&cq->rings, 1, memory_order_relaxed);
        free(ring);
        ring = next;
    }
    return ring;
}

ULONG cq_get_results(NDK_CQ *ndk, NDK_RESULT results[], ULONG room)
{
    struct cq *cq = cq_from(ndk);
    uint32_t read;
    ULONG count = cq_take(cq, room, &read);

    for (ULONG i = 0; i < count;) {
        ULONG run = count - i;
        const struct cq_ring *ring = cq_ring_at(cq, read + i, &run);

        for (ULONG end = i + run; i < end; i++) {
            const struct cq_entry *entry = &ring->entries[(read + i) & ring->mask];

            results[i].Status = entry->status;
            results[i].BytesTransferred = entry->octets;
            results[i].QPContext = entry->qp_context;
            results[i].RequestContext = entry->context;
        }
    }
    atomic_store_explicit(&cq->read, read + count, memory_order_release);
    return count;
}

ULONG cq_get_results_ex(NDK_CQ *ndk, NDK_RESULT_EX results[], ULONG room)
{
    struct cq *cq = cq_from(ndk);
    uint32_t read;
    ULONG count = cq_take(cq, room, &read);

    for (ULONG i = 0; i < count;) {
        ULONG run = count - i;
        const struct cq_ring *ring = cq_ring_at(cq, read + i, &run);

        for (ULONG end = i + run; i < end; i++) {
            const struct cq_entry *entry = &ring->entries[(read + i) & ring->mask];

            results[i].Status = entry->status;
            results[i].BytesTransferred = entry->octets;
            results[i].QPContext = entry->qp_context;
            results[i].RequestContext = entry->context;
            results[i].Type = (NDK_OPERATION_TYPE)entry->type;
            results[i].ProviderErrorCode = cq->tells_codes ? entry->provider_code : 0;
            results[i].TypeSpecificCompletionOutput = entry->token;
        }
    }
    atomic_store_explicit(&cq->read, read + count, memory_order_release);
    return count;
}

/* ---- resize --------------------------------------------------------------------------------- */

/* Lock held. Memory goes back only when the poller has no ring to leave yet, so that the chain does
 * not grow with each turn of a CQ that is resized up and down. */
static bool ring_fits(const struct cq *cq, ULONG depth)
{
    uint32_t size = cq->ring->mask + 1;

    if (depth > size)
        return false;
    return size <= RING_SMALL || size / RING_WASTE < ring_size(depth) ||
           atomic_load_explicit(&cq->rings, memory_order_relaxed) > 1;
}

/* Lock held. */
static void ring_append(struct cq *cq, struct cq_ring *ring)
{
    ring->start = atomic_load_explicit(&cq->written, memory_order_relaxed);
    atomic_fetch_add_explicit(&cq->rings, 1, memory_order_relaxed);
    atomic_store_explicit(&cq->ring->next, ring, memory_order_release);
    cq->ring = ring; /* the poller may have freed the old one by now */
}

enum resize_end { RESIZE_DONE, RESIZE_NO_RING, RESIZE_TOO_SMALL, RESIZE_DEAD };

/* Lock held. Takes *ring if it needs one. queued: how many entries are there. */
static enum resize_end resize_locked(struct cq *cq, ULONG depth, struct cq_ring **ring,
                                     uint32_t *queued)
{
    *queued = atomic_load_explicit(&cq->written, memory_order_relaxed) -
              atomic_load_explicit(&cq->read, memory_order_acquire);
    if (!NT_SUCCESS(cq->failure) && !RED("cq-resize-revives"))
        return RESIZE_DEAD;
    if (depth < *queued && !RED("cq-resize-below-queued"))
        return RESIZE_TOO_SMALL;
    if (!ring_fits(cq, depth)) {
        if (!*ring)
            return RESIZE_NO_RING;
        ring_append(cq, *ring);
        *ring = NULL;
    }
    if (!RED("cq-resize-depth-kept"))
        cq->depth = depth;
    cq_moderation_apply(cq);
    return RESIZE_DONE;
}

static NTSTATUS resize(struct cq *cq, ULONG depth)
{
    struct object *object = &cq->object;
    struct cq_ring *ring = NULL;
    enum resize_end end;
    uint32_t queued;

    for (;;) {
        os_mutex_lock(&cq->lock);
        end = resize_locked(cq, depth, &ring, &queued);
        os_mutex_unlock(&cq->lock);
        if (end != RESIZE_NO_RING)
            break;
        ring = cq_ring_new(depth);
        if (!ring)
            return object_fail(object, CALL_RESIZE_CQ, STATUS_INSUFFICIENT_RESOURCES,
                               "no memory for %u entries", depth);
    }
    free(ring); /* another resize has made room meanwhile */
    if (end == RESIZE_DEAD)
        return object_fail(object, CALL_RESIZE_CQ, STATUS_INVALID_DEVICE_STATE,
                           "the CQ overran and is dead: close it, create another, rule NDKPI 4.4");
    if (end == RESIZE_TOO_SMALL)
        return object_fail(object, CALL_RESIZE_CQ, STATUS_INVALID_PARAMETER,
                           "CqDepth (have %u, need >= %u, the completions that are queued), rule "
                           "NDKPI 7.1",
                           depth, queued);
    return STATUS_SUCCESS;
}

NTSTATUS cq_resize(NDK_CQ *ndk, ULONG depth, NDK_FN_REQUEST_COMPLETION completion, PVOID context)
{
    struct cq *cq = cq_from(ndk);
    struct object *object = &cq->object;
    ULONG most = object->adapter->options.max_cq_depth;
    NTSTATUS status = object_injected(object, CALL_RESIZE_CQ);

    if (status != STATUS_SUCCESS)
        ;
    else if (!object->adapter->options.cq_resize && !RED("cq-resize-not-advertised"))
        status = object_fail(object, CALL_RESIZE_CQ, STATUS_NOT_SUPPORTED,
                             "resizing is not advertised (option cq_resize), rule NDKPI 7.1");
    else if (depth == 0 || depth > most)
        status = object_fail(object, CALL_RESIZE_CQ, STATUS_INVALID_PARAMETER,
                             "CqDepth (have %u, need 1..%u), rule NDKPI 7.1", depth, most);
    else
        status = resize(cq, depth);
    return request_answer(object, CALL_RESIZE_CQ, completion, context, status);
}
