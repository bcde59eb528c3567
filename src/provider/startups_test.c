// SPDX-License-Identifier: MIT
/*
 * Who has startups at a listener: the bounds of all and of one peer, what counts as one peer, and
 * the counts against a plain model over many random steps.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/options.h"
#include "provider/connector.h"
#include "provider/startups.h"

#define CONNECTORS 64u
#define PEERS      9u

static struct connector connectors[CONNECTORS];
static struct startups startups;
static struct options options;

static enum startups_verdict add(unsigned i, const char *text)
{
    struct os_addr address;

    assert_int_equal(os_addr_parse(text, &address), 0);
    return startups_add(&startups, &connectors[i], &address, &options);
}

static void begin(uint32_t all, uint32_t per_peer)
{
    memset(connectors, 0, sizeof connectors);
    options_defaults(&options);
    options.max_startups = all;
    options.max_startups_per_peer = per_peer;
    startups_init(&startups);
}

/* Everybody goes; nothing is left. */
static void end(void)
{
    for (unsigned i = 0; i < CONNECTORS; i++)
        startups_remove(&startups, &connectors[i]);
    assert_int_equal(startups.count, 0);
    assert_null(startups.first);
    for (unsigned i = 0; i < STARTUPS_BUCKETS; i++)
        assert_null(startups.peers[i]);
}

static void m9_bounds(void **state)
{
    (void)state;
    begin(5, 2);
    assert_int_equal(add(0, "192.0.2.1:1000"), STARTUPS_TAKEN);
    assert_int_equal(add(1, "192.0.2.1:1001"), STARTUPS_TAKEN);
    assert_int_equal(add(2, "192.0.2.1:1002"), STARTUPS_PEER_FULL);
    assert_int_equal(add(2, "192.0.2.2:1000"), STARTUPS_TAKEN);
    assert_int_equal(add(3, "192.0.2.3:1000"), STARTUPS_TAKEN);
    startups_remove(&startups, &connectors[0]);
    startups_remove(&startups, &connectors[0]); /* is not there */
    assert_int_equal(add(0, "192.0.2.1:1003"), STARTUPS_TAKEN);
    assert_int_equal(add(4, "192.0.2.4:1000"), STARTUPS_TAKEN);
    assert_int_equal(add(5, "192.0.2.5:1000"), STARTUPS_FULL);
    end();
}

static void one_ipv6_network_is_one_peer(void **state)
{
    (void)state;
    begin(8, 2);
    assert_int_equal(add(0, "2001:db8:0:1::1"), STARTUPS_TAKEN);
    assert_int_equal(add(1, "2001:db8:0:1:ffff::2"), STARTUPS_TAKEN);
    assert_int_equal(add(2, "2001:db8:0:1::3"), STARTUPS_PEER_FULL);
    assert_int_equal(add(2, "2001:db8:0:2::1"), STARTUPS_TAKEN);
    assert_int_equal(add(3, "32.1.13.184"), STARTUPS_TAKEN); /* the same first octets, IPv4 */
    end();
}

static void half_by_default(void **state)
{
    (void)state;
    begin(5, 0);
    assert_int_equal(startups_per_peer(&options), 2);
    begin(1, 0);
    assert_int_equal(startups_per_peer(&options), 1);
    begin(4, 9);
    assert_int_equal(startups_per_peer(&options), 9);
}

static void counts_like_the_model(void **state)
{
    unsigned random = 7, has[PEERS] = {0}, of[CONNECTORS], all = 0;
    char text[40];

    (void)state;
    begin(24, 5);
    for (unsigned i = 0; i < CONNECTORS; i++)
        of[i] = PEERS;
    for (unsigned step = 0; step < 20000; step++) {
        unsigned i, peer;
        enum startups_verdict want;

        random = random * 1664525u + 1013904223u;
        i = (random >> 8) % CONNECTORS;
        peer = (random >> 20) % PEERS;
        if (of[i] < PEERS) {
            startups_remove(&startups, &connectors[i]);
            has[of[i]]--;
            all--;
            of[i] = PEERS;
            continue;
        }
        snprintf(text, sizeof text, peer % 2 ? "198.51.100.%u" : "2001:db8:%u::9", peer + 1);
        want = all == 24 ? STARTUPS_FULL : has[peer] == 5 ? STARTUPS_PEER_FULL : STARTUPS_TAKEN;
        assert_int_equal(add(i, text), want);
        if (want == STARTUPS_TAKEN) {
            has[peer]++;
            all++;
            of[i] = peer;
        }
        assert_int_equal(startups.count, all);
    }
    end();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(m9_bounds),
        cmocka_unit_test(one_ipv6_network_is_one_peer),
        cmocka_unit_test(half_by_default),
        cmocka_unit_test(counts_like_the_model),
    };

    return cmocka_run_group_tests_name("startups", tests, NULL, NULL);
}
