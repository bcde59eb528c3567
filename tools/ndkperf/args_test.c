// SPDX-License-Identifier: MIT
/* args_test.c - command lines of ndkperf: what is taken, what follows from it, what is refused. */
#include "args.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "common/tool_args.h"

#define WORDS_MAX 64

/* args_read() of a command line in one text. */
static int parse(const char *line, struct perf_options *out)
{
    static char copy[512]; /* the options point into it */
    char *words[WORDS_MAX + 1] = {(char *)"ndkperf"}, *rest = copy, *word;
    int count = 1;

    assert_true(strlen(line) < sizeof(copy));
    strcpy(copy, line);
    while ((word = strsep(&rest, " ")) != NULL && count < WORDS_MAX)
        if (*word)
            words[count++] = word;
    words[count] = NULL;
    return args_read(count, words, out);
}

static void good(const char *line, struct perf_options *out)
{
    int result = parse(line, out);

    if (result != -1)
        fail_msg("'%s': %d", line, result);
}

/* "-s" is the server, and with a number the size. */
static void server_or_size(void **state)
{
    struct perf_options o;

    (void)state;
    good("-s", &o);
    assert_int_equal(o.role, PERF_SERVER);
    assert_int_equal(o.port, PERF_PORT);
    good("-s 127.0.0.1 -p 0 -1", &o);
    assert_int_equal(o.role, PERF_SERVER);
    assert_string_equal(o.address, "127.0.0.1");
    assert_int_equal(o.port, 0);
    assert_true(o.once);
    good("-c ::1 -s 4096", &o);
    assert_int_equal(o.role, PERF_CLIENT);
    assert_int_equal(o.size_count, 1);
    assert_int_equal(o.sizes[0], 4096);
    good("-c ::1 -s 64k --mode lat", &o);
    assert_int_equal(o.sizes[0], 65536);
    good("--self -S 1M", &o);
    assert_int_equal(o.role, PERF_SELF);
    assert_int_equal(o.sizes[0], 1u << 20);
}

static void defaults(void **state)
{
    struct perf_options o;

    (void)state;
    good("--self", &o);
    assert_int_equal(o.plan.op, PERF_SEND);
    assert_int_equal(o.plan.mode, PERF_BW);
    assert_int_equal(o.plan.wait, PERF_SPIN);
    assert_int_equal(o.sizes[0], 65536);
    assert_int_equal(o.plan.depth, 128);
    assert_string_equal(o.plan.adapter, "");
    good("--self --mode lat --op write", &o);
    assert_int_equal(o.sizes[0], 64);
    assert_int_equal(o.plan.depth, 1);
    good("--self --mode rate --op fastreg", &o);
    assert_int_equal(o.plan.pages, 16);
    assert_true(o.plan.registers);
    good("--self --mode rate --op send-inv --no-reg", &o);
    assert_int_equal(o.plan.pages, 1);
    assert_false(o.plan.registers);
    good("--self --mode rate -T 4", &o);
    assert_int_equal(o.plan.qps, 4);
    good("--self --mode conn -q 8", &o);
    assert_int_equal(o.plan.wait, PERF_EVENT);
    good("--self --mode rate --defer 100 -Q 64", &o);
    assert_int_equal(o.plan.depth, 163);
}

/* As few buffers as suffice. */
static void few_buffers(void **state)
{
    struct perf_options o;

    (void)state;
    good("--self --buffers 1", &o);
    good("--self --verify -t 8 --buffers 10", &o);
    good("--self --op write --verify -t 8 --buffers 8", &o);
    good("--self --op read --verify -t 8 --buffers 8", &o);
    good("--self --op fastreg -t 8 --buffers 10", &o);
    good("--self --mode lat --verify --buffers 1", &o);
    good("--self --verify -t 2000 --buffers 2002 -S 64", &o);
}

static void adapters_options(void **state)
{
    struct perf_options o;

    (void)state;
    good("--self --crc off --completion acked --fpdu 1422 --progress inline -o spin_us=5", &o);
    assert_string_equal(o.plan.adapter,
                        "crc=off,completion=acked,fpdu_max=1422,progress=inline,spin_us=5");
    assert_true(o.plan.spins_long);
    assert_int_equal(o.fpdu, 1422);
    good("--self --op write --reads 32 --inline 512", &o);
    assert_string_equal(o.plan.adapter,
                        "max_inbound_reads=32,max_outbound_reads=32,max_inline=512");
    good("--self --cpu 0,65", &o);
    assert_true(o.pinned && o.cpus[0] == 1 && o.cpus[1] == 2);
}

static void sizes_and_counts(void **state)
{
    struct perf_options o;
    struct plan plan;

    (void)state;
    good("--self --all --mode bw", &o);
    assert_int_equal(o.size_count, 23);
    assert_int_equal(o.sizes[0], 2);
    assert_int_equal(o.sizes[22], 8u << 20);
    plan = args_plan(&o, 0);
    assert_int_equal(plan.iterations, 50000);
    plan = args_plan(&o, 22);
    assert_int_equal(plan.iterations, 256);
    good("--self -n 50 --warmup 7", &o);
    plan = args_plan(&o, 0);
    assert_int_equal(plan.iterations, 50);
    assert_int_equal(plan.warmup, 7);
    good("--self -D 3", &o);
    plan = args_plan(&o, 0);
    assert_int_equal(plan.iterations, 0);
    assert_int_equal(plan.seconds, 3);
}

static void polls(const char *line, bool client, bool server)
{
    struct perf_options o;
    struct plan plan;

    good(line, &o);
    plan = args_plan(&o, 0);
    assert_int_equal(plan_polls(&plan, false), client);
    assert_int_equal(plan_polls(&plan, true), server);
}

/* Nothing completes there before the end. */
static void the_target_of_writes_waits_for_events(void **state)
{
    (void)state;
    polls("--self --op write --mode bw", true, false);
    polls("--self --op write --mode rate", true, false);
    polls("--self --op write --mode bw -b", true, true);
    polls("--self --op write --mode lat", true, true);
    polls("--self --op read --mode bw", true, true);
    polls("--self --op send --mode rate", true, true);
    polls("--self --op write --mode bw --wait event", false, false);
}

/* Everything that was given arrives at the other end as it was; nothing else does. */
static void plans_travel(void **state)
{
    struct perf_options o;
    struct plan plan, other;
    char line[PLAN_TEXT_MAX], error[240];

    (void)state;
    good("--self --op write --mode bw -S 4096 -t 60 --defer 5 -Q 3 -q 6 -T 3 --buffers 61 --inline "
         "8 "
         "--reads 7 -n 1000 --warmup 11 -b --verify --wait event --crc off",
         &o);
    plan = args_plan(&o, 0);
    plan_write(&plan, line);
    assert_true(plan_read(line, &other, error, sizeof(error)));
    /* Texts compare better than padding. */
    plan_write(&other, line + 0);
    plan_read(line, &plan, error, sizeof(error));
    assert_memory_equal(&plan.adapter, &other.adapter, sizeof(plan.adapter));
    assert_true(other.op == PERF_WRITE && other.mode == PERF_BW && other.wait == PERF_EVENT);
    assert_true(other.size == 4096 && other.depth == 60 && other.chain == 5);
    assert_true(other.moderation == 3 && other.qps == 6 && other.threads == 3);
    assert_true(other.buffers == 61 && other.inline_size == 8 && other.reads == 7);
    assert_true(other.iterations == 1000 && other.warmup == 11 && other.seconds == 0);
    assert_true(other.both_ways && other.verify && !other.round_robin && other.registers);
    assert_string_equal(other.adapter, "crc=off,max_inbound_reads=7,max_outbound_reads=7");
}

/* What a peer that is not ours could say. */
static void hostile_plans(void **state)
{
    static const char *const lines[] = {
        "",
        "hello",
        "ndkperf-1",
        "ndkperf-1 0 0 0 64 128 1 1 1 1 1 0 16",
        "ndkperf-2 0 0 0 64 128 1 1 1 1 1 0 16 1 1000 0 0 0 0 0 0 0 ",
        /* operation, mode, size, depth, queue pairs, threads, buffers out of range */
        "ndkperf-1 9 0 0 64 128 1 1 1 1 1 0 16 1 1000 0 0 0 0 0 0 0 ",
        "ndkperf-1 0 9 0 64 128 1 1 1 1 1 0 16 1 1000 0 0 0 0 0 0 0 ",
        "ndkperf-1 0 0 0 0 128 1 1 1 1 1 0 16 1 1000 0 0 0 0 0 0 0 ",
        "ndkperf-1 0 0 0 4294967295 128 1 1 1 1 1 0 16 1 1000 0 0 0 0 0 0 0 ",
        "ndkperf-1 0 0 0 64 100000 1 1 1 1 1 0 16 1 1000 0 0 0 0 0 0 0 ",
        "ndkperf-1 0 0 0 64 128 1 1 0 1 1 0 16 1 1000 0 0 0 0 0 0 0 ",
        "ndkperf-1 0 0 0 64 128 1 1 1 2 1 0 16 1 1000 0 0 0 0 0 0 0 ",
        "ndkperf-1 0 0 0 64 128 1 1 1 1 0 0 16 1 1000 0 0 0 0 0 0 0 ",
        /* fewer buffers than are in flight */
        "ndkperf-1 0 0 0 64 128 1 1 1 1 129 0 16 1 1000 0 0 0 1 0 0 0 ",
        "ndkperf-1 1 0 0 64 128 1 1 1 1 127 0 16 1 1000 0 0 0 1 0 0 0 ",
        "ndkperf-1 4 0 0 64 128 1 1 1 1 129 0 16 1 1000 0 0 0 0 0 1 0 ",
        /* a chain that never has room, more than 1 GiB, neither count nor time */
        "ndkperf-1 0 0 0 64 8 9 1 1 1 1 0 16 1 1000 0 0 0 0 0 0 0 ",
        "ndkperf-1 0 0 0 16777216 128 1 1 100 1 1 0 16 1 1000 0 0 0 0 0 0 0 ",
        "ndkperf-1 0 0 0 64 128 1 1 1 1 1 0 16 1 0 0 0 0 0 0 0 0 ",
    };
    struct plan plan;
    char error[240];

    (void)state;
    assert_true(plan_read("ndkperf-1 0 0 0 64 128 1 1 1 1 1 0 16 1 1000 0 0 0 0 0 0 0 ", &plan,
                          error, sizeof(error)));
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        error[0] = '\0';
        if (plan_read(lines[i], &plan, error, sizeof(error)))
            fail_msg("'%s' is taken", lines[i]);
        assert_true(error[0] != '\0');
    }
}

static void wrong_lines(void **state)
{
    static const char *const lines[] = {
        "",
        "-s -c ::1",
        "--self -c ::1",
        "-c localhost",
        "-c ::1 -p 0",
        "-c ::1 -p 65536",
        "--self -S 0",
        "--self -S 17M",
        "--self -S 64x",
        "--self --op frob",
        "--self --mode frob",
        "--self --wait frob",
        "--self -n 0",
        "--self -D 0",
        "--self -n 5 -D 5",
        "--self --crc 1",
        "--self --cpu x",
        "--self --cpu 0,",
        "--self -q",
        "--self --bogus",
        "--self more words",
        "-s --json",
        "-s --plot x.svg",
        "--self -1",
        "--self -T 2 -q 0",
        "--self --mode lat -t 2",
        "--self --mode lat -b",
        "--self --mode lat -q 2",
        "--self --mode lat --op write --wait event",
        "--self --mode bw --round-robin",
        "--self --mode lat --op read --round-robin -q 2",
        "--self -t 8 --defer 9",
        "--self --op fastreg -S 2",
        "--self --op fastreg -b",
        "--self --op write --mode conn",
        "--self --mode conn -b",
        "--self --verify --buffers 129",
        "--self --verify -t 8 --buffers 9",
        "--self --op write --verify -t 8 --buffers 7",
        "--self --op read --verify --buffers 2",
        "--self --op fastreg --buffers 1",
        "--self --op send-inv --no-reg -t 8 --buffers 9",
        "--self --progress frob",
        "--self --completion now",
        "--self -q 2 -T 4",
        "--self --no-reg",
        "--self --op write --pages 4",
        "--self --op read --inline 64",
        "--self --mode conn -a",
        "--self --mode conn -S 64",
        "--self --mode conn -s 64",
        "--self --mode conn --wait spin",
        "--self --mode conn --buffers 2",
        "--self --mode conn --inline 64",
        "--self --mode conn --reads 2",
        "-s --op write",
        "-s -D 5",
        "-s -o crc=0",
        "-s -s 64",
        "--self -o a b",
        "-c ::1 -I nowhere",
    };
    struct perf_options o;

    (void)state;
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++)
        if (parse(lines[i], &o) != TOOL_USAGE)
            fail_msg("'%s' is taken", lines[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(server_or_size),
        cmocka_unit_test(defaults),
        cmocka_unit_test(adapters_options),
        cmocka_unit_test(sizes_and_counts),
        cmocka_unit_test(plans_travel),
        cmocka_unit_test(hostile_plans),
        cmocka_unit_test(the_target_of_writes_waits_for_events),
        cmocka_unit_test(wrong_lines),
        cmocka_unit_test(few_buffers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
