// SPDX-License-Identifier: MIT
/* See show.h. No state. */
#include "show.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <softndk.h>

#include "common/tool_args.h"
#include "stat/text.h"

/* ---- endpoints ------------------------------------------------------------------------------ */

struct row {
    const struct read_endpoint *endpoint;
    uint32_t pid;
    size_t place; /* as it came */
};

static int by_interface(const void *left, const void *right)
{
    const struct row *a = left, *b = right;

    if (a->endpoint->index != b->endpoint->index)
        return a->endpoint->index < b->endpoint->index ? -1 : 1;
    if (a->endpoint->kind != b->endpoint->kind)
        return (int)a->endpoint->kind - (int)b->endpoint->kind;
    if (a->pid != b->pid)
        return a->pid < b->pid ? -1 : 1;
    return a->place < b->place ? -1 : a->place > b->place;
}

static const char *type_name(const struct read_endpoint *e)
{
    if (e->kind == READ_LISTENER)
        return "Listener";
    if (e->kind == READ_SHARED)
        return "SharedEndpoint";
    return e->connecting ? "Connecting" : "Connection";
}

void show_endpoints(const struct read_process *processes, unsigned count)
{
    size_t total = 0, used = 0;
    struct row *rows;

    for (unsigned i = 0; i < count; i++)
        total += processes[i].endpoint_count;
    rows = calloc(total ? total : 1, sizeof *rows);
    if (!rows) {
        tool_say("no memory for %zu rows", total);
        return;
    }
    for (unsigned i = 0; i < count; i++)
        for (size_t k = 0; k < processes[i].endpoint_count; k++, used++)
            rows[used] = (struct row){&processes[i].endpoints[k], processes[i].pid, used};
    qsort(rows, total, sizeof *rows, by_interface);
    puts("\nActive NetworkDirect Connections, Listeners, SharedEndpoints\n\n"
         "  Mode   IfIndex Type           Local Address          Foreign Address        PID\n");
    for (size_t i = 0; i < total; i++)
        printf("  %-6s %7" PRIu32 " %-14s %-22s %-22s %" PRIu32 "\n", "Kernel",
               rows[i].endpoint->index, type_name(rows[i].endpoint), rows[i].endpoint->local,
               rows[i].endpoint->foreign ? rows[i].endpoint->foreign : "NA", rows[i].pid);
    free(rows);
}

/* ---- counters ------------------------------------------------------------------------------- */

void show_counters(const struct read_process *processes, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        const struct read_process *p = &processes[i];

        for (size_t k = 0; k < p->interface_count; k++) {
            const struct read_interface *interface = &p->interfaces[k];

            printf("\nNetworkDirect counters of interface %" PRIu32 " (%s), PID %" PRIu32
                   " (%s)\n\n",
                   interface->index, interface->name, p->pid, p->program);
            for (unsigned c = 0; c < READ_COUNTERS; c++)
                printf("  %-18s %20" PRIu64 "\n", read_counter_names[c], interface->counters[c]);
        }
    }
}

/* ---- JSON ----------------------------------------------------------------------------------- */

static void put_string(const char *key, const char *value)
{
    struct stat_text text = {0};

    stat_text_string(&text, value);
    printf("\"%s\":%s", key, text.at && !text.full ? text.at : "\"\"");
    free(text.at);
}

static void put_interface(const struct read_interface *interface)
{
    printf("{\"IfIndex\":%" PRIu32 ",", interface->index);
    put_string("Name", interface->name);
    fputs(",\"Counters\":{", stdout);
    for (unsigned c = 0; c < READ_COUNTERS; c++)
        printf("%s\"%s\":%" PRIu64, c ? "," : "", read_counter_names[c], interface->counters[c]);
    fputs("}}", stdout);
}

static void put_endpoint(const struct read_endpoint *e)
{
    printf("{\"Mode\":\"Kernel\",\"IfIndex\":%" PRIu32 ",\"Type\":\"%s\",\"Adapter\":%" PRIu32 ",",
           e->index, type_name(e), e->adapter);
    put_string("LocalAddress", e->local);
    putchar(',');
    put_string("HostLocalAddress", e->host_local);
    if (e->foreign) {
        putchar(',');
        put_string("ForeignAddress", e->foreign);
        putchar(',');
        put_string("HostForeignAddress", e->host_foreign);
    }
    putchar('}');
}

static void put_process(const struct read_process *p)
{
    printf("{\"Pid\":%" PRIu32 ",", p->pid);
    put_string("Program", p->program);
    putchar(',');
    put_string("Softndk", p->softndk);
    printf(",\"Complete\":%s,\"Interfaces\":[", p->complete ? "true" : "false");
    for (size_t i = 0; i < p->interface_count; i++) {
        fputs(i ? "," : "", stdout);
        put_interface(&p->interfaces[i]);
    }
    fputs("],\"Endpoints\":[", stdout);
    for (size_t i = 0; i < p->endpoint_count; i++) {
        fputs(i ? "," : "", stdout);
        put_endpoint(&p->endpoints[i]);
    }
    fputs("]}", stdout);
}

void show_json(const struct read_process *processes, unsigned count)
{
    time_t now = time(NULL);
    struct tm tm;
    char when[40] = "";

    if (gmtime_r(&now, &tm))
        strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &tm);
    printf("{\"Softndk\":\"%s\",\"Time\":\"%s\",\"Processes\":[", softndk_version_string(), when);
    for (unsigned i = 0; i < count; i++) {
        fputs(i ? "," : "", stdout);
        put_process(&processes[i]);
    }
    puts("]}");
}
