// SPDX-License-Identifier: MIT
/*
 * Bug checks: their names, what their parameters are, and the end of the process.
 *
 * The line goes to stderr, and to the log file if there is one: no setting of the log hides it.
 */
#include "nt/bugcheck.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/red.h"
#include "nt/nt.h"
#include "os/os_trace.h"

/* Codes that drivers meet or give themselves; what the parameters are, where that is one thing. */
static const struct {
    ULONG code;
    const char *name;
    const char *parameter[4];
} known[] = {
    {0x0A, "IRQL_NOT_LESS_OR_EQUAL", {"address", "IRQL", "access", "instruction"}},
    {0x0C, "MAXIMUM_WAIT_OBJECTS_EXCEEDED", {NULL, NULL, NULL, NULL}},
    {0x18, "REFERENCE_BY_POINTER", {"object type", "object", NULL, NULL}},
    {0x19, "BAD_POOL_HEADER", {"kind", "block", NULL, NULL}},
    {0x1A, "MEMORY_MANAGEMENT", {"kind", NULL, NULL, NULL}},
    {0x1E, "KMODE_EXCEPTION_NOT_HANDLED", {"exception", "instruction", NULL, NULL}},
    {0x35, "NO_MORE_IRP_STACK_LOCATIONS", {"request", NULL, NULL, NULL}},
    {0x3B, "SYSTEM_SERVICE_EXCEPTION", {"exception", "instruction", "context", NULL}},
    {0x44, "MULTIPLE_IRP_COMPLETE_REQUESTS", {"request", NULL, NULL, NULL}},
    {0x50, "PAGE_FAULT_IN_NONPAGED_AREA", {"address", "access", "instruction", NULL}},
    {0x76, "PROCESS_HAS_LOCKED_PAGES", {NULL, "process", "locked pages", NULL}},
    {0x7E, "SYSTEM_THREAD_EXCEPTION_NOT_HANDLED", {"exception", "instruction", NULL, NULL}},
    {0x7F, "UNEXPECTED_KERNEL_MODE_TRAP", {"trap", NULL, NULL, NULL}},
    {0x8E, "KERNEL_MODE_EXCEPTION_NOT_HANDLED", {"exception", "instruction", NULL, NULL}},
    {0x93, "INVALID_KERNEL_HANDLE", {"handle", NULL, NULL, NULL}},
    {0x9F, "DRIVER_POWER_STATE_FAILURE", {"kind", NULL, NULL, NULL}},
    {0xBE, "ATTEMPTED_WRITE_TO_READONLY_MEMORY", {"address", NULL, NULL, NULL}},
    {0xC1, "SPECIAL_POOL_DETECTED_MEMORY_CORRUPTION", {"address", NULL, NULL, "kind"}},
    {0xC2, "BAD_POOL_CALLER", {"kind", NULL, NULL, "block"}},
    {0xC4, "DRIVER_VERIFIER_DETECTED_VIOLATION", {"kind", NULL, NULL, NULL}},
    {0xC5, "DRIVER_CORRUPTED_EXPOOL", {"address", "IRQL", "access", "instruction"}},
    {0xC7, "TIMER_OR_DPC_INVALID", {"kind", "object", "begin of memory", "end of memory"}},
    {0xC9, "DRIVER_VERIFIER_IOMANAGER_VIOLATION", {"kind", NULL, NULL, NULL}},
    {0xCB, "DRIVER_LEFT_LOCKED_PAGES_IN_PROCESS", {NULL, NULL, NULL, "locked pages"}},
    {0xCE,
     "DRIVER_UNLOADED_WITHOUT_CANCELLING_PENDING_OPERATIONS",
     {"address", "access", "instruction", NULL}},
    {0xD0, "DRIVER_CORRUPTED_MMPOOL", {"address", "IRQL", "access", "instruction"}},
    {0xD1, "DRIVER_IRQL_NOT_LESS_OR_EQUAL", {"address", "IRQL", "access", "instruction"}},
    {0xD5, "DRIVER_PAGE_FAULT_IN_FREED_SPECIAL_POOL", {"address", "access", "instruction", NULL}},
    {0xDE, "POOL_CORRUPTION_IN_FILE_AREA", {NULL, NULL, NULL, NULL}},
    {0xE1, "WORKER_THREAD_RETURNED_AT_BAD_IRQL", {"routine", "IRQL", "item", "item"}},
    {0xE2, "MANUALLY_INITIATED_CRASH", {NULL, NULL, NULL, NULL}},
    {0xE3, "RESOURCE_NOT_OWNED", {"resource", "thread", "owners", "kind"}},
    {0xE4, "WORKER_INVALID", {"kind", "item", "queue", NULL}},
    {0xF7, "DRIVER_OVERRAN_STACK_BUFFER", {NULL, NULL, NULL, NULL}},
    {0xFC, "ATTEMPTED_EXECUTE_OF_NOEXECUTE_MEMORY", {"address", NULL, NULL, NULL}},
    {0x101, "CLOCK_WATCHDOG_TIMEOUT", {NULL, NULL, NULL, NULL}},
    {0x10D, "WDF_VIOLATION", {"kind", NULL, NULL, NULL}},
    {0x133, "DPC_WATCHDOG_VIOLATION", {"kind", "ticks", "limit", NULL}},
    {0x139, "KERNEL_SECURITY_CHECK_FAILURE", {"kind", NULL, NULL, NULL}},
    {0x13A, "KERNEL_MODE_HEAP_CORRUPTION", {"kind", "heap", "address", NULL}},
    {0x162, "KERNEL_AUTO_BOOST_INVALID_LOCK_RELEASE", {"thread", "lock", NULL, NULL}},
    {0xDEADDEAD, "MANUALLY_INITIATED_CRASH1", {NULL, NULL, NULL, NULL}},
};

/* Kinds of KERNEL_SECURITY_CHECK_FAILURE. */
static const char *const fast_fails[] = {
    [0] = "stack buffer overrun (old)",
    [1] = "virtual table changed",
    [2] = "stack cookie changed",
    [3] = "corrupt LIST_ENTRY: a link does not point back (double remove, or overwritten)",
    [4] = "stack pointer out of its stack",
    [5] = "invalid argument",
    [6] = "stack cookie not initialized",
    [7] = "fatal exit",
    [10] = "indirect call to an address that is no target (control flow guard)",
    [14] = "invalid reference count",
    [18] = "invalid jump buffer",
    [19] = "set context denied",
    [25] = "invalid exception chain",
};

void nt_stop(const char *format, ...)
{
    void *frames[16];
    char symbol[OS_SYMBOL_MAX];
    unsigned depth = os_trace(frames, 16, __builtin_return_address(0));
    va_list ap;

    if (!log_on(LOG_ERROR))
        log_set_level(LOG_ERROR);
    va_start(ap, format);
    log_vwrite(LOG_ERROR, format, ap);
    va_end(ap);
    for (unsigned i = 0; i < depth; i++)
        log_write(LOG_ERROR, "  %s", os_symbol(frames[i], symbol));
    abort();
}

static const char *words_for(ULONG code, ULONG_PTR first)
{
    size_t kinds = sizeof fast_fails / sizeof fast_fails[0];

    return code == 0x139 && first < kinds ? fast_fails[first] : NULL;
}

VOID KeBugCheckEx(ULONG BugCheckCode, ULONG_PTR BugCheckParameter1, ULONG_PTR BugCheckParameter2,
                  ULONG_PTR BugCheckParameter3, ULONG_PTR BugCheckParameter4)
{
    const ULONG_PTR values[4] = {BugCheckParameter1, BugCheckParameter2, BugCheckParameter3,
                                 BugCheckParameter4};
    const char *name = "a code of the driver's own", *words = NULL;
    const char *const *parameter = NULL;
    char text[400];
    size_t at = 0;

    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        if (known[i].code == BugCheckCode) {
            name = known[i].name;
            parameter = known[i].parameter;
        }
    }
    words = words_for(BugCheckCode, BugCheckParameter1);
    for (int i = 0; i < 4; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%s%s0x%zx", i ? ", " : "",
                               parameter && parameter[i] ? parameter[i] : "",
                               parameter && parameter[i] ? " " : "", (size_t)values[i]);
    if (RED("nt-bugcheck-goes-on"))
        _exit(0);
    nt_stop("bug check 0x%X %s (%s)%s%s", BugCheckCode, name, text, words ? ": " : "",
            words ? words : "");
}

VOID KeBugCheck(ULONG BugCheckCode)
{
    KeBugCheckEx(BugCheckCode, 0, 0, 0, 0);
}

VOID RtlFailFast(ULONG Code)
{
    KeBugCheckEx(0x139, Code, 0, 0, 0);
}
