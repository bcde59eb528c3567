// SPDX-License-Identifier: MIT
/*
 * The wait of completion mode early: a call hands its callback to another shard and stays until
 * that callback has returned, at most 50 ms. Two holders, the waiter and the runner; whoever lets
 * go last frees it. Locks: its own (leaf), held by nobody across a callback.
 */
#ifndef SOFTNDK_PROVIDER_EARLY_H
#define SOFTNDK_PROVIDER_EARLY_H

#include "provider/object.h"

struct early;

#define EARLY_WAIT_US 50000u

/*
 * A wait for a callback of object. *where: the shard to run it on, never the caller's. NULL when it
 * could only end by its time limit (one shard that is the caller's own, or inside an item of the
 * object's strand), or without memory: the callback is then deferred as in mode always.
 */
struct early *early_new(struct object *object, struct engine_shard **where);
/* The callback returned. */
void early_returned(struct early *early);
/* Waits and lets go. True: the callback has returned. */
bool early_wait(struct early *early);
/* The caller lets go without waiting. */
void early_forget(struct early *early);

#endif
