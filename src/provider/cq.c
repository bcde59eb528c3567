// SPDX-License-Identifier: MIT
/* See cq.h for the protocol; docs/models/cq.pml checks it. */
#include "provider/cq.h"

#include <ntstatus.h>
#include <stdlib.h>
#include <string.h>

#include "base/red.h"
#include "provider/adapter.h"
#include "provider/versions.h"

enum { ARM_NONE, ARM_ERRORS, ARM_SOLICITED, ARM_ANY };

static void cq_release(struct object *object)
{
    struct cq *cq = CONTAINING_RECORD(object, struct cq, object);

    free(cq->ring);
    os_mutex_destroy(&cq->lock);
}

static const struct object_class cq_class = {
    .type = NdkObjectTypeCq,
    .name = "cq",
    .size = sizeof(struct cq),
    .release = cq_release,
};

static void cq_note(struct engine_item *item);

static struct cq *cq_new(struct adapter *adapter, ULONG depth,
                         NDK_FN_CQ_NOTIFICATION_CALLBACK notification, PVOID context)
{
    struct object *object = object_new(&cq_class, &adapter->object, &cq_dispatch);
    struct cq *cq;
    uint32_t size = 1;

    if (!object)
        return NULL;
    cq = CONTAINING_RECORD(object, struct cq, object);
    while (size < depth)
        size *= 2;
    cq->notification = notification;
    cq->notification_context = context;
    cq->depth = depth;
    cq->tells_codes = version_is_at_least(adapter->version, 2, 1);
    cq->mask = size - 1;
    cq->note_item.run = cq_note;
    os_mutex_init(&cq->lock);
    object->home = engine_shard_next();
    cq->ring = calloc(size, sizeof *cq->ring);
    if (!cq->ring) {
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
static void cq_fire(struct cq *cq)
{
    cq->arm = ARM_NONE;
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
    cq->notification(cq->notification_context, status);
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

static bool cq_satisfies(uint32_t arm, const struct cq_entry *entry)
{
    return arm == ARM_ANY || (arm == ARM_SOLICITED && entry->solicits);
}

void cq_join(struct cq *cq, struct cq_user *user, void (*died)(struct cq_user *user))
{
    user->died = died;
    user->previous = NULL;
    os_mutex_lock(&cq->lock);
    user->next = cq->users;
    if (cq->users)
        cq->users->previous = user;
    cq->users = user;
    os_mutex_unlock(&cq->lock);
}

void cq_leave(struct cq *cq, struct cq_user *user)
{
    os_mutex_lock(&cq->lock);
    if (user->previous)
        user->previous->next = user->next;
    else
        cq->users = user->next;
    if (user->next)
        user->next->previous = user->previous;
    os_mutex_unlock(&cq->lock);
}

/* Lock held. */
static void cq_die(struct cq *cq)
{
    struct adapter *adapter = cq->object.adapter;

    cq->failure = STATUS_BUFFER_OVERFLOW;
    atomic_store(&cq->dead, true);
    atomic_fetch_add_explicit(&adapter->counters.cq_error, 1, memory_order_relaxed);
    object_fail(&cq->object, CALL_CREATE_CQ, STATUS_BUFFER_OVERFLOW,
                "overrun: more completions than the depth (%u), rule NDKPI 4.4", cq->depth);
    for (struct cq_user *user = cq->users; user && !RED("cq-overrun-spares-idle");
         user = user->next)
        user->died(user);
    if (cq->arm != ARM_NONE)
        cq_fire(cq);
}

bool cq_put(struct cq *cq, const struct cq_entry *entries, unsigned count)
{
    bool alive = true;

    os_mutex_lock(&cq->lock);
    for (unsigned i = 0; i < count; i++) {
        uint32_t written = atomic_load_explicit(&cq->written, memory_order_relaxed);

        if (!NT_SUCCESS(cq->failure)) {
            alive = false;
            break;
        }
        if (written - atomic_load_explicit(&cq->read, memory_order_acquire) >= cq->depth) {
            cq_die(cq);
            alive = false;
            break;
        }
        cq->ring[written & cq->mask] = entries[i];
        atomic_store_explicit(&cq->written, written + 1, memory_order_release);
        if (cq->arm != ARM_NONE && cq_satisfies(cq->arm, &entries[i]))
            cq_fire(cq);
    }
    os_mutex_unlock(&cq->lock);
    return alive;
}

static VOID cq_arm(NDK_CQ *ndk, ULONG type)
{
    struct cq *cq = cq_from(ndk);
    uint32_t strength, from, written;

    switch (type) {
    case NDK_CQ_NOTIFY_ERRORS:
        strength = ARM_ERRORS;
        break;
    case NDK_CQ_NOTIFY_ANY:
        strength = ARM_ANY;
        break;
    case NDK_CQ_NOTIFY_SOLICITED:
        strength = ARM_SOLICITED;
        break;
    default:
        object_fail(&cq->object, CALL_ARM_CQ, STATUS_INVALID_PARAMETER,
                    "Type (have %u, need 0, 1 or 2), taken as NDK_CQ_NOTIFY_ANY", type);
        strength = ARM_ANY;
        break;
    }
    os_mutex_lock(&cq->lock);
    if (strength > cq->arm && !(RED("arm-larger-number-holds") && cq->arm == ARM_SOLICITED))
        cq->arm = strength;
    else if (RED("arm-larger-number-holds") && strength == ARM_SOLICITED)
        cq->arm = strength;
    if (!NT_SUCCESS(cq->failure)) {
        if (!cq->failure_told && !(cq->running && cq->due))
            cq_fire(cq);
        os_mutex_unlock(&cq->lock);
        return;
    }
    from = atomic_load_explicit(&cq->read, memory_order_relaxed);
    written = atomic_load_explicit(&cq->written, memory_order_relaxed);
    if ((int32_t)(cq->seen - from) > 0)
        from = cq->seen;
    for (; from != written && !RED("cq_arm_does_not_look"); from++) {
        if (cq_satisfies(cq->arm, &cq->ring[from & cq->mask])) {
            cq_fire(cq);
            break;
        }
    }
    os_mutex_unlock(&cq->lock);
}

/* ---- polling -------------------------------------------------------------------------------- */

/*
 * Nothing is there. In a callback the first empty poll transmits what the callback posted; further
 * ones also move data, so that a callback that posts and polls for the result gets it.
 */
static bool cq_empty_poll(struct cq *cq)
{
    if (!engine_in_item())
        return false;
    if (engine_after_flush())
        return true;
    if (cq->empty_polls++ == 0)
        return false;
    engine_poll_nested();
    return true;
}

static uint32_t cq_available(struct cq *cq, uint32_t *read)
{
    *read = atomic_load_explicit(&cq->read, memory_order_relaxed);
    return atomic_load_explicit(&cq->written, memory_order_acquire) - *read;
}

/* How many entries are to be returned, *read the first. */
static ULONG cq_take(struct cq *cq, ULONG room, uint32_t *read)
{
    uint32_t available = cq_available(cq, read);

    if (available == 0 && cq_empty_poll(cq))
        available = cq_available(cq, read);
    if (available)
        cq->empty_polls = 0;
    return available < room ? available : room;
}

static ULONG cq_get_results(NDK_CQ *ndk, NDK_RESULT results[], ULONG room)
{
    struct cq *cq = cq_from(ndk);
    uint32_t read;
    ULONG count = cq_take(cq, room, &read);

    for (ULONG i = 0; i < count; i++) {
        const struct cq_entry *entry = &cq->ring[(read + i) & cq->mask];

        results[i].Status = entry->status;
        results[i].BytesTransferred = entry->octets;
        results[i].QPContext = entry->qp_context;
        results[i].RequestContext = entry->context;
    }
    atomic_store_explicit(&cq->read, read + count, memory_order_release);
    return count;
}

static ULONG cq_get_results_ex(NDK_CQ *ndk, NDK_RESULT_EX results[], ULONG room)
{
    struct cq *cq = cq_from(ndk);
    uint32_t read;
    ULONG count = cq_take(cq, room, &read);

    for (ULONG i = 0; i < count; i++) {
        const struct cq_entry *entry = &cq->ring[(read + i) & cq->mask];

        results[i].Status = entry->status;
        results[i].BytesTransferred = entry->octets;
        results[i].QPContext = entry->qp_context;
        results[i].RequestContext = entry->context;
        results[i].Type = (NDK_OPERATION_TYPE)entry->type;
        results[i].ProviderErrorCode = cq->tells_codes ? entry->provider_code : 0;
        results[i].TypeSpecificCompletionOutput = entry->token;
    }
    atomic_store_explicit(&cq->read, read + count, memory_order_release);
    return count;
}

/* ---- slots that later work fills ------------------------------------------------------------ */

static NTSTATUS cq_resize(NDK_CQ *ndk, ULONG depth, NDK_FN_REQUEST_COMPLETION completion,
                          PVOID context)
{
    struct object *object = &cq_from(ndk)->object;
    NTSTATUS status = object_injected(object, CALL_RESIZE_CQ);

    (void)depth;
    if (status == STATUS_SUCCESS)
        status = object_fail(object, CALL_RESIZE_CQ, STATUS_NOT_SUPPORTED,
                             "resizing is not supported (CQ_RESIZE_SUPPORTED is clear)");
    return request_answer(object, CALL_RESIZE_CQ, completion, context, status);
}

static NTSTATUS cq_moderation(NDK_CQ *ndk, ULONG interval, ULONG count)
{
    struct object *object = &cq_from(ndk)->object;
    NTSTATUS status = object_injected(object, CALL_CONTROL_MODERATION);

    (void)interval;
    (void)count;
    if (status != STATUS_SUCCESS)
        return status;
    return object_fail(object, CALL_CONTROL_MODERATION, STATUS_NOT_SUPPORTED,
                       "moderation is not supported (CQ_INTERRUPT_MODERATION_SUPPORTED is clear)");
}

const NDK_CQ_DISPATCH cq_dispatch = {
    .NdkCloseCq = object_close,
    .NdkQueryExtension = object_query_extension,
    .NdkResizeCq = cq_resize,
    .NdkArmCq = cq_arm,
    .NdkGetCqResults = cq_get_results,
    .NdkControlCqInterruptModeration = cq_moderation,
    .NdkGetCqResultsEx = cq_get_results_ex,
};
