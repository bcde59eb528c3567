// SPDX-License-Identifier: MIT
/*
 * The soft provider as a miniport driver. See soft_miniport.h. An instance knows its interface by
 * index alone: each open asks anew for the interface and the options in force.
 *
 * State: the driver's handle, under `lock`, which is held while the driver registers and instances
 * come up, so that two opens of one index make one instance. An instance's own lock (leaf, but for
 * the queue of work items) guards what was wanted last and how many events were ordered.
 *
 * Enable and disable: OID_NDK_SET_STATE takes effect at once for opens, and orders an event, which
 * a work item sends; never the handler, which NDIS is waiting for. A disable pends in its work item
 * until the last adapter is closed, and an enable may be ordered meanwhile: events are numbered,
 * and each is sent when the one before has taken effect, so the last one ordered is the last one
 * that NDIS sees.
 */
#include "ndis/soft_miniport.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/red.h"
#include "ndis/interfaces.h"
#include "ndis/soft_oids.h"
#include "os/os_sync.h"
#include "provider/adapter.h"
#include "provider/adapter_info.h"
#include "provider/adapter_left.h"
#include "provider/hooks.h"

struct instance {
    NET_IFINDEX index;
    NDIS_HANDLE handle;
    bool allowed; /* *NetworkDirect */
    NDIS_NDK_CAPABILITIES capabilities;
    NDK_ADAPTER_INFO info;
    os_mutex lock;
    os_cond quiet;              /* the last event has returned */
    bool enabled;               /* wanted */
    unsigned long long ordered; /* events */
    unsigned sending;           /* work items that are queued or run */
};

/* An event that is ordered. */
struct event {
    struct instance *of;
    NDIS_HANDLE work;
    unsigned long long number; /* 1 is the first */
    bool enable;
};

static os_mutex lock = OS_MUTEX_INITIALIZER;
static NDIS_HANDLE driver; /* once registered, for the life of the process */

/* ---- adapters ---- */

static NDIS_STATUS refuse(NDIS_STATUS status, const char *text)
{
    ndis_open_reason(text);
    return status;
}

static NDIS_STATUS open_handler(NDIS_HANDLE context, PNDIS_OPEN_NDK_ADAPTER_PARAMETERS parameters,
                                NDK_ADAPTER **out)
{
    struct instance *instance = context;
    struct os_interface interface;
    struct options options;
    struct adapter *adapter = NULL;
    NTSTATUS status;
    char text[1024] = "";
    bool enabled;
    int found;

    if (hooks_environment_error())
        return refuse(NDIS_STATUS_INVALID_PARAMETER, hooks_environment_error());
    os_mutex_lock(&instance->lock);
    enabled = instance->enabled || RED("ndis-open-while-disabled");
    os_mutex_unlock(&instance->lock);
    if (!enabled) {
        snprintf(text, sizeof text, "interface %u: NDK is disabled", (unsigned)instance->index);
        return refuse(NDIS_STATUS_ADAPTER_NOT_READY, text);
    }
    found = interfaces_find(instance->index, &interface);
    if (found <= 0)
        return found == 0 ? refuse(NDIS_STATUS_ADAPTER_NOT_FOUND, "the interface is gone")
                          : refuse(NDIS_STATUS_RESOURCES, "cannot list the interfaces");
    if (!interfaces_settings(instance->index, ndis_open_options(), &options, text, sizeof text))
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

/* ---- enable, disable ---- */

static void send(NDIS_HANDLE handle, bool enable)
{
    NET_PNP_EVENT_NOTIFICATION event = {
        .Header = {NDIS_OBJECT_TYPE_DEFAULT, NET_PNP_EVENT_NOTIFICATION_REVISION_1,
                   NDIS_SIZEOF_NET_PNP_EVENT_NOTIFICATION_REVISION_1},
        .NetPnPEvent = {.NetEvent = enable ? NetEventNDKEnable : NetEventNDKDisable},
    };

    (void)NdisMNetPnPEvent(handle, &event);
}

static VOID send_ordered(PVOID parameter, NDIS_HANDLE work)
{
    struct event *event = parameter;
    struct instance *instance = event->of;

    if (!RED("ndis-events-overtake"))
        ndis_adapter_events_wait(instance->handle, event->number - 1);
    else if (!event->enable)
        os_sleep_until(&(struct os_deadline){OS_MONO, os_mono_100ns() + 1000000});
    send(instance->handle, event->enable);
    NdisFreeIoWorkItem(work);
    free(event);
    os_mutex_lock(&instance->lock);
    instance->sending--;
    os_cond_broadcast(&instance->quiet);
    os_mutex_unlock(&instance->lock);
}

/* Orders the event that leads to the state, unless that is the state already. */
static NDIS_STATUS order(struct instance *instance, bool enable)
{
    struct event *event = calloc(1, sizeof *event);

    if (event)
        event->work = NdisAllocateIoWorkItem(instance->handle);
    if (!event || !event->work) {
        free(event);
        return NDIS_STATUS_RESOURCES;
    }
    event->of = instance;
    event->enable = enable;
    os_mutex_lock(&instance->lock);
    if (instance->enabled == enable) {
        os_mutex_unlock(&instance->lock);
        NdisFreeIoWorkItem(event->work);
        free(event);
        return NDIS_STATUS_SUCCESS;
    }
    instance->enabled = enable;
    instance->sending++;
    event->number = ++instance->ordered;
    NdisQueueIoWorkItem(event->work, send_ordered, event); /* under the lock: in their order */
    os_mutex_unlock(&instance->lock);
    return NDIS_STATUS_SUCCESS;
}

static NDIS_STATUS set_state(struct instance *instance, struct _SET *set)
{
    bool enable;

    set->BytesRead = 0;
    set->BytesNeeded = sizeof(BOOLEAN);
    if (!set->InformationBuffer || set->InformationBufferLength != sizeof(BOOLEAN))
        return NDIS_STATUS_INVALID_LENGTH;
    enable = *(const BOOLEAN *)set->InformationBuffer != FALSE;
    set->BytesRead = sizeof(BOOLEAN);
    if (enable && !instance->allowed)
        return NDIS_STATUS_ADAPTER_NOT_READY;
    if (RED("ndis-event-in-handler")) {
        send(instance->handle, enable);
        return NDIS_STATUS_SUCCESS;
    }
    return order(instance, enable);
}

static NDIS_STATUS oid_request(NDIS_HANDLE context, PNDIS_OID_REQUEST request)
{
    struct instance *instance = context;

    if (request->RequestType == NdisRequestSetInformation &&
        request->DATA.SET_INFORMATION.Oid == OID_NDK_SET_STATE)
        return set_state(instance, &request->DATA.SET_INFORMATION);
    return soft_oids_query(instance->index, request);
}

/* Every request is answered before the handler returns. */
static VOID cancel_oid_request(NDIS_HANDLE context, PVOID id)
{
    (void)context;
    (void)id;
}

/* ---- the driver ---- */

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
    ndis_driver_takes_options(handle);
    return NdisSetOptionalHandlers(handle, &characteristics.Header);
}

/* Adapter-wide there is no limit but memory. */
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
    c->MissingCounterMask = 0;
    c->NdkInfo = &instance->info;
}

static void instance_free(struct instance *instance)
{
    os_cond_destroy(&instance->quiet);
    os_mutex_destroy(&instance->lock);
    free(instance);
}

/* *NetworkDirect, 1 where nothing is said. */
static bool read_keyword(NDIS_HANDLE handle)
{
    NDIS_CONFIGURATION_OBJECT object = {
        .Header = {NDIS_OBJECT_TYPE_CONFIGURATION_OBJECT, NDIS_CONFIGURATION_OBJECT_REVISION_1,
                   NDIS_SIZEOF_CONFIGURATION_OBJECT_REVISION_1},
        .NdisHandle = handle,
    };
    NDIS_STRING keyword = NETWORK_DIRECT_KEYWORD;
    PNDIS_CONFIGURATION_PARAMETER value;
    NDIS_HANDLE configuration;
    NDIS_STATUS status;
    bool allowed = true;

    if (NdisOpenConfigurationEx(&object, &configuration) != NDIS_STATUS_SUCCESS)
        return true;
    NdisReadConfiguration(&status, &value, configuration, &keyword, NdisParameterInteger);
    if (status == NDIS_STATUS_SUCCESS)
        allowed = value->ParameterData.IntegerData != 0;
    NdisCloseConfiguration(configuration);
    return allowed;
}

static NDIS_STATUS set_attributes(struct instance *instance)
{
    NDIS_MINIPORT_ADAPTER_ATTRIBUTES registration = {
        .RegistrationAttributes = {
            .Header = {NDIS_OBJECT_TYPE_MINIPORT_ADAPTER_REGISTRATION_ATTRIBUTES,
                       NDIS_MINIPORT_ADAPTER_REGISTRATION_ATTRIBUTES_REVISION_1,
                       NDIS_SIZEOF_MINIPORT_ADAPTER_REGISTRATION_ATTRIBUTES_REVISION_1},
            .MiniportAdapterContext = instance,
            .InterfaceType = NdisInterfaceInternal,
        }};
    NDIS_MINIPORT_ADAPTER_ATTRIBUTES ndk = {
        .NDKAttributes = {
            .Header = {NDIS_OBJECT_TYPE_MINIPORT_ADAPTER_NDK_ATTRIBUTES,
                       NDIS_MINIPORT_ADAPTER_NDK_ATTRIBUTES_REVISION_1,
                       NDIS_SIZEOF_MINIPORT_ADAPTER_NDK_ATTRIBUTES_REVISION_1},
            .Enabled = instance->allowed,
            .NdkCapabilities = &instance->capabilities,
        }};
    NDIS_STATUS status = NdisMSetMiniportAttributes(instance->handle, &registration);

    return status == NDIS_STATUS_SUCCESS ? NdisMSetMiniportAttributes(instance->handle, &ndk)
                                         : status;
}

static NDIS_STATUS initialize(NDIS_HANDLE handle, NDIS_HANDLE context,
                              PNDIS_MINIPORT_INIT_PARAMETERS parameters)
{
    struct instance *instance = calloc(1, sizeof *instance);
    NDIS_STATUS status;

    (void)context;
    if (!instance)
        return NDIS_STATUS_RESOURCES;
    if (RED("soft-open-before-up"))
        os_sleep_us(50000);
    os_mutex_init(&instance->lock);
    os_cond_init(&instance->quiet);
    instance->index = parameters->IfIndex;
    instance->handle = handle;
    instance->allowed = instance->enabled = read_keyword(handle);
    describe(instance);
    status = set_attributes(instance);
    if (status != NDIS_STATUS_SUCCESS)
        instance_free(instance);
    return status;
}

/* Nothing is open any more, so an event that pends ends. */
static VOID halt(NDIS_HANDLE context, NDIS_HALT_ACTION action)
{
    struct instance *instance = context;

    (void)action;
    os_mutex_lock(&instance->lock);
    while (instance->sending)
        os_cond_wait(&instance->quiet, &instance->lock);
    os_mutex_unlock(&instance->lock);
    instance_free(instance);
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
        .OidRequestHandler = oid_request,
        .CancelOidRequestHandler = cancel_oid_request,
        .DirectOidRequestHandler = oid_request,
        .CancelDirectOidRequestHandler = cancel_oid_request,
    };

    return driver ? STATUS_SUCCESS
                  : NdisMRegisterMiniportDriver(NULL, NULL, NULL, &characteristics, &driver);
}

/* One that another open is just bringing up is not there yet; that open holds the lock. */
static bool is_up(NET_IFINDEX index)
{
    static atomic_bool begun;

    if (RED("soft-open-before-up") && atomic_exchange(&begun, true))
        return true;
    return ndis_adapter_known(index);
}

NTSTATUS soft_miniport_bring_up(NET_IFINDEX index, char *error, size_t size)
{
    NTSTATUS status = STATUS_SUCCESS;
    struct os_interface interface;
    NDIS_HANDLE instance;
    int found;

    if (is_up(index))
        return STATUS_SUCCESS;
    if (!interfaces_ready(error, size))
        return STATUS_INVALID_PARAMETER;
    found = interfaces_find(index, &interface);
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
