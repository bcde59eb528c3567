// SPDX-License-Identifier: MIT
/*
 * The two switches that make the asynchronous half of every documented status reachable: the
 * completion mode, and "fail the nth call". Process-wide; read from the environment once
 * (SOFTNDK_PEND, SOFTNDK_FAIL), changed by softndk_set_pend() and softndk_set_fail().
 */
#ifndef SOFTNDK_PROVIDER_HOOKS_H
#define SOFTNDK_PROVIDER_HOOKS_H

#include <ntdef.h>
#include <ntstatus.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

enum call {
#define CALL(id, name) CALL_##id,
#include "provider/calls.def"
#undef CALL
    CALL_COUNT
};

const char *call_name(enum call call);

enum pend_mode {
    PEND_NEVER,  /* an answer that is known at once is returned inline */
    PEND_ALWAYS, /* whatever may come through a callback does */
    PEND_EARLY   /* the callback has run (or 50 ms passed) before the call returns PENDING */
};

/* What was wrong with SOFTNDK_PEND or SOFTNDK_FAIL, or NULL: an adapter is not opened then. */
const char *hooks_environment_error(void);

/* The mode for the next answer; in random mode a draw. */
enum pend_mode pend_choose(void);
/* "never", "always", "early", "random:SEED"; false (nothing changed) for anything else. */
bool pend_set(const char *text);

/* How many failures are asked for; HOOKS_UNREAD until the environment was read. */
#define HOOKS_UNREAD 0xffffffffu
extern atomic_uint hooks_armed;
NTSTATUS fail_count(enum call call);

/* The status this call is to fail with now, or STATUS_SUCCESS. Counts the call. */
static inline NTSTATUS fail_check(enum call call)
{
    if (__builtin_expect(atomic_load_explicit(&hooks_armed, memory_order_relaxed) == 0, 1))
        return STATUS_SUCCESS;
    return fail_count(call);
}

/*
 * "call:n:status[:repeat][,...]": the nth call from now on (1 = the next) fails, with repeat every
 * further one too. status is a number (0xC000009A, 3221225626) or a name (STATUS_IO_TIMEOUT); it
 * must be an error or a warning. Pseudo call "memory" (no status): the nth allocation of the object
 * core (object, request, strand, wait of mode early) gives nothing. NdkClose cannot fail.
 * Replaces what was set before; NULL or "" clears. False for bad text (nothing changed).
 */
bool fail_set(const char *text);

/* calloc(1, size) of the object core, subject to "memory". */
void *hooks_alloc(size_t size);

#endif
