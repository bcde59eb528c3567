// SPDX-License-Identifier: MIT
/*
 * Where the program is: return addresses of the calling thread, and what they are called. Taking
 * them is cheap (a few hundred nanoseconds a frame) and allocates nothing after the first time;
 * names are looked up only when somebody wants to read them.
 */
#ifndef SOFTNDK_OS_TRACE_H
#define SOFTNDK_OS_TRACE_H

#include <stdbool.h>
#include <stddef.h>

/*
 * Return addresses, innermost first, beginning with `from` (a __builtin_return_address(0) of one of
 * the callers), so that the frames of this library do not use up the room. When `from` is not among
 * them it is the only one. Number of frames stored, at least 1 when max is.
 */
unsigned os_trace(void **frames, unsigned max, const void *from);

/* "function+0x1c (driver.so+0x11f4)", as much of it as is known; always terminates. */
#define OS_SYMBOL_MAX 160
const char *os_symbol(const void *address, char text[OS_SYMBOL_MAX]);

/* Whether both addresses are code or data of the same program or shared object. */
bool os_same_module(const void *a, const void *b);

#endif
