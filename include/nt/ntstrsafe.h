// SPDX-License-Identifier: MIT
/*
 * ntstrsafe.h - printing and copying into buffers of known size.
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

/*
 * Copying, appending and measuring. A copy that does not fit is cut off, terminated, and
 * STATUS_BUFFER_OVERFLOW. A length that is not found within the size, and a destination to append
 * to that is not terminated, are STATUS_INVALID_PARAMETER.
 */
#define SOFTNDK_STRSAFE(T, S)                                                                      \
    static inline NTSTATUS RtlStringCchLength##S(const T *psz, size_t cchMax, size_t *pcchLength)  \
    {                                                                                              \
        size_t n = 0;                                                                              \
        while (psz && cchMax <= NTSTRSAFE_MAX_CCH && n < cchMax && psz[n])                         \
            n++;                                                                                   \
        if (!psz || cchMax > NTSTRSAFE_MAX_CCH || n == cchMax)                                     \
            return STATUS_INVALID_PARAMETER;                                                       \
        if (pcchLength)                                                                            \
            *pcchLength = n;                                                                       \
        return STATUS_SUCCESS;                                                                     \
    }                                                                                              \
    static inline NTSTATUS RtlStringCchCopyN##S(T *pszDest, size_t cchDest, const T *pszSrc,       \
                                                size_t cchToCopy)                                  \
    {                                                                                              \
        size_t n = 0;                                                                              \
        if (cchDest == 0 || cchDest > NTSTRSAFE_MAX_CCH)                                           \
            return STATUS_INVALID_PARAMETER;                                                       \
        for (; n < cchDest - 1 && n < cchToCopy && pszSrc[n]; n++)                                 \
            pszDest[n] = pszSrc[n];                                                                \
        pszDest[n] = 0;                                                                            \
        return n < cchToCopy && pszSrc[n] ? STATUS_BUFFER_OVERFLOW : STATUS_SUCCESS;               \
    }                                                                                              \
    static inline NTSTATUS RtlStringCchCopy##S(T *pszDest, size_t cchDest, const T *pszSrc)        \
    {                                                                                              \
        return RtlStringCchCopyN##S(pszDest, cchDest, pszSrc, NTSTRSAFE_MAX_CCH);                  \
    }                                                                                              \
    static inline NTSTATUS RtlStringCchCat##S(T *pszDest, size_t cchDest, const T *pszSrc)         \
    {                                                                                              \
        size_t n = 0;                                                                              \
        NTSTATUS status = RtlStringCchLength##S(pszDest, cchDest, &n);                             \
        return NT_SUCCESS(status) ? RtlStringCchCopy##S(pszDest + n, cchDest - n, pszSrc)          \
                                  : status;                                                        \
    }                                                                                              \
    static inline NTSTATUS RtlStringCbLength##S(const T *psz, size_t cbMax, size_t *pcbLength)     \
    {                                                                                              \
        NTSTATUS status = RtlStringCchLength##S(psz, cbMax / sizeof(T), pcbLength);                \
        if (NT_SUCCESS(status) && pcbLength)                                                       \
            *pcbLength *= sizeof(T);                                                               \
        return status;                                                                             \
    }                                                                                              \
    static inline NTSTATUS RtlStringCbCopyN##S(T *pszDest, size_t cbDest, const T *pszSrc,         \
                                               size_t cbToCopy)                                    \
    {                                                                                              \
        return RtlStringCchCopyN##S(pszDest, cbDest / sizeof(T), pszSrc, cbToCopy / sizeof(T));    \
    }                                                                                              \
    static inline NTSTATUS RtlStringCbCopy##S(T *pszDest, size_t cbDest, const T *pszSrc)          \
    {                                                                                              \
        return RtlStringCchCopy##S(pszDest, cbDest / sizeof(T), pszSrc);                           \
    }                                                                                              \
    static inline NTSTATUS RtlStringCbCat##S(T *pszDest, size_t cbDest, const T *pszSrc)           \
    {                                                                                              \
        return RtlStringCchCat##S(pszDest, cbDest / sizeof(T), pszSrc);                            \
    }
SOFTNDK_STRSAFE(CHAR, A)
SOFTNDK_STRSAFE(WCHAR, W)
#undef SOFTNDK_STRSAFE

SOFTNDK_END_C

#endif /* SOFTNDK_NTSTRSAFE_H */
