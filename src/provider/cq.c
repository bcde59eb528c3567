// SPDX-License-Identifier: MIT
/*
 * Completion queues: birth, putting entries, arm and notification, death. See cq.h for the
 * protocol; docs/models/cq.pml checks it.
 */
#include <ntstatus.h>

#include "base/red.h"
#include "base/usdt.h"
#include "os/sanitize.h"
#include "provider/adapter.h"
#include "provider/cq_internal.h"
#include "provider/versions.h"

static void cq_cancel(struct object *object)
{
    struct cq *cq = CONTAINING_RECORD(object, struct cq, object);

    cq_moderation_close(cq);
    cq_progress_return(cq);
}

static void cq_release(struct object *object)
{
    struct cq *cq = CONTAINING_RECORD(object, struct cq, object);

    cq_progress_close(cq);
    cq_rings_free(cq);
    os_mutex_destroy(&cq->lock);
}

static const struct object_class cq_class = {
    .type = NdkObjectTypeCq,
    .name = "cq",
    .size = sizeof(struct cq),
    .cancel = cq_cancel,
    .release = cq_release,
};

static void cq_note(struct engine_item *item);

static struct cq *cq_new(struct adapter *adapter, ULONG depth,
                         NDK_FN_CQ_NOTIFICATION_CALLBACK notification, PVOID context)
{
    struct object *object = object_new(&cq_class, &adapter->object, &cq_dispatch);
    struct cq *cq;

    if (!object)
        return NULL;
    cq = CONTAINING_RECORD(object, struct cq, object);
    cq->notification = notification;
    cq->notification_context = context;
    cq->depth = depth;
    cq->tells_codes = version_is_at_least(adapter->version, 2, 1);
    cq->note_item.run = cq_note;
    os_mutex_init(&cq->lock);
    object->home = engine_shard_next();
    adapter_note_first(adapter, object->home);
    cq_moderation_init(cq);
    cq->ring = cq->read_ring = cq_ring_new(depth);
    atomic_init(&cq->rings, 1);
    if (!cq->ring || !cq_progress_open(cq)) {
        object_discard(object);
        return NULL;
    }
    return cq;
}

NTSTATUS cq_create(NDK_ADAPTER *ndk, ULONG depth, NDK_FN_CQ_NOTIFICATION_CALLBACK notification,
                   PVOID notification_context, GROUP_AFFINITY *affinity,
                   NDK_FN_CREATE_COMPLETION completion, PVOID context, NDK_CQ **out)
{
    struct adapter *adapter = adapter_from(ndk);
    struct object *parent = &adapter->object;
    NTSTATUS status = object_injected(parent, CALL_CREATE_CQ);
    struct cq *cq = NULL;

    (void)affinity; /* a preference; shards are not bound to processors */
    if (status != STATUS_SUCCESS) {
        ;
    } else if (depth == 0 || depth > adapter->options.max_cq_depth) {
        status = object_fail(parent, CALL_CREATE_CQ, STATUS_INVALID_PARAMETER,
                             "CqDepth (have %u, need 1..%u), rule NDKPI 6.2", depth,
                             adapter->options.max_cq_depth);
    } else if (!notification) {
        status = object_fail(parent, CALL_CREATE_CQ, STATUS_INVALID_PARAMETER,
                             "CqNotification is NULL, rule NDKPI 6.2");
    } else {
        cq = cq_new(adapter, depth, notification, notification_context);
        if (!cq)
            status = object_fail(parent, CALL_CREATE_CQ, STATUS_INSUFFICIENT_RESOURCES,
                                 "no memory for %u entries", depth);
    }
    return create_answer(parent, CALL_CREATE_CQ, completion, context, status,
                         cq ? &cq->object : NULL, (void **)out);
}

/* ---- notification --------------------------------------------------------------------------- */

/* Lock held. */
void cq_arm_set(struct cq *cq, enum cq_arm_state arm)
{
    cq->arm = arm;
    cq->look = arm != CQ_ARM_NONE || cq->moderation.on;
}

/* Lock held. */
void cq_fire(struct cq *cq)
{
    if (cq->arm == CQ_ARM_HELD)
        cq_moderation_unhold(cq);
    cq_arm_set(cq, CQ_ARM_NONE);
    if (cq->running && !RED("cq_notifications_overlap")) {
        cq->due = true;
        return;
    }
    cq->running = true;
    object_ref(&cq->object);
    engine_defer(callback_shard(cq->object.home), &cq->note_item);
}

static void cq_note(struct engine_item *item)
{
    struct cq *cq = CONTAINING_RECORD(item, struct cq, note_item);
    NTSTATUS status;
    KIRQL irql;
    bool again;

    os_mutex_lock(&cq->lock);
    cq->seen = atomic_load_explicit(&cq->written, memory_order_relaxed);
    status = cq->failure;
    if (!NT_SUCCESS(status))
        cq->failure_told = true;
    os_mutex_unlock(&cq->lock);
    irql = callback_enter();
    USDT(notify, cq->object.id, cq->notification_context, status);
    cq->notification(cq->notification_context, status);
    USDT(notify_return, cq->object.id, cq->notification_context);
    callback_leave(irql);
    os_mutex_lock(&cq->lock);
    again = cq->due && !cq->failure_told;
    cq->due = false;
    if (!again)
        cq->running = false;
    os_mutex_unlock(&cq->lock);
    if (again)
        engine_defer(callback_shard(cq->object.home), &cq->note_item);
    else
        object_unref(&cq->object);
}

/* Lock held. What was queued can still be polled. */
static void cq_die(struct cq *cq)
{
    struct adapter *adapter = cq->object.adapter;

    cq->failure = STATUS_BUFFER_OVERFLOW;
    atomic_fetch_add_explicit(&adapter->counters->cq_error, 1, memory_order_relaxed);
    object_fail(&cq->object, CALL_CREATE_CQ, STATUS_BUFFER_OVERFLOW,
                "overrun: more completions than the depth (%u), rule NDKPI 4.4", cq->depth);
    for (struct cq_user *user = cq->users; user && !RED("cq-overrun-spares-idle");
         user = user->next)
        user->died(user->owner);
    if (cq->arm != CQ_ARM_NONE && !(cq->arm == CQ_ARM_HELD && RED("cq-moderation-delays-death")))
        cq_fire(cq);
}

/* Lock held. A put's last step where the CQ is armed or moderated. */
static void cq_look(struct cq *cq, const struct cq_entry *entry, uint32_t at)
{
    if (cq->moderation.on)
        cq_moderation_put(cq, entry, at);
    else if (cq_satisfies(cq, entry))
        cq_fire(cq);
}

bool cq_put(struct cq *cq, const struct cq_entry *entries, unsigned count)
{
    bool alive = true;

    os_mutex_lock(&cq->lock);
    for (unsigned i = 0; i < count; i++) {
        uint32_t written = atomic_load_explicit(&cq->written, memory_order_relaxed);
        struct cq_ring *ring = cq->ring;

        if (!NT_SUCCESS(cq->failure)) {
            alive = false;
            break;
        }
        if (written - atomic_load_explicit(&cq->read, memory_order_acquire) >=
            cq->depth + (RED("cq-overrun-late") ? 1u : 0u)) {
            cq_die(cq);
            alive = false;
            break;
        }
        ring->entries[written & ring->mask] = entries[i];
        sanitize_release(&cq->written);
        atomic_store_explicit(&cq->written, written + 1, memory_order_release);
        if (cq->look)
            cq_look(cq, &entries[i], written);
    }
    os_mutex_unlock(&cq->lock);
    return alive;
}

bool cq_join(struct cq *cq, struct cq_user *user)
{
    bool alive;

    os_mutex_lock(&cq->lock);
    alive = NT_SUCCESS(cq->failure);
    if (alive) {
        user->next = cq->users;
        user->at = &cq->users;
        if (user->next)
            user->next->at = &user->next;
        cq->users = user;
    }
    os_mutex_unlock(&cq->lock);
    return alive;
}

void cq_leave(struct cq *cq, struct cq_user *user)
{
    os_mutex_lock(&cq->lock);
    if (user->at) {
        *user->at = user->next;
        if (user->next)
            user->next->at = user->at;
        user->at = NULL;
    }
    os_mutex_unlock(&cq->lock);
}

/* ---- arm ------------------------------------------------------------------------------------ */

/* Lock held. Does what is there and was not told of satisfy the arm? */
static void cq_arm_look(struct cq *cq)
{
    struct cq_ring *ring = cq->read_ring;
    uint32_t at = atomic_load_explicit(&cq->read, memory_order_relaxed);
    uint32_t written = atomic_load_explicit(&cq->written, memory_order_relaxed);
    uint32_t first = written;
    bool error = false;

    if ((int32_t)(cq->seen - at) > 0)
        at = cq->seen;
    for (; at != written && !error && !RED("cq_arm_does_not_look"); at++) {
        const struct cq_entry *entry = cq_ring_seek(&ring, at);

        if (!cq_satisfies(cq, entry))
            continue;
        if (first == written)
            first = at;
        error = !cq->moderation.on || !NT_SUCCESS(entry->status);
    }
    if (first == written)
        return;
    if (cq->moderation.on)
        cq_moderation_arm(cq, first, error);
    else
        cq_fire(cq);
}

static VOID cq_arm(NDK_CQ *ndk, ULONG type)
{
    struct cq *cq = cq_from(ndk);
    enum cq_arm_state strength;

    switch (type) {
    case NDK_CQ_NOTIFY_ERRORS:
        strength = CQ_ARM_ERRORS;
        break;
    case NDK_CQ_NOTIFY_ANY:
        strength = CQ_ARM_ANY;
        break;
    case NDK_CQ_NOTIFY_SOLICITED:
        strength = CQ_ARM_SOLICITED;
        break;
    default:
        object_fail(&cq->object, CALL_ARM_CQ, STATUS_INVALID_PARAMETER,
                    "Type (have %u, need 0, 1 or 2), taken as NDK_CQ_NOTIFY_ANY", type);
        strength = CQ_ARM_ANY;
        break;
    }
    USDT(arm, cq->object.id, type);
    os_mutex_lock(&cq->lock);
    if (strength > cq->arm && !(RED("arm-larger-number-holds") && cq->arm == CQ_ARM_SOLICITED))
        cq_arm_set(cq, strength);
    else if (RED("arm-larger-number-holds") && strength == CQ_ARM_SOLICITED)
        cq_arm_set(cq, strength);
    if (!NT_SUCCESS(cq->failure)) {
        if (RED("cq-overrun-told-again") || (!cq->failure_told && !(cq->running && cq->due)))
            cq_fire(cq);
    } else if (cq->arm != CQ_ARM_HELD) {
        cq_arm_look(cq);
    }
    os_mutex_unlock(&cq->lock);
    cq_progress_return(cq);
}

const NDK_CQ_DISPATCH cq_dispatch = {
    .NdkCloseCq = object_close,
    .NdkQueryExtension = object_query_extension,
    .NdkResizeCq = cq_resize,
    .NdkArmCq = cq_arm,
    .NdkGetCqResults = cq_get_results,
    .NdkControlCqInterruptModeration = cq_control_moderation,
    .NdkGetCqResultsEx = cq_get_results_ex,
};
