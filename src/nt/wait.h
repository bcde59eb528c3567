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
 * Lock order: a bucket's lock is a leaf; at most one is held, and no finding is reported under it.
 */
#ifndef SOFTNDK_NT_WAIT_H
#define SOFTNDK_NT_WAIT_H

#include <stdbool.h>

#include <wdm.h>

#include "os/os_sync.h"

struct nt_bucket;

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

/* What a Windows timeout means: NULL for ever, < 0 relative, >= 0 absolute. *at_once: not at all.
 */
struct os_deadline nt_wait_deadline(const LARGE_INTEGER *timeout, bool *at_once);

/* Values of DISPATCHER_HEADER.Type, those of Windows. Odd ones of a pair consume the signal. */
enum {
    NT_EVENT_NOTIFICATION = 0,
    NT_EVENT_SYNCHRONIZATION = 1,
    NT_THREAD = 6,
    NT_TIMER_NOTIFICATION = 8,
    NT_TIMER_SYNCHRONIZATION = 9
};

/* Fills a header. Whether a thread was waiting for an object at that address. */
bool nt_header_init(DISPATCHER_HEADER *header, unsigned type, size_t size, bool signalled);

/* Signals it; the former state. */
LONG nt_header_signal(DISPATCHER_HEADER *header);

#endif /* SOFTNDK_NT_WAIT_H */
