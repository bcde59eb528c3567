// SPDX-License-Identifier: MIT
/*
 * See tool_ndk.h. A pending call needs no lock: the callback fills struct tool_wait and then
 * signals its event, which does not touch the event's memory after the waiter may return.
 */
#include "tool_ndk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tool_args.h"

void tool_wait_begin(struct tool_wait *wait)
{
    KeInitializeEvent(&wait->event, NotificationEvent, FALSE);
    wait->status = STATUS_UNSUCCESSFUL;
    wait->object = NULL;
}

NTSTATUS tool_wait_end(struct tool_wait *wait, NTSTATUS returned)
{
    if (returned != STATUS_PENDING)
        return returned;
    KeWaitForSingleObject(&wait->event, Executive, KernelMode, FALSE, NULL);
    return wait->status;
}

VOID tool_created(PVOID context, NTSTATUS status, NDK_OBJECT_HEADER *object)
{
    struct tool_wait *wait = context;

    wait->object = object;
    tool_requested(wait, status);
}

VOID tool_requested(PVOID context, NTSTATUS status)
{
    struct tool_wait *wait = context;

    wait->status = status;
    KeSetEvent(&wait->event, IO_NO_INCREMENT, FALSE);
}

VOID tool_closed(PVOID context)
{
    tool_requested(context, STATUS_SUCCESS);
}

VOID tool_closed_alone(PVOID context)
{
    (void)context;
}

/* ---- what went wrong ---- */

const char *tool_status(NTSTATUS status, char *text, size_t size)
{
    const char *name = softndk_status_name(status);

    if (name)
        snprintf(text, size, "%s (0x%08X)", name, (unsigned)status);
    else
        snprintf(text, size, "0x%08X", (unsigned)status);
    return text;
}

void tool_report(const NDK_OBJECT_HEADER *object, const char *call, NTSTATUS status)
{
    char name[80], reason[320] = "";

    tool_status(status, name, sizeof(name));
    if (object && softndk_reason(object, reason, sizeof(reason)) > 0)
        tool_say("%s: %s: %s\n    reason: %s", call, name, softndk_status_text(status), reason);
    else
        tool_say("%s: %s: %s", call, name, softndk_status_text(status));
}

void tool_report_open(const char *call, NTSTATUS status)
{
    char name[80], reason[320] = "";

    softndk_open_error(reason, sizeof(reason));
    tool_say("%s: %s: %s", call, tool_status(status, name, sizeof(name)),
             reason[0] ? reason : softndk_status_text(status));
}

static bool check(const NDK_OBJECT_HEADER *object, const char *call, NTSTATUS status)
{
    if (status == STATUS_SUCCESS)
        return true;
    tool_report(object, call, status);
    return false;
}

/* ---- creating and closing ---- */

static const char *profile;

void tool_use_profile(const char *name)
{
    profile = name;
}

NTSTATUS tool_open_adapter(const char *selector, NDK_ADAPTER **out)
{
    /* Each runs the highest minor of its major. */
    static const NDK_VERSION two = {2, 0}, one = {1, 0};
    char options[200] = "";
    NTSTATUS status;

    if (profile)
        snprintf(options, sizeof(options), "profile=%s", profile);
    status = softndk_open_adapter(selector, options, two, out);
    if (status == (NTSTATUS)0xC0010004) /* that version is not offered */
        status = softndk_open_adapter(selector, options, one, out);
    if (status != STATUS_SUCCESS)
        tool_report_open("softndk_open_adapter", status);
    return status;
}

bool tool_create_cq(NDK_ADAPTER *adapter, ULONG depth, NDK_FN_CQ_NOTIFICATION_CALLBACK notification,
                    PVOID context, NDK_CQ **out)
{
    struct tool_wait wait;
    NDK_CQ *cq = NULL;
    NTSTATUS status;

    tool_wait_begin(&wait);
    status = adapter->Dispatch->NdkCreateCq(adapter, depth, notification, context, NULL,
                                            tool_created, &wait, &cq);
    if (!check(&adapter->Header, "NdkCreateCq", tool_wait_end(&wait, status)))
        return false;
    *out = status == STATUS_PENDING ? (NDK_CQ *)wait.object : cq;
    return true;
}

bool tool_create_pd(NDK_ADAPTER *adapter, NDK_PD **out)
{
    struct tool_wait wait;
    NDK_PD *pd = NULL;
    NTSTATUS status;

    tool_wait_begin(&wait);
    status = adapter->Dispatch->NdkCreatePd(adapter, tool_created, &wait, &pd);
    if (!check(&adapter->Header, "NdkCreatePd", tool_wait_end(&wait, status)))
        return false;
    *out = status == STATUS_PENDING ? (NDK_PD *)wait.object : pd;
    return true;
}

bool tool_create_qp(NDK_PD *pd, NDK_CQ *cq, ULONG receives, ULONG requests, NDK_QP **out)
{
    struct tool_wait wait;
    NDK_QP *qp = NULL;
    NTSTATUS status;

    tool_wait_begin(&wait);
    status = pd->Dispatch->NdkCreateQp(pd, cq, cq, NULL, receives, requests, 1, 1, 0, tool_created,
                                       &wait, &qp);
    if (!check(&pd->Header, "NdkCreateQp", tool_wait_end(&wait, status)))
        return false;
    *out = status == STATUS_PENDING ? (NDK_QP *)wait.object : qp;
    return true;
}

bool tool_create_connector(NDK_ADAPTER *adapter, NDK_CONNECTOR **out)
{
    struct tool_wait wait;
    NDK_CONNECTOR *connector = NULL;
    NTSTATUS status;

    tool_wait_begin(&wait);
    status = adapter->Dispatch->NdkCreateConnector(adapter, tool_created, &wait, &connector);
    if (!check(&adapter->Header, "NdkCreateConnector", tool_wait_end(&wait, status)))
        return false;
    *out = status == STATUS_PENDING ? (NDK_CONNECTOR *)wait.object : connector;
    return true;
}

bool tool_create_listener(NDK_ADAPTER *adapter, NDK_FN_CONNECT_EVENT_CALLBACK event, PVOID context,
                          NDK_LISTENER **out)
{
    struct tool_wait wait;
    NDK_LISTENER *listener = NULL;
    NTSTATUS status;

    tool_wait_begin(&wait);
    status = adapter->Dispatch->NdkCreateListener(adapter, event, context, tool_created, &wait,
                                                  &listener);
    if (!check(&adapter->Header, "NdkCreateListener", tool_wait_end(&wait, status)))
        return false;
    *out = status == STATUS_PENDING ? (NDK_LISTENER *)wait.object : listener;
    return true;
}

NTSTATUS tool_listen(NDK_LISTENER *listener, const SOCKADDR_INET *address, ULONG length, bool quiet)
{
    struct tool_wait wait;
    NTSTATUS status;

    tool_wait_begin(&wait);
    status =
        listener->Dispatch->NdkListen(listener, (PSOCKADDR)address, length, tool_requested, &wait);
    status = tool_wait_end(&wait, status);
    if (!quiet)
        check(&listener->Header, "NdkListen", status);
    return status;
}

ULONG tool_address(const char *text, uint16_t port, SOCKADDR_INET *out)
{
    ULONG length;

    if (softndk_address_from_text(text, out, &length) != STATUS_SUCCESS || SS_PORT(out) != 0)
        return 0;
    SS_PORT(out) = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? RtlUshortByteSwap(port) : port;
    return length;
}

int tool_check_address(const char *option, const char *text)
{
    SOCKADDR_INET address;

    if (!text || tool_address(text, 0, &address) > 0)
        return -1;
    return tool_usage_error("%s '%s': need an IPv4 or IPv6 address in numbers, without a port",
                            option, text);
}

void tool_tell_listening(NDK_LISTENER *listener)
{
    char text[SOFTNDK_ADDRESS_MAX];
    SOCKADDR_INET address;
    ULONG length = sizeof(address);
    NTSTATUS status;

    status = listener->Dispatch->NdkGetLocalAddress(listener, (PSOCKADDR)&address, &length);
    if (status != STATUS_SUCCESS) {
        tool_report(&listener->Header, "NdkGetLocalAddress", status);
        return;
    }
    softndk_address_to_text((const SOCKADDR *)&address, length, text, sizeof(text));
    printf("listening on %s\n", text);
    fflush(stdout);
}

void tool_close(NDK_OBJECT_HEADER *object, NDK_FN_CLOSE_OBJECT close)
{
    struct tool_wait wait;

    tool_wait_begin(&wait);
    tool_wait_end(&wait, close(object, tool_closed, &wait));
}

/* ---- memory ---- */

static bool register_memory(struct tool_memory *memory, ULONG flags)
{
    NDK_MR *mr = memory->mr;
    struct tool_wait wait;
    NTSTATUS status;

    tool_wait_begin(&wait);
    status =
        mr->Dispatch->NdkRegisterMr(mr, memory->mdl, memory->size, flags, tool_requested, &wait);
    if (!check(&mr->Header, "NdkRegisterMr", tool_wait_end(&wait, status)))
        return false;
    memory->local = mr->Dispatch->NdkGetLocalTokenFromMr(mr);
    memory->remote = mr->Dispatch->NdkGetRemoteTokenFromMr(mr);
    return true;
}

static bool create_mr(NDK_PD *pd, NDK_MR **out)
{
    struct tool_wait wait;
    NDK_MR *mr = NULL;
    NTSTATUS status;

    tool_wait_begin(&wait);
    status = pd->Dispatch->NdkCreateMr(pd, FALSE, tool_created, &wait, &mr);
    if (!check(&pd->Header, "NdkCreateMr", tool_wait_end(&wait, status)))
        return false;
    *out = status == STATUS_PENDING ? (NDK_MR *)wait.object : mr;
    return true;
}

/* Gives back the pages and their description. */
static void free_pages(struct tool_memory *memory)
{
    if (memory->mdl)
        IoFreeMdl(memory->mdl);
    free(memory->data);
    memset(memory, 0, sizeof(*memory));
}

bool tool_memory_create(NDK_PD *pd, size_t size, ULONG flags, struct tool_memory *out)
{
    struct tool_memory memory = {.size = size};

    memory.data = aligned_alloc(PAGE_SIZE, ROUND_TO_PAGES(size));
    if (memory.data)
        memory.mdl = IoAllocateMdl(memory.data, (ULONG)size, FALSE, FALSE, NULL);
    if (!memory.mdl) {
        tool_say("no memory for a buffer of %zu B", size);
        free_pages(&memory);
        return false;
    }
    memset(memory.data, 0, ROUND_TO_PAGES(size));
    MmBuildMdlForNonPagedPool(memory.mdl);
    if (!create_mr(pd, &memory.mr)) {
        free_pages(&memory);
        return false;
    }
    if (!register_memory(&memory, flags)) {
        tool_close(&memory.mr->Header, memory.mr->Dispatch->NdkCloseMr);
        free_pages(&memory);
        return false;
    }
    *out = memory;
    return true;
}

void tool_memory_close(struct tool_memory *memory)
{
    NDK_MR *mr = memory->mr;
    struct tool_wait wait;
    NTSTATUS status;

    if (!mr)
        return;
    tool_wait_begin(&wait);
    status = mr->Dispatch->NdkDeregisterMr(mr, tool_requested, &wait);
    check(&mr->Header, "NdkDeregisterMr", tool_wait_end(&wait, status));
    tool_close(&mr->Header, mr->Dispatch->NdkCloseMr);
    free_pages(memory);
}

NDK_SGE tool_memory_sge(const struct tool_memory *memory, size_t offset, ULONG length)
{
    NDK_SGE sge = {.Length = length, .MemoryRegionToken = memory->local};

    sge.VirtualAddress = memory->data + offset;
    return sge;
}
