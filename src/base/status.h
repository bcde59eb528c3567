// SPDX-License-Identifier: MIT
/*
 * status.h - what each NDKPI function may return, as data.
 *
 * The rows come from status_table.def. All strings are static, all calls are pure and may be made
 * from any thread. Called by diagnostics, by the program ndkstatus and by tests.
 */
#ifndef SOFTNDK_API_STATUS_H
#define SOFTNDK_API_STATUS_H

#include <stdbool.h>
#include <stddef.h>

#include <ntdef.h>
#include <ntstatus.h>
#include <softndk.h> /* softndk_status_name(), softndk_status_text() */

/* How a status reaches the consumer. */
enum softndk_status_how {
    SOFTNDK_STATUS_INLINE,         /* as the return value only */
    SOFTNDK_STATUS_BOTH,           /* documented to come as return value or through the callback */
    SOFTNDK_STATUS_ASYNC_POSSIBLE, /* listed for a call that may pend, so it may come either way */
};

/* Who says so. */
enum softndk_status_source {
    SOFTNDK_STATUS_NDKPI, /* documented */
    SOFTNDK_STATUS_OURS,  /* NDKPI leaves the code open; softndk uses this one */
};

enum softndk_function_model {
    SOFTNDK_MODEL_CREATE,  /* may pend, completes through a create completion */
    SOFTNDK_MODEL_CLOSE,   /* may pend, completes through a close completion */
    SOFTNDK_MODEL_REQUEST, /* may pend, completes through a request completion */
    SOFTNDK_MODEL_WORK,    /* never pends, completes through a CQ */
    SOFTNDK_MODEL_SYNC,    /* never pends */
    SOFTNDK_MODEL_VALUE,   /* returns a count or a token */
    SOFTNDK_MODEL_VOID,    /* returns nothing */
};

/* Kinds of work requests, for work completion statuses. */
enum {
    NDK_WORK_SEND = 1,
    NDK_WORK_RECEIVE = 2,
    NDK_WORK_BIND = 4,
    NDK_WORK_INVALIDATE = 8,
    NDK_WORK_READ = 16,
    NDK_WORK_WRITE = 32,
    NDK_WORK_FAST_REGISTER = 64,
    NDK_WORK_ALL = 127,
};

struct softndk_function_status {
    NTSTATUS status;
    enum softndk_status_how how;
    enum softndk_status_source source;
    const char *when;
};

struct softndk_function {
    const char *name;    /* NdkCreateCq; where a slot name repeats, one name each */
    const char *type;    /* NDK_FN_CREATE_CQ */
    const char *slot;    /* adapter[2] */
    const char *section; /* of the reference, 6.2 */
    const char *since;   /* version, 1.1 */
    const char *gist;
    enum softndk_function_model model;
    bool passive_only; /* IRQL = PASSIVE_LEVEL; otherwise <= DISPATCH_LEVEL */
};

/* A status of a work completion, and the kinds of requests that can have it. */
struct softndk_work_status {
    NTSTATUS status;
    unsigned kinds; /* NDK_WORK_... */
    const char *when;
};

/* What usually causes it, sentences; NULL when there is nothing to say or the status is unknown. */
const char *softndk_status_causes(NTSTATUS status);

/* Finds any status of ntstatus.h by name, in either case, with or without STATUS_. */
bool softndk_status_by_name(const char *name, NTSTATUS *status);

/* Whether NDK uses the status; others may have a name and a text as well. */
bool softndk_status_is_used(NTSTATUS status);

/* All statuses that NDK uses, in the order of the table; false past the end. */
bool softndk_status_at(size_t index, NTSTATUS *status);

/* All provider functions in the order of the reference; NULL past the end. */
const struct softndk_function *softndk_function_at(size_t index);

/* Finds a function by name or type, in either case; NULL if there is none. */
const struct softndk_function *softndk_function_by_name(const char *name);

/* The statuses of a function in the order of the table; NULL past the end. */
const struct softndk_function_status *softndk_function_status_at(const struct softndk_function *f,
                                                                 size_t index);

/* The function's row for a status; NULL if it does not list it. */
const struct softndk_function_status *softndk_function_status(const struct softndk_function *f,
                                                              NTSTATUS status);

/* Whether the documented list is open-ended, and if so how any other status comes. */
bool softndk_function_open_ended(const struct softndk_function *f, enum softndk_status_how *how);

/* All statuses of work completions; NULL past the end. */
const struct softndk_work_status *softndk_work_status_at(size_t index);

/* "inline", "both" or "async-possible". */
const char *softndk_status_how_name(enum softndk_status_how how);

/* "may pend (create)" and so on. */
const char *softndk_function_model_name(enum softndk_function_model model);

#endif /* SOFTNDK_API_STATUS_H */
