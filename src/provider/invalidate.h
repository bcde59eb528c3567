// SPDX-License-Identifier: MIT
/*
 * Invalidation by token: what a peer's Send with Invalidate, or a Read of ours that invalidates its
 * sink, names. The owner ends it by its class's invalidate function (object.h), which NdkInvalidate
 * uses too. Called by receive owners; no lock.
 */
#ifndef SOFTNDK_PROVIDER_INVALIDATE_H
#define SOFTNDK_PROVIDER_INVALIDATE_H

#include "provider/mem.h"
#include "provider/object.h"

/* The object that token names now, referenced, if `by` may invalidate it over this QP: it is of
 * this domain, and not bound to another QP. Else NULL. */
struct object *invalidate_find(struct mem_table *table, uint32_t token, const void *domain,
                               const void *qp, enum mem_invalidator by);

#endif
