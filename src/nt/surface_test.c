// SPDX-License-Identifier: MIT
/*
 * Tests of what the headers have without a function behind it: atomics, arithmetic on pages, SEH,
 * annotations, types, constants.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ndis.h>
#include <netioapi.h>
#include <ntddk.h>
#include <wdmsec.h>
#include <wsk.h>

#include "nt/nt_testing.h"
#include "os/sanitize.h"

/* ---- interlocked ----------------------------------------------------------------------------- */

static void arithmetic_returns_the_new_value(void **state)
{
    volatile LONG l = 5;
    SHORT s = 5;
    LONG64 q = 5;
    ULONG unsigned_one = MAXULONG;
    int plain = 1;

    (void)state;
    assert_int_equal(InterlockedIncrement(&l), 6);
    assert_int_equal(_InterlockedIncrement(&l), 7);
    assert_int_equal(InterlockedDecrement(&l), 6);
    assert_int_equal(_InterlockedDecrement(&l), 5);
    assert_int_equal(InterlockedAdd(&l, -7), -2);
    assert_int_equal(l, -2);
    assert_int_equal(InterlockedIncrement16(&s), 6);
    assert_int_equal(_InterlockedIncrement16(&s), 7);
    assert_int_equal(InterlockedDecrement16(&s), 6);
    assert_int_equal(_InterlockedDecrement16(&s), 5);
    s = 0x7fff;
    assert_int_equal(InterlockedIncrement16(&s), -0x8000);
    assert_true(InterlockedIncrement64(&q) == 6);
    assert_true(_InterlockedIncrement64(&q) == 7);
    assert_true(InterlockedDecrement64(&q) == 6);
    assert_true(_InterlockedDecrement64(&q) == 5);
    assert_true(InterlockedAdd64(&q, 0x100000000ll) == 0x100000005ll);
    assert_int_equal(InterlockedIncrement(&unsigned_one), 0); /* any 32-bit type will do */
    assert_int_equal(InterlockedIncrement(&plain), 2);
}

static void all_else_returns_the_former_one(void **state)
{
    LONG l = 5;
    SHORT s = 5;
    LONG64 q = 5;

    (void)state;
    assert_int_equal(InterlockedExchange(&l, 6), 5);
    assert_int_equal(_InterlockedExchange(&l, 7), 6);
    assert_int_equal(InterlockedExchange16(&s, 6), 5);
    assert_int_equal(_InterlockedExchange16(&s, 7), 6);
    assert_true(InterlockedExchange64(&q, 6) == 5);
    assert_true(_InterlockedExchange64(&q, 7) == 6);
    assert_int_equal(InterlockedExchangeAdd(&l, 3), 7);
    assert_int_equal(_InterlockedExchangeAdd(&l, 3), 10);
    assert_true(InterlockedExchangeAdd64(&q, 3) == 7);
    assert_true(_InterlockedExchangeAdd64(&q, 3) == 10);
    assert_int_equal(l, 13);
    assert_int_equal(InterlockedAnd(&l, 12), 13);
    assert_int_equal(_InterlockedAnd(&l, 8), 12);
    assert_int_equal(InterlockedOr(&l, 1), 8);
    assert_int_equal(_InterlockedOr(&l, 2), 9);
    assert_int_equal(InterlockedXor(&l, 3), 11);
    assert_int_equal(_InterlockedXor(&l, 8), 8);
    assert_int_equal(l, 0);
    assert_true(InterlockedAnd64(&q, 12) == 13 && _InterlockedAnd64(&q, 8) == 12);
    assert_true(InterlockedOr64(&q, 1) == 8 && _InterlockedOr64(&q, 2) == 9);
    assert_true(InterlockedXor64(&q, 3) == 11 && _InterlockedXor64(&q, 8) == 8);
    assert_true(q == 0);
}

static void an_exchange_that_compares(void **state)
{
    LONG l = 5;
    SHORT s = 5;
    LONG64 q = 5;

    (void)state;
    assert_int_equal(InterlockedCompareExchange(&l, 6, 4), 5);
    assert_int_equal(l, 5);
    assert_int_equal(InterlockedCompareExchange(&l, 6, 5), 5);
    assert_int_equal(_InterlockedCompareExchange(&l, 7, 6), 6);
    assert_int_equal(l, 7);
    assert_int_equal(InterlockedCompareExchange16(&s, 6, 5), 5);
    assert_int_equal(_InterlockedCompareExchange16(&s, 7, 5), 6);
    assert_int_equal(s, 6);
    assert_true(InterlockedCompareExchange64(&q, -1, 5) == 5);
    assert_true(_InterlockedCompareExchange64(&q, 7, 5) == -1);
    assert_true(q == -1);
}

struct node {
    struct node *next;
};

static void pointers_may_be_typed(void **state)
{
    struct node a = {NULL}, b = {&a}, *head = &a, *volatile shared = NULL;
    PVOID raw = NULL;

    (void)state;
    assert_ptr_equal(InterlockedExchangePointer(&head, &b), &a);
    assert_ptr_equal(head, &b);
    assert_ptr_equal(_InterlockedExchangePointer(&head, &a), &b);
    assert_ptr_equal(InterlockedCompareExchangePointer(&head, &b, &b), &a);
    assert_ptr_equal(head, &a);
    assert_ptr_equal(_InterlockedCompareExchangePointer(&head, &b, &a), &a);
    assert_ptr_equal(head->next, &a);
    assert_null(InterlockedCompareExchangePointer(&shared, &a, NULL));
    assert_ptr_equal(shared, &a);
    assert_null(InterlockedExchangePointer(&raw, &b));
}

/* Arguments are evaluated once. */
static void arguments_have_their_effects_once(void **state)
{
    LONG all[2] = {1, 10};
    LONG *at = all, value = 4;

    (void)state;
    assert_int_equal(InterlockedIncrement(at++), 2);
    assert_int_equal(InterlockedExchange(at--, value++), 10);
    assert_ptr_equal(at, all);
    assert_int_equal(all[1], 4);
    assert_int_equal(value, 5);
    assert_int_equal(InterlockedCompareExchange(at++, value++, 2), 2);
    assert_int_equal(all[0], 5);
    assert_int_equal(value, 6);
}

static LONG counter;

static void count(void *arg)
{
    (void)arg;
    for (int i = 0; i < 50000; i++) {
        LONG seen = counter;

        InterlockedIncrement(&counter);
        do {
            seen = counter;
        } while (InterlockedCompareExchange(&counter, seen + 1, seen) != seen);
    }
}

static void threads_lose_no_count(void **state)
{
    struct os_thread *threads[3];

    (void)state;
    if (sanitize_thread()) /* the plain read above is what drivers do, and a race in C */
        skip();
    for (int i = 0; i < 3; i++)
        assert_int_equal(os_thread_start(&threads[i], "count", count, NULL), 0);
    for (int i = 0; i < 3; i++)
        os_thread_join(threads[i]);
    assert_int_equal(counter, 300000);
}

/* ---- macros --------------------------------------------------------------------------------- */

struct record {
    int first;
    struct {
        char before;
        LIST_ENTRY link;
    } inner;
};

C_ASSERT(sizeof(WCHAR) == 2 && sizeof(ULONG) == 4 && sizeof(LONG) == 4);
C_ASSERT(sizeof(INT_PTR) == sizeof(PVOID) && sizeof(UINT_PTR) == sizeof(PVOID));
C_ASSERT(sizeof(LONG_PTR) == sizeof(PVOID) && sizeof(SHORT) == 2);
C_ASSERT(FIELD_OFFSET(struct record, inner) == sizeof(PVOID) || sizeof(PVOID) != 8);

FORCEINLINE ULONG NTAPI forced(ULONG a)
{
    return a + 1;
}

static FORCEINLINE ULONG also_forced(ULONG a) /* consumers write both */
{
    return a + 2;
}

static CONST DECLSPEC_CACHEALIGN UCHAR aligned[3] = {1, 2, 3};

static void arithmetic_on_pages(void **state)
{
    char *p = (char *)(uintptr_t)0x12345678;

    (void)state;
    assert_int_equal(PAGE_SIZE, 1 << PAGE_SHIFT);
    assert_int_equal(BYTE_OFFSET(p), 0x678);
    assert_ptr_equal(PAGE_ALIGN(p), (void *)(uintptr_t)0x12345000);
    assert_int_equal(ROUND_TO_PAGES(1), 4096);
    assert_int_equal(ROUND_TO_PAGES(4096), 4096);
    assert_int_equal(ROUND_TO_PAGES(0), 0);
    assert_int_equal(BYTES_TO_PAGES(4097), 2);
    assert_int_equal(ADDRESS_AND_SIZE_TO_SPAN_PAGES(p, 0x988), 1);
    assert_int_equal(ADDRESS_AND_SIZE_TO_SPAN_PAGES(p, 0x989), 2);
}

static void small_macros(void **state)
{
    struct record r;
    USHORT array[7];
    PVOID nothing = NULL;

    (void)state;
    UNREFERENCED_PARAMETER(nothing);
    assert_ptr_equal(CONTAINING_RECORD(&r.inner.link, struct record, inner.link), &r);
    assert_int_equal(RTL_NUMBER_OF(array), 7);
    assert_true(ARGUMENT_PRESENT(array));
    assert_false(ARGUMENT_PRESENT(nothing));
    assert_int_equal(min(3, 4), 3);
    assert_int_equal(max(3, 4), 4);
    assert_int_equal(MAXUSHORT, 0xffff);
    assert_true(MAXULONG == 0xffffffffu);
    assert_int_equal(forced(1), 2);
    assert_int_equal(also_forced(1), 3);
    assert_int_equal((uintptr_t)aligned % 64, 0);
    assert_int_equal(IO_NO_INCREMENT, 0);
    assert_int_equal(NDIS_IF_MAX_STRING_SIZE, 256);
    assert_int_equal(MAKE_WSK_VERSION(1, 0), 0x100);
    assert_int_equal(WSK_NO_WAIT, 0);
    assert_true(WSK_INFINITE_WAIT == 0xffffffffu);
    assert_int_equal(AF_INET6, 23);
    __pragma(warning(disable : 4201)) assert_true(TRUE);
}

static void statuses_have_a_severity(void **state)
{
    (void)state;
    assert_true(NT_SUCCESS(STATUS_SUCCESS) && NT_SUCCESS(STATUS_PENDING));
    assert_true(NT_INFORMATION(STATUS_OBJECT_NAME_EXISTS) && NT_SUCCESS(STATUS_OBJECT_NAME_EXISTS));
    assert_true(NT_WARNING(STATUS_BUFFER_OVERFLOW) && !NT_SUCCESS(STATUS_BUFFER_OVERFLOW));
    assert_true(NT_ERROR(STATUS_UNSUCCESSFUL) && !NT_WARNING(STATUS_UNSUCCESSFUL));
    assert_false(NT_ERROR(STATUS_BUFFER_OVERFLOW));
    assert_true(NETIO_SUCCESS(STATUS_SUCCESS));
}

static void function_codes_are_those_of_windows(void **state)
{
    static const int codes[] = {
        IRP_MJ_CREATE,
        IRP_MJ_CLOSE,
        IRP_MJ_READ,
        IRP_MJ_WRITE,
        IRP_MJ_DEVICE_CONTROL,
        IRP_MJ_INTERNAL_DEVICE_CONTROL,
        IRP_MJ_SHUTDOWN,
        IRP_MJ_CLEANUP,
        IRP_MJ_POWER,
        IRP_MJ_SYSTEM_CONTROL,
        IRP_MJ_PNP,
        IRP_MJ_MAXIMUM_FUNCTION,
    };
    static const int want[] = {0, 2, 3, 4, 14, 15, 16, 18, 22, 23, 27, 27};

    (void)state;
    assert_memory_equal(codes, want, sizeof want);
}

/* The values that Windows gives these. */
static void enumerators_are_those_of_windows(void **state)
{
    (void)state;
    assert_int_equal(NotificationEvent, 0);
    assert_int_equal(SynchronizationEvent, 1);
    assert_int_equal(KernelMode, 0);
    assert_int_equal(UserMode, 1);
    assert_int_equal(Executive, 0);
    assert_int_equal(NonPagedPool, 0);
    assert_int_equal(PagedPool, 1);
    assert_int_equal(NonPagedPoolNx, 512);
    assert_int_equal(LowPagePriority, 0);
    assert_int_equal(NormalPagePriority, 16);
    assert_int_equal(HighPagePriority, 32);
    assert_int_equal(IoReadAccess, 0);
    assert_int_equal(IoWriteAccess, 1);
    assert_int_equal(IoModifyAccess, 2);
    assert_int_equal(CriticalWorkQueue, 0);
    assert_int_equal(DelayedWorkQueue, 1);
    assert_int_equal(KeyValueBasicInformation, 0);
    assert_int_equal(KeyValueFullInformation, 1);
    assert_int_equal(KeyValuePartialInformation, 2);
}

/* ---- types ---------------------------------------------------------------------------------- */

static DRIVER_INITIALIZE an_entry;
static DRIVER_UNLOAD an_unload;
static DRIVER_DISPATCH a_dispatch;
static IO_WORKITEM_ROUTINE a_routine;
static IO_WORKITEM_ROUTINE_EX a_routine_ex;

static NTSTATUS an_entry(PDRIVER_OBJECT driver, PUNICODE_STRING path)
{
    PDRIVER_UNLOAD unload = an_unload;
    PDRIVER_DISPATCH dispatch = a_dispatch;

    driver->DriverUnload = unload;
    driver->MajorFunction[IRP_MJ_CREATE] = dispatch;
    return path ? STATUS_SUCCESS : STATUS_INVALID_PARAMETER;
}

static VOID an_unload(PDRIVER_OBJECT driver)
{
    driver->DriverUnload = NULL;
}

static NTSTATUS a_dispatch(PDEVICE_OBJECT device, PIRP irp)
{
    (void)device;
    irp->IoStatus.Status = STATUS_SUCCESS;
    return STATUS_SUCCESS;
}

static VOID a_routine(PDEVICE_OBJECT device, PVOID context)
{
    (void)device;
    ++*(PULONG)context;
}

static VOID a_routine_ex(PVOID object, PVOID context, PIO_WORKITEM item)
{
    (void)object;
    (void)item;
    ++*(PULONG)context;
}

/* Annotations take any text and leave none, operators too. */
_IRQL_requires_max_(DISPATCH_LEVEL) _Must_inspect_result_ static NTSTATUS
    annotated(_In_opt_ PVOID a, _In_range_(>, 0) ULONG b, _Out_ PULONG c, _Frees_ptr_ PVOID d,
              __in ULONG e, __out_bcount(e) PUCHAR f, _Outref_result_nullonfailure_ PVOID *g,
              _Outref_result_buffer_(b) PVOID *h,
              __drv_savesIRQL _IRQL_limited_to_(APC_LEVEL) KIRQL i)
{
    *g = *h = i ? a : NULL;
    (void)a;
    (void)d;
    *c = b + e;
    *f = 1;
    return STATUS_SUCCESS;
}

static void function_types_declare_functions(void **state)
{
    PDRIVER_INITIALIZE entry = an_entry;
    PIO_WORKITEM_ROUTINE routine = a_routine;
    PIO_WORKITEM_ROUTINE_EX routine_ex = a_routine_ex;
    PWORKER_THREAD_ROUTINE worker = NULL;
    PIO_COMPLETION_ROUTINE completion = NULL;
    DRIVER_OBJECT driver = {.Type = 4};
    UNICODE_STRING path = RTL_CONSTANT_STRING(u"x");
    WCHAR text[] = u"y";
    PWSTR writable = text;
    PCWSTR constant = text;
    EX_POOL_PRIORITY priority = NormalPoolPriority;
    IF_INDEX index = NET_IFINDEX_UNSPECIFIED;
    ULONG calls = 0, sum;
    PVOID kept = &calls;
    UCHAR octet;

    (void)state;
    assert_int_equal(entry(&driver, &path), STATUS_SUCCESS);
    routine(NULL, &calls);
    routine_ex(NULL, &calls, NULL);
    driver.DriverUnload(&driver);
    assert_null(driver.DriverUnload);
    assert_int_equal(calls, 2);
    assert_null(worker);
    assert_null(completion);
    assert_ptr_equal(writable, constant);
    assert_int_equal(priority, 16);
    assert_int_equal(index, 0);
    assert_int_equal(annotated(NULL, 1, &sum, NULL, 2, &octet, &kept, &kept, 0), STATUS_SUCCESS);
    assert_null(kept);
    assert_int_equal(sum + octet, 4);
}

static void wsk_structures_are_there(void **state)
{
    static const WSK_CLIENT_DISPATCH dispatch = {MAKE_WSK_VERSION(1, 0), 0, NULL};
    WSK_CLIENT_NPI client = {NULL, &dispatch};
    WSK_REGISTRATION registration = {0};
    WSK_PROVIDER_NPI provider = {0};

    (void)state;
    assert_int_equal(client.Dispatch->Version, 256);
    assert_int_equal(registration.ReservedRegistrationState, 0);
    assert_null(provider.Client);
    assert_int_equal(SDDL_DEVOBJ_SYS_ALL_ADM_ALL.Length, 54);
    assert_memory_equal(SDDL_DEVOBJ_SYS_ALL_ADM_ALL.Buffer, u"D:P(A;;GA;;;SY)(A;;GA;;;BA)", 56);
}

/* ---- SEH ------------------------------------------------------------------------------------ */

static int filter_calls;

static int filter(ULONG code, PVOID information)
{
    (void)code;
    (void)information;
    filter_calls++;
    return EXCEPTION_CONTINUE_SEARCH;
}

static int bodies(int leave)
{
    int seen = 0;

    __try {
        seen |= 1;
        if (leave)
            __leave;
        seen |= 2;
    } __except (filter(_exception_code(), GetExceptionInformation())) {
        seen |= 4;
    }
    __try {
        if (leave)
            __leave;
        seen |= 8;
    } __finally {
        seen |= AbnormalTermination() ? 64 : 16;
    }
    __try {
        __try {
            seen |= 32;
        } __except (GetExceptionCode() == (ULONG)STATUS_ACCESS_VIOLATION
                        ? EXCEPTION_EXECUTE_HANDLER
                        : EXCEPTION_CONTINUE_EXECUTION) {
            seen |= 128;
        }
    } __finally {
        seen |= 256;
    }
    return seen;
}

static void bodies_run_and_handlers_do_not(void **state)
{
    (void)state;
    assert_int_equal(bodies(0), 1 | 2 | 8 | 16 | 32 | 256);
    assert_int_equal(bodies(1), 1 | 16 | 32 | 256);
    assert_int_equal(filter_calls, 0);
}

/* ---- paged code, and a free build ------------------------------------------------------------ */

static void paged_code_is_for_low_levels(void **state)
{
    unsigned findings = nt_finding_count();

    (void)state;
    PAGED_CODE();
    nt_irql_set(APC_LEVEL);
    PAGED_CODE();
    assert_int_equal(nt_finding_count(), findings);
    nt_irql_set(DISPATCH_LEVEL);
    PAGED_CODE();
    nt_irql_set(PASSIVE_LEVEL);
    ASSERT_FINDING(findings, "PAGED_CODE: IRQL too high (have 2, need <= 1), ");
}

static int evaluated;

static BOOLEAN evaluate(void)
{
    evaluated++;
    return FALSE;
}

static void a_free_build_asserts_nothing(void **state)
{
    (void)state;
    NT_ASSERT(evaluate());
    ASSERT(evaluate());
    assert_int_equal(evaluated, 0);
    NT_VERIFY(evaluate());
    assert_int_equal(evaluated, 1);
    assert_false(NT_VERIFY(evaluate()));
    assert_true(NT_VERIFY(evaluated == 2));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(arithmetic_returns_the_new_value),
        cmocka_unit_test(all_else_returns_the_former_one),
        cmocka_unit_test(an_exchange_that_compares),
        cmocka_unit_test(pointers_may_be_typed),
        cmocka_unit_test(arguments_have_their_effects_once),
        cmocka_unit_test(threads_lose_no_count),
        cmocka_unit_test(arithmetic_on_pages),
        cmocka_unit_test(small_macros),
        cmocka_unit_test(statuses_have_a_severity),
        cmocka_unit_test(function_codes_are_those_of_windows),
        cmocka_unit_test(enumerators_are_those_of_windows),
        cmocka_unit_test(function_types_declare_functions),
        cmocka_unit_test(wsk_structures_are_there),
        cmocka_unit_test(bodies_run_and_handlers_do_not),
        cmocka_unit_test(paged_code_is_for_low_levels),
        cmocka_unit_test(a_free_build_asserts_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
