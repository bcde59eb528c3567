// SPDX-License-Identifier: MIT
/*
 * What mr.c (registration) and mr_fast.c (fast-registration) share: rights, the begin and the end
 * of a registration. Nobody else includes this. Lock: mr->lock, held by the callers where said.
 */
#ifndef SOFTNDK_PROVIDER_MR_INTERNAL_H
#define SOFTNDK_PROVIDER_MR_INTERNAL_H

#include "provider/mr.h"

extern const struct object_class mr_class;

/* What the two slots grant, as enum access_need bits. */
uint32_t mr_rights_local(const struct adapter *adapter, bool write, bool sink);
uint32_t mr_rights_remote(bool read, bool write);

/* Lock held, not registered: mr->pages, with this shape (address, length, fbo, page_count), become
 * the contents of both slots; then they are valid. */
void mr_publish(struct mr *mr, const struct mem_region *shape, uint32_t local_token,
                uint32_t local_rights, uint32_t remote_token, uint32_t remote_rights);
/*
 * Lock held, state REGISTERED. True: the registration has ended. False: the last access ends it, on
 * another thread, but not before the lock is released; it completes mr->pending, or else calls
 * mr->invalidated and drops a reference that the caller leaves to it.
 */
bool mr_retire(struct mr *mr);

/* Slot NdkInitializeFastRegisterMr. */
NTSTATUS mr_fast_initialize(NDK_MR *ndk, ULONG page_count, BOOLEAN remote_access,
                            NDK_FN_REQUEST_COMPLETION completion, PVOID context);

#endif
