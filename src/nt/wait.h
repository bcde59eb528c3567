// SPDX-License-Identifier: MIT
/*
 * wait.h - threads that wait for an object in memory, whatever the object is.
 *
 * An object may be freed by its waiter the moment the wait returns, while the thread that woke it
 * is still inside the waking call. So nothing here hangs on the object: waiting threads queue up,
 * with a record on their own stacks, in one of a fixed number of buckets chosen by the object's
 * address, and the object's state is read and written only under that bucket's lock. A waiter needs
 * the lock to return, hence a waker is done with the object, and with the waiter's record, before.
 *
 * A thread that waits for several objects (waitmany.c) has a record for each, and all are of one
 * group: the first object that is signalled takes the group, the others pass it by.
 *
 * Lock order: a bucket's lock is held alone, except by who waits for several objects: it takes
 * theirs by ascending address. Under it only a group's lock, a leaf; and no finding is reported.
 */
#ifndef SOFTNDK_NT_WAIT_H
#define SOFTNDK_NT_WAIT_H

#include <stdbool.h>

#include <wdm.h>

#include "os/os_sync.h"

/* What the records of one wait for several objects share. */
struct nt_group {
    os_mutex lock;
    os_cond changed;
    int taken;   /* index of the object whose signal this wait got, or -1 */
    bool all;    /* waits for all of them: a signal only says that it is time to look again */
    bool looked; /* no such word has come since it looked */
};

/* A thread in a queue. Under the lock of its bucket. */
struct nt_waiter {
    struct nt_waiter *next;
    struct nt_waiter *prev;
    const void *object;
    struct nt_group *group; /* NULL: it waits for this object only */
    int index;              /* in the group */
    bool released;          /* without a group */
    os_cond woken;
};

/* Waiters in the order of their arrival, those of all objects of the bucket mixed. */
struct nt_bucket {
    os_mutex lock;
    struct nt_waiter *first;
    struct nt_waiter *last;
};

struct nt_bucket *nt_wait_bucket(const void *object);

struct nt_bucket *nt_wait_lock(const void *object);
void nt_wait_unlock(struct nt_bucket *b);

/* Whether a thread waits for the object. b is the object's bucket, locked; so in all that follows.
 */
bool nt_wait_any(const struct nt_bucket *b, const void *object);

/* Ends the wait of the first thread in the queue; false when there is none. */
bool nt_wait_release_one(struct nt_bucket *b, const void *object);

/* Ends the waits of all; how many that were. */
unsigned nt_wait_release_all(struct nt_bucket *b, const void *object);

/* Queues the calling thread up and sleeps, the lock released meanwhile. false: the moment came and
 * nobody had released this thread. */
bool nt_wait_sleep(struct nt_bucket *b, const void *object, const struct os_deadline *until);

void nt_wait_link(struct nt_bucket *b, struct nt_waiter *w);
void nt_wait_unlink(struct nt_bucket *b, struct nt_waiter *w);

/* What a Windows timeout means: NULL for ever, < 0 relative, >= 0 absolute. *at_once: not at all.
 */
struct os_deadline nt_wait_deadline(const LARGE_INTEGER *timeout, bool *at_once);

/* Values of DISPATCHER_HEADER.Type, those of Windows. */
enum {
    NT_EVENT_NOTIFICATION = 0,
    NT_EVENT_SYNCHRONIZATION = 1,
    NT_SEMAPHORE = 5,
    NT_THREAD = 6,
    NT_TIMER_NOTIFICATION = 8,
    NT_TIMER_SYNCHRONIZATION = 9
};

/* Fills a header. Whether a thread was waiting for an object at that address. */
bool nt_header_init(DISPATCHER_HEADER *header, unsigned type, size_t size, bool signalled);

/* Signals it; the former state. */
LONG nt_header_signal(DISPATCHER_HEADER *header);

/* Whether it is an object that can be waited for. */
bool nt_header_waitable(const DISPATCHER_HEADER *header);

/* What a wait does to an object that is signalled. Under its bucket's lock. */
void nt_header_consume(DISPATCHER_HEADER *header);

#endif /* SOFTNDK_NT_WAIT_H */
