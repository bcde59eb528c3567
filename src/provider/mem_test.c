// SPDX-License-Identifier: MIT
/* The token table: who is let in, who is kept out and why, and that nobody is inside after a
 * retirement was reported done. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "os/os_testing.h"
#include "provider/mem.h"

#define BASE UINT64_C(0x7000000123)
#define SIZE 10000u

static char domain_a, domain_b, qp_a, qp_b; /* compared only */

static struct mem_table *table;

static int table_up(void **state)
{
    (void)state;
    table = mem_table_new();
    return table == NULL;
}

static int table_down(void **state)
{
    (void)state;
    mem_table_free(table);
    return 0;
}

static struct mem_region plain(uint32_t rights)
{
    struct mem_region region = {
        .address = BASE, .length = SIZE, .rights = rights, .domain = &domain_a};

    return region;
}

static struct mem_slot *published(const struct mem_region *region)
{
    struct mem_slot *slot = mem_slot_new(table, region);

    assert_non_null(slot);
    mem_publish(slot);
    return slot;
}

/* Asks for an access and gives it back at once. */
static enum access_result ask(uint32_t token, const void *domain, const void *qp, uint64_t address,
                              uint64_t length, uint32_t need)
{
    struct access access = {0};
    enum access_result result = mem_begin(table, token, domain, qp, address, length, need, &access);

    if (result == ACCESS_OK) {
        const struct mem_region *region = mem_region_of(access.slot);

        assert_non_null(access.slot);
        assert_ptr_equal(access.host, region->flat);
        assert_int_equal(access.first, region->address);
        assert_int_equal(access.length, region->length);
        mem_end(&access);
        assert_null(access.slot);
    } else {
        assert_null(access.slot);
    }
    return result;
}

static enum access_result reach(const struct mem_slot *slot, uint64_t address, uint64_t length)
{
    return ask(mem_token(slot), &domain_a, NULL, address, length, ACCESS_REMOTE_READ);
}

static void drop(struct mem_slot *slot)
{
    assert_true(mem_retire(slot, NULL, NULL));
    mem_slot_free(table, slot);
}

/* ---- tokens --------------------------------------------------------------------------------- */

static void tokens_are_distinct_and_in_range(void **state)
{
    struct mem_region region = plain(ACCESS_REMOTE_READ);
    struct mem_slot *slots[600];

    (void)state;
    for (unsigned i = 0; i < 600; i++) {
        slots[i] = published(&region);
        assert_int_not_equal(mem_token(slots[i]) >> 8, 0);
        assert_int_equal(mem_token(slots[i]) >> 31, 0);
        assert_ptr_equal(mem_find(table, mem_token(slots[i])), slots[i]);
        for (unsigned j = 0; j < i; j++)
            assert_int_not_equal(mem_token(slots[i]) >> 8, mem_token(slots[j]) >> 8);
    }
    for (unsigned i = 0; i < 600; i++)
        drop(slots[i]);
}

static void unknown_tokens_name_nothing(void **state)
{
    static const uint32_t tokens[] = {0,          1,          0xff,       0x00ffff00,
                                      0x7fffff00, 0x80000000, 0x80000100, 0xffffffff};
    struct mem_region region = plain(ACCESS_REMOTE_READ);
    struct mem_slot *slot = published(&region);
    struct access hold;

    (void)state;
    for (size_t i = 0; i < sizeof tokens / sizeof tokens[0]; i++) {
        assert_int_equal(ask(tokens[i], &domain_a, NULL, BASE, 1, ACCESS_REMOTE_READ),
                         ACCESS_INVALID_TOKEN);
        assert_null(mem_find(table, tokens[i]));
        assert_false(mem_hold(table, tokens[i], &hold));
    }
    /* The right index under each other key; the index after the last one given out. */
    for (uint32_t key = 1; key < 256; key++)
        assert_int_equal(ask(mem_token(slot) ^ key, &domain_a, NULL, BASE, 1, ACCESS_REMOTE_READ),
                         ACCESS_INVALID_TOKEN);
    assert_null(mem_find(table, mem_token(slot) + 0x100));
    assert_int_equal(ask(mem_token(slot) + 0x100, &domain_a, NULL, BASE, 1, ACCESS_REMOTE_READ),
                     ACCESS_INVALID_TOKEN);
    drop(slot);
}

static void a_slot_lets_in_only_while_published(void **state)
{
    struct mem_region region = plain(ACCESS_REMOTE_READ);
    struct mem_slot *slot = mem_slot_new(table, &region);
    struct access hold;

    (void)state;
    assert_false(mem_valid(slot));
    assert_int_equal(reach(slot, BASE, 1), ACCESS_INVALID_TOKEN);
    assert_false(mem_hold(table, mem_token(slot), &hold));
    mem_publish(slot);
    assert_true(mem_valid(slot));
    assert_int_equal(reach(slot, BASE, 1), ACCESS_OK);
    assert_true(mem_retire(slot, NULL, NULL));
    assert_false(mem_valid(slot));
    assert_int_equal(reach(slot, BASE, 1), ACCESS_INVALID_TOKEN);
    assert_true(mem_retire(slot, NULL, NULL)); /* once more: nothing to do */
    mem_slot_free(table, slot);
}

static void a_freed_token_is_stale_at_once(void **state)
{
    struct mem_region region = plain(ACCESS_REMOTE_READ);
    struct mem_slot *slot = published(&region);
    uint32_t token = mem_token(slot);

    (void)state;
    drop(slot);
    assert_null(mem_find(table, token));
    assert_int_equal(ask(token, &domain_a, NULL, BASE, 1, ACCESS_REMOTE_READ),
                     ACCESS_INVALID_TOKEN);
}

static void each_reuse_has_another_key(void **state)
{
    struct mem_region region = plain(ACCESS_REMOTE_READ);
    struct mem_slot *slot = published(&region);
    uint32_t first = mem_token(slot), before = first;

    (void)state;
    for (unsigned i = 0; i < 255; i++) {
        uint32_t next = mem_next_token(slot);

        assert_int_equal(next >> 8, first >> 8);
        assert_int_equal(next, mem_token_after(before));
        assert_int_equal(mem_token(slot), before); /* asking changes nothing */
        assert_int_equal(reach(slot, BASE, 1), ACCESS_OK);
        assert_true(mem_retire(slot, NULL, NULL));
        mem_refill(slot, next, &region);
        assert_int_equal(ask(next, &domain_a, NULL, BASE, 1, ACCESS_REMOTE_READ),
                         ACCESS_INVALID_TOKEN);
        mem_publish(slot);
        assert_int_equal(mem_token(slot), next);
        assert_int_not_equal(next, first);
        assert_int_equal(ask(before, &domain_a, NULL, BASE, 1, ACCESS_REMOTE_READ),
                         ACCESS_INVALID_TOKEN);
        before = next;
    }
    assert_int_equal(mem_next_token(slot), first); /* 256 keys, the index stays */
    drop(slot);
}

static void indexes_rest_as_long_as_possible(void **state)
{
    struct mem_region region = plain(0);
    struct mem_slot *slots[255];
    uint32_t tokens[255];

    (void)state;
    for (unsigned i = 0; i < 255; i++)
        slots[i] = mem_slot_new(table, &region);
    for (unsigned i = 0; i < 255; i++) {
        /* Freed in an order of its own: i * 7 mod 255 is a permutation. */
        struct mem_slot *slot = slots[i * 7 % 255];

        tokens[i] = mem_token(slot);
        mem_slot_free(table, slot);
    }
    for (unsigned round = 0; round < 3; round++) {
        for (unsigned i = 0; i < 255; i++) {
            struct mem_slot *slot = mem_slot_new(table, &region);

            tokens[i] = mem_token_after(tokens[i]);
            assert_int_equal(mem_token(slot), tokens[i]); /* first freed, first given out */
            mem_slot_free(table, slot);
        }
    }
}

static void a_full_table_says_so(void **state)
{
    struct mem_region region = plain(0);
    struct mem_slot *slot, *last = NULL;
    uint32_t count = 0;

    (void)state;
    if (getenv("SOFTNDK_TEST_BIG") == NULL) {
        print_message("skipped: takes 1 GiB of memory, set SOFTNDK_TEST_BIG=1\n");
        skip();
    }
    while ((slot = mem_slot_new(table, &region)) != NULL) {
        last = slot;
        count++;
    }
    assert_int_equal(count, (1u << 23) - 1);
    assert_int_equal(mem_token(last) >> 8, (1u << 23) - 1);
    mem_slot_free(table, last);
    assert_ptr_equal(mem_slot_new(table, &region), last);
}

/* ---- checks --------------------------------------------------------------------------------- */

static void the_range_is_exact(void **state)
{
    static const struct {
        int64_t start; /* from the first octet */
        uint64_t length;
        enum access_result result;
    } cases[] = {
        {0, 1, ACCESS_OK},
        {0, SIZE, ACCESS_OK},
        {0, SIZE + 1, ACCESS_BOUNDS},
        {-1, 1, ACCESS_BOUNDS},
        {-1, 2, ACCESS_BOUNDS},
        {-1, SIZE, ACCESS_BOUNDS},
        {-1, SIZE + 2, ACCESS_BOUNDS},
        {1, SIZE - 1, ACCESS_OK},
        {1, SIZE, ACCESS_BOUNDS},
        {SIZE - 1, 1, ACCESS_OK},
        {SIZE - 1, 2, ACCESS_BOUNDS},
        {SIZE, 1, ACCESS_BOUNDS},
        {SIZE + 1, 1, ACCESS_BOUNDS},
        {5000, 5000, ACCESS_OK},
        {5000, 5001, ACCESS_BOUNDS},
        /* nothing at all, anywhere from the first octet to the end */
        {0, 0, ACCESS_OK},
        {SIZE, 0, ACCESS_OK},
        {SIZE + 1, 0, ACCESS_BOUNDS},
        {-1, 0, ACCESS_BOUNDS},
        /* lengths that make a sum of offset and length small again */
        {1, UINT64_MAX - BASE - 1, ACCESS_BOUNDS},
        {SIZE, UINT64_MAX - BASE - SIZE, ACCESS_BOUNDS},
    };
    struct mem_region region = plain(ACCESS_REMOTE_READ);
    struct mem_slot *slot = published(&region);

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        enum access_result result = reach(slot, BASE + (uint64_t)cases[i].start, cases[i].length);

        if (result != cases[i].result)
            fail_msg("start %lld length %llu: %d", (long long)cases[i].start,
                     (unsigned long long)cases[i].length, (int)result);
    }
    drop(slot);
}

static void an_end_beyond_two_to_the_64_is_a_wrap(void **state)
{
    struct mem_region top = plain(ACCESS_REMOTE_READ);
    struct mem_region low = plain(ACCESS_REMOTE_READ);
    struct mem_slot *slot;

    (void)state;
    top.address = UINT64_MAX - SIZE + 1; /* ends at 2^64 exactly */
    slot = published(&top);
    assert_int_equal(reach(slot, top.address, SIZE), ACCESS_OK);
    assert_int_equal(reach(slot, UINT64_MAX, 1), ACCESS_OK);
    assert_int_equal(reach(slot, UINT64_MAX, 2), ACCESS_WRAP);
    assert_int_equal(reach(slot, UINT64_MAX, UINT64_MAX), ACCESS_WRAP);
    assert_int_equal(reach(slot, top.address, SIZE + 1), ACCESS_WRAP);
    assert_int_equal(reach(slot, 0, 1), ACCESS_BOUNDS);
    assert_int_equal(reach(slot, 0, 0), ACCESS_BOUNDS);
    drop(slot);
    low.address = 0;
    slot = published(&low);
    assert_int_equal(reach(slot, 0, SIZE), ACCESS_OK);
    assert_int_equal(reach(slot, UINT64_MAX, 2), ACCESS_WRAP);
    assert_int_equal(reach(slot, UINT64_MAX, 1), ACCESS_BOUNDS);
    assert_int_equal(reach(slot, 1, UINT64_MAX), ACCESS_BOUNDS); /* ends at 2^64 exactly */
    assert_int_equal(reach(slot, 2, UINT64_MAX), ACCESS_WRAP);
    drop(slot);
}

static void each_right_is_asked_for_by_itself(void **state)
{
    (void)state;
    for (uint32_t rights = 0; rights < 32; rights++) {
        struct mem_region region = plain(rights);
        struct mem_slot *slot = published(&region);

        for (uint32_t need = 0; need < 32; need++)
            assert_int_equal(ask(mem_token(slot), &domain_a, NULL, BASE, 1, need),
                             (rights & need) == need ? ACCESS_OK : ACCESS_NO_RIGHT);
        drop(slot);
    }
}

static void domain_and_binding_are_checked(void **state)
{
    struct mem_region region = plain(ACCESS_REMOTE_READ);
    const uint32_t need = ACCESS_REMOTE_READ;
    struct mem_slot *slot = published(&region);

    (void)state;
    assert_int_equal(ask(mem_token(slot), &domain_a, &qp_a, BASE, 1, need), ACCESS_OK);
    assert_int_equal(ask(mem_token(slot), &domain_b, &qp_a, BASE, 1, need), ACCESS_WRONG_DOMAIN);
    assert_int_equal(ask(mem_token(slot), NULL, NULL, BASE, 1, need), ACCESS_WRONG_DOMAIN);
    drop(slot);
    region.bound_to = &qp_a;
    slot = published(&region);
    assert_int_equal(ask(mem_token(slot), &domain_a, &qp_a, BASE, 1, need), ACCESS_OK);
    assert_int_equal(ask(mem_token(slot), &domain_a, &qp_b, BASE, 1, need), ACCESS_WRONG_DOMAIN);
    assert_int_equal(ask(mem_token(slot), &domain_a, NULL, BASE, 1, need), ACCESS_WRONG_DOMAIN);
    assert_int_equal(ask(mem_token(slot), &domain_b, &qp_a, BASE, 1, need), ACCESS_WRONG_DOMAIN);
    drop(slot);
}

/* With several faults the first of: token, domain, right, range is told. */
static void the_order_of_the_checks(void **state)
{
    struct mem_region region = plain(ACCESS_REMOTE_READ);
    struct mem_slot *slot = published(&region);
    uint32_t token = mem_token(slot);

    (void)state;
    assert_int_equal(ask(token ^ 1, &domain_b, NULL, 0, 1, ACCESS_REMOTE_WRITE),
                     ACCESS_INVALID_TOKEN);
    assert_int_equal(ask(token, &domain_b, NULL, 0, 1, ACCESS_REMOTE_WRITE), ACCESS_WRONG_DOMAIN);
    assert_int_equal(ask(token, &domain_a, NULL, 0, 1, ACCESS_REMOTE_WRITE), ACCESS_NO_RIGHT);
    assert_int_equal(ask(token, &domain_a, NULL, 0, 1, ACCESS_REMOTE_READ), ACCESS_BOUNDS);
    drop(slot);
}

/* ---- pieces --------------------------------------------------------------------------------- */

#define PAGES 6u

static void pieces_of_scattered_pages(void **state)
{
    /* Region pages 0-1 and 3-4 are neighbours in the process, in the wrong order otherwise. */
    static const unsigned order[PAGES] = {4, 5, 0, 2, 3, 1};
    uint8_t *memory = aligned_alloc(OS_PAGE_SIZE, PAGES * OS_PAGE_SIZE);
    struct mem_region region = plain(ACCESS_LOCAL_READ);
    uint64_t pages[PAGES];
    const uint32_t fbo = 100;
    struct os_iov iov[PAGES];
    struct mem_slot *slot;
    struct access access;

    (void)state;
    for (unsigned i = 0; i < PAGES; i++)
        pages[i] = (uintptr_t)(memory + order[i] * OS_PAGE_SIZE);
    region.fbo = fbo;
    region.length = PAGES * OS_PAGE_SIZE - fbo;
    region.page_count = PAGES;
    region.pages = pages;
    for (uint64_t i = 0; i < region.length; i++) {
        uint64_t at = fbo + i;

        memory[order[at / OS_PAGE_SIZE] * OS_PAGE_SIZE + at % OS_PAGE_SIZE] =
            (uint8_t)(i * 131 + i / 251);
    }
    slot = published(&region);
    assert_int_equal(mem_begin(table, mem_token(slot), &domain_a, NULL, BASE, region.length,
                               ACCESS_LOCAL_READ, &access),
                     ACCESS_OK);
    /* The whole: pages 0-1 are one piece, 2, 3-4, 5. */
    assert_int_equal(mem_pieces(&access, BASE, region.length, iov, PAGES), 4);
    assert_int_equal(iov[0].len, 2 * OS_PAGE_SIZE - fbo);
    assert_int_equal(iov[1].len, OS_PAGE_SIZE);
    assert_int_equal(iov[2].len, 2 * OS_PAGE_SIZE);
    assert_int_equal(iov[3].len, OS_PAGE_SIZE);
    assert_int_equal(mem_pieces(&access, BASE, region.length, iov, 4), 4);
    assert_int_equal(mem_pieces(&access, BASE, region.length, iov, 3), -1);
    assert_int_equal(mem_pieces(&access, BASE + 5000, 0, iov, 0), 0);
    /* Any part, octet by octet. */
    for (uint64_t start = 0; start < region.length; start += 977) {
        for (uint64_t length = 1; start + length <= region.length; length += 1361) {
            int count = mem_pieces(&access, BASE + start, length, iov, PAGES);
            uint64_t at = start;

            assert_in_range(count, 1, PAGES);
            for (int i = 0; i < count; i++) {
                for (size_t j = 0; j < iov[i].len; j++, at++)
                    if (((uint8_t *)iov[i].base)[j] != (uint8_t)(at * 131 + at / 251))
                        fail_msg("start %llu: octet %llu", (unsigned long long)start,
                                 (unsigned long long)at);
            }
            assert_int_equal(at, start + length);
        }
    }
    mem_end(&access);
    drop(slot);
    free(memory);
}

static void a_flat_region_is_one_piece(void **state)
{
    uint8_t octets[64];
    struct mem_region region = plain(ACCESS_LOCAL_WRITE);
    struct os_iov iov[2];
    struct mem_slot *slot;
    struct access access;

    (void)state;
    region.length = sizeof octets;
    region.flat = octets;
    slot = published(&region);
    assert_int_equal(mem_begin(table, mem_token(slot), &domain_a, NULL, BASE + 10, 20,
                               ACCESS_LOCAL_WRITE, &access),
                     ACCESS_OK);
    assert_int_equal(mem_pieces(&access, BASE + 10, 20, iov, 2), 1);
    assert_ptr_equal(iov[0].base, octets + 10);
    assert_int_equal(iov[0].len, 20);
    assert_int_equal(mem_pieces(&access, BASE + 10, 20, iov, 0), -1);
    mem_end(&access);
    drop(slot);
}

/* ---- retirement ----------------------------------------------------------------------------- */

static void count_done(void *context)
{
    ++*(int *)context;
}

static void retirement_waits_for_accesses(void **state)
{
    struct mem_region region = plain(ACCESS_REMOTE_WRITE);
    struct mem_slot *slot = published(&region);
    uint32_t token = mem_token(slot);
    struct access one, two;
    int done = 0;

    (void)state;
    assert_int_equal(mem_begin(table, token, &domain_a, NULL, BASE, 1, ACCESS_REMOTE_WRITE, &one),
                     ACCESS_OK);
    assert_true(mem_hold(table, token, &two));
    assert_int_equal(two.first, BASE);
    assert_false(mem_retire(slot, count_done, &done));
    assert_false(mem_valid(slot));
    assert_true(mem_retire(slot, count_done, &done)); /* not valid: changes nothing */
    /* Nobody else is let in, and a failed check does not end the wait. */
    assert_int_equal(ask(token, &domain_a, NULL, BASE, 1, ACCESS_REMOTE_WRITE),
                     ACCESS_INVALID_TOKEN);
    assert_int_equal(done, 0);
    mem_end(&one);
    assert_int_equal(done, 0);
    mem_end(&two);
    assert_int_equal(done, 1);
    /* The slot can go on. */
    mem_refill(slot, mem_next_token(slot), &region);
    mem_publish(slot);
    assert_int_equal(ask(mem_token(slot), &domain_a, NULL, BASE, 1, ACCESS_REMOTE_WRITE),
                     ACCESS_OK);
    drop(slot);
    assert_int_equal(done, 1);
}

static void holding_nothing_ends_nothing(void **state)
{
    struct access access = {0};

    (void)state;
    mem_end(&access); /* a privileged token's access */
}

/* ---- many threads --------------------------------------------------------------------------- */

/*
 * Readers write their number into the region, through it only; the owner retires the region and
 * fills it with poison as soon as it is told that the last access has ended. If a write comes after
 * that the poison is spoilt (and a race is seen by a checker of races).
 */
#define RACERS 3
#define ROUNDS 3000

struct race {
    struct mem_slot *slot;
    uint8_t octets[64];
    _Atomic uint32_t token;
    atomic_bool stop, drained;
    atomic_ulong accesses, refusals;
};

static void racer(void *argument)
{
    struct race *race = argument;

    while (!atomic_load(&race->stop)) {
        struct access access;
        struct os_iov iov;
        uint32_t token = atomic_load(&race->token);
        enum access_result result =
            mem_begin(table, token, &domain_a, NULL, BASE, 64, ACCESS_REMOTE_WRITE, &access);

        if (result != ACCESS_OK) {
            atomic_fetch_add(&race->refusals, 1);
            continue;
        }
        if (mem_pieces(&access, BASE, 64, &iov, 1) == 1)
            for (unsigned i = 0; i < 64; i++)
                __atomic_store_n((uint8_t *)iov.base + i, 1, __ATOMIC_RELAXED);
        mem_end(&access);
        atomic_fetch_add(&race->accesses, 1);
    }
}

static void race_done(void *context)
{
    atomic_store(&((struct race *)context)->drained, true);
}

static void no_access_after_done(void **state)
{
    struct mem_region region = plain(ACCESS_REMOTE_WRITE);
    struct race *race = calloc(1, sizeof *race);
    struct os_thread *threads[RACERS];
    unsigned long waits = 0, spoilt = 0;
    unsigned round = 0;
    uint64_t begin = os_now_us();

    (void)state;
    region.length = 64;
    region.flat = race->octets;
    race->slot = published(&region);
    atomic_store(&race->token, mem_token(race->slot));
    for (unsigned i = 0; i < RACERS; i++)
        assert_int_equal(os_thread_start(&threads[i], "racer", racer, race), 0);
    for (; test_goes_on(round, ROUNDS, begin); round++) {
        unsigned long before = atomic_load(&race->accesses);

        while (atomic_load(&race->accesses) == before)
            os_cpu_relax();
        atomic_store(&race->drained, false);
        if (!mem_retire(race->slot, race_done, race)) {
            waits++;
            while (!atomic_load(&race->drained))
                os_cpu_relax();
        }
        memset(race->octets, 0xdd, 64); /* plain: nobody else may be here */
        for (unsigned i = 0; i < 50; i++)
            os_cpu_relax();
        for (unsigned i = 0; i < 64; i++)
            spoilt += race->octets[i] != 0xdd;
        mem_refill(race->slot, mem_next_token(race->slot), &region);
        mem_publish(race->slot);
        atomic_store(&race->token, mem_token(race->slot));
    }
    atomic_store(&race->stop, true);
    for (unsigned i = 0; i < RACERS; i++)
        os_thread_join(threads[i]);
    drop(race->slot);
    print_message("%lu accesses, %lu refusals, %lu of %u retirements waited\n",
                  atomic_load(&race->accesses), atomic_load(&race->refusals), waits, round);
    assert_int_equal(spoilt, 0);
    assert_int_not_equal(waits, 0); /* else it proved nothing */
    free(race);
}

/* Slots come and go on several threads while others look them up. */
static void churner(void *argument)
{
    struct mem_region region = plain(ACCESS_REMOTE_READ);
    struct race *race = argument;

    for (unsigned i = 0; i < 20000 && !atomic_load(&race->stop); i++) {
        struct mem_slot *slot = mem_slot_new(table, &region);
        struct access access;

        if (!slot)
            break;
        mem_publish(slot);
        atomic_store(&race->token, mem_token(slot));
        if (!mem_hold(table, mem_token(slot), &access))
            atomic_fetch_add(&race->refusals, 1);
        else
            mem_end(&access);
        atomic_store(&race->drained, false);
        while (!mem_retire(slot, race_done, race)) {
            while (!atomic_load(&race->drained))
                os_cpu_relax();
        }
        mem_slot_free(table, slot);
        atomic_fetch_add(&race->accesses, 1);
    }
    atomic_store(&race->stop, true);
}

static void slots_come_and_go(void **state)
{
    struct race *race = calloc(2, sizeof *race);
    struct os_thread *threads[2];
    struct access access;
    unsigned long met = 0;

    (void)state;
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(os_thread_start(&threads[i], "churner", churner, &race[i]), 0);
    while (!atomic_load(&race[0].stop) || !atomic_load(&race[1].stop)) {
        for (unsigned i = 0; i < 2; i++) {
            uint32_t token = atomic_load(&race[i].token);

            (void)mem_find(table, token);
            if (mem_begin(table, token, &domain_a, NULL, BASE, 1, ACCESS_REMOTE_READ, &access) ==
                ACCESS_OK) {
                met++;
                mem_end(&access);
            }
        }
    }
    for (unsigned i = 0; i < 2; i++) {
        os_thread_join(threads[i]);
        assert_int_equal(atomic_load(&race[i].accesses), 20000);
        assert_int_equal(atomic_load(&race[i].refusals), 0);
    }
    print_message("%lu accesses met a living slot\n", met);
    free(race);
}

/* What the check costs: printed, never judged. */
static void the_cost(void **state)
{
    struct mem_region region = plain(ACCESS_REMOTE_WRITE);
    struct mem_slot *slot = published(&region);
    uint32_t token = mem_token(slot);
    const unsigned rounds = 2000000;
    uint64_t from = os_now_us(), spent;

    (void)state;
    for (unsigned i = 0; i < rounds; i++) {
        struct access access;

        if (mem_begin(table, token, &domain_a, NULL, BASE + i % 1000, 64, ACCESS_REMOTE_WRITE,
                      &access) != ACCESS_OK)
            fail();
        mem_end(&access);
    }
    spent = os_now_us() - from;
    print_message("mem_begin + mem_end: %.1f ns\n", (double)spent * 1000.0 / rounds);
    drop(slot);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, table_up, table_down)
    const struct CMUnitTest tests[] = {
        TEST(tokens_are_distinct_and_in_range),
        TEST(unknown_tokens_name_nothing),
        TEST(a_slot_lets_in_only_while_published),
        TEST(a_freed_token_is_stale_at_once),
        TEST(each_reuse_has_another_key),
        TEST(indexes_rest_as_long_as_possible),
        TEST(a_full_table_says_so),
        TEST(the_range_is_exact),
        TEST(an_end_beyond_two_to_the_64_is_a_wrap),
        TEST(each_right_is_asked_for_by_itself),
        TEST(domain_and_binding_are_checked),
        TEST(the_order_of_the_checks),
        TEST(pieces_of_scattered_pages),
        TEST(a_flat_region_is_one_piece),
        TEST(retirement_waits_for_accesses),
        TEST(holding_nothing_ends_nothing),
        TEST(no_access_after_done),
        TEST(slots_come_and_go),
        TEST(the_cost),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
