// SPDX-License-Identifier: MIT
/*
 * Tests of left.c, report.c and finding.c: records by kind and address, call stacks, the report,
 * and what is said at the end of a process that did not ask. With an argument the program is such a
 * process itself.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <softndk.h>

#include "nt/left.h"
#include "nt/nt_testing.h"

/* ---- records -------------------------------------------------------------------------------- */

static void a_record_is_found_by_kind_and_address(void **state)
{
    char thing[2];
    struct nt_left *r;
    unsigned flags;
    size_t size, before = nt_left_count(NT_LEFT_POOL);

    (void)state;
    r = nt_left_add(NT_LEFT_POOL, &thing[0], 10, 0x64636261, 3, NT_CALLER);
    assert_non_null(r);
    assert_non_null(nt_left_add(NT_LEFT_MDL, &thing[0], 20, 0, 4, NT_CALLER));
    assert_int_equal(nt_left_count(NT_LEFT_POOL), before + 1);

    assert_true(nt_left_find(NT_LEFT_POOL, &thing[0], &size, &flags));
    assert_int_equal(size, 10);
    assert_int_equal(flags, 3);
    assert_true(nt_left_find(NT_LEFT_MDL, &thing[0], &size, NULL));
    assert_int_equal(size, 20);
    assert_false(nt_left_find(NT_LEFT_POOL, &thing[1], NULL, NULL));
    assert_false(nt_left_find(NT_LEFT_TIMER, &thing[0], NULL, NULL));

    assert_ptr_equal(nt_left_take(NT_LEFT_POOL, &thing[0]), r);
    assert_int_equal(r->tag, 0x64636261);
    nt_left_free(r);
    assert_null(nt_left_take(NT_LEFT_POOL, &thing[0]));
    assert_int_equal(nt_left_count(NT_LEFT_POOL), before);
    assert_true(nt_left_drop(NT_LEFT_MDL, &thing[0]));
    assert_false(nt_left_drop(NT_LEFT_MDL, &thing[0]));
}

static void the_list_is_in_the_order_of_making(void **state)
{
    enum { MANY = 600 }; /* more than buckets */
    static char things[MANY];
    struct nt_left **list;
    size_t count;

    (void)state;
    for (int i = 0; i < MANY; i++)
        assert_non_null(nt_left_add(NT_LEFT_TIMER, &things[MANY - 1 - i], 0, 0, 0, NT_CALLER));
    list = nt_left_list(NULL, &count);
    assert_int_equal(count, MANY);
    for (int i = 0; i < MANY; i++)
        assert_ptr_equal(list[i]->address, &things[MANY - 1 - i]);
    nt_left_list_free(list, count);
    for (int i = 0; i < MANY; i++)
        assert_true(nt_left_drop(NT_LEFT_TIMER, &things[i]));
    list = nt_left_list(NULL, &count);
    assert_int_equal(count, 0);
    nt_left_list_free(list, count);
}

/* ---- stacks --------------------------------------------------------------------------------- */

static __attribute__((noinline)) PVOID innermost(void)
{
    PVOID block = ExAllocatePool2(POOL_FLAG_NON_PAGED, 100, 'tseT');

    __asm__ __volatile__("" ::: "memory"); /* no tail call */
    return block;
}

static __attribute__((noinline)) PVOID outer(void)
{
    PVOID block = innermost();

    __asm__ __volatile__("" ::: "memory");
    return block;
}

static void a_stack_begins_at_the_consumers_call(void **state)
{
    PVOID block = outer();
    struct nt_left *r = nt_left_take(NT_LEFT_POOL, block);
    uintptr_t first, second;
    char text[400];

    (void)state;
    assert_non_null(r);
    assert_true(r->depth >= 3);
    first = (uintptr_t)r->frames[0];
    second = (uintptr_t)r->frames[1];
    assert_in_range(first, (uintptr_t)innermost, (uintptr_t)innermost + 400);
    assert_in_range(second, (uintptr_t)outer, (uintptr_t)outer + 400);
    nt_left_stack(r, text, sizeof text);
    assert_non_null(strstr(text, " <- "));
    nt_left_stack(r, text, 12); /* cut off */
    assert_int_equal(strlen(text), 11);
    nt_left_free(r);
    /* The record is gone: give the block back as what it is. */
    assert_non_null(nt_left_add(NT_LEFT_POOL, block, 100, 'tseT', 0, NT_CALLER));
    ExFreePool(block);
}

/* ---- the report ------------------------------------------------------------------------------ */

struct lines {
    char text[8000];
    unsigned count;
};

static void gather(void *context, const char *text)
{
    struct lines *l = context;
    size_t n = strlen(l->text);

    snprintf(l->text + n, sizeof l->text - n, "%s\n", text);
    l->count++;
}

static size_t upper_floor(nt_report_line line, void *context)
{
    if (line)
        line(context, "left: 2 objects of the floor above");
    return 2;
}

static void the_report_tells_findings_and_groups_what_is_left(void **state)
{
    size_t before = softndk_report(NULL, NULL);
    static struct lines l;
    PVOID blocks[4];
    PMDL mdl;

    (void)state;
    for (volatile int i = 0; i < 3; i = i + 1)
        blocks[i] = ExAllocatePool2(POOL_FLAG_NON_PAGED, 100, 'pAoN');
    blocks[3] = ExAllocatePool2(POOL_FLAG_PAGED, 50, 'pBoN');
    mdl = IoAllocateMdl(blocks[0], 100, FALSE, FALSE, NULL);
    nt_finding("call: it went wrong %d", 7);

    assert_int_equal(softndk_report(gather, &l), before + 6);
    assert_non_null(strstr(l.text, "finding: call: it went wrong 7\n"));
    assert_non_null(strstr(l.text, "left: 3 pool blocks 'NoAp', 300 bytes, the first at "));
    assert_non_null(strstr(l.text, "left: 1 pool block 'NoBp', 50 bytes, the first at "));
    assert_non_null(strstr(l.text, "left: 1 MDL, "));
    assert_non_null(strstr(l.text, ", made by "));
    assert_int_equal(softndk_finding_count(), nt_finding_count());

    nt_report_source(upper_floor);
    l.text[0] = '\0';
    assert_int_equal(softndk_report(gather, &l), before + 8);
    assert_non_null(strstr(l.text, "left: 2 objects of the floor above\n"));

    IoFreeMdl(mdl);
    for (int i = 0; i < 4; i++)
        ExFreePool(blocks[i]);
    assert_int_equal(softndk_report(NULL, NULL), before + 3); /* the finding stays */
}

/* ---- the end of a process -------------------------------------------------------------------- */

static void what_nobody_asked_for_is_said_at_the_end(void **state)
{
    char text[4000];

    (void)state;
    assert_int_equal(self_run("leak", text, sizeof text), 0);
    assert_non_null(strstr(text, "softndk: error: left: 2 pool blocks 'Leak', 34 bytes"));
    assert_non_null(strstr(text, "softndk: error: finding: once\n"));
    assert_non_null(strstr(text, "softndk: error: at exit: 1 finding, 2 things left\n"));
    assert_int_equal(self_run("ask", text, sizeof text), 0);
    assert_null(strstr(text, "at exit"));
    assert_int_equal(self_run("clean", text, sizeof text), 0);
    assert_string_equal(text, "");
}

static void the_first_finding_can_end_the_process(void **state)
{
    char text[4000];
    int status;

    (void)state;
    setenv("SOFTNDK_FINDINGS", "abort", 1);
    status = self_run("leak", text, sizeof text);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    setenv("SOFTNDK_FINDINGS", "sometimes", 1);
    assert_int_equal(self_run("leak", text, sizeof text), 0);
    assert_non_null(strstr(text, "SOFTNDK_FINDINGS: unknown (have \"sometimes\""));
    unsetenv("SOFTNDK_FINDINGS");
}

static void the_depth_of_stacks_is_chosen(void **state)
{
    char text[4000];

    (void)state;
    setenv("SOFTNDK_STACKS", "1", 1);
    assert_int_equal(self_run("leak", text, sizeof text), 0);
    assert_null(strstr(text, " <- "));
    setenv("SOFTNDK_STACKS", "0", 1);
    assert_int_equal(self_run("leak", text, sizeof text), 0);
    assert_non_null(strstr(text, "SOFTNDK_STACKS: frames a stack (have \"0\", need 1 to 32)"));
    assert_non_null(strstr(text, " <- "));
    unsetenv("SOFTNDK_STACKS");
}

/* ---- many threads ---------------------------------------------------------------------------- */

enum { THREADS = 4, ROUNDS = 3000 };

static void come_and_go(void *arg)
{
    char *mine = arg;

    for (int i = 0; i < ROUNDS; i++) {
        const void *thing = mine + 16 * (i % 61);

        if (!nt_left_add(NT_LEFT_RESOURCE, thing, 0, 0, 0, NT_CALLER) ||
            !nt_left_drop(NT_LEFT_RESOURCE, thing))
            abort();
    }
}

static void threads_do_not_disturb_each_other(void **state)
{
    static char room[THREADS][1024];
    struct os_thread *threads[THREADS];
    struct nt_left **list;
    size_t count;

    (void)state;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(os_thread_start(&threads[i], "left", come_and_go, room[i]), 0);
    for (int i = 0; i < 50; i++) {
        list = nt_left_list(NULL, &count);
        nt_left_list_free(list, count);
    }
    for (int i = 0; i < THREADS; i++)
        os_thread_join(threads[i]);
    assert_int_equal(nt_left_count(NT_LEFT_RESOURCE), 0);
}

static int be_another_process(const char *what)
{
    static struct lines l;

    if (strcmp(what, "clean") == 0)
        return 0;
    for (volatile int i = 0; i < 2; i = i + 1) /* one call, whatever the compiler thinks */
        (void)ExAllocatePoolWithTag(NonPagedPool, 17, 'kaeL');
    nt_finding("once");
    if (strcmp(what, "ask") == 0)
        (void)softndk_report(gather, &l);
    return 0;
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_record_is_found_by_kind_and_address),
        cmocka_unit_test(the_list_is_in_the_order_of_making),
        cmocka_unit_test(a_stack_begins_at_the_consumers_call),
        cmocka_unit_test(the_report_tells_findings_and_groups_what_is_left),
        cmocka_unit_test(what_nobody_asked_for_is_said_at_the_end),
        cmocka_unit_test(the_first_finding_can_end_the_process),
        cmocka_unit_test(the_depth_of_stacks_is_chosen),
        cmocka_unit_test(threads_do_not_disturb_each_other),
    };

    if (argc > 1)
        return be_another_process(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
