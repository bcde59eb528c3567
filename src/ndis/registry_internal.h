// SPDX-License-Identifier: MIT
/*
 * What the files of the registry share: drivers.c (what miniport drivers call), instances.c (their
 * instances, enable and disable), registry.c (opens), oid.c (requests). Handles of drivers and
 * instances are pointers to these structures.
 */
#ifndef SOFTNDK_NDIS_REGISTRY_INTERNAL_H
#define SOFTNDK_NDIS_REGISTRY_INTERNAL_H

#include "ndis/registry.h"
#include "os/os.h"
#include "os/os_sync.h"

struct ndis_driver {
    NDIS_HANDLE context;
    MINIPORT_INITIALIZE_HANDLER initialize;
    MINIPORT_HALT_HANDLER halt;
    MINIPORT_OID_REQUEST_HANDLER oid, direct_oid;
    /* Set in SetOptionsHandler, constant afterwards. */
    OPEN_NDK_ADAPTER_HANDLER open;
    CLOSE_NDK_ADAPTER_HANDLER close;
    ndis_tell tell;
    bool takes_options;
    unsigned instances; /* registry's lock */
};

enum ndis_stage { NDIS_STARTING, NDIS_UP, NDIS_STOPPING };

struct ndis_instance {
    struct ndis_driver *driver;
    NET_IFINDEX index;
    /* Set in InitializeHandlerEx, constant afterwards. */
    NDIS_HANDLE context;
    bool registered; /* the registration attributes are set */
    bool allowed;    /* *NetworkDirect is not 0 */
    /* The registry's lock: */
    struct ndis_instance *next;
    enum ndis_stage stage;
    bool ndk, enabled;
    unsigned opens;             /* those that have begun included */
    unsigned calls;             /* OID requests, and questions for its state, that run */
    unsigned events;            /* calls of NdisMNetPnPEvent() that run */
    unsigned long long changes; /* rises with each event that has taken effect */
};

/* The registry's lock, a leaf, and what is broadcast when a count, a stage or a state changes. */
extern os_mutex ndis_lock;
extern os_cond ndis_changed;

/* The instance of the index once it is up (one that is starting is waited for), or NULL. With the
 * lock, which is dropped while it waits. */
struct ndis_instance *ndis_instance_up(NET_IFINDEX index);
/* The same, counted as a call: it is not removed before ndis_instance_leave(). Without the lock. */
struct ndis_instance *ndis_instance_enter(NET_IFINDEX index);
void ndis_instance_leave(struct ndis_instance *it);

/* From NdisMSetMiniportAttributes. */
void ndis_instance_attributes(struct ndis_instance *it, bool enabled);
/* Enables; or disables and waits until its opens are closed or a later event has taken effect.
 * False, and nothing is done: it cannot be enabled, *NetworkDirect is 0. */
bool ndis_instance_enable(struct ndis_instance *it, bool enable);
/* How long the event of an accepted OID_NDK_SET_STATE may take; shortened by tests. */
extern unsigned ndis_event_limit_ms;
/* Whether no instance of it is left; a finding when one is. */
bool ndis_driver_idle(struct ndis_driver *driver);
/* Whether this thread is in an OID handler. */
bool ndis_in_oid_handler(void);

#endif
