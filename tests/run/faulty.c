// SPDX-License-Identifier: MIT
/*
 * faulty.c - a driver for tests/scripts/softndk_run.sh. Its value Mode in the registry says what it
 * does: "clean" makes and closes a few objects in a work item; every other mode has one fault.
 */
#include <Ntddk.h>
#include <NDKPI.h>
#include <softndk.h>

#define TAG 'tluF'

DRIVER_INITIALIZE DriverEntry;
static DRIVER_UNLOAD Unload;

static WCHAR g_mode[32];
static KEVENT g_event; /* back, after a call returned STATUS_PENDING */
static NTSTATUS g_status;
static NDK_OBJECT_HEADER *g_object;
static NDK_ADAPTER *g_adapter;
static NDK_CQ *g_cq;
static PIO_WORKITEM g_item;
static KSPIN_LOCK g_lock;
static BOOLEAN g_closes; /* the unload closes what is open */

static BOOLEAN Is(const char *mode)
{
    SIZE_T i;

    for (i = 0; mode[i]; i++)
        if (g_mode[i] != (WCHAR)mode[i])
            return FALSE;
    return g_mode[i] == 0;
}

/* The text of a value below the path, and whether there is one. */
static BOOLEAN ReadText(PUNICODE_STRING path, PCWSTR below, PCWSTR name, WCHAR *out, ULONG size)
{
    union {
        KEY_VALUE_PARTIAL_INFORMATION info;
        UCHAR room[sizeof(KEY_VALUE_PARTIAL_INFORMATION) + 256];
    } value;
    UNICODE_STRING text;
    OBJECT_ATTRIBUTES attributes;
    HANDLE key, sub;
    ULONG length;
    NTSTATUS status;

    InitializeObjectAttributes(&attributes, path, OBJ_KERNEL_HANDLE | OBJ_CASE_INSENSITIVE, NULL,
                               NULL);
    if (!NT_SUCCESS(ZwOpenKey(&key, KEY_READ, &attributes)))
        return FALSE;
    RtlInitUnicodeString(&text, below);
    InitializeObjectAttributes(&attributes, &text, OBJ_KERNEL_HANDLE, key, NULL);
    status = ZwOpenKey(&sub, KEY_READ, &attributes);
    ZwClose(key);
    if (!NT_SUCCESS(status))
        return FALSE;
    RtlInitUnicodeString(&text, name);
    status =
        ZwQueryValueKey(sub, &text, KeyValuePartialInformation, &value, sizeof(value), &length);
    ZwClose(sub);
    if (!NT_SUCCESS(status) || value.info.Type != REG_SZ || value.info.DataLength > size)
        return FALSE;
    RtlCopyMemory(out, value.info.Data, value.info.DataLength);
    return TRUE;
}

static VOID OnCreate(PVOID context, NTSTATUS status, NDK_OBJECT_HEADER *object)
{
    g_object = object;
    g_status = status;
    KeSetEvent((PKEVENT)context, IO_NO_INCREMENT, FALSE);
}

static VOID OnRequest(PVOID context, NTSTATUS status)
{
    g_status = status;
    KeSetEvent((PKEVENT)context, IO_NO_INCREMENT, FALSE);
}

static VOID OnClose(PVOID context)
{
    KeSetEvent((PKEVENT)context, IO_NO_INCREMENT, FALSE);
}

static VOID OnNotify(PVOID context, NTSTATUS status)
{
    UNREFERENCED_PARAMETER(context);
    UNREFERENCED_PARAMETER(status);
}

static VOID WaitBack(VOID)
{
    KeWaitForSingleObject(&g_event, Executive, KernelMode, FALSE, NULL);
}

static NTSTATUS MakeCq(VOID)
{
    NTSTATUS status = g_adapter->Dispatch->NdkCreateCq(g_adapter, 8, OnNotify, NULL, NULL, OnCreate,
                                                       &g_event, &g_cq);

    if (status == STATUS_PENDING) {
        WaitBack();
        status = g_status;
        g_cq = (NDK_CQ *)g_object;
    }
    return status;
}

static VOID CloseCq(VOID)
{
    if (g_cq && g_cq->Dispatch->NdkCloseCq(&g_cq->Header, OnClose, &g_event) == STATUS_PENDING)
        WaitBack();
    g_cq = NULL;
}

static VOID LeaveLam(VOID)
{
    static UCHAR room[FIELD_OFFSET(NDK_LOGICAL_ADDRESS_MAPPING, AdapterPageArray) + 64];
    static UCHAR octets[64];
    PMDL mdl = IoAllocateMdl(octets, sizeof(octets), FALSE, FALSE, NULL);
    ULONG size = sizeof(room), fbo;

    MmBuildMdlForNonPagedPool(mdl);
    if (g_adapter->Dispatch->NdkBuildLAM(g_adapter, mdl, sizeof(octets), OnRequest, &g_event,
                                         (NDK_LOGICAL_ADDRESS_MAPPING *)(PVOID)room, &size,
                                         &fbo) == STATUS_PENDING)
        WaitBack();
    IoFreeMdl(mdl);
}

static VOID Work(PDEVICE_OBJECT device, PVOID context)
{
    KIRQL old;

    UNREFERENCED_PARAMETER(device);
    UNREFERENCED_PARAMETER(context);
    if (Is("held"))
        KeAcquireSpinLock(&g_lock, &old);
    if (Is("crash"))
        *(volatile LONG *)(ULONG_PTR)16 = 1;
    if (Is("bugcheck"))
        KeBugCheckEx(0xE2, 1, 2, 3, 4);
    if (softndk_open_adapter("lo", NULL, (NDK_VERSION){2, 1}, &g_adapter) != STATUS_SUCCESS)
        return;
    if (MakeCq() != STATUS_SUCCESS)
        DbgPrint("faulty: no CQ\n");
    if (Is("lam"))
        LeaveLam();
    if (Is("finding")) {
        KeRaiseIrql(DISPATCH_LEVEL, &old);
        PAGED_CODE();
        KeLowerIrql(old);
    }
    if (Is("adapter") || Is("open"))
        return;
    if (!Is("object"))
        CloseCq();
    if (!Is("object") && !Is("lam")) {
        softndk_close_adapter(g_adapter);
        g_adapter = NULL;
    }
}

static VOID Unload(PDRIVER_OBJECT driver)
{
    KEVENT never;

    UNREFERENCED_PARAMETER(driver);
    PAGED_CODE();
    if (Is("hang")) {
        KeInitializeEvent(&never, NotificationEvent, FALSE);
        KeWaitForSingleObject(&never, Executive, KernelMode, FALSE, NULL);
    }
    if (Is("work"))
        return;
    if (g_item != NULL)
        IoFreeWorkItem(g_item);
    if (g_closes && g_adapter) {
        CloseCq();
        softndk_close_adapter(g_adapter);
    }
    DbgPrint("faulty: unloaded\n");
}

NTSTATUS DriverEntry(PDRIVER_OBJECT driver, PUNICODE_STRING path)
{
    KIRQL old;
    KEVENT never;

    KeInitializeEvent(&g_event, SynchronizationEvent, FALSE);
    KeInitializeSpinLock(&g_lock);
    if (!ReadText(path, L"Parameters", L"Mode", g_mode, sizeof(g_mode)))
        return STATUS_OBJECT_NAME_NOT_FOUND;
    if (!Is("nounload"))
        driver->DriverUnload = Unload;
    if (Is("refuse"))
        return STATUS_INSUFFICIENT_RESOURCES;
    if (Is("stuck")) {
        KeInitializeEvent(&never, NotificationEvent, FALSE);
        KeWaitForSingleObject(&never, Executive, KernelMode, FALSE, NULL);
    }
    if (Is("nounload"))
        return STATUS_SUCCESS;
    if (Is("pool"))
        (VOID) ExAllocatePool2(POOL_FLAG_NON_PAGED, 100, TAG);
    if (Is("mdl"))
        (VOID) IoAllocateMdl(g_mode, sizeof(g_mode), FALSE, FALSE, NULL);
    if (Is("lock"))
        KeAcquireSpinLock(&g_lock, &old);
    g_closes = Is("open");
    if (g_closes) { /* at once: a signal may come when this has returned */
        Work(NULL, NULL);
        return STATUS_SUCCESS;
    }
    g_item = IoAllocateWorkItem((PDEVICE_OBJECT)driver);
    if (g_item == NULL)
        return STATUS_INSUFFICIENT_RESOURCES;
    IoQueueWorkItem(g_item, Work, DelayedWorkQueue, NULL);
    if (Is("lock"))
        KeLowerIrql(PASSIVE_LEVEL);
    return STATUS_SUCCESS;
}
