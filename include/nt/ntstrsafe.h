// SPDX-License-Identifier: MIT
/*
 * ntstrsafe.h - printing into buffers of known size.
 *
 * STATUS_SUCCESS: the whole text is there. STATUS_BUFFER_OVERFLOW (a warning): it was cut off and
 * terminated. STATUS_INVALID_PARAMETER: no room for a terminator, or a size above
 * NTSTRSAFE_MAX_CCH. Formats are those of Windows, see DbgPrint. NTSTRSAFE_LIB and the like change
 * nothing here.
 */
#ifndef SOFTNDK_NTSTRSAFE_H
#define SOFTNDK_NTSTRSAFE_H

#include "ntdef.h"
#include "ntstatus.h"
#include "wdm/rtl.h"

SOFTNDK_BEGIN_C

#define NTSTRSAFE_MAX_CCH 2147483647

typedef PSTR NTSTRSAFE_PSTR;
typedef PCSTR NTSTRSAFE_PCSTR;

/* Cb: the size is in bytes, Cch: in characters; the same for narrow text. */
NTSTATUS RtlStringCbVPrintfA(NTSTRSAFE_PSTR pszDest, size_t cbDest, NTSTRSAFE_PCSTR pszFormat,
                             va_list argList);
NTSTATUS RtlStringCbPrintfA(NTSTRSAFE_PSTR pszDest, size_t cbDest, NTSTRSAFE_PCSTR pszFormat, ...);
NTSTATUS RtlStringCchVPrintfA(NTSTRSAFE_PSTR pszDest, size_t cchDest, NTSTRSAFE_PCSTR pszFormat,
                              va_list argList);
NTSTATUS RtlStringCchPrintfA(NTSTRSAFE_PSTR pszDest, size_t cchDest, NTSTRSAFE_PCSTR pszFormat,
                             ...);

SOFTNDK_END_C

#endif /* SOFTNDK_NTSTRSAFE_H */
