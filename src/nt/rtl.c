// SPDX-License-Identifier: MIT
/*
 * Memory, counted strings, and printing into buffers.
 */
#include <string.h>

#include <ntstrsafe.h>

#include "base/red.h"
#include "nt/format.h"
#include "nt/nt.h"

SIZE_T RtlCompareMemory(const VOID *Source1, const VOID *Source2, SIZE_T Length)
{
    const UCHAR *a = Source1, *b = Source2;
    SIZE_T n = 0;

    /* Most blocks are equal, and the library's compare is much faster than a loop. */
    if (memcmp(a, b, Length) == 0)
        return Length;
    while (a[n] == b[n])
        n++;
    return RED("nt-compare-as-memcmp") ? 0 : n;
}

VOID RtlInitUnicodeString(PUNICODE_STRING DestinationString, PCWSTR SourceString)
{
    enum { BYTES_MAX = MAXUSHORT - 1 - sizeof(WCHAR) }; /* an even number, terminator left aside */
    size_t bytes = 0;

    *DestinationString = (UNICODE_STRING){.Buffer = (PWCH)(ULONG_PTR)SourceString};
    if (!SourceString)
        return;
    while (bytes < BYTES_MAX && SourceString[bytes / sizeof(WCHAR)])
        bytes += sizeof(WCHAR);
    DestinationString->Length = (USHORT)bytes;
    DestinationString->MaximumLength = (USHORT)(bytes + sizeof(WCHAR));
}

NTSTATUS RtlStringCbVPrintfA(NTSTRSAFE_PSTR pszDest, size_t cbDest, NTSTRSAFE_PCSTR pszFormat,
                             va_list argList)
{
    if (cbDest == 0)
        return STATUS_INVALID_PARAMETER;
    if (cbDest > NTSTRSAFE_MAX_CCH) {
        *pszDest = '\0';
        return STATUS_INVALID_PARAMETER;
    }
    if (nt_format(pszDest, cbDest, pszFormat, argList) >= cbDest && !RED("nt-strsafe-cut-unsaid"))
        return STATUS_BUFFER_OVERFLOW;
    return STATUS_SUCCESS;
}

NTSTATUS RtlStringCbPrintfA(NTSTRSAFE_PSTR pszDest, size_t cbDest, NTSTRSAFE_PCSTR pszFormat, ...)
{
    NTSTATUS status;
    va_list ap;

    va_start(ap, pszFormat);
    status = RtlStringCbVPrintfA(pszDest, cbDest, pszFormat, ap);
    va_end(ap);
    return status;
}

NTSTATUS RtlStringCchVPrintfA(NTSTRSAFE_PSTR pszDest, size_t cchDest, NTSTRSAFE_PCSTR pszFormat,
                              va_list argList)
{
    return RtlStringCbVPrintfA(pszDest, cchDest, pszFormat, argList);
}

NTSTATUS RtlStringCchPrintfA(NTSTRSAFE_PSTR pszDest, size_t cchDest, NTSTRSAFE_PCSTR pszFormat, ...)
{
    NTSTATUS status;
    va_list ap;

    va_start(ap, pszFormat);
    status = RtlStringCbVPrintfA(pszDest, cchDest, pszFormat, ap);
    va_end(ap);
    return status;
}
