// SPDX-License-Identifier: MIT
/* For tests that are a miniport: what every MiniportInitializeEx of an NDK provider tells NDIS. */
#ifndef SOFTNDK_NDIS_TESTING_H
#define SOFTNDK_NDIS_TESTING_H

#include <ndis.h>

/* The registration attributes: the context that handlers get. */
static inline NDIS_STATUS miniport_set_context(NDIS_HANDLE instance, NDIS_HANDLE context)
{
    NDIS_MINIPORT_ADAPTER_ATTRIBUTES attributes = {
        .RegistrationAttributes = {
            .Header = {NDIS_OBJECT_TYPE_MINIPORT_ADAPTER_REGISTRATION_ATTRIBUTES, 1,
                       NDIS_SIZEOF_MINIPORT_ADAPTER_REGISTRATION_ATTRIBUTES_REVISION_1},
            .MiniportAdapterContext = context,
        }};

    return NdisMSetMiniportAttributes(instance, &attributes);
}

/* The NDK attributes: enabled, with capabilities that say nothing. */
static inline NDIS_STATUS miniport_set_ndk(NDIS_HANDLE instance)
{
    NDIS_NDK_CAPABILITIES can = {
        .Header = {NDIS_OBJECT_TYPE_DEFAULT, 1, NDIS_SIZEOF_NDK_CAPABILITIES_REVISION_1}};
    NDIS_MINIPORT_ADAPTER_ATTRIBUTES attributes = {
        .NDKAttributes = {
            .Header = {NDIS_OBJECT_TYPE_MINIPORT_ADAPTER_NDK_ATTRIBUTES, 1,
                       NDIS_SIZEOF_MINIPORT_ADAPTER_NDK_ATTRIBUTES_REVISION_1},
            .Enabled = TRUE,
            .NdkCapabilities = &can,
        }};

    return NdisMSetMiniportAttributes(instance, &attributes);
}

#endif
