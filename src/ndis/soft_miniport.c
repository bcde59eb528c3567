// SPDX-License-Identifier: MIT
/*
 * The soft provider as a miniport driver. See soft_miniport.h. An instance's context is a record of
 * its interface index alone: each open asks anew for the interface and the options in force.
 *
 * State: the driver's handle, under `lock`, which is held while the driver registers and instances
 * come up, so that two opens of one index make one instance.
 */
#include "ndis/soft_miniport.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "ndis/interfaces.h"
#include "provider/adapter.h"
#include "provider/adapter_info.h"
#include "provider/adapter_left.h"
#include "provider/hooks.h"

#define INTERFACES_MAX 256

struct instance {
    NET_IFINDEX index;
    NDIS_NDK_CAPABILITIES capabilities;
    NDK_ADAPTER_INFO info;
};

static os_mutex lock = OS_MUTEX_INITIALIZER;
static NDIS_HANDLE driver; /* once registered, for the life of the process */

/* 1: found; 0: there is none; negative: -errno. */
static int find(NET_IFINDEX index, struct os_interface *out)
{
    struct os_interface *list = calloc(INTERFACES_MAX, sizeof *list);
    int n = list ? interfaces_list(list, INTERFACES_MAX) : -ENOMEM;
    int found = n < 0 ? n : 0;

    for (int i = 0; i < n && i < INTERFACES_MAX && !found; i++)
        if (list[i].index == index) {
            *out = list[i];
            found = 1;
        }
    free(list);
    return found;
}

static NDIS_STATUS refuse(NDIS_STATUS status, const char *text)
{
    ndis_open_reason(text);
    return status;
}

static NDIS_STATUS open_handler(NDIS_HANDLE context, PNDIS_OPEN_NDK_ADAPTER_PARAMETERS parameters,
                                NDK_ADAPTER **out)
{
    const struct instance *instance = context;
    struct os_interface interface;
    struct options options;
    struct adapter *adapter = NULL;
    NTSTATUS status;
    char text[1024] = "";

    if (hooks_environment_error())
        return refuse(NDIS_STATUS_INVALID_PARAMETER, hooks_environment_error());
    if (find(instance->index, &interface) <= 0)
        return refuse(NDIS_STATUS_ADAPTER_NOT_FOUND, "the interface is gone");
    if (!interfaces_settings(instance->index, NULL, &options, text, sizeof text))
        return refuse(NDIS_STATUS_INVALID_PARAMETER, text);
    status = adapter_open(&interface, &options, parameters->Version, &adapter, text, sizeof text);
    if (status != STATUS_SUCCESS)
        return refuse(status, text);
    *out = (NDK_ADAPTER *)(void *)adapter;
    return NDIS_STATUS_SUCCESS;
}

static VOID close_handler(NDIS_HANDLE context, NDK_ADAPTER *adapter)
{
    (void)context;
    adapter_close(adapter_from(adapter));
}

static size_t tell(NDK_ADAPTER *adapter, void (*line)(void *, const char *), void *context)
{
    return adapter_left_tell(adapter_from(adapter), line, context);
}

static NDIS_STATUS set_options(NDIS_HANDLE handle, NDIS_HANDLE context)
{
    NDIS_NDK_PROVIDER_CHARACTERISTICS characteristics = {
        .Header = {NDIS_OBJECT_TYPE_NDK_PROVIDER_CHARACTERISTICS,
                   NDIS_NDK_PROVIDER_CHARACTERISTICS_REVISION_1,
                   NDIS_SIZEOF_NDK_PROVIDER_CHARACTERISTICS_REVISION_1},
        .OpenNDKAdapterHandler = open_handler,
        .CloseNDKAdapterHandler = close_handler,
    };

    (void)context;
    ndis_driver_tell(handle, tell);
    return NdisSetOptionalHandlers(handle, &characteristics.Header);
}

/* Adapter-wide there is no limit but memory; frames and octets of layer 2 are the host's. */
static void describe(struct instance *instance)
{
    NDIS_NDK_CAPABILITIES *c = &instance->capabilities;
    NDK_VERSION runs = {0, 0};
    struct options options;
    unsigned major, minor;
    char text[1024];

    if (!interfaces_settings(instance->index, NULL, &options, text, sizeof text))
        options_defaults(&options); /* each open says what is wrong */
    options_ndkpi(&options, &major, &minor);
    runs.Major = (USHORT)major;
    runs.Minor = (USHORT)minor;
    adapter_info_fill(&instance->info, &options, runs);
    c->Header.Type = NDIS_OBJECT_TYPE_DEFAULT;
    c->Header.Revision = NDIS_NDK_CAPABILITIES_REVISION_1;
    c->Header.Size = NDIS_SIZEOF_NDK_CAPABILITIES_REVISION_1;
    c->MaxQpCount = c->MaxCqCount = c->MaxMrCount = c->MaxPdCount = UINT32_MAX;
    c->MaxMwCount = c->MaxSrqCount = UINT32_MAX;
    c->MissingCounterMask = NDIS_NDK_PERFORMANCE_COUNTER_MASK(RDMAInFrames) |
                            NDIS_NDK_PERFORMANCE_COUNTER_MASK(RDMAOutFrames) |
                            NDIS_NDK_PERFORMANCE_COUNTER_MASK(RDMAInOctets) |
                            NDIS_NDK_PERFORMANCE_COUNTER_MASK(RDMAOutOctets);
    c->NdkInfo = &instance->info;
}

static NDIS_STATUS initialize(NDIS_HANDLE handle, NDIS_HANDLE context,
                              PNDIS_MINIPORT_INIT_PARAMETERS parameters)
{
    NDIS_MINIPORT_ADAPTER_ATTRIBUTES attributes = {
        .NDKAttributes = {
            .Header = {NDIS_OBJECT_TYPE_MINIPORT_ADAPTER_NDK_ATTRIBUTES,
                       NDIS_MINIPORT_ADAPTER_NDK_ATTRIBUTES_REVISION_1,
                       NDIS_SIZEOF_MINIPORT_ADAPTER_NDK_ATTRIBUTES_REVISION_1},
            .Enabled = TRUE,
        }};
    struct instance *instance = calloc(1, sizeof *instance);
    NDIS_STATUS status;

    (void)context;
    if (!instance)
        return NDIS_STATUS_RESOURCES;
    instance->index = parameters->IfIndex;
    describe(instance);
    attributes.NDKAttributes.NdkCapabilities = &instance->capabilities;
    ndis_adapter_context(handle, instance);
    status = NdisMSetMiniportAttributes(handle, &attributes);
    if (status != NDIS_STATUS_SUCCESS)
        free(instance);
    return status;
}

static VOID halt(NDIS_HANDLE context, NDIS_HALT_ACTION action)
{
    (void)action;
    free(context);
}

static NTSTATUS register_driver(void)
{
    NDIS_MINIPORT_DRIVER_CHARACTERISTICS characteristics = {
        .Header = {NDIS_OBJECT_TYPE_MINIPORT_DRIVER_CHARACTERISTICS,
                   NDIS_MINIPORT_DRIVER_CHARACTERISTICS_REVISION_2,
                   NDIS_SIZEOF_MINIPORT_DRIVER_CHARACTERISTICS_REVISION_2},
        .MajorNdisVersion = 6,
        .MinorNdisVersion = 50,
        .SetOptionsHandler = set_options,
        .InitializeHandlerEx = initialize,
        .HaltHandlerEx = halt,
    };

    return driver ? STATUS_SUCCESS
                  : NdisMRegisterMiniportDriver(NULL, NULL, NULL, &characteristics, &driver);
}

NTSTATUS soft_miniport_bring_up(NET_IFINDEX index, char *error, size_t size)
{
    NTSTATUS status = STATUS_SUCCESS;
    struct os_interface interface;
    NDIS_HANDLE instance;
    int found;

    if (ndis_adapter_known(index))
        return STATUS_SUCCESS;
    if (!interfaces_ready(error, size))
        return STATUS_INVALID_PARAMETER;
    found = find(index, &interface);
    if (found < 0) {
        snprintf(error, size, "cannot list the interfaces (error %d)", -found);
        return STATUS_INSUFFICIENT_RESOURCES;
    }
    os_mutex_lock(&lock);
    if (found && !ndis_adapter_known(index)) {
        status = register_driver();
        if (status == STATUS_SUCCESS)
            status = ndis_adapter_add(driver, index, &instance);
        if (status == STATUS_OBJECT_NAME_COLLISION)
            status = STATUS_SUCCESS; /* another driver was quicker */
        if (status != STATUS_SUCCESS)
            snprintf(error, size, "the soft miniport does not come up (status 0x%08x)",
                     (unsigned)status);
    }
    os_mutex_unlock(&lock);
    return status;
}
