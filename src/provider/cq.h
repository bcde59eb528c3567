// SPDX-License-Identifier: MIT
/*
 * Completion queues. One leaf lock guards the arm, the write side and `seen`, the write index when
 * the last notification began; the reading side is lock-free, since the consumer serializes
 * NdkGetCqResults, NdkGetCqResultsEx and NdkArmCq of one CQ. Everything else may run beside them.
 *
 *   put     under the lock: the entry, then, if it satisfies the arm, fire or hold
 *   arm     under the lock: keep the stronger of the two arms; if an entry at or after
 *           max(read index, seen) satisfies it, fire or hold
 *   hold    moderation only: the arm is satisfied, its notification waits for further completions
 *           or for its timer; then fire
 *   fire    clears the arm; a notification that is running is marked due again, else it is deferred
 *   note    seen = write index, callback, then: due again -> behind the shard's other work
 *   resize  under the lock: another ring goes behind the newest one, puts go there from now on
 *   poll    drains its ring up to the start of the next one, frees it, goes on there
 *
 * So an entry that arrives between "polled empty" and "arm" is found by one of the two, one arm
 * causes at most one notification, and notifications of one CQ never overlap.
 *
 * Rings: an entry has an index for life, counted from the CQ's creation modulo 2^32; a ring holds
 * those from its start to the start of the next one. The poller looks at the write index first and
 * at the link to the next ring then: if it sees an entry of the next ring it also sees the link.
 * Only the poller leaves a ring, so only it frees one; whoever resizes touches none but the newest,
 * which has no next. A ring serves every depth that fits, so a chain grows by doubling and is
 * bounded, however often a CQ is resized before it is polled.
 *
 * Moderation (cq_moderation.c): settings and what is held are under the lock. The timer of a held
 * notification holds a reference each time it is armed; closing drops the notification and the
 * timer. A CQ without moderation does nothing for it: `look` is what puts ask, armed or moderated.
 *
 * Overrun: more entries than the depth kill the CQ and every QP that uses it, whoever put the one
 * too many. One notification with STATUS_BUFFER_OVERFLOW tells of it, at once if an arm is out,
 * else with the next arm. What was queued stays to be polled, what comes later is lost.
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

struct cq_ring {
    uint32_t start, mask;
    _Atomic(struct cq_ring *) next; /* written once, under the lock */
    struct cq_entry entries[];      /* mask + 1, an entry stands at its index & mask */
};

struct cq_moderation {
    uint32_t interval_us; /* rounded to what the timer can do; 0: none, MAXULONG: count alone */
    uint32_t count;       /* as asked for; above the depth: interval alone */
    bool on;              /* notifications may wait */
    uint64_t fresh_us;    /* no later than the oldest entry that was neither polled nor notified */
    uint64_t since_us;    /* when the arm was satisfied, while it is held */
    uint32_t from;        /* by which entry */
};

/* A queue pair's place among those that end with the CQ. */
struct cq_user {
    struct cq_user *next, **at; /* at NULL: not there */
    void (*died)(void *owner);  /* under the CQ's lock; owner may have no reference left */
    void *owner;
};

#define CQ_ALSO 4

struct cq {
    struct object object;
    NDK_FN_CQ_NOTIFICATION_CALLBACK notification;
    PVOID notification_context;
    bool tells_codes; /* ProviderErrorCode came with 2.1 */
    struct engine_item note_item;
    struct engine_timer timer;

    _Alignas(64) os_mutex lock;
    atomic_uint written;  /* entries ever put */
    struct cq_ring *ring; /* the newest */
    uint32_t depth;
    uint32_t seen;
    uint32_t arm; /* enum cq_arm_state */
    bool look;    /* a put has more to do than to store its entry */
    bool running, due;
    bool closing;
    bool failure_told;
    NTSTATUS failure; /* not SUCCESS: dead */
    struct cq_moderation moderation;
    struct cq_user *users;

    _Alignas(64) atomic_uint read; /* entries ever taken; the consumer's side */
    struct cq_ring *read_ring;
    atomic_uint rings; /* in the chain */
    uint32_t empty_polls, busy_polls;
    atomic_bool polled;         /* the consumer moves data by polling, and has not armed since */
    struct engine_group *group; /* progress=inline: the connections that receive here; or NULL */
    struct engine_group *also[CQ_ALSO]; /* groups of receive CQs whose QPs complete requests here */
    atomic_uint also_count;
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
/* Puts entries in order. Any thread; takes the CQ's lock. False: the CQ is dead (now or before) and
 * entries are lost. */
bool cq_put(struct cq *cq, const struct cq_entry *entries, unsigned count);

/* Adds to the list of those that end with the CQ. False: it is dead, user is not added. */
bool cq_join(struct cq *cq, struct cq_user *user);
/* Takes off the list, if there. */
void cq_leave(struct cq *cq, struct cq_user *user);
/* A QP uses these two: polls of the first move data of the second's connections, too. */
void cq_progress_also(struct cq *initiator, struct cq *receive);

#endif
