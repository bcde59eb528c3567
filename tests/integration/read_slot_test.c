// SPDX-License-Identifier: MIT
/*
 * The place of a Read that was answered is the peer's again as soon as TCP has the last octet: its
 * next Request may be here before the system call that sent the Response has returned. With an
 * inbound limit of 1, and another thread that transmits beside the one that receives, every Read is
 * served.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "../support/modes.h"
#include "../support/regions.h"

#include <cmocka.h>

#define READS   3000
#define WRITES  32
#define WRITTEN 2048u

struct poster {
    struct bed *bed;
    atomic_bool stop;
    atomic_uint wrong;
    UINT64 to;
    UINT32 token;
};

/* Empty Writes, one after the other, from the end that answers: mostly it is this thread that sends
 * the Responses. */
static void *post(void *argument)
{
    struct poster *p = argument;
    struct end *s = &p->bed->pair.server;

    while (!atomic_load(&p->stop) && atomic_load(&p->wrong) == 0) {
        NDK_RESULT_EX result;
        unsigned posted = 0;

        while (posted < WRITES &&
               post_write(s, &p->bed->server, WRITTEN, p->to, p->token, 0, p) == STATUS_SUCCESS)
            posted++;
        if (posted == 0)
            atomic_fetch_add(&p->wrong, 1);
        for (; posted; posted--)
            if (!queue_try(&s->initiator, &result, WAIT_S * 1000) ||
                result.Status != STATUS_SUCCESS)
                atomic_fetch_add(&p->wrong, 1);
    }
    return NULL;
}

static void the_next_request_finds_its_place(void **state)
{
    struct bed bed;
    struct poster poster = {.bed = &bed};
    struct end *c = &bed.pair.client;
    struct memory written;
    pthread_t thread;

    (void)state;
    bed_open(&bed, "max_inbound_reads=1,max_outbound_reads=1,p2p=0", 4096, ALL_RIGHTS);
    fill(bed.server.data, 4096, 3);
    make_memory(c->pd, WRITTEN, ALL_RIGHTS, &written);
    poster.to = (UINT64)(uintptr_t)written.data;
    poster.token = written.remote;
    assert_int_equal(pthread_create(&thread, NULL, post, &poster), 0);
    for (unsigned posted = 0, done = 0; done < READS; done++) {
        while (posted < READS && posted - done < 4)
            if (post_read(c, &bed.client, 4096, (UINT64)(uintptr_t)bed.server.data,
                          bed.server.remote, 0, c) == STATUS_SUCCESS)
                posted++;
            else
                test_fail("Read %u is refused", posted);
        assert_int_equal(queue_next(&c->initiator).Status, STATUS_SUCCESS);
    }
    assert_true(check(bed.client.data, 4096, 3));
    atomic_store(&poster.stop, true);
    pthread_join(thread, NULL);
    assert_int_equal(atomic_load(&poster.wrong), 0);
    assert_int_equal(atomic_load(&c->disconnects), 0);
    free_memory(&written);
    bed_close(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_next_request_finds_its_place)};

    return cmocka_run_group_tests_name("read_slot", tests, NULL, NULL);
}
