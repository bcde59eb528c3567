// SPDX-License-Identifier: MIT
/*
 * Telling a sanitizer what the library does, whoever was compiled with it. The program that loads
 * the library may run under AddressSanitizer or ThreadSanitizer while the library was built
 * without: so the runtimes are asked for by weak symbols, and each call here does nothing where
 * there is no such runtime.
 */
#ifndef SOFTNDK_OS_SANITIZE_H
#define SOFTNDK_OS_SANITIZE_H

#include <stdbool.h>
#include <stddef.h>

#define SANITIZE_WEAK __attribute__((weak))

void __asan_poison_memory_region(const volatile void *addr, size_t size) SANITIZE_WEAK;
void __asan_unpoison_memory_region(const volatile void *addr, size_t size) SANITIZE_WEAK;
void __asan_handle_no_return(void) SANITIZE_WEAK;
void __tsan_acquire(void *addr) SANITIZE_WEAK;
void __tsan_release(void *addr) SANITIZE_WEAK;
void __tsan_mutex_create(void *addr, unsigned flags) SANITIZE_WEAK;
void __tsan_mutex_destroy(void *addr, unsigned flags) SANITIZE_WEAK;
void __tsan_mutex_pre_lock(void *addr, unsigned flags) SANITIZE_WEAK;
void __tsan_mutex_post_lock(void *addr, unsigned flags, int recursion) SANITIZE_WEAK;
int __tsan_mutex_pre_unlock(void *addr, unsigned flags) SANITIZE_WEAK;
void __tsan_mutex_post_unlock(void *addr, unsigned flags) SANITIZE_WEAK;

enum {
    SANITIZE_TSAN_LINKER_INIT = 1 << 0,
    SANITIZE_TSAN_READ_LOCK = 1 << 3,
    SANITIZE_TSAN_TRY_LOCK = 1 << 4,
    SANITIZE_TSAN_TRY_LOCK_FAILED = 1 << 5,
    SANITIZE_TSAN_NOT_STATIC = 1 << 8,
};

static inline bool sanitize_address(void)
{
    return __asan_poison_memory_region != NULL;
}

static inline bool sanitize_thread(void)
{
    return __tsan_acquire != NULL;
}

/* An address in the runtime of the sanitizer; NULL without one. */
static inline const void *sanitize_runtime(void)
{
    return sanitize_address() ? (const void *)(size_t)&__asan_poison_memory_region
                              : (const void *)(size_t)&__tsan_acquire;
}

/* Before a thread ends in the middle of its calls: the frames that never return leave marks of
 * AddressSanitizer on the stack, where the end of the thread would meet them. */
static inline void sanitize_no_return(void)
{
    if (__asan_handle_no_return)
        __asan_handle_no_return();
}

/* A memory order that goes through atomics of this library: what was done before release() is seen
 * after acquire() of the same address. */
static inline void sanitize_acquire(const volatile void *addr)
{
    if (__tsan_acquire)
        __tsan_acquire((void *)(size_t)addr);
}

static inline void sanitize_release(const volatile void *addr)
{
    if (__tsan_release)
        __tsan_release((void *)(size_t)addr);
}

/* ---- a lock of this library's making, so that lock orders are checked as well ---------------- */

static inline void sanitize_lock_init(void *lock)
{
    if (__tsan_mutex_create) {
        __tsan_mutex_destroy(lock, SANITIZE_TSAN_LINKER_INIT);
        __tsan_mutex_create(lock, SANITIZE_TSAN_NOT_STATIC);
    }
}

static inline void sanitize_lock_try(void *lock)
{
    if (__tsan_mutex_pre_lock)
        __tsan_mutex_pre_lock(lock, SANITIZE_TSAN_TRY_LOCK);
}

static inline void sanitize_lock_tried(void *lock, bool taken)
{
    unsigned flags = SANITIZE_TSAN_TRY_LOCK | (taken ? 0u : SANITIZE_TSAN_TRY_LOCK_FAILED);

    if (__tsan_mutex_post_lock)
        __tsan_mutex_post_lock(lock, flags, 0);
}

static inline void sanitize_lock_taking(void *lock)
{
    if (__tsan_mutex_pre_lock)
        __tsan_mutex_pre_lock(lock, 0);
}

static inline void sanitize_lock_taken(void *lock)
{
    if (__tsan_mutex_post_lock)
        __tsan_mutex_post_lock(lock, 0, 0);
}

static inline void sanitize_lock_releasing(void *lock)
{
    if (__tsan_mutex_pre_unlock)
        (void)__tsan_mutex_pre_unlock(lock, 0);
}

static inline void sanitize_lock_released(void *lock)
{
    if (__tsan_mutex_post_unlock)
        __tsan_mutex_post_unlock(lock, 0);
}

/* The same for one of several readers. */
static inline void sanitize_read_taking(void *lock)
{
    if (__tsan_mutex_pre_lock)
        __tsan_mutex_pre_lock(lock, SANITIZE_TSAN_READ_LOCK);
}

static inline void sanitize_read_taken(void *lock)
{
    if (__tsan_mutex_post_lock)
        __tsan_mutex_post_lock(lock, SANITIZE_TSAN_READ_LOCK, 0);
}

static inline void sanitize_read_trying(void *lock)
{
    if (__tsan_mutex_pre_lock)
        __tsan_mutex_pre_lock(lock, SANITIZE_TSAN_READ_LOCK | SANITIZE_TSAN_TRY_LOCK);
}

static inline void sanitize_read_tried(void *lock, bool taken)
{
    unsigned flags = SANITIZE_TSAN_READ_LOCK | SANITIZE_TSAN_TRY_LOCK |
                     (taken ? 0u : SANITIZE_TSAN_TRY_LOCK_FAILED);

    if (__tsan_mutex_post_lock)
        __tsan_mutex_post_lock(lock, flags, 0);
}

static inline void sanitize_read_releasing(void *lock)
{
    if (__tsan_mutex_pre_unlock)
        (void)__tsan_mutex_pre_unlock(lock, SANITIZE_TSAN_READ_LOCK);
}

static inline void sanitize_read_released(void *lock)
{
    if (__tsan_mutex_post_unlock)
        __tsan_mutex_post_unlock(lock, SANITIZE_TSAN_READ_LOCK);
}

#endif
