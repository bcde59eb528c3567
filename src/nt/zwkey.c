// SPDX-License-Identifier: MIT
/*
 * The registry calls of drivers, over registry.c. PASSIVE_LEVEL.
 */
#include <stdlib.h>
#include <string.h>

#include "base/red.h"
#include "nt/handle.h"
#include "nt/nt.h"
#include "nt/ntname.h"
#include "nt/registry.h"

enum { NAME_MAX_UNITS = 255 };

/* What a handle to a key is to. */
struct key_object {
    struct nt_object object; /* first */
    struct nt_key *key;
};

static void key_object_destroy(struct nt_object *object)
{
    free(object);
}

/* The rights that a wish for generic ones, or for all, means. */
static ACCESS_MASK granted(ACCESS_MASK desired)
{
    ACCESS_MASK access = desired & 0x0fffffff;

    if (desired & (MAXIMUM_ALLOWED | GENERIC_ALL))
        access |= KEY_ALL_ACCESS;
    if (desired & GENERIC_READ)
        access |= KEY_READ;
    if (desired & GENERIC_WRITE)
        access |= KEY_WRITE;
    if (desired & GENERIC_EXECUTE)
        access |= KEY_EXECUTE;
    return access;
}

/* Where a name begins: the key of the root directory, or what "\Registry" is. */
static NTSTATUS start_of(POBJECT_ATTRIBUTES attributes, struct nt_name *name, struct nt_key **key,
                         const char *call, const void *caller)
{
    struct nt_name first;
    struct nt_object *object;
    NTSTATUS status = nt_name_of(attributes, name);

    if (status != STATUS_SUCCESS)
        return status;
    if (!attributes->RootDirectory) {
        if (!nt_name_next(name, &first) || !nt_name_is(&first, "Registry"))
            return STATUS_OBJECT_NAME_NOT_FOUND;
        *key = nt_registry_root();
        return STATUS_SUCCESS;
    }
    status = nt_handle_get(attributes->RootDirectory, NT_OBJECT_KEY, 0, &object, call, caller);
    if (status == STATUS_SUCCESS) {
        *key = ((struct key_object *)object)->key; /* keys stay, the reference need not */
        nt_object_release(object, call, caller);
    }
    return status;
}

/* Follows the name down to a key that exists; the lock is held. With make the last component may be
 * new: *made then. */
static NTSTATUS walk(struct nt_name *name, bool make, struct nt_key **key, bool *made)
{
    struct nt_name component, rest;

    *made = false;
    while (nt_name_next(name, &component)) {
        struct nt_key *next;

        if (component.units > NAME_MAX_UNITS)
            return STATUS_OBJECT_NAME_INVALID;
        next = nt_key_find(*key, component.at, component.units);
        if (!next) {
            rest = *name;
            if (!make || nt_name_next(&rest, &rest))
                return STATUS_OBJECT_NAME_NOT_FOUND;
            next = nt_key_make(*key, component.at, component.units);
            if (!next)
                return STATUS_INSUFFICIENT_RESOURCES;
            *made = true;
        }
        *key = next;
    }
    return STATUS_SUCCESS;
}

static NTSTATUS open_handle(struct nt_key *key, ACCESS_MASK desired, PHANDLE handle,
                            const void *caller)
{
    struct key_object *k = calloc(1, sizeof *k);

    if (!k)
        return STATUS_INSUFFICIENT_RESOURCES;
    nt_object_init(&k->object, NT_OBJECT_KEY, key_object_destroy);
    k->key = key;
    *handle = nt_handle_open(&k->object, granted(desired), caller);
    if (*handle)
        return STATUS_SUCCESS;
    free(k);
    return STATUS_INSUFFICIENT_RESOURCES;
}

NTSTATUS ZwOpenKey(PHANDLE KeyHandle, ACCESS_MASK DesiredAccess,
                   POBJECT_ATTRIBUTES ObjectAttributes)
{
    struct nt_key *key;
    struct nt_name name;
    NTSTATUS status;
    bool made;

    (void)nt_irql_at_most(PASSIVE_LEVEL, "ZwOpenKey", NT_CALLER);
    nt_registry_lock();
    status = start_of(ObjectAttributes, &name, &key, "ZwOpenKey", NT_CALLER);
    if (status == STATUS_SUCCESS)
        status = walk(&name, false, &key, &made);
    nt_registry_unlock();
    if (status == STATUS_SUCCESS)
        status = open_handle(key, DesiredAccess, KeyHandle, NT_CALLER);
    return status;
}

NTSTATUS ZwCreateKey(PHANDLE KeyHandle, ACCESS_MASK DesiredAccess,
                     POBJECT_ATTRIBUTES ObjectAttributes, ULONG TitleIndex, PUNICODE_STRING Class,
                     ULONG CreateOptions, PULONG Disposition)
{
    struct nt_key *key;
    struct nt_name name;
    NTSTATUS status;
    bool made = false;

    (void)TitleIndex;
    (void)Class;
    (void)nt_irql_at_most(PASSIVE_LEVEL, "ZwCreateKey", NT_CALLER);
    nt_registry_lock();
    status = start_of(ObjectAttributes, &name, &key, "ZwCreateKey", NT_CALLER);
    if (status == STATUS_SUCCESS)
        status = walk(&name, true, &key, &made);
    if (made) {
        key->is_volatile |= (CreateOptions & REG_OPTION_VOLATILE) != 0;
        nt_registry_save();
    }
    nt_registry_unlock();
    if (status == STATUS_SUCCESS)
        status = open_handle(key, DesiredAccess, KeyHandle, NT_CALLER);
    if (status == STATUS_SUCCESS && Disposition)
        *Disposition = made ? REG_CREATED_NEW_KEY : REG_OPENED_EXISTING_KEY;
    return status;
}

/* ---- values --------------------------------------------------------------------------------- */

/* An answer that is built in full and handed out as far as there is room. */
struct answer {
    UCHAR *at;
    ULONG room, used;
};

static void answer_put(struct answer *a, ULONG offset, const void *from, size_t size)
{
    size_t fits = offset < a->room ? a->room - offset : 0;

    if (fits && size)
        memcpy(a->at + offset, from, fits < size ? fits : size);
    if (a->used < offset + size)
        a->used = (ULONG)(offset + size);
}

static NTSTATUS answer_partial(struct answer *a, const struct nt_value *v)
{
    const ULONG fixed = FIELD_OFFSET(KEY_VALUE_PARTIAL_INFORMATION, Data);
    KEY_VALUE_PARTIAL_INFORMATION head = {.Type = v->type, .DataLength = (ULONG)v->size};

    answer_put(a, fixed, v->data, v->size);
    a->used = fixed + (ULONG)v->size;
    if (a->room < fixed)
        return STATUS_BUFFER_TOO_SMALL;
    answer_put(a, 0, &head, fixed);
    return STATUS_SUCCESS;
}

static NTSTATUS answer_basic(struct answer *a, const struct nt_value *v)
{
    const ULONG fixed = FIELD_OFFSET(KEY_VALUE_BASIC_INFORMATION, Name);
    ULONG name = (ULONG)(v->name_units * sizeof(WCHAR));
    KEY_VALUE_BASIC_INFORMATION head = {.Type = v->type, .NameLength = name};

    answer_put(a, fixed, v->name, name);
    a->used = fixed + name;
    if (a->room < fixed)
        return STATUS_BUFFER_TOO_SMALL;
    answer_put(a, 0, &head, fixed);
    return STATUS_SUCCESS;
}

/* The data stands behind the name, at a multiple of 8. */
static NTSTATUS answer_full(struct answer *a, const struct nt_value *v)
{
    const ULONG fixed = FIELD_OFFSET(KEY_VALUE_FULL_INFORMATION, Name);
    ULONG name = (ULONG)(v->name_units * sizeof(WCHAR));
    ULONG data = (fixed + name + 7) & ~7u;
    KEY_VALUE_FULL_INFORMATION head = {
        .Type = v->type,
        .DataOffset = data,
        .DataLength = (ULONG)v->size,
        .NameLength = name,
    };

    answer_put(a, fixed, v->name, name);
    answer_put(a, data, v->data, v->size);
    a->used = data + (ULONG)v->size;
    if (a->room < fixed)
        return STATUS_BUFFER_TOO_SMALL;
    answer_put(a, 0, &head, fixed);
    return STATUS_SUCCESS;
}

static NTSTATUS answer_class(struct answer *a, const struct nt_value *v,
                             KEY_VALUE_INFORMATION_CLASS class)
{
    NTSTATUS status;

    switch (class) {
    case KeyValueBasicInformation:
        status = answer_basic(a, v);
        break;
    case KeyValueFullInformation:
    case KeyValueFullInformationAlign64:
        status = answer_full(a, v);
        break;
    case KeyValuePartialInformation:
        status = answer_partial(a, v);
        break;
    default:
        return STATUS_INVALID_PARAMETER;
    }
    if (status == STATUS_SUCCESS && a->used > a->room && !RED("nt-key-cut-unsaid"))
        status = STATUS_BUFFER_OVERFLOW;
    return status;
}

/* The name of a value, NULL or empty for the default one. */
static bool value_name(const UNICODE_STRING *name, const WCHAR **units, size_t *count)
{
    *units = name ? name->Buffer : NULL;
    *count = name ? name->Length / sizeof(WCHAR) : 0;
    return !name || (name->Length % sizeof(WCHAR) == 0 && (name->Buffer || !name->Length));
}

NTSTATUS ZwQueryValueKey(HANDLE KeyHandle, PUNICODE_STRING ValueName,
                         KEY_VALUE_INFORMATION_CLASS KeyValueInformationClass,
                         PVOID KeyValueInformation, ULONG Length, PULONG ResultLength)
{
    struct answer a = {.at = KeyValueInformation, .room = KeyValueInformation ? Length : 0};
    struct nt_object *object;
    struct nt_value *value;
    const WCHAR *name;
    size_t units;
    NTSTATUS status;

    (void)nt_irql_at_most(PASSIVE_LEVEL, "ZwQueryValueKey", NT_CALLER);
    if (!value_name(ValueName, &name, &units) || !ResultLength)
        return STATUS_INVALID_PARAMETER;
    status = nt_handle_get(KeyHandle, NT_OBJECT_KEY, KEY_QUERY_VALUE, &object, "ZwQueryValueKey",
                           NT_CALLER);
    if (status != STATUS_SUCCESS)
        return status;
    nt_registry_lock();
    value = nt_value_find(((struct key_object *)object)->key, name, units);
    status =
        value ? answer_class(&a, value, KeyValueInformationClass) : STATUS_OBJECT_NAME_NOT_FOUND;
    nt_registry_unlock();
    nt_object_release(object, "ZwQueryValueKey", NT_CALLER);
    if (a.used)
        *ResultLength = a.used;
    return status;
}

NTSTATUS ZwSetValueKey(HANDLE KeyHandle, PUNICODE_STRING ValueName, ULONG TitleIndex, ULONG Type,
                       PVOID Data, ULONG DataSize)
{
    struct nt_object *object;
    struct nt_key *key;
    const WCHAR *name;
    size_t units;
    NTSTATUS status;

    (void)TitleIndex;
    (void)nt_irql_at_most(PASSIVE_LEVEL, "ZwSetValueKey", NT_CALLER);
    if (!value_name(ValueName, &name, &units) || (DataSize && !Data))
        return STATUS_INVALID_PARAMETER;
    status =
        nt_handle_get(KeyHandle, NT_OBJECT_KEY, KEY_SET_VALUE, &object, "ZwSetValueKey", NT_CALLER);
    if (status != STATUS_SUCCESS)
        return status;
    key = ((struct key_object *)object)->key;
    nt_registry_lock();
    if (!nt_value_set(key, name, units, Type, Data, DataSize))
        status = STATUS_INSUFFICIENT_RESOURCES;
    else if (!key->is_volatile)
        nt_registry_save();
    nt_registry_unlock();
    nt_object_release(object, "ZwSetValueKey", NT_CALLER);
    return status;
}
