// SPDX-License-Identifier: MIT
/*
 * Protection domains and their dispatch table. A PD owns one token slot, the privileged token,
 * which is never published: it names nothing for the peer. Called by consumers; no lock.
 */
#include "provider/pd.h"

#include "base/red.h"
#include "provider/adapter.h"
#include "provider/mr.h"
#include "provider/mw.h"
#include "provider/qp.h"
#include "provider/srq.h"

static void pd_release(struct object *object)
{
    struct pd *pd = CONTAINING_RECORD(object, struct pd, object);

    if (pd->privileged)
        mem_slot_free(object->adapter->tokens, pd->privileged);
}

static const struct object_class pd_class = {
    .type = NdkObjectTypePd,
    .name = "pd",
    .size = sizeof(struct pd),
    .release = pd_release,
};

/* NULL: no memory, nothing left behind. */
static struct pd *pd_new(struct adapter *adapter)
{
    struct object *object = object_new(&pd_class, &adapter->object, &pd_dispatch);
    struct mem_region region = {
        .length = UINT64_MAX,
        .rights = ACCESS_LOCAL_READ | ACCESS_LOCAL_WRITE,
    };
    struct pd *pd;

    if (!object)
        return NULL;
    pd = CONTAINING_RECORD(object, struct pd, object);
    if (adapter->options.read_sink_not_required)
        region.rights |= ACCESS_READ_SINK;
    region.domain = pd;
    pd->privileged = mem_slot_new(adapter->tokens, &region);
    if (!pd->privileged) {
        object_discard(object);
        return NULL;
    }
    pd->privileged_token = mem_token(pd->privileged);
    return pd;
}

NTSTATUS pd_create(NDK_ADAPTER *ndk, NDK_FN_CREATE_COMPLETION completion, PVOID context,
                   NDK_PD **out)
{
    struct adapter *adapter = adapter_from(ndk);
    struct object *parent = &adapter->object;
    NTSTATUS status = object_injected(parent, CALL_CREATE_PD);
    struct pd *pd = NULL;

    if (status == STATUS_SUCCESS) {
        pd = pd_new(adapter);
        if (!pd)
            status = object_fail(parent, CALL_CREATE_PD, STATUS_INSUFFICIENT_RESOURCES,
                                 "no memory or no token left");
    }
    return create_answer(parent, CALL_CREATE_PD, completion, context, status,
                         pd ? &pd->object : NULL, (void **)out);
}

static VOID pd_get_privileged_token(NDK_PD *ndk, UINT32 *token)
{
    *token = pd_from(ndk)->privileged_token;
}

const NDK_PD_DISPATCH pd_dispatch = {
    .NdkClosePd = object_close,
    .NdkQueryExtension = object_query_extension,
    .NdkCreateMr = mr_create,
    .NdkCreateMw = mw_create,
    .NdkCreateSrq = srq_create,
    .NdkCreateQp = qp_create,
    .NdkCreateQpWithSrq = qp_create_with_srq,
    .NdkGetPrivilegedMemoryRegionToken = pd_get_privileged_token,
};
