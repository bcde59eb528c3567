// SPDX-License-Identifier: MIT
/*
 * What this process has open, shown to whoever asks: a socket of the process (place.h), at which a
 * thread answers each client of the same user with a text that the floor above writes.
 *
 * The thread is started by the first stat_get() and ended by the last stat_put(); it waits in one
 * system call until somebody asks, and takes nothing from who asks. Why a thread of its own: a
 * shard may be inside a consumer's callback that waits or stands in a debugger, which is when one
 * wants to see what is open; and writing the text must not hold up data.
 *
 *   client                 thread                                others
 *   connect                accept: another user's is closed      stat_put: stop, wake, join
 *   recv ... end of file   write(text), send what is taken       fork: holds both locks; the child
 *                          close at the end, or after 2 s          closes its copies, serves
 * nothing
 *
 * Bounds: 4 clients at once (others wait in the socket's queue), 2 s each, 16 MiB of text each. A
 * client that does not read, goes away or sends costs the process no more than that.
 *
 * Locks: life (held through start, stop and join), then table (descriptors, a leaf, for fork). The
 * thread takes table only, and neither while it writes the text.
 */
#ifndef SOFTNDK_STAT_SERVER_H
#define SOFTNDK_STAT_SERVER_H

#include <stdint.h>

#include "stat/text.h"

#define STAT_CLIENTS 4
/* What a client has for taking its answer: 2 s, but in tests. */
extern _Atomic uint32_t stat_client_us;

/* Writes the answer. On the server's thread, no lock held; may take locks of any floor. */
typedef void (*stat_write_fn)(struct stat_text *text);

/* Counted. Any thread; never fails: what goes wrong is a line of the log, once. The first one's
 * function serves. */
void stat_get(stat_write_fn write);
/* The last one returns when the thread has ended and the socket is gone. */
void stat_put(void);

#endif
