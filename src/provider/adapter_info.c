// SPDX-License-Identifier: MIT
/*
 * See adapter_info.h. Invariant: a flag is set and a limit is above zero only when the function
 * behind it is there.
 */
#include "provider/adapter_info.h"

#include <string.h>

#include "base/red.h"

bool adapter_negotiate(NDK_VERSION wanted, const struct options *options, NDK_VERSION *runs)
{
    unsigned major, minor, highest;

    options_ndkpi(options, &major, &minor);
    if (wanted.Major < 1 || wanted.Major > major)
        return false;
    /* The last 1.x is 1.2; of the highest major, whatever is offered. */
    highest = wanted.Major == major ? minor : 2;
    if (wanted.Minor > highest)
        return false;
    runs->Major = wanted.Major;
    runs->Minor = (USHORT)(RED("object-version-asked") ? wanted.Minor : highest);
    return true;
}

void adapter_info_fill(NDK_ADAPTER_INFO *info, const struct options *options, NDK_VERSION runs)
{
    memset(info, 0, sizeof *info);
    info->Version = runs;
    info->VendorId = options->vendor_id;
    info->DeviceId = ADAPTER_DEVICE_ID;
    info->MaxRegistrationSize = ADAPTER_MAX_REGISTRATION;
    info->MaxWindowSize = ADAPTER_MAX_REGISTRATION; /* a whole region */
    info->FRMRPageCount = options->frmr_pages;
    info->MaxInitiatorRequestSge = options->max_initiator_sge;
    info->MaxReceiveRequestSge = options->max_receive_sge;
    info->MaxReadRequestSge = options->max_read_sge;
    info->MaxTransferLength = options->max_transfer;
    info->MaxInlineDataSize = options->max_inline;
    info->MaxInboundReadLimit = options->max_inbound_reads;
    info->MaxOutboundReadLimit = options->max_outbound_reads;
    info->MaxReceiveQueueDepth = options->max_receive_depth;
    info->MaxInitiatorQueueDepth = options->max_initiator_depth;
    info->MaxSrqDepth = options->max_srq_depth;
    info->MaxCqDepth = options->max_cq_depth;
    info->LargeRequestThreshold = ADAPTER_LARGE_REQUEST;
    info->MaxCallerData = options->max_caller_data;
    info->MaxCalleeData = options->max_callee_data;
    info->AdapterFlags =
        NDK_ADAPTER_FLAG_MULTI_ENGINE_SUPPORTED | NDK_ADAPTER_FLAG_LOOPBACK_CONNECTIONS_SUPPORTED;
    if (options->cq_moderation)
        info->AdapterFlags |= NDK_ADAPTER_FLAG_CQ_INTERRUPT_MODERATION_SUPPORTED;
    if (options->cq_resize)
        info->AdapterFlags |= NDK_ADAPTER_FLAG_CQ_RESIZE_SUPPORTED;
    if (options->read_sink_not_required)
        info->AdapterFlags |= NDK_ADAPTER_FLAG_RDMA_READ_SINK_NOT_REQUIRED;
    if (runs.Major > 1 || runs.Minor >= 2)
        info->AdapterFlags |= NDK_ADAPTER_FLAG_RDMA_READ_LOCAL_INVALIDATE_SUPPORTED;
    info->RdmaTechnology = (NDK_RDMA_TECHNOLOGY)(NdkiWarp + options->technology);
}

ULONG adapter_info_octets(NDK_VERSION runs, ULONG size)
{
    const ULONG whole = sizeof(NDK_ADAPTER_INFO);
    const ULONG older = (ULONG)offsetof(NDK_ADAPTER_INFO, RdmaTechnology);

    if (size >= whole)
        return whole;
    return runs.Major == 1 && size >= older ? older : 0;
}
