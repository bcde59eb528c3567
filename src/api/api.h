// SPDX-License-Identifier: MIT
/* What the files of the direct door share. */
#ifndef SOFTNDK_API_API_H
#define SOFTNDK_API_API_H

#include <softndk.h>

/* Leaves the sentence that softndk_open_error() tells to this thread, and returns status. */
NTSTATUS api_failed(NTSTATUS status, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* A call that may fail begins: no sentence. */
void api_begin(void);

#endif
