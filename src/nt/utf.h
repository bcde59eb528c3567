// SPDX-License-Identifier: MIT
/*
 * utf.h - between the host's text (UTF-8) and NT's (UTF-16 of 2-byte units, whatever wchar_t is).
 */
#ifndef SOFTNDK_NT_UTF_H
#define SOFTNDK_NT_UTF_H

#include <stddef.h>

#include <ntdef.h>

/* To be freed; *units of them, a terminator behind. Octets that are no UTF-8 become U+FFFD. NULL
 * without memory. */
WCHAR *nt_utf16_of_utf8(const char *text, size_t length, size_t *units);

/* To be freed; terminated. NULL without memory. */
char *nt_utf8_of_units(const WCHAR *text, size_t units);

#endif /* SOFTNDK_NT_UTF_H */
