// SPDX-License-Identifier: MIT
/*
 * nt.h - what src/nt offers to the rest of the library beside the Windows names.
 *
 * A finding is a misuse of a kernel service that a verifier would stop the machine for: it is
 * counted and reported on one line, and the call goes on as well as it can. Any thread.
 */
#ifndef SOFTNDK_NT_NT_H
#define SOFTNDK_NT_NT_H

#include <stddef.h>

#include <wdm.h>

/* Reports a finding: "call: what is wrong". The line goes where all diagnostics go, stderr unless
 * the user chose otherwise. */
void nt_finding(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Findings so far in this process. */
unsigned nt_finding_count(void);

/* Sets the calling thread's level without any check: for the engine, around callbacks. */
void nt_irql_set(KIRQL irql);

/* MDLs allocated and not freed, for the leak report. */
size_t nt_mdl_live(void);

#endif /* SOFTNDK_NT_NT_H */
