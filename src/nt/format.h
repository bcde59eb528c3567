// SPDX-License-Identifier: MIT
/*
 * format.h - printf as Windows has it. The C library's cannot be used: l is 64 bits there, I64, w
 * and Z do not exist, and a wide character has 4 bytes.
 */
#ifndef SOFTNDK_NT_FORMAT_H
#define SOFTNDK_NT_FORMAT_H

#include <stdarg.h>
#include <stddef.h>

/*
 * Formats into out, of size bytes: what fits, terminated unless size is 0. Returns the length of
 * the whole text without its terminator. Wide text comes out as UTF-8.
 *
 * %[-+ #0][width][.precision][size]type, width and precision also *.
 *   size  h, hh; l, I32 (32 bits); ll, I64, j (64 bits); I, z, t (of a pointer); w (wide)
 *   type  d i u o x X; c s (narrow, with l or w wide), C S (wide, with h narrow); p (all digits,
 *         capitals); Z (ANSI_STRING, with w or l UNICODE_STRING); a e f g (not in a kernel: here)
 * An unknown type prints itself, as on Windows; n stores nothing.
 */
size_t nt_format(char *out, size_t size, const char *format, va_list ap);

/* One UTF-16 character at *at, which is moved on, as UTF-8; its length. A lone surrogate gives the
 * replacement character. */
size_t nt_utf8_of_utf16(const unsigned short **at, const unsigned short *end, char out[4]);

#endif /* SOFTNDK_NT_FORMAT_H */
