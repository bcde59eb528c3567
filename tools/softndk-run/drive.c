// SPDX-License-Identifier: MIT
/*
 * The run: DriverEntry of each driver, the wait until they are done, DriverUnload in the other
 * order, the report.
 *
 * What a driver does in its own functions runs on threads of its own, one a call, at PASSIVE_LEVEL;
 * this thread looks every few milliseconds whether it is done, and never waits without a limit. A
 * call that does not return keeps its thread, and the process then ends without cleaning up.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/tool_args.h"
#include "common/tool_stop.h"
#include "run.h"

enum { LOOK_MS = 10, PATIENCE_S = 5, SETTLE_S = 2 };

static double now(void)
{
    LARGE_INTEGER frequency, count = KeQueryPerformanceCounter(&frequency);

    return (double)count.QuadPart / (double)frequency.QuadPart;
}

static void nap(void)
{
    LARGE_INTEGER interval;

    interval.QuadPart = -(LONGLONG)LOOK_MS * 10000;
    KeDelayExecutionThread(KernelMode, FALSE, &interval);
}

/* ---- one call of a driver's function, on a thread ---------------------------------------------
 */

struct call {
    struct driver *driver;
    const char *name; /* "DriverEntry" */
    NTSTATUS status;
    atomic_bool done;
};

static unsigned own_findings; /* of this program; written by one call's thread at a time */

static void *call_thread(void *arg)
{
    struct call *call = arg;
    struct driver *d = call->driver;
    char room[CRASH_ROOM];

    crash_room(room);
    if (call->name[6] == 'E')
        call->status = d->entry(&d->object, &d->registry_path);
    else
        d->object.DriverUnload(&d->object);
    if (KeGetCurrentIrql() != PASSIVE_LEVEL) {
        tool_say("finding: %s: %s returned at IRQL %u (need PASSIVE_LEVEL)", d->name, call->name,
                 (unsigned)KeGetCurrentIrql());
        own_findings++;
    }
    atomic_store(&call->done, true);
    return NULL;
}

static void tell_left(void *context, const char *text)
{
    UNREFERENCED_PARAMETER(context);
    if (strncmp(text, "left: ", 6) == 0)
        tool_say("  %s", text + 6);
}

static void tell_waiting(const struct call *call, double since)
{
    struct softndk_activity a;

    softndk_activity(&a);
    tool_say("%s: %s has not returned for %.0f s; open: %u adapter%s, %u work item%s",
             call->driver->name, call->name, since, a.adapters, a.adapters == 1 ? "" : "s",
             a.work_items, a.work_items == 1 ? "" : "s");
    softndk_report(tell_left, NULL);
}

/* Runs it; false: it has not returned after limit_s (0: however long it takes), or, when a signal
 * came, patience_s after that. */
static bool call_run(struct driver *driver, const char *name, NTSTATUS *status, double limit_s,
                     double patience_s)
{
    struct call *call = calloc(1, sizeof *call); /* the thread's, should it never return */
    double begin = now(), stopped = 0;
    bool told = false;
    pthread_t thread;

    if (!call) {
        tool_say("no memory");
        return false;
    }
    call->driver = driver;
    call->name = name;
    if (pthread_create(&thread, NULL, call_thread, call) != 0) {
        tool_say("%s: no thread for %s", driver->name, name);
        return false;
    }
    while (!atomic_load(&call->done)) {
        double at = now();

        if (!stopped && tool_stopped())
            stopped = at;
        if (!told && at - begin > PATIENCE_S) {
            tell_waiting(call, at - begin);
            told = true;
        }
        if ((limit_s > 0 && at - begin > limit_s) || (stopped > 0 && at - stopped > patience_s)) {
            tell_waiting(call, at - begin);
            pthread_detach(thread);
            return false;
        }
        nap();
    }
    pthread_join(thread, NULL);
    *status = call->status;
    free(call);
    return true;
}

/* ---- waiting --------------------------------------------------------------------------------- */

enum ending { DONE, STOPPED, LIMIT };

/*
 * Until nothing has gone on for idle_s. A system thread counts as going on as long as no adapter
 * was ever opened and no work item queued: it may be about to; later it may well wait for the
 * unload.
 */
static enum ending wait_done(const struct run *run, double begin)
{
    struct softndk_activity a;
    unsigned long long turns = 0;
    double quiet = now();

    for (;;) {
        softndk_activity(&a);
        if (a.adapters || a.work_items || (a.threads && !a.turns) || a.turns != turns)
            quiet = now();
        turns = a.turns;
        if (tool_stopped())
            return STOPPED;
        if (run->idle_s >= 0 && now() - quiet >= run->idle_s)
            return DONE;
        if (run->timeout_s > 0 && now() - begin >= run->timeout_s)
            return LIMIT;
        nap();
    }
}

/* Work that is still queued when a driver has unloaded is a fault of its own; let it come to an end
 * if it can, so that the report tells what is left for good. */
static void settle(void)
{
    struct softndk_activity a;
    double begin = now();

    softndk_activity(&a);
    if (a.work_items) {
        tool_say("finding: %u work item%s queued or running after DriverUnload (bug check 0xCE on "
                 "Windows)",
                 a.work_items, a.work_items == 1 ? "" : "s");
        own_findings++;
    }
    while ((a.work_items || a.adapters) && now() - begin < SETTLE_S) {
        nap();
        softndk_activity(&a);
    }
}

/* ---- the report ------------------------------------------------------------------------------ */

static void tell(void *context, const char *text)
{
    tool_say("%s", text);
    places_tell(context, text);
}

/* The exit status so far, or RUN_LEFT. */
static int report(struct run *run, int result)
{
    size_t total = softndk_report(tell, run) + own_findings;
    size_t findings = softndk_finding_count() + own_findings;

    if (total == 0) {
        tool_say("clean");
        return result;
    }
    tool_say("not clean: %zu finding%s, %zu thing%s left", findings, findings == 1 ? "" : "s",
             total - findings, total - findings == 1 ? "" : "s");
    return result == TOOL_GOOD ? RUN_LEFT : result;
}

/* Leaves at once when a driver's threads may still run in what a proper end would take away. */
static int leave(struct run *run, int result)
{
    struct softndk_activity a;

    for (int i = 0; i < run->driver_count; i++)
        driver_forget(&run->drivers[i]);
    softndk_activity(&a);
    fflush(NULL);
    if (result == RUN_BLOCKED || a.adapters || a.work_items || a.threads)
        _exit(result);
    return result;
}

/* ---- the run --------------------------------------------------------------------------------- */

/* TOOL_GOOD, RUN_REFUSED, RUN_TIMEOUT or RUN_BLOCKED. */
static int enter(struct run *run, struct driver *d, double begin)
{
    double left = run->timeout_s > 0 ? run->timeout_s - (now() - begin) : 0;
    char text[80];
    NTSTATUS status;

    if (run->timeout_s > 0 && left <= 0)
        left = 0.001;
    if (!call_run(d, "DriverEntry", &status, left, run->unload_s)) {
        tool_say("%s: DriverEntry has not returned: ended", d->name);
        return RUN_BLOCKED;
    }
    snprintf(text, sizeof text, "%s",
             softndk_status_name(status) ? softndk_status_name(status) : "a status without a name");
    if (NT_SUCCESS(status)) {
        tool_say("%s: DriverEntry: %s (0x%08X)", d->name, text, (unsigned)status);
        return TOOL_GOOD;
    }
    tool_say("%s: DriverEntry failed: %s (0x%08X): %s", d->name, text, (unsigned)status,
             softndk_status_text(status));
    return RUN_REFUSED;
}

static bool leave_driver(struct run *run, struct driver *d)
{
    NTSTATUS unused;

    if (!d->object.DriverUnload) {
        tool_say("%s: remark: no DriverUnload, so Windows could not stop it", d->name);
        return true;
    }
    if (call_run(d, "DriverUnload", &unused, run->unload_s > 0 ? run->unload_s : 0.001,
                 run->unload_s))
        return true;
    tool_say("%s: DriverUnload has not returned: ended", d->name);
    return false;
}

int drive(struct run *run)
{
    double begin = now();
    int result = TOOL_GOOD, entered = 0;

    for (int i = 0; i < run->driver_count; i++)
        if (!driver_load(&run->drivers[i]))
            return leave(run, RUN_UNLOADED);
    for (; entered < run->driver_count && result == TOOL_GOOD && !tool_stopped(); entered++)
        result = enter(run, &run->drivers[entered], begin);
    if (result != TOOL_GOOD)
        entered--; /* the last one is not there */
    if (result == TOOL_GOOD) {
        enum ending ending = wait_done(run, begin);

        tool_say(ending == DONE      ? "done"
                 : ending == STOPPED ? "a signal asks to end"
                                     : "not done within %g s",
                 run->timeout_s);
        result = ending == LIMIT ? RUN_TIMEOUT : TOOL_GOOD;
    }
    while (entered-- > 0 && result != RUN_BLOCKED)
        if (!leave_driver(run, &run->drivers[entered]))
            result = RUN_BLOCKED;
    if (result != RUN_BLOCKED)
        settle();
    return leave(run, report(run, result));
}
