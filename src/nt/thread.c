// SPDX-License-Identifier: MIT
/*
 * Threads that drivers start, and references to their objects.
 *
 * The object is a dispatcher header, signalled when the thread ends, and a counted object
 * (handle.h): the handle holds a reference, and the thread itself does until it has ended. A thread
 * that nobody started through here has an object too, in its own storage, so that it has an
 * identity; that one is not counted and must not be waited for beyond the thread's life.
 */
#include <stdatomic.h>
#include <stdlib.h>

#include "base/red.h"
#include "nt/handle.h"
#include "nt/left.h"
#include "nt/nt.h"
#include "nt/wait.h"
#include "os/os_sync.h"

struct _KTHREAD {
    DISPATCHER_HEADER header; /* first: it is waited for by this address */
    struct nt_object object;
    PKSTART_ROUTINE routine;
    PVOID context;
    KPRIORITY priority;
    bool started_here;
    NTSTATUS exit_status;
};

struct _OBJECT_TYPE {
    const char *name;
};

static struct _OBJECT_TYPE thread_type = {"Thread"};
static POBJECT_TYPE thread_type_pointer = &thread_type;
POBJECT_TYPE *PsThreadType = &thread_type_pointer;

enum { PRIORITY_NORMAL = 8 };

static _Thread_local PKTHREAD current;
static _Thread_local struct _KTHREAD own; /* of a thread that was not started here */

static void thread_destroy(struct nt_object *object)
{
    PKTHREAD thread = CONTAINING_RECORD(object, struct _KTHREAD, object);

    (void)nt_left_drop(NT_LEFT_THREAD, thread);
    free(thread);
}

/* The end of a thread, in it: its object is signalled, and may be gone then. */
static void thread_end(PKTHREAD thread, NTSTATUS status)
{
    nt_routine_returned("thread", (const void *)(ULONG_PTR)thread->routine, PASSIVE_LEVEL);
    thread->exit_status = status;
    current = NULL;
    if (!RED("nt-thread-end-unsignalled"))
        (void)nt_header_signal(&thread->header);
    nt_object_release(&thread->object, "thread", NULL);
}

static void thread_main(void *arg)
{
    PKTHREAD thread = arg;

    current = thread;
    thread->routine(thread->context);
    thread_end(thread, STATUS_SUCCESS);
}

NTSTATUS PsCreateSystemThread(PHANDLE ThreadHandle, ULONG DesiredAccess,
                              POBJECT_ATTRIBUTES ObjectAttributes, HANDLE ProcessHandle,
                              PCLIENT_ID ClientId, PKSTART_ROUTINE StartRoutine, PVOID StartContext)
{
    PKTHREAD thread;
    HANDLE handle;

    (void)ObjectAttributes;
    (void)ProcessHandle;
    (void)nt_irql_at_most(PASSIVE_LEVEL, "PsCreateSystemThread", NT_CALLER);
    if (!ThreadHandle || !StartRoutine)
        return STATUS_INVALID_PARAMETER;
    thread = calloc(1, sizeof *thread);
    if (!thread || !nt_left_add(NT_LEFT_THREAD, thread, 0, 0, 0, NT_CALLER)) {
        free(thread);
        return STATUS_INSUFFICIENT_RESOURCES;
    }
    (void)nt_header_init(&thread->header, NT_THREAD, 0, false);
    nt_object_init(&thread->object, NT_OBJECT_THREAD, thread_destroy);
    thread->routine = StartRoutine;
    thread->context = StartContext;
    thread->priority = PRIORITY_NORMAL;
    thread->started_here = true;
    handle = nt_handle_open(&thread->object, DesiredAccess ? DesiredAccess : THREAD_ALL_ACCESS,
                            NT_CALLER);
    if (!handle) {
        nt_object_release(&thread->object, "PsCreateSystemThread", NT_CALLER);
        return STATUS_INSUFFICIENT_RESOURCES;
    }
    nt_object_reference(&thread->object); /* the thread's */
    if (os_thread_start_detached("ndk-system", thread_main, thread) != 0) {
        nt_object_release(&thread->object, "PsCreateSystemThread", NT_CALLER);
        (void)ZwClose(handle);
        return STATUS_INSUFFICIENT_RESOURCES;
    }
    *ThreadHandle = handle;
    if (ClientId)
        *ClientId = (CLIENT_ID){.UniqueProcess = (HANDLE)4, .UniqueThread = handle};
    return STATUS_SUCCESS;
}

NTSTATUS PsTerminateSystemThread(NTSTATUS ExitStatus)
{
    (void)nt_irql_at_most(PASSIVE_LEVEL, "PsTerminateSystemThread", NT_CALLER);
    if (!current || !current->started_here) {
        nt_finding_from(NT_CALLER,
                        "PsTerminateSystemThread: PsCreateSystemThread did not start this thread");
        return STATUS_INVALID_PARAMETER;
    }
    thread_end(current, ExitStatus);
    os_thread_exit();
}

PKTHREAD KeGetCurrentThread(VOID)
{
    if (!current) {
        (void)nt_header_init(&own.header, NT_THREAD, 0, false);
        own.priority = PRIORITY_NORMAL;
        current = &own;
    }
    return current;
}

HANDLE PsGetCurrentThreadId(VOID)
{
    return (HANDLE)(ULONG_PTR)os_thread_id();
}

KPRIORITY KeSetPriorityThread(PKTHREAD Thread, KPRIORITY Priority)
{
    return __atomic_exchange_n(&Thread->priority, Priority, __ATOMIC_RELAXED);
}

/* ---- references ------------------------------------------------------------------------------ */

NTSTATUS ObReferenceObjectByHandle(HANDLE Handle, ACCESS_MASK DesiredAccess,
                                   POBJECT_TYPE ObjectType, KPROCESSOR_MODE AccessMode,
                                   PVOID *Object, POBJECT_HANDLE_INFORMATION HandleInformation)
{
    struct nt_object *object;
    NTSTATUS status;

    (void)AccessMode;
    (void)nt_irql_at_most(PASSIVE_LEVEL, "ObReferenceObjectByHandle", NT_CALLER);
    if (!Object)
        return STATUS_INVALID_PARAMETER;
    *Object = NULL;
    if (ObjectType && ObjectType != *PsThreadType)
        return STATUS_OBJECT_TYPE_MISMATCH;
    status = nt_handle_get(Handle, NT_OBJECT_THREAD, DesiredAccess, &object,
                           "ObReferenceObjectByHandle", NT_CALLER);
    if (status != STATUS_SUCCESS)
        return status;
    *Object = CONTAINING_RECORD(object, struct _KTHREAD, object);
    if (HandleInformation)
        *HandleInformation = (OBJECT_HANDLE_INFORMATION){
            .HandleAttributes = OBJ_KERNEL_HANDLE,
            .GrantedAccess = nt_handle_access(Handle),
        };
    return STATUS_SUCCESS;
}

/* The counted object, or NULL and a finding. */
static struct nt_object *object_of(PVOID address, const char *call, const void *caller)
{
    (void)nt_irql_at_most(DISPATCH_LEVEL, call, caller);
    if (nt_left_find(NT_LEFT_THREAD, address, NULL, NULL))
        return &((PKTHREAD)address)->object;
    nt_finding_from(caller, "%s: %p is no object, or has no reference left", call, address);
    return NULL;
}

LONG_PTR ObfReferenceObject(PVOID Object)
{
    struct nt_object *object = object_of(Object, "ObReferenceObject", NT_CALLER);

    if (!object)
        return 0;
    return (LONG_PTR)atomic_fetch_add_explicit(&object->references, 1, memory_order_relaxed) + 1;
}

LONG_PTR ObfDereferenceObject(PVOID Object)
{
    struct nt_object *object = object_of(Object, "ObDereferenceObject", NT_CALLER);

    if (!object)
        return 0;
    return (LONG_PTR)nt_object_release(object, "ObDereferenceObject", NT_CALLER);
}
