// SPDX-License-Identifier: MIT
/* See queue.h for the three parties and why a chunk that the head leaves is used by nobody. */
#include "conn/queue.h"

#include <assert.h>
#include <ntstatus.h>
#include <stdlib.h>
#include <string.h>

#include "base/red.h"

struct conn_chunk {
    struct conn_chunk *next; /* written by the poster before it publishes a request there */
    _Alignas(16) unsigned char slots[];
};

#define SINK_BATCH 32u

void conn_queue_init(struct conn_queue *queue, uint32_t depth, uint32_t max_sge,
                     uint32_t max_inline)
{
    size_t payload = max_sge * sizeof(struct conn_sge);

    if (payload < max_inline)
        payload = max_inline;
    if (payload < sizeof(struct conn_sge))
        payload = sizeof(struct conn_sge);
    memset(queue, 0, sizeof *queue);
    queue->live = CONN_QUEUE_LIVE;
    queue->depth = depth;
    queue->chunk_slots = depth == 0 ? 1 : depth < CONN_CHUNK_SLOTS ? depth : CONN_CHUNK_SLOTS;
    queue->slot_octets = (uint32_t)((offsetof(struct conn_wr, sge) + payload + 15) & ~(size_t)15);
    os_mutex_init(&queue->lock);
}

void conn_queue_destroy(struct conn_queue *queue)
{
    struct conn_chunk *chunk = queue->head.chunk ? queue->head.chunk : queue->tail.chunk;

    while (chunk) {
        struct conn_chunk *next = chunk->next;

        free(chunk);
        chunk = next;
    }
    free(atomic_load(&queue->spare));
    os_mutex_destroy(&queue->lock);
    /* Not left to the compiler, which drops what is written into memory that is freed next. */
    *(volatile uint32_t *)&queue->live = 0;
}

static struct conn_wr *slot_at(const struct conn_queue *queue, struct conn_cursor at)
{
    return (struct conn_wr *)(void *)(at.chunk->slots + (size_t)at.slot * queue->slot_octets);
}

/* Brings a cursor to the request it stands before; the request exists. */
static void cursor_settle(const struct conn_queue *queue, struct conn_cursor *cursor)
{
    if (cursor->slot == queue->chunk_slots) {
        cursor->chunk = cursor->chunk->next;
        cursor->slot = 0;
    }
}

static struct conn_chunk *chunk_alloc(const struct conn_queue *queue)
{
    return malloc(sizeof(struct conn_chunk) + (size_t)queue->chunk_slots * queue->slot_octets);
}

static struct conn_chunk *chunk_new(struct conn_queue *queue)
{
    struct conn_chunk *chunk = atomic_exchange(&queue->spare, NULL);

    if (!chunk)
        chunk = chunk_alloc(queue);
    if (chunk)
        chunk->next = NULL;
    return chunk;
}

/* The first chunk of a queue; nobody looks at it before posted is not 0. */
static void chunk_first(struct conn_queue *queue, struct conn_chunk *chunk)
{
    queue->take.chunk = queue->head.chunk = queue->tail.chunk = chunk;
    queue->tail.slot = 0;
}

/* Two do: while the tail stands in one, the head has left the other, or is about to leave it when
 * the request before is released. */
bool conn_queue_reserve(struct conn_queue *queue)
{
    struct conn_chunk *first = chunk_new(queue);

    if (!first)
        return false;
    chunk_first(queue, first);
    atomic_store(&queue->spare, chunk_alloc(queue));
    return atomic_load(&queue->spare) != NULL;
}

struct conn_wr *conn_queue_prepare(struct conn_queue *queue, NTSTATUS *status)
{
    uint32_t posted = atomic_load_explicit(&queue->posted, memory_order_relaxed);
    struct conn_wr *wr;

    if (posted - atomic_load(&queue->retired) >= queue->depth && !RED("queue_depth_ignored")) {
        *status = STATUS_NO_MORE_ENTRIES;
        return NULL;
    }
    if (!queue->tail.chunk || queue->tail.slot == queue->chunk_slots) {
        struct conn_chunk *chunk = chunk_new(queue);

        if (!chunk) {
            *status = STATUS_INSUFFICIENT_RESOURCES;
            return NULL;
        }
        if (queue->tail.chunk) {
            queue->tail.chunk->next = chunk;
            queue->tail.chunk = chunk;
            queue->tail.slot = 0;
        } else {
            chunk_first(queue, chunk);
        }
    }
    wr = slot_at(queue, queue->tail);
    atomic_store_explicit(&wr->finished, false, memory_order_relaxed);
    atomic_store_explicit(&wr->sent, false, memory_order_relaxed);
    wr->object = NULL;
    wr->remote_address = 0;
    wr->token = 0;
    wr->provider_code = 0;
    wr->length = 0;
    wr->flags = 0;
    wr->sge_count = 0;
    return wr;
}

void conn_queue_push(struct conn_queue *queue)
{
    queue->tail.slot++;
    atomic_store(&queue->posted, atomic_load_explicit(&queue->posted, memory_order_relaxed) + 1);
}

struct conn_wr *conn_queue_peek(struct conn_queue *queue)
{
    if (atomic_load(&queue->posted) == atomic_load_explicit(&queue->taken, memory_order_relaxed))
        return NULL;
    cursor_settle(queue, &queue->take);
    return slot_at(queue, queue->take);
}

void conn_queue_advance(struct conn_queue *queue)
{
    queue->take.slot++;
    atomic_store_explicit(&queue->taken,
                          atomic_load_explicit(&queue->taken, memory_order_relaxed) + 1,
                          memory_order_release);
}

void conn_queue_finish(struct conn_queue *queue, struct conn_wr *wr, NTSTATUS status,
                       uint32_t provider_code)
{
    (void)queue;
    wr->status = status;
    wr->provider_code = provider_code;
    atomic_store_explicit(&wr->finished, true, memory_order_release);
}

/* The retirer: frees the head's slot. Release is enough: the poster that finds the place again must
 * not write into it before it was read here, and nobody looks the other way round. */
static void head_pop(struct conn_queue *queue)
{
    queue->head.slot++;
    atomic_store_explicit(&queue->retired,
                          atomic_load_explicit(&queue->retired, memory_order_relaxed) + 1,
                          memory_order_release);
}

/* The retirer: the head request; moving into its chunk gives the old chunk back. */
static struct conn_wr *head_get(struct conn_queue *queue)
{
    if (queue->head.slot == queue->chunk_slots) {
        struct conn_chunk *old = queue->head.chunk;

        cursor_settle(queue, &queue->head);
        free(atomic_exchange(&queue->spare, old));
    }
    return slot_at(queue, queue->head);
}

static void completion_from(struct conn_completion *out, const struct conn_wr *wr)
{
    memset(out, 0, sizeof *out);
    out->context = wr->context;
    out->status = wr->status;
    out->provider_code = wr->provider_code;
    out->op = wr->op;
}

/* With the lock held. Not beyond what was taken: the take cursor may still stand at the end of the
 * chunk that the head would leave. */
static void retire_locked(struct conn_queue *queue, conn_queue_sink *sink, void *owner)
{
    struct conn_completion list[SINK_BATCH];
    unsigned count = 0;

    while (atomic_load(&queue->retired) !=
           (RED("queue_head_passes_take")
                ? atomic_load(&queue->posted)
                : atomic_load_explicit(&queue->taken, memory_order_acquire))) {
        struct conn_wr *wr = head_get(queue);

        if (!atomic_load_explicit(&wr->finished, memory_order_acquire) &&
            !RED("queue_unfinished_retired"))
            break;
        if (!(wr->flags & CONN_WR_SILENT) || RED("queue-tells-silent-success") ||
            (!NT_SUCCESS(wr->status) && !RED("silent_failure_suppressed")))
            completion_from(&list[count++], wr);
        head_pop(queue);
        if (count == SINK_BATCH) {
            sink(owner, list, count);
            count = 0;
        }
    }
    if (count)
        sink(owner, list, count);
}

void conn_queue_retire(struct conn_queue *queue, conn_queue_sink *sink, void *owner)
{
    os_mutex_lock(&queue->lock);
    retire_locked(queue, sink, owner);
    os_mutex_unlock(&queue->lock);
}

bool conn_queue_pass(struct conn_queue *queue, uint64_t position, conn_queue_sink *sink,
                     void *owner)
{
    struct conn_cursor at = {0};
    uint32_t count;
    bool waiting = false;

    os_mutex_lock(&queue->lock);
    count = atomic_load(&queue->posted) - atomic_load(&queue->retired);
    if (count) /* else the first post may be writing it */
        at = queue->head;
    for (; count; count--, at.slot++) {
        struct conn_wr *wr;

        cursor_settle(queue, &at);
        wr = slot_at(queue, at);
        if (wr->op == CONN_OP_READ || atomic_load_explicit(&wr->finished, memory_order_acquire))
            continue;
        /* What is behind a request that was not sent was not sent either. */
        if (!atomic_load_explicit(&wr->sent, memory_order_acquire))
            break;
        if (wr->position > position) {
            waiting = true;
            break;
        }
        conn_queue_finish(queue, wr, STATUS_SUCCESS, 0);
    }
    retire_locked(queue, sink, owner);
    os_mutex_unlock(&queue->lock);
    return waiting;
}

void conn_queue_flush(struct conn_queue *queue, NTSTATUS first_status, uint32_t provider_code,
                      void (*on_drop)(void *owner, struct conn_wr *wr), conn_queue_sink *sink,
                      void *owner)
{
    struct conn_wr *wr;
    struct conn_cursor at = {NULL, 0};
    uint32_t count;

    assert(queue->live == CONN_QUEUE_LIVE);
    /* Requests that were not taken yet: take them all. */
    while ((wr = conn_queue_peek(queue)) != NULL) {
        if (on_drop)
            on_drop(owner, wr);
        conn_queue_advance(queue);
    }
    os_mutex_lock(&queue->lock);
    count =
        atomic_load_explicit(&queue->taken, memory_order_relaxed) - atomic_load(&queue->retired);
    if (count) /* else there may be no chunk yet, and a poster that makes the first one */
        at = queue->head;
    while (count--) {
        cursor_settle(queue, &at);
        wr = slot_at(queue, at);
        if (!atomic_load_explicit(&wr->finished, memory_order_acquire)) {
            conn_queue_finish(queue, wr, first_status, provider_code);
            first_status = STATUS_CANCELLED;
        }
        at.slot++;
    }
    retire_locked(queue, sink, owner);
    os_mutex_unlock(&queue->lock);
}

void conn_queue_release_head(struct conn_queue *queue)
{
    head_get(queue);
    head_pop(queue);
}
