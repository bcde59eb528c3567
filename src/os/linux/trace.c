// SPDX-License-Identifier: MIT
/*
 * os_trace.h by the unwinder of the compiler's runtime and the dynamic linker's tables. Both take
 * no lock of ours and may be used at any point.
 *
 * Unwinding costs microseconds, and the same few calls are made again and again. So each thread
 * remembers some stacks, with the places in memory that the return addresses were in: if a call
 * comes from the same caller with the same stack pointer, and every one of those places still holds
 * the same address, it is the same stack. Only where return addresses are kept just below a frame's
 * canonical address, which is checked when a stack is remembered.
 */
#define _GNU_SOURCE 1 /* dladdr */

#include "os/os_trace.h"

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unwind.h>

#include "base/red.h"
#include "os/os_sync.h"

#if defined(__x86_64__) || defined(__i386__)
#define OS_TRACE_KEEPS true
#else
#define OS_TRACE_KEEPS false
#endif

enum {
    FRAMES_OF_OURS = 24, /* more than this library has between an entry and os_trace() */
    KEPT_FRAMES = 8,     /* deeper stacks are not remembered */
    KEPT_STACKS = 32,    /* a thread */
};

struct walk {
    void **frames;
    void *const *places[KEPT_FRAMES]; /* where the first ones were found */
    unsigned max, count, seen;
    const void *from;
    bool found, keepable;
};

/* One that is remembered. */
struct kept {
    const void *from, *stack;
    unsigned max, count;
    void *frames[KEPT_FRAMES];
    void *const *places[KEPT_FRAMES];
};

/* NULL: no memory to remember it. */
static struct kept *kept_for(const void *from, const void *stack)
{
    struct kept *stacks = os_thread_memory(OS_THREAD_STACKS, KEPT_STACKS * sizeof *stacks);
    uintptr_t n = (uintptr_t)from ^ (uintptr_t)stack >> 4;

    return stacks ? &stacks[(n ^ n >> 5 ^ n >> 10) % KEPT_STACKS] : NULL;
}

/* Whether the places hold what they held. They are above the present stack pointer and below where
 * it was then, so they are stack of this thread. */
__attribute__((no_sanitize_address, no_sanitize_thread)) static bool
kept_is(const struct kept *k, const void *from, const void *stack, unsigned max)
{
    if (!k || k->from != from || k->stack != stack || k->max != max)
        return false;
    for (unsigned i = 0; i < k->count; i++)
        if (*k->places[i] != k->frames[i] && !RED("os-trace-stale"))
            return false;
    return true;
}

static _Unwind_Reason_Code walk_step(struct _Unwind_Context *context, void *arg)
{
    struct walk *w = arg;
    void *address = (void *)_Unwind_GetIP(context);
    void *const *place = (void *const *)_Unwind_GetCFA(context) - 1;

    if (!address)
        return _URC_END_OF_STACK;
    if (!w->found && address == w->from)
        w->found = true;
    if (w->found) {
        if (w->count < KEPT_FRAMES)
            w->places[w->count] = place;
        w->keepable = w->keepable && w->count < KEPT_FRAMES && *place == address;
        w->frames[w->count++] = address;
    } else if (++w->seen == FRAMES_OF_OURS) {
        return _URC_END_OF_STACK;
    }
    return w->count == w->max ? _URC_END_OF_STACK : _URC_NO_REASON;
}

static void keep(struct kept *k, const struct walk *w, const void *stack)
{
    if (!k || !w->keepable || w->count == 0)
        return;
    *k = (struct kept){.from = w->from, .stack = stack, .max = w->max, .count = w->count};
    memcpy(k->frames, w->frames, w->count * sizeof w->frames[0]);
    memcpy(k->places, w->places, w->count * sizeof w->places[0]);
}

unsigned os_trace(void **frames, unsigned max, const void *from)
{
    const void *stack = __builtin_frame_address(0);
    struct walk w = {.frames = frames, .max = max, .from = from, .keepable = OS_TRACE_KEEPS};
    struct kept *k = kept_for(from, stack);

    if (max == 0)
        return 0;
    if (max > 1 && kept_is(k, from, stack, max)) {
        memcpy(frames, k->frames, k->count * sizeof frames[0]);
        return k->count;
    }
    if (max > 1) {
        _Unwind_Backtrace(walk_step, &w);
        keep(k, &w, stack);
    }
    if (w.count == 0 || RED("os-trace-caller-only")) {
        frames[0] = (void *)(uintptr_t)from;
        w.count = 1;
    }
    return w.count;
}

const char *os_symbol(const void *address, char text[OS_SYMBOL_MAX])
{
    /* A return address may be the first of the next function: look one back. */
    const char *inside = (const char *)address - (address != NULL);
    const char *file;
    Dl_info info;

    if (!dladdr(inside, &info) || !info.dli_fname) {
        snprintf(text, OS_SYMBOL_MAX, "%p", address);
        return text;
    }
    file = strrchr(info.dli_fname, '/');
    file = file ? file + 1 : info.dli_fname;
    if (info.dli_sname)
        snprintf(text, OS_SYMBOL_MAX, "%s+0x%zx (%s+0x%zx)", info.dli_sname,
                 (size_t)((const char *)address - (const char *)info.dli_saddr), file,
                 (size_t)((const char *)address - (const char *)info.dli_fbase));
    else
        snprintf(text, OS_SYMBOL_MAX, "%s+0x%zx", file,
                 (size_t)((const char *)address - (const char *)info.dli_fbase));
    return text;
}

bool os_same_module(const void *a, const void *b)
{
    Dl_info of_a, of_b;

    return dladdr(a, &of_a) && dladdr(b, &of_b) && of_a.dli_fbase == of_b.dli_fbase;
}
