// SPDX-License-Identifier: MIT
/*
 * KeWaitForMultipleObjects, on the queues of wait.h.
 *
 * The waiter looks at its objects, and queues up for them, with the locks of all their buckets
 * held: between the two nobody can signal one unseen. Then it sleeps on its group. A wait for any
 * is taken by the first signal, under that object's bucket lock. A wait for all is told of each
 * signal and looks again, all locks held, so that it takes all or nothing; a signal that is taken
 * back before it has looked counts as none.
 */
#include "base/red.h"
#include "nt/nt.h"
#include "nt/wait.h"

/* The buckets of the objects, each once, by ascending address: the order in which they are locked.
 */
struct held {
    struct nt_bucket *at[MAXIMUM_WAIT_OBJECTS];
    unsigned count;
};

static void held_add(struct held *h, struct nt_bucket *b)
{
    unsigned i = h->count;

    for (unsigned k = 0; k < h->count; k++)
        if (h->at[k] == b)
            return;
    for (; i > 0 && h->at[i - 1] > b; i--)
        h->at[i] = h->at[i - 1];
    h->at[i] = b;
    h->count++;
}

static void held_lock(const struct held *h)
{
    for (unsigned i = 0; i < h->count; i++)
        os_mutex_lock(&h->at[i]->lock);
}

static void held_unlock(const struct held *h)
{
    for (unsigned i = h->count; i > 0; i--)
        nt_wait_unlock(h->at[i - 1]);
}

/* The index that ends the wait, its signals consumed; -1: it goes on. All locks are held. */
static int look(DISPATCHER_HEADER *const objects[], unsigned count, bool all)
{
    unsigned i = 0;

    if (!all) {
        while (i < count && objects[i]->SignalState <= 0)
            i++;
        if (i == count)
            return -1;
        nt_header_consume(objects[i]);
        return (int)i;
    }
    for (i = 0; i < count; i++)
        if (objects[i]->SignalState <= 0 && !RED("nt-wait-all-for-one"))
            return -1;
    for (i = 0; i < count; i++)
        nt_header_consume(objects[i]);
    return 0;
}

/* Sleeps until the group is taken or has something to look at. false: the moment came first. */
static bool group_sleep(struct nt_group *g, const struct os_deadline *until)
{
    bool in_time = true;

    os_mutex_lock(&g->lock);
    while (g->looked && in_time)
        in_time = os_cond_wait_deadline(&g->changed, &g->lock, until);
    g->looked = true;
    os_mutex_unlock(&g->lock);
    return in_time;
}

/* Queues up for all objects, none of which ended the wait; the locks are held, as on return. */
static int wait_for_group(DISPATCHER_HEADER *const objects[], unsigned count, bool all,
                          const struct os_deadline *until, const struct held *h)
{
    struct nt_waiter waiters[MAXIMUM_WAIT_OBJECTS];
    struct nt_group g = {.lock = OS_MUTEX_INITIALIZER,
                         .changed = OS_COND_INITIALIZER,
                         .taken = -1,
                         .all = all,
                         .looked = true};
    bool in_time = true;
    int which = -1;

    for (unsigned i = 0; i < count; i++) {
        waiters[i] = (struct nt_waiter){.object = objects[i], .group = &g, .index = (int)i};
        nt_wait_link(nt_wait_bucket(objects[i]), &waiters[i]);
    }
    while (which < 0 && in_time) {
        held_unlock(h);
        in_time = group_sleep(&g, until);
        held_lock(h);
        /* Who takes the group holds one of these locks. A signal that crossed the deadline counts.
         */
        which = all ? look(objects, count, true) : g.taken;
    }
    for (unsigned i = 0; i < count; i++)
        nt_wait_unlink(nt_wait_bucket(objects[i]), &waiters[i]);
    os_cond_destroy(&g.changed);
    os_mutex_destroy(&g.lock);
    return which;
}

NTSTATUS KeWaitForMultipleObjects(ULONG Count, PVOID Object[], WAIT_TYPE WaitType,
                                  KWAIT_REASON WaitReason, KPROCESSOR_MODE WaitMode,
                                  BOOLEAN Alertable, PLARGE_INTEGER Timeout,
                                  PKWAIT_BLOCK WaitBlockArray)
{
    DISPATCHER_HEADER *objects[MAXIMUM_WAIT_OBJECTS];
    struct os_deadline until;
    struct held h = {.count = 0};
    const void *wrong = NULL;
    bool at_once;
    int which;

    (void)WaitReason;
    (void)WaitMode;
    (void)Alertable;
    (void)nt_irql_at_most(Timeout && Timeout->QuadPart == 0 ? DISPATCH_LEVEL : APC_LEVEL,
                          "KeWaitForMultipleObjects", NT_CALLER);
    if (Count > (WaitBlockArray ? MAXIMUM_WAIT_OBJECTS : THREAD_WAIT_OBJECTS))
        KeBugCheckEx(0x0C, Count, 0, 0, 0);
    until = nt_wait_deadline(Timeout, &at_once);
    for (ULONG i = 0; i < Count; i++) {
        objects[i] = Object[i];
        held_add(&h, nt_wait_bucket(Object[i]));
    }
    held_lock(&h);
    for (ULONG i = 0; i < Count && !wrong; i++)
        wrong = nt_header_waitable(objects[i]) ? NULL : objects[i];
    which = wrong ? -1 : look(objects, Count, WaitType == WaitAll);
    if (!wrong && which < 0 && !at_once)
        which = wait_for_group(objects, Count, WaitType == WaitAll, &until, &h);
    held_unlock(&h);
    if (wrong) {
        nt_finding_from(NT_CALLER,
                        "KeWaitForMultipleObjects: %p is no event, semaphore, timer or thread",
                        wrong);
        return STATUS_INVALID_PARAMETER;
    }
    return which < 0 ? STATUS_TIMEOUT : STATUS_WAIT_0 + which;
}
