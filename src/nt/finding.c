// SPDX-License-Identifier: MIT
/*
 * Counts, reports and remembers findings (see nt.h). Called by all of src/nt and by the provider,
 * from any thread and level. SOFTNDK_FINDINGS=abort stops at the first one, for a debugger.
 */
#include "nt/nt.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/red.h"
#include "os/os.h"
#include "os/os_trace.h"
#include "os/sanitize.h"

enum { FRAMES = 32 }; /* deeper than this library between an entry and a finding */

static atomic_uint finding_total;
static bool finding_aborts;
static pthread_once_t finding_once = PTHREAD_ONCE_INIT;

/* The first ones, which are the ones that matter: later ones often follow from them. */
static os_mutex kept_lock = OS_MUTEX_INITIALIZER; /* leaf */
static unsigned kept;
static char kept_texts[NT_FINDINGS_KEPT][NT_FINDING_TEXT];

static void finding_read_environment(void)
{
    const char *text = getenv("SOFTNDK_FINDINGS");

    finding_aborts = text && strcmp(text, "abort") == 0;
    if (text && !finding_aborts && strcmp(text, "report") != 0)
        log_error("SOFTNDK_FINDINGS: unknown (have \"%s\", need report or abort)", text);
}

static void finding_add(const char *text)
{
    pthread_once(&finding_once, finding_read_environment);
    if (!RED("nt-finding-uncounted"))
        atomic_fetch_add_explicit(&finding_total, 1, memory_order_relaxed);
    os_mutex_lock(&kept_lock);
    if (kept < NT_FINDINGS_KEPT)
        snprintf(kept_texts[kept++], NT_FINDING_TEXT, "%s", text);
    os_mutex_unlock(&kept_lock);
    log_write(LOG_ERROR, "finding: %s", text);
    if (finding_aborts)
        abort();
}

void nt_finding(const char *format, ...)
{
    char text[NT_FINDING_TEXT];
    va_list ap;

    va_start(ap, format);
    vsnprintf(text, sizeof(text), format, ap);
    va_end(ap);
    finding_add(text);
}

static void finding_add_from(const void *caller, const char *format, va_list ap)
{
    char text[NT_FINDING_TEXT];
    char symbol[OS_SYMBOL_MAX];
    size_t at = 0;
    int n = vsnprintf(text, sizeof(text), format, ap);

    if (n > 0)
        at = (size_t)n < sizeof(text) ? (size_t)n : sizeof(text) - 1;
    if (caller && !os_same_module(caller, (const void *)&finding_total))
        snprintf(text + at, sizeof(text) - at, ", called from %s", os_symbol(caller, symbol));
    finding_add(text);
}

void nt_finding_from(const void *caller, const char *format, ...)
{
    va_list ap;

    va_start(ap, format);
    finding_add_from(caller, format, ap);
    va_end(ap);
}

/* Neither this library, nor what began the thread. */
static bool is_consumer(const void *frame)
{
    return !os_same_module(frame, (const void *)&finding_total) &&
           !os_same_module(frame, (const void *)(uintptr_t)&abort) &&
           !(sanitize_runtime() && os_same_module(frame, sanitize_runtime()));
}

void nt_finding_of_call(const char *format, ...)
{
    void *frames[FRAMES];
    unsigned count = os_trace(frames, FRAMES, __builtin_return_address(0)), i = 0;
    va_list ap;

    while (i < count && !is_consumer(frames[i]))
        i++;
    va_start(ap, format);
    finding_add_from(i < count ? frames[i] : NULL, format, ap);
    va_end(ap);
}

unsigned nt_finding_count(void)
{
    return atomic_load_explicit(&finding_total, memory_order_relaxed);
}

bool nt_finding_text(unsigned index, char text[NT_FINDING_TEXT])
{
    bool there;

    os_mutex_lock(&kept_lock);
    there = index < kept;
    if (there)
        memcpy(text, kept_texts[index], NT_FINDING_TEXT);
    os_mutex_unlock(&kept_lock);
    return there;
}

/* Here, because every program that can have findings has this file. */
__attribute__((destructor)) static void at_exit(void)
{
    nt_report_at_exit();
}
