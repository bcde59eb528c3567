// SPDX-License-Identifier: MIT
/*
 * Tests of semaphore.c; and of what drivers use that is in the headers alone: access in one piece,
 * alignment, pool of old names, strings of known size.
 */
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ntddk.h>
#include <ntstrsafe.h>

#include "nt/nt_testing.h"

static NTSTATUS wait_for(PVOID object, int64_t timeout)
{
    LARGE_INTEGER t = {.QuadPart = timeout};

    return KeWaitForSingleObject(object, Executive, KernelMode, FALSE, &t);
}

static void a_wait_takes_one(void **state)
{
    KSEMAPHORE s;
    PKSEMAPHORE p = &s;

    (void)state;
    KeInitializeSemaphore(p, 2, 5);
    assert_int_equal(KeReadStateSemaphore(p), 2);
    assert_int_equal(wait_for(p, 0), STATUS_SUCCESS);
    assert_int_equal(wait_for(p, -1), STATUS_SUCCESS);
    assert_int_equal(wait_for(p, 0), STATUS_TIMEOUT);
    assert_int_equal(KeReleaseSemaphore(p, IO_NO_INCREMENT, 3, FALSE), 0);
    assert_int_equal(KeReleaseSemaphore(p, IO_NO_INCREMENT, 2, FALSE), 3);
    assert_int_equal(KeReadStateSemaphore(p), 5);
}

enum { WAITERS = 4 };

struct crowd {
    KSEMAPHORE semaphore;
    KEVENT other;
    atomic_int through;
};

/* Half of them wait for an event as well, which never comes. */
static void *crowd_one(void *argument)
{
    struct crowd *c = argument;

    if (wait_for(&c->semaphore, -(int64_t)LIMIT_S * 10000000) == STATUS_SUCCESS)
        atomic_fetch_add(&c->through, 1);
    return NULL;
}

static void *crowd_any(void *argument)
{
    struct crowd *c = argument;
    PVOID objects[2] = {&c->other, &c->semaphore};
    LARGE_INTEGER t = {.QuadPart = -(int64_t)LIMIT_S * 10000000};

    if (KeWaitForMultipleObjects(2, objects, WaitAny, Executive, KernelMode, FALSE, &t, NULL) ==
        STATUS_WAIT_1)
        atomic_fetch_add(&c->through, 1);
    return NULL;
}

static void a_release_ends_as_many_waits(void **state)
{
    pthread_t threads[WAITERS];
    struct crowd c = {.through = 0};

    (void)state;
    KeInitializeSemaphore(&c.semaphore, 0, 100);
    KeInitializeEvent(&c.other, NotificationEvent, FALSE);
    for (int i = 0; i < WAITERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, i % 2 ? crowd_any : crowd_one, &c), 0);
    KeReleaseSemaphore(&c.semaphore, 0, 3, FALSE);
    AWAIT(atomic_load(&c.through) == 3);
    assert_int_equal(KeReadStateSemaphore(&c.semaphore), 0);
    KeReleaseSemaphore(&c.semaphore, 0, 2, FALSE);
    for (int i = 0; i < WAITERS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(atomic_load(&c.through), WAITERS);
    assert_int_equal(KeReadStateSemaphore(&c.semaphore), 1);
}

static void more_than_the_limit_is_a_finding(void **state)
{
    unsigned findings = nt_finding_count();
    KSEMAPHORE s;

    (void)state;
    KeInitializeSemaphore(&s, 1, 2);
    assert_int_equal(KeReleaseSemaphore(&s, 0, 2, FALSE), 1);
    ASSERT_FINDING(findings, "KeReleaseSemaphore: the limit is exceeded (have 1, add 2, limit 2)");
    assert_int_equal(KeReadStateSemaphore(&s), 1);
    KeInitializeSemaphore(&s, 3, 2);
    ASSERT_FINDING(findings + 1, "KeInitializeSemaphore: the count does not fit");
}

/* ---- headers alone ---- */

static void one_access_reads_and_writes(void **state)
{
    volatile LONG l = 1;
    LONG64 q = 1;
    ULONG u = 1;
    ULONG64 uq = 5;
    PVOID p = NULL;
    const LONG fixed = 9;

    (void)state;
    WriteRelease(&l, -5);
    assert_int_equal(ReadAcquire(&l), -5);
    WriteNoFence(&l, 6);
    assert_int_equal(ReadNoFence(&l), 6);
    assert_int_equal(ReadNoFence(&fixed), 9);
    WriteRelease64(&q, 1ll << 40);
    assert_true(ReadAcquire64(&q) == 1ll << 40);
    WriteNoFence64(&q, -1);
    assert_true(ReadNoFence64(&q) == -1);
    WriteULongRelease(&u, MAXULONG);
    assert_true(ReadULongAcquire(&u) == MAXULONG);
    WriteULongNoFence(&u, 7);
    assert_true(ReadULongNoFence(&u) == 7);
    assert_true(ReadULong64Acquire(&uq) == 5 && ReadULong64NoFence(&uq) == 5);
    WritePointerRelease(&p, &l);
    assert_ptr_equal(ReadPointerAcquire(&p), &l);
    WritePointerNoFence(&p, NULL);
    assert_null(ReadPointerNoFence(&p));
    KeMemoryBarrier();
    KeMemoryBarrierWithoutFence();
    MemoryBarrier();
    YieldProcessor();
    l = 0;
    assert_false(InterlockedBitTestAndSet(&l, 31));
    assert_true(InterlockedBitTestAndSet(&l, 31));
    assert_true(l == (LONG)MINLONG);
    assert_true(InterlockedBitTestAndReset(&l, 31));
    assert_false(InterlockedBitTestAndReset(&l, 31));
    assert_int_equal(InterlockedIncrementNoFence(&l), 1);
    assert_int_equal(InterlockedDecrementRelease(&l), 0);
    assert_int_equal(InterlockedCompareExchangeAcquire(&l, 4, 0), 0);
    assert_null(InterlockedExchangePointerNoFence(&p, &q));
    assert_int_equal(l, 4);
}

EXTERN_C LONG UnusedByAnybody;

static void alignment_and_limits(void **state)
{
    ULONG unused = 3;

    (void)state;
    UNREFERENCED_LOCAL_VARIABLE(unused);
    assert_true(ALIGN_UP_BY(4097, PAGE_SIZE) == 8192 && ALIGN_UP_BY(4096, PAGE_SIZE) == 4096);
    assert_true(ALIGN_DOWN_BY(4097, PAGE_SIZE) == 4096);
    assert_true(ALIGN_UP(5, ULONG) == 8 && ALIGN_DOWN(5, ULONG) == 4);
    assert_ptr_equal(ALIGN_UP_POINTER_BY((PVOID)17, 16), (PVOID)32);
    assert_ptr_equal(ALIGN_DOWN_POINTER_BY((PVOID)17, 16), (PVOID)16);
    assert_ptr_equal(ALIGN_UP_POINTER((PVOID)9, ULONG64), (PVOID)16);
    assert_ptr_equal(ALIGN_DOWN_POINTER((PVOID)9, ULONG64), (PVOID)8);
    assert_int_equal(MEMORY_ALLOCATION_ALIGNMENT, 2 * sizeof(PVOID));
    assert_true(MAXUINT8 == 0xff && MAXUINT16 == 0xffff && MAXUINT32 == 0xffffffff);
    assert_true(MAXUINT64 + 1 == 0);
    assert_int_equal(DPFLTR_IHVNETWORK_ID, 80);
    assert_int_equal(DPFLTR_DEFAULT_ID, 101);
}

static void memory_by_old_names(void **state)
{
    unsigned char *p, text[3] = {1, 2, 3};

    (void)state;
    ExInitializeDriverRuntime(DrvRtPoolNxOptIn);
    p = ExAllocatePoolZero(NonPagedPoolNx, 300, 'dloT');
    assert_non_null(p);
    for (int i = 0; i < 300; i++)
        assert_int_equal(p[i], 0);
    ExFreePoolWithTag(p, 'dloT');
    p = ExAllocatePoolUninitialized(NonPagedPool, 3, 'dloT');
    assert_non_null(p);
    RtlCopyBytes(p, text, 3);
    assert_int_equal(p[2], 3);
    RtlZeroBytes(p, 1);
    RtlSecureZeroMemory(p + 1, 2);
    assert_int_equal(p[0] + p[1] + p[2], 0);
    ExFreePoolWithTag(p, 'dloT');
}

static void strings_of_known_size(void **state)
{
    static const WCHAR wide[] = {'w', 'i', 'd', 'e', 0};
    WCHAR w[8];
    CHAR a[8];
    size_t n = 99;

    (void)state;
    assert_int_equal(RtlStringCchCopyA(a, 8, "seven77"), STATUS_SUCCESS);
    assert_string_equal(a, "seven77");
    assert_int_equal(RtlStringCbCopyA(a, 8, "eight888"), STATUS_BUFFER_OVERFLOW);
    assert_string_equal(a, "eight88");
    assert_int_equal(RtlStringCchCopyA(a, 0, "x"), STATUS_INVALID_PARAMETER);
    assert_int_equal(RtlStringCchCopyNA(a, 8, "abcdef", 2), STATUS_SUCCESS);
    assert_string_equal(a, "ab");
    assert_int_equal(RtlStringCchCatA(a, 8, "cd"), STATUS_SUCCESS);
    assert_int_equal(RtlStringCbCatA(a, 8, "efghi"), STATUS_BUFFER_OVERFLOW);
    assert_string_equal(a, "abcdefg");
    assert_int_equal(RtlStringCbCopyNA(a, 8, "xyz", 1), STATUS_SUCCESS);
    assert_int_equal(RtlStringCchLengthA(a, 8, &n), STATUS_SUCCESS);
    assert_int_equal(n, 1);
    assert_int_equal(RtlStringCbLengthA("abcd", 4, &n), STATUS_INVALID_PARAMETER);
    assert_int_equal(RtlStringCchCopyW(w, 8, wide), STATUS_SUCCESS);
    assert_int_equal(RtlStringCbCatW(w, sizeof(w), wide), STATUS_BUFFER_OVERFLOW);
    assert_int_equal(RtlStringCbLengthW(w, sizeof(w), &n), STATUS_SUCCESS);
    assert_int_equal(n, 14);
    assert_int_equal(RtlStringCbCopyW(w, 4, wide), STATUS_BUFFER_OVERFLOW);
    assert_int_equal(RtlStringCchLengthW(w, 8, &n), STATUS_SUCCESS);
    assert_int_equal(n, 1);
    assert_int_equal(RtlStringCchCatW(w, 8, wide), STATUS_SUCCESS);
    assert_int_equal(RtlStringCchCopyNW(w, 8, wide, 3), STATUS_SUCCESS);
    assert_int_equal(RtlStringCbCopyNW(w, 8, wide, 2), STATUS_SUCCESS);
    assert_int_equal(RtlStringCchLengthW(w, 8, NULL), STATUS_SUCCESS);
    assert_int_equal(w[0], 'w');
    assert_int_equal(w[1], 0);
}

static void assert_in_every_build(void *arg)
{
    NT_FRE_ASSERT(arg && !arg);
}

static void assertions_with_words(void **state)
{
    static char text[16384];
    int status;

    (void)state;
    NT_ASSERTMSG("right", text[0] == 0);
    ASSERTMSG("right", text[0] == 0);
    NT_FRE_ASSERT(text[0] == 0);
    status = child_run(assert_in_every_build, text, text, sizeof(text));
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    assert_non_null(strstr(text, "arg && !arg"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_wait_takes_one),
        cmocka_unit_test(a_release_ends_as_many_waits),
        cmocka_unit_test(more_than_the_limit_is_a_finding),
        cmocka_unit_test(one_access_reads_and_writes),
        cmocka_unit_test(alignment_and_limits),
        cmocka_unit_test(memory_by_old_names),
        cmocka_unit_test(strings_of_known_size),
        cmocka_unit_test(assertions_with_words),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
