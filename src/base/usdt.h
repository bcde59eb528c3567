/* SPDX-License-Identifier: MIT */
/*
 * Static probes for bpftrace, perf, gdb and SystemTap: places of this library that have a name and
 * arguments, described in notes of the object file. docs/probes.md lists them all; a probe that
 * stands there and not in the library, or the other way round, fails tests/check-probes.py.
 *
 * USDT(name, argument...) is one nop of the provider "softndk". Arguments are operands of it:
 * registers, memory or constants. So give what is at hand (a field, a variable), nothing that has
 * to be worked out; what has not been asked for costs nothing but the nop. No side effects: without
 * sys/sdt.h, or with SOFTNDK_USDT off, arguments are checked by the compiler and not evaluated.
 * One to six arguments. Any thread, any lock, no system call.
 */
#ifndef SOFTNDK_BASE_USDT_H
#define SOFTNDK_BASE_USDT_H

#if defined(SOFTNDK_USDT) && SOFTNDK_USDT

#define SDT_USE_VARIADIC 1
#include <sys/sdt.h>

#define USDT(name, ...) STAP_PROBEV(softndk, name, __VA_ARGS__)

#else

static inline void usdt_nothing(int none, ...)
{
    (void)none;
}

#define USDT(name, ...) (0 ? usdt_nothing(0, __VA_ARGS__) : (void)0)

#endif

#endif
