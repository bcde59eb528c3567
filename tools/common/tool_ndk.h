// SPDX-License-Identifier: MIT
/*
 * The asynchronous NDK calls as blocking ones, for programs: each function here calls one slot,
 * waits on a KEVENT when the answer is STATUS_PENDING, and tells on stderr what went wrong.
 *
 * Threads: any, at PASSIVE_LEVEL, never inside a callback. A failure leaves the output untouched.
 */
#ifndef SOFTNDK_TOOL_NDK_H
#define SOFTNDK_TOOL_NDK_H

#include <softndk.h>

#include <stdbool.h>

/* One pending call. On the stack of the caller, who waits for it in any case. */
struct tool_wait {
    KEVENT event;
    NTSTATUS status;
    NDK_OBJECT_HEADER *object; /* of a create */
};

void tool_wait_begin(struct tool_wait *wait);
/* What the call came to: `returned` itself, or after STATUS_PENDING what the callback brought. */
NTSTATUS tool_wait_end(struct tool_wait *wait, NTSTATUS returned);

/* The callbacks to hand over; the context is the struct tool_wait. */
VOID tool_created(PVOID context, NTSTATUS status, NDK_OBJECT_HEADER *object);
VOID tool_requested(PVOID context, NTSTATUS status);
VOID tool_closed(PVOID context);
/* For a close that nobody waits for; the adapter's close does. */
VOID tool_closed_alone(PVOID context);

/* "NAME: call: STATUS_... (0x...): meaning", and the reason kept at the object, on stderr. object
 * may be NULL. */
void tool_report(const NDK_OBJECT_HEADER *object, const char *call, NTSTATUS status);
/* The same for softndk_open_adapter, _list and _for_route, whose sentence is the thread's. */
void tool_report_open(const char *call, NTSTATUS status);
/* "STATUS_IO_TIMEOUT (0xC00000B5)"; returns text. */
const char *tool_status(NTSTATUS status, char *text, size_t size);

/* The profile that adapters are opened with from now on; the text must stay. NULL: none. */
void tool_use_profile(const char *name);
/* The highest version that is offered. What went wrong is returned, and reported. */
NTSTATUS tool_open_adapter(const char *selector, NDK_ADAPTER **out);
bool tool_create_cq(NDK_ADAPTER *adapter, ULONG depth, NDK_FN_CQ_NOTIFICATION_CALLBACK notification,
                    PVOID context, NDK_CQ **out);
bool tool_create_pd(NDK_ADAPTER *adapter, NDK_PD **out);
/* One CQ for both queues, one SGE a request. Depths are entries. */
bool tool_create_qp(NDK_PD *pd, NDK_CQ *cq, ULONG receives, ULONG requests, NDK_QP **out);
bool tool_create_connector(NDK_ADAPTER *adapter, NDK_CONNECTOR **out);
bool tool_create_listener(NDK_ADAPTER *adapter, NDK_FN_CONNECT_EVENT_CALLBACK event, PVOID context,
                          NDK_LISTENER **out);
/* What went wrong is returned, and reported unless quiet. */
NTSTATUS tool_listen(NDK_LISTENER *listener, const SOCKADDR_INET *address, ULONG length,
                     bool quiet);
/* Text with its port put in; 0: not an address without port. */
ULONG tool_address(const char *text, uint16_t port, SOCKADDR_INET *out);
/* -1 for no text or an address without port, else TOOL_USAGE, and the sentence is told. */
int tool_check_address(const char *option, const char *text);
/* "listening on ADDRESS:PORT" on stdout, at once. */
void tool_tell_listening(NDK_LISTENER *listener);
/* Closes any object and waits until it is closed. */
void tool_close(NDK_OBJECT_HEADER *object, NDK_FN_CLOSE_OBJECT close);

/* Page-aligned zeroed memory of the program's own, registered as a region. */
struct tool_memory {
    UCHAR *data;
    size_t size; /* bytes */
    PMDL mdl;
    NDK_MR *mr;
    UINT32 local, remote; /* tokens */
};

/* flags: NDK_MR_FLAG_... On failure the memory is empty. */
bool tool_memory_create(NDK_PD *pd, size_t size, ULONG flags, struct tool_memory *out);
/* Empty memory is fine. No request may use it any more. */
void tool_memory_close(struct tool_memory *memory);
/* One piece of it. */
NDK_SGE tool_memory_sge(const struct tool_memory *memory, size_t offset, ULONG length);

#endif
