// SPDX-License-Identifier: MIT
/*
 * What a program that runs drivers asks: softndk_activity(), and what softndk_report() tells of
 * adapters, objects and mappings that are open.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <softndk.h>

#include "provider/adapter.h"
#include "provider/adapter_left.h"

static char told[8192];

static void tell(void *context, const char *text)
{
    (void)context;
    strcat(told, text);
    strcat(told, "\n");
}

static size_t report(void)
{
    told[0] = '\0';
    return softndk_report(tell, NULL);
}

static void expect(const char *text)
{
    if (!strstr(told, text))
        fail_msg("the report does not say '%s':\n%s", text, told);
}

static VOID on_notify(PVOID context, NTSTATUS status)
{
    (void)context;
    (void)status;
}

static VOID on_create(PVOID context, NTSTATUS status, NDK_OBJECT_HEADER *object)
{
    (void)context;
    (void)status;
    (void)object;
}

static VOID on_request(PVOID context, NTSTATUS status)
{
    (void)context;
    (void)status;
}

static VOID on_close(PVOID context)
{
    (void)context;
}

static NDK_ADAPTER *open_one(void)
{
    NDK_ADAPTER *adapter = NULL;

    assert_int_equal(softndk_open_adapter("lo", NULL, (NDK_VERSION){2, 1}, &adapter),
                     STATUS_SUCCESS);
    return adapter;
}

/* A function of its own, so that the stack has its name. */
__attribute__((noinline)) NDK_CQ *make_a_cq(NDK_ADAPTER *adapter);
__attribute__((noinline)) NDK_CQ *make_a_cq(NDK_ADAPTER *adapter)
{
    NDK_CQ *cq = NULL;

    assert_int_equal(
        adapter->Dispatch->NdkCreateCq(adapter, 4, on_notify, NULL, NULL, on_create, NULL, &cq),
        STATUS_SUCCESS);
    return cq;
}

static void open_adapters_are_counted(void **state)
{
    struct softndk_activity before, now;
    NDK_ADAPTER *first, *second;

    (void)state;
    softndk_activity(&before);
    assert_int_equal(before.adapters, 0);
    assert_int_equal(before.work_items, 0);
    first = open_one();
    second = open_one();
    softndk_activity(&now);
    assert_int_equal(now.adapters, 2);
    assert_int_equal(now.turns, before.turns + 2);
    softndk_close_adapter(first);
    softndk_activity(&now);
    assert_int_equal(now.adapters, 1);
    softndk_close_adapter(second);
    softndk_activity(&now);
    assert_int_equal(now.adapters, 0);
    assert_int_equal(now.turns, before.turns + 2);
}

struct work {
    PIO_WORKITEM item;
    KEVENT begun, go, ended;
};

static VOID work_routine(PDEVICE_OBJECT device, PVOID context)
{
    struct work *work = context;

    (void)device;
    KeSetEvent(&work->begun, IO_NO_INCREMENT, FALSE);
    KeWaitForSingleObject(&work->go, Executive, KernelMode, FALSE, NULL);
    KeSetEvent(&work->ended, IO_NO_INCREMENT, FALSE);
}

static void work_items_are_counted(void **state)
{
    struct softndk_activity before, now;
    struct work work;

    (void)state;
    softndk_activity(&before);
    KeInitializeEvent(&work.begun, NotificationEvent, FALSE);
    KeInitializeEvent(&work.go, NotificationEvent, FALSE);
    KeInitializeEvent(&work.ended, NotificationEvent, FALSE);
    work.item = IoAllocateWorkItem(NULL);
    IoQueueWorkItem(work.item, work_routine, DelayedWorkQueue, &work);
    softndk_activity(&now);
    assert_int_equal(now.work_items, 1);
    assert_int_equal(now.turns, before.turns + 1);
    KeWaitForSingleObject(&work.begun, Executive, KernelMode, FALSE, NULL);
    softndk_activity(&now);
    assert_int_equal(now.work_items, 1);
    KeSetEvent(&work.go, IO_NO_INCREMENT, FALSE);
    KeWaitForSingleObject(&work.ended, Executive, KernelMode, FALSE, NULL);
    while (now.work_items) /* its routine is returning */
        softndk_activity(&now);
    IoFreeWorkItem(work.item);
}

static void what_is_open_is_told_with_its_maker(void **state)
{
    NDK_ADAPTER *adapter = open_one();
    NDK_CQ *cq[3];
    NDK_PD *pd = NULL;

    (void)state;
    for (int i = 0; i < 3; i++)
        cq[i] = make_a_cq(adapter);
    assert_int_equal(adapter->Dispatch->NdkCreatePd(adapter, on_create, NULL, &pd), STATUS_SUCCESS);
    assert_int_equal(report(), 5);
    expect("on lo, open, made by ");
    expect(": 1 pd, open, #");
    if (!strstr(told, "3 cq, open, the first #"))
        expect("1 cq, open, #"); /* the loop may be unrolled, its calls are then several */
    assert_int_equal(adapter_left_tell(adapter_from(adapter), NULL, NULL), 4);
    pd->Dispatch->NdkClosePd(&pd->Header, on_close, NULL);
    for (int i = 0; i < 3; i++)
        cq[i]->Dispatch->NdkCloseCq(&cq[i]->Header, on_close, NULL);
    softndk_close_adapter(adapter);
    assert_int_equal(report(), 0);
    assert_string_equal(told, "");
}

static void mappings_are_told_until_they_are_released(void **state)
{
    union {
        NDK_LOGICAL_ADDRESS_MAPPING lam;
        uint8_t octets[128];
    } rooms[2];
    static uint8_t octets[16];
    NDK_ADAPTER *adapter = open_one();
    PMDL mdl = IoAllocateMdl(octets, sizeof octets, FALSE, FALSE, NULL);
    ULONG size, fbo;

    (void)state;
    MmBuildMdlForNonPagedPool(mdl);
    for (int i = 0; i < 2; i++) {
        size = sizeof rooms[i];
        assert_int_equal(adapter->Dispatch->NdkBuildLAM(adapter, mdl, sizeof octets, on_request,
                                                        NULL, &rooms[i].lam, &size, &fbo),
                         STATUS_SUCCESS);
    }
    IoFreeMdl(mdl);
    assert_int_equal(report(), 3);
    expect("logical address mapping");
    expect("not released, made by ");
    adapter->Dispatch->NdkReleaseLAM(adapter, &rooms[0].lam);
    assert_int_equal(report(), 2);
    expect("1 logical address mapping, not released, made by ");
    adapter->Dispatch->NdkReleaseLAM(adapter, &rooms[1].lam);
    assert_int_equal(report(), 1);
    softndk_close_adapter(adapter);
    assert_int_equal(report(), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(open_adapters_are_counted),
        cmocka_unit_test(work_items_are_counted),
        cmocka_unit_test(what_is_open_is_told_with_its_maker),
        cmocka_unit_test(mappings_are_told_until_they_are_released),
    };

    setenv("SOFTNDK_STACKS", "8", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
