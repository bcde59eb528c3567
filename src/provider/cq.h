// SPDX-License-Identifier: MIT
/*
 * Completion queues. One leaf lock guards the arm, the write side of the ring and `seen`, the write
 * index when the last notification began; the reading side is lock-free, since the consumer
 * serializes NdkGetCqResults and NdkArmCq of one CQ.
 *
 *   put    under the lock: the entry, then, if it satisfies the arm, fire
 *   arm    under the lock: keep the stronger of the two arms; if an entry at or after
 *          max(read index, seen) satisfies it, fire at once
 *   fire   clears the arm; a notification that is running is marked due again, else it is deferred
 *   note   seen = write index, callback, then: due again -> behind the shard's other work
 *
 * So an entry that arrives between "polled empty" and "arm" is found by one of the two, one arm
 * causes at most one notification, and notifications of one CQ never overlap.
 *
 * Overrun: more entries than the depth kill the CQ, and every QP that uses it; one notification
 * with STATUS_BUFFER_OVERFLOW tells of it. The QPs stand in a list, under the lock, and are told
 * under it: they may only leave word.
 */
#ifndef SOFTNDK_PROVIDER_CQ_H
#define SOFTNDK_PROVIDER_CQ_H

#include "conn/queue.h"
#include "provider/object.h"

struct cq_entry {
    NTSTATUS status;
    ULONG octets;
    PVOID qp_context;
    PVOID context;
    ULONG type; /* NDK_OPERATION_TYPE */
    ULONG provider_code;
    ULONG token;
    ULONG solicits; /* satisfies a SOLICITED arm: solicited receive, or any error */
};

/* A user of a CQ, told once when the CQ dies. Embedded by QPs. */
struct cq_user {
    struct cq_user *next, *previous;
    void (*died)(struct cq_user *user); /* under the CQ's lock */
};

struct cq {
    struct object object;
    NDK_FN_CQ_NOTIFICATION_CALLBACK notification;
    PVOID notification_context;
    ULONG depth;
    bool tells_codes; /* ProviderErrorCode came with 2.1 */
    uint32_t mask;
    struct cq_entry *ring;
    struct engine_item note_item;

    _Alignas(64) os_mutex lock;
    atomic_uint written; /* entries ever put */
    uint32_t seen;
    uint32_t arm; /* strength: 0 none, 1 errors, 2 solicited, 3 any */
    bool running, due;
    NTSTATUS failure; /* not SUCCESS: dead */
    bool failure_told;
    atomic_bool dead;
    struct cq_user *users;

    _Alignas(64) atomic_uint read; /* entries ever taken; the consumer's side */
    uint32_t empty_polls;
};

static inline struct cq *cq_from(NDK_CQ *ndk)
{
    return (struct cq *)(void *)ndk;
}

extern const NDK_CQ_DISPATCH cq_dispatch;
/* Adapter slot NdkCreateCq. */
NTSTATUS cq_create(NDK_ADAPTER *adapter, ULONG depth, NDK_FN_CQ_NOTIFICATION_CALLBACK notification,
                   PVOID notification_context, GROUP_AFFINITY *affinity,
                   NDK_FN_CREATE_COMPLETION completion, PVOID context, NDK_CQ **out);
/* Puts entries in order. Any thread; takes the CQ's lock. False: the CQ is dead (now or before),
 * the entries are lost and the QP is to be ended. */
bool cq_put(struct cq *cq, const struct cq_entry *entries, unsigned count);
/* Stands in the list until cq_leave(). Of a CQ that is dead already nobody is told: see cq_dead().
 */
void cq_join(struct cq *cq, struct cq_user *user, void (*died)(struct cq_user *user));
void cq_leave(struct cq *cq, struct cq_user *user);
static inline bool cq_dead(struct cq *cq)
{
    return atomic_load(&cq->dead);
}

#endif
