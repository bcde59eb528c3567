// SPDX-License-Identifier: MIT
/*
 * host.c - runs driver.c: its entry, two requests, its unload, and then the report. Ends 0 when
 * every answer is right and nothing is left.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <softndk.h>

DRIVER_INITIALIZE DriverEntry;

/* Names that drivers take for functions of their own: the library must not need the C library's. */
static int failed;

static void check(int good, const char *what)
{
    if (good)
        return;
    fprintf(stderr, "host: wrong: %s\n", what);
    failed = 1;
}

static NTSTATUS request(PDRIVER_OBJECT driver, UCHAR major, ULONG code, ULONG *buffer)
{
    struct {
        IRP irp;
        IO_STACK_LOCATION location;
    } r;
    IO_STATUS_BLOCK result = {{0}, 0};
    KEVENT done;

    memset(&r, 0, sizeof r);
    KeInitializeEvent(&done, NotificationEvent, FALSE);
    r.irp.StackCount = 1;
    r.irp.CurrentLocation = 1;
    r.irp.Tail.Overlay.CurrentStackLocation = &r.location;
    r.irp.UserIosb = &result;
    r.irp.UserEvent = &done;
    r.irp.AssociatedIrp.SystemBuffer = buffer;
    r.location.MajorFunction = major;
    r.location.Parameters.DeviceIoControl.IoControlCode = code;
    r.location.Parameters.DeviceIoControl.OutputBufferLength = 8;
    driver->MajorFunction[major]((PDEVICE_OBJECT)driver, &r.irp);
    KeWaitForSingleObject(&done, Executive, KernelMode, FALSE, NULL);
    return result.Status;
}

static void tell(void *context, const char *text)
{
    (void)context;
    fprintf(stderr, "host: %s\n", text);
}

int main(void)
{
    static const WCHAR path[] = u"\\Registry\\Machine\\System\\CurrentControlSet\\Services\\Test";
    DRIVER_OBJECT driver;
    UNICODE_STRING name;
    ULONG numbers[2] = {20, 0};

    memset(&driver, 0, sizeof driver);
    RtlInitUnicodeString(&name, path);
    softndk_registry_set("\\Registry\\Machine\\System\\CurrentControlSet\\Services\\Test", "Port",
                         "4420");
    check(DriverEntry(&driver, &name) == STATUS_SUCCESS, "DriverEntry");
    check(request(&driver, IRP_MJ_CREATE, 0, NULL) == STATUS_SUCCESS, "create");
    check(request(&driver, IRP_MJ_DEVICE_CONTROL,
                  CTL_CODE(FILE_DEVICE_UNKNOWN, 0x801, METHOD_BUFFERED, FILE_ANY_ACCESS),
                  numbers) == STATUS_SUCCESS,
          "control");
    check(numbers[1] == 210, "the sum");
    check(request(&driver, IRP_MJ_DEVICE_CONTROL, 1, numbers) == STATUS_INVALID_DEVICE_REQUEST,
          "an unknown control code");
    check(request(&driver, IRP_MJ_CLOSE, 0, NULL) == STATUS_SUCCESS, "close");
    driver.DriverUnload(&driver);
    check(softndk_report(tell, NULL) == 0, "something is left");
    return failed;
}
