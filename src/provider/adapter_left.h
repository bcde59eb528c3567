// SPDX-License-Identifier: MIT
/*
 * What keeps adapters open: objects and logical address mappings that nobody has closed or
 * released, with who made them. For reports at the end of a run, and for a close that waits.
 */
#ifndef SOFTNDK_PROVIDER_ADAPTER_LEFT_H
#define SOFTNDK_PROVIDER_ADAPTER_LEFT_H

#include <stddef.h>

struct adapter;

/*
 * Tells, a line a call, what keeps the adapter open: things of one kind that one call stack made
 * are one line ("2 qp, open, the first #7, made by ..."). line may be NULL: counts only. Returns
 * how many there are. The caller holds a reference on the adapter, and no lock.
 */
size_t adapter_left_tell(struct adapter *adapter, void (*line)(void *context, const char *text),
                         void *context);

/* The same of all adapters that are open, and those themselves: a source of softndk_report(). */
size_t adapter_left_report(void (*line)(void *context, const char *text), void *context);

#endif
