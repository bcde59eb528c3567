// SPDX-License-Identifier: MIT
/*
 * The control connection: the two ends of ndkperf talk in lines of text, each a Send, one asking
 * and the other answering.
 *
 *   client                       server
 *   a plan (plan.h)
 *                                ready PORT ADDRESS TOKEN   objects are there, data connections may
 * come (data connections come) go ADDRESS TOKEN started (the run) done result COUNT NS PEAK (what
 * the server itself posted) (data connections part; another plan, or the end)
 *
 * Anything may be answered by "error SENTENCE"; the run is over then. ADDRESS and TOKEN are those
 * of the memory that the side registered, in hexadecimal digits. The connection has an adapter of
 * its own, without the options that are measured.
 */
#ifndef SOFTNDK_NDKPERF_CONTROL_H
#define SOFTNDK_NDKPERF_CONTROL_H

#include "ndkping/link.h"
#include "plan.h"

#define CONTROL_DATA "ndkperf control 1" /* private data of the connection, with its zero */

struct control {
    struct link link;
    struct tool_memory memory; /* a line that goes, a line that comes */
};

/* connector: of a connect event, or NULL; control_close() in any case. */
bool control_open(struct control *control, NDK_ADAPTER *adapter, NDK_CONNECTOR *connector);
void control_close(struct control *control);

/* A line to the peer. */
bool control_say(struct control *control, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The peer's next line. idle: nothing is under way, a signal ends the wait at once. */
enum link_result control_hear(struct control *control, char line[PLAN_TEXT_MAX], bool idle);
/* Is the peer gone? Any time, also while nobody waits. */
bool control_lost(struct control *control);

#endif
