// SPDX-License-Identifier: MIT
/*
 * wdm/thread.h - threads of a driver's own, and the objects behind handles. A part of wdm.h;
 * include that.
 */
#ifndef SOFTNDK_WDM_THREAD_H
#define SOFTNDK_WDM_THREAD_H

#include "io.h"
#include "zw.h"

SOFTNDK_BEGIN_C

typedef VOID KSTART_ROUTINE(PVOID StartContext);
typedef KSTART_ROUTINE *PKSTART_ROUTINE;

typedef struct _CLIENT_ID {
    HANDLE UniqueProcess;
    HANDLE UniqueThread;
} CLIENT_ID, *PCLIENT_ID;

#define THREAD_ALL_ACCESS (STANDARD_RIGHTS_REQUIRED | SYNCHRONIZE | 0xFFFF)

/*
 * Starts a thread at PASSIVE_LEVEL. The handle is to be closed; to wait for the thread, take a
 * reference with ObReferenceObjectByHandle and give the object to KeWaitForSingleObject. Attributes
 * and process have no effect. PASSIVE_LEVEL. STATUS_SUCCESS, STATUS_INVALID_PARAMETER,
 * STATUS_INSUFFICIENT_RESOURCES. A thread that runs at the end is reported; one that ends with
 * something held is a finding.
 */
NTSTATUS PsCreateSystemThread(PHANDLE ThreadHandle, ULONG DesiredAccess,
                              POBJECT_ATTRIBUTES ObjectAttributes, HANDLE ProcessHandle,
                              PCLIENT_ID ClientId, PKSTART_ROUTINE StartRoutine,
                              PVOID StartContext);

/* Ends the calling thread, which PsCreateSystemThread started (any other: a finding, and
 * STATUS_INVALID_PARAMETER). Its start routine may also just return. */
NTSTATUS PsTerminateSystemThread(NTSTATUS ExitStatus);

/* The calling thread, without a reference; each thread has an object. */
PKTHREAD KeGetCurrentThread(VOID);
#define PsGetCurrentThread() ((PETHREAD)KeGetCurrentThread())
HANDLE PsGetCurrentThreadId(VOID);

/* The former priority. It is noted and has no effect. */
KPRIORITY KeSetPriorityThread(PKTHREAD Thread, KPRIORITY Priority);
#define LOW_PRIORITY          0
#define LOW_REALTIME_PRIORITY 16
#define HIGH_PRIORITY         31

/* ---- objects ---- */

typedef struct _OBJECT_TYPE *POBJECT_TYPE;
typedef struct _OBJECT_HANDLE_INFORMATION {
    ULONG HandleAttributes;
    ACCESS_MASK GrantedAccess;
} OBJECT_HANDLE_INFORMATION, *POBJECT_HANDLE_INFORMATION;

extern POBJECT_TYPE *PsThreadType;

/*
 * The object of a thread's handle, with a reference to be dropped. ObjectType: *PsThreadType, or
 * NULL for whatever it is. STATUS_SUCCESS, STATUS_INVALID_HANDLE (and a finding),
 * STATUS_OBJECT_TYPE_MISMATCH (also for the handles of keys and files, whose objects are not
 * shown), STATUS_ACCESS_DENIED. PASSIVE_LEVEL.
 */
NTSTATUS ObReferenceObjectByHandle(HANDLE Handle, ACCESS_MASK DesiredAccess,
                                   POBJECT_TYPE ObjectType, KPROCESSOR_MODE AccessMode,
                                   PVOID *Object, POBJECT_HANDLE_INFORMATION HandleInformation);

/* Of a thread's object; anything else, or more drops than references, is a finding.
 * IRQL <= DISPATCH_LEVEL. How many references there are now. */
LONG_PTR ObfReferenceObject(PVOID Object);
LONG_PTR ObfDereferenceObject(PVOID Object);
#define ObReferenceObject(Object)   ObfReferenceObject(Object)
#define ObDereferenceObject(Object) ObfDereferenceObject(Object)

SOFTNDK_END_C

#endif /* SOFTNDK_WDM_THREAD_H */
