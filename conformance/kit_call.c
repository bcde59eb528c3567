// SPDX-License-Identifier: MIT
/*
 * Calls that may pend: one way for all, whether they answer inline, later, or before they return.
 *
 * The function's return and the completion may run at the same time on two threads. Each side
 * leaves what the other needs in the call (answered, completions, returned), and each judges what
 * it can see: together they find every breach that both orders can show.
 */
#include "kit_internal.h"

/* What an out parameter points at until a create writes it. */
static UCHAR canary;

struct kit_call *kit_call_new(struct kit *k, struct kit_object *owner, const char *name)
{
    struct kit_call *call = kit_alloc(k, sizeof *call);

    if (!call)
        return NULL;
    call->k = k;
    call->owner = owner;
    call->name = name;
    call->returned = STATUS_PENDING;
    call->status = STATUS_PENDING;
    call->out.any = &canary;
    KeInitializeEvent(&call->done, NotificationEvent, FALSE);
    call->before = KeGetCurrentIrql();
    kit_os_lock(&k->in->lock);
    call->then = k->in->next_then;
    call->then_context = k->in->next_context;
    k->in->next_then = NULL;
    call->next = k->in->calls;
    k->in->calls = call;
    kit_os_unlock(&k->in->lock);
    kit_doing(k, name);
    return call;
}

VOID kit_next_then(struct kit *k, kit_then_function *then, PVOID context)
{
    kit_os_lock(&k->in->lock);
    k->in->next_then = then;
    k->in->next_context = context;
    kit_os_unlock(&k->in->lock);
}

BOOLEAN kit_call_open(const struct kit_call *call)
{
    if (kit_os_get(&call->inside))
        return TRUE;
    return kit_os_get(&call->answered) && call->returned == STATUS_PENDING &&
           kit_os_get(&call->completions) == 0;
}

static VOID check_out(struct kit_call *call, const char *when)
{
    if (call->kind == KIT_CREATE && call->out.any != &canary)
        kit_breach(call->k, "section 13 no. 4",
                   "%s wrote its out parameter on the asynchronous path (seen %s)", call->name,
                   when);
}

/* An inline success: the object is there, or gone. */
static VOID inline_success(struct kit_call *call)
{
    if (call->kind == KIT_CREATE) {
        if (call->out.any == &canary || !call->out.any)
            kit_breach(call->k, "lifetime 2", "%s: STATUS_SUCCESS, but its out parameter is %s",
                       call->name, call->out.any ? "unwritten" : "NULL");
        else
            kit_object_born(call->object, call->out.any);
    } else if (call->kind == KIT_CLOSE) {
        kit_object_closing(call->owner);
        call->owner->close_inline = TRUE;
        kit_os_set(&call->owner->life, KIT_CLOSED);
    }
}

VOID kit_call_returned(struct kit_call *call, NTSTATUS returned)
{
    struct kit *k = call->k;
    KIRQL irql = KeGetCurrentIrql();

    kit_doing(k, NULL);
    kit_answered(call->name, returned, KIT_INLINE);
    call->returned = returned;
    if (irql != call->before)
        kit_breach(k, "IRQL", "%s changed the caller's IRQL (before %u, after %u)", call->name,
                   call->before, irql);
    if (returned == STATUS_PENDING) {
        check_out(call, "at its return");
    } else {
        if (call->kind == KIT_CLOSE && returned != STATUS_SUCCESS)
            kit_breach(k, "C1", "%s returned %s (need STATUS_SUCCESS or STATUS_PENDING)",
                       call->name, kit_status_name(returned));
        if (kit_os_get(&call->completions))
            kit_breach(k, "lifetime 3", "%s returned %s though its completion has run", call->name,
                       kit_status_name(returned));
        if (returned == STATUS_SUCCESS)
            inline_success(call);
        call->status = returned;
        if (call->record)
            call->record(call, call->record_context);
    }
    kit_os_set(&call->answered, 1);
}

/* TRUE for the first and only completion, which is to be gone through. */
static BOOLEAN enter(struct kit_call *call, NTSTATUS status)
{
    struct kit *k = call->k;
    struct kit_object *owner = call->owner;

    kit_answered(call->name, status, KIT_ASYNC);
    call->irql = KeGetCurrentIrql();
    if (call->irql > DISPATCH_LEVEL)
        kit_breach(k, "IRQL", "the completion of %s ran at IRQL %u (need <= 2)", call->name,
                   call->irql);
    if (kit_os_get(&k->in->ended))
        kit_breach(k, "C9", "the completion of %s ran after the adapter's close", call->name);
    if (kit_os_add(&call->inside, 1) > 1 || kit_os_get(&call->completions) > 0) {
        kit_breach(k, "lifetime 3", "%s was completed twice", call->name);
        return FALSE;
    }
    if (kit_os_get(&call->answered) && call->returned != STATUS_PENDING)
        kit_breach(k, "lifetime 3", "%s had returned %s, and its completion ran all the same",
                   call->name, kit_status_name(call->returned));
    if (owner && kit_os_get(&owner->life) == KIT_CLOSED)
        kit_breach(k, "C5", "the completion of %s ran after its object was closed", call->name);
    if (status == STATUS_PENDING)
        kit_breach(k, "lifetime 3", "%s was completed with STATUS_PENDING", call->name);
    return TRUE;
}

static VOID leave(struct kit_call *call, NTSTATUS status)
{
    call->within = !kit_os_get(&call->answered);
    call->status = status;
    if (call->record)
        call->record(call, call->record_context);
    if (call->then)
        call->then(call, call->then_context);
    kit_os_add(&call->completions, 1);
    KeSetEvent(&call->done, IO_NO_INCREMENT, FALSE);
}

VOID kit_request_done(PVOID context, NTSTATUS status)
{
    struct kit_call *call = context;

    if (enter(call, status))
        leave(call, status);
    kit_os_add(&call->inside, -1);
}

VOID kit_create_done(PVOID context, NTSTATUS status, NDK_OBJECT_HEADER *object)
{
    struct kit_call *call = context;

    if (enter(call, status)) {
        check_out(call, "at its completion");
        if (status == STATUS_SUCCESS) {
            if (object)
                kit_object_born(call->object, object);
            else
                kit_breach(call->k, "NDKPI 4.2", "%s was completed with success and no object",
                           call->name);
        }
        leave(call, status);
    }
    kit_os_add(&call->inside, -1);
}

VOID kit_close_done(PVOID context)
{
    struct kit_call *call = context;

    if (enter(call, STATUS_SUCCESS)) {
        kit_object_closing(call->owner);
        kit_os_set(&call->owner->life, KIT_CLOSED);
        leave(call, STATUS_SUCCESS);
    }
    kit_os_add(&call->inside, -1);
}

NTSTATUS kit_answer(struct kit_call *call)
{
    char what[96];

    if (!call)
        return KIT_NO_ANSWER;
    if (call->returned == STATUS_PENDING) {
        kit_print_to(what, sizeof what, "the completion of %s", call->name);
        if (!kit_wait(call->k, &call->done, what))
            return KIT_NO_ANSWER;
        check_out(call, "after its completion");
    }
    return call->status;
}

BOOLEAN kit_answers_in_time(struct kit_call *call)
{
    if (!call || call->returned != STATUS_PENDING)
        return TRUE;
    while (kit_time_left(call->k) > 1000) {
        LARGE_INTEGER slice;

        slice.QuadPart = -10000ll * 100;
        if (KeWaitForSingleObject(&call->done, Executive, KernelMode, FALSE, &slice) ==
            STATUS_SUCCESS)
            return TRUE;
    }
    return FALSE;
}

BOOLEAN kit_exact(struct kit *k)
{
    BOOLEAN here = (BOOLEAN) !(k->in->channel && k->in->channel->peer);

    return (BOOLEAN)(here && k->config->options && kit_door.exact &&
                     kit_door.exact(k->config->options));
}

BOOLEAN kit_answer_is(struct kit_call *call, NTSTATUS need)
{
    NTSTATUS have = kit_answer(call);
    char words[256] = "";

    if (have == need)
        return TRUE;
    if (have == KIT_NO_ANSWER)
        return FALSE;
    if (kit_door.reason && call->owner && call->owner->header &&
        kit_os_get(&call->owner->life) == KIT_OPEN && have != STATUS_SUCCESS)
        kit_door.reason(call->owner->header, words, sizeof words);
    return kit_fail(call->k, (struct kit_here){NULL, 0}, "%s: have %s, need %s%s%s%s", call->name,
                    kit_status_name(have), kit_status_name(need), words[0] ? " (provider: " : "",
                    words, words[0] ? ")" : "");
}
