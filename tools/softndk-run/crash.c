// SPDX-License-Identifier: MIT
/*
 * A crash inside a driver: one line and the call stack, then the process dies of the signal as it
 * would have, with its core. Runs on a stack of its own, in a process that is done for: looking up
 * names may fail there, so the line comes first.
 */
#define _GNU_SOURCE 1 /* dladdr */

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <unwind.h>

#include "run.h"

enum { FRAMES = 32, STACK_SIZE = 65536 };

static char stack[STACK_SIZE];

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

static _Unwind_Reason_Code step(struct _Unwind_Context *context, void *arg)
{
    unsigned *count = arg;
    int before = 0;
    const char *ip = (const char *)_Unwind_GetIPInfo(context, &before);
    const char *file;
    char text[400];
    Dl_info info;

    if (!ip || ++*count > FRAMES)
        return _URC_END_OF_STACK;
    if (!dladdr(ip - !before, &info) || !info.dli_fname) {
        snprintf(text, sizeof text, "  %p\n", (const void *)ip);
    } else {
        file = strrchr(info.dli_fname, '/');
        file = file ? file + 1 : info.dli_fname;
        snprintf(text, sizeof text, "  %s+0x%zx (%s+0x%zx)\n",
                 info.dli_sname ? info.dli_sname : "?",
                 info.dli_sname ? (size_t)(ip - (const char *)info.dli_saddr) : 0, file,
                 (size_t)(ip - (const char *)info.dli_fbase));
    }
    if (*count > 1) /* the first one is this handler */
        put(text);
    return _URC_NO_REASON;
}

static void crashed(int number, siginfo_t *info, void *context)
{
    const char *what = number == SIGSEGV  ? "SIGSEGV: an access to memory that is not there"
                       : number == SIGBUS ? "SIGBUS: an access to memory that is not there"
                       : number == SIGFPE ? "SIGFPE: a division by zero or an overflow"
                                          : "SIGILL: no instruction";
    unsigned count = 0;
    char text[200];

    (void)context;
    snprintf(text, sizeof text, "softndk-run: crash: %s (address %p), at IRQL %u\n", what,
             info->si_addr, (unsigned)KeGetCurrentIrql());
    put(text);
    _Unwind_Backtrace(step, &count);
    signal(number, SIG_DFL);
    raise(number);
}

void crash_watch(void)
{
    const int numbers[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
    stack_t alternative = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction action;

    memset(&action, 0, sizeof action);
    action.sa_sigaction = crashed;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESETHAND;
    sigemptyset(&action.sa_mask);
    sigaltstack(&alternative, NULL); /* this thread's; the others report on their own stacks */
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        sigaction(numbers[i], &action, NULL);
}
