// SPDX-License-Identifier: MIT
/*
 * See adapter_left.h. What is told is copied under the adapter's table lock and told without it, as
 * looking up names takes its time and the line function is the caller's.
 */
#include "provider/adapter_left.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/red.h"
#include "provider/adapter.h"
#include "provider/origin.h"

enum { LEFT_LINE = 900 };

struct entry {
    const char *name; /* of the class */
    uint32_t id;      /* 0: a logical address mapping, which has none */
    bool closing;
    struct origin *origin;
};

struct entries {
    struct entry *list;
    size_t count, room;
    size_t unseen; /* no memory for them: counted only */
};

static void add(struct entries *e, const char *name, uint32_t id, bool closing,
                const struct origin *origin)
{
    if (e->count == e->room) {
        struct entry *more = realloc(e->list, (e->room + 32) * sizeof *more);

        if (!more) {
            e->unseen++;
            return;
        }
        e->list = more;
        e->room += 32;
    }
    e->list[e->count++] = (struct entry){name, id, closing, origin_copy(origin)};
}

static void collect(struct adapter *adapter, struct entries *e)
{
    unsigned recorded = 0;

    os_mutex_lock(&adapter->table_lock);
    for (struct object *o = adapter->live; o; o = o->live_next)
        add(e, o->class->name, o->id, atomic_load(&o->closed), o->origin);
    for (struct lam_record *r = adapter->lams; r; r = r->next, recorded++)
        add(e, "logical address mapping", 0, false, r->origin);
    for (; recorded < adapter->outstanding_lams; recorded++)
        add(e, "logical address mapping", 0, false, NULL);
    os_mutex_unlock(&adapter->table_lock);
}

static bool same_making(const struct entry *a, const struct entry *b)
{
    return a->name == b->name && a->closing == b->closing && origin_same(a->origin, b->origin);
}

static void tell(const struct entry *e, size_t things, void (*line)(void *, const char *),
                 void *context)
{
    char text[LEFT_LINE], first[32] = "";
    size_t at;

    if (e->id)
        snprintf(first, sizeof first, ", %s#%u", things > 1 ? "the first " : "", e->id);
    at = (size_t)snprintf(text, sizeof text, "%zu %s%s, %s%s", things, e->name,
                          things > 1 && !e->id ? "s" : "",
                          e->id ? (e->closing ? "closing" : "open") : "not released", first);
    origin_text(e->origin, text + at, sizeof text - at);
    line(context, text);
}

size_t adapter_left_tell(struct adapter *adapter, void (*line)(void *context, const char *text),
                         void *context)
{
    struct entries e = {.list = NULL};

    collect(adapter, &e);
    /* The list of live objects begins with the newest: tell them as they were made. */
    for (size_t i = e.count; line && i-- > 0;) {
        size_t things = 1;

        if (!e.list[i].name)
            continue;
        for (size_t j = i; j-- > 0;) {
            if (!e.list[j].name || !same_making(&e.list[i], &e.list[j]))
                continue;
            things++;
            e.list[j].name = NULL;
        }
        tell(&e.list[i], things, line, context);
    }
    for (size_t i = 0; i < e.count; i++)
        origin_free(e.list[i].origin);
    free(e.list);
    return RED("adapter-left-unseen") ? 0 : e.count + e.unseen;
}

/* ---- the report ------------------------------------------------------------------------------ */

struct report {
    void (*line)(void *, const char *);
    void *context;
    size_t total;
    uint32_t adapter;
};

static void tell_of(void *context, const char *text)
{
    struct report *r = context;
    char whole[LEFT_LINE + 40];

    snprintf(whole, sizeof whole, "left: adapter #%u: %s", r->adapter, text);
    r->line(r->context, whole);
}

static void report_adapter(struct adapter *adapter, void *context)
{
    struct report *r = context;
    char text[LEFT_LINE];
    size_t at;

    r->adapter = adapter->object.id;
    if (r->line) {
        at = (size_t)snprintf(text, sizeof text, "left: adapter #%u on %s, %s", r->adapter,
                              adapter->interface.name,
                              atomic_load(&adapter->object.closed) ? "closing" : "open");
        origin_text(adapter->object.origin, text + at, sizeof text - at);
        r->line(r->context, text);
    }
    r->total += 1 + adapter_left_tell(adapter, r->line ? tell_of : NULL, r);
}

size_t adapter_left_report(void (*line)(void *context, const char *text), void *context)
{
    struct report r = {.line = line, .context = context};

    adapter_walk(report_adapter, &r);
    return r.total;
}
