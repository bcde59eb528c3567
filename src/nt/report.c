// SPDX-License-Identifier: MIT
/*
 * softndk_report(): findings, and what consumers left behind. Also what is said of that at the end
 * of a process whose owner did not ask.
 *
 * Things of the same kind, tag and call stack are one line. Called at PASSIVE_LEVEL by programs.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <softndk.h>

#include "base/log.h"
#include "base/red.h"
#include "nt/left.h"
#include "nt/nt.h"
#include "nt/pool.h"
#include "os/os.h"

enum { SOURCES_MAX = 8, LINE_MAX_OF_REPORT = 960 };

static os_mutex lock = OS_MUTEX_INITIALIZER; /* of what follows; no call is made with it held */
static size_t (*sources[SOURCES_MAX])(nt_report_line, void *);
static unsigned source_count;
static size_t reported; /* how many complaints the last report told */

void nt_report_source(size_t (*report)(nt_report_line line, void *context))
{
    os_mutex_lock(&lock);
    if (source_count < SOURCES_MAX)
        sources[source_count++] = report;
    os_mutex_unlock(&lock);
}

static bool same_making(const struct nt_left *a, const struct nt_left *b)
{
    return a->kind == b->kind && a->tag == b->tag && a->depth == b->depth &&
           memcmp(a->frames, b->frames, a->depth * sizeof a->frames[0]) == 0;
}

/* A pool tag in the order of its letters, as Windows' tools show it. */
static const char *tag_text(uint32_t tag, char text[5])
{
    for (int i = 0; i < 4; i++) {
        char c = (char)(tag >> 8 * i);

        text[i] = c >= ' ' && c <= '~' ? c : '.';
    }
    text[4] = '\0';
    return text;
}

static void tell_group(const struct nt_left *of, size_t things, size_t bytes, nt_report_line line,
                       void *context)
{
    char text[LINE_MAX_OF_REPORT];
    char stack[LINE_MAX_OF_REPORT - 160];
    char tag[5];
    size_t at;

    at = (size_t)snprintf(text, sizeof text, "left: %zu %s%s", things,
                          nt_left_kind_name((enum nt_left_kind)of->kind), things == 1 ? "" : "s");
    if (of->tag)
        at += (size_t)snprintf(text + at, sizeof text - at, " '%s'", tag_text(of->tag, tag));
    if (bytes)
        at += (size_t)snprintf(text + at, sizeof text - at, ", %zu bytes", bytes);
    nt_left_stack(of, stack, sizeof stack);
    snprintf(text + at, sizeof text - at, ", the first at %p, made by %s", of->address, stack);
    line(context, text);
}

/* What is left, a line a group; the number of things. */
static size_t report_left(nt_report_line line, void *context)
{
    size_t count, things, bytes;
    struct nt_left **list = nt_left_list(NULL, &count);

    for (size_t i = 0; line && i < count; i++) {
        if (!list[i])
            continue;
        things = 1;
        bytes = list[i]->size;
        for (size_t j = i + 1; j < count; j++) {
            if (!list[j] || !same_making(list[i], list[j]))
                continue;
            things++;
            bytes += list[j]->size;
            free(list[j]);
            list[j] = NULL;
        }
        tell_group(list[i], things, bytes, line, context);
    }
    nt_left_list_free(list, count);
    return RED("nt-report-leaks-hidden") ? 0 : count;
}

static size_t report_findings(nt_report_line line, void *context)
{
    char text[NT_FINDING_TEXT], whole[NT_FINDING_TEXT + 16];
    unsigned total = nt_finding_count();
    unsigned told = 0;

    while (line && nt_finding_text(told, text)) {
        snprintf(whole, sizeof whole, "finding: %s", text);
        line(context, whole);
        told++;
    }
    if (line && told < total) {
        snprintf(whole, sizeof whole, "finding: %u more", total - told);
        line(context, whole);
    }
    return total;
}

size_t softndk_report(void (*line)(void *context, const char *text), void *context)
{
    size_t (*from[SOURCES_MAX])(nt_report_line, void *);
    size_t total;
    unsigned n;

    nt_pool_check();
    total = report_findings(line, context) + report_left(line, context);
    os_mutex_lock(&lock);
    n = source_count;
    memcpy(from, sources, sizeof from);
    os_mutex_unlock(&lock);
    for (unsigned i = 0; i < n; i++)
        total += from[i](line, context);
    if (line) {
        os_mutex_lock(&lock);
        reported = total;
        os_mutex_unlock(&lock);
    }
    return total;
}

static void log_line(void *context, const char *text)
{
    (void)context;
    log_error("%s", text);
}

void nt_report_at_exit(void)
{
    unsigned findings;
    size_t left, before;

    nt_pool_check();
    findings = nt_finding_count();
    left = report_left(NULL, NULL);
    os_mutex_lock(&lock);
    before = reported;
    os_mutex_unlock(&lock);
    if (findings + left <= before)
        return;
    /* Findings were logged when they were made: their number is enough. */
    if (left)
        report_left(log_line, NULL);
    log_error("at exit: %u finding%s, %zu thing%s left", findings, findings == 1 ? "" : "s", left,
              left == 1 ? "" : "s");
}
