// SPDX-License-Identifier: MIT
/*
 * The endpoint table: one holder an address, references, the walk through a range of ports. The
 * table knows nothing of sockets, so the port numbers here are only numbers.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "provider/ports.h"

#define LOW 50000u

static struct os_addr address(const char *text, unsigned port)
{
    struct os_addr out;

    assert_int_equal(os_addr_parse(text, &out), 0);
    out.port = (uint16_t)port;
    return out;
}

static struct endpoint *take(const char *text, unsigned port)
{
    struct os_addr where = address(text, port);
    bool memory = true;
    struct endpoint *endpoint = endpoint_take(&where, &memory);

    assert_false(memory);
    if (endpoint)
        assert_true(os_addr_equal(endpoint_address(endpoint), &where));
    return endpoint;
}

static void an_address_has_one_holder(void **state)
{
    struct endpoint *first = take("127.0.0.1", LOW);

    (void)state;
    assert_non_null(first);
    assert_null(take("127.0.0.1", LOW));
    endpoint_drop(first);
    first = take("127.0.0.1", LOW);
    assert_non_null(first);
    endpoint_drop(first);
}

static void other_addresses_are_free(void **state)
{
    /* Another IP, another port, a port of the same bucket, another family. */
    struct endpoint *held[] = {take("127.0.0.1", LOW), take("127.0.0.2", LOW),
                               take("127.0.0.1", LOW + 1), take("127.0.0.1", LOW + 1024),
                               take("::1", LOW)};

    (void)state;
    for (size_t i = 0; i < sizeof held / sizeof held[0]; i++)
        assert_non_null(held[i]);
    assert_null(take("::1", LOW));
    /* From the middle of a chain, and its end. */
    endpoint_drop(held[1]);
    assert_null(take("127.0.0.1", LOW));
    assert_null(take("127.0.0.1", LOW + 1024));
    held[1] = take("127.0.0.2", LOW);
    assert_non_null(held[1]);
    for (size_t i = 0; i < sizeof held / sizeof held[0]; i++)
        endpoint_drop(held[i]);
}

static void the_last_reference_frees(void **state)
{
    struct endpoint *endpoint = take("127.0.0.1", LOW);

    (void)state;
    endpoint_ref(endpoint);
    endpoint_ref(endpoint);
    for (int i = 0; i < 3; i++) {
        assert_null(take("127.0.0.1", LOW));
        endpoint_drop(endpoint);
    }
    endpoint = take("127.0.0.1", LOW);
    assert_non_null(endpoint);
    endpoint_drop(endpoint);
    endpoint_drop(NULL);
}

/* ---- the walk ---- */

/* Walks low..low+count-1 to its end; seen[i]: how often port low + i came. */
static unsigned walk_all(unsigned count, const struct os_addr *avoid, unsigned *seen,
                         struct endpoint **kept, unsigned *first)
{
    struct os_addr where = address("127.0.0.1", 0);
    struct port_walk walk;
    struct endpoint *endpoint;
    unsigned found = 0;

    memset(seen, 0, count * sizeof *seen);
    port_walk_begin(&walk, LOW, LOW + count - 1);
    while ((endpoint = port_walk_next(&walk, &where, avoid)) != NULL) {
        unsigned port = endpoint_address(endpoint)->port;

        assert_in_range(port, LOW, LOW + count - 1);
        assert_true(os_addr_ip_equal(endpoint_address(endpoint), &where));
        if (found == 0)
            *first = port - LOW;
        seen[port - LOW]++;
        kept[found++] = endpoint;
    }
    assert_null(port_walk_next(&walk, &where, avoid)); /* it stays at its end */
    return found;
}

static void drop_all(struct endpoint **kept, unsigned count)
{
    while (count)
        endpoint_drop(kept[--count]);
}

static void a_walk_sees_the_whole_range_once(void **state)
{
    struct endpoint *kept[37];
    unsigned seen[37], first = 0, starts = 0;

    (void)state;
    for (unsigned turn = 0; turn < 50; turn++) {
        unsigned before = first;

        assert_int_equal(walk_all(37, NULL, seen, kept, &first), 37);
        for (unsigned i = 0; i < 37; i++)
            assert_int_equal(seen[i], 1);
        starts += turn > 0 && first != before;
        drop_all(kept, 37);
    }
    assert_true(starts > 0); /* a random start */
}

static void a_range_of_one_port(void **state)
{
    struct endpoint *kept[1];
    unsigned seen[1], first;

    (void)state;
    assert_int_equal(walk_all(1, NULL, seen, kept, &first), 1);
    assert_null(take("127.0.0.1", LOW));
    drop_all(kept, 1);
}

static void a_walk_passes_over_what_is_held(void **state)
{
    struct endpoint *held[2] = {take("127.0.0.1", LOW), take("127.0.0.1", LOW + 9)};
    struct endpoint *other = take("127.0.0.2", LOW + 4);
    struct endpoint *kept[10];
    unsigned seen[10], first;

    (void)state;
    assert_int_equal(walk_all(10, NULL, seen, kept, &first), 8);
    assert_int_equal(seen[0] + seen[9], 0);
    assert_int_equal(seen[4], 1);
    drop_all(kept, 8);
    drop_all(held, 2);
    endpoint_drop(other);
}

static void a_walk_avoids_the_destination(void **state)
{
    struct os_addr avoid = address("127.0.0.1", LOW + 3), elsewhere = address("127.0.0.2", LOW + 3);
    struct endpoint *kept[6];
    unsigned seen[6], first;

    (void)state;
    assert_int_equal(walk_all(6, &avoid, seen, kept, &first), 5);
    assert_int_equal(seen[3], 0);
    drop_all(kept, 5);
    /* The port alone does not matter: a destination with another IP. */
    assert_int_equal(walk_all(6, &elsewhere, seen, kept, &first), 6);
    drop_all(kept, 6);
}

/* ---- an address with its socket ---- */

/* A maker of descriptors: -EADDRINUSE for the ports below `from`, then `answer`. */
struct maker {
    unsigned from, calls;
    int answer;
};

static int make(void *context, const struct os_addr *where)
{
    struct maker *maker = context;

    maker->calls++;
    return where->port < maker->from ? -EADDRINUSE : maker->answer;
}

static void a_port_by_number_is_tried_once(void **state)
{
    struct os_addr where = address("127.0.0.1", LOW);
    struct maker maker = {.answer = 7};
    struct endpoint *endpoint, *second;

    (void)state;
    assert_int_equal(endpoint_open(&endpoint, &where, 1, 2, make, &maker), 7);
    assert_true(os_addr_equal(endpoint_address(endpoint), &where));
    assert_int_equal(endpoint_open(&second, &where, 1, 2, make, &maker), -EADDRINUSE);
    assert_null(second);
    assert_int_equal(maker.calls, 1); /* held here: the system is not asked */
    endpoint_drop(endpoint);
    maker.from = LOW + 1;
    assert_int_equal(endpoint_open(&endpoint, &where, 1, 2, make, &maker), -EADDRINUSE);
    assert_null(endpoint);
    maker = (struct maker){.answer = -EMFILE};
    assert_int_equal(endpoint_open(&endpoint, &where, 1, 2, make, &maker), -EMFILE);
    assert_null(endpoint);
    assert_int_equal(maker.calls, 1);
    endpoint = take("127.0.0.1", LOW); /* nothing is left behind */
    assert_non_null(endpoint);
    endpoint_drop(endpoint);
}

static void port_0_goes_on_to_a_free_one(void **state)
{
    struct os_addr where = address("127.0.0.1", 0);
    struct endpoint *held = take("127.0.0.1", LOW + 7), *endpoint;
    struct maker maker = {.from = LOW + 6, .answer = 9};

    (void)state;
    for (int i = 0; i < 20; i++) {
        assert_int_equal(endpoint_open(&endpoint, &where, LOW, LOW + 7, make, &maker), 9);
        assert_int_equal(endpoint_address(endpoint)->port, LOW + 6);
        endpoint_drop(endpoint);
    }
    maker.from = LOW + 8;
    maker.calls = 0;
    assert_int_equal(endpoint_open(&endpoint, &where, LOW, LOW + 7, make, &maker), -ERANGE);
    assert_null(endpoint);
    assert_int_equal(maker.calls, 7);
    /* Any other failure is the answer, at once. */
    maker = (struct maker){.answer = -EADDRNOTAVAIL};
    assert_int_equal(endpoint_open(&endpoint, &where, LOW, LOW + 7, make, &maker), -EADDRNOTAVAIL);
    assert_int_equal(maker.calls, 1);
    endpoint_drop(held);
}

/* ---- many threads ---- */

#define THREADS 4
#define RANGE   8u

static atomic_uint holders[RANGE], faults;

static void churn(void *unused)
{
    struct os_addr where;

    (void)unused;
    memset(&where, 0, sizeof where);
    os_addr_parse("127.0.0.1", &where);
    for (int turn = 0; turn < 3000; turn++) {
        struct port_walk walk;
        struct endpoint *endpoint;
        unsigned at;

        port_walk_begin(&walk, LOW, LOW + RANGE - 1);
        endpoint = port_walk_next(&walk, &where, NULL);
        if (!endpoint) { /* 8 ports, 4 threads, one each */
            atomic_fetch_add(&faults, 1);
            return;
        }
        at = endpoint_address(endpoint)->port - LOW;
        if (atomic_fetch_add(&holders[at], 1) != 0)
            atomic_fetch_add(&faults, 1);
        atomic_fetch_sub(&holders[at], 1);
        endpoint_drop(endpoint);
    }
}

static void threads_never_share_a_port(void **state)
{
    struct os_thread *threads[THREADS];

    (void)state;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(os_thread_start(&threads[i], "churn", churn, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        os_thread_join(threads[i]);
    assert_int_equal(atomic_load(&faults), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_address_has_one_holder),
        cmocka_unit_test(other_addresses_are_free),
        cmocka_unit_test(the_last_reference_frees),
        cmocka_unit_test(a_walk_sees_the_whole_range_once),
        cmocka_unit_test(a_range_of_one_port),
        cmocka_unit_test(a_walk_passes_over_what_is_held),
        cmocka_unit_test(a_walk_avoids_the_destination),
        cmocka_unit_test(a_port_by_number_is_tried_once),
        cmocka_unit_test(port_0_goes_on_to_a_free_one),
        cmocka_unit_test(threads_never_share_a_port),
    };

    return cmocka_run_group_tests_name("ports", tests, NULL, NULL);
}
