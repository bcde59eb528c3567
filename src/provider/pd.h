// SPDX-License-Identifier: MIT
/* Protection domain: parent of MRs, QPs and SRQs, owner of the privileged token. */
#ifndef SOFTNDK_PROVIDER_PD_H
#define SOFTNDK_PROVIDER_PD_H

#include "provider/mem.h"
#include "provider/object.h"

struct pd {
    struct object object;
    /* Names every adapter page for local use, nothing for the peer: the slot is never published, so
     * an inbound access with it is an invalid token. */
    struct mem_slot *privileged;
    uint32_t privileged_token;
};

static inline struct pd *pd_from(NDK_PD *ndk)
{
    return (struct pd *)(void *)ndk;
}

/* Slots of NDK_ADAPTER_DISPATCH and NDK_PD_DISPATCH that live here. */
NTSTATUS pd_create(NDK_ADAPTER *adapter, NDK_FN_CREATE_COMPLETION completion, PVOID context,
                   NDK_PD **out);
extern const NDK_PD_DISPATCH pd_dispatch;

#endif
