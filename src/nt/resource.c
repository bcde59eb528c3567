// SPDX-License-Identifier: MIT
/*
 * Resources: read-write locks that know their holders.
 *
 * ERESOURCE points at a state of ours, so that it can have any number of holders. The state is read
 * and written under the lock of the ERESOURCE's bucket (wait.h); memory for a holder is taken and
 * given back outside it. Writers wait for the ERESOURCE's address, readers for that plus 1. As with
 * push locks, a release hands over: after a writer the readers that wait, after the last reader a
 * writer. A writer that was woken enters itself as the owner; until then `handed` holds its place.
 */
#include <stdint.h>
#include <stdlib.h>

#include "base/red.h"
#include "nt/left.h"
#include "nt/nt.h"
#include "nt/wait.h"
#include "os/sanitize.h"

struct holder {
    struct holder *next;
    uint32_t thread;
    ULONG count;
};

struct resource {
    uint32_t owner; /* thread of the writer, 0: none */
    ULONG depth;    /* how often the writer has it */
    bool handed;    /* to a writer that is on its way */
    ULONG readers;  /* threads that read, and those that were let in and are on their way */
    struct holder *holders;
    ULONG exclusive_waiters, shared_waiters;
};

static const struct os_deadline never = {.clock = OS_NEVER};

static const void *readers_of(PERESOURCE r)
{
    return (const char *)r + 1;
}

/* The state, or NULL and a finding. */
static struct resource *state_of(PERESOURCE r, const char *call, const void *caller)
{
    if (nt_left_find(NT_LEFT_RESOURCE, r, NULL, NULL))
        return r->Reserved[0];
    nt_finding_from(caller, "%s: %p is no resource, or deleted already", call, (void *)r);
    return NULL;
}

static struct holder **holder_of(struct resource *s, uint32_t thread)
{
    struct holder **at = &s->holders;

    while (*at && (*at)->thread != thread)
        at = &(*at)->next;
    return at;
}

NTSTATUS ExInitializeResourceLite(PERESOURCE Resource)
{
    struct resource *s = calloc(1, sizeof *s);

    (void)nt_irql_at_most(DISPATCH_LEVEL, "ExInitializeResourceLite", NT_CALLER);
    if (nt_left_find(NT_LEFT_RESOURCE, Resource, NULL, NULL)) {
        nt_finding_from(NT_CALLER, "ExInitializeResourceLite: %p is initialized already",
                        (void *)Resource);
        free(s);
        return STATUS_SUCCESS;
    }
    if (!s || !nt_left_add(NT_LEFT_RESOURCE, Resource, 0, 0, 0, NT_CALLER)) {
        free(s);
        return STATUS_INSUFFICIENT_RESOURCES;
    }
    sanitize_lock_init(Resource);
    *Resource = (ERESOURCE){.Reserved = {s}};
    return STATUS_SUCCESS;
}

NTSTATUS ExDeleteResourceLite(PERESOURCE Resource)
{
    struct resource *s = state_of(Resource, "ExDeleteResourceLite", NT_CALLER);
    struct nt_bucket *b;
    bool held;

    (void)nt_irql_at_most(DISPATCH_LEVEL, "ExDeleteResourceLite", NT_CALLER);
    if (!s)
        return STATUS_INVALID_PARAMETER;
    b = nt_wait_lock(Resource);
    held = s->owner || s->handed || s->readers || nt_wait_any(b, Resource);
    nt_wait_unlock(b);
    if (held) {
        nt_finding_from(NT_CALLER, "ExDeleteResourceLite: %p is held", (void *)Resource);
        return STATUS_INVALID_PARAMETER;
    }
    if (nt_left_drop(NT_LEFT_RESOURCE, Resource)) {
        free(s);
        Resource->Reserved[0] = NULL;
    }
    return STATUS_SUCCESS;
}

static void need_region(const char *call, const void *caller)
{
    (void)nt_irql_at_most(APC_LEVEL, call, caller);
    if (!nt_in_critical_region())
        nt_finding_from(caller, "%s: neither in a critical region nor at APC_LEVEL", call);
}

BOOLEAN ExAcquireResourceExclusiveLite(PERESOURCE Resource, BOOLEAN Wait)
{
    struct resource *s = state_of(Resource, "ExAcquireResourceExclusiveLite", NT_CALLER);
    uint32_t me = os_thread_id();
    struct nt_bucket *b;
    bool taken = true, again, reading;

    need_region("ExAcquireResourceExclusiveLite", NT_CALLER);
    if (!s)
        return FALSE;
    b = nt_wait_lock(Resource);
    again = s->owner == me;
    s->depth += again;
    reading = *holder_of(s, me) != NULL;
    nt_wait_unlock(b);
    if (again)
        return TRUE;
    if (reading) {
        if (Wait)
            nt_finding_from(NT_CALLER,
                            "ExAcquireResourceExclusiveLite: this thread reads %p, and "
                            "would wait for itself",
                            (void *)Resource);
        return FALSE;
    }
    if (Wait)
        sanitize_lock_taking(Resource);
    else
        sanitize_lock_try(Resource);
    b = nt_wait_lock(Resource);
    if ((s->owner || s->handed || s->readers) && !RED("nt-resource-not-exclusive")) {
        taken = Wait;
        s->exclusive_waiters++;
        if (Wait)
            (void)nt_wait_sleep(b, Resource, &never);
        s->exclusive_waiters--;
    }
    if (taken) {
        s->owner = me;
        s->depth = 1;
        s->handed = false;
    }
    nt_wait_unlock(b);
    if (Wait)
        sanitize_lock_taken(Resource);
    else
        sanitize_lock_tried(Resource, taken);
    return taken;
}

/* Enters one more reading of the thread; the bucket is locked. */
static void enter_reader(struct resource *s, uint32_t me, struct holder **spare)
{
    struct holder **at = holder_of(s, me);

    if (!*at) {
        **spare = (struct holder){.thread = me};
        *at = *spare;
        *spare = NULL;
    }
    (*at)->count++;
}

static BOOLEAN acquire_shared(PERESOURCE r, bool wait, bool patient, const char *call,
                              const void *caller)
{
    struct resource *s = state_of(r, call, caller);
    struct holder *spare = malloc(sizeof *spare);
    uint32_t me = os_thread_id();
    struct nt_bucket *b;
    bool mine, taken = true;

    need_region(call, caller);
    if (!s || !spare) {
        free(spare);
        return FALSE;
    }
    b = nt_wait_lock(r);
    mine = s->owner == me;
    s->depth += mine; /* a writer reads as a writer */
    if (!mine && *holder_of(s, me)) {
        enter_reader(s, me, &spare); /* again, whoever waits */
        mine = true;
    }
    nt_wait_unlock(b);
    if (!mine) {
        if (wait)
            sanitize_read_taking(r);
        else
            sanitize_read_trying(r);
        b = nt_wait_lock(r);
        if (s->owner || s->handed || (patient && nt_wait_any(b, r))) {
            taken = wait;
            s->shared_waiters++;
            if (wait)
                (void)nt_wait_sleep(b, readers_of(r), &never); /* counted by who let it in */
            s->shared_waiters--;
        } else {
            s->readers++;
        }
        if (taken)
            enter_reader(s, me, &spare);
        nt_wait_unlock(b);
        if (wait)
            sanitize_read_taken(r);
        else
            sanitize_read_tried(r, taken);
    }
    free(spare);
    return taken;
}

BOOLEAN ExAcquireResourceSharedLite(PERESOURCE Resource, BOOLEAN Wait)
{
    return acquire_shared(Resource, Wait, true, "ExAcquireResourceSharedLite", NT_CALLER);
}

BOOLEAN ExAcquireSharedStarveExclusive(PERESOURCE Resource, BOOLEAN Wait)
{
    return acquire_shared(Resource, Wait, false, "ExAcquireSharedStarveExclusive", NT_CALLER);
}

/* Lets in whoever is next; the bucket is locked and nobody holds the resource. */
static void hand_over(struct nt_bucket *b, PERESOURCE r, struct resource *s, bool readers_first)
{
    if (readers_first)
        s->readers = nt_wait_release_all(b, readers_of(r));
    if (s->readers == 0)
        s->handed = nt_wait_release_one(b, r);
    if (!s->handed && !readers_first)
        s->readers = nt_wait_release_all(b, readers_of(r));
}

VOID ExReleaseResourceLite(PERESOURCE Resource)
{
    struct resource *s = state_of(Resource, "ExReleaseResourceLite", NT_CALLER);
    uint32_t me = os_thread_id();
    struct holder **at, *gone = NULL;
    struct nt_bucket *b;
    bool writes, reads;

    (void)nt_irql_at_most(DISPATCH_LEVEL, "ExReleaseResourceLite", NT_CALLER);
    if (!s)
        return;
    b = nt_wait_lock(Resource);
    writes = s->owner == me && --s->depth == 0;
    at = holder_of(s, me);
    reads = s->owner != me && *at && --(*at)->count == 0;
    if (s->owner != me && !*at) {
        nt_wait_unlock(b);
        nt_finding_from(NT_CALLER, "ExReleaseResourceLite: this thread does not hold %p",
                        (void *)Resource);
        return;
    }
    if (reads) {
        gone = *at;
        *at = gone->next;
    }
    nt_wait_unlock(b);
    free(gone);
    if (!writes && !reads)
        return;
    if (writes)
        sanitize_lock_releasing(Resource);
    else
        sanitize_read_releasing(Resource);
    b = nt_wait_lock(Resource);
    if (writes)
        s->owner = 0;
    else
        s->readers--;
    if (s->readers == 0)
        hand_over(b, Resource, s, writes);
    nt_wait_unlock(b);
    if (writes)
        sanitize_lock_released(Resource);
    else
        sanitize_read_released(Resource);
}

VOID ExConvertExclusiveToSharedLite(PERESOURCE Resource)
{
    struct resource *s = state_of(Resource, "ExConvertExclusiveToSharedLite", NT_CALLER);
    struct holder *holder = malloc(sizeof *holder);
    uint32_t me = os_thread_id();
    struct nt_bucket *b;
    bool mine;

    (void)nt_irql_at_most(DISPATCH_LEVEL, "ExConvertExclusiveToSharedLite", NT_CALLER);
    if (!s || !holder) {
        free(holder);
        return;
    }
    b = nt_wait_lock(Resource);
    mine = s->owner == me;
    nt_wait_unlock(b);
    if (!mine) {
        nt_finding_from(NT_CALLER,
                        "ExConvertExclusiveToSharedLite: this thread does not hold %p "
                        "exclusively",
                        (void *)Resource);
        free(holder);
        return;
    }
    sanitize_lock_releasing(Resource);
    b = nt_wait_lock(Resource);
    *holder = (struct holder){.next = s->holders, .thread = me, .count = s->depth};
    s->holders = holder;
    s->owner = 0;
    s->depth = 0;
    s->readers = 1 + nt_wait_release_all(b, readers_of(Resource));
    nt_wait_unlock(b);
    sanitize_lock_released(Resource);
    sanitize_read_trying(Resource);
    sanitize_read_tried(Resource, true);
}

BOOLEAN ExIsResourceAcquiredExclusiveLite(PERESOURCE Resource)
{
    struct resource *s = state_of(Resource, "ExIsResourceAcquiredExclusiveLite", NT_CALLER);
    struct nt_bucket *b;
    bool mine;

    if (!s)
        return FALSE;
    b = nt_wait_lock(Resource);
    mine = s->owner == os_thread_id();
    nt_wait_unlock(b);
    return mine;
}

ULONG ExIsResourceAcquiredSharedLite(PERESOURCE Resource)
{
    struct resource *s = state_of(Resource, "ExIsResourceAcquiredSharedLite", NT_CALLER);
    uint32_t me = os_thread_id();
    struct nt_bucket *b;
    struct holder *h;
    ULONG count;

    if (!s)
        return 0;
    b = nt_wait_lock(Resource);
    h = *holder_of(s, me);
    count = s->owner == me ? s->depth : h ? h->count : 0;
    nt_wait_unlock(b);
    return count;
}

/* How many wait, exclusively or shared. */
static ULONG waiters(PERESOURCE resource, const char *call, const void *caller, bool exclusive)
{
    struct resource *s = state_of(resource, call, caller);
    struct nt_bucket *b;
    ULONG count;

    if (!s)
        return 0;
    b = nt_wait_lock(resource);
    count = exclusive ? s->exclusive_waiters : s->shared_waiters;
    nt_wait_unlock(b);
    return count;
}

ULONG ExGetExclusiveWaiterCount(PERESOURCE Resource)
{
    return waiters(Resource, "ExGetExclusiveWaiterCount", NT_CALLER, true);
}

ULONG ExGetSharedWaiterCount(PERESOURCE Resource)
{
    return waiters(Resource, "ExGetSharedWaiterCount", NT_CALLER, false);
}
