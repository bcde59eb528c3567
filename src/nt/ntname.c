// SPDX-License-Identifier: MIT
/* See ntname.h. Called by zwkey.c and zwfile.c. */
#include "nt/ntname.h"

#include <string.h>

NTSTATUS nt_name_of(const OBJECT_ATTRIBUTES *attributes, struct nt_name *name)
{
    const UNICODE_STRING *text;

    if (!attributes || attributes->Length != sizeof(OBJECT_ATTRIBUTES))
        return STATUS_INVALID_PARAMETER;
    text = attributes->ObjectName;
    *name = (struct nt_name){.at = NULL};
    if (text && text->Length) {
        if (text->Length % sizeof(WCHAR) || !text->Buffer)
            return STATUS_OBJECT_NAME_INVALID;
        *name = (struct nt_name){.at = text->Buffer, .units = text->Length / sizeof(WCHAR)};
    }
    if (attributes->RootDirectory ? name->units && name->at[0] == '\\'
                                  : !name->units || name->at[0] != '\\')
        return STATUS_OBJECT_PATH_SYNTAX_BAD;
    return STATUS_SUCCESS;
}

bool nt_name_next(struct nt_name *name, struct nt_name *component)
{
    size_t n = 0;

    while (name->units && *name->at == '\\') {
        name->at++;
        name->units--;
    }
    while (n < name->units && name->at[n] != '\\')
        n++;
    *component = (struct nt_name){.at = name->at, .units = n};
    name->at += n;
    name->units -= n;
    return n > 0;
}

bool nt_name_is(const struct nt_name *component, const char *text)
{
    if (component->units != strlen(text))
        return false;
    for (size_t i = 0; i < component->units; i++) {
        WCHAR a = component->at[i], b = (WCHAR)(unsigned char)text[i];

        a = a >= 'A' && a <= 'Z' ? (WCHAR)(a + 32) : a;
        b = b >= 'A' && b <= 'Z' ? (WCHAR)(b + 32) : b;
        if (a != b)
            return false;
    }
    return true;
}
