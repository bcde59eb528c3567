// SPDX-License-Identifier: MIT
/*
 * --table: half round trips and rates of send, write and read, until there is a tool of its own.
 *
 * The client asks for one run after another, the server prepares its side and answers; then both
 * sides work inside their CQ's notification, as a driver would, and nobody spins. table.c holds the
 * conversation and the table, table_run.c what happens inside a run.
 */
#ifndef SOFTNDK_NDKPING_TABLE_H
#define SOFTNDK_NDKPING_TABLE_H

#include "link.h"

#define TABLE_SIZE_MAX (1u << 20) /* octets of one operation */
#define TABLE_RING     (4u << 20) /* octets for receives in flight */
#define TABLE_WINDOW   64         /* operations in flight at most, and receives */
#define TABLE_REQUESTS (2 * TABLE_WINDOW)
#define TABLE_READS    16 /* the most that is asked for; the connection may allow less */
#define TABLE_BALL     16 /* octets of the Send behind a Write */
#define TABLE_MESSAGE  64 /* octets of every message of the conversation */

enum table_operation { TABLE_SEND, TABLE_WRITE, TABLE_READ, TABLE_OPERATIONS };
enum table_measure { TABLE_LATENCY, TABLE_RATE, TABLE_MEASURES };

/* One run, as the client asks for it. */
struct table_plan {
    enum table_operation operation;
    enum table_measure measure;
    ULONG size;   /* octets */
    ULONG window; /* rate: operations in flight */
    UINT64 count; /* round trips or operations */
};

/* One side of the conversation, and the state of its current run. */
struct table {
    struct link *link;
    bool server;
    struct tool_memory data, ring, messages;
    UINT64 peer_address; /* of the peer's data */
    UINT32 peer_token;
    unsigned message; /* the next slot of messages */

    struct table_plan plan;
    ULONG ball;         /* octets of each Send of a latency run */
    ULONG step;         /* sends that one credit of a send-rate run stands for */
    UINT64 posted;      /* sends, writes or reads of the run */
    UINT64 completed;   /* reads */
    UINT64 credit;      /* how many may have been posted by now */
    UINT64 received;    /* receives of the run that completed */
    UINT64 expected;    /* of how many */
    UINT64 receives;    /* of the run that were posted */
    UINT64 outstanding; /* requests posted and not completed */
    UINT64 ended_ns;    /* when the last result of the run was in; CLOCK_MONOTONIC */
};

/* Memory, and the receive for the first message. table_close() in any case. */
bool table_open(struct table *table);
/* Client: runs everything and prints the table. Server: LINK_GOOD when the client has gone between
 * two runs. */
enum link_result table_client(struct table *table);
enum link_result table_server(struct table *table);
/* After link_end(). */
void table_close(struct table *table);

/* table_run.c: the receives of a run, before the peer may begin; the run itself, on the client from
 * its first post; and what goes into the conversation's receive. */
bool table_prepare(struct table *table);
enum link_result table_run(struct table *table);
bool table_receive_message(struct table *table);
bool table_send_message(struct table *table, const UCHAR *octets, size_t count);
UINT64 table_now_ns(void);

#endif
