// SPDX-License-Identifier: MIT
/*
 * See adapter_tell.h. A line is whole or not there: one that does not fit any more is taken back,
 * and the last line tells that the answer is not complete.
 */
#include "provider/adapter_tell.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include <softndk.h>

#include "base/red.h"
#include "provider/adapter.h"
#include "provider/address.h"

#define END_ROOM 100 /* octets that the last line needs at most */

struct telling {
    struct stat_text *text;
    size_t lines;
    bool complete;
};

/* A line was added behind `before`. */
static void line_end(struct telling *t, size_t before)
{
    bool fits;

    stat_text_add(t->text, "}\n");
    fits = !t->text->full && t->text->length + END_ROOM <= stat_text_limit(t->text);
    if (fits || RED("stat-line-cut")) {
        t->lines++;
        return;
    }
    stat_text_cut(t->text, before);
    t->complete = false;
}

static void tell_process(struct telling *t)
{
    size_t before = t->text->length, length = 0;
    char *program = NULL;

    if (os_file_read("/proc/self/comm", 64, &program, &length) == 0)
        program[strcspn(program, "\n")] = '\0';
    stat_text_add(t->text, "{\"kind\":\"process\",\"format\":%d,\"softndk\":\"%s\",\"pid\":%u,",
                  ADAPTER_TELL_FORMAT, SOFTNDK_VERSION, (unsigned)os_pid());
    stat_text_add(t->text, "\"program\":");
    stat_text_string(t->text, program ? program : "");
    free(program);
    line_end(t, before);
}

static void tell_interface(void *context, uint32_t index, const char *name,
                           const struct adapter_totals *totals)
{
    struct telling *t = context;
    size_t before = t->text->length;

    if (!t->complete)
        return;
    stat_text_add(t->text, "{\"kind\":\"interface\",\"index\":%u,\"name\":", (unsigned)index);
    stat_text_string(t->text, name);
    stat_text_add(t->text,
                  ",\"Connect\":%llu,\"Accept\":%llu,\"ConnectFailure\":%llu,"
                  "\"ConnectionError\":%llu,\"ActiveConnection\":%llu,\"CQError\":%llu,",
                  totals->connect, totals->accept, totals->connect_failure,
                  totals->connection_error, totals->active_connection, totals->cq_error);
    stat_text_add(t->text,
                  "\"RDMAInOctets\":%llu,\"RDMAOutOctets\":%llu,\"RDMAInFrames\":%llu,"
                  "\"RDMAOutFrames\":%llu",
                  totals->in_octets, totals->out_octets, totals->in_frames, totals->out_frames);
    line_end(t, before);
}

static void tell_address(struct telling *t, const char *key, const struct adapter *adapter,
                         const struct os_addr *host)
{
    char ndk_text[OS_ADDR_TEXT_MAX], host_text[OS_ADDR_TEXT_MAX];

    address_text(adapter, host, true, ndk_text);
    stat_text_add(t->text, ",\"%s\":\"%s\",\"host_%s\":\"%s\"", key,
                  RED("stat-host-addresses") ? os_addr_text(host, true, host_text) : ndk_text, key,
                  os_addr_text(host, true, host_text));
}

static void tell_row(struct telling *t, const struct adapter *adapter,
                     const struct adapter_endpoint *row)
{
    static const char *const kinds[] = {
        [ADAPTER_ROW_CONNECTING] = "connection",
        [ADAPTER_ROW_ESTABLISHED] = "connection",
        [ADAPTER_ROW_LISTENER] = "listener",
        [ADAPTER_ROW_SHARED] = "shared endpoint",
    };
    size_t before = t->text->length;

    stat_text_add(t->text, "{\"kind\":\"%s\",\"index\":%u,\"adapter\":%u", kinds[row->kind],
                  (unsigned)row->interface, (unsigned)row->adapter);
    if (row->kind <= ADAPTER_ROW_ESTABLISHED)
        stat_text_add(t->text, ",\"state\":\"%s\"",
                      row->kind == ADAPTER_ROW_CONNECTING ? "connecting" : "established");
    tell_address(t, "local", adapter, &row->local);
    if (row->kind <= ADAPTER_ROW_ESTABLISHED)
        tell_address(t, "foreign", adapter, &row->remote);
    line_end(t, before);
}

static void tell_adapter(struct adapter *adapter, void *context)
{
    struct telling *t = context;
    struct adapter_endpoint *rows = NULL;
    ssize_t there;

    if (!t->complete)
        return;
    there = adapter_snapshot_add(adapter, &rows, 0);
    if (there < 0)
        t->complete = false;
    for (ssize_t i = 0; i < there && t->complete; i++)
        tell_row(t, adapter, &rows[i]);
    free(rows);
}

void adapter_tell(struct stat_text *text)
{
    struct telling t = {.text = text, .complete = true};

    tell_process(&t);
    adapter_counters_walk(tell_interface, &t);
    adapter_walk(tell_adapter, &t);
    stat_text_add(text, "{\"kind\":\"end\",\"lines\":%zu,\"complete\":%s}\n", t.lines,
                  t.complete ? "true" : "false");
}
