// SPDX-License-Identifier: MIT
/*
 * Tests of irp.c, in the manner of a driver's stubs and of a program that calls them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "nt/nt_testing.h"

#define IOCTL_SUM CTL_CODE(FILE_DEVICE_UNKNOWN, 0x800, METHOD_BUFFERED, FILE_ANY_ACCESS)

static DRIVER_DISPATCH create_or_close, control;
static DRIVER_UNLOAD unload;
static DRIVER_INITIALIZE entry;

static NTSTATUS create_or_close(PDEVICE_OBJECT device, PIRP irp)
{
    UNREFERENCED_PARAMETER(device);
    irp->IoStatus.Status = STATUS_SUCCESS;
    irp->IoStatus.Information = 0;
    IoCompleteRequest(irp, IO_NO_INCREMENT);
    return STATUS_SUCCESS;
}

/* Adds up the ULONGs of the input. */
static NTSTATUS control(PDEVICE_OBJECT device, PIRP irp)
{
    PIO_STACK_LOCATION at = IoGetCurrentIrpStackLocation(irp);
    ULONG *numbers = irp->AssociatedIrp.SystemBuffer;
    NTSTATUS status = STATUS_INVALID_DEVICE_REQUEST;
    ULONG sum = 0;

    UNREFERENCED_PARAMETER(device);
    irp->IoStatus.Information = 0;
    if (at->Parameters.DeviceIoControl.IoControlCode == IOCTL_SUM) {
        for (ULONG i = 0; i < at->Parameters.DeviceIoControl.InputBufferLength / 4; i++)
            sum += numbers[i];
        numbers[0] = sum;
        irp->IoStatus.Information = sizeof sum;
        status = STATUS_SUCCESS;
    }
    irp->IoStatus.Status = status;
    IoCompleteRequest(irp, IO_NO_INCREMENT);
    return status;
}

static VOID unload(PDRIVER_OBJECT driver)
{
    driver->DriverExtension = NULL;
}

static NTSTATUS entry(PDRIVER_OBJECT driver, PUNICODE_STRING path)
{
    assert_int_equal(path->Length % sizeof(WCHAR), 0);
    driver->MajorFunction[IRP_MJ_CREATE] = create_or_close;
    driver->MajorFunction[IRP_MJ_CLOSE] = create_or_close;
    driver->MajorFunction[IRP_MJ_DEVICE_CONTROL] = control;
    driver->DriverUnload = unload;
    return STATUS_SUCCESS;
}

/* A request with room for two drivers. */
struct request {
    IRP irp;
    IO_STACK_LOCATION locations[2];
    IO_STATUS_BLOCK result;
    KEVENT done;
};

/* The request as the driver in the place of `location` (1 the lowest) has it. */
static void request_for(struct request *r, CHAR location)
{
    memset(r, 0, sizeof *r);
    KeInitializeEvent(&r->done, NotificationEvent, FALSE);
    r->irp.StackCount = 2;
    r->irp.CurrentLocation = location;
    r->irp.Tail.Overlay.CurrentStackLocation = &r->locations[location - 1];
    r->irp.UserIosb = &r->result;
    r->irp.UserEvent = &r->done;
}

static void stubs_complete_their_requests(void **state)
{
    unsigned findings = nt_finding_count();
    UNICODE_STRING path = RTL_CONSTANT_STRING(u"\\Registry\\Machine\\Test");
    DEVICE_OBJECT device = {.Type = 3};
    DRIVER_OBJECT driver = {.Type = 4};
    ULONG numbers[3] = {1, 20, 300};
    struct request r;

    (void)state;
    assert_int_equal(entry(&driver, &path), STATUS_SUCCESS);
    request_for(&r, 2);
    assert_int_equal(driver.MajorFunction[IRP_MJ_CREATE](&device, &r.irp), STATUS_SUCCESS);
    assert_int_equal(KeReadStateEvent(&r.done), 1);
    assert_int_equal(r.result.Status, STATUS_SUCCESS);

    request_for(&r, 2);
    r.irp.AssociatedIrp.SystemBuffer = numbers;
    r.locations[1].Parameters.DeviceIoControl.IoControlCode = IOCTL_SUM;
    r.locations[1].Parameters.DeviceIoControl.InputBufferLength = sizeof numbers;
    assert_int_equal(driver.MajorFunction[IRP_MJ_DEVICE_CONTROL](&device, &r.irp), STATUS_SUCCESS);
    assert_int_equal(numbers[0], 321);
    assert_int_equal(r.result.Information, sizeof(ULONG));

    request_for(&r, 2);
    assert_int_equal(driver.MajorFunction[IRP_MJ_DEVICE_CONTROL](&device, &r.irp),
                     STATUS_INVALID_DEVICE_REQUEST);
    assert_int_equal(r.result.Status, STATUS_INVALID_DEVICE_REQUEST);
    driver.DriverUnload(&driver);
    assert_int_equal(IOCTL_SUM, 0x222000);
    assert_int_equal(nt_finding_count(), findings);
}

/* ---- completion routines --------------------------------------------------------------------- */

static int calls;
static PDEVICE_OBJECT told;
static NTSTATUS answer = STATUS_SUCCESS;

static NTSTATUS completed(PDEVICE_OBJECT device, PIRP irp, PVOID context)
{
    calls++;
    told = device;
    assert_ptr_equal(context, &calls);
    assert_int_equal(irp->PendingReturned, TRUE);
    return answer;
}

static void routines_above_hear_of_the_ends_they_want(void **state)
{
    static const struct {
        UCHAR control;
        NTSTATUS status;
        BOOLEAN cancel;
        int calls;
    } cases[] = {
        {SL_INVOKE_ON_SUCCESS, STATUS_SUCCESS, FALSE, 1},
        {SL_INVOKE_ON_SUCCESS, STATUS_UNSUCCESSFUL, FALSE, 0},
        {SL_INVOKE_ON_ERROR, STATUS_UNSUCCESSFUL, FALSE, 1},
        {SL_INVOKE_ON_ERROR, STATUS_SUCCESS, FALSE, 0},
        {SL_INVOKE_ON_CANCEL, STATUS_CANCELLED, TRUE, 1},
        {SL_INVOKE_ON_CANCEL, STATUS_CANCELLED, FALSE, 0},
    };
    DEVICE_OBJECT above = {.Type = 3};
    struct request r;

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        request_for(&r, 1); /* the lower driver has it */
        r.locations[1].DeviceObject = &above;
        r.locations[0].CompletionRoutine = completed;
        r.locations[0].Context = &calls;
        r.locations[0].Control = cases[i].control;
        r.irp.Cancel = cases[i].cancel;
        IoMarkIrpPending(&r.irp);
        r.irp.IoStatus.Status = cases[i].status;
        calls = 0;
        IoCompleteRequest(&r.irp, IO_NO_INCREMENT);
        assert_int_equal(calls, cases[i].calls);
        if (calls)
            assert_ptr_equal(told, &above);
        assert_int_equal(KeReadStateEvent(&r.done), 1);
        assert_int_equal(r.result.Status, cases[i].status);
    }
}

static void a_routine_may_keep_the_request(void **state)
{
    unsigned findings = nt_finding_count();
    struct request r;

    (void)state;
    request_for(&r, 1);
    r.locations[0].CompletionRoutine = completed;
    r.locations[0].Context = &calls;
    r.locations[0].Control = SL_INVOKE_ON_SUCCESS | SL_PENDING_RETURNED;
    answer = STATUS_MORE_PROCESSING_REQUIRED;
    IoCompleteRequest(&r.irp, IO_NO_INCREMENT);
    answer = STATUS_SUCCESS;
    assert_int_equal(KeReadStateEvent(&r.done), 0);
    IofCompleteRequest(&r.irp, IO_NO_INCREMENT); /* the upper driver, in its own time */
    assert_int_equal(KeReadStateEvent(&r.done), 1);
    assert_int_equal(nt_finding_count(), findings);
}

/* ---- misuse --------------------------------------------------------------------------------- */

static void misuse_is_found(void **state)
{
    unsigned findings = nt_finding_count();
    struct request r;

    (void)state;
    request_for(&r, 2);
    IoCompleteRequest(&r.irp, IO_NO_INCREMENT);
    IoCompleteRequest(&r.irp, IO_NO_INCREMENT);
    ASSERT_FINDING(findings, "is completed already");
    request_for(&r, 2);
    r.irp.IoStatus.Status = STATUS_PENDING;
    IoCompleteRequest(&r.irp, IO_NO_INCREMENT);
    ASSERT_FINDING(findings + 1, "ends with STATUS_PENDING");
    request_for(&r, 2);
    r.irp.UserEvent = NULL; /* setting it would be another finding */
    nt_irql_set(HIGH_LEVEL);
    IoCompleteRequest(&r.irp, IO_NO_INCREMENT);
    nt_irql_set(PASSIVE_LEVEL);
    ASSERT_FINDING(findings + 2, "IoCompleteRequest: IRQL too high");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stubs_complete_their_requests),
        cmocka_unit_test(routines_above_hear_of_the_ends_they_want),
        cmocka_unit_test(a_routine_may_keep_the_request),
        cmocka_unit_test(misuse_is_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
