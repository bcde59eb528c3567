// SPDX-License-Identifier: MIT
/*
 * Tests of thread.c: a thread's life, waiting for its end, references, misuse.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "nt/left.h"
#include "nt/nt_testing.h"
#include "os/os.h"

static NTSTATUS wait_for(PVOID object, int64_t timeout)
{
    LARGE_INTEGER t = {.QuadPart = timeout};

    return KeWaitForSingleObject(object, Executive, KernelMode, FALSE, &t);
}

static NTSTATUS wait_long(PVOID object)
{
    return wait_for(object, -LIMIT_S * 10000000ll);
}

/* Starts a thread; its object with a reference, the handle closed. */
static PVOID start(PKSTART_ROUTINE routine, PVOID context)
{
    OBJECT_ATTRIBUTES oa;
    HANDLE handle;
    PVOID object;

    InitializeObjectAttributes(&oa, NULL, OBJ_KERNEL_HANDLE, NULL, NULL);
    assert_int_equal(
        PsCreateSystemThread(&handle, THREAD_ALL_ACCESS, &oa, NULL, NULL, routine, context),
        STATUS_SUCCESS);
    assert_int_equal(ObReferenceObjectByHandle(handle, THREAD_ALL_ACCESS, *PsThreadType, KernelMode,
                                               &object, NULL),
                     STATUS_SUCCESS);
    assert_int_equal(ZwClose(handle), STATUS_SUCCESS);
    return object;
}

struct life {
    KEVENT go;
    KIRQL irql;
    PKTHREAD self;
    HANDLE id;
    atomic_int after;
};

static KSTART_ROUTINE live;

static VOID live(PVOID context)
{
    struct life *l = context;

    l->irql = KeGetCurrentIrql();
    l->self = KeGetCurrentThread();
    l->id = PsGetCurrentThreadId();
    (void)wait_long(&l->go);
}

static VOID end_early(PVOID context)
{
    struct life *l = context;

    (void)wait_long(&l->go);
    PsTerminateSystemThread(STATUS_UNSUCCESSFUL);
    atomic_store(&l->after, 1); /* not reached */
}

static void a_thread_is_signalled_when_it_ends(void **state)
{
    PKSTART_ROUTINE routines[] = {live, end_early};
    unsigned findings = nt_finding_count();

    (void)state;
    for (int i = 0; i < 2; i++) {
        size_t threads = nt_left_count(NT_LEFT_THREAD), handles = nt_left_count(NT_LEFT_HANDLE);
        struct life l = {.irql = HIGH_LEVEL};
        PVOID object;

        KeInitializeEvent(&l.go, NotificationEvent, FALSE);
        object = start(routines[i], &l);
        assert_int_equal(nt_left_count(NT_LEFT_THREAD), threads + 1);
        assert_int_equal(nt_left_count(NT_LEFT_HANDLE), handles);
        assert_int_equal(wait_for(object, -50000), STATUS_TIMEOUT);
        KeSetEvent(&l.go, 0, FALSE);
        assert_int_equal(wait_long(object), STATUS_SUCCESS);
        assert_int_equal(wait_for(object, 0), STATUS_SUCCESS); /* for good */
        if (i == 0) {
            assert_int_equal(l.irql, PASSIVE_LEVEL);
            assert_ptr_equal(l.self, object);
            assert_ptr_not_equal(l.id, PsGetCurrentThreadId());
        }
        assert_int_equal(l.after, 0);
        ObDereferenceObject(object);
        AWAIT(nt_left_count(NT_LEFT_THREAD) == threads); /* its own reference goes last */
    }
    assert_int_equal(nt_finding_count(), findings);
}

static VOID only_return(PVOID context)
{
    (void)context;
}

static void a_thread_needs_nobody(void **state)
{
    size_t threads = nt_left_count(NT_LEFT_THREAD);
    CLIENT_ID id;
    HANDLE handle;

    (void)state;
    for (int i = 0; i < 100; i++) {
        assert_int_equal(PsCreateSystemThread(&handle, 0, NULL, NULL, &id, only_return, NULL),
                         STATUS_SUCCESS);
        assert_non_null(id.UniqueThread);
        assert_int_equal(ZwClose(handle), STATUS_SUCCESS);
    }
    AWAIT(nt_left_count(NT_LEFT_THREAD) == threads);
}

static void every_thread_has_an_identity(void **state)
{
    PKTHREAD me = KeGetCurrentThread();
    PETHREAD also = PsGetCurrentThread();

    (void)state;
    assert_non_null(me);
    assert_ptr_equal(KeGetCurrentThread(), me);
    assert_ptr_equal(also, me);
    assert_int_equal(KeSetPriorityThread(me, LOW_REALTIME_PRIORITY), 8);
    assert_int_equal(KeSetPriorityThread(me, HIGH_PRIORITY), LOW_REALTIME_PRIORITY);
    assert_int_equal(KeSetPriorityThread(me, LOW_PRIORITY + 8), HIGH_PRIORITY);
    assert_ptr_equal(PsGetCurrentThreadId(), PsGetCurrentThreadId());
}

/* ---- references ------------------------------------------------------------------------------ */

static void references_keep_the_object(void **state)
{
    unsigned findings = nt_finding_count();
    size_t threads = nt_left_count(NT_LEFT_THREAD);
    OBJECT_HANDLE_INFORMATION information;
    struct life l = {.irql = 0};
    PVOID object, same;
    HANDLE handle;

    (void)state;
    KeInitializeEvent(&l.go, NotificationEvent, FALSE);
    assert_int_equal(PsCreateSystemThread(&handle, SYNCHRONIZE, NULL, NULL, NULL, live, &l),
                     STATUS_SUCCESS);
    assert_int_equal(
        ObReferenceObjectByHandle(handle, SYNCHRONIZE, NULL, KernelMode, &object, &information),
        STATUS_SUCCESS);
    assert_int_equal(information.GrantedAccess, SYNCHRONIZE);
    assert_int_equal(ObReferenceObjectByHandle(handle, THREAD_ALL_ACCESS, *PsThreadType, KernelMode,
                                               &same, NULL),
                     STATUS_ACCESS_DENIED);
    assert_null(same);
    assert_int_equal(ObReferenceObject(object), 4); /* handle, thread, and two */
    assert_int_equal(ObfReferenceObject(object), 5);
    assert_int_equal(ObfDereferenceObject(object), 4);
    assert_int_equal(ObDereferenceObject(object), 3);
    ZwClose(handle);
    KeSetEvent(&l.go, 0, FALSE);
    assert_int_equal(wait_long(object), STATUS_SUCCESS);
    assert_int_equal(nt_left_count(NT_LEFT_THREAD), threads + 1); /* still referenced */
    ObDereferenceObject(object);
    AWAIT(nt_left_count(NT_LEFT_THREAD) == threads);
    assert_int_equal(nt_finding_count(), findings);
}

/* ---- misuse --------------------------------------------------------------------------------- */

static VOID end_raised(PVOID context)
{
    (void)context;
    KeEnterCriticalRegion();
}

static void misuse_is_found(void **state)
{
    unsigned findings = nt_finding_count();
    UNICODE_STRING path = RTL_CONSTANT_STRING(u"\\Registry\\Machine");
    OBJECT_ATTRIBUTES oa;
    HANDLE key, handle;
    PVOID object;

    (void)state;
    assert_int_equal(PsTerminateSystemThread(STATUS_SUCCESS), STATUS_INVALID_PARAMETER);
    ASSERT_FINDING(findings, "PsCreateSystemThread did not start this thread");
    ObDereferenceObject(&path);
    ASSERT_FINDING(findings + 1, "ObDereferenceObject: ");
    ObReferenceObject(&path);
    ASSERT_FINDING(findings + 2, "ObReferenceObject: ");
    assert_int_equal(PsCreateSystemThread(NULL, 0, NULL, NULL, NULL, only_return, NULL),
                     STATUS_INVALID_PARAMETER);
    assert_int_equal(PsCreateSystemThread(&handle, 0, NULL, NULL, NULL, NULL, NULL),
                     STATUS_INVALID_PARAMETER);
    assert_int_equal(nt_finding_count(), findings + 3);

    object = start(end_raised, NULL);
    assert_int_equal(wait_long(object), STATUS_SUCCESS);
    ASSERT_FINDING(findings + 3, "returned with something held");
    ObDereferenceObject(object);

    unsetenv("SOFTNDK_REGISTRY");
    InitializeObjectAttributes(&oa, &path, OBJ_KERNEL_HANDLE, NULL, NULL);
    assert_int_equal(ZwOpenKey(&key, KEY_READ, &oa), STATUS_SUCCESS);
    assert_int_equal(ObReferenceObjectByHandle(key, 0, NULL, KernelMode, &object, NULL),
                     STATUS_OBJECT_TYPE_MISMATCH);
    ZwClose(key);
    assert_int_equal(ObReferenceObjectByHandle(key, 0, NULL, KernelMode, &object, NULL),
                     STATUS_INVALID_HANDLE);
    ASSERT_FINDING(findings + 4, "is no open handle");
    assert_int_equal(
        ObReferenceObjectByHandle(key, 0, (POBJECT_TYPE)&path, KernelMode, &object, NULL),
        STATUS_OBJECT_TYPE_MISMATCH);
}

static void a_thread_that_cannot_be_started_leaves_nothing(void **state)
{
    size_t threads = nt_left_count(NT_LEFT_THREAD), handles = nt_left_count(NT_LEFT_HANDLE);
    HANDLE handle;

    (void)state;
    AWAIT(nt_left_count(NT_LEFT_THREAD) == 0); /* those of before are on their way */
    threads = 0;
    assert_int_equal(os_fault_set("thread", 1, EAGAIN, false), 0);
    assert_int_equal(PsCreateSystemThread(&handle, 0, NULL, NULL, NULL, only_return, NULL),
                     STATUS_INSUFFICIENT_RESOURCES);
    os_fault_clear();
    assert_int_equal(nt_left_count(NT_LEFT_THREAD), threads);
    assert_int_equal(nt_left_count(NT_LEFT_HANDLE), handles);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thread_is_signalled_when_it_ends),
        cmocka_unit_test(a_thread_needs_nobody),
        cmocka_unit_test(every_thread_has_an_identity),
        cmocka_unit_test(references_keep_the_object),
        cmocka_unit_test(misuse_is_found),
        cmocka_unit_test(a_thread_that_cannot_be_started_leaves_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
