// SPDX-License-Identifier: MIT
/*
 * The life of one case: its verdict, its time, its memory, and the clean-up after it.
 *
 * The clean-up is itself a test: whatever state a case leaves, the provider has to close it. It
 * closes in an order that a consumer would use; that other orders are legal is for cases to show.
 */
#include "kit_internal.h"

/* ---- verdict -------------------------------------------------------------------------------- */

static struct {
    volatile LONG once, count;
    struct kit_os_lock lock;
    char text[KIT_LINE];
    struct kit *graves; /* newest first */
    ULONG grave_count;
} after; /* what outlives the cases */

static const char *role_name(enum kit_role role)
{
    return role == KIT_SERVER ? "server: " : role == KIT_CLIENT ? "client: " : "";
}

static const char *base_name(const char *path)
{
    const char *base = path;

    for (; *path; path++)
        if (*path == '/' || *path == '\\')
            base = path + 1;
    return base;
}

/* The first failure of a half is the one that is told. */
static VOID note(struct kit *k, struct kit_here here, const char *text)
{
    struct kit_inside *in = k->in;

    kit_os_lock(&in->lock);
    if (!in->failed) {
        in->failed = TRUE;
        if (here.file)
            kit_print_to(in->text, sizeof in->text, "%s%s:%d: %s", role_name(k->role),
                         base_name(here.file), here.line, text);
        else
            kit_print_to(in->text, sizeof in->text, "%s%s%s", role_name(k->role),
                         in->cleaning ? "clean-up: " : "", text);
    }
    kit_os_unlock(&in->lock);
}

BOOLEAN kit_fail(struct kit *k, struct kit_here here, const char *format, ...)
{
    char text[KIT_LINE];
    va_list arguments;

    va_start(arguments, format);
    kit_os_format(text, sizeof text, format, arguments);
    va_end(arguments);
    note(k, here, text);
    return FALSE;
}

VOID kit_second_hand(struct kit *k, const char *text)
{
    kit_os_lock(&k->in->lock);
    if (!k->in->failed)
        k->in->second_hand = TRUE;
    kit_os_unlock(&k->in->lock);
    note(k, (struct kit_here){NULL, 0}, text);
}

BOOLEAN kit_equal(struct kit *k, struct kit_here here, const char *what, LONGLONG have,
                  LONGLONG need)
{
    if (have == need)
        return TRUE;
    return kit_fail(k, here, "%s: have %lld, need %lld", what, (long long)have, (long long)need);
}

BOOLEAN kit_status(struct kit *k, struct kit_here here, const char *what, NTSTATUS have,
                   NTSTATUS need)
{
    kit_answered_in_words(what, have);
    if (have == need)
        return TRUE;
    return kit_fail(k, here, "%s: have %s, need %s", what, kit_status_name(have),
                    kit_status_name(need));
}

BOOLEAN kit_status_among(struct kit *k, struct kit_here here, const char *what, NTSTATUS have,
                         const NTSTATUS *need)
{
    char list[256] = "";
    SIZE_T used = 0;

    kit_answered_in_words(what, have);
    for (; *need != STATUS_PENDING; need++) {
        if (have == *need)
            return TRUE;
        kit_print_to(list + used, sizeof list - used, "%s%s", used ? " or " : "",
                     kit_status_name(*need));
        used = kit_length(list);
    }
    return kit_fail(k, here, "%s: have %s, need %s", what, kit_status_name(have), list);
}

BOOLEAN kit_bytes(struct kit *k, struct kit_here here, const char *what, const VOID *have,
                  const VOID *need, SIZE_T length)
{
    const UCHAR *h = have, *n = need;

    for (SIZE_T i = 0; i < length; i++)
        if (h[i] != n[i])
            return kit_fail(k, here, "%s: byte %llu of %llu: have 0x%02x, need 0x%02x", what,
                            (unsigned long long)i, (unsigned long long)length, h[i], n[i]);
    return TRUE;
}

BOOLEAN kit_skip(struct kit *k, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    kit_os_lock(&k->in->lock);
    if (!k->in->failed && !k->in->skipped) {
        k->in->skipped = TRUE;
        kit_os_format(k->in->text, sizeof k->in->text, format, arguments);
    }
    kit_os_unlock(&k->in->lock);
    va_end(arguments);
    return FALSE;
}

VOID kit_breach(struct kit *k, const char *rule, const char *format, ...)
{
    struct kit_inside *in = k->in;
    char text[KIT_LINE];
    va_list arguments;

    va_start(arguments, format);
    kit_os_format(text, sizeof text, format, arguments);
    va_end(arguments);
    kit_os_lock(&in->lock);
    if (in->breaches++ == 0)
        kit_print_to(in->breach, sizeof in->breach, "%s%s, rule %s", role_name(k->role), text,
                     rule);
    kit_os_unlock(&in->lock);
    if (kit_os_get(&in->ended)) {
        kit_os_lock(&after.lock);
        after.count++;
        kit_print_to(after.text, sizeof after.text, "%s: after its end: %s, rule %s",
                     k->test ? k->test->id : "the kit", text, rule);
        kit_os_unlock(&after.lock);
    }
}

LONG kit_life_late(char *text, SIZE_T size)
{
    LONG count;

    kit_os_lock(&after.lock);
    count = after.count;
    kit_print_to(text, size, "%s", after.text);
    kit_os_unlock(&after.lock);
    return count;
}

/* ---- time ----------------------------------------------------------------------------------- */

#define SLICE_MS  50
#define SETTLE_MS 50

ULONG kit_time_left(struct kit *k)
{
    ULONGLONG now = kit_os_ms();

    return now < k->in->deadline ? (ULONG)(k->in->deadline - now) : 0;
}

BOOLEAN kit_wait(struct kit *k, PKEVENT event, const char *what)
{
    for (;;) {
        ULONG left = kit_time_left(k);
        LARGE_INTEGER slice;

        slice.QuadPart = -10000ll * (left < SLICE_MS ? left : SLICE_MS);
        if (KeWaitForSingleObject(event, Executive, KernelMode, FALSE, &slice) == STATUS_SUCCESS)
            return TRUE;
        if (!k->in->cleaning && kit_os_get(&k->in->aborted)) {
            kit_second_hand(k, "the other half failed meanwhile");
            return FALSE;
        }
        if (left == 0)
            return kit_fail(k, (struct kit_here){NULL, 0}, "waited %u s in vain for: %s",
                            (unsigned)(k->config->limit_ms / 1000), what);
    }
}

BOOLEAN kit_wait_number(struct kit *k, volatile LONG *number, LONG least, const char *what)
{
    while (kit_os_get(number) < least) {
        if (!k->in->cleaning && kit_os_get(&k->in->aborted)) {
            kit_second_hand(k, "the other half failed meanwhile");
            return FALSE;
        }
        if (kit_time_left(k) == 0)
            return kit_fail(k, (struct kit_here){NULL, 0}, "waited %u s in vain for: %s (%d of %d)",
                            (unsigned)(k->config->limit_ms / 1000), what, (int)kit_os_get(number),
                            (int)least);
        kit_os_sleep_ms(1);
    }
    return TRUE;
}

VOID kit_settle(struct kit *k)
{
    (void)k;
    kit_os_sleep_ms(SETTLE_MS);
}

VOID kit_doing(struct kit *k, const char *function)
{
    if (KeGetCurrentIrql() >= DISPATCH_LEVEL)
        return; /* a callback; it is the case's thread that is told of when it hangs */
    kit_os_lock(&k->in->lock);
    k->in->doing = function;
    kit_os_unlock(&k->in->lock);
}

/* ---- the door's help ------------------------------------------------------------------------ */

BOOLEAN kit_answer_mode(struct kit *k, const char *mode)
{
    if (!mode && !k->in->mode_set)
        return TRUE;
    k->in->mode_set = (BOOLEAN)(mode != NULL);
    return kit_status(k, KIT_HERE, "the door's answer()",
                      kit_door.answer(mode ? mode : k->config->answer), STATUS_SUCCESS);
}

BOOLEAN kit_make_fail(struct kit *k, const char *function, NTSTATUS status)
{
    if (!function && !k->in->fail_set)
        return TRUE;
    k->in->fail_set = (BOOLEAN)(function != NULL);
    return kit_status(k, KIT_HERE, "the door's fail()", kit_door.fail(function, status),
                      STATUS_SUCCESS);
}

/* ---- memory --------------------------------------------------------------------------------- */

PVOID kit_alloc(struct kit *k, SIZE_T bytes)
{
    struct kit_block *block = kit_os_alloc(sizeof *block + bytes);

    if (!block) {
        kit_fail(k, (struct kit_here){NULL, 0}, "the kit has no memory");
        return NULL;
    }
    kit_os_lock(&k->in->lock);
    block->next = k->in->blocks;
    k->in->blocks = block;
    kit_os_unlock(&k->in->lock);
    return block + 1;
}

struct kit *kit_life_new(const struct kit_case *test, const struct kit_config *config,
                         enum kit_role role, struct kit_channel *channel)
{
    struct kit *k = kit_os_alloc(sizeof *k + sizeof *k->in);

    if (!k)
        return NULL;
    if (kit_os_add(&after.once, 1) == 1)
        kit_os_lock_init(&after.lock);
    k->in = (struct kit_inside *)(k + 1);
    k->test = test;
    k->config = config;
    k->role = role;
    k->in->channel = channel;
    k->in->deadline = kit_os_ms() + config->limit_ms;
    kit_os_lock_init(&k->in->lock);
    return k;
}

/* ---- clean-up ------------------------------------------------------------------------------- */

/* Waits for an event, and gives the case up if it does not come. */
static BOOLEAN clean_wait(struct kit *k, PKEVENT event, const char *what)
{
    if (k->in->abandoned || !kit_wait(k, event, what))
        k->in->abandoned = TRUE;
    return !k->in->abandoned;
}

/* From here on the clean-up alone takes results: notifications of the author's, which may do that
 * too, end. */
static VOID clean_notifications(struct kit *k)
{
    for (struct kit_object *object = kit_objects(k); object; object = object->next) {
        if (object->type != NdkObjectTypeCq)
            continue;
        kit_os_lock(&k->in->lock);
        CONTAINING_RECORD(object, struct kit_cq, object)->in_callback = NULL;
        kit_os_unlock(&k->in->lock);
        while (kit_os_get(&object->running) && kit_time_left(k))
            kit_os_sleep_ms(1);
    }
}

/* Creates that pend make objects that are to be closed. */
static VOID clean_creates(struct kit *k)
{
    for (struct kit_call *call = k->in->calls; call; call = call->next)
        if (call->kind == KIT_CREATE && kit_os_get(&call->answered) &&
            call->returned == STATUS_PENDING)
            clean_wait(k, &call->done, call->name);
}

static BOOLEAN among(NDK_OBJECT_TYPE type, ULONG types)
{
    return (BOOLEAN)(types >> type & 1u);
}

/* Closes all open objects of these types (bits), newest first, and waits. */
static VOID clean_objects(struct kit *k, ULONG types)
{
    struct kit_object *object;

    for (object = kit_objects(k); object; object = object->next)
        if (among(object->type, types) && kit_os_get(&object->life) == KIT_OPEN)
            (void)kit_close_start(object);
    for (object = kit_objects(k); object; object = object->next) {
        char name[32], what[64];

        if (!among(object->type, types) || !object->close)
            continue;
        kit_object_name(object, name, sizeof name);
        kit_print_to(what, sizeof what, "the close completion of %s", name);
        if (object->close->returned == STATUS_PENDING)
            clean_wait(k, &object->close->done, what);
    }
}

/* Each request that was posted completes: what is in the CQs now is all that can be. */
static VOID clean_queues(struct kit *k)
{
    struct kit_object *object;
    struct kit_result results[16];

    for (object = kit_objects(k); object; object = object->next)
        if (object->type == NdkObjectTypeCq && kit_os_get(&object->life) == KIT_OPEN)
            while (kit_cq_poll(CONTAINING_RECORD(object, struct kit_cq, object), results,
                               RTL_NUMBER_OF(results)) != 0)
                ;
    for (struct kit_request *r = k->in->requests; r; r = r->all) {
        struct kit_cq *cq = !r->qp ? NULL : r->receive ? r->qp->receive : r->qp->initiator;

        if (r->state == KIT_POSTED && cq && !(r->flags & NDK_OP_FLAG_SILENT_SUCCESS) &&
            kit_os_get(&cq->object.life) == KIT_OPEN && !kit_os_get(&cq->dead))
            kit_breach(k, "lifetime 6.1",
                       "a posted request has no completion though its QP is closed");
    }
}

static VOID clean_memory(struct kit *k)
{
    struct kit_object *object;

    for (object = kit_objects(k); object; object = object->next) {
        struct kit_mr *mr = CONTAINING_RECORD(object, struct kit_mr, object);

        if (object->type == NdkObjectTypeMr && kit_os_get(&object->life) == KIT_OPEN &&
            mr->registered) {
            struct kit_call *call = kit_deregister_start(mr);

            if (call && call->returned == STATUS_PENDING)
                clean_wait(k, &call->done, "NdkDeregisterMr");
        }
    }
    for (struct kit_lam *lam = k->in->lams; lam && !k->in->abandoned; lam = lam->next)
        kit_lam_release(lam);
}

#define TYPE(name) (1u << NdkObjectType##name)

VOID kit_life_clean(struct kit *k)
{
    struct kit_inside *in = k->in;

    in->cleaning = TRUE;
    in->deadline = kit_os_ms() + k->config->limit_ms;
    clean_notifications(k);
    clean_creates(k);
    if (!in->abandoned)
        clean_objects(k, TYPE(Connector) | TYPE(Listener));
    if (!in->abandoned)
        clean_objects(k, TYPE(Qp));
    if (!in->abandoned) {
        clean_queues(k);
        clean_memory(k);
    }
    if (!in->abandoned)
        clean_objects(k, ~(ULONG)TYPE(Adapter));
    for (struct kit_object *object = kit_objects(k); object && !in->abandoned;
         object = object->next)
        if (object->type == NdkObjectTypeAdapter && kit_os_get(&object->life) == KIT_OPEN)
            kit_adapter_close(CONTAINING_RECORD(object, struct kit_adapter, object));
    if (!kit_dispatch_untouched(k))
        kit_breach(k, "section 13 no. 3", "the provider called through Dispatch");
    for (struct kit_call *call = in->calls; call && !in->abandoned; call = call->next)
        if (kit_call_open(call))
            kit_breach(k, "lifetime 3", "%s pended and was never completed", call->name);
    for (struct kit_memory *memory = in->memories; memory && !in->abandoned;
         memory = memory->next) {
        if (memory->mdl)
            IoFreeMdl(memory->mdl);
        kit_os_free_pages(memory->data);
        memory->mdl = NULL;
        memory->data = NULL;
    }
    kit_os_set(&in->ended, 1);
}

/* ---- the graveyard -------------------------------------------------------------------------- */

#define GRAVES 256

static VOID life_free(struct kit *k)
{
    struct kit_block *block = k->in->blocks;

    while (block) {
        struct kit_block *next = block->next;

        kit_os_free(block);
        block = next;
    }
    kit_os_free(k);
}

VOID kit_life_bury(struct kit *k)
{
    struct kit **oldest = &after.graves;

    k->in->older = after.graves;
    after.graves = k;
    if (++after.grave_count <= GRAVES)
        return;
    while ((*oldest)->in->older)
        oldest = &(*oldest)->in->older;
    k = *oldest;
    if (!k->in->abandoned) {
        *oldest = NULL;
        after.grave_count--;
        life_free(k);
    }
}
