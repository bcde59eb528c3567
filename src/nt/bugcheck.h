// SPDX-License-Identifier: MIT
/*
 * bugcheck.h - where Windows would stop the machine and there is no going on.
 */
#ifndef SOFTNDK_NT_BUGCHECK_H
#define SOFTNDK_NT_BUGCHECK_H

/* Logs the line with the call stack behind it, and aborts. */
_Noreturn void nt_stop(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif /* SOFTNDK_NT_BUGCHECK_H */
