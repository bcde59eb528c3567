// SPDX-License-Identifier: MIT
/*
 * wdm/debug.h - printing, assertions, bug checks, and structured exceptions that never happen.
 * A part of wdm.h; include that.
 */
#ifndef SOFTNDK_WDM_DEBUG_H
#define SOFTNDK_WDM_DEBUG_H

#include "../ntdef.h"
#include "../ntstatus.h"

SOFTNDK_BEGIN_C

/* ---- printing ---- */

/*
 * Writes to stderr what the kernel would send to the debugger: at most 512 bytes a call, no newline
 * added. Formats are those of Windows: l is 32 bits, I64 and ll are 64, I is a pointer's size; %ws
 * and %S are WCHAR strings, %Z and %wZ counted strings. Returns STATUS_SUCCESS. Any IRQL.
 */
ULONG DbgPrint(PCSTR Format, ...);
ULONG DbgPrintEx(ULONG ComponentId, ULONG Level, PCSTR Format, ...);
ULONG vDbgPrintEx(ULONG ComponentId, ULONG Level, PCSTR Format, va_list arglist);

#define DPFLTR_IHVDRIVER_ID  77
#define DPFLTR_IHVNETWORK_ID 80
#define DPFLTR_DEFAULT_ID    101
#define DPFLTR_ERROR_LEVEL   0
#define DPFLTR_WARNING_LEVEL 1
#define DPFLTR_TRACE_LEVEL   2
#define DPFLTR_INFO_LEVEL    3

/* Of a checked build: with DBG defined and not 0. */
#if defined(DBG) && DBG
#define KdPrint(_x_)   DbgPrint _x_
#define KdPrintEx(_x_) DbgPrintEx _x_
#else
#define KdPrint(_x_)   ((void)0)
#define KdPrintEx(_x_) ((void)0)
#endif

/* ---- assertions ---- */

/* An assertion that fails prints itself and ends the process by bug check. NT_ASSERT is of a
 * checked build; NT_VERIFY evaluates in every build, and checks in a checked one. */
DECLSPEC_NORETURN VOID RtlAssert(PVOID VoidFailedAssertion, PVOID VoidFileName, ULONG LineNumber,
                                 PSTR MutableMessage);
SOFTNDK_INLINE BOOLEAN softndk_truth(BOOLEAN Truth)
{
    return Truth;
}
#define SOFTNDK_CHECK(exp)                                                                         \
    softndk_truth((exp) ? TRUE                                                                     \
                        : (RtlAssert((PVOID)(ULONG_PTR)(PCSTR) #exp,                               \
                                     (PVOID)(ULONG_PTR)(PCSTR)__FILE__, __LINE__, (PSTR)0),        \
                           FALSE))
#if defined(DBG) && DBG
#define NT_ASSERT(exp) ((void)SOFTNDK_CHECK(exp))
#define NT_ASSERTMSG(msg, exp)                                                                     \
    ((void)softndk_truth(                                                                          \
        (exp) ? TRUE                                                                               \
              : (RtlAssert((PVOID)(ULONG_PTR)(PCSTR) #exp, (PVOID)(ULONG_PTR)(PCSTR)__FILE__,      \
                           __LINE__, (PSTR)(ULONG_PTR)(PCSTR)(msg)),                               \
                 FALSE)))
#define NT_VERIFY(exp) SOFTNDK_CHECK(exp)
#else
#define NT_ASSERT(exp)         ((void)0)
#define NT_ASSERTMSG(msg, exp) ((void)0)
#define NT_VERIFY(exp)         softndk_truth((exp) ? TRUE : FALSE)
#endif
#define NT_FRE_ASSERT(exp)  ((void)SOFTNDK_CHECK(exp)) /* in every build */
#define ASSERTMSG(msg, exp) NT_ASSERTMSG(msg, exp)
#ifndef ASSERT
#define ASSERT(exp) NT_ASSERT(exp)
#endif

/* ---- bug checks ---- */

/* Prints the code and its parameters, in words where they are known, and aborts. */
DECLSPEC_NORETURN VOID KeBugCheckEx(ULONG BugCheckCode, ULONG_PTR BugCheckParameter1,
                                    ULONG_PTR BugCheckParameter2, ULONG_PTR BugCheckParameter3,
                                    ULONG_PTR BugCheckParameter4);
DECLSPEC_NORETURN VOID KeBugCheck(ULONG BugCheckCode);

/* ---- structured exceptions ---- */

/*
 * No exception is ever raised here: where Windows would raise one, there is a finding. So the
 * guarded body runs, the handler does not, and a termination handler follows the body. (It does not
 * follow a return or goto out of the body; __leave leaves the innermost loop or switch.) A C++
 * library that has its own __try keeps it.
 */
#if !defined(__cplusplus) || !defined(__try)
#undef __try
#undef __except
#undef __finally
#undef __leave
/* clang-format off */
#define __try         do
#define __except(...) while (0); if (0 && (__VA_ARGS__))
#define __finally     while (0);
#define __leave       break
/* clang-format on */
#endif

#define EXCEPTION_EXECUTE_HANDLER    1
#define EXCEPTION_CONTINUE_SEARCH    0
#define EXCEPTION_CONTINUE_EXECUTION (-1)

#define GetExceptionCode()        ((ULONG)STATUS_SUCCESS)
#define _exception_code()         GetExceptionCode()
#define GetExceptionInformation() ((PVOID)0)
#define AbnormalTermination()     FALSE

SOFTNDK_END_C

#endif /* SOFTNDK_WDM_DEBUG_H */
