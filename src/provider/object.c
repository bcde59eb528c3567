// SPDX-License-Identifier: MIT
/*
 * Objects: birth, references, close, reasons. The contract and the order of an object's end stand
 * in object.h. The end has three steps, each done by whoever dropped the last reference:
 *   release (resources given back) - close completion, deferred, if the close pended - destroy
 *   (off the live list, freed, references on the antecedents dropped).
 * Called by all object files. Locks: the adapter's table lock, for the live list and reasons.
 */
#include "provider/object.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/red.h"
#include "nt/nt.h"
#include "os/sanitize.h"
#include "provider/adapter.h"
#include "provider/early.h"
#include "provider/origin.h"
#include "provider/versions.h"

static atomic_uint last_id;

uint32_t object_next_id(void)
{
    return atomic_fetch_add_explicit(&last_id, 1, memory_order_relaxed) + 1;
}

/* ---- birth ---- */

static void live_insert(struct object *object)
{
    struct adapter *adapter = object->adapter;

    os_mutex_lock(&adapter->table_lock);
    object->live_next = adapter->live;
    if (adapter->live)
        adapter->live->live_previous = object;
    adapter->live = object;
    os_mutex_unlock(&adapter->table_lock);
}

static void live_remove(struct object *object)
{
    struct adapter *adapter = object->adapter;

    os_mutex_lock(&adapter->table_lock);
    if (object->live_previous)
        object->live_previous->live_next = object->live_next;
    else
        adapter->live = object->live_next;
    if (object->live_next)
        object->live_next->live_previous = object->live_previous;
    os_mutex_unlock(&adapter->table_lock);
}

struct object *object_new(const struct object_class *class, struct object *parent,
                          const void *dispatch)
{
    struct object *object = hooks_alloc(class->size);

    if (!object)
        return NULL;
    object->header.Version = parent->adapter->version;
    object->header.ObjectType = class->type;
    object->dispatch = version_dispatch(class->type, parent->adapter->version, dispatch);
    object->class = class;
    object->adapter = parent->adapter;
    object->home = parent->home;
    object->id = object_next_id();
    atomic_init(&object->references, 1);
    atomic_init(&object->closed, false);
    object->origin = origin_take();
    object_follow(object, parent);
    live_insert(object);
    return object;
}

void object_follow(struct object *object, struct object *other)
{
    assert(object->antecedent_count < OBJECT_ANTECEDENTS);
    object_ref(other);
    object->antecedents[object->antecedent_count++] = other;
}

/* ---- end ---- */

static void object_destroy(struct object *object)
{
    struct object *antecedents[OBJECT_ANTECEDENTS];
    unsigned count = object->antecedent_count;

    memcpy(antecedents, object->antecedents, sizeof antecedents);
    live_remove(object);
    if (object->strand) {
        strand_destroy(object->strand);
        free(object->strand);
    }
    free(object->reason);
    origin_free(object->origin);
    free(object);
    /* Later ones first: the parent, which keeps the adapter alive, goes last. */
    while (count)
        object_unref(antecedents[--count]);
}

static void object_close_call(struct object *object)
{
    KIRQL before = callback_enter();

    if (object->close_fn)
        object->close_fn(object->close_context);
    callback_leave(before);
}

static void object_end(struct object *object, struct engine_shard *where);
static bool object_is_adapter(const struct object *object);

/* A breach, not a service: the antecedents end on another shard, beside the callback that is about
 * to run. (On this one their completions would wait for it.) Returns the adapter, which has to
 * outlive the rest. */
static struct adapter *antecedents_fall(struct object *object)
{
    struct engine_shard *other = engine_shard_next();

    if (other == engine_self())
        other = engine_shard_next();
    adapter_ref(object->adapter);
    while (object->antecedent_count) {
        struct object *antecedent = object->antecedents[--object->antecedent_count];

        if (object_is_adapter(antecedent))
            adapter_unref(antecedent->adapter);
        else if (atomic_fetch_sub_explicit(&antecedent->references, 1, memory_order_acq_rel) == 1)
            object_end(antecedent, other);
    }
    return object->adapter;
}

static void object_close_run(struct engine_item *item)
{
    struct object *object = CONTAINING_RECORD(item, struct object, close_item);
    struct early *early = object->early;
    struct adapter *kept = NULL;

    if (RED("object-antecedents-fall-before-return"))
        kept = antecedents_fall(object);
    object_close_call(object);
    if (RED("object-closes-twice"))
        object_close_call(object);
    object_destroy(object);
    if (kept)
        adapter_unref(kept);
    if (early)
        early_returned(early);
}

/* No reference is left. where: the shard of the close completion. */
static void object_end(struct object *object, struct engine_shard *where)
{
    sanitize_acquire(object);
    if (object->class->release)
        object->class->release(object);
    if (!object->pended) {
        object_destroy(object);
        return;
    }
    object->close_item.run = object_close_run;
    if (RED("object-close-completes-inline"))
        object_close_run(&object->close_item);
    else
        object_defer(object, where, &object->close_item);
}

static bool object_is_adapter(const struct object *object)
{
    return object->class->type == NdkObjectTypeAdapter;
}

void object_ref(struct object *object)
{
    if (object_is_adapter(object))
        adapter_ref(object->adapter);
    else
        atomic_fetch_add_explicit(&object->references, 1, memory_order_relaxed);
}

bool object_ref_living(struct object *object)
{
    unsigned count = atomic_load_explicit(&object->references, memory_order_relaxed);

    while (count != 0)
        if (atomic_compare_exchange_weak_explicit(&object->references, &count, count + 1,
                                                  memory_order_relaxed, memory_order_relaxed))
            return true;
    return false;
}

void object_unref(struct object *object)
{
    unsigned before;

    if (object_is_adapter(object)) {
        adapter_unref(object->adapter);
        return;
    }
    sanitize_release(object);
    before = atomic_fetch_sub_explicit(&object->references, 1, memory_order_acq_rel);
    assert(before != 0);
    if (before == 1)
        object_end(object, callback_shard(object->home));
}

void object_discard(struct object *object)
{
    object_unref(object);
}

NTSTATUS object_close(NDK_OBJECT_HEADER *header, NDK_FN_CLOSE_COMPLETION completion, PVOID context)
{
    struct object *object = CONTAINING_RECORD(header, struct object, header);
    struct engine_shard *where = callback_shard(object->home);
    bool cancels = object->class->cancel != NULL;
    enum pend_mode mode = completion ? pend_choose() : PEND_NEVER;
    struct early *early = NULL;
    bool last;

    if (RED("object-dispatch-read-back")) {
        NDK_EXTENSION_INTERFACE extension;

        ((NDK_PD *)(void *)header)
            ->Dispatch->NdkQueryExtension(header, &(GUID){0}, header->Version, &extension);
    }
    if (atomic_exchange(&object->closed, true)) {
        nt_finding_of_call("%s #%u: NdkClose: closed twice, rule C2", object->class->name,
                           object->id);
        return STATUS_SUCCESS;
    }
    if (!completion)
        nt_finding_of_call("%s #%u: NdkClose: no CloseCompletion, rule C11", object->class->name,
                           object->id);
    if (mode == PEND_EARLY)
        early = early_new(object, &where);
    object->early = early;
    object->close_fn = completion;
    object->close_context = context;
    object->pended = true;
    if (object->class->cancel)
        object->class->cancel(object);
    /* If this drop is not the last the object may be gone at once. */
    sanitize_release(object);
    last = atomic_fetch_sub_explicit(&object->references, 1, memory_order_acq_rel) == 1;
    if (last) {
        object->pended = mode != PEND_NEVER;
        object_end(object, where);
        if (mode == PEND_NEVER)
            return STATUS_SUCCESS;
    }
    if (early) {
        if (last || (cancels && !engine_in_item()))
            early_wait(early);
        else
            early_forget(early);
    }
    return STATUS_PENDING;
}

/* ---- reasons ---- */

static bool status_is_ours(NTSTATUS status)
{
    return status == STATUS_INSUFFICIENT_RESOURCES || status == STATUS_INTERNAL_ERROR;
}

/* Logs the line and keeps it as the object's reason. */
static void reason_keep(struct object *object, enum log_level level, const char *text)
{
    char *reason, *old;

    if (log_on(level))
        log_write(level, "%s", text);
    reason = strdup(text); /* without memory none is kept: an older one would be of another call */
    if (!reason && RED("object-older-reason-stays"))
        return;
    os_mutex_lock(&object->adapter->table_lock);
    old = object->reason;
    object->reason = reason;
    object->reason_lost = !reason;
    os_mutex_unlock(&object->adapter->table_lock);
    free(old);
}

NTSTATUS object_fail(struct object *object, enum call call, NTSTATUS status, const char *format,
                     ...)
{
    char text[400];
    size_t used;
    va_list ap;

    used = (size_t)snprintf(text, sizeof text, "%s #%u: %s: ", object->class->name, object->id,
                            call_name(call));
    va_start(ap, format);
    vsnprintf(text + used, sizeof text - used, format, ap);
    va_end(ap);
    reason_keep(object, status_is_ours(status) ? LOG_ERROR : LOG_INFO, text);
    return status;
}

void object_note(struct object *object, const char *format, ...)
{
    char text[400];
    size_t used;
    va_list ap;

    used = (size_t)snprintf(text, sizeof text, "%s #%u: ", object->class->name, object->id);
    va_start(ap, format);
    vsnprintf(text + used, sizeof text - used, format, ap);
    va_end(ap);
    reason_keep(object, LOG_INFO, text);
}

bool object_reason(struct object *object, char *text, size_t size)
{
    bool found;

    os_mutex_lock(&object->adapter->table_lock);
    found = object->reason || object->reason_lost;
    if (size)
        snprintf(text, size, "%s",
                 object->reason        ? object->reason
                 : object->reason_lost ? "there was no memory to keep the reason"
                                       : "");
    os_mutex_unlock(&object->adapter->table_lock);
    return found;
}

NTSTATUS object_query_extension(NDK_OBJECT_HEADER *header, GUID *id, NDK_VERSION version,
                                NDK_EXTENSION_INTERFACE *out)
{
    struct object *object = CONTAINING_RECORD(header, struct object, header);
    NTSTATUS status = object_injected(object, CALL_QUERY_EXTENSION);

    (void)id;
    (void)version;
    (void)out;
    if (status != STATUS_SUCCESS)
        return status;
    return object_fail(object, CALL_QUERY_EXTENSION, STATUS_NOT_SUPPORTED,
                       "no extension interface exists, NDKPI 5.2");
}

/* ---- callbacks ---- */

KIRQL callback_enter(void)
{
    KIRQL before = KeGetCurrentIrql();

    nt_irql_set(RED("object-callback-irql-high") ? DISPATCH_LEVEL + 1 : DISPATCH_LEVEL);
    return before;
}

void callback_leave(KIRQL before)
{
    KIRQL now = KeGetCurrentIrql();

    if (now != DISPATCH_LEVEL)
        nt_finding("a consumer callback returned at IRQL %u (need %u)", now, DISPATCH_LEVEL);
    nt_irql_set(before);
}

void object_defer(struct object *object, struct engine_shard *where, struct engine_item *item)
{
    struct adapter *adapter = object->adapter;
    bool foreign = engine_self() == NULL;

    if (foreign)
        adapter_ref(adapter);
    engine_defer(where, item);
    if (foreign)
        adapter_unref(adapter);
}

struct engine_shard *callback_shard(struct engine_shard *home)
{
    struct engine_shard *self = engine_self();

    return self ? self : home;
}
