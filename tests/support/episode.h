// SPDX-License-Identifier: MIT
/*
 * One episode of the stress test: a connection with all the objects of its two ends, the requests
 * that were posted and how often each completed, and closes that anybody may do first. What
 * happens in an episode is decided by tests/integration/race_stress_test.c.
 *
 * Locks: each queue of a QP has one (posts are serialized by it, and end with the QP's close), each
 * CQ one (polls and arms), the episode one (its closing, the incoming connector). None is held over
 * another.
 */
#ifndef SOFTNDK_TESTS_EPISODE_H
#define SOFTNDK_TESTS_EPISODE_H

#include <pthread.h>

#include "ends.h"

#define PATIENCE_S 40u
#define REQUESTS   160 /* of one queue in one episode */
#define BUFFER     65536u

extern unsigned stress_seed; /* of the run, for the message of stress_die() */
/* Ends the process by abort(), for a look at its threads. */
void stress_die(const char *what) __attribute__((noreturn));

#define need(condition)                                                                            \
    do {                                                                                           \
        if (!(condition))                                                                          \
            stress_die(#condition);                                                                \
    } while (0)

#define await(condition)                                                                           \
    do {                                                                                           \
        unsigned long long await_end_ = test_now_ms() + PATIENCE_S * 1000u;                        \
        while (!(condition)) {                                                                     \
            if (test_now_ms() > await_end_)                                                        \
                stress_die("no end: " #condition);                                                 \
            test_sleep_ms(1);                                                                      \
        }                                                                                          \
    } while (0)

static inline unsigned draw(unsigned *state, unsigned below)
{
    *state = *state * 1664525u + 1013904223u;
    return (*state >> 8) % below;
}

struct answer { /* of a call that may pend */
    bool pended;
    atomic_uint calls;
    _Atomic NTSTATUS status;
};

struct slot { /* an object that is closed once, by whoever comes first */
    NDK_FN_CLOSE_OBJECT close;
    _Atomic(NDK_OBJECT_HEADER *) header;
    atomic_bool claimed, closed;
    bool in_callback; /* a notification may claim it */
};

enum { CONNECTOR, QP, RECEIVE_CQ, INITIATOR_CQ, MR, PD, SIDE_OBJECTS };

struct request {
    atomic_uint completions;
    bool posted, silent;
};

struct work { /* one queue of a QP: posts are serialized by the lock */
    pthread_mutex_t lock;
    bool over; /* the QP is closed */
    unsigned used;
    struct request list[REQUESTS];
};

struct poll { /* one CQ: polls and arms are serialized by the lock */
    struct side *side;
    struct queue queue;
    pthread_mutex_t lock;
    bool over;
};

struct side {
    struct episode *episode;
    NDK_ADAPTER *adapter;
    NDK_PD *pd;
    NDK_QP *qp;
    struct memory memory;
    struct slot slots[SIDE_OBJECTS];
    struct work initiator, receive;
    struct poll receive_poll, initiator_poll;
    atomic_uint disconnects;
};

struct episode {
    struct side sides[2]; /* client, server */
    struct slot listener;
    struct listening listening;
    pthread_mutex_t lock;
    bool closing;
    atomic_bool deciding, arrived; /* the incoming connector is being decided about; is there */
    struct answer connect, accept, complete, disconnect;
    unsigned passive; /* what the connect event does */
    bool count_all;   /* the CQs are closed last: every request can be counted */
    unsigned random, helper_random;
    atomic_uint callback_random;
};

/* The slot's object is closed by whoever calls this first. */
void side_close_slot(struct slot *slot);
/* The same for an object of a side: before it posts or polls end. */
void side_end_object(struct side *side, int which);
void side_set_slot(struct side *side, int which, void *object, NDK_FN_CLOSE_OBJECT close);

/* Objects of a side, but for its connector; notified: of both CQs, context: the struct poll. */
void side_make(struct episode *e, struct side *side, NDK_ADAPTER *adapter,
               void (*notified)(struct queue *, void *));
/* Closes what is left, waits for all of it, counts the completions. Returns how many were posted.
 */
unsigned side_end(struct episode *e, struct side *side);

void side_post_receive(struct side *side);
void side_post_request(struct side *side, unsigned *random);
/* Polls all there is; arms if asked to. How many receives succeeded. */
unsigned side_poll(struct poll *poll, bool arm);

#endif
