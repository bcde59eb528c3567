// SPDX-License-Identifier: MIT
/*
 * ntdef.h - the base types and macros of the NT world, for user mode on Linux.
 *
 * Invariants:
 *  - ULONG and LONG have 32 bits on every target.
 *  - every 64-bit type is the compiler's own __INT64_TYPE__ / __UINT64_TYPE__, so that on x64
 *    SIZE_T, size_t, uint64_t, ULONG64 and ULONG_PTR are one type and no cast is ever needed
 *    between the NT world and C; on 32-bit targets they carry the 8-byte alignment of Windows.
 *  - WCHAR has 2 bytes, whatever wchar_t is.
 *  - nothing but freestanding headers of C is included, since consumers define functions named
 *    wait, complete or logf.
 * Every other header of include/nt and include/ndk starts here.
 */
#ifndef SOFTNDK_NTDEF_H
#define SOFTNDK_NTDEF_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include "sal.h"

#ifdef __cplusplus
#define SOFTNDK_BEGIN_C extern "C" {
#define SOFTNDK_END_C   }
#else
#define SOFTNDK_BEGIN_C
#define SOFTNDK_END_C
#endif

/* What C and C++ share: functions with the names of C. */
#ifdef __cplusplus
#define EXTERN_C       extern "C"
#define EXTERN_C_START extern "C" {
#define EXTERN_C_END   }
#else
#define EXTERN_C extern
#define EXTERN_C_START
#define EXTERN_C_END
#endif

SOFTNDK_BEGIN_C

/* ---- compiler words of the kit's compiler ---- */

#ifndef _MSC_VER
#undef __int64
#define __int64 __INT64_TYPE__
#undef __forceinline
#define __forceinline inline __attribute__((always_inline))
#undef __cdecl
#define __cdecl
#undef __stdcall
#define __stdcall
#undef __fastcall
#define __fastcall
#ifndef __pragma
#define __pragma(...)
#endif
#endif

/* Without `static`, which consumers write before it themselves. Ours have it. */
#define FORCEINLINE         __forceinline
#define CFORCEINLINE        FORCEINLINE
#define SOFTNDK_INLINE      static __forceinline
#define DECLSPEC_ALIGN(x)   __attribute__((aligned(x)))
#define DECLSPEC_CACHEALIGN DECLSPEC_ALIGN(64)
#define DECLSPEC_NORETURN   __attribute__((noreturn))
#define DECLSPEC_NOINLINE   __attribute__((noinline))
#define DECLSPEC_IMPORT
#define SYSTEM_CACHE_ALIGNMENT_SIZE 64

/* Windows aligns 64-bit integers to 8 bytes on x86 too; the System V ABI does not. */
#if defined(__SIZEOF_POINTER__) && __SIZEOF_POINTER__ == 4
#define SOFTNDK_ALIGN64 __attribute__((aligned(8)))
#else
#define SOFTNDK_ALIGN64
#endif

#define NTAPI
#define NTSYSAPI
#define NTKERNELAPI
#define CALLBACK
#define APIENTRY
#define FASTCALL
#define FAR
#define IN
#define OUT
#define OPTIONAL
#define CONST const
#ifndef VOID
#define VOID void
#endif
#define ANYSIZE_ARRAY 1

/* ---- integers ---- */

typedef char CHAR, *PCHAR, *PSTR, *LPSTR, *PSZ;
typedef const char *PCSTR, *LPCSTR, *PCSZ, *PCCHAR;
typedef char CCHAR;
typedef signed char SCHAR, *PSCHAR;
typedef unsigned char UCHAR, *PUCHAR;
typedef const unsigned char *PCUCHAR;
typedef short SHORT, *PSHORT, CSHORT;
typedef unsigned short USHORT, *PUSHORT;
typedef int INT, *PINT;
typedef unsigned int UINT, *PUINT;
typedef __INT32_TYPE__ LONG, *PLONG;
typedef __UINT32_TYPE__ ULONG, *PULONG;
typedef ULONG CLONG, *PCLONG;
typedef UCHAR BOOLEAN, *PBOOLEAN;
typedef ULONG LOGICAL, *PLOGICAL;

typedef __INT8_TYPE__ INT8, *PINT8;
typedef __INT16_TYPE__ INT16, *PINT16;
typedef __INT32_TYPE__ INT32, *PINT32;
typedef __INT32_TYPE__ LONG32, *PLONG32;
typedef __UINT8_TYPE__ UINT8, *PUINT8;
typedef __UINT16_TYPE__ UINT16, *PUINT16;
typedef __UINT32_TYPE__ UINT32, *PUINT32;
typedef __UINT32_TYPE__ ULONG32, *PULONG32;
typedef __UINT32_TYPE__ DWORD32, *PDWORD32;

typedef __INT64_TYPE__ INT64 SOFTNDK_ALIGN64;
typedef __INT64_TYPE__ LONG64 SOFTNDK_ALIGN64;
typedef __INT64_TYPE__ LONGLONG SOFTNDK_ALIGN64;
typedef __UINT64_TYPE__ UINT64 SOFTNDK_ALIGN64;
typedef __UINT64_TYPE__ ULONG64 SOFTNDK_ALIGN64;
typedef __UINT64_TYPE__ ULONGLONG SOFTNDK_ALIGN64;
typedef __UINT64_TYPE__ DWORD64 SOFTNDK_ALIGN64;
typedef INT64 *PINT64;
typedef LONG64 *PLONG64;
typedef LONGLONG *PLONGLONG;
typedef UINT64 *PUINT64;
typedef ULONG64 *PULONG64;
typedef ULONGLONG *PULONGLONG;
typedef DWORD64 *PDWORD64;

typedef __INTPTR_TYPE__ INT_PTR, *PINT_PTR;
typedef __INTPTR_TYPE__ LONG_PTR, *PLONG_PTR;
typedef __UINTPTR_TYPE__ UINT_PTR, *PUINT_PTR;
typedef __UINTPTR_TYPE__ ULONG_PTR, *PULONG_PTR;
typedef ULONG_PTR DWORD_PTR, *PDWORD_PTR;
typedef __SIZE_TYPE__ SIZE_T, *PSIZE_T;
typedef LONG_PTR SSIZE_T, *PSSIZE_T;
typedef ULONG_PTR KAFFINITY, *PKAFFINITY;

#define TRUE  1
#define FALSE 0

#define MINCHAR      0x80
#define MAXCHAR      0x7f
#define MINSHORT     0x8000
#define MAXSHORT     0x7fff
#define MINLONG      0x80000000
#define MAXLONG      0x7fffffff
#define MAXUCHAR     0xff
#define MAXUSHORT    0xffff
#define MAXUINT8     ((UINT8) ~((UINT8)0))
#define MAXUINT16    ((UINT16) ~((UINT16)0))
#define MAXUINT32    ((UINT32) ~((UINT32)0))
#define MAXUINT64    ((UINT64) ~((UINT64)0))
#define MAXULONG     0xffffffff
#define MAXLONGLONG  ((LONGLONG)0x7fffffffffffffffLL)
#define MAXULONGLONG ((ULONGLONG) ~((ULONGLONG)0))
#define MAXULONG64   ((ULONG64) ~((ULONG64)0))
#define MAXSIZE_T    ((SIZE_T) ~((SIZE_T)0))

/* ---- pointers, characters, handles ---- */

typedef void *PVOID, *LPVOID;
typedef void *PVOID64;
typedef void *HANDLE, **PHANDLE;
#define DECLARE_HANDLE(name)                                                                       \
    struct name##__ {                                                                              \
        int unused;                                                                                \
    };                                                                                             \
    typedef struct name##__ *name

#ifndef __cplusplus
typedef unsigned short WCHAR;
#elif defined(__SIZEOF_WCHAR_T__) && __SIZEOF_WCHAR_T__ == 2
typedef wchar_t WCHAR;
#else
typedef char16_t WCHAR;
#endif
typedef WCHAR *PWCHAR, *PWCH, *PWSTR, *LPWSTR;
typedef const WCHAR *PCWCH, *PCWSTR, *LPCWSTR;

/* ---- status ---- */

typedef LONG NTSTATUS, *PNTSTATUS;

/* Success and informational codes are >= 0: STATUS_PENDING passes NT_SUCCESS, a warning such as
 * STATUS_BUFFER_OVERFLOW does not and is no NT_ERROR either. */
#define NT_SUCCESS(Status)     (((NTSTATUS)(Status)) >= 0)
#define NT_INFORMATION(Status) ((((ULONG)(Status)) >> 30) == 1)
#define NT_WARNING(Status)     ((((ULONG)(Status)) >> 30) == 2)
#define NT_ERROR(Status)       ((((ULONG)(Status)) >> 30) == 3)

/* ---- layout ---- */

#define FIELD_OFFSET(type, field)  ((LONG) __builtin_offsetof(type, field))
#define UFIELD_OFFSET(type, field) ((ULONG) __builtin_offsetof(type, field))
#define CONTAINING_RECORD(address, type, field)                                                    \
    ((type *)(void *)((char *)(address) - __builtin_offsetof(type, field)))
#define RTL_FIELD_SIZE(type, field) (sizeof(((type *)0)->field))
#define RTL_SIZEOF_THROUGH_FIELD(type, field)                                                      \
    (__builtin_offsetof(type, field) + RTL_FIELD_SIZE(type, field))
#define RTL_CONTAINS_FIELD(Struct, Size, Field)                                                    \
    ((((char *)(&(Struct)->Field)) + sizeof((Struct)->Field)) <= (((char *)(Struct)) + (Size)))
#define RTL_NUMBER_OF(A)                   (sizeof(A) / sizeof((A)[0]))
#define RTL_NUMBER_OF_FIELD(type, field)   (RTL_NUMBER_OF(((type *)0)->field))
#define ARRAYSIZE(A)                       RTL_NUMBER_OF(A)
#define ARGUMENT_PRESENT(p)                ((char *)(ULONG_PTR)(p) != (char *)0)
#define UNREFERENCED_PARAMETER(P)          ((void)(P))
#define DBG_UNREFERENCED_PARAMETER(P)      ((void)(P))
#define UNREFERENCED_LOCAL_VARIABLE(V)     ((void)(V))
#define DBG_UNREFERENCED_LOCAL_VARIABLE(V) ((void)(V))

/* Numbers and addresses at multiples of a size that is a power of two: of a number of octets (_BY),
 * or of a type. */
#define ALIGN_DOWN_BY(Length, Alignment)          ((ULONG_PTR)(Length) & ~((ULONG_PTR)(Alignment)-1))
#define ALIGN_UP_BY(Length, Alignment)            ALIGN_DOWN_BY((ULONG_PTR)(Length) + (Alignment)-1, Alignment)
#define ALIGN_DOWN(Length, Type)                  ALIGN_DOWN_BY(Length, sizeof(Type))
#define ALIGN_UP(Length, Type)                    ALIGN_UP_BY(Length, sizeof(Type))
#define ALIGN_DOWN_POINTER_BY(Address, Alignment) ((PVOID)ALIGN_DOWN_BY(Address, Alignment))
#define ALIGN_UP_POINTER_BY(Address, Alignment)   ((PVOID)ALIGN_UP_BY(Address, Alignment))
#define ALIGN_DOWN_POINTER(Address, Type)         ALIGN_DOWN_POINTER_BY(Address, sizeof(Type))
#define ALIGN_UP_POINTER(Address, Type)           ALIGN_UP_POINTER_BY(Address, sizeof(Type))
#define MEMORY_ALLOCATION_ALIGNMENT               (2 * sizeof(PVOID))
#ifdef __cplusplus
#define C_ASSERT(e) static_assert(e, #e)
#else
#define C_ASSERT(e) _Static_assert(e, #e)
#endif

/* As in the kit, not in C++. NOMINMAX keeps them away. Both evaluate an argument twice. */
#if !defined(__cplusplus) && !defined(NOMINMAX)
#ifndef min
#define min(a, b) (((a) < (b)) ? (a) : (b))
#endif
#ifndef max
#define max(a, b) (((a) > (b)) ? (a) : (b))
#endif
#endif

/* ---- composite types ---- */

/* A signed 64-bit number that can be reached by halves; low half first, as on every Windows. */
typedef union _LARGE_INTEGER {
    __extension__ struct {
        ULONG LowPart;
        LONG HighPart;
    };
    struct {
        ULONG LowPart;
        LONG HighPart;
    } u;
    LONGLONG QuadPart;
} LARGE_INTEGER, *PLARGE_INTEGER;

typedef union _ULARGE_INTEGER {
    __extension__ struct {
        ULONG LowPart;
        ULONG HighPart;
    };
    struct {
        ULONG LowPart;
        ULONG HighPart;
    } u;
    ULONGLONG QuadPart;
} ULARGE_INTEGER, *PULARGE_INTEGER;

typedef LARGE_INTEGER PHYSICAL_ADDRESS, *PPHYSICAL_ADDRESS;

/* Link of a doubly linked ring; an empty list head points at itself both ways. */
typedef struct _LIST_ENTRY {
    struct _LIST_ENTRY *Flink;
    struct _LIST_ENTRY *Blink;
} LIST_ENTRY, *PLIST_ENTRY;

typedef struct _SINGLE_LIST_ENTRY {
    struct _SINGLE_LIST_ENTRY *Next;
} SINGLE_LIST_ENTRY, *PSINGLE_LIST_ENTRY;

#ifndef GUID_DEFINED
#define GUID_DEFINED
typedef struct _GUID {
    ULONG Data1;
    USHORT Data2;
    USHORT Data3;
    UCHAR Data4[8];
} GUID, *PGUID, *LPGUID;
typedef const GUID *LPCGUID;
#endif

/* Declares a GUID; defines it in the one source file that defines INITGUID before. */
#ifdef __cplusplus
#define SOFTNDK_EXTERN_C extern "C"
#else
#define SOFTNDK_EXTERN_C extern
#endif
#ifdef INITGUID
#define DEFINE_GUID(name, l, w1, w2, b1, b2, b3, b4, b5, b6, b7, b8)                               \
    SOFTNDK_EXTERN_C const GUID name;                                                              \
    const GUID name = {l, w1, w2, {b1, b2, b3, b4, b5, b6, b7, b8}}
#else
#define DEFINE_GUID(name, l, w1, w2, b1, b2, b3, b4, b5, b6, b7, b8)                               \
    SOFTNDK_EXTERN_C const GUID name
#endif

/* Counted string; Length and MaximumLength are bytes, Buffer need not be terminated. */
typedef struct _UNICODE_STRING {
    USHORT Length;
    USHORT MaximumLength;
    PWCH Buffer;
} UNICODE_STRING, *PUNICODE_STRING;
typedef const UNICODE_STRING *PCUNICODE_STRING;

typedef struct _STRING {
    USHORT Length;
    USHORT MaximumLength;
    PCHAR Buffer;
} STRING, *PSTRING, ANSI_STRING, *PANSI_STRING;

/* A set of processors of one group, bit n of Mask for processor n. */
typedef struct _GROUP_AFFINITY {
    KAFFINITY Mask;
    USHORT Group;
    USHORT Reserved[3];
} GROUP_AFFINITY, *PGROUP_AFFINITY;

typedef struct _PROCESSOR_NUMBER {
    USHORT Group;
    UCHAR Number;
    UCHAR Reserved;
} PROCESSOR_NUMBER, *PPROCESSOR_NUMBER;

SOFTNDK_END_C

#endif /* SOFTNDK_NTDEF_H */
