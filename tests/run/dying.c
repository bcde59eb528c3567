// SPDX-License-Identifier: MIT
/*
 * dying.c - a driver for tests/scripts/softndk_run_places.sh. Its value Mode in the registry, a
 * number, says how it ends; the marks at the ends of lines are what the script finds the lines by.
 */
#include <ntddk.h>
#include <ndkpi.h>
#include <softndk.h>

DRIVER_INITIALIZE DriverEntry;
static DRIVER_UNLOAD Unload;

static PIO_WORKITEM g_item;
static PVOID g_thread;
static KEVENT g_event;
static ULONG g_mode;

static ULONG ReadMode(PUNICODE_STRING path)
{
    UCHAR room[sizeof(KEY_VALUE_PARTIAL_INFORMATION) + 16];
    PKEY_VALUE_PARTIAL_INFORMATION value = (PKEY_VALUE_PARTIAL_INFORMATION)room;
    OBJECT_ATTRIBUTES attributes;
    UNICODE_STRING name;
    HANDLE key;
    ULONG size, mode = 0;

    InitializeObjectAttributes(&attributes, path, OBJ_KERNEL_HANDLE | OBJ_CASE_INSENSITIVE, NULL,
                               NULL);
    if (!NT_SUCCESS(ZwOpenKey(&key, KEY_READ, &attributes)))
        return 0;
    RtlInitUnicodeString(&name, L"Mode");
    if (NT_SUCCESS(
            ZwQueryValueKey(key, &name, KeyValuePartialInformation, value, sizeof(room), &size)) &&
        value->Type == REG_DWORD)
        mode = *(PULONG)(PVOID)value->Data;
    ZwClose(key);
    return mode;
}

static VOID OnClose(PVOID context)
{
    UNREFERENCED_PARAMETER(context);
}

static VOID OnNotify(PVOID context, NTSTATUS status)
{
    UNREFERENCED_PARAMETER(context);
    UNREFERENCED_PARAMETER(status);
}

static VOID OnCreate(PVOID context, NTSTATUS status, NDK_OBJECT_HEADER *object)
{
    UNREFERENCED_PARAMETER(context);
    UNREFERENCED_PARAMETER(status);
    UNREFERENCED_PARAMETER(object);
}

static ULONG Deep(volatile UCHAR *above)
{
    volatile UCHAR frame[2048];

    frame[0] = above[0];
    return g_mode ? Deep(frame) + frame[0] : 0; /* deep */
}

static VOID CloseTwice(VOID)
{
    NDK_ADAPTER *adapter;
    NDK_CQ *cq;

    if (softndk_open_adapter("lo", NULL, (NDK_VERSION){2, 1}, &adapter) != STATUS_SUCCESS)
        return;
    if (adapter->Dispatch->NdkCreateCq(adapter, 8, OnNotify, NULL, NULL, OnCreate, NULL, &cq) ==
        STATUS_SUCCESS) {
        cq->Dispatch->NdkCloseCq(&cq->Header, OnClose, NULL);
        cq->Dispatch->NdkCloseCq(&cq->Header, OnClose, NULL); /* twice */
    }
    softndk_close_adapter(adapter);
}

/* The frame has redzones under AddressSanitizer, and nobody returns from it. */
static VOID Thread(PVOID context)
{
    volatile UCHAR a[100], b[500], c[1000], d[3000];

    UNREFERENCED_PARAMETER(context);
    a[0] = b[0] = c[0] = d[0] = 1;
    PsTerminateSystemThread(a[0] + b[0] + c[0] + d[0] - 4);
}

static VOID Work(PDEVICE_OBJECT device, PVOID context)
{
    volatile UCHAR first[1] = {1};
    VOID (*volatile nowhere)(VOID) = NULL;

    UNREFERENCED_PARAMETER(device);
    UNREFERENCED_PARAMETER(context);
    switch (g_mode) {
    case 1:
        *(volatile ULONG *)(ULONG_PTR)16 = 1; /* crash */
        break;
    case 2:
        (void)Deep(first);
        break;
    case 3:
        nowhere(); /* nowhere */
        break;
    case 4:
        KeBugCheckEx(0xE2, 1, 2, 3, 4); /* bugcheck */
        break;
    case 5:
        CloseTwice();
        break;
    default:
        break;
    }
}

static VOID Unload(PDRIVER_OBJECT driver)
{
    UNREFERENCED_PARAMETER(driver);
    if (g_thread) {
        KeWaitForSingleObject(g_thread, Executive, KernelMode, FALSE, NULL);
        ObDereferenceObject(g_thread);
    }
    IoFreeWorkItem(g_item);
}

NTSTATUS DriverEntry(PDRIVER_OBJECT driver, PUNICODE_STRING path)
{
    volatile UCHAR first[1] = {1};
    HANDLE handle;

    driver->DriverUnload = Unload;
    g_mode = ReadMode(path);
    KeInitializeEvent(&g_event, NotificationEvent, FALSE);
    if (g_mode == 6)
        (void)Deep(first);
    if (g_mode == 7 && NT_SUCCESS(PsCreateSystemThread(&handle, THREAD_ALL_ACCESS, NULL, NULL, NULL,
                                                       Thread, NULL))) {
        ObReferenceObjectByHandle(handle, THREAD_ALL_ACCESS, *PsThreadType, KernelMode, &g_thread,
                                  NULL);
        ZwClose(handle);
    }
    g_item = IoAllocateWorkItem((PDEVICE_OBJECT)(PVOID)driver);
    IoQueueWorkItem(g_item, Work, DelayedWorkQueue, NULL);
    return STATUS_SUCCESS;
}
