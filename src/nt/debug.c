// SPDX-License-Identifier: MIT
/*
 * DbgPrint, and assertions that failed. What consumers print goes to stderr as it is, one write a
 * call, so that lines of two threads never mix.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/red.h"
#include "nt/bugcheck.h"
#include "nt/format.h"
#include "nt/nt.h"

enum { DBG_PRINT_MAX = 512 }; /* bytes a call, as on Windows */

ULONG vDbgPrintEx(ULONG ComponentId, ULONG Level, PCSTR Format, va_list arglist)
{
    char text[DBG_PRINT_MAX + 1];
    size_t length = nt_format(text, sizeof text, Format, arglist);

    (void)ComponentId;
    (void)Level;
    if (length > DBG_PRINT_MAX)
        length = DBG_PRINT_MAX;
    if (RED("nt-dbgprint-lost") || write(STDERR_FILENO, text, length) < 0)
        return (ULONG)STATUS_UNSUCCESSFUL;
    return (ULONG)STATUS_SUCCESS;
}

ULONG DbgPrint(PCSTR Format, ...)
{
    va_list ap;
    ULONG status;

    va_start(ap, Format);
    status = vDbgPrintEx(DPFLTR_IHVDRIVER_ID, DPFLTR_INFO_LEVEL, Format, ap);
    va_end(ap);
    return status;
}

ULONG DbgPrintEx(ULONG ComponentId, ULONG Level, PCSTR Format, ...)
{
    va_list ap;
    ULONG status;

    va_start(ap, Format);
    status = vDbgPrintEx(ComponentId, Level, Format, ap);
    va_end(ap);
    return status;
}

VOID RtlAssert(PVOID VoidFailedAssertion, PVOID VoidFileName, ULONG LineNumber, PSTR MutableMessage)
{
    nt_stop("assertion failed: %s%s%s, %s:%u", MutableMessage ? MutableMessage : "",
            MutableMessage ? ": " : "", (const char *)VoidFailedAssertion,
            (const char *)VoidFileName, LineNumber);
}
