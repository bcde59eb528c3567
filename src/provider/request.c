// SPDX-License-Identifier: MIT
/*
 * Asynchronous requests: the callback of one call, exactly once, outside of every call of the
 * consumer. The request's reference on its owner falls after the callback has returned; from the
 * moment the item is pushed nobody but the item touches the request.
 * Called by every provider function that may pend. Takes no lock of its own.
 */
#include <assert.h>
#include <stdlib.h>

#include "nt/nt.h"
#include "base/log.h"
#include "base/red.h"
#include "provider/early.h"
#include "provider/object.h"

struct request {
    struct engine_item item;
    struct object *owner; /* referenced */
    enum call call;
    NDK_FN_REQUEST_COMPLETION request_fn; /* one of the two */
    NDK_FN_CREATE_COMPLETION create_fn;
    PVOID context;
    NTSTATUS status;
    struct object *result; /* creates: given to the consumer */
    struct early *early;   /* the call that waits, or NULL */
    atomic_bool completed;
};

static void request_call(struct request *request)
{
    KIRQL before = callback_enter();

    if (RED("object-reserved-written"))
        request->owner->header.NdkReserved.rf[1] = request;
    if (request->create_fn)
        request->create_fn(request->context, request->status,
                           request->result ? &request->result->header : NULL);
    else if (request->request_fn)
        request->request_fn(request->context, request->status);
    callback_leave(before);
}

static void request_run(struct engine_item *item)
{
    struct request *request = CONTAINING_RECORD(item, struct request, item);
    struct object *owner = request->owner;
    struct early *early = request->early;

    if (RED("request-pending-is-outcome"))
        request->status = STATUS_PENDING;
    if (RED("object-reference-falls-before-return")) {
        object_unref(owner);
        owner = NULL;
    }
    if (!RED("object-completion-forgotten"))
        request_call(request);
    if (RED("object-completes-twice"))
        request_call(request);
    /* Without the reference a close in the callback would have freed what is looked at here. */
    if (RED("object-touched-after-completion") && atomic_load(&owner->closed))
        abort();
    free(request);
    if (owner && !RED("object-reference-kept"))
        object_unref(owner);
    if (early)
        early_returned(early);
}

static struct request *request_alloc(struct object *owner, enum call call, PVOID context)
{
    struct request *request = hooks_alloc(sizeof *request);

    if (!request)
        return NULL;
    request->item.run = request_run;
    request->owner = owner;
    request->call = call;
    request->context = context;
    object_ref(owner);
    return request;
}

/* From here on the request belongs to its item. */
static void request_push(struct request *request, NTSTATUS status, struct engine_shard *where)
{
    struct strand *strand = request->owner->strand;

    if (atomic_exchange(&request->completed, true)) {
        log_error("%s #%u: %s: completed twice", request->owner->class->name, request->owner->id,
                  call_name(request->call));
        abort();
    }
    assert(status != STATUS_PENDING);
    request->status = status;
    if (strand)
        strand_push_at(strand, &request->item, where);
    else
        object_defer(request->owner, where, &request->item);
}

/* A completion routine must be a real function: what pends would call it. */
static void completion_check(const struct object *owner, enum call call, bool given)
{
    if (!given && call != CALL_BUILD_LAM)
        nt_finding_of_call(
            "%s #%u: %s: the completion routine is NULL (need a function, a do-nothing one "
            "for \"don't care\"), rule NDKPI 4",
            owner->class->name, owner->id, call_name(call));
}

struct request *request_new(struct object *owner, enum call call,
                            NDK_FN_REQUEST_COMPLETION completion, PVOID context)
{
    struct request *request = request_alloc(owner, call, context);

    completion_check(owner, call, completion != NULL);
    if (request)
        request->request_fn = completion;
    return request;
}

void request_complete(struct request *request, NTSTATUS status)
{
    request_push(request, status, callback_shard(request->owner->home));
}

void request_drop(struct request *request)
{
    struct object *owner = request->owner;

    free(request);
    object_unref(owner);
}

/* Sends an answer that is known through the callback; waits for it when the mode says so. */
static NTSTATUS request_defer(struct request *request, enum pend_mode mode, NTSTATUS status)
{
    struct engine_shard *where = callback_shard(request->owner->home);
    struct early *early = NULL;

    if (mode == PEND_EARLY)
        early = early_new(request->owner, &where);
    request->early = early;
    request_push(request, status, where);
    if (early)
        early_wait(early);
    return STATUS_PENDING;
}

NTSTATUS request_answer(struct object *owner, enum call call, NDK_FN_REQUEST_COMPLETION completion,
                        PVOID context, NTSTATUS status)
{
    enum pend_mode mode = completion ? pend_choose() : PEND_NEVER;
    struct request *request;

    if (mode == PEND_NEVER) {
        completion_check(owner, call, completion != NULL);
        if (!RED("object-answers-inline-and-later"))
            return status;
    }
    request = request_new(owner, call, completion, context);
    if (request && mode == PEND_NEVER) {
        request_complete(request, status);
        return status;
    }
    return request ? request_defer(request, mode, status) : status;
}

NTSTATUS create_answer(struct object *parent, enum call call, NDK_FN_CREATE_COMPLETION completion,
                       PVOID context, NTSTATUS status, struct object *result, void **out)
{
    enum pend_mode mode = completion ? pend_choose() : PEND_NEVER;
    struct request *request = mode == PEND_NEVER ? NULL : request_alloc(parent, call, context);

    assert(NT_SUCCESS(status) == (result != NULL));
    completion_check(parent, call, completion != NULL);
    if (request) {
        request->create_fn = completion;
        request->result = result;
        if (result && RED("object-out-written"))
            *out = result;
        return request_defer(request, mode, status);
    }
    if (result)
        *out = result;
    return status;
}
