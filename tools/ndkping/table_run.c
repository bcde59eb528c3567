// SPDX-License-Identifier: MIT
/*
 * See table.h: one run, both sides.
 *
 *   latency  send   Sends of S octets go to and fro
 *            write  the same with a Write of S octets and a Send of 16 octets behind it
 *            read   the client posts one Read after the other; the server does nothing
 *   rate     send   the client keeps up to W Sends in flight; the server posts W receives, posts
 *                   each again, and answers every W/2 of them with a message that stands for credit
 *            write  the client keeps W Writes in flight; a message behind the last one is answered
 *            read   the client keeps W Reads in flight
 *
 * Each side posts exactly the receives that a run needs, and the one for the next message of the
 * conversation before the peer can send it, so that no Send ever meets an empty receive queue. The
 * link's thread posts before link_run(), the notification from then on: never both.
 */
#include <string.h>
#include <time.h>

#include "common/tool_args.h"
#include "table.h"

UINT64 table_now_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (UINT64)now.tv_sec * 1000000000u + (UINT64)now.tv_nsec;
}

/* ---- posts; each is counted ---- */

/* The slots of a run's receives follow each other in the ring; a message takes one of 64 octets. */
static ULONG slot_octets(const struct table *table)
{
    ULONG octets = table->plan.size > TABLE_MESSAGE ? table->plan.size : TABLE_MESSAGE;

    return (octets + 63) & ~63u;
}

static bool post_receive(struct table *table)
{
    size_t slots = TABLE_RING / slot_octets(table);
    size_t offset = (size_t)(table->receives % slots) * slot_octets(table);

    table->receives++;
    return link_receive(table->link, &table->ring, offset, slot_octets(table));
}

/* The receive for the next message of the conversation has a place of its own. */
bool table_receive_message(struct table *table)
{
    return link_receive(table->link, &table->messages, 0, TABLE_MESSAGE);
}

bool table_send_message(struct table *table, const UCHAR *octets, size_t count)
{
    /* Slot 0 is the receive's; the others are reused long after their Send has completed. */
    size_t offset = (1 + table->message++ % (TABLE_WINDOW - 1)) * TABLE_MESSAGE;

    if (count > 0)
        memcpy(table->messages.data + offset, octets, count);
    table->outstanding++;
    return link_send(table->link, &table->messages, offset, TABLE_MESSAGE);
}

static bool post_operation(struct table *table)
{
    table->posted++;
    table->outstanding++;
    switch (table->plan.operation) {
    case TABLE_WRITE:
        return link_write(table->link, &table->data, table->plan.size, table->peer_address,
                          table->peer_token);
    case TABLE_READ:
        return link_read(table->link, &table->data, table->plan.size, table->peer_address,
                         table->peer_token);
    default:
        return link_send(table->link, &table->data, 0, table->plan.size);
    }
}

/* To and fro: what one side sends in a latency run. */
static bool post_ball(struct table *table)
{
    if (!post_operation(table))
        return false;
    if (table->plan.operation == TABLE_SEND)
        return true;
    table->outstanding++;
    return link_send(table->link, &table->data, 0, TABLE_BALL);
}

/* As many operations as window and credit allow; behind the last Write its message. */
static bool pump(struct table *table)
{
    const struct table_plan *plan = &table->plan;

    while (table->posted < plan->count && table->posted < table->credit &&
           table->outstanding < plan->window) {
        if (!post_operation(table))
            return false;
        if (plan->operation == TABLE_WRITE && table->posted == plan->count &&
            !table_send_message(table, NULL, 0))
            return false;
    }
    return true;
}

/* ---- before a run ---- */

static void reset(struct table *table)
{
    const struct table_plan *plan = &table->plan;

    table->posted = table->completed = table->received = table->receives = 0;
    table->outstanding = 0;
    table->expected = 0;
    table->ball = plan->operation == TABLE_SEND ? plan->size : TABLE_BALL;
    table->step = plan->window / 2 > 0 ? plan->window / 2 : 1;
    table->credit = plan->count;
    if (plan->operation == TABLE_READ)
        return;
    if (plan->measure == TABLE_LATENCY) {
        table->expected = plan->count;
    } else if (plan->operation == TABLE_WRITE) {
        table->expected = 1;
    } else if (table->server) {
        table->expected = plan->count;
    } else {
        table->expected = (plan->count + table->step - 1) / table->step;
        table->credit = plan->window;
    }
}

bool table_prepare(struct table *table)
{
    const struct table_plan *plan = &table->plan;
    UINT64 ahead = 1;

    reset(table);
    if (plan->measure == TABLE_RATE && plan->operation == TABLE_SEND)
        ahead = table->server ? plan->window : 4; /* credits on their way to the client */
    if (ahead > table->expected)
        ahead = table->expected;
    while (table->receives < ahead) {
        if (!post_receive(table))
            return false;
    }
    /* A server without receives in this run hears of the next one at once. */
    return !table->server || table->expected > 0 || table_receive_message(table);
}

/* ---- inside the notification ---- */

static enum link_step result_of(struct table *table, bool good)
{
    if (!good)
        return LINK_BROKEN;
    if (table->received < table->expected || table->outstanding > 0)
        return LINK_GO_ON;
    if (!table->server && table->posted < table->plan.count)
        return LINK_GO_ON;
    table->ended_ns = table_now_ns();
    return LINK_FINISHED;
}

static bool check_octets(struct table *table, ULONG octets)
{
    const struct table_plan *plan = &table->plan;
    ULONG need = TABLE_MESSAGE;

    if (plan->measure == TABLE_LATENCY)
        need = table->ball;
    else if (plan->operation == TABLE_SEND && table->server)
        need = plan->size;
    if (octets == need)
        return true;
    tool_say("%s: a message of %u octets (need %u)", table->link->peer, (unsigned)octets,
             (unsigned)need);
    table->link->failed = true;
    return false;
}

/* Posts the receive that takes the place of the one that completed, if another is needed. */
static bool replace_receive(struct table *table)
{
    if (table->receives < table->expected)
        return post_receive(table);
    return !table->server || table->received < table->expected || table_receive_message(table);
}

static bool client_received(struct table *table)
{
    if (table->plan.measure == TABLE_LATENCY)
        return table->received == table->expected || post_ball(table);
    if (table->plan.operation == TABLE_SEND)
        table->credit += table->step;
    return pump(table);
}

static bool server_received(struct table *table)
{
    if (table->plan.measure == TABLE_LATENCY)
        return post_ball(table);
    if (table->received % table->step == 0 || table->received == table->expected)
        return table_send_message(table, NULL, 0);
    return true;
}

static enum link_step on_result(void *context, enum link_kind kind, ULONG octets)
{
    struct table *table = context;
    bool good;

    if (kind != LINK_RECEIVE) {
        table->outstanding--;
        if (table->server)
            return result_of(table, true);
        if (table->plan.measure == TABLE_RATE)
            return result_of(table, pump(table));
        good = kind != LINK_READ || table->posted == table->plan.count || post_operation(table);
        return result_of(table, good);
    }
    if (table->received == table->expected)
        return LINK_NOT_MINE; /* the next message, ahead of the end of our own sends */
    table->received++;
    good = check_octets(table, octets) && replace_receive(table) &&
           (table->server ? server_received(table) : client_received(table));
    return result_of(table, good);
}

/* ---- a run ---- */

enum link_result table_run(struct table *table)
{
    if (!table->server) {
        bool good = table->plan.measure == TABLE_RATE     ? pump(table)
                    : table->plan.operation == TABLE_READ ? post_operation(table)
                                                          : post_ball(table);

        if (!good)
            return LINK_FAILED;
    } else if (table->expected == 0 && table->outstanding == 0) {
        return LINK_GOOD;
    }
    return link_run(table->link, on_result, table);
}
