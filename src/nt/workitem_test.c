// SPDX-License-Identifier: MIT
/*
 * Tests of workitem.c: level, items that free or requeue themselves, items that wait for each
 * other, misuse.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "nt/left.h"
#include "nt/nt_testing.h"

static bool idle(void)
{
    struct os_deadline limit = {.clock = OS_MONO,
                                .at_100ns = os_mono_100ns() + LIMIT_S * 10000000ull};

    return nt_work_wait_idle(&limit);
}

static NTSTATUS wait_for(PKEVENT event)
{
    LARGE_INTEGER t = {.QuadPart = -LIMIT_S * 10000000ll};

    return KeWaitForSingleObject(event, Executive, KernelMode, FALSE, &t);
}

struct seen {
    KEVENT done;
    PVOID object, context;
    PIO_WORKITEM item;
    KIRQL irql;
    uint32_t thread;
};

static VOID note(PVOID context)
{
    struct seen *s = context;

    s->context = context;
    s->irql = KeGetCurrentIrql();
    s->thread = os_thread_id();
    KeSetEvent(&s->done, 0, FALSE);
}

static VOID note_device(PDEVICE_OBJECT device, PVOID context)
{
    struct seen *s = context;

    s->object = device;
    note(context);
}

static VOID note_and_free(PVOID object, PVOID context, PIO_WORKITEM item)
{
    struct seen *s = context;

    s->object = object;
    s->item = item;
    IoFreeWorkItem(item);
    note(context);
}

static void routines_run_later_at_passive_level(void **state)
{
    unsigned findings = nt_finding_count();
    PDEVICE_OBJECT device = (PDEVICE_OBJECT)(uintptr_t)0x1234; /* never looked at */
    size_t items = nt_left_count(NT_LEFT_WORK_ITEM);
    struct seen s = {.irql = HIGH_LEVEL};
    WORK_QUEUE_ITEM plain;
    PIO_WORKITEM item;
    KIRQL old;

    (void)state;
    KeInitializeEvent(&s.done, SynchronizationEvent, FALSE);
    ExInitializeWorkItem(&plain, note, &s);
    old = KeRaiseIrqlToDpcLevel();
    ExQueueWorkItem(&plain, DelayedWorkQueue);
    KeLowerIrql(old);
    assert_int_equal(wait_for(&s.done), STATUS_SUCCESS);
    assert_ptr_equal(s.context, &s);
    assert_int_equal(s.irql, PASSIVE_LEVEL);
    assert_true(s.thread != os_thread_id());
    ExQueueWorkItem(&plain, CriticalWorkQueue); /* again */
    assert_int_equal(wait_for(&s.done), STATUS_SUCCESS);

    item = IoAllocateWorkItem(device);
    assert_non_null(item);
    assert_int_equal(nt_left_count(NT_LEFT_WORK_ITEM), items + 1);
    IoQueueWorkItem(item, note_device, DelayedWorkQueue, &s);
    assert_int_equal(wait_for(&s.done), STATUS_SUCCESS);
    assert_ptr_equal(s.object, device);
    s.object = NULL;
    IoQueueWorkItemEx(item, note_and_free, DelayedWorkQueue, &s);
    assert_int_equal(wait_for(&s.done), STATUS_SUCCESS);
    assert_ptr_equal(s.object, device);
    assert_ptr_equal(s.item, item);
    assert_int_equal(nt_left_count(NT_LEFT_WORK_ITEM), items);
    assert_true(idle());
    assert_int_equal(nt_finding_count(), findings);
}

/* ---- an item that frees or requeues itself --------------------------------------------------- */

static atomic_int freed;

static VOID free_yourself(PVOID context)
{
    memset(context, 0xee, sizeof(WORK_QUEUE_ITEM));
    free(context);
    atomic_fetch_add(&freed, 1);
}

static void a_routine_may_free_its_item(void **state)
{
    enum { MANY = 2000 };

    (void)state;
    for (int i = 0; i < MANY; i++) {
        WORK_QUEUE_ITEM *item = malloc(sizeof *item);

        assert_non_null(item);
        ExInitializeWorkItem(item, free_yourself, item);
        ExQueueWorkItem(item, DelayedWorkQueue);
    }
    assert_true(idle());
    assert_int_equal(atomic_load(&freed), MANY);
}

struct again {
    PIO_WORKITEM item;
    int left;
    KEVENT done;
};

static VOID once_more(PDEVICE_OBJECT device, PVOID context)
{
    struct again *a = context;

    (void)device;
    if (--a->left > 0)
        IoQueueWorkItem(a->item, once_more, DelayedWorkQueue, a);
    else
        KeSetEvent(&a->done, 0, FALSE);
}

static void a_routine_may_queue_its_item_again(void **state)
{
    unsigned findings = nt_finding_count();
    struct again a = {.left = 500};

    (void)state;
    KeInitializeEvent(&a.done, NotificationEvent, FALSE);
    a.item = IoAllocateWorkItem(NULL);
    IoQueueWorkItem(a.item, once_more, DelayedWorkQueue, &a);
    assert_int_equal(wait_for(&a.done), STATUS_SUCCESS);
    assert_true(idle());
    IoFreeWorkItem(a.item);
    assert_int_equal(a.left, 0);
    assert_int_equal(nt_finding_count(), findings);
}

/* ---- items that wait for each other ---------------------------------------------------------- */

enum { CHAIN = 20 };

static KEVENT links[CHAIN + 1];

static VOID wait_for_the_next(PVOID context)
{
    int n = (int)(intptr_t)context;

    if (wait_for(&links[n + 1]) == STATUS_SUCCESS)
        KeSetEvent(&links[n], 0, FALSE);
}

/* Each waits for one that was queued after it: with too few threads none would ever end. */
static void blocked_items_do_not_hold_up_others(void **state)
{
    static WORK_QUEUE_ITEM items[CHAIN];

    (void)state;
    for (int i = 0; i <= CHAIN; i++)
        KeInitializeEvent(&links[i], NotificationEvent, FALSE);
    for (intptr_t i = 0; i < CHAIN; i++) {
        ExInitializeWorkItem(&items[i], wait_for_the_next, (PVOID)i);
        ExQueueWorkItem(&items[i], DelayedWorkQueue);
    }
    KeSetEvent(&links[CHAIN], 0, FALSE);
    assert_int_equal(wait_for(&links[0]), STATUS_SUCCESS);
    assert_true(idle());
}

/* ---- misuse --------------------------------------------------------------------------------- */

static KEVENT gate, entered;

static VOID stay(PDEVICE_OBJECT device, PVOID context)
{
    (void)device;
    (void)context;
    KeSetEvent(&entered, 0, FALSE);
    (void)wait_for(&gate);
}

/* Occupies all threads, so that what is queued stays queued. */
static void occupy(PIO_WORKITEM items[64])
{
    KeInitializeEvent(&gate, NotificationEvent, FALSE);
    KeInitializeEvent(&entered, SynchronizationEvent, FALSE);
    for (int i = 0; i < 64; i++) {
        items[i] = IoAllocateWorkItem(NULL);
        IoQueueWorkItem(items[i], stay, DelayedWorkQueue, NULL);
        assert_int_equal(wait_for(&entered), STATUS_SUCCESS);
    }
}

static void set_free(PIO_WORKITEM items[64])
{
    KeSetEvent(&gate, 0, FALSE);
    assert_true(idle());
    for (int i = 0; i < 64; i++)
        IoFreeWorkItem(items[i]);
}

static void an_item_is_queued_once(void **state)
{
    unsigned findings = nt_finding_count();
    PIO_WORKITEM occupied[64], item = IoAllocateWorkItem(NULL);
    WORK_QUEUE_ITEM plain;
    struct seen s = {.irql = 0}, of_device = {.irql = 0}; /* they may run at the same time */

    (void)state;
    KeInitializeEvent(&s.done, NotificationEvent, FALSE);
    KeInitializeEvent(&of_device.done, NotificationEvent, FALSE);
    occupy(occupied);
    ExInitializeWorkItem(&plain, note, &s);
    ExQueueWorkItem(&plain, DelayedWorkQueue);
    ExQueueWorkItem(&plain, DelayedWorkQueue);
    ASSERT_FINDING(findings, "ExQueueWorkItem: the item");
    IoQueueWorkItem(item, note_device, DelayedWorkQueue, &of_device);
    IoQueueWorkItem(item, note_device, DelayedWorkQueue, &of_device);
    ASSERT_FINDING(findings + 1, "IoQueueWorkItem: the work item");
    IoFreeWorkItem(item);
    ASSERT_FINDING(findings + 2, "is queued");
    set_free(occupied);
    IoFreeWorkItem(item);
    IoFreeWorkItem(item);
    ASSERT_FINDING(findings + 3, "no work item, or freed already");
    IoQueueWorkItem(item, note_device, DelayedWorkQueue, &s);
    ASSERT_FINDING(findings + 4, "no work item, or freed already");
}

static void an_item_must_be_initialized(void **state)
{
    unsigned findings = nt_finding_count();
    struct seen s = {.irql = 0};
    WORK_QUEUE_ITEM plain;

    (void)state;
    KeInitializeEvent(&s.done, NotificationEvent, FALSE);
    memset(&plain, 0x5a, sizeof plain);
    plain.WorkerRoutine = note;
    plain.Parameter = &s;
    ExQueueWorkItem(&plain, DelayedWorkQueue);
    ASSERT_FINDING(findings, "is not initialized");
    assert_int_equal(wait_for(&s.done), STATUS_SUCCESS);
    assert_true(idle());
}

static VOID return_raised(PVOID context)
{
    KIRQL old;

    (void)context;
    KeRaiseIrql(DISPATCH_LEVEL, &old);
}

static void levels_are_checked(void **state)
{
    unsigned findings = nt_finding_count();
    struct seen s = {.irql = HIGH_LEVEL};
    WORK_QUEUE_ITEM item;

    (void)state;
    ExInitializeWorkItem(&item, return_raised, NULL);
    ExQueueWorkItem(&item, DelayedWorkQueue);
    assert_true(idle());
    ASSERT_FINDING(findings, "returned with something held (IRQL 2, need 0;");
    KeInitializeEvent(&s.done, NotificationEvent, FALSE);
    ExInitializeWorkItem(&item, note, &s);
    nt_irql_set(HIGH_LEVEL);
    ExQueueWorkItem(&item, DelayedWorkQueue);
    nt_irql_set(PASSIVE_LEVEL);
    ASSERT_FINDING(findings + 1, "ExQueueWorkItem: IRQL too high");
    assert_int_equal(wait_for(&s.done), STATUS_SUCCESS);
    assert_int_equal(s.irql, PASSIVE_LEVEL); /* the thread was put right */
    assert_true(idle());
}

static void idleness_has_a_limit(void **state)
{
    struct os_deadline now = {.clock = OS_MONO, .at_100ns = os_mono_100ns()};
    PIO_WORKITEM occupied[64];

    (void)state;
    occupy(occupied);
    assert_false(nt_work_wait_idle(&now));
    set_free(occupied);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(routines_run_later_at_passive_level),
        cmocka_unit_test(a_routine_may_free_its_item),
        cmocka_unit_test(a_routine_may_queue_its_item_again),
        cmocka_unit_test(blocked_items_do_not_hold_up_others),
        cmocka_unit_test(an_item_is_queued_once),
        cmocka_unit_test(an_item_must_be_initialized),
        cmocka_unit_test(levels_are_checked),
        cmocka_unit_test(idleness_has_a_limit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
