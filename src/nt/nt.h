// SPDX-License-Identifier: MIT
/*
 * nt.h - what src/nt offers to the rest of the library beside the Windows names.
 *
 * A finding is a misuse of a kernel service that a verifier would stop the machine for: it is
 * counted and reported on one line, and the call goes on as well as it can. Any thread.
 */
#ifndef SOFTNDK_NT_NT_H
#define SOFTNDK_NT_NT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <wdm.h>

/* ---- findings (finding.c) ---- */

/* Reports a finding: "call: what is wrong". The line goes where all diagnostics go, stderr unless
 * the user chose otherwise. */
void nt_finding(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same, and tells where the call came from if that is outside this library's own module. */
void nt_finding_from(const void *caller, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The same where the function does not know its caller: tells the innermost frame outside this
 * library. */
void nt_finding_of_call(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* For a function that consumers call: its caller. */
#define NT_CALLER __builtin_return_address(0)

/* Findings so far in this process. */
unsigned nt_finding_count(void);

/* The text of one of the first findings, 0 the oldest; false past the last one that was kept. */
enum { NT_FINDING_TEXT = 320, NT_FINDINGS_KEPT = 64 };
bool nt_finding_text(unsigned index, char text[NT_FINDING_TEXT]);

/* ---- the calling thread (irql.c) ---- */

/* Sets the calling thread's level without any check: for the engine, around callbacks. */
void nt_irql_set(KIRQL irql);

/* A finding when the calling thread's level is above max; whether it is not. */
bool nt_irql_at_most(KIRQL max, const char *call, const void *caller);

/*
 * What a thread holds. Locks tell of it so that a level which sinks below a held spin lock, and a
 * routine that returns with something held, are found; and so that a lock taken twice, which is a
 * finding, is given back as often and the thread goes on.
 */
void nt_holds_spin_lock(int change); /* +1 or -1 */
int nt_spin_locks_held(void);
bool nt_again_add(const void *lock);  /* it was taken once more; false: no room to remember */
bool nt_again_drop(const void *lock); /* whether this release belongs to such a take */
bool nt_critical_region(int change);  /* +1 or -1, of KeEnterCriticalRegion */
bool nt_in_critical_region(void);     /* there, or at APC_LEVEL or above */

/* A routine that the library ran at `level` has returned: anything else, or something held, is a
 * finding, and is put right. */
void nt_routine_returned(const char *what, const void *routine, KIRQL level);

/* ---- interfaces (iphelper.c) ---- */

/* Puts another list of interfaces in place of the host's, in the form of os_interfaces(); NULL: the
 * host's again. */
struct os_interface;
void nt_interface_source(int (*list)(struct os_interface *out, unsigned max));

/* ---- the registry (registry.c) ---- */

/*
 * Lets an upper floor say more of the registry than SOFTNDK_REGISTRY does: the file where that
 * names none (NULL: there is none), and values on top of the file's, as softndk_registry_set()
 * takes them. Asked once, when the registry is first used, with its lock held: neither may call the
 * registry but for `set`.
 */
struct nt_registry_source {
    const char *(*file)(void);
    void (*values)(void (*set)(const char *key, const char *name, const char *value));
};
void nt_registry_source(const struct nt_registry_source *source);

/* ---- work items (workitem.c) ---- */

/* Waits until no work item is queued or running; false: the moment came before. */
struct os_deadline;
bool nt_work_wait_idle(const struct os_deadline *until);

/* How many are queued or running, and how many were ever queued in this process. */
unsigned nt_work_count(unsigned long long *ever);

/* ---- the report at the end of a run (report.c) ---- */

typedef void (*nt_report_line)(void *context, const char *text);

/* Lets an upper floor take part in softndk_report(): reports its lines (line may be NULL: count
 * only) and returns how many things it complains of. A few at most, never removed. */
void nt_report_source(size_t (*report)(nt_report_line line, void *context));

/* At the end of the process: what nobody asked for with softndk_report() goes to the log. */
void nt_report_at_exit(void);

#endif /* SOFTNDK_NT_NT_H */
