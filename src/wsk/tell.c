// SPDX-License-Identifier: MIT
/*
 * Who has what open, in words: for a release or deregistration that waits, and for the report at
 * the end of a run (see wsk.h for how an adapter is told of while it may be closed).
 */
#include "wsk/wsk.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/red.h"
#include "ndis/registry.h"
#include "os/os_trace.h"

enum { TELL_S_DEFAULT = 5, TELL_S_MAX = 3600, LINE = WSK_STACK_TEXT + 200 };
#define SECOND_100NS 10000000ull

void wsk_stack_take(struct wsk_stack *stack, const void *caller)
{
    stack->depth = os_trace(stack->frames, WSK_FRAMES, caller);
}

void wsk_stack_text(const struct wsk_stack *stack, char *text, size_t size)
{
    char symbol[OS_SYMBOL_MAX];
    size_t at = 0;

    text[0] = '\0';
    for (unsigned i = 0; i < stack->depth && at + 1 < size; i++) {
        int n = snprintf(text + at, size - at, "%s%s", i ? " <- " : "",
                         os_symbol(stack->frames[i], symbol));

        at += n > 0 ? (size_t)n : 0;
    }
}

void wsk_patience_begin(struct wsk_patience *patience)
{
    const char *text = getenv("SOFTNDK_WSK_TELL_S");
    unsigned long seconds = TELL_S_DEFAULT;
    char *end;

    if (text) {
        seconds = strtoul(text, &end, 10);
        if (end == text || *end || seconds > TELL_S_MAX) {
            log_error("SOFTNDK_WSK_TELL_S: seconds, 0 for never (have \"%s\", need 0 to %d)", text,
                      TELL_S_MAX);
            seconds = TELL_S_DEFAULT;
        }
    }
    patience->since_100ns = os_mono_100ns();
    patience->tell_100ns = seconds * SECOND_100NS;
    patience->until = (struct os_deadline){seconds ? OS_MONO : OS_NEVER,
                                           patience->since_100ns + patience->tell_100ns};
}

struct telling {
    unsigned client;
};

static void log_object(void *context, const char *text)
{
    const struct telling *of = context;

    log_error("wsk client #%u:   %s", of->client, text);
}

/* What keeps one adapter open; without the lock. */
static void tell_adapter(const struct wsk_client *client, const struct wsk_open *open, bool closing)
{
    struct telling of = {client->number};
    const NDK_VERSION *runs = &open->adapter->Header.Version;
    char stack[WSK_STACK_TEXT];

    wsk_stack_text(&open->by, stack, sizeof stack);
    log_error("wsk client #%u: adapter of interface %u, NDKPI %u.%u (asked for %u.%u), %sopened "
              "by %s",
              client->number, (unsigned)open->index, runs->Major, runs->Minor, open->asked.Major,
              open->asked.Minor, closing ? "being closed, " : "", stack);
    ndis_adapter_tell(open->adapter, log_object, &of);
}

/* With wsk_lock, which is dropped at times; the client stays, since its caller waits in it. */
static void tell_client(struct wsk_client *client, const char *call, uint64_t seconds)
{
    char stack[WSK_STACK_TEXT];

    wsk_stack_text(&client->captured_by, stack, sizeof stack);
    log_error("wsk client #%u: %s: waits since %llu s: %u adapter%s open, %u call%s running, "
              "captured %u time%s (need 0), the last time by %s",
              client->number, call, (unsigned long long)seconds, client->open_count,
              client->open_count == 1 ? "" : "s", client->calls, client->calls == 1 ? "" : "s",
              client->captures, client->captures == 1 ? "" : "s", stack);
    for (struct wsk_open *o = client->opens, *next; o; o = next) {
        bool closing = o->closing;

        /* One that is being closed may be gone below us at any moment; only what we hold is read.
         * The adapter itself stays until its close, which waits for telling to be 0, has begun. */
        o->telling++;
        os_mutex_unlock(&wsk_lock);
        if (!closing)
            tell_adapter(client, o, false);
        else
            log_error("wsk client #%u: adapter of interface %u: its close is running",
                      client->number, (unsigned)o->index);
        os_mutex_lock(&wsk_lock);
        next = o->next;
        o->telling--;
        os_cond_broadcast(&wsk_changed);
    }
}

void wsk_patience_wait(struct wsk_patience *patience, struct wsk_client *client, const char *call)
{
    if (os_cond_wait_deadline(&wsk_changed, &wsk_lock, &patience->until) ||
        !os_deadline_passed(&patience->until))
        return;
    if (!RED("wsk-wait-is-silent"))
        tell_client(client, call, (os_mono_100ns() - patience->since_100ns) / SECOND_100NS);
    patience->until.at_100ns = os_mono_100ns() + patience->tell_100ns;
}

/* ---- the report ---- */

size_t wsk_report(void (*line)(void *context, const char *text), void *context)
{
    char(*texts)[LINE] = NULL;
    char stack[WSK_STACK_TEXT];
    size_t count = 0, lines = 0, at = 0;

    /* Collected under the lock, told without it: line is anybody's function. */
    os_mutex_lock(&wsk_lock);
    for (struct wsk_client *c = wsk_client_first(); c; c = c->next) {
        count++;
        lines += 1 + c->open_count;
    }
    if (line && lines)
        texts = malloc(lines * sizeof *texts);
    for (struct wsk_client *c = wsk_client_first(); texts && c; c = c->next) {
        wsk_stack_text(&c->by, stack, sizeof stack);
        snprintf(texts[at++], LINE, "left: WSK client #%u, captured %u time%s, registered by %s",
                 c->number, c->captures, c->captures == 1 ? "" : "s", stack);
        for (struct wsk_open *o = c->opens; o && at < lines; o = o->next) {
            wsk_stack_text(&o->by, stack, sizeof stack);
            snprintf(texts[at++], LINE,
                     "left: adapter of interface %u, of WSK client #%u, opened "
                     "by %s",
                     (unsigned)o->index, c->number, stack);
        }
    }
    os_mutex_unlock(&wsk_lock);
    for (size_t i = 0; i < at; i++)
        line(context, texts[i]);
    free(texts);
    return RED("wsk-report-is-silent") ? 0 : count;
}
