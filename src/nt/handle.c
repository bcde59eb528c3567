// SPDX-License-Identifier: MIT
/*
 * See handle.h. Also ZwClose.
 *
 * A handle is a small multiple of 4, as on Windows: the place in the table, and a number of how
 * often the place was used, which it takes 2^12 closes to repeat.
 */
#include "nt/handle.h"

#include <stdlib.h>

#include "base/red.h"
#include "nt/left.h"
#include "nt/nt.h"
#include "os/os.h"

enum { PLACE_BITS = 16, PLACES_MAX = 1 << PLACE_BITS, USE_MASK = 0xfff };

struct place {
    struct nt_object *object; /* NULL: free */
    ACCESS_MASK access;
    unsigned use;
};

static os_mutex lock = OS_MUTEX_INITIALIZER;
static struct place *places;
static unsigned place_count, last_place;

static HANDLE handle_of(unsigned place, unsigned use)
{
    return (HANDLE)(ULONG_PTR)(((use & USE_MASK) << PLACE_BITS | place) * 4 + 4);
}

/* The place of a handle that is open, else NULL; the lock is held. */
static struct place *place_of(HANDLE handle)
{
    ULONG_PTR n = ((ULONG_PTR)handle - 4) / 4;
    unsigned place = (unsigned)(n & (PLACES_MAX - 1));

    if (place >= place_count || !places[place].object ||
        handle_of(place, places[place].use) != handle)
        return NULL;
    return &places[place];
}

void nt_object_init(struct nt_object *object, enum nt_object_type type,
                    void (*destroy)(struct nt_object *object))
{
    object->type = type;
    object->destroy = destroy;
    atomic_init(&object->references, 1);
}

void nt_object_reference(struct nt_object *object)
{
    atomic_fetch_add_explicit(&object->references, 1, memory_order_relaxed);
}

unsigned nt_object_release(struct nt_object *object, const char *call, const void *caller)
{
    unsigned before = atomic_load_explicit(&object->references, memory_order_relaxed);

    do {
        if (before == 0) {
            nt_finding_from(caller, "%s: the object %p has no reference left", call,
                            (void *)object);
            return 0;
        }
    } while (!atomic_compare_exchange_weak_explicit(&object->references, &before, before - 1,
                                                    memory_order_acq_rel, memory_order_relaxed));
    if (before == 1)
        object->destroy(object);
    return before - 1;
}

/* A free place after the one used last, or a new one; the lock is held. NULL without memory. */
static struct place *place_find(void)
{
    struct place *more;
    unsigned room;

    for (unsigned i = 1; i <= place_count; i++) {
        unsigned at = (last_place + i) % place_count;

        if (!places[at].object) {
            last_place = at;
            return &places[at];
        }
    }
    room = place_count ? 2 * place_count : 64;
    more = room <= PLACES_MAX ? realloc(places, room * sizeof *places) : NULL;
    if (!more)
        return NULL;
    places = more;
    for (unsigned i = place_count; i < room; i++)
        places[i] = (struct place){.object = NULL};
    last_place = place_count;
    place_count = room;
    return &places[last_place];
}

HANDLE nt_handle_open(struct nt_object *object, ACCESS_MASK access, const void *caller)
{
    HANDLE handle = NULL;
    struct place *p;

    os_mutex_lock(&lock);
    p = place_find();
    if (p) {
        if (!RED("nt-handle-number-reused"))
            p->use++;
        p->object = object;
        p->access = access;
        handle = handle_of((unsigned)(p - places), p->use);
    }
    os_mutex_unlock(&lock);
    if (!handle)
        return NULL;
    if (!nt_left_add(NT_LEFT_HANDLE, handle, 0, 0, 0, caller)) {
        os_mutex_lock(&lock);
        places[(((ULONG_PTR)handle - 4) / 4) & (PLACES_MAX - 1)].object = NULL;
        os_mutex_unlock(&lock);
        return NULL;
    }
    return handle;
}

NTSTATUS nt_handle_get(HANDLE handle, enum nt_object_type type, ACCESS_MASK access,
                       struct nt_object **object, const char *call, const void *caller)
{
    NTSTATUS status = STATUS_SUCCESS;
    struct place *p;

    os_mutex_lock(&lock);
    p = place_of(handle);
    if (!p)
        status = STATUS_INVALID_HANDLE;
    else if (p->object->type != type)
        status = STATUS_OBJECT_TYPE_MISMATCH;
    else if ((p->access & access) != access)
        status = STATUS_ACCESS_DENIED;
    if (status == STATUS_SUCCESS) {
        *object = p->object;
        nt_object_reference(p->object);
    }
    os_mutex_unlock(&lock);
    if (status == STATUS_INVALID_HANDLE)
        nt_finding_from(caller, "%s: %p is no open handle", call, handle);
    return status;
}

ACCESS_MASK nt_handle_access(HANDLE handle)
{
    ACCESS_MASK access = 0;
    struct place *p;

    os_mutex_lock(&lock);
    p = place_of(handle);
    if (p)
        access = p->access;
    os_mutex_unlock(&lock);
    return access;
}

NTSTATUS ZwClose(HANDLE Handle)
{
    struct nt_object *object = NULL;
    struct place *p;

    (void)nt_irql_at_most(PASSIVE_LEVEL, "ZwClose", NT_CALLER);
    os_mutex_lock(&lock);
    p = place_of(Handle);
    if (p) {
        object = p->object;
        p->object = NULL;
    }
    os_mutex_unlock(&lock);
    if (!object) {
        nt_finding_from(NT_CALLER, "ZwClose: %p is no open handle", Handle);
        return STATUS_INVALID_HANDLE;
    }
    (void)nt_left_drop(NT_LEFT_HANDLE, Handle);
    nt_object_release(object, "ZwClose", NT_CALLER);
    return STATUS_SUCCESS;
}
