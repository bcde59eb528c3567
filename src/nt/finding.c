// SPDX-License-Identifier: MIT
/*
 * Counts and reports findings (see nt.h). Called by all of src/nt, from any thread and level.
 */
#include "nt/nt.h"

#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>

#include "base/log.h"
#include "base/red.h"

static atomic_uint finding_total;

void nt_finding(const char *format, ...)
{
    char text[400];
    va_list ap;

    va_start(ap, format);
    vsnprintf(text, sizeof(text), format, ap);
    va_end(ap);
    if (!RED("nt-finding-uncounted"))
        atomic_fetch_add_explicit(&finding_total, 1, memory_order_relaxed);
    log_write(LOG_ERROR, "finding: %s", text);
}

unsigned nt_finding_count(void)
{
    return atomic_load_explicit(&finding_total, memory_order_relaxed);
}
