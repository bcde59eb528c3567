// SPDX-License-Identifier: MIT
/*
 * kit_os.h - all that the kit needs of the system and that the NT headers do not give.
 *
 * One file implements it for one system (kit_os_linux.c); nothing else in conformance/ includes a
 * header that is not freestanding, so that the kit can be compiled as a Windows driver with a
 * kit_os_windows.c beside it. The level at which each function may be called stands with it.
 */
#ifndef KIT_OS_H
#define KIT_OS_H

#include <wdm.h>

/* ---- time: any IRQL ---- */

/* Milliseconds since some fixed moment. */
ULONGLONG kit_os_ms(VOID);
/* Spins for that long, as KeStallExecutionProcessor does; for callbacks, which cannot sleep. */
VOID kit_os_stall_ms(ULONG ms);
/* PASSIVE_LEVEL. */
VOID kit_os_sleep_ms(ULONG ms);

/* ---- memory: <= DISPATCH_LEVEL ---- */

/* Zeroed, or NULL. */
PVOID kit_os_alloc(SIZE_T bytes);
VOID kit_os_free(PVOID memory);
/* Zeroed whole pages, page-aligned, resident; or NULL. */
PVOID kit_os_pages(SIZE_T bytes);
VOID kit_os_free_pages(PVOID pages);

/* ---- text ---- */

/* Formats as vsnprintf does: %s %c %d %u %x %p, with l and ll. Always terminated. */
VOID kit_os_format(char *out, SIZE_T size, const char *format, va_list arguments);
/* One line to the user, who takes it from standard output; the other, to standard error. */
VOID kit_os_print(const char *text);
VOID kit_os_complain(const char *text);
/* FALSE once a line for standard output could not be written. */
BOOLEAN kit_os_printed(VOID);

/* A file that is written from its beginning. NULL when it cannot be. PASSIVE_LEVEL. */
struct kit_os_file;
struct kit_os_file *kit_os_create(const char *path);
VOID kit_os_write(struct kit_os_file *file, const char *text);
/* FALSE when not everything was written. */
BOOLEAN kit_os_finish(struct kit_os_file *file);

/* ---- locks: leaf, held for a few instructions, <= DISPATCH_LEVEL ---- */

struct kit_os_lock {
    ULONGLONG storage[8];
};
VOID kit_os_lock_init(struct kit_os_lock *lock);
VOID kit_os_lock(struct kit_os_lock *lock);
VOID kit_os_unlock(struct kit_os_lock *lock);

/* ---- threads: PASSIVE_LEVEL ---- */

/* Runs function(context) on a thread of its own, which is never joined: the function's last act
 * is to set an event. FALSE when there is no thread to have. */
BOOLEAN kit_os_thread(VOID (*function)(PVOID), PVOID context);
/* Ends the program at once, without waiting for threads that hang. */
DECLSPEC_NORETURN VOID kit_os_exit(int status);

/* ---- numbers that threads share ---- */

#ifdef _MSC_VER
#define kit_os_add(number, by) (InterlockedExchangeAdd((number), (by)) + (by))
#define kit_os_get(number)     InterlockedCompareExchange((number), 0, 0)
#define kit_os_set(number, to) ((void)InterlockedExchange((number), (to)))
#else
/* The new value. */
FORCEINLINE LONG kit_os_add(volatile LONG *number, LONG by)
{
    return __atomic_add_fetch(number, by, __ATOMIC_SEQ_CST);
}
FORCEINLINE LONG kit_os_get(const volatile LONG *number)
{
    return __atomic_load_n(number, __ATOMIC_SEQ_CST);
}
FORCEINLINE VOID kit_os_set(volatile LONG *number, LONG to)
{
    __atomic_store_n(number, to, __ATOMIC_SEQ_CST);
}
#endif

#endif /* KIT_OS_H */
