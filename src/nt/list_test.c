// SPDX-License-Identifier: MIT
/*
 * Tests of lists: the inline ones of wdm/list.h, with what a spoiled list does, and list.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "nt/nt_testing.h"

struct item {
    int number;
    LIST_ENTRY link;
};

static int number_of(PLIST_ENTRY entry)
{
    return CONTAINING_RECORD(entry, struct item, link)->number;
}

static void entries_come_and_go_at_both_ends(void **state)
{
    struct item items[4] = {{.number = 0}, {.number = 1}, {.number = 2}, {.number = 3}};
    LIST_ENTRY head, other;

    (void)state;
    InitializeListHead(&head);
    assert_true(IsListEmpty(&head));
    InsertTailList(&head, &items[1].link);
    InsertTailList(&head, &items[2].link);
    InsertHeadList(&head, &items[0].link);
    assert_false(IsListEmpty(&head));
    assert_int_equal(number_of(head.Flink), 0);
    assert_int_equal(number_of(head.Blink), 2);
    assert_false(RemoveEntryList(&items[1].link)); /* not empty then */
    assert_int_equal(number_of(RemoveHeadList(&head)), 0);
    assert_int_equal(number_of(RemoveTailList(&head)), 2);
    assert_true(IsListEmpty(&head));
    assert_ptr_equal(RemoveHeadList(&head), &head); /* as Windows: the head itself */

    InsertTailList(&head, &items[0].link);
    assert_true(RemoveEntryList(&items[0].link)); /* empty now */

    InitializeListHead(&other);
    InsertTailList(&head, &items[0].link);
    InsertTailList(&other, &items[1].link);
    InsertTailList(&other, &items[2].link);
    RemoveEntryList(&other); /* a ring without a head */
    AppendTailList(&head, &items[1].link);
    for (int i = 0; i < 3; i++)
        assert_int_equal(number_of(RemoveHeadList(&head)), i);
    assert_true(IsListEmpty(&head));
}

static void single_links_are_a_stack(void **state)
{
    SINGLE_LIST_ENTRY head = {NULL}, a, b;

    (void)state;
    assert_null(PopEntryList(&head));
    PushEntryList(&head, &a);
    PushEntryList(&head, &b);
    assert_ptr_equal(PopEntryList(&head), &b);
    assert_ptr_equal(PopEntryList(&head), &a);
    assert_null(PopEntryList(&head));
}

static void interlocked_calls_tell_what_was_there(void **state)
{
    unsigned findings = nt_finding_count();
    LIST_ENTRY head, a, b, c;
    SINGLE_LIST_ENTRY single = {NULL}, x, y;
    KSPIN_LOCK lock;

    (void)state;
    KeInitializeSpinLock(&lock);
    InitializeListHead(&head);
    assert_null(ExInterlockedInsertTailList(&head, &b, &lock));
    assert_ptr_equal(ExInterlockedInsertHeadList(&head, &a, &lock), &b);
    assert_ptr_equal(ExInterlockedInsertTailList(&head, &c, &lock), &b);
    assert_ptr_equal(ExInterlockedRemoveHeadList(&head, &lock), &a);
    assert_ptr_equal(ExInterlockedRemoveHeadList(&head, &lock), &b);
    assert_ptr_equal(ExInterlockedRemoveHeadList(&head, &lock), &c);
    assert_null(ExInterlockedRemoveHeadList(&head, &lock));
    assert_null(ExInterlockedInsertHeadList(&head, &a, &lock));

    assert_null(ExInterlockedPushEntryList(&single, &x, &lock));
    assert_ptr_equal(ExInterlockedPushEntryList(&single, &y, &lock), &x);
    assert_ptr_equal(ExInterlockedPopEntryList(&single, &lock), &y);
    assert_ptr_equal(ExInterlockedPopEntryList(&single, &lock), &x);
    assert_null(ExInterlockedPopEntryList(&single, &lock));
    assert_int_equal(KeGetCurrentIrql(), PASSIVE_LEVEL);
    assert_int_equal(nt_finding_count(), findings);
}

static void sequenced_lists_count(void **state)
{
    SLIST_HEADER head;
    SLIST_ENTRY a, b, c;

    (void)state;
    assert_int_equal((uintptr_t)&head % 16, 0);
    ExInitializeSListHead(&head);
    assert_int_equal(ExQueryDepthSList(&head), 0);
    assert_null(InterlockedPopEntrySList(&head));
    assert_null(InterlockedPushEntrySList(&head, &a));
    assert_ptr_equal(InterlockedPushEntrySList(&head, &b), &a);
    assert_ptr_equal(ExInterlockedPushEntrySList(&head, &c, NULL), &b);
    assert_int_equal(ExQueryDepthSList(&head), 3);
    assert_ptr_equal(ExInterlockedPopEntrySList(&head, NULL), &c);
    assert_ptr_equal(InterlockedFlushSList(&head), &b);
    assert_ptr_equal(b.Next, &a);
    assert_null(a.Next);
    assert_int_equal(ExQueryDepthSList(&head), 0);
    assert_null(ExInterlockedFlushSList(&head));
}

/* ---- threads -------------------------------------------------------------------------------- */

/* Many rounds are done within one turn of the scheduler, where nobody meets anybody: so it goes on
 * for some turns. */
enum { THREADS = 3, ITEMS = 64, ROUNDS = 4000, LEAST_US = 200000 };

struct pool {
    LIST_ENTRY list;
    SLIST_HEADER stack;
    KSPIN_LOCK lock;
};

struct thing {
    SLIST_ENTRY slist; /* first, for its alignment */
    LIST_ENTRY link;
    int owners; /* 1 while a thread has it, no atomic */
};

static void juggle(void *arg)
{
    struct pool *p = arg;
    uint64_t begin = os_now_us();

    for (int i = 0; i < ROUNDS || i % 64 != 0 || os_now_us() - begin < LEAST_US; i++) {
        PLIST_ENTRY entry = ExInterlockedRemoveHeadList(&p->list, &p->lock);
        PSLIST_ENTRY top = InterlockedPopEntrySList(&p->stack);

        if (entry) {
            struct thing *t = CONTAINING_RECORD(entry, struct thing, link);

            if (t->owners++ != 0)
                abort();
            t->owners--;
            if (i % 2)
                ExInterlockedInsertHeadList(&p->list, entry, &p->lock);
            else
                ExInterlockedInsertTailList(&p->list, entry, &p->lock);
        }
        if (top) {
            struct thing *t = CONTAINING_RECORD(top, struct thing, slist);

            if (t->owners++ != 0)
                abort();
            t->owners--;
            InterlockedPushEntrySList(&p->stack, top);
        }
    }
}

static void no_entry_has_two_owners_or_is_lost(void **state)
{
    static struct thing listed[ITEMS], stacked[ITEMS];
    struct os_thread *threads[THREADS];
    struct pool p;
    int count = 0;

    (void)state;
    InitializeListHead(&p.list);
    InitializeSListHead(&p.stack);
    KeInitializeSpinLock(&p.lock);
    for (int i = 0; i < ITEMS; i++) {
        InsertTailList(&p.list, &listed[i].link);
        InterlockedPushEntrySList(&p.stack, &stacked[i].slist);
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(os_thread_start(&threads[i], "juggle", juggle, &p), 0);
    for (int i = 0; i < THREADS; i++)
        os_thread_join(threads[i]);
    while (ExInterlockedRemoveHeadList(&p.list, &p.lock))
        count++;
    assert_int_equal(count, ITEMS);
    assert_int_equal(ExQueryDepthSList(&p.stack), ITEMS);
}

/* Who calls while another thread has the lock waits for it. */
struct waiter {
    struct pool pool;
    LIST_ENTRY entry;
    atomic_bool begun, over;
};

static void insert_under_lock(void *arg)
{
    struct waiter *w = arg;

    atomic_store(&w->begun, true);
    ExInterlockedInsertHeadList(&w->pool.list, &w->entry, &w->pool.lock);
    atomic_store(&w->over, true);
}

static void the_lock_is_waited_for(void **state)
{
    struct os_thread *thread;
    struct waiter w;
    KIRQL old;

    (void)state;
    memset(&w, 0, sizeof w);
    InitializeListHead(&w.pool.list);
    KeInitializeSpinLock(&w.pool.lock);
    KeAcquireSpinLock(&w.pool.lock, &old);
    assert_int_equal(os_thread_start(&thread, "insert", insert_under_lock, &w), 0);
    while (!atomic_load(&w.begun))
        os_sleep_us(100);
    for (int i = 0; i < 100 && !atomic_load(&w.over); i++)
        os_sleep_us(500);
    assert_false(atomic_load(&w.over));
    assert_true(IsListEmpty(&w.pool.list));
    KeReleaseSpinLock(&w.pool.lock, old);
    os_thread_join(thread);
    assert_ptr_equal(RemoveHeadList(&w.pool.list), &w.entry);
}

/* ---- spoiled lists --------------------------------------------------------------------------- */

static void remove_twice(void *arg)
{
    LIST_ENTRY head, a, b;

    (void)arg;
    InitializeListHead(&head);
    InsertTailList(&head, &a);
    InsertTailList(&head, &b);
    RemoveEntryList(&a);
    RemoveEntryList(&a);
}

static void insert_into_garbage(void *arg)
{
    static LIST_ENTRY head, a;

    InitializeListHead(&head);
    head.Flink = head.Blink = arg;
    if (arg)
        memset(arg, 0, sizeof(LIST_ENTRY));
    InsertTailList(&head, &a);
}

static void a_spoiled_list_is_a_bug_check(void **state)
{
    LIST_ENTRY garbage;
    char text[4000];
    int status;

    (void)state;
    status = child_run(remove_twice, NULL, text, sizeof text);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    assert_non_null(strstr(text, "bug check 0x139 KERNEL_SECURITY_CHECK_FAILURE (kind 0x3, "));
    assert_non_null(strstr(text, "corrupt LIST_ENTRY"));
    status = child_run(insert_into_garbage, &garbage, text, sizeof text);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(entries_come_and_go_at_both_ends),
        cmocka_unit_test(single_links_are_a_stack),
        cmocka_unit_test(interlocked_calls_tell_what_was_there),
        cmocka_unit_test(sequenced_lists_count),
        cmocka_unit_test(the_lock_is_waited_for),
        cmocka_unit_test(no_entry_has_two_owners_or_is_lost),
        cmocka_unit_test(a_spoiled_list_is_a_bug_check),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
