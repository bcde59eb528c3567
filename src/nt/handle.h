// SPDX-License-Identifier: MIT
/*
 * handle.h - handles, and the objects behind them.
 *
 * An object is counted: a handle holds one reference, a caller of nt_handle_get() another. A
 * handle's number is not given out again soon, so that one used after its close is noticed. The
 * table's lock is a leaf; destroy is called with no lock held.
 */
#ifndef SOFTNDK_NT_HANDLE_H
#define SOFTNDK_NT_HANDLE_H

#include <stdatomic.h>

#include <wdm.h>

enum nt_object_type { NT_OBJECT_KEY, NT_OBJECT_FILE, NT_OBJECT_THREAD };

struct nt_object {
    enum nt_object_type type;
    atomic_uint references;
    void (*destroy)(struct nt_object *object);
};

/* One reference, the caller's. */
void nt_object_init(struct nt_object *object, enum nt_object_type type,
                    void (*destroy)(struct nt_object *object));
void nt_object_reference(struct nt_object *object);
/* How many references are left. More releases than references are a finding. */
unsigned nt_object_release(struct nt_object *object, const char *call, const void *caller);

/* Enters the object, whose reference becomes the handle's; NULL without memory (still the
 * caller's). */
HANDLE nt_handle_open(struct nt_object *object, ACCESS_MASK access, const void *caller);

/* The object, with a reference for the caller. STATUS_INVALID_HANDLE (a finding, too),
 * STATUS_OBJECT_TYPE_MISMATCH, STATUS_ACCESS_DENIED when not all of `access` was granted. */
NTSTATUS nt_handle_get(HANDLE handle, enum nt_object_type type, ACCESS_MASK access,
                       struct nt_object **object, const char *call, const void *caller);

/* What was granted with the handle. */
ACCESS_MASK nt_handle_access(HANDLE handle);

#endif /* SOFTNDK_NT_HANDLE_H */
