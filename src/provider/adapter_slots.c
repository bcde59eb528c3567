// SPDX-License-Identifier: MIT
/*
 * The adapter's dispatch table and the slot that belongs to no other object: NdkQueryAdapterInfo.
 * Called by consumers; no lock.
 */
#include "provider/adapter_slots.h"

#include <string.h>

#include "base/red.h"
#include "nt/nt.h"
#include "provider/adapter.h"
#include "provider/adapter_info.h"
#include "provider/connector.h"
#include "provider/cq.h"
#include "provider/listener.h"
#include "provider/mr.h"
#include "provider/pd.h"
#include "provider/shared_endpoint.h"

static NTSTATUS adapter_query_info(NDK_ADAPTER *ndk, NDK_ADAPTER_INFO *info, ULONG *size)
{
    struct adapter *adapter = adapter_from(ndk);
    NTSTATUS status = object_injected(&adapter->object, CALL_QUERY_ADAPTER_INFO);
    ULONG have, octets;

    if (status != STATUS_SUCCESS)
        return status;
    if (KeGetCurrentIrql() != PASSIVE_LEVEL)
        nt_finding_of_call(
            "adapter #%u: NdkQueryAdapterInfo: called at IRQL %u (need PASSIVE_LEVEL), rule "
            "NDKPI 6.1",
            adapter->object.id, KeGetCurrentIrql());
    if (!size)
        return object_fail(&adapter->object, CALL_QUERY_ADAPTER_INFO, STATUS_INVALID_PARAMETER,
                           "pBufferSize is NULL, rule NDKPI 6.1");
    have = *size;
    octets = info ? adapter_info_octets(adapter->version, have) : 0;
    if (RED("object-info-overrun") && info)
        octets = sizeof *info;
    if (octets == 0) {
        *size = sizeof *info;
        if (!info)
            return STATUS_BUFFER_TOO_SMALL; /* the size query */
        return object_fail(&adapter->object, CALL_QUERY_ADAPTER_INFO, STATUS_BUFFER_TOO_SMALL,
                           "buffer too small (have %u, need %u octets)", have, *size);
    }
    memcpy(info, &adapter->info, octets);
    *size = octets;
    return STATUS_SUCCESS;
}

const NDK_ADAPTER_DISPATCH adapter_dispatch = {
    .NdkQueryExtension = object_query_extension,
    .NdkQueryAdapterInfo = adapter_query_info,
    .NdkCreateCq = cq_create,
    .NdkCreatePd = pd_create,
    .NdkCreateSharedEndpoint = shared_endpoint_create,
    .NdkCreateConnector = connector_create,
    .NdkCreateListener = listener_create,
    .NdkBuildLAM = lam_build,
    .NdkReleaseLAM = lam_release,
};
