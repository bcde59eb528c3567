// SPDX-License-Identifier: MIT
/*
 * bw and rate: a window of requests in flight, posted as completions make room.
 *
 * The context of a request is the number of requests that its queue pair has posted by then: what
 * completes stands for everything before it, also for what was to complete silently.
 *
 * Verification. Sends: the receiver compares each message when its receive completes; a receive's
 * memory is not posted again before. Writes: message n goes to buffer n modulo their number; the
 * target compares what is there at the end, the last round. Reads: the reader wipes a buffer,
 * reads, and compares; the source holds message n in buffer n.
 */
#include "run.h"

#include <string.h>

static bool peer_sends(const struct run *run)
{
    return run->plan.op == PERF_SEND && plan_is_active(&run->plan, !run->server);
}

bool stream_prepare(struct worker *worker)
{
    const struct plan *plan = &worker->run->plan;
    unsigned receives = peer_sends(worker->run) ? plan_receives(plan) : 2;

    for (unsigned i = 0; i < worker->qp_count; i++) {
        struct perf_qp *qp = &worker->qps[i];

        if (plan->verify && plan->op == PERF_READ)
            for (unsigned b = 0; b < plan->buffers; b++)
                pattern_fill(qp->tx + (size_t)b * plan_buffer(plan), plan->size, b);
        for (unsigned k = 0; k < receives; k++)
            if (!perf_receive(qp))
                return false;
    }
    return true;
}

/* One request. The buffer's memory is free: as many requests as buffers, or fewer, are in flight,
 * or nobody looks at what is in it. */
static NTSTATUS post(struct perf_qp *qp, ULONG flags)
{
    const struct run *run = qp->worker->run;
    const struct plan *plan = &run->plan;
    size_t offset = (size_t)qp->tx_next * plan_buffer(plan);
    NDK_SGE sge = {.Length = plan->size, .MemoryRegionToken = run->memory.local};
    PVOID context = (PVOID)(uintptr_t)(qp->posted + 1);
    NDK_QP *ndk = qp->qp;

    if (++qp->tx_next == plan->buffers)
        qp->tx_next = 0;
    if (plan->op == PERF_READ) {
        sge.VirtualAddress = qp->rx + offset;
        if (plan->verify)
            memset(qp->rx + offset, 0, plan->size);
        return ndk->Dispatch->NdkRead(ndk, context, &sge, 1, qp->peer_tx + offset, run->peer_token,
                                      flags);
    }
    sge.VirtualAddress = qp->tx + offset;
    if (plan->verify)
        pattern_fill(qp->tx + offset, plan->size, qp->posted);
    if (plan->size <= plan->inline_size)
        flags |= NDK_OP_FLAG_INLINE;
    if (plan->op == PERF_WRITE)
        return ndk->Dispatch->NdkWrite(ndk, context, &sge, 1, qp->peer_rx + offset, run->peer_token,
                                       flags);
    return ndk->Dispatch->NdkSend(ndk, context, &sge, 1, flags);
}

/* Chains while there is room for one; the last of them may be shorter. */
static bool post_more(struct perf_qp *qp)
{
    const struct plan *plan = &qp->worker->run->plan;
    const uint32_t depth = plan->depth, moderation = plan->moderation;
    const uint64_t allowed = worker_allows(qp);

    while (qp->posted < allowed) {
        uint64_t left = allowed - qp->posted, room = depth - (qp->posted - qp->completed);
        uint32_t chain = left < plan->chain ? (uint32_t)left : plan->chain;

        if (room < chain)
            break;
        while (chain-- > 0) {
            ULONG flags = chain > 0 ? NDK_OP_FLAG_DEFER : 0;
            NTSTATUS status;

            /* The last one of the warm-up tells that it is over. */
            if (moderation > 1 && (qp->posted + 1) % moderation != 0 && qp->posted + 1 != qp->gate)
                flags |= NDK_OP_FLAG_SILENT_SUCCESS;
            status = post(qp, flags);
            if (status != STATUS_SUCCESS) {
                run_fail_call(qp->worker->run, &qp->qp->Header, perf_op_names[plan->op], status);
                return false;
            }
            qp->posted++;
        }
    }
    return true;
}

static bool post_all(struct worker *worker)
{
    for (unsigned i = 0; i < worker->qp_count; i++) {
        if (!post_more(&worker->qps[i]))
            return false;
        perf_settle(&worker->qps[i]);
    }
    return true;
}

bool stream_begin(struct worker *worker)
{
    worker_share(worker, plan_is_active(&worker->run->plan, worker->run->server));
    return post_all(worker);
}

static bool received(struct perf_qp *qp, const NDK_RESULT_EX *result)
{
    struct run *run = qp->worker->run;
    const struct plan *plan = &run->plan;

    if (perf_take_mark(qp, result))
        return true;
    if (result->BytesTransferred != plan->size || !peer_sends(run)) {
        run_fail(run, "a message of %u octets, need %u", (unsigned)result->BytesTransferred,
                 plan->size);
        return false;
    }
    if (plan->verify && !pattern_good(result->RequestContext, plan->size, qp->received)) {
        run_fail(run, "message %llu is not what was sent", (unsigned long long)qp->received);
        return false;
    }
    qp->received++;
    return perf_receive(qp);
}

/* What a read brought. */
static bool good_read(struct perf_qp *qp, uint64_t n)
{
    const struct plan *plan = &qp->worker->run->plan;
    uint32_t buffer = (uint32_t)(n % plan->buffers);

    if (pattern_good(qp->rx + (size_t)buffer * plan_buffer(plan), plan->size, buffer))
        return true;
    run_fail(qp->worker->run, "read %llu is not what is at the peer", (unsigned long long)n);
    return false;
}

static bool initiated(struct perf_qp *qp, const NDK_RESULT_EX *result)
{
    struct worker *worker = qp->worker;
    uint64_t before = qp->completed;

    if (result->RequestContext == qp->mark) {
        qp->fence_done = true;
        qp->completed = qp->posted;
    } else {
        qp->completed = (uintptr_t)result->RequestContext;
    }
    if (worker->run->plan.verify && worker->run->plan.op == PERF_READ)
        for (uint64_t n = before; n < qp->completed; n++)
            if (!good_read(qp, n))
                return false;
    worker->done += qp->completed - before;
    return true;
}

/* Time is up: nothing more is posted. */
static void stop_posting(struct worker *worker)
{
    for (unsigned i = 0; i < worker->qp_count; i++)
        if (worker->qps[i].limit == UINT64_MAX)
            worker->qps[i].limit = worker->qps[i].posted;
}

/* After the results of one queue pair. True: the worker is done. */
static bool go_on(struct perf_qp *qp)
{
    return !post_more(qp) || perf_settle(qp);
}

static bool take(struct perf_qp *qp, const NDK_RESULT_EX *result)
{
    if (result->Status != STATUS_SUCCESS)
        return !worker_fail_result(qp->worker, result);
    return (result->Type & NdkOperationTypeReceive) ? received(qp, result) : initiated(qp, result);
}

bool stream_step(struct worker *worker, const NDK_RESULT_EX *results, ULONG count)
{
    struct perf_qp *qp = NULL;

    for (ULONG i = 0; i < count; i++) {
        struct perf_qp *next = run_qp_of(&results[i]);

        if (qp && next != qp && go_on(qp))
            return true;
        qp = next;
        if (!take(qp, &results[i]))
            return true;
    }
    if (!qp)
        return false;
    if (worker_look(worker) && !post_all(worker))
        return true;
    if (worker->expired) {
        stop_posting(worker);
        worker->deadline_ns = 0;
        worker->expired = false;
        for (unsigned i = 0; i < worker->qp_count; i++)
            perf_settle(&worker->qps[i]);
    }
    return go_on(qp);
}

/* ---- writes: what is there at the end ---- */

static bool good_writes(struct perf_qp *qp)
{
    const struct plan *plan = &qp->worker->run->plan;
    const uint64_t count = qp->received;
    uint64_t first = count > plan->buffers ? count - plan->buffers : 0;

    for (uint64_t n = first; n < count; n++)
        if (!pattern_good(qp->rx + (size_t)(n % plan->buffers) * plan_buffer(plan), plan->size,
                          n)) {
            run_fail(qp->worker->run, "write %llu is not what was written", (unsigned long long)n);
            return false;
        }
    return true;
}

bool stream_verify_end(struct run *run)
{
    for (unsigned i = 0; i < run->plan.qps; i++)
        if (!good_writes(&run->qps[i]))
            return false;
    return true;
}
