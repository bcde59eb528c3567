// SPDX-License-Identifier: MIT
/*
 * What the files of the completion queue share: cq.c (notification, put, arm), cq_ring.c (rings,
 * polling, resize), cq_moderation.c. The protocol stands in cq.h; "locked" is with the CQ's lock.
 */
#ifndef SOFTNDK_PROVIDER_CQ_INTERNAL_H
#define SOFTNDK_PROVIDER_CQ_INTERNAL_H

#include "provider/cq.h"

/* By strength. */
enum cq_arm_state {
    CQ_ARM_NONE,
    CQ_ARM_ERRORS,
    CQ_ARM_SOLICITED,
    CQ_ARM_ANY,
    CQ_ARM_HELD /* satisfied; moderation holds the notification back */
};

/* ---- cq.c; locked ---- */

static inline bool cq_satisfies(const struct cq *cq, const struct cq_entry *entry)
{
    return cq->arm >= CQ_ARM_ANY || (cq->arm == CQ_ARM_SOLICITED && entry->solicits);
}

void cq_arm_set(struct cq *cq, enum cq_arm_state arm);
void cq_fire(struct cq *cq);

/* ---- cq_ring.c ---- */

/* A ring for at least depth entries, or NULL. */
struct cq_ring *cq_ring_new(ULONG depth);
void cq_rings_free(struct cq *cq);
/* The entry at an index, which is in *ring or behind; *ring moves to where it is. Locked, and
 * serialized with the poller. */
const struct cq_entry *cq_ring_seek(struct cq_ring **ring, uint32_t at);

NTSTATUS cq_resize(NDK_CQ *ndk, ULONG depth, NDK_FN_REQUEST_COMPLETION completion, PVOID context);
ULONG cq_get_results(NDK_CQ *ndk, NDK_RESULT results[], ULONG room);
ULONG cq_get_results_ex(NDK_CQ *ndk, NDK_RESULT_EX results[], ULONG room);

/* ---- cq_progress.c: a CQ without a group does nothing here ---- */

/* Behind the choice of the home. False: no memory. */
bool cq_progress_open(struct cq *cq);
void cq_progress_close(struct cq *cq);
/* An empty poll, not in a callback. True: something was moved, perhaps. The CQ has a group. */
bool cq_progress_poll(struct cq *cq);
/* The consumer will wait for a notification, or closes: the shards do it all again. */
void cq_progress_return(struct cq *cq);

/* ---- cq_moderation.c ---- */

void cq_moderation_init(struct cq *cq);
/* An entry was put while moderation is on. Locked. */
void cq_moderation_put(struct cq *cq, const struct cq_entry *entry, uint32_t at);
/* An arm found the entry `from` to be the first that satisfies it; error: one is a failure that
 * must not wait. Locked, moderation is on. */
void cq_moderation_arm(struct cq *cq, uint32_t from, bool error);
/* What is held is no longer: stops its timer. Locked; the caller has a reference of its own. */
void cq_moderation_unhold(struct cq *cq);
/* Settings or depth changed; also judges anew what is held. Locked. */
void cq_moderation_apply(struct cq *cq);
/* NdkCloseCq: what is held will not be told, nothing is held any more. */
void cq_moderation_close(struct cq *cq);

NTSTATUS cq_control_moderation(NDK_CQ *ndk, ULONG interval_us, ULONG count);

#endif
