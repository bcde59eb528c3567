// SPDX-License-Identifier: MIT
/*
 * See link.h: posts and completions of one connection.
 *
 * No wake-up is lost: the owner arms only after it found the CQ empty, and the provider satisfies
 * an arm at once with what came since the last notification. A disconnect is acted upon only after
 * a poll that began after it was seen and found nothing, so what arrived before it is not lost
 * either.
 */
#include "link.h"

#include "common/tool_args.h"
#include "link_internal.h"

#define BATCH          16
#define STOP_GRACE_MS  2000 /* a stopped program lets what is in flight finish */
#define EVENT_GRACE_MS 1000 /* from a failed request to the disconnect event that explains it */

static const char *const kind_names[LINK_KINDS] = {"receive", "send", "read", "write"};

static enum link_kind kind_of(const NDK_RESULT_EX *result)
{
    if (result->Type & NdkOperationTypeReceive)
        return LINK_RECEIVE;
    if (result->Type == NdkOperationTypeRead)
        return LINK_READ;
    return result->Type == NdkOperationTypeWrite ? LINK_WRITE : LINK_SEND;
}

static void arm(struct link *link)
{
    if (!atomic_exchange(&link->armed, true))
        link->cq->Dispatch->NdkArmCq(link->cq, NDK_CQ_NOTIFY_ANY);
}

/* ---- inside the notification ---- */

/* Counts a result for link_wait(). */
static void keep(struct link *link, const NDK_RESULT_EX *result)
{
    enum link_kind kind = kind_of(result);

    link->done[kind]++;
    if (kind == LINK_RECEIVE)
        link->octets = result->BytesTransferred;
}

static enum link_step feed_one(struct link *link, const NDK_RESULT_EX *result, enum link_step step)
{
    if (result->Status != STATUS_SUCCESS) {
        link->broken = *result;
        return LINK_BROKEN;
    }
    if (step == LINK_GO_ON)
        step = link->handler(link->context, kind_of(result), result->BytesTransferred);
    else
        keep(link, result);
    if (step == LINK_NOT_MINE) {
        keep(link, result);
        step = LINK_GO_ON;
    }
    return step;
}

/* Feeds the handler until the CQ is empty or the handler is done. Under the lock. */
static enum link_step feed(struct link *link)
{
    NDK_RESULT_EX results[BATCH];
    enum link_step step = LINK_GO_ON;
    ULONG count;

    while (step == LINK_GO_ON &&
           (count = link->cq->Dispatch->NdkGetCqResultsEx(link->cq, results, BATCH)) > 0) {
        for (ULONG i = 0; i < count && step != LINK_BROKEN; i++)
            step = feed_one(link, &results[i], step);
    }
    return step;
}

VOID link_notified(PVOID context, NTSTATUS cq_status)
{
    struct link *link = context;
    bool wake = true;

    pthread_mutex_lock(&link->lock);
    atomic_store(&link->armed, false);
    if (cq_status != STATUS_SUCCESS) {
        atomic_store(&link->cq_status, cq_status);
    } else if (link->handler) {
        enum link_step step = feed(link);

        if (step == LINK_GO_ON) {
            arm(link);
            wake = false;
        } else {
            link->handler = NULL;
            atomic_store(&link->step, (int)step);
        }
    }
    pthread_mutex_unlock(&link->lock);
    if (wake)
        KeSetEvent(&link->wake, IO_NO_INCREMENT, FALSE);
}

/* ---- the link's thread ---- */

static void report_result(struct link *link, const NDK_RESULT_EX *result)
{
    char name[80], text[320] = "";
    LARGE_INTEGER grace = link_timeout(EVENT_GRACE_MS);

    link->failed = true;
    if (result->ProviderErrorCode)
        softndk_reason_text(result->ProviderErrorCode, text, sizeof(text));
    tool_say("%s: %s: %s: %s%s%s", link->peer, kind_names[kind_of(result)],
             tool_status(result->Status, name, sizeof(name)), softndk_status_text(result->Status),
             text[0] ? "; " : "", text);
    while (!atomic_load(&link->disconnected)) {
        if (KeWaitForSingleObject(&link->wake, Executive, KernelMode, FALSE, &grace) ==
            STATUS_TIMEOUT)
            return;
    }
    link_report_lost(link);
}

/* The CQ itself died, or nothing did. */
static bool cq_failed(struct link *link)
{
    NTSTATUS status = atomic_load(&link->cq_status);

    if (status == STATUS_SUCCESS)
        return false;
    if (!link->failed)
        tool_report(&link->cq->Header, "completion queue", status);
    link->failed = true;
    return true;
}

static enum link_result wait_for(struct link *link, enum link_kind kind, unsigned grace_ms)
{
    LARGE_INTEGER grace = link_timeout(grace_ms);
    NTSTATUS woken = STATUS_SUCCESS;

    for (;;) {
        bool over = atomic_load(&link->disconnected);
        NDK_RESULT_EX result;

        if (link->failed || cq_failed(link))
            return LINK_FAILED;
        if (link->done[kind] > 0) {
            link->done[kind]--;
            return LINK_GOOD;
        }
        if (link->cq->Dispatch->NdkGetCqResultsEx(link->cq, &result, 1) == 1) {
            if (result.Status == STATUS_SUCCESS)
                keep(link, &result);
            else
                report_result(link, &result);
            continue;
        }
        if (over)
            return LINK_GONE;
        if (woken == STATUS_TIMEOUT)
            return LINK_STOPPED;
        arm(link);
        woken = KeWaitForSingleObject(&link->wake, Executive, KernelMode, FALSE,
                                      tool_stopped() ? &grace : NULL);
    }
}

enum link_result link_wait(struct link *link, enum link_kind kind)
{
    return wait_for(link, kind, STOP_GRACE_MS);
}

enum link_result link_wait_idle(struct link *link, enum link_kind kind)
{
    return wait_for(link, kind, 0);
}

enum link_result link_run(struct link *link, link_handler *handler, void *context)
{
    LARGE_INTEGER grace = link_timeout(EVENT_GRACE_MS);
    enum link_step step;
    bool over = false;

    pthread_mutex_lock(&link->lock);
    link->handler = handler;
    link->context = context;
    atomic_store(&link->step, LINK_GO_ON);
    arm(link);
    pthread_mutex_unlock(&link->lock);

    while ((step = (enum link_step)atomic_load(&link->step)) == LINK_GO_ON) {
        if (atomic_load(&link->cq_status) != STATUS_SUCCESS || (over && tool_stopped()))
            break;
        if (KeWaitForSingleObject(&link->wake, Executive, KernelMode, FALSE,
                                  over ? &grace : NULL) == STATUS_TIMEOUT)
            break;
        over = atomic_load(&link->disconnected) || tool_stopped();
    }

    pthread_mutex_lock(&link->lock);
    link->handler = NULL;
    step = (enum link_step)atomic_load(&link->step);
    pthread_mutex_unlock(&link->lock);
    if (step == LINK_FINISHED)
        return LINK_GOOD;
    if (step == LINK_BROKEN && !link->failed) {
        report_result(link, &link->broken);
        return LINK_FAILED;
    }
    if (step == LINK_BROKEN || cq_failed(link)) {
        link->failed = true;
        return LINK_FAILED;
    }
    return atomic_load(&link->disconnected) ? LINK_GONE : LINK_STOPPED;
}

/* ---- posts ---- */

static bool posted(struct link *link, const char *call, NTSTATUS status)
{
    if (status == STATUS_SUCCESS)
        return true;
    if (!link->failed)
        tool_report(&link->qp->Header, call, status);
    link->failed = true;
    return false;
}

bool link_receive(struct link *link, const struct tool_memory *memory, size_t offset, ULONG length)
{
    NDK_SGE sge = tool_memory_sge(memory, offset, length);

    return posted(link, "NdkReceive", link->qp->Dispatch->NdkReceive(link->qp, NULL, &sge, 1));
}

bool link_send(struct link *link, const struct tool_memory *memory, size_t offset, ULONG length)
{
    NDK_SGE sge = tool_memory_sge(memory, offset, length);

    return posted(link, "NdkSend", link->qp->Dispatch->NdkSend(link->qp, NULL, &sge, 1, 0));
}

bool link_read(struct link *link, const struct tool_memory *memory, ULONG length, UINT64 address,
               UINT32 token)
{
    NDK_SGE sge = tool_memory_sge(memory, 0, length);

    return posted(link, "NdkRead",
                  link->qp->Dispatch->NdkRead(link->qp, NULL, &sge, 1, address, token, 0));
}

bool link_write(struct link *link, const struct tool_memory *memory, ULONG length, UINT64 address,
                UINT32 token)
{
    NDK_SGE sge = tool_memory_sge(memory, 0, length);

    return posted(link, "NdkWrite",
                  link->qp->Dispatch->NdkWrite(link->qp, NULL, &sge, 1, address, token, 0));
}
