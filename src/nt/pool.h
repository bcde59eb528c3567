// SPDX-License-Identifier: MIT
/*
 * pool.h - pool, for the other files of src/nt.
 */
#ifndef SOFTNDK_NT_POOL_H
#define SOFTNDK_NT_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <wdm.h>

/* ExAllocatePoolWithTag and ExFreePoolWithTag, in the name of another call. */
void *nt_pool_allocate(POOL_TYPE type, size_t size, uint32_t tag, const char *call,
                       const void *caller);
void nt_pool_free(void *block, uint32_t tag, const char *call, const void *caller);

/* Looks at every block, those that were freed a short time ago too: what was written where it must
 * not be is a finding. For the report at the end of a run. */
void nt_pool_check(void);

#endif /* SOFTNDK_NT_POOL_H */
