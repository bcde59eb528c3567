// SPDX-License-Identifier: MIT
/* What drivers.c and registry.c share. Handles of drivers and instances are pointers to these. */
#ifndef SOFTNDK_NDIS_REGISTRY_INTERNAL_H
#define SOFTNDK_NDIS_REGISTRY_INTERNAL_H

#include "ndis/registry.h"
#include "os/os.h"

struct ndis_driver {
    NDIS_HANDLE context;
    MINIPORT_INITIALIZE_HANDLER initialize;
    MINIPORT_HALT_HANDLER halt;
    /* Set in SetOptionsHandler, constant afterwards. */
    OPEN_NDK_ADAPTER_HANDLER open;
    CLOSE_NDK_ADAPTER_HANDLER close;
    ndis_tell tell;
    unsigned instances; /* registry's lock */
};

struct ndis_instance {
    struct ndis_driver *driver;
    NET_IFINDEX index;
    NDIS_HANDLE context; /* set in InitializeHandlerEx */
    /* The registry's lock: */
    struct ndis_instance *next;
    bool up, ndk, enabled;
    unsigned opens; /* those that have begun included */
};

/* From NdisMSetMiniportAttributes. */
void ndis_instance_attributes(struct ndis_instance *it, bool enabled);
/* Enables; or disables and waits until its opens are closed or it is enabled again. */
void ndis_instance_enable(struct ndis_instance *it, bool enable);
/* Whether no instance of it is left; a finding when one is. */
bool ndis_driver_idle(struct ndis_driver *driver);

#endif
