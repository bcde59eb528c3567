// SPDX-License-Identifier: MIT
/*
 * Shared receive queues. A queue pair of one has a receive queue of its own for a single request:
 * the receive owner of its connection, which wants a receive and finds that queue empty, has the
 * oldest one of the shared queue moved there (srq_take) and goes on as with any other. So a receive
 * belongs to the shared queue until a message begins, and to that queue pair from then on: what is
 * in hand when a queue pair or its connection ends completes there, what is still queued stays.
 *
 * One leaf lock guards everything here; the poster, the takers of all connections and NdkModifySrq
 * do their part in one critical section each:
 *
 *   post    queued + 1; the first waiter, if any, leaves the list and is granted one
 *   take    a connection that was granted one, or any while queued > granted, moves the oldest
 *           receive: queued - 1, its grant is used up
 *           else it is put at the end of the list (wait), or taken off it (not wait: its time is
 *           over and it gives up)
 *   leave   its receive direction ends: off the list; an unused grant goes to the next waiter
 *
 * A grant is a count, not a certain receive: whoever takes gets the oldest. Invariants: granted <=
 * queued, and while somebody is on the list granted == queued. So what is queued is never left
 * beside one who waits; a connection that comes later overtakes nobody, and nobody's holdback time
 * runs out for bad luck; each post wakes one connection, not all of them.
 *
 * Interleavings. "Nothing there" and "on the list" are one section, so a post comes before (and is
 * taken) or after (and grants); no post is seen by neither. A grant is given under the lock and
 * told of behind it: the connection is referenced inside the section, and its receive direction is
 * kicked on its home shard, never here, since the giver may be in the middle of another
 * connection's octets. Meanwhile the granted connection may
 *   take for another reason (an event of its socket)    the grant is used; the kick finds nothing
 *   find its time over                                  the take comes first and uses the grant
 *   end: rx_end                                         leave passes the grant on, kick finds DEAD
 * and a queue pair cannot go while it is on the list or granted, because its connection's receive
 * direction, which always leaves, ends before the connector that holds the queue pair does.
 *
 * Notification: armed by the creation or NdkModifySrq with a threshold above 0, for one call. It
 * fires when a take brings the number queued below the threshold, and in NdkModifySrq when it is
 * below already. As for CQs, an arm that fires while a notification is running makes it due again,
 * so calls never overlap; a deferred or running one holds a reference.
 */
#ifndef SOFTNDK_PROVIDER_SRQ_H
#define SOFTNDK_PROVIDER_SRQ_H

#include "conn/conn.h"
#include "provider/pd.h"

/* One queue pair's place at its shared queue; under the lock. */
struct srq_waiter {
    struct srq_waiter *next, *previous;
    struct conn *conn; /* while waiting or granted: whose receive owner put it there */
    enum { SRQ_ELSEWHERE, SRQ_WAITING, SRQ_GRANTED } state;
};

struct srq {
    struct object object;
    struct pd *pd;
    NDK_FN_SRQ_NOTIFICATION_CALLBACK notification; /* or NULL */
    PVOID notification_context;
    ULONG max_sge;
    struct engine_item note_item;

    os_mutex lock;           /* leaf */
    struct conn_queue queue; /* outstanding: queued */
    uint32_t granted;
    struct srq_waiter *first, *last;
    ULONG threshold;
    bool armed;
    bool running, due; /* a notification is deferred or running; another one follows */
};

static inline struct srq *srq_from(NDK_SRQ *ndk)
{
    return (struct srq *)(void *)ndk;
}

extern const NDK_SRQ_DISPATCH srq_dispatch;
/* PD slot NdkCreateSrq. */
NTSTATUS srq_create(NDK_PD *pd, ULONG depth, ULONG max_sge, ULONG threshold,
                    NDK_FN_SRQ_NOTIFICATION_CALLBACK notification, PVOID notification_context,
                    GROUP_AFFINITY *affinity, NDK_FN_CREATE_COMPLETION completion, PVOID context,
                    NDK_SRQ **out);

/*
 * The receive owner of conn: moves the oldest receive into the queue of its QP, which is empty and
 * has room for one. False: there is none to be had; the connection then waits (wait), and its
 * receive direction is kicked when it is its turn, or no longer does.
 */
bool srq_take(struct srq *srq, struct srq_waiter *waiter, struct conn *conn,
              struct conn_queue *into, bool wait);
/* The receive owner: the connection will not take any more. */
void srq_leave(struct srq *srq, struct srq_waiter *waiter);

#endif
