// SPDX-License-Identifier: MIT
/*
 * wdm/rtl.h - memory, counted strings, byte order, and error numbers. A part of wdm.h; include
 * that.
 */
#ifndef SOFTNDK_WDM_RTL_H
#define SOFTNDK_WDM_RTL_H

#include "../ntdef.h"

SOFTNDK_BEGIN_C

/* ---- memory ---- */

#define RtlZeroMemory(Destination, Length) ((void)__builtin_memset((Destination), 0, (Length)))
#define RtlFillMemory(Destination, Length, Fill)                                                   \
    ((void)__builtin_memset((Destination), (Fill), (Length)))
#define RtlCopyMemory(Destination, Source, Length)                                                 \
    ((void)__builtin_memcpy((Destination), (Source), (Length)))
#define RtlMoveMemory(Destination, Source, Length)                                                 \
    ((void)__builtin_memmove((Destination), (Source), (Length)))
#define RtlEqualMemory(Destination, Source, Length)                                                \
    (!__builtin_memcmp((Destination), (Source), (Length)))

/* How many bytes from the beginning on are equal: Length when all are. */
SIZE_T RtlCompareMemory(const VOID *Source1, const VOID *Source2, SIZE_T Length);

#ifndef __cplusplus
/* Windows' headers bring in <string.h>; its functions of bytes are declared here, so that nothing
 * of the host's headers comes along. Those of wide characters are not: the host's have 4 bytes. */
void *memchr(const void *, int, size_t);
int memcmp(const void *, const void *, size_t);
void *memcpy(void *, const void *, size_t);
void *memmove(void *, const void *, size_t);
void *memset(void *, int, size_t);
char *strcat(char *, const char *);
char *strchr(const char *, int);
int strcmp(const char *, const char *);
char *strcpy(char *, const char *);
size_t strlen(const char *);
int strncmp(const char *, const char *, size_t);
char *strncpy(char *, const char *, size_t);
char *strrchr(const char *, int);
char *strstr(const char *, const char *);
#endif

/* ---- counted strings ---- */

/* Describes a terminated string, which stays the caller's. NULL gives an empty one. At most 65532
 * bytes; a longer string is cut off. Any IRQL, as long as the string is resident. */
VOID RtlInitUnicodeString(PUNICODE_STRING DestinationString, PCWSTR SourceString);

/* Initializer from a literal, without its terminator in Length. */
#define RTL_CONSTANT_STRING(s)                                                                     \
    {                                                                                              \
        sizeof(s) - sizeof((s)[0]), sizeof(s), SOFTNDK_LITERAL(s)                                  \
    }
#ifdef __cplusplus
#define SOFTNDK_LITERAL(s) const_cast<PWCH>(reinterpret_cast<PCWCH>(s))
#else
#define SOFTNDK_LITERAL(s) ((void *)(s))
#endif

#define RtlInitEmptyUnicodeString(UnicodeString, NewBuffer, BufferSize)                            \
    ((void)((UnicodeString)->Length = 0, (UnicodeString)->MaximumLength = (USHORT)(BufferSize),    \
            (UnicodeString)->Buffer = (NewBuffer)))

/* ---- byte order ---- */

#define RtlUshortByteSwap(x)    ((USHORT)__builtin_bswap16((USHORT)(x)))
#define RtlUlongByteSwap(x)     ((ULONG)__builtin_bswap32((ULONG)(x)))
#define RtlUlonglongByteSwap(x) ((ULONGLONG)__builtin_bswap64((ULONGLONG)(x)))

/* ---- errors ---- */

/* The Win32 error number of a status; ERROR_MR_MID_NOT_FOUND (317) when it has none. */
ULONG RtlNtStatusToDosError(NTSTATUS Status);

SOFTNDK_END_C

#endif /* SOFTNDK_WDM_RTL_H */
