// SPDX-License-Identifier: MIT
/*
 * See table.h: the conversation around the runs, and the table.
 *
 * The client's request and the server's answer are one message of 64 octets, big-endian:
 *    0  4  operation      4  4  measure      8  4  size      12  4  window      16  8  count
 *   24  8  address of the sender's data    32  4  its token                   the rest zero
 */
#include "table.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "common/tool_args.h"
#include "hello.h"

#define TRIAL_COUNT   32         /* round trips or operations that tell how many to do */
#define TRIAL_WINDOWS 2          /* a rate is tried with this many windows */
#define RUN_NS        250000000u /* how long one run should take */
#define COUNT_MIN     32
#define COUNT_MAX     1000000

static const char *const operation_names[TABLE_OPERATIONS] = {"send", "write", "read"};
static const ULONG sizes[] = {64, 4096, TABLE_SIZE_MAX};

bool table_open(struct table *table)
{
    NDK_PD *pd = table->link->pd;

    return tool_memory_create(pd, TABLE_SIZE_MAX,
                              NDK_MR_FLAG_ALLOW_REMOTE_READ | NDK_MR_FLAG_ALLOW_REMOTE_WRITE |
                                  NDK_MR_FLAG_RDMA_READ_SINK,
                              &table->data) &&
           tool_memory_create(pd, TABLE_RING, NDK_MR_FLAG_ALLOW_LOCAL_WRITE, &table->ring) &&
           tool_memory_create(pd, TABLE_WINDOW * TABLE_MESSAGE, NDK_MR_FLAG_ALLOW_LOCAL_WRITE,
                              &table->messages) &&
           table_receive_message(table);
}

void table_close(struct table *table)
{
    tool_memory_close(&table->data);
    tool_memory_close(&table->ring);
    tool_memory_close(&table->messages);
}

/* ---- the conversation ---- */

static void write_message(const struct table *table, UCHAR *out)
{
    const struct table_plan *plan = &table->plan;

    memset(out, 0, TABLE_MESSAGE);
    put_be(out, 4, plan->operation);
    put_be(out + 4, 4, plan->measure);
    put_be(out + 8, 4, plan->size);
    put_be(out + 12, 4, plan->window);
    put_be(out + 16, 8, plan->count);
    put_be(out + 24, 8, (UINT64)(ULONG_PTR)table->data.data);
    put_be(out + 32, 4, table->data.remote);
}

/* Takes the message that arrived; false when it cannot be one. */
static bool read_message(struct table *table)
{
    const UCHAR *in = table->messages.data;
    struct table_plan *plan = &table->plan;

    plan->operation = (enum table_operation)get_be(in, 4);
    plan->measure = (enum table_measure)get_be(in + 4, 4);
    plan->size = (ULONG)get_be(in + 8, 4);
    plan->window = (ULONG)get_be(in + 12, 4);
    plan->count = get_be(in + 16, 8);
    table->peer_address = get_be(in + 24, 8);
    table->peer_token = (UINT32)get_be(in + 32, 4);
    if (table->link->octets == TABLE_MESSAGE && plan->operation < TABLE_OPERATIONS &&
        plan->measure < TABLE_MEASURES && plan->size >= 1 && plan->size <= TABLE_SIZE_MAX &&
        plan->window >= 1 && plan->window <= TABLE_WINDOW && plan->count >= 1 &&
        (UINT64)plan->window * plan->size <= TABLE_RING)
        return true;
    tool_say("%s: a message that asks for nothing sensible", table->link->peer);
    return false;
}

static enum link_result send_plan(struct table *table)
{
    UCHAR message[TABLE_MESSAGE];

    write_message(table, message);
    return table_send_message(table, message, sizeof(message)) ? LINK_GOOD : LINK_FAILED;
}

enum link_result table_server(struct table *table)
{
    for (;;) {
        enum link_result result = link_wait_idle(table->link, LINK_RECEIVE);

        if (result == LINK_GONE)
            return LINK_GOOD;
        if (result != LINK_GOOD)
            return result;
        if (!read_message(table) || !table_prepare(table))
            return LINK_FAILED;
        result = send_plan(table);
        if (result == LINK_GOOD)
            result = table_run(table);
        if (result == LINK_GONE) {
            link_report_lost(table->link);
            return LINK_FAILED;
        }
        if (result != LINK_GOOD)
            return result;
    }
}

/* One run; *ns: from the first post to the last result. */
static enum link_result client_run(struct table *table, const struct table_plan *plan, UINT64 *ns)
{
    enum link_result result;
    UINT64 began_ns;

    table->plan = *plan;
    result = send_plan(table);
    if (result == LINK_GOOD)
        result = link_wait(table->link, LINK_SEND);
    if (result == LINK_GOOD)
        result = link_wait(table->link, LINK_RECEIVE);
    if (result != LINK_GOOD)
        return result;
    if (!read_message(table) || !table_prepare(table))
        return LINK_FAILED;
    if (memcmp(&table->plan, plan, sizeof(*plan)) != 0) {
        tool_say("%s: the server answers with another plan", table->link->peer);
        return LINK_FAILED;
    }
    began_ns = table_now_ns();
    result = table_run(table);
    *ns = table->ended_ns > began_ns ? table->ended_ns - began_ns : 1;
    if (result == LINK_GOOD && !table_receive_message(table))
        result = LINK_FAILED;
    return result;
}

/* ---- the table ---- */

static ULONG window_of(enum table_operation operation, ULONG size, ULONG reads)
{
    ULONG window = TABLE_RING / size;

    if (window > TABLE_WINDOW)
        window = TABLE_WINDOW;
    return operation == TABLE_READ && window > reads ? reads : window;
}

/* A short run that tells how long one takes, then one of about RUN_NS. */
static enum link_result measure(struct table *table, struct table_plan *plan, double *each_ns)
{
    enum link_result result;
    UINT64 ns;

    plan->count = plan->measure == TABLE_RATE ? TRIAL_WINDOWS * plan->window : TRIAL_COUNT;
    result = client_run(table, plan, &ns);
    if (result != LINK_GOOD)
        return result;
    plan->count = (UINT64)((double)RUN_NS / ((double)ns / (double)plan->count));
    if (plan->count < COUNT_MIN)
        plan->count = COUNT_MIN;
    if (plan->count > COUNT_MAX)
        plan->count = COUNT_MAX;
    result = client_run(table, plan, &ns);
    *each_ns = (double)ns / (double)plan->count;
    return result;
}

static enum link_result print_row(struct table *table, enum table_operation operation, ULONG size,
                                  ULONG reads)
{
    struct table_plan plan;
    double latency_ns, rate_ns;
    enum link_result result;

    memset(&plan, 0, sizeof(plan));
    plan.operation = operation;
    plan.size = size;
    plan.window = 1;
    result = measure(table, &plan, &latency_ns);
    if (result != LINK_GOOD)
        return result;
    plan.measure = TABLE_RATE;
    plan.window = window_of(operation, size, reads);
    result = measure(table, &plan, &rate_ns);
    if (result != LINK_GOOD)
        return result;
    /* Octets in a nanosecond times 1,000 are 10^6 octets in a second. */
    printf("%-9s %9u %20.1f %9u %12.1f\n", operation_names[operation], (unsigned)size,
           latency_ns / 2 / 1000, (unsigned)plan.window, (double)size * 1000 / rate_ns);
    fflush(stdout);
    return LINK_GOOD;
}

static void print_head(void)
{
    puts("half round trip: T/2n in us of n round trips in T. send: S octets to and fro; write: a\n"
         "  Write of S octets with a Send of 16 octets behind it, to and fro; read: n Reads of S\n"
         "  octets, one after the other. Both ends work in their CQ's notification, without "
         "spinning.\n"
         "rate: S*n/T in MB/s, 1 MB = 1,000,000 octets, one way (send and write to the server, "
         "read\n"
         "  from it), with up to W operations in flight; T ends when the last one is known "
         "complete.\n"
         "\n"
         "operation  S octets   half round trip us  W flight    rate MB/s");
    fflush(stdout);
}

enum link_result table_client(struct table *table)
{
    NDK_CONNECTOR *connector = table->link->connector;
    ULONG inbound = 0, reads = 0, length = 0;
    enum link_result result = LINK_GOOD;
    NTSTATUS status;

    status = connector->Dispatch->NdkGetConnectionData(connector, &inbound, &reads, NULL, &length);
    if (status != STATUS_SUCCESS) {
        tool_report(&connector->Header, "NdkGetConnectionData", status);
        return LINK_FAILED;
    }
    if (reads == 0) {
        tool_say("%s: the connection allows no reads", table->link->peer);
        return LINK_FAILED;
    }
    print_head();
    for (unsigned operation = 0; operation < TABLE_OPERATIONS; operation++) {
        for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]) && result == LINK_GOOD; i++)
            result = print_row(table, (enum table_operation)operation, sizes[i],
                               reads < TABLE_READS ? reads : TABLE_READS);
    }
    if (result == LINK_GONE) {
        link_report_lost(table->link);
        result = LINK_FAILED;
    }
    return result;
}
