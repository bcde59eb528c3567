// SPDX-License-Identifier: MIT
/*
 * One open of an adapter: version negotiation, numbers, the blocking close. See adapter.h; what
 * stands in the information structure is adapter_info.c.
 *
 * The count of references and the condition variable of all adapters are under process_lock, which
 * belongs to the process: the last holder of an adapter touches nothing of it after it has let go
 * of that lock, so the closer may free it at once (rules C7, C9).
 *
 * Called by the doors (open, close) and by every object (references). Locks: process_lock (leaf;
 * never together with a table lock).
 */
#include "provider/adapter.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/red.h"
#include "nt/nt.h"
#include "provider/adapter_info.h"
#include "provider/adapter_left.h"
#include "provider/adapter_slots.h"
#include "provider/adapter_tell.h"
#include "provider/origin.h"
#include "stat/server.h"

#define CLOSE_PATIENCE_US 5000000u
#define CLOSE_LIST_MAX    16

static os_mutex process_lock = OS_MUTEX_INITIALIZER;
static pthread_once_t process_once = PTHREAD_ONCE_INIT;
static os_cond process_changed;
/* All adapters that are open or closing, the oldest first; process_lock. */
static struct adapter *open_first, *open_last;
static unsigned open_count;
static unsigned long long opened_total;

static void process_init(void)
{
    os_cond_init(&process_changed); /* on the monotonic clock: no static initializer */
    nt_report_source(adapter_left_report);
}

static const struct object_class adapter_class = {
    .type = NdkObjectTypeAdapter,
    .name = "adapter",
    .size = sizeof(struct adapter),
};

/* ---- references ---- */

void adapter_ref(struct adapter *adapter)
{
    os_mutex_lock(&process_lock);
    atomic_fetch_add_explicit(&adapter->object.references, 1, memory_order_relaxed);
    os_mutex_unlock(&process_lock);
}

void adapter_unref(struct adapter *adapter)
{
    os_mutex_lock(&process_lock);
    if (atomic_fetch_sub_explicit(&adapter->object.references, 1, memory_order_relaxed) == 1)
        os_cond_broadcast(&process_changed);
    os_mutex_unlock(&process_lock);
}

/* ---- all of them ---- */

static void open_insert(struct adapter *adapter)
{
    os_mutex_lock(&process_lock);
    adapter->open_previous = open_last;
    if (open_last)
        open_last->open_next = adapter;
    else
        open_first = adapter;
    open_last = adapter;
    open_count++;
    opened_total++;
    os_mutex_unlock(&process_lock);
}

/* process_lock is held, and nobody holds a reference. */
static void open_remove(struct adapter *adapter)
{
    if (adapter->open_previous)
        adapter->open_previous->open_next = adapter->open_next;
    else
        open_first = adapter->open_next;
    if (adapter->open_next)
        adapter->open_next->open_previous = adapter->open_previous;
    else
        open_last = adapter->open_previous;
    open_count--;
}

unsigned adapter_count(unsigned long long *opened)
{
    unsigned count;

    os_mutex_lock(&process_lock);
    count = open_count;
    *opened = opened_total;
    os_mutex_unlock(&process_lock);
    return count;
}

void adapter_walk(void (*fn)(struct adapter *adapter, void *context), void *context)
{
    struct adapter **list;
    unsigned count = 0;

    os_mutex_lock(&process_lock);
    list = malloc((open_count + 1) * sizeof(struct adapter *));
    for (struct adapter *a = open_first; list && a; a = a->open_next) {
        atomic_fetch_add_explicit(&a->object.references, 1, memory_order_relaxed);
        list[count++] = a;
    }
    os_mutex_unlock(&process_lock);
    for (unsigned i = 0; i < count; i++) {
        fn(list[i], context);
        adapter_unref(list[i]);
    }
    free(list);
}

/* ---- open ---- */

static NTSTATUS open_failed(NTSTATUS status, char *error, size_t size, const char *text)
{
    snprintf(error, size, "%s", text);
    /* A version is asked for in vain by whoever goes through the versions: its door tells it. */
    if (status == ADAPTER_BAD_VERSION)
        log_info("open: %s", text);
    else
        log_error("open: %s", text);
    return status;
}

static struct adapter *adapter_alloc(const struct os_interface *interface,
                                     const struct options *options, NDK_VERSION version)
{
    struct adapter *adapter = hooks_alloc(sizeof *adapter);

    if (!adapter)
        return NULL;
    adapter->rows_last = &adapter->rows;
    adapter->counters = adapter_counters_of(interface);
    adapter->tokens = adapter->counters ? mem_table_new() : NULL;
    if (!adapter->tokens) {
        free(adapter);
        return NULL;
    }
    adapter->options = *options;
    adapter->interface = *interface;
    adapter->version = version;
    adapter_info_fill(&adapter->info, options, version);
    os_mutex_init(&adapter->table_lock);
    adapter->object.header.Version = version;
    adapter->object.header.ObjectType = NdkObjectTypeAdapter;
    adapter->object.dispatch = &adapter_dispatch;
    adapter->object.class = &adapter_class;
    adapter->object.adapter = adapter;
    adapter->object.id = object_next_id();
    adapter->object.origin = origin_take();
    atomic_init(&adapter->object.references, 1);
    return adapter;
}

static void adapter_free(struct adapter *adapter)
{
    mem_table_free(adapter->tokens);
    os_mutex_destroy(&adapter->table_lock);
    free(adapter->object.reason);
    origin_free(adapter->object.origin);
    free(adapter);
}

/* A little more than it takes to wake a thread on another processor. */
#define ADAPTIVE_SPIN_US 50

NTSTATUS adapter_open(const struct os_interface *interface, const struct options *options,
                      NDK_VERSION version, struct adapter **out, char *error, size_t size)
{
    bool adaptive = options->progress == PROGRESS_ADAPTIVE;
    struct engine_config config = {.shards = options->shards,
                                   .spin_us = adaptive && options->spin_us == 0 ? ADAPTIVE_SPIN_US
                                                                                : options->spin_us,
                                   .adaptive = adaptive};
    struct adapter *adapter;
    NDK_VERSION runs;
    char text[200];
    int rc;

    pthread_once(&process_once, process_init);
    if (!adapter_negotiate(version, options, &runs)) {
        unsigned major, minor;

        options_ndkpi(options, &major, &minor);
        snprintf(text, sizeof text, "NDKPI %u.%u is not offered (highest %u.%u), rule 3.3",
                 version.Major, version.Minor, major, minor);
        return open_failed(ADAPTER_BAD_VERSION, error, size, text);
    }
    rc = engine_get(&config);
    if (rc < 0) {
        snprintf(text, sizeof text, "cannot start the engine's threads (error %d)", -rc);
        return open_failed(ADAPTER_RESOURCES, error, size, text);
    }
    adapter = adapter_alloc(interface, options, runs);
    if (!adapter) {
        engine_put();
        return open_failed(ADAPTER_RESOURCES, error, size, "no memory for an adapter");
    }
    adapter->object.home = engine_shard_next();
    open_insert(adapter);
    stat_get(adapter_tell);
    log_info("adapter #%u: opened on %s (index %u), NDKPI %u.%u", adapter->object.id,
             interface->name, interface->index, runs.Major, runs.Minor);
    *out = adapter;
    return STATUS_SUCCESS;
}

/* ---- close ---- */

/* Inside an item the close waits for the item to return, and so for itself. True: the process is
 * asked to go on nevertheless. */
static bool close_inside_callback(struct adapter *adapter)
{
    const char *tolerant = getenv("SOFTNDK_TOLERANT");

    if (!engine_in_item() || RED("object-adapter-close-in-callback"))
        return false;
    nt_finding_of_call(
        "adapter #%u: closed inside a consumer callback, where it waits for itself, rule C10",
        adapter->object.id);
    if (tolerant && strcmp(tolerant, "1") == 0)
        return true;
    abort();
}

static void close_report_line(void *context, const char *text)
{
    const struct adapter *adapter = context;

    log_error("adapter #%u: waits for %s", adapter->object.id, text);
}

/* What the close waits for, in one line. Any objects that end meanwhile end after us: they leave
 * the list under the table lock. */
static void close_report(struct adapter *adapter)
{
    char text[900];
    size_t used = 0;
    unsigned count = 0, shown = 0;

    text[0] = '\0';
    os_mutex_lock(&adapter->table_lock);
    for (struct object *o = adapter->live; o; o = o->live_next) {
        unsigned references = atomic_load_explicit(&o->references, memory_order_relaxed);
        int n;

        count++;
        if (shown == CLOSE_LIST_MAX || used > sizeof text - 80)
            continue;
        n = snprintf(text + used, sizeof text - used, "%s%s #%u (%s, %u reference%s)",
                     shown ? ", " : "", o->class->name, o->id,
                     atomic_load(&o->closed) ? "closing" : "open", references,
                     references == 1 ? "" : "s");
        used += (size_t)n;
        shown++;
    }
    os_mutex_unlock(&adapter->table_lock);
    log_error("adapter #%u: close waits since 5 s for %u object%s: %s%s, rule C9",
              adapter->object.id, count, count == 1 ? "" : "s",
              count ? text : "a callback of the adapter", shown < count ? ", ..." : "");
    if (adapter->object.origin)
        adapter_left_tell(adapter, close_report_line, adapter);
}

static void close_wait(struct adapter *adapter)
{
    uint64_t deadline = os_now_us() + CLOSE_PATIENCE_US;
    bool reported = false;

    os_mutex_lock(&process_lock);
    atomic_fetch_sub_explicit(&adapter->object.references, 1, memory_order_relaxed);
    while (atomic_load_explicit(&adapter->object.references, memory_order_relaxed) != 0 &&
           !RED("object-adapter-close-does-not-wait")) {
        if (reported) {
            os_cond_wait(&process_changed, &process_lock);
        } else if (!os_cond_wait_until(&process_changed, &process_lock, deadline)) {
            reported = true;
            os_mutex_unlock(&process_lock);
            close_report(adapter);
            os_mutex_lock(&process_lock);
        }
    }
    open_remove(adapter);
    os_mutex_unlock(&process_lock);
}

/* Who made the oldest mapping that is left; forgets all of them. */
static void lam_origin(struct adapter *adapter, char *text, size_t size)
{
    struct lam_record *r, *next;

    text[0] = '\0';
    for (r = adapter->lams; r; r = next) {
        next = r->next;
        origin_text(r->origin, text, size);
        origin_free(r->origin);
        free(r);
    }
    adapter->lams = NULL;
}

void adapter_close(struct adapter *adapter)
{
    char made[NT_FINDING_TEXT - 90];
    unsigned lams;

    if (close_inside_callback(adapter))
        return;
    if (KeGetCurrentIrql() != PASSIVE_LEVEL)
        nt_finding_of_call("adapter #%u: closed at IRQL %u (need PASSIVE_LEVEL), rule C9",
                           adapter->object.id, KeGetCurrentIrql());
    if (atomic_exchange(&adapter->object.closed, true)) {
        nt_finding_of_call("adapter #%u: closed twice, rule C2", adapter->object.id);
        return;
    }
    close_wait(adapter);
    stat_put();
    os_mutex_lock(&adapter->table_lock);
    lams = adapter->outstanding_lams;
    os_mutex_unlock(&adapter->table_lock);
    if (lams) {
        lam_origin(adapter, made, sizeof made);
        nt_finding_of_call(
            "adapter #%u: closed with %u logical address mapping%s not released, rule L11%s",
            adapter->object.id, lams, lams == 1 ? "" : "s", made);
    }
    log_info("adapter #%u: closed", adapter->object.id);
    adapter_free(adapter);
    engine_put();
}
