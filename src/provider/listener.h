// SPDX-License-Identifier: MIT
/*
 * Listeners: a listening socket in the poll set of the listener's home shard. Accepted descriptors
 * become connectors that are still in startup (startups.h, bounded); each is shown to the consumer
 * once its MPA Request is whole, at most max_pending_connects undecided ones at a time. What is not
 * shown counts as startup until its socket is gone: a refusal takes time, too.
 *
 * Close refuses at once (the socket stops listening on the closer's thread), ends what is in
 * startup, and completes when every connector that was delivered is closed, since each of them has
 * the listener as antecedent.
 *
 * Lock: listener->lock (order: before conn->lock) guards the state and the startup list.
 */
#ifndef SOFTNDK_PROVIDER_LISTENER_H
#define SOFTNDK_PROVIDER_LISTENER_H

#include "provider/connector.h"
#include "provider/startups.h"

enum listener_state { LISTENER_IDLE, LISTENER_LISTENING, LISTENER_CLOSED };

struct listener {
    struct object object;
    NDK_FN_CONNECT_EVENT_CALLBACK event;
    PVOID event_context;
    os_mutex lock;
    enum listener_state state;
    bool paused, resuming; /* resuming: its port was taken meanwhile, `again` tries to listen */
    ADDRESS_FAMILY family; /* the number the consumer asked with */
    struct endpoint *endpoint;
    int fd;
    struct engine_watch watch;
    struct engine_timer again; /* the backlog is looked at again; a reference while armed */
    struct engine_work stop;   /* leaves the poll set, closes the socket; holds a reference */
    struct startups startups;
    struct adapter_row row;
    atomic_uint undecided; /* delivered, neither accepted, rejected nor closed */
};

static inline struct listener *listener_from(NDK_LISTENER *ndk)
{
    return (struct listener *)(void *)ndk;
}

extern const NDK_LISTENER_DISPATCH listener_dispatch;
/* Adapter slot NdkCreateListener. */
NTSTATUS listener_create(NDK_ADAPTER *adapter, NDK_FN_CONNECT_EVENT_CALLBACK event,
                         PVOID event_context, NDK_FN_CREATE_COMPLETION completion, PVOID context,
                         NDK_LISTENER **out);

/* The startup list; connector.c. False: the listener does not take it (closed, paused, full). */
bool listener_startup_add(struct listener *listener, struct connector *connector,
                          const struct os_addr *peer);
void listener_startup_remove(struct listener *listener, struct connector *connector);
/* May the connect event be raised now? Counts the connector as undecided. */
bool listener_may_deliver(struct listener *listener);

#endif
