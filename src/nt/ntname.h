// SPDX-License-Identifier: MIT
/*
 * ntname.h - the name in a caller's OBJECT_ATTRIBUTES, taken apart.
 */
#ifndef SOFTNDK_NT_NTNAME_H
#define SOFTNDK_NT_NTNAME_H

#include <stdbool.h>
#include <stddef.h>

#include <wdm.h>

/* What is left of a name. */
struct nt_name {
    const WCHAR *at;
    size_t units;
};

/* The name, or why there is none: STATUS_INVALID_PARAMETER, STATUS_OBJECT_NAME_INVALID (an odd
 * length), STATUS_OBJECT_PATH_SYNTAX_BAD (not absolute without a root directory, absolute with
 * one). A name that is relative to a root directory may be empty. */
NTSTATUS nt_name_of(const OBJECT_ATTRIBUTES *attributes, struct nt_name *name);

/* Takes the next component and the backslashes around it; false: there is none. */
bool nt_name_next(struct nt_name *name, struct nt_name *component);

/* Whether the component is this text, ASCII, in any case. */
bool nt_name_is(const struct nt_name *component, const char *text);

#endif /* SOFTNDK_NT_NTNAME_H */
