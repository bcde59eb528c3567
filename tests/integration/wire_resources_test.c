// SPDX-License-Identifier: MIT
/*
 * A foreign peer that costs the end something: it does not read what it is owed (M-97, M-99), or
 * reads memory that changes meanwhile (W-92). Names carry the row's number.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <time.h>

#include <cmocka.h>

#include "ends.h"
#include "peer.h"

#define QP   t.link.end.qp
#define CALL QP->Dispatch
#define MIB  (1u << 20)

static struct wire t;

static double cpu_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* Nothing can be done for half a second: nobody spins meanwhile. On a machine too loaded to let a
 * spinning thread run this passes; it never fails for want of speed. */
static void expect_idle(const char *row)
{
    double before = cpu_seconds();

    test_sleep_ms(500);
    if (cpu_seconds() - before > 0.25)
        test_fail("%s: %.2f s of processor time in half a second of waiting", row,
                  cpu_seconds() - before);
}

/* A peer whose receive buffer is small. */
static void open_narrow(const char *options, bool active)
{
    wire_bench(&t, options);
    t.link.peer.receive_room = 4096;
    link_open(&t.bench, &t.link, active);
}

/* ---- M-97: a shut window -------------------------------------------------------------------- */

#define PART 4096u

static void shut_window(bool active)
{
    unsigned posted = 0, got = 0;
    NTSTATUS status;
    NDK_SGE sge;

    open_narrow("tcp_buffer=16384", active);
    sge = memory_sge(&t.bench.sink, 0, PART);
    /* The queue is bounded: it takes so many, then says so. */
    while ((status = CALL->NdkSend(QP, (void *)(uintptr_t)(posted + 1), &sge, 1, 0)) ==
           STATUS_SUCCESS)
        if (++posted > 4 * END_DEPTH)
            test_fail("M-97: more than the queue holds");
    assert_int_equal(status, STATUS_NO_MORE_ENTRIES);
    assert_true(posted >= END_DEPTH);
    expect_idle("M-97");
    /* The other way is not shut. */
    wire_sync(&t, "M-97");
    for (unsigned i = 0; i < posted; i++) {
        const struct peer_fpdu *f;

        for (uint32_t at = 0; at < PART; at += f->payload_length) {
            f = peer_fpdu(&t.link.peer);
            assert_true(f->opcode == 3 && f->mo == at && f->msn == i + 1);
            assert_memory_equal(f->payload, t.bench.before + SINK_AT + at, f->payload_length);
        }
        for (NDK_RESULT_EX result; got <= i && queue_try(&t.link.end.initiator, &result, 1); got++)
            assert_true(result.Status == STATUS_SUCCESS &&
                        result.RequestContext == (void *)(uintptr_t)(got + 1));
    }
    while (got < posted)
        expect_result(&t.link.end.initiator, "M-97", ++got, STATUS_SUCCESS);
    link_works(&t.bench, &t.link, "M-97", 1);
    wire_close(&t);
}

static void M_97_the_peer_shuts_its_window(void **state)
{
    (void)state;
    shut_window(false);
    shut_window(true);
}

/* ---- M-99: Responses that nobody reads ------------------------------------------------------ */

static void unread_responses(bool active)
{
    struct memory large;

    open_narrow("tcp_buffer=16384", active);
    make_memory(t.bench.pd, MIB, NDK_MR_FLAG_ALLOW_REMOTE_READ, &large);
    fill(large.data, MIB, 3);
    for (unsigned i = 0; i < 8; i++) /* as many as were agreed */
        stream_read(&t.s, t.link.read_msn++, 0x2200 + i, 0, MIB, large.remote,
                    (uint64_t)(uintptr_t)large.data);
    wire_send(&t);
    /* Sends and Writes behind them are taken all the same. */
    stream_write(&t.s, t.bench.target.remote, target_to(&t.bench, 8), t.octets, 100);
    memcpy(t.bench.before + TARGET_AT + 8, t.octets, 100);
    wire_sync(&t, "M-99");
    bench_unchanged(&t.bench, "M-99");
    expect_idle("M-99");
    wire_sync(&t, "M-99");
    for (unsigned i = 0; i < 8; i++) {
        uint32_t at = 0;
        const struct peer_fpdu *f;

        do {
            f = peer_fpdu(&t.link.peer);
            assert_true(f->opcode == 2 && f->stag == 0x2200 + i && f->to == at);
            assert_memory_equal(f->payload, large.data + at, f->payload_length);
            at += f->payload_length;
        } while (!f->last);
        assert_int_equal(at, MIB);
    }
    link_works(&t.bench, &t.link, "M-99", 1);
    free_memory(&large);
    wire_close(&t);
}

static void M_99_the_peer_reads_no_responses(void **state)
{
    (void)state;
    unread_responses(false);
    unread_responses(true);
}

/* ---- W-92: a source that changes ------------------------------------------------------------ */

static atomic_bool changing;

/* Writes without a care who reads: that is the row. Sanitizers are not to look. */
__attribute__((no_sanitize("thread"))) static void *change(void *context)
{
    volatile uint8_t *octets = context;
    uint8_t value = 0x11;

    while (atomic_load(&changing)) {
        for (size_t i = PAGE; i < MIB - PAGE; i++)
            octets[i] = value;
        value ^= 0x33; /* 0x11, 0x22 */
    }
    return NULL;
}

/* The region stands between pages of other octets, which no Response may show. */
static void changing_source(bool active)
{
    uint8_t *octets = aligned_alloc(PAGE, MIB);
    struct memory source;
    pthread_t writer;

    wire_open(&t, NULL, active);
    memset(octets, 0x77, MIB);
    memset(octets + PAGE, 0x11, MIB - 2 * PAGE);
    bench_register(t.bench.pd, octets + PAGE, MIB - 2 * PAGE, READ_RIGHT, &source);
    atomic_store(&changing, true);
    assert_int_equal(pthread_create(&writer, NULL, change, octets), 0);
    for (unsigned round = 0; round < 20; round++) {
        const struct peer_fpdu *f; /* the peer judges each CRC */
        uint32_t at = 0;

        stream_read(&t.s, t.link.read_msn++, 0x2200, 0, MIB - 2 * PAGE, source.remote,
                    (uint64_t)(uintptr_t)(octets + PAGE));
        wire_send(&t);
        do {
            f = peer_fpdu(&t.link.peer);
            assert_true(f->opcode == 2 && f->to == at);
            for (uint32_t i = 0; i < f->payload_length; i++)
                if (f->payload[i] != 0x11 && f->payload[i] != 0x22)
                    test_fail("W-92: an octet 0x%02x at %u", f->payload[i], at + i);
            at += f->payload_length;
        } while (!f->last);
        assert_int_equal(at, MIB - 2 * PAGE);
    }
    atomic_store(&changing, false);
    pthread_join(writer, NULL);
    link_works(&t.bench, &t.link, "W-92", 1);
    bench_forget(&source);
    wire_close(&t);
    free(octets);
}

static void W_92_the_source_changes(void **state)
{
    (void)state;
    changing_source(false);
    changing_source(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(M_97_the_peer_shuts_its_window),
        cmocka_unit_test(M_99_the_peer_reads_no_responses),
        cmocka_unit_test(W_92_the_source_changes),
    };

    return cmocka_run_group_tests_name("wire_resources", tests, NULL, NULL);
}
