// SPDX-License-Identifier: MIT
/*
 * What a foreign peer sees of the profiles: how long the segments are, and 508 octets of private
 * data in an MPA frame.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <cmocka.h>

#include "ends.h"
#include "peer.h"

/* A Send of 4000 octets: loopback would take it in one segment. */
static uint32_t longest_segment(const char *options, unsigned *segments)
{
    static struct wire t;
    uint32_t longest = 0, octets = 0;
    NDK_SGE sge;

    wire_open(&t, options, true);
    sge = memory_sge(&t.bench.sink, 0, 4000);
    must(NULL, t.link.end.qp->Dispatch->NdkSend(t.link.end.qp, &t, &sge, 1, 0), "NdkSend");
    for (*segments = 0; octets < 4000; ++*segments) {
        const struct peer_fpdu *f = peer_fpdu(&t.link.peer);

        if (f->length > longest)
            longest = f->length;
        octets += f->payload_length;
        assert_int_equal(f->last, octets == 4000);
    }
    expect_result(&t.link.end.initiator, "send", (uintptr_t)&t, STATUS_SUCCESS);
    wire_close(&t);
    return longest;
}

static void segments(void **state)
{
    unsigned count;

    (void)state;
    assert_int_equal(longest_segment("profile=default", &count), 4000 + 18);
    assert_int_equal(count, 1);
    assert_int_equal(longest_segment("profile=iwarp-rnic", &count), 1454);
    assert_int_equal(count, 3);
}

static void private_data_of_508(void **state)
{
    static struct wire t;
    uint8_t frame[532];
    struct wait w;
    NTSTATUS status;

    (void)state;
    wire_bench(&t, "profile=iwarp-rnic,retry_v1=0");
    end_of_bench(&t.bench, &t.link.end);
    status =
        end_connects(&t.bench, &t.link.end, peer_listen(&t.link.peer), 64, 64, t.octets, 508, &w);
    peer_accept(&t.link.peer);
    assert_int_equal(peer_frame(&t.link.peer, frame), 532);
    assert_int_equal(frame[18] << 8 | frame[19], 512);
    assert_int_equal(frame[20] << 8 | frame[21], 0x8000 | 32); /* Reads as advertised */
    assert_int_equal(frame[22] << 8 | frame[23], 0xc000 | 32);
    assert_memory_equal(frame + 24, t.octets, 508);
    peer_close(&t.link.peer);
    assert_int_equal(wait_end(&w, status), STATUS_CONNECTION_REFUSED);
    wire_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(segments),
        cmocka_unit_test(private_data_of_508),
    };

    return cmocka_run_group_tests_name("profiles_wire", tests, NULL, NULL);
}
