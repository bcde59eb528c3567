// SPDX-License-Identifier: MIT
/*
 * Records of NDK objects: what is checked when one is born, while it lives, and when it closes
 * (lifetime 2, 4; NDKPI 1.3, 1.4, 3). The layer above the provider owns NdkReserved: where the door
 * says that this is the kit, each object carries a mark there from birth to close.
 */
#include "kit_internal.h"

PVOID kit_object_record(struct kit *k, NDK_OBJECT_TYPE type, SIZE_T size)
{
    struct kit_object *object = kit_alloc(k, size);

    if (!object)
        return NULL;
    object->k = k;
    object->type = type;
    kit_os_lock(&k->in->lock);
    object->number = ++k->in->numbers[type];
    object->next = k->in->objects;
    k->in->objects = object;
    kit_os_unlock(&k->in->lock);
    return object;
}

struct kit_object *kit_objects(struct kit *k)
{
    struct kit_object *first;

    kit_os_lock(&k->in->lock);
    first = k->in->objects;
    kit_os_unlock(&k->in->lock);
    return first;
}

VOID kit_object_name(const struct kit_object *object, char *text, SIZE_T size)
{
    kit_print_to(text, size, "%s #%u", kit_type_name(object->type), (unsigned)object->number);
}

VOID kit_follow(struct kit_object *object, struct kit_object *antecedent)
{
    kit_os_lock(&object->k->in->lock);
    for (ULONG i = 0; i < KIT_ANTECEDENTS; i++)
        if (!object->antecedents[i]) {
            object->antecedents[i] = antecedent;
            break;
        }
    kit_os_unlock(&object->k->in->lock);
}

VOID kit_drop(struct kit_object *object, struct kit_object *antecedent)
{
    kit_os_lock(&object->k->in->lock);
    for (ULONG i = 0; i < KIT_ANTECEDENTS; i++)
        if (object->antecedents[i] == antecedent) {
            object->antecedents[i] = NULL;
            break;
        }
    kit_os_unlock(&object->k->in->lock);
}

/* ---- birth ---------------------------------------------------------------------------------- */

/* The table follows the header in every object (NDKPI 1.4). */
static const VOID *table_of(const NDK_OBJECT_HEADER *header)
{
    return ((const NDK_CQ *)(const VOID *)header)->Dispatch;
}

#define SET_NDK(kind)                                                                              \
    do {                                                                                           \
        struct kit_##kind *record_ = CONTAINING_RECORD(object, struct kit_##kind, object);         \
                                                                                                   \
        record_->ndk = (PVOID)header;                                                              \
        record_->table = table_of(header);                                                         \
    } while (0)

static VOID set_ndk(struct kit_object *object, NDK_OBJECT_HEADER *header)
{
    switch (object->type) {
    case NdkObjectTypeAdapter:
        SET_NDK(adapter);
        break;
    case NdkObjectTypeQp:
        SET_NDK(qp);
        break;
    case NdkObjectTypeCq:
        SET_NDK(cq);
        break;
    case NdkObjectTypeMr:
        SET_NDK(mr);
        break;
    case NdkObjectTypeMw:
        SET_NDK(mw);
        break;
    case NdkObjectTypePd:
        SET_NDK(pd);
        break;
    case NdkObjectTypeSharedEndpoint:
        SET_NDK(endpoint);
        break;
    case NdkObjectTypeConnector:
        SET_NDK(connector);
        break;
    case NdkObjectTypeListener:
        SET_NDK(listener);
        break;
    case NdkObjectTypeSrq:
        SET_NDK(srq);
        break;
    default:
        break;
    }
}

/* A table for the layer above: whoever calls through it has read Dispatch back. */
static volatile LONG trapped;

static VOID trap(VOID)
{
    kit_os_add(&trapped, 1);
}

typedef VOID trap_function(VOID);

static trap_function *const trap_table[16] = {trap, trap, trap, trap, trap, trap, trap, trap,
                                              trap, trap, trap, trap, trap, trap, trap, trap};

VOID kit_hide_dispatch(struct kit *k)
{
    kit_os_set(&trapped, 0);
    k->in->hide_dispatch = TRUE;
}

BOOLEAN kit_dispatch_untouched(struct kit *k)
{
    return (BOOLEAN)(!k->in->hide_dispatch || kit_os_get(&trapped) == 0);
}

/* How many slots a table has, by its object's version. */
static ULONG slots(NDK_OBJECT_TYPE type, NDK_VERSION version)
{
    BOOLEAN v12 = version.Major > 1 || (version.Major == 1 && version.Minor >= 2);
    BOOLEAN v21 = version.Major > 2 || (version.Major == 2 && version.Minor >= 1);
    static const UCHAR whole[] = {0, 9, 11, 7, 7, 3, 8, 3, 13, 5, 4};
    ULONG count = (ULONG)type < RTL_NUMBER_OF(whole) ? whole[type] : 0;

    if ((type == NdkObjectTypeCq || type == NdkObjectTypeQp) && !v12)
        count -= 1;
    if (type == NdkObjectTypeConnector && !v21)
        count -= 2;
    return count;
}

static VOID check_table(struct kit_object *object, const char *name)
{
    const UCHAR *table = table_of(object->header);
    ULONG count = slots(object->type, object->header->Version);

    if (!table) {
        kit_breach(object->k, "NDKPI 1.4", "%s has no Dispatch", name);
        return;
    }
    for (ULONG i = 0; i < count; i++) {
        PVOID slot;

        RtlCopyMemory(&slot, table + i * sizeof slot, sizeof slot);
        if (!slot)
            kit_breach(object->k, "NDKPI 3", "%s: slot %u of its table is NULL", name, (unsigned)i);
    }
}

/* The first antecedent of every object but an adapter is its adapter. */
static VOID check_version(struct kit_object *object, const char *name)
{
    NDK_VERSION have = object->header->Version, need;

    if (!object->antecedents[0])
        return;
    need = object->antecedents[0]->header->Version;
    if (need.Major != have.Major || need.Minor != have.Minor)
        kit_breach(object->k, "NDKPI 1.3", "%s has version %u.%u, its adapter %u.%u", name,
                   have.Major, have.Minor, need.Major, need.Minor);
}

static VOID mark(struct kit_object *object, const char *name)
{
    NDK_OBJECT_HEADER *header = object->header;

    for (ULONG i = 0; i < RTL_NUMBER_OF(header->NdkReserved.rf); i++) {
        if (header->NdkReserved.rf[i])
            kit_breach(object->k, "NDKPI 1.3", "%s: NdkReserved.rf[%u] is not zero at birth", name,
                       (unsigned)i);
        header->NdkReserved.rf[i] = (UCHAR *)object + i;
    }
}

static VOID check_mark(struct kit_object *object, const char *name)
{
    NDK_OBJECT_HEADER *header = object->header;

    for (ULONG i = 0; i < RTL_NUMBER_OF(header->NdkReserved.rf); i++)
        if (header->NdkReserved.rf[i] != (PVOID)((UCHAR *)object + i))
            kit_breach(object->k, "NDKPI 1.3", "%s: NdkReserved.rf[%u] was changed", name,
                       (unsigned)i);
}

VOID kit_object_born(struct kit_object *object, NDK_OBJECT_HEADER *header)
{
    char name[32];

    kit_object_name(object, name, sizeof name);
    object->header = header;
    set_ndk(object, header);
    if (header->ObjectType != object->type)
        kit_breach(object->k, "NDKPI 1.3", "%s: ObjectType (have %d, need %d)", name,
                   (int)header->ObjectType, (int)object->type);
    check_version(object, name);
    check_table(object, name);
    if (kit_door.direct)
        mark(object, name);
    if (object->k->in->hide_dispatch)
        ((NDK_CQ *)(PVOID)header)->Dispatch = (PVOID)(ULONG_PTR)trap_table;
    kit_os_set(&object->life, KIT_OPEN);
}

/* ---- close ---------------------------------------------------------------------------------- */

static NDK_FN_CLOSE_OBJECT close_slot(const struct kit_object *object)
{
    /* NDK_FN_CLOSE_OBJECT is slot 0 of every table but the adapter's, and every record is a header,
     * an object and its table. */
    return CONTAINING_RECORD(object, const struct kit_cq, object)->table->NdkCloseCq;
}

static const char *close_name(NDK_OBJECT_TYPE type)
{
    static const char *const names[] = {"close",
                                        "close",
                                        "NdkCloseQp",
                                        "NdkCloseCq",
                                        "NdkCloseMr",
                                        "NdkCloseMw",
                                        "NdkClosePd",
                                        "NdkCloseSharedEndpoint",
                                        "NdkCloseConnector",
                                        "NdkCloseListener",
                                        "NdkCloseSrq"};

    return names[type];
}

struct kit_call *kit_close_start(struct kit_object *object)
{
    struct kit_call *call = kit_call_new(object->k, object, close_name(object->type));
    char name[32];

    if (!call)
        return NULL;
    kit_object_name(object, name, sizeof name);
    if (kit_door.direct)
        check_mark(object, name);
    call->kind = KIT_CLOSE;
    object->close = call;
    kit_os_set(&object->life, KIT_CLOSING);
    kit_call_returned(call, close_slot(object)(object->header, kit_close_done, call));
    return call;
}

struct kit_call *kit_close_then(struct kit_object *object, kit_then_function *then, PVOID context)
{
    kit_next_then(object->k, then, context);
    return kit_close_start(object);
}

BOOLEAN kit_close(struct kit_object *object)
{
    return kit_answer_is(kit_close_start(object), STATUS_SUCCESS);
}

static BOOLEAN follows(const struct kit_object *object, const struct kit_object *antecedent)
{
    for (ULONG i = 0; i < KIT_ANTECEDENTS; i++)
        if (object->antecedents[i] == antecedent)
            return TRUE;
    return FALSE;
}

/* What keeps a successor's antecedents from being closed, or NULL. A close that is being called
 * right now may already be done inside the provider: nothing can be said then. */
static const char *holds(struct kit_object *successor)
{
    if (successor->close && kit_os_get(&successor->close->inside))
        return "whose close completion has not returned (C7)";
    if (kit_os_get(&successor->life) == KIT_OPEN)
        return "which is open (C4c)";
    if (kit_os_get(&successor->life) == KIT_CLOSING && successor->close &&
        kit_call_open(successor->close))
        return "whose close is pending (C4c)";
    return NULL;
}

VOID kit_object_closing(struct kit_object *object)
{
    struct kit_inside *in = object->k->in;
    char text[128] = "", name[32], other[32];

    kit_object_name(object, name, sizeof name);
    kit_os_lock(&in->lock);
    for (struct kit_call *call = in->calls; call; call = call->next)
        if (call->owner == object && call->kind != KIT_CLOSE && kit_call_open(call))
            kit_print_to(text, sizeof text, "%s of it is pending or in its completion (C4a)",
                         call->name);
    for (struct kit_object *s = in->objects; s; s = s->next)
        if (follows(s, object) && holds(s)) {
            kit_object_name(s, other, sizeof other);
            kit_print_to(text, sizeof text, "%s depends on it, %s", other, holds(s));
        }
    if (kit_os_get(&object->running) > 0)
        kit_print_to(text, sizeof text, "an event callback of it is running (C4b)");
    kit_os_unlock(&in->lock);
    if (text[0])
        kit_breach(object->k, "C4", "the close of %s was done, but %s", name, text);
}

/* ---- event callbacks ------------------------------------------------------------------------ */

VOID kit_event_enter(struct kit_object *object, const char *callback)
{
    KIRQL irql = KeGetCurrentIrql();
    char name[32];

    kit_os_add(&object->running, 1);
    kit_object_name(object, name, sizeof name);
    if (irql > DISPATCH_LEVEL)
        kit_breach(object->k, "IRQL", "%s of %s ran at IRQL %u (need <= 2)", callback, name, irql);
    if (kit_os_get(&object->k->in->ended))
        kit_breach(object->k, "C9", "%s of %s ran after the adapter's close", callback, name);
    else if (kit_os_get(&object->life) == KIT_CLOSED)
        kit_breach(object->k, "C5", "%s of %s ran after its close was done", callback, name);
}

VOID kit_event_leave(struct kit_object *object)
{
    kit_os_add(&object->running, -1);
}

/* ---- adapters ------------------------------------------------------------------------------- */

BOOLEAN kit_has_version(const struct kit_adapter *adapter, USHORT major, USHORT minor)
{
    NDK_VERSION have = adapter->object.header->Version;

    return have.Major > major || (have.Major == major && have.Minor >= minor);
}

NTSTATUS kit_adapter_try(struct kit *k, NDK_VERSION version, struct kit_adapter **out, char *why,
                         SIZE_T why_size)
{
    const struct kit_config *config = k->config;
    struct kit_adapter *adapter = kit_object_record(k, NdkObjectTypeAdapter, sizeof *adapter);
    NDK_ADAPTER *ndk = NULL;
    NTSTATUS status;
    ULONG size = sizeof adapter->info;

    if (!adapter)
        return KIT_NO_ANSWER;
    kit_doing(k, "opening the adapter");
    status = kit_door.open(&config->local, config->local_length, config->options, version, &ndk,
                           why, why_size);
    kit_doing(k, NULL);
    if (status != STATUS_SUCCESS || !ndk)
        return status;
    kit_object_born(&adapter->object, &ndk->Header);
    status = adapter->table->NdkQueryAdapterInfo(ndk, &adapter->info, &size);
    kit_answered("NdkQueryAdapterInfo", status, KIT_INLINE);
    if (status != STATUS_SUCCESS) {
        kit_fail(k, (struct kit_here){NULL, 0}, "NdkQueryAdapterInfo: %s", kit_status_name(status));
        return KIT_NO_ANSWER;
    }
    k->info = adapter->info;
    *out = adapter;
    return STATUS_SUCCESS;
}

BOOLEAN kit_adapter_open(struct kit *k, struct kit_adapter **out)
{
    static const NDK_VERSION majors[] = {{2, 0}, {1, 0}};
    NTSTATUS status = STATUS_SUCCESS;
    char why[256] = "";

    if (k->config->version.Major) {
        status = kit_adapter_try(k, k->config->version, out, why, sizeof why);
    } else {
        for (ULONG i = 0; i < RTL_NUMBER_OF(majors); i++) {
            status = kit_adapter_try(k, majors[i], out, why, sizeof why);
            if (status == STATUS_SUCCESS || status == KIT_NO_ANSWER)
                break;
        }
    }
    if (status == STATUS_SUCCESS)
        return TRUE;
    return kit_fail(k, (struct kit_here){NULL, 0}, "opening the adapter: %s %s",
                    kit_status_name(status), why);
}

/* When the adapter's close has returned, so have all callbacks (C9). */
static VOID check_adapter_closed(struct kit_adapter *adapter)
{
    struct kit *k = adapter->object.k;
    char name[32];

    for (struct kit_object *object = kit_objects(k); object; object = object->next) {
        kit_object_name(object, name, sizeof name);
        if (object->antecedents[0] != &adapter->object && object != &adapter->object)
            continue;
        if (kit_os_get(&object->running) || (object->close && kit_call_open(object->close)))
            kit_breach(k, "C9", "the adapter's close returned before a callback of %s had", name);
    }
    for (struct kit_call *call = k->in->calls; call; call = call->next)
        if (call->owner == &adapter->object && kit_call_open(call))
            kit_breach(k, "C9", "the adapter's close returned before %s was completed", call->name);
}

BOOLEAN kit_adapter_close(struct kit_adapter *adapter)
{
    struct kit *k = adapter->object.k;
    char name[32];

    kit_object_name(&adapter->object, name, sizeof name);
    if (kit_door.direct)
        check_mark(&adapter->object, name);
    kit_doing(k, "closing the adapter");
    kit_os_set(&adapter->object.life, KIT_CLOSING);
    kit_door.close(adapter->ndk);
    kit_os_set(&adapter->object.life, KIT_CLOSED);
    kit_doing(k, NULL);
    check_adapter_closed(adapter);
    return TRUE;
}
