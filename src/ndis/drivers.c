// SPDX-License-Identifier: MIT
/*
 * The calls of ndis.h that a miniport driver makes: their structures are checked (type, revision,
 * size) before anything is taken from them. State: none of its own; see registry_internal.h.
 */
#include <stdlib.h>

#include "base/log.h"
#include "base/red.h"
#include "ndis/registry_internal.h"
#include "nt/nt.h"

static bool header_ok(const char *call, const NDIS_OBJECT_HEADER *h, unsigned type,
                      unsigned revision, size_t size)
{
    if (h && ((h->Type == type && h->Revision >= revision && h->Size >= size) ||
              RED("ndis-header-unchecked")))
        return true;
    if (!h)
        log_error("%s: the structure is NULL", call);
    else
        log_error("%s: wrong header: type 0x%02x, revision %u, size %u (need 0x%02x, %u, %zu)",
                  call, h->Type, h->Revision, h->Size, type, revision, size);
    return false;
}

NDIS_STATUS NdisMRegisterMiniportDriver(PDRIVER_OBJECT object, PUNICODE_STRING path,
                                        NDIS_HANDLE context,
                                        PNDIS_MINIPORT_DRIVER_CHARACTERISTICS given,
                                        PNDIS_HANDLE out)
{
    struct ndis_driver *driver;
    NDIS_STATUS status = NDIS_STATUS_SUCCESS;

    (void)object;
    (void)path;
    if (!out || !header_ok("NdisMRegisterMiniportDriver", given ? &given->Header : NULL,
                           NDIS_OBJECT_TYPE_MINIPORT_DRIVER_CHARACTERISTICS,
                           NDIS_MINIPORT_DRIVER_CHARACTERISTICS_REVISION_2,
                           NDIS_SIZEOF_MINIPORT_DRIVER_CHARACTERISTICS_REVISION_2))
        return NDIS_STATUS_BAD_CHARACTERISTICS;
    if (given->MajorNdisVersion < 6 ||
        (given->MajorNdisVersion == 6 && given->MinorNdisVersion < 30)) {
        log_error("NdisMRegisterMiniportDriver: NDIS %u.%u has no NDK (need 6.30)",
                  given->MajorNdisVersion, given->MinorNdisVersion);
        return NDIS_STATUS_BAD_VERSION;
    }
    if (!given->InitializeHandlerEx || !given->HaltHandlerEx) {
        log_error("NdisMRegisterMiniportDriver: InitializeHandlerEx or HaltHandlerEx is NULL");
        return NDIS_STATUS_BAD_CHARACTERISTICS;
    }
    driver = calloc(1, sizeof *driver);
    if (!driver)
        return NDIS_STATUS_RESOURCES;
    driver->context = context;
    driver->initialize = given->InitializeHandlerEx;
    driver->halt = given->HaltHandlerEx;
    driver->oid = given->OidRequestHandler;
    driver->direct_oid = given->DirectOidRequestHandler;
    *out = driver;
    if (given->SetOptionsHandler)
        status = given->SetOptionsHandler(driver, context);
    if (status != NDIS_STATUS_SUCCESS) {
        *out = NULL;
        free(driver);
    }
    return status;
}

VOID NdisMDeregisterMiniportDriver(NDIS_HANDLE handle)
{
    struct ndis_driver *driver = handle;

    if (ndis_driver_idle(driver))
        free(driver);
}

NDIS_STATUS NdisSetOptionalHandlers(NDIS_HANDLE handle, PNDIS_DRIVER_OPTIONAL_HANDLERS handlers)
{
    struct ndis_driver *driver = handle;
    const NDIS_NDK_PROVIDER_CHARACTERISTICS *given = (const void *)handlers;

    if (!header_ok("NdisSetOptionalHandlers", handlers,
                   NDIS_OBJECT_TYPE_NDK_PROVIDER_CHARACTERISTICS,
                   NDIS_NDK_PROVIDER_CHARACTERISTICS_REVISION_1,
                   NDIS_SIZEOF_NDK_PROVIDER_CHARACTERISTICS_REVISION_1))
        return NDIS_STATUS_BAD_CHARACTERISTICS;
    if (!given->OpenNDKAdapterHandler || !given->CloseNDKAdapterHandler) {
        log_error("NdisSetOptionalHandlers: the open or the close handler is NULL");
        return NDIS_STATUS_BAD_CHARACTERISTICS;
    }
    if (!driver->oid || !driver->direct_oid) {
        log_error("NdisSetOptionalHandlers: %s is NULL (need it for the OIDs of NDK, rule 3.4)",
                  driver->oid ? "DirectOidRequestHandler" : "OidRequestHandler");
        return NDIS_STATUS_BAD_CHARACTERISTICS;
    }
    driver->open = given->OpenNDKAdapterHandler;
    driver->close = given->CloseNDKAdapterHandler;
    return NDIS_STATUS_SUCCESS;
}

void ndis_driver_tell(NDIS_HANDLE handle, ndis_tell tell)
{
    struct ndis_driver *driver = handle;

    driver->tell = tell;
}

void ndis_driver_takes_options(NDIS_HANDLE handle)
{
    struct ndis_driver *driver = handle;

    driver->takes_options = true;
}

static NDIS_STATUS set_registration(struct ndis_instance *it,
                                    const NDIS_MINIPORT_ADAPTER_REGISTRATION_ATTRIBUTES *given)
{
    if (!header_ok("NdisMSetMiniportAttributes", &given->Header,
                   NDIS_OBJECT_TYPE_MINIPORT_ADAPTER_REGISTRATION_ATTRIBUTES,
                   NDIS_MINIPORT_ADAPTER_REGISTRATION_ATTRIBUTES_REVISION_1,
                   NDIS_SIZEOF_MINIPORT_ADAPTER_REGISTRATION_ATTRIBUTES_REVISION_1))
        return NDIS_STATUS_INVALID_PARAMETER;
    /* In InitializeHandlerEx: nobody else looks before it is up. */
    it->context = given->MiniportAdapterContext;
    it->registered = true;
    return NDIS_STATUS_SUCCESS;
}

static NDIS_STATUS set_ndk(struct ndis_instance *it,
                           const NDIS_MINIPORT_ADAPTER_NDK_ATTRIBUTES *given)
{
    const NDIS_NDK_CAPABILITIES *can;

    if (!header_ok("NdisMSetMiniportAttributes", &given->Header,
                   NDIS_OBJECT_TYPE_MINIPORT_ADAPTER_NDK_ATTRIBUTES,
                   NDIS_MINIPORT_ADAPTER_NDK_ATTRIBUTES_REVISION_1,
                   NDIS_SIZEOF_MINIPORT_ADAPTER_NDK_ATTRIBUTES_REVISION_1))
        return NDIS_STATUS_INVALID_PARAMETER;
    can = given->NdkCapabilities;
    if (!header_ok("NdisMSetMiniportAttributes: NdkCapabilities", can ? &can->Header : NULL,
                   NDIS_OBJECT_TYPE_DEFAULT, NDIS_NDK_CAPABILITIES_REVISION_1,
                   NDIS_SIZEOF_NDK_CAPABILITIES_REVISION_1))
        return NDIS_STATUS_INVALID_PARAMETER;
    if (!it->registered && !RED("ndis-attributes-in-any-order")) {
        log_error("NdisMSetMiniportAttributes: NDK attributes of interface %u before its "
                  "registration attributes",
                  (unsigned)it->index);
        return NDIS_STATUS_INVALID_PARAMETER;
    }
    ndis_instance_attributes(it, given->Enabled);
    return NDIS_STATUS_SUCCESS;
}

NDIS_STATUS NdisMSetMiniportAttributes(NDIS_HANDLE instance,
                                       PNDIS_MINIPORT_ADAPTER_ATTRIBUTES attributes)
{
    if (attributes &&
        attributes->Header.Type == NDIS_OBJECT_TYPE_MINIPORT_ADAPTER_REGISTRATION_ATTRIBUTES)
        return set_registration(instance, &attributes->RegistrationAttributes);
    if (!attributes) {
        log_error("NdisMSetMiniportAttributes: the structure is NULL");
        return NDIS_STATUS_INVALID_PARAMETER;
    }
    return set_ndk(instance, &attributes->NDKAttributes);
}

NDIS_STATUS NdisMNetPnPEvent(NDIS_HANDLE instance, PNET_PNP_EVENT_NOTIFICATION event)
{
    bool enable;

    if (!header_ok("NdisMNetPnPEvent", event ? &event->Header : NULL, NDIS_OBJECT_TYPE_DEFAULT,
                   NET_PNP_EVENT_NOTIFICATION_REVISION_1,
                   NDIS_SIZEOF_NET_PNP_EVENT_NOTIFICATION_REVISION_1))
        return NDIS_STATUS_INVALID_PARAMETER;
    enable = event->NetPnPEvent.NetEvent == NetEventNDKEnable;
    if (!enable && event->NetPnPEvent.NetEvent != NetEventNDKDisable)
        return NDIS_STATUS_NOT_SUPPORTED;
    if (ndis_in_oid_handler()) {
        nt_finding_of_call(
            "NdisMNetPnPEvent: called in an OID handler, where it would wait for itself "
            "(need a work item), rule 3.5");
        return NDIS_STATUS_FAILURE;
    }
    return ndis_instance_enable(instance, enable) ? NDIS_STATUS_SUCCESS
                                                  : NDIS_STATUS_ADAPTER_NOT_READY;
}
