// SPDX-License-Identifier: MIT
/*
 * Turns status_table.def into arrays and answers questions about them (see status.h).
 *
 * The table is small and asked rarely: everything is a linear search.
 */
#include "base/status.h"

#include <string.h>
#include <strings.h>

#include "base/red.h"

/* ---- the arrays ---- */

struct meaning {
    NTSTATUS status;
    const char *name;
    const char *text;
    const char *causes; /* "" for none */
};

/* The statuses NDK uses first, then those it does not. */
static const struct meaning meanings[] = {
#define NDK_MEANING(status, text, causes) {status, #status, text, causes},
#include "base/status_table.def"
#define NDK_NAME(status, text) {status, #status, text, ""},
#include "base/status_table.def"
};

enum {
    USED_BY_NDK = 0
#define NDK_MEANING(status, text, causes) +1
#include "base/status_table.def"
};

enum function_id {
#define NDK_FUNCTION(id, type, slot, section, irql, since, model, gist) FUNCTION_##id,
#include "base/status_table.def"
    FUNCTION_COUNT
};

enum { IRQL_DISPATCH, IRQL_PASSIVE };

static const struct softndk_function functions[] = {
#define NDK_FUNCTION(id, type, slot, section, irql, since, model, gist)                            \
    {#id, #type, slot, section, since, gist, SOFTNDK_MODEL_##model, IRQL_##irql == IRQL_PASSIVE},
#include "base/status_table.def"
};

static const struct {
    enum function_id function;
    struct softndk_function_status row;
} function_statuses[] = {
#define NDK_STATUS(id, status, how, source, when)                                                  \
    {FUNCTION_##id, {status, SOFTNDK_STATUS_##how, SOFTNDK_STATUS_##source, when}},
#include "base/status_table.def"
};

static const struct {
    enum function_id function;
    enum softndk_status_how how;
} others[] = {
#define NDK_OTHER(id, how) {FUNCTION_##id, SOFTNDK_STATUS_##how},
#include "base/status_table.def"
};

static const struct softndk_work_status work_statuses[] = {
#define NDK_WORK_STATUS(status, kinds, when) {status, kinds, when},
#include "base/status_table.def"
};

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

/* ---- statuses ---- */

/* Index into meanings, or COUNT(meanings). */
static size_t meaning_of(NTSTATUS status)
{
    size_t i;

    for (i = 0; i < COUNT(meanings) && meanings[i].status != status; i++)
        continue;
    return i;
}

const char *softndk_status_name(NTSTATUS status)
{
    size_t i = meaning_of(status);

    return i < COUNT(meanings) ? meanings[i].name : NULL;
}

const char *softndk_status_text(NTSTATUS status)
{
    size_t i = meaning_of(status);

    if (i < COUNT(meanings))
        return meanings[i].text;
    if (NT_SUCCESS(status))
        return "a success or informational status that NDK does not use";
    return NT_WARNING(status) ? "a warning that NDK does not use"
                              : "an error that NDK does not use";
}

const char *softndk_status_causes(NTSTATUS status)
{
    size_t i = meaning_of(status);

    if (i == COUNT(meanings) || !meanings[i].causes[0])
        return NULL;
    return meanings[i].causes;
}

bool softndk_status_by_name(const char *name, NTSTATUS *status)
{
    static const char prefix[] = "STATUS_";

    if (strncasecmp(name, prefix, sizeof(prefix) - 1) == 0)
        name += sizeof(prefix) - 1;
    for (size_t i = 0; i < COUNT(meanings); i++) {
        const char *known = meanings[i].name + sizeof(prefix) - 1;

        if (RED("api-status-prefix-match") ? strncasecmp(known, name, strlen(name)) == 0
                                           : strcasecmp(known, name) == 0) {
            *status = meanings[i].status;
            return true;
        }
    }
    return false;
}

bool softndk_status_is_used(NTSTATUS status)
{
    return meaning_of(status) < USED_BY_NDK;
}

bool softndk_status_at(size_t index, NTSTATUS *status)
{
    if (index >= USED_BY_NDK)
        return false;
    *status = meanings[index].status;
    return true;
}

/* ---- functions ---- */

const struct softndk_function *softndk_function_at(size_t index)
{
    return index < COUNT(functions) ? &functions[index] : NULL;
}

const struct softndk_function *softndk_function_by_name(const char *name)
{
    for (size_t i = 0; i < COUNT(functions); i++) {
        if (strcasecmp(functions[i].name, name) == 0 || strcasecmp(functions[i].type, name) == 0)
            return &functions[i];
    }
    return NULL;
}

const struct softndk_function_status *softndk_function_status_at(const struct softndk_function *f,
                                                                 size_t index)
{
    enum function_id id = (enum function_id)(f - functions);

    for (size_t i = 0; i < COUNT(function_statuses); i++) {
        if (function_statuses[i].function == id && index-- == 0)
            return &function_statuses[i].row;
    }
    return NULL;
}

const struct softndk_function_status *softndk_function_status(const struct softndk_function *f,
                                                              NTSTATUS status)
{
    const struct softndk_function_status *row;

    for (size_t i = 0; (row = softndk_function_status_at(f, i)) != NULL; i++) {
        if (row->status == status)
            return row;
    }
    return NULL;
}

bool softndk_function_open_ended(const struct softndk_function *f, enum softndk_status_how *how)
{
    enum function_id id = (enum function_id)(f - functions);

    for (size_t i = 0; i < COUNT(others); i++) {
        if (others[i].function == id) {
            *how = others[i].how;
            return true;
        }
    }
    return false;
}

const struct softndk_work_status *softndk_work_status_at(size_t index)
{
    return index < COUNT(work_statuses) ? &work_statuses[index] : NULL;
}

/* ---- words ---- */

const char *softndk_status_how_name(enum softndk_status_how how)
{
    static const char *const names[] = {
        [SOFTNDK_STATUS_INLINE] = "inline",
        [SOFTNDK_STATUS_BOTH] = "both",
        [SOFTNDK_STATUS_ASYNC_POSSIBLE] = "async-possible",
    };

    return names[how];
}

const char *softndk_function_model_name(enum softndk_function_model model)
{
    static const char *const names[] = {
        [SOFTNDK_MODEL_CREATE] = "may pend (create)",
        [SOFTNDK_MODEL_CLOSE] = "may pend (close)",
        [SOFTNDK_MODEL_REQUEST] = "may pend (request)",
        [SOFTNDK_MODEL_WORK] = "work request, never pends",
        [SOFTNDK_MODEL_SYNC] = "never pends",
        [SOFTNDK_MODEL_VALUE] = "returns a value, cannot fail",
        [SOFTNDK_MODEL_VOID] = "returns nothing, cannot fail",
    };

    return names[model];
}
