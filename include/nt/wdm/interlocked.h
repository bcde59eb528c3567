// SPDX-License-Identifier: MIT
/*
 * wdm/interlocked.h - atomic operations, all of them full barriers. A part of wdm.h; include that.
 *
 * They are macros over the compiler's atomics, and take a pointer to anything of the right size: to
 * ULONG as well as LONG, to a typed pointer as well as PVOID. Pointers are accessed under a type
 * that may alias every other, so that a typed pointer may be read by its own type elsewhere.
 * Each argument is evaluated once. The results have the types of Windows.
 */
#ifndef SOFTNDK_WDM_INTERLOCKED_H
#define SOFTNDK_WDM_INTERLOCKED_H

#include "../ntdef.h"

SOFTNDK_BEGIN_C

typedef SHORT __attribute__((may_alias)) SOFTNDK_ATOMIC16;
typedef LONG __attribute__((may_alias)) SOFTNDK_ATOMIC32;
typedef LONG64 __attribute__((may_alias)) SOFTNDK_ATOMIC64;
typedef PVOID __attribute__((may_alias)) SOFTNDK_ATOMIC_POINTER;

/* The operand as an atomic of n bits; of another size it does not compile. */
#define SOFTNDK_AT(n, p)                                                                           \
    ((SOFTNDK_ATOMIC##n volatile *)(volatile void *)(p) +                                          \
     0 * sizeof(char[sizeof(*(p)) == sizeof(SOFTNDK_ATOMIC##n) ? 1 : -1]))
#define SOFTNDK_AT_POINTER(p)                                                                      \
    ((SOFTNDK_ATOMIC_POINTER volatile *)(volatile void *)(p) +                                     \
     0 * sizeof(char[sizeof(*(p)) == sizeof(PVOID) ? 1 : -1]))

#define SOFTNDK_ADD(n, T, p, v) ((T)__atomic_add_fetch(SOFTNDK_AT(n, p), (T)(v), __ATOMIC_SEQ_CST))
#define SOFTNDK_FETCH(n, T, op, p, v)                                                              \
    ((T)__atomic_fetch_##op(SOFTNDK_AT(n, p), (T)(v), __ATOMIC_SEQ_CST))
#define SOFTNDK_SWAP(n, T, p, v)                                                                   \
    ((T)__atomic_exchange_n(SOFTNDK_AT(n, p), (T)(v), __ATOMIC_SEQ_CST))
#define SOFTNDK_COMPARE(n, T, p, v, c)                                                             \
    ((T)__sync_val_compare_and_swap(SOFTNDK_AT(n, p), (T)(c), (T)(v)))

/* Return the new value. */
#define InterlockedIncrement(Addend)    SOFTNDK_ADD(32, LONG, Addend, 1)
#define InterlockedIncrement16(Addend)  SOFTNDK_ADD(16, SHORT, Addend, 1)
#define InterlockedIncrement64(Addend)  SOFTNDK_ADD(64, LONG64, Addend, 1)
#define InterlockedDecrement(Addend)    SOFTNDK_ADD(32, LONG, Addend, -1)
#define InterlockedDecrement16(Addend)  SOFTNDK_ADD(16, SHORT, Addend, -1)
#define InterlockedDecrement64(Addend)  SOFTNDK_ADD(64, LONG64, Addend, -1)
#define InterlockedAdd(Addend, Value)   SOFTNDK_ADD(32, LONG, Addend, Value)
#define InterlockedAdd64(Addend, Value) SOFTNDK_ADD(64, LONG64, Addend, Value)

/* All others return the former value. */
#define InterlockedExchangeAdd(Addend, Value)   SOFTNDK_FETCH(32, LONG, add, Addend, Value)
#define InterlockedExchangeAdd64(Addend, Value) SOFTNDK_FETCH(64, LONG64, add, Addend, Value)
#define InterlockedAnd(Destination, Value)      SOFTNDK_FETCH(32, LONG, and, Destination, Value)
#define InterlockedAnd64(Destination, Value)    SOFTNDK_FETCH(64, LONG64, and, Destination, Value)
#define InterlockedOr(Destination, Value)       SOFTNDK_FETCH(32, LONG, or, Destination, Value)
#define InterlockedOr64(Destination, Value)     SOFTNDK_FETCH(64, LONG64, or, Destination, Value)
#define InterlockedXor(Destination, Value)      SOFTNDK_FETCH(32, LONG, xor, Destination, Value)
#define InterlockedXor64(Destination, Value)    SOFTNDK_FETCH(64, LONG64, xor, Destination, Value)

#define InterlockedExchange(Target, Value)   SOFTNDK_SWAP(32, LONG, Target, Value)
#define InterlockedExchange16(Target, Value) SOFTNDK_SWAP(16, SHORT, Target, Value)
#define InterlockedExchange64(Target, Value) SOFTNDK_SWAP(64, LONG64, Target, Value)
#define InterlockedExchangePointer(Target, Value)                                                  \
    ((PVOID)__atomic_exchange_n(SOFTNDK_AT_POINTER(Target), (PVOID)(Value), __ATOMIC_SEQ_CST))

/* Store Exchange when the target is Comperand. */
#define InterlockedCompareExchange(Destination, Exchange, Comperand)                               \
    SOFTNDK_COMPARE(32, LONG, Destination, Exchange, Comperand)
#define InterlockedCompareExchange16(Destination, Exchange, Comperand)                             \
    SOFTNDK_COMPARE(16, SHORT, Destination, Exchange, Comperand)
#define InterlockedCompareExchange64(Destination, Exchange, Comperand)                             \
    SOFTNDK_COMPARE(64, LONG64, Destination, Exchange, Comperand)
#define InterlockedCompareExchangePointer(Destination, Exchange, Comperand)                        \
    ((PVOID)__sync_val_compare_and_swap(SOFTNDK_AT_POINTER(Destination), (PVOID)(Comperand),       \
                                        (PVOID)(Exchange)))

/* With less order than a full barrier, which they have here all the same. */
#define InterlockedIncrementAcquire              InterlockedIncrement
#define InterlockedIncrementRelease              InterlockedIncrement
#define InterlockedIncrementNoFence              InterlockedIncrement
#define InterlockedIncrementAcquire64            InterlockedIncrement64
#define InterlockedIncrementRelease64            InterlockedIncrement64
#define InterlockedIncrementNoFence64            InterlockedIncrement64
#define InterlockedDecrementAcquire              InterlockedDecrement
#define InterlockedDecrementRelease              InterlockedDecrement
#define InterlockedDecrementNoFence              InterlockedDecrement
#define InterlockedDecrementAcquire64            InterlockedDecrement64
#define InterlockedDecrementRelease64            InterlockedDecrement64
#define InterlockedDecrementNoFence64            InterlockedDecrement64
#define InterlockedExchangeAcquire               InterlockedExchange
#define InterlockedExchangeNoFence               InterlockedExchange
#define InterlockedExchangePointerNoFence        InterlockedExchangePointer
#define InterlockedCompareExchangeAcquire        InterlockedCompareExchange
#define InterlockedCompareExchangeRelease        InterlockedCompareExchange
#define InterlockedCompareExchangeNoFence        InterlockedCompareExchange
#define InterlockedCompareExchangePointerAcquire InterlockedCompareExchangePointer
#define InterlockedCompareExchangePointerRelease InterlockedCompareExchangePointer
#define InterlockedCompareExchangePointerNoFence InterlockedCompareExchangePointer

/* Sets or clears bit Offset of a LONG; the bit's former value. */
#define InterlockedBitTestAndSet(Base, Offset)                                                     \
    ((BOOLEAN)((InterlockedOr(Base, (LONG)(1u << (Offset))) >> (Offset)) & 1))
#define InterlockedBitTestAndReset(Base, Offset)                                                   \
    ((BOOLEAN)((InterlockedAnd(Base, (LONG) ~(1u << (Offset))) >> (Offset)) & 1))

/* Reads and writes that are one access; Acquire and Release order what comes after and before. */
#define SOFTNDK_READ(n, T, p, order) ((T)__atomic_load_n(SOFTNDK_AT(n, p), __ATOMIC_##order))
#define SOFTNDK_WRITE(n, T, p, v, order)                                                           \
    __atomic_store_n(SOFTNDK_AT(n, p), (T)(v), __ATOMIC_##order)

#define ReadAcquire(Source)        SOFTNDK_READ(32, LONG, Source, ACQUIRE)
#define ReadAcquire64(Source)      SOFTNDK_READ(64, LONG64, Source, ACQUIRE)
#define ReadULongAcquire(Source)   SOFTNDK_READ(32, ULONG, Source, ACQUIRE)
#define ReadULong64Acquire(Source) SOFTNDK_READ(64, ULONG64, Source, ACQUIRE)
#define ReadNoFence(Source)        SOFTNDK_READ(32, LONG, Source, RELAXED)
#define ReadNoFence64(Source)      SOFTNDK_READ(64, LONG64, Source, RELAXED)
#define ReadULongNoFence(Source)   SOFTNDK_READ(32, ULONG, Source, RELAXED)
#define ReadULong64NoFence(Source) SOFTNDK_READ(64, ULONG64, Source, RELAXED)
#define ReadPointerAcquire(Source)                                                                 \
    ((PVOID)__atomic_load_n(SOFTNDK_AT_POINTER(Source), __ATOMIC_ACQUIRE))
#define ReadPointerNoFence(Source)                                                                 \
    ((PVOID)__atomic_load_n(SOFTNDK_AT_POINTER(Source), __ATOMIC_RELAXED))
#define WriteRelease(Destination, Value)      SOFTNDK_WRITE(32, LONG, Destination, Value, RELEASE)
#define WriteRelease64(Destination, Value)    SOFTNDK_WRITE(64, LONG64, Destination, Value, RELEASE)
#define WriteULongRelease(Destination, Value) SOFTNDK_WRITE(32, ULONG, Destination, Value, RELEASE)
#define WriteNoFence(Destination, Value)      SOFTNDK_WRITE(32, LONG, Destination, Value, RELAXED)
#define WriteNoFence64(Destination, Value)    SOFTNDK_WRITE(64, LONG64, Destination, Value, RELAXED)
#define WriteULongNoFence(Destination, Value) SOFTNDK_WRITE(32, ULONG, Destination, Value, RELAXED)
#define WritePointerRelease(Destination, Value)                                                    \
    __atomic_store_n(SOFTNDK_AT_POINTER(Destination), (PVOID)(Value), __ATOMIC_RELEASE)
#define WritePointerNoFence(Destination, Value)                                                    \
    __atomic_store_n(SOFTNDK_AT_POINTER(Destination), (PVOID)(Value), __ATOMIC_RELAXED)

/* Barriers, and a moment for the other half of the processor. */
#define KeMemoryBarrier()             __sync_synchronize() /* ThreadSanitizer takes it, a fence not */
#define KeMemoryBarrierWithoutFence() __atomic_signal_fence(__ATOMIC_SEQ_CST)
#define MemoryBarrier()               KeMemoryBarrier()
#if defined(__x86_64__) || defined(__i386__)
#define YieldProcessor() __builtin_ia32_pause()
#elif defined(__aarch64__)
#define YieldProcessor() __asm__ volatile("yield" ::: "memory")
#else
#define YieldProcessor() KeMemoryBarrierWithoutFence()
#endif

/* The compiler's own names for the same. */
#define _InterlockedIncrement              InterlockedIncrement
#define _InterlockedIncrement16            InterlockedIncrement16
#define _InterlockedIncrement64            InterlockedIncrement64
#define _InterlockedDecrement              InterlockedDecrement
#define _InterlockedDecrement16            InterlockedDecrement16
#define _InterlockedDecrement64            InterlockedDecrement64
#define _InterlockedExchange               InterlockedExchange
#define _InterlockedExchange16             InterlockedExchange16
#define _InterlockedExchange64             InterlockedExchange64
#define _InterlockedExchangePointer        InterlockedExchangePointer
#define _InterlockedExchangeAdd            InterlockedExchangeAdd
#define _InterlockedExchangeAdd64          InterlockedExchangeAdd64
#define _InterlockedAnd                    InterlockedAnd
#define _InterlockedAnd64                  InterlockedAnd64
#define _InterlockedOr                     InterlockedOr
#define _InterlockedOr64                   InterlockedOr64
#define _InterlockedXor                    InterlockedXor
#define _InterlockedXor64                  InterlockedXor64
#define _InterlockedCompareExchange        InterlockedCompareExchange
#define _InterlockedCompareExchange16      InterlockedCompareExchange16
#define _InterlockedCompareExchange64      InterlockedCompareExchange64
#define _InterlockedCompareExchangePointer InterlockedCompareExchangePointer

SOFTNDK_END_C

#endif /* SOFTNDK_WDM_INTERLOCKED_H */
