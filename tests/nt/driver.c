// SPDX-License-Identifier: MIT
/*
 * driver.c - a driver, written as one is for Windows: it includes what drivers include in the
 * letter case they use, has functions of its own named wait, logf and complete, and knows nothing
 * of this library. Compiled with -fms-extensions -fshort-wchar against the installed headers and
 * run by host.c (tests/scripts/nt_driver.sh).
 */
#include <Ntddk.h>
#include <NtStrsafe.h>
#include "ndis.h"
#include "Wsk.h"
#include <NDKPI.h>
#include "WskNdk.h"
#include "Wdmsec.h"
#include "NetIoApi.h"

#define DRIVER_TAG 'tseT'

DRIVER_INITIALIZE DriverEntry;
static DRIVER_UNLOAD Unload;
static DRIVER_DISPATCH CreateClose, Control;

#define IOCTL_COUNT CTL_CODE(FILE_DEVICE_UNKNOWN, 0x801, METHOD_BUFFERED, FILE_ANY_ACCESS)

typedef struct _ASYNC {
    KEVENT Done;
    NTSTATUS Status;
} ASYNC;

typedef struct DECLSPEC_CACHEALIGN _WORK {
    LIST_ENTRY Link;
    PIO_WORKITEM Item;
    ULONG Number;
} WORK, *PWORK;

static struct {
    KSPIN_LOCK Lock;
    LIST_ENTRY Done;
    EX_RUNDOWN_REF Rundown;
    volatile LONG Count;
    ULONG Port;
    ASYNC Last;
} g;

static char g_log[512];
static size_t g_len;

#ifdef ALLOC_PRAGMA
#pragma alloc_text(PAGE, Unload)
#endif

static void logf(const char *fmt, ...)
{
    va_list args;

    va_start(args, fmt);
    if (NT_SUCCESS(RtlStringCbVPrintfA(g_log + g_len, sizeof(g_log) - g_len, fmt, args)))
        g_len = strlen(g_log);
    va_end(args);
}

_IRQL_requires_max_(DISPATCH_LEVEL) static void complete(_In_opt_ PVOID context,
                                                         _In_ NTSTATUS status)
{
    ASYNC *a = (ASYNC *)context;

    a->Status = status;
    KeSetEvent(&a->Done, IO_NO_INCREMENT, FALSE);
}

static NTSTATUS wait(_Inout_ ASYNC *a, _In_range_(>, 0) ULONG ms)
{
    LARGE_INTEGER t;

    t.QuadPart = -((LONGLONG)ms * 10000);
    if (KeWaitForSingleObject(&a->Done, Executive, KernelMode, FALSE, &t) == STATUS_TIMEOUT)
        return STATUS_IO_TIMEOUT;
    return a->Status;
}

static ULONG ConfigDword(PUNICODE_STRING path, const wchar_t *valueName, ULONG dflt)
{
    UCHAR buf[sizeof(KEY_VALUE_PARTIAL_INFORMATION) + 8];
    KEY_VALUE_PARTIAL_INFORMATION *info = (KEY_VALUE_PARTIAL_INFORMATION *)buf;
    UNICODE_STRING value;
    OBJECT_ATTRIBUTES oa;
    HANDLE h = NULL;
    ULONG len = 0;
    NTSTATUS st;

    RtlInitUnicodeString(&value, valueName);
    InitializeObjectAttributes(&oa, path, OBJ_CASE_INSENSITIVE | OBJ_KERNEL_HANDLE, NULL, NULL);
    if (!NT_SUCCESS(ZwOpenKey(&h, KEY_READ, &oa)))
        return dflt;
    st = ZwQueryValueKey(h, &value, KeyValuePartialInformation, buf, sizeof(buf), &len);
    ZwClose(h);
    if (!NT_SUCCESS(st) || info->Type != REG_DWORD || info->DataLength < 4)
        return dflt;
    return *(ULONG *)info->Data;
}

static void writeLog(void)
{
    UNICODE_STRING path;
    OBJECT_ATTRIBUTES oa;
    IO_STATUS_BLOCK iosb;
    HANDLE h = NULL;

    RtlInitUnicodeString(&path, L"\\??\\C:\\driver-result.txt");
    InitializeObjectAttributes(&oa, &path, OBJ_CASE_INSENSITIVE | OBJ_KERNEL_HANDLE, NULL, NULL);
    if (!NT_SUCCESS(ZwCreateFile(&h, FILE_APPEND_DATA | SYNCHRONIZE, &oa, &iosb, NULL,
                                 FILE_ATTRIBUTE_NORMAL, FILE_SHARE_READ | FILE_SHARE_WRITE,
                                 FILE_OPEN_IF, FILE_SYNCHRONOUS_IO_NONALERT, NULL, 0)))
        return;
    ZwWriteFile(h, NULL, NULL, NULL, &iosb, g_log, (ULONG)g_len, NULL, NULL);
    ZwClose(h);
}

static VOID Worker(PVOID object, PVOID context, PIO_WORKITEM item)
{
    PWORK work = (PWORK)context;
    KLOCK_QUEUE_HANDLE handle;

    UNREFERENCED_PARAMETER(object);
    PAGED_CODE();
    NT_ASSERT(work->Item == item);
    KeAcquireInStackQueuedSpinLock(&g.Lock, &handle);
    InsertTailList(&g.Done, &work->Link);
    KeReleaseInStackQueuedSpinLock(&handle);
    IoFreeWorkItem(item);
    if (InterlockedDecrement(&g.Count) == 0)
        complete(&g.Last, STATUS_SUCCESS);
    ExReleaseRundownProtection(&g.Rundown);
}

/* Queues `count` work items and waits for the last; the sum of their numbers. */
static NTSTATUS Run(PDEVICE_OBJECT device, ULONG count, ULONG *sum)
{
    NTSTATUS status = STATUS_INSUFFICIENT_RESOURCES;

    KeInitializeEvent(&g.Last.Done, NotificationEvent, FALSE);
    InterlockedExchange(&g.Count, count);
    *sum = 0;
    __try {
        for (ULONG i = 1; i <= count; i++) {
            PWORK work = (PWORK)ExAllocatePool2(POOL_FLAG_NON_PAGED, sizeof(WORK), DRIVER_TAG);

            if (!ARGUMENT_PRESENT(work) || !ExAcquireRundownProtection(&g.Rundown))
                return status;
            work->Number = i;
            work->Item = IoAllocateWorkItem(device);
            IoQueueWorkItemEx(work->Item, Worker, DelayedWorkQueue, work);
        }
        status = wait(&g.Last, 30000);
    } __except (EXCEPTION_EXECUTE_HANDLER) {
        status = GetExceptionCode();
    }
    __try {
        while (!IsListEmpty(&g.Done)) {
            PWORK work = CONTAINING_RECORD(RemoveHeadList(&g.Done), WORK, Link);

            *sum += work->Number;
            ExFreePoolWithTag(work, DRIVER_TAG);
        }
    } __finally {
        logf("%lu items, status 0x%08X\r\n", count, status);
    }
    return status;
}

static NTSTATUS CreateClose(PDEVICE_OBJECT device, PIRP irp)
{
    UNREFERENCED_PARAMETER(device);
    irp->IoStatus.Status = STATUS_SUCCESS;
    irp->IoStatus.Information = 0;
    IoCompleteRequest(irp, IO_NO_INCREMENT);
    return STATUS_SUCCESS;
}

static NTSTATUS Control(PDEVICE_OBJECT device, PIRP irp)
{
    PIO_STACK_LOCATION stack = IoGetCurrentIrpStackLocation(irp);
    ULONG *buffer = (ULONG *)irp->AssociatedIrp.SystemBuffer;
    NTSTATUS status = STATUS_INVALID_DEVICE_REQUEST;

    irp->IoStatus.Information = 0;
    if (stack->Parameters.DeviceIoControl.IoControlCode == IOCTL_COUNT) {
        status = Run(device, buffer[0], &buffer[1]);
        irp->IoStatus.Information = min(8u, stack->Parameters.DeviceIoControl.OutputBufferLength);
    }
    irp->IoStatus.Status = status;
    IoCompleteRequest(irp, IO_NO_INCREMENT);
    return status;
}

static VOID Unload(PDRIVER_OBJECT driver)
{
    UNREFERENCED_PARAMETER(driver);
    PAGED_CODE();
    ExWaitForRundownProtectionRelease(&g.Rundown);
    logf("port %u, unloaded\r\n", g.Port);
    writeLog();
}

/* An MDL over pool, as for a registration, and an address from text. */
static NTSTATUS TryOut(void)
{
    PVOID region = ExAllocatePoolWithTag(NonPagedPoolNx, 2 * PAGE_SIZE, DRIVER_TAG);
    SOCKADDR_INET address;
    NTSTATUS status = STATUS_INSUFFICIENT_RESOURCES;
    PMDL mdl;

    if (region == NULL)
        return status;
    mdl = IoAllocateMdl(region, 2 * PAGE_SIZE, FALSE, FALSE, NULL);
    if (mdl != NULL) {
        MmBuildMdlForNonPagedPool(mdl);
        NT_VERIFY(MmGetSystemAddressForMdlSafe(mdl, NormalPagePriority) == region);
        NT_VERIFY(BYTE_OFFSET(region) == 0);
        IoFreeMdl(mdl);
        RtlZeroMemory(&address, sizeof(address));
        address.Ipv4.sin_family = AF_INET;
        status = RtlIpv4StringToAddressExW(L"192.168.100.2:4420", TRUE, &address.Ipv4.sin_addr,
                                           &address.Ipv4.sin_port);
        if (address.Ipv4.sin_addr.s_addr != RtlUlongByteSwap(0xC0A86402) ||
            address.Ipv4.sin_addr.S_un.S_un_b.s_b4 != 2 ||
            RtlUshortByteSwap(address.Ipv4.sin_port) != 4420)
            status = STATUS_INVALID_ADDRESS;
    }
    ExFreePool(region);
    return status;
}

NTSTATUS DriverEntry(PDRIVER_OBJECT driver, PUNICODE_STRING path)
{
    DbgPrint("driver: %wZ\n", path);
    KeInitializeSpinLock(&g.Lock);
    InitializeListHead(&g.Done);
    ExInitializeRundownProtection(&g.Rundown);
    g.Port = ConfigDword(path, L"Port", 18520);
    driver->MajorFunction[IRP_MJ_CREATE] = CreateClose;
    driver->MajorFunction[IRP_MJ_CLOSE] = CreateClose;
    driver->MajorFunction[IRP_MJ_DEVICE_CONTROL] = Control;
    driver->DriverUnload = Unload;
    return TryOut();
}
