// SPDX-License-Identifier: MIT
/*
 * SIGINT and SIGTERM as events: a thread takes the signals and wakes whoever waits.
 *
 * A signal handler may not call KeSetEvent, so no handler is used. The first signal asks the
 * program to end in good order, with whatever comes within 0.3 s of it; the next one ends the
 * process at once.
 */
#ifndef SOFTNDK_TOOL_STOP_H
#define SOFTNDK_TOOL_STOP_H

#include <stdbool.h>
#include <wdm.h>

/* An event that a stop signals. It must stay in place until tool_stop_unwatch(). */
struct tool_stop_watch {
    LIST_ENTRY link;
    KEVENT *event;
};

/* Before the first adapter is opened, so that the library's threads leave the signals alone. False:
 * no thread could be started. */
bool tool_stop_begin(void);
void tool_stop_end(void);

/* Was the program asked to end? */
bool tool_stopped(void);

/* A watch that begins after the stop signals at once. */
void tool_stop_watch(struct tool_stop_watch *watch, KEVENT *event);
void tool_stop_unwatch(struct tool_stop_watch *watch);

#endif
