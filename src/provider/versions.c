// SPDX-License-Identifier: MIT
/* See versions.h. The older tables are the newest ones with their tails replaced. */
#include "provider/versions.h"

#include <ntstatus.h>
#include <pthread.h>

#include "base/red.h"
#include "nt/nt.h"
#include "provider/adapter.h"
#include "provider/connector.h"
#include "provider/cq.h"
#include "provider/qp.h"

/* ---- what stands beyond a table ------------------------------------------------------------- */

static void beyond(struct object *object, const char *slot, const char *since)
{
    nt_finding_of_call("%s #%u: %s: lies beyond the table of NDKPI %u.%u (it came with %s; look at "
                       "Header.Version first), rule NDKPI 3",
                       object->class->name, object->id, slot, object->header.Version.Major,
                       object->header.Version.Minor, since);
}

static ULONG beyond_get_results_ex(NDK_CQ *cq, NDK_RESULT_EX results[], ULONG room)
{
    (void)results;
    (void)room;
    beyond(&cq_from(cq)->object, "NdkGetCqResultsEx", "1.2");
    return 0;
}

static NTSTATUS beyond_send_and_invalidate(NDK_QP *qp, PVOID context, CONST NDK_SGE *sgl,
                                           ULONG sges, ULONG flags, UINT32 token)
{
    (void)context;
    (void)sgl;
    (void)sges;
    (void)flags;
    (void)token;
    beyond(&qp_from(qp)->object, "NdkSendAndInvalidate", "1.2");
    return object_fail(&qp_from(qp)->object, CALL_SEND_AND_INVALIDATE, STATUS_NOT_SUPPORTED,
                       "the adapter runs NDKPI 1.1, rule NDKPI 3");
}

static NTSTATUS beyond_complete_ex(NDK_CONNECTOR *connector,
                                   NDK_FN_DISCONNECT_EVENT_CALLBACK_EX event, PVOID event_context,
                                   NDK_FN_REQUEST_COMPLETION completion, PVOID context)
{
    struct object *object = &connector_from(connector)->object;

    (void)event;
    (void)event_context;
    (void)completion;
    (void)context;
    beyond(object, "NdkCompleteConnectEx", "2.1");
    return object_fail(object, CALL_COMPLETE_CONNECT_EX, STATUS_NOT_SUPPORTED,
                       "the adapter runs less than NDKPI 2.1, rule NDKPI 3");
}

static NTSTATUS beyond_accept_ex(NDK_CONNECTOR *connector, NDK_QP *qp, ULONG inbound,
                                 ULONG outbound, CONST PVOID data, ULONG length,
                                 NDK_FN_DISCONNECT_EVENT_CALLBACK_EX event, PVOID event_context,
                                 NDK_FN_REQUEST_COMPLETION completion, PVOID context)
{
    struct object *object = &connector_from(connector)->object;

    (void)qp;
    (void)inbound;
    (void)outbound;
    (void)data;
    (void)length;
    (void)event;
    (void)event_context;
    (void)completion;
    (void)context;
    beyond(object, "NdkAcceptEx", "2.1");
    return object_fail(object, CALL_ACCEPT_EX, STATUS_NOT_SUPPORTED,
                       "the adapter runs less than NDKPI 2.1, rule NDKPI 3");
}

static const NDK_CQ_DISPATCH cq_beyond = {
    .NdkGetCqResultsEx = beyond_get_results_ex,
};
static const NDK_QP_DISPATCH qp_beyond = {
    .NdkSendAndInvalidate = beyond_send_and_invalidate,
};
static const NDK_CONNECTOR_DISPATCH connector_beyond = {
    .NdkCompleteConnectEx = beyond_complete_ex,
    .NdkAcceptEx = beyond_accept_ex,
};

/* ---- the older tables ----------------------------------------------------------------------- */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static NDK_CQ_DISPATCH cq_1_1;
static NDK_QP_DISPATCH qp_1_1;
static NDK_CONNECTOR_DISPATCH connector_2_0;

static void tables_make(void)
{
    cq_1_1 = cq_dispatch;
    cq_1_1.NdkGetCqResultsEx = cq_beyond.NdkGetCqResultsEx;
    qp_1_1 = qp_dispatch;
    qp_1_1.NdkSendAndInvalidate = qp_beyond.NdkSendAndInvalidate;
    connector_2_0 = connector_dispatch;
    connector_2_0.NdkCompleteConnectEx = connector_beyond.NdkCompleteConnectEx;
    connector_2_0.NdkAcceptEx = connector_beyond.NdkAcceptEx;
}

const void *version_dispatch(NDK_OBJECT_TYPE type, NDK_VERSION runs, const void *newest)
{
    if (version_is_at_least(runs, 2, 1) || RED("version-newest-tables"))
        return newest;
    pthread_once(&once, tables_make);
    if (type == NdkObjectTypeConnector && newest == &connector_dispatch)
        return &connector_2_0;
    if (version_is_at_least(runs, 1, 2))
        return newest;
    if (type == NdkObjectTypeCq && newest == &cq_dispatch)
        return &cq_1_1;
    if (type == NdkObjectTypeQp && newest == &qp_dispatch)
        return &qp_1_1;
    return newest;
}
