// SPDX-License-Identifier: MIT
/*
 * Memory that is lacking while a peer's message is handled (M-98): Terminate 0/0/00 of a
 * connection, and of no other; and the Terminate needs none.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include "ends.h"
#include "heap.h"
#include "peer.h"

/* Half an FPDU: the rest is waited for, and the half needs a place meanwhile. */
static void half_an_fpdu(struct row_run *r)
{
    stream_send(&r->stream, 1, r->octets, 200);
    r->stream.length -= 100;
    heap_arm(1);
}

static void M_98_no_memory(void **state)
{
    static const struct row row = {
        .name = "M-98 half an FPDU", .build = half_an_fpdu, .error = 0x0000, .source = 8};
    static struct bench bench;
    static struct link other;

    (void)state;
    for (int active = 0; active < 2; active++) {
        bench_open(&bench, NULL);
        link_init(&other);
        link_open(&bench, &other, false);
        row_play(&bench, &other, &row, active, false);
        assert_true(heap_fired());
        heap_disarm();
        link_close(&other);
        bench_close(&bench);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(M_98_no_memory)};

    return cmocka_run_group_tests_name("alloc_wire", tests, NULL, NULL);
}
