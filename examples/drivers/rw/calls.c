// SPDX-License-Identifier: MIT
/* calls.c - calls that may pend, made to wait; memory and its pages. See rw.h. */
#include "rw.h"

/* ---- calls that pend ---- */

VOID OnCreated(_In_opt_ PVOID Context, _In_ NTSTATUS Status, _In_ NDK_OBJECT_HEADER *Object)
{
    CALL *call = (CALL *)Context;

    call->Status = Status;
    call->Object = Object;
    KeSetEvent(&call->Done, IO_NO_INCREMENT, FALSE);
}

VOID OnRequest(_In_opt_ PVOID Context, _In_ NTSTATUS Status)
{
    OnCreated(Context, Status, NULL);
}

VOID OnClosed(_In_opt_ PVOID Context)
{
    if (Context)
        OnCreated(Context, STATUS_SUCCESS, NULL);
}

CALL *Begin(_Out_ CALL *Call)
{
    KeInitializeEvent(&Call->Done, NotificationEvent, FALSE);
    Call->Object = NULL;
    return Call;
}

/* The final status of a call; for a create that pended the object, too. */
NTSTATUS End(_Inout_ CALL *Call, _In_ NTSTATUS Status, _Out_opt_ PVOID ObjectPlace)
{
    if (Status != STATUS_PENDING)
        return Status;
    KeWaitForSingleObject(&Call->Done, Executive, KernelMode, FALSE, NULL);
    if (NT_SUCCESS(Call->Status) && ObjectPlace)
        *(NDK_OBJECT_HEADER **)ObjectPlace = Call->Object;
    return Call->Status;
}

VOID Close(_In_opt_ PVOID Object, _In_ NDK_FN_CLOSE_OBJECT Function)
{
    CALL call;

    End(&call, Function((NDK_OBJECT_HEADER *)Object, OnClosed, Begin(&call)), NULL);
}

/* Waits for one of two events. TRUE: it was the first. */
BOOLEAN WaitFirst(_In_ PKEVENT First, _In_ PKEVENT Second, _In_ ULONG Seconds)
{
    PVOID objects[2] = {First, Second};
    LARGE_INTEGER limit;

    limit.QuadPart = -(LONGLONG)Seconds * 10000000;
    return KeWaitForMultipleObjects(2, objects, WaitAny, Executive, KernelMode, FALSE,
                                    Seconds ? &limit : NULL, NULL) == STATUS_WAIT_0;
}

/* ---- memory ---- */

VOID MemoryFree(_In_ END *OfEnd, _Inout_ MEMORY *Memory)
{
    if (Memory->Lam) {
        if (Memory->Lam->AdapterPageCount)
            OfEnd->Adapter->Dispatch->NdkReleaseLAM(OfEnd->Adapter, Memory->Lam);
        ExFreePoolWithTag(Memory->Lam, TAG);
    }
    if (Memory->Mdl)
        IoFreeMdl(Memory->Mdl);
    if (Memory->Va)
        ExFreePoolWithTag(Memory->Va, TAG);
    RtlZeroMemory(Memory, sizeof(*Memory));
}

NTSTATUS MemoryAllocate(_Out_ MEMORY *Memory, _In_ ULONG Length)
{
    RtlZeroMemory(Memory, sizeof(*Memory));
    Memory->Va = (PUCHAR)ExAllocatePool2(POOL_FLAG_NON_PAGED, Length, TAG);
    Memory->Mdl = Memory->Va ? IoAllocateMdl(Memory->Va, Length, FALSE, FALSE, NULL) : NULL;
    if (!Memory->Mdl)
        return STATUS_INSUFFICIENT_RESOURCES;
    MmBuildMdlForNonPagedPool(Memory->Mdl);
    return STATUS_SUCCESS;
}

/* The adapter's pages of memory that begins on a page. */
NTSTATUS MemoryMap(_In_ END *OfEnd, _Inout_ MEMORY *Memory)
{
    ULONG pages = ADDRESS_AND_SIZE_TO_SPAN_PAGES(Memory->Va, MmGetMdlByteCount(Memory->Mdl));
    ULONG size = FIELD_OFFSET(NDK_LOGICAL_ADDRESS_MAPPING, AdapterPageArray) +
                 pages * sizeof(NDK_LOGICAL_ADDRESS);
    ULONG fbo = 0;
    CALL call;
    NTSTATUS status;

    NT_ASSERT(BYTE_OFFSET(Memory->Va) == 0);
    Memory->Lam = (NDK_LOGICAL_ADDRESS_MAPPING *)ExAllocatePool2(POOL_FLAG_NON_PAGED, size, TAG);
    if (!Memory->Lam)
        return STATUS_INSUFFICIENT_RESOURCES;
    status = End(&call,
                 OfEnd->Adapter->Dispatch->NdkBuildLAM(OfEnd->Adapter, Memory->Mdl,
                                                       MmGetMdlByteCount(Memory->Mdl), OnRequest,
                                                       Begin(&call), Memory->Lam, &size, &fbo),
                 NULL);
    if (!NT_SUCCESS(status))
        Memory->Lam->AdapterPageCount = 0;
    return status;
}
