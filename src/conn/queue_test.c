// SPDX-License-Identifier: MIT
/*
 * The work queue: depth, order, recycling of chunks, silent requests, flush; then the three parties
 * at once, for the thread sanitizer.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include <ntstatus.h>

#include "conn/queue.h"

/* ---- a sink that keeps what it gets ---- */

#define SEEN_MAX 256

struct seen {
    struct conn_completion list[SEEN_MAX];
    unsigned count;
    uintptr_t dropped[SEEN_MAX];
    unsigned drops;
};

static void sink(void *owner, const struct conn_completion *list, unsigned count)
{
    struct seen *seen = owner;

    for (unsigned i = 0; i < count; i++) {
        assert_true(seen->count < SEEN_MAX);
        seen->list[seen->count++] = list[i];
    }
}

static void on_drop(void *owner, struct conn_wr *wr)
{
    struct seen *seen = owner;

    assert_true(seen->drops < SEEN_MAX);
    seen->dropped[seen->drops++] = (uintptr_t)wr->context;
}

static void expect(const struct seen *seen, unsigned at, uintptr_t context, NTSTATUS status)
{
    assert_true(at < seen->count);
    assert_int_equal((uintptr_t)seen->list[at].context, context);
    assert_int_equal(seen->list[at].status, status);
}

static struct conn_wr *push(struct conn_queue *queue, uintptr_t context, uint8_t flags)
{
    NTSTATUS status = STATUS_SUCCESS;
    struct conn_wr *wr = conn_queue_prepare(queue, &status);

    assert_non_null(wr);
    assert_false(atomic_load(&wr->finished));
    assert_int_equal(wr->flags | wr->sge_count | wr->length, 0);
    wr->context = (void *)context;
    wr->op = CONN_OP_SEND;
    wr->flags = flags;
    conn_queue_push(queue);
    return wr;
}

static struct conn_wr *take(struct conn_queue *queue, uintptr_t context)
{
    struct conn_wr *wr = conn_queue_peek(queue);

    assert_non_null(wr);
    assert_int_equal((uintptr_t)wr->context, context);
    assert_ptr_equal(conn_queue_peek(queue), wr); /* a look takes nothing */
    conn_queue_advance(queue);
    return wr;
}

/* ---- one thread ---- */

static void an_unused_queue(void **state)
{
    struct conn_queue queue;
    struct seen seen = {.count = 0};

    (void)state;
    conn_queue_init(&queue, 4, 1, 0);
    assert_null(conn_queue_peek(&queue));
    conn_queue_retire(&queue, sink, &seen);
    conn_queue_flush(&queue, STATUS_IO_TIMEOUT, 7, on_drop, sink, &seen);
    assert_int_equal(seen.count + seen.drops, 0);
    conn_queue_destroy(&queue);
}

static void depth_counts_what_was_not_retired(void **state)
{
    static const uint32_t depths[] = {1, 2, 15, 16, 17, 33};
    struct seen seen = {.count = 0};
    struct conn_queue queue;
    NTSTATUS status;

    (void)state;
    for (size_t i = 0; i < sizeof depths / sizeof depths[0]; i++) {
        struct conn_wr *first;

        conn_queue_init(&queue, depths[i], 1, 0);
        for (uintptr_t n = 0; n < depths[i]; n++)
            push(&queue, n, 0);
        assert_int_equal(conn_queue_outstanding(&queue), depths[i]);
        status = STATUS_SUCCESS;
        assert_null(conn_queue_prepare(&queue, &status));
        assert_int_equal(status, STATUS_NO_MORE_ENTRIES);
        first = take(&queue, 0);
        conn_queue_finish(&queue, first, STATUS_SUCCESS, 0);
        assert_null(conn_queue_prepare(&queue, &status)); /* finished, not retired */
        seen.count = 0;
        conn_queue_retire(&queue, sink, &seen);
        assert_int_equal(seen.count, 1);
        assert_non_null(conn_queue_prepare(&queue, &status)); /* prepared, never pushed */
        conn_queue_destroy(&queue);
    }
    conn_queue_init(&queue, 0, 1, 0);
    assert_null(conn_queue_prepare(&queue, &status));
    assert_int_equal(status, STATUS_NO_MORE_ENTRIES);
    conn_queue_destroy(&queue);
}

static void completions_leave_in_posting_order(void **state)
{
    struct conn_queue queue;
    struct conn_wr *wr[40];
    struct seen seen = {.count = 0};

    (void)state;
    conn_queue_init(&queue, 64, 2, 0);
    for (uintptr_t n = 0; n < 40; n++)
        push(&queue, n, 0);
    for (uintptr_t n = 0; n < 40; n++)
        wr[n] = take(&queue, n);
    assert_null(conn_queue_peek(&queue));
    for (unsigned n = 39; n > 0; n--) {
        conn_queue_finish(&queue, wr[n], STATUS_SUCCESS, 0);
        conn_queue_retire(&queue, sink, &seen);
        assert_int_equal(seen.count, 0);
    }
    conn_queue_finish(&queue, wr[0], STATUS_IO_TIMEOUT, 0x1234);
    conn_queue_retire(&queue, sink, &seen);
    assert_int_equal(seen.count, 40);
    expect(&seen, 0, 0, STATUS_IO_TIMEOUT);
    assert_int_equal(seen.list[0].provider_code, 0x1234);
    for (unsigned n = 1; n < 40; n++)
        expect(&seen, n, n, STATUS_SUCCESS);
    conn_queue_destroy(&queue);
}

static void silent_requests_show_only_failures(void **state)
{
    struct conn_queue queue;
    struct seen seen = {.count = 0};

    (void)state;
    conn_queue_init(&queue, 8, 1, 0);
    for (uintptr_t n = 0; n < 4; n++)
        push(&queue, n, n == 3 ? 0 : CONN_WR_SILENT);
    conn_queue_finish(&queue, take(&queue, 0), STATUS_SUCCESS, 0);
    conn_queue_finish(&queue, take(&queue, 1), STATUS_ACCESS_VIOLATION, 0);
    conn_queue_finish(&queue, take(&queue, 2), STATUS_SUCCESS, 0);
    conn_queue_finish(&queue, take(&queue, 3), STATUS_SUCCESS, 0);
    conn_queue_retire(&queue, sink, &seen);
    assert_int_equal(seen.count, 2);
    expect(&seen, 0, 1, STATUS_ACCESS_VIOLATION);
    expect(&seen, 1, 3, STATUS_SUCCESS);
    assert_int_equal(conn_queue_outstanding(&queue), 0);
    /* A flushed silent request is a failure. */
    push(&queue, 4, CONN_WR_SILENT);
    conn_queue_flush(&queue, STATUS_CANCELLED, 0, NULL, sink, &seen);
    assert_int_equal(seen.count, 3);
    expect(&seen, 2, 4, STATUS_CANCELLED);
    conn_queue_destroy(&queue);
}

/* Six taken (the second and fourth finished), four not: across the border of two chunks. */
static void flush_keeps_order_and_statuses(void **state)
{
    struct conn_queue queue;
    struct seen seen = {.count = 0};
    struct conn_wr *wr[6];

    (void)state;
    conn_queue_init(&queue, 64, 1, 0);
    for (uintptr_t n = 0; n < 12; n++) {
        push(&queue, 100 + n, 0);
        conn_queue_finish(&queue, take(&queue, 100 + n), STATUS_SUCCESS, 0);
    }
    conn_queue_retire(&queue, sink, &seen);
    assert_int_equal(seen.count, 12);
    seen.count = 0;
    for (uintptr_t n = 0; n < 10; n++)
        push(&queue, n, 0);
    for (uintptr_t n = 0; n < 6; n++)
        wr[n] = take(&queue, n);
    conn_queue_finish(&queue, wr[1], STATUS_SUCCESS, 0);
    conn_queue_finish(&queue, wr[3], STATUS_ACCESS_VIOLATION, 5);
    conn_queue_flush(&queue, STATUS_IO_TIMEOUT, 9, on_drop, sink, &seen);
    assert_int_equal(seen.count, 10);
    assert_int_equal(seen.drops, 4);
    for (unsigned n = 0; n < 10; n++)
        expect(&seen, n, n,
               n == 0   ? STATUS_IO_TIMEOUT
               : n == 1 ? STATUS_SUCCESS
               : n == 3 ? STATUS_ACCESS_VIOLATION
                        : STATUS_CANCELLED);
    assert_int_equal(seen.list[0].provider_code, 9);
    assert_int_equal(seen.list[3].provider_code, 5);
    for (unsigned n = 0; n < 4; n++)
        assert_int_equal(seen.dropped[n], 6 + n);
    /* Nothing is left, and the queue goes on. */
    conn_queue_flush(&queue, STATUS_IO_TIMEOUT, 0, on_drop, sink, &seen);
    assert_int_equal(seen.count, 10);
    push(&queue, 77, 0);
    conn_queue_flush(&queue, STATUS_IO_TIMEOUT, 0, NULL, sink, &seen);
    expect(&seen, 10, 77, STATUS_IO_TIMEOUT);
    conn_queue_destroy(&queue);
}

/* Memory follows what is outstanding: the same few slots come again and again. */
static void chunks_are_recycled(void **state)
{
    struct conn_queue queue;
    const void *known[4 * CONN_CHUNK_SLOTS];
    unsigned count = 0;
    struct seen seen;

    (void)state;
    conn_queue_init(&queue, 4096, 3, 0);
    for (uintptr_t n = 0; n < 100 * CONN_CHUNK_SLOTS; n++) {
        struct conn_wr *wr = push(&queue, n, 0);
        unsigned i = 0;

        while (i < count && known[i] != wr)
            i++;
        if (i == count) {
            assert_true(count < sizeof known / sizeof known[0]);
            known[count++] = wr;
        }
        seen.count = seen.drops = 0;
        conn_queue_finish(&queue, take(&queue, n), STATUS_SUCCESS, 0);
        conn_queue_retire(&queue, sink, &seen);
        assert_int_equal(seen.count, 1);
    }
    assert_true(count <= 2 * CONN_CHUNK_SLOTS);
    conn_queue_destroy(&queue);
}

/* A shallow queue has small chunks, and with the two that were reserved it never wants a third. */
static void a_reserved_queue_has_what_it_needs(void **state)
{
    static const uint32_t depths[] = {1, 2, 7, CONN_CHUNK_SLOTS};

    (void)state;
    for (size_t i = 0; i < sizeof depths / sizeof depths[0]; i++) {
        const void *known[2 * CONN_CHUNK_SLOTS];
        uint32_t depth = depths[i], count = 0;
        struct conn_queue queue;
        struct seen seen;

        conn_queue_init(&queue, depth, 3, 0);
        assert_int_equal(queue.chunk_slots, depth);
        assert_true(conn_queue_reserve(&queue));
        assert_null(conn_queue_peek(&queue));
        for (uintptr_t n = 0; n < 200; n++) {
            struct conn_wr *wr;
            unsigned k = 0;

            assert_true(queue.tail.slot < depth || atomic_load(&queue.spare));
            wr = push(&queue, n, 0);
            while (k < count && known[k] != wr)
                k++;
            if (k == count) {
                assert_true(count < 2 * depth);
                known[count++] = wr;
            }
            if (n + 1 < depth) /* full from then on, but for the next one */
                continue;
            seen.count = 0;
            conn_queue_finish(&queue, take(&queue, n + 1 - depth), STATUS_SUCCESS, 0);
            conn_queue_retire(&queue, sink, &seen);
            assert_int_equal(seen.count, 1);
        }
        conn_queue_destroy(&queue);
    }
    for (unsigned used = 0; used < 2; used++) { /* nothing is left behind */
        struct conn_queue queue;

        conn_queue_init(&queue, 1, 1, 0);
        assert_true(conn_queue_reserve(&queue));
        if (used)
            push(&queue, 1, 0);
        conn_queue_destroy(&queue);
    }
}

/* The head stops where the taker stands: at the end of a chunk, with a request in the next one that
 * was posted but not taken, the old chunk is still the taker's. */
static void the_head_does_not_pass_the_taker(void **state)
{
    struct conn_queue queue;
    struct seen seen = {.count = 0};

    (void)state;
    conn_queue_init(&queue, 4096, 1, 0);
    for (uintptr_t turn = 0; turn < 6; turn++) {
        uintptr_t base = turn * CONN_CHUNK_SLOTS;

        for (uintptr_t n = turn ? 1 : 0; n < CONN_CHUNK_SLOTS; n++)
            push(&queue, base + n, 0);
        for (uintptr_t n = 0; n < CONN_CHUNK_SLOTS; n++)
            conn_queue_finish(&queue, take(&queue, base + n), STATUS_SUCCESS, 0);
        push(&queue, base + CONN_CHUNK_SLOTS, 0);
        conn_queue_retire(&queue, sink, &seen);
        assert_int_equal(seen.count, base + CONN_CHUNK_SLOTS);
    }
    conn_queue_destroy(&queue);
}

static void slots_hold_the_largest_request(void **state)
{
    struct conn_queue queue;

    (void)state;
    conn_queue_init(&queue, 64, 2, 500);
    for (uintptr_t n = 0; n < 40; n++)
        memset(push(&queue, n, CONN_WR_INLINE)->octets, (int)n, 500);
    for (uintptr_t n = 0; n < 40; n++) {
        struct conn_wr *wr = take(&queue, n);

        for (int i = 0; i < 500; i++)
            assert_int_equal(wr->octets[i], n);
    }
    conn_queue_destroy(&queue);
}

/* ---- many threads ---- */

#define TOTAL 60000u
#define DEPTH 100u

struct race {
    struct conn_queue queue;
    struct conn_wr *handed[TOTAL]; /* taker to retirers */
    atomic_uint taken, claimed, expected, faults;
};

static struct race race;

static void poster(void *unused)
{
    uint64_t end = os_now_us() + 60000000;

    (void)unused;
    for (uintptr_t n = 0; n < TOTAL;) {
        NTSTATUS status;
        struct conn_wr *wr = conn_queue_prepare(&race.queue, &status);

        if (!wr) {
            if (status != STATUS_NO_MORE_ENTRIES || os_now_us() > end) {
                atomic_fetch_add(&race.faults, 1);
                return;
            }
            os_sleep_us(1);
            continue;
        }
        wr->context = (void *)n;
        wr->op = CONN_OP_SEND;
        wr->length = (uint32_t)n * 3;
        conn_queue_push(&race.queue);
        n++;
    }
}

static void taker(void *unused)
{
    (void)unused;
    for (uintptr_t n = 0; n < TOTAL && !atomic_load(&race.faults);) {
        struct conn_wr *wr = conn_queue_peek(&race.queue);

        if (!wr) {
            os_sleep_us(1);
            continue;
        }
        if (wr->context != (void *)n || wr->length != (uint32_t)n * 3)
            atomic_fetch_add(&race.faults, 1);
        race.handed[n++] = wr;
        conn_queue_advance(&race.queue);
        atomic_store(&race.taken, (unsigned)n);
    }
}

static void race_sink(void *owner, const struct conn_completion *list, unsigned count)
{
    (void)owner;
    for (unsigned i = 0; i < count; i++)
        if ((uintptr_t)list[i].context != atomic_fetch_add(&race.expected, 1))
            atomic_fetch_add(&race.faults, 1);
}

/* Two of them claim requests in small groups and finish each group backwards. */
static void retirer(void *unused)
{
    (void)unused;
    while (!atomic_load(&race.faults)) {
        unsigned from = atomic_fetch_add(&race.claimed, 4), to = from + 4;

        if (from >= TOTAL)
            return;
        while (atomic_load(&race.taken) < to && !atomic_load(&race.faults))
            os_sleep_us(1);
        if (atomic_load(&race.taken) < to)
            return;
        for (unsigned n = to; n > from; n--)
            conn_queue_finish(&race.queue, race.handed[n - 1], STATUS_SUCCESS, 0);
        conn_queue_retire(&race.queue, race_sink, NULL);
    }
}

static void three_parties_at_once(void **state)
{
    void (*const parties[])(void *) = {poster, taker, retirer, retirer};
    struct os_thread *threads[4];

    (void)state;
    memset(&race, 0, sizeof race);
    conn_queue_init(&race.queue, DEPTH, 1, 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(os_thread_start(&threads[i], "party", parties[i], NULL), 0);
    for (int i = 0; i < 4; i++)
        os_thread_join(threads[i]);
    assert_int_equal(atomic_load(&race.faults), 0);
    assert_int_equal(atomic_load(&race.expected), TOTAL);
    assert_int_equal(conn_queue_outstanding(&race.queue), 0);
    conn_queue_destroy(&race.queue);
}

/* A receive queue: the taker retires, without the lock. */
static void receiver(void *unused)
{
    (void)unused;
    for (uintptr_t n = 0; n < TOTAL && !atomic_load(&race.faults);) {
        struct conn_wr *wr = conn_queue_peek(&race.queue);

        if (!wr) {
            os_sleep_us(1);
            continue;
        }
        if (wr->context != (void *)n++)
            atomic_fetch_add(&race.faults, 1);
        conn_queue_advance(&race.queue);
        conn_queue_release_head(&race.queue);
    }
}

static void receives_of_two_threads(void **state)
{
    struct os_thread *threads[2];

    (void)state;
    memset(&race, 0, sizeof race);
    conn_queue_init(&race.queue, 20, 1, 0);
    assert_int_equal(os_thread_start(&threads[0], "poster", poster, NULL), 0);
    assert_int_equal(os_thread_start(&threads[1], "receiver", receiver, NULL), 0);
    os_thread_join(threads[0]);
    os_thread_join(threads[1]);
    assert_int_equal(atomic_load(&race.faults), 0);
    assert_int_equal(conn_queue_outstanding(&race.queue), 0);
    conn_queue_destroy(&race.queue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_unused_queue),
        cmocka_unit_test(depth_counts_what_was_not_retired),
        cmocka_unit_test(completions_leave_in_posting_order),
        cmocka_unit_test(silent_requests_show_only_failures),
        cmocka_unit_test(flush_keeps_order_and_statuses),
        cmocka_unit_test(chunks_are_recycled),
        cmocka_unit_test(a_reserved_queue_has_what_it_needs),
        cmocka_unit_test(the_head_does_not_pass_the_taker),
        cmocka_unit_test(slots_hold_the_largest_request),
        cmocka_unit_test(three_parties_at_once),
        cmocka_unit_test(receives_of_two_threads),
    };

    alarm(30); /* a list that was corrupted may have no end */
    return cmocka_run_group_tests_name("queue", tests, NULL, NULL);
}
