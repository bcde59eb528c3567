// SPDX-License-Identifier: MIT
/*
 * A crash inside a driver: one line, the call stack, and the lines of source; then the process dies
 * of the signal as it would have, with its core. Runs on a stack of its own, in a process that is
 * done for: looking up names may fail or hang there, so the line comes first, and a watch ends it.
 */
#define _GNU_SOURCE 1 /* dladdr, and the registers of a context */

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>
#include <unwind.h>

#include "run.h"

enum { FRAMES = 32, TEXT_MAX = 3000, PLACES_S = 10, GUARD = 65536 };

static char stack[CRASH_ROOM];
static const struct run *crash_run;
static volatile sig_atomic_t crash_number; /* 0: none yet */

struct frames {
    unsigned count;
    bool quiet;          /* only for the places */
    char text[TEXT_MAX]; /* what places_tell() looks through */
    size_t used;
};

static void put(const char *text)
{
    size_t left = strlen(text);

    while (left > 0) {
        ssize_t n = write(STDERR_FILENO, text, left);

        if (n <= 0)
            return;
        text += n;
        left -= (size_t)n;
    }
}

/* One frame: a line, and what places_tell() is to look up, for which the address of a crash counts
 * as the one behind it. */
static void frame_tell(struct frames *frames, const char *ip, bool exact)
{
    const char *file;
    char text[400];
    Dl_info info;
    size_t at;
    int n;

    if (!dladdr(ip - !exact, &info) || !info.dli_fname) {
        snprintf(text, sizeof text, "  %p\n", (const void *)ip);
    } else {
        file = strrchr(info.dli_fname, '/');
        file = file ? file + 1 : info.dli_fname;
        at = (size_t)(ip - (const char *)info.dli_fbase);
        if (info.dli_sname)
            snprintf(text, sizeof text, "  %s+0x%zx (%s+0x%zx)\n", info.dli_sname,
                     (size_t)(ip - (const char *)info.dli_saddr), file, at);
        else
            snprintf(text, sizeof text, "  %s+0x%zx\n", file, at);
        n = snprintf(frames->text + frames->used, sizeof frames->text - frames->used, " %s+0x%zx",
                     file, at + exact);
        if (n > 0 && (size_t)n < sizeof frames->text - frames->used)
            frames->used += (size_t)n;
    }
    if (!frames->quiet)
        put(text);
}

static _Unwind_Reason_Code step(struct _Unwind_Context *context, void *arg)
{
    struct frames *frames = arg;
    int exact = 0;
    const char *ip = (const char *)_Unwind_GetIPInfo(context, &exact);

    if (!ip || ++frames->count > FRAMES)
        return _URC_END_OF_STACK;
    if (frames->count > 1) /* the first one is this handler */
        frame_tell(frames, ip, exact);
    return _URC_NO_REASON;
}

static const char *stack_pointer(const void *context)
{
    const ucontext_t *u = context;

#if defined(__x86_64__)
    return (const char *)(uintptr_t)u->uc_mcontext.gregs[REG_RSP];
#elif defined(__i386__)
    return (const char *)(uintptr_t)u->uc_mcontext.gregs[REG_ESP];
#elif defined(__aarch64__)
    return (const char *)(uintptr_t)u->uc_mcontext.sp;
#else
    (void)u;
    return NULL;
#endif
}

static const char *what_of(int number, const siginfo_t *info, const void *context)
{
    const char *at = info->si_addr, *top = stack_pointer(context);

    switch (number) {
    case SIGSEGV:
        /* A frame writes at most so far below, and a little above where it begins. */
        if (at && top && at > top - GUARD && at < top + GUARD)
            return "SIGSEGV: the stack is used up: too deep a recursion, or too large variables "
                   "(Windows' kernel stacks have 24 KiB)";
        return "SIGSEGV: an access to memory that is not there";
    case SIGBUS:
        return "SIGBUS: an access to memory that is not there";
    case SIGFPE:
        return "SIGFPE: a division by zero or an overflow";
    default:
        return "SIGILL: no instruction";
    }
}

/* Where a call through a bad pointer came from: it is on top of the stack, and no unwinder knows.
 */
static void caller_tell(struct frames *frames, const siginfo_t *info, const void *context)
{
#if defined(__x86_64__)
    const ucontext_t *u = context;
    Dl_info there;

    if ((uintptr_t)u->uc_mcontext.gregs[REG_RIP] == (uintptr_t)info->si_addr &&
        !dladdr(info->si_addr, &there))
        frame_tell(frames, *(const char *const *)(uintptr_t)u->uc_mcontext.gregs[REG_RSP], false);
#else
    (void)frames;
    (void)info;
    (void)context;
#endif
}

static void die(int number)
{
    signal(number, SIG_DFL);
    raise(number);
}

static void overdue(int number)
{
    (void)number;
    die(crash_number);
}

static void crashed(int number, siginfo_t *info, void *context)
{
    static struct frames frames; /* one crash at a time: a second one ends it */
    char text[300];

    if (crash_number) {
        die(number);
        return;
    }
    crash_number = number;
    frames.quiet = number == SIGABRT; /* whoever aborts has told it */
    if (number != SIGABRT) {
        snprintf(text, sizeof text, "softndk-run: crash: %s (address %p), at IRQL %u\n",
                 what_of(number, info, context), info->si_addr, (unsigned)KeGetCurrentIrql());
        put(text);
        caller_tell(&frames, info, context);
    }
    _Unwind_Backtrace(step, &frames);
    signal(SIGALRM, overdue); /* where the crash has left a lock of the C library taken */
    alarm(PLACES_S);
    places_tell(crash_run, frames.text);
    die(number);
}

void crash_room(char *room)
{
    stack_t there, ours = {.ss_sp = room, .ss_size = CRASH_ROOM};

    /* A sanitizer has made one of its own already, and takes it away at the end. */
    if (sigaltstack(NULL, &there) == 0 && there.ss_flags & SS_DISABLE)
        sigaltstack(&ours, NULL);
}

void crash_watch(const struct run *run)
{
    const int numbers[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    struct sigaction action;

    crash_run = run;
    memset(&action, 0, sizeof action);
    action.sa_sigaction = crashed;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESETHAND;
    sigemptyset(&action.sa_mask);
    crash_room(stack); /* this thread's; the library's have their own */
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        sigaction(numbers[i], &action, NULL);
}
