// SPDX-License-Identifier: MIT
/*
 * One client of the server: from its connect event to its end, on a thread of its own.
 */
#ifndef SOFTNDK_NDKPING_SESSION_H
#define SOFTNDK_NDKPING_SESSION_H

#include <pthread.h>
#include <stdatomic.h>

#include "ndkping.h"

struct session {
    LIST_ENTRY entry; /* the server's */
    const struct ping_options *options;
    NDK_ADAPTER *adapter;
    NDK_CONNECTOR *connector; /* of the connect event; the session closes it */
    KEVENT *ended_event;      /* signalled behind `ended` */
    pthread_t thread;
    bool started;
    atomic_bool ended;
    int result; /* an exit status, once ended */
};

/* False: no thread; the connector is still the caller's. */
bool session_start(struct session *session);
/* Waits for it. */
void session_join(struct session *session);

#endif
