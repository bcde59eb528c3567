// SPDX-License-Identifier: MIT
/*
 * See run.h: how the data connections of a run come and go.
 *
 * The server creates its queue pairs before it listens; a connection's private data says which one
 * it is for, so nothing is created in the connect event. Each queue pair is taken once: its
 * `claimed` flag is the only thing that two connect events could both want.
 */
#include "run.h"

#include <sched.h>
#include <string.h>

#define MEET_MAGIC  0x4e504652u /* "NPFR" */
#define MEET_OCTETS 8
#define MEET_DATA   512 /* a transport may deliver more octets than were sent */

bool meet_has_extended(const NDK_CONNECTOR *connector)
{
    NDK_VERSION runs = connector->Header.Version;

    return runs.Major > 2 || (runs.Major == 2 && runs.Minor >= 1);
}

/* ---- events ---- */

static VOID on_disconnect_ex(PVOID context, ULONG reason)
{
    struct perf_qp *qp = context;
    struct run *run = qp->worker->run;
    char text[240];

    if (atomic_load(&run->ended) == run->plan.threads || atomic_load(&run->stop))
        return;
    softndk_reason_text(reason, text, sizeof(text));
    run_fail(run, "queue pair %u: connection lost: %s", qp->index, text);
}

static VOID on_disconnect(PVOID context)
{
    on_disconnect_ex(context, 0);
}

static VOID on_accepted(PVOID context, NTSTATUS status)
{
    struct perf_qp *qp = context;
    struct run *run = qp->worker->run;

    if (status != STATUS_SUCCESS) {
        run_fail_call(run, &qp->connector->Header, "NdkAccept", status);
        return;
    }
    qp->connected = true;
    atomic_fetch_add(&run->connected, 1);
    KeSetEvent(&run->wake, IO_NO_INCREMENT, FALSE);
}

static void accept_one(struct perf_qp *qp, NDK_CONNECTOR *connector)
{
    const ULONG reads = qp->worker->run->plan.reads;
    NTSTATUS status;

    qp->connector = connector;
    if (meet_has_extended(connector))
        status = connector->Dispatch->NdkAcceptEx(connector, qp->qp, reads, reads, NULL, 0,
                                                  on_disconnect_ex, qp, on_accepted, qp);
    else
        status = connector->Dispatch->NdkAccept(connector, qp->qp, reads, reads, NULL, 0,
                                                on_disconnect, qp, on_accepted, qp);
    if (status == STATUS_PENDING)
        return;
    on_accepted(qp, status);
    if (status != STATUS_SUCCESS) /* nobody waits for what does not come */
        connector->Dispatch->NdkReject(connector, NULL, 0);
}

static void sort_in(struct run *run, NDK_CONNECTOR *connector)
{
    UCHAR data[MEET_DATA];
    ULONG length = 0;
    UINT32 words[2] = {0, 0};
    NTSTATUS status;

    /* The size first, then exactly that much: some providers insist. */
    status = connector->Dispatch->NdkGetConnectionData(connector, NULL, NULL, NULL, &length);
    if (status == STATUS_SUCCESS && length <= sizeof(data))
        status = connector->Dispatch->NdkGetConnectionData(connector, NULL, NULL, data, &length);
    else
        status = STATUS_BUFFER_TOO_SMALL;
    if (status == STATUS_SUCCESS && length >= MEET_OCTETS)
        memcpy(words, data, MEET_OCTETS);
    words[0] = RtlUlongByteSwap(words[0]);
    words[1] = RtlUlongByteSwap(words[1]);
    if (atomic_load(&run->shut) || words[0] != MEET_MAGIC || words[1] >= run->plan.qps ||
        atomic_exchange(&run->qps[words[1]].claimed, true)) {
        connector->Dispatch->NdkReject(connector, NULL, 0);
        connector->Dispatch->NdkCloseConnector(&connector->Header, tool_closed_alone, NULL);
        return;
    }
    accept_one(&run->qps[words[1]], connector);
}

VOID meet_event(PVOID context, NDK_CONNECTOR *connector)
{
    struct run *run = context;

    atomic_fetch_add(&run->in_event, 1);
    sort_in(run, connector);
    atomic_fetch_sub(&run->in_event, 1);
}

bool meet_listen(struct run *run, NDK_FN_CONNECT_EVENT_CALLBACK event, const SOCKADDR_INET *local,
                 ULONG length)
{
    SOCKADDR_INET address = *local;
    NTSTATUS status;

    SS_PORT(&address) = 0;
    if (!tool_create_listener(run->adapter, event, run, &run->listener)) {
        run_fail(run, "cannot create a listener");
        return false;
    }
    status = tool_listen(run->listener, &address, length, true);
    if (status == STATUS_SUCCESS)
        status = run->listener->Dispatch->NdkGetLocalAddress(run->listener, (PSOCKADDR)&address,
                                                             &length);
    if (status != STATUS_SUCCESS) {
        run_fail_call(run, &run->listener->Header, "NdkListen", status);
        return false;
    }
    run->port = RtlUshortByteSwap(SS_PORT(&address));
    return true;
}

/* An event that is under way has seen `shut`, or has its connector in place when this returns. */
void meet_shut(struct run *run)
{
    if (!run->listener)
        return;
    atomic_store(&run->shut, true);
    tool_wait_begin(&run->shutting);
    run->shut_status = run->listener->Dispatch->NdkCloseListener(&run->listener->Header,
                                                                 tool_closed, &run->shutting);
    while (atomic_load(&run->in_event) > 0)
        sched_yield();
}

void meet_shut_end(struct run *run)
{
    if (run->listener)
        tool_wait_end(&run->shutting, run->shut_status);
    run->listener = NULL;
}

/* ---- the client ---- */

/* A request of a connector whose end may need this thread's polling. */
struct meet_call {
    struct run *run;
    NTSTATUS status;
    atomic_bool done;
};

static VOID on_called(PVOID context, NTSTATUS status)
{
    struct meet_call *call = context;
    struct run *run = call->run;

    call->status = status;
    atomic_store(&call->done, true); /* the call's memory may be gone behind this */
    KeSetEvent(&run->wake, IO_NO_INCREMENT, FALSE);
}

/* A stop closes the connector, which ends the request. */
static NTSTATUS call_end(struct meet_call *call, struct perf_qp *qp, NTSTATUS returned)
{
    if (returned != STATUS_PENDING)
        return returned;
    while (!atomic_load(&call->done)) {
        NDK_CONNECTOR *connector = qp->connector;

        if (tool_stopped() && connector) {
            run_fail(call->run, "interrupted");
            qp->connector = NULL;
            tool_close(&connector->Header, connector->Dispatch->NdkCloseConnector);
            continue;
        }
        run_wait(call->run, 100);
    }
    return qp->connector ? call->status : STATUS_CANCELLED;
}

static bool connect_one(struct perf_qp *qp, const SOCKADDR_INET *local, ULONG local_length,
                        const SOCKADDR_INET *peer, ULONG peer_length)
{
    struct run *run = qp->worker->run;
    UINT32 words[2] = {RtlUlongByteSwap(MEET_MAGIC), RtlUlongByteSwap(qp->index)};
    struct meet_call connecting = {.run = run}, completing = {.run = run};
    NDK_CONNECTOR *connector;
    NTSTATUS status;

    if (!tool_create_connector(run->adapter, &qp->connector)) {
        run_fail(run, "cannot create a connector");
        return false;
    }
    connector = qp->connector;
    status = connector->Dispatch->NdkConnect(
        connector, qp->qp, (PSOCKADDR)local, local_length, (PSOCKADDR)peer, peer_length,
        run->plan.reads, run->plan.reads, words, MEET_OCTETS, on_called, &connecting);
    status = call_end(&connecting, qp, status);
    if (status != STATUS_SUCCESS) {
        run_fail_call(run, qp->connector ? &connector->Header : NULL, "NdkConnect", status);
        return false;
    }
    if (meet_has_extended(connector))
        status = connector->Dispatch->NdkCompleteConnectEx(connector, on_disconnect_ex, qp,
                                                           on_called, &completing);
    else
        status = connector->Dispatch->NdkCompleteConnect(connector, on_disconnect, qp, on_called,
                                                         &completing);
    status = call_end(&completing, qp, status);
    if (status != STATUS_SUCCESS) {
        run_fail_call(run, qp->connector ? &connector->Header : NULL, "NdkCompleteConnect", status);
        return false;
    }
    qp->connected = true;
    return true;
}

bool meet_connect(struct run *run, const SOCKADDR_INET *local, ULONG local_length,
                  const SOCKADDR_INET *peer, ULONG peer_length)
{
    for (unsigned i = 0; i < run->plan.qps; i++)
        if (!connect_one(&run->qps[i], local, local_length, peer, peer_length))
            return false;
    return true;
}

/* ---- the end ---- */

static VOID on_parted(PVOID context, NTSTATUS status)
{
    struct run *run = context;

    (void)status; /* a peer that went first, or does not go: its business */
    if (atomic_fetch_sub(&run->parting, 1) == 1)
        KeSetEvent(&run->wake, IO_NO_INCREMENT, FALSE);
}

void meet_part(struct run *run)
{
    atomic_store(&run->parting, 1); /* one for this thread, so that 0 is the end */
    for (unsigned i = 0; run->qps && i < run->plan.qps; i++) {
        NDK_CONNECTOR *connector = run->qps[i].connector;

        if (!connector || !run->qps[i].connected)
            continue;
        run->qps[i].connected = false;
        atomic_fetch_add(&run->parting, 1);
        if (connector->Dispatch->NdkDisconnect(connector, on_parted, run) != STATUS_PENDING)
            atomic_fetch_sub(&run->parting, 1);
    }
    atomic_fetch_sub(&run->parting, 1);
    while (atomic_load(&run->parting) > 0)
        run_wait(run, 1000);
}
