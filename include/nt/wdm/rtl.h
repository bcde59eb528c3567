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

#define RtlCopyBytes RtlCopyMemory
#define RtlZeroBytes RtlZeroMemory

/* Not left out, even when nobody reads the memory any more. */
#define RtlSecureZeroMemory(Destination, Length)                                                   \
    do {                                                                                           \
        PVOID softndk_zeroed = (Destination);                                                      \
        RtlZeroMemory(softndk_zeroed, (Length));                                                   \
        __asm__ volatile("" ::"r"(softndk_zeroed) : "memory");                                     \
    } while (0)

/* How many bytes from the beginning on are equal: Length when all are. */
SIZE_T RtlCompareMemory(const VOID *Source1, const VOID *Source2, SIZE_T Length);

/* Windows' headers bring in <string.h>; its functions of bytes are declared here, as the host
 * declares them, so that nothing of its headers comes along and they may still be included. Those
 * of wide characters are not: the host's have 4 bytes. */
#ifdef __cplusplus
#define SOFTNDK_NOEXCEPT noexcept
#else
#define SOFTNDK_NOEXCEPT
#endif
int memcmp(const void *, const void *, size_t) SOFTNDK_NOEXCEPT;
void *memcpy(void *, const void *, size_t) SOFTNDK_NOEXCEPT;
void *memmove(void *, const void *, size_t) SOFTNDK_NOEXCEPT;
void *memset(void *, int, size_t) SOFTNDK_NOEXCEPT;
char *strcat(char *, const char *) SOFTNDK_NOEXCEPT;
int strcmp(const char *, const char *) SOFTNDK_NOEXCEPT;
char *strcpy(char *, const char *) SOFTNDK_NOEXCEPT;
size_t strlen(const char *) SOFTNDK_NOEXCEPT;
int strncmp(const char *, const char *, size_t) SOFTNDK_NOEXCEPT;
char *strncpy(char *, const char *, size_t) SOFTNDK_NOEXCEPT;
#ifdef __cplusplus
/* C++ has two of each: what is const stays so. */
#define SOFTNDK_FINDER(type, name, parameters)                                                     \
    extern "C++" {                                                                                 \
    extern type *name(type *, SOFTNDK_EXPAND parameters) noexcept __asm(#name);                    \
    extern const type *name(const type *, SOFTNDK_EXPAND parameters) noexcept __asm(#name);        \
    }
#define SOFTNDK_EXPAND(...) __VA_ARGS__
SOFTNDK_FINDER(void, memchr, (int, size_t))
SOFTNDK_FINDER(char, strchr, (int))
SOFTNDK_FINDER(char, strrchr, (int))
SOFTNDK_FINDER(char, strstr, (const char *))
#undef SOFTNDK_FINDER
#undef SOFTNDK_EXPAND
#else
void *memchr(const void *, int, size_t);
char *strchr(const char *, int);
char *strrchr(const char *, int);
char *strstr(const char *, const char *);
#endif
#undef SOFTNDK_NOEXCEPT

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
