// SPDX-License-Identifier: MIT
/*
 * The SGEs of a request, from the consumer's array into the request: what all posting calls check,
 * be the queue a QP's or shared. The array is read during the call only; tokens are looked at when
 * the request runs.
 */
#ifndef SOFTNDK_PROVIDER_SGES_H
#define SOFTNDK_PROVIDER_SGES_H

#include "conn/queue.h"
#include "provider/pd.h"

/* most: the limit for their number. Leaves a reason at object, whose PD is pd. */
NTSTATUS sges_check(struct object *object, const struct pd *pd, enum call call, CONST NDK_SGE *sgl,
                    ULONG sges, ULONG most);
/* Copies what was checked. */
void sges_copy(struct conn_wr *wr, CONST NDK_SGE *sgl, ULONG sges);

#endif
